/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The same answers as the system's own calls: PROGRAM WORKERS FIRST-SEED COUNT; 0 workers: by a thread.
 *
 * A round makes two descriptors of the same kind, one for Weft and one for the oracle, and does the same drawn things
 * with both: the other side sends, with descriptors or an urgent byte, ends or goes away; this side reads, receives,
 * writes, polls, and asks for what its kind cannot do. Weft's calls have a deadline; the oracle asks poll and then the
 * system's call. What comes out, number, error and bytes, must be the same.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <weft/io.h>

#include "../sched/check.h"
#include "../sched/draw.h"

enum {
	TCP,
	UNIX,
	DATAGRAMS,
	SEQPACKET,
	UDP,
	PIPE,
	PACKETS,
	TERMINAL,
	EVENTS,
	SEMAPHORE,
	INOTIFY,
	FILE_,
	NOTHING,
	LISTENER,
	KINDS
};
static const char *const kinds[] = {"tcp",	"unix",	   "datagrams", "seqpacket", "udp",  "pipe", "packets",
				    "terminal", "eventfd", "semaphore", "inotify",   "file", "null", "listener"};

enum { MOST = 256, STEPS = 14, PATIENCE = 2, LONG = 2000 /* milliseconds */ };

/* One of the two. */
struct side {
	int fd, peer; /* -1: none, or closed */
	bool sockets;
	char path[40];
};

struct answer {
	int64_t result;
	int extra; /* descriptors, or flags of a message */
	char data[MOST + 2];
};

static unsigned long seed;
static uint64_t numbers;

/* ---- making a pair ----------------------------------------------------------------------------------------------- */

static void connect_pair(struct side *s, int type)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, b;
	socklen_t size = sizeof a;
	int listener = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	CHECK(!bind(listener, (struct sockaddr *)&a, sizeof a) && !getsockname(listener, (struct sockaddr *)&a, &size));
	s->peer = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (type == SOCK_STREAM) {
		CHECK(!listen(listener, 1) && !connect(s->peer, (struct sockaddr *)&a, sizeof a));
		s->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		CHECK(s->fd >= 0 && !close(listener));
		return;
	}
	s->fd = listener;
	b = a;
	b.sin_port = 0;
	CHECK(!bind(s->peer, (struct sockaddr *)&b, sizeof b) && !getsockname(s->peer, (struct sockaddr *)&b, &size));
	CHECK(!connect(s->peer, (struct sockaddr *)&a, sizeof a) && !connect(s->fd, (struct sockaddr *)&b, sizeof b));
}

static void make(struct side *s, int kind)
{
	static unsigned serial;
	int fds[2] = {-1, -1}, types[] = {[UNIX] = SOCK_STREAM, [DATAGRAMS] = SOCK_DGRAM, [SEQPACKET] = SOCK_SEQPACKET};

	*s = (struct side){.sockets = kind <= UDP || kind == LISTENER};
	snprintf(s->path, sizeof s->path, "/tmp/weft-differs-%d-%u", getpid(), serial++);
	switch (kind) {
	case TCP:
	case UDP:
		connect_pair(s, kind == TCP ? SOCK_STREAM : SOCK_DGRAM);
		return;
	case UNIX:
	case DATAGRAMS:
	case SEQPACKET:
		CHECK(!socketpair(AF_UNIX, types[kind] | SOCK_CLOEXEC, 0, fds));
		break;
	case PIPE:
	case PACKETS:
		CHECK(!pipe2(fds, O_CLOEXEC | (kind == PACKETS ? O_DIRECT : 0)));
		break;
	case TERMINAL:
		CHECK(!openpty(&fds[1], &fds[0], NULL, NULL, NULL));
		break;
	case EVENTS:
	case SEMAPHORE:
		fds[0] = eventfd(0, EFD_CLOEXEC | (kind == SEMAPHORE ? EFD_SEMAPHORE : 0));
		fds[1] = dup(fds[0]);
		break;
	case INOTIFY:
		CHECK(!mkdir(s->path, 0700));
		fds[0] = inotify_init1(IN_CLOEXEC);
		CHECK(inotify_add_watch(fds[0], s->path, IN_CREATE) > 0);
		break;
	case FILE_:
		fds[0] = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		fds[1] = open(s->path, O_WRONLY | O_APPEND | O_CLOEXEC);
		break;
	case NOTHING:
		fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	default:
		fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(!listen(fds[0], 8));
	}
	s->fd = fds[0];
	s->peer = fds[1];
	CHECK(s->fd >= 0);
}

