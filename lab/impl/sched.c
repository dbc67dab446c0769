/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tasks: starting and joining a task, yielding, passing an item, a tree of tasks, timers, and an idle runtime.
 *
 *   ./program case=NAME n=COUNT workers=W
 *
 * `wait` waits for an event that has happened already, by the effect; `direct` suspends the task's coroutine for the
 * same request, without a search for its handler. simulate=1: by weft_simulate.
 */
#define _GNU_SOURCE
#include "lab.h"
#include <pthread.h>
#include <sys/resource.h>
#include <weft/sync.h>

enum { LAB_US = 1000, LAB_MS = 1000000 };
#define LAB_HOUR (3600 * (uint64_t)1000000000)

struct run {
	int64_t n, result, ms, sleepers;
	uint64_t ops;
	const char *name;
	char more[96]; /* further figures, in the format of lab_report_more */
};

static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	if (weft_scope_spawn(scope, fn, argument))
		lab_die("spawn");
}

static weft_chan_t *channel(size_t capacity)
{
	weft_chan_t *made = weft_chan_make(sizeof(int64_t), capacity);

	if (!made)
		lab_die("weft_chan_make");
	return made;
}

static void *array(int64_t count, size_t bytes)
{
	void *made = calloc((size_t)count, bytes);

	if (!made)
		lab_die("calloc");
	return made;
}

/* Tasks that have not reached the point where they wait. */
static weft_group_t absent;

static void await_arrivals(void)
{
	weft_group_wait(&absent);
}

/* Starts a task that calls arrive(). */
static void start_absent(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	weft_group_add(&absent, 1);
	start(scope, fn, argument);
}

static void arrive(void)
{
	weft_group_done(&absent);
}

/* ---- spawn and join --------------------------------------------------------------------------------------------- */

static void *adds(void *sum)
{
	++*(int64_t *)sum;
	return sum;
}

static void spawn_join(struct run *r)
{
	weft_task_t task;

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++)
		if (weft_scope_spawn_with(&scope, &task, adds, &r->result, NULL) || weft_join(&task, NULL))
			lab_die("spawn");
	r->ops = (uint64_t)r->n;
}

/* ---- yield ------------------------------------------------------------------------------------------------------ */

static void *gives_way(void *argument)
{
	struct run *r = argument;

	for (int64_t i = 0; i < r->n / 10; i++)
		weft_task_yield();
	__atomic_fetch_add(&r->result, r->n / 10, __ATOMIC_RELAXED);
	return r;
}

static void yield(struct run *r)
{
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++)
		start(&scope, gives_way, r);
	weft_scope_wait(&scope);
	r->ops = (uint64_t)r->result;
}

static void *yields(void *unused)
{
	weft_coro_t *self = weft_current();

	for (;;)
		weft_yield(self, &weft_suspended, NULL);
	return unused;
}

/* The minimum of a scheduler: a resume and a yield, in turn among ten coroutines. */
static void bare(struct run *r)
{
	weft_coro_t *ten[10];

	for (int i = 0; i < 10; i++)
		if (!(ten[i] = weft_create(yields, NULL)))
			lab_die("weft_create");
	for (int64_t i = 0; i < r->n / 10; i++)
		for (int k = 0; k < 10; k++)
			weft_resume(ten[k], NULL, WEFT_HANDLE_NONE);
	r->result = r->n / 10 * 10;
	r->ops = (uint64_t)r->result;
	for (int i = 0; i < 10; i++)
		weft_delete(ten[i]);
}

/* ---- channels --------------------------------------------------------------------------------------------------- */

struct pair {
	weft_chan_t *to, *back;
};

static void *echoes(void *argument)
{
	struct pair *p = argument;
	int64_t item;

	while (weft_chan_receive(p->to, &item) == 0)
		weft_chan_send(p->back, &item);
	return p;
}

static void end_exchange(struct pair *p, weft_scope_t *scope)
{
	weft_chan_close(p->to);
	weft_scope_wait(scope);
	weft_chan_free(p->to);
	weft_chan_free(p->back);
}

