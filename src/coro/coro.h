/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the coroutine layer, and functions that assembly calls. */
#ifndef WEFT_SRC_CORO_CORO_H
#define WEFT_SRC_CORO_CORO_H

#include <weft/coro.h>

#include "internal/message.h"
#include "stack/policy.h"

/* Order as in arch/x86_64.S. */
enum weft__misuse { WEFT__RESUMED_RUNNING = 1, WEFT__RESUMED_FINISHED, WEFT__RESUMED_DELETED };

WEFT__HIDDEN _Noreturn void weft__die_misuse(const weft_coro_t *k, enum weft__misuse what);
/* Report that WHAT ("cannot delete") is impossible because k is running. */
WEFT__COLD _Noreturn void weft__die_running(const weft_coro_t *k, const char *what);
/* True if `sp` is not on the stack of the coroutine that the thread takes for the current one. */
bool weft__was_jumped_out_of(const weft_coro_t *self, const void *sp);
/* Report an overflow of the stack of k, or of a thread whose root is k. The caller provided the stack's memory. */
WEFT__OF_CALLERS void weft__watch(const weft_coro_t *k, const struct weft__slot *slot);
/* Report that FUNCTION was called with NULL in place of a coroutine. */
static inline void weft__require(const weft_coro_t *k, const char *function)
{
	if (weft__unlikely(!k))
		weft__die_null(function);
}
/* "weft: WHAT coroutine "NAME" (#ID)" */
void weft__line_coro(struct weft__line *line, const char *what, const weft_coro_t *k);

/* Take a slot of the calling thread with weft_create's default attributes. Returns NULL and a negative errno on
 * failure. */
struct weft__slot *weft__take_usual(struct weft__thread *thread, int *error);
/* Take a slot with these attributes. Returns NULL and a negative errno on failure. */
struct weft__slot *weft__take_slot(const weft_attr_t *attr, int *error);

/* Signal handlers must not call these functions, because a handler may interrupt any of them in the middle. A debug
 * build detects a handler on the alternate stack; every build detects a handler that would wait for its own thread:
 * internal/signal_safe_lock.h. */
static inline void weft__check_no_handler(void)
{
#if WEFT_DEBUG
	if (weft__os_on_alt_stack())
		weft__die_in_handler();
#endif
}

/* Mark in `handled` of a coroutine that ran inside a coroutine which was left: see orphans.c. */
enum { WEFT__ORPHAN = 4 };

/* orphans.c, linked with ends.c or fail.c: finish the coroutines from `innermost` up to k. None of their functions or
 * cleanups is called afterwards. */
WEFT__OF_ENDS void weft__abandon(weft_coro_t *k, weft_coro_t *innermost);
/* Like weft__abandon, but leaves k's own state alone. Coroutines that were made within `home` are added to its list. */
void weft__abandon_inside(weft_coro_t *k, weft_coro_t *innermost, weft_coro_t **orphans, weft_coro_t *home);
/* Finish the coroutines that run inside k, if k is suspended from below, and release the coroutines that were left when
 * k ended: see weft_reset. */
void weft__drop_inside(weft_coro_t *k);

/*
 * Functions of layers above that make a coroutine for their caller: WEFT_LEAKS names that caller. Each address is
 * defined beside its function. A program that is linked without the function has no address.
 */
extern void (*const weft__maker_run)(void) WEFT__HIDDEN __attribute__((weak));
extern void (*const weft__maker_run_with)(void) WEFT__HIDDEN __attribute__((weak));

/* Called by assembly. */
WEFT__HIDDEN _Noreturn void weft__die_on_system_stack(void);

/* Labels in assembly: the landing pads where weft__entry and weft__entry_saving catch exceptions. */
WEFT__HIDDEN extern const char weft__entry_catch[];
WEFT__OF_SAVING extern const char weft__entry_saving_catch[];

/* Defined in assembly. */
WEFT__HIDDEN _Noreturn void weft__leave(weft_coro_t *k, const void *effect, void *payload);
#ifdef WEFT__PART_SAVING
WEFT_API void weft__entry_saving(void);
#else
WEFT_API __attribute__((weak)) void weft__entry_saving(void); /* not hidden: backtraces name it */
#endif
WEFT__OF_SAVING void weft__land_saving(void);
WEFT__OF_SAVING void weft__return_saving(void);
WEFT__OF_COPY void weft__land_copying(void);
WEFT__OF_COPY void weft__land_parked(void);
WEFT__OF_SAVING void weft__land_switched(void);

