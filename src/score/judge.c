/* SPDX-License-Identifier: Apache-2.0 */
#include "score/judge.h"

#include "score/ranks_device.h"
#include "score/retrieval.h"

enum { HELD = 0, BANK = 2 };

/* ---- lists -------------------------------------------------------------------------------- */

static unicon__partners matches(const unicon_pairs *pairs, int d, int64_t i) {
  return d == 0 ? unicon__positives_x(pairs, i) : unicon__positives_y(pairs, i);
}

static unicon__partners ignored(const unicon_pairs *pairs, int d, int64_t i) {
  return unicon__list_at(d == 0 ? &pairs->ignore.by_x : &pairs->ignore.by_y, i);
}

/* Matches of a query, and these with the ignored ones: two ascending lists made one. */
static void fill_query(const unicon_pairs *pairs, unicon__judge *j, int d, int64_t i) {
  const unicon__partners p = matches(pairs, d, i), other = ignored(pairs, d, i);
  int64_t *match = j->match[d] + j->start[d][i], *to = j->hidden[d] + j->hidden_start[d][i];
  int64_t k = 0, l = 0;
  for (; k < p.count; k++) match[k] = unicon__partner(p, k);
  for (k = 0; p.count > 0 && (k < p.count || l < other.count);)
    *to++ = l == other.count || (k < p.count && match[k] < other.item[l]) ? match[k++]
                                                                          : other.item[l++];
}

static unicon_status open_lists(unicon_ctx *ctx, const unicon_pairs *pairs, unicon__judge *j,
                                int d) {
  const int64_t n = d == 0 ? pairs->n_x : pairs->n_y, m = d == 0 ? pairs->n_y : pairs->n_x;
  UNICON_NEW(ctx, j->start[d], n + 1);
  UNICON_NEW(ctx, j->hidden_start[d], n + 1);
  UNICON_NEW(ctx, j->self[d], n);
  UNICON_NEW(ctx, j->count[d], n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t count = matches(pairs, d, i).count;
    const int64_t hidden = count + ignored(pairs, d, i).count;
    j->self[d][i] = d == 0 ? unicon__self_x(pairs, i) : unicon__self_y(pairs, i);
    j->start[d][i + 1] = j->start[d][i] + count;
    j->hidden_start[d][i + 1] = j->hidden_start[d][i] + (count > 0 ? hidden : 0);
    j->count[d][i] = m - hidden - (j->self[d][i] >= 0);
  }
  UNICON_NEW(ctx, j->match[d], j->start[d][n]);
  UNICON_NEW(ctx, j->hidden[d], j->hidden_start[d][n]);
  for (int64_t i = 0; i < n; i++) fill_query(pairs, j, d, i);
  return UNICON_OK;
}

/* ---- opening ------------------------------------------------------------------------------ */

static unicon__source *source_of(unicon__validation *v, int k) {
  return k < BANK ? &v->side[k] : &v->bank[k - BANK];
}

static unicon_status keep_all(unicon_ctx *ctx, unicon__validation *v, unicon__judge *j) {
  for (int k = 0; k < 4; k++) {
    unicon__source *source = source_of(v, k);
    if (unicon__is_kept(source) || source->count == 0) continue;
    UNICON_TRY(unicon__keep_rows(ctx, &ctx->arena, source, &j->kept[k]));
    j->on = j->on && unicon__is_kept(source);
  }
  return UNICON_OK;
}

/* Pairs as entries of lists: those of labels have none, and may be many. */
static double pairs_of(const unicon_pairs *pairs) {
  double count = (double)pairs->ignore.count;
  for (int64_t i = 0; i < pairs->n_x; i++) count += (double)unicon__positives_x(pairs, i).count;
  return count;
}

unicon_status unicon__judge_open(unicon_ctx *ctx, unicon__validation *v, unicon__judge *out) {
  const double width = (double)v->side[0].map->out + (double)v->side[1].map->out;
  const double flops = ((double)v->side[0].count + (double)v->side[1].count) * width * 64;
  *out = (unicon__judge){.ctx = ctx};
  if (!unicon__device_serves(ctx, judge, flops) || !unicon__device_serves(ctx, embed, flops) ||
      !unicon__device_serves(ctx, gather, flops) || !unicon__device_serves(ctx, features, flops) ||
      !unicon__device_lists(ctx, 64 * pairs_of(v->pairs)))
    return UNICON_OK;
  out->on = true;
  UNICON_TRY(keep_all(ctx, v, out));
  for (int d = 0; d < 2 && out->on; d++) UNICON_TRY(open_lists(ctx, v->pairs, out, d));
  if (!out->on) unicon__judge_close(out);
  return UNICON_OK;
}

