/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects: declaring, finding handlers, sets, defaults, accessors. Conformance has the switching. */
#include "unit.h"

#include <pthread.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_FAMILY(other, (int, other_get), (void, other_put, int, value));
WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, tell, int, a, const char *, b);
WEFT_EFFECT(double, measure, float, x);
WEFT_EFFECT(int, defaulted, int, x);
WEFT_EFFECT(void, silent);
WEFT_EXCEPTION(oops, int, code);
WEFT_EFFECT(int, apply, int (*)(int), f, int[3], to, const int, which);
WEFT_EFFECT(int, named_as_ours, int, state, int, k, int, frame, int, r, int, fn, int, value, int, weft, int, name);

static void declared_once(void **state)
{
	(void)state;
	assert_string_equal(weft_effect_ask.name, "ask");
	assert_string_equal(weft_effect_ask.signature, "int ask()");
	assert_string_equal(weft_effect_tell.signature, "int tell(int, const char *)");
	assert_ptr_equal(weft_effect_ask.family, &weft_effect_ask);
	assert_ptr_equal(weft_effect_get.family, &weft_effect_state);
	assert_ptr_equal(weft_effect_put.family, &weft_effect_state);
	assert_ptr_equal(weft_effect_state.family, &weft_effect_state);
	assert_int_equal(weft_effect_get.index, 0);
	assert_int_equal(weft_effect_put.index, 1);
	assert_int_equal(weft_case(other_put), 1);
	assert_ptr_not_equal(&weft_effect_get, &weft_effect_other_get);
}

/* Types that cannot be written before a name, arrays and constants, as for parameters in C. */
static int twice(int x)
{
	return 2 * x;
}

static void *applies(void *argument)
{
	int to[3] = {5, 6, 7};

	*(int *)argument = apply(twice, to, 2);
	return argument;
}

static int apply_now(void *state, int (*f)(int), int *to, int which)
{
	(void)state;
	return f(to[which]);
}

static void *apply_instead(void *state, int (*f)(int), int *to, int which)
{
	*(int *)state = f(to ? which : 0);
	return state;
}

WEFT_HANDLER(in_place, weft_tail(apply, apply_now));
WEFT_HANDLER(instead, weft_abort(apply, apply_instead));

static void odd_types(void **state)
{
	int result = 0;
	weft_coro_t *k;
	weft_request_t r;

	(void)state;
	weft_run(&in_place, NULL, applies, &result);
	assert_int_equal(result, 14);
	weft_run(&instead, &result, applies, NULL);
	assert_int_equal(result, 4);
	k = weft_create(applies, &result);
	weft_handle (r, k, apply) {
		weft_args_t(apply) *args = weft_args(apply, r);

		weft_reply(apply, r, args->f(args->to[args->which - 1]));
	}
	assert_int_equal(result, 12);
	weft_delete(k);
}

/* ---- handlers found ---------------------------------------------------------------------------------------------- */

static weft_coro_t *found[8];

static void *locate_all(void *argument)
{
	found[0] = weft_locate(get);
	found[1] = weft_locate(put);
	found[2] = weft_locate(other_get);
	found[3] = weft_locate(ask);
	found[4] = weft_locate(tell);
	found[5] = weft_locate(oops);
	return argument;
}

static void *between(void *argument)
{
	weft_coro_t *k = weft_create(locate_all, NULL);

	weft_resume(k, NULL, *(weft_handles_t *)argument);
	weft_delete(k);
	return k;
}

enum { GET = 1, PUT = 2, OTHER = 4, ASK = 8, TELL = 16, OOPS = 32, EVERYTHING = 63 };

/* Returns which effects this set handles, as the innermost handler. */
static int handled(weft_handles_t inner)
{
	weft_coro_t *k = weft_create(between, &inner);
	weft_coro_t *inside = weft_resume(k, NULL, WEFT_HANDLE_ALL).payload;
	int set = 0;

	for (int i = 0; i < 6; i++) {
		assert_true(found[i] == inside || found[i] == k);
		set |= (found[i] == inside) << i;
	}
	weft_delete(k);
	return set;
}

