/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory of a device, and embeddings that stay there: the soft device says that its memory
 * is CUDA's, so nothing may take it for the host's. */
#include "soft/loaded.h"

#include "device/use.h"
#include "support.h"

enum { N = 130, DX = 24, DY = 18, R = 6, CUDA = 2 };

static soft_control *cuda_like(scratch *s) {
  soft_control *soft = soft_reset();
  soft->memory_kind = CUDA;
  soft_use(s->ctx, "soft");
  return soft;
}

static unicon_memory memory_of(const float *data, int64_t rows, int64_t cols) {
  return UNICON_MEMORY(.data = (void *)(uintptr_t)data, .rows = rows, .cols = cols,
                       .row_stride = cols * 4, .col_stride = 4, .dtype = UNICON_F32, .kind = CUDA,
                       .stream = 1);
}

static unicon_model *fitted(scratch *s, const unicon_rows *x, const unicon_rows *y,
                            const char *preset, const char *kernel) {
  unicon_options *options = support_options(s->ctx, NULL);
  unicon_model *model;
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "preset", preset));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", "6"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "kernel", kernel));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "landmarks", "40"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "map",
                                      strcmp(kernel, "linear") == 0 ? "auto" : "nystrom"));
  CHECK_OK(s->ctx, unicon_fit(s->ctx, &UNICON_DATA(.x = x, .y = y), NULL, options, &model));
  unicon_options_destroy(options);
  return model;
}

static void check_same(scratch *s, const unicon_model *a, const unicon_model *b) {
  size_t size[2];
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, a, NULL, 0, &size[0]));
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, b, NULL, 0, &size[1]));
  assert_int_equal(size[0], size[1]);
  char *bytes[2] = {malloc(size[0]), malloc(size[1])};
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, a, bytes[0], size[0], &size[0]));
  CHECK_OK(s->ctx, unicon_model_to_bytes(s->ctx, b, bytes[1], size[1], &size[1]));
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  free(bytes[0]), free(bytes[1]);
}

/* The same bytes as from rows of the host, whatever the type and the order of the elements; rows are
 * read where they lie. */
static void fits_read_rows_where_they_lie(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int turned = 0; turned < 2; turned++) {
    soft_control *soft = cuda_like(s);
    double *wide = support_doubles(N * DX);
    for (int i = 0; i < N; i++)
      for (int k = 0; k < DX; k++) wide[turned ? k * N + i : i * DX + k] = (double)p.x[i * DX + k];
    const unicon_memory x =
        UNICON_MEMORY(.data = wide, .rows = N, .cols = DX, .row_stride = turned ? 8 : 8 * DX,
                      .col_stride = turned ? 8 * N : 8, .dtype = UNICON_F64, .kind = CUDA);
    const unicon_memory y = memory_of(p.y, N, DY);
    unicon_rows *rows_x, *rows_y;
    unicon_model *want = fitted(s, p.rows_x, p.rows_y, "fast", "linear");
    const int64_t before = soft->calls[SOFT_receive];
    assert_int_equal(before, 0);
    CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "X", &x, &rows_x));
    CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "Y", &y, &rows_y));
    assert_int_equal(soft->last_stream, 1);
    const int64_t fetched = soft->calls[SOFT_receive];
    assert_true(fetched >= 2);
    unicon_model *got = fitted(s, rows_x, rows_y, "fast", "linear");
    assert_true(soft->calls[SOFT_receive] > fetched);
    check_same(s, got, want);
    /* the copy serves the CPU and rows that are picked out */
    float read[DX];
    CHECK_OK(s->ctx, unicon_rows_read(s->ctx, rows_x, N - 1, 1, read));
    assert_memory_equal(read, p.x + (N - 1) * DX, sizeof read);
    unicon_model_destroy(got), unicon_model_destroy(want);
    unicon_rows_close(rows_x), unicon_rows_close(rows_y);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
    free(wide);
  }
  problem_free(&p);
}

