/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The lane must notice a failing test and a test that crashes. */
#include "unit.h"

static void fails(void **state)
{
	assert_null(state);
}

static void crashes(void **state)
{
	(void)state;
	*(volatile int *)8 = 1;
}

int main(int arguments, char **argument)
{
	const struct CMUnitTest failing[] = {T(fails)}, crashing[] = {cmocka_unit_test(crashes)};

	(void)argument;
	return arguments > 1 ? cmocka_run_group_tests(crashing, NULL, NULL)
			     : cmocka_run_group_tests(failing, NULL, NULL);
}
