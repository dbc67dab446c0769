/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Changes of the simulated files, as inotify reports them. The descriptor of weft_file_watch_open refers to a watcher:
 * the files that it watches, and the unread changes. Files report to all watchers of the world; without watchers this
 * costs one test.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

enum {
	WAITING_MOST = 16384, /* like /proc/sys/fs/inotify/max_queued_events */
	/* Bits of weft_file_watch_add's argument that are not events. */
	FLAGS = (int)(IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD | IN_ONESHOT | 0x10000000),
	MASK_CREATE = 0x10000000, /* IN_MASK_CREATE, which older headers lack */
};

struct watched {
	struct watched *next;
	const struct weft__inode *inode;
	int number;
	uint32_t events; /* with IN_EXCL_UNLINK, IN_ONESHOT */
};

struct waiting {
	struct waiting *next;
	struct inotify_event event; /* with room for event.len bytes of a name */
};

struct weft__watcher {
	struct weft__watcher *next, **link;
	struct weft__node *node;
	struct watched *files;
	struct waiting *first, *last; /* `last` is valid if there is a first */
	size_t count;
	bool lost; /* IN_Q_OVERFLOW follows the queued events, and nothing is added before it has been read */
	int given; /* the last number that was assigned */
};

/* ---- the queue of unread events ---------------------------------------------------------------------------------- */

static bool is_equal(const struct waiting *a, const struct inotify_event *event, const char *name)
{
	return a->event.wd == event->wd && a->event.mask == event->mask && !(event->mask & IN_IGNORED) &&
	       !strcmp(a->event.len ? a->event.name : "", name);
}

static void add(struct weft__watcher *w, const struct inotify_event *event, const char *name)
{
	const size_t length = strlen(name), unit = sizeof *event, room = length ? (length / unit + 1) * unit : 0;
	struct waiting *new;

	/* The kernel compares only with the last event. */
	if (w->lost || (w->first && !WEFT_CANARY(watchers_merge_nothing) && is_equal(w->last, event, name)))
		return;
	new = w->count < WAITING_MOST ? calloc(1, sizeof *new + room) : NULL;
	if (new) {
		new->event = *event;
		new->event.len = (uint32_t)room;
		memcpy(new->event.name, name, length);
		*(w->first ? &w->last->next : &w->first) = new;
		w->last = new;
		w->count++;
	}
	w->lost = !new;
	weft__node_stir(w->node, WEFT__IN);
}

static void drop_first(struct weft__watcher *w)
{
	struct waiting *first = w->first;

	w->first = first->next;
	w->count--;
	free(first);
}

static int64_t take(struct weft__watcher *w, char *data, size_t length)
{
	const struct inotify_event overflow = {.wd = -1, .mask = IN_Q_OVERFLOW};
	size_t done = 0, size;

	while (w->first) {
		size = sizeof w->first->event + w->first->event.len;
		if (size > length - done)
			return done ? (int64_t)done : -EINVAL;
		memcpy(data + done, &w->first->event, size);
		done += size;
		drop_first(w);
	}
	if (w->lost && sizeof overflow <= length - done) {
		memcpy(data + done, &overflow, sizeof overflow);
		done += sizeof overflow;
		w->lost = false;
	} else if (w->lost && !done) {
		return -EINVAL;
	}
	return done ? (int64_t)done : -EAGAIN;
}

/* ---- files that are watched -------------------------------------------------------------------------------------- */

static void watch_no_more(struct weft__watcher *w, struct watched **link)
{
	const struct inotify_event ignored = {.wd = (*link)->number, .mask = IN_IGNORED};
	struct watched *file = *link;

	*link = file->next;
	free(file);
	add(w, &ignored, "");
}

/* `name`: of the entry, in a watched directory; NULL: the file itself is watched. */
static void tell_one(struct weft__watcher *w, struct watched **link, const char *name, uint32_t events, uint32_t cookie)
{
	const struct watched *file = *link;
	const struct inotify_event event = {.wd = file->number,
					    .mask = events & ~(uint32_t)IN_EXCL_UNLINK,
					    .cookie = cookie};

	if (!(file->events & events & IN_ALL_EVENTS) || file->events & events & IN_EXCL_UNLINK)
		return;
	add(w, &event, name ? name : "");
	if (file->events & IN_ONESHOT)
		watch_no_more(w, link);
}

/* The link of the next file; tell_one may have removed `file`. */
static struct watched **after(struct watched **link, const struct watched *file)
{
	return *link == file ? &(*link)->next : link;
}

static void tell_directories(struct weft__watcher *w, const struct weft__inode *inode, const char *name,
			     uint32_t events, uint32_t cookie)
{
	struct watched **link = &w->files, *file;
	const char *entry;

	while ((file = *link)) {
		entry = weft__sim_entry(file->inode, inode, name);
		if (entry)
			tell_one(w, link, entry, events, cookie);
		link = after(link, file);
	}
}

