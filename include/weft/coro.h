/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/coro.h: coroutines. A coroutine is a stack and the point where it waits; mutable, one-shot, asymmetric.
 *
 *   state      whose word is link.pc           who may leave the state
 *   SUSPENDED  a landing pad                   weft_resume, weft_switch; weft_delete, weft_reset
 *   RUNNING    weft__in_running                its own code: weft_yield, weft_exit, return
 *   FINISHED   weft__in_finished               weft_reset, weft_delete
 *   (deleted)  weft__in_deleted                nobody: the object is dead until it is created anew
 *
 * Several coroutines may be RUNNING at once: a chain from the one that executes up through its parents to the
 * thread's root. Suspending one suspends all below it; `innermost` remembers which of them executes next.
 *
 * Unless said otherwise the functions here are thread-safe as long as one coroutine is used by one thread at a
 * time, may be called on any stack, do not suspend, and take no lock and make no system call when warm (but once in
 * 1024 creations: see "Signals" in weft/thread.h).
 * In a signal handler only those may be called that look: weft_current, weft_errno, and all of "looking at one" below,
 * but weft_set_failure_hook. What makes, switches or ends coroutines may have been interrupted in the middle. A
 * library built with WEFT_DEBUG=1 reports it on the alternate stack; every build, if the handler would wait for itself.
 * Semantics after libseff (OOPSLA 2024); interface our own.
 */
#ifndef WEFT_CORO_H
#define WEFT_CORO_H

#include <weft/arch.h>
#include <weft/handler_cache.h>
#include <weft/stack.h>

WEFT_EXTERN_C_BEGIN

typedef struct weft_coro weft_coro_t;

/** A coroutine's function. Its result reaches the resumer as the payload of the last request. */
typedef void *weft_fn_t(void *arg);

typedef enum weft_state { WEFT_SUSPENDED, WEFT_RUNNING, WEFT_FINISHED, WEFT_DELETED } weft_state_t;

enum {
	WEFT_SAVE_FPU = 1u << 0, /**< keep MXCSR and the x87 control word per coroutine */
	WEFT_NO_GUARD = 1u << 1, /**< no guard: an overflow goes unnoticed; slots may be 8 KiB, and up to 32 KiB they
				    share huge pages, which serves thousands of small stacks that are all in use */
	WEFT_SAVE_EXCEPTIONS = 1u << 2, /**< keep the C++ exceptions being handled per coroutine: for those that suspend
					   inside a catch block, or in a destructor during unwinding */
	WEFT_UNWIND = 1u << 3,	    /**< unwind its frames, as an exception does, when it is deleted while suspended, or
				  left: for C++, whose destructors run then. See weft/defer.h */
	WEFT_MEMORY_ONLY = 1u << 4, /**< with weft_attr.memory, linked policies: when that memory is used up the
				       coroutine fails (WEFT_RESERVATION_SPENT) in place of getting a chunk elsewhere */
	/* Not for attributes. */
	WEFT__COPYING = 1u << 16, /* its frames are moved in and out of a region */
	WEFT__THROUGH = 1u << 17, /* suspended from below, with such a one inside */
	WEFT__ENDING = 1u << 18,  /* it runs what is deferred: `ending` says why */
	WEFT__KEEPING = 1u << 19, /* it has ended, and `ending` holds its last request's payload */
	/* Under "copy", but its region is its own: not WEFT__COPYING. And: takes no short cuts to checkpoints. */
	WEFT__SECLUDED = 1u << 20,
	WEFT__SLOWLY = 1u << 21,
	WEFT__THENS = 1u << 22,	  /* tail clauses left it something to do with an answer: `thens` says what */
	WEFT__OWNED = 1u << 23,	  /* its chain ends, and its owner with that: a coroutine of the chain made it */
	WEFT__WATCHED = 1u << 24, /* its stack is looked at whenever it is left: see src/stack/caller_memory.c */
	WEFT__HOOKED = WEFT_SAVE_FPU | WEFT_SAVE_EXCEPTIONS | WEFT__WATCHED | WEFT__COPYING,
};

/** What a coroutine should be like. Zero-initialised means: all defaults. Only read during the call. */
typedef struct weft_attr {
	const char *name;     /**< for messages and debuggers; borrowed: must outlive the coroutine; may be NULL */
	weft_policy_t policy; /**< where the stack comes from */
	unsigned flags;	      /**< WEFT_SAVE_FPU, WEFT_NO_GUARD, WEFT_SAVE_EXCEPTIONS, WEFT_UNWIND, WEFT_MEMORY_ONLY,
				 combined with | */
	size_t stack_size;    /**< bytes reserved, guard (an eighth) and object included; a hint, rounded up to
				 16 KiB · 2^n (8 KiB · 2^n without a guard); 0: WEFT_STACK's, else the policy's own */
	void *user_data;      /**< anything */
	size_t guard_size;    /**< bytes of guard at least, 512 MiB at most; 0: an eighth of stack_size, 64 KiB at most.
				 The reservation at least doubles where that is more than usual; contiguous policies and
				 "copy" only. A frame larger than the guard may step over it unless the frame's code is
				 compiled with -fstack-clash-protection */
	void *memory;	      /**< not NULL: the stack lies in these memory_size bytes: see "stacks in memory of the
				 caller's" below. stack_size says nothing then */
	size_t memory_size;   /**< weft_memory_size says how many are needed. 0 without memory */
} weft_attr_t;

