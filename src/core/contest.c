/* SPDX-License-Identifier: Apache-2.0 */
#include "core/contest.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "core/moment.h"
#include "linalg/blas.h"
#include "linalg/tiled.h"

static const double signal_floor = 1e-6; /* directions below this share of s_1 are noise */

/* Q_x C Q_y^T for eigenvectors by row. */
static unicon_status rotate(unicon_ctx *ctx, const unicon__contest *c, const double *cross,
                            double *out) {
  const int64_t p_x = c->side[0].map.out, p_y = c->side[1].map.out;
  double *half;
  UNICON_NEW(ctx, half, p_x * p_y);
  unicon__tiled_dgemm(ctx, false, false, p_x, p_y, p_x, 1, c->side[0].vectors, p_x, cross, p_y, 0,
                      half, p_y);
  unicon__tiled_dgemm(ctx, false, true, p_x, p_y, p_y, 1, half, p_y, c->side[1].vectors, p_y, 0,
                      out, p_y);
  unicon__drop(ctx, half);
  return UNICON_OK;
}

/* Held-out features times Q^T, block by block. */
static unicon_status rotate_held(unicon_ctx *ctx, const unicon__source *source,
                                 const double *vectors, float **out) {
  enum { ROWS = 512 };
  const int64_t p = source->map->out;
  float *q, *buffer;
  UNICON_NEW(ctx, *out, source->count * p);
  UNICON_NEW(ctx, q, p * p);
  UNICON_NEW(ctx, buffer, ROWS * unicon__map_room(source->map));
  for (int64_t k = 0; k < p * p; k++) q[k] = (float)vectors[k];
  for (int64_t first = 0; first < source->count; first += ROWS) {
    const int64_t count = source->count - first < ROWS ? source->count - first : ROWS;
    const float *rows = unicon__source_tile(source, NULL, first, count, buffer);
    unicon__tiled_sgemm(ctx, false, true, count, p, p, 1, rows, p, q, p, 0, *out + first * p, p);
  }
  unicon__drop(ctx, buffer);
  unicon__drop(ctx, q);
  return UNICON_OK;
}

/* 32, 64, ... up to what is allowed, or the one rank that was asked for. A part of the rows may
 * allow less than all of them; only where the contest makes the model itself that is an error. */
static unicon_status choose_ranks(unicon_ctx *ctx, int64_t most, bool final, unicon__contest *c) {
  const unicon__source *x = &c->side[0].source, *y = &c->side[1].source;
  const bool given = unicon__word(c->options, UNICON__RANK) != 0;
  const int64_t allowed = unicon__most_rank(c->options, x, y);
  int64_t rank = given ? unicon__asked_rank(c->options) : most;
  if (given && final) UNICON_TRY(unicon__choose_rank(ctx, c->options, x, y, &rank));
  if (rank > allowed) rank = allowed;
  c->ranks = 0;
  for (int64_t r = 32; r < rank && !given && c->ranks < UNICON__CONTEST_RANKS - 1; r *= 2)
    c->rank[c->ranks++] = r;
  c->rank[c->ranks++] = rank;
  return UNICON_OK;
}

/* Room for the basis that settings hand on, and normals as its first value; none where the dense
 * SVD is cheap. */
static unicon_status open_start(unicon_ctx *ctx, unicon__contest *c) {
  const int64_t p_x = c->side[0].map.out, p_y = c->side[1].map.out;
  const int64_t small = p_x < p_y ? p_x : p_y, rank = c->rank[c->ranks - 1];
  const int64_t w = rank + rank / 4 + 16;
  if (small <= 400 || 2 * w > small) return UNICON_OK;
  float *row;
  UNICON_NEW(ctx, c->start, p_y * w);
  UNICON_NEW(ctx, row, w);
  for (int64_t j = 0; j < p_y; j++) {
    unicon__normals((uint64_t)unicon__integer(c->options, UNICON__SEED), UNICON__STREAM_SKETCH,
                    (uint64_t)j, w, row);
    for (int64_t k = 0; k < w; k++) c->start[j * w + k] = (double)row[k];
  }
  c->start_width = w;
  unicon__drop(ctx, row);
  return UNICON_OK;
}

