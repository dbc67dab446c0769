/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client's HTTP/2: servers that play scripts of frames (mux_cases.h), then our own server under random requests of
 * many tasks and threads, some of which are cancelled, late or slow (mux_more.h).
 *
 *   mux [SEED]                over real sockets, by the back end that WEFT_IO names
 *   mux simulated [F+]SEEDS   in so many simulated worlds
 *   mux tls [SEED]            our own server by TLS; openssl makes the certificate
 *
 * MUX_ONLY=TEXT in the environment runs only the cases whose names contain the text.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <weft/http_client.h>
#include <weft/sim.h>

#include "frame_bytes.h"
#include "mux_cases.h"
#include "seeds.h"

enum { RUNNERS = 8, CASES = sizeof mux_cases / sizeof *mux_cases, REQUESTS_MOST = 8, EVENTS_MOST = 2000, HEAD = 9 };

static struct {
	bool simulated, hasty;
	uint64_t seed, factor;
	const char *only;
	weft_http_tls_t *server_tls, *client_tls; /* NULL: plain connections */
	_Atomic unsigned next, failures;
} run;

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

struct site {
	const struct mux_case *test;
	int listener;
	char url[60];
	_Atomic unsigned accepted, heads, old; /* old: requests by HTTP/1.1 */
	weft_mutex_t lock;
	char events[EVENTS_MOST]; /* "rst 1 8|goaway 0|" */
};

struct peer {
	struct site *site;
	int fd;
	struct bytes out;
	unsigned heads, windows;
	size_t data;
	uint32_t last; /* the last stream */
	bool bare;     /* sends no SETTINGS, and does not acknowledge them */
};

static void note(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct peer *p, const char *format, ...)
{
	size_t length;
	va_list arguments;

	weft_mutex_lock(&p->site->lock);
	length = strlen(p->site->events);
	va_start(arguments, format);
	vsnprintf(p->site->events + length, sizeof p->site->events - length, format, arguments);
	va_end(arguments);
	weft_mutex_unlock(&p->site->lock);
}

static bool send_out(struct peer *p)
{
	bool ok = weft_write_all(p->fd, p->out.data, p->out.length) == (ssize_t)p->out.length;

	p->out.length = 0;
	return ok;
}

static uint32_t number_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void on_frame(struct peer *p, unsigned type, unsigned flags, uint32_t id, const unsigned char *payload,
		     size_t length)
{
	switch (type) {
	case 0:
		p->data += length;
		break;
	case 1:
		CHECK(flags & 4 && id > p->last);
		p->last = id;
		p->heads++;
		atomic_fetch_add(&p->site->heads, 1);
		break;
	case 3:
		note(p, "rst %u %u|", id, number_at(payload));
		break;
	case 4:
		if (!(flags & 1) && !p->bare)
			add_frame(&p->out, 4, 1, 0, NULL);
		send_out(p);
		break;
	case 6:
		if (flags & 1 && payload[7] == 7)
			note(p, "pong|");
		break;
	case 7:
		note(p, "goaway %u|", number_at(payload + 4));
		break;
	case 8:
		p->windows += id != 0;
		break;
	default:
		CHECK(!"a frame that a client sends");
	}
	(void)length;
}

/* Returns false if the client has closed the connection. */
static bool read_frame(struct peer *p)
{
	static const size_t most = 16384;
	unsigned char head[HEAD], *payload;
	size_t length;

	if (weft_read_all(p->fd, head, HEAD) != HEAD)
		return false;
	length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
	CHECK(length <= most);
	payload = malloc(length + 1);
	CHECK(payload);
	weft_defer(free, payload);
	if (length && weft_read_all(p->fd, payload, length) != (ssize_t)length)
		return false;
	on_frame(p, head[3], head[4], number_at(head + 5) & 0x7fffffff, payload, length);
	return true;
}

/* Reads a body of `length` bytes. */
static bool skip_body(struct peer *p, size_t length)
{
	char byte;

	while (length && weft_read(p->fd, &byte, 1) == 1)
		length--;
	return !length;
}

