/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* B5 nqueens without effects: the usual recursion, which tries each row of a column and backtracks. */
#include "lab.h"

enum { LARGEST = 16 };

static uint64_t picks;

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

static int64_t place(int8_t *rows, int size, int column)
{
	int64_t sum = 0;
	int row;

	if (column == size)
		return 1;
	picks += (uint64_t)size;
	for (row = 0; row < size; row++) {
		if (!safe(rows, column, row))
			continue;
		rows[column] = (int8_t)row;
		sum += place(rows, size, column + 1);
	}
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), sum;
	int8_t rows[LARGEST];

	if (n > LARGEST)
		lab_die("n");
	lab_start();
	sum = place(rows, (int)n, 0);
	lab_stop();
	return lab_report(picks, sum);
}
