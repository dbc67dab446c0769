/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The load generator of experiment B3: a plain loop around epoll that sends HTTP/1.1 requests to its parent, a server,
 * and prints the cost of a request to the server.
 *
 *   case=serve        n requests over `connections`. Each of `active` connections sends `pipeline` requests at once,
 *                     and the next requests when it has all replies.
 *   case=idle_memory  resident bytes of the server for each of `connections` that did one request and then were idle
 *                     for `ms` milliseconds
 *   case=late         n requests, one every `us` microseconds, over `connections`. If all connections wait for a reply,
 *                     the request waits, too: its latency counts from the time at which it was due.
 *   case=multiplexed  n requests by h2load, over `connections` of HTTP/2 with `streams` requests on each at a time
 *   case=secure       n requests by h2load, over `connections` of HTTP/1.1 by TLS 1.3
 *
 * With tls=1 the connections of idle_memory are by TLS.
 *
 * Each reply must have status 200, a Content-Length, and the body that all servers of the experiment send.
 */
#define _GNU_SOURCE
#include "load_tls.h"
#include "http_text.h"

/* KEPT: room for an incomplete head. PART: room for the replies that one recv returns. */
enum { TOGETHER = 100, EVENTS = 256, KEPT = 1024, PART = 65536, MOST = 16 };

struct connection {
	int fd;
	unsigned owed; /* requests without a reply */
	unsigned kept; /* bytes of an incomplete reply, in `text` */
	int64_t due;   /* late: when the request was due */
	char text[KEPT];
};

struct load {
	int64_t n, connections, active, pipeline, streams, us, ms;
	uint64_t sent, got;
	int port, set;
	struct connection *all;
};

static const char request[] = "GET / HTTP/1.1\r\n"
			      "Host: 127.0.0.1\r\n"
			      "User-Agent: curl/8.5.0\r\n"
			      "Accept: */*\r\n"
			      "\r\n";
enum { REQUEST = sizeof(request) - 1 };

static char batch[MOST * REQUEST];

/* Stops with the server's own words. */
static void wrong(const char *what, const char *text, size_t length)
{
	fprintf(stderr, "%s: %.*s\n", what, (int)(length < 200 ? length : 200), text);
	exit(2);
}

/* ---- requests and replies ---------------------------------------------------------------------------------------- */

static void fill_batch(int64_t pipeline)
{
	io_must(pipeline >= 1 && pipeline <= MOST, "pipeline must be 1 to 16");
	for (int64_t i = 0; i < pipeline; i++)
		memcpy(batch + i * REQUEST, request, REQUEST);
}

static void send_requests(struct load *l, struct connection *c, unsigned count)
{
	ssize_t length = (ssize_t)count * REQUEST;

	io_must(send(c->fd, batch, (size_t)length, MSG_NOSIGNAL) == length, "send");
	c->owed += count;
	l->sent += count;
}

/* The value of a header field, which ends at a CR, or NULL. `head` ends with an empty line. */
static const char *field(const char *head, const char *name)
{
	size_t length = strlen(name);
	const char *line = strstr(head, "\r\n");

	for (; line && line[2] != '\r'; line = strstr(line + 2, "\r\n"))
		if (!strncasecmp(line + 2, name, length) && line[2 + length] == ':')
			return line + 3 + length;
	return NULL;
}

/* The length of the first reply in a text that ends with a zero; 0 if the reply is incomplete. */
static size_t check_reply(const char *text, size_t length)
{
	const char *end = strstr(text, "\r\n\r\n"), *said;
	size_t head = end ? (size_t)(end - text) + 4 : 0;

	if (!end)
		return 0;
	said = field(text, "Content-Length");
	if (strncmp(text, "HTTP/1.1 200 ", 13) || !said || strtoul(said, NULL, 10) != HTTP_BODY)
		wrong("a wrong reply", text, length);
	if (length < head + HTTP_BODY)
		return 0;
	if (memcmp(text + head, http_body, HTTP_BODY))
		wrong("a wrong body", text + head, length - head);
	return head + HTTP_BODY;
}

