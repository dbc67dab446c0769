/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All operations that a correct program may do with a coroutine, with frames around which sanitizers put red zones. Run
 * under each sanitizer and under valgrind: any report is a false positive. Prints a line per scenario; the arguments,
 * if any, choose scenarios.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/defer.h>
#include <weft/weft.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)
#define NOINLINE __attribute__((noinline))
#define COUNT(array) (sizeof(array) / sizeof *(array))

WEFT_EFFECT(int, ask, int, what);
WEFT_EFFECT(int, ask_far, int, what);
WEFT_EXCEPTION(fail, const char *, why, int, code);
WEFT_FAMILY(state, (int, get), (void, put, int, value));

/* The compiler must not see through it. Not inlined: clang gives functions with assembly in them no fake stack frame.
 */
static NOINLINE void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	CHECK(k);
	return k;
}

/* A frame with arrays on either side of a call; `depth` of them. */
static NOINLINE int through_frames(int depth, int (*last)(void))
{
	char before[24];
	int middle[depth % 7 + 1], result;
	char after[40];

	memset(hide(before), depth, sizeof before);
	memset(hide(middle), 0, sizeof middle);
	memset(hide(after), depth, sizeof after);
	middle[depth % 7] = depth;
	result = depth ? through_frames(depth - 1, last) : last();
	CHECK(before[23] == (char)depth && after[0] == (char)depth && middle[depth % 7] == depth);
	return result + 1;
}

static int ask_three(void)
{
	int got[3];

	got[0] = ask(1);
	got[1] = ask(2);
	got[2] = ask(3);
	return ((int *)hide(got))[0] + got[1] + got[2];
}

static int suspend_once(void)
{
	int values[5] = {1, 2, 3, 4, 5};

	weft_suspend(hide(values));
	return values[4];
}

static void *asks_deep(void *arg)
{
	return (void *)(intptr_t)through_frames((int)(intptr_t)arg, ask_three);
}

static void *suspends_deep(void *arg)
{
	return (void *)(intptr_t)through_frames((int)(intptr_t)arg, suspend_once);
}

/* ---- scenarios ------------------------------------------------------------------------------------------------- */

static void handle_deep(void)
{
	weft_request_t r;

	for (int depth = 0; depth < 40; depth += 3) {
		weft_coro_t *k = make(asks_deep, (void *)(intptr_t)depth);
		int sum = 0;

		weft_handle (r, k, ask) {
			char noise[64];

			memset(hide(noise), 1, sizeof noise);
			sum += weft_args(ask, r)->what;
			weft_reply(ask, r, 10);
		}
		CHECK(sum == 6 && (intptr_t)r.payload == 30 + depth + 1);
		weft_delete(k);
	}
}

/* k1 > k2 > k3: a perform of k3 suspends all of them; k1's resumer gets the request. */
static void *inner(void *arg)
{
	char here[33];
	weft_request_t r;
	weft_coro_t *k;

	memset(hide(here), 7, sizeof here);
	if (!arg)
		return (void *)(intptr_t)through_frames(5, ask_three);
	k = make(inner, (void *)((intptr_t)arg - 1));
	r = weft_resume(k, NULL, weft_handles(ask_far));
	CHECK(weft_returned(r) && here[32] == 7);
	weft_delete(k);
	return r.payload;
}

static void chains(void)
{
	for (intptr_t depth = 1; depth < 6; depth++) {
		weft_coro_t *k = make(inner, (void *)depth);
		weft_request_t r;
		int requests = 0;

		weft_handle (r, k, ask) {
			requests++;
			weft_reply(ask, r, requests);
		}
		CHECK(requests == 3 && (intptr_t)r.payload == 6 + 6);
		weft_delete(k);
	}
}

/* A chain that is suspended in the middle and continued by another coroutine. */
struct errand {
	weft_coro_t *k;
	int answer;
};

static void *runs_errand(void *arg)
{
	struct errand *errand = arg;
	char here[50];
	weft_request_t r;

	memset(hide(here), 3, sizeof here);
	r = weft_resume(errand->k, NULL, weft_handles(ask));
	if (weft_is(ask, r))
		weft_reply(ask, r, errand->answer);
	CHECK(here[49] == 3);
	return r.payload;
}

static void other_parents(void)
{
	weft_coro_t *chain = make(inner, (void *)(intptr_t)3);

	for (int i = 0; i < 4; i++) {
		struct errand errand = {chain, 100};
		weft_coro_t *k = make(runs_errand, &errand);
		weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

		CHECK(weft_returned(r));
		if (i == 3)
			CHECK((intptr_t)r.payload == 306);
		weft_delete(k);
	}
	weft_delete(chain);
}

