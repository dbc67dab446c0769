/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/posix.h: waiting for descriptors, time, child processes and names.
 *
 * poll and select of several descriptors wait for an epoll set that is made for the call, and then call libc's function
 * without a timeout: so the results are libc's. A call with a signal mask, which belongs to a thread, is done by a
 * helper thread.
 */
#define _GNU_SOURCE
#include "io/posix.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* Has the timeout passed? Then calls with a timeout return 0. */
static bool is_over(int ready)
{
	return ready == -ETIMEDOUT;
}

static uint64_t after_milliseconds(int timeout)
{
	return timeout < 0 ? WEFT_NEVER : weft__posix_after(timeout / 1000, (int64_t)(timeout % 1000) * 1000000);
}

static bool is_valid(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < WEFT__NANOSECONDS;
}

static uint64_t left_until(uint64_t until)
{
	uint64_t now = weft_now();

	return until > now ? until - now : 0;
}

/* Defines a call that only libc can do, on a helper thread. */
#define BY_HELPER(result_type, call, ...)                                                                              \
	struct call##_call {                                                                                           \
		__VA_ARGS__                                                                                            \
	};                                                                                                             \
	static result_type do_##call(const struct call##_call *c);                                                     \
	static int64_t call##_by_helper(void *c)                                                                       \
	{                                                                                                              \
		int64_t result = do_##call(c);                                                                         \
		return result < 0 ? -errno : result;                                                                   \
	}                                                                                                              \
	static result_type do_##call(const struct call##_call *c)

/* ---- poll -------------------------------------------------------------------------------------------------------- */

BY_HELPER(int, ppoll, struct pollfd *fds; nfds_t count; const struct timespec *timeout; const sigset_t *mask;)
{
	return weft__libc.ppoll(c->fds, c->count, c->timeout, c->mask);
}

int weft__posix_poll_now(struct pollfd *fds, nfds_t count)
{
	int result, error = errno;

	do
		result = weft__libc.poll(fds, count, 0);
	while (weft__posix_interrupted(result));
	/* Callers poll in the middle of a call that has failed: an interruption must not replace that call's errno. */
	if (result >= 0)
		errno = error;
	return result;
}

/* The events of all entries for a descriptor. */
static uint32_t events_of(const struct pollfd *fds, nfds_t count, int fd)
{
	uint32_t events = 0;
	nfds_t i;

	for (i = 0; i < count; i++)
		if (fds[i].fd == fd)
			events |= (unsigned short)fds[i].events;
	return events;
}

/* An epoll set of the descriptors; a negative errno. -EBADF: poll reports a closed descriptor as ready. A file, which
 * epoll refuses, is always ready for reads and writes, and has no other event. */
static int make_set(const struct pollfd *fds, nfds_t count)
{
	int set = epoll_create1(EPOLL_CLOEXEC), error = set < 0 ? errno : 0;
	struct epoll_event event = {0, {0}};
	nfds_t i;

	for (i = 0; i < count && !error; i++) {
		if (fds[i].fd < 0)
			continue;
		event.events = (unsigned short)fds[i].events;
		if (!epoll_ctl(set, EPOLL_CTL_ADD, fds[i].fd, &event) || errno == EPERM)
			continue;
		event.events = events_of(fds, count, fds[i].fd);
		if (errno != EEXIST || epoll_ctl(set, EPOLL_CTL_MOD, fds[i].fd, &event))
			error = errno;
	}
	if (!error)
		return set;
	if (set >= 0)
		weft__libc.close(set);
	return -error;
}

/* For lack of a descriptor or memory for a set. */
static int poll_by_helper(struct pollfd *fds, nfds_t count, uint64_t until)
{
	struct timespec time = weft__timespec(until == WEFT_NEVER ? 0 : left_until(until));
	struct ppoll_call c = {fds, count, until == WEFT_NEVER ? NULL : &time, NULL};

	return (int)weft__posix_result(weft__posix_call(ppoll_by_helper, &c));
}

