/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tasks: making, running and ending them; the requests that they make to their worker. */
#include "sched/biased_lock.h"

#include "sched/pin.h"

#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "coro/ends.h"
#include "internal/message.h"
#include "sched/probe.h"

#pragma push_macro("WEFT_NAMESPACE")
#undef WEFT_NAMESPACE
#define WEFT_NAMESPACE weft
/* Never performed: the effect with which weft_task_fail ends a task. */
WEFT_EXCEPTION_AS(task_fails, task_fails);
#pragma pop_macro("WEFT_NAMESPACE")

__thread struct weft__worker *weft__this_worker __attribute__((tls_model("initial-exec")));

/* Never inlined: a function that suspends must not keep the address of a thread's variable. */
__attribute__((noinline)) struct weft__worker *weft__worker(void)
{
	return weft__this_worker;
}

void weft__set_worker(struct weft__worker *w)
{
	weft__set_operations_left(0);
	weft__this_worker = w;
}

/*
 * The coroutine that owns the caller's objects: the task's, or outside of all tasks the thread's. A coroutine whose
 * resumer handles waits in a loop of its own is a task, too, of that scheduler. A coroutine under a table of clauses is
 * not: the clauses see waits on their way to the scheduler.
 */
weft_coro_t *weft__owner_above(void)
{
	weft_coro_t *k = weft__self() ? weft_locate(weft_op_wait) : weft__attach_thread();

	if (k && k->parent && !weft__handles_table(k->handled))
		return k;
	for (k = k ? k : weft__self(); k->parent && k->handled != weft_handles(weft_op_sched).word; k = k->parent)
		;
	return k;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static weft_attr_t merged(const weft_attr_t *defaults, const weft_attr_t *wanted)
{
	weft_attr_t attr = *defaults;

	attr.name = wanted->name ? wanted->name : attr.name;
	attr.user_data = wanted->user_data ? wanted->user_data : attr.user_data;
	attr.policy = wanted->policy ? weft__policy_for_thread(wanted->policy) : attr.policy;
	attr.stack_size = wanted->stack_size ? wanted->stack_size : attr.stack_size;
	attr.guard_size = wanted->guard_size ? wanted->guard_size : attr.guard_size;
	attr.flags |= wanted->flags;
	attr.memory = wanted->memory;
	attr.memory_size = wanted->memory_size;
	if (weft__unlikely(attr.memory != NULL) && !wanted->policy && !weft_memory_size(&attr, 0))
		attr.policy = WEFT_DEFAULT_POLICY; /* the runtime's policy accepts no memory of the caller's */
	return attr;
}

/* Clear the task in pieces that compilers turn into plain stores: a string instruction takes longer to begin. */
static void clear(struct weft__task *task)
{
	enum { PIECE = 64 };
	char *bytes = (char *)task;

	memset(bytes, 0, PIECE);
	memset(bytes + PIECE, 0, PIECE);
	memset(bytes + 2 * PIECE, 0, sizeof *task - 2 * PIECE);
}

/* The task's record is above its first frame, or in memory of its own if there is no room. It is also separate if the
 * caller supplied the stack's memory, which no thread may touch after the caller has learned of the task's end. */
static struct weft__task *make(struct weft__rt *rt, const struct weft_spawn *what, int *error)
{
	struct weft__task *task = NULL;
	bool in_memory = false, allocated;
	weft_attr_t attr;
	weft_coro_t *k;

	if (what->attr) {
		attr = merged(&rt->attr, &what->attr->coro);
		in_memory = attr.memory;
	}
	k = weft_create_with(what->fn, what->arg, what->attr ? &attr : &rt->attr);
	if (!k) {
		*error = -errno;
		return NULL;
	}
	if (weft__likely(!in_memory))
		task = weft_reserve(k, sizeof *task);
	allocated = !task;
	if (allocated)
		task = malloc(sizeof *task);
	if (!task) {
		weft_delete(k);
		*error = -ENOMEM;
		return NULL;
	}
	clear(task);
	task->k = k;
	task->rt = rt;
	task->flags = allocated ? WEFT__ON_MALLOC : 0;
	if (weft__unlikely(in_memory))
		task->flags |= WEFT__IN_MEMORY;
	return task;
}

static void unmake(struct weft__task *task)
{
	weft_coro_t *k = task->k;

	if (WEFT_CANARY(memory_is_left_late)) /* and other threads have time to notice */
		for (int i = 0; i < 200; i++)
			weft__os_yield();
	if (weft__task_has(task, WEFT__ON_MALLOC))
		free(task);
	weft_delete(k);
}

void weft__task_unmake(struct weft__task *task)
{
	unmake(task);
}

static void configure(struct weft__task *task, const struct weft_spawn *what)
{
	struct weft__rt *rt = task->rt;
	struct weft__task *parent = rt->sim ? weft__task() : NULL;

	if (parent && parent->rt == rt) {
		task->host = parent->host;
		task->process = parent->process;
	}
	task->handle = what->handle;
	if (what->handle)
		*what->handle = (weft_task_t){.task = task, .scope = what->scope};
	if (!what->attr)
		return;
	if (what->attr->flags & WEFT_TASK_CODES)
		weft__task_set(task, WEFT__CODES, true);
	if (what->attr->worker && !rt->sim)
		task->pinned = &rt->worker[(what->attr->worker - 1) % rt->workers];
}

static void link_to(struct weft__task **list, struct weft__task *task)
{
	task->scope_next = *list;
	if (*list)
		(*list)->scope_link = &task->scope_next;
	task->scope_link = list;
	*list = task;
}

static void unlink_task(struct weft__task *task)
{
	*task->scope_link = task->scope_next;
	if (task->scope_next)
		task->scope_next->scope_link = task->scope_link;
}

/* False: the scope has been cancelled, or closed. */
static bool join_scope(weft_scope_t *s, struct weft__task *task)
{
	bool open;

	weft__scope_lock(s);
	open = !s->cancelled;
	if (open) {
		task->scope = s;
		link_to(&s->tasks, task);
		s->count++;
	}
	weft__scope_unlock(s);
	return open;
}

static void detach(struct weft__rt *rt, struct weft__task *task)
{
	struct weft__worker *w = weft__worker();
	struct weft__detached *home = w && w->rt == rt && !w->helper ? &w->detached : &rt->detached;

	task->home = home;
	weft__spin_lock(&home->lock);
	if (!home->count++)
		atomic_fetch_add_explicit(&rt->live, 1, memory_order_relaxed);
	link_to(&home->tasks, task);
	weft__spin_unlock(&home->lock);
}

/* If the program joins the task all the same, the join returns the error. */
static WEFT__COLD int spawn_failed(const struct weft_spawn *what, int error)
{
	if (what->handle)
		*what->handle = (weft_task_t){.scope = what->scope, .error = error};
	return error;
}

/* The scope is cancelled, so its error does not change any more. */
static int why_refused(const weft_scope_t *s)
{
	return s->closed ? -EINVAL : s->error == -ETIMEDOUT ? -ETIMEDOUT : -ECANCELED;
}

static bool is_wrong(const struct weft_spawn *what)
{
	return !what->fn || (what->attr && what->attr->flags & ~(unsigned)(WEFT_TASK_CODES | WEFT_TASK_FIRST));
}

int weft__task_spawn(struct weft__rt *rt, const struct weft_spawn *what, struct weft__task **made)
{
	struct weft__task *task;
	int error;

	if (weft__unlikely(is_wrong(what)))
		return spawn_failed(what, -EINVAL);
	if (weft__unlikely(rt->sim != NULL) && !weft__sim_has_room(rt))
		return spawn_failed(what, -ENOMEM);
	task = make(rt, what, &error);
	if (!task)
		return spawn_failed(what, error);
	configure(task, what);
	if (!what->scope) {
		detach(rt, task);
	} else if (!join_scope(what->scope, task)) {
		unmake(task);
		return spawn_failed(what, why_refused(what->scope));
	}
	*made = task;
	return 0;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static int error_of(struct weft__task *task, weft_request_t r)
{
	if (weft_returned(r))
		return 0;
	if (r.effect == &weft_effect_task_fails)
		return task->error;
	if (r.effect == &weft_effect_weft_cancelled)
		return -ECANCELED;
	return weft_failure(task->k) == WEFT_BUDGET_SPENT ? -EDQUOT : -ENOMEM;
}

/* The caller holds the lock of the task's scope. Returns the joiner, which the caller must complete. A thread that sees
 * that `task` is NULL need not take the lock, and so the scope may be gone by then. */
static inline __attribute__((always_inline)) weft_waiter_t *tell_handle(weft_task_t *t, void *result, int error)
{
	weft_waiter_t *joiner;
	int index;

	if (!t)
		return NULL;
	joiner = t->joiner;
	index = t->index;
	t->result = result;
	t->error = error;
	weft__seen_release(t);
	/* Release: pairs with weft__has_ended. */
	__atomic_store_n(&t->task, NULL, __ATOMIC_RELEASE);
	return joiner && weft_waiter_claim(joiner, index) ? joiner : NULL;
}

/* The caller holds the lock under which the task left its list, and has completed no joiner yet: after that the stack's
 * memory is the caller's again. */
static inline void leave_memory(struct weft__task *task)
{
	if (weft__likely(!weft__task_has(task, WEFT__IN_MEMORY)) || WEFT_CANARY(memory_is_left_late))
		return;
	weft_delete(task->k);
	task->k = NULL;
}

static void leave_runtime(struct weft__task *task, void *result, int error)
{
	struct weft__detached *home = task->home;
	struct weft__rt *rt = task->rt;
	bool last;

	weft__spin_lock(&home->lock);
	unlink_task(task);
	leave_memory(task);
	tell_handle(task->handle, result, error);
	last = !--home->count;
	weft__spin_unlock(&home->lock);
	unmake(task);
	if (last)
		weft__rt_left(rt);
}

/* The caller holds the scope's lock. A task that was cancelled because the deadline has passed has timed out. The
 * failure of a task that nobody cancelled cancels the scope. */
static WEFT__COLD int error_in_scope(struct weft__task *task, int error)
{
	weft_scope_t *s = task->scope;

	if (!s->cancelled && !task->asked)
		weft__scope_cancel_locked(s, error);
	return error == -ECANCELED && s->cancelled && s->error == -ETIMEDOUT ? -ETIMEDOUT : error;
}

/* Unlocking is the last access to the scope: after it the owner may return, and the scope is gone. */
static inline __attribute__((always_inline)) void leave_scope(struct weft__task *task, void *result, int error)
{
	weft_scope_t *s = task->scope;
	weft_waiter_t *joiner, *owner;

	weft__scope_lock(s);
	unlink_task(task);
	if (__builtin_expect(error, 0))
		error = error_in_scope(task, error);
	leave_memory(task);
	joiner = tell_handle(task->handle, result, error);
	owner = --s->count == 0 && s->waiter && weft_waiter_claim(s->waiter, 0) ? s->waiter : NULL;
	weft__scope_unlock(s);
	unmake(task);
	if (joiner)
		weft_waiter_complete(joiner);
	if (owner)
		weft_waiter_complete(owner);
}

WEFT__LAST_WORDS(static, die_open, (const struct weft__task *task), task)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "the task of ");
	weft__line_coroutine(&line, weft_name(task->k), weft_id(task->k));
	weft__line_text(
	    &line, " has ended with a scope open: weft_scope_wait closes it, and WEFT_SCOPE does when a block is left");
	weft__line_die(&line);
}

