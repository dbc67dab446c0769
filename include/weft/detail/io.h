/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/io.h: the private part of weft/io.h: how operations wait, and the bodies of inline
 * functions. weft/io.h includes it at its end.
 */
#ifndef WEFT_DETAIL_IO_H
#define WEFT_DETAIL_IO_H

#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <weft/io.h>

WEFT_EXTERN_C_BEGIN

/* Continues the operation after the wait. Returns a reply as `io` does. */
WEFT_API int weft__io_step(weft_io_t *io);
/* Drops an operation that has not begun. */
WEFT_API void weft__io_drop(weft_io_t *io);
/* Does the whole operation, blocking the calling thread. */
WEFT_API void *weft__io_block(void *io);

/* Usually no handler is between a task and its runtime: then no search is needed. */
WEFT__INLINE bool weft__io_is_near(const weft_coro_t *self)
{
	return self && self->handled == weft_handles(weft_op_sched).word && !weft__masked(self->view) &&
	       !self->parent->parent;
}

/* Begins an operation by a search for its handler. */
__attribute__((noinline, cold, unused)) static int weft__io_begin_far(weft_io_t *io)
{
	return weft_op_io(io);
}

__attribute__((noinline, cold, unused)) static void weft__io_wait_far(weft_waiter_t *w)
{
	weft_op_wait(w);
}

/* The argument of `wait`. */
typedef weft_args_t(weft_op_wait) weft__asked_t;

WEFT__INLINE int weft__io_begin(weft_io_t *io)
{
	if (weft__likely(weft__io_is_near(weft__self())))
		return ((int (*)(weft_io_t *))weft__default_of(&weft_effect_weft_op_io))(io);
	return weft__io_begin_far(io);
}

WEFT__INLINE void weft__io_wait(weft__asked_t *asked)
{
	weft_coro_t *self = weft__self();

	if (weft__likely(weft__io_is_near(self)))
		(void)weft__yield_near(self, self, &weft_effect_weft_op_wait, weft__address_of(asked));
	else
		weft__io_wait_far(asked->waiter);
}

/* Lets other tasks run, or does the operation on a helper thread. */
__attribute__((noinline, cold, unused)) static void weft__io_pass(weft_io_t *io, int next)
{
	if (next == WEFT_IO_YIELDS) {
		/* The task was cancelled before the operation began: drop it, so that its next step returns the
		 * cancellation. */
		if (weft_op_yield() == -ECANCELED && !io->step)
			weft__io_drop(io);
		return;
	}
	/* libc must not run out of stack in this call, while it holds a lock of its own. */
	weft_blocking
	{
		(void)weft_ffi_on_system_stack(weft__io_block, io);
	}
}

/* Like weft_io_do, but a cancellation of the task is only a result, not an exception. */
WEFT__INLINE int64_t weft__io_loop(weft_io_t *io, weft__asked_t *asked)
{
	int next;

	asked->waiter = &io->waiter;
	io->step = 0;
	for (next = weft__io_begin(io); next != WEFT_IO_DONE; next = weft__io_step(io)) {
		if (weft__likely(next == WEFT_IO_WAITS))
			weft__io_wait(asked);
		else
			weft__io_pass(io, next);
	}
	return io->result;
}

__attribute__((noinline, unused)) static int64_t weft__io_run(weft_io_t *io)
{
	weft__asked_t asked;

	return weft__io_loop(io, &asked);
}

__attribute__((noinline, cold, unused)) static int weft__io_cancelled(void)
{
	return weft__waited(-ECANCELED);
}

WEFT__INLINE int64_t weft_io_do(weft_io_t *io)
{
	int64_t result = weft__io_run(io);

	return weft__unlikely(result == -ECANCELED) ? weft__waited(-ECANCELED) : result;
}

/*
 * For kinds with the usual operands. On a roomy stack (docs/explanation/stacks.md) a task that waits here needs no
 * second chunk, because this frame is smaller than 256 bytes, and no function below it waits. Therefore rarely used
 * code is not inlined, and the two records are one: each alone would be aligned to 16 bytes.
 */
__attribute__((noinline, unused)) static int64_t weft__io(weft_io_kind_t kind, int fd, void *data, size_t length,
							  int64_t offset, int flags, uint64_t deadline)
{
	struct {
		weft__asked_t asked;
		weft_io_t io;
	} call;
	int64_t result;

	call.io.kind = (uint8_t)kind;
	call.io.fd = fd;
	call.io.flags = flags;
	call.io.data = data;
	call.io.length = length;
	call.io.offset = offset;
	call.io.deadline = deadline;
	result = weft__io_loop(&call.io, &call.asked);
	return weft__unlikely(result == -ECANCELED) ? weft__io_cancelled() : result;
}

