/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Simulations under many seeds, each in a process of its own, until one fails; then the failing schedule is shrunk.
 *
 * With several jobs as many processes take seeds from a shared counter, and fork a process for each seed. Seeds below
 * the lowest failing seed are still taken, so the reported seed does not depend on the jobs. The programs' output is
 * discarded then, and the failing seed is run once more to show its output.
 */
#define _GNU_SOURCE
#include "sched/simulate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SHRINKS = 400, /* runs that shrinking may take */
	SEEDS = 24,    /* seeds among which to search for a failing run that shrinks to FEW switches */
	FEW = 6,
	JOBS_MOST = 1024,
};

static const uint64_t TELL_EVERY = 200000000;

/* Memory that the processes share. */
struct shared {
	_Atomic uint64_t next;	 /* the place of the next seed, from 0 */
	_Atomic uint64_t lowest; /* the lowest failing place; UINT64_MAX: none */
	_Atomic uint64_t done, told_at;
	_Atomic int error;
	struct weft__record record;
};

struct exploration {
	const weft_rt_config_t *config;
	weft_fn_t *fn;
	void *arg;
	uint64_t first, count, began;
	const struct weft__telling *telling;
	struct shared *shared;
};

/* A list of choices, and the cost of a turn. */
struct schedule {
	const uint32_t *order;
	size_t choices;
	uint64_t cost;
};

/* ---- one seed --------------------------------------------------------------------------------------------------- */

static void be_quiet(void)
{
	if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout))
		_exit(71);
}

/* The exit code of a child whose error does not fit: an exit code has eight bits, and values from 128 on are for
 * signals. */
enum { OTHER_ERROR = 127 };

static void simulate(struct exploration *e, uint64_t seed, const struct schedule *schedule, bool quiet, bool recorded)
{
	weft_rt_config_t config = *e->config;
	int error;

	if (quiet)
		be_quiet();
	if (schedule) {
		config.order = schedule->order;
		config.choices = schedule->choices;
		config.turn_cost = schedule->cost ? schedule->cost : WEFT_NEVER;
	}
	weft__simulate_for(recorded ? &e->shared->record : NULL, quiet);
	error = weft_simulate(seed, &config, e->fn, e->arg, NULL);
	fflush(NULL);
	_exit(error > -OTHER_ERROR ? -error : OTHER_ERROR);
}

