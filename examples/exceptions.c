/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * exceptions.c: throwing through several coroutines, and trying again. An exception ends the coroutine that its handler
 * resumed, and all coroutines inside it, and saves nothing; a reset starts that coroutine again on the stack it has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin declare */
WEFT_EXCEPTION(host_down, const char *, host, int, attempt);
WEFT_EFFECT(void, report_progress, const char *, what);
/* doc: end */

/* ---- three layers, each a coroutine inside the layer before ---- */

struct download {
	int attempt; /* number of attempts so far */
	int fails;   /* number of attempts that fail */
	int depth;   /* number of layers between this code and connect_to */
	int bytes;
};

/* doc: begin throw */
static void *connect_to(void *arg)
{
	struct download *download = arg;

	report_progress("connecting");
	if (download->attempt <= download->fails)
		host_down("mirror.example", download->attempt); /* does not return */
	download->bytes = 1024 * download->attempt;
	return NULL;
}

/* A layer that handles unrelated effects: the exception ends it without resuming it. */
static void *layer(void *arg)
{
	struct download *download = arg;
	weft_coro_t *k = must(weft_create(download->depth-- ? layer : connect_to, download));

	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return NULL;
}
/* doc: end */

/* doc: begin retry */
/* Up to three attempts. Returns whether one succeeded. */
static bool fetch(struct download *download)
{
	weft_coro_t *k = must(weft_create(layer, download));
	weft_request_t r;
	bool done;

	do {
		download->attempt++;
		download->depth = 2;
		weft_handle (r, k, host_down, report_progress) {
			if (weft_is(host_down, r))
				break;
			printf("  %s, attempt %d\n", weft_args(report_progress, r)->what, download->attempt);
		}
		done = weft_returned(r);
		if (!done) {
			printf("  %s is down\n", weft_args(host_down, r)->host);
			weft_reset(k, layer, download);
		}
	} while (!done && download->attempt < 3);
	weft_delete(k);
	return done;
}
/* doc: end */

static size_t live_coroutines(void)
{
	weft_stack_stats_t stats;

	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	return stats.live;
}

/* The default handler runs if no handler handles the exception. */
static __attribute__((noreturn)) void give_up(const char *host, int attempt)
{
	printf("nobody handles that %s is down (attempt %d): the default handler ends the program\n", host, attempt);
	exit(0);
}

int main(void)
{
	weft_set_failure_hook(must_not_fail);
	for (int fails = 0; fails <= 3; fails++) {
		struct download download = {.fails = fails};

		printf("a host that fails %d times:\n", fails);
		if (fetch(&download))
			printf("  got %d bytes\n", download.bytes);
		else
			printf("  gave up\n");
	}
	printf("coroutines left: %zu\n", live_coroutines());
	weft_set_default(host_down, give_up);
	host_down("localhost", 1);
}
