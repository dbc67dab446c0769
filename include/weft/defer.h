/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/defer.h: cleanups that run in whatever way a scope is left.
 *
 *   static void *body(void *unused)
 *   {
 *           FILE *file = fopen("log", "a");
 *
 *           weft_defer(fclose, file);
 *           for (;;)
 *                   fprintf(file, "%s\n", read_line());
 *   }
 *
 * A deferred call is made exactly once, innermost first:
 *  - when the scope is left as usual: at its end, by return, break, goto;
 *  - when the coroutine is deleted, released or reset while it is suspended: it is resumed one last time, at the place
 *    where it waits, to make the deferred calls there. If it is suspended from below, coroutines inside it come first;
 *  - when it is left by weft_exit, an exception effect or an abort clause, through any number of coroutines: before the
 *    request arrives;
 *  - when a C++ exception, pthread_exit or cancellation unwinds it.
 * A deferred call runs on the coroutine's own stack and may do anything that other code may, for example perform
 * effects. A task that waits in a cleanup is not cancelled there, but at its next wait after the cleanup. A cleanup
 * must run to its end. It is reported if a cleanup suspends the coroutine to a resumer that does not resume it, or if
 * it exits to a coroutine further inside than the coroutine that the interrupted exit leaves for.
 *
 * Handlers in force during a cleanup:
 *    the scope ends                 the handlers that the scope sees
 *    exit, exception effect, abort  the same, including the handler that the coroutine leaves for, if it is outside of
 *    clause, C++ exception          the scope. Inner handlers have been left already
 *    the coroutine is deleted       the same, up to the deleted coroutine; then the handlers that the deleter sees, in
 *                                   place of the handlers under which the deleted coroutine was resumed
 *
 *   static void *in_one(void *unused)
 *   {
 *           weft_defer(log, "in one");
 *           return wait_for_it(), unused;
 *   }
 *   static void *in_two(void *unused)
 *   {
 *           weft_defer(log, "in two");
 *           return weft_run(&one, NULL, in_one, unused);
 *   }
 *   …        weft_run(&two, NULL, in_two, NULL);
 *
 * `one` and `two` handle the effects that `log` performs. If wait_for_it returns, or performs an exception that `two`
 * handles, "in one" is logged by `one` and "in two" by `two`. If wait_for_it suspends both bodies, `two` keeps them,
 * and they are dropped in the body of a weft_run under `three`, then "in one" is logged by `one` and "in two" by
 * `three`.
 *
 * C++ destructors and cleanup attributes run in the first and the last of these cases. In the two cases between, they
 * run only if the coroutine has the flag WEFT_UNWIND: then its frames are unwound as by pthread_exit. Deferred calls in
 * frames without exception tables are made when the frames are left, so that the order is innermost first throughout. A
 * catch (...) that does not rethrow is reported; a noexcept function in between ends in std::terminate. An exception
 * effect's arguments are kept where they stay valid. Without the flag C++ frames are discarded. They are also
 * discarded, and no cleanup is called, when the runtime ends a coroutine whose stack is full (weft_failed), because it
 * may be in the middle of anything. Only the bodies that it runs by weft_run are freed: when the failed coroutine is
 * deleted or reset, they end, and their deferred calls are made.
 *
 * Exceptions and C. Compile C code that uses weft_defer with -fexceptions if exceptions pass through it. Without that,
 * an exception that leaves the coroutine still makes all deferred calls in order; pthread_exit and cancellation make
 * the deferred calls of such frames last, if these can still be read then, and else report them. Such scopes are left
 * unnoticed by longjmp, and by an exception that an outer frame of the same coroutine catches: the next scope to end
 * reports it.
 *
 * Lack of memory does not end the process here. A coroutine that ends may exceed a spent budget (weft_set_budget) by
 * 64 KiB of stack, and all coroutines together by 512 KiB. If that is not enough, if the coroutine's reservation is
 * used up, or if there is no memory for a chunk, a block or copied frames, the coroutine's other cleanups are
 * discarded: the failure hook is called, once for each such coroutine, and the end continues. Cleanups of the
 * coroutines around it are called.
 *
 * A coroutine must free the coroutines that it made and holds, like memory: weft_defer(weft_delete, inner).
 * Each clone of a coroutine under "copy" makes the calls that were deferred before the cloning.
 *
 * Cost (tests/ends/cost.c): a scope with its deferred call takes 2 ns; a scope without one costs nothing. Deleting a
 * suspended coroutine with a deferred call takes 40 ns more than discarding its frames. Leaving such a coroutine takes
 * 4 ns more, leaving ten of them 7 ns each.
 * Thread-safe, on any stack and outside of any coroutine, but not in signal handlers. Source of the idea: Go and Zig.
 */
#ifndef WEFT_DEFER_H
#define WEFT_DEFER_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * weft_defer(fn, arg): call fn(arg) when the enclosing scope is left, from here on.
 * A statement; several in a scope run in reverse order.
 * @param fn   a function with one parameter, a pointer; its result is ignored
 * @param arg  a pointer of that type, evaluated now
 */
#define weft_defer(fn, arg)                                                                                            \
	WEFT__COUNTER_BEGIN WEFT__DEFER(weft__scope_ends, fn, arg, __COUNTER__)                                        \
	WEFT__COUNTER_END

WEFT_EXTERN_C_END

#include <weft/detail/defer.h>

#endif /* WEFT_DEFER_H */
