/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tests of client.c that no table can express. Each server here is a function that serves a connection. */
#ifndef WEFT_TESTS_HTTP_CLIENT_MORE_H
#define WEFT_TESTS_HTTP_CLIENT_MORE_H

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define PAUSE (20 * MS * run.factor)

/* ---- servers ----------------------------------------------------------------------------------------------------- */

struct service {
	void (*serve)(struct service *s, int fd, unsigned number);
	int listener;
	_Atomic unsigned accepted, requests, active, most, resets;
	weft_event_t event;
	char url[60];
};

struct visit {
	struct service *service;
	int fd;
	unsigned number;
};

static void *serve_visit(void *visit)
{
	struct visit v = *(struct visit *)visit;

	free(visit);
	weft_defer(close_fd, &v.fd);
	v.service->serve(v.service, v.fd, v.number);
	return NULL;
}

static void *serve_visits(void *service)
{
	struct service *s = service;
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(s->listener, NULL, NULL, 0)) >= 0) {
		struct visit *v = malloc(sizeof *v);

		CHECK(v);
		*v = (struct visit){s, fd, atomic_fetch_add(&s->accepted, 1) + 1};
		CHECK(!weft_scope_spawn(&scope, serve_visit, v));
	}
	return NULL;
}

static void start(struct service *s, weft_scope_t *scope, void (*serve)(struct service *, int, unsigned))
{
	memset(s, 0, sizeof *s);
	s->serve = serve;
	s->listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s->listener >= 0);
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/", weft_port(s->listener));
	CHECK(!weft_scope_spawn(scope, serve_visits, s));
}

static void stop(weft_scope_t *scope)
{
	weft_scope_cancel(scope, -ECANCELED);
	CHECK(weft_scope_wait(scope) == -ECANCELED);
}

/* Reads a head, and nothing after it. Returns false if the client has left. */
static bool next_request(struct service *s, int fd)
{
	char text[1000];
	size_t length = 0;
	ssize_t n;

	while (length < 4 || memcmp(text + length - 4, "\r\n\r\n", 4) != 0) {
		n = weft_read(fd, text + length, 1);
		if (n <= 0)
			return false;
		length++;
	}
	atomic_fetch_add(&s->requests, 1);
	return true;
}

