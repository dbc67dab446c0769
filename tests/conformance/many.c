/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Many coroutines, on many threads: ten thousand at once, moving between threads, switching in rings. */
#include <pthread.h>
#include <sched.h>

#include "suite.h"

enum { MANY = 10000, ROUNDS = 3, THREADS = 4 };

static void *counter(void *argument)
{
	uint64_t n = (uint64_t)argument;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t got = (uint64_t)weft_suspend((void *)n);

		CHECK(got == n + 1);
		n += 2;
	}
	return (void *)n;
}

static void ten_thousand(void)
{
	static weft_coro_t *k[MANY];

	for (uint64_t i = 0; i < MANY; i++)
		k[i] = make(counter, (void *)(i * 100));
	for (uint64_t round = 0; round < ROUNDS; round++)
		for (uint64_t i = 0; i < MANY; i++) {
			uint64_t n = i * 100 + 2 * round;
			weft_request_t r = weft_resume(k[i], (void *)(n - 1), WEFT_HANDLE_NONE);

			CHECK(r.effect == &weft_suspended && (uint64_t)r.payload == n);
		}
	for (uint64_t i = 0; i < MANY; i++)
		if (i % 2)
			CHECK((uint64_t)weft_resume(k[i], (void *)(i * 100 + 5), WEFT_HANDLE_NONE).payload ==
			      i * 100 + 6);
	for (uint64_t i = 0; i < MANY; i++)
		weft_delete(k[i]);
}

/* ---- from thread to thread -------------------------------------------------------------------------------------- */

static __thread uint64_t mine;

/*
 * A function may keep the address of a thread's variable, also errno's, across a switch: compilers do not know that it
 * can change. After a switch that may end on another thread, the address must come from a call like this one.
 */
static __attribute__((noinline)) uint64_t *this_threads(void)
{
	uint64_t *address = &mine;

	__asm__ volatile("" : "+r"(address));
	return address;
}

WEFT_EFFECT(uint64_t, move_on, uint64_t *, variable);

static unsigned long moves;

static void *wanderer(void *argument)
{
	double x = (double)(size_t)argument;

	for (int i = 0; i < 200; i++) {
		weft_coro_t *self = weft_current();
		uint64_t before = *this_threads(), thread = move_on(this_threads());

		if (before != thread)
			__atomic_fetch_add(&moves, 1, __ATOMIC_RELAXED); /* a statistic */
		CHECK(weft_current() == self);
		CHECK(*this_threads() == thread);
		CHECK(x == (double)(size_t)argument);
	}
	return argument;
}

static struct {
	pthread_mutex_t lock;
	weft_coro_t *waiting[64];
	uint64_t last[64]; /* the last thread that ran it */
	int count, left;
} hall = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes a coroutine that another thread ran last, so that all coroutines move all the time. */
static weft_coro_t *take_one(bool *over)
{
	weft_coro_t *k = NULL;

	pthread_mutex_lock(&hall.lock);
	for (int i = 0; i < hall.count && !k; i++)
		if (hall.last[i] != mine) {
			k = hall.waiting[i];
			hall.waiting[i] = hall.waiting[--hall.count];
			hall.last[i] = hall.last[hall.count];
		}
	*over = !hall.left;
	pthread_mutex_unlock(&hall.lock);
	return k;
}

static void bring_back(weft_coro_t *k, bool ended)
{
	pthread_mutex_lock(&hall.lock);
	if (ended) {
		hall.left--;
	} else {
		hall.last[hall.count] = mine;
		hall.waiting[hall.count++] = k;
	}
	pthread_mutex_unlock(&hall.lock);
}

/* This thread creates no coroutines: it only resumes existing ones. */
static void *worker(void *argument)
{
	weft_args_t(move_on) args;
	weft_coro_t *k;
	weft_request_t r;
	bool over;

	mine = (uint64_t)argument;
	for (;;) {
		k = take_one(&over);
		if (over)
			return NULL;
		if (!k) {
			sched_yield();
			continue;
		}
		/* The last request was left in its user data, for this reply. Other coroutines have run since, so its
		 * stack may have been copied out. */
		if (weft_user_data(k))
			CHECK(!weft_poke(k, &((weft_args_t(move_on) *)weft_user_data(k))->weft__result, &mine,
					 sizeof mine));
		r = weft_resume(k, NULL, weft_handles(move_on));
		CHECK(!weft_current());
		if (weft_returned(r)) {
			bring_back(k, true);
			weft_delete(k); /* not on its creating thread */
			continue;
		}
		/* Other threads may resume other coroutines in its region, so its arguments must be read by
		 * weft_peek. */
		CHECK(!weft_peek(k, weft_args(move_on, r), &args, sizeof args) && *args.variable == mine);
		weft_set_user_data(k, weft_args(move_on, r));
		bring_back(k, false);
	}
}

static void migration(void)
{
	pthread_t thread[THREADS];

	for (size_t i = 0; i < 64; i++)
		hall.waiting[i] = make(wanderer, (void *)(i + 1));
	hall.count = hall.left = 64;
	for (size_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, worker, (void *)(i + 1)));
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(moves > 6400);
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

enum { RING = 50, LAPS = 20 };

static weft_coro_t *ring[RING];

static void *runner(void *argument)
{
	size_t me = (size_t)argument;
	weft_coro_t *self = weft_current(), *next = ring[(me + 1) % RING];
	uintptr_t token;

	for (int lap = 0; lap < LAPS; lap++) {
		token = (uintptr_t)(me % 3 ? weft_switch(next, (void *)(me + 1))
					   : weft_switch_from(&self, next, (void *)(me + 1)));
		CHECK(self == ring[me]);
		if (lap < LAPS - 1 || me)
			CHECK(token == (me ? me : RING) || token == 12345);
	}
	return argument;
}

static void rings(void)
{
	weft_coro_t *k;
	weft_request_t r;
	int ended = 0;

	for (size_t i = 0; i < RING; i++)
		ring[i] = make(runner, (void *)i);
	for (size_t i = 0; i < RING; i++) {
		if (weft_state(ring[i]) != WEFT_SUSPENDED)
			continue;
		k = ring[i];
		r = weft_resume_any(&k, (void *)12345, WEFT_HANDLE_NONE);
		CHECK(weft_returned(r) && k == ring[(size_t)r.payload] && weft_state(k) == WEFT_FINISHED);
		ended++;
	}
	CHECK(ended == RING);
	for (size_t i = 0; i < RING; i++)
		weft_delete(ring[i]);
}

void test_many(void)
{
	ten_thousand();
	migration();
	rings();
}
