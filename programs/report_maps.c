/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of many marks: the plane, S, the confusion matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_read.h"

enum { PLANE = 720, PLANE_HEIGHT = 560, COLOURS = 10, RANK_COLOURS = 4, MANY_LINES = 700 };

/* ---- the plane ---------------------------------------------------------------------------- */

/* Rank 1, up to 5, up to 10, worse; 4 stands for rows without a match. */
static int rank_class(double rank) {
  return rank < 1 ? 4 : rank <= 1 ? 0 : rank <= 5 ? 1 : rank <= 10 ? 2 : 3;
}

/* Colours of labels: the commonest ones have their own, the others share the last. */
typedef struct palette {
  const json_t *labels; /* NULL: coloured by rank */
  int *colour;          /* of each label, -1: the common grey */
  size_t count;
} palette;

typedef struct tally {
  size_t label, points;
} tally;

static int commonest_first(const void *a, const void *b) {
  const tally *left = a, *right = b;
  if (left->points != right->points) return left->points < right->points ? 1 : -1;
  return (left->label > right->label) - (left->label < right->label);
}

static int in_order(const void *a, const void *b) {
  const tally *left = a, *right = b;
  return (left->label > right->label) - (left->label < right->label);
}

static bool palette_open(page *p, const json_t *view, const json_t *points, palette *out) {
  *out = (palette){.labels = json_object_get(view, "labels")};
  if (!out->labels) return true;
  out->labels = page_list(p, view, "labels");
  out->count = json_array_size(out->labels);
  out->colour = calloc(out->count + 1, sizeof *out->colour);
  tally *list = calloc(out->count + 1, sizeof *list);
  if (!out->colour || !list) {
    free(list);
    return false;
  }
  for (size_t k = 0; k < out->count; k++) {
    list[k].label = k;
    out->colour[k] = -1;
  }
  for (size_t k = 0; k < json_array_size(points); k++) {
    const double label = page_maybe(p, json_array_get(points, k), "label", -1);
    if (label >= 0 && label < (double)out->count) list[(size_t)label].points++;
  }
  qsort(list, out->count, sizeof *list, commonest_first);
  const size_t own = out->count < COLOURS ? out->count : COLOURS;
  qsort(list, own, sizeof *list, in_order);
  for (size_t k = 0; k < own; k++) out->colour[list[k].label] = (int)k;
  free(list);
  return true;
}

static void point_class(page *p, const palette *c, const json_t *point, char *out, size_t size) {
  const double label = page_maybe(p, point, "label", -1);
  if (!c->labels)
    snprintf(out, size, "r%d", rank_class(page_number(p, point, "rank")));
  else if (label >= 0 && label < (double)c->count && c->colour[(size_t)label] >= 0)
    snprintf(out, size, "k%d", c->colour[(size_t)label]);
  else
    snprintf(out, size, "k-other");
}

static void point_title(page *p, const palette *c, const json_t *point, const char *side) {
  char name[32];
  const double rank = page_number(p, point, "rank"), label = page_maybe(p, point, "label", -1);
  fprintf(p->out, "<title>%s ", side);
  svg_text(p->out, page_name(p, json_object_get(point, "name"), name, sizeof name), 80);
  if (c->labels && label >= 0 && label < (double)c->count) {
    fputs(", label ", p->out);
    svg_text(p->out, page_name(p, json_array_get(c->labels, (size_t)label), name, sizeof name), 40);
  }
  if (rank >= 1)
    fprintf(p->out, ", first match at rank %.0f</title>", rank);
  else
    fputs(", has no match</title>", p->out);
}

