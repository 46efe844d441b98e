/* SPDX-License-Identifier: Apache-2.0 */
/* Devices are found, asked, opened and closed: what option device says and takes. */
#define _GNU_SOURCE /* dladdr */  // NOLINT(bugprone-reserved-identifier)
#include "soft/loaded.h"

#include <sys/wait.h>

#include "device/plugin.h"
#include "device/use.h"
#include "support.h"

enum { ROOM = 9 };

/* A context whose plugins are in the folder of the soft one. */
static unicon_ctx *open_near(const scratch *s) {
  CHECK_OK(s->ctx, unicon_device_folder(s->ctx, soft_folder()));
  return s->ctx;
}

static void refused(const scratch *s, const char *text, unicon_status status, const char *word,
                    const char *other) {
  scratch_failed(s, unicon_ctx_set(s->ctx, "device", text), status, word, other);
}

static void names_and_limits_are_read(void **state) {
  scratch *s = *state;
  soft_reset();
  open_near(s);
  static const char *const wrong[] = {"",
                                      "Soft",
                                      "../soft",
                                      "soft:",
                                      "soft:12",
                                      "soft:x",
                                      "so ft",
                                      "cpu:4G",
                                      ":4G",
                                      "cpu,",
                                      "soft:1e30",
                                      "soft:-4M",
                                      "a_name_that_is_far_too_long_for_a_device"};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
    refused(s, wrong[k], UNICON_ERR_OPTION, "device is", "cuda:4G");
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto"));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto:2M"));
  assert_int_equal(s->ctx->where.limit, 2 << 20);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "soft:3M"));
  assert_true(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 0));
  unicon__device_memory memory;
  s->ctx->where.table->memory(s->ctx->where.device, &memory);
  assert_int_equal(memory.left, 3 << 20);
  scratch_failed(s, unicon_device_folder(s->ctx, NULL), UNICON_ERR_ARGUMENT, "device_folder",
                 "path");
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

static void absent_and_unusable_ones_are_refused(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  refused(s, "nothing", UNICON_ERR_DEVICE, "libunicon_nothing.so", "accepted: auto, cpu");
  open_near(s);
  soft->unusable = 1;
  refused(s, "soft", UNICON_ERR_DEVICE, "device soft", "the test says that it is not");
  soft->unusable = 0;
  soft->version = UNICON__DEVICE_VERSION + 1;
  char theirs[40], ours[40];
  snprintf(theirs, sizeof theirs, "interface version %d", UNICON__DEVICE_VERSION + 1);
  snprintf(ours, sizeof ours, "takes %d", UNICON__DEVICE_VERSION);
  refused(s, "soft", UNICON_ERR_DEVICE, theirs, ours);
  soft->version = UNICON__DEVICE_VERSION;
  soft->fail_launch = 0;
  refused(s, "soft", UNICON_ERR_DEVICE, "device soft", "it did not start");
  assert_int_equal(soft->opened, 0);
  assert_string_equal(unicon__device_name(s->ctx), "cpu");
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "soft"));
  assert_int_equal(soft->opened, 1);
  refused(s, "nothing", UNICON_ERR_DEVICE, "nothing", "cannot be used");
  assert_int_equal(soft->opened, 0);
}

static void strange_libraries_are_refused(void **state) {
  scratch *s = *state;
  char path[1200], own[1200];
  soft_reset();
  CHECK_OK(s->ctx, unicon_device_folder(s->ctx, s->folder));
  scratch_text(s, "libunicon_text.so", "not a library");
  refused(s, "text", UNICON_ERR_DEVICE, "device text", "cannot be loaded");
  snprintf(path, sizeof path, "%s/libunicon_soft.so", soft_folder());
  snprintf(own, sizeof own, "%s/libunicon_other.so", s->folder);
  assert_int_equal(symlink(path, own), 0);
  refused(s, "other", UNICON_ERR_DEVICE, "device other", "of another name");
  Dl_info about;
  assert_true(dladdr((void *)(uintptr_t)&cos, &about) != 0);
  snprintf(own, sizeof own, "%s/libunicon_plain.so", s->folder);
  assert_int_equal(symlink(about.dli_fname, own), 0);
  refused(s, "plain", UNICON_ERR_DEVICE, "device plain", UNICON__DEVICE_ENTRY);
}

