/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Resolves names with a DNS server on 127.0.0.1, which is a thread of this program. The requested name selects the
 * server's behaviour: it answers late, loses packets, lies, truncates, or does not answer.
 *
 *   dns WORKERS [TEST]   0: in a thread
 *   dns WORKERS libc     the tests that must also pass with getaddrinfo
 *   dns WORKERS absent   WEFT_DNS=ares, and there is no libcares
 */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <weft/io.h>

enum { MESSAGE = 4096, TOGETHER = 150, LONG_ANSWER = 20, LATE = 40 /* milliseconds */, MOST = 32 };
enum { A = 1, CNAME = 5, AAAA = 28, NO_SUCH_NAME = 3, SERVER_FAILED = 2 };

/* How long c-ares waits, in milliseconds, and how often it tries: long enough that a delay on a busy machine is not
 * mistaken for a lost packet. c-ares asks by TCP only once. */
#define PATIENCE "retrans:3000 retry:3"

static unsigned workers;

/* ---- the server -------------------------------------------------------------------------------------------------- */

static struct {
	int udp, tcp, stop[2];
	unsigned asked, by_tcp; /* questions; atomic */
	unsigned lost;		/* how many datagrams for lost.test are still to be lost; atomic */
	unsigned held;
	bool released; /* all questions have arrived */
	struct answer {
		unsigned char text[MESSAGE];
		size_t length;
		struct sockaddr_in to;
		uint64_t when; /* 0: the slot is free; WEFT_NEVER: send when all questions have arrived */
	} answers[4 * TOGETHER];
} server;

/* A message. Its question ends at `end`. */
struct question {
	unsigned char text[MESSAGE];
	size_t end;
	unsigned type;
	char name[256];
};

static bool read_question(struct question *q, size_t length)
{
	size_t at = 12, name = 0, i;

	while (at < length && q->text[at]) {
		for (i = 1; i <= q->text[at] && at + i < length && name < sizeof q->name - 2; i++)
			q->name[name++] = (char)q->text[at + i];
		q->name[name++] = '.';
		at += i;
	}
	if (at + 5 > length || !name)
		return false;
	q->name[name - 1] = '\0';
	q->type = (unsigned)q->text[at + 1] << 8 | q->text[at + 2];
	q->end = at + 5;
	return true;
}

static bool is(const struct question *q, const char *name)
{
	return !strcasecmp(q->name, name);
}

static void begin_answer(struct question *q, unsigned code, bool truncated)
{
	static const unsigned char rest[] = {0, 1, 0, 0, 0, 0, 0, 0};

	q->text[2] = (unsigned char)(0x84 | (truncated ? 2 : 0) | (q->text[2] & 1));
	q->text[3] = (unsigned char)(0x80 | code);
	memcpy(q->text + 4, rest, sizeof rest);
}

static void add_record(struct question *q, unsigned type, const void *data, size_t length)
{
	unsigned char record[] = {0xc0, 12, 0, (unsigned char)type, 0, 1, 0, 0, 0, 1, 0, (unsigned char)length};

	memcpy(q->text + q->end, record, sizeof record);
	memcpy(q->text + q->end + sizeof record, data, length);
	q->end += sizeof record + length;
	q->text[7]++;
}

static void add_number(struct question *q, unsigned last)
{
	unsigned char number[] = {10, 1, 2, (unsigned char)last};

	add_record(q, A, number, sizeof number);
}

static bool is_known(const struct question *q)
{
	static const char *const names[] = {"quick.test", "both.test", "alias.test",	"lost.test", "late.test",
					    "long.test",  "liar.test", "together.test", "loop.test", "race.test"};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (is(q, names[i]))
			return true;
	return false;
}

