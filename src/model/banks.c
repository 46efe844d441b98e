/* SPDX-License-Identifier: Apache-2.0 */
#include "model/banks.h"

#include <string.h>

#include "features/batch.h"
#include "features/dataset.h"
#include "features/project.h"
#include "io/object.h"

/* Enough rows for the 2r + 1 numbers of a quadratic form, several times over. */
enum { CURVE_ROWS = 16384 };

/* Fewer rows than this say little about a bias. */
enum { FEWEST_ROWS = 16 };

/* Up to `most` rows of a side, embedded as unit rows into new memory of `arena`. */
static unicon_status embed_drawn(unicon_ctx *ctx, unicon__arena *arena,
                                 const unicon__bank_plan *plan, const unicon_model *model, int side,
                                 int64_t most, unicon__bank *out) {
  const unicon__source *source = &plan->side[side];
  unicon__block *frame = unicon__frame_open(ctx);
  unicon__source drawn;
  int64_t *row = NULL, count = 0;
  float *z;
  const unicon__bank_rows from = {plan->pairs, side, source->count, NULL};
  UNICON_TRY(unicon__bank_draw(ctx, &from, most, plan->seed, &row, &count));
  UNICON_TRY(unicon__source_narrow(ctx, source, row, count, &drawn));
  if (arena == &ctx->arena)
    UNICON_NEW(ctx, z, count * model->rank);
  else
    UNICON_ARENA_NEW(ctx, arena, z, count * model->rank);
  UNICON_TRY(unicon__model_embed(ctx, model, side, &drawn, 0, count, true, true, z, model->rank));
  *out = (unicon__bank){count, z};
  if (arena != &ctx->arena) unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

/* Quadratic forms of both sides, from banks that are then forgotten. */
static unicon_status fit_curves(unicon_ctx *ctx, const unicon__bank_plan *plan,
                                unicon_model *model) {
  unicon__block *frame = unicon__frame_open(ctx);
  unicon_balance whole = {.how = {UNICON__BALANCE_SOFTMAX, plan->how.strength}, .r = model->rank};
  unicon__bank rows[2];
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(embed_drawn(ctx, &ctx->arena, plan, model, s, CURVE_ROWS, &rows[s]));
    UNICON_TRY(embed_drawn(ctx, &ctx->arena, plan, model, s, plan->rows, &whole.bank[s]));
  }
  for (int s = 0; s < 2; s++) {
    float *curve;
    UNICON_ARENA_NEW(ctx, &model->arena, curve, 2 * model->rank + 1);
    UNICON_TRY(unicon__curve_fit(ctx, &whole, s, rows[s].row, rows[s].count, curve));
    model->balance.curve[s] = curve;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

unicon_status unicon__banks_make(unicon_ctx *ctx, const unicon__bank_plan *plan,
                                 unicon_model *model) {
  model->balance = (unicon_balance){.how = plan->how, .r = model->rank};
  if (plan->how.kind == UNICON__BALANCE_OFF) return UNICON_OK;
  if (plan->how.kind == UNICON__BALANCE_QUADRATIC) return fit_curves(ctx, plan, model);
  for (int s = 0; s < 2; s++) {
    unicon__bank *bank = &model->balance.bank[s];
    UNICON_TRY(embed_drawn(ctx, &model->arena, plan, model, s, plan->rows, bank));
    unicon__bank_round((float *)(uintptr_t)bank->row, bank->count * model->rank);
  }
  return UNICON_OK;
}

/* ---- unicon_balance ----------------------------------------------------------------------- */

static unicon_status take_bank(unicon_ctx *ctx, const unicon_rows *rows, int64_t r,
                               unicon__arena *arena, unicon__bank *out) {
  const int64_t width = rows->width, n = rows->count;
  float *z;
  int64_t column;
  if (width != r && width != r + 1)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld numbers; a bank needs embedded rows of %lld, or of "
                        "%lld with a bias behind",
                        rows->name, (long long)width, (long long)r, (long long)r + 1);
  if (n < FEWEST_ROWS)
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s has %lld rows; a bank needs at least %d",
                        rows->name, (long long)n, FEWEST_ROWS);
  UNICON_ARENA_NEW(ctx, arena, z, n * width);
  unicon__rows_load(rows, NULL, 0, n, z, width);
  for (int64_t i = 0; i < n && width > r; i++)
    memmove(z + i * r, z + i * width, (size_t)r * sizeof *z);
  const int64_t bad = unicon__first_bad_row(z, n, r, UNICON__ROW_DIRECTED, &column);
  if (bad >= 0) return unicon__bad_row(ctx, rows, bad, column);
  unicon__scale_rows(z, n, r, r, 1);
  unicon__bank_round(z, n * r);
  *out = (unicon__bank){n, z};
  return UNICON_OK;
}

