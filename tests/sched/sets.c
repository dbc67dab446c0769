/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Join sets, broadcasts, watches, a once whose function fails: PROGRAM WORKERS FIRST-SEED COUNT; 0 workers: simulated.
 *
 * A join set returns each task once, with its result, and never runs more tasks than its limit. A broadcast: a receiver
 * gets the items in their order, and the received and missed items together are all items. A once: one call succeeds,
 * or one call reports the error.
 */
#include "check.h"
#include "draw.h"

enum { TASKS = 16, CALLERS = 5, ITEMS = 60, KEPT = 5, RECEIVERS = 4 };

static unsigned count(unsigned *what)
{
	return __atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST);
}

static uint64_t some_deadline(uint64_t *random)
{
	return draw(random, 3) ? WEFT_NEVER : draw(random, 2) ? 0 : weft_now() + 1000;
}

static void yield_a_little(uint64_t *random)
{
	for (unsigned i = draw(random, 4); i--;)
		weft_task_yield();
}

/* ---- a join set -------------------------------------------------------------------------------------------------- */

struct job {
	weft_join_set_task_t task;
	struct set_world *world;
	uint64_t random;
	unsigned returned;
	bool fails;
};

struct set_world {
	weft_join_set_t set;
	struct job jobs[TASKS];
	unsigned running, limit, collected, spawned;
	weft_event_t all_spawned;
	uint64_t seed;
};

static void ends(struct set_world **w)
{
	__atomic_sub_fetch(&(*w)->running, 1, __ATOMIC_SEQ_CST);
}

static void *works(void *pass)
{
	struct job *j = pass;
	struct set_world *w = j->world;
	unsigned running = count(&w->running);

	weft_defer(ends, &w);
	CHECK(!w->limit || running <= w->limit);
	yield_a_little(&j->random);
	if (j->fails)
		weft_sleep(WEFT_NEVER - 1);
	return j;
}

static void *collects(void *pass)
{
	struct set_world *w = pass;
	uint64_t random = w->seed + 7 + count(&w->collected), deadline;
	weft_join_set_task_t *m;
	struct job *j;
	bool all;
	int error;

	for (;;) {
		deadline = some_deadline(&random);
		m = NULL;
		all = weft_event_is_set(&w->all_spawned);
		error = weft_join_set_next_until(&w->set, &m, deadline);
		CHECK(error == 0 || (error == -ETIMEDOUT && deadline != WEFT_NEVER) || error == -ENOENT);
		if (error == -ENOENT && all)
			return NULL;
		if (error) {
			weft_task_yield();
			continue;
		}
		j = m->arg;
		CHECK(m == &j->task && count(&j->returned) == 1);
		CHECK(j->fails ? m->error == -ECANCELED && !m->result : m->error == 0 && m->result == j);
	}
}

static int spawn(struct set_world *w, struct job *j, uint64_t *random)
{
	const weft_task_attr_t named = {.coro = {.name = "job"}};
	uint64_t deadline;
	int error;

	do {
		deadline = some_deadline(random);
		error =
		    weft_join_set_spawn_until(&w->set, &j->task, works, j, draw(random, 2) ? &named : NULL, deadline);
		CHECK(error == 0 || (error == -ETIMEDOUT && deadline != WEFT_NEVER && w->limit));
		if (error)
			weft_task_yield();
	} while (error);
	return error;
}

static void *joins(void *pass)
{
	uint64_t seed = *(uint64_t *)pass, random = seed;
	struct set_world w = {.seed = seed, .limit = (unsigned)(seed % 4)};
	weft_join_set_task_t *none;

	WEFT_SCOPE(scope);
	WEFT_SCOPE(collecting);
	w.set = (weft_join_set_t)WEFT_JOIN_SET(&scope, w.limit);
	CHECK(weft_join_set_next(&w.set, &none) == -ENOENT && weft_join_set_count(&w.set) == 0);
	CHECK(weft_join_set_spawn(&w.set, &w.jobs[0].task, NULL, NULL) == -EINVAL);
	for (int i = 0; i < 2; i++)
		CHECK(weft_scope_spawn(&collecting, collects, &w) == 0);
	for (unsigned i = 0; i < TASKS; i++) {
		struct job *j = &w.jobs[i];

		*j = (struct job){.world = &w, .random = seed * TASKS + i, .fails = !draw(&random, 4)};
		CHECK(spawn(&w, j, &random) == 0);
		if (j->fails)
			weft_task_cancel(&j->task.handle);
	}
	weft_event_set(&w.all_spawned);
	CHECK(weft_scope_wait(&collecting) == 0);
	CHECK(weft_join_set_count(&w.set) == 0 && weft_join_set_next_until(&w.set, &none, 0) == -ENOENT);
	CHECK(weft_scope_wait(&scope) == 0);
	for (unsigned i = 0; i < TASKS; i++)
		CHECK(w.jobs[i].returned == 1);
	CHECK(w.running == 0);
	return pass;
}

