/* SPDX-License-Identifier: Apache-2.0 */
#include "contestants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The SGD heads: AdamW from a random start on the symmetric cross-entropy, batches of a tenth of
 * the rows, cosine decay, weight decay, early stop; the temperature is learned from .07 as CLIP
 * does, or held at .1, which small sets like better. Step lengths are relative to weights of unit
 * size. docs/method.md section 5 shows why CCA, PLS, Procrustes and ridge regression are corners of
 * one formula. */
#define SGD "preset=fast start=random metric=none refine_batch=tenth refine_decay=0.01 "
#define SGD_TEMPERATURES \
  "temperature=0.07 learn_temperature=on|temperature=0.1 learn_temperature=off"

const contestant contestants[] = {
    {.name = "fast", .settings = "preset=fast"},
    {.name = "auto", .judged = true, .settings = "preset=auto"},
    {.name = "best", .judged = true, .settings = "preset=best"},
    {.name = "paper", .settings = "preset=paper"},
    {.name = "sgd_linear",
     .baseline = true,
     .judged = true,
     .settings = SGD "refine=30 refine_patience=5",
     .axis = {"refine_rate=0.01|refine_rate=0.03|refine_rate=0.1", SGD_TEMPERATURES}},
    {.name = "sgd_mlp",
     .baseline = true,
     .judged = true,
     .settings = SGD "refine=15 refine_patience=4 map=hidden features=1024 dropout=0.3",
     .axis = {"refine_rate=0.01|refine_rate=0.03", SGD_TEMPERATURES}},
    {.name = "cca",
     .baseline = true,
     .settings = "preset=fast exponent=0",
     .axis = {"ridge=0.001|ridge=0.01|ridge=0.1", "rank=32|rank=64|rank=128|rank=256"}},
    {.name = "pls",
     .baseline = true,
     .settings = "preset=fast metric=none exponent=0",
     .axis = {"rank=32|rank=64|rank=128|rank=256|rank=512"}},
    {.name = "procrustes",
     .baseline = true,
     .settings = "preset=fast metric=none exponent=0 rank=full"},
    {.name = "ridge",
     .baseline = true,
     .settings = "preset=fast rank=full",
     .axis = {"metric_x=whiten metric_y=none split=1|metric_x=none metric_y=whiten split=0",
              "ridge=0.001|ridge=0.01|ridge=0.1|ridge=1"}},
    {.name = "none", .baseline = true, .identity = true, .settings = ""},
};
const size_t contestant_count = sizeof contestants / sizeof *contestants;

const contestant *contestant_find(const char *name, size_t length) {
  for (size_t i = 0; i < contestant_count; i++)
    if (strlen(contestants[i].name) == length && strncmp(contestants[i].name, name, length) == 0)
      return &contestants[i];
  return NULL;
}

enum { CANDIDATES_MAX = 16 };

/* One contestant at work, in a context of its own, so that its memory can be told. */
typedef struct match {
  tool *t;
  unicon_ctx *ctx;
  const contestant *who;
  const compared_sets *data;
  outcome *out;
  unicon_model *best;
  char tried[CANDIDATES_MAX][128]; /* what the axes came to, so that nothing is run twice */
} match;

/* ---- options of a candidate --------------------------------------------------------------- */

static int64_t full_rank(const compared_sets *data) {
  const int64_t most[] = {unicon_rows_width(data->train.x), unicon_rows_width(data->train.y),
                          unicon_rows_count(data->train.x) - 1,
                          unicon_rows_count(data->train.y) - 1};
  int64_t rank = most[0];
  for (int k = 1; k < 4; k++) rank = most[k] < rank ? most[k] : rank;
  return rank;
}

/* A tenth of the rows, 64 to 1000: small sets, too, get steps enough. */
static int64_t batch_rows(const compared_sets *data) {
  const int64_t tenth = unicon_rows_count(data->train.x) / 10;
  return tenth < 64 ? 64 : tenth > 1000 ? 1000 : tenth;
}

/* The next "option=value" of a text of `length` characters, from *at on; false at its end. */
static bool next_setting(const char *text, size_t length, size_t *at, char name[32],
                         char value[64]) {
  if (*at >= length) return false;
  const char *from = text + *at;
  const size_t part = strcspn(from, " |"), equals = strcspn(from, "=");
  snprintf(name, 32, "%.*s", (int)equals, from);
  snprintf(value, 64, "%.*s", (int)(part - equals - 1), from + equals + 1);
  *at += part + 1;
  return true;
}