/* x is a disc, y a square that stands on a corner. */
static void draw_point(page *p, const svg_plot *g, const palette *c, const json_t *point) {
  const bool x = strcmp(page_string(p, point, "side"), "x") == 0;
  const double at_x = svg_x(g, page_number(p, point, "at_x")),
               at_y = svg_y(g, page_number(p, point, "at_y"));
  char colour[16];
  point_class(p, c, point, colour, sizeof colour);
  if (x) {
    fprintf(p->out, "<circle class=\"point %s\" r=\"3.2\" cx=\"", colour);
    svg_number(p->out, at_x);
    fputs("\" cy=\"", p->out);
    svg_number(p->out, at_y);
    fputs("\">", p->out);
  } else {
    fprintf(p->out, "<path class=\"point y %s\" d=\"M", colour);
    svg_number(p->out, at_x);
    fputc(' ', p->out);
    svg_number(p->out, at_y - 4);
    fputs("l4 4-4 4-4-4z\">", p->out);
  }
  point_title(p, c, point, x ? "x" : "y");
  fputs(x ? "</circle>\n" : "</path>\n", p->out);
}

/* The same scale on both axes, everything inside. */
static svg_plot fit_plane(page *p, const json_t *points) {
  svg_plot g = {
      .out = p->out, .left = 10, .right = PLANE - 10, .top = 10, .bottom = PLANE_HEIGHT - 10};
  const size_t count = json_array_size(points);
  for (size_t k = 0; k < count; k++) {
    const double x = page_number(p, json_array_get(points, k), "at_x"),
                 y = page_number(p, json_array_get(points, k), "at_y");
    g.x0 = k == 0 ? x : fmin(g.x0, x);
    g.x1 = k == 0 ? x : fmax(g.x1, x);
    g.y0 = k == 0 ? y : fmin(g.y0, y);
    g.y1 = k == 0 ? y : fmax(g.y1, y);
  }
  const double unit = fmax((g.x1 - g.x0) / (g.right - g.left), (g.y1 - g.y0) / (g.bottom - g.top));
  const double more_x = unit * (g.right - g.left) - (g.x1 - g.x0),
               more_y = unit * (g.bottom - g.top) - (g.y1 - g.y0);
  g.x0 -= more_x / 2;
  g.x1 += more_x / 2;
  g.y0 -= more_y / 2;
  g.y1 += more_y / 2;
  return g;
}

static void draw_lines(page *p, const svg_plot *g, const json_t *points, const json_t *lines) {
  const char *name = json_array_size(lines) > MANY_LINES ? "pair-line many" : "pair-line";
  for (size_t k = 0; k < json_array_size(lines); k++) {
    const double a = page_cell(p, lines, k, 0), b = page_cell(p, lines, k, 1);
    const double count = (double)json_array_size(points);
    if (!(a >= 0 && a < count && b >= 0 && b < count)) continue;
    const json_t *from = json_array_get(points, (size_t)a), *to = json_array_get(points, (size_t)b);
    svg_line(p->out, name, svg_x(g, page_number(p, from, "at_x")),
             svg_y(g, page_number(p, from, "at_y")), svg_x(g, page_number(p, to, "at_x")),
             svg_y(g, page_number(p, to, "at_y")));
  }
}

static void plane_legend(page *p, const palette *c) {
  static const char *const by_rank[] = {"rank 1", "2 to 5", "6 to 10", "worse"};
  char name[32];
  bool others = false;
  fputs(
      "<ul class=\"legend\"><li><svg class=\"mark\" viewBox=\"0 0 12 12\" aria-hidden=\"true\">"
      "<circle cx=\"6\" cy=\"6\" r=\"4\"/></svg>row of x</li><li><svg class=\"mark y\" viewBox=\"0 "
      "0 12 12\" aria-hidden=\"true\"><path d=\"M6 1.5l4.5 4.5-4.5 4.5-4.5-4.5z\"/></svg>row of "
      "y</li>",
      p->out);
  for (int k = 0; k < RANK_COLOURS && !c->labels; k++)
    fprintf(p->out, "<li><span class=\"key r%d\"></span>%s</li>", k, by_rank[k]);
  for (size_t k = 0; c->labels && k < c->count; k++) {
    others = others || c->colour[k] < 0;
    if (c->colour[k] < 0) continue;
    fprintf(p->out, "<li><span class=\"key k%d\"></span>", c->colour[k]);
    svg_text(p->out, page_name(p, json_array_get(c->labels, k), name, sizeof name), 24);
    fputs("</li>", p->out);
  }
  if (others) fputs("<li><span class=\"key k-other\"></span>other labels</li>", p->out);
  fputs("</ul>\n", p->out);
}

