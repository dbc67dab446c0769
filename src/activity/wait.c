/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What activities wait for. A function …_begin puts the running activity into a queue and says whether it must park.
 * The header's inline function parks, in the caller's frame, so that no frame of the library is ever copied.
 */
#include "activity/activity.h"
#include "internal/line.h"

static void wait_for(weft_activity_t *self, void *object, unsigned what)
{
	self->state = WEFT__WAITING;
	self->object = object;
	self->what = (uint8_t)what;
	self->next = NULL;
}

bool weft__activity_sem_begin(weft_activity_sem_t *s)
{
	weft_activity_t *self = weft__activity_hot.self;

	wait_for(self, s, WEFT__FOR_SEM);
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
	wait_for(self, a, WEFT__FOR_END);
	self->next = a->waiters;
	a->waiters = self;
	return true;
}

/* ---- plain code, where no yield switches ------------------------------------------------------------------------ */

void weft_activity_yield(void)
{
}

void weft__activity_park(void)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line,
			"an activity would have to wait inside no_yield, or in code compiled without --activities: ");
	weft__line_text(
	    &line, "nothing else can run there; wait outside of it, or compile that file with `weft cc --activities`");
	weft__line_die(&line);
}
