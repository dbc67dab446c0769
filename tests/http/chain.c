/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client, through two reverse proxies in a row, against the server.
 *
 *   chain PROXY [SEED [REQUESTS]]    PROXY: the program examples/reverse_proxy.c
 *
 *   this program's clients ─ outer proxy ┬ proxy 1 ┬ this program's server
 *                                        └ proxy 2 ┘
 *
 * Bodies of random lengths go both ways, and must be exact to the byte. Some requests are abandoned, and some tasks are
 * cancelled. Then proxy 2 is killed, started again, and killed again: a response must be exact or an error.
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <weft/http.h>
#include <weft/http_client.h>

enum { CLIENTS = 8, LONGEST = 600000 };

static struct run {
	const char *program;
	uint64_t seed;
	int requests; /* by each client in each phase */
	char outer[60], server[60];
	weft_http_client_t *client;
	bool kills;
	_Atomic bool ends;
	_Atomic unsigned exact, failed, refused;
} run;

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

/* Sends as many bytes as the path says, drawn from a seed that is their number. */
static void make(weft_http_t *http, void *context)
{
	uint64_t length = strtoull(weft_http_param(http, "length").data, NULL, 10), state = length, done, n;
	unsigned char data[5000];

	(void)context;
	if (length % 2)
		weft_http_set_length(http, length);
	for (done = 0; done < length; done += n) {
		n = length - done < sizeof data ? length - done : sizeof data;
		for (uint64_t i = 0; i < n; i++)
			data[i] = (unsigned char)draw(&state);
		if (weft_http_write(http, data, n) != (ssize_t)n)
			return;
	}
	weft_http_flush(http);
}

/* ---- proxies ----------------------------------------------------------------------------------------------------- */

struct proxy {
	pid_t process;
	char url[60], port[8];
};

/* If a check fails, the proxies must be ended, too. */
static volatile pid_t started[3];

