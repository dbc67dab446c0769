/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Select over channels, semaphores and events: PROGRAM WORKERS FIRST-SEED COUNT; 0 workers: simulated.
 *
 * Producers send items, give permits and set events. Consumers select among all of them, with deadlines, and some are
 * cancelled. At the end each item has been received once, each permit has been taken once, and each event has been
 * seen: a case that is not chosen has no effect, and a ready case is not forgotten.
 */
#include "check.h"
#include "draw.h"

enum { CHANNELS = 2, SEMAPHORES = 2, EVENTS = 4, PRODUCERS = 3, EACH = 24, CONSUMERS = 3, VICTIMS = 3 };

enum { ITEMS = PRODUCERS * EACH, CASES = CHANNELS + SEMAPHORES + EVENTS + 1 };

struct world {
	weft_chan_t *chans[CHANNELS];
	weft_sem_t sems[SEMAPHORES];
	weft_event_t events[EVENTS], stop;
	unsigned received[ITEMS], sent, got, given, taken, seen[EVENTS];
	uint64_t seed;
};

struct member {
	struct world *world;
	unsigned number;
	uint64_t random;
};

static unsigned count(unsigned *what)
{
	return __atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST);
}

static void send(struct member *m, unsigned item)
{
	weft_case_t cases[CHANNELS];
	int which;

	for (int i = 0; i < CHANNELS; i++)
		cases[i] = (weft_case_t){.chan = m->world->chans[i], .send = &item};
	which = draw(&m->random, 2) ? weft_select(cases, CHANNELS) : weft_select_fair(cases, CHANNELS);
	CHECK(which >= 0 && which < CHANNELS && cases[which].status == 0);
	count(&m->world->sent);
}

static void *produces(void *member)
{
	struct member *m = member;
	struct world *w = m->world;

	for (unsigned i = 0; i < EACH; i++)
		switch (draw(&m->random, 6)) {
		case 0:
			weft_event_set(&w->events[draw(&m->random, EVENTS)]);
			break;
		case 1:
		case 2:
			count(&w->given);
			CHECK(weft_sem_give(&w->sems[draw(&m->random, SEMAPHORES)], 1) == 0);
			break;
		case 3:
			weft_task_yield();
			break;
		default:
			send(m, m->number * EACH + i);
		}
	return NULL;
}

/* Case CASES - 1 is the stop event. An event that the consumer has already seen is left out. */
static void prepare(struct world *w, weft_case_t *cases, unsigned *item, const bool *seen)
{
	memset(cases, 0, CASES * sizeof *cases);
	for (int i = 0; i < CHANNELS; i++)
		cases[i] = (weft_case_t){.chan = w->chans[i], .receive = item};
	for (int i = 0; i < SEMAPHORES; i++)
		cases[CHANNELS + i].sem = &w->sems[i];
	for (int i = 0; i < EVENTS; i++)
		if (!seen[i])
			cases[CHANNELS + SEMAPHORES + i].event = &w->events[i];
	cases[CASES - 1].event = &w->stop;
}

static void has_done(struct world *w, unsigned which, unsigned item, bool *seen)
{
	if (which < CHANNELS) {
		CHECK(item < ITEMS && count(&w->received[item]) == 1);
		count(&w->got);
	} else if (which < CHANNELS + SEMAPHORES) {
		CHECK(count(&w->taken) <= __atomic_load_n(&w->given, __ATOMIC_SEQ_CST));
	} else {
		which -= CHANNELS + SEMAPHORES;
		CHECK(!seen[which] && weft_event_is_set(&w->events[which]));
		seen[which] = true;
		count(&w->seen[which]);
	}
}

static void *consumes(void *member)
{
	struct member *m = member;
	bool seen[EVENTS] = {false};
	weft_case_t cases[CASES];
	uint64_t deadline;
	unsigned item;
	int which;

	for (;;) {
		item = ITEMS;
		prepare(m->world, cases, &item, seen);
		deadline = draw(&m->random, 4) ? WEFT_NEVER : draw(&m->random, 2) ? 0 : weft_now() + 1000;
		which = draw(&m->random, 2) ? weft_select_until(cases, CASES, deadline)
					    : weft_select_fair_until(cases, CASES, deadline);
		if (which < 0)
			CHECK(item == ITEMS);
		if (which == -ECANCELED || which == CASES - 1)
			return NULL;
		CHECK(which >= 0 || (which == -ETIMEDOUT && deadline != WEFT_NEVER));
		if (which >= 0)
			has_done(m->world, (unsigned)which, item, seen);
	}
}

static struct member member(struct world *w, unsigned number)
{
	return (struct member){w, number, w->seed * 64 + number};
}

