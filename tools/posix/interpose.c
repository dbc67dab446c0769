/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libweft-posix.so interposes libc's functions. A call by a task goes to the runtime of this task, any other call to
 * libc.
 *
 * It has no runtime of its own: each runtime in the process, however the program was linked, registers itself by
 * weft__posix_meet. If no runtime is registered, a call costs an additional load and jump.
 */
#define _GNU_SOURCE
#include "io/posix_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum { RUNTIMES = 8 };

/* Calls that create a child process, or replace this program: CALL(result, name, parameters, arguments). */
#define CALLS_FOR_CHILDREN(CALL)                                                                                       \
	CALL(int, posix_spawn,                                                                                         \
	     (pid_t * process, const char *path, const posix_spawn_file_actions_t *actions,                            \
	      const posix_spawnattr_t *attr, char *const argv[], char *const envp[]),                                  \
	     (process, path, actions, attr, argv, envp))                                                               \
	CALL(int, posix_spawnp,                                                                                        \
	     (pid_t * process, const char *file, const posix_spawn_file_actions_t *actions,                            \
	      const posix_spawnattr_t *attr, char *const argv[], char *const envp[]),                                  \
	     (process, file, actions, attr, argv, envp))                                                               \
	CALL(FILE *, popen, (const char *command, const char *mode), (command, mode))                                  \
	CALL(int, execv, (const char *path, char *const argv[]), (path, argv))                                         \
	CALL(int, execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))              \
	CALL(int, execvp, (const char *file, char *const argv[]), (file, argv))

static struct weft__calls libc;
static struct {
#define POINTER(result, name, parameters, arguments) result(*name) parameters;
	CALLS_FOR_CHILDREN(POINTER)
#undef POINTER
} libc_for_children;
static const struct weft__posix *runtimes[RUNTIMES];
static unsigned met; /* atomic: the number of registered runtimes */
static bool ready;

/*
 * Finds the next definition after this library. dlsym may find the oldest version of a symbol, and glibc has two
 * versions of the first condition functions. A failing lookup calls malloc, which may be an allocator that takes a lock
 * before `ready`, so no lookup may fail.
 */
static void *next_function(const char *name)
{
	static const char *const renewed[] = {"wait", "timedwait", "signal", "broadcast"};
	size_t i, length = strlen("pthread_cond_");
	void *found = NULL;

	for (i = 0; !strncmp(name, "pthread_cond_", length) && !found && i < sizeof renewed / sizeof *renewed; i++)
		if (!strcmp(name + length, renewed[i]))
			found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	return found ? found : dlsym(RTLD_NEXT, name);
}

/* This thread is in dlsym. Locks of an allocator are then taken through this library, before any other thread
 * exists. */
static __thread __attribute__((tls_model("initial-exec"))) bool finding;

