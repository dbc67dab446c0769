/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Textual LLVM IR: variadic functions lose the attribute "split-stack".
 *
 *	define i32 @sum(i32 %0, ...) #0 {		define i32 @sum(i32 %0, ...) #2000000000 {
 *	attributes #0 = { nounwind "split-stack" }	attributes #0 = { nounwind "split-stack" }
 *							attributes #2000000000 = { nounwind }
 *
 * A definition and a group of attributes are a line each; a string in a group has no newline. Groups follow the
 * definitions.
 */
#include "launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Added to the number of a group for its copy. Far above a module's own numbers, and still an unsigned int. */
#define COPY 2000000000u

static const char attribute[] = " \"split-stack\"";

/* The end of the quoted string or single character at s. */
static char *skip(char *s)
{
	if (*s == '"')
		for (s++; *s && *s != '"'; s++)
			;
	return *s ? s + 1 : s;
}

/* Returns the place after the parenthesis that closes the parenthesis at s. */
static char *skip_parentheses(char *s)
{
	int depth = 0;

	for (; *s; s = skip(s)) {
		depth += (*s == '(') - (*s == ')');
		if (!depth)
			return s + 1;
	}
	return s;
}

/* For a definition's line: past its parameters if they end in "...", else NULL. */
static char *after_variadic_parameters(char *line)
{
	char *s = line, *end;

	while (*s && *s != '@')
		s = skip(s);
	while (*s && *s != '(')
		s = skip(s);
	end = skip_parentheses(s);
	return end - s >= 5 && memcmp(end - 4, "...)", 4) == 0 ? end : NULL;
}

/* The reference to a group of attributes at or after s: " #12". */
static char *find_group(char *s)
{
	for (; *s; s = skip(s))
		if (s[0] == ' ' && s[1] == '#' && isdigit((unsigned char)s[2]))
			return s + 2;
	return NULL;
}

/* Groups that must be copied, by number. */
struct groups {
	bool *wanted;
	size_t n;
};

static bool want(struct groups *g, unsigned long number)
{
	if (number >= g->n) {
		size_t n = 2 * number + 16;
		bool *wanted = realloc(g->wanted, n);

		if (!wanted)
			return false;
		memset(wanted + g->n, 0, n - g->n);
		g->wanted = wanted;
		g->n = n;
	}
	return g->wanted[number] = true;
}

static bool definition(char *line, size_t length, FILE *out, struct groups *g)
{
	char *parameters = after_variadic_parameters(line), *group = parameters ? find_group(parameters) : NULL, *rest;
	unsigned long number;

	if (!group)
		return fwrite(line, 1, length, out) == length;
	number = strtoul(group, &rest, 10);
	if (number >= COPY || !want(g, number))
		return false;
	fwrite(line, 1, (size_t)(group - line), out);
	fprintf(out, "%lu", number + COPY);
	return fwrite(rest, 1, length - (size_t)(rest - line), out) == length - (size_t)(rest - line);
}

static void copy_of_group(const char *line, FILE *out, struct groups *g)
{
	char *rest;
	unsigned long number = strtoul(line + strlen("attributes #"), &rest, 10);
	const char *at = strstr(rest, attribute);

	if (number >= g->n || !g->wanted[number])
		return;
	fprintf(out, "attributes #%lu%.*s%s", number + COPY, at ? (int)(at - rest) : (int)strlen(rest), rest,
		at ? at + strlen(attribute) : "");
}

bool filter_ir(FILE *in, FILE *out)
{
	struct groups g = {0};
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	bool good = true;

	while (good && (n = getline(&line, &room, in)) > 0) {
		bool is_definition = starts(line, "define ");

#ifdef WEFT_CANARY_variadic_functions_keep_the_attribute
		is_definition = false;
#endif
		if (is_definition)
			good = definition(line, (size_t)n, out, &g);
		else
			good = fwrite(line, 1, (size_t)n, out) == (size_t)n;
		if (good && starts(line, "attributes #"))
			copy_of_group(line, out, &g);
	}
	free(line);
	free(g.wanted);
	return good && !ferror(in) && fflush(out) == 0 && !ferror(out);
}
