/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random requests, first by HTTP/2, whose client is nghttp2 in blocking threads, and then by HTTP/1.1: both must get
 * the same answers, which the test computes itself.
 *
 *   versions [SEED [CONNECTIONS]]
 *
 * Methods, bodies in both directions, sizes of pieces, windows, trailers, and streams that the client resets are
 * random. The body of a response is the request's body with each byte XORed, after a line that reports the head that
 * the handler saw.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <llhttp.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <weft/http.h>

enum { THREADS = 4, STREAMS = 24, BODY_MOST = 150000, KEY = 0x5a, PIECE = 20000 };

static struct {
	unsigned port, connections;
	uint64_t seed;
	_Atomic unsigned next, exchanges, resets;
} run;

/* ---- the server -------------------------------------------------------------------------------------------------- */

static unsigned number_of(weft_http_t *http, const char *name)
{
	weft_http_text_t text = weft_http_header(http, name);
	char copy[16] = "";

	memcpy(copy, text.data ? text.data : "", text.length < 15 ? text.length : 15);
	return (unsigned)atoi(copy);
}

/* Reads and writes pieces of the sizes that the request names. */
static void mix(weft_http_t *http, void *context)
{
	unsigned reads = number_of(http, "x-read"), writes = number_of(http, "x-write");
	weft_http_text_t query = weft_http_query(http), rest = weft_http_param(http, "rest"), sum;
	unsigned char data[PIECE];
	ssize_t n, at, part;

	(void)context;
	weft_http_set_status(http, (int)number_of(http, "x-status"));
	weft_http_add_header(http, "X-Answer", weft_http_method(http));
	weft_http_printf(http, "%s %.*s %.*s\n", weft_http_method(http), (int)rest.length, rest.data, (int)query.length,
			 query.data);
	while ((n = weft_http_read(http, data, reads)) > 0) {
		for (at = 0; at < n; at++)
			data[at] ^= KEY;
		for (at = 0; at < n; at += part) {
			part = n - at < (ssize_t)writes ? n - at : (ssize_t)writes;
			if (weft_http_write(http, data + at, (size_t)part) != part)
				return;
		}
	}
	if (n)
		return;
	sum = weft_http_trailer(http, "x-sum");
	weft_http_printf(http, "%.*s\n", (int)sum.length, sum.data);
	if (number_of(http, "x-trailer"))
		weft_http_add_trailer(http, "X-End", "yes");
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

struct request {
	const char *method;
	char path[80], reads[8], writes[8], status[8], length[16];
	bool has_trailer, wants_trailer, has_length, is_reset;
	size_t reset_at; /* bytes of the request's or response's body */
	unsigned char *body;
	size_t body_length, sent;

	char *expected; /* the expected body of the response */
	size_t expected_length;

	/* The received response. */
	int got_status;
	bool closed, got_answer, got_trailer;
	uint32_t error;
	char *got;
	size_t got_length;
};

static size_t draw_size(uint64_t *state, size_t most)
{
	switch (draw(state, 4)) {
	case 0:
		return 0;
	case 1:
		return draw(state, 10);
	case 2:
		return draw(state, 5000 < most ? 5000 : most);
	default:
		return draw(state, most);
	}
}

static bool sends_no_body(const struct request *r)
{
	return !strcmp(r->method, "HEAD") || !strcmp(r->status, "204") || !strcmp(r->status, "304");
}

static void expect(struct request *r, const char *rest)
{
	size_t head, i;

	r->expected = malloc(r->body_length + 300);
	CHECK(r->expected);
	head = (size_t)sprintf(r->expected, "%s %s q=1\n", r->method, rest);
	for (i = 0; i < r->body_length; i++)
		r->expected[head + i] = (char)(r->body[i] ^ KEY);
	r->expected_length = head + i;
	r->expected_length += (size_t)sprintf(r->expected + head + i, "%s\n", r->has_trailer ? "abc" : "");
	if (sends_no_body(r))
		r->expected_length = 0;
}

static void make_request(struct request *r, uint64_t *state)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"};
	static const int statuses[] = {200, 200, 201, 204, 304, 404, 500};
	char rest[40];
	size_t i;

	memset(r, 0, sizeof *r);
	r->method = methods[draw(state, 6)];
	snprintf(rest, sizeof rest, "%llx", (unsigned long long)*state);
	snprintf(r->path, sizeof r->path, "/mix/%s?q=1", rest);
	snprintf(r->reads, sizeof r->reads, "%u", 1 + (unsigned)draw(state, draw(state, 2) ? 100 : PIECE));
	snprintf(r->writes, sizeof r->writes, "%u", 1 + (unsigned)draw(state, draw(state, 2) ? 100 : PIECE));
	snprintf(r->status, sizeof r->status, "%d", statuses[draw(state, 7)]);
	r->body_length = draw_size(state, BODY_MOST);
	snprintf(r->length, sizeof r->length, "%zu", r->body_length);
	r->has_length = draw(state, 2);
	r->has_trailer = !r->has_length && draw(state, 3) == 0;
	r->wants_trailer = draw(state, 3) == 0;
	r->is_reset = draw(state, 6) == 0;
	r->reset_at = draw(state, 5000);
	r->body = malloc(r->body_length + 1);
	CHECK(r->body);
	for (i = 0; i < r->body_length; i++)
		r->body[i] = (unsigned char)draw(state, 256);
	expect(r, rest);
}

