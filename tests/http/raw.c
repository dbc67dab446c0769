/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests as raw bytes, and the answers that RFC 9110 and RFC 9112 demand: see cases.h.
 *
 *   raw [SEED]            all cases over real sockets, by the back end that WEFT_IO names
 *   raw simulated SEEDS   all cases in so many simulated worlds; `raw simulated FIRST+SEEDS` begins at another seed
 *   raw tls …             the same by TLS
 *
 * RAW_ONLY=TEXT in the environment runs only the cases whose names contain the text.
 *
 * The server is a task of the same runtime. Several client tasks take cases from the table, and check each response by
 * a parser of their own, which accepts only valid responses. After each case a new connection must be served.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/http.h>
#include <weft/sim.h>

#include "cases.h"
#include "seeds.h"
#include "http/tls.h"

enum {
	CLIENTS = 24,
	BIG_PARTS = 200,
	BIG_PART = 1000,
	SHORT_REQUEST = 400, /* bytes; shorter requests are also sent byte by byte */
	TAIL = 600,	     /* bytes of the received data that a report shows */
};

/* Simulated time costs nothing, and the simulated network is slow: all times are longer in a simulation. */
static struct run {
	bool simulated, hasty; /* hasty: runs only the cases with time limits */
	bool secure;
	weft_http_tls_t *server_tls, *client_tls; /* NULL unless `secure` */
	uint64_t seed, factor;
	unsigned port;
	const char *only;
	_Atomic unsigned next_case, gone;
	_Atomic unsigned failures[sizeof kinds / sizeof *kinds];
} run;

/* ---- the server's handlers --------------------------------------------------------------------------------------- */

/* If weft_http_read fails, the library answers the error. */
static bool count_body(weft_http_t *http, uint64_t *sum)
{
	char data[5000];
	ssize_t n;

	*sum = 0;
	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		*sum += (uint64_t)n;
	return n == 0;
}

static void body_length(weft_http_t *http, void *context)
{
	uint64_t sum;

	(void)context;
	if (count_body(http, &sum))
		weft_http_printf(http, "%llu", (unsigned long long)sum);
}

static void ignore(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", "ignored\n", 8);
}

static void chunks(weft_http_t *http, void *context)
{
	static const char *const pieces[] = {"one\n", "two\n", "three\n"};

	(void)context;
	for (int i = 0; i < 3; i++) {
		weft_http_write(http, pieces[i], strlen(pieces[i]));
		weft_http_flush(http);
	}
}

static void big(weft_http_t *http, void *context)
{
	char data[BIG_PART];

	(void)context;
	memset(data, 'b', sizeof data);
	for (int i = 0; i < BIG_PARTS; i++)
		if (weft_http_write(http, data, sizeof data) != sizeof data)
			return;
}

static void headers(weft_http_t *http, void *context)
{
	weft_http_text_t name, value;

	(void)context;
	for (unsigned i = 0; weft_http_header_at(http, i, &name, &value); i++)
		weft_http_printf(http, "%.*s: %.*s\n", (int)name.length, name.data, (int)value.length, value.data);
}

static void param(weft_http_t *http, void *name)
{
	weft_http_text_t value = weft_http_param(http, name);

	weft_http_reply(http, 200, "text/plain", value.data, value.length);
}

static void query(weft_http_t *http, void *context)
{
	char value[100];
	ssize_t n = weft_http_query_value(http, "a", value, sizeof value);

	(void)context;
	if (n == -EINVAL)
		weft_http_reply(http, 400, NULL, NULL, 0);
	else
		weft_http_reply(http, n < 0 ? 404 : 200, "text/plain", value, n < 0 ? 0 : (size_t)n);
}

static void slow(weft_http_t *http, void *context)
{
	(void)context;
	weft_sleep(50 * MS);
	weft_http_reply(http, 200, "text/plain", "slow\n", 5);
}

static void trailer(weft_http_t *http, void *context)
{
	weft_http_text_t sum;
	uint64_t length;

	(void)context;
	if (!count_body(http, &length))
		return;
	sum = weft_http_trailer(http, "X-Sum");
	weft_http_reply(http, 200, "text/plain", sum.data ? sum.data : "none", sum.data ? sum.length : 4);
}

static void early(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_add_header(http, "Link", "</style.css>; rel=preload");
	weft_http_inform(http, 103);
	weft_http_reply(http, 200, "text/plain", "early\n", 6);
}

static void nothing(weft_http_t *http, void *context)
{
	(void)http;
	(void)context;
}

static void events(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_event(http, NULL, NULL, "one");
	weft_http_event(http, NULL, NULL, "two\nthree");
}

/* Reads the body after it has set the status, and before the response begins. */
static void created(weft_http_t *http, void *context)
{
	char data[100];

	(void)context;
	weft_http_set_status(http, 201);
	if (weft_http_read_all(http, data, sizeof data) > 0)
		weft_http_write(http, "created\n", 8);
}

