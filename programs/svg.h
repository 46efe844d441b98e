/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as inline SVG, and text made safe for HTML. Colours are classes of the page's style sheet;
 * every number that is drawn can be read by pointing at it (<title>). */
#ifndef UNICON_PROGRAMS_SVG_H
#define UNICON_PROGRAMS_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* Text with & < > " ' escaped; control characters become blanks. At most `most` characters (0:
 * all), then an ellipsis. */
void svg_text(FILE *out, const char *text, int most);

/* A coordinate: two decimals, finite and bounded whatever comes in. */
void svg_number(FILE *out, double value);

/* A value for people: "0.0312", "1.2e-05", "128". */
const char *svg_value(double value, char *out, size_t size);
/* A share as a percentage: "33.6", "0.2". */
const char *svg_percent(double share, char *out, size_t size);

/* A rectangle of the drawing and the data range that it shows. */
typedef struct svg_plot {
  FILE *out;
  double left, right, top, bottom; /* in the drawing */
  double x0, x1, y0, y1;           /* of the data */
} svg_plot;

double svg_x(const svg_plot *p, double value);
double svg_y(const svg_plot *p, double value);

/* <svg> of the given size; `label` is what screen readers say. */
void svg_open(FILE *out, const char *name, double width, double height, const char *label);
void svg_close(FILE *out);

void svg_line(FILE *out, const char *name, double x1, double y1, double x2, double y2);
/* Opens a rectangle; its <title> follows, then svg_end. */
void svg_rect(FILE *out, const char *name, double x, double y, double width, double height);
/* Text at a place, anchored "start", "middle" or "end". */
void svg_label(FILE *out, const char *name, double x, double y, const char *anchor,
               const char *text);

/* Lines and numbers of the y axis with its name above; as percentages of a share if asked. */
void svg_y_axis(const svg_plot *p, const char *name, bool percent);
/* Numbers of the x axis with its name below; whole numbers only. */
void svg_x_axis(const svg_plot *p, const char *name);
/* The name alone, where the marks are made one by one. */
void svg_x_name(const svg_plot *p, const char *name);

#endif
