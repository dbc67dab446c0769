/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* POSIX's own names, through the header, or (PRELOADED) through libweft-posix.so. Called by tasks, and by a thread. */
#define _GNU_SOURCE
#include "../sched/check.h"

#ifdef PRELOADED
#define WEFT_POSIX_NO_NAMES
#endif
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <weft/posix.h>
#include <weft/sync.h>

#ifndef PATIENCE
#define PATIENCE 50
#endif

static unsigned workers; /* 0: a thread, without a runtime */

static void pair(int fds[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
}

static int bound(int type, struct sockaddr_in *at)
{
	socklen_t size = sizeof *at;
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)at, size) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)at, &size) == 0);
	return fd;
}

static void tcp_pair(int fds[2])
{
	struct sockaddr_in at;
	int listener = bound(SOCK_STREAM, &at);

	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(listen(listener, 1) == 0 && connect(fds[0], (struct sockaddr *)&at, sizeof at) == 0);
	fds[1] = accept(listener, NULL, NULL);
	CHECK(fds[1] >= 0 && close(listener) == 0);
}

static bool blocks(int fd)
{
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void close_both(int fds[2])
{
	CHECK(close(fds[0]) == 0);
	CHECK(close(fds[1]) == 0);
}

/* Runs two tasks of a scope, or two threads if the test runs in a thread. */
static void both(weft_fn_t *one, void *first, weft_fn_t *other, void *second)
{
	pthread_t thread;

	if (!workers) {
		CHECK(pthread_create(&thread, NULL, one, first) == 0);
		other(second);
		CHECK(pthread_join(thread, NULL) == 0);
		return;
	}
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, one, first) == 0);
	CHECK(weft_scope_spawn(&scope, other, second) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void *ask(void *fd)
{
	char text[8] = "";

	CHECK(write(*(int *)fd, "ask", 3) == 3);
	CHECK(read(*(int *)fd, text, sizeof text) == 6 && !memcmp(text, "answer", 6));
	return NULL;
}

static void *answer(void *fd)
{
	char text[8] = "";

	CHECK(recv(*(int *)fd, text, sizeof text, 0) == 3 && !memcmp(text, "ask", 3));
	CHECK(send(*(int *)fd, "answer", 6, 0) == 6);
	return NULL;
}

static void *talking(void *pass)
{
	int fds[2];

	pair(fds);
	both(answer, &fds[0], ask, &fds[1]);
	CHECK(blocks(fds[0]) && blocks(fds[1]));
	close_both(fds);
	return pass;
}

static void *non_blocking(void *pass)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	char text[4];
	int fds[2], listener;

	pair(fds);
	CHECK(recv(fds[0], text, 4, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
	CHECK(read(fds[0], text, 4) == -1 && errno == EAGAIN);
	CHECK(recv(fds[0], text, 4, MSG_WAITALL) == -1 && errno == EAGAIN);
	CHECK(!blocks(fds[0]) && blocks(fds[1]));
	close_both(fds);
	CHECK(pipe2(fds, O_NONBLOCK) == 0);
	CHECK(read(fds[0], text, 4) == -1 && errno == EAGAIN);
	CHECK(write(fds[1], "x", 1) == 1 && read(fds[0], text, 4) == 1);
	close_both(fds);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&to, sizeof to) == 0 && listen(listener, 1) == 0);
	CHECK(accept(listener, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(close(listener) == 0);
	CHECK(read(listener, text, 4) == -1 && errno == EBADF);
	CHECK(close(listener) == -1 && errno == EBADF);
	return pass;
}

enum { LENGTH = 1 << 20 };

struct stream {
	int from, to;
	bool vectors;
};

static unsigned char byte_at(size_t place)
{
	return (unsigned char)(place * 2654435761u >> 13);
}

/* A blocking write writes all bytes. */
static void *send_all(void *argument)
{
	struct stream *s = argument;
	unsigned char *text = malloc(LENGTH);
	struct iovec parts[11];
	size_t i;

	CHECK(text);
	for (i = 0; i < LENGTH; i++)
		text[i] = byte_at(i);
	for (i = 0; i < 11; i++)
		parts[i] = (struct iovec){text + i * 95325, i < 10 ? 95325 : LENGTH - 953250};
	if (s->vectors)
		CHECK(writev(s->to, parts, 11) == LENGTH);
	else
		CHECK(write(s->to, text, LENGTH) == LENGTH);
	CHECK(close(s->to) == 0);
	free(text);
	return NULL;
}

static void *receive_all(void *argument)
{
	struct stream *s = argument;
	unsigned char text[5003];
	struct iovec parts[2] = {{text, 3}, {text + 3, 5000}};
	size_t i, place = 0;
	ssize_t n;

	while ((n = s->vectors ? readv(s->from, parts, 2) : read(s->from, text, sizeof text)) > 0)
		for (i = 0; i < (size_t)n; i++, place++)
			CHECK(text[i] == byte_at(place));
	CHECK(n == 0 && place == LENGTH);
	CHECK(close(s->from) == 0);
	return NULL;
}

static void *whole_writes(void *pass)
{
	struct stream s;
	int fds[2], i;

	for (i = 0; i < 4; i++) {
		if (i % 2)
			CHECK(pipe(fds) == 0);
		else
			pair(fds);
		s = (struct stream){fds[0], fds[1], i / 2};
		both(receive_all, &s, send_all, &s);
	}
	return pass;
}

static void *send_in_parts(void *fd)
{
	int i;

	for (i = 0; i < 10; i++) {
		CHECK(send(*(int *)fd, "0123456789", 10, 0) == 10);
		CHECK(usleep(1000) == 0);
	}
	return NULL;
}

/* Only with a TCP connection a peek waits for all bytes, like the kernel's peek. */
static void *receive_whole(void *fd)
{
	char text[100];
	int protocol = 0;
	socklen_t size = sizeof protocol;

	CHECK(getsockopt(*(int *)fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0);
	CHECK(protocol != IPPROTO_TCP || recv(*(int *)fd, text, 100, MSG_PEEK | MSG_WAITALL) == 100);
	CHECK(protocol != IPPROTO_TCP || !memcmp(text + 90, "0123456789", 10));
	memset(text, 0, sizeof text);
	CHECK(recv(*(int *)fd, text, 100, MSG_WAITALL) == 100 && !memcmp(text + 90, "0123456789", 10));
	return NULL;
}

static void *waiting_for_all(void *pass)
{
	char text[100];
	int fds[2];

	pair(fds);
	both(receive_whole, &fds[0], send_in_parts, &fds[1]);
	close_both(fds);
	tcp_pair(fds);
	both(receive_whole, &fds[0], send_in_parts, &fds[1]);
	close_both(fds);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
	CHECK(send(fds[1], "one", 3, 0) == 3 && send(fds[1], "", 0, 0) == 0);
	CHECK(recv(fds[0], text, 100, MSG_WAITALL) == 3);
	CHECK(recv(fds[0], text, 100, 0) == 0);
	close_both(fds);
	return pass;
}

static void *tell_addresses(void *fds)
{
	const int *fd = fds;
	char text[8];
	struct sockaddr_in from = {0};
	socklen_t size = sizeof from;

	CHECK(recvfrom(fd[0], text, sizeof text, 0, (struct sockaddr *)&from, &size) == 2);
	CHECK(size == sizeof from && from.sin_port);
	CHECK(sendto(fd[0], "back", 4, 0, (struct sockaddr *)&from, size) == 4);
	return NULL;
}

static void *send_datagram(void *fds)
{
	const int *fd = fds;
	struct sockaddr_in to;
	socklen_t size = sizeof to;
	struct mmsghdr messages[1] = {0};
	char text[8];
	struct iovec part = {text, sizeof text};

	CHECK(getsockname(fd[0], (struct sockaddr *)&to, &size) == 0);
	CHECK(sendto(fd[1], "to", 2, 0, (struct sockaddr *)&to, size) == 2);
	messages[0].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
	CHECK(recvmmsg(fd[1], messages, 1, 0, NULL) == 1 && messages[0].msg_len == 4);
	return NULL;
}

static void *datagrams(void *pass)
{
	struct sockaddr_in at;
	int fds[2] = {bound(SOCK_DGRAM, &at), bound(SOCK_DGRAM, &at)};

	both(tell_addresses, fds, send_datagram, fds);
	close_both(fds);
	return pass;
}

/* A compiler keeps the address of errno over the call. */
__attribute__((noinline)) static int error_of_recv(int fd)
{
	char text[4];
	ssize_t n;

	errno = 0;
	n = recv(fd, text, sizeof text, 0);
	return n < 0 ? errno : 0;
}

static void *time_limits(void *pass)
{
	struct timeval limit = {0, 5000};
	int fds[2], i;

	pair(fds);
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	for (i = 0; i < 5; i++)
		CHECK(error_of_recv(fds[0]) == EAGAIN);
	CHECK(blocks(fds[0]));
	close_both(fds);
	return pass;
}

/* Makes a pair of which one side has three bytes, and peeks have passed them; the next peek waits for this time. */
static void peeked_pair(int fds[2], suseconds_t microseconds)
{
	struct timeval limit = {0, microseconds};
	int nothing = 0;
	char text[4];

	pair(fds);
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	CHECK(setsockopt(fds[0], SOL_SOCKET, SO_PEEK_OFF, &nothing, sizeof nothing) == 0);
	CHECK(write(fds[1], "abc", 3) == 3 && recv(fds[0], text, sizeof text, MSG_PEEK) == 3);
}

/* A peek that has passed all data waits for more, and does not spin. */
static void *peeks_behind_all(void *pass)
{
	uint64_t before;
	char text[4];
	int fds[2];

	peeked_pair(fds, 100000);
	before = cpu_time();
	CHECK(recv(fds[0], text, sizeof text, MSG_PEEK) < 0 && errno == EAGAIN);
	CHECK(cpu_time() - before < 50000000);
	CHECK(recv(fds[0], text, sizeof text, 0) == 3);
	close_both(fds);
	return pass;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

enum { CONNECTIONS = 24 };

static struct sockaddr_in server;
static unsigned accepted;

static void *accept_some(void *listener)
{
	char text[4];
	int i, fd;

	for (i = 0; i < CONNECTIONS / 4; i++) {
		fd = accept(*(int *)listener, NULL, NULL);
		CHECK(fd >= 0 && blocks(fd));
		CHECK(read(fd, text, 4) == 2);
		CHECK(write(fd, "ok", 2) == 2);
		CHECK(close(fd) == 0);
		__atomic_fetch_add(&accepted, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *connect_once(void *unused)
{
	char text[4];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&server, sizeof server) == 0 && blocks(fd));
	CHECK(write(fd, "hi", 2) == 2 && read(fd, text, 4) == 2 && read(fd, text, 4) == 0);
	CHECK(close(fd) == 0);
	return unused;
}

/* Several tasks accept at one listener: a connection that one task accepts must not block a different task. */
static void *connections(void *pass)
{
	int listener = bound(SOCK_STREAM, &server), fd, i;

	CHECK(listen(listener, 64) == 0);
	accepted = 0;
	{
		WEFT_SCOPE(scope);
		for (i = 0; i < 4; i++)
			CHECK(weft_scope_spawn(&scope, accept_some, &listener) == 0);
		for (i = 0; i < CONNECTIONS; i++)
			CHECK(weft_scope_spawn(&scope, connect_once, NULL) == 0);
		CHECK(weft_scope_wait(&scope) == 0);
	}
	CHECK(accepted == CONNECTIONS);
	CHECK(close(listener) == 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fd, (struct sockaddr *)&server, sizeof server) == -1 && errno == ECONNREFUSED);
	CHECK(close(fd) == 0);
	return pass;
}

/* A Unix socket's listener with a queue for two, or a receiver of datagrams, without room. */
struct crowd {
	struct sockaddr_un to;
	socklen_t size;
	int other, fds[2], fd, error;
	bool sends;
};

static void *come_late(void *crowd)
{
	struct crowd *c = crowd;
	const struct sockaddr *to = (const struct sockaddr *)&c->to;

	c->error =
	    (c->sends ? sendto(c->fd, "late", 4, 0, to, c->size) == 4 : !connect(c->fd, to, c->size)) ? 0 : errno;
	return NULL;
}

static void crowd_begin(struct crowd *c, bool sends)
{
	static unsigned serial;
	int type = sends ? SOCK_DGRAM : SOCK_STREAM;

	*c = (struct crowd){.to = {.sun_family = AF_UNIX}, .sends = sends};
	c->size = (socklen_t)(3 + snprintf(c->to.sun_path + 1, 90, "weft-posix-%d-%u", getpid(), serial++));
	c->other = socket(AF_UNIX, type, 0);
	CHECK(!bind(c->other, (struct sockaddr *)&c->to, c->size) && (sends || !listen(c->other, 1)));
	for (int i = 0; i < 2; i++) {
		c->fds[i] = socket(AF_UNIX, type, 0);
		CHECK(!connect(c->fds[i], (struct sockaddr *)&c->to, c->size));
	}
	while (sends && send(c->fds[0], "fill", 4, MSG_DONTWAIT) == 4)
		;
	c->fd = socket(AF_UNIX, type, 0);
}

static void crowd_end(struct crowd *c)
{
	CHECK(!close(c->fds[0]) && !close(c->fds[1]) && !close(c->fd) && !close(c->other));
}

static void *make_room(void *crowd)
{
	struct crowd *c = crowd;
	int fd;

	usleep(20000);
	if (c->sends) {
		CHECK(recv(c->other, (char[8]){0}, 8, 0) == 4);
		return NULL;
	}
	fd = accept(c->other, NULL, NULL);
	CHECK(fd >= 0 && !close(fd));
	return NULL;
}

static void *close_it(void *crowd)
{
	struct crowd *c = crowd;

	usleep(20000);
	CHECK(!close(c->fd));
	return NULL;
}

static void cancel_it(struct crowd *c)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, come_late, c) == 0);
	usleep(20000);
	weft_scope_cancel(&scope, -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -ECANCELED);
}

static void *no_room(void *pass)
{
	const struct timeval limit = {0, 20000};
	struct crowd c;

	for (int i = 0; i < 2; i++) {
		crowd_begin(&c, i);
		CHECK(setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
		come_late(&c);
		CHECK(c.error == EAGAIN && !close(c.fd));
		c.fd = socket(AF_UNIX, (i ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0);
		come_late(&c);
		CHECK(c.error == EAGAIN && !close(c.fd));
		c.fd = socket(AF_UNIX, i ? SOCK_DGRAM : SOCK_STREAM, 0);
		both(come_late, &c, make_room, &c);
		CHECK(!c.error && blocks(c.fd) && !close(c.fd));
		c.fd = socket(AF_UNIX, i ? SOCK_DGRAM : SOCK_STREAM, 0);
		if (workers) {
			cancel_it(&c);
			CHECK(c.error == ECANCELED);
			both(come_late, &c, close_it, &c);
			CHECK(c.error == EBADF);
			c.fd = dup(c.other);
		}
		crowd_end(&c);
	}
	return pass;
}

/* ---- readiness --------------------------------------------------------------------------------------------------- */

static void *write_later(void *fd)
{
	CHECK(usleep(2000) == 0);
	CHECK(write(*(int *)fd, "x", 1) == 1);
	return NULL;
}

static void *poll_three(void *argument)
{
	const int *fds = argument;
	struct pollfd p[3] = {{fds[0], POLLIN, 0}, {-1, POLLIN, 0}, {fds[0], POLLPRI, 0}};
	struct pollfd one = {fds[0], POLLIN, 0};
	char text[2];

	CHECK(poll(p, 3, 1) == 0 || p[0].revents);
	CHECK(poll(p, 3, -1) == 1 && p[0].revents == POLLIN && !p[1].revents && !p[2].revents);
	CHECK(poll(&one, 1, -1) == 1 && one.revents == POLLIN);
	CHECK(read(fds[0], text, 2) == 1);
	CHECK(poll(&one, 1, 3) == 0 && poll(p, 3, 3) == 0 && poll(NULL, 0, 1) == 0);
	return NULL;
}

static void *select_two(void *argument)
{
	const int *fds = argument;
	struct timeval limit = {20, 0};
	fd_set in, out;
	char text[2];

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fds[0], &in);
	CHECK(select(fds[0] + 1, &in, &out, NULL, &limit) == 1 && FD_ISSET(fds[0], &in));
	CHECK(limit.tv_sec < 20 && limit.tv_sec >= 0);
	CHECK(read(fds[0], text, 2) == 1);
	limit = (struct timeval){0, 2000};
	CHECK(select(fds[0] + 1, &in, NULL, NULL, &limit) == 0 && !FD_ISSET(fds[0], &in));
	CHECK(!limit.tv_sec && !limit.tv_usec);
	return NULL;
}

static void *wait_in_set(void *argument)
{
	const int *fds = argument;
	struct epoll_event event = {EPOLLIN, {.u64 = 7}};
	int set = epoll_create1(EPOLL_CLOEXEC);
	char text[2];

	CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event) == 0);
	CHECK(epoll_wait(set, &event, 1, -1) == 1 && event.data.u64 == 7);
	CHECK(read(fds[0], text, 2) == 1);
	CHECK(epoll_wait(set, &event, 1, 2) == 0);
	CHECK(close(set) == 0);
	return NULL;
}

