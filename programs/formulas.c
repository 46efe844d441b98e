/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of an option stand for, for help and man page. A word the library does not accept
 * (yet) is not shown, so this list may run ahead of it. */
#include <string.h>

#include "cli.h"

static const cli_formula losses[] = {
    {"",
     "L = sum over pairs (i, k) of w_ik phi( epsilon psi((1 - nu) s_ik) + sum_j e_ij psi(s_ij - nu "
     "s_ik) ), averaged over both directions unless --direction says otherwise; e_ij is 1 but for "
     "listed negatives"},
    {"clip",
     "psi(t) = exp(t/T), phi(t) = T log t, nu = epsilon = 1, T the temperature: "
     "T log(1 + sum_j exp((s_ij - s_ik)/T))"},
    {"infonce", "the x to y direction of clip alone"},
    {"general", "psi, phi, nu and epsilon chosen one by one"},
    {"triplet",
     "psi(t) = max(0, t + margin), phi(t) = t, nu = 1, epsilon = 0: "
     "sum_j max(0, s_ij - s_ik + margin)"},
    {"supcon",
     "-T log of the softmax of s_ik/T over all rows, the other matches of i too; for classes"},
    {"siglip",
     "sum over all of log(1 + exp(-z (scale s_ij + bias))), z = 1 on pairs and -1 elsewhere, "
     "divided by the number of pairs"},
    {"spectral", "-2 mean over pairs of s + mean over all of s^2, s the dot product"},
    {"moment", "the weights S of supcon at s = 0: no temperature, no iteration, exact"},
    {"custom", "psi and phi of a program (unicon_options_set_loss)"},
    {NULL, NULL},
};

static const cli_formula kernels[] = {
    {"linear", "t"},
    {"cosine", "t / (|a| |b|), the same as linear on unit rows"},
    {"angular", "(sin A + (pi - A) cos A) / pi, the arc-cosine kernel of degree 1"},
    {"arccos0", "1 - A/pi"},
    {"arccos1", "the same as angular"},
    {"arccos2", "(3 sin A cos A + (pi - A) (1 + 2 cos^2 A)) / (3 pi), so that k(a, a) = 1"},
    {"expcos", "exp(t / width^2)"},
    {"rbf", "exp(-d^2 / (2 width^2))"},
    {"matern12", "exp(-d/width)"},
    {"laplace", "the same as matern12"},
    {"matern32", "(1 + u) exp(-u), u = sqrt(3) d/width"},
    {"matern52", "(1 + u + u^2/3) exp(-u), u = sqrt(5) d/width"},
    {"poly", "((1 + t) / 2)^degree"},
    {NULL, NULL},
};

static const cli_formula metrics[] = {
    {"none", "W = I: the plain singular value decomposition C = U D V', as in the paper"},
    {"whiten",
     "W = (Sigma + ridge lambda_max I)^(-1/2) on both sides: the decomposition of W_x C W_y; its "
     "singular values tend to the canonical correlations as ridge falls to 0"},
    {NULL, NULL},
};

static const cli_formula splits[] = {
    {"",
     "F_x = W_x U D^(E A), F_y = W_y V D^(E (1-A)), D the singular values, E the exponent: A = .5 "
     "shares the spectrum evenly, A = 0 is what the paper prints"},
    {NULL, NULL},
};

static const cli_formula balances[] = {
    {"", "softmax:BETA: b(v) = (1/BETA) log mean_k exp(BETA u_k.v)"},
    {"", "csls:K: b(v) = half the mean of the K largest u_k.v"},
    {"",
     "quadratic:BETA: b(v) = c + sum_i w_i v_i + q_i v_i^2, fitted to softmax:BETA; no bank is "
     "kept"},
    {NULL, NULL},
};

static const cli_formulas sections[] = {
    {"loss", "Losses (--loss):",
     "s_ij is the cosine of the embedded rows i of X and j of Y, k a match of i, j runs over the "
     "rows that are none. Every loss L gives weights S = -dL/ds, and C = X' S Y is decomposed.",
     losses},
    {"kernel", "Kernels (--kernel):",
     "k(a, b) for unit rows a and b, t their dot product, A = arccos t, d = |a - b|. The width is "
     "--width, or the median distance between rows:",
     kernels},
    {"metric", "Metric (--metric):",
     "Sigma is the covariance of one side's features (the second moment with --center off):",
     metrics},
    {"split", "Split and exponent (--split A, --exponent E):", "", splits},
    {"balance", "Balance (--balance):",
     "The score of a candidate v for a query u is u.v - b(v), u_k being the bank: embedded rows of "
     "the side of the queries. An index for inner products ranks so by rows [u, 1] and [v, -b(v)].",
     balances},
};

const cli_formulas *cli_formulas_at(size_t index) {
  return index < sizeof sections / sizeof *sections ? &sections[index] : NULL;
}

bool cli_library_accepts(const char *option, const char *word) {
  const size_t length = strlen(word);
  for (size_t i = 0; i < unicon_option_count(); i++) {
    const unicon_option_info *info = unicon_option_at(i);
    if (strcmp(info->name, option) != 0) continue;
    if (!length) return true;
    for (const char *at = strstr(info->words, word); at; at = strstr(at + 1, word))
      if ((at == info->words || at[-1] == '|') && (!at[length] || at[length] == '|')) return true;
  }
  return false;
}
