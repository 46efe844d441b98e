/* SPDX-License-Identifier: Apache-2.0 */
/* The option table and its engine: what is accepted, what is refused and in which words. */
#include <locale.h>

#include "base/options.h"
#include "features/feature.h"
#include "features/kernel.h"
#include "linalg/spectral.h"
#include "loss/loss.h"
#include "solve/aggregate.h"
#include "support.h"

static void every_default_parses(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const char *const kinds[] = {"integer", "real", "word", "text",
                                      "bytes",   "flag", "form", "sided"};
  for (size_t k = 0; k < unicon_option_count(); k++) {
    const unicon_option_info *row = unicon_option_at(k);
    unicon__value value;
    assert_non_null(row);
    CHECK_OK(ctx, unicon__value_parse(ctx, row, row->default_value, &value));
    assert_true(value.word >= 0 || strcmp(row->kind, "text") == 0 || isfinite(value.number));
    bool known = false;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
      known = known || strcmp(kinds[n], row->kind) == 0;
    assert_true(known);
    assert_true(row->scope > 0 && row->scope < 2 * UNICON_SCOPE_STATS);
    assert_true(row->low <= row->high);
    assert_true(strlen(row->help) > 5 && row->group[0]);
    assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(row->name));
    for (size_t other = 0; other < k; other++)
      assert_string_not_equal(unicon_option_at(other)->name, row->name);
    const bool words = strcmp(row->kind, "word") == 0 || strcmp(row->kind, "flag") == 0;
    assert_true(!words || row->words[0]);
  }
  assert_null(unicon_option_at(unicon_option_count()));
}

static void expect(scratch *s, const unicon_option_info *row, const char *text, double number,
                   int word) {
  unicon__value value;
  CHECK_OK(s->ctx, unicon__value_parse(s->ctx, row, text, &value));
  assert_int_equal(value.word, word);
  assert_string_equal(value.text, text);
  if (word < 0) assert_true(value.number == number);
}

static void refuse(scratch *s, const unicon_option_info *row, const char *text,
                   const char *accepted) {
  unicon__value value;
  char given[80];
  snprintf(given, sizeof given, "%s is \"%s\"", row->name, text);
  scratch_failed(s, unicon__value_parse(s->ctx, row, text, &value), UNICON_ERR_OPTION, given,
                 accepted);
}

/* One value for both sides, or one for x and one for y. */
static void sides_may_differ(void **state) {
  scratch *s = *state;
  const unicon_option_info row = {
      .name = "power", .kind = "sided", .words = "none|whiten", .low = 0, .high = 1};
  unicon__value v;
  expect(s, &row, "0.25", 0.25, -1);
  expect(s, &row, "whiten", 0, 1);
  CHECK_OK(s->ctx, unicon__value_parse(s->ctx, &row, "0.25", &v));
  assert_false(v.sided);
  CHECK_OK(s->ctx, unicon__value_parse(s->ctx, &row, "none,0.75", &v));
  assert_true(v.sided && v.word == 0 && v.word_y == -1 && v.number_y == 0.75);
  CHECK_OK(s->ctx, unicon__value_parse(s->ctx, &row, "1,whiten", &v));
  assert_true(v.sided && v.word == -1 && v.number == 1 && v.word_y == 1);
  static const char *const bad[] = {
      ",",         "0.5,",
      ",0.5",      "0.5,2",
      "-1,none",   "none,none,none",
      "0.5 ,0.5x", "0.50000000000000000000000000000000000000000000000001,0.5"};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
    refuse(s, &row, bad[k], "or two of these for x and y: A,B");
}

