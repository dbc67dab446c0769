/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Input and output of a runtime that the program's own loop steps, by poll and by EPOLLET. */
#define _GNU_SOURCE
#include "../sched/loop.h"

#include <pthread.h>
#include <weft/io.h>

enum { ROUNDS = 2000, TASKS = 50 };

static const char *wanted_back_end(void)
{
	const char *name = getenv("WEFT_IO");

	return name ? name : "epoll";
}

/* A ring interrupts epoll_wait, so the call must be repeated. */
static bool readable(struct loop *l, int timeout)
{
	int count;

	do
		count = look(l, timeout);
	while (count < 0 && errno == EINTR && !strcmp(wanted_back_end(), "io_uring"));
	return count == 1;
}

static void step_once(struct loop *l)
{
	CHECK(readable(l, PATIENCE));
	while (weft_rt_step(l->rt, MS) == 1)
		;
}

/* Steps the runtime until a task sets *done. */
static void turn(struct loop *l, const int *done)
{
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE))
		step_once(l);
}

static void set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

struct talk {
	struct loop loop;
	int fds[2];
	int done;
};

static void *answers(void *argument)
{
	struct talk *t = argument;
	int i, number;

	CHECK(!strcmp(weft_io_backend(), wanted_back_end()));
	for (i = 0; i < ROUNDS; i++) {
		CHECK(weft_read_all(t->fds[0], &number, sizeof number) == sizeof number && number == i);
		CHECK(weft_write_all(t->fds[0], &number, sizeof number) == sizeof number);
	}
	set(&t->done);
	return NULL;
}

/* A thread whose calls block. */
static void *asks(void *argument)
{
	struct talk *t = argument;
	int i, number;

	for (i = 0; i < ROUNDS; i++) {
		CHECK(write(t->fds[1], &i, sizeof i) == sizeof i);
		CHECK(read(t->fds[1], &number, sizeof number) == sizeof number && number == i);
	}
	return NULL;
}

/* Each request arrives while the loop sleeps in its poll, or is about to sleep. */
static void a_thread_asks(bool by_epoll)
{
	struct talk t = {.loop = open_loop(by_epoll)};
	pthread_t thread;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t.fds) == 0);
	CHECK(weft_rt_spawn(t.loop.rt, answers, &t, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, asks, &t) == 0);
	turn(&t.loop, &t.done);
	CHECK(pthread_join(thread, NULL) == 0);
	close_loop(&t.loop);
	close(t.fds[0]);
	close(t.fds[1]);
}

static void *steps(void *argument)
{
	step_once(argument);
	return NULL;
}

/* The threads step the runtime in turn: each continues with the same ring. */
static void threads_take_turns(bool by_epoll)
{
	struct talk t = {.loop = open_loop(by_epoll)};
	pthread_t asking, stepping;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t.fds) == 0);
	CHECK(weft_rt_spawn(t.loop.rt, answers, &t, NULL) == 0);
	CHECK(pthread_create(&asking, NULL, asks, &t) == 0);
	while (!t.done) {
		CHECK(pthread_create(&stepping, NULL, steps, &t.loop) == 0);
		CHECK(pthread_join(stepping, NULL) == 0);
	}
	CHECK(pthread_join(asking, NULL) == 0);
	close_loop(&t.loop);
	close(t.fds[0]);
	close(t.fds[1]);
}

struct ends {
	int fds[2];
	int begun, timed_out, ended;
};

static void ended(struct ends *e)
{
	__atomic_fetch_add(&e->ended, 1, __ATOMIC_RELEASE);
}

/* No peer writes: a deadline passes, and then all tasks end. */
static void *waits(void *argument)
{
	struct ends *e = argument;
	char byte;

	weft_defer(ended, e);
	CHECK(weft_read_until(e->fds[0], &byte, 1, weft_now() + 5 * MS) == -ETIMEDOUT);
	e->timed_out++;
	e->begun += e->timed_out == TASKS;
	(void)weft_read(e->fds[0], &byte, 1);
	CHECK(false);
	return NULL;
}

static void deadlines_and_the_end(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	struct ends e = {.begun = 0};
	int i;

	CHECK(pipe(e.fds) == 0);
	for (i = 0; i < TASKS; i++)
		CHECK(weft_rt_spawn(l.rt, waits, &e, NULL) == 0);
	turn(&l, &e.begun);
	weft_rt_cancel(l.rt);
	while (e.ended < TASKS)
		step_once(&l);
	close_loop(&l);
	/* The byte is still in the pipe: no cancelled read has taken it. */
	CHECK(write(e.fds[1], "x", 1) == 1 && read(e.fds[0], &(char){0}, 1) == 1);
	close(e.fds[0]);
	close(e.fds[1]);
}

static void *naps(void *argument)
{
	struct talk *t = argument;

	CHECK(weft_sleep(MS) == 0);
	set(&t->done);
	return NULL;
}

static void *reads(void *argument)
{
	const struct talk *t = argument;
	char byte;

	CHECK(weft_read(t->fds[0], &byte, 1) == 1);
	return NULL;
}

/* One poll reports a byte and a timer. The budget ends after the byte was read: the descriptor must report the timer
 * again, which has already expired. */
static void a_budget_before_a_timer(bool by_epoll)
{
	struct talk t = {.loop = open_loop(by_epoll)};
	uint64_t until;

	CHECK(pipe(t.fds) == 0);
	CHECK(weft_rt_spawn(t.loop.rt, reads, &t, NULL) == 0 && weft_rt_spawn(t.loop.rt, naps, &t, NULL) == 0);
	while (weft_rt_step(t.loop.rt, WEFT_NEVER) == 1)
		;
	until = weft_now() + 2 * MS;
	CHECK(write(t.fds[1], "", 1) == 1);
	while (weft_now() < until)
		;
	CHECK(readable(&t.loop, PATIENCE));
	(void)weft_rt_step(t.loop.rt, 0);
	turn(&t.loop, &t.done);
	close_loop(&t.loop);
	CHECK(close(t.fds[0]) == 0 && close(t.fds[1]) == 0);
}

int main(int argc, char **argv)
{
	static const struct loop_test tests[] = {
	    {"a_thread_asks", a_thread_asks},
	    {"threads_take_turns", threads_take_turns},
	    {"deadlines_and_the_end", deadlines_and_the_end},
	    {"a_budget_before_a_timer", a_budget_before_a_timer},
	    {NULL, NULL},
	};

	return run_loop_tests(tests, argc, argv);
}
