/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The simulated world of I/O: PROGRAM SEEDS [NAME]. Each seed runs twice, with the same events. */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <weft/sim.h>

#define MINUTE (60 * SECOND)

static uint64_t trace;

/* The events and their times, in one number. */
static void note(uint64_t what)
{
	trace = (trace ^ what ^ weft_now()) * 0x9e3779b97f4a7c15u;
	trace ^= trace >> 29;
}

static char at(uint64_t i)
{
	return (char)(i * 31 + i / 251);
}

static void fill(char *data, size_t length, uint64_t from)
{
	for (size_t i = 0; i < length; i++)
		data[i] = at(from + i);
}

static void check_bytes(const char *data, size_t length, uint64_t from)
{
	for (size_t i = 0; i < length; i++)
		CHECK(data[i] == at(from + i));
}

/* ---- an echo server, and a proxy before it ----------------------------------------------------------------------- */

enum { CLIENTS = 4, BYTES = 30000 };

static void *echo(void *fd_)
{
	int fd = (int)(intptr_t)fd_;
	char data[1500];
	ssize_t n;

	while ((n = weft_read(fd, data, sizeof data)) > 0) {
		note((uint64_t)n);
		if (weft_write_all(fd, data, (size_t)n) != n)
			break;
	}
	(void)weft_close(fd);
	return NULL;
}

struct service {
	weft_scope_t *scope;
	const char *host, *port;
	int fd, connections;
	weft_fn_t *serve;
};

static void *accepts(void *s_)
{
	struct service *s = s_;
	int i, fd;

	for (i = 0; i < s->connections; i++) {
		fd = weft_accept(s->fd, NULL, NULL, 0);
		CHECK(fd >= 1 << 20);
		note((uint64_t)fd);
		CHECK(!weft_scope_spawn(s->scope, s->serve, (void *)(intptr_t)fd));
	}
	CHECK(!weft_close(s->fd));
	return NULL;
}

/* Listens before it returns. */
static void start(struct service *s, weft_scope_t *scope)
{
	CHECK(!weft_world_host(s->host));
	s->scope = scope;
	s->fd = weft_listen(NULL, (unsigned)atoi(s->port), 0, 0);
	CHECK(s->fd >= 1 << 20);
	CHECK(weft_port(s->fd) == atoi(s->port));
	CHECK(!weft_scope_spawn(scope, accepts, s));
	CHECK(!weft_world_host("main"));
}

static void *reads_back(void *fd)
{
	char data[700];
	uint64_t done = 0;
	ssize_t n;

	while ((n = weft_read((int)(intptr_t)fd, data, sizeof data)) > 0) {
		check_bytes(data, (size_t)n, done);
		done += (uint64_t)n;
	}
	CHECK(n == 0);
	CHECK(done == BYTES);
	note(done);
	return NULL;
}

struct client {
	const char *host, *port;
};

static void *asks(void *c_)
{
	const struct client *c = c_;
	char data[BYTES];
	weft_scope_t scope;
	int fd;

	CHECK(!weft_world_host("clients"));
	fd = weft_dial(c->host, c->port);
	CHECK(fd >= 0);
	fill(data, sizeof data, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, reads_back, (void *)(intptr_t)fd));
	CHECK(weft_write_all(fd, data, sizeof data) == sizeof data);
	CHECK(!weft_shutdown(fd, SHUT_WR));
	CHECK(!weft_scope_wait(&scope));
	CHECK(!weft_close(fd));
	return NULL;
}

static void *echo_server(void *result)
{
	struct service server = {.host = "server", .port = "80", .connections = CLIENTS, .serve = echo};
	struct client client = {"server", "http"};
	weft_scope_t scope;

	CHECK(!strcmp(weft_io_backend(), "simulated"));
	weft_scope_open(&scope, WEFT_NEVER);
	start(&server, &scope);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, asks, &client));
	CHECK(!weft_scope_wait(&scope));
	return result;
}

struct pair {
	int from, to;
};

/* One direction, with its end. */
static void *carries(void *p_)
{
	const struct pair *p = p_;
	char data[2000];
	ssize_t n;

	while ((n = weft_read(p->from, data, sizeof data)) > 0)
		CHECK(weft_write_all(p->to, data, (size_t)n) == n);
	CHECK(n == 0);
	CHECK(!weft_shutdown(p->to, SHUT_WR));
	return NULL;
}

static void *passes_on(void *fd)
{
	struct pair there = {(int)(intptr_t)fd, -1}, back;
	weft_scope_t scope;

	there.to = weft_dial("server", "7000");
	CHECK(there.to >= 0);
	back = (struct pair){there.to, there.from};
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, carries, &there));
	CHECK(!weft_scope_spawn(&scope, carries, &back));
	CHECK(!weft_scope_wait(&scope));
	CHECK(!weft_close(there.from) && !weft_close(there.to));
	return NULL;
}

static void *proxy(void *result)
{
	struct service server = {.host = "server", .port = "7000", .connections = CLIENTS, .serve = echo};
	struct service between = {.host = "proxy", .port = "80", .connections = CLIENTS, .serve = passes_on};
	struct client client = {"proxy", "80"};
	weft_scope_t scope;

	CHECK(!weft_world_set(&(weft_world_t){.slow = 100000}));
	weft_scope_open(&scope, WEFT_NEVER);
	start(&server, &scope);
	start(&between, &scope);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, asks, &client));
	CHECK(!weft_scope_wait(&scope));
	return result;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* Both ends of a connection from "main" to a host. */
static struct pair connection(const char *host)
{
	struct pair p;
	int listener;