/* Cancels some consumers while they select. */
static void *cancels(void *pass)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	struct world *w = pass;
	struct member m = member(w, 50), victims[VICTIMS];
	weft_task_t handles[VICTIMS];

	for (unsigned round = 0; round < 4; round++) {
		WEFT_SCOPE(scope);
		for (unsigned i = 0; i < VICTIMS; i++) {
			victims[i] = member(w, 20 + round * VICTIMS + i);
			CHECK(weft_scope_spawn_with(&scope, &handles[i], consumes, &victims[i], &codes) == 0);
		}
		for (unsigned i = draw(&m.random, 8); i--;)
			weft_task_yield();
		for (unsigned i = 0; i < VICTIMS; i++)
			weft_task_cancel(&handles[i]);
		CHECK(weft_scope_wait(&scope) == 0);
	}
	return NULL;
}

static bool all_is_gone(struct world *w)
{
	return __atomic_load_n(&w->got, __ATOMIC_SEQ_CST) == w->sent &&
	       __atomic_load_n(&w->taken, __ATOMIC_SEQ_CST) == w->given;
}

static void *conserves(void *world)
{
	struct world *w = world;
	struct member producers[PRODUCERS], consumers[CONSUMERS];
	unsigned set = 0, waits = 0;

	WEFT_SCOPE(scope);
	WEFT_SCOPE(working);
	for (unsigned i = 0; i < CONSUMERS; i++) {
		consumers[i] = member(w, 10 + i);
		CHECK(weft_scope_spawn(&scope, consumes, &consumers[i]) == 0);
	}
	for (unsigned i = 0; i < PRODUCERS; i++) {
		producers[i] = member(w, i);
		CHECK(weft_scope_spawn(&working, produces, &producers[i]) == 0);
	}
	CHECK(weft_scope_spawn(&working, cancels, w) == 0);
	CHECK(weft_scope_wait(&working) == 0);
	while (!all_is_gone(w)) {
		CHECK(waits++ < 20000);
		CHECK(weft_sleep(MS) == 0);
	}
	for (unsigned i = 0; i < EVENTS; i++)
		set += weft_event_is_set(&w->events[i]);
	for (unsigned i = 0; i < EVENTS && set; i++)
		while (weft_event_is_set(&w->events[i]) && __atomic_load_n(&w->seen[i], __ATOMIC_SEQ_CST) < CONSUMERS) {
			CHECK(waits++ < 20000);
			CHECK(weft_sleep(MS) == 0);
		}
	weft_event_set(&w->stop);
	CHECK(weft_scope_wait(&scope) == 0);
	for (unsigned i = 0; i < ITEMS; i++)
		CHECK(w->received[i] <= 1);
	return w;
}

/* All cases are ready: weft_select takes the first case, weft_select_fair takes each case now and then. */
static void *orders(void *pass)
{
	weft_chan_t *chan = weft_chan_make(0, 1000);
	weft_sem_t sem = WEFT_SEM(1000);
	weft_event_t event = {0}, unset = {0};
	unsigned done[4] = {0};

	CHECK(chan);
	weft_event_set(&event);
	for (int i = 0; i < 1000; i++)
		CHECK(weft_chan_send(chan, NULL) == 0);
	for (int i = 0; i < 400; i++) {
		weft_case_t cases[] = {{.event = &unset}, {.sem = &sem}, {.chan = chan}, {.event = &event}};

		CHECK(weft_select(cases, 4) == 1);
		int which = weft_select_fair(cases, 4);
		CHECK(which > 0);
		done[which]++;
	}
	for (int i = 1; i < 4; i++)
		CHECK(done[i] >= 50);
	weft_case_t never[] = {{.event = &unset}, {0}};
	CHECK(weft_select_until(never, 2, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(never, 2, weft_now() + 1000) == -ETIMEDOUT);
	CHECK(weft_select_fair_until(never, 0, 0) == -EINVAL && weft_select_fair_until(NULL, 1, 0) == -EINVAL);
	CHECK(weft_chan_free(chan) == 0);
	return pass;
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
		 rounds = argc > 3 ? strtoull(argv[3], NULL, 10) : 100;

	run_task(workers, 0, orders, &workers);
	for (uint64_t seed = first; seed < first + rounds; seed++) {
		struct world w = {.seed = seed};

		for (unsigned i = 0; i < CHANNELS; i++)
			CHECK((w.chans[i] = weft_chan_make(sizeof(unsigned), (seed + i) % 3)));
		run_task(workers, seed, conserves, &w);
		for (unsigned i = 0; i < CHANNELS; i++)
			CHECK(weft_chan_free(w.chans[i]) == 0);
	}
	printf("ok\n");
	return 0;
}
