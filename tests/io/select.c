/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Select over readiness, task ends, channels and events: PROGRAM WORKERS SEEDS; 0 workers: simulated.
 *
 * Writers write to pipes and send to a channel. Readers select among all of them, some with deadlines, some in
 * weft_blocking, and some are cancelled. At the end each byte and each item has been received once: a case that is not
 * chosen has no effect, and a ready case is not forgotten.
 */
#include "../sched/check.h"
#include "../sched/draw.h"

#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <weft/io.h>

enum { PIPES = 2, WRITERS = 3, EACH = 20, READERS = 3, VICTIMS = 3, CASES = PIPES + 3 };

struct world {
	int pipes[PIPES][2];
	weft_chan_t *chan;
	weft_event_t stop;
	unsigned sent, received;
	uint64_t seed;
};

struct member {
	struct world *world;
	uint64_t random;
};

static struct member member(struct world *w, unsigned number)
{
	return (struct member){w, w->seed * 64 + number};
}

static void count(unsigned *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST);
}

static void *writes(void *pass)
{
	struct member *m = pass;
	struct world *w = m->world;

	for (int i = 0; i < EACH; i++) {
		switch (draw(&m->random, 4)) {
		case 0:
			weft_task_yield();
			break;
		case 1:
			count(&w->sent);
			CHECK(weft_chan_send(w->chan, NULL) == 0);
			break;
		default:
			count(&w->sent);
			CHECK(weft_write(w->pipes[draw(&m->random, PIPES)][1], "x", 1) == 1);
		}
	}
	return NULL;
}

static void *naps(void *pass)
{
	struct member *m = pass;

	for (unsigned i = draw(&m->random, 4); i--;)
		weft_task_yield();
	return NULL;
}

/* If another reader was faster, this read returns nothing. */
static void take_byte(struct world *w, int from)
{
	char byte;
	ssize_t n = weft_read_until(from, &byte, 1, 0);

	CHECK(n == 1 || n == -ETIMEDOUT || n == -ECANCELED);
	if (n == 1)
		count(&w->received);
}

/* One select. *from becomes the readable descriptor. Returns false at the end. */
static bool select_once(struct member *m, weft_readiness_t *ready, weft_task_t *nap, bool *joined, int *from)
{
	struct world *w = m->world;
	weft_case_t cases[CASES] = {{.chan = w->chan}, {.task = *joined ? NULL : nap}, {.event = &w->stop}};
	uint64_t deadline = draw(&m->random, 4) ? WEFT_NEVER : draw(&m->random, 2) ? 0 : weft_now() + 1000;
	int which;

	for (int i = 0; i < PIPES; i++)
		cases[3 + i].ready = &ready[i];
	which = draw(&m->random, 2) ? weft_select_until(cases, CASES, deadline)
				    : weft_select_fair_until(cases, CASES, deadline);
	CHECK(which >= 0 || which == -ECANCELED || (which == -ETIMEDOUT && deadline != WEFT_NEVER));
	if (which == 0)
		count(&w->received);
	else if (which == 1)
		CHECK(!*joined && (*joined = true) && cases[1].status == 0 && weft_join(nap, NULL) == 0);
	else if (which > 2)
		CHECK(cases[which].status & POLLIN);
	*from = which > 2 ? ready[which - 3].fd : -1;
	return which != 2 && which != -ECANCELED;
}

static void *reads(void *pass)
{
	struct member *m = pass;
	weft_readiness_t ready[PIPES];
	struct member napper = {m->world, m->random};
	bool goes_on = true;

	for (int i = 0; i < PIPES; i++)
		ready[i] = weft_readiness(m->world->pipes[i][0], POLLIN);
	while (goes_on) {
		weft_task_t nap = {0};
		bool joined = false;
		int from;

		WEFT_SCOPE(scope);
		if (weft_scope_spawn_with(&scope, &nap, naps, &napper, NULL))
			break;
		for (int i = 0; i < 3 && goes_on; i++) {
			if (draw(&m->random, 4))
				goes_on = select_once(m, ready, &nap, &joined, &from);
			else
				weft_blocking
				{
					goes_on = select_once(m, ready, &nap, &joined, &from);
				}
			if (from >= 0)
				take_byte(m->world, from);
		}
		if (weft_join(&nap, NULL))
			break;
		(void)weft_scope_wait(&scope);
	}
	return NULL;
}

