/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limits of experiment B3: an HTTP/1.1 server in a hand-written loop around epoll, or around io_uring (LAB_RING:
 * liburing, one thread, SINGLE_ISSUER and DEFER_TASKRUN, multishot accept and recv into provided buffers).
 *
 * llhttp parses, and keeps the state of a request that arrives in pieces. The loop only counts complete requests: it
 * has no routes, no limits and no deadlines. Requests that one recv returns are answered by one send.
 */
#define _GNU_SOURCE
#include "io_server.h"
#include "http_text.h"
#include <fcntl.h>
#include <llhttp.h>
#include <netinet/tcp.h>
#include <signal.h>

/* PART: bytes that are received at once. READY: replies that are sent at once. */
enum { PART = 16384, REPLY = 256, READY = 64 };

struct client {
	llhttp_t parser;
	int fd;
	unsigned owed; /* complete requests without a reply */
	bool ends;     /* close the connection when nothing is owed */
#ifdef LAB_RING
	bool sending; /* a send is in flight: replies are sent one after another */
	bool receiving;
	unsigned replies; /* number of replies in the current send */
#endif
};

static llhttp_settings_t settings;
static int listener;

/* READY copies of the reply. The first `reply_length` bytes are one reply. */
static char replies[READY * REPLY];
static size_t reply_length;

/* ---- requests and replies ---------------------------------------------------------------------------------------- */

/* Once per second, for the Date field. The length of a reply never changes. */
static void refresh_replies(void)
{
	static time_t last;
	char date[64], reply[REPLY];
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec == last)
		return;
	last = now.tv_sec;
	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&last, &utc));
	reply_length = (size_t)snprintf(reply, sizeof(reply),
					"HTTP/1.1 200 OK\r\n"
					"Content-Type: text/plain\r\n"
					"Content-Length: %d\r\n"
					"Date: %s\r\n"
					"\r\n"
					"%s",
					HTTP_BODY, date, http_body);
	for (int i = 0; i < READY; i++)
		memcpy(replies + (size_t)i * reply_length, reply, reply_length);
}

static int count_request(llhttp_t *parser)
{
	struct client *c = parser->data;

	c->owed++;
	c->ends = !llhttp_should_keep_alive(parser);
	return 0;
}

/* Returns false if the text is no request. */
static bool parse(struct client *c, const char *text, size_t length)
{
	return llhttp_execute(&c->parser, text, length) == HPE_OK;
}

static struct client *make_client(int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	int one = 1;

	io_must(c, "calloc");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	llhttp_init(&c->parser, HTTP_REQUEST, &settings);
	c->parser.data = c;
	c->fd = fd;
	return c;
}

static void delete_client(struct client *c)
{
	close(c->fd);
	free(c);
}

static unsigned next_replies(const struct client *c)
{
	return c->owed < READY ? c->owed : READY;
}

#ifndef LAB_RING
/* ---- epoll ------------------------------------------------------------------------------------------------------- */

#include <sys/epoll.h>

static int set;

static void open_loop(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	io_must(set >= 0, "epoll_create1");
	fcntl(listener, F_SETFL, O_NONBLOCK);
	io_watch(set, listener, NULL);
}

/* One client: the event is level-triggered, so epoll reports the next client again. */
static void accept_client(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		io_watch(set, fd, make_client(fd));
}

static void reply(struct client *c)
{
	unsigned count;
	ssize_t length;

	for (; c->owed; c->owed -= count) {
		count = next_replies(c);
		length = (ssize_t)(count * reply_length);
		io_must(send(c->fd, replies, (size_t)length, MSG_NOSIGNAL) == length, "send");
	}
}

static void serve_client(struct client *c)
{
	static char part[PART];
	ssize_t n = recv(c->fd, part, sizeof(part), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !parse(c, part, (size_t)n))
		c->ends = true;
	reply(c);
	if (c->ends)
		delete_client(c);
}

static void run(void)
{
	struct epoll_event events[256];

	for (;;) {
		int count = epoll_wait(set, events, 256, -1);

		refresh_replies();
		for (int i = 0; i < count; i++)
			if (events[i].data.ptr)
				serve_client(events[i].data.ptr);
			else
				accept_client();
	}
}

#else
/* ---- io_uring ---------------------------------------------------------------------------------------------------- */

#include <liburing.h>

enum { BUFFERS = 256, BUFFER = 4096, GROUP = 0 };

