/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The example's proxy and chat server under good, slow and hostile peers: soak SECONDS WORKERS.
 *
 *   peers → proxy → echo server          peers → chat server
 *
 * Good and slow peers check each byte that they get, and may not fail. Hostile peers hang up at once, reset, send
 * garbage, never read, close a direction and vanish, or are cancelled. In rounds: after each round all peers are gone,
 * and the process must have the descriptors that it had after the first round, and no more memory than after the third.
 */
#define _GNU_SOURCE
#include "soak.h"

#include "../sched/check.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <weft/io.h>

enum {
	PROXY_PEERS = 24,
	CHAT_PEERS = 10,
	ROUND = 3,     /* seconds */
	PATIENCE = 60, /* seconds, for each operation of a good peer; for the end of a round two thirds more */
	SETTLED = 3,   /* rounds until memory is compared */
	MARGIN = 4096, /* kilobytes of resident memory that may vary */
};

static uint64_t round_ends;
static struct {
	int echo, proxy, chat;
	char proxy_port[12], echo_name[40], chat_name[40];
} at;
static unsigned long good, slow, hostile, bytes, lines, dropped; /* atomic */

static void count(unsigned long *what, unsigned long more)
{
	__atomic_fetch_add(what, more, __ATOMIC_RELAXED);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		weft_close(*fd);
}

static uint64_t in(uint64_t nanoseconds)
{
	return weft_now() + nanoseconds;
}

/* Each peer has random numbers of its own. */
static unsigned below(uint64_t *random, unsigned limit)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*random >> 33) % limit;
}

static unsigned char byte_at(uint64_t key, size_t place)
{
	return (unsigned char)((key + place) * 0x9e3779b97f4a7c15u >> 40);
}

/* ---- servers ----------------------------------------------------------------------------------------------------- */

static void *echo(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char part[8192];
	ssize_t n;

	weft_defer(close_fd, &fd);
	while ((n = weft_read(fd, part, sizeof part)) > 0) {
		if (WEFT_CANARY(a_byte_is_wrong) && n > 4000)
			part[4000]++;
		if (weft_write_all(fd, part, (size_t)n) != n)
			break;
	}
	return NULL;
}

static void *hands_on(void *argument)
{
	int client = (int)(intptr_t)argument, server = -1;

	weft_defer(close_fd, &client);
	weft_defer(close_fd, &server);
	server = weft_dial(at.echo_name, NULL);
	CHECK(server >= 0);
	(void)soak_hand_on(client, server);
	return NULL;
}

struct service {
	int listener;
	weft_fn_t *fn;
};

static void *accepts(void *argument)
{
	const struct service *s = argument;
	int fd;

	WEFT_SCOPE(scope);
	for (;;) {
		fd = weft_accept(s->listener, NULL, NULL, 0);
		CHECK(fd >= 0);
		CHECK(weft_scope_spawn(&scope, s->fn, (void *)(intptr_t)fd) == 0);
	}
}

/* ---- good and slow peers of the proxy ---------------------------------------------------------------------------- */

struct peer {
	int fd;
	bool slow;
	uint64_t random, key;
	size_t length;
};

static void *sends(void *argument)
{
	struct peer *p = argument;
	unsigned char part[9000];
	uint64_t random = p->random + 1;
	size_t place, i, size;
	ssize_t n;

	for (place = 0; place < p->length; place += size) {
		size = 1 + below(&random, p->slow ? 500 : sizeof part - 1);
		if (size > p->length - place)
			size = p->length - place;
		for (i = 0; i < size; i++)
			part[i] = byte_at(p->key, place + i);
		n = weft_write_all_until(p->fd, part, size, in(PATIENCE * SECOND));
		CHECK(n == (ssize_t)size);
		if (p->slow)
			weft_sleep(below(&random, 20) * MS / 4);
	}
	CHECK(weft_shutdown(p->fd, SHUT_WR) == 0);
	return NULL;
}