static void all_are_listed(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  unicon_device list[ROOM];
  size_t count;
  scratch_text(s, "libunicon_text.so", "not a library");
  scratch_text(s, "libunicon_.so", "no name");
  scratch_text(s, "libunicon.so", "no plugin");
  CHECK_OK(s->ctx, unicon_device_folder(s->ctx, s->folder));
  CHECK_OK(s->ctx, unicon_devices(s->ctx, list, ROOM, &count));
  /* a build with the plugin for CUDA has that one too; soft lies beside the test */
  const size_t cuda = count > 1 && strcmp(list[1].name, "cuda") == 0, at = 1 + cuda;
  assert_int_equal(count, at + 2);
  assert_string_equal(list[0].name, "cpu");
  assert_true(list[0].usable && (list[0].chosen || cuda)); /* soft is never chosen unasked */
  assert_string_equal(list[at].name, "soft");
  assert_true(list[at].usable && !list[at].chosen);
  assert_string_equal(list[at + 1].name, "text");
  assert_true(!list[at + 1].usable && strstr(list[at + 1].text, "cannot be loaded"));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "soft"));
  soft->unusable = 1;
  CHECK_OK(s->ctx, unicon_devices(s->ctx, list, at + 1, &count));
  assert_int_equal(count, at + 2);
  assert_true(!list[0].chosen && list[at].chosen && !list[at].usable);
  assert_int_equal(soft->opened, 1);
  scratch_failed(s, unicon_devices(s->ctx, NULL, 2, &count), UNICON_ERR_ARGUMENT, "devices",
                 "list");
  scratch_failed(s, unicon_devices(s->ctx, list, 2, NULL), UNICON_ERR_ARGUMENT, "devices",
                 "length");
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* auto takes the one it prefers, and goes on without it where it cannot. */
static void auto_takes_the_best(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  log_book book = {.count = {0}};
  unicon_ctx_set_log(s->ctx, support_log, &book);
  open_near(s);
  soft->preference = 5;
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto"));
  assert_int_equal(soft->opened, 0); /* not before it is needed */
  assert_true(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 1e9));
  assert_int_equal(soft->opened, 1);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto"));
  soft->fail_launch = 0;
  assert_false(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 1e9));
  assert_int_equal(book.count[UNICON_LOG_WARNING], 1);
  assert_non_null(strstr(book.last[UNICON_LOG_WARNING], "the CPU goes on: it did not start"));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto"));
  soft->unusable = 1;
  assert_false(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 1e9));
  assert_non_null(strstr(book.last[UNICON_LOG_INFO], "device soft is not used"));
  assert_int_equal(soft->opened, 0);
}

/* Stages of less work than a device wants do not go there. */
static void little_work_stays(void **state) {
  scratch *s = *state;
  soft_control *soft = soft_reset();
  const size_t place = offsetof(unicon__device_table, nearest);
  soft->least_flops = 1e8;
  soft->preference = 1;
  open_near(s);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "auto"));
  assert_false(unicon__device_has(s->ctx, place, 1e6)); /* no plugin is looked for */
  assert_null(s->ctx->where.table);
  assert_false(unicon__device_has(s->ctx, place, 9e7));
  assert_non_null(s->ctx->where.table);
  assert_int_equal(soft->opened, 0); /* nor is it opened for them */
  assert_true(unicon__device_has(s->ctx, place, 1e8));
  assert_int_equal(soft->opened, 1);
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

/* In a child the parent's device is left alone, and the CPU goes on. */
static void a_fork_leaves_it(void **state) {
  scratch *s = *state;
  soft_reset();
  soft_use(s->ctx, "soft");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0)
    _exit(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 0) ||
                  s->ctx->where.table
              ? 1
              : 0);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_true(unicon__device_has(s->ctx, offsetof(unicon__device_table, nearest), 0));
  CHECK_OK(s->ctx, unicon_ctx_set(s->ctx, "device", "cpu"));
}

int main(void) {
  const struct CMUnitTest tests[] = {SCRATCH_TEST(names_and_limits_are_read),
                                     SCRATCH_TEST(absent_and_unusable_ones_are_refused),
                                     SCRATCH_TEST(strange_libraries_are_refused),
                                     SCRATCH_TEST(all_are_listed),
                                     SCRATCH_TEST(auto_takes_the_best),
                                     SCRATCH_TEST(little_work_stays),
                                     SCRATCH_TEST(a_fork_leaves_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
