/* SPDX-License-Identifier: Apache-2.0 */
#include "model/embed.h"

#include <math.h>
#include <string.h>

#include "features/project.h"
#include "io/object.h"
#include "linalg/blas.h"
#include "linalg/vec.h"
#include "unicon/tools.h"

/* Columns that a form has beside the vector. */
static int64_t extra_columns(unicon_form form) {
  return form == UNICON_FORM_QUERY || form == UNICON_FORM_INDEX                 ? 1
         : form == UNICON_FORM_QUERY_COSINE || form == UNICON_FORM_INDEX_COSINE ? 2
                                                                                : 0;
}

int64_t unicon_form_width(int64_t rank, unicon_form form) {
  return rank + extra_columns(form);
}

static bool is_form(unicon_form form) {
  return (int)form >= UNICON_FORM_RAW && (int)form <= UNICON_FORM_INDEX_COSINE;
}

/* Members never end in padding, so that a new one makes the struct longer. */
enum { VIEW_LEAST = offsetof(unicon_view, form) + sizeof(unicon_form) };
_Static_assert(sizeof(unicon_view) == VIEW_LEAST, "no padding at the end");

unicon_status unicon__view_take(unicon_ctx *ctx, const unicon_view *given, unicon_view *out) {
  UNICON_TRY(unicon__take_sized(ctx, "UNICON_VIEW", given, out, VIEW_LEAST, sizeof *out));
  return out->rows ? UNICON_OK : unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a view needs rows");
}

static unicon_status check_view(unicon_ctx *ctx, const unicon_view *view) {
  if (view->side != UNICON_X && view->side != UNICON_Y)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "side is %d; accepted: 0 (x) or 1 (y)",
                        (int)view->side);
  if (!is_form(view->form))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "form is %d; accepted: 0 to %d", (int)view->form,
                        UNICON_FORM_INDEX_COSINE);
  if (view->rows->width > UNICON__MAX_WIDTH)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has rows of %lld values: at most %d are supported", view->rows->name,
                        (long long)view->rows->width, UNICON__MAX_WIDTH);
  if (view->rows->width <= extra_columns(view->form))
    return unicon__fail(ctx, UNICON_ERR_SHAPE, "%s has rows of %lld values, too few for its form",
                        view->rows->name, (long long)view->rows->width);
  return UNICON_OK;
}

/* The balance of the view, or of its model; NULL when it is off. */
static unicon_status take_balance(unicon_ctx *ctx, const unicon_view *view, unicon__lens *lens) {
  const unicon_balance *balance = view->balance ? view->balance
                                  : view->model ? &view->model->balance
                                                : NULL;
  if (!balance || balance->how.kind == UNICON__BALANCE_OFF) return UNICON_OK;
  if (balance->r != lens->r)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "the banks have rows of %lld numbers, but the shared space has %lld%s",
                        (long long)balance->r, (long long)lens->r,
                        balance->r == lens->r + 1 ? ": leave out the bias behind each row" : "");
  lens->balance = balance;
  return UNICON_OK;
}

/* Whether all rows embedded, in any form, have a number of floats that can be counted. */
static unicon_status check_extent(unicon_ctx *ctx, const unicon__lens *lens) {
  if (lens->count <= INT64_MAX / 8 / (lens->r + 2)) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_MEMORY,
                      "%s has %lld rows, too many for vectors of %lld dimensions", lens->rows->name,
                      (long long)lens->count, (long long)lens->r);
}

unicon_status unicon__lens_open(unicon_ctx *ctx, const unicon_view *given, unicon__lens *lens) {
  unicon_view own;
  const unicon_view *view = &own;
  UNICON_TRY(unicon__view_take(ctx, given, &own));
  UNICON_TRY(check_view(ctx, view));
  const unicon_rows *rows = view->rows;
  *lens = (unicon__lens){rows, view->model, (int)view->side, rows->count, rows->width, NULL, false};
  if (!view->model) {
    lens->r -= extra_columns(view->form);
    lens->ready = extra_columns(view->form) > 0;
    UNICON_TRY(check_extent(ctx, lens));
    return take_balance(ctx, view, lens);
  }
  const int64_t width = unicon_model_width(view->model, view->side);
  if (rows->width != width)
    return unicon__fail(
        ctx, UNICON_ERR_SHAPE, "%s has rows of %lld values, but side %s of the model takes %lld",
        rows->name, (long long)rows->width, view->side == UNICON_X ? "x" : "y", (long long)width);
  lens->r = view->model->rank;
  UNICON_TRY(check_extent(ctx, lens));
  return take_balance(ctx, view, lens);
}

