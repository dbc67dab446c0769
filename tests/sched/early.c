/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cancelled and timed-out waits at a barrier, a reader-writer lock and a semaphore: PROGRAM WORKERS FIRST-SEED COUNT; 0
 * workers: simulated.
 *
 * With one thread, a driver starts parties, cancels them, lets deadlines pass, and tries each object itself before the
 * cancelled parties have run. A state machine, which knows only the order of the waiting parties, says how each call
 * must end. With more workers, parties wait, time out and are cancelled at the same time: each time that a barrier
 * opens it lets through exactly the number of parties that it was made for, and the lock and the semaphore keep their
 * limits.
 */
#include "check.h"
#include "draw.h"

enum { PARTIES = 3, PERMITS = 1, WANTED = 3, MOST = 40, COMMANDS = 120, CROWD = 8, OPERATIONS = 12 };

enum kind { MEETS, READS, WRITES, TAKES, KINDS };

enum state { UNUSED, WAITS, PASSED, CANCELLED, LATE, GONE };

struct party {
	struct world *world;
	enum kind kind;
	int wanted; /* permits */
	uint64_t deadline;
	weft_event_t release;
	weft_task_t handle;
	int result;
	bool begun, returned, ended;
	/* The model's expectation. */
	enum state state;
	int expected;
};

struct world {
	weft_barrier_t barrier;
	weft_rwlock_t lock;
	weft_sem_t sem;
	struct party parties[MOST];
	int count;
	/* The state of the model. */
	int readers, writers, permits;
	uint64_t random;
	bool simulated;
};

/* ---- the model: parties are kept in their order of arrival ------------------------------------------------------- */

static void pass(struct party *p, int expected)
{
	p->state = PASSED;
	p->expected = expected;
}

static int waiting(const struct world *w, enum kind one, enum kind other)
{
	int count = 0;

	for (int i = 0; i < w->count; i++)
		count += w->parties[i].state == WAITS && (w->parties[i].kind == one || w->parties[i].kind == other);
	return count;
}

static bool opens(struct world *w)
{
	if (waiting(w, MEETS, MEETS) + 1 < PARTIES)
		return false;
	for (int i = 0; i < w->count; i++)
		if (w->parties[i].state == WAITS && w->parties[i].kind == MEETS)
			pass(&w->parties[i], 0);
	return true;
}

static bool may_enter(const struct world *w, enum kind kind)
{
	return !w->writers && !(kind == WRITES && w->readers);
}

static void count(struct world *w, enum kind kind, int more)
{
	*(kind == WRITES ? &w->writers : &w->readers) += more;
}

static void let_in(struct world *w)
{
	for (int i = 0; i < w->count; i++) {
		struct party *p = &w->parties[i];

		if (p->state != WAITS || (p->kind != READS && p->kind != WRITES))
			continue;
		if (!may_enter(w, p->kind))
			return;
		count(w, p->kind, 1);
		pass(p, 0);
	}
}

static void give(struct world *w, int permits)
{
	w->permits += permits;
	for (int i = 0; i < w->count; i++) {
		struct party *p = &w->parties[i];

		if (p->state != WAITS || p->kind != TAKES)
			continue;
		if (p->wanted > w->permits)
			return;
		w->permits -= p->wanted;
		pass(p, 0);
	}
}

/* Called before the party, or the driver, is counted as waiting. */
static bool can(struct world *w, enum kind kind, int wanted)
{
	if (kind == MEETS)
		return opens(w);
	if (kind == TAKES) {
		if (waiting(w, TAKES, TAKES) || w->permits < wanted)
			return false;
		w->permits -= wanted;
		return true;
	}
	if (waiting(w, READS, WRITES) || !may_enter(w, kind))
		return false;
	count(w, kind, 1);
	return true;
}

static void end_early(struct party *p, enum state how)
{
	p->state = how;
	p->expected = how == LATE ? -ETIMEDOUT : -ECANCELED;
}

/* When a party leaves the queue, the parties behind it may be able to continue. */
static void go_on(struct world *w)
{
	let_in(w);
	give(w, 0);
}

static uint64_t earliest(const struct world *w)
{
	uint64_t when = WEFT_NEVER;

	for (int i = 0; i < w->count; i++)
		if (w->parties[i].state == WAITS && w->parties[i].deadline < when)
			when = w->parties[i].deadline;
	return when;
}

/* ---- the objects ------------------------------------------------------------------------------------------------- */

