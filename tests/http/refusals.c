/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client's HTTP/2 without memory. One thread sends requests to our server, which another thread runs; only
 * allocations of the first thread are refused, so every run requests the same blocks in the same order. For each n, the
 * n-th allocation is refused, once alone, and once with all later allocations until the requests have ended. Then each
 * request has its answer or -ENOMEM, the next requests are answered, and no block remains.
 *
 *   refusals         in plain HTTP/2
 *   refusals tls     by TLS, on a connection that exists: OpenSSL's handshakes lose blocks
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include <weft/http_client.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static _Thread_local struct {
	bool counts;
	unsigned long asked, refuse; /* refuse: number of the first refused allocation; 0: none */
	bool all;		     /* all later allocations are refused, too */
	long blocks;
	unsigned long refused;
} memory;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static bool is_refused(void)
{
	if (!memory.counts || !memory.refuse)
		return false;
	memory.asked++;
	if (memory.asked < memory.refuse || (memory.asked > memory.refuse && !memory.all))
		return false;
	memory.refused++;
	errno = ENOMEM;
	return true;
}

static void *count(void *block)
{
	memory.blocks += memory.counts && block;
	return block;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
	return is_refused() ? NULL : count(__libc_calloc(number, size));
}

void *realloc(void *old, size_t size)
{
	if (is_refused())
		return NULL;
	if (old)
		return __libc_realloc(old, size);
	return count(__libc_realloc(old, size));
}