static void *receives(void *argument)
{
	struct peer *p = argument;
	unsigned char part[7000];
	uint64_t random = p->random;
	size_t place = 0;
	ssize_t n, i;

	do {
		n = weft_read_until(p->fd, part, p->slow ? 1 + below(&random, 300) : sizeof part,
				    in(PATIENCE * SECOND));
		CHECK(n >= 0);
		for (i = 0; i < n; i++, place++)
			CHECK(part[i] == byte_at(p->key, place));
		if (p->slow)
			weft_sleep(below(&random, 20) * MS / 4);
	} while (n);
	CHECK(place == p->length);
	count(&bytes, place);
	return NULL;
}

static void asks(struct peer *p)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sends, p) == 0);
	CHECK(weft_scope_spawn(&scope, receives, p) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	count(p->slow ? &slow : &good, 1);
}

/* ---- hostile peers ----------------------------------------------------------------------------------------------- */

static void resets(int fd)
{
	const struct linger now = {1, 0};

	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
}

/* Sends and never reads, until the connection is full. */
static void stuffs(struct peer *p)
{
	char part[4096] = {1};
	unsigned i, most = 1 + below(&p->random, 300);
	ssize_t n = 1;

	for (i = 0; i < most && n > 0; i++)
		n = weft_write_until(p->fd, part, sizeof part, in(20 * MS));
}

static void *waits_for_ever(void *argument)
{
	struct peer *p = argument;
	char part[100];

	while (weft_read(p->fd, part, sizeof part) > 0)
		;
	return NULL;
}

static void is_cancelled(struct peer *p)
{
	weft_task_t task;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, waits_for_ever, p, NULL) == 0);
	stuffs(p);
	weft_task_cancel(&task);
	(void)weft_join(&task, NULL);
	(void)weft_scope_wait(&scope);
}

static void misbehaves(struct peer *p)
{
	switch (below(&p->random, 6)) {
	case 0:
		if (WEFT_CANARY(a_descriptor_stays))
			(void)dup(0);
		break; /* closes without a word */
	case 1:
		resets(p->fd);
		break;
	case 2:
		stuffs(p);
		resets(p->fd);
		break;
	case 3:
		stuffs(p);
		break;
	case 4:
		(void)weft_shutdown(p->fd, SHUT_WR);
		break;
	default:
		is_cancelled(p);
	}
	count(&hostile, 1);
}

static int dial(const char *name, const char *port)
{
	int fd = weft_dial(name, port);

	CHECK(fd >= 0 || fd == -EADDRNOTAVAIL);
	if (fd < 0)
		weft_sleep(100 * MS);
	return fd;
}

static void visits_proxy(struct peer *p)
{
	unsigned kind = below(&p->random, 10);

	p->fd = -1;
	weft_defer(close_fd, &p->fd);
	p->fd = dial("127.0.0.1", at.proxy_port);
	p->key = p->random;
	p->slow = kind == 0;
	p->length = p->slow ? below(&p->random, 20000) : below(&p->random, 400000);
	if (p->fd < 0)
		return;
	if (kind < 6)
		asks(p);
	else
		misbehaves(p);
}

static void *visits(void *argument)
{
	struct peer p = {.random = (uintptr_t)argument * 7919};

	while (weft_now() < round_ends)
		visits_proxy(&p);
	return NULL;
}

/* ---- chat -------------------------------------------------------------------------------------------------------- */

enum { VISITS = 4 }; /* of a peer, heard at once: a visit begins before all lines of the last visit have been sent */

struct chatter {
	int fd;
	unsigned number, visit;
	size_t used;
	char name[16], input[512];
	struct {
		unsigned visit;
		long last; /* -1: none */
	} heard[CHAT_PEERS][VISITS];
};

