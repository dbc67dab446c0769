/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* a6.h: the text and the numbers that the server and the clients of experiment A6 agree on. */
#ifndef A6_H
#define A6_H

#include <stddef.h>
#include <stdint.h>

enum {
	A6_SMALL = 64,	    /* bytes of the body of /small */
	A6_FILE = 200000,   /* bytes of the file that /files/data serves; its key is 0 */
	A6_ROUNDS = 4,	    /* values that pass along the line of tasks of /tasks */
	A6_COROUTINES = 6,  /* number that /coroutines makes; each second coroutine is deleted while it is suspended */
	A6_STEP = 16,	    /* frames between two yields of such a coroutine */
	A6_YIELDS_SEEN = 2, /* number of yields of a coroutine that is deleted */
};

/* Byte `place` of the text with this key. */
static inline char a6_byte(uint64_t key, size_t place)
{
	return (char)(((key + place) * 0x9e3779b97f4a7c15u >> 40) & 0xff);
}

static inline void a6_fill(char *text, size_t length, uint64_t key, size_t from)
{
	for (size_t i = 0; i < length; i++)
		text[i] = a6_byte(key, from + i);
}

#endif /* A6_H */
