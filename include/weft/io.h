/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/io.h: input and output in straight lines. A call that would block suspends its task, and nothing else.
 *
 *   static void *serve(void *listener)
 *   {
 *           char text[4096];
 *           int fd = weft_accept(*(int *)listener, NULL, NULL, 0);
 *           ssize_t n;
 *
 *           while ((n = weft_read(fd, text, sizeof text)) > 0)
 *                   if (weft_write_all(fd, text, (size_t)n) < 0)
 *                           break;
 *           weft_close(fd);
 *           return NULL;
 *   }
 *
 * Design
 *  1. The names are POSIX's with weft_ in front. A call returns its result or a negative errno, never through errno:
 *     compilers keep errno's address across a suspension, and the task may continue in another thread.
 *  2. Each call is a record (weft_io_t) in the caller's frame, performed as one effect, `io`. A handler between a task
 *     and its runtime can count, limit, record or replace it; without a handler the runtime does the operation.
 *  3. Two back ends under one contract. With io_uring operations are submitted to the kernel, which completes them.
 *     With epoll operations are tried, and tried again when the kernel says that they can be done. The runtime chooses
 *     a back end at its first operation; WEFT_IO=epoll or WEFT_IO=io_uring in the environment forces the choice. If
 *     io_uring is not available, a line on standard error gives the reason, and the runtime uses epoll.
 *  4. Nothing is lost. If a deadline or a cancellation is to end an operation, the runtime withdraws it first; if the
 *     operation was complete by then, the call returns its result. The kernel writes into a buffer only while the call
 *     lasts.
 *  5. A read of a ready descriptor takes one system call, and no call is needed to find that there is no more data: a
 *     short read has emptied its descriptor, and the next read waits at once.
 *  6. Operations that can only block (files without io_uring) run on a helper thread. c-ares looks up names if libcares
 *     is installed; otherwise getaddrinfo does it on a helper thread. WEFT_DNS=ares or WEFT_DNS=libc in the environment
 *     forces the choice.
 *  7. Outside of tasks every call blocks its thread, with the same results. In weft_blocking, too, a call blocks its
 *     thread: neither cancellation nor weft_close ends a weft_read there. Give it a deadline, or call it outside of
 *     weft_blocking.
 * Target: an echo server handles 0.93 of the requests per second of CPU time of a raw loop on the same back end.
 *
 * Unless its comment says otherwise, every function here may suspend its task; may be called on any stack, by tasks and
 * threads; and must not be called in signal handlers. The caller owns the buffers, which must stay in place until the
 * call returns. Each function has a form that ends with _until, and takes a deadline: a time of weft_now(), or
 * WEFT_NEVER; 0: do not wait at all. In addition to the results in POSIX all functions return
 *   -ETIMEDOUT  the deadline has passed, and nothing was done
 *   -ECANCELED  nothing was done, because a scope that the task has open was cancelled, or weft_close closed the
 *               descriptor meanwhile; if the task itself was cancelled, the exception weft_cancelled is performed in
 *               place of a return
 *   -ENOMEM     no memory for the runtime's record of the descriptor; nothing was done
 *   -EMFILE, -ENFILE  the runtime's first operation needs descriptors of its own; nothing was done
 * Descriptors that are used here must be closed by weft_close (or by weft/posix.h's close). An operation keeps its
 * descriptors open until it ends; if a descriptor is closed in another way, its number may mean another file by then.
 * To wait for a descriptor that other code may close, use weft_poll.
 *
 * Source of the ideas: results in place of errno, the Linux kernel's interface and liburing; readiness that is
 * remembered, Tokio; a deadline for each call, libdill; operations as an effect, OCaml's Eio.
 */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <weft/sched.h>
#include <weft/thread.h>

#if !defined(__clang__)
#pragma GCC system_header
#endif

struct mmsghdr; /* <sys/socket.h> defines it for _GNU_SOURCE only */

WEFT_EXTERN_C_BEGIN

/* ---- one operation ----------------------------------------------------------------------------------------------- */

/** The kind of an operation. Its operands are the fields of weft_io_t that are listed beside it. */
typedef enum weft_io_kind {
	WEFT_IO_READ = 1, /**< fd, data, length, offset (-1: none) */
	WEFT_IO_WRITE,	  /**< as WEFT_IO_READ */
	WEFT_IO_READV,	  /**< fd, data: struct iovec, length of them, offset */
	WEFT_IO_WRITEV,	  /**< as WEFT_IO_READV */
	WEFT_IO_RECV,	  /**< fd, data, length, flags */
	WEFT_IO_SEND,	  /**< as WEFT_IO_RECV */
	WEFT_IO_RECVMSG,  /**< fd, data: struct msghdr, flags */
	WEFT_IO_SENDMSG,  /**< as WEFT_IO_RECVMSG */
	WEFT_IO_RECVMMSG, /**< fd, data: struct mmsghdr, length of them, flags */
	WEFT_IO_SENDMMSG, /**< as WEFT_IO_RECVMMSG */
	WEFT_IO_ACCEPT,	  /**< fd, data: address, more: its length, flags */
	WEFT_IO_CONNECT,  /**< fd, data: address, length */
	WEFT_IO_POLL,	  /**< fd, flags: events, length: not 0 if the caller waits for other objects, too: see
			   WEFT_IO_BLOCKS */
	WEFT_IO_SENDFILE, /**< fd: a socket, other: a file, data: its offset, length */
	WEFT_IO_SPLICE,	  /**< fd: from, other: to, length, flags: of splice(2), without offsets */
	WEFT_IO_OPEN,	  /**< fd: directory, data: path, flags, length: mode */
	WEFT_IO_SYNC,	  /**< fd, flags: 1 data only */
	WEFT_IO_STAT,	  /**< fd: directory, data: path, flags, more: struct stat */
	WEFT_IO_CALL,	  /**< data: weft_io_call_t, more: its argument: on a helper thread */
	WEFT_IO_RENAME,	  /**< fd: directory, data: path, other: directory, more: new path, flags: of renameat2(2) */
	WEFT_IO_UNLINK,	  /**< fd: directory, data: path, flags: of unlinkat(2) */
	WEFT_IO_MKDIR,	  /**< fd: directory, data: path, length: mode */
	WEFT_IO_SYMLINK,  /**< fd: directory, data: the link's target, more: path */
	WEFT_IO_LINK,	  /**< as WEFT_IO_RENAME, flags: of linkat(2) */
	WEFT_IO_TRUNCATE, /**< fd, offset: the new size */
	WEFT_IO_ALLOCATE, /**< fd, flags: mode, offset, length: as fallocate(2) */
	WEFT_IO_COPY,	  /**< fd: from, data: its offset, other: to, more: its offset, length: as copy_file_range(2) */
	WEFT_IO_ENTRIES,  /**< fd: directory, data, length: as getdents64(2) */
	WEFT_IO_WATCH,	  /**< fd: of inotify, data: path, flags: events: as inotify_add_watch(2) */
	WEFT_IO_KINDS,
} weft_io_kind_t;

/** The function of WEFT_IO_CALL: returns the result. */
typedef int64_t weft_io_call_t(void *argument);

/** An operation. A handler of `io` may read and change the fields above `result`, and may do the operation itself. */
typedef struct weft_io {
	uint8_t kind; /**< weft_io_kind_t */
	/* Private: the next step; read, write or both; why the operation was withdrawn, a negative errno. */
	uint8_t step, way;
	int8_t reason;
	int fd, other, flags;
	void *data;
	size_t length;
	int64_t offset;
	void *more;
	uint64_t deadline;
	int64_t result; /**< the result, or a negative errno */
	/* Private. */
	weft_waiter_t waiter; /* timer.note: the generation of the descriptor when the operation began */
	void *place, *ring;   /* the runtime's record of the operation while it lasts */
	unsigned entry;	      /* its number in the submission queue; if it must be retried, the number of pauses */
	int watch;	      /* io_uring: see watch_exactly, uring.c; -1: none */
	struct weft_io *next, **link;
} weft_io_t;

/** The state of an operation: the reply to `io`. */
enum {
	WEFT_IO_DONE,	/**< `result` is written */
	WEFT_IO_WAITS,	/**< the runtime has begun the operation; only the runtime replies this */
	WEFT_IO_BLOCKS, /**< the caller must do the operation on a helper thread; or a WEFT_IO_POLL with a `length` was
			     not begun, because it would block the thread; only the runtime replies this */
	WEFT_IO_YIELDS, /**< other tasks have waited for long, and must run before the operation begins, or completes;
			     only the runtime replies this */
};

/* Continues the operation after the wait. Returns a reply as `io` does. */
WEFT_API int weft__io_step(weft_io_t *io);
/* Drops an operation that has not begun. */
WEFT_API void weft__io_drop(weft_io_t *io);
/* Does the whole operation, blocking the calling thread. */
WEFT_API void *weft__io_block(void *io);

WEFT_EXTERN_C_END

#pragma push_macro("WEFT_NAMESPACE")
#undef WEFT_NAMESPACE
#define WEFT_NAMESPACE weft
WEFT__C_BEGIN
/** Do an operation, or begin it. A handler that does the operation itself writes `result` and replies WEFT_IO_DONE. A
 * handler that passes the operation on performs it again, by weft_op_io, from outside of the task's handlers:
 * weft_forward does both. */
WEFT_EFFECT_AS(weft_op_io, int, io, weft_io_t *, io);
WEFT__C_END
#pragma pop_macro("WEFT_NAMESPACE")

WEFT_EXTERN_C_BEGIN

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

/** Do an operation. The fields up to `deadline` are set as its kind requires. Returns its result. */
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

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/** Like read and write. Returns the number of bytes; 0 from read: the end. A read of a file is short only at the file's
 * end. A write to a socket or pipe without a reader returns -EPIPE; only a pipe also raises SIGPIPE, unless the program
 * ignores it. The same is true for weft_sendfile and weft_splice. */
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

/** Like pread and pwrite: at an offset of a file. */
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

/** Like preadv and pwritev: into, or out of, several buffers. `offset` -1: at the descriptor's position. */
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

/**
 * Read or write until all bytes are transferred, or the end or an error is reached. The deadline is for the whole call.
 * @return the number of bytes that were read or written; less than `length` only at the end of the input. After an
 *   error, a deadline or a cancellation in the middle: the bytes so far, if there are any, and the next call returns
 *   the error
 */
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

/**
 * Like weft_write_all, from several buffers. `parts` is changed: the buffers that remain in it have not been written.
 * Source of the idea: Rust's write_all_vectored.
 */
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

/** Like sendfile: from a file at *offset, which is advanced, to a socket. Returns the number of bytes, at most
 * `length`. */
WEFT__INLINE ssize_t weft_sendfile_until(int to, int from, int64_t *offset, size_t length, uint64_t deadline)
{
	return (ssize_t)weft__io_sendfile(to, from, offset, length, deadline);
}

WEFT__INLINE ssize_t weft_sendfile(int to, int from, int64_t *offset, size_t length)
{
	return weft_sendfile_until(to, from, offset, length, WEFT_NEVER);
}

/** Like weft_write_all, from a file: sends until `length` bytes are sent, the file ends, or an error occurs. */
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

/** Like splice: one of the descriptors is a pipe, and neither has an offset. */
WEFT__INLINE ssize_t weft_splice_until(int from, int to, size_t length, unsigned flags, uint64_t deadline)
{
	return (ssize_t)weft__io_splice(from, to, length, flags, deadline);
}

WEFT__INLINE ssize_t weft_splice(int from, int to, size_t length, unsigned flags)
{
	return weft_splice_until(from, to, length, flags, WEFT_NEVER);
}

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

/** Like recv and send. */
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

/** Like recvmsg and sendmsg: with addresses and descriptors. */
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

/** Like recvfrom and sendto. */
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

/** Like recvmmsg and sendmmsg: many datagrams by one system call. Returns the number of datagrams that were received
 * (all that are there), or sent. Waits for the first datagram only. */
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

/**
 * Like accept4, always close-on-exec. If the process or the system has no descriptor left (EMFILE, ENFILE), the call
 * accepts the oldest connection of the queue on a reserve descriptor and closes it, so that its client need not wait;
 * then the call continues after a pause. So a loop around weft_accept survives EMFILE. The loop should also ignore
 * -ECONNABORTED and -ENOMEM.
 * @param address, size  written: the other side's address; may be NULL
 */
WEFT__INLINE int weft_accept_until(int fd, struct sockaddr *address, socklen_t *size, int flags, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_ACCEPT, fd, -1, address, size, flags, deadline);
}

