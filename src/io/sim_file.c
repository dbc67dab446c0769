/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Files of the simulated world. A file has the content that programs see (`seen`), the content on the disk (`kept`),
 * and the changes in between, in their order: a sync applies them to `kept`. When its host crashes, `seen` becomes
 * `kept` with some of the changes, whole or in part. A new file is certainly on the disk after a sync; before that the
 * seed decides. A path is a name, which need not be in a directory: a directory is a file that lists the names that
 * begin with its own name.
 *
 * Renamed and removed names are in a journal, like ext4's: a sync of any file commits all names of its host. A crash
 * keeps the oldest uncommitted changes, as many as the seed says, and undoes the rest.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

enum { SECTOR = 512, CHANGES_MOST = 1024 };

struct bytes {
	char *data;
	size_t size, room;
};

struct change {
	struct change *next;
	bool truncates; /* to `offset` */
	size_t offset, length;
	char data[];
};

struct weft__inode {
	struct weft__inode *next;
	unsigned host, mode; /* with S_IFDIR, for a directory */
	uint64_t number;
	bool kept_name; /* the file survives a crash, with any content */
	bool gone;	/* lost in a crash, or removed; older descriptors may still refer to it */
	unsigned opens; /* descriptors that refer to it */
	struct bytes seen, kept;
	struct change *changes, **end;
	size_t change_count;
	char *name;
};

