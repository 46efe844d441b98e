/* SPDX-License-Identifier: Apache-2.0 */
/* What the library writes: matrices, and the safetensors container with its reader. */
#include "scratch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "io/outfile.h"
#include "io/safetensors.h"
#include "linalg/convert.h"

static const float matrix[6] = {0.5f, 1, 10, -11, 20, 65504};

static size_t read_back(const char *path, unsigned char *out, size_t room) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(out, 1, room, file);
  fclose(file);
  return size;
}

static void written_npy(void **state) {
  scratch *s = *state;
  static const struct {
    unicon_file_dtype dtype;
    size_t size;
    const char *dictionary;
  } cases[] = {
      {UNICON_WRITE_F32, 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"},
      {UNICON_WRITE_F16, 2, "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2), }"},
      {UNICON_WRITE_I64, 8, "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }"}};
  const int64_t integers[6] = {0, -1, 2, INT64_MAX, INT64_MIN, 5};
  uint16_t half[6];
  unicon__to_half(matrix, 6, half);
  for (int k = 0; k < 3; k++) {
    const void *stored = k == 0 ? (const void *)matrix : k == 1 ? (const void *)half : integers;
    const char *rows = k == 2 ? (const char *)integers : (const char *)matrix;
    const char *path = scratch_path(s, "m.npy");
    unicon_writer *writer;
    assert_int_equal(unicon_writer_open(s->ctx, path, cases[k].dtype, 3, 2, &writer), UNICON_OK);
    assert_int_equal(unicon_writer_append(s->ctx, writer, rows, 2), UNICON_OK);
    assert_int_equal(unicon_writer_append(s->ctx, writer, rows + (k == 2 ? 32 : 16), 1), UNICON_OK);
    assert_int_equal(unicon_writer_commit(s->ctx, writer), UNICON_OK);
    unsigned char file[512];
    const size_t size = read_back(path, file, sizeof file);
    const size_t header = (size_t)(file[8] | file[9] << 8) + 10;
    assert_memory_equal(file, "\x93NUMPY\x01\x00", 8);
    assert_int_equal(header % 64, 0);
    assert_int_equal(file[header - 1], '\n');
    assert_memory_equal(file + 10, cases[k].dictionary, strlen(cases[k].dictionary));
    assert_int_equal(size, header + 6 * cases[k].size);
    assert_memory_equal(file + header, stored, 6 * cases[k].size);
  }
  assert_int_equal(scratch_count_entries(s->folder), 1);
}

/* More values than the writer converts at a time. */
static void written_half_blocks(void **state) {
  scratch *s = *state;
  enum { ROWS = 50000, WIDTH = 3 };
  float *values = malloc(sizeof(float) * ROWS * WIDTH);
  float *back = malloc(sizeof(float) * ROWS * WIDTH);
  for (int k = 0; k < ROWS * WIDTH; k++) values[k] = (float)(k % 2039);
  const char *path = scratch_path(s, "h.npy");
  unicon_writer *writer;
  unicon_rows *rows;
  assert_int_equal(unicon_writer_open(s->ctx, path, UNICON_WRITE_F16, ROWS, WIDTH, &writer), 0);
  assert_int_equal(unicon_writer_append(s->ctx, writer, values, ROWS), UNICON_OK);
  assert_int_equal(unicon_writer_commit(s->ctx, writer), UNICON_OK);
  assert_int_equal(unicon_rows_open(s->ctx, path, &rows), UNICON_OK);
  assert_int_equal(unicon_rows_read(s->ctx, rows, 0, ROWS, back), UNICON_OK);
  assert_memory_equal(values, back, sizeof(float) * ROWS * WIDTH);
  unicon_rows_close(rows);
  free(values);
  free(back);
}

/* A finite value that float16 would make infinite; infinities that were given are kept. */
static void too_large_for_half(void **state) {
  scratch *s = *state;
  const float fits[4] = {65519.996f, -65519.996f, INFINITY, NAN}, large[4] = {1, 2, -65520.0f, 3};
  const char *path = scratch_path(s, "h.npy");
  unicon_writer *writer;
  assert_int_equal(unicon_writer_open(s->ctx, path, UNICON_WRITE_F16, 4, 2, &writer), UNICON_OK);
  assert_int_equal(unicon_writer_append(s->ctx, writer, fits, 2), UNICON_OK);
  scratch_failed(s, unicon_writer_append(s->ctx, writer, large, 2), UNICON_ERR_DATA,
                 "-65520 in row 3", "float32");
  unicon_writer_discard(writer);
  assert_int_equal(scratch_count_entries(s->folder), 0);
}

static void written_fbin(void **state) {
  scratch *s = *state;
  const char *path = scratch_path(s, "m.fbin");
  unicon_writer *writer;
  assert_int_equal(unicon_writer_open(s->ctx, path, UNICON_WRITE_F32, 3, 2, &writer), UNICON_OK);
  assert_int_equal(unicon_writer_append(s->ctx, writer, matrix, 3), UNICON_OK);
  assert_int_equal(unicon_writer_commit(s->ctx, writer), UNICON_OK);
  unsigned char file[64];
  assert_int_equal(read_back(path, file, sizeof file), 32);
  assert_memory_equal(file, "\x03\0\0\0\x02\0\0\0", 8);
  assert_memory_equal(file + 8, matrix, 24);
}

static void open_refused(scratch *s, const char *path, int dtype, int64_t rows, int64_t width,
                         unicon_status expected, const char *word, const char *other) {
  unicon_writer *writer = (unicon_writer *)(void *)s;
  scratch_failed(s,
                 unicon_writer_open(s->ctx, path, (unicon_file_dtype)dtype, rows, width, &writer),
                 expected, word, other);
  assert_null(writer);
}

static void writer_defects(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_writer *writer;
  const char *path = scratch_path(s, "m.npy"), *fbin = scratch_path(s, "m.fbin");
  open_refused(s, scratch_path(s, "m.csv"), 0, 3, 2, UNICON_ERR_FORMAT, "m.csv", ".npy or .fbin");
  open_refused(s, fbin, 1, 3, 2, UNICON_ERR_FORMAT, "m.fbin", "not '<f2'");
  open_refused(s, fbin, 2, 3, 2, UNICON_ERR_FORMAT, "m.fbin", "not '<i8'");
  open_refused(s, fbin, 0, 1LL << 32, 1, UNICON_ERR_FORMAT, "m.fbin", "4294967296 rows");
  open_refused(s, path, 7, 3, 2, UNICON_ERR_ARGUMENT, "dtype 7", "m.npy");
  open_refused(s, path, 0, 0, 2, UNICON_ERR_ARGUMENT, "0 rows", "m.npy");
  open_refused(s, path, 0, 3, -2, UNICON_ERR_ARGUMENT, "-2 columns", "m.npy");
  open_refused(s, path, 0, 1LL << 40, 1LL << 40, UNICON_ERR_ARGUMENT, "1099511627776 rows", "");
  open_refused(s, NULL, 0, 3, 2, UNICON_ERR_ARGUMENT, "path is NULL", "");
  open_refused(s, scratch_path(s, "no/where.npy"), 0, 3, 2, UNICON_ERR_IO, "no/where.npy",
               "No such file");
  assert_int_equal(mkdir(scratch_path(s, "f.npy"), 0700), 0);
  open_refused(s, scratch_path(s, "f.npy"), 0, 3, 2, UNICON_ERR_IO, "f.npy", "a folder");
  assert_int_equal(symlink("/dev/null", scratch_path(s, "d.npy")), 0);
  open_refused(s, scratch_path(s, "d.npy"), 0, 3, 2, UNICON_ERR_IO, "d.npy", "a device");
  scratch_failed(s, unicon_writer_open(ctx, path, UNICON_WRITE_F32, 3, 2, NULL),
                 UNICON_ERR_ARGUMENT, "out is NULL", "");
  assert_int_equal(unicon_writer_open(NULL, path, UNICON_WRITE_F32, 3, 2, &writer),
                   UNICON_ERR_ARGUMENT);
  assert_int_equal(scratch_count_entries(s->folder), 2);
}

static void wrong_row_count(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  unicon_writer *writer;
  const char *path = scratch_text(s, "m.npy", "older");
  assert_int_equal(unicon_writer_open(ctx, path, UNICON_WRITE_F32, 3, 2, &writer), UNICON_OK);
  assert_int_equal(unicon_writer_append(ctx, writer, matrix, 2), UNICON_OK);
  scratch_failed(s, unicon_writer_append(ctx, writer, matrix, 2), UNICON_ERR_ARGUMENT,
                 "2 rows were given after 2", "the file has 3");
  scratch_failed(s, unicon_writer_append(ctx, writer, matrix, -1), UNICON_ERR_ARGUMENT, "-1 rows",
                 "");
  scratch_failed(s, unicon_writer_append(ctx, writer, NULL, 1), UNICON_ERR_ARGUMENT, "rows is NULL",
                 "");
  scratch_failed(s, unicon_writer_append(ctx, NULL, matrix, 1), UNICON_ERR_ARGUMENT,
                 "writer is NULL", "");
  assert_int_equal(unicon_writer_append(NULL, writer, matrix, 1), UNICON_ERR_ARGUMENT);
  scratch_failed(s, unicon_writer_commit(ctx, writer), UNICON_ERR_ARGUMENT, "2 rows were given",
                 "the file has 3");
  scratch_failed(s, unicon_writer_commit(ctx, NULL), UNICON_ERR_ARGUMENT, "writer is NULL", "");
  assert_int_equal(unicon_writer_open(ctx, path, UNICON_WRITE_F32, 3, 2, &writer), UNICON_OK);
  assert_int_equal(unicon_writer_commit(NULL, writer), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_writer_open(ctx, path, UNICON_WRITE_F32, 3, 2, &writer), UNICON_OK);
  unicon_writer_discard(writer);
  unicon_writer_discard(NULL);
  unsigned char file[16];
  assert_int_equal(read_back(path, file, sizeof file), 5); /* the older file is whole */
  assert_int_equal(scratch_count_entries(s->folder), 1);
}

/* A real failure of the system, not an injected one: files may not grow beyond 1000 bytes. */
static void disk_full(void **state) {
  scratch *s = *state;
  static const float block[1024] = {1};
  const char *path = scratch_path(s, "m.npy");
  struct rlimit before, small;
  unicon_writer *writer;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 1000;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_int_equal(unicon_writer_open(s->ctx, path, UNICON_WRITE_F32, 2, 1024, &writer), UNICON_OK);
  const unicon_status first = unicon_writer_append(s->ctx, writer, block, 1);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  scratch_failed(s, first, UNICON_ERR_IO, "cannot write", strerror(EFBIG));
  assert_int_equal(scratch_count_entries(s->folder), 0);
  scratch_failed(s, unicon_writer_append(s->ctx, writer, block, 1), UNICON_ERR_IO, "m.npy",
                 "an earlier write failed");
  assert_int_not_equal(unicon_writer_commit(s->ctx, writer), UNICON_OK);
  assert_int_equal(scratch_count_entries(s->folder), 0);
}

/* A name as long as a name can be still has room for its temporary twin; a taken temporary name is
 * left alone. */
static void temporary_names(void **state) {
  scratch *s = *state;
  char name[256], taken[300];
  memset(name, 'n', 251);
  memcpy(name + 251, ".npy", 5);
  snprintf(taken, sizeof taken, ".%.200s.tmp-%ld-0", name, (long)getpid());
  scratch_text(s, taken, "another's");
  unicon_writer *writer;
  const char *path = scratch_path(s, name);
  assert_int_equal(unicon_writer_open(s->ctx, path, UNICON_WRITE_F32, 1, 1, &writer), UNICON_OK);
  assert_int_equal(unicon_writer_append(s->ctx, writer, matrix, 1), UNICON_OK);
  assert_int_equal(unicon_writer_commit(s->ctx, writer), UNICON_OK);
  assert_int_equal(scratch_count_entries(s->folder), 2);
  unsigned char file[256];
  assert_int_equal(read_back(scratch_path(s, taken), file, sizeof file), 9);
  assert_int_equal(read_back(path, file, sizeof file), 132);
}

static const double wide[3] = {1, -2, 1e300};

/* Three tensors and two entries of metadata, keys not sorted. */
static unicon__safetensors example(unicon__tensor tensor[3], unicon__meta meta[2]) {
  meta[0] = (unicon__meta){"version", "1"};
  meta[1] = (unicon__meta){"note \"quoted\"", "caf\xc3\xa9\nline"};
  tensor[0] = (unicon__tensor){"x.weight", "F32", {3, 2}, 2, matrix, 24};
  tensor[1] = (unicon__tensor){"empty", "F16", {0, 7}, 2, matrix, 0};
  tensor[2] = (unicon__tensor){"spectrum", "F64", {3}, 1, wide, 24};
  return (unicon__safetensors){.tensor = tensor, .tensors = 3, .meta = meta, .metas = 2};
}

static void container(void **state) {
  scratch *s = *state;
  unicon__tensor tensor[3];
  unicon__meta meta[2];
  const unicon__safetensors content = example(tensor, meta);
  const char *path = scratch_path(s, "m.safetensors");
  assert_int_equal(unicon__safetensors_write(s->ctx, path, &content), UNICON_OK);
  unsigned char file[2048];
  const size_t size = read_back(path, file, sizeof file);
  const size_t header = 8 + (size_t)(file[0] | file[1] << 8);
  assert_int_equal(header % 64, 0);
  assert_int_equal(size, header + 48);
  static const char start[] =
      "{\"__metadata__\":{\"version\":\"1\",\"note \\\"quoted\\\"\":\"caf\xc3\xa9\\nline\"},"
      "\"x.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
      "\"empty\":{\"dtype\":\"F16\",\"shape\":[0,7],\"data_offsets\":[24,24]},"
      "\"spectrum\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[24,48]}} ";
  assert_memory_equal(file + 8, start, sizeof start - 1);
  unicon__safetensors back;
  assert_int_equal(
      unicon__safetensors_parse(s->ctx, &s->ctx->arena, "m", (unicon__bytes){file, size}, &back),
      UNICON_OK);
  assert_int_equal(back.tensors, 3);
  assert_int_equal(back.metas, 2);
  assert_string_equal(back.meta[0].key, "note \"quoted\"");
  assert_string_equal(back.meta[0].value, "caf\xc3\xa9\nline");
  assert_string_equal(back.meta[1].key, "version");
  const unicon__tensor *spectrum = unicon__tensor_find(&back, "spectrum");
  assert_ptr_equal(spectrum, &back.tensor[1]); /* by name */
  assert_string_equal(spectrum->dtype, "F64");
  assert_int_equal(spectrum->dims, 1);
  assert_int_equal(spectrum->shape[0], 3);
  assert_memory_equal(spectrum->data, wide, 24);
  assert_memory_equal(unicon__tensor_find(&back, "x.weight")->data, matrix, 24);
  assert_int_equal(unicon__tensor_find(&back, "empty")->bytes, 0);
  assert_null(unicon__tensor_find(&back, "other"));
  unicon__frame_close(s->ctx, NULL);
}

static void bad_header(scratch *s, const char *header, size_t size, const char *word) {
  static const unsigned char zeros[64];
  const file_image file = safetensors_make(header, zeros, size);
  unicon__safetensors back;
  const unicon_status status = unicon__safetensors_parse(
      s->ctx, &s->ctx->arena, "bad.safetensors", (unicon__bytes){file.bytes, file.size}, &back);
  scratch_failed(s, status, UNICON_ERR_FORMAT, "bad.safetensors", word);
  unicon__frame_close(s->ctx, NULL);
}

#define TENSOR(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void container_defects(void **state) {
  scratch *s = *state;
  bad_header(s, "{", 0, "not valid JSON");
  bad_header(s, "[]", 0, "not a JSON object");
  bad_header(s, "{\"a\":5}", 0, "'a' has the unknown dtype (none)");
  bad_header(s, "{" TENSOR("a", "\"F12\"", "[2]", "[0,8]") "}", 8, "unknown dtype F12");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2,1,1,1,1]", "[0,8]") "}", 8, "5 dimensions");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "2", "[0,8]") "}", 8, "dimensions");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[-2]", "[0,8]") "}", 8,
             "size 0 of the tensor 'a' is -2");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[1.5]", "[0,8]") "}", 8, "size 0 of the tensor 'a'");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[4294967296,4294967296]", "[0,8]") "}", 8,
             "size 1 of the tensor 'a' is 4294967296");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[9223372036854775807]", "[0,8]") "}", 8,
             "9223372036854775807 elements is larger than any file");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2]", "[0,12]") "}", 8, "0 to 12");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2]", "[-8,0]") "}", 8, "-8 to 0");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2]", "[8,0]") "}", 8, "8 to 0");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2]", "[0]") "}", 8, "-1 to -1");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[3]", "[0,8]") "}", 8, "takes 8 bytes");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[1]", "[0,8]") "}", 8, "takes 8 bytes");
  bad_header(
      s, "{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("b", "\"F32\"", "[2]", "[4,12]") "}",
      12, "'b' starts at byte 4, an overlap");
  bad_header(
      s,
      "{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("b", "\"F32\"", "[2]", "[12,20]") "}",
      20, "'b' starts at byte 12, a hole");
  bad_header(s, "{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "}", 9, "end at byte 8, but 9 bytes");
  bad_header(
      s, "{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "," TENSOR("a", "\"F32\"", "[2]", "[0,8]") "}",
      8, "duplicate");
  bad_header(s, "{\"__metadata__\":{\"k\":1}}", 0, "metadata 'k' is not a string");
  bad_header(s, "{\"__metadata__\":[]}", 0, "__metadata__ is not an object");
  unicon__safetensors back;
  const unsigned char cut[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
  scratch_failed(
      s, unicon__safetensors_parse(s->ctx, &s->ctx->arena, "c", (unicon__bytes){cut, 10}, &back),
      UNICON_ERR_FORMAT, "takes 11 bytes", "has 10");
  scratch_failed(
      s, unicon__safetensors_parse(s->ctx, &s->ctx->arena, "c", (unicon__bytes){cut, 7}, &back),
      UNICON_ERR_FORMAT, "c is not", "of 7");
}