WEFT__INLINE int weft_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return weft_accept_until(fd, address, size, flags, WEFT_NEVER);
}

/** Like connect. After a deadline or a cancellation the socket can only be closed. */
WEFT__INLINE int weft_connect_until(int fd, const struct sockaddr *address, socklen_t size, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_CONNECT, fd, (void *)(uintptr_t)address, size, 0, 0, deadline);
}

WEFT__INLINE int weft_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	return weft_connect_until(fd, address, size, WEFT_NEVER);
}

/** Wait until a descriptor of any kind is ready: poll for one descriptor. Returns the events that are ready (POLLIN …),
 * never 0. Other code may close the descriptor while nobody waits for it. A file that does not support poll is always
 * ready. */
WEFT__INLINE int weft_poll_until(int fd, int events, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_POLL, fd, NULL, 0, 0, events, deadline);
}

WEFT__INLINE int weft_poll(int fd, int events)
{
	return weft_poll_until(fd, events, WEFT_NEVER);
}

/* ---- readiness as a case of weft_select -------------------------------------------------------------------------- */

/**
 * Readiness of a descriptor: a case of weft_select that waits as weft_poll does.
 *
 *   weft_readiness_t input = weft_readiness(fd, POLLIN);
 *   weft_case_t cases[] = {{.ready = &input}, {.event = &stop}};
 *   if (weft_select(cases, 2) == 0 && cases[0].status > 0)
 *           n = weft_read(fd, text, sizeof text);
 *
 * The case's `status` is the value that weft_poll would have returned: the events, never 0, or a negative errno;
 * -ECANCELED: weft_close has closed the descriptor meanwhile. Nothing is read or written. A case that is not done
 * leaves nothing behind in the loop or the kernel. A readiness serves one select at a time, and can be used again
 * afterwards without changes. For the effect `io` each check is a separate operation: one when the select begins, and
 * one when it has to wait. In a thread the call waits by poll, and an eventfd wakes it: also -EMFILE, -ENFILE. In a
 * simulation a descriptor that is not of the simulated world is checked only when the select begins.
 */
