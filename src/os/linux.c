/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Linux: memory, alternate signal stacks, and the addresses of the process. */
#define _GNU_SOURCE /* registers of a signal context, mmap flags */

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <weft/base.h>

#include "internal/alloc_faults.h"
#include "internal/libc.h"

/* Kernel 6.13; the C library's header may be older. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

enum { ALT_GUARD = 64 * 1024 };

static int result(int failed)
{
	return failed ? -errno : 0;
}

/* The access of memory for stacks. Written before there is a stack. */
static int stack_access = PROT_READ | PROT_WRITE;

static int looks_for_executable_stack(struct dl_phdr_info *module, size_t size, void *is_program)
{
	bool *first = is_program, is_executable = *first; /* without the header, a program's stack is executable */

	(void)size;
	*first = false;
	for (size_t i = 0; i < module->dlpi_phnum; i++)
		if (module->dlpi_phdr[i].p_type == PT_GNU_STACK)
			is_executable = module->dlpi_phdr[i].p_flags & PF_X;
	return is_executable;
}

static bool a_module_wants_code(void)
{
	bool is_program = true;

	return dl_iterate_phdr(looks_for_executable_stack, &is_program);
}

/*
 * dl_iterate_phdr takes a lock of the loader. If another thread is inside dlopen during a fork, no thread releases that
 * lock in the child. So a child of a process with several threads uses the modules that were loaded when Weft was
 * loaded.
 */
static bool wanted_code_when_loaded, parent_had_threads, lost_threads;

static void look_for_threads(void)
{
#if __has_include(<sys/single_threaded.h>)
	parent_had_threads = !__libc_single_threaded;
#else
	parent_had_threads = true;
#endif
}

static void begin_as_child(void)
{
	lost_threads |= parent_had_threads;
}

__attribute__((constructor(104))) static void look_at_modules(void)
{
	wanted_code_when_loaded = a_module_wants_code();
	(void)pthread_atfork(look_for_threads, NULL, begin_as_child);
}

bool weft__os_lost_threads(void)
{
	return lost_threads && !WEFT_CANARY(waits_for_lost_threads);
}

/* Stacks are executable under the C library's rule for threads, because gcc's nested functions put code on the stack. A
 * kernel may forbid it. */
static void choose_stack_access(void)
{
	int with_code = PROT_READ | PROT_WRITE | PROT_EXEC;
	void *page;

	if (!(lost_threads && !WEFT_CANARY(asks_loader) ? wanted_code_when_loaded : a_module_wants_code()))
		return;
	page = mmap(NULL, WEFT__PAGE, with_code, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	munmap(page, WEFT__PAGE);
	stack_access = with_code;
}

bool weft__os_executable_stacks(void)
{
	return stack_access & PROT_EXEC;
}

int weft__os_make_stack(void *start, size_t bytes)
{
	return weft__os_executable_stacks() ? result(mprotect(start, bytes, stack_access)) : 0;
}

void *weft__os_reserve(size_t bytes)
{
	void *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		return NULL;
	choose_stack_access();
	/* Exclude the reservation from core files, which would contain terabytes of unused range. Ranges that are
	 * mapped later are dumped. */
	(void)madvise(start, bytes, MADV_DONTDUMP);
	return start;
}

int weft__os_map(void *start, size_t bytes, bool accounted, bool accessible, bool huge)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (accounted ? 0 : MAP_NORESERVE);
	int prot = accessible ? stack_access : PROT_NONE;

	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	if (mmap(start, bytes, prot, flags, -1, 0) == MAP_FAILED)
		return -errno;
	/* Without `huge`, a huge page would make a whole stack resident as soon as it is touched. */
	(void)madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return 0;
}

int weft__os_protect(void *start, size_t bytes, bool accessible)
{
	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	if (mprotect(start, bytes, accessible ? stack_access : PROT_NONE))
		return errno == ENOMEM ? -EAGAIN : -errno; /* the range is mapped: too many mappings */
	return 0;
}

void weft__os_reopen(void *start, size_t bytes)
{
	(void)mprotect(start, bytes, PROT_READ | PROT_WRITE);
}

