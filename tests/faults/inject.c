/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Allocations fail at regular intervals: for libraries built with WEFT_INJECT_FAULTS, run with WEFT_FAIL_EVERY=n.
 * Creation must return NULL and an error, growth must end only the coroutine, nothing may leak. Prints the number of
 * failures of each kind; exits with 3 if no request failed, so that a run without injection is noticed. (A failed
 * request need not be visible: a slot that cannot be cached is unmapped.)
 */
#include <errno.h>
#include <pthread.h>

#include "internal/alloc_faults.h"
#include "scenario.h"

enum { SLOTS = 60, ROUNDS = 4000, THREADS = 3, KB = 1024 };

static struct {
	unsigned long made, refused, failed, finished;
} count;

#define ADD(field) __atomic_fetch_add(&count.field, 1, __ATOMIC_RELAXED)

static void *works(void *argument)
{
	size_t n = (size_t)argument;

	for (size_t i = 0; i < n % 5; i++) {
		use_stack(n % 40 * KB);
		weft_suspend(NULL);
	}
	return argument;
}

struct subject {
	weft_coro_t *k, storage;
	weft_coro_t *_Atomic inner; /* made by the frames of k, which may be lost when k fails */
	bool embedded;
};

/* Makes another coroutine inside, which may also fail. On linked stacks each call may be the last. */
static void *works_inside(void *argument)
{
	struct subject *s = weft_user_data(weft_current());
	weft_coro_t *k = s->inner = weft_create(works, argument);
	weft_request_t r;

	if (!k)
		return NULL;
	do
		r = resume(k);
	while (r.effect == &weft_suspended);
	REQUIRE(weft_returned(r) || r.effect == &weft_failed);
	weft_delete(k);
	s->inner = NULL;
	return argument;
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void make_one(struct subject *s, uint64_t x)
{
	weft_attr_t attr = {.policy = (weft_policy_t)(x % WEFT_POLICY_COUNT),
			    .stack_size = (64ul << x / 4 % 3) * KB,
			    .user_data = s};
	weft_fn_t *fn = x % 7 ? works : works_inside;
	int error = 0;

	if (x % 11 == 0)
		attr.flags = WEFT_NO_GUARD;
	s->embedded = x % 5 == 0;
	errno = 0;
	if (s->embedded) {
		error = -weft_init(&s->storage, fn, (void *)x, &attr);
		s->k = error ? NULL : &s->storage;
		REQUIRE(!error || weft_state(&s->storage) == WEFT_DELETED);
	} else {
		s->k = weft_create_with(fn, (void *)x, &attr);
		error = s->k ? 0 : errno;
	}
	REQUIRE(error == 0 || error == ENOMEM || error == EAGAIN);
	if (s->k)
		ADD(made);
	else
		ADD(refused);
}

static void end_one(struct subject *s)
{
	if (s->embedded)
		weft_release(s->k);
	else
		weft_delete(s->k);
	s->k = NULL;
	weft_delete(s->inner);
	s->inner = NULL;
}

static void step(struct subject *s, uint64_t x)
{
	weft_request_t r;

	if (!s->k) {
		make_one(s, x);
		return;
	}
	if (x % 13 == 0) {
		end_one(s);
		return;
	}
	r = resume(s->k);
	if (r.effect == &weft_suspended)
		return;
	if (weft_returned(r)) {
		ADD(finished);
	} else {
		REQUIRE(r.effect == &weft_failed && r.payload == s->k);
		REQUIRE(weft_failure(s->k) == WEFT_MEMORY_SPENT);
		REQUIRE(weft_policy(s->k) != WEFT_FIXED && weft_policy(s->k) != WEFT_OVERCOMMIT);
		ADD(failed);
	}
	REQUIRE(weft_state(s->k) == WEFT_FINISHED);
	end_one(s);
}

static void *work(void *argument)
{
	struct subject *subject = calloc(SLOTS, sizeof *subject + 64);
	struct subject *s = (void *)(((uintptr_t)subject + 63) & ~(uintptr_t)63);
	uint64_t state = (uint64_t)argument;

	for (int i = 0; i < ROUNDS; i++) {
		step(&s[next(&state) % SLOTS], next(&state));
		if (i % 512 == 511)
			weft_stack_trim();
	}
	for (int i = 0; i < SLOTS; i++)
		if (s[i].k)
			end_one(&s[i]);
	free(subject);
	return NULL;
}

static void nothing_is_left(void)
{
	weft_stack_stats_t stats;

	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		stats = stats_of((weft_policy_t)p);
		REQUIRE(stats.live == 0);
	}
	/* Several tries, because trimming may also fail. */
	for (int i = 0; i < 50; i++)
		weft_stack_trim();
	/* At most the memory of the cached stacks is charged. */
	stats = stats_of(WEFT_COMMIT);
	REQUIRE(stats.committed <= stats.reserved);
	REQUIRE(stats.cached || stats.committed == 0);
}

int main(int arguments, char **argument)
{
	const char *every = getenv("WEFT_FAIL_EVERY");
	pthread_t thread[THREADS];
	unsigned long seed = arguments > 1 ? strtoul(argument[1], NULL, 0) : 1;

	alarm(60);
	work((void *)seed);
	for (size_t i = 0; i < THREADS; i++)
		while (pthread_create(&thread[i], NULL, work, (void *)(seed + i + 1)))
			ADD(refused); /* on a linked stack it needs ours */
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	nothing_is_left();
	printf("every %s, %lu times: %lu made, %lu refused, %lu failed, %lu finished\n", every ? every : "0",
	       weft__injected_faults(), count.made, count.refused, count.failed, count.finished);
	return weft__injected_faults() ? 0 : 3;
}
