/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This file replaces the pool, the arena, the operating system and the unwinder: see weft/freestanding.h.
 *
 * A thread's record is a thread-local variable, with one bin that is always empty. So each creation calls
 * weft__slot_take_slow, and each end calls weft__slot_give; both use one array. A free stack holds the address of the
 * next free stack in its first bytes; stacks that were never used are not touched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coro/coro.h"
#include "coro/ends.h"
#include "internal/signal_safe_lock.h"
#include "stack/buffers.h"

__thread int weft__errno __attribute__((tls_model("initial-exec")));
__thread struct weft__thread *weft__tls_thread __attribute__((tls_model("initial-exec")));
__thread struct weft__hand weft__tls_hand __attribute__((tls_model("initial-exec")));
__thread struct weft__chunk *weft__tls_system __attribute__((tls_model("initial-exec")));
__thread char *weft__tls_growth __attribute__((tls_model("initial-exec")));
__thread char *weft__tls_landing __attribute__((visibility("hidden"), tls_model("initial-exec")));
static __thread struct weft__thread record;
bool weft__on_memcheck, weft__notes_sites;
atomic_size_t weft__callers_live[WEFT_POLICY_COUNT];

/* ---- stacks in the program's array ------------------------------------------------------------------------------ */

struct idle {
	struct idle *next;
};

static struct {
	char *start, *fresh, *end; /* fresh: from here on no stack was ever in use */
	size_t bytes;		   /* the size of each stack */
	struct idle *idle;
	size_t live, left;
} array;

enum { ALIGNMENT = 64, USUAL_BYTES = 16384 };

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
WEFT__LOCK_OF_FILE(busy);