static void end_uses(struct weft__use *uses, nfds_t count)
{
	int error = errno;

	for (nfds_t i = 0; i < count; i++)
		weft__use_end(&uses[i]);
	errno = error;
}

/* 0, or a negative errno; after an error none of the descriptors is in use. */
static int begin_uses(struct weft__use *uses, const struct pollfd *fds, nfds_t count)
{
	int error = 0;
	nfds_t i;

	for (i = 0; i < count && !error; i++) {
		uses[i] = (struct weft__use){.number = -1};
		if (fds[i].fd >= 0)
			error = weft__posix_use_begin(&uses[i], fds[i].fd);
	}
	if (error)
		end_uses(uses, i);
	else
		uses->more = count - 1;
	return error;
}

/* Some descriptors have been closed, or replaced by dup2, which libc's poll would not notice. */
static int say_which_closed(struct pollfd *fds, struct weft__use *uses, nfds_t count)
{
	int result = weft__posix_poll_now(fds, count);

	uses->more = 0;
	for (nfds_t i = 0; i < count; i++)
		if (!weft__use_is_good(&uses[i])) {
			result += !fds[i].revents;
			fds[i].revents = POLLNVAL;
		}
	return result;
}

static int poll_set(int set, struct pollfd *fds, struct weft__use *uses, nfds_t count, uint64_t until)
{
	int ready, result;

	do {
		ready = weft__posix_wait_set(set, uses, until);
		if (ready == -EBADF)
			return say_which_closed(fds, uses, count);
		result = ready < 0 && !is_over(ready) ? weft__posix_fail(-ready) : weft__posix_poll_now(fds, count);
	} while (!result && !is_over(ready));
	return result;
}

static int poll_many(struct pollfd *fds, nfds_t count, uint64_t until)
{
	enum { FEW = 8 };
	struct weft__use few[FEW], *uses = count <= FEW ? few : malloc(count * sizeof *uses);
	int set, result = uses ? begin_uses(uses, fds, count) : -ENOMEM, error;

	if (result) {
		if (uses != few)
			free(uses);
		return result == -EBADF ? weft__posix_poll_now(fds, count) : poll_by_helper(fds, count, until);
	}
	set = make_set(fds, count);
	if (set >= 0)
		result = poll_set(set, fds, uses, count, until);
	else
		result = set == -EBADF ? weft__posix_poll_now(fds, count) : poll_by_helper(fds, count, until);
	error = errno;
	if (set >= 0)
		weft__libc.close(set);
	end_uses(uses, count);
	if (uses != few)
		free(uses);
	errno = error;
	return result;
}

/* A timeout alone: poll and select without descriptors. */
static int only_sleep(uint64_t until)
{
	int result = weft__posix_sleep(until);

	return result ? weft__posix_fail(-result) : 0;
}

/* The descriptor was closed during the wait. libc's poll would not notice that; this poll reports it. */
static int say_closed(struct pollfd *fds)
{
	fds[0].revents = POLLNVAL;
	return 1;
}

static int poll_one(struct pollfd *fds, uint64_t until)
{
	struct weft__use use;
	int ready = weft__posix_use_begin(&use, fds[0].fd), result;

	if (ready)
		return ready == -EBADF ? say_closed(fds) : weft__posix_fail(-ready);
	do {
		ready = weft__posix_wait_used(&use, (unsigned short)fds[0].events, until);
		if (ready == -EBADF)
			result = say_closed(fds);
		else if (ready < 0 && !is_over(ready))
			result = weft__posix_fail(-ready);
		else
			result = weft__posix_poll_now(fds, 1);
	} while (!result && !is_over(ready));
	weft__use_end(&use);
	return result;
}

static int poll_until(struct pollfd *fds, nfds_t count, uint64_t until)
{
	if (!count)
		return only_sleep(until);
	return count > 1 || fds[0].fd < 0 ? poll_many(fds, count, until) : poll_one(fds, until);
}

