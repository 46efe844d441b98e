/* SPDX-License-Identifier: Apache-2.0 */
#include "fit/idle.h"

#include "select/params.h"

/* ---- what must be so for an option to matter ---------------------------------------------- */

static bool kernel_within(const unicon_options *o, int first, int last) {
  static const int id[] = {UNICON__KERNEL, UNICON__KERNEL_X, UNICON__KERNEL_Y};
  for (int k = 0; k < 3; k++) {
    const int word = unicon__word(o, id[k]);
    if (word >= first && word <= last) return true;
  }
  return false;
}

static bool loss_is(const unicon_options *o, int loss) {
  return unicon__word(o, UNICON__LOSS) == loss;
}

static bool map_is(const unicon_options *o, int map) {
  return unicon__word(o, UNICON__MAP) == 1 + map;
}

static bool general(const unicon_options *o) {
  return loss_is(o, UNICON__LOSS_GENERAL);
}

static bool nu_matters(const unicon_options *o) {
  return general(o) || loss_is(o, UNICON__LOSS_CUSTOM);
}

static bool has_directions(const unicon_options *o) {
  static const int without[] = {UNICON__LOSS_INFONCE, UNICON__LOSS_SIGLIP, UNICON__LOSS_SPECTRAL,
                                UNICON__LOSS_MOMENT};
  for (size_t k = 0; k < sizeof without / sizeof *without; k++)
    if (loss_is(o, without[k])) return false;
  return true;
}

static bool siglip(const unicon_options *o) {
  return loss_is(o, UNICON__LOSS_SIGLIP);
}

static bool has_margin(const unicon_options *o) {
  const int psi = unicon__word(o, UNICON__PSI);
  return loss_is(o, UNICON__LOSS_TRIPLET) ||
         (general(o) && (psi == UNICON__PSI_HINGE || psi == UNICON__PSI_SOFTMIN));
}

static bool wide(const unicon_options *o) {
  return kernel_within(o, UNICON__KERNEL_EXPCOS, UNICON__KERNEL_POLY);
}

static bool random_map(const unicon_options *o) {
  return map_is(o, UNICON__MAP_RANDOM);
}

static bool landmarks(const unicon_options *o) {
  const bool chosen = unicon__is(o, UNICON__MAP, "auto");
  return map_is(o, UNICON__MAP_NYSTROM) ||
         (chosen && kernel_within(o, UNICON__KERNEL_COSINE, UNICON__KERNEL_POLY));
}

static bool refined(const unicon_options *o) {
  return unicon__integer(o, UNICON__REFINE) > 0;
}

static bool has_steps(const unicon_options *o) {
  return unicon__word(o, UNICON__START) >= 0;
}

static bool iterated(const unicon_options *o) {
  return unicon__integer(o, UNICON__ITERATIONS) > 0;
}

static bool batched(const unicon_options *o) {
  return !unicon__is(o, UNICON__BATCH, "full");
}

static bool metric(const unicon_options *o) {
  unicon__params params;
  unicon__params_from(o, (const int64_t[2]){0, 0}, &params);
  return params.power[0] > 0 || params.power[1] > 0;
}

static const struct {
  int id;
  bool (*matters)(const unicon_options *);
  const char *where;
} rules[] = {
    {UNICON__PSI, general, "without loss general"},
    {UNICON__PHI, general, "without loss general"},
    {UNICON__NU, nu_matters, "without loss general"},
    {UNICON__EPSILON, nu_matters, "without loss general"},
    {UNICON__DIRECTION, has_directions, "with a loss that has no directions, or one alone"},
    {UNICON__MARGIN, has_margin, "without loss triplet or psi hinge or softmin"},
    {UNICON__SCALE, siglip, "without loss siglip"},
    {UNICON__BIAS, siglip, "without loss siglip"},
    {UNICON__WIDTH, wide, "with a kernel that has no width"},
    {UNICON__LANDMARKS, landmarks, "without map nystrom"},
    {UNICON__FEATURES, random_map, "without map random"},
    {UNICON__REFINE_BATCH, refined, "without refine"},
    {UNICON__REFINE_RATE, refined, "without refine"},
    {UNICON__ITERATIONS, has_steps, "where start is a file"},
    {UNICON__SVD, has_steps, "where start is a file"},
    {UNICON__TOLERANCE, iterated, "without iterations"},
    {UNICON__BATCH_ORDER, batched, "without batches"},
    {UNICON__BATCH_AVERAGE, batched, "without batches"},
    {UNICON__RIDGE, metric, "without a metric"},
};

/* ---- the warnings ------------------------------------------------------------------------- */

static void warn(unicon_ctx *ctx, int id, const char *why) {
  unicon__log(ctx, UNICON_LOG_WARNING, "%s has no effect %s", unicon__option_row(id)->name, why);
}

static void warn_validation(unicon_ctx *ctx, const unicon_options *o, unicon__fit_kind kind,
                            bool idle) {
  const bool weighs = unicon__word(o, UNICON__AGGREGATE) != UNICON__AGGREGATE_UNIFORM;
  if (unicon__given(o, UNICON__VAL_FRACTION) && (kind.judged || !kind.chooses))
    warn(ctx, UNICON__VAL_FRACTION,
         kind.judged ? "beside validation pairs" : "where nothing is chosen on held-out pairs");
  if (weighs && (!kind.judged || !batched(o)))
    warn(ctx, UNICON__AGGREGATE, "without batches and validation pairs");
  if (kind.judged && !kind.sweeps && (idle || kind.fused) && !weighs && !kind.scores)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "validation pairs have no effect: there are no iterations or refine epochs to "
                "choose from%s",
                kind.fused ? " in one model for each batch" : "");
}

void unicon__warn_idle(unicon_ctx *ctx, const unicon_options *options, unicon__fit_kind kind) {
  static const int loss_options[] = {UNICON__LOSS, UNICON__TEMPERATURE, UNICON__DAMPING};
  const bool steps = iterated(options) || unicon__is(options, UNICON__START, "random") ||
                     unicon__is(options, UNICON__START, "zero");
  const bool idle = !steps && !refined(options);
  if (!kind.sweeps && (unicon__has_preset(options, "auto") || unicon__has_preset(options, "best")))
    unicon__log(
        ctx, UNICON_LOG_WARNING,
        "preset %s chooses nothing beside iterations, batch, start, identity, shared_encoder or "
        "a file of landmarks: what is not given is as in preset fast",
        unicon__text(options, UNICON__PRESET));
  for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
    if (unicon__given(options, rules[k].id) && !rules[k].matters(options))
      warn(ctx, rules[k].id, rules[k].where);
  for (size_t k = 0; k < sizeof loss_options / sizeof *loss_options; k++)
    if (idle && unicon__given(options, loss_options[k]))
      warn(ctx, loss_options[k], "with 0 iterations and no refine");
  if (steps && unicon__word(options, UNICON__LOSS) == UNICON__LOSS_MOMENT)
    unicon__log(ctx, UNICON_LOG_WARNING,
                "the moment weights do not depend on the model: iterations have no effect");
  if (unicon__given(options, UNICON__BUDGET) && !kind.sweeps)
    warn(ctx, UNICON__BUDGET,
         "where nothing is tried one after the other, as presets auto and best do");
  warn_validation(ctx, options, kind, idle);
}
