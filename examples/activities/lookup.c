/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lookup.c: looks up the addresses of six names: sequentially, all at once, at most three at a time, and with a
 * time-out. The look-up is plain C with plain system calls. A small name server on 127.0.0.1, also an activity, answers
 * late, and one name it never answers. If names are given as arguments, the program asks the system's resolver instead.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/charcoal.h>
#include <weft/defer.h>

enum { LATE = 50000 /* microseconds */, PATIENCE = 100000, MESSAGE = 512, HEADER = 12, NAMES = 6, AT_ONCE = 3 };

struct host {
	const char *name;
	struct in_addr address;
	bool found;
};

static struct sockaddr_in server = {.sin_family = AF_INET};

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void close_it(void *fd)
{
	close(*(int *)fd);
}

/* Encodes a name as in a message: each label after its length. Returns the number of bytes. */
static size_t write_name(unsigned char *at, const char *name)
{
	unsigned char *begin = at;

	while (*name) {
		size_t length = strcspn(name, ".");

		*at++ = (unsigned char)length;
		memcpy(at, name, length);
		at += length;
		name += length + (name[length] == '.');
	}
	*at++ = 0;
	return (size_t)(at - begin);
}

static size_t write_question(unsigned char *message, const char *name)
{
	static const unsigned char header[HEADER] = {'W', 'E', 1, 0, 0, 1}, address_please[] = {0, 1, 0, 1};
	size_t size = HEADER;

	memcpy(message, header, HEADER);
	size += write_name(message + size, name);
	memcpy(message + size, address_please, sizeof address_please);
	return size + sizeof address_please;
}

/* doc: begin ask */
static bool ask_server(struct host *h)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned char message[MESSAGE];
	size_t asked = write_question(message, h->name);
	ssize_t answered = -1;

	if (fd < 0)
		return false;
	weft_defer(close_it, &fd); /* also if this activity is cancelled */
	if (connect(fd, (struct sockaddr *)&server, sizeof server) == 0 &&
	    send(fd, message, asked, 0) == (ssize_t)asked)
		answered = recv(fd, message, sizeof message, 0);
	if (answered < (ssize_t)asked + 4 || !message[7])
		return false;
	memcpy(&h->address, message + answered - 4, 4);
	return true;
}

static bool ask_system(struct host *h)
{
	struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *got;

	if (getaddrinfo(h->name, NULL, &want, &got) != 0)
		return false;
	h->address = ((struct sockaddr_in *)got->ai_addr)->sin_addr;
	freeaddrinfo(got);
	return true;
}
/* doc: end */

static bool (*ask)(struct host *) = ask_server;
static int at_once, most_at_once;

static void look_up(struct host *h)
{
	at_once++;
	if (most_at_once < at_once)
		most_at_once = at_once;
	h->found = ask(h);
	at_once--;
}

/* ---- four ways --------------------------------------------------------------------------------------------------- */

/* doc: begin four */
static void one_after_another(struct host *hosts, int count)
{
	for (int i = 0; i < count; i++)
		look_up(&hosts[i]);
}

static void all_at_once(struct host *hosts, int count)
{
	activity_t each[count];
	int i;

	for (i = 0; i < count; i++)
		activate(&each[i], i)
		{
			look_up(&hosts[i]);
		}
	for (i = 0; i < count; i++)
		activity_wait(&each[i]);
}

static void some_at_once(struct host *hosts, int count)
{
	activity_t each[count];
	activity_sem_t free;
	int i;

	activity_sem_init(&free, AT_ONCE);
	for (i = 0; i < count; i++) {
		activity_sem_wait(&free);
		activate(&each[i], i)
		{
			look_up(&hosts[i]);
			activity_sem_post(&free);
		}
	}
	for (i = 0; i < count; i++)
		activity_wait(&each[i]);
}

