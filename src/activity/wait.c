/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Queues in which activities wait. A function …_begin puts the running activity into a queue and says whether it must
 * park. The header's inline function parks, in the caller's frame, so that no frame of the library is ever copied.
 */
#include "activity/activity.h"
#include "internal/message.h"

/*
 * Each queue is linked both ways, so that an activity leaves it in a time that does not depend on its length:
 *
 *   a semaphore    first -> A -> B -> C          next: B, C, the semaphore's mark        object: the mark, A, B
 *   an activity    waiters -> C -> B -> A        next: B, A, NULL                        object: the mark, C, B
 *
 * A mark is the address of the semaphore, or of the activity that is to end, with its lowest bit set.
 */
static void *mark_of(void *object)
{
	return (char *)object + 1;
}

static bool is_mark(const void *link)
{
	return (uintptr_t)link & 1;
}

static void *object_of(void *mark)
{
	return (char *)mark - 1;
}

bool weft__activity_sem_begin(weft_activity_sem_t *s)
{
	weft_activity_t *self = weft__activity_hot.self;

	if (weft__unlikely(!self))
		return true; /* weft__activity_park reports the error */
	self->state = WEFT__FOR_SEM;
	self->next = mark_of(s);
	if (s->first) {
		self->object = s->last;
		s->last->next = self;
	} else {
		self->object = mark_of(s);
		s->first = self;
	}
	s->last = self;
	return true;
}

void weft__activity_sem_wake(weft_activity_sem_t *s)
{
	weft_activity_t *a = s->first, *next = a->next;

	if (is_mark(next)) {
		s->first = NULL;
	} else {
		s->first = next;
		next->object = mark_of(s);
	}
	weft__activity_ready(weft__activity_hot.group, a);
}

bool weft__activity_wait_begin(weft_activity_t *a)
{
	weft_activity_t *self = weft__activity_hot.self;

	if (a->state == WEFT__A_ENDED)
		return false;
	if (weft__unlikely(!self))
		return true;
	weft__wait_for(self, mark_of(a), WEFT__FOR_END);
	self->next = a->waiters;
	if (self->next)
		self->next->object = self;
	a->waiters = self;
	return true;
}

/* ---- a wait that ends early -------------------------------------------------------------------------------------- */

static void leave_sem(weft_activity_t *a)
{
	weft_activity_t *next = a->next, *before = a->object;
	weft_activity_sem_t *s = is_mark(before) ? object_of(before) : is_mark(next) ? object_of(next) : NULL;

	if (is_mark(before))
		s->first = is_mark(next) ? NULL : next;
	else
		before->next = next;
	if (!is_mark(next))
		next->object = before;
	else if (!is_mark(before))
		s->last = before;
}

static void leave_end(weft_activity_t *a)
{
	weft_activity_t *before = a->object;

	if (is_mark(before))
		((weft_activity_t *)object_of(before))->waiters = a->next;
	else
		before->next = a->next;
	if (a->next)
		a->next->object = before;
}

void *weft__waits_for(const weft_activity_t *a)
{
	const weft_activity_t *at = a;

	if (a->state != WEFT__FOR_SEM && a->state != WEFT__FOR_END)
		return a->object;
	while (!is_mark(at->object))
		at = at->object;
	return object_of(at->object);
}

void weft__queue_forget(weft_activity_t *a)
{
	if (a->state == WEFT__FOR_SEM && is_mark(a->object))
		((weft_activity_sem_t *)object_of(a->object))->first = NULL;
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
		return leave_sem(a), true;
	case WEFT__FOR_END:
		return leave_end(a), true;
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

void weft_activity_give_way(void)
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
