/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the process around the runtime notices of it: signals, descriptors. By a thread, by tasks on both back ends.
 *
 *   surroundings WORKERS [NAME]; 0: in a thread
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <weft/io.h>

/* ---- SIGPIPE ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t raised;

static void notes(int number)
{
	raised += number == SIGPIPE;
}

/* The end of a connection whose peer has gone. */
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
	CHECK(weft_write(fds[0], "x", 1) < 0); /* the reset is reported once; after it comes EPIPE */
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
		/* A pipe does. */
		CHECK(weft_sendfile(fds[1], file, &offset, 100) == -EPIPE && raised);
		CHECK(weft_close(fds[1]) == 0);
		raised = 0;
	}
	CHECK(weft_close(file) == 0 && signal(SIGPIPE, SIG_DFL) == notes);
	return pass;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(no_socket_raises_sigpipe)};

	if (argc > 1 && strcmp(argv[1], "0") != 0)
		return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		CHECK(tests[i].fn(&i) == &i);
	return 0;
}
