/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twins of libc's calls that read, write, open and lock files. A file on a disk is always ready, so its descriptor
 * cannot tell when a call would not wait: if an attempt that does not wait has failed, a helper thread makes the call.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "activity/libc_calls.h"

/* ---- reading and writing at a place ------------------------------------------------------------------------------ */

static bool needs_helper(ssize_t result)
{
	return result < 0 && (errno == EAGAIN || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS);
}

TWIN(ssize_t, preadv2, (int fd, const struct iovec *parts, int count, off_t offset, int flags))
{
	uint64_t words[6] = {I(fd), P(parts), I(count), I(offset), I(flags)};
	int error = errno;
	ssize_t result = preadv2(fd, parts, count, offset, flags | RWF_NOWAIT);

	if (!needs_helper(result) || flags & RWF_NOWAIT)
		return result;
	return weft__call_by_helper("preadv2", (void *)(uintptr_t)preadv2, words, error);
}

TWIN(ssize_t, preadv, (int fd, const struct iovec *parts, int count, off_t offset))
{
	uint64_t words[6] = {I(fd), P(parts), I(count), I(offset)};
	int error = errno;
	ssize_t result = offset < 0 ? -1 : preadv2(fd, parts, count, offset, RWF_NOWAIT);

	if (offset >= 0 && !needs_helper(result))
		return result;
	return weft__call_by_helper("preadv", (void *)(uintptr_t)preadv, words, error);
}

TWIN(ssize_t, pread, (int fd, void *data, size_t n, off_t offset))
{
	struct iovec part = {data, n};
	uint64_t words[6] = {I(fd), P(data), n, I(offset)};
	int error = errno;
	ssize_t result = offset < 0 ? -1 : preadv2(fd, &part, 1, offset, RWF_NOWAIT);

	if (offset >= 0 && !needs_helper(result))
		return result;
	return weft__call_by_helper("pread", (void *)(uintptr_t)pread, words, error);
}

/* These write to the page cache, and wait only if it is full. */
TWIN(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t offset))
{
	return pwrite(fd, data, n, offset);
}

TWIN(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t offset))
{
	return pwritev(fd, parts, count, offset);
}

HELPED(ssize_t, pwritev2, (int fd, const struct iovec *parts, int count, off_t offset, int flags), I(fd), P(parts),
       I(count), I(offset), I(flags))

TWIN_TOO(ssize_t, pread64, pread, (int fd, void *data, size_t n, off_t offset))
TWIN_TOO(ssize_t, pwrite64, pwrite, (int fd, const void *data, size_t n, off_t offset))
TWIN_TOO(ssize_t, preadv64, preadv, (int fd, const struct iovec *parts, int count, off_t offset))
TWIN_TOO(ssize_t, pwritev64, pwritev, (int fd, const struct iovec *parts, int count, off_t offset))
TWIN_TOO(ssize_t, preadv64v2, preadv2, (int fd, const struct iovec *parts, int count, off_t offset, int flags))
TWIN_TOO(ssize_t, pwritev64v2, pwritev2, (int fd, const struct iovec *parts, int count, off_t offset, int flags))

static ssize_t checked_pread(int fd, void *data, size_t n, off_t offset, size_t room)
{
	weft__call_check(n, room);
	return weft__yielding_pread(fd, data, n, offset);
}

TWIN(ssize_t, __pread_chk, (int fd, void *data, size_t n, off_t offset, size_t room))
{
	return checked_pread(fd, data, n, offset, room);
}

TWIN(ssize_t, __pread64_chk, (int fd, void *data, size_t n, off_t offset, size_t room))
{
	return checked_pread(fd, data, n, offset, room);
}

/* ---- from one descriptor to another ------------------------------------------------------------------------------ */

HELPED(ssize_t, sendfile, (int to, int from, off_t *offset, size_t n), I(to), I(from), P(offset), n)
TWIN_TOO(ssize_t, sendfile64, sendfile, (int to, int from, off_t *offset, size_t n))
HELPED(ssize_t, splice, (int from, off_t *at, int to, off_t *there, size_t n, unsigned flags), I(from), P(at), I(to),
       P(there), n, flags)
HELPED(ssize_t, tee, (int from, int to, size_t n, unsigned flags), I(from), I(to), n, flags)
HELPED(ssize_t, vmsplice, (int fd, const struct iovec *parts, size_t count, unsigned flags), I(fd), P(parts), count,
       flags)