static void answer_question(struct question *q, bool by_tcp)
{
	static const unsigned char quick[] = "\5quick\4test", loop[] = {127, 0, 0, 1}, second[] = {127, 0, 0, 2},
				   six[16] = {0xfd, [15] = 6};
	unsigned i;

	if (!is_known(q)) {
		begin_answer(q, is(q, "broken.test") ? SERVER_FAILED : NO_SUCH_NAME, false);
		return;
	}
	begin_answer(q, 0, is(q, "long.test") && !by_tcp);
	if (is(q, "both.test") && q->type == AAAA)
		add_record(q, AAAA, six, sizeof six);
	if (q->type != A || (is(q, "long.test") && !by_tcp))
		return;
	if (is(q, "alias.test")) {
		add_record(q, CNAME, quick, sizeof quick);
		/* The next record belongs to the name in the previous record. */
		i = (unsigned)(q->end - sizeof quick);
		add_number(q, 3);
		q->text[q->end - 15] = (unsigned char)i;
	} else if (is(q, "loop.test")) {
		add_record(q, A, loop, sizeof loop);
	} else if (is(q, "race.test")) {
		add_record(q, A, second, sizeof second);
		add_record(q, A, loop, sizeof loop);
	} else {
		for (i = 0; i < (is(q, "long.test") ? LONG_ANSWER : 1); i++)
			add_number(q, 3 + i);
	}
}

static void send_answer(const struct answer *a)
{
	CHECK(sendto(server.udp, a->text, a->length, 0, (const struct sockaddr *)&a->to, sizeof a->to) ==
	      (ssize_t)a->length);
}

static void answer_later(const struct question *q, const struct sockaddr_in *to, uint64_t when)
{
	struct answer *a = server.answers;

	while (a->when)
		CHECK(++a < server.answers + sizeof server.answers / sizeof *server.answers);
	memcpy(a->text, q->text, q->end);
	a->length = q->end;
	a->to = *to;
	a->when = when;
}

static bool is_lost(const struct question *q)
{
	if (is(q, "never.test"))
		return true;
	if (!is(q, "lost.test") || !__atomic_load_n(&server.lost, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_sub(&server.lost, 1, __ATOMIC_RELAXED);
	return true;
}

/* A question that the client repeats. */
static bool is_held(const struct question *q, const struct sockaddr_in *from)
{
	const struct answer *a;

	for (a = server.answers; a < server.answers + sizeof server.answers / sizeof *server.answers; a++)
		if (a->when == WEFT_NEVER && a->to.sin_port == from->sin_port && !memcmp(a->text, q->text, 2))
			return true;
	return false;
}

/* The time at which the answer is sent. */
static uint64_t time_of(const struct question *q)
{
	struct answer *a;

	if (is(q, "late.test"))
		return weft_now() + LATE * MS;
	if (!is(q, "together.test") || q->type != A || server.released)
		return 1;
	if (++server.held < TOGETHER)
		return WEFT_NEVER;
	server.released = true;
	for (a = server.answers; a < server.answers + sizeof server.answers / sizeof *server.answers; a++)
		a->when = a->when ? 1 : 0;
	return 1;
}

static void serve_datagram(void)
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	struct question q;
	ssize_t length = recvfrom(server.udp, q.text, sizeof q.text, 0, (struct sockaddr *)&from, &size);

	if (length < 0 || !read_question(&q, (size_t)length))
		return;
	__atomic_fetch_add(&server.asked, 1, __ATOMIC_RELAXED);
	if (is_lost(&q))
		return;
	if (is_held(&q, &from))
		return;
	answer_question(&q, false);
	if (is(&q, "liar.test") && q.type == A) {
		/* First sends an answer to a different question, with a different address. */
		q.text[0] ^= 0x55;
		q.text[q.end - 1] = 66;
		answer_later(&q, &from, 1);
		q.text[0] ^= 0x55;
		q.text[q.end - 1] = 3;
	}
	answer_later(&q, &from, time_of(&q));
}

/* Serves until the client closes the connection. The client may wait for datagrams before it does. */
static void *serve_connection(void *argument)
{
	int fd = (int)(intptr_t)argument;
	unsigned char size[2];
	struct question q;

	while (recv(fd, size, 2, MSG_WAITALL) == 2) {
		size_t length = (size_t)size[0] << 8 | size[1];

		CHECK(length <= sizeof q.text && recv(fd, q.text, length, MSG_WAITALL) == (ssize_t)length);
		CHECK(read_question(&q, length));
		__atomic_fetch_add(&server.by_tcp, 1, __ATOMIC_RELAXED);
		answer_question(&q, true);
		size[0] = (unsigned char)(q.end >> 8);
		size[1] = (unsigned char)q.end;
		/* The size is sent in two pieces. */
		CHECK(send(fd, size, 2, MSG_NOSIGNAL) == 2);
		usleep(1000);
		CHECK(send(fd, q.text, q.end, MSG_NOSIGNAL) == (ssize_t)q.end);
	}
	close(fd);
	return NULL;
}

static void accept_connection(void)
{
	int fd = accept(server.tcp, NULL, NULL);
	pthread_t thread;

	CHECK(fd >= 0 && !pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd));
	CHECK(pthread_detach(thread) == 0);
}

