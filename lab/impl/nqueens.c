/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 nqueens: how many ways are there to place n queens on an n x n board? A program places one queen a column, asks
 * pick(n) for each row, and performs fail() where two would attack each other; the handler resumes each pick with every
 * row. The board lies on the coroutine's stack, so that going back is copying it. Needs the policy "copy".
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

/* Where k, the only one that runs, stood at each pick on the way. */
static weft_coro_t *tries[LARGEST];
static uint64_t picks;

/* Solutions from where k waits for a row. */
static int64_t solve(weft_coro_t *k, weft_request_t r, int depth)
{
	int size = weft_args(pick, r)->size, row = 0;
	int64_t sum = 0;
	weft_request_t next;

	picks += (uint64_t)size;
	if (weft_clone_into(tries[depth], k))
		lab_die("weft_clone_into");
	for (;;) {
		weft_reply(pick, r, row); /* k lies where the request points */
		next = weft_resume(k, NULL, weft_handles(search));
		if (weft_is(pick, next))
			sum += solve(k, next, depth + 1);
		else
			sum += weft_returned(next);
		if (++row == size)
			return sum;
		if (weft_clone_into(k, tries[depth]))
			lab_die("weft_clone_into");
	}
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), sum;
	weft_attr_t attr = {.policy = WEFT_COPY};
	weft_coro_t *k;
	int i;

	if (n > LARGEST)
		lab_die("n");
	k = weft_create_with(place, (void *)(intptr_t)n, &attr);
	for (i = 0; i < n; i++)
		tries[i] = weft_create_with(place, NULL, &attr);
	if (!k || !tries[n - 1])
		lab_die("weft_create_with");
	lab_start();
	sum = solve(k, weft_resume(k, NULL, weft_handles(search)), 0);
	lab_stop();
	for (i = 0; i < n; i++)
		weft_delete(tries[i]);
	weft_delete(k);
	return lab_report(picks, sum);
}
