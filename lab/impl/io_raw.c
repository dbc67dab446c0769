/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limits of the experiment `io`: the same operations in a hand-written loop around epoll, or around io_uring
 * (LAB_RING: liburing, one thread, SINGLE_ISSUER and DEFER_TASKRUN). No stacks: a state variable holds the next step of
 * each connection.
 *
 *   case=pipe, tcp   n round trips of a byte between two ends in this process
 *   case=echo, accept, idle_memory, late   a server: io_server.h; late: beside a thread that computes
 *   case=udp         a server of datagrams, at most `batch` datagrams by each call (with a ring: one)
 *   case=send        n sends of `size` bytes to a thread that reads them; zerocopy=1: by MSG_ZEROCOPY, or the ring's
 *                    SEND_ZC, and the program waits until the kernel has released each buffer
 *   case=file        n reads of 4 KiB of a file of `blocks`, `depth` at a time; by plain pread without a ring
 *   case=cancel      n reads of an empty pipe that are cancelled; without a ring: n reads that return EAGAIN
 */
#define _GNU_SOURCE
#include "io_server.h"
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* One side of an exchange: it writes to `out` the bytes that it reads from `in`. */
struct end {
	int in, out;
	bool writing, counts;
	char text[IO_BUFFER];
};

static int64_t trips; /* round trips that remain */
static int listener = -1;
static bool many; /* accept=multishot */

static struct end *make_end(int in, int out)
{
	struct end *e = calloc(1, sizeof(*e));

	io_must(e, "calloc");
	e->in = in;
	e->out = out;
	return e;
}

static void make_pair(bool tcp, int to[2], int back[2], int mode)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int port, one = 1, here, there, door;

	if (!tcp) {
		io_must(!pipe2(to, O_CLOEXEC | mode) && !pipe2(back, O_CLOEXEC | mode), "pipe2");
		return;
	}
	door = io_listen(&port, SOCK_STREAM);
	at.sin_port = htons((uint16_t)port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	here = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	io_must(!connect(here, (struct sockaddr *)&at, sizeof(at)), "connect");
	there = accept(door, NULL, NULL);
	setsockopt(here, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(there, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(here, F_SETFL, mode);
	fcntl(there, F_SETFL, mode);
	to[0] = back[1] = there;
	to[1] = back[0] = here;
}

#ifndef LAB_RING
/* ---- epoll ------------------------------------------------------------------------------------------------------- */

enum { MODE = O_NONBLOCK };

static int set;

static void open_loop(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	io_must(set >= 0, "epoll_create1");
}

static void begin_end(struct end *e)
{
	io_watch(set, e->in, e);
}

/* Accepts one connection. The event is level-triggered, so epoll reports further connections again. */
static void let_in(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		begin_end(make_end(fd, fd));
}

static void go_on(struct end *e)
{
	ssize_t n = read(e->in, e->text, sizeof(e->text));

	if (n <= 0) {
		close(e->in);
		free(e);
		return;
	}
	if (e->counts && !--trips)
		return;
	io_must(write(e->out, e->text, (size_t)n) == n, "write");
}

static void run(void)
{
	struct epoll_event events[256];

	while (trips) {
		int count = epoll_wait(set, events, 256, -1);

		for (int i = 0; i < count; i++)
			if (events[i].data.ptr)
				go_on(events[i].data.ptr);
			else
				let_in();
	}
}

static void begin_server(void)
{
	fcntl(listener, F_SETFL, O_NONBLOCK);
	io_watch(set, listener, NULL);
}

static void first_ping(struct end *e)
{
	io_must(write(e->out, "", 1) == 1, "write");
}

/* Echoes datagrams until the socket is empty. */
static void send_back_one_by_one(int fd)
{
	struct sockaddr_in from;
	char text[IO_BUFFER];
	socklen_t size = sizeof(from);
	ssize_t n;

	while ((n = recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &size)) >= 0)
		io_must(sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, size) == n, "sendto");
}

static void send_back_in_batches(int fd, unsigned most)
{
	static struct io_batch b;
	int count;

	do {
		io_make_batch(&b, most);
		count = recvmmsg(fd, b.messages, most, 0, NULL);
		if (count > 0) {
			io_turn_round(&b, count);
			io_must(sendmmsg(fd, b.messages, (unsigned)count, 0) == count, "sendmmsg");
		}
	} while (count == (int)most);
}

