/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Changes of files: random calls are made in a simulation and, by POSIX, in a real directory that the kernel's inotify
 * watches. Both must report the same changes. PROGRAM SEED COUNT
 */
#define _GNU_SOURCE
#include "../sched/check.h"
#include "../sched/draw.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <weft/sim.h>

enum { NAMES = 5, CALLS = 60, OPEN = 3, CHANGES = 512 };

static const char *const names[NAMES] = {"d", "d/a", "d/b", "d/in", "d/other"};

enum what {
	OPENS,
	CLOSES,
	READS,
	WRITES,
	TRUNCATES,
	ALLOCATES,
	COPIES,
	RENAMES,
	UNLINKS,
	MAKES,
	REMOVES,
	LISTS,
	ADDS,
	DROPS,
	WHATS
};

struct call {
	enum what what;
	int name, other, slot, second;
	uint32_t flags;
};

/* A side makes the calls, and keeps the reported changes. */
struct side {
	bool real;
	char root[64];
	weft_file_watch_t watch;
	int fds[OPEN];
	int count;
	weft_file_change_t changes[CHANGES];
};

static uint64_t numbers;

static const char *path_of(const struct side *s, int name, char *path, size_t size)
{
	snprintf(path, size, "%s%s", s->root, names[name]);
	return path;
}

static int64_t real(int64_t result)
{
	return result < 0 ? -errno : result;
}

static int list_real(const char *path)
{
	DIR *directory = opendir(path);
	int error = errno;

	if (!directory)
		return -error;
	while (readdir(directory))
		;
	closedir(directory);
	return 0;
}

static int list_simulated(const char *path)
{
	int fd = weft_open(path, O_RDONLY | O_DIRECTORY, 0);
	weft_dir_t directory;
	weft_dirent_t entry;

	if (fd < 0)
		return fd;
	directory = weft_dir(fd);
	while (weft_readdir(&directory, &entry) > 0)
		;
	return weft_close(fd);
}

/* Has each descriptor that the call needs been opened, and is the slot free if the call opens a file? */
static bool is_possible(const struct side *s, const struct call *c)
{
	const int fd = s->fds[c->slot];

	if (c->what == OPENS)
		return fd < 0;
	if (c->what == COPIES)
		return fd >= 0 && s->fds[c->second] >= 0 && c->slot != c->second;
	return c->what > COPIES || fd >= 0;
}

static int64_t call_real(struct side *s, const struct call *c)
{
	char path[128], other[128], data[16] = "";
	int *fd = &s->fds[c->slot], second = s->fds[c->second];

	path_of(s, c->name, path, sizeof path);
	path_of(s, c->other, other, sizeof other);
	switch (c->what) {
	case OPENS:
		return (*fd = open(path, (int)c->flags | O_CLOEXEC, 0600)) < 0 ? -errno : 0;
	case CLOSES:
		return real(close(*fd));
	case READS:
		return real(pread(*fd, data, 8, 0));
	case WRITES:
		return real(pwrite(*fd, "abc", 3, 0));
	case TRUNCATES:
		return real(ftruncate(*fd, 2));
	case ALLOCATES:
		return real(fallocate(*fd, 0, 0, 4));
	case COPIES:
		return real(copy_file_range(*fd, &(off64_t){0}, second, &(off64_t){8}, 4, 0));
	case RENAMES:
		return real(renameat2(AT_FDCWD, path, AT_FDCWD, other, c->flags & 1));
	case UNLINKS:
		return real(unlink(path));
	case MAKES:
		return real(mkdir(path, 0700));
	case REMOVES:
		return real(rmdir(path));
	case LISTS:
		return list_real(path);
	case ADDS:
		return real(inotify_add_watch(s->watch.fd, path, c->flags));
	default:
		return real(inotify_rm_watch(s->watch.fd, (int)c->flags));
	}
}

