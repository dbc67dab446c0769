/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Input and output on both back ends, by tasks of 1, 2 and 8 workers, and by threads if that makes sense. */
#define _GNU_SOURCE
#include "../sched/check.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <weft/io.h>

static unsigned workers; /* 0: a thread, without a runtime */

static uint64_t in(uint64_t nanoseconds)
{
	return weft_now() + nanoseconds;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void *a_pipe(void *pass)
{
	char text[8];
	int fds[2];

	CHECK(weft_pipe(fds) == 0);
	CHECK(weft_read_until(fds[0], text, sizeof text, 0) == -ETIMEDOUT);
	CHECK(weft_write(fds[1], "hello", 5) == 5);
	CHECK(weft_read_until(fds[0], text, 2, 0) == 2 && !memcmp(text, "he", 2));
	CHECK(weft_read(fds[0], text, sizeof text) == 3 && !memcmp(text, "llo", 3));
	CHECK(weft_read_until(fds[0], text, sizeof text, in(20 * MS)) == -ETIMEDOUT);
	CHECK(weft_close(fds[1]) == 0);
	CHECK(weft_read(fds[0], text, sizeof text) == 0);
	CHECK(weft_close(fds[0]) == 0);
	CHECK(weft_close(fds[0]) == -EBADF);
	CHECK(weft_read(fds[0], text, sizeof text) == -EBADF);
	CHECK(weft_read(-1, text, sizeof text) == -EBADF);
	CHECK(weft_pipe(fds) == 0);
	CHECK(weft_close(fds[0]) == 0);
	CHECK(weft_write(fds[1], "x", 1) == -EPIPE);
	CHECK(weft_close(fds[1]) == 0);
	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	CHECK(weft_close(fds[0]) == 0);
	CHECK(weft_write(fds[1], "x", 1) == -EPIPE || weft_write(fds[1], "x", 1) == -EPIPE);
	CHECK(weft_close(fds[1]) == 0);
	return pass;
}

enum { LENGTH = 1 << 20 };

struct stream {
	int from, to;
	uint64_t bytes;
};

static unsigned char byte_at(uint64_t place)
{
	return (unsigned char)(place * 2654435761u >> 13);
}

static void *sends(void *argument)
{
	struct stream *s = argument;
	unsigned char part[7001];
	uint64_t place, i, size;
	ssize_t sent;

	for (place = 0; place < s->bytes; place += (uint64_t)sent) {
		size = place % sizeof part + 1;
		if (size > s->bytes - place)
			size = s->bytes - place;
		for (i = 0; i < size; i++)
			part[i] = byte_at(place + i);
		sent = weft_write(s->to, part, size);
		CHECK(sent > 0);
	}
	CHECK(weft_shutdown(s->to, SHUT_WR) == 0 || weft_close(s->to) == 0);
	return NULL;
}

static void *receives(void *argument)
{
	struct stream *s = argument;
	unsigned char part[9001];
	uint64_t place = 0, i;
	ssize_t got;

	while ((got = weft_read(s->from, part, place % sizeof part + 1)) > 0)
		for (i = 0; i < (uint64_t)got; i++, place++)
			CHECK(part[i] == byte_at(place));
	CHECK(got == 0 && place == s->bytes);
	return NULL;
}

/* Data flows in both directions at once, through a task that forwards it. */
static void *hands_on(void *argument)
{
	struct stream *s = argument;
	char part[3001];
	ssize_t got;

	while ((got = weft_read(s->from, part, sizeof part)) > 0)
		CHECK(weft_write_all(s->to, part, (size_t)got) == got);
	CHECK(got == 0);
	CHECK(weft_shutdown(s->to, SHUT_WR) == 0);
	return NULL;
}

static void connect_pair(int fds[2])
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0);
	char port[8];

	CHECK(listener >= 0 && weft_port(listener) > 0);
	snprintf(port, sizeof port, "%d", weft_port(listener));
	fds[0] = weft_dial("127.0.0.1", port);
	CHECK(fds[0] >= 0);
	fds[1] = weft_accept(listener, NULL, NULL, 0);
	CHECK(fds[1] >= 0);
	CHECK(weft_close(listener) == 0);
}

static void *streams(void *pass)
{
	struct stream of[3];
	int a[2], b[2];

	connect_pair(a);
	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
	of[0] = (struct stream){-1, a[0], LENGTH};
	of[1] = (struct stream){a[1], b[0], 0};
	of[2] = (struct stream){b[1], -1, LENGTH};
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, receives, &of[2]) == 0);
	CHECK(weft_scope_spawn(&scope, hands_on, &of[1]) == 0);
	CHECK(weft_scope_spawn(&scope, sends, &of[0]) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(weft_close(a[i]) == 0 && weft_close(b[i]) == 0);
	return pass;
}

static void *pipes(void *pass)
{
	struct stream of = {-1, -1, LENGTH};
	int fds[2];

	CHECK(weft_pipe(fds) == 0);
	of.from = fds[0];
	of.to = fds[1];
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, receives, &of) == 0);
	CHECK(weft_scope_spawn(&scope, sends, &of) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0);
	return pass;
}

/* One event reports data and the end, and no event follows. */
static void *the_end_is_seen(void *pass)
{
	char text[64];
	int fds[2], i;

	for (i = 0; i < 100; i++) {
		connect_pair(fds);
		CHECK(weft_read_until(fds[0], text, sizeof text, 0) == -ETIMEDOUT);
		CHECK(weft_read_until(fds[0], text, sizeof text, in(MS / 10)) == -ETIMEDOUT);
		CHECK(weft_write(fds[1], "end", 3) == 3);
		CHECK(weft_close(fds[1]) == 0);
		if (i % 2)
			weft_sleep(MS / 5);
		CHECK(weft_read(fds[0], text, sizeof text) == 3);
		CHECK(weft_read(fds[0], text, sizeof text) == 0);
		CHECK(weft_read(fds[0], text, sizeof text) == 0);
		CHECK(weft_close(fds[0]) == 0);
	}
	return pass;
}

static void *vectors(void *pass)
{
	char one[3], two[5];
	struct iovec out[] = {{"ab", 2}, {"cdefgh", 6}}, parts[] = {{one, sizeof one}, {two, sizeof two}};
	int fds[2], i;

	for (i = 0; i < 2; i++) {
		CHECK((i ? weft_pipe(fds) : weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) == 0);
		CHECK(weft_preadv_until(fds[0], parts, 2, -1, in(MS)) == -ETIMEDOUT);
		CHECK(weft_pwritev(fds[1], out, 2, -1) == 8);
		CHECK(weft_preadv(fds[0], parts, 2, -1) == 8);
		CHECK(!memcmp(one, "abc", 3) && !memcmp(two, "defgh", 5));
		CHECK(weft_close(fds[0]) == 0);
		CHECK(i || weft_pwritev(fds[1], out, 2, -1) == -EPIPE);
		CHECK(weft_close(fds[1]) == 0);
	}
	return pass;
}

/* ---- ends that come early ---------------------------------------------------------------------------------------- */

enum { ROUNDS = 3000 };

struct writer {
	int fd;
	uint32_t *late; /* the writer waits halfway until the reader has waited in vain; NULL: it does not wait */
};

static void *counts_up(void *argument)
{
	struct writer *w = argument;
	uint32_t number;

	for (number = 0; number < ROUNDS; number++) {
		while (w->late && number == ROUNDS / 2 && !__atomic_load_n(w->late, __ATOMIC_RELAXED))
			weft_sleep(20000);
		CHECK(weft_write(w->fd, &number, sizeof number) == sizeof number);
		if (number % 16 == 0)
			weft_sleep(20000);
		else
			weft_task_yield();
	}
	return NULL;
}

