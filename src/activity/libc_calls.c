/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twins of libc's functions that wait. A call that would block parks the activity, and other activities run. In plain
 * code, and therefore in no_yield, `read` is libc's. libc_calls.def lists the functions; twins.c finds their twins by
 * the functions' addresses.
 *
 * Most twins call weft/posix.h's functions, which try without blocking and then wait; here the activity tells them how
 * to wait (struct weft__posix_waits). Their frames are parked with the activity's: no other code holds an address in
 * them, and the record of the wait is in the heap. weft/posix.h's functions do not use a helper thread here, because
 * the helper would use addresses in their frames: they fail, and the twin makes the whole call again in a task of its
 * own, with arguments and result in the heap.
 */
#define _GNU_SOURCE
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "activity/libc_calls.h"
#include "io/posix_calls.h"
#include "io/waits.h"

/* Each call of weft/posix.h that waits has a twin. */
#define IS_KNOWN(type, name, parameters, arguments)                                                                    \
	_Static_assert(WEFT__CALL_##name >= 0, "libc_calls.def has the name");
WEFT__POSIX_WAITING(IS_KNOWN)

/* errno of a call that is to be made again in a task. None of the calls below returns it. */
enum { AGAIN_IN_A_TASK = ERESTART };

static __thread const char *current; /* the call's name */
static const struct weft__posix_waits by_activity;

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static struct weft__call *new_call(void)
{
	struct weft__call *c = weft__record_take(weft__activity_hot.group, sizeof *c);

	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	c->name = current;
	return c;
}

/* Parks the frames from here up to the twin's frame. Other activities use the thread's state meanwhile. */
static void park(const struct weft__call *c)
{
	int error = errno;

	weft__posix_set_waits(NULL);
	weft__activity_park_in_c();
	current = c->name;
	weft__posix_set_waits(&by_activity);
	errno = error;
}

/* Returns the result, -ECANCELED or -ENOMEM. The caller reads further results from the record, and frees it. */
static int64_t ask(struct weft__call *c)
{
	struct weft__activity_hot *hot = &weft__activity_hot;

	if ((hot->self->flags & (WEFT__A_CANCELLED | WEFT__CLEANS_UP)) == WEFT__A_CANCELLED)
		return -ECANCELED;
	if (!weft__server_ask(hot->group, c))
		return -ENOMEM;
	if (weft__activity_park_begin(&c->waker)) {
		weft__wait_for(hot->self, c, WEFT__FOR_CALL);
		park(c);
	}
	return c->result;
}

void weft__wait_in_place(struct weft__activity_group *g, weft_activity_t *self)
{
	weft_activity_t **at = &g->first, *before = NULL;

	if (self->state == WEFT__FOR_CALL)
		weft__server_cancel(self->object);
	while (self->state != WEFT__A_READY)
		(void)weft__group_wait(g);
	for (; *at != self; at = &before->next)
		before = *at;
	*at = self->next;
	if (g->last == self)
		g->last = before;
	self->state = WEFT__A_RUNNING;
}

/* ---- waits of weft/posix.h --------------------------------------------------------------------------------------- */

static void poll_until(struct weft__call *c)
{
	c->result = weft_poll_until((int)c->words[0], (int)c->words[1], c->words[2]);
}

static int wait_ready(int fd, int events, uint64_t deadline)
{
	struct weft__call *c = new_call();
	int64_t result;

	if (!c)
		return -ENOMEM;
	if (deadline == WEFT_NEVER) {
		c->io.kind = WEFT_IO_POLL;
		c->io.fd = fd;
		c->io.flags = events;
		c->io.deadline = deadline;
	} else {
		c->fn = poll_until;
		c->words[0] = (uint64_t)fd;
		c->words[1] = (uint64_t)events;
		c->words[2] = deadline;
	}
	result = ask(c);
	weft__activity_pop(c);
	return (int)result;
}

static int64_t not_here(weft_io_call_t *fn, void *argument)
{
	(void)fn;
	(void)argument;
	return -AGAIN_IN_A_TASK;
}

static int sleep_here(uint64_t until)
{
	struct weft__activity_hot *hot = &weft__activity_hot;
	struct weft__call named = {.name = current};

	if ((hot->self->flags & (WEFT__A_CANCELLED | WEFT__CLEANS_UP)) == WEFT__A_CANCELLED)
		return -ECANCELED;
	if (!weft__sleeper_add(hot->group, hot->self, until))
		return -ENOMEM;
	park(&named);
	return (hot->self->flags & (WEFT__A_CANCELLED | WEFT__CLEANS_UP)) == WEFT__A_CANCELLED ? -ECANCELED : 0;
}

static void yield_here(void)
{
}

static const struct weft__posix_waits by_activity = {wait_ready, not_here, sleep_here, yield_here};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void weft__call_begin(const char *name)
{
	struct weft__activity_hot *hot = &weft__activity_hot;

	current = name;
	weft__set_flags(hot->group, hot->self, hot->self->flags | WEFT__IN_CALL);
	weft__posix_set_waits(hot->group->is_child ? NULL : &by_activity);
}

void weft__call_end(bool failed)
{
	weft_activity_t *self = weft__activity_hot.self;

	weft__posix_set_waits(NULL);
	weft__set_flags(weft__activity_hot.group, self, self->flags & ~(unsigned)WEFT__IN_CALL);
	if (weft__unlikely(failed && errno == ECANCELED && weft__is_to_end(self)))
		weft__activity_ends_cancelled();
}

typedef int64_t function_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* All arguments are integers or pointers, each a word in a register. */
static void call_function(struct weft__call *c)
{
	function_t *fn = (function_t *)(uintptr_t)c->words[0];

	errno = 0;
	c->result = fn(c->words[1], c->words[2], c->words[3], c->words[4], c->words[5], c->more);
	c->error = errno;
}

static int64_t helped(void *call)
{
	return call_function(call), 0;
}

static void call_on_helper(struct weft__call *c)
{
	int64_t error = weft_call(helped, c);

	c->result = error ? error : c->result;
}

enum { NOT_MADE = -1 };

static bool make(struct weft__call *c, int64_t *result)
{
	bool made;

	c->error = NOT_MADE;
	*result = ask(c);
	made = c->error != NOT_MADE;
	if (c->error)
		errno = made ? c->error : (int)-*result;
	weft__activity_pop(c);
	return made;
}

bool weft__call_again(enum weft__call_place place, void *fn, const uint64_t words[6], int64_t *result)
{
	struct weft__call *c;

	if (weft__activity_hot.group->is_child) {
		*result = ((function_t *)(uintptr_t)fn)(words[0], words[1], words[2], words[3], words[4], words[5]);
		return true;
	}
	c = new_call();
	if (!c)
		return errno = ENOMEM, false;
	c->fn = place == WEFT__ON_HELPER ? call_on_helper : call_function;
	c->words[0] = (uintptr_t)fn;
	memcpy(&c->words[1], words, 5 * sizeof *words);
	c->more = words[5];
	return make(c, result);
}

int64_t weft__call_by_helper(const char *name, void *fn, const uint64_t words[6], int error)
{
	int64_t result;
	bool made;

	errno = error;
	weft__call_begin(name);
	made = weft__call_again(WEFT__ON_HELPER, fn, words, &result);
	weft__call_end(!made);
	return made ? result : -1;
}

/* A child of fork waits by a call of libc. */
static int wait_alone(int fd, int events, uint64_t deadline)
{
	struct pollfd f = {fd, (short)events, 0};
	uint64_t now = weft_now(), left = deadline > now ? deadline - now : 0;
	struct timespec time = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
	int result = ppoll(&f, 1, deadline == WEFT_NEVER ? NULL : &time, NULL);

	return result > 0 ? f.revents : result ? -errno : -ETIMEDOUT;
}

int weft__call_wait(int fd, int events, uint64_t deadline)
{
	int error = errno;
	bool alone = weft__activity_hot.group->is_child;
	int result = alone ? wait_alone(fd, events, deadline) : wait_ready(fd, events, deadline);

	errno = error;
	return result;
}

/* Makes the call by weft/posix.h's function. If that function needs a helper thread, makes the call again in a task. */
#define POSIX(type, name, parameters, arguments, ...)                                                                  \
	TWIN(type, name, parameters)                                                                                   \
	{                                                                                                              \
		uint64_t words[6] = {__VA_ARGS__};                                                                     \
		int error = errno;                                                                                     \
		int64_t again;                                                                                         \
		type result;                                                                                           \
                                                                                                                       \
		weft__call_begin(#name);                                                                               \
		result = weft_posix_##name arguments;                                                                  \
		if (weft__unlikely(result == (type)-1 && errno == AGAIN_IN_A_TASK)) {                                  \
			errno = error;                                                                                 \
			if (weft__call_again(WEFT__IN_TASK, (void *)(uintptr_t)weft_posix_##name, words, &again))      \
				result = (type)again;                                                                  \
		}                                                                                                      \
		weft__call_end(result == (type)-1);                                                                    \
		return result;                                                                                         \
	}

POSIX(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), I(fd), P(data), n)
POSIX(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), I(fd), P(data), n)
POSIX(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n), I(fd), P(parts), I(n))
POSIX(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), I(fd), P(parts), I(n))
POSIX(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags), I(fd), P(data), n, I(flags))
POSIX(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags), I(fd), P(data), n, I(flags))
POSIX(ssize_t, recvfrom, (int fd, void *data, size_t n, int flags, struct sockaddr *from, socklen_t *size),
      (fd, data, n, flags, from, size), I(fd), P(data), n, I(flags), P(from), P(size))
