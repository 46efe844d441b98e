/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other tools: .npz, FAISS, .bvecs and its kin, bfloat16 in .npy, tables of ids; and the
 * sentences for formats that are not read. python/tests/test_rows.py reads files that NumPy, FAISS
 * and ml_dtypes wrote. */
#include "rows_check.h"

#include "io/pair_set.h"

static const char *write_image(scratch *s, const char *name, const file_image *image) {
  return scratch_write(s, name, image->bytes, image->size);
}

/* The image with `bytes` at `at` replaced. */
static file_image changed(const file_image *image, size_t at, const char *bytes, size_t count) {
  file_image copy = *image;
  memcpy(copy.bytes + at, bytes, count);
  return copy;
}

/* ---- .npz --------------------------------------------------------------------------------- */

enum { LOCAL = 30, EXTRA = 20 };

/* What a member of an archive looks like. */
typedef struct entry {
  const char *name;
  file_image data;
  size_t at; /* of its local header */
} entry;

/* Local headers as NumPy writes them: sizes in a ZIP64 field. */
static void add_member(file_image *zip, entry *e) {
  e->at = zip->size;
  image_add(zip, "PK\3\4\x2d\0\0\0\0\0\0\0\x21\0", 14);
  image_add_length(zip, 0, 4); /* checksum: not looked at */
  image_add_length(zip, UINT32_MAX, 4);
  image_add_length(zip, UINT32_MAX, 4);
  image_add_length(zip, strlen(e->name), 2);
  image_add_length(zip, EXTRA, 2);
  image_add(zip, e->name, strlen(e->name));
  image_add(zip, "\1\0\x10\0", 4);
  image_add_length(zip, e->data.size, 8);
  image_add_length(zip, e->data.size, 8);
  image_add(zip, e->data.bytes, e->data.size);
}

/* The entry of the list; `wide` has its numbers in a ZIP64 field. */
static void add_entry(file_image *zip, const entry *e, bool wide) {
  const size_t size = wide ? UINT32_MAX : e->data.size;
  image_add(zip, "PK\1\2\x2d\3\x2d\0\0\0\0\0\0\0\x21\0", 16);
  image_add_length(zip, 0, 4);
  image_add_length(zip, size, 4);
  image_add_length(zip, size, 4);
  image_add_length(zip, strlen(e->name), 2);
  image_add_length(zip, wide ? 28 : 0, 2);
  image_add_length(zip, 0, 6); /* remark, disk, attributes */
  image_add_length(zip, 0, 4);
  image_add_length(zip, wide ? UINT32_MAX : e->at, 4);
  image_add(zip, e->name, strlen(e->name));
  if (!wide) return;
  image_add(zip, "\1\0\x18\0", 4);
  image_add_length(zip, e->data.size, 8);
  image_add_length(zip, e->data.size, 8);
  image_add_length(zip, e->at, 8);
}

/* The end record, with a larger one before it where `wide`; where the list begins. */
static size_t add_list(file_image *zip, const entry *list, size_t count, bool wide) {
  const size_t start = zip->size;
  for (size_t k = 0; k < count; k++) add_entry(zip, &list[k], wide);
  const size_t end = zip->size;
  if (wide) {
    image_add(zip, "PK\6\6", 4);
    image_add_length(zip, 44, 8);
    image_add(zip, "\x2d\3\x2d\0\0\0\0\0\0\0\0\0", 12);
    image_add_length(zip, count, 8);
    image_add_length(zip, count, 8);
    image_add_length(zip, end - start, 8);
    image_add_length(zip, start, 8);
    image_add(zip, "PK\6\7\0\0\0\0", 8);
    image_add_length(zip, end, 8);
    image_add_length(zip, 1, 4);
  }
  image_add(zip, "PK\5\6\0\0\0\0", 8);
  image_add_length(zip, wide ? UINT16_MAX : count, 2);
  image_add_length(zip, wide ? UINT16_MAX : count, 2);
  image_add_length(zip, wide ? UINT32_MAX : end - start, 4);
  image_add_length(zip, wide ? UINT32_MAX : start, 4);
  image_add_length(zip, 0, 2);
  return start;
}