/* A change of a name. */
struct weft__renaming {
	struct weft__renaming *older;
	struct weft__inode *inode, *replaced; /* NULL: no file had the new name */
	char *before;			      /* the inode's earlier name; NULL: the name was removed */
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static int resize(struct bytes *b, size_t size)
{
	size_t room = b->room;
	char *data;

	if (size > room) {
		room = size < 2 * room ? 2 * room : size;
		data = realloc(b->data, room);
		if (!data)
			return -ENOMEM;
		b->data = data;
		b->room = room;
	}
	if (size > b->size)
		memset(b->data + b->size, 0, size - b->size);
	b->size = size;
	return 0;
}

static int store(struct bytes *b, size_t offset, const char *data, size_t length)
{
	if (offset + length > b->size && resize(b, offset + length))
		return -ENOMEM;
	if (length)
		memcpy(b->data + offset, data, length);
	return 0;
}

static int carry_out(struct bytes *b, const struct change *c, size_t length)
{
	return c->truncates ? resize(b, c->offset) : store(b, c->offset, c->data, length);
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static void drop_change(struct weft__inode *inode)
{
	struct change *c = inode->changes;

	inode->changes = c->next;
	if (!c->next)
		inode->end = &inode->changes;
	inode->change_count--;
	free(c);
}

static struct change *new_change(size_t offset, size_t length)
{
	struct change *c = calloc(1, sizeof *c + length);

	if (c) {
		c->offset = offset;
		c->length = length;
	}
	return c;
}

/* A disk does not wait for a sync forever: writes the oldest change. */
static void add_change(struct weft__inode *inode, struct change *c)
{
	*inode->end = c;
	inode->end = &c->next;
	if (++inode->change_count > CHANGES_MOST && !carry_out(&inode->kept, inode->changes, inode->changes->length))
		drop_change(inode);
}

/* ---- changes of names -------------------------------------------------------------------------------------------- */

static void drop_renaming(struct weft__renaming **link)
{
	struct weft__renaming *r = *link;

	*link = r->older;
	free(r->before);
	free(r);
}

static void commit_names(struct weft__world *world, unsigned host)
{
	struct weft__renaming **link = &world->renamings;

	while (*link)
		if ((*link)->inode->host == host)
			drop_renaming(link);
		else
			link = &(*link)->older;
}

/* Gives a file its name back. A newer file with this name was never committed. */
static void restore(struct weft__world *world, struct weft__inode *inode)
{
	struct weft__inode *other;

	for (other = world->inodes; other; other = other->next)
		if (other->host == inode->host && !strcmp(other->name, inode->name))
			other->gone = true;
	inode->gone = false;
}

static void undo(struct weft__world *world, struct weft__renaming *r)
{
	char *name = r->inode->name;

	if (r->before) {
		r->inode->name = r->before;
		r->before = name;
	}
	restore(world, r->inode);
	if (r->replaced)
		restore(world, r->replaced);
}

/* The list begins with the newest change. */
static void crash_names(struct weft__world *world, unsigned host)
{
	struct weft__renaming *r, **link;
	uint64_t count = 0, undone;

	for (r = world->renamings; r; r = r->older)
		count += r->inode->host == host;
	undone = count ? weft__world_below(world, count + 1) : 0;
	for (link = &world->renamings; *link;) {
		r = *link;
		if (r->inode->host != host) {
			link = &r->older;
			continue;
		}
		if (undone) {
			undone--;
			undo(world, r);
		} else if (r->before) {
			r->inode->kept_name = true; /* the journal also has the file's creation */
		}
		drop_renaming(link);
	}
}

static char *copy_of(const char *name)
{
	size_t size = strlen(name) + 1;
	char *copy = malloc(size);

	return copy ? memcpy(copy, name, size) : NULL;
}

/* Without memory nothing changes. */
static int note_renaming(struct weft__world *world, struct weft__inode *inode, struct weft__inode *replaced,
			 const char *name)
{
	struct weft__renaming *r = calloc(1, sizeof *r);
	char *copy = name ? copy_of(name) : NULL;

	if (!r || (name && !copy)) {
		free(r);
		free(copy);
		return -ENOMEM;
	}
	*r = (struct weft__renaming){world->renamings, inode, replaced, copy ? inode->name : NULL};
	world->renamings = r;
	if (copy)
		inode->name = copy;
	else
		inode->gone = true;
	if (replaced)
		replaced->gone = true;
	return 0;
}

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

/* Like Linux: a sync that fails leaves `seen` unchanged, and forgets that it is not on the disk. */
static int sync_file(struct weft__world *world, struct weft__inode *inode)
{
	bool fails = weft__world_happens(world, world->profile.disk_error);

	if (WEFT_CANARY(sim_sync_keeps_nothing))
		return 0;
	while (inode->changes) {
		if (!fails && carry_out(&inode->kept, inode->changes, inode->changes->length))
			return -ENOMEM;
		drop_change(inode);
	}
	if (!fails) {
		inode->kept_name = true;
		commit_names(world, inode->host);
	}
	return fails ? -EIO : 0;
}

/* The bytes of a write that are on the disk: none, all, or whole sectors at its beginning. */
static size_t torn(struct weft__world *world, const struct change *c)
{
	size_t end;

	switch (weft__world_below(world, 3)) {
	case 0:
		return 0;
	case 1:
		return c->length;
	default:
		if (c->length < 2)
			return 0;
		end = c->offset + (size_t)weft__world_below(world, c->length);
		end -= end % SECTOR;
		return end > c->offset ? end - c->offset : 0;
	}
}

static void crash(struct weft__world *world, struct weft__inode *inode)
{
	size_t length;

	if (!inode->kept_name && weft__world_below(world, 2))
		inode->gone = true;
	while (inode->changes) {
		if (inode->changes->truncates)
			length = (size_t)weft__world_below(world, 2);
		else
			length = torn(world, inode->changes);
		if (length)
			(void)carry_out(&inode->kept, inode->changes, length);
		drop_change(inode);
	}
	inode->kept_name = true;
	if (inode->gone || resize(&inode->seen, inode->kept.size))
		inode->seen.size = inode->kept.size = 0;
	else if (inode->kept.size)
		memcpy(inode->seen.data, inode->kept.data, inode->kept.size);
}

static void count_bytes(struct weft__world *world, unsigned host)
{
	const struct weft__inode *inode;

	world->hosts[host]->bytes = 0;
	for (inode = world->inodes; inode; inode = inode->next)
		if (inode->host == host && !inode->gone)
			world->hosts[host]->bytes += inode->seen.size;
}

void weft__sim_files_crash(struct weft__world *world, unsigned host)
{
	struct weft__inode *inode;

	crash_names(world, host);
	for (inode = world->inodes; inode; inode = inode->next)
		if (inode->host == host && !inode->gone)
			crash(world, inode);
	count_bytes(world, host);
}

void weft__sim_files_free(struct weft__world *world)
{
	struct weft__inode *inode;

	while (world->renamings)
		drop_renaming(&world->renamings);
	while ((inode = world->inodes)) {
		world->inodes = inode->next;
		while (inode->changes)
			drop_change(inode);
		free(inode->name);
		free(inode->seen.data);
		free(inode->kept.data);
		free(inode);
	}
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static struct weft__inode *find(struct weft__world *world, const char *name)
{
	struct weft__inode *inode;

	for (inode = world->inodes; inode; inode = inode->next)
		if (inode->host == weft__world_here() && !inode->gone && !strcmp(inode->name, name))
			return inode;
	return NULL;
}

bool weft__sim_has_file(struct weft__world *world, const char *path)
{
	return find(world, path);
}

static struct weft__inode *create(struct weft__world *world, const char *name, unsigned mode)
{
	struct weft__inode *inode = calloc(1, sizeof *inode);

	if (inode)
		inode->name = copy_of(name);
	if (!inode || !inode->name) {
		free(inode);
		return NULL;
	}
	inode->host = weft__world_here();
	inode->mode = mode & (S_IFDIR | 07777);
	inode->number = ++world->inode_number;
	inode->end = &inode->changes;
	inode->next = world->inodes;
	world->inodes = inode;
	return inode;
}

/* Reports an event of the file under its present name. */
static void tell(struct weft__world *world, const struct weft__inode *inode, uint32_t event)
{
	if (world->watchers)
		weft__sim_tell(world, inode, inode->name, event, 0);
}

/* Reports a use of a descriptor: watches with IN_EXCL_UNLINK do not get it if the file has no name. */
static void tell_use(struct weft__world *world, const struct weft__inode *inode, uint32_t event)
{
	tell(world, inode, event | (inode->gone ? IN_EXCL_UNLINK : 0));
}

/* The last name, or the last descriptor, is gone. */
static void tell_end(struct weft__world *world, const struct weft__inode *inode)
{
	if (inode->gone && !inode->opens)
		tell(world, inode, IN_DELETE_SELF);
}

static int truncate_file(struct weft__world *world, struct weft__inode *inode, size_t size)
{
	struct change *c;

	if (inode->seen.size == size)
		return 0;
	c = new_change(size, 0);
	if (!c || resize(&inode->seen, size)) {
		free(c);
		return -ENOMEM;
	}
	c->truncates = true;
	add_change(inode, c);
	count_bytes(world, inode->host);
	return 0;
}

static bool is_directory(const struct weft__inode *inode)
{
	return inode->mode & S_IFDIR;
}

/* The roots always exist. */
static bool is_root(const char *path)
{
	return !strcmp(path, ".") || !strcmp(path, "/");
}

/* The error for a missing file: -ENOTDIR if a file has the name of a directory in the path; -ENOENT. */
static int why_missing(struct weft__world *world, const char *path)
{
	const struct weft__inode *inode;
	size_t length;

	for (inode = world->inodes; inode; inode = inode->next) {
		length = strlen(inode->name);
		if (inode->host == weft__world_here() && !inode->gone && !is_directory(inode) &&
		    !strncmp(inode->name, path, length) && path[length] == '/')
			return -ENOTDIR;
	}
	return -ENOENT;
}

/* May a file be opened in this way? `inode` NULL: it is to be created. */
static int check_open(struct weft__world *world, const struct weft__inode *inode, const char *path, int flags)
{
	int error = inode ? 0 : why_missing(world, path);

	if (!inode)
		return error == -ENOENT && flags & O_CREAT ? 0 : error;
	if (flags & O_CREAT && flags & O_EXCL)
		return -EEXIST;
	if (!is_directory(inode))
		return flags & O_DIRECTORY ? -ENOTDIR : 0;
	return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC) ? -EISDIR : 0;
}

static struct weft__inode *find_or_root(struct weft__world *world, const char *path)
{
	struct weft__inode *inode = find(world, path);

	return inode || !is_root(path) ? inode : create(world, path, S_IFDIR | 0755);
}

int64_t weft__sim_look_up(struct weft__world *world, const char *path, const struct weft__inode **inode)
{
	if (!path || !*path)
		return path ? -ENOENT : -EFAULT;
	*inode = find_or_root(world, path);
	return *inode ? 0 : is_root(path) ? -ENOMEM : why_missing(world, path);
}

int64_t weft__sim_open(struct weft__world *world, const char *path, int flags, unsigned mode)
{
	struct weft__inode *inode;
	struct weft__node *node;
	bool is_new;
	int error;

	if (!path || !*path)
		return path ? -ENOENT : -EFAULT;
	inode = find_or_root(world, path);
	error = check_open(world, inode, path, flags);
	if (error)
		return error;
	node = weft__node_new(world, WEFT__OPEN_FILE);
	if (!node)
		return -ENOMEM;
	is_new = !inode;
	if (is_new)
		inode = create(world, path, mode);
	else if (flags & O_TRUNC && (flags & O_ACCMODE) != O_RDONLY)
		error = truncate_file(world, inode, 0);
	if (!inode || error) {
		weft__node_drop(node);
		return -ENOMEM;
	}
	node->inode = inode;
	node->flags = flags;
	node->reads = (flags & O_ACCMODE) != O_WRONLY;
	node->writes = (flags & O_ACCMODE) != O_RDONLY;
	inode->opens++;
	if (is_new)
		tell(world, inode, IN_CREATE);
	tell(world, inode, IN_OPEN);
	/* The order of Linux since 6.11. */
	if (!is_new && flags & O_TRUNC && node->writes)
		tell(world, inode, IN_MODIFY);
	return weft__node_describe(world, node);
}

void weft__sim_file_closed(struct weft__world *world, struct weft__node *node, bool crashed)
{
	node->inode->opens--;
	if (crashed)
		return;
	tell_use(world, node->inode, node->writes ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
	tell_end(world, node->inode);
}

void weft__sim_accessed(struct weft__world *world, const struct weft__node *node)
{
	tell_use(world, node->inode, IN_ACCESS);
}

int64_t weft__sim_stat(struct weft__world *world, const weft_io_t *io)
{
	const struct weft__node *node = weft__node_of(world, io->fd);
	const struct weft__inode *inode = NULL;
	const char *path = io->data;
	struct stat *status = io->more;

	if (io->fd >= 0 && (!node || node->kind == WEFT__DEAD))
		return -EBADF;
	if (path && *path)
		inode = find(world, path);
	else if (io->flags & AT_EMPTY_PATH && node)
		inode = node->inode;
	if (!inode && !(node && io->flags & AT_EMPTY_PATH))
		return path && *path ? why_missing(world, path) : -ENOENT;
	memset(status, 0, sizeof *status);
	status->st_nlink = 1;
	status->st_mode = inode		  ? (is_directory(inode) ? 0 : S_IFREG) | inode->mode
			  : node->is_pipe ? S_IFIFO | 0600
					  : S_IFSOCK | 0777;
	if (inode) {
		status->st_ino = inode->number;
		status->st_size = (off_t)inode->seen.size;
		status->st_blksize = SECTOR;
		status->st_blocks = (blkcnt_t)((inode->seen.size + SECTOR - 1) / SECTOR);
	}
	return 0;
}

/* ---- directories, and changes of names --------------------------------------------------------------------------- */

/* The name of an entry within a directory; NULL: it is not in the directory. */
static const char *name_in(const char *directory, const char *name)
{
	size_t length = strlen(directory);
	const char *rest = name;

	if (!strcmp(directory, "/"))
		rest = *name == '/' ? name + 1 : "";
	else if (strcmp(directory, ".") != 0)
		rest = !strncmp(directory, name, length) && name[length] == '/' ? name + length + 1 : "";
	return *rest && !strchr(rest, '/') && !is_root(name) ? rest : NULL;
}

const char *weft__sim_entry(const struct weft__inode *directory, const struct weft__inode *inode, const char *name)
{
	return is_directory(directory) && directory->host == inode->host && directory != inode
		   ? name_in(directory->name, name)
		   : NULL;
}

bool weft__sim_is_directory(const struct weft__inode *inode)
{
	return is_directory(inode);
}

static bool has_entries(struct weft__world *world, const struct weft__inode *directory)
{
	const struct weft__inode *inode;

	for (inode = world->inodes; inode; inode = inode->next)
		if (inode->host == directory->host && !inode->gone && name_in(directory->name, inode->name))
			return true;
	return false;
}

/* The newest entry of the journal has the earlier name. */
static void tell_renaming(struct weft__world *world, const struct weft__inode *inode,
			  const struct weft__inode *replaced)
{
	if (!world->watchers)
		return;
	world->cookie++;
	weft__sim_tell(world, inode, world->renamings->before, IN_MOVED_FROM, world->cookie);
	weft__sim_tell(world, inode, inode->name, IN_MOVED_TO, world->cookie);
	if (replaced)
		tell(world, replaced, IN_ATTRIB);
	tell(world, inode, IN_MOVE_SELF);
	if (replaced)
		tell_end(world, replaced);
}

static int rename_file(struct weft__world *world, struct weft__inode *inode, const char *name, unsigned flags)
{
	struct weft__inode *replaced = find(world, name);
	int error;

	if (flags & ~1u) /* RENAME_NOREPLACE */
		return -EINVAL;
	if (replaced && flags)
		return -EEXIST;
	if (!replaced && why_missing(world, name) != -ENOENT)
		return -ENOTDIR;
	if (replaced == inode)
		return 0;
	if (replaced && is_directory(replaced) != is_directory(inode))
		return is_directory(replaced) ? -EISDIR : -ENOTDIR;
	if (replaced && is_directory(replaced) && has_entries(world, replaced))
		return -ENOTEMPTY;
	if (is_directory(inode) && has_entries(world, inode))
		return -EBUSY; /* the names in it would change as well */
	error = note_renaming(world, inode, replaced, name);
	if (error)
		return error;
	if (replaced)
		count_bytes(world, inode->host);
	tell_renaming(world, inode, replaced);
	return 0;
}

static int remove_name(struct weft__world *world, struct weft__inode *inode, bool directory)
{
	int error;

	if (is_directory(inode) != directory)
		return directory ? -ENOTDIR : -EISDIR;
	if (directory && has_entries(world, inode))
		return -ENOTEMPTY;
	error = note_renaming(world, inode, NULL, NULL);
	if (error)
		return error;
	count_bytes(world, inode->host);
	if (!directory)
		tell(world, inode, IN_ATTRIB);
	/* The order of Linux. */
	tell_end(world, inode);
	tell(world, inode, IN_DELETE);
	return 0;
}

int64_t weft__sim_names(struct weft__world *world, const weft_io_t *io)
{
	const char *path = io->data, *other = io->more;
	struct weft__inode *inode;

	if (io->kind == WEFT_IO_SYMLINK || io->kind == WEFT_IO_LINK)
		return -EPERM;
	if (!path || (io->kind == WEFT_IO_RENAME && !other))
		return -EFAULT;
	inode = find(world, path);
	if (io->kind == WEFT_IO_MKDIR) {
		if (inode || is_root(path))
			return -EEXIST;
		if (why_missing(world, path) != -ENOENT)
			return -ENOTDIR;
		inode = create(world, path, S_IFDIR | (io->length & 0777));
		if (!inode)
			return -ENOMEM;
		tell(world, inode, IN_CREATE);
		return 0;
	}
	if (!inode)
		return why_missing(world, path);
	return io->kind == WEFT_IO_RENAME ? rename_file(world, inode, other, (unsigned)io->flags)
					  : remove_name(world, inode, io->flags & AT_REMOVEDIR);
}

/* In the order of creation: the node's offset is the number of the last entry that was read. */
static int64_t read_entries(struct weft__world *world, struct weft__node *node, char *data, size_t length)
{
	const struct weft__inode *inode, *next;
	size_t done = 0, size;
	struct weft__direntry *entry;

	if (!is_directory(node->inode))
		return -ENOTDIR;
	for (;;) {
		next = NULL;
		for (inode = world->inodes; inode; inode = inode->next)
			if (inode->host == node->inode->host && !inode->gone &&
			    inode->number > (uint64_t)node->offset && (!next || inode->number < next->number) &&
			    name_in(node->inode->name, inode->name))
				next = inode;
		if (!next)
			return (int64_t)done;
		size = (sizeof *entry + strlen(name_in(node->inode->name, next->name)) + 1 + 7) & ~(size_t)7;
		if (size > length - done)
			return done ? (int64_t)done : -EINVAL;
		entry = (struct weft__direntry *)(data + done);
		*entry = (struct weft__direntry){.inode = next->number,
						 .next = (int64_t)next->number,
						 .size = (uint16_t)size,
						 .type = (uint8_t)(is_directory(next) ? DT_DIR : DT_REG)};
		strcpy(entry->name, name_in(node->inode->name, next->name));
		node->offset = (int64_t)next->number;
		done += size;
	}
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Copies a read or write in one piece: through the buffers in turn, at most `length` bytes. */
static void gather(const struct iovec *parts, char *data, size_t length, bool reads)
{
	size_t part;

	for (; length; parts++, length -= part, data += part) {
		part = parts->iov_len < length ? parts->iov_len : length;
		if (!part)
			continue;
		if (reads)
			memcpy(parts->iov_base, data, part);
		else
			memcpy(data, parts->iov_base, part);
	}
}

static int64_t read_file(struct weft__world *world, struct weft__node *node, const struct iovec *parts, size_t length,
			 int64_t offset)
{
	const struct bytes *b = &node->inode->seen;

	if (!node->reads)
		return -EBADF;
	if (weft__world_happens(world, world->profile.disk_error))
		return -EIO;
	if ((uint64_t)offset >= b->size)
		return 0;
	if (length > b->size - (size_t)offset)
		length = b->size - (size_t)offset;
	length = weft__world_shorten(world, length);
	gather(parts, b->data + offset, length, true);
	return (int64_t)length;
}

/* The bytes of a write that fit on the disk; a write does not make a file shorter. */
static size_t fits(struct weft__world *world, const struct weft__inode *inode, uint64_t offset, size_t length)
{
	uint64_t used = world->hosts[inode->host]->bytes, size = inode->seen.size, room;

	if (!world->profile.disk || offset + length <= size)
		return length;
	room = world->profile.disk > used ? world->profile.disk - used : 0;
	return size + room > offset ? (size_t)(size + room - offset < length ? size + room - offset : length) : 0;
}

static int64_t write_file(struct weft__world *world, struct weft__node *node, const struct iovec *parts, size_t length,
			  int64_t offset)
{
	struct weft__inode *inode = node->inode;
	struct change *c;

	if (!node->writes)
		return -EBADF;
	if (!length)
		return 0;
	if (weft__world_happens(world, world->profile.disk_error))
		return -EIO;
	if (offset < 0 || (uint64_t)offset + length > SIZE_MAX / 4)
		return -EFBIG;
	length = weft__world_shorten(world, fits(world, inode, (uint64_t)offset, length));
	if (!length || weft__world_happens(world, world->profile.disk_full))
		return -ENOSPC;
	c = new_change((size_t)offset, length);
	if (!c)
		return -ENOMEM;
	gather(parts, c->data, length, false);
	if (store(&inode->seen, c->offset, c->data, length)) {
		free(c);
		return -ENOMEM;
	}
	add_change(inode, c);
	count_bytes(world, inode->host);
	return (int64_t)length;
}

/* At the operation's offset, or the descriptor's offset. */
static int64_t read_or_write(struct weft__world *world, struct weft__node *node, weft_io_t *io)
{
	bool several = io->kind == WEFT_IO_READV || io->kind == WEFT_IO_WRITEV, own = io->offset == -1;
	bool writes = io->kind == WEFT_IO_WRITE || io->kind == WEFT_IO_WRITEV;
	struct iovec one = {io->data, io->length};
	const struct iovec *parts = several ? io->data : &one;
	size_t i, length = 0, count = several ? io->length : 1;
	int64_t result, offset = own ? node->offset : io->offset;

	for (i = 0; i < count; i++)
		length += parts[i].iov_len;
	if (offset < 0)
		return -EINVAL;
	if (writes && !node->writes)
		return -EBADF;
	if (is_directory(node->inode))
		return several && !length ? 0 : -EISDIR;
	/* Linux does this even if an offset is given. */
	if (writes && node->flags & O_APPEND)
		offset = (int64_t)node->inode->seen.size;
	result =
	    writes ? write_file(world, node, parts, length, offset) : read_file(world, node, parts, length, offset);
	if (own && result > 0)
		node->offset = offset + result;
	if (result > 0)
		tell_use(world, node->inode, writes ? IN_MODIFY : IN_ACCESS);
	return result;
}

/* Sets the size of a file, or with `grows` only raises it. 0, or a negative errno. */
static int64_t set_size(struct weft__world *world, struct weft__node *node, int64_t size, bool grows)
{
	size_t now = node->inode->seen.size;

	if (size < 0 || !node->writes || is_directory(node->inode))
		return -EINVAL;
	if (weft__world_happens(world, world->profile.disk_error))
		return -EIO;
	if ((uint64_t)size > SIZE_MAX / 4)
		return -EFBIG;
	if (grows && (size_t)size <= now)
		return 0;
	if ((size_t)size > now && fits(world, node->inode, now, (size_t)size - now) < (size_t)size - now)
		return -ENOSPC;
	return truncate_file(world, node->inode, (size_t)size);
}

/* fallocate: reserved room is not counted. FALLOC_FL_KEEP_SIZE is 1. */
static int64_t allocate(struct weft__world *world, struct weft__node *node, const weft_io_t *io)
{
	if (!node->writes)
		return -EBADF;
	if (io->offset < 0 || !io->length || io->length > SIZE_MAX / 4)
		return -EINVAL;
	if (io->flags & ~1)
		return -EOPNOTSUPP;
	return io->flags ? 0 : set_size(world, node, io->offset + (int64_t)io->length, true);
}

/* copy_file_range. */
static int64_t copy(struct weft__world *world, struct weft__node *node, const weft_io_t *io)
{
	struct weft__node *to = weft__node_of(world, io->other);
	int64_t *from_at = io->data ? io->data : &node->offset, *to_at, result;
	const char *bytes = NULL;
	struct iovec part;

	if (!to || to->kind != WEFT__OPEN_FILE || !to->inode)
		return to ? -EINVAL : -EBADF;
	to_at = io->more ? io->more : &to->offset;
	if (is_directory(node->inode) || is_directory(to->inode))
		return -EISDIR;
	if (to->flags & O_APPEND)
		return -EBADF;
	if (to->inode == node->inode && io->length && *from_at < *to_at + (int64_t)io->length &&
	    *to_at < *from_at + (int64_t)io->length)
		return -EINVAL;
	result = weft__sim_file_bytes(node, *from_at, io->length, &bytes);
	if (result <= 0)
		return result;
	part = (struct iovec){(void *)(uintptr_t)bytes, (size_t)result};
	result = write_file(world, to, &part, (size_t)result, *to_at);
	if (result > 0) {
		*from_at += result;
		*to_at += result;
		tell_use(world, node->inode, IN_ACCESS);
		tell_use(world, to->inode, IN_MODIFY);
	}
	return result;
}

/* In Linux a program reads an empty directory twice: it finds "." and "..", and then the end. */
static int64_t tell_listed(struct weft__world *world, const struct weft__node *node, int64_t result)
{
	if (result >= 0)
		tell_use(world, node->inode, IN_ACCESS);
	if (!result && !node->offset)
		tell_use(world, node->inode, IN_ACCESS);
	return result;
}

int64_t weft__sim_file(struct weft__world *world, struct weft__node *node, weft_io_t *io)
{
	int64_t result;

	switch (io->kind) {
	case WEFT_IO_READ:
	case WEFT_IO_READV:
	case WEFT_IO_WRITE:
	case WEFT_IO_WRITEV:
		return read_or_write(world, node, io);
	case WEFT_IO_SYNC:
		return sync_file(world, node->inode);
	case WEFT_IO_TRUNCATE:
		result = set_size(world, node, io->offset, false);
		/* Reported by name, as in Linux: watches with IN_EXCL_UNLINK get it, too. */
		if (!result)
			tell(world, node->inode, IN_MODIFY);
		return result;
	case WEFT_IO_ALLOCATE:
		result = allocate(world, node, io);
		if (!result)
			tell_use(world, node->inode, IN_MODIFY);
		return result;
	case WEFT_IO_COPY:
		return copy(world, node, io);
	case WEFT_IO_ENTRIES:
		return tell_listed(world, node, read_entries(world, node, io->data, io->length));
	default:
		return io->kind == WEFT_IO_SPLICE ? -EINVAL : -ENOTSOCK;
	}
}

int64_t weft__sim_file_bytes(const struct weft__node *node, int64_t offset, size_t length, const char **bytes)
{
	const struct bytes *b = &node->inode->seen;

	if (!node->reads)
		return -EBADF;
	if (offset < 0)
		return -EINVAL;
	if ((uint64_t)offset >= b->size)
		return 0;
	*bytes = b->data + offset;
	return (int64_t)(length < b->size - (size_t)offset ? length : b->size - (size_t)offset);
}
