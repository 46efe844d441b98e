/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation, copy and launch of a device fails once, and a device is taken away at every one
 * of them: a call ends with a sentence or goes on on the CPU, nothing is left behind, and the next
 * call on the CPU is as if nothing had been.
 *
 * UNICON_TEST_DEVICE=cuda runs it there, with a plugin that was built with UNICON_CUDA_FAULTS. */
#include "soft/loaded.h"

#include "device/use.h"
#include "support.h"

enum { N = 60, DX = 12, DY = 9 };

typedef struct what {
  const char *name;
  const char *option[10];
  bool use; /* search, evaluate and embed, instead of a fit */
} what;

static const what tried[] = {
    {"fast", {"rank", "5"}, false},
    {"landmarks",
     {"kernel", "angular", "landmarks", "20", "map", "nystrom", "rank", "5", "balance", "off"},
     false},
    {"clip", {"iterations", "1", "rank", "5", "balance", "off"}, false},
    {"siglip", {"iterations", "1", "loss", "siglip", "rank", "5", "balance", "off"}, false},
    {"batches", {"iterations", "1", "batch", "30", "rank", "5", "balance", "off"}, false},
    {"refine", {"refine", "1", "refine_batch", "30", "rank", "5", "balance", "off"}, false},
    {"use", {NULL}, true},
};

enum { TRIED = sizeof tried / sizeof *tried };

typedef struct bench {
  scratch *s;
  problem p;
  unicon_model *model; /* balanced */
  const char *device;
  unicon__device_fault_fn fault;
} bench;

static unicon_status fit(bench *b, const char *const *option) {
  unicon_options *options = support_options(b->s->ctx, NULL);
  unicon_model *model = NULL;
  for (int k = 0; k < 10 && option[k]; k += 2)
    CHECK_OK(b->s->ctx, unicon_options_set(b->s->ctx, options, option[k], option[k + 1]));
  const unicon_status status = unicon_fit(
      b->s->ctx, &UNICON_DATA(.x = b->p.rows_x, .y = b->p.rows_y), NULL, options, &model);
  unicon_options_destroy(options);
  assert_true((status == UNICON_OK) == (model != NULL));
  unicon_model_destroy(model);
  return status;
}

static unicon_status use(bench *b) {
  unicon_ctx *ctx = b->s->ctx;
  const unicon_view x = UNICON_VIEW(.rows = b->p.rows_x, .model = b->model, .side = UNICON_X);
  const unicon_view y = UNICON_VIEW(.rows = b->p.rows_y, .model = b->model, .side = UNICON_Y);
  unicon_result *result = NULL;
  int64_t id[N * 3];
  float score[N * 3];
  unicon_status status = unicon_search(ctx, &x, &y, 3, id, score);
  if (status == UNICON_OK) status = unicon_evaluate(ctx, &x, &y, NULL, NULL, &result);
  unicon_result_destroy(result);
  return status;
}

static unicon_status attempt(bench *b, const what *w) {
  return w->use ? use(b) : fit(b, w->option);
}

/* One way of failing at event k; returns whether there was such an event. *ended: with a sentence. */
static bool fails_at(bench *b, const what *w, long k, int stays, bool *ended) {
  unicon_ctx *ctx = b->s->ctx;
  CHECK_OK(ctx, unicon_ctx_set(ctx, "device", b->device));
  const uint64_t memory = scratch_memory(b->s);
  (void)b->fault(k, stays);
  const unicon_status status = attempt(b, w);
  *ended = status != UNICON_OK;
  if (*ended && (status != UNICON_ERR_DEVICE || !strstr(unicon_ctx_error(ctx), "device ")))
    print_error("%s, event %ld: %s\n", w->name, k, unicon_ctx_error(ctx));
  assert_true(status == UNICON_OK || status == UNICON_ERR_DEVICE);
  if (*ended) assert_non_null(strstr(unicon_ctx_error(ctx), "device "));
  if (!*ended) assert_string_equal(unicon_ctx_error(ctx), "");
  assert_int_equal(scratch_memory(b->s), memory);
  if (ctx->where.device) {
    unicon__device_memory there;
    ctx->where.table->memory(ctx->where.device, &there);
    if (there.used) print_error("%s, event %ld: memory is kept\n", w->name, k);
    assert_int_equal(there.used, 0);
  }
  const bool struck = b->fault(0, 0) == 0;
  if (struck && stays && k % 16 == 0) { /* what is gone stays gone: the next call says so too */
    (void)b->fault(1, 1);
    const unicon_status again = attempt(b, w);
    assert_true(again == UNICON_OK || again == UNICON_ERR_DEVICE);
    (void)b->fault(0, 0);
  }
  CHECK_OK(ctx, unicon_ctx_set(ctx, "device", "cpu"));
  return struck;
}

static bool bench_open(bench *b, scratch *s) {
  const char *device = getenv("UNICON_TEST_DEVICE");
  char path[1200];
  *b = (bench){.s = s, .device = device ? device : "soft"};
  soft_reset();
  CHECK_OK(s->ctx, unicon_device_folder(s->ctx, soft_folder()));
  snprintf(path, sizeof path, "%s/%slibunicon_%s.so", soft_folder(),
           strcmp(b->device, "soft") == 0 ? "" : "../lib/", b->device);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) print_error("%s\n", dlerror());
  assert_non_null(library);
  void *symbol = dlsym(library, UNICON__DEVICE_FAULT);
  if (!symbol) print_message("%s has no hook for faults\n", b->device);
  memcpy(&b->fault, &symbol, sizeof b->fault);
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &b->p);
  unicon_options *options = support_options(s->ctx, NULL);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  CHECK_OK(s->ctx, unicon_options_set(s->ctx, options, "balance", "softmax:5"));
  CHECK_OK(s->ctx, unicon_fit(s->ctx, &UNICON_DATA(.x = b->p.rows_x, .y = b->p.rows_y), NULL,
                              options, &b->model));
  unicon_options_destroy(options);
  return symbol != NULL;
}

static void bench_close(bench *b) {
  unicon_model_destroy(b->model);
  problem_free(&b->p);
}

/* All events of all calls, each in one way; at least so many of them end a call. */
static void walk(void **state, int stays, int least) {
  bench b;
  const bool there = bench_open(&b, *state);
  for (size_t t = 0; there && t < TRIED; t++) {
    int ends = 0;
    long k = 1;
    for (bool ended; fails_at(&b, &tried[t], k, stays, &ended); k++) ends += ended;
    print_message("%s: %ld events, %d of them end the call\n", tried[t].name, k - 1, ends);
    assert_true(ends >= least && k > ends);
  }
  bench_close(&b);
}

static void each_event_may_fail_once(void **state) {
  walk(state, 0, 5);
}

static void a_device_may_be_taken_away(void **state) {
  walk(state, 1, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(each_event_may_fail_once),
                                     SCRATCH_TEST(a_device_may_be_taken_away)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