/* A peer's name: "peer", a letter, and the number of its visit in letters. */
static int name_of(const struct chatter *c, char name[16])
{
	unsigned v = c->visit;

	return snprintf(name, 16, "peer%c%c%c%c%c\n", 'a' + (int)c->number, 'a' + v / 17576 % 26, 'a' + v / 676 % 26,
			'a' + v / 26 % 26, 'a' + v % 26);
}

/* "NAME: NUMBER CHECK". A stranger's line is garbage, and no error. The lines of a peer's visit are heard without a
 * gap, from the line that was sent when the listener came. */
static void hears(struct chatter *c, const char *line)
{
	unsigned long check;
	unsigned visit, slot;
	char who, v[5];
	long number;

	if (sscanf(line, "peer%c%4[a-z]: %ld %lx", &who, v, &number, &check) != 4)
		return;
	CHECK(who >= 'a' && who < 'a' + CHAT_PEERS);
	CHECK(check == (unsigned long)number * 2654435761u % 0xffffff + (unsigned)who);
	visit = (unsigned)(v[0] - 'a') * 17576 + (unsigned)(v[1] - 'a') * 676 + (unsigned)(v[2] - 'a') * 26 +
		(unsigned)(v[3] - 'a');
	slot = visit % VISITS;
	if (c->heard[who - 'a'][slot].visit == visit)
		CHECK(number == c->heard[who - 'a'][slot].last + 1);
	c->heard[who - 'a'][slot].visit = visit;
	c->heard[who - 'a'][slot].last = number;
	count(&lines, 1);
}

/* Returns 0 if the server has hung up. */
static bool listens(struct chatter *c)
{
	ssize_t n = weft_read_until(c->fd, c->input + c->used, sizeof c->input - c->used, in(5 * MS));
	char *end;

	if (n == -ETIMEDOUT)
		return true;
	if (n <= 0)
		return false;
	c->used += (size_t)n;
	while ((end = memchr(c->input, '\n', c->used))) {
		*end = '\0';
		hears(c, c->input);
		c->used -= (size_t)(end + 1 - c->input);
		memmove(c->input, end + 1, c->used);
	}
	CHECK(c->used < sizeof c->input);
	return true;
}

static void talks(struct chatter *c, uint64_t *random)
{
	char text[64];
	long number = 0, most = 1 + below(random, 60);
	int length;

	while (number < most) {
		length = snprintf(text, sizeof text, "%ld %lx\n", number,
				  (unsigned long)number * 2654435761u % 0xffffff + 'a' + c->number);
		if (weft_write_all_until(c->fd, text, (size_t)length, in(PATIENCE * SECOND)) != length)
			break;
		number++;
		if (!listens(c))
			break;
	}
	count(number < most ? &dropped : &good, 1);
}

static void chat_garbage(struct chatter *c, uint64_t *random)
{
	struct peer p = {.fd = c->fd, .random = *random};
	char name[] = "stranger\n";

	if (below(random, 2))
		(void)weft_write_all(c->fd, name,
				     sizeof name - 1); /* after this line, all peers receive this peer's lines */
	misbehaves(&p);
}

static unsigned visit_number[CHAT_PEERS]; /* counts across rounds, too */

static void visits_chat(struct chatter *c, uint64_t *random)
{
	int length;

	c->fd = -1;
	weft_defer(close_fd, &c->fd);
	c->fd = dial(at.chat_name, NULL);
	c->used = 0;
	memset(c->heard, -1, sizeof c->heard);
	if (below(random, 4) == 0) {
		chat_garbage(c, random);
		return;
	}
	c->visit = __atomic_add_fetch(&visit_number[c->number], 1, __ATOMIC_RELAXED);
	length = name_of(c, c->name);
	if (weft_write_all(c->fd, c->name, (size_t)length) == length)
		talks(c, random);
}

static void *chats(void *argument)
{
	struct chatter c = {.number = (unsigned)(uintptr_t)argument};
	uint64_t random = c.number * 104729;

	while (weft_now() < round_ends)
		visits_chat(&c, &random);
	return NULL;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
	fclose(file);
	return pages * 4;
}

