/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Workers: threads that run tasks. Each worker has a slot for the task to run next, a ring (queue.h) and a wheel of
 * timers; all workers share one queue. A worker that finds no task steals one; if it cannot, it parks.
 *
 * Which task runs next
 *   A task that the current task wakes goes to the slot: its data are in the cache. A task that the current task spawns
 *   goes to a stack (queue.h), so that a tree of tasks is walked in depth. The slot and the stack go first 16 times in
 *   a row at most, then the ring, so that tasks which wake and spawn each other do not starve the rest. Of every 61
 *   picks one looks at the timers and the shared queue first; if tasks run long, every pick does. Every 10 ms the
 *   oldest task of the stack goes first; more often would walk a large tree in breadth, which takes memory. The look
 *   also takes over the ready tasks of a worker that has been in one task since the previous look.
 *
 * No wake-up is lost
 *   Adding a task:  (1) add it, (2) full fence, (3) read `idle` and `searching`; some idle, none searching: wake one.
 *   Parking:        (1) stop searching, count in `idle`, (2) full fence, (3) look into every queue again; then sleep.
 *   Whichever fence is first, one of the two threads sees the store of the other. A woken worker searches on behalf of
 *   the thread that woke it. While it searches, no further worker need be woken, because it looks everywhere before it
 *   parks. If it finds a task while it is the last worker that searches, it wakes the next worker, for there may be
 *   more tasks.
 *   A task in a worker's own queues is not lost even if an atomic exchange is less than a full fence, as on arm64: the
 *   worker looks there before it parks. tests/orders tries all this under C's memory model, not only under that of the
 *   test machine's processor.
 *   A runtime's only worker needs no fence when it adds to its own queues: no other thread looks there, or parks.
 *   A task in the slot, or a single spawned task, wakes nobody: its owner is about to take it, and another worker would
 *   only steal it from a warm cache.
 *
 * No timer is late because its worker is busy
 *   All parked workers except one sleep without a limit. That worker, the watcher, sleeps until the earliest timer of
 *   all wheels; `watch` says when that is. If a worker arms an earlier timer and then runs another task, it wakes a
 *   worker, which becomes the watcher. While other workers run, the watcher also wakes every few milliseconds to take
 *   the slot of a worker that has been in one task since. If no worker is parked, workers that pick look at all wheels.
 *   When the watcher gets a task it wakes another worker to watch.
 *
 * Long tasks stay
 *   If a worker has had long tasks, other workers leave the due timers of its wheel to that worker. If it is parked
 *   they wake it; if not they give it HELD_AFTER. Otherwise the thread that computes and the thread that serves other
 *   tasks change their roles at every second turn, and the kernel, which has just placed them on processors, lets the
 *   short tasks wait for a time slice of the long task (4 ms). Beside a task that computes for 10 ms and sleeps for 1
 *   ms, the roles change in 1 of 40 turns, and in 20 of 40 without this rule.
 *   For the same reason a worker that has had long tasks, and whose own next timer is due within REST, rests until
 *   then: it neither steals tasks nor is woken for them. Nor is it woken to watch, for it soon wakes up by itself.
 *
 * Events from outside (sockets, files: src/io)
 *   A worker sleeps in one place, sleep_until, and any thread wakes it in one place, wake_worker. Once a runtime has
 *   done I/O, that sleep may be in its source of events (event_source.h), and `wake` ends it. A worker that sleeps in
 *   the source takes in the events, and so does a worker that turns wheels. A worker that finds another worker held
 *   inside a long task, during a look or as watcher, attends to that worker's events; a further event of the held
 *   worker ends the watcher's sleep. If one worker sleeps in the source for all workers and gets a task, it wakes
 *   another worker to sleep there.
 *
 * Rejected: threads that spin for a while before they park (Go, Tokio): other programs on a shared machine pay for the
 * lower latency. A thread for timers alone: each timer would cost two switches of threads. Workers with long tasks
 * under SCHED_BATCH, or with a longer time slice: short tasks of other workers waited for the kernel's tick as often.
 */
#define _GNU_SOURCE
#include "sched/queue.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "internal/tsan_hidden.h"
#include "sched/probe.h"
#include "sched/biased_lock.h"
#include "stack/policy.h"

enum {
	STREAK = 16,
	LOOK_EVERY = 61,
	LOOK_WITHIN = 100000,	 /* nanoseconds: the interval of looks that look_every adapts to */
	MANY = 32,		 /* with so many ready tasks, taking in events can wait ... */
	TAKE_IN_WITHIN = 500000, /* ... for so many nanoseconds */
	TURN_LEAST = 16,	 /* timers that a turn of a wheel completes at least, if so many are due */
	OLDEST_EVERY = 10000000, /* nanoseconds: see "Which task runs next" */
	HELD_AFTER = 200000,	 /* nanoseconds: a worker that has not looked for so long is in a long task */
	FIRST_LOOK = 250000,	 /* nanoseconds until a worker without a task looks at busy workers, ... */
	LOOK_AGAIN = 1000000,	 /* ... and after that */
	LONG_TASKS = 30,	 /* if look_every is less, the worker has had long tasks */
	REST = LOOK_AGAIN,
	/* nanoseconds in which nothing has happened, before diagnose.c looks for a deadlock */
	QUIET = 100000000,
	WATCH_SLOT_AFTER = 200000, /* nanoseconds: a worker that has been busy for so long is worth a watcher */
#ifdef WEFT_MIGRATE
	/* for tests: a task that becomes ready runs next on the worker after this worker, and only there */
	MIGRATE = 1,
#else
	MIGRATE = 0,
#endif
};