static void hop(struct run *r)
{
	struct pair p = {channel(0), channel(0)};
	int64_t item;

	WEFT_SCOPE(scope);
	start(&scope, echoes, &p);
	for (int64_t i = 1; i <= r->n; i++) {
		weft_chan_send(p.to, &i);
		weft_chan_receive(p.back, &item);
		r->result += item;
	}
	end_exchange(&p, &scope);
	r->ops = 2 * (uint64_t)r->n;
}

/* ---- select ----------------------------------------------------------------------------------------------------- */

enum { SENDERS = 8 };

struct source {
	weft_chan_t *chan;
	int64_t items;
};

static void *sends(void *argument)
{
	struct source *s = argument;

	for (int64_t i = 1; i <= s->items; i++)
		weft_chan_send(s->chan, &i);
	return s;
}

static void select_of_eight(struct run *r)
{
	struct source sources[SENDERS];
	weft_case_t cases[SENDERS];
	int64_t item;

	WEFT_SCOPE(scope);
	for (int i = 0; i < SENDERS; i++) {
		sources[i] = (struct source){channel(0), r->n / SENDERS};
		cases[i] = (weft_case_t){.chan = sources[i].chan, .receive = &item};
		start(&scope, sends, &sources[i]);
	}
	for (int64_t i = 0; i < r->n; i++) {
		weft_select(cases, SENDERS);
		r->result += item;
	}
	weft_scope_wait(&scope);
	for (int i = 0; i < SENDERS; i++)
		weft_chan_free(sources[i].chan);
	r->ops = (uint64_t)r->n;
}

/* ---- ring ------------------------------------------------------------------------------------------------------- */

enum { RING = 503 };

struct ring {
	weft_chan_t *at[RING];
	int64_t last; /* the task that received the token at 0, counted from 1 */
};

struct member {
	struct ring *ring;
	int index;
};

static void *passes_on(void *argument)
{
	struct member *m = argument;
	struct ring *ring = m->ring;
	int64_t token;

	while (weft_chan_receive(ring->at[m->index], &token) == 0) {
		if (token-- > 0) {
			weft_chan_send(ring->at[(m->index + 1) % RING], &token);
			continue;
		}
		ring->last = m->index + 1;
		for (int i = 0; i < RING; i++)
			weft_chan_close(ring->at[i]);
	}
	return m;
}

static void ring(struct run *r)
{
	static struct member members[RING];
	static struct ring all;

	WEFT_SCOPE(scope);
	for (int i = 0; i < RING; i++) {
		all.at[i] = channel(1);
		members[i] = (struct member){&all, i};
		start(&scope, passes_on, &members[i]);
	}
	weft_chan_send(all.at[0], &r->n);
	weft_scope_wait(&scope);
	for (int i = 0; i < RING; i++)
		weft_chan_free(all.at[i]);
	r->result = all.last;
	r->ops = (uint64_t)r->n;
}

/* ---- fan-out and fan-in ----------------------------------------------------------------------------------------- */

static void fan(struct run *r)
{
	struct pair p = {channel(0), channel(0)};
	struct source source = {p.to, r->n};
	int64_t item;

	WEFT_SCOPE(scope);
	for (int i = 0; i < 100; i++)
		start(&scope, echoes, &p);
	start(&scope, sends, &source);
	for (int64_t i = 0; i < r->n; i++) {
		weft_chan_receive(p.back, &item);
		r->result += item;
	}
	end_exchange(&p, &scope);
	r->ops = (uint64_t)r->n;
}

/* ---- mutex ------------------------------------------------------------------------------------------------------ */

struct counter {
	weft_mutex_t mutex;
	int64_t each, count;
};

static void *counts(void *argument)
{
	struct counter *c = argument;

	for (int64_t i = 0; i < c->each; i++) {
		weft_mutex_lock(&c->mutex);
		c->count++;
		weft_mutex_unlock(&c->mutex);
	}
	return c;
}

static void mutex(struct run *r)
{
	struct counter c = {.each = r->n / 10};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++)
		start(&scope, counts, &c);
	weft_scope_wait(&scope);
	r->result = c.count;
	r->ops = (uint64_t)r->n;
}

/* ---- a chain of wakes ------------------------------------------------------------------------------------------- */

static void *sets_next(void *argument)
{
	weft_event_t *event = argument;

	arrive();
	weft_event_wait(event);
	weft_event_set(event + 1);
	return event;
}

