/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a report, as `unicon report --from` reads it: a page or a sentence. No text of the
 * report can leave its place in the page, so a quoted value that is no number was written by us. */
#include "report.h"
#include "target.h"

static void look(const char *html, size_t length, size_t size) {
  static const char *const never[] = {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf"};
  const char end[] = "</html>\n";
  TARGET_HOLDS(length == strlen(html) && length > sizeof end);
  TARGET_HOLDS(strcmp(html + length - strlen(end), end) == 0);
  TARGET_HOLDS(length < (1 << 20) + 2000 * size);
  const char *script = strstr(html, "<script"),
             *own = script ? strstr(script + 1, "<script>") : NULL;
  TARGET_HOLDS(own && !strstr(own + 1, "<script") && strstr(own, "</script>\n</body>"));
  for (size_t k = 0; k < sizeof never / sizeof *never; k++)
    TARGET_HOLDS(strstr(html, never[k]) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *report = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
  if (!report) return 0;
  char error[300] = "";
  size_t length = 0;
  char *html = report_page(report, &length, error, sizeof error);
  if (html)
    look(html, length, size);
  else
    TARGET_HOLDS(strlen(error) > 0);
  free(html);
  json_decref(report);
  return 0;
}