/* ---- the shared queues ----------------------------------------------------------------------------------------- */

/* The caller holds the queue's lock. */
static void change_count(struct weft__shared *queue, uint32_t more)
{
	uint32_t count = atomic_load_explicit(&queue->count, memory_order_relaxed);

	atomic_store_explicit(&queue->count, count + more, memory_order_relaxed);
}

static void share(struct weft__shared *queue, struct weft__task *task)
{
	unsigned lane;

	task->next = NULL;
	weft__spin_lock(&queue->lock);
	lane = queue->added++ % WEFT__LANES;
	if (queue->lanes[lane].first)
		*queue->lanes[lane].end = task;
	else
		queue->lanes[lane].first = task;
	queue->lanes[lane].end = &task->next;
	change_count(queue, 1);
	weft__spin_unlock(&queue->lock);
}

/* The caller holds the queue's lock. NULL: empty. */
static struct weft__task *take_locked(struct weft__shared *queue)
{
	unsigned lane = queue->taken % WEFT__LANES;
	struct weft__task *task = queue->lanes[lane].first;

	if (!task)
		return NULL;
	queue->taken++;
	queue->lanes[lane].first = task->next;
	__builtin_prefetch(task->next, 1);
	change_count(queue, -1u);
	weft__prefetch_task(task);
	if (task->wait)
		weft__prefetch_waiter(task->wait);
	return task;
}

static struct weft__task *take_shared(struct weft__shared *queue)
{
	struct weft__task *task;

	if (!atomic_load_explicit(&queue->count, memory_order_relaxed))
		return NULL;
	weft__spin_lock(&queue->lock);
	task = take_locked(queue);
	weft__spin_unlock(&queue->lock);
	return task;
}

/* ---- waking workers -------------------------------------------------------------------------------------------- */

/* The caller holds park_lock. */
static void unlink_parked(struct weft__worker *w)
{
	struct weft__worker **at = &w->rt->parked;

	while (*at != w)
		at = &(*at)->parked;
	*at = w->parked;
	w->is_parked = false;
	atomic_fetch_sub_explicit(&w->rt->idle, 1, memory_order_relaxed);
}

static struct weft__source *source_of(struct weft__rt *rt)
{
	/* Acquire: pairs with the release of the thread that stored the source. */
	struct weft__source *source = atomic_load_explicit(&rt->source, memory_order_acquire);

	if (source)
		weft__seen_acquire(source);
	return source;
}

static void wake_worker(struct weft__worker *w)
{
	struct weft__source *source;

	if (__builtin_expect(w->rt->embedded, 0)) {
		weft__embedded_wake(w->rt);
		return;
	}
	/* Sequentially consistent, as in sleep_until: either the sleeping worker sees the token, or this thread sees
	 * that it sleeps in the source. */
	atomic_store(&w->token, 1);
	if (__builtin_expect(atomic_load(&w->in_source), 0)) {
		source = source_of(w->rt);
		source->wake(source, w);
	} else {
		weft__futex_wake((uint32_t *)&w->token);
	}
}

/* Wake a worker, which then searches. */
static void wake_one(struct weft__rt *rt)
{
	struct weft__worker *w;

	weft__spin_lock(&rt->park_lock);
	for (w = rt->parked; w && w->rests;)
		w = w->parked;
	if (w) {
		unlink_parked(w);
		w->searching = true;
		atomic_fetch_add_explicit(&rt->searching, 1, memory_order_relaxed);
	}
	weft__spin_unlock(&rt->park_lock);
	if (w)
		wake_worker(w);
}

/* The caller has added a task and executed a full fence. */
static inline void notify(struct weft__rt *rt)
{
	if (atomic_load_explicit(&rt->idle, memory_order_relaxed) &&
	    !atomic_load_explicit(&rt->searching, memory_order_relaxed))
		wake_one(rt);
}

/* False: the worker was not parked. */
static bool wake_parked(struct weft__worker *w)
{
	bool was_parked;

	weft__spin_lock(&w->rt->park_lock);
	was_parked = w->is_parked;
	if (was_parked)
		unlink_parked(w);
	weft__spin_unlock(&w->rt->park_lock);
	if (was_parked)
		wake_worker(w);
	return was_parked;
}

/* A worker looks at `watch` when it picks its next task; a helper has no wheel, and may not pick for a long time. */
void weft__arm(struct weft__worker *w, struct weft__timer *t)
{
	struct weft__rt *rt = w->rt;
	uint64_t at = t->at;

	if (__builtin_expect(rt->sim != NULL, 0)) {
		weft__timer_arm(weft__sim_wheel(rt), t);
	} else if (!w->helper) {
		weft__timer_arm(&w->wheel, t);
	} else {
		weft__timer_arm(&rt->worker[0].wheel, t);
		atomic_thread_fence(memory_order_seq_cst);
		if (at < atomic_load_explicit(&rt->watch, memory_order_relaxed))
			notify(rt);
	}
}

/* ---- a task may run -------------------------------------------------------------------------------------------- */

/* The ring is full: half of it goes to the shared queue, so that the next tasks find room. */
static __attribute__((noinline)) void make_room(struct weft__worker *w)
{
	struct weft__task *half[WEFT__RING / 2];
	uint32_t count = weft__ring_take_half(&w->ring, half), i;

	for (i = 0; i < count; i++)
		share(&w->rt->shared, half[i]);
}

