/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/coro.h: coroutines. A coroutine is a stack and the point where it waits; mutable, one-shot, asymmetric.
 *
 *   static void *count(void *last)
 *   {
 *           for (int i = 1; i <= *(int *)last; i++)
 *                   weft_suspend(&i);
 *           return NULL;
 *   }
 *
 *   int three = 3;
 *   weft_coro_t *k = weft_create(count, &three);
 *   weft_request_t r;
 *   while ((r = weft_resume(k, NULL, WEFT_HANDLE_NONE)).effect)
 *           printf("%d\n", *(int *)r.payload);
 *   weft_delete(k);
 *
 *   state      value of link.pc                which calls leave the state
 *   SUSPENDED  a landing pad                   weft_resume, weft_switch; weft_delete, weft_reset
 *   RUNNING    weft__in_running                its own code: weft_yield, weft_exit, return
 *   FINISHED   weft__in_finished               weft_reset, weft_delete
 *   (deleted)  weft__in_deleted                none: the object is dead until a coroutine is created in it
 *
 * Several coroutines may be RUNNING at once: a chain from the coroutine that executes up through its parents to the
 * thread's root. Suspending a coroutine suspends all coroutines below it; `innermost` records which of them executes
 * when it is resumed.
 *
 * Unless a comment says otherwise, the functions here are thread-safe as long as each coroutine is used by one thread
 * at a time, may be called on any stack, and do not suspend. When warm they take no lock and make no system call
 * (except once in 1024 creations: see "Signals" in weft/thread.h).
 * A signal handler may call only functions that read: weft_current, weft_errno, and all functions in the section
 * "inspecting a coroutine" below except weft_set_failure_hook. The signal may have interrupted a function that makes,
 * switches or ends a coroutine. A library built with WEFT_DEBUG=1 reports other calls on the alternate stack; every
 * build reports a call for which the handler would wait for itself.
 * The semantics follow libseff (OOPSLA 2024); the interface is our own.
 */
#ifndef WEFT_CORO_H
#define WEFT_CORO_H

#include <weft/stack.h>

WEFT_EXTERN_C_BEGIN

/**
 * A coroutine. Complete, so that it may be embedded and used by value with weft_init; must not be copied or moved
 * between weft_init and weft_release. Every field is private: use the functions.
 */
typedef struct weft_coro weft_coro_t;

/* ---- life ---------------------------------------------------------------------------------------------------- */

/** A coroutine's function. Its result reaches the resumer as the payload of the last request. */
typedef void *weft_fn_t(void *arg);

/**
 * Make a suspended coroutine with default attributes; its first resume calls fn(arg).
 * @param fn  not NULL: the first resume of a coroutine without a function reports that, and ends the process
 * @return the coroutine, owned by the caller, to be passed to weft_delete; or NULL with errno
 *   ENOMEM  no memory or address space
 *   EDQUOT  under commit: the coroutine would exceed the limit of weft_set_budget
 *   EAGAIN  the kernel's limit on mappings is reached (guards by mprotect only)
 */
WEFT_API weft_coro_t *weft_create(weft_fn_t *fn, void *arg);

/** The set of effects that a resumer handles: none, all, one effect or family, or several. Made by weft_handles(…).
 * (The structure's name is for compilers' messages: passing an effect in place of a set is an easy mistake.) */
typedef struct weft__write_weft_handles_of_the_effect {
	/* 0; ~0; WEFT__HANDLES_TAGS; address of an effect; of a list of effects, plus 1; of a handler, plus 4 or 5 */
	uintptr_t word;
} weft_handles_t;

/** Handle nothing: effects that the coroutine performs propagate to the enclosing handlers. */
#define WEFT_HANDLE_NONE (weft__handles(0))
/** Handle every effect that the coroutine performs. */
#define WEFT_HANDLE_ALL (weft__handles(~(uintptr_t)0))

