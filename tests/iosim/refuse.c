/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulated world without memory: see ../sched/refusing.h. An operation that succeeds gives the right result.
 *
 *   refuse [K WIDTH]
 */
#define _GNU_SOURCE
#include "../sched/refusing.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <weft/io.h>
#include <weft/sim.h>

enum { BYTES = 3000 };

/* Ends the task if the result is an error. */
static int64_t or_fail(int64_t result)
{
	if (result < 0)
		weft_task_fail((int)result);
	return result;
}

struct owned {
	int fd; /* -1: none */
};

static void drop(struct owned *o)
{
	if (o->fd >= 0)
		CHECK(weft_close(o->fd) == 0);
	o->fd = -1;
}

static int capitals(char *const argv[], const int fds[3])
{
	char text[BYTES];
	int64_t count = weft_read_all(fds[0], text, sizeof text);

	if (count < 0 || !argv[0])
		return 1;
	for (int64_t i = 0; i < count; i++)
		text[i] = (char)(text[i] - 'a' + 'A');
	return weft_write_all(fds[1], text, (size_t)count) != count;
}

static int sleeps_on(char *const argv[], const int fds[3])
{
	(void)argv;
	(void)fds;
	weft_sleep(1000 * SECOND);
	return 0;
}

static pid_t spawn(const char *name, int in, int out)
{
	char *argv[] = {(char *)(uintptr_t)name, NULL};

	return weft_spawn_process(argv, NULL, (int[]){in, out, -1});
}

static void reap(pid_t *child)
{
	(void)weft_world_kill(*child, SIGKILL);
	CHECK(weft_waitpid(*child, NULL) != -EINTR);
}

static void drop_all(struct owned ends[4])
{
	for (int i = 0; i < 4; i++)
		drop(&ends[i]);
}

/* A filter between two pipes. It may have failed for want of memory, and then its exit says so. */
static void *filters(void *unused)
{
	struct owned ends[4] = {{-1}, {-1}, {-1}, {-1}};
	char text[BYTES], back[BYTES];
	int to[2], from[2], status;
	int64_t got;
	pid_t child;

	weft_defer(drop_all, ends);
	or_fail(weft_world_program("capitals", capitals));
	or_fail(weft_pipe(to));
	ends[0].fd = to[0], ends[1].fd = to[1];
	or_fail(weft_pipe(from));
	ends[2].fd = from[0], ends[3].fd = from[1];
	child = (pid_t)or_fail(spawn("capitals", to[0], from[1]));
	weft_defer(reap, &child);
	drop(&ends[0]);
	drop(&ends[3]);
	memset(text, 'x', sizeof text);
	or_fail(weft_write_all(to[1], text, sizeof text));
	drop(&ends[1]);
	got = or_fail(weft_read_all(from[0], back, sizeof back));
	or_fail(weft_waitpid(child, &status));
	CHECK(got == BYTES ? back[0] == 'X' && back[BYTES - 1] == 'X' : status != 0);
	return unused;
}

static void *kills(void *unused)
{
	int status;
	pid_t child;

	or_fail(weft_world_program("sleeper", sleeps_on));
	child = (pid_t)or_fail(spawn("sleeper", -1, -1));
	weft_defer(reap, &child);
	CHECK(weft_world_kill(child, SIGTERM) == 0);
	or_fail(weft_waitpid(child, &status));
	CHECK(WIFSIGNALED(status));
	return unused;
}

/* A process that is told to end, and tells its parent so. */
static int waits_for_word(char *const argv[], const int fds[3])
{
	sigset_t set;

	(void)argv, (void)fds;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return weft_sigwait(&set, NULL) != SIGUSR1;
}

static void *sends_word(void *unused)
{
	sigset_t set;
	int status;
	pid_t child;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	or_fail(weft_world_program("waiter", waits_for_word));
	child = (pid_t)or_fail(spawn("waiter", -1, -1));
	weft_defer(reap, &child);
	or_fail(weft_world_kill(child, SIGUSR1));
	CHECK(or_fail(weft_sigwait(&set, NULL)) == SIGCHLD);
	or_fail(weft_waitpid(child, &status));
	CHECK(WIFEXITED(status));
	return unused;
}

static void *echoes(void *listener)
{
	struct owned peer = {-1};
	char text[BYTES];

	weft_defer(drop, &peer);
	peer.fd = (int)or_fail(weft_accept(*(int *)listener, NULL, NULL, 0));
	or_fail(weft_read_all(peer.fd, text, sizeof text));
	or_fail(weft_write_all(peer.fd, text, sizeof text));
	return listener;
}

