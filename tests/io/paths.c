/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths: the files that weft_listen replaces; names, directories and sizes of files; FIFOs. By a thread, by tasks on
 * both back ends, and, except for sockets and FIFOs, by tasks of a simulation.
 *
 *   paths WORKERS [NAME]; 0: in a thread; simulate SEEDS
 */
#define _GNU_SOURCE
#include "../sched/check.h"
#include "../sched/draw.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/un.h>
#include <weft/io.h>

static char root[] = "/tmp/weft-paths-XXXXXX", path[64];

/* ---- listening at a path ----------------------------------------------------------------------------------------- */

/* A socket that is bound to the path without Weft. */
static int bound(int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&un, sizeof un) == 0);
	return fd;
}

/* The listen fails, and the file remains unchanged. */
static void refused(mode_t kind)
{
	struct stat before, after;

	CHECK(lstat(path, &before) == 0 && (before.st_mode & S_IFMT) == kind);
	CHECK(weft_listen(path, 0, 0, 0) == -EADDRINUSE && weft_listen(path, 0, 0, WEFT_LISTEN_UDP) == -EADDRINUSE);
	CHECK(lstat(path, &after) == 0 && after.st_ino == before.st_ino && after.st_mode == before.st_mode);
}

static void *only_stale_sockets_are_replaced(void *pass)
{
	int fd, other, type;

	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(write(fd, "data", 4) == 4 && close(fd) == 0);
	refused(S_IFREG);
	CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	refused(S_IFIFO);
	CHECK(unlink(path) == 0 && symlink("nothing", path) == 0);
	refused(S_IFLNK);
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
	refused(S_IFDIR);
	CHECK(rmdir(path) == 0);
	for (type = SOCK_STREAM; type <= SOCK_SEQPACKET; type++) {
		if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET)
			continue;
		fd = bound(type);
		refused(S_IFSOCK);
		if (type != SOCK_DGRAM) {
			CHECK(listen(fd, 1) == 0);
			refused(S_IFSOCK);
			CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
			CHECK(accept(fd, NULL, NULL) < 0 && errno == EAGAIN); /* the server sees no connection */
		}
		CHECK(close(fd) == 0);
		fd = weft_listen(path, 0, 0, 0);
		CHECK(fd >= 0);
		refused(S_IFSOCK);
		other = weft_dial(path, NULL);
		CHECK(other >= 0 && weft_close(other) == 0 && weft_close(fd) == 0 && unlink(path) == 0);
	}
	return pass;
}

enum { RIVALS = 4, ROUNDS = 60 };

static pthread_barrier_t start;

static void *listens(void *fd)
{
	pthread_barrier_wait(&start);
	*(int *)fd = weft_listen(path, 0, 0, 0);
	return NULL;
}