/* Sends the answers that are due. Returns the milliseconds until the next answer is due, or -1 if there is none. */
static int send_due(void)
{
	uint64_t now = weft_now(), next = WEFT_NEVER;
	struct answer *a;

	for (a = server.answers; a < server.answers + sizeof server.answers / sizeof *server.answers; a++) {
		if (a->when && a->when <= now) {
			send_answer(a);
			a->when = 0;
		}
		if (a->when && a->when < next)
			next = a->when;
	}
	return next == WEFT_NEVER ? -1 : (int)((next - now) / MS) + 1;
}

static void *serve(void *unused)
{
	struct pollfd fds[] = {{server.stop[0], POLLIN, 0}, {server.udp, POLLIN, 0}, {server.tcp, POLLIN, 0}};

	for (;;) {
		CHECK(poll(fds, 3, send_due()) >= 0);
		if (fds[0].revents)
			return unused;
		if (fds[1].revents)
			serve_datagram();
		if (fds[2].revents)
			accept_connection();
	}
}

/* Opens UDP and TCP at the same port. */
static unsigned open_server(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof at;
	int tries;

	for (tries = 0; tries < 100; tries++) {
		at.sin_port = 0;
		server.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		server.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(bind(server.tcp, (struct sockaddr *)&at, sizeof at) == 0 && listen(server.tcp, 100) == 0);
		CHECK(getsockname(server.tcp, (struct sockaddr *)&at, &size) == 0);
		if (bind(server.udp, (struct sockaddr *)&at, sizeof at) == 0)
			return ntohs(at.sin_port);
		close(server.udp);
		close(server.tcp);
	}
	CHECK(!"a port");
	return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static weft_address_t found[MOST];

static int look_up(const char *name)
{
	memset(found, 0x77, sizeof found);
	return weft_resolve(name, "80", SOCK_STREAM, found, MOST);
}

static bool is_number(const weft_address_t *a, const char *number, unsigned port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a->address;
	char text[INET_ADDRSTRLEN];

	return a->size == sizeof *in && in->sin_family == AF_INET && ntohs(in->sin_port) == port &&
	       !strcmp(inet_ntop(AF_INET, &in->sin_addr, text, sizeof text), number);
}

static unsigned questions(void)
{
	return __atomic_load_n(&server.asked, __ATOMIC_RELAXED);
}

static unsigned scope_of(const weft_address_t *a)
{
	return ((const struct sockaddr_in6 *)&a->address)->sin6_scope_id;
}

static void *digits(void *pass)
{
	unsigned before = questions();

	CHECK(look_up("127.0.0.1") == 1 && is_number(found, "127.0.0.1", 80));
	CHECK(look_up("::1") == 1 && found[0].size == sizeof(struct sockaddr_in6));
	CHECK(weft_resolve("127.0.0.1", NULL, SOCK_DGRAM, found, 1) == 1 && is_number(found, "127.0.0.1", 0));
	CHECK(look_up("fe80::1%lo") == 1 && scope_of(&found[0]) == 1 && look_up("fe80::1%3") == 1);
	CHECK(scope_of(&found[0]) == 3);
	CHECK(weft_resolve("127.0.0.1", "80", SOCK_STREAM, found, 0) == 0);
	CHECK(weft_resolve_until("127.0.0.1", "80", SOCK_STREAM, found, 1, 1) == (workers ? -ETIMEDOUT : 1));
	CHECK(questions() == before);
	return pass;
}

static void *a_service(void *pass)
{
	static const char *const wrong[] = {"no-such-service", "80x", "-1", "+1", "65536", "99999", ""};
	size_t i;

	CHECK(weft_resolve("127.0.0.1", "http", SOCK_STREAM, found, 1) == 1 && is_number(found, "127.0.0.1", 80));
	CHECK(weft_resolve("localhost", "http", SOCK_STREAM, found, MOST) > 0);
	CHECK(weft_resolve("localhost", "0", SOCK_STREAM, found, MOST) > 0);
	CHECK(weft_resolve("localhost", NULL, SOCK_STREAM, found, MOST) > 0);
	for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK(weft_resolve("localhost", wrong[i], SOCK_STREAM, found, MOST) == -EINVAL);
		CHECK(weft_resolve("127.0.0.1", wrong[i], SOCK_STREAM, found, MOST) == -EINVAL);
	}
	return pass;
}