/** Why the runtime ended a coroutine. */
typedef enum weft_failure {
	WEFT_NO_FAILURE,
	WEFT_BUDGET_SPENT,	/**< opening more stack would pass weft_set_budget */
	WEFT_RESERVATION_SPENT, /**< the stack's reservation is used up */
	WEFT_MEMORY_SPENT,	/**< the system had no memory for more stack, or for the frames to be copied */
} weft_failure_t;

struct weft__slot;

/**
 * A coroutine. Complete, so that it may be embedded and used by value with weft_init; must not be copied or moved
 * between weft_init and weft_release. Every field is private: use the functions.
 */
struct __attribute__((aligned(16))) weft_coro {
	/* Two cache lines: all that resuming and suspending touch. */
	struct weft_link link;
	uintptr_t group;	/* whoever has the same can be switched to as this one can: see weft_switch */
	weft_coro_t *parent;	/* who resumed it; kept after a suspension, and by one that starts over */
	uintptr_t handled;	/* what its resumer handles: see weft_handles_t */
	weft_coro_t *innermost; /* itself; while it is suspended from below: the one that executes when it is resumed */
	__extension__ union {
		uint64_t tags; /* if `handled` is WEFT__HANDLES_TAGS: a set of effects that are small numbers */
		void *state;   /* if it is a handler's: what its clauses get */
	};
	const struct weft__view *view; /* see weft/handler_cache.h; in no union, or any store could be one to it */

	struct weft__deferred *deferred; /* what is to be called if its frames are left early; innermost first */
	/* Eight bytes: all zero in a coroutine with nothing unusual about it. */
	uint32_t flags;
	uint8_t failure;	/* weft_failure_t */
	uint8_t marks;		/* WEFT__SEEN, WEFT__PASSED, WEFT__APART */
	uint16_t owner_changes; /* how often weft_keep made somebody else its owner */
	uint64_t id;		/* unique in the process, never reused; 0 in an object not in use */
	const char *name;
	struct weft__slot *slot;
	void *user_data;
	/* WEFT_SAVE_…: the coroutine's state while it is suspended, its resumer's while it runs. */
	uint64_t fpu;
	void *caught;
	uint32_t uncaught;
	uint32_t resume_serial;	   /* how often a resumption of it was used up: see src/effect/handler.c */
	void *inner_pc, *outer_pc; /* what link.pc and link.parent_pc would be without */

	/* Only code built with a sanitizer uses these, but for `arrays`. */
	void *asan_fake;
	__extension__ union {
		const void *asan_parent_stack;
		uintptr_t arrays; /* of linked stacks, which no sanitizer follows: see src/stack/linked.c */
	};
	__extension__ union {
		size_t asan_parent_size;
		void *tsan_fiber; /* there is one sanitizer at most */
	};

	uint64_t creator; /* id of the coroutine that made this one, 0 if made outside of any */
	__extension__ union {
		struct weft__ending *ending; /* only if flags have WEFT__ENDING or WEFT__KEEPING */
		struct weft__thens *thens;   /* only if flags have WEFT__THENS: then the oldest keeps the other */
	};
};

WEFT__OFFSET_IS(struct weft_coro, group, WEFT_CORO_GROUP);
WEFT__OFFSET_IS(struct weft_coro, parent, WEFT_CORO_PARENT);
WEFT__OFFSET_IS(struct weft_coro, handled, WEFT_CORO_HANDLED);
WEFT__OFFSET_IS(struct weft_coro, innermost, WEFT_CORO_INNERMOST);
WEFT__OFFSET_IS(struct weft_coro, tags, WEFT_CORO_TAGS);
WEFT__OFFSET_IS(struct weft_coro, view, WEFT_CORO_VIEW);
WEFT__OFFSET_IS(struct weft_coro, slot, WEFT_CORO_SLOT);
WEFT__OFFSET_IS(struct weft_coro, arrays, WEFT_CORO_ARRAYS);
WEFT__OFFSET_IS(struct weft_coro, flags, WEFT_CORO_FLAGS);
WEFT__OFFSET_IS(struct weft_coro, inner_pc, WEFT_CORO_INNER_PC);
WEFT__OFFSET_IS(struct weft_coro, outer_pc, WEFT_CORO_OUTER_PC);

/* A piece of memory for the functions that tail clauses want called with an answer, one behind the other: see
 * weft_on_answer. */
struct weft__thens {
	char *top, *end;	   /* of those, and of the room */
	struct weft__thens *below; /* older ones */
	size_t bytes;
	struct weft__ending *ending; /* of the oldest: the coroutine's */
};

/** What a resumer handles: nothing, everything, one effect or family, or a set of them. Made by weft_handles(…). (The
 * structure's name is for the messages of compilers: an effect in its place is a mistake that is easily made.) */
typedef struct weft__write_weft_handles_of_the_effect {
	/* 0; ~0; WEFT__HANDLES_TAGS; address of an effect; of a list of effects, plus 1; of a handler, plus 4 or 5 */
	uintptr_t word;
} weft_handles_t;

/* One that has not been resumed has its function and the argument of that where others keep registers. */
WEFT__INLINE void weft__set_argument(weft_coro_t *k, void *argument)
{
	k->link.bx = argument;
}