static inline void add(struct weft__worker *w, struct weft__task *task)
{
	while (__builtin_expect(!weft__ring_add(&w->ring, task), 0))
		make_room(w);
}

static void pin(struct weft__worker *w, struct weft__task *task)
{
	task->next = NULL;
	weft__spin_lock(&w->pins_lock);
	*w->pins_end = task;
	w->pins_end = &task->next;
	weft__spin_unlock(&w->pins_lock);
	/* Sequentially consistent: the worker sees the task before it parks, or this thread sees it parked. */
	atomic_fetch_add(&w->pinned, 1);
	if (w != weft__worker())
		(void)wake_parked(w);
}

static struct weft__task *take_pin(struct weft__worker *w)
{
	struct weft__task *task;

	if (!atomic_load_explicit(&w->pinned, memory_order_relaxed))
		return NULL;
	weft__spin_lock(&w->pins_lock);
	task = w->pins;
	if (task) {
		w->pins = task->next;
		if (!w->pins)
			w->pins_end = &w->pins;
		atomic_fetch_sub_explicit(&w->pinned, 1, memory_order_relaxed);
	}
	weft__spin_unlock(&w->pins_lock);
	return task;
}

/* A worker should take the slot if the current task of its owner runs long. */
static void want_watcher(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;

	if (atomic_load_explicit(&rt->watch, memory_order_relaxed) == WEFT_NEVER &&
	    weft__clock() - w->unparked > WATCH_SLOT_AFTER)
		notify(rt);
}

/* A full fence, if there are other workers: see "No wake-up is lost". */
static struct weft__task *exchange_slot(struct weft__worker *w, struct weft__task *task)
{
	struct weft__task *other;

	if (!w->ring.no_thieves)
		return atomic_exchange(&w->slot, task);
	other = atomic_load_explicit(&w->slot, memory_order_relaxed);
	atomic_store_explicit(&w->slot, task, memory_order_relaxed);
	return other;
}

/* The slot held another task, or a worker is idle. */
static __attribute__((noinline)) void tell_of_more(struct weft__worker *w, struct weft__task *other)
{
	if (other) {
		add(w, other);
		atomic_thread_fence(memory_order_seq_cst);
		notify(w->rt);
	} else {
		want_watcher(w);
	}
}

static inline __attribute__((always_inline)) void ready_next(struct weft__worker *w, struct weft__task *task)
{
	struct weft__task *other = exchange_slot(w, task);

	if (other || __builtin_expect(atomic_load_explicit(&w->rt->idle, memory_order_relaxed), 0))
		tell_of_more(w, other);
}

void weft__ready_fresh(struct weft__worker *w, struct weft__task *task)
{
	struct weft__task *half[WEFT__RING];
	uint32_t count, i;

	if (__builtin_expect(w->helper || w->rt->sim || task->pinned || MIGRATE, 0)) {
		weft__ready(task, false);
		return;
	}
	weft__seen_release(task);
	while (!(count = weft__fresh_add(&w->fresh, task)))
		for (i = 0, count = weft__fresh_take_half(&w->fresh, half); i < count; i++)
			share(&w->rt->spawned, half[i]);
	if (__builtin_expect(atomic_load_explicit(&w->rt->idle, memory_order_relaxed), 0)) {
		if (count > 1)
			notify(w->rt);
		else
			want_watcher(w);
	}
}

bool weft__ready_first(struct weft__worker *w, struct weft__task *task, const struct weft__task *parent)
{
	if (w->helper || w->rt->sim || task->pinned || parent->pinned || weft__task_has(parent, WEFT__BLOCKING) ||
	    MIGRATE)
		return false;
	weft__seen_release(task);
	ready_next(w, task);
	return true;
}

/* Queue the task outside of the calling worker's own queues. */
static void ready_elsewhere(struct weft__rt *rt, struct weft__task *task)
{
	if (weft__task_has(task, WEFT__BLOCKING)) {
		weft__helpers_add(rt, task);
	} else if (task->pinned) {
		pin(task->pinned, task);
	} else {
		share(&rt->shared, task);
		if (WEFT_CANARY(runtime_ends_early))
			usleep(1000);
		if (!WEFT_CANARY(waker_has_no_fence))
			atomic_thread_fence(memory_order_seq_cst);
		notify(rt);
	}
}

static void ready_from_outside(struct weft__rt *rt, struct weft__task *task)
{
	weft__outside_begin(rt);
	ready_elsewhere(rt, task);
	weft__outside_end(rt);
}

/* By a worker that may run the task itself. Nothing is called before the task is in the slot, and no register is saved
 * for a call: a switch is so short. */
static inline __attribute__((always_inline)) void ready_here(struct weft__worker *w, struct weft__task *task, bool next)
{
	if (next && w->current) {
		weft__count(&w->wakes, 1);
		ready_next(w, task);
	} else {
		/* Any of many timers may have expired, and the task has long been out of the cache. */
		__builtin_prefetch(task->k);
		__builtin_prefetch(&task->what, 1);
		/* The pick that follows is a fence, and notifies. */
		add(w, task);
	}
}

