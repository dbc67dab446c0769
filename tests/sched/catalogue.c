/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A catalogue of mistakes in concurrent programs, for the simulator. Each entry is a function with a mistake, which
 * some orders of its tasks reveal. If `right` is set, the function is correct.
 *
 *   PROGRAM find SEEDS BASES [NAME]   how many seeds find each mistake, from each of BASES first seeds on: a table, and
 *                                     a failure if an entry takes more than SEEDS, or the median more than 30
 *   PROGRAM right SEEDS [NAME]        no seed fails if the functions are correct
 */
#include "check.h"

#include <assert.h>
#include <poll.h>
#include <sys/wait.h>
#include <weft/io.h>

static bool right;

/* A word that tasks share. Like an atomic access, each access is one operation, at which the simulator may
 * switch tasks. */
struct cell {
	long value;
};

/* The cheapest operation of a task, at which the simulator may switch. */
static void operation(void)
{
	(void)weft_task_is_cancelled();
}

static long get(struct cell *c)
{
	operation();
	return c->value;
}

static void put(struct cell *c, long value)
{
	operation();
	c->value = value;
}

/* Returns the previous value. */
static long add(struct cell *c, long more)
{
	operation();
	c->value += more;
	return c->value - more;
}

static bool swap(struct cell *c, long expected, long value)
{
	operation();
	if (c->value != expected)
		return false;
	c->value = value;
	return true;
}

/* Entries share these objects, which are zero when an entry begins. */
static struct {
	struct cell a, b, c;
	struct cell cells[2];
	weft_mutex_t mutex, locks[3];
	weft_cond_t cond;
	weft_rwlock_t rwlock;
	weft_sem_t sem;
	weft_event_t event, done;
	weft_group_t group;
	weft_chan_t *chan;
	long number, sum, count, inside;
	bool flag;
	int fds[2];
	struct node {
		struct node *next;
		struct cell uses;
		bool valid;
	} nodes[4], *node;
} s;

static void start(weft_scope_t *scope, weft_fn_t *fn, void *arg)
{
	CHECK(weft_scope_spawn(scope, fn, arg) == 0);
}

/* Runs `tasks` tasks, passes each its number, and waits for them. */
static void together(weft_fn_t *fn, long tasks)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	for (long i = 0; i < tasks; i++)
		start(&scope, fn, (void *)i);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void both(weft_fn_t *fn, weft_fn_t *other)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	start(&scope, fn, NULL);
	start(&scope, other, NULL);
	CHECK(weft_scope_wait(&scope) == 0);
}

/* ---- atomicity -------------------------------------------------------------------------------------------------- */

