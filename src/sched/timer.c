/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timers: a hierarchical wheel for each worker (Varghese and Lauck), which any worker may turn. Arming and disarming
 * take one lock and touch a few cache lines, however many timers there are.
 *
 * Rejected: a heap. It finds the earliest at once, but a timer that is disarmed, as nearly all are, costs its depth in
 * cache misses.
 */
#include "sched/sched.h"

/* Of one turn: who is woken has room in a worker's ring, and runs while it is in the cache. The rest is for the next
 * look, which comes at once. */
enum { ENOUGH = 128 };

static unsigned digit(uint64_t tick, unsigned level)
{
	return tick >> 6 * level & 63;
}

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now)
{
	wheel->tick = now >> WEFT__TICK;
	wheel->next = WEFT_NEVER;
}

/* The level of the highest digit that differs: 64 - 14 bits have nine digits. */
static unsigned level_of(const struct weft__wheel *wheel, uint64_t tick)
{
	uint64_t differs = tick ^ wheel->tick;

	return differs ? (unsigned)(63 - __builtin_clzll(differs)) / 6 : 0;
}

static void insert(struct weft__wheel *wheel, struct weft__timer *t)
{
	uint64_t tick = t->at >> WEFT__TICK;
	struct weft__timer **list;
	unsigned level;

	if (tick < wheel->tick)
		tick = wheel->tick;
	level = level_of(wheel, tick);
	list = &wheel->lists[level][digit(tick, level)];
	t->next = *list;
	if (t->next)
		t->next->at_link = &t->next;
	t->at_link = list;
	*list = t;
	wheel->used[level] |= (uint64_t)1 << digit(tick, level);
}

/* The bit of a list that became empty stays until the wheel gets there. */
static void take_out(struct weft__timer *t)
{
	*t->at_link = t->next;
	if (t->next)
		t->next->at_link = t->at_link;
	t->at_link = NULL;
}

void weft__timer_arm(struct weft__wheel *wheel, struct weft__timer *t)
{
	weft__task_lock(&wheel->lock);
	t->wheel = wheel;
	t->firing = 0;
	insert(wheel, t);
	if (t->at < wheel->next)
		__atomic_store_n(&wheel->next, t->at, __ATOMIC_RELAXED);
	weft__spin_unlock(&wheel->lock);
}

void weft__timer_take_out(struct weft__timer *t)
{
	struct weft__wheel *wheel = t->wheel;
	unsigned turns = 0;

	weft__task_lock(&wheel->lock);
	if (t->at_link)
		take_out(t);
	weft__spin_unlock(&wheel->lock);
	/* Acquire: pairs with the end of finish(). Only of scopes: whoever ends a waiter has claimed it. */
	while (__atomic_load_n(&t->firing, __ATOMIC_ACQUIRE))
		weft__pause(&turns);
	t->wheel = NULL;
}

static void push(struct weft__timer **list, struct weft__timer *t)
{
	t->next = *list;
	*list = t;
}

/* Out of the list into `due`, unless somebody else ends that wait. */
static bool take_due(struct weft__timer *t, struct weft__timer **due)
{
	take_out(t);
	if (t->is_scope)
		t->firing = 1;
	else if (!weft_waiter_claim(WEFT__OF_TIMER(t), -ETIMEDOUT))
		return false;
	push(due, t);
	return true;
}

/* The start of the earliest list, or WEFT_NEVER. */
static uint64_t earliest_list(const struct weft__wheel *wheel, unsigned *level, unsigned *place)
{
	uint64_t tick;

	for (*level = 0; *level < WEFT__LEVELS; ++*level) {
		if (!wheel->used[*level])
			continue;
		*place = (unsigned)__builtin_ctzll(wheel->used[*level]);
		tick = *level + 1 < WEFT__LEVELS ? wheel->tick >> 6 * (*level + 1) << 6 * (*level + 1) : 0;
		return tick | (uint64_t)*place << 6 * *level;
	}
	return WEFT_NEVER;
}

/* Empty one list: timers that are due, those of a level above into lower ones. Others of the current tick stay.
 * Returns how many are due. */
static unsigned empty(struct weft__wheel *wheel, unsigned level, unsigned place, uint64_t now, struct weft__timer **due)
{
	struct weft__timer **list = &wheel->lists[level][place], *t = *list, *next;
	unsigned count = 0;

	for (; t; t = next) {
		next = t->next;
		if (t->at <= now || WEFT_CANARY(timers_are_early)) {
			count += take_due(t, due);
		} else if (level) {
			take_out(t);
			insert(wheel, t);
		}
	}
	if (!*list)
		wheel->used[level] &= ~((uint64_t)1 << place);
	return count;
}

/* When it is to be turned next. A long list is not looked through: its start is early enough. */
static uint64_t next_of(struct weft__wheel *wheel)
{
	unsigned level, place, looked = 0;
	uint64_t start = earliest_list(wheel, &level, &place), next = WEFT_NEVER;
	const struct weft__timer *t;

	if (start == WEFT_NEVER)
		return WEFT_NEVER;
	for (t = wheel->lists[level][place]; t; t = t->next) {
		if (++looked > 64)
			return start << WEFT__TICK;
		if (t->at < next)
			next = t->at;
	}
	return t || next != WEFT_NEVER ? next : start << WEFT__TICK;
}

/* Two sorted lists in one. Equal times: those of `a` first. */
static struct weft__timer *merge(struct weft__timer *a, struct weft__timer *b)
{
	struct weft__timer *merged, **end = &merged;

	while (a && b) {
		struct weft__timer **less = b->at < a->at ? &b : &a;

		*end = *less;
		end = &(*less)->next;
		*less = *end;
	}
	*end = a ? a : b;
	return merged;
}

/* By time: what a tick's list has is in any order. Merges lists of 2^i timers, as a binary counter carries. */
static struct weft__timer *sorted(struct weft__timer *list)
{
	struct weft__timer *runs[48] = {NULL}, *next, *all = NULL;
	unsigned i;

	for (; list; list = next) {
		next = list->next;
		list->next = NULL;
		for (i = 0; runs[i]; i++) {
			list = merge(runs[i], list);
			runs[i] = NULL;
		}
		runs[i] = list;
	}
	for (i = 0; i < 48; i++)
		all = merge(runs[i], all);
	return all;
}

static void finish(struct weft__timer *due)
{
	struct weft__timer *next;

	for (; due; due = next) {
		next = due->next;
		if (due->is_scope)
			weft__scope_expired(due);
		else
			weft_waiter_complete(WEFT__OF_TIMER(due));
	}
}

unsigned weft__wheel_turn(struct weft__wheel *wheel, uint64_t now)
{
	unsigned level, place, count = 0;
	struct weft__timer *due = NULL;
	uint64_t start;

	weft__spin_lock(&wheel->lock);
	while ((start = earliest_list(wheel, &level, &place)) != WEFT_NEVER && start <= now >> WEFT__TICK &&
	       count < ENOUGH) {
		if (start > wheel->tick)
			wheel->tick = start;
		count += empty(wheel, level, place, now, &due);
		if (!level && wheel->lists[0][place])
			break; /* later in this very tick */
	}
	if (count < ENOUGH && now >> WEFT__TICK > wheel->tick)
		wheel->tick = now >> WEFT__TICK;
	__atomic_store_n(&wheel->next, next_of(wheel), __ATOMIC_RELAXED);
	weft__spin_unlock(&wheel->lock);
	finish(sorted(due));
	return count;
}