/* emb.npy, ids.npy and a text. */
static file_image archive(size_t members, bool wide, size_t *list) {
  const file_image ids = npy_make(1, DICT("<i8", "False", "(1,)"), "\7\0\0\0\0\0\0\0", 8);
  entry all[3] = {{"emb.npy", npy_make(1, DICT("<f4", "False", "(3, 2)"), matrix_c, 24), 0},
                  {"ids.npy", ids, 0},
                  {"notes.txt", {.bytes = "hi", .size = 2}, 0}};
  file_image zip = {.size = 0};
  for (size_t k = 0; k < members; k++) add_member(&zip, &all[k]);
  *list = add_list(&zip, all, members, wide);
  return zip;
}

static void npz(void **state) {
  scratch *s = *state;
  size_t list;
  for (int wide = 0; wide < 2; wide++) {
    file_image zip = archive(1, wide, &list);
    expect_matrix(s, write_image(s, "one.npz", &zip));
    zip = archive(3, wide, &list);
    write_image(s, "a.npz", &zip);
    expect_matrix(s, scratch_path(s, "a.npz:emb"));
    refused(s, scratch_path(s, "a.npz:ids"), UNICON_ERR_FORMAT, "a.npz:ids has dtype '<i8'", "f4");
    refused(s, scratch_path(s, "a.npz"), UNICON_ERR_FORMAT, "a.npz has 2 arrays",
            "a.npz:NAME. The file has 'emb', 'ids'");
    refused(s, scratch_path(s, "a.npz:zz"), UNICON_ERR_FORMAT, "no array 'zz'", "'emb', 'ids'");
    refused(s, scratch_path(s, "a.npz:notes"), UNICON_ERR_FORMAT, "no array 'notes'", "");
  }
  file_image zip = archive(1, false, &list);
  zip.bytes[zip.size - 2] = 5; /* a remark behind the end */
  image_add(&zip, "hello", 5);
  expect_matrix(s, write_image(s, "remark.npz", &zip));
  refused(s, scratch_path(s, "none.npz:a"), UNICON_ERR_IO, "none.npz", "No such file");
}

/* Every number that can lie. */
static void npz_defects(void **state) {
  scratch *s = *state;
  size_t list;
  const file_image zip = archive(1, false, &list);
  const size_t end = zip.size - 22;
  const struct {
    size_t at;
    const char *bytes;
    size_t count;
    const char *word;
  } lies[] = {
      {list + 8, "\1", 1, "is encrypted"},
      {list + 10, "\x08", 1, "is compressed"},
      {list + 20, "\1\0", 2, "is compressed"},            /* packed */
      {list + 24, "\1\0", 2, "is compressed"},            /* unpacked */
      {list, "XX", 2, "list of its members is cut off"},  /* mark */
      {list + 28, "\xff\xff", 2, "members is cut off"},   /* name */
      {list + 30, "\xff\xff", 2, "members is cut off"},   /* extra */
      {list + 42, "\1\0\0\0", 4, "not where the list"},   /* place */
      {list + 42, "\0\0\0\x7f", 4, "not where the list"}, /* far behind */
      {list + 42, "\xff\xff\xff\xff", 4, "ZIP64 sizes are missing"},
      {26, "\xff\xff", 2, "a member passes its end"}, /* name of the member itself */
      {28, "\xff\xff", 2, "a member passes its end"},
      {end, "XX", 2, "at the end is missing"},
      {end + 20, "\1", 1, "at the end is missing"}, /* remark */
      {end + 10, "\2", 1, "members is cut off"},    /* more than there are */
      {end + 12, "\xff\xff", 2, "passes its end"},  /* size of the list */
      {end + 16, "\xff\xff", 2, "passes its end"},  /* its place */
      {end + 10, "\xff\xff", 2, "no ZIP64 record"},
      {end + 16, "\xff\xff\xff\xff", 4, "no ZIP64 record"},
  };
  for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
    const file_image bad = changed(&zip, lies[k].at, lies[k].bytes, lies[k].count);
    refused(s, write_image(s, "bad.npz", &bad), UNICON_ERR_FORMAT, "bad.npz", lies[k].word);
  }
  const file_image wide = archive(1, true, &list);
  const size_t locator = wide.size - 22 - 20;
  file_image bad = changed(&wide, locator + 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  refused(s, write_image(s, "bad.npz", &bad), UNICON_ERR_FORMAT, "ZIP64 record is not where", "");
  bad = changed(&wide, list + 46 + 7 + 2, "\x08", 1); /* a field too short for three numbers */
  refused(s, write_image(s, "bad.npz", &bad), UNICON_ERR_FORMAT, "ZIP64 sizes are missing", "");
  bad = changed(&wide, list + 46 + 7 + 4 + 7, "\x7f", 1); /* larger than any file */
  refused(s, write_image(s, "bad.npz", &bad), UNICON_ERR_FORMAT, "is compressed", "");
  for (size_t size = 0; size < zip.size; size++) {
    unicon_rows *rows = NULL;
    scratch_write(s, "cut.npz", zip.bytes, size);
    assert_int_equal(unicon_rows_open(s->ctx, scratch_path(s, "cut.npz"), &rows),
                     UNICON_ERR_FORMAT);
  }
}

