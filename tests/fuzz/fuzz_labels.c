/* SPDX-License-Identifier: Apache-2.0 */
/* Files of labels. The input is two of them: two bytes with the length of the first, both files.
 * They are read by path, so they are files in memory. */
#define _GNU_SOURCE /* memfd_create */
#include "target.h"

#include <sys/mman.h>
#include <unistd.h>

#include "io/pair_set.h"

/* Replaces the contents of memory file `which`, and writes its path. */
static void store(int which, const uint8_t *data, size_t size, char path[64]) {
  static int file[2];
  if (!file[which]) file[which] = memfd_create("labels", MFD_CLOEXEC);
  TARGET_HOLDS(file[which] > 0 && ftruncate(file[which], 0) == 0);
  if (size) TARGET_HOLDS(pwrite(file[which], data, size, 0) == (ssize_t)size);
  snprintf(path, 64, "/proc/self/fd/%d", file[which]);
}

/* Numbers from 0 on without a gap. */
static void look(const int64_t *label, int64_t count, int64_t all) {
  for (int64_t k = 0; k < count; k++) TARGET_HOLDS(label[k] >= 0 && label[k] < all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  char path[2][64];
  const size_t all = size > 2 ? size - 2 : 0;
  const size_t asked = size >= 2 ? (size_t)data[0] + 256u * data[1] : 0;
  const size_t first = asked < all ? asked : all;
  store(0, all ? data + 2 : data, first, path[0]);
  store(1, all ? data + 2 + first : data, all - first, path[1]);

  int64_t *x, *y = NULL, n_x = 0, n_y = 0;
  unicon__block *frame = unicon__enter(ctx);
  unicon_status status =
      unicon__labels_parse(ctx, path[0], first < all ? path[1] : NULL, &x, &n_x, &y, &n_y);
  if (status == UNICON_OK) {
    look(x, n_x, n_x + n_y);
    look(y, n_y, n_x + n_y);
  }
  const int both = target_ok(ctx, unicon__leave(ctx, frame, status)) && n_y > 0;
  unicon_pairs *pairs = NULL;
  if (both && target_ok(ctx, unicon_pairs_read_labels(ctx, path[0], path[1], n_x, n_y, &pairs))) {
    int64_t count = 0;
    for (int64_t i = 0; i < n_x; i++) count += unicon__positives_x(pairs, i).count;
    TARGET_HOLDS(count == unicon_pairs_count(pairs));
  }
  unicon_pairs_destroy(pairs);
  target_done(ctx);
  return 0;
}