void chart_plane(page *p, const json_t *view) {
  const json_t *points = page_list(p, view, "points"), *lines = page_list(p, view, "lines");
  const char *method = page_string(p, view, "method");
  palette c;
  if (!palette_open(p, view, points, &c)) {
    snprintf(p->error, sizeof p->error, "out of memory");
    free(c.colour);
    return;
  }
  const svg_plot g = fit_plane(p, points);
  fputs("<figure class=\"wide\">\n", p->out);
  plane_legend(p, &c);
  svg_open(p->out, "plane", PLANE, PLANE_HEIGHT,
           "Scatter: rows of both sides placed in the plane, true pairs joined by lines");
  draw_lines(p, &g, points, lines);
  for (size_t k = 0; k < json_array_size(points); k++)
    draw_point(p, &g, &c, json_array_get(points, k));
  svg_close(p->out);
  fputs("<figcaption>", p->out);
  fprintf(p->out, "%zu rows of both sides, placed by ", json_array_size(points));
  page_text(p, method);
  if (json_object_get(view, "perplexity"))
    fprintf(p->out, " with perplexity %g", page_number(p, view, "perplexity"));
  fprintf(p->out, "%s. %s</figcaption>\n</figure>\n",
          json_array_size(lines) > 0 ? "; lines join true pairs" : "",
          c.labels ? "Discs and diamonds of one colour in one place: both sides agree on what "
                     "belongs together, even where a pair is told apart."
                   : "Colour is the rank of the first match. Short lines are pairs that lie "
                     "together; long ones and late ranks are where the space fails.");
  free(c.colour);
}

/* ---- S ------------------------------------------------------------------------------------ */

static double largest(page *p, const json_t *rows, size_t n_x, size_t n_y) {
  double most = 0;
  for (size_t i = 0; i < n_x && !*p->error; i++)
    for (size_t j = 0; j < n_y && !*p->error; j++)
      most = fmax(most, fabs(page_cell(p, rows, i, j)));
  return most > 0 ? most : 1;
}

/* Cells of one matrix and where they lie. */
typedef struct cells {
  size_t n_x, n_y;
  double width, height;
} cells;

enum { CELLS_LEFT = 28, CELLS_TOP = 24, CELLS_SIZE = 440 };

/* Squares, or somewhat longer where one side has many more rows. */
static cells cells_of(size_t n_x, size_t n_y) {
  const double w = (double)CELLS_SIZE / (double)(n_y > 0 ? n_y : 1),
               h = (double)CELLS_SIZE / (double)(n_x > 0 ? n_x : 1);
  return (cells){n_x, n_y, fmin(w, 2.5 * h), fmin(h, 2.5 * w)};
}

/* A cell: blue above 0, orange below. */
static void heat_cell(page *p, const cells *c, size_t i, size_t j, double value, double opacity) {
  fprintf(p->out, "<rect class=\"cell %s\" fill-opacity=\"%.3g\" x=\"",
          value >= 0 ? "plus" : "minus", opacity);
  svg_number(p->out, CELLS_LEFT + c->width * (double)j);
  fputs("\" y=\"", p->out);
  svg_number(p->out, CELLS_TOP + c->height * (double)i);
  fputs("\" width=\"", p->out);
  svg_number(p->out, c->width);
  fputs("\" height=\"", p->out);
  svg_number(p->out, c->height);
  fputs("\">", p->out);
}

static void heat_axes(page *p, const cells *c) {
  svg_label(p->out, "axis", CELLS_LEFT + c->width * (double)c->n_y / 2, 16, "middle",
            "rows of y \xe2\x86\x92");
  fputs("<text class=\"axis\" transform=\"translate(18 ", p->out);
  svg_number(p->out, CELLS_TOP + c->height * (double)c->n_x / 2);
  fputs(") rotate(-90)\" text-anchor=\"middle\">\xe2\x86\x90 rows of x</text>\n", p->out);
}

