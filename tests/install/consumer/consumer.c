/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program in the common part of C and C++: wraps rows, looks at them through a view, reads
 * a result by name, and prints the version. */
#include <unicon/unicon.h>

#include <stdio.h>

int main(void) {
  const float z[] = {1, 0, 0, 1};
  unicon_ctx *ctx = NULL;
  unicon_rows *rows = NULL;
  unicon_result *result = NULL;
  double hit = 0;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  int failed = unicon_rows_wrap(ctx, "z", z, UNICON_F32, 2, 2, 2 * sizeof *z, sizeof *z, &rows);
  unicon_view view = UNICON_VIEW();
  view.rows = rows;
  failed = failed || unicon_evaluate(ctx, &view, &view, NULL, NULL, &result) ||
           unicon_result_number(result, "x_to_y.hit@1", &hit) || hit != 1;
  if (!failed) printf("%s\n", unicon_version());
  unicon_result_destroy(result);
  unicon_rows_close(rows);
  unicon_ctx_destroy(ctx);
  return failed;
}
