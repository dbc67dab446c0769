/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Child processes and signals, as descriptors that can be polled. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/sim.h"

extern char **environ;

/* ---- the descriptors of a program -------------------------------------------------------------------------------- */

/* Opens the same pipe a second time: the new descriptor has flags of its own. Negative: the pipe cannot be opened. */
static int open_again(int fd, int flags)
{
	char path[32];
	int other;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	/* O_NONBLOCK: the open of a named pipe would wait for its other end. */
	other = open(path, (flags & (O_ACCMODE | O_DIRECT)) | O_NONBLOCK | O_CLOEXEC);
	if (other >= 0)
		(void)fcntl(other, F_SETFL, flags & O_DIRECT);
	return other;
}

static bool listens(int fd)
{
	int yes = 0;
	socklen_t size = sizeof yes;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &size) && yes;
}

/*
 * The descriptor that a child gets in place of this descriptor: most programs take EAGAIN for an error. All copies of a
 * descriptor share O_NONBLOCK, so it cannot be removed from the child's copy alone. A pipe is opened a second time. A
 * socket cannot be; it loses the flag, which only accept, connect, sendfile and splice need: the other operations have
 * MSG_DONTWAIT. A listener keeps the flag.
 */
static int blocking_copy(int fd)
{
	int flags = fcntl(fd, F_GETFL), other = -1;
	struct stat status;

	if (flags < 0 || !(flags & O_NONBLOCK) || fstat(fd, &status) || WEFT_CANARY(children_get_nonblocking))
		return fd;
	if (S_ISFIFO(status.st_mode))
		other = open_again(fd, flags);
	else if (!S_ISSOCK(status.st_mode) || listens(fd))
		return fd;
	if (other >= 0)
		return other;
	(void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	if (S_ISFIFO(status.st_mode))
		weft__fd_made(fd, WEFT__BLOCKING_PIPE);
	return fd;
}

/* Moves a descriptor below `count` to a number above it, because an earlier dup2 in the child would overwrite it. A
 * descriptor that already has its number stays: dup2 onto itself removes its close-on-exec flag in the child. */
static int out_of_the_way(int given, int number, int count)
{
	int fd = blocking_copy(given), up = fd;

	if (fd < count && fd != number) {
		up = fcntl(fd, F_DUPFD_CLOEXEC, count);
		if (fd != given)
			close(fd);
	}
	return up < 0 ? -errno : up;
}

/* Arranges the child's descriptors 0, 1, …. */
static int place(posix_spawn_file_actions_t *actions, const weft_process_t *what, int *up)
{
	int i, error = 0, count = (int)what->fd_count;

	for (i = 0; i < count; i++) {
		up[i] = what->fds[i] < 0 ? -1 : out_of_the_way(what->fds[i], i, count);
		if (what->fds[i] >= 0 && up[i] < 0)
			return -up[i];
	}
	for (i = 0; i < count && !error; i++)
		if (what->fds[i] >= 0)
			error = posix_spawn_file_actions_adddup2(actions, up[i], i);
	return error;
}

/* A child must not inherit the signals that this program has blocked for weft_sigwait, or SIGPIPE, which it may ignore
 * for its sockets. Other ignored signals stay ignored, as nohup requires. */
static int set_attributes(posix_spawnattr_t *attr, const weft_process_t *what)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, usual;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	if (what->flags & WEFT_PROCESS_DEFAULT_SIGNALS)
		sigfillset(&usual);
	if (what->flags & WEFT_PROCESS_GROUP)
		flags |= POSIX_SPAWN_SETPGROUP;
	if (what->flags & WEFT_PROCESS_SESSION)
		flags |= POSIX_SPAWN_SETSID;
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &usual);
	posix_spawnattr_setpgroup(attr, what->group);
	return posix_spawnattr_setflags(attr, flags);
}

