/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static struct fault planned;
static bool plans; /* this field and the next fields are atomic */
static unsigned counts[CALLS_END], came;

void shim_plan(const struct fault *fault)
{
	planned = fault ? *fault : (struct fault){CALLS_END, 0, 0};
	memset(counts, 0, sizeof counts);
	came = 0;
	__atomic_store_n(&plans, true, __ATOMIC_RELEASE);
}

bool shim_end(void)
{
	__atomic_store_n(&plans, false, __ATOMIC_RELEASE);
	return __atomic_load_n(&came, __ATOMIC_ACQUIRE);
}

unsigned shim_count(enum call call)
{
	return __atomic_load_n(&counts[call], __ATOMIC_RELAXED);
}

const char *shim_name(enum call call)
{
	static const char *const names[] = {
#define NAME(name) #name,
	    CALLS(NAME) OTHER_CALLS(NAME)
#undef NAME
	};

	return names[call];
}

/* Returns 0 for no fault, an errno, or LESS. */
static int fault_of(enum call call)
{
	unsigned number;

	if (!__atomic_load_n(&plans, __ATOMIC_ACQUIRE))
		return 0;
	number = __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED);
	if (call != planned.call || number != planned.nth)
		return 0;
	__atomic_store_n(&came, 1, __ATOMIC_RELEASE);
	return planned.error;
}

/* ---- calls that only fail ---------------------------------------------------------------------------------------- */

/* WRAP(type, name, parameters, arguments, value on failure) */
#define WRAP(type, name, parameters, arguments, failed)                                                                \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		int error = fault_of(call_##name);                                                                     \
                                                                                                                       \
		if (!error)                                                                                            \
			return __real_##name arguments;                                                                \
		errno = error;                                                                                         \
		return failed;                                                                                         \
	}
/* These functions return the errno. */
#define WRAP_CODE(name, parameters, arguments)                                                                         \
	int __real_##name parameters;                                                                                  \
	int __wrap_##name parameters;                                                                                  \
	int __wrap_##name parameters                                                                                   \
	{                                                                                                              \
		int error = fault_of(call_##name);                                                                     \
                                                                                                                       \
		return error ? error : __real_##name arguments;                                                        \
	}

WRAP(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
WRAP(int, dup3, (int from, int to, int flags), (from, to, flags), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
WRAP(int, epoll_pwait2, (int set, struct epoll_event *e, int n, const struct timespec *t, const sigset_t *s),
     (set, e, n, t, s), -1)
WRAP(int, epoll_wait, (int set, struct epoll_event *e, int n, int t), (set, e, n, t), -1)
WRAP(int, eventfd, (unsigned value, int flags), (value, flags), -1)
WRAP(int, fdatasync, (int fd), (fd), -1)
WRAP(int, fstat, (int fd, struct stat *s), (fd, s), -1)
WRAP(int, fstatat, (int fd, const char *path, struct stat *s, int flags), (fd, path, s, flags), -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *n), (fd, level, name, v, n), -1)
WRAP(int, inotify_add_watch, (int fd, const char *path, uint32_t events), (fd, path, events), -1)
WRAP(int, inotify_init1, (int flags), (flags), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), -1)
WRAP(int, poll, (struct pollfd * p, nfds_t n, int t), (p, n, t), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t n), (fd, level, name, v, n), -1)
WRAP(int, shutdown, (int fd, int how), (fd, how), -1)
WRAP(int, sigaction, (int number, const struct sigaction *a, struct sigaction *b), (number, a, b), -1)
WRAP(int, signalfd, (int fd, const sigset_t *s, int flags), (fd, s, flags), -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(int, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds), -1)
WRAP(pid_t, waitpid, (pid_t process, int *status, int flags), (process, status, flags), -1)
WRAP_CODE(getaddrinfo, (const char *a, const char *b, const struct addrinfo *c, struct addrinfo **d), (a, b, c, d))
WRAP_CODE(posix_spawn_file_actions_init, (posix_spawn_file_actions_t * a), (a))
WRAP_CODE(posix_spawnattr_init, (posix_spawnattr_t * a), (a))
WRAP_CODE(posix_spawnp,
	  (pid_t * p, const char *f, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *b, char *const v[],
	   char *const e[]),
	  (p, f, a, b, v, e))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	int error = fault_of(call_open);

	if (!error)
		return __real_open(path, flags);
	errno = error;
	return -1;
}