/* Names from the system's hosts file. */
static void *local(void *pass)
{
	unsigned before = questions();
	int i, count = look_up("localhost"), right = 0;

	for (i = 0; i < count; i++)
		right += is_number(&found[i], "127.0.0.1", 80);
	CHECK(right == 1 && questions() == before);
	return pass;
}

/* Names from a hosts file of the test. */
static void *hosts_file(void *pass)
{
	unsigned before = questions();

	CHECK(look_up("ofthefile.test") == 1 && is_number(found, "10.9.8.7", 80) && questions() == before);
	return pass;
}

static void *addresses(void *pass)
{
	int i, six = 0, four = 0;

	CHECK(look_up("quick.test") == 1 && is_number(found, "10.1.2.3", 80));
	CHECK(look_up("alias.test") == 1 && is_number(found, "10.1.2.3", 80));
	CHECK(look_up("liar.test") == 1 && is_number(found, "10.1.2.3", 80));
	CHECK(look_up("both.test") == 2);
	for (i = 0; i < 2; i++) {
		six += found[i].address.ss_family == AF_INET6;
		four += is_number(&found[i], "10.1.2.3", 80);
	}
	CHECK(six == 1 && four == 1);
	CHECK(weft_resolve("both.test", NULL, SOCK_DGRAM, found, 1) == 1);
	return pass;
}

static void *no_address(void *pass)
{
	CHECK(look_up("none.test") == -ENOENT);
	CHECK(look_up("broken.test") == -EAGAIN);
	setenv("RES_OPTIONS", "retrans:100 retry:2", 1);
	CHECK(look_up("never.test") == -EAGAIN);
	setenv("RES_OPTIONS", PATIENCE, 1);
	return pass;
}

static void *a_lost_packet(void *pass)
{
	__atomic_store_n(&server.lost, 2, __ATOMIC_RELAXED);
	setenv("RES_OPTIONS", "retrans:100 retry:7", 1);
	CHECK(look_up("lost.test") == 1 && is_number(found, "10.1.2.3", 80));
	setenv("RES_OPTIONS", PATIENCE, 1);
	CHECK(__atomic_load_n(&server.lost, __ATOMIC_RELAXED) == 0);
	return pass;
}

static void *a_long_answer(void *pass)
{
	unsigned before = __atomic_load_n(&server.by_tcp, __ATOMIC_RELAXED);
	int i, count = look_up("long.test"), seen = 0;
	char number[16];

	CHECK(count == LONG_ANSWER && __atomic_load_n(&server.by_tcp, __ATOMIC_RELAXED) > before);
	for (i = 0; i < count; i++) {
		snprintf(number, sizeof number, "10.1.2.%d", 3 + i);
		for (int j = 0; j < count; j++)
			seen += is_number(&found[j], number, 80);
	}
	CHECK(seen == LONG_ANSWER);
	return pass;
}

/* The first server does not answer, so the second server is asked: two sockets. */
static void *two_servers(void *pass)
{
	char servers[64], *before = strdup(getenv("WEFT_DNS_SERVERS"));
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof at;

	CHECK(bind(fd, (struct sockaddr *)&at, size) == 0 && getsockname(fd, (struct sockaddr *)&at, &size) == 0);
	snprintf(servers, sizeof servers, "127.0.0.1:%d,%s", ntohs(at.sin_port), before);
	setenv("WEFT_DNS_SERVERS", servers, 1);
	setenv("RES_OPTIONS", "retrans:500 retry:5", 1);
	CHECK(look_up("quick.test") == 1 && is_number(found, "10.1.2.3", 80));
	setenv("RES_OPTIONS", PATIENCE, 1);
	CHECK(look_up("long.test") == LONG_ANSWER);
	setenv("WEFT_DNS_SERVERS", "no server", 1);
	CHECK(look_up("quick.test") == -EINVAL);
	setenv("WEFT_DNS_SERVERS", before, 1);
	free(before);
	close(fd);
	return pass;
}

