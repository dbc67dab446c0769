/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Events that come to a group from outside: wakes and new activities from other threads, times, ends of calls.
 *
 * A waker's state        it means                                 left by
 *   0                    no activity waits, no wake is pending           a park, a wake
 *   WOKEN                the next park does not wait              that park
 *   PARKED               its activity waits                       one wake; or its group, which withdraws it
 *   PARKED | WOKEN       on its way to the group                  the group, which makes the activity ready
 *
 * The driver sleeps by a waiter, as tasks and threads do; the waiter's address is in `idle`. A thread that has put
 * something into `woken` or `posted` takes that address, if there is an address, and completes the waiter.
 */
#include <stdlib.h>

#include "activity/activity.h"
#include "os/os.h"

enum { WOKEN = 1, PARKED = 2 };
enum { TRY_AGAIN = 1000000 }; /* nanoseconds */

struct weft__post {
	struct weft__post *next;
	weft_fn_t *fn;
	void *arg;
};

/* ---- wakers ------------------------------------------------------------------------------------------------------ */

bool weft__activity_park_begin(weft_activity_waker_t *w)
{
	struct weft__activity_hot *hot = &weft__activity_hot;
	uint32_t state = 0;

	if (!hot->self)
		return true;
	w->activity = hot->self;
	w->group = hot->group;
	/* Acquire: the writes before the wake are seen after it. Release: the waking thread reads
	 * the fields above. Pairs with weft_activity_wake. */
	if (!__atomic_compare_exchange_n(&w->state, &state, PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&w->state, 0, __ATOMIC_RELAXED);
		weft__take_over(w);
		return false;
	}
	hot->group->outside += !w->local;
	weft__wait_for(hot->self, w, WEFT__FOR_WAKER);
	return true;
}

