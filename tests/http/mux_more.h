/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The part of mux.c with our own server. The test can compute its answers from the request: a line with the length and
 * a hash of the received body, and then `n` bytes that follow from `s`, in pieces of `w`, after `t` steps of time.
 */
#ifndef WEFT_TESTS_HTTP_MUX_MORE_H
#define WEFT_TESTS_HTTP_MUX_MORE_H

enum { BODY_MOST = 400000, STEP = 200000 };

#define PAUSE (20 * MS * run.factor)

/* ---- the server -------------------------------------------------------------------------------------------------- */

struct ours {
	weft_http_server_t *server;
	int listener;
	char url[60];
	_Atomic unsigned begun; /* exchanges */
	weft_event_t goes_on;
};

static unsigned parameter(weft_http_t *http, const char *name)
{
	char value[16];

	return weft_http_query_value(http, name, value, sizeof value) > 0 ? (unsigned)atoi(value) : 0;
}

static uint64_t add_to_hash(uint64_t hash, const unsigned char *data, size_t length)
{
	while (length--)
		hash = hash * 31 + *data++;
	return hash;
}

static unsigned char byte_of(unsigned seed, size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + seed);
}

static void mix(weft_http_t *http, void *ours)
{
	struct ours *o = ours;
	unsigned length = parameter(http, "n"), seed = parameter(http, "s"), piece = parameter(http, "w"), i, part;
	unsigned char data[5000];
	uint64_t sum = 0, hash = 0;
	ssize_t n;

	atomic_fetch_add(&o->begun, 1);
	while ((n = weft_http_read(http, data, sizeof data)) > 0) {
		hash = add_to_hash(hash, data, (size_t)n);
		sum += (uint64_t)n;
	}
	if (!n && parameter(http, "t"))
		n = weft_sleep(parameter(http, "t") * STEP * run.factor);
	if (seed % 3 == 0)
		weft_http_inform(http, 103);
	weft_http_set_status(http, 200 + (int)seed % 5 * 100 % 400);
	n = n < 0 ? n : weft_http_printf(http, "%llu %llx\n", (unsigned long long)sum, (unsigned long long)hash);
	for (i = 0; n >= 0 && i < length; i += part) {
		for (part = 0; part < piece && i + part < length; part++)
			data[part] = byte_of(seed, i + part);
		n = weft_http_write(http, data, part);
	}
	if (seed % 4 == 0)
		weft_http_add_trailer(http, "X-Sum", "77");
}

static void wait_to_go_on(weft_http_t *http, void *ours)
{
	struct ours *o = ours;

	atomic_fetch_add(&o->begun, 1);
	if (!weft_event_wait(&o->goes_on))
		weft_http_reply(http, 200, NULL, "hello", 5);
}

static void *serve_ours(void *ours)
{
	struct ours *o = ours;

	CHECK(!(run.server_tls ? weft_http_serve_tls(o->server, o->listener, run.server_tls)
			       : weft_http_serve(o->server, o->listener)));
	return NULL;
}

static void start_at(struct ours *o, weft_scope_t *scope, unsigned streams, unsigned port)
{
	const weft_http_config_t config = {.body = 1u << 30,
					   .streams = streams,
					   .body_time = 20 * SECOND * run.factor,
					   .write_time = 20 * SECOND * run.factor};

	memset(o, 0, sizeof *o);
	CHECK(!weft_http_open(&o->server, &config));
	CHECK(!weft_http_route(o->server, "* /mix", mix, o) &&
	      !weft_http_route(o->server, "* /wait", wait_to_go_on, o));
	o->listener = weft_listen("127.0.0.1", port, 0, 0);
	CHECK(o->listener >= 0);
	snprintf(o->url, sizeof o->url, "http%s://127.0.0.1:%d", run.server_tls ? "s" : "", weft_port(o->listener));
	weft_scope_open(scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(scope, serve_ours, o));
}

static void start(struct ours *o, weft_scope_t *scope, unsigned streams)
{
	start_at(o, scope, streams, 0);
}

static void stop(struct ours *o, weft_scope_t *scope)
{
	CHECK(!weft_http_stop(o->server, weft_now() + 20 * SECOND * run.factor));
	CHECK(!weft_scope_wait(scope));
	weft_http_close(o->server);
	weft_close(o->listener);
}

