/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/2 frames that a client may send or must not send, and the answers of RFC 9113: see frames.h.
 *
 *   frames                      all cases over real sockets, by the back end that WEFT_IO names
 *   frames simulated [F+]SEEDS  all cases in so many simulated worlds
 *
 * FRAMES_ONLY=TEXT in the environment runs only the cases whose names contain the text. Each case is sent by one write,
 * and, if it is short, byte by byte on another connection. nghttp2 decodes the fields of responses.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <weft/http.h>

#include "frame_bytes.h"
#include "frames.h"
#include "seeds.h"

enum {
	CLIENTS = 8,
	SHORT = 300,
	HEAD = 9,
	STREAMS = 128,
	EVENTS = 4000,
	PROBE = 1000001,
	CASES = sizeof frames_cases / sizeof *frames_cases
};

static struct {
	bool simulated, hasty;
	uint64_t factor;
	unsigned port;
	const char *only;
	_Atomic unsigned next, failures, resets, gone;
} run;

/* ---- the server's handlers --------------------------------------------------------------------------------------- */

static bool read_body(weft_http_t *http, bool echoes, size_t *sum)
{
	char data[3000];
	ssize_t n;

	for (*sum = 0; (n = weft_http_read(http, data, sizeof data)) > 0; *sum += (size_t)n)
		if (echoes && weft_http_write(http, data, (size_t)n) != n)
			return false;
	atomic_fetch_add(&run.resets, n == -ECONNRESET);
	return !n;
}

static void echo_body(weft_http_t *http, void *context)
{
	size_t sum;

	(void)context;
	read_body(http, true, &sum);
}

static void body_length(weft_http_t *http, void *context)
{
	size_t sum;

	(void)context;
	if (read_body(http, false, &sum))
		weft_http_printf(http, "%zu", sum);
}

static void trailer(weft_http_t *http, void *context)
{
	weft_http_text_t text;
	size_t sum;

	(void)context;
	if (!read_body(http, false, &sum))
		return;
	text = weft_http_trailer(http, "X-Sum");
	weft_http_reply(http, 200, NULL, text.data, text.length);
}

static void big(weft_http_t *http, void *context)
{
	char data[1000];

	(void)context;
	memset(data, 'b', sizeof data);
	for (int i = 0; i < 200; i++)
		if (weft_http_write(http, data, sizeof data) != sizeof data)
			return;
}

static void cookie(weft_http_t *http, void *context)
{
	weft_http_text_t text = weft_http_header(http, "Cookie");

	(void)context;
	weft_http_reply(http, 200, NULL, text.data, text.length);
}

static void slow(weft_http_t *http, void *context)
{
	(void)context;
	weft_sleep(50 * MS);
	weft_http_reply(http, 200, NULL, "slow\n", 5);
}

/* Sleeps longer than a loaded machine needs to deliver the frames that are sent meanwhile. */
static void hold(weft_http_t *http, void *context)
{
	(void)http;
	(void)context;
	weft_sleep(2000 * MS);
}

static void early(weft_http_t *http, void *context)
{
	weft_http_add_header(http, "Link", "</style.css>; rel=preload");
	weft_http_inform(http, 103);
	hello(http, context);
}

static void ignore(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, NULL, "ignored\n", 8);
}

static void nothing(weft_http_t *http, void *context)
{
	(void)http;
	(void)context;
}

static void add_routes(weft_http_server_t *server)
{
	static const struct {
		const char *pattern;
		weft_http_handler_t *handler;
	} routes[] = {
	    {"GET /hello", hello},	  {"POST /echo", echo_body}, {"POST /length", body_length},
	    {"POST /trailer", trailer},	  {"GET /big", big},	     {"GET /cookie", cookie},
	    {"GET /slow", slow},	  {"GET /early", early},     {"GET /hold", hold},
	    {"POST /ignore", ignore},	  {"GET /nothing", nothing}, {"GET /sum", with_trailer},
	    {"GET /fail", ends_its_task},
	};

	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		CHECK(!weft_http_route(server, routes[i].pattern, routes[i].handler, NULL));
	CHECK(!weft_http_route(server, "GET /others", waits_for_others, &run.gone));
	CHECK(!weft_http_route(server, "GET /stays", is_waited_for, NULL));
}

