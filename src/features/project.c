/* SPDX-License-Identifier: Apache-2.0 */
#include "features/project.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "linalg/blas.h"
#include "linalg/vec.h"

enum { PROJECT_ROWS = 256, ROUND_ITEMS = 64 };

typedef struct project {
  const unicon__source *source;
  const float *weight;
  int64_t r, ld, first, count, round;
  int64_t rows; /* of a tile */
  bool unit, check;
  float *buffer; /* per worker */
  int64_t *bad;  /* per item of the round: first bad row, or -1 */
  int64_t *column;
  float *out;
} project;

void unicon__scale_rows(float *rows, int64_t count, int64_t r, int64_t ld, double length) {
  const unicon__vec *vec = unicon__vec_best();
  for (int64_t i = 0; i < count; i++) {
    float *row = rows + i * ld;
    const double now = sqrt(vec->sum_squares(row, r));
    if (now > 1e-15 && now < 1e15) {
      vec->scale_shift(row, r, (float)(length / now), NULL);
      continue;
    }
    double sum = 0; /* too large or small to square in float32 */
    for (int64_t k = 0; k < r; k++) sum += (double)row[k] * (double)row[k];
    for (int64_t k = 0; k < r && sum > 0; k++)
      row[k] = (float)((double)row[k] * length / sqrt(sum));
  }
}

enum { OVERFLOW = -3 }; /* in the place of a column */

/* The first row that holds an infinity or NaN, or -1: weights of a strange model. */
static int64_t first_overflow(const float *rows, int64_t count, int64_t r, int64_t ld,
                              int64_t *column) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < r; k++)
      if (!isfinite(rows[i * ld + k])) {
        *column = OVERFLOW;
        return i;
      }
  return -1;
}

static unicon_status report_row(unicon_ctx *ctx, const unicon_rows *rows, int64_t row,
                                int64_t column) {
  if (column != OVERFLOW) return unicon__bad_row(ctx, rows, row, column);
  return unicon__fail(ctx, UNICON_ERR_NUMERIC,
                      "%s: the embedding of row %lld overflows float32; the weights of the model "
                      "are out of range",
                      rows->name, (long long)row);
}

static void project_tile(void *state, int64_t item, int worker) {
  project *p = state;
  const unicon__map *map = p->source->map;
  const int64_t start = (p->round + item) * p->rows, left = p->count - start;
  const int64_t count = left < p->rows ? left : p->rows;
  float *buffer = p->buffer + (int64_t)worker * p->rows * unicon__map_room(map);
  float *out = p->out + start * p->ld;
  const float *features = buffer;
  p->bad[item] = -1;
  if (p->check) {
    float *raw = unicon__map_raw(map, buffer, count);
    unicon__source_load(p->source, NULL, p->first + start, count, raw);
    const unicon__row_need need = p->weight ? unicon__map_need(map) : UNICON__ROW_DIRECTED;
    p->bad[item] = unicon__first_bad_row(raw, count, map->in, need, &p->column[item]);
    if (p->bad[item] >= 0) return;
    unicon__map_apply(map, buffer, count);
  } else {
    features = unicon__source_tile(p->source, NULL, p->first + start, count, buffer);
  }
  if (p->weight)
    unicon__sgemm(false, false, count, p->r, map->out, 1, features, map->out, p->weight, p->r, 0,
                  out, p->ld);
  else
    for (int64_t i = 0; i < count; i++)
      memcpy(out + i * p->ld, features + i * p->r, (size_t)p->r * sizeof *out);
  p->bad[item] = first_overflow(out, count, p->r, p->ld, &p->column[item]);
  if (p->unit) unicon__scale_rows(out, count, p->r, p->ld, 1);
}

unicon_status unicon__project(unicon_ctx *ctx, const unicon__source *source, const float *weight,
                              int64_t r, int64_t first, int64_t count, bool unit, bool check,
                              float *out, int64_t ld) {
  project p = {.source = source,
               .weight = weight,
               .r = r,
               .first = first,
               .count = count,
               .rows = count < PROJECT_ROWS ? count : PROJECT_ROWS,
               .unit = unit,
               .check = check,
               .out = out,
               .ld = ld};
  int64_t bad[ROUND_ITEMS], column[ROUND_ITEMS];
  p.bad = bad;
  p.column = column;
  const int64_t tiles = count ? (count + p.rows - 1) / p.rows : 0;
  UNICON_NEW(ctx, p.buffer,
             unicon__workers_for(ctx, tiles) * p.rows * unicon__map_room(source->map));
  for (p.round = 0; p.round < tiles; p.round += ROUND_ITEMS) {
    const int64_t items = tiles - p.round < ROUND_ITEMS ? tiles - p.round : ROUND_ITEMS;
    UNICON_TRY(unicon__progress(ctx, "embed", (double)p.round / (double)tiles));
    unicon__blas_begin();
    unicon__parallel_for(ctx, items, project_tile, &p);
    unicon__blas_end();
    for (int64_t item = 0; item < items; item++)
      if (bad[item] >= 0)
        return report_row(ctx, source->rows, first + (p.round + item) * p.rows + bad[item],
                          column[item]);
  }
  unicon__drop(ctx, p.buffer);
  return UNICON_OK;
}
