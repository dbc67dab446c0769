/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timers: a hierarchical wheel for each worker (Varghese and Lauck), which any worker may turn. Arming and disarming
 * take one lock and touch a few cache lines, however many timers there are.
 *
 * A timer is in the frame of a task, and the frames of a million tasks are a million pages, which neither the caches
 * nor the TLB hold. So a list is an array that has each timer's time beside its address: the timer itself is touched
 * when it is armed and when it is due, and not when a list of a higher level is spread over lower lists. Such a move
 * leaves the timer's `entry` wrong, and this can be detected: that entry does not point to the timer. A thread that
 * disarms such a timer corrects `entry` for all timers of its list. A list is corrected at most once after it was
 * filled, so disarming takes constant time on average.
 *
 * Rejected: a heap. It finds the earliest timer at once, but a timer that is disarmed, as nearly all are, costs its
 * depth in cache misses. Rejected: lists through the timers themselves. They need no memory, but walking such a list
 * costs a cache miss for each timer, and no miss can begin before the previous miss has ended.
 */
#include <stdlib.h>

#include "sched/sched.h"

enum {
#ifdef WEFT_TINY
	SLAB = 4,
#else
	SLAB = 128, /* 64 KiB */
#endif
	SPARE = SLAB / 2, /* pieces that are available at least when a turn begins: a list may be spread over 64 */
	/* A worker that sleeps until a timer, and wakes, spends ten to twenty microseconds on that, as much as on fifty
	 * timers. So timers that are closer together than that are waited for together, and are late by half a
	 * millisecond at most. With 32 ticks, sleeps of 30 000 tasks take two thirds to three quarters of the time that
	 * they take with 10 ticks. */
	TOGETHER = 32,
	CROWD = 20,
};

struct weft__timer_slab {
	struct weft__timer_slab *next;
	size_t used; /* pieces from this index on were never taken, and have no pages yet */
	struct weft__piece pieces[SLAB];
};

/* The `entry` of timers in the list `loose`, which could not get memory. */
static struct weft__entry loose;

static unsigned digit(uint64_t tick, unsigned level)
{
	return tick >> 6 * level & 63;
}

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now)
{
	wheel->tick = now >> WEFT__TICK;
	wheel->next = WEFT_NEVER;
}

