/* SPDX-License-Identifier: Apache-2.0 */
/* An index carried over in pieces. Rows go to OUT.part, and every now and then OUT.part.json says
 * how far they are, so that work goes on where it stopped; at the end both get their final names.
 * A file is what its sidecar says or it is refused: another model, another source, another space,
 * too few rows, other bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "io/object.h"
#include "io/rows_format.h"
#include "io/text.h"
#include "linalg/convert.h"
#include "model/embed.h"
#include "use/likeness.h"
#include "use/rewrite.h"

static const double seconds_between_notes = 5;

/* ---- what is written ---------------------------------------------------------------------- */

typedef struct job {
  const unicon_view *view;
  unicon_form form;
  int64_t width, size; /* numbers of a row, bytes of a number */
  char *path, *part, *journal, *sidecar;
  unicon__sidecar about; /* as it will be; done and hash as they are */
  int file;
  float *rows;    /* UNICON__REWRITE_BLOCK by width */
  uint16_t *half; /* the same as float16, or NULL */
} job;

/* Whether the rows look like rows of their side. */
static unicon_status check_likeness(unicon_ctx *ctx, const unicon_view *view,
                                    const unicon_options *options) {
  if (view->rows->width == unicon_model_width(view->model, view->side) &&
      unicon__is(options, UNICON__TRUST, "off"))
    return unicon__likeness_check(ctx, view->model, (int)view->side, view->rows);
  return UNICON_OK;
}

static unicon_status open_job(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                              int64_t count, unicon_form form, unicon_dtype dtype, const char *path,
                              job *j) {
  *j = (job){.view = view, .form = form, .file = -1};
  UNICON_TRY(unicon__rewrite_about(ctx, view, first, count, form, &j->about));
  if (!unicon__has_suffix(path, ".npy"))
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: the name must end in .npy", path);
  if (dtype != UNICON_F32 && dtype != UNICON_F16)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "vectors are written as float32 or float16");
  const bool half = dtype == UNICON_F16;
  j->width = j->about.width;
  j->size = half ? 2 : 4;
  j->path = unicon__text_join(ctx, path, "", "");
  j->part = unicon__text_join(ctx, path, ".part", "");
  j->journal = unicon__text_join(ctx, path, ".part", ".json");
  j->sidecar = unicon__text_join(ctx, path, ".json", "");
  if (!j->path || !j->part || !j->journal || !j->sidecar) return UNICON_ERR_MEMORY;
  snprintf(j->about.dtype, sizeof j->about.dtype, "%s", half ? "<f2" : "<f4");
  unicon__rewrite_hash_begin(&j->about);
  UNICON_NEW(ctx, j->rows, UNICON__REWRITE_BLOCK * j->width);
  if (half) UNICON_NEW(ctx, j->half, UNICON__REWRITE_BLOCK * j->width);
  return UNICON_OK;
}

/* Is what another sidecar describes the same work? */
static const char *difference(const unicon__sidecar *a, const unicon__sidecar *b) {
  const char *other = unicon__rewrite_difference(a, b);
  return other || strcmp(a->dtype, b->dtype) == 0 ? other : "another form";
}

/* ---- rows --------------------------------------------------------------------------------- */

/* The block from row `at` on, as it is written: address and bytes. */
static unicon_status make_block(unicon_ctx *ctx, job *j, int64_t at, int64_t *count,
                                const void **data, size_t *bytes) {
  const int64_t left = j->about.rows - at;
  *count = left < UNICON__REWRITE_BLOCK ? left : UNICON__REWRITE_BLOCK;
  UNICON_TRY(unicon__embed(ctx, j->view, j->about.first + at, *count, j->form, j->rows));
  *data = j->rows;
  *bytes = (size_t)(*count * j->width * j->size);
  if (!j->half) return UNICON_OK;
  unicon__to_half(j->rows, *count * j->width, j->half);
  *data = j->half;
  return UNICON_OK;
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

/* The last block that the journal speaks of is made again and compared. On another
 * processor it may be rounded otherwise: then the bytes so far must be those of the journal. */
static unicon_status compare_last(unicon_ctx *ctx, job *j, const unicon__sidecar *journal) {
  const int64_t done = journal->done,
                at = (done - 1) / UNICON__REWRITE_BLOCK * UNICON__REWRITE_BLOCK;
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
    status = unicon__rewrite_hash_rows(ctx, file.data + UNICON__NPY_HEADER, done,
                                       (size_t)(j->width * j->size), &now);
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
    unicon_status status =
        unicon__stage_step(ctx, j->about.done / UNICON__REWRITE_BLOCK,
                           (j->about.rows + UNICON__REWRITE_BLOCK - 1) / UNICON__REWRITE_BLOCK);
    if (status == UNICON_OK) status = make_block(ctx, j, j->about.done, &count, &data, &bytes);
    if (status != UNICON_OK) {
      const unicon_status kept = note(ctx, j); /* what is there can be gone on with */
      return kept == UNICON_OK ? status : kept;
    }
    UNICON_TRY(write_all(ctx, j, data, bytes));
    unicon__rewrite_hash(&j->about, data, bytes);
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
  UNICON_TRY(open_job(ctx, &view, first, count, form, dtype, path, &j));
  UNICON_TRY(check_likeness(ctx, &view, options));
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
