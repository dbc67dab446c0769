/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The load generator: a plain loop around epoll that sends requests to its parent, an echo server, and prints the cost
 * of a request to the server.
 *
 *   case=echo    n requests over `connections`; each of `active` sends its next request when it has its reply
 *   case=udp     like echo, by datagrams
 *   case=accept  n connections, `active` at a time: connect, one request, close
 *   case=idle_memory  the server's memory for `connections` that wait
 *   case=late    n requests over `connections`, one each `us` microseconds: the latency that all requests except one in
 *                1000 keep to
 */
#define _GNU_SOURCE
#include "load.h"

enum { TOGETHER = 100, EVENTS = 256, OUTSTANDING = 16 };

struct connection {
	int fd;
	uint32_t sent, got;
	int64_t when[OUTSTANDING]; /* start times of the requests that have no reply yet */
};

struct load {
	int64_t n, connections, active, us;
	uint64_t sent, got;
	int port, set, type;
	struct connection *all;
};

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* A request holds its number. */
static void request(struct load *l, struct connection *c)
{
	uint32_t message[IO_MESSAGE / sizeof(uint32_t)] = {c->sent};

	io_must(c->sent - c->got < OUTSTANDING, "the server does not reply");
	c->when[c->sent++ % OUTSTANDING] = lab_now(CLOCK_MONOTONIC);
	io_must(send(c->fd, message, sizeof(message), MSG_NOSIGNAL) == IO_MESSAGE, "send");
	l->sent++;
}

/* Receives a reply. Returns the time that the request took. */
static int64_t reply(struct load *l, struct connection *c)
{
	uint32_t message[IO_MESSAGE / sizeof(uint32_t)];

	io_must(recv(c->fd, message, sizeof(message), MSG_WAITALL) == IO_MESSAGE, "recv");
	io_must(message[0] == c->got, "a wrong reply");
	l->got++;
	return lab_now(CLOCK_MONOTONIC) - c->when[c->got++ % OUTSTANDING];
}

/* Each connection has had one reply, so the server has accepted it and waits for its next request. */
static void open_all(void *load)
{
	struct load *l = load;
	int64_t first, i, last;

	l->all = calloc((size_t)l->connections, sizeof(*l->all));
	io_must(l->all, "calloc");
	for (first = 0; first < l->connections; first = last) {
		last = first + TOGETHER < l->connections ? first + TOGETHER : l->connections;
		for (i = first; i < last; i++) {
			l->all[i].fd = load_connect(l->port, l->type);
			request(l, &l->all[i]);
		}
		for (i = first; i < last; i++)
			reply(l, &l->all[i]);
	}
	l->sent = l->got = 0;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* The connections that send are spread over all connections. */
static void exchange(struct load *l, int64_t n)
{
	struct epoll_event events[EVENTS];
	struct connection *c;
	int i, count;

	l->sent = l->got = 0;
	for (i = 0; i < l->active && l->sent < (uint64_t)n; i++)
		request(l, &l->all[i * (l->connections / l->active)]);
	while (l->got < (uint64_t)n) {
		count = load_wait(l->set, events, EVENTS, -1);
		for (i = 0; i < count; i++) {
			c = events[i].data.ptr;
			reply(l, c);
			if (l->sent < (uint64_t)n)
				request(l, c);
		}
	}
}

static void echo(struct load *l)
{
	open_all(l);
	for (int64_t i = 0; i < l->connections; i++)
		io_watch(l->set, l->all[i].fd, &l->all[i]);
	exchange(l, l->n / 20 + l->active);
	load_start();
	exchange(l, l->n);
	load_stop();
	lab_report((uint64_t)l->n, (int64_t)l->got);
}

static void meet(struct load *l, struct connection *c)
{
	*c = (struct connection){.fd = load_connect(l->port, l->type)};
	io_watch(l->set, c->fd, c);
	request(l, c);
}

static void meetings(struct load *l)
{
	struct epoll_event events[EVENTS];
	int i, count;

	l->sent = l->got = 0;
	for (i = 0; i < l->active && l->sent < (uint64_t)l->n; i++)
		meet(l, &l->all[i]);
	while (l->got < (uint64_t)l->n) {
		count = load_wait(l->set, events, EVENTS, -1);
		for (i = 0; i < count; i++) {
			reply(l, events[i].data.ptr);
			close(((struct connection *)events[i].data.ptr)->fd);
			if (l->sent < (uint64_t)l->n)
				meet(l, events[i].data.ptr);
		}
	}
}

static void accept_rate(struct load *l)
{
	l->connections = l->active;
	open_all(l);
	load_start();
	meetings(l);
	load_stop();
	lab_report((uint64_t)l->n, (int64_t)l->got);
}

static void take_replies(struct load *l, int64_t until)
{
	struct epoll_event events[EVENTS];
	int i, count = load_wait(l->set, events, EVENTS, until);

	for (i = 0; i < count; i++)
		load_took(reply(l, events[i].data.ptr));
}

static void late(struct load *l)
{
	int64_t began, due;
	char more[64], result[32];

	open_all(l);
	for (int64_t i = 0; i < l->connections; i++)
		io_watch(l->set, l->all[i].fd, &l->all[i]);
	load_start();
	began = lab_now(CLOCK_MONOTONIC);
	while (l->got < (uint64_t)l->n) {
		due = l->sent < (uint64_t)l->n ? began + (int64_t)l->sent * l->us * 1000 : -1;
		if (due >= 0 && due <= lab_now(CLOCK_MONOTONIC))
			request(l, &l->all[l->sent % (uint64_t)l->connections]);
		else
			take_replies(l, due);
	}
	load_stop();
	snprintf(more, sizeof(more), ", \"late\": %.6f", load_quantile(l->got, 1000));
	snprintf(result, sizeof(result), "%" PRIu64, l->got);
	lab_report_more(l->got, result, more);
}

int main(int argc, char **argv)
{
	struct load l = {.n = lab_number(argc, argv, "n", 1000),
			 .connections = lab_number(argc, argv, "connections", 1),
			 .us = lab_number(argc, argv, "us", 100),
			 .port = (int)lab_number(argc, argv, "port", 0),
			 .type = lab_is(argc, argv, "case", "udp") ? SOCK_DGRAM : SOCK_STREAM};

	load_begin(l.connections);
	l.active = lab_number(argc, argv, "active", l.connections);
	l.set = epoll_create1(EPOLL_CLOEXEC);
	if (lab_is(argc, argv, "case", "echo") || l.type == SOCK_DGRAM)
		echo(&l);
	else if (lab_is(argc, argv, "case", "accept"))
		accept_rate(&l);
	else if (lab_is(argc, argv, "case", "idle_memory"))
		load_idle_memory(&l, open_all, &l.connections, 0);
	else if (lab_is(argc, argv, "case", "late"))
		late(&l);
	else
		lab_die("no such case");
	return 0;
}