static bool say(int fd, const char *text)
{
	return weft_write_all(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static void answer_all(struct service *s, int fd, unsigned number)
{
	(void)number;
	while (next_request(s, fd) && say(fd, ANSWER))
		;
}

/* Counts how many requests are answered at the same time. */
static void answer_slowly(struct service *s, int fd, unsigned number)
{
	unsigned now, most;

	(void)number;
	while (next_request(s, fd)) {
		now = atomic_fetch_add(&s->active, 1) + 1;
		for (most = atomic_load(&s->most); now > most;)
			if (atomic_compare_exchange_weak(&s->most, &most, now))
				break;
		weft_sleep(PAUSE / 4);
		atomic_fetch_sub(&s->active, 1);
		if (!say(fd, ANSWER))
			return;
	}
}

static void never_answer(struct service *s, int fd, unsigned number)
{
	(void)number;
	if (next_request(s, fd))
		weft_event_wait(&s->event);
}

/* The first connection answers one request, and is closed when the second request arrives. Connections after the second
 * are closed immediately. */
static void close_on_second(struct service *s, int fd, unsigned number)
{
	if (number == 1 && next_request(s, fd) && say(fd, ANSWER))
		(void)next_request(s, fd);
	else if (number == 2)
		answer_all(s, fd, number);
}

static void close_after_first(struct service *s, int fd, unsigned number)
{
	(void)number;
	if (next_request(s, fd))
		say(fd, ANSWER);
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static weft_http_client_t *make_client(weft_http_client_config_t config)
{
	weft_http_client_t *client;

	if (!config.header_time)
		config.header_time = 20 * SECOND * run.factor;
	CHECK(!weft_http_client_open(&client, &config));
	return client;
}

static void get(weft_http_client_t *client, const char *url)
{
	char text[10];
	int status = 0;
	ssize_t n = weft_http_get(client, url, text, sizeof text, &status);

	if (n != 5)
		printf("# %s: %s\n", url, strerror((int)-n));
	CHECK(n == 5 && status == 200 && !memcmp(text, "hello", 5));
}

static weft_http_request_t *begin(weft_http_client_t *client, const char *method, const char *url)
{
	weft_http_request_t *r;

	CHECK(!weft_http_request_open(client, method, url, &r));
	return r;
}

/* ---- URLs -------------------------------------------------------------------------------------------------------- */

static void urls_are_resolved(void)
{
	/* RFC 3986, 5.4, restricted to results that are http URLs. */
	static const char *const pairs[][2] = {
	    {"g", "http://a/b/c/g"},
	    {"./g", "http://a/b/c/g"},
	    {"g/", "http://a/b/c/g/"},
	    {"/g", "http://a/g"},
	    {"//g", "http://g/"},
	    {"?y", "http://a/b/c/d;p?y"},
	    {"g?y", "http://a/b/c/g?y"},
	    {"#s", "http://a/b/c/d;p?q"},
	    {"g#s", "http://a/b/c/g"},
	    {"g?y#s", "http://a/b/c/g?y"},
	    {";x", "http://a/b/c/;x"},
	    {"g;x", "http://a/b/c/g;x"},
	    {"g;x?y#s", "http://a/b/c/g;x?y"},
	    {"", "http://a/b/c/d;p?q"},
	    {".", "http://a/b/c/"},
	    {"./", "http://a/b/c/"},
	    {"..", "http://a/b/"},
	    {"../", "http://a/b/"},
	    {"../g", "http://a/b/g"},
	    {"../..", "http://a/"},
	    {"../../", "http://a/"},
	    {"../../g", "http://a/g"},
	    {"../../../g", "http://a/g"},
	    {"../../../../g", "http://a/g"},
	    {"/./g", "http://a/g"},
	    {"/../g", "http://a/g"},
	    {"g.", "http://a/b/c/g."},
	    {".g", "http://a/b/c/.g"},
	    {"g..", "http://a/b/c/g.."},
	    {"..g", "http://a/b/c/..g"},
	    {"./../g", "http://a/b/g"},
	    {"./g/.", "http://a/b/c/g/"},
	    {"g/./h", "http://a/b/c/g/h"},
	    {"g/../h", "http://a/b/c/h"},
	    {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
	    {"g;x=1/../y", "http://a/b/c/y"},
	    {"g?y/./x", "http://a/b/c/g?y/./x"},
	    {"g?y/../x", "http://a/b/c/g?y/../x"},
	    {"g#s/../x", "http://a/b/c/g"},
	    {"HTTP://EXAMPLE.org:80", "http://example.org/"},
	    {"https://h:443/x", "https://h/x"},
	    {"http://h:8080", "http://h:8080/"},
	    {"http://h:/x", "http://h/x"},
	    {"http://[::1]:80/", "http://[::1]/"},
	    {"http://[::1]:81?q", "http://[::1]:81/?q"},
	    {"//h/../../x", "http://h/x"},
	    /* Refused because the result is no http URL, or no safe URL. */
	    {"g:h", NULL},
	    {"http:g", NULL},
	    {"mailto:a@b", NULL},
	    {"http://", NULL},
	    {"http:///x", NULL},
	    {"//", NULL},
	    {"http://u@h/", NULL},
	    {"http://u:p@h/", NULL},
	    {"http://h:x/", NULL},
	    {"http://h:65536/", NULL},
	    {"http://h:0/", NULL},
	    {"http://h:99999999999999999999/", NULL},
	    {"http://.h/", NULL},
	    {"http://./", NULL},
	    {"http://@h/", NULL},
	    {"http://[::1/", NULL},
	    {"http://[::1]x/", NULL},
	    {"http://[]/", NULL},
	    {"http://[h]/", NULL},
	    {"http://h h/", NULL},
	    {"http://h/ x", NULL},
	    {"http://h/\r\nX: y", NULL},
	    {"http://h/\tx", NULL},
	    {"http://h\\x/", NULL},
	    {"http://h/\303\204", NULL},
	    {"http://h/\177", NULL},
	    {"http://a%20b/", NULL},
	    {"http://h%00/", NULL},
	    {" http://h/", NULL},
	    {"http://<h>/", NULL},
	};
	char url[100], few[10];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		ssize_t n = weft_http_resolve_url("http://a/b/c/d;p?q", pairs[i][0], url, sizeof url);

		if (pairs[i][1] ? n != (ssize_t)strlen(url) || strcmp(url, pairs[i][1]) != 0 : n != -EINVAL) {
			printf("not ok - \"%s\" is %zd, \"%s\"\n", pairs[i][0], n, n < 0 ? "" : url);
			abort();
		}
	}
	CHECK(weft_http_resolve_url("http://a/b", "c", few, sizeof few) == -ENOSPC);
	CHECK(weft_http_resolve_url("http://a/", "", few, sizeof few) == 9);
	CHECK(weft_http_resolve_url("ftp://a/", "b", url, sizeof url) == -EINVAL);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

static void wrong_use_is_refused(void)
{
	static const char *const methods[] = {"", "GET ", "G\r\nT", "G:T", "CONNECT", "\303\204"};
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	weft_http_request_t *r;
	weft_http_client_t *none;
	ssize_t n;
	char text[10];

	CHECK(weft_http_client_open(&none, &(weft_http_client_config_t){.flags = 1u << 30}) == -EINVAL);
	CHECK(weft_http_client_open(&none, &(weft_http_client_config_t){.user_agent = "a\r\nb"}) == -EINVAL);
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		CHECK(weft_http_request_open(client, methods[i], "http://h/", &r) == -EINVAL);
	CHECK(weft_http_request_open(client, "GET", "http://h/ HTTP/1.1\r\nX: y", &r) == -EINVAL);
	n = weft_http_get(client, "https://127.0.0.1:1/", text, sizeof text, NULL);
	CHECK(n == -ENOTSUP || n == -ECONNREFUSED); /* with OpenSSL, or without it */
	CHECK(weft_http_get(client, "http://127.0.0.1:1/", text, sizeof text, NULL) == -ECONNREFUSED);
	r = begin(client, "POST", "http://127.0.0.1:1/");
	CHECK(weft_http_client_close(client) == -EBUSY);
	CHECK(weft_http_request_add_header(r, "X", "a\r\nY: b") == -EINVAL);
	CHECK(weft_http_request_add_header(r, "X Y", "a") == -EINVAL);
	CHECK(weft_http_request_add_header(r, "", "a") == -EINVAL);
	CHECK(weft_http_request_add_header(r, "content-length", "1") == -EINVAL);
	CHECK(weft_http_request_add_header(r, "Transfer-Encoding", "chunked") == -EINVAL);
	CHECK(weft_http_request_add_header(r, "Connection", "close") == -EINVAL);
	CHECK(weft_http_request_set_flags(r, 1u << 30) == -EINVAL);
	CHECK(weft_http_response_read(r, text, 1) == -EINPROGRESS);
	CHECK(!weft_http_request_set_length(r, 5));
	CHECK(weft_http_response(r) == -EINPROGRESS && weft_http_request_finish(r) == -EINPROGRESS);
	CHECK(weft_http_request_write(r, "123456", 6) == -EMSGSIZE);
	CHECK(!weft_http_request_set_body(r, "x", 1) && weft_http_request_set_length(r, 5) == -EINVAL);
	CHECK(weft_http_request_write(r, "x", 1) == -EINVAL);
	CHECK(weft_http_response(r) == -ECONNREFUSED && weft_http_response(r) == -ECONNREFUSED);
	CHECK(weft_http_request_add_header(r, "X", "y") == -EALREADY);
	CHECK(weft_http_request_set_body(r, "x", 1) == -EALREADY);
	weft_http_request_close(r);
	weft_http_request_close(NULL);
	CHECK(!weft_http_client_close(client) && !weft_http_client_close(NULL));
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

struct getting {
	weft_http_client_t *client;
	const char *url;
	unsigned times;
};

static void *gets(void *getting)
{
	const struct getting *g = getting;

	for (unsigned i = 0; i < g->times; i++)
		get(g->client, g->url);
	return NULL;
}

static void *gets_late(void *getting)
{
	const struct getting *g = getting;
	char text[10];

	CHECK(weft_http_get(g->client, g->url, text, sizeof text, NULL) == -ETIMEDOUT);
	return NULL;
}

/* Requests of many tasks share a few connections, and every request gets a connection in its turn. */
static void connections_are_limited(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 3});
	struct service s;
	struct getting g = {client, s.url, 4};
	weft_http_client_stats_t stats;
	weft_scope_t server, clients;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, answer_slowly);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < 10; i++)
		CHECK(!weft_scope_spawn(&clients, gets, &g));
	CHECK(!weft_scope_wait(&clients));
	weft_http_client_stats(client, &stats);
	CHECK(s.requests == 40 && s.most == 3 && s.accepted == 3);
	CHECK(stats.requests == 40 && stats.dialed == 3 && stats.open == 3 && stats.idle == 3 && !stats.repeated);
	weft_http_client_close_idle(client);
	weft_http_client_stats(client, &stats);
	CHECK(!stats.open && !stats.idle && !weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* If a request needs a connection, idle connections to other servers are closed. */
static void all_connections_are_limited(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.connections = 2});
	struct service s[4];
	weft_http_client_stats_t stats;
	weft_scope_t server;

	weft_scope_open(&server, WEFT_NEVER);
	for (int i = 0; i < 4; i++)
		start(&s[i], &server, answer_all);
	for (int i = 0; i < 12; i++) {
		get(client, s[i % 4].url);
		weft_http_client_stats(client, &stats);
		CHECK(stats.open <= 2);
	}
	CHECK(stats.dialed == 12);
	get(client, s[3].url); /* the newest connection is still open */
	weft_http_client_stats(client, &stats);
	CHECK(stats.dialed == 12 && !weft_http_client_close(client));
	stop(&server);
	for (int i = 0; i < 4; i++)
		weft_close(s[i].listener);
}

static void waits_for_a_connection_end(void)
{
	weft_http_client_t *client =
	    make_client((weft_http_client_config_t){.host_connections = 1, .wait_time = PAUSE});
	struct service s;
	struct getting g = {client, s.url, 1};
	weft_http_request_t *r;
	weft_scope_t server, clients;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, answer_all);
	r = begin(client, "GET", s.url);
	CHECK(weft_http_response(r) == 200);
	weft_http_request_close(r);
	r = begin(client, "POST", s.url);
	CHECK(weft_http_request_write(r, "x", 1) == 1); /* the request now owns the connection */
	weft_scope_open(&clients, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&clients, gets_late, &g));
	CHECK(!weft_scope_wait(&clients));
	weft_http_request_close(r);
	get(client, s.url);
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* The client does not use a connection that the server has closed meanwhile. */
static void closed_connections_are_noticed(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct service s;
	weft_http_client_stats_t stats;
	weft_scope_t server;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, close_after_first);
	for (int i = 0; i < 5; i++) {
		get(client, s.url);
		weft_sleep(PAUSE);
	}
	weft_http_client_stats(client, &stats);
	CHECK(stats.dialed == 5 && stats.requests == 5 && !stats.repeated);
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* The server closes a connection when the client has just sent a request on it. */
static void requests_are_repeated(const char *method, bool again)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct service s;
	weft_http_client_stats_t stats;
	weft_http_request_t *r;
	weft_scope_t server;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, close_on_second);
	get(client, s.url);
	r = begin(client, method, s.url);
	CHECK(weft_http_response(r) == (again ? 200 : -ECONNRESET));
	weft_http_request_close(r);
	weft_http_client_stats(client, &stats);
	CHECK(stats.repeated == again && stats.dialed == (again ? 2 : 1));
	CHECK(s.requests == (again ? 3 : 2));
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* The second attempt fails as well, and there is no third attempt. */
static void close_always(struct service *s, int fd, unsigned number)
{
	if (next_request(s, fd) && number == 1 && say(fd, ANSWER))
		(void)next_request(s, fd);
}

