/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* say.c: a print function whose callers decide where the text goes. docs/tutorial/effects.md, step 1. */
/* doc: begin performer */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

WEFT_EFFECT(void, say, const char *, text);

static void *greet(void *name)
{
	say("hello, ");
	say(name);
	say("\n");
	return name;
}
/* doc: end */

/* doc: begin default */
static void say_to_stdout(const char *text)
{
	fputs(text, stdout);
}
/* doc: end */

/* doc: begin handler */
static void count(void *state, const char *text)
{
	*(size_t *)state += strlen(text);
}

WEFT_HANDLER(counting, weft_tail(say, count));
/* doc: end */

/* doc: begin indented */
static void indent(void *state, const char *text)
{
	bool *start_of_line = state;

	if (*start_of_line)
		say("    ");
	say(text); /* to the next enclosing handler */
	*start_of_line = strchr(text, '\n');
}

WEFT_HANDLER(indented, weft_tail(say, indent));
/* doc: end */

/* doc: begin main */
int main(void)
{
	size_t bytes = 0;
	bool start_of_line = true;

	weft_set_default(say, say_to_stdout);
	greet("world");
	if (!weft_run(&indented, &start_of_line, greet, "weft") || !weft_run(&counting, &bytes, greet, "nobody")) {
		perror("say");
		return 1;
	}
	printf("%zu bytes were not printed\n", bytes);
}
/* doc: end */