static int64_t call_simulated(struct side *s, const struct call *c)
{
	char path[128], other[128], data[16] = "";
	int *fd = &s->fds[c->slot], second = s->fds[c->second];
	int64_t from = 0, to = 8;

	path_of(s, c->name, path, sizeof path);
	path_of(s, c->other, other, sizeof other);
	switch (c->what) {
	case OPENS:
		return (*fd = weft_open(path, (int)c->flags, 0600)) < 0 ? *fd : 0;
	case CLOSES:
		return weft_close(*fd);
	case READS:
		return weft_pread(*fd, data, 8, 0);
	case WRITES:
		return weft_pwrite(*fd, "abc", 3, 0);
	case TRUNCATES:
		return weft_ftruncate(*fd, 2);
	case ALLOCATES:
		return weft_fallocate(*fd, 0, 0, 4);
	case COPIES:
		return weft_copy_file_range(*fd, &from, second, &to, 4);
	case RENAMES:
		return weft_renameat(AT_FDCWD, path, AT_FDCWD, other, c->flags & 1);
	case UNLINKS:
		return weft_unlink(path);
	case MAKES:
		return weft_mkdir(path, 0700);
	case REMOVES:
		return weft_rmdir(path);
	case LISTS:
		return list_simulated(path);
	case ADDS:
		return weft_file_watch_add(&s->watch, path, c->flags);
	default:
		return weft_file_watch_remove(&s->watch, (int)c->flags);
	}
}

/* Takes all pending changes. */
static void take(struct side *s)
{
	struct pollfd p = {s->watch.fd, POLLIN, 0};
	bool more;

	for (;;) {
		more = s->watch.at < s->watch.end ||
		       (s->real ? poll(&p, 1, 0) == 1 : weft_poll_until(s->watch.fd, POLLIN, 0) == POLLIN);
		if (!more || s->count == CHANGES)
			return;
		if (s->real && s->watch.at >= s->watch.end) {
			s->watch.at = 0;
			s->watch.end = (unsigned)read(s->watch.fd, s->watch.events, sizeof s->watch.events);
		}
		CHECK(s->real ? weft__next_change(&s->watch, &s->changes[s->count])
			      : !weft_file_watch_next(&s->watch, &s->changes[s->count]));
		s->count++;
	}
}

static struct call draw_call(void)
{
	/* Without O_TRUNC, because its change is reported before or after the open, depending on the version
	 * of Linux. */
	static const uint32_t opens[] = {O_RDONLY,
					 O_RDWR,
					 O_WRONLY | O_CREAT,
					 O_RDWR | O_CREAT,
					 O_WRONLY | O_CREAT | O_EXCL,
					 O_RDONLY | O_DIRECTORY};
	static const uint32_t adds[] = {IN_ALL_EVENTS,
					IN_CREATE | IN_DELETE,
					IN_MODIFY | IN_MASK_ADD,
					IN_OPEN | IN_ONESHOT,
					IN_MOVE | IN_MOVE_SELF,
					IN_ALL_EVENTS | IN_ONLYDIR,
					IN_CLOSE | IN_DELETE_SELF,
					IN_ALL_EVENTS | IN_EXCL_UNLINK,
					0};
	struct call c = {.what = (enum what)draw(&numbers, WHATS),
			 .slot = (int)draw(&numbers, OPEN),
			 .second = (int)draw(&numbers, OPEN)};

	c.name = (int)draw(&numbers, NAMES);
	c.other = 1 + (int)draw(&numbers, NAMES - 1);
	if (c.what == OPENS)
		c.flags = opens[draw(&numbers, sizeof opens / sizeof *opens)];
	else if (c.what == ADDS)
		c.flags = adds[draw(&numbers, sizeof adds / sizeof *adds)];
	else
		c.flags = draw(&numbers, 6);
	/* A directory that a simulation renames has no entries, and is not the directory of the other files. */
	if (c.name == 0 && (c.what == RENAMES || c.what == REMOVES || c.what == UNLINKS))
		c.name = 1 + (int)draw(&numbers, NAMES - 1);
	return c;
}

static bool same_changes(const struct side *a, const struct side *b, unsigned long seed)
{
	for (int i = 0; i < a->count || i < b->count; i++) {
		const weft_file_change_t *x = &a->changes[i], *y = &b->changes[i];

		if (i < a->count && i < b->count && x->watch == y->watch && x->events == y->events &&
		    !x->cookie == !y->cookie && !strcmp(x->name, y->name))
			continue;
		printf("not ok - seed %lu, change %d: ", seed, i);
		if (i < a->count)
			printf("%d %x '%s', ", x->watch, x->events, x->name);
		printf("not ");
		if (i < b->count)
			printf("%d %x '%s'", y->watch, y->events, y->name);
		printf("\n");
		return false;
	}
	return true;
}