bool weft__waker_withdraw(weft_activity_waker_t *w)
{
	uint32_t state = PARKED;

	return __atomic_compare_exchange_n(&w->state, &state, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

static void woken(struct weft__activity_group *g, weft_activity_waker_t *w)
{
	weft_activity_t *a = w->activity;

	weft__take_over(w);
	g->outside -= !w->local;
	__atomic_store_n(&w->state, 0, __ATOMIC_RELAXED);
	weft__activity_ready(g, a);
}

/* The waker's activity does not resume before the waker has been taken out of `woken`, so the group exists until
 * then. */
void weft_activity_wake(weft_activity_waker_t *w)
{
	uint32_t state = __atomic_load_n(&w->state, __ATOMIC_RELAXED);
	struct weft__activity_group *g;

	weft__hand_over(w);
	do
		if (state & WOKEN)
			return;
	/* Pairs with weft__activity_park_begin. */
	while (
	    !__atomic_compare_exchange_n(&w->state, &state, state | WOKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (!(state & PARKED))
		return;
	g = w->group;
	if (g == weft__activity_hot.group) {
		woken(g, w);
		return;
	}
	weft__group_tell_begin(g);
	w->next = atomic_load_explicit(&g->woken, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&g->woken, &w->next, w))
		continue;
	weft__group_tell(g);
	weft__group_tell_end(g);
}

/* ---- telling a group --------------------------------------------------------------------------------------------- */

void weft__group_tell_begin(struct weft__activity_group *g)
{
	atomic_fetch_add(&g->wakers, 1);
}

void weft__group_tell_end(struct weft__activity_group *g)
{
	/* Release: pairs with weft__wakeups_end. */
	atomic_fetch_sub_explicit(&g->wakers, 1, memory_order_release);
}

/* Sequentially consistent, like the driver's side: the driver sees the addition, or this exchange sees the driver's
 * waiter. */
void weft__group_tell(struct weft__activity_group *g)
{
	weft_waiter_t *w = atomic_exchange(&g->idle, NULL);

	if (w && weft_waiter_claim(w, 0))
		weft_waiter_complete(w);
}

static void wait_for_wakers(struct weft__activity_group *g)
{
	while (atomic_load_explicit(&g->wakers, memory_order_acquire))
		weft__os_yield();
}

/* ---- posts and holds --------------------------------------------------------------------------------------------- */

weft_activity_group_t *weft_activity_group(void)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (g)
		atomic_fetch_add(&g->held, 1);
	return g;
}

void weft_activity_group_release(weft_activity_group_t *g)
{
	if (!g)
		return;
	weft__group_tell_begin(g);
	atomic_fetch_sub(&g->held, 1);
	weft__group_tell(g);
	weft__group_tell_end(g);
}

int weft_activity_post(weft_activity_group_t *g, weft_fn_t *fn, void *arg)
{
	struct weft__post *post;

	if (!g || !fn)
		return -EINVAL;
	post = malloc(sizeof *post);
	if (!post)
		return -ENOMEM;
	*post = (struct weft__post){atomic_load_explicit(&g->posted, memory_order_relaxed), fn, arg};
	weft__hand_over(post);
	weft__group_tell_begin(g);
	while (!atomic_compare_exchange_weak(&g->posted, &post->next, post))
		continue;
	weft__group_tell(g);
	weft__group_tell_end(g);
	return 0;
}

/* False: no memory. */
static bool start(struct weft__activity_group *g, const struct weft__post *post)
{
	uint64_t words[6] = {[4] = (uintptr_t)post->arg}; /* the first argument of a function of C */
	weft_activity_t *a = weft__slab_take(g);

	weft__take_over((void *)(uintptr_t)post);
	if (!a)
		return false;
	a->flags = WEFT__DETACHED | WEFT__SLAB;
	if (weft__activity_begin(g, a, weft__activity_twin((void *)(uintptr_t)post->fn), words))
		return true;
	weft__table_forget(g, a);
	return false;
}

/* The oldest first. A post for which weft_activity_post returned 0 must not be lost if there is no memory: it is
 * tried again later. */
static void take_posts(struct weft__activity_group *g)
{
	struct weft__post *post = atomic_exchange(&g->posted, NULL), *older = NULL, *next, **last = &g->unstarted;

	for (; post; post = next) {
		next = post->next;
		post->next = older;
		older = post;
	}
	while (*last)
		last = &(*last)->next;
	*last = older;
	while ((post = g->unstarted) && start(g, post)) {
		g->unstarted = post->next;
		free(post);
	}
}

static void take_woken(struct weft__activity_group *g)
{
	weft_activity_waker_t *w = atomic_exchange(&g->woken, NULL), *older = NULL, *next;

	for (; w; w = next) {
		next = w->next;
		w->next = older;
		older = w;
	}
	for (; older; older = next) {
		next = older->next;
		woken(g, older);
	}
}

static bool has_come(struct weft__activity_group *g)
{
	return atomic_load(&g->woken) || atomic_load(&g->posted);
}

static void take(struct weft__activity_group *g)
{
	if (atomic_load_explicit(&g->woken, memory_order_relaxed))
		take_woken(g);
	if (g->unstarted || atomic_load_explicit(&g->posted, memory_order_relaxed))
		take_posts(g);
	weft__sleepers_wake(g);
}

void weft__take_in(struct weft__activity_group *g)
{
	g->turns = WEFT__TURNS;
	if (weft__server_is_here(g))
		weft__server_step(g);
	take(g);
}

/* ---- the driver's sleep ------------------------------------------------------------------------------------------ */

int weft__group_yield(struct weft__activity_group *g)
{
	(void)g;
	return weft_op_yield();
}

static int sleep_by_waiter(struct weft__activity_group *g, uint64_t until)
{
	weft_waiter_t *w = &g->waiter;
	int result = 0;

	weft_waiter_init(w, "activities", g, until);
	atomic_store(&g->idle, w);
	/* If another thread has taken the waiter, that thread completes it. */
	if (!has_come(g) || !atomic_exchange(&g->idle, NULL))
		result = weft_wait(w);
	if (result && !atomic_exchange(&g->idle, NULL))
		wait_for_wakers(g);
	return result == -ETIMEDOUT ? 0 : result;
}

int weft__group_wait(struct weft__activity_group *g)
{
	uint64_t until = g->sleepers.count ? g->sleepers.heap[0].when : WEFT_NEVER;
	int result = 0;

	if (g->unstarted && until > weft_now() + TRY_AGAIN)
		until = weft_now() + TRY_AGAIN;
	if (until == WEFT_NEVER && !g->outside && !atomic_load(&g->held) && !has_come(g))
		return -EDEADLK;
	weft__timer_rest(g);
	if (weft__server_is_here(g))
		weft__server_sleep(g, until);
	else
		result = sleep_by_waiter(g, until);
	weft__timer_go_on(g);
	take(g);
	return result;
}

static void forget(struct weft__post *post)
{
	struct weft__post *next;

	for (; post; post = next) {
		next = post->next;
		free(post);
	}
}

void weft__posts_forget(struct weft__activity_group *g)
{
	forget(atomic_exchange(&g->posted, NULL));
	forget(g->unstarted);
	g->unstarted = NULL;
}

void weft__wakeups_end(struct weft__activity_group *g)
{
	wait_for_wakers(g);
	weft__posts_forget(g);
}
