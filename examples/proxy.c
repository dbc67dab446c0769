/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * proxy.c: a proxy forwards the data of two sides, each direction until its own end. The client sends all its data,
 * shuts down its sending direction, and only then reads: a proxy that closed both directions at the first end would
 * lose the answer.
 */
#include <stdio.h>
#include <string.h>
#include <weft/io.h>

enum { BYTES = 100000, PART = 1000 };

static void close_fd(int *fd)
{
	weft_close(*fd);
}

/* doc: begin hand_on */
struct direction {
	int from, to;
};

static void *hand_on(void *argument)
{
	const struct direction *d = argument;
	char part[4096];
	ssize_t n;

	while ((n = weft_read(d->from, part, sizeof part)) > 0)
		if (weft_write_all(d->to, part, (size_t)n) != n)
			weft_task_fail(-EPIPE);
	if (n < 0)
		weft_task_fail((int)n);
	weft_shutdown(d->to, SHUT_WR); /* the other direction continues */
	return NULL;
}

/* If a task cannot start, the other tasks would wait for it. */
static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error)
		weft_scope_cancel(scope, error);
}

/* Forwards one connection. An error in one direction ends both. */
static int hand_on_both(int client, int server)
{
	struct direction there = {client, server}, back = {server, client};

	WEFT_SCOPE(scope);
	start(&scope, hand_on, &there);
	start(&scope, hand_on, &back);
	return weft_scope_wait(&scope);
}
/* doc: end hand_on */

/* Adds up the data until the end, and answers with the sum. */
static void *serve(void *listener)
{
	unsigned char part[777];
	unsigned long sum = 0;
	ssize_t n, i;
	int fd = weft_accept(*(int *)listener, NULL, NULL, 0);

	if (fd < 0)
		weft_task_fail(fd);
	weft_defer(close_fd, &fd);
	while ((n = weft_read(fd, part, sizeof part)) > 0)
		for (i = 0; i < n; i++)
			sum += part[i];
	if (weft_write_all(fd, &sum, sizeof sum) != sizeof sum)
		weft_task_fail(-EPIPE);
	return NULL;
}

struct world {
	int server, proxy;
	char server_port[8], proxy_port[8];
	unsigned long sum;
};

static void *proxy(void *argument)
{
	struct world *w = argument;
	int client, server, error;

	client = weft_accept(w->proxy, NULL, NULL, 0);
	if (client < 0)
		weft_task_fail(client);
	weft_defer(close_fd, &client);
	server = weft_dial("127.0.0.1", w->server_port);
	if (server < 0)
		weft_task_fail(server);
	weft_defer(close_fd, &server);
	error = hand_on_both(client, server);
	if (error)
		weft_task_fail(error);
	return NULL;
}

static void *ask(void *argument)
{
	struct world *w = argument;
	unsigned char part[PART];
	int i, fd = weft_dial("127.0.0.1", w->proxy_port);

	if (fd < 0)
		weft_task_fail(fd);
	weft_defer(close_fd, &fd);
	memset(part, 7, sizeof part);
	for (i = 0; i < BYTES / PART; i++)
		if (weft_write_all(fd, part, PART) != PART)
			weft_task_fail(-EPIPE);
	weft_shutdown(fd, SHUT_WR);
	if (weft_read_all(fd, &w->sum, sizeof w->sum) != sizeof w->sum)
		weft_task_fail(-EIO);
	return NULL;
}

static int listen_at(char port[8])
{
	int fd = weft_listen("127.0.0.1", 0, 0, 0);

	if (fd < 0)
		weft_task_fail(fd);
	snprintf(port, 8, "%d", weft_port(fd));
	return fd;
}

static void *run(void *argument)
{
	struct world *w = argument;
	int error;

	w->server = listen_at(w->server_port);
	weft_defer(close_fd, &w->server);
	w->proxy = listen_at(w->proxy_port);
	weft_defer(close_fd, &w->proxy);
	WEFT_SCOPE(scope);
	start(&scope, serve, &w->server);
	start(&scope, proxy, w);
	start(&scope, ask, w);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	return NULL;
}

int main(void)
{
	struct world w = {0};
	int error = weft_rt_run(NULL, run, &w, NULL);

	if (error) {
		fprintf(stderr, "proxy: %s\n", strerror(-error));
		return 1;
	}
	printf("the sum is %lu\n", w.sum);
}
