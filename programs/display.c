/* SPDX-License-Identifier: Apache-2.0 */
#include "display.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flags.h"

enum { BAR_CELLS = 24, EXIT_AT_ONCE = 130 };

/* The one global: a signal handler has no other way to speak. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  if (interrupted && number == SIGINT) _exit(EXIT_AT_ONCE);
  interrupted = 1;
}

void display_catch_signals(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
  sigaction(SIGXFSZ, &action, NULL);
}

bool display_interrupted(void) {
  return interrupted != 0;
}

double display_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void display_clear(display *d) {
  if (d->drawn) fputs("\r\033[K", stderr);
  d->drawn = false;
}

void display_log(void *user, unicon_log_level level, const char *text) {
  display *d = user;
  if ((int)level > d->verbosity) return;
  display_clear(d);
  const bool warning = level == UNICON_LOG_WARNING;
  char said[1024];
  if (d->args && warning) flags_in(d->args, text, said, sizeof said);
  fprintf(stderr, "unicon %s: %s%s\n", d->command, warning ? "warning: " : "",
          d->args && warning ? said : text);
}

void display_idle(display *d, const char *option, const char *why) {
  char text[256];
  snprintf(text, sizeof text, "--%s has no effect %s", option, why);
  display_log(d, UNICON_LOG_WARNING, text);
}

void display_part(display *d, const char *name, double from, double span) {
  if (from == 0) d->started = display_now();
  d->part = name;
  d->from = from;
  d->span = span;
}

/* "about 20 s left", or nothing while that is not known. */
static const char *time_left(double left, const char *before, char *out, size_t size) {
  char time[24];
  out[0] = '\0';
  if (left >= 0)
    snprintf(out, size, "%sabout %s left", before, display_time(ceil(left), time, sizeof time));
  return out;
}

static void draw(display *d, const char *label, double done, double left) {
  char bar[BAR_CELLS + 1], rest[48];
  const int full = (int)(done * BAR_CELLS + 0.5);
  memset(bar, '-', BAR_CELLS);
  memset(bar, '#', (size_t)full);
  bar[BAR_CELLS] = '\0';
  fprintf(stderr, "\r\033[K%s [%s] %3.0f %% %s", label, bar, 100 * done,
          time_left(left, "", rest, sizeof rest));
  fflush(stderr);
  d->drawn = true;
}

/* A call of the library as a part of the job it belongs to. */
static void widen(const display *d, const char **label, double *done, double *left) {
  if (!d->part) return;
  const double spent = display_now() - d->started;
  *label = d->part;
  *done = d->from + d->span * *done;
  *left = spent > 0.5 && *done > 0.01 ? spent * (1 - *done) / *done : -1;
}

int display_progress(void *user, const char *label, double done, double left) {
  display *d = user;
  const double now = display_now();
  char rest[48];
  if (interrupted) return 1;
  if (!d->bar && d->every == 0) return 0;
  widen(d, &label, &done, &left);
  if (d->last == 0) d->last = d->bar ? -1 : now; /* the bar is drawn at once */
  if (now - d->last < (d->bar ? 0.1 : d->every) && !(d->bar && done >= 1)) return 0;
  d->last = now;
  done = done < 0 ? 0 : done > 1 ? 1 : done;
  if (d->bar)
    draw(d, label, done, left);
  else
    fprintf(stderr, "unicon %s: %s; %.0f %%%s\n", d->command, label, 100 * done,
            time_left(left, "; ", rest, sizeof rest));
  return 0;
}

const char *display_shape(int64_t rows, int64_t width, char *out, size_t size) {
  snprintf(out, size, "%lld row%s of %lld number%s", (long long)rows, rows == 1 ? "" : "s",
           (long long)width, width == 1 ? "" : "s");
  return out;
}

const char *display_time(double seconds, char *out, size_t size) {
  const long whole = (long)(seconds + 0.5);
  if (seconds > 0 && seconds < 0.0005)
    snprintf(out, size, "under 1 ms");
  else if (seconds < 9.95 && seconds != (double)whole)
    snprintf(out, size, "%.*f s", seconds < 0.0995 ? 3 : seconds < 0.995 ? 2 : 1, seconds);
  else if (whole < 60)
    snprintf(out, size, "%ld s", whole);
  else if (whole < 3600)
    snprintf(out, size, "%ld min %02ld s", whole / 60, whole % 60);
  else
    snprintf(out, size, "%ld h %02ld min", whole / 3600, whole % 3600 / 60);
  return out;
}