static void there_is_one_second_attempt(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	struct service s;
	char text[10];
	weft_scope_t server;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, close_always);
	get(client, s.url);
	CHECK(weft_http_get(client, s.url, text, sizeof text, NULL) == -ECONNRESET);
	CHECK(s.requests == 3 && s.accepted == 2);
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

static void number_answers(struct service *s, int fd, unsigned number)
{
	char text[100];

	snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%u", number);
	while (next_request(s, fd) && say(fd, text))
		;
}

/* The client takes the connection that has been idle for the shortest time, and closes old connections. */
static void the_newest_connection_is_taken(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.idle_time = 5 * PAUSE});
	weft_http_request_t *r[3];
	weft_http_client_stats_t stats;
	struct service s;
	char number;
	weft_scope_t server;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, number_answers);
	for (int i = 0; i < 3; i++) {
		r[i] = begin(client, "GET", s.url);
		CHECK(weft_http_response(r[i]) == 200 && weft_http_response_read(r[i], &number, 1) == 1);
		weft_http_request_close(r[i]);
		CHECK(number == '1');
	}
	for (int i = 0; i < 3; i++) {
		r[i] = begin(client, "POST", s.url);
		CHECK(!weft_http_request_set_length(r[i], 1) && weft_http_request_write(r[i], "", 0) == 0);
	}
	for (int i = 0; i < 3; i++)
		weft_http_request_close(r[i]); /* the request is unfinished, so its connection is closed */
	weft_http_client_stats(client, &stats);
	CHECK(!stats.open && stats.dialed == 3);
	CHECK(weft_http_get(client, s.url, &number, 1, NULL) == 1 && number == '4');
	weft_sleep(6 * PAUSE);
	CHECK(weft_http_get(client, s.url, &number, 1, NULL) == 1 && number == '5');
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static void count(weft_http_t *http, void *context)
{
	uint64_t sum = 0, hash = 0;
	unsigned char data[3000];
	ssize_t n;

	(void)context;
	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		for (ssize_t i = 0; i < n; i++, sum++)
			hash = hash * 31 + data[i];
	if (!n)
		weft_http_printf(http, "%llu %llx", (unsigned long long)sum, (unsigned long long)hash);
}

