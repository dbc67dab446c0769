/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/posix.h: bytes and connections.
 *
 * A socket is tried with MSG_DONTWAIT, a terminal through a second descriptor. Any other file is tried with RWF_NOWAIT;
 * if it does not support that (pipes of older kernels), a helper thread does the call when poll says that it is ready.
 */
#define _GNU_SOURCE
#include "io/posix.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal/libc.h"

/* ---- waiting for a socket ---------------------------------------------------------------------------------------- */

/* A call that would have blocked. It uses its descriptor from its first wait until end_waiting. */
struct blocked {
	int fd;
	short events;
	bool asked;	    /* the descriptor is known to block, and `deadline` is set */
	bool polls_in_vain; /* no event reports that it can be done: see weft__io_has_no_event */
	unsigned pauses;
	uint64_t deadline;
	bool uses;
	struct weft__use use;
};

/* SO_RCVTIMEO, SO_SNDTIMEO. */
static uint64_t limit_of(int fd, short events)
{
	struct timeval limit = {0, 0};
	socklen_t size = sizeof limit;
	int error = errno;

	if (getsockopt(fd, SOL_SOCKET, events == POLLOUT ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size))
		errno = error;
	if (!limit.tv_sec && !limit.tv_usec)
		return WEFT_NEVER;
	return weft__posix_after(limit.tv_sec, (int64_t)limit.tv_usec * 1000);
}

/* 0, -ETIMEDOUT, -ECANCELED. */
static int pause_for(struct blocked *b)
{
	uint64_t now = weft_now(), until = now + weft__io_next_pause(&b->pauses);

	if (b->deadline <= now)
		return -ETIMEDOUT;
	return weft__posix_sleep(until < b->deadline ? until : b->deadline);
}

/* 0: try again. Else the result of the call: -1, with errno. */
static int wait_until_ready(struct blocked *b)
{
	const uint64_t again = weft__posix_after(0, WEFT__FULL_AGAIN);
	uint64_t until;
	int result;

	if (!b->asked) {
		if (!weft__posix_blocks(b->fd) && !WEFT_CANARY(posix_always_waits))
			return weft__posix_fail(EAGAIN);
		b->deadline = limit_of(b->fd, b->events);
		b->asked = true;
	}
	result = b->uses ? 0 : weft__posix_use_begin(&b->use, b->fd);
	b->uses = true;
	until = b->deadline;
	if (b->events == POLLOUT && again < until)
		until = again;
	if (!result)
		result = b->polls_in_vain ? pause_for(b) : weft__posix_wait_used(&b->use, b->events, until);
	if (result >= 0 || (result == -ETIMEDOUT && until != b->deadline))
		return 0;
	return weft__posix_fail(result == -ETIMEDOUT ? EAGAIN : -result);
}

static void end_waiting(struct blocked *b)
{
	int error = errno;

	if (b->uses)
		weft__use_end(&b->use);
	errno = error;
}

/* An attempt after a wait must act on the same file. False, with errno: it has been closed. */
static bool begin_attempt(const struct blocked *b)
{
	if (!b->uses || weft__use_lock(&b->use))
		return true;
	(void)weft__posix_fail(EBADF);
	return false;
}

static void end_attempt(const struct blocked *b)
{
	if (b->uses)
		weft__use_unlock(&b->use);
}

static ssize_t attempt_message(const struct blocked *b, struct msghdr *message, int flags)
{
	ssize_t result;

	if (!begin_attempt(b))
		return -1;
	result = b->events == POLLOUT ? weft__libc.sendmsg(b->fd, message, flags | MSG_DONTWAIT)
				      : weft__libc.recvmsg(b->fd, message, flags | MSG_DONTWAIT);
	end_attempt(b);
	return result;
}

static bool would_block(ssize_t result)
{
	return result < 0 && errno == EAGAIN;
}