static void hangs(int signal)
{
	(void)signal;
	dprintf(1, "not ok - a round does not end\n");
	kill(getpid(), SIGQUIT); /* prints the wait of each task */
	sleep(3);
	_exit(1);
}

/* The tasks that served the peers notice their end a moment later. */
static unsigned settled_descriptors(unsigned expected)
{
	unsigned count, turn;

	for (turn = 0; (count = descriptors()) != expected && turn < 2000; turn++)
		weft_sleep(5 * MS);
	return count;
}

static void one_round(unsigned number)
{
	uintptr_t i;

	alarm(ROUND + PATIENCE + 40);
	round_ends = in(ROUND * SECOND);
	WEFT_SCOPE(scope);
	for (i = 0; i < PROXY_PEERS; i++)
		CHECK(weft_scope_spawn(&scope, visits, (void *)(number * 100 + i)) == 0);
	for (i = 0; i < CHAT_PEERS; i++)
		CHECK(weft_scope_spawn(&scope, chats, (void *)i) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void report(unsigned number, unsigned fds, long kilobytes)
{
	if (number < 5 || number % 20 == 0)
		printf("# round %u: %lu good, %lu slow, %lu hostile, %lu dropped by chat; %lu bytes, %lu lines; %u "
		       "descriptors, %ld KB, %zu B allocated\n",
		       number, good, slow, hostile, dropped, bytes, lines, fds, kilobytes, mallinfo2().uordblks);
}

static void all_rounds(unsigned rounds)
{
	unsigned number, fds = 0;
	long kilobytes, most = 0;

	for (number = 1; number <= rounds; number++) {
		one_round(number);
		if (number == 1) { /* by now each worker has made its allocations */
			weft_sleep(2 * SECOND);
			fds = descriptors();
		}
		CHECK(settled_descriptors(fds) == fds);
		alarm(0);
		kilobytes = resident();
		report(number, fds, kilobytes);
		if (number <= SETTLED)
			most = kilobytes > most ? kilobytes : most;
		else
			CHECK(kilobytes <= most + MARGIN);
	}
	CHECK(good && slow && hostile && lines);
	printf("ok - %u rounds: %lu good, %lu slow, %lu hostile; %lu bytes, %lu lines\n", rounds, good, slow, hostile,
	       bytes, lines);
}

static void *run(void *argument)
{
	struct service echoes, proxies;

	snprintf(at.echo_name, sizeof at.echo_name, "@weft-soak-echo-%d", (int)getpid());
	snprintf(at.chat_name, sizeof at.chat_name, "@weft-soak-chat-%d", (int)getpid());
	at.echo = weft_listen(at.echo_name, 0, 0, 0);
	at.chat = weft_listen(at.chat_name, 0, 0, 0);
	at.proxy = weft_listen("127.0.0.1", 0, 0, 0);
	CHECK(at.echo >= 0 && at.chat >= 0 && at.proxy >= 0);
	snprintf(at.proxy_port, sizeof at.proxy_port, "%d", weft_port(at.proxy));
	echoes = (struct service){at.echo, echo};
	proxies = (struct service){at.proxy, hands_on};
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, accepts, &echoes) == 0);
	CHECK(weft_scope_spawn(&scope, accepts, &proxies) == 0);
	CHECK(weft_scope_spawn(&scope, soak_chat, &at.chat) == 0);
	weft_sleep(10 * MS);
	all_rounds(*(unsigned *)argument / ROUND);
	weft_scope_cancel(&scope, -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -ECANCELED);
	CHECK(weft_close(at.echo) == 0 && weft_close(at.proxy) == 0 && weft_close(at.chat) == 0);
	return argument;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 12;
	weft_rt_config_t config = {.workers = argc > 2 ? (unsigned)atoi(argv[2]) : 2, .dump_signal = SIGQUIT};
	void *result;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, hangs);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return weft_rt_run(&config, run, &seconds, &result) != 0;
}
