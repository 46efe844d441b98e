/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the numerical parts share: numbers of a generator that is not the library's,
 * plain double algebra, small problems, and checks that say what they saw. */
#ifndef UNICON_TESTS_SUPPORT_H
#define UNICON_TESTS_SUPPORT_H

#include <math.h>

#include "scratch.h"

/* |a - b| <= tolerance, and neither is NaN. */
#define CHECK_CLOSE(a, b, tolerance) \
  support_close((double)(a), (double)(b), (double)(tolerance), #a, __FILE__, __LINE__)
void support_close(double a, double b, double tolerance, const char *what, const char *file,
                   int line);

/* The call succeeds, or the test fails with its sentence. */
#define CHECK_OK(ctx, call) support_ok((ctx), (call), __FILE__, __LINE__)
void support_ok(const unicon_ctx *ctx, unicon_status status, const char *file, int line);

/* splitmix64: uniform in (0, 1), and standard normals. */
double support_uniform(uint64_t *state);
double support_normal(uint64_t *state);

/* Zeroed, to be freed. */
float *support_floats(int64_t count);
double *support_doubles(int64_t count);
float *support_normals(uint64_t seed, int64_t count);
/* n normal vectors of r entries, scaled to length 1. */
float *support_unit_rows(uint64_t seed, int64_t n, int64_t r);

double support_dot(const float *a, const float *b, int64_t count);

/* c (m by n) = op(a) op(b), inner length k; plain loops. */
void support_product(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const double *a,
                     const double *b, double *c);
/* Largest |a - b|. */
double support_distance(const double *a, const double *b, int64_t count);
/* Standard normals, to be freed. */
double *support_random(uint64_t seed, int64_t count);
/* Orthonormal basis of the columns of an m by n matrix in place (Gram-Schmidt, twice): no LAPACK. */
void support_orthonormalize(double *a, int64_t m, int64_t n);
/* A random m by n matrix with orthonormal columns, to be freed. */
double *support_orthonormal(uint64_t seed, int64_t m, int64_t n);
/* Largest entry of |Q^T Q - I| for Q m by n. */
double support_orthogonality(const double *q, int64_t m, int64_t n);
/* U diag(s) V^T (m by n) with q random orthonormal columns each, U from `seed`, to be freed. */
double *support_known(uint64_t seed, int64_t m, int64_t n, int64_t q, const double *s);
/* A random symmetric matrix: its lower triangle, NaN above; `full` has both. Both to be freed. */
double *support_symmetric(int64_t n, double **full);

/* The whole file, to be freed. */
unsigned char *support_slurp(const char *path, size_t *size);

/* Options from name, value, ..., NULL; preset fast unless another is given, and then with exponent
 * 1 and no balance unless those are given: the plain formula. */
unicon_options *support_options(unicon_ctx *ctx, ...);

/* The caller's matrix as rows. */
unicon_rows *support_rows(unicon_ctx *ctx, const char *name, const float *data, int64_t n,
                          int64_t d);

/* Two views of `latent` common normals: x = z A + noise, y = z B + noise, n rows each. */
typedef struct problem {
  int64_t n, d_x, d_y;
  float *x, *y;
  unicon_rows *rows_x, *rows_y;
} problem;

void problem_make(unicon_ctx *ctx, uint64_t seed, int64_t n, int64_t d_x, int64_t d_y,
                  int64_t latent, double noise, problem *out);
void problem_free(problem *p);

/* A fit that must succeed; without options, preset fast. */
unicon_model *support_fit(unicon_ctx *ctx, const unicon_rows *x, const unicon_rows *y,
                          const unicon_pairs *pairs, const unicon_options *options);

/* Cosines of all rows of x with all rows of y under the model, in double, to be freed. */
double *support_cosines(unicon_ctx *ctx, const unicon_model *model, const unicon_rows *x,
                        const unicon_rows *y);

/* A float32 tensor of the model's file, to be freed; *count is the number of its elements. */
float *support_tensor(scratch *s, const unicon_model *model, const char *name, int64_t *count);

/* Sets a locale whose decimal point is a comma, made for this where the system has none; false
 * where it cannot be made. Set it back with setlocale(LC_ALL, "C"). */
bool support_comma_locale(void);

/* Keeps what the library says. */
typedef struct log_book {
  int count[3]; /* by level */
  char last[3][1024];
} log_book;

void support_log(void *user, unicon_log_level level, const char *text);

#endif
