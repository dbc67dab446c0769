/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Input and output by tasks, in straight lines of code; WEFT_IO selects the back end.
 *
 *   case=pipe, tcp   n round trips of a byte between two tasks
 *   case=echo, accept, idle_memory, late   a server, a task per connection: io_server.h; late: beside a task that
 *                    computes for 10 ms again and again
 *   case=udp         a server of datagrams, one task, at most `batch` datagrams by each call
 *   case=file        n reads of 4 KiB of a file of `blocks` by `depth` tasks; of `share` reads only the first is done
 *   case=cancel      n reads of an empty pipe that are cancelled
 */
#define _GNU_SOURCE
#include "io_server.h"
#include <weft/io.h>
#include <weft/sync.h>

struct run {
	int argc;
	char **argv;
	int64_t n, depth, blocks, share, batch, result;
	uint64_t ops;
};

static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	io_check(weft_scope_spawn(scope, fn, argument), "spawn");
}

/* ---- ping-pong --------------------------------------------------------------------------------------------------- */

struct ends {
	int to[2], back[2];
};

static void *returns(void *argument)
{
	struct ends *e = argument;
	char byte;

	while (weft_read(e->to[0], &byte, 1) == 1)
		io_check(weft_write(e->back[1], &byte, 1), "write");
	return e;
}

static void exchange(struct run *r, struct ends *e)
{
	char byte = 0;

	WEFT_SCOPE(scope);
	start(&scope, returns, e);
	lab_start();
	for (; r->result < r->n; r->result++) {
		io_check(weft_write(e->to[1], &byte, 1), "write");
		io_check(weft_read(e->back[0], &byte, 1), "read");
	}
	lab_stop();
	weft_close(e->to[1]);
	weft_scope_wait(&scope);
	r->ops = (uint64_t)r->n;
}

static void by_pipe(struct run *r)
{
	struct ends e;

	io_check(weft_pipe(e.to), "pipe");
	io_check(weft_pipe(e.back), "pipe");
	exchange(r, &e);
}

static void by_tcp(struct run *r)
{
	int door = weft_listen("127.0.0.1", 0, 0, 0), here, there;
	char port[16];

	snprintf(port, sizeof(port), "%d", weft_port(door));
	here = weft_dial("127.0.0.1", port);
	io_check(here, "dial");
	there = weft_accept(door, NULL, NULL, 0);
	io_check(there, "accept");
	exchange(r, &(struct ends){{there, here}, {here, there}});
}

/* ---- a server ---------------------------------------------------------------------------------------------------- */

static void *serves(void *connection)
{
	int fd = (int)(intptr_t)connection;
	char text[IO_BUFFER];
	ssize_t n;

	while ((n = weft_recv(fd, text, sizeof(text), 0)) > 0)
		if (weft_send(fd, text, (size_t)n, 0) != n)
			break;
	weft_close(fd);
	return NULL;
}

static void server(struct run *r)
{
	int door = weft_listen("127.0.0.1", 0, 0, 0), fd;

	io_check(door, "listen");
	io_raise_limit();
	io_start_load(r->argc, r->argv, weft_port(door));
	WEFT_SCOPE(scope);
	while ((fd = weft_accept(door, NULL, NULL, 0)) >= 0)
		start(&scope, serves, (void *)(intptr_t)fd);
	io_check(fd, "accept");
}

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

static void one_by_one(int fd)
{
	struct sockaddr_storage from;
	char text[IO_BUFFER];
	socklen_t size;
	ssize_t n;

	for (;;) {
		size = sizeof(from);
		n = weft_recvfrom(fd, text, sizeof(text), 0, (struct sockaddr *)&from, &size);
		io_check(n, "recvfrom");
		io_check(weft_sendto(fd, text, (size_t)n, 0, (struct sockaddr *)&from, size), "sendto");
	}
}

static void in_batches(int fd, unsigned most)
{
	struct io_batch b;
	int count;

	io_make_batch(&b, most);
	for (;;) {
		count = weft_recvmmsg(fd, b.messages, most, 0);
		io_check(count, "recvmmsg");
		io_turn_round(&b, count);
		for (int sent = 0, n; sent < count; sent += n) {
			n = weft_sendmmsg(fd, b.messages + sent, (unsigned)(count - sent), 0);
			io_check(n, "sendmmsg");
		}
		io_make_batch(&b, most);
	}
}

