/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: a number of 64 bits for each row that was added, of its content and of that of its
 * partners with their weights, or of its label. What is removed must be in it, so that rows that were never added, or
 * not with these partners, are noticed. */
#ifndef UNICON_KEPT_LEDGER_H
#define UNICON_KEPT_LEDGER_H

#include "features/batch.h"

typedef struct unicon__ledger {
  bool on;
  int64_t count[2];
  uint64_t *entry[2]; /* ascending */
} unicon__ledger;

/* The entries of a set, in its order, in the context's frame. Rows without a partner have one where
 * they count. */
unicon_status unicon__ledger_of(unicon_ctx *ctx, const unicon__batch *set,
                                const uint64_t *const hash[2], bool unpaired, unicon__ledger *out);

/* Both make a new ledger, `out`, in memory of `arena`; what it is made from stays. Entries of `more`
 * and `less` need not be in order. */
unicon_status unicon__ledger_merge(unicon_ctx *ctx, unicon__arena *arena,
                                   const unicon__ledger *from, const unicon__ledger *more,
                                   unicon__ledger *out);

/* Fails with how many rows of `less` are not there. */
unicon_status unicon__ledger_subtract(unicon_ctx *ctx, unicon__arena *arena,
                                      const unicon__ledger *from, const unicon__ledger *less,
                                      unicon__ledger *out);

/* Are all entries of `part`, and there are some, in `all` as well? */
bool unicon__ledger_has(const unicon__ledger *all, const unicon__ledger *part);

void unicon__ledger_drop(unicon__arena *arena, unicon__ledger *ledger);

#endif
