/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stackful groups: each activity is a coroutine, of the policy that WEFT_STACK names, which the driver resumes. The
 * program is the same, with the same yields; a yield that switches suspends the coroutine. This form is for comparison,
 * and for AddressSanitizer, ThreadSanitizer and valgrind, which report copied frames as errors.
 */
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "internal/valgrind.h"

WEFT_EFFECT(void, weft__activity_switch);

/* Defined in programs that were compiled with a sanitizer. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

/* If a tool needs this form and the program has not chosen it, the stacks are as large as the main thread's: the
 * program may recurse as deeply as without the tool. Memory is committed as it is used. */
enum { ROOM = 8 << 20 };

bool weft__own_wanted(const weft_activity_config_t *config, weft_attr_t *attr)
{
	static _Atomic bool told;
	const char *said = getenv("WEFT_ACTIVITIES");
	bool asked = config->flags & WEFT_ACTIVITY_STACKFUL || (said && !strcmp(said, "stackful"));

	if (said && *said && strcmp(said, "stackful") && strcmp(said, "copied") && strcmp(said, "profile"))
		weft__environment_is_wrong(&told, "WEFT_ACTIVITIES", said, "say stackful, copied or profile");
	if (!asked && said && !strcmp(said, "copied"))
		return false;
	if (!asked && !__asan_init && !__tsan_init && !RUNNING_ON_VALGRIND)
		return false;
	attr->name = "activity";
	if (weft__cxa_globals)
		attr->flags |= WEFT_SAVE_EXCEPTIONS;
	attr->stack_size = config->stack_size;
	if (!asked && !attr->stack_size && !getenv("WEFT_STACK"))
		attr->stack_size = ROOM;
	return true;
}

static void *body(void *activity)
{
	weft_activity_t *a = activity;
	struct weft__own *own = a->frames;

	weft__stands_for(own->k, (void *)(uintptr_t)own->entry);
	weft__activity_call((void *)(uintptr_t)own->entry, own->words);
	return NULL;
}

static size_t bytes_of_own(void)
{
	return (sizeof(struct weft__own) + 15) & ~(size_t)15;
}

bool weft__own_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6])
{
	struct weft__own *own = weft__piece_take(g, bytes_of_own());

	if (!own)
		return false;
	own->k = weft_create_with(body, a, &g->attr);
	if (!own->k) {
		weft__piece_give(g, own, bytes_of_own());
		return false;
	}
	own->entry = (uintptr_t)entry;
	own->error = 0;
	own->begun = false;
	memcpy(own->words, words, sizeof own->words);
	a->frames = own;
	a->size = 0;
	return true;
}

void weft__own_delete(struct weft__activity_group *g, weft_activity_t *a)
{
	struct weft__own *own = a->frames;

	weft_delete(own->k);
	weft__piece_give(g, own, bytes_of_own());
}

static void over(struct weft__activity_group *g, weft_activity_t *a, void *result, int error)
{
	weft__own_delete(g, a);
	weft__activity_finish(g, a, result, error);
}

void weft__own_run(struct weft__activity_group *g, weft_activity_t *a)
{
	struct weft__own *own = a->frames;
	weft_request_t r;

	if (weft__unlikely(a->flags & WEFT__DIVERTED) && !own->begun) {
		over(g, a, NULL, ECANCELED);
		return;
	}
	own->begun = true;
	r = weft_resume(own->k, a, weft_handles(weft__activity_switch));
	if (weft_returned(r))
		over(g, a, r.payload, 0);
	else if (!weft_is(weft__activity_switch, r))
		over(g, a, NULL, ENOMEM); /* its stack is full */
	else if (r.payload)
		over(g, a, NULL, own->error);
}

void weft__own_suspend(weft_activity_t *self)
{
	struct weft__own *own = self->frames;

	(void)weft_yield(own->k, &weft_effect_weft__activity_switch, NULL);
	if (weft__unlikely(self->flags & WEFT__DIVERTED)) {
		self->flags &= (uint8_t)~WEFT__DIVERTED;
		weft__activity_ends_cancelled();
	}
}

/* weft_exit also runs the deferred functions. */
void weft__own_end(weft_activity_t *self, int error)
{
	struct weft__own *own = self->frames;

	own->error = error;
	weft_exit(own->k, &weft_effect_weft__activity_switch, own);
}
