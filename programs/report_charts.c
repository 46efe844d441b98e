/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of numbers: bars, curves, spectrum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_read.h"

enum { WIDTH = 480, HEIGHT = 300, CURVE_POINTS = 600 };

static const char *const direction_key[2] = {"x_to_y", "y_to_x"};
static const char *const direction_name[2] = {"x\xc2\xa0\xe2\x86\x92\xc2\xa0y",
                                              "y\xc2\xa0\xe2\x86\x92\xc2\xa0x"};
static const char *const direction_class[2] = {"bar a", "bar b"};

static svg_plot plot(page *p, double x0, double x1, double y0, double y1) {
  return (svg_plot){p->out, 52, WIDTH - 12, 34, HEIGHT - 50, x0, x1, y0, y1};
}

static void figure(page *p, const char *title) {
  fputs("<figure>\n<h3>", p->out);
  page_text(p, title);
  fputs("</h3>\n", p->out);
}

/* Which colour is which direction; for bars of hit@k what the lines are as well. */
static void legend(page *p, bool chance) {
  fputs(
      "<ul class=\"legend\"><li><span class=\"key a\"></span>x \xe2\x86\x92 y: rows of x look for "
      "rows of y</li><li><span class=\"key b\"></span>y \xe2\x86\x92 x</li>",
      p->out);
  if (chance)
    fputs(
        "<li><span class=\"key line\"></span>95 % interval</li>"
        "<li><span class=\"key dash\"></span>chance</li>",
        p->out);
  if (chance && page_balanced(p))
    fputs("<li><span class=\"key before\"></span>without balance</li>", p->out);
  fputs("</ul>\n", p->out);
}

/* ---- hit@k -------------------------------------------------------------------------------- */

typedef struct hit {
  double value, low, high, chance; /* low > high: no interval */
  double plain;                    /* without balance; negative: there is none */
} hit;

static hit read_hit(page *p, int d, const char *metric) {
  const json_t *direction = page_part(p, direction_key[d]);
  const json_t *interval = json_object_get(json_object_get(direction, "ci"), metric);
  const json_t *chance = page_object(p, direction, "chance");
  hit h = {page_number(p, direction, metric), 1, 0, page_maybe(p, chance, metric, 0), -1};
  if (page_balanced(p)) h.plain = page_plain(p, direction_key[d], metric, -1);
  if (!interval) return h;
  h.low = page_entry(p, interval, 0);
  h.high = page_entry(p, interval, 1);
  return h;
}

static void recall_bar(page *p, const svg_plot *g, int direction, const char *metric, hit h,
                       double x, double width) {
  char value[24], low[24], high[24], chance[24];
  const double y = svg_y(g, h.value), middle = x + width / 2;
  svg_rect(p->out, direction_class[direction], x, y, width, g->bottom - y);
  fprintf(p->out, "<title>%s %s: %s %%", metric, direction_name[direction],
          svg_percent(h.value, value, sizeof value));
  if (h.low <= h.high)
    fprintf(p->out, ", 95 %% interval %s to %s %%", svg_percent(h.low, low, sizeof low),
            svg_percent(h.high, high, sizeof high));
  if (h.plain >= 0)
    fprintf(p->out, "; without balance %s %%", svg_percent(h.plain, low, sizeof low));
  fprintf(p->out, "; chance %s %%</title></rect>\n", svg_percent(h.chance, chance, sizeof chance));
  if (h.plain >= 0) svg_line(p->out, "before", x, svg_y(g, h.plain), x + width, svg_y(g, h.plain));
  if (h.low <= h.high) {
    svg_line(p->out, "whisker", middle, svg_y(g, h.low), middle, svg_y(g, h.high));
    svg_line(p->out, "cap", middle - 5, svg_y(g, h.low), middle + 5, svg_y(g, h.low));
    svg_line(p->out, "cap", middle - 5, svg_y(g, h.high), middle + 5, svg_y(g, h.high));
  }
  svg_line(p->out, "chance", x - 4, svg_y(g, h.chance), x + width + 4, svg_y(g, h.chance));
  const double top = svg_y(g, h.low <= h.high ? h.high : h.value);
  svg_label(p->out, "value", middle, top - 6, "middle", value);
}