	CHECK(!weft_world_host(host));
	listener = weft_listen(NULL, 1234, 0, 0);
	CHECK(listener >= 0);
	CHECK(!weft_world_host("main"));
	p.to = weft_dial(host, "1234");
	CHECK(p.to >= 0);
	p.from = weft_accept(listener, NULL, NULL, 0);
	CHECK(p.from >= 0);
	CHECK(!weft_close(listener));
	return p;
}

static void close_both(struct pair p)
{
	CHECK(!weft_close(p.from) && !weft_close(p.to));
}

static void *half_close(void *result)
{
	struct pair p = connection("far");
	char data[16];

	CHECK(weft_write_all(p.to, "question", 8) == 8);
	CHECK(!weft_shutdown(p.to, SHUT_WR));
	CHECK(weft_write(p.to, "x", 1) == -EPIPE);
	CHECK(weft_read_all(p.from, data, sizeof data) == 8 && !memcmp(data, "question", 8));
	CHECK(weft_read(p.from, data, 1) == 0);
	CHECK(weft_write_all(p.from, "answer", 6) == 6);
	CHECK(!weft_close(p.from));
	CHECK(weft_read_all(p.to, data, sizeof data) == 6 && !memcmp(data, "answer", 6));
	CHECK(weft_read(p.to, data, 1) == 0);
	CHECK(!weft_close(p.to));
	CHECK(weft_close(p.to) == -EBADF);
	CHECK(weft_read(p.to, data, 1) == -EBADF);
	return result;
}

static void *deadlines(void *result)
{
	struct pair p = connection("far");
	uint64_t now = weft_now();
	char data[8];
	size_t sent = 0;
	ssize_t n;

	CHECK(weft_read_until(p.from, data, 8, now + 5 * MS) == -ETIMEDOUT);
	CHECK(weft_now() >= now + 5 * MS && weft_now() < now + 6 * MS);
	CHECK(weft_read_until(p.from, data, 8, 0) == -ETIMEDOUT);
	CHECK(weft_poll_until(p.from, POLLIN, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_write_all(p.to, "abcdefgh", 8) == 8);
	/* Nothing of it is lost, however often a read gives up. */
	for (size_t done = 0; done < 8; note(done)) {
		n = weft_read_until(p.from, data + done, 8 - done, weft_now() + 100000);
		CHECK(n > 0 || n == -ETIMEDOUT);
		done += n > 0 ? (size_t)n : 0;
	}
	CHECK(!memcmp(data, "abcdefgh", 8));
	/* Nobody reads. */
	while ((n = weft_write_until(p.to, "0123456789abcdef", 16, weft_now() + MS)) > 0)
		sent += (size_t)n;
	CHECK(n == -ETIMEDOUT && sent >= 4096 && sent <= 65536);
	close_both(p);
	return result;
}

static void *reads_8(void *fd)
{
	char data[8];
	ssize_t n = weft_read_all((int)(intptr_t)fd, data, 8);

	/* A cancelled task keeps the bytes that it has read. */
	note((uint64_t)n);
	return (void *)(intptr_t)n;
}

static void *cancelled(void *result)
{
	struct pair p = connection("far");
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	weft_task_t reader;
	weft_scope_t scope;
	char data[64];
	ssize_t n, got;

	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn_with(&scope, &reader, reads_8, (void *)(intptr_t)p.from, &codes));
	CHECK(weft_write_all(p.to, "abcdefgh", 8) == 8);
	weft_sleep(weft_world_random() % (3 * MS));
	weft_task_cancel(&reader);
	CHECK(!weft_join(&reader, &result));
	got = (intptr_t)result;
	CHECK(got == -ECANCELED || got > 0);
	CHECK(weft_write_all(p.to, "12345678", 8) == 8);
	CHECK(!weft_shutdown(p.to, SHUT_WR));
	n = weft_read_all(p.from, data, sizeof data);
	CHECK(n == 16 - (got > 0 ? got : 0));
	CHECK(!memcmp(data, &"abcdefgh12345678"[16 - n], (size_t)n));
	(void)weft_scope_wait(&scope);
	close_both(p);
	return NULL;
}

static void *reads_one(void *fd)
{
	char c = 0;

	return (void *)(intptr_t)weft_read((int)(intptr_t)fd, &c, 1);
}

static void *closing(void *result)
{
	struct pair p = connection("far");
	weft_task_t reader;
	weft_scope_t scope;
	void *got;

	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn_with(&scope, &reader, reads_one, (void *)(intptr_t)p.from, NULL));
	weft_sleep(MS);
	CHECK(!weft_close(p.from));
	/* Its number is not used while the reader has not gone on. */
	p.from = weft_socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!weft_join(&reader, &got));
	CHECK((intptr_t)got == -ECANCELED);
	CHECK(!weft_scope_wait(&scope));
	close_both(p);
	return result;
}

static void *dials(void *unused)
{
	int fd = weft_dial("localhost", "99");

	(void)unused;
	CHECK(fd >= 0);
	return (void *)(intptr_t)fd;
}

static void *backlog(void *result)
{
	int listener = weft_listen("127.0.0.1", 99, 1, 0), i, fd;
	weft_task_t dialers[5];
	weft_scope_t scope;
	uint64_t now;
	void *got;

	CHECK(listener >= 0);
	CHECK(weft_accept_until(listener, NULL, NULL, 0, weft_now() + MS) == -ETIMEDOUT);
	weft_scope_open(&scope, WEFT_NEVER);
	for (i = 0; i < 5; i++)
		CHECK(!weft_scope_spawn_with(&scope, &dialers[i], dials, NULL, NULL));
	now = weft_now();
	weft_sleep(500 * MS);
	for (i = 0; i < 5; i++) {
		fd = weft_accept(listener, NULL, NULL, 0);
		CHECK(fd >= 0);
		CHECK(!weft_close(fd));
	}
	for (i = 0; i < 5; i++) {
		CHECK(!weft_join(&dialers[i], &got));
		CHECK(!weft_close((int)(intptr_t)got));
	}
	CHECK(weft_now() - now >= SECOND); /* two were in the queue; the other clients tried once more */
	CHECK(!weft_scope_wait(&scope));
	CHECK(!weft_close(listener));
	CHECK(weft_dial("localhost", "99") == -ECONNREFUSED);
	return result;
}

