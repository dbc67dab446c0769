/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A3 expansion: recursion with a zeroed 1 KB buffer per frame performs an effect at the bottom. One run is one
 * coroutine, created, run to its end and deleted: its stack grows for the first time. fresh=1: the stack was never used
 * before. cold=1: the stack's memory is returned to the kernel (weft_stack_trim) before each run, which is not timed.
 * Otherwise an earlier coroutine has already grown the stack. plain=1: the recursion runs on the thread's own stack
 * (which is warm after the first lap).
 */
#include "mechanism.h"
#include <weft/weft.h>

WEFT_EFFECT(int64_t, bottom);

static LAB_NOINLINE int64_t expand(int64_t depth, bool perform)
{
	char buffer[1024];
	char *bytes = buffer;
	int64_t below;

	memset(buffer, 0, sizeof(buffer));
	LAB_KEEP(bytes);
	if (depth == 0)
		return perform ? bottom() : 1;
	below = expand(depth - 1, perform);
	LAB_KEEP(bytes);
	return below + 1 + bytes[depth & 1023];
}

static void *body(void *arg)
{
	int64_t *depth = arg;

	*depth = expand(*depth, true);
	return NULL;
}

static weft_coro_t *run(int64_t *depth)
{
	weft_attr_t attr = {.name = "expand", .stack_size = 256 * 1024};
	weft_coro_t *k = weft_create_with(body, depth, &attr);
	weft_request_t r;

	if (!k)
		lab_die("weft_create_with");
	weft_handle (r, k, bottom)
		weft_reply(bottom, r, 1);
	return k;
}

static int64_t run_fresh(int64_t depth, int64_t laps)
{
	weft_coro_t **kept = malloc((size_t)laps * sizeof(*kept));
	int64_t sum = 0, i, d;

	if (!kept)
		lab_die("malloc");
	lab_start();
	for (i = 0; i < laps; i++) {
		d = depth;
		kept[i] = run(&d);
		sum += d;
	}
	lab_stop();
	for (i = 0; i < laps; i++)
		weft_delete(kept[i]);
	free(kept);
	return sum;
}

static int64_t run_cold(int64_t depth, int64_t laps)
{
	int64_t sum = 0, i, d;

	for (i = 0; i < laps; i++) {
		weft_stack_trim();
		d = depth;
		lab_start();
		weft_delete(run(&d));
		lab_stop();
		sum += d;
	}
	return sum;
}

static int64_t run_warm(int64_t depth, int64_t laps, bool plain)
{
	int64_t sum = 0, i, d;

	for (i = -1; i < laps; i++) {
		if (i == 0)
			lab_start();
		d = depth;
		if (plain)
			d = expand(depth, false);
		else
			weft_delete(run(&d));
		sum += i < 0 ? 0 : d;
	}
	lab_stop();
	return sum;
}

int main(int argc, char **argv)
{
	int64_t depth = lab_number(argc, argv, "d", 100), laps = lab_number(argc, argv, "laps", 1), sum;

	lab_need_mechanism();
	if (lab_number(argc, argv, "fresh", 0))
		sum = run_fresh(depth, laps);
	else if (lab_number(argc, argv, "cold", 0))
		sum = run_cold(depth, laps);
	else
		sum = run_warm(depth, laps, lab_number(argc, argv, "plain", 0));
	return lab_report((uint64_t)laps, sum / laps);
}
