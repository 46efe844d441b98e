/* SPDX-License-Identifier: Apache-2.0 */
/* An index carried over in pieces. Rows go to OUT.part, and every now and then OUT.part.json says
 * how far they are, so that work goes on where it stopped; at the end both get their final names.
 * A file is what its sidecar says or it is refused: another model, another source, another space,
 * too few rows, other bytes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/options.h"
#include "io/object.h"
#include "io/rows_format.h"
#include "io/sidecar.h"
#include "io/text.h"
#include "linalg/convert.h"
#include "model/embed.h"
#include "unicon/migrate.h"
#include "use/likeness.h"

enum {
  BLOCK_ROWS = 4096, /* embedded, written and hashed at a time */
  SAMPLE_ROWS = 256  /* of the source, to know it again */
};

static const double seconds_between_notes = 5;

/* ---- what is written ---------------------------------------------------------------------- */

typedef struct job {
  const unicon_view *view;
  unicon_form form;
  int64_t width, size; /* numbers of a row, bytes of a number */
  char *path, *part, *journal, *sidecar;
  unicon__sidecar about; /* as it will be; done and hash as they are */
  int file;
  float *rows;    /* BLOCK_ROWS by width */
  uint16_t *half; /* the same as float16, or NULL */
} job;

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

/* Which way the rows go, and whether they look like rows of their side. */
static unicon_status check_way(unicon_ctx *ctx, const unicon_view *view,
                               const unicon_options *options) {
  const unicon_model *model = view->model;
  if (!model) return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "a rewrite needs a model");
  if (view->side != UNICON_X && view->side != UNICON_Y)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "side is %d; accepted: 0 (x) or 1 (y)",
                        (int)view->side);
  if (view->rows->width == unicon_model_width(model, view->side) &&
      unicon__is(options, UNICON__TRUST, "off"))
    return unicon__likeness_check(ctx, model, (int)view->side, view->rows);
  return UNICON_OK;
}

static unicon_status open_job(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                              int64_t count, unicon_form form, unicon_dtype dtype, const char *path,
                              job *j) {
  unicon__lens lens;
  *j = (job){.view = view, .form = form, .file = -1};
  UNICON_TRY(unicon__lens_open(ctx, view, &lens));
  if (!unicon__has_suffix(path, ".npy"))
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: the name must end in .npy", path);
  if (first < 0 || count < 1 || count > lens.count || first > lens.count - count)
    return unicon__fail(
        ctx, UNICON_ERR_ARGUMENT, "%lld rows from row %lld on were asked of %s, which has %lld",
        (long long)count, (long long)first, view->rows->name, (long long)lens.count);
  if (dtype != UNICON_F32 && dtype != UNICON_F16)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "vectors are written as float32 or float16");
  const bool half = dtype == UNICON_F16;
  j->width = unicon_form_width(lens.r, form);
  j->size = half ? 2 : 4;
  j->path = unicon__text_join(ctx, path, "", "");
  j->part = unicon__text_join(ctx, path, ".part", "");
  j->journal = unicon__text_join(ctx, path, ".part", ".json");
  j->sidecar = unicon__text_join(ctx, path, ".json", "");
  if (!j->path || !j->part || !j->journal || !j->sidecar) return UNICON_ERR_MEMORY;
  j->about = (unicon__sidecar){.rows = count, .width = j->width, .first = first};
  unicon_model_id(view->model, j->about.model);
  snprintf(j->about.space, sizeof j->about.space, "%s", space_of(view->model));
  snprintf(j->about.form, sizeof j->about.form, "%s", form_word(form));
  snprintf(j->about.dtype, sizeof j->about.dtype, "%s", half ? "<f2" : "<f4");
  snprintf(j->about.hash, sizeof j->about.hash, "%016d", 0);
  UNICON_NEW(ctx, j->rows, BLOCK_ROWS * j->width);
  if (half) UNICON_NEW(ctx, j->half, BLOCK_ROWS * j->width);
  return sample_source(ctx, view->rows, j->about.source);
}

/* Is what another sidecar describes the same work? */
static const char *difference(const unicon__sidecar *a, const unicon__sidecar *b) {
  if (strcmp(a->model, b->model) != 0) return "another model";
  if (strcmp(a->source, b->source) != 0 || a->first != b->first) return "another source";
  if (strcmp(a->form, b->form) != 0 || strcmp(a->dtype, b->dtype) != 0) return "another form";
  if (a->rows != b->rows || a->width != b->width) return "another size";
  return NULL;
}

