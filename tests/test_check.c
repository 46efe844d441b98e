/* SPDX-License-Identifier: Apache-2.0 */
/* unicon_check: it sees what is there, does not see what is not, and finds what was put wrong. */
#include "support.h"

enum { DX = 40, DY = 30 };

typedef struct sample {
  int64_t n_x, n_y;
  float *x, *y;
  int64_t *label;
} sample;

/* Rows of the linear model: x from sample 0 on, y from `apart` on, so that apart = 0 is aligned. */
static sample draw(unicon_ctx *ctx, int64_t seed, int64_t n, int64_t apart) {
  char text[32];
  sample s = {n, n, support_floats(n * DX), support_floats(n * DY),
              calloc((size_t)n + 1, sizeof *s.label)};
  float *other = support_floats(n * DX);
  snprintf(text, sizeof text, "%lld", (long long)seed);
  unicon_options *options = support_options(ctx, "seed", text, "noise", "0.3", NULL);
  CHECK_OK(ctx, unicon_synth(ctx, "linear", options, NULL, apart, n, other, s.y, s.label));
  if (apart > 0) {
    float *unused = support_floats(n * DY);
    CHECK_OK(ctx, unicon_synth(ctx, "linear", options, NULL, 0, n, s.x, unused, s.label));
    free(unused);
  } else {
    memcpy(s.x, other, (size_t)(n * DX) * sizeof *other);
  }
  free(other);
  unicon_options_destroy(options);
  return s;
}

static void sample_free(sample *s) {
  free(s->x);
  free(s->y);
  free(s->label);
}

static unicon_status check(unicon_ctx *ctx, const sample *s, const unicon_pairs *pairs,
                           const int64_t *groups, const unicon_options *options, int64_t room,
                           unicon_suspect *suspects, unicon_check_result *out) {
  unicon_rows *x = support_rows(ctx, "x.npy", s->x, s->n_x, DX);
  unicon_rows *y = support_rows(ctx, "y.npy", s->y, s->n_y, DY);
  const unicon_data data = {x, y, pairs, groups};
  const unicon_status status = unicon_check(ctx, &data, options, room, suspects, out);
  unicon_rows_close(x);
  unicon_rows_close(y);
  return status;
}

/* Rows paired with themselves: no other row is closer than the partner, and the share of those that
 * are farther is 1 to the last bit, since the partner itself is not among the others. */
static void perfect_pairs_have_nobody_closer(void **state) {
  scratch *s = *state;
  problem p;
  problem_make(s->ctx, 61, 200, 6, 6, 6, 0, &p);
  unicon_check_result r;
  unicon_suspect worst;
  const unicon_data data = {p.rows_x, p.rows_x, NULL, NULL};
  CHECK_OK(s->ctx, unicon_check(s->ctx, &data, NULL, 1, &worst, &r));
  CHECK_CLOSE(r.closer, 1, 1e-12);
  CHECK_CLOSE(worst.closer, 1, 1e-12);
  problem_free(&p);
}

/* ---- what is there ------------------------------------------------------------------------ */

static void aligned_data_are_seen(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int64_t seed = 0; seed < 5; seed++) {
    sample s = draw(ctx, seed, 600, 0);
    unicon_check_result r;
    CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 0, NULL, &r));
    assert_true(r.p_value < 0.01 && r.cosine > r.chance + 0.5 && r.closer > 0.95);
    CHECK_CLOSE(r.rank, 10, 1); /* the latent dimensions */
    CHECK_CLOSE(r.chance, 0, 0.1);
    assert_int_equal(r.pairs, 600);
    assert_int_equal(r.graded, 600);
    assert_int_equal(r.spectrum_count, DY);
    assert_true(r.spectrum[0] <= 1 && r.spectrum[0] >= r.spectrum[9] && r.noise < r.spectrum[8]);
    sample_free(&s);
  }
}

/* The spectrum is that of a fit with the same metric. */
static void the_spectrum_is_that_of_a_fit(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample s = draw(ctx, 3, 300, 0);
  unicon_check_result r;
  unicon_options *options = support_options(ctx, "preset", "fast", "ridge", "0.05", NULL);
  unicon_rows *x = support_rows(ctx, "x.npy", s.x, s.n_x, DX);
  unicon_rows *y = support_rows(ctx, "y.npy", s.y, s.n_y, DY);
  unicon_model *model = support_fit(ctx, x, y, NULL, options);
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, options, 0, NULL, &r));
  for (int k = 0; k < DY; k++) CHECK_CLOSE(r.spectrum[k], unicon_model_spectrum(model)[k], 1e-5);
  unicon_model_destroy(model);
  unicon_rows_close(x);
  unicon_rows_close(y);
  unicon_options_destroy(options);
  sample_free(&s);
}

