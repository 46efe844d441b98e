/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a model, saves it, loads it as another program would, and lists the three captions nearest
 * to each of the first images. Reads image.npy and text.npy of the current folder (data.sh makes
 * them) and writes model.safetensors. */
#include <inttypes.h>
#include <stdio.h>

#include <unicon/unicon.h>

enum { QUERIES = 4, NEAREST = 3, CAPTIONS = 5, RANK = 16 };

/* Options are set by name; a value out of its bounds or an unknown name is an error. */
static unicon_status fit_and_save(unicon_ctx *ctx, const unicon_data *data, const char *path) {
  unicon_options *options = NULL;
  unicon_model *model = NULL;
  unicon_status status = unicon_options_create(ctx, &options);
  if (!status) status = unicon_options_set(ctx, options, "preset", "fast");
  if (!status) status = unicon_options_set(ctx, options, "rank", "16");
  if (!status) status = unicon_fit(ctx, data, NULL, options, &model);
  if (!status) status = unicon_model_save(ctx, model, path);
  unicon_model_destroy(model);
  unicon_options_destroy(options);
  return status;
}

/* Embeds the first rows of x and searches all of y, both through the model. */
static unicon_status search(unicon_ctx *ctx, const unicon_data *data, const char *path) {
  float vector[QUERIES * RANK]; /* the model has at most the rank asked for */
  int64_t ids[QUERIES * NEAREST];
  float scores[QUERIES * NEAREST];
  unicon_model *model = NULL;
  unicon_rows *embedded = NULL;
  unicon_status status = unicon_model_load(ctx, path, &model);
  const int64_t rank = unicon_model_rank(model);
  const unicon_view images = UNICON_VIEW(.rows = data->x, .model = model, .side = UNICON_X),
                    captions = UNICON_VIEW(.rows = data->y, .model = model, .side = UNICON_Y);
  if (!status) status = unicon_embed(ctx, &images, 0, QUERIES, 1, vector);
  if (!status)
    status = unicon_rows_wrap(ctx, "queries", vector, UNICON_F32, QUERIES, rank,
                              rank * (int64_t)sizeof *vector, sizeof *vector, &embedded);
  /* Vectors that are in the shared space already need no model. */
  if (!status)
    status = unicon_search(ctx, &UNICON_VIEW(.rows = embedded, .side = UNICON_X), &captions,
                           NEAREST, ids, scores);
  for (int i = 0; i < QUERIES * NEAREST && !status; i++)
    printf("image %d: caption %" PRId64 " of image %" PRId64 ", cosine %.3f\n", i / NEAREST, ids[i],
           ids[i] / CAPTIONS, (double)scores[i]);
  unicon_rows_close(embedded);
  unicon_model_destroy(model);
  return status;
}

int main(void) {
  unicon_ctx *ctx = NULL;
  unicon_rows *x = NULL, *y = NULL;
  unicon_pairs *pairs = NULL;
  if (unicon_ctx_create(&ctx)) return 1;
  unicon_status status = unicon_rows_open(ctx, "image.npy", &x);
  if (!status) status = unicon_rows_open(ctx, "text.npy", &y);
  if (!status)
    status = unicon_pairs_per_x(ctx, unicon_rows_count(x), unicon_rows_count(y), CAPTIONS, &pairs);
  const unicon_data data = UNICON_DATA(.x = x, .y = y, .pairs = pairs);
  if (!status) status = fit_and_save(ctx, &data, "model.safetensors");
  if (!status) status = search(ctx, &data, "model.safetensors");
  if (status) fprintf(stderr, "%s\n", unicon_ctx_error(ctx));
  unicon_pairs_destroy(pairs);
  unicon_rows_close(y);
  unicon_rows_close(x);
  unicon_ctx_destroy(ctx);
  return status != UNICON_OK;
}