/* Several threads find the same stale socket: one of them listens there, and keeps its file. */
static void *one_rival_listens(void *pass)
{
	pthread_t threads[RIVALS];
	int fds[RIVALS], i, round, client, served;

	CHECK(pthread_barrier_init(&start, NULL, RIVALS) == 0);
	for (round = 0; round < ROUNDS; round++) {
		CHECK(close(bound(SOCK_STREAM)) == 0);
		for (i = 0; i < RIVALS; i++)
			CHECK(pthread_create(&threads[i], NULL, listens, &fds[i]) == 0);
		for (i = 0; i < RIVALS; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
		client = weft_dial(path, NULL);
		CHECK(client >= 0);
		for (served = i = 0; i < RIVALS; i++) {
			CHECK(fds[i] >= 0 || fds[i] == -EADDRINUSE);
			if (fds[i] < 0)
				continue;
			CHECK(!served++ && weft_close(weft_accept(fds[i], NULL, NULL, 0)) == 0);
			CHECK(weft_close(fds[i]) == 0);
		}
		CHECK(served == 1 && weft_close(client) == 0 && unlink(path) == 0);
	}
	return pass;
}

/* ---- names, directories, sizes ----------------------------------------------------------------------------------- */

static bool simulated; /* the simulated world has only one name for each file */

static int64_t size_of(const char *name)
{
	struct stat status;
	int error = weft_fstatat(AT_FDCWD, name, &status, 0);

	return error ? error : status.st_size;
}

static void make(const char *name, const char *text)
{
	int fd = weft_open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	CHECK(fd >= 0 && weft_write_all(fd, text, strlen(text)) == (ssize_t)strlen(text) && weft_close(fd) == 0);
}

static void *names_change(void *pass)
{
	char one[80], two[80], text[16] = "";

	snprintf(one, sizeof one, "%s/one", root);
	snprintf(two, sizeof two, "%s/two", root);
	make(one, "1");
	make(two, "two");
	CHECK(weft_rename(one, two) == 0 && size_of(one) == -ENOENT && size_of(two) == 1);
	CHECK(weft_rename(one, two) == -ENOENT);
	make(one, "new");
	CHECK(weft_renameat(AT_FDCWD, one, AT_FDCWD, two, RENAME_NOREPLACE) == -EEXIST && size_of(two) == 1);
	CHECK(weft_renameat(AT_FDCWD, one, AT_FDCWD, two, 1u << 20) == -EINVAL);
	CHECK(weft_unlink(one) == 0 && weft_unlink(one) == -ENOENT && weft_rmdir(two) == -ENOTDIR);
	if (simulated) {
		CHECK(weft_link(two, one) == -EPERM && weft_symlink("two", one) == -EPERM);
	} else {
		CHECK(weft_link(two, one) == 0 && weft_link(two, one) == -EEXIST && size_of(one) == 1);
		CHECK(weft_unlink(one) == 0 && weft_symlink("two", one) == 0 && size_of(one) == 1);
		CHECK(readlink(one, text, sizeof text) == 3 && !strcmp(text, "two") && weft_unlink(one) == 0);
	}
	CHECK(weft_unlinkat_until(AT_FDCWD, two, 0, weft_now() + SECOND) == 0 && size_of(two) == -ENOENT);
	return pass;
}

enum { FILES = 150 }; /* more entries than one read of the directory returns */

static void *directories(void *pass)
{
	static bool seen[FILES];
	char directory[80], name[160];
	int fd, i, found = 0, count = 0;
	weft_dirent_t entry;
	weft_dir_t reader;

	snprintf(directory, sizeof directory, "%s/directory", root);
	CHECK(weft_mkdir(directory, 0750) == 0 && weft_mkdir(directory, 0700) == -EEXIST);
	CHECK(weft_open(directory, O_WRONLY, 0) == -EISDIR && weft_unlink(directory) == -EISDIR);
	fd = weft_open(directory, O_RDONLY | O_DIRECTORY, 0);
	CHECK(fd >= 0);
	reader = weft_dir(fd);
	CHECK(weft_readdir(&reader, &entry) == 0);
	memset(seen, 0, sizeof seen);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "%s/a file with a long name, number %d", directory, i);
		make(name, "");
	}
	CHECK(weft_close(fd) == 0);
	reader = weft_dir(weft_open(directory, O_RDONLY | O_DIRECTORY, 0));
	while (weft_readdir(&reader, &entry) == 1) {
		CHECK(sscanf(entry.name, "a file with a long name, number %d", &i) == 1 && i >= 0 && i < FILES);
		CHECK(!seen[i] && entry.inode);
		found += seen[i] = true;
		count++;
	}
	CHECK(found == FILES && count == FILES && weft_rmdir(directory) == -ENOTEMPTY);
	CHECK(weft_read(reader.fd, name, 1) < 0 && weft_close(reader.fd) == 0);
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "%s/a file with a long name, number %d", directory, i);
		CHECK(weft_unlink(name) == 0);
	}
	CHECK(weft_rmdir(directory) == 0 && weft_rmdir(directory) == -ENOENT);
	return pass;
}

static void *sizes(void *pass)
{
	char one[80], two[80], text[16];
	int64_t from_at = 2, to_at = 1;
	int from, to;

	snprintf(one, sizeof one, "%s/one", root);
	snprintf(two, sizeof two, "%s/two", root);
	make(one, "0123456789");
	make(two, "");
	from = weft_open(one, O_RDWR, 0);
	to = weft_open(two, O_RDWR, 0);
	CHECK(weft_ftruncate(from, 5) == 0 && size_of(one) == 5 && weft_ftruncate(from, 8) == 0 && size_of(one) == 8);
	CHECK(weft_read_all(from, text, 8) == 8 && !memcmp(text, "01234\0\0\0", 8));
	CHECK(weft_ftruncate(from, -1) == -EINVAL && weft_ftruncate(1 << 19, 0) == -EBADF);
	CHECK(weft_fallocate(from, 0, 4, 100) == 0 && size_of(one) == 104);
	CHECK(weft_fallocate(from, FALLOC_FL_KEEP_SIZE, 0, 1000) == 0 && size_of(one) == 104);
	CHECK(weft_fallocate(from, 0, 0, 0) == -EINVAL);
	while (to_at < 4)
		CHECK(weft_copy_file_range(from, &from_at, to, &to_at, (size_t)(4 - to_at)) > 0);
	CHECK(from_at == 5 && size_of(two) == 4);
	CHECK(weft_pread(to, text, 1, 3) == 1 && *text == '4');
	from_at = 104;
	CHECK(weft_copy_file_range(from, &from_at, to, NULL, 10) == 0);
	CHECK(weft_close(from) == 0 && weft_close(to) == 0 && weft_unlink(one) == 0 && weft_unlink(two) == 0);
	return pass;
}