/* ---- what is not -------------------------------------------------------------------------- */

/* A p-value below .05 comes in 2 of 40 by chance, in more than 6 once in 300. */
static void few(int count, const char *what) {
  if (count > 6) print_error("%s: %d of 40 unaligned sets have p < .05\n", what, count);
  assert_true(count <= 6);
}

static void unaligned_data_are_not_seen(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  int seen = 0;
  double sum = 0, closer = 0;
  for (int64_t seed = 0; seed < 40; seed++) {
    sample s = draw(ctx, seed, 200, 5000);
    unicon_check_result r;
    CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 0, NULL, &r));
    seen += r.p_value < 0.05;
    sum += r.p_value / 40;
    closer += r.closer / 40;
    sample_free(&s);
  }
  few(seen, "one to one");
  CHECK_CLOSE(sum, 0.5, 0.14); /* three standard deviations of a mean of 40 */
  CHECK_CLOSE(closer, 0.5, 0.02);
}

/* Each row COPIES times over, slightly changed: no more independent pairs than before. */
enum { BASE = 32, COPIES = 8, MANY = BASE * COPIES };

static float *repeated(const float *rows, int64_t n, int64_t copies, int64_t d) {
  float *out = support_floats(copies * n * d), *noise = support_normals(8, copies * n * d);
  for (int64_t k = 0; k < copies * n * d; k++)
    out[k] = rows[k / (copies * d) * d + k % d] + 0.01f * noise[k];
  free(noise);
  return out;
}

/* Rows that come in eights: of x, of y, or of both with groups that say so. */
static double p_of_repeated(unicon_ctx *ctx, int64_t seed, bool of_x, bool of_y) {
  sample s = draw(ctx, seed, BASE, 5000);
  float *x = repeated(s.x, BASE, of_x ? COPIES : 1, DX);
  float *y = repeated(s.y, BASE, of_y ? COPIES : 1, DY);
  const sample more = {of_x ? MANY : BASE, of_y ? MANY : BASE, x, y, NULL};
  unicon_pairs *pairs = NULL;
  unicon_check_result r;
  int64_t groups[MANY];
  for (int i = 0; i < MANY; i++) groups[i] = i / COPIES;
  if (of_x && of_y)
    CHECK_OK(ctx, unicon_pairs_identity(ctx, MANY, MANY, &pairs));
  else if (of_x)
    CHECK_OK(ctx, unicon_pairs_per_y(ctx, MANY, BASE, COPIES, &pairs));
  else
    CHECK_OK(ctx, unicon_pairs_per_x(ctx, BASE, MANY, COPIES, &pairs));
  CHECK_OK(ctx, check(ctx, &more, pairs, of_x && of_y ? groups : NULL, NULL, 0, NULL, &r));
  unicon_pairs_destroy(pairs);
  free(x);
  free(y);
  sample_free(&s);
  return r.p_value;
}

static void rows_that_belong_together_move_together(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  int seen[3] = {0};
  for (int64_t seed = 100; seed < 140; seed++) {
    seen[0] += p_of_repeated(ctx, seed, false, true) < 0.05;
    seen[1] += p_of_repeated(ctx, seed, true, false) < 0.05;
    seen[2] += p_of_repeated(ctx, seed, true, true) < 0.05;
  }
  few(seen[0], "eight y for each x");
  few(seen[1], "eight x for each y");
  few(seen[2], "groups of eight");
}

/* Labels that one side knows and the other does not are no alignment. */
static void labels_of_one_side_are_not_seen(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  for (int side = 0; side < 2; side++) {
    int seen = 0;
    for (int64_t seed = 200; seed < 240; seed++) {
      sample s = draw(ctx, seed, 160, 0);
      int64_t blind[160];
      uint64_t state_of = (uint64_t)seed;
      unicon_pairs *pairs = NULL;
      unicon_check_result r;
      for (int i = 0; i < 160; i++) blind[i] = (int64_t)(3 * support_uniform(&state_of));
      CHECK_OK(ctx, unicon_pairs_labels(ctx, side ? blind : s.label, 160, side ? s.label : blind,
                                        160, &pairs));
      CHECK_OK(ctx, check(ctx, &s, pairs, NULL, NULL, 0, NULL, &r));
      seen += r.p_value < 0.05;
      unicon_pairs_destroy(pairs);
      sample_free(&s);
    }
    few(seen, side ? "labels that y knows" : "labels that x knows");
  }
}