static unsigned long seed;

static void *one_seed(void *good)
{
	static struct side sides[2];
	struct call c;
	int64_t ours, theirs;
	int i, k;

	CHECK(!weft_world_set(&(weft_world_t){.flags = WEFT_WORLD_WHOLE}));
	memset(sides, 0, sizeof sides);
	sides[1].real = true;
	snprintf(sides[1].root, sizeof sides[1].root, "/tmp/weft-watch-%d/", getpid());
	CHECK(!mkdir(sides[1].root, 0700) && (sides[1].watch.fd = inotify_init1(IN_CLOEXEC)) >= 0);
	CHECK(!weft_file_watch_open(&sides[0].watch));
	for (i = 0; i < 2 * OPEN; i++)
		sides[i / OPEN].fds[i % OPEN] = -1;
	for (i = 0; i < CALLS; i++) {
		c = i ? draw_call() : (struct call){.what = MAKES};
		if (i == 1 && seed % 4)
			c = (struct call){.what = ADDS, .flags = IN_ALL_EVENTS | (seed % 4 == 1 ? IN_EXCL_UNLINK : 0)};
		if (is_possible(&sides[1], &c)) {
			ours = call_simulated(&sides[0], &c);
			theirs = call_real(&sides[1], &c);
		} else {
			ours = theirs = 0;
		}
		if (c.what == CLOSES)
			sides[0].fds[c.slot] = sides[1].fds[c.slot] = -1;
		if (ours != theirs) {
			printf("not ok - seed %lu, call %d: %d of %s, %s, %x: %s, not %s\n", seed, i, c.what,
			       names[c.name], names[c.other], c.flags, strerror((int)-ours), strerror((int)-theirs));
			return NULL;
		}
		if (!draw(&numbers, 4) || i == CALLS - 1)
			for (k = 0; k < 2; k++)
				take(&sides[k]);
		if (!same_changes(&sides[0], &sides[1], seed)) {
			printf("not ok - after call %d: %d of %s, %s\n", i, c.what, names[c.name], names[c.other]);
			return NULL;
		}
	}
	*(int *)good += sides[0].count;
	for (i = 0; i < OPEN; i++)
		if (sides[1].fds[i] >= 0)
			close(sides[1].fds[i]);
	close(sides[1].watch.fd);
	return good;
}

/* A reader waits until the change of another task wakes it. */
static void *changes(void *unused)
{
	int fd;

	(void)unused;
	weft_sleep(SECOND);
	fd = weft_open("d/x", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && !weft_close(fd));
	return NULL;
}

static void *waits(void *good)
{
	weft_file_watch_t watch;
	weft_file_change_t change;
	uint64_t begin = weft_now();

	CHECK(!weft_mkdir("d", 0700) && !weft_file_watch_open(&watch));
	CHECK(weft_file_watch_add(&watch, "d", IN_CREATE) == 1);
	CHECK(weft_file_watch_next_until(&watch, &change, weft_now() + MS) == -ETIMEDOUT);
	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, changes, NULL));
	CHECK(!weft_file_watch_next(&watch, &change) && weft_now() - begin >= SECOND);
	CHECK(change.watch == 1 && change.events == IN_CREATE && !strcmp(change.name, "x") && !change.cookie);
	CHECK(!weft_scope_wait(&scope) && !weft_close(watch.fd));
	CHECK(weft_file_watch_remove(&watch, 1) == -EBADF);
	return good;
}

int main(int argc, char **argv)
{
	unsigned long last;
	char command[128];
	int told = 0;
	void *result = NULL;

	seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	last = seed + (argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
	CHECK(!weft_simulate(seed, NULL, waits, &told, &result) && result == &told);
	snprintf(command, sizeof command, "rm -rf /tmp/weft-watch-%d", getpid());
	for (; seed < last; seed++) {
		numbers = seed * 77 + 1;
		result = NULL;
		if (weft_simulate(seed, NULL, one_seed, &told, &result) || !result) {
			(void)!system(command);
			return 1;
		}
		CHECK(!system(command));
	}
	CHECK(told > 10 * (int)(argc > 2));
	printf("ok - %d changes\n", told);
	return 0;
}
