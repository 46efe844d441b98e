/* SPDX-License-Identifier: Apache-2.0 */
#include "core/part.h"

#include <string.h>

#include "base/clock.h"
#include "linalg/blas.h"

double unicon__metric_power(const unicon_options *options) {
  const int word = unicon__word(options, UNICON__METRIC);
  return word == 0 ? 0 : word == 1 ? 0.5 : unicon__number(options, UNICON__METRIC);
}

void unicon__solve_params_from(const unicon_options *options, unicon__solve_params *out) {
  *out = (unicon__solve_params){
      .split = unicon__number(options, UNICON__SPLIT),
      .iterations = (int)unicon__integer(options, UNICON__ITERATIONS),
      .safe = unicon__word(options, UNICON__DAMPING) == 0,
      .svd = (unicon__svd_method)unicon__word(options, UNICON__SVD),
      .seed = (uint64_t)unicon__integer(options, UNICON__SEED),
  };
  unicon__loss_params_from(options, &out->loss);
}

unicon_status unicon__choose_rank(unicon_ctx *ctx, const unicon_options *options,
                                  const unicon__source *x, const unicon__source *y, int64_t *out) {
  const int64_t centred = unicon__word(options, UNICON__CENTER) == 0;
  int64_t most = x->map->out < y->map->out ? x->map->out : y->map->out;
  if (x->count - centred < most) most = x->count - centred;
  if (y->count - centred < most) most = y->count - centred;
  const bool automatic = unicon__word(options, UNICON__RANK) == 0;
  const int64_t asked = automatic ? 256 : unicon__integer(options, UNICON__RANK);
  if (asked > most && unicon__given(options, UNICON__RANK) && !automatic)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "rank is %lld, but %lld by %lld features of %lld and %lld rows allow at "
                        "most %lld",
                        (long long)asked, (long long)x->map->out, (long long)y->map->out,
                        (long long)x->count, (long long)y->count, (long long)most);
  *out = asked < most ? asked : most;
  return UNICON_OK;
}

/* A linear kernel on landmarks (d > n) is a linear map after all: F = base^T factor G, and the mean
 * is that of the rows themselves. The model then holds no training rows. */
static unicon_status fold_linear(unicon_ctx *ctx, const unicon__source *source, int64_t rank,
                                 unicon__arena *arena, unicon__map *map, float **weight) {
  if (map->kind == UNICON__MAP_LINEAR || map->kernel.kind != UNICON__KERNEL_LINEAR)
    return UNICON_OK;
  float *half, *folded, *mean = NULL;
  UNICON_NEW(ctx, half, map->points * rank);
  UNICON_ARENA_NEW(ctx, arena, folded, map->in * rank);
  unicon__sgemm(false, false, map->points, rank, map->out, 1, map->factor, map->out, *weight, rank,
                0, half, rank);
  unicon__sgemm(true, false, map->in, rank, map->points, 1, map->base, map->in, half, rank, 0,
                folded, rank);
  unicon__map linear = {.in = map->in, .out = map->in, .normalize = map->normalize};
  if (map->mean) {
    unicon__source plain = *source;
    plain.map = &linear;
    plain.cache = NULL;
    UNICON_ARENA_NEW(ctx, arena, mean, map->in);
    UNICON_TRY(unicon__feature_mean(ctx, &plain, mean));
  }
  linear.mean = mean;
  *map = linear;
  *weight = folded;
  unicon__drop(ctx, half);
  return UNICON_OK;
}

unicon_status unicon__part_store(unicon_ctx *ctx, unicon__arena *arena,
                                 const unicon__side side[2], const unicon__metric metric[2],
                                 const unicon__state *state, double split, unicon__part *part) {
  float *factor[2];
  unicon__blas_begin(ctx->threads);
  const unicon_status status = unicon__state_factors(ctx, state, &metric[0], &metric[1], split,
                                                     &factor[0], &factor[1]);
  unicon__blas_end(ctx->threads);
  UNICON_TRY(status);
  part->rank = state->r;
  part->share = 1;
  for (int s = 0; s < 2; s++) {
    const int64_t size = side[s].map.out * state->r;
    part->map[s] = side[s].map;
    UNICON_ARENA_NEW(ctx, arena, part->weight[s], size);
    memcpy(part->weight[s], factor[s], (size_t)size * sizeof **part->weight);
    UNICON_TRY(fold_linear(ctx, &side[s].source, state->r, arena, &part->map[s], &part->weight[s]));
  }
  return UNICON_OK;
}

static void log_phase(unicon_ctx *ctx, const char *phase, double *clock) {
  const double now = unicon__now();
  unicon__log(ctx, UNICON_LOG_DEBUG, "%s: %.3f s", phase, now - *clock);
  *clock = now;
}

static unicon_status solve(unicon_ctx *ctx, const unicon__part_job *job,
                           const unicon__side side[2], const unicon__metric metric[2],
                           const unicon__solve_params *params, unicon__state *state,
                           unicon__solve_log *log) {
  unicon__problem problem = {
      .whole = {.x = side[0].source, .y = side[1].source, .pairs = job->data.pairs}};
  unicon_status status = unicon__problem_cut(ctx, job->batch, params->seed, &problem);
  unicon__blas_begin(ctx->threads);
  if (status == UNICON_OK)
    status = unicon__solve(ctx, &problem, &metric[0], &metric[1], params, state, log);
  unicon__blas_end(ctx->threads);
  unicon__problem_close(&problem);
  return status;
}

unicon_status unicon__part_fit(unicon_ctx *ctx, const unicon__part_job *job, unicon__part *part,
                               unicon__solve_log *log) {
  const double power = unicon__metric_power(job->options);
  const double ridge = unicon__number(job->options, UNICON__RIDGE);
  double clock = unicon__now();
  unicon__solve_params params;
  unicon__state state;
  unicon__side side[2];
  unicon__metric metric[2];
  unicon__solve_params_from(job->options, &params);
  for (int s = 0; s < 2; s++) {
    const unicon__side_plan plan = {job->options,   s, job->landmark[s],
                                    job->landmarks, power > 0, params.iterations > 0};
    UNICON_TRY(unicon__side_fit(ctx, job->arena, &plan, s == 0 ? &job->data.x : &job->data.y,
                                &side[s]));
    UNICON_TRY(unicon__side_metric(ctx, &side[s], power, ridge, &metric[s]));
  }
  UNICON_TRY(unicon__choose_rank(ctx, job->options, &side[0].source, &side[1].source, &params.rank));
  log_phase(ctx, "maps and metric", &clock);
  UNICON_TRY(solve(ctx, job, side, metric, &params, &state, log));
  log_phase(ctx, "solved", &clock);
  return unicon__part_store(ctx, job->arena, side, metric, &state, params.split, part);
}
