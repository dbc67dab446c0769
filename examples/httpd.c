/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * httpd.c: a web server.
 *
 *   ./weft run examples/httpd.c -- [OPTION…]
 *     --listen ADDRESS   "8080", "127.0.0.1:8080", "[::1]:8080", "/run/httpd.sock"; "fd:3": an inherited listener.
 *                        Several are allowed [127.0.0.1:8080]
 *     --root DIRECTORY   its files are served below /
 *     --workers N        threads [as many as processors]
 *     --log common|json  an access log on standard output
 *
 * /-/status shows the server's counters to a browser, /-/metrics to Prometheus, /-/events as a stream. The stack policy
 * and the back end are the environment's: WEFT_STACK=commit WEFT_IO=epoll. SIGINT and SIGTERM end it when the requests
 * that have begun are answered, or after 10 seconds.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>

enum { LISTENERS = 16, SECOND = 1000000000 };

struct options {
	const char *addresses[LISTENERS], *root, *log;
	int count;
	unsigned workers;
};

struct program {
	struct options options;
	weft_http_server_t *server;
	int listeners[LISTENERS];
	sigset_t signals; /* that end it; blocked in every thread */
	int result;
};

/* ---- what it says of itself -------------------------------------------------------------------------------------- */

static weft_http_stats_t stats_of(void *program)
{
	weft_http_stats_t stats;

	weft_http_stats(((struct program *)program)->server, &stats);
	return stats;
}

/* doc: begin metrics */
static void metrics(weft_http_t *http, void *program)
{
	weft_http_stats_t s = stats_of(program);
	int i;

	weft_http_add_header(http, "Content-Type", "text/plain; version=0.0.4");
	weft_http_printf(http, "# TYPE http_connections gauge\nhttp_connections %llu\n",
			 (unsigned long long)s.connections);
	weft_http_printf(http, "# TYPE http_connections_total counter\nhttp_connections_total %llu\n",
			 (unsigned long long)s.accepted);
	weft_http_printf(http, "# TYPE http_responses_total counter\n");
	for (i = 1; i < 6; i++)
		weft_http_printf(http, "http_responses_total{code=\"%dxx\"} %llu\n", i,
				 (unsigned long long)s.statuses[i]);
	weft_http_printf(http, "# TYPE http_received_bytes_total counter\nhttp_received_bytes_total %llu\n",
			 (unsigned long long)s.received);
	weft_http_printf(http, "# TYPE http_sent_bytes_total counter\nhttp_sent_bytes_total %llu\n",
			 (unsigned long long)s.sent);
}
/* doc: end metrics */

/* The counters each second, until the client leaves. */
static void events(weft_http_t *http, void *program)
{
	char text[200];

	do {
		weft_http_stats_t s = stats_of(program);

		snprintf(text, sizeof text, "%llu connections, %llu accepted, %llu requests, %llu bytes sent",
			 (unsigned long long)s.connections, (unsigned long long)s.accepted,
			 (unsigned long long)(s.statuses[2] + s.statuses[3] + s.statuses[4] + s.statuses[5]),
			 (unsigned long long)s.sent);
	} while (weft_http_event(http, NULL, NULL, text) == 0 && weft_sleep(SECOND) == 0);
}

static void status(weft_http_t *http, void *program)
{
	static const char page[] =
	    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
	    "<title>httpd</title><style>body{font:16px/1.5 sans-serif;margin:2em}</style><h1>httpd</h1>"
	    "<p id=now>waiting for the first figures<script>new EventSource('/-/events').onmessage="
	    "e=>document.getElementById('now').textContent=e.data</script>";

	(void)program;
	weft_http_reply(http, 200, "text/html; charset=utf-8", page, sizeof page - 1);
}

static void hello(weft_http_t *http, void *unused)
{
	(void)unused;
	weft_http_reply(http, 200, "text/plain", "Hello, World!\n", 14);
}

/* ---- listeners --------------------------------------------------------------------------------------------------- */

