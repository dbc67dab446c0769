/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_FREESTANDING_STDLIB_H
#define WEFT_TESTS_FREESTANDING_STDLIB_H

#include <stddef.h>

_Noreturn void exit(int code);
/* Decimal. */
unsigned long strtoul(const char *text, char **end, int base);
#define strtoull strtoul
#define getenv(name) ((char *)NULL)

#endif
