/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For programs of tests that end where something does not hold, because later checks would mean nothing. */
#ifndef WEFT_TESTS_REQUIRE_H
#define WEFT_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                 \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

#endif