/* This is the lowest bit of the user data of a send; the other bits are the address of its client. NULL is an
 * accept. */
enum { SEND = 1 };

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char *memory; /* holds the receive buffers */

static struct io_uring_sqe *entry(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe) {
		io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	io_must(sqe, "the submission queue");
	return sqe;
}

static void accept_clients(void)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
	io_uring_sqe_set_data(sqe, NULL);
}

/* The kernel takes a buffer when data arrives, so an idle connection has none. */
static void receive(struct client *c)
{
	struct io_uring_sqe *sqe = entry();

	io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	io_uring_sqe_set_data(sqe, c);
	c->receiving = true;
}

static char *buffer_at(unsigned id)
{
	return memory + (size_t)id * BUFFER;
}

static void provide(unsigned id)
{
	io_uring_buf_ring_add(buffers, buffer_at(id), BUFFER, (unsigned short)id, io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(buffers, 1);
}

static void provide_buffers(void)
{
	struct io_uring_buf_reg group = {.ring_entries = BUFFERS, .bgid = GROUP};
	size_t size = BUFFERS * sizeof(struct io_uring_buf);

	io_must(!posix_memalign((void **)&buffers, 4096, size) && (memory = malloc((size_t)BUFFERS * BUFFER)),
		"malloc");
	group.ring_addr = (uint64_t)(uintptr_t)buffers;
	errno = -io_uring_register_buf_ring(&ring, &group, 0);
	if (errno)
		lab_cannot("io_uring_register_buf_ring: %s", strerror(errno));
	io_uring_buf_ring_init(buffers);
	for (unsigned i = 0; i < BUFFERS; i++)
		provide(i);
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
	provide_buffers();
	accept_clients();
}

/* A send in flight reads `replies`. If the Date changes meanwhile, it may send the new Date: the length is the same. */
static void reply(struct client *c)
{
	struct io_uring_sqe *sqe;

	if (c->sending || !c->owed)
		return;
	c->replies = next_replies(c);
	sqe = entry();
	io_uring_prep_send(sqe, c->fd, replies, c->replies * reply_length, MSG_NOSIGNAL | MSG_WAITALL);
	io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)c | SEND);
	c->sending = true;
}

/* A client is deleted when no operation refers to it. */
static void after(struct client *c)
{
	reply(c);
	if (!c->ends || c->sending)
		return;
	if (!c->receiving)
		delete_client(c);
	else
		shutdown(c->fd, SHUT_RDWR); /* completes the recv */
}

static void sent(struct client *c, int result)
{
	c->sending = false;
	c->ends |= result != (int)(c->replies * reply_length);
	c->owed = c->ends && result < 0 ? 0 : c->owed - c->replies;
	after(c);
}

static void received(struct client *c, int result, unsigned flags)
{
	unsigned id = flags >> IORING_CQE_BUFFER_SHIFT;

	c->receiving = flags & IORING_CQE_F_MORE;
	if (result > 0)
		c->ends |= !parse(c, buffer_at(id), (size_t)result);
	else if (result != -ENOBUFS)
		c->ends = true;
	if (flags & IORING_CQE_F_BUFFER)
		provide(id);
	if (!c->receiving && !c->ends)
		receive(c);
	after(c);
}

static void complete(const struct io_uring_cqe *cqe)
{
	uint64_t data = io_uring_cqe_get_data64(cqe);

	if (data & SEND) {
		sent((struct client *)(uintptr_t)(data - SEND), cqe->res);
	} else if (data) {
		received((struct client *)(uintptr_t)data, cqe->res, cqe->flags);
	} else {
		io_must(cqe->res >= 0, "accept");
		receive(make_client(cqe->res));
		if (!(cqe->flags & IORING_CQE_F_MORE))
			accept_clients();
	}
}

static void run(void)
{
	struct io_uring_cqe *cqe;
	unsigned head, count;

	for (;;) {
		io_uring_submit_and_wait(&ring, 1);
		refresh_replies();
		count = 0;
		io_uring_for_each_cqe(&ring, head, cqe)
		{
			count++;
			complete(cqe);
		}
		io_uring_cq_advance(&ring, count);
	}
}
#endif

/* ------------------------------------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
	int port;

	signal(SIGPIPE, SIG_IGN);
	io_raise_limit();
	llhttp_settings_init(&settings);
	settings.on_message_complete = count_request;
	listener = io_listen(&port, SOCK_STREAM);
	open_loop();
	io_start_load(argc, argv, port);
	run();
	return 2;
}
