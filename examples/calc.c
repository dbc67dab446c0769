/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* calc.c: errors as an effect that does not return. docs/tutorial/effects.md, step 2. */
/* doc: begin performer */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

WEFT_EXCEPTION(wrong, const char *, expected, const char *, at);

/* number, or ( sum ) */
static int sum(const char **at);

static int operand(const char **at)
{
	int value;

	if (isdigit((unsigned char)**at))
		return (int)strtol(*at, (char **)at, 10);
	if (**at != '(')
		wrong("a number or (", *at);
	++*at;
	value = sum(at);
	if (**at != ')')
		wrong(")", *at);
	++*at;
	return value;
}

static int sum(const char **at)
{
	int value = operand(at);

	while (**at == '+') {
		++*at;
		value += operand(at);
	}
	return value;
}
/* doc: end */

/* doc: begin body */
struct calculation {
	const char *text;
	int value;
	bool is_wrong;
};

static void *calculate(void *arg)
{
	struct calculation *calculation = arg;
	char *copy = strdup(calculation->text);
	const char *at = copy;

	weft_defer(free, copy);
	calculation->value = sum(&at);
	if (*at)
		wrong("the end", at);
	return calculation;
}
/* doc: end */

/* doc: begin handler */
static void *on_wrong(void *state, const char *expected, const char *at)
{
	struct calculation *calculation = state;

	(void)at; /* `at` points into memory that is already freed */
	printf("%s: expected %s\n", calculation->text, expected);
	calculation->is_wrong = true;
	return calculation;
}

WEFT_HANDLER(careful, weft_abort(wrong, on_wrong));
/* doc: end */

/* doc: begin main */
static void evaluate(const char *text)
{
	struct calculation calculation = {.text = text};

	if (!weft_run(&careful, &calculation, calculate, &calculation)) {
		perror("calc");
		exit(1);
	}
	if (!calculation.is_wrong)
		printf("%s = %d\n", text, calculation.value);
}

int main(void)
{
	evaluate("1+(2+3)");
	evaluate("1+(2+");
	evaluate("(((7)))");
	evaluate("7)");
}
/* doc: end */
