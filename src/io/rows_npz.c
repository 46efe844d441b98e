/* SPDX-License-Identifier: Apache-2.0 */
/* One array of an .npz file, which is a ZIP archive of .npy files. Arrays that are stored as they
 * are (np.savez) are mapped like any other file; compressed ones are refused. The list at the end
 * of the archive (APPNOTE.TXT 4.3.12 to 4.3.16, ZIP64 included) is what counts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/rows_format.h"
#include "io/text.h"

enum { END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, ENTRY_SIZE = 46, LOCAL_SIZE = 30 };

/* Where the list of members lies. */
typedef struct zip_list {
  unicon_ctx *ctx;
  const char *name;
  unicon__bytes file;
  uint64_t count, at, end; /* members, and bytes of the list */
} zip_list;

typedef struct member {
  const char *name; /* not terminated */
  int length;
  unsigned flags, method;
  uint64_t packed, size, at; /* bytes here, bytes unpacked, place of its own header */
} member;

static bool is_mark(const unsigned char *p, const char *mark) {
  return memcmp(p, mark, 4) == 0;
}

static unicon_status damaged(const zip_list *z, const char *what) {
  return unicon__fail(z->ctx, UNICON_ERR_FORMAT, "%s is damaged or not an .npz file: %s", z->name,
                      what);
}

/* Counts that do not fit the old record stand in a larger one before it. */
static unicon_status read_end64(zip_list *z, uint64_t end) {
  if (end < LOCATOR_SIZE || !is_mark(z->file.data + end - LOCATOR_SIZE, "PK\6\7"))
    return damaged(z, "its list of members has no ZIP64 record");
  const uint64_t at = unicon__little_endian(z->file.data + end - LOCATOR_SIZE + 8, 8);
  if (at > end - LOCATOR_SIZE || end - LOCATOR_SIZE - at < END64_SIZE ||
      !is_mark(z->file.data + at, "PK\6\6"))
    return damaged(z, "its ZIP64 record is not where it should be");
  const unsigned char *p = z->file.data + at;
  z->count = unicon__little_endian(p + 32, 8);
  z->end = unicon__little_endian(p + 40, 8); /* its size, for now */
  z->at = unicon__little_endian(p + 48, 8);
  return UNICON_OK;
}

/* The end record stands at the end, but for a comment of up to 64 kB. */
static unicon_status find_list(zip_list *z) {
  const size_t size = z->file.size;
  if (size < END_SIZE) return damaged(z, "it is too short for a ZIP archive");
  size_t end = size - END_SIZE;
  const size_t least = end > UINT16_MAX ? end - UINT16_MAX : 0;
  while (!is_mark(z->file.data + end, "PK\5\6") ||
         end + END_SIZE + unicon__little_endian(z->file.data + end + 20, 2) != size)
    if (end-- == least) return damaged(z, "the list of its members at the end is missing");
  const unsigned char *p = z->file.data + end;
  z->count = unicon__little_endian(p + 10, 2);
  z->end = unicon__little_endian(p + 12, 4);
  z->at = unicon__little_endian(p + 16, 4);
  if (z->count == UINT16_MAX || z->end == UINT32_MAX || z->at == UINT32_MAX)
    UNICON_TRY(read_end64(z, end));
  if (z->at > end || z->end > end - z->at)
    return damaged(z, "the list of its members passes its end");
  z->end += z->at;
  return UNICON_OK;
}

/* Sizes of 2^32 and more stand in an extra field of kind 1, those that need it and no others. */
static bool read_extra(const unsigned char *p, size_t left, member *m) {
  uint64_t *value[3] = {&m->size, &m->packed, &m->at};
  for (size_t length; left >= 4; p += 4 + length, left -= 4 + length) {
    length = (size_t)unicon__little_endian(p + 2, 2);
    if (length > left - 4) return false;
    if (unicon__little_endian(p, 2) != 1) continue;
    size_t used = 0;
    for (int k = 0; k < 3; k++) {
      if (*value[k] != UINT32_MAX) continue;
      if (used + 8 > length) return false;
      *value[k] = unicon__little_endian(p + 4 + used, 8);
      used += 8;
    }
    return true;
  }
  return m->size != UINT32_MAX && m->packed != UINT32_MAX && m->at != UINT32_MAX;
}

