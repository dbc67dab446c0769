/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * echo.c: a server with a task for each connection, and its clients. One client sends nothing until the server's
 * time-out ends the connection. Under `weft simulate` the same program runs in a simulated network, with delays and
 * short reads.
 */
#include <stdio.h>
#include <string.h>
#include <weft/io.h>

#define MS 1000000ull

enum { CLIENTS = 8, ROUNDS = 100, PATIENCE = 1000 /* milliseconds */ };

struct server {
	int listener;
	char port[8];
	unsigned bytes, impatient; /* atomic */
};

/* doc: begin serve */
struct connection {
	struct server *server;
	int fd;
};

static void close_connection(int *fd)
{
	weft_close(*fd);
}

/* Serves until the client ends the connection or is silent for too long. */
static void *serve(void *argument)
{
	struct connection c = *(struct connection *)argument;
	char text[512];
	ssize_t n;

	weft_defer(close_connection, &c.fd);
	while ((n = weft_read_until(c.fd, text, sizeof text, weft_now() + PATIENCE * MS)) > 0) {
		if (weft_write_all(c.fd, text, (size_t)n) != n)
			break;
		__atomic_fetch_add(&c.server->bytes, (unsigned)n, __ATOMIC_RELAXED);
	}
	if (n == -ETIMEDOUT)
		__atomic_fetch_add(&c.server->impatient, 1, __ATOMIC_RELAXED);
	return NULL;
}
/* doc: end serve */

/* doc: begin accept */
static void *accept_all(void *argument)
{
	struct connection connections[CLIENTS + 1];
	struct server *server = argument;
	int i, error;

	WEFT_SCOPE(scope);
	for (i = 0; i < CLIENTS + 1; i++) {
		connections[i] = (struct connection){server, weft_accept(server->listener, NULL, NULL, 0)};
		if (connections[i].fd < 0)
			weft_task_fail(connections[i].fd);
		error = weft_scope_spawn(&scope, serve, &connections[i]);
		if (error) {
			weft_close(connections[i].fd);
			weft_task_fail(error);
		}
	}
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	return NULL;
}
/* doc: end accept */

/* doc: begin client */
static void *talk(void *argument)
{
	struct server *server = argument;
	char text[16], back[16];
	int i, fd = weft_dial("127.0.0.1", server->port);

	if (fd < 0)
		weft_task_fail(fd);
	weft_defer(close_connection, &fd);
	for (i = 0; i < ROUNDS; i++) {
		snprintf(text, sizeof text, "round %8d", i);
		if (weft_write_all(fd, text, 14) != 14 || weft_read_all(fd, back, 14) != 14 ||
		    memcmp(text, back, 14) != 0)
			weft_task_fail(-EIO);
	}
	return NULL;
}
/* doc: end client */

static void *say_nothing(void *argument)
{
	struct server *server = argument;
	int fd = weft_dial("127.0.0.1", server->port);
	char byte;

	if (fd < 0)
		weft_task_fail(fd);
	weft_defer(close_connection, &fd);
	/* The server closes the connection first. */
	if (weft_read(fd, &byte, 1) != 0)
		weft_task_fail(-EIO);
	return NULL;
}

/* If a task cannot start, the other tasks would wait for it. */
static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error)
		weft_scope_cancel(scope, error);
}

static void *run(void *argument)
{
	struct server *server = argument;
	int i;

	server->listener = weft_listen("127.0.0.1", 0, 0, 0);
	if (server->listener < 0)
		weft_task_fail(server->listener);
	weft_defer(close_connection, &server->listener);
	snprintf(server->port, sizeof server->port, "%d", weft_port(server->listener));
	WEFT_SCOPE(scope);
	start(&scope, accept_all, server);
	start(&scope, say_nothing, server);
	for (i = 0; i < CLIENTS; i++)
		start(&scope, talk, server);
	i = weft_scope_wait(&scope);
	if (i)
		weft_task_fail(i);
	return NULL;
}

int main(void)
{
	struct server server = {0};
	int error = weft_rt_run(NULL, run, &server, NULL);

	if (error) {
		fprintf(stderr, "echo: %s\n", strerror(-error));
		return 1;
	}
	printf("%u bytes came back, %u client was too slow\n", server.bytes, server.impatient);
}
