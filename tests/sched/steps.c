/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random programs in an event loop of the program, stepped with random budgets: PROGRAM FIRST-SEED COUNT.
 *
 * Tasks pass values on by pipes and by channels, each of which has one sender and one receiver. So every order of tasks
 * leads to the same result. A program is drawn as a list of exchanges; `model` carries them out one after the other, by
 * two arrays and no code of the library. A task runs its part of the list.
 *
 * In some programs tasks wait only for each other. Because the list is an order in which all exchanges can be done, a
 * task can run until all tasks have ended, and each step must return that tasks are ready. For the other programs, the
 * limit of poll is far longer than any wait needs.
 */
#include "loop.h"

#include <weft/io.h>

enum { TASKS = 5, LINES = TASKS * TASKS, EXCHANGES = 60, EXTRAS = 4 };

enum extra { NOTHING, YIELDS, SPAWNS, SPINS, SLEEPS };

struct exchange {
	int from, to;
	enum extra before[2]; /* the extra actions of the sender and of the receiver before the exchange */
};

struct plan {
	struct exchange list[EXCHANGES];
	int kinds[LINES]; /* room of the channel, or -1 for a pipe */
	bool pure;	  /* no task waits for time or the kernel */
};

struct world {
	const struct plan *plan;
	weft_chan_t *chans[LINES];
	int pipes[LINES][2];
	uint64_t values[TASKS];
	int ended, children;
};

struct task {
	struct world *world;
	int number;
};

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static void make_plan(struct plan *p)
{
	p->pure = draw(2);
	for (int i = 0; i < LINES; i++)
		p->kinds[i] = (int)draw(p->pure ? 3 : 4) - !p->pure;
	for (int i = 0; i < EXCHANGES; i++) {
		struct exchange *e = &p->list[i];

		e->from = (int)draw(TASKS);
		e->to = (e->from + 1 + (int)draw(TASKS - 1)) % TASKS;
		for (int side = 0; side < 2; side++)
			e->before[side] = draw(3) ? NOTHING : (enum extra)(1 + draw(p->pure ? EXTRAS - 1 : EXTRAS));
	}
}

static void model(const struct plan *p, uint64_t values[TASKS])
{
	for (uint64_t i = 0; i < TASKS; i++)
		values[i] = i;
	for (int i = 0; i < EXCHANGES; i++) {
		const struct exchange *e = &p->list[i];
		uint64_t value = values[e->from];

		values[e->from] = mix(value, 1);
		values[e->to] = mix(values[e->to], value);
	}
}

/* ---- the same by tasks ------------------------------------------------------------------------------------------- */

static void *counts(void *argument)
{
	struct world *w = argument;

	w->children++; /* not atomic: one thread runs all steps */
	return NULL;
}

static void spawns(struct world *w)
{
	int before = w->children;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, counts, w) == 0);
	CHECK(weft_scope_wait(&scope) == 0 && w->children > before);
}

static void spins(uint64_t nanoseconds)
{
	uint64_t until = weft_now() + nanoseconds;

	while (weft_now() < until)
		;
}

static void does(struct world *w, enum extra what)
{
	if (what == YIELDS)
		weft_task_yield();
	else if (what == SPAWNS)
		spawns(w);
	else if (what == SPINS)
		spins(150000);
	else if (what == SLEEPS)
		CHECK(weft_sleep(20000) == 0);
}

static void sends(struct world *w, int line, uint64_t value)
{
	if (w->plan->kinds[line] < 0)
		CHECK(weft_write(w->pipes[line][1], &value, sizeof value) == sizeof value);
	else
		CHECK(weft_chan_send(w->chans[line], &value) == 0);
}

static uint64_t receives(struct world *w, int line)
{
	uint64_t value;

	if (w->plan->kinds[line] < 0)
		CHECK(weft_read(w->pipes[line][0], &value, sizeof value) == sizeof value);
	else
		CHECK(weft_chan_receive(w->chans[line], &value) == 0);
	return value;
}

static void *lives(void *argument)
{
	const struct task *t = argument;
	struct world *w = t->world;
	uint64_t value = (uint64_t)t->number;

	for (int i = 0; i < EXCHANGES; i++) {
		const struct exchange *e = &w->plan->list[i];

		if (e->from == t->number) {
			does(w, e->before[0]);
			sends(w, e->from * TASKS + e->to, value);
			value = mix(value, 1);
		} else if (e->to == t->number) {
			does(w, e->before[1]);
			value = mix(value, receives(w, e->from * TASKS + e->to));
		}
	}
	w->values[t->number] = value;
	w->ended++;
	return NULL;
}

static void open_lines(struct world *w)
{
	for (int i = 0; i < LINES; i++)
		if (w->plan->kinds[i] < 0)
			CHECK(pipe(w->pipes[i]) == 0);
		else
			CHECK((w->chans[i] = weft_chan_make(sizeof(uint64_t), (size_t)w->plan->kinds[i])));
}

static void close_lines(struct world *w)
{
	for (int i = 0; i < LINES; i++)
		if (w->plan->kinds[i] < 0)
			CHECK(close(w->pipes[i][0]) == 0 && close(w->pipes[i][1]) == 0);
		else
			CHECK(weft_chan_free(w->chans[i]) == 0);
}

/* A budget in nanoseconds. With the smallest budgets a step ends after each task. */
static uint64_t budget(void)
{
	static const uint64_t all[] = {0, 0, 0, 1, 1000, 100000, 1 * MS, 5 * MS, WEFT_NEVER};

	return all[draw(sizeof all / sizeof *all)];
}

/* With io_uring the kernel may end a wait by EINTR without a signal: see weft_rt_fd. */
static void wait_for_descriptor(struct loop *l)
{
	int count;

	do
		count = look(l, PATIENCE);
	while (count < 0 && errno == EINTR);
	CHECK(count == 1);
}

static void loop(struct loop *l, const struct world *w)
{
	int more;

	while (w->ended < TASKS) {
		wait_for_descriptor(l);
		do {
			more = weft_rt_step(l->rt, budget());
			CHECK(more == 0 || more == 1);
			CHECK(more || w->ended == TASKS || !w->plan->pure);
		} while (more && draw(2));
	}
}

static void run(uint64_t seed)
{
	struct task tasks[TASKS];
	uint64_t expected[TASKS];
	struct plan plan;
	struct world w = {.plan = &plan};
	struct loop l;

	state = seed;
	make_plan(&plan);
	model(&plan, expected);
	l = open_loop(draw(2));
	open_lines(&w);
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = (struct task){&w, i};
		CHECK(weft_rt_spawn(l.rt, lives, &tasks[i], NULL) == 0);
	}
	loop(&l, &w);
	close_loop(&l);
	close_lines(&w);
	CHECK(!memcmp(w.values, expected, sizeof expected));
}

int main(int argc, char **argv)
{
	uint64_t seed, count;

	if (argc < 3)
		return 2;
	seed = strtoull(argv[1], NULL, 10);
	for (count = strtoull(argv[2], NULL, 10); count; count--, seed++) {
		dprintf(2, "seed %llu\n", (unsigned long long)seed);
		run(seed);
	}
	printf("ok - seeds %s to %llu\n", argv[1], (unsigned long long)seed - 1);
}