/* ---- scripts ----------------------------------------------------------------------------------------------------- */

struct client {
	const struct frames_case *test;
	int fd;
	bool by_bytes;
	struct bytes out; /* bytes to send */
	unsigned count;	  /* the iteration of the repeated command */
	uint64_t deadline;

	unsigned char *in;
	size_t filled, capacity;
	nghttp2_hd_inflater *inflater;
	struct {
		int32_t id;
		int status;
		size_t length;
	} streams[STREAMS];
	char *events[EVENTS];
	unsigned events_count;
	bool settled, ended, ponged, probed;
	char problem[200];
};

static void send_out(struct client *c)
{
	size_t step = c->by_bytes ? 1 : c->out.length, at;

	for (at = 0; at < c->out.length; at += step)
		if (weft_write_all_until(c->fd, c->out.data + at, step, c->deadline) != (ssize_t)step)
			break; /* the server has closed the connection */
	c->out.length = 0;
}

static uint32_t number(const struct client *c, const char *word)
{
	CHECK(word);
	return *word == '$' ? 2 * c->count + 1 : (uint32_t)strtoul(word, NULL, 10);
}

static unsigned flags_of(const char *word)
{
	return (strchr(word, 'e') ? 1u : 0) | (strchr(word, 'h') ? 4u : 0);
}

static void add_headers(struct client *c, unsigned type, uint32_t id, unsigned flags, char **rest)
{
	struct bytes payload = {0};
	char *word;

	while ((word = strtok_r(NULL, " ", rest)))
		add_field(&payload, word);
	add_frame(&c->out, type, flags, id, &payload);
	free(payload.data);
}

static void add_request(struct client *c, const char *method, uint32_t id, const char *path, unsigned flags)
{
	char *text, *rest = NULL;

	CHECK(asprintf(&text, "- :method=%s :scheme=http :path=%s :authority=h", method, path) > 0);
	strtok_r(text, " ", &rest);
	add_headers(c, 1, id, flags, &rest);
	free(text);
}

static void add_numbers(struct client *c, unsigned type, uint32_t id, uint64_t value, int bytes)
{
	struct bytes payload = {0};

	add_number(&payload, value, bytes);
	add_frame(&c->out, type, 0, id, &payload);
	free(payload.data);
}

static void add_data(struct client *c, uint32_t id, unsigned flags, size_t length)
{
	struct bytes payload = {calloc(1, length + 1), length, length};

	add_frame(&c->out, 0, flags, id, &payload);
	free(payload.data);
}

static void add_any(struct client *c, char **rest)
{
	unsigned type = (unsigned)strtoul(strtok_r(NULL, " ", rest), NULL, 16);
	unsigned flags = (unsigned)strtoul(strtok_r(NULL, " ", rest), NULL, 16);
	uint32_t id = number(c, strtok_r(NULL, " ", rest));
	const char *hex = strtok_r(NULL, " ", rest);
	struct bytes payload = {0};

	if (*hex != '-')
		add_hex(&payload, hex);
	add_frame(&c->out, type, flags, id, &payload);
	free(payload.data);
}

/* Executes a command whose first word is `word`. */
static void command(struct client *c, const char *word, char **rest)
{
#define WORD() strtok_r(NULL, " ", rest)
#define IS(name) (!strcmp(word, name))
	uint32_t id;
	const char *next;

	if (IS("h") || IS("c")) {
		id = number(c, WORD());
		next = WORD();
		add_headers(c, IS("h") ? 1 : 9, id, flags_of(next), rest);
	} else if (IS("get") || IS("post")) {
		id = number(c, WORD());
		add_request(c, IS("get") ? "GET" : "POST", id, WORD(), IS("get") ? 5 : 4);
	} else if (IS("reset")) {
		id = number(c, WORD());
		add_request(c, "GET", id, "/slow", 5);
		add_numbers(c, 3, id, 8, 4);
	} else if (IS("d")) {
		id = number(c, WORD());
		next = WORD();
		add_data(c, id, flags_of(next), number(c, WORD()));
	} else if (IS("f")) {
		add_any(c, rest);
	} else if (IS("raw")) {
		add_hex(&c->out, WORD());
	} else if (IS("set")) {
		id = number(c, WORD());
		add_numbers(c, 4, 0, (uint64_t)id << 32 | number(c, WORD()), 6);
	} else if (IS("win") || IS("rst")) {
		id = number(c, WORD());
		add_numbers(c, IS("win") ? 8 : 3, id, number(c, WORD()), 4);
	} else if (IS("ping")) {
		add_numbers(c, 6, 0, 1, 8);
	} else if (IS("sleep")) {
		send_out(c);
		weft_sleep(number(c, WORD()) * MS * run.factor);
	} else if (IS("half")) {
		send_out(c);
		weft_shutdown(c->fd, SHUT_WR);
	} else {
		CHECK(!"a command");
	}
#undef IS
#undef WORD
}

