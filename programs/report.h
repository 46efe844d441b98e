/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `unicon report`: one JSON object (report_data.c, report_rows.c, report_views.c),
 * and the page that is made from it and nothing else (report.html). */
#ifndef UNICON_PROGRAMS_REPORT_H
#define UNICON_PROGRAMS_REPORT_H

#include "inputs.h"

#define REPORT_FORMAT "unicon report"
enum { REPORT_VERSION = 1 };

/* What is reported on. */
typedef struct subject {
  tool *t;
  inputs in;
  unicon_model *model;
  unicon_labels *id[2];  /* of the rows of x and y, or NULL */
  unicon_labels *labels; /* of the rows of x, or NULL */
  unicon_metrics metrics[2];
  int64_t rows[2], r;
  unicon_balance *balance; /* as the model has it */
  float *z[2];             /* unit embeddings, rows by r */
  float *bias[2];          /* what the scores of each row are lowered by */
  int64_t *rank[2];        /* of the first match; 0: has none */
  int64_t *found[2];       /* how often a row is among the first ten, over all queries */
  int64_t *plain_found[2]; /* the same without balance; by the side of the row, as all of these */
} subject;

/* Computes everything. Returns EXIT_DONE, or another exit status after a sentence on stderr. */
int report_compute(tool *t, json_t **out);

/* Embeds all rows of a side, with their biases. */
unicon_status report_embed(subject *s, const unicon_view *view, int side);
/* Balanced scores beside plain ones, and hubs. */
json_t *report_balance(const subject *s);

/* Parts of the object that are about rows: the hardest queries, suspicious pairs, the picture in
 * the plane, and S. NULL after a failure that was said. */
json_t *report_hardest(subject *s);
json_t *report_suspects(subject *s);
json_t *report_view(subject *s);
json_t *report_weights(subject *s);

/* The part itself; says that memory ran out where it is NULL. */
json_t *report_made(const subject *s, json_t *part);
/* A number with a few digits; what is not finite becomes 0. */
json_t *report_rounded(double value, double unit);

/* A row by its id, or its number. */
json_t *report_row_name(const subject *s, int side, int64_t row);

/* The page of a report as a string to be freed; NULL with a sentence in `error` when the object is
 * not what it should be or memory ran out. */
char *report_page(const json_t *report, size_t *size, char *error, size_t room);

#endif
