/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * I/O by epoll. A runtime has one set of descriptors, which any worker may ask, and in which one of the idle workers
 * sleeps.
 *
 * A descriptor is registered when an operation first waits for it, for changes (EPOLLET) in all directions, and stays
 * registered until it is closed. Its record remembers the possible directions in `ready`:
 *   an attempt clears its direction first, and then tries; a success that left data or room sets it again
 *   an event sets it, and wakes the first operation that waits for this direction
 *   an operation whose attempt fails looks at it under the lock before it waits
 * so an event between an attempt and the wait is not lost. If a woken operation leaves data or room, or uses none
 * because its wait has ended, it wakes the next operation.
 * After the peer has hung up, no direction is cleared: data and end may have come in one event.
 *
 * weft_poll waits for descriptors that foreign code may close: it registers them only while it waits, only for the
 * events that its caller asks for, and calls poll itself after a change.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal/libc.h"
#include "io/io.h"

enum { EVENTS = 128 };

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Under the lock. pass_on reads `count` without the lock. */
static void put_in(struct weft__fd *fd, weft_io_t *io)
{
	weft__fd_add(fd, io);
	__atomic_store_n(&fd->count, fd->count + 1, __ATOMIC_SEQ_CST);
}

static void take_out(struct weft__fd *fd, weft_io_t *io)
{
	weft__fd_take_out(fd, io);
	__atomic_store_n(&fd->count, fd->count - 1, __ATOMIC_SEQ_CST);
}

/* Under the lock. Wakes the first operation that waits for one of these directions; if its wait has ended, that
 * operation passes the readiness on itself. And wakes all polls, because they consume nothing, and may have asked for
 * different events. */
static void wake_first(struct weft__fd *fd, uint8_t way)
{
	bool uses = false;
	weft_io_t *io;

	for (io = fd->first; io; io = io->next) {
		if (!(io->way & way) || (uses && io->kind != WEFT_IO_POLL) || !weft__waiter_claim_here(&io->waiter, 0))
			continue;
		uses |= io->kind != WEFT_IO_POLL;
		weft_waiter_complete(&io->waiter);
	}
}

static uint8_t ready_by(uint32_t events)
{
	uint8_t ready = 0;

	if (events & (EPOLLIN | EPOLLPRI))
		ready |= WEFT__IN;
	if (events & EPOLLOUT)
		ready |= WEFT__OUT;
	if (events & EPOLLRDHUP)
		ready |= WEFT__IN | WEFT__NO_MORE;
	if (events & (EPOLLHUP | EPOLLERR))
		ready |= WEFT__IN | WEFT__OUT | WEFT__HUNG_UP;
	return ready;
}

static void happened(struct weft__fd *fd, uint32_t events)
{
	uint8_t ready = ready_by(events);

	if (__builtin_expect(events & EPOLLPRI, 0))
		__atomic_store_n(&fd->marked, true, __ATOMIC_RELAXED);
	weft__spin_lock(&fd->lock);
	__atomic_fetch_or(&fd->ready, ready, __ATOMIC_RELAXED);
	if (ready & WEFT__IN)
		wake_first(fd, WEFT__IN);
	if (ready & WEFT__OUT)
		wake_first(fd, WEFT__OUT);
	weft__spin_unlock(&fd->lock);
}

static uint64_t time_left(uint64_t until)
{
	uint64_t now = until ? weft__clock() : 0;

	return until > now ? until - now : 0;
}

/* Kernels before 5.11 count only milliseconds: rounded up, so that a worker does not wake too early again and again. */
static int ask_coarsely(struct weft__loop *loop, struct epoll_event *events, uint64_t until)
{
	uint64_t left = time_left(until) / 1000000 + (until != 0);

	return epoll_wait(loop->set, events, EVENTS, until == WEFT_NEVER ? -1 : left < INT_MAX ? (int)left : INT_MAX);
}

static int ask_finely(struct weft__loop *loop, struct epoll_event *events, uint64_t until)
{
	struct timespec time;
	int count;

	if (__atomic_load_n(&loop->coarse, __ATOMIC_RELAXED))
		return -1;
	time = weft__timespec(until == WEFT_NEVER ? 0 : time_left(until));
	count = epoll_pwait2(loop->set, events, EVENTS, until == WEFT_NEVER ? NULL : &time, NULL);
	/* EPERM: from a seccomp filter that is older than this system call. */
	if (count < 0 && (errno == ENOSYS || errno == EPERM))
		__atomic_store_n(&loop->coarse, true, __ATOMIC_RELAXED);
	return count;
}

