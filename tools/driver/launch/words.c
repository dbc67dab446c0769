/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists of words, response files, messages. */
#include "launch.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("weft: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("weft: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

static void *must(void *memory)
{
	if (!memory)
		die(EXIT_BUG, "out of memory");
	return memory;
}

char *text(const char *format, ...)
{
	va_list args;
	char *s = NULL;

	va_start(args, format);
	if (vasprintf(&s, format, args) < 0)
		must(NULL);
	va_end(args);
	return s;
}

bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

char *read_all(FILE *f, size_t *length)
{
	size_t room = 1 << 16, n = 0, got;
	char *s = must(malloc(room));

	while ((got = fread(s + n, 1, room - 1 - n, f)) > 0) {
		n += got;
		if (n == room - 1)
			s = must(realloc(s, room *= 2));
	}
	s[n] = 0;
	if (length)
		*length = n;
	return s;
}

void words_add(struct words *w, const char *word)
{
	if (w->n + 2 > w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->at = must(realloc(w->at, w->room * sizeof *w->at));
	}
	w->at[w->n++] = (char *)word;
	w->at[w->n] = NULL;
}

void words_add_all(struct words *w, char *const *from)
{
	while (*from)
		words_add(w, *from++);
}

/* The next word of a response file, unquoted in place: white space separates, quotes and backslashes protect. */
static char *next_word(char **at)
{
	char *in = *at, *out, *word, quote = 0;

	while (isspace((unsigned char)*in))
		in++;
	if (!*in)
		return NULL;
	for (word = out = in; *in && (quote || !isspace((unsigned char)*in)); in++) {
		if (*in == '\\' && in[1])
			*out++ = *++in;
		else if (quote ? *in == quote : *in == '"' || *in == '\'')
			quote = quote ? 0 : *in;
		else
			*out++ = *in;
	}
	*at = *in ? in + 1 : in;
	*out = 0;
	return word;
}

static void expand_file(struct words *w, FILE *f, int depth);

static void expand_one(struct words *w, char *word, int depth)
{
	FILE *f = word[0] == '@' && depth < 16 ? fopen(word + 1, "r") : NULL;

	if (!f) {
		words_add(w, word);
		return;
	}
	expand_file(w, f, depth + 1);
	fclose(f);
}

static void expand_file(struct words *w, FILE *f, int depth)
{
	char *rest = read_all(f, NULL), *word;

	while ((word = next_word(&rest)))
		expand_one(w, word, depth);
}

void words_expand(struct words *w, char *const *from)
{
	while (*from)
		expand_one(w, *from++, 0);
}

char *join(const struct words *w)
{
	size_t n = 0;
	char *all, *at;

	for (size_t i = 0; i < w->n; i++)
		n += strlen(w->at[i]);
	at = all = must(malloc(n + 1));
	for (size_t i = 0; i < w->n; i++)
		at = stpcpy(at, w->at[i]);
	*at = 0;
	return all;
}
