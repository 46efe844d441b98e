/* SPDX-License-Identifier: Apache-2.0 */
#include "score/validation.h"

#include <string.h>

#include "score/retrieval.h"
#include "features/project.h"

enum { FEWEST_ROWS = 16 }; /* of a bank that says anything */

/* Marks the rows of `train` that are held out as well. */
static unicon_status bar_held(unicon_ctx *ctx, const unicon__source *train,
                              const unicon__source *held, unsigned char **out) {
  unsigned char *seen;
  *out = NULL;
  if (train->rows != held->rows) return UNICON_OK;
  UNICON_NEW(ctx, seen, train->rows->count);
  UNICON_NEW(ctx, *out, train->count);
  for (int64_t i = 0; i < held->count; i++) seen[held->index ? held->index[i] : i] = 1;
  for (int64_t i = 0; i < train->count; i++) (*out)[i] = seen[train->index ? train->index[i] : i];
  return UNICON_OK;
}

unicon_status unicon__validation_bank(unicon_ctx *ctx, const unicon__source *train,
                                      const unicon_pairs *pairs, int side, int64_t most,
                                      uint64_t seed, unicon__validation *v) {
  unsigned char *barred;
  int64_t *row = NULL, count = 0;
  UNICON_TRY(bar_held(ctx, train, &v->side[side], &barred));
  unicon__bank_rows from = {pairs, side, train->count, barred};
  UNICON_TRY(unicon__bank_draw(ctx, &from, most, seed, &row, &count));
  from.barred = NULL;
  if (barred && count < FEWEST_ROWS)
    UNICON_TRY(unicon__bank_draw(ctx, &from, most, seed, &row, &count));
  return unicon__source_narrow(ctx, train, row, count, &v->bank[side]);
}

unicon_status unicon__validation_embed(unicon_ctx *ctx, const unicon__validation *v,
                                       const float *const f[2], int64_t r, unicon__embedded *out) {
  *out = (unicon__embedded){.r = r};
  for (int s = 0; s < 2; s++) {
    const unicon__source *held = &v->side[s], *bank = &v->bank[s];
    UNICON_NEW(ctx, out->held[s], held->count * r);
    UNICON_TRY(unicon__project(ctx, held, f[s], r, 0, held->count, false, false, out->held[s], r));
    if (bank->count == 0) continue;
    UNICON_NEW(ctx, out->bank[s], bank->count * r);
    UNICON_TRY(unicon__project(ctx, bank, f[s], r, 0, bank->count, false, false, out->bank[s], r));
  }
  return UNICON_OK;
}

/* The first `rank` of r columns, scaled, as unit rows with `width` floats between them. */
static unicon_status unit_columns(unicon_ctx *ctx, const float *z, int64_t n, int64_t r,
                                  int64_t rank, const double *scale, int64_t width, float **out) {
  UNICON_NEW(ctx, *out, n * width);
  for (int64_t i = 0; i < n; i++) {
    float *to = *out + i * width;
    for (int64_t k = 0; k < rank; k++)
      to[k] = scale ? (float)((double)z[i * r + k] * scale[k]) : z[i * r + k];
  }
  unicon__scale_rows(*out, n, rank, width, 1);
  return UNICON_OK;
}

/* Sets the last column: 1 for queries, minus the bias for candidates. */
static void set_column(float *z, int64_t n, int64_t rank, const float *bias) {
  for (int64_t i = 0; i < n; i++) z[i * (rank + 1) + rank] = bias ? -bias[i] : 1;
}

/* What balances the scores: a model's own banks, or the bank rows as a model would keep them. */
static unicon_status make_banks(unicon_ctx *ctx, const unicon__validation *v,
                                const unicon__embedded *z, int64_t rank,
                                const double *const scale[2], unicon__balancing how,
                                unicon_balance *out) {
  *out = z->made ? *z->made : (unicon_balance){.r = rank};
  out->how = how;
  if (z->made) return UNICON_OK;
  if (how.kind == UNICON__BALANCE_QUADRATIC) out->how.kind = UNICON__BALANCE_SOFTMAX;
  for (int s = 0; s < 2; s++) {
    float *bank;
    const int64_t count = v->bank[s].count;
    UNICON_TRY(unit_columns(ctx, z->bank[s], count, z->r, rank, scale[s], rank, &bank));
    unicon__bank_round(bank, count * rank);
    out->bank[s] = (unicon__bank){count, bank};
  }
  return UNICON_OK;
}

unicon_status unicon__validation_judge(unicon_ctx *ctx, const unicon__validation *v,
                                       const unicon__embedded *z, int64_t rank,
                                       const double *const scale[2], unicon__balancing how,
                                       double *score) {
  unicon__block *frame = unicon__frame_open(ctx);
  const bool balanced = how.kind != UNICON__BALANCE_OFF && (z->made || (z->bank[0] && z->bank[1]));
  const int64_t width = rank + balanced;
  unicon_balance balance;
  float *held[2], *bias[2] = {NULL, NULL};
  for (int s = 0; s < 2; s++)
    UNICON_TRY(
        unit_columns(ctx, z->held[s], v->side[s].count, z->r, rank, scale[s], width, &held[s]));
  if (balanced) UNICON_TRY(make_banks(ctx, v, z, rank, scale, how, &balance));
  for (int s = 0; s < 2 && balanced; s++) {
    UNICON_NEW(ctx, bias[s], v->side[s].count);
    UNICON_TRY(unicon__bias(ctx, &balance, s, held[s], v->side[s].count, width, bias[s], 1));
  }
  *score = 0;
  for (int s = 0; s < 2; s++) { /* queries of side s */
    unicon_metrics metrics;
    double margin;
    if (balanced) {
      set_column(held[s], v->side[s].count, rank, NULL);
      set_column(held[1 - s], v->side[1 - s].count, rank, bias[1 - s]);
    }
    const unicon__retrieval of = {.query = held[s],
                                  .candidate = held[1 - s],
                                  .width = width,
                                  .pairs = v->pairs,
                                  .from_x = s == 0,
                                  .margin = &margin};
    UNICON_TRY(unicon__retrieval_of(ctx, &of, &metrics));
    *score += (metrics.value[UNICON_MRR] + metrics.value[UNICON_HIT_10]) / 4 + 5e-7 * margin;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__validation_score(unicon_ctx *ctx, const unicon__validation *v,
                                       const float *const f[2], int64_t r, double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__embedded z;
  UNICON_TRY(unicon__validation_embed(ctx, v, f, r, &z));
  UNICON_TRY(unicon__validation_judge(ctx, v, &z, r, as_it_is, v->balance, score));
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}
