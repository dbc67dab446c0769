/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The memory of cached slots is reclaimed when another slot needs it more. The slots stay in place, in bins and hands
 * of any thread, and in warm lists; a thread that takes such a slot finds that it has no memory, and prepares it again.
 *
 * The fault handler must be able to reclaim, so nothing here takes a lock that ordinary code holds. And taking a slot
 * out of a bin must stay cheap, without an atomic instruction. So the two sides settle the ownership of the slot's
 * memory by two bytes in it:
 *
 * 	the thread that takes the slot:  kept = false;           if (memory != INTACT) wait or prepare
 * 	the reclaimer:                   memory = RECLAIMED;     membarrier;    if (kept) the memory is the reclaimer's
 *
 * Each side writes its byte, then reads the other byte. The membarrier replaces a fence in both: at least one side sees
 * the other side's store. If both do, the reclaimer releases its claim. When it is done it stores INTACT, or DROPPED,
 * for which the other side waits. A barrier costs microseconds, so many slots are claimed at once.
 *
 * Storing true to `kept` is the last access to the slot before it is put into a bin.
 *
 * Rejected: locks in bins (an atomic instruction for each creation); not to count cached slots (the budget bounds
 * memory, and their memory is part of it); to cache nothing when the budget is short (threads that sleep keep their
 * caches).
 */
#define _GNU_SOURCE /* pthread_sigmask */

#include <pthread.h>
#include <signal.h>

#include "os/os.h"
#include "stack/policy.h"

enum { CLAIMS = 64 };

/* Signals are blocked while a thread holds it, except during a fork: then the holder may call weft__reclaim again. */
static char *_Atomic holder; /* an address of the thread's own */

static struct {
	struct weft__slot *slot[CLAIMS];
	unsigned count;
	/* Per policy: the result of weft__pool_came before the last walk that found nothing. */
	uint64_t in_vain[WEFT_POLICY_COUNT];
} claims;

static char *me(void)
{
	static __thread char own __attribute__((tls_model("initial-exec")));

	return &own;
}

static void lock(void)
{
	char *nobody = NULL;

	/* Acquire, release: they order accesses to `claims`. */
	while (!atomic_compare_exchange_weak_explicit(&holder, &nobody, me(), memory_order_acquire,
						      memory_order_relaxed)) {
		nobody = NULL;
		weft__os_yield();
	}
}

static void unlock(void)
{
	atomic_store_explicit(&holder, NULL, memory_order_release);
}

/* A fork must not happen while slots are claimed. This lock is the last lock that a fork takes, because a thread that
 * holds another lock may have a fault. */
__attribute__((constructor(101))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

/*
 * The slot whose memory the reclaimer is discarding now; else NULL. `memory` reads as DROPPED as soon as the kernel has
 * cleared the page's entry, but until madvise returns another processor may still write to the previous page. A thread
 * that used the slot meanwhile, and then ran on that processor, would lose its stores.
 */
static struct weft__slot *_Atomic dropping;

bool weft__slot_settle(struct weft__slot *slot)
{
	/* Acquire: pairs with the release in end_claim. */
	while (atomic_load_explicit(&slot->memory, memory_order_acquire) == WEFT__RECLAIMED)
		weft__os_yield();
	if (atomic_load_explicit(&slot->memory, memory_order_acquire) == WEFT__INTACT)
		return true;
	/* Acquire: pairs with the release in drop. */
	while (atomic_load_explicit(&dropping, memory_order_acquire) == slot)
		weft__os_yield();
	return false;
}

static size_t drop(struct weft__slot *slot)
{
	const struct weft__policy *how = weft__policies[slot->policy];
	size_t bytes;

	/* Relaxed: a thread that reads DROPPED from `memory` reads it after the system call below began. */
	atomic_store_explicit(&dropping, slot, memory_order_relaxed);
	bytes = how->discard(how, slot);
	atomic_store_explicit(&dropping, NULL, memory_order_release); /* pairs with the acquire in weft__slot_settle */
	return bytes;
}

static bool claim(struct weft__slot *slot)
{
	uint8_t intact = WEFT__INTACT;

	if (atomic_load_explicit(&slot->kept, memory_order_acquire) &&
	    atomic_compare_exchange_strong(&slot->memory, &intact, WEFT__RECLAIMED))
		claims.slot[claims.count++] = slot;
	return claims.count < CLAIMS;
}

/* Release: pairs with weft__slot_settle. The thread that took the slot may have returned it to the arena without
 * waiting for the reclaimer. */
static void end_claim(struct weft__slot *slot, uint8_t memory)
{
	uint8_t claimed = WEFT__RECLAIMED;

	atomic_compare_exchange_strong_explicit(&slot->memory, &claimed, memory, memory_order_release,
						memory_order_relaxed);
}

/* The slot was claimed before the last barrier. Returns the bytes. */
static size_t take_memory(struct weft__slot *slot)
{
	size_t bytes;

	if (!atomic_load_explicit(&slot->kept, memory_order_acquire) ||
	    atomic_load_explicit(&slot->memory, memory_order_acquire) != WEFT__RECLAIMED) {
		end_claim(slot, WEFT__INTACT);
		return 0;
	}
	bytes = drop(slot);
	/* Discarded memory reads as zeros, which is DROPPED already; but locked memory keeps its contents. */
	if (atomic_load_explicit(&slot->memory, memory_order_relaxed) == WEFT__RECLAIMED)
		end_claim(slot, WEFT__DROPPED);
	return bytes;
}

static size_t reclaim(weft_policy_t policy, size_t bytes)
{
	/* Callers that want all memory are rare, and use policies whose threads do not wait for threads that read their
	 * hands. */
	uint64_t came = bytes == SIZE_MAX ? 0 : weft__pool_came(policy);
	size_t found = 0;

	if (came && came == claims.in_vain[policy])
		return 0;
	while (found < bytes) {
		claims.count = 0;
		weft__arena_walk(policy, claim);
		if (!claims.count) {
			claims.in_vain[policy] = came;
			break;
		}
		weft__os_barrier();
		for (unsigned i = 0; i < claims.count; i++)
			if (found < bytes)
				found += take_memory(claims.slot[i]);
			else
				end_claim(claims.slot[i], WEFT__INTACT);
	}
	return found;
}

size_t weft__reclaim(weft_policy_t policy, size_t bytes)
{
	bool mine = atomic_load_explicit(&holder, memory_order_relaxed) == me();
	sigset_t all, before;
	size_t found;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!mine)
		lock();
	found = reclaim(policy, bytes);
	if (!mine)
		unlock();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return found;
}
