/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulator: one thread, a virtual clock, and a choice among the ready tasks whenever there are several. A run is
 * its list of choices and the time that each turn takes. Candidate 0 of a choice is the plain choice: the running task
 * continues, if it can, or the task runs that has been ready longest. After the end of a list of choices the seed's
 * strategy decides, or, for a list that is being shrunk, candidate 0.
 *
 * A turn is a task's time from its resume to its next wait, yield or end. The clock advances by the cost of a turn
 * before each turn, and to the next timer when no task is ready. Operations that need not wait are choices as well, in
 * which the running task is a candidate; after OPERATIONS of them in a turn the task yields, as a task of a real worker
 * does.
 *
 * Source of the ideas: FoundationDB's simulation; shrinking, QuickCheck; strategies, see strategy.c.
 */
#define _GNU_SOURCE
#include "sched/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TIMERS = 128, /* timers that expire before the next choice */
	OPERATIONS = 128,
	STEPS = 1000000,
	LATELY = 64,
};

static const uint64_t BEGINNING = 1000000000; /* no time is 0 */

/* The default limits of a run. A program may sleep for days; if it also takes TURNS_BEFORE turns, it polls. */
static const uint64_t TURNS = 100000000, HOUR = 3600000000000u, TURNS_BEFORE = 100000;

struct weft__sim {
	uint64_t seed, now, cost;
	uint64_t steps, most_steps; /* turns since the clock advanced to a timer */
	uint64_t turns, most_turns;
	uint64_t end, turns_before_end; /* the run is a livelock after that time and so many turns */
	/* random numbers of the simulated world: independent of the number of choices that the seed decides */
	uint64_t world;
	uint64_t operations; /* operations of this turn that need not wait */
	struct weft__strategy strategy;
	const uint32_t *order;
	size_t order_count, choices;
	struct weft__candidate *ready;
	size_t count, room;
	struct weft__task *next; /* the chosen task: the running task yields to it */
	struct weft__task *last;
	bool gives_way;		     /* the running task's next yield is the simulator's, not its own */
	struct weft__record *record; /* NULL: do not record the choices */
	uint64_t lately[LATELY];     /* the tasks of the last turns */
	struct weft__wheel wheel;
	struct weft__worker *worker;
} __attribute__((aligned(64)));

bool weft__has_run;
static struct weft__record *recording; /* for the next simulation in this process */
static bool quiet;

void weft__simulate_for(struct weft__record *record, bool is_quiet)
{
	recording = record;
	quiet = is_quiet;
}

uint64_t weft__sim_random(struct weft__rt *rt)
{
	if (rt->sim->record)
		rt->sim->record->has_world = true;
	return weft__next_random(&rt->sim->world);
}

uint64_t weft__sim_now(struct weft__rt *rt)
{
	return rt->sim->now;
}

struct weft__wheel *weft__sim_wheel(struct weft__rt *rt)
{
	return &rt->sim->wheel;
}

bool weft__sim_has_room(struct weft__rt *rt)
{
	struct weft__worker *w = &rt->worker[0];
	struct weft__sim *sim = rt->sim;
	struct weft__candidate *ready;
	size_t tasks;

	tasks = w->spawned - w->ended + (size_t)atomic_load_explicit(&rt->elsewhere, memory_order_relaxed);
	if (tasks < sim->room)
		return true;
	ready = realloc(sim->ready, (2 * sim->room + 64) * sizeof *ready);
	if (!ready)
		return false;
	sim->ready = ready;
	sim->room = 2 * sim->room + 64;
	return true;
}

/* A task is in the list at most once, and its room was allocated before the task was made. */
static void add_ready(struct weft__sim *sim, struct weft__task *task, bool yielded)
{
	weft__strategy_ready(&sim->strategy, task, yielded);
	sim->ready[sim->count++] = (struct weft__candidate){task, sim->choices};
}

