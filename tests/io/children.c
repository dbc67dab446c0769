/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Child processes: their descriptors, and waiting for them, also on a kernel without pidfd_open.
 *
 *   children WORKERS [new|old] [TEST]   old: pidfd_open fails, by seccomp
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <weft/io.h>

enum { LENGTH = 1 << 20 };

static char *const cat[] = {"cat", NULL}, *const sleeps[] = {"sleep", "60", NULL};

static uint64_t in(uint64_t nanoseconds)
{
	return weft_now() + nanoseconds;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static char byte_at(int place)
{
	return (char)((unsigned)place * 2654435761u >> 13);
}

static void *writes(void *fd)
{
	char part[7001];
	int place, i, size;

	for (place = 0; place < LENGTH; place += size) {
		size = LENGTH - place < (int)sizeof part ? LENGTH - place : (int)sizeof part;
		for (i = 0; i < size; i++)
			part[i] = byte_at(place + i);
		CHECK(weft_write_all(*(int *)fd, part, (size_t)size) == size);
	}
	CHECK(weft_shutdown(*(int *)fd, SHUT_WR) == 0 || weft_close(*(int *)fd) == 0);
	return NULL;
}

static void reads(int fd)
{
	char part[9001];
	int place = 0;
	ssize_t got, i;

	while ((got = weft_read(fd, part, sizeof part)) > 0)
		for (i = 0; i < got; i++)
			CHECK(part[i] == byte_at(place++));
	CHECK(got == 0 && place == LENGTH);
}

static void end_well(pid_t process)
{
	int status;

	CHECK(weft_waitpid(process, &status) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Sends data through `cat`, which finds no input at first, and whose output is not read for a while. */
static void send_through(pid_t process, int to, int from)
{
	CHECK(process > 0);
	CHECK(weft_waitpid_until(process, NULL, in(20 * MS)) == -ETIMEDOUT);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, writes, &to) == 0);
	weft_sleep(20 * MS);
	reads(from);
	CHECK(weft_scope_wait(&scope) == 0);
	end_well(process);
}

static void *pipes(void *pass)
{
	int to[2], from[2], flags;
	pid_t process;

	CHECK(weft_pipe(to) == 0 && weft_pipe(from) == 0);
	flags = fcntl(to[0], F_GETFL);
	process = weft_spawn_process(cat, NULL, (int[3]){to[0], from[1], -1});
	CHECK(fcntl(to[0], F_GETFL) == flags);
	CHECK(weft_close(to[0]) == 0 && weft_close(from[1]) == 0);
	send_through(process, to[1], from[0]);
	CHECK(weft_close(from[0]) == 0);
	return pass;
}

static void *sockets(void *pass)
{
	int fds[2];
	pid_t process;

	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	process = weft_spawn_process(cat, NULL, (int[3]){fds[1], fds[1], -1});
	/* This process can still use the end that the child has, without blocking. */
	CHECK(weft_read_until(fds[1], &(char){0}, 1, in(MS)) == -ETIMEDOUT);
	CHECK(weft_close(fds[1]) == 0);
	send_through(process, fds[0], fds[0]);
	CHECK(weft_close(fds[0]) == 0);
	return pass;
}

/* The parent uses the child's end, too. */
static void *shared(void *pass)
{
	char *const says[] = {"sh", "-c", "echo one; echo two >&2", NULL}, text[16];
	static char much[70000];
	ssize_t result;
	int fds[2];

	CHECK(weft_pipe(fds) == 0);
	CHECK(weft_read_until(fds[0], text, sizeof text, 0) == -ETIMEDOUT);
	end_well(weft_spawn_process(says, NULL, (int[3]){-1, fds[1], fds[1]}));
	CHECK(weft_write(fds[1], "three\n", 6) == 6);
	CHECK(weft_read_all(fds[0], text, 14) == 14 && !memcmp(text, "one\ntwo\nthree\n", 14));
	CHECK(weft_read_until(fds[0], text, sizeof text, in(MS)) == -ETIMEDOUT);
	/* The pipe is full: the write waits without blocking its worker. */
	do
		result = weft_write_until(fds[1], much, sizeof much, in(MS));
	while (result > 0);
	CHECK(result == -ETIMEDOUT);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

/* Descriptor numbers that must be moved, because each is the target of another. */
static void *numbers(void *pass)
{
	char *const swaps[] = {"sh", "-c", "read a; echo \"$a\" out; echo \"$a\" err >&2", NULL}, text[32] = "";
	int saved[3], in_pipe[2], out[2], error[2], i;

	for (i = 0; i < 3; i++)
		CHECK((saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 10)) >= 10);
	CHECK(weft_pipe(in_pipe) == 0 && weft_pipe(out) == 0 && weft_pipe(error) == 0);
	CHECK(dup3(error[1], 0, O_CLOEXEC) == 0 && dup3(in_pipe[0], 1, O_CLOEXEC) == 1 &&
	      dup3(out[1], 2, O_CLOEXEC) == 2);
	CHECK(weft_write(in_pipe[1], "in\n", 3) == 3);
	pid_t process = weft_spawn_process(swaps, NULL, (int[3]){1, 2, 0});
	for (i = 0; i < 3; i++) {
		CHECK(dup2(saved[i], i) == i);
		close(saved[i]);
	}
	end_well(process);
	CHECK(weft_read(out[0], text, sizeof text) == 7 && !memcmp(text, "in out\n", 7));
	CHECK(weft_read(error[0], text, sizeof text) == 7 && !memcmp(text, "in err\n", 7));
	for (i = 0; i < 2; i++)
		CHECK(weft_close(in_pipe[i]) == 0 && weft_close(out[i]) == 0 && weft_close(error[i]) == 0);
	return pass;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void *ends(void *pass)
{
	char *const fails[] = {"sh", "-c", "exit 7", NULL};
	int status, i;
	pid_t process = weft_spawn_process(fails, NULL, NULL);

	CHECK(weft_waitpid(process, &status) == process && WEXITSTATUS(status) == 7);
	CHECK(weft_waitpid(process, &status) == -ECHILD);
	process = weft_spawn_process(sleeps, NULL, NULL);
	for (i = 0; i < 100; i++)
		CHECK(weft_waitpid_until(process, &status, in(MS / 10)) == -ETIMEDOUT);
	CHECK(kill(process, SIGKILL) == 0);
	CHECK(weft_waitpid_until(process, &status, in(60 * SECOND)) == process && WTERMSIG(status) == SIGKILL);
	CHECK(weft_waitpid(getppid(), &status) == -ECHILD && weft_waitpid(getpid(), &status) == -ECHILD);
	CHECK(weft_waitpid(0, NULL) == -EINVAL && weft_waitpid(-1, NULL) == -EINVAL);
	/* A process that has ended before the parent waits for it. */
	process = weft_spawn_process(fails, NULL, NULL);
	CHECK(waitid(P_PID, (id_t)process, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0);
	CHECK(weft_waitpid(process, &status) == process && WEXITSTATUS(status) == 7);
	return pass;
}

struct waiting {
	pid_t process, result;
};

static void *waits(void *argument)
{
	struct waiting *w = argument;

	__atomic_store_n(&w->result, weft_waitpid(w->process, NULL), __ATOMIC_RELAXED);
	return NULL;
}

/* Many tasks wait for the same process, and one gets its status. A cancelled wait has taken nothing. */
static void *many_wait(void *pass)
{
	struct waiting waiting[8];
	pid_t process = weft_spawn_process(sleeps, NULL, NULL);
	int i, got = 0;

	for (i = 0; i < 8; i++)
		waiting[i] = (struct waiting){process, 77};
	{
		WEFT_SCOPE(early);
		CHECK(weft_scope_spawn(&early, waits, &waiting[0]) == 0);
		weft_sleep(5 * MS);
		weft_scope_cancel(&early, -ECANCELED);
		CHECK(weft_scope_wait(&early) == -ECANCELED && waiting[0].result == 77);
	}
	WEFT_SCOPE(scope);
	for (i = 0; i < 8; i++)
		CHECK(weft_scope_spawn(&scope, waits, &waiting[i]) == 0);
	weft_sleep(5 * MS);
	CHECK(kill(process, SIGTERM) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	for (i = 0; i < 8; i++) {
		CHECK(waiting[i].result == process || waiting[i].result == -ECHILD);
		got += waiting[i].result == process;
	}
	CHECK(got == 1);
	return pass;
}

/* Each wait ends when its own process ends, not when the last process ends. */
static void *many_children(void *pass)
{
	static struct waiting waiting[20];
	int i;

	WEFT_SCOPE(scope);
	for (i = 0; i < 20; i++) {
		waiting[i].process = weft_spawn_process(sleeps, NULL, NULL);
		CHECK(waiting[i].process > 0 && weft_scope_spawn(&scope, waits, &waiting[i]) == 0);
	}
	for (i = 0; i < 20; i++) {
		CHECK(kill(waiting[i].process, SIGTERM) == 0);
		while (__atomic_load_n(&waiting[i].result, __ATOMIC_RELAXED) != waiting[i].process)
			weft_sleep(MS / 10);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

static const struct test tests[] = {
    T(pipes), T(sockets), T(shared), T(numbers), T(ends), T(many_wait), T(many_children),
};

/* Makes pidfd_open fail, as on a kernel without it. */
static void make_old(void)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		printf("skip - children: seccomp is refused: %s\n", strerror(errno));
		exit(77);
	}
	CHECK(syscall(SYS_pidfd_open, getpid(), 0) == -1 && errno == ENOSYS);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc > 2 && (!strcmp(argv[2], "old") || !strcmp(argv[2], "new"))) {
		if (argv[2][0] == 'o')
			make_old();
		argv[2] = argv[1];
		argc--;
		argv++;
	}
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
