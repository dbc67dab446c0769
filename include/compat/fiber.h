/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fiber.h: the asymmetric fiber interface of the stack-switching work on WebAssembly ("Core Stack Switching
 * Implementation Strategies"), on top of Weft. Inline functions only; a fiber_t is a coroutine.
 *
 * Thread-safety and signal handlers as in weft/coro.h. Source of the interface: fiber-c; none of its code.
 */
#ifndef FIBER_H
#define FIBER_H

#ifdef FIBER_SWITCH_H
#error "fiber.h and fiber_switch.h give the same names to different things: include one of them in a file"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

typedef void *(*fiber_entry_point_t)(void *);
typedef struct fiber *fiber_t;

/** Why fiber_resume returned: the entry returned; it yielded; it could not run, or ran out of stack. */
typedef enum { FIBER_OK = 0, FIBER_YIELD = 1, FIBER_ERROR = 2 } fiber_result_t;

/** Nothing needs to be set up or torn down. */
WEFT__HELPER void fiber_init(void)
{
}

WEFT__HELPER void fiber_finalize(void)
{
}

/** A fiber, to be given to fiber_free; NULL and errno if that fails. `bytes` is a hint, as in seff.h. */
WEFT__HELPER fiber_t fiber_sized_alloc(size_t bytes, fiber_entry_point_t entry)
{
	weft_attr_t attr = {"fiber", WEFT_DEFAULT_POLICY, 0, 0, NULL, 0, NULL, 0};

	if (bytes)
		attr.stack_size = bytes <= 16 * 1024 ? 64 * 1024 : bytes + 8 * 1024;
	return (fiber_t)(void *)weft_create_with(entry, NULL, &attr);
}

WEFT__HELPER fiber_t fiber_alloc(fiber_entry_point_t entry)
{
	return fiber_sized_alloc(0, entry);
}

/** Frees a fiber in any state except running. NULL is allowed. */
WEFT__HELPER void fiber_free(fiber_t fiber)
{
	weft_delete((weft_coro_t *)(void *)fiber);
}

/**
 * Starts or continues a fiber; `arg` is its entry's argument the first time, and later the result of its fiber_yield.
 * @param status  where to write why control came back
 * @return the value that the entry returned or yielded; NULL if *status is FIBER_ERROR
 */
WEFT__INLINE void *fiber_resume(fiber_t fiber, void *arg, fiber_result_t *status)
{
	weft_coro_t *k = (weft_coro_t *)(void *)fiber;
	weft_request_t r;

	*status = FIBER_ERROR;
	if (weft__unlikely(!k || weft_state(k) != WEFT_SUSPENDED))
		return NULL;
	if (weft__unlikely(!weft__was_resumed(k))) /* not resumed yet */
		weft__set_argument(k, arg);
	r = weft_resume(k, arg, WEFT_HANDLE_NONE);
	if (weft__unlikely(r.effect == &weft_failed))
		return NULL;
	*status = r.effect ? FIBER_YIELD : FIBER_OK;
	return r.payload;
}

/** Suspends the current fiber; its resumer gets `arg`. Outside of any: reported. */
WEFT__INLINE void *fiber_yield(void *arg)
{
	return weft_suspend(arg);
}

WEFT_EXTERN_C_END

#endif /* FIBER_H */
