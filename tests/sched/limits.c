/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Limits of a simulation, the time that turns take, and the seed that several jobs find: PROGRAM NAME. PROGRAM NAME run
 * runs the program of that test alone, by weft_rt_run.
 */
#include "check.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static bool never;

static void *polls(void *unused)
{
	while (!never)
		weft_sleep(MS);
	return unused;
}

static void *polls_beside_others(void *unused)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, polls, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return unused;
}

static void *sleeps_for_days(void *unused)
{
	for (int day = 0; day < 1000; day++)
		weft_sleep(24 * 3600 * SECOND);
	return unused;
}

static void *counts_to_a_million(void *unused)
{
	for (int i = 0; i < 1000000 && !weft_sleep(1); i++)
		;
	return unused;
}

/* Loops without a wait: the clock stands still, and the lock is never free. */
static void *asks_the_time(void *unused)
{
	uint64_t end = weft_now() + MS;

	while (weft_now() < end)
		;
	return unused;
}

static void *tries_a_lock(void *unused)
{
	weft_mutex_t locked = {0};

	CHECK(weft_mutex_lock(&locked) == 0);
	while (!weft_mutex_try_lock(&locked))
		;
	return unused;
}

static int simulate(weft_rt_config_t config, weft_fn_t *fn)
{
	return weft_simulate(0, &config, fn, NULL, NULL);
}

static void time_and_turns(void)
{
	weft_rt_config_t config = {.time = 3600 * SECOND};

	CHECK(simulate((weft_rt_config_t){0}, polls_beside_others) == -ELOOP);
	CHECK(simulate((weft_rt_config_t){0}, sleeps_for_days) == 0);
	CHECK(simulate((weft_rt_config_t){0}, counts_to_a_million) == 0);
	CHECK(simulate(config, sleeps_for_days) == -ELOOP);
	CHECK(simulate(config, counts_to_a_million) == 0);
	CHECK(simulate((weft_rt_config_t){.time = WEFT_NEVER, .turns = 5000000}, polls_beside_others) == -ELOOP);
	CHECK(simulate((weft_rt_config_t){.steps = 10000}, asks_the_time) == -ELOOP);
	CHECK(simulate((weft_rt_config_t){.turn_cost = MS / 10}, asks_the_time) == 0);
	CHECK(simulate((weft_rt_config_t){.steps = 10000}, tries_a_lock) == -ELOOP);
	CHECK(simulate((weft_rt_config_t){.turns = 999999}, counts_to_a_million) == -ELOOP);
	CHECK(simulate((weft_rt_config_t){.turns = 1000100}, counts_to_a_million) == 0);
}

/* ---- turns take time --------------------------------------------------------------------------------------------- */

static void *is_busy(void *event)
{
	for (int i = 0; i < 30; i++)
		weft_task_yield();
	weft_event_set(event);
	return NULL;
}

/* 1: the wait timed out although another task could run. */
static void *waits_beside(void *timed_out)
{
	weft_event_t event = {0};
	uint64_t begin = weft_now();

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, is_busy, &event) == 0);
	*(uint64_t *)timed_out = weft_event_wait_until(&event, begin + MS) == -ETIMEDOUT;
	CHECK(weft_scope_wait(&scope) == 0);
	((uint64_t *)timed_out)[1] = weft_now() - begin;
	return timed_out;
}

static void turns_take_time(void)
{
	const uint32_t plain[] = {0};
	weft_rt_config_t config = {0};
	uint64_t timed_out[2], some = 0, seed;

	CHECK(!weft_simulate(0, NULL, waits_beside, timed_out, NULL) && !timed_out[0] && !timed_out[1]);
	for (seed = 0; seed < 100; seed++) {
		CHECK(!weft_simulate(seed, NULL, waits_beside, timed_out, NULL));
		some += timed_out[0];
	}
	CHECK(some > 5 && some < 50);
	for (config.turn_cost = 1; config.turn_cost <= MS; config.turn_cost *= 10) {
		CHECK(!weft_simulate(0, &config, waits_beside, timed_out, NULL));
		CHECK(timed_out[0] == (config.turn_cost >= MS / 20) && timed_out[1] % config.turn_cost == 0);
		CHECK(timed_out[1] >= 32 * config.turn_cost && timed_out[1] <= 40 * config.turn_cost);
	}
	config = (weft_rt_config_t){.turn_cost = WEFT_NEVER};
	for (seed = 0; seed < 100; seed++)
		CHECK(!weft_simulate(seed, &config, waits_beside, timed_out, NULL) && !timed_out[1]);
	config = (weft_rt_config_t){.order = plain, .choices = 1};
	for (seed = 0; seed < 100; seed++)
		CHECK(!weft_simulate(seed, &config, waits_beside, timed_out, NULL) && !timed_out[1]);
}

