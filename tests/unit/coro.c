/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines: life, state, identity, attributes, switching, control words, fork. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unwind.h>

#include "unit.h"

static void *echo(void *argument)
{
	for (;;)
		argument = weft_suspend(argument);
	return NULL;
}

static void *once(void *argument)
{
	return argument;
}

static weft_request_t resume(weft_coro_t *k, void *value)
{
	return weft_resume(k, value, WEFT_HANDLE_NONE);
}

static void life(void **state)
{
	int x, y;
	weft_coro_t *k = weft_create(echo, &x);
	weft_request_t r;

	(void)state;
	assert_non_null(k);
	assert_int_equal(weft_state(k), WEFT_SUSPENDED);
	assert_null(weft_parent(k));
	assert_null(weft_current());
	assert_true(weft_coro_is_valid(k));
	r = resume(k, &y); /* the first resume's value is ignored */
	assert_ptr_equal(r.effect, &weft_suspended);
	assert_ptr_equal(r.payload, &x);
	assert_string_equal(weft_request_name(r), "weft_suspended");
	assert_int_equal(weft_state(k), WEFT_SUSPENDED);
	r = resume(k, &y);
	assert_ptr_equal(r.payload, &y);
	assert_true(weft_coro_is_valid(k));
	weft_delete(k);
	assert_int_equal(weft_state(k), WEFT_DELETED);
	assert_int_equal(weft_id(k), 0);
	assert_true(weft_coro_is_valid(k));
	weft_delete(NULL);
}

static void returning(void **state)
{
	int x;
	weft_coro_t *k = weft_create(once, &x);
	weft_request_t r = resume(k, NULL);

	(void)state;
	assert_true(weft_returned(r));
	assert_ptr_equal(r.payload, &x);
	assert_string_equal(weft_request_name(r), "return");
	assert_int_equal(weft_state(k), WEFT_FINISHED);
	assert_true(weft_coro_is_valid(k));
	weft_reset(k, echo, &k);
	assert_int_equal(weft_state(k), WEFT_SUSPENDED);
	assert_ptr_equal(resume(k, NULL).payload, &k);
	weft_reset(k, once, &r); /* also while suspended */
	assert_ptr_equal(resume(k, NULL).payload, &r);
	weft_delete(k);
}

static void *looks_at_itself(void *argument)
{
	weft_coro_t *k = *(weft_coro_t **)argument, *inner, *holder;

	assert_ptr_equal(weft_current(), k);
	assert_int_equal(weft_state(k), WEFT_RUNNING);
	assert_true(weft_coro_is_valid(k));
	assert_true(weft_on_stack(k, &inner));
	assert_false(weft_on_stack(k, argument));
	if (weft_parent(k))
		return NULL;
	inner = weft_create(looks_at_itself, &holder);
	holder = inner;
	assert_true(weft_returned(resume(inner, NULL)));
	assert_ptr_equal(weft_parent(inner), k);
	assert_ptr_equal(weft_current(), k);
	weft_delete(inner);
	return NULL;
}

static void inside(void **state)
{
	weft_coro_t *k = weft_create(looks_at_itself, &k);

	(void)state;
	assert_true(weft_returned(resume(k, NULL)));
	assert_null(weft_current());
	weft_delete(k);
}

static void identity(void **state)
{
	weft_coro_t *a = weft_create(once, NULL), *b = weft_create(once, NULL), *c;
	weft_ref_t ref_a = weft_ref(a), ref_b = weft_ref(b);
	uint64_t id = weft_id(a);

	(void)state;
	assert_int_not_equal(weft_id(a), 0);
	assert_int_not_equal(weft_id(a), weft_id(b));
	assert_ptr_equal(weft_deref(ref_a), a);
	weft_reset(a, once, NULL);
	assert_int_equal(weft_id(a), id);
	weft_delete(a);
	assert_null(weft_deref(ref_a));
	c = weft_create(once, NULL); /* in the same memory */
	assert_ptr_equal(c, a);
	assert_null(weft_deref(ref_a));
	assert_int_not_equal(weft_id(c), id);
	assert_ptr_equal(weft_deref(ref_b), b);
	assert_null(weft_deref((weft_ref_t){NULL, 0}));
	weft_delete(b);
	weft_delete(c);
}

/* A stale handle can be queried even after the stack's memory was returned to the kernel. */
static void stale_handle(void **state)
{
	(void)state;
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft_attr_t attr = {.policy = (weft_policy_t)p};
		weft_coro_t *k = weft_create_with(once, NULL, &attr);
		weft_ref_t ref = weft_ref(k);

		weft_delete(k);
		weft_stack_trim();
		assert_null(weft_deref(ref));
		assert_int_equal(weft_state(k), WEFT_DELETED);
	}
}

