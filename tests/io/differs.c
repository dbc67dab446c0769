/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compares the results of calls with those of the system's own calls: PROGRAM WORKERS FIRST-SEED COUNT [posix |
 * simulated].
 *
 * The calls are functions of weft/io.h, called by a task, or by a thread (0 workers); functions of weft/posix.h, called
 * by a task; or functions of weft/io.h in the simulated world.
 *
 * A round makes two descriptors of the same kind, one for Weft and one for the oracle, and does the same drawn actions
 * with both: the other side sends data, descriptors or an urgent byte, shuts down or closes; this side reads, receives,
 * writes, polls, and tries operations that its kind does not support. Weft's calls have a deadline; the oracle asks
 * poll and then the system's call. The results must be equal: number, error, bytes, and whether SIGPIPE was raised.
 *
 * At the end many calls wait at the same time, by Weft, by weft/posix.h and by the system in threads, and either end of
 * their sockets is shut down by shutdown or weft_shutdown: the same calls must end, with the same results.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#define WEFT_POSIX_NO_NAMES
#include <weft/posix.h>
#include <weft/sim.h>

#include "../sched/check.h"
#include "../sched/draw.h"

enum {
	TCP,
	UNIX,
	DATAGRAMS,
	SEQPACKET,
	UDP,
	UDP_FREE, /* only its peer is connected */
	BOUND,	  /* like UDP_FREE, with Unix datagrams */
	STREAM,	  /* TCP, not connected */
	LOCAL,	  /* a Unix stream that is not connected */
	LONELY,	  /* a Unix datagram socket without a name or a peer */
	LISTENER,
	PIPE,
	PIPE_OUT, /* the writing end of a pipe */
	PACKETS,
	FIFO,
	TERMINAL,
	EVENTS,
	SEMAPHORE,
	TIMER,
	SIGNALS,
	INOTIFY,
	FILE_,
	DIRECTORY,
	NOTHING,
	KINDS
};
#define B(kind) (1u << (kind))
enum { SOCKETS = B(PIPE) - 1, COUNTERS = B(EVENTS) | B(SEMAPHORE) | B(TIMER) | B(SIGNALS) | B(INOTIFY) };

/* The functions that make the calls. */
enum { CALLS_OF_WEFT, CALLS_OF_POSIX, SIMULATED };

static const struct {
	const char *name;
	bool simulated;
} kinds[] = {
    [TCP] = {"tcp", true},
    [UNIX] = {"unix", true},
    [DATAGRAMS] = {"datagrams", true},
    [SEQPACKET] = {"seqpacket", true},
    [UDP] = {"udp", true},
    [UDP_FREE] = {"udp, not connected", true},
    [BOUND] = {"bound", true},
    [STREAM] = {"stream", true},
    [LOCAL] = {"local", true},
    [LONELY] = {"lonely", true},
    [LISTENER] = {"listener", true},
    [PIPE] = {"pipe", true},
    [PIPE_OUT] = {"pipe, out", true},
    [PACKETS] = {"packets", false},
    [FIFO] = {"fifo", false},
    [TERMINAL] = {"terminal", false},
    [EVENTS] = {"eventfd", false},
    [SEMAPHORE] = {"semaphore", false},
    [TIMER] = {"timerfd", false},
    [SIGNALS] = {"signalfd", false},
    [INOTIFY] = {"inotify", false},
    [FILE_] = {"file", true},
    [DIRECTORY] = {"directory", true},
    [NOTHING] = {"null", false},
};

enum { MOST = 256, STEPS = 14, PATIENCE = 2, LONG = 2000 /* milliseconds */ };
enum { QUEUE = 10 /* datagrams that a Unix socket of the system can queue; a simulated socket counts bytes instead */ };

/* The descriptors of one side: Weft's, or the oracle's. */
struct side {
	int fd, peer; /* -1: none, or closed */
	int kind, signal, sent;
	bool simulated;
	char path[40];
};

struct answer {
	int64_t result;
	int extra; /* number of received descriptors, or the message's flags */
	int raised;
	char data[MOST + 2];
};

static int way;
static unsigned long seed;
static uint64_t numbers;
static int sigpipes; /* atomic */
static bool in_tasks;

/* ---- making a pair ----------------------------------------------------------------------------------------------- */

/* Each process of this test has its own loopback address. If processes shared an address, a datagram for a port that
 * has been closed could reach the next process that gets the port, if its socket is not connected. */
static struct in_addr loopback(void)
{
	return (struct in_addr){htonl(0x7f000001u | ((unsigned)getpid() & 0x7fffff) << 1)};
}

static void connect_pair(struct side *s, int type, bool both)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = loopback()}, b;
	socklen_t size = sizeof a;
	int listener = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	CHECK(!bind(listener, (struct sockaddr *)&a, sizeof a) && !getsockname(listener, (struct sockaddr *)&a, &size));
	s->peer = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (type == SOCK_STREAM) {
		CHECK(!listen(listener, 1) && !connect(s->peer, (struct sockaddr *)&a, sizeof a));
		s->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		CHECK(s->fd >= 0 && !close(listener));
		/* Otherwise a short segment waits until the previous segment is acknowledged. */
		CHECK(!weft_set_nodelay(s->fd, true) && !weft_set_nodelay(s->peer, true));
		return;
	}
	s->fd = listener;
	b = a;
	b.sin_port = 0;
	CHECK(!bind(s->peer, (struct sockaddr *)&b, sizeof b) && !getsockname(s->peer, (struct sockaddr *)&b, &size));
	CHECK(!connect(s->peer, (struct sockaddr *)&a, sizeof a));
	CHECK(!both || !connect(s->fd, (struct sockaddr *)&b, sizeof b));
}