/* Answers requests by HTTP/1.1. `text` already holds `length` bytes. */
static void answer_old(struct peer *p, char *text, size_t length, size_t room)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
	const char *body;

	for (;;) {
		while (length < 4 || memcmp(text + length - 4, "\r\n\r\n", 4) != 0) {
			CHECK(length < room);
			if (weft_read(p->fd, text + length, 1) != 1)
				return;
			text[++length] = 0;
		}
		atomic_fetch_add(&p->site->old, 1);
		body = strstr(text, "Content-Length: ");
		if (!skip_body(p, body ? strtoul(body + 16, NULL, 10) : 0) ||
		    weft_write_all(p->fd, answer, sizeof answer - 1) != sizeof answer - 1)
			return;
		length = 0;
	}
}

/* Returns false if the client has spoken HTTP/1.1 and is finished, or has left. */
static bool read_preface(struct peer *p)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	char text[1000] = "";

	if (weft_read_all(p->fd, text, sizeof preface - 1) != sizeof preface - 1)
		return false;
	if (!memcmp(text, preface, sizeof preface - 1))
		return true;
	answer_old(p, text, sizeof preface - 1, sizeof text - 1);
	return false;
}

static void add_headers(struct peer *p, unsigned type, char **rest)
{
	uint32_t id = (uint32_t)atoi(strtok_r(NULL, " ", rest));
	const char *word = strtok_r(NULL, " ", rest);
	unsigned flags = (strchr(word, 'e') ? 1u : 0) | (strchr(word, 'h') ? 4u : 0);
	struct bytes payload = {0};
	char *field;

	while ((field = strtok_r(NULL, " ", rest)))
		add_field(&payload, field);
	add_frame(&p->out, type, flags, id, &payload);
	free(payload.data);
}

static void add_data(struct peer *p, char **rest)
{
	uint32_t id = (uint32_t)atoi(strtok_r(NULL, " ", rest));
	unsigned flags = *strtok_r(NULL, " ", rest) == 'e';
	size_t length = strtoul(strtok_r(NULL, " ", rest), NULL, 10);
	struct bytes payload = {calloc(1, length + 1), length, length};

	add_frame(&p->out, 0, flags, id, &payload);
	free(payload.data);
}

static void add_any(struct peer *p, char **rest)
{
	unsigned type = (unsigned)strtoul(strtok_r(NULL, " ", rest), NULL, 16);
	unsigned flags = (unsigned)strtoul(strtok_r(NULL, " ", rest), NULL, 16);
	uint32_t id = (uint32_t)atoi(strtok_r(NULL, " ", rest));
	const char *hex = strtok_r(NULL, " ", rest);
	struct bytes payload = {0};

	if (*hex != '-')
		add_hex(&payload, hex);
	add_frame(&p->out, type, flags, id, &payload);
	free(payload.data);
}

static void add_numbers(struct peer *p, unsigned type, uint32_t id, uint64_t value, int bytes)
{
	struct bytes payload = {0};

	add_number(&payload, value, bytes);
	add_frame(&p->out, type, 0, id, &payload);
	free(payload.data);
}

/* Returns false if the client has left, or the script closes the connection. */
static bool command(struct peer *p, char *text)
{
#define WORD() strtok_r(NULL, " ", &rest)
#define NUMBER() strtoul(WORD(), NULL, 10)
#define IS(name) (!strcmp(word, name))
#define UNTIL(condition)                                                                                               \
	do {                                                                                                           \
		send_out(p);                                                                                           \
		while (!(condition) && read_frame(p))                                                                  \
			;                                                                                              \
	} while (0)
	char *rest, *word = strtok_r(text, " ", &rest);
	size_t id;

	if (IS("req")) {
		id = NUMBER();
		UNTIL(p->heads >= id);
	} else if (IS("data")) {
		id = NUMBER();
		UNTIL(p->data >= id);
	} else if (IS("window?")) {
		UNTIL(p->windows);
	} else if (IS("h") || IS("c")) {
		add_headers(p, IS("h") ? 1 : 9, &rest);
	} else if (IS("d")) {
		add_data(p, &rest);
	} else if (IS("f")) {
		add_any(p, &rest);
	} else if (IS("set")) {
		id = NUMBER();
		add_numbers(p, 4, 0, (uint64_t)id << 32 | NUMBER(), 6);
	} else if (IS("win") || IS("rst")) {
		id = NUMBER();
		add_numbers(p, IS("win") ? 8 : 3, (uint32_t)id, NUMBER(), 4);
	} else if (IS("goaway")) {
		id = NUMBER();
		add_numbers(p, 7, 0, (uint64_t)id << 32 | NUMBER(), 8);
	} else if (IS("raw")) {
		add_hex(&p->out, WORD());
	} else if (IS("sleep")) {
		send_out(p);
		weft_sleep(NUMBER() * MS * run.factor);
	} else if (IS("close")) {
		send_out(p);
		return false;
	} else {
		CHECK(!"a command");
	}
	return true;
#undef UNTIL
#undef IS
#undef NUMBER
#undef WORD
}