static void add_routes(weft_http_server_t *server)
{
	static const struct {
		const char *pattern;
		weft_http_handler_t *handler;
		const char *context;
	} routes[] = {
	    {"GET /hello", hello, NULL},      {"POST /echo", echo, NULL},	{"POST /length", body_length, NULL},
	    {"POST /ignore", ignore, NULL},   {"GET /chunks", chunks, NULL},	{"GET /big", big, NULL},
	    {"GET /headers", headers, NULL},  {"GET /item/:id", param, "id"},	{"GET /rest/*tail", param, "tail"},
	    {"GET /query", query, NULL},      {"GET /slow", slow, NULL},	{"POST /trailer", trailer, NULL},
	    {"GET /early", early, NULL},      {"GET /nothing", nothing, NULL},	{"GET /event", events, NULL},
	    {"POST /created", created, NULL}, {"GET /sum", with_trailer, NULL}, {"GET /fail", ends_its_task, NULL},
	};

	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		CHECK(!weft_http_route(server, routes[i].pattern, routes[i].handler,
				       (void *)(uintptr_t)routes[i].context));
	CHECK(!weft_http_route(server, "GET /others", waits_for_others, &run.gone));
	CHECK(!weft_http_route(server, "GET /stays", is_waited_for, NULL));
}

/* ---- a client's connection --------------------------------------------------------------------------------------- */

/* A connection of a case, with all data that was received on it. */
struct peer {
	const struct http_case *test;
	enum how how;
	struct stream stream;
	char *data; /* `at` … `filled` has not been parsed yet */
	size_t at, filled, capacity;
	ssize_t end; /* 0: the server has closed the connection; a negative errno; 1: open */
	uint64_t deadline;
	_Atomic unsigned responses; /* the number of parsed responses, interim responses included */
	const char *request;	    /* the bytes to send */
	size_t length;
	char *bodies; /* the bodies of all responses with 2xx */
	size_t bodies_length;
	char problem[300];
	char got[800]; /* statuses */
};

static bool fails(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fails(struct peer *p, const char *format, ...)
{
	va_list arguments;

	if (p->problem[0])
		return false;
	va_start(arguments, format);
	vsnprintf(p->problem, sizeof p->problem, format, arguments);
	va_end(arguments);
	return false;
}

static void got(struct peer *p, const char *word)
{
	size_t length = strlen(p->got);

	snprintf(p->got + length, sizeof p->got - length, "%s%s", length ? " " : "", word);
}

static int dial(void)
{
	char port[8];

	snprintf(port, sizeof port, "%u", run.port);
	return weft_dial("127.0.0.1", port);
}

static uint64_t patience(void)
{
	return weft_now() + 3 * SECOND * run.factor;
}

/* Receives data. Returns false if the connection has ended, or nothing has arrived in time. */
static bool fill(struct peer *p)
{
	ssize_t n;

	if (p->end <= 0)
		return false;
	if (p->filled == p->capacity) {
		p->capacity = p->capacity ? 2 * p->capacity : 4096;
		p->data = realloc(p->data, p->capacity);
		CHECK(p->data);
	}
	n = weft__stream_read(&p->stream, p->data + p->filled, p->capacity - p->filled, p->deadline);
	if (n == -ETIMEDOUT)
		return fails(p, "the server does not answer");
	if (n <= 0) {
		p->end = n;
		return false;
	}
	p->filled += (size_t)n;
	return true;
}

static bool fill_to(struct peer *p, size_t end)
{
	while (p->filled < end)
		if (!fill(p))
			return false;
	return true;
}

/* ---- the responses that a server may send ------------------------------------------------------------------------ */

struct response {
	int status;
	bool has_length, chunked, close, keep_alive, dated;
	uint64_t length;
	char *body;
	size_t body_length;
};

/* Returns a line, which ends with CRLF and has no control characters except tabs, or NULL. */
static const char *next_line(struct peer *p, size_t *length)
{
	size_t i = p->at, begin = p->at;

	for (;; i++) {
		unsigned char c;

		if (i == p->filled && !fill(p)) {
			fails(p, "the connection ends in a line");
			return NULL;
		}
		c = (unsigned char)p->data[i];
		if (c == '\r')
			break;
		if ((c < ' ' && c != '\t') || c == 0x7f) {
			fails(p, "control character %02x in a line", c);
			return NULL;
		}
	}
	if (!fill_to(p, i + 2) || p->data[i + 1] != '\n') {
		fails(p, "CR without LF");
		return NULL;
	}
	*length = i - begin;
	p->at = i + 2;
	return p->data + begin;
}

static bool is_token_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && !strncasecmp(text, word, length);
}

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
static bool is_date(const char *text, size_t length)
{
	static const char form[] = "Aaa, 00 Aaa 0000 00:00:00 GMT";

	if (length != sizeof form - 1)
		return false;
	for (size_t i = 0; i < length; i++)
		if (form[i] == '0'   ? !isdigit((unsigned char)text[i])
		    : form[i] == 'A' ? !isupper((unsigned char)text[i])
		    : form[i] == 'a' ? !islower((unsigned char)text[i])
				     : text[i] != form[i])
			return false;
	return true;
}

static bool note_length(struct peer *p, struct response *r, const char *value, size_t length)
{
	if (r->has_length)
		return fails(p, "two Content-Length fields");
	if (!length || length > 18)
		return fails(p, "Content-Length is no number");
	r->has_length = true;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)value[i]))
			return fails(p, "Content-Length is no number");
		r->length = r->length * 10 + (uint64_t)(value[i] - '0');
	}
	return true;
}