/* Called by weft__land_saving and weft__return_saving. */
WEFT__HIDDEN void weft__enter_saving(weft_coro_t *k);
WEFT__HIDDEN void weft__leave_saving(weft_coro_t *k);
/* Called by weft__land_switched. */
WEFT__HIDDEN void weft__switched(weft_coro_t *from);

/* Move the count of an exception that leaves a coroutine with WEFT_SAVE_EXCEPTIONS to k. */
WEFT__OF_SAVING void weft__carry_exception(weft_coro_t *k);

/* The words that a thread reads at each switch and perform. Compilers keep the address of this variable across calls,
 * so only functions that do not suspend name it; other functions use the accessors of weft/detail/arch.h. */
struct weft__tls {
	weft_coro_t *self;
	struct weft__found *found;
	int32_t operations_left; /* see weft__spend_operation; 0 in a new thread */
	struct weft__newest newest[WEFT__FOUND_PLACES] __attribute__((aligned(32))); /* an entry in one cache line */
};
WEFT__OFFSET_IS(struct weft__tls, found, WEFT_TLS_FOUND);
WEFT__OFFSET_IS(struct weft__tls, operations_left, WEFT_TLS_OPERATIONS);
WEFT__OFFSET_IS(struct weft__tls, newest, WEFT_TLS_NEWEST);
extern __thread __attribute__((visibility("default"), tls_model("initial-exec"))) struct weft__tls weft__tls_self;

/* The calling thread's table, NULL if there is no memory; `owner_used` of its record says if there is an entry. */
struct weft__found *weft__found_table(void);
/* Empty the tables of all threads, because the addresses in them may soon belong to other objects. */
void weft__forget_found_everywhere(void);

/* leak_report.c: true if the places where coroutines are made are recorded. weft__note_site then records k's: the code
 * that called the function which calls weft__note_site. */
extern WEFT__HIDDEN bool weft__notes_sites;
WEFT__COLD void weft__note_site(weft_coro_t *k);
/* weft_create, when the fast path does not apply. Not static, because weft__note_site skips its frame. */
WEFT__HIDDEN weft_coro_t *weft__create_with_care(weft_fn_t *fn, void *arg);

/* Defined by the layer above: true if these tables (see weft_handles_t) are the same clauses, for the same label. */
bool weft__same_handler(uintptr_t handled, uintptr_t other);

/* True if k has been resumed since it was made or reset. */
static inline bool weft__has_started(const weft_coro_t *k)
{
	const void *pc = k->link.pc;

	if (pc == (void *)weft__land_parked)
		return true;
	if (pc == (void *)weft__land_copying || pc == (void *)weft__land_saving)
		pc = k->inner_pc;
	return pc != (void *)weft__entry && pc != (void *)weft__entry_saving;
}

/* Set the function of a coroutine that has not been resumed. A resume loads the frame pointer, where the entry finds
 * the function. */
static inline void weft__set_function(weft_coro_t *k, weft_fn_t *fn)
{
	k->link.fp = (void *)fn;
}

/* The view of a coroutine outside of tail clauses. */
static inline const struct weft__view *weft__view_of(const weft_coro_t *k)
{
	return (const struct weft__view *)((uintptr_t)k->id << WEFT__VIEW_SHIFT);
}

enum { WEFT__SAVING = WEFT_SAVE_FPU | WEFT_SAVE_EXCEPTIONS | WEFT__WATCHED };
/* Exchange the state that k keeps (k has one of WEFT__SAVING) with the thread's. */
WEFT__OF_SAVING void weft__exchange_saved(weft_coro_t *k);
/* Called when `from`, which has one of WEFT__HOOKED, is about to switch to `to`. */
WEFT__OF_SAVING void weft__before_switch(weft_coro_t *from, weft_coro_t *to);
/* Make k, which has one of WEFT__SAVING, start over at its entry, with fresh state. */
WEFT__OF_SAVING void weft__arm_saving(weft_coro_t *k);

#endif