static void *wait_masked(void *argument)
{
	const int *fds = argument;
	struct pollfd p = {fds[0], POLLIN, 0};
	struct timespec limit = {20, 0};
	sigset_t mask;
	char text[2];

	sigemptyset(&mask);
	CHECK(ppoll(&p, 1, &limit, &mask) == 1 && p.revents == POLLIN);
	CHECK(read(fds[0], text, 2) == 1);
	return NULL;
}

static volatile sig_atomic_t let_through;

static void counts_signal(int number)
{
	(void)number;
	let_through++;
}

/* All threads block the signal, but the call's mask does not: the signal ends the call, and is handled once. */
static void *wait_for_signal(void *argument)
{
	struct pollfd p = {*(const int *)argument, POLLIN, 0};
	struct timespec limit = {20, 0};
	sigset_t mask;

	sigfillset(&mask);
	sigdelset(&mask, SIGUSR2);
	errno = 0;
	CHECK(ppoll(&p, 1, &limit, &mask) == -1 && errno == EINTR);
	CHECK(let_through == 1);
	return NULL;
}

static void *send_signal(void *argument)
{
	(void)argument;
	CHECK(usleep(2000) == 0);
	CHECK(kill(getpid(), SIGUSR2) == 0);
	return NULL;
}

static void *signals_let_through(void *pass)
{
	struct sigaction action = {.sa_handler = counts_signal, .sa_flags = SA_ONSTACK};
	int fds[2];

	pair(fds);
	let_through = 0;
	CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
	both(wait_for_signal, fds, send_signal, NULL);
	close_both(fds);
	return pass;
}