static void end_proxies(int signal_number)
{
	for (int i = 0; i < 3; i++)
		if (started[i] > 0)
			kill(started[i], SIGKILL);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void note(pid_t process, pid_t other)
{
	for (int i = 0; i < 3; i++)
		if (started[i] == other) {
			started[i] = process;
			return;
		}
}

/* Returns false if the proxy has ended, because its address is still in use. */
static bool try_start(struct proxy *p, const char *first, const char *second)
{
	const char *words[] = {run.program, p->port, first, second, NULL};
	char line[100], *port;
	size_t length = 0;
	int out[2];

	CHECK(!weft_pipe(out));
	p->process = weft_spawn_process((char **)(uintptr_t)words, NULL, (const int[3]){-1, out[1], -1});
	CHECK(p->process > 0);
	note(p->process, 0);
	CHECK(!weft_close(out[1]));
	while (length < sizeof line - 1 && weft_read(out[0], line + length, 1) == 1 && line[length] != '\n')
		length++;
	line[length] = '\0';
	CHECK(!weft_close(out[0]));
	port = strrchr(line, ':');
	if (!port) {
		note(0, p->process);
		return weft_waitpid(p->process, NULL), false;
	}
	snprintf(p->port, sizeof p->port, "%.7s", port + 1);
	snprintf(p->url, sizeof p->url, "http://127.0.0.1:%s/", p->port);
	return true;
}

/* If a killed process used io_uring, the kernel closes its sockets a little later. */
static void start(struct proxy *p, const char *first, const char *second)
{
	for (int i = 0; i < 100; i++) {
		if (try_start(p, first, second))
			return;
		weft_sleep(20 * MS);
	}
	CHECK(!"the proxy starts");
}

static void stop(struct proxy *p, int signal)
{
	int status;

	note(0, p->process);
	CHECK(!weft_kill_process(p->process, signal));
	CHECK(weft_waitpid(p->process, &status) == p->process);
	CHECK(signal == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
}

static void *kills(void *proxy)
{
	struct proxy *p = proxy;

	while (!atomic_load(&run.ends)) {
		weft_sleep(60 * MS);
		stop(p, SIGKILL);
		weft_sleep(20 * MS);
		start(p, run.server, NULL);
	}
	return NULL;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* A body that is sent and returned. */
struct transfer {
	weft_http_request_t *r;
	uint64_t to_send, to_read; /* states of the random numbers */
	size_t total, sent, got;
	unsigned char piece[20000];
	size_t at, length; /* position in `piece`, and its length */
};

static weft_http_request_t *begin(const char *method, const char *path)
{
	weft_http_request_t *r;
	char url[100];

	snprintf(url, sizeof url, "%s%s", run.outer, path);
	CHECK(!weft_http_request_open(run.client, method, url, &r));
	return r;
}

/* Reads a piece, which must equal the expected bytes. Returns its length, 0 at the end, or a negative errno, also if
 * the status says that the proxy has no server. */
static ssize_t read_piece(weft_http_request_t *r, uint64_t *state)
{
	unsigned char data[7000];
	int status = weft_http_response(r);
	ssize_t n;

	if (status == 502 || status == 504)
		return -EHOSTUNREACH;
	CHECK(status < 0 || status == 200);
	n = status < 0 ? status : weft_http_response_read(r, data, sizeof data);
	for (ssize_t i = 0; i < n; i++)
		CHECK(data[i] == (unsigned char)draw(state));
	return n;
}

static void fill(struct transfer *t, uint64_t *random)
{
	t->length = 1 + draw(random) % sizeof t->piece;
	if (t->length > t->total - t->sent)
		t->length = t->total - t->sent;
	for (t->at = 0; t->at < t->length; t->at++)
		t->piece[t->at] = (unsigned char)draw(&t->to_send);
	t->at = 0;
}

static int send_and_receive(struct transfer *t, uint64_t *random)
{
	ssize_t n;

	while (t->sent < t->total) {
		if (t->at == t->length)
			fill(t, random);
		n = weft_http_request_write(t->r, t->piece + t->at, t->length - t->at);
		if (n < 0)
			return (int)n;
		t->at += (size_t)n;
		t->sent += (size_t)n;
		if (t->at == t->length)
			continue;
		n = read_piece(t->r, &t->to_read);
		if (n <= 0)
			return n ? (int)n : -ECONNRESET; /* the response must not be complete yet */
		t->got += (size_t)n;
	}
	while ((n = weft_http_request_finish(t->r)) == -EINPROGRESS) {
		n = read_piece(t->r, &t->to_read);
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		t->got += (size_t)n;
	}
	if (n)
		return (int)n;
	while ((n = read_piece(t->r, &t->to_read)) > 0)
		t->got += (size_t)n;
	CHECK(n || t->got == t->total);
	return (int)n;
}

static int echoes(uint64_t *random, bool known)
{
	uint64_t state = draw(random);
	struct transfer t = {.to_send = state, .to_read = state, .total = draw(random) % LONGEST};
	weft_http_request_t *r = begin("PUT", "echo");

	weft_defer(weft_http_request_close, r);
	t.r = r;
	if (known || !t.total)
		CHECK(!weft_http_request_set_length(r, t.total));
	return send_and_receive(&t, random);
}

static int receives(uint64_t *random)
{
	uint64_t length = draw(random) % LONGEST, state = length, got = 0;
	weft_http_request_t *r;
	char path[40];
	ssize_t n;

	snprintf(path, sizeof path, "make/%llu", (unsigned long long)length);
	r = begin("GET", path);
	weft_defer(weft_http_request_close, r);
	while ((n = read_piece(r, &state)) > 0)
		got += (uint64_t)n;
	CHECK(n || got == length);
	return (int)n;
}

/* The caller abandons the request in the middle. */
static int abandons(uint64_t *random)
{
	weft_http_request_t *r = begin("PUT", "echo");
	static const char data[30000];
	unsigned pieces = (unsigned)draw(random) % 5;

	weft_defer(weft_http_request_close, r);
	while (pieces-- && weft_http_request_write(r, data, sizeof data) == sizeof data)
		;
	return 0;
}

static void *is_cancelled(void *random)
{
	(void)echoes(random, true);
	return NULL;
}

static int cancels(uint64_t *random)
{
	uint64_t own = draw(random);

	WEFT_SCOPE_UNTIL(scope, weft_now() + draw(random) % (10 * MS));
	if (!weft_scope_spawn(&scope, is_cancelled, &own))
		(void)weft_scope_wait(&scope);
	return 0;
}

static void one_request(uint64_t *random)
{
	unsigned kind = (unsigned)draw(random) % 8;
	int error = kind < 2   ? echoes(random, true)
		    : kind < 4 ? echoes(random, false)
		    : kind < 6 ? receives(random)
		    : kind < 7 ? abandons(random)
			       : cancels(random);

	if (!error)
		atomic_fetch_add(&run.exact, 1);
	else if (error == -EHOSTUNREACH)
		atomic_fetch_add(&run.refused, 1);
	else
		atomic_fetch_add(&run.failed, 1);
	if (error && !run.kills)
		printf("not ok - a request of kind %u: %s\n", kind, strerror(-error));
	CHECK(!error || run.kills);
}

static void *asks(void *number)
{
	uint64_t random = run.seed * 1000 + (uintptr_t)number;

	for (int i = 0; i < run.requests; i++)
		one_request(&random);
	return NULL;
}

static void all_clients(const char *phase)
{
	weft_http_client_stats_t stats;
	weft_scope_t scope;

	run.exact = run.failed = run.refused = 0;
	weft_scope_open(&scope, WEFT_NEVER);
	for (uintptr_t i = 0; i < CLIENTS; i++)
		CHECK(!weft_scope_spawn(&scope, asks, (void *)i));
	CHECK(!weft_scope_wait(&scope));
	weft_http_client_stats(run.client, &stats);
	CHECK(stats.open == stats.idle);
	printf("ok - %s: %u exact, %u errors, %u refused\n", phase, run.exact, run.failed, run.refused);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void *everything(void *pass)
{
	const weft_http_config_t config = {.body = UINT64_MAX};
	struct proxy outer = {.port = "0"}, inner[2] = {{.port = "0"}, {.port = "0"}};
	struct served s = {0};
	weft_scope_t server, killer;

	CHECK(!weft_http_open(&s.server, &config));
	CHECK(!weft_http_route(s.server, "PUT /echo", echo, NULL) &&
	      !weft_http_route(s.server, "GET /make/:length", make, NULL));
	s.listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s.listener >= 0);
	snprintf(run.server, sizeof run.server, "http://127.0.0.1:%d/", weft_port(s.listener));
	weft_scope_open(&server, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&server, serves, &s));
	for (int i = 0; i < 2; i++)
		start(&inner[i], run.server, NULL);
	start(&outer, inner[0].url, inner[1].url);
	snprintf(run.outer, sizeof run.outer, "%s", outer.url);
	CHECK(!weft_http_client_open(&run.client, NULL));
	all_clients("two proxies");
	run.kills = true;
	weft_scope_open(&killer, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&killer, kills, &inner[1]));
	all_clients("a proxy that is killed");
	atomic_store(&run.ends, true);
	CHECK(!weft_scope_wait(&killer));
	run.kills = false;
	all_clients("after that");
	CHECK(!weft_http_client_close(run.client));
	stop(&outer, SIGTERM);
	stop(&inner[0], SIGTERM);
	stop(&inner[1], SIGTERM);
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND));
	CHECK(!weft_scope_wait(&server));
	weft_http_close(s.server);
	weft_close(s.listener);
	return pass;
}

int main(int argc, char **argv)
{
	void *result = NULL;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGABRT, end_proxies);
	signal(SIGTERM, end_proxies);
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(argc > 1);
	run.program = argv[1];
	run.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	run.requests = argc > 3 ? atoi(argv[3]) : 25;
	CHECK(!weft_rt_run(NULL, everything, &run, &result) && result == &run);
	return 0;
}
