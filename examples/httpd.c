/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * httpd.c: a web server as a tool.
 *
 *   ./weft run examples/httpd.c -- [OPTION…]
 *     --listen ADDRESS        "8080", "127.0.0.1:8080", "[::1]:8080", ":8080" (all addresses), "unix:/run/httpd.sock",
 *                             "fd:3" (an inherited listener). Several are allowed [127.0.0.1:8080]
 *     --tls CERTIFICATE KEY   PEM files: the --listen options behind it speak TLS
 *     --root DIRECTORY        its files are served below /
 *     --log common|json       an access log on standard output
 *     --workers N             threads [as many as processors]
 *     --stack POLICY          where call stacks come from: see docs/explanation/stacks.md [WEFT_STACK, else overcommit]
 *     --io BACKEND            epoll or io_uring [WEFT_IO, else the better one that works]
 *     --no-status             without /-/ and /metrics, which every client that reaches the server can read
 *
 * Listeners that systemd passes (LISTEN_FDS) are like --listen fd:3 and so on at the end. /-/ is a live page about the
 * server, and /metrics is for Prometheus. SIGHUP reads the certificates again. SIGINT and SIGTERM end the server when
 * the requests in progress are answered, or after 10 seconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <weft/http.h>
#include <weft/stack.h>
#include <weft/sync.h>

enum { LISTENERS = 16, SECOND = 1000000000, TASKS_SHOWN = 65536 /* bytes */ };

struct listener {
	const char *address;
	const char *certificate, *key; /* NULL: plain HTTP */
	weft_http_tls_t *tls;
	int fd;
	struct program *program;
};

struct program {
	const char *root, *log;
	unsigned workers;
	bool has_no_status;
	struct listener listeners[LISTENERS];
	int count;
	weft_http_server_t *server;
	sigset_t signals;      /* signals for which it waits; blocked in every thread */
	weft_event_t stopping; /* set when the live pages must end */
	uint64_t begun;
	int result;
};

static __attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("httpd: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(2);
}

/* ---- status and metrics ------------------------------------------------------------------------------------------ */

struct figures {
	weft_http_stats_t http;
	weft_rt_stats_t tasks;
	uint64_t resident; /* bytes */
	double cpu, up;	   /* seconds */
};

