/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_FREESTANDING_STRING_H
#define WEFT_TESTS_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
int strcmp(const char *a, const char *b);

#endif
