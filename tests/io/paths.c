/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths: which files weft_listen replaces; names, directories and sizes of files. By a thread, by tasks on both back
 * ends, and, except for sockets, by tasks of a simulation.
 *
 *   paths WORKERS [NAME]; 0: in a thread; simulate SEEDS
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/un.h>
#include <weft/io.h>

static char root[] = "/tmp/weft-paths-XXXXXX", path[64];

/* ---- listening at a path ----------------------------------------------------------------------------------------- */

/* A socket that another library has bound to the path. */
static int bound(int type)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&un, sizeof un) == 0);
	return fd;
}

/* The file stays, as it is. */
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
			CHECK(accept(fd, NULL, NULL) < 0 && errno == EAGAIN); /* the server notices nothing */
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

/* Several find the same stale socket: one of them listens there, and keeps its file. */
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

static bool simulated; /* the world has one name for a file */

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

enum { FILES = 150 }; /* more than one read of the directory */

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

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(names_change), T(directories), T(sizes),
					    T(only_stale_sockets_are_replaced), T(one_rival_listens)};
	const size_t count = sizeof tests / sizeof *tests;
	int result = 0;
	size_t i;

	simulated = argc > 1 && !strcmp(argv[1], "simulate");
	if (simulated)
		return run_tests(tests, 3, argc, argv);
	CHECK(mkdtemp(root));
	snprintf(path, sizeof path, "%s/it", root);
	if (argc > 1 && strcmp(argv[1], "0") != 0)
		result = run_tests(tests, count, argc, argv);
	for (i = 0; i < count && (argc < 2 || !strcmp(argv[1], "0")); i++)
		CHECK(tests[i].fn(&i) == &i);
	CHECK(rmdir(root) == 0);
	return result;
}
