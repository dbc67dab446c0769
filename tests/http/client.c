/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client against a server that plays the answers of a table: see client_cases.h. Then tests that no table can
 * express: pools, closed connections, bodies that are streamed, cancellation, URLs.
 *
 *   client [SEED]            over real sockets, by the back end that WEFT_IO names
 *   client tls               bodies by TLS; openssl makes the certificate
 *   client simulated SEEDS   in so many simulated worlds; `client simulated FIRST+SEEDS` begins at another seed
 *
 * CLIENT_ONLY=TEXT in the environment runs only the cases whose names contain the text.
 *
 * Each case has a server of its own, which is a task that knows nothing of weft/http.h. Short answers are also sent
 * byte by byte, and all answers are sent in three parts, divided at random.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <weft/http_client.h>
#include <weft/io.h>
#include <weft/sim.h>

#include "client_cases.h"
#include "seeds.h"

enum {
	CLIENTS = 24,
	REQUESTS = 40,	     /* that a server records */
	REQUEST_MOST = 2000, /* bytes of a request */
	SHORT_ANSWER = 400,  /* bytes; shorter answers are also sent byte by byte */
};

/* Simulated time costs nothing, and the simulated network is slow: all times are longer in a simulation. */
static struct run {
	bool simulated, hasty; /* only the cases with time limits, so that other cases do not delay them */
	uint64_t seed, factor;
	const char *only;
	_Atomic unsigned next_case;
	_Atomic unsigned failures[sizeof kinds / sizeof *kinds];
} run;

enum how { WHOLE, BYTE_BY_BYTE, DIVIDED, WAYS };

static const char *const how_names[] = {"whole", "byte by byte", "divided"};

static void close_fd(int *fd)
{
	weft_close(*fd);
}

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

struct noted {
	unsigned connection;
	char text[REQUEST_MOST]; /* head and body */
	size_t head;
};

struct site {
	const struct client_case *test;
	enum how how;
	uint64_t random, reads; /* random numbers of the server's task, and of the client */
	int listeners[2];
	unsigned ports[2];
	weft_mutex_t lock;
	unsigned accepted, count; /* connections; requests */
	unsigned answered;	  /* requests of the case */
	_Atomic unsigned sending; /* connections that are sending an answer */
	struct noted noted[REQUESTS];
};

/* A connection of the server. */
struct peer {
	struct site *site;
	int fd;
	unsigned number;
	char data[REQUEST_MOST];
	size_t filled;
};

/* Returns false if the client has closed the connection. */
static bool fill(struct peer *p)
{
	ssize_t n =
	    p->filled < sizeof p->data - 1 ? weft_read(p->fd, p->data + p->filled, sizeof p->data - 1 - p->filled) : 0;

	if (n <= 0)
		return false;
	p->filled += (size_t)n;
	p->data[p->filled] = '\0';
	return true;
}

static void drop(struct peer *p, size_t n)
{
	memmove(p->data, p->data + n, p->filled - n + 1);
	p->filled -= n;
}

static struct noted *note(struct peer *p, size_t head)
{
	struct site *s = p->site;
	struct noted *n;

	weft_mutex_lock(&s->lock);
	CHECK(s->count < REQUESTS);
	n = &s->noted[s->count++];
	n->connection = p->number;
	n->head = head;
	memcpy(n->text, p->data, head);
	n->text[head] = '\0';
	weft_mutex_unlock(&s->lock);
	drop(p, head);
	return n;
}

static struct noted *read_head(struct peer *p)
{
	char *end;

	while (!(end = strstr(p->data, "\r\n\r\n")))
		if (!fill(p))
			return NULL;
	return note(p, (size_t)(end + 4 - p->data));
}

/* Reads a request body with a length. Other bodies do not occur here. */
static bool read_request_body(struct peer *p, struct noted *n)
{
	const char *field = strstr(n->text, "Content-Length: ");
	size_t length = field ? strtoul(field + 16, NULL, 10) : 0;

	while (p->filled < length)
		if (!fill(p))
			return false;
	weft_mutex_lock(&p->site->lock);
	memcpy(n->text + n->head, p->data, length);
	n->text[n->head + length] = '\0';
	weft_mutex_unlock(&p->site->lock);
	drop(p, length);
	return true;
}