POSIX(ssize_t, sendto, (int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t size),
      (fd, data, n, flags, to, size), I(fd), P(data), n, I(flags), P(to), size)
POSIX(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), I(fd), P(message), I(flags))
POSIX(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), I(fd), P(message),
      I(flags))
POSIX(int, recvmmsg,
      (int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags, struct timespec *timeout),
      (fd, messages, count, flags, timeout), I(fd), P(messages), count, I(flags), P(timeout))
POSIX(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags),
      (fd, messages, count, flags), I(fd), P(messages), count, I(flags))
POSIX(int, accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), I(fd), P(from), P(size))
POSIX(int, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), I(fd),
      P(from), P(size), I(flags))
POSIX(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), I(fd), P(to), size)
POSIX(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), P(fds), count, I(timeout))
POSIX(int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
      (fds, count, timeout, mask), P(fds), count, P(timeout), P(mask))
POSIX(int, select, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
      (count, in, out, except, timeout), I(count), P(in), P(out), P(except), P(timeout))
POSIX(int, pselect,
      (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask),
      (count, in, out, except, timeout, mask), I(count), P(in), P(out), P(except), P(timeout), P(mask))
POSIX(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout), (fd, events, most, timeout), I(fd),
      P(events), I(most), I(timeout))
