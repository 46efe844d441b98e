/* SPDX-License-Identifier: Apache-2.0 */
/* .fbin files, the same as .u8bin and .i8bin, and .ibin as a table of whole numbers. */
#include "target.h"

#include "io/rows_npy.h"

/* Pairs or labels: every column can be read. */
static void table(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon__npy t = {.rows = 0};
  int64_t *column;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  unicon_status status = unicon__table_open(ctx, "input.ibin", (unicon__bytes){data, size}, &t);
  if (target_ok(ctx, status) && t.rows > 0 && t.cols > 0) {
    TARGET_HOLDS((column = unicon__new(ctx, t.rows, sizeof *column)));
    status = unicon__npy_integers(ctx, "input.ibin", &t, t.cols - 1, column);
  }
  TARGET_HOLDS(unicon__leave(ctx, status) == status);
  target_done(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target_matrix("input.fbin", unicon__fbin_parse, data, size);
  target_matrix("input.u8bin", unicon__u8bin_parse, data, size);
  target_matrix("input.i8bin", unicon__i8bin_parse, data, size);
  table(data, size);
  return 0;
}