static void numbers_have_bounds(void **state) {
  scratch *s = *state;
  const unicon_option_info whole = {
      .name = "count", .kind = "integer", .words = "auto|full", .low = 2, .high = 50};
  const unicon_option_info real = {
      .name = "share", .kind = "real", .words = "", .low = 0, .high = 0.5};
  const unicon_option_info open = {
      .name = "many", .kind = "integer", .words = "", .low = 1, .high = 1e15};
  expect(s, &whole, "2", 2, -1);
  expect(s, &whole, "50", 50, -1);
  expect(s, &whole, "1e1", 10, -1);
  expect(s, &whole, "auto", 0, 0);
  expect(s, &whole, "full", 0, 1);
  expect(s, &real, "0.5", 0.5, -1);
  expect(s, &real, "0", 0, -1);
  expect(s, &real, "1e-3", 1e-3, -1);
  expect(s, &open, "900000000000000", 9e14, -1);
  static const char *const bad_whole[] = {"1",  "51",  "2.5", "",    "x",         "10 ", "3x",
                                          "-2", "nan", "inf", "aut", "auto|full", "AUTO"};
  for (size_t k = 0; k < sizeof bad_whole / sizeof *bad_whole; k++)
    refuse(s, &whole, bad_whole[k], "a whole number from 2 to 50, or auto|full");
  static const char *const bad_real[] = {"-0.001", "0.5001", "",       "half",  "nan",
                                         "inf",    "0.1,",   "0x1p-3", "1e-400"};
  for (size_t k = 0; k < sizeof bad_real / sizeof *bad_real; k++)
    refuse(s, &real, bad_real[k], "a number from 0 to 0.5");
  refuse(s, &open, "0", "a whole number from 1 to 1000000000000000");
}

static void words_are_whole(void **state) {
  scratch *s = *state;
  const unicon_option_info row = {.name = "how", .kind = "word", .words = "on|off|auto"};
  expect(s, &row, "on", 0, 0);
  expect(s, &row, "off", 0, 1);
  expect(s, &row, "auto", 0, 2);
  static const char *const bad[] = {"", "o", "onn", "on|off", "|", "ON", "aut", "1"};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) refuse(s, &row, bad[k], "on|off|auto");
  const unicon_option_info text = {.name = "file", .kind = "text", .words = ""};
  unicon__value value;
  CHECK_OK(s->ctx, unicon__value_parse(s->ctx, &text, "anything at all", &value));
  assert_string_equal(value.text, "anything at all");
}

static void bytes_have_suffixes(void **state) {
  scratch *s = *state;
  const unicon_option_info row = {
      .name = "room", .kind = "bytes", .words = "none", .low = 1024, .high = 1e18};
  expect(s, &row, "4096", 4096, -1);
  expect(s, &row, "1K", 1024, -1);
  expect(s, &row, "1k", 1024, -1);
  expect(s, &row, "3M", 3 * 1048576.0, -1);
  expect(s, &row, "1.5G", 1.5 * 1073741824.0, -1);
  expect(s, &row, "2T", 2 * 1099511627776.0, -1);
  expect(s, &row, "2KiB", 2048, -1);
  expect(s, &row, "2kb", 2048, -1);
  expect(s, &row, "5000B", 5000, -1);
  expect(s, &row, "none", 0, 0);
  static const char *const bad[] = {"",    "M",    "1Q",  "1MM", "1M ", "1 M", "1023",
                                    "-1G", "1e30", "nan", "inf", "1iB", "0"};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) refuse(s, &row, bad[k], "512M");
}

static void names_are_found(void **state) {
  scratch *s = *state;
  unicon_options *options = support_options(s->ctx, NULL);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "bad-rows", "drop"));
  assert_string_equal(unicon_options_get(options, "bad_rows"), "drop");
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "bad_rows", "error"));
  assert_string_equal(unicon_options_get(options, "bad-rows"), "error");
  scratch_failed(s, unicon_options_set(s->ctx, options, "xylophone_quartet", "1"),
                 UNICON_ERR_OPTION, "there is no option", "xylophone_quartet");
  scratch_failed(s, unicon_options_set(s->ctx, options, "", "1"), UNICON_ERR_OPTION,
                 "there is no option", "");
  char lengthy[2000];
  memset(lengthy, 'r', sizeof lengthy - 1);
  lengthy[sizeof lengthy - 1] = '\0';
  scratch_failed(s, unicon_options_set(s->ctx, options, lengthy, "1"), UNICON_ERR_OPTION,
                 "there is no option", "rrr");
  assert_null(unicon_options_get(options, "xylophone"));
  assert_null(unicon_options_get(options, NULL));
  unicon_options_destroy(options);
}