/* A header that is valid but for its length, one more than 1 MiB: refused as rows and as a model.
 * What could not be read is not written either. */
static void large_header(void **state) {
  scratch *s = *state;
  static const char header[] = "\x01\0\x10\0\0\0\0\0{" TENSOR("a", "\"F32\"", "[1,2]", "[0,8]") "}";
  const size_t size = 8 + (1u << 20) + 1 + 8;
  unsigned char *file = malloc(size);
  memset(file, ' ', size);
  memcpy(file, header, sizeof header - 1);
  memset(file + size - 8, 0, 8);
  const char *path = scratch_write(s, "large.safetensors", file, size);
  unicon_rows *rows = (unicon_rows *)(void *)s;
  unicon_model *model = (unicon_model *)(void *)s;
  scratch_failed(s, unicon_rows_open(s->ctx, path, &rows), UNICON_ERR_FORMAT, "1048577 bytes",
                 "at most 1048576");
  assert_null(rows);
  scratch_failed(s, unicon_model_load(s->ctx, path, &model), UNICON_ERR_FORMAT, "1048577 bytes",
                 "at most 1048576");
  assert_null(model);
  unicon__tensor tensor[3];
  unicon__meta meta[2];
  const unicon__safetensors content = example(tensor, meta);
  memset(file, 'm', size);
  file[size - 1] = '\0';
  meta[1].value = (const char *)file;
  path = scratch_path(s, "written.safetensors");
  scratch_failed(s, unicon__safetensors_write(s->ctx, path, &content), UNICON_ERR_UNSUPPORTED,
                 "written.safetensors", "at most 1048576");
  assert_int_equal(access(path, F_OK), -1);
  free(file);
}