static void unmake(struct side *s, bool weft)
{
	char name[60];

	CHECK(weft ? weft_close(s->fd) == 0 : close(s->fd) == 0);
	if (s->peer >= 0)
		CHECK(!close(s->peer));
	for (int i = 0; i < STEPS; i++) {
		snprintf(name, sizeof name, "%s/%d", s->path, i);
		(void)unlink(name);
	}
	(void)rmdir(s->path);
	(void)unlink(s->path);
}

/* ---- what the other side does ------------------------------------------------------------------------------------ */

struct act {
	int what, bytes, step;
};

static void send_rights(int fd, const char *data, size_t bytes)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)data, bytes};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	(void)!sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void act(struct side *s, int kind, const struct act *a)
{
	char data[MOST], name[60];
	uint64_t count = (uint64_t)a->bytes + 1;

	memset(data, 'a' + a->step, sizeof data);
	if (kind == TERMINAL)
		data[a->bytes] = '\n';
	if (kind == INOTIFY) {
		snprintf(name, sizeof name, "%s/%d", s->path, a->step);
		CHECK(!close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	} else if (s->peer < 0) {
		return;
	} else if (a->what == 0 && kind != TERMINAL) {
		CHECK(!close(s->peer));
		s->peer = -1;
	} else if (a->what == 1 && s->sockets) {
		(void)shutdown(s->peer, SHUT_WR);
	} else if (a->what == 2 && kind == TCP) {
		(void)!send(s->peer, data, 1 + (size_t)a->bytes, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (a->what <= 3 && (kind == UNIX || kind == DATAGRAMS || kind == SEQPACKET)) {
		send_rights(s->peer, data, 1 + (size_t)a->bytes);
	} else if (kind == EVENTS || kind == SEMAPHORE) {
		CHECK(write(s->peer, &count, sizeof count) == sizeof count);
	} else if (kind != NOTHING && kind != LISTENER) {
		(void)!write(s->peer, data, 1 + (size_t)a->bytes);
	}
}

/* ---- what this side does ----------------------------------------------------------------------------------------- */

enum { READ, READV, PREAD, RECV, RECVMSG, WRITE, WRITEV, PWRITE, SEND, POLL, ACCEPT, CONNECT, SYNC, CALLS };
static const char *const names[] = {"read",   "readv", "pread", "recv",	  "recvmsg", "write", "writev",
				    "pwrite", "send",  "poll",	"accept", "connect", "sync"};

struct call {
	int what, flags, bytes;
};

/* Whether a call may wait, and for what. */
static short waits_for(const struct call *c)
{
	if (c->what == READ || c->what == READV || c->what == RECV || c->what == RECVMSG || c->what == ACCEPT)
		return POLLIN;
	return c->what == WRITE || c->what == WRITEV || c->what == SEND ? POLLOUT : 0;
}

static struct msghdr message_of(struct iovec *parts, void *control, size_t size)
{
	return (struct msghdr){.msg_iov = parts, .msg_iovlen = 2, .msg_control = control, .msg_controllen = size};
}

/* How many descriptors came, which are closed. */
static int take_rights(struct msghdr *m)
{
	int count = 0, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(c), sizeof fd);
			CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC && !close(fd));
			count++;
		}
	return count | (m->msg_flags & ~MSG_CMSG_CLOEXEC) << 4;
}

#define CONTROL                                                                                                        \
	union {                                                                                                        \
		char space[CMSG_SPACE(4 * sizeof(int))];                                                               \
		struct cmsghdr align;                                                                                  \
	} control