static void *errors(void *result)
{
	struct pair p = connection("far");
	int listener = weft_listen(NULL, 0, 0, 0), other, fds[2];
	char data[4];

	CHECK(listener >= 0 && weft_port(listener) > 0);
	CHECK(weft_listen("::1", (unsigned)weft_port(listener), 0, 0) == -EADDRINUSE);
	CHECK(weft_listen("10.0.0.2", 5, 0, 0) == -EADDRNOTAVAIL);
	other = weft_listen("127.0.0.1", (unsigned)weft_port(listener), 0, WEFT_LISTEN_UDP);
	CHECK(other >= 0 && !weft_close(other) && !weft_close(listener));
	CHECK(weft_dial("nobody", "1") == -ENOENT);
	CHECK(weft_dial("far", "1") == -ECONNREFUSED);
	CHECK(weft_dial("/socket", NULL) == -ECONNREFUSED);
	/* Closed with something unread: a reset. */
	CHECK(weft_write(p.to, "x", 1) == 1);
	CHECK(weft_poll(p.from, POLLIN) & POLLIN);
	CHECK(!weft_close(p.from));
	CHECK(weft_read(p.to, data, 4) == -ECONNRESET);
	CHECK(weft_read(p.to, data, 4) == 0);
	CHECK(weft_write(p.to, data, 4) == -EPIPE);
	CHECK(!weft_close(p.to));
	/* Closed: the first write does not know. */
	p = connection("far");
	CHECK(!weft_close(p.from));
	CHECK(weft_read(p.to, data, 4) == 0);
	CHECK(weft_write(p.to, "x", 1) == 1);
	weft_sleep(SECOND);
	CHECK(weft_write(p.to, "x", 1) == -EPIPE);
	CHECK(!weft_close(p.to));
	CHECK(!weft_pipe(fds));
	CHECK(weft_write(fds[0], "x", 1) == -EBADF && weft_read(fds[1], data, 1) == -EBADF);
	CHECK(weft_pread(fds[0], data, 1, 0) == -ESPIPE && weft_shutdown(fds[0], SHUT_RD) == -ENOTSOCK);
	CHECK(!weft_close(fds[0]));
	CHECK(weft_write(fds[1], "x", 1) == -EPIPE);
	CHECK(weft_poll(fds[1], POLLOUT) & POLLERR);
	CHECK(!weft_close(fds[1]));
	CHECK(weft_socket(AF_INET, 77, 0) == -ESOCKTNOSUPPORT && weft_socket(-1, SOCK_STREAM, 0) == -EAFNOSUPPORT);
	return result;
}

static void *partition(void *result)
{
	struct pair p = connection("far");
	uint64_t now;
	char data[8];

	CHECK(!weft_world_cut("main", "far"));
	CHECK(weft_write(p.to, "x", 1) == 1);
	CHECK(weft_read_until(p.from, data, 1, weft_now() + MINUTE) == -ETIMEDOUT);
	CHECK(!weft_world_mend("far", NULL));
	CHECK(weft_read_until(p.from, data, 1, weft_now() + SECOND) == 1 && *data == 'x');
	/* For ever. */
	CHECK(!weft_world_cut("main", NULL));
	now = weft_now();
	CHECK(weft_dial_until("far", "1234", now + MINUTE) == -ETIMEDOUT);
	CHECK(weft_dial("far", "1234") == -ETIMEDOUT);
	CHECK(weft_write(p.to, "x", 1) == 1);
	CHECK(weft_read(p.to, data, 1) == -ETIMEDOUT);
	CHECK(weft_now() - now >= 15 * MINUTE);
	close_both(p);
	CHECK(weft_world_cut("main", "nowhere") == -ENOENT);
	return result;
}

/* With connections that are reset each byte that comes is right, and every task ends. */
static void *echo_some(void *fd_)
{
	int fd = (int)(intptr_t)fd_;
	char data[1500];
	ssize_t n;

	while ((n = weft_read(fd, data, sizeof data)) > 0)
		if (weft_write_all(fd, data, (size_t)n) != n)
			break;
	CHECK(n >= 0 || n == -ECONNRESET);
	(void)weft_close(fd);
	return NULL;
}

static void *asks_some(void *resets)
{
	char data[500], back[500];
	int fd = weft_dial("server", "80"), i;
	ssize_t n = 1;

	CHECK(fd >= 0);
	for (i = 0; i < 50 && n > 0; i++) {
		fill(data, sizeof data, (uint64_t)i);
		n = weft_write_all(fd, data, sizeof data);
		if (n > 0)
			n = weft_read_all(fd, back, sizeof back);
		if (n > 0)
			check_bytes(back, (size_t)n, (uint64_t)i);
	}
	CHECK(n >= 0 || n == -ECONNRESET || n == -EPIPE);
	*(int *)resets += n < (ssize_t)sizeof back;
	note((uint64_t)n);
	CHECK(!weft_close(fd));
	return NULL;
}

static int resets_seen;

static void *resets(void *result)
{
	struct service server = {.host = "server", .port = "80", .connections = CLIENTS, .serve = echo_some};
	weft_scope_t scope;

	CHECK(!weft_world_set(&(weft_world_t){.reset = 3000}));
	weft_scope_open(&scope, WEFT_NEVER);
	start(&server, &scope);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, asks_some, &resets_seen));
	CHECK(!weft_scope_wait(&scope));
	return result;
}

