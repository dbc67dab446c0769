/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * WEFT_ACTIVITIES=profile: which calls are made in yielding mode although they are short. Such a call pays for checks
 * and for variables in the heap, and no other activity is ever run in it.
 *
 * hot.limit stays UINTPTR_MAX, so each twin that calls twins calls weft__activity_counted at its entry. A call has
 * returned when a later call begins at its depth or above; the time between the two is more than the call took. Calls
 * that have not returned are in a small stack; calls that do not fit are not timed.
 */
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "internal/message.h"

enum { FUNCTIONS = 4096, OPEN = 64, LISTED = 10, SHORT_NS = 2000, MANY = 1000 };

struct function {
	const void *at; /* an address in the twin */
	uint64_t calls, short_calls;
};

struct weft__profile {
	struct function functions[FUNCTIONS];
	struct {
		struct function *function;
		const char *sp;
		uint64_t began;
	} open[OPEN];
	unsigned depth;
	const weft_activity_t *self;
};

struct weft__profile *weft__profile_new(void)
{
	const char *said = getenv("WEFT_ACTIVITIES");

	return said && !strcmp(said, "profile") ? calloc(1, sizeof(struct weft__profile)) : NULL;
}

static struct function *find(struct weft__profile *p, const void *at)
{
	size_t first = (uintptr_t)at * 0x9E3779B97F4A7C15u >> 52;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		struct function *f = &p->functions[(first + i) % FUNCTIONS];

		if (!f->at)
			f->at = at;
		if (f->at == at)
			return f;
	}
	return NULL;
}

static void close_returned(struct weft__profile *p, const char *sp, uint64_t time)
{
	while (p->depth && p->open[p->depth - 1].sp <= sp) {
		struct function *f = p->open[--p->depth].function;

		f->short_calls += time - p->open[p->depth].began < SHORT_NS;
	}
}

/* A twin has been entered: `at` is an address in it, and its frame is above `sp`. */
void weft__activity_counted(const void *at, const char *sp)
{
	struct weft__profile *p = weft__activity_hot.group->profile;
	struct function *f = p ? find(p, at) : NULL;
	uint64_t time;

	if (!f)
		return;
	time = weft__timer_now();
	if (p->self != weft__activity_hot.self)
		p->depth = 0;
	p->self = weft__activity_hot.self;
	close_returned(p, sp, time);
	f->calls++;
	if (p->depth == OPEN)
		return;
	p->open[p->depth].function = f;
	p->open[p->depth].sp = sp;
	p->open[p->depth++].began = time;
}

static int by_calls(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->short_calls < y->short_calls ? 1 : x->short_calls > y->short_calls ? -1 : 0;
}

static void write_function(const struct function *f)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_number(&line, f->short_calls);
	weft__line_text(&line, " of ");
	weft__line_number(&line, f->calls);
	weft__line_place(&line, " calls in yielding mode", f->at);
	weft__line_text(
	    &line, " took less than 2 us: write NO_YIELD before its definition, or no_yield_expr() around the call");
	weft__line_write(&line);
}

void weft__profile_end(struct weft__profile *p)
{
	struct weft__line line;
	unsigned listed = 0;

	if (!p)
		return;
	qsort(p->functions, FUNCTIONS, sizeof *p->functions, by_calls);
	for (struct function *f = p->functions; listed < LISTED && f->short_calls >= MANY; f++)
		if (f->short_calls > f->calls / 10 * 9) {
			write_function(f);
			listed++;
		}
	if (!listed) {
		weft__line_begin(&line);
		weft__line_text(&line, "no function was called often in yielding mode, and returned within 2 us");
		weft__line_write(&line);
	}
	free(p);
}
