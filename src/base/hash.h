/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit number from bytes, to tell files and models apart; not for secrets. */
#ifndef UNICON_BASE_HASH_H
#define UNICON_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mixes `bytes` bytes into h, eight at a time by multiply and xor-shift; what is left at the end is
 * filled up with zeros and the length mixed in, so spans do not run into each other. The same on
 * every little-endian machine. */
static inline uint64_t unicon__hash(uint64_t h, const void *data, size_t bytes) {
  const unsigned char *at = data;
  uint64_t word;
  for (size_t left = bytes; left > 0; left -= left < sizeof word ? left : sizeof word) {
    const size_t now = left < sizeof word ? left : sizeof word;
    word = 0;
    memcpy(&word, at, now);
    at += now;
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
  }
  h = (h ^ (uint64_t)bytes) * 0xD6E8FEB86659FD93u;
  return h ^ (h >> 32);
}

#endif
