/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * undo.c: the assignments of a body are undone if the body refuses, even after a million assignments: weft_on_answer
 * keeps the records for undoing them, and no stack waits. docs/howto/choose-a-clause.md, "Answers".
 */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

WEFT_EFFECT(void, set, int *, variable, int, value);
WEFT_EXCEPTION(refuse, const char *, why);

enum { ACCOUNTS = 1000000 };

static void *withdraw(void *accounts)
{
	int *account = accounts;

	for (int i = 0; i < ACCOUNTS; i++)
		set(&account[i], account[i] - 10);
	for (int i = 0; i < ACCOUNTS; i++)
		if (account[i] < 0)
			refuse("somebody has not that much");
	return account;
}

/* doc: begin handler */
struct change {
	int *variable, before;
};

static void *take_back(void *state, void *result, const struct change *change)
{
	(void)state;
	if (!result)
		*change->variable = change->before;
	return result;
}

/* In place: the rest of the body runs when this function returns … */
static void set_now(void *state, int *variable, int value)
{
	struct change change = {variable, *variable};

	(void)state;
	if (weft_on_answer(take_back, &change))
		weft_escalate(set, variable, value); /* no memory for the record */
	else
		*variable = value;
}

/* … or this clause waits for the rest of the body. */
static void *set_and_wait(void *state, weft_resumption_t *k, int *variable, int value)
{
	struct change change = {variable, *variable};

	*variable = value;
	return take_back(state, weft_continue(set, k), &change);
}
/* doc: end */

static void *on_refuse(void *state, const char *why)
{
	printf("%s: ", why);
	return state;
}

/* doc: begin table */
WEFT_HANDLER(transaction, weft_tail(set, set_now), weft_general(set, set_and_wait), weft_abort(refuse, on_refuse),
	     weft_on_failure(must_have_memory));
/* doc: end */

int main(void)
{
	static int account[ACCOUNTS];

	for (int i = 0; i < ACCOUNTS; i++)
		account[i] = i % 5 + 20;
	account[ACCOUNTS / 2] = 10;
	weft_run(&transaction, NULL, withdraw, account);
	printf("%d and %d\n", account[0], account[ACCOUNTS / 2]);
	weft_run(&transaction, NULL, withdraw, account);
	printf("%d and %d\n", account[0], account[ACCOUNTS / 2]);
}