/* Marks of a coroutine. The first two: see weft/handler_cache.h. */
enum {
	WEFT__SEEN = 1,
	WEFT__PASSED = 2,
	WEFT__APART = 4, /* weft_create makes others: another kind of stack, or the object not in its slot */
};

enum {
	WEFT__HANDLES_TAGS = WEFT_HANDLES_TAGS, /* for compatibility headers: see `tags` of the coroutine */
	WEFT__HANDLES_TABLE = 4,		/* added to the address of a weft_handler_t */
	WEFT__HANDLES_RUN = 5,			/* the same, by weft_run or weft_continue */
};

/* For compatibility headers, whose effects are numbers from 0 to 63: does k's resumer handle this one? */
WEFT__INLINE bool weft__handles_tag(const weft_coro_t *k, unsigned number)
{
	if (weft__likely(k->handled == WEFT__HANDLES_TAGS))
		return k->tags >> number & 1;
	return k->handled == ~(uintptr_t)0;
}

/* The key of such an effect in the table of weft/handler_cache.h. No effect lies at an address so low. */
WEFT__INLINE const void *weft__key_of_tag(unsigned number)
{
	return (const void *)(uintptr_t)(number + 1);
}

WEFT__INLINE unsigned weft__place_of_tag(unsigned number)
{
	return number % WEFT__FOUND_PLACES;
}

/* The innermost coroutine, from the running one outwards, whose resumer handles this effect. NULL: none. */
WEFT_API weft_coro_t *weft__find_tag(unsigned number);

/* Is `address` in the same shared object as `place`? False in the program, which is never unloaded. */
WEFT_API bool weft__is_unloaded_with(const void *place, const void *address);

WEFT__INLINE bool weft__handles_table(uintptr_t handled)
{
	return (handled & 6) == WEFT__HANDLES_TABLE;
}

/** Handle nothing: what the coroutine performs goes to handlers further out. */
#define WEFT_HANDLE_NONE (weft__handles(0))
/** Handle whatever the coroutine performs. */
#define WEFT_HANDLE_ALL (weft__handles(~(uintptr_t)0))

WEFT__HOT weft_handles_t weft__handles(uintptr_t word)
{
	weft_handles_t handles = {word};

	return handles;
}

/** The effect of a request by which the runtime says that it ended the coroutine: see weft_failure(). */
extern WEFT_API struct weft_effect weft_failed;
/** The effect of weft_suspend. */
extern WEFT_API struct weft_effect weft_suspended;

/* ---- life ---------------------------------------------------------------------------------------------- */

/**
 * Make a suspended coroutine with default attributes; its first resume calls fn(arg).
 * @param fn  not NULL: the first resume of a coroutine without a function reports that, and ends the process
 * @return the coroutine, owned by the caller, to be given to weft_delete; or NULL with errno
 *   ENOMEM  no memory or address space
 *   EDQUOT  under commit: it would pass weft_set_budget
 *   EAGAIN  the kernel's limit on mappings is reached (guards by mprotect only)
 */
WEFT_API weft_coro_t *weft_create(weft_fn_t *fn, void *arg);

/**
 * The same with attributes.
 * @param attr  NULL for the defaults; only read during the call
 * @return as weft_create; also
 *   EINVAL   an unknown policy or flag, a size beyond the arena, or a guard_size together with WEFT_NO_GUARD
 *   ENOTSUP  the policy cannot run here: weft_policy_unavailable says why
 *  and for weft_attr.memory, in the words of weft_memory_unfit:
 *   EINVAL   the policy takes no such memory ("heap", "copy"), or memory is NULL and memory_size is not 0
 *   ENOSPC   memory_size is too small: weft_memory_size says which one is not
 *   EBUSY    a coroutine that has not been deleted has its stack in that memory
 *   ENOMEM, EAGAIN, EACCES, …  of mprotect, for a guard: the memory is no mapping of the process's, or has larger pages
 */
WEFT_API weft_coro_t *weft_create_with(weft_fn_t *fn, void *arg, const weft_attr_t *attr);

/**
 * Make a suspended coroutine in storage of the caller's: embedded, in an array, on the stack.
 * An object that is still in use by an earlier weft_init is released first, so that initialising anew never leaks.
 * @param k  storage of the caller's, 16-aligned (64 is better: a switch then touches one cache line), initialised or
 *           not; must stay in place until weft_release
 * @return 0, or a negative errno as weft_create_with
 */
WEFT_API int weft_init(weft_coro_t *k, weft_fn_t *fn, void *arg, const weft_attr_t *attr);