static void chain(struct run *r)
{
	weft_event_t *events = array(r->n + 1, sizeof(*events));

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++)
		start_absent(&scope, sets_next, &events[i]);
	await_arrivals();
	lab_start();
	weft_event_set(&events[0]);
	weft_event_wait(&events[r->n]);
	lab_stop();
	weft_scope_wait(&scope);
	free(events);
	r->result = r->n;
	r->ops = (uint64_t)r->n;
}

/* ---- the cost of the effect ------------------------------------------------------------------------------------- */

static void over(weft_waiter_t *w)
{
	weft_waiter_init(w, "nothing", NULL, WEFT_NEVER);
	weft_waiter_claim(w, 0);
	weft_waiter_complete(w);
}

static void wait_by_effect(struct run *r)
{
	weft_waiter_t w;

	for (int64_t i = 0; i < r->n; i++) {
		over(&w);
		r->result += weft_wait(&w);
	}
	r->ops = (uint64_t)r->n;
}

static void wait_directly(struct run *r)
{
	weft_coro_t *task = weft_current();
	weft_args_t(weft_op_wait) frame = {0};
	weft_waiter_t w;

	for (int64_t i = 0; i < r->n; i++) {
		over(&w);
		frame.waiter = &w;
		weft_yield(task, &weft_effect_weft_op_wait, &frame);
		r->result += w.result;
	}
	r->ops = (uint64_t)r->n;
}

/* ---- skynet ----------------------------------------------------------------------------------------------------- */

struct part {
	int64_t first, count, sum;
};

static void *skynet_part(void *argument)
{
	struct part *p = argument, parts[10];

	if (p->count == 1) {
		p->sum = p->first;
		return p;
	}
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++) {
		parts[i] = (struct part){p->first + i * (p->count / 10), p->count / 10, 0};
		start(&scope, skynet_part, &parts[i]);
	}
	weft_scope_wait(&scope);
	for (int i = 0; i < 10; i++)
		p->sum += parts[i].sum;
	return p;
}

static void skynet(struct run *r)
{
	struct part all = {0, r->n, 0};

	skynet_part(&all);
	r->result = all.sum;
	r->ops = (uint64_t)r->n;
}

/* ---- timers ----------------------------------------------------------------------------------------------------- */

enum { NAPS = 16 }; /* so many that the start of each task, which is included, counts little */

struct sleepers {
	weft_event_t begin, end;
	weft_group_t napping;
	int64_t slept; /* atomic */
	int64_t longest;
};

struct sleeper {
	struct sleepers *all;
	uint32_t index;
};

/* A pseudo-random share of `longest`, evenly distributed, the same in each program: Knuth's multiplier. */
static uint64_t drawn(uint32_t number, int64_t longest)
{
	return (uint64_t)(number * 2654435761U) * (uint64_t)longest >> 32;
}

static void *naps(void *argument)
{
	struct sleeper *s = argument;
	struct sleepers *all = s->all;
	uint32_t first = s->index * NAPS;

	arrive();
	weft_event_wait(&all->begin);
	for (uint32_t i = first; i < first + NAPS; i++)
		weft_sleep(drawn(i, all->longest));
	__atomic_fetch_add(&all->slept, NAPS, __ATOMIC_RELAXED);
	weft_group_done(&all->napping);
	weft_event_wait(&all->end);
	return s;
}

/* The starts and the ends of the tasks are not timed. */
static void timers_fire(struct run *r)
{
	struct sleeper *sleepers = array(r->n, sizeof(*sleepers));
	struct sleepers all = {.longest = r->ms * LAB_MS};

	WEFT_SCOPE(scope);
	weft_group_add(&all.napping, (int)r->n);
	for (int64_t i = 0; i < r->n; i++) {
		sleepers[i] = (struct sleeper){&all, (uint32_t)i};
		start_absent(&scope, naps, &sleepers[i]);
	}
	await_arrivals();
	lab_start();
	weft_event_set(&all.begin);
	weft_group_wait(&all.napping);
	lab_stop();
	weft_event_set(&all.end);
	weft_scope_wait(&scope);
	free(sleepers);
	r->result = all.slept;
	r->ops = (uint64_t)r->result;
}

static void *sleeps_on(void *unused)
{
	arrive();
	weft_sleep(LAB_HOUR);
	return unused;
}