/* ---- rows --------------------------------------------------------------------------------- */

/* The block from row `at` on, as it is written: address and bytes. */
static unicon_status make_block(unicon_ctx *ctx, job *j, int64_t at, int64_t *count,
                                const void **data, size_t *bytes) {
  const int64_t left = j->about.rows - at;
  *count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
  UNICON_TRY(unicon__embed(ctx, j->view, j->about.first + at, *count, j->form, j->rows));
  *data = j->rows;
  *bytes = (size_t)(*count * j->width * j->size);
  if (!j->half) return UNICON_OK;
  unicon__to_half(j->rows, *count * j->width, j->half);
  *data = j->half;
  return UNICON_OK;
}

static uint64_t hash_of(const char *text) {
  uint64_t h = 0;
  for (const char *c = text; *c; c++) h = 16 * h + (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
  return h;
}

static void take_hash(unicon__sidecar *about, const void *data, size_t bytes) {
  snprintf(about->hash, sizeof about->hash, "%016" PRIx64,
           unicon__hash(hash_of(about->hash), data, bytes));
}

static unicon_status write_all(unicon_ctx *ctx, const job *j, const void *data, size_t bytes) {
  const char *at = data;
  while (bytes > 0) {
    const ssize_t n = unicon__io_fault(ctx) ? -1 : write(j->file, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unicon__fail_io(ctx, "write", j->part);
    at += n;
    bytes -= (size_t)n;
  }
  return UNICON_OK;
}

static unicon_status write_header(unicon_ctx *ctx, const job *j) {
  char header[UNICON__NPY_HEADER + 1];
  unicon__npy_header(j->about.dtype, j->about.rows, j->width, header);
  return write_all(ctx, j, header, UNICON__NPY_HEADER);
}

/* ---- going on where it stopped ------------------------------------------------------------ */

/* The hash of rows that were written block by block; a step of the stage for each block. */
static unicon_status hash_rows(unicon_ctx *ctx, const unsigned char *rows, int64_t count,
                               size_t row, unicon__sidecar *out) {
  snprintf(out->hash, sizeof out->hash, "%016d", 0);
  for (int64_t at = 0; at < count; at += BLOCK_ROWS) {
    const int64_t left = count - at;
    UNICON_TRY(unicon__stage_step(ctx, at, count));
    take_hash(out, rows + (size_t)at * row, (size_t)(left < BLOCK_ROWS ? left : BLOCK_ROWS) * row);
  }
  return UNICON_OK;
}

/* The last block that the journal speaks of is made again and compared. On another
 * processor it may be rounded otherwise: then the bytes so far must be those of the journal. */
static unicon_status compare_last(unicon_ctx *ctx, job *j, const unicon__sidecar *journal) {
  const int64_t done = journal->done, at = (done - 1) / BLOCK_ROWS * BLOCK_ROWS;
  int64_t count;
  const void *data;
  size_t bytes;
  unicon__bytes file;
  if (done == 0) return UNICON_OK;
  UNICON_TRY(make_block(ctx, j, at, &count, &data, &bytes));
  UNICON_TRY(unicon__bytes_map(ctx, j->part, &file));
  const size_t from = UNICON__NPY_HEADER + (size_t)(at * j->width * j->size);
  bool equal = from + bytes <= file.size && memcmp(file.data + from, data, bytes) == 0;
  unicon_status status = UNICON_OK;
  if (!equal && from + bytes <= file.size) {
    unicon__sidecar now = {.rows = 0};
    const int stage = unicon__stage_begin(ctx, "check", 0);
    status =
        hash_rows(ctx, file.data + UNICON__NPY_HEADER, done, (size_t)(j->width * j->size), &now);
    unicon__stage_end(ctx, stage);
    equal = strcmp(now.hash, journal->hash) == 0;
  }
  unicon__bytes_unmap(&file);
  UNICON_TRY(status);
  if (equal) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s does not hold what its journal says, from row %lld on; remove it and "
                      "%s to start again",
                      j->part, (long long)at, j->journal);
}

/* Opens the part: at its end where it belongs to this work, or anew. */
static unicon_status open_part(unicon_ctx *ctx, job *j) {
  unicon__sidecar old;
  bool found;
  struct stat about;
  UNICON_TRY(unicon__sidecar_read(ctx, j->journal, &old, &found));
  if (found && stat(j->part, &about) == 0) {
    const char *other = difference(&old, &j->about);
    const int64_t bytes = UNICON__NPY_HEADER + old.done * j->width * j->size;
    if (other)
      return unicon__fail(ctx, UNICON_ERR_DATA,
                          "%s was begun with %s; remove it and %s to start again", j->part, other,
                          j->journal);
    if (about.st_size < bytes)
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "%s has %lld bytes, but its journal speaks of %lld rows, %lld bytes; "
                          "remove both to start again",
                          j->part, (long long)about.st_size, (long long)old.done, (long long)bytes);
    UNICON_TRY(compare_last(ctx, j, &old));
    j->about.done = old.done;
    memcpy(j->about.hash, old.hash, sizeof old.hash);
    j->file = unicon__io_fault(ctx) ? -1 : open(j->part, O_WRONLY | O_CLOEXEC);
    if (j->file < 0 || ftruncate(j->file, bytes) != 0 || lseek(j->file, bytes, SEEK_SET) < 0)
      return unicon__fail_io(ctx, "open", j->part);
    return UNICON_OK;
  }
  if (unicon__io_fault(ctx) || (unlink(j->journal) != 0 && errno != ENOENT)) /* of other work */
    return unicon__fail_io(ctx, "remove", j->journal);
  j->file =
      unicon__io_fault(ctx) ? -1 : open(j->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (j->file < 0) return unicon__fail_io(ctx, "create", j->part);
  return write_header(ctx, j);
}

/* Rows are safe on the disk before the journal speaks of them. */
static unicon_status note(unicon_ctx *ctx, const job *j) {
  if (unicon__io_fault(ctx) || fsync(j->file) != 0) return unicon__fail_io(ctx, "write", j->part);
  return unicon__sidecar_write(ctx, j->journal, &j->about);
}

static unicon_status write_rows(unicon_ctx *ctx, job *j) {
  double noted = unicon__now();
  const int stage = unicon__stage_begin(ctx, "rewrite", 0.99);
  while (j->about.done < j->about.rows) {
    unicon__block *frame = unicon__frame_open(ctx);
    int64_t count;
    const void *data;
    size_t bytes;
    unicon_status status = unicon__stage_step(ctx, j->about.done / BLOCK_ROWS,
                                              (j->about.rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
    if (status == UNICON_OK) status = make_block(ctx, j, j->about.done, &count, &data, &bytes);
    if (status != UNICON_OK) {
      const unicon_status kept = note(ctx, j); /* what is there can be gone on with */
      return kept == UNICON_OK ? status : kept;
    }
    UNICON_TRY(write_all(ctx, j, data, bytes));
    take_hash(&j->about, data, bytes);
    j->about.done += count;
    if (unicon__now() - noted > seconds_between_notes) {
      UNICON_TRY(note(ctx, j));
      noted = unicon__now();
    }
    unicon__frame_close(ctx, frame);
  }
  unicon__stage_end(ctx, stage);
  return UNICON_OK;
}

/* The sidecar comes first: a file without one says nothing, and one without its file is no harm. So
 * an older file goes before, or it would pass for what the sidecar describes. */
static unicon_status finish(unicon_ctx *ctx, const job *j) {
  if (unicon__io_fault(ctx) || fsync(j->file) != 0) return unicon__fail_io(ctx, "write", j->part);
  if (unicon__io_fault(ctx) || (unlink(j->path) != 0 && errno != ENOENT))
    return unicon__fail_io(ctx, "replace", j->path);
  UNICON_TRY(unicon__sidecar_write(ctx, j->sidecar, &j->about));
  if (unicon__io_fault(ctx) || rename(j->part, j->path) != 0)
    return unicon__fail_io(ctx, "rename a part to", j->path);
  unlink(j->journal);
  return UNICON_OK;
}

/* ---- checking ----------------------------------------------------------------------------- */

/* Shape and bytes of the file against its sidecar. */
static unicon_status check_bytes(unicon_ctx *ctx, const char *path, const unicon__sidecar *about,
                                 unicon__bytes bytes) {
  const int64_t size = strcmp(about->dtype, "<f2") == 0 ? 2 : 4;
  int64_t want = 0;
  unicon__sidecar now = {.rows = 0};
  if (about->width < 1 || __builtin_mul_overflow(about->rows, about->width * size, &want) ||
      __builtin_add_overflow(want, UNICON__NPY_HEADER, &want) || (int64_t)bytes.size != want)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has %zu bytes, but its sidecar speaks of %lld rows of %lld numbers, "
                        "%lld bytes: it was cut off or replaced",
                        path, bytes.size, (long long)about->rows, (long long)about->width,
                        (long long)want);
  const int stage = unicon__stage_begin(ctx, "check", 0.99);
  UNICON_TRY(hash_rows(ctx, bytes.data + UNICON__NPY_HEADER, about->rows,
                       (size_t)(about->width * size), &now));
  unicon__stage_end(ctx, stage);
  if (strcmp(now.hash, about->hash) == 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s does not hold what was written: its bytes have the hash %s, its sidecar "
                      "says %s",
                      path, now.hash, about->hash);
}

static unicon_status check_file(unicon_ctx *ctx, const char *path) {
  unicon__sidecar about;
  unicon__bytes bytes;
  bool found;
  char *name = unicon__text_join(ctx, path, ".json", "");
  if (!name) return UNICON_ERR_MEMORY;
  UNICON_TRY(unicon__sidecar_read(ctx, name, &about, &found));
  if (!found)
    return unicon__fail(ctx, UNICON_ERR_IO, "%s has no sidecar %s to be checked by", path, name);
  UNICON_TRY(unicon__bytes_map(ctx, path, &bytes));
  const unicon_status status = check_bytes(ctx, path, &about, bytes);
  unicon__bytes_unmap(&bytes);
  return status;
}

unicon_status unicon_vectors_check(unicon_ctx *ctx, const char *path) {
  UNICON_TRY(unicon__enter(ctx));
  if (!path) return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT, "there is no path"));
  return unicon__leave(ctx, check_file(ctx, path));
}

