/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics as a fit wants them: what is prepared of rows that are not there, and the sample of
 * them that is. */
#ifndef UNICON_FIT_STORED_H
#define UNICON_FIT_STORED_H

#include "kept/kept.h"
#include "select/params.h"

typedef struct unicon__stored {
  const unicon_stats *stats;
  unicon__dataset set; /* the sample */
  unicon__prepared prepared;
  bool sampled; /* the sample has rows of both sides */
  bool splits;  /* they can be taken out of the sums */
  unicon_rows rows[2];
  unicon__segment segment[2];
} unicon__stored;

/* Fails where options ask for what statistics cannot give, or say otherwise than these do. What the
 * statistics have settled is written into `options`. */
unicon_status unicon__stored_settle(unicon_ctx *ctx, const unicon_stats *stats,
                                    unicon_options *options);

/* `out` must stay where it is; close frees what is not of the frame, also after a failure. */
unicon_status unicon__stored_open(unicon_ctx *ctx, const unicon_stats *stats,
                                  const unicon__params *params, unicon__stored *out);
void unicon__stored_close(unicon__stored *stored);

#endif