typedef struct weft_readiness {
	struct weft__awaited base; /* private */
	int fd, events;
	/* Private. */
	int begun; /* the reply to `io`, while the poll is being waited for; else WEFT_IO_DONE */
	weft_waiter_t *selects;
	weft_io_t io;
} weft_readiness_t;

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

/** Returns a readiness of a descriptor, for events of poll. May be used in an initializer. Does not suspend. */
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

/** Like socket, socketpair and pipe2, always close-on-exec, in the blocking mode that the back end prefers. They do not
 * wait. */
WEFT_API int weft_socket(int domain, int type, int protocol);
WEFT_API int weft_socketpair(int domain, int type, int protocol, int fds[2]);
WEFT_API int weft_pipe(int fds[2]);

/** Like shutdown. Does not wait. */
WEFT_API int weft_shutdown(int fd, int how);

/**
 * Close a descriptor. Any task of any runtime, and any thread, may call it. Operations that use the descriptor, also as
 * their second descriptor, end with -ECANCELED, unless they are complete. The other side sees the end at once. The
 * kernel can reuse the number when the last of these operations has ended, so that no operation continues with the next
 * file of that number. Does not wait.
 * @return 0, or the error of close: -EBADF, also if it is being closed already; -EIO; the descriptor is closed in any
 *   case
 */
