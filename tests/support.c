/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <locale.h>

#include "io/safetensors.h"

void support_close(double a, double b, double tolerance, const char *what, const char *file,
                   int line) {
  if (fabs(a - b) <= tolerance || a == b) return;
  print_error("%s:%d: %s is %.17g, wanted %.17g within %.3g (off by %.3g)\n", file, line, what, a,
              b, tolerance, a - b);
  _fail(file, line);
}

void support_ok(const unicon_ctx *ctx, unicon_status status, const char *file, int line) {
  if (status == UNICON_OK) return;
  print_error("%s:%d: %s: %s\n", file, line, unicon_status_name(status), unicon_ctx_error(ctx));
  _fail(file, line);
}

static uint64_t next_word(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double support_uniform(uint64_t *state) {
  return ((double)(next_word(state) >> 12) + 0.5) * 0x1p-52;
}

double support_normal(uint64_t *state) {
  const double radius = sqrt(-2 * log(support_uniform(state)));
  return radius * cos(6.283185307179586 * support_uniform(state));
}

float *support_floats(int64_t count) {
  float *data = calloc((size_t)count + 1, sizeof *data);
  assert_non_null(data);
  return data;
}

double *support_doubles(int64_t count) {
  double *data = calloc((size_t)count + 1, sizeof *data);
  assert_non_null(data);
  return data;
}

float *support_normals(uint64_t seed, int64_t count) {
  float *data = support_floats(count);
  uint64_t state = seed * 1000003u + 17;
  for (int64_t k = 0; k < count; k++) data[k] = (float)support_normal(&state);
  return data;
}

double support_dot(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; k++) sum += (double)a[k] * (double)b[k];
  return sum;
}

float *support_unit_rows(uint64_t seed, int64_t n, int64_t r) {
  float *z = support_normals(seed, n * r);
  for (int64_t i = 0; i < n; i++) {
    const double length = sqrt(support_dot(z + i * r, z + i * r, r));
    for (int64_t k = 0; k < r; k++) z[i * r + k] = (float)((double)z[i * r + k] / length);
  }
  return z;
}

void support_product(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const double *a,
                     const double *b, double *c) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t t = 0; t < k; t++)
        sum += a[trans_a ? t * m + i : i * k + t] * b[trans_b ? j * k + t : t * n + j];
      c[i * n + j] = sum;
    }
}

double support_distance(const double *a, const double *b, int64_t count) {
  double worst = 0;
  for (int64_t k = 0; k < count; k++) {
    const double d = fabs(a[k] - b[k]);
    if (!(d <= worst)) worst = d; /* NaN counts as far */
  }
  return worst;
}

double *support_random(uint64_t seed, int64_t count) {
  double *a = support_doubles(count);
  for (int64_t k = 0; k < count; k++) a[k] = support_normal(&seed);
  return a;
}

void support_orthonormalize(double *a, int64_t m, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t other = 0; other < j; other++) {
        double dot = 0;
        for (int64_t i = 0; i < m; i++) dot += a[i * n + j] * a[i * n + other];
        for (int64_t i = 0; i < m; i++) a[i * n + j] -= dot * a[i * n + other];
      }
      double sum = 0;
      for (int64_t i = 0; i < m; i++) sum += a[i * n + j] * a[i * n + j];
      for (int64_t i = 0; i < m; i++) a[i * n + j] /= sqrt(sum);
    }
}

double *support_orthonormal(uint64_t seed, int64_t m, int64_t n) {
  double *q = support_random(seed * 7919u + 3, m * n);
  support_orthonormalize(q, m, n);
  return q;
}

double support_orthogonality(const double *q, int64_t m, int64_t n) {
  double *gram = support_doubles(n * n), worst = 0;
  support_product(true, false, n, n, m, q, q, gram);
  for (int64_t k = 0; k < n; k++) gram[k * n + k] -= 1;
  for (int64_t k = 0; k < n * n; k++) worst = fmax(worst, fabs(gram[k]));
  free(gram);
  return worst;
}