/* "host:port", "port", a path, or "fd:N". A descriptor or a negative errno. */
static int listen_at(const char *address)
{
	char host[256] = "127.0.0.1";
	const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (!strncmp(address, "fd:", 3))
		return atoi(address + 3);
	if (*address == '/' || *address == '.' || *address == '@')
		return weft_listen(address, 0, 0, 0);
	if (length >= sizeof host)
		return -EINVAL;
	if (length) {
		bool brackets = *address == '[' && colon[-1] == ']';

		snprintf(host, sizeof host, "%.*s", (int)length - 2 * brackets, address + brackets);
	}
	return weft_listen(host, (unsigned)atoi(port), 0, 0);
}

struct serving {
	struct program *program;
	int listener;
};

static void *serve(void *serving)
{
	const struct serving *s = serving;
	int error = weft_http_serve(s->program->server, s->listener);

	if (error)
		weft_task_fail(error);
	return NULL;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static int make_server(struct program *p)
{
	const char *log = p->options.log;
	weft_http_config_t config = {.name = "weft-httpd", .log_context = stdout};
	int error;

	if (log)
		config.log = !strcmp(log, "json") ? weft_http_log_json : weft_http_log_common;
	error = weft_http_open(&p->server, &config);
	if (error)
		return error;
	weft_http_route(p->server, "GET /-/status", status, p);
	weft_http_route(p->server, "GET /-/metrics", metrics, p);
	weft_http_route(p->server, "GET /-/events", events, p);
	return p->options.root ? weft_http_files(p->server, "/", p->options.root)
			       : weft_http_route(p->server, "GET /", hello, NULL);
}

static void open_listeners(struct program *p)
{
	int i;

	for (i = 0; i < p->options.count; i++) {
		p->listeners[i] = listen_at(p->options.addresses[i]);
		if (p->listeners[i] < 0) {
			fprintf(stderr, "httpd: cannot listen at %s: %s\n", p->options.addresses[i],
				strerror(-p->listeners[i]));
			weft_task_fail(p->listeners[i]);
		}
		printf("listening at %s\n", p->options.addresses[i]);
	}
	fflush(stdout);
}

static void *run(void *program)
{
	struct program *p = program;
	struct serving serving[LISTENERS];
	int i, error = make_server(p);

	if (error) {
		fprintf(stderr, "httpd: %s: %s\n", p->options.root ? p->options.root : "no server", strerror(-error));
		weft_task_fail(error);
	}
	open_listeners(p);
	WEFT_SCOPE(scope);
	for (i = 0; i < p->options.count; i++) {
		serving[i] = (struct serving){p, p->listeners[i]};
		error = weft_scope_spawn(&scope, serve, &serving[i]);
		if (error)
			weft_scope_cancel(&scope, error);
	}
	weft_sigwait(&p->signals, NULL);
	p->result = weft_http_stop(p->server, weft_now() + 10ull * SECOND);
	error = weft_scope_wait(&scope);
	for (i = 0; i < p->options.count; i++)
		weft_close(p->listeners[i]);
	weft_http_close(p->server);
	return NULL;
}

static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {{"listen", required_argument, NULL, 'l'},
					      {"root", required_argument, NULL, 'r'},
					      {"workers", required_argument, NULL, 'w'},
					      {"log", required_argument, NULL, 'o'},
					      {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'l' && o->count < LISTENERS)
			o->addresses[o->count++] = optarg;
		else if (c == 'r')
			o->root = optarg;
		else if (c == 'w')
			o->workers = (unsigned)atoi(optarg);
		else if (c == 'o' && (!strcmp(optarg, "common") || !strcmp(optarg, "json")))
			o->log = optarg;
		else
			return false;
	}
	if (!o->count)
		o->addresses[o->count++] = "127.0.0.1:8080";
	return optind == argc;
}

int main(int argc, char **argv)
{
	static struct program program;
	int error;

	if (!read_options(argc, argv, &program.options)) {
		fprintf(stderr,
			"usage: httpd [--listen ADDRESS]... [--root DIRECTORY] [--workers N] [--log common|json]\n");
		return 2;
	}
	sigemptyset(&program.signals);
	sigaddset(&program.signals, SIGINT);
	sigaddset(&program.signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &program.signals, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	error = weft_rt_run(&(weft_rt_config_t){.workers = program.options.workers}, run, &program, NULL);
	return error || program.result ? 1 : 0;
}
