/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * actors.h: libseff's actors on top of scheff.h: tasks with a mailbox, which is a channel of weft/sync.h. Programs
 * written for it compile unchanged.
 *
 * Messages are pointers, not NULL; the program decides who owns their targets. The scheduler owns an actor that
 * fork_actor made, until actor_start or scheff_run returns; a message to an actor that has ended is dropped.
 *
 * Differences that are improvements: an actor that waits for messages costs no time; the memory of an ended actor is
 * freed.
 *
 * Source of the interface: libseff; none of its code.
 */
#ifndef SEFF_ACTORS_H
#define SEFF_ACTORS_H

#include <weft/sync.h>

#include "scheff.h"

WEFT_EXTERN_C_BEGIN

/** Messages that a mailbox of fork_actor has room for; then senders wait. */
#define DEFAULT_MAILBOX_CAPACITY 128

struct actor_t;
typedef void *(actor_fn_t)(struct actor_t *self);

/** An actor; private. */
typedef struct actor_t {
	weft_chan_t *actor__mailbox;
	actor_fn_t *actor__behavior;
	struct actor_t *actor__next; /* in the scheduler's list */
} actor_t;

/** An actor in the caller's storage, without a task. False: no memory. */
WEFT__HELPER bool actor_init(actor_t *actor, actor_fn_t *behavior, size_t mailbox_capacity)
{
	memset(actor, 0, sizeof *actor);
	actor->actor__behavior = behavior;
	actor->actor__mailbox = weft_chan_make(sizeof(void *), mailbox_capacity);
	return actor->actor__mailbox != NULL;
}

/** Give the mailbox back; nobody may be using it. */
WEFT__HELPER void actor_destroy(actor_t *actor)
{
	(void)weft_chan_free(actor->actor__mailbox);
	actor->actor__mailbox = NULL;
}

/** Without waiting: false if the mailbox is full. From any thread. */
WEFT__HELPER bool actor_insert_msg(actor_t *actor, void *msg)
{
	return weft_chan_send_until(actor->actor__mailbox, &msg, 0) == 0;
}

/** Without waiting: NULL if there is none. */
WEFT__HELPER void *actor_remove_msg(actor_t *actor)
{
	void *msg;

	return weft_chan_receive_until(actor->actor__mailbox, &msg, 0) == 0 ? msg : NULL;
}

/** In a task: returns the oldest message, and waits if there is none. */
WEFT__HELPER void *actor_recv(actor_t *act)
{
	void *msg;

	return weft_chan_receive(act->actor__mailbox, &msg) == 0 ? msg : NULL;
}

/** In a task: waits while the mailbox is full. */
WEFT__HELPER void actor_send(actor_t *target, void *msg)
{
	(void)weft_chan_send(target->actor__mailbox, &msg);
}

WEFT__HELPER void actor__ends(actor_t **self)
{
	weft_chan_close((*self)->actor__mailbox);
}

WEFT__HELPER void *actor__run(void *actor)
{
	actor_t *self = (actor_t *)actor;

	weft_defer(actor__ends, &self);
	return self->actor__behavior(self);
}

/** In a task: start an actor. No memory: reported, and the process ends. */
WEFT__HELPER actor_t *fork_actor(actor_fn_t *behavior)
{
	scheff_t *scheduler = scheff__current("fork_actor");
	actor_t *actor = (actor_t *)malloc(sizeof *actor);

	if (!actor || !actor_init(actor, behavior, DEFAULT_MAILBOX_CAPACITY))
		scheff__die("fork_actor", -ENOMEM);
	actor->actor__next = __atomic_load_n(&scheduler->scheff__actors, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&scheduler->scheff__actors, &actor->actor__next, actor, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	scheff_fork(actor__run, actor);
	return actor;
}

/* For scheff_run, which may be compiled where no actors are. */
__attribute__((weak)) void scheff__free_actors(struct actor_t *first)
{
	struct actor_t *actor;

	while ((actor = first)) {
		first = actor->actor__next;
		actor_destroy(actor);
		free(actor);
	}
}

/** Run main_actor(arg) as the first task of so many workers, with all actors that it forks, until the last has ended.
 */
WEFT__HELPER void actor_start(seff_start_fun_t *main_actor, void *arg, size_t threads, bool print_sched_stats)
{
	scheff_t scheduler;
	int error = scheff_init(&scheduler, threads) ? 0 : -EINVAL;

	if (!error && !scheff_schedule(&scheduler, main_actor, arg))
		error = -ENOMEM;
	if (error)
		scheff__die("actor_start", error);
	scheff_run(&scheduler);
	if (print_sched_stats)
		scheff_print_stats(&scheduler);
}

WEFT_EXTERN_C_END

#endif /* SEFF_ACTORS_H */