static void *talks(void *unused)
{
	struct owned listener = {-1}, fd = {-1};
	char text[BYTES], back[BYTES];

	weft_defer(drop, &listener);
	weft_defer(drop, &fd);
	WEFT_SCOPE(scope);
	listener.fd = (int)or_fail(weft_listen("0.0.0.0", 7, 0, 0));
	or_fail(weft_scope_spawn(&scope, echoes, &listener.fd));
	fd.fd = (int)or_fail(weft_dial("localhost", "7"));
	memset(text, 'y', sizeof text);
	or_fail(weft_write_all(fd.fd, text, sizeof text));
	if (or_fail(weft_read_all(fd.fd, back, sizeof back)) == BYTES)
		CHECK(!memcmp(text, back, BYTES));
	or_fail(weft_scope_wait(&scope));
	return unused;
}

static void *stores(void *unused)
{
	struct owned fd = {-1}, watcher = {-1};
	char text[BYTES], back[BYTES];
	weft_file_change_t change;
	weft_file_watch_t watch;
	int64_t told;

	weft_defer(drop, &fd);
	weft_defer(drop, &watcher);
	or_fail(weft_file_watch_open(&watch));
	watcher.fd = watch.fd;
	or_fail(weft_file_watch_add(&watch, "/", IN_CREATE));
	or_fail(weft_file_watch_add(&watch, ".", IN_CREATE));
	memset(text, 'z', sizeof text);
	fd.fd = (int)or_fail(weft_open("file", O_CREAT | O_RDWR, 0600));
	or_fail(weft_pwrite(fd.fd, text, 1, 5000));
	or_fail(weft_write_all(fd.fd, text, sizeof text));
	or_fail(weft_fsync(fd.fd));
	CHECK(or_fail(weft_pread(fd.fd, back, sizeof back, 0)) > 0 && back[0] == 'z');
	or_fail(weft_mkdir("directory", 0700));
	or_fail(weft_rename("file", "directory/file"));
	or_fail(weft_ftruncate(fd.fd, 9000));
	or_fail(weft_unlink("directory/file"));
	/* The watcher loses no change in silence for which there is no memory. */
	while (!(told = weft_file_watch_next_until(&watch, &change, 0)))
		if (!strcmp(change.name, "directory") || change.events == IN_Q_OVERFLOW)
			return unused;
	CHECK(or_fail(told) < 0);
	return unused;
}

/* A pipe's end goes along with a byte, and nobody else has it then. */
static void *passes(void *unused)
{
	struct owned ends[4] = {{-1}, {-1}, {-1}, {-1}};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	int pair[2], pipe[2];

	weft_defer(drop_all, ends);
	or_fail(weft_socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	ends[0].fd = pair[0], ends[1].fd = pair[1];
	or_fail(weft_pipe(pipe));
	ends[2].fd = pipe[0], ends[3].fd = pipe[1];
	control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &pipe[1], sizeof(int));
	or_fail(weft_sendmsg(pair[0], &m, 0));
	drop(&ends[3]);
	m.msg_controllen = sizeof control;
	or_fail(weft_recvmsg(pair[1], &m, 0));
	if (m.msg_controllen && !(m.msg_flags & MSG_CTRUNC)) {
		memcpy(&ends[3].fd, CMSG_DATA(&control.header), sizeof(int));
		or_fail(weft_write(ends[3].fd, "abc", 3));
		drop(&ends[3]);
	}
	or_fail(weft_read(pipe[0], &byte, 1));
	return unused;
}

/* Another host, which is cut off, and crashes with a file that was written and not synced. */
static void *travels(void *unused)
{
	struct owned fd = {-1}, file = {-1};

	weft_defer(drop, &fd);
	weft_defer(drop, &file);
	or_fail(weft_world_host("far"));
	file.fd = (int)or_fail(weft_open("file", O_CREAT | O_RDWR, 0600));
	or_fail(weft_write_all(file.fd, "unsynced", 8));
	fd.fd = (int)or_fail(weft_listen("0.0.0.0", 53, 0, WEFT_LISTEN_UDP));
	or_fail(weft_world_cut("main", "far"));
	or_fail(weft_world_cut("main", NULL));
	or_fail(weft_world_mend("main", NULL));
	weft_sleep(MS);
	return unused;
}

/* Each part fails by itself. */
static void *parts(void *result)
{
	weft_fn_t *const all[] = {filters, kills, sends_word, talks, stores, passes, travels};
	int error = 0, e;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		WEFT_SCOPE(scope);
		e = weft_scope_spawn(&scope, all[i], NULL);
		if (!e)
			e = weft_scope_wait(&scope);
		error = e ? e : error;
	}
	e = weft_world_crash("far");
	CHECK(!e || e == -ENOENT || e == -ENOMEM);
	*(int *)result = error;
	return result;
}

static int program(void)
{
	int error = 0, simulated = weft_simulate(5, NULL, parts, &error, NULL);

	return simulated ? simulated : error;
}

int main(int argc, char **argv)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGCHLD);
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, NULL));
	return argc > 2 ? refuse((unsigned)atoi(argv[1]), (unsigned)atoi(argv[2])) : refuse_all();
}