static void *deadlines(void *pass)
{
	uint64_t begin = weft_now();
	int i, result, in_time = 0, too_late = 0;

	CHECK(weft_resolve_until("never.test", NULL, SOCK_STREAM, found, MOST, begin + 30 * MS) == -ETIMEDOUT);
	CHECK(weft_now() >= begin + 30 * MS);
	CHECK(weft_resolve_until("never.test", NULL, SOCK_STREAM, found, MOST, 0) == -ETIMEDOUT);
	for (i = 0; i < 20; i++) {
		memset(found, 0x77, sizeof found);
		result = weft_resolve_until("late.test", "80", SOCK_STREAM, found, MOST,
					    weft_now() + (uint64_t)(LATE - 10 + i) * MS);
		CHECK(result == -ETIMEDOUT || (result == 1 && is_number(found, "10.1.2.3", 80)));
		CHECK(result == 1 || *(unsigned char *)found == 0x77);
		in_time += result == 1;
		too_late += result < 0;
	}
	CHECK(too_late > 0);
	printf("  %d in time, %d too late\n", in_time, too_late);
	return pass;
}

struct asker {
	const char *name;
	weft_address_t address;
	int result;
};

static void *asks(void *argument)
{
	struct asker *a = argument;

	a->result = weft_resolve(a->name, "80", SOCK_STREAM, &a->address, 1);
	return NULL;
}

static void *cancelled(void *pass)
{
	struct asker askers[8];
	int i, turn;

	for (turn = 0; turn < 20; turn++) {
		WEFT_SCOPE(scope);
		for (i = 0; i < 8; i++) {
			askers[i] = (struct asker){i % 2 ? "never.test" : "late.test", {0}, 77};
			CHECK(weft_scope_spawn(&scope, asks, &askers[i]) == 0);
		}
		weft_sleep((uint64_t)turn * MS / 4);
		weft_scope_cancel(&scope, -ECANCELED);
		CHECK(weft_scope_wait(&scope) == -ECANCELED);
		for (i = 0; i < 8; i++)
			CHECK((askers[i].result == 77 && !askers[i].address.size) ||
			      (askers[i].result == 1 && is_number(&askers[i].address, "10.1.2.3", 80)));
	}
	return pass;
}