struct ours {
	weft_http_server_t *server;
	weft_http_tls_t *tls; /* NULL: plain connections */
	int listener;
	char url[60];
};

static void *serve_ours(void *ours)
{
	struct ours *o = ours;

	CHECK(
	    !(o->tls ? weft_http_serve_tls(o->server, o->listener, o->tls) : weft_http_serve(o->server, o->listener)));
	return NULL;
}

static void start_ours(struct ours *o, weft_scope_t *scope)
{
	const weft_http_config_t config = {.body = 1u << 30,
					   .body_time = 20 * SECOND * run.factor,
					   .write_time = 20 * SECOND * run.factor};

	CHECK(!weft_http_open(&o->server, &config));
	CHECK(!weft_http_route(o->server, "* /echo", echo, NULL) &&
	      !weft_http_route(o->server, "* /count", count, NULL));
	o->listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(o->listener >= 0);
	snprintf(o->url, sizeof o->url, "http%s://127.0.0.1:%d", o->tls ? "s" : "", weft_port(o->listener));
	CHECK(!weft_scope_spawn(scope, serve_ours, o));
}

static void stop_ours(struct ours *o, weft_scope_t *scope)
{
	CHECK(!weft_http_stop(o->server, weft_now() + 20 * SECOND * run.factor));
	CHECK(!weft_scope_wait(scope));
	weft_http_close(o->server);
	weft_close(o->listener);
}

