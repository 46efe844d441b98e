/* SPDX-License-Identifier: Apache-2.0 */
/* Files of rewritten vectors: what their sidecars say, what they pass for, and what is left when the
 * disk fails. */
#include "io/sidecar.h"
#include "support.h"
#include "unicon/migrate.h"

enum { PAIRS = 240, DX = 12, DY = 16, LATENT = 6 };

static unicon_migration *migrated(unicon_ctx *ctx, const problem *p) {
  unicon_options *options = NULL;
  unicon_migration *made = NULL;
  const unicon_migration_data data =
      UNICON_MIGRATION_DATA(.old_rows = p->rows_x, .new_rows = p->rows_y);
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "into", "new"));
  CHECK_OK(ctx, unicon_migrate(ctx, &data, options, &made));
  unicon_options_destroy(options);
  return made;
}

/* ---- rewriting ---------------------------------------------------------------------------- */

typedef struct rewriting {
  const unicon_model *model;
  const unicon_rows *rows;
} rewriting;

static unicon_status try_rewrite(scratch *s, void *user) {
  const rewriting *r = user;
  const unicon_view view = UNICON_VIEW(.rows = r->rows, .model = r->model, .side = UNICON_X);
  char path[1024];
  snprintf(path, sizeof path, "%s/r.npy", s->folder);
  const unicon_status status =
      unicon_rewrite(s->ctx, &view, 0, PAIRS, UNICON_FORM_UNIT, UNICON_F32, path, NULL, NULL);
  static const char *const leave[] = {"", ".json", ".part", ".part.json"};
  for (int k = 0; k < 4; k++) {
    snprintf(path, sizeof path, "%s/r.npy%s", s->folder, leave[k]);
    remove(path);
  }
  return status;
}

static void rewriting_may_fail(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 9, PAIRS, DX, DY, LATENT, 0.2, &p);
  unicon_migration *made = migrated(s->ctx, &p);
  rewriting r = {unicon_migration_model(made), p.rows_x};
  assert_true(scratch_faults(s, &s->ctx->faults.io, UNICON_ERR_IO, try_rewrite, &r) > 5);
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, try_rewrite, &r) >
              5);
  const unicon_view view = UNICON_VIEW(.rows = r.rows, .model = r.model, .side = UNICON_X);
  const char *path = scratch_path(s, "x.txt");
  scratch_failed(
      s, unicon_rewrite(s->ctx, &view, 0, 5, UNICON_FORM_UNIT, UNICON_F32, path, NULL, NULL),
      UNICON_ERR_FORMAT, ".npy", "x.txt");
  path = scratch_path(s, "x.npy");
  scratch_failed(
      s, unicon_rewrite(s->ctx, &view, 5, PAIRS, UNICON_FORM_UNIT, UNICON_F32, path, NULL, NULL),
      UNICON_ERR_ARGUMENT, "240", "from row 5");
  scratch_failed(s,
                 unicon_rewrite(s->ctx, &view, 0, 5, UNICON_FORM_UNIT, UNICON_I8, path, NULL, NULL),
                 UNICON_ERR_ARGUMENT, "float32", "float16");
  scratch_failed(s, unicon_vectors_check(s->ctx, path), UNICON_ERR_IO, "no sidecar", "x.npy");
  assert_int_equal(unicon_vectors_check(s->ctx, NULL), UNICON_ERR_ARGUMENT);
  int known = 7;
  CHECK_OK(s->ctx, unicon_vectors_match(s->ctx, path, r.model, &known));
  assert_int_equal(known, 0);
  assert_int_equal(unicon_vectors_match(s->ctx, path, NULL, &known), UNICON_ERR_ARGUMENT);
  unicon_migration_destroy(made);
  problem_free(&p);
}