static inline __attribute__((always_inline)) void leave(struct weft__task *task, void *result, int error)
{
	weft__probe1(task_end, task);
	if (task->scope)
		leave_scope(task, result, error);
	else
		leave_runtime(task, result, error);
}

WEFT__COLD void weft__task_end_failed(struct weft__task *task)
{
	leave(task, NULL, task->error);
}

/* There was no memory for the task's stack: its deferred functions do not run, and so the scopes in its frames are
 * still open. */
static WEFT__COLD void end_with_scopes(struct weft__task *task, weft_request_t r)
{
	if (!weft_failure(task->k))
		die_open(task);
	task->error = error_of(task, r);
	weft__scopes_abandon(task);
}

static void end(struct weft__task *task, weft_request_t r)
{
	int error;

	if (weft__unlikely(task->open)) {
		end_with_scopes(task, r);
		return;
	}
	error = error_of(task, r);
	leave(task, error ? NULL : r.payload, error);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static void wake(weft_waiter_t *w)
{
	weft__ready(w->owner, true);
}

/* Is a cleanup running at the ordinary end of its scope? */
static bool runs_cleanup(const weft_coro_t *k)
{
	const struct weft__deferred *list;

	for (list = k->deferred; list; list = weft__deferred_of(list)->next)
		if (list != weft__deferred_of(list))
			return true;
	return false;
}

/* Is a cleanup running in a coroutine of the task? A cleanup must run to its end, so its waits are not cancelled. `k`
 * is the innermost coroutine. */
static WEFT__COLD bool cleans_up(const struct weft__task *task, const weft_coro_t *k)
{
	for (; k && WEFT_NO_CANARY(cleanups_are_cut); k = k == task->k ? NULL : k->parent)
		if (k->flags & WEFT__ENDING || runs_cleanup(k))
			return true;
	return false;
}

/* From now on the wait can be cancelled. False: it is cancelled already. */
static bool allow_cancelling(struct weft__task *task, weft_waiter_t *w)
{
	uintptr_t free = 0;

	if (task->shields)
		return true;
	/* Release: pairs with weft__task_cancel, which reads the waiter. */
	if (weft__exchange_if(&task->cancel, &free, (uintptr_t)w))
		return true;
	return cleans_up(task, task->k->innermost) || !weft_waiter_claim(w, -ECANCELED);
}

/* Acquire: pairs with the end of weft__task_cancel, and of weft__task_backtrace. */
static inline bool take_back(struct weft__task *task, uintptr_t *published)
{
	return weft__exchange_if(&task->cancel, published, 0);
}

/* Another thread is using the waiter. */
static WEFT__COLD void take_back_after_others(struct weft__task *task, uintptr_t published)
{
	uintptr_t now = published;
	unsigned turns = 0;

	while (!take_back(task, &now) && now != WEFT__CANCELLED) {
		now = published;
		weft__pause(&turns);
	}
}

/* The wait is over: its waiter will be gone soon. */
static inline __attribute__((always_inline)) void end_wait(struct weft__task *task)
{
	weft_waiter_t *w = task->wait;
	uintptr_t published = (uintptr_t)w;

	/* Acquire: as take_back. */
	if (__atomic_load_n(&task->cancel, __ATOMIC_ACQUIRE) & ~(uintptr_t)WEFT__CANCELLED &&
	    !take_back(task, &published))
		take_back_after_others(task, (uintptr_t)w);
	weft__timer_disarm(&w->timer);
	__atomic_store_n(&task->what, NULL, __ATOMIC_RELAXED);
	task->wait = NULL;
}

WEFT__LAST_WORDS(static, die_copied, (const struct weft__task *task, const weft_waiter_t *waiter), task, waiter)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "the task of ");
	weft__line_coroutine(&line, weft_name(task->k), weft_id(task->k));
	weft__line_text(&line, " waits for ");
	weft__line_text(&line, waiter->what);
	weft__line_text(&line,
			" in a coroutine of the policy \"copy\", whose frames would move meanwhile: give it another");
	weft__line_die(&line);
}