static weft_http_client_t *make_client(weft_http_client_config_t config)
{
	weft_http_client_t *client;

	config.header_time = config.read_time = config.write_time = config.wait_time = 20 * SECOND * run.factor;
	config.tls = run.client_tls;
	config.flags |= WEFT_HTTP_PRIOR_KNOWLEDGE;
	CHECK(!weft_http_client_open(&client, &config));
	return client;
}

static weft_http_client_stats_t stats_of(weft_http_client_t *client)
{
	weft_http_client_stats_t stats;

	weft_http_client_stats(client, &stats);
	return stats;
}

static weft_http_request_t *begin(weft_http_client_t *client, const char *method, const char *url, const char *path)
{
	weft_http_request_t *r;
	char text[200];

	snprintf(text, sizeof text, "%s%s", url, path);
	CHECK(!weft_http_request_open(client, method, text, &r));
	return r;
}

/* ---- random requests --------------------------------------------------------------------------------------------- */

/* A request ends by its response, its task leaves it in the middle, it has a deadline, or its task is cancelled. */
enum end { WHOLE, LEFT, DEADLINE, CANCELED, ENDS };

struct program {
	weft_http_client_t *client;
	struct ours *ours;
	uint64_t random;
	unsigned requests, done[ENDS];
	bool ends; /* false: each request ends by its response */
};

struct random_request {
	struct program *program;
	enum end end;
	size_t sends, gets, leaves_at;
	unsigned seed;
	uint64_t random;
	bool over;
};

static unsigned char *make_body(size_t length, unsigned seed, uint64_t *hash)
{
	unsigned char *data = malloc(length + 1);

	CHECK(data);
	for (size_t i = 0; i < length; i++)
		data[i] = byte_of(seed + 1, i);
	*hash = add_to_hash(0, data, length);
	return data;
}

/* Returns false if the request ends in this function. */
static bool send_pieces(weft_http_request_t *r, struct random_request *q, const unsigned char *data, bool known)
{
	size_t sent = 0, piece;
	ssize_t n;

	if (known)
		CHECK(!weft_http_request_set_length(r, q->sends));
	while (sent < q->sends) {
		piece = 1 + draw(&q->random) % 30000;
		piece = piece < q->sends - sent ? piece : q->sends - sent;
		n = weft_http_request_write(r, data + sent, piece);
		if (n == -ETIMEDOUT && q->end == DEADLINE)
			return false;
		CHECK(n == (ssize_t)piece);
		sent += piece;
		if (q->end == LEFT && sent > q->leaves_at)
			return false;
	}
	n = weft_http_request_finish(r);
	CHECK(!n || (n == -ETIMEDOUT && q->end == DEADLINE));
	return !n;
}

static bool send_request(weft_http_request_t *r, struct random_request *q, const unsigned char *data)
{
	unsigned how = draw(&q->random) % 3;

	if (!q->sends || how)
		return !q->sends || send_pieces(r, q, data, how == 1);
	CHECK(!weft_http_request_set_body(r, data, q->sends));
	return true;
}

static bool check_response(weft_http_request_t *r, struct random_request *q, uint64_t hash, bool head_only)
{
	unsigned char data[7000];
	char line[60];
	size_t length, got = 0, wanted = head_only ? 0 : q->gets;
	weft_http_text_t trailer;
	ssize_t n;
	int status = weft_http_response(r);

	if (status == -ETIMEDOUT && q->end == DEADLINE)
		return false;
	CHECK(status == 200 + (int)q->seed % 5 * 100 % 400 && weft_http_response_version(r) == 20);
	length = (size_t)snprintf(line, sizeof line, "%zu %llx\n", q->sends, (unsigned long long)hash);
	wanted += head_only ? 0 : length;
	while ((n = weft_http_response_read(r, data, 1 + draw(&q->random) % sizeof data)) > 0) {
		for (ssize_t i = 0; i < n; i++, got++)
			CHECK(got < wanted &&
			      data[i] == (got < length ? (unsigned char)line[got] : byte_of(q->seed, got - length)));
		if (q->end == LEFT && got > q->leaves_at)
			return false;
		if (!(draw(&q->random) % 20))
			weft_task_yield();
	}
	if (n == -ETIMEDOUT && q->end == DEADLINE)
		return false;
	CHECK(!n && got == wanted);
	trailer = weft_http_response_trailer(r, "x-sum");
	CHECK(head_only || !trailer.data == (q->seed % 4 != 0));
	return true;
}

