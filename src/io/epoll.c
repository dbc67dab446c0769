/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * I/O by epoll. A runtime has one set of descriptors, which any worker may ask, and in which one of those that have
 * nothing to do sleeps.
 *
 * A descriptor is registered when an operation waits for it first, for changes (EPOLLET) in all directions, and stays
 * so until it is closed. Its record remembers in `ready` what may be done:
 *   an attempt clears its direction first, and then tries; success that left something over sets it again
 *   an event sets it, and wakes the first that waits for this direction
 *   an operation whose attempt fails looks at it under the lock before it waits
 * so an event between an attempt and the wait is not lost. Who was woken and does not use up what there is, or does not
 * use it at all because its wait has ended, wakes the next.
 * When the other side has hung up, nothing is cleared any more: data and end may have come in one event.
 *
 * weft_poll waits for descriptors that others may close: it registers them for as long as it waits, for what is asked
 * for alone, and asks poll itself when something has changed.
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

/* Under the lock. `count` is read without it: see finish. */
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

/* Under the lock. The first that waits for one of these directions; one whose wait has ended passes it on itself. And
 * all that only poll, because they use nothing up, and may have asked for different things. */
static void wake_first(struct weft__fd *fd, uint8_t way)
{
	bool uses = false;
	weft_io_t *io;

	for (io = fd->first; io; io = io->next) {
		if (!(io->way & way) || (uses && io->kind != WEFT_IO_POLL) || !weft_waiter_claim(&io->waiter, 0))
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

/* Kernels before 5.11 know only milliseconds: rounded up, so that nobody wakes too early again and again. */
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
	/* EPERM: a filter of system calls that is older than this one. */
	if (count < 0 && (errno == ENOSYS || errno == EPERM))
		__atomic_store_n(&loop->coarse, true, __ATOMIC_RELAXED);
	return count;
}

/* By the worker that sleeps here: who only looks must not take its wake-up away. It may have been for another one, who
 * had left before it came. */
static void read_wake(struct weft__loop *loop)
{
	uint64_t count;

	while (read(loop->wake, &count, sizeof count) < 0 && errno == EINTR)
		;
}

/* The kernel's answer. True: there may be more. */
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

/* Whoever takes in, takes in all. */
static void attend(struct weft__source *source, struct weft__worker *w, struct weft__worker *held)
{
	(void)source;
	(void)w;
	(void)held;
}

/* The set is everybody's. */
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

/* By which operations of this direction always end at once, whether or not the direction's own bit is set: that may be
 * cleared just after an event has set both. */
static uint8_t ends_of(uint8_t way)
{
	return way & WEFT__IN ? WEFT__HUNG_UP | WEFT__NO_MORE : WEFT__HUNG_UP;
}

/* What those ask for that only poll: nothing else, or what always is (room to write) would wake them on and on. */
static uint32_t polled_for(const struct weft__fd *fd, const weft_io_t *io)
{
	uint32_t events = EPOLLET | (unsigned short)io->flags;
	const weft_io_t *other;

	for (other = fd->first; other; other = other->next)
		events |= (unsigned short)other->flags;
	return events;
}

/* Under the lock. -EPERM: it cannot be waited for. */
static int register_fd(struct weft__loop *loop, struct weft__fd *fd, int number, const weft_io_t *io)
{
	struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET, {.ptr = fd}};
	bool polled = fd->nature == WEFT__UNKNOWN;
	int error;

	if (fd->registered && !fd->polled)
		return 0;
	if (polled && !WEFT_CANARY(polls_wake_for_anything))
		event.events = polled_for(fd, io);
	/* Release: pairs with `ask`, where the record's address comes back from the kernel. */
	atomic_fetch_add_explicit(&loop->registrations, 1, memory_order_release);
	/* By a descriptor of the same number, and maybe file, that was not closed here: it has one, or has none any
	 * more. */
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

/* A file has nothing to tell: who asks for nothing that it always is waits until the deadline, as for poll. */
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

/* Done with waiting. */
static void leave(struct weft__loop *loop, weft_io_t *io, struct weft__fd *fd)
{
	weft__task_lock_near(&fd->lock);
	take_out(fd, io);
	if (fd->nature == WEFT__UNKNOWN && !fd->first && !weft__is_closing(fd))
		forget(loop, io->fd, fd);
	weft__task_unlock(&fd->lock);
}

/* Another may wait for the same, and was not woken while this one was at it. It is seen here, or it sees that the
 * descriptor is ready: begin_waiting. */
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

/* Clears what the attempt is about to use, unless the other side is gone. True: it is worth an attempt. */
static inline __attribute__((always_inline)) bool claim_readiness(struct weft__fd *fd, uint8_t way)
{
	uint8_t ready = __atomic_load_n(&fd->ready, __ATOMIC_RELAXED);

	if (!(ready & (way | ends_of(way))))
		return false;
	if (!(ready & ends_of(way)))
		__atomic_fetch_and(&fd->ready, (uint8_t)~way, __ATOMIC_RELAXED);
	return true;
}

/* The number that an operation waits for: mostly the descriptor that it names first; a splice waits for either. */
static int number_of(const weft_io_t *io, const struct weft__fd *fd)
{
	return fd == io->place ? io->fd : io->other;
}

static bool is_to_try_again(const weft_io_t *io)
{
	return io->waiter.result == -ETIMEDOUT && io->waiter.timer.at != io->deadline;
}

/* Into the descriptor's list. WEFT_IO_YIELDS: it is ready by now. */
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

/* Bytes alone, of which nothing but their coming need be told. A listener and a device may have errors to tell. */
static bool is_plain(const struct weft__fd *fd, int nature)
{
	return !__atomic_load_n(&fd->listens, __ATOMIC_RELAXED) &&
	       (nature == WEFT__STREAM || nature == WEFT__UNIX || nature == WEFT__PIPE);
}

/* -EAGAIN: it is to wait. */
static int64_t attempt(weft_io_t *io, struct weft__fd *fd, int nature)
{
	const uint8_t ends = ends_of(io->way);
	uint8_t gone;
	int64_t result;

	/* Nobody says when it is ready before it is registered; who does not wait wants to know it now. */
	if (!claim_readiness(fd, io->way) && io->deadline && __atomic_load_n(&fd->registered, __ATOMIC_RELAXED) &&
	    is_plain(fd, nature) && !weft__io_must_ask(io, nature))
		return -EAGAIN;
	result = attempt_once(io, fd, nature);
	gone = __atomic_load_n(&fd->ready, __ATOMIC_RELAXED) & ends;
	/* An operation that does not wait leaves the readiness as it is: the next one may have to tell the end. */
	if (result == -EAGAIN && gone && !weft__io_does_not_wait(io)) {
		/* The other side is not gone any more: the socket has begun to connect. Cleared before it is tried,
		 * or an event in between would be lost. */
		__atomic_fetch_and(&fd->ready, (uint8_t) ~(ends | io->way), __ATOMIC_RELAXED);
		result = attempt_once(io, fd, nature);
		if (result == -EAGAIN && gone & WEFT__NO_MORE)
			result = weft__io_attempt_shut(io, nature);
		/* It is gone all the same, and nothing will say so once more. */
		if (result != -EAGAIN)
			__atomic_fetch_or(&fd->ready, gone, __ATOMIC_RELAXED);
	}
	return result;
}

/*
 * After an attempt that returned -EAGAIN, and took the descriptor's readiness: give it back if there may be something
 * for other receives, because no event tells of it again. An empty queue of errors says nothing of data. A peek may
 * have passed all data that are there (SO_PEEK_OFF). A descriptor whose other side has ended stays ready by itself.
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
 * A splice waits for its input, or for room in its output, whichever is missing. What is missing is known only after an
 * attempt; a change that comes before the wait is seen, because the attempt before it has cleared the side's readiness.
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

/* weft_poll: asked after it is in the list, so that no change is missed. */
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

/* Operations that are not just tried: polls, splices, and those for helper threads. */
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