/* ---- FIFOs ------------------------------------------------------------------------------------------------------- */

enum { LONG = 5000 };

static int open_until(int flags, uint64_t milliseconds)
{
	return weft_openat_until(AT_FDCWD, path, flags, 0600, milliseconds ? weft_now() + milliseconds * MS : 0);
}

static void *write_and_go(void *unused)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "w", 1) == 1 && close(fd) == 0);
	return unused;
}

static void *read_and_go(void *unused)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char c = 0;

	CHECK(fd >= 0 && read(fd, &c, 1) == 1 && c == 'r' && close(fd) == 0);
	return unused;
}

static void *an_open_waits(void *pass)
{
	pthread_t thread;
	char c = 0;
	int fd;

	CHECK(mkfifo(path, 0600) == 0);
	CHECK(open_until(O_RDONLY, 5) == -ETIMEDOUT && open_until(O_WRONLY, 5) == -ETIMEDOUT);
	CHECK(open_until(O_RDONLY, 0) == -ETIMEDOUT && open_until(O_WRONLY, 0) == -ETIMEDOUT);
	CHECK(open_until(O_WRONLY | O_CREAT | O_TRUNC, 5) == -ETIMEDOUT);
	CHECK(open_until(O_WRONLY | O_CREAT | O_EXCL, LONG) == -EEXIST);
	CHECK(open_until(O_RDONLY | O_DIRECTORY, LONG) == -ENOTDIR);
	CHECK(open_until(O_WRONLY | O_NONBLOCK, LONG) == -ENXIO);
	fd = open_until(O_RDWR, LONG);
	CHECK(fd >= 0 && weft_close(fd) == 0);
	/* The writer may have closed the FIFO before the reader looks. */
	CHECK(pthread_create(&thread, NULL, write_and_go, NULL) == 0);
	fd = weft_open(path, O_RDONLY, 0);
	CHECK(fd >= 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK) && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(weft_read(fd, &c, 1) == 1 && c == 'w' && weft_read(fd, &c, 1) == 0 && weft_close(fd) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && pthread_create(&thread, NULL, read_and_go, NULL) == 0);
	fd = weft_open(path, O_WRONLY, 0);
	CHECK(fd >= 0 && weft_write(fd, "r", 1) == 1 && weft_close(fd) == 0 && pthread_join(thread, NULL) == 0);
	CHECK(unlink(path) == 0);
	return pass;
}

/* A file with a lease: an open waits until the holder releases the lease. */
static void *an_open_waits_for_a_lease(void *pass)
{
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && signal(SIGIO, SIG_IGN) != SIG_ERR);
	if (fcntl(fd, F_SETLEASE, F_WRLCK)) {
		printf("skip - no leases here: %s\n", strerror(errno));
	} else {
		CHECK(open_until(O_RDONLY, 5) == -ETIMEDOUT && open_until(O_RDONLY | O_NONBLOCK, LONG) == -EAGAIN);
		CHECK(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
	}
	CHECK(close(fd) == 0);
	fd = open_until(O_RDONLY | O_APPEND, LONG);
	CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND)) == O_APPEND);
	CHECK(weft_close(fd) == 0 && unlink(path) == 0);
	return pass;
}

static void *opens(void *flags)
{
	return (void *)(intptr_t)weft_open(path, *(int *)flags, 0);
}