static void note_connection(struct response *r, const char *value, size_t length)
{
	size_t i, begin;

	for (i = 0; i < length; i++) {
		begin = i;
		while (i < length && is_token_char((unsigned char)value[i]))
			i++;
		r->close |= is_word(value + begin, i - begin, "close");
		r->keep_alive |= is_word(value + begin, i - begin, "keep-alive");
	}
}

static bool note_coding(struct peer *p, struct response *r, const char *value, size_t length)
{
	if (r->chunked)
		return fails(p, "two Transfer-Encoding fields");
	r->chunked = true;
	return is_word(value, length, "chunked") || fails(p, "a transfer coding that nobody asked for");
}

static bool note_field(struct peer *p, struct response *r, const char *line, size_t length)
{
	size_t name = 0, end = length;
	const char *value;

	while (name < length && is_token_char((unsigned char)line[name]))
		name++;
	if (!name || name == length || line[name] != ':')
		return fails(p, "malformed field \"%.*s\"", (int)length, line);
	value = line + name + 1;
	while (value < line + end && (*value == ' ' || *value == '\t'))
		value++;
	while (line + end > value && (line[end - 1] == ' ' || line[end - 1] == '\t'))
		end--;
	/* Not forbidden, but Python's http.client does not recognize "chunked" with spaces after it. */
	if (end < length && !is_word(line, name, "content-length"))
		return fails(p, "spaces behind \"%.*s\"", (int)end, line);
	length = (size_t)(line + end - value);
	if (is_word(line, name, "content-length"))
		return note_length(p, r, value, length);
	if (is_word(line, name, "transfer-encoding"))
		return note_coding(p, r, value, length);
	if (is_word(line, name, "connection"))
		note_connection(r, value, length);
	if (is_word(line, name, "date")) {
		if (r->dated || !is_date(value, length))
			return fails(p, "malformed or second Date");
		r->dated = true;
	}
	return true;
}

static bool read_head(struct peer *p, struct response *r)
{
	size_t length;
	const char *line = next_line(p, &length);

	memset(r, 0, sizeof *r);
	if (!line)
		return false;
	if (length < 13 || memcmp(line, "HTTP/1.1 ", 9) || !isdigit((unsigned char)line[9]) ||
	    !isdigit((unsigned char)line[10]) || !isdigit((unsigned char)line[11]) || line[12] != ' ')
		return fails(p, "malformed status line \"%.*s\"", (int)length, line);
	r->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + line[11] - '0';
	while ((line = next_line(p, &length)) && length)
		if (!note_field(p, r, line, length))
			return false;
	return line != NULL;
}

static void add_body(struct peer *p, struct response *r, size_t length)
{
	r->body = realloc(r->body, r->body_length + length + 1);
	CHECK(r->body);
	memcpy(r->body + r->body_length, p->data + p->at, length);
	r->body_length += length;
	p->at += length;
}

static bool read_counted(struct peer *p, struct response *r, size_t length)
{
	if (!fill_to(p, p->at + length))
		return fails(p, "the body ends %zu bytes early", p->at + length - p->filled);
	add_body(p, r, length);
	return true;
}

/* The size of a chunk; extensions are allowed, but this server has no reason to send any. */
static bool chunk_size(struct peer *p, size_t *size)
{
	size_t i, length;
	const char *line = next_line(p, &length);

	if (!line)
		return false;
	*size = 0;
	for (i = 0; i < length && isxdigit((unsigned char)line[i]); i++)
		*size =
		    *size * 16 + (size_t)(isdigit((unsigned char)line[i]) ? line[i] - '0' : (line[i] | 32) - 'a' + 10);
	return (i && i == length && i <= 8) || fails(p, "malformed chunk size \"%.*s\"", (int)length, line);
}

static bool read_chunks(struct peer *p, struct response *r)
{
	struct response trailer = {0};
	size_t size, length;
	const char *line;

	for (;;) {
		if (!chunk_size(p, &size))
			return false;
		if (!size)
			break;
		if (!read_counted(p, r, size))
			return false;
		line = next_line(p, &length);
		if (!line || length)
			return fails(p, "no CRLF behind a chunk");
	}
	while ((line = next_line(p, &length)) && length)
		if (!note_field(p, &trailer, line, length))
			return false;
	return line != NULL;
}

static bool read_until_close(struct peer *p, struct response *r)
{
	while (fill(p))
		;
	if (p->end)
		return fails(p, "the body ends by %s", strerror((int)-p->end));
	add_body(p, r, p->filled - p->at);
	r->close = true;
	return true;
}

/* Reads the body by the framing that the response must have. `is_head`: to HEAD; `is_old`: to HTTP/1.0. */
static bool read_body(struct peer *p, struct response *r, bool is_head, bool is_old)
{
	bool none = r->status < 200 || r->status == 204;

	if (r->status == 101)
		return fails(p, "nobody can switch protocols");
	if (r->status < 200 && is_old)
		return fails(p, "an interim response to HTTP/1.0");
	if (none && (r->has_length || r->chunked))
		return fails(p, "a length of a body that does not exist");
	if (r->status >= 200 && !r->dated)
		return fails(p, "no Date");
	if (r->has_length && r->chunked)
		return fails(p, "Content-Length beside Transfer-Encoding");
	if (r->close && r->keep_alive)
		return fails(p, "Connection says both close and keep-alive");
	if (r->chunked && is_old)
		return fails(p, "chunks to HTTP/1.0");
	if (none || is_head || r->status == 304)
		return true;
	return r->chunked ? read_chunks(p, r) : r->has_length ? read_counted(p, r, r->length) : read_until_close(p, r);
}