int weft_posix_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int result;

	if (!weft__posix_in_task())
		return weft__libc.poll(fds, count, timeout);
	result = weft__posix_poll_now(fds, count);
	if (result || !timeout)
		return result;
	if (!weft__posix_may_wait())
		return weft__libc.poll(fds, count, timeout);
	return poll_until(fds, count, after_milliseconds(timeout));
}

int weft_posix_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static const struct timespec zero;
	struct ppoll_call c = {fds, count, timeout, mask};
	int result;

	if ((timeout && !is_valid(timeout)) || !weft__posix_in_task() || !weft__posix_may_wait())
		return weft__libc.ppoll(fds, count, timeout, mask);
	result = mask ? weft__libc.ppoll(fds, count, &zero, mask) : weft__posix_poll_now(fds, count);
	if (result || (timeout && !timeout->tv_sec && !timeout->tv_nsec))
		return result;
	if (mask)
		return (int)weft__posix_result(weft__posix_call(ppoll_by_helper, &c));
	return poll_until(fds, count, timeout ? weft__posix_after(timeout->tv_sec, timeout->tv_nsec) : WEFT_NEVER);
}

/* ---- select ------------------------------------------------------------------------------------------------------ */

struct sets {
	int count;
	fd_set *in, *out, *except;
};

BY_HELPER(int, pselect, struct sets s; const struct timespec *timeout; const sigset_t *mask;)
{
	return weft__libc.pselect(c->s.count, c->s.in, c->s.out, c->s.except, c->timeout, c->mask);
}

/* fd_sets of any size: the kernel uses words of 64 bits. */
static bool has(const fd_set *set, int fd)
{
	return set && ((const unsigned long *)set)[fd / 64] >> fd % 64 & 1;
}

static size_t words_of(int count)
{
	return ((size_t)count + 63) / 64;
}

/* The sets of select as entries for poll. NULL: no memory. */
static struct pollfd *polled(const struct sets *s, nfds_t *count)
{
	struct pollfd *fds = malloc(((size_t)s->count + 1) * sizeof *fds);
	int fd;

	*count = 0;
	for (fd = 0; fds && fd < s->count; fd++) {
		int events = (has(s->in, fd) ? POLLIN : 0) | (has(s->out, fd) ? POLLOUT : 0) |
			     (has(s->except, fd) ? POLLPRI : 0);

		if (events)
			fds[(*count)++] = (struct pollfd){fd, (short)events, 0};
	}
	return fds;
}

/* The present result of libc's select. It works on copies of the sets, which are copied back only if the result is
 * above 0. */
static int select_now(const struct sets *s, unsigned long *copies)
{
	size_t words = words_of(s->count), i;
	fd_set *sets[3] = {s->in, s->out, s->except}, *copy[3];
	struct timeval zero = {0, 0};
	int result;

	for (i = 0; i < 3; i++) {
		copy[i] = sets[i] ? (fd_set *)(copies + i * words) : NULL;
		if (sets[i])
			memcpy(copy[i], sets[i], words * sizeof *copies);
	}
	do
		result = weft__libc.select(s->count, copy[0], copy[1], copy[2], &zero);
	while (weft__posix_interrupted(result)); /* after which the copies are unchanged */
	for (i = 0; i < 3 && result > 0; i++)
		if (sets[i])
			memcpy(sets[i], copy[i], words * sizeof *copies);
	return result;
}

static void clear_sets(const struct sets *s)
{
	fd_set *sets[3] = {s->in, s->out, s->except};
	int i;

	for (i = 0; i < 3; i++)
		if (sets[i])
			memset(sets[i], 0, words_of(s->count) * sizeof(unsigned long));
}

/* select has found nothing, although poll has. select does not report a descriptor that has hung up to a caller that
 * asks for room to write, nor a number beyond the process's table, which the kernel ignores. poll reports both at once,
 * so they would end each wait. */
