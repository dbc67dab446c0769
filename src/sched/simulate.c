/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The simulator: one thread, a clock that only moves when no task can run, and a choice among the ready tasks wherever
 * there is one. A run is its list of choices: choice i says which of the n tasks that were ready then went on, counted
 * from the one that has been ready longest. Where a list ends the seed decides, or, for a list that is being shrunk,
 * the first in line goes on.
 *
 * Source of the ideas: FoundationDB's simulation; shrinking, QuickCheck.
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TURN = 128, /* timers that end before the next choice */
	STEPS = 1000000,
	CHOICES = 1 << 20, /* that are recorded for shrinking */
	SHRINKS = 400,	   /* runs that shrinking may take */
};

/* What a run leaves to the process that started it. */
struct record {
	bool has_world; /* it drew random numbers beside its choices: a list of these does not repeat it alone */
	size_t count;
	uint32_t choice[CHOICES];
};

struct weft__sim {
	uint64_t seed, random, now, steps, most_steps;
	uint64_t world; /* random numbers of the simulated world: not changed by how many choices the seed decides */
	const uint32_t *order;
	size_t order_count, choices;
	struct weft__task **ready;
	size_t count, room;
	size_t next; /* chosen to run when the running task has yielded: its place in `ready`, plus 1; 0: nothing is */
	struct record *record; /* NULL: nobody wants it */
	struct weft__wheel wheel;
	struct weft__worker *worker;
} __attribute__((aligned(64)));

static struct record *recording; /* of the next simulation in this process */
static bool quiet;		 /* it reports nothing */

