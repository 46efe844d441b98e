/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rows.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/object.h"
#include "io/rows_format.h"
#include "io/text.h"
#include "linalg/convert.h"

typedef struct reader {
  const char *suffix;
  unicon__matrix_parser parse;
} reader;

static const reader readers[] = {
    {".npy", unicon__npy_parse},     {".npz", unicon__npz_parse},
    {".fvecs", unicon__fvecs_parse}, {".bvecs", unicon__bvecs_parse},
    {".fbin", unicon__fbin_parse},   {".u8bin", unicon__u8bin_parse},
    {".i8bin", unicon__i8bin_parse}, {".safetensors", unicon__tensor_parse},
    {".faiss", unicon__faiss_parse}, {".index", unicon__faiss_parse},
};

/* Formats that Python turns into .npy in one line: np.save(path + '.npy', BEFORE path AFTER). */
static const struct {
  const char *suffix, *modules, *before, *after;
} converters[] = {
    {".csv", "", "np.loadtxt('", "', delimiter=',', dtype='f4')"},
    {".tsv", "", "np.loadtxt('", "', delimiter='\\t', dtype='f4')"},
    {".txt", "", "np.loadtxt('", "', dtype='f4')"},
    {".vec", "", "np.loadtxt('", "', skiprows=1, usecols=range(1, 301), dtype='f4')"},
    {".npy.gz", ", gzip", "np.load(gzip.open('", "'))"},
    {".jsonl", ", json", "np.array([json.loads(l)['NAME'] for l in open('", "')], 'f4')"},
    {".json", ", json", "np.array(json.load(open('", "')), 'f4')"},
    {".parquet", ", pandas as pd", "np.stack(pd.read_parquet('", "')['COLUMN'])"},
    {".feather", ", pandas as pd", "np.stack(pd.read_feather('", "')['COLUMN'])"},
    {".arrow", ", pandas as pd", "np.stack(pd.read_feather('", "')['COLUMN'])"},
    {".lance", ", lance", "np.stack(lance.dataset('", "').to_table()['COLUMN'])"},
    {".pkl", ", pandas as pd", "np.asarray(pd.read_pickle('", "'), 'f4')"},
    {".pickle", ", pandas as pd", "np.asarray(pd.read_pickle('", "'), 'f4')"},
    {".joblib", ", joblib", "np.asarray(joblib.load('", "'), 'f4')"},
    {".pt", ", torch", "torch.load('", "', 'cpu').float().numpy()"},
    {".pth", ", torch", "torch.load('", "', 'cpu').float().numpy()"},
    {".bin", ", torch", "torch.load('", "', 'cpu')['NAME'].float().numpy()"},
    {".h5", ", h5py", "h5py.File('", "')['NAME'][:]"},
    {".hdf5", ", h5py", "h5py.File('", "')['NAME'][:]"},
    {".h5ad", ", anndata", "np.asarray(anndata.read_h5ad('", "').obsm['NAME'], 'f4')"},
    {".zarr", ", zarr", "zarr.open('", "')[:]"},
    {".mat", ", scipy.io", "scipy.io.loadmat('", "')['NAME'].astype('f4')"},
};

static const reader *find_reader(const char *path) {
  for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
    if (unicon__has_suffix(path, readers[k].suffix)) return &readers[k];
  return NULL;
}

static unicon_status refuse_format(unicon_ctx *ctx, const char *path) {
  const char *shown = unicon__text_shell(path);
  for (size_t k = 0; k < sizeof converters / sizeof *converters; k++)
    if (unicon__has_suffix(path, converters[k].suffix))
      return unicon__fail(ctx, UNICON_ERR_FORMAT,
                          "%s: %s files are not read; make an .npy file of it with: python3 -c "
                          "\"import numpy as np%s; np.save('%s.npy', %s%s%s)\"",
                          path, converters[k].suffix, converters[k].modules, shown,
                          converters[k].before, shown, converters[k].after);
  if (unicon__has_suffix(path, ".ibin") || unicon__has_suffix(path, ".ivecs"))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s holds whole numbers, which are read as labels or pairs, not as rows",
                        path);
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s: unknown file extension; supported: .npy, FILE.npz:ARRAY, "
                      "FILE.safetensors:TENSOR, .fvecs, .bvecs, .fbin, .u8bin, .i8bin, flat .faiss "
                      "indexes and folders of numbered .npy files",
                      path);
}

