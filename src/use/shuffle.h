/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffled pairings: what pairs look like when x and y have nothing to do with each other.
 *
 * Rows that belong together (captions of one image, rows of one group) are alike, so they may only
 * be moved together. A block is the x rows of one connected component of the pairs; a shuffle puts
 * the blocks in a random order and fills the places with them from left to right. With blocks of
 * equal size, one row each above all, every shuffle is as likely as the true pairing under the null
 * hypothesis. With class labels, or where nearly all rows are connected, single rows are moved, of
 * x and of y in turn, and the larger p-value counts. */
#ifndef UNICON_USE_SHUFFLE_H
#define UNICON_USE_SHUFFLE_H

#include "features/dataset.h"

/* Rows of one side in blocks: row[start[b]] .. row[start[b+1]-1]. Rows without a partner are in no
 * block. */
typedef struct unicon__blocks {
  int64_t count;
  int64_t *start, *row;
  bool single; /* rows one by one, for want of independent components */
} unicon__blocks;

/* Blocks of x rows (from_x) or, where they are single, of y rows. */
unicon_status unicon__blocks_open(unicon_ctx *ctx, const unicon__batch *set, const int64_t *groups,
                                  bool from_x, unicon__blocks *out);

/* Rows of the blocks in shuffled order: the one for place p in out[p]; `order` has room for the
 * blocks. Draw number `round`. */
void unicon__blocks_shuffle(const unicon__blocks *blocks, uint64_t seed, uint32_t round,
                            int64_t *order, int64_t *out);

/* The source with the rows of its blocks shuffled. */
unicon_status unicon__source_shuffle(unicon_ctx *ctx, const unicon__source *source,
                                     const unicon__blocks *blocks, uint64_t seed, uint32_t round,
                                     unicon__source *out);

typedef struct unicon__shuffle_test {
  double cosine; /* mean over rows with a partner of the mean cosine with their partners */
  double chance; /* the same, mean over the shuffles */
  double p;      /* (1 + shuffles at least as close) / (1 + shuffles) */
} unicon__shuffle_test;

/* The permutation test on unit embeddings of rows that no fit has seen. At most about 2000 rows of
 * the shuffled side take part: a product of 2000 by 2000 by r, then sums of its entries. */
unicon_status unicon__shuffle_pairs(unicon_ctx *ctx, const unicon__batch *set,
                                    const int64_t *groups, const float *zx, const float *zy,
                                    int64_t r, uint64_t seed, unicon__shuffle_test *out);

#endif
