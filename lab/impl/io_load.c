/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The load generator: a plain loop around epoll that sends requests to its parent, an echo server, and prints what they
 * cost it.
 *
 *   case=echo    n requests over `connections`, of which `active` send, each its next one when it has its reply
 *   case=udp     the same by datagrams
 *   case=accept  n connections, `active` at a time: connect, one request, close
 *   case=idle_memory  what `connections` that wait take of the server's memory
 *   case=late    n requests over `connections`, one each `us` microseconds: the time that all but one of 1000 keep to
 */
#define _GNU_SOURCE
#include "io_server.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>

enum { TOGETHER = 100, EVENTS = 256, OUTSTANDING = 16, SPARE = 64, LATEST = 1000000 };

struct connection {
	int fd;
	uint32_t sent, got;
	int64_t when[OUTSTANDING]; /* of the requests that have no reply yet */
};

struct load {
	int64_t n, connections, active, us;
	uint64_t sent, got;
	int port, set, type;
	clockid_t server; /* its CPU time */
	pid_t parent;
	struct connection *all;
};

static void must(bool well, const char *what)
{
	if (!well)
		lab_die(what);
}

/* ---- the server's clock ------------------------------------------------------------------------------------------ */

/* The kernel brings the clock of another process up to date when that sleeps: let it. */
static int64_t server_time(const struct load *l)
{
	usleep(3000);
	return lab_now(l->server);
}

static void begin(const struct load *l)
{
	lab_began.cpu = server_time(l);
	lab_began.wall = lab_now(CLOCK_MONOTONIC);
}