/* ---- FAISS -------------------------------------------------------------------------------- */

/* A flat index as faiss.write_index writes it. */
static file_image flat_index(const char *kind, int metric) {
  file_image index = {.size = 0};
  image_add(&index, kind, 4);
  image_add_length(&index, 2, 4);
  image_add_length(&index, 3, 8);
  image_add_length(&index, 1 << 20, 8);
  image_add_length(&index, 1 << 20, 8);
  image_add_length(&index, 1, 1);
  image_add_length(&index, (size_t)metric, 4);
  if (metric > 1) image_add_length(&index, 0, 4);
  image_add_length(&index, 6, 8);
  image_add(&index, matrix_c, 24);
  return index;
}

static void faiss(void **state) {
  scratch *s = *state;
  static const struct {
    const char *kind;
    int metric;
  } kinds[] = {{"IxFI", 0}, {"IxF2", 1}, {"IxFl", 2}, {"IxFl", 23}};
  for (size_t k = 0; k < 4; k++) {
    const file_image index = flat_index(kinds[k].kind, kinds[k].metric);
    expect_matrix(s, write_image(s, "x.faiss", &index));
    expect_matrix(s, write_image(s, "x.index", &index));
    for (size_t size = 0; size < index.size; size++) {
      unicon_rows *rows = NULL;
      scratch_write(s, "cut.faiss", index.bytes, size);
      assert_int_equal(unicon_rows_open(s->ctx, scratch_path(s, "cut.faiss"), &rows),
                       UNICON_ERR_FORMAT);
    }
  }
  const file_image index = flat_index("IxFI", 0), mapped = flat_index("IxMp", 0);
  refused(s, write_image(s, "map.faiss", &mapped), UNICON_ERR_FORMAT, "starts with 'IxMp'",
          "reconstruct_n");
  file_image bad = changed(&index, 0, "\1\2\3\4", 4);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "starts with '....'", "");
  bad = changed(&index, 4, "\3", 1);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "3 rows of 3 and 6",
          "24 bytes of data follow");
  bad = changed(&index, 7, "\xff", 1);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "rows of 4278190082", "");
  bad = changed(&index, 15, "\x80", 1);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "9223372036854775811 rows", "");
  bad = changed(&index, 37, "\7", 1);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "and 7 float32 numbers", "");
  bad = index;
  image_add(&bad, "x", 1);
  refused(s, write_image(s, "bad.faiss", &bad), UNICON_ERR_FORMAT, "25 bytes of data", "");
}

/* ---- small numbers ------------------------------------------------------------------------ */