/* Opacity grows with the size of a value, or as its root. */
static void heat(page *p, const json_t *w, const char *key, const char *label, bool root) {
  const json_t *x = page_list(p, w, "x"), *y = page_list(p, w, "y"), *m = page_list(p, w, key);
  const json_t *pairs = page_list(p, w, "pairs");
  const cells c = cells_of(json_array_size(x), json_array_size(y));
  const double most = largest(p, m, c.n_x, c.n_y);
  char a[32], b[32], text[24];
  svg_open(p->out, "heat", 480, c.height * (double)c.n_x + 40, label);
  heat_axes(p, &c);
  for (size_t i = 0; i < c.n_x && !*p->error; i++)
    for (size_t j = 0; j < c.n_y; j++) {
      const double value = page_cell(p, m, i, j), share = fabs(value) / most;
      heat_cell(p, &c, i, j, value, root ? sqrt(share) : share);
      fputs("<title>x ", p->out);
      svg_text(p->out, page_name(p, json_array_get(x, i), a, sizeof a), 40);
      fputs(", y ", p->out);
      svg_text(p->out, page_name(p, json_array_get(y, j), b, sizeof b), 40);
      fprintf(p->out, ": %s</title></rect>\n", svg_value(value, text, sizeof text));
    }
  for (size_t k = 0; k < json_array_size(pairs); k++) {
    svg_rect(p->out, "pair", CELLS_LEFT + c.width * page_cell(p, pairs, k, 1),
             CELLS_TOP + c.height * page_cell(p, pairs, k, 0), c.width, c.height);
    fputs("</rect>\n", p->out);
  }
  svg_close(p->out);
}

void chart_weights(page *p, const json_t *w) {
  const size_t n_x = json_array_size(page_list(p, w, "x")),
               n_y = json_array_size(page_list(p, w, "y"));
  fputs("<div class=\"grid\">\n<figure>\n<h3>Scores s</h3>\n", p->out);
  heat(p, w, "scores", "Heat map: scores of a sample of rows of x with rows of y", false);
  fputs(
      "<ul class=\"legend\"><li><span class=\"key plus\"></span>above 0</li><li><span class=\"key "
      "minus\"></span>below 0</li><li><span class=\"key outline\"></span>true pair</li></ul>\n"
      "<figcaption>Cosines in the shared space. A good space has a dark line of pairs on pale "
      "ground.</figcaption>\n</figure>\n",
      p->out);
  fputs("<figure>\n<h3>Weights S(\xce\xb3) = \xe2\x88\x92\xe2\x88\x82L/\xe2\x88\x82s</h3>\n",
        p->out);
  heat(p, w, "weights", "Heat map: weights S of the same rows", true);
  fputs(
      "<ul class=\"legend\"><li><span class=\"key plus\"></span>pulled together</li><li><span "
      "class=\"key minus\"></span>pushed apart</li><li><span class=\"key outline\"></span>true "
      "pair</li></ul>\n<figcaption>What the loss ",
      p->out);
  page_text(p, page_string(p, w, "loss"));
  fputs(" at temperature ", p->out);
  page_text(p, page_string(p, w, "temperature"));
  fprintf(p->out,
          " still asks for on these %zu \xc3\x97 %zu rows alone; opacity is the root of the "
          "size. Strong cells are the pairs not yet matched and what they are mistaken "
          "for.</figcaption>\n</figure>\n</div>\n",
          n_x, n_y);
}

/* ---- confusion ---------------------------------------------------------------------------- */

enum { CONFUSION_MOST = 40, CONFUSION_NUMBERS = 14, NAME_LENGTH = 12 };

static double row_sum(page *p, const json_t *rows, size_t i, size_t count) {
  double sum = 0;
  for (size_t j = 0; j < count; j++) sum += page_cell(p, rows, i, j);
  return sum > 0 ? sum : 1;
}