static __attribute__((noinline)) void ready_otherwise(struct weft__worker *w, struct weft__task *task, bool next)
{
	struct weft__rt *rt = task->rt;

	weft__seen_release(task);
	if (__builtin_expect(rt->sim != NULL, 0)) {
		weft__sim_ready(rt, task);
	} else if (__builtin_expect(!w || w->rt != rt, 0)) {
		ready_from_outside(rt, task);
	} else if (__builtin_expect(weft__task_has(task, WEFT__BLOCKING) || task->pinned || w->helper, 0)) {
		ready_elsewhere(rt, task);
	} else if (MIGRATE) {
		pin(&rt->worker[(w->number + 1) % rt->workers], task);
	} else {
		ready_here(w, task, next);
	}
}

/* May this worker run the task? */
static inline bool is_at_home(const struct weft__worker *w, const struct weft__task *task)
{
	if (MIGRATE || !w)
		return false;
	return w->rt == task->rt && !w->rt->sim && !weft__task_has(task, WEFT__BLOCKING) && !task->pinned && !w->helper;
}

void weft__ready(struct weft__task *task, bool next)
{
	struct weft__worker *w = weft__this_worker;

	if (weft__unlikely(weft__on_tsan()) || __builtin_expect(!is_at_home(w, task), 0))
		ready_otherwise(w, task, next);
	else
		ready_here(w, task, next);
}

/* ---- picking --------------------------------------------------------------------------------------------------- */

/* The number of timers that a turn of a wheel may complete: as many as soon run. Then the ring has room for their
 * tasks, and the prefetched lines are still in the cache. At least TURN_LEAST, because a ring full of tasks that yield
 * never has room. */
static unsigned enough(struct weft__worker *w)
{
	uint32_t waiting = weft__ring_count(&w->ring);

	if (waiting + TURN_LEAST < WEFT__RING / 2)
		return WEFT__RING / 2 - waiting;
	return WEFT_CANARY(full_rings_stop_timers) ? 0 : TURN_LEAST;
}

static uint64_t next_timer(const struct weft__worker *owner)
{
	return __atomic_load_n(&owner->wheel.next, __ATOMIC_RELAXED);
}

/* The time at which another worker than its owner should turn the wheel. */
static uint64_t due(const struct weft__worker *owner)
{
	uint64_t next = next_timer(owner);
	uint64_t called = __atomic_load_n(&owner->called, __ATOMIC_RELAXED);

	return next < called + HELD_AFTER ? called + HELD_AFTER : next;
}

/* The worker may have looked after `now` was read. */
static bool has_long_not_looked(const struct weft__worker *w, uint64_t now)
{
	return __atomic_load_n(&w->looked, __ATOMIC_RELAXED) + HELD_AFTER < now;
}

static bool has_long_tasks(const struct weft__worker *w)
{
	return __atomic_load_n(&w->look_every, __ATOMIC_RELAXED) < LONG_TASKS;
}

/* A runtime's only worker never rests: no other worker would run tasks that are added meanwhile. */
static bool is_to_rest(const struct weft__worker *w)
{
	return w->rt->workers > 1 && has_long_tasks(w) && next_timer(w) < weft__clock() + REST;
}

/* True: the owner, which has had long tasks, will turn its own wheel. See "Long tasks stay". */
static bool call_owner(struct weft__worker *owner, uint64_t now)
{
	if (!has_long_tasks(owner))
		return false;
	if (!wake_parked(owner) && (now - __atomic_load_n(&owner->called, __ATOMIC_RELAXED) < 2 * HELD_AFTER ||
				    has_long_not_looked(owner, now)))
		return false;
	__atomic_store_n(&owner->called, now, __ATOMIC_RELAXED);
	return true;
}

/* Complete the timers that are due in any wheel. */
static void turn_wheels(struct weft__worker *w, uint64_t now)
{
	struct weft__rt *rt = w->rt;
	struct weft__worker *owner;
	unsigned i;

	for (i = 0; i < rt->workers; i++) {
		owner = &rt->worker[i];
		if (owner == w ? next_timer(w) <= now : due(owner) <= now && !call_owner(owner, now))
			weft__count(&w->timers, weft__wheel_turn(&owner->wheel, now, enough(w)));
	}
}

uint64_t weft__waiting_for_io(const struct weft__rt *rt)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < rt->workers; i++)
		sum += __atomic_load_n(&rt->worker[i].io_began, __ATOMIC_RELAXED) -
		       __atomic_load_n(&rt->worker[i].io_ended, __ATOMIC_RELAXED);
	return sum;
}

static void take_in(struct weft__worker *w)
{
	struct weft__source *source = source_of(w->rt);

	if (source)
		source->take_in(source, w);
}

/* Take in events for a worker that is held in a long task. */
static void attend(struct weft__worker *w, struct weft__worker *held)
{
	struct weft__source *source = source_of(w->rt);

	if (source)
		source->attend(source, w, held);
}

static uint64_t earliest(struct weft__rt *rt)
{
	uint64_t next = WEFT_NEVER, of_worker;
	unsigned i;

	for (i = 0; i < rt->workers; i++) {
		of_worker = due(&rt->worker[i]);
		if (of_worker < next)
			next = of_worker;
	}
	return next;
}

/* Looks are so rare that the clock's cost does not count, and so frequent that timers are not late. */
static void adapt(struct weft__worker *w, uint64_t now)
{
	uint64_t took = now - w->looked;
	unsigned every = w->look_every;

	if (took > LOOK_WITHIN)
		every = took / LOOK_WITHIN >= every ? 1 : every / (unsigned)(took / LOOK_WITHIN);
	else if (took < LOOK_WITHIN / 2 && every < LOOK_EVERY)
		every++;
	__atomic_store_n(&w->looked, now, __ATOMIC_RELAXED);
	__atomic_store_n(&w->look_every, every, __ATOMIC_RELAXED);
	w->until_look = every;
}