static void small_numbers(void **state) {
  scratch *s = *state;
  static const unsigned char vecs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 10, 11, 2, 0, 0, 0, 20, 21};
  static const unsigned char bin[] = {3, 0, 0, 0, 2, 0, 0, 0, 0, 1, 10, 11, 20, 21};
  expect_matrix(s, scratch_write(s, "a.bvecs", vecs, sizeof vecs));
  expect_matrix(s, scratch_write(s, "a.u8bin", bin, sizeof bin));
  expect_matrix(s, scratch_write(s, "a.i8bin", bin, sizeof bin));
  unsigned char negative[14];
  memcpy(negative, bin, sizeof bin);
  negative[8] = 0xff;
  float value[2];
  static const char *const names[] = {"n.u8bin", "n.i8bin"};
  for (int k = 0; k < 2; k++) {
    unicon_rows *rows = open_rows(s, scratch_write(s, names[k], negative, sizeof negative));
    assert_int_equal(unicon_rows_read(s->ctx, rows, 0, 1, value), UNICON_OK);
    assert_true(value[0] == (k ? -1 : 255));
    unicon_rows_close(rows);
  }
  refused(s, scratch_write(s, "cut.bvecs", vecs, sizeof vecs - 1), UNICON_ERR_FORMAT,
          "17 bytes are not", "6 bytes of a row");
  refused(s, scratch_write(s, "cut.u8bin", bin, sizeof bin - 1), UNICON_ERR_FORMAT,
          "2 values of 1 byte,", "5 bytes of data");
}

/* NumPy has no bfloat16 of its own and writes <V2, or |V2 what it has read from such a file. */
static void bfloat16_npy(void **state) {
  scratch *s = *state;
  uint16_t halves[6];
  for (int k = 0; k < 6; k++) memcpy(&halves[k], (const char *)&matrix_c[k] + 2, 2);
  expect_matrix(s, scratch_npy(s, "b.npy", DICT("<V2", "False", "(3, 2)"), halves, 12));
  expect_matrix(s, scratch_npy(s, "v.npy", DICT("|V2", "False", "(3, 2)"), halves, 12));
  refused(s, scratch_npy(s, "v.npy", DICT(">V2", "False", "(3, 2)"), halves, 12), UNICON_ERR_FORMAT,
          "dtype '>V2'", "are read");
  refused(s, scratch_npy(s, "v.npy", DICT("<V4", "False", "(3, 1)"), halves, 12), UNICON_ERR_FORMAT,
          "dtype '<V4'", "are read");
  refused(s, scratch_npy(s, "v.npy", DICT("<c8", "False", "(3, 1)"), halves, 12), UNICON_ERR_FORMAT,
          "dtype '<c8'", "are read");
  assert_null(strstr(unicon_ctx_error(s->ctx), "astype")); /* which would fail */
}

/* ---- tables of ids ------------------------------------------------------------------------ */

static void tables(void **state) {
  scratch *s = *state;
  const int32_t bin[] = {3, 2, 0, 1, 2, 0, 1, 2}, vecs[] = {2, 0, 1, 2, 2, 0, 2, 1, 2};
  static const char *const names[] = {"p.ibin", "p.ivecs"};
  for (int k = 0; k < 2; k++) {
    unicon_pairs *pairs = NULL;
    const char *path = k ? scratch_write(s, names[k], vecs, sizeof vecs)
                         : scratch_write(s, names[k], bin, sizeof bin);
    assert_int_equal(unicon_pairs_read(s->ctx, path, 3, 3, &pairs), UNICON_OK);
    for (int64_t i = 0; i < 3; i++) {
      int64_t partner = -1;
      assert_int_equal(unicon_pairs_partners(pairs, UNICON_X, i, 1, &partner), 1);
      assert_int_equal(partner, i == 0 ? 1 : i == 1 ? 2 : 0);
    }
    unicon_pairs_destroy(pairs);
    refused(s, path, UNICON_ERR_FORMAT, "holds whole numbers", "labels or pairs");
  }
  const int32_t column[] = {4, 1, 7, -3, 7, 9};
  unicon_labels *labels = NULL;
  const char *path = scratch_write(s, "l.ibin", column, sizeof column);
  assert_int_equal(unicon_labels_read(s->ctx, path, 4, NULL, 0, &labels), UNICON_OK);
  assert_int_equal(unicon_labels_classes(labels), 3);
  assert_int_equal(unicon_labels_numbers(labels, 0)[1], 0);
  assert_int_equal(unicon_labels_numbers(labels, 0)[2], 1);
  assert_string_equal(unicon_labels_name(labels, 0), "-3");
  unicon_labels_destroy(labels);
  scratch_failed(s, unicon_labels_read(s->ctx, scratch_path(s, "p.ibin"), 3, NULL, 0, &labels),
                 UNICON_ERR_SHAPE, "p.ibin has 2 columns", "one column");
  unicon_pairs *pairs = NULL;
  scratch_failed(s, unicon_pairs_read(s->ctx, path, 4, 4, &pairs), UNICON_ERR_SHAPE,
                 "l.ibin has 2 dimensions and 1 columns", "n by 2");
  scratch_failed(s, unicon_pairs_read(s->ctx, scratch_write(s, "cut.ibin", bin, 31), 3, 3, &pairs),
                 UNICON_ERR_FORMAT, "3 rows of 2 values of 4 bytes", "23 bytes");
}

