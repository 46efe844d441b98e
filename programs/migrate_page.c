/* SPDX-License-Identifier: Apache-2.0 */
#include "migrate_page.h"

#include <stdlib.h>

char *migrate_page(const json_t *decision, size_t *size) {
  char *html = NULL;
  page p = {.report = decision, .section = "decision"};
  p.out = open_memstream(&html, size);
  if (!p.out) return NULL;
  migrate_template(&p);
  const bool written = ferror(p.out) == 0;
  if (fclose(p.out) == 0 && written && !*p.error) return html;
  free(html);
  return NULL;
}