static void sets(void **state)
{
	(void)state;
	assert_int_equal(handled(WEFT_HANDLE_NONE), 0);
	assert_int_equal(handled(weft_handles()), 0);
	assert_int_equal(handled(WEFT_HANDLE_ALL), EVERYTHING);
	assert_int_equal(handled(weft_handles(ask)), ASK);
	assert_int_equal(handled(weft_handles(state)), GET | PUT);
	assert_int_equal(handled(weft_handles(get)), GET);
	assert_int_equal(handled(weft_handles(put)), PUT);
	assert_int_equal(handled(weft_handles(other)), OTHER);
	assert_int_equal(handled(weft_handles(state, other)), GET | PUT | OTHER);
	assert_int_equal(handled(weft_handles(ask, put, oops)), ASK | PUT | OOPS);
	assert_int_equal(handled(weft_handles(state, get)), GET | PUT);
	assert_int_equal(handled(weft_handles(other_put)), 0);
	assert_int_equal(handled(weft_handles(tell, tell)), TELL);
	assert_int_equal(handled(weft_handles(silent, measure, defaulted, other_put, other_get, other, tell, ask, ask,
					      ask, ask, ask, ask, ask, oops, get)),
			 OTHER | TELL | ASK | OOPS | GET);
}

static void located_outside(void **state)
{
	(void)state;
	assert_null(weft_locate(ask));
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void *tells(void *argument)
{
	(void)argument;
	return (void *)(uintptr_t)tell(ask(), "text");
}

static void requests(void **state)
{
	weft_coro_t *k = weft_create(tells, NULL);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ask, tell));

	(void)state;
	assert_true(weft_is(ask, r));
	assert_false(weft_is(tell, r));
	assert_false(weft_returned(r));
	assert_string_equal(weft_request_name(r), "ask");
	assert_int_equal(weft_op(state, r), -1);
	assert_int_equal(weft_op(ask, r), weft_case(ask));
	weft_reply(ask, r, 5);
	weft_reply(ask, r, 6); /* the last reply counts */
	r = weft_resume(k, NULL, weft_handles(ask, tell));
	assert_true(weft_is(tell, r));
	assert_int_equal(weft_args(tell, r)->a, 6);
	assert_string_equal(weft_args(tell, r)->b, "text");
	weft_reply(tell, r, 77);
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	assert_true(weft_returned(r));
	assert_int_equal(weft_op(ask, r), -1);
	assert_int_equal((uintptr_t)r.payload, 77);
	weft_delete(k);
}

static void *no_reply(void *argument)
{
	(void)argument;
	return (void *)(uintptr_t)(ask() == 0 && measure(1.5f) == 0.0);
}

static void without_reply(void **state)
{
	weft_coro_t *k = weft_create(no_reply, NULL);
	weft_request_t r;

	(void)state;
	weft_handle (r, k, ask, measure)
		;
	assert_int_equal((uintptr_t)r.payload, 1);
	weft_delete(k);
}

/* `break` leaves the coroutine suspended. */
static void breaking_out(void **state)
{
	weft_coro_t *k = weft_create(no_reply, NULL);
	weft_request_t r;

	(void)state;
	weft_handle (r, k, ask) {
		assert_true(weft_is(ask, r));
		break;
	}
	assert_int_equal(weft_state(k), WEFT_SUSPENDED);
	weft_handle (r, k, measure)
		assert_true(weft_is(measure, r));
	assert_true(weft_returned(r));
	weft_delete(k);
}

/* ---- defaults ---------------------------------------------------------------------------------------------------- */

static weft_coro_t *seen;

static int plus_one(int x)
{
	seen = weft_current();
	return x + 1;
}

static int plus_two(int x)
{
	return x + 2;
}

static int calls;

static void count_calls(void)
{
	calls++;
}

static void *performs_default(void *argument)
{
	assert_int_equal(defaulted(10), 11);
	assert_ptr_equal(seen, weft_current());
	return argument;
}

static void defaults(void **state)
{
	weft_coro_t *k = weft_create(performs_default, NULL);
	weft_request_t r;

	(void)state;
	weft_set_default(defaulted, plus_one);
	assert_int_equal(defaulted(1), 2); /* also outside of any coroutine */
	assert_null(seen);
	assert_true(weft_returned(weft_resume(k, NULL, weft_handles(ask))));
	weft_reset(k, performs_default, NULL);
	r = weft_resume(k, NULL, weft_handles(defaulted)); /* a handler takes precedence */
	assert_true(weft_is(defaulted, r));
	weft_set_default(defaulted, plus_two);
	assert_int_equal(defaulted(1), 3);
	weft_delete(k);
	weft_set_default(silent, count_calls);
	silent();
	silent();
	assert_int_equal(calls, 2);
	weft_set_default(silent, NULL);
	weft_set_default(defaulted, NULL);
}

