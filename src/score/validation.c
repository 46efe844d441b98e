/* SPDX-License-Identifier: Apache-2.0 */
#include "score/validation.h"

#include <string.h>

#include "score/retrieval.h"
#include "features/project.h"

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

unicon_status unicon__validation_judge(unicon_ctx *ctx, const unicon__validation *v,
                                       const unicon__embedded *z, int64_t rank,
                                       const double *const scale[2], unicon__balancing how,
                                       double *score) {
  unicon__block *frame = unicon__frame_open(ctx);
  const bool balanced = how.kind != UNICON__BALANCE_OFF && z->bank[0] && z->bank[1];
  const int64_t width = rank + balanced;
  unicon_balance balance = {.how = how, .r = rank};
  if (how.kind == UNICON__BALANCE_QUADRATIC) balance.how.kind = UNICON__BALANCE_SOFTMAX;
  float *held[2], *bias[2] = {NULL, NULL};
  for (int s = 0; s < 2; s++) {
    float *bank;
    UNICON_TRY(
        unit_columns(ctx, z->held[s], v->side[s].count, z->r, rank, scale[s], width, &held[s]));
    if (!balanced) continue;
    UNICON_TRY(unit_columns(ctx, z->bank[s], v->bank[s].count, z->r, rank, scale[s], rank, &bank));
    unicon__bank_round(bank, v->bank[s].count * rank);
    balance.bank[s] = (unicon__bank){v->bank[s].count, bank};
  }
  for (int s = 0; s < 2 && balanced; s++) {
    UNICON_NEW(ctx, bias[s], v->side[s].count);
    UNICON_TRY(unicon__bias(ctx, &balance, s, held[s], v->side[s].count, width, bias[s], 1));
  }
  *score = 0;
  for (int s = 0; s < 2; s++) { /* queries of side s */
    unicon__metrics metrics;
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
    *score += (metrics.value[UNICON__MRR] + metrics.value[UNICON__HIT_10]) / 4 + 5e-7 * margin;
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