static void *waiting_opens_hold_no_thread(void *pass)
{
	static int modes[] = {O_WRONLY, O_WRONLY | O_CREAT | O_TRUNC};
	char name[80];

	CHECK(mkfifo(path, 0600) == 0);
	snprintf(name, sizeof name, "%s/file", root);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 300; i++)
		CHECK(weft_scope_spawn(&scope, opens, &modes[i % 2]) == 0);
	CHECK(weft_sleep(20 * MS) == 0);
	make(name, "text");
	CHECK(size_of(name) == 4 && weft_unlink(name) == 0);
	weft_scope_cancel(&scope, -EINTR);
	CHECK(weft_scope_wait(&scope) == -EINTR && unlink(path) == 0);
	return pass;
}

/* Opens a FIFO, by a task, or by open(2) in a thread. */
struct opener {
	const char *path;
	bool reads, is_task;
	int fd; /* atomic: PENDING, a descriptor, or a negative errno */
	pthread_t thread;
	weft_task_t task;
};

enum { OPENERS = 10, FIFO_ROUNDS = 12, FIFO_STEPS = 14, PENDING = 1 << 20, PATIENCE = LONG };

static int state_of(struct opener *o)
{
	return __atomic_load_n(&o->fd, __ATOMIC_ACQUIRE);
}

static void *open_fifo(void *opener)
{
	struct opener *o = opener;
	int fd, flags = (o->reads ? O_RDONLY : O_WRONLY) | O_CLOEXEC;

	if (o->is_task) {
		fd = weft_open(o->path, flags, 0);
	} else {
		fd = open(o->path, flags);
		fd = fd < 0 ? -errno : fd;
	}
	__atomic_store_n(&o->fd, fd, __ATOMIC_RELEASE);
	return NULL;
}

static void begin_opener(weft_scope_t *scope, struct opener *o)
{
	o->fd = PENDING;
	if (o->is_task)
		CHECK(weft_scope_spawn_with(scope, &o->task, open_fifo, o, NULL) == 0);
	else
		CHECK(pthread_create(&o->thread, NULL, open_fifo, o) == 0);
}

static void end_opener(struct opener *o)
{
	if (o->is_task)
		weft_task_cancel(&o->task);
	while (!o->is_task && state_of(o) == PENDING) {
		CHECK(pthread_kill(o->thread, SIGUSR1) == 0);
		CHECK(weft_sleep(MS) == 0);
	}
	if (o->is_task)
		(void)weft_join(&o->task, NULL);
	else
		CHECK(pthread_join(o->thread, NULL) == 0);
	if (state_of(o) >= 0 && state_of(o) != PENDING)
		CHECK(o->is_task ? weft_close(o->fd) == 0 : close(o->fd) == 0);
}

static bool agree(struct opener *ours, struct opener *oracle, const bool *used)
{
	for (int i = 0; i < OPENERS; i++)
		if (used[i] && (state_of(&ours[i]) == PENDING) != (state_of(&oracle[i]) == PENDING))
			return false;
	return true;
}

static void one_round(uint64_t *numbers, const char *other)
{
	struct opener ours[OPENERS], oracle[OPENERS];
	bool used[OPENERS] = {false};
	int step, i, patience;

	WEFT_SCOPE(scope);
	for (step = 0; step < FIFO_STEPS + OPENERS; step++) {
		i = step < FIFO_STEPS ? (int)draw(numbers, OPENERS) : step - FIFO_STEPS;
		if (used[i]) {
			end_opener(&ours[i]);
			end_opener(&oracle[i]);
		} else if (step < FIFO_STEPS) {
			oracle[i] = (struct opener){.path = other, .reads = draw(numbers, 2)};
			ours[i] = (struct opener){.path = path, .reads = oracle[i].reads, .is_task = draw(numbers, 4)};
			begin_opener(&scope, &oracle[i]);
			begin_opener(&scope, &ours[i]);
		}
		used[i] = !used[i] && step < FIFO_STEPS;
		/* The threads of the oracle need a moment, too. */
		CHECK(weft_sleep(3 * MS) == 0);
		for (patience = PATIENCE; !agree(ours, oracle, used) && patience; patience--)
			CHECK(weft_sleep(MS) == 0);
		CHECK(patience);
	}
}

static void interrupts(int number)
{
	(void)number;
}

