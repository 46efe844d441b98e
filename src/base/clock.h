/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNICON_BASE_CLOCK_H
#define UNICON_BASE_CLOCK_H

/* Monotonic seconds. */
double unicon__now(void);

#endif