static void *make_ids(void *argument)
{
	uint64_t *ids = argument;

	for (int i = 0; i < 2000; i++) {
		weft_coro_t *k = weft_create(once, NULL);

		ids[i] = weft_id(k);
		weft_delete(k);
	}
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

static void ids_are_unique(void **state)
{
	static uint64_t ids[4 * 2000];
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, make_ids, ids + (size_t)i * 2000), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	qsort(ids, 8000, sizeof(uint64_t), compare_ids);
	for (int i = 1; i < 8000; i++)
		assert_true(ids[i - 1] < ids[i]);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static void attributes(void **state)
{
	int data, other;
	weft_attr_t attr = {.name = "worker", .policy = WEFT_FIXED, .stack_size = 100000, .user_data = &data};
	weft_coro_t *k = weft_create_with(once, NULL, &attr);

	(void)state;
	assert_non_null(k);
	assert_string_equal(weft_name(k), "worker");
	assert_int_equal(weft_policy(k), WEFT_FIXED);
	assert_in_range(weft_stack_usable(k), 100000, 128 << 10);
	assert_ptr_equal(weft_user_data(k), &data);
	weft_set_user_data(k, &other);
	weft_reset(k, once, NULL);
	assert_ptr_equal(weft_user_data(k), &other);
	assert_string_equal(weft_name(k), "worker");
	weft_delete(k);
	/* The attributes do not persist in the memory. */
	k = weft_create(once, NULL);
	assert_string_equal(weft_name(k), "");
	assert_null(weft_user_data(k));
	assert_int_equal(weft_policy(k), weft_default_policy());
	weft_delete(k);
	k = weft_create_with(once, NULL, NULL);
	assert_int_equal(weft_policy(k), weft_default_policy());
	weft_delete(k);
}

static void expect_invalid(weft_attr_t attr)
{
	static weft_coro_t embedded;

	errno = 0;
	assert_null(weft_create_with(once, NULL, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(weft_init(&embedded, once, NULL, &attr), -EINVAL);
	assert_int_equal(weft_state(&embedded), WEFT_DELETED);
}

static void invalid_attributes(void **state)
{
	(void)state;
	expect_invalid((weft_attr_t){.policy = WEFT_POLICY_COUNT});
	expect_invalid((weft_attr_t){.policy = (weft_policy_t)-1});
	expect_invalid((weft_attr_t){.flags = 1u << 31});
	expect_invalid((weft_attr_t){.stack_size = ((size_t)1 << 30) + 1});
	expect_invalid((weft_attr_t){.stack_size = SIZE_MAX});
}

static void all_sizes(void **state)
{
	(void)state;
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		for (size_t size = 128; size <= (size_t)64 << 20; size *= 2) {
			weft_attr_t attr = {.policy = (weft_policy_t)p, .stack_size = size};
			weft_coro_t *k = weft_create_with(echo, NULL, &attr);

			assert_non_null(k);
			if (weft_stack_usable(k) > 1024) { /* not a tiny stack */
				assert_true(weft_stack_usable(k) >= size - size / 8 - 8192 || size < 16 << 10);
				assert_true(weft_stack_usable(k) >= 8 << 10);
			}
			resume(k, NULL);
			weft_delete(k);
		}
}

/* ---- in storage of the caller's ---------------------------------------------------------------------------------- */

static size_t live(void)
{
	weft_stack_stats_t stats;

	assert_int_equal(weft_stack_stats(WEFT_DEFAULT_POLICY, &stats), 0);
	return stats.live;
}

/* ---- the cached coroutine that was deleted last ------------------------------------------------------------------ */

static void run_and_delete(weft_coro_t *k)
{
	assert_non_null(k);
	assert_true(weft_returned(resume(k, NULL)));
	weft_delete(k);
}

static weft_coro_t *like_new(size_t usable)
{
	weft_coro_t *k = weft_create(once, NULL);

	assert_in_range(weft_stack_usable(k), usable - 4096, usable + 4096); /* neighbours are shifted by some lines */
	assert_string_equal(weft_name(k), "");
	assert_null(weft_user_data(k));
	assert_null(weft_parent(k));
	return k;
}

static void *deletes_one(void *usable)
{
	run_and_delete(weft_create(once, NULL));
	run_and_delete(like_new((size_t)usable));
	return NULL;
}

static void at_hand(void **state)
{
	const weft_attr_t differ[] = {
	    {.stack_size = 1 << 20}, {.policy = WEFT_FIXED},   {.flags = WEFT_SAVE_FPU}, {.flags = WEFT_UNWIND},
	    {.name = "named"},	     {.flags = WEFT_NO_GUARD}, {.user_data = &state},
	};
	weft_coro_t *k = weft_create(once, NULL), *beside;
	size_t usable = weft_stack_usable(k), start = live();
	weft_stack_stats_t stats;
	pthread_t thread;

	run_and_delete(k);
	assert_int_equal(live(), start - 1);
	for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
		run_and_delete(like_new(usable));
		run_and_delete(weft_create_with(once, NULL, &differ[i]));
		k = like_new(usable);
		beside = like_new(usable);
		run_and_delete(weft_create_with(once, NULL, &differ[i]));
		run_and_delete(k);
		run_and_delete(beside);
		assert_int_equal(live(), start - 1);
	}
	k = weft_create(once, NULL);
	weft_set_user_data(k, &k);
	run_and_delete(k);
	k = like_new(usable);
	assert_int_equal(pthread_create(&thread, NULL, deletes_one, (void *)usable), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	run_and_delete(k);
	assert_int_equal(live(), start - 1);
	weft_stack_trim();
	assert_int_equal(weft_stack_stats(WEFT_DEFAULT_POLICY, &stats), 0);
	assert_int_equal(stats.live, start - 1);
	run_and_delete(like_new(usable));
}

static pthread_barrier_t barrier;

static void *touches(void *argument)
{
	volatile char frame[32 << 10];

	for (size_t i = 0; i < sizeof frame; i += 1024)
		frame[i] = 1;
	return argument;
}

static void *keeps_one_at_hand(void *usable)
{
	run_and_delete(weft_create(touches, NULL));
	run_and_delete(weft_create(touches, NULL));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	run_and_delete(like_new((size_t)usable));
	return NULL;
}

/* Trimming also frees the memory of another thread's cached coroutine. That thread continues unaffected. */
static void trimmed_at_hand(void **state)
{
	weft_coro_t *k = weft_create(once, NULL);
	size_t usable = weft_stack_usable(k), resident;
	pthread_t thread;

	(void)state;
	weft_delete(k);
	if (weft_default_policy() > WEFT_COMMIT)
		return; /* nothing is cached */
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < 3; i++) { /* the second time, no slot has been returned to the bins since */
		weft_stack_trim();
		resident = weft_stack_resident(WEFT_DEFAULT_POLICY);
		assert_int_equal(pthread_create(&thread, NULL, keeps_one_at_hand, (void *)usable), 0);
		pthread_barrier_wait(&barrier);
		assert_true(weft_stack_resident(WEFT_DEFAULT_POLICY) > resident + (28 << 10));
		weft_stack_trim();
		assert_true(weft_stack_resident(WEFT_DEFAULT_POLICY) < resident + (28 << 10));
		pthread_barrier_wait(&barrier);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	pthread_barrier_destroy(&barrier);
}

static void embedded(void **state)
{
	struct {
		int before;
		weft_coro_t k[3];
		int after;
	} object;
	size_t start = live();

	(void)state;
	memset(&object, 0xa5, sizeof object); /* weft_init accepts any contents */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weft_init(&object.k[i], echo, &object, &(weft_attr_t){.name = "embedded"}), 0);
		assert_ptr_equal(resume(&object.k[i], NULL).payload, &object);
	}
	assert_int_equal(live(), start + 3);
	assert_string_equal(weft_name(&object.k[1]), "embedded");
	/* Initialised again without a release: nothing leaks. */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(weft_init(&object.k[1], echo, &object, NULL), 0);
	assert_int_equal(live(), start + 3);
	for (int i = 0; i < 3; i++)
		weft_release(&object.k[i]);
	assert_int_equal(live(), start);
	assert_int_equal(weft_state(&object.k[0]), WEFT_DELETED);
	assert_int_equal(object.before, (int)0xa5a5a5a5);
	assert_int_equal(object.after, (int)0xa5a5a5a5);
	/* A released object may be initialised again. */
	assert_int_equal(weft_init(&object.k[0], once, NULL, NULL), 0);
	assert_true(weft_returned(resume(&object.k[0], NULL)));
	weft_reset(&object.k[0], once, NULL);
	weft_release(&object.k[0]);
}

/* ---- deleting a coroutine together with the coroutines that it made ---------------------------------------------- */

static weft_coro_t *outer, *middle, *guest;

static void *guest_body(void *argument)
{
	weft_yield(outer, &weft_suspended, argument);
	return argument;
}

static void *middle_body(void *argument)
{
	resume(guest, NULL);
	return argument;
}

static void *outer_body(void *argument)
{
	middle = weft_create(middle_body, argument);
	resume(middle, NULL);
	return argument;
}

/* Deleting a coroutine that was suspended from below deletes the coroutines that its frames made, and no others'
 * coroutines. */
static void deleting_a_chain(void **state)
{
	size_t start = live();
	weft_ref_t ref;

	(void)state;
	guest = weft_create(guest_body, NULL);
	outer = weft_create(outer_body, NULL);
	resume(outer, NULL);
	assert_int_equal(weft_state(outer), WEFT_SUSPENDED);
	assert_int_equal(weft_state(middle), WEFT_RUNNING);
	assert_int_equal(weft_state(guest), WEFT_RUNNING);
	assert_int_equal(live(), start + 3);
	ref = weft_ref(middle);
	weft_delete(outer);
	assert_null(weft_deref(ref));
	assert_int_equal(weft_state(guest), WEFT_FINISHED);
	assert_int_equal(live(), start + 1);
	weft_delete(guest);
	assert_int_equal(live(), start);
}

static void *leaves(void *argument)
{
	char text[] = "left behind";

	(void)argument;
	weft_exit(outer, &weft_suspended, text);
}

/* An exit from an ancestor may carry a pointer to the stack that is left. */
static void leaving_a_chain(void **state)
{
	size_t start = live();
	weft_request_t r;

	(void)state;
	guest = weft_create(leaves, NULL);
	outer = weft_create(outer_body, NULL);
	r = resume(outer, NULL);
	assert_string_equal(r.payload, "left behind");
	assert_int_equal(weft_state(outer), WEFT_FINISHED);
	assert_int_equal(weft_state(guest), WEFT_FINISHED);
	weft_delete(guest);
	weft_reset(outer, once, NULL);
	assert_true(weft_returned(resume(outer, NULL)));
	weft_delete(outer);
	assert_int_equal(live(), start);
}

static void *returns_later(void *argument)
{
	weft_yield(outer, &weft_suspended, argument);
	return argument;
}

/* A coroutine that was suspended from below and then ended normally owns none of the coroutines that ran inside it. */
static void ending_after_suspension_from_below(void **state)
{
	(void)state;
	guest = weft_create(returns_later, NULL);
	outer = weft_create(middle_body, NULL);
	resume(outer, NULL);
	assert_true(weft_returned(resume(outer, NULL)));
	weft_delete(outer);
	assert_int_equal(weft_state(guest), WEFT_FINISHED);
	weft_delete(guest);
}

/* The end of a chain in which a coroutine was made by a coroutine that runs further inside. */
static struct {
	bool exits, resets, inner_defers, middle_defers;
} chain;

static void nothing(void *argument)
{
	(void)argument;
}

static void *leave_outer(void *argument)
{
	if (chain.exits)
		weft_exit(outer, &weft_suspended, argument);
	return weft_yield(outer, &weft_suspended, argument);
}

static void *makes_middle(void *argument)
{
	middle = weft_create(middle_body, argument);
	weft_suspend(NULL);
	if (!chain.inner_defers)
		return leave_outer(argument);
	weft_defer(nothing, argument);
	return leave_outer(argument);
}

static void *defers_and_resumes(void *argument)
{
	weft_defer(nothing, argument);
	resume(guest, NULL);
	return argument;
}

static void *resumes_middle(void *argument)
{
	if (chain.middle_defers)
		weft_reset(middle, defers_and_resumes, argument);
	resume(middle, NULL);
	return argument;
}

static void made_further_inside(void **state)
{
	/* Under "copy" frames are bound to the nesting depth at which they began. */
	const weft_attr_t fixed = {.policy = WEFT_FIXED};
	size_t start = live();
	weft_ref_t ref;

	(void)state;
	for (unsigned way = 0; way < 16; way++) {
		chain.exits = way & 1;
		chain.resets = way & 2;
		chain.inner_defers = way & 4;
		chain.middle_defers = way & 8;
		guest = weft_create_with(makes_middle, NULL, &fixed);

		resume(guest, NULL);
		outer = weft_create(resumes_middle, NULL);
		ref = weft_ref(middle);
		resume(outer, NULL);
		assert_int_equal(weft_state(outer), chain.exits ? WEFT_FINISHED : WEFT_SUSPENDED);
		assert_ptr_equal(weft_deref(ref), middle);
		if (chain.resets)
			weft_reset(outer, once, NULL);
		else
			weft_delete(outer);
		assert_null(weft_deref(ref));
		assert_int_equal(weft_state(guest), WEFT_FINISHED);
		weft_delete(guest);
		if (chain.resets)
			weft_delete(outer);
		assert_int_equal(live(), start);
	}
}

static void *yields_to_outer(void *argument)
{
	return weft_yield(outer, &weft_suspended, argument);
}

static weft_coro_t *innermost;

static void exits_further(void *argument)
{
	weft_exit(argument, &weft_suspended, NULL);
}

/* The coroutine exits to an outer coroutine while it is deleted: that coroutine keeps the coroutines it had made. */
static void *leaves_when_deleted(void *argument)
{
	innermost = weft_create(yields_to_outer, NULL);
	weft_defer(exits_further, argument);
	resume(innermost, NULL);
	return NULL;
}

static void *deletes_one_that_leaves(void *argument)
{
	outer = weft_create(leaves_when_deleted, weft_current());
	resume(outer, NULL);
	weft_delete(outer);
	return argument;
}

static void leaving_while_being_deleted(void **state)
{
	size_t start = live();
	weft_coro_t *k = weft_create(deletes_one_that_leaves, NULL);
	weft_ref_t ref;

	(void)state;
	assert_ptr_equal(resume(k, NULL).effect, &weft_suspended);
	ref = weft_ref(innermost);
	weft_delete(k);
	assert_null(weft_deref(ref));
	assert_int_equal(live(), start);
}

/* ---- symmetric switches ------------------------------------------------------------------------------------------ */

static weft_coro_t *ping_k, *pong_k;

static void *ping(void *argument)
{
	uintptr_t sum = 0;

	(void)argument;
	for (uintptr_t i = 0; i < 10; i++)
		sum += (uintptr_t)weft_switch(pong_k, (void *)i);
	return (void *)sum;
}

static void *pong(void *argument)
{
	weft_coro_t *self = weft_current();
	uintptr_t got = 0;

	(void)argument;
	while (self == pong_k)
		got = (uintptr_t)weft_switch_from(&self, ping_k, (void *)(2 * got + 1));
	return NULL;
}

static void sideways(void **state)
{
	weft_coro_t *k;
	weft_request_t r;

	(void)state;
	ping_k = weft_create(ping, NULL);
	pong_k = weft_create(pong, NULL);
	k = ping_k;
	r = weft_resume_any(&k, NULL, WEFT_HANDLE_NONE);
	assert_true(weft_returned(r));
	assert_ptr_equal(k, ping_k);
	assert_int_equal((uintptr_t)r.payload, 1 + 3 + 5 + 7 + 9 + 11 + 13 + 15 + 17 + 19);
	assert_null(weft_parent(ping_k));
	weft_delete(ping_k);
	weft_delete(pong_k);
}

static void *to_itself(void *argument)
{
	return weft_switch(weft_current(), argument);
}

static void *starter(void *argument)
{
	weft_switch(argument, NULL);
	return NULL;
}

static void *hands_back(void *argument)
{
	for (;;)
		weft_switch(argument, NULL);
	return NULL;
}

static void *takes_turns(void *argument)
{
	weft_coro_t **to = argument;

	for (;;) {
		weft_switch(*to, NULL);
		weft_suspend(weft_current());
	}
	return NULL;
}

static __attribute__((noinline)) weft_coro_t *resumed_elsewhere(weft_coro_t *k)
{
	weft_request_t r = weft_resume_any(&k, NULL, WEFT_HANDLE_NONE);

	assert_ptr_equal(r.payload, k);
	return k;
}

/* Coroutines that have switched to each other use a fast path; not if one was resumed by another coroutine since. */
static void switching_after_another_resume(void **state)
{
	weft_coro_t *a, *b, *k;

	(void)state;
	a = weft_create(takes_turns, &b);
	b = weft_create(hands_back, a);
	k = a;
	assert_ptr_equal(weft_resume_any(&k, NULL, WEFT_HANDLE_NONE).payload, a);
	assert_ptr_equal(resumed_elsewhere(b), a);
	assert_ptr_equal(resumed_elsewhere(a), a);
	weft_delete(a);
	weft_delete(b);
}

static void *suspends_its_parent(void *argument)
{
	weft_yield(argument, &weft_suspended, NULL);
	return NULL;
}

static void *suspended_from_below(void *argument)
{
	weft_coro_t **to = argument, *inner = weft_create(suspends_its_parent, weft_current());

	weft_resume(inner, NULL, WEFT_HANDLE_NONE);
	weft_delete(inner);
	weft_switch(*to, NULL);
	return NULL;
}

static void *tells_its_parent(void *argument)
{
	weft_switch(argument, NULL);
	weft_suspend(weft_parent(weft_current()));
	return NULL;
}

static void *other_parent(void *argument)
{
	weft_coro_t *k = weft_create(starter, argument), *first = k;
	weft_request_t r = weft_resume_any(&k, NULL, WEFT_HANDLE_NONE);

	assert_ptr_equal(r.payload, weft_current());
	weft_delete(first);
	return k;
}

/* Like the previous case, but one coroutine was suspended from below in between and continued under another parent. */
static void switching_after_a_suspension_from_below(void **state)
{
	weft_coro_t *a, *b, *k, *other;

	(void)state;
	if (weft_default_policy() == WEFT_COPY) /* frames of both parents' coroutines need the same region */
		return;
	b = weft_create(suspended_from_below, &a);
	a = weft_create(tells_its_parent, b);
	k = a;
	assert_ptr_equal(weft_resume_any(&k, NULL, WEFT_HANDLE_NONE).effect, &weft_suspended);
	assert_ptr_equal(k, b);
	other = weft_create(other_parent, b);
	assert_ptr_equal(weft_resume(other, NULL, WEFT_HANDLE_NONE).payload, a);
	weft_delete(other);
	weft_delete(a);
	weft_delete(b);
}

/* The request comes from the coroutine that was switched to; the first coroutine appears to have yielded. */
static void switching_hands_over(void **state)
{
	int x;
	weft_coro_t *a = weft_create(once, &x), *b = weft_create(starter, a), *k = b;
	weft_request_t r = weft_resume_any(&k, NULL, WEFT_HANDLE_NONE);

	(void)state;
	assert_ptr_equal(k, a);
	assert_ptr_equal(r.payload, &x);
	assert_int_equal(weft_state(a), WEFT_FINISHED);
	assert_int_equal(weft_state(b), WEFT_SUSPENDED);
	assert_true(weft_returned(resume(b, NULL)));
	weft_delete(a);
	weft_delete(b);
	k = weft_create(to_itself, &x);
	assert_ptr_equal(resume(k, NULL).payload, &x);
	weft_delete(k);
}

/* ---- twins ------------------------------------------------------------------------------------------------------- */

static void *ffi_body(void *argument)
{
	argument = weft_ffi_yield(weft_current(), &weft_suspended, argument);
	weft_ffi_exit(weft_current(), &weft_suspended, argument);
}

static void twins(void **state)
{
	int x, y;
	weft_coro_t *k = weft_create(ffi_body, &x);

	(void)state;
	assert_ptr_equal(weft_ffi_resume(k, NULL, WEFT_HANDLE_NONE).payload, &x);
	assert_int_equal(weft_ffi_state(k), WEFT_SUSPENDED);
	assert_ptr_equal(weft_ffi_resume(k, &y, WEFT_HANDLE_NONE).payload, &y);
	assert_int_equal(weft_ffi_state(k), WEFT_FINISHED);
	weft_delete(k);
	k = weft_create(once, &x);
	ping_k = weft_create(starter, k);
	assert_ptr_equal(weft_ffi_resume(ping_k, NULL, WEFT_HANDLE_NONE).payload, &x);
	weft_delete(k);
	weft_delete(ping_k);
}

/* ---- control words ----------------------------------------------------------------------------------------------- */

static uint32_t mxcsr(void)
{
	uint32_t value;

	__asm__ volatile("stmxcsr %0" : "=m"(value));
	return value & ~0x3fu; /* without the flags of exceptions that happened */
}

static uint16_t control_word(void)
{
	uint16_t value;

	__asm__ volatile("fnstcw %0" : "=m"(value));
	return value;
}

static void set_words(uint32_t mxcsr_value, uint16_t control_value)
{
	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr_value), "m"(control_value));
}

