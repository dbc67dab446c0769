/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Objects that tasks and threads wait for. */
#include "check.h"

#include <pthread.h>

/* ---- mutex and condition --------------------------------------------------------------------------------------- */

struct shared {
	weft_mutex_t mutex;
	weft_cond_t cond;
	int inside, rounds, turn;
};

static void *excludes(void *argument)
{
	struct shared *s = argument;

	for (int i = 0; i < 200; i++) {
		CHECK(weft_mutex_lock(&s->mutex) == 0);
		CHECK(s->inside++ == 0);
		if (i % 3 == 0)
			weft_task_yield();
		s->rounds++;
		CHECK(--s->inside == 0);
		CHECK(weft_mutex_unlock(&s->mutex) == 0);
	}
	return s;
}

static void *a_mutex_excludes(void *pass)
{
	struct shared s = {0};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++)
		CHECK(weft_scope_spawn(&scope, excludes, &s) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(s.rounds == 2000 && s.mutex.state == 0);
	return pass;
}

static void *misuses_a_mutex(void *mutex)
{
	CHECK(weft_mutex_unlock(mutex) == -EPERM);
	CHECK(!weft_mutex_try_lock(mutex));
	CHECK(weft_mutex_lock_until(mutex, 0) == -ETIMEDOUT);
	CHECK(weft_mutex_lock_until(mutex, weft_now() + MS) == -ETIMEDOUT);
	return mutex;
}

static void *a_mutex_refuses(void *pass)
{
	weft_mutex_t mutex = {0};

	WEFT_SCOPE(scope);
	CHECK(weft_mutex_unlock(&mutex) == -EPERM);
	CHECK(weft_mutex_lock(&mutex) == 0 && weft_mutex_lock(&mutex) == -EDEADLK);
	CHECK(weft_scope_spawn(&scope, misuses_a_mutex, &mutex) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_mutex_unlock(&mutex) == 0 && weft_mutex_unlock(&mutex) == -EPERM);
	return pass;
}

static void *takes_turns(void *argument)
{
	struct shared *s = argument;

	CHECK(weft_mutex_lock(&s->mutex) == 0);
	for (int i = 0; i < 50; i++) {
		int mine = s->rounds;

		s->rounds++;
		weft_cond_broadcast(&s->cond);
		while (s->turn < mine)
			CHECK(weft_cond_wait(&s->cond, &s->mutex) == 0);
		s->turn++;
		weft_cond_broadcast(&s->cond);
	}
	CHECK(weft_mutex_unlock(&s->mutex) == 0);
	return s;
}

