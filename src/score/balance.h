/* SPDX-License-Identifier: Apache-2.0 */
/* Balanced scores. A cosine says how near two vectors are; retrieval needs how much nearer than
 * usual. Some candidates are near everything and push true matches down, so each has a bias, made
 * from a bank of rows of the other side, that its scores are lowered by:
 *
 *     softmax    b(v) = (1/beta) log mean_k exp(beta u_k.v)      u_k the rows of the bank
 *     csls       b(v) = half the mean of the K largest u_k.v
 *     quadratic  b(v) = c + sum_i w_i v_i + q_i v_i^2, fitted to the softmax bias; needs no bank
 *
 *     score of candidate v for query u:  u.v - b(v) = [u, 1] . [v, -b(v)]
 *
 * The second form is how it is used: one more column, and every product of rows is balanced. With
 * unit rows |b| <= 1, which the quadratic form is clamped to. (docs/method.md section 8.) */
#ifndef UNICON_SCORE_BALANCE_H
#define UNICON_SCORE_BALANCE_H

#include "base/ctx.h"
#include "base/balancing.h"
#include "io/pairs.h"

/* Unit embeddings of one side, `count` by r, rounded to float16. */
typedef struct unicon__bank {
  int64_t count;
  const float *row;
} unicon__bank;

struct unicon_balance {
  unicon__arena arena; /* of an object of its own; unused inside a model */
  unicon__balancing how;
  char text[UNICON__BALANCING_TEXT]; /* of `how`, in an object of its own */
  int64_t r;
  unicon__bank bank[2];  /* rows of x, rows of y */
  const float *curve[2]; /* quadratic: c, w, q (2r + 1 numbers) for candidates of x and of y */
};

/* out[i stride] = b(z_i) of n candidates of `side`, z having ld floats between rows. The bank of
 * the other side serves. 2 n m r flops. */
unicon_status unicon__bias(unicon_ctx *ctx, const unicon_balance *balance, int side, const float *z,
                           int64_t n, int64_t ld, float *out, int64_t stride);

/* The rows of a side that may enter a bank. */
typedef struct unicon__bank_rows {
  const unicon_pairs *pairs; /* those that have a pair; NULL: any */
  int side;
  int64_t n;
  const unsigned char *barred; /* per row: is it left out? NULL: none is */
} unicon__bank_rows;

/* Those that a bank is made of, ascending: the ones with the smallest numbers of the generator, at
 * most `count`. So a bank of more rows has those of a smaller one. */
unicon_status unicon__bank_draw(unicon_ctx *ctx, const unicon__bank_rows *from, int64_t count,
                                uint64_t seed, int64_t **row, int64_t *drawn);

/* Rounds to float16 and back: what a model file will hold. */
void unicon__bank_round(float *rows, int64_t count);

/* The quadratic form that is nearest to the softmax bias of n candidates of `side`, by least
 * squares, into `curve` (2r + 1). `balance` is of kind softmax. n (2r)^2 flops. */
unicon_status unicon__curve_fit(unicon_ctx *ctx, const unicon_balance *balance, int side,
                                const float *z, int64_t n, float *curve);

/* How strongly scores are balanced where nothing else decides, for a fit on so many rows of y: few
 * rows make a noisy bank, which wants a weaker hand. */
unicon__balancing unicon__balancing_usual(int64_t rows);

#endif
