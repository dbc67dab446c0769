/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tasks as plain threads of the system: the cases of sched.c, by pthread_create, sched_yield, a mutex and conditions.
 *
 *   ./program case=NAME n=COUNT share=S
 *
 *   ./program case=memory mb=BUDGET
 *
 * Only a share of the operations, one in S, is done, because each takes microseconds; the answer is that of all
 * operations.
 */
#define _GNU_SOURCE
#include "lab.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

struct run {
	int64_t n, share, tasks, result;
	uint64_t ops;
};

static void must(int error, const char *what)
{
	errno = error;
	if (error)
		lab_die(what);
}

static pthread_t start(void *(*fn)(void *), void *argument)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, fn, argument), "pthread_create");
	return thread;
}

static void start_ten(void *(*fn)(void *), void *argument)
{
	pthread_t ten[10];

	for (int i = 0; i < 10; i++)
		ten[i] = start(fn, argument);
	for (int i = 0; i < 10; i++)
		pthread_join(ten[i], NULL);
}

static void on_one_core(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* ---- spawn and join, yield -------------------------------------------------------------------------------------- */

static void *adds(void *sum)
{
	++*(int64_t *)sum;
	return sum;
}

static void spawn_join(struct run *r)
{
	for (r->ops = 0; (int64_t)r->ops < r->n / r->share; r->ops++)
		pthread_join(start(adds, &r->result), NULL);
	r->result *= r->share;
}

static void *gives_way(void *argument)
{
	struct run *r = argument;

	for (int64_t i = 0; i < r->n / r->share / 10; i++)
		sched_yield();
	__atomic_fetch_add(&r->ops, r->n / r->share / 10, __ATOMIC_RELAXED);
	return r;
}

static void yield(struct run *r)
{
	on_one_core();
	start_ten(gives_way, r);
	r->result = (int64_t)r->ops * r->share;
}

/* ---- passing an item -------------------------------------------------------------------------------------------- */

/* A channel without room: a sender continues when its item has been received. */
struct rendezvous {
	pthread_mutex_t mutex;
	pthread_cond_t sent, taken;
	int64_t item;
	bool full;
};

#define RENDEZVOUS                                                                                                     \
	{                                                                                                              \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false                \
	}

struct pair {
	struct rendezvous to, back;
};

static void hand_over(struct rendezvous *v, int64_t item)
{
	pthread_mutex_lock(&v->mutex);
	v->item = item;
	v->full = true;
	pthread_cond_signal(&v->sent);
	while (v->full)
		pthread_cond_wait(&v->taken, &v->mutex);
	pthread_mutex_unlock(&v->mutex);
}

static int64_t take(struct rendezvous *v)
{
	int64_t item;

	pthread_mutex_lock(&v->mutex);
	while (!v->full)
		pthread_cond_wait(&v->sent, &v->mutex);
	item = v->item;
	v->full = false;
	pthread_cond_signal(&v->taken);
	pthread_mutex_unlock(&v->mutex);
	return item;
}

static void *echoes(void *argument)
{
	struct pair *p = argument;
	int64_t item;

	while ((item = take(&p->to)))
		hand_over(&p->back, item);
	return p;
}

/* One item stands for a share of the items: it is their sum. */
static void hop(struct run *r)
{
	struct pair p = {RENDEZVOUS, RENDEZVOUS};
	pthread_t echo = start(echoes, &p);
	int64_t last;

	for (int64_t first = 1; first <= r->n; first = last + 1) {
		last = first + r->share - 1 < r->n ? first + r->share - 1 : r->n;
		hand_over(&p.to, (first + last) * (last - first + 1) / 2);
		r->result += take(&p.back);
		r->ops += 2;
	}
	hand_over(&p.to, 0);
	pthread_join(echo, NULL);
}

static void hop_on_one_core(struct run *r)
{
	on_one_core();
	hop(r);
}

/* ---- mutex ------------------------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *counts(void *argument)
{
	struct run *r = argument;

	for (int64_t i = 0; i < r->n / 10; i++) {
		pthread_mutex_lock(&lock);
		r->result++;
		pthread_mutex_unlock(&lock);
	}
	return r;
}

static void mutex(struct run *r)
{
	start_ten(counts, r);
	r->ops = (uint64_t)r->n;
}

/* ---- a chain of threads, a ring --------------------------------------------------------------------------------- */

static void *after(void *before)
{
	if (before)
		pthread_join(*(pthread_t *)before, NULL);
	return NULL;
}

/* Each thread waits for the thread before it. Runs a share of them, with a hundred alive at a time. */
static void chain(struct run *r)
{
	enum { ALIVE = 100 };
	pthread_t all[ALIVE];

	for (int64_t n = r->n / r->share; n > 0; n -= ALIVE) {
		int count = n < ALIVE ? (int)n : ALIVE;

		for (int i = 0; i < count; i++)
			all[i] = start(after, i ? &all[i - 1] : NULL);
		pthread_join(all[count - 1], NULL);
		r->ops += (uint64_t)count;
	}
	r->result = r->n;
}

static struct spawner {
	pthread_t threads[2];
	int64_t n, ended;
	sem_t end;
} spawner;

/* Each thread waits for the thread before it, and then spawns the next. */
static void *spawns_next(void *which)
{
	intptr_t i = (intptr_t)which;

	if (i)
		pthread_join(spawner.threads[(i - 1) % 2], NULL);
	spawner.ended++;
	if (i + 1 < spawner.n)
		spawner.threads[(i + 1) % 2] = start(spawns_next, (void *)(i + 1));
	else
		sem_post(&spawner.end);
	return NULL;
}

static void spawn(struct run *r)
{
	sem_init(&spawner.end, 0, 0);
	spawner.n = r->n / r->share;
	spawner.threads[0] = start(spawns_next, NULL);
	sem_wait(&spawner.end);
	pthread_join(spawner.threads[(spawner.n - 1) % 2], NULL);
	r->ops = (uint64_t)spawner.ended;
	r->result = spawner.ended * r->share;
}

static struct ring {
	sem_t *sems;
	int64_t tasks, rounds;
} ring;

static void *turns(void *which)
{
	intptr_t i = (intptr_t)which;

	for (int64_t k = 0; k < ring.rounds; k++) {
		sem_wait(&ring.sems[i]);
		sem_post(&ring.sems[(i + 1) % ring.tasks]);
	}
	return NULL;
}

static void sem_ring(struct run *r)
{
	pthread_t *all = calloc((size_t)r->tasks, sizeof *all);

	ring = (struct ring){calloc((size_t)r->tasks, sizeof *ring.sems), r->tasks, r->n / r->tasks / r->share};
	if (!all || !ring.sems)
		lab_die("calloc");
	on_one_core();
	for (int64_t i = 0; i < r->tasks; i++)
		sem_init(&ring.sems[i], 0, 0);
	for (intptr_t i = 0; i < r->tasks; i++)
		all[i] = start(turns, (void *)i);
	sem_post(&ring.sems[0]);
	for (int64_t i = 0; i < r->tasks; i++)
		pthread_join(all[i], NULL);
	r->ops = (uint64_t)(ring.rounds * r->tasks);
	r->result = r->n;
	free(ring.sems);
	free(all);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static int64_t waiting; /* atomic */
static sem_t gate;

static void *waits(void *unused)
{
	__atomic_fetch_add(&waiting, 1, __ATOMIC_RELAXED);
	sem_wait(&gate);
	return unused;
}

/* The bytes of all threads' stacks in the kernel, of every process: no other process may start or end many threads
 * during a measurement. */
static uint64_t kernel_stacks(void)
{
	return lab_process_bytes("meminfo", "KernelStack:");
}

/* Creates threads that wait, until their memory reaches the budget, or the system refuses more. Their kernel stacks
 * count, too. */
static int memory(uint64_t budget)
{
	uint64_t resident = lab_resident(), tables = lab_page_tables(), stacks = kernel_stacks(), more = 0;
	int64_t made = 0;
	pthread_attr_t detached;
	pthread_t thread;

	sem_init(&gate, 0, 0);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	lab_start();
	while (lab_has_room(resident, more < budget ? budget - more : 0) &&
	       !pthread_create(&thread, &detached, waits, NULL)) {
		made++;
		while (__atomic_load_n(&waiting, __ATOMIC_RELAXED) < made)
			sched_yield();
		if (made % 64 == 0)
			more = kernel_stacks() - stacks;
	}
	lab_stop();
	return lab_report_memory((uint64_t)made, resident + stacks - kernel_stacks(), tables, waiting == made);
}

static const struct {
	const char *name;
	void (*run)(struct run *r);
} cases[] = {{"spawn_join", spawn_join}, {"yield", yield}, {"hop", hop_on_one_core}, {"hop2", hop},
	     {"mutex", mutex},		 {"spawn", spawn}, {"chain", chain},	     {"ring", sem_ring}};

int main(int argc, char **argv)
{
	struct run r = {.n = lab_number(argc, argv, "n", 1000),
			.share = lab_number(argc, argv, "share", 1),
			.tasks = lab_number(argc, argv, "tasks", 100)};
	size_t i = 0, count = sizeof(cases) / sizeof(*cases);

	if (lab_is(argc, argv, "case", "memory"))
		return memory((uint64_t)lab_number(argc, argv, "mb", 1) << 20);
	while (i < count && !lab_is(argc, argv, "case", cases[i].name))
		i++;
	if (i == count)
		lab_die("no such case");
	lab_start();
	cases[i].run(&r);
	lab_stop();
	return lab_report(r.ops, r.result);
}
