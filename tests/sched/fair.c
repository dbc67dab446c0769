/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fair WORKERS: tasks whose operations never wait give way, and are cancelled.
 *
 * All bounds are numbers of operations, not times: how many a task does after its deadline has passed, or before another
 * task that is ready runs. With one worker they follow from the budget of a turn and from how often a worker looks at
 * its timers (61 picks). With more workers another thread may hold the timer while the kernel lets it wait.
 */
#include "check.h"

#include <sys/wait.h>
#include <weft/thread.h>

enum { BUDGET = 128, TURN = 2 * BUDGET, LOOK_EVERY = 61, LATE = LOOK_EVERY * TURN + TURN, ANY = 5000000 };

static unsigned workers;

static int most_late(void)
{
	return workers == 1 ? LATE : ANY;
}

/* ---- operations that need not wait ------------------------------------------------------------------------------- */

struct objects {
	weft_mutex_t mutex;
	weft_rwlock_t rwlock;
	weft_sem_t sem;
	weft_event_t event;
	weft_group_t group;
	weft_barrier_t barrier;
	weft_future_t future;
	weft_chan_t *chan;
};

static int locks(struct objects *o)
{
	int error = weft_mutex_lock(&o->mutex);

	return error ? error : weft_mutex_unlock(&o->mutex);
}

static int reads(struct objects *o)
{
	int error = weft_rwlock_read(&o->rwlock);

	return error ? error : weft_rwlock_unlock(&o->rwlock);
}

static int writes(struct objects *o)
{
	int error = weft_rwlock_write(&o->rwlock);

	return error ? error : weft_rwlock_unlock(&o->rwlock);
}

static int takes(struct objects *o)
{
	int error = weft_sem_take(&o->sem);

	return error ? error : weft_sem_give(&o->sem, 1);
}

static int sees_event(struct objects *o)
{
	return weft_event_wait(&o->event);
}

static int sees_group(struct objects *o)
{
	return weft_group_wait(&o->group);
}

static int gets(struct objects *o)
{
	return weft_future_get(&o->future, NULL);
}

static int meets(struct objects *o)
{
	int result = weft_barrier_wait(&o->barrier);

	return result == 1 ? 0 : result;
}

static int passes(struct objects *o)
{
	int item = 1, error = weft_chan_send(o->chan, &item);

	if (error)
		return error;
	error = weft_chan_receive(o->chan, &item);
	if (error) /* the item is still in the channel */
		CHECK(weft_chan_receive_until(o->chan, &item, 0) == 0);
	return error;
}

static int selects(struct objects *o)
{
	int item = 1, which;
	weft_case_t send = {.chan = o->chan, .send = &item};

	CHECK(weft_chan_receive_until(o->chan, &item, 0) == -ETIMEDOUT);
	which = weft_select(&send, 1);
	if (which < 0)
		return which;
	CHECK(send.status == 0 && weft_chan_receive_until(o->chan, &item, 0) == 0);
	return 0;
}

static int asks(struct objects *o)
{
	(void)o;
	return weft_task_is_cancelled() ? -ECANCELED : 0;
}

