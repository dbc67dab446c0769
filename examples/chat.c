/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * chat.c: a chat server. Each client has two tasks, a reader and a writer, and a channel with room for a few lines
 * between the broadcaster and its writer. The broadcaster never waits for a client: a client whose channel is full is
 * dropped. Three clients talk in turns; the fourth client does not read, and the three continue until the server drops
 * it.
 *
 *   client → reader → `said` → broadcaster → `out` → writer → client
 *                                          → `out` → writer → another client
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/io.h>
#include <weft/sync.h>

#define SECOND 1000000000ull

#ifndef PATIENCE
#define PATIENCE 0 /* the broadcaster's; with WEFT_NEVER a client that does not read blocks all clients */
#endif

enum { LINE = 256, NAME = 15, TEXT = 200, ROOM = 16, TALKERS = 3 };

struct line {
	char text[LINE]; /* ends with a 0 instead of the end of line */
};

static void close_fd(int *fd)
{
	weft_close(*fd);
}

static void free_channel(weft_chan_t **channel)
{
	weft_chan_free(*channel);
}

static int write_line(int fd, const char *text)
{
	char bytes[LINE + 1];
	int length = snprintf(bytes, sizeof bytes, "%s\n", text);
	ssize_t n = weft_write_all(fd, bytes, (size_t)length);

	return n == length ? 0 : n < 0 ? (int)n : -EPIPE;
}

/* Bytes that were read and do not form a complete line yet. */
struct input {
	int fd;
	size_t used;
	char bytes[LINE];
};

