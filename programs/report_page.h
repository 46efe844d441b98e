/* SPDX-License-Identifier: Apache-2.0 */
/* What the template of the page (report.html) is written with. A report may come from a file, so
 * every value is checked when it is read: the first that is missing or of the wrong kind is
 * remembered as a sentence, and something harmless is returned in its place. */
#ifndef UNICON_PROGRAMS_REPORT_PAGE_H
#define UNICON_PROGRAMS_REPORT_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "unicon/unicon.h"

typedef struct page {
  FILE *out;
  const json_t *report;
  const char *section; /* that is being read, for the sentence */
  char error[256];     /* "": none so far */
  const json_t **card[2];
  size_t cards[2]; /* of x and y, by their numbers */
} page;

/* report.html: writes the whole page. */
void report_template(page *p);

/* report_explore.html: sections of it. */
void first_look(page *p);
void plane_section(page *p, const json_t *view);
void by_class_section(page *p, const json_t *part);
void beside_section(page *p, const json_t *part);

/* ---- values ------------------------------------------------------------------------------- */

extern const char *const way_key[2]; /* "x_to_y", "y_to_x" */

/* Remembers that `key` must be `what`, if it is the first mistake. */
void complain(page *p, const char *key, const char *what);

/* A part of the report, an object; NULL if it has none, which is no error. */
const json_t *get_part(page *p, const char *name);

double get_number(page *p, const json_t *object, const char *key); /* 0 if it is not there */
const char *get_string(page *p, const json_t *object, const char *key);
const json_t *get_object(page *p, const json_t *object, const char *key);
const json_t *get_list(page *p, const json_t *object, const char *key); /* NULL if not there */

/* Entry `index` of a list of numbers, and of a list of lists of them. */
double get_entry(page *p, const json_t *list, size_t index);
double get_cell(page *p, const json_t *rows, size_t row, size_t column);

/* The number of an optional key; `otherwise` where it is not there. */
double get_maybe(page *p, const json_t *object, const char *key, double otherwise);

/* How scores are balanced; NULL where they are not, or the report does not say. */
const char *get_balance(page *p);
/* What the metric is without balance in a direction; `otherwise` where the report does not say. */
double get_plain(page *p, int direction, const char *metric, double otherwise);

/* A text of the model's metadata, "" where there is none. */
const char *meta(const json_t *metadata, const char *key);

/* Sum and bounds of a list of numbers, or of objects with a number called `key`; 0 of nothing. */
double sum_of(page *p, const json_t *list, const char *key);
double most_of(page *p, const json_t *list, const char *key);
double least_of(page *p, const json_t *list, const char *key);
/* The largest size of n_x by n_y cells; 1 where all are 0. */
double largest_of(page *p, const json_t *rows, size_t n_x, size_t n_y);

/* Of a row of the confusion matrix: the answer other than `own` that it has most; SIZE_MAX: none.
 */
size_t taken_for(page *p, const json_t *row, size_t own);
/* Characters of the longest name, at most `most` and one for an ellipsis. */
double letters_of(page *p, const json_t *names, size_t most);

const char *base_name(const char *path);

/* The cards, checked and by number; closed by cards_close. NULL: the row has none. */
void cards_open(page *p);
void cards_close(page *p);
const json_t *card_of(const page *p, int side, const json_t *number);

/* ---- output ------------------------------------------------------------------------------- */

void put_number(page *p, double value);                  /* a coordinate: at most two digits */
void put_short(page *p, double value);                   /* three digits */
void put_percent(page *p, double share);                 /* without the sign */
void put_text(page *p, const char *text, size_t most);   /* escaped; at most so many characters */
void put_name(page *p, const json_t *name, size_t most); /* of a row: a text or a whole number */
void put_id(page *p, const json_t *name); /* the same, cut in the middle where it is long */
/* A row as its id, with what the script needs to find its card; and with its text below. */
void put_link(page *p, int side, const json_t *holder, const char *name_key,
              const char *number_key);
void put_row(page *p, int side, const json_t *holder, const char *name_key, const char *number_key);
void put_json(page *p); /* the report, safe inside <script> */

/* ---- plots -------------------------------------------------------------------------------- */

/* Where a chart draws, and which values lie at its edges. */
typedef struct plot {
  double left, right, top, bottom, x0, x1, y0, y1;
} plot;

double at_x(const plot *g, double value);
double at_y(const plot *g, double value);

/* The points of a plane, the same scale on both axes and everything inside. */
plot plane_plot(page *p, const json_t *points, double width, double height);

enum { MOST_TICKS = 11 };
/* Multiples of 1, 2 or 5 times a power of ten in low..high, at least `least` apart. */
int ticks(double low, double high, double least, double out[MOST_TICKS]);

/* ---- colours of labels -------------------------------------------------------------------- */

/* The ten commonest have their own, the others share one. */
typedef struct palette {
  const json_t *labels; /* NULL: coloured by rank */
  int *colour;          /* of each label, -1: the shared one */
  size_t count;
} palette;

void palette_open(page *p, const json_t *view, const json_t *points, palette *out);
void palette_close(palette *c);
const char *palette_class(page *p, const palette *c, const json_t *point);
const json_t *palette_label(page *p, const palette *c, const json_t *point); /* or NULL */

#endif