static void repeat(struct client *c, const char *text, unsigned times)
{
	char *copy, *word, *rest;

	for (c->count = 0; c->count < times; c->count++) {
		copy = strdup(text);
		CHECK(copy);
		word = strtok_r(copy, " ", &rest);
		command(c, word, &rest);
		free(copy);
	}
}

static void play(struct client *c)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	char *script = expand(c->test->sends), *part, *rest;
	unsigned times;
	int n;

	if (strncmp(script, "bare", 4) != 0) {
		add(&c->out, preface, sizeof preface - 1);
		add_frame(&c->out, 4, 0, 0, NULL);
	}
	for (part = strtok_r(script, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
		while (*part == ' ')
			part++;
		if (!strcmp(part, "bare"))
			continue;
		if (sscanf(part, "x %u %n", &times, &n) == 1)
			repeat(c, part + n, times);
		else
			repeat(c, part, 1);
	}
	send_out(c);
	free(script);
}

/* ---- frames that are received ------------------------------------------------------------------------------------ */

static bool fails(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fails(struct client *c, const char *format, ...)
{
	va_list arguments;

	if (!*c->problem) {
		va_start(arguments, format);
		vsnprintf(c->problem, sizeof c->problem, format, arguments);
		va_end(arguments);
	}
	return false;
}

static void note(struct client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct client *c, const char *format, ...)
{
	va_list arguments;

	if (c->events_count == EVENTS)
		return;
	va_start(arguments, format);
	CHECK(vasprintf(&c->events[c->events_count++], format, arguments) >= 0);
	va_end(arguments);
}

static int stream_index(struct client *c, int32_t id)
{
	for (int i = 0; i < STREAMS; i++)
		if (c->streams[i].id == id || !c->streams[i].id) {
			c->streams[i].id = id;
			return i;
		}
	return 0;
}

/* @return the status; 0: the fields have none; -1: the fields are wrong */
static int inflate(struct client *c, const unsigned char *data, size_t length)
{
	int status = 0, flags = 0;
	nghttp2_nv field;
	ssize_t n;

	do {
		n = nghttp2_hd_inflate_hd2(c->inflater, &field, &flags, data, length, 1);
		if (n < 0)
			return -1;
		data += n;
		length -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT && field.namelen == 7 && !memcmp(field.name, ":status", 7))
			status = atoi((const char *)field.value);
	} while (!(flags & NGHTTP2_HD_INFLATE_FINAL));
	nghttp2_hd_inflate_end_headers(c->inflater);
	return status;
}

static void end_stream(struct client *c, int i)
{
	if (c->streams[i].id == PROBE)
		c->probed = c->streams[i].status == 200 && c->streams[i].length == 6;
	else
		note(c, "%d %d %zu", c->streams[i].status, c->streams[i].id, c->streams[i].length);
}

static bool on_headers(struct client *c, int32_t id, unsigned flags, const unsigned char *data, size_t length)
{
	int status = inflate(c, data, length), i = stream_index(c, id);

	if (status < 0 || !(flags & 4))
		return fails(c, "HEADERS that cannot be decoded");
	if (!status || (status >= 100 && status < 200))
		note(c, status ? "%2$d %1$d" : "trailer %d", id, status);
	else
		c->streams[i].status = status;
	if (flags & 1)
		end_stream(c, i);
	return true;
}

static bool is_answer(const unsigned char *payload, size_t length)
{
	return length == 8 && !memcmp(payload, "probing!", 8);
}