/* The deadline passes at about the time when the data arrive. */
static void *deadlines_lose_nothing(void *pass)
{
	uint32_t number, expected = 0, late = 0;
	ssize_t got;
	int fds[2];

	connect_pair(fds);
	struct writer w = {fds[1], &late};
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, counts_up, &w) == 0);
	while (expected < ROUNDS) {
		got = weft_read_until(fds[0], &number, sizeof number, in(expected % 7 * 5000));
		if (got == -ETIMEDOUT) {
			__atomic_fetch_add(&late, 1, __ATOMIC_RELAXED);
			continue;
		}
		CHECK(got == sizeof number && number == expected);
		expected++;
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

struct reader {
	int fd;
	uint32_t *expected;
};

static void *reads_until_cancelled(void *argument)
{
	struct reader *r = argument;
	uint32_t number;

	while (*r->expected < ROUNDS) {
		CHECK(weft_read(r->fd, &number, sizeof number) == sizeof number);
		CHECK(number == (*r->expected)++);
	}
	return NULL;
}

/* The reader is cancelled again and again; the next reader continues where the last reader stopped. */
static void *cancelling_loses_nothing(void *pass)
{
	uint32_t expected = 0;
	struct reader r = {-1, &expected};
	weft_task_t task;
	unsigned turn = 0;
	int fds[2];

	connect_pair(fds);
	r.fd = fds[0];
	struct writer w = {fds[1], NULL};
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, counts_up, &w) == 0);
	while (__atomic_load_n(&expected, __ATOMIC_RELAXED) < ROUNDS) {
		WEFT_SCOPE(inner);
		CHECK(weft_scope_spawn_with(&inner, &task, reads_until_cancelled, &r, NULL) == 0);
		weft_sleep(turn++ % 5 * 20000);
		weft_task_cancel(&task);
		(void)weft_join(&task, NULL);
		CHECK(weft_scope_wait(&inner) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

/* Numbers that one task sends. The reading task is cancelled again and again, in the middle of a read, or before the
 * kernel knows of the read. IO_CANCELS: how often. */
struct numbers {
	int fd;
	uint32_t sent, received, cancelled;
	bool over; /* atomic */
};

static void *sends_numbers(void *argument)
{
	struct numbers *n = argument;
	uint32_t turn = 0;

	for (; !__atomic_load_n(&n->over, __ATOMIC_RELAXED); turn++) {
		if (turn % 4 == 0) {
			CHECK(weft_write(n->fd, &n->sent, sizeof n->sent) == sizeof n->sent);
			n->sent++;
		}
		if (turn % 256 == 0)
			weft_sleep(20000);
		else
			weft_task_yield();
	}
	CHECK(weft_shutdown(n->fd, SHUT_WR) == 0);
	return NULL;
}

static void *receives_numbers(void *argument)
{
	struct numbers *n = argument;
	uint32_t number;

	while (weft_read(n->fd, &number, sizeof number) == sizeof number)
		CHECK(number == n->received++);
	return NULL;
}

static void *every_byte_arrives(void *pass)
{
	const char *often = getenv("IO_CANCELS");
	uint32_t i, count = often ? (uint32_t)atoi(often) : 10000;
	struct numbers to = {0}, from = {0};
	weft_task_t task;
	int fds[2];

	connect_pair(fds);
	from.fd = fds[0];
	to.fd = fds[1];
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sends_numbers, &to) == 0);
	for (i = 0; i < count; i++) {
		WEFT_SCOPE(inner);
		CHECK(weft_scope_spawn_with(&inner, &task, receives_numbers, &from, NULL) == 0);
		for (unsigned turn = 0; turn < 1 + i % 3; turn++)
			weft_task_yield();
		if (i % 64 == 0)
			weft_sleep(1000);
		weft_task_cancel(&task);
		from.cancelled += weft_join(&task, NULL) == -ECANCELED;
		CHECK(weft_scope_wait(&inner) == 0);
	}
	__atomic_store_n(&to.over, true, __ATOMIC_RELAXED);
	CHECK(weft_scope_wait(&scope) == 0);
	receives_numbers(&from);
	CHECK(from.cancelled == count && from.received == to.sent && to.sent > 1);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

static unsigned reading; /* tasks that are about to read; atomic */

static void *reads_a_byte(void *fd)
{
	char byte = 0;
	ssize_t got;

	__atomic_fetch_add(&reading, 1, __ATOMIC_RELAXED);
	got = weft_read(*(int *)fd, &byte, 1);

	return (void *)(intptr_t)(got == 1 ? byte : got);
}

static void *closing_ends_waits(void *pass)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	weft_task_t tasks[3];
	int fds[2], others[2], kept, i, turn;
	void *result;

	for (turn = 0; turn < 20; turn++) {
		CHECK(weft_pipe(fds) == 0);
		kept = fds[0];
		__atomic_store_n(&reading, 0, __ATOMIC_RELAXED);
		WEFT_SCOPE(scope);
		for (i = 0; i < 3; i++)
			CHECK(weft_scope_spawn_with(&scope, &tasks[i], reads_a_byte, &kept, &codes) == 0);
		while (__atomic_load_n(&reading, __ATOMIC_RELAXED) < 3)
			weft_sleep(MS);
		weft_sleep(10 * MS);
		CHECK(weft_close(fds[0]) == 0);
		/* The waiters must not read from the new pipe, which may get the same number. */
		CHECK(weft_pipe(others) == 0);
		CHECK(weft_write(others[1], "xyz", 3) == 3);
		for (i = 0; i < 3; i++) {
			CHECK(weft_join(&tasks[i], &result) == 0);
			CHECK((intptr_t)result == -ECANCELED);
		}
		CHECK(weft_scope_wait(&scope) == 0);
		CHECK(weft_close(fds[1]) == 0 && weft_close(others[0]) == 0 && weft_close(others[1]) == 0);
	}
	return pass;
}

static void *many_wait_for_one(void *pass)
{
	enum { MANY = 20 };
	weft_task_t tasks[MANY];
	bool seen[MANY] = {0};
	void *result;
	int fds[2], i;
	char byte;

	connect_pair(fds);
	WEFT_SCOPE(scope);
	for (i = 0; i < MANY; i++)
		CHECK(weft_scope_spawn_with(&scope, &tasks[i], reads_a_byte, &fds[0], NULL) == 0);
	weft_sleep(MS);
	for (i = 0; i < MANY; i += 2) {
		char both[2] = {(char)(i + 1), (char)(i + 2)};

		CHECK(weft_write(fds[1], both, 2) == 2);
	}
	for (i = 0; i < MANY; i++) {
		CHECK(weft_join(&tasks[i], &result) == 0);
		byte = (char)(intptr_t)result;
		CHECK(byte > 0 && byte <= MANY && !seen[byte - 1]);
		seen[byte - 1] = true;
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

static bool has_nodelay(int fd)
{
	int value = -1;
	socklen_t size = sizeof value;

	CHECK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0);
	return value;
}

static void *connecting(void *pass)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage from;
	socklen_t size = sizeof from;
	char name[64], port[8];
	int fd, listener, other;

	listener = weft_listen("127.0.0.1", 0, 0, 0);
	to.sin_port = htons((uint16_t)weft_port(listener));
	snprintf(port, sizeof port, "%d", weft_port(listener));
	CHECK(weft_accept_until(listener, NULL, NULL, 0, 0) == -ETIMEDOUT);
	CHECK(weft_accept_until(listener, NULL, NULL, 0, in(MS)) == -ETIMEDOUT);
	fd = weft_dial("localhost", port);
	CHECK(fd >= 0);
	other = weft_accept(listener, (struct sockaddr *)&from, &size, 0);
	CHECK(other >= 0 && from.ss_family == AF_INET && size == sizeof to);
	CHECK(has_nodelay(fd) && has_nodelay(other) && weft_set_nodelay(fd, false) == 0 && !has_nodelay(fd));
	CHECK(weft_close(fd) == 0 && weft_close(other) == 0 && weft_close(listener) == 0);
	fd = weft_socket(AF_INET, SOCK_STREAM, 0);
	CHECK(weft_connect(fd, (struct sockaddr *)&to, sizeof to) == -ECONNREFUSED);
	CHECK(weft_close(fd) == 0);
	CHECK(weft_dial("127.0.0.1", port) == -ECONNREFUSED);
	CHECK(weft_dial("no.such.name.invalid", "1") < 0);

	snprintf(name, sizeof name, "@weft-test-%d", getpid());
	listener = weft_listen(name, 0, 1, 0);
	CHECK(listener >= 0 && weft_listen(name, 0, 0, 0) == -EADDRINUSE);
	fd = weft_dial(name, NULL);
	CHECK(fd >= 0 && weft_set_nodelay(fd, true) == -EOPNOTSUPP);
	CHECK(weft_close(fd) == 0 && weft_close(listener) == 0);
	CHECK(weft_dial(name, NULL) == -ECONNREFUSED);

	snprintf(name, sizeof name, "/tmp/weft-test-%d", getpid());
	listener = weft_listen(name, 0, 0, 0);
	CHECK(listener >= 0 && weft_listen(name, 0, 0, 0) == -EADDRINUSE);
	CHECK(weft_close(listener) == 0);
	listener = weft_listen(name, 0, 0, 0); /* the socket's file remains, and no process listens */
	CHECK(listener >= 0);
	CHECK(weft_close(listener) == 0);
	unlink(name);
	CHECK(weft_listen("not.an.address", 1, 0, 0) == -EINVAL && weft_listen(NULL, 65536, 0, 0) == -EINVAL);
	listener = weft_listen(NULL, 0, 0, WEFT_LISTEN_SHARED);
	CHECK(listener >= 0);
	CHECK(weft_close(listener) == 0);
	return pass;
}

