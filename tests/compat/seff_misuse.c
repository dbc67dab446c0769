/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wrong programs, one for each argument: each must end with one line that names the mistake. C and C++. */
#include <stdio.h>
#include <string.h>

#include "seff.h"

DEFINE_EFFECT(ask, 3, int, {});
DEFINE_EFFECT(fail, 4, void, { int code; });

static void *asks(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)PERFORM(ask);
}

static void *fails(void *arg)
{
	(void)arg;
	THROW(fail, 1);
}

static void *by_number(void *arg)
{
	return seff_perform(64, arg);
}

static void *finishes(void *arg)
{
	return arg;
}

static void *ignores(void *arg)
{
	return arg;
}

static int deep(int n)
{
	volatile char frame[256];

	frame[n % 256] = 1;
	return n == 0 ? 0 : deep(n - 1) + frame[n % 256];
}

static void *recurses(void *arg)
{
	return (void *)(intptr_t)deep((int)(intptr_t)arg);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	seff_coroutine_t *k = seff_coroutine_new(finishes, NULL);

	if (!strcmp(what, "outside")) {
		PERFORM(ask);
	} else if (!strcmp(what, "unhandled")) {
		k = seff_coroutine_new(asks, NULL);
		seff_resume(k, NULL, HANDLES(fail));
	} else if (!strcmp(what, "thrown")) {
		k = seff_coroutine_new(fails, NULL);
		seff_resume(k, NULL, HANDLES(ask));
	} else if (!strcmp(what, "returned")) {
		seff_set_default_handler(EFF_ID(fail), ignores);
		THROW(fail, 2);
	} else if (!strcmp(what, "number")) {
		k = seff_coroutine_new(by_number, NULL);
		seff_resume(k, NULL, HANDLES(ask));
	} else if (!strcmp(what, "finished")) {
		seff_resume(k, NULL, 0);
		seff_resume(k, NULL, 0);
	} else if (!strcmp(what, "deleted")) {
		seff_coroutine_delete(k);
		seff_coroutine_delete(k);
	} else if (!strcmp(what, "default")) {
		seff_set_default_handler(64, ignores);
	} else if (!strcmp(what, "overflow")) {
		k = seff_coroutine_new(recurses, (void *)(intptr_t)10000000);
		seff_resume(k, NULL, 0);
	}
	return 0;
}