static void scopes_are_kept_apart(void **state) {
  scratch *s = *state;
  unicon_options *options = support_options(s->ctx, NULL);
  for (size_t k = 0; k < unicon_option_count(); k++) {
    const unicon_option_info *row = unicon_option_at(k);
    if (row->scope & UNICON_SCOPE_CONTEXT) {
      scratch_failed(s, unicon_options_set(s->ctx, options, row->name, row->default_value),
                     UNICON_ERR_OPTION, row->name, "unicon_ctx_set");
      CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, row->name, row->default_value));
    } else {
      scratch_failed(s, unicon_ctx_set(s->ctx, row->name, row->default_value), UNICON_ERR_OPTION,
                     row->name, "unicon_options_set");
      CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, row->name, row->default_value));
    }
  }
  unicon_options_destroy(options);
  scratch_failed(s, unicon_ctx_set(s->ctx, "thread", "1"), UNICON_ERR_OPTION,
                 "no option \"thread\"", "unicon_option_at");
  scratch_failed(s, unicon_ctx_set(s->ctx, "threads", "0"), UNICON_ERR_OPTION, "threads is \"0\"",
                 "from 1 to 256");
  scratch_failed(s, unicon_ctx_set(s->ctx, NULL, "0"), UNICON_ERR_ARGUMENT, "name", "value");
  scratch_failed(s, unicon_options_set(s->ctx, NULL, "rank", "1"), UNICON_ERR_ARGUMENT, "options",
                 "");
  assert_int_equal(unicon_options_set(NULL, NULL, "rank", "1"), UNICON_ERR_ARGUMENT);
}

/* Every setting of every preset is known, parses, and is in force under the preset. */
static void presets_hold_known_values(void **state) {
  scratch *s = *state;
  static const char *const presets[] = {"fast", "paper", "paper-synthetic", "paper-printed"};
  for (size_t p = 0; p < 4; p++) {
    unicon_options *options = NULL;
    CHECK_OK(s->ctx, unicon_options_create(s->ctx, &options));
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "preset", presets[p]));
    const char *name, *value;
    size_t count = 0;
    for (; unicon_preset_at(presets[p], count, &name, &value); count++) {
      unicon_options *direct = support_options(s->ctx, name, value, NULL);
      assert_string_equal(unicon_options_get(options, name), value);
      unicon_options_destroy(direct);
    }
    assert_true(count >= 3);
    unicon_options_destroy(options);
  }
  const char *name, *value;
  size_t chosen = 0;
  for (; unicon_preset_at("auto", chosen, &name, &value); chosen++) {
    assert_string_equal(value, "chosen");
    const char *usual = unicon_options_get(NULL, name); /* a known option, not set by the preset */
    assert_non_null(usual);
    assert_string_not_equal(usual, "chosen");
  }
  assert_true(chosen >= 5);
  assert_int_equal(unicon_preset_at("best", chosen - 1, &name, &value), 1);
  assert_int_equal(unicon_preset_at("best", chosen, &name, &value), 0);
  assert_int_equal(unicon_preset_at("slow", 0, &name, &value), 0);
  assert_int_equal(unicon_preset_at(NULL, 0, &name, &value), 0);
  assert_int_equal(unicon_preset_at("fast", 999, &name, &value), 0);
}

static void given_wins_over_preset(void **state) {
  scratch *s = *state;
  unicon_options *options = support_options(s->ctx, "temperature", "0.07", "split", "0.25", NULL);
  assert_true(unicon__given(options, UNICON__SPLIT));
  assert_false(unicon__given(options, UNICON__RANK));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "preset", "paper-printed"));
  assert_string_equal(unicon_options_get(options, "temperature"), "0.07");
  assert_string_equal(unicon_options_get(options, "split"), "0.25");
  assert_string_equal(unicon_options_get(options, "center"), "off");
  assert_string_equal(unicon_options_get(options, "batch"), "500");
  assert_true(unicon__number(options, UNICON__TEMPERATURE) == 0.07);
  assert_int_equal(unicon__word(options, UNICON__CENTER), 1);
  assert_int_equal(unicon__integer(options, UNICON__BATCH), 500);
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "center", "on"));
  assert_string_equal(unicon_options_get(options, "center"), "on");
  /* A refused value changes nothing. */
  scratch_failed(s, unicon_options_set(s->ctx, options, "center", "maybe"), UNICON_ERR_OPTION,
                 "center is \"maybe\"", "on|off");
  assert_string_equal(unicon_options_get(options, "center"), "on");
  scratch_failed(s, unicon_options_set(s->ctx, options, "preset", "bets"), UNICON_ERR_OPTION,
                 "preset is \"bets\"", "best");
  assert_string_equal(unicon_options_get(options, "preset"), "paper-printed");
  unicon_options_destroy(options);
  /* No options at all: the defaults. */
  assert_string_equal(unicon_options_get(NULL, "preset"), "auto");
  assert_string_equal(unicon_options_get(NULL, "center"), "on");
  assert_int_equal(unicon__word(NULL, UNICON__RANK), 0);
}