/* Vectors as they are, scaled to length 1 if asked; of rows that are ready the leading columns. */
static unicon_status plain_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out, int64_t ld) {
  const int64_t width = lens->rows->width;
  const unicon__map identity = {.in = width, .out = width};
  const unicon__source source = {.rows = lens->rows, .count = lens->count, .map = &identity};
  if (ld >= width)
    return unicon__project(ctx, &source, NULL, width, first, count, unit && !lens->ready, true, out,
                           ld);
  float *whole;
  UNICON_NEW(ctx, whole, count * width);
  UNICON_TRY(unicon__project(ctx, &source, NULL, width, first, count, unit && !lens->ready, true,
                             whole, width));
  for (int64_t i = 0; i < count; i++)
    memcpy(out + i * ld, whole + i * width, (size_t)ld * sizeof *out);
  unicon__drop(ctx, whole);
  return UNICON_OK;
}

unicon_status unicon__lens_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, bool unit, float *out, int64_t ld) {
  const unicon__source source = {.rows = lens->rows, .count = lens->count};
  if (!lens->model) return plain_rows(ctx, lens, first, count, unit, out, ld);
  return unicon__model_embed(ctx, lens->model, lens->side, &source, first, count, unit, true, out,
                             ld);
}

double unicon__lens_longest(const unicon__lens *lens, const float *rows, int64_t count,
                            int64_t width) {
  double square = lens->ready ? 0 : 2;
  for (int64_t i = 0; i < count && lens->ready; i++) {
    const double sum = unicon__vec_best()->dot(rows + i * width, rows + i * width, width);
    square = sum > square ? sum : square;
  }
  return sqrt(square);
}

static unicon_status add_offset(unicon_ctx *ctx, const float *offset, int64_t rank, int64_t count,
                                bool unit, float *out, int64_t ld) {
  for (int64_t i = 0; i < count; i++) {
    unicon__vec_best()->add_scaled(out + i * ld, offset, rank, 1);
    if (!isfinite(unicon__vec_best()->sum_squares(out + i * ld, rank)))
      return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                          "the embedding of row %lld of these overflows float32; the weights of "
                          "the model are out of range",
                          (long long)i);
  }
  if (unit) unicon__scale_rows(out, count, rank, ld, 1);
  return UNICON_OK;
}

unicon_status unicon__model_embed(unicon_ctx *ctx, const unicon_model *model, int side,
                                  const unicon__source *rows, int64_t first, int64_t count,
                                  bool unit, bool check, float *out, int64_t ld) {
  unicon__source source = *rows;
  source.cache = NULL;
  const bool fused = model->parts > 1;
  int64_t column = 0;
  for (int64_t b = 0; b < model->parts; b++) {
    const unicon__part *part = &model->part[b];
    source.map = &part->map[side];
    const float *offset = part->offset[side];
    UNICON_TRY(unicon__project(ctx, &source, part->weight[side], part->rank, first, count,
                               (unit || fused) && !offset, check && b == 0, out + column, ld));
    if (offset)
      UNICON_TRY(add_offset(ctx, offset, part->rank, count, unit || fused, out + column, ld));
    if (fused) unicon__scale_rows(out + column, count, part->rank, ld, sqrt(part->share));
    column += part->rank;
  }
  if (fused && unit) unicon__scale_rows(out, count, model->rank, ld, 1);
  return UNICON_OK;
}

unicon_status unicon__lens_usable(unicon_ctx *ctx, const unicon__lens *lens, const int64_t **keep,
                                  int64_t *count) {
  const unicon__map *map = lens->model ? &lens->model->part[0].map[lens->side] : NULL;
  const unicon__row_need need = map ? unicon__map_need(map) : UNICON__ROW_DIRECTED;
  UNICON_TRY(unicon__usable_rows(ctx, lens->rows, need, true, keep, count, NULL));
  if (*count > 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA, "%s: none of its %lld rows can be used: %s",
                      lens->rows->name, (long long)lens->count, "all are zero or not finite");
}

/* ---- queries and candidates --------------------------------------------------------------- */

