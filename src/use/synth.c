/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's synthetic latent-factor models (appendix C.2):
 *     z = centre of its cluster + spread N(0, I),  centres ~ centers N(0, I)
 *     linear x = U_1 z + noise N(0, I), y = U_2 z + noise N(0, I);  nonlinear: tanh of both
 * U_1, U_2: the first `latent` columns of Haar orthogonal matrices (QR of normals). */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/options.h"
#include "linalg/reflect.h"
#include "unicon/tools.h"

typedef struct model {
  int64_t d[2], latent, clusters;
  double spread, centers, noise;
  bool nonlinear;
  uint64_t seed;
  double *basis[2]; /* d by latent */
  float *row;       /* scratch: as long as the longest row */
  double *z;
} model;

/* d by latent orthonormal columns, Haar: QR with the signs of R's diagonal moved into Q. */
static unicon_status haar(unicon_ctx *ctx, const model *m, uint32_t stream, int64_t d,
                          double **out) {
  double *r;
  UNICON_NEW(ctx, *out, d * m->latent);
  UNICON_NEW(ctx, r, m->latent * m->latent);
  for (int64_t i = 0; i < d; i++) {
    unicon__normals(m->seed, stream, (uint64_t)i, m->latent, m->row);
    for (int64_t k = 0; k < m->latent; k++) (*out)[i * m->latent + k] = (double)m->row[k];
  }
  UNICON_TRY(unicon__tiled_dqr(ctx, d, m->latent, *out, r));
  for (int64_t k = 0; k < m->latent; k++)
    for (int64_t i = 0; i < d && r[k * m->latent + k] < 0; i++) (*out)[i * m->latent + k] *= -1;
  return UNICON_OK;
}

static void observe(const model *m, int side, int64_t sample, float *out) {
  const uint32_t stream = side ? UNICON__STREAM_SYNTH_NOISE_Y : UNICON__STREAM_SYNTH_NOISE_X;
  unicon__normals(m->seed, stream, (uint64_t)sample, m->d[side], m->row);
  for (int64_t i = 0; i < m->d[side]; i++) {
    double sum = m->noise * (double)m->row[i];
    for (int64_t k = 0; k < m->latent; k++) sum += m->basis[side][i * m->latent + k] * m->z[k];
    out[i] = (float)(m->nonlinear ? tanh(sum) : sum);
  }
}

static void draw_sample(const model *m, int64_t sample, float *x, float *y, int64_t *label) {
  *label = unicon__below(m->seed, UNICON__STREAM_SYNTH_LATENT, (uint64_t)sample, UINT32_MAX,
                         m->clusters);
  unicon__normals(m->seed, UNICON__STREAM_SYNTH_CENTER, (uint64_t)*label, m->latent, m->row);
  for (int64_t k = 0; k < m->latent; k++) m->z[k] = m->centers * (double)m->row[k];
  unicon__normals(m->seed, UNICON__STREAM_SYNTH_LATENT, (uint64_t)sample, m->latent, m->row);
  for (int64_t k = 0; k < m->latent; k++) m->z[k] += m->spread * (double)m->row[k];
  observe(m, 0, sample, x);
  observe(m, 1, sample, y);
}

static unicon_status synth(unicon_ctx *ctx, const char *kind, const unicon_options *options,
                           int64_t first, int64_t count, float *x, float *y, int64_t *label) {
  if (strcmp(kind, "linear") != 0 && strcmp(kind, "nonlinear") != 0)
    return unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                        "there is no synthetic model \"%.60s\"; accepted: linear, nonlinear", kind);
  model m = {
      .d = {unicon__integer(options, UNICON__DIM_X), unicon__integer(options, UNICON__DIM_Y)},
      .latent = unicon__integer(options, UNICON__LATENT),
      .clusters = unicon__integer(options, UNICON__CLUSTERS),
      .spread = unicon__number(options, UNICON__SPREAD),
      .centers = unicon__number(options, UNICON__CENTERS),
      .noise = unicon__number(options, UNICON__NOISE),
      .nonlinear = kind[0] == 'n',
      .seed = (uint64_t)unicon__integer(options, UNICON__SEED)};
  if (m.latent > m.d[0] || m.latent > m.d[1])
    return unicon__fail(ctx, UNICON_ERR_OPTION,
                        "latent is %lld, more than dim_x %lld or dim_y %lld", (long long)m.latent,
                        (long long)m.d[0], (long long)m.d[1]);
  UNICON_NEW(ctx, m.row, m.d[0] > m.d[1] ? m.d[0] : m.d[1]);
  UNICON_NEW(ctx, m.z, m.latent);
  UNICON_TRY(haar(ctx, &m, UNICON__STREAM_SYNTH_BASIS_X, m.d[0], &m.basis[0]));
  UNICON_TRY(haar(ctx, &m, UNICON__STREAM_SYNTH_BASIS_Y, m.d[1], &m.basis[1]));
  for (int64_t i = 0; i < count; i++)
    draw_sample(&m, first + i, x + i * m.d[0], y + i * m.d[1], label + i);
  return UNICON_OK;
}

unicon_status unicon_synth(unicon_ctx *ctx, const char *kind, const unicon_options *options,
                           int64_t first, int64_t count, float *x, float *y, int64_t *label) {
  UNICON_TRY(unicon__enter(ctx));
  if (!kind || first < 0 || count < 0 || !x || !y || !label)
    return unicon__leave(ctx, unicon__fail(ctx, UNICON_ERR_ARGUMENT,
                                           "synth needs a kind, a count and three arrays"));
  return unicon__leave(ctx, synth(ctx, kind, options, first, count, x, y, label));
}
