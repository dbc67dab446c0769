/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 nqueens: the number of ways to place n queens on an n x n board. A program places one queen in each column,
 * performs pick(n) for each row, and performs fail() if two queens would attack each other; the handler resumes each
 * pick with every row. The board is on the coroutine's stack, so backtracking copies it. Needs the policy "copy".
 */
#include "lab.h"
#include <weft/weft.h>

enum { LARGEST = 16 };

WEFT_FAMILY(search, (int, pick, int, size), (void, fail));

static bool safe(const int8_t *rows, int column, int row)
{
	int i;

	for (i = 0; i < column; i++) {
		int apart = rows[i] - row;

		if (apart == 0 || apart == column - i || apart == i - column)
			return false;
	}
	return true;
}

static void *place(void *arg)
{
	int size = (int)(intptr_t)arg, column;
	int8_t rows[LARGEST];

	for (column = 0; column < size; column++) {
		int row = pick(size);

		if (!safe(rows, column, row))
			fail();
		rows[column] = (int8_t)row;
	}
	return NULL;
}

/* A pick on the path to the current point of k, and its row. */
struct choice {
	weft_request_t request;
	int row;
};

static uint64_t picks;

static int64_t solutions(weft_coro_t *k, int size)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(search));
	struct choice choices[LARGEST], *top = choices;
	int64_t sum = 0;

	for (;;) {
		if (weft_is(pick, r)) {
			picks += (uint64_t)size;
			if (weft_checkpoint(k))
				lab_die("weft_checkpoint");
			*top++ = (struct choice){r, 0};
		} else {
			sum += weft_returned(r);
			if (top == choices)
				return sum;
			if (++top[-1].row < size - 1 ? weft_checkpoint_restore(k) : weft_checkpoint_restore_last(k))
				lab_die("weft_checkpoint_restore");
		}
		weft_reply(pick, top[-1].request, top[-1].row); /* the request points into k's stack, in place */
		top -= top[-1].row == size - 1;
		r = weft_resume(k, NULL, weft_handles(search));
	}
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), sum;
	weft_attr_t attr = {.policy = WEFT_COPY};
	weft_coro_t *k;

	if (n < 2 || n > LARGEST)
		lab_die("n");
	k = weft_create_with(place, (void *)(intptr_t)n, &attr);
	if (!k)
		lab_die("weft_create_with");
	lab_start();
	sum = solutions(k, (int)n);
	lab_stop();
	weft_delete(k);
	return lab_report(picks, sum);
}