/* Only the worker that sleeps here reads it: a worker that only looks must not consume the sleeper's wake-up. The
 * wake-up may have been for an earlier sleeper, which had left before it came. */
static void read_wake(struct weft__loop *loop)
{
	uint64_t count;

	while (read(loop->wake, &count, sizeof count) < 0 && errno == EINTR)
		;
}

/* Takes the kernel's events. True: there may be more. */
static bool ask(struct weft__loop *loop, uint64_t until, bool sleeps)
{
	struct epoll_event events[EVENTS];
	int i, count = ask_finely(loop, events, until);

	if (count < 0 && __atomic_load_n(&loop->coarse, __ATOMIC_RELAXED))
		count = ask_coarsely(loop, events, until);
	(void)atomic_load_explicit(&loop->registrations, memory_order_acquire);
	for (i = 0; i < count; i++)
		if (events[i].data.ptr)
			happened(events[i].data.ptr, events[i].events);
		else if (sleeps)
			read_wake(loop);
	return count == EVENTS;
}

static void take_in(struct weft__source *source, struct weft__worker *w)
{
	if (weft__waiting_for_io(w->rt))
		while (ask((struct weft__loop *)source, 0, false))
			;
}

/* take_in handles the events of all workers. */
static void attend(struct weft__source *source, struct weft__worker *w, struct weft__worker *held)
{
	(void)source;
	(void)w;
	(void)held;
}

/* All workers share the set. */
static bool watch(struct weft__source *source, struct weft__worker *w, struct weft__worker *held)
{
	(void)source;
	(void)w;
	(void)held;
	return true;
}

static bool enter_sleep(struct weft__source *source, struct weft__worker *w)
{
	struct weft__loop *loop = (struct weft__loop *)source;
	struct weft__worker *nobody = NULL;

	return atomic_compare_exchange_strong(&loop->sleeper, &nobody, w);
}

static void sleep_in(struct weft__source *source, struct weft__worker *w, uint64_t until)
{
	(void)w;
	(void)ask((struct weft__loop *)source, until, true);
}

static void leave_sleep(struct weft__source *source, struct weft__worker *w)
{
	struct weft__loop *loop = (struct weft__loop *)source;

	(void)w;
	atomic_store(&loop->sleeper, NULL);
}

static void wake(struct weft__source *source, struct weft__worker *w)
{
	static const uint64_t one = 1;
	ssize_t written;

	(void)w;
	do
		written =
		    syscall(SYS_write, ((struct weft__loop *)source)->wake, &one, sizeof one); /* never posix.c's */
	while (written < 0 && errno == EINTR);
}

static bool unattended(struct weft__source *source)
{
	(void)source;
	return true;
}

static bool expects(struct weft__source *source, struct weft__worker *w)
{
	(void)source;
	(void)w;
	return false;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Bits of `ready` with which operations of this direction always complete at once, even if the direction's own bit is
 * not set: an attempt may clear that bit just after an event has set both. */
static uint8_t ends_of(uint8_t way)
{
	return way & WEFT__IN ? WEFT__HUNG_UP | WEFT__NO_MORE : WEFT__HUNG_UP;
}

/* The events that polls ask for, and no other events: an event that is always present (room to write) would wake them
 * again and again. */
static uint32_t polled_for(const struct weft__fd *fd, const weft_io_t *io)
{
	uint32_t events = EPOLLET | (unsigned short)io->flags;
	const weft_io_t *other;

	for (other = fd->first; other; other = other->next)
		events |= (unsigned short)other->flags;
	return events;
}

/* Under the lock. -EPERM: the descriptor cannot be polled. */
static int register_fd(struct weft__loop *loop, struct weft__fd *fd, int number, const weft_io_t *io)
{
	struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET, {.ptr = fd}};
	bool polled = fd->nature == WEFT__UNKNOWN;
	int error;

	if (fd->registered && !fd->polled)
		return 0;
	if (polled && !WEFT_CANARY(polls_wake_for_anything))
		event.events = polled_for(fd, io);
	/* Release: pairs with `ask`, where the kernel returns the record's address. */
	atomic_fetch_add_explicit(&loop->registrations, 1, memory_order_release);
	/* EEXIST, ENOENT: a descriptor with the same number was closed by plain close; the kernel's registration
	 * differs from the record's. */
	error = epoll_ctl(loop->set, fd->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) ? errno : 0;
	if (error == EEXIST || error == ENOENT)
		error =
		    epoll_ctl(loop->set, error == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, number, &event) ? errno : 0;
	if (error)
		return -error;
	fd->polled = polled;
	__atomic_store_n(&fd->registered, true, __ATOMIC_RELAXED);
	return 0;
}