void chart_recall(page *p) {
  static const char *const metric[] = {"hit@1", "hit@5", "hit@10"};
  const svg_plot g = plot(p, 0, 3, 0, 1);
  figure(p, "Found among the first k");
  svg_open(p->out, "recall", WIDTH, HEIGHT,
           "Bars: share of queries with a true match among the first 1, 5 and 10 rows found, in "
           "both directions, with intervals and chance");
  svg_y_axis(&g, "share of queries", true);
  for (int m = 0; m < 3; m++) {
    for (int d = 0; d < 2; d++) {
      recall_bar(p, &g, d, metric[m], read_hit(p, d, metric[m]),
                 svg_x(&g, m + 0.5) + (d == 0 ? -52 : 4), 48);
    }
    svg_label(p->out, "tick", svg_x(&g, m + 0.5), g.bottom + 18, "middle", metric[m]);
  }
  svg_x_name(&g, "metric");
  svg_close(p->out);
  legend(p, true);
}

/* ---- ranks -------------------------------------------------------------------------------- */

static double total(page *p, const json_t *bins) {
  double sum = 0;
  for (size_t k = 0; k < json_array_size(bins); k++)
    sum += page_number(p, json_array_get(bins, k), "count");
  return sum > 0 ? sum : 1;
}

static void rank_bars(page *p, const svg_plot *g, const json_t *bins, int direction, double all) {
  const size_t count = json_array_size(bins);
  const double slot = (g->right - g->left) / (g->x1 > 0 ? g->x1 : 1), width = 0.38 * slot;
  for (size_t k = 0; k < count; k++) {
    const json_t *bin = json_array_get(bins, k);
    const double from = page_number(p, bin, "from"), to = page_number(p, bin, "to");
    const double queries = page_number(p, bin, "count"), y = svg_y(g, queries / all);
    char share[24];
    svg_rect(p->out, direction == 0 ? "rank-bar a" : "rank-bar b",
             svg_x(g, (double)k + 0.5) + (direction == 0 ? -width - 0.5 : 0.5), y, width,
             g->bottom - y);
    fprintf(p->out, "<title>%s, rank %.0f", direction_name[direction], from);
    if (to > from) fprintf(p->out, " to %.0f", to);
    fprintf(p->out, ": %.0f queries, %s %%</title></rect>\n", queries,
            svg_percent(queries / all, share, sizeof share));
  }
}

void chart_ranks(page *p) {
  const json_t *ranks = page_part(p, "ranks"), *bins[2] = {NULL, NULL};
  double most = 0, all[2] = {1, 1};
  size_t slots = 1, longest = 0;
  if (!ranks) return;
  for (int d = 0; d < 2; d++) {
    bins[d] = page_list(p, ranks, direction_key[d]);
    all[d] = total(p, bins[d]);
    if (json_array_size(bins[d]) > slots) {
      slots = json_array_size(bins[d]);
      longest = (size_t)d;
    }
    for (size_t k = 0; k < json_array_size(bins[d]); k++)
      most = fmax(most, page_number(p, json_array_get(bins[d], k), "count") / all[d]);
  }
  const svg_plot g = plot(p, 0, (double)slots, 0, most > 0 ? most * 1.05 : 1);
  figure(p, "Where the first match stands");
  svg_open(p->out, "ranks", WIDTH, HEIGHT,
           "Histogram: rank of the first true match of each query, in both directions");
  svg_y_axis(&g, "share of queries", true);
  for (int d = 0; d < 2; d++) rank_bars(p, &g, bins[d], d, all[d]);
  for (size_t k = 0; k < json_array_size(bins[longest]); k++) {
    char text[24];
    const double from = page_number(p, json_array_get(bins[longest], k), "from");
    const bool thousands = from > 1000;
    snprintf(text, sizeof text, thousands ? "%.0fk" : "%.0f", thousands ? (from - 1) / 1000 : from);
    svg_label(p->out, "tick", svg_x(&g, (double)k + 0.5), g.bottom + 18, "middle", text);
  }
  svg_x_name(&g, "rank of the first match, from \xe2\x80\xa6 on");
  svg_close(p->out);
  legend(p, false);
  fputs(
      "<figcaption>1 is best. A long tail to the right is a few rows that nothing is near to; a "
      "hill away from 1 is a space that sorts, but not finely.</figcaption>\n</figure>\n",
      p->out);
}