static void tell_itself(struct weft__watcher *w, const struct weft__inode *inode, uint32_t events)
{
	struct watched **link = &w->files, *file;

	while ((file = *link)) {
		if (file->inode == inode)
			tell_one(w, link, NULL, events, 0);
		if (*link == file && file->inode == inode && events & IN_DELETE_SELF)
			watch_no_more(w, link);
		link = after(link, file);
	}
}

void weft__sim_tell(struct weft__world *world, const struct weft__inode *inode, const char *name, uint32_t events,
		    uint32_t cookie)
{
	const bool itself = !(events & (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO));
	const bool directory = !(events & (IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB));
	struct weft__watcher *w;

	/* IN_DELETE_SELF and IN_MOVE_SELF of a directory are reported without IN_ISDIR. */
	if (weft__sim_is_directory(inode) && !(events & (IN_DELETE_SELF | IN_MOVE_SELF)))
		events |= IN_ISDIR;
	for (w = world->watchers; w; w = w->next) {
		if (directory)
			tell_directories(w, inode, name, events, cookie);
		if (itself)
			tell_itself(w, inode, events);
	}
}

/* ---- watchers ---------------------------------------------------------------------------------------------------- */

int weft__sim_watch_open(void)
{
	struct weft__world *world = weft__world();
	struct weft__watcher *w = world ? calloc(1, sizeof *w) : NULL;
	struct weft__node *node = w ? weft__node_new(world, WEFT__WATCHER) : NULL;

	if (!node) {
		free(w);
		return -ENOMEM;
	}
	*w = (struct weft__watcher){.next = world->watchers, .link = &world->watchers, .node = node};
	if (w->next)
		w->next->link = &w->next;
	world->watchers = w;
	node->watcher = w;
	return weft__node_describe(world, node);
}

void weft__sim_watch_end(struct weft__node *node)
{
	struct weft__watcher *w = node->watcher;
	struct watched *file;

	if (!w)
		return;
	node->watcher = NULL;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	while ((file = w->files)) {
		w->files = file->next;
		free(file);
	}
	while (w->first)
		drop_first(w);
	free(w);
}

int64_t weft__sim_watch_add(struct weft__world *world, struct weft__node *node, const char *path, uint32_t events)
{
	struct weft__watcher *w = node->watcher;
	const struct weft__inode *inode;
	struct watched *file;
	int64_t error;

	if (!w)
		return -EINVAL;
	if (!(events & (IN_ALL_EVENTS | (uint32_t)FLAGS)) || (events & IN_MASK_ADD && events & MASK_CREATE))
		return -EINVAL;
	error = weft__sim_look_up(world, path, &inode);
	if (error)
		return error;
	if (events & IN_ONLYDIR && !weft__sim_is_directory(inode))
		return -ENOTDIR;
	for (file = w->files; file && file->inode != inode; file = file->next)
		;
	if (file && events & MASK_CREATE)
		return -EEXIST;
	if (!file) {
		file = calloc(1, sizeof *file);
		if (!file)
			return -ENOMEM;
		file->next = w->files;
		file->inode = inode;
		file->number = ++w->given;
		w->files = file;
	}
	file->events = (events & IN_MASK_ADD ? file->events : 0) | (events & ~(uint32_t)(FLAGS)) |
		       (events & (IN_EXCL_UNLINK | IN_ONESHOT));
	return file->number;
}

int weft__sim_watch_remove(int fd, int number)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, fd) : NULL;
	struct watched **link;

	if (!node || node->kind == WEFT__DEAD)
		return -EBADF;
	if (!node->watcher)
		return -EINVAL;
	for (link = &node->watcher->files; *link; link = &(*link)->next)
		if ((*link)->number == number) {
			watch_no_more(node->watcher, link);
			return 0;
		}
	return -EINVAL;
}

bool weft__sim_has_change(const struct weft__node *node)
{
	return node->watcher->first || node->watcher->lost;
}

int64_t weft__sim_watch(struct weft__node *node, const weft_io_t *io)
{
	const struct iovec *parts = io->data;

	switch (io->kind) {
	case WEFT_IO_READ:
		return io->offset != -1 ? -ESPIPE : take(node->watcher, io->data, io->length);
	case WEFT_IO_READV:
		return io->offset != -1 ? -ESPIPE
		       : io->length	? take(node->watcher, parts->iov_base, parts->iov_len)
					: 0;
	case WEFT_IO_WRITE:
	case WEFT_IO_WRITEV:
		return -EBADF;
	case WEFT_IO_SPLICE:
	case WEFT_IO_SYNC:
		return -EINVAL;
	default:
		return -ENOTSOCK;
	}
}