static void find_libc(void)
{
	finding = true;
#define FIND(result, name, parameters, arguments) libc.name = (__typeof__(libc.name))next_function(#name);
	WEFT__POSIX_CALLS(FIND)
#undef FIND
#define FIND(result, name, parameters, arguments)                                                                      \
	libc_for_children.name = (__typeof__(libc_for_children.name))dlsym(RTLD_NEXT, #name);
	CALLS_FOR_CHILDREN(FIND)
#undef FIND
	finding = false;
	/* Release: pairs with `calls`. */
	__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* The runtime whose task makes the call; NULL: the caller is not a task. */
static inline const struct weft__posix *runtime(void)
{
	unsigned i, known = __atomic_load_n(&met, __ATOMIC_ACQUIRE);

	/* Called before the constructor: by another library's constructor, or by a sanitizer. */
	if (__builtin_expect(!__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0))
		find_libc();
	for (i = 0; i < known; i++)
		if (runtimes[i]->in_task())
			return runtimes[i];
	return NULL;
}

static const struct weft__calls *calls(void)
{
	const struct weft__posix *found = runtime();

	return found ? found->mine : &libc;
}

#define DEFINE(result, name, parameters, arguments)                                                                    \
	EXPORTED result name parameters                                                                                \
	{                                                                                                              \
		return calls()->name arguments;                                                                        \
	}
WEFT__POSIX_WAITING(DEFINE)

/* ---- calls that end waits, also waits of tasks, by any thread ---------------------------------------------------- */

/* Returns the runtime that closes the descriptor: the caller's if the caller is a task. The other runtimes end the
 * waits for it. */
static const struct weft__calls *closer(int fd)
{
	unsigned i, known = __atomic_load_n(&met, __ATOMIC_ACQUIRE);
	const struct weft__calls *by = calls();

	if (by == &libc && known)
		by = runtimes[0]->mine;
	for (i = 0; i < known; i++)
		if (runtimes[i]->mine != by)
			runtimes[i]->closing(fd);
	return by;
}

EXPORTED int close(int fd)
{
	return closer(fd)->close(fd);
}

static const struct weft__calls *replacer(int fd, int number)
{
	int error = errno;
	bool does = fd != number && fcntl(fd, F_GETFD) >= 0;

	errno = error;
	return does ? closer(number) : calls();
}

EXPORTED int dup2(int fd, int number)
{
	return replacer(fd, number)->dup2(fd, number);
}

EXPORTED int dup3(int fd, int number, int flags)
{
	return replacer(fd, number)->dup3(fd, number, flags);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

/* A runtime's functions are also right for callers that are not its tasks. */
static inline const struct weft__calls *locking_calls(void)
{
	return __builtin_expect(__atomic_load_n(&met, __ATOMIC_ACQUIRE) == 1, 1) ? runtimes[0]->mine : calls();
}

#define DEFINE_LOCKING(result, name, parameters, arguments)                                                            \
	EXPORTED result name parameters                                                                                \
	{                                                                                                              \
		if (finding)                                                                                           \
			return (result)0;                                                                              \
		return locking_calls()->name arguments;                                                                \
	}
WEFT__POSIX_LOCKING(DEFINE_LOCKING)

struct unlocking {
	const struct weft__calls *by;
	void *lock;
};

/* Tasks of each runtime may wait for the lock. */
static struct unlocking begin_unlock(void *lock)
{
	struct unlocking u = {locking_calls(), lock};

	if (u.by == &libc && __atomic_load_n(&met, __ATOMIC_ACQUIRE))
		u.by = runtimes[0]->mine;
	return u;
}

static void end_unlock(const struct unlocking *u)
{
	unsigned i, known = __atomic_load_n(&met, __ATOMIC_ACQUIRE);

	if (known < 2)
		return;
	for (i = 0; i < known; i++)
		if (runtimes[i]->mine != u->by && runtimes[i]->unlocked)
			runtimes[i]->unlocked(u->lock);
}

#define ONLY(argument) argument
#define DEFINE_UNLOCKING(result, name, parameters, arguments)                                                          \
	EXPORTED result name parameters                                                                                \
	{                                                                                                              \
		if (finding)                                                                                           \
			return (result)0;                                                                              \
		__attribute__((cleanup(end_unlock))) const struct unlocking u = begin_unlock(ONLY arguments);          \
		return u.by->name arguments;                                                                           \
	}
WEFT__POSIX_UNLOCKING(DEFINE_UNLOCKING)

#ifdef __GLIBC__
/* A plugin may have loaded its own C++ library. */
static void *next_in_cxx(const char *name)
{
	static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
	void *found = dlsym(RTLD_NEXT, name), *library;
	size_t i;

	for (i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		found = library ? dlsym(library, name) : NULL;
	}
	if (!found) {
		fprintf(stderr, "weft: no shared C++ library has %s; run the program without libweft-posix.so\n", name);
		abort();
	}
	return found;
}

#define NEXT_IN_CXX(type, variable, name)                                                                              \
	static type _Atomic cached;                                                                                    \
	type variable = cached;                                                                                        \
                                                                                                                       \
	if (!variable)                                                                                                 \
	cached = variable = (type)next_in_cxx(name)

typedef int guard_begin_t(void *guard);
typedef void guard_end_t(void *guard);
int __cxa_guard_acquire(void *guard);
void __cxa_guard_release(void *guard);
void __cxa_guard_abort(void *guard);

EXPORTED int __cxa_guard_acquire(void *guard)
{
	const struct weft__posix *found = runtime();
	NEXT_IN_CXX(guard_begin_t *, next, "__cxa_guard_acquire");

	return found ? found->guard_acquire(guard, next) : next(guard);
}

static void end_guard(void *guard, guard_end_t *next)
{
	const struct weft__posix *found = runtime();

	if (found)
		found->guard_end(guard, next);
	else
		next(guard);
}

EXPORTED void __cxa_guard_release(void *guard)
{
	NEXT_IN_CXX(guard_end_t *, next, "__cxa_guard_release");

	end_guard(guard, next);
}

EXPORTED void __cxa_guard_abort(void *guard)
{
	NEXT_IN_CXX(guard_end_t *, next, "__cxa_guard_abort");

	end_guard(guard, next);
}
#endif

/* ---- children do not inherit a worker's timer slack -------------------------------------------------------------- */

static unsigned long begin_child(void)
{
	const struct weft__posix *found = runtime();
	int slack = prctl(PR_GET_TIMERSLACK);

	if (found)
		found->slack_usual();
	return (unsigned long)slack;
}

#define DEFINE_FOR_CHILDREN(result, name, parameters, arguments)                                                       \
	EXPORTED result name parameters                                                                                \
	{                                                                                                              \
		unsigned long slack = begin_child();                                                                   \
		__typeof__(result) value = libc_for_children.name arguments;                                           \
		int error = errno;                                                                                     \
                                                                                                                       \
		prctl(PR_SET_TIMERSLACK, slack);                                                                       \
		errno = error;                                                                                         \
		return value;                                                                                          \
	}
CALLS_FOR_CHILDREN(DEFINE_FOR_CHILDREN)

/* ---- names of -D_FORTIFY_SOURCE: libraries of distributions are compiled with it --------------------------------- */

extern void __chk_fail(void) __attribute__((noreturn));
ssize_t __read_chk(int fd, void *data, size_t length, size_t room);
ssize_t __recv_chk(int fd, void *data, size_t length, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t length, size_t room, int flags, struct sockaddr *from,
		       socklen_t *size);
int __poll_chk(struct pollfd *fds, nfds_t number, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask, size_t room);

EXPORTED ssize_t __read_chk(int fd, void *data, size_t length, size_t room)
{
	if (length > room)
		__chk_fail();
	return read(fd, data, length);
}

EXPORTED ssize_t __recv_chk(int fd, void *data, size_t length, size_t room, int flags)
{
	if (length > room)
		__chk_fail();
	return recv(fd, data, length, flags);
}

EXPORTED ssize_t __recvfrom_chk(int fd, void *data, size_t length, size_t room, int flags, struct sockaddr *from,
				socklen_t *size)
{
	if (length > room)
		__chk_fail();
	return recvfrom(fd, data, length, flags, from, size);
}

EXPORTED int __poll_chk(struct pollfd *fds, nfds_t number, int timeout, size_t room)
{
	if (room / sizeof *fds < number)
		__chk_fail();
	return poll(fds, number, timeout);
}

EXPORTED int __ppoll_chk(struct pollfd *fds, nfds_t number, const struct timespec *timeout, const sigset_t *mask,
			 size_t room)
{
	if (room / sizeof *fds < number)
		__chk_fail();
	return ppoll(fds, number, timeout, mask);
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static bool fits(const struct weft__posix *posix)
{
	return posix->version == WEFT__POSIX_VERSION && posix->bytes == sizeof libc && met < RUNTIMES;
}

weft__posix_meet_t weft__posix_meet;

/* Called by one thread of the dynamic linker at a time, while it runs a constructor. */
EXPORTED void weft__posix_meet(const struct weft__posix *posix)
{
	if (!fits(posix)) {
		fprintf(stderr, "weft: libweft-posix.so is of another version than the Weft of this program: "
				"its tasks' calls block\n");
		return;
	}
	if (!ready)
		find_libc();
	*posix->libc = libc;
	runtimes[met] = posix;
	/* Release: pairs with `calls`. */
	__atomic_store_n(&met, met + 1, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void begin(void)
{
	if (!ready)
		find_libc();
}

static bool was_used(void)
{
	unsigned i;

	for (i = 0; i < met; i++)
		if (runtimes[i]->was_used())
			return true;
	return false;
}

/* For `weft run --posix`. A child process of this process must not report. */
__attribute__((destructor)) static void tell(void)
{
	const char *asked = getenv("WEFT_POSIX_TELL");

	if (asked && !was_used() && strtol(asked, NULL, 10) == (long)getpid())
		fprintf(
		    stderr,
		    "weft: %s has no tasks of Weft, or was linked without weft-posix, so --posix has changed nothing\n",
		    program_invocation_short_name);
}