static int throw_now(void)
{
	char why[20] = "because";

	fail(hide(why), 42);
}

static void *throws_deep(void *arg)
{
	return (void *)(intptr_t)through_frames((int)(intptr_t)arg, throw_now);
}

/* Throws through a coroutine that handles an unrelated effect. */
static void *throws_across(void *arg)
{
	weft_coro_t *k = make(throws_deep, arg);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ask));

	(void)r;
	CHECK(!"passed");
	return NULL;
}

static void exceptions(void)
{
	weft_fn_t *const fns[] = {throws_deep, throws_across};

	for (int i = 0; i < 60; i++) {
		weft_coro_t *k = make(fns[i % 2], (void *)(intptr_t)(i % 13));
		weft_request_t r = weft_resume(k, NULL, weft_handles(fail));

		/* The payload is on a stack on which no code runs any more. */
		CHECK(weft_is(fail, r) && weft_args(fail, r)->code == 42);
		if (i % 3 == 0) {
			weft_reset(k, asks_deep, (void *)(intptr_t)(i % 7));
			weft_handle (r, k, ask)
				weft_reply(ask, r, 0);
			CHECK((intptr_t)r.payload == i % 7 + 1);
		}
		weft_delete(k);
	}
}

/* The payload with which a coroutine exits, and the functions deferred then: memory outside of the left frames keeps
 * its place, and data in the left frames is readable as long as the coroutine exists. */
enum place { IN_FRAME, ON_HEAP, STATIC, IN_RESUMER };

struct leaving {
	enum place place;
	const struct weft_effect *effect; /* without a struct: its payload may be of any size */
	int ended;
	struct weft__fail__frame resumers, *payload;
};

static struct leaving *leaving;
static struct weft__fail__frame static_payload;

static NOINLINE void ends(void *noise)
{
	char over[300];

	memset(hide(over), 0x77, sizeof over);
	memset(noise, 0x77, 40);
	leaving->ended++;
}

static NOINLINE int leave_now(void)
{
	struct weft__fail__frame here, *payload = &here;
	char noise[40];

	weft_defer(ends, noise);
	if (leaving->place == ON_HEAP)
		payload = malloc(sizeof *payload);
	else if (leaving->place == STATIC)
		payload = &static_payload;
	else if (leaving->place == IN_RESUMER)
		payload = &leaving->resumers;
	payload = hide(payload);
	payload->why = "because";
	payload->code = 43;
	leaving->payload = payload;
	weft_exit(weft_current(), leaving->effect, payload);
}

static void *leaves_deep(void *arg)
{
	char noise[40];

	weft_defer(ends, noise);
	(void)through_frames((int)(intptr_t)arg, leave_now);
	return NULL;
}

static void payloads(void)
{
	static const struct weft_effect *const effects[] = {&weft_effect_fail, &weft_suspended};

	for (int i = 0; i < 96; i++) {
		weft_attr_t attr = {.flags = i % 3 == 2 ? WEFT_UNWIND : 0};
		struct leaving l = {.place = i % 4, .effect = effects[i / 4 % 2]};
		weft_coro_t *k = weft_create_with(leaves_deep, (void *)(intptr_t)(i % 5), &attr);
		struct weft__fail__frame *got;
		weft_request_t r;

		leaving = &l;
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		got = r.payload;
		CHECK(r.effect == l.effect && l.ended == 2);
		CHECK(got->code == 43 && !strcmp(got->why, "because"));
		CHECK(l.place == IN_FRAME || got == l.payload);
		if (l.place == ON_HEAP)
			free(got);
		weft_delete(k);
	}
}

/* Frames are abandoned at many depths, and other frames overwrite them. */
static void abandoned(void)
{
	for (int i = 0; i < 200; i++) {
		weft_coro_t *k = make(suspends_deep, (void *)(intptr_t)(i * 7 % 31));
		weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

		CHECK(((int *)r.payload)[2] == 3);
		if (i % 2) {
			weft_reset(k, asks_deep, (void *)(intptr_t)(i * 5 % 29));
			r = weft_resume(k, NULL, WEFT_HANDLE_ALL);
			CHECK(weft_is(ask, r));
		}
		weft_delete(k);
	}
}

