/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A worker's queues, of four places: every task is taken exactly once, by a worker that sees everything written to it
 * before. */
#include "checker.h"
#include <string.h>

#include "sched/queue.h"

enum { TASKS = 8 };

static struct weft__ring ring, thiefs, seconds;
static struct weft__fresh fresh, thiefs_fresh;
static struct weft__task tasks[TASKS];
static unsigned char taken[TASKS];

static void empty_queues(void)
{
	ring = thiefs = seconds = (struct weft__ring){0};
	fresh = thiefs_fresh = (struct weft__fresh){0};
	memset(tasks, 0, sizeof tasks);
	memset(taken, 0, sizeof taken);
}

static void take(struct weft__task *task)
{
	if (!task)
		return;
	HOLDS(task >= tasks && task < tasks + TASKS);
	HOLDS(task->error == (int)(task - tasks) + 1);
	taken[task - tasks]++;
}

static struct weft__task *make(unsigned i)
{
	tasks[i].error = (int)i + 1;
	return &tasks[i];
}

static void each_was_taken_once(unsigned count)
{
	struct weft__task *task;

	while ((task = weft__ring_take(&ring)) || (task = weft__ring_take(&thiefs)) ||
	       (task = weft__ring_take(&seconds)) || (task = weft__fresh_take(&fresh)) ||
	       (task = weft__fresh_take(&thiefs_fresh)))
		take(task);
	for (unsigned i = 0; i < count; i++)
		HOLDS(taken[i] == 1);
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static void owner(void)
{
	HOLDS(weft__ring_add(&ring, make(0)));
	HOLDS(weft__ring_add(&ring, make(1)));
	take(weft__ring_take(&ring));
	HOLDS(weft__ring_add(&ring, make(2)));
	take(weft__ring_take(&ring));
}

static void thief(void)
{
	take(weft__ring_steal(&ring, &thiefs));
	take(weft__ring_take(&thiefs));
}

static void second_thief(void)
{
	take(weft__ring_steal(&ring, &seconds));
}

static void relieves(void)
{
	take(weft__ring_take_from(&ring));
	take(weft__ring_take_from(&ring));
}

static void owner_and_thief_end(void)
{
	each_was_taken_once(3);
}

/* The thief is nearly a lap behind: the owner reuses places that the thief is reading. */
static void nearly_full(void)
{
	empty_queues();
	for (unsigned i = 0; i < WEFT__RING; i++)
		HOLDS(weft__ring_add(&ring, make(i)));
}

static void owner_reuses(void)
{
	take(weft__ring_take(&ring));
	if (weft__ring_add(&ring, make(4)))
		orders_saw(0);
	else
		taken[4]++;
	take(weft__ring_take(&ring));
	if (weft__ring_add(&ring, make(5)))
		orders_saw(1);
	else
		taken[5]++;
}

static void owner_reuses_end(void)
{
	each_was_taken_once(6);
}

static void takes_half(void)
{
	struct weft__task *half[WEFT__RING / 2];
	unsigned count = weft__ring_take_half(&ring, half);

	for (unsigned i = 0; i < count; i++)
		take(half[i]);
	HOLDS(weft__ring_add(&ring, make(4)));
}

static void takes_half_end(void)
{
	each_was_taken_once(5);
}

/* ---- spawned tasks ----------------------------------------------------------------------------------------------- */

static void fresh_owner(void)
{
	HOLDS(weft__fresh_add(&fresh, make(0)));
	HOLDS(weft__fresh_add(&fresh, make(1)));
	take(weft__fresh_take(&fresh));
	HOLDS(weft__fresh_add(&fresh, make(2)));
}

static void fresh_thief(void)
{
	struct weft__task *half[WEFT__RING];
	unsigned count = weft__fresh_take_half(&fresh, half);

	for (unsigned i = 0; i < count; i++)
		take(half[i]);
}

static void fresh_oldest(void)
{
	take(weft__fresh_take_oldest(&fresh));
}

static void fresh_full(void)
{
	empty_queues();
	for (unsigned i = 0; i < WEFT__RING; i++)
		HOLDS(weft__fresh_add(&fresh, make(i)));
}

static void fresh_reuses(void)
{
	take(weft__fresh_take(&fresh));
	take(weft__fresh_take(&fresh));
	HOLDS(weft__fresh_add(&fresh, make(4)));
	HOLDS(weft__fresh_add(&fresh, make(5)));
}

const struct scenario queue_scenarios[] = {
    {.name = "ring", .begin = empty_queues, .thread = {owner, thief}, .end = owner_and_thief_end},
    {.name = "ring_two_thieves",
     .begin = empty_queues,
     .thread = {owner, thief, second_thief},
     .stale = 1,
     .end = owner_and_thief_end},
    {.name = "ring_reused", .begin = nearly_full, .thread = {owner_reuses, thief}, .end = owner_reuses_end},
    {.name = "ring_relieved", .begin = empty_queues, .thread = {owner, relieves}, .end = owner_and_thief_end},
    {.name = "ring_relieved_and_reused",
     .begin = nearly_full,
     .thread = {owner_reuses, relieves},
     .end = owner_reuses_end},
    {.name = "ring_half", .begin = nearly_full, .thread = {takes_half, thief}, .end = takes_half_end},
    {.name = "fresh", .begin = empty_queues, .thread = {fresh_owner, fresh_thief}, .end = owner_and_thief_end},
    {.name = "fresh_two_thieves",
     .begin = empty_queues,
     .thread = {fresh_owner, fresh_thief, fresh_oldest},
     .end = owner_and_thief_end},
    {.name = "fresh_reused", .begin = fresh_full, .thread = {fresh_reuses, fresh_thief}, .end = owner_reuses_end},
    {.name = NULL},
};
