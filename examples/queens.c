/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Search by effects that are resumed more than once. A program performs an effect when it needs a choice, and fails
 * when a choice was wrong; it knows nothing of backtracking. The handler keeps a clone of the program at each choice,
 * which only stacks of the policy "copy" allow: restoring the clone restores the board on the program's stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin effects */
WEFT_FAMILY(search, (int, pick, int, choices), (void, fail));
/* doc: end */

enum { SIZE = 6 };

/* doc: begin program */
/* One queen for each column; no queen may attack another one. */
static void *queens(void *unused)
{
	int row[SIZE];

	for (int column = 0; column < SIZE; column++) {
		row[column] = pick(SIZE);
		for (int other = 0; other < column; other++)
			if (row[other] == row[column] || abs(row[other] - row[column]) == column - other)
				fail();
	}
	for (int column = 0; column < SIZE; column++)
		printf("%d%c", row[column] + 1, column < SIZE - 1 ? ' ' : '\n');
	return unused;
}
/* doc: end */

/* doc: begin handler */
/* Runs all continuations of k. Returns the number of solutions. */
static int all(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(search));
	int choices, solutions = 0;

	if (!weft_is(pick, r))
		return weft_returned(r); /* otherwise the program failed */
	choices = weft_args(pick, r)->choices;
	if (weft_checkpoint(k))
		abort();
	for (int i = 0; i < choices; i++) {
		if (weft_checkpoint_restore(k))
			abort();
		weft_reply(pick, r, i);
		solutions += all(k);
	}
	weft_checkpoint_drop(k); /* all values of this choice have been tried */
	return solutions;
}
/* doc: end */

int main(void)
{
	weft_attr_t attr = {.name = "queens", .policy = WEFT_COPY};
	weft_coro_t *k;

	if (weft_clone_unavailable()) {
		puts(weft_clone_unavailable());
		return 1;
	}
	k = must(weft_create_with(queens, NULL, &attr));
	weft_set_failure_hook(must_not_fail);
	printf("%d solutions\n", all(k));
	weft_delete(k);
	return 0;
}