/*
 * Stacks in memory of the caller's: static arrays, huge pages, shared mappings, blocks of any allocator.
 *
 *   low                                                            high
 *   +-----+------------------+-----------------------+--------+---------+-----+
 *   |     | pattern or guard |  <- frames grow down  | object | record  |     |
 *   +-----+------------------+-----------------------+--------+---------+-----+
 *   the ends are rounded inwards, so that any alignment will do
 *
 *  1. Policies. "fixed" and "overcommit" are the same here. "commit" charges nothing to its budget, because the memory
 *     is there; at a guard the coroutine fails. Under "segmented" and "lookahead" the memory is the first chunk. More
 *     chunks come from the arena unless the flags have WEFT_MEMORY_ONLY; functions without checks borrow a system
 *     stack of the thread's as ever. "mmu" closes the lowest page, because its code finds the end by a fault. "heap"
 *     and "copy" have their frames elsewhere, and take no memory. With WEFT_DEFAULT_POLICY, where WEFT_STACK chose one
 *     of these two, the policy is overcommit.
 *  2. Owner. The memory stays the caller's; the coroutine borrows it from its creation until weft_delete or
 *     weft_release returns. weft_reset, the coroutine's end and its failure change nothing about that. A task borrows
 *     it until it is joined, its scope has ended, or its runtime if it has no scope; a thread until it is joined; a
 *     coroutine that was kept (weft_keep) until the resumption is used up or dropped; and one that its owner lost, by
 *     being left in the middle, until the owner is deleted or reset. From then on the memory has no special content,
 *     and a guard in it is readable and writable again. Weft never reads it again, caches it, gives it to another
 *     coroutine or to the kernel. A payload or weft_reserve's room in it lasts until the caller uses it anew.
 *  3. Overflow. Nothing below the memory stops one unless guard_size asks for that: then so many bytes, whole pages
 *     inside the memory, are closed by mprotect while the coroutine lives. Without guard_size, 64 bytes at the low end
 *     hold a pattern; whenever the coroutine is left for its resumer, the pattern and the stack pointer are looked at,
 *     and an overflow ends the process by a line that names the coroutine. (A frame that leaves gaps unwritten can step
 *     over the pattern unseen, once it has returned.) That costs such coroutines 150 instructions for a resume and a
 *     yield, and others nothing. WEFT_NO_GUARD leaves it out. Linked stacks need neither.
 *  4. fork. Both processes have the coroutine, each in its own copy of private memory. In a mapping that they share
 *     (MAP_SHARED), only one of them may use it.
 *  5. Functions of Weft that make or end coroutines need up to 4 KiB of stack, as without such memory.
 *
 * Idea: pthread_attr_setstack, and every kernel for small machines.
 */

/** For arrays of a constant size: weft_memory_size for every policy, with so many bytes of stack, without a guard. */
#define WEFT_MEMORY_BYTES(stack_bytes) ((size_t)(stack_bytes) + WEFT__MEMORY_OVERHEAD)

/**
 * How large must memory be, at any address?
 * @param attr         the attributes that it is for; memory and memory_size are not looked at. NULL: the defaults
 * @param stack_bytes  weft_stack_usable is to say at least so many; 0, or less than the policy needs: what that needs
 * @return bytes for weft_attr.memory_size; 0 if the policy takes no memory or an attribute is wrong, SIZE_MAX if there
 *         is no such size
 * Thread-safe; any stack; does not suspend.
 */
WEFT_API size_t weft_memory_size(const weft_attr_t *attr, size_t stack_bytes);

/**
 * Why would a coroutine with these attributes not be made in this memory? For messages; creating asks by itself.
 * @param attr  with memory and memory_size; only read
 * @param text  where to write one line, without a newline: what is wrong, and what to do; owned by the caller
 * @param size  bytes there; 160 hold every line, and what does not fit is cut
 * @return NULL if it serves, unless the system refuses a guard; else `text`
 * Thread-safe; any stack; does not suspend.
 */
WEFT_API const char *weft_memory_unfit(const weft_attr_t *attr, char *text, size_t size);

/**
 * Reserve room on a coroutine's stack, above its first frame, for what its function will work on: at most 4 KiB and a
 * quarter of the stack. It lasts until the coroutine is deleted or reset, also beyond its end; several calls add up.
 * @param k  made or reset, and not resumed since
 * @return 16-aligned memory, not initialised; NULL if there is no such room: too large, started, or the stack is copied
 */
WEFT_API void *weft_reserve(weft_coro_t *k, size_t bytes);

/* For functions that coroutines of many functions share (trampolines): k, which runs, was made to run this function.
 * How much stack coroutines need is learned for each function. */
WEFT_API void weft__stands_for(weft_coro_t *k, const void *function);

/** Give back what weft_init took; `k` must not be RUNNING (reported). The storage is the caller's again. */
WEFT_API void weft_release(weft_coro_t *k);

/**
 * Make a suspended or finished coroutine start over, on the stack that it has, with its attributes. If it is
 * suspended, what is deferred in its frames is called first, innermost first: see weft/defer.h. A running one is
 * reported. Of the coroutines that were running inside it, suspended or left with it, those that it (or they) had made
 * are deleted too, because the frames that owned them are gone; others become FINISHED and stay their owner's. If the
 * runtime ended it (weft_failed), the bodies that its frames ran by weft_run are deleted now, and what they have
 * deferred is called.
 */
WEFT_API void weft_reset(weft_coro_t *k, weft_fn_t *fn, void *arg);

/* For weft.hpp: if k is suspended, call what is deferred in its frames and, with WEFT_UNWIND, unwind them: then k is
 * FINISHED. What weft_reserve gave stays until weft_delete, so that what those frames referred to can be destroyed. */
WEFT_API void weft__end_frames(weft_coro_t *k);

/**
 * End a coroutine made by weft_create, whatever its state but RUNNING (reported), and keep its stack for reuse. NULL
 * is allowed. Its frames, and coroutines that were running inside it: as in weft_reset. Under "copy" a coroutine with
 * something deferred must be one that could be resumed here; this is true of weft_reset and weft_release, too. Frames
 * that wait in weft_run need no such care, unless the body has something deferred.
 */
WEFT_API void weft_delete(weft_coro_t *k);