/* ---- curves ------------------------------------------------------------------------------- */

typedef struct series {
  size_t count;
  double value[CURVE_POINTS];
  double low, high;
  const char *mark, *word, *unit; /* class of the points, what a step is called */
} series;

/* A line through the values, a point on each. */
static void draw_series(page *p, const svg_plot *g, const series *s, double start) {
  fputs("<path class=\"trace\" d=\"", p->out);
  for (size_t k = 0; k < s->count; k++) {
    fputc(k == 0 ? 'M' : 'L', p->out);
    svg_number(p->out, svg_x(g, start + (double)k));
    fputc(' ', p->out);
    svg_number(p->out, svg_y(g, s->value[k]));
  }
  fputs("\"/>\n", p->out);
  for (size_t k = 0; k < s->count; k++) {
    char text[24];
    fprintf(p->out, "<circle class=\"%s\" r=\"%s\" cx=\"", s->mark, s->count > 80 ? "2" : "3.2");
    svg_number(p->out, svg_x(g, start + (double)k));
    fputs("\" cy=\"", p->out);
    svg_number(p->out, svg_y(g, s->value[k]));
    fprintf(p->out, "\"><title>%s %.0f: %s</title></circle>\n", s->word, start + (double)k,
            svg_value(s->value[k], text, sizeof text));
  }
}

static void take(series *s, double value) {
  if (s->count == CURVE_POINTS || !isfinite(value)) return;
  s->low = s->count == 0 || value < s->low ? value : s->low;
  s->high = s->count == 0 || value > s->high ? value : s->high;
  s->value[s->count++] = value;
}

void chart_spectrum(page *p, const json_t *model) {
  const json_t *spectrum = page_list(p, model, "spectrum");
  const size_t all = json_array_size(spectrum);
  series s = {.mark = "spectrum-point", .word = "direction"};
  double sum = 0, part = 0;
  size_t half = 0;
  char first[24], last[24];
  for (size_t k = 0; k < all; k++) {
    take(&s, page_entry(p, spectrum, k));
    sum += page_entry(p, spectrum, k);
  }
  while (half < all && part < sum / 2) part += page_entry(p, spectrum, half++);
  if (s.count == 0) return;
  const svg_plot g =
      plot(p, 1, s.count > 1 ? (double)s.count : 2, fmin(0, s.low), s.high > 0 ? s.high * 1.05 : 1);
  figure(p, "Singular values");
  svg_open(p->out, "spectrum", WIDTH, HEIGHT, "Curve: singular values, largest first");
  svg_y_axis(&g, "singular value", false);
  draw_series(p, &g, &s, 1);
  svg_x_axis(&g, "direction of the shared space");
  svg_close(p->out);
  fprintf(p->out,
          "<figcaption>What each direction carries of the cross-covariance, from %s down to %s; "
          "half of the sum lies in the first %zu of %zu. A steep fall means that fewer directions "
          "would do.</figcaption>\n</figure>\n",
          svg_value(s.value[0], first, sizeof first),
          svg_value(page_entry(p, spectrum, all - 1), last, sizeof last), half, all);
}

void chart_curve(page *p, const char *title, const char *axis, const char *values, int start,
                 const char *steps, const char *caption) {
  series s = {.mark = "curve-point", .word = steps};
  for (char *end = NULL; *values; values = end) {
    const double value = strtod(values, &end);
    if (end == values) break;
    take(&s, value);
  }
  if (s.count < 2) return;
  const double room = s.high > s.low ? 0.08 * (s.high - s.low) : 0.5;
  const svg_plot g = plot(p, start, start + (double)s.count - 1, s.low - room, s.high + room);
  figure(p, title);
  svg_open(p->out, "curve", WIDTH, HEIGHT, title);
  svg_y_axis(&g, axis, false);
  draw_series(p, &g, &s, start);
  svg_x_axis(&g, steps);
  svg_close(p->out);
  fprintf(p->out, "<figcaption>%s</figcaption>\n</figure>\n", caption);
}

