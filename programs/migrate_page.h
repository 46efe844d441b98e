/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `unicon migrate`: one page, made from the decision and nothing else. */
#ifndef UNICON_PROGRAMS_MIGRATE_PAGE_H
#define UNICON_PROGRAMS_MIGRATE_PAGE_H

#include "report_page.h"

/* migrate.html: writes the whole page. */
void migrate_template(page *p);

/* The page as a string to be freed; NULL when memory ran out. */
char *migrate_page(const json_t *decision, size_t *size);

#endif
