/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_classify: every row gets the class whose vector has the largest score with it: the
 * cosine, less the bias of the class where scores are balanced. The place
 * of the true class c is
 *     1 + #{classes j != c : s_j >= s_c}
 * so a tie counts against us, and a row that ties is given the other class. Tiles of float32
 * products decide all but the near ties, which are scored again in float64. Rows stream by in
 * blocks: 2 rows classes r flops, memory (classes + block) by r. */
#include <math.h>

#include "io/object.h"
#include "io/result.h"
#include "model/embed.h"
#include "linalg/blas.h"
#include "linalg/vec.h"
#include "unicon/tools.h"

enum {
  BLOCK_ROWS = 8192, /* embedded at a time, so that memory is bounded */
  TILE_ROWS = 128,
  TILE_CLASSES = 1024, /* 512 KiB of scores, in the cache of a core */
  TOP = 5              /* answers: accuracy@5 is what papers give */
};

typedef struct zero_shot {
  const int64_t *label; /* of the rows of this block */
  int64_t rows, classes, r;
  double margin;      /* error of a float32 product, at most */
  float *z, *class_z; /* unit rows, with 1 and minus the bias behind where balanced */
  float *scores;      /* per worker: TILE_ROWS by TILE_CLASSES */
  int64_t *ahead;     /* per row of the block: classes at least as close as the true one */
  int64_t *other;     /* the closest of the others, -1: there is none */
} zero_shot;

/* What is known of a row while its classes pass by. */
typedef struct standing {
  double truth; /* exact score of the true class */
  double best;  /* exact score of the best other one */
  int64_t ahead, other;
} standing;

static double exact(const zero_shot *g, int64_t row, int64_t class) {
  return unicon__vec_best()->dot(g->z + row * g->r, g->class_z + class * g->r, g->r);
}

/* Classes first .. first+count-1 of one row. */
static void look(const zero_shot *g, int64_t row, int64_t first, int64_t count, const float *scores,
                 standing *s) {
  for (int64_t j = 0; j < count; j++) {
    const double score = (double)scores[j];
    /* asked so that a product beyond float32 is near and better */
    const bool near = !(fabs(score - s->truth) > g->margin);
    const bool better = !(score < s->best - g->margin);
    if (first + j == g->label[row] || (score < s->truth && !near && !better)) continue;
    const double sure = near || better ? exact(g, row, first + j) : score;
    s->ahead += sure >= s->truth;
    if (better && sure > s->best) { /* classes come in order: of equals the first stays */
      s->best = sure;
      s->other = first + j;
    }
  }
}

static void classify_tile(void *state, unicon__cell cell) {
  const zero_shot *g = state;
  const int64_t first = cell.row * TILE_ROWS, left = g->rows - first;
  const int64_t rows = left < TILE_ROWS ? left : TILE_ROWS;
  float *scores = g->scores + cell.worker * TILE_ROWS * TILE_CLASSES;
  standing now[TILE_ROWS];
  for (int64_t i = 0; i < rows; i++)
    now[i] = (standing){exact(g, first + i, g->label[first + i]), -INFINITY, 0, -1};
  for (int64_t from = 0; from < g->classes; from += TILE_CLASSES) {
    const int64_t cols = g->classes - from < TILE_CLASSES ? g->classes - from : TILE_CLASSES;
    unicon__sgemm(false, true, rows, cols, g->r, 1, g->z + first * g->r, g->r,
                  g->class_z + from * g->r, g->r, 0, scores, TILE_CLASSES);
    for (int64_t i = 0; i < rows; i++)
      look(g, first + i, from, cols, scores + i * TILE_CLASSES, &now[i]);
  }
  for (int64_t i = 0; i < rows; i++) {
    g->ahead[first + i] = now[i].ahead;
    g->other[first + i] = now[i].other;
  }
}

typedef struct tally {
  int64_t *rows, *right; /* of each class */
  int64_t *confusion;    /* classes by classes: rows of class a that were given class b; or NULL */
  int64_t correct, in_top;
} tally;

static void count_block(const zero_shot *g, int64_t *answer, tally *t) {
  for (int64_t i = 0; i < g->rows; i++) {
    const int64_t truth = g->label[i], given = g->ahead[i] == 0 ? truth : g->other[i];
    t->rows[truth]++;
    t->right[truth] += given == truth;
    t->correct += given == truth;
    t->in_top += g->ahead[i] < TOP;
    if (answer) answer[i] = given;
    if (t->confusion) t->confusion[truth * g->classes + given]++;
  }
}

/* The mean, over the classes that have rows, of the share that was answered rightly. */
static double mean_accuracy(const tally *t, int64_t classes) {
  double sum = 0;
  int64_t used = 0;
  for (int64_t c = 0; c < classes; c++) {
    if (t->rows[c] == 0) continue;
    sum += (double)t->right[c] / (double)t->rows[c];
    used++;
  }
  return sum / (double)used;
}