static const struct kind {
	const char *name;
	int (*once)(struct objects *o);
} kinds[] = {
    {"mutex", locks},	   {"reader", reads},	  {"writer", writes},	  {"semaphore", takes},
    {"event", sees_event}, {"group", sees_group}, {"future", gets},	  {"barrier", meets},
    {"channel", passes},   {"select", selects},	  {"is_cancelled", asks},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void prepare(struct objects *o)
{
	*o = (struct objects){.sem = WEFT_SEM(1), .barrier = WEFT_BARRIER(1), .chan = weft_chan_make(sizeof(int), 1)};
	CHECK(o->chan);
	weft_event_set(&o->event);
	CHECK(weft_group_add(&o->group, 0) == 0 && weft_future_set(&o->future, NULL, 0) == 0);
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

static void owner_is_told(const struct kind *kind)
{
	struct objects o;
	uint64_t deadline = weft_now() + MS;
	int late = 0, error;

	prepare(&o);
	WEFT_SCOPE_UNTIL(scope, deadline);
	while (!(error = kind->once(&o)) && late <= most_late())
		late += weft_now() > deadline;
	if (error != -ECANCELED)
		dprintf(1, "# %s: %d operations after the deadline\n", kind->name, late);
	CHECK(error == -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
	CHECK(kind->once(&o) == 0 && weft_chan_free(o.chan) == 0);
}

static void *deadlines_end_loops(void *pass)
{
	for (int i = 0; i < KINDS; i++)
		owner_is_told(&kinds[i]);
	return pass;
}

struct loop {
	const struct kind *kind;
	struct objects objects;
	uint64_t deadline;
	int late;
	bool cleaned;
};

static void cleans(struct loop *l)
{
	/* A cleanup gives way, and is not cancelled. */
	for (int i = 0; i < 4 * TURN; i++)
		CHECK(locks(&l->objects) == 0);
	l->cleaned = true;
}

static void *loops(void *argument)
{
	struct loop *l = argument;

	weft_defer(cleans, l);
	while (l->late <= most_late()) {
		CHECK(l->kind->once(&l->objects) == 0);
		l->late += weft_now() > l->deadline;
	}
	CHECK(!"cancelled");
	return NULL;
}

static void *cancelled_loops_are_unwound(void *pass)
{
	for (int i = 0; i < KINDS; i++) {
		struct loop l = {.kind = &kinds[i], .deadline = weft_now() + MS};

		if (l.kind->once == asks)
			continue;
		prepare(&l.objects);
		WEFT_SCOPE_UNTIL(scope, l.deadline);
		CHECK(weft_scope_spawn(&scope, loops, &l) == 0);
		CHECK(weft_scope_wait(&scope) == -ETIMEDOUT && l.cleaned);
		CHECK(weft_chan_free(l.objects.chan) == 0);
	}
	return pass;
}

/* What cannot wait does not fail, nor does what must not wait. */
static void *others_never_fail(void *pass)
{
	struct objects o;

	prepare(&o);
	WEFT_SCOPE(scope);
	weft_scope_cancel(&scope, -ECANCELED);
	for (int i = 0; i < 4 * TURN; i++) {
		int item = i;

		CHECK(weft_mutex_lock_until(&o.mutex, 0) == 0 && weft_mutex_unlock(&o.mutex) == 0);
		CHECK(weft_mutex_try_lock(&o.mutex) && weft_mutex_unlock(&o.mutex) == 0);
		CHECK(weft_rwlock_read_until(&o.rwlock, 0) == 0 && weft_rwlock_unlock(&o.rwlock) == 0);
		CHECK(weft_sem_take_until(&o.sem, 0) == 0 && weft_sem_give(&o.sem, 1) == 0);
		CHECK(weft_group_add(&o.group, 1) == 0 && weft_group_done(&o.group) == 0);
		CHECK(weft_future_set(&o.future, NULL, 0) == -EALREADY && weft_barrier_wait_until(&o.barrier, 0) == 1);
		CHECK(weft_chan_send_until(o.chan, &item, 0) == 0 && weft_chan_count(o.chan) == 1);
		CHECK(weft_chan_receive_until(o.chan, &item, 0) == 0 && item == i);
	}
	weft_shield_begin();
	for (int i = 0; i < 4 * TURN; i++)
		for (int kind = 0; kind < KINDS; kind++)
			CHECK(kinds[kind].once == asks || kinds[kind].once(&o) == 0);
	weft_shield_end();
	CHECK(weft_scope_wait(&scope) == -ECANCELED && weft_chan_free(o.chan) == 0);
	return pass;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

struct pair {
	weft_chan_t *chan;
	weft_event_t over;
	uint64_t until;
	int late;
};

static void *produces(void *argument)
{
	struct pair *p = argument;
	int item = 0;

	while (weft_chan_send(p->chan, &item) == 0)
		;
	return NULL;
}

/* It stops the producer, too, when the sleeper is up, or should have been long ago. */
static void *consumes(void *argument)
{
	struct pair *p = argument;
	int item;

	while (!weft_event_is_set(&p->over) && p->late <= 2 * most_late()) {
		CHECK(weft_chan_receive(p->chan, &item) == 0);
		p->late += weft_now() > p->until;
	}
	CHECK(weft_chan_close(p->chan) == 0);
	return NULL;
}

static void *sleeps(void *argument)
{
	struct pair *p = argument;

	CHECK(weft_sleep_until(p->until) == 0);
	weft_event_set(&p->over);
	return NULL;
}

static void *a_sleep_ends_beside_a_busy_pair(void *pass)
{
	struct pair p = {.chan = weft_chan_make(sizeof(int), WEFT_UNBOUNDED), .until = weft_now() + MS};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sleeps, &p) == 0);
	CHECK(weft_scope_spawn(&scope, produces, &p) == 0);
	CHECK(weft_scope_spawn(&scope, consumes, &p) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(p.late <= 2 * most_late());
	CHECK(weft_chan_free(p.chan) == 0);
	return pass;
}

struct turns {
	weft_event_t over;
	weft_mutex_t mutex;
	int now, longest, shortest, left;
	const void *last;
};

static void *counts_turns(void *argument)
{
	struct turns *t = argument;

	for (int i = 0; i < 100 * BUDGET; i++) {
		(void)weft_event_is_set(&t->over); /* one operation */
		if (t->last != &i && t->last) {
			t->longest = t->now > t->longest ? t->now : t->longest;
			t->shortest = t->now < t->shortest ? t->now : t->shortest;
			t->now = 0;
		}
		t->last = &i;
		t->now++;
	}
	t->last = NULL;
	t->now = 0;
	return NULL;
}

/* One worker: two tasks that never wait take turns of 128 to 256 operations. */
static void *turns_have_a_budget(void *pass)
{
	struct turns t = {.shortest = INT32_MAX};
	weft_task_attr_t attr = {.worker = 1};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 2; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, counts_turns, &t, &attr) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	dprintf(1, "# turns of %d to %d operations\n", t.shortest, t.longest);
	CHECK(t.longest >= BUDGET && t.longest <= TURN);
	return pass;
}

static void *sets(void *event)
{
	weft_event_set(event);
	return NULL;
}

/* A loop that only looks lets the other task run that it looks for. */
static void *polling_lets_others_run(void *pass)
{
	weft_event_t event = {0};
	int looks = 0;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sets, &event) == 0);
	while (!weft_event_is_set(&event) && looks < ANY)
		looks++;
	CHECK(looks < (workers == 1 ? 2 * TURN : ANY));
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

/* ---- where a task must not give way ------------------------------------------------------------------------------ */

static void *many(void *argument)
{
	for (int i = 0; i < 4 * TURN; i++)
		CHECK(locks(argument) == 0);
	return argument;
}

static int yields;

static int counts_yields(void *unused)
{
	(void)unused;
	yields++;
	return 0;
}

WEFT_HANDLER(counting, weft_tail(weft_op_yield, counts_yields));

static int locks_in_clause(void *objects)
{
	many(objects);
	return 0;
}

WEFT_HANDLER(locking, weft_tail(weft_op_yield, locks_in_clause));

static void *yields_once(void *unused)
{
	CHECK(weft_task_yield() == 0);
	return unused;
}

static void *other_handlers_are_not_asked(void *pass)
{
	struct objects o;

	prepare(&o);
	yields = 0;
	weft_run(&counting, NULL, many, &o);
	CHECK(yields == 0);
	weft_run(&locking, &o, yields_once, NULL);
	CHECK(weft_chan_free(o.chan) == 0);
	return pass;
}

static void *other_stacks(void *pass)
{
	weft_attr_t copied = {.policy = WEFT_COPY};
	struct objects o;
	weft_coro_t *k = weft_create_with(many, &o, &copied);

	prepare(&o);
	CHECK(k);
	CHECK(weft_returned(weft_resume(k, NULL, (weft_handles_t){0})));
	weft_delete(k);
	CHECK(weft_on_system_stack(many, &o) == &o);
	CHECK(weft_chan_free(o.chan) == 0);
	return pass;
}

static void *a_child_of_fork(void *pass)
{
	struct objects o;
	int status;
	pid_t child;

	prepare(&o);
	child = fork();
	if (!child) {
		many(&o);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(weft_chan_free(o.chan) == 0);
	return pass;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
	    T(deadlines_end_loops),
	    T(cancelled_loops_are_unwound),
	    T(others_never_fail),
	    T(a_sleep_ends_beside_a_busy_pair),
	    T(turns_have_a_budget),
	    T(polling_lets_others_run),
	    T(other_handlers_are_not_asked),
	    T(other_stacks),
	    T(a_child_of_fork),
	};

	workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
