/* SPDX-License-Identifier: Apache-2.0 */
/* The page being written, and the report it is made from. A report may come from a file, so every
 * value is checked when it is read: the first that is missing or of the wrong kind is remembered as
 * a sentence, and something harmless is returned in its place. */
#ifndef UNICON_PROGRAMS_REPORT_READ_H
#define UNICON_PROGRAMS_REPORT_READ_H

#include <jansson.h>

#include "svg.h"

typedef struct page {
  FILE *out;
  const json_t *report;
  const char *section; /* that is being read, for the sentence */
  char error[256];     /* "": none so far */
} page;

/* A part of the report, an object; NULL if it has none, which is no error. */
const json_t *page_part(page *p, const char *name);

double page_number(page *p, const json_t *object, const char *key); /* 0 if it is not there */
const char *page_string(page *p, const json_t *object, const char *key);
const json_t *page_object(page *p, const json_t *object, const char *key);
const json_t *page_list(page *p, const json_t *object, const char *key); /* NULL if not there */

/* Entry `index` of a list of numbers, and of a list of lists of them. */
double page_entry(page *p, const json_t *list, size_t index);
double page_cell(page *p, const json_t *rows, size_t row, size_t column);

/* A row's name: a text, or a number. */
const char *page_name(page *p, const json_t *value, char *out, size_t size);

/* The number of an optional key; `otherwise` where it is not there. */
double page_maybe(page *p, const json_t *object, const char *key, double otherwise);

/* How scores are balanced; NULL where they are not, or the report does not say. */
const char *page_balanced(page *p);
/* What the metric is without balance in a direction; `otherwise` where the report does not say. */
double page_plain(page *p, const char *direction, const char *metric, double otherwise);

/* Text into the page, escaped. */
void page_text(page *p, const char *text);

/* Opens a section with its heading and, unless NULL, a sentence. Literals, not escaped. */
void page_section(page *p, const char *id, const char *title, const char *text);

/* Sections of their own files. */
void page_fit(page *p);
void page_rows(page *p);
void page_hubs(page *p);    /* nothing where the report has no part `balance` */
void page_classes(page *p); /* nothing where the report has none */

/* The charts, each in a <figure> of its own. */
void chart_recall(page *p);
void chart_ranks(page *p);
void chart_spectrum(page *p, const json_t *model);
void chart_tried(page *p, const char *tried, const char *chosen);
/* `values` are numbers separated by blanks, the first one that of step `start`. */
void chart_curve(page *p, const char *title, const char *axis, const char *values, int start,
                 const char *steps, const char *caption);
void chart_plane(page *p, const json_t *view);
void chart_weights(page *p, const json_t *weights);
void chart_confusion(page *p, const json_t *zero_shot);

/* The page's style sheet, in pieces, ended by NULL. */
extern const char *const report_style[];

#endif