/* ---- what auto tried ---------------------------------------------------------------------- */

enum { TRIED_MOST = 128, TRIED_SHOWN = 14, TRIED_LETTERS = 86, ROW_HEIGHT = 38 };

typedef struct trial {
  char name[200];
  double score;
} trial;

static int by_score(const void *a, const void *b) {
  const trial *left = a, *right = b;
  return (left->score < right->score) - (left->score > right->score);
}

/* Puts `to` in the place of the first `from`, which is not shorter. */
static void shorten(char *text, const char *from, const char *to) {
  char *at = strstr(text, from);
  const size_t old = strlen(from), new = strlen(to);
  if (!at) return;
  for (size_t k = 0; k < new; k++) at[k] = to[k];
  memmove(at + new, at + old, strlen(at + old) + 1);
}

/* "angular ridge 0.01 metric power 0.5 exponent 1.5 rank 256 balance softmax:10: 0.5182; ...": the
 * score stands behind the last colon. */
static size_t parse_trials(const char *text, trial *out) {
  size_t count = 0;
  while (*text && count < TRIED_MOST) {
    const size_t length = strcspn(text, ";");
    size_t name = length;
    while (name > 0 && text[name - 1] != ':') name--;
    if (name > 1) {
      trial *t = &out[count];
      snprintf(t->name, sizeof t->name, "%.*s", (int)(name < sizeof t->name ? name - 1 : 190),
               text);
      t->score = strtod(text + name, NULL);
      if (isfinite(t->score)) count++;
    }
    text += length;
    while (*text == ';' || *text == ' ') text++;
  }
  qsort(out, count, sizeof *out, by_score);
  return count;
}

/* A line of words, and the bar below it. */
static void draw_trial(page *p, const trial *t, double y, double best, bool first) {
  const double to = WIDTH - 46;
  char text[24], words[sizeof t->name];
  snprintf(words, sizeof words, "%s", t->name);
  shorten(words, "metric power", "power");
  shorten(words, " balance softmax", " softmax");
  shorten(words, " balance csls", " csls");
  shorten(words, " epochs at temperature ", " at ");
  if (!first) svg_line(p->out, "rule", 0, y, WIDTH, y);
  fprintf(p->out, "<text class=\"tick\" x=\"0\" y=\"%.0f\">", y + 15);
  svg_text(p->out, words, TRIED_LETTERS);
  fputs("</text>\n", p->out);
  svg_rect(p->out, first ? "trial a" : "trial c", 0, y + 21, to * fmax(0, t->score) / best, 10);
  fputs("<title>", p->out);
  page_text(p, t->name);
  fprintf(p->out, ": %s</title></rect>\n", svg_value(t->score, text, sizeof text));
  snprintf(text, sizeof text, "%.3f", t->score);
  svg_label(p->out, first ? "value" : "tick", WIDTH, y + 30, "end", text);
}

void chart_tried(page *p, const char *tried, const char *chosen) {
  trial *list = calloc(TRIED_MOST, sizeof *list);
  const size_t count = list ? parse_trials(tried, list) : 0;
  const size_t shown = count < TRIED_SHOWN ? count : TRIED_SHOWN;
  const double best = count > 0 && list[0].score > 0 ? list[0].score : 1;
  if (count > 0) {
    figure(p, "What auto tried");
    svg_open(p->out, "tried", WIDTH, ROW_HEIGHT * (double)shown,
             "Bars: held-out score of the best settings tried");
    for (size_t k = 0; k < shown; k++)
      draw_trial(p, &list[k], ROW_HEIGHT * (double)k, best, k == 0);
    svg_close(p->out);
    fprintf(p->out,
            "<figcaption>Score on held-out pairs (mean of mrr and hit@10) of the closed form "
            "at each setting, and after the best epoch of refine%s; %zu were tried. Chosen: ",
            count > shown ? ", the best of them" : "", count);
    page_text(p, chosen);
    fputs(".</figcaption>\n</figure>\n", p->out);
  }
  free(list);
}
