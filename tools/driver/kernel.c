/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tries out kernel features. Prints one line for each: name, tab, "yes" or "no: why". Needs no Weft. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#endif

enum { PAGE = 4096, UFFD_USER_MODE_ONLY_FLAG = 1 };

static void report(const char *name, int failed, const char *hint)
{
	if (!failed)
		printf("%s\tyes\n", name);
	else
		printf("%s\tno: %s%s\n", name, strerror(errno), hint);
}

static int try_guard(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int failed = page == MAP_FAILED || madvise(page, PAGE, MADV_GUARD_INSTALL);
	int why = errno;

	if (page != MAP_FAILED)
		munmap(page, PAGE);
	errno = why;
	return failed;
}

static int try_io_uring(void)
{
	char params[120] = {0}; /* struct io_uring_params */
	long ring = syscall(__NR_io_uring_setup, 4, params);

	if (ring >= 0)
		close((int)ring);
	return ring < 0;
}

static int try_userfaultfd(int flags)
{
	long fd = syscall(__NR_userfaultfd, O_CLOEXEC | flags);

	if (fd >= 0)
		close((int)fd);
	return fd < 0;
}

int main(void)
{
	report("guard install", try_guard(), " (kernel 6.13 and later; without it about 32 000 guarded stacks)");
	report("io_uring", try_io_uring(), " (see the sysctl kernel.io_uring_disabled, or a container's filter)");
	report("userfaultfd", try_userfaultfd(UFFD_USER_MODE_ONLY_FLAG), "");
	report("userfaultfd, faults of system calls", try_userfaultfd(0), " (see vm.unprivileged_userfaultfd)");
	return 0;
}