void unicon__judge_close(unicon__judge *judge) {
  for (int k = 0; k < 4; k++) unicon__kept_close(&judge->kept[k]);
  if (judge->ctx && judge->room.count > 0) unicon__device_close(judge->ctx, &judge->room);
  judge->on = false;
}

/* ---- roads -------------------------------------------------------------------------------- */

/* Room for embeddings of r columns. */
static unicon_status open_embeddings(unicon_ctx *ctx, const unicon__validation *v, int64_t r,
                                     unicon__judge *j) {
  if (j->r == r && j->room.count > 0) return UNICON_OK;
  unicon__device_close(ctx, &j->room);
  j->r = 0;
  for (int k = 0; k < 4; k++) {
    const int64_t n = k < BANK ? v->side[k].count : v->bank[k - BANK].count;
    j->z[k] = NULL;
    if (n > 0) UNICON_TRY(unicon__device_new(ctx, &j->room, n, r, UNICON__ELEMENT_F32, &j->z[k]));
  }
  j->r = r;
  return UNICON_OK;
}

static unicon_status embed_rows(unicon_ctx *ctx, unicon__device_room *room,
                                const unicon__source *source, const unicon__matrix *f,
                                unicon__matrix *z) {
  const int64_t n = source->count;
  const unicon__matrix *phi;
  unicon__feed feed;
  int64_t at;
  if (n == 0) return UNICON_OK;
  const int64_t block = unicon__feed_rows(ctx, source, n, 4.0 * (double)source->map->out, 0.5);
  unicon__block *frame = unicon__frame_open(ctx);
  UNICON_TRY(unicon__feed_open(ctx, room, source, block, &feed));
  for (int64_t first = 0; first < n; first += block) {
    const int64_t count = n - first < block ? n - first : block;
    UNICON_TRY(unicon__feed_block(ctx, &feed, NULL, first, count, &phi, &at));
    UNICON_TRY(unicon__on(ctx, embed, phi, at, count, f, 0, z, first));
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__judge_embed(unicon_ctx *ctx, unicon__device_room *room,
                                  const unicon__validation *v, unicon__judge *j,
                                  unicon__matrix *const f[2], int64_t r) {
  const int before = room->count;
  UNICON_TRY(open_embeddings(ctx, v, r, j));
  for (int k = 0; k < 4; k++) {
    UNICON_TRY(
        embed_rows(ctx, room, k < BANK ? &v->side[k] : &v->bank[k - BANK], f[k % BANK], j->z[k]));
    while (room->count > before)
      ctx->where.table->matrix_free(ctx->where.device, room->matrix[--room->count]);
  }
  return UNICON_OK;
}

/* What a direction is counted with and where the counts go. */
static unicon_status open_direction(unicon_ctx *ctx, const unicon__validation *v,
                                    const unicon__judge *j, int d, unicon__device_sparse *hidden,
                                    unicon__ranks_job *job, unicon__device_judge *asked) {
  const int64_t n = d == 0 ? v->pairs->n_x : v->pairs->n_y, count = j->start[d][n];
  *job = (unicon__ranks_job){.pairs = v->pairs,
                             .from_x = d == 0,
                             .queries = n,
                             .candidates = d == 0 ? v->pairs->n_y : v->pairs->n_x,
                             .others = true,
                             .start = j->start[d],
                             .count = j->count[d]};
  UNICON_NEW(ctx, job->threshold, count);
  UNICON_NEW(ctx, job->above, count);
  UNICON_NEW(ctx, job->top, n);
  UNICON_NEW(ctx, job->sum, n);
  *hidden = (unicon__device_sparse){n, j->hidden_start[d], j->hidden[d], NULL};
  asked->match[d] = j->match[d];
  asked->self[d] = j->self[d];
  asked->threshold[d] = job->threshold;
  asked->of[d] = (unicon__device_ranks){.start = j->start[d],
                                        .threshold = job->threshold,
                                        .hidden = hidden,
                                        .above = job->above,
                                        .top = job->top,
                                        .sum = job->sum};
  return UNICON_OK;
}

unicon_status unicon__judge_score(unicon_ctx *ctx, const unicon__validation *v,
                                  const unicon__judge *j, int64_t rank,
                                  const double *const scale[2], unicon__balancing how,
                                  double *score) {
  unicon__block *frame = unicon__frame_open(ctx);
  const bool balanced = how.kind != UNICON__BALANCE_OFF && j->z[BANK] && j->z[BANK + 1];
  const bool csls = how.kind == UNICON__BALANCE_CSLS;
  unicon__device_judge asked = {.held = {j->z[HELD], j->z[HELD + 1]},
                                .rank = rank,
                                .scale = {scale[0], scale[1]},
                                .form = csls ? UNICON__DEVICE_CSLS : UNICON__DEVICE_SOFTMAX,
                                .strength = how.strength};
  unicon__device_sparse hidden[2];
  unicon__ranks_job job[2];
  for (int s = 0; s < 2 && balanced; s++) asked.bank[s] = j->z[BANK + s];
  for (int d = 0; d < 2; d++) UNICON_TRY(open_direction(ctx, v, j, d, &hidden[d], &job[d], &asked));
  const int stage = unicon__stage_begin(ctx, "metrics", 0);
  UNICON_TRY(unicon__on(ctx, judge, &asked));
  unicon__stage_end(ctx, stage);
  *score = 0;
  for (int d = 0; d < 2; d++)
    for (int64_t k = 0; k < j->start[d][d == 0 ? v->pairs->n_x : v->pairs->n_y]; k++)
      if (isnan(
              job[d].threshold[k])) { /* no score is at or above it: it would be the best of all */
        unicon__frame_close(ctx, frame);
        return UNICON_OK;
      }
  for (int d = 0; d < 2; d++) {
    unicon__metrics metrics;
    double margin;
    UNICON_TRY(unicon__retrieval_counted(ctx, &job[d], &margin, &metrics));
    *score += (metrics.value[UNICON__MRR] + metrics.value[UNICON__HIT_10]) / 4 + 5e-7 * margin;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

typedef struct taking {
  const unicon__validation *v;
  unicon__judge *judge;
  const float *const *f;
  const double *const *scale;
  int64_t r;
  unicon__balancing how;
  double score;
} taking;

static unicon_status take_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  const taking *t = state;
  unicon__matrix *f[2];
  for (int s = 0; s < 2; s++)
    UNICON_TRY(unicon__device_copy(ctx, room, t->f[s], t->v->side[s].map->out, t->r, t->r, &f[s]));
  const int stage = unicon__stage_begin(ctx, "embed", 0);
  UNICON_TRY(unicon__judge_embed(ctx, room, t->v, t->judge, f, t->r));
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

static unicon_status tell_road(unicon_ctx *ctx, void *state, unicon__device_room *room) {
  taking *t = state;
  (void)room;
  return unicon__judge_score(ctx, t->v, t->judge, t->r, t->scale, t->how, &t->score);
}

unicon_status unicon__judge_take(unicon_ctx *ctx, const unicon__validation *v, unicon__judge *judge,
                                 const float *const f[2], int64_t r, bool *done) {
  taking t = {.v = v, .judge = judge, .f = f, .r = r};
  *done = false;
  if (!judge->on) return UNICON_OK;
  UNICON_TRY(unicon__device_run(ctx, "embed", take_road, &t, done));
  if (!*done) unicon__judge_close(judge);
  return UNICON_OK;
}

unicon_status unicon__judge_tell(unicon_ctx *ctx, const unicon__validation *v, unicon__judge *judge,
                                 int64_t rank, const double *const scale[2], unicon__balancing how,
                                 double *score, bool *done) {
  taking t = {.v = v, .judge = judge, .scale = scale, .r = rank, .how = how};
  *done = false;
  if (!judge->on) return UNICON_OK;
  UNICON_TRY(unicon__device_run(ctx, "metrics", tell_road, &t, done));
  if (!*done) unicon__judge_close(judge);
  *score = t.score;
  return UNICON_OK;
}

unicon_status unicon__judged(unicon_ctx *ctx, const unicon__validation *v, const float *const f[2],
                             int64_t r, double *score) {
  static const double *const as_it_is[2] = {NULL, NULL};
  bool done = false;
  if (v->judge) UNICON_TRY(unicon__judge_take(ctx, v, v->judge, f, r, &done));
  if (done) UNICON_TRY(unicon__judge_tell(ctx, v, v->judge, r, as_it_is, v->balance, score, &done));
  return done ? UNICON_OK : unicon__validation_score(ctx, v, f, r, score);
}
