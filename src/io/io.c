/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Operations: the choice of a back end, and how operations begin and end. */
#define _GNU_SOURCE
#include "io/sim.h"
#include "sched/queue.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STREAK = 64,	  /* operations in a row that did not wait, before other tasks run */
	PAUSE = 10000000, /* nanoseconds between attempts without an event */
	DOUBLINGS = 7,	  /* of the first pause, up to PAUSE */
};

/* ---- a runtime's loop -------------------------------------------------------------------------------------------- */

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static const char *wanted(void)
{
	const char *name = getenv("WEFT_IO");

	return name ? name : "";
}

static void close_loop(struct weft__source *source)
{
	struct weft__loop *loop = (struct weft__loop *)source;
	unsigned i;

	weft__fds_remove(loop);
	loop->backend->close(loop);
	for (i = 0; i < WEFT__BLOCKS; i++)
		free((void *)atomic_load_explicit(&loop->blocks[i], memory_order_relaxed));
	free((void *)loop->blocks);
	if (loop->spare >= 0)
		close(loop->spare);
	free(loop);
}

/* WEFT_IO names a back end that is not available. Says so once; the program continues. */
static void complain(const char *name, const char *why, int error, const char *used)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		dprintf(STDERR_FILENO, "weft: WEFT_IO=%s: %s%s%s; using %s\n", name, why, error ? ": " : "",
			error ? strerror(-error) : "", used);
}

/* 0 or a negative errno. */
static int choose(struct weft__loop *loop)
{
	const char *name = wanted(), *why = NULL, *wrong = NULL;
	int error;

	if (*name && strcmp(name, "epoll") != 0 && strcmp(name, "io_uring") != 0)
		wrong = name;
	/* When a ring completes an operation for a thread that sleeps in epoll_wait, the kernel ends that sleep with
	 * EINTR. The program's own loop need not expect that. */
	if (loop->rt->embedded && (!*name || wrong) && !WEFT_CANARY(a_ring_may_interrupt))
		name = "epoll";
	if (strcmp(name, "epoll") != 0) {
		error = weft__uring_open(loop, &why);
		if (why && !strcmp(name, "io_uring"))
			complain(name, why, error, "epoll");
	}
	error = loop->backend ? 0 : weft__epoll_open(loop);
	if (wrong && !error)
		complain(wrong, "there is only epoll and io_uring", 0, loop->backend->name);
	return error;
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
	loop->spare = weft__own_fd(open("/", O_PATH | O_CLOEXEC));
	weft__fds_add(loop);
	*made = loop;
	return 0;
}

static __attribute__((noinline)) int make_loop(struct weft__rt *rt, struct weft__loop **made)
{
	struct weft__worker *w = weft__worker();
	bool in_io = w->in_io;
	int error = 0;

	w->in_io = true;
	weft__mutex_lock(&opening);
	*made = (struct weft__loop *)atomic_load(&rt->source);
	if (!*made) {
		error = open_loop(rt, made);
		/* Release: workers that sleep or look read it. (ThreadSanitizer watches descriptors, too.) */
		weft__seen_release(*made);
		atomic_store(&rt->source, (struct weft__source *)*made);
		/* Parked workers have not seen the new source. */
		w->handed_on = false;
		if (*made && rt->embedded)
			weft__embedded_add(rt, (*made)->source.descriptor);
	}
	weft__mutex_unlock(&opening);
	w->in_io = in_io;
	return error;
}

/* Returns 0 and the worker's loop, or NULL if it needs none: helper threads may block. A negative errno: the loop could
 * not be made; the next operation tries again. */
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

static void shed(struct weft__loop *loop, int listener)
{
	int fd;

	weft__spin_lock(&loop->spare_lock);
	if (loop->spare >= 0 && weft__poll_now(listener, POLLIN) > 0) {
		close(loop->spare);
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			(void)WEFT_CANARY_OR(shed_connections_stay, shutdown(fd, SHUT_RDWR), close(fd));
		loop->spare = weft__own_fd(open("/", O_PATH | O_CLOEXEC));
	}
	weft__spin_unlock(&loop->spare_lock);
}

/* ---- a task's operations ----------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void let_go(struct weft__loop *loop, weft_io_t *io)
{
	weft__let_go(loop, io);
	if (__builtin_expect(io->flags & MSG_WAITALL, 0))
		weft__io_settle(io);
}

/* The operation goes to a helper thread. It cannot be withdrawn there, so it does not begin for a cancelled task. */
static __attribute__((noinline)) int blocks(struct weft__loop *loop, weft_io_t *io)
{
	if (weft__check_cancelled()) {
		if (io->kind == WEFT_IO_OPEN)
			weft__open_abandon(io);
		io->result = -ECANCELED;
		let_go(loop, io);
		return WEFT_IO_DONE;
	}
	io->step = io->deadline && io->deadline <= weft__clock() ? WEFT__BLOCKED_LATE : WEFT__BLOCKED;
	return WEFT_IO_BLOCKS;
}

