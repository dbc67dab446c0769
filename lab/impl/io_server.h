/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code shared by the servers of the experiment `io`. A server listens, starts the load generator (io_load.c, whose path
 * is the parameter `helper`) as a child process, and serves until that process ends. The load generator prints the
 * figures: it reads the CPU clock of its parent.
 */
#ifndef IO_SERVER_H
#define IO_SERVER_H

#include "lab.h"
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sizes of a request and its reply, and of a server's buffer for a connection. */
enum { IO_MESSAGE = 64, IO_BUFFER = 128 };

static inline void io_must(bool well, const char *what)
{
	if (!well)
		lab_die(what);
}

/* Stops if a result is a negative errno. */
static inline void io_check(int64_t result, const char *what)
{
	errno = result < 0 ? (int)-result : 0;
	if (result < 0)
		lab_die(what);
}

/* Raises the limit of descriptors to the system's maximum: ten thousand connections need more than the usual 1024. */
static inline void io_raise_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens a socket at a free port of 127.0.0.1. */
static inline int io_listen(int *port, int type)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	io_must(fd >= 0 && !bind(fd, (struct sockaddr *)&at, size), "bind");
	io_must(type == SOCK_DGRAM || !listen(fd, SOMAXCONN), "listen");
	getsockname(fd, (struct sockaddr *)&at, &size);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Returns a free port of 127.0.0.1, for a server that listens itself. */
static inline int io_free_port(void)
{
	int port, listener = io_listen(&port, SOCK_STREAM);

	close(listener);
	return port;
}

static inline void io_await_listener(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int error, fd;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	do {
		usleep(1000);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		error = connect(fd, (struct sockaddr *)&to, sizeof(to));
		close(fd);
	} while (error);
}

/* Adds `fd` to an epoll set, which reports when it is readable. */
static inline void io_watch(int set, int fd, void *what)
{
	struct epoll_event event = {EPOLLIN, {.ptr = what}};

	io_must(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void *io_end_with(void *child)
{
	int status = 0;

	while (waitpid((pid_t)(intptr_t)child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
}

/* The arguments of the load generator: the server's own, and the port. Its path is the parameter `helper`. */
static inline char **io_load_arguments(int argc, char **argv, int port)
{
	char **its = (char **)calloc((size_t)argc + 2, sizeof(*its)), *place = (char *)malloc(32);

	if (!lab_text(argc, argv, "helper") || !its || !place)
		lab_die("no load generator: helper=PATH");
	snprintf(place, 32, "port=%d", port);
	memcpy(its, argv, (size_t)argc * sizeof(*its));
	its[argc] = place;
	return its;
}

/* Call this in a child of the server. */
static inline void io_become_load(int argc, char **argv, char **its)
{
	const char *load = lab_text(argc, argv, "helper");

	execv(load, its);
	lab_die(load);
}

static inline void io_start_load(int argc, char **argv, int port)
{
	char **its = io_load_arguments(argc, argv, port);
	pthread_t thread;
	pid_t child;

	child = fork();
	if (!child)
		io_become_load(argc, argv, its);
	if (child < 0 || pthread_create(&thread, NULL, io_end_with, (void *)(intptr_t)child))
		lab_die("the load generator");
	free(its[argc]);
	free(its);
}

/* Computes for 10 ms, as the case `late` requires, with a pause of 1 ms after it. */
static inline void io_compute(void)
{
	int64_t end = lab_now(CLOCK_MONOTONIC) + 10000000;

	while (lab_now(CLOCK_MONOTONIC) < end)
		;
}

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

enum { IO_BATCH = 32 };

/* Datagrams that one call receives, and one call sends back. */
struct io_batch {
	struct mmsghdr messages[IO_BATCH];
	struct iovec parts[IO_BATCH];
	struct sockaddr_in from[IO_BATCH];
	char text[IO_BATCH][IO_BUFFER];
};

/* Prepares the batch for receiving. Needed again after each batch, because the kernel has written lengths. */
static inline void io_make_batch(struct io_batch *b, unsigned count)
{
	for (unsigned i = 0; i < count && i < IO_BATCH; i++) {
		b->parts[i] = (struct iovec){b->text[i], IO_BUFFER};
		b->messages[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
							 .msg_namelen = sizeof(b->from[i]),
							 .msg_iov = &b->parts[i],
							 .msg_iovlen = 1};
	}
}

/* Addresses the datagrams to their senders. */
static inline void io_turn_round(struct io_batch *b, int count)
{
	for (int i = 0; i < count; i++)
		b->parts[i].iov_len = b->messages[i].msg_len;
}

/* ---- a file in the page cache ------------------------------------------------------------------------------------ */

enum { IO_BLOCK = 4096 };

/* Each block begins with its number. */
static inline int io_make_file(int64_t blocks)
{
	char path[] = "/tmp/weft-lab-XXXXXX";
	static int64_t block[IO_BLOCK / sizeof(int64_t)];
	int fd = mkstemp(path);

	if (fd < 0)
		lab_die(path);
	unlink(path);
	for (int64_t i = 0; i < blocks; i++) {
		block[0] = i;
		if (write(fd, block, sizeof(block)) != sizeof(block))
			lab_die("write");
	}
	return fd;
}

/* Returns the block of the i-th read: spread over the file, and the same in each program. */
static inline int64_t io_block(int64_t i, int64_t blocks)
{
	return (int64_t)((uint64_t)i * 2654435761U >> 7) % blocks;
}

#endif /* IO_SERVER_H */
