/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines that keep more than the registers: WEFT_SAVE_FPU, WEFT_SAVE_EXCEPTIONS. WEFT__WATCHED uses the same
 * landing pads. The object has room for one copy of the state, which entering and leaving exchange with the thread's. A
 * switch sideways executes neither the landing pad nor the return of the coroutine that it leaves: it exchanges the
 * state itself, and puts weft__land_switched before the landing.
 */
#define WEFT__PART_SAVING
#include "arch/fpu.h"
#include "coro/copying.h"
#include "coro/cxxabi.h"

static void exchange_exceptions(weft_coro_t *k)
{
	struct weft__cxa_globals *globals, ours;

	if (!weft__cxa_globals)
		return;
	globals = weft__cxa_globals();
	ours = *globals;
	globals->caught = k->caught;
	globals->uncaught = k->uncaught;
	k->caught = ours.caught;
	k->uncaught = ours.uncaught;
}

void weft__exchange_saved(weft_coro_t *k)
{
	if (k->flags & WEFT_SAVE_FPU) {
		uint64_t ours = weft__fpu_get();

		if (ours != k->fpu) /* compared first, because loading drains the pipeline */
			weft__fpu_set(k->fpu);
		k->fpu = ours;
	}
	if (k->flags & WEFT_SAVE_EXCEPTIONS)
		exchange_exceptions(k);
}

void weft__arm_saving(weft_coro_t *k)
{
	k->fpu = WEFT__FPU_DEFAULT;
	k->caught = NULL;
	k->uncaught = 0;
	k->inner_pc = (void *)weft__entry_saving;
	k->outer_pc = NULL;
	if (!(k->flags & WEFT__COPYING)) /* else weft__land_copying exchanges the state too */
		k->link.pc = (void *)weft__land_saving;
}

void weft__enter_saving(weft_coro_t *k)
{
	weft__exchange_saved(k);
	k->outer_pc = k->link.parent_pc;
	k->link.parent_pc = (void *)weft__return_saving;
}

void weft__leave_saving(weft_coro_t *k)
{
	weft__exchange_saved(k);
	if (k->flags & WEFT__WATCHED)
		weft__watch(k, k->slot);
	if (k->link.pc == (void *)weft__in_finished)
		return;
	k->inner_pc = k->link.pc;
	k->link.pc = (void *)weft__land_saving;
}

/* The switch stores the plain landing pad of `from`, which the landing in `to` corrects first. */
void weft__before_switch(weft_coro_t *from, weft_coro_t *to)
{
	to->link.parent_pc = from->outer_pc;
	if (from->flags & WEFT__SAVING)
		weft__exchange_saved(from);
	if (weft_state(to) != WEFT_SUSPENDED)
		return; /* the switch reports that */
	from->outer_pc = to->link.pc;
	to->link.pc = (void *)weft__land_switched;
}

/* `from` has been suspended by a switch sideways; its landing pad is the plain one. */
void weft__switched(weft_coro_t *from)
{
	from->inner_pc = from->link.pc;
	if (from->flags & WEFT__WATCHED)
		weft__watch(from, from->slot);
	if (from->flags & WEFT__COPYING)
		weft__park_switched(from);
	else
		from->link.pc = (void *)weft__land_saving;
}

/* An exception leaves k: count it in the resumer, not in this thread's record. */
void weft__carry_exception(weft_coro_t *k)
{
	if (!weft__cxa_globals || !weft__cxa_globals()->uncaught)
		return;
	weft__cxa_globals()->uncaught--;
	k->uncaught++;
}
