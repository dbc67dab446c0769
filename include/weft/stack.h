/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/stack.h: where the stacks of coroutines come from. A policy is chosen per coroutine, at run time.
 *
 * All stacks lie in one reserved arena, cut into slots of 8 KiB · 2^n. A slot is, from low to high: guard,
 * stack, coroutine object. Deleted slots are kept warm: first by the deleting thread, then process-wide, and
 * beyond a bound their pages go back to the kernel. A warm creation takes no lock and makes no system call.
 * A stack may also lie in memory of the caller's: weft/coro.h.
 *
 * In a signal handler only weft_policy_name and weft_policy_named may be called, and after the first coroutine
 * weft_default_policy and weft_set_budget. weft/thread.h says which signals Weft uses.
 */
#ifndef WEFT_STACK_H
#define WEFT_STACK_H

#include <weft/base.h>

WEFT_EXTERN_C_BEGIN

/** How a stack is stored. Numbers are stable; names are those of WEFT_STACK=name[:size]. */
typedef enum weft_policy {
	WEFT_DEFAULT_POLICY = 0, /**< what WEFT_STACK says, else overcommit */
	WEFT_FIXED,		 /**< "fixed": plain memory, accounted in full by kernels that count; 64 KiB */
	WEFT_OVERCOMMIT,	 /**< "overcommit": reserved only, the kernel adds pages on first touch; 256 KiB */
	WEFT_COMMIT,		 /**< "commit": pages opened by weft in growing batches, under a budget; 256 KiB */
	WEFT_SEGMENTED,		 /**< "segmented": chunks linked as frames need them; 256 KiB reserved for the first */
	WEFT_HEAP,		 /**< "heap": a block of memory for each call */
	WEFT_LOOKAHEAD,		 /**< "lookahead": chunks linked at checkpoints chosen at compile time */
	WEFT_MMU,		 /**< "mmu": chunks linked when a store below the stack faults */
	WEFT_COPY,		 /**< "copy": frames lie in a region that many share, and are copied out while another
				    coroutine runs there: see weft/coro.h, weft_clone; 1 MiB */
	WEFT_POLICY_COUNT
} weft_policy_t;

/**
 * WEFT_NEEDS(name, bytes);  at file scope: the function of this name, compiled without checks, needs at most so many
 * bytes of stack, with all that it calls. Code for linked stacks calls it by name where it stands: if it needs at most
 * 192 bytes always, if at most 2048 where as much is left; without a word it runs on a system stack. More than 2048
 * are refused. It may not call back instrumented code that could need more, nor suspend. A wrong number is a stack
 * overflow that nothing notices. `name` is the linker's: in C++ of an extern "C" function. `bytes` is a decimal number.
 * For this file only; `weft cc --needs FILE` says it for all. Compiled otherwise it is nothing. Idea: the list of
 * foreign functions in the thesis behind look-ahead and mmu (2010).
 */
