/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tally.c: state as a family of effects, and two instances of it. */
/* doc: begin performer */
#include <stdio.h>
#include <weft/weft.h>

WEFT_FAMILY(tally, (void, add, int, n), (int, total));

static void *count_words(void *text)
{
	char before = ' ';

	for (const char *c = text; *c; before = *c++)
		if (before == ' ' && *c != ' ')
			add(1);
	return NULL;
}

static void *program(void *arg)
{
	count_words("an effect is declared like a function");
	printf("%d words so far\n", total());
	count_words("and performed by a call");
	printf("%d words\n", total());
	return arg;
}
/* doc: end */

/* doc: begin handler */
static void on_add(void *state, int n)
{
	*(int *)state += n;
}

static int on_total(void *state)
{
	return *(int *)state;
}

WEFT_HANDLER(tally_in_memory, weft_tail(add, on_add), weft_tail(total, on_total));
/* doc: end */

/* doc: begin labels */
static weft_label_t vowels = WEFT_LABEL(tally, "vowels"), others = WEFT_LABEL(tally, "others");

static void *count_letters(void *text)
{
	for (const char *c = text; *c; c++)
		if (*c == 'a' || *c == 'e' || *c == 'i' || *c == 'o' || *c == 'u')
			weft_perform_on(add, &vowels, 1);
		else
			weft_perform_on(add, &others, 1);
	printf("%d vowels, %d others\n", weft_perform_on(total, &vowels), weft_perform_on(total, &others));
	return text;
}

static void *count_others(void *text)
{
	weft_handler_t handler = weft_labelled(&tally_in_memory, &others);
	int n = 0;

	return weft_run(&handler, &n, count_letters, text);
}

static void *count_both(void *text)
{
	weft_handler_t handler = weft_labelled(&tally_in_memory, &vowels);
	int n = 0;

	return weft_run(&handler, &n, count_others, text);
}
/* doc: end */

/* doc: begin main */
int main(void)
{
	int words = 0;

	if (!weft_run(&tally_in_memory, &words, program, &words) || !count_both("weft")) {
		perror("tally");
		return 1;
	}
}
/* doc: end */