WEFT_API int weft_close(int fd);

/** Flags of weft_listen. */
enum {
	WEFT_LISTEN_SHARED =
	    1, /**< SO_REUSEPORT: several listeners, in several threads or processes, have the same address */
	WEFT_LISTEN_UDP = 2,	/**< a datagram socket, bound to the address */
	WEFT_LISTEN_V6ONLY = 4, /**< "::" means IPv6 only */
};

/**
 * Make a listening socket.
 * @param address  "127.0.0.1", "::1"; NULL: all addresses, of IPv6 and IPv4 if the system has both; a path that begins
 *                 with "/" or ".", or a name that begins with "@" (abstract): a Unix socket, and the port is ignored.
 *                 Names are not looked up
 * @param port     0: the system chooses; see weft_port
 * @param backlog  0: as many as the system allows
 * @return a descriptor; -EADDRINUSE, -EACCES, -EINVAL: it is no address, …
 * The address may be used again at once after the socket is closed (SO_REUSEADDR). A path is replaced only if it is a
 * socket that no process has bound any more. A file, a symbolic link, and the socket of a server that does not listen
 * yet stay, and the call returns -EADDRINUSE. While a socket is replaced its directory is locked (flock). Does not wait
 * for I/O.
 */
WEFT_API int weft_listen(const char *address, unsigned port, int backlog, unsigned flags);

