/* SPDX-License-Identifier: Apache-2.0 */
/* Is a rewritten file what its sidecar says, and is that what was asked for? */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "io/object.h"
#include "io/rows_format.h"
#include "io/text.h"
#include "model/embed.h"
#include "use/rewrite.h"

enum { SAMPLE_ROWS = 256 }; /* of the source, to know it again */

/* ---- what a sidecar says ------------------------------------------------------------------ */

static const char *space_of(const unicon_model *model) {
  const char *direction = unicon_model_meta(model, "direction");
  if (!direction) return "shared";
  return strcmp(direction, "old-to-new") == 0   ? "new"
         : strcmp(direction, "new-to-old") == 0 ? "old"
                                                : "shared";
}

static const char *form_word(unicon_form form) {
  static const char *const words[] = {"raw",   "unit",         "query",
                                      "index", "query-cosine", "index-cosine"};
  return words[form];
}

/* A number for the source: its shape and some of its rows. */
static unicon_status sample_source(unicon_ctx *ctx, const unicon_rows *rows, char *out) {
  const int64_t n = rows->count < SAMPLE_ROWS ? rows->count : SAMPLE_ROWS;
  uint64_t h = unicon__hash((uint64_t)rows->count, &rows->width, sizeof rows->width);
  float *row;
  UNICON_NEW(ctx, row, rows->width);
  for (int64_t k = 0; k < n; k++) {
    unicon__rows_load(rows, NULL, k * (rows->count - 1) / (n > 1 ? n - 1 : 1), 1, row, rows->width);
    h = unicon__hash(h, row, (size_t)rows->width * sizeof *row);
  }
  unicon__drop(ctx, row);
  snprintf(out, UNICON__SIDECAR_ID, "%016" PRIx64, h);
  return UNICON_OK;
}

unicon_status unicon__rewrite_about(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                    int64_t count, unicon_form form, unicon__sidecar *out) {
  unicon__lens lens;
  if (!view->model) return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a rewrite needs a model");
  if ((int)form < UNICON_FORM_RAW || (int)form > UNICON_FORM_INDEX_COSINE)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "form is %d; accepted: 0 to %d", (int)form,
                        UNICON_FORM_INDEX_COSINE);
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  if (first < 0 || count < 1 || count > lens.count || first > lens.count - count)
    return unicon__fail(
        ctx, UNICON_ERR_ARGUMENT, "%lld rows from row %lld on were asked of %s, which has %lld",
        (long long)count, (long long)first, view->rows->name, (long long)lens.count);
  *out = (unicon__sidecar){.rows = count, .width = unicon_form_width(lens.r, form), .first = first};
  unicon_model_id(view->model, out->model);
  snprintf(out->space, sizeof out->space, "%s", space_of(view->model));
  snprintf(out->form, sizeof out->form, "%s", form_word(form));
  return sample_source(ctx, view->rows, out->source);
}

const char *unicon__rewrite_difference(const unicon__sidecar *a, const unicon__sidecar *b) {
  if (strcmp(a->model, b->model) != 0) return "another model";
  if (strcmp(a->source, b->source) != 0) return "another source";
  if (strcmp(a->form, b->form) != 0 || a->width != b->width) return "another form";
  if (a->first != b->first || a->rows != b->rows) return "other rows";
  return NULL;
}

/* ---- hashes ------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text) {
  uint64_t h = 0;
  for (const char *c = text; *c; c++) h = 16 * h + (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
  return h;
}

void unicon__rewrite_hash_begin(unicon__sidecar *about) {
  snprintf(about->hash, sizeof about->hash, "%016d", 0);
}

void unicon__rewrite_hash(unicon__sidecar *about, const void *data, size_t bytes) {
  snprintf(about->hash, sizeof about->hash, "%016" PRIx64,
           unicon__hash(hash_of(about->hash), data, bytes));
}

unicon_status unicon__rewrite_hash_rows(unicon_ctx *ctx, const unsigned char *rows, int64_t count,
                                        size_t row, unicon__sidecar *out) {
  unicon__rewrite_hash_begin(out);
  for (int64_t at = 0; at < count; at += UNICON__REWRITE_BLOCK) {
    const int64_t left = count - at,
                  now = left < UNICON__REWRITE_BLOCK ? left : UNICON__REWRITE_BLOCK;
    UNICON_TRY(unicon__stage_step(ctx, at, count));
    unicon__rewrite_hash(out, rows + (size_t)at * row, (size_t)now * row);
  }
  return UNICON_OK;
}

/* ---- files -------------------------------------------------------------------------------- */

