/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects of both kinds: an effect that a tail clause of weft/handler.h performs by seff.h goes to handlers outside its
 * own. */
#include <stdio.h>
#include <weft/weft.h>

#include "seff.h"

DEFINE_EFFECT(ask, 7, int, {});
DEFINE_EFFECT(stop, 8, void, {});
WEFT_EFFECT(int, twice, int, value);

static int twice_of_what_is_asked(void *state, int value)
{
	(void)state;
	return 2 * value + PERFORM(ask);
}

WEFT_HANDLER(doubles, weft_tail(twice, twice_of_what_is_asked));

/* The clause is called here, inside of two handlers of `ask`. */
static void *innermost(void *arg)
{
	int *results = (int *)arg;

	results[0] = PERFORM(ask);
	results[1] = twice(10);
	results[2] = PERFORM(ask);
	PERFORM(stop);
	return NULL;
}

static void *answered(seff_start_fun_t *body, void *arg, int answer, effect_set set)
{
	seff_coroutine_t *k = seff_coroutine_new(body, arg);
	seff_request_t request = seff_resume(k, NULL, set);

	for (; request.effect == EFF_ID(ask); request = seff_resume(k, (void *)(uintptr_t)answer, set))
		;
	printf("  %d: %s\n", answer, seff_finished(request) ? "finished" : "stopped");
	seff_coroutine_delete(k);
	return arg;
}

static void *inside(void *arg)
{
	return answered(innermost, arg, 3, HANDLES(ask));
}

static void *doubling(void *arg)
{
	return weft_run(&doubles, NULL, inside, arg);
}

int main(void)
{
	int results[3];

	answered(doubling, results, 100, HANDLES(ask) | HANDLES(stop));
	printf("%d %d %d\n", results[0], results[1], results[2]);
	return 0;
}