/* The queue of connections is full, so the next connect waits until its deadline. */
static void *connecting_in_vain(void *pass)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = weft_listen("127.0.0.1", 0, 1, 0), fds[8], i, late = 0;

	to.sin_port = htons((uint16_t)weft_port(listener));
	for (i = 0; i < 8; i++) {
		fds[i] = weft_socket(AF_INET, SOCK_STREAM, 0);
		late += weft_connect_until(fds[i], (struct sockaddr *)&to, sizeof to, in(30 * MS)) == -ETIMEDOUT;
	}
	CHECK(late);
	for (i = 0; i < 8; i++)
		CHECK(weft_close(fds[i]) == 0);
	CHECK(weft_close(listener) == 0);
	return pass;
}

/* ---- MSG_WAITALL ------------------------------------------------------------------------------------------------- */

static void *sends_in_two(void *fd)
{
	CHECK(weft_write(*(int *)fd, "abc", 3) == 3);
	weft_sleep(10 * MS);
	CHECK(weft_write(*(int *)fd, "def", 3) == 3);
	return NULL;
}

static int receive_all_by(int fd, bool by_message, int flags, char *text, uint64_t deadline)
{
	struct iovec parts[2] = {{text, 2}, {text + 2, 4}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	memset(text, 0, 8);
	return (int)(by_message ? weft_recvmsg_until(fd, &m, flags | MSG_WAITALL, deadline)
				: weft_recv_until(fd, text, 6, flags | MSG_WAITALL, deadline));
}

static int receive_all(int fd, bool by_message, char *text, uint64_t deadline)
{
	return receive_all_by(fd, by_message, 0, text, deadline);
}

static void *waiting_for_all(void *pass)
{
	pthread_t thread;
	char text[8];
	int fds[2];

	for (int i = 0; i < 4; i++) {
		WEFT_SCOPE(scope);
		if (i & 1)
			connect_pair(fds);
		else
			CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
		CHECK((workers ? weft_scope_spawn(&scope, sends_in_two, &fds[1])
			       : pthread_create(&thread, NULL, sends_in_two, &fds[1])) == 0);
		/* With a TCP connection a peek waits for all bytes, like the kernel's peek. */
		if (i & 1)
			CHECK(receive_all_by(fds[0], i & 2, MSG_PEEK, text, in(5 * SECOND)) == 6 &&
			      !strcmp(text, "abcdef"));
		CHECK(receive_all(fds[0], i & 2, text, in(5 * SECOND)) == 6 && !strcmp(text, "abcdef"));
		CHECK(workers ? weft_scope_wait(&scope) == 0 : pthread_join(thread, NULL) == 0);
		CHECK(receive_all(fds[0], i & 2, text, in(5 * MS)) == -ETIMEDOUT);
		CHECK(weft_write(fds[1], "gh", 2) == 2);
		CHECK(receive_all_by(fds[0], i & 2, MSG_PEEK, text, in(20 * MS)) == 2 && !strcmp(text, "gh"));
		CHECK(receive_all(fds[0], i & 2, text, in(20 * MS)) == 2 && !strcmp(text, "gh"));
		CHECK(weft_write(fds[1], "ijk", 3) == 3 && weft_shutdown(fds[1], SHUT_WR) == 0);
		CHECK(receive_all_by(fds[0], i & 2, MSG_PEEK, text, in(5 * SECOND)) == 3 && !strcmp(text, "ijk"));
		CHECK(receive_all(fds[0], i & 2, text, in(5 * SECOND)) == 3 && !strcmp(text, "ijk"));
		CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	}
	return pass;
}

/* ---- no room at the other side ----------------------------------------------------------------------------------- */

/* A Unix listener with a queue for two connections, or a receiver of datagrams, and the sockets that connect
 * or send to it. */
struct crowd {
	struct sockaddr_un to;
	socklen_t size;
	int other, fd;
	bool by_address, begun; /* begun: atomic */
};

static void crowd_begin(struct crowd *c, int type)
{
	static _Atomic unsigned serial;

	c->to = (struct sockaddr_un){.sun_family = AF_UNIX};
	c->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			      (size_t)snprintf(c->to.sun_path + 1, sizeof c->to.sun_path - 1, "weft-crowd-%d-%u",
					       getpid(), serial++));
	c->other = weft_socket(AF_UNIX, type, 0);
	CHECK(c->other >= 0 && !bind(c->other, (struct sockaddr *)&c->to, c->size));
	CHECK(type == SOCK_DGRAM || !listen(c->other, 1));
}

static int join(const struct crowd *c, uint64_t deadline)
{
	return weft_connect_until(c->fd, (const struct sockaddr *)&c->to, c->size, deadline);
}

static void begin(struct crowd *c)
{
	__atomic_store_n(&c->begun, true, __ATOMIC_RELAXED);
}

static void *joins(void *crowd)
{
	begin(crowd);
	return (void *)(intptr_t)join(crowd, in(5 * SECOND));
}

/* A task, or a thread if there is no runtime, whose result is needed. */
struct other {
	weft_task_t task;
	pthread_t thread;
};

static void start(struct other *o, weft_scope_t *scope, weft_fn_t *fn, struct crowd *c)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};

	__atomic_store_n(&c->begun, false, __ATOMIC_RELAXED);
	CHECK((workers ? weft_scope_spawn_with(scope, &o->task, fn, c, &codes)
		       : pthread_create(&o->thread, NULL, fn, c)) == 0);
	while (!__atomic_load_n(&c->begun, __ATOMIC_RELAXED))
		weft_sleep(MS);
	weft_sleep(20 * MS);
}

static int result_of(struct other *o)
{
	void *result;

	CHECK((workers ? weft_join(&o->task, &result) : pthread_join(o->thread, &result)) == 0);
	return (int)(intptr_t)result;
}

enum { OURS, BLOCKING, NON_BLOCKING };

static int socket_of(int origin, int type)
{
	return origin == OURS ? weft_socket(AF_UNIX, type, 0)
			      : socket(AF_UNIX, type | SOCK_CLOEXEC | (origin == BLOCKING ? 0 : SOCK_NONBLOCK), 0);
}

static void fill_listener(struct crowd *c, int fds[2], int type)
{
	for (int i = 0; i < 2; i++) {
		c->fd = fds[i] = weft_socket(AF_UNIX, type, 0);
		CHECK(join(c, WEFT_NEVER) == 0);
	}
}

