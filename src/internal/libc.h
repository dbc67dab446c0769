/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations of glibc and the kernel's headers, for C libraries and compilers without them: musl up to 1.2.4, and
 * musl-gcc, which does not find <linux/…>. For files that define _GNU_SOURCE.
 */
#ifndef WEFT_SRC_INTERNAL_LIBC_H
#define WEFT_SRC_INTERNAL_LIBC_H

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<linux/futex.h>)
#include <linux/futex.h>
#else
#define FUTEX_WAKE_PRIVATE (1 | 128)
#define FUTEX_WAIT_BITSET_PRIVATE (9 | 128)
#define FUTEX_BITSET_MATCH_ANY 0xffffffff
#endif

#if __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#else
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED (1 << 4)
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE (1 << 5)
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE (1 << 6)
#endif

#ifndef W_EXITCODE
#define W_EXITCODE(code, signal) ((code) << 8 | (signal))
#endif

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
/* The kernel expects the offset in two halves; on 64-bit machines the first half contains all of it. */
#define preadv2(fd, parts, count, offset, flags)                                                                       \
	syscall(SYS_preadv2, fd, parts, (long)(count), (long)(offset), 0L, (long)(flags))
#define pwritev2(fd, parts, count, offset, flags)                                                                      \
	syscall(SYS_pwritev2, fd, parts, (long)(count), (long)(offset), 0L, (long)(flags))
#endif

#ifndef __GLIBC__
#define WEFT__NO_EPOLL_PWAIT2 1
static inline int weft__epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
				     const sigset_t *mask)
{
	return (int)syscall(441, fd, events, most, timeout, mask, (long)(_NSIG / 8));
}
#define epoll_pwait2 weft__epoll_pwait2
#endif

#endif
