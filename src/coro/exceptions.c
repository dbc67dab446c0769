/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Exceptions that leave a coroutine: C++'s, and the forced unwinding of pthread_exit and cancellation. A coroutine's
 * first frame catches each exception and finishes the coroutine. The resume that it returns to raises the exception
 * again, in the resumer's frames. The search for a handler thus stops at each coroutine: an uncaught exception calls
 * std::terminate in the outermost resumer, when the frames of the coroutine are gone.
 */
#include <stdlib.h>
#include <unwind.h>
#include <weft/defer.h>

#include "coro/cxxabi.h"
#include "coro/ends.h"

/* The class of the exception object that unwinds the frames of a coroutine that ends by other means (ends.c). */
#define ENDING_CLASS (((uint64_t)'W' << 56) | ((uint64_t)'E' << 48) | ((uint64_t)'F' << 40) | ((uint64_t)'T' << 32))

/* Restore the idle stack. A different thread may execute this after the call; it may have cached a system stack of its
 * own. */
static __attribute__((noinline)) void reclaim(struct weft__chunk *idle)
{
	struct weft__chunk *other = weft__tls_system;

	weft__tls_system = idle;
	if (other)
		weft__system_give(other);
}

/*
 * An unwinder may leave code without checks on its way through a linked stack. It then continues on the system stack
 * where that code ran, although no coroutine owns this stack any more. The coroutine owns it again while the functions
 * here run.
 */
static void call_first(weft_coro_t *self)
{
	struct weft__chunk *idle = weft__tls_system;
	char *limit = self->link.limit, *here = __builtin_frame_address(0);

	if (!limit || !idle || here >= (char *)idle || here < idle->low) {
		weft__call_first(self);
		return;
	}
	weft__tls_system = NULL;
	idle->below = self->link.chunk;
	self->link.chunk = idle;
	self->link.limit = NULL;
	weft__set_limit(NULL);
	weft__call_first(self);
	self->link.chunk = idle->below;
	self->link.limit = limit;
	weft__set_limit(limit);
	reclaim(idle);
}

/*
 * Called before each frame is unwound, innermost first: the context's CFA is that of the frame inside it, which has
 * been unwound. If a function that was deferred there is still on the list, the frame had no landing pad that calls it.
 */
static _Unwind_Reason_Code before_frame(int version, _Unwind_Action actions, _Unwind_Exception_Class language,
					struct _Unwind_Exception *exception, struct _Unwind_Context *context,
					void *argument)
{
	weft_coro_t *self = argument;
	void *left = (void *)_Unwind_GetCFA(context);

	(void)version;
	(void)actions;
	(void)language;
	(void)exception;
	const struct weft__deferred *d;

	while ((d = weft__deferred_of(self->deferred)) && d->check && d->frame == left)
		call_first(self);
	return _URC_NO_REASON;
}

static bool deferred_without_pad(const weft_coro_t *self)
{
	const struct weft__deferred *d;

	for (d = weft__deferred_of(self->deferred); d; d = weft__deferred_of(d->next))
		if (d->check)
			return true;
	return false;
}

WEFT__LAST_WORDS(static, die_unwound, (const weft_coro_t *self), self)
{
	struct weft__line line;

	weft__line_coro(&line, "in", self);
	weft__line_text(&line, ": a scope with weft_defer was unwound by an exception that its code was not compiled "
			       "for; use -fexceptions");
	weft__line_die(&line);
}

/* A foreign unwinder destroyed these frames without calling our personality routine. */
static void call_what_is_left(weft_coro_t *self)
{
	const struct weft__deferred *d;

	while ((d = weft__deferred_of(self->deferred))) {
		if (d->check != weft__deferred_check(d))
			die_unwound(self);
		call_first(self);
	}
}

/*
 * The personality of first frames. In the search phase no frame is unwound yet, so this is the moment to arrange that
 * cleanups of C frames are called during unwinding: it continues as forced unwinding, which calls before_frame for each
 * frame. (When a thread exits, a foreign unwinder already unwinds by force.)
 */