static void keep_body(struct peer *p, const struct response *r)
{
	if (r->status / 100 != 2 || !r->body_length)
		return;
	p->bodies = realloc(p->bodies, p->bodies_length + r->body_length);
	CHECK(p->bodies);
	memcpy(p->bodies + p->bodies_length, r->body, r->body_length);
	p->bodies_length += r->body_length;
}

static bool read_response(struct peer *p, struct response *r, bool is_head, bool is_old)
{
	char word[20];
	bool ok = read_head(p, r);

	if (ok) {
		snprintf(word, sizeof word, "%d", r->status);
		got(p, word);
		atomic_fetch_add(&p->responses, 1);
		ok = read_body(p, r, is_head, is_old);
		if (ok && is_old && !r->keep_alive)
			r->close = true;
	}
	if (ok)
		keep_body(p, r);
	free(r->body);
	r->body = NULL;
	return ok;
}

/* ---- the expectations of a case ---------------------------------------------------------------------------------- */

/* One word of http_case.answers. */
struct expected {
	const char *text; /* "400|501" */
	size_t length;
	unsigned times;
	bool optional, is_head, is_old;
};

static bool next_expected(const char **list, struct expected *e)
{
	const char *at = *list;

	while (*at == ' ')
		at++;
	*e = (struct expected){.text = at, .times = 1};
	while (isdigit((unsigned char)*at) || *at == '|')
		at++;
	e->length = (size_t)(at - e->text);
	for (; *at && *at != ' '; at++) {
		e->optional |= *at == '?';
		e->is_head |= *at == 'h';
		e->is_old |= *at == 'o';
		if (*at == '*') {
			e->times = (unsigned)strtoul(at + 1, (char **)(uintptr_t)&at, 10);
			at--;
		}
	}
	*list = at;
	return e->length > 0;
}

static bool allows(const struct expected *e, int status)
{
	for (size_t i = 0; i < e->length; i++)
		if ((!i || e->text[i - 1] == '|') && atoi(e->text + i) == status)
			return true;
	return false;
}

/* Has the server closed the connection before the next response? */
static bool has_ended(struct peer *p)
{
	return p->at == p->filled && !fill(p) && !p->problem[0];
}

/* Reads the responses. `last` becomes the last response; its status is 0 if there was none. */
static bool read_responses(struct peer *p, struct response *last)
{
	const char *list = p->test->answers;
	struct expected e;

	*last = (struct response){0};
	while (next_expected(&list, &e)) {
		for (unsigned i = 0; i < e.times; i++) {
			if (allows(&e, 0) && has_ended(p))
				return true;
			if (!e.optional && has_ended(p))
				return fails(p, "the connection ends (%s) before a response", strerror((int)-p->end));
			if (e.optional) { /* an interim response: does the next response have this status? */
				if (!fill_to(p, p->at + 12))
					return fails(p, "the connection ends before a response");
				if (!allows(&e, atoi(p->data + p->at + 9)))
					continue;
			}
			if (!read_response(p, last, e.is_head, e.is_old))
				return false;
			if (!allows(&e, last->status))
				return fails(p, "status %d", last->status);
		}
	}
	return true;
}

static size_t pieces_length(const struct piece *pieces, unsigned most)
{
	size_t sum = 0;

	for (unsigned i = 0; i < most && pieces[i].data; i++)
		sum += pieces[i].length * pieces[i].times;
	return sum;
}

static char *join_pieces(const struct piece *pieces, unsigned most, size_t *length)
{
	char *text = malloc(pieces_length(pieces, most) + 1);

	CHECK(text);
	*length = 0;
	for (unsigned i = 0; i < most && pieces[i].data; i++)
		for (unsigned k = 0; k < pieces[i].times; k++) {
			memcpy(text + *length, pieces[i].data, pieces[i].length);
			*length += pieces[i].length;
		}
	return text;
}

static bool check_bodies(struct peer *p)
{
	const struct http_case *c = p->test;
	size_t length;
	char *text;
	bool same;

	if (!c->body[0].data || !p->bodies_length)
		return !c->body[0].data || !pieces_length(c->body, BODY_PIECES) || !strstr(p->got, "200") ||
		       fails(p, "no body");
	text = join_pieces(c->body, BODY_PIECES, &length);
	same = length == p->bodies_length && !memcmp(text, p->bodies, length);
	free(text);
	return same || fails(p, "a body of %zu bytes, not of %zu: \"%.*s\"", p->bodies_length, length,
			     p->bodies_length < 80 ? (int)p->bodies_length : 80, p->bodies);
}