int __real_openat(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat(int directory, const char *path, int flags, mode_t mode)
{
	int error = fault_of(call_openat);

	if (!error)
		return __real_openat(directory, path, flags, mode);
	errno = error;
	return -1;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list list;
	int i, error;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	error = number == SYS_write ? fault_of(call_wake) : number == SYS_pidfd_open ? fault_of(call_pidfd_open) : 0;
	if (!error)
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	errno = error;
	return -1;
}

/* ---- calls that have done it all the same ------------------------------------------------------------------------ */

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int error = fault_of(call_close), result = __real_close(fd);

	if (!error || result)
		return result;
	errno = error;
	return -1;
}

int __real_connect(int fd, const struct sockaddr *a, socklen_t n);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n);
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n)
{
	int error = fault_of(call_connect);
	int result = error && error != EINTR ? -1 : __real_connect(fd, a, n);

	if (!error || (result && error == EINTR && errno != EINPROGRESS))
		return result;
	errno = error;
	return -1;
}

/* ---- readiness --------------------------------------------------------------------------------------------------- */

/* If a call was made to find nothing although there is data, the shim repeats the event. Otherwise the shim would act
 * like a kernel that loses events. */
enum { MOST_FDS = 1024 };
static struct {
	int set; /* 0: none */
	struct epoll_event event;
} registered[MOST_FDS];

int __real_epoll_ctl(int set, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int what, int fd, struct epoll_event *event)
{
	int error = fault_of(call_epoll_ctl);

	if (error) {
		errno = error;
		return -1;
	}
	if (fd < MOST_FDS) {
		registered[fd].event = event ? *event : (struct epoll_event){0};
		__atomic_store_n(&registered[fd].set, what == EPOLL_CTL_DEL ? 0 : set, __ATOMIC_RELEASE);
	}
	return __real_epoll_ctl(set, what, fd, event);
}

static void tell_again(int fd)
{
	int set = fd >= 0 && fd < MOST_FDS ? __atomic_load_n(&registered[fd].set, __ATOMIC_ACQUIRE) : 0;
	struct epoll_event event;

	if (!set)
		return;
	event = registered[fd].event;
	(void)__real_epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
}

static int fails(int fd, int error)
{
	if (error == EAGAIN)
		tell_again(fd);
	errno = error;
	return -1;
}

int __real_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	int error = fault_of(call_accept4);

	return error ? fails(fd, error) : __real_accept4(fd, a, n, flags);
}

enum { SIGNAL = sizeof(struct signalfd_siginfo) }; /* is read whole, or not at all */

/* WRAP_BYTES(type, name, parameters, arguments, descriptor, length): LESS halves the length. A pipe that was filled or
 * emptied in part causes no event, so the shim repeats the event after a shortened call. */
#define WRAP_BYTES(type, name, parameters, arguments, fd, length)                                                      \
	type __real_##name parameters;                                                                                 \
	type __wrap_##name parameters;                                                                                 \
	type __wrap_##name parameters                                                                                  \
	{                                                                                                              \
		int error = fault_of(call_##name);                                                                     \
		type result;                                                                                           \
                                                                                                                       \
		if (error && error != LESS)                                                                            \
			return fails(fd, error);                                                                       \
		if (error == LESS && length > 1 && length != SIGNAL)                                                   \
			length = (length + 1) / 2;                                                                     \
		result = __real_##name arguments;                                                                      \
		if (error == LESS)                                                                                     \
			tell_again(fd);                                                                                \
		return result;                                                                                         \
	}

WRAP_BYTES(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), fd, n)
WRAP_BYTES(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), fd, n)
WRAP_BYTES(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), fd, n)
WRAP_BYTES(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), fd, n)
WRAP_BYTES(ssize_t, recv, (int fd, void *data, size_t n, int flags), (fd, data, n, flags), fd, n)
WRAP_BYTES(ssize_t, send, (int fd, const void *data, size_t n, int flags), (fd, data, n, flags), fd, n)
WRAP_BYTES(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags), fd, n)
WRAP_BYTES(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags), fd, n)
WRAP_BYTES(int, recvmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *t), (fd, m, n, flags, t),
	   fd, n)
