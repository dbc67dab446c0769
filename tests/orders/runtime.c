/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two workers, and a thread of the program's: no worker sleeps while a task is ready, and a task that is cancelled at
 * the moment when it receives an item either has the item or has not. */
#include "checker.h"
#include "sched/worker.c"

#include <errno.h>
#include <string.h>
#include <weft/sync.h>

static struct weft__rt *rt;
static weft_event_t event;
static weft_chan_t *chan;
static int ran, sent, received, cancelled;

static int count(int *what)
{
	return __atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

static void begin_with(weft_fn_t *fn)
{
	static const weft_rt_config_t config = {.task.policy = WEFT_OVERCOMMIT, .task.stack_size = 64 << 10};
	int error;

	memset(&event, 0, sizeof event);
	ran = sent = received = cancelled = 0;
	chan = weft_chan_make(sizeof(int), 0);
	rt = weft__rt_make(&config, 2, NULL, fn, NULL, &error);
	HOLDS(rt && chan);
	for (unsigned i = 0; i < 2; i++)
		weft__worker_init(rt, &rt->worker[i], i);
	rt->gate = OPEN;
}

static void ends(void)
{
	HOLDS(!rt->main.task && !atomic_load(&rt->live));
	weft__rt_free(rt);
	HOLDS(weft__chan_free(chan) == 0);
}

static void first_worker(void)
{
	work(&rt->worker[0]);
}

static void second_worker(void)
{
	work(&rt->worker[1]);
}

/* When all threads sleep, no task may be ready. */
static void nothing_is_ready(void)
{
	HOLDS(!atomic_load(&rt->shared.count) && !atomic_load(&rt->spawned.count));
	for (unsigned i = 0; i < 2; i++) {
		struct weft__worker *w = &rt->worker[i];

		HOLDS(!atomic_load(&w->slot) && !weft__ring_count(&w->ring) && !weft__fresh_now(&w->fresh) &&
		      !atomic_load(&w->pinned));
	}
}

/* ---- a thread wakes a task --------------------------------------------------------------------------------------- */

static void *waits_for_event(void *unused)
{
	HOLDS(weft_event_wait(&event) == 0);
	count(&ran);
	return unused;
}

static void event_begins(void)
{
	begin_with(waits_for_event);
}

static void sets_event(void)
{
	weft_event_set(&event);
}

static void event_ends(void)
{
	HOLDS(ran == 1);
	ends();
}

/* ---- a task spawns further tasks --------------------------------------------------------------------------------- */

static void *runs(void *unused)
{
	count(&ran);
	return unused;
}

static void *spawns_two(void *unused)
{
	HOLDS(weft_spawn_detached(runs, NULL, NULL) == 0);
	HOLDS(weft_spawn_detached(runs, NULL, NULL) == 0);
	return unused;
}

static void spawn_begins(void)
{
	begin_with(spawns_two);
}

static void spawn_ends(void)
{
	HOLDS(ran == 2);
	ends();
}

static void *spawns_and_waits(void *unused)
{
	WEFT_SCOPE(scope);
	HOLDS(weft_scope_spawn(&scope, runs, NULL) == 0);
	HOLDS(weft_scope_spawn(&scope, runs, NULL) == 0);
	HOLDS(weft_scope_wait(&scope) == 0);
	HOLDS(__atomic_load_n(&ran, __ATOMIC_RELAXED) == 2);
	return unused;
}

static void scope_begins(void)
{
	begin_with(spawns_and_waits);
}

/* ---- a worker between two long tasks ---------------------------------------------------------------------------- */

static void *nothing(void *unused)
{
	return unused;
}

static void nothing_begins(void)
{
	begin_with(nothing);
}

/* The worker steals nothing from the other worker, and the other's tasks are still there after the rest. */
static void rests(void)
{
	struct weft__worker *w = &rt->worker[0], *other = &rt->worker[1];
	struct weft_spawn what = {runs, NULL, NULL, NULL, NULL};
	struct weft__task *task;

	weft__set_worker(other);
	HOLDS(weft__task_spawn(rt, &what, &task) == 0);
	weft__ready(task, false);
	weft__set_worker(w);
	w->look_every = 1;
	w->wheel.next = weft__clock() + REST / 2;
	HOLDS(!search(w) && !w->searching);
	w->wheel.next = weft__clock() + 2 * REST;
	HOLDS(search(w) == task && w->searching);
	stop_searching(w);
	w->wheel.next = WEFT_NEVER;
	add(w, task);
	work(w);
}

static void rest_ends(void)
{
	HOLDS(ran == 1);
	ends();
}

/* ---- timers, and a task that only one worker may run ------------------------------------------------------------ */

static void *sleeps(void *unused)
{
	HOLDS(weft_sleep(1000000) == 0);
	count(&ran);
	return unused;
}

/* The sleeper's worker has the later timer; the other worker may sleep already. */
static void *sleeps_longer(void *unused)
{
	HOLDS(weft_spawn_detached(sleeps, NULL, NULL) == 0);
	HOLDS(weft_sleep(3000000) == 0);
	count(&ran);
	return unused;
}

static void sleep_begins(void)
{
	begin_with(sleeps_longer);
}

static void *spawns_pinned(void *unused)
{
	static const weft_task_attr_t on_each[] = {{.worker = 1}, {.worker = 2}};

	HOLDS(weft_spawn_detached(runs, NULL, &on_each[0]) == 0);
	HOLDS(weft_spawn_detached(runs, NULL, &on_each[1]) == 0);
	return unused;
}

static void pin_begins(void)
{
	begin_with(spawns_pinned);
}

/* ---- cancelled while it receives an item ------------------------------------------------------------------------- */

static void *receives(void *unused)
{
	int item = 0, error = weft_chan_receive(chan, &item);

	HOLDS(error == 0 || error == -ECANCELED);
	HOLDS(error ? !item : item == 1);
	received = item;
	cancelled = error == -ECANCELED;
	return unused;
}

static void *receiver_begins(void *unused)
{
	static const weft_task_attr_t attr = {.flags = WEFT_TASK_CODES};

	WEFT_SCOPE(scope);
	HOLDS(weft_scope_spawn_with(&scope, NULL, receives, NULL, &attr) == 0);
	(void)weft_scope_wait(&scope);
	return unused;
}

static void cancel_begins(void)
{
	begin_with(receiver_begins);
}

static void cancels(void)
{
	weft_rt_cancel(rt);
}

static void sends(void)
{
	int item = 1, error = weft_chan_send_until(chan, &item, 0);

	HOLDS(error == 0 || error == -ETIMEDOUT);
	sent = !error;
	orders_saw((unsigned)sent);
	cancels();
}

static void cancel_ends(void)
{
	HOLDS(sent == received);
	orders_saw(2 + (unsigned)received);
	ends();
}

#define OF(begins, ends, ...)                                                                                          \
	.begin = begins, .end = ends, .thread = {__VA_ARGS__}, .all_wait = nothing_is_ready, .preemptions = 1,         \
	.stale = 1

#define TWO_WORKERS first_worker, second_worker

const struct scenario runtime_scenarios[] = {
    {.name = "rt_event", OF(event_begins, event_ends, TWO_WORKERS, sets_event)},
    {.name = "rt_spawn", OF(spawn_begins, spawn_ends, TWO_WORKERS)},
    {.name = "rt_scope", OF(scope_begins, spawn_ends, TWO_WORKERS)},
    {.name = "rt_rest", OF(nothing_begins, rest_ends, rests)},
    {.name = "rt_sleep", OF(sleep_begins, spawn_ends, TWO_WORKERS)},
    {.name = "rt_pin", OF(pin_begins, spawn_ends, TWO_WORKERS)},
    {.name = "rt_cancel", OF(cancel_begins, cancel_ends, TWO_WORKERS, sends)},
    {.name = "drawn_event", OF(event_begins, event_ends, TWO_WORKERS, sets_event), .random = true},
    {.name = "drawn_spawn", OF(spawn_begins, spawn_ends, TWO_WORKERS), .random = true},
    {.name = "drawn_scope", OF(scope_begins, spawn_ends, TWO_WORKERS), .random = true},
    {.name = "drawn_sleep", OF(sleep_begins, spawn_ends, TWO_WORKERS), .random = true},
    {.name = "drawn_pin", OF(pin_begins, spawn_ends, TWO_WORKERS), .random = true},
    {.name = "drawn_cancel", OF(cancel_begins, cancel_ends, TWO_WORKERS, sends), .random = true},
    {.name = "drawn_cancel_only", OF(cancel_begins, cancel_ends, TWO_WORKERS, cancels), .random = true},
    {.name = NULL},
};