static void *conditions(void *pass)
{
	struct shared s = {0};

	CHECK(weft_cond_wait(&s.cond, &s.mutex) == -EPERM);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 5; i++)
		CHECK(weft_scope_spawn(&scope, takes_turns, &s) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(s.rounds == 250 && s.turn == 250);
	CHECK(weft_mutex_lock(&s.mutex) == 0);
	CHECK(weft_cond_wait_until(&s.cond, &s.mutex, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_mutex_unlock(&s.mutex) == 0);
	return pass;
}

/* After a cancelled wait for a condition, the cleanup that unlocks the mutex owns it again. */
static void unlocks(weft_mutex_t *mutex)
{
	CHECK(weft_mutex_unlock(mutex) == 0);
}

static void *waits_locked(void *argument)
{
	struct shared *s = argument;

	CHECK(weft_mutex_lock(&s->mutex) == 0);
	weft_defer(unlocks, &s->mutex);
	__atomic_fetch_add(&s->rounds, 1, __ATOMIC_RELAXED); /* other tasks read it without the mutex */
	for (;;)
		weft_cond_wait(&s->cond, &s->mutex);
	return s;
}

static void *cancelled_waits_give_back(void *pass)
{
	struct shared s = {0};

	for (int i = 0; i < 20; i++) {
		WEFT_SCOPE(scope);
		for (int j = 0; j < 4; j++)
			CHECK(weft_scope_spawn(&scope, waits_locked, &s) == 0);
		while (i % 2 && __atomic_load_n(&s.rounds, __ATOMIC_RELAXED) < 4 * i + 4)
			weft_task_yield();
		weft_scope_cancel(&scope, -ECANCELED);
		CHECK(weft_scope_wait(&scope) == -ECANCELED);
		s.rounds = 4 * i + 4;
		CHECK(weft_mutex_try_lock(&s.mutex) && weft_mutex_unlock(&s.mutex) == 0);
	}
	return pass;
}

/* ---- reader-writer lock ---------------------------------------------------------------------------------------- */

struct book {
	weft_rwlock_t lock;
	int readers, writers, most, written;
};

static void *reads(void *argument)
{
	struct book *b = argument;
	int now, most;

	for (int i = 0; i < 50; i++) {
		CHECK(weft_rwlock_read(&b->lock) == 0);
		now = __atomic_add_fetch(&b->readers, 1, __ATOMIC_SEQ_CST);
		CHECK(!__atomic_load_n(&b->writers, __ATOMIC_SEQ_CST));
		most = __atomic_load_n(&b->most, __ATOMIC_RELAXED);
		while (now > most &&
		       !__atomic_compare_exchange_n(&b->most, &most, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		weft_task_yield();
		__atomic_fetch_sub(&b->readers, 1, __ATOMIC_SEQ_CST);
		CHECK(weft_rwlock_unlock(&b->lock) == 0);
	}
	return b;
}

static void *writes(void *argument)
{
	struct book *b = argument;

	for (int i = 0; i < 20; i++) {
		CHECK(weft_rwlock_write(&b->lock) == 0);
		CHECK(__atomic_add_fetch(&b->writers, 1, __ATOMIC_SEQ_CST) == 1);
		CHECK(!__atomic_load_n(&b->readers, __ATOMIC_SEQ_CST));
		b->written++;
		weft_task_yield();
		__atomic_fetch_sub(&b->writers, 1, __ATOMIC_SEQ_CST);
		CHECK(weft_rwlock_unlock(&b->lock) == 0);
		if (i % 5 == 0 && weft_rwlock_write_until(&b->lock, weft_now() + 1) == 0)
			CHECK(weft_rwlock_unlock(&b->lock) == 0);
	}
	return b;
}

static void *readers_and_writers(void *pass)
{
	struct book b = {0};

	CHECK(weft_rwlock_unlock(&b.lock) == -EPERM);
	WEFT_SCOPE(scope);
	CHECK(weft_rwlock_read(&b.lock) == 0);
	for (int i = 0; i < 6; i++)
		CHECK(weft_scope_spawn(&scope, reads, &b) == 0);
	CHECK(weft_scope_wait(&scope) == 0); /* the tasks read at the same time as this task */
	CHECK(weft_rwlock_unlock(&b.lock) == 0);
	CHECK(b.most && !b.lock.readers);
	{
		WEFT_SCOPE(both);
		for (int i = 0; i < 8; i++)
			CHECK(weft_scope_spawn(&both, i % 3 ? reads : writes, &b) == 0);
		CHECK(weft_scope_wait(&both) == 0);
	}
	CHECK(b.written == 60 && !b.lock.writer && !b.lock.readers && !b.lock.queue.first);
	return pass;
}

/* ---- semaphore, event, group, once, barrier, future ------------------------------------------------------------ */

struct few {
	weft_sem_t permits;
	int inside, most;
};

static void *few_at_a_time(void *argument)
{
	struct few *f = argument;
	int now;

	for (int i = 0; i < 50; i++) {
		CHECK(weft_sem_take(&f->permits) == 0);
		now = __atomic_add_fetch(&f->inside, 1, __ATOMIC_SEQ_CST);
		CHECK(now <= 3);
		weft_task_yield();
		__atomic_fetch_sub(&f->inside, 1, __ATOMIC_SEQ_CST);
		weft_sem_give(&f->permits, 1);
	}
	return f;
}

static void *semaphores(void *pass)
{
	struct few f = {WEFT_SEM(3), 0, 0};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++)
		CHECK(weft_scope_spawn(&scope, few_at_a_time, &f) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(f.permits.permits == 3);
	CHECK(weft_sem_take_until(&f.permits, 0) == 0);
	weft_sem_give(&f.permits, 1);
	return pass;
}

static weft_event_t begin;
static weft_once_t once;
static int called;

static void calls(void *unused)
{
	(void)unused;
	weft_sleep(MS);
	called++;
}

static void *starts_together(void *group)
{
	CHECK(weft_event_wait(&begin) == 0);
	CHECK(weft_once(&once, calls, NULL) == 0);
	CHECK(called == 1);
	CHECK(weft_group_done(group) == 0);
	return group;
}

static void *events_groups_once(void *pass)
{
	weft_group_t group = {0};

	begin = (weft_event_t){0};
	once = (weft_once_t){0};
	called = 0;
	CHECK(weft_group_wait(&group) == 0);
	CHECK(weft_group_done(&group) == -EINVAL);
	CHECK(weft_group_add(&group, 7) == 0);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 7; i++)
		CHECK(weft_scope_spawn(&scope, starts_together, &group) == 0);
	CHECK(weft_event_wait_until(&begin, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_group_wait_until(&group, weft_now() + MS) == -ETIMEDOUT);
	weft_event_set(&begin);
	CHECK(weft_group_wait(&group) == 0);
	CHECK(weft_scope_wait(&scope) == 0 && called == 1);
	weft_event_reset(&begin);
	CHECK(!weft_event_is_set(&begin));
	return pass;
}

/* In a once, a caller waits for another caller's call, however long it takes. */
struct slow {
	weft_once_t once;
	weft_event_t begun, goes_on;
	int called;
};

static void is_slow(void *slow)
{
	struct slow *s = slow;

	weft_event_set(&s->begun);
	CHECK(weft_event_wait(&s->goes_on) == 0);
	s->called++;
}

static void *does_slowly(void *slow)
{
	CHECK(weft_once_until(&((struct slow *)slow)->once, is_slow, slow, 0) == 0);
	return NULL;
}

static void *a_once_has_a_deadline(void *pass)
{
	struct slow s = {.called = 0};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, does_slowly, &s) == 0);
	CHECK(weft_event_wait(&s.begun) == 0);
	CHECK(weft_once_until(&s.once, is_slow, &s, 0) == -ETIMEDOUT);
	CHECK(weft_once_until(&s.once, is_slow, &s, weft_now() + MS) == -ETIMEDOUT && !s.called);
	weft_event_set(&s.goes_on);
	CHECK(weft_once(&s.once, is_slow, &s) == 0 && s.called == 1);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

/* A rate of one turn per millisecond, three in a row. Records when turn number i came. */
struct limited {
	weft_rate_t rate;
	uint64_t begun, came[20];
	unsigned count;
};

static void *keeps_to_rate(void *limited)
{
	struct limited *l = limited;

	for (int i = 0; i < 4; i++) {
		CHECK(weft_rate_wait(&l->rate) == 0);
		l->came[__atomic_fetch_add(&l->count, 1, __ATOMIC_RELAXED)] = weft_now() - l->begun;
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return (one > other) - (one < other);
}

static void *waits_for_turn(void *rate)
{
	(void)weft_rate_wait(rate);
	CHECK(!"it was cancelled");
	return NULL;
}

static void a_turn_is_given_back(void)
{
	weft_rate_t rate = WEFT_RATE(1000 * SECOND, 1);
	weft_task_t task;
	uint64_t next;

	CHECK(weft_rate_wait(&rate) == 0 && weft_rate_wait_until(&rate, 0) == -ETIMEDOUT);
	CHECK(weft_rate_wait_until(&rate, weft_now() + MS) == -ETIMEDOUT);
	next = rate.next;
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, waits_for_turn, &rate, NULL) == 0);
	while (__atomic_load_n(&rate.next, __ATOMIC_RELAXED) == next)
		CHECK(weft_task_yield() == 0);
	weft_task_cancel(&task);
	CHECK(weft_scope_wait(&scope) == 0 && rate.next == next);
}

static void *rates(void *pass)
{
	struct limited l = {.rate = WEFT_RATE(MS, 3)};

	l.begun = weft_now();
	WEFT_SCOPE(scope);
	for (int i = 0; i < 5; i++)
		CHECK(weft_scope_spawn(&scope, keeps_to_rate, &l) == 0);
	CHECK(weft_scope_wait(&scope) == 0 && l.count == 20);
	qsort(l.came, 20, sizeof *l.came, by_time);
	for (unsigned i = 0; i < 20; i++)
		CHECK(l.came[i] >= (i < 3 ? 0 : i - 2) * MS);
	a_turn_is_given_back();
	return pass;
}

struct meeting {
	weft_barrier_t barrier;
	int met, lasts;
};

static void *meets(void *argument)
{
	struct meeting *m = argument;
	int last;

	for (int i = 0; i < 20; i++) {
		__atomic_fetch_add(&m->met, 1, __ATOMIC_SEQ_CST);
		last = weft_barrier_wait(&m->barrier);
		CHECK(last >= 0 && __atomic_load_n(&m->met, __ATOMIC_SEQ_CST) >= 4 * (i + 1));
		__atomic_fetch_add(&m->lasts, last, __ATOMIC_SEQ_CST);
	}
	return m;
}

static void *barriers(void *pass)
{
	struct meeting m = {WEFT_BARRIER(4), 0, 0};

	WEFT_SCOPE(scope);
	for (int i = 0; i < 4; i++)
		CHECK(weft_scope_spawn(&scope, meets, &m) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(m.met == 80 && m.lasts == 20);
	return pass;
}

static void *sets(void *future)
{
	weft_sleep(MS);
	CHECK(weft_future_set(future, future, 0) == 0);
	CHECK(weft_future_set(future, NULL, -EIO) == -EALREADY);
	return future;
}

static void *futures(void *pass)
{
	weft_future_t future = {0}, broken = {0};
	void *value = NULL;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sets, &future) == 0);
	CHECK(weft_future_get_until(&future, &value, 0) == -ETIMEDOUT);
	CHECK(weft_future_get(&future, &value) == 0 && value == &future);
	CHECK(weft_future_set(&broken, NULL, -EIO) == 0 && weft_future_get(&broken, NULL) == -EIO);
	return pass;
}

