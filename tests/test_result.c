/* SPDX-License-Identifier: Apache-2.0 */
/* Results: what is put in comes out by name and in order, the JSON is strict and holds the same,
 * and memory that runs out while they are made leaves nothing behind. */
#include <jansson.h>
#include <locale.h>

#include "io/result.h"
#include "support.h"

static const double list[] = {1, 0.1, 1e300, -2.5e-310};
static const int64_t matrix[] = {1, -2, INT64_MAX, INT64_MIN, 5, 6};

static unicon_status make(unicon_ctx *ctx, unicon_result **out) {
  unicon_result *r = unicon__result_new(ctx);
  unicon__result_integer(ctx, r, "rows", INT64_MAX);
  unicon__result_real(ctx, r, "x_to_y.hit@1", 1.0 / 3);
  unicon__result_real(ctx, r, "x_to_y.none", NAN);
  unicon__result_real(ctx, r, "x_to_y.far", INFINITY);
  unicon__result_real(ctx, r, "x_to_y.chance.hit@1", 1);
  unicon__result_reals(ctx, r, "x_to_y.ci.hit@1", list, 2, 0);
  unicon__result_real(ctx, r, "y_to_x.chance.hit@1", -4);
  unicon__result_text(ctx, r, "said", "a \"quote\", a \\, a\ttab, \xc3\xa9");
  unicon__result_integers(ctx, r, "confusion", matrix, 3, 2);
  unicon__result_integers(ctx, r, "one", matrix, 1, 1);
  unicon__result_reals(ctx, r, "list", list, 4, 0);
  unicon__result_reals(ctx, r, "empty", NULL, 0, 0);
  for (int k = 0; k < 40; k++) { /* beyond the first room */
    char name[24];
    snprintf(name, sizeof name, "more.%d", k);
    unicon__result_integer(ctx, r, name, k);
  }
  return unicon__result_done(r, out);
}

static void what_is_put_in_comes_out(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_result *r = NULL;
  double value;
  int64_t rows, width;
  CHECK_OK(ctx, make(ctx, &r));
  assert_int_equal(unicon_result_number(r, "x_to_y.hit@1", &value), UNICON_OK);
  CHECK_CLOSE(value, 1.0 / 3, 0);
  assert_int_equal(unicon_result_number(r, "rows", &value), UNICON_OK);
  CHECK_CLOSE(value, 0x1p63, 0);
  assert_string_equal(unicon_result_text(r, "said"), "a \"quote\", a \\, a\ttab, \xc3\xa9");
  const int64_t *integers = unicon_result_integers(r, "confusion", &rows, &width);
  assert_true(rows == 3 && width == 2);
  assert_memory_equal(integers, matrix, sizeof matrix);
  const double *reals = unicon_result_reals(r, "list", &rows, &width);
  assert_true(rows == 4 && width == 0);
  assert_memory_equal(reals, list, sizeof list);
  assert_non_null(unicon_result_reals(r, "empty", &rows, NULL));
  assert_int_equal(rows, 0);
  assert_string_equal(unicon_result_name(r, 0), "rows");
  assert_string_equal(unicon_result_name(r, 2), "x_to_y.chance.hit@1"); /* NaN is no entry */
  assert_string_equal(unicon_result_name(r, 49), "more.39");
  assert_null(unicon_result_name(r, 50));
  unicon_result_destroy(r);
}

