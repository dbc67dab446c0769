/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fiber_switch.h: the symmetric sibling of fiber.h: control passes sideways, from fiber to fiber, without parents.
 *
 * Design: fiber_main makes a fiber of the program and resumes it; that call is the resumer of every fiber that runs
 * then, and sees the end of each. A fiber that is switched to keeps the address of the fiber that switched to it, in a
 * word that only coroutines with WEFT_SAVE_… flags use; on the stack left behind it would be gone under the policy
 * "copy". A fiber that ends by fiber_switch_return cannot be left running while its stack goes away, so the last step
 * goes by way of fiber_main.
 *
 * A fiber stays allocated until fiber_free, also after its end. Thread-safety and signal handlers as in weft/coro.h; a
 * program that runs fiber_main on several threads may switch within each. Source of the interface: fiber-c; none of
 * its code.
 */
#ifndef FIBER_SWITCH_H
#define FIBER_SWITCH_H

#ifdef FIBER_H
#error "fiber.h and fiber_switch.h give the same names to different things: include one of them in a file"
#endif

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

typedef struct fiber *fiber_t;

/** Gets the argument of the switch that starts it, and the fiber that made that. */
typedef void *(*fiber_entry_point_t)(void *arg, fiber_t from);

typedef enum { FIBER_OK = 0, FIBER_SWITCH = 1, FIBER_ERROR = 2 } fiber_result_t;

/* A function pointer in the word that is the coroutine's user's. */
union fiber__entry {
	void *word;
	fiber_entry_point_t function;
};

/* To fiber_main's loop: go on with `to`. */
struct fiber__message {
	void *arg;
	weft_coro_t *to;
};

/* The fiber that switched to a fiber: NULL if it ended with the switch. */
WEFT__INLINE fiber_t fiber__from(const weft_coro_t *k)
{
	return (fiber_t)k->caught;
}

/* `k` goes on next. */
WEFT__INLINE void fiber__prepare(weft_coro_t *k, void *arg, fiber_t from)
{
	k->caught = from;
	if (weft__unlikely(!weft__was_resumed(k)))
		weft__set_argument(k, arg);
}

WEFT__HELPER void *fiber__start(void *arg)
{
	weft_coro_t *self = weft_current();
	union fiber__entry entry;

	entry.word = weft_user_data(self);
	weft__stands_for(self, entry.word);
	return entry.function(arg, fiber__from(self));
}

/** A fiber, to be given to fiber_free; NULL and errno if that fails. `bytes` is a hint, as in seff.h. */
WEFT__HELPER fiber_t fiber_sized_alloc(size_t bytes, fiber_entry_point_t entry_point)
{
	weft_attr_t attr = {"fiber", WEFT_DEFAULT_POLICY, 0, 0, NULL, 0, NULL, 0};
	union fiber__entry entry;

	if (bytes)
		attr.stack_size = bytes <= 16 * 1024 ? 64 * 1024 : bytes + 8 * 1024;
	entry.function = entry_point;
	attr.user_data = entry.word;
	return (fiber_t)(void *)weft_create_with(fiber__start, NULL, &attr);
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

/** The fiber that executes this call. */
WEFT__HELPER fiber_t get_active_fiber(void)
{
	return (fiber_t)(void *)weft_current();
}

__attribute__((unused, cold, noreturn)) static void fiber__die_null(const char *function)
{
	weft__die_saying(function, " to NULL: ", "there is no fiber; pass one that fiber_alloc returned");
}

/**
 * Suspends the current fiber and continues `to`, which must be suspended (else: reported).
 * @param arg   the argument of the entry of `to`, or the result of its pending fiber_switch
 * @param from  where to write the fiber that switches back here; NULL if that fiber ended with its switch
 * @return the argument of the switch back here
 */
WEFT__INLINE void *fiber_switch(fiber_t to, void *arg, volatile fiber_t *from)
{
	weft_coro_t *k = (weft_coro_t *)(void *)to;
	fiber_t self = get_active_fiber();

	if (weft__unlikely(to == self)) {
		*from = self;
		return arg;
	}
	if (weft__unlikely(!k))
		fiber__die_null("fiber_switch");
	fiber__prepare(k, arg, self);
	arg = weft_switch(k, arg);
	*from = fiber__from((weft_coro_t *)(void *)self);
	return arg;
}

/** Ends the current fiber and continues `to`, which sees no fiber that it comes from. */
WEFT__HELPER WEFT__NORETURN void fiber_switch_return(fiber_t to, void *arg)
{
	struct fiber__message message = {arg, (weft_coro_t *)(void *)to};
	weft_coro_t *self = weft_current();

	if (!to)
		fiber__die_null("fiber_switch_return");
	if (!self)
		weft__die_no_coroutine("fiber_switch_return");
	weft_exit(self, &weft_suspended, &message);
}

/** An old spelling. */
#define fiber_return_switch fiber_switch_return

WEFT__HELPER void *fiber__run(fiber_entry_point_t entry, void *arg)
{
	fiber_t main_fiber = fiber_alloc(entry);
	struct fiber__message next = {arg, (weft_coro_t *)(void *)main_fiber};
	weft_request_t r = {NULL, NULL};

	if (!main_fiber)
		return NULL;
	do {
		weft_coro_t *k = next.to;

		fiber__prepare(k, next.arg, NULL);
		r = weft_resume_any(&k, next.arg, WEFT_HANDLE_NONE);
		if (r.effect == &weft_suspended)
			next = *(struct fiber__message *)r.payload;
	} while (r.effect == &weft_suspended);
	fiber_free(main_fiber);
	return r.effect ? NULL : r.payload;
}

/* fiber_main(main, argc, argv): main's arguments are passed as a single argument. */
struct fiber__program {
	void *(*main)(int, char **);
	int argc;
	char **argv;
};

WEFT__HELPER void *fiber__run_program(void *program_, fiber_t from)
{
	struct fiber__program *program = (struct fiber__program *)program_;

	(void)from;
	return program->main(program->argc, program->argv);
}

WEFT__HELPER void *fiber__main(void *(*main)(int, char **), int argc, char **argv)
{
	struct fiber__program program = {main, argc, argv};

	return fiber__run(fiber__run_program, &program);
}

WEFT_EXTERN_C_END

/**
 * Runs a function in the first fiber: fiber_main(main, arg) calls main(arg, NULL), fiber_main(main, argc, argv) calls
 * main(argc, argv).
 * @return the result of the first entry function that returns: its return ends the program's fibers. NULL also if
 *         memory is missing, or if a fiber ran out of stack
 */
#define fiber_main(...) FIBER__FOURTH(__VA_ARGS__, fiber__main, fiber__run, )(__VA_ARGS__)
#define FIBER__FOURTH(a, b, c, d, ...) d

#endif /* FIBER_SWITCH_H */
