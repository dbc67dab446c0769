/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The memory of slots that are kept for reuse is taken away where somebody needs it more. The slots stay where they are
 * kept, in bins of any thread, at its hand, and in warm lists; who takes one out finds that it has no memory, and
 * prepares it again.
 *
 * The fault handler must be able to do this, so nothing here takes a lock that ordinary code holds. And taking a slot
 * out of a bin must stay as cheap as it is, without an atomic instruction. So the two sides settle whose the slot is by
 * two bytes in it:
 *
 *	the thread that takes the slot:  kept = false;        if (memory != INTACT) wait or prepare
 *	the reclaimer:                   memory = CLAIMED;    membarrier;    if (kept) the memory is the reclaimer's
 *
 * Each writes its byte, then reads the other's. The membarrier stands for a fence in both: at least one of them sees
 * what the other wrote. If both do, the reclaimer lets go. It then says INTACT again, or DROPPED, for which the other
 * waits. A barrier costs microseconds, so slots are claimed many at once.
 *
 * `kept` becomes true as the last thing that is done to the slot, before it is put into a bin.
 *
 * Rejected: locks in bins (an atomic instruction for each creation); not to count kept slots (the budget bounds memory,
 * and theirs is some); to keep nothing when the budget is short (threads that sleep keep what they have).
 */
#define _GNU_SOURCE /* pthread_sigmask */

#include <pthread.h>
#include <signal.h>

#include "os/os.h"
#include "stack/policy.h"

enum { CLAIMS = 64 };

/* Signals are blocked while it is held, but for a fork: then its holder may come here once more. */
static char *_Atomic holder; /* an address of the thread's own */

static struct {
	struct weft__slot *slot[CLAIMS];
	unsigned count;
	/* Per policy: what weft__pool_came said before the last walk that found nothing. */
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

	/* Acquire, release: what `claims` holds. */
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

/* A fork must not happen while slots are claimed. This lock is the last that a fork takes, because a thread that holds
 * one of the others may have a fault. */
__attribute__((constructor(101))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

/*
 * The slot whose memory the reclaimer is dropping now; else NULL. `memory` says DROPPED as soon as the kernel has
 * cleared the page's entry, but until madvise returns another processor may still write to the page that was there.
 * A thread that used the slot meanwhile, and then ran on that processor, would lose what it wrote.
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

	/* Relaxed: whoever sees the slot's memory as DROPPED sees it after the system call below began. */
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

/* Release: pairs with weft__slot_settle. Who took the slot may have given it to the arena without waiting for us. */
static void end_claim(struct weft__slot *slot, uint8_t memory)
{
	uint8_t claimed = WEFT__RECLAIMED;

	atomic_compare_exchange_strong_explicit(&slot->memory, &claimed, memory, memory_order_release,
						memory_order_relaxed);
}

/* The slot is claimed, and the barrier was since. Bytes. */
static size_t take_memory(struct weft__slot *slot)
{
	size_t bytes;

	if (!atomic_load_explicit(&slot->kept, memory_order_acquire) ||
	    atomic_load_explicit(&slot->memory, memory_order_acquire) != WEFT__RECLAIMED) {
		end_claim(slot, WEFT__INTACT);
		return 0;
	}
	bytes = drop(slot);
	/* What was dropped reads as zeros, and they say so already; but memory that is locked stays what it was. */
	if (atomic_load_explicit(&slot->memory, memory_order_relaxed) == WEFT__RECLAIMED)
		end_claim(slot, WEFT__DROPPED);
	return bytes;
}

static size_t reclaim(weft_policy_t policy, size_t bytes)
{
	/* Who wants all of it comes seldom, and for policies whose threads do not wait for who looks at their hands. */
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
