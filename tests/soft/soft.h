/* SPDX-License-Identifier: Apache-2.0 */
/* What tests set and see of the soft device: exported by its library as soft_control_of(). */
#ifndef UNICON_TESTS_SOFT_H
#define UNICON_TESTS_SOFT_H

#include "device/device.h"

/* clang-format off */
#define SOFT_OPS(X) \
  X(upload) \
  X(download) \
  X(features) \
  X(gather) \
  X(shift) \
  X(embed) \
  X(add_product) \
  X(add_sums) \
  X(combine) \
  X(exp_sums) \
  X(weigh) \
  X(bias) \
  X(nearest) \
  X(ranks) \
  X(eigen) \
  X(svd) \
  X(leading) \
  X(product) \
  X(refine) \
  X(judge) \
  X(receive) \
  X(hand) \
  X(flaw)
/* clang-format on */

enum {
#define SOFT_ID(op) SOFT_##op,
  SOFT_OPS(SOFT_ID)
#undef SOFT_ID
      SOFT_OP_COUNT
};

typedef struct soft_control {
  /* Of the next table that is asked for. */
  uint32_t version;
  int unusable;
  int memory_kind; /* UNICON_SOFT_KIND in the environment wins */
  int64_t most_rows;
  double least_flops;
  int preference;
  /* Counters that run down to 0, then that event fails once; -1: off. */
  int64_t fail_allocation, fail_launch;
  int elsewhere; /* an operation that says ELSEWHERE, or -1 */
  /* What has happened. */
  int64_t calls[SOFT_OP_COUNT];
  int64_t opened, matrices, rooms; /* now */
  uint64_t last_stream;            /* of `receive` */
} soft_control;

typedef soft_control *(*soft_control_fn)(void);

#endif