POSIX(int, epoll_pwait, (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask),
      (fd, events, most, timeout, mask), I(fd), P(events), I(most), I(timeout), P(mask))
POSIX(int, epoll_pwait2,
      (int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask),
      (fd, events, most, timeout, mask), I(fd), P(events), I(most), P(timeout), P(mask))
POSIX(int, flock, (int fd, int operation), (fd, operation), I(fd), I(operation))
POSIX(pid_t, wait, (int *status), (status), P(status))
POSIX(pid_t, waitpid, (pid_t process, int *status, int options), (process, status, options), I(process), P(status),
      I(options))
POSIX(pid_t, wait3, (int *status, int options, struct rusage *usage), (status, options, usage), P(status), I(options),
      P(usage))
POSIX(pid_t, wait4, (pid_t process, int *status, int options, struct rusage *usage), (process, status, options, usage),
      I(process), P(status), I(options), P(usage))
POSIX(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options), (type, id, info, options), type, id, P(info),
      I(options))
POSIX(int, system, (const char *command), (command), P(command))
POSIX(int, fsync, (int fd), (fd), I(fd))
POSIX(int, fdatasync, (int fd), (fd), I(fd))
POSIX(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), P(time), P(left))
POSIX(int, usleep, (useconds_t microseconds), (microseconds), microseconds)

TWIN(unsigned, sleep, (unsigned seconds))
{
	unsigned left;

	weft__call_begin("sleep");
	left = weft_posix_sleep(seconds);
	weft__call_end(left);
	return left;
}

TWIN(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left))
{
	int error;

	weft__call_begin("clock_nanosleep");
	error = weft_posix_clock_nanosleep(clock, flags, time, left);
	errno = error ? error : errno;
	weft__call_end(error);
	return error;
}

TWIN(int, thrd_sleep, (const struct timespec *time, struct timespec *left))
{
	int result, error = errno;

	weft__call_begin("thrd_sleep");
	result = weft_posix_nanosleep(time, left);
	weft__call_end(result);
	result = !result ? 0 : errno == EINTR ? -1 : -2;
	errno = error;
	return result;
}

/* ---- the processor ----------------------------------------------------------------------------------------------- */

/* `object` tells a cancelling activity that these frames must stay: this activity ends at its next wait or yield. */
static void give_way(struct weft__activity_group *g, weft_activity_t *self)
{
	if (g->in_task && weft__group_yield(g))
		weft__activity_cancel_all(g);
	if (!g->first)
		weft__take_in(g);
	if (!g->first)
		return;
	self->object = self;
	weft__activity_ready(g, self);
	weft__activity_park_in_c();
	self->object = NULL;
}

