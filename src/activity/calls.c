/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twins of libc's functions that wait. A call that would block parks the activity, and others run. In plain code, and
 * so in no_yield, `read` is libc's. twins.c finds them by the functions' addresses.
 *
 * Most are weft/posix.h's functions, which try without blocking and then wait; here they are told to wait by the
 * activity (struct weft__posix_waits). Their frames are parked with the activity's: nobody else knows an address in
 * them, and the record of the wait is in the heap. What they would do on a helper thread, which would use addresses in
 * their frames, they give up, and the whole call is made again in a task of its own, with arguments and result in the
 * heap.
 */
#define _GNU_SOURCE
#define WEFT_POSIX_NO_NAMES
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/posix.h>

#include "activity/activity.h"
#include "io/waits.h"

/* errno of a call that is to be made again in a task. No call of those below returns it. */
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

/* Frames from here up to the twin's are parked. The thread's state belongs to others meanwhile. */
static void park(const struct weft__call *c)
{
	int error = errno;

	weft__posix_set_waits(NULL);
	weft__activity_park_in_c();
	current = c->name;
	weft__posix_set_waits(&by_activity);
	errno = error;
}

/* The result; -ECANCELED, -ENOMEM. What else the call has in the record is its caller's, who gives it back. */
static int64_t ask(struct weft__call *c)
{
	struct weft__activity_hot *hot = &weft__activity_hot;

	if ((hot->self->flags & (WEFT__CANCELLED | WEFT__CLEANS_UP)) == WEFT__CANCELLED)
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
	while (self->state != WEFT__READY)
		(void)weft__group_wait(g);
	for (; *at != self; at = &before->next)
		before = *at;
	*at = self->next;
	if (g->last == self)
		g->last = before;
	self->state = WEFT__RUNNING;
}

/* ---- what weft/posix.h asks for ---------------------------------------------------------------------------------- */

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

	if ((hot->self->flags & (WEFT__CANCELLED | WEFT__CLEANS_UP)) == WEFT__CANCELLED)
		return -ECANCELED;
	if (!weft__sleeper_add(hot->group, hot->self, until))
		return -ENOMEM;
	park(&named);
	return (hot->self->flags & (WEFT__CANCELLED | WEFT__CLEANS_UP)) == WEFT__CANCELLED ? -ECANCELED : 0;
}

static void yield_here(void)
{
}

static const struct weft__posix_waits by_activity = {wait_ready, not_here, sleep_here, yield_here};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void begin(const char *name)
{
	current = name;
	weft__activity_hot.self->flags |= WEFT__IN_CALL;
	weft__posix_set_waits(weft__activity_hot.group->is_child ? NULL : &by_activity);
}

/* A cancelled activity ends here; but not with a result that would be lost. */
static void end(bool failed)
{
	weft_activity_t *self = weft__activity_hot.self;

	weft__posix_set_waits(NULL);
	self->flags &= (uint8_t)~WEFT__IN_CALL;
	if (weft__unlikely(failed && errno == ECANCELED && weft__is_to_end(self)))
		weft__activity_ends_cancelled();
}

typedef int64_t function_t(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* All arguments are integers or pointers: a word each, in registers. */
static void call_function(struct weft__call *c)
{
	function_t *fn = (function_t *)(uintptr_t)c->words[0];

	errno = 0;
	c->result = fn(c->words[1], c->words[2], c->words[3], c->words[4], c->words[5], c->more);
	c->error = errno;
}

/* The same call, in a task; in a child of fork, here. Its result and errno; -1. */
static int64_t in_task(void *fn, const uint64_t words[6])
{
	struct weft__call *c;
	int64_t result;

	if (weft__activity_hot.group->is_child)
		return ((function_t *)(uintptr_t)fn)(words[0], words[1], words[2], words[3], words[4], words[5]);
	c = new_call();
	if (!c)
		return errno = ENOMEM, -1;
	c->fn = call_function;
	c->words[0] = (uintptr_t)fn;
	memcpy(&c->words[1], words, 5 * sizeof *words);
	c->more = words[5];
	c->error = ENOMEM;
	result = ask(c);
	if (c->error || result >= 0)
		errno = c->error;
	if (result == -ECANCELED && c->error == ENOMEM)
		errno = ECANCELED;
	weft__activity_pop(c);
	return errno && result < 0 ? -1 : result;
}

#define TWIN(type, name, parameters) static type yielding_##name parameters

/* As weft/posix.h has it, and if that gives up, in a task. */
#define WAITS(type, name, parameters, arguments, ...)                                                                  \
	TWIN(type, name, parameters)                                                                                   \
	{                                                                                                              \
		uint64_t words[6] = {__VA_ARGS__};                                                                     \
		type result;                                                                                           \
                                                                                                                       \
		begin(#name);                                                                                          \
		result = weft_posix_##name arguments;                                                                  \
		if (weft__unlikely(result == (type)-1 && errno == AGAIN_IN_A_TASK))                                    \
			result = (type)in_task((void *)(uintptr_t)weft_posix_##name, words);                           \
		end(result == (type)-1);                                                                               \
		return result;                                                                                         \
	}

/* What always needs a helper thread. `bad`: the result of a call that could not be made. */
#define BLOCKS(type, name, function, bad, parameters, ...)                                                             \
	TWIN(type, name, parameters)                                                                                   \
	{                                                                                                              \
		uint64_t words[6] = {__VA_ARGS__};                                                                     \
		int64_t result;                                                                                        \
                                                                                                                       \
		begin(#name);                                                                                          \
		errno = 0;                                                                                             \
		result = in_task((void *)(uintptr_t)(function), words);                                                \
		end(result == -1);                                                                                     \
		return result == -1 ? (bad) : (type)result;                                                            \
	}

#define I(x) (uint64_t)(x)
#define P(x) (uintptr_t)(x)

WAITS(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), I(fd), P(data), n)
WAITS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), I(fd), P(data), n)
WAITS(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n), I(fd), P(parts), I(n))
WAITS(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), I(fd), P(parts), I(n))
WAITS(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags), I(fd), P(data), n, I(flags))
WAITS(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags), I(fd), P(data), n, I(flags))
WAITS(ssize_t, recvfrom, (int fd, void *data, size_t n, int flags, struct sockaddr *from, socklen_t *size),
      (fd, data, n, flags, from, size), I(fd), P(data), n, I(flags), P(from), P(size))