/**
 * Set TCP_NODELAY: small writes are sent at once, and do not wait until the other side has acknowledged earlier data.
 * Sockets that weft_dial connects have it, and so do sockets that are accepted from a listener of weft_listen; sockets
 * of weft_socket do not, as POSIX says. Without it many small writes make fewer packets.
 * @return 0, or a negative errno: -EOPNOTSUPP: no TCP socket. Does not wait
 * Source of the idea: Go's net.TCPConn.
 */
WEFT_API int weft_set_nodelay(int fd, bool on);

/** Returns the port that a socket is bound to, or a negative errno. Does not wait. */
WEFT_API int weft_port(int fd);

/** An address of a socket, or an address that belongs to a name. */
typedef struct weft_address {
	socklen_t size;
	struct sockaddr_storage address;
} weft_address_t;

/** Like getsockname and getpeername: the address that a socket is bound to, and the address of the other side. They do
 * not wait.
 * @return 0; -ENOTSOCK; -ENOTCONN: there is no other side; -EBADF */
WEFT_API int weft_local_address(int fd, weft_address_t *address);
WEFT_API int weft_peer_address(int fd, weft_address_t *address);

enum { WEFT_ADDRESS_TEXT = 112 /**< room for the text of every address, including the final zero */ };

/**
 * Write an address as text: "127.0.0.1:80", "[fe80::1%eth0]:80", a Unix socket's path, or "@name" (a zero in an
 * abstract name becomes another '@'); "": it has no name. Does not wait.
 * @return the length of the text; -EAFNOSUPPORT: of another family; -ENOSPC: it needs more than `size`
 */
WEFT_API int weft_address_text(const weft_address_t *address, char *text, size_t size);

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

/** Call a function that blocks, on a helper thread. Returns its result. The deadline is checked only before the
 * call. */
WEFT__INLINE int64_t weft_call_until(weft_io_call_t *fn, void *argument, uint64_t deadline)
{
	return weft__io_more(WEFT_IO_CALL, -1, -1, (const void *)(uintptr_t)fn, argument, 0, deadline);
}

WEFT__INLINE int64_t weft_call(weft_io_call_t *fn, void *argument)
{
	return weft_call_until(fn, argument, WEFT_NEVER);
}

/**
 * Look up the addresses of a name, by the hosts file and DNS.
 * @param service  "80", "http"; NULL: none
 * @param type     SOCK_STREAM, SOCK_DGRAM
 * @param addresses, most  written; the number of addresses that fit
 * @return the number of addresses, at most `most`; -ENOENT: the name is not known; -EAGAIN: no server could answer now;
 *   -ENOMEM; -EINVAL: no such service ("80x", "-1", "99999") or type; -ENOSYS: WEFT_DNS=ares, and there is no libcares
 * With c-ares a look-up has a socket of its own, and ends at its deadline or when its task is cancelled; without a
 * deadline it ends after 14 seconds without an answer. WEFT_DNS_SERVERS in the environment, "127.0.0.1:5353,…",
 * replaces the servers in resolv.conf; RES_OPTIONS="retrans:5000 retry:4" asks four times, after 5, 10 and 20 seconds.
 * With getaddrinfo the call waits for a look-up that has begun, also past the deadline, because the look-up writes into
 * the caller's memory. A numeric address, "127.0.0.1" or "fe80::1%eth0", needs neither.
 */
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

