/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Effects of the runtime on the process around it: signals, descriptors. By a thread, and by tasks on both back ends.
 *
 *   surroundings WORKERS [NAME]; 0: in a thread
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <weft/io.h>

/* ---- SIGPIPE ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t raised;

static void notes(int number)
{
	raised += number == SIGPIPE;
}

/* One end of a connection whose peer was reset. */
static int deserted(int domain)
{
	const struct linger at_once = {1, 0};
	char port[8];
	int fds[2], listener;

	if (domain == AF_UNIX) {
		CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && weft_close(fds[1]) == 0);
		return fds[0];
	}
	listener = weft_listen("127.0.0.1", 0, 0, 0);
	snprintf(port, sizeof port, "%d", weft_port(listener));
	fds[0] = weft_dial("127.0.0.1", port);
	fds[1] = weft_accept(listener, NULL, NULL, 0);
	CHECK(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
	CHECK(weft_close(fds[1]) == 0 && weft_close(listener) == 0);
	CHECK(weft_write(fds[0], "x", 1) < 0); /* the reset is reported once; the next error is EPIPE */
	return fds[0];
}

static void *no_socket_raises_sigpipe(void *pass)
{
	struct iovec part = {(void *)"x", 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct mmsghdr messages = {.msg_hdr = message};
	int domain, fd, file = weft_open("/proc/self/exe", O_RDONLY, 0), fds[2];
	int64_t offset = 0;

	CHECK(signal(SIGPIPE, notes) != SIG_ERR);
	for (domain = AF_UNIX; domain <= AF_INET; domain += AF_INET - AF_UNIX) {
		fd = deserted(domain);
		CHECK(weft_sendfile(fd, file, &offset, 100) == -EPIPE && offset == 0);
		CHECK(weft_write(fd, "x", 1) == -EPIPE && weft_pwritev(fd, &part, 1, -1) == -EPIPE);
		CHECK(weft_send(fd, "x", 1, 0) == -EPIPE && weft_sendmsg(fd, &message, 0) == -EPIPE);
		CHECK(weft_sendmmsg(fd, &messages, 1, 0) == -EPIPE);
		CHECK(weft_pipe(fds) == 0 && weft_write(fds[1], "xy", 2) == 2);
		CHECK(weft_splice(fds[0], fd, 100, 0) == -EPIPE && !raised);
		CHECK(weft_close(fds[0]) == 0 && weft_close(fd) == 0);
		/* A pipe raises SIGPIPE. */
		CHECK(weft_sendfile(fds[1], file, &offset, 100) == -EPIPE && raised);
		CHECK(weft_close(fds[1]) == 0);
		raised = 0;
	}
	CHECK(weft_close(file) == 0 && signal(SIGPIPE, SIG_DFL) == notes);
	return pass;
}

/* ---- the descriptors and signals of a child ---------------------------------------------------------------------- */

/* Runs a shell command, and stores its output, a line without its end, in `text`. */
static void ask(const char *command, weft_process_t what, char *text, size_t size)
{
	char *const argv[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
	int fds[2], own[] = {-1, -1};
	ssize_t length;
	pid_t process;

	CHECK(weft_pipe(fds) == 0);
	own[1] = fds[1];
	what.argv = argv;
	if (!what.fds) {
		what.fds = own;
		what.fd_count = 2;
	}
	process = weft_spawn_process_as(&what);
	CHECK(process > 0 && weft_close(fds[1]) == 0);
	length = weft_read_all(fds[0], text, size - 1);
	CHECK(length >= 0 && weft_close(fds[0]) == 0 && weft_waitpid(process, NULL) == process);
	while (length && text[length - 1] == '\n')
		length--;
	text[length] = 0;
}

static void *children_inherit_little(void *pass)
{
	const weft_process_t plain = {0}, usual = {.flags = WEFT_PROCESS_DEFAULT_SIGNALS};
	unsigned long long ignored;
	char text[256];
	pid_t process;
	int status;

	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGHUP, SIG_IGN) != SIG_ERR);
	ask("sed -n 's/^SigIgn:.//p' /proc/self/status", plain, text, sizeof text);
	ignored = strtoull(text, NULL, 16);
	CHECK(!(ignored >> (SIGPIPE - 1) & 1) && ignored >> (SIGHUP - 1) & 1);
	ask("sed -n 's/^SigIgn:.//p' /proc/self/status", usual, text, sizeof text);
	CHECK(!(strtoull(text, NULL, 16) >> (SIGHUP - 1) & 1));
	CHECK(signal(SIGPIPE, SIG_DFL) == SIG_IGN && signal(SIGHUP, SIG_DFL) == SIG_IGN);
	ask("cat /proc/$$/timerslack_ns", plain, text, sizeof text);
	CHECK(atoi(text) > 1000);
	process = fork();
	if (!process)
		_exit(prctl(PR_GET_TIMERSLACK) > 1000);
	CHECK(weft_waitpid(process, &status) == process && WEXITSTATUS(status) == 1);
	return pass;
}