double *support_known(uint64_t seed, int64_t m, int64_t n, int64_t q, const double *s) {
  double *u = support_orthonormal(seed, m, q), *v = support_orthonormal(seed + 1, n, q);
  double *a = support_doubles(m * n);
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < q; k++) u[i * q + k] *= s[k];
  support_product(false, true, m, n, q, u, v, a);
  free(u);
  free(v);
  return a;
}

double *support_symmetric(int64_t n, double **full) {
  double *b = support_random(11, n * n), *a = support_doubles(n * n);
  *full = support_doubles(n * n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++)
      (*full)[i * n + j] = (*full)[j * n + i] = b[i * n + j] + (i == j ? (double)(i % 7) : 0);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) a[i * n + j] = j > i ? NAN : (*full)[i * n + j];
  free(b);
  return a;
}

unsigned char *support_slurp(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  *size = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*size + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *size, file), *size);
  fclose(file);
  return bytes;
}

unicon_options *support_options(unicon_ctx *ctx, ...) {
  unicon_options *options = NULL;
  CHECK_OK(ctx, unicon_options_create(ctx, &options));
  CHECK_OK(ctx, unicon_options_set(ctx, options, "preset", "fast"));
  va_list arguments;
  va_start(arguments, ctx);
  bool fast = true, exponent = false, balance = false, ridge = false;
  for (const char *name; (name = va_arg(arguments, const char *));) {
    const char *value = va_arg(arguments, const char *);
    CHECK_OK(ctx, unicon_options_set(ctx, options, name, value));
    if (strcmp(name, "preset") == 0) fast = strcmp(value, "fast") == 0;
    exponent = exponent || strcmp(name, "exponent") == 0;
    balance = balance || strcmp(name, "balance") == 0;
    ridge = ridge || strcmp(name, "ridge") == 0 ||
            (strcmp(name, "metric") == 0 && strcmp(value, "none") == 0);
  }
  va_end(arguments);
  if (fast && !exponent) CHECK_OK(ctx, unicon_options_set(ctx, options, "exponent", "1"));
  if (fast && !balance) CHECK_OK(ctx, unicon_options_set(ctx, options, "balance", "off"));
  if (fast && !ridge) CHECK_OK(ctx, unicon_options_set(ctx, options, "ridge", "0.01"));
  return options;
}

unicon_rows *support_rows(unicon_ctx *ctx, const char *name, const float *data, int64_t n,
                          int64_t d) {
  unicon_rows *rows = NULL;
  CHECK_OK(ctx, unicon_rows_wrap(ctx, name, data, UNICON_F32, n, d, d * (int64_t)sizeof *data,
                                 (int64_t)sizeof *data, &rows));
  return rows;
}

void problem_make(unicon_ctx *ctx, uint64_t seed, int64_t n, int64_t d_x, int64_t d_y,
                  int64_t latent, double noise, problem *out) {
  uint64_t state = seed * 104729u + 5;
  double *a = support_doubles(latent * d_x), *b = support_doubles(latent * d_y);
  double *z = support_doubles(latent);
  for (int64_t k = 0; k < latent * d_x; k++) a[k] = support_normal(&state);
  for (int64_t k = 0; k < latent * d_y; k++) b[k] = support_normal(&state);
  *out = (problem){n, d_x, d_y, support_floats(n * d_x), support_floats(n * d_y), NULL, NULL};
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < latent; k++) z[k] = support_normal(&state);
    for (int64_t j = 0; j < d_x; j++) {
      double sum = noise * support_normal(&state);
      for (int64_t k = 0; k < latent; k++) sum += z[k] * a[k * d_x + j];
      out->x[i * d_x + j] = (float)sum;
    }
    for (int64_t j = 0; j < d_y; j++) {
      double sum = noise * support_normal(&state);
      for (int64_t k = 0; k < latent; k++) sum += z[k] * b[k * d_y + j];
      out->y[i * d_y + j] = (float)sum;
    }
  }
  free(a);
  free(b);
  free(z);
  out->rows_x = support_rows(ctx, "x.npy", out->x, n, d_x);
  out->rows_y = support_rows(ctx, "y.npy", out->y, n, d_y);
}