/* Take tasks for which no stack had room, once this worker has run the tasks that it spawned itself. */
static void take_spawned(struct weft__worker *w)
{
	struct weft__task *task;
	unsigned i;

	if (WEFT_CANARY(crowds_wait_for_ever))
		return;
	for (i = 0; i < WEFT__RING / 2 && (i || !weft__fresh_now(&w->fresh)); i++) {
		task = take_shared(&w->rt->spawned);
		if (!task)
			return;
		(void)weft__fresh_add(&w->fresh, task);
	}
}

static inline __attribute__((always_inline)) struct weft__task *take_slot(struct weft__worker *w)
{
	if (!atomic_load_explicit(&w->slot, memory_order_relaxed))
		return NULL;
	return exchange_slot(w, NULL);
}

/* True: the worker has been in one task since the previous call. */
static bool is_held(struct weft__worker *w)
{
	uint64_t switches = __atomic_load_n(&w->switches, __ATOMIC_RELAXED);

	return __atomic_exchange_n(&w->seen, switches, __ATOMIC_RELAXED) == switches;
}

/* Take over the ready tasks of a worker that may be held inside a long task. Workers without a task steal; this is for
 * when no worker is idle. */
static void relieve(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;
	struct weft__worker *from = &rt->worker[(w->number + ++w->relieved) % rt->workers];
	struct weft__task *task;
	uint32_t count;

	if (from == w || !is_held(from))
		return;
	attend(w, from);
	for (count = weft__ring_count(&from->ring); count && (task = weft__ring_take_from(&from->ring)); count--)
		add(w, task);
	task = take_slot(from);
	if (task)
		add(w, task);
}

/* Is it time to take in events? A worker that is about to park does so there; but if each of its looks finds tasks
 * whose timers are due, it never parks. If many tasks are ready, an event's task would wait behind them: taking the
 * events in later needs fewer system calls. */
static bool must_take_in(struct weft__worker *w, bool idle, uint64_t now)
{
	if (!idle && weft__ring_count(&w->ring) < MANY)
		return true;
	return now - w->took_in > (idle ? LOOK_WITHIN : TAKE_IN_WITHIN);
}

/* A worker that has no other task takes its share of a long queue at once. These tasks are prefetched together, and one
 * look serves all of them. */
static void take_share(struct weft__worker *w)
{
	struct weft__shared *queue = &w->rt->shared;
	uint32_t room = (WEFT__RING - weft__ring_count(&w->ring)) / 4, count;
	struct weft__task *task;

	weft__spin_lock(&queue->lock);
	count = atomic_load_explicit(&queue->count, memory_order_relaxed) / w->rt->workers;
	for (count = count < room ? count : room; count && (task = take_locked(queue)); count--)
		(void)weft__ring_add(&w->ring, task);
	weft__spin_unlock(&queue->lock);
}

/* `idle`: the worker parks if this finds no task. */
static struct weft__task *look(struct weft__worker *w, bool idle)
{
	uint64_t now = weft__clock();
	struct weft__task *task;

	adapt(w, now);
	weft__home_answers(w);
	turn_wheels(w, now);
	if (must_take_in(w, idle, now)) {
		w->took_in = now;
		take_in(w);
	}
	take_spawned(w);
	if (w->rt->workers > 1) {
		relieve(w);
		weft__stack_share();
	}
	task = take_shared(&w->rt->shared);
	if (task && idle)
		take_share(w);
	if (task || now - w->took_oldest < OLDEST_EVERY)
		return task;
	w->took_oldest = now;
	task = take_shared(&w->rt->spawned);
	return task ? task : weft__fresh_take_oldest(&w->fresh);
}

/* Take pinned tasks and tasks of the ring in turn: either kind may have tasks that only yield. */
static inline struct weft__task *take_queued(struct weft__worker *w)
{
	struct weft__task *task;

	if (__builtin_expect(!atomic_load_explicit(&w->pinned, memory_order_relaxed), 1))
		return weft__ring_take(&w->ring);
	w->pins_next = !w->pins_next;
	task = w->pins_next ? take_pin(w) : weft__ring_take(&w->ring);
	if (task)
		return task;
	return w->pins_next ? weft__ring_take(&w->ring) : take_pin(w);
}

static __attribute__((noinline)) struct weft__task *pick_other(struct weft__worker *w)
{
	struct weft__task *task = NULL;

	if (w->streak < STREAK && (task = weft__fresh_take(&w->fresh))) {
		w->streak++;
		return task;
	}
	/* Another worker may run the slot's task while this worker runs the next from the ring. */
	if (w->streak && (task = take_slot(w)))
		add(w, task);
	w->streak = 0;
	task = take_queued(w);
	return task ? task : weft__fresh_take(&w->fresh);
}

static inline __attribute__((always_inline)) struct weft__task *pick_own(struct weft__worker *w)
{
	struct weft__task *task = NULL;

	if (w->streak < STREAK && (task = take_slot(w))) {
		w->streak++;
		return task;
	}
	return pick_other(w);
}

/* Returns the newest task of the older half. The rest keep their order, so that a large tree is not walked in
 * breadth. */
static struct weft__task *steal_fresh(struct weft__worker *from, struct weft__worker *w, uint32_t least)
{
	struct weft__task *half[WEFT__RING];
	uint32_t count, i;