static void bind_datagrams(struct side *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	strcpy(a.sun_path, s->path);
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	s->peer = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(s->fd, (struct sockaddr *)&a, sizeof a) && !connect(s->peer, (struct sockaddr *)&a, sizeof a));
}

static void open_fifo(const char *path, int fds[2])
{
	CHECK(!mkfifo(path, 0600));
	fds[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fds[1] = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(!fcntl(fds[0], F_SETFL, O_RDONLY));
}

static int signals_of(struct side *s, int which)
{
	sigset_t set;

	s->signal = which ? SIGUSR1 : SIGUSR2;
	sigemptyset(&set);
	sigaddset(&set, s->signal);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void make_real(struct side *s, int which)
{
	int fds[2] = {-1, -1}, types[] = {[UNIX] = SOCK_STREAM, [DATAGRAMS] = SOCK_DGRAM, [SEQPACKET] = SOCK_SEQPACKET};

	switch (s->kind) {
	case TCP:
	case UDP:
	case UDP_FREE:
		connect_pair(s, s->kind == TCP ? SOCK_STREAM : SOCK_DGRAM, s->kind != UDP_FREE);
		return;
	case BOUND:
		bind_datagrams(s);
		return;
	case UNIX:
	case DATAGRAMS:
	case SEQPACKET:
		CHECK(!socketpair(AF_UNIX, types[s->kind] | SOCK_CLOEXEC, 0, fds));
		break;
	case STREAM:
	case LOCAL:
	case LONELY:
		fds[0] = socket(s->kind == STREAM ? AF_INET : AF_UNIX,
				(s->kind == LONELY ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
		break;
	case PIPE:
	case PACKETS:
		CHECK(!pipe2(fds, O_CLOEXEC | (s->kind == PACKETS ? O_DIRECT : 0)));
		break;
	case PIPE_OUT:
		CHECK(!pipe2(fds, O_CLOEXEC));
		fds[0] ^= fds[1], fds[1] ^= fds[0], fds[0] ^= fds[1];
		break;
	case FIFO:
		open_fifo(s->path, fds);
		break;
	case TERMINAL:
		CHECK(!openpty(&fds[1], &fds[0], NULL, NULL, NULL));
		break;
	case EVENTS:
	case SEMAPHORE:
		fds[0] = eventfd(0, EFD_CLOEXEC | (s->kind == SEMAPHORE ? EFD_SEMAPHORE : 0));
		fds[1] = dup(fds[0]);
		break;
	case TIMER:
		fds[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		break;
	case SIGNALS:
		fds[0] = signals_of(s, which);
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
	case DIRECTORY:
		CHECK(!mkdir(s->path, 0700));
		fds[0] = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

static int connect_simulated(int fd, int to)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	a.sin_port = htons((uint16_t)weft_port(to));
	return weft_connect(fd, (struct sockaddr *)&a, sizeof a);
}

static void connect_pair_simulated(struct side *s)
{
	unsigned flags = s->kind == TCP ? 0 : WEFT_LISTEN_UDP;
	int listener = weft_listen("127.0.0.1", 0, 1, flags);

	s->peer = s->kind == TCP ? weft_socket(AF_INET, SOCK_STREAM, 0) : weft_listen("127.0.0.1", 0, 1, flags);
	CHECK(listener >= 0 && s->peer >= 0 && !connect_simulated(s->peer, listener));
	s->fd = s->kind == TCP ? weft_accept(listener, NULL, NULL, 0) : listener;
	CHECK(s->kind == TCP ? !weft_close(listener) : s->kind == UDP_FREE || !connect_simulated(s->fd, s->peer));
}

static void make_simulated(struct side *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fds[2] = {-1, -1}, types[] = {[UNIX] = SOCK_STREAM, [DATAGRAMS] = SOCK_DGRAM, [SEQPACKET] = SOCK_SEQPACKET};

	switch (s->kind) {
	case TCP:
	case UDP:
	case UDP_FREE:
		connect_pair_simulated(s);
		return;
	case BOUND:
		strcpy(a.sun_path, s->path);
		fds[0] = weft_listen(s->path, 0, 0, WEFT_LISTEN_UDP);
		fds[1] = weft_socket(AF_UNIX, SOCK_DGRAM, 0);
		CHECK(!weft_connect(fds[1], (struct sockaddr *)&a, sizeof a));
		break;
	case UNIX:
	case DATAGRAMS:
	case SEQPACKET:
		CHECK(!weft_socketpair(AF_UNIX, types[s->kind], 0, fds));
		break;
	case STREAM:
	case LOCAL:
	case LONELY:
		fds[0] =
		    weft_socket(s->kind == STREAM ? AF_INET : AF_UNIX, s->kind == LONELY ? SOCK_DGRAM : SOCK_STREAM, 0);
		break;
	case PIPE:
	case PIPE_OUT:
		CHECK(!weft_pipe(fds));
		if (s->kind == PIPE_OUT)
			fds[0] ^= fds[1], fds[1] ^= fds[0], fds[0] ^= fds[1];
		break;
	case FILE_:
		fds[0] = weft_open(s->path, O_RDWR | O_CREAT, 0600);
		fds[1] = weft_open(s->path, O_WRONLY | O_APPEND, 0);
		break;
	case DIRECTORY:
		CHECK(!weft_mkdir(s->path, 0700));
		fds[0] = weft_open(s->path, O_RDONLY | O_DIRECTORY, 0);
		break;
	default:
		fds[0] = weft_listen("127.0.0.1", 0, 8, 0);
	}
	s->fd = fds[0];
	s->peer = fds[1];
	CHECK(s->fd >= 0);
}

static void make(struct side *s, int kind, int which)
{
	static unsigned serial;

	*s = (struct side){.kind = kind, .simulated = way == SIMULATED && !which};
	snprintf(s->path, sizeof s->path, "/tmp/weft-differs-%d-%u", getpid(), serial++);
	if (s->simulated)
		make_simulated(s);
	else
		make_real(s, which);
}

static void close_peer(struct side *s)
{
	CHECK(s->simulated ? weft_close(s->peer) == 0 : close(s->peer) == 0);
	s->peer = -1;
}

static void unmake(struct side *s, bool weft)
{
	sigset_t set;
	char name[60];

	CHECK(!weft		      ? close(s->fd) == 0
	      : way == CALLS_OF_POSIX ? weft_posix_close(s->fd) == 0
				      : weft_close(s->fd) == 0);
	if (s->peer >= 0)
		close_peer(s);
	for (int i = 0; s->kind == INOTIFY && i < STEPS; i++) {
		snprintf(name, sizeof name, "%s/%d", s->path, i);
		(void)unlink(name);
	}
	if (s->signal) {
		sigemptyset(&set);
		sigaddset(&set, s->signal);
		(void)sigtimedwait(&set, NULL, &(struct timespec){0, 0});
	}
	(void)rmdir(s->path);
	(void)unlink(s->path);
}

/* ---- actions of this side ---------------------------------------------------------------------------------------- */

enum {
	READ,
	READV,
	PREAD,
	RECV,
	RECVMSG,
	RECVFROM,
	WRITE,
	WRITEV,
	PWRITE,
	SEND,
	SENDMSG,
	SENDTO,
	POLL,
	ACCEPT,
	CONNECT,
	SYNC,
	SHUTDOWN,
	CALLS
};
static const char *const names[] = {"read",  "readv",  "pread",	  "recv",  "recvmsg", "recvfrom",
				    "write", "writev", "pwrite",  "send",  "sendmsg", "sendto",
				    "poll",  "accept", "connect", "fsync", "shutdown"};
enum {
	READS = B(READ) | B(READV) | B(PREAD),
	RECEIVES = B(RECV) | B(RECVMSG) | B(RECVFROM),
	WRITES = B(WRITE) | B(WRITEV) | B(PWRITE),
	SENDS = B(SEND) | B(SENDMSG) | B(SENDTO),
};

/* Bits of call.odd: unusual arguments. */
enum { NULL_DATA = 1, NEGATIVE = 2, EMPTY = 4, SHUTS_IN = 8 };

struct call {
	int what, flags, bytes, odd;
};

/*
 * Calls that are not compared, and the reasons: the differences that docs/reference/io.md,
 * docs/howto/concurrent-library.md and docs/howto/simulator.md name. Zero matches any call; `odd` and `flags` match
 * calls with at least one of these bits.
 */
static const struct {
	unsigned ways, kinds, calls;
	int flags, odd;
} differences[] = {
    /* Only the first part of a vector is used, because a thread could block at the second part. */
    {0, B(INOTIFY), B(READV), 0, 0},
    /* The system fails a read of zero bytes with EINVAL, or blocks. */
    {0, COUNTERS, READS | WRITES, 0, EMPTY},
    /* The simulator has no urgent byte, no error queue, no socket options, and no unmapped memory. */
    {B(SIMULATED), 0, RECEIVES | SENDS, MSG_OOB | MSG_ERRQUEUE, 0},
    {B(SIMULATED), 0, 0, 0, NULL_DATA},
    /* The system's peek at a Unix stream reports descriptors that were sent after the bytes that it returns. */
    {B(SIMULATED), B(UNIX), B(RECVMSG), MSG_PEEK, 0},
    /* TCP sends no reset for data that arrives after its receiver has shut down reading; and a listener that is shut
     * down remains a listener. */
    {B(SIMULATED), B(TCP) | B(LISTENER), B(SHUTDOWN), 0, SHUTS_IN},
    /* In the simulator a Unix socket has no file: the error is -ECONNREFUSED, not -ENOENT. */
    {B(SIMULATED), B(DATAGRAMS) | B(BOUND) | B(LONELY), B(SENDTO), 0, 0},
};

/* The simulator does not answer a UDP datagram to a closed port, so the sender gets no error. */
static bool may_close_peer(int kind)
{
	return kind != TERMINAL && !(way == SIMULATED && (kind == UDP || kind == UDP_FREE));
}

static bool is_excepted(int kind, const struct call *c)
{
	for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
		if ((!differences[i].ways || differences[i].ways & B(way)) &&
		    (!differences[i].kinds || differences[i].kinds & B(kind)) &&
		    (!differences[i].calls || differences[i].calls & B(c->what)) &&
		    (!differences[i].flags || differences[i].flags & c->flags) &&
		    (!differences[i].odd || differences[i].odd & c->odd))
			return true;
	return false;
}

/* ---- actions of the other side ----------------------------------------------------------------------------------- */

struct act {
	int what, bytes, step;
};

static ssize_t send_by_peer(struct side *s, const char *data, size_t bytes, int flags)
{
	if (s->simulated)
		return flags ? weft_send_until(s->peer, data, bytes, flags, 0)
			     : weft_write_until(s->peer, data, bytes, 0);
	return flags ? send(s->peer, data, bytes, flags | MSG_DONTWAIT | MSG_NOSIGNAL) : write(s->peer, data, bytes);
}

static void send_rights(struct side *s, const char *data, size_t bytes)
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
	memcpy(CMSG_DATA(c), &s->peer, sizeof(int));
	if (s->simulated)
		(void)weft_sendmsg_until(s->peer, &m, 0, 0);
	else
		(void)!sendmsg(s->peer, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Acts on a kind whose other side is no descriptor. Returns true if nothing else is to be done. */
static bool act_alone(struct side *s, const struct act *a)
{
	const struct itimerspec soon = {.it_value = {0, 1}};
	char name[60];

	if (s->kind == INOTIFY) {
		snprintf(name, sizeof name, "%s/%d", s->path, a->step);
		CHECK(!close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	} else if (s->kind == TIMER) {
		CHECK(!timerfd_settime(s->fd, 0, &soon, NULL));
		CHECK(poll(&(struct pollfd){s->fd, POLLIN, 0}, 1, LONG) == 1);
	} else if (s->kind == SIGNALS) {
		CHECK(!kill(getpid(), s->signal));
	}
	return s->peer < 0;
}

static void act(struct side *s, const struct act *a)
{
	char data[MOST], into[MOST];
	uint64_t count = (uint64_t)a->bytes + 1;
	const bool shuts_out = a->bytes % 4 || (way == SIMULATED && s->kind == TCP);
	const int how = shuts_out ? SHUT_WR : a->bytes % 8 ? SHUT_RD : SHUT_RDWR;

	memset(data, 'a' + a->step, sizeof data);
	if (s->kind == TERMINAL)
		data[a->bytes] = '\n';
	if (act_alone(s, a))
		return;
	if (a->what == 0 && may_close_peer(s->kind)) {
		close_peer(s);
	} else if (a->what == 1 && B(s->kind) & SOCKETS) {
		(void)(s->simulated ? weft_shutdown(s->peer, how) : shutdown(s->peer, how));
	} else if (a->what == 2 && s->kind == TCP && way != SIMULATED) {
		(void)send_by_peer(s, data, 1 + (size_t)a->bytes, MSG_OOB);
	} else if (a->what <= 3 && (s->kind == UNIX || s->kind == DATAGRAMS || s->kind == SEQPACKET)) {
		send_rights(s, data, 1 + (size_t)a->bytes);
	} else if (a->what == 4 && B(s->kind) & SOCKETS) {
		(void)!(s->simulated ? weft_recv_until(s->peer, into, sizeof into, 0, 0)
				     : recv(s->peer, into, sizeof into, MSG_DONTWAIT));
	} else if (s->kind == PIPE_OUT) {
		(void)!(s->simulated ? weft_read_until(s->peer, into, (size_t)count, 0)
			: poll(&(struct pollfd){s->peer, POLLIN, 0}, 1, 0) == 1 ? read(s->peer, into, (size_t)count)
										: 0);
	} else if (s->kind == EVENTS || s->kind == SEMAPHORE) {
		CHECK(write(s->peer, &count, sizeof count) == sizeof count);
	} else if (s->sent++ < QUEUE) {
		(void)!send_by_peer(s, data, (size_t)count, 0);
	}
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Returns the events that a call may wait for, or 0 if it never waits. */
static short waits_for(const struct call *c)
{
	if (B(c->what) & (B(READ) | B(READV) | RECEIVES | B(ACCEPT)))
		return POLLIN;
	return B(c->what) & (B(WRITE) | B(WRITEV) | SENDS) ? POLLOUT : 0;
}

/* The operands of a call. */
struct operands {
	char *data;
	size_t length;
	int64_t offset;
	struct iovec parts[2];
	struct msghdr message;
	struct sockaddr_storage address;
	socklen_t size;
	union {
		char space[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
};

static void prepare(struct operands *o, const struct call *c, struct answer *a)
{
	*o = (struct operands){.length = (size_t)c->bytes, .offset = c->odd & NEGATIVE ? -7 : 1};
	o->data = c->odd & NULL_DATA ? NULL : a->data;
	o->parts[0] = (struct iovec){o->data, o->length / 2};
	o->parts[1] = (struct iovec){o->data ? o->data + o->length / 2 : NULL, o->length - o->length / 2};
	o->message = (struct msghdr){.msg_iov = o->parts, .msg_iovlen = 2};
	if (c->what == RECVMSG)
		o->message.msg_control = &o->control, o->message.msg_controllen = sizeof o->control;
	o->size = sizeof o->address;
	if (c->what == SENDTO) {
		/* No socket is bound to this name. */
		((struct sockaddr_un *)&o->address)->sun_family = AF_UNIX;
		strcpy(((struct sockaddr_un *)&o->address)->sun_path, "/tmp/weft-differs-nobody");
		o->size = sizeof(struct sockaddr_un);
	}
}

/* Closes the received descriptors and returns their number; stores the message's flags, too. */
static int take_rights(struct msghdr *m, bool simulated)
{
	int count = 0, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(c), sizeof fd);
			CHECK(simulated ? !weft_close(fd) : fcntl(fd, F_GETFD) & FD_CLOEXEC && !close(fd));
			count++;
		}
	return count | (m->msg_flags & ~MSG_CMSG_CLOEXEC) << 4;
}

/* Calls the system without waiting: the descriptor does not block. */
static int64_t ask_system(int fd, const struct call *c, struct answer *a)
{
	struct operands o;
	struct pollfd p = {fd, (short)c->flags, 0};
	int64_t n = 0;

	prepare(&o, c, a);
	switch (c->what) {
	case READ:
		n = read(fd, o.data, o.length);
		break;
	case READV:
		n = readv(fd, o.parts, 2);
		break;
	case PREAD:
		n = pread(fd, o.data, o.length, o.offset);
		break;
	case RECV:
		n = recv(fd, o.data, o.length, c->flags);
		break;
	case RECVMSG:
		n = recvmsg(fd, &o.message, c->flags | MSG_CMSG_CLOEXEC);
		break;
	case RECVFROM:
		n = recvfrom(fd, o.data, o.length, c->flags, (struct sockaddr *)&o.address, &o.size);
		break;
	case WRITE:
		n = write(fd, o.data, o.length);
		break;
	case WRITEV:
		n = writev(fd, o.parts, 2);
		break;
	case PWRITE:
		n = pwrite(fd, o.data, o.length, o.offset);
		break;
	case SEND:
		n = send(fd, o.data, o.length, c->flags | MSG_NOSIGNAL);
		break;
	case SENDMSG:
		n = sendmsg(fd, &o.message, c->flags | MSG_NOSIGNAL);
		break;
	case SENDTO:
		n = sendto(fd, o.data, o.length, c->flags | MSG_NOSIGNAL, (struct sockaddr *)&o.address, o.size);
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
	case SHUTDOWN:
		n = shutdown(fd, c->bytes % 4);
		break;
	default:
		n = fsync(fd);
	}
	if (n >= 0 && c->what == RECVMSG)
		a->extra = take_rights(&o.message, false);
	if (n >= 0 && c->what == RECVFROM)
		a->extra = o.size ? o.address.ss_family : 0;
	return n < 0 ? -errno : n;
}

/* Makes a call that may end with a part of the data: the kernel's time-out ends it. */
static int64_t ask_for_all(int fd, const struct call *c, struct answer *a)
{
	struct timeval limit = {0, PATIENCE * 1000};
	int64_t n;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	n = ask_system(fd, c, a);
	limit.tv_usec = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return n == -EAGAIN ? -ETIMEDOUT : n;
}

static bool never_waits(const struct call *c)
{
	return c->flags & (MSG_DONTWAIT | MSG_ERRQUEUE) && B(c->what) & (RECEIVES | SENDS);
}

static bool wants_all(const struct call *c)
{
	/* When the system's time-out expires, a receive without data may end with 0. */
	return B(c->what) & RECEIVES && c->flags & MSG_WAITALL && c->bytes && !never_waits(c);
}

static int64_t by_system(int fd, const struct call *c, struct answer *a)
{
	struct pollfd p = {fd, waits_for(c), 0};
	int flags = fcntl(fd, F_GETFL);
	int64_t n;

	if (wants_all(c))
		return ask_for_all(fd, c, a);
	CHECK(!fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	n = ask_system(fd, c, a);
	if (n == -EAGAIN && !never_waits(c)) {
		(void)poll(&p, 1, PATIENCE);
		n = ask_system(fd, c, a);
	}
	CHECK(!fcntl(fd, F_SETFL, flags));
	if (n != -EAGAIN || never_waits(c))
		return n;
	/* A datagram socket that is shut down reports this only to a blocking call. */
	return p.revents & POLLIN && p.events == POLLIN && c->what != ACCEPT ? ask_for_all(fd, c, a) : -ETIMEDOUT;
}

static int64_t by_weft(int fd, const struct call *c, struct answer *a, uint64_t until)
{
	struct operands o;
	int64_t n;

	prepare(&o, c, a);
	switch (c->what) {
	case READ:
		return weft_read_until(fd, o.data, o.length, until);
	case READV:
		return weft_preadv_until(fd, o.parts, 2, -1, until);
	case PREAD:
		return weft_pread_until(fd, o.data, o.length, o.offset, until);
	case RECV:
		return weft_recv_until(fd, o.data, o.length, c->flags, until);
	case RECVMSG:
		n = weft_recvmsg_until(fd, &o.message, c->flags, until);
		a->extra = n >= 0 ? take_rights(&o.message, way == SIMULATED) : 0;
		return n;
	case RECVFROM:
		n = weft_recvfrom_until(fd, o.data, o.length, c->flags, (struct sockaddr *)&o.address, &o.size, until);
		a->extra = n >= 0 && o.size ? o.address.ss_family : 0;
		return n;
	case WRITE:
		return weft_write_until(fd, o.data, o.length, until);
	case WRITEV:
		return weft_pwritev_until(fd, o.parts, 2, -1, until);
	case PWRITE:
		return weft_pwrite_until(fd, o.data, o.length, o.offset, until);
	case SEND:
		return weft_send_until(fd, o.data, o.length, c->flags, until);
	case SENDMSG:
		return weft_sendmsg_until(fd, &o.message, c->flags, until);
	case SENDTO:
		return weft_sendto_until(fd, o.data, o.length, c->flags, (struct sockaddr *)&o.address, o.size, until);
	case POLL:
		return weft_poll_until(fd, c->flags, until);
	case ACCEPT:
		return weft_accept_until(fd, NULL, NULL, 0, until);
	case CONNECT:
		return weft_connect_until(fd, NULL, 0, until);
	case SHUTDOWN:
		return weft_shutdown(fd, c->bytes % 4);
	default:
		return weft_fsync(fd);
	}
}

struct posix_call {
	int fd;
	const struct call *call;
	struct answer *answer;
	unsigned milliseconds;
};

static int64_t ask_posix(const struct posix_call *p)
{
	const struct call *c = p->call;
	struct answer *a = p->answer;
	struct pollfd polled = {p->fd, (short)c->flags, 0};
	struct operands o;
	int64_t n;

	prepare(&o, c, a);
	switch (c->what) {
	case READ:
		return weft_posix_read(p->fd, o.data, o.length);
	case READV:
		return weft_posix_readv(p->fd, o.parts, 2);
	case RECV:
		return weft_posix_recv(p->fd, o.data, o.length, c->flags);
	case RECVMSG:
		n = weft_posix_recvmsg(p->fd, &o.message, c->flags | MSG_CMSG_CLOEXEC);
		a->extra = n >= 0 ? take_rights(&o.message, false) : 0;
		return n;
	case RECVFROM:
		n = weft_posix_recvfrom(p->fd, o.data, o.length, c->flags, (struct sockaddr *)&o.address, &o.size);
		a->extra = n >= 0 && o.size ? o.address.ss_family : 0;
		return n;
	case WRITE:
		return weft_posix_write(p->fd, o.data, o.length);
	case WRITEV:
		return weft_posix_writev(p->fd, o.parts, 2);
	case SEND:
		return weft_posix_send(p->fd, o.data, o.length, c->flags | MSG_NOSIGNAL);
	case SENDMSG:
		return weft_posix_sendmsg(p->fd, &o.message, c->flags | MSG_NOSIGNAL);
	case SENDTO:
		return weft_posix_sendto(p->fd, o.data, o.length, c->flags | MSG_NOSIGNAL,
					 (struct sockaddr *)&o.address, o.size);
	case POLL:
		n = weft_posix_poll(&polled, 1, (int)p->milliseconds);
		return n > 0 ? polled.revents : n < 0 ? n : weft_posix_poll(NULL, 0, -1);
	case ACCEPT:
		return weft_posix_accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
	case CONNECT:
		return weft_posix_connect(p->fd, NULL, 0);
	default:
		return weft_posix_fsync(p->fd);
	}
}

static void *posix_task(void *argument)
{
	struct posix_call *p = argument;
	int64_t n = ask_posix(p);

	p->answer->result = n < 0 ? -errno : n;
	return NULL;
}

/* The calls of weft/posix.h have no deadline, so their task is cancelled. */
static int64_t by_posix(int fd, const struct call *c, struct answer *a, unsigned milliseconds)
{
	struct posix_call p = {fd, c, a, milliseconds};
	weft_scope_t scope;

	weft_scope_open(&scope, weft_now() + milliseconds * MS);
	CHECK(!weft_scope_spawn(&scope, posix_task, &p));
	(void)weft_scope_wait(&scope);
	return a->result == -ECANCELED ? -ETIMEDOUT : a->result;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

#define ONE_OF(list) list[draw(&numbers, sizeof list / sizeof *list)]

static struct call draw_one(void)
{
	static const int receive_flags[] = {0,
					    0,
					    0,
					    MSG_PEEK,
					    MSG_DONTWAIT,
					    MSG_TRUNC,
					    MSG_TRUNC | MSG_PEEK,
					    MSG_OOB,
					    MSG_WAITALL,
					    MSG_WAITALL | MSG_PEEK,
					    MSG_WAITALL | MSG_DONTWAIT,
					    MSG_ERRQUEUE,
					    1 << 24};
	static const int send_flags[] = {0, 0, 0, MSG_DONTWAIT, MSG_EOR, MSG_DONTROUTE, MSG_OOB, 1 << 24};
	static const int polled[] = {POLLIN,  POLLOUT,	  POLLIN | POLLOUT, POLLIN | POLLRDHUP,
				     POLLPRI, POLLRDNORM, POLLWRNORM,	    0};
	struct call c = {.what = (int)draw(&numbers, 3) ? (int)draw(&numbers, 3) : (int)draw(&numbers, CALLS)};

	c.bytes = (int)draw(&numbers, draw(&numbers, 4) ? MOST : 12);
	if (B(c.what) & RECEIVES)
		c.flags = ONE_OF(receive_flags);
	else if (B(c.what) & SENDS)
		c.flags = ONE_OF(send_flags);
	else if (c.what == POLL)
		c.flags = ONE_OF(polled);
	c.odd = c.what == SHUTDOWN && c.bytes % 4 != SHUT_WR ? SHUTS_IN : 0;
	c.odd |= (draw(&numbers, 32) ? 0 : NULL_DATA) | (draw(&numbers, 8) ? 0 : NEGATIVE) | (c.bytes ? 0 : EMPTY);
	return c;
}

static bool has_call(int what)
{
	return way != CALLS_OF_POSIX || (what != PREAD && what != PWRITE && what != SHUTDOWN);
}

static struct call draw_call(int kind)
{
	struct call c;

	do
		c = draw_one();
	while (!has_call(c.what) || is_excepted(kind, &c));
	return c;
}

static const char *error_of(int64_t result)
{
	return result < 0 ? strerrorname_np((int)-result) : "";
}

static bool say(int kind, int step, const struct call *c, const struct answer *weft, const struct answer *system)
{
	static const char *const ways[] = {"", "posix, ", ""};

	dprintf(1,
		"not ok - seed %lu, step %d: %s of %d bytes, flags %x, odd %x, of %s by %s%s: %lld (%s) %x %d, not "
		"%lld (%s) %x "
		"%d\n",
		seed, step, names[c->what], c->bytes, (unsigned)c->flags, (unsigned)c->odd, kinds[kind].name, ways[way],
		weft_io_backend(), (long long)weft->result, error_of(weft->result), (unsigned)weft->extra, weft->raised,
		(long long)system->result, error_of(system->result), (unsigned)system->extra, system->raised);
	return false;
}

/* The call and kind that `hangs` reports. */
static struct call asked;
static int asked_kind;

static int raised_since(int before)
{
	return __atomic_load_n(&sigpipes, __ATOMIC_RELAXED) - before;
}

/* weft/io.h raises no SIGPIPE for a socket; a simulation raises none at all. */
static bool may_raise(int kind)
{
	return way == CALLS_OF_POSIX || (way == CALLS_OF_WEFT && !(B(kind) & SOCKETS));
}

static void ask_both(struct side *sides, const struct call *c, struct answer *weft, struct answer *system)
{
	int before = raised_since(0);
	unsigned patience;

	system->result = by_system(sides[1].fd, c, system);
	system->raised = may_raise(sides->kind) ? raised_since(before) : 0;
	patience = system->result == -ETIMEDOUT || (wants_all(c) && system->result >= 0) ? PATIENCE : LONG;
	before = raised_since(0);
	weft->result = way == CALLS_OF_POSIX ? by_posix(sides[0].fd, c, weft, patience)
					     : by_weft(sides[0].fd, c, weft, weft_now() + patience * MS);
	weft->raised = raised_since(before);
	/* The oracle does not wait, so a byte may still have been on its way. */
	if (system->result == -ETIMEDOUT && weft->result != -ETIMEDOUT)
		system->result = by_system(sides[1].fd, c, system);
}

static bool compare(struct side *sides, int kind, int step)
{
	struct call c = draw_call(kind);
	static struct answer weft, system;

	asked = c;
	asked_kind = kind;
	memset(&weft, 'z', sizeof weft);
	weft.extra = weft.raised = 0;
	system = weft;
	ask_both(sides, &c, &weft, &system);
	if (c.what == ACCEPT && weft.result >= 0 && system.result >= 0) {
		CHECK(!weft_close((int)weft.result) && !close((int)system.result));
		return true;
	}
	if (weft.result != system.result || weft.extra != system.extra || weft.raised != system.raised)
		return say(kind, step, &c, &weft, &system);
	/* Events of inotify and signals contain numbers that differ between the sides. */
	if (kind != INOTIFY && kind != SIGNALS && weft.result > 0 &&
	    memcmp(weft.data, system.data, sizeof weft.data) != 0)
		return say(kind, step, &c, &weft, &system);
	return true;
}

static bool one_round(void)
{
	int kind = (int)draw(&numbers, KINDS);
	struct side sides[2];
	bool good = true;

	if (way == SIMULATED && !kinds[kind].simulated)
		return true;
	make(&sides[0], kind, 0);
	make(&sides[1], kind, 1);
	for (int step = 0; step < STEPS && good; step++) {
		struct act a = {(int)draw(&numbers, 16), (int)draw(&numbers, 40), step};

		if (draw(&numbers, 2)) {
			act(&sides[0], &a);
			act(&sides[1], &a);
		} else {
			good = compare(sides, kind, step);
		}
	}
	unmake(&sides[0], true);
	unmake(&sides[1], false);
	return good;
}

/* ---- ends of calls that wait ------------------------------------------------------------------------------------- */

enum { WAITS = 60, SHUT_AFTER = 30, UNTIL = 400, FILLING = 1000 /* bytes */ };

struct wait {
	int kind, how;
	bool ends_peer, by_posix, by_system, ends_in_weft;
	struct call call;
	struct side side;
	int64_t results[2];
};

/* A time limit of the socket ends the call. */
static int64_t by_limited_posix(int fd, const struct call *c, struct answer *a)
{
	struct iovec parts[2] = {{a->data, (size_t)c->bytes / 2}, {a->data + c->bytes / 2, (size_t)(c->bytes + 1) / 2}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	int64_t n;

	switch (c->what) {
	case READ:
		n = weft_posix_read(fd, a->data, (size_t)c->bytes);
		break;
	case READV:
		n = weft_posix_readv(fd, parts, 2);
		break;
	case RECV:
		n = weft_posix_recv(fd, a->data, (size_t)c->bytes, 0);
		break;
	case RECVMSG:
		n = weft_posix_recvmsg(fd, &m, 0);
		break;
	case WRITE:
		n = weft_posix_write(fd, a->data, (size_t)c->bytes);
		break;
	case WRITEV:
		n = weft_posix_writev(fd, parts, 2);
		break;
	case SEND:
		n = weft_posix_send(fd, a->data, (size_t)c->bytes, MSG_NOSIGNAL);
		break;
	default:
		n = weft_posix_accept(fd, NULL, NULL);
	}
	return n < 0 ? -errno : n;
}

static int64_t wait_once(const struct wait *w, struct answer *a)
{
	struct pollfd p = {w->side.fd, (short)w->call.flags, 0};
	int64_t n;

	if (w->call.what == POLL && (w->by_posix || w->by_system))
		n = (w->by_system ? poll(&p, 1, UNTIL) : weft_posix_poll(&p, 1, UNTIL)) ? p.revents : -ETIMEDOUT;
	else if (w->by_posix)
		n = by_limited_posix(w->side.fd, &w->call, a);
	else if (w->by_system)
		n = ask_system(w->side.fd, &w->call, a);
	else
		n = by_weft(w->side.fd, &w->call, a, weft_now() + UNTIL * MS);
	/* A ring reports the first of several events. */
	if (w->call.what == POLL && n > 0 && n & (POLLERR | POLLHUP))
		n = POLLHUP;
	return n == -EAGAIN ? -ETIMEDOUT : n;
}

static void *wait_twice(void *wait)
{
	struct wait *w = wait;
	struct answer a;

	memset(a.data, 'w', sizeof a.data);
	w->results[0] = wait_once(w, &a);
	w->results[1] = wait_once(w, &a);
	return NULL;
}

static struct wait draw_wait(void)
{
	static const int kinds_that_end[] = {TCP, UNIX, DATAGRAMS, SEQPACKET, UDP, LISTENER};
	static const int whats[] = {READ, READV, RECV, RECVMSG, WRITE, WRITEV, SEND, POLL};
	struct wait w = {.kind = kinds_that_end[draw(&numbers, 6)], .how = (int)draw(&numbers, 3)};

	w.call = (struct call){.what = whats[draw(&numbers, 8)], .bytes = 100};
	w.ends_peer = draw(&numbers, 2) && w.kind != LISTENER;
	w.ends_in_weft = draw(&numbers, 2);
	w.by_posix = draw(&numbers, 2);
	if (w.call.what == POLL)
		w.call.flags = draw(&numbers, 2) ? POLLIN : POLLOUT;
	else if (w.kind == LISTENER)
		w.call.what = ACCEPT;
	/* TCP gets more room when its buffers grow, and UDP always has room. */
	if (waits_for(&w.call) == POLLOUT && (w.kind == UDP || (w.kind == TCP && (w.ends_peer || w.how == SHUT_RD))))
		w.call.what = READ;
	return w;
}

/* If the sizes of TCP's buffers are set, TCP does not enlarge them, and it needs a moment to move the data
 * that they hold. */
static void fill(int fd, int peer)
{
	const int size = 65536;
	struct pollfd p = {fd, POLLOUT, 0};
	char data[FILLING] = "";

	CHECK(!setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
	while (send(fd, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL) > 0 || poll(&p, 1, PATIENCE) > 0)
		;
}

static void begin_wait(struct wait *w, int which, bool loose)
{
	const struct timeval limit = {0, UNTIL * 1000};
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

	make(&w->side, w->kind, which);
	CHECK(!setsockopt(w->side.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	CHECK(!setsockopt(w->side.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
	if (w->kind == UDP && loose)
		CHECK(!connect(w->side.fd, &nowhere, sizeof nowhere));
	if (w->side.peer >= 0 && (waits_for(&w->call) == POLLOUT || (w->call.flags == POLLOUT && w->kind != UDP)))
		fill(w->side.fd, w->side.peer);
}

static void shut(const struct wait *w, bool by_weft)
{
	int fd = w->ends_peer ? w->side.peer : w->side.fd;

	if (by_weft)
		(void)weft_shutdown(fd, w->how);
	else
		(void)shutdown(fd, w->how);
}

static bool same_ends(const struct wait *ours, const struct wait *oracle)
{
	const struct wait *w = ours;

	if (ours->results[0] == oracle->results[0] && ours->results[1] == oracle->results[1])
		return true;
	dprintf(1, "not ok - seed %lu: %s (%x) of %s by %s, shutdown %d of %s%s: %lld, %lld, not %lld, %lld\n", seed,
		names[w->call.what], (unsigned)w->call.flags, kinds[w->kind].name,
		w->by_posix ? "weft/posix.h" : weft_io_backend(), w->how, w->ends_peer ? "its peer" : "it",
		w->ends_in_weft ? " by weft_shutdown" : "", (long long)ours->results[0], (long long)ours->results[1],
		(long long)oracle->results[0], (long long)oracle->results[1]);
	return false;
}

static bool calls_end(void)
{
	static struct wait waits[2][WAITS];
	static pthread_t threads[2][WAITS];
	bool good = true, loose;
	int i, side;

	WEFT_SCOPE(scope);
	for (i = 0; i < WAITS; i++) {
		waits[0][i] = waits[1][i] = draw_wait();
		waits[1][i].by_system = true;
		waits[1][i].by_posix = false;
		loose = draw(&numbers, 2);
		for (side = 0; side < 2; side++) {
			begin_wait(&waits[side][i], side, loose);
			if (!side && in_tasks)
				CHECK(!weft_scope_spawn(&scope, wait_twice, &waits[side][i]));
			else
				CHECK(!pthread_create(&threads[side][i], NULL, wait_twice, &waits[side][i]));
		}
	}
	(void)weft_sleep(SHUT_AFTER * MS);
	for (i = 0; i < WAITS; i++)
		for (side = 0; side < 2; side++)
			shut(&waits[side][i], !side && waits[side][i].ends_in_weft);
	(void)weft_scope_wait(&scope);
	for (i = 0; i < WAITS; i++) {
		for (side = 0; side < 2; side++) {
			CHECK((!side && in_tasks) || !pthread_join(threads[side][i], NULL));
			unmake(&waits[side][i].side, !side);
		}
		good &= same_ends(&waits[0][i], &waits[1][i]);
	}
	return good;
}

static void *all_rounds(void *rounds)
{
	unsigned long last = seed + *(unsigned long *)rounds, bad = 0;

	if (way == SIMULATED)
		CHECK(!weft_world_set(&(weft_world_t){.flags = WEFT_WORLD_PROMPT | WEFT_WORLD_WHOLE, .buffer = 65536}));
	for (; seed < last; seed++) {
		alarm(20);
		numbers = seed * 77 + 1;
		bad += !one_round();
	}
	if (!way)
		bad += !calls_end();
	CHECK(!bad);
	return NULL;
}

static void hangs(int number)
{
	(void)number;
	dprintf(1, "not ok - seed %lu: a call does not end: %s of %s\n", seed, names[asked.what],
		kinds[asked_kind].name);
	_exit(1);
}

static void count_sigpipe(int number)
{
	(void)number;
	__atomic_fetch_add(&sigpipes, 1, __ATOMIC_RELAXED);
}

static void set_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK(!sigaction(SIGPIPE, &(struct sigaction){.sa_handler = count_sigpipe, .sa_flags = SA_RESTART | SA_ONSTACK},
			 NULL));
	signal(SIGALRM, hangs);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 100;
	weft_rt_config_t config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1, .turn_cost = WEFT_NEVER};

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	if (argc > 4)
		way = !strcmp(argv[4], "posix") ? CALLS_OF_POSIX : SIMULATED;
	set_signals();
	in_tasks = config.workers;
	if (way == SIMULATED)
		CHECK(!weft_simulate(seed, &config, all_rounds, &rounds, NULL));
	else if (in_tasks)
		CHECK(!weft_rt_run(&config, all_rounds, &rounds, NULL));
	else
		(void)all_rounds(&rounds);
	printf("ok - %lu rounds\n", rounds);
	return 0;
}
