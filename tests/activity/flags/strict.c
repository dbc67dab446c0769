/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The macros, for strict standards of C and C++; a main with an environment that is declared before it is defined. */
#include <weft/charcoal.h>
#include <stdio.h>
#include <string.h>

int activity_main(int argc, char **argv, char **environment);
int activity_main(int argc, char **argv, char **environment);

static int sum;

static void add(int n)
{
	sum += n;
}

int activity_main(int argc, char **argv, char **environment)
{
	activity_t a;
	int x = 1, y = 2, i;
	struct {
		int a, b;
	} s = {3, 4};

	activate(&a)
	{
		x = 5;
	}
	activity_wait(&a);
	activate(&a, x)
	{
		add(x);
	}
	activity_wait(&a);
	activate(&a, x, y, s)
	{
		add(x + y + s.b);
	}
	activate_detached()
	{
		add(100);
	}
	activate_detached(x)
	{
		add(x);
	}
	activate_detached(x, y)
	{
		add(x + y);
	}
	no_yield
	{
		sum += no_yield_expr(x);
	}
	no_implicit_yield
	{
		add(1);
	}
	for (i = 0; i < 9; i++)
		yield();
	activity_wait(&a);
	if (sum == 134 && argc == 1 && argv[0] && environment[0] && strchr(environment[0], '='))
		return 0;
	printf("not ok - %d %d\n", sum, argc);
	return 1;
}