static unicon_status open_shared(unicon_ctx *ctx, unicon__contest *c) {
  const int64_t p_x = c->side[0].map.out, p_y = c->side[1].map.out;
  double *cross;
  for (int s = 0; s < 2; s++) {
    unicon__side *side = &c->side[s];
    UNICON_TRY(unicon__progress(ctx, "eigenvectors", s / 2.0));
    UNICON_TRY(unicon__eigen(ctx, side->sigma, side->map.out, &side->vectors, &side->values));
    unicon__drop(ctx, side->sigma);
    side->sigma = NULL;
  }
  UNICON_NEW(ctx, cross, p_x * p_y);
  UNICON_NEW(ctx, c->rotated, p_x * p_y);
  const bool centred = c->side[0].map.mean && c->side[1].map.mean;
  UNICON_TRY(unicon__moment_cross(ctx, c->train.pairs, &c->side[0].source, &c->side[1].source,
                                  centred, cross));
  UNICON_TRY(rotate(ctx, c, cross, c->rotated));
  unicon__drop(ctx, cross);
  UNICON_TRY(rotate_held(ctx, &c->judge.x, c->side[0].vectors, &c->held[0]));
  return rotate_held(ctx, &c->judge.y, c->side[1].vectors, &c->held[1]);
}

unicon_status unicon__contest_open(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon_options *options, const unicon__batch *train,
                                   const unicon__judge *held, int64_t most, bool final,
                                   unicon__contest *out) {
  *out = (unicon__contest){.options = options, .train = *train};
  for (int s = 0; s < 2; s++) {
    const unicon__side_plan plan = {
        .options = options, .number = s, .covariance = true, .cache = true};
    UNICON_TRY(unicon__side_fit(ctx, arena, &plan, s == 0 ? &train->x : &train->y, &out->side[s]));
  }
  out->train.x = out->side[0].source;
  out->train.y = out->side[1].source;
  UNICON_TRY(unicon__judge_through(ctx, held, out->side, &out->judge));
  UNICON_TRY(choose_ranks(ctx, most, final, out));
  UNICON_TRY(open_start(ctx, out));
  unicon__blas_begin();
  const unicon_status status = open_shared(ctx, out);
  unicon__blas_end();
  return status;
}

/* The metric of a side at `power`, or at its own where the user gave one. */
static unicon_status contest_metric(unicon_ctx *ctx, const unicon__contest *c, int s, double power,
                                    double ridge, unicon__metric *out) {
  const unicon__side *side = &c->side[s];
  return unicon__metric_from_eigen(ctx, side->vectors, side->values, side->map.out,
                                   unicon__side_power(c->options, s, power), ridge, out);
}

/* M of the setting in eigenvector coordinates. */
static unicon_status setting_matrix(unicon_ctx *ctx, const unicon__contest *c,
                                    const double *scale_x, const double *scale_y, double **out) {
  const int64_t p_x = c->side[0].map.out, p_y = c->side[1].map.out;
  double *m;
  UNICON_NEW(ctx, m, p_x * p_y);
  *out = m;
  for (int64_t i = 0; i < p_x; i++)
    for (int64_t j = 0; j < p_y; j++)
      m[i * p_y + j] = scale_x[i] * c->rotated[i * p_y + j] * scale_y[j];
  return UNICON_OK;
}

/* The rank-r SVD of a setting, in full. */
static unicon_status decompose(unicon_ctx *ctx, const unicon__contest *c, const double *scale_x,
                               const double *scale_y, int64_t rank, unicon__svd *svd) {
  double *m = NULL;
  UNICON_TRY(setting_matrix(ctx, c, scale_x, scale_y, &m));
  return unicon__svd_top(ctx, m, c->side[0].map.out, c->side[1].map.out, rank,
                         (unicon__svd_method)unicon__word(c->options, UNICON__SVD),
                         (uint64_t)unicon__integer(c->options, UNICON__SEED), svd);
}

/* The same well enough for a score: two rounds of subspace iteration from the setting before. */
static unicon_status decompose_roughly(unicon_ctx *ctx, unicon__contest *c, const double *scale_x,
                                       const double *scale_y, int64_t rank, unicon__svd *svd) {
  const int64_t p_x = c->side[0].map.out, p_y = c->side[1].map.out, w = c->start_width;
  const int rounds = c->warm ? 2 : 5;
  double *m = NULL;
  if (!c->start) return decompose(ctx, c, scale_x, scale_y, rank, svd);
  UNICON_TRY(setting_matrix(ctx, c, scale_x, scale_y, &m));
  c->warm = true;
  return unicon__svd_warm(ctx, m, p_x, p_y, rank, c->start, w, rounds, svd);
}