static size_t bytes_of(const struct iovec *parts, size_t count)
{
	size_t i, bytes = 0;

	for (i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

/* ---- calls that move their data in parts ------------------------------------------------------------------------- */

enum { PARTS = 8 };

/* The part of a message that remains to be moved: a copy of its vector, which `advance` changes. */
struct rest {
	struct msghdr message;
	struct iovec few[PARTS], *parts;
};

/* False: no memory. */
static bool begin_rest(struct rest *r, const struct msghdr *message)
{
	r->message = *message;
	r->parts = message->msg_iovlen <= PARTS ? r->few : malloc(message->msg_iovlen * sizeof *r->parts);
	if (!r->parts)
		return false;
	if (message->msg_iovlen)
		memcpy(r->parts, message->msg_iov, message->msg_iovlen * sizeof *r->parts);
	r->message.msg_iov = r->parts;
	return true;
}

static void end_rest(const struct rest *r)
{
	int error = errno;

	if (r->parts != r->few)
		free(r->parts);
	errno = error;
}

static void advance(struct rest *r, size_t bytes)
{
	struct msghdr *m = &r->message;

	while (bytes) {
		if (bytes < m->msg_iov->iov_len) {
			m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + bytes;
			m->msg_iov->iov_len -= bytes;
			return;
		}
		bytes -= m->msg_iov->iov_len;
		m->msg_iov++;
		m->msg_iovlen--;
	}
}

/* A datagram for a Unix socket that has no room for it? The kernel has read the address, so it is valid. */
static bool has_no_event(const struct msghdr *message)
{
	const struct sockaddr *to = message->msg_name;

	return to && message->msg_namelen >= sizeof to->sa_family && to->sa_family == AF_UNIX;
}

/* Reports a part that was received to the caller. Returns true if descriptors came with it, which ends the receive. */
static bool tells(struct msghdr *part, const struct msghdr *message, struct msghdr *told)
{
	told->msg_controllen = part->msg_controllen;
	told->msg_flags = part->msg_flags;
	part->msg_controllen = message->msg_controllen;
	return told->msg_controllen || told->msg_flags & MSG_CTRUNC;
}

/* Sends all the rest, or receives it. `told`, of a receive: the caller's message, of which `message` is a copy from
 * before the call; NULL: a send. `first`: the result of the first attempt. */
static ssize_t go_on(int fd, const struct msghdr *message, int flags, struct msghdr *told, ssize_t first)
{
	const bool sends = !told;
	struct blocked b = {.fd = fd,
			    .events = sends ? POLLOUT : POLLIN,
			    /* A peek continues after a part only with SO_PEEK_OFF. */
			    .polls_in_vain = sends ? has_no_event(message) : flags & MSG_PEEK};
	size_t all = bytes_of(message->msg_iov, message->msg_iovlen), done = first > 0 ? (size_t)first : 0;
	ssize_t more = first;
	struct rest r;

	if (!begin_rest(&r, message))
		return done ? first : weft__posix_fail(ENOMEM);
	advance(&r, done);
	if (done && sends)
		r.message.msg_control = NULL, r.message.msg_controllen = 0;
	do {
		if ((more < 0 && wait_until_ready(&b)) || (done && !sends && weft__has_only_an_error(fd)))
			break;
		more = attempt_message(&b, &r.message, flags);
		if (more > 0) {
			advance(&r, (size_t)more);
			done += (size_t)more;
			if (sends)
				r.message.msg_control = NULL, r.message.msg_controllen = 0;
			else if (tells(&r.message, message, told) || weft__is_at_mark(fd))
				break;
		}
	} while (more > 0 ? done < all : would_block(more));
	end_waiting(&b);
	end_rest(&r);
	return done || more >= 0 ? (ssize_t)done : -1;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Has the first attempt done all? A stream may have accepted a part. */
static bool is_sent(ssize_t result, size_t all)
{
	return (result >= 0 && (size_t)result == all) || (result < 0 && errno != EAGAIN);
}

static bool done_by_libc(int flags)
{
	return flags & MSG_DONTWAIT || !weft__posix_in_task();
}

ssize_t weft_posix_sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.sendmsg(fd, message, flags);
	result = weft__libc.sendmsg(fd, message, flags | MSG_DONTWAIT);
	if (is_sent(result, result < 0 ? 0 : bytes_of(message->msg_iov, message->msg_iovlen)))
		return result;
	if (!weft__posix_may_wait())
		return weft__libc.sendmsg(fd, message, flags);
	return go_on(fd, message, flags, NULL, result);
}

ssize_t weft_posix_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size)
{
	struct iovec part = {(void *)(uintptr_t)data, length};
	struct msghdr message = {.msg_name = (void *)(uintptr_t)to,
				 .msg_namelen = size,
				 .msg_iov = &part,
				 .msg_iovlen = 1};
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.sendto(fd, data, length, flags, to, size);
	result = weft__libc.sendto(fd, data, length, flags | MSG_DONTWAIT, to, size);
	if (is_sent(result, length))
		return result;
	if (!weft__posix_may_wait())
		return weft__libc.sendto(fd, data, length, flags, to, size);
	return go_on(fd, &message, flags, NULL, result);
}

ssize_t weft_posix_send(int fd, const void *data, size_t length, int flags)
{
	if (!weft__posix_in_task())
		return weft__libc.send(fd, data, length, flags);
	return weft_posix_sendto(fd, data, length, flags, NULL, 0);
}

int weft_posix_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags)
{
	unsigned done;
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.sendmmsg(fd, messages, count, flags);
	for (done = 0; done < count; done++) {
		result = weft_posix_sendmsg(fd, &messages[done].msg_hdr, flags);
		if (result < 0)
			return done ? (int)done : -1;
		messages[done].msg_len = (unsigned)result;
	}
	return (int)done;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Is it MSG_WAITALL on a stream, of which a part has come? */
static bool wants_more(int fd, const struct msghdr *told, int flags, ssize_t result, size_t all)
{
	return flags & MSG_WAITALL && !(flags & MSG_OOB) && result > 0 && (size_t)result < all &&
	       !told->msg_controllen && !(told->msg_flags & MSG_CTRUNC) &&
	       (flags & MSG_PEEK ? weft__is_tcp(fd) : weft__is_stream(fd)) && !weft__is_at_mark(fd);
}

/* Is the first attempt's result final? An error queue is never waited for. */
static bool is_received(ssize_t result, int flags)
{
	return flags & MSG_ERRQUEUE || !(would_block(result) || flags & MSG_WAITALL);
}

/* A datagram socket that is shut down for reading: a blocking receive returns 0, a non-blocking receive EAGAIN. */
static bool is_shut(int fd)
{
	struct pollfd p = {fd, POLLRDHUP, 0};

	return weft__posix_poll_now(&p, 1) == 1 && p.revents & POLLRDHUP && !weft__is_stream(fd);
}

/* Receives the first message, or the first part of a stream. */
static ssize_t receive_one(int fd, struct msghdr *message, int flags)
{
	struct blocked b = {.fd = fd, .events = POLLIN};
	ssize_t result;

	do {
		result = -1;
		if (wait_until_ready(&b))
			break;
		result = attempt_message(&b, message, flags);
		if (would_block(result) && is_shut(fd)) {
			message->msg_namelen = 0;
			message->msg_controllen = 0;
			message->msg_flags = 0;
			result = 0;
		}
		b.polls_in_vain = flags & MSG_PEEK; /* it has passed all present data (SO_PEEK_OFF) */
	} while (would_block(result));
	end_waiting(&b);
	return result;
}

/* A peek that starts from the beginning each time, and waits for all bytes. `came`: the result of the first attempt. */
static ssize_t peek_on(int fd, const struct msghdr *before, int flags, struct msghdr *message, ssize_t came)
{
	const size_t all = bytes_of(before->msg_iov, before->msg_iovlen);
	struct blocked b = {.fd = fd, .events = POLLIN, .polls_in_vain = true};
	ssize_t n;
	bool over;

	do {
		over = weft__peek_is_over(fd);
		if (weft__has_only_an_error(fd))
			break;
		*message = *before;
		n = attempt_message(&b, message, flags);
		came = n < 0 ? came : n;
	} while ((n < 0 ? would_block(n) : !over && (size_t)n < all) && !wait_until_ready(&b));
	end_waiting(&b);
	return came;
}

/* Continues after a first attempt. `before`: the message before that attempt. */
static ssize_t receive(int fd, struct msghdr *message, const struct msghdr *before, int flags, ssize_t result)
{
	size_t all = bytes_of(message->msg_iov, message->msg_iovlen);

	if (would_block(result))
		result = receive_one(fd, message, flags);
	if (!wants_more(fd, message, flags, result, all))
		return result;
	return weft__peeks_again(fd, flags) ? peek_on(fd, before, flags, message, result)
					    : go_on(fd, before, flags, message, result);
}

ssize_t weft_posix_recvmsg(int fd, struct msghdr *message, int flags)
{
	struct msghdr before;
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.recvmsg(fd, message, flags);
	before = flags & MSG_WAITALL ? *message : (struct msghdr){0};
	result = weft__libc.recvmsg(fd, message, flags | MSG_DONTWAIT);
	if (is_received(result, flags))
		return result;
	if (!weft__posix_may_wait())
		return would_block(result) ? weft__libc.recvmsg(fd, message, flags) : result;
	return receive(fd, message, &before, flags, result);
}

ssize_t weft_posix_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from, socklen_t *size)
{
	struct iovec part = {data, length};
	struct msghdr message = {.msg_name = from,
				 .msg_namelen = from && size ? *size : 0,
				 .msg_iov = &part,
				 .msg_iovlen = 1};
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.recvfrom(fd, data, length, flags, from, size);
	if (flags & MSG_WAITALL) {
		result = weft_posix_recvmsg(fd, &message, flags);
	} else {
		result = weft__libc.recvfrom(fd, data, length, flags | MSG_DONTWAIT, from, size);
		if (is_received(result, flags))
			return result;
		if (!weft__posix_may_wait())
			return weft__libc.recvfrom(fd, data, length, flags, from, size);
		result = receive_one(fd, &message, flags);
	}
	if (result >= 0 && from && size)
		*size = message.msg_namelen;
	return result;
}

