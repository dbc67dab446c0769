/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Free slots. A thread takes slots from its own bins, and puts slots into them, without a lock. A bin that runs empty
 * or full exchanges half its limit with the warm list of its class, as a batch, under a lock. Slots beyond the warm
 * list's bound lose their memory, and so does, once a second, half of the slots that the list did not need since:
 * bursts are absorbed, idle memory is returned to the kernel, and no background thread is needed.
 *
 * Rejected: one lock-free list per class (contended, and ABA needs wide compare-and-swap); counting touched pages on
 * every delete (a system call).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arch/vectors.h"
#include "internal/signal_safe_lock.h"
#include "internal/tsan_hidden.h"
#include "internal/valgrind.h"
#include "stack/buffers.h"
#include "stack/config.h"
#include "stack/copy.h"
#include "stack/shared_pages.h"

bool weft__on_memcheck;
atomic_size_t weft__callers_live[WEFT_POLICY_COUNT];
__thread struct weft__thread *weft__tls_thread __attribute__((tls_model("initial-exec")));
__thread struct weft__hand weft__tls_hand __attribute__((tls_model("initial-exec")));

/*
 * Slots that no thread caches. There is room for all slots of the class that are not cold, so that putting a slot into
 * the list never needs memory. `low_water`: the fewest slots since `checked`.
 */
struct warm {
	struct weft__slot **slots;
	size_t count, room, all, low_water;
	time_t checked;
};

/*
 * One mapping for the process, made when the first thread attaches and never unmapped. It has no pages until it is
 * used. If the system refuses it, that thread gets no record, so no coroutine exists that would need the reserve; the
 * next creation tries again.
 */
struct reserve {
	struct warm warm[WEFT_POLICY_COUNT][WEFT__CLASSES];
	char owner[WEFT__OWNER_RESERVE] __attribute__((aligned(64)));
};

static struct {
	pthread_mutex_t lock;
	struct reserve *_Atomic reserve;
	size_t out[WEFT_POLICY_COUNT], high_water[WEFT_POLICY_COUNT]; /* slots of threads, in use or in bins */
	struct weft__thread *threads, *spare;			      /* attached; records that serve no thread */
	struct weft__thread *_Atomic records;			      /* all records ever made */
	size_t copied;						      /* by threads that have ended */
	uint64_t ids;						      /* ids assigned to threads */
	pthread_key_t at_exit;
	bool has_key;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

WEFT__LOCK_OF_FILE(pool.lock);

/* Before the reserve exists there are no slots, and all lists are the empty list `none`. */
static struct warm *warm_of(unsigned policy, unsigned class)
{
	static struct warm none;
	/* Acquire: pairs with the release in have_reserve. */
	struct reserve *reserve = atomic_load_explicit(&pool.reserve, memory_order_acquire);