HELPED(ssize_t, copy_file_range, (int from, off_t *at, int to, off_t *there, size_t n, unsigned flags), I(from), P(at),
       I(to), P(there), n, flags)

/* ---- a counter --------------------------------------------------------------------------------------------------- */

extern ssize_t weft__yielding_read(int fd, void *data, size_t n);
extern ssize_t weft__yielding_write(int fd, const void *data, size_t n);

TWIN(int, eventfd_read, (int fd, eventfd_t *value))
{
	return weft__yielding_read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

/* The value is in the heap, because a helper thread may read it while these frames are parked. */
TWIN(int, eventfd_write, (int fd, eventfd_t value))
{
	eventfd_t *kept = weft__record_take(weft__activity_hot.group, sizeof *kept);
	bool written;

	if (!kept) {
		errno = ENOMEM;
		return -1;
	}
	*kept = value;
	written = weft__yielding_write(fd, kept, sizeof *kept) == sizeof *kept;
	weft__activity_pop(kept);
	return written ? 0 : -1;
}

/* ---- disks and terminals ----------------------------------------------------------------------------------------- */

HELPED(int, syncfs, (int fd), I(fd))
HELPED(int, msync, (void *start, size_t n, int flags), P(start), n, I(flags))
HELPED(int, tcdrain, (int fd), I(fd))
HELPED(int, pclose, (FILE * stream), P(stream))

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Only the open of a FIFO waits for another process. */
static int open_file(const char *name, int directory, const char *path, int flags, unsigned mode)
{
	uint64_t words[6] = {I(directory), P(path), I(flags), mode};
	struct stat status;
	int error = errno;

	if (flags & (O_NONBLOCK | O_PATH) || fstatat(directory, path, &status, 0) || !S_ISFIFO(status.st_mode)) {
		errno = error;
		return openat(directory, path, flags, mode);
	}
	return (int)weft__call_by_helper(name, (void *)(uintptr_t)openat, words, error);
}

/* Callers declare these functions as variadic, which makes no difference for an argument in a register. */
TWIN(int, open, (const char *path, int flags, unsigned mode))
{
	return open_file("open", AT_FDCWD, path, flags, mode);
}

TWIN(int, openat, (int directory, const char *path, int flags, unsigned mode))
{
	return open_file("openat", directory, path, flags, mode);
}

TWIN(int, creat, (const char *path, mode_t mode))
{
	return open_file("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

TWIN(int, __open_2, (const char *path, int flags))
{
	return open_file("open", AT_FDCWD, path, flags, 0);
}

TWIN(int, __openat_2, (int directory, const char *path, int flags))
{
	return open_file("openat", directory, path, flags, 0);
}

TWIN_TOO(int, open64, open, (const char *path, int flags, unsigned mode))
TWIN_TOO(int, openat64, openat, (int directory, const char *path, int flags, unsigned mode))
TWIN_TOO(int, creat64, creat, (const char *path, mode_t mode))
TWIN_TOO(int, __open64_2, __open_2, (const char *path, int flags))
TWIN_TOO(int, __openat64_2, __openat_2, (int directory, const char *path, int flags))

/* ---- locks of files ---------------------------------------------------------------------------------------------- */

/* Returns the form of the command that does not wait; 0: the command itself does not wait. */
static int attempt_of(int command)
{
	return command == F_SETLKW ? F_SETLK : command == F_OFD_SETLKW ? F_OFD_SETLK : 0;
}

TWIN(int, fcntl, (int fd, int command, void *argument))
{
	uint64_t words[6] = {I(fd), I(command), P(argument)};
	int attempt = attempt_of(command), error = errno, result;

	if (!attempt)
		return fcntl(fd, command, argument);
	result = fcntl(fd, attempt, argument);
	if (!result || (errno != EAGAIN && errno != EACCES))
		return result;
	return (int)weft__call_by_helper("fcntl", (void *)(uintptr_t)fcntl, words, error);
}

TWIN(int, lockf, (int fd, int command, off_t bytes))
{
	uint64_t words[6] = {I(fd), I(command), I(bytes)};
	int error = errno, result = lockf(fd, command == F_LOCK ? F_TLOCK : command, bytes);

	if (!result || command != F_LOCK || (errno != EAGAIN && errno != EACCES))
		return result;
	return (int)weft__call_by_helper("lockf", (void *)(uintptr_t)lockf, words, error);
}

TWIN_TOO(int, fcntl64, fcntl, (int fd, int command, void *argument))
TWIN_TOO(int, lockf64, lockf, (int fd, int command, off_t bytes))
