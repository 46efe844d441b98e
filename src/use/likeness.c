/* SPDX-License-Identifier: Apache-2.0 */
#include "use/likeness.h"

#include "unicon/migrate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/object.h"
#include "linalg/spectral.h"
#include "linalg/tiled.h"
#include "linalg/vec.h"

enum {
  MAKE_ROWS = 4096, /* that describe a side: a covariance of the leading axes needs no more */
  CHECK_ROWS = 1024 /* that are compared with it: enough to see another mean or spread */
};

/* Where to draw the line: below a fifth of the way from chance to what was seen at first, rows are
 * another model's. Of one model's rows in another domain more than half of the way was left. */
static const double far_share = 0.2;
/* Directions say something where they hold twice what chance gives them. */
static const double telling = 2;
/* A mean of less than .2 says nothing when it is missing. */
static const double mean_length = 0.2;

static const char *const side_name[2] = {"old", "new"};

/* Up to `most` rows, evenly spaced, at length 1; their lengths' mean and deviation. Rows that
 * cannot be used are left out. */
static unicon_status sample(unicon_ctx *ctx, const unicon_rows *rows, int64_t most, float **out,
                            int64_t *count, double *length, double *spread) {
  const int64_t d = rows->width, n = rows->count < most ? rows->count : most;
  double sum = 0, square = 0;
  *count = 0;
  UNICON_NEW(ctx, *out, n * d);
  for (int64_t k = 0; k < n; k++) {
    float *row = *out + *count * d;
    unicon__rows_load(rows, NULL, k * rows->count / n, 1, row, d);
    double own = 0;
    for (int64_t t = 0; t < d; t++) own += (double)row[t] * (double)row[t];
    own = sqrt(own);
    if (!(own > 0) || !isfinite(own)) continue;
    for (int64_t t = 0; t < d; t++) row[t] = (float)((double)row[t] / own);
    sum += own;
    square += own * own;
    ++*count;
  }
  const double rowed = (double)(*count > 0 ? *count : 1);
  *length = sum / rowed;
  *spread = sqrt(fmax(0, square / rowed - *length * *length));
  return UNICON_OK;
}

unicon_status unicon__likeness_make(unicon_ctx *ctx, unicon__arena *arena, const unicon_rows *rows,
                                    unicon__likeness *out) {
  const int64_t d = rows->width, most = (d + 3) / 4,
                axes = most < UNICON__AXES ? most : UNICON__AXES;
  float *unit;
  double *mean, *centred, *covariance, trace = 0, held = 0;
  int64_t n;
  unicon__svd svd;
  *out = (unicon__likeness){.axes = 0};
  UNICON_TRY(sample(ctx, rows, MAKE_ROWS, &unit, &n, &out->length, &out->length_spread));
  out->length_spread = fmax(out->length_spread, 1e-9 * out->length);
  UNICON_NEW(ctx, mean, d);
  UNICON_NEW(ctx, centred, n * d);
  UNICON_NEW(ctx, covariance, d * d);
  unicon__mean_row(unit, n, d, mean);
  for (int64_t k = 0; k < n * d; k++) centred[k] = (double)unit[k] - mean[k % d];
  unicon__tiled_dgemm(ctx, true, false, d, d, n, 1 / (double)n, centred, d, centred, d, 0,
                      covariance, d);
  unicon__drop(ctx, centred);
  for (int64_t k = 0; k < d; k++) trace += covariance[k * d + k];
  if (!(trace > 1e-12)) return UNICON_OK; /* all rows are one */
  UNICON_TRY(unicon__svd_top(ctx, covariance, d, d, axes, UNICON__SVD_AUTO, 0, &svd));
  UNICON_ARENA_NEW(ctx, arena, out->mean, d);
  UNICON_ARENA_NEW(ctx, arena, out->axis, axes * d);
  for (int64_t k = 0; k < d; k++) out->mean[k] = (float)mean[k];
  for (int64_t a = 0; a < axes; a++) {
    held += svd.s[a];
    for (int64_t k = 0; k < d; k++) out->axis[a * d + k] = (float)svd.u[k * axes + a];
  }
  out->share = fmin(1, held / trace);
  out->axes = axes;
  unicon__drop(ctx, covariance);
  unicon__drop(ctx, mean);
  unicon__drop(ctx, unit);
  return UNICON_OK;
}

/* How near n unit rows are to a likeness, by the share of the variance in its axes: 0 is chance, 1
 * as it was seen; 1 where the axes say nothing. */
static double nearness(const unicon__likeness *like, const double *mean, const float *unit,
                       int64_t n, int64_t d) {
  const double chance = (double)like->axes / (double)d;
  double held = 0, all = 0;
  if (like->axes == 0 || like->share < telling * chance) return 1;
  for (int64_t i = 0; i < n; i++) {
    const float *row = unit + i * d;
    for (int64_t k = 0; k < d; k++) {
      const double gap = (double)row[k] - mean[k];
      all += gap * gap;
    }
    for (int64_t a = 0; a < like->axes; a++) {
      double along = 0;
      for (int64_t k = 0; k < d; k++)
        along += ((double)row[k] - mean[k]) * (double)like->axis[a * d + k];
      held += along * along;
    }
  }
  return all > 0 ? (held / all - chance) / (like->share - chance) : 1;
}