/* A file that is finished already. */
static unicon_status is_finished(unicon_ctx *ctx, const job *j, bool *out) {
  unicon__sidecar old;
  bool found;
  struct stat about;
  *out = false;
  UNICON_TRY(unicon__sidecar_read(ctx, j->sidecar, &old, &found));
  if (!found || stat(j->part, &about) == 0 || stat(j->path, &about) != 0 ||
      difference(&old, &j->about))
    return UNICON_OK;
  *out =
      old.done == old.rows && about.st_size == UNICON__NPY_HEADER + old.rows * j->width * j->size;
  return UNICON_OK;
}

/* ---- unicon_rewrite ----------------------------------------------------------------------- */

static unicon_status run(unicon_ctx *ctx, job *j, int64_t *there) {
  bool finished;
  UNICON_TRY(is_finished(ctx, j, &finished));
  if (finished) {
    *there = j->about.rows;
    return UNICON_OK;
  }
  unicon_status status = open_part(ctx, j);
  *there = j->about.done;
  if (status == UNICON_OK) status = write_rows(ctx, j);
  if (status == UNICON_OK) status = finish(ctx, j);
  if (j->file >= 0) close(j->file);
  return status;
}

static unicon_status rewrite(unicon_ctx *ctx, const unicon_view *given, int64_t first,
                             int64_t count, unicon_form form, unicon_dtype dtype, const char *path,
                             const unicon_options *options, int64_t *there) {
  unicon_view view;
  job j;
  UNICON_NEED(ctx, path);
  UNICON_TRY(unicon__view_take(ctx, given, &view));
  UNICON_TRY(check_way(ctx, &view, options));
  UNICON_TRY(open_job(ctx, &view, first, count, form, dtype, path, &j));
  return run(ctx, &j, there);
}

unicon_status unicon_rewrite(unicon_ctx *ctx, const unicon_view *view, int64_t first, int64_t count,
                             unicon_form form, unicon_dtype dtype, const char *path,
                             const unicon_options *options, int64_t *there) {
  int64_t unused;
  if (!there) there = &unused;
  *there = 0;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, rewrite(ctx, view, first, count, form, dtype, path, options, there));
}