static void *random_request(void *request)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"};
	struct random_request *q = request;
	const char *method = methods[draw(&q->random) % 6];
	weft_http_request_t *r;
	unsigned char *data;
	char path[100];
	uint64_t hash;

	snprintf(path, sizeof path, "/mix?n=%zu&s=%u&w=%u&t=%u", q->gets, q->seed,
		 1 + (unsigned)draw(&q->random) % 5000, draw(&q->random) % 3 ? 0 : (unsigned)draw(&q->random) % 10);
	r = begin(q->program->client, method, q->program->ours->url, path);
	weft_defer(weft_http_request_close, r);
	data = make_body(q->sends, q->seed, &hash);
	weft_defer(free, data);
	if (q->end == DEADLINE)
		weft_http_request_set_deadline(r, weft_now() + draw(&q->random) % 20 * STEP * run.factor);
	q->over = send_request(r, q, data) && check_response(r, q, hash, !strcmp(method, "HEAD"));
	return NULL;
}

static size_t draw_size(uint64_t *random)
{
	static const size_t most[] = {1, 10, 5000, BODY_MOST};

	return draw(random) % most[draw(random) % 4];
}

static void run_request(struct program *p)
{
	struct random_request q = {.program = p, .random = draw(&p->random) << 31 | draw(&p->random)};
	weft_scope_t scope;
	weft_task_t task;
	int result;

	q.seed = draw(&q.random) % 1000;
	q.end = !p->ends || draw(&q.random) % 2 ? WHOLE : (enum end)(draw(&q.random) % ENDS);
	q.sends = draw(&q.random) % 2 ? draw_size(&q.random) : 0;
	q.gets = draw_size(&q.random);
	q.leaves_at = draw_size(&q.random);
	if (q.end != CANCELED) {
		random_request(&q);
		CHECK(q.over || q.end != WHOLE);
	} else {
		weft_scope_open(&scope, WEFT_NEVER);
		CHECK(!weft_scope_spawn_with(&scope, &task, random_request, &q, NULL));
		weft_sleep(draw(&p->random) % 10 * STEP * run.factor);
		weft_task_cancel(&task);
		result = weft_join(&task, NULL);
		CHECK(result == -ECANCELED || (!result && q.over));
		(void)weft_scope_wait(&scope);
	}
	p->done[q.over ? WHOLE : q.end]++;
}

static void *run_program(void *program)
{
	struct program *p = program;

	for (unsigned i = 0; i < p->requests; i++)
		run_request(p);
	return NULL;
}

/* Requests of many tasks over few connections: each request gets its own answer, or ends as drawn. A server
 * counts the handlers of reset streams, and refuses requests while there are many: so the last requests end
 * only by their responses. */
static void random_programs(unsigned streams, unsigned connections, bool ends)
{
	enum { PROGRAMS = 24 };
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = connections});
	struct program programs[PROGRAMS];
	unsigned done[ENDS] = {0};
	struct ours o;
	weft_scope_t server, tasks;
	weft_http_client_stats_t stats;

	start(&o, &server, streams);
	weft_scope_open(&tasks, WEFT_NEVER);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		programs[i] = (struct program){.client = client, .ours = &o, .random = run.seed * 1000 + i};
		programs[i].requests = run.simulated ? 3 : 12;
		programs[i].ends = ends;
		CHECK(!weft_scope_spawn(&tasks, run_program, &programs[i]));
	}
	CHECK(!weft_scope_wait(&tasks));
	for (unsigned i = 0; i < PROGRAMS; i++)
		for (unsigned k = 0; k < ENDS; k++)
			done[k] += programs[i].done[k];
	stats = stats_of(client);
	if (!run.simulated && ends)
		CHECK(done[WHOLE] > 100 && done[LEFT] && done[DEADLINE] && done[CANCELED]);
	/* If a client is cancelled while it dials, its connection is closed. */
	CHECK(stats.idle == stats.open && stats.open <= connections && stats.dialed <= connections + PROGRAMS);
	CHECK(!weft_http_client_close(client));
	stop(&o, &server);
}

