/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Child processes and signals, as descriptors that can be waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/io.h"

extern char **environ;

/* Descriptors 0, 1 and 2. One that has its number already must lose its close-on-exec flag, which dup2 of a descriptor
 * onto itself does here; one of another's number would be overwritten before it is copied, so all go up first. */
static int place(posix_spawn_file_actions_t *actions, const int fds[3], int up[3])
{
	int i, error = 0;

	for (i = 0; i < 3 && !error; i++) {
		up[i] = fds[i];
		if (fds[i] >= 0 && fds[i] < 3 && fds[i] != i) {
			up[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
			if (up[i] < 0)
				return errno;
		}
	}
	for (i = 0; i < 3 && !error; i++)
		if (fds[i] >= 0)
			error = posix_spawn_file_actions_adddup2(actions, up[i], i);
	return error;
}

pid_t weft_spawn_process(char *const argv[], char *const envp[], const int fds[3])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int i, error, up[3] = {-1, -1, -1};
	sigset_t none;
	pid_t process = -1;

	if (!argv || !argv[0])
		return -EINVAL;
	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	error = posix_spawnattr_init(&attr);
	if (!error) {
		/* What this program has blocked for weft_sigwait is not the other's concern. */
		sigemptyset(&none);
		posix_spawnattr_setsigmask(&attr, &none);
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
		if (fds)
			error = place(&actions, fds, up);
		if (!error)
			error = posix_spawnp(&process, argv[0], &actions, &attr, argv, envp ? envp : environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	for (i = 0; fds && i < 3; i++)
		if (up[i] >= 0 && up[i] != fds[i])
			close(up[i]);
	return error ? -error : process;
}

int weft__process_fd(pid_t process)
{
	int fd = process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;

	if (process < 1)
		return -EINVAL;
	if (fd < 0)
		return errno == ESRCH ? -ECHILD : -errno;
	return fd;
}

int weft__process_status(pid_t process, int *status)
{
	int code;
	pid_t ended;

	do
		ended = waitpid(process, &code, WNOHANG);
	while (ended < 0 && errno == EINTR);
	if (ended < 0)
		return -errno;
	if (!ended)
		return -ECHILD; /* its end is told to its parent, who is somebody else */
	if (status)
		*status = code;
	return process;
}

int weft__signal_fd(const sigset_t *signals)
{
	int fd = signals ? signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK) : -1;

	if (!signals)
		return -EINVAL;
	return fd < 0 ? -errno : fd;
}

int weft__signal_read(int fd, siginfo_t *info)
{
	struct signalfd_siginfo got;
	ssize_t size;

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
