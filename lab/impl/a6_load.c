/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The clients of experiment A6: a turn of load on one server. Each client is a thread with blocking sockets, and shares
 * no code with Weft.
 *
 *   port=N  ms=N  seed=N  good=N  slow=N  hostile=N
 *
 * Good clients use one connection for several requests, some of them pipelined, and check each byte of each reply. Slow
 * clients do the same, but send and receive few bytes at a time. Hostile clients break the protocol or vanish, and
 * check only the status of a refusal. A reply that is wrong, or does not come within PATIENCE, is counted, and the
 * first wrong reply is described. When the time is over, good and slow clients complete their visits, and hostile
 * clients vanish as the process ends. One line of JSON reports the results.
 */
#define _GNU_SOURCE
#include "a6.h"
#include "lab.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	CLIENTS_MOST = 1000,
	PATIENCE = 20,	    /* seconds for each operation of a client */
	ROOM = 1 << 19,	    /* bytes of replies that a client has received, but not checked */
	BODY_MOST = 60000,  /* bytes of a body that a client sends: both sockets' buffers hold them and the echo */
	SILENCE = 300,	    /* milliseconds for which a hostile client is silent at most */
	LATEST = 1000000,   /* microseconds */
	TOGETHER = 8,	    /* requests that are pipelined */
	REQUESTS_MOST = 12, /* in one visit */
};

enum kind { GOOD, SLOW, HOSTILE, KINDS };

struct client {
	pthread_t thread;
	enum kind kind;
	uint64_t random;
	int fd;
	size_t have, used; /* bytes in `text`; number of these that were checked */
	char *text;
	_Atomic int64_t requests, visits, wrong; /* atomic, because hostile clients still run while they are read */
	uint32_t *latencies;			 /* [i]: small requests of good clients that took i µs */
};

static int port;
static int64_t ends; /* no visit begins after this time */
static char why[300];
static pthread_mutex_t why_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t below(struct client *c, uint64_t limit)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (c->random >> 33) % limit;
}

static void rest(int64_t microseconds)
{
	if (microseconds > 0)
		usleep((useconds_t)microseconds);
}

/* Counts a wrong reply and describes the first one. Returns false. */
static __attribute__((format(printf, 2, 3))) bool wrong(struct client *c, const char *format, ...)
{
	va_list arguments;

	c->wrong++;
	va_start(arguments, format);
	pthread_mutex_lock(&why_lock);
	if (!*why)
		vsnprintf(why, sizeof(why), format, arguments);
	pthread_mutex_unlock(&why_lock);
	va_end(arguments);
	return false;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static bool dial(struct client *c)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct timeval patience = {PATIENCE, 0};
	int one = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->have = c->used = 0;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		lab_die("socket");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		return true;
	if (errno == EADDRNOTAVAIL) /* all ports wait for late packets, which is not the server's fault */
		rest(100000);
	else
		wrong(c, "connect: %s", strerror(errno));
	close(c->fd);
	return false;
}

static void hang_up(struct client *c, bool reset)
{
	const struct linger now = {1, 0};

	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->fd);
}

/* A slow client sends a few bytes at a time. */
static bool send_all(struct client *c, const void *data, size_t length)
{
	size_t at, size;
	ssize_t n;

	for (at = 0; at < length; at += (size_t)n) {
		size = length - at;
		if (c->kind == SLOW) {
			rest((int64_t)below(c, 1500));
			size = 1 + below(c, size < 30 ? size : 30);
		}
		do /* EINTR: the machine was suspended */
			n = send(c->fd, (const char *)data + at, size, MSG_NOSIGNAL);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return c->kind == HOSTILE ? false : wrong(c, "send: %s", strerror(errno));
	}
	return true;
}

/* Returns 1: more bytes arrived; 0: the end; -1: failed, with errno. */
static int receive(struct client *c)
{
	size_t room;
	ssize_t n;

	if (c->used) {
		memmove(c->text, c->text + c->used, c->have - c->used);
		c->have -= c->used;
		c->used = 0;
	}
	room = ROOM - c->have;
	if (!room) {
		errno = EMSGSIZE;
		return -1;
	}
	if (c->kind == SLOW) {
		rest((int64_t)below(c, 1500));
		room = 1 + below(c, room < 200 ? room : 200);
	}
	do
		n = recv(c->fd, c->text + c->have, room, 0);
	while (n < 0 && errno == EINTR);
	c->have += n > 0 ? (size_t)n : 0;
	return n > 0 ? 1 : (int)n;
}