/* Sets all of "option=value option=value". Ranks are held to what the data allow. */
static unicon_status set_all(const match *m, unicon_options *options, const char *text,
                             size_t length) {
  char name[32], value[64];
  unicon_status status = UNICON_OK;
  for (size_t at = 0; status == UNICON_OK && next_setting(text, length, &at, name, value);) {
    if (strcmp(name, "rank") == 0) {
      const int64_t full = full_rank(m->data), asked = strtoll(value, NULL, 10);
      if (asked > full) snprintf(value, sizeof value, "%lld", (long long)full);
    } else if (strcmp(value, "tenth") == 0) {
      snprintf(value, sizeof value, "%lld", (long long)batch_rows(m->data));
    }
    status = unicon_options_set(m->ctx, options, name, value);
  }
  return status;
}

/* What the user gave wins, but a method that needs the full rank keeps it; what was held out is
 * held out already. */
static unicon_status set_given(const match *m, unicon_options *options) {
  const cli_args *args = m->t->args;
  const bool full = strstr(m->who->settings, "rank=full") != NULL;
  unicon_status status = UNICON_OK;
  for (size_t i = 0; i < args->settings && status == UNICON_OK; i++) {
    const cli_setting *s = &args->setting[i];
    if (s->option->scope & UNICON_SCOPE_CONTEXT) continue;
    if (full && strcmp(s->option->name, "rank") == 0) continue;
    if (strcmp(s->option->name, "val_fraction") == 0) continue;
    status = unicon_options_set(m->ctx, options, s->option->name, s->value);
  }
  return status;
}

/* Alternative `number` of an axis (NULL: one empty one); false past the end. */
static bool alternative(const char *axis, int number, const char **text, size_t *length) {
  *text = axis ? axis : "";
  for (; number > 0; number--) {
    *text += strcspn(*text, "|");
    if (!**text) return false;
    (*text)++;
  }
  *length = strcspn(*text, "|");
  return true;
}

static unicon_status candidate_options(const match *m, const char *const text[2],
                                       const size_t length[2], unicon_options **out) {
  unicon_status status = unicon_options_create(m->ctx, out);
  if (status == UNICON_OK) status = set_all(m, *out, m->who->settings, strlen(m->who->settings));
  for (int k = 0; k < 2 && status == UNICON_OK; k++) status = set_all(m, *out, text[k], length[k]);
  return status == UNICON_OK ? set_given(m, *out) : status;
}

/* ---- one candidate ------------------------------------------------------------------------ */

static unicon_status judge(const match *m, const unicon_model *model, const unicon_data *rows,
                           const unicon_options *options, unicon_metrics *to_y,
                           unicon_metrics *to_x) {
  const unicon_view x = {.rows = rows->x, .model = model, .side = UNICON_X},
                    y = {.rows = rows->y, .model = model, .side = UNICON_Y};
  return unicon_evaluate(m->ctx, &x, &y, rows->pairs, options, to_y, to_x);
}

/* The score by which the library, too, compares candidates. */
static double score_of(const unicon_metrics *to_y, const unicon_metrics *to_x) {
  return (to_y->value[UNICON_MRR] + to_y->value[UNICON_HIT_10] + to_x->value[UNICON_MRR] +
          to_x->value[UNICON_HIT_10]) /
         4;
}

static void read_epochs(const unicon_model *model, outcome *out) {
  const char *text = unicon_model_meta(model, "refine_score_log");
  out->epochs = 0;
  for (char *end; text && out->epochs < EPOCHS_MAX; text = end) {
    const double value = strtod(text, &end);
    if (end == text) break;
    out->epoch_score[out->epochs++] = value;
  }
}

/* The axes' options as they are in force: a rank may be cut, or the user's own may have won. */
static void describe(const unicon_options *options, const char *const text[2],
                     const size_t length[2], char *out, size_t size) {
  char name[32], value[64];
  size_t used = 0;
  *out = '\0';
  for (int k = 0; k < 2; k++)
    for (size_t at = 0; next_setting(text[k], length[k], &at, name, value);) {
      const int wrote = snprintf(out + used, size - used, "%s%s=%s", used ? " " : "", name,
                                 unicon_options_get(options, name));
      used = (size_t)wrote < size - used ? used + (size_t)wrote : size - 1;
    }
}

/* Whether the same was tried before; notes it if not. */
static bool tried_before(match *m, const char *text) {
  for (int k = 0; k < m->out->candidates; k++)
    if (strcmp(m->tried[k], text) == 0) return true;
  if (m->out->candidates < CANDIDATES_MAX)
    snprintf(m->tried[m->out->candidates], sizeof m->tried[0], "%s", text);
  return false;
}

/* The best so far replaces the one before. */
static void take(match *m, unicon_model *model, double score, double seconds, const char *label) {
  outcome *out = m->out;
  const char *own = unicon_model_meta(model, "auto_chosen");
  unicon_model_destroy(m->best);
  m->best = model;
  out->score = score;
  out->run = seconds;
  snprintf(out->chosen, sizeof out->chosen, "%s", own ? own : label);
  read_epochs(model, out);
}