/**
 * Make a connection to an address of a name. A path or "@name", as for weft_listen, is a Unix socket. Several addresses
 * are raced (RFC 8305): families alternate, the next attempt begins after 250 ms or when an attempt has failed, and the
 * first connection wins. In a simulation, and where a handler may lie between the task and its runtime, the addresses
 * are tried one after another, each with its share of the time. The socket has TCP_NODELAY: see weft_set_nodelay.
 * @return a descriptor; -ENOENT, -EAGAIN, -ENOMEM, -EINVAL from the lookup; else the error of the connection attempts
 * Source of the idea: RFC 8305 (Happy Eyeballs); Go's net.Dialer.
 */
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

/* ---- files ------------------------------------------------------------------------------------------------------- */

/** Like openat, always close-on-exec. A path is relative to `directory`, which may be AT_FDCWD. An open of a FIFO waits
 * for the other side, and an open of a file with a lease waits for the lease's end: until the deadline, without a
 * thread. */
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

/** Like fsync and fdatasync. */
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

/** Like fstatat. */
WEFT__INLINE int weft_fstatat_until(int directory, const char *path, struct stat *status, int flags, uint64_t deadline)
{
	return (int)weft__io_more(WEFT_IO_STAT, directory, -1, path, status, flags, deadline);
}

WEFT__INLINE int weft_fstatat(int directory, const char *path, struct stat *status, int flags)
{
	return weft_fstatat_until(directory, path, status, flags, WEFT_NEVER);
}

/*
 * Names, directories and sizes of files. With io_uring the kernel does these operations, if it is new enough, else a
 * helper thread. In a simulation they use the simulated files, which have neither symbolic links nor second names
 * (-EPERM there).
 */

/** Like renameat2: renames atomically, and replaces another file of the new name. `flags` 0, or RENAME_NOREPLACE and so
 * on. */
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

/** Like unlinkat. `flags` 0, or AT_REMOVEDIR. */
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

/** Like mkdirat. */
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

/** Like symlinkat: `path` becomes a symbolic link to `target`. */
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

/** Like linkat: `other` becomes a second name. */
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

/** Like ftruncate: the file gets this size, by losing its end or by adding zeros. */
WEFT__INLINE int weft_ftruncate_until(int fd, int64_t size, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_TRUNCATE, fd, NULL, 0, size, 0, deadline);
}

WEFT__INLINE int weft_ftruncate(int fd, int64_t size)
{
	return weft_ftruncate_until(fd, size, WEFT_NEVER);
}

/** Like fallocate. `mode` 0, or FALLOC_FL_KEEP_SIZE and so on. */
WEFT__INLINE int weft_fallocate_until(int fd, int mode, int64_t offset, int64_t length, uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_ALLOCATE, fd, NULL, (size_t)length, offset, mode, deadline);
}

WEFT__INLINE int weft_fallocate(int fd, int mode, int64_t offset, int64_t length)
{
	return weft_fallocate_until(fd, mode, offset, length, WEFT_NEVER);
}

/** Like copy_file_range: the kernel copies from one file to another. An offset is advanced; NULL: the descriptor's
 * position. Returns the number of bytes, at most `length`; 0: the end. */
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

/** A directory that is being read, made by weft_dir. */
typedef struct weft_dir {
	int fd;
	unsigned at, end;      /* Private. */
	uint64_t entries[256]; /* Private. */
} weft_dir_t;

/** Begin to read a directory. The descriptor was opened with O_DIRECTORY, and the caller owns it. Does not wait. */
WEFT__INLINE weft_dir_t weft_dir(int fd)
{
	weft_dir_t directory;

	directory.fd = fd;
	directory.at = directory.end = 0;
	return directory;
}