static void connect_late(int origin, int type)
{
	struct crowd c;
	struct other o;
	uint64_t begin;
	int fds[2], fd;

	WEFT_SCOPE(scope);
	crowd_begin(&c, type);
	fill_listener(&c, fds, type);
	c.fd = socket_of(origin, type);
	CHECK(join(&c, 0) == -ETIMEDOUT);
	begin = weft_now();
	CHECK(join(&c, in(30 * MS)) == -ETIMEDOUT && weft_now() - begin >= 30 * MS);
	start(&o, &scope, joins, &c);
	fd = weft_accept(c.other, NULL, NULL, 0);
	CHECK(fd >= 0 && result_of(&o) == 0 && weft_close(fd) == 0 && weft_close(c.fd) == 0);
	c.fd = socket_of(origin, type);
	start(&o, &scope, joins, &c);
	CHECK(weft_close(c.fd) == 0 && result_of(&o) == -ECANCELED);
	c.fd = socket_of(origin, type);
	start(&o, &scope, joins, &c);
	CHECK(weft_close(c.other) == 0 && result_of(&o) == -ECONNREFUSED);
	CHECK(weft_close(c.fd) == 0 && weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
}

/* A connect to a Unix socket waits until its listener has room. */
static void *full_listeners(void *pass)
{
	for (int origin = OURS; origin <= NON_BLOCKING; origin++) {
		connect_late(origin, SOCK_STREAM);
		connect_late(origin, SOCK_SEQPACKET);
	}
	return pass;
}

static int post(const struct crowd *c, uint64_t deadline)
{
	const struct sockaddr *to = c->by_address ? (const struct sockaddr *)&c->to : NULL;

	return (int)weft_sendto_until(c->fd, "hello", 5, 0, to, to ? c->size : 0, deadline);
}

static void *posts(void *crowd)
{
	begin(crowd);
	return (void *)(intptr_t)post(crowd, in(5 * SECOND));
}

/* Another sender has filled the queue. When its datagrams are taken, the kernel reports no event for this
 * sender's socket. */
static int fill_receiver(struct crowd *c)
{
	int fd = c->fd, filler = c->fd = weft_socket(AF_UNIX, SOCK_DGRAM, 0), count = 0;

	CHECK(join(c, WEFT_NEVER) == 0);
	while (post(c, 0) == 5)
		count++;
	c->fd = fd;
	CHECK(count > 0 && weft_close(filler) == 0);
	return count;
}

static void expect_datagrams(struct crowd *c, int count)
{
	char text[8];

	for (; count; count--)
		CHECK(weft_recv_until(c->other, text, sizeof text, 0, in(SECOND)) == 5);
	CHECK(weft_recv_until(c->other, text, sizeof text, 0, 0) == -ETIMEDOUT);
}

static void send_late(int origin, bool by_address)
{
	struct crowd c = {.by_address = by_address};
	struct other o;
	uint64_t begin;
	int count;

	WEFT_SCOPE(scope);
	crowd_begin(&c, SOCK_DGRAM);
	c.fd = socket_of(origin, SOCK_DGRAM);
	CHECK(by_address || join(&c, WEFT_NEVER) == 0);
	count = fill_receiver(&c);
	CHECK(post(&c, 0) == -ETIMEDOUT);
	begin = weft_now();
	CHECK(post(&c, in(30 * MS)) == -ETIMEDOUT && weft_now() - begin >= 30 * MS);
	start(&o, &scope, posts, &c);
	CHECK(weft_recv(c.other, (char[8]){0}, 8, 0) == 5 && result_of(&o) == 5);
	start(&o, &scope, posts, &c);
	CHECK(weft_close(c.fd) == 0 && result_of(&o) == -ECANCELED);
	expect_datagrams(&c, count);
	CHECK(weft_close(c.other) == 0);
}

/* A datagram to a Unix socket waits until its receiver has room, and arrives whole. */
static void *full_receivers(void *pass)
{
	for (int origin = OURS; origin <= NON_BLOCKING; origin++) {
		send_late(origin, false);
		send_late(origin, true);
	}
	return pass;
}

static void *datagrams(void *pass)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
	int one = weft_listen("127.0.0.1", 0, 0, WEFT_LISTEN_UDP), two = weft_socket(AF_INET, SOCK_DGRAM, 0), i;
	char in_text[4][16], out_text[4][16];
	struct mmsghdr out[4] = {0}, got[4] = {0};
	struct iovec in_part[4], out_part[4];
	socklen_t size = sizeof from;

	to.sin_port = htons((uint16_t)weft_port(one));
	CHECK(weft_recvfrom_until(one, in_text[0], 16, 0, NULL, NULL, in(MS)) == -ETIMEDOUT);
	CHECK(weft_sendto(two, "hello", 5, 0, (struct sockaddr *)&to, sizeof to) == 5);
	CHECK(weft_recvfrom(one, in_text[0], 16, 0, (struct sockaddr *)&from, &size) == 5);
	CHECK(size == sizeof from && ntohs(from.sin_port) == weft_port(two));
	CHECK(weft_connect(two, (struct sockaddr *)&to, sizeof to) == 0);
	for (i = 0; i < 4; i++) {
		snprintf(out_text[i], 16, "message %d", i);
		out_part[i] = (struct iovec){out_text[i], 9};
		in_part[i] = (struct iovec){in_text[i], 16};
		out[i].msg_hdr.msg_iov = &out_part[i];
		got[i].msg_hdr.msg_iov = &in_part[i];
		out[i].msg_hdr.msg_iovlen = got[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK(weft_recvmmsg_until(one, got, 4, 0, in(MS)) == -ETIMEDOUT);
	CHECK(weft_sendmmsg(two, out, 3, 0) == 3);
	CHECK(weft_recvmmsg(one, got, 4, 0) == 3);
	CHECK(got[2].msg_len == 9 && !memcmp(in_text[2], "message 2", 9));
	CHECK(weft_close(one) == 0 && weft_close(two) == 0);
	return pass;
}

static void *descriptors_travel(void *pass)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {0};
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	int fds[2], sent[2], got;

	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && weft_pipe(sent) == 0);
	control.head =
	    (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.head), &sent[1], sizeof(int));
	CHECK(weft_sendmsg(fds[0], &message, 0) == 1);
	memset(&control, 0, sizeof control);
	CHECK(weft_recvmsg(fds[1], &message, 0) == 1);
	memcpy(&got, CMSG_DATA(&control.head), sizeof got);
	CHECK(got >= 0 && got != sent[1] && fcntl(got, F_GETFD) == FD_CLOEXEC);
	CHECK(weft_write(got, "y", 1) == 1);
	CHECK(weft_read(sent[0], &byte, 1) == 1 && byte == 'y');
	CHECK(weft_close(got) == 0 && weft_close(sent[0]) == 0 && weft_close(sent[1]) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

/* A peek removes nothing, and does not count as reading all data; nor does a peek at an offset after all data. It waits
 * there, and does not spin. */
static void *peeking(void *pass)
{
	uint64_t spent;
	char text[8];
	int fds[2], pair[2], i, flags, nothing = 0;

	connect_pair(fds);
	CHECK(weft_write(fds[1], "abc", 3) == 3);
	for (i = 0; i < 3; i++)
		CHECK(weft_recv(fds[0], text, sizeof text, MSG_PEEK) == 3);
	CHECK(weft_recv(fds[0], text, sizeof text, 0) == 3);
	CHECK(weft_recv_until(fds[0], text, sizeof text, 0, in(MS)) == -ETIMEDOUT);
	CHECK(weft_send(fds[1], "d", 1, 0) == 1);
	CHECK(weft_recv(fds[0], text, sizeof text, 0) == 1);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(setsockopt(pair[0], SOL_SOCKET, SO_PEEK_OFF, &nothing, sizeof nothing) == 0);
	for (i = 0; i < 2; i++) {
		flags = MSG_PEEK | (i ? MSG_DONTWAIT : 0);
		CHECK(weft_read_until(pair[0], text, sizeof text, in(MS)) == -ETIMEDOUT);
		CHECK(weft_write(pair[1], "abc", 3) == 3);
		CHECK(weft_recv(pair[0], text, sizeof text, MSG_PEEK) == 3);
		CHECK(weft_recv_until(pair[0], text, sizeof text, flags, in(20 * MS)) == (i ? -EAGAIN : -ETIMEDOUT));
		CHECK(weft_read_until(pair[0], text, sizeof text, in(2000 * MS)) == 3);
	}
	CHECK(weft_write(pair[1], "abc", 3) == 3 && weft_recv(pair[0], text, sizeof text, MSG_PEEK) == 3);
	spent = cpu_time();
	CHECK(weft_recv_until(pair[0], text, sizeof text, MSG_PEEK, in(100 * MS)) == -ETIMEDOUT);
	CHECK(cpu_time() - spent < 50 * MS);
	CHECK(weft_close(pair[0]) == 0 && weft_close(pair[1]) == 0);
	return pass;
}

struct herd {
	int listener;
	unsigned accepted;
};

static void *accepts(void *argument)
{
	struct herd *herd = argument;
	int fd = weft_accept(herd->listener, NULL, NULL, 0);

	CHECK(fd >= 0);
	__atomic_fetch_add(&herd->accepted, 1, __ATOMIC_RELAXED);
	CHECK(weft_close(fd) == 0);
	return NULL;
}

static void *many_accept(void *pass)
{
	struct herd herd = {weft_listen("127.0.0.1", 0, 0, 0), 0};
	char port[8];
	int i, fd;

	snprintf(port, sizeof port, "%d", weft_port(herd.listener));
	WEFT_SCOPE(scope);
	for (i = 0; i < 30; i++)
		CHECK(weft_scope_spawn(&scope, accepts, &herd) == 0);
	for (i = 0; i < 30; i++) {
		fd = weft_dial("127.0.0.1", port);
		CHECK(fd >= 0);
		CHECK(weft_close(fd) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0 && herd.accepted == 30);
	CHECK(weft_close(herd.listener) == 0);
	return pass;
}

/* No descriptor number is free: accept releases the connections that wait, does not spin, and continues when a number
 * is free again. */
static void *no_descriptor_left(void *pass)
{
	struct rlimit limit, low;
	int listener = weft_listen("127.0.0.1", 0, 0, 0), fd, one, used[2], highest;
	uint64_t before;
	char port[8], byte;

	snprintf(port, sizeof port, "%d", weft_port(listener));
	CHECK(weft_pipe(used) == 0);
	CHECK(weft_read_until(used[0], &byte, 1, in(MS)) == -ETIMEDOUT); /* opens the runtime's descriptors */
	fd = weft_dial("127.0.0.1", port);
	CHECK(fd >= 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	highest = dup(0);
	low = limit;
	low.rlim_cur = (rlim_t)highest;
	CHECK(close(highest) == 0 && setrlimit(RLIMIT_NOFILE, &low) == 0);
	before = cpu_time();
	one = weft_accept_until(listener, NULL, NULL, 0, in(100 * MS));
	CHECK(one == -ETIMEDOUT || one == -EMFILE);
	CHECK(cpu_time() - before < 50 * MS);
	if (workers)
		CHECK(weft_read(fd, &byte, 1) <= 0); /* the connection was released */
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(weft_close(fd) == 0);
	fd = weft_dial("127.0.0.1", port);
	one = weft_accept(listener, NULL, NULL, 0);
	CHECK(fd >= 0 && one >= 0);
	CHECK(weft_close(one) == 0 && weft_close(fd) == 0 && weft_close(listener) == 0);
	CHECK(weft_close(used[0]) == 0 && weft_close(used[1]) == 0);
	return pass;
}

/* ---- descriptors made outside of Weft ---------------------------------------------------------------------------- */

static void *writes_soon(void *fd)
{
	weft_sleep(MS);
	CHECK(write(*(int *)fd, "x", 1) == 1);
	return NULL;
}

static void *polling(void *pass)
{
	int fds[2], turn, file = open("/proc/self/exe", O_RDONLY);

	CHECK(weft_poll(file, POLLIN) == POLLIN);
	CHECK(close(file) == 0);
	/* The same numbers are used again and again, and closed without the runtime's knowledge. */
	for (turn = 0; turn < 50; turn++) {
		CHECK(pipe(fds) == 0);
		CHECK(weft_poll_until(fds[0], POLLIN, 0) == -ETIMEDOUT);
		CHECK(weft_poll(fds[1], POLLOUT) == POLLOUT);
		if (turn % 5 == 0)
			CHECK(weft_poll_until(fds[0], POLLIN, in(MS)) == -ETIMEDOUT);
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, writes_soon, &fds[1]) == 0);
		CHECK(weft_poll(fds[0], POLLIN) == POLLIN);
		CHECK(weft_scope_wait(&scope) == 0);
		CHECK(close(fds[1]) == 0);
		CHECK(weft_poll(fds[0], POLLIN) & POLLHUP);
		CHECK(close(fds[0]) == 0);
	}
	CHECK(weft_poll(fds[0], POLLIN) == -EBADF);
	return pass;
}

static void *polls(void *fd)
{
	CHECK(weft_poll(*(int *)fd, POLLIN) == POLLIN);
	return NULL;
}

static void *reads_a_name(void *file)
{
	char name[3];

	CHECK(weft_pread(*(int *)file, name, sizeof name, 1) == 3 && !memcmp(name, "ELF", 3));
	return NULL;
}

/* In a ring a read of a file takes the place of a poll in the queue: it must keep nothing of the poll's entry. */
static void *reads_overtake_polls(void *pass)
{
	int fds[2], turn, file = weft_open("/proc/self/exe", O_RDONLY, 0);

	CHECK(file >= 0 && weft_pipe(fds) == 0);
	WEFT_SCOPE(scope);
	for (turn = 0; turn < 4; turn++) {
		CHECK(weft_scope_spawn(&scope, polls, &fds[0]) == 0);
		CHECK(weft_scope_spawn(&scope, reads_a_name, &file) == 0);
	}
	CHECK(weft_scope_spawn(&scope, writes_soon, &fds[1]) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0 && weft_close(file) == 0);
	return pass;
}

/* Descriptors that other code made, blocking and non-blocking. */
static void *foreign(void *pass)
{
	int fds[2], flags;
	char byte;

	for (flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
		CHECK(pipe2(fds, flags) == 0);
		CHECK(weft_read_until(fds[0], &byte, 1, in(MS)) == -ETIMEDOUT);
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, writes_soon, &fds[1]) == 0);
		CHECK(weft_read(fds[0], &byte, 1) == 1);
		CHECK(weft_scope_wait(&scope) == 0);
		CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);

		CHECK(socketpair(AF_UNIX, SOCK_STREAM | (flags ? SOCK_NONBLOCK : 0), 0, fds) == 0);
		CHECK(weft_read_until(fds[0], &byte, 1, in(MS)) == -ETIMEDOUT);
		WEFT_SCOPE(again);
		CHECK(weft_scope_spawn(&again, writes_soon, &fds[1]) == 0);
		CHECK(weft_read(fds[0], &byte, 1) == 1);
		CHECK(weft_scope_wait(&again) == 0);
		CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	}
	return pass;
}