/* For callers that must release a resource before a cancellation unwinds the task: never performs weft_cancelled. */
__attribute__((noinline, unused)) static int weft__io_quietly(weft_io_kind_t kind, int fd, const void *data,
							      size_t length, int flags, uint64_t deadline)
{
	weft_io_t io;

	io.kind = (uint8_t)kind;
	io.fd = fd;
	io.flags = flags;
	io.data = (void *)(uintptr_t)data;
	io.length = length;
	io.deadline = deadline;
	return (int)weft__io_run(&io);
}

/* For kinds with the operands `other` and `more`. */
__attribute__((noinline, unused)) static int64_t weft__io_more(weft_io_kind_t kind, int fd, int other, const void *data,
							       void *more, int flags, uint64_t deadline)
{
	weft_io_t io;

	io.kind = (uint8_t)kind;
	io.fd = fd;
	io.other = other;
	io.flags = flags;
	io.data = (void *)(uintptr_t)data;
	io.more = more;
	io.length = 0;
	io.deadline = deadline;
	return weft_io_do(&io);
}

WEFT__INLINE ssize_t weft__io_sendfile(int to, int from, int64_t *offset, size_t length, uint64_t deadline)
{
	weft_io_t io;

	io.kind = WEFT_IO_SENDFILE;
	io.fd = to;
	io.other = from;
	io.data = offset;
	io.length = length;
	io.deadline = deadline;
	return (ssize_t)weft_io_do(&io);
}

WEFT__INLINE ssize_t weft__io_splice(int from, int to, size_t length, unsigned flags, uint64_t deadline)
{
	weft_io_t io;

	io.kind = WEFT_IO_SPLICE;
	io.fd = from;
	io.other = to;
	io.length = length;
	io.flags = (int)flags;
	io.deadline = deadline;
	return (ssize_t)weft_io_do(&io);
}

WEFT__INLINE ssize_t weft__recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from,
				    socklen_t *size, uint64_t deadline)
{
	struct iovec part = {data, length};
	struct msghdr message = {from, from && size ? *size : 0, &part, 1, NULL, 0, 0};
	int64_t result = weft__io(WEFT_IO_RECVMSG, fd, &message, 0, 0, flags, deadline);

	if (result >= 0 && from && size)
		*size = message.msg_namelen;
	return (ssize_t)result;
}

WEFT__INLINE ssize_t weft__sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
				  socklen_t size, uint64_t deadline)
{
	struct iovec part = {(void *)(uintptr_t)data, length};
	struct msghdr message = {(void *)(uintptr_t)to, size, &part, 1, NULL, 0, 0};

	return (ssize_t)weft__io(WEFT_IO_SENDMSG, fd, &message, 0, 0, flags, deadline);
}

WEFT__INLINE ssize_t weft_read_until(int fd, void *data, size_t length, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_READ, fd, data, length, -1, 0, deadline);
}