/* A bank of the model that is still to be had, or a sentence. */
static unicon_status borrow_bank(unicon_ctx *ctx, const unicon_model *model, int side,
                                 unicon__arena *arena, unicon__bank *out) {
  if (!model || model->balance.bank[side].count == 0)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "there is no bank of %c rows to balance scores with: %s", "xy"[side],
                        model ? "the model keeps none; give bank_x and bank_y"
                              : "there is no model; give bank_x and bank_y");
  const unicon__bank *from = &model->balance.bank[side];
  float *copy;
  UNICON_ARENA_NEW(ctx, arena, copy, from->count * model->rank);
  memcpy(copy, from->row, (size_t)(from->count * model->rank) * sizeof *copy);
  *out = (unicon__bank){from->count, copy};
  return UNICON_OK;
}

/* The dimensions of the space: the model's, or those of the banks, which must then agree: nothing
 * else would tell a vector from one with a bias behind. */
static unicon_status space_of(unicon_ctx *ctx, const unicon_model *model,
                              const unicon_rows *const rows[2], int64_t *r) {
  *r = model ? model->rank : rows[0] ? rows[0]->width : rows[1] ? rows[1]->width : 0;
  if (model || !rows[0] || !rows[1] || rows[0]->width == rows[1]->width) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_SHAPE,
                      "%s has rows of %lld numbers and %s of %lld; without a model both banks need "
                      "vectors of the shared space, without a bias",
                      rows[0]->name, (long long)rows[0]->width, rows[1]->name,
                      (long long)rows[1]->width);
}

static unicon_status fill_balance(unicon_ctx *ctx, const unicon_model *model,
                                  const unicon_options *options, const unicon_rows *const rows[2],
                                  unicon_balance *out) {
  const bool given = rows[0] || rows[1];
  const unicon__balancing own =
      model ? model->balance.how : (unicon__balancing){UNICON__BALANCE_OFF, 0};
  out->how = own;
  UNICON_TRY(space_of(ctx, model, rows, &out->r));
  if (!unicon__is(options, UNICON__BALANCE, "auto"))
    UNICON_TRY(unicon__balancing_parse(ctx, unicon__text(options, UNICON__BALANCE), &out->how));
  else if (given && (own.kind == UNICON__BALANCE_OFF || own.kind == UNICON__BALANCE_QUADRATIC))
    out->how = (unicon__balancing){UNICON__BALANCE_SOFTMAX, own.strength > 0 ? own.strength : 10};
  if (out->how.kind == UNICON__BALANCE_OFF) return UNICON_OK;
  if (out->how.kind == UNICON__BALANCE_QUADRATIC) {
    if (given || own.kind != out->how.kind || own.strength != out->how.strength)
      return unicon__fail(ctx, UNICON_ERR_OPTION,
                          "balance quadratic is made with a model, not in use; accepted here: "
                          "off, softmax:BETA, csls:K");
    for (int s = 0; s < 2; s++) {
      float *curve;
      UNICON_ARENA_NEW(ctx, &out->arena, curve, 2 * out->r + 1);
      memcpy(curve, model->balance.curve[s], (size_t)(2 * out->r + 1) * sizeof *curve);
      out->curve[s] = curve;
    }
    return UNICON_OK;
  }
  for (int s = 0; s < 2; s++)
    UNICON_TRY(rows[s] ? take_bank(ctx, rows[s], out->r, &out->arena, &out->bank[s])
                       : borrow_bank(ctx, model, s, &out->arena, &out->bank[s]));
  return UNICON_OK;
}

unicon_status unicon_balance_create(unicon_ctx *ctx, const unicon_model *model,
                                    const unicon_options *options, const unicon_rows *bank_x,
                                    const unicon_rows *bank_y, unicon_balance **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  if (!out)
    return unicon__leave(
        ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT, "balance_create needs an out pointer"));
  unicon_balance *balance = unicon__object_new(ctx, sizeof *balance);
  if (!balance) return unicon__leave(ctx, UNICON_ERR_MEMORY);
  const unicon_status status =
      fill_balance(ctx, model, options, (const unicon_rows *const[2]){bank_x, bank_y}, balance);
  unicon__balancing_print(balance->how, balance->text);
  if (status == UNICON_OK)
    *out = balance;
  else
    unicon__object_free(balance);
  return unicon__leave(ctx, status);
}

void unicon_balance_destroy(unicon_balance *balance) {
  unicon__object_free(balance);
}

const char *unicon_balance_text(const unicon_balance *balance) {
  return balance ? balance->text : "";
}

int64_t unicon_balance_rows(const unicon_balance *balance, unicon_side side) {
  return balance && (side == UNICON_X || side == UNICON_Y) ? balance->bank[side].count : 0;
}