/* The first condition is redundant, but keeps the line of `flags` out of the cache. */
static bool is_copied(const struct weft__task *task)
{
	return __atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED && task->k->flags & WEFT__THROUGH;
}

/* True: the task waits, and another worker may run it by now. */
static bool park(struct weft__worker *w, struct weft__task *task, weft_waiter_t *waiter)
{
	if (__builtin_expect(is_copied(task), 0))
		die_copied(task, waiter);
	waiter->wake = wake;
	waiter->owner = task;
	__atomic_store_n(&task->what, waiter->what, __ATOMIC_RELAXED);
	__atomic_store_n(&task->object, waiter->object, __ATOMIC_RELAXED);
	__atomic_store_n(&task->since, w->looked, __ATOMIC_RELAXED);
	task->wait = waiter;
	weft__probe2(task_wait, task, waiter);
	if (!allow_cancelling(task, waiter)) {
		__atomic_store_n(&task->what, NULL, __ATOMIC_RELAXED);
		task->wait = NULL;
		return false;
	}
	if (waiter->timer.at != WEFT_NEVER)
		weft__arm(w, &waiter->timer);
	weft__seen_release(task);
	if (!(weft__waiter_become_here(waiter, WEFT__PARKED) & WEFT__DONE)) /* weft_waiter_park, without a call */
		return true;
	weft__seen_acquire(waiter);
	end_wait(task);
	return false;
}