ssize_t weft_posix_recv(int fd, void *data, size_t length, int flags)
{
	if (!weft__posix_in_task())
		return weft__libc.recv(fd, data, length, flags);
	return weft_posix_recvfrom(fd, data, length, flags, NULL, NULL);
}

int weft_posix_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags,
			struct timespec *timeout)
{
	uint64_t until = WEFT_NEVER;
	unsigned done;
	ssize_t result;

	if (done_by_libc(flags))
		return weft__libc.recvmmsg(fd, messages, count, flags, timeout);
	if (timeout)
		until = weft__posix_after(timeout->tv_sec, timeout->tv_nsec);
	for (done = 0; done < count && !(done && until != WEFT_NEVER && weft__clock() >= until); done++) {
		result =
		    weft_posix_recvmsg(fd, &messages[done].msg_hdr,
				       (flags & ~MSG_WAITFORONE) | (done && flags & MSG_WAITFORONE ? MSG_DONTWAIT : 0));
		if (result < 0)
			return done ? (int)done : -1;
		messages[done].msg_len = (unsigned)result;
	}
	return (int)done;
}

/* ---- files that are not sockets ---------------------------------------------------------------------------------- */

/* An operation on a file, pipe or device. */
struct plain {
	int fd;
	bool writes;
	const struct iovec *parts;
	int count;
};