	if (weft__fresh_now(&from->fresh) < least)
		return NULL;
	count = weft__fresh_take_half(&from->fresh, half);
	/* The thief's own stack is empty, or it would not steal. */
	for (i = 0; i + 1 < count; i++)
		(void)weft__fresh_add(&w->fresh, half[i]);
	return count ? half[count - 1] : NULL;
}

/* Has the worker been in one task since the previous check? Then a thief may take its slot, and its single spawned
 * task. */
static struct weft__task *steal_stuck(struct weft__worker *from, struct weft__worker *w)
{
	struct weft__task *task;

	if (!is_held(from))
		return NULL;
	attend(w, from);
	task = take_slot(from);
	return task ? task : steal_fresh(from, w, 1);
}

static struct weft__task *steal_ready(struct weft__worker *from, struct weft__worker *w)
{
	struct weft__task *task = weft__ring_steal(&from->ring, &w->ring);

	return task ? task : steal_fresh(from, w, 2);
}

/* Steal from any other worker, by `how`. */
static struct weft__task *steal(struct weft__worker *w,
				struct weft__task *(*how)(struct weft__worker *from, struct weft__worker *w))
{
	struct weft__rt *rt = w->rt;
	unsigned i, start = (unsigned)(weft__xorshift(&w->random) % rt->workers);
	struct weft__worker *from;
	struct weft__task *task;

	for (i = 0; i < rt->workers; i++) {
		from = &rt->worker[(start + i) % rt->workers];
		if (from != w && (task = how(from, w))) {
			weft__count(&w->steals, 1);
			return task;
		}
	}
	return NULL;
}

static struct weft__task *search(struct weft__worker *w)
{
	struct weft__task *task = NULL;

	if (!is_to_rest(w) || WEFT_CANARY(resting_workers_steal)) {
		if (!w->searching) {
			w->searching = true;
			atomic_fetch_add(&w->rt->searching, 1);
		}
		task = steal(w, steal_ready);
	}
	return task ? task : steal(w, steal_stuck);
}

/* Has the worker a task in its own queues? Its thread parks only when these are empty, but a step of a runtime without
 * threads also ends when its budget is spent: then any of them may hold tasks, and only the next step runs them. */
static bool own_anything(struct weft__worker *w)
{
	if (WEFT_CANARY(steps_forget_their_own))
		return false;
	return atomic_load_explicit(&w->slot, memory_order_relaxed) || weft__fresh_now(&w->fresh) ||
	       weft__ring_count(&w->ring) || atomic_load(&w->pinned);
}

/*
 * Must the worker run, instead of sleeping? A ready task is in one of these places:
 *   its own slot, stack of spawned tasks, ring, pins   own_anything
 *   the runtime's queues `shared` and `spawned`        here
 *   another worker's ring, or its stack if it has two  here, unless this worker rests
 *   another worker's slot, or its only spawned task    nowhere: its owner is about to run it (see "No wake-up is lost")
 *   the pins of another worker                         nowhere: only that worker may run them, and it is woken for them
 *   the queue of the helpers                           nowhere: only helpers may run them
 * A timer that is due, or an event of the source, ends the sleep at once, and is not looked for here.
 */
static bool anything(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;
	unsigned i;

	if (atomic_load(&rt->shared.count) || atomic_load(&rt->spawned.count) || own_anything(w) ||
	    atomic_load(&rt->stop))
		return true;
	for (i = 0; i < rt->workers && !w->rests; i++)
		if (weft__ring_count(&rt->worker[i].ring) || weft__fresh_now(&rt->worker[i].fresh) > 1)
			return true;
	return false;
}

/* ---- parking --------------------------------------------------------------------------------------------------- */

static void stop_searching(struct weft__worker *w)
{
	w->searching = false;
	atomic_fetch_sub(&w->rt->searching, 1);
}

static uint64_t all_switches(struct weft__rt *rt)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < rt->workers; i++)
		sum += __atomic_load_n(&rt->worker[i].switches, __ATOMIC_RELAXED);
	return sum;
}

/* The caller holds park_lock. Are all workers asleep, and has a task run since the previous look for a deadlock? */
static bool wants_deadlock_look(struct weft__rt *rt)
{
	return atomic_load(&rt->idle) == rt->workers && !rt->embedded && rt->seen_idle != all_switches(rt) &&
	       !weft__waiting_for_io(rt);
}

/* When to look at busy workers: soon, if this worker has just had a task. */
static uint64_t next_look(const struct weft__worker *w)
{
	if (WEFT_CANARY(nobody_looks_or_tells) || (WEFT_CANARY(nobody_looks_again) && !w->handed_on))
		return weft__clock() + (uint64_t)3 * WEFT__NANOSECONDS;
	return weft__clock() + (w->handed_on ? FIRST_LOOK : LOOK_AGAIN);
}

/* The time until which to sleep. One worker watches, or two, if the second has armed an earlier timer since. This
 * function reads the wheels after it writes `watch`: a worker that arms a timer writes its wheel first, and then reads
 * `watch`. */
static uint64_t watch(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;
	uint64_t next, look;

	weft__spin_lock(&rt->park_lock);
	if (w->is_parked && (atomic_load(&rt->watch) == WEFT_NEVER || earliest(rt) < atomic_load(&rt->watch))) {
		w->watching = true;
		do {
			next = earliest(rt);
			if (next == WEFT_NEVER && wants_deadlock_look(rt))
				next = weft__clock() + QUIET;
			look = atomic_load(&rt->idle) < rt->workers ? next_look(w) : WEFT_NEVER;
			if (next > look)
				next = look;
			atomic_store(&rt->watch, next);
			atomic_thread_fence(memory_order_seq_cst);
		} while (earliest(rt) < next);
	} else {
		next = w->rests ? next_timer(w) : WEFT_NEVER;
	}
	weft__spin_unlock(&rt->park_lock);
	return next;
}