static int spawn(const weft_process_t *what, posix_spawn_file_actions_t *actions, posix_spawnattr_t *attr,
		 pid_t *process)
{
	int i, up[WEFT_PROCESS_FDS], error = set_attributes(attr, what), slack;

	for (i = 0; i < WEFT_PROCESS_FDS; i++)
		up[i] = -1;
	if (!error)
		error = place(actions, what, up);
	if (!error && what->directory)
		error = posix_spawn_file_actions_addchdir_np(actions, what->directory);
	if (!error) {
		slack = prctl(PR_GET_TIMERSLACK);
		weft__slack_usual();
		error =
		    posix_spawnp(process, what->argv[0], actions, attr, what->argv, what->envp ? what->envp : environ);
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	}
	for (i = 0; i < (int)what->fd_count; i++)
		if (up[i] >= 0 && up[i] != what->fds[i])
			close(up[i]);
	return error;
}

/* Passes the child's first three descriptors. */
static pid_t spawn_in_world(const weft_process_t *what)
{
	int i, fds[3];

	for (i = 0; i < 3; i++)
		fds[i] = i < (int)what->fd_count ? what->fds[i] : -1;
	return weft__sim_spawn(what->argv, fds);
}

pid_t weft_spawn_process_as(const weft_process_t *what)
{
	const unsigned flags = WEFT_PROCESS_GROUP | WEFT_PROCESS_SESSION | WEFT_PROCESS_DEFAULT_SIGNALS;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t process = -1;
	int error;

	if (!what || !what->argv || !what->argv[0] || what->fd_count > WEFT_PROCESS_FDS || what->flags & ~flags)
		return -EINVAL;
	if (weft__simulated() && (process = spawn_in_world(what)) != 0)
		return process;
	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawnattr_init(&attr);
	if (!error) {
		error = spawn(what, &actions, &attr, &process);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return error ? -error : process;
}

pid_t weft_spawn_process(char *const argv[], char *const envp[], const int fds[3])
{
	return weft_spawn_process_as(
	    &(weft_process_t){.argv = argv, .envp = envp, .fds = fds, .fd_count = fds ? 3 : 0});
}

int weft_kill_process(pid_t process, int signal)
{
	if (weft__sim_has_process(process))
		return weft_world_kill(process, signal);
	return kill(process, signal) ? -errno : 0;
}

/* ---- the end of a process ---------------------------------------------------------------------------------------- */

/*
 * If the kernel has no pidfd_open (before 5.3, in valgrind 3.19, or by seccomp), a thread waits until the process has
 * ended, without reaping it, and then makes a descriptor readable. Each waiter for the same process has a copy of this
 * descriptor, and may stop waiting earlier: there is one thread for a process, however often it is waited for.
 */
struct watch {
	struct watch *next;
	pid_t process, owner; /* a child of fork has none of its parent's threads */
	int fd;		      /* an eventfd that is never read */
};

static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch *watches; /* of the processes that have not ended */

/*
 * Each thread joins the thread that finished before it, and a caller that learns of the end of a process joins the last
 * thread. So no thread remains when a program returns from main: memcheck would report its memory as possibly lost.
 */
static pthread_t last;		 /* changed under the lock */
static _Atomic pid_t last_owner; /* the process that `last` belongs to; 0: joined */

static void join_last(void)
{
	pthread_t thread;
	pid_t owner;

	if (!atomic_load_explicit(&last_owner, memory_order_relaxed))
		return;
	weft__mutex_lock(&watches_lock);
	thread = last;
	owner = atomic_exchange(&last_owner, 0);
	weft__mutex_unlock(&watches_lock);
	if (owner == getpid())
		pthread_join(thread, NULL);
}

static void *watch(void *argument)
{
	struct watch *w = argument, **link = &watches;
	static const uint64_t one = 1;
	pthread_t earlier;
	pid_t owner;
	siginfo_t info;

	while (waitid(P_PID, (id_t)w->process, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	/* Removed first: once the descriptor is readable the process may be reaped, and its number reused. */
	weft__mutex_lock(&watches_lock);
	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	earlier = last;
	last = pthread_self();
	owner = atomic_exchange(&last_owner, w->owner);
	weft__mutex_unlock(&watches_lock);
	(void)!write(w->fd, &one, sizeof one);
	close(w->fd);
	if (owner == w->owner)
		pthread_join(earlier, NULL);
	free(w);
	return NULL;
}

/* The thread blocks all signals, which are for other threads. */
static int start_thread(struct watch *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, watch, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return error;
}

/* Under the lock. NULL: no memory, descriptor or thread. */
static struct watch *add_watch(pid_t process)
{
	struct watch *w = malloc(sizeof *w);

	if (!w)
		return NULL;
	*w = (struct watch){watches, process, getpid(), weft__own_fd(eventfd(0, EFD_CLOEXEC))};
	if (w->fd < 0 || start_thread(w)) {
		if (w->fd >= 0)
			close(w->fd);
		free(w);
		return NULL;
	}
	watches = w;
	return w;
}

/* Returns a descriptor that is readable when the process has ended; the caller closes it. */
static int watch_fd(pid_t process)
{
	struct watch *w;
	int fd = -EAGAIN;

	weft__mutex_lock(&watches_lock);
	for (w = watches; w && (w->process != process || w->owner != getpid()); w = w->next)
		;
	if (!w)
		w = add_watch(process);
	if (w) {
		fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 3);
		fd = fd < 0 ? -errno : fd;
	}
	weft__mutex_unlock(&watches_lock);
	return fd;
}

int weft__process_fd(pid_t process)
{
	siginfo_t info;
	int fd;

	if (process < 1)
		return -EINVAL;
	if (weft__sim_has_process(process))
		return weft__sim_process_fd(process);
	/* pidfd_open accepts any process, but only a parent can wait for its child's end. */
	if (waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT))
		return -errno;
	fd = weft__own_fd((int)syscall(SYS_pidfd_open, process, 0));
	if (fd >= 0)
		return fd;
	/* EPERM: older seccomp filters refuse system calls that they do not know. */
	if ((errno == ENOSYS || errno == EPERM) && !WEFT_CANARY(nothing_but_pidfd))
		return watch_fd(process);
	return errno == ESRCH ? -ECHILD : -errno;
}

int weft__process_status(pid_t process, int *status)
{
	int code;
	pid_t ended;

	if (weft__sim_has_process(process))
		return weft__sim_process_status(process, status);
	join_last();
	do
		ended = waitpid(process, &code, WNOHANG);
	while (ended < 0 && errno == EINTR);
	if (ended < 0)
		return -errno;
	if (!ended)
		return -ECHILD; /* only its parent learns of its end, and the caller is not its parent */
	if (status)
		*status = code;
	return process;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

int weft__signal_fd(const sigset_t *signals)
{
	int fd;

	if (!signals)
		return -EINVAL;
	if (weft__simulated())
		return weft__sim_signal_fd(signals);
	fd = weft__own_fd(signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK));
	return fd < 0 ? -errno : fd;
}

int weft__signal_read(int fd, siginfo_t *info)
{
	struct signalfd_siginfo got;
	ssize_t size;

	if (weft__sim_has(fd))
		return weft__sim_signal_read(fd, info);
	do
		size = read(fd, &got, sizeof got);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	if (info) {
		memset(info, 0, sizeof *info);
		info->si_signo = (int)got.ssi_signo;
		info->si_errno = got.ssi_errno;
		info->si_code = got.ssi_code;
		info->si_pid = (pid_t)got.ssi_pid;
		info->si_uid = got.ssi_uid;
		info->si_status = got.ssi_status;
		info->si_value.sival_ptr = (void *)(uintptr_t)got.ssi_ptr;
	}
	return (int)got.ssi_signo;
}