enum {
	NEAREST = 0x1f80,
	DOWN = 0x3f80,
	TO_ZERO = 0x7f80,
	FLUSH = 0x9f80,
	CW = 0x37f,
	CW_DOWN = 0x77f,
	CW_SINGLE = 0x07f
};

#define ASSERT_WORDS(sse, x87)                                                                                         \
	do {                                                                                                           \
		assert_int_equal(mxcsr(), sse);                                                                        \
		assert_int_equal(control_word(), x87);                                                                 \
	} while (0)

static void *rounds_down(void *argument)
{
	ASSERT_WORDS(NEAREST, CW); /* the words of its own start, not the resumer's */
	set_words(DOWN, CW_DOWN);
	weft_suspend(argument);
	ASSERT_WORDS(DOWN, CW_DOWN);
	weft_suspend(argument);
	ASSERT_WORDS(DOWN, CW_DOWN);
	return argument;
}

static void words_are_kept(void **state)
{
	weft_attr_t attr = {.flags = WEFT_SAVE_FPU};
	weft_coro_t *a = weft_create_with(rounds_down, NULL, &attr), *b = weft_create_with(rounds_down, NULL, &attr);

	(void)state;
	set_words(TO_ZERO, CW_SINGLE);
	for (int i = 0; i < 3; i++) {
		resume(a, NULL);
		ASSERT_WORDS(TO_ZERO, CW_SINGLE);
		resume(b, NULL);
		ASSERT_WORDS(TO_ZERO, CW_SINGLE);
	}
	assert_int_equal(weft_state(a), WEFT_FINISHED);
	weft_reset(a, rounds_down, NULL);
	resume(a, NULL);
	weft_delete(a);
	weft_delete(b);
	set_words(NEAREST, CW);
}