WEFT__INLINE ssize_t weft_read(int fd, void *data, size_t length)
{
	return weft_read_until(fd, data, length, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_write_until(int fd, const void *data, size_t length, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_WRITE, fd, (void *)(uintptr_t)data, length, -1, 0, deadline);
}

WEFT__INLINE ssize_t weft_write(int fd, const void *data, size_t length)
{
	return weft_write_until(fd, data, length, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_pread_until(int fd, void *data, size_t length, int64_t offset, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_READ, fd, data, length, offset, 0, deadline);
}

WEFT__INLINE ssize_t weft_pread(int fd, void *data, size_t length, int64_t offset)
{
	return weft_pread_until(fd, data, length, offset, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_pwrite_until(int fd, const void *data, size_t length, int64_t offset, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_WRITE, fd, (void *)(uintptr_t)data, length, offset, 0, deadline);
}

WEFT__INLINE ssize_t weft_pwrite(int fd, const void *data, size_t length, int64_t offset)
{
	return weft_pwrite_until(fd, data, length, offset, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_preadv_until(int fd, const struct iovec *parts, int count, int64_t offset, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_READV, fd, (void *)(uintptr_t)parts, (size_t)count, offset, 0, deadline);
}

WEFT__INLINE ssize_t weft_preadv(int fd, const struct iovec *parts, int count, int64_t offset)
{
	return weft_preadv_until(fd, parts, count, offset, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_pwritev_until(int fd, const struct iovec *parts, int count, int64_t offset, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_WRITEV, fd, (void *)(uintptr_t)parts, (size_t)count, offset, 0, deadline);
}

WEFT__INLINE ssize_t weft_pwritev(int fd, const struct iovec *parts, int count, int64_t offset)
{
	return weft_pwritev_until(fd, parts, count, offset, WEFT_NEVER);
}

__attribute__((unused)) static ssize_t weft_read_all_until(int fd, void *data, size_t length, uint64_t deadline)
{
	size_t done = 0;
	ssize_t more = 1;

	while (done < length && more > 0) {
		more = weft_read_until(fd, (char *)data + done, length - done, deadline);
		done += more > 0 ? (size_t)more : 0;
	}
	return done || more > 0 ? (ssize_t)done : more;
}

WEFT__INLINE ssize_t weft_read_all(int fd, void *data, size_t length)
{
	return weft_read_all_until(fd, data, length, WEFT_NEVER);
}

__attribute__((unused)) static ssize_t weft_write_all_until(int fd, const void *data, size_t length, uint64_t deadline)
{
	size_t done = 0;
	ssize_t more = 1;

	while (done < length && more > 0) {
		more = weft_write_until(fd, (const char *)data + done, length - done, deadline);
		done += more > 0 ? (size_t)more : 0;
	}
	return done || more > 0 ? (ssize_t)done : more;
}

WEFT__INLINE ssize_t weft_write_all(int fd, const void *data, size_t length)
{
	return weft_write_all_until(fd, data, length, WEFT_NEVER);
}

/* Removes the first `bytes` from the buffers. */
WEFT__INLINE void weft__advance(struct iovec **parts, int *count, size_t bytes)
{
	size_t part;

	while (*count && (bytes || !(*parts)->iov_len)) {
		part = bytes < (*parts)->iov_len ? bytes : (*parts)->iov_len;
		(*parts)->iov_base = (char *)(*parts)->iov_base + part;
		(*parts)->iov_len -= part;
		bytes -= part;
		if ((*parts)->iov_len)
			break;
		++*parts;
		--*count;
	}
}

__attribute__((unused)) static ssize_t weft_writev_all_until(int fd, struct iovec *parts, int count, uint64_t deadline)
{
	size_t done = 0;
	ssize_t more = 0;

	for (weft__advance(&parts, &count, 0); count && more >= 0; weft__advance(&parts, &count, (size_t)more)) {
		more = weft_pwritev_until(fd, parts, count > 1024 /* IOV_MAX */ ? 1024 : count, -1, deadline);
		if (more <= 0)
			break;
		done += (size_t)more;
	}
	return done || more >= 0 ? (ssize_t)done : more;
}

WEFT__INLINE ssize_t weft_writev_all(int fd, struct iovec *parts, int count)
{
	return weft_writev_all_until(fd, parts, count, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_sendfile_until(int to, int from, int64_t *offset, size_t length, uint64_t deadline)
{
	return (ssize_t)weft__io_sendfile(to, from, offset, length, deadline);
}

WEFT__INLINE ssize_t weft_sendfile(int to, int from, int64_t *offset, size_t length)
{
	return weft_sendfile_until(to, from, offset, length, WEFT_NEVER);
}

__attribute__((unused)) static ssize_t weft_sendfile_all_until(int to, int from, int64_t *offset, size_t length,
							       uint64_t deadline)
{
	size_t done = 0;
	ssize_t more = 1;

	while (done < length && more > 0) {
		more = weft_sendfile_until(to, from, offset, length - done, deadline);
		done += more > 0 ? (size_t)more : 0;
	}
	return done || more >= 0 ? (ssize_t)done : more;
}

WEFT__INLINE ssize_t weft_sendfile_all(int to, int from, int64_t *offset, size_t length)
{
	return weft_sendfile_all_until(to, from, offset, length, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_splice_until(int from, int to, size_t length, unsigned flags, uint64_t deadline)
{
	return (ssize_t)weft__io_splice(from, to, length, flags, deadline);
}

WEFT__INLINE ssize_t weft_splice(int from, int to, size_t length, unsigned flags)
{
	return weft_splice_until(from, to, length, flags, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_recv_until(int fd, void *data, size_t length, int flags, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_RECV, fd, data, length, 0, flags, deadline);
}

WEFT__INLINE ssize_t weft_recv(int fd, void *data, size_t length, int flags)
{
	return weft_recv_until(fd, data, length, flags, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_send_until(int fd, const void *data, size_t length, int flags, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_SEND, fd, (void *)(uintptr_t)data, length, 0, flags, deadline);
}

WEFT__INLINE ssize_t weft_send(int fd, const void *data, size_t length, int flags)
{
	return weft_send_until(fd, data, length, flags, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_recvmsg_until(int fd, struct msghdr *message, int flags, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_RECVMSG, fd, message, 0, 0, flags, deadline);
}

WEFT__INLINE ssize_t weft_recvmsg(int fd, struct msghdr *message, int flags)
{
	return weft_recvmsg_until(fd, message, flags, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_sendmsg_until(int fd, const struct msghdr *message, int flags, uint64_t deadline)
{
	return (ssize_t)weft__io(WEFT_IO_SENDMSG, fd, (void *)(uintptr_t)message, 0, 0, flags, deadline);
}

WEFT__INLINE ssize_t weft_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return weft_sendmsg_until(fd, message, flags, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_recvfrom_until(int fd, void *data, size_t length, int flags, struct sockaddr *from,
					 socklen_t *size, uint64_t deadline)
{
	return (ssize_t)weft__recvfrom(fd, data, length, flags, from, size, deadline);
}

WEFT__INLINE ssize_t weft_recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *from, socklen_t *size)
{
	return weft_recvfrom_until(fd, data, length, flags, from, size, WEFT_NEVER);
}

WEFT__INLINE ssize_t weft_sendto_until(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
				       socklen_t size, uint64_t deadline)
{
	return (ssize_t)weft__sendto(fd, data, length, flags, to, size, deadline);
}

WEFT__INLINE ssize_t weft_sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
				 socklen_t size)
{
	return weft_sendto_until(fd, data, length, flags, to, size, WEFT_NEVER);
}

WEFT__INLINE int weft_recvmmsg_until(int fd, struct mmsghdr *messages, unsigned count, int flags, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_RECVMMSG, fd, messages, count, 0, flags, deadline);
}

WEFT__INLINE int weft_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return weft_recvmmsg_until(fd, messages, count, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_sendmmsg_until(int fd, struct mmsghdr *messages, unsigned count, int flags, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_SENDMMSG, fd, messages, count, 0, flags, deadline);
}

WEFT__INLINE int weft_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return weft_sendmmsg_until(fd, messages, count, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_accept_until(int fd, struct sockaddr *address, socklen_t *size, int flags, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_ACCEPT, fd, -1, address, size, flags, deadline);
}

WEFT__INLINE int weft_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return weft_accept_until(fd, address, size, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_connect_until(int fd, const struct sockaddr *address, socklen_t size, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_CONNECT, fd, (void *)(uintptr_t)address, size, 0, 0, deadline);
}

WEFT__INLINE int weft_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	return weft_connect_until(fd, address, size, WEFT_NEVER);
}

WEFT__INLINE int weft_poll_until(int fd, int events, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_POLL, fd, NULL, 0, 0, events, deadline);
}

WEFT__INLINE int weft_poll(int fd, int events)
{
	return weft_poll_until(fd, events, WEFT_NEVER);
}

WEFT__INLINE void weft__readiness_begin(weft_readiness_t *r, uint64_t deadline)
{
	r->io.kind = WEFT_IO_POLL;
	r->io.fd = r->fd;
	r->io.flags = r->events;
	r->io.data = NULL;
	r->io.length = 1;
	r->io.offset = 0;
	r->io.deadline = deadline;
}

/* These three functions are in src/io/ready.c. The poll of r->io has begun: from here on its end claims r->selects. */
WEFT_API void weft__readiness_arm(weft_readiness_t *r);
/* From here on the end of the poll does not claim r->selects, and r->io can continue. */
WEFT_API void weft__readiness_disarm(weft_readiness_t *r);
/* A thread waits here, also for polls that the runtime has not begun. False: the caller is a task, and must wait
 * itself. */
WEFT_API bool weft__readiness_block(weft_readiness_t *list, weft_waiter_t *w);

WEFT__INLINE weft_readiness_t *weft__readiness_next(const weft_readiness_t *r)
{
	return (weft_readiness_t *)r->base.next;
}

__attribute__((unused)) static void weft__readiness_look(struct weft__awaited *list)
{
	weft_readiness_t *r = (weft_readiness_t *)list;
	int64_t result;

	for (; r; r = weft__readiness_next(r)) {
		weft__readiness_begin(r, 0);
		result = weft__io_run(&r->io);
		r->begun = WEFT_IO_DONE;
		r->base.status = result == -ETIMEDOUT ? 0 : (int)result;
	}
}

/* Begins the polls, until a descriptor is ready or all polls have begun. `blocks`: the thread itself must wait for some
 * of them. Returns the time at which to begin again. */
WEFT__INLINE uint64_t weft__readiness_enter(weft_readiness_t *r, weft_waiter_t *w, bool *blocks)
{
	uint64_t until = w->timer.at;
	bool ready = false;

	for (; r && !ready; r = weft__readiness_next(r)) {
		weft__readiness_begin(r, WEFT_NEVER);
		r->io.step = 0;
		r->selects = w;
		r->begun = weft__io_begin(&r->io);
		if (r->begun == WEFT_IO_YIELDS && !r->io.step) /* do not yield now: this call waits anyway */
			r->begun = weft__io_begin(&r->io);
		if (r->begun == WEFT_IO_WAITS) {
			/* The back end may have to try again at a later time. */
			if (r->io.waiter.timer.at < until)
				until = r->io.waiter.timer.at;
			weft__readiness_arm(r);
		} else if (r->begun == WEFT_IO_BLOCKS) {
			*blocks = true;
		} else {
			r->begun = WEFT_IO_DONE;
			r->base.status = (int)r->io.result;
			ready = true;
			if (weft_waiter_claim(w, r->base.index))
				weft_waiter_complete(w);
		}
	}
	return until;
}

WEFT__INLINE void weft__readiness_leave(weft_readiness_t *r)
{
	weft__asked_t asked;
	int next;

	for (; r; r = weft__readiness_next(r)) {
		if (r->begun != WEFT_IO_WAITS)
			continue;
		weft__readiness_disarm(r);
		r->io.deadline = 0;
		asked.waiter = &r->io.waiter;
		for (next = weft__io_step(&r->io); next != WEFT_IO_DONE; next = weft__io_step(&r->io)) {
			if (next == WEFT_IO_WAITS)
				weft__io_wait(&asked);
			else
				weft__io_pass(&r->io, next);
		}
		r->base.status = r->io.result == -ETIMEDOUT ? 0 : (int)r->io.result;
	}
}

__attribute__((unused)) static int weft__readiness_wait(struct weft__awaited *first, weft_waiter_t *w)
{
	weft_readiness_t *list = (weft_readiness_t *)first, *r;
	uint64_t until, deadline = w->timer.at;
	bool blocks = false;
	int result;

	/* Handlers of `io` may wait, and must not be unwound: the select is in queues. */
	weft_shield_begin();
	until = weft__readiness_enter(list, w, &blocks);
	weft_shield_end();
	w->timer.at = until;
	if (!blocks || !weft__readiness_block(list, w))
		(void)weft_wait(w);
	result = w->result;
	weft_shield_begin();
	weft__readiness_leave(list);
	weft_shield_end();
	if (result == -ETIMEDOUT && until < deadline)
		return -EAGAIN;
	for (r = list; r && result >= 0; r = weft__readiness_next(r))
		if (r->base.index == result && !r->base.status)
			return -EAGAIN; /* the readiness is gone: another reader or writer has used it */
	return result;
}

WEFT__INLINE weft_readiness_t weft_readiness(int fd, int events)
{
	weft_readiness_t r;

	__builtin_memset(&r, 0, sizeof r);
	r.base.look = weft__readiness_look;
	r.base.wait = weft__readiness_wait;
	r.fd = fd;
	r.events = events;
	return r;
}

/* A look-up. weft__resolve_call begins it, on a helper thread. It returns -EINPROGRESS while the look-up is not
 * complete: then the task waits for `fd` until `until`, and weft__resolve_go_on, on a system stack, does the next
 * step. */
struct weft__resolve {
	const char *name, *service;
	int type;
	weft_address_t *addresses;
	unsigned most;
	uint64_t deadline;
	void *lookup;	/* NULL: the look-up is complete */
	int fd, events; /* the descriptor and events to wait for; for weft__resolve_go_on: the result of the wait */
	uint64_t until;
	int64_t result;
};
WEFT_API int64_t weft__resolve_call(void *what);
WEFT_API void *weft__resolve_go_on(void *what);

WEFT__INLINE int64_t weft_call_until(weft_io_call_t *fn, void *argument, uint64_t deadline)
{
	return weft__io_more(WEFT_IO_CALL, -1, -1, (const void *)(uintptr_t)fn, argument, 0, deadline);
}

WEFT__INLINE int64_t weft_call(weft_io_call_t *fn, void *argument)
{
	return weft_call_until(fn, argument, WEFT_NEVER);
}

__attribute__((unused)) static int weft_resolve_until(const char *name, const char *service, int type,
						      weft_address_t *addresses, unsigned most, uint64_t deadline)
{
	struct weft__resolve what = {name, service, type, addresses, most, deadline, NULL, -1, 0, 0, 0};

	what.result = weft_call_until(weft__resolve_call, &what, deadline);
	while (what.lookup) {
		what.events = weft__io_quietly(WEFT_IO_POLL, what.fd, NULL, 0, what.events, what.until);
		(void)weft_ffi_on_system_stack(weft__resolve_go_on, &what);
	}
	return weft__waited((int)what.result);
}

WEFT__INLINE int weft_resolve(const char *name, const char *service, int type, weft_address_t *addresses, unsigned most)
{
	return weft_resolve_until(name, service, type, addresses, most, WEFT_NEVER);
}

/* Connections to several addresses that race. When weft__dial_step returns -EINPROGRESS, the caller must wait for `set`
 * until `until`. */
enum { WEFT__DIAL_MOST = 8 };
struct weft__dial {
	weft_address_t *addresses;
	uint64_t deadline, until, next; /* next: the time of the next attempt */
	int count, begun, open;		/* the numbers of addresses, of attempts that have begun, and of attempts in
					   progress */
	int set, error, blocks;
	int fds[WEFT__DIAL_MOST];
};
/* False: the addresses must be tried one after another. Reorders the addresses. */
WEFT_API bool weft__dial_begin(struct weft__dial *d, weft_address_t *addresses, int count, uint64_t deadline);
/* Returns the descriptor, a negative errno, or -EINPROGRESS. `waited`: the result of the wait. */
WEFT_API int weft__dial_step(struct weft__dial *d, int waited);
/* Writes the address if `name` is that of a Unix socket. False: it is not. */
WEFT_API bool weft__unix_address(const char *name, weft_address_t *address);

/* Tries one address after another; each has its share of the time that is left. */
__attribute__((noinline, unused)) static int weft__dial_in_turn(const weft_address_t *addresses, int count,
								uint64_t deadline)
{
	int i, fd, error = -ENOENT;
	uint64_t now, until;

	for (i = 0; i < count; i++) {
		fd = weft_socket(addresses[i].address.ss_family, SOCK_STREAM, 0);
		if (fd < 0)
			return fd;
		now = deadline == WEFT_NEVER || !deadline || i + 1 == count ? deadline : weft_now();
		until = now < deadline ? now + (deadline - now) / (uint64_t)(count - i) : deadline;
		error = weft__io_quietly(WEFT_IO_CONNECT, fd, &addresses[i].address, addresses[i].size, 0, until);
		if (!error)
			return fd;
		(void)weft_close(fd);
		if (error == -ECANCELED)
			break;
	}
	return error;
}

__attribute__((noinline, unused)) static int weft__dial_race(weft_address_t *addresses, int count, uint64_t deadline)
{
	struct weft__dial d;
	int result, waited = 0;

	if (!weft__dial_begin(&d, addresses, count, deadline))
		return weft__dial_in_turn(addresses, count, deadline);
	while ((result = weft__dial_step(&d, waited)) == -EINPROGRESS)
		waited = weft__io_quietly(WEFT_IO_POLL, d.set, NULL, 0, 1 /* POLLIN */, d.until);
	return result;
}

__attribute__((unused)) static int weft_dial_until(const char *name, const char *service, uint64_t deadline)
{
	weft_address_t addresses[WEFT__DIAL_MOST];
	weft_coro_t *self = weft__self();
	int result, count = 1;

	if (!weft__unix_address(name, &addresses[0]))
		count = weft_resolve_until(name, service, SOCK_STREAM, addresses, WEFT__DIAL_MOST, deadline);
	if (count < 0)
		return count;
	result = count > 1 && (!self || weft__io_is_near(self)) ? weft__dial_race(addresses, count, deadline)
								: weft__dial_in_turn(addresses, count, deadline);
	if (result < 0)
		return weft__waited(result);
	(void)weft_set_nodelay(result, true);
	return result;
}

WEFT__INLINE int weft_dial(const char *name, const char *service)
{
	return weft_dial_until(name, service, WEFT_NEVER);
}

WEFT__INLINE int weft_openat_until(int directory, const char *path, int flags, unsigned mode, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_OPEN, directory, (void *)(uintptr_t)path, mode, 0, flags, deadline);
}

WEFT__INLINE int weft_openat(int directory, const char *path, int flags, unsigned mode)
{
	return weft_openat_until(directory, path, flags, mode, WEFT_NEVER);
}

WEFT__INLINE int weft_open(const char *path, int flags, unsigned mode)
{
	return weft_openat(-100 /* AT_FDCWD */, path, flags, mode);
}

WEFT__INLINE int weft_fsync_until(int fd, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_SYNC, fd, NULL, 0, 0, 0, deadline);
}

WEFT__INLINE int weft_fsync(int fd)
{
	return weft_fsync_until(fd, WEFT_NEVER);
}

WEFT__INLINE int weft_fdatasync_until(int fd, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_SYNC, fd, NULL, 0, 0, 1, deadline);
}

WEFT__INLINE int weft_fdatasync(int fd)
{
	return weft_fdatasync_until(fd, WEFT_NEVER);
}

WEFT__INLINE int weft_fstatat_until(int directory, const char *path, struct stat *status, int flags, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_STAT, directory, -1, path, status, flags, deadline);
}

WEFT__INLINE int weft_fstatat(int directory, const char *path, struct stat *status, int flags)
{
	return weft_fstatat_until(directory, path, status, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_renameat_until(int from, const char *path, int to, const char *other, unsigned flags,
				     uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_RENAME, from, to, path, (void *)(uintptr_t)other, (int)flags, deadline);
}

WEFT__INLINE int weft_renameat(int from, const char *path, int to, const char *other, unsigned flags)
{
	return weft_renameat_until(from, path, to, other, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_rename(const char *path, const char *other)
{
	return weft_renameat(-100 /* AT_FDCWD */, path, -100, other, 0);
}

WEFT__INLINE int weft_unlinkat_until(int directory, const char *path, int flags, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_UNLINK, directory, (void *)(uintptr_t)path, 0, 0, flags, deadline);
}

WEFT__INLINE int weft_unlinkat(int directory, const char *path, int flags)
{
	return weft_unlinkat_until(directory, path, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_unlink(const char *path)
{
	return weft_unlinkat(-100 /* AT_FDCWD */, path, 0);
}

WEFT__INLINE int weft_rmdir(const char *path)
{
	return weft_unlinkat(-100 /* AT_FDCWD */, path, 0x200 /* AT_REMOVEDIR */);
}

WEFT__INLINE int weft_mkdirat_until(int directory, const char *path, unsigned mode, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_MKDIR, directory, (void *)(uintptr_t)path, mode, 0, 0, deadline);
}

WEFT__INLINE int weft_mkdirat(int directory, const char *path, unsigned mode)
{
	return weft_mkdirat_until(directory, path, mode, WEFT_NEVER);
}

WEFT__INLINE int weft_mkdir(const char *path, unsigned mode)
{
	return weft_mkdirat(-100 /* AT_FDCWD */, path, mode);
}

WEFT__INLINE int weft_symlinkat_until(const char *target, int directory, const char *path, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_SYMLINK, directory, -1, target, (void *)(uintptr_t)path, 0, deadline);
}

WEFT__INLINE int weft_symlinkat(const char *target, int directory, const char *path)
{
	return weft_symlinkat_until(target, directory, path, WEFT_NEVER);
}

WEFT__INLINE int weft_symlink(const char *target, const char *path)
{
	return weft_symlinkat(target, -100 /* AT_FDCWD */, path);
}

WEFT__INLINE int weft_linkat_until(int from, const char *path, int to, const char *other, int flags, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_LINK, from, to, path, (void *)(uintptr_t)other, flags, deadline);
}

WEFT__INLINE int weft_linkat(int from, const char *path, int to, const char *other, int flags)
{
	return weft_linkat_until(from, path, to, other, flags, WEFT_NEVER);
}

WEFT__INLINE int weft_link(const char *path, const char *other)
{
	return weft_linkat(-100 /* AT_FDCWD */, path, -100, other, 0);
}

WEFT__INLINE int weft_ftruncate_until(int fd, int64_t size, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_TRUNCATE, fd, NULL, 0, size, 0, deadline);
}

WEFT__INLINE int weft_ftruncate(int fd, int64_t size)
{
	return weft_ftruncate_until(fd, size, WEFT_NEVER);
}

WEFT__INLINE int weft_fallocate_until(int fd, int mode, int64_t offset, int64_t length, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_ALLOCATE, fd, NULL, (size_t)length, offset, mode, deadline);
}

WEFT__INLINE int weft_fallocate(int fd, int mode, int64_t offset, int64_t length)
{
	return weft_fallocate_until(fd, mode, offset, length, WEFT_NEVER);
}

__attribute__((unused)) static ssize_t weft_copy_file_range_until(int from, int64_t *offset, int to, int64_t *to_offset,
								  size_t length, uint64_t deadline)
{
	weft_io_t io;

	io.kind = WEFT_IO_COPY;
	io.fd = from;
	io.other = to;
	io.flags = 0;
	io.data = offset;
	io.more = to_offset;
	io.length = length;
	io.deadline = deadline;
	return (ssize_t)weft_io_do(&io);
}

WEFT__INLINE ssize_t weft_copy_file_range(int from, int64_t *offset, int to, int64_t *to_offset, size_t length)
{
	return weft_copy_file_range_until(from, offset, to, to_offset, length, WEFT_NEVER);
}

WEFT__INLINE weft_dir_t weft_dir(int fd)
{
	weft_dir_t directory;

	directory.fd = fd;
	directory.at = directory.end = 0;
	return directory;
}

WEFT_API int weft__next_entry(weft_dir_t *directory, weft_dirent_t *entry);
__attribute__((unused)) static int weft_readdir_until(weft_dir_t *directory, weft_dirent_t *entry, uint64_t deadline)
{
	int64_t bytes;

	while (!weft__next_entry(directory, entry)) {
		bytes = weft__io(WEFT_IO_ENTRIES, directory->fd, directory->entries, sizeof directory->entries, 0, 0,
				 deadline);
		if (bytes <= 0)
			return (int)bytes;
		directory->at = 0;
		directory->end = (unsigned)bytes;
	}
	return 1;
}

WEFT__INLINE int weft_readdir(weft_dir_t *directory, weft_dirent_t *entry)
{
	return weft_readdir_until(directory, entry, WEFT_NEVER);
}

WEFT__INLINE int weft_file_watch_add_until(weft_file_watch_t *watch, const char *path, uint32_t events,
					   uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_WATCH, watch->fd, (void *)(uintptr_t)path, 0, 0, (int)events, deadline);
}

WEFT__INLINE int weft_file_watch_add(weft_file_watch_t *watch, const char *path, uint32_t events)
{
	return weft_file_watch_add_until(watch, path, events, WEFT_NEVER);
}

/* Gets the next change of those that have been read already. False: there are no more. */
WEFT_API bool weft__next_change(weft_file_watch_t *watch, weft_file_change_t *change);

__attribute__((unused)) static int weft_file_watch_next_until(weft_file_watch_t *watch, weft_file_change_t *change,
							      uint64_t deadline)
{
	ssize_t bytes;

	while (!weft__next_change(watch, change)) {
		bytes = weft_read_until(watch->fd, watch->events, sizeof watch->events, deadline);
		if (bytes <= 0)
			return bytes ? (int)bytes : -EIO;
		watch->at = 0;
		watch->end = (unsigned)bytes;
	}
	return 0;
}

WEFT__INLINE int weft_file_watch_next(weft_file_watch_t *watch, weft_file_change_t *change)
{
	return weft_file_watch_next_until(watch, change, WEFT_NEVER);
}

/* Opens a descriptor of a process. */
WEFT_API int weft__process_fd(pid_t process);
WEFT_API int weft__process_status(pid_t process, int *status);

WEFT__INLINE pid_t weft_waitpid_until(pid_t process, int *status, uint64_t deadline)
{
	int fd = weft__process_fd(process), ready;

	if (fd < 0)
		return fd;
	ready = weft__io_quietly(WEFT_IO_POLL, fd, NULL, 0, 1 /* POLLIN */, deadline);
	(void)weft_close(fd);
	return ready < 0 ? weft__waited(ready) : weft__process_status(process, status);
}

WEFT__INLINE pid_t weft_waitpid(pid_t process, int *status)
{
	return weft_waitpid_until(process, status, WEFT_NEVER);
}

#ifdef SA_SIGINFO
/* Opens a descriptor of a set of signals. */
WEFT_API int weft__signal_fd(const sigset_t *signals);
WEFT_API int weft__signal_read(int fd, siginfo_t *info);

WEFT__INLINE int weft_sigwait_until(const sigset_t *signals, siginfo_t *info, uint64_t deadline)
{
	int fd = weft__signal_fd(signals), result;

	if (fd < 0)
		return fd;
	do {
		result = weft__io_quietly(WEFT_IO_POLL, fd, NULL, 0, 1 /* POLLIN */, deadline);
		if (result > 0)
			result = weft__signal_read(fd, info);
	} while (result == -EAGAIN); /* another thread has got it */
	(void)weft_close(fd);
	return weft__waited(result);
}

WEFT__INLINE int weft_sigwait(const sigset_t *signals, siginfo_t *info)
{
	return weft_sigwait_until(signals, info, WEFT_NEVER);
}
#endif

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_IO_H */
