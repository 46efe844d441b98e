/* SPDX-License-Identifier: Apache-2.0 */
/* A loss is one thing: given the scores s of the n_x by n_y plane, tile by tile, and the pairs, it
 * gives the value L and the weights S = -dL/ds (paper, Definition 3).
 *
 * The plane is never stored. The pass (pass.c) walks it in cells: a few tiles side by side, one
 * tile high. A loss first observes every tile to collect a few numbers per row and column, then
 * turns each tile of scores into a tile of S. What a cell says of its rows and columns goes to its
 * slot and is folded into the totals in order, so that nothing depends on the number of threads.
 *
 * Weights of positives, one per direction (docs/method.md section 1):
 *     omega^x_ik = (w_ik / |P_x(i)|) / Z_x,   Z_x = sum over P of w_ik / |P_x(i)|
 * and likewise omega^y with |P_y(k)|. L = share_x L_x + share_y L_y. A negative counts epsilon_ij,
 * 1 unless it is listed. */
#ifndef UNICON_LOSS_LOSS_H
#define UNICON_LOSS_LOSS_H

#include "base/options.h"
#include "base/together.h"
#include "device/device.h"
#include "io/pairs.h"

/* The implicit plane of scores s = Z_x Z_y^T. */
typedef struct unicon__plane {
  int64_t n_x, n_y, r;
  const float *zx, *zy; /* n by r; rows of length 1 where the loss wants cosines */
  const unicon_pairs *pairs;
  double weight_x, weight_y;   /* Z_x, Z_y */
  const unicon__matrix *on[2]; /* zx and zy on the device in force, or NULL */
} unicon__plane;

/* Scores of rows x0.. and columns y0.. of the plane, ld floats between rows, in the cell whose
 * columns begin at `cell`, by a worker. */
typedef struct unicon__tile {
  int64_t x0, nx, y0, ny, ld, cell;
  float *s;
  int worker;
} unicon__tile;

/* psi and phi of the general loss, in the order of the words of their options. */
enum {
  UNICON__PSI_EXP,
  UNICON__PSI_HINGE,
  UNICON__PSI_SOFTPLUS,
  UNICON__PSI_SOFTMIN,
  UNICON__PSI_IDENTITY,
  UNICON__PSI_CUSTOM /* no word: of the loss custom */
};
enum { UNICON__PHI_LOG, UNICON__PHI_LOG1P, UNICON__PHI_IDENTITY, UNICON__PHI_CUSTOM };
enum { UNICON__DIRECTION_BOTH, UNICON__DIRECTION_X, UNICON__DIRECTION_Y };

typedef struct unicon__loss_params {
  int kind; /* position in the table, the word of option `loss` */
  double temperature;
  double margin;         /* of hinges */
  double scale, bias;    /* siglip */
  int psi, phi;          /* general */
  double nu;             /* general */
  double own;            /* general: epsilon+, the weight of the positive's own term */
  int direction;         /* word of the option: both, x or y */
  unicon__custom custom; /* psi and phi of the caller */
} unicon__loss_params;

typedef struct unicon__loss unicon__loss;

typedef struct unicon__loss_ops {
  const char *name;
  bool cosine;    /* false: the plane holds plain dot products */
  bool pointwise; /* S needs no statistics, and weigh adds up the value itself */
  unicon_status (*begin)(unicon_ctx *ctx, unicon__loss *loss);
  /* How many times every tile must be observed before weigh. */
  int (*sweeps)(const unicon__loss *loss);
  void (*observe)(unicon__loss *loss, int sweep, const unicon__tile *tile, int slot);
  /* Fold what a slot says of rows x0.., or columns y0.., into the totals and clear it. */
  void (*fold_rows)(unicon__loss *loss, int sweep, int64_t x0, int64_t nx, int slot);
  void (*fold_cols)(unicon__loss *loss, int sweep, int64_t y0, int64_t ny, int slot);
  /* What each of several processes has observed in its rows of cells becomes what all have; NULL:
   * every process observes the whole plane. */
  unicon_status (*merge)(unicon_ctx *ctx, unicon__loss *loss, const unicon__share *share);
  unicon_status (*settle)(unicon_ctx *ctx, unicon__loss *loss, int sweep);
  /* Scores become weights, in place. */
  void (*weigh)(unicon__loss *loss, const unicon__tile *tile, int slot);
  /* The same on a device (loss/pass_device.h), where the loss has such a form; else NULL. What is
   * asked of it in the place of observe, with the arrays that its sums are to be written to ... */
  unicon_status (*ask_sums)(unicon_ctx *ctx, unicon__loss *loss, unicon__device_exp *out);
  /* ... and of weigh; L of a pointwise loss is *factor times the device's value, plus *rest. */
  unicon_status (*ask_weights)(unicon_ctx *ctx, unicon__loss *loss, unicon__device_weights *out,
                               double *factor, double *rest);
  /* Has the loss such a form with these pairs? */
  bool (*may_ask)(const unicon_ctx *ctx, const unicon__loss *loss);
} unicon__loss_ops;