/** An entry of a directory. */
typedef struct weft_dirent {
	uint64_t inode;
	unsigned char type; /**< DT_REG and so on, of <dirent.h>; DT_UNKNOWN: use weft_fstatat */
	char name[256];
} weft_dirent_t;

/**
 * Get the next entry of a directory, in no order, without "." and "..". Entries that are created or deleted meanwhile
 * may be missed.
 * @return 1: `entry` is written; 0: there are no more entries; or a negative errno
 * Source of the idea: readdir without a hidden allocation.
 */
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

/* ---- changes of files -------------------------------------------------------------------------------------------- */

/** A source of reports about changes of files and directories. Made by weft_file_watch_open; for one task at a time. */
typedef struct weft_file_watch {
	int fd;		      /**< the inotify descriptor; close it by weft_close */
	unsigned at, end;     /* Private. */
	uint64_t events[256]; /* Private. */
} weft_file_watch_t;

/** A change. `events` are IN_… of <sys/inotify.h>. */
typedef struct weft_file_change {
	int watch; /**< the number that weft_file_watch_add returned; -1: see IN_Q_OVERFLOW, at
			weft_file_watch_next_until */
	uint32_t events;
	uint32_t cookie; /**< equal in the IN_MOVED_FROM and the IN_MOVED_TO of one rename */
	char name[256];	 /**< the name of an entry of a watched directory; "": the watched file itself. A longer name is
			      cut */
} weft_file_change_t;

/**
 * Open a watch, which watches nothing yet. Close `watch->fd` by weft_close. Does not wait. In a simulation it reports
 * changes of the simulated files.
 * @return 0; -EMFILE, also if the user has too many (/proc/sys/fs/inotify/max_user_instances); -ENFILE; -ENOMEM
 */
WEFT_API int weft_file_watch_open(weft_file_watch_t *watch);

/**
 * Watch a file, or the entries of a directory, but not the entries of directories inside it. The path of a file that is
 * watched already replaces its events, unless `events` has IN_MASK_ADD.
 * @param events  IN_CREATE | IN_MODIFY … of <sys/inotify.h>
 * @return the number that identifies the changes of this file, 1 or more; -ENOENT, -EACCES, -ENOTDIR (IN_ONLYDIR) …;
 *   -ENOSPC: the user watches too many files (/proc/sys/fs/inotify/max_user_watches)
 */
WEFT__INLINE int weft_file_watch_add_until(weft_file_watch_t *watch, const char *path, uint32_t events,
					   uint64_t deadline)
{
	return (int)weft__io(WEFT_IO_WATCH, watch->fd, (void *)(uintptr_t)path, 0, 0, (int)events, deadline);
}

WEFT__INLINE int weft_file_watch_add(weft_file_watch_t *watch, const char *path, uint32_t events)
{
	return weft_file_watch_add_until(watch, path, events, WEFT_NEVER);
}

/** Stop watching a file. Changes until then are still reported; the last change of this number is IN_IGNORED. Does not
 * wait.
 * @return 0; -EINVAL: there is no such number, because it has been removed or its file is gone */
WEFT_API int weft_file_watch_remove(weft_file_watch_t *watch, int number);

/* Gets the next change of those that have been read already. False: there are no more. */
WEFT_API bool weft__next_change(weft_file_watch_t *watch, weft_file_change_t *change);

/**
 * Wait for the next change. Changes come in the order in which they happen. The kernel merges two equal successive
 * changes if the first has not been read yet.
 *   IN_Q_OVERFLOW  changes are lost, because more than /proc/sys/fs/inotify/max_queued_events were waiting: scan the
 *                  directories again; later changes follow
 *   IN_IGNORED     the number is not watched any more: it was removed, or its file was deleted or its disk unmounted
 * @return 0: `change` is written; or a negative errno, and then no change is lost
 * Source of the idea: inotify; changes one by one, Go's fsnotify.
 */
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

/* ---- processes and signals --------------------------------------------------------------------------------------- */

