/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files and directories: operations that only block, by one system call each; opening; entries; changes. */
#define _GNU_SOURCE
#include "io/sim.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

static int64_t do_file(const weft_io_t *io)
{
	const char *path = io->data, *other = io->more;

	switch (io->kind) {
	case WEFT_IO_RENAME: /* musl has no function for it */
		return syscall(SYS_renameat2, io->fd, path, io->other, other, (unsigned)io->flags);
	case WEFT_IO_UNLINK:
		return unlinkat(io->fd, path, io->flags);
	case WEFT_IO_MKDIR:
		return mkdirat(io->fd, path, (mode_t)io->length);
	case WEFT_IO_SYMLINK:
		return symlinkat(path, io->fd, other);
	case WEFT_IO_LINK:
		return linkat(io->fd, path, io->other, other, io->flags);
	case WEFT_IO_TRUNCATE:
		return ftruncate(io->fd, io->offset);
	case WEFT_IO_ALLOCATE:
		return syscall(SYS_fallocate, io->fd, io->flags, io->offset, io->length);
	case WEFT_IO_COPY:
		return syscall(SYS_copy_file_range, io->fd, io->data, io->other, io->more, io->length, 0u);
	case WEFT_IO_ENTRIES:
		return syscall(SYS_getdents64, io->fd, io->data, io->length);
	case WEFT_IO_WATCH:
		return inotify_add_watch(io->fd, path, (uint32_t)io->flags);
	default:
		errno = EINVAL;
		return -1;
	}
}