/* "name: text": at least one field of this name contains the text, in any case. */
static bool check_field(struct peer *p, const char *wanted)
{
	const char *colon = wanted ? strchr(wanted, ':') : NULL, *at = p->data, *end = p->data + p->at, *stop;
	size_t name = (size_t)(colon - wanted), text;

	if (!wanted)
		return true;
	for (text = strlen(colon + 2); at < end; at = stop + 1) {
		stop = memchr(at, '\n', (size_t)(end - at));
		if (!stop)
			break;
		if ((size_t)(stop - at) < name + 1 + text || strncasecmp(at, wanted, name + 1))
			continue;
		for (const char *v = at + name + 1; v + text <= stop; v++)
			if (!strncasecmp(v, colon + 2, text))
				return true;
	}
	return fails(p, "no field \"%s\"", wanted);
}

/* The server must close the connection without another byte. */
static bool check_closed(struct peer *p)
{
	while (p->at == p->filled && fill(p))
		;
	return p->at == p->filled ? !p->problem[0] : fails(p, "%zu bytes behind the last response", p->filled - p->at);
}

/* The connection must serve another request. */
static bool check_open(struct peer *p)
{
	static const char next[] = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
	struct response r;

	if (p->at != p->filled)
		return fails(p, "%zu bytes behind the last response", p->filled - p->at);
	got(p, "next:");
	if (weft__stream_write(&p->stream, next, sizeof next - 1, p->deadline) != sizeof next - 1)
		return fails(p, "the connection is closed: the next request cannot be written");
	if (has_ended(p))
		return fails(p, "the connection is closed (%s): no answer to the next request", strerror((int)-p->end));
	return read_response(p, &r, false, false) && (r.status == 200 || fails(p, "next status %d", r.status));
}

static bool check_end(struct peer *p, const struct response *last)
{
	const struct http_case *c = p->test;
	bool says_close = !last->status || last->close;

	if (c->then == ANY)
		return true;
	if (c->after == HALF_CLOSE || c->then == IDLE)
		return check_closed(p);
	if (c->then == OPEN && says_close)
		return fails(p, "the connection is closed");
	if (c->then == CLOSED && !says_close)
		return fails(p, "the last response does not say Connection: close");
	return says_close ? check_closed(p) : check_open(p);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static bool send_part(struct peer *p, size_t from, size_t to)
{
	return weft__stream_write(&p->stream, p->request + from, to - from, p->deadline) == (ssize_t)(to - from);
}

static void send_slowly(struct peer *p, uint64_t pause)
{
	for (size_t i = 0; i < p->length && send_part(p, i, i + 1); i++)
		weft_sleep(pause);
}

/* Waits between the pieces, or for AFTER_INTERIM until the first response. */
static void send_pieces(struct peer *p)
{
	size_t at = 0, length;

	for (unsigned i = 0; i < PIECES && p->test->send[i].data; i++) {
		for (unsigned k = 0; i && k < (p->how == PAUSES ? 20 : 1000); k++) {
			if (p->how == AFTER_INTERIM && atomic_load(&p->responses))
				break;
			weft_sleep(MS);
		}
		length = p->test->send[i].length * p->test->send[i].times;
		if (!send_part(p, at, at + length))
			return;
		at += length;
	}
}

static void reset(int fd)
{
	static const struct linger at_once = {1, 0};

	if (!run.simulated) /* closing a simulated connection with unread bytes resets it anyway */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void *sends(void *peer)
{
	struct peer *p = peer;

	switch (p->how) {
	case BYTE_BY_BYTE:
		send_slowly(p, 20000);
		break;
	case TRICKLE:
		send_slowly(p, 50 * MS * run.factor);
		break;
	case PAUSES:
	case AFTER_INTERIM:
		send_pieces(p);
		break;
	default:
		send_part(p, 0, p->length);
	}
	if (p->test->after == HALF_CLOSE)
		weft__stream_finish(&p->stream);
	return NULL;
}

/* Sends the first part, then the rest: the server sees the request divided at this position. */
struct split {
	struct peer *peer;
	size_t at;
};

static void *sends_split(void *split)
{
	const struct split *s = split;

	if (send_part(s->peer, 0, s->at)) {
		weft_sleep(MS / 2);
		send_part(s->peer, s->at, s->peer->length);
	}
	return NULL;
}

/* ---- running a case ---------------------------------------------------------------------------------------------- */

static void exchange(struct peer *p, weft_fn_t *sender, void *argument)
{
	struct response last;

	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, sender, argument));
	if (p->test->after == RESET_AFTER || p->test->after == CLOSE_AFTER) {
		CHECK(!weft_scope_wait(&scope));
		weft_sleep(10 * MS);
		for (size_t i = 0; i < p->test->reads && fill(p); i = p->filled)
			;
		if (p->test->after == RESET_AFTER)
			reset(p->stream.fd);
		return;
	}
	if (!read_responses(p, &last)) {
		if (p->test->may_reset && p->end < 0)
			p->problem[0] = 0;
		return;
	}
	if (!check_bodies(p) || !check_field(p, p->test->field))
		return;
	if (p->test->then == OPEN || (p->test->then == EITHER && !last.close && last.status)) {
		/* The server has read the whole request, or will read it. */
		CHECK(!weft_scope_wait(&scope));
	}
	check_end(p, &last);
}

