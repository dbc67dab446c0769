/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of the C library's. Compilers call the first four by themselves; the program has them. */
#ifndef WEFT_FREESTANDING_STRING_H
#define WEFT_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

static inline size_t weft__strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static inline int weft__strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (unsigned char)*a - (unsigned char)*b;
}

static inline char *weft__strchr(const char *text, int c)
{
	for (; *text != (char)c; text++)
		if (!*text)
			return NULL;
	return (char *)(size_t)text;
}

#define strlen weft__strlen
#define strcmp weft__strcmp
#define strchr weft__strchr

#endif
