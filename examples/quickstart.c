/* SPDX-License-Identifier: Apache-2.0 */
/* The program of unicon/unicon.h, whole: fits a model on image.npy and text.npy of the current
 * folder, five captions per image, and prints how often an image finds one of its captions first.
 *
 * In a folder of its own, SOURCE being that of the source:
 *     UNICON=SOURCE/build/unicon bash SOURCE/examples/data.sh               makes the two files
 *     cc SOURCE/examples/quickstart.c $(pkg-config --cflags --libs unicon)  */
#include <stdio.h>

#include <unicon/unicon.h>

int main(void) {
  unicon_ctx *ctx = NULL;
  unicon_rows *x = NULL, *y = NULL;
  unicon_pairs *pairs = NULL;
  unicon_model *model = NULL;
  unicon_result *result = NULL;
  double hit = 0;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  if (unicon_rows_open(ctx, "image.npy", &x) || unicon_rows_open(ctx, "text.npy", &y) ||
      unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), 5, &pairs) ||
      unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y, .pairs = pairs), NULL, NULL, &model) ||
      unicon_evaluate(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X),
                      &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), pairs, NULL,
                      &result))
    fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
  else if (!unicon_result_number(result, "x_to_y.hit@1", &hit))
    printf("hit@1 on the rows it was fitted on: %.3f\n", hit);
  const int failed = unicon_ctx_error(ctx)[0] != '\0';
  unicon_result_destroy(result);
  unicon_model_destroy(model);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(y);
  unicon_rows_close(x);
  unicon_ctx_destroy(ctx);
  return failed;
}
