/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/posix.h's base: the kind of a caller, how a task waits, which waits a close ends, and meeting libweft-posix.so.
 *
 * A task is pinned to its worker while it waits here, so that it continues in the thread in which it called: foreign
 * code may have kept the address of errno, or of any thread-local variable, in a register.
 */
#define _GNU_SOURCE
#include "io/posix.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

struct weft__calls weft__libc = {
#define NAMED(result, name, parameters, arguments) .name = name,
    WEFT__POSIX_CALLS(NAMED)
#undef NAMED
};

static const struct weft__calls mine = {
#define NAMED(result, name, parameters, arguments) .name = weft_posix_##name,
    WEFT__POSIX_CALLS(NAMED)
#undef NAMED
};

static pid_t process; /* the process that the runtimes belong to */

/* ---- callers ----------------------------------------------------------------------------------------------------- */

/* The calling task's worker; NULL if the runtime itself makes the call on behalf of a task. */
static struct weft__worker *worker(void)
{
	struct weft__worker *w = weft__worker();

	return w && w->current && !w->helper && !w->in_io ? w : NULL;
}

static __thread const struct weft__posix_waits *waits;

void weft__posix_set_waits(const struct weft__posix_waits *how)
{
	waits = how;
}

bool weft__posix_in_task(void)
{
	struct weft__worker *w = worker();

	return waits || (w && !w->rt->sim);
}

struct weft__task *weft__posix_task(void)
{
	struct weft__worker *w = worker();

	return w && !w->rt->sim ? w->current : NULL;
}

bool weft__posix_simulated(void)
{
	struct weft__worker *w = worker();

	return w && w->rt->sim;
}

