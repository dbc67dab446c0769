/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A table of functions, with the depths that the last coroutines of each function reached.
 *
 *   fault of F's coroutine --> 1. the slot is noted in F's queue
 *                              2. the oldest slot of the queue is measured: its depth becomes F's newest sample
 *                              3. the samples that are at least as deep as the fault decide how much is opened
 *
 * A coroutine that never faults is not recorded: the part that every stack has open at the start suffices for it. The
 * depth is the lowest page of the slot that has memory (mincore), so it is exact even if the doubling without samples
 * opened more. A slot that is about to lose its memory is measured before that. Otherwise measuring waits for a few
 * more faults of the same function, because a coroutine that has just faulted has not reached its deepest point; it may
 * also stay suspended forever.
 *
 * The choice: with the samples sorted, s0 <= s1 <= …, opening t pages wastes the sum of t - s over the samples below t.
 * The function chooses the largest t that wastes at most 0.15 of the pages that are used. Equal samples are opened at
 * once. Samples in two groups are opened as far as the lower group, and the next fault, which the lower group cannot
 * explain, opens the upper group. If depths grow from coroutine to coroutine, a headroom is added, which grows with
 * each sample above all previous samples and shrinks with each other sample. A single deep coroutine is forgotten after
 * SAMPLES more.
 *
 * Races are harmless: two threads that change an entry at the same time lose a sample, or evict a function's samples.
 * Functions that were unloaded leave entries that age; another function at the same address begins with their samples.
 *
 * Rejected: measuring when a coroutine is deleted (a system call and a store for each life); opening the first pages by
 * the function when it is created (a lookup for each life, and slots are prepared before their owners are known); a
 * maximum that decays (one deep run costs memory for all later coroutines until it is gone).
 */
#include "stack/needs.h"

enum {
	ENTRIES = 128,
	WAYS = 4,
	SAMPLES = 32,
	NOTED = 8,
	HEADROOM_UNIT = 16, /* a divisor of the bytes to open */
	HEADROOM_MOST = 4,
	/* a share of 0.15 of USED_SHARE, so that all stacks together have about 1.2 times the memory that they use */
	WASTE_SHARE = 3,
	USED_SHARE = 20,
};

/* Relaxed throughout: entries are hints. */
struct entry {
	const void *_Atomic function;
	_Atomic uint32_t measured, noted; /* total numbers; positions in the rings */
	_Atomic uint32_t headroom;
	_Atomic uint32_t sample[SAMPLES];
	struct weft__slot *_Atomic slot[NOTED];
};

static struct entry *_Atomic shared_table; /* made by the first fault, and never unmapped */

/* NULL: there is no memory. */
static struct entry *table_of_all(void)
{
	struct entry *table = atomic_load_explicit(&shared_table, memory_order_relaxed), *made;

	if (weft__likely(table != NULL))
		return table;
	made = weft__os_alloc(ENTRIES * sizeof *made);
	/* Relaxed: it contains only the kernel's zeros. */
	if (!made || atomic_compare_exchange_strong_explicit(&shared_table, &table, made, memory_order_relaxed,
							     memory_order_relaxed))
		return made;
	weft__os_free(made, ENTRIES * sizeof *made);
	return table;
}

static struct entry *place_of(struct entry *table, const void *function, unsigned way)
{
	uint64_t hash = (uint64_t)(uintptr_t)function * 0x9e3779b97f4a7c15u;

	return &table[((hash >> 32) + way) % ENTRIES];
}

static void take_over(struct entry *e, const void *function)
{
	atomic_store_explicit(&e->measured, 0, memory_order_relaxed);
	atomic_store_explicit(&e->noted, 0, memory_order_relaxed);
	atomic_store_explicit(&e->headroom, 0, memory_order_relaxed);
	for (int i = 0; i < NOTED; i++)
		atomic_store_explicit(&e->slot[i], NULL, memory_order_relaxed);
	atomic_store_explicit(&e->function, function, memory_order_relaxed);
}

/* NULL: the function has no entry. */
static struct entry *known_entry(struct entry *table, const void *function)
{
	for (unsigned way = 0; way < WAYS; way++) {
		struct entry *e = place_of(table, function, way);

		if (atomic_load_explicit(&e->function, memory_order_relaxed) == function)
			return e;
	}
	return NULL;
}

/* The function's entry, or an empty entry, or the entry with the fewest faults. */
static struct entry *entry_of(struct entry *table, const void *function)
{
	struct entry *least = place_of(table, function, 0);

	for (unsigned way = 0; way < WAYS; way++) {
		struct entry *e = place_of(table, function, way);
		const void *other = atomic_load_explicit(&e->function, memory_order_relaxed);

		if (other == function)
			return e;
		if (!other || atomic_load_explicit(&e->noted, memory_order_relaxed) <
				  atomic_load_explicit(&least->noted, memory_order_relaxed))
			least = e;
		if (!other)
			break;
	}
	take_over(least, function);
	return least;
}

/* ---- measuring ------------------------------------------------------------------------------------------------- */