static ssize_t by_libc(const struct plain *p)
{
	if (p->count == 1)
		return p->writes ? weft__libc.write(p->fd, p->parts->iov_base, p->parts->iov_len)
				 : weft__libc.read(p->fd, p->parts->iov_base, p->parts->iov_len);
	return p->writes ? weft__libc.writev(p->fd, p->parts, p->count) : weft__libc.readv(p->fd, p->parts, p->count);
}

/* A helper thread may run late: it checks that the number still refers to the same file. */
struct helped {
	const struct plain *plain;
	struct weft__use use;
};

static int64_t by_helper(void *helped)
{
	const struct helped *h = helped;
	ssize_t result = weft__use_is_good(&h->use) ? by_libc(h->plain) : weft__posix_fail(EBADF);

	return result < 0 ? -errno : result;
}

static ssize_t do_by_helper(const struct plain *p, weft_io_call_t *fn)
{
	struct helped h = {.plain = p};
	int64_t result = weft__posix_use_begin(&h.use, p->fd);

	if (result)
		return weft__posix_fail((int)-result);
	result = weft__posix_call(fn, &h);
	weft__use_end(&h.use);
	return (ssize_t)weft__posix_result(result);
}

/* By a helper thread. Writes at most PIPE_BUF bytes, for which a ready pipe has room. */
static int64_t do_when_ready(void *helped)
{
	const struct helped *h = helped;
	const struct plain *p = h->plain;
	struct pollfd ready = {p->fd, p->writes ? POLLOUT : POLLIN, 0};
	struct weft__posix_turn turn;
	ssize_t result = -1;
	int i = 0;

	while (p->writes && i + 1 < p->count && !p->parts[i].iov_len)
		i++;
	weft__posix_turn_begin(&turn, p->fd);
	if (!weft__use_is_good(&h->use))
		errno = EBADF;
	else if (weft__posix_poll_now(&ready, 1) != 1)
		errno = EAGAIN;
	else if (p->writes)
		result = weft__libc.write(p->fd, p->parts[i].iov_base,
					  p->parts[i].iov_len < PIPE_BUF ? p->parts[i].iov_len : PIPE_BUF);
	else
		result = weft__libc.readv(p->fd, p->parts, p->count);
	result = result < 0 ? -errno : result;
	weft__posix_turn_end(&turn);
	return result;
}

