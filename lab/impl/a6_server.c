/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of experiment A6, continuous load: an HTTP server by weft/http.h whose handlers use tasks and coroutines
 * as programs do. It runs until its standard input ends, so it never outlives the lab.
 *
 *   workers=N    threads
 *   root=DIR     the directory of the file "data", which /files/ serves
 *   leak=N       bytes of memory that each exchange leaks, so that tests can check the lab's verdict
 *   leak_fd=N    each Nth exchange leaks a descriptor
 *   leak_map=N   each Nth exchange leaks a mapping of two pages
 *
 * Standard output has one line of JSON for each line of the input, one at the beginning, with the port, and one at the
 * end, when all connections and tasks must have ended.
 */
#define _GNU_SOURCE
#include "a6.h"
#include "deep.h"
#include "io_server.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <weft/http.h>
#include <weft/sync.h>

enum { LINE_MOST = 32, DEPTH = 96, FRAME = 256, STACK = 2 * DEPTH * FRAME, SECOND = 1000000000 };

struct program {
	int argc;
	char **argv;
	weft_http_server_t *server;
	int64_t leak, leak_fd, leak_map;
	_Atomic uint64_t exchanges;
};

static uint64_t number_of(weft_http_t *http, const char *name)
{
	weft_http_text_t text = weft_http_param(http, name);

	return text.data ? strtoull(text.data, NULL, 10) : 0;
}

/* ---- replies ----------------------------------------------------------------------------------------------------- */

static void small(weft_http_t *http, void *unused)
{
	char body[A6_SMALL];

	(void)unused;
	a6_fill(body, sizeof(body), number_of(http, "key"), 0);
	weft_http_reply(http, 200, "application/octet-stream", body, sizeof(body));
}

static void echo(weft_http_t *http, void *unused)
{
	char part[3000];
	ssize_t n;

	(void)unused;
	while ((n = weft_http_read(http, part, sizeof(part))) > 0)
		if (weft_http_write(http, part, (size_t)n) != n)
			return;
	if (!n)
		weft_http_flush(http); /* an empty body is a response, too */
}

static void stream(weft_http_t *http, void *unused)
{
	uint64_t length = number_of(http, "length"), key = number_of(http, "key");
	char part[5000];
	size_t at, size;

	(void)unused;
	for (at = 0; at < length; at += size) {
		size = length - at < sizeof(part) ? length - at : sizeof(part);
		a6_fill(part, size, key, at);
		if (weft_http_write(http, part, size) != (ssize_t)size)
			return;
	}
	if (!length)
		weft_http_flush(http);
}

static void events(weft_http_t *http, void *unused)
{
	uint64_t i, count = number_of(http, "count");
	char text[24];

	(void)unused;
	for (i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%" PRIu64, i);
		if (weft_http_event(http, "tick", NULL, text) || weft_sleep(200000))
			return;
	}
}

static void blocking(weft_http_t *http, void *unused)
{
	(void)unused;
	weft_blocking
	{
		usleep(200);
	}
	weft_http_reply(http, 200, "text/plain", "done", 4);
}

static void fails(weft_http_t *http, void *unused)
{
	(void)http;
	(void)unused;
	weft_task_fail(-EIO);
}

/* ---- a line of tasks --------------------------------------------------------------------------------------------- */

struct line;

struct station {
	struct line *line;
	unsigned number;
};

/* Station i receives values from channel i and sends them to channel i + 1. */
struct line {
	weft_chan_t *channels[LINE_MOST + 1];
	unsigned length;
	struct station stations[LINE_MOST];
	weft_mutex_t lock;
	uint64_t passed; /* under the lock */
	weft_event_t never;
};

/* A stack that grows with each call until `work` is called at the deepest place. */
static LAB_NOINLINE void descend(unsigned depth, void (*work)(void *), void *argument)
{
	volatile char frame[FRAME / 2];

	frame[0] = frame[sizeof(frame) - 1] = (char)depth;
	if (depth)
		descend(depth - 1, work, argument);
	else
		work(argument);
	LAB_KEEP(depth);
	frame[1] = frame[0];
}

static void pass_one(void *station)
{
	struct station *s = station;
	uint64_t value;
	weft_case_t cases[] = {{.chan = s->line->channels[s->number], .receive = &value}, {.event = &s->line->never}};

	if (weft_select(cases, 2) || cases[0].status || weft_mutex_lock(&s->line->lock))
		return;
	s->line->passed++;
	weft_mutex_unlock(&s->line->lock);
	value++;
	(void)weft_chan_send(s->line->channels[s->number + 1], &value);
}

static void *station(void *station)
{
	struct station *s = station;

	for (unsigned i = 0; i < A6_ROUNDS; i++)
		descend((s->number * 7 + i * 31) % DEPTH, pass_one, s);
	return NULL;
}

static void wait_for_ever(void *line)
{
	(void)weft_event_wait(&((struct line *)line)->never);
}

static void *sleeper(void *line)
{
	descend(DEPTH, wait_for_ever, line);
	return NULL;
}

static void free_line(struct line *line)
{
	for (unsigned i = 0; i <= line->length; i++)
		weft_chan_free(line->channels[i]);
}