/**
 * Give the memory below a coroutine's frames back to the kernel, and the chunks that it keeps for growing again: for
 * coroutines that went deep once and wait for long. What they need they get again as they did before.
 * @param k  SUSPENDED, or the caller's own (weft_current()), which is about to wait; in any other state, and where
 *           frames are blocks or are copied, nothing is done
 * @return bytes of stack that may no longer be touched without asking the kernel; chunks are not counted
 */
WEFT_API size_t weft_trim(weft_coro_t *k);

/* ---- looking at one ------------------------------------------------------------------------------------ */

/** The coroutine that executes this call, or NULL outside of any. */
WEFT_API weft_coro_t *weft_current(void);

/**
 * errno of the thread that executes this call. Compilers keep addresses of thread-local variables across calls, errno's
 * too: a function that suspends, and is resumed by another thread, may go on using the first thread's. Read them after
 * a suspension in a function of their own that is not inlined, as this is one.
 */
WEFT_API int weft_errno(void);

/* Since it was made or reset. `parent` may be from before. */
WEFT__INLINE bool weft__was_resumed(const weft_coro_t *k)
{
	return k->link.parent_pc != NULL;
}

/** Who resumed `k` last: a coroutine, or NULL if that was outside of any (or never, or not since it was reset). */
WEFT_API weft_coro_t *weft_parent(const weft_coro_t *k);

/** Its name, or "" if it has none. */
WEFT_API const char *weft_name(const weft_coro_t *k);

/** Its number: unique in the process, never reused, 0 after deletion. */
WEFT__INLINE uint64_t weft_id(const weft_coro_t *k)
{
	return k->id;
}

WEFT__INLINE weft_state_t weft_state(const weft_coro_t *k)
{
	uintptr_t pc = (uintptr_t)k->link.pc;

	if (pc == (uintptr_t)weft__in_running)
		return WEFT_RUNNING;
	if (pc == (uintptr_t)weft__in_finished)
		return WEFT_FINISHED;
	return pc == (uintptr_t)weft__in_deleted || !pc ? WEFT_DELETED : WEFT_SUSPENDED;
}

/** The pointer given with the attributes, or set since. */
WEFT__INLINE void *weft_user_data(const weft_coro_t *k)
{
	return k->user_data;
}

WEFT__INLINE void weft_set_user_data(weft_coro_t *k, void *user_data)
{
	k->user_data = user_data;
}

/** The policy that its stack is stored by. */
WEFT_API weft_policy_t weft_policy(const weft_coro_t *k);

/** Bytes between the guard and the top of its stack (of its first chunk, where chunks are linked), and whether
 * `address` lies on its stack. For tools. */
WEFT_API size_t weft_stack_usable(const weft_coro_t *k);
WEFT_API bool weft_on_stack(const weft_coro_t *k, const void *address);

/**
 * Where a suspended coroutine waits: the addresses that its calls return to, innermost first, those of coroutines that
 * it is suspended within included.
 * @param k       must stay suspended meanwhile
 * @param places  written: `most` addresses at most
 * @return how many; 0: it is not suspended, or has not begun. One at most of a coroutine whose frames are copied out.
 * Not in a signal handler. Needs unwind tables, which compilers write unless told otherwise.
 */
WEFT_API size_t weft_backtrace(const weft_coro_t *k, void **places, size_t most);

/** Why the runtime ended it, or gave up some of its cleanups; WEFT_NO_FAILURE if it did neither. */
WEFT__INLINE weft_failure_t weft_failure(const weft_coro_t *k)
{
	return (weft_failure_t)k->failure;
}

/**
 * Be told when the runtime ends a coroutine, to log it, or gives up what is deferred in a coroutine that is ending
 * already, because there is no memory for it (weft/defer.h). The hook runs on a stack of 64 KiB before the resumer
 * sees &weft_failed; it must not suspend, and must not rely on anything the coroutine was in the middle of (a
 * lock of malloc's, say: the fault can come anywhere). Of coroutines that fail inside the hook it is not told.
 * @return the hook before; NULL if none
 */
typedef void weft_failure_hook_t(weft_coro_t *k, weft_failure_t why);
WEFT_API weft_failure_hook_t *weft_set_failure_hook(weft_failure_hook_t *hook);

/* A handle that notices when its coroutine was deleted, even if the memory serves another one since. */
typedef struct weft__ref {
	weft_coro_t *k;
	uint64_t id;
} weft_ref_t;

/** A checked handle to a coroutine made by weft_create. */
WEFT__INLINE weft_ref_t weft_ref(weft_coro_t *k)
{
	weft_ref_t ref = {k, k->id};

	return ref;
}

/**
 * The coroutine, or NULL if it was deleted since. It costs 0.1 ns (`./weft lab --full --only micro`).
 * Safe on stale handles: memory of the arena is never unmapped.
 */
WEFT__INLINE weft_coro_t *weft_deref(weft_ref_t ref)
{
	return weft__likely(ref.k && ref.k->id == ref.id) ? ref.k : NULL;
}

/* ---- what the inline functions below stand on ------------------------------------------------------------ */