static ssize_t when_ready(const struct plain *p)
{
	struct pollfd ready = {p->fd, p->writes ? POLLOUT : POLLIN, 0};

	return weft__posix_poll_now(&ready, 1) == 1 ? do_by_helper(p, do_when_ready) : weft__posix_fail(EAGAIN);
}

/* -1 and EAGAIN: it would block. EOPNOTSUPP: the file has no non-blocking calls. */
static ssize_t attempt(const struct plain *p)
{
	ssize_t result = p->writes ? pwritev2(p->fd, p->parts, p->count, -1, RWF_NOWAIT)
				   : preadv2(p->fd, p->parts, p->count, -1, RWF_NOWAIT);

	if (result >= 0 || (errno != ENOSYS && errno != EOPNOTSUPP))
		return result;
	return (ssize_t)weft__posix_result(weft__move_at_terminal(p->fd, p->writes, p->parts, p->count));
}

/* A pipe, a terminal, an eventfd …. A blocking write writes all bytes. */
static ssize_t wait_for_it(const struct plain *p)
{
	struct blocked b = {.fd = p->fd, .events = p->writes ? POLLOUT : POLLIN, .asked = true, .deadline = WEFT_NEVER};
	struct msghdr message = {.msg_iov = (void *)(uintptr_t)p->parts, .msg_iovlen = (size_t)p->count};
	size_t all = bytes_of(p->parts, (size_t)p->count), done = 0;
	struct plain left = *p;
	ssize_t more = 0;
	struct rest r;

	if (!begin_rest(&r, &message))
		return weft__posix_fail(ENOMEM);
	do {
		left.parts = r.message.msg_iov;
		left.count = (int)r.message.msg_iovlen;
		more = -1;
		if (begin_attempt(&b)) {
			more = attempt(&left);
			end_attempt(&b);
			if (more < 0 && errno == EOPNOTSUPP)
				more = when_ready(&left);
		}
		if (more > 0) {
			advance(&r, (size_t)more);
			done += (size_t)more;
		}
	} while ((more > 0 && p->writes && done < all) || (would_block(more) && !wait_until_ready(&b)));
	end_waiting(&b);
	end_rest(&r);
	return done || more >= 0 ? (ssize_t)done : -1;
}

