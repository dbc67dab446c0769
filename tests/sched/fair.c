/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fair WORKERS | mistakes: tasks whose operations never wait still yield, and can be cancelled; the simulator switches
 * tasks at these operations.
 *
 * All bounds are numbers of operations, not times: how many operations a task does after its deadline has passed, or
 * before another ready task runs. With one worker they follow from the budget of a turn and from how often a worker
 * checks its timers (every 61 picks). With more workers, the thread that holds the timer may be descheduled by the
 * kernel.
 */
#include "check.h"

#include <pthread.h>
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
	/* A cleanup yields, and is not cancelled. */
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

/* Operations that cannot or must not wait do not fail when the task is cancelled. */
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

/* Also stops the producer, when the sleeper has woken, or should have woken long ago. */
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
		CHECK(weft_event_wait(&t->over) == 0); /* one operation */
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

/* With one worker, two tasks that never wait take turns of 128 to 256 operations. */
static void *turns_have_a_budget(void *pass)
{
	struct turns t = {.shortest = INT32_MAX};

	weft_task_attr_t attr = {.worker = 1};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 2; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, counts_turns, &t, &attr) == 0);
	weft_event_set(&t.over);
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

/* A loop that polls a condition lets the other task make it true, if the loop asks whether its task is cancelled. */
static void *polling_lets_others_run(void *pass)
{
	weft_event_t event = {0};
	int looks = 0;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sets, &event) == 0);
	while (!weft_event_is_set(&event) && !weft_task_is_cancelled() && looks < ANY)
		looks++;
	CHECK(looks < (workers == 1 ? 2 * TURN : ANY));
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

/* A task may call operations that never wait while it holds a system mutex, even if another task of the same thread
 * needs that mutex. */
struct system_lock {
	pthread_mutex_t lock;
	struct objects objects;
	int begun, ended;
};

static void *works_with_system_lock(void *argument)
{
	struct system_lock *s = argument;

	s->begun++;
	while (s->begun < 2)
		CHECK(weft_task_yield() == 0);
	for (int i = 0; i < 20; i++) {
		CHECK(pthread_mutex_lock(&s->lock) == 0);
		for (int j = 0; j < 2 * TURN; j++) {
			int item = j;

			CHECK(weft_mutex_try_lock(&s->objects.mutex) && weft_mutex_unlock(&s->objects.mutex) == 0);
			CHECK(weft_sem_give(&s->objects.sem, 1) == 0);
			CHECK(weft_chan_send_until(s->objects.chan, &item, 0) == 0);
			CHECK(weft_chan_receive_until(s->objects.chan, &item, 0) == 0);
			weft_event_set(&s->objects.event);
			weft_event_reset(&s->objects.event);
			weft_cond_signal(&(weft_cond_t){{0, NULL, NULL}});
			CHECK(!weft_event_is_set(&s->objects.event) && weft_chan_count(s->objects.chan) == 0);
		}
		CHECK(pthread_mutex_unlock(&s->lock) == 0);
		CHECK(weft_task_yield() == 0);
	}
	s->ended++;
	return NULL;
}

static void *a_system_lock_can_be_held(void *pass)
{
	struct system_lock s = {.lock = PTHREAD_MUTEX_INITIALIZER};
	weft_task_attr_t same = {.worker = 1};

	prepare(&s.objects);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 2; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, works_with_system_lock, &s, &same) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(s.ended == 2 && weft_chan_free(s.objects.chan) == 0);
	return pass;
}

/* ---- the first waiter of a mutex --------------------------------------------------------------------------------- */

struct contest {
	weft_mutex_t mutex;
	int sections, passed_over;
	bool waits, has_had_it;
};

/* During each section the waiter runs, and finds the mutex locked. */
static void *holds(void *argument)
{
	struct contest *c = argument;

	while (!c->has_had_it && c->sections < 100000) {
		CHECK(weft_mutex_lock(&c->mutex) == 0);
		__atomic_fetch_add(&c->sections, 1, __ATOMIC_RELAXED); /* other tasks read it without the mutex */
		CHECK(weft_task_yield() == 0);
		CHECK(weft_mutex_unlock(&c->mutex) == 0);
	}
	return NULL;
}

static void *wants(void *argument)
{
	struct contest *c = argument;
	int before = c->sections;

	CHECK(weft_mutex_lock(&c->mutex) == 0);
	c->passed_over = c->sections - before;
	c->has_had_it = true;
	CHECK(weft_mutex_unlock(&c->mutex) == 0);
	return NULL;
}

/* Holds with one worker, and in the simulator's plainest order. The section during which the waiter arrives
 * is not counted. */