static void drop_vain(struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents && !(fds[i].revents & ~(POLLHUP | POLLERR | POLLNVAL)))
			fds[i].fd = -1;
}

static int select_polled(const struct sets *s, struct pollfd *fds, nfds_t count, unsigned long *copies, uint64_t until)
{
	int ready, result;

	do {
		ready = count ? poll_until(fds, count, until) : only_sleep(until);
		result = ready < 0 ? -1 : select_now(s, copies);
		if (!result && ready > 0)
			drop_vain(fds, count);
	} while (!result && ready > 0);
	return result;
}

static int select_until(const struct sets *s, uint64_t until)
{
	unsigned long *copies = malloc(3 * words_of(s->count) * sizeof *copies + 1);
	struct pollfd *fds = NULL;
	nfds_t count;
	int result = copies ? select_now(s, copies) : weft__posix_fail(ENOMEM);

	if (!result && until > weft_now()) {
		fds = polled(s, &count);
		result = fds ? select_polled(s, fds, count, copies, until) : weft__posix_fail(ENOMEM);
	}
	if (!result)
		clear_sets(s);
	free(fds);
	free(copies);
	return result;
}

int weft_posix_select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets s = {count, in, out, except};
	uint64_t until, left;
	int result;

	if (count < 0 || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) || !weft__posix_in_task() ||
	    !weft__posix_may_wait())
		return weft__libc.select(count, in, out, except, timeout);
	until = timeout ? weft__posix_after(timeout->tv_sec, (int64_t)timeout->tv_usec * 1000) : WEFT_NEVER;
	result = select_until(&s, until);
	if (timeout) {
		left = left_until(until) / 1000;
		*timeout = (struct timeval){(time_t)(left / 1000000), (suseconds_t)(left % 1000000)};
	}
	return result;
}

int weft_posix_pselect(int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		       const sigset_t *mask)
{
	struct pselect_call c = {{count, in, out, except}, timeout, mask};

	if (count < 0 || (timeout && !is_valid(timeout)) || !weft__posix_in_task() || !weft__posix_may_wait())
		return weft__libc.pselect(count, in, out, except, timeout, mask);
	if (mask)
		return (int)weft__posix_result(weft__posix_call(pselect_by_helper, &c));
	return select_until(&c.s, timeout ? weft__posix_after(timeout->tv_sec, timeout->tv_nsec) : WEFT_NEVER);
}

/* ---- epoll ------------------------------------------------------------------------------------------------------- */

BY_HELPER(int, epoll, int fd; struct epoll_event * events; int most; int timeout; const sigset_t *mask;)
{
	return weft__libc.epoll_pwait(c->fd, c->events, c->most, c->timeout, c->mask);
}

BY_HELPER(int, epoll2, int fd; struct epoll_event * events; int most; const struct timespec *timeout;
	  const sigset_t *mask;)
{
	return weft__libc.epoll_pwait2(c->fd, c->events, c->most, c->timeout, c->mask);
}

static int epoll_now(int fd, struct epoll_event *events, int most)
{
	int result;

	do
		result = weft__libc.epoll_wait(fd, events, most, 0);
	while (weft__posix_interrupted(result));
	return result;
}

static int epoll_until(int fd, struct epoll_event *events, int most, uint64_t until)
{
	int ready, result;

	do {
		ready = weft__posix_wait(fd, POLLIN, until);
		if (ready < 0 && !is_over(ready))
			return weft__posix_fail(-ready);
		result = epoll_now(fd, events, most);
	} while (!result && !is_over(ready));
	return result;
}

int weft_posix_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	int result;

	if (!weft__posix_in_task() || !weft__posix_may_wait())
		return weft__libc.epoll_wait(fd, events, most, timeout);
	result = epoll_now(fd, events, most);
	return result || !timeout ? result : epoll_until(fd, events, most, after_milliseconds(timeout));
}