/* A body of known or unknown length, in pieces of random sizes. */
static void a_body_is_sent(weft_http_client_t *client, const struct ours *o, uint64_t random, bool known,
			   unsigned flags)
{
	size_t total = draw(&random) % 300000, done = 0, piece;
	unsigned char data[5000];
	uint64_t hash = 0;
	char url[80], wanted[60], text[60];
	weft_http_request_t *r;
	ssize_t n;

	snprintf(url, sizeof url, "%s/count", o->url);
	r = begin(client, "POST", url);
	CHECK(!weft_http_request_set_flags(r, flags));
	if (known)
		CHECK(!weft_http_request_set_length(r, total));
	while (done < total) {
		piece = 1 + draw(&random) % sizeof data;
		piece = piece < total - done ? piece : total - done;
		for (size_t i = 0; i < piece; i++) {
			data[i] = (unsigned char)draw(&random);
			hash = hash * 31 + data[i];
		}
		CHECK(weft_http_request_write(r, data, piece) == (ssize_t)piece);
		done += piece;
		if (done < total && !(draw(&random) % 100))
			CHECK(weft_http_response(r) == -EINPROGRESS);
	}
	CHECK(!weft_http_request_finish(r));
	CHECK(weft_http_response(r) == 200);
	n = weft_http_response_read_all(r, text, sizeof text);
	snprintf(wanted, sizeof wanted, "%zu %llx", total, (unsigned long long)hash);
	CHECK(n == (ssize_t)strlen(wanted) && !memcmp(text, wanted, (size_t)n));
	CHECK(weft_http_request_write(r, "", 0) == -EALREADY);
	weft_http_request_close(r);
}

