/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 triples without effects: backtracking by hand. Each flip pushes a point, with the whole state of the search, on a
 * stack of flips whose second outcome remains; a failure returns to the newest point.
 */
#include "lab.h"

enum { MODULUS = 1000000007, NUMBERS = 3, DEEPEST = 1024 };

struct point {
	int taken; /* number of chosen numbers */
	int64_t number[NUMBERS];
	int64_t most; /* upper bound of the next number */
};

static struct point points[DEEPEST];
static uint64_t flips;

static int64_t value(const int64_t *number, int64_t n)
{
	if (number[0] + number[1] + number[2] != n)
		return 0;
	return (53 * number[0] + 2809 * number[1] + 148877 * number[2]) % MODULUS;
}

static int64_t triples(int64_t n)
{
	struct point *top = points, now = {0, {0}, n};
	int64_t sum = 0;

	for (;;) {
		if (now.most >= 1) {
			flips++;
			*top = now; /* remains to be tried: without this number */
			top++->most--;
			now.number[now.taken++] = now.most--;
			if (now.taken < NUMBERS)
				continue;
			sum = (sum + value(now.number, n)) % MODULUS;
		}
		if (top == points)
			return sum;
		now = *--top;
	}
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), sum;

	if (n > DEEPEST)
		lab_die("n");
	lab_start();
	sum = triples(n);
	lab_stop();
	return lab_report(flips, sum);
}
