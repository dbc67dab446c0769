/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A child of fork has the thread that called fork, and no other thread. So the child's group has only the activity that
 * called fork; the other activities continue in the parent. The child treats them as cancelled, but does not run their
 * deferred functions. The child has no timer, so its inserted yields and its yield() do not switch; yield_now() and
 * waits switch to activities that the child starts. Its system calls are libc's, because the group's server and its
 * helpers stay in the parent.
 */
#include <pthread.h>

#include "activity/activity.h"

/* Empty the queue that `a` waits in. The activities in it exist only in the parent. */
static void leave_queue(weft_activity_t *a)
{
	weft__queue_forget(a);
	if (a->state == WEFT__FOR_MAIL)
		weft__mail_forked(a->object);
}

static bool stays(weft_activity_t *a, void *self)
{
	if (a == self || a->state <= WEFT__A_NEW)
		return true;
	leave_queue(a);
	a->state = WEFT__A_ENDED;
	a->error = ECANCELED;
	a->frames = NULL;
	return false;
}

static void leave_others(struct weft__activity_group *g, weft_activity_t *self)
{
	g->is_child = true;
	weft__table_keep(g, stays, self);
	self->waiters = NULL;
	g->first = NULL;
	g->sleepers.count = 0;
	g->live = 1;
	g->to_end = weft__is_to_end(self);
	g->outside = 0;
	atomic_store(&g->held, 0);
	atomic_store(&g->woken, NULL);
	weft__posts_forget(g);
	atomic_store(&g->idle, NULL);
	atomic_store(&g->wakers, 0);
	g->server = NULL;
	g->scheduler = NULL;
	g->period = WEFT_ACTIVITY_NO_TIMER;
	g->every_yield = false;
}

/* Handles the running group, and the groups inside whose activities it was made. */
static void forked(void)
{
	struct weft__activity_hot *hot = &weft__activity_hot;

	weft__timer_forked();
	for (; hot->group; hot = &hot->group->outer) {
		if (hot->self)
			leave_others(hot->group, hot->self);
		hot->flag = hot->group->to_end > 0;
		hot->limit = hot->flag ? UINTPTR_MAX : hot->full;
	}
}

static void watch(void)
{
	(void)pthread_atfork(NULL, NULL, forked);
}

void weft__fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, watch);
}
