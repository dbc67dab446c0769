/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects as programs use them: families, sets, values of any size, handlers that change from resume to resume. */
#include <string.h>

#include "suite.h"

struct record {
	char text[200];
	double number;
	uint64_t words[30];
};

WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
WEFT_FAMILY(log, (void, note, const char *, text, int, level), (int, notes));
WEFT_EFFECT(struct record, transform, struct record, in, float, factor);
WEFT_EFFECT(long double, precise, long double, x, __int128, y);
WEFT_EFFECT(int, ping);
WEFT_EFFECT(int, outer_ping, int, x);
WEFT_EFFECT(uint64_t, eight, uint64_t, a, uint64_t, b, uint64_t, c, uint64_t, d, double, e, double, f, char, g, _Bool,
	    h);
WEFT_EXCEPTION(broken, int, code, const char *, why);

/* ---- state ---------------------------------------------------------------------------------------------------- */

static void *countdown(void *argument)
{
	while (get() > 0)
		put(get() - 1);
	return argument;
}

static int64_t run_state(weft_coro_t *k, int64_t s)
{
	weft_request_t r;

	weft_handle (r, k, state) {
		switch (weft_op(state, r)) {
		case weft_case(get):
			weft_reply(get, r, s);
			break;
		case weft_case(put):
			s = weft_args(put, r)->value;
			break;
		default:
			CHECK(false);
		}
	}
	return s;
}

static void state_runs(void)
{
	weft_coro_t *k = make(countdown, &k);

	CHECK(run_state(k, 1000) == 0);
	weft_delete(k);
}

/* ---- through unrelated handlers --------------------------------------------------------------------------------- */

static void *under(void *argument)
{
	size_t levels = (size_t)argument;
	weft_coro_t *k;
	weft_request_t r;

	if (!levels)
		return countdown(NULL);
	k = make(under, (void *)(levels - 1));
	weft_handle (r, k, ping, transform)
		CHECK(false);
	weft_delete(k);
	return NULL;
}

static void through_handlers(void)
{
	for (size_t levels = 1; levels < 30; levels += 7) {
		weft_coro_t *k = make(under, (void *)levels);

		CHECK(run_state(k, 20) == 0);
		weft_delete(k);
	}
}

/* ---- values of any size ------------------------------------------------------------------------------------------ */

static void *values(void *argument)
{
	struct record in = {.text = "text", .number = 2.5, .words = {[29] = 99}}, out;
	long double x = precise(1.0L / 3, (__int128)1 << 100);

	CHECK(x == 1.0L / 3 * 2);
	for (int i = 0; i < 10; i++) {
		out = transform(in, 2.0f);
		CHECK(!strcmp(out.text, "transformed") && out.number == 5.0 && out.words[29] == 100 &&
		      out.words[0] == 0);
	}
	CHECK(eight(1, 2, 3, 4, 5.5, 6.5, 'g', true) == 1 + 2 + 3 + 4 + 12 + 'g' + 1);
	CHECK(ping() == 0); /* no handler replies: zero */
	return argument;
}

static void answer(weft_request_t r)
{
	if (weft_is(transform, r)) {
		struct record reply = weft_args(transform, r)->in;

		strcpy(reply.text, "transformed");
		reply.number *= (double)weft_args(transform, r)->factor;
		reply.words[29]++;
		weft_reply(transform, r, reply);
	} else if (weft_is(precise, r)) {
		CHECK(weft_args(precise, r)->y == (__int128)1 << 100);
		weft_reply(precise, r, weft_args(precise, r)->x * 2);
	} else if (weft_is(eight, r)) {
		weft_args_t(eight) *a = weft_args(eight, r);

		weft_reply(eight, r, a->a + a->b + a->c + a->d + (uint64_t)(a->e + a->f) + (uint64_t)a->g + a->h);
	} else {
		CHECK(weft_is(ping, r));
	}
}

