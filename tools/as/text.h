/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Text: views into the input, strings that live until the program ends, buffers. The program reads a file, writes
 * a file and ends, so nothing is ever freed.
 */
#ifndef WEFT_AS_TEXT_H
#define WEFT_AS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A piece of text that other code owns. */
struct view {
	const char *at;
	size_t n;
};

struct buffer {
	char *at;
	size_t n;
	size_t room;
};

#define VIEW(literal) ((struct view){(literal), sizeof(literal) - 1})

static inline bool same(struct view a, struct view b)
{
	return a.n == b.n && memcmp(a.at, b.at, b.n) == 0;
}

static inline bool starts(struct view a, struct view with)
{
	return a.n >= with.n && memcmp(a.at, with.at, with.n) == 0;
}

static inline bool ends(struct view a, struct view with)
{
	return a.n >= with.n && memcmp(a.at + a.n - with.n, with.at, with.n) == 0;
}

#define IS(view, literal) same(view, VIEW(literal))
#define STARTS(view, literal) starts(view, VIEW(literal))
#define ENDS(view, literal) ends(view, VIEW(literal))

static inline bool contains(struct view a, const char *literal)
{
	return memmem(a.at, a.n, literal, strlen(literal)) != NULL;
}

/* Returns the text without the first n characters. */
static inline struct view skip(struct view a, size_t n)
{
	return (struct view){a.at + n, a.n - n};
}

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct view trim(struct view a);

/* Returns the text up to the first `stop` (without it), or all; the rest, without `stop`, stays in *a. */
struct view cut(struct view *a, char stop);

/* A number as the compilers write it: optional sign, decimal or 0x. False if it is anything else. */
bool number(struct view a, int64_t *value);

/* Allocates zeroed memory; ends the program if there is none. */
void *keep(size_t bytes);

/* Grow an array to hold at least `count` elements. */
void *grow(void *array, size_t *room, size_t count, size_t element);

__attribute__((format(printf, 1, 2))) char *say(const char *format, ...);

void append(struct buffer *to, const char *at, size_t n);
__attribute__((format(printf, 2, 3))) void print(struct buffer *to, const char *format, ...);

/* printf's "%.*s" for a view. */
#define SHOW(view) (int)(view).n, (view).at

#endif
