/* SPDX-License-Identifier: Apache-2.0 */
/* Files of labels. The input is two of them: two bytes with the length of the first, both files. */
#include "target.h"

#include "io/pair_set.h"

static void use(unicon_ctx *ctx, const int64_t *x, int64_t n_x, const int64_t *y, int64_t n_y) {
  unicon_pairs *pairs = NULL;
  if (n_y > 0 && target_ok(ctx, unicon__pairs_from_labels(ctx, x, n_x, y, n_y, UNICON__LABELS_WHOLE,
                                                          &pairs))) {
    int64_t count = 0;
    for (int64_t i = 0; i < n_x; i++) count += unicon__positives_x(pairs, i).count;
    TARGET_HOLDS(count == unicon_pairs_count(pairs));
    for (int32_t k = 1; k < pairs->classes; k++)
      TARGET_HOLDS(pairs->class_key[k] > pairs->class_key[k - 1]);
  }
  unicon_pairs_destroy(pairs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  const size_t all = size > 2 ? size - 2 : 0;
  const size_t asked = size >= 2 ? (size_t)data[0] + 256u * data[1] : 0;
  const size_t first = asked < all ? asked : all;
  const unicon__bytes files[2] = {{all ? data + 2 : data, first},
                                  {all ? data + 2 + first : data, all - first}};
  int64_t *x = NULL, *y = NULL, n_x = 0, n_y = 0;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  const unicon_status status = unicon__labels_parse(
      ctx, "x.txt", files[0], first < all ? "y.txt" : NULL, files[1], &x, &n_x, &y, &n_y);
  if (target_ok(ctx, status)) use(ctx, x, n_x, y, n_y);
  TARGET_HOLDS(unicon__leave(ctx, status) == status);
  target_done(ctx);
  return 0;
}