/* The answer and the end of the time-out race: whichever comes first cancels the other. */
static bool with_time_out(struct host *host, unsigned patience)
{
	activity_t asks, waits;

	activate(&asks)
	{
		look_up(host);
		activity_cancel(&waits);
	}
	activate(&waits)
	{
		usleep(patience);
		activity_cancel(&asks);
	}
	activity_wait(&waits);
	return activity_wait(&asks) == 0;
}
/* doc: end */

static void show(const char *how, void (*way)(struct host *, int), struct host *hosts, int count)
{
	int i, found = 0;

	at_once = most_at_once = 0;
	way(hosts, count);
	for (i = 0; i < count; i++) {
		found += hosts[i].found;
		hosts[i].found = false;
	}
	printf("%s: %d of %d found, %d at a time\n", how, found, count, most_at_once);
}

static void show_one(struct host *h, unsigned patience)
{
	char text[INET_ADDRSTRLEN];

	if (!with_time_out(h, patience))
		printf("%s: too late\n", h->name);
	else if (!h->found)
		printf("%s: not found\n", h->name);
	else
		printf("%s: %s\n", h->name, inet_ntop(AF_INET, &h->address, text, sizeof text));
}

/* ---- the name server --------------------------------------------------------------------------------------------- */

struct query {
	struct sockaddr_in from;
	size_t size;
	unsigned char message[MESSAGE];
};

/* The address encodes the length of the name's first label. */
static void answer(int fd, struct query *q)
{
	static const unsigned char record[] = {0xc0, HEADER, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0};

	usleep(LATE);
	q->message[2] |= 0x80; /* an answer */
	q->message[7] = 1;     /* with one record */
	memcpy(q->message + q->size, record, sizeof record);
	q->message[q->size + sizeof record] = q->message[HEADER];
	sendto(fd, q->message, q->size + sizeof record + 1, 0, (struct sockaddr *)&q->from, sizeof q->from);
}

/* doc: begin serve */
static void serve(int fd)
{
	struct query q;

	for (;;) {
		socklen_t size = sizeof q.from;
		ssize_t n = recvfrom(fd, q.message, MESSAGE / 2, 0, (struct sockaddr *)&q.from, &size);

		q.size = (size_t)n;
		if (n > HEADER && memcmp(q.message + HEADER, "\5never", 6))
			activate_detached(fd, q)
			{
				answer(fd, &q);
			}
	}
}
/* doc: end */

static int open_server(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof server;

	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&server, size) || getsockname(fd, (struct sockaddr *)&server, &size))
		return perror("lookup"), -1;
	return fd;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void in_four_ways(struct host *hosts, int count)
{
	show("one after another", one_after_another, hosts, count);
	show("all at once", all_at_once, hosts, count);
	show("some at once", some_at_once, hosts, count);
}

static int of_our_server(void)
{
	static struct host hosts[NAMES] = {{.name = "a.test"},	  {.name = "bb.test"},	  {.name = "ccc.test"},
					   {.name = "dddd.test"}, {.name = "eeeee.test"}, {.name = "ffffff.test"}},
			   never = {.name = "never.test"};
	activity_t serves;
	int fd = open_server();

	if (fd < 0)
		return 1;
	activate(&serves)
	{
		serve(fd);
	}
	in_four_ways(hosts, NAMES);
	show_one(&hosts[2], 1000 * PATIENCE);
	show_one(&never, PATIENCE);
	activity_cancel(&serves);
	activity_wait(&serves);
	close(fd);
	return 0;
}

static int of_the_system(char **names, int count)
{
	struct host hosts[count];

	for (int i = 0; i < count; i++)
		hosts[i] = (struct host){.name = names[i]};
	ask = ask_system;
	in_four_ways(hosts, count);
	for (int i = 0; i < count; i++)
		show_one(&hosts[i], 10 * PATIENCE);
	return 0;
}

int activity_main(int argc, char **argv)
{
	return argc > 1 ? of_the_system(argv + 1, argc - 1) : of_our_server();
}