static void *children_get_what_is_asked(void *pass)
{
	char text[256], group[64];
	int fds[2], five[] = {-1, -1, -1, -1, -1};
	ssize_t length;

	ask("pwd", (weft_process_t){.directory = "/"}, text, sizeof text);
	CHECK(!strcmp(text, "/"));
	ask("cut -d' ' -f5 /proc/$$/stat; echo $$", (weft_process_t){.flags = WEFT_PROCESS_GROUP}, text, sizeof text);
	snprintf(group, sizeof group, "%d\n%d", atoi(text), atoi(text));
	CHECK(!strcmp(text, group));
	ask("cut -d' ' -f6 /proc/$$/stat; echo $$", (weft_process_t){.flags = WEFT_PROCESS_SESSION}, text, sizeof text);
	snprintf(group, sizeof group, "%d\n%d", atoi(text), atoi(text));
	CHECK(!strcmp(text, group));
	CHECK(weft_pipe(fds) == 0);
	five[3] = five[4] = fds[1];
	five[1] = STDERR_FILENO;
	ask("echo four >&4; echo three >&3", (weft_process_t){.fds = five, .fd_count = 5}, text, sizeof text);
	length = weft_read(fds[0], text, sizeof text);
	CHECK(length == 11 && !memcmp(text, "four\nthree\n", 11));
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	CHECK(weft_spawn_process_as(NULL) == -EINVAL && weft_spawn_process_as(&(weft_process_t){0}) == -EINVAL);
	return pass;
}

/* ---- descriptors 0, 1 and 2 -------------------------------------------------------------------------------------- */

static void *waits_for_signal(void *set)
{
	CHECK(weft_sigwait_until(set, NULL, weft_now() + 20 * MS) == -ETIMEDOUT);
	return NULL;
}

static void *waits_for_child(void *process)
{
	CHECK(weft_waitpid_until(*(pid_t *)process, NULL, weft_now() + 20 * MS) == -ETIMEDOUT);
	return NULL;
}

/* The library's own descriptors have higher numbers, even if the low numbers are free when it opens them. */
static void *own_descriptors_are_above(void *pass)
{
	char *const sleeps[] = {"sleep", "60", NULL};
	int in = fcntl(0, F_DUPFD_CLOEXEC, 100), error = fcntl(2, F_DUPFD_CLOEXEC, 100), pair[2];
	pid_t process = weft_spawn_process(sleeps, NULL, NULL);
	sigset_t set;

	CHECK(in > 0 && error > 0 && process > 0 && close(0) == 0 && close(2) == 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, waits_for_signal, &set) == 0);
	CHECK(weft_scope_spawn(&scope, waits_for_child, &process) == 0);
	(void)weft_poll_until(1, POLLPRI, weft_now() + 10 * MS);
	CHECK(fcntl(0, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0);
	CHECK(weft_pipe(pair) == 0 && pair[0] == 0 && pair[1] == 2); /* the program gets the lowest numbers, as usual */
	CHECK(weft_close(0) == 0 && weft_close(2) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(dup2(in, 0) == 0 && dup2(error, 2) == 2 && close(in) == 0 && close(error) == 0);
	CHECK(kill(process, SIGKILL) == 0 && weft_waitpid(process, NULL) == process);
	return pass;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(no_socket_raises_sigpipe), T(children_inherit_little),
					    T(children_get_what_is_asked), T(own_descriptors_are_above)};

	if (argc > 1 && strcmp(argv[1], "0") != 0)
		return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
	for (size_t i = 0; i < sizeof tests / sizeof *tests - 1; i++) /* the last test needs tasks */
		CHECK(tests[i].fn(&i) == &i);
	return 0;
}