/* Receives once. Returns the number of complete replies. */
static unsigned take_replies(struct load *l, struct connection *c)
{
	static char part[KEPT + PART + 1];
	size_t have = c->kept, at = 0, length;
	unsigned count = 0;
	ssize_t n;

	memcpy(part, c->text, have);
	n = recv(c->fd, part + have, PART, 0);
	io_must(n >= 0, "recv");
	if (!n)
		wrong("the server closed a connection after", part, have);
	have += (size_t)n;
	part[have] = 0;
	for (; at < have && (length = check_reply(part + at, have - at)); at += length)
		count++;
	if (have - at > KEPT || count > c->owed)
		wrong("more than the replies", part + at, have - at);
	c->kept = (unsigned)(have - at);
	memcpy(c->text, part + at, c->kept);
	c->owed -= count;
	l->got += count;
	return count;
}

/* Each connection has had one reply, so the server has accepted it. */
static void open_all(void *load)
{
	struct load *l = load;
	int64_t first, i, last;

	l->all = calloc((size_t)l->connections, sizeof(*l->all));
	io_must(l->all, "calloc");
	for (first = 0; first < l->connections; first = last) {
		last = first + TOGETHER < l->connections ? first + TOGETHER : l->connections;
		for (i = first; i < last; i++) {
			l->all[i].fd = load_connect(l->port, SOCK_STREAM);
			send_requests(l, &l->all[i], 1);
		}
		for (i = first; i < last; i++)
			while (l->all[i].owed)
				take_replies(l, &l->all[i]);
	}
	l->sent = l->got = 0;
}

static void open_all_secure(void *load)
{
	struct load *l = load;
	char text[KEPT];

	for (int64_t i = 0; i < l->connections; i++) {
		void *ssl = load_connect_tls(l->port);
		int n =
		    load_tls.SSL_write(ssl, request, REQUEST) == REQUEST ? load_tls.SSL_read(ssl, text, KEPT - 1) : 0;

		io_must(n > 0, "a request");
		text[n] = 0;
		if (!check_reply(text, (size_t)n))
			wrong("a part of a reply", text, (size_t)n);
	}
}