/**
 * Start or continue a suspended coroutine, until it suspends, finishes or fails.
 * @param k        suspended; any other state is reported and ends the process; NULL does so by a fault
 * @param value    the result of its pending weft_yield; the first resume ignores it
 * @param handles  the effects handled here during this run, e.g. weft_handles(state, print); other effects that the
 *                 coroutine performs propagate to the enclosing handlers. A set must live until this returns.
 * @return why control came back; see weft_request_t
 * May be called on any stack and any thread (a coroutine may move between threads, between runs). Suspends the
 * caller's own chain if an enclosing handler handles an effect. An uncaught exception finishes the coroutine and
 * propagates out of this call; so does the unwinding of pthread_exit and cancellation.
 */
WEFT__HOT weft_request_t weft_resume(weft_coro_t *k, void *value, weft_handles_t handles);

/** The effect of weft_suspend. */
extern WEFT_API struct weft_effect weft_suspended;

/** Suspend the current coroutine: its resumer gets {&weft_suspended, payload}; returns the value that the next resume
 * passes. Reported outside of any coroutine, and in a tail clause whose handler is outside of the resumer: the
 * coroutine might next be resumed at a place where that handler is not in force. */
WEFT__HOT void *weft_suspend(void *payload);

/**
 * Suspend `k`, the current coroutine or an ancestor of it, without a search for a handler: its resumer gets the
 * request {effect, payload}, and all coroutines below `k` are suspended with it.
 * @param k        RUNNING, and the current coroutine or an ancestor of it. As for weft_suspend, no coroutine from the
 *                 current one up to k may execute a tail clause of a handler outside of k's resumer (both checked in
 *                 debug builds)
 * @param effect   not NULL; &weft_suspended if it does not matter
 * @param payload  any pointer; usually into this stack
 * @return the value that the next resume of `k` passes
 */
WEFT__HOT void *weft_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload);

/**
 * End a coroutine made by weft_create, in any state except RUNNING (reported), and keep its stack for reuse. NULL is
 * allowed. Its frames, and coroutines that were running inside it, are treated as in weft_reset. Under "copy", a
 * coroutine with deferred calls must be one that could be resumed here, because it runs once more to make them; this
 * holds for weft_reset and weft_release, too. Frames that wait in weft_run need no such care, unless the body has
 * deferred calls.
 */
WEFT_API void weft_delete(weft_coro_t *k);

/**
 * Finish `k`, the current coroutine or an ancestor of it: its resumer gets the request, and nothing is saved. The
 * coroutines running below `k` are finished with it (weft_reset says which of them are deleted, and when). Before that,
 * the deferred calls of all of them are made (weft/defer.h). The payload may lie on the stack that is left: it stays
 * readable until `k` is reset or deleted. If there are deferred calls, only the effect's struct stays readable, or 512
 * bytes if the effect has none.
 *
 * If malloc has no memory, at most 4096 exits may be making deferred calls at the same time. A further exit makes `k`
 * fail: its resumer gets &weft_failed, weft_failure(k) is WEFT_MEMORY_SPENT, and the deferred calls of `k` and of the
 * coroutines below it are discarded.
 */
WEFT__HOT WEFT__NORETURN void weft_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload);

/**
 * Make a suspended or finished coroutine start over, on the stack that it has, with its attributes. If it is suspended,
 * the deferred calls of its frames are made first, innermost first: see weft/defer.h. A running coroutine is reported.
 * Coroutines that ran inside `k`, and were suspended or left with it: if `k` or one of them made such a coroutine, it
 * is deleted too, because the frames that owned it are gone. The others become FINISHED and stay their owner's.
 * If the runtime ended `k` (weft_failed), the bodies that its frames ran by weft_run are deleted now, and their
 * deferred calls are made.
 */
WEFT_API void weft_reset(weft_coro_t *k, weft_fn_t *fn, void *arg);