int64_t weft__io_file(const weft_io_t *io)
{
	int64_t result = do_file(io);

	return result < 0 ? -errno : result;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/*
 * open(2) of a FIFO waits until the other side is opened, and open(2) of a file with a lease waits until the lease is
 * broken. Here both are opened with O_NONBLOCK, and an open that would have waited is tried again after a pause. The
 * kernel reports no event for either.
 *
 *   a reader   opens the FIFO at once and keeps it in io->other. That releases writers that wait in open(2), and what
 *              they write stays readable. It has waited for long enough when there is a writer, data, or POLLHUP,
 *              which such a descriptor has only after a writer has come and gone.
 *   a writer   keeps an O_PATH descriptor in io->other, and opens that again until there is a reader: a FIFO that is
 *              renamed meanwhile is the same FIFO.
 *   a lease    is found by the path each time; io->other is -1.
 *
 * A reader that is closed again within one pause of a writer is not seen by that writer.
 */
enum { FIRST_PAUSE = 50000, LONGEST_PAUSE = 10000000 }; /* nanoseconds */

static int open_again(int directory, const char *path, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(directory, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

static int64_t open_plainly(const weft_io_t *io)
{
	return open_again(io->fd, io->data, io->flags, (mode_t)io->length);
}

static bool is_reader(const weft_io_t *io)
{
	return (io->flags & O_ACCMODE) == O_RDONLY;
}

/* Returns true if a writer has opened the FIFO since `fd` was opened. tee distinguishes an empty FIFO with a writer
 * from an empty FIFO without a writer, and consumes no bytes. */
static bool has_writer(int fd)
{
	int scratch[2];
	ssize_t n;

	if (weft__poll_now(fd, POLLIN) > 0)
		return true;
	if (pipe2(scratch, O_CLOEXEC))
		return false;
	n = tee(fd, scratch[1], 1, SPLICE_F_NONBLOCK);
	n = n < 0 && errno == EAGAIN ? 1 : n;
	close(scratch[0]);
	close(scratch[1]);
	return n > 0;
}

/* Sets the mode that the caller asked for. */
static int64_t finish_opening(const weft_io_t *io, int fd)
{
	(void)fcntl(fd, F_SETFL, io->flags);
	return fd;
}

static bool is_fifo(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && S_ISFIFO(status.st_mode);
}

/* Returns the descriptor; -EAGAIN: there is no writer yet. */
static int64_t opened_fifo(weft_io_t *io, int fd)
{
	if (is_reader(io) && !has_writer(fd)) {
		io->other = fd;
		return -EAGAIN;
	}
	return finish_opening(io, fd);
}

/* io->other is an O_PATH descriptor of the FIFO. */
static int64_t open_fifo(weft_io_t *io)
{
	const int unwanted = O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW;
	char path[32];
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", io->other);
	fd = open_again(AT_FDCWD, path, (io->flags & ~unwanted) | O_NONBLOCK, 0);
	if (fd == -ENXIO && !is_reader(io))
		return -EAGAIN;
	close(io->other);
	io->other = -1;
	return fd < 0 ? fd : opened_fifo(io, fd);
}

static int64_t find_fifo(weft_io_t *io)
{
	int64_t result = -ENOENT;

	io->other = weft__own_fd(open_again(io->fd, io->data, O_PATH | (io->flags & O_NOFOLLOW), 0));
	if (io->other >= 0 && is_fifo(io->other))
		result = open_fifo(io);
	if (result != -ENOENT)
		return result;
	/* There is no /proc, or the path now refers to another kind of file. */
	weft__open_abandon(io);
	return open_plainly(io);
}

static int64_t open_first(weft_io_t *io)
{
	struct stat status;
	int64_t fd;

	if (fstatat(io->fd, io->data, &status, io->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0))
		return open_plainly(io);
	if (S_ISFIFO(status.st_mode) && !(io->flags & O_CREAT && io->flags & O_EXCL))
		return find_fifo(io);
	/* A device may give O_NONBLOCK an additional meaning. */
	if (!S_ISREG(status.st_mode))
		return open_plainly(io);
	fd = open_again(io->fd, io->data, io->flags | O_NONBLOCK, (mode_t)io->length);
	return fd < 0 ? fd : finish_opening(io, (int)fd);
}

void weft__open_begin(weft_io_t *io)
{
	io->other = -1;
	io->offset = FIRST_PAUSE;
}

void weft__open_abandon(weft_io_t *io)
{
	if (io->other >= 0)
		close(io->other);
	io->other = -1;
}

bool weft__open_may_wait(const weft_io_t *io)
{
	return io->kind == WEFT_IO_OPEN && !(io->flags & (O_NONBLOCK | O_PATH | O_DIRECTORY));
}

int64_t weft__open_attempt(weft_io_t *io)
{
	int fd = io->other;

	if (!weft__open_may_wait(io))
		return open_plainly(io);
	if (fd < 0)
		return open_first(io);
	if (!is_reader(io))
		return open_fifo(io);
	io->other = -1;
	return opened_fifo(io, fd);
}

int64_t weft__open_attempted(weft_io_t *io, int64_t result)
{
	if (result < 0)
		return result == -ENXIO && (io->flags & O_ACCMODE) == O_WRONLY ? -EAGAIN : result;
	return is_reader(io) && is_fifo((int)result) ? opened_fifo(io, (int)result) : finish_opening(io, (int)result);
}

uint64_t weft__open_pause(weft_io_t *io)
{
	uint64_t until = weft__clock() + (uint64_t)io->offset;

	io->offset = io->offset < LONGEST_PAUSE / 2 ? io->offset * 2 : LONGEST_PAUSE;
	return until < io->deadline ? until : io->deadline;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

int weft__next_entry(weft_dir_t *directory, weft_dirent_t *entry)
{
	const struct weft__direntry *e;
	bool is_dot;

	while (directory->at < directory->end) {
		e = (const struct weft__direntry *)((const char *)directory->entries + directory->at);
		directory->at += e->size;
		is_dot = !strcmp(e->name, ".") || !strcmp(e->name, "..");
		if (is_dot)
			continue;
		entry->inode = e->inode;
		entry->type = e->type;
		snprintf(entry->name, sizeof entry->name, "%s", e->name);
		return 1;
	}
	return 0;
}

bool weft__next_change(weft_file_watch_t *watch, weft_file_change_t *change)
{
	const struct inotify_event *e = (const struct inotify_event *)((const char *)watch->events + watch->at);

	if (watch->at >= watch->end)
		return false;
	watch->at = WEFT_CANARY(watch_drops_changes) ? watch->end : watch->at + (unsigned)sizeof *e + e->len;
	change->watch = e->wd;
	change->events = e->mask;
	change->cookie = e->cookie;
	snprintf(change->name, sizeof change->name, "%s", e->len ? e->name : "");
	return true;
}

int weft_file_watch_remove(weft_file_watch_t *watch, int number)
{
	if (weft__sim_has(watch->fd))
		return weft__sim_watch_remove(watch->fd, number);
	return inotify_rm_watch(watch->fd, number) ? -errno : 0;
}
