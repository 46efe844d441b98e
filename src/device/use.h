/* SPDX-License-Identifier: Apache-2.0 */
/* The device of a context, as stages use it.
 *
 * A stage that has a device road asks for it first:
 *
 *     bool done = false;
 *     if (unicon__device_serves(ctx, nearest, flops))
 *       UNICON_TRY(unicon__device_run(ctx, "search", road, &state, &done));
 *     if (!done) ... the host road
 *
 * The road writes results at its end only, or where the host road will write them again, so that
 * the host can begin afresh where the device says that it cannot, or has too little memory. */
#ifndef UNICON_DEVICE_USE_H
#define UNICON_DEVICE_USE_H

#include "base/ctx.h"
#include "device/device.h"

/* Puts option device into force. A name is looked for at once, auto when it is first asked for. */
unicon_status unicon__device_set(unicon_ctx *ctx, const char *text);

/* The device that stages of this call ran on: its name, or "cpu". */
const char *unicon__device_name(const unicon_ctx *ctx);
/* The precision that they had there: "full" or "reduced". Says so where reduced was asked for and
 * no stage has it. */
const char *unicon__device_precision(unicon_ctx *ctx);

/* The device that stages of so many flops would run on, or "cpu". */
const char *unicon__device_chosen(unicon_ctx *ctx, double flops);

/* Is there a device with this entry of the table (its place), for so many flops? */
bool unicon__device_has(unicon_ctx *ctx, size_t place, double flops);
#define unicon__device_serves(ctx, entry, flops) \
  unicon__device_has((ctx), offsetof(unicon__device_table, entry), (flops))

/* Is there a device, open now, that reads and writes memory of this kind in place? */
bool unicon__device_reads(unicon_ctx *ctx, int kind);

/* What the device returned, as a status with its sentence. */
unicon_status unicon__device_check(unicon_ctx *ctx, int said);

/* unicon__on(ctx, add_sums, matrix, ...): an operation of the device, checked. */
#define unicon__on(ctx, entry, ...) \
  unicon__device_check((ctx), (ctx)->where.table->entry((ctx)->where.device, __VA_ARGS__))

/* Matrices of a road: no more than there are places. */
enum { UNICON__DEVICE_PLACES = 32 };

typedef struct unicon__device_room {
  unicon__matrix *matrix[UNICON__DEVICE_PLACES];
  int count;
} unicon__device_room;

unicon_status unicon__device_new(unicon_ctx *ctx, unicon__device_room *room, int64_t rows,
                                 int64_t cols, int element, unicon__matrix **out);
/* The same, with rows of float32 from the host, `ld` floats apart; NULL stays NULL. */
unicon_status unicon__device_copy(unicon_ctx *ctx, unicon__device_room *room, const float *from,
                                  int64_t rows, int64_t cols, int64_t ld, unicon__matrix **out);
void unicon__device_close(unicon_ctx *ctx, unicon__device_room *room);

/* Runs a road in a frame and with a room of its own, both of which are closed. *done becomes true
 * unless the host is to do it, which the log says. */
typedef unicon_status (*unicon__device_road)(unicon_ctx *ctx, void *state,
                                             unicon__device_room *room);
unicon_status unicon__device_run(unicon_ctx *ctx, const char *stage, unicon__device_road road,
                                 void *state, bool *done);

/* Forgets a failure that the host makes good. */
void unicon__device_forget(unicon_ctx *ctx);

/* How many of `rows` rows a block has that takes so many bytes of the device's memory a row, and
 * `host` bytes of ours: what fits into `share` of the memory that the device has left, and into 64 MB
 * or an eighth of what max_mem leaves; at least 1, at most what the device wants. */
int64_t unicon__device_rows(unicon_ctx *ctx, int64_t rows, double bytes, double share, double host);

/* May a road keep so many bytes of lists on the host? A quarter of what max_mem leaves, at most 1 GB;
 * the host's roads need none. */
bool unicon__device_lists(const unicon_ctx *ctx, double bytes);

/* Bytes of the device's memory that are left. */
double unicon__device_memory_left(unicon_ctx *ctx);

#endif
