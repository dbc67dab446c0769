/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One operation by one system call: without blocking, for epoll; blocking, in a thread.
 */
#define _GNU_SOURCE
#include "io/io.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "internal/libc.h"

/* Milliseconds after which a thread checks whether its descriptor has been closed, if no event reports that. */
enum { SLICE = 5 };
enum { PARTS = 8 };

static int64_t result_of(int64_t result)
{
	return result < 0 ? -errno : result;
}

const struct weft__kind weft__kinds[WEFT_IO_KINDS] = {
    [0] = {"", 0, false},
#define KIND(kind, what, way, names) [WEFT_IO_##kind] = {what, way, names},
#include "io/kinds.def"
#undef KIND
};
#define KIND(...) +1
_Static_assert(WEFT_IO_KINDS == 1
#include "io/kinds.def"
	       ,
	       "an operation is missing in io/kinds.def");
#undef KIND

/* An error, or the peer's end, comes in both directions. */
uint8_t weft__polled_way(int events)
{
	uint8_t in = events & (POLLIN | POLLPRI | POLLRDHUP | POLLRDNORM | POLLRDBAND) ? WEFT__IN : 0;
	uint8_t out = events & (POLLOUT | POLLWRNORM | POLLWRBAND) ? WEFT__OUT : 0;

	return in | out && !WEFT_CANARY(polls_wake_for_anything) ? in | out : WEFT__IN | WEFT__OUT;
}

short weft__io_events(const weft_io_t *io)
{
	if (io->kind == WEFT_IO_POLL)
		return (short)io->flags;
	return io->way == WEFT__IN ? POLLIN : POLLOUT;
}

int weft__poll_now(int fd, short events)
{
	struct pollfd p = {fd, events, 0};
	int result, error = errno;

	do
		result = poll(&p, 1, 0);
	while (result < 0 && errno == EINTR);
	if (result < 0)
		return -errno;
	errno = error;
	return p.revents & POLLNVAL ? -EBADF : p.revents;
}

/* The connect has begun: has it completed? */
static int64_t connected(int fd)
{
	int error = 0, ready = weft__poll_now(fd, POLLOUT);
	socklen_t size = sizeof error;

	if (ready <= 0)
		return ready ? ready : -EAGAIN;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? -errno : -error;
}

static int64_t begin_to_connect(weft_io_t *io)
{
	int64_t result;

	if (io->step != WEFT__NEW)
		return connected(io->fd);
	result = result_of(connect(io->fd, io->data, (socklen_t)io->length));
	if (result != -EINPROGRESS && result != -EINTR)
		return result;
	io->step = WEFT__TRIED;
	return -EAGAIN;
}

static int64_t accept_one(weft_io_t *io, int flags)
{
	return result_of(accept4(io->fd, io->data, io->more, io->flags | flags | SOCK_CLOEXEC));
}

static int64_t poll_now(weft_io_t *io)
{
	int result = weft__poll_now(io->fd, (short)io->flags);

	return result ? result : -EAGAIN;
}