/* ---- one request ends, the other requests continue --------------------------------------------------------------- */

struct waiting {
	weft_http_client_t *client;
	struct ours *ours;
	_Atomic bool answered; /* a task of those that share the connection sets it */
};

static void *waits(void *waiting)
{
	struct waiting *w = waiting;
	weft_http_request_t *r = begin(w->client, "GET", w->ours->url, "/wait");
	char text[10];

	weft_defer(weft_http_request_close, r);
	CHECK(weft_http_response(r) == 200 && weft_http_response_read_all(r, text, sizeof text) == 5);
	w->answered = true;
	return NULL;
}

/* Any request may be the request that reads for all. The first requests are cancelled in turn, from a random
 * request on. */
static void cancelled_requests_end_no_other(void)
{
	enum { WAITING = 9, CANCELLED = 6 };
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct waiting waiting[WAITING];
	weft_task_t tasks[WAITING];
	struct ours o;
	weft_scope_t server, scope;
	uint64_t random = run.seed;
	unsigned i, first = draw(&random) % WAITING;

	start(&o, &server, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	for (i = 0; i < WAITING; i++) {
		waiting[i] = (struct waiting){client, &o, false};
		CHECK(!weft_scope_spawn_with(&scope, &tasks[i], waits, &waiting[i], NULL));
	}
	while (atomic_load(&o.begun) < WAITING)
		weft_sleep(PAUSE / 20);
	for (i = 0; i < CANCELLED; i++) {
		weft_task_cancel(&tasks[(first + i) % WAITING]);
		CHECK(weft_join(&tasks[(first + i) % WAITING], NULL) == -ECANCELED);
	}
	weft_event_set(&o.goes_on);
	for (i = CANCELLED; i < WAITING; i++) {
		CHECK(!weft_join(&tasks[(first + i) % WAITING], NULL));
		CHECK(waiting[(first + i) % WAITING].answered);
	}
	(void)weft_scope_wait(&scope);
	CHECK(stats_of(client).dialed == 1 && stats_of(client).idle == 1);
	CHECK(!weft_http_client_close(client));
	stop(&o, &server);
}

static void get(weft_http_client_t *client, struct ours *o, unsigned length)
{
	weft_http_request_t *r;
	char path[60], *data = malloc(length + 100);
	ssize_t n;

	CHECK(data);
	snprintf(path, sizeof path, "/mix?n=%u&s=5&w=3000", length);
	r = begin(client, "GET", o->url, path);
	CHECK(weft_http_response(r) == 200);
	n = weft_http_response_read_all(r, data, length + 100);
	CHECK(n == (ssize_t)length + 4);
	weft_http_request_close(r);
	free(data);
}

/* A caller that does not read, and a caller whose body the server does not read, delay no other request. */
static void slow_requests_hold_up_no_other(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 1});
	weft_http_request_t *slow[6], *full;
	static char data[700000];
	struct ours o;
	weft_scope_t server;
	ssize_t n;

	start(&o, &server, 0);
	for (int i = 0; i < 6; i++) {
		slow[i] = begin(client, "GET", o.url, "/mix?n=600000&s=5&w=5000");
		CHECK(weft_http_response(slow[i]) == 200);
	}
	full = begin(client, "POST", o.url, "/wait");
	weft_http_request_set_deadline(full, weft_now() + PAUSE);
	CHECK(weft_http_request_write(full, data, sizeof data) == -ETIMEDOUT);
	for (int i = 0; i < 20; i++)
		get(client, &o, 20000);
	for (int i = 0; i < 6; i++) {
		n = weft_http_response_read_all(slow[i], data, sizeof data);
		CHECK(n == 600004 && (unsigned char)data[n - 1] == byte_of(5, 599999));
		weft_http_request_close(slow[i]);
	}
	weft_http_request_close(full);
	weft_event_set(&o.goes_on);
	CHECK(stats_of(client).dialed == 1 && !weft_http_client_close(client));
	stop(&o, &server);
}

/* ---- servers that refuse ----------------------------------------------------------------------------------------- */

struct restless {
	weft_http_client_t *client;
	struct site *site;
	_Atomic unsigned answered, refused;
};