_Unwind_Reason_Code weft__exception_left(int version, _Unwind_Action actions, _Unwind_Exception_Class language,
					 struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	bool saving = _Unwind_GetRegionStart(context) == (_Unwind_Ptr)weft__entry_saving;
	weft_coro_t *self = weft__self();

	(void)version;
	(void)language;
	if (actions & _UA_SEARCH_PHASE) {
		if (deferred_without_pad(self))
			_Unwind_ForcedUnwind(exception, before_frame, self);
		return _URC_HANDLER_FOUND;
	}
	call_what_is_left(self);
	_Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (_Unwind_Word)exception);
	_Unwind_SetIP(context, (_Unwind_Ptr)(saving ? weft__entry_saving_catch : weft__entry_catch));
	return _URC_INSTALL_CONTEXT;
}

/* Called by the first frame: k ends. */
_Noreturn void weft__thrown(weft_coro_t *k, struct _Unwind_Exception *exception)
{
	if (exception->exception_class == ENDING_CLASS)
		weft__ended(k, (struct weft__ending *)exception);
	if (exception->private_1 == (uintptr_t)before_frame)
		exception->private_1 = 0; /* it continues as the kind of exception that it was */
	if (k->flags & WEFT_SAVE_EXCEPTIONS)
		weft__carry_exception(k);
	k->innermost = k;
	(void)weft__take_owned(k); /* for an exception, the resumer decides about the coroutine */
	if (k->flags & WEFT__ENDING) {
		weft__hand_on_orphans(k->ending, &k->innermost, k);
		weft__forget_ending(k);
	}

	weft__leave(k, WEFT__THROWN, exception);
}

WEFT__LAST_WORDS(static, die_caught, (const weft_coro_t *self), self)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot stop", self);
	weft__line_text(&line,
			" from ending: a catch (...) in it kept what unwinds it; rethrow there (throw;), or catch "
			"std::exception only");
	weft__line_die(&line);
}

/* Called when a catch block that caught an end is left. */
static void caught(_Unwind_Reason_Code reason, struct _Unwind_Exception *exception)
{
	(void)reason;
	(void)exception;
	die_caught(weft__self());
}

/* Destructors see the end as one more uncaught exception. */
static void count_uncaught(struct weft__ending *e)
{
	struct weft__cxa_globals *globals = weft__cxa_globals ? weft__cxa_globals() : NULL;

	if (!globals)
		return;
	e->in_flight = true;
	e->uncaught_before = globals->uncaught++;
}

/* Restore the count, do not decrement it: libstdc++ counts a foreign exception at `throw;` and not at the catch, and a
 * coroutine without WEFT_SAVE_EXCEPTIONS may have suspended in a destructor, to be resumed by another thread. */
void weft__unwound(struct weft__ending *e)
{
	if (!e->in_flight)
		return;
	e->in_flight = false;
	weft__cxa_globals()->uncaught = e->uncaught_before;
}

void weft__superseded(struct weft__ending *e)
{
	if (e->in_flight && weft__cxa_globals()->uncaught > e->uncaught_before)
		weft__cxa_globals()->uncaught--;
}

void weft__unwind(weft_coro_t *self, struct weft__ending *e)
{
	e->exception.exception_class = ENDING_CLASS;
	e->exception.exception_cleanup = caught;
	count_uncaught(e);
	_Unwind_ForcedUnwind(&e->exception, before_frame, self);
}

extern void weft__cxx_begin_catch(void *) __asm__("__cxa_begin_catch") __attribute__((weak));
extern void weft__cxx_terminate(void) __asm__("_ZSt9terminatev") __attribute__((weak, noreturn));

/* Called in the resumer. Both kinds continue unchanged; the unwinder returns if no frame catches the exception. */
void weft__raise(void *exception)
{
	struct weft__line line;

	if (weft__is_ending(exception))
		weft__end_next(exception);
	_Unwind_Resume_or_Rethrow(exception);
	weft__line_begin(&line);
	weft__line_text(&line,
			"an exception left a coroutine and its resumers, and nobody caught it: catch it inside, or ");
	weft__line_text(&line, "around weft_resume");
	weft__line_write(&line);
	if (weft__cxx_begin_catch && weft__cxx_terminate) {
		weft__cxx_begin_catch(exception);
		weft__cxx_terminate();
	}
	abort();
}