static void serve_datagrams(int fd, unsigned most)
{
	struct epoll_event event;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	io_watch(set, fd, NULL);
	for (;;) {
		if (epoll_wait(set, &event, 1, -1) < 1)
			continue;
		if (most > 1)
			send_back_in_batches(fd, most);
		else
			send_back_one_by_one(fd);
	}
}

/* Waits until the kernel has released one buffer. */
static void wait_for_buffer(int fd)
{
	struct pollfd ready = {fd, 0, 0};
	struct msghdr message = {0};
	char control[128];

	do {
		io_must(poll(&ready, 1, -1) == 1, "poll");
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
	} while (recvmsg(fd, &message, MSG_ERRQUEUE) < 0 && errno == EAGAIN);
}

static ssize_t send_some(int fd, const char *data, size_t length, bool zerocopy)
{
	ssize_t n = send(fd, data, length, zerocopy ? MSG_ZEROCOPY : 0);

	if (n > 0 && zerocopy)
		wait_for_buffer(fd);
	return n;
}

static int64_t read_file(int fd, int64_t n, int64_t depth, int64_t blocks)
{
	int64_t block[IO_BLOCK / sizeof(int64_t)], right = 0;

	(void)depth;
	for (int64_t i = 0; i < n; i++) {
		io_must(pread(fd, block, sizeof(block), io_block(i, blocks) * IO_BLOCK) == sizeof(block), "pread");
		right += block[0] == io_block(i, blocks);
	}
	return right;
}

static void cancel(int64_t n)
{
	int pair[2], back[2];
	char byte;

	make_pair(false, pair, back, MODE);
	for (int64_t i = 0; i < n; i++)
		io_must(read(pair[0], &byte, 1) < 0 && errno == EAGAIN, "read");
}

#else
/* ---- io_uring ---------------------------------------------------------------------------------------------------- */

#include <liburing.h>

enum { MODE = 0 };

static struct io_uring ring;

static struct io_uring_sqe *entry(void *what)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe) {
		io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	io_must(sqe, "the submission queue");
	io_uring_sqe_set_data(sqe, what);
	return sqe;
}

static void open_loop(void)
{
	struct io_uring_params p = {.flags =
					IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
				    .cq_entries = 4096};

	errno = -io_uring_queue_init_params(256, &ring, &p);
	if (errno)
		lab_cannot("io_uring_queue_init_params: %s", strerror(errno));
	io_uring_register_ring_fd(&ring);
}

static void next_step(struct end *e, int length)
{
	struct io_uring_sqe *sqe = entry(e);
	bool socket = e->in == e->out;

	if (e->writing && socket)
		io_uring_prep_send(sqe, e->out, e->text, (size_t)length, MSG_NOSIGNAL);
	else if (e->writing)
		io_uring_prep_write(sqe, e->out, e->text, (unsigned)length, (uint64_t)-1);
	else if (socket)
		io_uring_prep_recv(sqe, e->in, e->text, sizeof(e->text), 0);
	else
		io_uring_prep_read(sqe, e->in, e->text, sizeof(e->text), (uint64_t)-1);
	io_uring_sqe_set_data(sqe, e);
}

static void begin_end(struct end *e)
{
	next_step(e, 0);
}

static void wait_for_client(void)
{
	if (many)
		io_uring_prep_multishot_accept(entry(NULL), listener, NULL, NULL, SOCK_CLOEXEC);
	else
		io_uring_prep_accept(entry(NULL), listener, NULL, NULL, SOCK_CLOEXEC);
}

static void let_in(int fd, bool more)
{
	io_must(fd >= 0, "accept");
	begin_end(make_end(fd, fd));
	if (!more)
		wait_for_client();
}

static void go_on(struct end *e, int result)
{
	if (result <= 0) {
		close(e->in);
		free(e);
		return;
	}
	if (!e->writing && e->counts && !--trips)
		return;
	e->writing = !e->writing;
	next_step(e, result);
}