static unicon_status refuse_empty(unicon_ctx *ctx, const char *name, int64_t count, int64_t width) {
  if (count > 0 && width > 0) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_DATA, "%s is empty: %" PRId64 " rows of %" PRId64 " columns",
                      name, count, width);
}

unicon_status unicon__rows_reserve(unicon_ctx *ctx, unicon_rows *rows, int64_t files) {
  UNICON_ARENA_NEW(ctx, &rows->arena, rows->segment, files);
  UNICON_ARENA_NEW(ctx, &rows->arena, rows->map, files);
  return UNICON_OK;
}

unicon_status unicon__rows_add(unicon_ctx *ctx, unicon_rows *rows, const char *path,
                               const char *name, unicon__matrix_parser parse) {
  unicon__bytes *bytes = &rows->map[rows->maps];
  UNICON_TRY(unicon__bytes_map(ctx, path, bytes));
  rows->maps++; /* from here on unicon_rows_close unmaps it */
  unicon__matrix matrix = {0};
  UNICON_TRY(parse(ctx, name, *bytes, &matrix));
  UNICON_TRY(refuse_empty(ctx, name, matrix.rows.count, matrix.width));
  if (rows->segments > 0 && matrix.width != rows->width)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %" PRId64 " columns, but the files before it have %" PRId64, name,
                        matrix.width, rows->width);
  matrix.rows.first = rows->count;
  rows->segment[rows->segments++] = matrix.rows;
  rows->count += matrix.rows.count;
  rows->width = matrix.width;
  return UNICON_OK;
}

static unicon_status open_path(unicon_ctx *ctx, unicon_rows *rows, const char *name) {
  char *path = unicon__text_copy(ctx, &ctx->arena, name);
  if (!path) return UNICON_ERR_MEMORY;
  const char *member = unicon__member_part(name);
  if (member) path[member - 1 - name] = '\0';
  struct stat about;
  if (unicon__io_fault(ctx) || stat(path, &about)) return unicon__fail_io(ctx, "open", path);
  const bool other = unicon__has_suffix(path, ".zarr") || unicon__has_suffix(path, ".lance");
  if (S_ISDIR(about.st_mode) && !other) return unicon__rows_open_shards(ctx, rows, path);
  const reader *found = find_reader(path);
  if (!found) return refuse_format(ctx, path);
  UNICON_TRY(unicon__rows_reserve(ctx, rows, 1));
  return unicon__rows_add(ctx, rows, path, name, found->parse);
}

static unicon_status rows_new(unicon_ctx *ctx, const char *name, unicon_rows **out) {
  unicon_rows *rows = unicon__object_new(ctx, sizeof *rows);
  if (!rows) return UNICON_ERR_MEMORY;
  *out = rows;
  rows->name = unicon__text_copy(ctx, &rows->arena, name);
  return rows->name ? UNICON_OK : UNICON_ERR_MEMORY;
}

/* Hands the rows over, or closes them where making them failed. */
static unicon_status rows_finish(unicon_rows *rows, unicon_status status, unicon_rows **out) {
  if (status == UNICON_OK)
    *out = rows;
  else
    unicon_rows_close(rows);
  return status;
}

static unicon_status rows_open(unicon_ctx *ctx, const char *path, unicon_rows **out) {
  UNICON_NEED(ctx, path);
  UNICON_NEED(ctx, out);
  unicon_rows *rows = NULL;
  unicon_status status = rows_new(ctx, path, &rows);
  if (status == UNICON_OK) status = open_path(ctx, rows, path);
  return rows_finish(rows, status, out);
}

unicon_status unicon_rows_open(unicon_ctx *ctx, const char *path, unicon_rows **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, rows_open(ctx, path, out));
}

/* Whether the byte distance of every element from the first is an int64_t, and so is the number
 * of floats they become. */