	return weft__likely(reserve) ? &reserve->warm[policy][class] : &none;
}

void *weft__owner_reserve(void)
{
	struct reserve *reserve = atomic_load_explicit(&pool.reserve, memory_order_acquire);

	return reserve ? reserve->owner : NULL;
}

static bool have_reserve(void)
{
	struct reserve *reserve;

	if (atomic_load_explicit(&pool.reserve, memory_order_relaxed))
		return true;
	lock();
	reserve = atomic_load_explicit(&pool.reserve, memory_order_relaxed);
	if (!reserve) {
		reserve = weft__os_alloc(sizeof *reserve);
		/* Release: pairs with the acquire in warm_of, which then sees zeros. */
		atomic_store_explicit(&pool.reserve, reserve, memory_order_release);
	}
	unlock();
	return reserve;
}

/* ---- sizes and limits ------------------------------------------------------------------------------------ */

unsigned weft__class(weft_policy_t policy, size_t size, bool guard)
{
	/* The smallest size has no room for a guard and for the needs of a call of printf. */
	unsigned c = guard ? 1 : 0;

	if (!size)
		size = weft__config_size(policy);
	if (size <= WEFT__ROOMY_LARGEST && weft__policies[policy]->tiny && !weft__has_probes())
		return WEFT__TINY_CLASS + (size > WEFT__TINY_LARGEST);
	if (weft__policies[policy]->linked)
		guard = true; /* pages that are not open yet are closed anyway */
	if (size > weft__class_bytes(c))
		c = (unsigned)(64 - __builtin_clzll(size - 1)) - WEFT__MIN_STRIDE_SHIFT;
	if (c >= WEFT__SIZES)
		return WEFT__CLASSES;
	return guard ? c : WEFT__SIZES + c;
}

unsigned weft__class_with_guard(weft_policy_t policy, size_t size, size_t guard)
{
	unsigned class = weft__class(policy, size, true), c = class + 1;

	if (class >= WEFT__SIZES || guard <= weft__guard_size(class) || weft__policies[policy]->linked)
		return class;
	while (c < WEFT__SIZES && weft__class_bytes(c) / 2 < guard)
		c++;
	return c < WEFT__SIZES ? WEFT__WIDE_CLASS + c : WEFT__CLASSES;
}

/* At most 32 MiB of address space in a bin, 4 GiB in a warm list. Large guards are rare. */
static uint32_t bin_limit(unsigned class)
{
	size_t limit;

	if (class == WEFT__CALLERS_CLASS) /* such a slot leaves the bin at once */
		return 0;
	limit = ((size_t)32 << 20) / weft__class_bytes(class);
	if (class >= WEFT__WIDE_CLASS && class < WEFT__TINY_CLASS && limit > 16)
		return 16;
	return limit < 2 ? 2 : limit > WEFT__BIN_LIMIT ? WEFT__BIN_LIMIT : (uint32_t)limit;
}

static size_t warm_limit(unsigned class)
{
	size_t limit = ((size_t)4 << 30) / weft__class_bytes(class);

	if (weft__class_shares_pages(class)) /* memory of these slots cannot be discarded */
		return SIZE_MAX;
	return limit > WEFT__WARM_LIMIT ? WEFT__WARM_LIMIT : limit;
}

size_t weft__slot_bytes(const struct weft__slot *slot)
{
	return weft__is_callers(slot) ? weft__callers_of(slot)->bytes : weft__class_bytes(slot->class);
}

/* ---- the warm lists: under the lock ------------------------------------------------------------------------ */

/* Called before `more` slots are cut. */
static bool make_room(struct warm *warm, size_t more)
{
	size_t room = warm->room ? 2 * warm->room : WEFT__PAGE / sizeof *warm->slots;
	struct weft__slot **slots;

	if (warm->all + more <= warm->room)
		return true;
	slots = weft__os_alloc(room * sizeof *slots);
	if (!slots)
		return false;
	if (warm->room) {
		memcpy(slots, warm->slots, warm->count * sizeof *slots);
		weft__os_free(warm->slots, warm->room * sizeof *slots);
	}
	warm->slots = slots;
	warm->room = room;
	return true;
}

/* Moves at most `most` slots to `slots`. Returns their number. */
static uint32_t warm_pop(struct warm *warm, struct weft__slot **slots, size_t most)
{
	size_t count = warm->count < most ? warm->count : most;

	if (!count)
		return 0;
	warm->count -= count;
	memcpy(slots, warm->slots + warm->count, count * sizeof *slots);
	if (warm->count < warm->low_water)
		warm->low_water = warm->count;
	return (uint32_t)count;
}

static void warm_push(struct warm *warm, struct weft__slot *const *slots, size_t count)
{
	memcpy(warm->slots + warm->count, slots, count * sizeof *slots);
	warm->count += count;
}

static size_t to_keep(struct warm *warm, unsigned class)
{
	struct timespec now;
	size_t keep = warm_limit(class);

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (keep != SIZE_MAX && now.tv_sec != warm->checked) {
		warm->checked = now.tv_sec;
		if (warm->count - warm->low_water / 2 < keep)
			keep = warm->count - warm->low_water / 2;
		warm->low_water = warm->count;
	}
	return keep;
}

static bool is_hollow(const struct weft__slot *slot)
{
	return atomic_load_explicit(&slot->memory, memory_order_relaxed) == WEFT__DROPPED;
}

/* Make a slot cold that only the calling thread knows. Called without the lock: it makes a system call. */
static WEFT__COLD bool chill(struct weft__slot *slot, weft_policy_t policy, unsigned class)
{
	struct warm *warm = warm_of(policy, class);
	/* A store into a slot without memory would give it a page. */
	bool intact = !is_hollow(slot) && weft__slot_own(slot);
	bool cold;

	if (!intact)
		intact = weft__slot_settle(slot);
	if (intact)
		VALGRIND_STACK_DEREGISTER(slot->valgrind_id);
	cold = weft__arena_chill(slot, policy, class);
	lock();
	if (cold) {
		warm->all--;
	} else { /* the slot stays warm */
		if (intact)
			atomic_store_explicit(&slot->kept, true, memory_order_release);
		warm_push(warm, &slot, 1);
	}
	unlock();
	return cold;
}

enum { AT_A_TIME = 64 };

/* Make the list's slots beyond `keep` cold. Returns the bytes. */
static WEFT__COLD size_t chill_excess(weft_policy_t policy, unsigned class, size_t keep)
{
	struct weft__slot *excess[AT_A_TIME];
	struct warm *warm = warm_of(policy, class);
	size_t bytes = 0, before;
	uint32_t count;

	do {
		before = bytes;
		lock();
		count = warm->count > keep
			    ? warm_pop(warm, excess, warm->count - keep < AT_A_TIME ? warm->count - keep : AT_A_TIME)
			    : 0;
		unlock();
		for (uint32_t i = 0; i < count; i++)
			if (chill(excess[i], policy, class))
				bytes += weft__class_bytes(class);
	} while (bytes > before);
	return bytes;
}

/* ---- between threads: see internal/tsan_hidden.h ----------------------------------------------------------------- */

/* The slots leave the thread. If slots share a page, ThreadSanitizer cannot be told to forget that page: these slots
 * are ordered instead. */
static WEFT__COLD void tell_left(struct weft__slot *const *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (weft__class_shares_pages(slots[i]->class))
			weft__seen_release(slots[i]);
		else
			weft__os_forget_accesses(slots[i]->chunk.low,
						 (size_t)(weft__slot_end(slots[i]) - slots[i]->chunk.low));
}

static WEFT__COLD void tell_came(struct weft__slot *const *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (weft__class_shares_pages(slots[i]->class))
			weft__seen_acquire(slots[i]);
}

static size_t trim_slots(void);

/* ---- bins ---------------------------------------------------------------------------------------------------- */

static void note_out(weft_policy_t policy, size_t more)
{
	pool.out[policy] += more;
	if (pool.out[policy] > pool.high_water[policy])
		pool.high_water[policy] = pool.out[policy];
}

/* An empty bin has received `count` slots; no thread had cached `came` of them before. */
static void received(struct weft__bin *bin, size_t count, size_t came)
{
	weft__bin_set_tally(bin, weft__bin_tally(bin) + count + came * weft__bin_came);
}

static bool take_warm(struct weft__bin *bin)
{
	uint32_t count;

	lock();
	count = warm_pop(warm_of(bin->policy, bin->class), bin->slots, bin->limit / 2);
	note_out((weft_policy_t)bin->policy, count);
	unlock();
	if (weft__unlikely(weft__on_tsan()))
		tell_came(bin->slots, count);
	received(bin, count, 0);
	return count;
}

static void settle_in(struct weft__bin *bin, struct weft__slot *list)
{
	struct weft__slot *next;
	size_t count = 0;

	for (struct weft__slot *slot = list; slot; slot = next) {
		next = slot->next;
		slot->valgrind_id = VALGRIND_STACK_REGISTER(slot->chunk.low, weft__frames_of(slot, bin->class));
		/* Release: a reclaimer that sees `kept` sees the slot's fields. */
		atomic_store_explicit(&slot->kept, true, memory_order_release);
		bin->slots[count++] = slot;
	}
	received(bin, count, count);
}

static WEFT__COLD bool cut(struct weft__bin *bin, int *error)
{
	struct weft__slot *list = NULL;
	struct warm *warm = warm_of(bin->policy, bin->class);
	unsigned most = bin->limit / 2 < 32 ? bin->limit / 2 : 32;
	const struct weft__policy *how = weft__policies[bin->policy];
	int made = -ENOMEM;

	lock();
	if (make_room(warm, most)) {
		warm->all += most;
		made = 0;
	}
	unlock();
	if (!made)
		made = (how->cut ? how->cut : weft__arena_cut)((weft_policy_t)bin->policy, bin->class, most, &list);
	lock();
	if (made > 0) {
		warm->all -= most - (unsigned)made;
		note_out((weft_policy_t)bin->policy, (size_t)made);
	}
	unlock();
	if (made < 0) {
		*error = made;
		return false;
	}
	if (how->closed)
		weft__fault_ready(weft__tls_thread);
	settle_in(bin, list);
	return true;
}

/* The top slot of a bin has no intact memory: prepare it, or put it back into the bin. */
static WEFT__COLD struct weft__slot *recover(struct weft__bin *bin, struct weft__slot *slot, int *error)
{
	weft_policy_t policy = (weft_policy_t)bin->policy;
	uint64_t tally;

	if (weft__slot_settle(slot))
		return slot;
	*error = weft__arena_revive(slot, policy, bin->class);
	if (*error && trim_slots()) /* the memory that warm slots of other classes have may suffice */
		*error = weft__arena_revive(slot, policy, bin->class);
	if (!*error) {
		slot->valgrind_id = VALGRIND_STACK_REGISTER(slot->chunk.low, weft__frames_of(slot, bin->class));
		return slot;
	}
	weft__arena_forget(slot, policy, bin->class);
	tally = weft__bin_tally(bin);
	bin->slots[(uint32_t)tally] = slot;
	weft__bin_set_tally(bin, tally + 1);
	return NULL;
}

WEFT__COLD struct weft__slot *weft__slot_take_slow(struct weft__bin *bin, int *error)
{
	uint64_t tally = weft__bin_tally(bin);

	if ((uint32_t)tally) {
		weft__bin_set_tally(bin, tally - 1);
		return recover(bin, bin->slots[(uint32_t)tally - 1], error);
	}
	if (take_warm(bin) || cut(bin, error))
		return weft__slot_take(bin, error);
	return trim_slots() && cut(bin, error) ? weft__slot_take(bin, error) : NULL; /* as in recover */
}

/* Move the `count` slots that were longest in the bin to the warm list. Not inlined, so that weft__slot_give needs no
 * frame. */
static WEFT__COLD void give_batch(struct weft__bin *bin, uint32_t count)
{
	struct warm *warm = warm_of(bin->policy, bin->class);
	uint64_t tally = weft__bin_tally(bin);
	size_t keep;

	if (weft__unlikely(bin->class == WEFT__CALLERS_CLASS)) {
		weft__callers_give(bin->slots[0], bin);
		return;
	}
	if (weft__unlikely(weft__on_tsan()))
		tell_left(bin->slots, count);
	lock();
	warm_push(warm, bin->slots, count);
	pool.out[bin->policy] -= count;
	keep = to_keep(warm, bin->class);
	unlock();
	memmove(bin->slots, bin->slots + count, ((uint32_t)tally - count) * sizeof *bin->slots);
	weft__bin_set_tally(bin, tally - count);
	if (!weft__policies[bin->policy]->cut && keep != SIZE_MAX)
		chill_excess((weft_policy_t)bin->policy, bin->class, keep);
}

#ifdef WEFT_TINY
/* Overwrite the slot's end, where frames are, as far as it is open. */
void weft__poison(struct weft__slot *slot)
{
	size_t bytes = (size_t)((char *)slot - atomic_load(&slot->open));

	if (bytes > 65536)
		bytes = 65536;
	memset((char *)slot - bytes, 0xde, bytes);
}
#endif

/* The thread has no bins yet. Without memory for bins the slot's memory goes straight back to the kernel. */
static WEFT__COLD void give_without_bins(struct weft__slot *slot)
{
	if (weft__is_callers(slot)) {
		weft__callers_give(slot, NULL);
		return;
	}
	if (weft__thread_attach()) {
		weft__slot_give(slot);
		return;
	}
	if (weft__unlikely(weft__on_tsan()))
		tell_left(&slot, 1);
	lock();
	pool.out[slot->policy]--;
	unlock();
	chill(slot, (weft_policy_t)slot->policy, slot->class);
}

/* Most slots are of the default bin, and this test takes less time than to compute the address of a bin. */
static inline struct weft__bin *bin_of(struct weft__thread *thread, const struct weft__slot *slot)
{
	return weft__likely(weft__is_default(slot, thread)) ? thread->default_bin
							    : &thread->bins[slot->policy][slot->class];
}

static void push(struct weft__bin *bin, struct weft__slot *slot)
{
	uint64_t tally = weft__bin_tally(bin) + 1 + weft__bin_came;

	bin->slots[(uint32_t)tally - 1] = slot;
	weft__bin_set_tally(bin, tally);
	if (weft__unlikely((uint32_t)tally > bin->limit))
		give_batch(bin, bin->limit / 2);
}

void weft__slot_give(struct weft__slot *slot)
{
	struct weft__thread *thread = weft__tls_thread;
	struct weft__bin *bin;

	if (weft__unlikely(!thread)) {
		give_without_bins(slot);
		return;
	}
	bin = bin_of(thread, slot);
	weft__poison(slot);
	/* From here on a reclaimer may take its memory. Release: so that the reclaimer sees the slot's fields. */
	atomic_store_explicit(&slot->kept, true, memory_order_release);
	push(bin, slot);
}

void weft__give_recent_slot(void)
{
	uintptr_t at_hand = weft__recent_slot(&weft__tls_hand);
	struct weft__slot *slot = (struct weft__slot *)at_hand;

	if (at_hand <= WEFT__HAND_EMPTY)
		return;
	weft__set_hand(WEFT__HAND_EMPTY);
	if (WEFT_CANARY(slot_at_hand_is_lost))
		return;
	if (weft__slot_own(slot)) { /* else the thread that takes it out waits for its memory, or prepares it */
		atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
		atomic_store_explicit(&slot->kept, true, memory_order_release);
	}
	push(weft__tls_thread->default_bin, slot);
}

/* The slot in the thread's hand, if it is of the policy. Nothing else of the thread is read: it may be ending, and
 * waits for this reader only if this is the default policy. */
static const struct weft__slot *recent_slot_of(const struct weft__thread *thread, weft_policy_t policy)
{
	const struct weft__hand *hand = NULL;
	uintptr_t at_hand;

	if (policy == weft_default_policy())
		hand = atomic_load_explicit(&thread->hand, memory_order_acquire);
	at_hand = hand ? weft__recent_slot(hand) : WEFT__HAND_EMPTY;
	return at_hand > WEFT__HAND_EMPTY ? (const struct weft__slot *)at_hand : NULL;
}

uint64_t weft__pool_came(weft_policy_t policy)
{
	const struct weft__slot *at_hand;
	uint64_t came = 1;

	/* Acquire: pairs with the release in new_record. */
	for (struct weft__thread *t = atomic_load_explicit(&pool.records, memory_order_acquire); t; t = t->record) {
		at_hand = recent_slot_of(t, policy);
		if (at_hand && !is_hollow(at_hand) && WEFT_NO_CANARY(hands_are_overlooked))
			return 0;
		for (int c = 0; c < WEFT__CLASSES; c++)
			/* Acquire: pairs with the release in weft__bin_set_tally; slots that were cached have `kept`
			 * set. */
			came += atomic_load_explicit(&t->bins[policy][c].tally, memory_order_acquire) >> 32;
	}
	return came;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static WEFT__COLD void drain_bins(struct weft__thread *thread)
{
	weft__give_recent_slot();
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		for (int c = 0; c < WEFT__CLASSES; c++) {
			struct weft__bin *bin = &thread->bins[policy][c];

			if ((uint32_t)weft__bin_tally(bin))
				give_batch(bin, (uint32_t)weft__bin_tally(bin));
		}
}

/* The record serves no thread any more. Except for its bins, which are empty, it is as new. */
static WEFT__COLD void end_record(struct weft__thread *thread)
{
	char *page = (char *)(((uintptr_t)thread->small_stack + WEFT__PAGE - 1) & ~(uintptr_t)(WEFT__PAGE - 1));

	memset(thread, 0, offsetof(struct weft__thread, bins));
	memset(thread->owner, 0, sizeof thread->owner);
	weft__os_drop(page, (size_t)((char *)(thread + 1) - page));
	if (weft__unlikely(weft__on_tsan()))
		weft__os_forget_accesses(thread, sizeof *thread);
	lock();
	thread->spare = pool.spare;
	pool.spare = thread;
	unlock();
}

/* The hand ends with the thread's other thread-local memory. */
static void leave_hand(struct weft__thread *thread)
{
	void (*wait)(void) = weft__policies[weft_default_policy()]->wait_for_lookers;

	atomic_store_explicit(&thread->hand, NULL, memory_order_relaxed);
	if (wait)
		wait();
}

/* Called at thread exit. Destructors that run later may attach the thread again; then this runs again. */
static WEFT__COLD void detach(void *argument)
{
	struct weft__thread *thread = argument;

	weft__tls_growth = NULL;
	if (weft__linked_detach)
		weft__linked_detach(thread);
	weft__owner_detach();
	VALGRIND_STACK_DEREGISTER(thread->valgrind_id);
	drain_bins(thread);
	if (weft__regions_leave)
		weft__regions_leave(thread);
	if (weft__buffers_drain)
		weft__buffers_drain(thread);
	weft__tls_thread = NULL;
	weft__set_hand(WEFT__HAND_CLOSED);
	leave_hand(thread);
	lock();
	if (thread->next)
		thread->next->previous = thread->previous;
	*(thread->previous ? &thread->previous->next : &pool.threads) = thread->next;
	pool.copied += thread->copied;
	unlock();
	weft__os_alt_stack_leave(thread->alt_stack);
	end_record(thread);
}

/* Begun anew in the child of a fork that interrupts it. */
static WEFT__COLD void open_pool(void)
{
	char known = 0, bits;

	weft__on_memcheck = VALGRIND_GET_VBITS(&known, &bits, 1) == 1;
	pool.has_key = pthread_key_create(&pool.at_exit, detach) == 0;
	weft__vectors_measure();
	weft__fault_install();
}

/* The C library may reuse the memory of other threads, which contains their hands. */
static void unlock_in_child(void)
{
	for (struct weft__thread *t = atomic_load_explicit(&pool.records, memory_order_relaxed); t; t = t->record)
		if (t != weft__tls_thread && WEFT_NO_CANARY(looks_at_lost_hands)) {
			atomic_store_explicit(&t->hand, NULL, memory_order_relaxed);
			atomic_store_explicit(&t->owner_local, NULL, memory_order_relaxed);
			t->system = NULL;
		}
	unlock();
}

/* A fork must not leave the child with a lock that no thread holds. Registered before the first use, like the
 * arena's. */
__attribute__((constructor(102))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock_in_child);
}

static WEFT__COLD void set_up_bins(struct weft__thread *thread)
{
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		struct weft__slot **slots = thread->slots[p];

		for (unsigned c = 0; c < WEFT__CLASSES; c++) {
			thread->bins[p][c] = (struct weft__bin){.slots = slots,
								.limit = bin_limit(c),
								.policy = (uint8_t)p,
								.class = (uint8_t)c};
			slots += bin_limit(c) + 1;
		}
	}
}