/* A file never has an event: a poll for events that a file never reports waits until its deadline, as poll(2) does. */
static int register_for(struct weft__loop *loop, struct weft__fd *fd, int number, const weft_io_t *io)
{
	int error = register_fd(loop, fd, number, io);

	if (error == -EPERM && io->kind == WEFT_IO_POLL && !(io->flags & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM)))
		return 0;
	return error;
}

static void forget(struct weft__loop *loop, int number, struct weft__fd *fd)
{
	if (fd->registered)
		(void)epoll_ctl(loop->set, EPOLL_CTL_DEL, number, NULL);
	__atomic_store_n(&fd->registered, false, __ATOMIC_RELAXED);
}

/* The wait is over. */
static void leave(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	weft__task_lock_near(&fd->lock);
	take_out(fd, io);
	if (fd->nature == WEFT__UNKNOWN && !fd->first && !weft__is_closing(fd))
		forget(loop, io->fd, fd);
	weft__task_unlock(&fd->lock);
}

/* A second operation may wait for the same direction, and was not woken during this attempt. Either it is seen here, or
 * it sees in begin_waiting that the descriptor is ready. */
static inline __attribute__((always_inline)) void pass_on(struct weft__fd *fd, uint8_t way)
{
	__atomic_fetch_or(&fd->ready, way, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&fd->count, __ATOMIC_SEQ_CST)) {
		weft__task_lock(&fd->lock);
		wake_first(fd, way);
		weft__task_unlock(&fd->lock);
	}
}

static int finish_splice(weft_io_t *io, struct weft__fd *from, struct weft__fd *to, int64_t result)
{
	pass_on(from, WEFT__IN);
	pass_on(to, WEFT__OUT);
	return weft__io_done(io, result);
}

static int finish(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd, int nature, int64_t result)
{
	io->result = result;
	if (nature != WEFT__UNKNOWN &&
	    (!weft__io_exhausts(io, nature) || __atomic_load_n(&fd->marked, __ATOMIC_RELAXED)))
		pass_on(fd, io->way);
	return io->kind == WEFT_IO_ACCEPT ? weft__io_accepted(loop, io, nature) : WEFT_IO_DONE;
}

/* Clears the direction that the attempt is about to use, unless the peer is gone. True: an attempt may succeed. */
static inline __attribute__((always_inline)) bool claim_readiness(struct weft__fd *fd, uint8_t way)
{
	uint8_t ready = __atomic_load_n(&fd->ready, __ATOMIC_RELAXED);

	if (!(ready & (way | ends_of(way))))
		return false;
	if (!(ready & ends_of(way)))
		__atomic_fetch_and(&fd->ready, (uint8_t)~way, __ATOMIC_RELAXED);
	return true;
}

/* The number of the descriptor that an operation waits for: usually its first; a splice waits for either of two. */
static int number_of(const weft_io_t *io, const struct weft__fd *fd)
{
	return fd == io->place ? io->fd : io->other;
}

static bool is_to_try_again(const weft_io_t *io)
{
	return io->waiter.result == -ETIMEDOUT && io->waiter.timer.at != io->deadline;
}

/* Adds the operation to the descriptor's list. WEFT_IO_YIELDS: the descriptor has become ready. */
static int begin_waiting(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	int error, next = WEFT_IO_WAITS;

	weft__task_lock_near(&fd->lock);
	error = weft__begin_wait(loop, io) ? register_for(loop, fd, number_of(io, fd), io) : -ECANCELED;
	if (!error) {
		io->ring = fd;
		io->step = WEFT__TRIED;
		weft__io_limit_wait(io, fd);
		put_in(fd, io);
		if (io->kind != WEFT_IO_POLL &&
		    __atomic_load_n(&fd->ready, __ATOMIC_SEQ_CST) & (io->way | ends_of(io->way))) {
			take_out(fd, io);
			next = WEFT_IO_YIELDS;
		}
	}
	weft__task_unlock(&fd->lock);
	return error ? weft__io_done(io, error) : next;
}

static bool blocks(const struct weft__fd *fd)
{
	return __builtin_expect(__atomic_load_n(&fd->blocks, __ATOMIC_RELAXED), 0);
}

static inline int64_t attempt_once(weft_io_t *io, struct weft__fd *fd, int nature)
{
	if (blocks(fd) && (io->kind == WEFT_IO_ACCEPT || io->kind == WEFT_IO_CONNECT))
		return weft__io_attempt_unblocked(io, io->fd, nature);
	return weft__io_is_plain_transfer(io, nature) ? weft__io_transfer(io) : weft__io_attempt(io, nature);
}

