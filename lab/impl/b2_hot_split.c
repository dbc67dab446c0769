/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B2 hot split: a call in a loop, made at every depth of a stack. If a mechanism checks for room at each call, some
 * depth is the worst: the caller just fits, the callee does not.
 *
 * The program goes through all depths `passes` times. At each depth, in frames below the coroutine's function, it makes
 * `calls` calls `tries` times. The fastest try of a depth in all passes counts, so a stack that grows once is not
 * charged for it, and a stack that grows at every call is. The tries of one pass are not enough: they take
 * microseconds, and a shared machine is disturbed for longer every few milliseconds, so some depth would look several
 * times slower than it is. The tries of the next pass come later by the duration of a pass.
 *
 * The memory of each stack was returned to the kernel before; after `together` depths a new stack follows. plain=1: on
 * the thread's own stack. "worst" and "average" over all depths are seconds per call.
 */
#include "deep.h"
#include "lab.h"

struct sweep {
	int64_t depths, together, calls, tries, passes;
	int64_t depth, last; /* the depth at which to call now, and the last depth before the stack is changed */
	int64_t *best;	     /* nanoseconds of the fastest try, by depth */
	int64_t made, clock;
};

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/*
 * The callee contains a call that it never makes: a leaf function needs no check, because its caller's check leaves
 * room for it, so it would not show the cost that is measured here.
 */
static LAB_NOINLINE void elsewhere(void)
{
	__asm__ volatile("");
}

static LAB_NOINLINE void callee(bool call)
{
	if (call)
		elsewhere();
	__asm__ volatile("");
}

static LAB_NOINLINE void loop(int64_t calls)
{
	bool never = false;
	int64_t i;

	LAB_HIDE(never);
	for (i = 0; i < calls; i++)
		callee(never);
}

/*
 * The clock is read before and after, from the frame that called the loop: nothing else happens at the loop's depth.
 * The clock is one that needs no system call. A try that was interrupted is not the fastest.
 */
static LAB_NOINLINE void measure(struct sweep *s)
{
	int64_t *best = &s->best[s->depth];
	int64_t i, began, spent;

	for (i = 0; i < s->tries; i++) {
		began = lab_now(CLOCK_MONOTONIC);
		loop(s->calls);
		spent = lab_now(CLOCK_MONOTONIC) - began;
		if (spent < *best)
			*best = spent;
	}
	s->made += s->calls * s->tries;
}

/* The time for reading the clock twice. */
static int64_t clock_cost(void)
{
	int64_t i, began, spent, best = INT64_MAX;

	for (i = 0; i < 1000; i++) {
		began = lab_now(CLOCK_MONOTONIC);
		spent = lab_now(CLOCK_MONOTONIC) - began;
		if (spent < best)
			best = spent;
	}
	return best;
}

static LAB_NOINLINE int64_t descend(struct sweep *s, int64_t frames)
{
	int64_t below;

	if (frames == 0) {
		measure(s);
		return 0;
	}
	below = descend(s, frames - 1);
	LAB_HIDE(below);
	return below + 1;
}

static void *body(void *arg)
{
	struct sweep *s = arg;

	for (; s->depth <= s->last; s->depth++)
		descend(s, s->depth);
	return NULL;
}

static void on_a_fresh_stack(struct sweep *s)
{
	enum { FRAME = 32 };
	weft_attr_t attr = {.name = "hot split", .stack_size = lab_stack_for((size_t)s->last * FRAME)};
	weft_coro_t *k;

	weft_stack_trim();
	k = weft_create_with(body, s, &attr);
	if (!k)
		lab_die("weft_create_with");
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

static void sweep(struct sweep *s, bool plain)
{
	for (s->depth = 0; s->depth < s->depths;) {
		s->last = (s->depth + s->together < s->depths ? s->depth + s->together : s->depths) - 1;
		if (plain)
			body(s);
		else
			on_a_fresh_stack(s);
	}
}

static double per_call(const struct sweep *s, int64_t depth)
{
	return (double)(s->best[depth] - s->clock) * 1e-9 / (double)s->calls;
}

static int report(const struct sweep *s)
{
	double worst = 0, total = 0;
	int64_t depth, worst_at = 0;
	char more[160], result[32];

	for (depth = 0; depth < s->depths; depth++) {
		total += per_call(s, depth);
		if (per_call(s, depth) > worst) {
			worst = per_call(s, depth);
			worst_at = depth;
		}
	}
	snprintf(more, sizeof(more), ", \"worst\": %.4e, \"average\": %.4e, \"worst_depth\": %" PRId64, worst,
		 total / (double)s->depths, worst_at);
	snprintf(result, sizeof(result), "%" PRId64, s->made);
	return lab_report_more((uint64_t)s->made, result, more);
}

int main(int argc, char **argv)
{
	struct sweep s = {
	    .depths = lab_number(argc, argv, "depths", 300),
	    .together = lab_number(argc, argv, "together", 1),
	    .calls = lab_number(argc, argv, "calls", 40000),
	    .tries = lab_number(argc, argv, "tries", 2),
	    .passes = lab_number(argc, argv, "passes", 3),
	    .clock = clock_cost(),
	};
	int64_t i;

	s.best = malloc((size_t)s.depths * sizeof(*s.best));
	if (!s.best)
		lab_die("malloc");
	for (i = 0; i < s.depths; i++)
		s.best[i] = INT64_MAX;
	lab_start();
	for (i = 0; i < s.passes; i++)
		sweep(&s, lab_number(argc, argv, "plain", 0));
	lab_stop();
	return report(&s);
}