static void *asks_restless(void *restless)
{
	struct restless *x = restless;
	char text[10];
	int status;

	for (int i = 0; i < 10; i++) {
		ssize_t n = weft_http_post(x->client, x->site->url, NULL, "abc", 3, text, sizeof text, &status);

		CHECK(n == -EAGAIN || (n == 5 && status == 200));
		atomic_fetch_add(n == 5 ? &x->answered : &x->refused, 1);
	}
	return NULL;
}

/* Connections end by GOAWAY while requests join them. A request is answered, or was refused twice; none waits
 * for ever. */
static void no_request_is_lost_by_goaway(void)
{
	static const struct mux_case test = {.name = "restless", .restless = 1};
	struct site *s = calloc(1, sizeof *s);
	struct restless x = {.client = make_client((weft_http_client_config_t){0}), .site = s};
	weft_scope_t scope, clients;

	CHECK(s);
	open_site(s, &test, &scope);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < 12; i++)
		CHECK(!weft_scope_spawn(&clients, asks_restless, &x));
	CHECK(!weft_scope_wait(&clients) && x.answered + x.refused == 120 && x.answered > 20);
	CHECK(!weft_http_client_close(x.client));
	close_site(s, &scope);
}

/* The client remembers that an origin required HTTP/1.1, also while it has no connection to that origin. */
static void an_old_origin_is_remembered(void)
{
	static const struct mux_case test = {.name = "old", .script = "req 1; rst 1 13"};
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct site *s = calloc(1, sizeof *s);
	weft_scope_t scope;
	char text[10];
	int status;

	CHECK(s);
	open_site(s, &test, &scope);
	for (unsigned i = 1; i <= 3; i++) {
		CHECK(weft_http_get(client, s->url, text, sizeof text, &status) == 5 && status == 200);
		CHECK(atomic_load(&s->old) == i && atomic_load(&s->heads) == 1);
		CHECK(stats_of(client).dialed == 1 + i && stats_of(client).idle == 1);
		weft_http_client_close_idle(client);
	}
	CHECK(stats_of(client).repeated == 1 && !weft_http_client_close(client));
	close_site(s, &scope);
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

struct getting {
	weft_http_client_t *client;
	struct ours *ours;
	unsigned times;
};

static void *gets(void *getting)
{
	const struct getting *g = getting;

	for (unsigned i = 0; i < g->times; i++)
		get(g->client, g->ours, 100);
	return NULL;
}

/* At most as many requests run at a time as the server allows; further requests wait. */
static void streams_are_limited(unsigned streams, unsigned ours)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 1, .streams = ours});
	struct ours o;
	struct getting g = {client, &o, 5};
	weft_scope_t server, clients;
	weft_http_client_stats_t stats;

	start(&o, &server, streams);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < 20; i++)
		CHECK(!weft_scope_spawn(&clients, gets, &g));
	CHECK(!weft_scope_wait(&clients));
	stats = stats_of(client);
	CHECK(stats.requests == 100 && stats.dialed == 1 && !stats.repeated && stats.idle == 1);
	CHECK(!weft_http_client_close(client));
	stop(&o, &server);
}

/* A request that waits for a permit of the client, and then joins a connection, returns the permit of its host. */
static void permits_are_given_back(void)
{
	weft_http_client_t *client =
	    make_client((weft_http_client_config_t){.connections = 2, .host_connections = 2, .streams = 2});
	struct ours o, other;
	struct getting g = {client, &o, 10};
	struct waiting w = {client, &o, false}, first = {client, &other, false};
	weft_scope_t server, other_server, clients;
	unsigned i;

	start(&o, &server, 0);
	start(&other, &other_server, 0);
	weft_scope_open(&clients, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&clients, waits, &first));
	while (!atomic_load(&other.begun))
		weft_sleep(PAUSE / 20);
	for (i = 0; i < 5; i++)
		CHECK(!weft_scope_spawn(&clients, gets, &g));
	while (atomic_load(&o.begun) < 50)
		weft_sleep(PAUSE / 20);
	weft_event_set(&other.goes_on);
	CHECK(!weft_scope_wait(&clients));
	weft_scope_open(&clients, WEFT_NEVER);
	for (i = 0; i < 4; i++)
		CHECK(!weft_scope_spawn(&clients, waits, &w));
	for (i = 0; i < 1000 && atomic_load(&o.begun) < 54; i++)
		weft_sleep(PAUSE / 20);
	CHECK(atomic_load(&o.begun) == 54);
	weft_event_set(&o.goes_on);
	CHECK(!weft_scope_wait(&clients) && !weft_http_client_close(client));
	stop(&o, &server);
	stop(&other, &other_server);
}