/* ---- attributes, and coroutines in storage of the caller's --------------------------------------------------- */

/** Flags of weft_attr_t. */
enum {
	WEFT_SAVE_FPU = 1u << 0, /**< save and restore MXCSR and the x87 control word for this coroutine */
	WEFT_NO_GUARD = 1u << 1, /**< no guard: an overflow is not detected. Slots may be 8 KiB, and slots up to 32 KiB
				    share huge pages, which helps thousands of small stacks that are all in use */
	WEFT_SAVE_EXCEPTIONS = 1u << 2, /**< save and restore the C++ exceptions being handled: for coroutines that
					   suspend inside a catch block, or in a destructor during unwinding */
	WEFT_UNWIND = 1u << 3,	    /**< unwind its frames, as an exception does, when it is left or is deleted while
				      suspended: C++ destructors run then. See weft/defer.h */
	WEFT_MEMORY_ONLY = 1u << 4, /**< with weft_attr.memory and a linked policy: when that memory is used up, the
				       coroutine fails (WEFT_RESERVATION_SPENT) instead of linking a chunk elsewhere */
};

/** The attributes of a new coroutine. Zero-initialised, all are defaults. Only read during the call. */
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
	void *memory;	      /**< not NULL: the stack lies in these memory_size bytes: see "Stacks in memory of the
				 caller's" below. stack_size is ignored then */
	size_t memory_size;   /**< weft_memory_size returns the bytes that are needed. 0 without memory */
} weft_attr_t;

/**
 * Like weft_create, with attributes.
 * @param attr  NULL for the defaults; only read during the call
 * @return as weft_create; also
 *   EINVAL   an unknown policy or flag, a size beyond the arena, or a guard_size together with WEFT_NO_GUARD
 *   ENOTSUP  the policy cannot run here: weft_policy_unavailable says why
 *  and for weft_attr.memory, where weft_memory_unfit puts the reason in words:
 *   EINVAL   the policy accepts no caller's memory ("heap", "copy"), or memory is NULL and memory_size is not 0
 *   ENOSPC   memory_size is too small: weft_memory_size returns a sufficient size
 *   EBUSY    a coroutine that has not been deleted has its stack in that memory
 *   ENOMEM, EAGAIN, EACCES, …  from mprotect, for a guard: the memory is no mapping of the process, or has larger pages
 */
WEFT_API weft_coro_t *weft_create_with(weft_fn_t *fn, void *arg, const weft_attr_t *attr);

/**
 * Make a suspended coroutine in storage of the caller's: embedded, in an array, on the stack.
 * An object that is still in use by an earlier weft_init is released first, so that initialising again does not leak.
 * @param k  storage of the caller's, 16-aligned (64 is better: a switch then accesses one cache line), initialised or
 *           not; must stay in place until weft_release
 * @return 0, or a negative errno as weft_create_with
 */
WEFT_API int weft_init(weft_coro_t *k, weft_fn_t *fn, void *arg, const weft_attr_t *attr);

/** Release the stack and other resources that weft_init acquired; `k` must not be RUNNING (reported). The storage is
 * the caller's again. */
WEFT_API void weft_release(weft_coro_t *k);

/* ---- switching sideways -------------------------------------------------------------------------------------- */

/**
 * Suspend the current coroutine and continue `to` in its place, sideways: `to` gets the parent and the handled set
 * of the current coroutine, and the parent's resume returns requests of `to` (weft_resume_any returns the requester).
 * @param to     suspended; any other state is reported. The call is reported wherever weft_suspend is.
 * @param value  the result of the pending switch or yield of `to`
 * @return the value passed by the switch or resume that continues the current coroutine
 */
WEFT__HOT void *weft_switch(weft_coro_t *to, void *value);

