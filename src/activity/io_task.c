/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of a group: a task that performs the I/O that activities request of the runtime, so that no record of an
 * operation is in frames that are copied. The server starts operations and does not wait for them: their waiters put
 * the calls into the server's inbox again. A call without an asynchronous form runs in a task of its own.
 *
 *   a call is      in                                  it leaves that stage by
 *   NEW            the inbox                           the server
 *   WAITING        the runtime, by its `io`'s waiter   the end of the wait, in any thread
 *   STEP           the inbox                           the server: WAITING again, or done: its waker is woken
 *   RUNNING        a task of its own                   that task's last step
 *   JOIN           the inbox                           the server, when the task has ended: its waker is woken
 *
 * A group in a task has its server in the same runtime. Otherwise the group opens a runtime at its first call. The only
 * worker of that runtime is the group's own thread, when it takes in events and when no activity is ready.
 */
#include <poll.h>
#include <stdlib.h>

#include "activity/activity.h"

enum { NEW, STEP, JOIN };

struct weft__server {
	struct weft__activity_group *group;
	weft_rt_t *rt; /* the group's own; NULL: the group is in a task */
	_Atomic(struct weft__call *) inbox;
	_Atomic(weft_waiter_t *) sleeps; /* its waiter while it sleeps; the thread that takes it completes it */
	/* `sleeps`, or the group's `idle`, if the group's driver sleeps in this runtime. */
	_Atomic(weft_waiter_t *) *idle;
	_Atomic bool stop;
	weft_waiter_t waiter;
	weft_scope_t scope; /* the calls' tasks */
};

/* ---- the inbox --------------------------------------------------------------------------------------------------- */

static void tell(struct weft__server *s)
{
	weft_waiter_t *w = atomic_exchange(s->idle, NULL);

	if (w && weft_waiter_claim(w, 0))
		weft_waiter_complete(w);
}

/* When the call is in the inbox it may be freed, and after the last call the group, too. weft__group_tell_begin
 * keeps the group until weft__group_tell_end. */
static void put(struct weft__call *c, unsigned stage)
{
	struct weft__server *s = c->server;
	struct weft__activity_group *g = s->group;

	c->stage = (uint8_t)stage;
	weft__group_tell_begin(g);
	c->next = atomic_load_explicit(&s->inbox, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&s->inbox, &c->next, c))
		continue;
	tell(s);
	weft__group_tell_end(g);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void done(struct weft__call *c)
{
	weft_activity_wake(&c->waker);
}

static void wait_ended(weft_waiter_t *w)
{
	put(w->owner, STEP);
}

static void *run(void *call)
{
	struct weft__call *c = call;

	c->fn(c);
	put(c, JOIN);
	return NULL;
}

static void withdraw(struct weft__call *c)
{
	if (atomic_exchange(&c->withdrawn, true))
		return;
	if (c->fn)
		weft__cancel_task(&c->task);
	else if (weft_waiter_claim(&c->io.waiter, -ECANCELED))
		weft_waiter_complete(&c->io.waiter);
}

/* Sequentially consistent, like weft__server_cancel: at least one of the two functions sees the other's store. */
static void can_be_withdrawn(struct weft__call *c)
{
	atomic_store(&c->begun, true);
	if (atomic_load(&c->cancelled))
		withdraw(c);
}

static void spawn(struct weft__call *c)
{
	static const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	int error = weft_scope_spawn_with(&c->server->scope, &c->task, run, c, &codes);

	if (error) {
		c->result = error;
		done(c);
		return;
	}
	can_be_withdrawn(c);
}

static void go_on(struct weft__call *c, int next)
{
	while (next == WEFT_IO_WAITS) {
		c->io.waiter.wake = wait_ended;
		c->io.waiter.owner = c;
		can_be_withdrawn(c);
		if (weft_waiter_park(&c->io.waiter))
			return;
		next = weft__io_step(&c->io);
	}
	c->result = next == WEFT_IO_BLOCKS ? -ENOSYS : c->io.result;
	done(c);
}

static void attend(struct weft__call *c)
{
	if (c->stage == JOIN) {
		(void)weft_join(&c->task, NULL);
		done(c);
	} else if (c->stage == STEP) {
		go_on(c, weft__io_step(&c->io));
	} else if (atomic_load(&c->cancelled)) {
		c->result = -ECANCELED;
		done(c);
	} else if (c->fn) {
		spawn(c);
	} else {
		c->io.step = 0;
		go_on(c, weft_op_io(&c->io));
	}
}