/* Is the arrival of bytes its only event? Listeners and devices may also report errors. */
static bool is_plain(const struct weft__fd *fd, int nature)
{
	return !__atomic_load_n(&fd->listens, __ATOMIC_RELAXED) &&
	       (nature == WEFT__STREAM || nature == WEFT__UNIX || nature == WEFT__PIPE);
}

/* -EAGAIN: the operation is to wait. */
static int64_t attempt(weft_io_t *io, struct weft__fd *fd, int nature)
{
	const uint8_t ends = ends_of(io->way);
	uint8_t gone;
	int64_t result;

	/* No event comes before it is registered; an operation that does not wait needs the answer now. */
	if (!claim_readiness(fd, io->way) && io->deadline && __atomic_load_n(&fd->registered, __ATOMIC_RELAXED) &&
	    is_plain(fd, nature) && !weft__io_must_ask(io, nature))
		return -EAGAIN;
	result = attempt_once(io, fd, nature);
	gone = __atomic_load_n(&fd->ready, __ATOMIC_RELAXED) & ends;
	/* An operation that does not wait leaves the readiness unchanged: the next operation may have to report the
	 * end. */
	if (result == -EAGAIN && gone && !weft__io_does_not_wait(io)) {
		/* The peer is not gone after all: the socket has begun to connect. Cleared before the attempt, or an
		 * event in between would be lost. */
		__atomic_fetch_and(&fd->ready, (uint8_t) ~(ends | io->way), __ATOMIC_RELAXED);
		result = attempt_once(io, fd, nature);
		if (result == -EAGAIN && gone & WEFT__NO_MORE)
			result = weft__io_attempt_shut(io, nature);
		/* The peer is gone after all, and no further event will report that. */
		if (result != -EAGAIN)
			__atomic_fetch_or(&fd->ready, gone, __ATOMIC_RELAXED);
	}
	return result;
}

/*
 * Called after an attempt that returned -EAGAIN, and cleared the descriptor's readiness: sets the readiness again if
 * there may be data for other receives, because no event reports these data a second time. An empty error queue says
 * nothing about data. A peek may have passed all data that are there (SO_PEEK_OFF). A descriptor whose peer has ended
 * stays ready anyway.
 */
static bool keep_readiness(weft_io_t *io, struct weft__fd *fd)
{
	if (!(io->flags & MSG_ERRQUEUE) &&
	    (io->way != WEFT__IN || weft__poll_now(io->fd, POLLIN | POLLRDHUP) != POLLIN))
		return false;
	pass_on(fd, io->way);
	return true;
}

static int try(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	int next, nature = weft__fd_nature(fd, io->fd);
	int64_t result;
	bool in_vain;

	if (nature < 0)
		return weft__io_done(io, nature);
	if (nature == WEFT__FILE) {
		result = weft__io_read_cached(io);
		return result < 0 ? WEFT_IO_BLOCKS : weft__io_done(io, result);
	}
	do {
		result = attempt(io, fd, nature);
		if (result != -EAGAIN)
			return finish(loop, io, fd, nature, result);
		in_vain = __builtin_expect(weft__io_looks_elsewhere(io), 0) && keep_readiness(io, fd);
		if (__builtin_expect(weft__io_does_not_wait(io), 0))
			return weft__io_done(io, -EAGAIN);
		if (!io->deadline) {
			result = weft__io_attempt_shut(io, nature);
			return weft__io_done(io, result == -EAGAIN ? -ETIMEDOUT : result);
		}
		if (in_vain || __builtin_expect(weft__io_has_no_event(io), 0))
			return weft__io_pause(io, weft__io_what(io), weft__io_next_pause(&io->entry));
		next = begin_waiting(loop, io, fd);
	} while (next == WEFT_IO_YIELDS);
	return next;
}

static int64_t attempt_splice(weft_io_t *io, struct weft__fd *from, struct weft__fd *to)
{
	if (blocks(to))
		return weft__io_attempt_unblocked(io, io->other, WEFT__UNKNOWN);
	if (blocks(from))
		return weft__io_attempt_unblocked(io, io->fd, WEFT__UNKNOWN);
	return weft__io_attempt(io, WEFT__UNKNOWN);
}

/*
 * A splice waits for its input, or for room in its output. Only an attempt shows which of the two is missing; a change
 * that comes before the wait is seen, because the preceding attempt has cleared that side's readiness.
 */