void weft__task_cancel(struct weft__task *task)
{
	uintptr_t before = __atomic_load_n(&task->cancel, __ATOMIC_RELAXED);
	unsigned turns = 0;
	weft_waiter_t *w;
	bool claimed;

	while (before & WEFT__LOOKED_AT || !weft__exchange_if(&task->cancel, &before, before | WEFT__CANCELLED)) {
		if (before & WEFT__LOOKED_AT) {
			weft__pause(&turns);
			before = __atomic_load_n(&task->cancel, __ATOMIC_RELAXED);
		}
	}
	w = (weft_waiter_t *)before;
	if (!w || before & WEFT__CANCELLED)
		return;
	/* The task does not resume before the waiter is removed from `cancel`, so this thread may read its
	 * coroutines. */
	claimed = !cleans_up(task, task->k->innermost) && weft_waiter_claim(w, -ECANCELED);
	/* Release: pairs with end_wait, after which the waiter is gone, unless it was claimed here. */
	__atomic_store_n(&task->cancel, WEFT__CANCELLED, __ATOMIC_RELEASE);
	if (claimed || WEFT_CANARY(cancelling_ends_any_wait))
		weft_waiter_complete(w);
}

/* Keep a suspended task from resuming. 0: not possible; else the argument for look_away. */
static uintptr_t look_at(struct weft__task *task)
{
	uintptr_t waiter = __atomic_load_n(&task->cancel, __ATOMIC_RELAXED);

	if (!waiter || waiter & (WEFT__CANCELLED | WEFT__LOOKED_AT))
		return 0;
	/* Acquire: pairs with the release of allow_cancelling, before which the task was suspended. */
	return weft__exchange_if(&task->cancel, &waiter, waiter | WEFT__LOOKED_AT) ? waiter : 0;
}

