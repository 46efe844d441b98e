/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/ctx.h"

static unicon__stage *top(unicon__progress *p) {
  return &p->stage[p->depth];
}

void unicon__progress_reset(unicon_ctx *ctx) {
  unicon__progress *p = &ctx->progress;
  *p = (unicon__progress){.begun = unicon__now(), .told = -1e9};
  p->stage[0].to = p->stage[0].item_to = 1;
  p->marked = p->begun;
}

/* ---- seconds by name ---------------------------------------------------------------------- */

/* The innermost stage that has a name. */
static const char *name_now(const unicon__progress *p) {
  int k = p->depth;
  while (k > 0 && !p->stage[k].name) k--;
  return k > 0 ? p->stage[k].name : "other";
}

/* Counts the time since the last mark for the stage in progress. */
static void mark(unicon__progress *p) {
  const double now = unicon__now();
  const char *name = name_now(p);
  int k = 0;
  while (k < p->names && strcmp(p->name[k], name) != 0) k++;
  if (k == p->names && k + 1 < UNICON__STAGE_NAMES) p->names++;
  if (k < p->names) {
    p->name[k] = name;
    p->seconds[k] += now - p->marked;
  }
  p->marked = now;
}

void unicon__stage_report(unicon_ctx *ctx) {
  unicon__progress *p = &ctx->progress;
  bool said[UNICON__STAGE_NAMES] = {false};
  double all = 0;
  mark(p);
  for (int k = 0; k < p->names; k++) all += p->seconds[k];
  for (int rank = 0; rank < p->names; rank++) {
    int longest = 0;
    for (int k = 0; k < p->names; k++)
      if (!said[k] && (said[longest] || p->seconds[k] > p->seconds[longest])) longest = k;
    said[longest] = true;
    unicon__log(ctx, UNICON_LOG_DEBUG, "stage %-20s %8.3f s %5.1f %%", p->name[longest],
                p->seconds[longest], all > 0 ? 100 * p->seconds[longest] / all : 0);
  }
}

/* ---- stages ------------------------------------------------------------------------------- */

int unicon__stage_begin(unicon_ctx *ctx, const char *name, double share) {
  unicon__progress *p = &ctx->progress;
  const unicon__stage *around = top(p);
  const int before = p->depth;
  if (before + 1 == UNICON__STAGES) return before; /* too deep to be told apart */
  const double width = share > 0 ? share * (around->item_to - around->item_from)
                                 : (around->item_to - around->at) / 2;
  const double end = around->at + width < around->item_to ? around->at + width : around->item_to;
  mark(p);
  p->stage[++p->depth] = (unicon__stage){.name = name,
                                         .from = around->at,
                                         .to = end,
                                         .item_from = around->at,
                                         .item_to = end,
                                         .at = around->at};
  return before;
}

void unicon__stage_end(unicon_ctx *ctx, int stage) {
  unicon__progress *p = &ctx->progress;
  if (p->depth <= stage) return;
  mark(p);
  const double end = p->stage[stage + 1].to;
  p->depth = stage;
  if (end > top(p)->at) top(p)->at = end;
}

void unicon__stage_label(unicon_ctx *ctx, const char *format, ...) {
  unicon__stage *stage = top(&ctx->progress);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(stage->label, sizeof stage->label, format, arguments);
  va_end(arguments);
}

/* ---- telling ------------------------------------------------------------------------------ */

static const char *label_now(const unicon__progress *p) {
  for (int k = 0; k <= p->depth; k++) {
    if (p->stage[k].label[0]) return p->stage[k].label;
    if (p->stage[k].name) return p->stage[k].name;
  }
  return "working";
}

static unicon_status cancelled(unicon_ctx *ctx) {
  return unicon__fail(ctx, UNICON_ERR_CANCELLED, "cancelled while: %s", ctx->progress.said);
}

unicon_status unicon__poll(unicon_ctx *ctx) {
  unicon__progress *p = &ctx->progress;
  if (p->cancelled) return cancelled(ctx);
  if (!ctx->tell) return UNICON_OK;
  const double now = unicon__now();
  const char *label = label_now(p);
  if (top(p)->at > p->share) p->share = top(p)->at < 1 ? top(p)->at : 1;
  if (now - p->told < ctx->progress_interval && strcmp(label, p->said) == 0) return UNICON_OK;
  /* Too little is known of the first moments to say anything about the rest. */
  const double spent = now - p->begun;
  const double left = spent > 0.5 && p->share > 0.01 ? spent * (1 - p->share) / p->share : -1;
  p->told = now;
  snprintf(p->said, sizeof p->said, "%s", label);
  p->cancelled = ctx->tell(ctx->tell_user, p->said, p->share, left) != 0;
  return p->cancelled ? cancelled(ctx) : UNICON_OK;
}

unicon_status unicon__stage_step(unicon_ctx *ctx, int64_t k, int64_t count) {
  unicon__stage *stage = top(&ctx->progress);
  const double span = stage->to - stage->from, all = count > 0 ? (double)count : 1;
  stage->item_from = stage->from + span * (double)k / all;
  stage->item_to = stage->from + span * (double)(k + 1) / all;
  if (stage->item_from > stage->to) stage->item_from = stage->to;
  if (stage->item_to > stage->to) stage->item_to = stage->to;
  stage->at = stage->item_from;
  return unicon__poll(ctx);
}