/* Descriptors and credentials that come with bytes end the read, even if more bytes are there. recvmsg reports them. */
static int64_t receive_unix(weft_io_t *io)
{
	struct iovec part = {io->data, io->length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int64_t result = result_of(recvmsg(io->fd, &message, io->flags | MSG_DONTWAIT));

	io->reason = (message.msg_flags & (MSG_CTRUNC | MSG_OOB)) != 0;
	return result;
}

/* ---- MSG_WAITALL ------------------------------------------------------------------------------------------------- */

bool weft__is_stream(int fd)
{
	return weft__socket_option(fd, SO_TYPE) == SOCK_STREAM;
}

bool weft__is_tcp(int fd)
{
	return weft__socket_option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

/* Must the receive continue after a part? io->offset counts the received bytes. Only for TCP does the kernel wait for
 * all bytes of a peek. */
static bool wants_all(const weft_io_t *io, int nature)
{
	if (io->flags & MSG_OOB || weft__io_does_not_wait(io))
		return false;
	if (io->flags & MSG_PEEK)
		return nature == WEFT__STREAM || (nature == WEFT__MESSAGES && weft__is_tcp(io->fd));
	return nature == WEFT__STREAM || nature == WEFT__UNIX || (nature == WEFT__MESSAGES && weft__is_stream(io->fd));
}

bool weft__peeks_again(int fd, int flags)
{
	return flags & MSG_PEEK && weft__socket_option(fd, SO_PEEK_OFF) < 0;
}

bool weft__peek_is_over(int fd)
{
	int events = weft__poll_now(fd, POLLRDHUP | POLLPRI);

	return events && (events != POLLPRI || !weft__is_at_mark(fd));
}

/* Copies the parts from io->offset on into `parts`, and returns their number. *left: their bytes. */
static size_t parts_left(const weft_io_t *io, const struct msghdr *m, struct iovec *parts, size_t *left)
{
	size_t i, count = 0, skip = (size_t)io->offset;

	*left = 0;
	for (i = 0; i < (size_t)m->msg_iovlen; i++) {
		if (skip && skip >= m->msg_iov[i].iov_len) {
			skip -= m->msg_iov[i].iov_len;
			continue;
		}
		parts[count] = m->msg_iov[i];
		parts[count].iov_base = (char *)parts[count].iov_base + skip;
		parts[count].iov_len -= skip;
		*left += parts[count++].iov_len;
		skip = 0;
	}
	return count;
}

bool weft__is_at_mark(int fd)
{
	int at = 0;

	return !ioctl(fd, SIOCATMARK, &at) && at;
}

bool weft__has_only_an_error(int fd)
{
	const int both = POLLERR | POLLHUP, events = weft__poll_now(fd, POLLIN);
	int there = 0, domain;

	if (events < 0 || (events & both) != both || ioctl(fd, FIONREAD, &there) || there)
		return false;
	domain = weft__socket_option(fd, SO_DOMAIN);
	return domain >= 0 && domain != AF_UNIX;
}

/* Receives the next part. *more: the receive continues. All bytes, the peer's end, descriptors, and an urgent byte that
 * is next end it. A peek starts from the beginning each time. */
static int64_t receive_part(weft_io_t *io, struct msghdr *m, struct iovec *parts, bool *more)
{
	const bool again = weft__peeks_again(io->fd, io->flags), over = !again || weft__peek_is_over(io->fd);
	struct msghdr rest = *m;
	size_t left;
	int64_t n;

	*more = false;
	if (io->offset > 0 && weft__has_only_an_error(io->fd))
		/* The error stays for the next receive; weft__io_settle replaces this result by the bytes that have
		 * come. */
		return -ECONNRESET;
	if (again)
		io->offset = 0;
	rest.msg_iov = parts;
	rest.msg_iovlen = parts_left(io, m, parts, &left);
	n = result_of(recvmsg(io->fd, &rest, io->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
	*more = n > 0 && (size_t)n < left && !rest.msg_controllen && !(rest.msg_flags & MSG_CTRUNC) &&
		!weft__is_at_mark(io->fd);
	io->offset += n > 0 ? n : 0;
	if (again && *more) {
		*more = false;
		n = over ? n : -EAGAIN;
	}
	if (n < 0 || *more)
		return n;
	m->msg_namelen = rest.msg_namelen;
	m->msg_controllen = rest.msg_controllen;
	m->msg_flags = rest.msg_flags;
	return io->offset;
}

static int64_t receive_all(weft_io_t *io)
{
	struct iovec one = {io->data, io->length}, few[PARTS], *parts = few;
	struct msghdr plain = {.msg_iov = &one, .msg_iovlen = 1}, *m = io->kind == WEFT_IO_RECV ? &plain : io->data;
	int64_t result;
	bool more;

	if (m->msg_iovlen > PARTS)
		parts = malloc(m->msg_iovlen * sizeof *parts);
	if (!parts)
		return -ENOMEM;
	do
		result = receive_part(io, m, parts, &more);
	while (more);
	if (parts != few)
		free(parts);
	return result;
}

/* The bytes that a read at the file's position has already read: see weft__io_read_cached. */
static size_t read_before(const weft_io_t *io)
{
	return io->kind == WEFT_IO_READ && io->flags & MSG_WAITALL ? (size_t)(uintptr_t)io->more : 0;
}

void weft__io_settle(weft_io_t *io)
{
	struct msghdr *m = io->data;
	size_t before = read_before(io);

	if (before) {
		io->result = (int64_t)before + (io->result > 0 ? io->result : 0);
		io->flags = 0;
	}
	if (io->kind != WEFT_IO_RECV && io->kind != WEFT_IO_RECVMSG)
		return;
	if (io->result < 0 && io->offset > 0) {
		io->result = io->offset;
		if (io->kind == WEFT_IO_RECVMSG) {
			m->msg_namelen = 0;
			m->msg_controllen = 0;
			m->msg_flags = 0;
		}
	}
	io->offset = 0;
}

/* ---- one system call --------------------------------------------------------------------------------------------- */

static int64_t read_or_write(weft_io_t *io, int nature)
{
	bool writes = io->kind == WEFT_IO_WRITE;
	size_t before = read_before(io);

	if (nature == WEFT__UNIX && !writes && io->offset == -1 && io->length)
		return receive_unix(io);
	if (weft__is_socket(nature) && io->offset == -1 && (writes || io->length))
		return weft__io_transfer(io);
	if (io->offset == -1)
		return result_of(writes ? write(io->fd, io->data, io->length)
					: read(io->fd, (char *)io->data + before, io->length - before));
	return result_of(writes ? pwrite(io->fd, io->data, io->length, io->offset)
				: pread(io->fd, io->data, io->length, io->offset));
}

static int64_t readv_or_writev(weft_io_t *io, int nature)
{
	bool writes = io->kind == WEFT_IO_WRITEV;
	int count = io->length > INT_MAX ? INT_MAX : (int)io->length;

	if (weft__is_socket(nature) && io->offset == -1 && !weft__io_vector_is_empty(io)) {
		struct msghdr message = {.msg_iov = io->data, .msg_iovlen = io->length};

		return result_of(writes ? sendmsg(io->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
					: recvmsg(io->fd, &message, MSG_DONTWAIT));
	}
	return result_of(writes ? pwritev2(io->fd, io->data, count, io->offset, 0)
				: preadv2(io->fd, io->data, count, io->offset, 0));
}

/* sendfile to a socket in blocking mode has no flag against blocking. A copy is sent with MSG_DONTWAIT instead. */
enum { COPIED = 65536 };

static int64_t send_copy(const weft_io_t *io, char *copy, size_t most)
{
	int64_t *offset = io->data, at = offset ? *offset : -1;
	size_t length = io->length < most ? io->length : most;
	ssize_t n = offset ? pread(io->other, copy, length, at) : read(io->other, copy, length), sent;

	if (n <= 0)
		return result_of(n);
	sent = send(io->fd, copy, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		sent = -errno;
	if (offset && sent > 0)
		*offset += sent;
	/* The unsent bytes must be read again by the next call. */
	if (!offset && sent < n && lseek(io->other, sent > 0 ? sent - n : -n, SEEK_CUR) < 0)
		return -errno;
	return sent;
}

__attribute__((noinline)) static int64_t send_by_copy(const weft_io_t *io)
{
	char *copy = malloc(COPIED);
	int64_t result;

	if (!copy)
		return -ENOMEM;
	result = send_copy(io, copy, COPIED);
	free(copy);
	return result;
}

/* These calls have no MSG_NOSIGNAL. A socket whose peer is gone must raise no SIGPIPE, which would end the process. A
 * call that moved a part before it failed returns that part, but has raised the signal. */
static __attribute__((noinline)) int64_t sendfile_or_splice(weft_io_t *io, size_t length)
{
	const int to = io->kind == WEFT_IO_SENDFILE ? io->fd : io->other;
	const struct timespec none = {0, 0};
	sigset_t sigpipe, before, pending;
	bool is_pending;
	int64_t result;
	int type;
	socklen_t size = sizeof type;

	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	is_pending = sigismember(&before, SIGPIPE) > 0 && !sigpending(&pending) && sigismember(&pending, SIGPIPE) > 0;
	result = io->kind == WEFT_IO_SENDFILE
		     ? sendfile(io->fd, io->other, io->data, length)
		     : splice(io->fd, NULL, io->other, NULL, length, (unsigned)io->flags | SPLICE_F_NONBLOCK);
	result = result_of(result);
	/* A pipe still raises SIGPIPE. */
	if ((result == -EPIPE || (result > 0 && (size_t)result < length)) && !is_pending &&
	    sigtimedwait(&sigpipe, NULL, &none) == SIGPIPE && getsockopt(to, SOL_SOCKET, SO_TYPE, &type, &size))
		(void)raise(SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int64_t attempt(weft_io_t *io, int nature)
{
	int flags = io->flags | MSG_DONTWAIT;

	switch (io->kind) {
	case WEFT_IO_READ:
	case WEFT_IO_WRITE:
		return read_or_write(io, nature);
	case WEFT_IO_READV:
	case WEFT_IO_WRITEV:
		return readv_or_writev(io, nature);
	case WEFT_IO_RECV:
		if (__builtin_expect(io->flags & MSG_WAITALL, 0) && wants_all(io, nature))
			return receive_all(io);
		if (nature == WEFT__UNIX)
			return receive_unix(io);
		return result_of(recv(io->fd, io->data, io->length, flags));
	case WEFT_IO_SEND:
		return result_of(send(io->fd, io->data, io->length, flags | MSG_NOSIGNAL));
	case WEFT_IO_RECVMSG:
		if (__builtin_expect(io->flags & MSG_WAITALL, 0) && wants_all(io, nature))
			return receive_all(io);
		return result_of(recvmsg(io->fd, io->data, flags | MSG_CMSG_CLOEXEC));
	case WEFT_IO_SENDMSG:
		return result_of(sendmsg(io->fd, io->data, flags | MSG_NOSIGNAL));
	case WEFT_IO_RECVMMSG:
		return result_of(recvmmsg(io->fd, io->data, (unsigned)io->length, flags | MSG_CMSG_CLOEXEC, NULL));
	case WEFT_IO_SENDMMSG:
		return result_of(sendmmsg(io->fd, io->data, (unsigned)io->length, flags | MSG_NOSIGNAL));
	case WEFT_IO_ACCEPT:
		return accept_one(io, 0);
	case WEFT_IO_CONNECT:
		return begin_to_connect(io);
	case WEFT_IO_POLL:
		return poll_now(io);
	case WEFT_IO_SENDFILE:
		if (weft__is_socket(nature) && !(weft__flags(io->fd) & O_NONBLOCK))
			return send_by_copy(io);
		return sendfile_or_splice(io, nature == WEFT__BLOCKING_PIPE && io->length > PIPE_BUF ? PIPE_BUF
												     : io->length);
	case WEFT_IO_SPLICE:
		return sendfile_or_splice(io, io->length);
	case WEFT_IO_OPEN:
		return weft__open_attempt(io);
	case WEFT_IO_STAT:
		return result_of(fstatat(io->fd, io->data, io->more, io->flags));
	case WEFT_IO_SYNC:
		return result_of(io->flags ? fdatasync(io->fd) : fsync(io->fd));
	case WEFT_IO_CALL:
		return ((weft_io_call_t *)(uintptr_t)io->data)(io->more);
	default:
		return weft__io_file(io);
	}
}

/* Opens the same terminal a second time, as a non-blocking file. -1: not a terminal. The master side, /dev/ptmx, is not
 * opened, because that would make a new pair. */
static int open_terminal(int fd, int access)
{
	const dev_t ptmx = makedev(5, 2);
	struct stat status;
	struct termios state;
	char path[32];

	if (fstat(fd, &status) || !S_ISCHR(status.st_mode) || tcgetattr(fd, &state) || status.st_rdev == ptmx)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return weft__own_fd(open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

int64_t weft__move_at_terminal(int fd, bool writes, const struct iovec *parts, int count)
{
	int other = open_terminal(fd, writes ? O_WRONLY : O_RDONLY);
	int64_t result;

	if (other < 0)
		return -EOPNOTSUPP;
	result = result_of(writes ? writev(other, parts, count) : readv(other, parts, count));
	close(other);
	return result;
}

/* Some files, pipes among them, support RWF_NOWAIT; for other files the result is -EOPNOTSUPP. With it no other reader
 * can take the bytes between a poll and this read. */
static int64_t attempt_without_waiting(const weft_io_t *io)
{
	bool writes = io->kind == WEFT_IO_WRITE || io->kind == WEFT_IO_WRITEV;
	struct iovec part = {io->data, io->length}, *parts = io->kind <= WEFT_IO_WRITE ? &part : io->data;
	int count = parts == &part ? 1 : io->length > IOV_MAX ? IOV_MAX : (int)io->length;
	int64_t result;

	result = result_of(writes ? pwritev2(io->fd, parts, count, -1, RWF_NOWAIT)
				  : preadv2(io->fd, parts, count, -1, RWF_NOWAIT));
	return result == -ENOSYS || result == -EOPNOTSUPP ? weft__move_at_terminal(io->fd, writes, parts, count)
							  : result;
}

/* A ready device may block if it gets more than PIPE_BUF bytes. */
static int64_t write_a_little(const weft_io_t *io, const struct iovec *parts, size_t count)
{
	size_t bytes = 0, some = 0;

	while (some < count && some < IOV_MAX && bytes + parts[some].iov_len <= PIPE_BUF)
		bytes += parts[some++].iov_len;
	if (some || !count)
		return result_of(writev(io->fd, parts, (int)some));
	return result_of(write(io->fd, parts[0].iov_base, PIPE_BUF));
}

/* A ready device may block at the second part of a vector. A FIFO does not. */
static int64_t read_first_part(const weft_io_t *io, const struct iovec *parts, size_t count)
{
	struct stat status;
	size_t i = 0;

	if (count > 1 && !fstat(io->fd, &status) && S_ISFIFO(status.st_mode))
		return result_of(readv(io->fd, parts, count < IOV_MAX ? (int)count : IOV_MAX));
	while (i + 1 < count && !parts[i].iov_len)
		i++;
	return result_of(readv(io->fd, &parts[i], count ? 1 : 0));
}

static int64_t move_a_little(const weft_io_t *io)
{
	const struct iovec part = {io->data, io->length}, *parts = io->kind <= WEFT_IO_WRITE ? &part : io->data;
	size_t count = parts == &part ? 1 : io->length;

	return io->kind == WEFT_IO_READ || io->kind == WEFT_IO_READV ? read_first_part(io, parts, count)
								     : write_a_little(io, parts, count);
}

/* An operation on a pipe or device in blocking mode. */
static int64_t attempt_carefully(weft_io_t *io)
{
	int64_t result = io->kind <= WEFT_IO_WRITEV ? attempt_without_waiting(io) : -EOPNOTSUPP;
	int ready;

	if (result != -EOPNOTSUPP)
		return result;
	ready = weft__poll_now(io->fd, weft__io_events(io));
	if (ready <= 0)
		return ready ? ready : -EAGAIN;
	return io->kind <= WEFT_IO_WRITEV ? move_a_little(io) : attempt(io, WEFT__BLOCKING_PIPE);
}

bool weft__io_vector_is_empty(const weft_io_t *io)
{
	const struct iovec *parts = io->data;

	for (size_t i = 0; i < io->length; i++)
		if (parts[i].iov_len)
			return false;
	return true;
}

bool weft__io_must_ask(const weft_io_t *io, int nature)
{
	if (io->kind <= WEFT_IO_WRITEV)
		return io->offset != -1 || (nature != WEFT__BLOCKING_PIPE && weft__io_moves_nothing(io));
	if (io->kind > WEFT_IO_CONNECT)
		return false;
	return !weft__is_socket(nature) || weft__io_does_not_wait(io) || io->kind >= WEFT_IO_ACCEPT ||
	       (io->kind <= WEFT_IO_SENDMMSG && io->flags & (MSG_OOB | MSG_PEEK));
}

bool weft__io_has_no_event(const weft_io_t *io)
{
	const struct msghdr *m = io->data;

	/* A connect in progress completes when the socket is ready. */
	if (io->kind == WEFT_IO_CONNECT)
		return io->step == WEFT__NEW;
	/* A socket is ready as long as a part of the bytes that the peek waits for is there. */
	if (io->kind == WEFT_IO_RECV || io->kind == WEFT_IO_RECVMSG)
		return io->flags & MSG_PEEK && io->offset > 0;
	return (io->kind == WEFT_IO_SENDMSG || io->kind == WEFT_IO_SENDMMSG) && m->msg_name &&
	       ((const struct sockaddr *)m->msg_name)->sa_family == AF_UNIX;
}

int64_t weft__io_attempt(weft_io_t *io, int nature)
{
	bool carefully = nature == WEFT__BLOCKING_PIPE && io->kind != WEFT_IO_POLL && !weft__io_must_ask(io, nature);
	int64_t result;

	do
		result = carefully ? attempt_carefully(io) : attempt(io, nature);
	while (result == -EINTR && io->kind != WEFT_IO_CALL);
	return result;
}

int64_t weft__io_attempt_unblocked(weft_io_t *io, int number, int nature)
{
	int flags = weft__unblock(number);
	int64_t result = weft__io_attempt(io, nature);

	weft__block_again(number, flags);
	return result;
}

/* Returns the result of a receive that ends because the socket is shut: 0 bytes, or one empty message. */
static int64_t end_of_messages(const weft_io_t *io)
{
	struct msghdr *message = io->data;

	if (io->kind == WEFT_IO_RECVMMSG) {
		((struct mmsghdr *)io->data)->msg_len = 0;
		message = &((struct mmsghdr *)io->data)->msg_hdr;
	}
	if (io->kind >= WEFT_IO_RECVMSG) {
		message->msg_namelen = 0;
		message->msg_controllen = 0;
		message->msg_flags = 0;
	}
	return io->kind == WEFT_IO_RECVMMSG;
}

static bool is_shut(int fd)
{
	int ready = weft__poll_now(fd, POLLRDHUP);

	return ready > 0 && ready & POLLRDHUP;
}

int64_t weft__io_attempt_shut(weft_io_t *io, int nature)
{
	bool receives = (nature == WEFT__LOCAL || nature == WEFT__MESSAGES) && io->way == WEFT__IN &&
			io->kind != WEFT_IO_ACCEPT && io->kind <= WEFT_IO_RECVMMSG;
	int64_t result;

	if (!receives || weft__io_does_not_wait(io) || !is_shut(io->fd))
		return -EAGAIN;
	result = weft__io_attempt(io, nature);
	return result == -EAGAIN ? end_of_messages(io) : result;
}

bool weft__io_output_is_full(const weft_io_t *io)
{
	return io->kind == WEFT_IO_SPLICE && weft__poll_now(io->fd, POLLIN) != 0;
}

/* The most bytes that a read may return. */
static size_t wanted(const weft_io_t *io)
{
	const size_t most = 0x7ffff000; /* by one system call */
	const struct iovec *parts = io->data;
	size_t bytes = io->kind == WEFT_IO_READ ? io->length : 0;

	for (size_t i = 0; io->kind == WEFT_IO_READV && i < io->length && bytes < most; i++)
		bytes += parts[i].iov_len < most ? parts[i].iov_len : most;
	return bytes < most ? bytes : most;
}

/* A read of `bytes` bytes ended at this position. Is that the end of the file? */
static bool is_at_end(const weft_io_t *io, int64_t bytes)
{
	int64_t place = io->offset < 0 ? lseek(io->fd, 0, SEEK_CUR) : io->offset + bytes;
	struct stat status;

	return !fstat(io->fd, &status) && S_ISREG(status.st_mode) && place >= status.st_size;
}

int64_t weft__io_read_cached(weft_io_t *io)
{
	const struct weft__fd *fd = io->place;
	struct iovec one = {io->data, io->length}, *parts = io->kind == WEFT_IO_READ ? &one : io->data;
	size_t all = io->kind == WEFT_IO_READ || (io->kind == WEFT_IO_READV && io->offset >= 0) ? wanted(io) : 0;
	int64_t result;

	/* A cached read of 0 bytes does not report that the file is a directory. */
	if (!all || __atomic_load_n(&fd->direct, __ATOMIC_RELAXED) || (parts != &one && io->length > IOV_MAX))
		return -EAGAIN;
	result = result_of(preadv2(io->fd, parts, parts == &one ? 1 : (int)io->length, io->offset, RWF_NOWAIT));
	if (result <= 0 || (size_t)result == all || is_at_end(io, result))
		return result;
	if (io->offset < 0) {
		/* The file's position has moved. */
		io->more = (void *)(uintptr_t)result;
		io->flags = MSG_WAITALL;
	}
	return -EAGAIN;
}

bool weft__io_exhausts(const weft_io_t *io, int nature)
{
	if (io->result <= 0 || (size_t)io->result >= io->length)
		return false;
	if (io->kind == WEFT_IO_READ || (io->kind == WEFT_IO_RECV && !io->flags))
		return nature == WEFT__STREAM || nature == WEFT__PIPE || (nature == WEFT__UNIX && !io->reason);
	return (io->kind == WEFT_IO_WRITE || io->kind == WEFT_IO_SEND) &&
	       (nature == WEFT__STREAM || nature == WEFT__UNIX || nature == WEFT__PIPE);
}

/* ---- in a thread ------------------------------------------------------------------------------------------------- */

/* Milliseconds for poll, rounded up, because a wait of less than one would spin. 0: the deadline has passed. */
static int milliseconds_until(uint64_t deadline)
{
	uint64_t now = deadline && deadline != WEFT_NEVER ? weft__clock() : 0;

	if (deadline == WEFT_NEVER)
		return -1;
	if (deadline <= now)
		return 0;
	return (deadline - now) / 1000000 < INT_MAX - 1 ? (int)((deadline - now) / 1000000) + 1 : INT_MAX;
}

/* Waits until the descriptor is ready, or the operation is to be tried again: see WEFT__FULL_AGAIN. 0, -ETIMEDOUT,
 * -ECANCELED, -errno. The second descriptor, if there is one, reports that a descriptor of some thread has been closed:
 * if it is a different thread's, this thread looks again a little later. */
static int wait_for(struct weft__loop *loop, const weft_io_t *io)
{
	const int ends = loop == &weft__outside ? weft__outside_ends() : -1;
	struct pollfd fds[2] = {{io->fd, weft__io_events(io), 0}, {ends, POLLIN, 0}};
	const uint64_t again = fds[0].events == POLLOUT ? weft__clock() + WEFT__FULL_AGAIN : WEFT_NEVER;
	bool slices = ends < 0;
	int ready, timeout;

	if (weft__io_output_is_full(io))
		fds[0] = (struct pollfd){io->other, POLLOUT, 0};
	do {
		timeout = milliseconds_until(io->deadline < again ? io->deadline : again);
		if (!timeout)
			return io->deadline < again ? -ETIMEDOUT : 0;
		if (slices && (timeout < 0 || timeout > SLICE))
			timeout = SLICE;
		ready = poll(fds, slices ? 1 : 2, timeout);
		if (!weft__means_the_same(loop, io))
			return -ECANCELED;
		if (ready < 0 && errno != EINTR)
			return -errno;
		slices = ends < 0 || (!slices && ready > 0 && fds[1].revents);
	} while (ready <= 0 || !fds[0].revents);
	return fds[0].revents & POLLNVAL ? -EBADF : 0;
}

static int thread_nature(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if (S_ISSOCK(status.st_mode))
		return WEFT__MESSAGES;
	return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode) ? WEFT__FILE
											     : WEFT__BLOCKING_PIPE;
}

/* Is it a listener? If it is not, accept fails at once. */
static bool listens(int fd)
{
	int value = 0;
	socklen_t size = sizeof value;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) && value;
}

/* Operations without a non-blocking form are done only when the descriptor is ready. */
static int64_t attempt_in_thread(weft_io_t *io, int nature)
{
	int ready;

	if ((io->kind == WEFT_IO_ACCEPT && listens(io->fd)) || io->kind == WEFT_IO_SENDFILE ||
	    io->kind == WEFT_IO_SPLICE) {
		ready = weft__poll_now(io->fd, weft__io_events(io));
		if (ready <= 0)
			return ready ? ready : -EAGAIN;
	}
	if (io->kind == WEFT_IO_CONNECT && io->step == WEFT__NEW)
		return weft__io_attempt_unblocked(io, io->fd, nature);
	return weft__io_attempt(io, nature);
}

/* Pauses between attempts of an operation without an event. 0, -ETIMEDOUT, -ECANCELED. */
static int pause_for(struct weft__loop *loop, weft_io_t *io)
{
	uint64_t until = weft__clock() + weft__io_next_pause(&io->entry);
	struct timespec time;

	if (io->deadline <= weft__clock())
		return -ETIMEDOUT;
	time = weft__timespec(until < io->deadline ? until : io->deadline);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
	return weft__means_the_same(loop, io) ? 0 : -ECANCELED;
}

/* Pauses an open that would have waited. 0: it is to be tried again. -ETIMEDOUT, -ECANCELED. */
static int pause_opening(struct weft__loop *loop, weft_io_t *io)
{
	struct timespec at;

	if (!io->deadline || io->deadline <= weft__clock())
		return -ETIMEDOUT;
	at = weft__timespec(weft__open_pause(io));
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	return weft__means_the_same(loop, io) ? 0 : -ECANCELED;
}

static int64_t open_in_thread(struct weft__loop *loop, weft_io_t *io)
{
	int64_t result;

	weft__open_begin(io);
	while ((result = weft__io_attempt(io, WEFT__FILE)) == -EAGAIN && weft__open_may_wait(io)) {
		result = pause_opening(loop, io);
		if (result)
			break;
	}
	weft__open_abandon(io);
	return result;
}

int64_t weft__io_in_thread(struct weft__loop *loop, weft_io_t *io)
{
	bool was_ready = false;
	int nature;
	int64_t result;

	if (io->kind == WEFT_IO_OPEN)
		return open_in_thread(loop, io);
	io->way = weft__io_way(io);
	nature = io->way ? thread_nature(io->fd) : WEFT__FILE;
	if (nature < 0)
		return nature;
	while ((result = attempt_in_thread(io, nature)) == -EAGAIN && io->way && !weft__io_does_not_wait(io)) {
		result = weft__io_attempt_shut(io, nature);
		if (result != -EAGAIN)
			break;
		/* A peek may have passed all present data (SO_PEEK_OFF): then poll does not report the next data. */
		if (weft__io_has_no_event(io) || (was_ready && weft__io_looks_elsewhere(io)))
			result = pause_for(loop, io);
		else
			result = wait_for(loop, io);
		if (result)
			break;
		was_ready = true;
	}
	return result;
}

int weft__io_here(weft_io_t *io)
{
	if (io->kind == WEFT_IO_POLL && io->length && io->deadline)
		return WEFT_IO_BLOCKS;
	weft__io_block(io);
	return WEFT_IO_DONE;
}