/* Sends signals one after another. Their handler does not request that calls are restarted. */
static volatile bool calm;

static void *send_signals(void *worker)
{
	while (!calm)
		CHECK(pthread_kill(*(pthread_t *)worker, SIGUSR1) == 0);
	return NULL;
}

static void *wait_among_signals(void *fd)
{
	struct pollfd p[] = {{*(int *)fd, POLLIN, 0}, {*(int *)fd, POLLPRI, 0}};
	struct epoll_event event = {EPOLLIN, {.u64 = 7}};
	int set = epoll_create1(EPOLL_CLOEXEC), peeked[2], i;
	struct timeval limit;
	char text[4];
	fd_set in;

	peeked_pair(peeked, 1000);
	CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, p[0].fd, &event) == 0);
	for (i = 0; i < 1000; i++) {
		bool waits = i % 100 == 0;

		CHECK(poll(p, 1, waits) == 0 && poll(p, 2, waits) == 0);
		FD_ZERO(&in);
		FD_SET(p[0].fd, &in);
		limit = (struct timeval){0, waits * 100};
		CHECK(select(p[0].fd + 1, &in, NULL, NULL, &limit) == 0);
		CHECK(epoll_wait(set, &event, 1, waits) == 0);
		CHECK(recv(peeked[0], text, sizeof text, MSG_PEEK) < 0 && errno == EAGAIN);
	}
	close_both(peeked);
	CHECK(close(set) == 0);
	return NULL;
}

