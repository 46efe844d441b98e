/* SPDX-License-Identifier: Apache-2.0 */
#include "fit/describe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/use.h"

/* Losses and held-out scores of the steps and epochs. */
static unicon_status describe_steps(unicon_ctx *ctx, const unicon__fitted *f, unicon_model *model) {
  const unicon__solve_log *solve = &f->log->solve;
  const unicon__refine_log *refine = &f->log->refine;
  if (solve->steps > 0) {
    UNICON_TRY(unicon__model_note_numbers(ctx, model, "loss_log", solve->loss, solve->steps));
    UNICON_TRY(unicon__model_note_numbers(ctx, model, "step_log", solve->eta, solve->steps));
    if (f->judged)
      UNICON_TRY(unicon__model_note_numbers(ctx, model, "score_log", solve->score, solve->steps));
    UNICON_TRY(unicon__model_note_integer(ctx, model, "best_step", solve->best));
    UNICON_TRY(unicon__model_note_integer(ctx, model, "steps_taken", solve->taken - 1));
  }
  if (refine->epochs == 0) return UNICON_OK;
  const int epochs = refine->epochs < UNICON__EPOCH_LOG ? refine->epochs : UNICON__EPOCH_LOG - 1;
  UNICON_TRY(unicon__model_note_numbers(ctx, model, "refine_loss_log", refine->loss + 1, epochs));
  if (f->judged)
    UNICON_TRY(
        unicon__model_note_numbers(ctx, model, "refine_score_log", refine->score, epochs + 1));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "refine_best_epoch", refine->best));
  return unicon__model_note_real(ctx, model, "refine_temperature", 6, refine->temperature);
}

/* The value of an option; of a file only that it is one. */
static const char *value_of(const unicon_options *options, int id) {
  const bool file = strcmp(unicon__option_row(id)->kind, "text") == 0;
  return file && unicon__word(options, id) < 0 ? "file" : unicon__text(options, id);
}

/* Rows and pairs that were fitted on. */
static unicon_status describe_counts(unicon_ctx *ctx, const unicon__fitted *f,
                                     unicon_model *model) {
  const unicon__batch *whole = &f->train->whole;
  const unicon_stats *stats = f->stats;
  const double count[3] = {stats ? stats->sums.rows[0] : (double)whole->x.count,
                           stats ? stats->sums.rows[1] : (double)whole->y.count,
                           stats ? stats->pairs : (double)whole->pairs->positive.count};
  UNICON_TRY(unicon__model_note_real(ctx, model, "n_x", 17, count[0]));
  UNICON_TRY(unicon__model_note_real(ctx, model, "n_y", 17, count[1]));
  UNICON_TRY(unicon__model_note_real(ctx, model, "pairs", 17, count[2]));
  return stats ? unicon__model_note_text(ctx, model, "from", "statistics") : UNICON_OK;
}

unicon_status unicon__describe_fit(unicon_ctx *ctx, const unicon__fitted *f, unicon_model *model) {
  const unicon__batch *whole = &f->train->whole;
  char hash[24];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)f->train->hash);
  UNICON_TRY(unicon__model_note_text(ctx, model, "format", "unicon"));
  UNICON_TRY(unicon__model_note_text(ctx, model, "format_version", "1"));
  UNICON_TRY(unicon__model_note_text(ctx, model, "library_version", unicon_version()));
  UNICON_TRY(unicon__model_note_text(ctx, model, "input_hash", hash));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_x", whole->x.rows->width));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "d_y", whole->y.rows->width));
  UNICON_TRY(describe_counts(ctx, f, model));
  UNICON_TRY(unicon__model_note_integer(ctx, model, "rank", model->rank));
  UNICON_TRY(unicon__model_note_text(ctx, model, "device", unicon__device_name(ctx)));
  UNICON_TRY(unicon__model_note_text(ctx, model, "precision", unicon__device_precision(ctx)));
  UNICON_TRY(unicon__model_note_text(ctx, model, "svd_method", f->log->solve.method));
  /* below, it is the order of sums that shows */
  UNICON_TRY(
      unicon__model_note_real(ctx, model, "svd_residual", 3, fmax(f->log->solve.residual, 1e-14)));
  UNICON_TRY(unicon__model_note_real(ctx, model, "spectral_gap", 6, f->log->solve.gap));
  UNICON_TRY(describe_steps(ctx, f, model));
  if (f->params->power[0] > 0 || f->params->power[1] > 0) /* option.ridge may be auto */
    UNICON_TRY(unicon__model_note_numbers(ctx, model, "ridge", f->params->ridge, 2));
  UNICON_TRY(unicon__model_note_maps(ctx, model));
  for (int id = 0; id < UNICON__OPTION_COUNT; id++) {
    const unicon_option_info *row = unicon__option_row(id);
    char key[64];
    if (!(row->scope & UNICON_SCOPE_FIT)) continue;
    snprintf(key, sizeof key, "option.%s", row->name);
    UNICON_TRY(unicon__model_note_text(ctx, model, key, value_of(f->options, id)));
  }
  unicon__model_seal(model);
  return UNICON_OK;
}