/* The bytes of a part, in which the ports replace their names. */
static char *expand(const struct site *s, const struct piece *piece, size_t *length)
{
	char *text = malloc(piece->length * piece->times + 40), *at = text, port[8];

	CHECK(text);
	for (unsigned k = 0; k < piece->times; k++)
		for (size_t i = 0; i < piece->length;) {
			const char *from = piece->data + i;
			bool first = piece->length - i >= 6 && !memcmp(from, "@PORT@", 6),
			     second = piece->length - i >= 7 && !memcmp(from, "@OTHER@", 7);

			if (first || second) {
				snprintf(port, sizeof port, "%u", s->ports[second]);
				at = stpcpy(at, port);
				i += first ? 6 : 7;
			} else {
				*at++ = *from;
				i++;
			}
		}
	*length = (size_t)(at - text);
	return text;
}

static bool send_part(struct peer *p, const char *data, size_t length)
{
	return weft_write_all(p->fd, data, length) == (ssize_t)length;
}

static bool send_by(struct peer *p, const char *data, size_t length)
{
	size_t cuts[2] = {0, 0}, i;
	bool ok = true;

	if (p->site->how == BYTE_BY_BYTE && length <= SHORT_ANSWER) {
		for (i = 0; ok && i < length; i++) {
			ok = send_part(p, data + i, 1);
			weft_sleep(20000);
		}
		return ok;
	}
	if (p->site->how == WHOLE || !length)
		return send_part(p, data, length);
	for (i = 0; i < 2; i++)
		cuts[i] = draw(&p->site->random) % (length + 1);
	if (cuts[0] > cuts[1])
		cuts[0] ^= cuts[1], cuts[1] ^= cuts[0], cuts[0] ^= cuts[1];
	ok = send_part(p, data, cuts[0]);
	weft_sleep(300000);
	ok = ok && send_part(p, data + cuts[0], cuts[1] - cuts[0]);
	weft_sleep(300000);
	return ok && send_part(p, data + cuts[1], length - cuts[1]);
}

static void has_sent(_Atomic unsigned *sending)
{
	atomic_fetch_sub(sending, 1);
}

static bool send_answer(struct peer *p, const struct answer *a)
{
	bool ok = true;

	atomic_fetch_add(&p->site->sending, 1);
	weft_defer(has_sent, &p->site->sending);
	for (unsigned i = 0; ok && i < PIECES && a->parts[i].data; i++) {
		size_t length;
		char *text = expand(p->site, &a->parts[i], &length);

		weft_defer(free, text);
		if (a->pause)
			weft_sleep(a->pause * MS * run.factor);
		ok = send_by(p, text, length);
	}
	return ok;
}

static void reset(int fd)
{
	static const struct linger at_once = {1, 0};

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
}

/* The answer to the case's next request. */
static const struct answer *next_answer(struct site *s)
{
	unsigned count = 0, i;

	while (count < ANSWERS && (s->test->answers[count].parts[0].data))
		count++;
	weft_mutex_lock(&s->lock);
	i = s->answered++;
	weft_mutex_unlock(&s->lock);
	if (s->test->loops)
		i %= count;
	return i < count ? &s->test->answers[i] : NULL;
}

static bool is_next(const struct noted *n)
{
	return !strncmp(n->text, "GET /next ", 10);
}

static bool serve_request(struct peer *p)
{
	static const struct answer next = A("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
	struct noted *n = read_head(p);
	const struct answer *a;

	if (!n)
		return false;
	a = is_next(n) ? &next : next_answer(p->site);
	if (!a)
		return false;
	if (a->early && !send_answer(p, a))
		return false;
	if ((!a->early || !strncmp(a->parts[0].data, "HTTP/1.1 1", 10)) && !read_request_body(p, n))
		return false;
	if (a->early && !strncmp(a->parts[0].data, "HTTP/1.1 1", 10))
		a = next_answer(p->site);
	if (!a->early && !send_answer(p, a))
		return false;
	if (a->action == RESET)
		reset(p->fd);
	while (a->action == HANG && fill(p))
		;
	return a->action == STAY;
}

static void *serve_peer(void *peer)
{
	struct peer *p = peer;

	weft_defer(free, p);
	weft_defer(close_fd, &p->fd);
	while (serve_request(p))
		;
	return NULL;
}

struct accepting {
	struct site *site;
	int listener;
};

static void *accept_all(void *argument)
{
	struct accepting *a = argument;
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(a->listener, NULL, NULL, 0)) >= 0) {
		struct peer *p = calloc(1, sizeof *p);

		CHECK(p);
		p->site = a->site;
		p->fd = fd;
		weft_mutex_lock(&a->site->lock);
		p->number = ++a->site->accepted;
		weft_mutex_unlock(&a->site->lock);
		CHECK(!weft_scope_spawn(&scope, serve_peer, p));
	}
	return NULL;
}