/* No call of a task ends because of a signal. */
static void *interruptions(void *pass)
{
	struct sigaction action = {.sa_handler = counts_signal, .sa_flags = SA_ONSTACK};
	pthread_t thread, worker = pthread_self();
	int fds[2];

	pair(fds);
	calm = false;
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, send_signals, &worker) == 0);
	both(wait_among_signals, &fds[0], wait_among_signals, &fds[1]);
	calm = true;
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	close_both(fds);
	return pass;
}

static void *readiness(void *pass)
{
	struct pollfd closed = {1000000, POLLIN, 0};
	int fds[2];

	pair(fds);
	both(poll_three, fds, write_later, &fds[1]);
	both(select_two, fds, write_later, &fds[1]);
	both(wait_in_set, fds, write_later, &fds[1]);
	both(wait_masked, fds, write_later, &fds[1]);
	CHECK(poll(&closed, 1, -1) == 1 && closed.revents == POLLNVAL);
	close_both(fds);
	return pass;
}

/* ---- rivals ------------------------------------------------------------------------------------------------------ */

enum { TAKEN_BY_ANY = 300 };

/* A task and a child process take from the same listener or terminal. */
struct rivalry {
	int fd, terminal; /* terminal: its other side, or -1 */
	struct sockaddr_in address;
	bool given, over;	/* atomic */
	unsigned beats, *taken; /* atomic; `taken` is shared with the child */
};