static void *counts(void *unused)
{
	long before;

	weft_mutex_lock(&s.mutex);
	before = s.number;
	if (!right) {
		weft_mutex_unlock(&s.mutex);
		weft_mutex_lock(&s.mutex);
	}
	s.number = before + 1;
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void lost_update(void)
{
	together(counts, 2);
	assert(s.number == 2);
}

static void *claims(void *unused)
{
	bool is_free;

	weft_mutex_lock(&s.mutex);
	is_free = !s.number;
	if (is_free && right)
		s.number++;
	weft_mutex_unlock(&s.mutex);
	if (is_free && !right) {
		weft_mutex_lock(&s.mutex);
		s.number++;
		weft_mutex_unlock(&s.mutex);
	}
	return unused;
}

static void check_then_act(void)
{
	together(claims, 2);
	assert(s.number == 1);
}

/* Two accounts, each with a lock of its own. */
static void *transfers(void *unused)
{
	weft_mutex_lock(&s.mutex);
	add(&s.a, -10);
	add(&s.b, 10);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void *audits(void *unused)
{
	if (right)
		weft_mutex_lock(&s.mutex);
	s.sum = get(&s.a) + get(&s.b);
	if (right)
		weft_mutex_unlock(&s.mutex);
	return unused;
}

static void audit_of_two_locks(void)
{
	s.a.value = 100;
	both(transfers, audits);
	assert(s.sum == 100);
}

static void *writes_halves(void *unused)
{
	add(&s.c, 1);
	put(&s.a, 7);
	put(&s.b, 7);
	add(&s.c, 1);
	return unused;
}

/* A sequence lock. The reader must check the sequence number even if it was even, which says that no writer
 * is active. */
static void *reads_halves(void *unused)
{
	long before, a, b;

	do {
		before = get(&s.c);
		a = get(&s.a);
		b = get(&s.b);
	} while (before % 2 || (right && get(&s.c) != before));
	assert(a == b);
	return unused;
}

static void torn_read(void)
{
	both(writes_halves, reads_halves);
}

/* A list of free nodes without a lock: the head is exchanged if it has not changed. */
static long pop(void)
{
	long first, next;

	do {
		first = get(&s.a);
		if (!first)
			return 0;
		next = s.nodes[first % 10].next ? s.nodes[first % 10].next - s.nodes : 0;
		/* A correct head holds a version beside the node's number. */
		if (right && next)
			next += first / 10 * 10 + 10;
	} while (!swap(&s.a, first, next));
	assert(s.nodes[first % 10].valid);
	s.nodes[first % 10].valid = false;
	return first % 10;
}

static void push(long number)
{
	long first;

	do {
		first = get(&s.a);
		s.nodes[number].valid = true;
		s.nodes[number].next = first ? &s.nodes[first % 10] : NULL;
	} while (!swap(&s.a, first, right ? s.number += 1000, number + s.number : number));
}

static void *takes_two(void *unused)
{
	for (int round = 0; round < 4; round++) {
		long a = pop(), b = pop();

		if (a)
			push(a);
		if (b)
			push(b);
	}
	return unused;
}

static void aba(void)
{
	for (long i = 3; i; i--)
		push(i);
	together(takes_two, 2);
}

static void *takes_reference(void *unused)
{
	long count;

	if (right) {
		for (count = get(&s.a); count && !swap(&s.a, count, count + 1); count = get(&s.a))
			;
	} else {
		count = get(&s.a);
		if (count)
			add(&s.a, 1);
	}
	if (count)
		assert(!s.flag);
	return unused;
}

static void *drops_reference(void *unused)
{
	if (add(&s.a, -1) == 1)
		s.flag = true; /* the object is freed */
	return unused;
}

static void reference_from_zero(void)
{
	s.a.value = 1;
	both(drops_reference, takes_reference);
}

/* Each task checks that the other task is not inside, and announces that it is inside. */
static void *enters(void *i)
{
	struct cell *mine = &s.cells[(long)i], *other = &s.cells[1 - (long)i];

	if (right) {
		put(mine, 1);
		if (get(other))
			return NULL;
	} else {
		if (get(other))
			return NULL;
		put(mine, 1);
	}
	add(&s.a, 1);
	assert(get(&s.a) == 1);
	add(&s.a, -1);
	put(mine, 0);
	return NULL;
}

static void flags_for_a_lock(void)
{
	together(enters, 2);
}

static void *closes_descriptor(void *unused)
{
	if (right ? swap(&s.a, 1, 0) : get(&s.a) == 1) {
		add(&s.b, 1); /* closes the descriptor: the next open gets the same number */
		put(&s.a, 0);
	}
	return unused;
}

static void closed_twice(void)
{
	s.a.value = 1;
	together(closes_descriptor, 2);
	assert(s.b.value == 1);
}

/* ---- initialization --------------------------------------------------------------------------------------------- */

static void *publishes(void *unused)
{
	if (right)
		put(&s.b, 42);
	put(&s.a, 1);
	if (!right)
		put(&s.b, 42);
	return unused;
}

static void *uses_published(void *unused)
{
	if (get(&s.a))
		assert(get(&s.b) == 42);
	return unused;
}

static void published_before_init(void)
{
	both(publishes, uses_published);
}

static void *uses_once(void *unused)
{
	if (!get(&s.a)) {
		weft_mutex_lock(&s.mutex);
		if (!get(&s.a)) {
			if (right)
				put(&s.b, 42);
			put(&s.a, 1);
			if (!right)
				put(&s.b, 42);
		}
		weft_mutex_unlock(&s.mutex);
	}
	assert(get(&s.b) == 42);
	return unused;
}

static void double_checked(void)
{
	together(uses_once, 3);
}

/* A parent starts a child before the child's argument is complete. */
static void *uses_argument(void *unused)
{
	assert(s.number == 42);
	return unused;
}

static void started_before_init(void)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	if (right)
		s.number = 42;
	start(&scope, uses_argument, NULL);
	s.number = 42;
	CHECK(weft_scope_wait(&scope) == 0);
}

/* The first task that needs a key loads it, and the other tasks wait for it. */
static void *gets_key(void *unused)
{
	if (right) {
		if (swap(&s.a, 0, 1)) {
			s.count++;
			weft_event_set(&s.event);
		}
	} else if (!get(&s.a)) {
		s.count++;
		put(&s.a, 1);
		weft_event_set(&s.event);
	}
	(void)weft_event_wait(&s.event);
	return unused;
}

static void single_flight(void)
{
	together(gets_key, 3);
	assert(s.count == 1);
}

/* ---- conditions ------------------------------------------------------------------------------------------------- */

static void *waits_for_flag(void *unused)
{
	bool ready;

	weft_mutex_lock(&s.mutex);
	ready = s.flag;
	if (!right) { /* checks the flag, and waits in a second critical section */
		weft_mutex_unlock(&s.mutex);
		weft_mutex_lock(&s.mutex);
		if (!ready)
			weft_cond_wait(&s.cond, &s.mutex);
	}
	while (!s.flag)
		weft_cond_wait(&s.cond, &s.mutex);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void *sets_flag(void *unused)
{
	weft_mutex_lock(&s.mutex);
	s.flag = true;
	weft_cond_signal(&s.cond);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void lost_wakeup(void)
{
	both(waits_for_flag, sets_flag);
}

static void *takes_item(void *unused)
{
	weft_mutex_lock(&s.mutex);
	if (right)
		while (!s.count)
			weft_cond_wait(&s.cond, &s.mutex);
	else if (!s.count)
		weft_cond_wait(&s.cond, &s.mutex);
	assert(s.count > 0);
	s.count--;
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void *adds_item(void *unused)
{
	weft_mutex_lock(&s.mutex);
	s.count++;
	weft_cond_signal(&s.cond);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void *adds_or_takes(void *i)
{
	return (long)i % 2 ? adds_item(NULL) : takes_item(NULL);
}

static void if_for_while(void)
{
	together(adds_or_takes, 4);
}

/* Producers and consumers of a buffer with one place wait for one condition, and a signal wakes only one task. */
static void *moves_items(void *i)
{
	long produces = (long)i % 2;

	weft_mutex_lock(&s.mutex);
	while (s.count == produces)
		weft_cond_wait(&s.cond, &s.mutex);
	s.count = produces;
	if (right)
		weft_cond_broadcast(&s.cond);
	else
		weft_cond_signal(&s.cond);
	weft_mutex_unlock(&s.mutex);
	return NULL;
}

static void signal_for_broadcast(void)
{
	together(moves_items, 6);
}

/* A barrier whose count the last leaving task resets: a fast task enters again before the reset. */
static void pass_barrier(void)
{
	long round;

	weft_mutex_lock(&s.mutex);
	round = s.number;
	if (++s.count == 2) {
		s.number++;
		s.count = 0;
		s.flag = true;
		weft_cond_broadcast(&s.cond);
	} else if (right) {
		while (s.number == round)
			weft_cond_wait(&s.cond, &s.mutex);
	} else {
		while (!s.flag)
			weft_cond_wait(&s.cond, &s.mutex);
		s.flag = false;
	}
	weft_mutex_unlock(&s.mutex);
}

static void *goes_in_step(void *i)
{
	for (long round = 1; round <= 2; round++) {
		put(&s.cells[(long)i], round);
		pass_barrier();
		assert(get(&s.cells[1 - (long)i]) >= round);
	}
	return NULL;
}

static void barrier_reuse(void)
{
	together(goes_in_step, 2);
}

/* An event is reset after the task has looked for work. A set between these two steps is lost. */
static void *works_when_told(void *unused)
{
	for (long done = 0; done < 2;) {
		(void)weft_event_wait(&s.event);
		if (right)
			weft_event_reset(&s.event);
		done += get(&s.a) > done;
		if (!right)
			weft_event_reset(&s.event);
		if (right)
			done = get(&s.a);
	}
	return unused;
}

static void *tells_twice(void *unused)
{
	add(&s.a, 1);
	weft_event_set(&s.event);
	add(&s.a, 1);
	weft_event_set(&s.event);
	return unused;
}

static void reset_after_look(void)
{
	both(works_when_told, tells_twice);
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

static void *locks_two(void *i)
{
	weft_mutex_t *one = &s.locks[right ? 0 : (long)i], *two = &s.locks[right ? 1 : 1 - (long)i];

	weft_mutex_lock(one);
	weft_mutex_lock(two);
	weft_mutex_unlock(two);
	weft_mutex_unlock(one);
	return NULL;
}

static void lock_order(void)
{
	together(locks_two, 2);
}

static void *dines(void *i)
{
	long left = (long)i, other = (left + 1) % 3;
	long first = right && other < left ? other : left, second = left + other - first;

	weft_mutex_lock(&s.locks[first]);
	weft_mutex_lock(&s.locks[second]);
	weft_mutex_unlock(&s.locks[second]);
	weft_mutex_unlock(&s.locks[first]);
	return NULL;
}

static void philosophers(void)
{
	together(dines, 3);
}

/* Readers keep their lock while they wait until the other readers leave. */
static void *upgrades(void *unused)
{
	weft_mutex_lock(&s.mutex);
	s.inside++;
	weft_mutex_unlock(&s.mutex);
	weft_mutex_lock(&s.mutex);
	if (right)
		s.inside--;
	weft_cond_broadcast(&s.cond);
	while (s.inside > !right)
		weft_cond_wait(&s.cond, &s.mutex);
	if (!right)
		s.inside--;
	weft_cond_broadcast(&s.cond);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void reader_upgrade(void)
{
	together(upgrades, 2);
}

/* The error path returns the semaphore's permit, and its caller returns it again. */
static void *works_by_permit(void *i)
{
	(void)weft_sem_take(&s.sem);
	assert(add(&s.a, 1) == 0);
	add(&s.a, -1);
	if (i && !right)
		(void)weft_sem_give(&s.sem, 1);
	(void)weft_sem_give(&s.sem, 1);
	return NULL;
}

static void double_release(void)
{
	(void)weft_sem_give(&s.sem, 1);
	together(works_by_permit, 4);
}

/* A return between taking and giving forgets the permit, if another task was faster. */
static void *takes_permit(void *unused)
{
	(void)weft_sem_take(&s.sem);
	if (get(&s.a) && !right)
		return unused;
	put(&s.a, 1);
	weft_task_yield();
	put(&s.a, 0);
	(void)weft_sem_give(&s.sem, 1);
	return unused;
}

static void leaked_permit(void)
{
	(void)weft_sem_give(&s.sem, 2);
	together(takes_permit, 4);
	assert(weft_sem_take_until(&s.sem, 0) == 0 && weft_sem_take_until(&s.sem, 0) == 0);
}

/* Priority inversion: the medium task keeps the only processor until the high task has ended, and the high task waits
 * for a lock that the low task holds. */
static void *has_priority(void *i)
{
	if ((long)i == 0) { /* low */
		weft_mutex_lock(&s.mutex);
		(void)weft_sem_take(&s.sem);
		(void)weft_sem_give(&s.sem, 1);
		weft_mutex_unlock(&s.mutex);
	} else if ((long)i == 1) { /* medium */
		(void)weft_sem_take(&s.sem);
		if (!right)
			(void)weft_event_wait(&s.done);
		(void)weft_sem_give(&s.sem, 1);
	} else { /* high */
		weft_mutex_lock(&s.mutex);
		weft_mutex_unlock(&s.mutex);
		weft_event_set(&s.done);
	}
	return NULL;
}

static void priority_inversion(void)
{
	(void)weft_sem_give(&s.sem, 1);
	together(has_priority, 3);
}

/* A lock that lets readers pass a waiting writer starves the writer. */
static void *reads_on(void *unused)
{
	for (int i = 0; i < 20 && !get(&s.c); i++) {
		weft_mutex_lock(&s.mutex);
		while (right && s.flag)
			weft_cond_wait(&s.cond, &s.mutex);
		s.inside++;
		s.number += s.flag; /* counts a reader that has passed the writer */
		weft_mutex_unlock(&s.mutex);
		weft_task_yield();
		weft_mutex_lock(&s.mutex);
		s.inside--;
		weft_cond_broadcast(&s.cond);
		weft_mutex_unlock(&s.mutex);
	}
	return unused;
}

static void *writes_once(void *unused)
{
	weft_mutex_lock(&s.mutex);
	s.flag = true;
	while (s.inside)
		weft_cond_wait(&s.cond, &s.mutex);
	s.flag = false;
	weft_cond_broadcast(&s.cond);
	weft_mutex_unlock(&s.mutex);
	put(&s.c, 1);
	assert(s.number < 8);
	return unused;
}

static void *reads_or_writes(void *i)
{
	return i ? reads_on(NULL) : writes_once(NULL);
}

static void starved_writer(void)
{
	together(reads_or_writes, 3);
}

/* Livelock: two tasks each take a lock, try the other lock, and release their own lock if that fails. */
static void *backs_off(void *i)
{
	struct cell *one = &s.cells[right ? 0 : (long)i], *two = &s.cells[right ? 1 : 1 - (long)i];

	for (;;) {
		while (!swap(one, 0, 1))
			weft_task_yield();
		weft_task_yield();
		if (swap(two, 0, 1))
			break;
		weft_task_yield();
		put(one, 0);
	}
	put(two, 0);
	put(one, 0);
	return NULL;
}

static void polite_livelock(void)
{
	together(backs_off, 2);
}

/* ---- channels, scopes, time ------------------------------------------------------------------------------------- */

/* A received item is not stored before the next wait. If the task is cancelled there, the item is lost. */
static void *stores_items(void *unused)
{
	long item;

	while (weft_chan_receive(s.chan, &item) == 0) {
		if (right)
			weft_shield_begin();
		weft_mutex_lock(&s.mutex);
		s.sum += item;
		weft_mutex_unlock(&s.mutex);
		if (right)
			weft_shield_end();
	}
	return unused;
}

static void *holds_the_lock(void *unused)
{
	weft_mutex_lock(&s.mutex);
	weft_task_yield();
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void cancel_before_store(void)
{
	weft_scope_t scope, other;
	long item = 5, left = 0;

	s.chan = weft_chan_make(sizeof item, 1);
	(void)weft_chan_send(s.chan, &item);
	weft_scope_open(&other, WEFT_NEVER);
	weft_scope_open(&scope, WEFT_NEVER);
	start(&other, holds_the_lock, NULL);
	start(&scope, stores_items, NULL);
	weft_task_yield();
	weft_scope_cancel(&scope, -ECANCELED);
	(void)weft_scope_wait(&scope);
	(void)weft_scope_wait(&other);
	if (weft_chan_receive_until(s.chan, &left, 0))
		left = 0;
	assert(s.sum + left == 5);
	(void)weft_chan_free(s.chan);
}

/* A sender asks whether the channel is closed, and then assumes that its item was sent. */
static void *sends_if_open(void *unused)
{
	long item = 1;
	bool sent = right || !get(&s.a);

	if (sent && weft_chan_send(s.chan, &item) && right)
		sent = false;
	s.count += sent;
	return unused;
}

static void *closes(void *unused)
{
	put(&s.a, 1);
	weft_chan_close(s.chan);
	return unused;
}

static void send_after_close(void)
{
	long item, received = 0;

	s.chan = weft_chan_make(sizeof item, 4);
	both(sends_if_open, closes);
	while (!weft_chan_receive(s.chan, &item))
		received++;
	assert(received == s.count);
	(void)weft_chan_free(s.chan);
}

/* The request has timed out. When the answer is written, its place belongs to another request. */
static void *answers(void *unused)
{
	for (int i = 0; i < 16; i++)
		weft_task_yield();
	if (right ? swap(&s.a, 1, 2) : get(&s.a) == 1)
		put(&s.b, 1);
	weft_event_set(&s.event);
	return unused;
}

static void *asks(void *unused)
{
	int error;

	put(&s.a, 1);
	error = weft_event_wait_until(&s.event, weft_now() + MS);
	if (error && (!right || swap(&s.a, 1, 0)))
		put(&s.a, 3); /* the place now belongs to request 3 */
	if (get(&s.a) == 3) {
		weft_task_yield();
		weft_task_yield();
		assert(get(&s.b) == 0);
	}
	return unused;
}

static void late_answer(void)
{
	both(asks, answers);
}

/* A wait that times out although the event has already happened. */
static void *sets_late(void *unused)
{
	weft_sleep(10 * MS);
	weft_mutex_lock(&s.mutex);
	s.flag = true;
	weft_cond_signal(&s.cond);
	weft_mutex_unlock(&s.mutex);
	put(&s.a, 1);
	return unused;
}

static void *waits_until(void *unused)
{
	uint64_t until = weft_now() + 10 * MS;
	bool told = true, failed = false;

	weft_mutex_lock(&s.mutex);
	while (!s.flag && !failed)
		failed = weft_cond_wait_until(&s.cond, &s.mutex, until) == -ETIMEDOUT;
	if (failed)
		told = right && s.flag;
	assert(!s.flag || told);
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void timed_out_and_true(void)
{
	both(waits_until, sets_late);
}

/* After a time-out the sender of the answer waits for ever. */
static void *sends_answer(void *unused)
{
	long answer = 1;

	weft_sleep(10 * MS);
	(void)weft_chan_send(s.chan, &answer);
	return unused;
}

static void *asks_with_timeout(void *unused)
{
	long answer;

	(void)!weft_chan_receive_until(s.chan, &answer, weft_now() + 10 * MS);
	return unused;
}

static void leaked_sender(void)
{
	s.chan = weft_chan_make(sizeof(long), right);
	both(asks_with_timeout, sends_answer);
	(void)weft_chan_free(s.chan);
}

/* A task adds itself to a group that another task already waits for. */
static void *joins_group(void *unused)
{
	if (!right)
		(void)weft_group_add(&s.group, 1);
	add(&s.a, 1);
	(void)weft_group_add(&s.group, -1);
	return unused;
}

static void group_counted_late(void)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	for (int i = 0; i < 2; i++) {
		if (right)
			(void)weft_group_add(&s.group, 1);
		start(&scope, joins_group, NULL);
	}
	weft_task_yield();
	(void)weft_group_wait(&s.group);
	assert(get(&s.a) == 2);
	CHECK(weft_scope_wait(&scope) == 0);
}

/* The result is read before the task has been joined. */
static void *computes(void *unused)
{
	put(&s.a, 7);
	return unused;
}

static void forgotten_join(void)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	start(&scope, computes, NULL);
	if (right)
		weft_scope_wait(&scope);
	else
		weft_task_yield();
	assert(get(&s.a) == 7);
	CHECK(weft_scope_wait(&scope) == 0);
}

/* A worker finds no work left, while another worker is about to add two more parts of its work. */
static void *works(void *unused)
{
	add(&s.b, 1);
	if (right)
		add(&s.a, 2);
	add(&s.a, -1);
	if (!right)
		add(&s.a, 2);
	for (int part = 0; part < 2; part++) {
		add(&s.b, 1);
		add(&s.a, -1);
	}
	return unused;
}

static void *waits_for_work(void *unused)
{
	while (get(&s.a))
		weft_task_yield();
	assert(get(&s.b) == 3);
	return unused;
}

static void idle_too_early(void)
{
	s.a.value = 1;
	both(works, waits_for_work);
}

/* A descriptor with one byte is readable for two tasks, and only one of them gets the byte. */
static void *reads_if_readable(void *unused)
{
	char byte;

	if (right)
		(void)weft_read_until(s.fds[0], &byte, 1, 0);
	else if (weft_poll_until(s.fds[0], POLLIN, 0) > 0)
		(void)weft_read(s.fds[0], &byte, 1);
	return unused;
}

static void readable_for_two(void)
{
	assert(weft_pipe(s.fds) == 0 && weft_write(s.fds[1], "", 1) == 1);
	together(reads_if_readable, 2);
	(void)weft_close(s.fds[0]);
	(void)weft_close(s.fds[1]);
}

/* A write into a pipe with room does not suspend the task. */
static void *numbers_its_lines(void *unused)
{
	long number = s.number;

	if (right)
		s.number = number + 1;
	assert(weft_write(s.fds[1], "", 1) == 1);
	if (!right)
		s.number = number + 1;
	return unused;
}

static void update_across_write(void)
{
	assert(weft_pipe(s.fds) == 0);
	together(numbers_its_lines, 2);
	assert(s.number == 2);
	(void)weft_close(s.fds[0]);
	(void)weft_close(s.fds[1]);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* A writer replaces a version and frees it without waiting for its readers. */
static void *reads_version(void *unused)
{
	struct node *n;

	if (right)
		weft_rwlock_read(&s.rwlock);
	n = &s.nodes[get(&s.a)];
	get(&n->uses);
	assert(n->valid);
	if (right)
		weft_rwlock_unlock(&s.rwlock);
	return unused;
}

static void *replaces_version(void *unused)
{
	long old;

	s.nodes[1].valid = true;
	old = get(&s.a);
	put(&s.a, 1);
	if (right)
		weft_rwlock_write(&s.rwlock); /* waits for a grace period */
	s.nodes[old].valid = false;
	if (right)
		weft_rwlock_unlock(&s.rwlock);
	return unused;
}

static void freed_without_grace(void)
{
	s.nodes[0].valid = true;
	both(reads_version, replaces_version);
}

/* A walk releases the lock of its list while it works on each element. */
static void *walks(void *unused)
{
	struct node *n, *next;

	weft_mutex_lock(&s.mutex);
	for (n = s.node; n; n = next) {
		next = n->next;
		if (!right)
			weft_mutex_unlock(&s.mutex);
		get(&s.b);
		if (!right)
			weft_mutex_lock(&s.mutex);
		assert(!next || next->valid);
	}
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void *removes(void *unused)
{
	weft_mutex_lock(&s.mutex);
	s.nodes[0].next = s.nodes[1].next;
	s.nodes[1].valid = false;
	weft_mutex_unlock(&s.mutex);
	return unused;
}

static void removed_in_a_walk(void)
{
	s.node = s.nodes;
	for (int i = 0; i < 3; i++) {
		s.nodes[i].valid = true;
		s.nodes[i].next = i < 2 ? &s.nodes[i + 1] : NULL;
	}
	both(walks, removes);
}

/* A user drops its reference, and then reads the object again. */
static void *leaves(void *unused)
{
	bool last;

	if (right)
		get(&s.b);
	last = add(&s.a, -1) == 1;
	if (!right) {
		get(&s.b);
		assert(!s.flag);
	}
	if (last)
		s.flag = true;
	return unused;
}

static void freed_under_a_user(void)
{
	s.a.value = 2;
	together(leaves, 2);
}

/* ---- depth ------------------------------------------------------------------------------------------------------ */

static void *takes_turns(void *i)
{
	if (i) {
		for (long turn = 0; turn < 12; turn++) {
			put(&s.a, turn);
			weft_task_yield();
		}
		put(&s.b, 1);
		return NULL;
	}
	for (int turn = 0; turn < 2; turn++)
		weft_task_yield();
	assert(right || !get(&s.b));
	return NULL;
}

static void twelve_turns(void)
{
	together(takes_turns, 2);
}

static void *makes_noise(void *i)
{
	if ((long)i < 2)
		return takes_turns(i);
	for (int turn = 0; turn < 12; turn++)
		weft_task_yield();
	return NULL;
}

static void turns_beside_noise(void)
{
	together(makes_noise, 4);
}

/* An assertion that fails only in the plain order. */
static void *pings(void *unused)
{
	for (int i = 0; i < 20; i++) {
		s.number = 1;
		weft_task_yield();
		if (s.number != 2 || right)
			return unused;
	}
	assert(!"twenty returns");
}

static void *pongs(void *unused)
{
	for (int i = 0; i < 60; i++) {
		if (s.number == 1)
			s.number = 2;
		weft_task_yield();
	}
	return unused;
}

static void plain_order(void)
{
	both(pongs, pings);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const struct entry {
	const char *name;
	void (*fn)(void);
} entries[] = {
#define E(name)                                                                                                        \
	{                                                                                                              \
		#name, name                                                                                            \
	}
    E(lost_update),
    E(check_then_act),
    E(audit_of_two_locks),
    E(torn_read),
    E(aba),
    E(reference_from_zero),
    E(flags_for_a_lock),
    E(closed_twice),
    E(published_before_init),
    E(double_checked),
    E(started_before_init),
    E(single_flight),
    E(lost_wakeup),
    E(if_for_while),
    E(signal_for_broadcast),
    E(barrier_reuse),
    E(reset_after_look),
    E(lock_order),
    E(philosophers),
    E(reader_upgrade),
    E(double_release),
    E(leaked_permit),
    E(priority_inversion),
    E(starved_writer),
    E(polite_livelock),
    E(cancel_before_store),
    E(send_after_close),
    E(late_answer),
    E(timed_out_and_true),
    E(leaked_sender),
    E(group_counted_late),
    E(forgotten_join),
    E(idle_too_early),
    E(readable_for_two),
    E(update_across_write),
    E(freed_without_grace),
    E(removed_in_a_walk),
    E(freed_under_a_user),
    E(twelve_turns),
    E(turns_beside_noise),
    E(plain_order),
};

enum { ENTRIES = sizeof entries / sizeof *entries, BASES_MOST = 16 };

static const weft_rt_config_t config = {.steps = 20000};

static void *begin(void *entry)
{
	memset(&s, 0, sizeof s);
	((const struct entry *)entry)->fn();
	return NULL;
}

/* Runs the entry in a process of its own. */
static bool fails(const struct entry *entry, uint64_t seed)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(71);
		_exit(weft_simulate(seed, &config, begin, (void *)entry, NULL) != 0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	return status != 0;
}

static unsigned find(const struct entry *entry, uint64_t first, unsigned most)
{
	unsigned tried = 1;

	while (tried <= most && !fails(entry, first + tried - 1))
		tried++;
	return tried;
}

static int compare(const void *a, const void *b)
{
	unsigned one = *(const unsigned *)a, two = *(const unsigned *)b;

	return one < two ? -1 : one > two;
}

static unsigned median(unsigned *numbers, size_t count)
{
	qsort(numbers, count, sizeof *numbers, compare);
	return numbers[count / 2];
}

static int find_all(unsigned most, unsigned bases, const char *only)
{
	static unsigned all[ENTRIES * BASES_MOST];
	unsigned found[BASES_MOST], late = 0, middle;
	size_t count = 0;

	for (size_t i = 0; i < ENTRIES; i++) {
		if (only && strcmp(only, entries[i].name))
			continue;
		printf("| %-22s |", entries[i].name);
		for (unsigned base = 0; base < bases; base++) {
			found[base] = find(&entries[i], base * 1000000007ull, most);
			late += found[base] > most;
			all[count++] = found[base];
			printf(" %3u |", found[base]);
			fflush(stdout);
		}
		middle = median(found, bases);
		printf(" %3u | %3u |\n", middle, found[bases - 1]);
	}
	if (!count)
		return 2;
	middle = median(all, count);
	printf("%s - median %u, most %u of %u seeds, %u not found\n", late || middle > 30 ? "not ok" : "ok", middle,
	       all[count - 1], most, late);
	return late || middle > 30;
}

static int check_all(unsigned seeds, const char *only)
{
	int error;

	right = true;
	for (size_t i = 0; i < ENTRIES; i++) {
		if (only && strcmp(only, entries[i].name))
			continue;
		for (uint64_t seed = 0; seed < seeds; seed++) {
			error = weft_simulate(seed, &config, begin, (void *)&entries[i], NULL);
			if (error) {
				printf("not ok - %s: seed %llu, %s\n", entries[i].name, (unsigned long long)seed,
				       strerror(-error));
				return 1;
			}
		}
	}
	printf("ok - none of %u seeds fails\n", seeds);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned seeds = argc > 2 ? (unsigned)atoi(argv[2]) : 0, bases = argc > 3 ? (unsigned)atoi(argv[3]) : 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "right"))
		return check_all(seeds, argc > 3 ? argv[3] : NULL);
	if (argc > 3 && !strcmp(argv[1], "find") && bases && bases <= BASES_MOST)
		return find_all(seeds, bases, argc > 4 ? argv[4] : NULL);
	return 2;
}