static __attribute__((noinline)) int begin_call(struct weft__loop *loop, weft_io_t *io)
{
	bool is_lookup = io->data == (void *)(uintptr_t)weft__resolve_call;
	int64_t result = -EAGAIN;

	io->place = NULL;
	if (io->deadline && io->deadline <= weft_now())
		result = -ETIMEDOUT;
	else if (is_lookup)
		result = weft__resolve_digits(io->more);
	return result == -EAGAIN ? blocks(loop, io) : weft__io_done(io, result);
}

/*
 * This worker probably runs the task at the head of its queue next. System calls since that task was suspended have
 * evicted it from the first-level cache, if not from the second. It is fetched while the current task begins to wait,
 * in two steps, because the task's record has the address of its frames: a request of 1000 connections takes 1 to 4 %
 * less time.
 */
static inline void fetch_next_task(struct weft__worker *w)
{
	const struct weft__task *next = weft__ring_peek(&w->ring);

	if (next)
		weft__prefetch_task(next);
}

/* If other workers steal from the ring the task may have ended meanwhile, so its record is not read. */
static inline void fetch_next_frames(struct weft__worker *w)
{
	const struct weft__task *next = w->ring.no_thieves ? weft__ring_peek(&w->ring) : NULL;

	if (next && next->wait)
		weft__prefetch_frames(next->wait);
}

static inline __attribute__((always_inline)) int begin_in(struct weft__worker *w, weft_io_t *io)
{
	struct weft__loop *loop;
	int next, error = find_loop(w, &loop);

	/* Blocking the worker instead could deadlock, if the operation waits for another task of this worker. */
	if (error)
		return weft__io_done(io, error);
	if (!loop) {
		if (weft__simulated())
			return weft__sim_begin(io);
		return weft__io_here(io);
	}
	if (__builtin_expect(++w->io_streak > STREAK, 0)) {
		w->io_streak = 0;
		return WEFT_IO_YIELDS;
	}
	io->way = weft__io_way(io);
	if (io->kind == WEFT_IO_CALL)
		return begin_call(loop, io);
	error = weft__hold(loop, io);
	if (__builtin_expect(error, 0))
		return weft__io_done(io, error);
	if (__builtin_expect(io->kind == WEFT_IO_OPEN, 0))
		weft__open_begin(io);
	fetch_next_task(w);
	next = loop->backend->begin(loop, w, io);
	if (next == WEFT_IO_DONE) {
		let_go(loop, io);
		return WEFT_IO_DONE;
	}
	fetch_next_frames(w);
	w->io_streak = 0;
	if (next == WEFT_IO_BLOCKS)
		return blocks(loop, io);
	weft__count(&w->io_began, 1);
	return next;
}

/* A helper thread is about to run a task's operation. -EAGAIN: it is to be done; else the result. */
static int64_t in_vain(struct weft__loop *loop, const weft_io_t *io)
{
	if (!weft__means_the_same(loop, io) || weft__check_cancelled())
		return -ECANCELED;
	if (io->step == WEFT__BLOCKED && io->deadline && io->deadline <= weft__clock())
		return -ETIMEDOUT;
	return -EAGAIN;
}

static int end_opening(struct weft__loop *loop, weft_io_t *io, int64_t result)
{
	weft__open_abandon(io);
	io->result = result;
	io->step = WEFT__OVER;
	weft__let_go(loop, io);
	return WEFT_IO_DONE;
}

/* A helper thread does not wait for the peer of a FIFO: its task does. */
static void open_for_task(struct weft__loop *loop, weft_io_t *io)
{
	int64_t result = weft__open_attempt(io);

	if (result == -EAGAIN && io->deadline && weft__open_may_wait(io))
		io->step = WEFT__TO_OPEN;
	else
		(void)end_opening(loop, io, result == -EAGAIN && weft__open_may_wait(io) ? -ETIMEDOUT : result);
}

static int wait_to_open(weft_io_t *io)
{
	io->step = WEFT__OPENING;
	weft_waiter_init(&io->waiter, "open", NULL, weft__open_pause(io));
	return WEFT_IO_WAITS;
}

/* After a pause. */
static int go_on_opening(struct weft__loop *loop, weft_io_t *io)
{
	bool is_over = weft__io_ends_in_pause(loop, io);
	int64_t result = -EAGAIN;

	if (is_over && io->result != -ETIMEDOUT)
		return end_opening(loop, io, io->result);
	if (!weft__means_the_same(loop, io))
		return end_opening(loop, io, -ECANCELED);
	if (io->other >= 0)
		result = weft__open_attempt(io);
	else if (!is_over)
		return blocks(loop, io);
	if (result == -EAGAIN && !is_over)
		return wait_to_open(io);
	return end_opening(loop, io, result == -EAGAIN ? -ETIMEDOUT : result);
}