/* Returns false if it was the last. */
static bool take(struct rivalry *r)
{
	char c[2] = "";
	int fd = r->terminal < 0 ? accept(r->fd, NULL, NULL) : r->fd;
	ssize_t n;

	CHECK(fd >= 0);
	n = read(fd, c, r->terminal < 0 ? 1 : 2);
	if (n < 0 && errno == ECANCELED)
		return false;
	CHECK(n > 0);
	if (fd != r->fd)
		CHECK(close(fd) == 0);
	__atomic_fetch_add(r->taken, 1, __ATOMIC_RELAXED);
	return *c != 'q';
}

static void *take_all(void *rivalry)
{
	while (take(rivalry))
		;
	return NULL;
}

static void *beat(void *rivalry)
{
	struct rivalry *r = rivalry;

	while (!__atomic_load_n(&r->over, __ATOMIC_RELAXED)) {
		__atomic_fetch_add(&r->beats, 1, __ATOMIC_RELAXED);
		CHECK(usleep(200) == 0 || errno == ECANCELED);
	}
	return NULL;
}

static void give(struct rivalry *r, const char *what)
{
	int fd = r->terminal;

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(fd, (struct sockaddr *)&r->address, sizeof r->address) == 0);
	}
	CHECK(write(fd, what, 2) == 2);
	if (fd != r->terminal)
		CHECK(close(fd) == 0);
}

/* Runs in a thread. Whichever process takes the given connections or bytes, the other tasks of the worker continue. */
static void *give_all(void *rivalry)
{
	struct rivalry *r = rivalry;
	unsigned i, beats;

	for (i = 0; i < TAKEN_BY_ANY; i++) {
		give(r, "a\n");
		while (__atomic_load_n(r->taken, __ATOMIC_RELAXED) == i)
			CHECK(usleep(20) == 0);
		beats = __atomic_load_n(&r->beats, __ATOMIC_RELAXED);
		while (__atomic_load_n(&r->beats, __ATOMIC_RELAXED) == beats)
			CHECK(usleep(20) == 0);
	}
	__atomic_store_n(&r->given, true, __ATOMIC_RELAXED);
	return NULL;
}