static void print_bytes(FILE *out, const char *data, size_t length)
{
	size_t from = length > TAIL ? TAIL : length;

	for (size_t i = 0; i < from; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\r')
			fputs("\\r", out);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c < ' ' || c > 126 || c == '\\' || c == '"')
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
	if (from < length)
		fprintf(out, "… (%zu bytes)", length);
}

static void report(const struct peer *p, const char *how)
{
	static const char *const ends[] = {
	    [OPEN] = "open", [CLOSED] = "closed", [EITHER] = "open or closed", [IDLE] = "closed later", [ANY] = "any"};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	CHECK(out);
	fprintf(out, "not ok - %s (%s): expected %s, %s; got %s: %s. Sent \"", p->test->name, how,
		*p->test->answers ? p->test->answers : "no answer", ends[p->test->then], *p->got ? p->got : "nothing",
		p->problem);
	print_bytes(out, p->request, p->length);
	fputs("\", received \"", out);
	print_bytes(out, p->data, p->filled);
	fputs("\"\n", out);
	CHECK(!fclose(out));
	fputs(text, stdout);
	free(text);
}

static void open_peer(struct peer *p)
{
	p->deadline = patience();
	p->end = 1;
	p->stream = (struct stream){.fd = dial()};
	if (p->stream.fd < 0)
		fails(p, "no connection: %s", strerror(-p->stream.fd));
	else if (run.secure) {
		int error = weft__tls_connect(&p->stream, p->stream.fd, run.client_tls, "h", "http/1.1", p->deadline);

		if (error)
			fails(p, "no handshake: %s (%s)", strerror(-error), weft_http_tls_why(run.client_tls));
	}
}

static bool close_peer(struct peer *p, const char *how)
{
	bool ok = !p->problem[0];

	if (p->stream.fd >= 0)
		weft__stream_close(&p->stream);
	if (!ok)
		report(p, how);
	free(p->data);
	free(p->bodies);
	return ok;
}

static bool run_once(const struct http_case *c, enum how how, const char *request, size_t length)
{
	static const char *const names[] = {"whole",	     "byte by byte", "trickle",	  "pauses",
					    "after interim", "split",	     "whole only"};
	struct peer p = {.test = c, .how = how, .request = request, .length = length};

	open_peer(&p);
	if (!p.problem[0])
		exchange(&p, sends, &p);
	return close_peer(&p, names[how]);
}

static bool run_split(const struct http_case *c, const char *request, size_t length, size_t at)
{
	struct peer p = {.test = c, .how = SPLIT, .request = request, .length = length};
	struct split split = {&p, at};
	char how[40];

	snprintf(how, sizeof how, "split at %zu", at);
	open_peer(&p);
	if (!p.problem[0])
		exchange(&p, sends_split, &split);
	return close_peer(&p, how);
}

static bool others_are_served(void)
{
	static const struct http_case other = {.name = "a new connection",
					       .answers = "200",
					       .then = ANY,
					       .body = {B("hello\n")}};
	static const char request[] = "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";

	return run_once(&other, WHOLE_ONLY, request, sizeof request - 1);
}

static bool is_sent_by_bytes(const struct http_case *c, size_t length)
{
	return c->how == WHOLE && length <= SHORT_REQUEST && length > 1 && c->after != RESET_AFTER &&
	       c->after != CLOSE_AFTER;
}

static bool run_case(const struct http_case *c, unsigned number)
{
	/* A simulation sends the request in one of the two ways, which its seed chooses. */
	bool first = !run.simulated || (number + run.seed) % 2;
	size_t length;
	char *request = join_pieces(c->send, PIECES, &length);
	bool ok = true, by_bytes = is_sent_by_bytes(c, length);

	if (first || !by_bytes)
		ok = run_once(c, c->how, request, length);
	if (ok && by_bytes && (!first || !run.simulated))
		ok = run_once(c, BYTE_BY_BYTE, request, length);
	for (size_t at = 1; ok && c->how == SPLIT && at < length; at++)
		ok = run_split(c, request, length, at);
	if (!others_are_served())
		ok = false;
	free(request);
	return ok;
}

static const struct http_case *find_case(unsigned number, unsigned *kind)
{
	for (*kind = 0; *kind < sizeof kinds / sizeof *kinds; ++*kind) {
		if (number < kinds[*kind].count)
			return &kinds[*kind].cases[number];
		number -= kinds[*kind].count;
	}
	return NULL;
}

static void *client(void *unused)
{
	const struct http_case *c;
	unsigned number, kind;

	for (;;) {
		number = atomic_fetch_add(&run.next_case, 1);
		c = find_case(number, &kind);
		if (!c)
			return unused;
		if (kinds[kind].cases == time_cases ? !run.hasty : run.hasty)
			continue;
		if (kinds[kind].cases == file_cases && run.simulated) /* a simulated world has other files */
			continue;
		if (run.only && !strstr(c->name, run.only))
			continue;
		if (!run_case(c, number))
			atomic_fetch_add(&run.failures[kind], 1);
	}
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static void run_clients(void)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, client, NULL));
	CHECK(!weft_scope_wait(&scope));
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/weft-http-XXXXXX";

static void make_file(const char *name, const char *text, size_t times)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0);
	while (times--)
		CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* "secret" is outside the directory "root" that is served. */
