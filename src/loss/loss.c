/* SPDX-License-Identifier: Apache-2.0 */
#include "loss/loss.h"

#include <math.h>
#include <string.h>

#include "base/sweep.h"

/* The general loss is one of two, by its psi. */
static const unicon__loss_ops *const table[] = {
    [UNICON__LOSS_CLIP] = &unicon__loss_exp,
    [UNICON__LOSS_INFONCE] = &unicon__loss_exp,
    [UNICON__LOSS_GENERAL] = &unicon__loss_exp,
    [UNICON__LOSS_TRIPLET] = &unicon__loss_pairwise,
    [UNICON__LOSS_SUPCON] = &unicon__loss_exp,
    [UNICON__LOSS_SIGLIP] = &unicon__loss_siglip,
    [UNICON__LOSS_SPECTRAL] = &unicon__loss_spectral,
    [UNICON__LOSS_CUSTOM] = &unicon__loss_pairwise,
};

void unicon__loss_params_from(const unicon_options *options, unicon__loss_params *out) {
  *out = (unicon__loss_params){
      .kind = unicon__word(options, UNICON__LOSS),
      .temperature = unicon__is(options, UNICON__TEMPERATURE, "learn")
                         ? 0.07 /* where CLIP begins */
                         : unicon__number(options, UNICON__TEMPERATURE),
      .margin = unicon__number(options, UNICON__MARGIN),
      .scale = unicon__number(options, UNICON__SCALE),
      .bias = unicon__number(options, UNICON__BIAS),
      .psi = unicon__word(options, UNICON__PSI),
      .phi = unicon__word(options, UNICON__PHI),
      .nu = unicon__number(options, UNICON__NU),
      .own = unicon__number(options, UNICON__EPSILON),
      .direction = unicon__word(options, UNICON__DIRECTION),
      .custom = unicon__custom_loss(options),
  };
}

/* The named losses as settings of the general one. */
static void fill_params(unicon__loss_params *params) {
  const bool triplet = params->kind == UNICON__LOSS_TRIPLET;
  if (params->kind == UNICON__LOSS_CUSTOM) {
    params->psi = UNICON__PSI_CUSTOM;
    params->phi = UNICON__PHI_CUSTOM;
  }
  if (params->kind == UNICON__LOSS_GENERAL || params->kind == UNICON__LOSS_CUSTOM) return;
  params->psi = triplet ? UNICON__PSI_HINGE : UNICON__PSI_EXP;
  params->phi = triplet ? UNICON__PHI_IDENTITY : UNICON__PHI_LOG;
  params->nu = 1;
  params->own = triplet ? 0 : 1;
}

/* infonce is the direction x of clip. */
unicon__loss_params unicon__loss_settings(const unicon__loss_params *params, double share[2]) {
  unicon__loss_params out = *params;
  const bool infonce = params->kind == UNICON__LOSS_INFONCE;
  const int direction = infonce ? UNICON__DIRECTION_X : params->direction;
  fill_params(&out);
  share[0] = direction == UNICON__DIRECTION_BOTH ? 0.5 : direction == UNICON__DIRECTION_X;
  share[1] = 1 - share[0];
  return out;
}

/* Combinations in which phi's argument could be 0 or less are refused. */
static unicon_status check_params(unicon_ctx *ctx, const unicon__loss_params *params) {
  const int psi = params->psi, phi = params->phi;
  if (params->kind == UNICON__LOSS_CUSTOM && (!params->custom.psi || !params->custom.phi))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "loss custom takes its psi and phi from a program: unicon_options_set_loss "
                        "gives them, and a file or a command line cannot");
  if (params->kind != UNICON__LOSS_GENERAL || phi == UNICON__PHI_IDENTITY) return UNICON_OK;
  if (psi == UNICON__PSI_IDENTITY || psi == UNICON__PSI_SOFTMIN)
    return unicon__fail(ctx, UNICON_ERR_OPTION, "psi %s goes with phi identity only",
                        psi == UNICON__PSI_IDENTITY ? "identity" : "softmin");
  if (psi == UNICON__PSI_HINGE && phi == UNICON__PHI_LOG &&
      !(params->own > 0 && params->nu == 1 && params->margin > 0))
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "psi hinge with phi log needs epsilon above 0, nu 1 and a margin above 0 "
                        "(they are %g, %g and %g); phi log1p or identity take any",
                        params->own, params->nu, params->margin);
  return UNICON_OK;
}

/* Z_x or Z_y: sum over rows of (sum of weights) / (number of positives). */
static double normalizer(const unicon_pairs *pairs, bool x) {
  const int64_t n = x ? pairs->n_x : pairs->n_y;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const unicon__partners p = x ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
    if (p.count == 0) continue;
    double weights = p.weight ? 0 : (double)p.count;
    for (int64_t k = 0; p.weight && k < p.count; k++) weights += (double)p.weight[k];
    sum += weights / (double)p.count;
  }
  return sum;
}

void unicon__plane_init(unicon__plane *plane, const unicon_pairs *pairs, int64_t r, const float *zx,
                        const float *zy) {
  *plane = (unicon__plane){
      .n_x = pairs->n_x, .n_y = pairs->n_y, .r = r, .zx = zx, .zy = zy, .pairs = pairs};
  plane->weight_x = normalizer(pairs, true);
  plane->weight_y = normalizer(pairs, false);
}