static void many_at_once(void)
{
	enum { N = 150 };
	weft_coro_t *k[N];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			k[i] = make(suspends_deep, (void *)(intptr_t)(i % 17));
			CHECK(weft_resume(k[i], NULL, WEFT_HANDLE_NONE).effect == &weft_suspended);
		}
		for (int i = N; i--;) {
			if (i % 3)
				CHECK((intptr_t)weft_resume(k[i], NULL, WEFT_HANDLE_NONE).payload == 5 + i % 17 + 1);
			weft_delete(k[i]);
		}
		(void)weft_stack_trim();
	}
}

static void by_value(void)
{
	weft_coro_t on_stack, embedded[3];

	for (int i = 0; i < 30; i++) {
		CHECK(weft_init(&on_stack, suspends_deep, (void *)(intptr_t)(i % 5), NULL) == 0);
		for (int j = 0; j < 3; j++) {
			CHECK(weft_init(&embedded[j], suspends_deep, (void *)(intptr_t)j, NULL) == 0);
			(void)weft_resume(&embedded[j], NULL, WEFT_HANDLE_NONE);
		}
		(void)weft_resume(&on_stack, NULL, WEFT_HANDLE_NONE);
		CHECK(weft_returned(weft_resume(&embedded[1], NULL, WEFT_HANDLE_NONE)));
		weft_release(&on_stack);
		for (int j = 0; j < 3; j++)
			weft_release(&embedded[j]);
	}
}

/* Three coroutines switch to each other; each leaves a different number of frames behind. */
static weft_coro_t *ring[3];

static NOINLINE int pass_on(int me, int left)
{
	char here[30];

	memset(hide(here), me, sizeof here);
	while (left-- > 0) {
		(void)weft_switch(ring[(me + 1) % 3], NULL);
		if (left % 5 == 4)
			(void)weft_suspend(NULL);
	}
	CHECK(here[29] == me);
	return me;
}

static void *passes_on(void *arg)
{
	return (void *)(intptr_t)pass_on((int)(intptr_t)arg, 20);
}

static void sideways(void)
{
	for (unsigned flags = 0; flags < 4; flags++) {
		int finished = 0;

		for (int i = 0; i < 3; i++) {
			weft_attr_t attr = {.name = "ring"};

			if (flags == 1 || (flags == 2 && i == 1) || (flags == 3 && i != 1))
				attr.flags = WEFT_SAVE_FPU;
			ring[i] = weft_create_with(passes_on, (void *)(intptr_t)i, &attr);
			CHECK(ring[i]);
		}
		for (int next = 0; finished < 3;) {
			weft_coro_t *k = ring[next];

			if (weft_state(k) == WEFT_FINISHED) {
				next = (next + 1) % 3;
				continue;
			}
			if (weft_returned(weft_resume_any(&k, NULL, WEFT_HANDLE_NONE)))
				finished++;
			if (finished) /* its neighbour would switch to a finished coroutine */
				break;
		}
		for (int i = 0; i < 3; i++)
			weft_delete(ring[i]);
	}
}

static void save_fpu(void)
{
	weft_attr_t attr = {.name = "fpu", .flags = WEFT_SAVE_FPU};
	weft_coro_t *k = weft_create_with(asks_deep, (void *)(intptr_t)4, &attr);
	weft_request_t r;

	CHECK(k);
	for (int i = 0; i < 3; i++) {
		weft_handle (r, k, ask)
			weft_reply(ask, r, 1);
		CHECK((intptr_t)r.payload == 8);
		weft_reset(k, throws_deep, (void *)(intptr_t)4);
		CHECK(weft_is(fail, weft_resume(k, NULL, weft_handles(fail))));
		weft_reset(k, asks_deep, (void *)(intptr_t)4);
	}
	weft_delete(k);
}

static jmp_buf back;

static NOINLINE int jump(int depth)
{
	char here[20];

	memset(hide(here), depth, sizeof here);
	if (here[19] < 0)
		return 0;
	if (here[19] == 0)
		longjmp(back, 1);
	return jump(depth - 1) - here[0];
}

static void *jumps(void *arg)
{
	for (volatile int i = 0; i < 5; i++) {
		if (!setjmp(back))
			CHECK(jump(i) > 0);
		CHECK(ask(i) == i);
	}
	return arg;
}

static void long_jumps(void)
{
	weft_coro_t *k = make(jumps, NULL);
	weft_request_t r;

	weft_handle (r, k, ask)
		weft_reply(ask, r, weft_args(ask, r)->what);
	weft_delete(k);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	char here[40];

	memset(hide(here), number, sizeof here);
	signals++;
}