static void *cancels(void *pass)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	struct world *w = pass;
	struct member m = member(w, 50), victims[VICTIMS];
	weft_task_t handles[VICTIMS];

	for (unsigned round = 0; round < 4; round++) {
		WEFT_SCOPE(scope);
		for (unsigned i = 0; i < VICTIMS; i++) {
			victims[i] = member(w, 20 + round * VICTIMS + i);
			CHECK(weft_scope_spawn_with(&scope, &handles[i], reads, &victims[i], i ? &codes : NULL) == 0);
		}
		for (unsigned i = draw(&m.random, 8); i--;)
			weft_task_yield();
		for (unsigned i = 0; i < VICTIMS; i++)
			weft_task_cancel(&handles[i]);
		CHECK(weft_scope_wait(&scope) == 0);
	}
	return NULL;
}

static void *conserves(void *world)
{
	struct world *w = world;
	struct member writers[WRITERS], readers[READERS];

	for (int i = 0; i < PIPES; i++)
		CHECK(weft_pipe(w->pipes[i]) == 0);
	WEFT_SCOPE(scope);
	WEFT_SCOPE(working);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = member(w, 10 + i);
		CHECK(weft_scope_spawn(&scope, reads, &readers[i]) == 0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = member(w, i);
		CHECK(weft_scope_spawn(&working, writes, &writers[i]) == 0);
	}
	CHECK(weft_scope_spawn(&working, cancels, w) == 0);
	CHECK(weft_scope_wait(&working) == 0);
	for (unsigned waits = 0; __atomic_load_n(&w->received, __ATOMIC_SEQ_CST) < w->sent; waits++) {
		CHECK(waits < 20000);
		CHECK(weft_sleep(MS) == 0);
	}
	weft_event_set(&w->stop);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(w->received == w->sent);
	for (int i = 0; i < PIPES; i++)
		CHECK(weft_close(w->pipes[i][0]) == 0 && weft_close(w->pipes[i][1]) == 0);
	return w;
}

/* ---- single cases ------------------------------------------------------------------------------------------------ */

static void *closes(void *pass)
{
	CHECK(weft_sleep(MS) == 0);
	CHECK(weft_close(*(int *)pass) == 0);
	return NULL;
}

static void *writes_late(void *pass)
{
	CHECK(weft_sleep(MS) == 0);
	CHECK(weft_write(*(int *)pass, "x", 1) == 1);
	return NULL;
}

static void *waits_for(void *pass)
{
	CHECK(weft_event_wait(pass) == 0);
	return NULL;
}

/* Does an epoll set of this process have the descriptor? */
static bool is_registered(int number)
{
	char name[64], wanted[64], line[256];
	bool found = false;
	FILE *info;

	snprintf(wanted, sizeof wanted, "tfd: %8d ", number);
	for (int fd = 0; fd < 64; fd++) {
		snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
		info = fopen(name, "r");
		while (info && fgets(line, sizeof line, info))
			found |= !strncmp(line, wanted, strlen(wanted));
		if (info)
			fclose(info);
	}
	return found;
}

static void readiness(int fds[2])
{
	weft_readiness_t in = weft_readiness(fds[0], POLLIN), out = weft_readiness(fds[1], POLLOUT);
	weft_readiness_t none = weft_readiness(-1, POLLIN);
	weft_event_t never = {0};
	char byte;

	weft_case_t cases[] = {{.ready = &in}, {.event = &never}, {.ready = &out}};
	CHECK(weft_select_until(cases, 2, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(cases, 2, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_select(cases, 3) == 2 && cases[2].status == POLLOUT);
	weft_case_t twice[] = {{.ready = &in}, {.ready = &in}};
	CHECK(weft_select_until(twice, 2, 0) == -EINVAL);
	weft_case_t bad[] = {{.ready = &in}, {.ready = &none}};
	CHECK(weft_select(bad, 2) == 1 && bad[1].status == -EBADF);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, writes_late, &fds[1]) == 0);
	CHECK(weft_select(cases, 2) == 0 && cases[0].status & POLLIN);
	CHECK(weft_read(fds[0], &byte, 1) == 1);
	/* The first select leaves nothing behind: the next select sees the next byte. */
	CHECK(weft_scope_spawn(&scope, writes_late, &fds[1]) == 0);
	CHECK(weft_select(cases, 2) == 0 && weft_read(fds[0], &byte, 1) == 1);
	CHECK(weft_scope_spawn(&scope, closes, &fds[0]) == 0);
	CHECK(weft_select(cases, 2) == 0 && (cases[0].status == -ECANCELED || cases[0].status == -EBADF));
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[1]) == 0);
}