static int64_t received(weft_chan_t *c, uint64_t deadline)
{
	int64_t item;

	return weft_chan_receive_until(c, &item, deadline) ? 0 : item;
}

static void *echoes_in_time(void *argument)
{
	struct pair *p = argument;
	int64_t item;

	while ((item = received(p->to, weft_now() + LAB_HOUR)))
		weft_chan_send(p->back, &item);
	return p;
}

static void exchange_in_time(struct run *r)
{
	struct pair p = {channel(0), channel(0)};

	WEFT_SCOPE(scope);
	start(&scope, echoes_in_time, &p);
	for (int64_t i = 1; i <= r->n; i++) {
		weft_chan_send(p.to, &i);
		r->result += received(p.back, weft_now() + LAB_HOUR);
	}
	end_exchange(&p, &scope);
}

static void timers_cancel(struct run *r)
{
	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->sleepers; i++)
		start_absent(&scope, sleeps_on, NULL);
	await_arrivals();
	lab_start();
	exchange_in_time(r);
	lab_stop();
	weft_scope_cancel(&scope, -ECANCELED);
	weft_scope_wait(&scope);
	r->ops = 2 * (uint64_t)r->n;
}

/* ---- a task with a long computation ----------------------------------------------------------------------------- */

/* Naps of 10 ms on average: a tenth of the capacity of one worker, for all contenders. */
enum { LATEST = 1000000, NAPPERS = 1000, NAP = 10 * LAB_MS };

struct lateness {
	uint32_t times[LATEST + 1]; /* [i]: naps that ended i µs late. Atomic */
	bool over;		    /* atomic */
};

struct napper {
	struct lateness *lateness;
	uint32_t index;
};

static void note(struct lateness *l, uint64_t late)
{
	late /= LAB_US;
	__atomic_fetch_add(&l->times[late < LATEST ? late : LATEST], 1, __ATOMIC_RELAXED);
}

static void *notes_lateness(void *argument)
{
	struct napper *n = argument;

	for (uint32_t i = 0; !__atomic_load_n(&n->lateness->over, __ATOMIC_RELAXED); i++) {
		uint64_t when = weft_now() + NAP / 2 + drawn(n->index + i * NAPPERS, NAP);

		weft_sleep_until(when);
		note(n->lateness, weft_now() - when);
	}
	return n;
}

/* Returns the lateness in µs that all naps except one in a thousand keep to. */
static int64_t quantile(const struct lateness *l)
{
	uint64_t all = 0, seen = 0;
	int64_t i = 0;

	for (i = 0; i <= LATEST; i++)
		all += l->times[i];
	for (i = 0; i < LATEST && (seen += l->times[i]) < all - all / 1000; i++)
		;
	return i;
}

static void computes(int64_t nanoseconds)
{
	int64_t end = lab_now(CLOCK_MONOTONIC) + nanoseconds;

	while (lab_now(CLOCK_MONOTONIC) < end)
		;
}

static void long_task(struct run *r)
{
	static struct lateness lateness;
	static struct napper nappers[NAPPERS];

	WEFT_SCOPE(scope);
	for (int i = 0; i < NAPPERS; i++) {
		nappers[i] = (struct napper){&lateness, (uint32_t)i};
		start(&scope, notes_lateness, &nappers[i]);
	}
	for (; r->result < r->n; r->result++) {
		computes(10 * LAB_MS);
		weft_sleep(LAB_MS);
	}
	__atomic_store_n(&lateness.over, true, __ATOMIC_RELAXED);
	weft_scope_wait(&scope);
	r->ops = (uint64_t)r->n;
	snprintf(r->more, sizeof(r->more), ", \"late\": %.6f", (double)quantile(&lateness) * 1e-6);
}

/* ---- an idle runtime -------------------------------------------------------------------------------------------- */

struct quiet {
	weft_event_t event;
	struct run *run;
};

/* Usage of the process, without the calling thread. */
struct usage {
	int64_t cpu, switches;
};

static int64_t switches(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return u.ru_nvcsw + u.ru_nivcsw;
}

static struct usage usage(void)
{
	return (struct usage){lab_now(CLOCK_PROCESS_CPUTIME_ID) - lab_now(CLOCK_THREAD_CPUTIME_ID),
			      switches(RUSAGE_SELF) - switches(RUSAGE_THREAD)};
}