WEFT_API weft_coro_t *weft__attach_thread(void);
/* Has the calling thread what stacks need of it to grow? Made if not; false: no memory. */
WEFT_API bool weft__prepare_thread(void);
/* What was passed, in registers: nothing need be kept across the call. */
struct weft__switch {
	weft_coro_t *to;
	void *value;
};
WEFT_API struct weft__switch weft__prepare_switch(weft_coro_t *to, void *value);
WEFT_API WEFT__NORETURN void weft__leave_to(weft_coro_t *k, const void *effect, void *payload);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_not_ancestor(const weft_coro_t *k);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_no_coroutine(const char *what);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_null(const char *what);
/* "weft: ", the three texts and a newline on standard error; abort(). Needs no stack. */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_saying(const char *what, const char *more, const char *why);
WEFT_API WEFT__COLD void weft__owner_report_null(void); /* a line about weft_resume(NULL) */
/* `self` is NULL, or its view is bound: returns if it may be suspended all the same. */
WEFT_API WEFT__COLD void weft__check_bound(const weft_coro_t *self, const char *what);
/* For debug builds: may `self` suspend k? */
WEFT_API WEFT__COLD void weft__check_yield(const weft_coro_t *k, const weft_coro_t *self);
/* `self` is not the current coroutine, or bound: returns if it may be suspended all the same. */
WEFT_API WEFT__COLD void weft__check_self(const weft_coro_t *self);
WEFT_API void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__rethrow(void *exception);
/* `k` is to be resumed by the very next call. The call that `k` waits in then calls throws(argument), which does not
 * return. */
typedef void weft__thrower_t(void *argument);
WEFT_API void weft__throw_into(weft_coro_t *k, weft__thrower_t *throws, void *argument);
WEFT_API bool weft__is_ancestor(const weft_coro_t *k, const weft_coro_t *of);
/* What a suspension from further inside must look at closely: has there ever been a coroutine whose frames are copied,
 * an effect with several addresses? Atomic. */
enum { WEFT__COPYING_USED = 1, WEFT__EFFECTS_DOUBLED = 2 };
extern WEFT_API unsigned char weft__unusual;
/* For sanitizers. It is suspended: has it never run since it was made or reset? Then its stack has no frames. */
WEFT_API bool weft__is_fresh(const weft_coro_t *k);

/* From here on the thread executes k's code: soon, or already. */
WEFT__INLINE void weft__become(weft_coro_t *k)
{
	weft__set_self(k);
	weft__set_limit(k->link.limit);
}

#if WEFT__SANITIZED
WEFT_EXTERN_C_END
#include <weft/sanitizer.h>
WEFT_EXTERN_C_BEGIN
#else
#define weft__run_hooked weft_arch_run
#define weft__transfer_hooked weft_arch_transfer
#endif

/* The effect of a request by which a coroutine ends whose exception nobody inside caught, or (src/coro/ends.c) on the
 * way to another one's end. Not an address, because comparing with a constant is cheaper. */
#define WEFT__THROWN ((const struct weft_effect *)-16)

/* `self` is to resume `k`, which it did not resume the last time. */
WEFT__INLINE void weft__adopt(weft_coro_t *self, weft_coro_t *k)
{
	if (weft__unlikely(k->parent || k->marks & WEFT__PASSED)) {
		if (WEFT_NO_CANARY(adopting_forgets_nothing))
			weft__forget_found();
		if (!k->parent && weft__only_table())
			k->marks &= (uint8_t)~WEFT__PASSED;
	}
	if (weft__unlikely(!k->innermost)) /* all zero, never made: reported where it lands */
		k->innermost = k;
	k->parent = self;
	self->marks |= WEFT__PASSED;
}

/* `k` is to be resumed with another set than the last time, which was a table: mark the tail clauses of that in which
 * it waits, or coroutines inside it do. */
WEFT_API void weft__move_clauses(weft_coro_t *k, uintptr_t handled);

/* `k` is to be resumed with another set than the last time. */
WEFT__INLINE void weft__rehandle(weft_coro_t *k, uintptr_t handled)
{
	if (weft__unlikely(k->marks & WEFT__SEEN) && WEFT_NO_CANARY(another_set_forgets_nothing))
		weft__forget_found();
	/* Else compilers use the value that was compared, and keep a register for it on the usual way. */
	__asm__("" : "+r"(k));
	if (weft__unlikely(weft__handles_table(k->handled)) &&
	    weft__unlikely(k->innermost != k || weft__masked(k->view)))
		weft__move_clauses(k, handled);

	k->handled = handled;
}

/* The same for compatibility headers, whose sets of effects are `tags`: the word in `handled` may be the same. */
WEFT__INLINE void weft__retag(weft_coro_t *k, uint64_t tags)
{
	if (weft__likely(k->tags == tags))
		return;
	if (weft__unlikely(k->marks & WEFT__SEEN) && WEFT_NO_CANARY(a_new_set_forgets_nothing))
		weft__forget_found();
	k->tags = tags;
}

/*
 * weft__enter has done nothing: this function does all but one part, to make the innermost coroutine current. The
 * caller does that part, because a function on linked stacks returns by the current coroutine and its limit. It is a
 * function of its own, else compilers keep values in registers for it, and inline fewer functions that resume.
 */