/* ---- files, processes, signals ----------------------------------------------------------------------------------- */

static void *files(void *pass)
{
	char name[64], text[16];
	struct stat status;
	int64_t offset = 2;
	int fd, to[2];

	snprintf(name, sizeof name, "/tmp/weft-test-%d-%p", getpid(), (void *)name);
	CHECK(weft_open(name, O_RDWR, 0) == -ENOENT);
	fd = weft_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(weft_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) == -EEXIST);
	CHECK(weft_pwrite(fd, "hello, world", 12, 0) == 12);
	CHECK(weft_pread(fd, text, sizeof text, 7) == 5 && !memcmp(text, "world", 5));
	CHECK(weft_read(fd, text, 5) == 5 && !memcmp(text, "hello", 5));
	CHECK(weft_read_all(fd, text, sizeof text) == 7);
	CHECK(weft_read(fd, text, 5) == 0);
	CHECK(weft_fsync(fd) == 0 && weft_fdatasync(fd) == 0);
	CHECK(weft_fstatat(AT_FDCWD, name, &status, 0) == 0 && status.st_size == 12);
	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, to) == 0);
	CHECK(weft_sendfile(to[0], fd, &offset, 4) == 4 && offset == 6);
	CHECK(weft_read(to[1], text, sizeof text) == 4 && !memcmp(text, "llo,", 4));
	CHECK(weft_close(to[0]) == 0 && weft_close(to[1]) == 0 && weft_close(fd) == 0);
	CHECK(unlink(name) == 0);
	return pass;
}

/* ---- changes of files -------------------------------------------------------------------------------------------- */

static void makes(const char *directory, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && close(fd) == 0);
}

/* Checks that the next change is the expected change. */
static uint32_t expect_change(weft_file_watch_t *watch, int number, uint32_t events, const char *name)
{
	weft_file_change_t change;

	CHECK(weft_file_watch_next_until(watch, &change, in(SECOND)) == 0);
	CHECK(change.watch == number && (change.events & events) == events && !strcmp(change.name, name));
	return change.cookie;
}