static void *sets_words(void *argument)
{
	set_words(DOWN, CW_DOWN);
	weft_suspend(argument);
	return argument;
}

/* Without the attribute the control words belong to the thread. */
static void words_are_shared(void **state)
{
	weft_coro_t *k = weft_create(sets_words, NULL);

	(void)state;
	resume(k, NULL);
	ASSERT_WORDS(DOWN, CW_DOWN);
	set_words(NEAREST, CW);
	weft_delete(k);
}

static void *switches_with_words(void *argument)
{
	weft_coro_t *to = argument;

	ASSERT_WORDS(NEAREST, CW);
	set_words(FLUSH, CW_SINGLE);
	weft_switch(to, NULL);
	ASSERT_WORDS(FLUSH, CW_SINGLE);
	weft_switch(to, NULL);
	ASSERT_WORDS(FLUSH, CW_SINGLE);
	return NULL;
}

static void *plain_partner(void *argument)
{
	weft_coro_t **to = argument;

	ASSERT_WORDS(TO_ZERO, CW); /* the resumer's: this coroutine keeps none */
	weft_switch(*to, NULL);
	ASSERT_WORDS(TO_ZERO, CW);
	weft_switch(*to, NULL);
	return NULL;
}

static void *keeping_partner(void *argument)
{
	weft_coro_t **to = argument;

	ASSERT_WORDS(NEAREST, CW);
	set_words(DOWN, CW_DOWN);
	weft_switch(*to, NULL);
	ASSERT_WORDS(DOWN, CW_DOWN);
	weft_switch(*to, NULL);
	return NULL;
}

