/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Activities that end before their function returns: they were cancelled, or there was no memory. First the deferred
 * functions of such an activity run, in its own frames, where it waited; then its frames are discarded.
 *
 * Cancelling a parked activity replaces its return address (weft__divert), so a switch need not check for it.
 */
#include "activity/activity.h"

static _Noreturn void end_with(struct weft__activity_group *g, weft_activity_t *self, int error)
{
	weft_coro_t *k = g->stackful ? ((struct weft__own *)self->frames)->k : g->coro;
	struct weft__deferred *d;

	if (self->state >= WEFT__A_WAITS)
		(void)weft__unqueue(g, self);
	self->state = WEFT__A_RUNNING;
	weft__set_flags(g, self, self->flags | WEFT__A_CANCELLED | WEFT__CLEANS_UP);
	while ((d = weft__deferred_of(k->deferred))) {
		void (*fn)(void *) = (void (*)(void *))(uintptr_t)weft__activity_twin((void *)(uintptr_t)d->fn);

		k->deferred = d->next;
		fn(d->arg);
	}
	k->deferred = NULL;
	if (g->stackful)
		weft__own_end(self, error);
	g->ending = error;
	weft__activity_leave(g);
}

void weft__activity_fail(int error)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	end_with(g, weft__activity_hot.self, error);
}

void weft__activity_ends_cancelled(void)
{
	weft__activity_fail(ECANCELED);
}

/* An activity that is being woken may have received something, which must not be lost. Such an activity continues to
 * its next wait. */
static void interrupt(struct weft__activity_group *g, weft_activity_t *a)
{
	weft__set_flags(g, a, a->flags | WEFT__A_CANCELLED);
	if (a->state == WEFT__FOR_CALL) {
		weft__server_cancel(a->object);
	} else if (a->state >= WEFT__A_WAITS) {
		if (!weft__unqueue(g, a))
			return;
		weft__activity_ready(g, a);
		if (!(a->flags & WEFT__IN_CALL))
			weft__divert(g, a);
	} else if (a->state == WEFT__A_READY && !a->object) {
		weft__divert(g, a);
	}
}

void weft_activity_cancel(weft_activity_t *a)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (!g || a->state <= WEFT__A_NEW || a->state == WEFT__A_ENDED || a->flags & WEFT__A_CANCELLED)
		return;
	interrupt(g, a);
}

/* Also interrupts an activity that waits while it ends: it continues with the rest of its deferred functions. */
static void interrupt_any(weft_activity_t *a, void *g)
{
	if (a->state >= WEFT__A_READY && a->state != WEFT__A_ENDED)
		if (!(a->flags & WEFT__A_CANCELLED) || a->state >= WEFT__A_WAITS)
			interrupt(g, a);
}

void weft__activity_cancel_all(struct weft__activity_group *g)
{
	weft__each_activity(g, interrupt_any, g);
}