/* The changes that one read has received are returned one by one; also the changes of a directory that was removed. */
static void *watching(void *pass)
{
	char directory[] = "/tmp/weft-watch-XXXXXX", name[256], path[400], other[400];
	weft_file_watch_t watch;
	weft_file_change_t change;
	uint32_t cookie;
	int number;

	CHECK(mkdtemp(directory) && weft_file_watch_open(&watch) == 0);
	CHECK(fcntl(watch.fd, F_GETFD) == FD_CLOEXEC);
	CHECK(weft_file_watch_add(&watch, "/nowhere/at/all", IN_CREATE) == -ENOENT);
	CHECK(weft_file_watch_next_until(&watch, &change, 0) == -ETIMEDOUT);
	number = weft_file_watch_add(&watch, directory, IN_CREATE | IN_MOVE | IN_DELETE | IN_DELETE_SELF);
	CHECK(number > 0);
	CHECK(weft_file_watch_next_until(&watch, &change, in(20 * MS)) == -ETIMEDOUT);
	memset(name, 'n', 255);
	name[255] = '\0';
	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(other, sizeof other, "%s/other", directory);
	for (int i = 0; i < 20; i++) {
		makes(directory, "short");
		CHECK(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
		CHECK(rename(path, other) == 0 && unlink(other) == 0);
		snprintf(path, sizeof path, "%s/short", directory);
		CHECK(unlink(path) == 0);
		snprintf(path, sizeof path, "%s/%s", directory, name);
	}
	for (int i = 0; i < 20; i++) {
		expect_change(&watch, number, IN_CREATE, "short");
		expect_change(&watch, number, IN_CREATE, name);
		cookie = expect_change(&watch, number, IN_MOVED_FROM, name);
		CHECK(cookie && cookie == expect_change(&watch, number, IN_MOVED_TO, "other"));
		expect_change(&watch, number, IN_DELETE, "other");
		expect_change(&watch, number, IN_DELETE, "short");
	}
	CHECK(weft_file_watch_next_until(&watch, &change, 0) == -ETIMEDOUT);
	CHECK(weft_file_watch_remove(&watch, number) == 0 && weft_file_watch_remove(&watch, number) == -EINVAL);
	expect_change(&watch, number, IN_IGNORED, "");
	number = weft_file_watch_add(&watch, directory, IN_CREATE | IN_DELETE_SELF);
	CHECK(number > 0 && rmdir(directory) == 0);
	expect_change(&watch, number, IN_DELETE_SELF, "");
	expect_change(&watch, number, IN_IGNORED, "");
	CHECK(weft_file_watch_remove(&watch, number) == -EINVAL);
	CHECK(weft_close(watch.fd) == 0);
	CHECK(weft_file_watch_add(&watch, "/tmp", IN_CREATE) == -EBADF);
	CHECK(weft_file_watch_next(&watch, &change) == -EBADF);
	return pass;
}

struct watches_in_vain {
	weft_file_watch_t watch;
	int result;
};

static void *watches_in_vain(void *argument)
{
	struct watches_in_vain *w = argument;
	weft_file_change_t change;

	w->result = weft_file_watch_next(&w->watch, &change);
	return NULL;
}

/* A wait that is cancelled or times out has taken nothing; weft_close ends it; a full queue reports an overflow. */
static void *watches_end(void *pass)
{
	char directory[] = "/tmp/weft-watch-XXXXXX", path[64];
	struct watches_in_vain w;
	unsigned limit = 0, changes = 0;
	weft_file_change_t change;
	FILE *file;
	int number;

	CHECK(mkdtemp(directory) && weft_file_watch_open(&w.watch) == 0);
	number = weft_file_watch_add(&w.watch, directory, IN_CREATE);
	CHECK(number > 0);
	{
		WEFT_SCOPE_UNTIL(scope, in(20 * MS));
		CHECK(weft_scope_spawn(&scope, watches_in_vain, &w) == 0);
		CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
	}
	makes(directory, "after");
	expect_change(&w.watch, number, IN_CREATE, "after");
	file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	CHECK(file && fscanf(file, "%u", &limit) == 1 && fclose(file) == 0);
	number = weft_file_watch_add(&w.watch, directory, IN_ATTRIB);
	snprintf(path, sizeof path, "%s/after", directory);
	for (unsigned i = 0; limit <= 100000 && i < limit + 10; i++)
		/* The names alternate, because the kernel merges equal changes. */
		CHECK(chmod(i % 2 ? path : directory, 0700) == 0);
	while (limit <= 100000 && (changes++, weft_file_watch_next_until(&w.watch, &change, in(SECOND)) == 0))
		if (change.events & IN_Q_OVERFLOW)
			break;
	CHECK(limit > 100000 || (change.watch == -1 && !change.name[0] && changes == limit + 1));
	{
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, watches_in_vain, &w) == 0);
		CHECK(weft_sleep(20 * MS) == 0 && weft_close(w.watch.fd) == 0);
		CHECK(weft_scope_wait(&scope) == 0 && w.result == -ECANCELED);
	}
	CHECK(unlink(path) == 0 && rmdir(directory) == 0);
	return pass;
}

static void *addresses(void *pass)
{
	char text[WEFT_ADDRESS_TEXT], other[WEFT_ADDRESS_TEXT];
	weft_address_t address, peer;
	int fds[2], fd;

	connect_pair(fds);
	CHECK(weft_local_address(fds[0], &address) == 0 && weft_peer_address(fds[1], &peer) == 0);
	CHECK(weft_address_text(&address, text, sizeof text) == (int)strlen(text));
	CHECK(weft_address_text(&peer, other, sizeof other) > 0 && !strcmp(text, other));
	snprintf(other, sizeof other, "127.0.0.1:%d", weft_port(fds[0]));
	CHECK(!strcmp(text, other) && weft_address_text(&address, text, strlen(other)) == -ENOSPC);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	CHECK(weft_local_address(fds[0], &address) == -EBADF && weft_peer_address(fds[0], &address) == -EBADF);
	fd = weft_listen("@weft-io-test", 0, 0, 0);
	CHECK(fd >= 0 && weft_peer_address(fd, &address) == -ENOTCONN && weft_local_address(fd, &address) == 0);
	CHECK(weft_address_text(&address, text, sizeof text) == 13 && !strcmp(text, "@weft-io-test"));
	CHECK(weft_close(fd) == 0 && weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	CHECK(weft_peer_address(fds[0], &address) == 0 && weft_address_text(&address, text, sizeof text) == 0 &&
	      !*text);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	fd = weft_listen("::1", 0, 0, 0);
	if (fd >= 0) { /* IPv6 is available */
		snprintf(other, sizeof other, "[::1]:%d", weft_port(fd));
		CHECK(weft_local_address(fd, &address) == 0 && weft_address_text(&address, text, sizeof text) > 0);
		CHECK(!strcmp(text, other) && weft_close(fd) == 0);
	}
	address.address.ss_family = AF_UNSPEC;
	CHECK(weft_address_text(&address, text, sizeof text) == -EAFNOSUPPORT);
	return pass;
}

static void *reads_later(void *fd)
{
	char byte;

	CHECK(weft_read_until(*(int *)fd, &byte, 1, weft_now() + 5 * SECOND) == 1);
	return NULL;
}

/* A child has its own descriptors, and shares its parent's memory or has a copy: a close in the child ends no operation
 * of the parent. */
static void *children_close(void *pass)
{
	int to[2], status;
	pid_t child;

	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, to) == 0);
	for (int way = 0; way < 2; way++) {
		WEFT_SCOPE(scope);
		CHECK(!weft_scope_spawn(&scope, reads_later, &to[0]));
		(void)weft_sleep(MS);
		child = way ? vfork() : fork();
		if (!child)
			_exit(weft_close(to[0]));
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
		CHECK(weft_write(to[1], "x", 1) == 1 && !weft_scope_wait(&scope));
	}
	CHECK(weft_close(to[0]) == 0 && weft_close(to[1]) == 0);
	return pass;
}

enum { SHARERS = 4, SHARES = 30, SHARE = 65536 };

static void *writes_shares(void *fd)
{
	static const char share[SHARE];

	for (int i = 0; i < SHARES; i++)
		CHECK(weft_write(*(int *)fd, share, SHARE) == SHARE);
	return NULL;
}

/* Threads share the file's position, as with write: no write overwrites another write. */
static void *one_position(void *pass)
{
	char name[] = "/tmp/weft-test-XXXXXX";
	struct stat status;
	int fd = mkostemp(name, O_CLOEXEC);

	WEFT_SCOPE(scope);
	CHECK(fd >= 0 && !unlink(name));
	for (int i = 0; i < SHARERS; i++)
		CHECK(!weft_scope_spawn(&scope, writes_shares, &fd));
	CHECK(!weft_scope_wait(&scope) && !fstat(fd, &status) && status.st_size == SHARERS * SHARES * SHARE);
	CHECK(weft_close(fd) == 0);
	return pass;
}