/* "the name of a class", cut short. */
static void class_label(page *p, const json_t *names, size_t k, double x, double y, bool turned) {
  char name[32];
  fputs("<text class=\"tick\" text-anchor=\"", p->out);
  fputs(turned ? "start\" transform=\"translate(" : "end\" transform=\"translate(", p->out);
  svg_number(p->out, x);
  fputc(' ', p->out);
  svg_number(p->out, y);
  fputs(turned ? ") rotate(-45)\">" : ")\">", p->out);
  svg_text(p->out, page_name(p, json_array_get(names, k), name, sizeof name), NAME_LENGTH);
  fputs("</text>\n", p->out);
}

static void confusion_cell(page *p, const json_t *names, size_t i, size_t j, double value,
                           double share, double x, double y, double size, bool numbers) {
  char a[32], b[32], text[24];
  fprintf(p->out, "<rect class=\"confusion-cell %s\" fill-opacity=\"%.3g\" x=\"",
          i == j ? "plus" : "minus", share);
  svg_number(p->out, x);
  fputs("\" y=\"", p->out);
  svg_number(p->out, y);
  fputs("\" width=\"", p->out);
  svg_number(p->out, size);
  fputs("\" height=\"", p->out);
  svg_number(p->out, size);
  fputs("\"><title>true ", p->out);
  svg_text(p->out, page_name(p, json_array_get(names, i), a, sizeof a), 40);
  fputs(", answer ", p->out);
  svg_text(p->out, page_name(p, json_array_get(names, j), b, sizeof b), 40);
  fprintf(p->out, ": %.0f rows, %s %% of the class</title></rect>\n", value,
          svg_percent(share, text, sizeof text));
  if (!numbers || value == 0) return;
  snprintf(text, sizeof text, "%.0f", value);
  svg_label(p->out, share > 0.55 ? "count on" : "count", x + size / 2, y + size / 2 + 4, "middle",
            text);
}

/* Characters of the longest name that is shown. */
static double longest_name(page *p, const json_t *names) {
  size_t longest = 1;
  for (size_t k = 0; k < json_array_size(names); k++) {
    char name[32];
    const size_t length = strlen(page_name(p, json_array_get(names, k), name, sizeof name));
    if (length > longest) longest = length;
  }
  return longest < NAME_LENGTH ? (double)longest : NAME_LENGTH + 1;
}

void chart_confusion(page *p, const json_t *zero_shot) {
  const json_t *names = page_list(p, zero_shot, "names"), *m = page_list(p, zero_shot, "confusion");
  const size_t count = json_array_size(names);
  const double length = longest_name(p, names), left = 24 + 7 * length, top = 46 + 5.5 * length;
  const double size = (476 - left) / (double)(count > 0 ? count : 1);
  if (count == 0 || count > CONFUSION_MOST) return;
  fputs("<figure>\n<h3>Which class is taken for which</h3>\n", p->out);
  svg_open(p->out, "confusion", 480, top + size * (double)count + 4,
           "Heat map: confusion matrix, rows are true classes, columns answers");
  svg_label(p->out, "axis", 2, 14, "start", "rows: true class; columns: answer");
  for (size_t i = 0; i < count; i++) {
    const double sum = row_sum(p, m, i, count), y = top + size * (double)i;
    class_label(p, names, i, left - 6, y + size / 2 + 4, false);
    class_label(p, names, i, left + size * ((double)i + 0.5), top - 6, true);
    for (size_t j = 0; j < count; j++) {
      const double value = page_cell(p, m, i, j);
      confusion_cell(p, names, i, j, value, fmin(1, fmax(0, value / sum)), left + size * (double)j,
                     y, size, count <= CONFUSION_NUMBERS);
    }
  }
  svg_close(p->out);
  fputs(
      "<figcaption>Opacity is the share of the true class. Blue is right, orange "
      "wrong.</figcaption>\n</figure>\n",
      p->out);
}