static void *local_sockets(void *result)
{
	int listener = weft_listen("/run/x", 0, 0, 0), fds[2], fd;
	char data[8];

	CHECK(listener >= 0 && weft_port(listener) == -EAFNOSUPPORT);
	CHECK(weft_listen("/run/x", 0, 0, 0) == -EADDRINUSE);
	fds[0] = weft_dial("/run/x", NULL);
	fds[1] = weft_accept(listener, NULL, NULL, 0);
	CHECK(fds[0] >= 0 && fds[1] >= 0 && !weft_close(listener));
	CHECK(weft_dial("/run/x", NULL) == -ECONNREFUSED);
	CHECK(weft_write_all(fds[0], "abc", 3) == 3);
	CHECK(weft_recv(fds[1], data, 1, MSG_PEEK) == 1 && *data == 'a');
	CHECK(weft_recv(fds[1], data, 3, MSG_WAITALL) == 3 && !memcmp(data, "abc", 3));
	CHECK(weft_write_all(fds[0], "de", 2) == 2);
	CHECK(weft_recv_until(fds[1], data, 3, MSG_WAITALL, weft_now() + MS) == 2 && !memcmp(data, "de", 2));
	CHECK(!weft_close(fds[0]));
	CHECK(weft_write(fds[1], "x", 1) == -EPIPE);
	CHECK(weft_read(fds[1], data, 1) == 0 && !weft_close(fds[1]));
	CHECK(!weft_socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	CHECK(weft_send(fds[0], "one", 3, 0) == 3 && weft_send(fds[0], "three", 5, 0) == 5);
	CHECK(weft_recv(fds[1], data, 8, 0) == 3 && weft_recv(fds[1], data, 2, MSG_TRUNC) == 5);
	CHECK(!weft_close(fds[0]) && !weft_close(fds[1]));
	fd = weft_open("/other", O_RDONLY, 0);
	CHECK(fd == -ENOENT);
	return result;
}

static void *dials_the_full(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)weft_dial_until("/run/full", NULL, weft_now() + SECOND);
}

/* A Unix socket's connect waits until its listener has room, or is gone. */
static void *full_listener(void *result)
{
	int listener = weft_listen("/run/full", 0, 1, 0), fds[2], fd, i;
	weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	weft_task_t dialers[2];
	weft_scope_t scope;
	uint64_t now;
	void *got;

	for (i = 0; i < 2; i++)
		CHECK((fds[i] = weft_dial("/run/full", NULL)) >= 0);
	CHECK(weft_dial_until("/run/full", NULL, 0) == -ETIMEDOUT);
	now = weft_now();
	CHECK(weft_dial_until("/run/full", NULL, now + MS) == -ETIMEDOUT && weft_now() == now + MS);
	weft_scope_open(&scope, WEFT_NEVER);
	for (i = 0; i < 2; i++)
		CHECK(!weft_scope_spawn_with(&scope, &dialers[i], dials_the_full, NULL, &codes));
	weft_sleep(MS);
	fd = weft_accept(listener, NULL, NULL, 0);
	CHECK(fd >= 0 && !weft_close(fd));
	weft_sleep(MS);
	CHECK(!weft_close(listener));
	for (i = now = 0; i < 2; i++) {
		CHECK(!weft_join(&dialers[i], &got));
		now += (intptr_t)got >= 0;
		CHECK((intptr_t)got == -ECONNREFUSED || !weft_close((int)(intptr_t)got));
	}
	CHECK(now == 1 && !weft_scope_wait(&scope) && !weft_close(fds[0]) && !weft_close(fds[1]));
	return result;
}

/* A descriptor is sent with a byte; a descriptor that is not received is closed. */
static void *passing(void *result)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 'x', data[4];
	struct iovec part = {&byte, 1};
	struct msghdr m;
	int types[] = {SOCK_STREAM, SOCK_DGRAM}, fds[2], pipe[2], i;

	for (i = 0; i < 4; i++) {
		CHECK(!weft_socketpair(AF_UNIX, types[i / 2], 0, fds) && !weft_pipe(pipe));
		m = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
		m.msg_controllen = sizeof control;
		control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &pipe[1], sizeof(int));
		CHECK(weft_sendmsg(fds[0], &m, 0) == 1);
		CHECK(!weft_close(pipe[1]));
		if (i & 1) {
			CHECK(weft_read_until(pipe[0], data, 4, weft_now() + MS) == -ETIMEDOUT);
			CHECK(!weft_close(fds[1]));
		} else {
			m.msg_controllen = sizeof control;
			CHECK(weft_recvmsg(fds[1], &m, 0) == 1 && m.msg_controllen && !(m.msg_flags & MSG_CTRUNC));
			memcpy(&pipe[1], CMSG_DATA(&control.header), sizeof(int));
			CHECK(weft_write(pipe[1], "abc", 3) == 3 && weft_read_all(pipe[0], data, 3) == 3);
			CHECK(!weft_close(pipe[1]) && !weft_close(fds[1]));
		}
		CHECK(weft_read(pipe[0], data, 4) == 0);
		CHECK(!weft_close(pipe[0]) && !weft_close(fds[0]));
	}
	return result;
}

static void *writes_much(void *fd)
{
	char data[3000];

	for (int i = 0; i < 100; i++) {
		memset(data, i, sizeof data);
		CHECK(weft_write((int)(intptr_t)fd, data, sizeof data) == sizeof data);
	}
	CHECK(!weft_close((int)(intptr_t)fd));
	return NULL;
}