static struct weft__thread *new_record(void)
{
	struct weft__thread *thread = weft__os_alloc(sizeof *thread);

	if (!thread)
		return NULL;
	set_up_bins(thread);
	thread->record = atomic_load_explicit(&pool.records, memory_order_relaxed);
	/* Release: pairs with the acquire in weft__pool_came. */
	while (!atomic_compare_exchange_weak_explicit(&pool.records, &thread->record, thread, memory_order_release,
						      memory_order_relaxed))
		;
	return thread;
}

static struct weft__thread *begin_record(void)
{
	weft_policy_t policy = weft_default_policy();
	struct weft__thread *thread;

	lock();
	thread = pool.spare;
	if (thread)
		pool.spare = thread->spare;
	unlock();
	if (!thread)
		thread = new_record();
	if (thread) {
		thread->default_bin = &thread->bins[policy][weft__class(policy, 0, true)];
		thread->has_hand =
		    !weft__policies[policy]->linked && !weft__policies[policy]->shared && !weft__on_memcheck;
	}
	return thread;
}

WEFT__COLD struct weft__thread *weft__thread_attach(void)
{
	struct weft__thread *thread;

	if (weft__arena_open())
		return NULL;
	WEFT__CALL_ONCE(open_pool);
	thread = have_reserve() ? begin_record() : NULL;
	if (!thread)
		return NULL;
	/* Without an alternate stack overflows end in a bare SIGSEGV and `commit` cannot grow: such a thread gets no
	 * record. */
	if (weft__os_alt_stack_enter(&thread->alt_stack) || !pool.has_key ||
	    pthread_setspecific(pool.at_exit, thread)) {
		weft__os_alt_stack_leave(thread->alt_stack);
		end_record(thread);
		return NULL;
	}
	/* Release: pairs with the acquire in recent_slot_of. */
	atomic_store_explicit(&thread->hand, &weft__tls_hand, memory_order_release);
	lock();
	thread->next = pool.threads;
	if (pool.threads)
		pool.threads->previous = thread;
	pool.threads = thread;
	unlock();
	weft__tls_thread = thread;
	weft__tls_growth = thread->small_stack + sizeof thread->small_stack;
	thread->system = &weft__tls_system;
	weft__fault_ready(thread);
	thread->valgrind_id =
	    VALGRIND_STACK_REGISTER(thread->small_stack, thread->small_stack + sizeof thread->small_stack);
	return thread;
}

