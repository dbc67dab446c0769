/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * print.c: output as an effect. Without a handler the default handler writes to stdout, in place, at the cost of a
 * call. A handler can capture the output of a piece of code, or change it and print it to the next enclosing handler.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin default */
WEFT_EFFECT(void, print, const char *, text);

static void print_to_stdout(const char *text)
{
	fputs(text, stdout);
}
/* doc: end */

static void *greet(void *name)
{
	print("Hello, ");
	print(name);
	print("!\n");
	return NULL;
}

/* doc: begin buffer */
/* Returns the output of fn(arg) as a string, which the caller frees. */
static char *captured(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = must(weft_create(fn, arg));
	char *buffer = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&buffer, &size);
	weft_request_t r;

	weft_handle (r, k, print)
		fputs(weft_args(print, r)->text, stream);
	fclose(stream);
	weft_delete(k);
	return buffer;
}
/* doc: end */

/* doc: begin indent */
/* Indents the output of fn(arg). A handler is ordinary code: its own output goes to the next enclosing handler. */
static void indented(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = must(weft_create(fn, arg));
	bool start_of_line = true;
	weft_request_t r;

	weft_handle (r, k, print) {
		const char *text = weft_args(print, r)->text;

		if (start_of_line)
			print("    ");
		print(text);
		start_of_line = *text && text[strlen(text) - 1] == '\n';
	}
	weft_delete(k);
}
/* doc: end */

static void *greet_all(void *unused)
{
	greet("warp");
	indented(greet, "weft");
	return unused;
}

int main(void)
{
	char *text;

	weft_set_failure_hook(must_not_fail);
	weft_set_default(print, print_to_stdout);
	greet("world");
	greet_all(NULL);
	text = captured(greet_all, NULL);
	printf("captured %zu bytes: ", strlen(text));
	for (const char *c = text; *c; c++)
		putchar(*c == '\n' ? '|' : *c);
	putchar('\n');
	free(text);
}