/* One task sends a body and reads the same bytes back. The server stops reading while its own bytes are not read. */
static void one_task_sends_and_receives(weft_http_client_t *client, const struct ours *o, size_t total)
{
	uint64_t to_send = run.seed, to_read = run.seed;
	unsigned char data[20000], back[7000];
	size_t sent = 0, got = 0, piece = 0, at = 0;
	weft_http_request_t *r;
	char url[80];
	ssize_t n;

	snprintf(url, sizeof url, "%s/echo", o->url);
	r = begin(client, "PUT", url);
	while (sent < total || got < total) {
		if (sent < total && at == piece) {
			piece = sizeof data < total - sent ? sizeof data : total - sent;
			for (at = 0; at < piece; at++)
				data[at] = (unsigned char)draw(&to_send);
			at = 0;
		}
		n = sent < total ? weft_http_request_write(r, data + at, piece - at) : 0;
		CHECK(n >= 0);
		at += (size_t)n;
		sent += (size_t)n;
		if (sent < total && at == piece)
			continue;
		if (sent == total)
			n = weft_http_request_finish(r); /* or the call comes too early, because the server waits */
		CHECK(!n || n == -EINPROGRESS || sent < total);
		CHECK(weft_http_response(r) == 200);
		n = weft_http_response_read(r, back, sizeof back);
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(back[i] == (unsigned char)draw(&to_read));
		got += (size_t)n;
	}
	CHECK(!weft_http_request_finish(r) && weft_http_response_read(r, back, 1) == 0);
	weft_http_request_close(r);
}

static void bodies_are_streamed(weft_http_tls_t *server_tls, weft_http_tls_t *client_tls)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.tls = client_tls});
	weft_http_client_stats_t stats;
	weft_scope_t server;
	struct ours o = {.tls = server_tls};

	weft_scope_open(&server, WEFT_NEVER);
	start_ours(&o, &server);
	for (unsigned i = 0; i < 10; i++)
		a_body_is_sent(client, &o, run.seed + i, i % 2, i % 4 > 1 ? WEFT_HTTP_EXPECT : 0);
	one_task_sends_and_receives(client, &o, run.simulated ? 300000 : 20000000);
	weft_http_client_stats(client, &stats);
	CHECK(stats.dialed == 1);
	CHECK(!weft_http_client_close(client));
	stop_ours(&o, &server);
}