static void pause_thread(int64_t ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * LAB_MS}, NULL);
}

/* Reports whole microseconds and switches per second, because reading both clocks takes a part of one. */
static void *watches(void *argument)
{
	struct quiet *q = argument;
	struct run *r = q->run;
	struct usage before, after;

	pause_thread(100); /* until the workers sleep */
	before = usage();
	pause_thread(r->ms);
	after = usage();
	snprintf(r->more, sizeof(r->more), ", \"idle\": %.6f, \"switches\": %.1f",
		 (double)((after.cpu - before.cpu) / LAB_US * 1000 / r->ms) * 1e-6,
		 (double)(after.switches - before.switches) * 1e3 / (double)r->ms);
	weft_event_set(&q->event);
	return q;
}

static void *waits_quietly(void *argument)
{
	struct quiet *q = argument;

	weft_event_wait(&q->event);
	__atomic_fetch_add(&q->run->result, 1, __ATOMIC_RELAXED);
	return q;
}

static void idle(struct run *r)
{
	struct quiet q = {.run = r};
	pthread_t thread;

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++)
		start(&scope, waits_quietly, &q);
	errno = pthread_create(&thread, NULL, watches, &q);
	if (errno)
		lab_die("pthread_create");
	weft_scope_wait(&scope);
	pthread_join(thread, NULL);
	r->ops = (uint64_t)r->n;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void *waits(void *event)
{
	weft_event_wait(event);
	return event;
}

static void memory(struct run *r)
{
	uint64_t before = lab_resident() + lab_page_tables(), bytes;
	weft_event_t event = {0};

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++) {
		start(&scope, waits, &event);
		weft_task_yield();
	}
	bytes = lab_resident() + lab_page_tables() - before;
	weft_event_set(&event);
	weft_scope_wait(&scope);
	snprintf(r->more, sizeof(r->more), ", \"bytes\": %.1f", (double)bytes / (double)r->n);
	r->result = r->n;
	r->ops = (uint64_t)r->n;
}

/* ----------------------------------------------------------------------------------------------------------------- */

/* `whole`: the whole case is timed; other cases start and stop the clock themselves. */
static const struct {
	const char *name;
	void (*run)(struct run *r);
	bool whole;
} cases[] = {{"spawn_join", spawn_join, true},
	     {"yield", yield, true},
	     {"bare", bare, true},
	     {"hop", hop, true},
	     {"select", select_of_eight, true},
	     {"ring", ring, true},
	     {"fan", fan, true},
	     {"mutex", mutex, true},
	     {"chain", chain, false},
	     {"wait", wait_by_effect, true},
	     {"direct", wait_directly, true},
	     {"skynet", skynet, true},
	     {"timers_fire", timers_fire, false},
	     {"timers_cancel", timers_cancel, false},
	     {"long_task", long_task, true},
	     {"idle", idle, true},
	     {"task_memory", memory, true}};

static void *first(void *argument)
{
	struct run *r = argument;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(cases[i].name, r->name)) {
			if (cases[i].whole)
				lab_start();
			cases[i].run(r);
			if (cases[i].whole)
				lab_stop();
			return r;
		}
	lab_die("no such case");
	return NULL;
}

int main(int argc, char **argv)
{
	struct run r = {.n = lab_number(argc, argv, "n", 1000),
			.ms = lab_number(argc, argv, "ms", 10),
			.sleepers = lab_number(argc, argv, "sleepers", 10),
			.name = lab_text(argc, argv, "case")};
	weft_rt_config_t config = {.workers = (unsigned)lab_number(argc, argv, "workers", 1)};
	char result[32];
	int failed;

	config.task.stack_size = (size_t)lab_number(argc, argv, "stack", 0);
	config.steps = UINT64_MAX;
	if (!r.name)
		lab_die("no case");
	failed = lab_number(argc, argv, "simulate", 0) ? weft_simulate(1, &config, first, &r, NULL)
						       : weft_rt_run(&config, first, &r, NULL);
	if (failed)
		lab_die("the runtime");
	snprintf(result, sizeof(result), "%" PRId64, r.result);
	return lab_report_more(r.ops, result, r.more);
}