/**
 * Like weft_switch, for code that switches often and knows the current coroutine.
 * @param self  `*self` is the current coroutine, and may be suspended: not in a tail clause (both checked in debug
 *              builds). NULL, which weft_current() returns outside of any coroutine, is reported. On return `*self` has
 *              the same value (in a clone: the clone), but in a register. If code keeps it in a variable, and the next
 *              target in the coroutine (weft_user_data), it need not load from its stack to know where to switch next.
 */
WEFT__HOT void *weft_switch_from(weft_coro_t **self, weft_coro_t *to, void *value);

/** Like weft_resume, for chains that use weft_switch: `*k` becomes the coroutine that made the request. */
WEFT__HOT weft_request_t weft_resume_any(weft_coro_t **k, void *value, weft_handles_t handles);

/* ---- inspecting a coroutine ---------------------------------------------------------------------------------- */

/** The coroutine that executes this call, or NULL outside of any. */
WEFT_API weft_coro_t *weft_current(void);

/**
 * errno of the thread that executes this call. Compilers keep addresses of thread-local variables across calls, errno's
 * too: a function that suspends, and is resumed by another thread, may keep using the first thread's variables. After a
 * suspension, read them in a separate function that is not inlined, such as this one.
 */
WEFT_API int weft_errno(void);

/** The state of a coroutine: the table at the top of this header. */
typedef enum weft_state { WEFT_SUSPENDED, WEFT_RUNNING, WEFT_FINISHED, WEFT_DELETED } weft_state_t;

/** Its state. An object of zero bytes counts as deleted. */
WEFT__INLINE weft_state_t weft_state(const weft_coro_t *k);

/** The resumer of `k`, if that was a coroutine. NULL if `k` was last resumed outside of any, or not since it was made
 * or reset. */
WEFT_API weft_coro_t *weft_parent(const weft_coro_t *k);

/** Its name, or "" if it has none. */
WEFT_API const char *weft_name(const weft_coro_t *k);

/** Its number: unique in the process, never reused, 0 after deletion. */
WEFT__INLINE uint64_t weft_id(const weft_coro_t *k);

/** The pointer from the attributes, or from the last weft_set_user_data. */
WEFT__INLINE void *weft_user_data(const weft_coro_t *k);

WEFT__INLINE void weft_set_user_data(weft_coro_t *k, void *user_data);

/** The policy of its stack. */
WEFT_API weft_policy_t weft_policy(const weft_coro_t *k);

/** Bytes between the guard and the top of its stack (of its first chunk, where chunks are linked), and whether
 * `address` lies on its stack. For tools. */
WEFT_API size_t weft_stack_usable(const weft_coro_t *k);
WEFT_API bool weft_on_stack(const weft_coro_t *k, const void *address);

/**
 * The place where a suspended coroutine waits: the return addresses of its calls, innermost first, including those of
 * the coroutines that are suspended inside it.
 * @param k       must stay suspended meanwhile
 * @param places  written: `most` addresses at most
 * @return the number of addresses; 0 if `k` is not suspended, or has not started. At most 1 if its frames are copied.
 * Not in a signal handler. Needs unwind tables, which compilers write by default.
 */
WEFT_API size_t weft_backtrace(const weft_coro_t *k, void **places, size_t most);

/** The effect of the request that reports that the runtime ended the coroutine: see weft_failure(). */
extern WEFT_API struct weft_effect weft_failed;

/** Why the runtime ended a coroutine. */
typedef enum weft_failure {
	WEFT_NO_FAILURE,
	WEFT_BUDGET_SPENT,	/**< opening more stack would pass weft_set_budget */
	WEFT_RESERVATION_SPENT, /**< the stack's reservation is used up */
	WEFT_MEMORY_SPENT,	/**< the system had no memory for more stack, or for the frames to be copied */
} weft_failure_t;

/** Why the runtime ended it, or discarded some of its cleanups; WEFT_NO_FAILURE if it did neither. */
WEFT__INLINE weft_failure_t weft_failure(const weft_coro_t *k);