/* ---- what is wrong ------------------------------------------------------------------------ */

static bool listed(const unicon_suspect *suspects, int64_t count, int64_t x, int64_t y) {
  for (int64_t k = 0; k < count; k++)
    if (suspects[k].x == x && suspects[k].y == y) return true;
  return false;
}

static void swapped_pairs_are_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  static const int64_t swap[4][2] = {{3, 400}, {77, 78}, {150, 299}, {211, 520}};
  sample s = draw(ctx, 1, 600, 0);
  unicon_suspect suspects[12];
  unicon_check_result r;
  for (int k = 0; k < 4; k++) {
    float row[DY], *a = s.y + swap[k][0] * DY, *b = s.y + swap[k][1] * DY;
    memcpy(row, a, sizeof row);
    memcpy(a, b, sizeof row);
    memcpy(b, row, sizeof row);
  }
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 12, suspects, &r));
  assert_int_equal(r.suspects, 12);
  for (int k = 0; k < 8; k++)
    assert_true(listed(suspects, 12, swap[k / 2][k % 2], swap[k / 2][k % 2]));
  for (int k = 1; k < 12; k++) assert_true(suspects[k - 1].closer <= suspects[k].closer);
  assert_true(suspects[0].closer < 0.5 && r.doubtful >= 1 && r.doubtful <= 8);
  sample_free(&s);
}

/* Three captions for each image, one of them wrong: its pair is listed, the others are not. Rows
 * that are dropped do not move the numbers. */
static void a_wrong_caption_is_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample s = draw(ctx, 2, 200, 0);
  float *y = repeated(s.y, 200, 3, DY);
  sample more = {200, 600, s.x, y, NULL};
  unicon_pairs *pairs = NULL;
  unicon_suspect suspects[2];
  unicon_check_result r;
  unicon_options *options = support_options(ctx, "bad_rows", "drop", NULL);
  memcpy(y + (3 * 120 + 1) * DY, s.y + 5 * DY, DY * sizeof *y);
  memset(s.x, 0, DX * sizeof *s.x);
  memset(y + 10 * DY, 0, DY * sizeof *y);
  CHECK_OK(ctx, unicon_pairs_per_x(ctx, 200, 600, 3, &pairs));
  CHECK_OK(ctx, check(ctx, &more, pairs, NULL, options, 2, suspects, &r));
  assert_int_equal(r.rows_x, 199);
  assert_int_equal(r.pairs, 596);
  assert_int_equal(r.graded, 596);
  assert_int_equal(suspects[0].x, 120);
  assert_int_equal(suspects[0].y, 361);
  assert_true(suspects[0].closer < suspects[1].closer);
  unicon_options_destroy(options);
  unicon_pairs_destroy(pairs);
  free(y);
  sample_free(&s);
}

static void wrong_labels_are_found(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample s = draw(ctx, 4, 300, 0);
  unicon_suspect suspects[2];
  unicon_check_result r;
  unicon_pairs *pairs = NULL;
  int64_t label_x[300], label_y[300];
  for (int i = 0; i < 300; i++) label_x[i] = label_y[i] = s.label[i];
  label_x[70] = (label_x[70] + 1) % 3;
  label_y[201] = (label_y[201] + 2) % 3;
  CHECK_OK(ctx, unicon_pairs_labels(ctx, label_x, 300, label_y, 300, &pairs));
  CHECK_OK(ctx, check(ctx, &s, pairs, NULL, NULL, 2, suspects, &r));
  assert_true(r.p_value < 0.01);
  assert_int_equal(r.rank, 2); /* three classes */
  assert_int_equal(r.graded, 600);
  assert_true(listed(suspects, 2, 70, -1));
  assert_true(listed(suspects, 2, -1, 201));
  unicon_pairs_destroy(pairs);
  sample_free(&s);
}

/* Nearly all rows connected: a chain i - i, i - i+1. There are no independent pairs, and still an
 * answer. */
static void connected_rows_are_checked_too(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample s = draw(ctx, 5, 200, 0);
  unicon_check_result r;
  unicon_pairs *pairs = NULL;
  int64_t x[399], y[399];
  for (int k = 0; k < 399; k++) {
    x[k] = k / 2;
    y[k] = (k + 1) / 2;
  }
  CHECK_OK(ctx, unicon_pairs_list(ctx, 200, 200, x, y, NULL, 399, &pairs));
  CHECK_OK(ctx, check(ctx, &s, pairs, NULL, NULL, 0, NULL, &r));
  assert_true(r.p_value < 0.01);
  assert_int_equal(r.graded, 399);
  unicon_pairs_destroy(pairs);
  sample_free(&s);
}