/* Returns 0; -EPIPE: there are no more lines; -EMSGSIZE: a line is too long; or the error of weft_read. */
static int read_line(struct input *in, struct line *line, uint64_t deadline)
{
	size_t length;
	char *end;
	ssize_t n;

	while (!(end = memchr(in->bytes, '\n', in->used))) {
		if (in->used == sizeof in->bytes)
			return -EMSGSIZE;
		n = weft_read_until(in->fd, in->bytes + in->used, sizeof in->bytes - in->used, deadline);
		if (n <= 0)
			return n ? (int)n : -EPIPE;
		in->used += (size_t)n;
	}
	*end = '\0';
	length = (size_t)(end - in->bytes) + 1;
	memcpy(line->text, in->bytes, length);
	in->used -= length;
	memmove(in->bytes, end + 1, in->used);
	return 0;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

struct server {
	int listener;
	weft_chan_t *said; /* lines for everybody */
	weft_mutex_t lock; /* protects the list; a task that holds it does not wait */
	struct member *members;
	unsigned count;
};

/* A client that has sent its name. The object is in the frame of the client's session. */
struct member {
	struct server *server;
	struct member *next;
	bool is_listed; /* under the server's lock, like `next` */
	int fd;
	char name[NAME + 1];
	weft_chan_t *out;    /* lines for this client */
	weft_scope_t *scope; /* the session's: cancelled when the client is dropped */
};

/* doc: begin deliver */
/* Queues the line for each member. Members without room for it leave the list. Returns a list of these members. */
static struct member *deliver(struct server *s, const struct line *line)
{
	struct member **link = &s->members, *m, *full = NULL;

	while ((m = *link)) {
		if (weft_chan_send_until(m->out, line, PATIENCE) == 0) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		m->is_listed = false;
		s->count--;
		m->next = full;
		full = m;
	}
	return full;
}

/* The notices about a dropped member may find further members without room. */
static void deliver_and_drop(struct server *s, const struct line *line)
{
	struct member *full = deliver(s, line), *m, **last;
	struct line notice;

	while ((m = full)) {
		full = m->next;
		snprintf(notice.text, sizeof notice.text, "* %s could not keep up", m->name);
		weft_scope_cancel(m->scope, -ENOBUFS);
		for (last = &full; *last; last = &(*last)->next)
			;
		*last = deliver(s, &notice);
	}
}

static void *broadcast(void *argument)
{
	struct server *s = argument;
	struct line line;

	while (weft_chan_receive(s->said, &line) == 0) {
		weft_mutex_lock(&s->lock);
		deliver_and_drop(s, &line); /* a dropped member's session waits for the lock before it ends */
		weft_mutex_unlock(&s->lock);
	}
	return NULL;
}
/* doc: end */

/* Returns 0 or an error. If a client is dropped while its line waits for room, that line is its last. */
static int say(struct server *s, const char *who, const char *text)
{
	struct line line;

	snprintf(line.text, sizeof line.text, "%.*s%.*s", NAME + 2, who, TEXT, text);
	return weft_chan_send(s->said, &line);
}

static void enter(struct member *m)
{
	char notice[32];

	weft_mutex_lock(&m->server->lock);
	m->next = m->server->members;
	m->server->members = m;
	m->is_listed = true;
	snprintf(notice, sizeof notice, "%u here", ++m->server->count);
	weft_mutex_unlock(&m->server->lock);
	(void)say(m->server, "* ", notice);
}

/* Runs however the session ends: afterwards the broadcaster does not know the member. */
static void leave(struct member *m)
{
	struct member **link = &m->server->members;

	weft_shield_begin();
	weft_mutex_lock(&m->server->lock);
	if (m->is_listed) {
		while (*link != m)
			link = &(*link)->next;
		*link = m->next;
		m->server->count--;
		m->is_listed = false;
	}
	weft_mutex_unlock(&m->server->lock);
	weft_shield_end();
	weft_chan_close(m->out);
}

static void *write_out(void *argument)
{
	struct member *m = argument;
	struct line line;

	while (weft_chan_receive(m->out, &line) == 0)
		if (write_line(m->fd, line.text) != 0)
			break;
	return NULL;
}

/* Reads until the client hangs up or is dropped. */
static void read_in(struct member *m, struct input *in)
{
	char who[NAME + 3];
	struct line line;

	snprintf(who, sizeof who, "%s: ", m->name);
	while (read_line(in, &line, WEFT_NEVER) == 0 && say(m->server, who, line.text) == 0)
		;
}

/* A client that has shut down its own direction still gets the lines sent before, if it reads them within a second. */
static void converse(struct member *m, struct input *in)
{
	weft_task_t writer;

	WEFT_SCOPE(scope);
	m->scope = &scope;
	weft_defer(leave, m);
	enter(m);
	if (weft_scope_spawn_with(&scope, &writer, write_out, m, NULL) != 0)
		return;
	read_in(m, in);
	leave(m);
	(void)weft_join_until(&writer, NULL, weft_now() + SECOND);
}

/* Letters only, so that no name looks like another name or like a notice. */
static bool read_name(struct input *in, char name[NAME + 1])
{
	struct line line;
	size_t i;

	if (read_line(in, &line, weft_now() + 10 * SECOND) != 0)
		return false;
	for (i = 0; isalpha((unsigned char)line.text[i]); i++)
		if (i == NAME)
			return false;
	memcpy(name, line.text, i + 1);
	return i > 0 && !line.text[i];
}

struct guest {
	struct server *server;
	int fd;
};

/* An error here ends one client's session and affects nothing else. */
static void *session(void *argument)
{
	struct guest guest = *(struct guest *)argument;
	struct member m = {.server = guest.server, .fd = guest.fd};
	struct input in = {.fd = guest.fd};

	free(argument);
	weft_defer(close_fd, &m.fd);
	m.out = weft_chan_make(sizeof(struct line), ROOM);
	weft_defer(free_channel, &m.out);
	if (m.out && read_name(&in, m.name))
		converse(&m, &in);
	return NULL;
}

static int welcome(struct server *s, weft_scope_t *scope, int fd)
{
	struct guest *guest = malloc(sizeof *guest);
	int error = guest ? 0 : -ENOMEM;

	if (guest) {
		*guest = (struct guest){s, fd};
		error = weft_scope_spawn(scope, session, guest);
	}
	if (error) {
		free(guest);
		weft_close(fd);
	}
	return error;
}

static void *serve(void *argument)
{
	struct server *s = argument;
	int fd, error;

	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, broadcast, s);
	while (!error) {
		fd = weft_accept(s->listener, NULL, NULL, 0);
		error = fd < 0 ? fd : welcome(s, &scope, fd);
	}
	weft_task_fail(error);
}

/* ---- its clients ------------------------------------------------------------------------------------------------- */

struct world {
	struct server server;
	char address[32];
	weft_event_t dropped; /* the client that does not read */
};

struct client {
	struct world *world;
	unsigned number, heard;
	bool over, saw_drop;
	struct input in;
};

static const char *const names[TALKERS + 1] = {"alice", "bob", "carol", "dave"};

static void check(int error)
{
	if (error)
		weft_task_fail(error);
}

static void join_chat(struct client *c)
{
	c->in.fd = weft_dial(c->world->address, NULL);
	if (c->in.fd < 0)
		weft_task_fail(c->in.fd);
}

static void tell_name(struct client *c)
{
	check(write_line(c->in.fd, names[c->number]));
}

