/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * chat.c: a chat server of plain system calls. For each client one activity reads the client's lines, and a second
 * activity writes to the client from a mailbox. Each line that a client sends goes to all mailboxes within no_yield, so
 * the list of members does not change meanwhile. With a port as argument the program serves that port of 127.0.0.1 (nc
 * 127.0.0.1 PORT). Without an argument, three clients of the program talk in turns, and the lines that the first client
 * reads are printed.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/charcoal.h>

enum { LINE = 200, NAME = 15, ROOM = 32, CLIENTS = 3, LINES = 6 };

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Bytes that were read and do not form a complete line yet. */
struct input {
	int fd;
	size_t used;
	char bytes[LINE];
};

/* Reads the next line and removes its line end. Returns false if there are no more lines or the line is too long. */
static bool read_line(struct input *in, char line[LINE])
{
	char *end;
	ssize_t n;

	while (!(end = memchr(in->bytes, '\n', in->used))) {
		n = read(in->fd, in->bytes + in->used, sizeof in->bytes - in->used);
		if (n <= 0)
			return false;
		in->used += (size_t)n;
	}
	*end++ = '\0';
	memcpy(line, in->bytes, (size_t)(end - in->bytes));
	in->used -= (size_t)(end - in->bytes);
	memmove(in->bytes, end, in->used);
	return true;
}

static bool write_line(int fd, const char *line)
{
	char bytes[LINE + NAME + 4];
	int length = snprintf(bytes, sizeof bytes, "%s\n", line);

	return send(fd, bytes, (size_t)length, MSG_NOSIGNAL) == length;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

/* A client that has sent its name. The object is in the frame of the client's session. */
struct member {
	struct member *next;
	struct input in;
	char name[NAME + 1];
	activity_mail_t out; /* lines to write to it, from malloc */
};

static struct member *members;

/* doc: begin tell */
/* A client that does not read its lines is dropped: its reading activity ends. */
static void tell(struct member *m, const char *who, const char *text)
{
	size_t size = strlen(who) + strlen(text) + 3;
	char *line = malloc(size);

	if (line)
		snprintf(line, size, "%s: %s", who, text);
	if (!line || weft_activity_try_send(&m->out, line) != 0) {
		free(line);
		shutdown(m->in.fd, SHUT_RDWR);
	}
}

static void tell_all(const char *who, const char *text)
{
	for (struct member *m = members; m; m = m->next)
		tell(m, who, text);
}

static void leave(struct member *m)
{
	struct member **link = &members;

	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
}

static void write_out(struct member *m)
{
	void *line;

	while (activity_receive(&m->out, &line) == 0) {
		write_line(m->in.fd, line);
		free(line);
	}
}

static void converse(struct member *m)
{
	char line[LINE];
	activity_t writer;

	activate(&writer)
	{
		write_out(m);
	}
	m->next = members;
	members = m;
	no_yield_expr(tell_all(m->name, "is here"));
	while (read_line(&m->in, line))
		no_yield_expr(tell_all(m->name, line));
	no_yield
	{
		leave(m);
		tell_all(m->name, "has left");
	}
	weft_activity_mail_close(&m->out);
	activity_wait(&writer);
}
/* doc: end */

static void session(int fd)
{
	struct member m = {.in.fd = fd};
	char line[LINE];

	activity_mail_init(&m.out, ROOM);
	if (read_line(&m.in, line)) {
		snprintf(m.name, sizeof m.name, "%s", line);
		converse(&m);
	}
	weft_activity_mail_end(&m.out);
	close(fd);
}

/* doc: begin serve */
static void serve(int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0)
			activate_detached(fd)
			{
				session(fd);
			}
	}
}
/* doc: end */

static int open_listener(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
	socklen_t size = sizeof *at;

	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ||
	    bind(fd, (struct sockaddr *)at, size) || listen(fd, 64) || getsockname(fd, (struct sockaddr *)at, &size))
		return perror("chat"), -1;
	return fd;
}

/* ---- its clients ------------------------------------------------------------------------------------------------- */

static const char *const names[CLIENTS] = {"ann", "bob", "eve"};
static activity_sem_t joined;

/* The first client talks when all have joined. Each later client talks when the line of the client before has
 * arrived. */
static void talk(struct input *in, int number)
{
	char line[LINE];
	int here = 0, heard = 0;

	while (heard < LINES && read_line(in, line)) {
		if (strstr(line, ": is here")) {
			if (++here == 1)
				activity_sem_post(&joined);
		} else {
			heard++;
			if (number == 0)
				printf("%s\n", line);
		}
		snprintf(line, sizeof line, "line %d", heard);
		if (heard < LINES && heard % CLIENTS == number && (number || here == CLIENTS))
			write_line(in->fd, line);
	}
}

static void client(const struct sockaddr_in *server, int number)
{
	struct input in = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

	if (connect(in.fd, (const struct sockaddr *)server, sizeof *server) == 0 && write_line(in.fd, names[number]))
		talk(&in, number);
	close(in.fd);
}

static void clients(const struct sockaddr_in *server)
{
	activity_t each[CLIENTS];
	int i;

	activity_sem_init(&joined, 0);
	for (i = 0; i < CLIENTS; i++) {
		activate(&each[i], i)
		{
			client(server, i);
		}
		activity_sem_wait(&joined);
	}
	for (i = 0; i < CLIENTS; i++)
		activity_wait(&each[i]);
}

int activity_main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0)};
	int listener = open_listener(&at);
	activity_t server;

	if (listener < 0)
		return 1;
	activate(&server)
	{
		serve(listener);
	}
	if (argc == 1) {
		clients(&at);
		activity_cancel(&server);
	}
	activity_wait(&server);
	close(listener);
	return 0;
}
