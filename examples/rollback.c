/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* rollback.c: a handler that acts after the rest of the program: transactions. docs/tutorial/effects.md, step 3. */
/* doc: begin performer */
#include <stdio.h>
#include <weft/weft.h>

WEFT_EFFECT(void, set, int *, variable, int, value);
WEFT_EXCEPTION(refuse, const char *, why);

struct transfer {
	int *from, *to, amount;
};

static void *transfer(void *arg)
{
	const struct transfer *t = arg;

	set(t->to, *t->to + t->amount);
	set(t->from, *t->from - t->amount);
	if (*t->from < 0)
		refuse("there is not that much");
	return arg;
}
/* doc: end */

/* doc: begin handler */
static void *on_set(void *state, weft_resumption_t *k, int *variable, int value)
{
	int before = *variable;
	void *result;

	(void)state;
	*variable = value;
	result = weft_continue(set, k); /* the rest of the body */
	if (!result)
		*variable = before;
	return result;
}

static void *on_refuse(void *state, const char *why)
{
	*(const char **)state = why;
	return NULL;
}

WEFT_HANDLER(transaction, weft_general(set, on_set), weft_abort(refuse, on_refuse));
/* doc: end */

/* doc: begin main */
static int try_to(struct transfer *t)
{
	const char *why = NULL;

	if (!weft_run(&transaction, &why, transfer, t)) {
		if (!why) {
			perror("rollback");
			return 1;
		}
		printf("%s: ", why);
	}
	printf("%d and %d\n", *t->from, *t->to);
	return 0;
}

int main(void)
{
	int mine = 100, yours = 10;
	struct transfer some = {&mine, &yours, 30}, much = {&mine, &yours, 300};

	return try_to(&some) || try_to(&much);
}
/* doc: end */