/* Release: pairs with take_back. */
static void look_away(struct weft__task *task, uintptr_t waiter)
{
	__atomic_store_n(&task->cancel, waiter, __ATOMIC_RELEASE);
}

size_t weft__task_backtrace(struct weft__task *task, void **places, size_t most)
{
	uintptr_t waiter = look_at(task);
	size_t count;

	if (!waiter)
		return 0;
	count = weft_backtrace(task->k, places, most);
	look_away(task, waiter);
	return count;
}

void weft__task_inside(struct weft__task *task, void (*line)(const struct weft__line *line, void *arg), void *arg)
{
	uintptr_t waiter = look_at(task);
	const weft_scope_t *s;

	if (!waiter)
		return;
	for (s = task->open; s; s = s->outer)
		if (s->inside) {
			const struct weft__inside *inside = (const struct weft__inside *)s;

			inside->tell(inside, line, arg);
		}
	look_away(task, waiter);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* True: the new task runs next, and the caller must queue the parent. */
static inline bool spawn(struct weft__worker *w, weft_request_t r)
{
	const struct weft_spawn *what = weft_args(weft_op_spawn, r)->what;
	struct weft__task *task;
	int error = weft__task_spawn(w->rt, what, &task);

	weft_reply(weft_op_spawn, r, error);
	if (error)
		return false;
	/* Relaxed: weft_dump may read it already, and nothing else depends on it. */
	__atomic_store_n(&task->made_at, w->current->k->link.pc, __ATOMIC_RELAXED);
	weft__probe1(task_spawn, task);
	weft__count(&w->spawned, 1);
	if (__builtin_expect(what->attr && what->attr->flags & WEFT_TASK_FIRST, 0) &&
	    weft__ready_first(w, task, w->current))
		return true;
	weft__ready_fresh(w, task);
	return false;
}

/* `k` is the innermost coroutine of a suspended task, or the current coroutine of a running task. */
static inline __attribute__((always_inline)) bool is_cancelled(const struct weft__task *task, const weft_coro_t *k)
{
	return __builtin_expect(__atomic_load_n(&task->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED, 0) &&
	       !task->shields && !cleans_up(task, k);
}

static inline weft_request_t resume(struct weft__rt *rt, weft_coro_t **k, uintptr_t handled)
{
	if (__builtin_expect(rt->resume != NULL, 0))
		return rt->resume(k, NULL, handled);
	return weft__resume_caught(k, NULL, handled);
}

/* An exception that leaves a task ends the process, in std::terminate. */
static WEFT__COLD _Noreturn void throw_on(void *exception)
{
	const struct _Unwind_Exception *thrown = exception;

	if (!weft__is_ending(exception) && thrown->private_1) /* unwound by force */
		weft__misused("pthread_exit", "was called, or a thread was cancelled, in a task: it would end the "
					      "thread for all tasks; return from the task, or use weft_task_fail");
	weft__rethrow(exception);
}

static inline void runs_nothing(struct weft__worker *w)
{
	__atomic_store_n(&w->current, NULL, __ATOMIC_RELAXED); /* diagnose.c reads it */
}

/* In a simulation: the task has read the clock so often that its turn is over. */
static WEFT__COLD bool time_is_spent(struct weft__worker *w, const struct weft__task *task)
{
	if (task->k->innermost != task->k || !weft__sim_spends(w->rt))
		return false;
	runs_nothing(w);
	return true;
}

enum weft__outcome weft__task_run(struct weft__worker *w, struct weft__task *task)
{
	const uintptr_t handled = weft_handles(weft_op_sched).word;
	weft_coro_t *k = task->k;
	weft_request_t r;

	if (task->wait)
		end_wait(task);
	__atomic_store_n(&w->current, task, __ATOMIC_RELAXED);
	weft__probe2(task_run, task, w);
	weft__count(&w->switches, 1);
	weft__seen_acquire(task);
	for (;;) {
		r = resume(w->rt, &k, handled);
		if (__builtin_expect(r.effect == WEFT__THROWN, 0))
			throw_on(r.payload);
		switch (weft_op(weft_op_sched, r)) {
		case weft_case(weft_op_yield):
			weft_reply(weft_op_yield, r, is_cancelled(task, task->k->innermost) ? -ECANCELED : 0);
			runs_nothing(w);
			return WEFT__YIELDED;
		case weft_case(weft_op_wait):
			if (!park(w, task, weft_args(weft_op_wait, r)->waiter))
				continue;
			runs_nothing(w);
			return WEFT__WAITS;
		case weft_case(weft_op_spawn):
			if (!spawn(w, r))
				continue;
			runs_nothing(w);
			weft__ready_fresh(w, task);
			return WEFT__WAITS;
		case weft_case(weft_op_now):
			weft_reply(weft_op_now, r, weft__rt_now(w->rt));
			if (weft__unlikely(w->rt->sim != NULL) && time_is_spent(w, task))
				return WEFT__YIELDED;
			continue;
		default:
			weft__count(&w->ended, 1);
			if (WEFT_CANARY(joiners_wait_their_turn))
				runs_nothing(w);
			end(task, r);
			runs_nothing(w); /* now: the joiner, which end() has made ready, runs next */
			return WEFT__ENDED;
		}
	}
}

/* ---- functions that tasks call ---------------------------------------------------------------------------------- */

void weft_task_fail(int error)
{
	struct weft__task *task = weft__task();

	if (!task)
		weft__misused("weft_task_fail", "was called outside of a task: call it in a function that weft_rt_run "
						"runs, or in a task that it starts");
	if (!task->error) /* else a cleanup of a failed task fails, too */
		task->error = error < 0 ? error : -EINVAL;
	task->shields++;
	weft_exit(task->k, &weft_effect_task_fails, NULL);
}

bool weft__unwinds(void)
{
	struct weft__task *task = weft__task();

	return task && __atomic_load_n(&task->asked, __ATOMIC_RELAXED) && !weft__task_has(task, WEFT__CODES) &&
	       !task->shields && !cleans_up(task, weft__self());
}

int weft__check_cancelled(void)
{
	struct weft__task *task = weft__task();

	return task && is_cancelled(task, weft__self()) ? -ECANCELED : 0;
}

bool weft__task_is_cancelled(void)
{
	struct weft__task *task = weft__task();

	return task && __atomic_load_n(&task->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED;
}

void weft_shield_begin(void)
{
	struct weft__task *task = weft__task();

	if (task)
		task->shields++;
}

void weft_shield_end(void)
{
	struct weft__task *task = weft__task();

	if (!task)
		return;
	if (!task->shields)
		weft__misused("weft_shield_end",
			      "was called without a weft_shield_begin: call each as often as the other");
	task->shields--;
}

static void **locals(void)
{
	static __thread __attribute__((tls_model("initial-exec"))) void *of_thread[WEFT_LOCAL_KEYS];
	struct weft__task *task = weft__task();

	return task ? task->locals : of_thread;
}

void *weft_task_local(unsigned key)
{
	return key < WEFT_LOCAL_KEYS ? locals()[key] : NULL;
}

int weft_task_set_local(unsigned key, void *value)
{
	if (key >= WEFT_LOCAL_KEYS)
		return -EINVAL;
	locals()[key] = value;
	return 0;
}

void **weft__task_locals(void)
{
	struct weft__task *task = weft__task();

	return task ? &task->more_locals : NULL;
}

const char *weft_task_name(void)
{
	struct weft__task *task = weft__task();

	return task ? weft_name(task->k) : NULL;
}

weft_rt_t *weft_rt_current(void)
{
	struct weft__task *task = weft__task();

	return task ? task->rt : NULL;
}

int weft_rt_spawn(weft_rt_t *rt, weft_fn_t *fn, void *arg, const weft_task_attr_t *attr)
{
	struct weft_spawn what = {fn, arg, attr, NULL, NULL};
	struct weft__task *task;
	int error = rt ? weft__task_spawn(rt, &what, &task) : -EINVAL;

	if (error)
		return error;
	weft__probe1(task_spawn, task);
	atomic_fetch_add_explicit(&rt->elsewhere, 1, memory_order_relaxed);
	weft__ready(task, false);
	return 0;
}

/* ---- tasks held at a worker -------------------------------------------------------------------------------------- */

void *weft__task_hold(void)
{
	struct weft__task *task = weft__task();
	void *before = task ? task->pinned : NULL;

	if (task)
		task->pinned = weft__worker();
	return before;
}

void weft__task_let_go(void *before)
{
	struct weft__task *task = weft__task();

	if (task)
		task->pinned = before;
}

void weft__inside_open(struct weft__inside *inside)
{
	weft_scope_open(&inside->scope, WEFT_NEVER);
	inside->scope.inside = 1;
}

void weft__inside_leave(struct weft__inside *inside)
{
	inside->scope.inside = 0;
}