/* A child of vfork uses its parent's memory, and a child of fork has no workers: neither may wait in the runtime. */
bool weft__posix_may_wait(void)
{
	stack_t now;

	if (getpid() != __atomic_load_n(&process, __ATOMIC_RELAXED))
		return false;
	return sigaltstack(NULL, &now) || !(now.ss_flags & SS_ONSTACK);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

struct hold {
	struct weft__task *task;
	struct weft__worker *pinned;
	int error;
};

/* Marks the task's locks: other tasks must not block their threads for a lock whose owner is suspended. */
static void mark_locks(struct weft__task *task, bool is_suspended)
{
#ifdef __GLIBC__
	if (!task->rt->sim && task->locks)
		weft__posix_mark_locks(task, is_suspended);
#else
	(void)task, (void)is_suspended;
#endif
}

static __attribute__((noinline)) void hold(struct hold *h)
{
	struct weft__worker *w = weft__worker();

	h->error = errno;
	h->task = w->current;
	h->pinned = h->task->pinned;
	if (!WEFT_CANARY(posix_moves))
		h->task->pinned = w;
	mark_locks(h->task, true);
}

static __attribute__((noinline)) void let_go(const struct hold *h)
{
	mark_locks(h->task, false);
	h->task->pinned = h->pinned;
	errno = h->error;
}

int weft__posix_use_begin(struct weft__use *use, int fd)
{
	*use = (struct weft__use){.number = fd};
	return waits ? 0 : weft__use_begin(use, fd);
}

int64_t weft__posix_run(weft_io_t *io)
{
	struct hold h;

	hold(&h);
	(void)weft__io_run(io);
	let_go(&h);
	return io->result;
}

static int wait_for(int fd, int events, uint64_t deadline, struct weft__use *use)
{
	weft_io_t io = {.kind = WEFT_IO_POLL, .fd = fd, .flags = events, .data = use, .deadline = deadline};

	return waits ? waits->wait(fd, events, deadline) : (int)weft__posix_run(&io);
}

int weft__posix_wait_used(struct weft__use *use, int events, uint64_t deadline)
{
	int result = wait_for(use->number, events, deadline, use);

	/* An -ECANCELED may come from the close, not from a cancellation of the task. */
	return weft__use_is_good(use) ? result : -EBADF;
}

int weft__posix_wait_set(int set, struct weft__use *uses, uint64_t deadline)
{
	int result = wait_for(set, POLLIN, deadline, uses);

	return weft__use_is_good(uses) ? result : -EBADF;
}

int weft__posix_wait(int fd, int events, uint64_t deadline)
{
	return wait_for(fd, events, deadline, NULL);
}

bool weft__posix_has_ring(void)
{
	const struct weft__loop *loop = waits ? NULL : weft__loop();

	return loop && !loop->nonblocking;
}

int64_t weft__posix_call(weft_io_call_t *fn, void *argument)
{
	weft_io_t io = {.kind = WEFT_IO_CALL, .fd = -1, .data = (void *)(uintptr_t)fn, .more = argument};

	io.deadline = WEFT_NEVER;
	return waits ? waits->call(fn, argument) : weft__posix_run(&io);
}

int weft__posix_sleep(uint64_t until)
{
	weft_waiter_t w;
	struct hold h;

	if (waits)
		return waits->sleep(until);
	hold(&h);
	weft_waiter_init(&w, "sleep", NULL, until);
	(void)weft_wait(&w);
	let_go(&h);
	return w.result == -ETIMEDOUT ? 0 : w.result;
}

void weft__posix_park(weft_waiter_t *w)
{
	struct hold h;

	hold(&h);
	weft_shield_begin();
	(void)weft_wait(w);
	weft_shield_end();
	let_go(&h);
}

void weft__posix_yield(void)
{
	struct hold h;

	if (waits) {
		waits->yield();
		return;
	}
	hold(&h);
	(void)weft_op_yield();
	let_go(&h);
}

__attribute__((noinline)) int weft__posix_fail(int error)
{
	errno = error;
	return -1;
}

uint64_t weft__posix_after(int64_t seconds, int64_t nanoseconds)
{
	uint64_t now = weft_now();

	if (seconds < 0 || (uint64_t)seconds > (WEFT_NEVER - now) / WEFT__NANOSECONDS - 1)
		return seconds < 0 ? now : WEFT_NEVER;
	return now + (uint64_t)seconds * WEFT__NANOSECONDS + (uint64_t)nanoseconds;
}

bool weft__posix_blocks(int fd)
{
	int flags = weft__flags(fd);

	return flags >= 0 && !(flags & O_NONBLOCK);
}

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
static struct weft__posix_turn *turns; /* under the lock */

static bool is_taken(int fd)
{
	const struct weft__posix_turn *t = turns;

	while (t && t->fd != fd)
		t = t->next;
	return t;
}

void weft__posix_turn_begin(struct weft__posix_turn *turn, int fd)
{
	weft__mutex_lock(&turns_lock);
	while (is_taken(fd))
		pthread_cond_wait(&turn_ended, &turns_lock);
	*turn = (struct weft__posix_turn){fd, turns};
	turns = turn;
	weft__mutex_unlock(&turns_lock);
}

void weft__posix_turn_end(const struct weft__posix_turn *turn)
{
	struct weft__posix_turn **link = &turns;

	weft__mutex_lock(&turns_lock);
	while (*link != turn)
		link = &(*link)->next;
	*link = turn->next;
	pthread_cond_broadcast(&turn_ended);
	weft__mutex_unlock(&turns_lock);
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* A signal handler that interrupted the runtime while it changed its tables must not touch them. */
static bool in_runtime(void)
{
	const struct weft__worker *w = weft__worker();

	return w && w->in_io;
}

static int libc_close(int fd)
{
	return weft__libc.close(fd) ? -errno : 0;
}

int weft_posix_close(int fd)
{
	int error = errno, result;

	if (in_runtime() || !weft__fds_knows(fd))
		return weft__libc.close(fd);
	result = weft__fds_close(fd, libc_close);
	errno = error;
	return (int)weft__posix_result(result);
}

static void closing(int fd)
{
	int error = errno;

	if (!in_runtime() && weft__fds_knows(fd))
		weft__fds_end_waits(fd);
	errno = error;
}

struct replacement {
	int fd, number, flags;
	bool flagged;
};

static int replace(void *argument)
{
	const struct replacement *r = argument;

	return r->flagged ? weft__libc.dup3(r->fd, r->number, r->flags) : weft__libc.dup2(r->fd, r->number);
}

/* errno is libc's. */
static int replace_known(struct replacement *r)
{
	if (r->fd == r->number || in_runtime() || !weft__fds_knows(r->number))
		return replace(r);
	return weft__fds_replace(r->number, replace, r);
}

int weft_posix_dup2(int fd, int number)
{
	return replace_known(&(struct replacement){fd, number, 0, false});
}

int weft_posix_dup3(int fd, int number, int flags)
{
	return replace_known(&(struct replacement){fd, number, flags, true});
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static bool in_task(void)
{
	return worker();
}

static bool begun; /* atomic: has a runtime begun? */

static bool was_used(void)
{
	return __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

static const struct weft__posix posix = {
    .version = WEFT__POSIX_VERSION,
    .bytes = sizeof(struct weft__calls),
    .in_task = in_task,
    .was_used = was_used,
    .closing = closing,
#ifdef __GLIBC__
    .unlocked = weft__posix_unlocked,
    .guard_acquire = weft__posix_guard_acquire,
    .guard_end = weft__posix_guard_end,
#endif
    .slack_usual = weft__slack_usual,
    .mine = &mine,
    .libc = &weft__libc,
};

static void note_process(void)
{
	__atomic_store_n(&process, getpid(), __ATOMIC_RELAXED);
}

/* dlsym, because only the dynamic linker knows whether the shared object is loaded. A child of fork uses libc, because
 * the runtimes belong to its parent; it may begin runtimes of its own. */
void weft__posix_meet_others(void)
{
	weft__posix_meet_t *other = (weft__posix_meet_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "weft__posix_meet");

	note_process();
	if (!other)
		return;
	other(&posix);
#ifdef __GLIBC__
	weft__mutex_calls = (struct weft__mutex_calls){weft__libc.pthread_mutex_lock, weft__libc.pthread_mutex_unlock};
	(void)pthread_atfork(NULL, NULL, weft__posix_forget_locks);
#endif
}

void weft__posix_begin(void)
{
	__atomic_store_n(&begun, true, __ATOMIC_RELAXED);
	note_process();
}
