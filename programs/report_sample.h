/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows of both sides that stand for all, pairs kept together. */
#ifndef UNICON_PROGRAMS_REPORT_SAMPLE_H
#define UNICON_PROGRAMS_REPORT_SAMPLE_H

#include "report.h"

typedef struct sample {
  int64_t count[2], *row[2]; /* rows of x and y; partners stand in the same order */
  int64_t pairs, *x, *y;     /* true pairs among them, as positions in row[0] and row[1] */
  bool classes;              /* pairs come from labels or are many: rows drawn one by one */
} sample;

/* At most `most` rows of both sides together, evenly spread. False after a failure that was said;
 * close it whatever is returned. */
bool sample_open(const subject *s, int64_t most, sample *out);
void sample_close(sample *out);

/* The embeddings of the sampled rows of one side, or of both, one side after the other; to be
 * freed. */
float *sample_vectors(const subject *s, const sample *a, int first_side, int last_side);

#endif
