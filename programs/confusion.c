/* SPDX-License-Identifier: Apache-2.0 */
#include "confusion.h"

#include <stdio.h>
#include <string.h>

#include "display.h"

enum { TABLE_CLASSES = 20, LISTED = 20, LONGEST_LABEL = 16 };

static int64_t row_sum(const confusion *c, int64_t class) {
  int64_t sum = 0;
  for (int64_t b = 0; b < c->classes; b++) sum += c->count[class * c->classes + b];
  return sum;
}

static int widest(const confusion *c, int64_t class) {
  const size_t length = strlen(c->name[class]);
  int width = length < LONGEST_LABEL ? (int)length : LONGEST_LABEL;
  for (int64_t a = 0; a < c->classes; a++) {
    const int digits = snprintf(NULL, 0, "%lld", (long long)c->count[a * c->classes + class]);
    if (digits > width) width = digits;
  }
  return width;
}

/* Rows are the true labels, columns the answers. */
static void print_matrix(const confusion *c) {
  int first = 4;
  for (int64_t a = 0; a < c->classes; a++) {
    const size_t length = strlen(c->name[a]);
    if ((int)length > first) first = length < LONGEST_LABEL ? (int)length : LONGEST_LABEL;
  }
  printf("\nrows: true label, columns: answer\n%-*s", first, "");
  for (int64_t b = 0; b < c->classes; b++) {
    fputs("  ", stdout);
    display_text(c->name[b], widest(c, b), LONGEST_LABEL);
  }
  puts("    rows  right");
  for (int64_t a = 0; a < c->classes; a++) {
    const int64_t rows = row_sum(c, a), *count = c->count + a * c->classes;
    display_text(c->name[a], -first, LONGEST_LABEL);
    for (int64_t b = 0; b < c->classes; b++) printf("  %*lld", widest(c, b), (long long)count[b]);
    printf("  %6lld", (long long)rows);
    if (rows > 0) printf("  %5.3f", (double)count[a] / (double)rows);
    putchar('\n');
  }
}

/* The largest entry beside the diagonal that comes after (count, place) in falling order; -1 at the
 * end. */
static int64_t next_error(const confusion *c, int64_t count, int64_t place) {
  const int64_t cells = c->classes * c->classes;
  int64_t best = -1;
  for (int64_t k = 0; k < cells; k++) {
    const int64_t now = c->count[k];
    if (k % (c->classes + 1) == 0 || now == 0) continue;
    if (now > count || (now == count && k <= place)) continue;
    if (best < 0 || now > c->count[best]) best = k;
  }
  return best;
}

/* Too many classes for a matrix on a screen: the most common errors. */
static void print_errors(const confusion *c) {
  int64_t count = INT64_MAX, place = -1;
  printf("\n%lld classes: the most common errors (--json has the whole matrix)\n",
         (long long)c->classes);
  printf("%-*s  %-*s  %6s\n", LONGEST_LABEL, "true label", LONGEST_LABEL, "answer", "rows");
  for (int k = 0; k < LISTED; k++) {
    place = next_error(c, count, place);
    if (place < 0) return;
    count = c->count[place];
    display_text(c->name[place / c->classes], -LONGEST_LABEL, LONGEST_LABEL);
    fputs("  ", stdout);
    display_text(c->name[place % c->classes], -LONGEST_LABEL, LONGEST_LABEL);
    printf("  %6lld\n", (long long)count);
  }
}

void confusion_print(const confusion *c) {
  if (!c->count)
    printf("\n%lld classes: too many for a confusion matrix\n", (long long)c->classes);
  else if (c->classes <= TABLE_CLASSES)
    print_matrix(c);
  else
    print_errors(c);
}

json_t *confusion_names_json(const confusion *c) {
  json_t *names = json_array();
  for (int64_t a = 0; a < c->classes; a++) {
    json_t *name = json_string(c->name[a]); /* NULL: not UTF-8 */
    json_array_append_new(names, name ? name : json_integer((json_int_t)a));
  }
  return names;
}