static void end(const struct load *l)
{
	lab_spent.wall = lab_now(CLOCK_MONOTONIC) - lab_began.wall;
	lab_spent.cpu = server_time(l) - lab_began.cpu;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static int open_socket(const struct load *l)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)l->port)};
	struct linger now = {1, 0}; /* close leaves nothing behind */
	int one = 1, fd = socket(AF_INET, l->type | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(fd >= 0, "socket");
	if (l->type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	return fd;
}

static void watch(struct load *l, struct connection *c)
{
	struct epoll_event event = {EPOLLIN, {.ptr = c}};

	must(!epoll_ctl(l->set, EPOLL_CTL_ADD, c->fd, &event), "epoll_ctl");
}

/* A request holds its number. */
static void request(struct load *l, struct connection *c)
{
	uint32_t message[IO_MESSAGE / sizeof(uint32_t)] = {c->sent};

	must(c->sent - c->got < OUTSTANDING, "the server does not reply");
	c->when[c->sent++ % OUTSTANDING] = lab_now(CLOCK_MONOTONIC);
	must(send(c->fd, message, sizeof(message), MSG_NOSIGNAL) == IO_MESSAGE, "send");
	l->sent++;
}

/* How long it took. */
static int64_t reply(struct load *l, struct connection *c)
{
	uint32_t message[IO_MESSAGE / sizeof(uint32_t)];

	must(recv(c->fd, message, sizeof(message), MSG_WAITALL) == IO_MESSAGE, "recv");
	must(message[0] == c->got, "a wrong reply");
	l->got++;
	return lab_now(CLOCK_MONOTONIC) - c->when[c->got++ % OUTSTANDING];
}

/* Each has had one reply, so that the server has accepted it and waits for its next request. */
static void open_all(struct load *l)
{
	int64_t first, i, last;

	l->all = calloc((size_t)l->connections, sizeof(*l->all));
	must(l->all, "calloc");
	for (first = 0; first < l->connections; first = last) {
		last = first + TOGETHER < l->connections ? first + TOGETHER : l->connections;
		for (i = first; i < last; i++) {
			l->all[i].fd = open_socket(l);
			request(l, &l->all[i]);
		}
		for (i = first; i < last; i++)
			reply(l, &l->all[i]);
	}
	l->sent = l->got = 0;
}

static int wait_until(struct load *l, struct epoll_event *events, int64_t when)
{
	int64_t now = lab_now(CLOCK_MONOTONIC), left = when > now ? when - now : 0;
	struct timespec time = {left / 1000000000, left % 1000000000};
	int count = epoll_pwait2(l->set, events, EVENTS, when < 0 ? NULL : &time, NULL);

	must(count >= 0, "epoll_pwait2");
	return count;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Those that send are spread over all. */
static void exchange(struct load *l, int64_t n)
{
	struct epoll_event events[EVENTS];
	struct connection *c;
	int i, count;

	l->sent = l->got = 0;
	for (i = 0; i < l->active && l->sent < (uint64_t)n; i++)
		request(l, &l->all[i * (l->connections / l->active)]);
	while (l->got < (uint64_t)n) {
		count = wait_until(l, events, -1);
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
		watch(l, &l->all[i]);
	exchange(l, l->n / 20 + l->active);
	begin(l);
	exchange(l, l->n);
	end(l);
	lab_report((uint64_t)l->n, (int64_t)l->got);
}

static void meet(struct load *l, struct connection *c)
{
	*c = (struct connection){.fd = open_socket(l)};
	watch(l, c);
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
		count = wait_until(l, events, -1);
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
	begin(l);
	meetings(l);
	end(l);
	lab_report((uint64_t)l->n, (int64_t)l->got);
}

static uint64_t server_bytes(const struct load *l)
{
	char resident[64], tables[64];

	usleep(20000);
	snprintf(resident, sizeof(resident), "%d/smaps_rollup", (int)l->parent);
	snprintf(tables, sizeof(tables), "%d/status", (int)l->parent);
	return lab_process_bytes(resident, "Rss:") + lab_process_bytes(tables, "VmPTE:");
}

static void idle_memory(struct load *l)
{
	int64_t connections = l->connections;
	uint64_t before;
	char more[64], result[32];

	l->connections = 1;
	open_all(l);
	before = server_bytes(l);
	l->connections = connections;
	begin(l);
	open_all(l);
	end(l);
	snprintf(more, sizeof(more), ", \"bytes\": %.1f",
		 (double)(int64_t)(server_bytes(l) - before) / (double)connections);
	snprintf(result, sizeof(result), "%" PRId64, connections);
	lab_report_more((uint64_t)connections, result, more);
}

static uint32_t times[LATEST + 1]; /* [i]: requests that took i µs */

static double quantile(uint64_t all)
{
	uint64_t seen = 0;
	int64_t i = 0;

	while (i < LATEST && (seen += times[i]) < all - all / 1000)
		i++;
	return (double)i * 1e-6;
}

static void take_replies(struct load *l, int64_t until)
{
	struct epoll_event events[EVENTS];
	int64_t took;
	int i, count = wait_until(l, events, until);

	for (i = 0; i < count; i++) {
		took = reply(l, events[i].data.ptr) / 1000;
		times[took < LATEST ? took : LATEST]++;
	}
}

static void late(struct load *l)
{
	int64_t began, due;
	char more[64], result[32];

	open_all(l);
	for (int64_t i = 0; i < l->connections; i++)
		watch(l, &l->all[i]);
	begin(l);
	began = lab_now(CLOCK_MONOTONIC);
	while (l->got < (uint64_t)l->n) {
		due = l->sent < (uint64_t)l->n ? began + (int64_t)l->sent * l->us * 1000 : -1;
		if (due >= 0 && due <= lab_now(CLOCK_MONOTONIC))
			request(l, &l->all[l->sent % (uint64_t)l->connections]);
		else
			take_replies(l, due);
	}
	end(l);
	snprintf(more, sizeof(more), ", \"late\": %.6f", quantile(l->got));
	snprintf(result, sizeof(result), "%" PRIu64, l->got);
	lab_report_more(l->got, result, more);
}

int main(int argc, char **argv)
{
	struct load l = {.n = lab_number(argc, argv, "n", 1000),
			 .connections = lab_number(argc, argv, "connections", 1),
			 .us = lab_number(argc, argv, "us", 100),
			 .port = (int)lab_number(argc, argv, "port", 0),
			 .type = lab_is(argc, argv, "case", "udp") ? SOCK_DGRAM : SOCK_STREAM,
			 .parent = getppid()};
	struct rlimit limit;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	io_raise_limit();
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < (rlim_t)l.connections + SPARE)
		lab_cannot("needs %d descriptors: ulimit -Hn", (int)l.connections + SPARE);
	l.active = lab_number(argc, argv, "active", l.connections);
	l.set = epoll_create1(EPOLL_CLOEXEC);
	must(!clock_getcpuclockid(l.parent, &l.server), "clock_getcpuclockid");
	if (lab_is(argc, argv, "case", "echo") || l.type == SOCK_DGRAM)
		echo(&l);
	else if (lab_is(argc, argv, "case", "accept"))
		accept_rate(&l);
	else if (lab_is(argc, argv, "case", "idle_memory"))
		idle_memory(&l);
	else if (lab_is(argc, argv, "case", "late"))
		late(&l);
	else
		lab_die("no such case");
	return 0;
}
