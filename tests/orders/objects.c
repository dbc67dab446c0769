/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The objects that threads and tasks wait for, used by threads: every sleeper is woken, every item arrives exactly
 * once. */
#include "checker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weft/sync.h>

#include "sched/biased_lock.h"

enum { SOON = 1001000000 }; /* a deadline; the checker's clock begins at 1 s */

static uint32_t spin;
static weft_mutex_t mutex;
static weft_cond_t cond;
static weft_rwlock_t rwlock;
static weft_sem_t sem;
static weft_event_t event;
static weft_group_t group;
static weft_barrier_t barrier;
static weft_once_t once;
static weft_future_t future;
static int kept[2];
static weft_broadcast_t broadcast;
static weft_chan_t *chans[2];
static int counter, inside, late, sent, received, sum;

static void fresh_objects(void)
{
	spin = 0;
	memset(&mutex, 0, sizeof mutex);
	memset(&cond, 0, sizeof cond);
	memset(&rwlock, 0, sizeof rwlock);
	memset(&sem, 0, sizeof sem);
	memset(&event, 0, sizeof event);
	memset(&group, 0, sizeof group);
	memset(&once, 0, sizeof once);
	memset(&future, 0, sizeof future);
	barrier = (weft_barrier_t){.parties = 2};
	broadcast = (weft_broadcast_t)WEFT_BROADCAST(kept);
	counter = inside = late = sent = received = sum = 0;
}

static int count(int *what)
{
	return __atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

/* ---- spin locks, mutexes, conditions ----------------------------------------------------------------------------- */

static void spins(void)
{
	weft__spin_lock(&spin);
	counter++;
	weft__spin_unlock(&spin);
}

static void locks(void)
{
	HOLDS(weft_mutex_lock(&mutex) == 0);
	counter++;
	HOLDS(weft_mutex_unlock(&mutex) == 0);
}

static void locks_for_a_while(void)
{
	int error = weft_mutex_lock_until(&mutex, SOON);

	HOLDS(!error || error == -ETIMEDOUT);
	if (error) {
		orders_saw(0);
		count(&late);
		return;
	}
	counter++;
	HOLDS(weft_mutex_unlock(&mutex) == 0);
}

static void tries(void)
{
	if (!weft_mutex_try_lock(&mutex)) {
		count(&late);
		return;
	}
	counter++;
	HOLDS(weft_mutex_unlock(&mutex) == 0);
}

static void two_counted(void)
{
	HOLDS(counter + late == 2);
}

static void three_counted(void)
{
	HOLDS(counter + late == 3);
	HOLDS(weft_mutex_try_lock(&mutex));
}

static void waits_for_counter(void)
{
	HOLDS(weft_mutex_lock(&mutex) == 0);
	while (!counter)
		HOLDS(weft_cond_wait(&cond, &mutex) == 0);
	HOLDS(weft_mutex_unlock(&mutex) == 0);
}

static void counts_and_signals(void)
{
	locks();
	weft_cond_signal(&cond);
}

static void counts_and_broadcasts(void)
{
	locks();
	weft_cond_broadcast(&cond);
}

static void reads(void)
{
	HOLDS(weft_rwlock_read(&rwlock) == 0);
	HOLDS(counter == 0 || counter == 1);
	HOLDS(weft_rwlock_unlock(&rwlock) == 0);
}

static void writes(void)
{
	HOLDS(weft_rwlock_write(&rwlock) == 0);
	counter++;
	HOLDS(weft_rwlock_unlock(&rwlock) == 0);
}

/* ---- semaphores, events, groups, barriers, once, futures --------------------------------------------------------- */

static void takes(void)
{
	HOLDS(weft_sem_take(&sem) == 0);
	count(&received);
}

static void takes_for_a_while(void)
{
	int error = weft_sem_take_until(&sem, SOON);

	HOLDS(!error || error == -ETIMEDOUT);
	count(error ? &late : &received);
	if (error)
		orders_saw(0);
}

static void gives(void)
{
	weft_sem_give(&sem, 1);
}

static void gives_two(void)
{
	weft_sem_give(&sem, 2);
}

static void permits_are_kept(void)
{
	HOLDS(received + late == 2);
	HOLDS((int)sem.permits == 2 - received);
	HOLDS(!sem.queue.first);
}

static void waits_for_event(void)
{
	HOLDS(weft_event_wait(&event) == 0);
	HOLDS(counter == 1);
}

static void sets_event(void)
{
	counter = 1;
	weft_event_set(&event);
}

static void group_of_two(void)
{
	fresh_objects();
	HOLDS(weft_group_add(&group, 2) == 0);
}

static void works(void)
{
	count(&sent);
	HOLDS(weft_group_done(&group) == 0);
}

static void waits_for_group(void)
{
	HOLDS(weft_group_wait(&group) == 0);
	HOLDS(__atomic_load_n(&sent, __ATOMIC_RELAXED) == 2);
}

static void meets(void)
{
	int *mine = __atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED) ? &received : &sent;

	*mine = 1;
	HOLDS(weft_barrier_wait(&barrier) >= 0);
	HOLDS(sent == 1 && received == 1);
}