/* The member at z->at, which moves on to the next. */
static unicon_status next_member(zip_list *z, member *m) {
  const unsigned char *p = z->file.data + z->at;
  const uint64_t left = z->end - z->at;
  if (left < ENTRY_SIZE || !is_mark(p, "PK\1\2"))
    return damaged(z, "the list of its members is cut off");
  const uint64_t name = unicon__little_endian(p + 28, 2), extra = unicon__little_endian(p + 30, 2),
                 remark = unicon__little_endian(p + 32, 2);
  if (left - ENTRY_SIZE < name + extra + remark)
    return damaged(z, "the list of its members is cut off");
  *m = (member){.name = (const char *)p + ENTRY_SIZE,
                .length = (int)name,
                .flags = (unsigned)unicon__little_endian(p + 8, 2),
                .method = (unsigned)unicon__little_endian(p + 10, 2),
                .packed = unicon__little_endian(p + 20, 4),
                .size = unicon__little_endian(p + 24, 4),
                .at = unicon__little_endian(p + 42, 4)};
  if (!read_extra(p + ENTRY_SIZE + name, (size_t)extra, m))
    return damaged(z, "a member's ZIP64 sizes are missing");
  z->at += ENTRY_SIZE + name + extra + remark;
  return UNICON_OK;
}

/* Is it NAME.npy, or any .npy file where no name is asked for? */
static bool is_wanted(const member *m, const char *wanted) {
  const int stem = m->length - 4;
  if (stem < 1 || memcmp(m->name + stem, ".npy", 4) != 0) return false;
  return !wanted || ((size_t)stem == strlen(wanted) && memcmp(m->name, wanted, (size_t)stem) == 0);
}

/* The named member, or the only one. */
static unicon_status choose(zip_list *z, const char *wanted, member *out) {
  char names[512] = "";
  size_t used = 0;
  int found = 0;
  for (uint64_t k = 0; k < z->count; k++) {
    member m;
    UNICON_TRY(next_member(z, &m));
    if (is_wanted(&m, wanted)) {
      *out = m;
      found++;
    }
    if (!is_wanted(&m, NULL) || used >= sizeof names - 1) continue;
    const int n = snprintf(names + used, sizeof names - used, "%s'%.*s'", used ? ", " : "",
                           m.length - 4, m.name);
    used += n > 0 ? (size_t)n : 0;
  }
  if (found == 1) return UNICON_OK;
  if (wanted)
    return unicon__fail(z->ctx, UNICON_ERR_FORMAT, "%s: there %s '%s'; the file has %s", z->name,
                        found ? "are two arrays" : "is no array", wanted, used ? names : "none");
  return unicon__fail(z->ctx, UNICON_ERR_FORMAT,
                      "%s has %d arrays; say which to take as %s:NAME. The file has %s", z->name,
                      found, z->name, used ? names : "none");
}

/* The member's bytes, behind a header of its own whose lengths may differ from those of the list.
 */
static unicon_status stored_bytes(const zip_list *z, const member *m, unicon__bytes *out) {
  if (m->flags & 1)
    return unicon__fail(z->ctx, UNICON_ERR_FORMAT, "%s: '%.*s' is encrypted", z->name, m->length,
                        m->name);
  if (m->method != 0 || m->packed != m->size)
    return unicon__fail(z->ctx, UNICON_ERR_FORMAT,
                        "%s: '%.*s' is compressed, which cannot be mapped; store it as it is with: "
                        "python3 -c \"import numpy as np; np.savez('%s.npz', **np.load('%s'))\"",
                        z->name, m->length, m->name, unicon__text_shell(z->name),
                        unicon__text_shell(z->name));
  const uint64_t size = z->file.size;
  if (m->at > size || size - m->at < LOCAL_SIZE || !is_mark(z->file.data + m->at, "PK\3\4"))
    return damaged(z, "a member is not where the list says");
  const unsigned char *p = z->file.data + m->at;
  const uint64_t skip =
      LOCAL_SIZE + unicon__little_endian(p + 26, 2) + unicon__little_endian(p + 28, 2);
  if (size - m->at < skip || size - m->at - skip < m->size)
    return damaged(z, "a member passes its end");
  *out = (unicon__bytes){p + skip, (size_t)m->size};
  return UNICON_OK;
}

unicon_status unicon__npz_parse(unicon_ctx *ctx, const char *name, unicon__bytes bytes,
                                unicon__matrix *out) {
  zip_list z = {.ctx = ctx, .name = name, .file = bytes};
  member m = {.name = NULL};
  unicon__bytes array = {NULL, 0};
  UNICON_TRY(find_list(&z));
  UNICON_TRY(choose(&z, unicon__member_part(name), &m));
  UNICON_TRY(stored_bytes(&z, &m, &array));
  return unicon__npy_parse(ctx, name, array, out);
}
