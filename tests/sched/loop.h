/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests of runtimes in an event loop of the program, by poll and by edge-triggered epoll. */
#ifndef WEFT_TESTS_SCHED_LOOP_H
#define WEFT_TESTS_SCHED_LOOP_H

#include "check.h"

#include <poll.h>
#include <sys/epoll.h>

enum { PATIENCE = 10000 /* milliseconds; if the descriptor is not readable by then, it has not been signalled */ };

struct loop {
	weft_rt_t *rt;
	int epoll; /* -1: poll */
	long steps;
};

static inline struct loop open_loop(bool by_epoll)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	struct loop l = {.epoll = -1};

	CHECK(weft_rt_open(NULL, &l.rt) == 0);
	if (by_epoll) {
		l.epoll = epoll_create1(EPOLL_CLOEXEC);
		CHECK(epoll_ctl(l.epoll, EPOLL_CTL_ADD, weft_rt_fd(l.rt), &event) == 0);
	}
	return l;
}

static inline void close_loop(struct loop *l)
{
	while (weft_rt_close(l->rt) == -EBUSY)
		weft_rt_step(l->rt, 0);
	if (l->epoll >= 0)
		close(l->epoll);
}

/* Returns the result of poll or epoll_wait. */
static inline int look(struct loop *l, int timeout)
{
	struct pollfd fd = {weft_rt_fd(l->rt), POLLIN, 0};
	struct epoll_event event;

	return l->epoll < 0 ? poll(&fd, 1, timeout) : epoll_wait(l->epoll, &event, 1, timeout);
}

struct loop_test {
	const char *name;
	void (*run)(bool by_epoll);
};

/* Runs all tests, or the test that the first argument names, by poll and by epoll. The last entry has no name. */
static inline int run_loop_tests(const struct loop_test *test, int argc, char **argv)
{
	for (; test->name; test++) {
		if (argc > 1 && strcmp(argv[1], test->name))
			continue;
		test->run(false);
		test->run(true);
		printf("ok - %s\n", test->name);
	}
	return 0;
}

#endif