/* The caller's text may change after the call. */
/* A program that has set a locale with a decimal comma gets the same defaults, the same choice, and
 * the same model file. */
static void the_locale_does_not_matter(void **state) {
  scratch *s = *state;
  problem p;
  size_t size[2];
  unsigned char *bytes[2];
  if (!support_comma_locale()) skip();
  problem_make(s->ctx, 3, 120, 8, 7, 4, 0.5, &p);
  for (int k = 0; k < 2; k++) {
    if (k == 1) setlocale(LC_ALL, "C");
    unicon_options *options =
        support_options(s->ctx, "preset", "auto", "kernel", "rbf", "exponent", "0.75", NULL);
    unicon_model *model = support_fit(s->ctx, p.rows_x, p.rows_y, NULL, options), *again = NULL;
    const char *path = scratch_path(s, "m.safetensors");
    CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
    CHECK_OK(s->ctx, unicon_model_load(s->ctx, path, &again));
    CHECK_CLOSE(unicon__number(NULL, UNICON__MARGIN), 0.2, 0);
    bytes[k] = support_slurp(path, &size[k]);
    unicon_model_destroy(again);
    unicon_model_destroy(model);
    unicon_options_destroy(options);
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
  for (int k = 0; k < 2; k++) free(bytes[k]);
  problem_free(&p);
}

static void values_are_copied(void **state) {
  scratch *s = *state;
  unicon_options *options = support_options(s->ctx, NULL);
  char text[] = "123";
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", text));
  memset(text, '9', 3);
  assert_string_equal(unicon_options_get(options, "rank"), "123");
  assert_int_equal(unicon__integer(options, UNICON__RANK), 123);
  unicon_options_destroy(options);
  assert_int_equal(unicon_options_create(s->ctx, NULL), UNICON_ERR_ARGUMENT);
  unicon_options_destroy(NULL);
}

/* An option that is set again and again keeps its last text only, also where that is its own. */
static void older_values_are_not_kept(void **state) {
  scratch *s = *state;
  char text[16];
  unicon_options *options = support_options(s->ctx, "rank", "100", NULL);
  const uint64_t before = scratch_memory(s);
  for (int k = 100; k < 1100; k++) {
    snprintf(text, sizeof text, "%d", k);
    CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "rank", text));
    assert_int_not_equal(unicon_options_set(s->ctx, options, "rank", "none"), UNICON_OK);
    CHECK_OK(s->ctx,
             unicon_options_set(s->ctx, options, "rank", unicon_options_get(options, "rank")));
    assert_string_equal(unicon_options_get(options, "rank"), text);
    assert_int_equal(scratch_memory(s), before);
  }
  unicon_options_destroy(options);
}

static unicon_status make_and_set(scratch *s, void *user) {
  (void)user;
  unicon_options *options = NULL;
  unicon_status status = unicon_options_create(s->ctx, &options);
  if (status == UNICON_OK) status = unicon_options_set(s->ctx, options, "rank", "4");
  unicon_options_destroy(options);
  return status;
}