static void *opens_end_as_in_threads(void *pass)
{
	const struct sigaction action = {.sa_handler = interrupts, .sa_flags = SA_ONSTACK};
	char other[80];
	uint64_t numbers = 1;

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	snprintf(other, sizeof other, "%s/other", root);
	CHECK(mkfifo(path, 0600) == 0 && mkfifo(other, 0600) == 0);
	for (int i = 0; i < FIFO_ROUNDS; i++)
		one_round(&numbers, other);
	CHECK(unlink(path) == 0 && unlink(other) == 0);
	return pass;
}

/* ---- reads of a file that is partly in the page cache ----------------------------------------------------------- */

enum { PAGES = 24, PARTS = 3, READS = 400 };

/* Drops some pages from the page cache. On a file system that lives in the cache they remain. */
static void forget_some(int fd, uint64_t *random)
{
	off_t from = 4096 * (off_t)draw(random, PAGES);

	CHECK(posix_fadvise(fd, from, 4096 * (off_t)draw(random, PAGES), POSIX_FADV_DONTNEED) == 0);
}

/* Reads some bytes at some position, in one of four ways, by Weft and by the system. */
static void read_as_the_system(int fd, int twin, uint64_t *random)
{
	static char bytes[2][PAGES * 4096];
	struct iovec parts[2][PARTS];
	size_t length = draw(random, PAGES * 4096), left = length;
	const unsigned way = draw(random, 4);
	const off_t at = draw(random, PAGES * 4096);
	int64_t results[2];

	for (int i = 0; i < PARTS; i++) {
		size_t size = i == PARTS - 1 ? left : draw(random, (uint32_t)left + 1);

		for (int k = 0; k < 2; k++)
			parts[k][i] = (struct iovec){bytes[k] + length - left, size};
		left -= size;
	}
	memset(bytes, 0, sizeof bytes);
	CHECK(lseek(fd, at, SEEK_SET) == at && lseek(twin, at, SEEK_SET) == at);
	if (way == 0) {
		results[0] = weft_read(fd, bytes[0], length);
		results[1] = read(twin, bytes[1], length);
	} else if (way == 1) {
		results[0] = weft_pread(fd, bytes[0], length, at);
		results[1] = pread(twin, bytes[1], length, at);
	} else if (way == 2) {
		results[0] = weft_preadv(fd, parts[0], PARTS, -1);
		results[1] = readv(twin, parts[1], PARTS);
	} else {
		results[0] = weft_preadv(fd, parts[0], PARTS, at);
		results[1] = preadv(twin, parts[1], PARTS, at);
	}
	CHECK(results[0] == results[1] && !memcmp(bytes[0], bytes[1], sizeof *bytes));
	CHECK(lseek(fd, 0, SEEK_CUR) == lseek(twin, 0, SEEK_CUR));
}

/* A read of a file is short only at its end. */
static void *reads_are_whole(void *pass)
{
	uint64_t random = 1, seed = 2;
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600), twin;
	char page[4096];

	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0);
	for (int i = 0; i < PAGES; i++) {
		for (size_t k = 0; k < sizeof page; k++)
			page[k] = (char)draw(&seed, 256);
		CHECK(write(fd, page, i == PAGES - 1 ? 1000 : sizeof page) > 0);
	}
	twin = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fsync(fd) == 0 && twin >= 0);
	for (int i = 0; i < READS; i++) {
		forget_some(fd, &random);
		read_as_the_system(fd, twin, &random);
	}
	CHECK(weft_close(fd) == 0 && close(twin) == 0 && unlink(path) == 0);
	return pass;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(names_change),
					    T(directories),
					    T(sizes),
					    T(reads_are_whole),
					    T(only_stale_sockets_are_replaced),
					    T(one_rival_listens),
					    T(an_open_waits),
					    T(an_open_waits_for_a_lease),
					    T(waiting_opens_hold_no_thread),
					    T(opens_end_as_in_threads)};
	const size_t count = sizeof tests / sizeof *tests, by_tasks = 2;
	int result = 0;
	size_t i;

	simulated = argc > 1 && !strcmp(argv[1], "simulate");
	if (simulated)
		return run_tests(tests, 3, argc, argv);
	CHECK(mkdtemp(root));
	snprintf(path, sizeof path, "%s/it", root);
	if (argc > 1 && strcmp(argv[1], "0") != 0)
		result = run_tests(tests, count, argc, argv);
	for (i = 0; i < count - by_tasks && (argc < 2 || !strcmp(argv[1], "0")); i++)
		CHECK(tests[i].fn(&i) == &i);
	CHECK(rmdir(root) == 0);
	return result;
}
