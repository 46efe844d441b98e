/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rows_npy.h"
#include "io/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/rows_format.h"
#include "linalg/convert.h"

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* What a caller can use: types, the one to convert others to, and how many dimensions. */
typedef struct npy_use {
  const char *types; /* each followed by a space */
  const char *convert_to;
  int min_dims;
} npy_use;

/* NumPy writes bfloat16, which is not a type of its own, as <V2, and as |V2 once it has read that. */
static const npy_use for_rows = {"f2 f4 f8 i1 u1 V2 ", "<f4", 2};
enum { MOST_COLUMNS = 3 }; /* of integers: pairs with a weight */
static const npy_use for_integers = {"i1 i2 i4 i8 u1 u2 u4 u8 f8 ", "<i8", 1};

/* The header's Python dictionary, read from left to right. */
typedef struct scanner {
  const unsigned char *at, *end;
} scanner;

typedef struct npy_header {
  char descr[16];
  bool fortran;
  int dims;
  int64_t shape[2]; /* the first two */
} npy_header;

static void skip_blanks(scanner *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n')) s->at++;
}

static bool accept(scanner *s, char c) {
  skip_blanks(s);
  if (s->at == s->end || *s->at != (unsigned char)c) return false;
  s->at++;
  return true;
}

/* A quoted string without escapes, cut off where `out` is full. Its length is an int: that of the
 * header is limited. */
static bool scan_string(scanner *s, char *out, size_t room) {
  const char quote = accept(s, '\'') ? '\'' : '"';
  if (quote == '"' && !accept(s, '"')) return false;
  const unsigned char *close = memchr(s->at, quote, (size_t)(s->end - s->at));
  if (!close) return false;
  snprintf(out, room, "%.*s", (int)(close - s->at), (const char *)s->at);
  s->at = close + 1;
  return true;
}

static bool scan_word(scanner *s, const char *word) {
  const size_t n = strlen(word);
  if (!accept(s, word[0])) return false;
  if ((size_t)(s->end - s->at) < n - 1 || memcmp(s->at, word + 1, n - 1) != 0) {
    s->at--;
    return false;
  }
  s->at += n - 1;
  return true;
}

static bool scan_size(scanner *s, int64_t *out) {
  const unsigned char *start = s->at;
  int64_t value = 0;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, *s->at - '0', &value))
      return false;
  *out = value;
  return s->at > start;
}

/* (), (3,), (3, 4) ... */
static bool scan_shape(scanner *s, npy_header *header) {
  if (!accept(s, '(')) return false;
  header->dims = 0;
  while (!accept(s, ')')) {
    int64_t size;
    if (!scan_size(s, &size)) return false;
    if (header->dims < 2) header->shape[header->dims] = size;
    if (++header->dims > 64) return false;
    if (!accept(s, ',')) return accept(s, ')');
  }
  return true;
}

/* A list in place of the string is a structured type; it is kept as such and refused by name. */
static bool scan_descr(scanner *s, npy_header *header) {
  if (!accept(s, '[')) return scan_string(s, header->descr, sizeof header->descr);
  snprintf(header->descr, sizeof header->descr, "structured");
  for (int depth = 1; depth > 0; s->at++) {
    if (s->at == s->end) return false;
    depth += (*s->at == '[') - (*s->at == ']');
  }
  return true;
}

static bool scan_header(scanner *s, npy_header *header) {
  unsigned seen = 0;
  if (!accept(s, '{')) return false;
  while (!accept(s, '}')) {
    char key[16];
    if (!scan_string(s, key, sizeof key) || !accept(s, ':')) return false;
    unsigned bit = 0;
    if (strcmp(key, "descr") == 0 && scan_descr(s, header)) bit = 1;
    if (strcmp(key, "shape") == 0 && scan_shape(s, header)) bit = 2;
    if (strcmp(key, "fortran_order") == 0) {
      header->fortran = scan_word(s, "True");
      if (header->fortran || scan_word(s, "False")) bit = 4;
    }
    if (bit == 0 || (seen & bit)) return false;
    seen |= bit;
    if (accept(s, ',')) continue;
    if (!accept(s, '}')) return false;
    break;
  }
  skip_blanks(s);
  return seen == 7 && s->at == s->end;
}

