/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs with a mistake, for the simulator: PROGRAM NAME SEEDS. The simulator must find each mistake, and the shrunk
 * schedule must fail again. With `right`, the programs are correct, and no seed may fail: PROGRAM NAME SEEDS right.
 */
#include "check.h"

#include <assert.h>
#include <fcntl.h>

static bool right;

/* ---- a lost update across a yield ------------------------------------------------------------------------------ */

static long balance;

static void *pays_in(void *unused)
{
	long before = balance;

	weft_task_yield();
	balance = right ? balance + 1 : before + 1;
	return unused;
}

static void *lost_update(void *unused)
{
	balance = 0;
	WEFT_SCOPE(scope);
	for (int i = 0; i < 3; i++)
		(void)!weft_scope_spawn(&scope, pays_in, NULL);
	weft_scope_wait(&scope);
	assert(balance == 3);
	return unused;
}

/* ---- a lost wake-up: the condition is looked at before the lock is taken --------------------------------------- */

static struct {
	weft_mutex_t mutex;
	weft_cond_t cond;
	bool ready;
} box;

static void *consumes(void *unused)
{
	if (right) {
		weft_mutex_lock(&box.mutex);
		while (!box.ready)
			weft_cond_wait(&box.cond, &box.mutex);
		weft_mutex_unlock(&box.mutex);
	} else if (!box.ready) {
		weft_task_yield();
		weft_mutex_lock(&box.mutex);
		weft_cond_wait(&box.cond, &box.mutex);
		weft_mutex_unlock(&box.mutex);
	}
	return unused;
}

static void *produces(void *unused)
{
	weft_mutex_lock(&box.mutex);
	box.ready = true;
	weft_cond_signal(&box.cond);
	weft_mutex_unlock(&box.mutex);
	return unused;
}

static void *lost_wakeup(void *unused)
{
	memset(&box, 0, sizeof box);
	WEFT_SCOPE(scope);
	(void)!weft_scope_spawn(&scope, consumes, NULL);
	(void)!weft_scope_spawn(&scope, produces, NULL);
	weft_scope_wait(&scope);
	return unused;
}

/* ---- two locks in two orders ----------------------------------------------------------------------------------- */

static weft_mutex_t locks[2];

static void *locks_both(void *first)
{
	int i = right ? 0 : (int)(intptr_t)first;

	weft_mutex_lock(&locks[i]);
	weft_task_yield();
	weft_mutex_lock(&locks[1 - i]);
	weft_mutex_unlock(&locks[1 - i]);
	weft_mutex_unlock(&locks[i]);
	return NULL;
}

static void *lock_order(void *unused)
{
	memset(locks, 0, sizeof locks);
	WEFT_SCOPE(scope);
	(void)!weft_scope_spawn(&scope, locks_both, (void *)0);
	(void)!weft_scope_spawn(&scope, locks_both, (void *)1);
	weft_scope_wait(&scope);
	return unused;
}

/* ---- a join that was forgotten --------------------------------------------------------------------------------- */

static int squares[4];

static void *squares_one(void *i)
{
	weft_task_yield();
	squares[(intptr_t)i] = (int)((intptr_t)i * (intptr_t)i);
	return NULL;
}

static void *forgotten_join(void *unused)
{
	WEFT_SCOPE(scope);
	memset(squares, 0, sizeof squares);
	for (intptr_t i = 0; i < 4; i++)
		(void)!weft_scope_spawn(&scope, squares_one, (void *)i);
	if (right)
		weft_scope_wait(&scope);
	for (int i = 0; i < 4; i++)
		weft_task_yield();
	assert(squares[3] == 9);
	weft_scope_wait(&scope);
	return unused;
}

/* ---- ABA in a list of free nodes ------------------------------------------------------------------------------- */

struct node {
	struct node *next;
	bool free;
};

static struct node nodes[3], *head;

static struct node *take(void)
{
	struct node *first, *next;

	do {
		first = head;
		if (!first)
			return NULL;
		next = first->next;
		if (!right)
			weft_task_yield(); /* another task takes two nodes, and returns the first */
	} while (head != first);
	head = next;
	assert(first->free);
	first->free = false;
	return first;
}

static void give(struct node *node)
{
	node->free = true;
	node->next = head;
	head = node;
}

static void *takes_and_gives(void *unused)
{
	struct node *a = take(), *b;

	weft_task_yield();
	b = take();
	if (a)
		give(a);
	weft_task_yield();
	if (b)
		give(b);
	return unused;
}

static void *aba(void *unused)
{
	head = NULL;
	for (int i = 0; i < 3; i++)
		give(&nodes[i]);
	WEFT_SCOPE(scope);
	for (int i = 0; i < 3; i++)
		(void)!weft_scope_spawn(&scope, takes_and_gives, NULL);
	weft_scope_wait(&scope);
	return unused;
}

/* ---- tasks that only yield to each other ----------------------------------------------------------------------- */

static void *politely(void *turn)
{
	for (int i = 0; *(int *)turn && (!right || i < 100); i++)
		weft_task_yield();
	return turn;
}

static void *livelock(void *unused)
{
	int turn = 1;

	WEFT_SCOPE(scope);
	(void)!weft_scope_spawn(&scope, politely, &turn);
	(void)!weft_scope_spawn(&scope, politely, &turn);
	weft_scope_wait(&scope);
	return unused;
}

/* ---- a task that no task joins or wakes: the event reaches it only if it already listens ------------------------- */

static weft_event_t told;
static bool listens;

static void *listener(void *unused)
{
	listens = true;
	(void)weft_event_wait(&told);
	return unused;
}

static void *lost_task(void *unused)
{
	memset(&told, 0, sizeof told);
	listens = false;
	(void)!weft_spawn_detached(listener, NULL, NULL);
	weft_task_yield();
	if (listens || right)
		weft_event_set(&told);
	return unused;
}

static const struct test tests[] = {T(lost_update), T(lost_wakeup), T(lock_order), T(forgotten_join),
				    T(aba),	    T(livelock),    T(lost_task)};

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.steps = 10000};
	weft_finding_t found = {0};
	int outcome;

	if (argc < 3)
		return 2;
	right = argc > 3;
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if (strcmp(tests[i].name, argv[1]))
			continue;
		outcome = weft_simulate_seeds(0, strtoull(argv[2], NULL, 10), &config, tests[i].fn, NULL, &found);
		if (outcome == !right) {
			printf("ok - %s, %llu seeds, %zu choices\n", argv[1], (unsigned long long)found.tried,
			       found.choices);
			return 0;
		}
		printf("not ok - %s: %s\n", argv[1], outcome ? "fails, but is right" : "not found");
		return 1;
	}
	return 2;
}