static void make_files(void)
{
	const struct timespec times[2] = {{1577836800, 0}, {1577836800, 0}};

	CHECK(!chdir(directory));
	make_file("secret", "secret", 1);
	CHECK(!mkdir("root", 0700) && !chdir("root") && !mkdir("sub", 0700));
	make_file("digits.txt", "0123456789", 1);
	make_file("page.html", "plain page", 1);
	make_file("page.html.gz", "gzipped page", 1);
	make_file("large", "ffffffffff", 30000);
	make_file("sub/index.html", "index", 1);
	make_file("empty", "", 0);
	make_file(".hidden", "hidden", 1);
	CHECK(!symlink("digits.txt", "inside") && !symlink("/etc/passwd", "outside") && !symlink("..", "parent"));
	CHECK(!utimensat(AT_FDCWD, "digits.txt", times, 0));
}

static char certificate[64], key[64];

/* A certificate for the host "h". Signatures of this kind all have the same length, so simulations can be repeated. */
static void make_certificate(void)
{
	char command[500];

	snprintf(certificate, sizeof certificate, "%s/certificate", directory);
	snprintf(key, sizeof key, "%s/key", directory);
	snprintf(command, sizeof command,
		 "openssl req -x509 -newkey ed25519 -nodes -days 3650 -subj /CN=h -addext subjectAltName=DNS:h "
		 "-keyout %s -out %s 2>/dev/null",
		 key, certificate);
	CHECK(!system(command));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

/* On a busy machine a request must not be late, except in the cases that test lateness, which have a server
 * of their own. */
static void some_cases(bool hasty)
{
	const uint64_t times = run.factor * (hasty ? 1 : 100);
	const weft_http_config_t config = {.header_time = 300 * MS * times,
					   .body_time = 300 * MS * times,
					   .idle_time = 400 * MS * times};
	struct served s = {.tls = run.server_tls};
	weft_http_stats_t stats;
	weft_scope_t scope;

	run.hasty = hasty;
	atomic_store(&run.next_case, 0);
	CHECK(!weft_http_open(&s.server, &config));
	add_routes(s.server);
	if (!run.simulated)
		CHECK(!weft_http_files(s.server, "/files/", "."));
	s.listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s.listener >= 0);
	run.port = (unsigned)weft_port(s.listener);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serves, &s));
	run_clients();
	CHECK(!weft_http_stop(s.server, weft_now() + 5 * SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope));
	weft_http_stats(s.server, &stats);
	CHECK(stats.connections == 0);
	weft_http_close(s.server);
	CHECK(!weft_close(s.listener));
}

struct meeting {
	weft_http_server_t *server;
	int fd;
};

static void *meets(void *meeting)
{
	const struct meeting *m = meeting;

	weft_http_serve_connection(m->server, m->fd);
	return NULL;
}

/* A handler that fails ends its connection, and the server does not wait for that connection. */
static void a_handler_fails(void)
{
	static const char request[] = "GET /fail HTTP/1.1\r\nHost: h\r\n\r\n";
	struct meeting m;
	char text[10];
	int fds[2];

	CHECK(!weft_http_open(&m.server, NULL));
	add_routes(m.server);
	CHECK(!weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	m.fd = fds[1];
	CHECK(!weft_spawn_detached(meets, &m, NULL));
	CHECK(weft_write_all(fds[0], request, sizeof request - 1) == (ssize_t)sizeof request - 1);
	CHECK(!weft_read(fds[0], text, sizeof text) && !weft_close(fds[0]));
	WEFT_SCOPE_UNTIL(limit, weft_now() + 5 * SECOND);
	CHECK(!weft_http_stop(m.server, weft_now() + SECOND));
	weft_http_close(m.server);
}

static int ask(unsigned port, const char *path)
{
	char service[8], request[60];
	int fd, length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);

	snprintf(service, sizeof service, "%u", port);
	fd = weft_dial("127.0.0.1", service);
	CHECK(fd >= 0 && weft_write_all(fd, request, (size_t)length) == length);
	return fd;
}

static int greet(unsigned port)
{
	return ask(port, "/hello");
}

/* A handler that waits for another event learns that its client has closed the connection, in any way. */
static void a_handler_learns_that_nobody_waits(void)
{
	struct served s = {0};
	char text[12];
	int fd;

	CHECK(!weft_http_open(&s.server, NULL));
	add_routes(s.server);
	s.listener = weft_listen("127.0.0.1", 0, 0, 0);
	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, serves, &s));
	atomic_store(&run.gone, 0);
	for (unsigned i = 1; i <= 3; i++) {
		fd = ask((unsigned)weft_port(s.listener), "/others");
		weft_sleep(10 * MS);
		CHECK(!atomic_load(&run.gone) || atomic_load(&run.gone) == i - 1);
		if (i == 1)
			reset(fd);
		CHECK(!(i == 2 ? weft_shutdown(fd, SHUT_WR) : weft_close(fd)));
		CHECK(becomes(&run.gone, i, 5 * SECOND * run.factor));
		if (i == 2)
			CHECK(!weft_close(fd));
	}
	fd = ask((unsigned)weft_port(s.listener), "/stays");
	CHECK(weft_read_all(fd, text, 12) == 12 && !memcmp(text, "HTTP/1.1 200", 12) && !weft_close(fd));
	CHECK(!weft_http_stop(s.server, weft_now() + SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope) && !weft_close(s.listener));
	weft_http_close(s.server);
}

