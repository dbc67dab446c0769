/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B2 hot split: a call in a loop, made at every depth of a stack. Where a mechanism looks for room at each call, some
 * depth is the worst: the caller just fits, the callee does not.
 *
 * At each depth, in frames below the coroutine's function, `tries` times `calls` calls are made; the fastest try
 * counts, so that growing once is not counted and growing at every call is. Stacks are ones that were given back to
 * the kernel before, a new one after `together` depths. m: multiplications in the callee. plain=1: on the
 * thread's own stack. "worst" and "average" over all depths are seconds per call.
 */
#include "deep.h"
#include "lab.h"

struct sweep {
	int64_t m, depths, together, calls, tries;
	int64_t depth, last; /* where to call now, and last before the stack is changed */
	double worst, total;
	int64_t worst_at, made, clock;
};

/* ---- callees: m multiplications that wait for one another --------------------------------------------------- */

/*
 * Each could call something, and never does: a function that calls nothing needs no look for room, because its caller
 * left some, and would not show what is measured here.
 */
static LAB_NOINLINE void elsewhere(void)
{
	__asm__ volatile("");
}

#define FIVE(x) ((x)*1.000001 * 0.999999 * 1.000001 * 0.999999 * 1.000001)

static LAB_NOINLINE void callee_0(bool call)
{
	if (call)
		elsewhere();
	__asm__ volatile("");
}

#define CALLEE(m, product)                                                                                             \
	static LAB_NOINLINE double callee_##m(double x, bool call)                                                     \
	{                                                                                                              \
		if (call)                                                                                              \
			elsewhere();                                                                                   \
		return product;                                                                                        \
	}

CALLEE(5, FIVE(x))
CALLEE(10, FIVE(FIVE(x)))
CALLEE(15, FIVE(FIVE(FIVE(x))))
CALLEE(20, FIVE(FIVE(FIVE(FIVE(x)))))

/* ---- the loops -------------------------------------------------------------------------------------------------- */

#define LOOP(m, call)                                                                                                  \
	static LAB_NOINLINE double loop_##m(int64_t calls)                                                             \
	{                                                                                                              \
		bool never = false;                                                                                    \
		double x = 1;                                                                                          \
		int64_t i;                                                                                             \
                                                                                                                       \
		LAB_HIDE(never);                                                                                       \
		for (i = 0; i < calls; i++)                                                                            \
			call;                                                                                          \
		return x;                                                                                              \
	}

LOOP(0, callee_0(never))
LOOP(5, x = callee_5(x, never))
LOOP(10, x = callee_10(x, never))
LOOP(15, x = callee_15(x, never))
LOOP(20, x = callee_20(x, never))

/*
 * The clock is read before and after, from the frame that called the loop: nothing else happens at the loop's depth. It
 * is the one that needs no system call; a try that was interrupted is not the fastest.
 */
static LAB_NOINLINE double per_call(struct sweep *s, int64_t tries)
{
	double (*const loop)(int64_t) = s->m == 0    ? loop_0
					: s->m == 5  ? loop_5
					: s->m == 10 ? loop_10
					: s->m == 15 ? loop_15
						     : loop_20;
	int64_t i, began, spent, best = INT64_MAX;
	double x;

	for (i = 0; i < tries; i++) {
		began = lab_now(CLOCK_MONOTONIC);
		x = loop(s->calls);
		spent = lab_now(CLOCK_MONOTONIC) - began;
		__asm__ volatile("" : : "x"(x));
		if (spent < best)
			best = spent;
	}
	return (double)(best - s->clock) * 1e-9 / (double)s->calls;
}

/* What looks like the worst so far is tried again: of thousands of depths one is always disturbed each time. */
static LAB_NOINLINE void measure(struct sweep *s)
{
	enum { AGAIN = 20 };
	double each = per_call(s, s->tries);

	s->made += s->calls * s->tries;
	s->total += each;
	if (each > s->worst)
		each = per_call(s, AGAIN);
	if (each > s->worst) {
		s->worst = each;
		s->worst_at = s->depth;
	}
}

/* What reading the clock twice takes. */
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
	while (s->depth < s->depths) {
		s->last = s->depth + s->together - 1;
		if (plain)
			body(s);
		else
			on_a_fresh_stack(s);
	}
}

int main(int argc, char **argv)
{
	struct sweep s = {
	    .m = lab_number(argc, argv, "m", 0),
	    .depths = lab_number(argc, argv, "depths", 300),
	    .together = lab_number(argc, argv, "together", 1),
	    .calls = lab_number(argc, argv, "calls", 40000),
	    .tries = lab_number(argc, argv, "tries", 5),
	    .clock = clock_cost(),
	};
	char more[160], result[32];

	lab_start();
	sweep(&s, lab_number(argc, argv, "plain", 0));
	lab_stop();
	snprintf(more, sizeof(more), ", \"worst\": %.4e, \"average\": %.4e, \"worst_depth\": %" PRId64, s.worst,
		 s.total / (double)s.depths, s.worst_at);
	snprintf(result, sizeof(result), "%" PRId64, s.made);
	return lab_report_more((uint64_t)s.made, result, more);
}