static bool make_line(struct line *line, unsigned length)
{
	bool well = true;

	line->length = length;
	for (unsigned i = 0; i <= length; i++) {
		line->channels[i] = weft_chan_make(sizeof(uint64_t), A6_ROUNDS);
		well = well && line->channels[i];
		if (i < length)
			line->stations[i] = (struct station){line, i};
	}
	return well;
}

static int start_line(weft_scope_t *scope, struct line *line, const weft_task_attr_t *attr)
{
	int error = 0;

	for (unsigned i = 0; i < line->length && !error; i++)
		error = weft_scope_spawn_with(scope, NULL, station, &line->stations[i], attr);
	return error;
}

/* Returns the sum of the values that arrive at the end of the line. */
static uint64_t use_line(struct line *line, uint64_t key)
{
	uint64_t sum = 0, value;

	for (uint64_t i = 0; i < A6_ROUNDS; i++) {
		value = key + i;
		(void)weft_chan_send(line->channels[0], &value);
	}
	for (unsigned i = 0; i < A6_ROUNDS; i++)
		if (!weft_chan_receive(line->channels[line->length], &value))
			sum += value;
	return sum;
}

/* Creates two tasks that wait for ever: the first is cancelled directly, the second with the scope. */
static int cancel_sleepers(struct line *line, const weft_task_attr_t *attr)
{
	weft_task_t task;
	int error;

	WEFT_SCOPE(scope);
	error = weft_scope_spawn_with(&scope, &task, sleeper, line, attr);
	if (!error)
		error = weft_scope_spawn_with(&scope, NULL, sleeper, line, attr);
	if (error)
		return error;
	(void)weft_op_yield();
	weft_task_cancel(&task);
	error = weft_join(&task, NULL) == -ECANCELED ? 0 : -EPROTO;
	weft_scope_cancel(&scope, -ECANCELED);
	return weft_scope_wait(&scope) == -ECANCELED ? error : -EPROTO;
}

static int run_line(struct line *line, uint64_t key, uint64_t *sum)
{
	weft_task_attr_t attr = {.coro.stack_size = lab_stack_for(STACK), .coro.name = "station"};
	int error;

	WEFT_SCOPE(scope);
	error = start_line(&scope, line, &attr);
	if (error)
		return error;
	*sum = use_line(line, key);
	error = cancel_sleepers(line, &attr);
	return error ? error : weft_scope_wait(&scope);
}

/* Replies with the sum of the values that passed and the number of passages. */
static void tasks(weft_http_t *http, void *unused)
{
	struct line line = {.passed = 0};
	uint64_t sum = 0, count = number_of(http, "count");
	int error = -ENOMEM;

	(void)unused;
	weft_defer(free_line, &line);
	if (make_line(&line, (unsigned)(count < LINE_MOST ? count : LINE_MOST)))
		error = run_line(&line, number_of(http, "key"), &sum);
	if (error)
		weft_http_set_status(http, 503);
	weft_http_printf(http, "%" PRIu64 " %" PRIu64 " %d", sum, line.passed, error);
}

/* ---- coroutines -------------------------------------------------------------------------------------------------- */

/* Yields the number of frames below each A6_STEP frames, on the way back. */
static LAB_NOINLINE uint64_t climb(weft_coro_t *self, uint64_t depth)
{
	volatile char frame[FRAME / 2];
	uint64_t below;

	frame[0] = frame[sizeof(frame) - 1] = (char)depth;
	below = depth ? climb(self, depth - 1) + 1 : 0;
	if (below && below % A6_STEP == 0)
		(void)weft_yield(self, &weft_suspended, (void *)(uintptr_t)below);
	frame[1] = frame[0];
	return below;
}

static void *climber(void *depth)
{
	return (void *)(uintptr_t)climb(weft_current(), (uintptr_t)depth);
}

/* Returns the sum of the values that one coroutine yields. Each second coroutine is deleted while frames are on its
 * stack. */
static uint64_t resume_some(weft_coro_t *k, bool all)
{
	uint64_t sum = 0;
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	for (unsigned seen = 1; !weft_returned(r); seen++) {
		sum += (uintptr_t)r.payload;
		if (!all && seen == A6_YIELDS_SEEN)
			break;
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	}
	return sum;
}