static uint64_t next_random(uint64_t *state)
{
	/* splitmix64, by Steele, Lea and Flood */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t weft__sim_random(struct weft__rt *rt)
{
	if (rt->sim->record)
		rt->sim->record->has_world = true;
	return next_random(&rt->sim->world);
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
	struct weft__task **ready;
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

/* A task is in the list at most once, and had room there before it was made. */
void weft__sim_ready(struct weft__rt *rt, struct weft__task *task)
{
	struct weft__sim *sim = rt->sim;

	sim->ready[sim->count++] = task;
}

static size_t choose(struct weft__sim *sim, size_t among)
{
	size_t i = sim->choices++, choice;

	if (i < sim->order_count)
		choice = sim->order[i] % among;
	else
		choice = sim->order ? 0 : next_random(&sim->random) % among;
	if (sim->record && i < CHOICES) {
		sim->record->choice[i] = (uint32_t)choice;
		sim->record->count = i + 1;
	}
	return choice;
}

/* The running task comes first among the choices, so that the plainest schedule does not switch here. */
bool weft__sim_switches(struct weft__rt *rt, bool after)
{
	struct weft__sim *sim = rt->sim;

	(void)after;
	if (!sim->count || WEFT_CANARY(simulator_has_no_choice))
		return false;
	sim->next = choose(sim, sim->count + 1);
	return sim->next;
}

static size_t choose_next(struct weft__sim *sim)
{
	size_t next = sim->next;

	sim->next = 0;
	if (next)
		return next - 1;
	return sim->count > 1 && WEFT_NO_CANARY(simulator_has_no_choice) ? choose(sim, sim->count) : 0;
}

static struct weft__task *take(struct weft__sim *sim)
{
	size_t i = choose_next(sim);
	struct weft__task *task = sim->ready[i];

	memmove(&sim->ready[i], &sim->ready[i + 1], (--sim->count - i) * sizeof *sim->ready);
	return task;
}

/* False: there is no timer. */
static bool pass_time(struct weft__sim *sim)
{
	while (!sim->count) {
		if (sim->wheel.next == WEFT_NEVER)
			return false;
		if (sim->wheel.next > sim->now)
			sim->now = sim->wheel.next;
		sim->worker->timers += weft__wheel_turn(&sim->wheel, sim->now, TURN);
	}
	sim->steps = 0;
	return true;
}

static void report(struct weft__rt *rt, const char *what)
{
	if (quiet)
		return;
	fflush(stderr);
	dprintf(STDERR_FILENO, "weft: %s, simulated with seed %llu (WEFT_SIMULATE=%llu repeats it); the tasks:\n", what,
		(unsigned long long)rt->sim->seed, (unsigned long long)rt->sim->seed);
	(void)weft_rt_dump(rt, STDERR_FILENO);
}

static int loop(struct weft__rt *rt)
{
	struct weft__sim *sim = rt->sim;
	struct weft__task *task;

	while (atomic_load_explicit(&rt->live, memory_order_relaxed)) {
		if (!sim->count && !pass_time(sim)) {
			report(rt, rt->main.task ? "deadlock" : "tasks are lost, which the first task has left behind");
			return -EDEADLK;
		}
		if (++sim->steps > sim->most_steps) {
			report(rt, "livelock");
			return -ELOOP;
		}
		task = take(sim);
		sim->worker->looked = sim->now;
		if (weft__task_run(sim->worker, task) == WEFT__YIELDED)
			weft__ready(task, false);
	}
	return 0;
}

static struct weft__sim *make(uint64_t seed, const weft_rt_config_t *config)
{
	struct weft__sim *sim = aligned_alloc(64, sizeof *sim);

	if (!sim)
		return NULL;
	memset(sim, 0, sizeof *sim);
	sim->seed = sim->random = seed;
	sim->world = ~seed;
	sim->now = 1000000000; /* no time is 0 */
	sim->most_steps = config && config->steps ? config->steps : STEPS;
	sim->order = config ? config->order : NULL;
	sim->order_count = config && config->order ? config->choices : 0;
	sim->record = recording;
	weft__wheel_init(&sim->wheel, sim->now);
	sim->wheel.exact = true;
	return sim;
}

/* The worker that this thread is, if a task of a real runtime simulates. */
static int run_in(struct weft__sim *sim, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__worker *outer = weft__worker();
	struct weft__rt *rt;
	bool alone;
	int error;

	rt = weft__rt_make(config, 1, sim, fn, arg, &error);
	if (!rt)
		return error;
	sim->worker = &rt->worker[0];
	sim->worker->rt = rt;
	weft__set_worker(sim->worker);
	alone = weft__alone_begin();
	error = loop(rt);
	weft__alone_end(alone);
	weft__set_worker(outer);
	if (error)
		return error; /* tasks that wait for ever are left where they are, and the runtime with them */
	error = rt->main.error;
	if (result)
		*result = rt->main.result;
	weft__rt_free(rt);
	return error;
}

int weft_simulate(uint64_t seed, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__sim *sim = make(seed, config);
	int error;

	if (!sim)
		return -ENOMEM;
	error = run_in(sim, config, fn, arg, result);
	if (error != -EDEADLK && error != -ELOOP) {
		weft__wheel_free(&sim->wheel);
		free(sim->ready);
		free(sim);
	}
	return error;
}

/* ---- many seeds ------------------------------------------------------------------------------------------------ */

struct exploration {
	const weft_rt_config_t *config;
	weft_fn_t *fn;
	void *arg;
	struct record *record; /* shared with the processes that simulate */
};

/* In a process of its own; its exit code, or 128 and the signal; or a negative errno. */
static int try(struct exploration *e, uint64_t seed, const uint32_t *order, size_t choices, bool shrinking)
{
	weft_rt_config_t config = e->config ? *e->config : (weft_rt_config_t){0};
	int status, error;
	pid_t child;

	fflush(NULL);
	e->record->count = 0;
	e->record->has_world = false;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		quiet = shrinking;
		if (quiet && (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)))
			_exit(71);
		config.order = order;
		config.choices = choices;
		recording = e->record;
		error = weft_simulate(seed, &config, e->fn, e->arg, NULL);
		fflush(NULL);
		_exit(error ? -error & 127 : 0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static size_t others(const uint32_t *order, size_t choices)
{
	size_t i, count = 0;

	for (i = 0; i < choices; i++)
		count += order[i] != 0;
	return count;
}

/* Set parts of the list to the first in line, halves first, as long as the run fails in the same way. */
static size_t shrink(struct exploration *e, uint64_t seed, uint32_t *order, size_t choices, int outcome)
{
	uint32_t *plainer = malloc((choices + 1) * sizeof *plainer);
	size_t part, start, end;
	unsigned runs = 0;

	if (!plainer)
		return choices;
	for (part = choices; part; part /= 2)
		for (start = 0; start < choices && runs < SHRINKS; start += part) {
			end = start + part < choices ? start + part : choices;
			if (!others(order + start, end - start))
				continue;
			memcpy(plainer, order, choices * sizeof *order);
			memset(plainer + start, 0, (end - start) * sizeof *plainer);
			runs++;
			if (try(e, seed, plainer, choices, true) == outcome)
				memcpy(order, plainer, choices * sizeof *order);
		}
	free(plainer);
	while (choices && !order[choices - 1])
		choices--;
	return choices;
}

static const char *name_of(int outcome)
{
	return outcome == EDEADLK ? "deadlock" : outcome == ELOOP ? "livelock" : strerror(outcome);
}

static void tell(uint64_t seed, bool has_world, uint64_t tried, int outcome, const uint32_t *order, size_t choices)
{
	size_t i;

	if (outcome > 128)
		dprintf(STDERR_FILENO, "weft: seed %llu fails, by signal %d", (unsigned long long)seed, outcome - 128);
	else
		dprintf(STDERR_FILENO, "weft: seed %llu fails: %s", (unsigned long long)seed, name_of(outcome));
	dprintf(STDERR_FILENO,
		"; %llu seeds tried. WEFT_SIMULATE=%llu repeats it; the plainest schedule that fails is ",
		(unsigned long long)tried, (unsigned long long)seed);
	dprintf(STDERR_FILENO, "WEFT_SIMULATE=order:");
	if (has_world)
		dprintf(STDERR_FILENO, "seed=%llu,", (unsigned long long)seed);
	for (i = 0; i < choices; i++)
		if (order[i])
			dprintf(STDERR_FILENO, "%zu=%u,", i, order[i]);
	dprintf(STDERR_FILENO, "\n");
}

static void examine(struct exploration *e, uint64_t seed, uint64_t tried, int outcome, weft_finding_t *found)
{
	bool has_world = e->record->has_world;
	size_t choices = e->record->count;
	uint32_t *order = malloc((choices + 1) * sizeof *order);

	if (order) {
		memcpy(order, e->record->choice, choices * sizeof *order);
		choices = shrink(e, seed, order, choices, outcome);
		tell(seed, has_world, tried, outcome, order, choices);
	}
	if (found)
		*found = (weft_finding_t){seed, tried, outcome > 128 ? outcome : -outcome,
					  order ? others(order, choices) : choices};
	free(order);
}

int weft_explore(uint64_t first, uint64_t count, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
		 weft_finding_t *found)
{
	struct exploration e = {config, fn, arg, NULL};
	uint64_t i;
	int outcome = 0;

	if (!fn)
		return -EINVAL;
	e.record = mmap(NULL, sizeof *e.record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e.record == MAP_FAILED)
		return -errno;
	for (i = 0; i < count && !outcome; i++)
		outcome = try(&e, first + i, NULL, 0, false);
	if (found)
		*found = (weft_finding_t){.tried = i};
	if (outcome > 0)
		examine(&e, first + i - 1, i, outcome, found);
	munmap(e.record, sizeof *e.record);
	return outcome > 0 ? 1 : outcome;
}

/* ---- by the environment ---------------------------------------------------------------------------------------- */

/* Digits, up to `most`. False: something else. */
static bool read_number(const char **text, uint64_t most, uint64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*number = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *number <= most;
}

/* "3=1,8=2,", the last comma may be missing. 0; -EINVAL; -ENOMEM. */
static int read_order(const char *text, uint32_t **order, size_t *choices)
{
	uint64_t place, choice;
	uint32_t *longer;

	*choices = 0;
	*order = calloc(1, sizeof **order);
	if (!*order)
		return -ENOMEM;
	while (*text) {
		if (!read_number(&text, CHOICES - 1, &place) || *text++ != '=' ||
		    !read_number(&text, UINT32_MAX, &choice) || (*text && *text++ != ','))
			return -EINVAL;
		if (place >= *choices) {
			longer = realloc(*order, (place + 1) * sizeof *longer);
			if (!longer)
				return -ENOMEM;
			*order = longer;
			memset(longer + *choices, 0, (place + 1 - *choices) * sizeof *longer);
			*choices = place + 1;
		}
		(*order)[place] = (uint32_t)choice;
	}
	return 0;
}

/* "seed=7,3=1,8=2,": the seed is the world's. As read_order. */
static int simulate_order(const char *text, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result,
			  int *outcome)
{
	weft_rt_config_t ordered = config ? *config : (weft_rt_config_t){0};
	uint64_t seed = 0;
	uint32_t *order = NULL;
	int error = 0;

	if (!strncmp(text, "seed=", 5)) {
		text += 5;
		if (!read_number(&text, UINT64_MAX, &seed) || (*text && *text++ != ','))
			return -EINVAL;
	}
	error = read_order(text, &order, &ordered.choices);
	if (!error) {
		ordered.order = order;
		*outcome = weft_simulate(seed, &ordered, fn, arg, result);
	}
	free(order);
	return error;
}

bool weft__sim_asked(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result, int *outcome)
{
	const char *asked = getenv("WEFT_SIMULATE"), *text = asked;
	uint64_t seed, count = 0;
	int error;

	if (!text || !*text || weft_current())
		return false;
	if (!strncmp(text, "order:", 6)) {
		error = simulate_order(text + 6, config, fn, arg, result, outcome);
		if (error == -ENOMEM)
			*outcome = error;
		if (error != -EINVAL)
			return true;
	} else if (read_number(&text, UINT64_MAX, &seed) &&
		   (!*text || (*text++ == '+' && read_number(&text, UINT64_MAX, &count) && count && !*text))) {
		if (count && weft_explore(seed, count, config, fn, arg, NULL))
			_exit(1);
		*outcome = weft_simulate(seed, config, fn, arg, result);
		return true;
	}
	dprintf(STDERR_FILENO, "weft: WEFT_SIMULATE=%s is ignored: say SEED, SEED+COUNT or order:PLACE=CHOICE,…\n",
		asked);
	return false;
}
