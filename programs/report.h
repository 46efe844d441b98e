/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `unicon report`: one JSON object (report_data.c, report_rows.c, report_views.c),
 * and the page that is made from it and nothing else (report.html). */
#ifndef UNICON_PROGRAMS_REPORT_H
#define UNICON_PROGRAMS_REPORT_H

#include "inputs.h"

#define REPORT_FORMAT "unicon report"
enum { REPORT_VERSION = 1, REPORT_NEAR = 5 };
enum { REPORT_LISTED = 1, REPORT_PLACED = 2, REPORT_MENTIONED = 4 }; /* where a row is named */

/* A file of one line per row. */
typedef struct report_lines {
  char *text;
  char **line;
} report_lines;

/* What is reported on. */
typedef struct subject {
  tool *t;
  inputs in;
  unicon_model *model;
  unicon_labels *id[2];  /* of the rows of x and y, or NULL */
  unicon_labels *labels; /* of the rows of x, or NULL */
  unicon_result *result; /* of unicon_evaluate */
  int64_t rows[2], r;
  unicon_balance *balance; /* as the model has it */
  float *z[2];             /* unit embeddings, rows by r */
  float *bias[2];          /* what the scores of each row are lowered by */
  int64_t *rank[2];        /* of the first match; 0: has none */
  int64_t *found[2];       /* how often a row is among the first ten, over all queries */
  int64_t *plain_found[2]; /* the same without balance; by the side of the row, as all of these */
  int64_t *near[2];        /* the REPORT_NEAR rows of the other side found first; -1: no more */
  float *near_score[2];
  unsigned char *match[2]; /* bit k: near row k is a true match */
  unsigned char *named[2]; /* where the report speaks of a row; by report_row_name */
  report_lines text[2], media[2];
  struct subject *beside; /* the same rows by the model of --beside, or NULL */
} subject;

/* Computes everything. Returns EXIT_DONE, or another exit status after a sentence on stderr. */
int report_compute(tool *t, json_t **out);

/* Embeds all rows of a side, with their biases. */
unicon_status report_embed(subject *s, const unicon_view *view, int side);
/* Finds the first rows of the other side for every row, and which of them are true matches. */
unicon_status report_find_near(subject *s);
/* Balanced scores beside plain ones, and hubs. */
json_t *report_balance(const subject *s);
/* Class by class, worst first; only with labels. */
json_t *report_by_class(const subject *s);
/* What the page shows of each row that anything before it speaks of, so it is made last. */
json_t *report_cards(const subject *s);
/* What the model of --beside does with the same rows and pairs, and where the two differ. */
json_t *report_beside(subject *s);
/* The parts of a report that are metrics: adds x_to_y, y_to_x, ranks and balance. */
int report_add_metrics(subject *s, json_t *out);

/* Reads the files of one line per row; an exit status. */
int report_media_open(subject *s);
void report_media_close(subject *s);
/* Adds `text` and `media` to the cards: images inside the page as long as they are not too much,
 * other files as links from the folder of the page. */
int report_media_add(const subject *s, json_t *const cards[2]);

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

/* A row by its id, or its number; it will have a card. */
json_t *report_row_name(const subject *s, int side, int64_t row);

unicon_side report_side(int side);
double report_cosine(const subject *s, int64_t x, int64_t y);
/* The score of a candidate, a row of the other side, for a row of `side`. */
double report_score(const subject *s, int side, int64_t row, int64_t candidate);
/* Class number of a row: its own label, or that of its first partner in x; -1: none. */
int64_t report_label(const subject *s, int side, int64_t row);

/* The page of a report as a string to be freed; NULL with a sentence in `error` when the object is
 * not what it should be or memory ran out. */
char *report_page(const json_t *report, size_t *size, char *error, size_t room);

#endif
