/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* countdown.c: mutable state as an effect, handled by a table. state.c does the same with a loop. */
/* doc: begin countdown */
#include <stdio.h>
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

static void *countdown(void *arg)
{
	while (get() > 0)
		put(get() - 1);
	return arg;
}

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

WEFT_HANDLER(in_memory, weft_tail(get, on_get), weft_tail(put, on_put));

int main(void)
{
	int state = 100;

	if (!weft_run(&in_memory, &state, countdown, &state)) {
		perror("countdown");
		return 1;
	}
	printf("counted down to %d\n", state);
}
/* doc: end */