static void free_request(struct request *r)
{
	free(r->body);
	free(r->expected);
	free(r->got);
}

static void add_got(struct request *r, const void *data, size_t length)
{
	r->got = realloc(r->got, r->got_length + length + 1);
	CHECK(r->got);
	memcpy(r->got + r->got_length, data, length);
	r->got_length += length;
}

static bool is_right(const struct request *r, const char *version)
{
	bool trailer = r->wants_trailer && !sends_no_body(r);
	const char *why = r->got_status != atoi(r->status)	? "status"
			  : !r->got_answer			? "field"
			  : r->got_length != r->expected_length ? "length"
			  : memcmp(r->got ? r->got : "", r->expected, r->got_length) ? "body"
			  : r->got_trailer != trailer ? "trailer"
						      : NULL;

	if (why)
		printf("not ok - %s %s of %zu bytes by %s: %s; status %d, %zu of %zu bytes, error %u\n", r->method,
		       r->path, r->body_length, version, why, r->got_status, r->got_length, r->expected_length,
		       r->error);
	return !why;
}

static int dial(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)run.port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to));
	return fd;
}

/* ---- HTTP/2 ------------------------------------------------------------------------------------------------------ */

struct client {
	int fd;
	uint64_t state;
	nghttp2_session *session;
	struct request requests[STREAMS];
	unsigned count, started, closed;
};

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0};
}

static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t length, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct client *c = user;
	struct request *r = source->ptr;
	size_t n = 1 + draw(&c->state, length);

	if (n > r->body_length - r->sent)
		n = r->body_length - r->sent;
	memcpy(to, r->body + r->sent, n);
	r->sent += n;
	if (r->is_reset && r->sent > r->reset_at)
		nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_CANCEL);
	if (r->sent == r->body_length) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (r->has_trailer) {
			nghttp2_nv sum = nv("x-sum", "abc");

			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			CHECK(!nghttp2_submit_trailer(session, id, &sum, 1));
		}
	}
	return (ssize_t)n;
}

static void start_request(struct client *c)
{
	struct request *r = &c->requests[c->started++];
	nghttp2_data_provider body = {{.ptr = r}, give_body};
	nghttp2_nv fields[12] = {nv(":method", r->method), nv(":scheme", "http"),  nv(":path", r->path),
				 nv(":authority", "h"),	   nv("x-read", r->reads), nv("x-write", r->writes),
				 nv("x-status", r->status)};
	size_t n = 7;
	bool has_body = r->body_length || r->has_trailer || draw(&c->state, 2);

	if (r->wants_trailer)
		fields[n++] = nv("x-trailer", "1");
	if (r->has_length)
		fields[n++] = nv("content-length", r->length);
	CHECK(nghttp2_submit_request(c->session, NULL, fields, n, has_body ? &body : NULL, r) > 0);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t length,
		     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
	struct request *r = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (length == 7 && !memcmp(name, ":status", 7))
		r->got_status = atoi((const char *)value);
	r->got_answer |= length == 8 && !memcmp(name, "x-answer", 8) && value_length == strlen(r->method);
	r->got_trailer |= length == 5 && !memcmp(name, "x-end", 5);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
	struct request *r = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	add_got(r, data, length);
	if (r->is_reset && r->got_length >= r->reset_at)
		nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_CANCEL);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct client *c = user;
	struct request *r = nghttp2_session_get_stream_user_data(session, id);

	r->closed = true;
	r->error = error;
	c->closed++;
	return 0;
}