int weft_use_memory(void *memory, size_t bytes, size_t stack_bytes)
{
	uintptr_t start = ((uintptr_t)memory + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
	uintptr_t end = (uintptr_t)memory + bytes;
	size_t each = ((stack_bytes ? stack_bytes : USUAL_BYTES) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1), count;

	if (each < weft_memory_size(NULL, 0))
		return -ENOSPC;
	count = end > start ? (end - start) / each : 0;
	if (memory && (!count || end < (uintptr_t)memory))
		return -ENOSPC;
	if (!memory)
		count = 0;
	lock();
	if (array.live) {
		unlock();
		return -EBUSY;
	}
	array.start = array.fresh = (char *)start;
	array.end = array.start + count * each;
	array.bytes = each;
	array.idle = NULL;
	array.left = count;
	unlock();
	return count > INT32_MAX ? INT32_MAX : (int)count;
}

size_t weft_memory_left(void)
{
	size_t left;

	lock();
	left = array.left;
	unlock();
	return left;
}

static char *pop(int *error)
{
	char *stack = NULL;

	lock();
	*error = array.end > array.start ? -ENOMEM : -ENOTSUP;
	if (array.idle) {
		stack = (char *)array.idle;
		array.idle = array.idle->next;
	} else if (array.fresh < array.end) {
		stack = array.fresh;
		array.fresh += array.bytes;
	}
	if (stack) {
		array.live++;
		array.left--;
	}
	unlock();
	return stack;
}

static void push(char *stack)
{
	struct idle *idle = (struct idle *)(void *)stack;

	lock();
	idle->next = array.idle;
	array.idle = idle;
	array.live--;
	array.left++;
	unlock();
}

struct weft__slot *weft__slot_take_slow(struct weft__bin *bin, int *error)
{
	struct weft__callers_wish wish = {.policy = WEFT_OVERCOMMIT, .watched = true};
	struct weft__slot *slot;

	(void)bin;
	wish.memory = pop(error);
	if (!wish.memory)
		return NULL;
	wish.bytes = array.bytes;
	slot = weft__callers_take(&wish, error);
	if (!slot) {
		push(wish.memory);
		return NULL;
	}
	((weft_coro_t *)slot->object)->flags = WEFT__WATCHED;
	return slot;
}

/* No slot comes from a thread's hand, because the hand is never filled. */
void weft__slot_give(struct weft__slot *slot)
{
	char *memory = weft__callers_of(slot)->memory;

	weft__callers_give(slot, NULL);
	if (memory >= array.start && memory < array.end)
		push(memory);
}

void weft__give_recent_slot(void)
{
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

struct weft__thread *weft__thread_attach(void)
{
	record.default_bin = &record.bins[0][0];
	return weft__tls_thread = &record;
}

void weft__each_thread(void (*fn)(struct weft__thread *thread))
{
	if (weft__tls_thread)
		fn(weft__tls_thread);
}

uint64_t weft__more_ids(void)
{
	static _Atomic uint64_t ids;
	struct weft__hand *hand = &weft__tls_hand;

	/* Relaxed: only the number matters. */
	hand->next_id = atomic_fetch_add_explicit(&ids, 256, memory_order_relaxed) + 1;
	hand->last_id = hand->next_id + 256;
	return hand->next_id++;
}

void *weft__owner_reserve(void)
{
	static char reserve[WEFT__OWNER_RESERVE] __attribute__((aligned(64)));

	return reserve;
}

/* ---- policies --------------------------------------------------------------------------------------------------- */

static atomic_size_t committed;

static const char *why_not(void)
{
	return "the freestanding core has the policies fixed and overcommit only";
}

const struct weft__policy weft__fixed = {.name = "fixed", .callers = WEFT__CALLERS_ANY, .committed = &committed};
const struct weft__policy weft__overcommit = {.name = "overcommit",
					      .callers = WEFT__CALLERS_ANY,
					      .committed = &committed};

#define NONE(name_)                                                                                                    \
	&(const struct weft__policy)                                                                                   \
	{                                                                                                              \
		.name = name_, .committed = &committed, .unavailable = why_not                                         \
	}
const struct weft__policy *const weft__policies[WEFT_POLICY_COUNT] = {
    [WEFT_FIXED] = &weft__fixed,    [WEFT_OVERCOMMIT] = &weft__overcommit,
    [WEFT_COMMIT] = NONE("commit"), [WEFT_SEGMENTED] = NONE("segmented"),
    [WEFT_HEAP] = NONE("heap"),	    [WEFT_LOOKAHEAD] = NONE("lookahead"),
    [WEFT_MMU] = NONE("mmu"),	    [WEFT_COPY] = NONE("copy"),
};

weft_policy_t weft_default_policy(void)
{
	return WEFT_OVERCOMMIT;
}

const char *weft_policy_name(weft_policy_t policy)
{
	if (policy == WEFT_DEFAULT_POLICY)
		return "default";
	return (unsigned)policy < WEFT_POLICY_COUNT ? weft__policies[policy]->name : NULL;
}

const char *weft_policy_unavailable(weft_policy_t policy)
{
	if ((unsigned)policy >= WEFT_POLICY_COUNT)
		return "there is no such policy";
	return policy && weft__policies[policy]->unavailable ? why_not() : NULL;
}

int weft_stack_stats(weft_policy_t policy, weft_stack_stats_t *stats)
{
	if (policy == WEFT_DEFAULT_POLICY)
		policy = WEFT_OVERCOMMIT;
	if ((unsigned)policy >= WEFT_POLICY_COUNT || !stats)
		return -EINVAL;
	memset(stats, 0, sizeof *stats);
	stats->live = stats->in_memory = weft__callers_live[policy];
	return 0;
}

/* weft_use_memory defines the sizes. */
unsigned weft__class(weft_policy_t policy, size_t size, bool guard)
{
	(void)size;
	(void)guard;
	return weft__policies[policy]->callers ? 0 : WEFT__CLASSES;
}

unsigned weft__class_with_guard(weft_policy_t policy, size_t size, size_t guard)
{
	(void)policy;
	(void)size;
	(void)guard;
	return WEFT__CLASSES;
}

size_t weft__slot_bytes(const struct weft__slot *slot)
{
	return weft__callers_of(slot)->bytes;
}

size_t weft__stack_trim(struct weft_link *link, struct weft__slot *slot, char *sp)
{
	(void)link;
	(void)slot;
	(void)sp;
	return 0;
}

/* ---- in place of the operating system --------------------------------------------------------------------------- */

struct weft__slot *weft__arena_find(const void *address)
{
	(void)address;
	return NULL;
}

bool weft__arena_has(const void *address)
{
	(void)address;
	return false;
}

const char *weft__arena_open(void)
{
	return NULL;
}

/* Guards are not possible. */
int weft__os_protect(void *start, size_t bytes, bool accessible)
{
	(void)start;
	(void)bytes;
	(void)accessible;
	return -ENOTSUP;
}

void weft__os_reopen(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}

/* No address can be read without a possible fault, so storage is never seen to be in use. */
size_t weft__os_read(void *to, const void *from, size_t bytes)
{
	(void)to;
	(void)from;
	(void)bytes;
	return 0;
}

/* No earlier process can have left data. */
uint64_t weft__os_cookie(void)
{
	return 0x574546544d454d31;
}

void weft__fault_ready(struct weft__thread *thread)
{
	(void)thread;
}

bool weft__os_on_alt_stack(void)
{
	return false;
}

void weft__note_site(weft_coro_t *k)
{
	(void)k;
}

/* ---- blocks: for an end with a payload, and for the work that tail clauses leave -------------------------------- */

enum { BLOCKS = 16, BLOCK_BYTES = 640 };
static struct {
	char block[BLOCKS][BLOCK_BYTES] __attribute__((aligned(64)));
	atomic_uint used; /* a bit for each */
} blocks;

void *weft__block_of_program(size_t bytes)
{
	unsigned used = atomic_load_explicit(&blocks.used, memory_order_relaxed), place;

	if (bytes > BLOCK_BYTES)
		return NULL;
	do {
		place = (unsigned)__builtin_ctz(~used);
		if (place >= BLOCKS)
			return NULL;
		/* Acquire: pairs with the release below. */
	} while (!atomic_compare_exchange_weak_explicit(&blocks.used, &used, used | 1u << place, memory_order_acquire,
							memory_order_relaxed));
	return blocks.block[place];
}

void weft__block_to_program(void *block)
{
	size_t place = (size_t)((char *)block - blocks.block[0]) / BLOCK_BYTES;

	if (block)
		atomic_fetch_and_explicit(&blocks.used, ~(1u << place), memory_order_release);
}

void *weft__buffer_take_slow(struct weft__thread *thread, unsigned class, size_t bytes)
{
	(void)thread;
	(void)class;
	return weft__block_of_program(bytes);
}

void weft__buffer_give_slow(struct weft__thread *thread, void *buffer, unsigned class, size_t bytes)
{
	(void)thread;
	(void)class;
	(void)bytes;
	weft__block_to_program(buffer);
}

/* ---- exceptions: only the ends of coroutines -------------------------------------------------------------------- */

void weft__raise(void *exception)
{
	weft__end_next(exception);
}

void weft__unwind(weft_coro_t *self, struct weft__ending *e)
{
	(void)self;
	(void)e;
}

void weft__unwound(struct weft__ending *e)
{
	(void)e;
}

void weft__superseded(struct weft__ending *e)
{
	(void)e;
}

/* The descriptions of first frames name these two, and no unwinder is there to call them. */
_Unwind_Reason_Code weft__exception_left(int version, _Unwind_Action actions, _Unwind_Exception_Class language,
					 struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	(void)version;
	(void)actions;
	(void)language;
	(void)exception;
	(void)context;
	return _URC_CONTINUE_UNWIND;
}

_Noreturn void weft__thrown(weft_coro_t *k, struct _Unwind_Exception *exception)
{
	(void)k;
	(void)exception;
	weft_stop();
}

/* ---- the program's, unless it has its own ----------------------------------------------------------------------- */

__attribute__((weak)) void weft_say(const char *text, size_t length)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(1L), "D"(2L), "S"(text), "d"(length) : "rcx", "r11", "memory");
	(void)result;
}

__attribute__((weak, noreturn)) void weft_stop(void)
{
	__builtin_trap();
}
