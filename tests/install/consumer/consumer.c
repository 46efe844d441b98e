/* SPDX-License-Identifier: Apache-2.0 */
/* A user's program in the common part of C and C++: makes a context and prints the version. */
#include <unicon/unicon.h>

#include <stdio.h>

int main(void) {
  unicon_ctx *ctx = NULL;
  if (unicon_ctx_create(&ctx) != UNICON_OK) return 1;
  printf("%s\n", unicon_version());
  unicon_ctx_destroy(ctx);
  return 0;
}
