/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Operations: which back end does them, what a runtime knows of descriptors, and what happens outside of tasks.
 *
 * A descriptor's record is found by its number, in a table of blocks that are made when they are needed and stay until
 * the runtime ends: a pointer to a record stays good, and an event that comes late finds it.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STREAK = 64,	  /* operations in a row that did not wait, before others get their turn */
	PAUSE = 10000000, /* nanoseconds: where no descriptor is left */
};

/* ---- a runtime's loop -------------------------------------------------------------------------------------------- */

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct weft__loop *loops; /* under it */

static const char *wanted(void)
{
	const char *name = getenv("WEFT_IO");

	return name ? name : "";
}

static void close_loop(struct weft__source *source)
{
	struct weft__loop *loop = (struct weft__loop *)source;
	struct weft__loop **link = &loops;
	unsigned i;

	pthread_mutex_lock(&opening);
	while (*link != loop)
		link = &(*link)->next;
	*link = loop->next;
	pthread_mutex_unlock(&opening);
	loop->backend->close(loop);
	for (i = 0; i < WEFT__BLOCKS; i++)
		free((void *)atomic_load_explicit(&loop->blocks[i], memory_order_relaxed));
	free((void *)loop->blocks);
	if (loop->spare >= 0)
		close(loop->spare);
	free(loop);
}

/* WEFT_IO asks for something that there is not. Once, and then the program goes on. */
static void complain(const char *name, const char *why, int error)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		dprintf(STDERR_FILENO, "weft: WEFT_IO=%s: %s%s%s; epoll does it\n", name, why, error ? ": " : "",
			error ? strerror(-error) : "");
}

/* 0 or a negative errno. */
static int choose(struct weft__loop *loop)
{
	const char *name = wanted(), *why = NULL;
	int error;

	if (*name && strcmp(name, "epoll") != 0 && strcmp(name, "io_uring") != 0)
		complain(name, "there is only epoll and io_uring", 0);
	/* Where a ring completes something for a thread that sleeps in epoll_wait, the kernel ends that sleep by EINTR.
	 * A loop of the program's own need not expect this of us. */
	if (loop->rt->embedded && !*name && !WEFT_CANARY(a_ring_may_interrupt))
		name = "epoll";
	if (strcmp(name, "epoll") != 0) {
		error = weft__uring_open(loop, &why);
		if (!why)
			return 0;
		if (!strcmp(name, "io_uring"))
			complain(name, why, error);
	}
	return weft__epoll_open(loop);
}

static void free_loop(struct weft__loop *loop)
{
	free((void *)loop->blocks);
	free(loop);
}

static int open_loop(struct weft__rt *rt, struct weft__loop **made)
{
	struct weft__loop *loop = calloc(1, sizeof *loop);
	int error;

	if (!loop)
		return -ENOMEM;
	loop->rt = rt;
	loop->blocks = calloc(WEFT__BLOCKS, sizeof *loop->blocks);
	loop->spare = -1;
	loop->source.free = close_loop;
	error = loop->blocks ? choose(loop) : -ENOMEM;
	if (error) {
		if (!WEFT_CANARY(failed_loops_stay))
			free_loop(loop);
		return error;
	}
	loop->spare = open("/", O_PATH | O_CLOEXEC);
	loop->next = loops;
	loops = loop;
	*made = loop;
	return 0;
}

static __attribute__((noinline)) int make_loop(struct weft__rt *rt, struct weft__loop **made)
{
	struct weft__worker *w = weft__worker();
	bool in_io = w->in_io;
	int error = 0;

	w->in_io = true;
	pthread_mutex_lock(&opening);
	*made = (struct weft__loop *)atomic_load(&rt->source);
	if (!*made) {
		error = open_loop(rt, made);
		/* Release: workers that sleep or look read it. (ThreadSanitizer watches descriptors, too.) */
		weft__seen_release(*made);
		atomic_store(&rt->source, (struct weft__source *)*made);
		/* Those that are parked know nothing of it. */
		w->handed_on = false;
		if (*made && rt->embedded)
			weft__embedded_add(rt, (*made)->source.descriptor);
	}
	pthread_mutex_unlock(&opening);
	w->in_io = in_io;
	return error;
}

/* 0: the worker's loop, or NULL where there is none: helpers may block, that is what they are for. A negative errno: it
 * could not be made; the next operation tries again. */
static inline __attribute__((always_inline)) int find_loop(struct weft__worker *w, struct weft__loop **loop)
{
	struct weft__source *source;

	*loop = NULL;
	if (!w || !w->current || w->helper || w->rt->sim)
		return 0;
	source = atomic_load_explicit(&w->rt->source, memory_order_acquire);
	if (__builtin_expect(!source, 0))
		return make_loop(w->rt, loop);
	weft__seen_acquire(source);
	*loop = (struct weft__loop *)source;
	return 0;
}

static struct weft__loop *loop_of(struct weft__worker *w)
{
	struct weft__loop *loop;

	return find_loop(w, &loop) ? NULL : loop;
}

int weft__loop_find(struct weft__loop **loop)
{
	return find_loop(weft__worker(), loop);
}

