/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract of an operating system: memory by ranges, the machine's size, the alternate signal stack.
 *
 * Ranges are whole pages inside one reservation. Functions that can fail return 0 or a negative errno, and leave the
 * range as it was if they fail. All are thread-safe; those marked * are async-signal-safe.
 */
#ifndef WEFT_SRC_OS_H
#define WEFT_SRC_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

enum { WEFT__PAGE = 4096 }; /* of x86-64; an architecture with others defines its own */

/* The start of the page that the address is in. */
static inline char *weft__page_of(const void *address)
{
	return (char *)((uintptr_t)address & ~(uintptr_t)(WEFT__PAGE - 1));
}

/*
 * Address space that nothing may touch yet; NULL if there is not so much. Never given back. What becomes accessible in
 * a reservation is executable if the program, or a library that is loaded by then, asks for executable stacks
 * (PT_GNU_STACK).
 */
void *weft__os_reserve(size_t bytes);

/* Fresh zero pages in a reserved range. Accounted: the kernel may refuse what it could not back later. Not accessible:
 * until weft__os_protect opens parts of it. Huge: pages may be huge ones. */
int weft__os_map(void *start, size_t bytes, bool accounted, bool accessible, bool huge);

/* * Make pages accessible, or not. Each change may split a mapping: the kernel limits their number (-EAGAIN). */
int weft__os_protect(void *start, size_t bytes, bool accessible);

/* Make pages outside of the reservation, which weft__os_protect closed, readable and writable. It cannot fail: whatever
 * the mapping was split into becomes one again. */
void weft__os_reopen(void *start, size_t bytes);

/* * Guard pages without splitting the mapping; drops what they held. Only if weft__os_has_guards(). */
int weft__os_guard(void *start, size_t bytes);
/* * Guarded pages become zero pages; others are left alone. */
int weft__os_unguard(void *start, size_t bytes);
bool weft__os_has_guards(void);

/* * Forget what the pages hold. */
void weft__os_drop(void *start, size_t bytes);

/* ThreadSanitizer forgets who accessed the pages. Only where the program is built with it. */
void weft__os_forget_accesses(void *start, size_t bytes);

/* Bytes of the range that have memory behind them. */
size_t weft__os_resident(void *start, size_t bytes);

/* * The lowest page of the range that has memory behind it; the range's end if none has. */
char *weft__os_lowest_resident(char *start, size_t bytes);

/*
 * Missing pages: a page of a watched range that has never been touched, or was dropped, is supplied when a thread, or a
 * system call if the process has the right, first touches it. That thread sleeps; a thread of ours calls `answer` with
 * the page's address, and `answer` supplies or wakes. See missing.c for what it may touch. One watcher per process. A
 * child of fork has none: it must call end, and its pages are then as those of any mapping.
 */
typedef void weft__missing_t(char *page);
/* 0, or a negative errno: the kernel or the process's rights do not allow it. Begun before anything is watched. */
int weft__missing_begin(weft__missing_t *answer);
void weft__missing_end(void);
int weft__missing_watch(void *start, size_t bytes);
/* * Zero pages, where there are none; wakes threads that wait for them. */
int weft__missing_supply(void *start, size_t bytes);
/* * Threads that wait for these pages touch them again. */
void weft__missing_wake(void *start, size_t bytes);
/* * Of a watched range: the lowest page that was written to; the range's end if none was. */
char *weft__missing_lowest_written(char *start, size_t bytes);

/* Control groups: for each group of the process that the controller's limits apply to, its directory. `root`: "", or a
 * directory that looks like the system's, for tests. Needs 3 KiB of stack. */
typedef void weft__visit_group_t(const char *directory, bool version_1, void *argument);
WEFT_API void weft__os_each_group(const char *root, const char *controller, weft__visit_group_t *visit, void *argument);
/* The beginning of a file, as a string. */
WEFT_API bool weft__os_read_file(const char *path, char *text, size_t size);

/* Bytes of main memory, or of the smallest control group that has less. */
size_t weft__os_memory_in(const char *root);
/* The same, of this system; the smallest limit on mappings (ulimit -v, -d; -l if they are locked; SIZE_MAX: none). */
size_t weft__os_memory(void);
size_t weft__os_address_limit(void);

/* Zeroed memory for the library's own use, outside of the reservation; NULL if there is none. */
void *weft__os_alloc(size_t bytes);
void weft__os_free(void *start, size_t bytes);
/* The same, and inaccessible until it is opened, in whole pages. */
void *weft__os_alloc_closed(size_t bytes);
int weft__os_open(void *start, size_t bytes);
/* Whether stacks are executable; and memory outside of the reservation made so if they are. Valid after the first
 * reservation. */
bool weft__os_executable_stacks(void);
int weft__os_make_stack(void *start, size_t bytes);
/* All of it will soon be in use: huge pages, where it has room for them. */
void weft__os_prefer_huge(void *start, size_t bytes);

/* Another thread may run. By the system call's number: where libweft-posix is preloaded, sched_yield is a function of
 * ours, which asks for a task's yield. */
WEFT_API void weft__os_yield(void);

/* Each running thread of the process executes a full memory barrier before this returns. */
WEFT_API void weft__os_barrier(void);

/* * Change code, which is mapped without the right to write. False: the system does not allow it. */
bool weft__os_write_code(void *to, const void *code, size_t bytes);
/* * The same barrier, after which no thread executes code that was fetched before it. False: the system has none. */
bool weft__os_code_barrier(void);

/*
 * Alternate signal stacks. enter: give the calling thread one, with a guard below, unless the thread has any that is
 * enabled. *memory: NULL, or what an earlier call of this thread left there. leave: take the memory back.
 */
enum { WEFT__ALT_STACK = 64 * 1024 }; /* for our handler and one that it calls, and the largest register file saved */
int weft__os_alt_stack_enter(void **memory);
void weft__os_alt_stack_leave(void *memory);
/* * Does the caller run on an alternate signal stack? */
bool weft__os_on_alt_stack(void);
/* * Is the address in the guard of that stack? */
bool weft__os_alt_stack_guards(const void *memory, const void *address);

/* * Copy what lies at `from` as far as it can be read, up to so many bytes, less than a page. How many. */
size_t weft__os_read(void *to, const void *from, size_t bytes);

/* A number that the kernel gave the process at random; its children by fork have the same. */
uint64_t weft__os_cookie(void);

/* * Is this the child of a fork that was made beside other threads? What those were doing, nobody here will end. */
bool weft__os_lost_threads(void);

/* Let the calling thread receive the signals of faults. */
void weft__os_unblock_faults(void);

#endif