/* Handles a frame of the server. Returns false if the server must not send it. */
static bool on_frame(struct client *c, unsigned type, unsigned flags, int32_t id, const unsigned char *payload,
		     size_t length)
{
	unsigned code = length >= 4 ? (unsigned)payload[length - 1] | (unsigned)payload[length - 2] << 8 : 0;

	if (!c->settled && (type != 4 || flags & 1))
		return fails(c, "the first frame is not SETTINGS");
	c->settled = true;
	switch (type) {
	case 0:
		c->streams[stream_index(c, id)].length += length;
		if (flags & 1)
			end_stream(c, stream_index(c, id));
		return true;
	case 1:
		return on_headers(c, id, flags, payload, length);
	case 3:
		note(c, "rst %d %u", id, code);
		return true;
	case 6:
		c->ponged |= (flags & 1) && is_answer(payload, length);
		if (!(flags & 1)) {
			struct bytes copy = {(unsigned char *)(uintptr_t)payload, length, length}, answer = {0};

			add_frame(&answer, 6, 1, 0, &copy);
			weft_write_all_until(c->fd, answer.data, answer.length, c->deadline);
			free(answer.data);
		}
		return true;
	case 7:
		note(c, "goaway %u", (unsigned)payload[7] | (unsigned)payload[6] << 8);
		return true;
	case 4:
	case 8:
		return true;
	default:
		return fails(c, "a frame of type %u", type);
	}
}

/* Handles the received frames. */
static bool take_frames(struct client *c)
{
	size_t at = 0, length;
	bool ok = true;

	if (!c->settled && c->filled >= 5 && !memcmp(c->in, "HTTP/", 5)) {
		if (!c->events_count)
			note(c, "http1");
		c->filled = 5;
		return true;
	}
	while (ok && c->filled - at >= HEAD) {
		const unsigned char *f = c->in + at;

		length = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];
		if (length > 16384)
			return fails(c, "a frame of %zu bytes", length);
		if (c->filled - at < HEAD + length)
			break;
		at += HEAD + length;
		ok = on_frame(c, f[3], f[4],
			      (int32_t)((unsigned)f[5] << 24 | (unsigned)f[6] << 16 | (unsigned)f[7] << 8 | f[8]),
			      f + HEAD, length);
	}
	memmove(c->in, c->in + at, c->filled - at);
	c->filled -= at;
	return ok;
}

