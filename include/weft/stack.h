/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/stack.h: the stacks of coroutines: policies, statistics, the budget. Each coroutine has a policy, chosen at
 * run time.
 *
 * All stacks lie in one reserved arena, cut into slots of 8 KiB · 2^n. A slot is, from low to high: guard,
 * stack, coroutine object. Deleted slots are cached: first by the deleting thread, then process-wide; beyond a bound
 * their pages are returned to the kernel. A creation from the cache takes no lock and makes no system call.
 * A stack may also lie in the caller's memory: weft/coro.h.
 *
 * In a signal handler only weft_policy_name and weft_policy_named may be called, and after the first creation of a
 * coroutine also weft_default_policy and weft_set_budget. weft/thread.h says which signals Weft uses.
 */
#ifndef WEFT_STACK_H
#define WEFT_STACK_H

#include <weft/base.h>

WEFT_EXTERN_C_BEGIN

/** How a stack is stored. Numbers are stable; the names serve in WEFT_STACK=name[:size]. The sizes are defaults. */
typedef enum weft_policy {
	WEFT_DEFAULT_POLICY = 0, /**< the policy that WEFT_STACK names, else overcommit */
	WEFT_FIXED,		 /**< "fixed": plain memory; kernels that account memory count all of it; 64 KiB */
	WEFT_OVERCOMMIT,	 /**< "overcommit": reserved only, the kernel adds pages on first touch; 256 KiB */
	WEFT_COMMIT,		 /**< "commit": pages opened by weft in growing batches, under a budget; 256 KiB */
	WEFT_SEGMENTED,		 /**< "segmented": chunks linked as frames need them; 256 KiB reserved for the first */
	WEFT_HEAP,		 /**< "heap": a block of memory for each call */
	WEFT_LOOKAHEAD,		 /**< "lookahead": chunks linked at checkpoints chosen at compile time */
	WEFT_MMU,		 /**< "mmu": chunks linked when a store below the stack faults */
	WEFT_COPY,		 /**< "copy": frames lie in a region that coroutines share, and are copied out while
				    another coroutine runs there: see weft/coro.h, weft_clone; 1 MiB */
	WEFT_POLICY_COUNT
} weft_policy_t;

/**
 * WEFT_NEEDS(name, bytes);  at file scope: declares how many bytes of stack the function of this name, compiled without
 * checks, needs at most, with all that it calls. Code for linked stacks that calls it by name does so on the current
 * stack: always if it needs at most 192 bytes; if at most 2048, only when that many are left. A function without a
 * declaration runs on a system stack. More than 2048 bytes are refused. The function must not suspend, nor call back
 * instrumented code that could need more. Too small a number is a stack overflow that nothing detects. `name` is the
 * linker's name: in C++ the function must be extern "C". `bytes` is a decimal number. The declaration holds for this
 * file only; `weft cc --needs FILE` declares functions for all files. In code that is compiled otherwise it does
 * nothing. Idea: the list of foreign functions in the thesis behind look-ahead and mmu (2010).
 */