WEFT__COLD void weft__each_thread(void (*fn)(struct weft__thread *thread))
{
	lock();
	for (struct weft__thread *thread = pool.threads; thread; thread = thread->next)
		fn(thread);
	unlock();
}

WEFT__COLD uint64_t weft__more_ids(void)
{
	struct weft__hand *hand = &weft__tls_hand;
	uint64_t more = hand->last_id ? 1024 : 16; /* small numbers if there are few coroutines */

	weft__fault_ready(weft__tls_thread);
	lock();
	hand->next_id = pool.ids + 1;
	pool.ids += more;
	unlock();
	hand->last_id = hand->next_id + more;
	return hand->next_id++;
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

/* Do several of these slots share a page? */
static bool shares_pages(weft_policy_t policy, unsigned class)
{
	return weft__policies[policy]->cut || weft__class_shares_pages(class);
}

static void add_shared(struct weft__pages *pages, weft_policy_t policy, unsigned class)
{
	const struct warm *warm = warm_of(policy, class);
	char *start;

	for (size_t i = 0; i < warm->count; i++) {
		size_t bytes = weft__shared_slot(warm->slots[i], policy, class, &start);

		weft__pages_add(pages, start, bytes, is_hollow(warm->slots[i]));
	}
}

static void hollow_shared(struct weft__pages *pages, weft_policy_t policy, unsigned class)
{
	const struct warm *warm = warm_of(policy, class);
	char *start;

	for (size_t i = 0; i < warm->count; i++) {
		size_t bytes = weft__shared_slot(warm->slots[i], policy, class, &start);

		if (is_hollow(warm->slots[i]) || !weft__pages_hollow(pages, start, bytes))
			continue;
		/* No thread has the slot, and no reclaimer claims it. */
		atomic_store_explicit(&warm->slots[i]->memory, WEFT__DROPPED, memory_order_relaxed);
		if (!weft__policies[policy]->cut)
			atomic_fetch_sub_explicit(weft__policies[policy]->committed, bytes, memory_order_relaxed);
	}
}

static void each_shared(struct weft__pages *pages, void (*visit)(struct weft__pages *, weft_policy_t, unsigned))
{
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		for (unsigned c = 0; c < WEFT__CLASSES; c++)
			if (shares_pages((weft_policy_t)policy, c))
				visit(pages, (weft_policy_t)policy, c);
}

static size_t trim_shared(void)
{
	struct weft__pages pages;
	size_t bytes = 0;

	lock();
	if (weft__pages_begin(&pages)) {
		each_shared(&pages, add_shared);
		each_shared(&pages, hollow_shared);
		bytes = weft__pages_drop(&pages);
	}
	unlock();
	return bytes;
}

/* Discard the memory of the calling thread's slots with pages of their own, and of the slots that no thread caches. */
static WEFT__COLD size_t trim_slots(void)
{
	size_t bytes = 0;

	if (weft__tls_thread) {
		if (weft__system_trim)
			weft__system_trim();
		drain_bins(weft__tls_thread);
	}
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		for (unsigned c = 0; c < WEFT__TINY_CLASS && !weft__policies[policy]->cut; c++)
			bytes += chill_excess((weft_policy_t)policy, c, 0);
	return bytes;
}

size_t weft__stack_trim(struct weft_link *link, struct weft__slot *slot, char *sp)
{
	/* A frame without a check may use memory below its end: more than that stays. */
	char *to = (char *)((uintptr_t)(sp - 2 * WEFT_SLACK) & ~(uintptr_t)(WEFT__PAGE - 1));
	size_t bytes;

	if (link->chunk)
		slot = weft__chunks_trim(link, slot);
	if (!weft__policies[slot->policy]->trim || weft__is_callers(slot) || to <= slot->chunk.low ||
	    to >= (char *)slot)
		return 0;
	bytes = weft__policies[slot->policy]->trim(slot, to);
	if (link->chunk == &slot->chunk)
		link->limit = slot->chunk.limit;
	return bytes;
}

void weft__stack_share(void)
{
	if (weft__blocks_share)
		weft__blocks_share();
}

size_t weft_stack_trim(void)
{
	size_t bytes = trim_slots();

	if (weft__tls_thread) {
		if (weft__buffers_drain)
			weft__buffers_drain(weft__tls_thread);
		bytes += weft__blocks_trim ? weft__blocks_trim() : 0;
		bytes += weft__regions_trim ? weft__regions_trim(weft__tls_thread) : 0;
	}
	bytes += weft__buffers_trim ? weft__buffers_trim() : 0;
	bytes += trim_shared();
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		if (!weft__policies[policy]->cut)
			bytes += weft__reclaim((weft_policy_t)policy, SIZE_MAX); /* slots that other threads cache */
	return bytes;
}

size_t weft_stack_resident(weft_policy_t policy)
{
	if (policy == WEFT_DEFAULT_POLICY)
		policy = weft_default_policy();
	return (unsigned)policy < WEFT_POLICY_COUNT && !weft__arena_open() ? weft__arena_resident(policy) : 0;
}

static size_t count_warm(weft_policy_t policy)
{
	size_t n = 0;

	for (int c = 0; c < WEFT__CLASSES; c++)
		n += warm_of(policy, c)->count;
	return n;
}

static size_t count_binned(weft_policy_t policy)
{
	size_t n = 0;

	for (struct weft__thread *thread = pool.threads; thread; thread = thread->next) {
		for (int c = 0; c < WEFT__CLASSES; c++)
			n += (uint32_t)weft__bin_tally(&thread->bins[policy][c]);
		n += recent_slot_of(thread, policy) != NULL;
	}
	if (policy == WEFT_OVERCOMMIT)
		for (struct weft__thread *thread = pool.threads; thread; thread = thread->next)
			n += thread->system && __atomic_load_n(thread->system, __ATOMIC_RELAXED);
	return n;
}

static size_t count_copied(void)
{
	size_t bytes;

	lock();
	bytes = pool.copied;
	for (struct weft__thread *thread = pool.threads; thread; thread = thread->next)
		bytes += atomic_load_explicit(&thread->copied, memory_order_relaxed); /* a statistic */
	unlock();
	return bytes;
}

int weft_stack_stats(weft_policy_t policy, weft_stack_stats_t *stats)
{
	size_t binned;

	if (policy == WEFT_DEFAULT_POLICY)
		policy = weft_default_policy();
	if ((unsigned)policy >= WEFT_POLICY_COUNT || !stats)
		return -EINVAL;
	memset(stats, 0, sizeof *stats);
	lock();
	binned = count_binned(policy);
	stats->live = pool.out[policy] > binned ? pool.out[policy] - binned : 0;
	stats->cached = binned + count_warm(policy);
	stats->high_water = pool.high_water[policy];
	unlock();
	stats->in_memory = atomic_load_explicit(&weft__callers_live[policy], memory_order_relaxed);
	stats->live += stats->in_memory;
	stats->reserved = weft__arena_reserved(policy);
	if (weft__policies[policy]->cut)
		stats->copied = count_copied();
	stats->committed = atomic_load_explicit(weft__policies[policy]->committed, memory_order_relaxed);
	weft__fault_stats(policy, stats);
	if (weft__linked_stats)
		weft__linked_stats(policy, stats);
	return 0;
}