WAITS(ssize_t, sendto, (int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t size),
      (fd, data, n, flags, to, size), I(fd), P(data), n, I(flags), P(to), size)
WAITS(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), I(fd), P(message), I(flags))
WAITS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), I(fd), P(message),
      I(flags))
WAITS(int, accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size), I(fd), P(from), P(size))
WAITS(int, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags), I(fd),
      P(from), P(size), I(flags))
WAITS(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), I(fd), P(to), size)
WAITS(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout), P(fds), count, I(timeout))
WAITS(int, select, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
      (count, in, out, except, timeout), I(count), P(in), P(out), P(except), P(timeout))
WAITS(int, flock, (int fd, int operation), (fd, operation), I(fd), I(operation))
WAITS(pid_t, wait, (int *status), (status), P(status))
WAITS(pid_t, waitpid, (pid_t process, int *status, int options), (process, status, options), I(process), P(status),
      I(options))
WAITS(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left), P(time), P(left))
WAITS(int, usleep, (useconds_t microseconds), (microseconds), microseconds)

TWIN(unsigned, sleep, (unsigned seconds))
{
	unsigned left;

	begin("sleep");
	errno = 0;
	left = weft_posix_sleep(seconds);
	end(left);
	return left;
}

TWIN(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left))
{
	int error;

	begin("clock_nanosleep");
	error = weft_posix_clock_nanosleep(clock, flags, time, left);
	errno = error;
	end(error);
	return error;
}

BLOCKS(int, fsync, weft_posix_fsync, -1, (int fd), I(fd))
BLOCKS(int, fdatasync, weft_posix_fdatasync, -1, (int fd), I(fd))
BLOCKS(int, getaddrinfo, weft_posix_getaddrinfo, EAI_SYSTEM,
       (const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list), P(name),
       P(service), P(hints), P(list))

/* Seven arguments. */
struct name_of {
	const struct sockaddr *address;
	socklen_t size, host_size, service_size;
	char *host, *service;
	int flags;
};

static int64_t name_of(const struct name_of *n)
{
	return weft_posix_getnameinfo(n->address, n->size, n->host, n->host_size, n->service, n->service_size,
				      n->flags);
}

