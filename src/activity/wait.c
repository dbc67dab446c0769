/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What activities wait for. A function …_begin puts the running activity into a queue and says whether it must park.
 * The header's inline function parks, in the caller's frame, so that no frame of the library is ever copied.
 */
#include "activity/activity.h"
#include "internal/line.h"

bool weft__activity_sem_begin(weft_activity_sem_t *s)
{
	weft_activity_t *self = weft__activity_hot.self;

	if (weft__unlikely(!self))
		return true; /* weft__activity_park says why that cannot be */
	weft__wait_for(self, s, WEFT__FOR_SEM);
	if (s->first)
		s->last->next = self;
	else
		s->first = self;
	s->last = self;
	return true;
}

void weft__activity_sem_wake(weft_activity_sem_t *s)
{
	weft_activity_t *a = s->first;

	s->first = a->next;
	weft__ready(weft__activity_hot.group, a);
}

bool weft__activity_wait_begin(weft_activity_t *a)
{
	weft_activity_t *self = weft__activity_hot.self;

	if (a->state == WEFT__ENDED)
		return false;
	if (weft__unlikely(!self))
		return true;
	weft__wait_for(self, a, WEFT__FOR_END);
	self->next = a->waiters;
	a->waiters = self;
	return true;
}

/* ---- a wait that ends early -------------------------------------------------------------------------------------- */

static void leave_sem(weft_activity_sem_t *s, weft_activity_t *a)
{
	weft_activity_t **at = &s->first, *before = NULL;

	for (; *at != a; at = &before->next)
		before = *at;
	*at = a->next;
	if (s->last == a)
		s->last = before;
}

static void leave_end(weft_activity_t *of, const weft_activity_t *a)
{
	weft_activity_t **at = &of->waiters;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
}

static bool leave_waker(struct weft__activity_group *g, weft_activity_waker_t *w)
{
	if (!weft__waker_withdraw(w))
		return false;
	g->outside -= !w->local;
	return true;
}

bool weft__unqueue(struct weft__activity_group *g, weft_activity_t *a)
{
	switch (a->state) {
	case WEFT__FOR_SEM:
		return leave_sem(a->object, a), true;
	case WEFT__FOR_END:
		return leave_end(a->object, a), true;
	case WEFT__FOR_TIME:
		return weft__sleeper_remove(g, a), true;
	case WEFT__FOR_WAKER:
		return leave_waker(g, a->object);
	case WEFT__FOR_MAIL:
		return weft__mail_leave(a->object);
	default:
		return false;
	}
}

/* ---- plain code, where no yield switches ------------------------------------------------------------------------ */

void weft_activity_yield(void)
{
}

WEFT__LAST_WORDS(, weft__activity_outside, (const char *what), what)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, what);
	weft__line_text(&line,
			" outside of activities: define activity_main in place of main (weft/charcoal.h), or run "
			"this code by weft_activity_run");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(static, die_parked, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(
	    &line, "an activity would have to wait inside no_yield, in code compiled without --activities, or in a "
		   "coroutine or weft_run of its own: ");
	weft__line_text(
	    &line, "nothing else can run there; wait outside of it, or compile that file with `weft cc --activities`");
	weft__line_die(&line);
}

void weft__activity_park(void)
{
	if (!weft__activity_hot.self)
		weft__activity_outside("a wait");
	die_parked();
}
