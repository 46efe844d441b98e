/* SPDX-License-Identifier: Apache-2.0 */
/* What people see: messages and the progress line on stderr, results on stdout; and the signals
 * that stop a command. */
#ifndef UNICON_PROGRAMS_DISPLAY_H
#define UNICON_PROGRAMS_DISPLAY_H

#include <jansson.h>
#include <stdbool.h>

#include "unicon/tools.h"

struct cli_args;

typedef struct display {
  const char *command;         /* named in messages */
  const struct cli_args *args; /* whose options messages speak of, or NULL */
  int verbosity;               /* -1 quiet, 0 warnings, 1 what was chosen, 2 phases and times */
  bool bar;                    /* draw the progress line, on a terminal */
  double every;                /* without one: seconds between two lines, 0: none */
  bool drawn;                  /* the progress line is on the screen now */
  double last;                 /* when it was drawn, or a line written */
  const char *part;            /* not NULL: calls are parts of this one job */
  double from, span;           /* the share of the job that the running part covers */
  double started;              /* when the job began */
} display;

/* Callbacks of the context; `user` is a display. */
void display_log(void *user, unicon_log_level level, const char *text);
int display_progress(void *user, const char *label, double done, double left);

/* "OPTION has no effect WHY", a warning. */
void display_idle(display *d, const char *option, const char *why);

/* The next library call is the share from .. from + span of the job `name`, which begins with a
 * share from 0 on; NULL ends the job. */
void display_part(display *d, const char *name, double from, double span);

/* Takes the progress line off the screen. */
void display_clear(display *d);

/* SIGINT and SIGTERM raise a flag that the progress callback hands to the library; a second SIGINT
 * ends the process at once. SIGPIPE and SIGXFSZ are ignored: the write fails instead. */
void display_catch_signals(void);
bool display_interrupted(void);

/* Seconds of a clock that never goes back. */
double display_now(void);

/* Prints the object on stdout and releases it; false when there was no memory for it. */
bool display_json(json_t *object);

/* Sets a number unless it is not finite. */
void display_json_real(json_t *object, const char *name, double value);

/* Any text as JSON: bytes that are no UTF-8 become U+FFFD. */
json_t *display_json_text(const char *text);

/* Text from a file for a terminal: at most `most` characters, control characters and bytes that are
 * no UTF-8 as `?`, padded with blanks to `width` characters (negative: blanks behind). */
void display_text(const char *text, int width, int most);

/* Text as one word of a line that can be pasted into a shell. */
void display_word(const char *text);

/* The number of that name, "FOLDER.NAME" where a folder is given; NaN if there is none. */
double display_number(const unicon_result *result, const char *folder, const char *name);
/* A number of a model's metadata; 0 where there is none. */
double display_noted(const unicon_model *model, const char *key);

/* A result as an object to which more may be added; NULL when there was no memory for it. */
json_t *display_json_result(const unicon_result *result);

/* "1500 rows of 128 numbers", "1 row of 1 number". */
const char *display_shape(int64_t rows, int64_t width, char *out, size_t size);

/* "1.2 s", "3 min 05 s" and "12.3 MiB", in the units that --max-mem takes. */
const char *display_time(double seconds, char *out, size_t size);
const char *display_bytes(double bytes, char *out, size_t size);

/* Flushes stdout. False, with a sentence on stderr, when the result could not be written; a reader
 * that went away early (`| head`) is no failure. */
bool display_finish(display *d);

#endif