static void compete(struct rivalry *r)
{
	pthread_t thread;
	pid_t child;

	r->taken = mmap(NULL, sizeof *r->taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_all(r);
	}
	CHECK(r->taken != MAP_FAILED && child > 0);
	CHECK(pthread_create(&thread, NULL, give_all, r) == 0);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, take_all, r) == 0 && weft_scope_spawn(&scope, beat, r) == 0);
	while (!__atomic_load_n(&r->given, __ATOMIC_RELAXED))
		CHECK(usleep(1000) == 0);
	CHECK(pthread_join(thread, NULL) == 0 && kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	__atomic_store_n(&r->over, true, __ATOMIC_RELAXED);
	/* A read of a terminal can be cancelled even if the child has taken the byte that poll reported. */
	if (r->terminal < 0)
		give(r, "q\n");
	else
		weft_scope_cancel(&scope, -ECANCELED);
	CHECK(weft_scope_wait(&scope) == (r->terminal < 0 ? 0 : -ECANCELED));
	CHECK(munmap(r->taken, sizeof *r->taken) == 0 && close(r->fd) == 0);
}

/* Another process may take the data that poll has reported, before a task reads them. */
static void *rivals(void *pass)
{
	struct rivalry listener = {.terminal = -1}, terminal = {.terminal = -1};

	listener.fd = bound(SOCK_STREAM, &listener.address);
	CHECK(listen(listener.fd, 64) == 0);
	compete(&listener);
	CHECK(openpty(&terminal.terminal, &terminal.fd, NULL, NULL, NULL) == 0);
	compete(&terminal);
	CHECK(close(terminal.terminal) == 0);
	return pass;
}

static void *never(void *fd)
{
	struct pollfd p = {*(int *)fd, POLLIN, 0};

	CHECK(poll(&p, 1, 100) == 0);
	return NULL;
}

/* Tasks that wait for an event that never happens use no CPU time. */
static void *idle(void *pass)
{
	weft_rt_stats_t before, after;
	int fds[2];

	pair(fds);
	CHECK(weft_rt_stats(&before) == 0);
	both(never, &fds[0], never, &fds[0]);
	CHECK(weft_rt_stats(&after) == 0);
	if (after.switches - before.switches > 50)
		dprintf(1, "%lu switches\n", (unsigned long)(after.switches - before.switches));
	CHECK(after.switches - before.switches <= 50);
	close_both(fds);
	return pass;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

struct ending {
	int fds[2], other, others_end;
	uint32_t waits;
	int how;
};

static void *wait_to_the_end(void *argument)
{
	struct ending *e = argument;
	int error;

	__atomic_store_n(&e->waits, 1, __ATOMIC_RELEASE);
	error = error_of_recv(e->fds[0]);
	/* The call may have begun after the number was reused for a different file. */
	if (error != EBADF && (e->how != 2 || error))
		dprintf(1, "errno is %d\n", error);
	CHECK(error == EBADF || (e->how == 2 && !error));
	return NULL;
}

/* Does the same with a poll of several descriptors. */
static void *poll_to_the_end(void *argument)
{
	struct ending *e = argument;
	struct pollfd fds[3] = {{e->others_end, POLLIN, 0}, {-1, POLLIN, 0}, {e->fds[0], POLLIN, 0}};

	__atomic_store_n(&e->waits, 1, __ATOMIC_RELEASE);
	CHECK(poll(fds, 3, -1) == 1 && !fds[0].revents && !fds[1].revents);
	/* The poll may have begun after the number was reused for a different file. */
	CHECK(fds[2].revents == POLLNVAL || (e->how == 2 && fds[2].revents == POLLIN));
	return NULL;
}

static void *close_in_thread(void *fd)
{
	CHECK(close(*(int *)fd) == 0);
	return NULL;
}

static void *end_it(void *argument)
{
	struct ending *e = argument;
	pthread_t thread;

	while (!__atomic_load_n(&e->waits, __ATOMIC_ACQUIRE))
		CHECK(usleep(1000) == 0);
	CHECK(usleep(5000) == 0);
	if (e->how == 0) {
		CHECK(close(e->fds[0]) == 0);
	} else if (e->how == 1) {
		CHECK(pthread_create(&thread, NULL, close_in_thread, &e->fds[0]) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	} else {
		CHECK(dup2(e->other, e->fds[0]) == e->fds[0]);
		CHECK(write(e->others_end, "new", 3) == 3);
	}
	return NULL;
}

static void *closing(void *pass)
{
	struct ending e;
	char text[4];
	int others[2];

	for (int i = 0; i < 6; i++) {
		int how = i % 3;

		pair(others);
		e = (struct ending){.other = others[0], .others_end = others[1], .how = how};
		pair(e.fds);
		both(i < 3 ? wait_to_the_end : poll_to_the_end, &e, end_it, &e);
		if (how == 2) {
			/* The number now denotes a different file, which must not be disturbed. */
			CHECK(write(others[1], "new", 3) == 3 && read(e.fds[0], text, 4) >= 3);
			CHECK(close(e.fds[0]) == 0);
		} else {
			CHECK(fcntl(e.fds[0], F_GETFD) == -1);
		}
		CHECK(close(e.fds[1]) == 0);
		close_both(others);
	}
	return pass;
}

static int told;

/* Behaves like a library: releases its memory, and returns an error of its own. */
static void *cancelled_in_library(void *fd)
{
	char *held = malloc(10), text[4];
	ssize_t n = read(*(int *)fd, text, 4);

	told = n < 0 ? errno : 0;
	free(held);
	CHECK(usleep(1) == -1 && errno == ECANCELED);
	weft_sleep(1);
	CHECK(!"reached");
	return NULL;
}

static void *cancelling(void *pass)
{
	int fds[2];

	pair(fds);
	{
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, cancelled_in_library, &fds[0]) == 0);
		CHECK(usleep(5000) == 0);
		weft_scope_cancel(&scope, -ECANCELED);
		CHECK(weft_scope_wait(&scope) == -ECANCELED);
	}
	CHECK(told == ECANCELED || told == 0);
	CHECK(write(fds[1], "abc", 3) == 3);
	CHECK(read(fds[0], (char[4]){0}, 4) == 3);
	close_both(fds);
	return pass;
}

