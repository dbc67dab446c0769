/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls of E as plain C, also for gcc's -fsplit-stack: a tree of calls, and a linear chain of them.
 *
 *   ./program case=calls n=COUNT
 *   ./program case=linear n=DEPTH laps=TIMES
 */
#include "activities.h"

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 8), laps = lab_number(argc, argv, "laps", 1), result = 0;

	if (lab_is(argc, argv, "case", "linear")) {
		lab_start();
		for (int64_t i = 0; i < laps; i++)
			result += linear((int)n);
		lab_stop();
		return lab_report((uint64_t)(laps * (n + 1)), result);
	}
	lab_start();
	result = call((int)n, 1);
	lab_stop();
	return lab_report(2 * (uint64_t)n - 1, result);
}