/* ---- channels -------------------------------------------------------------------------------------------------- */

struct traffic {
	weft_chan_t *chan;
	long each, sum, count;
};

static void *sends(void *argument)
{
	struct traffic *t = argument;

	for (long i = 1; i <= t->each; i++)
		CHECK(weft_chan_send(t->chan, &i) == 0);
	return t;
}

static void *receives(void *argument)
{
	struct traffic *t = argument;
	long item;

	while (weft_chan_receive(t->chan, &item) == 0) {
		__atomic_fetch_add(&t->sum, item, __ATOMIC_RELAXED);
		__atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED);
	}
	return t;
}

static void through(size_t capacity)
{
	struct traffic t = {weft_chan_make(sizeof(long), capacity), 200, 0, 0};

	CHECK(t.chan);
	WEFT_SCOPE(receivers);
	for (int i = 0; i < 3; i++)
		CHECK(weft_scope_spawn(&receivers, receives, &t) == 0);
	{
		WEFT_SCOPE(senders);
		for (int i = 0; i < 5; i++)
			CHECK(weft_scope_spawn(&senders, sends, &t) == 0);
		CHECK(weft_scope_wait(&senders) == 0);
	}
	CHECK(weft_chan_close(t.chan) == 0 && weft_chan_close(t.chan) == -EALREADY);
	CHECK(weft_scope_wait(&receivers) == 0);
	CHECK(t.count == 1000 && t.sum == 5 * 20100);
	CHECK(weft_chan_send(t.chan, &t.sum) == -EPIPE);
	CHECK(weft_chan_free(t.chan) == 0);
}

