/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Scopes: tasks that end before their scope does. The scope's lock protects all fields; cancelling a task under it is
 * safe, because the task needs the lock to end. A thread that holds a scope's lock may take a run queue's lock, never
 * the other way round, and never another scope's lock: a cancelled task cancels its own scopes itself, when it resumes.
 */
#include "sched/biased_lock.h"

#include "os/os.h"

/* ---- taking a scope's lock by plain instructions: see biased_lock.h
 * ----------------------------------------------- */

/* In place of a home: a thread waits for the home's answer. */
#define SHARING ((struct weft__worker *)1)

enum {
#ifdef WEFT_TINY
	PATIENCE = 0,
#else
	PATIENCE = 120, /* iterations of a loop */
#endif
};

static struct weft__worker *home_of_new(struct weft__worker *w)
{
	if (!w->reserves)
		return NULL;
	weft__home_answers(w);
	if (!w->unreserved)
		return w;
	w->unreserved--;
	return NULL;
}

/* Wait until the worker sees the stores that this thread has made before. */
static void ask(struct weft__worker *home)
{
	/* Release: pairs with weft__home_answers. */
	uint32_t mine = atomic_fetch_add_explicit(&home->asked, 1, memory_order_acq_rel) + 1;
	unsigned turns = 0;

	/* Acquire: pairs with weft__home_answers. */
	while ((int32_t)(atomic_load_explicit(&home->answered, memory_order_acquire) - mine) < 0) {
		if (turns < PATIENCE) {
			weft__pause(&turns);
			continue;
		}
		if (!WEFT_CANARY(home_sees_no_barrier))
			weft__os_barrier();
		/* Acquire: pairs with weft__reserved_lock. */
		while (atomic_load_explicit(&home->inside, memory_order_acquire) && !WEFT_CANARY(home_is_interrupted))
			weft__pause(&turns);
		return;
	}
}

WEFT__COLD void weft__scope_share(weft_scope_t *s)
{
	struct weft__worker *home = __atomic_load_n(&s->home, __ATOMIC_ACQUIRE);
	unsigned turns = 0;

	while (home) {
		if (home == SHARING) {
			weft__pause(&turns);
			home = __atomic_load_n(&s->home, __ATOMIC_ACQUIRE);
		} else if (__atomic_compare_exchange_n(&s->home, &home, SHARING, false, __ATOMIC_ACQUIRE,
						       __ATOMIC_ACQUIRE)) {
			ask(home);
			/* Release: pairs with weft__scope_lock. */
			__atomic_store_n(&s->home, NULL, __ATOMIC_RELEASE);
			return;
		}
	}
}

/* Called at the end of a scope whose lock was reserved. */
static void learn(const weft_scope_t *s)
{
	struct weft__worker *w = weft__worker();

	if (__atomic_load_n(&s->home, __ATOMIC_RELAXED) == w) {
		w->pause -= w->pause > WEFT__PAUSE_LEAST;
		return;
	}
	w->unreserved = w->pause;
	w->pause = w->pause < WEFT__PAUSE_MOST ? 2 * w->pause : w->pause;
}

/* The caller holds the lock of the list that the task is in. */
static void ask_to_end(struct weft__task *task)
{
	__atomic_store_n(&task->asked, 1, __ATOMIC_RELAXED);
	weft__task_cancel(task);
}

void weft__scope_cancel_locked(weft_scope_t *s, int error)
{
	struct weft__task *task;

	if (s->cancelled || s->closed)
		return;
	__atomic_store_n(&s->cancelled, 1, __ATOMIC_RELAXED); /* is_asked_to_end reads it without the lock */
	s->error = error;
	if (WEFT_CANARY(scope_cancels_nobody))
		return;
	for (task = s->tasks; task; task = task->scope_next)
		ask_to_end(task);
	if (s->owner)
		weft__task_cancel(s->owner);
}

void weft__cancel_scope(weft_scope_t *s, int error)
{
	if (!s)
		weft__misused("weft_scope_cancel", "was called with NULL: it needs the scope to cancel");
	weft__scope_lock(s);
	weft__scope_cancel_locked(s, error < 0 ? error : -ECANCELED);
	weft__scope_unlock(s);
}

/* ---- scopes of a task that has failed ---------------------------------------------------------------------------
 *
 * A failed task's frames never run again, but the tasks of its scopes refer to them. So these tasks are cancelled, and
 * the frames stay until the last of the tasks has ended. There may be no memory for a waiter: instead the timer of the
 * innermost scope, which exists anyway, checks from time to time.
 */
