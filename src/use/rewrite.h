/* SPDX-License-Identifier: Apache-2.0 */
/* What a rewrite writes into its sidecar, and what its file is checked by. */
#ifndef UNICON_USE_REWRITE_H
#define UNICON_USE_REWRITE_H

#include "io/sidecar.h"
#include "unicon/migrate.h"

enum { UNICON__REWRITE_BLOCK = 4096 }; /* rows that are embedded, written and hashed at a time */

/* What the sidecar of rows first .. first+count-1 of the view says in this form, but for dtype,
 * hash and done. Fails where there are no such rows. */
unicon_status unicon__rewrite_about(unicon_ctx *ctx, const unicon_view *view, int64_t first,
                                    int64_t count, unicon_form form, unicon__sidecar *out);

/* "another model", ... where two sidecars speak of different rows; NULL where they do not, whatever
 * their dtype, hash and done are. */
const char *unicon__rewrite_difference(const unicon__sidecar *a, const unicon__sidecar *b);

/* The hash of no rows, and of more rows after those of `about`. */
void unicon__rewrite_hash_begin(unicon__sidecar *about);
void unicon__rewrite_hash(unicon__sidecar *about, const void *data, size_t bytes);

/* The hash of `count` rows of `row` bytes; a step of the stage for each block. */
unicon_status unicon__rewrite_hash_rows(unicon_ctx *ctx, const unsigned char *rows, int64_t count,
                                        size_t row, unicon__sidecar *out);

#endif