uint64_t weft__os_cookie(void)
{
	const void *bytes = (const void *)getauxval(AT_RANDOM);
	uint64_t cookie = 0x574546544d454d31;

	if (bytes)
		memcpy(&cookie, bytes, sizeof cookie);
	return cookie;
}

int weft__os_guard(void *start, size_t bytes)
{
	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	/* The kernel asks to try again if it has lost a race several times. */
	while (madvise(start, bytes, MADV_GUARD_INSTALL))
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	return 0;
}

int weft__os_unguard(void *start, size_t bytes)
{
	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	return result(madvise(start, bytes, MADV_GUARD_REMOVE));
}

bool weft__os_has_guards(void)
{
	const char *forced = getenv("WEFT_GUARD");
	void *page;
	bool has;

	if (forced && strcmp(forced, "mprotect") == 0)
		return false;
	page = mmap(NULL, WEFT__PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return false;
	/* An emulator may ignore the advice and report success. So the kernel is asked to write to the page. */
	has = madvise(page, WEFT__PAGE, MADV_GUARD_INSTALL) == 0 && syscall(SYS_uname, page) != 0;
	munmap(page, WEFT__PAGE);
	return has;
}

void weft__os_drop(void *start, size_t bytes)
{
	(void)madvise(start, bytes, MADV_DONTNEED);
}

/* ThreadSanitizer has no function for this. But it forgets the range of a munmap before it calls the kernel, which
 * rejects an address that is not page-aligned. */
void weft__os_forget_accesses(void *start, size_t bytes)
{
	(void)munmap((char *)start - 1, bytes + 1);
}

size_t weft__os_resident(void *start, size_t bytes)
{
	enum { AT_A_TIME = 512 };
	unsigned char in_core[AT_A_TIME];
	size_t resident = 0;

	for (size_t done = 0; done < bytes; done += (size_t)AT_A_TIME * WEFT__PAGE) {
		size_t pages = (bytes - done) / WEFT__PAGE;

		if (pages > AT_A_TIME)
			pages = AT_A_TIME;
		if (mincore((char *)start + done, pages * WEFT__PAGE, in_core))
			continue;
		for (size_t i = 0; i < pages; i++)
			resident += in_core[i] & 1 ? WEFT__PAGE : 0;
	}
	return resident;
}

char *weft__os_lowest_resident(char *start, size_t bytes)
{
	enum { AT_A_TIME = 64 };
	unsigned char in_core[AT_A_TIME];
	char *end = start + bytes;

	while (start < end) {
		size_t pages = (size_t)(end - start) / WEFT__PAGE;

		if (pages > AT_A_TIME)
			pages = AT_A_TIME;
		if (mincore(start, pages * WEFT__PAGE, in_core))
			return end;
		for (size_t i = 0; i < pages; i++)
			if (in_core[i] & 1)
				return start + i * WEFT__PAGE;
		start += pages * WEFT__PAGE;
	}
	return end;
}

size_t weft__os_read(void *to, const void *from, size_t bytes)
{
	char *start = (char *)(uintptr_t)from;
	size_t in_page = WEFT__PAGE - (uintptr_t)from % WEFT__PAGE, first = bytes < in_page ? bytes : in_page;
	struct iovec target = {to, bytes}, source[] = {{start, first}, {start + first, bytes - first}};
	ssize_t done = process_vm_readv(getpid(), &target, 1, source, 2, 0);

	return done > 0 ? (size_t)done : 0;
}

static size_t limit_on(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur;
}

/* After mlockall(MCL_FUTURE) the limit on locked memory counts each new mapping, even if it is never touched. */
static bool locks_mappings(size_t limit)
{
	size_t bytes = limit < SIZE_MAX / 2 ? (limit | (WEFT__PAGE - 1)) + 1 : SIZE_MAX;
	void *start;

	if (bytes == SIZE_MAX)
		return false;
	start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return errno == EAGAIN;
	munmap(start, bytes);
	return false;
}

size_t weft__os_address_limit(void)
{
	size_t limit = limit_on(RLIMIT_AS), data = limit_on(RLIMIT_DATA), locked = limit_on(RLIMIT_MEMLOCK);

	/* Each private mapping that can be written counts as data, whether or not it is touched. */
	limit = data < limit ? data : limit;
	return locked < limit && locks_mappings(locked) ? locked : limit;
}

static void *alloc(size_t bytes, int access)
{
	void *start;

	if (WEFT__INJECT_FAULT())
		return NULL;
	start = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return start == MAP_FAILED ? NULL : start;
}

void *weft__os_alloc(size_t bytes)
{
	return alloc(bytes, PROT_READ | PROT_WRITE);
}

void *weft__os_alloc_closed(size_t bytes)
{
	return alloc(bytes, PROT_NONE);
}

int weft__os_open(void *start, size_t bytes)
{
	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	return result(mprotect(start, bytes, PROT_READ | PROT_WRITE));
}

void weft__os_prefer_huge(void *start, size_t bytes)
{
	(void)madvise(start, bytes, MADV_HUGEPAGE);
}

void weft__os_free(void *start, size_t bytes)
{
	munmap(start, bytes);
}

void weft__os_yield(void)
{
	syscall(SYS_sched_yield);
}

/* Removing access rights from a page in use interrupts all processors that run the process. */
static void barrier_by_protection(void)
{
	static char page[WEFT__PAGE] __attribute__((aligned(WEFT__PAGE)));

	(void)mprotect(page, sizeof page, PROT_READ | PROT_WRITE);
	__atomic_fetch_add(page, 1, __ATOMIC_SEQ_CST);
	(void)mprotect(page, sizeof page, PROT_READ);
	(void)mprotect(page, sizeof page, PROT_READ | PROT_WRITE);
}

void weft__os_barrier(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	if (errno == EPERM && !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	barrier_by_protection();
}

bool weft__os_code_barrier(void)
{
	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0))
		return true;
	return errno == EPERM && !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) &&
	       !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