/* Answers without reading the body. */
static void refuse_bodies(struct service *s, int fd, unsigned number)
{
	char text[1];

	if (!next_request(s, fd) || !say(fd, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"))
		return;
	if (number == 1)
		weft_event_wait(&s->event);
	else
		(void)weft_read(fd, text, 1);
}

/* The answer arrives before the whole body was sent. Then the server stops reading, or closes the connection. */
static void answers_are_early(void)
{
	static char data[100000];
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	weft_http_request_t *r;
	struct service s;
	weft_scope_t server;
	char text[10];
	ssize_t n;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, refuse_bodies);
	for (unsigned i = 0; i < 2; i++) {
		r = begin(client, "POST", s.url);
		do {
			weft_sleep(run.simulated ? MS : 0); /* simulated time advances only in a wait */
			n = weft_http_request_write(r, data, sizeof data);
		} while (n == sizeof data);
		/* If the connection is reset, the answer may be lost. */
		CHECK(i ? n >= 0 || n == -EPIPE || n == -ECONNRESET : n >= 0);
		CHECK(n < 0 || weft_http_response(r) == 413);
		CHECK(n < 0 || weft_http_response_read_all(r, text, sizeof text) == 2);
		weft_http_request_close(r);
		weft_event_set(&s.event);
	}
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void half_an_answer(struct service *s, int fd, unsigned number)
{
	char text[1];

	(void)number;
	if (next_request(s, fd) && say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"))
		(void)weft_read(fd, text, 1);
}

static void *waits_in_vain(void *getting)
{
	const struct getting *g = getting;
	weft_http_request_t *r = begin(g->client, "GET", g->url);
	char text[100];

	weft_defer(weft_http_request_close, r);
	if (weft_http_response(r) == 200)
		while (weft_http_response_read(r, text, sizeof text) > 0)
			;
	return NULL;
}

static void *writes_in_vain(void *getting)
{
	static char data[100000];
	const struct getting *g = getting;
	weft_http_request_t *r = begin(g->client, "POST", g->url);

	weft_defer(weft_http_request_close, r);
	while (weft_http_request_write(r, data, sizeof data) == sizeof data)
		;
	return NULL;
}

static void *fails_in_the_middle(void *getting)
{
	const struct getting *g = getting;
	weft_http_request_t *r = begin(g->client, "GET", g->url);

	weft_defer(weft_http_request_close, r);
	CHECK(weft_http_response(r) == 200);
	weft_task_fail(-EIO);
}

/* A task that is cancelled in a wait releases everything: another request gets its place. */
static void a_wait_is_cancelled(void (*serve)(struct service *, int, unsigned), weft_fn_t *fn)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 1});
	weft_http_client_stats_t stats;
	struct service s;
	struct getting g = {client, s.url, 1};
	weft_scope_t server, clients;
	weft_task_t first, second;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, serve);
	weft_scope_open(&clients, WEFT_NEVER);
	CHECK(!weft_scope_spawn_with(&clients, &first, fn, &g, NULL));
	weft_sleep(PAUSE);
	CHECK(!weft_scope_spawn_with(&clients, &second, fn, &g, NULL)); /* waits for a connection */
	weft_sleep(PAUSE);
	weft_task_cancel(&second);
	CHECK(weft_join(&second, NULL) == -ECANCELED);
	weft_task_cancel(&first);
	CHECK(weft_join(&first, NULL) == -ECANCELED);
	(void)weft_scope_wait(&clients);
	weft_http_client_stats(client, &stats);
	CHECK(!stats.open && stats.dialed == 1);
	stop(&server);
	weft_close(s.listener);
	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, answer_all);
	get(client, s.url);
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