/* ---- a case ------------------------------------------------------------------------------------------------------ */

/* The client's result of a case. */
struct outcome {
	char url[200], informs[400], text[400], *problem;
	char *body;
	size_t length;
	int result;
	unsigned connections;
};

static bool fails(struct outcome *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fails(struct outcome *o, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(o->text, sizeof o->text, format, arguments);
	va_end(arguments);
	o->problem = o->text;
	return false;
}

static void informed(weft_http_request_t *r, int status, void *outcome)
{
	struct outcome *o = outcome;
	size_t length = strlen(o->informs);

	if (status == 103)
		CHECK(!weft_http_response_header(r, "Link").data || weft_http_response_header(r, "link").length == 4);
	snprintf(o->informs + length, sizeof o->informs - length, "%s%d", length ? " " : "", status);
}

/* Adds fields from "name: value|name: value". */
static void add_fields(weft_http_request_t *r, const char *fields)
{
	char *text = fields ? strdup(fields) : NULL, *save = NULL, *line, *colon;

	for (line = text ? strtok_r(text, "|", &save) : NULL; line; line = strtok_r(NULL, "|", &save)) {
		colon = strchr(line, ':');
		*colon = '\0';
		CHECK(!weft_http_request_add_header(r, line, colon + 2));
	}
	free(text);
}

static int read_body(weft_http_request_t *r, struct outcome *o, uint64_t *random)
{
	char data[3000];
	ssize_t n;

	while ((n = weft_http_response_read(r, data, 1 + draw(random) % sizeof data)) > 0) {
		o->body = realloc(o->body, o->length + (size_t)n);
		CHECK(o->body);
		memcpy(o->body + o->length, data, (size_t)n);
		o->length += (size_t)n;
	}
	return (int)n;
}

static bool check_text(struct outcome *o, weft_http_text_t value, const char *wanted)
{
	const char *text = strchr(wanted, ' ') + 1;

	return (value.data && value.length == strlen(text) && !memcmp(value.data, text, value.length)) ||
	       fails(o, "not \"%s\": \"%.*s\"", wanted, (int)value.length, value.data ? value.data : "");
}

static void name_of(const char *field, char name[40])
{
	snprintf(name, 40, "%.*s", (int)strcspn(field, ":"), field);
}

static void check_fields(weft_http_request_t *r, const struct client_case *c, struct outcome *o)
{
	char name[40];

	if (c->field && *c->field == '!') {
		if (weft_http_response_header(r, c->field + 1).data)
			fails(o, "a field \"%s\"", c->field + 1);
	} else if (c->field) {
		name_of(c->field, name);
		check_text(o, weft_http_response_header(r, name), c->field);
	}
	if (c->trailer) {
		name_of(c->trailer, name);
		check_text(o, weft_http_response_trailer(r, name), c->trailer);
	}
}

static void ask(weft_http_client_t *client, struct site *s, struct outcome *o)
{
	const struct client_case *c = s->test;
	weft_http_request_t *r;
	char url[200];

	snprintf(url, sizeof url, "http://127.0.0.1:%u%s", s->ports[0], c->target ? c->target : "/");
	CHECK(!weft_http_request_open(client, c->method ? c->method : "GET", url, &r));
	weft_defer(weft_http_request_close, r);
	add_fields(r, c->fields);
	if (c->sends)
		CHECK(!weft_http_request_set_body(r, c->sends, strlen(c->sends)));
	weft_http_request_on_inform(r, informed, o);
	o->result = weft_http_response(r);
	if (o->result > 0) {
		int error = read_body(r, o, &s->reads);

		o->result = error ? error : o->result;
	}
	snprintf(o->url, sizeof o->url, "%s", weft_http_response_url(r));
	if (o->result > 0)
		check_fields(r, c, o);
	CHECK(weft_http_response(r) == o->result);
}

static bool check_body(const struct client_case *c, struct outcome *o)
{
	if (c->length)
		return o->length == c->length || fails(o, "a body of %zu bytes", o->length);
	return !c->body || (o->length == strlen(c->body) && (!o->length || !memcmp(o->body, c->body, o->length))) ||
	       fails(o, "the body \"%.*s\"", (int)o->length, o->body);
}

/* Compares the request lines with "GET /|GET /a", and checks the bodies. */
static bool check_lines(const struct site *s, struct outcome *o)
{
	char lines[1000] = "";
	size_t at = 0;

	for (unsigned i = 0; i < s->count; i++) {
		const struct noted *n = &s->noted[i];

		at += (size_t)snprintf(lines + at, sizeof lines - at, "%s%.*s", i ? "|" : "",
				       (int)(strstr(n->text, " HTTP/1.1\r\n") - n->text), n->text);
		if (n->text[n->head])
			at += (size_t)snprintf(lines + at, sizeof lines - at, "|%s", n->text + n->head);
	}
	return !s->test->lines || !strcmp(lines, s->test->lines) || fails(o, "the requests \"%s\"", lines);
}

static void unlock(weft_mutex_t *lock)
{
	weft_mutex_unlock(lock);
}

static bool check_requests(struct site *s, struct outcome *o)
{
	const struct client_case *c = s->test;
	const char *last;

	weft_mutex_lock(&s->lock);
	weft_defer(unlock, &s->lock);
	last = s->count ? s->noted[s->count - 1].text : "";

	if (c->wants && !strstr(last, c->wants))
		return fails(o, "the last request is \"%s\"", last);
	if (c->lacks && strstr(last, c->lacks))
		return fails(o, "the last request has \"%s\": \"%s\"", c->lacks, last);
	if (c->informs && strcmp(c->informs, o->informs) != 0)
		return fails(o, "the interim responses %s", o->informs);
	if (c->connections && c->connections != s->accepted)
		return fails(o, "%u connections", s->accepted);
	return check_lines(s, o);
}

static unsigned last_connection(struct site *s)
{
	unsigned last;

	weft_mutex_lock(&s->lock);
	last = s->count ? s->noted[s->count - 1].connection : 0;
	weft_mutex_unlock(&s->lock);
	return last;
}

/* Makes one more request, and checks whether it uses the connection of the last request. */
static bool check_after(weft_http_client_t *client, struct site *s, struct outcome *o)
{
	unsigned last = last_connection(s), now;
	char url[300], text[10];
	ssize_t n;

	if (s->test->after == ANY)
		return true;
	while (atomic_load(&s->sending)) /* all bytes of the answer must have been sent */
		weft_sleep(MS);
	weft_sleep(run.simulated ? SECOND : 0);
	CHECK(weft_http_resolve_url(o->url, "/next", url, sizeof url) > 0);
	do
		n = weft_http_get(client, url, text, sizeof text, NULL);
	while (n == -ETIMEDOUT && s->test->hasty); /* a busy machine is late */
	if (n != 4 || memcmp(text, "next", 4) != 0)
		return fails(o, "no answer to the next request: %zd", n);
	now = last_connection(s);
	return (now == last) == (s->test->after == REUSED) ||
	       fails(o, "the next request used %s connection", now == last ? "the same" : "a new");
}

static void check(weft_http_client_t *client, struct site *s, struct outcome *o)
{
	const struct client_case *c = s->test;
	bool is_other = c->or &&o->result == c->or ;

	if (o->problem)
		return;
	if (!is_other && o->result != c->result)
		fails(o, "the result %d (%s)", o->result, o->result < 0 ? strerror(-o->result) : "a status");
	else if (!is_other && check_body(c, o) && check_requests(s, o))
		check_after(client, s, o);
}

static weft_http_client_t *open_client(const struct client_case *c)
{
	uint64_t time = (c->hasty ? 1000 * MS : 30 * SECOND) * run.factor;
	weft_http_client_config_t config = {.header_time = time,
					    .read_time = time,
					    .write_time = time,
					    .wait_time = time,
					    .continue_time = c->hasty ? time / 8 : time,
					    .flags = c->flags,
					    .body = c->limit};
	weft_http_client_t *client;

	CHECK(!weft_http_client_open(&client, &config));
	return client;
}

static void open_site(struct site *s)
{
	for (int i = 0; i < 2; i++) {
		s->listeners[i] = weft_listen("127.0.0.1", 0, 0, 0);
		CHECK(s->listeners[i] >= 0);
		s->ports[i] = (unsigned)weft_port(s->listeners[i]);
	}
}

static bool run_case(const struct client_case *c, enum how how)
{
	struct site *s = calloc(1, sizeof *s);
	struct accepting accepting[2];
	struct outcome o = {0};
	weft_http_client_t *client = open_client(c);
	weft_scope_t scope;

	CHECK(s);
	s->test = c;
	s->how = how;
	s->random = s->reads = run.seed;
	open_site(s);
	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < 2; i++) {
		accepting[i] = (struct accepting){s, s->listeners[i]};
		CHECK(!weft_scope_spawn(&scope, accept_all, &accepting[i]));
	}
	ask(client, s, &o);
	check(client, s, &o);
	CHECK(!weft_http_client_close(client));
	weft_scope_cancel(&scope, -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -ECANCELED);
	for (int i = 0; i < 2; i++)
		weft_close(s->listeners[i]);
	free(s);
	free(o.body);
	if (o.problem)
		printf("not ok - %s (%s): expected %d; got %s\n", c->name, how_names[how], c->result, o.problem);
	return !o.problem;
}