static bool repeat(struct peer *p, const char *text)
{
	unsigned times = 1, n = 0;
	bool ok = true;

	while (*text == ' ')
		text++;
	if (sscanf(text, "x %u %n", &times, &n) < 1)
		times = 1;
	while (ok && times--) {
		char *copy = strdup(text + n);

		CHECK(copy);
		weft_defer(free, copy);
		ok = !*copy || command(p, copy);
	}
	return ok;
}

static void play(struct peer *p, const char *text)
{
	char *script = expand(text), *rest, *part;
	bool ok = true;

	weft_defer(free, script);
	p->bare = !strncmp(text, "bare", 4);
	if (!p->bare)
		add_frame(&p->out, 4, 0, 0, NULL);
	for (part = strtok_r(script + 4 * p->bare, ";", &rest); ok && part; part = strtok_r(NULL, ";", &rest))
		ok = repeat(p, part);
	send_out(p);
	while (ok && read_frame(p))
		;
}

static void answer_all(struct peer *p)
{
	char text[60], head[60];
	unsigned answered = 0;

	add_frame(&p->out, 4, 0, 0, NULL);
	do
		for (; answered < p->heads; answered++) {
			snprintf(head, sizeof head, "h %u h :status=200", 2 * answered + 1);
			command(p, head);
			snprintf(text, sizeof text, "d %u e 5", 2 * answered + 1);
			command(p, text);
		}
	while (send_out(p) && read_frame(p));
}

/* Answers one to four requests, of which the last is the last stream of a GOAWAY. */
static void answer_some(struct peer *p)
{
	uint64_t random = run.seed * 100 + atomic_load(&p->site->accepted);
	unsigned most = 1 + draw(&random) % 4;
	char text[60];

	add_frame(&p->out, 4, 0, 0, NULL);
	for (unsigned answered = 0; answered < most; answered++) {
		snprintf(text, sizeof text, "req %u", answered + 1);
		command(p, text);
		if (answered + 1 == most) {
			snprintf(text, sizeof text, "goaway %u 0", 2 * answered + 1);
			command(p, text);
		}
		snprintf(text, sizeof text, "h %u h :status=200", 2 * answered + 1);
		command(p, text);
		snprintf(text, sizeof text, "d %u e 5", 2 * answered + 1);
		command(p, text);
	}
	while (send_out(p) && read_frame(p))
		;
}

static void end_peer(void *peer)
{
	struct peer *p = peer;

	weft_close(p->fd);
	free(p->out.data);
	free(p);
}

static void *serve_peer(void *peer)
{
	struct peer *p = peer;
	const struct mux_case *c = p->site->test;
	unsigned number = atomic_fetch_add(&p->site->accepted, 1);

	weft_defer(end_peer, p);
	if (!read_preface(p))
		return NULL;
	if (c->restless)
		answer_some(p);
	else if (!number || c->then)
		play(p, number ? c->then : c->script);
	else
		answer_all(p);
	return NULL;
}

static void *accept_all(void *site)
{
	struct site *s = site;
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(s->listener, NULL, NULL, 0)) >= 0) {
		struct peer *p = calloc(1, sizeof *p);

		CHECK(p);
		p->site = s;
		p->fd = fd;
		CHECK(!weft_scope_spawn(&scope, serve_peer, p));
	}
	return NULL;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

struct asked {
	struct site *site;
	weft_http_client_t *client;
	weft_event_t *others; /* the first request of a lazy case waits for this event */
	char result[500];
};