struct weft__loop *weft__loop(void)
{
	return loop_of(weft__worker());
}

const char *weft_io_backend(void)
{
	struct weft__worker *w = weft__worker();
	struct weft__loop *loop = loop_of(w);

	if (loop)
		return loop->backend->name;
	return weft__simulated() ? "simulated" : "threads";
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

struct weft__fd *weft__fd_make_block(struct weft__loop *loop, int number)
{
	struct weft__fd *_Atomic *at = &loop->blocks[number / WEFT__BLOCK];
	struct weft__fd *block = calloc(WEFT__BLOCK, sizeof *block), *other = NULL;

	/* Another worker may be as fast. */
	if (block && !atomic_compare_exchange_strong(at, &other, block)) {
		free(block);
		block = other;
	}
	return block;
}

static enum weft__nature nature_of_socket(int number)
{
	int type = 0;
	socklen_t size = sizeof type;

	return !getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM ? WEFT__STREAM
											     : WEFT__MESSAGES;
}

static int find_nature(struct weft__loop *loop, int number)
{
	struct stat status;
	int flags;

	if (fstat(number, &status))
		return -errno;
	if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))
		return WEFT__FILE;
	flags = fcntl(number, F_GETFL);
	if (!S_ISSOCK(status.st_mode))
		return flags & O_NONBLOCK ? WEFT__PIPE : WEFT__BLOCKING_PIPE;
	/* Not every operation of a socket can be told not to block. */
	if (loop->nonblocking && !(flags & O_NONBLOCK))
		(void)fcntl(number, F_SETFL, flags | O_NONBLOCK);
	return nature_of_socket(number);
}

int weft__fd_learn(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	int nature = find_nature(loop, number);

	if (nature > 0) {
		__atomic_store_n(&fd->ready, WEFT__IN | WEFT__OUT, __ATOMIC_RELAXED);
		__atomic_store_n(&fd->nature, (uint8_t)nature, __ATOMIC_RELEASE);
	}
	return nature;
}

void weft__fd_made(int number, enum weft__nature nature)
{
	struct weft__loop *loop = weft__loop();
	struct weft__fd *fd = loop ? weft__fd(loop, number) : NULL;

	if (!fd)
		return;
	weft__task_lock(&fd->lock);
	/* Somebody closed an earlier one by close, which the kernel has forgotten, too. */
	fd->registered = false;
	__atomic_store_n(&fd->ready, WEFT__IN | WEFT__OUT, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->nature, (uint8_t)nature, __ATOMIC_RELEASE);
	weft__task_unlock(&fd->lock);
}

void weft__fd_end(struct weft__fd *fd, int number)
{
	fd->closing = false;
	close(number);
}

/* Linux has closed it also where a signal came in between. */
static int close_now(int number)
{
	return close(number) && errno != EINTR ? -errno : 0;
}

/* Operations that wait for the descriptor end, each by its own task, and the last of them lets go of the number. Until
 * then something that can neither be read nor written has the number, so that the other side sees the end at once; if
 * that fails, the other side sees it when the last operation has ended. */
static void close_used(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	weft_io_t *io;

	if (loop->spare >= 0)
		(void)dup3(loop->spare, number, O_CLOEXEC);
	fd->closing = true;
	for (io = fd->first; io; io = io->next)
		if (weft_waiter_claim(&io->waiter, -ECANCELED))
			weft_waiter_complete(&io->waiter);
}

static int close_known(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	int error = 0;

	weft__task_lock(&fd->lock);
	if (fd->closing) {
		error = -EBADF;
	} else {
		loop->backend->forget(loop, number, fd);
		fd->nature = WEFT__UNKNOWN;
		fd->ready = 0;
		if (fd->first)
			close_used(loop, fd, number);
		else
			error = close_now(number);
	}
	weft__task_unlock(&fd->lock);
	return error;
}

static void abandon(struct weft__loop *loop, int number, int reason)
{
	struct weft__fd *block = NULL, *fd;
	weft_io_t *io;

	if (number < WEFT__BLOCKS * WEFT__BLOCK)
		block = atomic_load_explicit(&loop->blocks[number / WEFT__BLOCK], memory_order_acquire);
	if (!block)
		return;
	fd = &block[number % WEFT__BLOCK];
	weft__spin_lock(&fd->lock);
	weft__seen_acquire(&fd->lock);
	/* What weft/io.h uses is closed by weft_close. */
	if (fd->nature == WEFT__UNKNOWN && fd->first && !fd->closing && !WEFT_CANARY(posix_forgets_waiters)) {
		loop->backend->forget(loop, number, fd);
		for (io = fd->first; io; io = io->next)
			if (weft_waiter_claim(&io->waiter, reason))
				weft_waiter_complete(&io->waiter);
	}
	weft__task_unlock(&fd->lock);
}

void weft__loops_abandon(int number, int reason)
{
	struct weft__loop *loop;

	pthread_mutex_lock(&opening);
	for (loop = loops; loop; loop = loop->next)
		abandon(loop, number, reason);
	pthread_mutex_unlock(&opening);
}