int weft_posix_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
	struct epoll_call c = {fd, events, most, timeout, mask};

	if (!mask)
		return weft_posix_epoll_wait(fd, events, most, timeout);
	if (!timeout || !weft__posix_in_task() || !weft__posix_may_wait())
		return weft__libc.epoll_pwait(fd, events, most, timeout, mask);
	return (int)weft__posix_result(weft__posix_call(epoll_by_helper, &c));
}

int weft_posix_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
			    const sigset_t *mask)
{
	struct epoll2_call c = {fd, events, most, timeout, mask};
	int result;

	if ((timeout && !is_valid(timeout)) || !weft__posix_in_task() || !weft__posix_may_wait())
		return weft__libc.epoll_pwait2(fd, events, most, timeout, mask);
	if (mask)
		return (int)weft__posix_result(weft__posix_call(epoll2_by_helper, &c));
	result = epoll_now(fd, events, most);
	if (result || (timeout && !timeout->tv_sec && !timeout->tv_nsec))
		return result;
	return epoll_until(fd, events, most,
			   timeout ? weft__posix_after(timeout->tv_sec, timeout->tv_nsec) : WEFT_NEVER);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static bool sleeps_here(void)
{
	return (weft__posix_in_task() && weft__posix_may_wait()) || weft__posix_simulated();
}

/* 0, or an error number. */
static int sleep_until(uint64_t until, struct timespec *left)
{
	int result = weft__posix_sleep(until);

	if (result && left)
		*left = weft__timespec(left_until(until));
	return -result;
}

int weft_posix_nanosleep(const struct timespec *time, struct timespec *left)
{
	int error;

	if (!is_valid(time) || !sleeps_here())
		return weft__libc.nanosleep(time, left);
	error = sleep_until(weft__posix_after(time->tv_sec, time->tv_nsec), left);
	return error ? weft__posix_fail(error) : 0;
}

/* Converts an absolute time of a clock to a time of weft_now(). */
static uint64_t at(clockid_t clock, const struct timespec *time)
{
	struct timespec now = {0, 0};
	int64_t seconds, nanoseconds;

	if (clock == CLOCK_MONOTONIC)
		return (uint64_t)time->tv_sec * WEFT__NANOSECONDS + (uint64_t)time->tv_nsec;
	clock_gettime(clock, &now);
	seconds = time->tv_sec - now.tv_sec;
	nanoseconds = time->tv_nsec - now.tv_nsec;
	if (nanoseconds < 0) {
		seconds--;
		nanoseconds += WEFT__NANOSECONDS;
	}
	return weft__posix_after(seconds, nanoseconds);
}

int weft_posix_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	bool known = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME;

	if (!known || !is_valid(time) || !sleeps_here())
		return weft__libc.clock_nanosleep(clock, flags, time, left);
	if (flags & TIMER_ABSTIME)
		return sleep_until(at(clock, time), NULL);
	return sleep_until(weft__posix_after(time->tv_sec, time->tv_nsec), left);
}

int weft_posix_usleep(useconds_t microseconds)
{
	struct timespec time = weft__timespec((uint64_t)microseconds * 1000);

	return weft_posix_nanosleep(&time, NULL);
}

unsigned weft_posix_sleep(unsigned seconds)
{
	struct timespec time = {(time_t)seconds, 0}, left = {0, 0};

	if (!sleeps_here())
		return weft__libc.sleep(seconds);
	if (!weft_posix_nanosleep(&time, &left))
		return 0;
	return (unsigned)left.tv_sec + (left.tv_nsec > 0);
}

/* A library may spin until another thread acts, which may be another task of this thread. */
int weft_posix_sched_yield(void)
{
	if (!sleeps_here())
		return weft__libc.sched_yield();
	weft__posix_yield();
	return 0;
}

/* ---- child processes --------------------------------------------------------------------------------------------- */

BY_HELPER(pid_t, wait4, pid_t process; int *status; int options; struct rusage * usage;)
{
	return weft__libc.wait4(c->process, c->status, c->options, c->usage);
}