static void not_utf8(void **state) {
  scratch *s = *state;
  unicon__tensor tensor[3];
  unicon__meta meta[2];
  const unicon__safetensors content = example(tensor, meta);
  meta[1].value = "\xff";
  scratch_failed(s, unicon__safetensors_write(s->ctx, scratch_path(s, "m.safetensors"), &content),
                 UNICON_ERR_DATA, "m.safetensors", "UTF-8");
  assert_int_equal(scratch_count_entries(s->folder), 0);
  unicon__frame_close(s->ctx, NULL);
}

static unicon_status write_matrix(scratch *s, void *user) {
  unicon_writer *writer;
  unicon_status status = unicon_writer_open(s->ctx, user, UNICON_WRITE_F16, 3, 2, &writer);
  if (status) {
    assert_null(writer);
    return status;
  }
  status = unicon_writer_append(s->ctx, writer, matrix, 3);
  if (!status) return unicon_writer_commit(s->ctx, writer);
  unicon_writer_discard(writer);
  return status;
}

static unicon_status write_container(scratch *s, void *user) {
  unicon__tensor tensor[3];
  unicon__meta meta[2];
  const unicon__safetensors content = example(tensor, meta);
  UNICON_TRY(unicon__enter(s->ctx));
  return unicon__leave(s->ctx, unicon__safetensors_write(s->ctx, user, &content));
}