__attribute__((unused, cold, noinline)) static void weft__enter_anew(weft_coro_t *k, uintptr_t handled)
{
	weft_coro_t *self = weft__self();

	/* Compilers trap at an address of their own where they know that a resume is one of NULL. */
	__asm__("" : "+r"(k));
	/* In the resume itself the library recognizes the fault by the code around it and the field that is read. This
	 * code reads another field, or the library would report the fault a second time. */
	if (weft__unlikely(!k)) {
		weft__owner_report_null();
		__asm__("" : "+r"(k));
		(void)*(const volatile uint64_t *)&k->id;
	}
	if (!self)
		self = weft__attach_thread();
	if (k->parent != self)
		weft__adopt(self, k);
	if (k->handled != handled)
		weft__rehandle(k, handled);
	if (weft__masked(self->view) && WEFT_NO_CANARY(resuming_in_a_clause_forgets_nothing))
		weft__forget_found();
	if (WEFT_NO_CANARY(resumed_coroutine_stays_in_its_group))
		k->group = (uintptr_t)k;
}

/* Continue *k, which was entered. */
WEFT__INLINE weft_request_t weft__resume_entered(weft_coro_t **k, void *value)
{
	struct weft_link *link = &(*k)->link;
	weft_request_t request = weft__run_hooked(&link, value);

	*k = (weft_coro_t *)link;
	return request;
}

/* Continue *k. On return *k is who suspended: another one if it switched sideways meanwhile. */
WEFT__INLINE weft_request_t weft__resume_caught(weft_coro_t **k, void *value, uintptr_t handled)
{
	if (weft__unlikely(!weft__enter(&(*k)->link, handled))) {
		weft__enter_anew(*k, handled);
		weft__set_self((*k)->innermost);
	}
	return weft__resume_entered(k, value);
}

/* The same; an exception that left the coroutine goes on here, and so does the end of one further out. */
WEFT__INLINE weft_request_t weft__resume(weft_coro_t **k, void *value, uintptr_t handled)
{
	weft_request_t request = weft__resume_caught(k, value, handled);

	if (weft__unlikely(request.effect == WEFT__THROWN))
		weft__rethrow(request.payload);
	return request;
}

/* Like weft__resume, with the state of a handler. weft__enter comes first, because it notices that *k is NULL. */
WEFT__INLINE weft_request_t weft__resume_stateful(weft_coro_t **k, void *value, uintptr_t handled, void *state)
{
	weft_request_t request;

	if (weft__unlikely(!weft__enter(&(*k)->link, handled))) {
		weft__enter_anew(*k, handled);
		weft__set_self((*k)->innermost);
	}
	(*k)->state = state;
	request = weft__resume_entered(k, value);
	if (weft__unlikely(request.effect == WEFT__THROWN))
		weft__rethrow(request.payload);
	return request;
}

/* Who will land when k, about to be suspended, is resumed. It seldom changes, and what is not stored here the resume
 * need not wait for. */
WEFT__INLINE void weft__suspend_by(weft_coro_t *k, weft_coro_t *self)
{
	if (weft__unlikely(k->innermost != self))
		k->innermost = self;
}

/* Suspend k from `self`, which is k or below it. */
WEFT__INLINE void *weft__yield(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	if (weft__likely(weft__is_self(k, self))) {
		weft__suspend_by(self, self);
		return weft_arch_yield(&self->link, effect, payload);
	}
	return weft__yield_through(k, self, effect, payload);
}

/*
 * The same for performs, where k is below here as often as not, and whoever found k saw that no frames need moving.
 * `innermost` tells others who will land; here the frame knows.
 */
WEFT__INLINE void *weft__yield_near(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	weft__suspend_by(k, self);
	return weft_arch_yield(&k->link, effect, payload);
}

/* The inline functions below, out of line: the same contracts. For languages that cannot inline C, and for code that is
 * not optimized (WEFT__CALLS_TWINS). */
WEFT_API weft_request_t weft_ffi_resume(weft_coro_t *k, void *value, weft_handles_t handles);
WEFT_API void *weft_ffi_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload);
WEFT_API void *weft_ffi_suspend(void *payload);
WEFT_API WEFT__NORETURN void weft_ffi_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload);
WEFT_API void *weft_ffi_switch(weft_coro_t *to, void *value);
WEFT_API weft_state_t weft_ffi_state(const weft_coro_t *k);

/* Where a search that has come to k goes on: if k executes a tail clause, outside of the clause's handler. */
WEFT__INLINE weft_coro_t *weft__unmasked(weft_coro_t *k)
{
	while (weft__unlikely(weft__masked(k->view)))
		k = WEFT_CANARY_OR(clause_sees_its_own_handler, weft__owner_of(k->view),
				   weft__owner_of(k->view)->parent);
	return k;
}

/* ---- switching -------------------------------------------------------------------------------------------- */

/**
 * Start or continue a suspended coroutine, until it suspends, finishes or fails.
 * @param k        suspended; any other state is reported and ends the process; and so, by a fault, is NULL
 * @param value    what its pending weft_yield returns; the first resume ignores it
 * @param handles  the effects handled here for this run, e.g. weft_handles(state, print); what the coroutine
 *                 performs beyond them goes to handlers further out. A set must live until this returns.
 * @return why control came back; see weft_request_t
 * May be called on any stack and any thread (a coroutine may move between threads, between runs). Suspends the
 * caller's own chain if an effect is handled further out. An exception that nobody inside catches finishes the
 * coroutine and leaves this call; so does the unwinding of pthread_exit and cancellation.
 */
WEFT__HOT weft_request_t weft_resume(weft_coro_t *k, void *value, weft_handles_t handles)
{
#if WEFT_DEBUG
	if (weft__unlikely(!k))
		weft__die_null("weft_resume");
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_resume(k, value, handles);
#else
	return weft__resume(&k, value, handles.word);
#endif
}