static void idle_connections_end(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.idle_time = 5 * PAUSE});
	struct ours o;
	weft_scope_t server;
	unsigned port;

	start(&o, &server, 0);
	port = (unsigned)weft_port(o.listener);
	for (int i = 0; i < 3; i++)
		get(client, &o, 10);
	CHECK(stats_of(client).dialed == 1 && stats_of(client).idle == 1);
	weft_sleep(6 * PAUSE);
	get(client, &o, 10);
	CHECK(stats_of(client).dialed == 2 && stats_of(client).open == 1);
	weft_http_client_close_idle(client);
	CHECK(!stats_of(client).open);
	/* The server ends the connection meanwhile. The client reads that end before it uses the connection. */
	get(client, &o, 10);
	stop(&o, &server);
	weft_sleep(PAUSE);
	CHECK(stats_of(client).idle == 1);
	start_at(&o, &server, 0, port);
	get(client, &o, 10);
	CHECK(stats_of(client).repeated == 0 && stats_of(client).open == 1);
	CHECK(!weft_http_client_close(client));
	stop(&o, &server);
}

static void *lets_go_on(void *ours)
{
	weft_sleep(PAUSE);
	weft_event_set(&((struct ours *)ours)->goes_on);
	return NULL;
}

/* A server that stops answers its current requests, and refuses further requests, which the client sends to
 * the next server. */
static void waiting_requests_are_answered_by_a_server_that_stops(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct ours o;
	struct waiting w = {client, &o, false};
	weft_scope_t server, scope;

	start(&o, &server, 0);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, waits, &w));
	while (!atomic_load(&o.begun))
		weft_sleep(PAUSE / 20);
	CHECK(!weft_scope_spawn(&scope, lets_go_on, &o));
	stop(&o, &server);
	CHECK(!weft_scope_wait(&scope) && w.answered);
	CHECK(!stats_of(client).open || stats_of(client).idle);
	CHECK(!weft_http_client_close(client));
}

/* Threads that are not tasks share a connection with tasks, and read for them. */
static void threads_share_a_connection(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 1});
	struct ours o;
	struct getting g = {client, &o, 40};
	weft_scope_t server, clients;
	pthread_t threads[4];

	start(&o, &server, 0);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_create(&threads[i], NULL, gets, &g));
		CHECK(!weft_scope_spawn(&clients, gets, &g));
	}
	CHECK(!weft_scope_wait(&clients));
	weft_blocking
	{
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	CHECK(stats_of(client).dialed == 1 && !stats_of(client).repeated && !weft_http_client_close(client));
	stop(&o, &server);
}

/* A client that must not speak HTTP/2 speaks HTTP/1.1. */
static void http1_may_be_demanded(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.flags = WEFT_HTTP_ONLY_1});
	struct ours o;
	weft_scope_t server;
	weft_http_request_t *r;

	start(&o, &server, 0);
	r = begin(client, "GET", o.url, "/mix?n=1&w=1");
	CHECK(weft_http_response(r) == 200 && weft_http_response_version(r) == 11);
	weft_http_request_close(r);
	CHECK(!weft_http_client_close(client));
	stop(&o, &server);
}

static void more(void)
{
	random_programs(0, 1, true);
	random_programs(3, 4, false);
	cancelled_requests_end_no_other();
	slow_requests_hold_up_no_other();
	streams_are_limited(4, 0);
	streams_are_limited(0, 3);
	permits_are_given_back();
	no_request_is_lost_by_goaway();
	an_old_origin_is_remembered();
	idle_connections_end();
	waiting_requests_are_answered_by_a_server_that_stops();
	if (run.server_tls)
		http1_may_be_demanded();
	if (!run.simulated)
		threads_share_a_connection();
}

#endif