/* Hold-outs pick rows out of such rows; bad rows are dropped by their numbers. */
static void picked_rows_keep_their_places(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int k = 0; k < DX; k++) p.x[7 * DX + k] = 0;
  cuda_like(s);
  const unicon_memory x = memory_of(p.x, N, DX), y = memory_of(p.y, N, DY);
  unicon_rows *rows_x, *rows_y;
  CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "X", &x, &rows_x));
  CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "Y", &y, &rows_y));
  unicon_model *model[2];
  for (int t = 0; t < 2; t++) {
    unicon_options *options = support_options(s->ctx, NULL);
    static const char *const set[][2] = {
        {"bad_rows", "drop"}, {"preset", "auto"}, {"val_fraction", "0.3"}, {"refine", "0"}};
    for (size_t k = 0; k < 4; k++)
      CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, set[k][0], set[k][1]));
    CHECK_OK(
        s->ctx,
        unicon_fit(s->ctx, &UNICON_DATA(.x = t ? rows_x : p.rows_x, .y = t ? rows_y : p.rows_y),
                   NULL, options, &model[t]));
    unicon_options_destroy(options);
  }
  check_same(s, model[0], model[1]);
  unicon_model_destroy(model[0]), unicon_model_destroy(model[1]);
  unicon_rows_close(rows_x), unicon_rows_close(rows_y);
  problem_free(&p);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* The parts of a split point into the memory of the whole: blocks of one row are read there. */
static void parts_are_read_where_they_lie(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  unicon_model *model[2];
  for (int t = 0; t < 2; t++) {
    soft_control *soft = cuda_like(s);
    soft->most_rows = 1;
    soft_use(s->ctx, "soft");
    const unicon_memory x = memory_of(p.x, N, DX), y = memory_of(p.y, N, DY);
    unicon_rows *rows_x, *rows_y;
    unicon_options *options = support_options(s->ctx, NULL);
    unicon_split *split;
    CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "X", &x, &rows_x));
    CHECK_OK(s->ctx, unicon_rows_wrap_memory(s->ctx, "Y", &y, &rows_y));
    CHECK_OK(s->ctx,
             unicon_split_make(s->ctx,
                               &UNICON_DATA(.x = t ? rows_x : p.rows_x, .y = t ? rows_y : p.rows_y),
                               0.3, options, &split));
    unicon_options_destroy(options);
    const unicon_data *part = unicon_split_part(split, 0);
    const int64_t before = soft->calls[SOFT_receive];
    model[t] = fitted(s, part->x, part->y, "fast", "linear");
    assert_int_equal(soft->calls[SOFT_receive] > before, t);
    unicon_split_destroy(split);
    unicon_rows_close(rows_x), unicon_rows_close(rows_y);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
  check_same(s, model[0], model[1]);
  unicon_model_destroy(model[0]), unicon_model_destroy(model[1]);
  problem_free(&p);
}

/* From and to memory of the device, or one of them of the host: what unicon_embed gives, and where
 * both are the device's no row passes through the host. */