static uint64_t resident_memory(void)
{
	unsigned long long all, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%llu %llu", &all, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct figures figures_of(struct program *p)
{
	struct figures f = {.resident = resident_memory(), .up = (double)(weft_now() - p->begun) / SECOND};
	struct timespec cpu;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	f.cpu = (double)cpu.tv_sec + (double)cpu.tv_nsec / SECOND;
	weft_http_stats(p->server, &f.http);
	weft_rt_stats(&f.tasks);
	return f;
}

/* doc: begin metrics */
static void metric(weft_http_t *http, const char *name, const char *type, const char *help, double value)
{
	weft_http_printf(http, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name, value);
}

static void metrics(weft_http_t *http, void *program)
{
	struct figures f = figures_of(program);
	int i;

	weft_http_add_header(http, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	metric(http, "httpd_connections", "gauge", "Open connections.", (double)f.http.connections);
	metric(http, "httpd_accepted_connections_total", "counter", "Accepted connections.", (double)f.http.accepted);
	weft_http_printf(http, "# HELP httpd_responses_total Responses by class of status.\n"
			       "# TYPE httpd_responses_total counter\n");
	for (i = 1; i < 6; i++)
		weft_http_printf(http, "httpd_responses_total{code=\"%dxx\"} %llu\n", i,
				 (unsigned long long)f.http.statuses[i]);
	metric(http, "httpd_received_bytes_total", "counter", "Bytes of requests.", (double)f.http.received);
	metric(http, "httpd_sent_bytes_total", "counter", "Bytes of responses.", (double)f.http.sent);
	metric(http, "weft_tasks", "gauge", "Tasks.", (double)f.tasks.live);
	metric(http, "weft_tasks_total", "counter", "Tasks that were spawned.", (double)f.tasks.spawned);
	metric(http, "weft_switches_total", "counter", "Switches between tasks.", (double)f.tasks.switches);
	metric(http, "weft_workers", "gauge", "Threads that run tasks.", f.tasks.workers);
	metric(http, "process_resident_memory_bytes", "gauge", "Resident memory.", (double)f.resident);
	metric(http, "process_cpu_seconds_total", "counter", "CPU time of the process.", f.cpu);
}
/* doc: end metrics */

/* Sends the figures each second, until the client leaves or the server stops. */
static void events(weft_http_t *http, void *program)
{
	struct program *p = program;
	char text[500];

	do {
		struct figures f = figures_of(p);
		const uint64_t *s = f.http.statuses;

		snprintf(text, sizeof text,
			 "{\"connections\":%llu,\"accepted\":%llu,\"requests\":%llu,\"errors\":%llu,\"received\":%llu,"
			 "\"sent\":%llu,\"tasks\":%zu,\"switches\":%llu,\"workers\":%u,\"resident\":%llu,\"cpu\":%.3f,"
			 "\"up\":%.0f}",
			 (unsigned long long)f.http.connections, (unsigned long long)f.http.accepted,
			 (unsigned long long)(s[2] + s[3] + s[4] + s[5]), (unsigned long long)(s[4] + s[5]),
			 (unsigned long long)f.http.received, (unsigned long long)f.http.sent, f.tasks.live,
			 (unsigned long long)f.tasks.switches, f.tasks.workers, (unsigned long long)f.resident, f.cpu,
			 f.up);
	} while (!weft_http_event(http, NULL, NULL, text) &&
		 weft_event_wait_until(&p->stopping, weft_now() + SECOND) == -ETIMEDOUT);
}

/* The response lists all tasks, and for each the object or operation for which it waits. */
static void tasks(weft_http_t *http, void *program)
{
	int fd = memfd_create("tasks", MFD_CLOEXEC);
	off_t length = fd >= 0 && !weft_dump(fd) ? lseek(fd, 0, SEEK_END) : -1;

	(void)program;
	weft_http_add_header(http, "Content-Type", "text/plain; charset=utf-8");
	if (length >= 0)
		weft_http_send_file(http, fd, 0, (uint64_t)(length < TASKS_SHOWN ? length : TASKS_SHOWN));
	else
		weft_http_set_status(http, 503);
	if (fd >= 0)
		weft_close(fd);
}

static const char style[] =
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>httpd</title><style>body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;"
    "color:#223;background:#f6f7f9}h1{font-weight:600}a{color:#2458b8}dl{display:grid;gap:1em;"
    "grid-template-columns:repeat(auto-fill,minmax(11em,1fr))}dl div{background:#fff;border-radius:8px;padding:.8em "
    "1em;"
    "box-shadow:0 1px 3px #0002}dt{color:#667;font-size:.85em}dd{margin:0;font-size:1.5em;"
    "font-variant-numeric:tabular-nums}svg{width:100%;height:7em;background:#fff;border-radius:8px;"
    "box-shadow:0 1px 3px #0002}pre{background:#fff;padding:1em;overflow:auto;max-height:24em;font-size:.8em;"
    "border-radius:8px;box-shadow:0 1px 3px #0002}</style>";

/* The figures as tiles, requests per second as a line, and the tasks as text. */
static const char live_page[] =
    "<p id=state>Connecting…<dl id=tiles></dl><h2>Requests per second</h2><svg viewBox='0 0 120 40' "
    "preserveAspectRatio=none><polyline id=line fill=none stroke=#2458b8 vector-effect=non-scaling-stroke "
    "stroke-width=2 /></svg><h2>Tasks</h2><pre id=tasks></pre><script>"
    "const at=i=>document.getElementById(i),bytes=n=>{let u=0;for(;n>=1024&&u<4;u++)n/=1024;"
    "return n.toFixed(u?1:0)+' '+['B','KB','MB','GB','TB'][u]};let last,rates=[];"
    "const source=new EventSource('/-/events');source.onerror=()=>at('state').textContent='The server has stopped.';"
    "source.onmessage=e=>{const f=JSON.parse(e.data),d=k=>last?(f[k]-last[k])/Math.max(f.up-last.up,1):0;"
    "rates.push(d('requests'));if(rates.length>120)rates.shift();const top=Math.max(1,...rates);"
    "at('line').setAttribute('points',rates.map((r,i)=>i+','+(38-36*r/top)).join(' '));"
    "const tiles={'connections':f.connections,'accepted':f.accepted,'requests':f.requests,"
    "'per second':d('requests').toFixed(0),'errors':f.errors,'received':bytes(f.received),'sent':bytes(f.sent),"
    "'tasks':f.tasks,'switches per second':d('switches').toFixed(0),'resident memory':bytes(f.resident),"
    "'CPU':(100*d('cpu')).toFixed(0)+' %','workers':f.workers};at('tiles').innerHTML=Object.entries(tiles)"
    ".map(([k,v])=>`<div><dt>${k}</dt><dd>${v}</dd></div>`).join('');"
    "at('state').textContent='Up for '+f.up+' s.';last=f;};const show=()=>fetch('/-/tasks').then(r=>r.text())"
    ".then(t=>{at('tasks').textContent=t;setTimeout(show,2000)}).catch(()=>{});show()</script>";

static void live(weft_http_t *http, void *program)
{
	(void)program;
	weft_http_add_header(http, "Content-Type", "text/html; charset=utf-8");
	weft_http_printf(http, "%s<h1>httpd</h1><p>Stack policy %s, %s.%s", style,
			 weft_policy_name(weft_default_policy()), weft_io_backend(), live_page);
}

static void start_page(weft_http_t *http, void *program)
{
	const struct program *p = program;

	weft_http_add_header(http, "Content-Type", "text/html; charset=utf-8");
	weft_http_printf(http, "%s<h1>Hello, World!</h1><p>This server has no --root. You came by %s.%s\n", style,
			 weft_http_is_secure(http) ? "TLS" : "plain HTTP",
			 p->has_no_status ? "" : "<p><a href=/-/>Status</a> · <a href=/metrics>metrics</a>");
}

/* ---- listeners --------------------------------------------------------------------------------------------------- */

/* "host:port" or "port". */
static int listen_at_port(const char *address)
{
	const char *colon = strrchr(address, ':'), *text = colon ? colon + 1 : address;
	size_t length = colon ? (size_t)(colon - address) : 0;
	char host[256] = "127.0.0.1", *end;
	unsigned long port = strtoul(text, &end, 10);
	bool brackets = length > 1 && *address == '[' && colon[-1] == ']';

	if (*text < '0' || *text > '9' || *end || port > 65535 || length >= sizeof host)
		return -EINVAL;
	if (length)
		snprintf(host, sizeof host, "%.*s", (int)length - 2 * brackets, address + brackets);
	return weft_listen(colon && !length ? NULL : host, (unsigned)port, 0, 0);
}

/* Returns a descriptor or a negative errno. */
static int listen_at(const char *address)
{
	if (!strncmp(address, "fd:", 3))
		return atoi(address + 3);
	if (!strncmp(address, "unix:", 5))
		address += 5;
	return strchr("/.@", *address) ? weft_listen(address, 0, 0, 0) : listen_at_port(address);
}

static void open_listener(struct listener *l)
{
	const char *why;
	int error;

	if (l->certificate) {
		error = weft_http_tls_open(&l->tls, l->certificate, l->key, &why);
		if (error)
			refuse("--tls %s %s: %s", l->certificate, l->key, why ? why : strerror(-error));
	}
	l->fd = listen_at(l->address);
	if (l->fd < 0)
		refuse("--listen %s: %s", l->address, strerror(-l->fd));
	printf("listening at %s%s\n", l->address, l->tls ? " by TLS" : "");
}

static void *serve(void *listener)
{
	struct listener *l = listener;
	weft_http_server_t *server = l->program->server;
	int error = l->tls ? weft_http_serve_tls(server, l->fd, l->tls) : weft_http_serve(server, l->fd);

	if (error)
		refuse("--listen %s: %s", l->address, strerror(-error));
	return NULL;
}

static void reload_certificates(struct program *p)
{
	const char *why;
	int i, error;

	for (i = 0; i < p->count; i++) {
		struct listener *l = &p->listeners[i];

		error = l->tls ? weft_http_tls_reload(l->tls, &why) : 0;
		if (error)
			fprintf(stderr, "httpd: the certificate %s stays as it was: %s\n", l->certificate,
				why ? why : strerror(-error));
	}
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void add_status_pages(struct program *p)
{
	weft_http_route(p->server, "GET /-/", live, p);
	weft_http_route(p->server, "GET /-/events", events, p);
	weft_http_route(p->server, "GET /-/tasks", tasks, p);
	weft_http_route(p->server, "GET /metrics", metrics, p);
}

static void make_server(struct program *p)
{
	weft_http_config_t config = {.name = "weft-httpd", .log_context = stdout};
	int error;

	if (p->log)
		config.log = !strcmp(p->log, "json") ? weft_http_log_json : weft_http_log_common;
	error = weft_http_open(&p->server, &config);
	if (error)
		refuse("%s", strerror(-error));
	if (!p->has_no_status)
		add_status_pages(p);
	error = p->root ? weft_http_files(p->server, "/", p->root) : weft_http_route(p->server, "GET /", start_page, p);
	if (error)
		refuse("--root %s: %s", p->root, strerror(-error));
}

static void *run(void *program)
{
	struct program *p = program;
	int i;

	p->begun = weft_now();
	make_server(p);
	for (i = 0; i < p->count; i++)
		open_listener(&p->listeners[i]);
	WEFT_SCOPE(scope);
	for (i = 0; i < p->count; i++)
		if (weft_scope_spawn(&scope, serve, &p->listeners[i]))
			refuse("no memory");
	while (weft_sigwait(&p->signals, NULL) == SIGHUP)
		reload_certificates(p);
	weft_event_set(&p->stopping);
	p->result = weft_http_stop(p->server, weft_now() + 10ull * SECOND);
	weft_scope_wait(&scope);
	for (i = 0; i < p->count; i++) {
		weft_close(p->listeners[i].fd);
		weft_http_tls_close(p->listeners[i].tls);
	}
	weft_http_close(p->server);
	return NULL;
}

static void add_listener(struct program *p, const char *address, const char *certificate, const char *key)
{
	if (p->count == LISTENERS)
		refuse("more than %d listeners", LISTENERS);
	p->listeners[p->count++] =
	    (struct listener){.address = address, .certificate = certificate, .key = key, .program = p};
}

/* Adds the listeners that systemd passes: descriptors from 3 on. */
static void add_inherited(struct program *p, const char *certificate, const char *key)
{
	const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	static char addresses[LISTENERS][8];
	int i;

	for (i = 0; process && count && atoi(process) == getpid() && i < atoi(count) && i < LISTENERS; i++) {
		snprintf(addresses[i], sizeof addresses[i], "fd:%d", 3 + i);
		add_listener(p, addresses[i], certificate, key);
	}
}

static void set_stack(const char *policy)
{
	char name[20];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(policy, ":"), policy);
	if (weft_policy_named(name) == WEFT_DEFAULT_POLICY)
		refuse("--stack %s: no such policy", policy);
	setenv("WEFT_STACK", policy, 1);
}

/* Returns the next argument, which `option` needs. */
static const char *value_of(char ***at, const char *option)
{
	if (!*++*at)
		refuse("%s needs another value", option);
	return **at;
}

static bool is_one_of(const char *text, const char *one, const char *other)
{
	return !strcmp(text, one) || !strcmp(text, other);
}

static void set_workers(struct program *p, const char *value)
{
	char *end;
	unsigned long count = strtoul(value, &end, 10);

	if (!count || count > WEFT_WORKERS_MOST || *end)
		refuse("--workers %s: 1 to %d", value, WEFT_WORKERS_MOST);
	p->workers = (unsigned)count;
}

static void set_log(struct program *p, const char *value)
{
	if (!is_one_of(value, "common", "json"))
		refuse("--log %s: common or json", value);
	p->log = value;
}

static void set_io(const char *value)
{
	if (!is_one_of(value, "epoll", "io_uring"))
		refuse("--io %s: epoll or io_uring", value);
	setenv("WEFT_IO", value, 1);
}

static void read_option(struct program *p, char ***at)
{
	const char *option = **at;

	if (!strcmp(option, "--root"))
		p->root = value_of(at, option);
	else if (!strcmp(option, "--log"))
		set_log(p, value_of(at, option));
	else if (!strcmp(option, "--workers"))
		set_workers(p, value_of(at, option));
	else if (!strcmp(option, "--stack"))
		set_stack(value_of(at, option));
	else if (!strcmp(option, "--io"))
		set_io(value_of(at, option));
	else if (!strcmp(option, "--no-status"))
		p->has_no_status = true;
	else
		refuse("no option is called %s; the first lines of examples/httpd.c name all", option);
}

static void read_options(struct program *p, char **at)
{
	const char *certificate = NULL, *key = NULL;
	bool is_used = true; /* whether a --listen follows the certificate */

	while (*++at) {
		const char *option = *at;

		if (!strcmp(option, "--tls")) {
			certificate = value_of(&at, option);
			key = value_of(&at, option);
			is_used = false;
		} else if (!strcmp(option, "--listen")) {
			add_listener(p, value_of(&at, option), certificate, key);
			is_used = true;
		} else {
			read_option(p, &at);
		}
	}
	add_inherited(p, certificate, key);
	if (!p->count)
		add_listener(p, "127.0.0.1:8080", certificate, key);
	else if (!is_used && !getenv("LISTEN_FDS"))
		refuse("--tls %s %s: no --listen is behind it", certificate, key);
}

int main(int argc, char **argv)
{
	static struct program program;
	int error;

	(void)argc;
	read_options(&program, argv);
	sigemptyset(&program.signals);
	sigaddset(&program.signals, SIGINT);
	sigaddset(&program.signals, SIGTERM);
	sigaddset(&program.signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &program.signals, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	error = weft_rt_run(&(weft_rt_config_t){.workers = program.workers}, run, &program, NULL);
	return error || program.result ? 1 : 0;
}