static ssize_t do_plain(const struct plain *p)
{
	struct stat status;

	if (fstat(p->fd, &status) || !weft__posix_may_wait())
		return by_libc(p);
	if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode) && status.st_mode & S_IFMT) {
		/* Writes go to the page cache; a read may need a disk, or a network. */
		ssize_t result = p->writes ? by_libc(p) : preadv2(p->fd, p->parts, p->count, -1, RWF_NOWAIT);

		if (result >= 0 || p->writes || (errno != EAGAIN && errno != EOPNOTSUPP && errno != EINVAL))
			return result;
		return do_by_helper(p, by_helper);
	}
	return weft__posix_blocks(p->fd) ? wait_for_it(p) : by_libc(p);
}

ssize_t weft_posix_read(int fd, void *data, size_t length)
{
	struct iovec part = {data, length};
	struct plain p = {fd, false, &part, 1};
	ssize_t result;

	if (!length || !weft__posix_in_task())
		return weft__libc.read(fd, data, length);
	result = weft__libc.recv(fd, data, length, MSG_DONTWAIT);
	if (result >= 0 || (errno != EAGAIN && errno != ENOTSOCK))
		return result;
	if (errno == ENOTSOCK)
		return do_plain(&p);
	return weft_posix_recv(fd, data, length, 0);
}

ssize_t weft_posix_write(int fd, const void *data, size_t length)
{
	struct iovec part = {(void *)(uintptr_t)data, length};
	struct plain p = {fd, true, &part, 1};
	int error = errno;
	ssize_t result;

	if (!length || !weft__posix_in_task())
		return weft__libc.write(fd, data, length);
	result = weft_posix_send(fd, data, length, 0);
	if (result >= 0 || errno != ENOTSOCK)
		return result;
	errno = error;
	return do_plain(&p);
}

static bool is_socket(int fd)
{
	int type, error = errno;
	socklen_t size = sizeof type;
	bool is = !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);

	errno = error;
	return is;
}

