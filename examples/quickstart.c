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
  unicon_metrics to_y, to_x;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  if (unicon_rows_open(ctx, "image.npy", &x) || unicon_rows_open(ctx, "text.npy", &y) ||
      unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), 5, &pairs) ||
      unicon_fit(ctx, &(unicon_data){x, y, pairs, NULL}, NULL, NULL, &model) ||
      unicon_evaluate(ctx, &(unicon_view){.rows = x, .model = model, .side = UNICON_X},
                      &(unicon_view){.rows = y, .model = model, .side = UNICON_Y}, pairs, NULL,
                      &to_y, &to_x))
    fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
  else
    printf("hit@1 on the rows it was fitted on: %.3f\n", to_y.value[UNICON_HIT_1]);
  const int failed = unicon_ctx_error(ctx)[0] != '\0';
  unicon_model_destroy(model);
  unicon_pairs_destroy(pairs);
  unicon_rows_close(y);
  unicon_rows_close(x);
  unicon_ctx_destroy(ctx);
  return failed;
}