/**
 * Set the function that the runtime calls when it ends a coroutine, for logging. The runtime also calls it when it
 * discards the deferred calls of a coroutine that is ending already, because there is no memory for them
 * (weft/defer.h). The hook runs on a stack of 64 KiB before the resumer sees &weft_failed. It must not suspend, and
 * must not rely on the state of anything that the coroutine was using (a lock of malloc, say: the fault can occur
 * anywhere). Coroutines that fail inside the hook are not reported to it.
 * @return the previous hook; NULL if none
 */
typedef void weft_failure_hook_t(weft_coro_t *k, weft_failure_t why);
WEFT_API weft_failure_hook_t *weft_set_failure_hook(weft_failure_hook_t *hook);

/* A handle that detects that its coroutine was deleted, even if the memory holds another coroutine now. */
typedef struct weft__ref {
	weft_coro_t *k;
	uint64_t id;
} weft_ref_t;

/** A checked handle to a coroutine made by weft_create. */
WEFT__INLINE weft_ref_t weft_ref(weft_coro_t *k);

/**
 * The coroutine, or NULL if it has been deleted. Costs 0.1 ns (`./weft lab --full --only micro`).
 * Safe on stale handles: memory of the arena is never unmapped.
 */
WEFT__INLINE weft_coro_t *weft_deref(weft_ref_t ref);

/* ---- stacks -------------------------------------------------------------------------------------------------- */

/**
 * Reserve room on a coroutine's stack, above its first frame, for the data of its function: at most 4 KiB and a quarter
 * of the stack. The room lasts until the coroutine is deleted or reset, also after its end. Several calls add up.
 * @param k  made or reset, and not resumed since
 * @return 16-aligned memory, not initialised; NULL if `bytes` is too large, if `k` has started, or if its stack is
 *   copied
 */
WEFT_API void *weft_reserve(weft_coro_t *k, size_t bytes);

/**
 * Return the memory below a coroutine's frames to the kernel, and free the chunks that it keeps for growing again. For
 * coroutines that were deep once and wait for long. Their stacks grow again as they did before.
 * @param k  SUSPENDED, or the caller's own (weft_current()), which is about to wait; in any other state, and if its
 *           frames are blocks or are copied, nothing is done
 * @return bytes of stack that need the kernel again when they are next touched; chunks are not counted
 */
WEFT_API size_t weft_trim(weft_coro_t *k);

/*
 * Stacks in memory of the caller's: static arrays, huge pages, shared mappings, blocks of any allocator.
 *
 *   low                                                            high
 *   +-----+------------------+-----------------------+--------+---------+-----+
 *   |     | pattern or guard |  <- frames grow down  | object | record  |     |
 *   +-----+------------------+-----------------------+--------+---------+-----+
 *   the ends are rounded inwards, so that the memory may have any alignment
 *
 *  1. Policies. "fixed" and "overcommit" behave alike here. "commit" charges nothing to its budget, because the memory
 *     exists already; at a guard the coroutine fails. Under "segmented" and "lookahead" the memory is the first chunk.
 *     Further chunks come from the arena unless the flags have WEFT_MEMORY_ONLY; functions without checks borrow a
 *     system stack of the thread as usual. "mmu" closes the lowest page, because its code finds the end by a fault.
 *     "heap" and "copy" keep their frames elsewhere, and refuse caller's memory. If WEFT_STACK chose one of these two,
 *     WEFT_DEFAULT_POLICY means overcommit here.
 *  2. Owner. The memory stays the caller's; the coroutine borrows it from its creation until weft_delete or
 *     weft_release returns. weft_reset, the coroutine's end and its failure do not end the loan. A task borrows the
 *     memory until the task is joined, or its scope has ended, or its runtime has ended if it has no scope. A thread
 *     borrows it until the thread is joined. A coroutine that was kept (weft_keep) borrows it until the resumption is
 *     used up or dropped. A coroutine whose owner lost it, because the owner was left early, borrows it until the owner
 *     is deleted or reset. After the loan the memory has no defined content, and a guard in it is readable and writable
 *     again. Weft never reads the memory again, caches it, or gives it to another coroutine or to the kernel. A payload
 *     in it, or room from weft_reserve, lasts until the caller reuses the memory.
 *  3. Overflow. Nothing below the memory stops an overflow unless guard_size is set: then that many bytes, whole pages
 *     inside the memory, are closed by mprotect while the coroutine lives. Without guard_size, 64 bytes at the low end
 *     hold a pattern. Whenever the coroutine is left for its resumer, the pattern and the stack pointer are checked,
 *     and an overflow ends the process with a line that names the coroutine. (A frame that leaves gaps unwritten can
 *     step over the pattern; after it has returned, this is not detected.) The check costs such a coroutine 150
 *     instructions for a resume and a yield; other coroutines pay nothing. WEFT_NO_GUARD turns it off. Linked stacks
 *     need neither.
 *  4. fork. Both processes have the coroutine, each in its own copy of private memory. In a mapping that they share
 *     (MAP_SHARED), only one of them may use it.
 *  5. Functions of Weft that make or end coroutines need up to 4 KiB of stack, as they do without caller's memory.
 *
 * Idea: pthread_attr_setstack, and every kernel for small machines.
 */