static void datagrams(struct run *r)
{
	int fd = weft_listen("127.0.0.1", 0, 0, WEFT_LISTEN_UDP);

	io_check(fd, "listen");
	io_start_load(r->argc, r->argv, weft_port(fd));
	if (r->batch > 1)
		in_batches(fd, (unsigned)r->batch);
	else
		one_by_one(fd);
}

static void *computes(void *unused)
{
	for (;;) {
		io_compute();
		weft_sleep(1000000);
	}
	return unused;
}

static void late(struct run *r)
{
	WEFT_SCOPE(scope);
	start(&scope, computes, NULL);
	server(r);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct reader {
	struct run *run;
	int fd;
	int64_t next, right;
};

static void *reads(void *argument)
{
	int64_t block[IO_BLOCK / sizeof(int64_t)];
	struct reader *all = argument;
	int64_t wanted;

	while (all->next < all->run->n / all->run->share) {
		wanted = io_block(all->next++, all->run->blocks);
		io_check(weft_pread(all->fd, block, sizeof(block), wanted * IO_BLOCK), "pread");
		all->right += block[0] == wanted;
	}
	return all;
}

/* Uses one worker: its tasks take the numbers in turn. */
static void file(struct run *r)
{
	struct reader all = {r, io_make_file(r->blocks), 0, 0};

	WEFT_SCOPE(scope);
	lab_start();
	for (int64_t i = 0; i < r->depth; i++)
		start(&scope, reads, &all);
	weft_scope_wait(&scope);
	lab_stop();
	weft_close(all.fd);
	r->ops = (uint64_t)all.next;
	r->result = all.right * r->share;
}

/* ---- cancellation ------------------------------------------------------------------------------------------------ */

struct waits {
	weft_scope_t *scope; /* scope of the read in progress */
	int64_t n, cancelled;
	int fds[2];
};

static void *waits_for_nothing(void *argument)
{
	struct waits *w = argument;
	char byte;

	while (w->cancelled < w->n) {
		WEFT_SCOPE(scope);
		w->scope = &scope;
		w->cancelled += weft_read(w->fds[0], &byte, 1) == -ECANCELED;
	}
	return w;
}

static void cancel(struct run *r)
{
	struct waits w = {.n = r->n};

	io_check(weft_pipe(w.fds), "pipe");
	WEFT_SCOPE(scope);
	start(&scope, waits_for_nothing, &w);
	weft_task_yield();
	lab_start();
	while (w.cancelled < r->n) {
		weft_scope_cancel(w.scope, -ECANCELED);
		weft_task_yield();
	}
	lab_stop();
	r->result = w.cancelled;
	r->ops = (uint64_t)r->n;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(struct run *r);
} cases[] = {{"pipe", by_pipe},	 {"tcp", by_tcp},	  {"echo", server}, {"accept", server}, {"file", file},
	     {"cancel", cancel}, {"idle_memory", server}, {"late", late},   {"udp", datagrams}};

static void *first(void *argument)
{
	const char *wanted = getenv("WEFT_IO");
	struct run *r = argument;

	if (wanted && strcmp(wanted, weft_io_backend()))
		lab_cannot("no %s here, but %s", wanted, weft_io_backend());
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (lab_is(r->argc, r->argv, "case", cases[i].name)) {
			cases[i].run(r);
			return r;
		}
	lab_die("no such case");
	return NULL;
}

int main(int argc, char **argv)
{
	struct run r = {.argc = argc,
			.argv = argv,
			.n = lab_number(argc, argv, "n", 1000),
			.depth = lab_number(argc, argv, "depth", 1),
			.blocks = lab_number(argc, argv, "blocks", 16),
			.share = lab_number(argc, argv, "share", 1),
			.batch = lab_number(argc, argv, "batch", 1)};
	weft_rt_config_t config = {.workers = (unsigned)lab_number(argc, argv, "workers", 1)};

	config.task.stack_size = (size_t)lab_number(argc, argv, "stack", 0);
	errno = -weft_rt_run(&config, first, &r, NULL);
	if (errno)
		lab_die("the runtime");
	return lab_report(r.ops, r.result);
}
