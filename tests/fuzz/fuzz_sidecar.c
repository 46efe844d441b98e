/* SPDX-License-Identifier: Apache-2.0 */
/* Sidecars of moved vectors, and journals of rewrites. */
#include "target.h"

#include "io/sidecar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unicon_ctx *ctx = target_ctx();
  unicon__sidecar out;
  TARGET_HOLDS(unicon__enter(ctx) == UNICON_OK);
  const unicon_status status = unicon__leave(
      ctx, unicon__sidecar_parse(ctx, "input.json", (unicon__bytes){data, size}, &out));
  if (target_ok(ctx, status)) {
    TARGET_HOLDS(out.rows >= 0 && out.width >= 0 && out.first >= 0);
    TARGET_HOLDS(out.done >= 0 && out.done <= out.rows);
    TARGET_HOLDS(out.width == 0 || out.rows <= INT64_MAX / 4 / out.width); /* bytes are counted */
    TARGET_HOLDS(strlen(out.model) == 16 && strlen(out.hash) == 16 && strlen(out.source) == 16);
    TARGET_HOLDS(strlen(out.space) < sizeof out.space && strlen(out.form) < sizeof out.form);
  }
  target_done(ctx);
  return 0;
}