/* Enumerations are read from the place of a word, so their order is that of the table. */
static void words_stand_where_their_numbers_are(void **state) {
  static const struct {
    int id, number;
    const char *word;
  } places[] = {
      {UNICON__LOSS, UNICON__LOSS_CLIP, "clip"},
      {UNICON__LOSS, UNICON__LOSS_INFONCE, "infonce"},
      {UNICON__LOSS, UNICON__LOSS_GENERAL, "general"},
      {UNICON__LOSS, UNICON__LOSS_TRIPLET, "triplet"},
      {UNICON__LOSS, UNICON__LOSS_SUPCON, "supcon"},
      {UNICON__LOSS, UNICON__LOSS_SIGLIP, "siglip"},
      {UNICON__LOSS, UNICON__LOSS_SPECTRAL, "spectral"},
      {UNICON__LOSS, UNICON__LOSS_MOMENT, "moment"},
      {UNICON__LOSS, UNICON__LOSS_CUSTOM, "custom"},
      {UNICON__PSI, UNICON__PSI_EXP, "exp"},
      {UNICON__PSI, UNICON__PSI_HINGE, "hinge"},
      {UNICON__PSI, UNICON__PSI_SOFTPLUS, "softplus"},
      {UNICON__PSI, UNICON__PSI_SOFTMIN, "softmin"},
      {UNICON__PSI, UNICON__PSI_IDENTITY, "identity"},
      {UNICON__PHI, UNICON__PHI_LOG, "log"},
      {UNICON__PHI, UNICON__PHI_LOG1P, "log1p"},
      {UNICON__PHI, UNICON__PHI_IDENTITY, "identity"},
      {UNICON__DIRECTION, UNICON__DIRECTION_BOTH, "both"},
      {UNICON__DIRECTION, UNICON__DIRECTION_X, "x"},
      {UNICON__DIRECTION, UNICON__DIRECTION_Y, "y"},
      {UNICON__SVD, UNICON__SVD_AUTO, "auto"},
      {UNICON__SVD, UNICON__SVD_DENSE, "dense"},
      {UNICON__SVD, UNICON__SVD_RANDOM, "random"},
      {UNICON__AGGREGATE, UNICON__AGGREGATE_UNIFORM, "uniform"},
      {UNICON__AGGREGATE, UNICON__AGGREGATE_ACCURACY, "accuracy"},
      {UNICON__AGGREGATE, UNICON__AGGREGATE_SOFTMAX, "softmax"},
      {UNICON__AGGREGATE, UNICON__AGGREGATE_ROBUST, "robust"},
      {UNICON__MAP, 1 + UNICON__MAP_LINEAR, "linear"},
      {UNICON__MAP, 1 + UNICON__MAP_EXACT, "exact"},
      {UNICON__MAP, 1 + UNICON__MAP_NYSTROM, "nystrom"},
      {UNICON__MAP, 1 + UNICON__MAP_RANDOM, "random"},
      {UNICON__KERNEL, UNICON__KERNEL_LINEAR, "linear"},
      {UNICON__KERNEL, UNICON__KERNEL_COSINE, "cosine"},
      {UNICON__KERNEL, UNICON__KERNEL_ANGULAR, "angular"},
      {UNICON__KERNEL, UNICON__KERNEL_ARCCOS0, "arccos0"},
      {UNICON__KERNEL, UNICON__KERNEL_ARCCOS1, "arccos1"},
      {UNICON__KERNEL, UNICON__KERNEL_ARCCOS2, "arccos2"},
      {UNICON__KERNEL, UNICON__KERNEL_EXPCOS, "expcos"},
      {UNICON__KERNEL, UNICON__KERNEL_RBF, "rbf"},
      {UNICON__KERNEL, UNICON__KERNEL_MATERN12, "matern12"},
      {UNICON__KERNEL, UNICON__KERNEL_LAPLACE, "laplace"},
      {UNICON__KERNEL, UNICON__KERNEL_MATERN32, "matern32"},
      {UNICON__KERNEL, UNICON__KERNEL_MATERN52, "matern52"},
      {UNICON__KERNEL, UNICON__KERNEL_POLY, "poly"},
      {UNICON__KERNEL_X, UNICON__KERNEL_POLY, "poly"},
      {UNICON__KERNEL_Y, UNICON__KERNEL_POLY, "poly"},
  };
  scratch *s = *state;
  for (size_t k = 0; k < sizeof places / sizeof *places; k++)
    expect(s, unicon__option_row(places[k].id), places[k].word, 0, places[k].number);
}

static void memory_failures_are_reported(void **state) {
  scratch *s = *state;
  const int points =
      scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, make_and_set, NULL);
  assert_int_equal(points, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(every_default_parses),
      SCRATCH_TEST(numbers_have_bounds),
      SCRATCH_TEST(sides_may_differ),
      SCRATCH_TEST(words_are_whole),
      SCRATCH_TEST(words_stand_where_their_numbers_are),
      SCRATCH_TEST(bytes_have_suffixes),
      SCRATCH_TEST(names_are_found),
      SCRATCH_TEST(scopes_are_kept_apart),
      SCRATCH_TEST(presets_hold_known_values),
      SCRATCH_TEST(given_wins_over_preset),
      SCRATCH_TEST(values_are_copied),
      SCRATCH_TEST(older_values_are_not_kept),
      SCRATCH_TEST(the_locale_does_not_matter),
      SCRATCH_TEST(memory_failures_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