/* Sends more than the socket can hold, in many parts, some of which are empty. */
static void *sends_all(void *fd)
{
	enum { PARTS = 1500 };
	static char data[LENGTH];
	static struct iovec parts[PARTS];
	char name[64];
	int64_t offset = 1000;
	int i, file;

	for (i = 0; i < LENGTH; i++)
		data[i] = (char)byte_at((uint64_t)i);
	for (i = 0; i < PARTS; i++)
		parts[i] = (struct iovec){data + i / 2 * 600, i % 2 ? 600 : 0};
	parts[PARTS - 1].iov_len = LENGTH - (PARTS / 2 - 1) * 600;
	CHECK(weft_writev_all(*(int *)fd, parts, PARTS) == LENGTH);
	CHECK(weft_writev_all(*(int *)fd, parts, PARTS) == 0);
	snprintf(name, sizeof name, "/tmp/weft-test-all-%d-%p", getpid(), (void *)name);
	file = weft_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(unlink(name) == 0 && weft_write_all(file, data, 1000) == 1000);
	CHECK(weft_write_all(file, data, LENGTH) == LENGTH);
	CHECK(weft_sendfile_all(*(int *)fd, file, &offset, LENGTH) == LENGTH && offset == LENGTH + 1000);
	CHECK(weft_sendfile_all(*(int *)fd, file, &offset, 1) == 0);
	CHECK(weft_close(file) == 0 && weft_shutdown(*(int *)fd, SHUT_WR) == 0);
	return NULL;
}