static bool waits_here(int options)
{
	return !(options & WNOHANG) && weft__posix_in_task() && weft__posix_may_wait();
}

/* Waits for the end of one child. */
static pid_t wait_for_one(const struct wait4_call *c)
{
	int fd = (int)syscall(SYS_pidfd_open, c->process, 0), ready;
	pid_t result;

	if (fd < 0)
		return (pid_t)weft__posix_result(weft__posix_call(wait4_by_helper, (void *)(uintptr_t)c));
	do {
		ready = weft__posix_wait(fd, POLLIN, WEFT_NEVER);
		result = ready < 0 ? weft__posix_fail(-ready)
				   : weft__libc.wait4(c->process, c->status, c->options | WNOHANG, c->usage);
	} while (!result);
	ready = errno;
	weft__libc.close(fd);
	errno = ready;
	return result;
}

pid_t weft_posix_wait4(pid_t process, int *status, int options, struct rusage *usage)
{
	struct wait4_call c = {process, status, options, usage};
	pid_t result;

	if (!waits_here(options))
		return weft__libc.wait4(process, status, options, usage);
	result = weft__libc.wait4(process, status, options | WNOHANG, usage);
	if (result)
		return result;
	if (process > 0 && !options)
		return wait_for_one(&c);
	return (pid_t)weft__posix_result(weft__posix_call(wait4_by_helper, &c));
}

pid_t weft_posix_waitpid(pid_t process, int *status, int options)
{
	if (!waits_here(options))
		return weft__libc.waitpid(process, status, options);
	return weft_posix_wait4(process, status, options, NULL);
}

pid_t weft_posix_wait(int *status)
{
	if (!waits_here(0))
		return weft__libc.wait(status);
	return weft_posix_wait4(-1, status, 0, NULL);
}

pid_t weft_posix_wait3(int *status, int options, struct rusage *usage)
{
	if (!waits_here(options))
		return weft__libc.wait3(status, options, usage);
	return weft_posix_wait4(-1, status, options, usage);
}

BY_HELPER(int, waitid, idtype_t type; id_t id; siginfo_t * info; int options;)
{
	return weft__libc.waitid(c->type, c->id, c->info, c->options);
}

int weft_posix_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct waitid_call c = {type, id, info, options};

	if (!waits_here(options))
		return weft__libc.waitid(type, id, info, options);
	return (int)weft__posix_result(weft__posix_call(waitid_by_helper, &c));
}

static int64_t system_by_helper(void *command)
{
	int result = weft__libc.system(command);

	return result == -1 ? -errno : result;
}

int weft_posix_system(const char *command)
{
	if (!command || !waits_here(0))
		return weft__libc.system(command);
	return (int)weft__posix_result(weft__posix_call(system_by_helper, (void *)(uintptr_t)command));
}

/* ---- calls that only block --------------------------------------------------------------------------------------- */

BY_HELPER(int, locked, int fd; int operation; int (*fn)(int);)
{
	return c->fn ? c->fn(c->fd) : weft__libc.flock(c->fd, c->operation);
}

static int synchronize(int fd, int (*fn)(int))
{
	struct locked_call c = {fd, 0, fn};

	if (!waits_here(0))
		return fn(fd);
	return (int)weft__posix_result(weft__posix_call(locked_by_helper, &c));
}

int weft_posix_fsync(int fd)
{
	return synchronize(fd, weft__libc.fsync);
}

int weft_posix_fdatasync(int fd)
{
	return synchronize(fd, weft__libc.fdatasync);
}

int weft_posix_flock(int fd, int operation)
{
	struct locked_call c = {fd, operation, NULL};
	int result;

	if (operation & (LOCK_NB | LOCK_UN) || !waits_here(0))
		return weft__libc.flock(fd, operation);
	result = weft__libc.flock(fd, operation | LOCK_NB);
	if (!result || errno != EWOULDBLOCK)
		return result;
	return (int)weft__posix_result(weft__posix_call(locked_by_helper, &c));
}