static void embeddings_stay_there(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  static const char *const kernels[] = {"linear", "angular"};
  for (int t = 0; t < 8; t++) {
    soft_control *soft = cuda_like(s);
    const bool from_there = t & 1, to_there = t & 2;
    unicon_model *model = fitted(s, p.rows_x, p.rows_y, "fast", kernels[t / 4]);
    float *want = support_floats(N * R), *got = support_floats(N * (R + 2));
    CHECK_OK(s->ctx, unicon_embed(s->ctx, &UNICON_VIEW(.rows = p.rows_x, .model = model), 0, N,
                                  UNICON_FORM_UNIT, want));
    unicon_memory from = memory_of(p.x, N, DX), to = memory_of(got, N, R);
    to.row_stride = (R + 2) * 4;
    if (!from_there) from.kind = 1;
    if (!to_there) to.kind = 1;
    const int64_t downloads = soft->calls[SOFT_download], uploads = soft->calls[SOFT_upload];
    const int64_t handed = soft->calls[SOFT_hand], received = soft->calls[SOFT_receive];
    CHECK_OK(s->ctx,
             unicon_embed_memory(s->ctx, model, UNICON_X, UNICON_FORM_UNIT, "X", &from, &to));
    for (int i = 0; i < N; i++) {
      for (int k = 0; k < R; k++) CHECK_CLOSE(got[i * (R + 2) + k], want[i * R + k], 1e-6);
      assert_true(got[i * (R + 2) + R] == 0 && got[i * (R + 2) + R + 1] == 0);
    }
    if (from_there && to_there) {
      assert_int_equal(soft->calls[SOFT_download], downloads);
      assert_true(soft->calls[SOFT_upload] - uploads <= 6); /* the model */
    }
    assert_int_equal(soft->calls[SOFT_hand] > handed, to_there);
    assert_int_equal(soft->calls[SOFT_receive] > received, from_there);
    assert_int_equal(soft->matrices, 0);
    unicon_model_destroy(model);
    free(want), free(got);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
  problem_free(&p);
}

/* What the device leaves to the host comes out the same. */
static void what_is_left_to_the_host_agrees(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  for (int op = SOFT_features; op <= SOFT_flaw; op++) {
    if (op == SOFT_receive || op == SOFT_hand) continue; /* there is no other way */
    soft_control *soft = cuda_like(s);
    unicon_model *model = fitted(s, p.rows_x, p.rows_y, "fast", "linear");
    float *want = support_floats(N * R), *got = support_floats(N * R);
    CHECK_OK(s->ctx, unicon_embed(s->ctx, &UNICON_VIEW(.rows = p.rows_x, .model = model), 0, N,
                                  UNICON_FORM_RAW, want));
    const unicon_memory from = memory_of(p.x, N, DX), to = memory_of(got, N, R);
    soft->elsewhere = op;
    CHECK_OK(s->ctx,
             unicon_embed_memory(s->ctx, model, UNICON_X, UNICON_FORM_RAW, "X", &from, &to));
    for (int k = 0; k < N * R; k++) CHECK_CLOSE(got[k], want[k], 1e-5);
    soft->elsewhere = -1;
    unicon_model_destroy(model);
    free(want), free(got);
    CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  }
  problem_free(&p);
}

static void refused(scratch *s, const unicon_model *model, unicon_memory from, unicon_memory to,
                    unicon_status status, const char *word, const char *other) {
  scratch_failed(s, unicon_embed_memory(s->ctx, model, UNICON_X, UNICON_FORM_UNIT, "X", &from, &to),
                 status, word, other);
}

static void mistakes_have_sentences(void **state) {
  scratch *s = *state;
  problem p;
  unicon_rows *rows;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  soft_control *soft = cuda_like(s);
  unicon_model *model = fitted(s, p.rows_x, p.rows_y, "fast", "linear");
  float *out = support_floats(N * R);
  const unicon_memory from = memory_of(p.x, N, DX), to = memory_of(out, N, R);
  unicon_memory bad = from;
  bad.number = 3;
  refused(s, model, bad, to, UNICON_ERR_DEVICE, "number 3", "0 is in use");
  bad.number = -1;
  refused(s, model, bad, to, UNICON_ERR_ARGUMENT, "number -1", "from 0 on");
  bad = from, bad.kind = 10;
  refused(s, model, bad, to, UNICON_ERR_DEVICE, "kind 10", "soft cannot read");
  bad = from, bad.dtype = (unicon_dtype)9;
  scratch_failed(s, unicon_rows_wrap_memory(s->ctx, "X", &bad, &rows), UNICON_ERR_ARGUMENT,
                 "dtype 9", "X");
  assert_null(rows);
  bad = from, bad.cols = DX - 1;
  refused(s, model, bad, to, UNICON_ERR_SHAPE, "23 values", "takes 24");
  bad = to, bad.rows = N - 1;
  refused(s, model, from, bad, UNICON_ERR_SHAPE, "(129, 6)", "(130, 6)");
  bad = to, bad.dtype = UNICON_F16;
  refused(s, model, from, bad, UNICON_ERR_ARGUMENT, "out has numbers of type 0", "float32");
  bad = to, bad.col_stride = 8;
  refused(s, model, from, bad, UNICON_ERR_ARGUMENT, "8 bytes apart", "side by side");
  bad = from, bad.data = NULL;
  refused(s, model, bad, to, UNICON_ERR_ARGUMENT, "no memory", "");
  bad = from, bad.size = 8;
  refused(s, model, bad, to, UNICON_ERR_ARGUMENT, "size", "UNICON_MEMORY");
  /* a row that cannot be used is named with its column, though it is found on the device */
  p.x[77 * DX + 5] = NAN;
  refused(s, model, from, to, UNICON_ERR_DATA, "X: row 77, column 5", "not a finite number");
  for (int k = 0; k < DX; k++) p.x[77 * DX + k] = 0;
  refused(s, model, from, to, UNICON_ERR_DATA, "X: row 77", "all zero");
  assert_int_equal(soft->matrices, 0);
  /* and without the device */
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  refused(s, model, from, to, UNICON_ERR_DEVICE, "kind 2 (CUDA)", "device cpu cannot read");
  unicon_model_destroy(model);
  problem_free(&p);
  free(out);
}

/* Each event of the device may fail: a sentence, nothing left behind. */
static void every_event_may_fail(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &p);
  soft_control *soft = cuda_like(s);
  unicon_model *model = fitted(s, p.rows_x, p.rows_y, "fast", "linear");
  float *out = support_floats(N * R);
  const unicon_memory from = memory_of(p.x, N, DX), to = memory_of(out, N, R);
  for (int kind = 0; kind < 2; kind++) {
    int64_t *counter = kind ? &soft->fail_launch : &soft->fail_allocation;
    int failed = 0;
    for (int event = 0;; event++) {
      unicon_rows *rows = NULL;
      *counter = event;
      unicon_status status = unicon_rows_wrap_memory(s->ctx, "X", &from, &rows);
      if (status == UNICON_OK)
        status = unicon_embed_memory(s->ctx, model, UNICON_X, UNICON_FORM_UNIT, "X", &from, &to);
      const bool over = *counter >= 0;
      *counter = -1;
      unicon_rows_close(rows);
      assert_int_equal(soft->matrices, 0);
      failed += status != UNICON_OK;
      if (status != UNICON_OK) assert_true(strlen(unicon_ctx_error(s->ctx)) > 10);
      if (over) break;
      assert_true(status == UNICON_OK || status == UNICON_ERR_DEVICE ||
                  status == UNICON_ERR_MEMORY);
    }
    assert_true(failed > 0);
  }
  unicon_model_destroy(model);
  problem_free(&p);
  free(out);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* Room of the device outlives the device and the context. */
static void rooms_outlive_their_context(void **state) {
  scratch *s = *state;
  soft_control *soft = cuda_like(s);
  unicon_room *room, *host;
  unicon_memory memory;
  int kind = 0;
  CHECK_OK(s->ctx, unicon_memory_kind(s->ctx, &kind));
  assert_int_equal(kind, CUDA);
  CHECK_OK(s->ctx, unicon_room_create(s->ctx, 5, 3, &room));
  unicon_room_memory(room, &memory);
  assert_true(memory.kind == CUDA && memory.rows == 5 && memory.cols == 3);
  assert_true(memory.row_stride == 12 && memory.col_stride == 4 && memory.data);
  soft->fail_allocation = 0;
  unicon_room *none = room;
  scratch_failed(s, unicon_room_create(s->ctx, 5, 3, &none), UNICON_ERR_MEMORY, "no room", "soft");
  assert_null(none);
  scratch_failed(s, unicon_room_create(s->ctx, 0, 3, &none), UNICON_ERR_ARGUMENT, "0 rows", "1");
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  CHECK_OK(s->ctx, unicon_memory_kind(s->ctx, &kind));
  assert_int_equal(kind, 1);
  CHECK_OK(s->ctx, unicon_room_create(s->ctx, 5, 3, &host));
  unicon_room_memory(host, &memory);
  assert_int_equal(memory.kind, 1);
  ((float *)memory.data)[14] = 1;
  assert_int_equal(soft->opened, 0);
  assert_int_equal(soft->rooms, 1);
  unicon_room_destroy(room);
  assert_int_equal(soft->rooms, 0);
  unicon_room_destroy(host);
  unicon_room_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(fits_read_rows_where_they_lie),
                                     SCRATCH_TEST(picked_rows_keep_their_places),
                                     SCRATCH_TEST(parts_are_read_where_they_lie),
                                     SCRATCH_TEST(embeddings_stay_there),
                                     SCRATCH_TEST(what_is_left_to_the_host_agrees),
                                     SCRATCH_TEST(mistakes_have_sentences),
                                     SCRATCH_TEST(every_event_may_fail),
                                     SCRATCH_TEST(rooms_outlive_their_context)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