static size_t length_of(const struct client_case *c)
{
	size_t sum = 0;

	for (unsigned i = 0; i < ANSWERS; i++)
		for (unsigned k = 0; k < PIECES; k++)
			sum += c->answers[i].parts[k].length * c->answers[i].parts[k].times;
	return sum;
}

/* A simulation sends the answers in only one of the ways, which its seed chooses. */
static bool run_ways(const struct client_case *c, unsigned number)
{
	bool ok = true;

	for (unsigned how = 0; ok && how < WAYS; how++) {
		if (run.simulated && how != (number + run.seed) % WAYS)
			continue;
		if (how == BYTE_BY_BYTE && length_of(c) > 2 * SHORT_ANSWER)
			continue;
		ok = run_case(c, (enum how)how);
	}
	return ok;
}

static const struct client_case *find_case(unsigned number, unsigned *kind)
{
	for (*kind = 0; *kind < sizeof kinds / sizeof *kinds; ++*kind) {
		if (number < kinds[*kind].count)
			return &kinds[*kind].cases[number];
		number -= kinds[*kind].count;
	}
	return NULL;
}

static void *run_cases(void *unused)
{
	const struct client_case *c;
	unsigned number, kind;

	for (;;) {
		number = atomic_fetch_add(&run.next_case, 1);
		c = find_case(number, &kind);
		if (!c)
			return unused;
		if ((run.only && !strstr(c->name, run.only)) || (run.simulated && c->answers[0].action == RESET))
			continue;
		if (c->hasty != run.hasty)
			continue;
		if (!run_ways(c, number))
			atomic_fetch_add(&run.failures[kind], 1);
	}
}

