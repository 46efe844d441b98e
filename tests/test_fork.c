/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that fork: a context goes on in the child, whose pool has lost its threads, and a child
 * that is made while another thread works finds no lock held. A child that hangs is ended by its
 * alarm, and fails. */
#include <cblas.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "support.h"

enum { N = 400, DX = 40, DY = 30, PATIENCE = 30, FORKS = 25 };

typedef struct things {
  unicon_ctx *ctx;
  problem p;
  unicon_options *options;
  unicon_model *model;
} things;

static void things_open(scratch *s, things *t) {
  *t = (things){.ctx = s->ctx};
  CHECK_OK(t->ctx, unicon_ctx_set(t->ctx, "threads", "3"));
  problem_make(s->ctx, 5, N, DX, DY, 8, 0.3, &t->p);
  t->options = support_options(s->ctx, "iterations", "1", "rank", "6", NULL);
  t->model = support_fit(s->ctx, t->p.rows_x, t->p.rows_y, NULL, t->options);
}

static void things_close(things *t) {
  unicon_model_destroy(t->model);
  unicon_options_destroy(t->options);
  problem_free(&t->p);
}

/* A fit gives the same spectrum as the one before the fork. No assertions: it runs in children. */
static bool fits(unicon_ctx *ctx, const things *t) {
  unicon_model *model = NULL;
  const unicon_data data = {t->p.rows_x, t->p.rows_y, NULL, NULL};
  if (unicon_fit(ctx, &data, NULL, t->options, &model) != UNICON_OK) return false;
  const size_t size = (size_t)unicon_model_rank(t->model) * sizeof(float);
  const bool same =
      unicon_model_rank(model) == unicon_model_rank(t->model) &&
      memcmp(unicon_model_spectrum(model), unicon_model_spectrum(t->model), size) == 0;
  unicon_model_destroy(model);
  return same;
}

/* Runs `body` in a child; it must say true within its time. */
static void in_child(bool (*body)(things *t), things *t) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(PATIENCE);
    _exit(body(t) ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status)) print_error("the child was ended by signal %d\n", WTERMSIG(status));
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool fit_and_destroy(things *t) {
  const bool good = fits(t->ctx, t);
  unicon_ctx_destroy(t->ctx);
  return good;
}

static bool destroy_alone(things *t) {
  unicon_ctx_destroy(t->ctx);
  return true;
}

static bool set_threads(things *t) {
  return unicon_ctx_set(t->ctx, "threads", "2") == UNICON_OK && fits(t->ctx, t);
}

static void a_context_goes_on_in_the_child(void **state) {
  things t;
  things_open(*state, &t);
  in_child(fit_and_destroy, &t);
  in_child(destroy_alone, &t);
  in_child(set_threads, &t);
  assert_true(fits(t.ctx, &t)); /* and in the parent */
  things_close(&t);
}

/* ---- a fork inside a call ----------------------------------------------------------------- */

typedef struct forking {
  pid_t child;
  int visits;
  bool is_child;
} forking;

static int fork_once(void *user, const char *phase, double done, double left) {
  (void)left;
  (void)phase;
  (void)done;
  forking *f = user;
  if (f->visits++ != 3) return 0;
  f->child = fork();
  f->is_child = f->child == 0;
  if (f->is_child) alarm(PATIENCE);
  return 0;
}

static void a_call_goes_on_in_the_child(void **state) {
  things t;
  forking f = {0};
  int status = 0;
  things_open(*state, &t);
  t.ctx->progress_interval = 0;
  unicon_ctx_set_progress(t.ctx, fork_once, &f);
  const bool good = fits(t.ctx, &t);
  if (f.is_child) _exit(good ? 0 : 1);
  assert_true(good && f.child > 0);
  assert_int_equal(waitpid(f.child, &status, 0), f.child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  things_close(&t);
}

/* ---- a fork beside a call ----------------------------------------------------------------- */

typedef struct neighbour {
  const things *t;
  atomic_bool stop;
  atomic_int fitted;
  bool good;
} neighbour;

static void *fit_on_and_on(void *user) {
  neighbour *n = user;
  unicon_ctx *ctx = NULL;
  n->good =
      unicon_ctx_create(&ctx) == UNICON_OK && unicon_ctx_set(ctx, "threads", "2") == UNICON_OK;
  while (n->good && !atomic_load(&n->stop)) {
    n->good = fits(ctx, n->t);
    atomic_fetch_add(&n->fitted, 1);
  }
  unicon_ctx_destroy(ctx);
  return NULL;
}

static int blas_threads;

static bool fit_with_a_new_context(things *t) {
  unicon_ctx *ctx = NULL;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return false;
  const bool good = fits(ctx, t) && fits(t->ctx, t);
  unicon_ctx_destroy(ctx);
  unicon_ctx_destroy(t->ctx);
  return good && openblas_get_num_threads() == blas_threads;
}

/* The allocator of a sanitizer has locks that a fork leaves taken, and the child waits for them. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static void a_child_made_beside_a_call_works(void **state) {
#ifdef SANITIZED
  skip();
#endif
  things t;
  pthread_t thread;
  things_open(*state, &t);
  blas_threads = openblas_get_num_threads();
  neighbour n = {.t = &t};
  assert_int_equal(pthread_create(&thread, NULL, fit_on_and_on, &n), 0);
  while (atomic_load(&n.fitted) < 1) usleep(1000);
  for (int k = 0; k < FORKS; k++) in_child(fit_with_a_new_context, &t);
  atomic_store(&n.stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(n.good);
  assert_int_equal(openblas_get_num_threads(), blas_threads);
  things_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCRATCH_TEST(a_context_goes_on_in_the_child),
      SCRATCH_TEST(a_call_goes_on_in_the_child),
      SCRATCH_TEST(a_child_made_beside_a_call_works),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