/* ---- formats that are not read ------------------------------------------------------------ */

static void sentences(void **state) {
  scratch *s = *state;
  static const char *const unread[][2] = {
      {"csv", "delimiter=','"},
      {"tsv", "delimiter='\\t'"},
      {"txt", "np.loadtxt('"},
      {"vec", "skiprows=1"},
      {"npy.gz", "import numpy as np, gzip;"},
      {"jsonl", "json.loads"},
      {"json", "json.load(open('"},
      {"parquet", "pd.read_parquet('"},
      {"feather", "pd.read_feather('"},
      {"arrow", "pd.read_feather('"},
      {"lance", "lance.dataset('"},
      {"pkl", "pd.read_pickle('"},
      {"pickle", "pd.read_pickle('"},
      {"joblib", "joblib.load('"},
      {"pt", "torch.load('"},
      {"pth", "torch.load('"},
      {"bin", "torch.load('"},
      {"h5", "h5py.File('"},
      {"hdf5", "h5py.File('"},
      {"h5ad", "anndata.read_h5ad('"},
      {"zarr", "zarr.open('"},
      {"mat", "scipy.io.loadmat('"},
  };
  for (size_t k = 0; k < sizeof unread / sizeof *unread; k++) {
    char name[32], sentence[48];
    snprintf(name, sizeof name, "x.%s", unread[k][0]);
    snprintf(sentence, sizeof sentence, ".%s files are not read", unread[k][0]);
    refused(s, scratch_text(s, name, "1,2"), UNICON_ERR_FORMAT, sentence, unread[k][1]);
    snprintf(sentence, sizeof sentence, "x.%s.npy', ", unread[k][0]); /* no file that is there */
    assert_non_null(strstr(unicon_ctx_error(s->ctx), sentence));
  }
  assert_int_equal(mkdir(scratch_path(s, "d.zarr"), 0700), 0); /* these are folders */
  refused(s, scratch_path(s, "d.zarr"), UNICON_ERR_FORMAT, ".zarr files are not read", "zarr.open");
  refused(s, scratch_text(s, "plain.dat", "x"), UNICON_ERR_FORMAT, "unknown file extension",
          "FILE.npz:ARRAY");
  /* a name that would run something where the line is pasted is not part of it */
  refused(s, scratch_text(s, "x');import os#.csv", "1"), UNICON_ERR_FORMAT, ".csv files",
          "np.loadtxt('FILE'");
  refused(s, scratch_text(s, "x$(id).csv", "1"), UNICON_ERR_FORMAT, ".csv files",
          "np.loadtxt('FILE'");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(npz),           SCRATCH_TEST(npz_defects),  SCRATCH_TEST(faiss),
      SCRATCH_TEST(small_numbers), SCRATCH_TEST(bfloat16_npy), SCRATCH_TEST(tables),
      SCRATCH_TEST(sentences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