/* Now: the descriptor does not block. */
static int64_t ask_system(int fd, const struct call *c, struct answer *a)
{
	struct iovec parts[2] = {{a->data, (size_t)c->bytes / 2}, {a->data + c->bytes / 2, (size_t)(c->bytes + 1) / 2}};
	CONTROL;
	struct msghdr m = message_of(parts, &control, sizeof control);
	struct pollfd p = {fd, (short)c->flags, 0};
	int64_t n = 0;

	switch (c->what) {
	case READ:
		n = read(fd, a->data, (size_t)c->bytes);
		break;
	case READV:
		n = readv(fd, parts, 2);
		break;
	case PREAD:
		n = pread(fd, a->data, (size_t)c->bytes, 1);
		break;
	case RECV:
		n = recv(fd, a->data, (size_t)c->bytes, c->flags);
		break;
	case RECVMSG:
		n = recvmsg(fd, &m, c->flags | MSG_CMSG_CLOEXEC);
		break;
	case WRITE:
		n = write(fd, a->data, (size_t)c->bytes);
		break;
	case WRITEV:
		n = writev(fd, parts, 2);
		break;
	case PWRITE:
		n = pwrite(fd, a->data, (size_t)c->bytes, 1);
		break;
	case SEND:
		n = send(fd, a->data, (size_t)c->bytes, c->flags | MSG_NOSIGNAL);
		break;
	case POLL:
		n = poll(&p, 1, PATIENCE);
		return n ? p.revents : -ETIMEDOUT;
	case ACCEPT:
		n = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		break;
	case CONNECT:
		n = connect(fd, NULL, 0);
		break;
	default:
		n = fsync(fd);
	}
	if (n >= 0 && c->what == RECVMSG)
		a->extra = take_rights(&m);
	return n < 0 ? -errno : n;
}

