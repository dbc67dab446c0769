/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a seed chooses among the tasks of a simulation. The strategy depends on the seed alone, so that a seed repeats
 * its run whichever seeds were tried before. Of each 64 seeds
 *
 *   0             chooses the plain order: tasks run first come, first served, until they wait or yield
 *   1             chooses the reverse: the newest first; a task that yields lets all other tasks run
 *   2 to 5        choose at random, and rarely end a task's turn before it waits
 *   6, 8, … 62    choose by priorities (PCT)
 *   7, 9, … 63    choose at random
 *
 * By priorities. Each task has a random priority, and the ready task with the highest priority runs. Before d - 1
 * choices, drawn at random, the task that would run gets a priority below those of all other tasks. A bug of depth d,
 * which shows whenever d steps come in some order, is found in a run of n tasks and k choices with a probability of
 * 1/(n k^(d-1)) at least (Burckhardt et al. 2010). k is unknown before the run, and an estimate from other seeds would
 * make a seed's run depend on them. So each seed draws one of SCALES powers of two, the small powers more often; one of
 * these powers is between k and 2 k. It draws d between 1 and 5, a middle value more often. The probability of a seed
 * is 1/(176 n (2k)^(d-1)) at least.
 *
 * Two rules keep runs by priorities from livelocks which a fair scheduler would not have; the bound holds for runs in
 * which neither applies. A task that has been ready for PATIENCE choices runs. Under half of the seeds, and in the
 * reverse order, a task that yields gets the lowest priority; under the other half it keeps its priority, so that it
 * may run through many yields while other tasks are ready, but the patience is less. If more than CROWD tasks are
 * ready, only CROWD of them are compared, because comparing thousands would take too long for each choice.
 *
 * Rejected: priorities for every event (POS, Yuan et al. 2018): a choice must know which object the next step of a task
 * uses, and tasks do not say that. Rejected: enumeration (loom's DPOR, CHESS): few programs of tasks have so few
 * schedules, and these programs are small enough for tests/orders.
 */
#include "sched/simulate.h"

enum {
	PERIOD = 64,
	CROWD = 256,
	PATIENCE = 500,
	SMALLEST = 3, /* the logarithm of the smallest scale: 8 choices */
	SMALL_SCALES = 4,
	SCALES = 11,
};

/* Priorities: at first, after a change, after a yield. */
static const uint32_t FIRST = 1u << 31, CHANGED = 1u << 30, YIELDED = (1u << 30) - 1;

static uint64_t draw(struct weft__strategy *s, uint64_t limit)
{
	return weft__next_random(&s->random) % limit;
}

/*
 * A turn takes no time under a quarter of the seeds, 64 ns to 16 µs under nearly half, and 16 to 131 µs under the rest.
 * With longer turns, time-outs that correct programs depend on would expire: the machines of a simulated world share
 * the simulator's processor, and the machines of examples/kv.c with their heartbeats of 10 ms keep no leader if each
 * turn takes 262 µs.
 */
static uint64_t draw_cost(struct weft__strategy *s)
{
	uint64_t sixteenth = draw(s, 16);

	if (sixteenth < 4)
		return 0;
	return sixteenth < 11 ? 64ull << draw(s, 9) : 16384ull << draw(s, 4);
}

static void draw_priorities(struct weft__strategy *s)
{
	static const uint8_t changes[] = {0, 1, 1, 1, 2, 2, 3, WEFT__CHANGES};
	uint64_t scale = 1ull << (SMALLEST + draw(s, draw(s, 2) ? SMALL_SCALES : SCALES));
	unsigned i;

	s->yields_lower = draw(s, 2);
	if (!s->yields_lower)
		s->patience = 1ull << (4 + draw(s, 5));
	s->change_count = changes[draw(s, 8)];
	for (i = 0; i < s->change_count; i++)
		s->changes[i] = draw(s, scale);
}

static unsigned draw_stay(struct weft__strategy *s, uint64_t place)
{
	static const unsigned rare[] = {224, 240, 248, 252}, often[] = {0, 128, 192, 224};

	return place < 6 ? rare[place - 2] : often[draw(s, 4)];
}

void weft__strategy_draw(struct weft__strategy *s, uint64_t seed)
{
	uint64_t place = seed % PERIOD;

	*s = (struct weft__strategy){
	    .random = seed, .newest = FIRST, .lowest = YIELDED, .patience = PATIENCE, .yields_lower = true};
	if (place < 2) {
		s->kind = place ? WEFT__REVERSE : WEFT__PLAIN;
		return;
	}
	s->cost = draw_cost(s);
	if (place >= 6 && place % 2 == 0) {
		s->kind = WEFT__PRIORITIES;
		draw_priorities(s);
	} else {
		s->kind = WEFT__UNIFORM;
		s->stay = draw_stay(s, place);
	}
}

void weft__strategy_ready(struct weft__strategy *s, struct weft__task *task, bool yielded)
{
	if (s->kind == WEFT__PLAIN || s->kind == WEFT__UNIFORM)
		return;
	if (yielded && s->yields_lower)
		task->priority = --s->lowest;
	else if (s->kind == WEFT__REVERSE)
		task->priority = ++s->newest;
	else if (!task->priority)
		task->priority = FIRST + (uint32_t)draw(s, FIRST);
}

/* ---- by priorities ---------------------------------------------------------------------------------------------- */

/* The ready task of the highest priority, among the CROWD tasks that have been ready longest or, in the reverse order,
 * for the shortest time. */
static size_t find_first(const struct weft__strategy *s, const struct weft__candidate *ready, size_t count)
{
	size_t begin = s->kind == WEFT__REVERSE && count > CROWD ? count - CROWD : 0, best = begin, i;
	size_t end = s->kind != WEFT__REVERSE && count > CROWD ? CROWD : count;
	uint32_t highest = ready[begin].task->priority;

	for (i = begin + 1; i < end; i++)
		if (ready[i].task->priority > highest) {
			highest = ready[i].task->priority;
			best = i;
		}
	return best;
}

/* The choice, as an index of the candidates: 0 is the running task, if there is one. */
static size_t first_in_line(const struct weft__strategy *s, const struct weft__candidate *ready, size_t count,
			    const struct weft__task *running)
{
	size_t best = find_first(s, ready, count);

	if (!running)
		return best;
	return running->priority >= ready[best].task->priority ? 0 : best + 1;
}

static size_t by_priorities(struct weft__strategy *s, const struct weft__candidate *ready, size_t count,
			    struct weft__task *running, uint64_t number)
{
	struct weft__task *task;
	size_t choice;
	unsigned i;

	if (number - ready[0].since > s->patience)
		return running != NULL;
	choice = first_in_line(s, ready, count, running);
	for (i = 0; i < s->change_count; i++) {
		if (s->changes[i] != number)
			continue;
		task = !running ? ready[choice].task : choice ? ready[choice - 1].task : running;
		task->priority = task->priority >= FIRST ? CHANGED + i : --s->lowest;
		choice = first_in_line(s, ready, count, running);
	}
	return choice;
}

/* ---- at random -------------------------------------------------------------------------------------------------- */

static size_t at_random(struct weft__strategy *s, const struct weft__candidate *ready, size_t count, bool running,
			const struct weft__task *last)
{
	bool can_stay = running || ready[count - 1].task == last;

	if (s->stay && can_stay && draw(s, 256) < s->stay)
		return running ? 0 : count - 1;
	if (s->stay && running)
		return 1 + draw(s, count);
	return draw(s, count + running);
}

size_t weft__strategy_choose(struct weft__strategy *s, const struct weft__candidate *ready, size_t count,
			     struct weft__task *running, const struct weft__task *last, uint64_t number)
{
	switch (s->kind) {
	case WEFT__PLAIN:
		return 0;
	case WEFT__UNIFORM:
		return at_random(s, ready, count, running != NULL, last);
	default:
		return by_priorities(s, ready, count, running, number);
	}
}
