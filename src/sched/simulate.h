/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The parts of the simulator: strategy.c chooses, simulate.c runs a program once, explore.c runs it under many seeds,
 * by_environment.c does so when WEFT_SIMULATE asks for it.
 */
#ifndef WEFT_SRC_SIMULATE_H
#define WEFT_SRC_SIMULATE_H

#include "sched/sched.h"

enum {
	WEFT__CHOICES = 1 << 20, /* choices that are recorded for shrinking */
	WEFT__CHANGES = 4,	 /* changes of priorities, in a run by priorities */
};

/* splitmix64, by Steele, Lea and Flood */
static inline uint64_t weft__next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* ---- strategy.c ------------------------------------------------------------------------------------------------- */

/* A ready task. In the list, the task that has been ready longest is first. */
struct weft__candidate {
	struct weft__task *task;
	uint64_t since; /* the number of the choice before which it became ready */
};

enum weft__strategy_kind { WEFT__PLAIN, WEFT__REVERSE, WEFT__UNIFORM, WEFT__PRIORITIES };

struct weft__strategy {
	enum weft__strategy_kind kind;
	unsigned stay; /* choices of 256 of WEFT__UNIFORM that keep the running task; 0: as likely as any other task */
	uint64_t random;
	/* the choices before which the task of the highest priority loses its priority */
	uint64_t changes[WEFT__CHANGES];
	unsigned change_count;
	uint64_t patience;	 /* number of choices for which a ready task may be passed over */
	bool yields_lower;	 /* a task that yields gets the lowest priority */
	uint32_t newest, lowest; /* priorities assigned last */
	uint64_t cost;		 /* virtual nanoseconds of each turn */
};

/* Decide how a seed chooses. */
void weft__strategy_draw(struct weft__strategy *s, uint64_t seed) WEFT__HIDDEN;
/* A task has become ready; `yielded`: because it yielded. */
void weft__strategy_ready(struct weft__strategy *s, struct weft__task *task, bool yielded) WEFT__HIDDEN;
/*
 * Choose the task that runs next: 0 is the plain choice.
 * @param running  a task that could continue, which is candidate 0, and ready[i] is candidate i + 1; or NULL: ready[i]
 *                 is candidate i
 * @param last     the task that ran last, which may have ended
 * @param number   the number of this choice
 */
size_t weft__strategy_choose(struct weft__strategy *s, const struct weft__candidate *ready, size_t count,
			     struct weft__task *running, const struct weft__task *last, uint64_t number) WEFT__HIDDEN;

/* ---- simulate.c ------------------------------------------------------------------------------------------------- */

/* The choices of a run, in memory that the exploring process shares with the simulating process. */
struct weft__record {
	/* the run drew random numbers besides its choices: a list of choices alone does not repeat it */
	bool has_world;
	uint64_t cost; /* cost of a turn */
	size_t count;
	uint32_t choice[WEFT__CHOICES];
};

/* This process has called weft_rt_run, weft_simulate or weft_simulate_seeds. */
extern bool weft__has_run WEFT__HIDDEN;
static inline void weft__note_run(void)
{
	/* Atomic, relaxed: several threads may simulate at the same time, and only the end of the process reads the
	 * flag. */
	__atomic_store_n(&weft__has_run, true, __ATOMIC_RELAXED);
}

/* The next simulation of this process writes its choices to `record` (NULL: does not record them), and reports nothing
 * if `quiet`. */
void weft__simulate_for(struct weft__record *record, bool quiet) WEFT__HIDDEN;

/* ---- explore.c -------------------------------------------------------------------------------------------------- */

/* How an exploration reports to a person. All zero: like weft_simulate_seeds. */
struct weft__telling {
	bool tells;	    /* report progress, if standard error is a terminal, and the seeds per second at the end */
	const char *before; /* a shell command that debugs a seed: the part before "WEFT_SIMULATE=" ... */
	const char *behind; /* ... and the part behind the seed; NULL: no such command is reported */
};

int weft__explore(uint64_t first, uint64_t count, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
		  weft_finding_t *found, const struct weft__telling *telling) WEFT__HIDDEN;

#endif
