/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract of an operating system: ranges of memory, the machine's size, the alternate signal stack.
 *
 * Ranges are whole pages inside one reservation. Functions that can fail return 0 or a negative errno, and leave the
 * range unchanged if they fail. All are thread-safe; functions marked * are async-signal-safe.
 */
#ifndef WEFT_SRC_OS_H
#define WEFT_SRC_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

enum { WEFT__PAGE = 4096 }; /* for x86-64; an architecture with another size defines its own */

/* The start of the page that contains the address. */
static inline char *weft__page_of(const void *address)
{
	return (char *)((uintptr_t)address & ~(uintptr_t)(WEFT__PAGE - 1));
}

/*
 * Reserve address space that is not accessible yet; NULL if there is not enough. It is never released. Memory that
 * becomes accessible in a reservation is executable if the program, or a library that is loaded by then, asks for
 * executable stacks (PT_GNU_STACK).
 */
void *weft__os_reserve(size_t bytes);

/* Map fresh zero pages in a reserved range. accounted: the kernel may refuse memory that it could not provide later.
 * Not accessible: until weft__os_protect opens parts of the range. huge: the kernel may use huge pages. */
int weft__os_map(void *start, size_t bytes, bool accounted, bool accessible, bool huge);

/* * Make pages accessible or inaccessible. Each change may split a mapping: the kernel limits their number
 * (-EAGAIN). */
int weft__os_protect(void *start, size_t bytes, bool accessible);

/* Make pages outside of the reservation, which weft__os_protect closed, readable and writable. It cannot fail: the
 * parts of a split mapping become one mapping again. */
void weft__os_reopen(void *start, size_t bytes);

/* * Make guard pages without splitting the mapping; drops their content. Only if weft__os_has_guards(). */
int weft__os_guard(void *start, size_t bytes);
/* * Turn guard pages into zero pages; other pages do not change. */
int weft__os_unguard(void *start, size_t bytes);
bool weft__os_has_guards(void);

/* * Drop the content of the pages. */
void weft__os_drop(void *start, size_t bytes);

/* Make ThreadSanitizer forget earlier accesses to the pages. Only if the program is built with it. */
void weft__os_forget_accesses(void *start, size_t bytes);

/* The resident bytes of the range. */
size_t weft__os_resident(void *start, size_t bytes);

/* * The lowest resident page of the range; the range's end if there is none. */
char *weft__os_lowest_resident(char *start, size_t bytes);

/*
 * Missing pages: a page of a watched range that has never been touched, or was dropped, is supplied at the first touch
 * by a thread, or by a system call if the process has the right. The touching thread sleeps, and a thread of Weft calls
 * `answer` with the page's address; `answer` supplies the page or wakes the thread. See missing.c for the memory that
 * `answer` may touch. There is one watcher per process. A child of fork has none: it must call weft__missing_end, and
 * its pages then behave like those of any mapping.
 */
typedef void weft__missing_t(char *page);
/* Start the watcher, before a range is watched. Returns 0, or a negative errno if the kernel or the process's rights do
 * not allow it. */
int weft__missing_begin(weft__missing_t *answer);
void weft__missing_end(void);
int weft__missing_watch(void *start, size_t bytes);
/* * Supply zero pages where there are none, and wake threads that wait for them. */
int weft__missing_supply(void *start, size_t bytes);
/* * Make threads that wait for these pages touch them again. */
void weft__missing_wake(void *start, size_t bytes);
/* * The lowest page of a watched range that was written to; the range's end if there is none. */
char *weft__missing_lowest_written(char *start, size_t bytes);

/* Control groups: call `visit` with the directory of each group whose limits of this controller apply to the process.
 * `root`: "", or a directory that looks like the system's, for tests. Needs 3 KiB of stack. */
typedef void weft__visit_group_t(const char *directory, bool version_1, void *argument);
WEFT_API void weft__os_each_group(const char *root, const char *controller, weft__visit_group_t *visit, void *argument);
/* Read the beginning of a file, as a string. */
WEFT_API bool weft__os_read_file(const char *path, char *text, size_t size);

/* Bytes of main memory, or of the smallest control group that has less. */
size_t weft__os_memory_in(const char *root);
/* weft__os_memory_in for this system; the smallest limit on mappings (ulimit -v, -d; -l if they are locked; SIZE_MAX:
 * none). */
size_t weft__os_memory(void);
size_t weft__os_address_limit(void);

/* Zeroed memory for the library's own use, outside of the reservation; NULL if there is none. */
void *weft__os_alloc(size_t bytes);
void weft__os_free(void *start, size_t bytes);
/* Like weft__os_alloc, but inaccessible until weft__os_open opens whole pages of it. */
void *weft__os_alloc_closed(size_t bytes);
int weft__os_open(void *start, size_t bytes);
/* True if stacks are executable. weft__os_make_stack makes memory outside of the reservation executable if they are.
 * Valid after the first reservation. */
bool weft__os_executable_stacks(void);
int weft__os_make_stack(void *start, size_t bytes);
/* Ask for huge pages where the range has room for them: all of it will soon be in use. */
void weft__os_prefer_huge(void *start, size_t bytes);

/* Let another thread run. It makes the system call directly, because with libweft-posix preloaded sched_yield is a
 * function of Weft, which makes a task yield. */
WEFT_API void weft__os_yield(void);

/* Make each running thread of the process execute a full memory barrier before this returns. */
WEFT_API void weft__os_barrier(void);

/* * Change code, which is mapped without write permission. Returns false if the system does not allow it. */
bool weft__os_write_code(void *to, const void *code, size_t bytes);
/* * Like weft__os_barrier; and afterwards no thread executes code that it fetched before. Returns false if the system
 * has no such barrier. */
bool weft__os_code_barrier(void);

/*
 * Alternate signal stacks. enter: give the calling thread an alternate stack, with a guard below, unless the thread
 * already has an enabled stack. *memory: NULL, or the value that an earlier call of this thread stored there. leave:
 * free the memory.
 */
enum { WEFT__ALT_STACK = 64 * 1024 }; /* for two nested handlers, and the largest saved register file */
int weft__os_alt_stack_enter(void **memory);
void weft__os_alt_stack_leave(void *memory);
/* * True if the caller runs on an alternate signal stack. */
bool weft__os_on_alt_stack(void);
/* * True if the address is in the guard of that stack. */
bool weft__os_alt_stack_guards(const void *memory, const void *address);

/* * Copy up to `bytes` bytes from `from`, less than a page, as far as they are readable. Returns the number of bytes
 * copied. */
size_t weft__os_read(void *to, const void *from, size_t bytes);

/* A random number that the kernel gave the process; children by fork have the same number. */
uint64_t weft__os_cookie(void);

/* * True if this process is the child of a fork in a process with other threads. Operations of those threads will never
 * complete here. */
bool weft__os_lost_threads(void);

/* Let the calling thread receive the signals of faults. */
void weft__os_unblock_faults(void);

#endif
