/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system's poll, select and epoll_wait end with EINTR two times of three if they do not wait, as if a signal had
 * arrived. The calls of a task do not. */
#define _GNU_SOURCE
#include "../sched/check.h"

#define WEFT_POSIX_NO_NAMES
#include <sys/syscall.h>
#include <weft/posix.h>

static bool interrupts(void)
{
	static unsigned calls;

	errno = EINTR;
	return ++calls % 3;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return !timeout && interrupts() ? -1 : (int)syscall(SYS_poll, fds, count, timeout);
}

int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	bool waits = !timeout || timeout->tv_sec || timeout->tv_usec;

	return !waits && interrupts() ? -1 : (int)syscall(SYS_select, count, in, out, except, timeout);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	return !timeout && interrupts() ? -1 : (int)syscall(SYS_epoll_wait, fd, events, most, timeout);
}

static void *calls(void *pass)
{
	struct epoll_event event = {EPOLLIN, {.u64 = 7}};
	int fds[2], set = epoll_create1(EPOLL_CLOEXEC);
	struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLPRI}};
	struct timespec time;
	struct timeval limit;
	fd_set in;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 && set >= 0);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fds[0], &event) == 0);
	p[0].fd = p[1].fd = fds[0];
	for (int wait = 0; wait < 3; wait++) {
		CHECK(weft_posix_poll(p, 1, wait) == 0 && weft_posix_poll(p, 2, wait) == 0);
		time = (struct timespec){0, wait * 1000000};
		CHECK(weft_posix_ppoll(p, 1, &time, NULL) == 0);
		FD_ZERO(&in);
		FD_SET(fds[0], &in);
		limit = (struct timeval){0, wait * 1000};
		CHECK(weft_posix_select(fds[0] + 1, &in, NULL, NULL, &limit) == 0 && !FD_ISSET(fds[0], &in));
		CHECK(weft_posix_epoll_wait(set, &event, 1, wait) == 0);
	}
	close(set);
	close(fds[0]);
	close(fds[1]);
	return pass;
}

int main(void)
{
	weft_rt_config_t config = {.workers = 1};

	CHECK(weft_rt_run(&config, calls, NULL, NULL) == 0);
	printf("ok - interrupted\n");
	return 0;
}