static void watch_all(struct load *l)
{
	for (int64_t i = 0; i < l->connections; i++)
		io_watch(l->set, l->all[i].fd, &l->all[i]);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void send_batch(struct load *l, struct connection *c, int64_t n)
{
	int64_t left = n - (int64_t)l->sent;

	if (left > 0)
		send_requests(l, c, (unsigned)(left < l->pipeline ? left : l->pipeline));
}

/* The active connections are spread over all connections. */
static void exchange(struct load *l, int64_t n)
{
	struct epoll_event events[EVENTS];
	struct connection *c;
	int i, count;

	l->sent = l->got = 0;
	for (i = 0; i < l->active; i++)
		send_batch(l, &l->all[i * (l->connections / l->active)], n);
	while (l->got < (uint64_t)n) {
		count = load_wait(l->set, events, EVENTS, -1);
		for (i = 0; i < count; i++) {
			c = events[i].data.ptr;
			take_replies(l, c);
			if (!c->owed)
				send_batch(l, c, n);
		}
	}
}

static void serve(struct load *l)
{
	open_all(l);
	watch_all(l);
	exchange(l, l->n / 20 + l->active * l->pipeline);
	load_start();
	exchange(l, l->n);
	load_stop();
	lab_report((uint64_t)l->n, (int64_t)l->got);
}

/* Runs h2load, which must get `n` replies, by TLS 1.3 if `secure`. */
static void run_h2load(const struct load *l, int64_t n, bool secure)
{
	char command[256], line[256], wanted[64];
	FILE *out;
	bool found = false, old = secure;

	snprintf(command, sizeof(command), "h2load -n %" PRId64 " -c %" PRId64 " -m %" PRId64 " %s://127.0.0.1:%d/", n,
		 l->connections, secure ? 1 : l->streams, secure ? "--h1 https" : "http", l->port);
	snprintf(wanted, sizeof(wanted), " %" PRId64 " succeeded, 0 failed", n);
	out = popen(command, "r");
	io_must(out, "popen");
	while (fgets(line, sizeof(line), out)) {
		found |= strstr(line, wanted) != NULL;
		old &= strstr(line, "TLSv1.3") == NULL;
	}
	if (pclose(out) || !found || old)
		wrong("not all were answered", command, strlen(command));
}

static void by_h2load(struct load *l, bool secure)
{
	if (system("command -v h2load >/dev/null"))
		lab_cannot("needs h2load: apt-get install --no-install-recommends nghttp2-client");
	run_h2load(l, l->n / 20 + l->connections * l->streams, secure);
	load_start();
	run_h2load(l, l->n, secure);
	load_stop();
	lab_report((uint64_t)l->n, l->n);
}

/* Connections that wait for no reply, in the order in which they became free: connections take turns. */
struct queue {
	struct connection **all;
	uint64_t size, head, tail;
};

static void put(struct queue *free, struct connection *c)
{
	free->all[free->tail++ % free->size] = c;
}

static void collect(struct load *l, struct queue *free, int64_t until)
{
	struct epoll_event events[EVENTS];
	struct connection *c;
	int i, count = load_wait(l->set, events, EVENTS, until);

	for (i = 0; i < count; i++) {
		c = events[i].data.ptr;
		if (!take_replies(l, c))
			continue;
		load_took(lab_now(CLOCK_MONOTONIC) - c->due);
		put(free, c);
	}
}

/* Time between requests counts from the start, not from the last request: a late request delays no other. */
static void offer(struct load *l, struct queue *free)
{
	int64_t began = lab_now(CLOCK_MONOTONIC), due;
	struct connection *c;

	while (l->got < (uint64_t)l->n) {
		due = began + (int64_t)l->sent * l->us * 1000;
		if (l->sent == (uint64_t)l->n || free->head == free->tail) {
			collect(l, free, -1);
		} else if (due > lab_now(CLOCK_MONOTONIC)) {
			collect(l, free, due);
		} else {
			c = free->all[free->head++ % free->size];
			c->due = due;
			send_requests(l, c, 1);
		}
	}
}

static void late(struct load *l)
{
	struct queue free = {calloc((size_t)l->connections, sizeof(*free.all)), (uint64_t)l->connections, 0, 0};
	char more[128], result[32];

	io_must(free.all, "calloc");
	prctl(PR_SET_TIMERSLACK, 1); /* otherwise the kernel may delay each request by up to 50 µs */
	open_all(l);
	watch_all(l);
	for (int64_t i = 0; i < l->connections; i++)
		put(&free, &l->all[i]);
	load_start();
	offer(l, &free);
	load_stop();
	snprintf(more, sizeof(more), ", \"p50\": %.6f, \"p99\": %.6f, \"late\": %.6f", load_quantile(l->got, 2),
		 load_quantile(l->got, 100), load_quantile(l->got, 1000));
	snprintf(result, sizeof(result), "%" PRIu64, l->got);
	lab_report_more(l->got, result, more);
}

int main(int argc, char **argv)
{
	struct load l = {.n = lab_number(argc, argv, "n", 1000),
			 .connections = lab_number(argc, argv, "connections", 1),
			 .pipeline = lab_number(argc, argv, "pipeline", 1),
			 .streams = lab_number(argc, argv, "streams", 32),
			 .us = lab_number(argc, argv, "us", 100),
			 .ms = lab_number(argc, argv, "ms", 2000),
			 .port = (int)lab_number(argc, argv, "port", 0)};

	bool secure = lab_number(argc, argv, "tls", 0);

	load_begin(l.connections);
	if (secure)
		load_open_tls();
	l.active = lab_number(argc, argv, "active", l.connections);
	l.set = epoll_create1(EPOLL_CLOEXEC);
	fill_batch(l.pipeline);
	if (lab_is(argc, argv, "case", "serve"))
		serve(&l);
	else if (lab_is(argc, argv, "case", "idle_memory"))
		load_idle_memory(&l, secure ? open_all_secure : open_all, &l.connections, l.ms);
	else if (lab_is(argc, argv, "case", "multiplexed"))
		by_h2load(&l, false);
	else if (lab_is(argc, argv, "case", "secure"))
		by_h2load(&l, true);
	else if (lab_is(argc, argv, "case", "late"))
		late(&l);
	else
		lab_die("no such case");
	return 0;
}