const char *display_bytes(double bytes, char *out, size_t size) {
  static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t u = 0;
  while (bytes >= 1023.5 && u + 1 < sizeof unit / sizeof *unit) {
    bytes /= 1024;
    u++;
  }
  snprintf(out, size, "%.*f %s", u > 0 && bytes < 99.5 ? 1 : 0, bytes, unit[u]);
  return out;
}

void display_json_real(json_t *object, const char *name, double value) {
  if (isfinite(value)) json_object_set_new(object, name, json_real(value));
}

double display_number(const unicon_result *result, const char *folder, const char *name) {
  char whole[96];
  double value;
  snprintf(whole, sizeof whole, "%s%s%s", folder, *folder ? "." : "", name);
  unicon_result_number(result, whole, &value);
  return value;
}

double display_noted(const unicon_model *model, const char *key) {
  const char *text = model ? unicon_model_meta(model, key) : NULL;
  return text ? atof(text) : 0;
}

json_t *display_json_result(const unicon_result *result) {
  const size_t size = unicon_result_json(result, NULL, 0) + 1;
  char *text = malloc(size);
  if (!text) return NULL;
  unicon_result_json(result, text, size);
  json_t *out = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  return out;
}

/* Length of the UTF-8 sequence at `s`, 0 when it is none (overlong, surrogate, past U+10FFFF). */
static size_t sequence(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  const size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  for (size_t k = 1; k < length; k++)
    if ((s[k] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return length;
}

json_t *display_json_text(const char *text) {
  json_t *plain = json_string(text);
  if (plain) return plain;
  char *clean = malloc(3 * strlen(text) + 1);
  size_t used = 0;
  if (!clean) return NULL;
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    const size_t length = sequence(s);
    memcpy(clean + used, length ? (const char *)s : "\xef\xbf\xbd", length ? length : 3);
    used += length ? length : 3;
    s += length ? length : 1;
  }
  clean[used] = '\0';
  json_t *out = json_string(clean);
  free(clean);
  return out;
}

void display_text(const char *text, int width, int most) {
  char clean[256];
  size_t used = 0;
  int count = 0;
  for (const unsigned char *s = (const unsigned char *)text; *s && count < most; count++) {
    const size_t length = sequence(s);
    const bool plain = length > 0 && *s >= 0x20 && *s != 0x7f && !(*s == 0xc2 && s[1] < 0xa0);
    if (used + 4 >= sizeof clean) break;
    memcpy(clean + used, plain ? (const char *)s : "?", plain ? length : 1);
    used += plain ? length : 1;
    s += length > 0 ? length : 1;
  }
  const int blanks = (width < 0 ? -width : width) - count;
  printf("%*s%.*s%*s", width > 0 && blanks > 0 ? blanks : 0, "", (int)used, clean,
         width < 0 && blanks > 0 ? blanks : 0, "");
}

void display_word(const char *text) {
  static const char plain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:=@%+-";
  if (*text && !text[strspn(text, plain)]) {
    fputs(text, stdout);
    return;
  }
  putchar('\'');
  for (const char *c = text; *c; c++) *c == '\'' ? fputs("'\\''", stdout) : putchar(*c);
  putchar('\'');
}

bool display_json(json_t *object) {
  char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;
  json_decref(object);
  if (!text) return false;
  puts(text);
  free(text);
  return true;
}

/* True when the pipe behind stdout has lost its reader; errno may be of a later call by now. */
static bool reader_left(void) {
  struct pollfd out = {.fd = STDOUT_FILENO};
  return errno == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR));
}

bool display_finish(display *d) {
  display_clear(d);
  const bool earlier = ferror(stdout) != 0;
  const bool failed = fflush(stdout) != 0 || earlier;
  const int why = errno;
  if (!failed || reader_left()) return true;
  fprintf(stderr, "unicon%s%s: cannot write the result to standard output: %s\n",
          *d->command ? " " : "", d->command, strerror(why));
  return false;
}