#ifdef WEFT_SMALL_FRAMES
#define WEFT_NEEDS(name, bytes)                                                                                        \
	WEFT__STATIC_ASSERT((bytes) <= 2048, "what needs more than 2048 bytes runs on a system stack");                \
	__asm__("#weft-needs " #name " " #bytes)
#else
#define WEFT_NEEDS(name, bytes)                                                                                        \
	WEFT__STATIC_ASSERT((bytes) <= 2048, "what needs more than 2048 bytes runs on a system stack")
#endif

/** Counters of one policy, all since the start of the process. Bytes count whole pages. */
typedef struct weft__stack_stats {
	size_t live;   /**< stacks in use now */
	size_t cached; /**< stacks kept for reuse, by threads and by the process; some may have no memory any more */
	size_t high_water; /**< most stacks ever out of the process-wide store at once: in use, or kept by threads */
	size_t reserved;   /**< bytes of address space cut into slots */
	size_t committed;  /**< commit: bytes opened (charged to the budget); others: bytes that may be touched */
	size_t faults;	   /**< commit: faults answered by opening pages */
	size_t failures;   /**< commit: coroutines ended because their budget or their reservation was spent */
	size_t growths;	   /**< linked: chunks enlarged in place */
	size_t splits;	   /**< linked: chunks added; heap: blocks that had to be made anew */
	size_t probes;	   /**< mmu: stores that found the end of a chunk */
	size_t copied;	   /**< copy: bytes of frames copied, out and in */
	size_t in_memory;  /**< of `live`: in memory of the caller's (weft_attr.memory). No other field counts these */
} weft_stack_stats_t;

/**
 * Read the counters of a policy.
 * @param policy  a policy; WEFT_DEFAULT_POLICY means the one in force
 * @param stats   where to write them; owned by the caller
 * @return 0, or -EINVAL for a number that is no policy (nothing is written) or if `stats` is NULL
 * Thread-safe; takes a lock; may be called on any stack; does not suspend. Counters of running threads are
 * read without stopping them: a total may be off by what is in flight.
 */
WEFT_API int weft_stack_stats(weft_policy_t policy, weft_stack_stats_t *stats);

/**
 * Bytes of memory that the kernel holds for the stacks of a policy, in use and kept: what `committed` bounds from
 * above. Asks the kernel about every slot, which takes microseconds each.
 * @param policy  a policy; WEFT_DEFAULT_POLICY means the one in force
 * @return bytes, whole pages; 0 for a number that is no policy
 * Thread-safe; takes a lock; any stack; does not suspend.
 */
WEFT_API size_t weft_stack_resident(weft_policy_t policy);

/**
 * Bound the bytes that all `commit` stacks together may have open. Initially WEFT_BUDGET=bytes[K|M|G], else half of
 * the machine's memory, or of its control group's if that is less. Lowering it below what is open stops growth only.
 * Stacks that are kept for reuse count, as the memory that they are. But no coroutine fails because of them: when the
 * budget is spent, kept stacks of all threads lose their memory before a coroutine does. Coroutines that are ending
 * may take 64 KiB each beyond it for what they have deferred, and 512 KiB together.
 * @param bytes  the new bound
 * @return the bound before
 * Thread-safe, any stack, does not suspend.
 */
WEFT_API size_t weft_set_budget(size_t bytes);

/**
 * Give the memory of what is kept for reuse back to the kernel: of stacks, and of tiny ones, copied ones and blocks of
 * heap frames, where several share a page, the pages that nothing living is in. It reaches the calling thread's, the
 * process-wide store, and the stacks with pages of their own that other threads keep; of what else other threads keep
 * it reaches nothing. Address space stays reserved.
 * @return bytes given back: of stacks with pages of their own whole slots, else pages
 * Thread-safe; takes locks, for milliseconds where there is much; any stack; does not suspend.
 */
WEFT_API size_t weft_stack_trim(void);

/** The policy that WEFT_DEFAULT_POLICY stands for: WEFT_STACK's, else overcommit. Thread-safe, any stack. */
WEFT_API weft_policy_t weft_default_policy(void);

/** "fixed", "overcommit", …; "default" for 0 and NULL for a number that is no policy. Static storage. */
WEFT_API const char *weft_policy_name(weft_policy_t policy);

/** The policy of that name, WEFT_DEFAULT_POLICY if there is none, or `name` is NULL. */
WEFT_API weft_policy_t weft_policy_named(const char *name);

/**
 * Can this policy run here? Reserves the arena to find out.
 * @return NULL if it can; else one line, static storage, that says why not
 */
WEFT_API const char *weft_policy_unavailable(weft_policy_t policy);

/** How guards are made here: "madvise" (MADV_GUARD_INSTALL, kernel 6.13 and later: no limit on their number) or
 * "mprotect" (about 32 000 guarded stacks). WEFT_GUARD=madvise|mprotect forces one. Static storage. */
WEFT_API const char *weft_guard_mechanism(void);

/* Bytes of a caller's memory that are no stack, at most: see WEFT_MEMORY_BYTES. */
enum { WEFT__MEMORY_OVERHEAD = 576 };

/**
 * How stacks of `commit` grow here: "signal" (a fault is a SIGSEGV, and its handler opens pages), or "userfaultfd" (a
 * thread of Weft's opens them while the thread that faulted sleeps; then system calls may use a stack below what is
 * open, if the process has the right to userfaultfd for the kernel's faults). WEFT_COMMIT=userfaultfd asks for the
 * second, which takes longer for each fault; where it cannot be had, one line says why, and signals serve. In the child
 * of a fork it is always "signal". Static storage. Thread-safe, any stack, does not suspend. Idea: userfaultfd(2).
 */
WEFT_API const char *weft_commit_mechanism(void);

/* The same policy, or where it serves coroutines only, the one for threads and tasks that ask for it. */
WEFT_API weft_policy_t weft__policy_for_thread(weft_policy_t policy);

/* For compatibility headers, whose programs count on stacks that grow: bytes to ask for where the default policy has
 * tiny stacks, the size that the program or the user set if `size` is 0, else a tiny one with room for a few calls. 0
 * under other policies. */
WEFT_API size_t weft__size_if_tiny(size_t size);

WEFT_EXTERN_C_END

#endif /* WEFT_STACK_H */
