/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Operations on files and directories that only block, by one system call each; entries of directories; changes. */
#define _GNU_SOURCE
#include "io/io.h"

#include <fcntl.h>
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
	return inotify_rm_watch(watch->fd, number) ? -errno : 0;
}