/* Where the dictionary lies. */
static unicon_status find_header(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                 scanner *out) {
  if (!unicon__npy_looks_like(bytes))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is not an .npy file: it does not start with \\x93NUMPY", name);
  const int version = bytes.size > 6 ? bytes.data[6] : 0;
  if (version < 1 || version > 3)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s has .npy version %d; versions 1, 2 and 3 are read", name, version);
  const size_t start = version == 1 ? 10 : 12;
  const uint64_t length =
      bytes.size < start ? 0 : unicon__little_endian(bytes.data + 8, version == 1 ? 2 : 4);
  if (length > UNICON__HEADER_MAX)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: its header takes %" PRIu64 " bytes, but at most %d are read", name,
                        length, UNICON__HEADER_MAX);
  if (bytes.size < start || length > bytes.size - start)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s is cut off: its header takes %" PRIu64 " bytes, the file has %zu", name,
                        length + start, bytes.size);
  *out = (scanner){bytes.data + start, bytes.data + start + length};
  return UNICON_OK;
}

static unicon_status check_type(unicon_ctx *ctx, const char *name, const char *descr,
                                const npy_use *use) {
  const bool short_name = strlen(descr) == 3; /* byte order, letter, size */
  const char type[4] = {short_name ? descr[1] : '?', short_name ? descr[2] : '?', ' ', '\0'};
  const bool known = strstr(use->types, type) != NULL;
  const bool native = descr[0] == '<' || descr[0] == '=' ||
                      (descr[0] == '|' && (descr[2] == '1' || descr[1] == 'V'));
  const char *shown = unicon__text_shell(name);
  if (known && native) return UNICON_OK;
  const char letter = descr[0] && strchr("<>|=", descr[0]) ? descr[1] : descr[0];
  if (memchr("cVOs", letter, 4)) /* complex numbers, bytes, objects, structures: nothing has them */
    return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s has dtype '%s'; little-endian %sare read", name,
                        descr, use->types);
  return unicon__fail(ctx, UNICON_ERR_FORMAT,
                      "%s has dtype '%s'; little-endian %sare read. Convert it with: python3 -c "
                      "\"import numpy as np; np.save('%s.%s.npy', np.load('%s').astype('%s'))\"",
                      name, descr, use->types, shown,
                      use->convert_to + strspn(use->convert_to, "<|"), shown, use->convert_to);
}

/* The number of bytes the header promises must be there, and no more: what follows would be data
 * that is silently left out. */
static unicon_status check_size(unicon_ctx *ctx, const char *name, const npy_header *header,
                                int64_t element, size_t left) {
  int64_t total = element;
  bool overflow = false;
  for (int d = 0; d < header->dims; d++)
    overflow |= __builtin_mul_overflow(total, header->shape[d], &total);
  if (overflow)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the header's shape %" PRId64 " by %" PRId64 " is larger than any file",
                        name, header->shape[0], header->shape[1]);
  if ((uint64_t)total != left)
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s %s: its header promises %" PRId64 " bytes of data, the file has %zu",
                        name, (uint64_t)total > left ? "is cut off" : "is too long", total, left);
  return UNICON_OK;
}

static unicon_status check_dims(unicon_ctx *ctx, const char *name, int dims, int least) {
  if (dims >= least && dims <= 2) return UNICON_OK;
  return unicon__fail(ctx, UNICON_ERR_SHAPE, "%s has %d dimension%s, but needs %s2 dimensions%s",
                      name, dims, dims == 1 ? "" : "s", least == 1 ? "1 or " : "",
                      least == 1 || dims == 0 ? ""
                      : dims == 1             ? "; in NumPy a.reshape(1, -1) is one row of it"
                                  : "; in NumPy a.reshape(len(a), -1) has one row for each");
}

static unicon_status npy_open(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                              const npy_use *use, unicon__npy *out) {
  scanner s = {NULL, NULL};
  npy_header header = {.shape = {1, 1}};
  UNICON_TRY(find_header(ctx, name, bytes, &s));
  const unsigned char *data = s.end;
  if (!scan_header(&s, &header))
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: the .npy header is damaged at byte %td; it must be a dictionary of "
                        "descr, fortran_order and shape",
                        name, s.at - bytes.data);
  if (use == &for_integers && header.descr[1] == 'f' && header.shape[1] > MOST_COLUMNS)
    return unicon__fail(ctx, UNICON_ERR_SHAPE,
                        "%s has %" PRId64 " columns of dtype '%s': pairs have 2 or 3, labels 1",
                        name, header.shape[1], header.descr);
  UNICON_TRY(check_type(ctx, name, header.descr, use));
  UNICON_TRY(check_dims(ctx, name, header.dims, use->min_dims));
  const int64_t element = header.descr[2] - '0';
  UNICON_TRY(check_size(ctx, name, &header, element, (size_t)(bytes.data + bytes.size - data)));
  *out = (unicon__npy){.data = data, .dims = header.dims};
  memcpy(out->descr, header.descr, sizeof out->descr);
  out->rows = header.shape[0];
  out->cols = header.shape[1];
  out->row_stride = out->col_stride = element;
  if (out->rows == 0 || out->cols == 0) return UNICON_OK; /* the other count may be anything */
  if (header.fortran)
    out->col_stride = element * out->rows;
  else
    out->row_stride = element * out->cols;
  return UNICON_OK;
}