static int64_t by_system(int fd, const struct call *c, struct answer *a)
{
	struct pollfd p = {fd, waits_for(c), 0};
	int flags = fcntl(fd, F_GETFL);
	int64_t n;

	CHECK(!fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	n = ask_system(fd, c, a);
	if (n == -EAGAIN && !(c->flags & MSG_DONTWAIT && (c->what == RECV || c->what == RECVMSG))) {
		(void)poll(&p, 1, PATIENCE);
		n = ask_system(fd, c, a);
		if (n == -EAGAIN)
			n = -ETIMEDOUT;
	}
	CHECK(!fcntl(fd, F_SETFL, flags));
	return n;
}

static int64_t by_weft(int fd, const struct call *c, struct answer *a, unsigned milliseconds)
{
	uint64_t until = weft_now() + milliseconds * MS;
	struct iovec parts[2] = {{a->data, (size_t)c->bytes / 2}, {a->data + c->bytes / 2, (size_t)(c->bytes + 1) / 2}};
	CONTROL;
	struct msghdr m = message_of(parts, &control, sizeof control);
	int64_t n;

	switch (c->what) {
	case READ:
		return weft_read_until(fd, a->data, (size_t)c->bytes, until);
	case READV:
		return weft_preadv_until(fd, parts, 2, -1, until);
	case PREAD:
		return weft_pread_until(fd, a->data, (size_t)c->bytes, 1, until);
	case RECV:
		return weft_recv_until(fd, a->data, (size_t)c->bytes, c->flags, until);
	case RECVMSG:
		n = weft_recvmsg_until(fd, &m, c->flags, until);
		a->extra = n >= 0 ? take_rights(&m) : 0;
		return n;
	case WRITE:
		return weft_write_until(fd, a->data, (size_t)c->bytes, until);
	case WRITEV:
		return weft_pwritev_until(fd, parts, 2, -1, until);
	case PWRITE:
		return weft_pwrite_until(fd, a->data, (size_t)c->bytes, 1, until);
	case SEND:
		return weft_send_until(fd, a->data, (size_t)c->bytes, c->flags, until);
	case POLL:
		return weft_poll_until(fd, c->flags, until);
	case ACCEPT:
		return weft_accept_until(fd, NULL, NULL, 0, until);
	case CONNECT:
		return weft_connect_until(fd, NULL, 0, until);
	default:
		return weft_fsync(fd);
	}
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static struct call draw_call(int kind)
{
	static const int receive_flags[] = {0, 0, MSG_PEEK, MSG_DONTWAIT, MSG_TRUNC, MSG_OOB};
	static const int polled[] = {POLLIN, POLLOUT, POLLIN | POLLOUT, POLLIN | POLLRDHUP, POLLPRI};
	struct call c = {.what = (int)draw(&numbers, 3) ? (int)draw(&numbers, 3) : (int)draw(&numbers, CALLS)};

	c.bytes = (int)draw(&numbers, draw(&numbers, 4) ? MOST : 12);
	if (c.what == RECV || c.what == RECVMSG)
		c.flags = receive_flags[draw(&numbers, sizeof receive_flags / sizeof *receive_flags)];
	if (c.what == POLL)
		c.flags = polled[draw(&numbers, sizeof polled / sizeof *polled)];
	/* A read of nothing ends by EINVAL there, or blocks. Of a vector only the first part is used, since a thread
	 * could block at the second. */
	if (kind == EVENTS || kind == SEMAPHORE || kind == INOTIFY)
		c.bytes += 2;
	if ((kind == INOTIFY || kind == TERMINAL) && c.what == READV)
		c.what = READ;
	return c;
}

static bool say(int kind, int step, const struct call *c, const struct answer *weft, const struct answer *system)
{
	dprintf(1, "not ok - seed %lu, step %d: %s of %d bytes, flags %x, of %s by %s: %lld (%s), not %lld (%s)\n",
		seed, step, names[c->what], c->bytes, (unsigned)c->flags, kinds[kind], weft_io_backend(),
		(long long)weft->result, weft->result < 0 ? strerror((int)-weft->result) : "",
		(long long)system->result, system->result < 0 ? strerror((int)-system->result) : "");
	return false;
}

/* For `hangs`. */
static struct call asked;
static int asked_kind;

static bool compare(struct side *sides, int kind, int step)
{
	struct call c = draw_call(kind);
	static struct answer weft, system;

	asked = c;
	asked_kind = kind;
	memset(&weft, 'z', sizeof weft);
	weft.extra = 0;
	system = weft;
	system.result = by_system(sides[1].fd, &c, &system);
	weft.result = by_weft(sides[0].fd, &c, &weft, system.result == -ETIMEDOUT ? PATIENCE : LONG);
	if (c.what == ACCEPT && weft.result >= 0 && system.result >= 0) {
		CHECK(!weft_close((int)weft.result) && !close((int)system.result));
		return true;
	}
	if (weft.result != system.result || weft.extra != system.extra)
		return say(kind, step, &c, &weft, &system);
	/* Events of inotify have numbers of their own. */
	if (kind != INOTIFY && weft.result > 0 && memcmp(weft.data, system.data, sizeof weft.data) != 0)
		return say(kind, step, &c, &weft, &system);
	return true;
}

static bool one_round(void)
{
	int kind = (int)draw(&numbers, KINDS);
	struct side sides[2];
	bool good = true;

	make(&sides[0], kind);
	make(&sides[1], kind);
	for (int step = 0; step < STEPS && good; step++) {
		struct act a = {(int)draw(&numbers, 16), (int)draw(&numbers, 40), step};

		if (draw(&numbers, 2)) {
			act(&sides[0], kind, &a);
			act(&sides[1], kind, &a);
		} else {
			good = compare(sides, kind, step);
		}
	}
	unmake(&sides[0], true);
	unmake(&sides[1], false);
	return good;
}

static void *all_rounds(void *rounds)
{
	unsigned long last = seed + *(unsigned long *)rounds, bad = 0;

	for (; seed < last; seed++) {
		alarm(20);
		numbers = seed * 77 + 1;
		bad += !one_round();
	}
	CHECK(!bad);
	return NULL;
}

static void hangs(int number)
{
	(void)number;
	dprintf(1, "not ok - seed %lu: a call does not end: %s of %s\n", seed, names[asked.what], kinds[asked_kind]);
	_exit(1);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;
	weft_rt_config_t config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, hangs);
	if (config.workers)
		CHECK(!weft_rt_run(&config, all_rounds, &rounds, NULL));
	else
		(void)all_rounds(&rounds);
	printf("ok - %lu rounds\n", rounds);
	return 0;
}