static void do_for_task(weft_io_t *io)
{
	struct weft__loop *loop =
	    (struct weft__loop *)atomic_load_explicit(&weft__worker()->rt->source, memory_order_acquire);

	io->result = in_vain(loop, io);
	if (io->kind == WEFT_IO_OPEN) {
		if (io->result == -EAGAIN)
			open_for_task(loop, io);
		else
			(void)end_opening(loop, io, io->result);
		return;
	}
	if (io->result == -EAGAIN)
		io->result = weft__io_in_thread(loop, io);
	let_go(loop, io);
	io->step = WEFT__OVER;
}

static void do_for_thread(weft_io_t *io)
{
	int error = 0;

	io->place = NULL;
	if (io->kind != WEFT_IO_CALL)
		error = weft__hold(&weft__outside, io);
	io->result = error ? error : weft__io_in_thread(&weft__outside, io);
	if (!error)
		let_go(&weft__outside, io);
	io->step = WEFT__OVER;
}

/* Runs the whole operation, blocking: on a helper thread for a task, or in a thread that is not a task. A task's open
 * may have to be tried again. */
void *weft__io_block(void *operation)
{
	weft_io_t *io = operation;

	if (io->step == WEFT__BLOCKED || io->step == WEFT__BLOCKED_LATE)
		do_for_task(io);
	else
		do_for_thread(io);
	return NULL;
}

/* `in_io` marks calls as the runtime's, not the task's: see posix.c. Nothing in between suspends. */
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
	if (__builtin_expect(io->step == WEFT__OPENING, 0)) {
		next = go_on_opening(loop, io);
		w->in_io = false;
		return next;
	}
	next = loop->backend->go_on(loop, w, io);
	w->in_io = false;
	if (next != WEFT_IO_WAITS)
		weft__count(&w->io_ended, 1);
	if (next == WEFT_IO_DONE)
		let_go(loop, io);
	return next == WEFT_IO_BLOCKS ? blocks(loop, io) : next;
}

int weft__io_step(weft_io_t *io)
{
	struct weft__worker *w = weft__worker();
	struct weft__loop *loop = loop_of(w);

	if (io->step == WEFT__OVER)
		return WEFT_IO_DONE;
	if (io->step == WEFT__NEW)
		return begin(io);
	if (io->step == WEFT__TO_OPEN)
		return wait_to_open(io);
	return loop ? go_on(loop, w, io) : weft__sim_go_on(io);
}

void weft__io_drop(weft_io_t *io)
{
	io->result = -ECANCELED;
	io->step = WEFT__OVER;
}

uint64_t weft__io_next_pause(unsigned *pauses)
{
	unsigned doublings = *pauses < DOUBLINGS ? (*pauses)++ : DOUBLINGS;

	return PAUSE >> (DOUBLINGS - doublings);
}

int weft__io_pause(weft_io_t *io, const char *what, uint64_t time)
{
	uint64_t until = weft__clock() + time;

	io->step = WEFT__PAUSED;
	weft_waiter_init(&io->waiter, what, (void *)(intptr_t)io->fd, until < io->deadline ? until : io->deadline);
	return WEFT_IO_WAITS;
}

int weft__io_accepted(struct weft__loop *loop, weft_io_t *io, int nature)
{
	if (io->result >= 0)
		weft__fd_made((int)io->result, nature);
	if ((io->result != -EMFILE && io->result != -ENFILE) || !io->deadline)
		return WEFT_IO_DONE;
	shed(loop, io->fd);
	return weft__io_pause(io, "a free descriptor", PAUSE);
}

bool weft__io_ends_in_pause(struct weft__loop *loop, weft_io_t *io)
{
	io->result = io->waiter.result;
	if (io->result == -ETIMEDOUT && (io->deadline == WEFT_NEVER || weft__clock() < io->deadline))
		io->result = weft__means_the_same(loop, io) ? 0 : -ECANCELED;
	io->step = WEFT__NEW;
	return io->result;
}

bool weft__io_tries_again(struct weft__loop *loop, weft_io_t *io)
{
	if (!weft__io_ends_in_pause(loop, io))
		return true;
	if (io->result != -ETIMEDOUT || !weft__means_the_same(loop, io))
		return false;
	io->deadline = 0;
	return true;
}

__attribute__((constructor(104))) static void set_default(void)
{
	weft_set_default(weft_op_io, begin);
	weft__posix_meet_others();
}
