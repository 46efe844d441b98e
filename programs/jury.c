/* SPDX-License-Identifier: Apache-2.0 */
#include "jury.h"

#include <math.h>
#include <stdlib.h>

/* ---- how well a candidate does ------------------------------------------------------------ */

unicon_status jury_judge(const jury *j, const fitted *f, const unicon_data *rows,
                         const unicon_options *options, bool loud, unicon_result **out) {
  const unicon_view x = UNICON_VIEW(.rows = rows->x, .model = f->model, .side = UNICON_X,
                                    .balance = f->balance),
                    y = UNICON_VIEW(.rows = rows->y, .model = f->model, .side = UNICON_Y,
                                    .balance = f->balance);
  if (!loud) unicon_ctx_set_log(j->ctx, NULL, NULL);
  const unicon_status status = unicon_evaluate(j->ctx, &x, &y, rows->pairs, options, out);
  unicon_ctx_set_log(j->ctx, display_log, j->display);
  return status;
}

/* The score by which the library, too, compares candidates. */
static double score_of(const unicon_result *r, scoring by) {
  static const char *const folder[SCORINGS][2] = {
      [PLAIN] = {"x_to_y.plain", "y_to_x.plain"}, [BALANCED] = {"x_to_y", "y_to_x"}};
  double sum = 0;
  for (int k = 0; k < 2; k++)
    sum += display_number(r, folder[by][k], "mrr") + display_number(r, folder[by][k], "hit@10");
  return sum / 4;
}

unicon_status jury_held(const jury *j, const fitted *f, double score[SCORINGS]) {
  unicon_result *r = NULL;
  const unicon_status status = jury_judge(j, f, &j->data->validation, NULL, false, &r);
  for (int by = 0; by < SCORINGS && status == UNICON_OK; by++) score[by] = score_of(r, (scoring)by);
  unicon_result_destroy(r);
  return status;
}

/* ---- the strength of balance -------------------------------------------------------------- */

/* What unicon_fit tries as well where it is given validation pairs. */
static const char *const strengths[] = {"off", "softmax:5", "softmax:10", "softmax:15",
                                        "softmax:20"};

static unicon_status make_balance(const jury *j, const unicon_model *model,
                                  const unicon_rows *const bank[2], const char *how,
                                  unicon_balance **out) {
  unicon_options *options = NULL;
  unicon_status status = unicon_options_create(j->ctx, &options);
  if (status == UNICON_OK) status = unicon_options_set(j->ctx, options, "balance", how);
  if (status == UNICON_OK)
    status = unicon_balance_create(j->ctx, model, options, bank[0], bank[1], out);
  unicon_options_destroy(options);
  return status;
}

unicon_status jury_choose(const jury *j, const unicon_rows *const bank[2], fitted *f,
                          const char **how) {
  unicon_status status = UNICON_OK;
  double best = -1;
  for (size_t k = 0; k < sizeof strengths / sizeof *strengths && status == UNICON_OK; k++) {
    fitted now = {.model = f->model};
    double score[SCORINGS] = {0, 0};
    status = make_balance(j, f->model, bank, strengths[k], &now.balance);
    if (status == UNICON_OK) status = jury_held(j, &now, score);
    const bool better = status == UNICON_OK && score[BALANCED] > best;
    unicon_balance_destroy(better ? f->balance : now.balance);
    if (!better) continue;
    f->balance = now.balance;
    best = score[BALANCED];
    *how = strengths[k];
  }
  return status;
}

enum { BANK_LEAST = 16 }; /* as in unicon_balance_create */

static bool is_usable(const float *row, int64_t width) {
  double square = 0;
  for (int64_t k = 0; k < width; k++) square += (double)row[k] * (double)row[k];
  return isfinite(square) && square > 0;
}

/* Training rows of a side that have a pair, evenly spread, as a bank. *out stays NULL where there
 * are too few; `data` is to be freed. */
static unicon_status read_bank(const jury *j, int side, float **data, unicon_rows **out) {
  const unicon_data *train = &j->data->train;
  const unicon_rows *rows = side == 0 ? train->x : train->y;
  const unicon_side of = side == 0 ? UNICON_X : UNICON_Y;
  const int64_t n = unicon_rows_count(rows), width = unicon_rows_width(rows);
  const int64_t most = strtoll(unicon_options_get(NULL, "balance_bank"), NULL, 10);
  const int64_t wanted = n < most ? n : most;
  int64_t count = 0;
  unicon_status status = UNICON_OK;
  *data = calloc((size_t)wanted + 1, (size_t)width * sizeof **data);
  if (!*data) return UNICON_ERR_MEMORY;
  for (int64_t k = 0; k < wanted && status == UNICON_OK; k++) {
    const int64_t row = k * n / wanted;
    if (unicon_pairs_partners(train->pairs, of, row, 0, NULL) == 0) continue;
    status = unicon_rows_read(j->ctx, rows, row, 1, *data + count * width);
    count += status == UNICON_OK && is_usable(*data + count * width, width);
  }
  if (status != UNICON_OK || count < BANK_LEAST) return status;
  return unicon_rows_wrap(j->ctx, side == 0 ? "bank of x" : "bank of y", *data, UNICON_F32, count,
                          width, width * (int64_t)sizeof(float), sizeof(float), out);
}

unicon_status jury_balance_rows(const jury *j, fitted *f, const char **how) {
  unicon_rows *bank[2] = {NULL, NULL};
  float *data[2] = {NULL, NULL};
  unicon_status status = read_bank(j, 0, &data[0], &bank[0]);
  if (status == UNICON_OK) status = read_bank(j, 1, &data[1], &bank[1]);
  if (status == UNICON_OK && bank[0] && bank[1])
    status = jury_choose(j, (const unicon_rows *const[2]){bank[0], bank[1]}, f, how);
  for (int side = 0; side < 2; side++) {
    unicon_rows_close(bank[side]);
    free(data[side]);
  }
  return status;
}