/* Other code closes the descriptor. */
static void leaves_nothing(void)
{
	int fds[2];

	CHECK(pipe(fds) == 0);
	weft_readiness_t in = weft_readiness(fds[0], POLLIN), out = weft_readiness(fds[1], POLLOUT);
	weft_event_t never = {0};
	weft_case_t cases[] = {{.event = &never}, {.ready = &in}, {.ready = &out}};
	CHECK(weft_select_until(cases, 2, weft_now() + MS) == -ETIMEDOUT && !is_registered(fds[0]));
	CHECK(weft_select(cases, 3) == 2 && !is_registered(fds[0]) && !is_registered(fds[1]));
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

/* A handler receives each check as an operation. It may wait in it, and may answer it. */
struct watcher {
	unsigned polls;
	int mocked;
};

static int watches(void *state, weft_io_t *io)
{
	struct watcher *w = state;

	w->polls += io->kind == WEFT_IO_POLL;
	if (io->fd == w->mocked) {
		io->result = POLLPRI;
		return WEFT_IO_DONE;
	}
	weft_task_yield();
	return weft_op_io(io);
}

WEFT_HANDLER(watched, weft_tail(weft_op_io, watches));

static void *selects_under_a_handler(void *pass)
{
	int *fds = pass;
	weft_readiness_t in = weft_readiness(fds[0], POLLIN), mocked = weft_readiness(-7, POLLIN);
	weft_case_t cases[] = {{.ready = &in}, {.ready = &mocked}};

	CHECK(weft_select(cases, 1) == 0 && cases[0].status & POLLIN);
	CHECK(weft_select(&cases[1], 1) == 0 && cases[1].status == POLLPRI);
	return pass;
}

static void under_a_handler(int fds[2])
{
	struct watcher w = {.mocked = -7};
	char byte;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, writes_late, &fds[1]) == 0);
	CHECK(weft_run(&watched, &w, selects_under_a_handler, fds) == fds && w.polls >= 2);
	CHECK(weft_read(fds[0], &byte, 1) == 1);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void task_ends(void)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	weft_event_t go[2] = {{0}, {0}}, never = {0};
	weft_task_t tasks[2], unborn = {0};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 2; i++)
		CHECK(weft_scope_spawn_with(&scope, &tasks[i], waits_for, &go[i], &codes) == 0);
	weft_case_t cases[] = {{.task = &tasks[0]}, {.task = &tasks[1]}, {.event = &never}};
	CHECK(weft_select_until(cases, 3, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(cases, 3, weft_now() + MS) == -ETIMEDOUT);
	weft_case_t twice[] = {{.event = &never}, {.task = &tasks[0]}, {.task = &tasks[0]}};
	CHECK(weft_select(twice, 3) == -EBUSY);
	weft_case_t born[] = {{.event = &never}, {.task = &unborn}};
	CHECK(weft_select(born, 2) == 1 && weft_join(&unborn, NULL) == -EINVAL);
	CHECK(weft_join_until(&tasks[0], NULL, weft_now() + MS) == -ETIMEDOUT);
	weft_event_set(&go[1]);
	CHECK(weft_select(cases, 3) == 1 && cases[1].status == 0 && weft_join(&tasks[1], NULL) == 0);
	weft_event_set(&go[0]);
	CHECK(weft_select(cases, 1) == 0 && weft_join(&tasks[0], NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void *singles(void *pass)
{
	int fds[2];

	CHECK(weft_pipe(fds) == 0);
	under_a_handler(fds);
	readiness(fds);
	leaves_nothing();
	task_ends();
	return pass;
}

/* ---- a thread ---------------------------------------------------------------------------------------------------- */

static void *sets_late(void *event)
{
	usleep(2000);
	weft_event_set(event);
	return NULL;
}

/* No eventfd can be opened. */
static void has_no_descriptor(weft_case_t *cases)
{
	struct rlimit before, few;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = (struct rlimit){2, before.rlim_max};
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK(weft_select(cases, 2) == -EMFILE && weft_select_until(cases, 2, 0) == -ETIMEDOUT);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void thread(void)
{
	weft_event_t event = {0};
	pthread_t other;
	int fds[2];

	CHECK(pipe(fds) == 0);
	weft_readiness_t in = weft_readiness(fds[0], POLLIN);
	weft_case_t cases[] = {{.ready = &in}, {.event = &event}};
	CHECK(weft_select_until(cases, 2, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(cases, 2, weft_now() + MS) == -ETIMEDOUT);
	CHECK(pthread_create(&other, NULL, sets_late, &event) == 0);
	CHECK(weft_select(cases, 2) == 1);
	CHECK(pthread_join(other, NULL) == 0);
	weft_event_reset(&event);
	has_no_descriptor(cases);
	CHECK(write(fds[1], "x", 1) == 1);
	CHECK(weft_select(cases, 2) == 0 && cases[0].status == POLLIN);
	CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;

	thread();
	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct world w = {.seed = seed, .chan = weft_chan_make(0, seed % 3)};

		CHECK(w.chan);
		if (seed < 20)
			run_task(workers, seed, singles, &w);
		run_task(workers, seed, conserves, &w);
		CHECK(weft_chan_free(w.chan) == 0);
	}
	printf("ok\n");
	return 0;
}