/* ---- promises ----------------------------------------------------------------------------- */

static void the_seed_decides(void **state) {
  unicon_ctx *ctx = ((scratch *)*state)->ctx;
  sample s = draw(ctx, 7, 300, 0);
  unicon_suspect a[5], b[5], c[5];
  unicon_check_result r = {0}, again = {0}, other = {0};
  unicon_options *options = support_options(ctx, "seed", "12", NULL);
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 5, a, &r));
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 5, b, &again));
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, options, 5, c, &other));
  assert_memory_equal(&r, &again, sizeof r);
  assert_memory_equal(a, b, sizeof a);
  assert_true(other.cosine != r.cosine && other.p_value < 0.01);
  CHECK_OK(ctx, unicon_ctx_set(ctx, "threads", "1"));
  CHECK_OK(ctx, check(ctx, &s, NULL, NULL, NULL, 5, b, &again));
  assert_int_equal(again.rank, r.rank);
  CHECK_CLOSE(again.cosine, r.cosine, 1e-4);
  CHECK_CLOSE(again.closer, r.closer, 1e-3);
  unicon_options_destroy(options);
  sample_free(&s);
}

static int stop(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)done;
  return strcmp(phase, user) == 0;
}

static void mistakes_have_sentences(void **state) {
  scratch *s = *state;
  sample few_rows = draw(s->ctx, 8, 19, 0), enough = draw(s->ctx, 9, 60, 0);
  unicon_check_result r;
  char shuffles[] = "shuffles", pairs[] = "pairs";
  scratch_failed(s, check(s->ctx, &few_rows, NULL, NULL, NULL, 0, NULL, &r), UNICON_ERR_DATA,
                 "19 rows of x", "at least 20");
  scratch_failed(s, check(s->ctx, &enough, NULL, NULL, NULL, 3, NULL, &r), UNICON_ERR_ARGUMENT,
                 "suspects", "");
  scratch_failed(s, unicon_check(s->ctx, NULL, NULL, 0, NULL, &r), UNICON_ERR_ARGUMENT, "rows", "");
  unicon_ctx_set_progress(s->ctx, stop, shuffles);
  scratch_failed(s, check(s->ctx, &enough, NULL, NULL, NULL, 0, NULL, &r), UNICON_ERR_CANCELLED,
                 "shuffles", "");
  unicon_ctx_set_progress(s->ctx, stop, pairs);
  scratch_failed(s, check(s->ctx, &enough, NULL, NULL, NULL, 0, NULL, &r), UNICON_ERR_CANCELLED,
                 "pairs", "");
  sample_free(&few_rows);
  sample_free(&enough);
}

static unicon_status attempt(scratch *s, void *user) {
  const sample *data = user;
  unicon_check_result r;
  unicon__faults kept = s->ctx->faults;
  s->ctx->faults = (unicon__faults){-1, -1, -1, -1};
  unicon_rows *x = support_rows(s->ctx, "x.npy", data->x, data->n_x, DX);
  unicon_rows *y = support_rows(s->ctx, "y.npy", data->y, data->n_y, DY);
  s->ctx->faults = kept;
  const unicon_status status =
      unicon_check(s->ctx, &(unicon_data){x, y, NULL, NULL}, NULL, 0, NULL, &r);
  unicon_rows_close(x);
  unicon_rows_close(y);
  return status;
}

static void memory_may_run_out(void **state) {
  scratch *s = *state;
  sample data = draw(s->ctx, 9, 60, 0);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "threads", "1"));
  assert_true(scratch_faults(s, &s->ctx->faults.allocation, UNICON_ERR_MEMORY, attempt, &data) >
              100);
  sample_free(&data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(aligned_data_are_seen),
      SCRATCH_TEST(the_spectrum_is_that_of_a_fit),
      SCRATCH_TEST(unaligned_data_are_not_seen),
      SCRATCH_TEST(rows_that_belong_together_move_together),
      SCRATCH_TEST(labels_of_one_side_are_not_seen),
      SCRATCH_TEST(swapped_pairs_are_found),
      SCRATCH_TEST(a_wrong_caption_is_found),
      SCRATCH_TEST(wrong_labels_are_found),
      SCRATCH_TEST(connected_rows_are_checked_too),
      SCRATCH_TEST(the_seed_decides),
      SCRATCH_TEST(mistakes_have_sentences),
      SCRATCH_TEST(perfect_pairs_have_nobody_closer),
      SCRATCH_TEST(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