#ifdef WEFT_SMALL_FRAMES
#define WEFT_NEEDS(name, bytes)                                                                                        \
	WEFT__STATIC_ASSERT((bytes) <= 2048, "what needs more than 2048 bytes runs on a system stack");                \
	__asm__("#weft-needs " #name " " #bytes)
#else
#define WEFT_NEEDS(name, bytes)                                                                                        \
	WEFT__STATIC_ASSERT((bytes) <= 2048, "what needs more than 2048 bytes runs on a system stack")
#endif

/** Counters of one policy, since the start of the process. Bytes count whole pages. */
typedef struct weft__stack_stats {
	size_t live;   /**< stacks in use now */
	size_t cached; /**< stacks cached for reuse, by threads and by the process; some may have lost their memory */
	size_t high_water; /**< maximum number of stacks outside the process-wide store: in use, or cached by threads */
	size_t reserved;   /**< bytes of address space cut into slots */
	size_t committed;  /**< commit: bytes opened (charged to the budget); other policies: usable bytes */
	size_t faults;	   /**< commit: faults handled by opening pages */
	size_t failures;   /**< commit: coroutines ended because their budget or their reservation was spent */
	size_t growths;	   /**< linked: chunks enlarged in place */
	size_t splits;	   /**< linked: chunks added; heap: blocks allocated anew */
	size_t probes;	   /**< mmu: stores that reached the end of a chunk */
	size_t copied;	   /**< copy: bytes of frames copied, out and in */
	size_t in_memory; /**< part of `live`: in the caller's memory (weft_attr.memory). No other field counts these */
} weft_stack_stats_t;

/**
 * Read the counters of a policy.
 * @param policy  a policy; WEFT_DEFAULT_POLICY means the default in force
 * @param stats   where to write them; owned by the caller
 * @return 0, or -EINVAL for a number that is no policy (nothing is written) or if `stats` is NULL
 * Thread-safe; takes a lock; may be called on any stack; does not suspend. Counters of running threads are
 * read without stopping them: a total may miss changes that are being made.
 */
WEFT_API int weft_stack_stats(weft_policy_t policy, weft_stack_stats_t *stats);

/**
 * Bytes of memory that the kernel holds for the stacks of a policy, in use and cached; at most `committed` of
 * weft_stack_stats. Asks the kernel about every slot, which takes microseconds for each.
 * @param policy  a policy; WEFT_DEFAULT_POLICY means the default in force
 * @return bytes, whole pages; 0 for a number that is no policy
 * Thread-safe; takes a lock; any stack; does not suspend.
 */
WEFT_API size_t weft_stack_resident(weft_policy_t policy);

/**
 * Limit the bytes that all `commit` stacks together may have open. The initial limit is WEFT_BUDGET=bytes[K|M|G], else
 * half of the machine's memory, or of its control group's if that is less. Lowering the limit below the open bytes only
 * stops growth. Cached stacks count, because they are memory; but no coroutine fails because of them: when the budget
 * is spent, cached stacks of all threads lose their memory first. Coroutines that are ending may exceed the limit by 64
 * KiB each, and 512 KiB together, to make their deferred calls.
 * @param bytes  the new limit
 * @return the previous limit
 * Thread-safe, any stack, does not suspend.
 */
WEFT_API size_t weft_set_budget(size_t bytes);

/**
 * Return cached memory to the kernel: the memory of stacks; and where tiny stacks, copied stacks or blocks of heap
 * frames share pages, the pages that hold nothing in use. This covers the caches of the calling thread, the
 * process-wide store, and, in the caches of other threads, only stacks that have pages of their own. Address space
 * stays reserved.
 * @return bytes returned: whole slots for stacks that have pages of their own, else whole pages
 * Thread-safe; takes locks, for milliseconds if there is much to return; any stack; does not suspend.
 */
WEFT_API size_t weft_stack_trim(void);

/** The policy that WEFT_DEFAULT_POLICY means: the one in WEFT_STACK, else overcommit. Thread-safe, any stack. */
WEFT_API weft_policy_t weft_default_policy(void);

/** The policy's name: "fixed", "overcommit", …; "default" for 0; NULL for a number that is no policy. Static
 * storage. */
WEFT_API const char *weft_policy_name(weft_policy_t policy);

/** The policy of that name; WEFT_DEFAULT_POLICY if there is none, or if `name` is NULL. */
WEFT_API weft_policy_t weft_policy_named(const char *name);

/**
 * Can this policy run here? Reserves the arena to find out.
 * @return NULL if it can; else one line in static storage with the reason
 */
WEFT_API const char *weft_policy_unavailable(weft_policy_t policy);

/** How guards are made here: "madvise" (MADV_GUARD_INSTALL, kernel 6.13 and later: any number of guards) or "mprotect"
 * (about 32 000 guarded stacks). WEFT_GUARD=madvise|mprotect forces one of them. Static storage. */
WEFT_API const char *weft_guard_mechanism(void);

/* The most bytes of a caller's memory that are not stack: see WEFT_MEMORY_BYTES. */
enum { WEFT__MEMORY_OVERHEAD = 576 };

/**
 * How stacks of `commit` grow here: "signal" (a fault is a SIGSEGV, and its handler opens pages), or "userfaultfd" (a
 * thread of Weft's opens pages while the faulting thread sleeps; then system calls may use a stack below its open part,
 * if the process may use userfaultfd for the kernel's faults). WEFT_COMMIT=userfaultfd asks for userfaultfd, which
 * takes longer for each fault; if it is not available, one line says why, and signals serve. In the child of a fork it
 * is always "signal". Static storage. Thread-safe, any stack, does not suspend. Idea: userfaultfd(2).
 */
WEFT_API const char *weft_commit_mechanism(void);

/* The policy of a thread or task that asks for `policy`: the same, or overcommit if `policy` serves coroutines only. */
WEFT_API weft_policy_t weft__policy_for_thread(weft_policy_t policy);

/* For compatibility headers, whose programs rely on stacks that grow. If the default policy has tiny stacks: `size`; if
 * that is 0, the size that the program or the user set; else the size of a tiny stack with room for a few calls. 0
 * under other policies. */
WEFT_API size_t weft__size_if_tiny(size_t size);

WEFT_EXTERN_C_END

#endif /* WEFT_STACK_H */
