/* SPDX-License-Identifier: Apache-2.0 */
/* The cards of a report: checked all, for the page's script reads them too, and found by number. */
#include <stdlib.h>
#include <string.h>

#include "report_page.h"

/* A link that can be nothing but a path: it begins with ./ or ../ and has no sign of an address. */
static bool is_path(const char *text) {
  static const char signs[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-~+,=@%";
  const bool begins = strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0;
  return begins && text[strspn(text, signs)] == '\0';
}

static bool is_image(const char *text) {
  static const char *const type[] = {"png", "jpeg", "gif", "webp"};
  static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  for (size_t k = 0; k < sizeof type / sizeof *type; k++) {
    char start[40];
    const int length = snprintf(start, sizeof start, "data:image/%s;base64,", type[k]);
    if (strncmp(text, start, (size_t)length) != 0) continue;
    return text[(size_t)length + strspn(text + length, signs)] == '\0';
  }
  return false;
}

/* Lists of at least `least` numbers each, the first of them whole. */
static void check_lists(page *p, const json_t *card, const char *key, size_t least) {
  const json_t *lists = json_object_get(card, key);
  if (!lists) return;
  lists = get_list(p, card, key);
  for (size_t k = 0; k < json_array_size(lists); k++) {
    const json_t *entry = json_array_get(lists, k);
    if (!json_is_integer(json_array_get(entry, 0))) complain(p, key, "lists that begin with a row");
    for (size_t n = 1; n < least; n++) get_entry(p, entry, n);
  }
}

static void check_card(page *p, const json_t *card) {
  const json_t *name = json_object_get(card, "name"), *number = json_object_get(card, "number");
  if (!json_is_integer(number) || json_integer_value(number) < 0)
    complain(p, "number", "a whole number");
  if (!json_is_string(name) && !json_is_integer(name))
    complain(p, "name", "a text or a whole number");
  get_number(p, card, "rank");
  get_maybe(p, card, "label", -1);
  get_maybe(p, card, "found", 0);
  get_maybe(p, card, "plain", 0);
  get_maybe(p, card, "partners", 0);
  get_maybe(p, card, "beside_rank", 0);
  if (json_object_get(card, "text")) get_string(p, card, "text");
  check_lists(p, card, "pairs", 2);
  check_lists(p, card, "near", 3);
  check_lists(p, card, "beside_near", 3);
  if (!json_object_get(card, "media")) return;
  const char *media = get_string(p, card, "media");
  if (!is_path(media) && !is_image(media)) complain(p, "media", "an image or a relative path");
}

static int by_number(const void *a, const void *b) {
  const json_t *const *left = a, *const *right = b;
  const json_int_t l = json_integer_value(json_object_get(*left, "number"));
  const json_int_t r = json_integer_value(json_object_get(*right, "number"));
  return (l > r) - (l < r);
}

void cards_open(page *p) {
  const json_t *part = get_part(p, "cards");
  for (int side = 0; part && side < 2; side++) {
    const json_t *list = get_list(p, part, side == 0 ? "x" : "y");
    const size_t count = json_array_size(list);
    p->card[side] = calloc(count + 1, sizeof(const json_t *)); /* pointers */
    if (!p->card[side]) complain(p, "cards", "fewer: out of memory");
    for (size_t k = 0; k < count && p->card[side] && !*p->error; k++)
      check_card(p, p->card[side][k] = json_array_get(list, k));
    if (!p->card[side] || *p->error) return;
    p->cards[side] = count;
    qsort(p->card[side], count, sizeof(const json_t *), by_number);
  }
}

void cards_close(page *p) {
  free(p->card[0]);
  free(p->card[1]);
}

const json_t *card_of(const page *p, int side, const json_t *number) {
  size_t low = 0, high = p->cards[side];
  const json_int_t wanted = json_is_integer(number) ? json_integer_value(number) : -1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const json_t *card = p->card[side][middle];
    const json_int_t now = json_integer_value(json_object_get(card, "number"));
    if (now == wanted) return card;
    if (now < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

enum { NAME_START = 22, NAME_END = 14, TEXT_SHOWN = 90, TITLE_SHOWN = 300 };

/* Bytes of the last `count` characters. */
static size_t tail(const char *text, size_t count) {
  size_t at = strlen(text);
  while (at > 0 && count > 0) count -= ((unsigned char)text[--at] & 0xc0) != 0x80;
  return strlen(text) - at;
}

void put_id(page *p, const json_t *name) {
  if (!json_is_string(name) || json_string_length(name) == 0) {
    put_name(p, name, SIZE_MAX);
    return;
  }
  const char *text = json_string_value(name);
  const size_t end = tail(text, NAME_END);
  if (tail(text, NAME_START + NAME_END + 2) == strlen(text)) {
    put_text(p, text, SIZE_MAX);
    return;
  }
  put_text(p, text, NAME_START); /* and an ellipsis */
  put_text(p, text + strlen(text) - end, SIZE_MAX);
}

void put_link(page *p, int side, const json_t *holder, const char *name_key,
              const char *number_key) {
  const json_t *name = json_object_get(holder, name_key);
  const json_t *number = json_object_get(holder, number_key);
  fputs("<span class=\"row\"", p->out);
  if (card_of(p, side, number))
    fprintf(p->out, " data-row=\"%c%lld\"", "xy"[side], (long long)json_integer_value(number));
  fputs(" title=\"", p->out);
  put_name(p, name, TITLE_SHOWN);
  fputs("\">", p->out);
  put_id(p, name);
  fputs("</span>", p->out);
}

void put_row(page *p, int side, const json_t *holder, const char *name_key,
             const char *number_key) {
  const json_t *card = card_of(p, side, json_object_get(holder, number_key));
  const char *text = json_string_value(json_object_get(card, "text"));
  put_link(p, side, holder, name_key, number_key);
  if (!text) return;
  fputs("<span class=\"said\">", p->out);
  put_text(p, text, TEXT_SHOWN);
  fputs("</span>", p->out);
}