/* Waits until all clients are here. No client talks before. */
static void wait_for_others(struct client *c)
{
	struct line line;
	unsigned count = 0;

	while (count != TALKERS + 1) {
		check(read_line(&c->in, &line, WEFT_NEVER));
		if (sscanf(line.text, "* %u here", &count) != 1)
			weft_task_fail(-EPROTO);
	}
}

/* Lines are numbered, and as long as they may be, so that the buffers of the fourth client, which does not read, fill
 * up soon. The first client ends the conversation when it has heard that the fourth was dropped. */
static void speak(struct client *c)
{
	char text[TEXT];

	snprintf(text, sizeof text, "%u %0150d", c->heard, 0);
	check(write_line(c->in.fd, c->number == 0 && c->saw_drop ? "bye" : text));
}

static bool is_next(const struct client *c, const char *text)
{
	char expected[32];
	int length = snprintf(expected, sizeof expected, "%s: %u ", names[c->heard % TALKERS], c->heard);

	return !strncmp(text, expected, (size_t)length);
}

/* Waits for the next line that a client said, and counts the notices on the way. Returns 0, or the error if no more
 * lines come. */
static int hear(struct client *c)
{
	struct line line;
	int error;

	while ((error = read_line(&c->in, &line, WEFT_NEVER)) == 0 && line.text[0] == '*')
		c->saw_drop |= !strcmp(line.text, "* dave could not keep up");
	if (error)
		return error;
	c->over = !strcmp(line.text, "alice: bye");
	if (!c->over && !is_next(c, line.text))
		weft_task_fail(-EPROTO);
	c->heard += !c->over;
	return 0;
}

/* Each client talks when the line of the client before has arrived, so a reading client is never more than a few lines
 * behind. */
static void *talk(void *argument)
{
	struct client *c = argument;

	join_chat(c);
	weft_defer(close_fd, &c->in.fd);
	tell_name(c);
	wait_for_others(c);
	while (!c->over) {
		if (c->heard % TALKERS == c->number)
			speak(c);
		check(hear(c));
	}
	weft_event_set(&c->world->dropped);
	return NULL;
}

/* Lines that were sent are still there when the server has hung up: the beginning of the conversation. There are none
 * if the task that writes to this client got no processor meanwhile. */
static void *read_nothing(void *argument)
{
	struct client *c = argument;

	join_chat(c);
	weft_defer(close_fd, &c->in.fd);
	tell_name(c);
	check(weft_event_wait(&c->world->dropped));
	while (!c->over && hear(c) == 0)
		;
	return NULL;
}

static int converse_all(struct client clients[TALKERS + 1])
{
	int i, error = 0;

	WEFT_SCOPE(scope);
	for (i = 0; i <= TALKERS && !error; i++)
		error = weft_scope_spawn(&scope, i < TALKERS ? talk : read_nothing, &clients[i]);
	if (error)
		weft_scope_cancel(&scope, error);
	return weft_scope_wait(&scope);
}

static void report(const struct client *c)
{
	if (c[0].heard != c[1].heard || c[1].heard != c[2].heard)
		weft_task_fail(-EPROTO);
	printf("alice, bob and carol heard every line of theirs, in order\n");
	printf("dave did not read: he was dropped, and had been sent %s\n",
	       c[3].heard < c[0].heard ? "the beginning of it" : "all of it");
}

static void *run(void *argument)
{
	struct world *w = argument;
	struct client clients[TALKERS + 1];
	int i, error, server_error;

	for (i = 0; i <= TALKERS; i++)
		clients[i] = (struct client){.world = w, .number = (unsigned)i};
	snprintf(w->address, sizeof w->address, "@weft-chat-%d", (int)getpid());
	w->server.listener = weft_listen(w->address, 0, 0, 0);
	if (w->server.listener < 0)
		weft_task_fail(w->server.listener);
	weft_defer(close_fd, &w->server.listener);
	w->server.said = weft_chan_make(sizeof(struct line), ROOM);
	weft_defer(free_channel, &w->server.said);
	check(w->server.said ? 0 : -ENOMEM);
	WEFT_SCOPE(scope);
	check(weft_scope_spawn(&scope, serve, &w->server));
	error = converse_all(clients);
	weft_scope_cancel(&scope, -ECANCELED);
	server_error = weft_scope_wait(&scope);
	check(server_error == -ECANCELED ? error : server_error);
	report(clients);
	return NULL;
}

int main(void)
{
	struct world w = {0};
	int error = weft_rt_run(NULL, run, &w, NULL);

	if (error)
		fprintf(stderr, "chat: %s\n", strerror(-error));
	return error != 0;
}