static void add_result(struct asked *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_result(struct asked *a, const char *format, ...)
{
	size_t length = strlen(a->result);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(a->result + length, sizeof a->result - length, format, arguments);
	va_end(arguments);
}

static void informed(weft_http_request_t *r, int status, void *asked)
{
	(void)r;
	add_result(asked, "%d ", status);
}

static const char *error_name(int error)
{
	return error == -ECONNRESET || error == -EPIPE ? "reset"
	       : error == -EBADMSG		       ? "bad"
	       : error == -EMSGSIZE		       ? "large"
	       : error == -ETIMEDOUT		       ? "late"
	       : error == -EAGAIN		       ? "again"
						       : strerror(-error);
}

/* If the body cannot be sent, the response reports the error. */
static void send_body(weft_http_request_t *r, size_t length)
{
	static char data[7000];
	size_t sent = 0;
	ssize_t n = sizeof data;

	while (n == sizeof data && sent < length) {
		n = weft_http_request_write(r, data, sizeof data);
		sent += n > 0 ? (size_t)n : 0;
	}
	if (n == sizeof data)
		weft_http_request_finish(r);
}

static void read_response(weft_http_request_t *r, struct asked *a)
{
	char data[5000];
	size_t length = 0;
	weft_http_text_t trailer;
	ssize_t n;

	while ((n = weft_http_response_read(r, data, sizeof data)) > 0)
		length += (size_t)n;
	trailer = weft_http_response_trailer(r, "X-Sum");
	add_result(a, ":%zu%s%.*s", length, trailer.data ? "+" : "", (int)trailer.length, trailer.data);
	if (n < 0)
		add_result(a, "!%s", error_name((int)n));
}

static void *ask(void *asked)
{
	static char data[12000000];
	struct asked *a = asked;
	const struct mux_case *c = a->site->test;
	weft_http_request_t *r;
	int status;

	CHECK(!weft_http_request_open(a->client, c->method ? c->method : "GET", a->site->url, &r));
	weft_defer(weft_http_request_close, r);
	weft_http_request_on_inform(r, informed, a);
	if (c->streamed)
		send_body(r, c->body);
	else if (c->body)
		weft_http_request_set_body(r, data, c->body);
	status = weft_http_response(r);
	if (a->others)
		weft_event_wait(a->others);
	if (status > 0) {
		add_result(a, "%s%d", weft_http_response_version(r) == 20 ? "" : "old ", status);
		read_response(r, a);
	} else {
		add_result(a, "%s", error_name(status));
	}
	return NULL;
}

/* Begins the requests one after another, each when the server has received the request before it, or after a while. */
static void ask_all(struct site *s, weft_http_client_t *client, struct asked *asked)
{
	weft_event_t others = {0};
	unsigned count = s->test->requests ? s->test->requests : 1, i, k;
	weft_scope_t scope, first;

	weft_scope_open(&first, WEFT_NEVER);
	weft_scope_open(&scope, WEFT_NEVER);
	for (i = 0; i < count; i++) {
		asked[i] = (struct asked){s, client, s->test->lazy && !i ? &others : NULL, ""};
		CHECK(!weft_scope_spawn(i ? &scope : &first, ask, &asked[i]));
		for (k = 0; k < 100 && atomic_load(&s->heads) <= i; k++)
			weft_sleep(MS * run.factor / 5);
	}
	CHECK(!weft_scope_wait(&scope));
	weft_event_set(&others);
	CHECK(!weft_scope_wait(&first));
}

static bool has_events(struct site *s)
{
	char wanted[60];
	bool has = false;

	if (!s->test->events || run.simulated) /* a simulated socket loses all data when it is closed in the middle */
		return true;
	snprintf(wanted, sizeof wanted, "%s|", s->test->events);
	for (int i = 0; i < 200 && !has; i++) {
		weft_mutex_lock(&s->lock);
		has = strstr(s->events, wanted);
		weft_mutex_unlock(&s->lock);
		if (!has)
			weft_sleep(MS * run.factor);
	}
	return has;
}

static void check(struct site *s, const struct asked *asked, const weft_http_client_stats_t *stats)
{
	const struct mux_case *c = s->test;
	char results[1000] = "";
	size_t at = 0;

	for (unsigned i = 0; i < (c->requests ? c->requests : 1); i++)
		at += (size_t)snprintf(results + at, sizeof results - at, "%s%s", i ? ", " : "", asked[i].result);
	if (!fnmatch(c->results, results, 0) && stats->dialed == (c->connections ? c->connections : 1) && has_events(s))
		return;
	printf("not ok - %s: expected %s by %u; got %s by %llu connections; the server got %s\n", c->name, c->results,
	       c->connections ? c->connections : 1, results, (unsigned long long)stats->dialed, s->events);
	atomic_fetch_add(&run.failures, 1);
}

static void open_site(struct site *s, const struct mux_case *c, weft_scope_t *scope)
{
	s->test = c;
	s->listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s->listener >= 0);
	if (c->narrow && !run.simulated)
		CHECK(!setsockopt(s->listener, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int)));
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/", weft_port(s->listener));
	weft_scope_open(scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(scope, accept_all, s));
}

