/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The backtrace of a suspended coroutine. The unwinder starts in a frame that claims to have been called by the
 * coroutine's newest frame, walks through the coroutine and the coroutines inside it, and stops at the first frame of
 * the outermost coroutine: its resumer's frame is gone.
 */
#include <unwind.h>

#include "coro/copying.h"

void weft__walk_from(void *const *words, void (*fn)(void *), void *argument) WEFT__HIDDEN;

struct walk {
	const weft_coro_t *k;
	void **places;
	size_t most, count;
	bool begun;
};

static bool is_first_frame(_Unwind_Ptr function)
{
	return function == (_Unwind_Ptr)weft__entry || function == (_Unwind_Ptr)weft__entry_saving;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument)
{
	_Unwind_Ptr function = _Unwind_GetRegionStart(context);
	struct walk *w = argument;

	if (!w->begun) {
		w->begun = function == (_Unwind_Ptr)weft__walk_from;
		return _URC_NO_REASON;
	}
	if (is_first_frame(function))
		return weft_on_stack(w->k, (void *)_Unwind_GetCFA(context)) ? _URC_END_OF_STACK : _URC_NO_REASON;
	w->places[w->count++] = (void *)_Unwind_GetIP(context);
	return w->count < w->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void walk(void *argument)
{
	_Unwind_Backtrace(step, argument);
}

size_t weft_backtrace(const weft_coro_t *k, void **places, size_t most)
{
	struct walk w = {.k = k, .places = places, .most = most};

	weft__require(k, "weft_backtrace");
	bool saves = k->link.pc == (void *)weft__land_saving;
	void *const words[] = {k->link.sp, saves ? k->inner_pc : k->link.pc, k->link.fp, k->link.bx};

	if (!most || weft_state(k) != WEFT_SUSPENDED || !weft__has_started(k))
		return 0;
	if (k->flags & WEFT__COPIED) {
		places[0] = words[1];
		return 1;
	}
	weft__walk_from(words, walk, &w);
	return w.count;
}