/* Makes an event for a worker that is held by a task end the coming sleep. False: an event is already pending. */
static bool watch_held(struct weft__worker *w, struct weft__source *source)
{
	const uint64_t now = weft__clock();
	struct weft__rt *rt = w->rt;
	struct weft__worker *other;
	bool nothing = true;
	unsigned i;

	for (i = 0; i < rt->workers; i++) {
		other = &rt->worker[i];
		if (other != w && has_long_not_looked(other, now))
			nothing &= source->watch(source, w, other);
	}
	return nothing;
}

static bool sleep_in_source(struct weft__worker *w, uint64_t when)
{
	struct weft__source *source = source_of(w->rt);

	if (!source || !source->enter_sleep(source, w))
		return false;
	atomic_store(&w->in_source, true);
	if (!atomic_load(&w->token) && (!w->watching || watch_held(w, source)))
		source->sleep(source, w, when);
	atomic_store(&w->in_source, false);
	source->leave_sleep(source, w);
	if (source->unattended(source))
		w->handed_on = false;
	return true;
}

static void sleep_until(struct weft__worker *w, uint64_t when)
{
	if (sleep_in_source(w, when))
		return;
	while (!atomic_load_explicit(&w->token, memory_order_acquire)) {
		weft__futex_wait((uint32_t *)&w->token, 0, when);
		if (when != WEFT_NEVER && weft__clock() >= when)
			break;
	}
}

void weft__worker_get_up(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;

	weft__spin_lock(&rt->park_lock);
	if (w->is_parked)
		unlink_parked(w);
	if (w->watching) {
		w->watching = false;
		w->handed_on = false;
		atomic_store(&rt->watch, WEFT_NEVER);
	}
	weft__spin_unlock(&rt->park_lock);
	atomic_store_explicit(&w->token, 0, memory_order_relaxed);
	weft__probe1(worker_unpark, w);
	w->unparked = w->took_in = weft__clock();
	__atomic_store_n(&w->looked, w->unparked, __ATOMIC_RELAXED);
}

uint64_t weft__worker_lie_down(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;
	bool searched = w->searching;

	weft__check_fork(rt);
	/* Before the worker can be found in the list: a thread that wakes it makes it search again. */
	if (searched)
		stop_searching(w);
	weft__spin_lock(&rt->park_lock);
	w->parked = rt->parked;
	rt->parked = w;
	w->is_parked = true;
	w->rests = is_to_rest(w);
	atomic_fetch_add(&rt->idle, 1);
	weft__spin_unlock(&rt->park_lock);
	atomic_thread_fence(memory_order_seq_cst);
	if (w->rests && searched)
		notify(rt); /* it may have stopped before it looked everywhere */
	if (!WEFT_CANARY(worker_sleeps_without_a_look) && anything(w))
		return 0;
	weft__count(&w->parks, 1);
	weft__probe1(worker_park, w);
	return watch(w);
}

/* Look for a deadlock if the watcher has slept for QUIET and nobody has woken it. */
static void look_why(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;
	bool looks;

	if (!w->watching || atomic_load_explicit(&w->token, memory_order_relaxed) || earliest(rt) != WEFT_NEVER)
		return;
	weft__spin_lock(&rt->park_lock);
	looks = wants_deadlock_look(rt);
	if (looks)
		rt->seen_idle = all_switches(rt);
	weft__spin_unlock(&rt->park_lock);
	if (looks)
		weft__look_for_deadlock(rt);
}

static void park(struct weft__worker *w)
{
	uint64_t when = weft__worker_lie_down(w);

	if (WEFT_CANARY(idle_workers_wake_up) && when > weft__clock() + QUIET)
		when = weft__clock() + QUIET;
	if (when) {
		sleep_until(w, when);
		look_why(w);
	}
	weft__worker_get_up(w);
}

static inline __attribute__((always_inline)) void found(struct weft__worker *w)
{
	struct weft__rt *rt = w->rt;

	if (w->searching) {
		stop_searching(w);
		notify(rt);
	} else if (__builtin_expect(atomic_load_explicit(&rt->idle, memory_order_relaxed), 0)) {
		if (weft__ring_count(&w->ring) || weft__fresh_now(&w->fresh) || !w->handed_on ||
		    next_timer(w) < atomic_load_explicit(&rt->watch, memory_order_relaxed))
			notify(rt);
	}
	w->handed_on = true;
}

/* A look takes in events without the many atomic operations of parking. If few events are expected, it would be a
 * system call that the sleep repeats. */
static struct weft__task *pick_expected(struct weft__worker *w)
{
	struct weft__source *source = source_of(w->rt);

	if (!source || !source->expects(source, w))
		return NULL;
	source->take_in(source, w);
	return pick_own(w);
}

/* Inline, and so are found and run_task, because a switch is so short that their calls count. */
static inline __attribute__((always_inline)) struct weft__task *pick_now(struct weft__worker *w)
{
	struct weft__task *task = NULL;

	if (--w->until_look == 0)
		task = look(w, false);
	if (!task)
		task = pick_own(w);
	if (!task)
		task = pick_expected(w);
	if (!task)
		task = look(w, true);
	if (!task)
		task = pick_own(w);
	if (!task)
		task = search(w);
	if (task)
		found(w);
	return task;
}

