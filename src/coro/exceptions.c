/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Exceptions that leave a coroutine: C++'s, and the forced unwinding of pthread_exit and cancellation. A coroutine's
 * first frame catches them all, the coroutine is finished, and the resume that it returns to raises the exception
 * again, in the resumer's frames. The search for a handler thus stops at each coroutine: what nobody catches ends in
 * std::terminate in the outermost resumer, where the frames of the coroutine are gone.
 */
#include <stdlib.h>
#include <unwind.h>

#include "coro/coro.h"

/* Labels in assembly, where weft__entry and weft__entry_saving catch. */
WEFT__HIDDEN extern const char weft__entry_catch[], weft__entry_saving_catch[];

enum { DWARF_RAX = 0 };

/* The personality of these frames. */
WEFT__HIDDEN _Unwind_Reason_Code weft__exception_left(int version, _Unwind_Action actions,
						      _Unwind_Exception_Class language,
						      struct _Unwind_Exception *exception,
						      struct _Unwind_Context *context)
{
	bool saving = _Unwind_GetRegionStart(context) == (_Unwind_Ptr)weft__entry_saving;

	(void)version;
	(void)language;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	_Unwind_SetGR(context, DWARF_RAX, (_Unwind_Word)exception);
	_Unwind_SetIP(context, (_Unwind_Ptr)(saving ? weft__entry_saving_catch : weft__entry_catch));
	return _URC_INSTALL_CONTEXT;
}

/* From the first frame: k ends. */
WEFT__HIDDEN _Noreturn void weft__thrown(weft_coro_t *k, void *exception)
{
	weft__carry_exception(k);
	weft__leave(k, WEFT__THROWN, exception);
}

extern void weft__cxx_begin_catch(void *) __asm__("__cxa_begin_catch") __attribute__((weak));
extern void weft__cxx_terminate(void) __asm__("_ZSt9terminatev") __attribute__((weak, noreturn));

/* In the resumer. Both kinds go on as they were; it returns if no frame catches the exception. */
void weft__rethrow(void *exception)
{
	struct weft__line line;

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