static void three_parties(void)
{
	fresh_objects();
	barrier.parties = 3;
}

static void meets_for_a_while(void)
{
	int last = weft_barrier_wait_until(&barrier, SOON);

	HOLDS(last >= 0 || last == -ETIMEDOUT);
	if (last < 0)
		orders_saw(0);
	else
		count(&received);
	if (last == 1)
		count(&sent);
}

static void all_met_or_nobody(void)
{
	HOLDS(received == 3 * sent && sent <= 1);
	HOLDS(barrier.arrived == 0);
}

static void makes(void *unused)
{
	(void)unused;
	counter++;
}

static void first_makes(void)
{
	HOLDS(weft_once(&once, makes, NULL) == 0);
	HOLDS(counter == 1);
}

static int fails_at_first(void *unused)
{
	(void)unused;
	return counter++ ? 0 : -EAGAIN;
}

static void tries_until_made(void)
{
	int result;

	do
		result = weft_once_retry(&once, fails_at_first, NULL);
	while (result == -EAGAIN);
	HOLDS(result == 0 && counter == 2);
}

static void broadcasts_two(void)
{
	for (int i = 1; i <= 2; i++)
		HOLDS(weft_broadcast_send(&broadcast, &i) == 0);
	weft_broadcast_close(&broadcast);
}

static void follows(void)
{
	weft_receiver_t r = {.from = &broadcast};
	int item = 0, last = 0;

	while (weft_broadcast_receive(&r, &item) == 0)
		HOLDS(item == ++last && r.missed == 0);
	HOLDS(last == 2);
}

static void foretells(void)
{
	counter = 7;
	HOLDS(weft_future_set(&future, &counter, 0) == 0);
}