WRAP_BYTES(int, sendmmsg, (int fd, struct mmsghdr *m, unsigned n, int flags), (fd, m, n, flags), fd, n)
WRAP_BYTES(ssize_t, sendfile, (int fd, int from, off_t *at, size_t n), (fd, from, at, n), fd, n)
WRAP_BYTES(ssize_t, splice, (int fd, off_t *a, int to, off_t *b, size_t n, unsigned flags), (fd, a, to, b, n, flags),
	   fd, n)

/* Like WRAP_BYTES, for the first parts of a message. */
#define WRAP_MESSAGE(name, qualifier)                                                                                  \
	ssize_t __real_##name(int fd, qualifier struct msghdr *m, int flags);                                          \
	ssize_t __wrap_##name(int fd, qualifier struct msghdr *m, int flags);                                          \
	ssize_t __wrap_##name(int fd, qualifier struct msghdr *m, int flags)                                           \
	{                                                                                                              \
		int error = fault_of(call_##name);                                                                     \
		struct msghdr less = *m;                                                                               \
		ssize_t result;                                                                                        \
                                                                                                                       \
		if (error != LESS || m->msg_iovlen < 2)                                                                \
			return error && error != LESS ? fails(fd, error) : __real_##name(fd, m, flags);                \
		less.msg_iovlen = (m->msg_iovlen + 1) / 2;                                                             \
		result = __real_##name(fd, &less, flags);                                                              \
		tell_again(fd);                                                                                        \
		return result;                                                                                         \
	}
WRAP_MESSAGE(recvmsg, )
WRAP_MESSAGE(sendmsg, const)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static long blocks;

long shim_blocks(void)
{
	return __atomic_load_n(&blocks, __ATOMIC_RELAXED);
}

static void *counted(void *block)
{
	if (block)
		__atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
	return block;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return fault_of(call_malloc) ? NULL : counted(__real_malloc(size));
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fault_of(call_aligned_alloc) ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return fault_of(call_calloc) ? NULL : counted(__real_calloc(count, size));
}

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size)
{
	if (fault_of(call_malloc))
		return NULL;
	return block ? __real_realloc(block, size) : counted(__real_realloc(NULL, size));
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
	if (block)
		__atomic_sub_fetch(&blocks, 1, __ATOMIC_RELAXED);
	__real_free(block);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

void *__real_dlsym(void *library, const char *name);

/* Not wrapped with --wrap, because src/coro/thread.c has a __wrap_pthread_create. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *argument)
{
	__typeof__(pthread_create) *real = (__typeof__(real))__real_dlsym(RTLD_NEXT, "pthread_create");
	int error = fault_of(call_pthread_create);

	return error ? error : real(thread, attr, fn, argument);
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
	return fault_of(call_dlopen) ? NULL : __real_dlopen(name, flags);
}

#if __has_include(<liburing.h>)
#include <liburing.h>

static unsigned overflows; /* atomic */

unsigned shim_overflows(void)
{
	return __atomic_load_n(&overflows, __ATOMIC_RELAXED);
}

static __typeof__(io_uring_queue_init_params) *real_init;
static __typeof__(io_uring_enter2) *real_enter;
static __typeof__(io_uring_register_ring_fd) *real_register;

/* A ring belongs to the thread that made it. Only this thread enters the kernel for it. */
static __thread struct {
	struct io_uring *ring;
	unsigned seen; /* look_at has seen the entries before this number */
	uint64_t data; /* of the entry whose result becomes `result`, whatever the kernel returns */
	int result;
	bool replaced;
} own;

static int init(unsigned entries, struct io_uring *ring, struct io_uring_params *p)
{
	int error = fault_of(call_ring_init), result;

	if (error)
		return -error;
	result = real_init(entries, ring, p);
	if (!result) {
		own.ring = ring;
		own.seen = 0;
		own.replaced = false;
	}
	return result;
}

static int register_ring(struct io_uring *ring)
{
	int error = fault_of(call_ring_register);

	return error ? -error : real_register(ring);
}

static enum call call_of(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
		return call_op_read;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return call_op_write;
	case IORING_OP_RECV:
		return call_op_recv;
	case IORING_OP_SEND:
		return call_op_send;
	case IORING_OP_RECVMSG:
		return call_op_recvmsg;
	case IORING_OP_SENDMSG:
		return call_op_sendmsg;
	case IORING_OP_ACCEPT:
		return call_op_accept;
	case IORING_OP_CONNECT:
		return call_op_connect;
	case IORING_OP_POLL_ADD:
		return call_op_poll;
	case IORING_OP_SPLICE:
		return call_op_splice;
	case IORING_OP_OPENAT:
		return call_op_open;
	case IORING_OP_FALLOCATE:
		return call_op_allocate;
	case IORING_OP_FSYNC:
		return call_op_sync;
	default:
		return CALLS_END;
	}
}