static void large_values(void)
{
	weft_coro_t *k = make(values, NULL);
	weft_request_t r;

	weft_handle (r, k, transform, precise, eight, ping)
		answer(r);
	weft_delete(k);
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

/* The inner handler handles some of the effects, the outer handler the rest. */
static void *mixed_performer(void *argument)
{
	note("first", 1);
	CHECK(get() == 11);
	CHECK(notes() == 41);
	put(5);
	CHECK(ping() == 12);
	CHECK(outer_ping(3) == 43);
	note("second", 2);
	return argument;
}

static void *mixed_handler(void *argument)
{
	weft_coro_t *k = make(mixed_performer, argument);
	weft_request_t r;
	int puts = 0;

	weft_handle (r, k, state, ping, note) {
		if (weft_is(get, r))
			weft_reply(get, r, 11);
		else if (weft_is(ping, r))
			weft_reply(ping, r, 12);
		else if (weft_is(put, r))
			puts += (int)weft_args(put, r)->value;
		else
			CHECK(weft_is(note, r) && weft_args(note, r)->level >= 1);
	}
	CHECK(puts == 5);
	weft_delete(k);
	return argument;
}

static void mixed_sets(void)
{
	weft_coro_t *k = make(mixed_handler, &k);
	weft_request_t r;

	weft_handle (r, k, log, outer_ping, state) {
		if (weft_is(notes, r))
			weft_reply(notes, r, 41);
		else if (weft_is(outer_ping, r))
			weft_reply(outer_ping, r, 40 + weft_args(outer_ping, r)->x);
		else
			CHECK(false);
	}
	CHECK(r.payload == &k);
	weft_delete(k);
}

/* A different set with each resume. */
static void *sheep(void *argument)
{
	weft_coro_t *k = make(argument, NULL);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ping));

	CHECK(weft_is(ping, r));
	weft_reply(ping, r, 1);
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE); /* the second request goes to the outer handler */
	CHECK(weft_returned(r) || weft_is(ping, r));
	if (!weft_returned(r)) {
		weft_reply(ping, r, 3);
		r = weft_resume(k, NULL, WEFT_HANDLE_ALL);
	}
	CHECK(weft_returned(r));
	weft_delete(k);
	return NULL;
}

static void *three_pings(void *argument)
{
	CHECK(ping() == 1);
	CHECK(ping() == 2);
	CHECK(ping() == 4);
	return argument;
}

static void changing_sets(void)
{
	weft_coro_t *k = make(sheep, (void *)three_pings);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ping));

	CHECK(weft_is(ping, r) && weft_state(k) == WEFT_SUSPENDED);
	weft_reply(ping, r, 2);
	r = weft_resume(k, NULL, WEFT_HANDLE_ALL);
	CHECK(weft_is(ping, r));
	weft_reply(ping, r, 4);
	r = weft_resume(k, NULL, weft_handles());
	CHECK(weft_returned(r));
	weft_delete(k);
}

/* ---- exceptions, locating ---------------------------------------------------------------------------------------- */

static void *thrower(void *argument)
{
	weft_coro_t *k;

	if (!argument)
		broken(42, "because");
	k = make(thrower, (char *)argument - 1);
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	CHECK(false);
	return NULL;
}

static void exceptions(void)
{
	for (size_t depth = 0; depth < 10; depth++) {
		weft_coro_t *k = make(thrower, (void *)depth);
		weft_request_t r = weft_resume(k, NULL, weft_handles(broken));

		CHECK(weft_is(broken, r) && weft_args(broken, r)->code == 42);
		CHECK(!strcmp(weft_args(broken, r)->why, "because"));
		CHECK(weft_state(k) == WEFT_FINISHED);
		weft_delete(k); /* and the coroutines that it made */
	}
}

static void *located(void *argument)
{
	weft_coro_t *k = weft_locate(outer_ping);
	int sum = 0;

	CHECK(k && k != weft_current() && !weft_locate(precise));
	for (int i = 0; i < 100; i++)
		sum += weft_perform_at(outer_ping, k, i);
	CHECK(sum == 9900);
	return argument;
}

static void *around_located(void *argument)
{
	weft_coro_t *k = make(located, argument);

	CHECK(weft_returned(weft_resume(k, NULL, weft_handles(ping))));
	weft_delete(k);
	return argument;
}

static void locating(void)
{
	weft_coro_t *k = make(around_located, NULL);
	weft_request_t r;

	weft_handle (r, k, outer_ping)
		weft_reply(outer_ping, r, 2 * weft_args(outer_ping, r)->x);
	weft_delete(k);
}

/* ---- exceptions thrown into a suspended coroutine ---------------------------------------------------------------- */

enum { THROWS = 200 };

/* The steps that have run, as digits; below a frame that is large enough to be in another chunk. */
static int64_t ran;