enum { LOOK_AGAIN = 200000 /* nanoseconds */ };

static bool have_tasks(weft_scope_t *s)
{
	uint32_t count = 0;

	for (; s && !count; s = s->outer) {
		weft__scope_lock(s);
		count = s->count;
		weft__scope_unlock(s);
	}
	return count;
}

static void end_or_look_again(struct weft__task *owner)
{
	struct weft__timer *t = &owner->open->timer;

	if (have_tasks(owner->open)) {
		t->at = weft__rt_now(owner->rt) + LOOK_AGAIN;
		weft__arm(weft__worker(), t);
		return;
	}
	weft__task_end_failed(owner);
}

void weft__scopes_abandon(struct weft__task *owner)
{
	weft_scope_t *s;

	for (s = owner->open; s; s = s->outer) {
		weft__timer_disarm(&s->timer);
		weft__cancel_scope(s, -ECANCELED);
	}
	weft__task_set(owner, WEFT__ABANDONED, true);
	end_or_look_again(owner);
}

void weft__scope_expired(struct weft__timer *t)
{
	weft_scope_t *s = (weft_scope_t *)((char *)t - offsetof(weft_scope_t, timer));

	if (weft__task_has(s->owner, WEFT__ABANDONED)) {
		end_or_look_again(s->owner);
		return;
	}
	weft__cancel_scope(s, -ETIMEDOUT);
	/* Release: pairs with weft__timer_disarm, after which the scope is gone. */
	__atomic_store_n(&t->firing, 0, __ATOMIC_RELEASE);
}

static void set_open(struct weft__task *owner, weft_scope_t *s)
{
	weft__task_lock(&owner->open_lock);
	owner->open = s;
	weft__task_unlock(&owner->open_lock);
}

/* Scopes may be closed in any order. */
static void remove_open(struct weft__task *owner, weft_scope_t *s)
{
	weft_scope_t **at = &owner->open;

	weft__task_lock(&owner->open_lock);
	while (weft__unlikely(*at != s))
		at = &(*at)->outer;
	*at = s->outer;
	weft__task_unlock(&owner->open_lock);
}

void weft_scope_open(weft_scope_t *s, uint64_t deadline)
{
	struct weft__worker *w = weft__worker();

	if (!s || (w && w->current && w->current->open == s))
		weft__misused("weft_scope_open", s ? "was called for a scope that is open: close it by weft_scope_wait"
						   : "was called with NULL: it needs a scope of the caller's");
	*s = (weft_scope_t){.owner = w ? w->current : NULL, .timer = {.at = deadline, .is_scope = 1}};
	if (!s->owner)
		return;
	s->home = home_of_new(w);
	s->reserved = s->home != NULL;
	s->outer = s->owner->open;
	/* Relaxed: the bindings that are visible here were made by this task, or before this task began. */
	if (weft__unlikely(__atomic_load_n(&weft__values_used, __ATOMIC_RELAXED)))
		s->values = weft__values_of_scope(s->owner);
	set_open(s->owner, s);
	if (deadline != WEFT_NEVER)
		weft__arm(w, &s->timer);
}

int weft_scope_set_deadline(weft_scope_t *s, uint64_t deadline)
{
	struct weft__worker *w = weft__worker();

	if (!s || s->closed)
		return -EINVAL;
	if (!s->owner || !w || s->owner != w->current)
		return -EPERM;
	/* After this call the timer has not fired, or the scope is cancelled. */
	weft__timer_disarm(&s->timer);
	if (__atomic_load_n(&s->cancelled, __ATOMIC_RELAXED))
		return s->error;
	s->timer.at = deadline;
	if (deadline <= weft__rt_now(w->rt))
		weft__cancel_scope(s, -ETIMEDOUT);
	else if (deadline != WEFT_NEVER)
		weft__arm(w, &s->timer);
	return 0;
}