static void some_cases(bool hasty)
{
	weft_scope_t scope;

	run.hasty = hasty;
	atomic_store(&run.next_case, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, run_cases, NULL));
	CHECK(!weft_scope_wait(&scope));
}

#include "client_more.h"

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void *everything(void *pass)
{
	if (run.simulated && run.seed % 3)
		CHECK(!weft_world_set(&(weft_world_t){.slow = 100000}));
	some_cases(false);
	some_cases(true);
	if (!run.only)
		more();
	return pass;
}

static bool run_all(uint64_t seed)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;
	int error;
	bool ok;

	run.seed = seed;
	error = run.simulated ? weft_simulate(seed, &timeless, everything, &run, &result)
			      : weft_rt_run(NULL, everything, &run, &result);
	ok = !error && result == &run;
	if (!ok)
		printf("not ok - the runtime: %s\n", strerror(-error));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		ok &= !atomic_load(&run.failures[i]);
	if (!ok && run.simulated)
		printf("not ok - seed %llu\n", (unsigned long long)seed);
	return ok;
}

int main(int argc, char **argv)
{
	struct seeds seeds;
	bool ok = true;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.only = getenv("CLIENT_ONLY");
	run.simulated = argc > 1 && !strcmp(argv[1], "simulated");
	run.factor = run.simulated ? 100 : 1;
	if (argc > 1 && !strcmp(argv[1], "tls"))
		return weft_rt_run(NULL, secure, NULL, NULL) != 0;
	seeds = read_seeds(argc > 1 + run.simulated ? argv[1 + run.simulated] : NULL, run.simulated);
	for (uint64_t i = 0; ok && i < seeds.count; i++)
		ok = run_all(seeds.first + i);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!atomic_load(&run.failures[i]))
			printf("ok - %s (%u cases)\n", kinds[i].name, kinds[i].count);
	return !ok;
}
