/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checks that no byte goes to the wrong peer: PROGRAM WORKERS FIRST-SEED COUNT.
 *
 * Each file, connection or pipe has a byte of its own, which fills all that is ever read from it or written to it.
 * Operations begin on some of them, by tasks of two runtimes, threads and weft/posix.h's names; when all of them wait,
 * some descriptors are closed or replaced, by any of these users, and their numbers immediately denote new files. An
 * operation must see no byte except its own file's, and must end; the new files must hold all the bytes that were put
 * into them. The other side of each file uses the system's own calls, which do not involve Weft.
 */
#define _GNU_SOURCE
#define WEFT_POSIX_NO_NAMES
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <weft/io.h>
#include <weft/posix.h>

#include "../sched/check.h"
#include "../sched/draw.h"

enum { FILES = 4, MOST = 24, USERS = 7, EVENTS = 10, WORKERS = 8, CHUNK = 1 << 16 };

/* The operation of a user on its file. */
enum { READ, RECV, POLL, SPLICE_FROM, POSIX_READ, POSIX_POLL, WRITE, SEND, SPLICE_TO, SENDFILE, POSIX_WRITE, PREADV };

struct file {
	int fd, peer; /* -1: closed */
	char byte;
	bool full, plain; /* the only wait is for writing; it is not a socket */
	bool fresh;	  /* no user has it: it must hold `put` bytes */
	size_t put;
};

struct user {
	struct file *file;
	int number, way, pipe[2];
	unsigned place; /* index of the user's worker in `beats`; WORKERS: the other runtime; above: a thread */
	unsigned entered;
	bool in, out;
	pid_t thread;
	pthread_t joined;
	char *buffer;
};

static struct world {
	struct file files[MOST];
	struct user users[USERS];
	unsigned count;
	unsigned beats[WORKERS + 1];
	unsigned workers;
	bool stop;
	uint64_t random;
	weft_rt_t *other;
} w;
static unsigned long seed;
static int source; /* a file with CHUNK bytes of each value */