static int try_splice(struct weft__loop *loop, weft_io_t *io, struct weft__fd *from)
{
	struct weft__fd *to = weft__fd(loop, io->other), *side = from;
	int next = WEFT_IO_YIELDS;
	int64_t result;

	do {
		io->way = side == from ? WEFT__IN : WEFT__OUT;
		(void)claim_readiness(side, io->way);
		result = attempt_splice(io, from, to);
		if (result != -EAGAIN)
			return finish_splice(io, from, to, result);
		if (!io->deadline)
			return weft__io_done(io, -ETIMEDOUT);
		if (weft__io_output_is_full(io) != (side == to))
			side = side == to ? from : to;
		else
			next = begin_waiting(loop, io, side);
	} while (next == WEFT_IO_YIELDS);
	return next;
}

__attribute__((noinline, cold)) static int begin_splice(struct weft__loop *loop, weft_io_t *io, struct weft__fd *from)
{
	int nature = weft__fd_nature(from, io->fd);
	int other = nature < 0 ? nature : weft__fd_nature(weft__fd(loop, io->other), io->other);

	if (other < 0)
		return weft__io_done(io, other);
	return try_splice(loop, io, from);
}

/* weft_poll: polls again after the operation is in the list, so that no change is missed. */
static int try_poll(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	int64_t result = weft__io_attempt(io, WEFT__UNKNOWN);
	int next;

	if (result != -EAGAIN || !io->deadline)
		return weft__io_done(io, result == -EAGAIN ? -ETIMEDOUT : result);
	next = begin_waiting(loop, io, fd);
	if (next == WEFT_IO_DONE && io->result == -EPERM)
		return weft__io_done(io, io->flags & (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM));
	if (next != WEFT_IO_WAITS)
		return next;
	result = weft__io_attempt(io, WEFT__UNKNOWN);
	if (result == -EAGAIN)
		return WEFT_IO_WAITS;
	leave(loop, io, fd);
	return weft__io_done(io, result);
}

/* Operations that are not simply tried: polls, splices, and operations for helper threads. */
__attribute__((noinline)) static int begin_special(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	if (!io->way)
		return WEFT_IO_BLOCKS;
	return io->kind == WEFT_IO_POLL ? try_poll(loop, io, fd) : begin_splice(loop, io, fd);
}

static int begin(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	struct weft__fd *fd = io->place;

	(void)w;
	if (__builtin_expect(io->kind >= WEFT_IO_POLL, 0) && io->kind != WEFT_IO_SENDFILE)
		return begin_special(loop, io, fd);
	if (io->kind == WEFT_IO_ACCEPT) {
		io->flags |= SOCK_NONBLOCK;
		__atomic_store_n(&fd->listens, true, __ATOMIC_RELAXED);
	}
	return try(loop, io, fd);
}

static int go_on(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	if (io->step == WEFT__PAUSED)
		return weft__io_tries_again(loop, io) ? begin(loop, w, io) : WEFT_IO_DONE;
	leave(loop, io, io->ring);
	if (is_to_try_again(io) && weft__means_the_same(loop, io)) {
		__atomic_fetch_or(&((struct weft__fd *)io->ring)->ready, io->way, __ATOMIC_RELAXED);
		return begin(loop, w, io);
	}
	if (io->waiter.result || !weft__means_the_same(loop, io))
		return weft__io_done(io, io->waiter.result ? io->waiter.result : -ECANCELED);
	return begin(loop, w, io);
}

static void close_sets(struct weft__loop *loop)
{
	if (loop->wake >= 0)
		close(loop->wake);
	if (loop->set >= 0)
		close(loop->set);
	loop->set = loop->wake = -1;
}

static const struct weft__backend backend = {"epoll", begin, go_on, forget, close_sets};

int weft__epoll_open(struct weft__loop *loop)
{
	struct epoll_event event = {EPOLLIN, {.ptr = NULL}};
	int error;

	loop->set = weft__own_fd(epoll_create1(EPOLL_CLOEXEC));
	loop->wake = loop->set < 0 ? -1 : weft__own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (loop->wake < 0 || epoll_ctl(loop->set, EPOLL_CTL_ADD, loop->wake, &event)) {
		error = -errno;
		close_sets(loop);
		return error;
	}
	loop->backend = &backend;
	loop->nonblocking = true;
	loop->source = (struct weft__source){take_in, attend,	  watch,   enter_sleep,	      sleep_in, leave_sleep,
					     wake,    unattended, expects, loop->source.free, loop->set};
	return 0;
}