/* Short writes to a pipe are not mixed; the writer waits for the reader. */
static void *pipes(void *result)
{
	weft_scope_t scope;
	char data[3000];
	int fds[2];

	CHECK(!weft_pipe(fds));
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, writes_much, (void *)(intptr_t)fds[1]));
	for (int i = 0; i < 100; i++) {
		CHECK(weft_read_all(fds[0], data, sizeof data) == sizeof data);
		CHECK(data[0] == i && !memcmp(data, data + 1, sizeof data - 1));
	}
	CHECK(weft_read(fds[0], data, 1) == 0);
	CHECK(!weft_scope_wait(&scope));
	CHECK(!weft_close(fds[0]));
	return result;
}

static int lost_seen, twice_seen, reordered_seen;

static void *datagrams(void *result)
{
	struct sockaddr_in to = {.sin_family = AF_INET}, from;
	int server, client = weft_socket(AF_INET, SOCK_DGRAM, 0), i, last = -1, count = 0;
	socklen_t size;
	char data;

	CHECK(!weft_world_set(&(weft_world_t){.loss = 100000, .twice = 100000}));
	CHECK(!weft_world_host("far"));
	server = weft_listen("0.0.0.0", 53, 0, WEFT_LISTEN_UDP);
	CHECK(server >= 0 && client >= 0);
	to.sin_port = htons(53);
	CHECK(inet_pton(AF_INET, "10.0.0.2", &to.sin_addr) == 1);
	for (i = 0; i < 30; i++) {
		data = (char)i;
		CHECK(weft_sendto(client, &data, 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
	}
	for (;;) {
		size = sizeof from;
		i = (int)weft_recvfrom_until(server, &data, 1, 0, (struct sockaddr *)&from, &size, weft_now() + SECOND);
		if (i == -ETIMEDOUT)
			break;
		CHECK(i == 1 && size == sizeof from && ntohs(from.sin_port) == weft_port(client));
		CHECK(from.sin_addr.s_addr == htonl(0x0a000001));
		note((uint64_t)data);
		reordered_seen += data < last;
		twice_seen += data == last;
		last = data;
		count++;
	}
	lost_seen += count < 30;
	CHECK(!weft_close(server) && !weft_close(client));
	return result;
}

static void *copies(void *result)
{
	int fd = weft_open("page", O_CREAT | O_RDWR, 0644), fds[2];
	int64_t offset = 0;
	char data[5000];
	struct pair p;
	size_t done;
	ssize_t n;

	CHECK(!weft_world_set(&(weft_world_t){.buffer = 8192}));
	p = connection("far");
	fill(data, sizeof data, 0);
	CHECK(weft_write_all(fd, data, sizeof data) == sizeof data);
	while ((n = weft_sendfile(p.to, fd, &offset, sizeof data)) > 0)
		note((uint64_t)n);
	CHECK(n == 0 && offset == sizeof data);
	CHECK(!weft_pipe(fds));
	for (done = 0; done < sizeof data; done += (size_t)n) {
		n = weft_splice(p.from, fds[1], sizeof data - done, 0);
		CHECK(n > 0);
		CHECK(weft_read_all(fds[0], data, (size_t)n) == n);
		check_bytes(data, (size_t)n, done);
	}
	CHECK(!weft_close(fds[0]) && !weft_close(fds[1]) && !weft_close(fd));
	close_both(p);
	return result;
}

static void *names(void *result)
{
	weft_address_t found[2];
	struct sockaddr_in *v4 = (struct sockaddr_in *)&found[0].address;

	CHECK(weft_resolve("localhost", "80", SOCK_STREAM, found, 2) == 1);
	CHECK(v4->sin_family == AF_INET && ntohs(v4->sin_port) == 80 && v4->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(!weft_world_host("b"));
	CHECK(weft_resolve("b", NULL, SOCK_STREAM, found, 2) == 1 && v4->sin_addr.s_addr == htonl(0x0a000002));
	CHECK(weft_resolve("1.2.3.4", NULL, SOCK_STREAM, found, 2) == 1 && v4->sin_addr.s_addr == htonl(0x01020304));
	CHECK(weft_resolve("::1", NULL, SOCK_STREAM, found, 2) == 1 && v4->sin_family == AF_INET6);
	CHECK(weft_resolve("b.example", NULL, SOCK_STREAM, found, 2) == -ENOENT);
	CHECK(weft_dial("1.2.3.4", "80") == -EHOSTUNREACH);
	CHECK(weft_world_host("") == -EINVAL);
	return result;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void *files(void *result)
{
	struct stat status;
	char data[16];
	int fd, other;

	CHECK(weft_open("a", O_RDWR, 0) == -ENOENT);
	fd = weft_open("a", O_RDWR | O_CREAT, 0640);
	CHECK(fd >= 1 << 20);
	CHECK(weft_open("a", O_RDWR | O_CREAT | O_EXCL, 0640) == -EEXIST);
	CHECK(weft_write_all(fd, "0123456789", 10) == 10);
	CHECK(weft_pread(fd, data, 1, 5) == 1 && *data == '5');
	CHECK(weft_pwrite(fd, "x", 1, 12) == 1);
	CHECK(weft_read(fd, data, 1) == 1 && *data == 0 && weft_read(fd, data, 8) > 0);
	CHECK(!weft_fsync(fd) && !weft_fdatasync(fd));
	CHECK(!weft_fstatat(AT_FDCWD, "a", &status, 0) && status.st_size == 13 && status.st_mode == (S_IFREG | 0640));
	CHECK(!weft_fstatat(fd, "", &status, AT_EMPTY_PATH) && status.st_size == 13);
	CHECK(!weft_close(fd));
	CHECK(weft_open("a/b", O_RDWR | O_CREAT, 0640) == -ENOTDIR && weft_mkdir("a/b", 0755) == -ENOTDIR);
	CHECK(weft_open("a/b", O_RDONLY, 0) == -ENOTDIR && weft_unlink("a/b") == -ENOTDIR);
	CHECK(weft_open("a", O_RDONLY | O_DIRECTORY, 0) == -ENOTDIR && weft_rename("a", "a/b") == -ENOTDIR);
	CHECK(!weft_mkdir("d", 0755) && weft_open("d", O_RDONLY | O_CREAT, 0) == -EISDIR);
	CHECK(weft_open("d", O_RDONLY | O_TRUNC, 0) == -EISDIR && weft_open("d", O_WRONLY, 0) == -EISDIR);
	fd = weft_open("d", O_RDONLY, 0);
	CHECK(weft_read(fd, data, 1) == -EISDIR && weft_write(fd, "x", 1) == -EBADF && !weft_close(fd));
	fd = weft_open(".", O_RDONLY, 0);
	CHECK(fd >= 0 && weft_read(fd, data, 1) == -EISDIR && !weft_close(fd));
	fd = weft_open("./socket", O_WRONLY | O_CREAT, 0640);
	CHECK(weft_listen("./socket", 0, 0, 0) == -EADDRINUSE && !weft_close(fd));
	fd = weft_open("a", O_WRONLY | O_APPEND, 0);
	CHECK(weft_write(fd, "y", 1) == 1 && weft_read(fd, data, 1) == -EBADF && !weft_close(fd));
	CHECK(!weft_fstatat(AT_FDCWD, "a", &status, 0) && status.st_size == 14);
	CHECK(!weft_world_host("other"));
	CHECK(weft_open("a", O_RDONLY, 0) == -ENOENT);
	CHECK(!weft_world_host("main"));
	fd = weft_open("a", O_WRONLY | O_TRUNC, 0);
	CHECK(!weft_fstatat(AT_FDCWD, "a", &status, 0) && status.st_size == 0);
	CHECK(!weft_world_set(&(weft_world_t){.disk = 5}));
	CHECK(weft_write_all(fd, "1234567", 7) == 5 && weft_write(fd, "6", 1) == -ENOSPC);
	other = weft_open("b", O_WRONLY | O_CREAT, 0600);
	CHECK(other >= 0 && weft_write(other, "1", 1) == -ENOSPC && !weft_rename("b", "a"));
	CHECK(weft_write_all(other, "12345", 5) == 5 && !weft_close(other)); /* the room of the replaced file is free */
	CHECK(!weft_world_set(&(weft_world_t){.disk_error = 1000000}));
	CHECK(weft_fsync(fd) == -EIO && weft_write(fd, "1", 1) == -EIO);
	CHECK(!weft_close(fd));
	return result;
}

static int torn_seen, kept_seen, missing_seen, vanished_seen;

/* Synced data are there; of other data, any part. */
static void *crashes(void *result)
{
	char data[8192], back[8192];
	struct stat status;
	int fd = weft_open("log", O_CREAT | O_RDWR, 0600), other;
	ssize_t n;

	fill(data, sizeof data, 0);
	CHECK(weft_write_all(fd, data, 2048) == 2048);
	CHECK(!weft_fsync(fd));
	CHECK(weft_write_all(fd, data + 2048, 6144) == 6144);
	other = weft_open("new", O_CREAT | O_RDWR, 0600);
	CHECK(other >= 0);
	CHECK(!weft_world_crash("main"));
	CHECK(weft_read(fd, back, 1) == -EBADF);
	CHECK(!weft_close(fd) && !weft_close(other));
	vanished_seen += weft_fstatat(AT_FDCWD, "new", &status, 0) == -ENOENT;
	fd = weft_open("log", O_RDONLY, 0);
	CHECK(fd >= 0);
	n = weft_read_all(fd, back, sizeof back);
	CHECK(n >= 2048 && n <= 8192);
	check_bytes(back, 2048, 0);
	kept_seen += n == 8192 && !memcmp(back, data, 8192);
	missing_seen += n == 2048;
	torn_seen += n > 2048 && (n < 8192 || memcmp(back, data, 8192) != 0);
	note((uint64_t)n);
	CHECK(!weft_close(fd));
	return result;
}

static int undone_seen;

static int64_t size_of(const char *name)
{
	struct stat status;
	int error = weft_fstatat(AT_FDCWD, name, &status, 0);

	return error ? error : status.st_size;
}

static void write_synced(const char *name, const char *text)
{
	int fd = weft_open(name, O_CREAT | O_WRONLY, 0600);

	CHECK(weft_write_all(fd, text, strlen(text)) == (ssize_t)strlen(text) && !weft_fsync(fd) && !weft_close(fd));
}

/* A file takes another's place. A crash keeps that or undoes it; after a sync it keeps it. No crash loses both. */
static void *renamed(void *result)
{
	bool undone;
	int fd;

	write_synced("it", "old");
	write_synced("next", "newer");
	CHECK(!weft_rename("next", "it") && size_of("it") == 5 && size_of("next") == -ENOENT);
	CHECK(!weft_world_crash("main"));
	undone = size_of("it") == 3;
	undone_seen += undone;
	CHECK(undone ? size_of("next") == 5 : size_of("it") == 5 && size_of("next") == -ENOENT);
	write_synced("next", "newest");
	CHECK(!weft_rename("next", "it"));
	fd = weft_open("it", O_RDONLY, 0);
	CHECK(!weft_fsync(fd) && !weft_close(fd) && !weft_world_crash("main"));
	CHECK(size_of("it") == 6 && size_of("next") == -ENOENT);
	CHECK(!weft_unlink("it") && !weft_world_crash("main"));
	CHECK(size_of("it") == 6 || size_of("it") == -ENOENT);
	/* A name belongs to a single file after every crash. */
	(void)weft_unlink("it");
	fd = weft_open("it", O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0 && !weft_world_crash("main") && !weft_close(fd));
	CHECK((weft_unlink("it") || size_of("it") == -ENOENT) && weft_unlink("it") == -ENOENT);
	note(undone);
	return result;
}

/* A crash resets the host's connections, and ends its listeners. */
static void *crashes_connected(void *result)
{
	struct pair p = connection("far");
	weft_task_t reader;
	weft_scope_t scope;
	char data[4];
	void *got;

	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn_with(&scope, &reader, reads_one, (void *)(intptr_t)p.from, NULL));
	weft_sleep(MS);
	CHECK(!weft_world_crash("far"));
	CHECK(weft_read(p.to, data, 4) == -ECONNRESET);
	CHECK(!weft_join(&reader, &got) && (intptr_t)got == -ECANCELED);
	CHECK(weft_read(p.from, data, 4) == -EBADF);
	CHECK(!weft_scope_wait(&scope));
	close_both(p);
	CHECK(weft_world_crash("nowhere") == -ENOENT);
	return result;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Its input in capitals. Returns how many of its arguments there are. */
static int capitals(char *const argv[], const int fds[3])
{
	char part[8];
	ssize_t n;
	int count;

	for (count = 0; argv[count]; count++)
		;
	while ((n = weft_read(fds[0], part, sizeof part)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			part[i] = (char)toupper(part[i]);
		CHECK(weft_write_all(fds[1], part, (size_t)n) == n);
	}
	return count;
}

static int tidied;

static void tidies(int *count)
{
	++*count;
}

static int sleeps_on(char *const argv[], const int fds[3])
{
	(void)argv, (void)fds;
	weft_defer(tidies, &tidied);
	weft_sleep(3600 * SECOND);
	return 0;
}

static int fails(char *const argv[], const int fds[3])
{
	(void)argv, (void)fds;
	weft_task_fail(-EIO);
}

static pid_t spawn(const char *name, int in, int out)
{
	char *argv[] = {(char *)(uintptr_t)name, "-x", NULL};

	return weft_spawn_process(argv, NULL, (int[]){in, out, -1});
}

static int how_it_ended(pid_t process)
{
	int status = -1;

	CHECK(weft_waitpid(process, &status) == process);
	CHECK(weft_waitpid(process, &status) == -ECHILD);
	return status;
}

/* The child has copies of the pipes' ends: each reader sees the end when both sides have closed theirs. */
static void *a_filter(void *result)
{
	char text[] = "one process after the other", back[sizeof text];
	int to[2], from[2], status;
	pid_t child;

	CHECK(!weft_world_program("capitals", capitals));
	CHECK(!weft_pipe(to) && !weft_pipe(from));
	child = spawn("capitals", to[0], from[1]);
	CHECK(child > 0 && !weft_close(to[0]) && !weft_close(from[1]));
	CHECK(weft_waitpid_until(child, NULL, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_write_all(to[1], text, sizeof text) == sizeof text && !weft_close(to[1]));
	CHECK(weft_read_all(from[0], back, sizeof back) == sizeof back && !strcmp(back, "ONE PROCESS AFTER THE OTHER"));
	CHECK(weft_read(from[0], back, 1) == 0 && !weft_close(from[0]));
	status = how_it_ended(child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	CHECK(!weft_world_program("capitals", NULL));
	return result;
}

static void *starts_far(void *child)
{
	CHECK(!weft_world_host("far"));
	*(pid_t *)child = spawn("sleeper", -1, -1);
	return NULL;
}

static void *killed(void *result)
{
	weft_scope_t scope;
	pid_t child;
	int status;

	tidied = 0;
	CHECK(!weft_world_program("sleeper", sleeps_on) && !weft_world_program("failing", fails));
	for (int wait = 0; wait < 2; wait++) {
		child = spawn("sleeper", -1, -1);
		if (wait)
			weft_sleep(MS);
		CHECK(!weft_kill_process(child, 0) && !weft_kill_process(child, SIGTERM) &&
		      !weft_world_kill(child, SIGKILL));
		status = how_it_ended(child);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		CHECK(weft_world_kill(child, SIGTERM) == -ESRCH && tidied == wait);
		CHECK(weft_kill_process(child, SIGTERM) == -ESRCH && !weft_kill_process(getpid(), 0));
	}
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, starts_far, &child) && !weft_scope_wait(&scope));
	weft_sleep(MS);
	CHECK(!weft_world_crash("far"));
	CHECK(WTERMSIG(how_it_ended(child)) == SIGKILL && tidied == 2);
	CHECK(WTERMSIG(how_it_ended(spawn("failing", -1, -1))) == SIGABRT);
	CHECK(weft_world_kill(child, 65) == -EINVAL && weft_world_program("", sleeps_on) == -EINVAL);
	CHECK(spawn("failing", 1 << 21, -1) == -EBADF);
	CHECK(spawn("weft-has-no-such-program", -1, -1) == -ENOENT); /* a real program */
	return result;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static sigset_t set_of(int first, int second)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, first);
	sigaddset(&set, second);
	return set;
}

/* Counts SIGUSR1 until SIGUSR2. */
static int counts_signals(char *const argv[], const int fds[3])
{
	sigset_t set = set_of(SIGUSR1, SIGUSR2);
	siginfo_t info;
	int count = 0;

	(void)argv, (void)fds;
	while (weft_sigwait(&set, &info) == SIGUSR1)
		count++;
	return info.si_signo == SIGUSR2 && info.si_code == SI_USER ? count : 99;
}

static void *signals(void *result)
{
	sigset_t set = set_of(SIGCHLD, SIGCHLD);
	siginfo_t info;
	pid_t child;

	CHECK(!weft_world_program("counter", counts_signals));
	child = spawn("counter", -1, -1);
	/* Two signals are one until it is taken. */
	CHECK(!weft_world_kill(child, SIGUSR1) && !weft_world_kill(child, SIGUSR1));
	weft_sleep(MS);
	CHECK(!weft_world_kill(child, SIGUSR1) && !weft_world_kill(child, SIGURG));
	weft_sleep(MS);
	CHECK(weft_sigwait_until(&set, NULL, weft_now() + MS) == -ETIMEDOUT);
	CHECK(!weft_world_kill(child, SIGUSR2));
	CHECK(weft_sigwait(&set, &info) == SIGCHLD && info.si_pid == child && info.si_code == CLD_EXITED);
	CHECK(info.si_status == 2 && WEXITSTATUS(how_it_ended(child)) == 2);
	/* A signal that is not blocked ends it. */
	child = spawn("counter", -1, -1);
	weft_sleep(MS);
	CHECK(!weft_world_kill(child, SIGTERM) && weft_sigwait(&set, &info) == SIGCHLD);
	CHECK(info.si_pid == child && info.si_code == CLD_KILLED && info.si_status == SIGTERM);
	CHECK(WTERMSIG(how_it_ended(child)) == SIGTERM && weft_world_kill(child, SIGSTOP) == -EINVAL);
	return result;
}

static void *takes_one(void *got)
{
	sigset_t set = set_of(SIGUSR1, SIGRTMIN);

	*(int *)got = weft_sigwait(&set, NULL);
	return got;
}

/* A host's own program; real-time signals are kept each, and lower numbers come first. */
static void *own_signals(void *result)
{
	sigset_t lost = set_of(SIGUSR1, SIGUSR1);
	int got[4] = {0};
	weft_scope_t scope;

	CHECK(!weft_world_signal("main", SIGRTMIN) && !weft_world_signal("main", SIGRTMIN));
	CHECK(!weft_world_signal("main", SIGUSR1));
	takes_one(&got[0]);
	takes_one(&got[1]);
	takes_one(&got[2]);
	CHECK(got[0] == SIGUSR1 && got[1] == SIGRTMIN && got[2] == SIGRTMIN);
	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < 4; i++)
		CHECK(!weft_scope_spawn(&scope, takes_one, &got[i]));
	weft_sleep(MS);
	for (int i = 0; i < 4; i++)
		CHECK(!weft_world_signal("main", SIGRTMIN));
	CHECK(!weft_scope_wait(&scope) && got[0] == SIGRTMIN && got[3] == SIGRTMIN);
	CHECK(weft_world_signal("main", SIGTERM) == -EPERM && !weft_world_signal("main", 0));
	CHECK(weft_world_signal("nowhere", SIGUSR1) == -ENOENT && weft_world_signal("main", 65) == -EINVAL);
	CHECK(!weft_world_signal("main", SIGUSR1) && !weft_world_crash("main"));
	CHECK(weft_sigwait_until(&lost, NULL, weft_now() + MS) == -ETIMEDOUT);
	return result;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct test tests[] = {T(echo_server),	  T(proxy),    T(half_close), T(deadlines), T(cancelled),
				    T(closing),		  T(backlog),  T(errors),     T(partition), T(resets),
				    T(datagrams),	  T(pipes),    T(copies),     T(names),	    T(local_sockets),
				    T(full_listener),	  T(passing),  T(files),      T(crashes),   T(renamed),
				    T(crashes_connected), T(a_filter), T(killed),     T(signals),   T(own_signals)};

/* Both outcomes of each decision of the seed must have been seen. */
static int check_seen(unsigned long seeds)
{
	const int seen[] = {resets_seen, lost_seen,    twice_seen,    reordered_seen, torn_seen,
			    kept_seen,	 missing_seen, vanished_seen, undone_seen};

	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
		if (!seen[i] || (i >= 4 && seen[i] == (int)seeds)) {
			printf("not ok - fault %zu was seen %d times in %lu seeds\n", i, seen[i], seeds);
			return 1;
		}
	return 0;
}

static int run(const struct test *t, unsigned long seed, uint64_t *traced)
{
	/* Turns take no time, because the tests say when things happen. The examples run with turns that do. */
	const weft_rt_config_t config = {.task = {.stack_size = 128 << 10}, .turn_cost = WEFT_NEVER};
	void *result = NULL;
	int error;

	trace = seed;
	error = weft_simulate(seed, &config, t->fn, &trace, &result);
	*traced = trace;
	if (error)
		printf("not ok - %s: %s, seed %lu\n", t->name, strerror(-error), seed);
	return error;
}

int main(int argc, char **argv)
{
	unsigned long seed, seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	uint64_t first, second;
	sigset_t blocked = set_of(SIGUSR1, SIGUSR2);

	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, SIGRTMIN);
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, NULL));
	CHECK(weft_world_program("a", fails) == -EPERM && weft_world_kill(1, SIGKILL) == -EPERM);
	CHECK(weft_world_signal("main", SIGUSR1) == -EPERM);
	CHECK(weft_world_host("a") == -EPERM && weft_world_set(NULL) == -EPERM && !weft_world_random());
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if (argc > 2 && strcmp(argv[2], tests[i].name) != 0)
			continue;
		for (seed = 0; seed < seeds; seed++) {
			if (run(&tests[i], seed, &first) || run(&tests[i], seed, &second))
				return 1;
			if (first != second) {
				printf("not ok - %s: seed %lu does not repeat\n", tests[i].name, seed);
				return 1;
			}
		}
		printf("ok - %s\n", tests[i].name);
	}
	return argc > 2 || seeds < 50 ? 0 : check_seen(2 * seeds);
}