static bool extent_fits(const unicon__segment *rows, int64_t width) {
  int64_t down, across, last, floats;
  return !__builtin_mul_overflow(rows->count, rows->row_stride, &down) &&
         !__builtin_mul_overflow(width, rows->col_stride, &across) &&
         !__builtin_add_overflow(down, across, &last) &&
         !__builtin_mul_overflow(rows->count, width, &floats) && floats <= INT64_MAX / 4;
}

static unicon_status check_wrapped(unicon_ctx *ctx, const char *name, const unicon__segment *rows,
                                   int64_t width) {
  UNICON_NEED(ctx, name);
  const unsigned char *data = rows->data;
  UNICON_NEED(ctx, data);
  if (unicon__dtype_size(rows->dtype) == 0)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: dtype %d is not one of UNICON_F16 (0) .. UNICON_U8 (5)", name,
                        (int)rows->dtype);
  if (rows->count < 0 || width < 0)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: %" PRId64 " rows of %" PRId64 " columns; sizes must not be negative",
                        name, rows->count, width);
  UNICON_TRY(refuse_empty(ctx, name, rows->count, width));
  if (!extent_fits(rows, width))
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: %" PRId64 " rows of %" PRId64 " columns with strides %" PRId64
                        " and %" PRId64 " do not fit in memory",
                        name, rows->count, width, rows->row_stride, rows->col_stride);
  return UNICON_OK;
}

unicon_status unicon__rows_wrap(unicon_ctx *ctx, const char *name, const unicon__segment *segment,
                                int64_t width, unicon_rows **out) {
  UNICON_NEED(ctx, out);
  *out = NULL;
  UNICON_TRY(check_wrapped(ctx, name, segment, width));
  unicon_rows *rows = NULL;
  unicon_status status = rows_new(ctx, name, &rows);
  if (status == UNICON_OK) status = unicon__rows_reserve(ctx, rows, 1);
  if (status == UNICON_OK) {
    rows->segment[0] = *segment;
    rows->segments = 1;
    rows->count = segment->count;
    rows->width = width;
  }
  return rows_finish(rows, status, out);
}

unicon_status unicon_rows_wrap(unicon_ctx *ctx, const char *name, const void *data,
                               unicon_dtype dtype, int64_t count, int64_t width, int64_t row_stride,
                               int64_t col_stride, unicon_rows **out) {
  if (out) *out = NULL;
  UNICON_TRY(unicon__enter(ctx));
  const unicon__segment segment = {data, 0, count, row_stride, col_stride, dtype, NULL, 0};
  return unicon__leave(ctx, unicon__rows_wrap(ctx, name, &segment, width, out));
}

void unicon_rows_close(unicon_rows *rows) {
  if (!rows) return;
  for (int64_t k = 0; k < rows->maps; k++) unicon__bytes_unmap(&rows->map[k]);
  unicon__object_free(rows);
}

int64_t unicon_rows_count(const unicon_rows *rows) {
  return rows ? rows->count : 0;
}

int64_t unicon_rows_width(const unicon_rows *rows) {
  return rows ? rows->width : 0;
}

static const unicon__segment *find_segment(const unicon_rows *rows, int64_t row) {
  int64_t low = 0, high = rows->segments - 1;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    if (rows->segment[middle].first <= row)
      low = middle;
    else
      high = middle - 1;
  }
  return &rows->segment[low];
}

/* Segments of the rows index[0..count-1], written to `segment` unless it is NULL; how many. */
static int64_t cut_segments(const unicon_rows *rows, const int64_t *index, int64_t count,
                            unicon__segment *segment) {
  int64_t used = 0;
  for (int64_t k = 0, run; k < count; k += run) {
    const int64_t row = index ? index[k] : k;
    const unicon__segment *from = find_segment(rows, row);
    const int64_t left = from->first + from->count - row;
    run = 1;
    while (k + run < count && run < left && (!index || index[k + run] == row + run)) run++;
    if (segment) {
      segment[used] = *from;
      segment[used].data = from->data + (row - from->first) * from->row_stride;
      segment[used].away_first = from->away_first + row - from->first;
      segment[used].first = k;
      segment[used].count = run;
    }
    used++;
  }
  return used;
}