struct unicon__loss {
  const unicon__loss_ops *ops;
  unicon__plane plane;
  unicon__loss_params params;
  int64_t width;      /* columns of a cell */
  int64_t slots;      /* of cells that are not folded yet */
  double share[2];    /* of L_x and L_y in L */
  double value;       /* L, once settled */
  double *cell_value; /* parts of L by cell, summed in order */
  void *state;        /* of the kind of loss */
  bool at_home;       /* tiles are wanted on the host: no device */
};

/* The losses, in the order of the words of option `loss`. */
enum {
  UNICON__LOSS_CLIP,
  UNICON__LOSS_INFONCE,
  UNICON__LOSS_GENERAL,
  UNICON__LOSS_TRIPLET,
  UNICON__LOSS_SUPCON,
  UNICON__LOSS_SIGLIP,
  UNICON__LOSS_SPECTRAL,
  UNICON__LOSS_MOMENT,
  UNICON__LOSS_CUSTOM
};

/* Options to parameters. */
void unicon__loss_params_from(const unicon_options *options, unicon__loss_params *out);

/* The parameters with the named losses as settings of the general one, and the shares of L_x and
 * L_y. */
unicon__loss_params unicon__loss_settings(const unicon__loss_params *params, double share[2]);

/* Makes the plane of two embeddings. */
void unicon__plane_init(unicon__plane *plane, const unicon_pairs *pairs, int64_t r, const float *zx,
                        const float *zy);

/* Allocates what the loss needs over a plane, in the frame. A loss is observed once. */
unicon_status unicon__loss_begin(unicon_ctx *ctx, const unicon__loss_params *params,
                                 const unicon__plane *plane, unicon__loss *out);

/* Number of cells in a row of the plane. */
static inline int64_t unicon__loss_cells(const unicon__loss *loss) {
  return (loss->plane.n_y + loss->width - 1) / loss->width;
}

/* ---- for the losses themselves ------------------------------------------------------------ */

/* Where the cell of a tile leaves its part of L. */
static inline double *unicon__cell_value(unicon__loss *loss, const unicon__tile *tile,
                                         int64_t tile_x) {
  return loss->cell_value + tile->x0 / tile_x * unicon__loss_cells(loss) + tile->cell / loss->width;
}

static inline double unicon__pair_weight(unicon__partners partners, int64_t k) {
  return partners.weight ? (double)partners.weight[k] : 1.0;
}

static inline double unicon__omega_x(const unicon__plane *plane, int64_t count, double weight) {
  return weight > 0 ? weight / ((double)count * plane->weight_x) : 0;
}

static inline double unicon__omega_y(const unicon__plane *plane, int64_t count, double weight) {
  return weight > 0 ? weight / ((double)count * plane->weight_y) : 0;
}

/* Sets the scores of row i, columns y0.., that are no negatives to -INFINITY: ignored pairs, the
 * row itself, everything not listed where negatives are listed, and positives unless
 * `keep_positives`. Where a negative counts epsilon, temperature log(epsilon) is added, so that
 * e^{s/tau} has the factor; with temperature 0 it stays. `held` is scratch of ny floats. */
void unicon__mask_row(const unicon_pairs *pairs, int64_t i, int64_t y0, int64_t ny,
                      double temperature, bool keep_positives, float *s, float *held);

/* What the pairs of row i, columns y0.., count as negatives. */
void unicon__epsilon_row(const unicon_pairs *pairs, int64_t i, int64_t y0, int64_t ny,
                         float *epsilon);

/* Running log-sum-exp: folds count e^v into (top, sum) with total = sum e^top. */
void unicon__lse_add(double *top, double *sum, double v, double count);
double unicon__lse_value(double top, double sum);
/* log(e^u + e^v) */
double unicon__log_add(double u, double v);

extern const unicon__loss_ops unicon__loss_exp; /* clip, infonce, supcon, general exp */
extern const unicon__loss_ops
    unicon__loss_pairwise; /* triplet, custom, general hinge, softplus, softmin, identity */
extern const unicon__loss_ops unicon__loss_siglip;
extern const unicon__loss_ops unicon__loss_spectral;

#endif