ssize_t weft_posix_readv(int fd, const struct iovec *parts, int count)
{
	struct msghdr message = {.msg_iov = (void *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
	struct plain p = {fd, false, parts, count};

	if (count <= 0 || count > IOV_MAX || !weft__posix_in_task() || !bytes_of(parts, (size_t)count))
		return weft__libc.readv(fd, parts, count);
	return is_socket(fd) ? weft_posix_recvmsg(fd, &message, 0) : do_plain(&p);
}

ssize_t weft_posix_writev(int fd, const struct iovec *parts, int count)
{
	struct msghdr message = {.msg_iov = (void *)(uintptr_t)parts, .msg_iovlen = (size_t)count};
	struct plain p = {fd, true, parts, count};

	if (count <= 0 || count > IOV_MAX || !weft__posix_in_task() || !bytes_of(parts, (size_t)count))
		return weft__libc.writev(fd, parts, count);
	return is_socket(fd) ? weft_posix_sendmsg(fd, &message, 0) : do_plain(&p);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

struct connecting {
	int fd;
	const struct sockaddr *to;
	socklen_t size;
};

/* The connect has begun: waits for its end. */
static int finish_connecting(struct connecting *c)
{
	struct blocked b = {.fd = c->fd, .events = POLLOUT, .asked = true};
	int error = EBADF;
	socklen_t size = sizeof error;

	b.deadline = limit_of(c->fd, POLLOUT);
	if (wait_until_ready(&b)) {
		error = errno == EAGAIN ? EINPROGRESS : errno;
	} else if (begin_attempt(&b)) {
		error = getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
		end_attempt(&b);
	}
	end_waiting(&b);
	return error ? weft__posix_fail(error) : 0;
}

/* connect has no flag against blocking. */
static int begin_connecting(const struct connecting *c)
{
	int flags = weft__unblock(c->fd), result, error;

	result = weft__libc.connect(c->fd, c->to, c->size);
	error = errno;
	weft__block_again(c->fd, flags);
	errno = error;
	return result;
}

/* The Unix socket's listener has no room: tries again after pauses. */
static int connect_again(const struct connecting *c)
{
	struct blocked b = {.fd = c->fd, .events = POLLOUT, .polls_in_vain = true};
	int result;

	do {
		result = -1;
		if (wait_until_ready(&b) || !begin_attempt(&b))
			break;
		result = begin_connecting(c);
		end_attempt(&b);
	} while (would_block(result));
	end_waiting(&b);
	return result;
}

int weft_posix_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct connecting c = {fd, to, size};
	int result;

	if (!weft__posix_in_task() || !weft__posix_blocks(fd) || !weft__posix_may_wait())
		return weft__libc.connect(fd, to, size);
	result = begin_connecting(&c);
	if (would_block(result))
		return connect_again(&c);
	return result && errno == EINPROGRESS ? finish_connecting(&c) : result;
}

static bool listens(int fd)
{
	int value = 0;
	socklen_t size = sizeof value;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) && value;
}

struct accepting {
	int fd, flags;
	struct sockaddr *from;
	socklen_t *size;
	const struct weft__use *use;
};

static int64_t accept_by_helper(void *argument)
{
	const struct accepting *a = argument;
	struct pollfd ready = {a->fd, POLLIN, 0};
	struct weft__posix_turn turn;
	int result = -1;

	weft__posix_turn_begin(&turn, a->fd);
	if (!weft__use_is_good(a->use))
		errno = EBADF;
	else if (!weft__posix_poll_now(&ready, 1))
		errno = EAGAIN;
	else
		result = weft__libc.accept4(a->fd, a->from, a->size, a->flags);
	result = result < 0 ? -errno : result;
	weft__posix_turn_end(&turn);
	return result;
}

/* Like a thread's accept, the ring's accept keeps waiting if another acceptor takes the connection. */
static int64_t accept_in_ring(const struct accepting *a, uint64_t deadline)
{
	weft_io_t io = {.kind = WEFT_IO_ACCEPT, .fd = a->fd, .other = WEFT__AS_ASKED, .flags = a->flags};

	io.data = a->from;
	io.more = a->size;
	io.deadline = deadline;
	return weft__posix_run(&io);
}

static int64_t accept_when_ready(const struct accepting *a, uint64_t deadline)
{
	int result = weft__posix_wait_used((struct weft__use *)(uintptr_t)a->use, POLLIN, deadline);

	return result < 0 ? result : weft__posix_call(accept_by_helper, (void *)(uintptr_t)a);
}

int weft_posix_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	struct weft__use use;
	const struct accepting a = {fd, flags, from, size, &use};
	uint64_t deadline;
	int64_t result;

	/* accept does not wait on a socket that is not a listener. */
	if (!weft__posix_in_task() || !weft__posix_blocks(fd) || !listens(fd) || !weft__posix_may_wait())
		return weft__libc.accept4(fd, from, size, flags);
	result = weft__posix_use_begin(&use, fd);
	if (result)
		return weft__posix_fail((int)-result);
	deadline = limit_of(fd, POLLIN);
	do
		result = weft__posix_has_ring() ? accept_in_ring(&a, deadline) : accept_when_ready(&a, deadline);
	while (result == -EAGAIN);
	if (result == -ECANCELED && !weft__use_is_good(&use))
		result = -EBADF;
	weft__use_end(&use);
	return (int)weft__posix_result(result == -ETIMEDOUT ? -EAGAIN : result);
}

int weft_posix_accept(int fd, struct sockaddr *from, socklen_t *size)
{
	if (!weft__posix_in_task())
		return weft__libc.accept(fd, from, size);
	return weft_posix_accept4(fd, from, size, 0);
}
