/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls of E as plain C, for compilers that have stacks of their own: gcc's -fsplit-stack. */
#include "activities.h"

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 8), result;

	lab_start();
	result = call((int)n, 1);
	lab_stop();
	return lab_report(2 * (uint64_t)n - 1, result);
}