static bool receive(struct client *c)
{
	ssize_t n;

	if (c->capacity - c->filled < 20000) {
		c->capacity += 40000;
		c->in = realloc(c->in, c->capacity);
		CHECK(c->in);
	}
	n = weft_read_until(c->fd, c->in + c->filled, c->capacity - c->filled, c->deadline);
	if (n == -ETIMEDOUT)
		return fails(c, "the server does not answer");
	if (n == -ECONNRESET)
		return fails(c, "the connection was reset");
	if (n <= 0) {
		c->ended = true;
		return true;
	}
	c->filled += (size_t)n;
	return take_frames(c);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static bool has_event(const struct client *c, const char *text)
{
	for (unsigned i = 0; i < c->events_count; i++)
		if (!strcmp(c->events[i], text))
			return true;
	return false;
}

/* Copies the next expected answer. Returns false if there is none. */
static bool next_answer(const char **at, char *answer, size_t size)
{
	size_t length;

	while (**at == ' ' || **at == ',' || **at == '~' || **at == '!')
		++*at;
	length = strcspn(*at, ",");
	if (!length)
		return false;
	snprintf(answer, size, "%.*s", (int)length, *at);
	*at += length;
	return true;
}

static unsigned count_answers(const struct client *c, unsigned *expected)
{
	const char *at = c->test->answers;
	unsigned found = 0;
	char answer[60];

	for (*expected = 0; next_answer(&at, answer, sizeof answer); ++*expected)
		found += strcmp(answer, "closed") ? has_event(c, answer) : c->ended;
	return found;
}

static bool expects_end(const struct client *c)
{
	return strstr(c->test->answers, "goaway") || strstr(c->test->answers, "closed");
}

static void probe(struct client *c)
{
	struct bytes payload = {(unsigned char *)(uintptr_t) "probing!", 8, 8};

	if (expects_end(c) || *c->test->answers == '!')
		return;
	add_frame(&c->out, 6, 0, 0, &payload);
	add_request(c, "GET", PROBE, "/hello", 5);
	send_out(c);
}

static bool is_complete(const struct client *c)
{
	unsigned expected, found = count_answers(c, &expected);

	if (expects_end(c))
		return c->ended;
	return found == expected && (*c->test->answers == '!' || (c->ponged && c->probed));
}

static bool check(struct client *c)
{
	unsigned expected, found;
	bool ok = true;

	while (ok && !is_complete(c)) {
		if (c->ended)
			ok = fails(c, "the connection was closed");
		else
			ok = receive(c);
	}
	found = count_answers(c, &expected);
	if (ok && found != expected)
		ok = fails(c, "%u of %u answers", found, expected);
	if (ok && *c->test->answers != '~' && c->events_count + !!strstr(c->test->answers, "closed") != expected)
		ok = fails(c, "more answers than expected");
	return ok;
}

static void report(const struct client *c)
{
	printf("not ok - %s%s: %s; expected: %s; got:", c->test->name, c->by_bytes ? ", byte by byte" : "", c->problem,
	       c->test->answers);
	for (unsigned i = 0; i < c->events_count && i < 12; i++)
		printf(" %s,", c->events[i]);
	printf(c->ended ? " closed\n" : " open\n");
}

static int dial(void)
{
	char port[8];

	snprintf(port, sizeof port, "%u", run.port);
	return weft_dial("127.0.0.1", port);
}

static void open_client(struct client *c, const struct frames_case *test)
{
	memset(c, 0, sizeof *c);
	c->test = test;
	c->deadline = weft_now() + 5 * SECOND * run.factor;
	c->fd = dial();
	CHECK(c->fd >= 0);
	CHECK(!nghttp2_hd_inflate_new(&c->inflater));
}

static void close_client(struct client *c)
{
	weft_close(c->fd);
	nghttp2_hd_inflate_del(c->inflater);
	while (c->events_count)
		free(c->events[--c->events_count]);
	free(c->in);
	free(c->out.data);
}

static void *plays(void *client)
{
	play(client);
	probe(client);
	return NULL;
}

/* Sends and receives at the same time: neither side may wait until the other side reads. */
static size_t run_once(const struct frames_case *test, bool by_bytes)
{
	struct client *c = malloc(sizeof *c);
	weft_scope_t scope;
	size_t length;

	CHECK(c);
	open_client(c, test);
	c->by_bytes = by_bytes;
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, plays, c));
	if (!check(c)) {
		report(c);
		atomic_fetch_add(&run.failures, 1);
	}
	CHECK(!weft_scope_wait(&scope));
	length = c->out.capacity;
	close_client(c);
	free(c);
	return length;
}

static void *client(void *unused)
{
	unsigned i;

	while ((i = atomic_fetch_add(&run.next, 1)) < CASES) {
		const struct frames_case *test = &frames_cases[i];

		if (!strncmp(test->name, "late: ", 6) != run.hasty || (run.only && !strstr(test->name, run.only)))
			continue;
		if (run_once(test, false) <= 4096 && !run.simulated && strlen(test->sends) < SHORT &&
		    !strstr(test->sends, "x "))
			run_once(test, true);
	}
	return unused;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static void start(struct served *s, weft_scope_t *scope, bool hasty)
{
	const uint64_t times = run.factor * (hasty ? 1 : 100);
	const weft_http_config_t config = {.header_time = 200 * MS * times,
					   .body_time = 200 * MS * times,
					   .idle_time = 300 * MS * times,
					   .write_time = 200 * MS * times};

	CHECK(!weft_http_open(&s->server, &config));
	add_routes(s->server);
	s->listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s->listener >= 0);
	run.port = (unsigned)weft_port(s->listener);
	CHECK(!weft_scope_spawn(scope, serves, s));
}

static void end(struct served *s)
{
	weft_http_stats_t stats;

	weft_http_stats(s->server, &stats);
	CHECK(stats.connections == 0);
	weft_http_close(s->server);
	CHECK(!weft_close(s->listener));
}