TWIN(int, getnameinfo,
     (const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size, char *service,
      socklen_t service_size, int flags))
{
	struct name_of *n = weft__record_take(weft__activity_hot.group, sizeof *n);
	uint64_t words[6] = {P(n)};
	int64_t result;

	if (!n)
		return EAI_MEMORY;
	*n = (struct name_of){address, size, host_size, service_size, host, service, flags};
	begin("getnameinfo");
	errno = 0;
	result = in_task((void *)(uintptr_t)name_of, words);
	end(result == -1);
	weft__activity_pop(n);
	return result == -1 ? EAI_SYSTEM : (int)result;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

struct of_file {
	int fd, flags;
	void *data;
	size_t bytes;
	int64_t offset; /* or mode */
};

static int64_t read_now(void *file)
{
	const struct of_file *f = file;
	ssize_t n = pread(f->fd, f->data, f->bytes, f->offset);

	return n < 0 ? -errno : n;
}

static int64_t open_now(void *file)
{
	const struct of_file *f = file;
	int fd = openat(f->fd, f->data, f->flags, (unsigned)f->offset);

	return fd < 0 ? -errno : fd;
}

static int64_t on_helper(weft_io_call_t *fn, struct of_file *f)
{
	int64_t result = weft_call(fn, f);

	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static int64_t pread_in_task(int fd, void *data, size_t n, int64_t offset)
{
	struct of_file f = {fd, 0, data, n, offset};

	return on_helper(read_now, &f);
}

static int64_t openat_in_task(int directory, const char *path, int flags, int64_t mode)
{
	struct of_file f = {directory, flags, (void *)(uintptr_t)path, 0, mode};

	return on_helper(open_now, &f);
}

/* What the page cache has is there at once. */
TWIN(ssize_t, pread, (int fd, void *data, size_t n, off_t offset))
{
	struct iovec part = {data, n};
	uint64_t words[6] = {I(fd), P(data), n, I(offset)};
	ssize_t result = preadv2(fd, &part, 1, offset, RWF_NOWAIT);

	if (result >= 0 || (errno != EAGAIN && errno != EOPNOTSUPP && errno != EINVAL))
		return result;
	begin("pread");
	result = in_task((void *)(uintptr_t)pread_in_task, words);
	end(result < 0);
	return result;
}

/* What is written goes to the page cache. */
TWIN(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t offset))
{
	return pwrite(fd, data, n, offset);
}

/* Only the open of a FIFO waits for somebody. */
static int open_file(const char *name, int directory, const char *path, int flags, unsigned mode)
{
	uint64_t words[6] = {I(directory), P(path), I(flags), mode};
	struct stat status;
	int result;

	if (flags & O_NONBLOCK || fstatat(directory, path, &status, 0) || !S_ISFIFO(status.st_mode))
		return openat(directory, path, flags, mode);
	begin(name);
	result = (int)in_task((void *)(uintptr_t)openat_in_task, words);
	end(result < 0);
	return result;
}

/* They are variadic for their callers, to whom that makes no difference. */
static int yielding_open(const char *path, int flags, unsigned mode)
{
	return open_file("open", AT_FDCWD, path, flags, mode);
}

static int yielding_openat(int directory, const char *path, int flags, unsigned mode)
{
	return open_file("openat", directory, path, flags, mode);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

#ifdef __GLIBC__
#define LIBC_A true
#else
#define LIBC_A false
#endif
/* CALL(name, another name that only libc has for the function, or one that nobody has; does libc.a have that?) */
#define ALL(CALL)                                                                                                      \
	CALL(read, __read, LIBC_A)                                                                                     \
	CALL(write, __write, LIBC_A)                                                                                   \
	CALL(readv, __readv, LIBC_A)                                                                                   \
	CALL(writev, __writev, LIBC_A)                                                                                 \
	CALL(pread, __pread, LIBC_A)                                                                                   \
	CALL(pwrite, __pwrite, LIBC_A)                                                                                 \
	CALL(recv, __libc_recv, LIBC_A)                                                                                \
	CALL(recvfrom, __recvfrom, LIBC_A)                                                                             \
	CALL(recvmsg, __recvmsg, LIBC_A)                                                                               \
	CALL(send, __send, LIBC_A)                                                                                     \
	CALL(sendto, __sendto, LIBC_A)                                                                                 \
	CALL(sendmsg, __sendmsg, LIBC_A)                                                                               \
	CALL(accept, __libc_accept, LIBC_A)                                                                            \
	CALL(accept4, __libc_accept4, false)                                                                           \
	CALL(connect, __connect, LIBC_A)                                                                               \
	CALL(poll, __poll, LIBC_A)                                                                                     \
	CALL(select, __select, LIBC_A)                                                                                 \
	CALL(flock, __flock, LIBC_A)                                                                                   \
	CALL(wait, __wait, LIBC_A)                                                                                     \
	CALL(waitpid, __waitpid, LIBC_A)                                                                               \
	CALL(sleep, __sleep, LIBC_A)                                                                                   \
	CALL(usleep, __usleep, false)                                                                                  \
	CALL(nanosleep, __nanosleep, LIBC_A)                                                                           \
	CALL(clock_nanosleep, __clock_nanosleep, LIBC_A)                                                               \
	CALL(fsync, __fsync, false)                                                                                    \
	CALL(fdatasync, __fdatasync, false)                                                                            \
	CALL(getaddrinfo, __getaddrinfo, false)                                                                        \
	CALL(getnameinfo, __getnameinfo, false)                                                                        \
	CALL(open, __open, LIBC_A)                                                                                     \
	CALL(openat, __openat, LIBC_A)

#define OTHER_NAMES(name, alias, in_archive)                                                                           \
	extern void alias_of_##name(void) __asm__(#alias) __attribute__((weak));                                       \
	extern void interceptor_of_##name(void) __asm__("__interceptor_trampoline_" #name) __attribute__((weak));
ALL(OTHER_NAMES)

#define ENTRY(name, alias, in_archive)                                                                                 \
	{(weft__any_fn_t *)name, alias_of_##name, interceptor_of_##name, (weft__any_fn_t *)yielding_##name, in_archive},
const struct weft__waits weft__waits[] = {ALL(ENTRY){0}};