static void runs(void *digit)
{
	ran = ran * 10 + (int64_t)(size_t)digit;
}

__attribute__((noinline)) static int waits(int depth)
{
	char large[3000];
	int got;

	__asm__ volatile("" : : "r"(large) : "memory");
	weft_defer(runs, (void *)(size_t)depth);
	got = depth ? waits(depth - 1) : ping();
	__asm__ volatile("" : : "r"(large) : "memory");
	return got + 1;
}

static void *waits_deep(void *argument)
{
	waits(2);
	CHECK(false);
	return argument;
}

static void *on_ping(void *state, weft_resumption_t *k)
{
	int *times = state;

	CHECK(weft_performer(k) != NULL);
	return (char *)weft_continue_throw(k, broken, ++*times, "in its place") + 1;
}

static void *on_broken(void *state, int code, const char *why)
{
	CHECK(code == *(int *)state && !strcmp(why, "in its place") && ran == 12);
	return (void *)(size_t)code;
}

WEFT_HANDLER(throws, weft_general(ping, on_ping), weft_abort(broken, on_broken));
WEFT_HANDLER(catches, weft_abort(broken, on_broken));

/* The handler of the exception is within the body, which continues. */
static void *catches_it(void *state)
{
	int64_t n = *(int *)state;

	for (int i = 0; i < 3; i++) {
		ran = 0;
		CHECK((int)(size_t)weft_run(&catches, state, waits_deep, NULL) == ++n);
	}
	ran = 0;
	return NULL;
}

static void *yields(void *argument)
{
	weft_coro_t *inner = argument;

	weft_defer(runs, (void *)3);
	if (inner)
		weft_resume(inner, NULL, weft_handles(precise));
	else
		weft_yield(weft_parent(weft_current()), &weft_suspended, NULL);
	CHECK(false);
	return NULL;
}

static void thrown_into(void)
{
	weft_coro_t *inner, *k;
	weft_request_t r;

	for (int i = 0, n; i < THROWS; i++) {
		n = i;
		ran = 0;
		CHECK((size_t)weft_run(&throws, &n, waits_deep, NULL) == (size_t)i + 2 && ran == 12);
		CHECK((size_t)weft_run(&throws, &n, catches_it, &n) == 3 && n == i + 4);
		/* Suspended from below: the innermost suspended coroutine performs it. */
		inner = make(yields, NULL);
		k = make(yields, inner);
		CHECK(weft_resume(k, NULL, weft_handles()).effect == &weft_suspended &&
		      weft_state(inner) == WEFT_RUNNING);
		ran = 0;
		r = weft_resume_throw(k, weft_handles(broken), broken, i, "now");
		CHECK(weft_is(broken, r) && weft_args(broken, r)->code == i &&
		      !strcmp(weft_args(broken, r)->why, "now"));
		CHECK(ran == 33 && weft_state(k) == WEFT_FINISHED && weft_state(inner) == WEFT_FINISHED);
		weft_delete(k);
		weft_delete(inner);
		/* A loop and a table. */
		k = make(waits_deep, NULL);
		ran = 0;
		CHECK(weft_is(ping, weft_resume(k, NULL, weft_handles(ping))) && !ran);
		r = weft_resume_throw_under(k, &catches, &n, broken, i, "later");
		CHECK(weft_is(broken, r) && weft_args(broken, r)->code == i && ran == 12);
		weft_delete(k);
	}
}

/* ---- work after the resume --------------------------------------------------------------------------------------- */

static void *emit_all(void *argument)
{
	for (int i = 0; i < (int)(size_t)argument; i++)
		outer_ping(i);
	return NULL;
}

static int non_tail(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(outer_ping));
	int x;

	if (weft_returned(r))
		return 0;
	x = weft_args(outer_ping, r)->x;
	return non_tail(k) * 2 % 10007 + x;
}

static void non_tail_handlers(void)
{
	weft_coro_t *k = make(emit_all, (void *)100);
	int expected = 0;

	for (int i = 99; i >= 0; i--)
		expected = expected * 2 % 10007 + i;
	CHECK(non_tail(k) == expected);
	weft_delete(k);
}

void test_effects(void)
{
	state_runs();
	through_handlers();
	large_values();
	mixed_sets();
	changing_sets();
	exceptions();
	thrown_into();
	locating();
	non_tail_handlers();
}