void weft__sim_ready(struct weft__rt *rt, struct weft__task *task)
{
	add_ready(rt->sim, task, false);
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

/* Returns like weft__strategy_choose. */
static size_t choose(struct weft__sim *sim, struct weft__task *running)
{
	size_t i = sim->choices++, choice = 0;

	if (i < sim->order_count)
		choice = sim->order[i] % (sim->count + (running != NULL));
	else if (!sim->order && WEFT_NO_CANARY(simulator_has_no_choice))
		choice = weft__strategy_choose(&sim->strategy, sim->ready, sim->count, running, sim->last, i);
	if (sim->record && i < WEFT__CHOICES) {
		sim->record->choice[i] = (uint32_t)choice;
		sim->record->count = i + 1;
	}
	return choice;
}

bool weft__sim_spends(struct weft__rt *rt)
{
	struct weft__sim *sim = rt->sim;

	if (++sim->operations < OPERATIONS)
		return false;
	sim->gives_way = true;
	return true;
}

bool weft__sim_switches(struct weft__rt *rt, bool after)
{
	struct weft__sim *sim = rt->sim;
	size_t choice;

	if (!after && weft__sim_spends(rt))
		return true;
	choice = sim->count ? choose(sim, sim->worker->current) : 0;
	if (!choice)
		return false;
	sim->next = sim->ready[choice - 1].task;
	sim->gives_way = true;
	return true;
}

static size_t find_next(struct weft__sim *sim)
{
	size_t i = sim->count;

	while (i && sim->ready[i - 1].task != sim->next)
		i--;
	sim->next = NULL;
	return i ? i - 1 : 0;
}

static struct weft__task *take(struct weft__sim *sim)
{
	size_t i = sim->next ? find_next(sim) : sim->count > 1 ? choose(sim, NULL) : 0;
	struct weft__task *task = sim->ready[i].task;

	memmove(&sim->ready[i], &sim->ready[i + 1], (--sim->count - i) * sizeof *sim->ready);
	return task;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static void end_timers(struct weft__sim *sim)
{
	sim->worker->timers += weft__wheel_turn(&sim->wheel, sim->now, TIMERS);
}

/* Advance the clock to the next timer. False: there is no timer. */
static bool pass_time(struct weft__sim *sim)
{
	while (!sim->count) {
		if (sim->wheel.next == WEFT_NEVER)
			return false;
		if (sim->wheel.next > sim->now)
			sim->now = sim->wheel.next;
		end_timers(sim);
	}
	sim->steps = 0;
	return true;
}

static void spend_turn(struct weft__sim *sim)
{
	if (sim->cost >= WEFT_NEVER - sim->now)
		return;
	sim->now += sim->cost;
	if (sim->wheel.next <= sim->now)
		end_timers(sim);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static void report(struct weft__rt *rt, const char *what, const char *more)
{
	unsigned long long seed = rt->sim->seed;

	if (quiet)
		return;
	fflush(stderr);
	if (rt->sim->order)
		dprintf(STDERR_FILENO, "weft: %s, simulated with a list of choices%s; the tasks:\n", what, more);
	else
		dprintf(STDERR_FILENO,
			"weft: %s, simulated with seed %llu (WEFT_SIMULATE=%llu repeats it)%s; the tasks:\n", what,
			seed, seed, more);
	(void)weft_rt_dump(rt, STDERR_FILENO);
}

/* "; 40 of the last 64 turns are of task #5, 24 of task #7" */
static void write_lately(const struct weft__sim *sim, FILE *out)
{
	size_t turns = sim->turns < LATELY ? (size_t)sim->turns : LATELY, i, other, times;
	bool is_first = true;

	for (i = 0; i < turns; i++) {
		for (other = 0; other < i && sim->lately[other] != sim->lately[i]; other++)
			;
		if (other < i)
			continue;
		for (times = 1; ++other < turns;)
			times += sim->lately[other] == sim->lately[i];
		if (is_first)
			fprintf(out, "; of the last %zu turns", turns);
		fprintf(out, "%s %zu %s of task #%llu", is_first ? "" : ",", times, times > 1 ? "are" : "is",
			(unsigned long long)sim->lately[i]);
		is_first = false;
	}
}

/* Why the run is a livelock; NULL: it is not a livelock. */
static const char *exceeds_a_limit(const struct weft__sim *sim)
{
	if (sim->steps > sim->most_steps)
		return "turns without a moment at which every task waits";
	if (sim->turns > sim->most_turns)
		return "turns";
	return sim->now > sim->end && sim->turns > sim->turns_before_end ? "seconds of virtual time" : NULL;
}

static void report_livelock(struct weft__rt *rt, const char *unit)
{
	struct weft__sim *sim = rt->sim;
	uint64_t limit = *unit == 's'			? (sim->end - BEGINNING) / 1000000000
			 : sim->steps > sim->most_steps ? sim->most_steps
							: sim->most_turns;
	char what[128], *more = NULL;
	size_t size;
	FILE *out;

	snprintf(what, sizeof what, "livelock, more than %llu %s", (unsigned long long)limit, unit);
	out = open_memstream(&more, &size);
	if (out) {
		write_lately(sim, out);
		fclose(out);
	}
	report(rt, what, more ? more : "");
	free(more);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

static void run_one(struct weft__sim *sim)
{
	struct weft__task *task;

	spend_turn(sim);
	task = take(sim);
	sim->worker->looked = sim->now;
	sim->operations = 0;
	sim->gives_way = false;
	sim->last = task;
	sim->lately[sim->turns++ % LATELY] = weft_id(task->k);
	sim->steps++;
	if (weft__task_run(sim->worker, task) == WEFT__YIELDED)
		add_ready(sim, task, !sim->gives_way);
}

static int loop(struct weft__rt *rt)
{
	struct weft__sim *sim = rt->sim;
	const char *limit;

	while (atomic_load_explicit(&rt->live, memory_order_relaxed)) {
		if (!sim->count && !pass_time(sim)) {
			report(rt, rt->main.task ? "deadlock" : "tasks are lost, which the first task has left behind",
			       "");
			return -EDEADLK;
		}
		run_one(sim);
		limit = exceeds_a_limit(sim);
		if (limit) {
			report_livelock(rt, limit);
			return -ELOOP;
		}
	}
	return 0;
}

static void set_limits(struct weft__sim *sim, const weft_rt_config_t *config)
{
	uint64_t most = config->time ? config->time : HOUR;

	sim->most_steps = config->steps ? config->steps : STEPS;
	sim->most_turns = config->turns ? config->turns : TURNS;
	sim->end = most < WEFT_NEVER - BEGINNING ? BEGINNING + most : WEFT_NEVER;
	sim->turns_before_end = config->time ? 0 : TURNS_BEFORE;
}

static uint64_t cost_of(const struct weft__sim *sim, const weft_rt_config_t *config)
{
	if (config->turn_cost)
		return config->turn_cost == WEFT_NEVER ? 0 : config->turn_cost;
	return config->order ? 0 : sim->strategy.cost;
}

static struct weft__sim *make(uint64_t seed, const weft_rt_config_t *config)
{
	struct weft__sim *sim = aligned_alloc(64, sizeof *sim);

	if (!sim)
		return NULL;
	memset(sim, 0, sizeof *sim);
	weft__strategy_draw(&sim->strategy, seed);
	set_limits(sim, config);
	sim->seed = seed;
	sim->world = ~seed;
	sim->now = BEGINNING;
	sim->cost = cost_of(sim, config);
	sim->order = config->order;
	sim->order_count = config->order ? config->choices : 0;
	sim->record = recording;
	if (recording)
		recording->cost = sim->cost;
	weft__wheel_init(&sim->wheel, sim->now);
	sim->wheel.exact = true;
	return sim;
}

static void unmake(struct weft__sim *sim)
{
	weft__wheel_free(&sim->wheel);
	free(sim->ready);
	free(sim);
}

/* `outer` is the worker that this thread is, if a task of a real runtime simulates. */
static int run_in(struct weft__sim *sim, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__worker *outer = weft__worker();
	struct weft__rt *rt;
	bool alone;
	int error;

	rt = weft__rt_make(config, 1, sim, fn, arg, &error);
	if (!rt) {
		unmake(sim);
		return error;
	}
	sim->worker = &rt->worker[0];
	sim->worker->rt = rt;
	weft__set_worker(sim->worker);
	alone = weft__alone_begin();
	error = loop(rt);
	weft__alone_end(alone);
	weft__set_worker(outer);
	if (error)
		return error; /* tasks that wait forever stay suspended, and the simulation is not freed */
	error = rt->main.error;
	if (result)
		*result = rt->main.result;
	weft__rt_free(rt);
	unmake(sim);
	return error;
}

int weft_simulate(uint64_t seed, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	static const weft_rt_config_t defaults;
	struct weft__sim *sim;

	if (config && config->task.memory)
		return -EINVAL;
	sim = make(seed, config ? config : &defaults);
	weft__note_run();
	return sim ? run_in(sim, config, fn, arg, result) : -ENOMEM;
}