/* Attends to the calls of the inbox, the oldest first. */
static bool attend_all(struct weft__server *s)
{
	struct weft__call *c = atomic_exchange(&s->inbox, NULL), *older = NULL, *next;

	for (; c; c = next) {
		next = c->next;
		c->next = older;
		older = c;
	}
	for (c = older; c; c = next) {
		next = c->next;
		attend(c);
	}
	return older;
}

static bool has_work(struct weft__server *s)
{
	return atomic_load(&s->inbox) || atomic_load(&s->stop);
}

static void rest(struct weft__server *s)
{
	weft_waiter_init(&s->waiter, "calls of activities", s, WEFT_NEVER);
	atomic_store(s->idle, &s->waiter);
	/* If another thread has taken the waiter, that thread completes it. */
	if (!has_work(s) || !atomic_exchange(s->idle, NULL))
		(void)weft_wait(&s->waiter);
}

static void *serve(void *server)
{
	struct weft__server *s = server;

	weft_scope_open(&s->scope, WEFT_NEVER);
	weft_shield_begin();
	while (attend_all(s) || !atomic_load(&s->stop))
		if (!has_work(s))
			rest(s);
	(void)weft_scope_wait(&s->scope);
	weft_shield_end();
	return NULL;
}

/* ---- its life ---------------------------------------------------------------------------------------------------- */

static int start_here(struct weft__server *s)
{
	int error = weft_rt_open(NULL, &s->rt);

	if (error)
		return error;
	s->idle = &s->group->idle;
	error = weft_rt_spawn(s->rt, serve, s, NULL);
	if (error)
		(void)weft_rt_close(s->rt);
	return error;
}

static int start(struct weft__server *s)
{
	if (!s->group->in_task)
		return start_here(s);
	s->idle = &s->sleeps;
	return weft_scope_spawn(&s->group->inside.scope, serve, s);
}

static struct weft__server *server(struct weft__activity_group *g)
{
	struct weft__server *s = g->server;

	if (s)
		return s;
	s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->group = g;
	if (start(s)) {
		free(s);
		return NULL;
	}
	return g->server = s;
}

bool weft__server_ask(struct weft__activity_group *g, struct weft__call *c)
{
	c->server = server(g);
	if (!c->server)
		return false;
	put(c, NEW);
	return true;
}

void weft__server_cancel(struct weft__call *c)
{
	atomic_store(&c->cancelled, true);
	if (atomic_load(&c->begun))
		withdraw(c);
}

bool weft__server_is_here(const struct weft__activity_group *g)
{
	return g->server && g->server->rt;
}

void weft__server_step(struct weft__activity_group *g)
{
	(void)weft_rt_step(g->server->rt, 0);
}

static int milliseconds(uint64_t until)
{
	uint64_t now;

	if (until == WEFT_NEVER)
		return -1;
	now = weft_now();
	if (until <= now)
		return 0;
	return until - now > 1000000000 ? 1000 : (int)((until - now + 999999) / 1000000);
}

/* Sleeps until an event has come for the group, or until a time. */
void weft__server_sleep(struct weft__activity_group *g, uint64_t until)
{
	struct pollfd fd = {weft_rt_fd(g->server->rt), POLLIN, 0};

	for (;;) {
		int more = weft_rt_step(g->server->rt, 1000000), time = milliseconds(until);

		if (g->first || atomic_load(&g->woken) || atomic_load(&g->posted) || !time)
			return;
		if (until == WEFT_NEVER && !g->outside && !atomic_load(&g->held))
			return;
		if (more != 1)
			(void)poll(&fd, 1, time);
	}
}

static void end_here(struct weft__server *s)
{
	struct pollfd fd = {weft_rt_fd(s->rt), POLLIN, 0};

	while (weft_rt_close(s->rt) == -EBUSY)
		if (!weft_rt_step(s->rt, WEFT_NEVER) && weft_rt_close(s->rt) != -EBUSY)
			return;
		else
			(void)poll(&fd, 1, 1);
}

void weft__server_end(struct weft__activity_group *g)
{
	struct weft__server *s = g->server;

	if (s) {
		atomic_store(&s->stop, true);
		tell(s);
		if (s->rt)
			end_here(s);
	}
	if (g->in_task)
		(void)weft_scope_wait(&g->inside.scope);
	g->server = NULL;
	/* Other threads may be about to return from `put`. */
	weft__wakeups_end(g);
	free(s);
}