static unicon_status fit_candidate(match *m, const unicon_options *options, const char *label) {
  unicon_model *model = NULL;
  unicon_metrics to_y, to_x;
  const double start = display_now();
  unicon_status status = unicon_fit(m->ctx, &m->data->train,
                                    m->who->judged ? &m->data->validation : NULL, options, &model);
  const double seconds = display_now() - start;
  if (status == UNICON_OK) status = judge(m, model, &m->data->validation, NULL, &to_y, &to_x);
  m->out->seconds += seconds;
  m->out->candidates++;
  const double score = status == UNICON_OK ? score_of(&to_y, &to_x) : 0;
  if (status == UNICON_OK && (!m->best || score > m->out->score))
    take(m, model, score, seconds, label);
  else
    unicon_model_destroy(model);
  return status;
}

static unicon_status try_candidate(match *m, const char *const text[2], const size_t length[2]) {
  unicon_options *options = NULL;
  char label[128];
  unicon_status status = candidate_options(m, text, length, &options);
  if (status == UNICON_OK) {
    describe(options, text, length, label, sizeof label);
    if (!tried_before(m, label)) status = fit_candidate(m, options, label);
  }
  unicon_options_destroy(options);
  return status;
}

/* Every candidate; one that the data do not allow (a rank, say) is passed over. */
static unicon_status try_all(match *m) {
  const char *text[2];
  size_t length[2];
  unicon_status status = UNICON_OK;
  for (int a = 0; alternative(m->who->axis[0], a, &text[0], &length[0]); a++)
    for (int b = 0; alternative(m->who->axis[1], b, &text[1], &length[1]); b++) {
      char phase[64];
      snprintf(phase, sizeof phase, "%s, fit %d", m->who->name, m->out->candidates + 1);
      display_part(&m->t->display, phase, 0, 1);
      status = try_candidate(m, text, length);
      display_part(&m->t->display, NULL, 0, 1);
      if (status != UNICON_OK && status != UNICON_ERR_DATA) return status;
    }
  return m->best ? UNICON_OK : status;
}

/* ---- one contestant ----------------------------------------------------------------------- */

/* A context like the tool's. */
static unicon_status open_context(tool *t, unicon_ctx **out) {
  unicon_status status = unicon_ctx_create(out);
  for (size_t i = 0; i < t->args->settings && status == UNICON_OK; i++) {
    const cli_setting *s = &t->args->setting[i];
    if (s->option->scope & UNICON_SCOPE_CONTEXT)
      status = unicon_ctx_set(*out, s->option->name, s->value);
  }
  if (status != UNICON_OK) return status;
  unicon_ctx_set_log(*out, display_log, &t->display);
  unicon_ctx_set_progress(*out, display_progress, &t->display);
  return UNICON_OK;
}

static unicon_status run(match *m) {
  const compared_sets *data = m->data;
  outcome *out = m->out;
  unicon_status status = UNICON_OK;
  if (!m->who->identity) {
    status = try_all(m);
  } else {
    status = judge(m, NULL, &data->validation, NULL, &out->to_y, &out->to_x);
    out->score = score_of(&out->to_y, &out->to_x);
  }
  out->memory = (double)unicon_ctx_memory_peak(m->ctx);
  if (status == UNICON_OK)
    status = judge(m, m->best, &data->test, m->t->options, &out->to_y, &out->to_x);
  return status;
}

int contestant_run(tool *t, const contestant *who, const compared_sets *data, outcome *out) {
  match m = {.t = t, .who = who, .data = data, .out = out};
  *out = (outcome){.who = who};
  const int64_t d_x = unicon_rows_width(data->train.x), d_y = unicon_rows_width(data->train.y);
  if (who->identity && d_x != d_y) {
    snprintf(out->skipped, sizeof out->skipped, "rows of %lld and %lld numbers have no cosine",
             (long long)d_x, (long long)d_y);
    return EXIT_DONE;
  }
  const unicon_status status = open_context(t, &m.ctx) == UNICON_OK ? run(&m) : UNICON_ERR_MEMORY;
  if (status != UNICON_OK)
    snprintf(out->skipped, sizeof out->skipped, "%s",
             m.ctx ? unicon_ctx_error(m.ctx) : "no memory");
  unicon_model_destroy(m.best);
  unicon_ctx_destroy(m.ctx);
  display_clear(&t->display);
  return status == UNICON_ERR_CANCELLED ? EXIT_INTERRUPTED : EXIT_DONE;
}

double outcome_time_to(const outcome *o, double target) {
  const double slack = 1e-9;
  for (int k = 0; k < o->epochs && o->who->baseline; k++)
    if (o->epoch_score[k] >= target - slack)
      return o->run * k / (o->epochs > 1 ? o->epochs - 1 : 1);
  return o->score >= target - slack ? o->seconds : INFINITY;
}