enum {
	WEFT_PROCESS_FDS = 64, /**< the maximum number of descriptors for a child */
	/* weft_process_t.flags */
	WEFT_PROCESS_GROUP = 1,		  /**< the child joins the process group `group`; 0: a new group of its own */
	WEFT_PROCESS_SESSION = 2,	  /**< the child is the leader of a new session (setsid) */
	WEFT_PROCESS_DEFAULT_SIGNALS = 4, /**< the child ignores no signal, even if this program ignores signals */
};

/** A program to start. For each field that is zero the child has the caller's setting. */
typedef struct weft_process {
	char *const *argv;     /**< the program's name, searched in PATH, and arguments; NULL ends the list */
	char *const *envp;     /**< NULL: the caller's environment */
	const int *fds;	       /**< its descriptors 0, 1, …; -1: the caller's descriptor of this number */
	unsigned fd_count;     /**< the number of `fds`; at most WEFT_PROCESS_FDS */
	unsigned flags;	       /**< WEFT_PROCESS_… */
	const char *directory; /**< its current directory; a relative `argv[0]` with a slash is relative to it */
	pid_t group;	       /**< for WEFT_PROCESS_GROUP */
} weft_process_t;

/**
 * Start a program. It does not inherit other descriptors that are close-on-exec. Its pipes and sockets are in blocking
 * mode, as programs expect, even if they are non-blocking here; listening sockets keep their mode. It has no signal
 * blocked, does not ignore SIGPIPE, and has the timer slack that this program began with. In a simulation the program
 * is a real program, unless weft_world_program (weft/sim.h) has named it: a simulated program has three descriptors,
 * and no directory or group.
 * @param what  copied
 * @return its process, for weft_waitpid; -ENOENT, -EACCES, -EAGAIN, -ENOMEM; -EINVAL: no argv, more descriptors than
 *   WEFT_PROCESS_FDS, unknown flags. Does not wait
 * Source of the idea: posix_spawn's attributes; libuv also resets signals.
 */
WEFT_API pid_t weft_spawn_process_as(const weft_process_t *what);

/** Like weft_spawn_process_as, with the descriptors 0, 1 and 2; `fds` NULL: all are the caller's. */
WEFT_API pid_t weft_spawn_process(char *const argv[], char *const envp[], const int fds[3]);

/* Opens a descriptor of a process. */
WEFT_API int weft__process_fd(pid_t process);
WEFT_API int weft__process_status(pid_t process, int *status);

/**
 * Wait until a child process has ended.
 * @param process  one child; 0 and below are not supported
 * @param status   written as by waitpid: WIFEXITED …; may be NULL
 * @return the process; -ECHILD: it is no child of this process, or has been waited for; -EINVAL: process < 1; -EMFILE;
 *   -EAGAIN: no thread for it, which only kernels without pidfd_open need
 */
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

/** Like kill, but for a process of a simulated world it calls weft_world_kill (weft/sim.h). Does not wait.
 * @return 0; -ESRCH; -EPERM; -EINVAL */
WEFT_API int weft_kill_process(pid_t process, int signal);

/* These functions need types that <signal.h> declares for POSIX only: with -std=c11 and similar options the types are
 * missing, unless _POSIX_C_SOURCE is defined. */
#ifdef SA_SIGINFO
/* Opens a descriptor of a set of signals. */
WEFT_API int weft__signal_fd(const sigset_t *signals);
WEFT_API int weft__signal_read(int fd, siginfo_t *info);

/**
 * Wait for one of these signals. Every thread of the program must have blocked them (pthread_sigmask before
 * weft_rt_run); otherwise they have their usual effect. In a simulation they are the signals of the simulated world
 * (weft/sim.h).
 * @return the signal's number; -EINVAL: `signals` is NULL; -EMFILE, -ENFILE, -ENOMEM
 */
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

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/** Returns the name of the calling task's back end: "io_uring", "epoll"; "simulated"; "threads" outside of tasks. If
 * the runtime has done no I/O yet, it is the back end that the runtime will choose. Does not wait. */
WEFT_API const char *weft_io_backend(void);

WEFT_EXTERN_C_END

#endif /* WEFT_IO_H */