/* The caller may wait for a thread that is not an activity, so libc's call follows. */
TWIN(int, sched_yield, (void))
{
	give_way(weft__activity_hot.group, weft__activity_hot.self);
	return sched_yield();
}

TWIN(void, thrd_yield, (void))
{
	(void)weft__yielding_sched_yield();
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The record of a call with more than six arguments, or with a second result. */
struct lookup {
	const struct sockaddr *address;
	socklen_t size, host_size, service_size;
	char *host, *service;
	int flags;
	const char *name;
	int h_error;
};

/* Returns `bad` unless the call was made. */
static int64_t in_task(const char *name, void *fn, const uint64_t words[6], int64_t bad)
{
	int64_t result;

	weft__call_begin(name);
	if (!weft__call_again(WEFT__IN_TASK, fn, words, &result))
		result = bad;
	weft__call_end((int)result == bad);
	return result;
}

TWIN(int, getaddrinfo, (const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list))
{
	uint64_t words[6] = {P(name), P(service), P(hints), P(list)};

	return (int)in_task("getaddrinfo", (void *)(uintptr_t)weft_posix_getaddrinfo, words, EAI_SYSTEM);
}

static int64_t name_of(const struct lookup *l)
{
	return weft_posix_getnameinfo(l->address, l->size, l->host, l->host_size, l->service, l->service_size,
				      l->flags);
}

TWIN(int, getnameinfo,
     (const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
      socklen_t service_size, int flags))
{
	struct lookup *l = weft__record_take(weft__activity_hot.group, sizeof *l);
	uint64_t words[6] = {P(l)};
	int64_t result;

	if (!l)
		return EAI_MEMORY;
	*l = (struct lookup){address, size, host_size, service_size, host, service, flags, NULL, 0};
	result = in_task("getnameinfo", (void *)(uintptr_t)name_of, words, EAI_SYSTEM);
	weft__activity_pop(l);
	return (int)result;
}

static int64_t host_of(struct lookup *l)
{
	struct hostent *host = weft_posix_gethostbyname(l->name);

	l->h_error = h_errno;
	return (intptr_t)host;
}

/* h_errno belongs to the thread that made the call. */
TWIN(struct hostent *, gethostbyname, (const char *name))
{
	struct lookup *l = weft__record_take(weft__activity_hot.group, sizeof *l);
	uint64_t words[6] = {P(l)};
	int64_t result;

	if (!l) {
		h_errno = TRY_AGAIN;
		return NULL;
	}
	*l = (struct lookup){.name = name, .h_error = TRY_AGAIN};
	result = in_task("gethostbyname", (void *)(uintptr_t)host_of, words, 0);
	h_errno = l->h_error;
	weft__activity_pop(l);
	return (struct hostent *)(uintptr_t)result;
}

TWIN(int, gethostbyname_r,
     (const char *name, struct hostent *host, char *text, size_t size, struct hostent **result, int *error))
{
	uint64_t words[6] = {P(name), P(host), P(text), size, P(result), P(error)};

	return (int)in_task("gethostbyname_r", (void *)(uintptr_t)weft_posix_gethostbyname_r, words, EAGAIN);
}

/* ---- under names of -D_FORTIFY_SOURCE ---------------------------------------------------------------------------- */

/* Prints libc's line about a buffer that overflows, and ends the process. Only glibc has it. */
extern _Noreturn void __chk_fail(void) __attribute__((weak));

void weft__call_check(size_t bytes, size_t room)
{
	if (bytes <= room)
		return;
	if (__chk_fail)
		__chk_fail();
	__builtin_trap();
}

#define CHECKED(type, name, function, parameters, arguments, bytes, room)                                              \
	TWIN(type, name, parameters)                                                                                   \
	{                                                                                                              \
		weft__call_check(bytes, room);                                                                         \
		return weft__yielding_##function arguments;                                                            \
	}

CHECKED(ssize_t, __read_chk, read, (int fd, void *data, size_t n, size_t room), (fd, data, n), n, room)
CHECKED(ssize_t, __recv_chk, recv, (int fd, void *data, size_t n, size_t room, int flags), (fd, data, n, flags), n,
	room)
CHECKED(ssize_t, __recvfrom_chk, recvfrom,
	(int fd, void *data, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *size),
	(fd, data, n, flags, from, size), n, room)
CHECKED(int, __poll_chk, poll, (struct pollfd * fds, nfds_t count, int timeout, size_t room), (fds, count, timeout),
	count, room / sizeof *fds)
CHECKED(int, __ppoll_chk, ppoll,
	(struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room),
	(fds, count, timeout, mask), count, room / sizeof *fds)