static void some_cases(bool hasty)
{
	struct served s = {0};
	weft_scope_t scope, clients;

	run.hasty = hasty;
	atomic_store(&run.next, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	start(&s, &scope, hasty);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&clients, client, NULL));
	CHECK(!weft_scope_wait(&clients));
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope));
	end(&s);
}

/* A handler that waits for data of its client learns immediately that the stream was reset. */
static void a_reset_ends_a_wait(void)
{
	static const struct frames_case test = {"a reset ends a wait", "post 1 /length; sleep 20; rst 1 8", ""};
	struct served s = {0};
	weft_scope_t scope;
	unsigned before = atomic_load(&run.resets);

	weft_scope_open(&scope, WEFT_NEVER);
	start(&s, &scope, false);
	run_once(&test, false);
	CHECK(becomes(&run.resets, before + 1, 5 * SECOND * run.factor));
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope));
	end(&s);
}

/* A handler that waits for another event learns that its stream was reset, or that its connection was closed. */
static void handlers_learn_that_nobody_waits(void)
{
	static const struct frames_case tests[] = {
	    {"a reset", "get 1 /others; get 3 /stays; sleep 20; rst 1 8", "200 3 6"},
	    {"a reset of two", "get 1 /others; get 3 /others; sleep 20; rst 3 8; rst 1 8", ""},
	    {"a reset at once", "get 1 /others; rst 1 8", ""},
	    {"the end of the connection", "get 1 /others; get 3 /others; sleep 20", ""},
	};
	static const unsigned gone[] = {1, 3, 3, 5};
	struct served s = {0};
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	start(&s, &scope, false);
	atomic_store(&run.gone, 0);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		run_once(&tests[i], false);
		CHECK(becomes(&run.gone, gone[i], 5 * SECOND * run.factor));
	}
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope));
	end(&s);
}

static void *stops(void *server)
{
	weft_sleep(20 * MS * run.factor);
	CHECK(!weft_http_stop(server, weft_now() + 10 * SECOND * run.factor));
	return NULL;
}

/* The server stops while it answers requests. It announces the end twice. */
static void stop_is_announced(void)
{
	static const struct frames_case test = {"stop", "get 1 /slow", "200 1 5, goaway 0, closed"};
	struct client *c = malloc(sizeof *c);
	struct served s = {0};
	weft_scope_t scope;
	unsigned goaways = 0;

	CHECK(c);
	weft_scope_open(&scope, WEFT_NEVER);
	start(&s, &scope, false);
	open_client(c, &test);
	play(c);
	CHECK(!weft_scope_spawn(&scope, stops, s.server));
	while (!c->ended && receive(c))
		;
	for (unsigned i = 0; i < c->events_count; i++)
		goaways += !strcmp(c->events[i], "goaway 0");
	if (goaways != 2 || !has_event(c, "200 1 5") || !c->ended) {
		report(c);
		atomic_fetch_add(&run.failures, 1);
	}
	close_client(c);
	free(c);
	CHECK(!weft_scope_wait(&scope));
	end(&s);
}

static void *all_cases(void *pass)
{
	some_cases(true);
	some_cases(false);
	a_reset_ends_a_wait();
	handlers_learn_that_nobody_waits();
	stop_is_announced();
	return pass;
}

static bool run_all(uint64_t seed)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;
	int error = run.simulated ? weft_simulate(seed, &timeless, all_cases, &run, &result)
				  : weft_rt_run(NULL, all_cases, &run, &result);

	if (error)
		printf("not ok - the runtime: %s\n", strerror(-error));
	if (run.simulated && atomic_load(&run.failures))
		printf("not ok - seed %llu\n", (unsigned long long)seed);
	return !error && !atomic_load(&run.failures);
}

int main(int argc, char **argv)
{
	struct seeds seeds;
	bool ok = true;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.only = getenv("FRAMES_ONLY");
	run.simulated = argc > 1 && !strcmp(argv[1], "simulated");
	run.factor = run.simulated ? 100 : 1;
	seeds = read_seeds(run.simulated && argc > 2 ? argv[2] : NULL, run.simulated);
	for (uint64_t i = 0; ok && i < seeds.count; i++)
		ok = run_all(seeds.first + i);
	if (ok)
		printf("ok - %d cases\n", CASES);
	return !ok;
}