static void a_task_fails(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	weft_http_client_stats_t stats;
	struct service s;
	struct getting g = {client, s.url, 1};
	weft_scope_t server, clients;

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, half_an_answer);
	weft_scope_open(&clients, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&clients, fails_in_the_middle, &g));
	CHECK(weft_scope_wait(&clients) == -EIO);
	weft_http_client_stats(client, &stats);
	CHECK(!stats.open && !weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

static void deadlines_end_requests(void)
{
	void (*const servers[])(struct service *, int, unsigned) = {never_answer, half_an_answer};

	for (int i = 0; i < 2; i++) {
		weft_http_client_t *client = make_client((weft_http_client_config_t){0});
		weft_http_request_t *r;
		struct service s;
		weft_scope_t server;
		char text[600];
		ssize_t n;

		weft_scope_open(&server, WEFT_NEVER);
		start(&s, &server, servers[i]);
		r = begin(client, "GET", s.url);
		weft_http_request_set_deadline(r, weft_now() + PAUSE);
		n = weft_http_response(r);
		CHECK(n == (i ? 200 : -ETIMEDOUT));
		n = weft_http_response_read_all(r, text, sizeof text);
		CHECK(n == -ETIMEDOUT);
		weft_http_request_close(r);
		CHECK(!weft_http_client_close(client));
		stop(&server);
		weft_close(s.listener);
	}
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *gets_in_a_thread(void *getting)
{
	return gets(getting);
}

/* Threads that are not tasks use the same client, and its connections. */
static void threads_share_a_client(void)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){.host_connections = 3});
	struct service s;
	struct getting g = {client, s.url, 20};
	weft_scope_t server, clients;
	pthread_t threads[4];

	weft_scope_open(&server, WEFT_NEVER);
	start(&s, &server, answer_all);
	weft_scope_open(&clients, WEFT_NEVER);
	for (int i = 0; i < 4; i++) {
		CHECK(!pthread_create(&threads[i], NULL, gets_in_a_thread, &g));
		CHECK(!weft_scope_spawn(&clients, gets, &g));
	}
	CHECK(!weft_scope_wait(&clients));
	weft_blocking
	{
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
	CHECK(s.requests == 160 && s.accepted <= 3);
	CHECK(!weft_http_client_close(client));
	stop(&server);
	weft_close(s.listener);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/* The default client trusts the authorities of the system, which do not know the authority of this server. */
static void a_certificate_is_not_trusted(weft_http_tls_t *server_tls)
{
	weft_http_client_t *client = make_client((weft_http_client_config_t){0});
	weft_http_client_stats_t stats;
	struct ours o = {.tls = server_tls};
	weft_scope_t server;
	char text[10];

	weft_scope_open(&server, WEFT_NEVER);
	start_ours(&o, &server);
	CHECK(weft_http_get(client, o.url, text, sizeof text, NULL) == -EKEYREJECTED);
	weft_http_client_stats(client, &stats);
	CHECK(!stats.open && !weft_http_client_close(client));
	stop_ours(&o, &server);
}

static void *secure(void *pass)
{
	weft_http_tls_t *server_tls, *client_tls;

	open_tls(&server_tls, &client_tls);
	bodies_are_streamed(server_tls, client_tls);
	a_certificate_is_not_trusted(server_tls);
	weft_http_tls_close(server_tls);
	weft_http_tls_close(client_tls);
	puts("ok - TLS");
	return pass;
}

static void more(void)
{
	urls_are_resolved();
	wrong_use_is_refused();
	connections_are_limited();
	all_connections_are_limited();
	waits_for_a_connection_end();
	closed_connections_are_noticed();
	requests_are_repeated("GET", true);
	requests_are_repeated("DELETE", true);
	requests_are_repeated("POST", false);
	requests_are_repeated("BREW", false);
	there_is_one_second_attempt();
	the_newest_connection_is_taken();
	bodies_are_streamed(NULL, NULL);
	answers_are_early();
	a_wait_is_cancelled(never_answer, waits_in_vain);
	a_wait_is_cancelled(half_an_answer, waits_in_vain);
	a_wait_is_cancelled(never_answer, writes_in_vain);
	a_task_fails();
	deadlines_end_requests();
	if (!run.simulated)
		threads_share_a_client();
	if (!run.simulated || run.seed == 0)
		puts("ok - pools, bodies, ends, URLs");
}

#endif