static void *fails_if_late(void *unused)
{
	uint64_t timed_out[2];

	waits_beside(timed_out);
	assert(!timed_out[0]);
	return unused;
}

/* Recording the list of choices takes the cost of a turn. */
static void late(void)
{
	weft_finding_t found;

	CHECK(weft_simulate_seeds(0, 500, NULL, fails_if_late, NULL, &found) == 1 && found.outcome == 128 + SIGABRT);
	CHECK(found.choices == 0);
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static weft_mutex_t mutex;
static int taken;

static void *claims(void *unused)
{
	bool is_free;

	weft_mutex_lock(&mutex);
	is_free = !taken;
	weft_mutex_unlock(&mutex);
	weft_mutex_lock(&mutex);
	taken += is_free;
	weft_mutex_unlock(&mutex);
	return unused;
}

/* Most failing seeds first sleep in real time, so that a higher seed's failure is known earlier. */
static void *fails_slowly(void *unused)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, claims, NULL) == 0);
	CHECK(weft_scope_spawn(&scope, claims, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	if (taken > 1 && weft_now() % 3)
		usleep(20000);
	assert(taken == 1);
	return unused;
}

static void jobs(void)
{
	weft_finding_t alone, found;
	uint64_t first;
	unsigned j;

	for (first = 0; first < 300; first += 60) {
		CHECK(weft_simulate_seeds(first, 500, NULL, fails_slowly, NULL, &alone) == 1);
		for (j = 2; j <= 20; j *= 3) {
			weft_rt_config_t config = {.jobs = j};

			CHECK(weft_simulate_seeds(first, 500, &config, fails_slowly, NULL, &found) == 1);
			CHECK(found.seed == alone.seed && found.tried == alone.tried &&
			      found.outcome == alone.outcome && found.choices == alone.choices);
			CHECK(weft_simulate_seeds(first, 50, &config, sleeps_for_days, NULL, &found) == 0 &&
			      found.tried == 50);
		}
	}
}

/* This failure depends on real time, so a replay does not repeat it. */
static int *runs;

static void *fails_once(void *unused)
{
	assert(__atomic_add_fetch(runs, 1, __ATOMIC_RELAXED) != 3);
	return unused;
}

static void unrepeatable(void)
{
	const weft_rt_config_t config = {.jobs = 2};
	weft_finding_t found;

	runs = mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(runs != MAP_FAILED);
	CHECK(weft_simulate_seeds(0, 20, &config, fails_once, NULL, &found) == 1);
	CHECK(found.outcome == 0 && found.tried >= 1);
}

/* Error values that an exit code cannot represent. */
static void *fails_by(void *error)
{
	weft_task_fail(*(const int *)error);
}

static void large_errors(void)
{
	int errors[] = {-126, -128, -256, INT_MIN};
	weft_finding_t found;

	for (int i = 0; i < 4; i++) {
		CHECK(weft_simulate_seeds(0, 2, NULL, fails_by, &errors[i], &found) == 1);
		CHECK(found.outcome == (i ? -127 : -126));
	}
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(void);
	weft_fn_t *program;
} tests[] = {
    {"time_and_turns", time_and_turns, polls_beside_others},
    {"turns_take_time", turns_take_time, fails_if_late},
    {"late", late, fails_if_late},
    {"jobs", jobs, fails_slowly},
    {"unrepeatable", unrepeatable, NULL},
    {"large_errors", large_errors, NULL},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; i++) {
		if (strcmp(argv[1], tests[i].name))
			continue;
		if (argc > 2)
			return weft_rt_run(NULL, tests[i].program, NULL, NULL) ? 1 : 0;
		tests[i].fn();
		printf("ok - %s\n", argv[1]);
		return 0;
	}
	return 2;
}