void free(void *block)
{
	memory.blocks -= memory.counts && block;
	__libc_free(block);
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

enum { LARGE = 50000, FIELDS = 30, NEXT = 3 };

static struct {
	struct served served;
	char url[60];
	weft_http_tls_t *trusted; /* trusts the server's certificate; NULL: plain connections */
	pthread_barrier_t listens;
} server;

static void large(weft_http_t *http, void *context)
{
	static char data[LARGE];

	(void)context;
	memset(data, 'x', sizeof data);
	weft_http_reply(http, 200, NULL, data, sizeof data);
}

static void many_fields(weft_http_t *http, void *context)
{
	char name[20];

	(void)context;
	weft_http_inform(http, 103);
	for (int i = 0; i < FIELDS; i++) {
		snprintf(name, sizeof name, "x-field-%d", i);
		CHECK(!weft_http_add_header(http, name, "a value"));
	}
	with_trailer(http, NULL);
}

static void *listens(void *unused)
{
	struct served *s = &server.served;

	CHECK(!weft_http_open(&s->server, NULL));
	CHECK(!weft_http_route(s->server, "GET /hello", hello, NULL) &&
	      !weft_http_route(s->server, "GET /large", large, NULL) &&
	      !weft_http_route(s->server, "GET /fields", many_fields, NULL) &&
	      !weft_http_route(s->server, "POST /echo", echo, NULL));
	s->listener = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(s->listener >= 0);
	snprintf(server.url, sizeof server.url, "http%s://127.0.0.1:%d", s->tls ? "s" : "", weft_port(s->listener));
	pthread_barrier_wait(&server.listens);
	serves(s);
	weft_http_close(s->server);
	weft_close(s->listener);
	return unused;
}

static void *run_server(void *unused)
{
	CHECK(!weft_rt_run(NULL, listens, NULL, NULL));
	return unused;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

/* The requests of a run: how many were answered, and how many failed. */
static struct {
	unsigned right, failed;
} done;

/* Returns false if the request has failed, by an expected error. */
static bool goes_on(ssize_t n)
{
	if (n >= 0)
		return true;
	if (n != -ENOMEM)
		printf("not ok - allocation %lu%s: %s\n", memory.refuse, memory.all ? " and later" : "",
		       strerror((int)-n));
	CHECK(n == -ENOMEM);
	return false;
}

static weft_http_request_t *begin(weft_http_client_t *client, const char *method, const char *path)
{
	weft_http_request_t *r = NULL;
	char url[100];

	snprintf(url, sizeof url, "%s%s", server.url, path);
	goes_on(weft_http_request_open(client, method, url, &r));
	return r;
}

/* Reads the response of `r` to its end. */
static bool reads(weft_http_request_t *r, size_t length)
{
	static char data[LARGE + 1];
	ssize_t n = weft_http_response_read_all(r, data, sizeof data);

	if (!goes_on(n))
		return false;
	CHECK((size_t)n == length && weft_http_response_version(r) == 20);
	return true;
}

static bool answers(weft_http_request_t *r, size_t length)
{
	int status = weft_http_response(r);

	if (!goes_on(status))
		return false;
	CHECK(status == 200);
	return reads(r, length);
}

static void end(weft_http_request_t *r, bool right)
{
	weft_http_request_close(r);
	*(right ? &done.right : &done.failed) += 1;
}

static void get(weft_http_client_t *client, const char *path, size_t length)
{
	weft_http_request_t *r = begin(client, "GET", path);

	end(r, r && answers(r, length));
}

static bool adds_fields(weft_http_request_t *r)
{
	char name[20];

	for (int i = 0; i < FIELDS; i++) {
		snprintf(name, sizeof name, "X-Field-%d", i);
		if (!goes_on(weft_http_request_add_header(r, name, "value")))
			return false;
	}
	return true;
}

static void get_fields(weft_http_client_t *client)
{
	weft_http_request_t *r = begin(client, "GET", "/fields");
	bool right = r && adds_fields(r) && answers(r, 4);

	if (right) {
		CHECK(weft_http_response_header(r, "x-field-29").length == 7);
		CHECK(weft_http_response_trailer(r, "x-sum").length == 1);
	}
	end(r, right);
}

static bool sends(weft_http_request_t *r)
{
	static const char data[2000];

	for (int i = 0; i < 3; i++) {
		ssize_t n = weft_http_request_write(r, data, sizeof data);

		if (!goes_on(n))
			return false;
		CHECK(n == sizeof data);
	}
	return goes_on(weft_http_request_finish(r));
}

/* One response is not read yet, while another request is sent in pieces. */
static void share(weft_http_client_t *client)
{
	weft_http_request_t *first = begin(client, "GET", "/large"), *second;
	bool right = first && goes_on(weft_http_response(first));

	second = begin(client, "POST", "/echo");
	end(second, second && sends(second) && answers(second, 6000));
	end(first, right && reads(first, LARGE));
}

static void ask(weft_http_client_t *client)
{
	get_fields(client);
	share(client);
	get(client, "/hello", 6);
}

/* One run. `n`: the first allocation that is refused; 0: none. Returns false if the run has fewer allocations. */
static bool run_once(unsigned long n, bool all)
{
	const weft_http_client_config_t config = {.flags = WEFT_HTTP_PRIOR_KNOWLEDGE, .tls = server.trusted};
	weft_http_client_t *client = NULL;
	bool refused;

	memory.asked = memory.refused = 0;
	memory.blocks = 0;
	memory.all = all;
	memory.refuse = server.trusted ? 0 : n;
	memory.counts = true;
	if (goes_on(weft_http_client_open(&client, &config))) {
		get(client, "/hello", 6);
		memory.refuse = n;
		ask(client);
	}
	refused = memory.refused;
	memory.refuse = 0;
	for (int i = 0; client && i < NEXT; i++) {
		unsigned right = done.right;

		get(client, "/hello", 6);
		CHECK(done.right == right + 1);
	}
	CHECK(!weft_http_client_close(client));
	memory.counts = false;
	if (n && memory.blocks)
		printf("not ok - allocation %lu%s: %ld blocks are left\n", n, all ? " and later" : "", memory.blocks);
	CHECK(!n || !memory.blocks);
	return refused;
}

static void refuse_each(bool all)
{
	unsigned long n = 1;

	done.right = done.failed = 0;
	while (run_once(n, all))
		n++;
	printf("ok - each of %lu allocations refused%s: %u answers, %u errors\n", n - 1,
	       all ? ", and all that follow" : "", done.right, done.failed);
	CHECK(n > 50 && done.failed);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	pthread_t thread;

	alarm(100);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ok - the server listens");
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "tls"))
		open_tls(&server.served.tls, &server.trusted);
	CHECK(!pthread_barrier_init(&server.listens, NULL, 2));
	CHECK(!pthread_create(&thread, NULL, run_server, NULL));
	pthread_barrier_wait(&server.listens);
	run_once(0, false); /* libraries allocate some blocks once, in this run */
	refuse_each(false);
	if (!server.trusted)
		refuse_each(true);
	CHECK(!weft_http_stop(server.served.server, WEFT_NEVER));
	CHECK(!pthread_join(thread, NULL));
	weft_http_tls_close(server.served.tls);
	weft_http_tls_close(server.trusted);
	return 0;
}