static void run(void)
{
	struct io_uring_cqe *cqe;
	unsigned head, count;

	while (trips) {
		io_uring_submit_and_wait(&ring, 1);
		count = 0;
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			struct end *e = io_uring_cqe_get_data(cqe);

			count++;
			if (e)
				go_on(e, cqe->res);
			else
				let_in(cqe->res, cqe->flags & IORING_CQE_F_MORE);
		}
		io_uring_cq_advance(&ring, count);
	}
}

static void begin_server(void)
{
	wait_for_client();
}

static void first_ping(struct end *e)
{
	e->writing = true;
	next_step(e, 1);
}

static int wait_for_one(void)
{
	struct io_uring_cqe *cqe;
	int result;

	io_uring_submit_and_wait(&ring, 1);
	io_must(!io_uring_wait_cqe(&ring, &cqe) && cqe->res >= 0, "a datagram");
	result = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	return result;
}

/* With SEND_ZC a second completion reports that the kernel has released the buffer. */
static ssize_t send_some(int fd, const char *data, size_t length, bool zerocopy)
{
	struct io_uring_cqe *cqe;
	ssize_t sent = -1;
	bool more = true;

	if (zerocopy)
		io_uring_prep_send_zc(entry(NULL), fd, data, length, 0, 0);
	else
		io_uring_prep_send(entry(NULL), fd, data, length, 0);
	while (more) {
		io_uring_submit_and_wait(&ring, 1);
		io_must(!io_uring_wait_cqe(&ring, &cqe), "io_uring_wait_cqe");
		if (!(cqe->flags & IORING_CQE_F_NOTIF))
			sent = cqe->res;
		more = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(&ring, cqe);
	}
	return sent;
}

static void serve_datagrams(int fd, unsigned most)
{
	static struct io_batch b;
	struct msghdr *message = &b.messages[0].msg_hdr;

	for (;; (void)most) {
		io_make_batch(&b, 1);
		io_uring_prep_recvmsg(entry(NULL), fd, message, 0);
		b.parts[0].iov_len = (size_t)wait_for_one();
		io_uring_prep_sendmsg(entry(NULL), fd, message, 0);
		(void)wait_for_one();
	}
}

struct slot {
	int64_t wanted;
	int64_t block[IO_BLOCK / sizeof(int64_t)];
};

static void read_next(struct slot *s, int fd, int64_t i, int64_t blocks)
{
	struct io_uring_sqe *sqe = entry(s);

	s->wanted = io_block(i, blocks);
	io_uring_prep_read(sqe, fd, s->block, sizeof(s->block), (uint64_t)(s->wanted * IO_BLOCK));
	io_uring_sqe_set_data(sqe, s);
}

static int64_t read_file(int fd, int64_t n, int64_t depth, int64_t blocks)
{
	struct slot *slots = calloc((size_t)depth, sizeof(*slots));
	struct io_uring_cqe *cqe;
	int64_t i, done = 0, right = 0;
	unsigned head, count;

	io_must(slots, "calloc");
	for (i = 0; i < depth && i < n; i++)
		read_next(&slots[i], fd, i, blocks);
	while (done < n) {
		io_uring_submit_and_wait(&ring, 1);
		count = 0;
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			struct slot *s = io_uring_cqe_get_data(cqe);

			io_must(cqe->res == IO_BLOCK, "read");
			count++;
			right += s->block[0] == s->wanted;
			if (i < n)
				read_next(s, fd, i++, blocks);
		}
		io_uring_cq_advance(&ring, count);
		done += count;
	}
	free(slots);
	return right;
}

static void cancel(int64_t n)
{
	int pair[2], back[2];
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	char byte;

	make_pair(false, pair, back, MODE);
	for (int64_t i = 0; i < n; i++) {
		sqe = entry(&byte);
		io_uring_prep_read(sqe, pair[0], &byte, 1, (uint64_t)-1);
		io_uring_sqe_set_data(sqe, &byte);
		io_uring_submit(&ring);
		sqe = entry(NULL);
		io_uring_prep_cancel(sqe, &byte, 0);
		io_uring_sqe_set_data(sqe, NULL);
		io_uring_submit_and_wait(&ring, 2);
		for (int k = 0; k < 2; k++) {
			io_must(!io_uring_wait_cqe(&ring, &cqe), "io_uring_wait_cqe");
			io_uring_cqe_seen(&ring, cqe);
		}
	}
}
#endif