static void coroutines(weft_http_t *http, void *unused)
{
	weft_attr_t attr = {.stack_size = lab_stack_for(STACK), .name = "climber"};
	uint64_t sum = 0, depth = number_of(http, "depth");
	weft_coro_t *all[A6_COROUTINES];
	unsigned i, made;

	(void)unused;
	for (made = 0; made < A6_COROUTINES; made++) {
		all[made] = weft_create_with(climber, (void *)(uintptr_t)(depth < DEPTH ? depth : DEPTH), &attr);
		if (!all[made])
			break;
	}
	for (i = 0; i < made; i++)
		sum += resume_some(all[i], i % 2 == 0);
	for (i = 0; i < made; i++)
		weft_delete(all[i]);
	weft_http_set_status(http, made == A6_COROUTINES ? 200 : 503);
	weft_http_printf(http, "%" PRIu64, sum);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Runs after each exchange: counts it, and leaks as the parameters say. */
static void after_exchange(const weft_http_entry_t *entry, void *program)
{
	struct program *p = program;
	uint64_t count = ++p->exchanges;

	(void)entry;
	if (p->leak)
		memset(malloc((size_t)p->leak), 1, (size_t)p->leak);
	if (p->leak_fd && count % (uint64_t)p->leak_fd == 0)
		(void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (p->leak_map && count % (uint64_t)p->leak_map == 0) {
		char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		/* Neighbours with different rights are not merged. */
		if (pages != MAP_FAILED)
			mprotect(pages, 4096, PROT_NONE);
	}
}

/* The time-outs end hostile connections within a turn of load. They end no other connection, even if the machine stands
 * still for a second. */
static void open_server(struct program *p)
{
	const char *root = lab_text(p->argc, p->argv, "root");
	weft_http_config_t config = {.connections = 512,
				     .body = 1 << 17,
				     .header_time = 3ull * SECOND,
				     .body_time = 3ull * SECOND,
				     .idle_time = 10ull * SECOND,
				     .write_time = 3ull * SECOND,
				     .log = after_exchange,
				     .log_context = p};
	weft_http_server_t *s;

	io_check(weft_http_open(&s, &config), "weft_http_open");
	io_check(weft_http_route(s, "GET /small/:key", small, NULL), "/small");
	io_check(weft_http_route(s, "POST /echo", echo, NULL), "/echo");
	io_check(weft_http_route(s, "GET /stream/:length/:key", stream, NULL), "/stream");
	io_check(weft_http_route(s, "GET /events/:count", events, NULL), "/events");
	io_check(weft_http_route(s, "GET /blocking", blocking, NULL), "/blocking");
	io_check(weft_http_route(s, "GET /fails", fails, NULL), "/fails");
	io_check(weft_http_route(s, "GET /tasks/:count/:key", tasks, NULL), "/tasks");
	io_check(weft_http_route(s, "GET /coroutines/:depth", coroutines, NULL), "/coroutines");
	if (root)
		io_check(weft_http_files(s, "/files/", root), root);
	p->server = s;
}

static void say(const struct program *p, int port)
{
	weft_http_stats_t http;
	weft_rt_stats_t tasks;
	weft_stack_stats_t stacks = {0};
	char line[400];
	int length;

	weft_http_stats(p->server, &http);
	weft_rt_stats(&tasks);
	weft_stack_stats(WEFT_DEFAULT_POLICY, &stacks);
	length = snprintf(line, sizeof(line),
			  "{\"port\": %d, \"connections\": %" PRIu64 ", \"accepted\": %" PRIu64 ", \"good\": %" PRIu64
			  ", \"refused\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"lost\": %" PRIu64
			  ", \"tasks\": %zu, \"spawned\": %" PRIu64 ", \"stacks\": %zu, \"cached\": %zu}\n",
			  port, http.connections, http.accepted, http.statuses[2], http.statuses[4], http.statuses[5],
			  http.statuses[0], tasks.live, tasks.spawned, stacks.live, stacks.cached);
	io_must(write(STDOUT_FILENO, line, (size_t)length) == length, "standard output");
}

struct serving {
	struct program *program;
	int listener;
};

static void *serve(void *serving)
{
	struct serving *s = serving;

	io_check(weft_http_serve(s->program->server, s->listener), "weft_http_serve");
	return NULL;
}

static void answer_lab(struct program *p, int port)
{
	char part[64];

	while (weft_read(STDIN_FILENO, part, sizeof(part)) > 0)
		say(p, port);
}

static void *first(void *program)
{
	const char *wanted = getenv("WEFT_IO");
	struct serving serving = {program, weft_listen("127.0.0.1", 0, 0, 0)};
	struct program *p = program;

	if (wanted && strcmp(wanted, weft_io_backend()))
		lab_cannot("no %s here, but %s", wanted, weft_io_backend());
	io_check(serving.listener, "listen");
	io_raise_limit(); /* before weft_http_open, which reads it */
	open_server(p);
	WEFT_SCOPE(scope);
	io_check(weft_scope_spawn(&scope, serve, &serving), "weft_scope_spawn");
	say(p, weft_port(serving.listener));
	answer_lab(p, weft_port(serving.listener));
	(void)weft_http_stop(p->server, weft_now() + SECOND);
	io_check(weft_scope_wait(&scope), "serve");
	weft_close(serving.listener);
	say(p, 0);
	weft_http_close(p->server);
	return NULL;
}

int main(int argc, char **argv)
{
	struct program program = {.argc = argc,
				  .argv = argv,
				  .leak = lab_number(argc, argv, "leak", 0),
				  .leak_fd = lab_number(argc, argv, "leak_fd", 0),
				  .leak_map = lab_number(argc, argv, "leak_map", 0)};
	weft_rt_config_t config = {.workers = (unsigned)lab_number(argc, argv, "workers", 4)};

	errno = -weft_rt_run(&config, first, &program, NULL);
	if (errno)
		lab_die("the runtime");
	return 0;
}