static void words_sideways(void **state)
{
	weft_attr_t keeps = {.flags = WEFT_SAVE_FPU}, plain = {0};

	(void)state;
	for (int both = 0; both < 2; both++) {
		weft_coro_t *k, *a, *b;

		b = weft_create_with(both ? keeping_partner : plain_partner, &a, both ? &keeps : &plain);
		a = weft_create_with(switches_with_words, b, &keeps);
		k = a;
		set_words(TO_ZERO, CW);
		assert_true(weft_returned(weft_resume_any(&k, NULL, WEFT_HANDLE_NONE)));
		ASSERT_WORDS(TO_ZERO, CW);
		assert_ptr_equal(k, a);
		weft_delete(a);
		weft_delete(b);
	}
	set_words(NEAREST, CW);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static const char child_says[] = "child", parent_says[] = "parent";

static void *forks(void *argument)
{
	weft_coro_t *k;
	pid_t child = fork();
	int status;

	if (!child) {
		alarm(10);
		k = weft_create(echo, argument);
		if (!k || resume(k, NULL).payload != argument)
			_exit(1);
		weft_delete(k);
		weft_suspend((void *)child_says);
		_exit(2);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return (void *)parent_says;
}

static void fork_inside(void **state)
{
	weft_request_t r;
	(void)state;
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft_attr_t attr = {.policy = (weft_policy_t)p};
		weft_coro_t *k = weft_create_with(forks, &attr, &attr);

		r = resume(k, NULL);
		if (!strcmp(r.payload, child_says)) {
			weft_delete(k);
			_exit(0);
		}
		assert_string_equal(r.payload, parent_says);
		weft_delete(k);
	}
}

static volatile bool stop;

static void *churn(void *argument)
{
	while (!stop)
		weft_delete(weft_create(once, argument));
	return NULL;
}

/* The backtrace of a suspended coroutine: three functions, of which the middle one has resumed another coroutine. */
static __attribute__((noinline)) int waits_inside(int value)
{
	return value + (int)(intptr_t)weft_suspend(NULL);
}

static void *waits_deeper(void *further_out)
{
	weft_yield(further_out, &weft_suspended, NULL);
	return NULL;
}

static __attribute__((noinline)) int passes(weft_coro_t *k)
{
	weft_coro_t *inner = weft_create(waits_deeper, k);
	int value = 0;

	REQUIRE(inner);
	weft_resume(inner, NULL, WEFT_HANDLE_NONE);
	value = waits_inside(value);
	weft_delete(inner);
	return value;
}

static void *waits_in_places(void *argument)
{
	return (void *)(intptr_t)(passes(argument) + 1);
}

static bool is_in(const void *place, void *function)
{
	return _Unwind_FindEnclosingFunction((char *)place - 1) == function;
}

/* The places are in these functions, in this order. The library's own functions may precede each: in unoptimized code,
 * the functions that suspend and resume are not inlined. */
static void require_places(void **places, size_t count, void *const *functions, size_t wanted)
{
	size_t found = 0;

	for (size_t i = 0; i < count && found < wanted; i++)
		found += is_in(places[i], functions[found]);
	assert_int_equal(found, wanted);
#ifdef __OPTIMIZE__
	assert_in_range(count, wanted, wanted + 1);
#endif
}

static void backtrace_of(unsigned flags)
{
	void *const within[] = {(void *)waits_deeper, (void *)passes, (void *)waits_in_places};
	void *const without[] = {(void *)waits_inside, (void *)passes, (void *)waits_in_places};
	weft_attr_t attr = {.flags = flags};
	weft_coro_t *k = weft_create_with(waits_in_places, NULL, &attr);
	void *places[16] = {NULL};

	REQUIRE(k);
	weft_reset(k, waits_in_places, k);
	assert_int_equal(weft_backtrace(k, places, 16), 0); /* it was not started */
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	assert_int_equal(weft_backtrace(k, places, 0), 0);
	if (weft_policy(k) == WEFT_COPY) {
		assert_int_equal(weft_backtrace(k, places, 16), 1);
	} else {
		/* Once from within the other coroutine, once without it. */
		require_places(places, weft_backtrace(k, places, 16), within, 3);
		assert_int_equal(weft_backtrace(k, places, 1), 1);
		weft_resume(k, NULL, WEFT_HANDLE_NONE);
		require_places(places, weft_backtrace(k, places, 16), without, 3);
	}
	while (weft_state(k) == WEFT_SUSPENDED)
		weft_resume(k, NULL, WEFT_HANDLE_NONE);
	assert_int_equal(weft_backtrace(k, places, 16), 0);
	weft_delete(k);
}

static void where_it_waits(void **state)
{
	(void)state;
	backtrace_of(0);
	backtrace_of(WEFT_SAVE_FPU);
}

static void use_much(void)
{
	weft_coro_t *k[300];

	for (int i = 0; i < 300; i++)
		REQUIRE(k[i] = weft_create(echo, NULL));
	for (int i = 0; i < 300; i++)
		weft_delete(k[i]);
	weft_stack_trim();
}

/* A fork while other threads are inside library calls. */
static void fork_beside_threads(void **state)
{
	pthread_t thread[2];

	(void)state;
	stop = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, NULL), 0);
	for (int i = 0; i < 50; i++)
		expect_quiet(in_child(use_much));
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(life),
	    T(returning),
	    T(inside),
	    T(identity),
	    T(stale_handle),
	    T(ids_are_unique),
	    T(attributes),
	    T(invalid_attributes),
	    T(all_sizes),
	    T(at_hand),
	    T(trimmed_at_hand),
	    T(embedded),
	    T(deleting_a_chain),
	    T(made_further_inside),
	    T(leaving_while_being_deleted),
	    T(leaving_a_chain),
	    T(ending_after_suspension_from_below),
	    T(where_it_waits),
	    T(sideways),
	    T(switching_hands_over),
	    T(switching_after_another_resume),
	    T(switching_after_a_suspension_from_below),
	    T(twins),
	    T(words_are_kept),
	    T(words_are_shared),
	    T(words_sideways),
	    T(fork_inside),
	    T(fork_beside_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