/* ------------------------------------------------------------------------------------------------------------------ */

static int ping_pong(bool tcp, int64_t n)
{
	int to[2], back[2];
	struct end *one, *other;

	make_pair(tcp, to, back, MODE);
	one = make_end(back[0], to[1]);
	other = make_end(to[0], back[1]);
	one->counts = true;
	trips = n;
	lab_start();
#ifndef LAB_RING
	begin_end(one);
#endif
	begin_end(other);
	first_ping(one);
	run();
	lab_stop();
	return lab_report((uint64_t)n, n);
}

static void *computes(void *unused)
{
	for (;;) {
		io_compute();
		usleep(1000);
	}
	return unused;
}

static int serve(int argc, char **argv)
{
	pthread_t thread;
	int port;

	io_raise_limit();
	listener = io_listen(&port, SOCK_STREAM);
	trips = -1;
	if (lab_is(argc, argv, "case", "late"))
		io_must(!pthread_create(&thread, NULL, computes, NULL), "pthread_create");
	begin_server();
	io_start_load(argc, argv, port);
	run();
	return 2;
}

static int datagrams(int argc, char **argv)
{
	int port, fd = io_listen(&port, SOCK_DGRAM);

	io_start_load(argc, argv, port);
	serve_datagrams(fd, (unsigned)lab_number(argc, argv, "batch", 1));
	return 2;
}

struct receiver {
	int fd;
	int64_t left;
};

static void *takes_all(void *argument)
{
	enum { PART = 1 << 18 };
	struct receiver *r = argument;
	char *part = malloc(PART);
	ssize_t got;

	io_must(part, "malloc");
	while (r->left && (got = read(r->fd, part, PART)) > 0)
		r->left -= got;
	free(part);
	return NULL;
}

static int sends(int64_t n, int64_t size, int zerocopy)
{
	int to[2], back[2];
	struct receiver r = {.left = n * size};
	char *data = malloc((size_t)size);
	pthread_t thread;
	ssize_t sent;

	io_must(data, "malloc");
	memset(data, 1, (size_t)size);
	make_pair(true, to, back, 0);
	r.fd = to[0];
	io_must(!zerocopy || !setsockopt(to[1], SOL_SOCKET, SO_ZEROCOPY, &zerocopy, sizeof(zerocopy)), "SO_ZEROCOPY");
	io_must(!pthread_create(&thread, NULL, takes_all, &r), "pthread_create");
	lab_start();
	for (int64_t i = 0; i < n; i++)
		for (int64_t at = 0; at < size; at += sent) {
			sent = send_some(to[1], data + at, (size_t)(size - at), zerocopy);
			io_must(sent > 0, "send");
		}
	pthread_join(thread, NULL);
	lab_stop();
	free(data);
	return lab_report((uint64_t)n, n - r.left);
}

static int files(int64_t n, int64_t depth, int64_t blocks)
{
	int fd = io_make_file(blocks);
	int64_t right;

	lab_start();
	right = read_file(fd, n, depth, blocks);
	lab_stop();
	return lab_report((uint64_t)n, right);
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 1000);

	signal(SIGPIPE, SIG_IGN);
	many = lab_is(argc, argv, "accept", "multishot");
	open_loop();
	if (lab_is(argc, argv, "case", "pipe") || lab_is(argc, argv, "case", "tcp"))
		return ping_pong(lab_is(argc, argv, "case", "tcp"), n);
	if (lab_is(argc, argv, "case", "udp"))
		return datagrams(argc, argv);
	if (lab_is(argc, argv, "case", "send"))
		return sends(n, lab_number(argc, argv, "size", 4096), (int)lab_number(argc, argv, "zerocopy", 0));
	if (lab_is(argc, argv, "case", "file"))
		return files(n, lab_number(argc, argv, "depth", 1), lab_number(argc, argv, "blocks", 16));
	if (!lab_is(argc, argv, "case", "cancel"))
		return serve(argc, argv);
	lab_start();
	cancel(n);
	lab_stop();
	return lab_report((uint64_t)n, n);
}
