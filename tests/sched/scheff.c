/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs for libseff's scheduler and actors: a tree that sums by sleeping and by polling, wakers that arrive early,
 * late and all at once, tasks that end where they wake, effects of seff.h inside tasks, actors.
 *
 *   scheff WORKERS [outside | actor]
 */
#include <assert.h>
#include <pthread.h>

#include "actors.h"
#include "seff.h"

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#define get(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define set(at, value) __atomic_store_n(at, value, __ATOMIC_RELEASE)
#define add(at, value) (void)__atomic_fetch_add(at, value, __ATOMIC_ACQ_REL)

/* ---- a value that one task waits for ----------------------------------------------------------------------------- */

static char is_there; /* its address stands for a waker when the value is present */

typedef struct {
	struct scheff_waker_t *waker; /* NULL: no task waits yet; &is_there: the value is present */
	long value;
} later_t;

static struct scheff_waker_t *there(void)
{
	return (struct scheff_waker_t *)(void *)&is_there;
}

static bool wants_to_sleep(struct scheff_waker_t *waker, void *argument)
{
	later_t *later = (later_t *)argument;
	struct scheff_waker_t *nobody = NULL;

	return __atomic_compare_exchange_n(&later->waker, &nobody, waker, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static long await_value(later_t *later)
{
	scheff_sleep(wants_to_sleep, later);
	return later->value;
}

/* If `ends` is set and a task slept, the caller's task ends here. */
static void set_value(later_t *later, long value, bool ends)
{
	struct scheff_waker_t *waker;

	later->value = value;
	waker = __atomic_exchange_n(&later->waker, there(), __ATOMIC_ACQ_REL);
	if (waker)
		scheff_wake(waker, !ends);
}

/* ---- a tree of tasks --------------------------------------------------------------------------------------------- */

enum { BRANCHES = 10, LEAVES = 1000 };

typedef struct {
	later_t sum;
	bool ready;
	long first, count;
	bool polls;
} node_t;

static bool is_ready(void *node)
{
	return get(&((node_t *)node)->ready);
}

static void finish(node_t *node, long sum)
{
	if (node->polls) {
		node->sum.value = sum;
		set(&node->ready, true);
	} else {
		set_value(&node->sum, sum, true);
	}
}

static void *sum_up(void *argument)
{
	node_t *node = (node_t *)argument, child[BRANCHES];
	long sum = 0;

	if (node->count == 1) {
		finish(node, node->first);
		return NULL;
	}
	memset(child, 0, sizeof child);
	for (int i = 0; i < BRANCHES; i++) {
		child[i].polls = node->polls;
		child[i].count = node->count / BRANCHES;
		child[i].first = node->first + i * child[i].count;
		scheff_fork(sum_up, &child[i]);
	}
	for (int i = 0; i < BRANCHES; i++) {
		if (node->polls)
			scheff_poll(is_ready, &child[i]);
		sum += node->polls ? child[i].sum.value : await_value(&child[i].sum);
	}
	finish(node, sum);
	return NULL;
}

static void tree(size_t workers, bool polls)
{
	scheff_t scheduler;
	node_t root;

	memset(&root, 0, sizeof root);
	root.polls = polls;
	root.count = LEAVES;
	CHECK(scheff_init(&scheduler, workers) && scheduler.n_workers == workers);
	CHECK(scheff_schedule(&scheduler, sum_up, &root));
	scheff_run(&scheduler);
	CHECK(root.sum.value == (long)LEAVES * (LEAVES - 1) / 2);
}

/* ---- many tasks woken at once, and a task that continues after them ---------------------------------------------- */

enum { SLEEPERS = 50 };

static struct {
	struct scheff_waker_t *wakers[SLEEPERS];
	int asleep, awake, went_on, not_reached;
} crowd;

static bool joins_crowd(struct scheff_waker_t *waker, void *index)
{
	crowd.wakers[(intptr_t)index] = waker;
	add(&crowd.asleep, 1);
	return true;
}

static void *sleeps(void *index)
{
	scheff_sleep(joins_crowd, index);
	add(&crowd.awake, 1);
	return NULL;
}

static bool all_asleep(void *unused)
{
	(void)unused;
	return get(&crowd.asleep) == SLEEPERS;
}

static void *wakes_all(void *unused)
{
	scheff_poll(all_asleep, NULL);
	scheff_wake_all(SLEEPERS / 2, crowd.wakers, true);
	add(&crowd.went_on, 1);
	scheff_wake_all(SLEEPERS - SLEEPERS / 2, crowd.wakers + SLEEPERS / 2, false);
	add(&crowd.not_reached, 1);
	return unused;
}

static void all_at_once(size_t workers)
{
	scheff_t scheduler;

	memset(&crowd, 0, sizeof crowd);
	CHECK(scheff_init(&scheduler, workers));
	for (intptr_t i = 0; i < SLEEPERS; i++)
		CHECK(scheff_schedule(&scheduler, sleeps, (void *)i));
	CHECK(scheff_schedule(&scheduler, wakes_all, NULL));
	scheff_run(&scheduler);
	CHECK(get(&crowd.awake) == SLEEPERS);
	CHECK(get(&crowd.went_on) == 1 && get(&crowd.not_reached) == 0);
}

/* ---- effects inside of tasks: the lowest numbers and the highest ------------------------------------------------- */

DEFINE_EFFECT(first_one, 0, long, { long value; });
DEFINE_EFFECT(last_one, 63, long, { long value; });

static void *performs(void *unused)
{
	long sum = 0;

	(void)unused;
	for (long i = 0; i < 10; i++) {
		sum += PERFORM(first_one, i);
		scheff_poll(all_asleep, NULL); /* the task waits from within the coroutine */
		sum += PERFORM(last_one, i);
	}
	return (void *)sum;
}

static void *handles(void *result)
{
	seff_coroutine_t *k = seff_coroutine_new(performs, NULL);
	effect_set handled = HANDLES(first_one) | HANDLES(last_one);
	seff_request_t request;

	CHECK(k);
	request = seff_resume(k, NULL, handled);
	for (bool done = false; !done;) {
		switch (request.effect) {
			CASE_EFFECT(request, first_one, {
				request = seff_resume(k, (void *)payload.value, handled);
				break;
			});
			CASE_EFFECT(request, last_one, {
				request = seff_resume(k, (void *)(100 * payload.value), handled);
				break;
			});
		default:
			CHECK(request.effect == RETURN_EFFECT_ID);
			done = true;
		}
	}
	*(long *)result = (long)request.payload;
	seff_coroutine_delete(k);
	return NULL;
}

static void effects(size_t workers)
{
	scheff_t scheduler;
	long results[20] = {0};

	set(&crowd.asleep, SLEEPERS);
	CHECK(scheff_init(&scheduler, workers));
	for (int i = 0; i < 20; i++)
		CHECK(scheff_schedule(&scheduler, handles, &results[i]));
	scheff_run(&scheduler);
	for (int i = 0; i < 20; i++)
		CHECK(results[i] == 101 * 45);
}

/* ---- actors: a ring, a sender that fills a mailbox, sends to a dead actor ---------------------------------------- */

enum { AROUND = 20, ROUNDS = 100 };

static long passed, received;

static void *passes_on(actor_t *self)
{
	actor_t *next = (actor_t *)actor_recv(self);

	for (int i = 0; i < ROUNDS; i++) {
		long *message = (long *)actor_recv(self);

		++*message;
		actor_send(next, message);
	}
	return NULL;
}

static void *receives_all(actor_t *self)
{
	for (intptr_t i = 1; i <= 3 * DEFAULT_MAILBOX_CAPACITY; i++) {
		CHECK(actor_recv(self) == (void *)i);
		add(&received, 1);
	}
	return NULL;
}

static bool all_received(void *unused)
{
	(void)unused;
	return get(&received) == 3 * DEFAULT_MAILBOX_CAPACITY;
}

static void *starts_actors(actor_t *self)
{
	static long message;
	actor_t *ring[AROUND], *receiver = fork_actor(receives_all);

	message = 0;
	for (int i = 0; i < AROUND; i++)
		ring[i] = fork_actor(passes_on);
	for (int i = 0; i < AROUND; i++)
		actor_send(ring[i], i + 1 < AROUND ? ring[i + 1] : self);
	for (int i = 0; i < ROUNDS; i++) {
		actor_send(ring[0], &message);
		CHECK(actor_recv(self) == &message);
	}
	set(&passed, message);
	CHECK(!actor_remove_msg(self));
	for (intptr_t i = 1; i <= 3 * DEFAULT_MAILBOX_CAPACITY; i++)
		actor_send(receiver, (void *)i);
	scheff_poll(all_received, NULL);
	/* The receiver ends or has ended. These are more messages than its mailbox has room for. */
	for (intptr_t i = 1; i <= 3 * DEFAULT_MAILBOX_CAPACITY; i++)
		actor_send(receiver, (void *)i);
	return NULL;
}

static void *main_actor(void *unused)
{
	fork_actor(starts_actors);
	return unused;
}

static void *overfills(void *result)
{
	actor_t *silent = fork_actor(starts_actors);
	actor_t own;
	int count = 0;

	(void)silent;
	CHECK(actor_init(&own, NULL, 4));
	while (actor_insert_msg(&own, result))
		count++;
	*(int *)result = count;
	CHECK(actor_remove_msg(&own) == result);
	actor_destroy(&own);
	return NULL;
}

static void actors(size_t workers)
{
	int room = 0;

	set(&received, 0);
	actor_start(main_actor, NULL, workers, true);
	CHECK(get(&passed) == (long)AROUND * ROUNDS);
	set(&received, 0);
	actor_start(overfills, &room, workers, false);
	CHECK(room == 4);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static bool never_sleeps(struct scheff_waker_t *waker, void *unused)
{
	(void)waker, (void)unused;
	return false;
}

static void *does_not_sleep(void *unused)
{
	scheff_sleep(never_sleeps, NULL);
	return unused;
}

static void mistakes(void)
{
	scheff_t scheduler;

	CHECK(!scheff_init(&scheduler, 0));
	CHECK(scheff_init(&scheduler, 1));
	CHECK(scheff_schedule(&scheduler, does_not_sleep, NULL));
	scheff_run(&scheduler);
	scheff_run(&scheduler); /* nothing to do */
}

int main(int argc, char **argv)
{
	size_t workers = argc > 1 ? (size_t)atoi(argv[1]) : 2;

	if (argc > 2 && !strcmp(argv[2], "outside"))
		scheff_fork(does_not_sleep, NULL);
	if (argc > 2 && !strcmp(argv[2], "actor"))
		(void)fork_actor(starts_actors);
	tree(workers, false);
	tree(workers, true);
	all_at_once(workers);
	effects(workers);
	actors(workers);
	mistakes();
	printf("ok\n");
	return 0;
}