static void open_session(struct client *c)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};

	window.value = 500 + (uint32_t)draw(&c->state, draw(&c->state, 2) ? 5000 : 1 << 20);
	CHECK(!nghttp2_session_callbacks_new(&callbacks));
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	CHECK(!nghttp2_session_client_new(&c->session, callbacks, c));
	nghttp2_session_callbacks_del(callbacks);
	CHECK(!nghttp2_submit_settings(c->session, 0, &window, 1));
}

static void send_all(int fd, const void *data, size_t length)
{
	const char *at = data;
	ssize_t n;

	for (; length; at += n, length -= (size_t)n) {
		n = send(fd, at, length, MSG_NOSIGNAL);
		CHECK(n > 0);
	}
}

static void exchange(struct client *c)
{
	const uint8_t *out;
	uint8_t in[16384];
	ssize_t n;

	while ((n = nghttp2_session_mem_send(c->session, &out)) > 0)
		send_all(c->fd, out, (size_t)n);
	CHECK(n == 0);
	if (c->closed == c->started) /* sending a reset closes the stream, and the server has nothing more to send */
		return;
	n = recv(c->fd, in, 1 + draw(&c->state, sizeof in), 0);
	if (n <= 0)
		printf("not ok - the connection has ended: %u of %u streams\n", c->closed, c->count);
	CHECK(n > 0);
	CHECK(nghttp2_session_mem_recv(c->session, in, (size_t)n) == n);
}

static void run_http2(struct client *c)
{
	open_session(c);
	c->fd = dial();
	while (c->closed < c->count) {
		while (c->started < c->count && (draw(&c->state, 3) || c->closed == c->started))
			start_request(c);
		exchange(c);
	}
	close(c->fd);
	nghttp2_session_del(c->session);
}

/* ---- HTTP/1.1 ---------------------------------------------------------------------------------------------------- */

struct old {
	llhttp_t parser; /* must be the first member */
	struct request *r;
	bool in_trailer, done;
};

static int on_old_field(llhttp_t *parser, const char *at, size_t length)
{
	struct old *o = (struct old *)parser;

	o->r->got_answer |= length == 8 && !strncasecmp(at, "x-answer", 8);
	o->r->got_trailer |= length == 5 && !strncasecmp(at, "x-end", 5);
	return 0;
}

static int on_old_head(llhttp_t *parser)
{
	return !strcmp(((struct old *)parser)->r->method, "HEAD");
}

static int on_old_body(llhttp_t *parser, const char *at, size_t length)
{
	add_got(((struct old *)parser)->r, at, length);
	return 0;
}

static int on_old_end(llhttp_t *parser)
{
	((struct old *)parser)->done = true;
	return 0;
}

static char *old_request(const struct request *r, size_t *length)
{
	char *text = malloc(r->body_length + 600);
	int n;

	CHECK(text);
	n = sprintf(text, "%s %s HTTP/1.1\r\nHost: h\r\nX-Read: %s\r\nX-Write: %s\r\nX-Status: %s\r\n%s", r->method,
		    r->path, r->reads, r->writes, r->status, r->wants_trailer ? "X-Trailer: 1\r\n" : "");
	if (r->has_length)
		n += sprintf(text + n, "Content-Length: %zu\r\n\r\n", r->body_length);
	else
		n += sprintf(text + n, "Transfer-Encoding: chunked\r\n\r\n");
	if (!r->has_length && r->body_length)
		n += sprintf(text + n, "%zx\r\n", r->body_length);
	memcpy(text + n, r->body, r->body_length);
	n += (int)r->body_length;
	if (!r->has_length)
		n += sprintf(text + n, "%s0\r\n%s\r\n", r->body_length ? "\r\n" : "",
			     r->has_trailer ? "X-Sum: abc\r\n" : "");
	*length = (size_t)n;
	return text;
}