/** As weft_resume for chains that use weft_switch: `*k` becomes the coroutine that the request comes from. */
WEFT__HOT weft_request_t weft_resume_any(weft_coro_t **k, void *value, weft_handles_t handles)
{
	return weft__resume(k, value, handles.word);
}

/**
 * Suspend `k`, the current coroutine or an ancestor of it, without a search for a handler: its resumer gets the
 * request {effect, payload}, and all coroutines below `k` are suspended with it.
 * @param k        RUNNING and an ancestor-or-self; and no coroutine from the current one up to k executes a tail clause
 *                 of a handler further out than k's resumer, as for weft_suspend (both checked in debug builds)
 * @param effect   not NULL; &weft_suspended if it does not matter
 * @param payload  anything; usually points to this stack
 * @return the value that the next resume of `k` passes
 */
WEFT__HOT void *weft_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
#if WEFT_DEBUG
	weft__check_yield(k, weft__self());
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_yield(k, effect, payload);
#else
	return weft__yield(k, weft__self(), effect, payload);
#endif
}

/** Suspend the current coroutine: its resumer gets {&weft_suspended, payload}. Reported outside of any, and in a tail
 * clause whose handler is further out than the resumer: whoever resumes it next need not be within that handler. */
WEFT__HOT void *weft_suspend(void *payload)
{
#if WEFT__CALLS_TWINS
	return weft_ffi_suspend(payload);
#else
	weft_coro_t *self = weft__self();

	if (weft__unlikely(!self || weft__is_bound(self->view)))
		weft__check_bound(self, "weft_suspend");
	return weft__yield_near(self, self, &weft_suspended, payload);
#endif
}

/**
 * Finish `k`, the current coroutine or an ancestor of it: its resumer gets the request, nothing is saved, and the
 * coroutines running below `k` are finished with it (see weft_reset for who deletes them), after what is deferred in
 * them has been called (weft/defer.h). The payload may lie on the stack that is left: it stays readable until `k` is
 * reset or deleted; but if something is deferred, no more of it than the effect's struct, or 512 bytes for an effect
 * that has none.
 *
 * Where malloc has no memory, 4096 such ends may be in the middle of what is deferred at the same time. With a further
 * one `k` fails: its resumer gets &weft_failed, weft_failure(k) is WEFT_MEMORY_SPENT, and what is deferred in `k` and
 * in the coroutines below is given up.
 */
WEFT__HOT WEFT__NORETURN void weft_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	weft__leave_to(k, effect, payload);
}

/* `*self` is the current coroutine, before and after. `simple`: it may be suspended. */
WEFT__INLINE void *weft__switch_by(weft_coro_t **self, weft_coro_t *to, void *value, bool simple)
{
	weft_coro_t *from = *self;
	struct weft_link *link;
	struct weft__switch same;

	/* Those that switch to each other have the same parent, which waits in one place, and the same set: once that
	 * has been handed on they are a group. A resume takes its coroutine out of its group. */
	if (weft__likely(simple) && weft__likely(from->group == to->group)) {
		weft__become(to);
	} else {
		same = weft__prepare_switch(to, value);
		from = weft__self();
		to = same.to;
		value = same.value;
		weft__become(to->innermost);
	}
	link = &to->link;
	value = weft__transfer_hooked(&from->link, &link, value);
	*self = (weft_coro_t *)link;
	return value;
}

/**
 * Suspend the current coroutine and continue `to` in its place, sideways: `to` gets the parent and the handled set
 * that the current one has, and the parent's resume returns what `to` requests (weft_resume_any says from whom).
 * @param to     suspended; any other state is reported. Where weft_suspend is reported this is, too.
 * @param value  what the pending switch or yield of `to` returns
 * @return the value passed by whoever continues the current coroutine
 */
WEFT__HOT void *weft_switch(weft_coro_t *to, void *value)
{
#if WEFT_DEBUG
	if (weft__unlikely(!to))
		weft__die_null("weft_switch");
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_switch(to, value);
#else
	weft_coro_t *self = weft__self();

	return weft__switch_by(&self, to, value, weft__likely(self) && weft__likely(!weft__is_bound(self->view)));
#endif
}

/**
 * As weft_switch, for code that switches often and knows who it is.
 * @param self  `*self` is the current coroutine, and may be suspended: not in a tail clause (both checked in debug
 *              builds). NULL, as weft_current() says outside of any, is reported. It comes back unchanged (in a
 *              clone it is the clone), but in a register: code that keeps it in a variable, and what it switches to
 *              in the coroutine (weft_user_data), need not wait for its stack to know where to go next.
 */
WEFT__HOT void *weft_switch_from(weft_coro_t **self, weft_coro_t *to, void *value)
{
#if WEFT_DEBUG
	if (weft__unlikely(!to))
		weft__die_null("weft_switch_from");
	if (*self && weft__unlikely(*self != weft__self() || weft__is_bound((*self)->view)))
		weft__check_self(*self);
#endif
	return weft__switch_by(self, to, value, weft__likely(*self));
}

/** Is the object consistent? For assertions and debuggers; reads only. */
WEFT_API bool weft_coro_is_valid(const weft_coro_t *k);

WEFT_EXTERN_C_END

#endif /* WEFT_CORO_H */