static void *the_first_waiter_loses_four_times(void *pass)
{
	weft_task_attr_t same = {.worker = 1};
	const weft_task_attr_t *attr = workers == 1 ? NULL : &same;
	struct contest c = {0};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, NULL, holds, &c, attr) == 0);
	while (!__atomic_load_n(&c.sections, __ATOMIC_RELAXED))
		CHECK(weft_task_yield() == 0);
	CHECK(weft_scope_spawn_with(&scope, NULL, wants, &c, attr) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(c.mutex.state == 0);
	if (c.passed_over > 4)
		dprintf(1, "# passed over by %d sections\n", c.passed_over);
	CHECK(c.passed_over <= 4);
	return pass;
}

/* ---- mistakes in code without a wait or a yield, for the simulator ----------------------------------------------- */

/* This condition is meant to fail, so the failure does not print "not ok". */
#define FAILS_UNLESS(condition) ((condition) ? (void)0 : abort())

struct mistake {
	bool right;
	weft_mutex_t mutex;
	weft_cond_t cond;
	weft_chan_t *chan;
	int count, freed;
	bool ready;
};

static void *claims(void *argument)
{
	struct mistake *m = argument;
	bool may;

	CHECK(weft_mutex_lock(&m->mutex) == 0);
	may = !m->count;
	if (m->right)
		m->count += may;
	CHECK(weft_mutex_unlock(&m->mutex) == 0);
	if (!may || m->right)
		return NULL;
	CHECK(weft_mutex_lock(&m->mutex) == 0);
	m->count++;
	CHECK(weft_mutex_unlock(&m->mutex) == 0);
	return NULL;
}

static void *waits_until_ready(void *argument)
{
	struct mistake *m = argument;

	if (!m->right && m->ready) /* reads `ready` without the mutex */
		return NULL;
	CHECK(weft_mutex_lock(&m->mutex) == 0);
	while (!m->ready && (m->right || !m->count++))
		CHECK(weft_cond_wait(&m->cond, &m->mutex) == 0);
	return weft_mutex_unlock(&m->mutex) ? argument : NULL;
}

/* Does not hold the mutex: the signal can arrive between the waiter's check and its wait. */
static void *makes_ready(void *argument)
{
	struct mistake *m = argument;

	if (m->right)
		CHECK(weft_mutex_lock(&m->mutex) == 0);
	m->ready = true;
	weft_cond_signal(&m->cond);
	if (m->right)
		CHECK(weft_mutex_unlock(&m->mutex) == 0);
	return NULL;
}

static void *sends_and_writes(void *argument)
{
	struct mistake *m = argument;

	if (m->right)
		m->count = 1;
	CHECK(weft_chan_send(m->chan, &m) == 0);
	if (!m->right) {
		FAILS_UNLESS(!m->freed);
		m->count = 1;
	}
	return NULL;
}

static void *receives_and_frees(void *argument)
{
	struct mistake *m = argument, *received;

	CHECK(weft_chan_receive(m->chan, &received) == 0);
	received->freed = 1;
	return NULL;
}

static void two(struct mistake *m, weft_fn_t *one, weft_fn_t *other)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, one, m) == 0 && weft_scope_spawn(&scope, other, m) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void *checks_then_acts(void *right)
{
	struct mistake m = {.right = right};

	two(&m, claims, claims);
	FAILS_UNLESS(m.count == 1);
	return NULL;
}

static void *loses_a_signal(void *right)
{
	struct mistake m = {.right = right};

	two(&m, waits_until_ready, makes_ready);
	return NULL;
}

static void *writes_to_what_it_sent(void *right)
{
	struct mistake m = {.right = right, .chan = weft_chan_make(sizeof(void *), 1)};

	two(&m, sends_and_writes, receives_and_frees);
	return NULL;
}

static int find(const char *name, weft_fn_t *fn)
{
	weft_finding_t found;
	bool is_found = weft_simulate_seeds(0, 500, NULL, fn, NULL, &found) == 1;
	bool passes = weft_simulate_seeds(0, 300, NULL, fn, "right", NULL) == 0;

	printf("%s - %s: found after %d seeds\n", is_found && passes ? "ok" : "not ok", name, (int)found.tried);
	return !(is_found && passes);
}

static int finds_mistakes(void)
{
	return find("checks_then_acts", checks_then_acts) + find("loses_a_signal", loses_a_signal) +
	       find("writes_to_what_it_sent", writes_to_what_it_sent);
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
	CHECK(k || errno == ENOTSUP); /* NULL with ThreadSanitizer */
	if (k)
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
	    T(a_system_lock_can_be_held),
	    T(the_first_waiter_loses_four_times),
	    T(other_handlers_are_not_asked),
	    T(other_stacks),
	    T(a_child_of_fork),
	};

	if (argc > 1 && !strcmp(argv[1], "mistakes"))
		return finds_mistakes();
	workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