static unicon_status summarize(unicon_ctx *ctx, const tally *t, int64_t rows, int64_t classes,
                               unicon_result **out) {
  unicon_result *r = unicon__result_new(ctx);
  unicon__result_real(ctx, r, "accuracy", (double)t->correct / (double)rows);
  unicon__result_real(ctx, r, "top5", (double)t->in_top / (double)rows);
  unicon__result_real(ctx, r, "mean_class_accuracy", mean_accuracy(t, classes));
  unicon__result_real(ctx, r, "chance", 1 / (double)classes);
  unicon__result_integer(ctx, r, "rows", rows);
  unicon__result_integer(ctx, r, "classes", classes);
  if (t->confusion) unicon__result_integers(ctx, r, "confusion", t->confusion, classes, classes);
  return unicon__result_done(r, out);
}

static unicon_status check(unicon_ctx *ctx, const unicon__lens *rows, const unicon__lens *classes,
                           const int64_t *label) {
  if (rows->count < 1 || classes->count < 1)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s has no rows",
                        rows->count < 1 ? rows->rows->name : classes->rows->name);
  for (int64_t i = 0; i < rows->count; i++)
    if (label[i] < 0 || label[i] >= classes->count)
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "row %lld has the label %lld; there are %lld classes, from 0 on",
                          (long long)i, (long long)label[i], (long long)classes->count);
  return UNICON_OK;
}

/* Room for a block of rows and for what is counted. */
static unicon_status make_room(unicon_ctx *ctx, int64_t block, zero_shot *g, tally *t) {
  const int64_t tiles = (block + TILE_ROWS - 1) / TILE_ROWS;
  UNICON_NEW(ctx, g->z, block * g->r);
  UNICON_NEW(ctx, g->class_z, g->classes * g->r);
  UNICON_NEW(ctx, g->ahead, block);
  UNICON_NEW(ctx, g->other, block);
  UNICON_NEW(ctx, g->scores, unicon__workers_for(ctx, tiles) * TILE_ROWS * TILE_CLASSES);
  UNICON_NEW(ctx, t->rows, g->classes);
  UNICON_NEW(ctx, t->right, g->classes);
  if (g->classes <= UNICON__CONFUSION_MAX) UNICON_NEW(ctx, t->confusion, g->classes * g->classes);
  return UNICON_OK;
}

static unicon_status classify(unicon_ctx *ctx, const unicon_view *rows, const int64_t *label,
                              const unicon_view *classes, int64_t *answer, unicon_result **out) {
  unicon__lens lens, class_lens;
  unicon__meeting meeting;
  tally t = {.correct = 0};
  UNICON_NEED(ctx, label);
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__lens_open(ctx, rows, &lens));
  UNICON_TRY(unicon__lens_open(ctx, classes, &class_lens));
  UNICON_TRY(unicon__meet(ctx, &lens, &class_lens, &meeting));
  UNICON_TRY(check(ctx, &lens, &class_lens, label));
  const int64_t n = lens.count, block = n < BLOCK_ROWS ? n : BLOCK_ROWS;
  zero_shot g = {.classes = class_lens.count, .r = meeting.width};
  UNICON_TRY(make_room(ctx, block, &g, &t));
  UNICON_TRY(unicon__meeting_candidates(ctx, &meeting, 0, g.classes, g.class_z));
  const double length = unicon__lens_longest(&class_lens, g.class_z, g.classes, g.r);
  const int stage = unicon__stage_begin(ctx, "classify", 1);
  for (int64_t first = 0; first < n; first += block) {
    UNICON_TRY(unicon__stage_step(ctx, first / block, (n + block - 1) / block));
    g.rows = n - first < block ? n - first : block;
    g.label = label + first;
    UNICON_TRY(unicon__meeting_queries(ctx, &meeting, first, g.rows, g.z));
    g.margin = unicon__score_error(g.r, length * unicon__lens_longest(&lens, g.z, g.rows, g.r));
    UNICON_TRY(unicon__sweep_rows(ctx, NULL, &unicon__blas_region,
                                  (g.rows + TILE_ROWS - 1) / TILE_ROWS, classify_tile, &g));
    count_block(&g, answer ? answer + first : NULL, &t);
  }
  unicon__stage_end(ctx, stage);
  return summarize(ctx, &t, n, g.classes, out);
}

unicon_status unicon_classify(unicon_ctx *ctx, const unicon_view *rows, const int64_t *label,
                              const unicon_view *classes, int64_t *answer, unicon_result **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, classify(ctx, rows, label, classes, answer, out));
}