/* ---- time, processes, names, files ------------------------------------------------------------------------------- */

static void *sleeping(void *pass)
{
	struct timespec time = {0, 2000000}, end, now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK(nanosleep(&time, NULL) == 0 && clock_nanosleep(CLOCK_REALTIME, 0, &time, NULL) == 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK((end.tv_sec - now.tv_sec) * 1000000000 + end.tv_nsec - now.tv_nsec >= 4000000);
	end.tv_sec -= 5;
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == 0);
	CHECK(sleep(0) == 0 && sched_yield() == 0);
	time.tv_nsec = -1;
	CHECK(nanosleep(&time, NULL) == -1 && errno == EINVAL);
	return pass;
}

/* The child has no runtime. */
static _Noreturn void be_child(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	char text[4];

	_exit(poll(&p, 1, -1) == 1 && read(fd, text, 4) == 2 && usleep(100) == 0 && close(fd) == 0 ? 7 : 8);
}

#ifdef PRELOADED
/* The timer slack of a child, and of a program after exec. */
static void slack_is_usual(void)
{
	char *const argv[] = {"cat", "/proc/self/timerslack_ns", NULL}, text[32] = "";
	FILE *child = popen("cat /proc/self/timerslack_ns", "r");
	int fds[2];
	pid_t process;

	CHECK(child && fgets(text, sizeof text, child) && atoi(text) > 1000 && pclose(child) == 0);
	pair(fds);
	process = vfork();
	if (!process) {
		(void)dup2(fds[1], 1);
		execvp(argv[0], argv);
		_exit(1);
	}
	CHECK(read(fds[0], text, sizeof text) > 0 && atoi(text) > 1000);
	CHECK(waitpid(process, NULL, 0) == process);
	close_both(fds);
}
#endif

static void *processes(void *pass)
{
	int fds[2], status, i;
	pid_t child, ended;

	for (i = 0; i < 2; i++) {
		pair(fds);
		child = fork();
		CHECK(child >= 0);
		if (!child)
			be_child(fds[0]);
		CHECK(waitpid(child, &status, WNOHANG) == 0);
		CHECK(write(fds[1], "go", 2) == 2);
		ended = i ? waitpid(child, &status, 0) : wait(&status);
		CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
		close_both(fds);
	}
	CHECK(waitpid(child, &status, 0) == -1 && errno == ECHILD);
	status = system("exit 3");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	status = system("exit $(($(cat /proc/self/timerslack_ns) > 1000 ? 4 : 5))");
	CHECK(WEXITSTATUS(status) == 4);
#ifdef PRELOADED
	slack_is_usual();
#endif
	return pass;
}

static void *names(void *pass)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *list;
	char name[64];

	CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0);
	CHECK(getnameinfo(list->ai_addr, list->ai_addrlen, name, sizeof name, NULL, 0, NI_NUMERICHOST) == 0);
	CHECK(!strcmp(name, "127.0.0.1"));
	freeaddrinfo(list);
	hints.ai_flags = 0;
	CHECK(getaddrinfo("127.0.0.1", "80", &hints, &list) == 0);
	freeaddrinfo(list);
	CHECK(getaddrinfo("no name at all", NULL, &hints, &list) != 0);
	return pass;
}

