/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scenarios that end in an unexpected way: the lane must find each. */
#include "scenario.h"

static void wrong_text(void)
{
	fputs("weft: something else\n", stderr);
	_exit(0);
}

static void survives(void)
{
}

static void dies(void)
{
	raise(SIGSEGV);
}

int main(int count, char **arguments)
{
	static const struct scenario scenarios[] = {
	    {"wrong text", wrong_text, 0, NULL},
	    {"survives", survives, SIGSEGV, NULL},
	    {"dies", dies, 0, NULL},
	};

	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
