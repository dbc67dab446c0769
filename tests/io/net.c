/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program for libseff's net.h: an echo server, and clients, some of which close their connection at once; error
 * results.
 *
 *   net WORKERS
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "scheff.h"
#include "seff.h"

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			fflush(stdout);                                                                                \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

enum { CLIENTS = 24, ROUNDS = 50, LARGE = 3000000 };

/* Compilers keep the address of errno, which belongs to another thread after a wait. */
static __attribute__((noinline)) int error_of_thread(void)
{
	return errno;
}

static char port[8];
static int listener;

static void *connection(void *argument)
{
	int fd = (int)(intptr_t)argument, n;
	char text[256];

	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	while ((n = await_recv(fd, text, sizeof text)) > 0) {
		CHECK(n == sizeof text || !text[n]);
		if (await_send_all(fd, text, (size_t)n) != n)
			break;
	}
	CHECK(n >= 0 || error_of_thread() == ECONNRESET);
	close(fd);
	return NULL;
}

static void *accepts(void *argument)
{
	int i, fd;

	for (i = 0; i < CLIENTS; i++) {
		fd = await_accept4(listener);
		CHECK(fd >= 0);
		scheff_fork(connection, (void *)(intptr_t)fd);
	}
	return argument;
}

/* Sends more than fits into the connection at once, while another task reads. */
static void *sends_much(void *argument)
{
	int fd = *(int *)argument;
	char *text = (char *)malloc(LARGE);
	int i;

	CHECK(text);
	for (i = 0; i < LARGE; i++)
		text[i] = (char)('a' + i % 23);
	CHECK(await_send_all(fd, text, LARGE) == LARGE);
	CHECK(shutdown(fd, SHUT_WR) == 0);
	free(text);
	return NULL;
}

static void receives_much(int fd)
{
	char part[5000];
	int i, n, place = 0;

	while ((n = await_recv(fd, part, sizeof part)) > 0)
		for (i = 0; i < n; i++)
			CHECK(part[i] == (char)('a' + place++ % 23));
	CHECK(n == 0 && place == LARGE);
}

static void receive_exactly(int fd, char *text, int size)
{
	int n, done = 0;

	while (done < size) {
		n = await_recv(fd, text + done, (size_t)(size - done));
		CHECK(n > 0);
		done += n;
	}
}

static void talk(int fd)
{
	char text[300], back[300];
	int i;

	memset(text, 'x', sizeof text);
	for (i = 0; i < ROUNDS; i++) {
		text[i] = (char)i;
		CHECK(await_send_all(fd, text, (size_t)(i * 6 + 1)) == i * 6 + 1);
		receive_exactly(fd, back, i * 6 + 1);
		CHECK(!memcmp(text, back, (size_t)(i * 6 + 1)));
	}
}

static void *client(void *argument)
{
	static const struct linger at_once = {1, 0};
	static const int little = 4096;
	int number = (int)(intptr_t)argument, fd = weft_dial("127.0.0.1", port);

	CHECK(fd >= 0);
	if (number == 0) {
		CHECK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
		scheff_fork(sends_much, &fd);
		receives_much(fd);
	} else {
		talk(fd);
	}
	if (number % 3 == 1)
		CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
	weft_close(fd);
	return NULL;
}

static void *goes_wrong(void *argument)
{
	char byte = 0;
	int fds[2];

	CHECK(await_recv(-1, &byte, 1) == -1 && error_of_thread() == EBADF);
	CHECK(await_accept4(-1) == -1 && error_of_thread() == EBADF);
	CHECK(await_send_all(-1, &byte, 1) == -1 && error_of_thread() == EBADF);
	CHECK(await_send_all(-1, &byte, 0) == 0);
	CHECK(await_send_all(-1, &byte, (size_t)INT_MAX + 1) == -1 && error_of_thread() == EINVAL);
	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	CHECK(weft_close(fds[1]) == 0);
	CHECK(await_send(fds[0], &byte, 1) == -1 && error_of_thread() == EPIPE);
	CHECK(await_recv(fds[0], &byte, 1) == 0);
	CHECK(weft_close(fds[0]) == 0);
	return argument;
}

/* Works outside of tasks, too. */
static void listeners(void)
{
	char text[8];
	int fd, other;

	CHECK(listen_tcp_socket("127.0.0.1", port, true, true, false, 8) == -1 && error_of_thread() == EADDRINUSE);
	CHECK(listen_tcp_socket("127.0.0.1", "no such service", true, true, false, 8) == -1);
	fd = listen_tcp_socket("localhost", "0", false, false, true, 8);
	CHECK(fd >= 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK));
	snprintf(text, sizeof text, "%d", weft_port(fd));
	other = listen_tcp_socket("localhost", text, false, false, true, 8);
	CHECK(other >= 0 && weft_port(other) == weft_port(fd));
	close(fd);
	close(other);
}

int main(int argc, char **argv)
{
	scheff_t scheduler;
	intptr_t i;

	listener = listen_tcp_socket("127.0.0.1", "0", true, true, false, 1024);
	CHECK(listener >= 0 && fcntl(listener, F_GETFL) & O_NONBLOCK);
	snprintf(port, sizeof port, "%d", weft_port(listener));
	listeners();
	CHECK(scheff_init(&scheduler, argc > 1 ? (size_t)atoi(argv[1]) : 1));
	CHECK(scheff_schedule(&scheduler, goes_wrong, NULL));
	CHECK(scheff_schedule(&scheduler, accepts, NULL));
	for (i = 0; i < CLIENTS; i++)
		CHECK(scheff_schedule(&scheduler, client, (void *)i));
	scheff_run(&scheduler);
	close(listener);
	printf("ok - net\n");
	return 0;
}