/* ---- unicon_model_rebalance --------------------------------------------------------------- */

/* Rows that may enter a bank, or from which a quadratic form is made. */
static unicon_status check_enough(unicon_ctx *ctx, const unicon__bank_plan *plan) {
  for (int s = 0; s < 2 && plan->how.kind != UNICON__BALANCE_OFF; s++) {
    const unicon__bank_rows from = {plan->pairs, s, plan->side[s].count, NULL};
    int64_t *row = NULL, count = 0;
    UNICON_TRY(unicon__bank_draw(ctx, &from, FEWEST_ROWS, plan->seed, &row, &count));
    if (count < FEWEST_ROWS)
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "%s has %lld rows that can be used; a bank needs at least %d",
                          plan->side[s].rows->name, (long long)count, FEWEST_ROWS);
  }
  return UNICON_OK;
}

static unicon_status rebalance(unicon_ctx *ctx, const unicon_model *model,
                               const unicon__dataset *set, const unicon_options *options,
                               bool paired, unicon_model *out) {
  unicon__bank_plan plan = {.side = {set->whole.x, set->whole.y},
                            .pairs = paired ? set->whole.pairs : NULL,
                            .how = model->balance.how,
                            .rows = unicon__integer(options, UNICON__BALANCE_BANK),
                            .seed = (uint64_t)unicon__integer(options, UNICON__SEED)};
  if (!unicon__is(options, UNICON__BALANCE, "auto"))
    UNICON_TRY(unicon__balancing_parse(ctx, unicon__text(options, UNICON__BALANCE), &plan.how));
  else if (plan.how.kind == UNICON__BALANCE_OFF)
    plan.how = unicon__balancing_usual(set->whole.y.count);
  UNICON_TRY(check_enough(ctx, &plan));
  UNICON_TRY(unicon__model_copy(ctx, model, out));
  UNICON_TRY(unicon__banks_make(ctx, &plan, out));
  char text[UNICON__BALANCING_TEXT];
  unicon__balancing_print(plan.how, text);
  UNICON_TRY(unicon__model_note_text(ctx, out, "balance", text));
  UNICON_TRY(unicon__model_note_text(ctx, out, "option.balance", text));
  UNICON_TRY(unicon__model_note_integer(ctx, out, "option.balance_bank", plan.rows));
  unicon__model_seal(out);
  return UNICON_OK;
}

static unicon_status check_widths(unicon_ctx *ctx, const unicon_model *model,
                                  const unicon_data *data) {
  const unicon_rows *rows[2] = {data->x, data->y};
  for (int s = 0; s < 2; s++) {
    const int64_t width = unicon_model_width(model, (unicon_side)s);
    if (rows[s]->width != width)
      return unicon__fail(ctx, UNICON_ERR_SHAPE,
                          "%s has rows of %lld values, but side %c of the model takes %lld",
                          rows[s]->name, (long long)rows[s]->width, "xy"[s], (long long)width);
  }
  return UNICON_OK;
}

/* The rows need no pairs: then any two sets of rows will do. */
static unicon_status make_rebalanced(unicon_ctx *ctx, const unicon_model *model,
                                     const unicon_data *given, const unicon_options *options,
                                     unicon_model **out) {
  unicon__dataset set = {.hash = 0};
  unicon_model *made = NULL;
  unicon_data own;
  const unicon_data *data = &own;
  UNICON_NEED(ctx, model);
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__data_take(ctx, given, &own));
  UNICON_TRY(check_widths(ctx, model, data));
  UNICON_TRY(unicon__model_create(ctx, &made));
  unicon_status status = UNICON_OK;
  if (data->pairs) {
    status = unicon__dataset_open(ctx, data, options, false, &set);
  } else {
    const bool drop = unicon__is(options, UNICON__BAD_ROWS, "drop");
    unicon__source *side[2] = {&set.whole.x, &set.whole.y};
    for (int s = 0; s < 2 && status == UNICON_OK; s++) {
      side[s]->rows = s == 0 ? data->x : data->y;
      status = unicon__usable_rows(ctx, side[s]->rows, UNICON__ROW_DIRECTED, drop, &side[s]->index,
                                   &side[s]->count, NULL);
    }
  }
  if (status == UNICON_OK) status = rebalance(ctx, model, &set, options, data->pairs != NULL, made);
  unicon__dataset_close(&set);
  if (status == UNICON_OK)
    *out = made;
  else
    unicon_model_destroy(made);
  return status;
}

unicon_status unicon_model_rebalance(unicon_ctx *ctx, const unicon_model *model,
                                     const unicon_data *data, const unicon_options *options,
                                     unicon_model **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, make_rebalanced(ctx, model, data, options, out));
}