unicon_status unicon__rows_select(unicon_ctx *ctx, const unicon_rows *rows, const int64_t *index,
                                  int64_t count, unicon_rows **out) {
  unicon_rows *chosen = NULL;
  *out = NULL;
  unicon_status status = rows_new(ctx, rows->name, &chosen);
  if (status == UNICON_OK)
    status = unicon__rows_reserve(ctx, chosen, cut_segments(rows, index, count, NULL));
  if (status == UNICON_OK) {
    chosen->segments = cut_segments(rows, index, count, chosen->segment);
    chosen->count = count;
    chosen->width = rows->width;
  }
  return rows_finish(chosen, status, out);
}

void unicon__rows_load(const unicon_rows *rows, const int64_t *index, int64_t first, int64_t count,
                       float *out, int64_t ld) {
  const unicon__segment *segment = rows->segment;
  for (int64_t k = 0; k < count; k++) {
    const int64_t row = index ? index[k] : first + k;
    if (row < segment->first || row >= segment->first + segment->count)
      segment = find_segment(rows, row);
    unicon__convert(segment->dtype, segment->data + (row - segment->first) * segment->row_stride,
                    segment->col_stride, rows->width, out + k * ld);
  }
}

/* ---- reading in order --------------------------------------------------------------------- */

enum { LEAST_BYTES = 1 << 26 }; /* of a side: less stays in memory anyway */

/* Advice about the pages of rows [from, to) of a segment of whole rows. Those that it shares with
 * rows before and behind are left out where they are `given back`. */
static void advise(const unicon__segment *s, int64_t from, int64_t to, int advice) {
  const bool back = advice == MADV_DONTNEED;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t start = (uintptr_t)s->data + (uintptr_t)((from - s->first) * s->row_stride);
  const uintptr_t end = (uintptr_t)s->data + (uintptr_t)((to - s->first) * s->row_stride);
  const uintptr_t first = (back ? start + page - 1 : start) / page * page;
  const uintptr_t last = back ? end / page * page : end;
  if (last > first) (void)madvise((void *)first, last - first, advice);
}

static void advise_all(const unicon_rows *rows, int64_t first, int64_t count, int advice) {
  if (rows->maps == 0) return; /* the caller's memory is the caller's */
  const int64_t end = first + count < rows->count ? first + count : rows->count;
  for (int64_t k = 0; k < rows->segments; k++) {
    const unicon__segment *s = &rows->segment[k];
    const int64_t from = first > s->first ? first : s->first;
    const int64_t to = end < s->first + s->count ? end : s->first + s->count;
    const int64_t size = unicon__dtype_size(s->dtype);
    const bool whole = s->col_stride == size && s->row_stride >= size * rows->width;
    if (from < to && whole && rows->count * s->row_stride >= LEAST_BYTES)
      advise(s, from, to, advice);
  }
}

void unicon__rows_ahead(const unicon_rows *rows, int64_t first, int64_t count) {
  advise_all(rows, first, count, MADV_WILLNEED);
}

void unicon__rows_behind(const unicon_rows *rows, int64_t first, int64_t count) {
  advise_all(rows, first, count, MADV_DONTNEED);
}

static unicon_status rows_read(unicon_ctx *ctx, const unicon_rows *rows, int64_t first,
                               int64_t count, float *out) {
  UNICON_NEED(ctx, rows);
  UNICON_NEED(ctx, out);
  if (first < 0 || count < 0 || count > rows->count - first)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s: %" PRId64 " rows from row %" PRId64
                        " on were asked for, but it has "
                        "%" PRId64 " rows",
                        rows->name, count, first, rows->count);
  unicon__rows_load(rows, NULL, first, count, out, rows->width);
  return UNICON_OK;
}

unicon_status unicon_rows_read(unicon_ctx *ctx, const unicon_rows *rows, int64_t first,
                               int64_t count, float *out) {
  UNICON_TRY(unicon__enter(ctx));
  return unicon__leave(ctx, rows_read(ctx, rows, first, count, out));
}
