/* SPDX-License-Identifier: Apache-2.0 */
/* Migration: an index holds vectors of an old model, and queries will come from a new one.
 *
 * unicon_migrate takes the same items as both models see them, tries how old and new vectors can
 * meet without embedding the index again, judges each way as it would be deployed, on items and
 * queries that the map has not seen, and gives a model with its direction inside and the decision
 * as JSON. unicon_rewrite then carries an index over, in pieces and again after a stop.
 *
 * In models of a migration side x is the old model and side y the new one. docs/migration.md is the
 * guide. The rules of unicon.h hold here. */
#ifndef UNICON_MIGRATE_H
#define UNICON_MIGRATE_H

#include "unicon/unicon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row i of `old_rows` and row i of `new_rows` are the same item. Queries (may be NULL) are texts,
 * images, ... that people ask with, again by both models row by row; `queries_old` alone may be
 * missing, then the old model cannot be shown beside. Without queries, items ask for each other.
 * `judgements` (may be NULL) are the right items of each query, weights being grades; without,
 * they are the ten nearest by the new model. All borrowed. */
typedef struct unicon_migration_data {
  size_t size; /* set by UNICON_MIGRATION_DATA */
  const unicon_rows *old_rows, *new_rows;
  const unicon_rows *queries_old, *queries_new;
  const unicon_pairs *judgements;
} unicon_migration_data;

#ifdef __cplusplus
#define UNICON_MIGRATION_DATA() \
  { sizeof(unicon_migration_data), NULL, NULL, NULL, NULL, NULL }
#else
#define UNICON_MIGRATION_DATA(...) \
  ((unicon_migration_data){.size = sizeof(unicon_migration_data), __VA_ARGS__})
#endif

typedef struct unicon_migration unicon_migration;

/* Options of scope UNICON_SCOPE_MIGRATE. At least 100 pairs. */
UNICON_CALL unicon_status unicon_migrate(unicon_ctx *ctx, const unicon_migration_data *data,
                                         const unicon_options *options, unicon_migration **out);
UNICON_API void unicon_migration_destroy(unicon_migration *migration);

/* The model of the best way (or of the one that option `into` names). It belongs to the migration.
 */
UNICON_API const unicon_model *unicon_migration_model(const unicon_migration *migration);

/* One JSON object: "verdict" (rewrite, bridge, shared or keep), "sentence" for people, the ways
 * beside each other with 95 % intervals, all that was tried, and how the score grows with the
 * pairs and falls with the size of the index. docs/migration.md lists the members. */
UNICON_API const char *unicon_migration_json(const unicon_migration *migration);

/* Scores of the model, cosines of mapped vectors, become what the new model (`to_new` not 0) or the
 * old one would have said on the whole, in place; the order stays. Thresholds keep their meaning
 * so. Numbers that are not finite stay. */
UNICON_CALL unicon_status unicon_model_calibrate(unicon_ctx *ctx, const unicon_model *model,
                                                 int to_new, int64_t count, float *scores);

/* Fails with a sentence where rows do not look like those of that side at the migration: files
 * swapped, another model, another normalisation. Of other models nothing is known, and nothing
 * fails. */
UNICON_CALL unicon_status unicon_model_check_rows(unicon_ctx *ctx, const unicon_model *model,
                                                  unicon_side side, const unicon_rows *rows);

/* Rows first .. first+count-1 of a view, embedded in that form, as an .npy file (float32, or
 * float16) that is written in pieces: they go to PATH.part, and PATH.part.json says how far they
 * are, so that the same call goes on where one stopped. At the end PATH appears with PATH.json
 * beside it, which names the model (unicon_model_id), the space and the bytes. Rows that do not
 * look like those of their side are refused (option trust). `there` (may be NULL) receives how many
 * rows were there already: `count` where the file was finished before. */
UNICON_CALL unicon_status unicon_rewrite(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                         int64_t count, unicon_form form, unicon_dtype dtype,
                                         const char *path, const unicon_options *options,
                                         int64_t *there);

/* Fails with a sentence unless PATH is what unicon_rewrite writes for those rows: PATH.json names
 * this model, these rows and this form, and the file has the shape and the bytes it speaks of.
 * Writes nothing. */
UNICON_CALL unicon_status unicon_rewrite_check(unicon_ctx *ctx, const unicon_view *view,
                                               int64_t first, int64_t count, unicon_form form,
                                               const char *path);

/* The same of a file alone: its shape and bytes against PATH.json, whatever it was made of. */
UNICON_CALL unicon_status unicon_vectors_check(unicon_ctx *ctx, const char *path);

/* What the sidecars of a file, or of the .npy files of a folder, say about its vectors. Fails with
 * a sentence where they are of another model than this one, of another space than the model's, or
 * where some have a sidecar and others have none. *known is 0 where there is none at all. */
UNICON_CALL unicon_status unicon_vectors_match(unicon_ctx *ctx, const char *path,
                                               const unicon_model *model, int *known);

#ifdef __cplusplus
}
#endif

#endif