static void *channels(void *pass)
{
	through(0);
	through(1);
	through(7);
	through(WEFT_UNBOUNDED);
	return pass;
}

enum { RECEIVERS = 20 };
static int begun;

static void *receives_one(void *chan)
{
	int item;

	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	CHECK(weft_chan_receive(chan, &item) == -EPIPE);
	return chan;
}

static void *closing_wakes(void *pass)
{
	weft_chan_t *c = weft_chan_make(sizeof(int), 2), *full = weft_chan_make(0, 1);
	int item = 1;

	begun = 0;
	CHECK(weft_chan_receive_until(c, &item, 0) == -ETIMEDOUT);
	CHECK(weft_chan_receive_until(c, &item, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_chan_send(full, NULL) == 0 && weft_chan_send_until(full, NULL, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_chan_count(full) == 1);
	WEFT_SCOPE(scope);
	for (int i = 0; i < RECEIVERS; i++)
		CHECK(weft_scope_spawn(&scope, receives_one, c) == 0);
	/* There are more tasks than workers: when all have begun, some wait. */
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < RECEIVERS)
		CHECK(weft_task_yield() == 0);
	CHECK(weft_sleep(MS) == 0); /* the simulator may switch between the count and the wait */
	CHECK(weft_chan_free(c) == -EBUSY);
	CHECK(weft_chan_close(c) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_chan_free(c) == 0 && weft_chan_free(full) == 0 && weft_chan_free(NULL) == 0);
	return pass;
}

/* If a deadline passes or a cancellation arrives during a receive, the item is received, or is still in the channel. */
struct racing {
	weft_chan_t *chan;
	long sent, got;
	bool done;
};

static void *receives_briefly(void *argument)
{
	struct racing *r = argument;
	long item;

	while (!__atomic_load_n(&r->done, __ATOMIC_RELAXED))
		if (weft_chan_receive_until(r->chan, &item, weft_now() + 20000) == 0)
			__atomic_fetch_add(&r->got, item, __ATOMIC_RELAXED);
	return r;
}

static void *sends_briefly(void *argument)
{
	struct racing *r = argument;

	for (long i = 1; i <= 300; i++)
		if (weft_chan_send_until(r->chan, &i, weft_now() + 10000) == 0)
			__atomic_fetch_add(&r->sent, i, __ATOMIC_RELAXED);
	return r;
}

static void *nothing_is_lost(void *pass)
{
	struct racing r = {weft_chan_make(sizeof(long), 0), 0, 0, false};

	WEFT_SCOPE(receivers);
	for (int i = 0; i < 3; i++)
		CHECK(weft_scope_spawn(&receivers, receives_briefly, &r) == 0);
	{
		WEFT_SCOPE(senders);
		for (int i = 0; i < 3; i++)
			CHECK(weft_scope_spawn(&senders, sends_briefly, &r) == 0);
		CHECK(weft_scope_wait(&senders) == 0);
	}
	__atomic_store_n(&r.done, true, __ATOMIC_RELAXED);
	CHECK(weft_scope_wait(&receivers) == 0);
	CHECK(r.sent == r.got);
	CHECK(weft_chan_free(r.chan) == 0);
	return pass;
}

/* ---- select ---------------------------------------------------------------------------------------------------- */

struct fan {
	weft_chan_t *in[4], *out;
};

static void *merges(void *argument)
{
	struct fan *f = argument;
	weft_case_t cases[4];
	long item, open = 4;
	int i;

	for (i = 0; i < 4; i++)
		cases[i] = (weft_case_t){.chan = f->in[i], .receive = &item};
	while (open) {
		i = weft_select(cases, 4);
		CHECK(i >= 0 && i < 4);
		if (cases[i].status == -EPIPE) {
			cases[i].chan = NULL;
			open--;
		} else {
			CHECK(cases[i].status == 0 && weft_chan_send(f->out, &item) == 0);
		}
	}
	CHECK(weft_chan_close(f->out) == 0);
	return f;
}

static void *sends_and_closes(void *chan)
{
	for (long i = 1; i <= 100; i++)
		CHECK(weft_chan_send(chan, &i) == 0);
	CHECK(weft_chan_close(chan) == 0);
	return chan;
}

static void *selects_merge(void *pass)
{
	struct fan f;
	long sum = 0, item;
	int i;

	f.out = weft_chan_make(sizeof(long), 1);
	WEFT_SCOPE(scope);
	for (i = 0; i < 4; i++) {
		f.in[i] = weft_chan_make(sizeof(long), (size_t)i);
		CHECK(weft_scope_spawn(&scope, sends_and_closes, f.in[i]) == 0);
	}
	CHECK(weft_scope_spawn(&scope, merges, &f) == 0);
	while (weft_chan_receive(f.out, &item) == 0)
		sum += item;
	CHECK(weft_scope_wait(&scope) == 0 && sum == 4 * 5050);
	for (i = 0; i < 4; i++)
		CHECK(weft_chan_free(f.in[i]) == 0);
	CHECK(weft_chan_free(f.out) == 0);
	return pass;
}

/* Both sides select, over both channels and both directions: in every exchange the two sides agree. */
struct both {
	weft_chan_t *a, *b;
	long sent, got;
	int left;
};

static void *exchanges(void *argument)
{
	struct both *t = argument;
	weft_case_t cases[4];
	long item = 1, got;
	int i;

	while (__atomic_load_n(&t->left, __ATOMIC_RELAXED) > 0) {
		cases[0] = (weft_case_t){.chan = t->a, .send = &item};
		cases[1] = (weft_case_t){.chan = t->b, .receive = &got};
		cases[2] = (weft_case_t){.chan = t->b, .send = &item};
		cases[3] = (weft_case_t){.chan = t->a, .receive = &got};
		i = weft_select_until(cases, 4, weft_now() + MS);
		if (i < 0)
			continue;
		CHECK(cases[i].status == 0);
		if (cases[i].send)
			__atomic_fetch_add(&t->sent, item, __ATOMIC_RELAXED);
		else
			__atomic_fetch_add(&t->got, got, __ATOMIC_RELAXED);
		item = item % 1000 + 1;
		__atomic_fetch_sub(&t->left, 1, __ATOMIC_RELAXED);
	}
	return t;
}

static void *selects_meet(void *pass)
{
	struct both t = {weft_chan_make(sizeof(long), 0), weft_chan_make(sizeof(long), 0), 0, 0, 1000};
	weft_case_t none = {.chan = NULL};

	CHECK(weft_select(&none, 0) == -EINVAL && weft_select(&none, WEFT_CASES + 1) == -EINVAL);
	CHECK(weft_select_until(&none, 1, 0) == -ETIMEDOUT &&
	      weft_select_until(&none, 1, weft_now() + MS) == -ETIMEDOUT);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 6; i++)
		CHECK(weft_scope_spawn(&scope, exchanges, &t) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(t.sent == t.got && t.sent);
	CHECK(weft_chan_free(t.a) == 0 && weft_chan_free(t.b) == 0);
	return pass;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void *thread_echoes(void *argument)
{
	weft_chan_t **chans = argument;
	long item;

	CHECK(weft_spawn_detached(sends, NULL, NULL) == -EPERM);
	while (weft_chan_receive(chans[0], &item) == 0)
		CHECK(weft_chan_send(chans[1], &item) == 0);
	CHECK(weft_chan_close(chans[1]) == 0);
	return argument;
}

static void *threads_take_part(void *pass)
{
	weft_chan_t *chans[2] = {weft_chan_make(sizeof(long), 0), weft_chan_make(sizeof(long), 3)};
	pthread_t thread;
	long i, item;

	CHECK(pthread_create(&thread, NULL, thread_echoes, chans) == 0);
	for (i = 0; i < 200; i++)
		CHECK(weft_chan_send(chans[0], &i) == 0 && weft_chan_receive(chans[1], &item) == 0 && item == i);
	CHECK(weft_chan_close(chans[0]) == 0 && weft_chan_receive(chans[1], &item) == -EPIPE);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(weft_chan_free(chans[0]) == 0 && weft_chan_free(chans[1]) == 0);
	return pass;
}

/* ---- the deadline 0 ---------------------------------------------------------------------------------------------- */

static void *sleeps(void *unused)
{
	weft_sleep(SECOND);
	return unused;
}

struct locks {
	weft_mutex_t mutex;
	weft_rwlock_t rwlock;
	weft_event_t held;
};

static void *locks_all(void *locks)
{
	struct locks *l = locks;

	CHECK(weft_mutex_lock(&l->mutex) == 0 && weft_rwlock_write(&l->rwlock) == 0);
	weft_event_set(&l->held);
	weft_sleep(SECOND);
	CHECK(weft_mutex_unlock(&l->mutex) == 0 && weft_rwlock_unlock(&l->rwlock) == 0);
	return NULL;
}

/* These calls do not wait, so a cancellation does not end them. */
static void *nothing_waits_at_deadline_0(void *pass)
{
	struct locks locks = {0};
	weft_sem_t sem = WEFT_SEM(0);
	weft_barrier_t barrier = WEFT_BARRIER(2);
	weft_rate_t rate = WEFT_RATE(SECOND, 1);
	weft_group_t group = {0};
	weft_future_t future = {0};
	weft_event_t event = {0};
	weft_cond_t cond = {0};
	weft_mutex_t mine = {0};
	weft_case_t cases[] = {{.event = &event}, {.sem = &sem}};
	weft_task_t task;
	uint64_t begun;

	WEFT_SCOPE(others);
	CHECK(weft_scope_spawn(&others, locks_all, &locks) == 0 &&
	      weft_scope_spawn_with(&others, &task, sleeps, NULL, NULL) == 0);
	CHECK(weft_event_wait(&locks.held) == 0);
	WEFT_SCOPE(cancelled);
	weft_scope_cancel(&cancelled, -EIO);
	begun = weft_now();
	CHECK(weft_group_add(&group, 1) == 0 && weft_rate_wait_until(&rate, 0) == 0 && weft_mutex_try_lock(&mine));
	CHECK(weft_mutex_lock_until(&locks.mutex, 0) == -ETIMEDOUT);
	CHECK(weft_rwlock_read_until(&locks.rwlock, 0) == -ETIMEDOUT);
	CHECK(weft_rwlock_write_until(&locks.rwlock, 0) == -ETIMEDOUT);
	CHECK(weft_sem_take_until(&sem, 0) == -ETIMEDOUT && weft_barrier_wait_until(&barrier, 0) == -ETIMEDOUT);
	CHECK(weft_rate_wait_until(&rate, 0) == -ETIMEDOUT && weft_group_wait_until(&group, 0) == -ETIMEDOUT);
	CHECK(weft_future_get_until(&future, NULL, 0) == -ETIMEDOUT && weft_event_wait_until(&event, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(cases, 2, 0) == -ETIMEDOUT && weft_select_fair_until(cases, 2, 0) == -ETIMEDOUT);
	CHECK(weft_cond_wait_until(&cond, &mine, 0) == -ETIMEDOUT && weft_mutex_unlock(&mine) == 0);
	CHECK(weft_join_until(&task, NULL, 0) == -ETIMEDOUT);
	CHECK(weft_now() - begun < SECOND && weft_scope_wait(&cancelled) == -EIO);
	CHECK(weft_sleep(MS) == 0 && weft_join_until(&task, NULL, 0) == -ETIMEDOUT);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, NULL) == -ECANCELED && weft_join_until(&task, NULL, 0) == -ECANCELED);
	return pass;
}

static const struct test tests[] = {
    T(a_mutex_excludes),
    T(a_mutex_refuses),
    T(conditions),
    T(cancelled_waits_give_back),
    T(readers_and_writers),
    T(semaphores),
    T(barriers),
    T(events_groups_once),
    T(a_once_has_a_deadline),
    T(rates),
    T(futures),
    T(channels),
    T(closing_wakes),
    T(nothing_is_lost),
    T(selects_merge),
    T(selects_meet),
    T(nothing_waits_at_deadline_0),
};

static const struct test with_threads[] = {T(threads_take_part)};

int main(int argc, char **argv)
{
	if (run_tests(tests, sizeof tests / sizeof *tests, argc, argv))
		return 1;
	return argc > 2 ? 0 : run_tests(with_threads, 1, argc, argv);
}