/* A journal without its part is of other work: it neither stops new work nor goes on beside it. */
static void stale_journals_are_left_behind(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 9, PAIRS, DX, DY, LATENT, 0.2, &p);
  unicon_migration *made = migrated(s->ctx, &p);
  rewriting r = {unicon_migration_model(made), p.rows_x};
  const unicon_view view = UNICON_VIEW(.rows = r.rows, .model = r.model, .side = UNICON_X);
  const unicon__sidecar stale = {.model = "0123456789abcdef",
                                 .space = "new",
                                 .form = "unit",
                                 .dtype = "<f4",
                                 .rows = PAIRS,
                                 .width = DY,
                                 .source = "0123456789abcdef",
                                 .hash = "0000000000000000"};
  unicon_status status = UNICON_ERR_IO;
  for (int k = 0; status != UNICON_OK; k++) { /* stopped at every point */
    CHECK_OK(s->ctx, unicon__enter(s->ctx));
    CHECK_OK(s->ctx, unicon__sidecar_write(s->ctx, scratch_path(s, "r.npy.part.json"), &stale));
    CHECK_OK(s->ctx, unicon__leave(s->ctx, UNICON_OK));
    const char *path = scratch_path(s, "r.npy");
    s->ctx->faults.io = k;
    status =
        unicon_rewrite(s->ctx, &view, 0, PAIRS, UNICON_FORM_UNIT, UNICON_F32, path, NULL, NULL);
    s->ctx->faults.io = -1;
    CHECK_OK(s->ctx, try_rewrite(s, &r));
  }
  unicon_migration_destroy(made);
  problem_free(&p);
}

/* Another last byte. */
static void flip_last(const char *path) {
  size_t size;
  unsigned char *bytes = support_slurp(path, &size);
  FILE *file = fopen(path, "wb");
  bytes[size - 1] ^= 1;
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  free(bytes);
}

/* A file passes for what it was made of, and for nothing else. */
static void rewrites_are_what_was_asked_for(void **state) {
  scratch *s = *state;
  unicon_ctx *ctx = s->ctx;
  problem p, q;
  problem_make(ctx, 9, PAIRS, DX, DY, LATENT, 0.2, &p);
  problem_make(ctx, 10, PAIRS, DX, DY, LATENT, 0.2, &q);
  unicon_migration *made = migrated(ctx, &p), *other = migrated(ctx, &q);
  const unicon_model *model = unicon_migration_model(made);
  const unicon_view view = UNICON_VIEW(.rows = p.rows_x, .model = model, .side = UNICON_X);
  unicon_view wrong = view;
  const unicon_form unit = UNICON_FORM_UNIT;
  char path[1024];
  snprintf(path, sizeof path, "%s", scratch_path(s, "r.npy"));
  CHECK_OK(ctx, unicon_rewrite(ctx, &view, 40, 90, unit, UNICON_F16, path, NULL, NULL));
  CHECK_OK(ctx, unicon_rewrite_check(ctx, &view, 40, 90, unit, path));
  const unicon_status data = UNICON_ERR_DATA;
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 40, 91, unit, path), data, "other rows",
                 "90 rows from row 40");
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 41, 90, unit, path), data, "other rows",
                 "r.npy");
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 40, 90, UNICON_FORM_QUERY, path), data,
                 "another form", "r.npy");
  wrong.rows = q.rows_x;
  scratch_failed(s, unicon_rewrite_check(ctx, &wrong, 40, 90, unit, path), data, "another source",
                 "r.npy");
  wrong.model = unicon_migration_model(other);
  scratch_failed(s, unicon_rewrite_check(ctx, &wrong, 40, 90, unit, path), data, "another model",
                 "r.npy");
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 40, PAIRS, unit, path), UNICON_ERR_ARGUMENT,
                 "240", "from row 40");
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 40, 90, (unicon_form)6, path),
                 UNICON_ERR_ARGUMENT, "form is 6", "0 to 5");
  wrong = UNICON_VIEW(.rows = p.rows_x);
  scratch_failed(s, unicon_rewrite_check(ctx, &wrong, 40, 90, unit, path), UNICON_ERR_ARGUMENT,
                 "model", "rewrite");
  assert_int_equal(unicon_rewrite_check(ctx, &view, 40, 90, unit, NULL), UNICON_ERR_ARGUMENT);
  assert_int_equal(unicon_rewrite_check(ctx, NULL, 40, 90, unit, path), UNICON_ERR_ARGUMENT);
  flip_last(path);
  scratch_failed(s, unicon_rewrite_check(ctx, &view, 40, 90, unit, path), UNICON_ERR_FORMAT,
                 "does not hold", "remove it and rewrite again");
  unicon_migration_destroy(made);
  unicon_migration_destroy(other);
  problem_free(&p);
  problem_free(&q);
}