bool unicon__npy_looks_like(unicon__bytes bytes) {
  return bytes.size >= sizeof magic && memcmp(bytes.data, magic, sizeof magic) == 0;
}

static unicon_dtype dtype_of(const char *descr) {
  if (descr[1] == 'i') return UNICON_I8;
  if (descr[1] == 'u') return UNICON_U8;
  if (descr[1] == 'V') return UNICON_BF16;
  return descr[2] == '2' ? UNICON_F16 : descr[2] == '4' ? UNICON_F32 : UNICON_F64;
}

unicon_status unicon__npy_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon__matrix *out) {
  unicon__npy npy = {.rows = 0};
  UNICON_TRY(npy_open(ctx, name, bytes, &for_rows, &npy));
  out->rows = (unicon__segment){
      npy.data, 0, npy.rows, npy.row_stride, npy.col_stride, dtype_of(npy.descr), NULL, 0};
  out->width = npy.cols;
  return UNICON_OK;
}

unicon_status unicon__npy_open_table(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                     unicon__npy *out) {
  return npy_open(ctx, name, bytes, &for_integers, out);
}

static double real_of(const unsigned char *p) {
  double value;
  memcpy(&value, p, sizeof value);
  return value;
}

/* Element p as int64_t; false where it is none. */
static bool integer_of(const char *descr, const unsigned char *p, int64_t *out) {
  const int size = descr[2] - '0';
  if (descr[1] == 'f') {
    const double value = real_of(p);
    if (!(fabs(value) <= 0x1p53) || value != floor(value)) return false;
    *out = (int64_t)value;
    return true;
  }
  const uint64_t bits = unicon__little_endian(p, size);
  const uint64_t sign = descr[1] == 'i' ? (uint64_t)1 << (8 * size - 1) : 0;
  const uint64_t wide = (bits ^ sign) - sign; /* extends the sign */
  memcpy(out, &wide, sizeof *out);
  return descr[1] == 'i' || wide <= INT64_MAX;
}

unicon_status unicon__npy_integers(unicon_ctx *ctx, const char *name, const unicon__npy *npy,
                                   int64_t column, int64_t *out) {
  const unsigned char *p = npy->data + column * npy->col_stride;
  for (int64_t row = 0; row < npy->rows; row++, p += npy->row_stride) {
    if (integer_of(npy->descr, p, &out[row])) continue;
    if (npy->descr[1] == 'f')
      return unicon__fail(ctx, UNICON_ERR_FORMAT, "%s: row %" PRId64 " has %g, not a whole number",
                          name, row, real_of(p));
    return unicon__fail(ctx, UNICON_ERR_FORMAT,
                        "%s: row %" PRId64 " has %" PRIu64 "; the largest number read is %" PRId64,
                        name, row, unicon__little_endian(p, 8), INT64_MAX);
  }
  return UNICON_OK;
}

void unicon__npy_reals(const unicon__npy *npy, int64_t column, double *out) {
  const unsigned char *p = npy->data + column * npy->col_stride;
  for (int64_t row = 0; row < npy->rows; row++, p += npy->row_stride) {
    int64_t whole = 0;
    if (npy->descr[1] == 'f')
      out[row] = real_of(p);
    else if (integer_of(npy->descr, p, &whole))
      out[row] = (double)whole;
    else
      out[row] = (double)unicon__little_endian(p, 8); /* uint64 from 2^63 on */
  }
}

void unicon__npy_header(const char *descr, int64_t rows, int64_t width,
                        char out[UNICON__NPY_HEADER + 1]) {
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (char)(UNICON__NPY_HEADER - 10); /* little-endian uint16 */
  out[9] = 0;
  const int used =
      snprintf(out + 10, UNICON__NPY_HEADER - 9,
               "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
               descr, rows, width);
  memset(out + 10 + used, ' ', (size_t)(UNICON__NPY_HEADER - 10 - used));
  out[UNICON__NPY_HEADER - 1] = '\n';
}