static void *fails_at_once(void *pass)
{
	(void)pass;
	weft_task_fail(-EIO);
}

/* A task that fails cancels its scope, which also cancels the wait for the next task. */
static void *fails(void *pass)
{
	struct set_world w = {0};
	weft_join_set_task_t *m;
	int error;

	WEFT_SCOPE(scope);
	weft_join_set_t set = WEFT_JOIN_SET(&scope, 1);
	w.jobs[0] = (struct job){.world = &w, .fails = true};
	CHECK(weft_join_set_spawn(&set, &w.jobs[0].task, works, &w.jobs[0]) == 0);
	CHECK(weft_join_set_spawn_until(&set, &w.jobs[1].task, works, &w.jobs[1], NULL, 0) == -ETIMEDOUT);
	CHECK(weft_join_set_next_until(&set, &m, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_scope_spawn(&scope, fails_at_once, NULL) == 0);
	error = weft_join_set_next(&set, &m); /* 0: the cancelled task has ended before the call */
	CHECK(error == 0 || error == -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -EIO);
	CHECK(weft_join_set_spawn_until(&set, &w.jobs[1].task, works, &w.jobs[1], NULL, 0) == -EINVAL);
	CHECK(!error || weft_join_set_next(&set, &m) == 0);
	CHECK(m == &w.jobs[0].task && m->error == -ECANCELED && weft_join_set_next(&set, &m) == -ENOENT);
	return pass;
}

/* ---- broadcast and watch ----------------------------------------------------------------------------------------- */

struct news {
	weft_broadcast_t *from;
	weft_event_t never;
	uint64_t random;
};

static int receive(struct news *n, weft_receiver_t *r, unsigned *item)
{
	uint64_t deadline = some_deadline(&n->random);
	weft_case_t cases[] = {{.event = &n->never}, {.from = r, .receive = item}};
	int result;

	if (draw(&n->random, 2)) {
		result = weft_broadcast_receive_until(r, item, deadline);
	} else {
		result = weft_select_until(cases, 2, deadline);
		CHECK(result != 0);
		result = result < 0 ? result : cases[1].status;
	}
	CHECK(result == 0 || result == -EPIPE || result == -ECANCELED ||
	      (result == -ETIMEDOUT && deadline != WEFT_NEVER));
	return result;
}

static void *follows(void *pass)
{
	struct news *n = pass;
	weft_receiver_t r = weft_broadcast_receiver(n->from);
	uint64_t expected = r.next;
	unsigned item = 0;
	int result;

	while ((result = receive(n, &r, &item)) != -EPIPE) {
		if (result == -ECANCELED)
			return NULL;
		if (result)
			continue;
		CHECK(item == expected + r.missed);
		expected = item + 1;
		yield_a_little(&n->random);
	}
	CHECK(expected == ITEMS);
	return NULL;
}

static void *tells_news(void *pass)
{
	uint64_t seed = *(uint64_t *)pass, random = seed;
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	unsigned items[KEPT] = {0}, one = 0, item = 0;
	weft_broadcast_t broadcast = WEFT_BROADCAST(items), watch = WEFT_WATCH(one),
			 *b = seed % 2 ? &watch : &broadcast;
	struct news news[RECEIVERS];
	weft_task_t handle;

	CHECK(weft_broadcast_latest(b, &item) == (seed % 2 ? 0 : -ENODATA));
	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		news[i] = (struct news){.from = b, .random = seed * RECEIVERS + i};
		CHECK(weft_scope_spawn_with(&scope, &handle, follows, &news[i], &codes) == 0);
	}
	for (unsigned i = seed % 2; i < ITEMS; i++) {
		CHECK(weft_broadcast_send(b, &i) == 0);
		CHECK(weft_broadcast_latest(b, &item) == 0 && item == i);
		yield_a_little(&random);
		if (i == ITEMS / 2)
			weft_task_cancel(&handle);
	}
	weft_broadcast_close(b);
	CHECK(weft_broadcast_send(b, &item) == -EPIPE);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

/* ---- once -------------------------------------------------------------------------------------------------------- */

struct once_world {
	weft_once_t once;
	unsigned calls, failures, inside, users;
	bool tells;
	uint64_t seed;
};

struct caller {
	struct once_world *world;
	uint64_t random;
	bool is_cancelled;
};

static void leaves(struct once_world **w)
{
	__atomic_sub_fetch(&(*w)->inside, 1, __ATOMIC_SEQ_CST);
}

static int makes(void *pass)
{
	struct caller *c = pass;
	struct once_world *w = c->world;
	unsigned calls = count(&w->calls);

	CHECK(count(&w->inside) == 1);
	weft_defer(leaves, &w);
	CHECK(weft_once_retry(&w->once, makes, c) == -EDEADLK && weft_once_tell(&w->once, makes, c) == -EDEADLK);
	for (unsigned i = 0; i < 3; i++)
		weft_task_yield();
	return w->tells ? -EIO : calls <= w->failures ? -EAGAIN : 0;
}

/* The last user frees it as soon as the user's call has returned. */
static void gives_back(struct once_world **w)
{
	if (__atomic_sub_fetch(&(*w)->users, 1, __ATOMIC_SEQ_CST) == 0) {
		memset((void *)*w, 0xa5, sizeof **w);
		free(*w);
	}
}

static void *calls(void *pass)
{
	struct caller *c = pass;
	struct once_world *w = c->world;
	uint64_t deadline;
	int result;

	weft_defer(gives_back, &w);
	do {
		deadline = some_deadline(&c->random);
		result = w->tells ? weft_once_tell_until(&w->once, makes, c, deadline)
				  : weft_once_retry_until(&w->once, makes, c, deadline);
		if (result == -ECANCELED)
			return NULL;
		CHECK(result == 0 || result == (w->tells ? -EIO : -EAGAIN) ||
		      (result == -ETIMEDOUT && deadline != WEFT_NEVER));
		if (result == -ETIMEDOUT)
			weft_task_yield();
	} while (result == -ETIMEDOUT || (result && !w->tells));
	CHECK(result == (w->tells ? -EIO : 0));
	CHECK(w->tells ? w->calls == 1 : w->calls > w->failures);
	return NULL;
}

static void *once(void *pass)
{
	uint64_t seed = *(uint64_t *)pass, random = seed;
	struct once_world *w = calloc(1, sizeof *w);
	struct caller callers[CALLERS];
	weft_task_t handles[CALLERS];

	CHECK(w);
	*w = (struct once_world){.failures = draw(&random, 4), .tells = seed % 2, .users = CALLERS, .seed = seed};
	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.world = w, .random = seed * CALLERS + i};
		CHECK(weft_scope_spawn_with(&scope, &handles[i], calls, &callers[i], NULL) == 0);
	}
	yield_a_little(&random);
	if (!(seed % 2)) /* a cancelled initializer is reported as an error */
		weft_task_cancel(&handles[draw(&random, CALLERS)]);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
		 rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : 100;
	weft_fn_t *const tests[] = {joins, fails, tells_news, once};
	weft_rt_config_t config = {.workers = workers};
	void *result = NULL;

	for (uint64_t seed = first; seed < first + rounds; seed++)
		for (int i = 0; i < 4; i++) {
			int error = workers ? weft_rt_run(&config, tests[i], &seed, &result)
					    : weft_simulate(seed, NULL, tests[i], &seed, &result);

			if (error || result != &seed)
				printf("not ok - test %d, seed %lu: %s\n", i, (unsigned long)seed, strerror(-error));
			CHECK(error == 0 && result == &seed);
		}
	printf("ok\n");
	return 0;
}