struct weft__task *weft__worker_pick(struct weft__worker *w)
{
	return pick_now(w);
}

/* The next task; NULL: the runtime has stopped. */
static inline __attribute__((always_inline)) struct weft__task *pick(struct weft__worker *w)
{
	struct weft__task *task;

	while (!(task = pick_now(w))) {
		if (atomic_load(&w->rt->stop))
			return NULL;
		park(w);
	}
	return task;
}

static inline __attribute__((always_inline)) void run_task(struct weft__worker *w, struct weft__task *task)
{
	if (weft__task_run(w, task) != WEFT__YIELDED)
		return;
	weft__seen_release(task);
	if (__builtin_expect(task->pinned || weft__task_has(task, WEFT__BLOCKING) || MIGRATE, 0))
		weft__ready(task, false);
	else if (__builtin_expect(!weft__ring_add(&w->ring, task), 0)) /* the frame of add() is large */
		add(w, task);
}

void weft__worker_run(struct weft__worker *w, struct weft__task *task)
{
	run_task(w, task);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

enum { CLOSED, OPEN, ABANDONED };

/* Stacks grow in a handler on the thread's alternate signal stack: a thread without that stack must not resume
 * tasks. */
static void attach(struct weft__rt *rt)
{
	if (!weft__prepare_thread())
		atomic_store(&rt->unattached, true);
	/* Sequentially consistent: all_attached reads `unattached` after `attached`. */
	atomic_fetch_add(&rt->attached, 1);
	weft__futex_wake((uint32_t *)&rt->attached);
}

static bool all_attached(struct weft__rt *rt, unsigned started)
{
	uint32_t attached;

	while ((attached = atomic_load(&rt->attached)) < started)
		weft__futex_wait((uint32_t *)&rt->attached, attached, WEFT_NEVER);
	return !atomic_load(&rt->unattached) || WEFT_CANARY(workers_without_signal_stack);
}

static void *work(void *argument)
{
	struct weft__worker *w = argument;
	struct weft__task *task;
	bool alone = false;
	char name[16];

	attach(w->rt);
	while (!atomic_load(&w->rt->gate))
		weft__futex_wait((uint32_t *)&w->rt->gate, CLOSED, WEFT_NEVER);
	weft__futex_wake((uint32_t *)&w->rt->gate);
	if (atomic_load(&w->rt->gate) == ABANDONED)
		return NULL;
	weft__set_worker(w);
	snprintf(name, sizeof name, "weft-%u", w->number); /* the name that weft_rt_dump uses */
	prctl(PR_SET_NAME, name);
	weft__slack_exact();
	if (w->rt->worker_begins)
		w->rt->worker_begins(w->number, w->rt->worker_arg);
	if (w->rt->workers == 1)
		alone = weft__alone_begin();
	w->unparked = weft__clock();
	__atomic_store_n(&w->looked, w->unparked, __ATOMIC_RELAXED);
	while ((task = pick(w)))
		run_task(w, task);
	if (w->searching)
		stop_searching(w);
	weft__alone_end(alone);
	weft__set_worker(NULL); /* destructors of the thread's variables may still use objects of weft/sync.h */
	return NULL;
}

void weft__workers_stop(struct weft__rt *rt)
{
	unsigned i;

	atomic_store(&rt->stop, true);
	for (i = 0; i < rt->workers; i++)
		(void)wake_parked(&rt->worker[i]);
}

void weft__rt_left(struct weft__rt *rt)
{
	if (atomic_fetch_sub(&rt->live, 1) != 1 || rt->sim || rt->embedded)
		return;
	weft__check_fork(rt);
	weft__workers_stop(rt);
}

void weft__worker_init(struct weft__rt *rt, struct weft__worker *w, unsigned number)
{
	w->rt = rt;
	w->number = number;
	w->look_every = w->until_look = LOOK_EVERY;
	w->random = number * 0x9e3779b97f4a7c15u + 1;
	w->pins_end = &w->pins;
	w->handed_on = true;
	w->reserves = rt->workers > 1 && !weft__on_tsan();
	w->pause = WEFT__PAUSE_LEAST;
	w->ring.no_thieves = w->fresh.no_thieves = rt->workers == 1;
	weft__wheel_init(&w->wheel, weft__clock());
}

/* Workers begin together, or not at all: they use each other's records in the runtime. Each worker wakes the next. If
 * this thread woke all of them, on a processor that it is about to leave, the kernel could put two on one processor,
 * and would leave them there for some 10 ms. */
static void open_gate(struct weft__rt *rt, uint32_t how)
{
	atomic_store(&rt->gate, how);
	weft__futex_wake((uint32_t *)&rt->gate);
}

int weft__workers_run(struct weft__rt *rt)
{
	unsigned i, started;
	int error = 0;

	for (i = 0; i < rt->workers; i++)
		weft__worker_init(rt, &rt->worker[i], i);
	for (started = 0; started < rt->workers; started++) {
		error = pthread_create(&rt->worker[started].thread, NULL, work, &rt->worker[started]);
		if (error)
			break;
	}
	if (!all_attached(rt, started) && !error)
		error = ENOMEM;
	open_gate(rt, error ? ABANDONED : OPEN);
	for (i = 0; i < started; i++)
		pthread_join(rt->worker[i].thread, NULL);
	return -error;
}