void weft__wheel_free(struct weft__wheel *wheel)
{
	struct weft__timer_slab *next;

	for (; wheel->slabs; wheel->slabs = next) {
		next = wheel->slabs->next;
		free(wheel->slabs);
	}
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

static size_t count_unused(const struct weft__wheel *wheel)
{
	return wheel->slabs ? SLAB - wheel->slabs->used : 0;
}

static struct weft__piece *take_unused(struct weft__wheel *wheel)
{
	return &wheel->slabs->pieces[wheel->slabs->used++];
}

static void give_piece(struct weft__wheel *wheel, struct weft__piece *piece)
{
	piece->next = wheel->free;
	wheel->free = piece;
	wheel->free_count++;
}

static struct weft__piece *take_piece(struct weft__wheel *wheel)
{
	struct weft__piece *piece = wheel->free;

	if (piece) {
		wheel->free = piece->next;
		wheel->free_count--;
	} else if (count_unused(wheel)) {
		piece = take_unused(wheel);
	} else {
		return NULL;
	}
	piece->count = 0;
	return piece;
}

static void add_slab(struct weft__wheel *wheel, struct weft__timer_slab *slab)
{
	while (count_unused(wheel))
		give_piece(wheel, take_unused(wheel));
	slab->next = wheel->slabs;
	slab->used = 0;
	wheel->slabs = slab;
}

/* Lock the wheel, with SPARE pieces if there is memory: none is allocated under the lock. */
static void lock_with_room(struct weft__wheel *wheel)
{
	struct weft__timer_slab *slab;

	weft__task_lock(&wheel->lock);
	if (weft__likely(wheel->free_count + count_unused(wheel) >= SPARE))
		return;
	weft__spin_unlock(&wheel->lock);
	slab = malloc(sizeof *slab);
	weft__task_lock(&wheel->lock);
	if (slab)
		add_slab(wheel, slab);
}

/* ---- lists ----------------------------------------------------------------------------------------------------- */

/* The level of the highest digit that differs: 64 - 14 bits have nine digits. */
static unsigned level_of(const struct weft__wheel *wheel, uint64_t tick)
{
	uint64_t differs = tick ^ wheel->tick;

	return differs ? (unsigned)(63 - __builtin_clzll(differs)) / 6 : 0;
}

/* The number of the list for a time. */
static unsigned list_of(const struct weft__wheel *wheel, uint64_t at)
{
	uint64_t tick = at >> WEFT__TICK;
	unsigned level;

	if (tick < wheel->tick)
		tick = wheel->tick;
	level = level_of(wheel, tick);
	return level * 64 + digit(tick, level);
}

static void make_loose(struct weft__wheel *wheel, struct weft__timer *t)
{
	t->next = wheel->loose;
	t->entry = &loose;
	wheel->loose = t;
}

/* Returns the entry, for the timer's `entry`; NULL: there is no memory. */
static struct weft__entry *insert(struct weft__wheel *wheel, uint64_t at, struct weft__timer *t)
{
	unsigned number = list_of(wheel, at);
	struct weft__piece *first = wheel->lists[number], *piece;
	struct weft__entry *entry;

	if (!first || first->count == WEFT__PIECE) {
		piece = take_piece(wheel);
		if (!piece)
			return NULL;
		piece->next = first;
		first = wheel->lists[number] = piece;
		wheel->used[number / 64] |= (uint64_t)1 << number % 64;
	}
	entry = &first->entries[first->count++];
	*entry = (struct weft__entry){at, t};
	return entry;
}

static void put(struct weft__wheel *wheel, struct weft__timer *t)
{
	t->entry = insert(wheel, t->at, t);
	if (!t->entry)
		make_loose(wheel, t);
}

static void mend(struct weft__piece *piece)
{
	for (; piece; piece = piece->next)
		for (size_t i = 0; i < piece->count; i++)
			piece->entries[i].timer->entry = &piece->entries[i];
}

/* Move the list's last entry to the timer's place. */
static void take_out(struct weft__wheel *wheel, struct weft__timer *t)
{
	unsigned number = list_of(wheel, t->at);
	struct weft__piece *first = wheel->lists[number];
	struct weft__entry *last;

	if (t->entry->timer != t && WEFT_NO_CANARY(moved_timers_are_lost))
		mend(first);
	last = &first->entries[--first->count];
	*t->entry = *last;
	last->timer->entry = t->entry;
	last->timer = NULL;
	if (first->count)
		return;
	wheel->lists[number] = first->next;
	if (!first->next)
		wheel->used[number / 64] &= ~((uint64_t)1 << number % 64);
	give_piece(wheel, first);
}

static void take_out_loose(struct weft__wheel *wheel, struct weft__timer *t)
{
	struct weft__timer **at = &wheel->loose;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
}

void weft__timer_arm(struct weft__wheel *wheel, struct weft__timer *t)
{
	lock_with_room(wheel);
	t->wheel = wheel;
	t->firing = 0;
	put(wheel, t);
	if (t->at < wheel->next)
		__atomic_store_n(&wheel->next, t->at, __ATOMIC_RELAXED);
	weft__spin_unlock(&wheel->lock);
}

void weft__timer_take_out(struct weft__timer *t)
{
	struct weft__wheel *wheel = t->wheel;
	unsigned turns = 0;

	weft__task_lock(&wheel->lock);
	if (t->entry == &loose)
		take_out_loose(wheel, t);
	else if (t->entry)
		take_out(wheel, t);
	weft__spin_unlock(&wheel->lock);
	/* Acquire: pairs with the end of finish(). Only for timers of scopes: a thread that completes a waiter has
	 * claimed it. */
	while (__atomic_load_n(&t->firing, __ATOMIC_ACQUIRE))
		weft__pause(&turns);
	t->wheel = NULL;
}

/* ---- turning ----------------------------------------------------------------------------------------------------- */

static void push(struct weft__timer **list, struct weft__timer *t)
{
	t->next = *list;
	*list = t;
}

/* Move a timer that is in no list any more to `due`, unless another thread ends that wait. */
static bool take_due(struct weft__timer *t, struct weft__timer **due)
{
	if (t->is_scope) {
		t->firing = 1;
		t->entry = NULL;
	} else if (weft_waiter_claim(WEFT__OF_TIMER(t), -ETIMEDOUT)) {
		t->wheel = NULL; /* then the end of the wait need not lock the wheel */
		weft__prefetch_task(WEFT__OF_TIMER(t)->owner);
	} else {
		t->entry = NULL;
		return false;
	}
	push(due, t);
	return true;
}

/* The start of the earliest list, in ticks, or WEFT_NEVER. */
static uint64_t earliest_list(const struct weft__wheel *wheel, unsigned *number)
{
	unsigned level, place;
	uint64_t tick;

	for (level = 0; level < WEFT__LEVELS; level++) {
		if (!wheel->used[level])
			continue;
		place = (unsigned)__builtin_ctzll(wheel->used[level]);
		*number = level * 64 + place;
		tick = level + 1 < WEFT__LEVELS ? wheel->tick >> 6 * (level + 1) << 6 * (level + 1) : 0;
		return tick | (uint64_t)place << 6 * level;
	}
	return WEFT_NEVER;
}

/* Returns the number of due timers. */
static unsigned prefetch_due(const struct weft__piece *piece, uint64_t now)
{
	unsigned count = 0;

	for (; piece; piece = piece->next)
		for (size_t i = 0; i < piece->count; i++)
			if (piece->entries[i].at <= now) {
				weft__prefetch_waiter(WEFT__OF_TIMER(piece->entries[i].timer));
				count++;
			}
	return count;
}

/* Prefetch all timers that a turn is about to complete: the processor loads many timers at a time, and misses once for
 * each page. */
static void prefetch_turn(const struct weft__wheel *wheel, uint64_t now, unsigned most)
{
	uint64_t used = wheel->used[0];
	unsigned count = 0, place;

	for (; used && count < most; used &= used - 1) {
		place = (unsigned)__builtin_ctzll(used);
		if ((wheel->tick & ~(uint64_t)63) + place > now >> WEFT__TICK)
			break;
		count += prefetch_due(wheel->lists[place], now);
	}
}

/* Move the piece's timers that are due to `due`, and the rest into lower lists, or again into the list of the current
 * tick. A higher list may have more due timers than a turn should wake: these go into lower lists, too. Returns the
 * number of due timers. */
static unsigned empty_piece(struct weft__wheel *wheel, struct weft__piece *piece, uint64_t due_until,
			    struct weft__timer **due)
{
	unsigned count = 0;

	while (piece->count) {
		struct weft__entry entry = piece->entries[--piece->count];

		piece->entries[piece->count].timer = NULL;
		if (entry.at < due_until)
			count += take_due(entry.timer, due);
		else if (!insert(wheel, entry.at, entry.timer))
			make_loose(wheel, entry.timer);
	}
	give_piece(wheel, piece);
	return count;
}

static unsigned empty(struct weft__wheel *wheel, unsigned number, uint64_t now, struct weft__timer **due)
{
	struct weft__piece *piece = wheel->lists[number], *next;
	uint64_t due_until = WEFT_CANARY(timers_are_early) ? WEFT_NEVER : number < 64 ? now + 1 : 0;
	unsigned count = 0;

	wheel->lists[number] = NULL;
	wheel->used[number / 64] &= ~((uint64_t)1 << number % 64);
	for (; piece; piece = next) {
		next = piece->next;
		count += empty_piece(wheel, piece, due_until, due);
	}
	return count;
}

/* Treat timers of `loose` as if the wheel had reached their list. */
static WEFT__COLD unsigned empty_loose(struct weft__wheel *wheel, uint64_t now, struct weft__timer **due)
{
	struct weft__timer *t = wheel->loose, *next;
	unsigned count = 0;

	wheel->loose = NULL;
	for (; t; t = next) {
		next = t->next;
		if (t->at <= now)
			count += take_due(t, due);
		else
			put(wheel, t);
	}
	return count;
}

/* The time of the earliest timer of a list, or `next` if that is earlier. */
static uint64_t earliest_of(const struct weft__piece *piece, uint64_t next)
{
	for (; piece; piece = piece->next)
		for (size_t i = 0; i < piece->count; i++)
			next = piece->entries[i].at < next ? piece->entries[i].at : next;
	return next;
}

/* Are so many timers due within TOGETHER ticks from this tick on that they should be waited for together? */
static bool is_crowded(const struct weft__wheel *wheel, uint64_t tick)
{
	unsigned place = tick % 64, end = place + TOGETHER < 64 ? place + TOGETHER : 64;
	size_t count = 0;

	for (; place < end; place++)
		if (wheel->lists[place])
			count += wheel->lists[place]->count;
	return count >= CROWD && !wheel->exact;
}

/* When the wheel must be turned next. The timers of a higher list are not compared: the list's start is early
 * enough. */
static uint64_t next_of(const struct weft__wheel *wheel)
{
	uint64_t next = WEFT_NEVER, start;
	const struct weft__timer *t;
	unsigned number;

	for (t = wheel->loose; t; t = t->next)
		next = t->at < next ? t->at : next;
	start = earliest_list(wheel, &number);
	if (start == WEFT_NEVER)
		return next;
	if (number < 64 && is_crowded(wheel, start))
		start += TOGETHER;
	else if (number < 64)
		return earliest_of(wheel->lists[number], next);
	return start << WEFT__TICK < next ? start << WEFT__TICK : next;
}

/* Merge two sorted lists. At equal times, timers of `a` come first. */
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

/* Sort by time. Merges lists of 2^i timers, as a binary counter carries. */
static struct weft__timer *sorted(struct weft__timer *list)
{
	struct weft__timer *runs[48], *next, *all = NULL;
	unsigned used = 0, i;

	for (; list; list = next) {
		next = list->next;
		list->next = NULL;
		for (i = 0; i < used && runs[i]; i++) {
			list = merge(runs[i], list);
			runs[i] = NULL;
		}
		if (i == used)
			used++;
		runs[i] = list;
	}
	for (i = 0; i < used; i++)
		all = merge(runs[i], all);
	return all;
}

/* Sort by time a list in which later ticks mostly come first, and the timers of a tick are in any order. */
static struct weft__timer *sorted_ticks(struct weft__timer *due)
{
	struct weft__timer *all = NULL, *next, **end;

	for (; due; due = next) {
		for (end = &due->next; *end && (*end)->at >> WEFT__TICK == due->at >> WEFT__TICK;)
			end = &(*end)->next;
		next = *end;
		*end = NULL;
		all = merge(sorted(due), all);
	}
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

unsigned weft__wheel_turn(struct weft__wheel *wheel, uint64_t now, unsigned most)
{
	struct weft__timer *due = NULL;
	unsigned number, count = 0, prefetched = 0;
	uint64_t start;

	lock_with_room(wheel);
	if (weft__unlikely(wheel->loose != NULL))
		count += empty_loose(wheel, now, &due);
	while ((start = earliest_list(wheel, &number)) != WEFT_NEVER && start <= now >> WEFT__TICK && count < most) {
		if (number < 64 && !prefetched++)
			prefetch_turn(wheel, now, most);
		if (start > wheel->tick)
			wheel->tick = start;
		count += empty(wheel, number, now, &due);
		if (number < 64 && wheel->lists[number])
			break; /* the timers left are due later in the same tick */
	}
	if (count < most && now >> WEFT__TICK > wheel->tick)
		wheel->tick = now >> WEFT__TICK;
	/* If more timers may be due, the next look completes them. */
	__atomic_store_n(&wheel->next, count < most ? next_of(wheel) : now, __ATOMIC_RELAXED);
	weft__spin_unlock(&wheel->lock);
	finish(sorted_ticks(due));
	return count;
}