static unsigned get(const unsigned *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_SEQ_CST);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void put(struct file *f, size_t bytes)
{
	char data[256];
	ssize_t n;

	memset(data, f->byte, sizeof data);
	n = f->peer < 0 ? -1 : send(f->peer, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	f->put += n > 0 ? (size_t)n : 0;
}

static struct file *new_file(bool full, bool plain)
{
	struct file *f = &w.files[w.count];
	char data[4096], name[] = "/tmp/weft-owners-XXXXXX";
	int fds[2];

	*f = (struct file){.byte = (char)('A' + w.count++), .full = full, .plain = plain, .peer = -1};
	memset(data, f->byte, sizeof data);
	if (plain) {
		f->fd = mkostemp(name, O_CLOEXEC);
		CHECK(f->fd >= 0 && !unlink(name) && pwrite(f->fd, data, sizeof data, 0) == sizeof data);
		return f;
	}
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	f->fd = fds[0];
	f->peer = fds[1];
	while (full && send(f->fd, data, sizeof data, MSG_DONTWAIT) > 0)
		;
	return f;
}

/* Checks the bytes that have arrived at the other end so far. */
static void drain(const struct file *f)
{
	char data[4096];
	ssize_t n;

	while (f->peer >= 0 && (n = recv(f->peer, data, sizeof data, MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != f->byte) {
				dprintf(1, "not ok - seed %lu: the peer of %c received %c\n", seed, f->byte, data[i]);
				abort();
			}
}

/* Checks that no operation took bytes out of a fresh file. */
static void check_fresh(const struct file *f)
{
	char data[4096];
	size_t all = 0;
	ssize_t n;

	while (!f->plain && (n = recv(f->fd, data, sizeof data, MSG_DONTWAIT)) > 0)
		all += (size_t)n;
	if (all != f->put) {
		dprintf(1, "not ok - seed %lu: %c has %zu of %zu bytes\n", seed, f->byte, all, f->put);
		abort();
	}
}

/* ---- users of the files ------------------------------------------------------------------------------------------ */

static ssize_t use(struct user *u)
{
	struct iovec part = {u->buffer, 64};
	int64_t offset = (u->file->byte - 'A') * CHUNK;
	ssize_t n;

	switch (u->way) {
	case READ:
		return weft_read(u->number, u->buffer, 64);
	case RECV:
		return weft_recv(u->number, u->buffer, 64, 0);
	case POLL:
		n = weft_poll(u->number, POLLIN);
		return n < 0 ? n : 0;
	case SPLICE_FROM:
		n = weft_splice(u->number, u->pipe[1], 64, 0);
		return n > 0 ? read(u->pipe[0], u->buffer, (size_t)n) : n;
	case POSIX_READ:
		n = weft_posix_read(u->number, u->buffer, 64);
		return n < 0 ? -errno : n;
	case POSIX_POLL:
		n = weft_posix_poll(&(struct pollfd){u->number, POLLIN, 0}, 1, -1);
		return n < 0 ? -errno : 0;
	case WRITE:
		n = weft_write_all(u->number, u->buffer, CHUNK);
		return n < 0 ? n : 0;
	case SEND:
		n = weft_send(u->number, u->buffer, CHUNK, 0);
		return n < 0 ? n : 0;
	case SPLICE_TO:
		n = weft_splice(u->pipe[0], u->number, 64, 0);
		return n < 0 ? n : 0;
	case SENDFILE:
		n = weft_sendfile(u->number, source, &offset, CHUNK);
		return n < 0 ? n : 0;
	case POSIX_WRITE:
		n = weft_posix_write(u->number, u->buffer, CHUNK);
		return n < 0 ? -errno : 0;
	default:
		return weft_preadv(u->number, &part, 1, 0);
	}
}

static void *uses(void *user)
{
	struct user *u = user;
	char byte = u->file->byte;
	ssize_t n;

	u->entered = u->place <= WORKERS ? get(&w.beats[u->place]) : 0;
	u->thread = gettid();
	set(&u->in);
	n = use(u);
	if (n < 0 && n != -ECANCELED && n != -EBADF && n != -EPIPE && n != -ECONNRESET) {
		dprintf(1, "not ok - seed %lu: way %d: %s\n", seed, u->way, strerror((int)-n));
		abort();
	}
	for (ssize_t i = 0; i < n; i++)
		if (u->buffer[i] != byte) {
			dprintf(1, "not ok - seed %lu: way %d of %c read %c\n", seed, u->way, byte, u->buffer[i]);
			abort();
		}
	set(&u->out);
	return NULL;
}

/* Occupies the only helper thread for a moment, so that later file operations of other tasks are late. */
static int64_t slow(void *unused)
{
	(void)unused;
	usleep(2000);
	return 0;
}

static void *occupies(void *unused)
{
	(void)weft_call(slow, NULL);
	return unused;
}

static void *beats(void *number)
{
	unsigned *beat = number;

	while (!is_set(&w.stop)) {
		__atomic_fetch_add(beat, 1, __ATOMIC_SEQ_CST);
		(void)weft_sleep(MS / 20);
	}
	return NULL;
}

/* Does the thread wait in a system call? */
static bool waits(pid_t thread)
{
	char path[64], text[16] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
	f = fopen(path, "re");
	if (f && !fgets(text, sizeof text, f))
		*text = 0;
	if (f)
		fclose(f);
	return atoi(text) == SYS_poll && text[0] != '-' && text[0] != 'r';
}

/* Has its operation begun? A task's operation has begun if its worker has run another task since. */
static bool has_begun(struct user *u)
{
	if (!is_set(&u->in))
		return false;
	if (is_set(&u->out))
		return true;
	return u->place <= WORKERS ? get(&w.beats[u->place]) > u->entered + 1 : waits(u->thread);
}

static void *uses_in_thread(void *user)
{
	return uses(user);
}

static bool is_posix_way(const struct user *u)
{
	return u->way == POSIX_READ || u->way == POSIX_POLL || u->way == POSIX_WRITE;
}

static void prepare(struct user *u, struct file *f)
{
	static char buffers[USERS][CHUNK];

	u->file = f;
	u->number = f->fd;
	u->in = u->out = false;
	u->buffer = memset(buffers[u - w.users], f->byte, CHUNK);
	u->way = (int)(f->full ? WRITE + draw(&w.random, PREADV - WRITE) : draw(&w.random, WRITE));
	if (f->plain)
		u->way = PREADV;
	u->place = draw(&w.random, 3) ? draw(&w.random, w.workers) : WORKERS + draw(&w.random, 2);
	/* In a thread these calls are libc's own, or wait in the kernel, where Weft cannot reach them. */
	if (u->place > WORKERS && (is_posix_way(u) || u->way == SPLICE_TO || f->plain))
		u->place = WORKERS;
	CHECK(!pipe2(u->pipe, O_CLOEXEC));
	if (u->way == SPLICE_TO)
		CHECK(write(u->pipe[1], u->buffer, 64) == 64);
}

static void start(struct user *u, weft_scope_t *scope)
{
	const weft_task_attr_t pinned = {.worker = u->place + 1};

	if (u->place < WORKERS)
		CHECK(!weft_scope_spawn_with(scope, NULL, uses, u, &pinned));
	else if (u->place == WORKERS)
		CHECK(!weft_rt_spawn(w.other, uses, u, NULL));
	else
		CHECK(!pthread_create(&u->joined, NULL, uses_in_thread, u));
}

/* ---- changes of files -------------------------------------------------------------------------------------------- */

/* Closes or replaces a file. */
struct change {
	struct file *file, *by;
	int way;
	bool done;
};

/* The next file gets the same number, or a smaller number. A late operation on the old file could take its bytes. */
static void take_number(struct change *c)
{
	c->by = new_file(false, c->file->plain);
	c->by->fresh = true;
	put(c->by, 100);
}

static void *changes(void *change)
{
	struct change *c = change;
	int number = c->file->fd;

	c->file->fd = -1;
	switch (c->way) {
	case 0:
		CHECK(weft_close(number) == 0);
		take_number(c);
		break;
	case 1:
		CHECK(weft_posix_close(number) == 0);
		take_number(c);
		break;
	default:
		take_number(c);
		CHECK(weft_posix_dup2(c->by->fd, number) == number && close(c->by->fd) == 0);
		c->by->fd = number;
	}
	set(&c->done);
	return NULL;
}

/* dup2 ends only waits that use POSIX's names. For weft/io.h, a descriptor must be closed. */
static bool is_posix(const struct file *f)
{
	for (unsigned i = 0; i < USERS; i++)
		if (w.users[i].file == f && !is_posix_way(&w.users[i]))
			return false;
	return true;
}

static void change(struct file *f)
{
	struct change c = {f, NULL, (int)draw(&w.random, is_posix(f) ? 3 : 2), false};
	pthread_t thread;

	switch (draw(&w.random, 3)) {
	case 0:
		(void)changes(&c);
		return;
	case 1:
		CHECK(!weft_rt_spawn(w.other, changes, &c, NULL));
		while (!is_set(&c.done))
			(void)weft_sleep(MS / 20);
		return;
	default:
		CHECK(!pthread_create(&thread, NULL, changes, &c) && !pthread_join(thread, NULL));
	}
}

static void event(void)
{
	struct file *f = &w.files[draw(&w.random, w.count)];

	switch (draw(&w.random, 6)) {
	case 0:
	case 1:
		if (f->fd >= 0 && !f->fresh && w.count < MOST)
			change(f);
		return;
	case 2:
	case 3:
		if (!f->fresh)
			put(f, 1 + draw(&w.random, 100));
		return;
	case 4:
		drain(f);
		return;
	default:
		for (unsigned i = draw(&w.random, 4); i; i--)
			(void)weft_task_yield();
	}
}

static void wait_for_all(void)
{
	for (unsigned i = 0; i < USERS; i++)
		while (!has_begun(&w.users[i]))
			(void)weft_sleep(MS / 20);
}

/* At least one file of each kind has several users. */
static void one_round(void)
{
	WEFT_SCOPE(scope);

	for (unsigned i = 0; i < FILES; i++)
		(void)new_file(i == 1, i == 2);
	CHECK(!weft_scope_spawn(&scope, occupies, NULL));
	for (unsigned i = 0; i < USERS; i++) {
		prepare(&w.users[i], &w.files[draw(&w.random, FILES)]);
		start(&w.users[i], &scope);
	}
	wait_for_all();
	for (unsigned i = 0; i < EVENTS; i++)
		event();
	for (unsigned i = 0; i < w.count; i++) {
		if (w.files[i].fresh)
			check_fresh(&w.files[i]);
		drain(&w.files[i]);
		if (w.files[i].fd >= 0)
			CHECK(weft_close(w.files[i].fd) == 0);
	}
	for (unsigned i = 0; i < USERS; i++) {
		while (!is_set(&w.users[i].out))
			(void)weft_sleep(MS / 20);
		if (w.users[i].place > WORKERS)
			CHECK(!pthread_join(w.users[i].joined, NULL));
		CHECK(!close(w.users[i].pipe[0]) && !close(w.users[i].pipe[1]));
	}
	(void)weft_scope_wait(&scope);
	for (unsigned i = 0; i < w.count; i++) {
		drain(&w.files[i]);
		if (w.files[i].peer >= 0)
			CHECK(!close(w.files[i].peer));
	}
	w.count = 0;
}

static int descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

/* The numbers return to the kernel. A task may end a moment before the last reference to its operation is released. */
static void check_descriptors(int before)
{
	for (int turns = 0; descriptors() != before; turns++) {
		if (turns == 1000) {
			dprintf(1, "not ok - seed %lu: descriptors %d to %d\n", seed, before, descriptors());
			abort();
		}
		(void)weft_sleep(MS);
	}
}

static void *all_rounds(void *rounds)
{
	unsigned long last = seed + *(unsigned long *)rounds;
	int before = 0;

	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < w.workers; i++)
		CHECK(!weft_scope_spawn_with(&scope, NULL, beats, &w.beats[i], &(weft_task_attr_t){.worker = i + 1}));
	for (; seed < last; seed++) {
		alarm(60);
		w.random = seed;
		one_round();
		/* By then each runtime and thread has opened all its descriptors. */
		if (seed + 20 == last)
			before = descriptors();
		if (seed + 20 > last)
			check_descriptors(before);
	}
	set(&w.stop);
	(void)weft_scope_wait(&scope);
	return NULL;
}

/* ---- the other runtime ------------------------------------------------------------------------------------------- */

static void *other_first(void *started)
{
	__atomic_store_n(&w.other, weft_rt_current(), __ATOMIC_SEQ_CST);
	(void)started;
	return beats(&w.beats[WORKERS]);
}

static void *other(void *unused)
{
	const weft_rt_config_t config = {.workers = 1};

	CHECK(!weft_rt_run(&config, other_first, NULL, NULL));
	return unused;
}

static void hangs(int number)
{
	(void)number;
	for (struct user *u = w.users; u < w.users + USERS; u++)
		if (!is_set(&u->out))
			dprintf(1, "not ok - seed %lu: way %d of %c at place %u %s\n", seed, u->way, u->file->byte,
				u->place, has_begun(u) ? "does not end" : "does not begin");
	_exit(1);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;
	char name[] = "/tmp/weft-owners-XXXXXX", data[CHUNK];
	weft_rt_config_t config = {.helpers = 1};
	pthread_t thread;

	w.workers = config.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	CHECK(w.workers <= WORKERS);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, hangs);
	source = mkostemp(name, O_CLOEXEC);
	CHECK(source >= 0 && !unlink(name));
	for (int i = 0; i < MOST; i++)
		CHECK(write(source, memset(data, 'A' + i, CHUNK), CHUNK) == CHUNK);
	CHECK(!pthread_create(&thread, NULL, other, NULL));
	while (!__atomic_load_n(&w.other, __ATOMIC_SEQ_CST))
		usleep(100);
	CHECK(!weft_rt_run(&config, all_rounds, &rounds, NULL) && !pthread_join(thread, NULL));
	printf("ok - %lu rounds\n", rounds);
	return 0;
}
