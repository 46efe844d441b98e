/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic latent-factor models. With z around the centre of its cluster, z = centre + spread
 * N(0, I), and U the first `latent` columns of Haar orthogonal matrices (QR of normals):
 *
 *     linear             x = U_1 z + noise,  y = U_2 z + noise       (the paper's text, appendix
 * C.2) nonlinear          tanh of both linear-released    linear, with centres uniform in
 * [-centers, centers] and drawn anew for every part, rows in the order of their clusters   (the
 * authors' code) nonlinear-released x = tanh(U_3 tanh(U_1 z)) + noise, y with U_4, U_2; U_3, U_4
 * square (the authors' code)
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/options.h"
#include "linalg/reflect.h"
#include "unicon/tools.h"

/* What a kind takes where an option says auto. */
typedef struct kind {
  const char *name;
  bool blocks, bent, layers;
  double dim_y, clusters, spread, centers, noise;
} kind;

static const kind kinds[] = {
    {"linear", false, false, false, 30, 3, 1, 3, 0.3},
    {"nonlinear", false, true, false, 30, 3, 1, 3, 0.3},
    {"linear-released", true, false, false, 30, 3, 0.6, 2, 0.1},
    {"nonlinear-released", false, false, true, 39, 1, 1, 0, 0.3},
};

static const kind *kind_of(const char *name) {
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (strcmp(kinds[k].name, name) == 0) return &kinds[k];
  return NULL;
}

typedef struct model {
  const kind *kind;
  int64_t d[2], latent, clusters, rows, part;
  double spread, centers, noise;
  uint64_t seed;
  double *basis[2]; /* d by latent */
  double *layer[2]; /* d by d, or NULL */
  float *row;       /* scratch: as long as the longest row */
  double *z, *bent; /* latent, and the longest row */
} model;

enum { PART_BITS = 40 }; /* sample i of part p is number p 2^40 + i */

static double value_of(const unicon_options *options, int id, double usual) {
  return unicon__is(options, id, "auto") ? usual : unicon__number(options, id);
}

static int64_t width_of(const kind *k, const unicon_options *options, int side) {
  return side == 0 ? unicon__integer(options, UNICON__DIM_X)
                   : (int64_t)value_of(options, UNICON__DIM_Y, k->dim_y);
}

int64_t unicon_synth_width(const char *name, const unicon_options *options, unicon_side side) {
  const kind *k = name ? kind_of(name) : NULL;
  return k ? width_of(k, options, side == UNICON_Y) : 0;
}

/* d by cols orthonormal columns, Haar: QR with the signs of R's diagonal moved into Q. */
static unicon_status haar(unicon_ctx *ctx, const model *m, uint32_t stream, int64_t d, int64_t cols,
                          double **out) {
  double *r;
  UNICON_NEW(ctx, *out, d * cols);
  UNICON_NEW(ctx, r, cols * cols);
  for (int64_t i = 0; i < d; i++) {
    unicon__normals(m->seed, stream, (uint64_t)i, cols, m->row);
    for (int64_t k = 0; k < cols; k++) (*out)[i * cols + k] = (double)m->row[k];
  }
  UNICON_TRY(unicon__tiled_dqr(ctx, d, cols, *out, r));
  for (int64_t k = 0; k < cols; k++)
    for (int64_t i = 0; i < d && r[k * cols + k] < 0; i++) (*out)[i * cols + k] *= -1;
  unicon__drop(ctx, r);
  return UNICON_OK;
}

static void observe(const model *m, int side, uint64_t sample, float *out) {
  const uint32_t stream = side ? UNICON__STREAM_SYNTH_NOISE_Y : UNICON__STREAM_SYNTH_NOISE_X;
  const int64_t d = m->d[side];
  unicon__normals(m->seed, stream, sample, d, m->row);
  for (int64_t i = 0; i < d; i++) {
    const double noise = m->noise * (double)m->row[i];
    double sum = m->layer[side] ? 0 : noise;
    for (int64_t k = 0; k < m->latent; k++) sum += m->basis[side][i * m->latent + k] * m->z[k];
    m->bent[i] = m->kind->bent || m->layer[side] ? tanh(sum) : sum;
    if (!m->layer[side]) out[i] = (float)m->bent[i];
  }
  for (int64_t i = 0; i < d && m->layer[side]; i++) {
    double sum = 0;
    for (int64_t k = 0; k < d; k++) sum += m->layer[side][i * d + k] * m->bent[k];
    out[i] = (float)(tanh(sum) + m->noise * (double)m->row[i]);
  }
}

static void draw_center(const model *m, int64_t label) {
  const uint64_t number = ((uint64_t)(m->kind->blocks ? m->part : 0) << 32) + (uint64_t)label;
  if (!m->kind->blocks)
    unicon__normals(m->seed, UNICON__STREAM_SYNTH_CENTER, number, m->latent, m->row);
  for (int64_t k = 0; k < m->latent; k++)
    m->z[k] =
        m->centers *
        (m->kind->blocks
             ? 2 * unicon__uniform(m->seed, UNICON__STREAM_SYNTH_CENTER, number, (uint32_t)k) - 1
             : (double)m->row[k]);
}

static void draw_sample(const model *m, int64_t i, float *x, float *y, int64_t *label) {
  const uint64_t sample = ((uint64_t)m->part << PART_BITS) + (uint64_t)i;
  *label = m->kind->blocks ? i / ((m->rows + m->clusters - 1) / m->clusters)
                           : unicon__below(m->seed, UNICON__STREAM_SYNTH_LATENT, sample, UINT32_MAX,
                                           m->clusters);
  draw_center(m, *label);
  unicon__normals(m->seed, UNICON__STREAM_SYNTH_LATENT, sample, m->latent, m->row);
  for (int64_t k = 0; k < m->latent; k++) m->z[k] += m->spread * (double)m->row[k];
  observe(m, 0, sample, x);
  observe(m, 1, sample, y);
}

static unicon_status make_bases(unicon_ctx *ctx, model *m) {
  static const uint32_t basis[] = {UNICON__STREAM_SYNTH_BASIS_X, UNICON__STREAM_SYNTH_BASIS_Y};
  static const uint32_t layer[] = {UNICON__STREAM_SYNTH_LAYER_X, UNICON__STREAM_SYNTH_LAYER_Y};
  const int64_t longest = m->d[0] > m->d[1] ? m->d[0] : m->d[1];
  UNICON_NEW(ctx, m->row, longest);
  UNICON_NEW(ctx, m->bent, longest);
  UNICON_NEW(ctx, m->z, m->latent);
  for (int s = 0; s < 2; s++) {
    UNICON_TRY(haar(ctx, m, basis[s], m->d[s], m->latent, &m->basis[s]));
    if (m->kind->layers) UNICON_TRY(haar(ctx, m, layer[s], m->d[s], m->d[s], &m->layer[s]));
  }
  return UNICON_OK;
}

static unicon_status open_model(unicon_ctx *ctx, const char *name, const unicon_options *options,
                                int64_t part, int64_t rows, int64_t last, model *m) {
  const kind *k = kind_of(name);
  if (!k)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "there is no synthetic model \"%.60s\"; accepted: linear, nonlinear, "
                        "linear-released, nonlinear-released",
                        name);
  *m = (model){.kind = k,
               .d = {width_of(k, options, 0), width_of(k, options, 1)},
               .latent = unicon__integer(options, UNICON__LATENT),
               .clusters = (int64_t)value_of(options, UNICON__CLUSTERS, k->clusters),
               .rows = rows,
               .part = part,
               .spread = value_of(options, UNICON__SPREAD, k->spread),
               .centers = value_of(options, UNICON__CENTERS, k->centers),
               .noise = value_of(options, UNICON__NOISE, k->noise),
               .seed = (uint64_t)unicon__integer(options, UNICON__SEED)};
  if (m->latent > m->d[0] || m->latent > m->d[1])
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "latent is %lld, more than dim_x %lld or dim_y %lld", (long long)m->latent,
                        (long long)m->d[0], (long long)m->d[1]);
  if (m->part < 0 || m->part >= 1 << 16)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT, "part number %lld; accepted: 0 to 65535",
                        (long long)m->part);
  if (k->blocks && last > m->rows)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "%s has its rows in the order of their clusters: say how many rows the "
                        "part has, at least %lld",
                        name, (long long)last);
  return UNICON_OK;
}

unicon_status unicon_synth(unicon_ctx *ctx, const char *name, const unicon_options *options,
                           int64_t part, int64_t rows, int64_t first, int64_t count, float *x,
                           float *y, int64_t *label) {
  model m;
  UNICON_TRY(unicon__enter(ctx));
  if (!name || first < 0 || count < 0 || !x || !y || !label)
    return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                                           "synth needs a kind, a count and three arrays"));
  unicon_status status = open_model(ctx, name, options, part, rows, first + count, &m);
  if (status == UNICON_OK) status = make_bases(ctx, &m);
  for (int64_t i = 0; i < count && status == UNICON_OK; i++)
    draw_sample(&m, first + i, x + i * m.d[0], y + i * m.d[1], label + i);
  return unicon__leave(ctx, status);
}