/* Receives until at least `length` bytes are there from `used` on. */
static bool have_bytes(struct client *c, size_t length, const char *what)
{
	int n = 1;

	while (c->have - c->used < length && (n = receive(c)) > 0)
		;
	return n > 0 ? true : wrong(c, "%s: %s", what, n ? strerror(errno) : "the server closed the connection");
}

/* Returns the length of the next line without its CRLF; -1: no line came. */
static ssize_t next_line(struct client *c, const char *what)
{
	char *end;
	size_t searched = 0;

	while (!(end = memmem(c->text + c->used + searched, c->have - c->used - searched, "\r\n", 2))) {
		searched = c->have - c->used ? c->have - c->used - 1 : 0;
		if (!have_bytes(c, c->have - c->used + 1, what))
			return -1;
	}
	return end - (c->text + c->used);
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

/* The body that a request's reply must have: a text, or bytes by a key. */
struct expected {
	const char *what;
	const char *text;
	uint64_t key;
	size_t length;
};

static bool check_bytes(struct client *c, const struct expected *e, size_t from, size_t length)
{
	const char *got = c->text + c->used;
	size_t i;

	if (from + length > e->length)
		return wrong(c, "%s: more than the %zu bytes of the body", e->what, e->length);
	for (i = 0; i < length; i++)
		if (got[i] != (e->text ? e->text[from + i] : a6_byte(e->key, from + i)))
			return wrong(c, "%s: byte %zu of the body is wrong", e->what, from + i);
	c->used += length;
	return true;
}

static bool check_chunks(struct client *c, const struct expected *e)
{
	size_t at = 0, size;
	ssize_t line;

	do {
		line = next_line(c, e->what);
		if (line <= 0)
			return line ? false : wrong(c, "%s: a chunk without a size", e->what);
		size = strtoul(c->text + c->used, NULL, 16);
		c->used += (size_t)line + 2;
		if (!have_bytes(c, size + 2, e->what) || !check_bytes(c, e, at, size))
			return false;
		if (memcmp(c->text + c->used, "\r\n", 2))
			return wrong(c, "%s: a chunk without an end", e->what);
		c->used += 2;
		at += size;
	} while (size);
	return at == e->length ? true : wrong(c, "%s: %zu bytes of %zu", e->what, at, e->length);
}

struct head {
	long status, length;
	bool chunked;
};

static bool read_head(struct client *c, const char *what, struct head *h)
{
	const char *text;
	ssize_t line = next_line(c, what);

	if (line < 0)
		return false;
	text = c->text + c->used;
	if (line < 12 || memcmp(text, "HTTP/1.1 ", 9))
		return wrong(c, "%s: no status line: %.*s", what, (int)(line < 60 ? line : 60), text);
	*h = (struct head){strtol(text + 9, NULL, 10), -1, false};
	do {
		c->used += (size_t)line + 2;
		line = next_line(c, what);
		text = c->text + c->used;
		if (line > 15 && !strncasecmp(text, "Content-Length:", 15))
			h->length = strtol(text + 15, NULL, 10);
		if (line > 18 && !strncasecmp(text, "Transfer-Encoding:", 18))
			h->chunked = true;
	} while (line > 0);
	c->used += 2;
	return !line;
}

static bool check_reply(struct client *c, const struct expected *e)
{
	struct head h;

	if (!read_head(c, e->what, &h))
		return false;
	if (h.status != 200)
		return wrong(c, "%s: status %ld", e->what, h.status);
	if (h.chunked)
		return check_chunks(c, e);
	if (h.length != (long)e->length)
		return wrong(c, "%s: a length of %ld, not %zu", e->what, h.length, e->length);
	return have_bytes(c, e->length, e->what) && check_bytes(c, e, 0, e->length);
}

/* ---- requests of good and slow clients --------------------------------------------------------------------------- */

static __attribute__((format(printf, 2, 3))) bool ask(struct client *c, const char *format, ...)
{
	char text[400];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	length +=
	    snprintf(text + length, sizeof(text) - (size_t)length, " HTTP/1.1\r\nHost: a6\r\nAccept: */*\r\n\r\n");
	return send_all(c, text, (size_t)length);
}

static bool ask_small(struct client *c)
{
	struct expected e = {"/small", NULL, below(c, 1000000), A6_SMALL};
	int64_t began = lab_now(CLOCK_MONOTONIC), took;

	if (!ask(c, "GET /small/%" PRIu64, e.key) || !check_reply(c, &e))
		return false;
	took = (lab_now(CLOCK_MONOTONIC) - began) / 1000;
	if (c->kind == GOOD)
		c->latencies[took < LATEST ? took : LATEST]++;
	return true;
}

static bool ask_pipelined(struct client *c)
{
	static const char request[] = "GET /small/77 HTTP/1.1\r\nHost: a6\r\n\r\n";
	struct expected e = {"/small, pipelined", NULL, 77, A6_SMALL};
	char text[TOGETHER * sizeof(request)];
	unsigned i;

	for (i = 0; i < TOGETHER; i++)
		memcpy(text + i * (sizeof(request) - 1), request, sizeof(request) - 1);
	if (!send_all(c, text, TOGETHER * (sizeof(request) - 1)))
		return false;
	for (i = 0; i < TOGETHER; i++)
		if (!check_reply(c, &e))
			return false;
	c->requests += TOGETHER - 1;
	return true;
}

static bool send_chunks(struct client *c, const char *body, size_t length)
{
	char size[20];
	size_t at, part;

	for (at = 0; at < length; at += part) {
		part = 1 + below(c, length - at);
		snprintf(size, sizeof(size), "%zx\r\n", part);
		if (!send_all(c, size, strlen(size)) || !send_all(c, body + at, part) || !send_all(c, "\r\n", 2))
			return false;
	}
	return send_all(c, "0\r\n\r\n", 5);
}

static bool ask_echo(struct client *c)
{
	struct expected e = {"/echo", NULL, c->random, below(c, c->kind == SLOW ? 400 : BODY_MOST)};
	bool chunked = below(c, 2), well;
	char *body = malloc(e.length + 1), head[200], length[40];

	if (!body)
		lab_die("malloc");
	a6_fill(body, e.length, e.key, 0);
	snprintf(length, sizeof(length), "Content-Length: %zu", e.length);
	snprintf(head, sizeof(head), "POST /echo HTTP/1.1\r\nHost: a6\r\n%s\r\n\r\n",
		 chunked ? "Transfer-Encoding: chunked" : length);
	well = send_all(c, head, strlen(head)) &&
	       (chunked ? send_chunks(c, body, e.length) : send_all(c, body, e.length)) && check_reply(c, &e);
	free(body);
	return well;
}

static bool ask_stream(struct client *c)
{
	struct expected e = {"/stream", NULL, below(c, 1000000), below(c, c->kind == SLOW ? 1000 : 100000)};

	return ask(c, "GET /stream/%zu/%" PRIu64, e.length, e.key) && check_reply(c, &e);
}

static bool ask_events(struct client *c)
{
	char text[400] = "";
	struct expected e = {"/events", text, 0, 0};
	unsigned i, count = 1 + (unsigned)below(c, 4);

	for (i = 0; i < count; i++)
		e.length += (size_t)sprintf(text + e.length, "event: tick\ndata: %u\n\n", i);
	return ask(c, "GET /events/%u", count) && check_reply(c, &e);
}

static bool ask_file(struct client *c)
{
	struct expected e = {"/files/data", NULL, 0, A6_FILE};

	return ask(c, "GET /files/data") && check_reply(c, &e);
}

static bool ask_tasks(struct client *c)
{
	uint64_t key = below(c, 1000000), count = 1 + below(c, 32);
	char text[100];
	struct expected e = {"/tasks", text, 0, 0};

	e.length = (size_t)sprintf(text, "%" PRIu64 " %" PRIu64 " 0",
				   A6_ROUNDS * (key + count) + A6_ROUNDS * (A6_ROUNDS - 1) / 2, A6_ROUNDS * count);
	return ask(c, "GET /tasks/%" PRIu64 "/%" PRIu64, count, key) && check_reply(c, &e);
}

static bool ask_coroutines(struct client *c)
{
	uint64_t yields = A6_YIELDS_SEEN + below(c, 5), whole = A6_STEP * yields * (yields + 1) / 2,
		 part = A6_STEP * A6_YIELDS_SEEN * (A6_YIELDS_SEEN + 1) / 2;
	char text[100];
	struct expected e = {"/coroutines", text, 0, 0};

	e.length = (size_t)sprintf(text, "%" PRIu64, A6_COROUTINES / 2 * (whole + part));
	return ask(c, "GET /coroutines/%" PRIu64, A6_STEP * yields) && check_reply(c, &e);
}

static bool ask_blocking(struct client *c)
{
	struct expected e = {"/blocking", "done", 0, 4};

	return ask(c, "GET /blocking") && check_reply(c, &e);
}

static bool ask_something(struct client *c)
{
	uint64_t chosen = below(c, 100);

	if (chosen < 50)
		return ask_small(c);
	if (chosen < 58)
		return ask_echo(c);
	if (chosen < 64)
		return ask_stream(c);
	if (chosen < 68)
		return ask_events(c);
	if (chosen < 70)
		return c->kind == SLOW ? ask_small(c) : ask_file(c);
	if (chosen < 80)
		return ask_tasks(c);
	if (chosen < 88)
		return ask_coroutines(c);
	if (chosen < 92)
		return ask_blocking(c);
	return ask_pipelined(c);
}

static void visit(struct client *c)
{
	uint64_t left = 1 + below(c, c->kind == SLOW ? 3 : REQUESTS_MOST);

	if (!dial(c))
		return;
	while (left-- && ask_something(c))
		c->requests++;
	hang_up(c, below(c, 4));
}

/* ---- hostile clients --------------------------------------------------------------------------------------------- */

/* Sends text that the server may refuse, so the result does not matter. */
static void throw_at(struct client *c, const char *text)
{
	(void)send_all(c, text, strlen(text));
}

static void be_silent(struct client *c)
{
	rest((int64_t)below(c, SILENCE * 1000));
}

/* Reads until the server closes the connection. A reset is also accepted: the server may not have read everything. */
static void read_all(struct client *c)
{
	int n;

	while ((n = receive(c)) > 0)
		c->used = c->have;
	if (n < 0 && errno == EAGAIN)
		wrong(c, "the server does not close a connection that is to end");
}

static void send_garbage(struct client *c)
{
	char text[3000];
	size_t i, length = 1 + below(c, sizeof(text));

	for (i = 0; i < length; i++)
		text[i] = (char)below(c, 256);
	(void)send_all(c, text, length);
	if (below(c, 2))
		read_all(c);
}

/* Expects the text of a refusal, or a reset because the server has not read everything. */
static void be_refused(struct client *c, long status, const char *what)
{
	struct head h;
	int n = receive(c);

	if (n <= 0) {
		if (!n || errno != ECONNRESET)
			wrong(c, "%s: no refusal: %s", what, n ? strerror(errno) : "the end");
		return;
	}
	if (read_head(c, what, &h) && h.status != status)
		wrong(c, "%s: status %ld, not %ld", what, h.status, status);
}

static void send_large_head(struct client *c)
{
	char field[1024];

	memset(field, 'x', sizeof(field));
	memcpy(field, "Large: ", 7);
	memcpy(field + sizeof(field) - 2, "\r\n", 2);
	throw_at(c, "GET /small/1 HTTP/1.1\r\nHost: a6\r\n");
	for (unsigned i = 0; i < 30; i++)
		if (!send_all(c, field, sizeof(field)))
			break;
	be_refused(c, 431, "a head that is too large");
}

static void send_bad_chunk(struct client *c)
{
	throw_at(c, "POST /echo HTTP/1.1\r\nHost: a6\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
	be_refused(c, 400, "a malformed chunk");
}

static void send_large_body(struct client *c)
{
	throw_at(c, "POST /echo HTTP/1.1\r\nHost: a6\r\nContent-Length: 99999999\r\n\r\n");
	be_refused(c, 413, "a body that is too large");
}

static void half_close(struct client *c)
{
	throw_at(c, below(c, 2) ? "GET /small/1 HTTP/1.1\r\nHo"
				: "POST /echo HTTP/1.1\r\nHost: a6\r\nContent-Length: 9\r\n\r\n12");
	shutdown(c->fd, SHUT_WR);
	read_all(c);
}

static void never_read(struct client *c)
{
	for (unsigned i = 0; i < 20; i++)
		throw_at(c, "GET /files/data HTTP/1.1\r\nHost: a6\r\n\r\n");
	be_silent(c);
}

static void leave_early(struct client *c)
{
	throw_at(c, below(c, 2) ? "GET /tasks/30/1 HTTP/1.1\r\nHost: a6\r\n\r\n"
				: "GET /events/50 HTTP/1.1\r\nHost: a6\r\n\r\n");
	rest((int64_t)below(c, 2000));
}

static void stall(struct client *c)
{
	throw_at(c, below(c, 2) ? "GET /small/1 HTTP/1.1\r\nHost:"
				: "POST /echo HTTP/1.1\r\nHost: a6\r\nContent-Length: 9\r\n\r\n");
	if (below(c, 8))
		be_silent(c);
	else
		read_all(c); /* the server's time-out comes first */
}

static void make_fail(struct client *c)
{
	throw_at(c, "GET /fails HTTP/1.1\r\nHost: a6\r\n\r\n");
	if (receive(c) > 0)
		wrong(c, "/fails: a reply");
}

static void do_nothing(struct client *c)
{
	if (below(c, 2))
		be_silent(c);
}

static void misbehave(struct client *c)
{
	static void (*const ways[])(struct client *) = {send_garbage, send_large_head, send_bad_chunk, send_large_body,
							half_close,   never_read,      leave_early,    stall,
							make_fail,    do_nothing};

	if (!dial(c))
		return;
	ways[below(c, sizeof(ways) / sizeof(*ways))](c);
	hang_up(c, below(c, 2));
	rest(2000); /* so that hostile clients are not more frequent than the other clients */
}

/* ---- the turn ---------------------------------------------------------------------------------------------------- */

static void *run_client(void *client)
{
	struct client *c = client;

	while (lab_now(CLOCK_MONOTONIC) < ends) {
		(c->kind == HOSTILE ? misbehave : visit)(c);
		c->visits++;
	}
	return NULL;
}

static void start_client(struct client *c, enum kind kind, uint64_t random)
{
	*c = (struct client){.kind = kind, .random = random, .text = malloc(ROOM)};
	c->latencies = kind == GOOD ? calloc(LATEST + 1, sizeof(*c->latencies)) : NULL;
	if (!c->text || (kind == GOOD && !c->latencies))
		lab_die("malloc");
	errno = pthread_create(&c->thread, NULL, run_client, c);
	if (errno)
		lab_die("pthread_create");
}

/* The time in seconds within which all small requests except one in `share` were answered. */
static double quantile(const uint64_t *times, uint64_t all, uint64_t share)
{
	uint64_t seen = 0;
	int64_t i = 0;

	while (i < LATEST && (seen += times[i]) < all - all / share)
		i++;
	return (double)i * 1e-6;
}

static void report(const struct client *all, int64_t count)
{
	static uint64_t times[LATEST + 1];
	int64_t i, t, requests[KINDS] = {0}, visits[KINDS] = {0}, wrongs = 0;
	uint64_t timed = 0;

	for (i = 0; i < count; i++) {
		requests[all[i].kind] += all[i].requests;
		visits[all[i].kind] += all[i].visits;
		wrongs += all[i].wrong;
		for (t = 0; all[i].latencies && t <= LATEST; t++) {
			times[t] += all[i].latencies[t];
			timed += all[i].latencies[t];
		}
	}
	for (i = 0; why[i]; i++)
		if (why[i] == '"' || why[i] == '\\' || (unsigned char)why[i] < ' ' || (unsigned char)why[i] > '~')
			why[i] = '?';
	printf("{\"good\": %" PRId64 ", \"slow\": %" PRId64 ", \"hostile\": %" PRId64 ", \"connections\": %" PRId64
	       ", \"wrong\": %" PRId64 ", \"p50\": %.6f, \"p99\": %.6f, \"why\": \"%s\"}\n",
	       requests[GOOD], requests[SLOW], visits[HOSTILE], visits[GOOD] + visits[SLOW] + visits[HOSTILE], wrongs,
	       quantile(times, timed, 2), quantile(times, timed, 100), why);
}

int main(int argc, char **argv)
{
	static const char *const names[KINDS] = {"good", "slow", "hostile"};
	struct client *all = calloc(CLIENTS_MOST, sizeof(*all));
	int64_t i, kind, count = 0, seed = lab_number(argc, argv, "seed", 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	port = (int)lab_number(argc, argv, "port", 0);
	ends = lab_now(CLOCK_MONOTONIC) + lab_number(argc, argv, "ms", 1000) * 1000000;
	if (!all)
		lab_die("calloc");
	for (kind = 0; kind < KINDS; kind++)
		for (i = lab_number(argc, argv, names[kind], 4); i > 0 && count < CLIENTS_MOST; i--, count++)
			start_client(&all[count], (enum kind)kind, (uint64_t)(seed * CLIENTS_MOST + count) * 7919);
	for (i = 0; i < count; i++)
		if (all[i].kind != HOSTILE)
			pthread_join(all[i].thread, NULL);
	rest((ends - lab_now(CLOCK_MONOTONIC)) / 1000);
	report(all, count);
	return 0;
}