/** The size of an array that gives a coroutine this many bytes of stack, under every policy, without a guard. A
 * constant; weft_memory_size computes the size for given attributes. */
#define WEFT_MEMORY_BYTES(stack_bytes) ((size_t)(stack_bytes) + WEFT__MEMORY_OVERHEAD)

/**
 * The size of memory, at any address, that a coroutine with these attributes needs.
 * @param attr         the attributes; memory and memory_size are ignored. NULL: the defaults
 * @param stack_bytes  the least value that weft_stack_usable shall return; 0, or less than the policy needs: the
 *                     policy's minimum
 * @return bytes for weft_attr.memory_size; 0 if the policy accepts no memory or an attribute is wrong, SIZE_MAX if
 *         there is no such size
 * Thread-safe; any stack; does not suspend.
 */
WEFT_API size_t weft_memory_size(const weft_attr_t *attr, size_t stack_bytes);

/**
 * Explain why a coroutine with these attributes cannot be made in this memory. For messages; the functions that create
 * coroutines check this themselves.
 * @param attr  with memory and memory_size; only read
 * @param text  where to write one line, without a newline: what is wrong, and what to do; owned by the caller
 * @param size  bytes there; 160 hold every line, and a longer line is cut
 * @return NULL if the memory serves, unless the system refuses a guard; else `text`
 * Thread-safe; any stack; does not suspend.
 */
WEFT_API const char *weft_memory_unfit(const weft_attr_t *attr, char *text, size_t size);

/* ---- other languages, and tools ------------------------------------------------------------------------------ */

/**
 * The inline functions below, as ordinary functions with the same contracts: weft_resume, weft_yield, weft_suspend,
 * weft_exit, weft_switch and weft_state. For languages that cannot inline C, and for code that is not optimized.
 */
WEFT_API weft_request_t weft_ffi_resume(weft_coro_t *k, void *value, weft_handles_t handles);
WEFT_API void *weft_ffi_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload);
WEFT_API void *weft_ffi_suspend(void *payload);
WEFT_API WEFT__NORETURN void weft_ffi_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload);
WEFT_API void *weft_ffi_switch(weft_coro_t *to, void *value);
WEFT_API weft_state_t weft_ffi_state(const weft_coro_t *k);

/** Is the object consistent? For assertions and debuggers; only reads. */
WEFT_API bool weft_coro_is_valid(const weft_coro_t *k);

WEFT_EXTERN_C_END

#include <weft/detail/coro.h>

#endif /* WEFT_CORO_H */