static void sees_future(void)
{
	void *value;

	HOLDS(weft_future_get(&future, &value) == 0);
	HOLDS(*(int *)value == 7);
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

static void rendezvous(void)
{
	fresh_objects();
	chans[0] = weft_chan_make(sizeof(int), 0);
	chans[1] = weft_chan_make(sizeof(int), 0);
}

static void room_for_one(void)
{
	fresh_objects();
	chans[0] = weft_chan_make(sizeof(int), 1);
	chans[1] = weft_chan_make(sizeof(int), 1);
}

static void send(weft_chan_t *chan, int item, uint64_t deadline)
{
	int error = weft_chan_send_until(chan, &item, deadline);

	HOLDS(!error || error == -EPIPE || (error == -ETIMEDOUT && deadline != WEFT_NEVER));
	if (error)
		orders_saw(error == -EPIPE);
	else
		__atomic_add_fetch(&sent, item, __ATOMIC_RELAXED);
}

static void receive(weft_chan_t *chan, uint64_t deadline)
{
	int item = 0, error = weft_chan_receive_until(chan, &item, deadline);

	HOLDS(!error || error == -EPIPE || (error == -ETIMEDOUT && deadline != WEFT_NEVER));
	HOLDS(error ? !item : item > 0);
	if (error)
		orders_saw(2 + (error == -EPIPE));
	__atomic_add_fetch(&received, item, __ATOMIC_RELAXED);
}

static void sends_one(void)
{
	send(chans[0], 1, WEFT_NEVER);
}

static void sends_two_items(void)
{
	send(chans[0], 1, WEFT_NEVER);
	send(chans[0], 2, WEFT_NEVER);
}

static void sends_on_second(void)
{
	send(chans[1], 2, WEFT_NEVER);
}

static void sends_for_a_while(void)
{
	send(chans[0], 1, SOON);
}

static void receives_one(void)
{
	receive(chans[0], WEFT_NEVER);
}

static void receives_two(void)
{
	receive(chans[0], WEFT_NEVER);
	receive(chans[0], WEFT_NEVER);
}

static void receives_for_a_while(void)
{
	receive(chans[0], SOON);
}

static void closes(void)
{
	HOLDS(weft_chan_close(chans[0]) == 0);
}

/* Every sent item has been received, or is in the channel. */
static void nothing_is_lost(void)
{
	int item, i;

	for (i = 0; i < 2; i++)
		while (weft_chan_receive_until(chans[i], &item, 0) == 0)
			received += item;
	HOLDS(sent == received);
	HOLDS(weft_chan_free(chans[0]) == 0 && weft_chan_free(chans[1]) == 0);
}

static void select_one(weft_case_t *cases, int *item, uint64_t deadline)
{
	int which = weft_select_until(cases, 2, deadline);

	HOLDS(which == 0 || which == 1 || (which == -ETIMEDOUT && deadline != WEFT_NEVER));
	if (which < 0) {
		orders_saw(2);
		return;
	}
	if (cases[which].status)
		orders_saw(3);
	else if (cases[which].send)
		__atomic_add_fetch(&sent, item[which], __ATOMIC_RELAXED);
	else
		__atomic_add_fetch(&received, item[which], __ATOMIC_RELAXED);
}

static void selects_from_both(void)
{
	int item[2] = {0, 0};
	weft_case_t cases[2] = {{.chan = chans[0], .receive = &item[0]}, {.chan = chans[1], .receive = &item[1]}};

	select_one(cases, item, WEFT_NEVER);
}

static void selects_from_both_twice(void)
{
	selects_from_both();
	selects_from_both();
}

static void selects_for_a_while(void)
{
	int item[2] = {0, 0};
	weft_case_t cases[2] = {{.chan = chans[0], .receive = &item[0]}, {.chan = chans[1], .receive = &item[1]}};

	select_one(cases, item, SOON);
}

/* Each thread is the other thread's partner, by either channel. */
static void gives_or_takes(void)
{
	int item[2] = {1, 0};
	weft_case_t cases[2] = {{.chan = chans[0], .send = &item[0]}, {.chan = chans[1], .receive = &item[1]}};

	select_one(cases, item, WEFT_NEVER);
}

static void takes_or_gives(void)
{
	int item[2] = {0, 2};
	weft_case_t cases[2] = {{.chan = chans[0], .receive = &item[0]}, {.chan = chans[1], .send = &item[1]}};

	select_one(cases, item, WEFT_NEVER);
}

/* Selects the cases in turn, until each has been done once. */
static void selects_each(weft_case_t *cases)
{
	int i, which;

	for (i = 0; i < 2; i++) {
		which = weft_select(cases, 2);
		HOLDS(which >= 0 && (cases[which].chan || cases[which].event || cases[which].sem));
		cases[which] = (weft_case_t){0};
	}
}

static void selects_item_and_permit(void)
{
	int item = 0;
	weft_case_t cases[2] = {{.chan = chans[0], .receive = &item}, {.sem = &sem}};

	selects_each(cases);
	received = item;
	HOLDS(weft_sem_take_until(&sem, 0) == -ETIMEDOUT);
}

static void selects_permit_and_event(void)
{
	weft_case_t cases[2] = {{.sem = &sem}, {.event = &event}};

	selects_each(cases);
	HOLDS(counter == 1 && weft_sem_take_until(&sem, 0) == -ETIMEDOUT);
}

/* ---- the last user frees the object, as soon as its own call has returned ---------------------------------------- */

static struct counted {
	weft_mutex_t mutex;
	weft_rwlock_t rwlock;
	weft_sem_t sem;
	weft_event_t event;
	weft_group_t group;
	weft_barrier_t barrier;
	weft_future_t future;
	weft_once_t once;
	int users;
} *counted;

static void counted_by_three(void)
{
	fresh_objects();
	counted = calloc(1, sizeof *counted);
	counted->barrier.parties = 2;
	counted->users = 3;
	HOLDS(weft_group_add(&counted->group, 1) == 0);
}

static void counted_by_two(void)
{
	counted_by_three();
	counted->users = 2;
}

static void drops_by_mutex(void)
{
	int left;

	HOLDS(weft_mutex_lock(&counted->mutex) == 0);
	left = --counted->users;
	HOLDS(weft_mutex_unlock(&counted->mutex) == 0);
	if (!left)
		free(counted);
}

static void locks_for_a_while_and_drops(void)
{
	int error = weft_mutex_lock_until(&counted->mutex, SOON);

	HOLDS(!error || error == -ETIMEDOUT);
	if (!error)
		HOLDS(weft_mutex_unlock(&counted->mutex) == 0);
	drops_by_mutex();
}

static void drops_by_rwlock(void)
{
	int left;

	HOLDS(weft_rwlock_write(&counted->rwlock) == 0);
	left = --counted->users;
	HOLDS(weft_rwlock_unlock(&counted->rwlock) == 0);
	if (!left)
		free(counted);
}

static void meets_and_drops(void)
{
	HOLDS(weft_barrier_wait(&counted->barrier) >= 0);
	if (!__atomic_sub_fetch(&counted->users, 1, __ATOMIC_ACQ_REL))
		free(counted);
}

static void lets_go_on_by_sem(void)
{
	HOLDS(weft_sem_give(&counted->sem, 1) == 0);
}

static int makes_nothing(void *unused)
{
	(void)unused;
	return 0;
}

static void makes_and_drops(void)
{
	HOLDS(weft_once_retry(&counted->once, makes_nothing, NULL) == 0);
	if (!__atomic_sub_fetch(&counted->users, 1, __ATOMIC_ACQ_REL))
		free(counted);
}

static void lets_go_on_by_event(void)
{
	weft_event_set(&counted->event);
}

static void lets_go_on_by_group(void)
{
	HOLDS(weft_group_done(&counted->group) == 0);
}

static void lets_go_on_by_future(void)
{
	HOLDS(weft_future_set(&counted->future, NULL, 0) == 0);
}

static void takes_and_frees(void)
{
	HOLDS(weft_sem_take(&counted->sem) == 0);
	free(counted);
}

static void sees_event_and_frees(void)
{
	HOLDS(weft_event_wait(&counted->event) == 0);
	free(counted);
}

static void sees_event_later_and_frees(void)
{
	if (weft_event_wait_until(&counted->event, SOON))
		HOLDS(weft_event_wait(&counted->event) == 0);
	free(counted);
}

static void sees_group_and_frees(void)
{
	HOLDS(weft_group_wait(&counted->group) == 0);
	free(counted);
}

static void sees_future_and_frees(void)
{
	HOLDS(weft_future_get(&counted->future, NULL) == 0);
	free(counted);
}

/* A closed channel is freed by the thread that closed it, if no other thread uses it. */
static void tries_to_free(weft_chan_t **chan)
{
	int error = weft_chan_free(*chan);

	HOLDS(!error || error == -EBUSY);
	orders_saw(4 + !error);
	if (!error)
		*chan = NULL;
}

/* Time passes only when the receiver also waits. */
static void closes_later_and_frees(void)
{
	HOLDS(weft_sleep_until(SOON) == 0);
	closes();
	tries_to_free(&chans[0]);
}

static void sends_and_frees(void)
{
	sends_one();
	tries_to_free(&chans[0]);
}

static void closes_second_and_frees(void)
{
	sends_one();
	HOLDS(weft_chan_close(chans[1]) == 0);
	tries_to_free(&chans[1]);
	tries_to_free(&chans[0]);
}

static void all_can_be_freed(void)
{
	HOLDS(sent == received);
	HOLDS(weft_chan_free(chans[0]) == 0 && weft_chan_free(chans[1]) == 0);
}

/* ---- one thread is alone at first -------------------------------------------------------------------------------- */

static weft_waiter_t waiter;
static uintptr_t word;
static int claims, woken, parked;

static void begin_alone(void)
{
	fresh_objects();
	memset(&weft__alone, 0, sizeof weft__alone);
	memset(&waiter, 0, sizeof waiter);
	word = 0;
	claims = woken = parked = 0;
}

static void spins_alone(void)
{
	bool began = weft__alone_begin();

	orders_saw(began);
	spins();
	spins();
	weft__alone_end(began);
}

static void spins_twice(void)
{
	spins();
	spins();
}

static void four_counted(void)
{
	HOLDS(counter == 4 && !spin);
}

static void adds(void)
{
	uintptr_t before = 0;

	while (!weft__exchange_if(&word, &before, before + 1))
		;
}

static void adds_alone(void)
{
	bool began = weft__alone_begin();

	adds();
	adds();
	weft__alone_end(began);
}

static void three_added(void)
{
	HOLDS(word == 3);
}

static void wakes(weft_waiter_t *w)
{
	HOLDS(w == &waiter && w->result == 1);
	count(&woken);
}

static void parks_alone(void)
{
	bool began = weft__alone_begin();

	waiter.wake = wakes;
	parked = weft_waiter_park(&waiter);
	orders_saw((unsigned)parked);
	weft__alone_end(began);
}

static void ends_wait(void)
{
	if (!weft_waiter_claim(&waiter, 1))
		return;
	count(&claims);
	weft_waiter_complete(&waiter);
}

static void woken_once(void)
{
	HOLDS(claims == 1 && woken == parked);
}

/* ---- a worker has reserved a scope's lock ----------------------------------------------------------------------- */

static struct weft__worker home;
static weft_scope_t scope;

static void begin_at_home(void)
{
	fresh_objects();
	home = (struct weft__worker){.reserves = true};
	scope = (weft_scope_t){.home = &home, .reserved = 1};
}

static void locks_scope(void)
{
	weft__scope_lock(&scope);
	counter++;
	weft__scope_unlock(&scope);
}

static void locks_at_home(void)
{
	weft__set_worker(&home);
	locks_scope();
	locks_scope();
}

static void locks_and_answers(void)
{
	weft__set_worker(&home);
	locks_scope();
	weft__home_answers(&home);
	locks_scope();
}

static void three_counted_in_scope(void)
{
	HOLDS(counter == 3 && !scope.lock);
}

static void four_counted_in_scope(void)
{
	HOLDS(counter == 4 && !scope.lock && !scope.home);
}

#define OF(begins, ends, ...) .begin = begins, .end = ends, .thread = {__VA_ARGS__}

const struct scenario object_scenarios[] = {
    {.name = "spin", OF(fresh_objects, two_counted, spins, spins)},
    {.name = "mutex", OF(fresh_objects, two_counted, locks, locks)},
    {.name = "mutex_of_three", OF(fresh_objects, three_counted, locks, locks, tries), .preemptions = 2, .stale = 2},
    {.name = "mutex_late",
     OF(fresh_objects, three_counted, locks, locks_for_a_while, tries),
     .time_runs = true,
     .preemptions = 2,
     .stale = 2},
    {.name = "cond", OF(fresh_objects, NULL, waits_for_counter, counts_and_signals), .stale = 1},
    {.name = "cond_of_two",
     OF(fresh_objects, NULL, waits_for_counter, waits_for_counter, counts_and_broadcasts),
     .preemptions = 2,
     .stale = 2},
    {.name = "rwlock", OF(fresh_objects, NULL, reads, writes)},
    {.name = "rwlock_of_three", OF(fresh_objects, NULL, reads, reads, writes), .preemptions = 2, .stale = 2},
    {.name = "sem", OF(fresh_objects, permits_are_kept, takes, takes, gives_two), .preemptions = 2, .stale = 2},
    {.name = "sem_late",
     OF(fresh_objects, permits_are_kept, takes_for_a_while, takes_for_a_while, gives, gives),
     .time_runs = true,
     .preemptions = 2,
     .stale = 2},
    {.name = "event",
     OF(fresh_objects, NULL, waits_for_event, waits_for_event, sets_event),
     .preemptions = 2,
     .stale = 2},
    {.name = "group", OF(group_of_two, NULL, works, works, waits_for_group), .preemptions = 2, .stale = 2},
    {.name = "barrier", OF(fresh_objects, NULL, meets, meets)},
    {.name = "barrier_late",
     OF(three_parties, all_met_or_nobody, meets_for_a_while, meets_for_a_while, meets_for_a_while),
     .time_runs = true,
     .preemptions = 2,
     .stale = 1},
    {.name = "once", OF(fresh_objects, NULL, first_makes, first_makes, first_makes), .preemptions = 2, .stale = 2},
    {.name = "once_retry",
     OF(fresh_objects, NULL, tries_until_made, tries_until_made, tries_until_made),
     .preemptions = 1,
     .stale = 1},
    {.name = "broadcast", OF(fresh_objects, NULL, broadcasts_two, follows), .preemptions = 3, .stale = 2},
    {.name = "future", OF(fresh_objects, NULL, foretells, sees_future, sees_future), .preemptions = 2, .stale = 2},
    {.name = "chan", OF(rendezvous, nothing_is_lost, sends_one, receives_one)},
    {.name = "chan_of_three",
     OF(rendezvous, nothing_is_lost, sends_one, sends_one, receives_two),
     .preemptions = 2,
     .stale = 2},
    {.name = "chan_room", OF(room_for_one, nothing_is_lost, sends_two_items, receives_two), .stale = 1},
    {.name = "chan_late", OF(rendezvous, nothing_is_lost, sends_for_a_while, receives_for_a_while), .time_runs = true},
    {.name = "chan_closed",
     OF(rendezvous, nothing_is_lost, sends_one, receives_one, closes),
     .preemptions = 2,
     .stale = 2},
    {.name = "chan_room_closed",
     OF(room_for_one, nothing_is_lost, sends_two_items, receives_two, closes),
     .preemptions = 2,
     .stale = 2},
    {.name = "select",
     OF(rendezvous, nothing_is_lost, sends_one, sends_on_second, selects_from_both_twice),
     .preemptions = 2,
     .stale = 2},
    {.name = "select_sem",
     OF(rendezvous, nothing_is_lost, sends_one, gives, selects_item_and_permit),
     .preemptions = 2,
     .stale = 2},
    {.name = "select_event",
     OF(fresh_objects, NULL, gives, sets_event, selects_permit_and_event),
     .preemptions = 2,
     .stale = 2},
    {.name = "select_late", OF(rendezvous, nothing_is_lost, sends_for_a_while, selects_for_a_while), .time_runs = true},
    {.name = "select_of_selects", OF(rendezvous, nothing_is_lost, gives_or_takes, takes_or_gives)},
    {.name = "freed_mutex",
     OF(counted_by_three, NULL, drops_by_mutex, drops_by_mutex, locks_for_a_while_and_drops),
     .time_runs = true,
     .preemptions = 2,
     .stale = 2},
    {.name = "freed_rwlock", OF(counted_by_two, NULL, drops_by_rwlock, drops_by_rwlock)},
    {.name = "freed_barrier", OF(counted_by_two, NULL, meets_and_drops, meets_and_drops)},
    {.name = "freed_sem", OF(counted_by_two, NULL, lets_go_on_by_sem, takes_and_frees)},
    {.name = "freed_event", OF(counted_by_two, NULL, lets_go_on_by_event, sees_event_and_frees)},
    {.name = "freed_event_late",
     OF(counted_by_two, NULL, lets_go_on_by_event, sees_event_later_and_frees),
     .time_runs = true},
    {.name = "freed_group", OF(counted_by_two, NULL, lets_go_on_by_group, sees_group_and_frees)},
    {.name = "freed_future", OF(counted_by_two, NULL, lets_go_on_by_future, sees_future_and_frees)},
    {.name = "freed_once", OF(counted_by_two, NULL, makes_and_drops, makes_and_drops), .preemptions = 3, .stale = 2},
    {.name = "freed_chan", OF(rendezvous, all_can_be_freed, sends_and_frees, receives_one)},
    {.name = "freed_chan_late", OF(rendezvous, all_can_be_freed, closes_later_and_frees, receives_for_a_while)},
    {.name = "freed_select", OF(rendezvous, all_can_be_freed, closes_second_and_frees, selects_from_both)},
    {.name = "home", OF(begin_at_home, three_counted_in_scope, locks_at_home, locks_scope)},
    {.name = "home_answers", OF(begin_at_home, three_counted_in_scope, locks_and_answers, locks_scope)},
    {.name = "home_of_three",
     OF(begin_at_home, four_counted_in_scope, locks_and_answers, locks_scope, locks_scope),
     .preemptions = 3,
     .stale = 2},
    {.name = "alone_spin", OF(begin_alone, four_counted, spins_alone, spins_twice), .no_crowd = true, .stale = 3},
    {.name = "alone_both", OF(begin_alone, four_counted, spins_alone, spins_alone), .no_crowd = true, .stale = 2},
    {.name = "alone_adds", OF(begin_alone, three_added, adds_alone, adds), .no_crowd = true},
    {.name = "alone_wait",
     OF(begin_alone, woken_once, parks_alone, ends_wait, ends_wait),
     .no_crowd = true,
     .preemptions = 3,
     .stale = 2},
    {.name = NULL},
};