static void close_site(struct site *s, weft_scope_t *scope)
{
	weft_scope_cancel(scope, -ECANCELED);
	CHECK(weft_scope_wait(scope) == -ECANCELED);
	weft_close(s->listener);
	free(s);
}

static void run_case(const struct mux_case *c)
{
	uint64_t time = (c->hasty ? 600 * MS : 20 * SECOND) * run.factor;
	const weft_http_client_config_t config = {.connect_time = time,
						  .header_time = time,
						  .read_time = time,
						  .write_time = time,
						  .host_connections = c->one,
						  .flags = WEFT_HTTP_PRIOR_KNOWLEDGE};
	struct site *s = calloc(1, sizeof *s);
	struct asked asked[REQUESTS_MOST];
	weft_http_client_t *client;
	weft_http_client_stats_t stats;
	weft_scope_t scope;

	CHECK(s && !weft_http_client_open(&client, &config));
	open_site(s, c, &scope);
	ask_all(s, client, asked);
	weft_http_client_stats(client, &stats);
	CHECK(stats.open == stats.idle);
	check(s, asked, &stats);
	CHECK(!weft_http_client_close(client));
	close_site(s, &scope);
}

static void *run_cases(void *unused)
{
	unsigned i;

	while ((i = atomic_fetch_add(&run.next, 1)) < CASES)
		if (mux_cases[i].hasty == run.hasty && (!run.only || strstr(mux_cases[i].name, run.only)))
			run_case(&mux_cases[i]);
	return unused;
}

static void some_cases(bool hasty)
{
	weft_scope_t scope;

	run.hasty = hasty;
	atomic_store(&run.next, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < RUNNERS; i++)
		CHECK(!weft_scope_spawn(&scope, run_cases, NULL));
	CHECK(!weft_scope_wait(&scope));
}

#include "mux_more.h"

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void *everything(void *pass)
{
	some_cases(false);
	some_cases(true);
	if (!run.only)
		more();
	return pass;
}

static void *secure(void *pass)
{
	open_tls(&run.server_tls, &run.client_tls);
	more();
	weft_http_tls_close(run.server_tls);
	weft_http_tls_close(run.client_tls);
	puts("ok - TLS");
	return pass;
}

static bool run_all(uint64_t seed)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;
	int error;

	run.seed = seed;
	error = run.simulated ? weft_simulate(seed, &timeless, everything, &run, &result)
			      : weft_rt_run(NULL, everything, &run, &result);
	if (error)
		printf("not ok - the runtime: %s\n", strerror(-error));
	if (run.simulated && (error || atomic_load(&run.failures)))
		printf("not ok - seed %llu\n", (unsigned long long)seed);
	return !error && result == &run && !atomic_load(&run.failures);
}

int main(int argc, char **argv)
{
	struct seeds seeds;
	bool ok = true;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.only = getenv("MUX_ONLY");
	run.simulated = argc > 1 && !strcmp(argv[1], "simulated");
	run.factor = run.simulated ? 100 : 1;
	if (argc > 1 && !strcmp(argv[1], "tls")) {
		run.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
		return weft_rt_run(NULL, secure, NULL, NULL) != 0;
	}
	seeds = read_seeds(argc > 1 + run.simulated ? argv[1 + run.simulated] : NULL, run.simulated);
	for (uint64_t i = 0; ok && i < seeds.count; i++)
		ok = run_all(seeds.first + i);
	if (ok)
		printf("ok - %d cases, pools, bodies, cancellation\n", CASES);
	return !ok;
}