static void run_http1(int fd, struct request *r)
{
	static const llhttp_settings_t settings = {.on_header_field = on_old_field,
						   .on_headers_complete = on_old_head,
						   .on_body = on_old_body,
						   .on_message_complete = on_old_end};
	struct old o = {.r = r};
	size_t length, sent = 0;
	char *text = old_request(r, &length), in[16384];
	ssize_t n;

	llhttp_init(&o.parser, HTTP_RESPONSE, &settings);
	while (!o.done) {
		struct pollfd p = {fd, (short)(POLLIN | (sent < length ? POLLOUT : 0)), 0};

		CHECK(poll(&p, 1, 10000) == 1);
		if (p.revents & POLLOUT) {
			n = send(fd, text + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
			sent += n > 0 ? (size_t)n : 0;
		}
		if (!(p.revents & ~POLLOUT))
			continue;
		n = recv(fd, in, sizeof in, 0);
		CHECK(n > 0);
		CHECK(llhttp_execute(&o.parser, in, (size_t)n) == HPE_OK);
	}
	r->got_status = o.parser.status_code;
	free(text);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static bool run_connection(unsigned number)
{
	struct client *c = calloc(1, sizeof *c);
	bool ok = true;
	unsigned i;
	int fd;

	CHECK(c);
	c->state = (run.seed + number) * 0x9e3779b97f4a7c15ull + 1;
	c->count = 1 + (unsigned)draw(&c->state, STREAMS);
	for (i = 0; i < c->count; i++)
		make_request(&c->requests[i], &c->state);
	run_http2(c);
	fd = dial();
	for (i = 0; i < c->count; i++) {
		struct request *r = &c->requests[i];

		atomic_fetch_add(&run.resets, r->error == NGHTTP2_CANCEL);
		ok &= r->error == NGHTTP2_CANCEL ? r->is_reset : is_right(r, "HTTP/2");
		r->got_status = 0;
		r->got_length = 0;
		r->got_answer = r->got_trailer = false;
		run_http1(fd, r);
		ok &= is_right(r, "HTTP/1.1");
		free_request(r);
		atomic_fetch_add(&run.exchanges, 2);
	}
	close(fd);
	free(c);
	return ok;
}

static void *client(void *ok)
{
	unsigned number;

	while ((number = atomic_fetch_add(&run.next, 1)) < run.connections)
		if (!run_connection(number)) {
			printf("not ok - seed %llu\n", (unsigned long long)run.seed + number);
			atomic_store((_Atomic bool *)ok, false);
		}
	return NULL;
}

static void run_clients(_Atomic bool *ok)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, client, ok));
	weft_blocking
	{
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
}

static void *serve_clients(void *pass)
{
	static _Atomic bool ok = true;
	struct served s = {0};
	weft_http_stats_t stats;
	weft_scope_t scope;

	CHECK(!weft_http_open(&s.server, NULL));
	CHECK(!weft_http_route(s.server, "* /mix/*rest", mix, NULL));
	s.listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s.listener >= 0);
	run.port = (unsigned)weft_port(s.listener);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serves, &s));
	run_clients(&ok);
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND));
	CHECK(!weft_scope_wait(&scope));
	weft_http_stats(s.server, &stats);
	CHECK(stats.connections == 0);
	weft_http_close(s.server);
	CHECK(!weft_close(s.listener));
	return atomic_load(&ok) ? pass : NULL;
}

int main(int argc, char **argv)
{
	void *result = NULL;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	run.connections = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
	CHECK(!weft_rt_run(NULL, serve_clients, &run, &result));
	if (result && !atomic_load(&run.resets))
		printf("not ok - no stream was reset\n");
	else if (result)
		printf("ok - %u exchanges, %u resets\n", atomic_load(&run.exchanges), atomic_load(&run.resets));
	return !result;
}