static void *all_of_it(void *pass)
{
	static unsigned char part[LENGTH];
	int fds[2], turn, i;

	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sends_all, &fds[0]) == 0);
	for (turn = 0; turn < 2; turn++) {
		CHECK(weft_read_all(fds[1], part, LENGTH) == LENGTH);
		for (i = 0; i < LENGTH; i++)
			CHECK(part[i] == byte_at((uint64_t)i));
	}
	CHECK(weft_read(fds[1], part, 1) == 0 && weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

static void *splicing(void *pass)
{
	int a[2], b[2];
	char text[16];

	CHECK(weft_pipe(a) == 0 && weft_socketpair(AF_UNIX, SOCK_STREAM, 0, b) == 0);
	CHECK(weft_write(a[1], "through", 7) == 7);
	CHECK(weft_splice(a[0], b[0], 100, 0) == 7);
	CHECK(weft_read(b[1], text, sizeof text) == 7 && !memcmp(text, "through", 7));
	CHECK(weft_close(a[0]) == 0 && weft_close(a[1]) == 0 && weft_close(b[0]) == 0 && weft_close(b[1]) == 0);
	return pass;
}

static void *processes(void *pass)
{
	char *const cat[] = {"cat", NULL}, *const fails[] = {"sh", "-c", "exit 7", NULL},
		    *const sleeps[] = {"sleep", "60", NULL};
	char *const none[] = {"/no/such/program", NULL};
	int to[2], from[2], fds[3], status;
	char text[16];
	pid_t process;

	CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0); /* `cat` needs blocking descriptors */
	fds[0] = to[0];
	fds[1] = from[1];
	fds[2] = -1;
	process = weft_spawn_process(cat, NULL, fds);
	CHECK(process > 0);
	CHECK(weft_close(to[0]) == 0 && weft_close(from[1]) == 0);
	CHECK(weft_waitpid_until(process, &status, in(5 * MS)) == -ETIMEDOUT);
	CHECK(weft_write(to[1], "meow", 4) == 4);
	CHECK(weft_read(from[0], text, sizeof text) == 4 && !memcmp(text, "meow", 4));
	CHECK(weft_close(to[1]) == 0);
	CHECK(weft_read(from[0], text, sizeof text) == 0);
	CHECK(weft_waitpid(process, &status) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(weft_waitpid(process, &status) == -ECHILD);
	CHECK(weft_close(from[0]) == 0);
	process = weft_spawn_process(fails, NULL, NULL);
	CHECK(weft_waitpid(process, &status) == process && WEXITSTATUS(status) == 7);
	process = weft_spawn_process(sleeps, NULL, NULL);
	CHECK(kill(process, SIGKILL) == 0 && weft_waitpid(process, &status) == process && WTERMSIG(status) == SIGKILL);
	CHECK(weft_spawn_process(none, NULL, NULL) == -ENOENT && weft_waitpid(0, NULL) == -EINVAL);
	return pass;
}

static void *signals(void *pass)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(weft_sigwait_until(&set, &info, in(MS)) == -ETIMEDOUT);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	CHECK(weft_sigwait(&set, &info) == SIGUSR1 && info.si_pid == getpid());
	return pass;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static int64_t adds(void *numbers)
{
	usleep(1000);
	return ((int *)numbers)[0] + ((int *)numbers)[1];
}

static void *names_and_calls(void *pass)
{
	weft_address_t addresses[4];
	int numbers[] = {40, 2};

	CHECK(weft_call(adds, numbers) == 42);
	CHECK(weft_call_until(adds, numbers, 1) == -ETIMEDOUT || !workers);
	CHECK(weft_resolve("localhost", "80", SOCK_STREAM, addresses, 4) > 0);
	CHECK(weft_resolve("127.0.0.1", "80", SOCK_STREAM, addresses, 4) == 1 &&
	      addresses[0].size == sizeof(struct sockaddr_in));
	CHECK(weft_resolve("no.such.name.invalid", NULL, SOCK_STREAM, addresses, 4) < 0);
	return pass;
}

/* A task that never waits occupies its worker. Operations of other tasks complete nevertheless, if there is
 * another worker. */
struct held {
	bool over; /* atomic */
	int fd;
};

static void *holds(void *argument)
{
	struct held *h = argument;
	uint64_t until = in(20 * SECOND);

	while (!__atomic_load_n(&h->over, __ATOMIC_ACQUIRE))
		CHECK(weft_now() < until);
	return NULL;
}

static void *plays(void *argument)
{
	struct held *h = argument;
	char byte;

	while (weft_read(h->fd, &byte, 1) == 1)
		CHECK(weft_write(h->fd, &byte, 1) == 1);
	return NULL;
}

static void *a_held_worker(void *pass)
{
	struct held held[8] = {{0}}, *h = &held[0];
	int fds[8][2], i, turn;
	char byte = 'b';

	/* If tasks move at every step, the tasks cannot be bound to different workers. */
#ifdef WEFT_MIGRATE
	return pass;
#endif
	if (workers < 2)
		return pass;
	WEFT_SCOPE(scope);
	for (i = 0; i < 8; i++) {
		connect_pair(fds[i]);
		held[i].fd = fds[i][0];
		CHECK(weft_scope_spawn(&scope, plays, &held[i]) == 0);
	}
	weft_sleep(MS);
	CHECK(weft_scope_spawn(&scope, holds, h) == 0);
	for (turn = 0; turn < 10; turn++)
		for (i = 0; i < 8; i++) {
			CHECK(weft_write(fds[i][1], &byte, 1) == 1);
			CHECK(weft_read_until(fds[i][1], &byte, 1, in(10 * SECOND)) == 1);
		}
	__atomic_store_n(&h->over, true, __ATOMIC_RELEASE);
	for (i = 0; i < 8; i++)
		CHECK(weft_close(fds[i][1]) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	for (i = 0; i < 8; i++)
		CHECK(weft_close(fds[i][0]) == 0);
	return pass;
}

enum { HEARERS = 20 };

struct hearer {
	int fds[2];
	pid_t *thread; /* the thread that began to wait */
	uint64_t until;
};

static void *hears_a_byte(void *argument)
{
	struct hearer *r = argument;
	char byte;

	*r->thread = gettid();
	CHECK(weft_read_until(r->fds[0], &byte, 1, r->until) == 1);
	CHECK(weft_write(r->fds[0], &byte, 1) == 1);
	return NULL;
}

/* Each byte arrives when the other worker has been idle for a long time. */
static void *writes_slowly(void *hearers)
{
	struct hearer *r = hearers;
	char byte;

	for (int i = 0; i < HEARERS; i++) {
		usleep(5000);
		CHECK(weft_write(r[i].fds[1], "b", 1) == 1 && weft_read(r[i].fds[1], &byte, 1) == 1);
	}
	return NULL;
}

/* After this, the worker has a ring. */
static void *asks_where(void *thread)
{
	int fds[2];

	connect_pair(fds);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	*(pid_t *)thread = gettid();
	return NULL;
}

/* One worker is occupied while most reads wait in its ring, and the other worker sleeps: it must be woken. If it only
 * looked now and then (a canary makes it look once in three seconds), the deadline would pass. */
static void *a_held_worker_is_heard(void *pass)
{
	struct hearer hearers[HEARERS];
	pid_t threads[HEARERS], first;
	weft_task_attr_t attr = {.worker = 1};
	struct held h = {0};
	weft_task_t asker, holder;
	pthread_t thread;
	unsigned there = 0;
	int i;

#ifdef WEFT_MIGRATE
	return pass;
#endif
	if (workers != 2)
		return pass;
	WEFT_SCOPE(scope);
	WEFT_SCOPE(reads);
	for (attr.worker = 2; attr.worker; attr.worker--)
		CHECK(weft_scope_spawn_with(&scope, &asker, asks_where, &first, &attr) == 0 &&
		      weft_join(&asker, NULL) == 0);
	for (i = 0; i < HEARERS; i++) {
		connect_pair(hearers[i].fds);
		hearers[i].thread = &threads[i];
		hearers[i].until = in(12 * SECOND);
		CHECK(weft_scope_spawn(&reads, hears_a_byte, &hearers[i]) == 0);
	}
	weft_sleep(10 * MS);
	for (i = 0; i < HEARERS; i++)
		there += threads[i] == first;
	attr.worker = there >= HEARERS / 2 ? 1 : 2;
	CHECK(weft_scope_spawn_with(&scope, &holder, holds, &h, &attr) == 0);
	CHECK(pthread_create(&thread, NULL, writes_slowly, hearers) == 0);
	CHECK(weft_scope_wait(&reads) == 0);
	__atomic_store_n(&h.over, true, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	for (i = 0; i < HEARERS; i++)
		CHECK(weft_close(hearers[i].fds[0]) == 0 && weft_close(hearers[i].fds[1]) == 0);
	return pass;
}

/* Reads without end. Other tasks run in turn although there is always data to read. */
static void *reads_for_ever(void *over)
{
	char text[16];
	int fd = open("/dev/zero", O_RDONLY);

	while (!__atomic_load_n((bool *)over, __ATOMIC_RELAXED))
		CHECK(weft_read(fd, text, sizeof text) == sizeof text);
	CHECK(weft_close(fd) == 0);
	return NULL;
}

static void *nobody_starves(void *pass)
{
	bool over = false;

	if (!workers)
		return pass;
	WEFT_SCOPE(scope);
	for (int i = 0; i < 16; i++)
		CHECK(weft_scope_spawn(&scope, reads_for_ever, &over) == 0);
	weft_sleep(5 * MS);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

/* A task whose waits have already ended when they begin never lets its worker sleep. Events for other tasks are
 * delivered all the same, within some hundreds of these waits, where a look follows 0.1 ms after the last look. */
struct vain {
	int silent, fd;
	bool over;
};

static void *waits_in_vain(void *argument)
{
	struct vain *v = argument;
	unsigned long count;
	char byte;

	for (count = 0; !v->over; count++) {
		CHECK(weft_read_until(v->silent, &byte, 1, in(0)) == -ETIMEDOUT);
		CHECK(count < 200000);
	}
	return NULL;
}

static void *reads_once(void *argument)
{
	struct vain *v = argument;
	char byte;

	CHECK(weft_read(v->fd, &byte, 1) == 1);
	v->over = true;
	return NULL;
}

static void *vain_waits_hold_up_nobody(void *pass)
{
	int silent[2], fds[2], turn;

	if (workers != 1)
		return pass;
	connect_pair(silent);
	connect_pair(fds);
	for (turn = 0; turn < 10; turn++) {
		struct vain v = {silent[0], fds[0], false};

		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, reads_once, &v) == 0);
		weft_sleep(MS);
		CHECK(weft_scope_spawn(&scope, waits_in_vain, &v) == 0);
		CHECK(weft_write(fds[1], "x", 1) == 1);
		CHECK(weft_scope_wait(&scope) == 0);
	}
	CHECK(weft_close(silent[0]) == 0 && weft_close(silent[1]) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

static unsigned seen_operations;

/* A handler that answers every read with "yes", and changes nothing else. */
static int says_yes(void *unused, weft_io_t *io)
{
	(void)unused;
	seen_operations++;
	if (io->kind != WEFT_IO_READ)
		return weft_op_io(io);
	memcpy(io->data, "yes", 3);
	io->result = 3;
	return WEFT_IO_DONE;
}

WEFT_HANDLER(says_yes_to_all, weft_tail(weft_op_io, says_yes));

static void *asks(void *fds)
{
	char text[8];

	CHECK(weft_write(((int *)fds)[1], "no", 2) == 2);
	CHECK(weft_read(((int *)fds)[0], text, sizeof text) == 3 && !memcmp(text, "yes", 3));
	return NULL;
}

static void *a_world_in_between(void *pass)
{
	int fds[2];
	char text[8];

	CHECK(weft_pipe(fds) == 0);
	seen_operations = 0;
	weft_run(&says_yes_to_all, NULL, asks, fds);
	CHECK(seen_operations == 2);
	CHECK(weft_read(fds[0], text, sizeof text) == 2);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return pass;
}

static void *the_back_end(void *pass)
{
	const char *wanted = getenv("WEFT_IO"), *got = weft_io_backend();

	CHECK(!strcmp(got, !workers ? "threads" : wanted ? wanted : got));
	return pass;
}

#define THREADS_TOO true
static const struct {
	const char *name;
	weft_fn_t *fn;
	bool in_thread;
} tests[] = {
    {"the_back_end", the_back_end, THREADS_TOO},
    {"a_pipe", a_pipe, THREADS_TOO},
    {"streams", streams, false},
    {"pipes", pipes, false},
    {"the_end_is_seen", the_end_is_seen, THREADS_TOO},
    {"vectors", vectors, THREADS_TOO},
    {"deadlines_lose_nothing", deadlines_lose_nothing, false},
    {"cancelling_loses_nothing", cancelling_loses_nothing, false},
    {"every_byte_arrives", every_byte_arrives, false},
    {"closing_ends_waits", closing_ends_waits, false},
    {"many_wait_for_one", many_wait_for_one, false},
    {"connecting", connecting, THREADS_TOO},
    {"connecting_in_vain", connecting_in_vain, THREADS_TOO},
    {"waiting_for_all", waiting_for_all, THREADS_TOO},
    {"full_listeners", full_listeners, THREADS_TOO},
    {"full_receivers", full_receivers, THREADS_TOO},
    {"datagrams", datagrams, THREADS_TOO},
    {"descriptors_travel", descriptors_travel, THREADS_TOO},
    {"peeking", peeking, THREADS_TOO},
    {"many_accept", many_accept, false},
    {"no_descriptor_left", no_descriptor_left, false},
    {"polling", polling, false},
    {"reads_overtake_polls", reads_overtake_polls, false},
    {"foreign", foreign, false},
    {"files", files, THREADS_TOO},
    {"watching", watching, THREADS_TOO},
    {"watches_end", watches_end, false},
    {"addresses", addresses, THREADS_TOO},
    {"one_position", one_position, 0},
    {"children_close", children_close, 0},
    {"all_of_it", all_of_it, false},
    {"splicing", splicing, THREADS_TOO},
    {"processes", processes, THREADS_TOO},
    {"signals", signals, THREADS_TOO},
    {"names_and_calls", names_and_calls, THREADS_TOO},
    {"a_held_worker", a_held_worker, false},
    {"a_held_worker_is_heard", a_held_worker_is_heard, false},
    {"nobody_starves", nobody_starves, false},
    {"vain_waits_hold_up_nobody", vain_waits_hold_up_nobody, false},
    {"a_world_in_between", a_world_in_between, false},
};

/* io WORKERS [NAME]; 0: in a thread. */
int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};
	void *result;
	sigset_t set;
	int error;

	signal(SIGPIPE, SIG_IGN);
	/* This address has no server: no test asks a network. */
	setenv("WEFT_DNS_SERVERS", "127.0.0.1:9", 0);
	setenv("RES_OPTIONS", "retrans:100 retry:1", 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if ((argc > 2 && strcmp(argv[2], tests[i].name)) || (!workers && !tests[i].in_thread))
			continue;
		error = 0;
		if (workers)
			error = weft_rt_run(&config, tests[i].fn, &config, &result);
		else
			result = tests[i].fn(&config);
		if (error || result != &config) {
			printf("not ok - %s: %s\n", tests[i].name, strerror(-error));
			return 1;
		}
		printf("ok - %s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
