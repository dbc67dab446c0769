/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Pages that a thread of Weft supplies when they are first touched: userfaultfd(2).
 *
 *   thread that touches a missing page        the thread that answers
 *     sleeps in its page fault      ------->    read: the page's address
 *     continues                     <-------    supply (UFFDIO_ZEROPAGE) or wake
 *
 * The thread that answers must not touch a missing page itself, because no thread would answer: the caller's function
 * uses only memory that is always present, and code that drops this memory supplies it again immediately.
 */
#define _GNU_SOURCE /* O_CLOEXEC, pthread_sigmask */

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal/alloc_faults.h"
#include "internal/userfaultfd.h"

struct scan { /* struct pm_scan_arg, kernel 6.7 */
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct scanned { /* struct page_region */
	uint64_t start, end, categories;
};
enum { IS_PRESENT = 1 << 3, IS_ZERO = 1 << 5 };
#define SCAN _IOWR('f', 16, struct scan)

static int faults = -1, pagemap = -1;
static weft__missing_t *answer;

static int open_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0) /* without rights only faults in user code are delivered; system calls fail with EFAULT */
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static void *serve(void *unused)
{
	enum { AT_A_TIME = 16 };
	struct uffd_msg message[AT_A_TIME];
	ssize_t bytes;

	(void)unused;
	while ((bytes = read(faults, message, sizeof message)) > 0 || errno == EINTR || errno == EAGAIN)
		for (ssize_t i = 0; i < bytes / (ssize_t)sizeof *message; i++)
			if (message[i].event == UFFD_EVENT_PAGEFAULT)
				answer(weft__page_of((void *)(uintptr_t)message[i].arg.pagefault.address));
	return NULL;
}

static int start_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, (size_t)256 << 10);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attributes, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

int weft__missing_begin(weft__missing_t *function)
{
	struct scan nothing = {.size = sizeof nothing};
	int error;

	answer = function;
	faults = open_faults();
	if (faults < 0)
		return faults;
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	error = pagemap < 0 || ioctl(pagemap, SCAN, &nothing) < 0 ? -errno : start_thread();
	if (error)
		weft__missing_end();
	return error;
}

void weft__missing_end(void)
{
	if (faults >= 0)
		close(faults);
	if (pagemap >= 0)
		close(pagemap);
	faults = pagemap = -1;
}

int weft__missing_watch(void *start, size_t bytes)
{
	struct uffdio_register watch = {.range = {(uintptr_t)start, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(faults, UFFDIO_REGISTER, &watch) ? -errno : 0;
}

int weft__missing_supply(void *start, size_t bytes)
{
	uintptr_t at = (uintptr_t)start, end = at + bytes;

	if (WEFT__INJECT_FAULT())
		return -ENOMEM;
	while (at < end) {
		struct uffdio_zeropage zero = {.range = {at, end - at}};

		if (!ioctl(faults, UFFDIO_ZEROPAGE, &zero))
			return 0;
		if (zero.zeropage > 0)
			at += (uintptr_t)zero.zeropage;
		else if (errno == EEXIST) /* another thread has supplied this page */
			at += WEFT__PAGE;
		else if (errno != EAGAIN)
			return -errno;
	}
	/* The last pages were present, so UFFDIO_ZEROPAGE woke no thread. */
	weft__missing_wake(start, bytes);
	return 0;
}

void weft__missing_wake(void *start, size_t bytes)
{
	struct uffdio_range range = {(uintptr_t)start, bytes};

	(void)ioctl(faults, UFFDIO_WAKE, &range);
}

char *weft__missing_lowest_written(char *start, size_t bytes)
{
	struct scanned found;
	struct scan scan = {.size = sizeof scan,
			    .start = (uintptr_t)start,
			    .end = (uintptr_t)start + bytes,
			    .vec = (uintptr_t)&found,
			    .vec_len = 1,
			    .max_pages = 1,
			    .category_inverted = IS_ZERO,
			    .category_mask = IS_PRESENT | IS_ZERO,
			    .return_mask = IS_PRESENT};

	return ioctl(pagemap, SCAN, &scan) == 1 ? (char *)(uintptr_t)found.start : start + bytes;
}