/* Looks at an entry before the kernel gets it. */
static void look_at(struct io_uring_sqe *sqe)
{
	enum call call = call_of(sqe);
	int error = call == CALLS_END ? 0 : fault_of(call);

	if (error == LESS && sqe->opcode != IORING_OP_RECVMSG && sqe->opcode != IORING_OP_SENDMSG)
		sqe->len = (sqe->len + 1) / 2;
	if (!error || error == LESS)
		return;
	own.data = sqe->user_data;
	own.result = -error;
	own.replaced = true;
	io_uring_prep_nop(sqe);
	sqe->user_data = own.data;
}

static void look_at_all(void)
{
	struct io_uring_sq *sq = &own.ring->sq;
	unsigned head = __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE), tail = *sq->ktail;

	if ((int)(own.seen - head) < 0)
		own.seen = head;
	/* A signal handler of src/io/uring.c may interrupt this loop, and look at more entries. */
	while ((int)(tail - own.seen) > 0)
		look_at(&sq->sqes[own.seen++ & sq->ring_mask]);
}

static void put_result(void)
{
	struct io_uring_cq *cq = &own.ring->cq;
	unsigned i, tail = __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE);

	for (i = __atomic_load_n(cq->khead, __ATOMIC_ACQUIRE); own.replaced && i != tail; i++)
		if (cq->cqes[i & cq->ring_mask].user_data == own.data) {
			cq->cqes[i & cq->ring_mask].res = own.result;
			own.replaced = false;
		}
}

static int enter(unsigned fd, unsigned submit, unsigned wait, unsigned flags, sigset_t *arg, size_t size)
{
	int error = fault_of(call_ring_enter), result;

	if (__atomic_load_n(own.ring->sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_CQ_OVERFLOW)
		__atomic_add_fetch(&overflows, 1, __ATOMIC_RELAXED);
	look_at_all();
	if (error && error != LESS)
		return -error;
	/* The kernel does not wait if it has not taken all entries. */
	if (error == LESS)
		result =
		    real_enter(fd, submit / 2, 0, flags & ~(IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG), NULL, 0);
	else
		result = real_enter(fd, submit, wait, flags, arg, size);
	put_result();
	return result;
}

static void *instead_of(const char *name, void *real)
{
	if (!real)
		return NULL;
	if (!strcmp(name, "io_uring_queue_init_params")) {
		real_init = (__typeof__(real_init))real;
		return (void *)init;
	}
	if (!strcmp(name, "io_uring_enter2")) {
		real_enter = (__typeof__(real_enter))real;
		return (void *)enter;
	}
	if (!strcmp(name, "io_uring_register_ring_fd")) {
		real_register = (__typeof__(real_register))real;
		return (void *)register_ring;
	}
	return real;
}
#else
unsigned shim_overflows(void)
{
	return 0;
}

static void *instead_of(const char *name, void *real)
{
	(void)name;
	return real;
}
#endif

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
	return instead_of(name, __real_dlsym(library, name));
}