static int operate(struct world *w, enum kind kind, int wanted, uint64_t deadline)
{
	switch (kind) {
	case MEETS:
		return weft_barrier_wait_until(&w->barrier, deadline);
	case READS:
		return weft_rwlock_read_until(&w->lock, deadline);
	case WRITES:
		return weft_rwlock_write_until(&w->lock, deadline);
	default:
		return weft_sem_take_many_until(&w->sem, (size_t)wanted, deadline);
	}
}

static void *party(void *argument)
{
	struct party *p = argument;

	p->begun = true;
	p->result = operate(p->world, p->kind, p->wanted, p->deadline);
	p->returned = true;
	if (!p->result && (p->kind == READS || p->kind == WRITES)) {
		CHECK(weft_event_wait(&p->release) == 0);
		CHECK(weft_rwlock_unlock(&p->world->lock) == 0);
	}
	p->ended = true;
	return NULL;
}

static void start(struct world *w, weft_scope_t *scope, enum kind kind)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	struct party *p = &w->parties[w->count];

	*p = (struct party){.world = w, .kind = kind, .deadline = WEFT_NEVER};
	p->wanted = 1 + (int)draw(&w->random, WANTED);
	if (w->simulated && draw(&w->random, 2))
		p->deadline = weft_now() + 1000 * (1 + draw(&w->random, 5));
	CHECK(weft_scope_spawn_with(scope, &p->handle, party, p, &codes) == 0);
	while (!p->begun)
		weft_task_yield();
	/* The party has run until it had to wait, because there is only one thread. */
	if (can(w, kind, p->wanted))
		pass(p, kind == MEETS);
	else
		p->state = WAITS;
	w->count++;
}

static void try(struct world *w, enum kind kind)
{
	int wanted = 1 + (int)draw(&w->random, WANTED);
	bool expected = can(w, kind, wanted);
	int result = operate(w, kind, wanted, 0);

	CHECK(result == (!expected ? -ETIMEDOUT : kind == MEETS));
	if (!expected || kind == MEETS)
		return;
	if (kind == TAKES) {
		CHECK(weft_sem_give(&w->sem, (size_t)wanted) == 0);
		give(w, wanted);
		return;
	}
	CHECK(weft_rwlock_unlock(&w->lock) == 0);
	count(w, kind, -1);
	let_in(w);
}

static void cancel(struct world *w, struct party *p)
{
	if (p->state != WAITS)
		return;
	weft_task_cancel(&p->handle);
	end_early(p, CANCELLED);
	go_on(w);
}

static void release(struct world *w, struct party *p)
{
	if (p->state != PASSED || (p->kind != READS && p->kind != WRITES))
		return;
	weft_event_set(&p->release);
	while (!p->ended)
		weft_task_yield();
	p->state = GONE;
	count(w, p->kind, -1);
	let_in(w);
}

/* Only the simulator's clock stands still while tasks run. */
static void let_time_pass(struct world *w, const struct party *until)
{
	if (!w->simulated || until->state != WAITS || until->deadline == WEFT_NEVER)
		return;
	CHECK(weft_sleep_until(until->deadline) == 0);
	/* The clock stops at each deadline, and tasks run before it advances further. */
	for (uint64_t now; (now = earliest(w)) <= weft_now();) {
		for (int i = 0; i < w->count; i++)
			if (w->parties[i].state == WAITS && w->parties[i].deadline == now)
				end_early(&w->parties[i], LATE);
		go_on(w);
	}
}

static void compare(struct world *w)
{
	for (int i = 0; i < w->count; i++) {
		struct party *p = &w->parties[i];

		while (!p->returned && p->state != WAITS)
			weft_task_yield();
		if (p->state == WAITS)
			CHECK(!p->returned);
		else if (p->state != GONE)
			CHECK(p->result == p->expected);
	}
}

static void command(struct world *w, weft_scope_t *scope)
{
	struct party *any = &w->parties[w->count ? draw(&w->random, (uint32_t)w->count) : 0];
	int permits;

	switch (draw(&w->random, 8)) {
	case 0:
	case 1:
		if (w->count < MOST)
			start(w, scope, draw(&w->random, KINDS));
		break;
	case 2:
		cancel(w, any);
		break;
	case 3:
		release(w, any);
		break;
	case 4:
		permits = 1 + (int)draw(&w->random, WANTED);
		CHECK(weft_sem_give(&w->sem, (size_t)permits) == 0);
		give(w, permits);
		break;
	case 5:
		let_time_pass(w, any);
		break;
	case 6:
		if (draw(&w->random, 3) == 0)
			compare(w);
		break;
	default:
		try(w, draw(&w->random, KINDS));
	}
}