bool weft__loop_knows(int number)
{
	struct weft__loop *loop = weft__loop();
	struct weft__fd *fd = loop ? weft__fd(loop, number) : NULL;

	return fd && __atomic_load_n(&fd->nature, __ATOMIC_ACQUIRE) != WEFT__UNKNOWN;
}

static int close_in(struct weft__source *source, int number)
{
	struct weft__fd *fd = source ? weft__fd((struct weft__loop *)source, number) : NULL;

	if (fd)
		return close_known((struct weft__loop *)source, fd, number);
	return close_now(number);
}

int weft_close(int number)
{
	struct weft__worker *w = weft__worker();
	struct weft__source *source =
	    w && !w->rt->sim ? atomic_load_explicit(&w->rt->source, memory_order_acquire) : NULL;
	int result;

	if (weft__sim_has(number))
		return weft__sim_close(number);
	if (w)
		w->in_io = true;
	result = close_in(source, number);
	if (w)
		w->in_io = false;
	return result;
}

static void shed(struct weft__loop *loop, int listener)
{
	struct pollfd waiting = {listener, POLLIN, 0};
	int fd;

	weft__spin_lock(&loop->spare_lock);
	if (loop->spare >= 0 && poll(&waiting, 1, 0) > 0) {
		close(loop->spare);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			(void)WEFT_CANARY_OR(shed_connections_stay, shutdown(fd, SHUT_RDWR), close(fd));
		loop->spare = open("/", O_PATH | O_CLOEXEC);
	}
	weft__spin_unlock(&loop->spare_lock);
}

/* ---- a task's operations ----------------------------------------------------------------------------------------- */

/* Others get their turn also when nothing makes this task wait. */
static int done(struct weft__worker *w, weft_io_t *io, int next)
{
	if (next != WEFT_IO_DONE) {
		w->io_streak = 0;
		if (next == WEFT_IO_WAITS)
			weft__count(&w->io_began, 1);
		return next;
	}
	if (++w->io_streak < STREAK)
		return WEFT_IO_DONE;
	w->io_streak = 0;
	io->step = WEFT__OVER;
	return WEFT_IO_YIELDS;
}

static int begin_call(weft_io_t *io)
{
	bool is_lookup = io->data == (void *)(uintptr_t)weft__resolve;
	int64_t result = -EAGAIN;

	if (io->deadline && io->deadline <= weft_now())
		result = -ETIMEDOUT;
	else if (is_lookup)
		result = weft__resolve_digits(io->more);
	return result == -EAGAIN ? WEFT_IO_BLOCKS : weft__io_done(io, result);
}

static inline __attribute__((always_inline)) int begin_in(struct weft__worker *w, weft_io_t *io)
{
	struct weft__loop *loop;
	int error = find_loop(w, &loop);

	/* To block the worker instead could make it wait for ever: for another task of its own. */
	if (error)
		return weft__io_done(io, error);
	if (!loop) {
		if (weft__simulated())
			return weft__sim_begin(io);
		weft__io_block(io);
		return WEFT_IO_DONE;
	}
	io->way = weft__io_way(io);
	if (io->kind == WEFT_IO_CALL)
		return begin_call(io);
	return done(w, io, loop->backend->begin(loop, w, io));
}

/* What is called here is not what the task calls: see posix.c. Nothing in between suspends. */
static int begin(weft_io_t *io)
{
	struct weft__worker *w = weft__worker();
	int next;

	if (w)
		w->in_io = true;
	next = begin_in(w, io);
	if (w)
		w->in_io = false;
	return next;
}

static inline int go_on(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	int next;

	w->in_io = true;
	next = loop->backend->go_on(loop, w, io);
	w->in_io = false;
	if (next != WEFT_IO_WAITS)
		weft__count(&w->io_ended, 1);
	return next;
}

int weft__io_step(weft_io_t *io)
{
	struct weft__worker *w = weft__worker();
	struct weft__loop *loop = loop_of(w);

	if (io->step == WEFT__OVER)
		return WEFT_IO_DONE;
	return loop ? go_on(loop, w, io) : weft__sim_go_on(io);
}

int weft__io_pause(weft_io_t *io, uint64_t time)
{
	uint64_t until = weft__clock() + time;

	io->step = WEFT__PAUSED;
	weft_waiter_init(&io->waiter, "a free descriptor", NULL, until < io->deadline ? until : io->deadline);
	return WEFT_IO_WAITS;
}

int weft__io_accepted(struct weft__loop *loop, weft_io_t *io, int nature)
{
	if (io->result >= 0)
		weft__fd_made((int)io->result, nature);
	if ((io->result != -EMFILE && io->result != -ENFILE) || !io->deadline)
		return WEFT_IO_DONE;
	shed(loop, io->fd);
	return weft__io_pause(io, PAUSE);
}

bool weft__io_ends_in_pause(weft_io_t *io)
{
	io->result = io->waiter.result;
	if (io->result == -ETIMEDOUT && (io->deadline == WEFT_NEVER || weft__clock() < io->deadline))
		return false;
	return true;
}

__attribute__((constructor(104))) static void set_default(void)
{
	weft_set_default(weft_op_io, begin);
}