/* Directions that carry signal. */
static int64_t signal_rank(const unicon__svd *svd) {
  int64_t r = 0;
  while (r < svd->r && svd->s[r] > signal_floor * svd->s[0]) r++;
  return r;
}

/* Held-out rows embedded: rotated features times diag(scale) basis s^power. */
static unicon_status embed_held(unicon_ctx *ctx, const float *features, int64_t n, int64_t p,
                                const double *scale, const double *basis, const unicon__svd *svd,
                                double power, float **z) {
  float *weight;
  UNICON_NEW(ctx, weight, p * svd->r);
  UNICON_NEW(ctx, *z, n * svd->r);
  for (int64_t i = 0; i < p; i++)
    for (int64_t k = 0; k < svd->r; k++)
      weight[i * svd->r + k] =
          (float)(scale[i] * basis[i * svd->r + k] * pow(svd->s[k] / svd->s[0], power));
  unicon__tiled_sgemm(ctx, false, false, n, svd->r, p, 1, features, p, weight, svd->r, 0, *z,
                      svd->r);
  return UNICON_OK;
}

static unicon_status score_setting(unicon_ctx *ctx, unicon__contest *c, double power, double ridge,
                                   double score[UNICON__CONTEST_RANKS]) {
  double exponent[2];
  const double *scale[2];
  float *zx, *zy;
  unicon__svd svd;
  unicon__powers_from(c->options, exponent);
  for (int s = 0; s < 2; s++) {
    unicon__metric metric;
    UNICON_TRY(contest_metric(ctx, c, s, power, ridge, &metric));
    scale[s] = metric.scale;
  }
  UNICON_TRY(decompose_roughly(ctx, c, scale[0], scale[1], c->rank[c->ranks - 1], &svd));
  if (!(svd.s[0] > 0)) return UNICON_OK;
  UNICON_TRY(embed_held(ctx, c->held[0], c->judge.x.count, svd.m, scale[0], svd.u, &svd,
                        exponent[0], &zx));
  UNICON_TRY(embed_held(ctx, c->held[1], c->judge.y.count, svd.n, scale[1], svd.v, &svd,
                        exponent[1], &zy));
  const int64_t signal = signal_rank(&svd);
  for (int k = 0; k < c->ranks; k++) {
    unicon_metrics metrics[2];
    const int64_t rank = c->rank[k] < signal ? c->rank[k] : signal;
    UNICON_TRY(unicon__judge_embedded(ctx, &c->judge, zx, zy, svd.r, rank, metrics));
    score[k] = unicon__score(metrics);
  }
  return UNICON_OK;
}

unicon_status unicon__contest_score(unicon_ctx *ctx, unicon__contest *contest, double power,
                                    double ridge, double score[UNICON__CONTEST_RANKS]) {
  unicon__block *frame = unicon__frame_open(ctx);
  memset(score, 0, UNICON__CONTEST_RANKS * sizeof *score);
  unicon__blas_begin();
  const unicon_status status = score_setting(ctx, contest, power, ridge, score);
  unicon__blas_end();
  UNICON_TRY(status);
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__contest_factors(unicon_ctx *ctx, const unicon__contest *contest, double power,
                                      double ridge, int64_t rank, unicon__metric metric[2],
                                      unicon__factors *factors, unicon__solve_log *log) {
  unicon__svd svd;
  for (int s = 0; s < 2; s++) /* another fold may have had more features */
    rank = rank < contest->side[s].map.out ? rank : contest->side[s].map.out;
  for (int s = 0; s < 2; s++) UNICON_TRY(contest_metric(ctx, contest, s, power, ridge, &metric[s]));
  unicon__blas_begin();
  const unicon_status status =
      decompose(ctx, contest, metric[0].scale, metric[1].scale, rank, &svd);
  unicon__blas_end();
  UNICON_TRY(status);
  if (!(svd.s[0] > 0))
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "the paired rows have no covariance at all, so there "
                        "is nothing to align");
  unicon__state state = {svd.m, svd.n, rank, svd.u, svd.s, svd.v};
  unicon__state_trim(&state, signal_rank(&svd));
  *log = (unicon__solve_log){.residual = svd.residual, .method = svd.method, .spectrum = svd.s};
  log->gap = svd.s[rank - 1] > 0 ? svd.next / svd.s[rank - 1] : 0;
  double exponent[2];
  unicon__powers_from(contest->options, exponent);
  return unicon__factors_of(ctx, &state, exponent, factors);
}