static void *files(void *pass)
{
	char text[64];
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	FILE *file = tmpfile();

	CHECK(fd >= 0 && read(fd, text, sizeof text) > 0 && read(fd, text, sizeof text) == 0 && close(fd) == 0);
	CHECK(file && write(fileno(file), "hello", 5) == 5 && fsync(fileno(file)) == 0);
	CHECK(lseek(fileno(file), 1, SEEK_SET) == 1 && read(fileno(file), text, 10) == 4 && !memcmp(text, "ello", 4));
	CHECK(flock(fileno(file), LOCK_EX) == 0 && flock(fileno(file), LOCK_UN) == 0);
	fclose(file);
	return pass;
}

/* ---- calls that Weft does not change ----------------------------------------------------------------------------- */

static void *read_in_thread(void *fd)
{
	char text[4];

	CHECK(read(*(int *)fd, text, 4) == 2);
	(void)read(*(int *)fd, text, 4); /* the thread is cancelled in this call */
	CHECK(!"reached");
	return NULL;
}

static void *threads(void *pass)
{
	pthread_t thread;
	void *result;
	int fds[2];

	pair(fds);
	CHECK(pthread_create(&thread, NULL, read_in_thread, &fds[0]) == 0);
	CHECK(write(fds[1], "go", 2) == 2);
	CHECK(usleep(5000) == 0);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
	close_both(fds);
	return pass;
}

static int handled[2];

static void on_signal(int number)
{
	char text[2];

	(void)number;
	(void)!write(handled[1], "s", 1);
	(void)!read(handled[0], text, 2);
}

/* A signal handler that interrupts a task must not suspend it. */
static void *handlers(void *pass)
{
	struct sigaction action = {.sa_handler = on_signal}, before;
	int i;

	pair(handled);
	CHECK(weft_sigaction(SIGUSR1, &action, &before) == 0);
	for (i = 0; i < 100; i++) {
		CHECK(raise(SIGUSR1) == 0);
		CHECK(sched_yield() == 0);
	}
	CHECK(weft_sigaction(SIGUSR1, &before, NULL) == 0);
	close_both(handled);
	return pass;
}

static void *give_up(void *unused)
{
	(void)unused;
	return NULL;
}

/* Pointers to the functions point to the same functions. */
static void *pointers(void *pass)
{
	ssize_t (*by_pointer)(int, const void *, size_t) = write;
	int fds[2];

	pair(fds);
	CHECK(by_pointer(fds[0], "x", 1) == 1);
	CHECK(read(fds[1], (char[2]){0}, 2) == 1);
	both(give_up, NULL, give_up, NULL);
	close_both(fds);
	return pass;
}

enum { THREADS_TOO = true };

static const struct {
	const char *name;
	weft_fn_t *fn;
	bool in_thread;
} tests[] = {
    {"talking", talking, THREADS_TOO},
    {"non_blocking", non_blocking, THREADS_TOO},
    {"whole_writes", whole_writes, THREADS_TOO},
    {"waiting_for_all", waiting_for_all, THREADS_TOO},
    {"datagrams", datagrams, THREADS_TOO},
    {"time_limits", time_limits, THREADS_TOO},
    {"peeks_behind_all", peeks_behind_all, THREADS_TOO},
    {"connections", connections, false},
    {"no_room", no_room, THREADS_TOO},
    {"rivals", rivals, false},
    {"readiness", readiness, THREADS_TOO},
    {"signals_let_through", signals_let_through, false},
    {"interruptions", interruptions, false},
    {"idle", idle, false},
    {"closing", closing, false},
    {"cancelling", cancelling, false},
    {"sleeping", sleeping, THREADS_TOO},
    {"processes", processes, THREADS_TOO},
    {"names", names, THREADS_TOO},
    {"files", files, THREADS_TOO},
    {"threads", threads, THREADS_TOO},
    {"handlers", handlers, THREADS_TOO},
    {"pointers", pointers, THREADS_TOO},
};

static void too_late(int number)
{
	static const char text[] = "not ok - a call waits for ever\n";

	(void)number;
	(void)!write(1, text, sizeof text - 1);
	_exit(1);
}

/* posix WORKERS [NAME]; 0: in a thread. */
int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};
	void *result;
	sigset_t set;
	int error;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, too_late);
	alarm(PATIENCE);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if ((argc > 2 && strcmp(argv[2], tests[i].name)) || (!workers && !tests[i].in_thread))
			continue;
		error = 0;
		if (workers)
			error = weft_rt_run(&config, tests[i].fn, &config, &result);
		else
			result = tests[i].fn(&config);
		if (error || result != &config) {
			printf("not ok - %s: %s\n", tests[i].name, strerror(-error));
			return 1;
		}
		printf("ok - %s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
