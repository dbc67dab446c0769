/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lookup.c: looks up the addresses of six names: sequentially, all at once, three at a time, and with a deadline. A
 * handler of `io` between the asking task and its runtime plays the resolver's delays. The program simulates itself: so
 * it has a network in memory that knows the names, and takes the same time every time. By weft_rt_run the same tasks
 * ask the real resolver.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>
#include <weft/sim.h>

#define MS 1000000ull

enum { NAMES = 6, AT_ONCE = 3, PATIENCE = 25 /* milliseconds */ };

static const struct {
	const char *name;
	uint64_t takes; /* milliseconds until the answer */
} hosts[NAMES] = {{"alpha", 40}, {"bravo", 10}, {"charlie", 30}, {"delta", 20}, {"echo", 10}, {"foxtrot", 30}};

struct question {
	const char *name;
	uint64_t takes, deadline; /* milliseconds; a time of weft_now() */
	weft_sem_t *free;	  /* released after the answer; NULL: none */
	int found;		  /* addresses, or a negative errno */
	weft_address_t address;
};

/* doc: begin resolver */
/* Answers late, or too late. Operations that are not look-ups are forwarded at once. */
static int answer_late(void *state, weft_io_t *io)
{
	const struct question *q = state;
	uint64_t answered = weft_now() + q->takes * MS;

	if (io->kind != WEFT_IO_CALL)
		return weft_op_io(io);
	weft_sleep_until(answered < io->deadline ? answered : io->deadline);
	if (answered < io->deadline)
		return weft_op_io(io); /* to the next enclosing handler: the runtime */
	io->result = -ETIMEDOUT;
	return WEFT_IO_DONE;
}

WEFT_HANDLER(slow_resolver, weft_tail(weft_op_io, answer_late));
/* doc: end */

static void *ask(void *argument)
{
	struct question *q = argument;

	q->found = weft_resolve_until(q->name, NULL, SOCK_STREAM, &q->address, 1, q->deadline);
	return NULL;
}

static void give_back(weft_sem_t **permit)
{
	if (*permit)
		weft_sem_give(*permit, 1);
}

static void *look_up(void *argument)
{
	/* Frames of a waiting task must not move. */
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT};
	struct question *q = argument;

	weft_defer(give_back, &q->free);
	q->found = -ENOMEM; /* if there is no memory for the handler's coroutine */
	weft_run_with(&slow_resolver, q, ask, q, &attr);
	if (q->found == -ENOMEM)
		weft_task_fail(q->found);
	return NULL;
}

static void one_after_another(struct question *questions)
{
	for (int i = 0; i < NAMES; i++)
		look_up(&questions[i]);
}

static void at_most(size_t permits, struct question *questions)
{
	weft_sem_t free = WEFT_SEM(permits);
	int i, error = 0;

	WEFT_SCOPE(scope);
	for (i = 0; i < NAMES && !error; i++) {
		questions[i].free = &free;
		error = weft_sem_take(&free);
		if (!error)
			error = weft_scope_spawn(&scope, look_up, &questions[i]);
	}
	if (error)
		weft_scope_cancel(&scope, error);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
}

static void all_at_once(struct question *questions)
{
	at_most(NAMES, questions);
}

static void some_at_once(struct question *questions)
{
	at_most(AT_ONCE, questions);
}

static void print_address(const struct question *q)
{
	char text[INET_ADDRSTRLEN];

	if (q->found == -ETIMEDOUT)
		printf("    %s: too late\n", q->name);
	else
		printf("    %s: %s\n", q->name,
		       inet_ntop(AF_INET, &((const struct sockaddr_in *)&q->address.address)->sin_addr, text,
				 sizeof text));
}

static void show(const char *how, void (*fn)(struct question *), uint64_t patience, bool all)
{
	struct question questions[NAMES];
	uint64_t begin = weft_now();
	int i, found = 0;

	for (i = 0; i < NAMES; i++)
		questions[i] = (struct question){.name = hosts[i].name,
						 .takes = hosts[i].takes,
						 .deadline = patience ? begin + patience * MS : WEFT_NEVER};
	fn(questions);
	for (i = 0; i < NAMES; i++) {
		if (questions[i].found < 0 && questions[i].found != -ETIMEDOUT)
			weft_task_fail(questions[i].found);
		found += questions[i].found > 0;
	}
	printf("%s: %d found in %d ms\n", how, found, (int)((weft_now() - begin) / MS));
	for (i = 0; i < NAMES && all; i++)
		print_address(&questions[i]);
}

static void *run(void *unused)
{
	int i, error = weft_world_set(&(weft_world_t){.flags = WEFT_WORLD_PROMPT});

	for (i = 0; i < NAMES && !error; i++)
		error = weft_world_host(hosts[i].name);
	if (error)
		weft_task_fail(error);
	show("one after another", one_after_another, 0, false);
	show("all at once", all_at_once, 0, false);
	show("three at a time", some_at_once, 0, false);
	show("all at once, for 25 ms", all_at_once, PATIENCE, true);
	return unused;
}

int main(void)
{
	int error = weft_simulate(1, NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "lookup: %s\n", strerror(-error));
	return error != 0;
}