/* A server that serves one connection at a time. The accepting task is cancelled, and another task replaces it. */
static void connections_are_limited(void)
{
	const uint64_t pause = 50 * MS * run.factor;
	struct served s = {0};
	weft_task_t task;
	char text[1000];
	int first, second;

	CHECK(!weft_http_open(&s.server, &(weft_http_config_t){.connections = 1}));
	add_routes(s.server);
	s.listener = weft_listen("127.0.0.1", 0, 0, 0);
	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn_with(&scope, &task, serves, &s, NULL));
	weft_sleep(pause);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, NULL) == -ECANCELED);
	CHECK(!weft_scope_spawn(&scope, serves, &s));
	first = greet((unsigned)weft_port(s.listener));
	CHECK(weft_read_until(first, text, sizeof text, weft_now() + 20 * pause) > 0);
	second = greet((unsigned)weft_port(s.listener));
	CHECK(weft_read_until(second, text, sizeof text, weft_now() + pause) == -ETIMEDOUT);
	CHECK(!weft_close(first));
	CHECK(weft_read_until(second, text, sizeof text, weft_now() + 20 * pause) > 0);
	CHECK(!weft_close(second) && !weft_http_stop(s.server, weft_now() + SECOND * run.factor));
	CHECK(!weft_scope_wait(&scope) && !weft_close(s.listener));
	weft_http_close(s.server);
}

/* The log's line for one request, whose target must not end a string in the log. */
static void log_one(weft_http_log_t *log, const char *begins, const char *has)
{
	static const char request[] = "GET /none?\"a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
	struct meeting m;
	char text[1000], *line = NULL;
	size_t length;
	FILE *file = open_memstream(&line, &length);
	int fds[2];

	CHECK(file && !weft_http_open(&m.server, &(weft_http_config_t){.log = log, .log_context = file}));
	CHECK(!weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	m.fd = fds[1];
	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, meets, &m));
	CHECK(weft_write_all(fds[0], request, sizeof request - 1) == (ssize_t)sizeof request - 1);
	CHECK(weft_read(fds[0], text, sizeof text) > 0 && !weft_close(fds[0]));
	CHECK(!weft_scope_wait(&scope) && !fclose(file));
	CHECK(!strncmp(line, begins, strlen(begins)) && strstr(line, has) && strchr(line, '\n') == line + length - 1);
	free(line);
	weft_http_close(m.server);
}

static void logs(void)
{
	log_one(weft_http_log_common, "- - - [", "] \"GET /none?\\u0022a HTTP/1.1\" 404 14\n");
	log_one(weft_http_log_json, "{\"time\":",
		",\"peer\":\"-\",\"method\":\"GET\",\"target\":\"/"
		"none?\\u0022a\",\"status\":404,\"received\":0,\"sent\":14,");
}

static void *all_cases(void *pass)
{
	if (run.simulated && run.seed % 3)
		CHECK(!weft_world_set(&(weft_world_t){.slow = 100000}));
	if (run.secure) {
		CHECK(!weft_http_tls_open(&run.server_tls, certificate, key, NULL));
		CHECK(!weft_http_tls_client_open(&run.client_tls, certificate, NULL));
	}
	some_cases(true);
	some_cases(false);
	weft_http_tls_close(run.server_tls);
	weft_http_tls_close(run.client_tls);
	if (run.secure)
		return pass;
	a_handler_fails();
	connections_are_limited();
	a_handler_learns_that_nobody_waits();
	logs();
	return pass;
}

static bool run_all(uint64_t seed)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;
	int error;
	bool ok;

	run.seed = seed;
	error = run.simulated ? weft_simulate(seed, &timeless, all_cases, &run, &result)
			      : weft_rt_run(NULL, all_cases, &run, &result);
	ok = !error && result == &run;
	if (!ok)
		printf("not ok - the runtime: %s\n", strerror(-error));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		ok &= !atomic_load(&run.failures[i]);
	if (!ok && run.simulated)
		printf("not ok - seed %llu\n", (unsigned long long)seed);
	return ok;
}

static void print_kinds(void)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!atomic_load(&run.failures[i]))
			printf("ok - %s (%u cases)\n", kinds[i].name, kinds[i].count);
}

int main(int argc, char **argv)
{
	struct seeds seeds;
	bool ok = true;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.only = getenv("RAW_ONLY");
	run.secure = argc > 1 && !strcmp(argv[1], "tls");
	argv += run.secure;
	argc -= run.secure;
	run.simulated = argc > 1 && !strcmp(argv[1], "simulated");
	run.factor = run.simulated ? 100 : 1;
	seeds = read_seeds(argc > 1 + run.simulated ? argv[1 + run.simulated] : NULL, run.simulated);
	CHECK(mkdtemp(directory));
	if (run.secure)
		make_certificate();
	if (!run.simulated)
		make_files();
	for (uint64_t i = 0; ok && i < seeds.count; i++)
		ok = run_all(seeds.first + i);
	CHECK(!nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS));
	print_kinds();
	return !ok;
}