/* Shape and bytes of the file against its sidecar. */
static unicon_status check_bytes(unicon_ctx *ctx, const char *path, const unicon__sidecar *about,
                                 unicon__bytes bytes) {
  const int64_t row = about->width * (strcmp(about->dtype, "<f2") == 0 ? 2 : 4);
  const int64_t want = UNICON__NPY_HEADER + about->rows * row;
  unicon__sidecar now = {.rows = 0};
  char header[UNICON__NPY_HEADER + 1];
  if (row == 0 || (int64_t)bytes.size != want)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has %zu bytes, but its sidecar speaks of %lld rows of %lld numbers, "
                        "%lld bytes: it was cut off or replaced; remove it and rewrite again",
                        path, bytes.size, (long long)about->rows, (long long)about->width,
                        (long long)want);
  unicon__npy_header(about->dtype, about->rows, about->width, header);
  if (memcmp(bytes.data, header, UNICON__NPY_HEADER) != 0)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s does not hold what was written: its header is another; remove it and "
                        "rewrite again",
                        path);
  const int stage = unicon__stage_begin(ctx, "check", 0.99);
  UNICON_TRY(unicon__rewrite_hash_rows(ctx, bytes.data + UNICON__NPY_HEADER, about->rows,
                                       (size_t)row, &now));
  unicon__stage_end(ctx, stage);
  if (strcmp(now.hash, about->hash) == 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s does not hold what was written: its bytes have the hash %s, its sidecar "
                      "says %s; remove it and rewrite again",
                      path, now.hash, about->hash);
}

/* The file at `path`; where `wanted` is not NULL, it must be that. */
static unicon_status check_file(unicon_ctx *ctx, const char *path, const char *source,
                                const unicon__sidecar *wanted) {
  unicon__sidecar about;
  unicon__bytes bytes;
  bool found;
  char *name = unicon__text_join(ctx, path, ".json", "");
  if (!name) return UNICON_ERR_MEMORY;
  UNICON_TRY(unicon__sidecar_read(ctx, name, &about, &found));
  if (!found)
    return unicon__fail(ctx, UNICON_ERR_IO, "%s has no sidecar %s to be checked by", path, name);
  const char *other = wanted ? unicon__rewrite_difference(&about, wanted) : NULL;
  if (other)
    return unicon__fail(ctx, UNICON_ERR_DATA,
                        "%s is not %s by this model: it was made with %s, %lld rows from row "
                        "%lld on",
                        path, source, other, (long long)about.rows, (long long)about.first);
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = check_bytes(ctx, path, &about, bytes);
  unicon__bytes_unmap(&bytes);
  return status;
}

unicon_status unicon_vectors_check(unicon_ctx *ctx, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  if (!path) return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT, "there is no path"));
  return unicon__leave(ctx, check_file(ctx, path, NULL, NULL));
}

static unicon_status check_rewrite(unicon_ctx *ctx, const unicon_view *given, int64_t first,
                                   int64_t count, unicon_form form, const char *path) {
  unicon_view view;
  unicon__sidecar wanted;
  UNICON_NEED(ctx, path);
  UNICON_TRY(unicon__view_take(ctx, given, &view));
  UNICON_TRY(unicon__rewrite_about(ctx, &view, first, count, form, &wanted));
  return check_file(ctx, path, view.rows->name, &wanted);
}

unicon_status unicon_rewrite_check(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                   int64_t count, unicon_form form, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, check_rewrite(ctx, view, first, count, form, path));
}