static void *raises(void *arg)
{
	char here[40];

	memset(hide(here), 9, sizeof here);
	raise(SIGUSR1);
	(void)ask(0);
	raise(SIGUSR1);
	CHECK(here[39] == 9);
	return arg;
}

static void signal_handlers(void)
{
	weft_coro_t *k = make(raises, NULL);
	weft_request_t r;

	signal(SIGUSR1, on_signal);
	weft_handle (r, k, ask)
		raise(SIGUSR1);
	CHECK(signals == 3);
	weft_delete(k);
}

/* The stack budget ends a coroutine from within the fault handler. */
static NOINLINE int recurse(int depth)
{
	char here[256];

	memset(hide(here), depth, sizeof here);
	return depth ? recurse(depth - 1) + here[255] : 0;
}

static void *recurses(void *arg)
{
	return (void *)(intptr_t)recurse((int)(intptr_t)arg);
}

static void failures(void)
{
	weft_attr_t attr = {.name = "deep", .policy = WEFT_COMMIT, .stack_size = 64 * 1024};

	if (weft_policy_unavailable(WEFT_COMMIT))
		return;
	for (int i = 0; i < 10; i++) {
		weft_coro_t *k = weft_create_with(recurses, (void *)(intptr_t)100000, &attr);
		weft_request_t r;

		CHECK(k);
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		CHECK(r.effect == &weft_failed && weft_failure(k) == WEFT_RESERVATION_SPENT);
		CHECK(recurse(100) || 1);
		weft_reset(k, asks_deep, (void *)(intptr_t)3);
		r = weft_resume(k, NULL, weft_handles(ask));
		CHECK(weft_is(ask, r));
		weft_delete(k);
	}
}

static void policies(void)
{
	for (int policy = WEFT_FIXED; policy < WEFT_POLICY_COUNT; policy++)
		for (size_t size = 16 << 10; size <= 4 << 20; size *= 4) {
			weft_attr_t attr = {.policy = (weft_policy_t)policy, .stack_size = size};
			weft_coro_t *k = weft_create_with(suspends_deep, (void *)(intptr_t)2, &attr);

			if (weft_policy_unavailable(attr.policy)) {
				CHECK(!k);
				continue;
			}
			CHECK(k);
			(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
			CHECK(weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)));
			weft_delete(k);
		}
}

static void *counts_in_state(void *arg)
{
	for (int i = 0; i < 100; i++)
		put(get() + 1);
	return arg;
}

static void families(void)
{
	weft_coro_t *k = make(counts_in_state, NULL);
	weft_request_t r;
	int value = 0;

	weft_handle (r, k, state) {
		switch (weft_op(state, r)) {
		case weft_case(get):
			weft_reply(get, r, value);
			break;
		case weft_case(put):
			value = weft_args(put, r)->value;
			break;
		}
	}
	CHECK(value == 100);
	weft_delete(k);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* A bag of suspended coroutines; threads take one out, run it a step, and put it back. */
static struct {
	pthread_mutex_t lock;
	weft_coro_t *k[64];
	int count, unfinished;
} bag = {.lock = PTHREAD_MUTEX_INITIALIZER};

static weft_coro_t *take(void)
{
	weft_coro_t *k = NULL;

	pthread_mutex_lock(&bag.lock);
	if (bag.count) {
		/* The oldest coroutine, so that it was on another thread. */
		k = bag.k[0];
		bag.count--;
		memmove(bag.k, bag.k + 1, (size_t)bag.count * sizeof *bag.k);
	}
	pthread_mutex_unlock(&bag.lock);
	return k;
}

static void put_back(weft_coro_t *k)
{
	pthread_mutex_lock(&bag.lock);
	bag.k[bag.count++] = k;
	pthread_mutex_unlock(&bag.lock);
}

static bool work_left(void)
{
	bool left;

	pthread_mutex_lock(&bag.lock);
	left = bag.unfinished > 0;
	pthread_mutex_unlock(&bag.lock);
	return left;
}

static int private_work(int seed)
{
	int table[50], sum = 0;

	for (int i = 0; i < 50; i++)
		((int *)hide(table))[i] = seed + i;
	for (int i = 0; i < 10; i++) {
		(void)weft_suspend(table);
		table[i] += 1;
	}
	for (int i = 0; i < 50; i++)
		sum += table[i];
	return sum;
}

static void *works(void *arg)
{
	int *seed = arg;
	char *memory = malloc(100);
	int sum;

	memset(memory, *seed, 100);
	sum = private_work(*seed);
	CHECK(memory[99] == (char)*seed);
	free(memory);
	*seed = sum;
	return seed;
}

/* Does these steps inside a second coroutine: whole chains move. */
static void *works_within(void *arg)
{
	weft_coro_t *k = make(works, arg);
	weft_request_t r;

	while (r = weft_resume(k, NULL, WEFT_HANDLE_NONE), !weft_returned(r))
		(void)weft_suspend(r.payload);
	weft_delete(k);
	return r.payload;
}

static void *worker(void *arg)
{
	while (work_left()) {
		weft_coro_t *k = take();
		weft_request_t r;

		if (!k) {
			sched_yield();
			continue;
		}
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		if (!weft_returned(r)) {
			put_back(k);
			continue;
		}
		weft_delete(k);
		pthread_mutex_lock(&bag.lock);
		bag.unfinished--;
		pthread_mutex_unlock(&bag.lock);
	}
	return arg;
}

static void migration(void)
{
	enum { N = 48, THREADS = 4 };
	pthread_t threads[THREADS];
	int seeds[N];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			seeds[i] = i;
			put_back(make(i % 2 ? works_within : works, &seeds[i]));
		}
		bag.unfinished = N;
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_create(&threads[i], NULL, worker, NULL) == 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < N; i++)
			CHECK(seeds[i] == 50 * i + 49 * 25 + 10);
	}
}