/* ---- sidecars ----------------------------------------------------------------------------- */

static void sidecars_are_read_back(void **state) {
  scratch *s = *state;
  const unicon__sidecar about = {.model = "0123456789abcdef",
                                 .space = "new",
                                 .form = "unit",
                                 .dtype = "<f4",
                                 .rows = 12,
                                 .width = 3,
                                 .first = 4,
                                 .source = "00000000000000ff",
                                 .hash = "fedcba9876543210",
                                 .done = 7};
  unicon__sidecar again;
  bool found;
  const char *path = scratch_path(s, "v.npy.json");
  CHECK_OK(s->ctx, unicon__enter(s->ctx));
  CHECK_OK(s->ctx, unicon__sidecar_write(s->ctx, path, &about));
  CHECK_OK(s->ctx, unicon__sidecar_read(s->ctx, path, &again, &found));
  assert_true(found);
  assert_string_equal(about.model, again.model);
  assert_string_equal(about.space, again.space);
  assert_string_equal(about.form, again.form);
  assert_string_equal(about.dtype, again.dtype);
  assert_string_equal(about.source, again.source);
  assert_string_equal(about.hash, again.hash);
  assert_true(about.rows == again.rows && about.width == again.width);
  assert_true(about.first == again.first && about.done == again.done);
  CHECK_OK(s->ctx, unicon__sidecar_read(s->ctx, scratch_path(s, "no.json"), &again, &found));
  assert_false(found);
  CHECK_OK(s->ctx, unicon__leave(s->ctx, UNICON_OK));
}

static void sidecars_are_checked(void **state) {
  scratch *s = *state;
  static const char whole[] =
      "{\"format\": \"unicon vectors\", \"version\": 1, \"model\": \"0123456789abcdef\", "
      "\"space\": \"new\", \"form\": \"unit\", \"dtype\": \"<f4\", \"source\": "
      "\"0123456789abcdef\", \"hash\": \"0123456789abcdef\", \"rows\": 5, \"width\": 3, "
      "\"first\": 0, \"done\": 5}";
  static const struct {
    const char *from, *to, *word;
  } cases[] = {{"unicon vectors", "pears", "format"},
               {"\"version\": 1", "\"version\": 2", "version"},
               {"\"model\": \"0123456789abcdef\"", "\"model\": \"0123456789abcdeX\"", "model"},
               {"\"space\": \"new\"", "\"space\": \"a space of twenty letters\"", "space"},
               {"\"form\": \"unit\", ", "", "form"},
               {"\"hash\": \"0123456789abcdef\"", "\"hash\": 5", "hash"},
               {"\"rows\": 5", "\"rows\": -5", "rows"},
               {"\"width\": 3", "\"width\": 3.5", "width"},
               {"\"width\": 3", "\"width\": 4611686018427387904", "width"},
               {"\"rows\": 5", "\"rows\": 9223372036854775807", "rows"},
               {"\"done\": 5", "\"done\": 6", "are done"},
               {"{\"format\"", "\"format\"", "JSON"}};
  unicon__sidecar out;
  CHECK_OK(s->ctx, unicon__sidecar_parse(
                       s->ctx, "v.json",
                       (unicon__bytes){(const unsigned char *)whole, strlen(whole)}, &out));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[1024];
    const char *at = strstr(whole, cases[c].from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[c].to,
             at + strlen(cases[c].from));
    const unicon_status status = unicon__sidecar_parse(
        s->ctx, "v.json", (unicon__bytes){(const unsigned char *)text, strlen(text)}, &out);
    scratch_failed(s, status, UNICON_ERR_FORMAT, "v.json", cases[c].word);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(rewriting_may_fail),
      SCRATCH_TEST(stale_journals_are_left_behind),
      SCRATCH_TEST(rewrites_are_what_was_asked_for),
      SCRATCH_TEST(sidecars_are_read_back),
      SCRATCH_TEST(sidecars_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