static uint32_t samples_of(const struct entry *e, uint32_t *samples)
{
	uint32_t count = atomic_load_explicit(&e->measured, memory_order_relaxed);

	if (count > SAMPLES)
		count = SAMPLES;
	for (uint32_t i = 0; i < count; i++)
		samples[i] = atomic_load_explicit(&e->sample[i], memory_order_relaxed);
	return count;
}

static void adapt_headroom(struct entry *e, uint32_t depth)
{
	uint32_t headroom = atomic_load_explicit(&e->headroom, memory_order_relaxed);
	uint32_t samples[SAMPLES], count = samples_of(e, samples);
	bool deepest = count >= NOTED / 2;

	for (uint32_t i = 0; i < count; i++)
		deepest &= samples[i] < depth;
	if (deepest && headroom < HEADROOM_MOST)
		headroom++;
	else if (!deepest && headroom)
		headroom--;
	atomic_store_explicit(&e->headroom, headroom, memory_order_relaxed);
}

static void add_sample(struct entry *e, uint32_t depth)
{
	uint32_t at;

	adapt_headroom(e, depth);
	at = atomic_fetch_add_explicit(&e->measured, 1, memory_order_relaxed);
	if (at == UINT32_MAX) /* the ring stays full when the count wraps */
		atomic_store_explicit(&e->measured, SAMPLES, memory_order_relaxed);
	atomic_store_explicit(&e->sample[at % SAMPLES], depth, memory_order_relaxed);
}

static void measure(struct entry *e, const struct weft__slot *slot)
{
	const char *lowest = weft__policies[slot->policy]->lowest_written(slot);

	add_sample(e, (uint32_t)((size_t)(weft__slot_end(slot) - lowest) / WEFT__PAGE));
}

/* The last coroutine in the slot ran the function, unless a coroutine without a fault used the slot since. */
static bool is_still_of(const struct entry *e, const struct weft__slot *slot)
{
	return atomic_load_explicit(&slot->memory, memory_order_relaxed) == WEFT__INTACT &&
	       weft__owner_function(slot) == atomic_load_explicit(&e->function, memory_order_relaxed);
}

/* A queue of NOTED slots, shorter while there are few samples. */
static void note(struct entry *e, struct weft__slot *slot)
{
	uint32_t measured = atomic_load_explicit(&e->measured, memory_order_relaxed);
	uint32_t wait = measured < NOTED ? measured + 1 : NOTED, at;
	struct weft__slot *oldest;

	for (int i = 0; i < NOTED; i++)
		if (atomic_load_explicit(&e->slot[i], memory_order_relaxed) == slot)
			return; /* it goes deeper */
	at = atomic_fetch_add_explicit(&e->noted, 1, memory_order_relaxed);
	oldest = atomic_exchange_explicit(&e->slot[(at - wait) % NOTED], NULL, memory_order_relaxed);
	atomic_store_explicit(&e->slot[at % NOTED], slot, memory_order_relaxed);
	if (oldest && is_still_of(e, oldest) && WEFT_NO_CANARY(needs_are_not_learned))
		measure(e, oldest);
}

void weft__needs_before_drop(struct weft__slot *slot)
{
	struct entry *table = atomic_load_explicit(&shared_table, memory_order_relaxed), *e = NULL;
	struct weft__slot *noted;

	if (table && WEFT_NO_CANARY(needs_are_not_learned))
		e = known_entry(table, weft__owner_function(slot));
	for (int i = 0; e && i < NOTED; i++) {
		noted = slot;
		if (atomic_compare_exchange_strong_explicit(&e->slot[i], &noted, NULL, memory_order_relaxed,
							    memory_order_relaxed)) {
			measure(e, slot);
			return;
		}
	}
}

/* ---- choosing -------------------------------------------------------------------------------------------------- */

/* Sort the samples that are at least `least` deep to the front. Returns their number. */
static uint32_t sort_deep(uint32_t *samples, uint32_t count, uint32_t least)
{
	uint32_t deep = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t sample = samples[i], at = deep;

		if (sample < least)
			continue;
		for (; at && samples[at - 1] > sample; at--)
			samples[at] = samples[at - 1];
		samples[at] = sample;
		deep++;
	}
	return deep;
}

static uint32_t choose(const uint32_t *samples, uint32_t count)
{
	uint64_t below = 0; /* the sum of the previous samples */
	uint32_t chosen = samples[0];

	for (uint32_t i = 0; i < count; i++) {
		uint64_t waste = (uint64_t)i * samples[i] - below, used = below + (uint64_t)(count - i) * samples[i];

		if (waste * USED_SHARE <= used * WASTE_SHARE)
			chosen = samples[i];
		below += samples[i];
	}
	return chosen;
}

size_t weft__needs_guess(const void *function, struct weft__slot *slot, size_t pages)
{
	struct entry *table = table_of_all(), *e;
	uint32_t samples[SAMPLES], count, chosen;

	if (!table)
		return 0;
	e = entry_of(table, function);
	note(e, slot);
	count = sort_deep(samples, samples_of(e, samples), (uint32_t)pages);
	if (!count)
		return 0;
	chosen = choose(samples, count);
	if (chosen == samples[count - 1])
		chosen += chosen * atomic_load_explicit(&e->headroom, memory_order_relaxed) / HEADROOM_UNIT;
	return chosen;
}