/* Must the task learn of a cancellation, its own or that of a scope that it still has open? */
static bool is_asked_to_end(const struct weft__task *task)
{
	const weft_scope_t *s;

	if (__atomic_load_n(&task->asked, __ATOMIC_RELAXED))
		return true;
	for (s = task->open; s; s = s->outer)
		if (__atomic_load_n(&s->cancelled, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* The scope's cancellation does not count for its owner any more. */
static void forget(struct weft__task *owner)
{
	uintptr_t before = 0;

	if (!(__atomic_load_n(&owner->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED))
		return;
	/* Sequentially consistent: a thread that cancels sets a flag (`asked`, `cancelled`) first, and then
	 * `cancel`. */
	__atomic_store_n(&owner->cancel, 0, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!is_asked_to_end(owner))
		return;
	while (!weft__exchange_if(&owner->cancel, &before, before | WEFT__CANCELLED))
		;
}

int weft__scope_close(weft_scope_t *s)
{
	weft__timer_disarm(&s->timer);
	weft__scope_lock(s);
	s->closed = 1;
	__atomic_store_n(&s->cancelled, 1, __ATOMIC_RELAXED);
	weft__scope_unlock(s);
	if (s->reserved)
		learn(s);
	if (s->owner) {
		remove_open(s->owner, s);
		forget(s->owner);
	}
	return s->error;
}

bool weft__scope_is_mine(const weft_scope_t *s)
{
	return s->owner == weft__task();
}

bool weft__scope_begin(weft_scope_t *s, weft_waiter_t *w)
{
	bool waits;

	weft__scope_lock(s);
	waits = s->count;
	s->waiter = waits ? w : NULL;
	weft__scope_unlock(s);
	return waits;
}

bool weft__scope_end(weft_scope_t *s, weft_waiter_t *w)
{
	bool ended;

	(void)w;
	weft__scope_lock(s);
	s->waiter = NULL;
	ended = !s->count;
	weft__scope_unlock(s);
	return ended;
}

/* ---- joining --------------------------------------------------------------------------------------------------- */

/* The handle is of a task that has ended, or never began. */
static void ended_before(weft_task_t *t)
{
	weft__seen_acquire(t);
	if (!t->scope && !t->error)
		t->error = -EINVAL;
}

static WEFT__COLD void die_joined(const weft_task_t *t)
{
	weft__misused(
	    "weft_join",
	    t->joiner
		? "was called for a task that is being joined: a handle has one joiner; wait for an event in the others"
		: "was called by the task itself, which would wait for its own end: join it in another task");
}

bool weft__has_ended(const weft_task_t *t)
{
	/* Acquire: pairs with tell_handle. */
	return !__atomic_load_n(&t->task, __ATOMIC_ACQUIRE);
}

static inline __attribute__((always_inline)) int enter(weft_task_t *t, weft_waiter_t *w, int index)
{
	struct weft__task *task;
	int error;

	if (weft__has_ended(t)) {
		ended_before(t);
		return 0;
	}
	weft__scope_lock(t->scope);
	task = t->task;
	if (task && weft__unlikely(t->joiner || task->k == weft__owner())) {
		error = t->joiner ? -EBUSY : -EDEADLK;
		weft__scope_unlock(t->scope);
		return error;
	}
	if (task) {
		t->joiner = w;
		if (index) /* else it is 0 already: see weft__join_end */
			t->index = index;
	}
	weft__scope_unlock(t->scope);
	return task != NULL;
}

int weft__join_enter(weft_task_t *t, weft_waiter_t *w, int index)
{
	return enter(t, w, index);
}

bool weft__join_begin(weft_task_t *t, weft_waiter_t *w)
{
	int waits = enter(t, w, 0);

	if (weft__unlikely(waits < 0))
		die_joined(t);
	return waits;
}

bool weft__join_end(weft_task_t *t, weft_waiter_t *w)
{
	bool ended;

	weft__scope_lock(t->scope);
	if (t->joiner == w) {
		t->joiner = NULL;
		t->index = 0;
	}
	ended = !t->task;
	weft__scope_unlock(t->scope);
	return ended;
}

void weft_rt_cancel(weft_rt_t *rt)
{
	struct weft__detached *list;
	struct weft__task *task;
	unsigned i;

	if (!rt)
		return;
	weft__outside_begin(rt);
	for (i = 0; i <= rt->workers; i++) {
		list = weft__detached(rt, i);
		weft__spin_lock(&list->lock);
		for (task = list->tasks; task; task = task->scope_next)
			ask_to_end(task);
		weft__spin_unlock(&list->lock);
	}
	weft__outside_end(rt);
}

void weft__cancel_task(weft_task_t *t)
{
	if (!t)
		weft__misused("weft_task_cancel",
			      "was called with NULL: it needs a handle that a task was started with");
	/* The task has ended, and its scope may be gone. */
	if (!__atomic_load_n(&t->task, __ATOMIC_RELAXED))
		return;
	weft__scope_lock(t->scope);
	if (t->task)
		ask_to_end(t->task);
	weft__scope_unlock(t->scope);
}
