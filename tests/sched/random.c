/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random programs of tasks: PROGRAM WORKERS FIRST-SEED COUNT; 0 workers: simulated. Tasks spawn, join, cancel, yield,
 * sleep, lock, send, receive, select and fail as the seed decides, in scopes with and without deadlines. In every case
 * all tasks end, a lock has one owner, and every item that was sent is received once, or is still in its channel.
 */
#include "check.h"
#include "draw.h"

enum { CHANS = 3, LOCKS = 2, DEPTH = 3 };

struct world {
	weft_chan_t *chans[CHANS];
	weft_mutex_t locks[LOCKS];
	weft_sem_t sem;
	weft_rwlock_t book;
	int owners[LOCKS], permits, writers;
	long sent[CHANS], received[CHANS], tasks;
};

struct task {
	struct world *world;
	uint64_t seed;
	int depth;
};

static void add(long *count, long more)
{
	__atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

static uint64_t soon(uint64_t *seed)
{
	return weft_now() + draw(seed, 300000);
}

static void send_one(struct world *w, uint64_t *seed)
{
	int c = (int)draw(seed, CHANS);
	long item = draw(seed, 1000);

	if (weft_chan_send_until(w->chans[c], &item, soon(seed)) == 0)
		add(&w->sent[c], item);
}

static void receive_one(struct world *w, uint64_t *seed)
{
	int c = (int)draw(seed, CHANS);
	long item;

	if (weft_chan_receive_until(w->chans[c], &item, soon(seed)) == 0)
		add(&w->received[c], item);
}

static void select_one(struct world *w, uint64_t *seed)
{
	weft_case_t cases[CHANS];
	long item = draw(seed, 1000), got;
	uint32_t sends = draw(seed, 1 << CHANS);
	int i;

	for (i = 0; i < CHANS; i++) {
		cases[i] = (weft_case_t){.chan = w->chans[i], .receive = &got};
		if (sends >> i & 1)
			cases[i].send = &item;
	}
	i = weft_select_until(cases, CHANS, soon(seed));
	if (i >= 0)
		add(cases[i].send ? &w->sent[i] : &w->received[i], cases[i].send ? item : got);
}

static void unlock(weft_mutex_t *mutex)
{
	CHECK(weft_mutex_unlock(mutex) == 0);
}

static void lock_one(struct world *w, uint64_t *seed)
{
	int l = (int)draw(seed, LOCKS);

	if (weft_mutex_lock_until(&w->locks[l], soon(seed)))
		return;
	weft_defer(unlock, &w->locks[l]);
	CHECK(w->owners[l]++ == 0);
	if (draw(seed, 2)) {
		weft_shield_begin(); /* otherwise a cancellation would skip the count below */
		weft_task_yield();
		weft_shield_end();
	}
	CHECK(--w->owners[l] == 0);
}

static void use_the_book(struct world *w, uint64_t *seed)
{
	bool writes = draw(seed, 2);

	if (writes ? weft_rwlock_write_until(&w->book, soon(seed)) : weft_rwlock_read_until(&w->book, soon(seed)))
		return;
	if (writes)
		CHECK(__atomic_fetch_add(&w->writers, 1, __ATOMIC_SEQ_CST) == 0);
	else
		CHECK(__atomic_load_n(&w->writers, __ATOMIC_SEQ_CST) == 0);
	weft_shield_begin();
	weft_task_yield();
	weft_shield_end();
	if (writes)
		__atomic_fetch_sub(&w->writers, 1, __ATOMIC_SEQ_CST);
	CHECK(weft_rwlock_unlock(&w->book) == 0);
}

static void take_a_permit(struct world *w, uint64_t *seed)
{
	if (weft_sem_take_until(&w->sem, soon(seed)))
		return;
	CHECK(__atomic_add_fetch(&w->permits, 1, __ATOMIC_SEQ_CST) <= 2);
	weft_shield_begin();
	weft_sleep(draw(seed, 50000));
	weft_shield_end();
	__atomic_fetch_sub(&w->permits, 1, __ATOMIC_SEQ_CST);
	weft_sem_give(&w->sem, 1);
}

static void *lives(void *argument);

static void has_children(struct task *t)
{
	struct task children[3];
	weft_task_t handles[3];
	bool joins[3] = {false};
	uint32_t count = 1 + draw(&t->seed, 3), i;

	WEFT_SCOPE_UNTIL(scope, draw(&t->seed, 3) ? WEFT_NEVER : soon(&t->seed));
	for (i = 0; i < count; i++) {
		children[i] = (struct task){t->world, t->seed + i * 7919, t->depth + 1};
		joins[i] = draw(&t->seed, 2);
		if (weft_scope_spawn_with(&scope, joins[i] ? &handles[i] : NULL, lives, &children[i], NULL))
			joins[i] = false;
	}
	for (i = 0; i < count; i++) {
		if (joins[i] && draw(&t->seed, 4) == 0)
			weft_task_cancel(&handles[i]);
		if (joins[i] && draw(&t->seed, 2))
			(void)weft_join(&handles[i], NULL);
	}
	if (draw(&t->seed, 8) == 0)
		weft_scope_cancel(&scope, -ECANCELED);
	if (draw(&t->seed, 4))
		(void)weft_scope_wait(&scope);
}

static void leaves(struct world *w)
{
	add(&w->tasks, -1);
}

static void *lives(void *argument)
{
	struct task *t = argument;
	uint32_t steps = 2 + draw(&t->seed, 10);

	add(&t->world->tasks, 1);
	weft_defer(leaves, t->world);
	while (steps--)
		switch (draw(&t->seed, 11)) {
		case 0:
			weft_task_yield();
			break;
		case 1:
			weft_sleep(draw(&t->seed, 100000));
			break;
		case 2:
			if (t->depth < DEPTH)
				has_children(t);
			break;
		case 3:
			if (draw(&t->seed, 10) == 0)
				weft_task_fail(-EIO);
			break;
		case 4:
			lock_one(t->world, &t->seed);
			break;
		case 5:
			use_the_book(t->world, &t->seed);
			break;
		case 6:
			take_a_permit(t->world, &t->seed);
			break;
		case 7:
			select_one(t->world, &t->seed);
			break;
		case 8:
			send_one(t->world, &t->seed);
			break;
		default:
			receive_one(t->world, &t->seed);
		}
	return NULL;
}

static void *first(void *argument)
{
	struct task *seed = argument, roots[4];
	int error;

	WEFT_SCOPE(scope);
	for (int i = 0; i < 4; i++) {
		roots[i] = (struct task){seed->world, seed->seed * 31 + (uint64_t)i * 104729, 0};
		error = weft_scope_spawn(&scope, lives, &roots[i]);
		CHECK(error == 0 || error == -ECANCELED); /* the first task may already have failed */
	}
	(void)weft_scope_wait(&scope);
	return argument;
}

static void run(uint64_t seed, unsigned workers)
{
	weft_rt_config_t config = {.workers = workers};
	struct world w = {.sem = WEFT_SEM(2)};
	struct task t = {&w, seed, 0};
	long item, left;
	int error, i;

	for (i = 0; i < CHANS; i++)
		CHECK((w.chans[i] = weft_chan_make(sizeof(long), (size_t)i)));
	error = workers ? weft_rt_run(&config, first, &t, NULL) : weft_simulate(seed, NULL, first, &t, NULL);
	CHECK(error == 0 && w.tasks == 0 && w.permits == 0 && w.sem.permits == 2);
	for (i = 0; i < CHANS; i++) {
		for (left = 0; weft_chan_receive_until(w.chans[i], &item, 0) == 0;)
			left += item;
		CHECK(w.sent[i] == w.received[i] + left);
		CHECK(weft_chan_free(w.chans[i]) == 0);
	}
	for (i = 0; i < LOCKS; i++)
		CHECK(weft_mutex_try_lock(&w.locks[i]) && weft_mutex_unlock(&w.locks[i]) == 0);
	CHECK(weft_rwlock_write_until(&w.book, 0) == 0);
}

int main(int argc, char **argv)
{
	uint64_t seed, count;

	if (argc < 4)
		return 2;
	seed = strtoull(argv[2], NULL, 10);
	for (count = strtoull(argv[3], NULL, 10); count; count--, seed++)
		run(seed, (unsigned)atoi(argv[1]));
	printf("ok - seeds %s to %llu\n", argv[2], (unsigned long long)seed - 1);
}