static void *drives(void *argument)
{
	struct world *w = argument;
	int left;

	w->permits = PERMITS;
	WEFT_SCOPE(scope);
	for (int i = 0; i < COMMANDS; i++)
		command(w, &scope);
	for (int i = 0; i < w->count; i++)
		cancel(w, &w->parties[i]);
	compare(w);
	do {
		left = w->readers + w->writers;
		for (int i = 0; i < w->count; i++)
			release(w, &w->parties[i]);
	} while (left != w->readers + w->writers);
	CHECK(weft_scope_wait(&scope) == 0 && !left);
	CHECK(w->sem.permits == (size_t)w->permits && w->barrier.arrived == 0);
	return w;
}

/* ---- many workers ------------------------------------------------------------------------------------------------ */

struct crowd {
	struct world world;
	int met, opened, inside, readers, writers;
};

struct guest {
	struct crowd *crowd;
	weft_task_t handle;
	uint64_t random;
};

static int add(int *what, int more)
{
	return __atomic_add_fetch(what, more, __ATOMIC_SEQ_CST);
}

static void uses(struct crowd *c, enum kind kind, bool yields)
{
	if (kind == READS)
		CHECK(add(&c->readers, 1) > 0 && !add(&c->writers, 0));
	else if (kind == WRITES)
		CHECK(add(&c->writers, 1) == 1 && !add(&c->readers, 0));
	else
		CHECK(add(&c->inside, 1) <= PERMITS);
	if (yields)
		weft_task_yield();
	add(kind == READS ? &c->readers : kind == WRITES ? &c->writers : &c->inside, -1);
	CHECK((kind == TAKES ? weft_sem_give(&c->world.sem, 1) : weft_rwlock_unlock(&c->world.lock)) == 0);
}

static void *visits(void *argument)
{
	struct guest *g = argument;
	struct crowd *c = g->crowd;

	for (int i = 0; i < OPERATIONS; i++) {
		enum kind kind = draw(&g->random, 2) ? MEETS : draw(&g->random, KINDS);
		int result = operate(&c->world, kind, 1, weft_now() + draw(&g->random, 100000));

		if (result == -ECANCELED)
			return NULL;
		if (kind == MEETS && result >= 0) {
			add(&c->met, 1);
			add(&c->opened, result);
		} else if (!result) {
			uses(c, kind, draw(&g->random, 2));
		} else {
			CHECK(result == -ETIMEDOUT);
		}
	}
	return NULL;
}

static void *crowds(void *argument)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	struct crowd *c = argument;
	uint64_t *random = &c->world.random;
	struct guest guests[CROWD];

	WEFT_SCOPE(scope);
	for (int i = 0; i < CROWD; i++) {
		guests[i] = (struct guest){.crowd = c, .random = *random + (uint64_t)i * 104729};
		CHECK(weft_scope_spawn_with(&scope, &guests[i].handle, visits, &guests[i], &codes) == 0);
	}
	for (int i = 0; i < CROWD / 2; i++) {
		weft_sleep(draw(random, 50000));
		weft_task_cancel(&guests[draw(random, CROWD)].handle);
	}
	(void)weft_scope_wait(&scope);
	CHECK(c->met == PARTIES * c->opened && c->world.barrier.arrived == 0);
	CHECK(c->world.sem.permits == PERMITS && weft_rwlock_write_until(&c->world.lock, 0) == 0);
	CHECK(weft_rwlock_unlock(&c->world.lock) == 0);
	return c;
}

static void run(uint64_t seed, unsigned workers, weft_fn_t *fn, struct world *w, void *argument)
{
	/* The model of the driver has no switch at an operation that need not wait, which the plainest order
	 * guarantees. */
	static const uint32_t plain[] = {0};
	const weft_rt_config_t config = {.workers = workers, .order = fn == drives ? plain : NULL, .choices = 1};
	void *result;

	w->barrier = (weft_barrier_t)WEFT_BARRIER(PARTIES);
	w->sem = (weft_sem_t)WEFT_SEM(PERMITS);
	w->random = seed;
	w->simulated = !workers;
	CHECK((workers ? weft_rt_run(&config, fn, argument, &result)
		       : weft_simulate(seed, &config, fn, argument, &result)) == 0);
	CHECK(result == argument);
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	uint64_t seed, left;

	if (argc < 4)
		return 2;
	seed = strtoull(argv[2], NULL, 10);
	for (left = strtoull(argv[3], NULL, 10); left; left--, seed++) {
		struct crowd c = {0};
		struct world w = {0};

		dprintf(2, "seed %llu\n", (unsigned long long)seed);
		if (workers < 2)
			run(seed, workers, drives, &w, &w);
		run(seed, workers, crowds, &c.world, &c);
	}
	printf("ok - seeds %s to %llu\n", argv[2], (unsigned long long)seed - 1);
}