static void *sets_defaults(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		weft_set_default(defaulted, plus_one);
	return NULL;
}

/* A lock that one thread holds while another thread forks would stay held in the child. */
static void default_after_fork(void **state)
{
	enum { FORKS = 200, SECONDS = 10 };
	pthread_t thread;
	int stop = 0, status = 0, i;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, sets_defaults, &stop), 0);
	for (i = 0; i < FORKS && !status; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child) {
			alarm(SECONDS);
			weft_set_default(defaulted, plus_two);
			_exit(defaulted(1) != 3);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	weft_set_default(defaulted, NULL);
	assert_int_equal(status, 0);
}

/* ---- exceptions -------------------------------------------------------------------------------------------------- */

static void *throws(void *argument)
{
	(void)argument;
	oops(3);
}

static void *throws_through(void *argument)
{
	weft_coro_t *k = weft_create(throws, argument);

	weft_resume(k, NULL, weft_handles(ask));
	fail();
	return NULL;
}

static void exceptions(void **state)
{
	weft_coro_t *k = weft_create(throws, NULL);
	weft_request_t r = weft_resume(k, NULL, weft_handles(oops));
	weft_stack_stats_t before, after;

	(void)state;
	assert_true(weft_is(oops, r));
	assert_int_equal(weft_args(oops, r)->code, 3);
	assert_int_equal(weft_state(k), WEFT_FINISHED);
	weft_delete(k);
	weft_stack_stats(WEFT_DEFAULT_POLICY, &before);
	k = weft_create(throws_through, NULL);
	r = weft_resume(k, NULL, weft_handles(oops));
	assert_int_equal(weft_args(oops, r)->code, 3);
	weft_delete(k);
	weft_stack_stats(WEFT_DEFAULT_POLICY, &after);
	assert_int_equal(after.live, before.live);
}

static void *yields_raw(void *argument)
{
	static struct weft_effect raw = {.name = "raw", .family = &raw};

	return weft_yield(weft_current(), &raw, argument);
}

static void raw_effects(void **state)
{
	int x, y;
	weft_coro_t *k = weft_create(yields_raw, &x);
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	(void)state;
	assert_string_equal(weft_request_name(r), "raw");
	assert_ptr_equal(r.payload, &x);
	assert_ptr_equal(weft_resume(k, &y, WEFT_HANDLE_NONE).payload, &y);
	weft_delete(k);
}

static int sum_in_clause(void *unused, int state, int k, int frame, int r, int fn, int value, int weft, int name)
{
	(void)unused;
	return state + 10 * k + 100 * frame + 1000 * r + 10000 * (fn + value + weft + name);
}

static void *sum_when_suspended(void *unused, weft_resumption_t *at, int state, int k, int frame, int r, int fn,
				int value, int weft, int name)
{
	return weft_tail_continue(named_as_ours, at, sum_in_clause(unused, state, k, frame, r, fn, value, weft, name));
}

static void *perform_named_as_ours(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)named_as_ours(1, 2, 3, 4, 1, 1, 1, 2);
}

WEFT_HANDLER(sums_in_clause, weft_tail(named_as_ours, sum_in_clause));
WEFT_HANDLER(sums_when_suspended, weft_general(named_as_ours, sum_when_suspended));

/* Parameters may have the names that the library's macros use. */
static void parameters_named_as_ours(void **state)
{
	(void)state;
	assert_int_equal((intptr_t)weft_run(&sums_in_clause, NULL, perform_named_as_ours, NULL), 54321);
	assert_int_equal((intptr_t)weft_run(&sums_when_suspended, NULL, perform_named_as_ours, NULL), 54321);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(declared_once),	T(parameters_named_as_ours),
	    T(odd_types),	T(sets),
	    T(located_outside), T(requests),
	    T(without_reply),	T(breaking_out),
	    T(defaults),	T(default_after_fork),
	    T(exceptions),	T(raw_effects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