void problem_free(problem *p) {
  unicon_rows_close(p->rows_x);
  unicon_rows_close(p->rows_y);
  free(p->x);
  free(p->y);
}

unicon_model *support_fit(unicon_ctx *ctx, const unicon_rows *x, const unicon_rows *y,
                          const unicon_pairs *pairs, const unicon_options *options) {
  unicon_model *model = NULL;
  unicon_options *fast = support_options(ctx, NULL);
  CHECK_OK(ctx, unicon_fit(ctx, &UNICON_DATA(.x = x, .y = y, .pairs = pairs), NULL,
                           options ? options : fast, &model));
  assert_non_null(model);
  unicon_options_destroy(fast);
  return model;
}

double *support_cosines(unicon_ctx *ctx, const unicon_model *model, const unicon_rows *x,
                        const unicon_rows *y) {
  const int64_t n_x = unicon_rows_count(x), n_y = unicon_rows_count(y);
  const int64_t r = unicon_model_rank(model);
  float *zx = support_floats(n_x * r), *zy = support_floats(n_y * r);
  double *out = support_doubles(n_x * n_y);
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = x, .model = model, .side = UNICON_X), 0, n_x,
                             1, zx));
  CHECK_OK(ctx, unicon_embed(ctx, &UNICON_VIEW(.rows = y, .model = model, .side = UNICON_Y), 0, n_y,
                             1, zy));
  for (int64_t i = 0; i < n_x; i++)
    for (int64_t j = 0; j < n_y; j++)
      for (int64_t k = 0; k < r; k++)
        out[i * n_y + j] += (double)zx[i * r + k] * (double)zy[j * r + k];
  free(zx);
  free(zy);
  return out;
}

float *support_tensor(scratch *s, const unicon_model *model, const char *name, int64_t *count) {
  const char *path = scratch_path(s, "support_tensor.safetensors");
  CHECK_OK(s->ctx, unicon_model_save(s->ctx, model, path));
  size_t size;
  unsigned char *bytes = support_slurp(path, &size);
  unicon__safetensors file;
  unicon__block *frame = unicon__frame_open(s->ctx);
  CHECK_OK(s->ctx, unicon__safetensors_parse(s->ctx, &s->ctx->arena, path,
                                             (unicon__bytes){.data = bytes, .size = size}, &file));
  const unicon__tensor *tensor = unicon__tensor_find(&file, name);
  assert_non_null(tensor);
  assert_string_equal(tensor->dtype, "F32");
  *count = (int64_t)(tensor->bytes / sizeof(float));
  float *values = support_floats(*count);
  memcpy(values, tensor->data, tensor->bytes);
  unicon__frame_close(s->ctx, frame);
  free(bytes);
  scratch_remove(path);
  return values;
}

void support_log(void *user, unicon_log_level level, const char *text) {
  log_book *book = user;
  book->count[level]++;
  snprintf(book->last[level], sizeof book->last[level], "%s", text);
}

bool support_comma_locale(void) {
  static const char *const name[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
  for (size_t k = 0; k < sizeof name / sizeof *name; k++)
    if (setlocale(LC_ALL, name[k])) return true;
  char folder[] = "/tmp/unicon-locale-XXXXXX", command[256];
  if (!mkdtemp(folder)) return false;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
           folder);
  const bool made = system(command) == 0;  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  setenv("LOCPATH", folder, 1);
  const bool set = made && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
  unsetenv("LOCPATH");
  scratch_remove(folder);
  return set;
}