/* More tasks than helper threads: the server answers none before the last question has arrived. */
static void *together(void *pass)
{
	static struct asker askers[TOGETHER];
	int i;

	WEFT_SCOPE(scope);
	for (i = 0; i < TOGETHER; i++) {
		askers[i] = (struct asker){"together.test", {0}, 77};
		CHECK(weft_scope_spawn(&scope, asks, &askers[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	for (i = 0; i < TOGETHER; i++)
		CHECK(askers[i].result == 1 && is_number(&askers[i].address, "10.1.2.3", 80));
	return pass;
}

static void *dialling(void *pass)
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0), fd;
	char port[8];

	CHECK(listener >= 0);
	snprintf(port, sizeof port, "%d", weft_port(listener));
	fd = weft_dial("loop.test", port);
	CHECK(fd >= 0);
	CHECK(weft_close(fd) == 0 && weft_close(listener) == 0);
	CHECK(weft_dial("none.test", port) == -ENOENT);
	CHECK(weft_dial_until("never.test", port, weft_now() + 10 * MS) == -ETIMEDOUT);
	return pass;
}

/* The first address does not answer. */
static void *racing(void *pass)
{
	int full = weft_listen("127.0.0.1", 0, 1, 0), good, fd, i, fds[6], flags, none = fcntl(0, F_GETFD);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof to;
	uint64_t begin;
	char port[8];

	to.sin_port = htons((uint16_t)weft_port(full));
	snprintf(port, sizeof port, "%d", weft_port(full));
	good = weft_listen("127.0.0.2", (unsigned)weft_port(full), 0, 0);
	CHECK(full >= 0 && good >= 0 && none >= 0);
	for (i = 0; i < 6; i++) {
		fds[i] = weft_socket(AF_INET, SOCK_STREAM, 0);
		flags = weft_connect_until(fds[i], (struct sockaddr *)&to, sizeof to, weft_now() + 5 * MS);
		CHECK(!flags || flags == -ETIMEDOUT);
	}
	begin = weft_now();
	fd = weft_dial_until("race.test", port, begin + 3000 * MS);
	CHECK(fd >= 0 && weft_now() - begin < 2000 * MS && !getpeername(fd, (struct sockaddr *)&to, &size));
	CHECK(to.sin_addr.s_addr == htonl(INADDR_LOOPBACK + 1));
	CHECK(weft_write(fd, "x", 1) == 1 && weft_close(fd) == 0);
	CHECK(weft_close(good) == 0);
	begin = weft_now();
	CHECK(weft_dial_until("race.test", port, begin + 30 * MS) == -ETIMEDOUT && weft_now() - begin < 200 * MS);
	for (i = 0; i < 6; i++)
		CHECK(weft_close(fds[i]) == 0);
	CHECK(weft_close(full) == 0);
	CHECK(weft_dial("race.test", port) == -ECONNREFUSED);
	return pass;
}

static void *absent(void *pass)
{
	CHECK(look_up("localhost") == -ENOSYS);
	CHECK(look_up("127.0.0.1") == 1);
	return pass;
}

enum { ALWAYS = 1, IN_THREAD = 2, BY_LIBC = 4, ALONE = 8 };
static const struct {
	const char *name;
	weft_fn_t *fn;
	unsigned when;
} tests[] = {
    {"digits", digits, IN_THREAD | BY_LIBC},
    {"a_service", a_service, IN_THREAD | BY_LIBC},
    {"local", local, IN_THREAD | BY_LIBC},
    {"hosts_file", hosts_file, IN_THREAD},
    {"addresses", addresses, IN_THREAD},
    {"no_address", no_address, IN_THREAD},
    {"a_lost_packet", a_lost_packet, IN_THREAD},
    {"a_long_answer", a_long_answer, IN_THREAD},
    {"two_servers", two_servers, IN_THREAD},
    {"deadlines", deadlines, IN_THREAD},
    {"cancelled", cancelled, 0},
    {"together", together, 0},
    {"dialling", dialling, IN_THREAD},
    {"racing", racing, IN_THREAD},
    {"absent", absent, ALONE},
};

static bool is_wanted(size_t i, const char *only)
{
	if (!workers && !(tests[i].when & IN_THREAD))
		return false;
	if (only && !strcmp(only, "libc"))
		return tests[i].when & BY_LIBC;
	return only ? !strcmp(only, tests[i].name) : !(tests[i].when & ALONE);
}

static int descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	CHECK(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void run_test(size_t i)
{
	weft_rt_config_t config = {.workers = workers};
	int before = descriptors(), error = 0, turns = 0;
	void *result = NULL;

	if (workers)
		error = weft_rt_run(&config, tests[i].fn, &config, &result);
	else
		result = tests[i].fn(&config);
	/* The server closes its ends of connections a little later. */
	while (descriptors() != before && turns++ < 1000)
		usleep(1000);
	if (error || result != &config)
		printf("not ok - %s: %s\n", tests[i].name, strerror(-error));
	else if (descriptors() != before)
		printf("not ok - %s: descriptors are left: %d\n", tests[i].name, descriptors() - before);
	else
		printf("ok - %s\n", tests[i].name);
	fflush(stdout);
}

/* Sets where c-ares looks for servers and names, and makes its waits short. */
static void prepare_environment(const char *hosts)
{
	char servers[32];
	FILE *file = fopen(hosts, "w");

	CHECK(file && fprintf(file, "10.9.8.7 ofthefile.test\n127.0.0.1 localhost\n") > 0 && fclose(file) == 0);
	setenv("CARES_HOSTS", hosts, 1);
	snprintf(servers, sizeof servers, "127.0.0.1:%u", open_server());
	setenv("WEFT_DNS_SERVERS", servers, 1);
	setenv("RES_OPTIONS", PATIENCE, 1);
	setenv("LOCALDOMAIN", "", 1);
}

int main(int argc, char **argv)
{
	char hosts[] = "/tmp/weft-hosts-XXXXXX";
	pthread_t thread;
	sigset_t all;

	workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	signal(SIGPIPE, SIG_IGN);
	CHECK(close(mkstemp(hosts)) == 0 && pipe2(server.stop, 0) == 0);
	prepare_environment(hosts);
	sigfillset(&all);
	/* A thread that waits creates the descriptor that reports closed descriptors to it. */
	(void)weft_poll_until(server.stop[0], POLLIN, weft_now() + 1);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (is_wanted(i, argc > 2 ? argv[2] : NULL))
			run_test(i);
	CHECK(write(server.stop[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0);
	unlink(hosts);
	return 0;
}