/* Is the mean of the rows nearer to that of the other side, by far? */
static bool nearer_mean(const unicon__likeness *own, const unicon__likeness *other,
                        const double *mean, int64_t d) {
  double to_own = 0, to_other = 0;
  for (int64_t k = 0; k < d; k++) {
    to_own += (mean[k] - (double)own->mean[k]) * (mean[k] - (double)own->mean[k]);
    to_other += (mean[k] - (double)other->mean[k]) * (mean[k] - (double)other->mean[k]);
  }
  return to_other < far_share * to_own;
}

/* Is the mean that the rows had gone? */
static bool lost_mean(const unicon__likeness *like, const double *mean, int64_t d) {
  double along = 0, square = 0;
  for (int64_t k = 0; k < d; k++) {
    along += mean[k] * (double)like->mean[k];
    square += (double)like->mean[k] * (double)like->mean[k];
  }
  return square > mean_length * mean_length && along < far_share * square;
}

unicon_status unicon__likeness_of(unicon_ctx *ctx, const unicon_rows *rows,
                                  const unicon__likeness *own, const unicon__likeness *other,
                                  bool same_width, unicon__resemblance *out, double *length) {
  unicon__block *frame = unicon__frame_open(ctx);
  const int64_t d = rows->width;
  float *unit;
  double *mean, spread;
  int64_t n;
  *out = UNICON__ALIKE;
  UNICON_TRY(sample(ctx, rows, CHECK_ROWS, &unit, &n, length, &spread));
  UNICON_NEW(ctx, mean, d);
  const bool few = n < 2 * UNICON__AXES, pair = same_width && other->axes > 0;
  if (n > 0) unicon__mean_row(unit, n, d, mean);
  if (n > 0 && own->axes > 0) {
    const bool swapped = pair && nearer_mean(own, other, mean, d);
    const bool centred = !few && lost_mean(own, mean, d);
    /* Few rows have no variance to speak of: they are seen around the mean of the likeness. */
    for (int64_t k = 0; k < d && few; k++) mean[k] = (double)own->mean[k];
    const bool far = nearness(own, mean, unit, n, d) < far_share;
    for (int64_t k = 0; k < d && few && pair; k++) mean[k] = (double)other->mean[k];
    const bool across = pair && nearness(other, mean, unit, n, d) > 0.5;
    if (across && (far || swapped))
      *out = UNICON__LIKE_OTHER;
    else if (far && !few)
      *out = UNICON__UNLIKE;
    else if (centred)
      *out = UNICON__CENTRED;
  }
  unicon__frame_close(ctx, frame);
  return UNICON_OK;
}

void unicon__likeness_say(unicon__resemblance how, int side, const char *name, char *out,
                          size_t size) {
  const char *own = side_name[side], *other = side_name[1 - side];
  if (how == UNICON__LIKE_OTHER)
    snprintf(out, size,
             "%s should hold vectors of the %s model, but they look like those of the %s one: are "
             "two files swapped?",
             name, own, other);
  else if (how == UNICON__CENTRED)
    snprintf(out, size,
             "%s should hold vectors of the %s model as they were at the migration, but their mean "
             "is gone: were they centred or whitened since?",
             name, own);
  else
    snprintf(out, size,
             "%s should hold vectors of the %s model, but they do not look like those of the "
             "migration: another model, another prefix, or another normalisation",
             name, own);
}

unicon_status unicon__likeness_check(unicon_ctx *ctx, const unicon_model *model, int side,
                                     const unicon_rows *rows) {
  const unicon__likeness *own = &model->like[side], *other = &model->like[1 - side];
  unicon__resemblance how;
  double length;
  char sentence[512];
  const int64_t width = model->part[0].map[side].in;
  if (own->axes == 0 || rows->width != width) return UNICON_OK;
  UNICON_TRY(unicon__likeness_of(ctx, rows, own, other, width == model->part[0].map[1 - side].in,
                                 &how, &length));
  if (how != UNICON__ALIKE) {
    unicon__likeness_say(how, side, rows->name, sentence, sizeof sentence);
    return unicon__fail(ctx, UNICON_ERR_DATA, "%s (trust on takes them as they are)", sentence);
  }
  if (fabs(length - own->length) > fmax(0.05 * own->length, 3 * own->length_spread))
    unicon__log(ctx, UNICON_LOG_WARNING,
                "%s: its rows have lengths around %.3g, those of the migration %.3g; they are "
                "scaled to 1 here, but check that nothing else about them has changed",
                rows->name, length, own->length);
  return UNICON_OK;
}

unicon_status unicon_model_check_rows(unicon_ctx *ctx, const unicon_model *model, unicon_side side,
                                      const unicon_rows *rows) {
  UNICON_TRY(unicon__enter(ctx));
  if (!model || !rows || (side != UNICON_X && side != UNICON_Y))
    return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                                           "model_check_rows needs a model, a side and rows"));
  return unicon__leave(ctx, unicon__likeness_check(ctx, model, (int)side, rows));
}