/* A name that is not there, or is there as something else; and no result at all. */
static void what_is_not_there_is_said(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_result *r = NULL;
  double value = 7;
  int64_t rows = 7, width = 7;
  CHECK_OK(ctx, make(ctx, &r));
  const unicon_result *const both[] = {r, NULL};
  for (int k = 0; k < 2; k++) {
    assert_int_equal(unicon_result_number(both[k], "x_to_y", &value), UNICON_ERR_ARGUMENT);
    assert_true(isnan(value));
    assert_int_equal(unicon_result_number(both[k], "said", &value), UNICON_ERR_ARGUMENT);
    assert_int_equal(unicon_result_number(both[k], "rows", NULL), UNICON_ERR_ARGUMENT);
    assert_int_equal(unicon_result_number(both[k], NULL, &value), UNICON_ERR_ARGUMENT);
    assert_null(unicon_result_text(both[k], "list"));
    assert_null(unicon_result_integers(both[k], "list", &rows, &width));
    assert_true(rows == 0 && width == 0);
    assert_null(unicon_result_reals(both[k], "confusion", NULL, NULL));
    assert_int_equal(unicon_result_kind(both[k], "y"), UNICON_KIND_NONE);
  }
  assert_int_equal(unicon_result_kind(r, "confusion"), UNICON_KIND_INTEGERS);
  assert_null(unicon_result_name(NULL, 0));
  assert_int_equal(unicon_result_json(NULL, NULL, 0), 2); /* {} */
  unicon_result_destroy(r);
  unicon_result_destroy(NULL);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *at(json_t *whole, const char *name) {
  char part[64];
  for (const char *dot; whole && (dot = strchr(name, '.')) != NULL; name = dot + 1) {
    snprintf(part, sizeof part, "%.*s", (int)(dot - name), name);
    whole = json_object_get(whole, part);
  }
  return json_object_get(whole, name);
}

/* The value in the JSON is the entry, to the last bit. */
static void check_entry(const unicon_result *r, const char *name, json_t *got) {
  double value;
  int64_t rows, width;
  assert_non_null(got);
  const unicon_kind kind = unicon_result_kind(r, name);
  unicon_result_number(r, name, &value);
  if (kind == UNICON_KIND_REAL) {
    assert_true(json_is_real(got));
    CHECK_CLOSE(json_real_value(got), value, 0);
  } else if (kind == UNICON_KIND_INTEGER) {
    assert_true(json_is_integer(got));
    CHECK_CLOSE((double)json_integer_value(got), value, 0);
  } else if (kind == UNICON_KIND_TEXT) {
    assert_string_equal(json_string_value(got), unicon_result_text(r, name));
  } else if (kind == UNICON_KIND_REALS) {
    const double *list_of = unicon_result_reals(r, name, &rows, &width);
    assert_int_equal(json_array_size(got), rows);
    for (int64_t k = 0; k < rows; k++)
      CHECK_CLOSE(json_real_value(json_array_get(got, (size_t)k)), list_of[k], 0);
  } else {
    const int64_t *list_of = unicon_result_integers(r, name, &rows, &width);
    assert_int_equal(json_array_size(got), rows);
    for (int64_t k = 0; k < rows * width; k++) {
      const json_t *row = json_array_get(got, (size_t)(k / width));
      assert_int_equal(json_array_size(row), width);
      assert_true(json_integer_value(json_array_get(row, (size_t)(k % width))) == list_of[k]);
    }
  }
}

/* ... with a decimal point whatever the locale says. */
static void json_holds_the_same(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  unicon_result *r = NULL;
  CHECK_OK(ctx, make(ctx, &r));
  support_comma_locale();
  const size_t size = unicon_result_json(r, NULL, 0);
  char *text = malloc(size + 2), *part = malloc(size + 2);
  text[size + 1] = 'z';
  assert_int_equal(unicon_result_json(r, text, size + 1), size);
  assert_int_equal(strlen(text), size);
  assert_int_equal(text[size + 1], 'z');
  setlocale(LC_ALL, "C");
  json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  assert_non_null(whole);
  const char *name;
  for (size_t k = 0; (name = unicon_result_name(r, k)) != NULL; k++)
    check_entry(r, name, at(whole, name));
  assert_int_equal(json_object_size(whole), 9);
  assert_int_equal(json_object_size(at(whole, "x_to_y")), 3);
  json_decref(whole);
  for (size_t room = 1; room < size; room += 7) { /* cut, and ended, where the room ends */
    memset(part, 'z', size + 2);
    assert_int_equal(unicon_result_json(r, part, room), size);
    assert_int_equal(strlen(part), room - 1);
    assert_memory_equal(part, text, room - 1);
    assert_int_equal(part[room], 'z');
  }
  free(part);
  free(text);
  unicon_result_destroy(r);
}

/* ---- memory ------------------------------------------------------------------------------- */

static unicon_status attempt(scratch *s, void *user) {
  (void)user;
  unicon_result *r = NULL;
  const unicon_status status = make(s->ctx, &r);
  assert_int_equal(r == NULL, status != UNICON_OK);
  unicon_result_destroy(r);
  return status;
}

static void memory_may_run_out(void **state) {
  scratch *s = *state;
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, attempt, NULL) > 6);
}

/* A result lives on when its context has gone. */
static void results_outlive_their_context(void **state) {
  (void)state;
  unicon_ctx *ctx = NULL;
  unicon_result *r = NULL;
  double value;
  assert_int_equal(unicon_ctx_create(&ctx), UNICON_OK);
  CHECK_OK(ctx, make(ctx, &r));
  unicon_ctx_destroy(ctx);
  assert_int_equal(unicon_result_number(r, "more.7", &value), UNICON_OK);
  CHECK_CLOSE(value, 7, 0);
  unicon_result_destroy(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(what_is_put_in_comes_out),      SCRATCH_TEST(what_is_not_there_is_said),
      SCRATCH_TEST(json_holds_the_same),           SCRATCH_TEST(memory_may_run_out),
      SCRATCH_TEST(results_outlive_their_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
