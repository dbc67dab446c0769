/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths: which files weft_listen replaces. By a thread, by tasks on both back ends.
 *
 *   paths WORKERS [NAME]; 0: in a thread
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

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(only_stale_sockets_are_replaced), T(one_rival_listens)};
	int result = 0;
	size_t i;

	CHECK(mkdtemp(root));
	snprintf(path, sizeof path, "%s/it", root);
	if (argc > 1 && strcmp(argv[1], "0") != 0)
		result = run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
	for (i = 0; i < sizeof tests / sizeof *tests && (argc < 2 || !strcmp(argv[1], "0")); i++)
		CHECK(tests[i].fn(&i) == &i);
	CHECK(rmdir(root) == 0);
	return result;
}