/* A cell has as many tiles as leave enough cells for many threads: by the shape of the plane alone,
 * for sums over a cell are part of the result. The numbers of pairwise losses per column are many
 * where columns have many positives, so their cells are short. */
static void cut_cells(const unicon_ctx *ctx, unicon__loss *loss) {
  enum {
    CELLS_WANTED = 64, /* a few for each of 16 threads */
    MOST_TILES = 8     /* side by side: more would save little of what a slot costs */
  };
  const unicon__plane *plane = &loss->plane;
  const int64_t tiles_x = (plane->n_x + ctx->tile_x - 1) / ctx->tile_x;
  const int64_t tiles_y = (plane->n_y + ctx->tile_y - 1) / ctx->tile_y;
  const double tiles = (double)tiles_x * (double)tiles_y;
  const double wish = loss->ops == &unicon__loss_pairwise ? 1 : floor(tiles / CELLS_WANTED);
  loss->width = (int64_t)(wish < 1 ? 1 : wish > MOST_TILES ? MOST_TILES : wish) * ctx->tile_y;
}

unicon_status unicon__loss_begin(unicon_ctx *ctx, const unicon__loss_params *params,
                                 const unicon__plane *plane, unicon__loss *out) {
  UNICON_TRY(check_params(ctx, params));
  if (params->kind == UNICON__LOSS_MOMENT)
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "loss moment has constant weights, so there is nothing to refine; use clip "
                        "or another loss");
  *out = (unicon__loss){.ops = table[params->kind], .plane = *plane};
  out->params = unicon__loss_settings(params, out->share);
  if (out->params.psi != UNICON__PSI_EXP) out->ops = &unicon__loss_pairwise;
  cut_cells(ctx, out);
  const int64_t down = (plane->n_x + ctx->tile_x - 1) / ctx->tile_x;
  out->slots = unicon__sweep_slots(ctx, down * unicon__loss_cells(out));
  UNICON_NEW(ctx, out->cell_value, down * unicon__loss_cells(out));
  return out->ops->begin(ctx, out);
}

void unicon__lse_add(double *top, double *sum, double v, double count) {
  if (v == -INFINITY || count == 0) return;
  if (v <= *top) {
    *sum += count * exp(v - *top);
  } else {
    *sum = *sum * exp(*top - v) + count;
    *top = v;
  }
}

double unicon__lse_value(double top, double sum) {
  return sum > 0 ? top + log(sum) : isnan(sum) ? sum : -INFINITY;
}

double unicon__log_add(double u, double v) {
  if (isnan(u) || isnan(v)) return NAN; /* of which the next line knows nothing */
  const double high = u > v ? u : v, low = u > v ? v : u;
  return high == -INFINITY ? high : high + log1p(exp(low - high));
}

/* Scores of positives: hidden, or copied from `from`. */
static void mask_positives(unicon__partners p, int64_t y0, int64_t ny, const float *from,
                           float *to) {
  int64_t length;
  const int64_t first = unicon__list_range(p, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++) {
    const int64_t at = unicon__partner(p, k) - y0;
    to[at] = from ? from[at] : -INFINITY;
  }
}

void unicon__mask_row(const unicon_pairs *pairs, int64_t i, int64_t y0, int64_t ny,
                      double temperature, bool keep_positives, float *s, float *held) {
  const bool only = pairs->only_listed;
  const int64_t self = unicon__self_x(pairs, i) - y0;
  if (only) {
    memcpy(held, s, (size_t)ny * sizeof *s);
    for (int64_t j = 0; j < ny; j++) s[j] = -INFINITY;
  }
  if (only == keep_positives)
    mask_positives(unicon__positives_x(pairs, i), y0, ny, only ? held : NULL, s);
  if (self >= 0 && self < ny) s[self] = -INFINITY;
  if (!only && pairs->ignore.count == 0) return;
  const unicon__partners listed = unicon__listed(pairs, true, i);
  int64_t length;
  const int64_t first = unicon__list_range(listed, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++) {
    const int64_t at = listed.item[k] - y0;
    const double epsilon = unicon__epsilon(pairs, listed, k);
    const double shift = epsilon > 0 ? temperature * log(epsilon) : -INFINITY;
    s[at] = (float)((double)(only ? held : s)[at] + shift);
  }
}

void unicon__epsilon_row(const unicon_pairs *pairs, int64_t i, int64_t y0, int64_t ny,
                         float *epsilon) {
  const int64_t self = unicon__self_x(pairs, i) - y0;
  for (int64_t j = 0; j < ny; j++) epsilon[j] = pairs->only_listed ? 0 : 1;
  const unicon__partners listed = unicon__listed(pairs, true, i);
  const unicon__partners positive = unicon__positives_x(pairs, i);
  int64_t length, first = unicon__list_range(listed, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++)
    epsilon[listed.item[k] - y0] = (float)unicon__epsilon(pairs, listed, k);
  first = unicon__list_range(positive, y0, y0 + ny, &length);
  for (int64_t k = first; k < first + length; k++) epsilon[unicon__partner(positive, k) - y0] = 0;
  if (self >= 0 && self < ny) epsilon[self] = 0;
}