/* Debuggers write breakpoints in this way. mprotect would need pages that are writable and executable, which many
 * systems forbid. */
bool weft__os_write_code(void *to, const void *code, size_t bytes)
{
	int memory = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
	bool written = memory >= 0 && pwrite(memory, code, bytes, (off_t)(uintptr_t)to) == (ssize_t)bytes;

	if (memory >= 0)
		close(memory);
	return written;
}

static void *make_alt_stack(void)
{
	char *memory = weft__os_alloc(ALT_GUARD + WEFT__ALT_STACK);

	/* If there is no mapping left for a guard, a stack without guard is better than no thread. */
	if (memory)
		(void)weft__os_protect(memory, ALT_GUARD, false);
	return memory;
}

int weft__os_alt_stack_enter(void **memory)
{
	stack_t stack;

	if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE))
		return 0;
	if (!*memory)
		*memory = make_alt_stack();
	if (!*memory)
		return -ENOMEM;
	memset(&stack, 0, sizeof stack);
	stack.ss_sp = (char *)*memory + ALT_GUARD;
	stack.ss_size = WEFT__ALT_STACK;
	return result(sigaltstack(&stack, NULL));
}

void weft__os_alt_stack_leave(void *memory)
{
	stack_t stack;

	if (!memory)
		return;
	if (sigaltstack(NULL, &stack) == 0 && stack.ss_sp == (char *)memory + ALT_GUARD) {
		stack.ss_flags = SS_DISABLE;
		(void)sigaltstack(&stack, NULL);
	}
	weft__os_free(memory, ALT_GUARD + WEFT__ALT_STACK);
}

bool weft__os_on_alt_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

bool weft__os_alt_stack_guards(const void *memory, const void *address)
{
	return memory && (uintptr_t)address - (uintptr_t)memory < ALT_GUARD;
}

void weft__os_unblock_faults(void)
{
	/* A mask in the kernel's format: making the C library's mask takes longer than the call. */
	const uint64_t faults = (uint64_t)1 << (SIGSEGV - 1) | (uint64_t)1 << (SIGBUS - 1);

	(void)syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, NULL, sizeof faults);
}

#ifndef __GLIBC__
/* A libgcc that was built for glibc, as musl-gcc links it, calls this for the description of a frame. After -1 it asks
 * dl_iterate_phdr. */
int _dl_find_object(void *address, void *result);
__attribute__((weak)) int _dl_find_object(void *address, void *result)
{
	(void)address, (void)result;
	return -1;
}
#endif