/* Made by one thread, deleted suspended by another. */
static void *deletes(void *arg)
{
	weft_coro_t **k = arg;

	for (int i = 0; i < 20; i++) {
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		weft_delete(k[i]);
		k[i] = make(suspends_deep, (void *)(intptr_t)i);
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	return arg;
}

static void elsewhere(void)
{
	weft_coro_t *k[20];
	pthread_t thread;

	for (int i = 0; i < 20; i++) {
		k[i] = make(suspends_deep, (void *)(intptr_t)i);
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&thread, NULL, deletes, k) == 0);
		pthread_join(thread, NULL);
	}
	for (int i = 0; i < 20; i++)
		weft_delete(k[i]);
}

/* Threads without an order get each other's stacks, coroutine objects and handler caches. A thread begins when the
 * thread before has reported its end by a relaxed store, which orders nothing. */
static struct {
	int turn; /* relaxed */
} unordered;

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

WEFT_HANDLER(in_memory, weft_tail(get, on_get), weft_tail(put, on_put));

static void *counts_down(void *arg)
{
	while (get() > 0)
		put(get() - 1);
	return arg;
}

static void *recycles(void *number)
{
	enum { N = 100 };
	weft_coro_t *k[N];
	int state = 20;

	while (__atomic_load_n(&unordered.turn, __ATOMIC_RELAXED) != (int)(intptr_t)number)
		usleep(200);
	for (int i = 0; i < N; i++) {
		k[i] = make(suspends_deep, (void *)(intptr_t)(i % 23));
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	(void)weft_run(&in_memory, &state, counts_down, NULL);
	for (int i = 0; i < N; i++) {
		if (i % 2)
			(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		weft_delete(k[i]);
	}
	CHECK(!state);
	__atomic_store_n(&unordered.turn, (int)(intptr_t)number + 1, __ATOMIC_RELAXED);
	return NULL;
}

static void recycled(void)
{
	enum { THREADS = 6 };
	pthread_t threads[THREADS];

	unordered.turn = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, recycles, (void *)(intptr_t)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
    {"handle_deep", handle_deep},   {"chains", chains},		{"other_parents", other_parents},
    {"exceptions", exceptions},	    {"payloads", payloads},	{"abandoned", abandoned},
    {"many_at_once", many_at_once}, {"by_value", by_value},	{"sideways", sideways},
    {"save_fpu", save_fpu},	    {"long_jumps", long_jumps}, {"signal_handlers", signal_handlers},
    {"failures", failures},	    {"policies", policies},	{"families", families},
    {"migration", migration},	    {"elsewhere", elsewhere},	{"recycled", recycled},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < COUNT(scenarios); i++) {
		bool wanted = argc == 1;

		for (int j = 1; j < argc; j++)
			wanted = wanted || !strcmp(argv[j], scenarios[i].name);
		if (!wanted)
			continue;
		scenarios[i].run();
		printf("%s\n", scenarios[i].name);
		fflush(stdout);
	}
	return 0;
}
