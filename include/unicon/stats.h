/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics: all that the closed form needs of rows and pairs, as sums. What is summed can be added
 * to, taken from and merged, so that shards may lie on many machines, rows may come every night, and
 * rows may be forgotten without the others being read again:
 *
 *     unicon_stats_create -> unicon_stats_add ... -> unicon_stats_save         (on each machine)
 *     unicon_stats_load -> unicon_stats_merge ... -> unicon_stats_fit -> a model
 *
 * The sums are those of features of the rows, through maps that are fixed when statistics are
 * created: with the linear kernel nothing has to be agreed on; with another one all parts must share
 * the landmarks (or random directions) of one of them, by unicon_stats_create_like.
 *
 * Beside the sums there is a sample of the rows in float16, those with the smallest numbers of a
 * generator that is fed with their content, so that the sample of a sum is the same however the rows
 * were split. Banks and held-out rows of a fit are taken from it.
 *
 * Of class labels (unicon_pairs_labels_part) the sums of each class are kept, so that any split of
 * the rows adds up, as long as labels have the same numbers everywhere. Every row counts then, as with
 * option unpaired on: its partners may come later. The sample is one of rows, half of its room for
 * each side.
 *
 * A call that fails leaves its statistics as they were. Objects are used by one thread at a time.
 * Ignored pairs, listed negatives and unicon_pairs_one_set are not taken: what they weigh depends on
 * all rows. docs/many-machines.md is the guide, docs/model-format.md the format of the
 * files. The rules of unicon.h hold here. */
#ifndef UNICON_STATS_H
#define UNICON_STATS_H

#include "unicon/unicon.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct unicon_stats unicon_stats;

/* Empty statistics for rows like those of `data`, which are looked at only where a kernel needs
 * landmarks or a width (with option bad_rows), and are not added. Options: normalize, unpaired and
 * those of group Kernel say what rows become (kernels other than linear take map nystrom or random);
 * sample_rows and ledger what is kept beside the sums. */
UNICON_CALL unicon_status unicon_stats_create(unicon_ctx *ctx, const unicon_data *data,
                                              const unicon_options *options, unicon_stats **out);
/* Empty statistics with the maps of others, that can be merged with them. */
UNICON_CALL unicon_status unicon_stats_create_like(unicon_ctx *ctx, const unicon_stats *like,
                                                   unicon_stats **out);
/* Empty statistics with the maps of a model that is not fused, which options about maps cannot
 * change. */
UNICON_CALL unicon_status unicon_stats_create_from_model(unicon_ctx *ctx, const unicon_model *model,
                                                         const unicon_options *options,
                                                         unicon_stats **out);
UNICON_API void unicon_stats_destroy(unicon_stats *stats);

/* Adds the rows and pairs of a set. All partners of a row must be in the same set, but for labels.
 * Statistics are of pairs or of labels, whichever is added first. Option bad_rows holds. */
UNICON_CALL unicon_status unicon_stats_add(unicon_ctx *ctx, unicon_stats *stats,
                                           const unicon_data *data, const unicon_options *options);

/* Takes rows and pairs away that were added before: the rows themselves are needed. The certificate
 * (may be NULL) says what that means:
 *     removed.rows_x, removed.rows_y, removed.pairs
 *     removed.hash        16 hexadecimal digits of the rows and pairs, whatever their order
 *     left.rows_x, ...    what the statistics hold now
 *     checked_by          "ledger", or "sample of every row": each of them was there. "counts and
 *                         covariance": there were as many, and what is left is a covariance; rows
 *                         that were never added may go unnoticed
 *     trace.bound         what may be left of them in the sums of squares by rounding, relative to
 *                         these sums (Frobenius norm)
 *     sample.removed      rows of the sample that went with them, so that no bank and no held-out
 *                         row of a later fit is one of them
 *     landmarks.dropped   landmarks that were rows of these, and are none now
 *     seen_by             a sentence: what else has seen the rows, and what is to be done about it
 * Fails where counts, the ledger or the sample say that they were not there, after unicon_stats_decay, and where
 * a row is a landmark, unless option drop_landmarks is on: then the features are projected to those
 * of the landmarks that are left, which changes the maps. */
UNICON_CALL unicon_status unicon_stats_remove(unicon_ctx *ctx, unicon_stats *stats,
                                              const unicon_data *data,
                                              const unicon_options *options,
                                              unicon_result **certificate);

/* stats += other, and stats -= other with a certificate as above. Both must have the same maps. With
 * ledgers a sum is refused where every row of `other` is there already. */
UNICON_CALL unicon_status unicon_stats_merge(unicon_ctx *ctx, unicon_stats *stats,
                                             const unicon_stats *other);
UNICON_CALL unicon_status unicon_stats_subtract(unicon_ctx *ctx, unicon_stats *stats,
                                                const unicon_stats *other,
                                                unicon_result **certificate);

/* All that was added so far counts `keep` times as much from now on, 0 < keep <= 1: for data that
 * drift. Nothing can be removed any more, and a ledger ends. */
UNICON_CALL unicon_status unicon_stats_decay(unicon_ctx *ctx, unicon_stats *stats, double keep);

/* A .stats file is a safetensors file, mostly of float64. It is written under a temporary name and
 * then renamed. */
UNICON_CALL unicon_status unicon_stats_save(unicon_ctx *ctx, const unicon_stats *stats,
                                            const char *path);
UNICON_CALL unicon_status unicon_stats_load(unicon_ctx *ctx, const char *path, unicon_stats **out);
/* The content of that file in memory, as unicon_model_to_bytes and unicon_model_from_bytes. */
UNICON_CALL unicon_status unicon_stats_to_bytes(unicon_ctx *ctx, const unicon_stats *stats,
                                                void *out, size_t room, size_t *size);
UNICON_CALL unicon_status unicon_stats_from_bytes(unicon_ctx *ctx, const void *bytes, size_t size,
                                                  unicon_stats **out);

/* What is in them:
 *     rows_x, rows_y, pairs    not whole after decay
 *     classes             labels that have rows; 0: these are statistics of pairs
 *     width_x, width_y         of the rows
 *     features_x, features_y
 *     kernel_x, kernel_y, map_x, map_y, normalize, unpaired, maps (16 hexadecimal digits that differ
 *     between maps)
 *     sample.rows_x, sample.rows_y, sample.all (1: the sample is all rows)
 *     ledger (1: there is one), decayed (1: they were), updates (additions, removals and merges) */
UNICON_CALL unicon_status unicon_stats_describe(unicon_ctx *ctx, const unicon_stats *stats,
                                                unicon_result **out);

/* Fits a model on what was added, as unicon_fit does on rows. Nothing that needs the rows themselves
 * can be asked for: iterations, refine, batch, start. What preset auto chooses (ridge, metric, rank,
 * exponent, balance) is chosen on `validation` or, where that is NULL, on rows of the sample, which
 * are taken out of the sums for it. Kernel, landmarks, normalize and unpaired are those of the
 * statistics. */
UNICON_CALL unicon_status unicon_stats_fit(unicon_ctx *ctx, const unicon_stats *stats,
                                           const unicon_data *validation,
                                           const unicon_options *options, unicon_model **out);

/* What that will take, before it starts: memory, seconds, flops, advice and the other figures of
 * unicon_plan (unicon/tools.h). No row is read. */
UNICON_CALL unicon_status unicon_stats_plan(unicon_ctx *ctx, const unicon_stats *stats,
                                            const unicon_options *options, unicon_result **out);

#ifdef __cplusplus
}
#endif

#endif