unicon_status unicon__meet(unicon_ctx *ctx, const unicon__lens *queries,
                           const unicon__lens *candidates, unicon__meeting *out) {
  if (queries->r != candidates->r)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %lld dimensions and %s has %lld; both must lie in one shared space",
                        queries->rows->name, (long long)queries->r, candidates->rows->name,
                        (long long)candidates->r);
  *out = (unicon__meeting){queries, candidates, queries->r};
  if (candidates->balance || candidates->ready) out->width++;
  return UNICON_OK;
}

static void fill_column(float *rows, int64_t count, int64_t width, int64_t column, float value) {
  for (int64_t i = 0; i < count; i++) rows[i * width + column] = value;
}

unicon_status unicon__meeting_queries(unicon_ctx *ctx, const unicon__meeting *m, int64_t first,
                                      int64_t count, float *out) {
  UNICON_TRY(unicon__lens_rows(ctx, m->queries, first, count, true, out, m->width));
  if (m->width > m->queries->r) fill_column(out, count, m->width, m->queries->r, 1);
  return UNICON_OK;
}

/* v and -b(v), `width` floats between rows. */
static unicon_status index_rows(unicon_ctx *ctx, const unicon__lens *lens, int64_t first,
                                int64_t count, float *out, int64_t width) {
  UNICON_TRY(unicon__lens_rows(ctx, lens, first, count, true, out, width));
  if (lens->ready || width == lens->r) return UNICON_OK;
  fill_column(out, count, width, lens->r, 0);
  if (!lens->balance) return UNICON_OK;
  UNICON_TRY(unicon__bias(ctx, lens->balance, lens->side, out, count, width, out + lens->r, width));
  for (int64_t i = 0; i < count; i++) out[i * width + lens->r] *= -1;
  return UNICON_OK;
}

unicon_status unicon__meeting_candidates(unicon_ctx *ctx, const unicon__meeting *m, int64_t first,
                                         int64_t count, float *out) {
  return index_rows(ctx, m->candidates, first, count, out, m->width);
}

/* ---- unicon_rows_usable ------------------------------------------------------------------- */

static unicon_status usable(unicon_ctx *ctx, const unicon_view *view, int64_t *number,
                            unicon_rows **out) {
  unicon__lens lens;
  const int64_t *keep;
  int64_t count;
  UNICON_NEED(ctx, out);
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  UNICON_TRY(unicon__lens_usable(ctx, &lens, &keep, &count));
  for (int64_t i = 0; number && i < count; i++) number[i] = keep ? keep[i] : i;
  return unicon__rows_select(ctx, lens.rows, keep, count, out);
}

unicon_status unicon_rows_usable(unicon_ctx *ctx, const unicon_view *view, int64_t *number,
                                 unicon_rows **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, usable(ctx, view, number, out));
}

/* ---- unicon_embed ------------------------------------------------------------------------- */

unicon_status unicon__embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                            unicon_form form, float *out) {
  unicon__lens lens;
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  if (!is_form(form))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "form is %d; accepted: 0 to %d", (int)form,
                        UNICON_FORM_INDEX_COSINE);
  if (!out || first < 0 || count < 0 || count > lens.count || first > lens.count - count)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%lld rows from row %lld on were asked of %s, which has %lld",
                        (long long)count, (long long)first, lens.rows->name, (long long)lens.count);
  const int64_t r = lens.r, width = unicon_form_width(r, form);
  const bool cosine = form == UNICON_FORM_QUERY_COSINE || form == UNICON_FORM_INDEX_COSINE;
  if (form == UNICON_FORM_INDEX || form == UNICON_FORM_INDEX_COSINE)
    UNICON_TRY(index_rows(ctx, &lens, first, count, out, width));
  else
    UNICON_TRY(unicon__lens_rows(ctx, &lens, first, count, form != UNICON_FORM_RAW, out, width));
  if (form == UNICON_FORM_QUERY || form == UNICON_FORM_QUERY_COSINE)
    fill_column(out, count, width, r, 1);
  for (int64_t i = 0; cosine && i < count; i++) { /* |v|^2 + b^2 + (1 - b^2) = 2 for every row */
    const float b = out[i * width + r];
    out[i * width + r + 1] =
        form == UNICON_FORM_QUERY_COSINE ? 0 : sqrtf(fmaxf(0, (1 - b) * (1 + b)));
  }
  return UNICON_OK;
}

unicon_status unicon_embed(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                           unicon_form form, float *out) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, unicon__embed(ctx, view, first, count, form, out));
}