/* The results of getaddrinfo and similar functions are codes; EAI_SYSTEM and errno if the task was cancelled before the
 * call. */
static int code_of(int64_t result)
{
	if (result != -ECANCELED)
		return (int)(result - INT32_MAX);
	(void)weft__posix_fail(ECANCELED);
	return EAI_SYSTEM;
}

struct names_call {
	const char *name, *service;
	const struct addrinfo *hints;
	struct addrinfo **list;
	int error;
};

/* The result, code plus INT32_MAX, is above all negative errnos. */
static int64_t names_by_helper(void *argument)
{
	struct names_call *c = argument;
	int code = weft__libc.getaddrinfo(c->name, c->service, c->hints, c->list);

	c->error = errno;
	return (int64_t)INT32_MAX + code;
}

static bool needs_no_lookup(const struct addrinfo *hints)
{
	return hints && hints->ai_flags & AI_NUMERICHOST;
}

int weft_posix_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	struct names_call c = {name, service, hints, list, 0};
	int code;

	if (needs_no_lookup(hints) || !waits_here(0))
		return weft__libc.getaddrinfo(name, service, hints, list);
	code = code_of(weft__posix_call(names_by_helper, &c));
	if (code == EAI_SYSTEM && c.error)
		(void)weft__posix_fail(c.error);
	return code;
}

struct name_call {
	const struct sockaddr *address;
	char *name, *service;
	socklen_t size, name_size, service_size;
	int flags, error;
};

static int64_t name_by_helper(void *argument)
{
	struct name_call *c = argument;
	int code =
	    weft__libc.getnameinfo(c->address, c->size, c->name, c->name_size, c->service, c->service_size, c->flags);

	c->error = errno;
	return (int64_t)INT32_MAX + code;
}

int weft_posix_getnameinfo(const struct sockaddr *address, socklen_t size, char *name, socklen_t name_size,
			   char *service, socklen_t service_size, int flags)
{
	struct name_call c = {address, name, service, size, name_size, service_size, flags, 0};
	int code;

	if (flags & NI_NUMERICHOST || !waits_here(0))
		return weft__libc.getnameinfo(address, size, name, name_size, service, service_size, flags);
	code = code_of(weft__posix_call(name_by_helper, &c));
	if (code == EAI_SYSTEM && c.error)
		(void)weft__posix_fail(c.error);
	return code;
}

struct host_call {
	const char *name;
	struct hostent *host, **result;
	char *text;
	size_t size;
	int *error, own_error;
};

static int64_t host_by_helper(void *argument)
{
	struct host_call *c = argument;

	if (c->host)
		return weft__libc.gethostbyname_r(c->name, c->host, c->text, c->size, c->result, c->error);
	*c->result = weft__libc.gethostbyname(c->name);
	c->own_error = h_errno;
	return 0;
}

__attribute__((noinline)) static void set_h_errno(int error)
{
	h_errno = error;
}

struct hostent *weft_posix_gethostbyname(const char *name)
{
	struct hostent *result = NULL;
	struct host_call c = {name, NULL, &result, NULL, 0, NULL, TRY_AGAIN};

	if (!waits_here(0))
		return weft__libc.gethostbyname(name);
	(void)weft__posix_call(host_by_helper, &c);
	set_h_errno(c.own_error);
	return result;
}

int weft_posix_gethostbyname_r(const char *name, struct hostent *host, char *text, size_t size, struct hostent **result,
			       int *error)
{
	struct host_call c = {name, host, result, text, size, error, 0};
	int64_t code;

	if (!waits_here(0))
		return weft__libc.gethostbyname_r(name, host, text, size, result, error);
	code = weft__posix_call(host_by_helper, &c);
	if (code != -ECANCELED)
		return (int)code;
	*result = NULL;
	*error = TRY_AGAIN;
	return EAGAIN;
}