static unicon_status open_tensor(scratch *s, void *user) {
  unicon_rows *rows;
  const unicon_status status = unicon_rows_open(s->ctx, user, &rows);
  unicon_rows_close(rows);
  return status;
}

/* Whatever fails, the older file stays and no other is left. */
static void failures(void **state) {
  scratch *s = *state;
  unicon__faults *faults = &s->ctx->faults;
  char npy[1024], model[1024], named[1100];
  snprintf(npy, sizeof npy, "%s", scratch_text(s, "m.npy", "older"));
  snprintf(model, sizeof model, "%s", scratch_text(s, "m.safetensors", "older"));
  snprintf(named, sizeof named, "%s:x.weight", model);
  assert_int_equal(scratch_faults(s, &faults->io, UNICON_ERR_IO, write_matrix, npy), 5);
  assert_true(scratch_faults(s, &faults->io, UNICON_ERR_IO, write_container, model) >= 8);
  assert_true(scratch_faults(s, &faults->io, UNICON_ERR_IO, open_tensor, named) >= 4);
  assert_true(scratch_faults(s, &faults->allocation, UNICON_ERR_MEMORY, write_matrix, npy) >= 5);
  assert_true(scratch_faults(s, &faults->allocation, UNICON_ERR_MEMORY, write_container, model) >=
              3);
  assert_true(scratch_faults(s, &faults->allocation, UNICON_ERR_MEMORY, open_tensor, named) >= 15);
  assert_int_equal(scratch_count_entries(s->folder), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(written_npy),        SCRATCH_TEST(written_half_blocks),
      SCRATCH_TEST(too_large_for_half), SCRATCH_TEST(written_fbin),
      SCRATCH_TEST(writer_defects),     SCRATCH_TEST(wrong_row_count),
      SCRATCH_TEST(disk_full),          SCRATCH_TEST(temporary_names),
      SCRATCH_TEST(container),          SCRATCH_TEST(container_defects),
      SCRATCH_TEST(not_utf8),           SCRATCH_TEST(large_header),
      SCRATCH_TEST(failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