/* The exit code of a child, or 128 and the signal; or a negative errno. */
static int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Simulate in a process of its own. `schedule` may be NULL: the seed decides. Returns like wait_for. */
static int try(struct exploration *e, uint64_t seed, const struct schedule *schedule, bool quiet, bool recorded)
{
	pid_t child;

	fflush(NULL);
	if (recorded) {
		e->shared->record.count = 0;
		e->shared->record.has_world = false;
	}
	child = fork();
	if (!child)
		simulate(e, seed, schedule, quiet, recorded);
	return child < 0 ? -errno : wait_for(child);
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

static uint64_t per_second(const struct exploration *e, uint64_t seeds)
{
	uint64_t took = weft__clock() - e->began;

	return took ? (uint64_t)((double)seeds * 1e9 / (double)took) : 0;
}

/* Overwrite the line of progress, in any of the processes. */
static void tell_progress(struct exploration *e, uint64_t done)
{
	uint64_t now = weft__clock(), told = atomic_load_explicit(&e->shared->told_at, memory_order_relaxed);

	/* Relaxed: only the numbers are shared. */
	if (now - told < TELL_EVERY ||
	    !atomic_compare_exchange_strong_explicit(&e->shared->told_at, &told, now, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	dprintf(STDERR_FILENO, "\rweft: %llu of %llu seeds, %llu a second\033[K", (unsigned long long)done,
		(unsigned long long)e->count, (unsigned long long)per_second(e, done));
}

static void count_seed(struct exploration *e)
{
	uint64_t done = atomic_fetch_add_explicit(&e->shared->done, 1, memory_order_relaxed) + 1;

	if (e->telling->tells && isatty(STDERR_FILENO))
		tell_progress(e, done);
}

static void clear_progress(const struct exploration *e)
{
	if (e->telling->tells && isatty(STDERR_FILENO))
		dprintf(STDERR_FILENO, "\r\033[K");
}

/* ---- many seeds ------------------------------------------------------------------------------------------------- */

/* Lower `lowest` to a failing place. */
static void note_failure(struct shared *shared, uint64_t place)
{
	uint64_t lowest = atomic_load_explicit(&shared->lowest, memory_order_relaxed);

	while (place < lowest && !atomic_compare_exchange_weak_explicit(&shared->lowest, &lowest, place,
									memory_order_relaxed, memory_order_relaxed))
		;
}

/* Relaxed: the parent waits for the process before it reads the results. */
static void take_seeds(struct exploration *e)
{
	struct shared *shared = e->shared;
	uint64_t place;
	int outcome;

	for (;;) {
		place = atomic_fetch_add_explicit(&shared->next, 1, memory_order_relaxed);
		if (place >= e->count || place > atomic_load_explicit(&shared->lowest, memory_order_relaxed) ||
		    atomic_load_explicit(&shared->error, memory_order_relaxed))
			return;
		outcome = try(e, e->first + place, NULL, true, false);
		if (outcome < 0)
			atomic_store_explicit(&shared->error, outcome, memory_order_relaxed);
		else if (outcome)
			note_failure(shared, place);
		count_seed(e);
	}
}

/* Returns the number of processes started; 0: no process could be started. */
static unsigned start(struct exploration *e, unsigned jobs, pid_t *children)
{
	unsigned started;

	fflush(NULL);
	for (started = 0; started < jobs; started++) {
		children[started] = fork();
		if (children[started] < 0)
			break;
		if (children[started])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_seeds(e);
		_exit(0);
	}
	return started;
}

/* *place is the failing place, or `count`. -errno: as weft_simulate_seeds. */
static int by_jobs(struct exploration *e, unsigned jobs, uint64_t *place)
{
	pid_t children[JOBS_MOST];
	unsigned started = start(e, jobs, children), i;
	int outcome;

	if (!started)
		return -errno;
	for (i = 0; i < started; i++) {
		outcome = wait_for(children[i]);
		if (outcome)
			e->shared->error = outcome < 0 ? outcome : -ECHILD;
	}
	*place = e->shared->lowest < e->count ? e->shared->lowest : e->count;
	return e->shared->error;
}

/* Try seeds until one fails. Returns its outcome, and its place in *place; 0: no seed fails. */
static int find(struct exploration *e, unsigned jobs, uint64_t *place)
{
	int outcome = 0;

	if (jobs > 1) {
		outcome = by_jobs(e, jobs, place);
		clear_progress(e);
		if (!outcome && *place < e->count)
			outcome = try(e, e->first + *place, NULL, false, true);
		return outcome;
	}
	for (*place = 0; *place < e->count; ++*place) {
		outcome = try(e, e->first + *place, NULL, false, true);
		if (outcome)
			break;
		count_seed(e);
	}
	clear_progress(e);
	return outcome;
}

/* ---- shrinking -------------------------------------------------------------------------------------------------- */

static size_t others(const uint32_t *order, size_t choices)
{
	size_t i, count = 0;

	for (i = 0; i < choices; i++)
		count += order[i] != 0;
	return count;
}

/* A list of choices that is being shrunk, and memory for an attempt. */
struct shrinking {
	struct exploration *e;
	uint64_t seed;
	int outcome;
	unsigned runs;
	struct schedule *schedule;
	uint32_t *order, *attempt;
};

/* Replace the list by the attempt, if the attempt fails in the same way. */
static bool try_attempt(struct shrinking *s, size_t choices)
{
	struct schedule attempt = {s->attempt, choices, s->schedule->cost};

	s->runs++;
	if (try(s->e, s->seed, &attempt, true, false) != s->outcome)
		return false;
	memcpy(s->order, s->attempt, choices * sizeof *s->order);
	s->schedule->choices = choices;
	return true;
}

/* Try the list without the choices from `start` to `end`: plain choices replace them, or, if `moves`, the choices
 * behind them move up. */
static bool try_without(struct shrinking *s, size_t start, size_t end, bool moves)
{
	size_t choices = s->schedule->choices;

	memcpy(s->attempt, s->order, choices * sizeof *s->order);
	if (moves) {
		memmove(s->attempt + start, s->attempt + end, (choices - end) * sizeof *s->attempt);
		choices -= end - start;
	} else {
		memset(s->attempt + start, 0, (end - start) * sizeof *s->attempt);
	}
	return try_attempt(s, choices);
}

/* Halves of the list first, then smaller parts. Only parts that have a choice which is not plain are tried, and so each
 * success leaves fewer of these choices. */
static bool shrink_once(struct shrinking *s, bool moves)
{
	size_t part, start, end;
	bool shrunk = false;

	for (part = s->schedule->choices; part; part /= 2)
		for (start = 0; start < s->schedule->choices && s->runs < SHRINKS; start = end) {
			end = start + part < s->schedule->choices ? start + part : s->schedule->choices;
			if (!others(s->order + start, end - start) || !try_without(s, start, end, moves))
				continue;
			shrunk = true;
			end = moves ? start : end;
		}
	return shrunk;
}

static void shrink(struct exploration *e, uint64_t seed, struct schedule *schedule, uint32_t *order, int outcome)
{
	struct schedule timeless = {order, schedule->choices, 0};
	struct shrinking s = {e, seed, outcome, 0, schedule, order, malloc((schedule->choices + 1) * sizeof *order)};

	if (schedule->cost && try(e, seed, &timeless, true, false) == outcome)
		schedule->cost = 0;
	while (s.attempt && shrink_once(&s, false) | shrink_once(&s, true))
		;
	free(s.attempt);
	while (schedule->choices && !order[schedule->choices - 1])
		schedule->choices--;
}

/* A failing schedule; `seed` is the seed of the simulated world, if the world draws numbers. */
struct plainest {
	uint64_t seed;
	bool has_world;
	struct schedule schedule;
	uint32_t *order; /* the same memory as schedule.order; NULL: no memory */
	size_t switches;
};

/* Shrink the last recorded run. */
static void find_plainest(struct exploration *e, uint64_t seed, int outcome, struct plainest *p)
{
	const struct weft__record *record = &e->shared->record;

	*p = (struct plainest){seed, record->has_world, {NULL, record->count, record->cost}, NULL, SIZE_MAX};
	p->order = malloc((record->count + 1) * sizeof *p->order);
	if (!p->order)
		return;
	p->schedule.order = memcpy(p->order, record->choice, record->count * sizeof *p->order);
	shrink(e, seed, &p->schedule, p->order, outcome);
	p->switches = others(p->order, p->schedule.choices);
}

/* A run that is far from the plain order, as the reverse is, does not shrink well. Look for a run that fails in the
 * same way under the next seeds, and shrinks better. */
static void find_plainer(struct exploration *e, uint64_t seed, int outcome, struct plainest *p)
{
	struct plainest other;
	uint64_t next;

	for (next = seed + 1; next - seed < SEEDS && p->switches > FEW && p->order; next++) {
		if (try(e, next, NULL, true, true) != outcome)
			continue;
		find_plainest(e, next, outcome, &other);
		free(other.switches < p->switches ? p->order : other.order);
		if (other.switches < p->switches)
			*p = other;
	}
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static const char *name_of(int outcome)
{
	return outcome == EDEADLK	? "deadlock"
	       : outcome == ELOOP	? "livelock"
	       : outcome == OTHER_ERROR ? "an error with the number 127 or more"
					: strerror(outcome);
}

static void tell_seed(const struct exploration *e, uint64_t seed, uint64_t tried, int outcome)
{
	unsigned long long number = seed;

	if (outcome > 128)
		dprintf(STDERR_FILENO, "weft: seed %llu fails, by signal %d", number, outcome - 128);
	else
		dprintf(STDERR_FILENO, "weft: seed %llu fails: %s", number, name_of(outcome));
	dprintf(STDERR_FILENO, "; %llu seeds tried", (unsigned long long)tried);
	if (e->telling->tells)
		dprintf(STDERR_FILENO, ", %llu a second", (unsigned long long)per_second(e, tried));
	dprintf(STDERR_FILENO, ". WEFT_SIMULATE=%llu repeats it", number);
}

static void tell_schedule(const struct plainest *p)
{
	const struct schedule *s = &p->schedule;
	size_t i;

	dprintf(STDERR_FILENO, "; the plainest schedule that fails is WEFT_SIMULATE=order:");
	if (p->has_world)
		dprintf(STDERR_FILENO, "seed=%llu,", (unsigned long long)p->seed);
	if (s->cost)
		dprintf(STDERR_FILENO, "cost=%llu,", (unsigned long long)s->cost);
	for (i = 0; i < s->choices; i++)
		if (s->order[i])
			dprintf(STDERR_FILENO, "%zu=%u,", i, s->order[i]);
}

static void examine(struct exploration *e, uint64_t seed, uint64_t tried, int outcome, weft_finding_t *found)
{
	struct plainest p;

	tell_seed(e, seed, tried, outcome);
	find_plainest(e, seed, outcome, &p);
	find_plainer(e, seed, outcome, &p);
	if (p.order)
		tell_schedule(&p);
	dprintf(STDERR_FILENO, "\n");
	if (e->telling->behind)
		dprintf(STDERR_FILENO, "weft: in a debugger: %sWEFT_SIMULATE=%llu %s\n", e->telling->before,
			(unsigned long long)seed, e->telling->behind);
	if (found)
		*found = (weft_finding_t){seed, tried, outcome > 128 ? outcome : -outcome, p.order ? p.switches : 0};
	free(p.order);
}

/* A seed failed without a recorded run, and does not fail again. */
static void tell_that_it_passed(uint64_t seed)
{
	dprintf(
	    STDERR_FILENO,
	    "weft: seed %llu failed once, and passes when it is repeated: the program depends on more than its seed, "
	    "such as addresses, the real time, or other threads\n",
	    (unsigned long long)seed);
}

static void tell_that_none_fails(const struct exploration *e)
{
	if (e->telling->tells)
		dprintf(STDERR_FILENO, "weft: none of %llu seeds fails, %llu a second\n", (unsigned long long)e->count,
			(unsigned long long)per_second(e, e->count));
}

static int explore(struct exploration *e, weft_finding_t *found)
{
	unsigned jobs = e->config->jobs < JOBS_MOST ? e->config->jobs : JOBS_MOST;
	uint64_t place = 0;
	int outcome = find(e, e->count < jobs ? (unsigned)e->count : jobs, &place);
	bool failed = outcome >= 0 && place < e->count;

	if (found)
		*found = (weft_finding_t){.tried = failed ? place + 1 : place};
	if (outcome < 0)
		return outcome;
	if (outcome)
		examine(e, e->first + place, place + 1, outcome, found);
	else if (failed)
		tell_that_it_passed(e->first + place);
	else
		tell_that_none_fails(e);
	return failed;
}

int weft__explore(uint64_t first, uint64_t count, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
		  weft_finding_t *found, const struct weft__telling *telling)
{
	static const weft_rt_config_t defaults;
	struct exploration e = {config ? config : &defaults, fn, arg, first, count, weft__clock(), telling, NULL};
	int result;

	if (!fn)
		return -EINVAL;
	e.shared = mmap(NULL, sizeof *e.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (e.shared == MAP_FAILED)
		return -errno;
	e.shared->lowest = UINT64_MAX;
	weft__note_run();
	result = explore(&e, found);
	munmap(e.shared, sizeof *e.shared);
	return result;
}

int weft_simulate_seeds(uint64_t first, uint64_t count, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
			weft_finding_t *found)
{
	return weft__explore(first, count, config, fn, arg, found, &(struct weft__telling){0});
}
