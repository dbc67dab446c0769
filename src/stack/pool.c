/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Free slots. A thread takes from and gives to its own bins without a lock; a bin that runs empty or full exchanges
 * half its limit with the warm list of its class, as a batch, under a lock. What the warm list holds beyond its bound
 * loses its memory, and so does, once a second, half of what it did not need since: bursts are absorbed, idle
 * memory goes back, and nobody needs a background thread.
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
#include "stack/buffers.h"
#include "stack/config.h"
#include "stack/copy.h"

#ifdef WEFT_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define VALGRIND_GET_VBITS(from, to, bytes) 0
#define VALGRIND_STACK_REGISTER(start, end) 0u
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

bool weft__on_memcheck;
__thread struct weft__thread *weft__tls_thread __attribute__((tls_model("initial-exec")));

/* Batches that no thread keeps. `low_water`: the fewest slots since `checked`. */
struct warm {
	struct weft__slot *batches;
	size_t count, low_water;
	time_t checked;
};

static struct {
	pthread_mutex_t lock;
	struct warm warm[WEFT_POLICY_COUNT][WEFT__CLASSES];
	size_t out[WEFT_POLICY_COUNT], high_water[WEFT_POLICY_COUNT]; /* slots that threads have, in use or in bins */
	struct weft__thread *threads;
	size_t copied; /* by threads that ended */
	uint64_t next_id;
	pthread_key_t at_exit;
	bool has_key;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .next_id = 1};

static void lock(void)
{
	pthread_mutex_lock(&pool.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&pool.lock);
}

/* ---- sizes and limits ------------------------------------------------------------------------------------ */

unsigned weft__class(weft_policy_t policy, size_t size, bool guard)
{
	/* The smallest size has no room for a guard and for what a call of printf needs. */
	unsigned c = guard ? 1 : 0;

	if (!size)
		size = weft__config_size(policy);
	if (weft__policies[policy]->tiny && size <= WEFT__TINY_LARGEST && !weft__has_probes())
		return WEFT__TINY_CLASS;
	if (weft__policies[policy]->linked)
		guard = true; /* what is not open yet is closed anyway */
	while (c < WEFT__SIZES && weft__class_bytes(c) < size)
		c++;
	if (c == WEFT__SIZES)
		return WEFT__CLASSES;
	return guard ? c : WEFT__SIZES + c;
}

/* At most 32 MiB of address space in a bin, 4 GiB in a warm list. */
static uint32_t bin_limit(unsigned class)
{
	size_t limit = ((size_t)32 << 20) / weft__class_bytes(class);

	return limit < 2 ? 2 : limit > WEFT__BIN_LIMIT ? WEFT__BIN_LIMIT : (uint32_t)limit;
}

static size_t warm_limit(unsigned class)
{
	size_t limit = ((size_t)4 << 30) / weft__class_bytes(class);

	if (class == WEFT__TINY_CLASS) /* several to a page: their memory cannot go back */
		return SIZE_MAX;
	return limit > WEFT__WARM_LIMIT ? WEFT__WARM_LIMIT : limit;
}

/* ---- the warm lists: under the lock ------------------------------------------------------------------------ */

static size_t batch_size(const struct weft__slot *slot)
{
	size_t n = 0;

	for (; slot; slot = slot->next)
		n++;
	return n;
}

static struct weft__slot *warm_pop(struct warm *warm)
{
	struct weft__slot *batch = warm->batches;

	if (batch) {
		warm->batches = batch->batch;
		warm->count -= batch_size(batch);
		if (warm->count < warm->low_water)
			warm->low_water = warm->count;
	}
	return batch;
}

static void warm_push(struct warm *warm, struct weft__slot *batch, size_t count)
{
	batch->batch = warm->batches;
	warm->batches = batch;
	warm->count += count;
}

/* Take batches off that exceed `keep` slots, as one list linked by `batch`. */
static struct weft__slot *warm_excess(struct warm *warm, size_t keep)
{
	struct weft__slot *excess = NULL, *batch;

	while (warm->count > keep && warm->batches) {
		batch = warm_pop(warm);
		batch->batch = excess;
		excess = batch;
	}
	return excess;
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

/* Outside of the lock: a system call per slot. Slots that cannot be chilled stay warm. */
static size_t chill(struct weft__slot *batch)
{
	struct weft__slot *next_batch, *slot, *next;
	size_t bytes = 0;

	for (; batch; batch = next_batch) {
		next_batch = batch->batch;
		for (slot = batch; slot; slot = next) {
			size_t stride = weft__class_bytes(slot->class);
			struct warm *warm = &pool.warm[slot->policy][slot->class];

			next = slot->next;
			VALGRIND_STACK_DEREGISTER(slot->valgrind_id);
			if (weft__arena_chill(slot)) {
				bytes += stride;
				continue;
			}
			lock();
			slot->next = NULL;
			warm_push(warm, slot, 1);
			unlock();
		}
	}
	return bytes;
}

/* ---- bins ---------------------------------------------------------------------------------------------------- */

static void note_out(weft_policy_t policy, size_t more)
{
	pool.out[policy] += more;
	if (pool.out[policy] > pool.high_water[policy])
		pool.high_water[policy] = pool.out[policy];
}

static struct weft__slot *take_warm(struct weft__bin *bin, size_t *count)
{
	struct weft__slot *batch;

	lock();
	batch = warm_pop(&pool.warm[bin->policy][bin->class]);
	*count = batch_size(batch);
	note_out((weft_policy_t)bin->policy, *count);
	unlock();
	return batch;
}

static struct weft__slot *cut(struct weft__bin *bin, size_t *count, int *error)
{
	struct weft__slot *batch = NULL;
	unsigned most = bin->limit / 2 < 32 ? bin->limit / 2 : 32;
	const struct weft__policy *how = weft__policies[bin->policy];
	int made = (how->cut ? how->cut : weft__arena_cut)((weft_policy_t)bin->policy, bin->class, most, &batch);

	if (made < 0) {
		*error = made;
		return NULL;
	}
	*count = (size_t)made;
	for (struct weft__slot *slot = batch; slot; slot = slot->next)
		slot->valgrind_id = VALGRIND_STACK_REGISTER(slot->chunk.low, slot);
	lock();
	note_out((weft_policy_t)bin->policy, *count);
	unlock();
	return batch;
}

struct weft__slot *weft__slot_take_slow(struct weft__bin *bin, int *error)
{
	struct weft__slot *slot;
	size_t count;

	slot = take_warm(bin, &count);
	if (!slot)
		slot = cut(bin, &count, error);
	if (!slot && weft_stack_trim()) /* what other classes keep warm may be what is missing */
		slot = cut(bin, &count, error);
	if (!slot)
		return NULL;
	bin->head = slot->next;
	weft__bin_add(bin, (int)count - 1);
	return slot;
}

/* Move `count` slots from the bin to the warm list. */
static void give_batch(struct weft__bin *bin, uint32_t count)
{
	struct warm *warm = &pool.warm[bin->policy][bin->class];
	struct weft__slot *batch = bin->head, *last = batch, *excess;

	for (uint32_t i = 1; i < count; i++)
		last = last->next;
	bin->head = last->next;
	last->next = NULL;
	weft__bin_add(bin, -(int)count);
	lock();
	warm_push(warm, batch, count);
	pool.out[bin->policy] -= count;
	excess = weft__policies[bin->policy]->cut ? NULL : warm_excess(warm, to_keep(warm, bin->class));
	unlock();
	chill(excess);
}

#ifdef WEFT_TINY
/* The end where frames are, as far as it is open. */
static void poison(struct weft__slot *slot)
{
	size_t bytes = (size_t)((char *)slot - atomic_load(&slot->open));

	if (bytes > 65536)
		bytes = 65536;
	memset((char *)slot - bytes, 0xde, bytes);
}
#endif

void weft__slot_give(struct weft__slot *slot)
{
	struct weft__thread *thread = weft__thread();
	struct weft__bin *bin;

	if (weft__unlikely(!thread)) { /* no memory even for bins: straight back to the kernel */
		lock();
		pool.out[slot->policy]--;
		unlock();
		slot->next = slot->batch = NULL;
		chill(slot);
		return;
	}
	bin = &thread->bins[slot->policy][slot->class];
#ifdef WEFT_TINY
	poison(slot);
#endif
	slot->next = bin->head;
	bin->head = slot;
	if (weft__unlikely(weft__bin_add(bin, 1) > bin->limit))
		give_batch(bin, bin->limit / 2);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void drain_bins(struct weft__thread *thread)
{
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		for (int c = 0; c < WEFT__CLASSES; c++) {
			struct weft__bin *bin = &thread->bins[policy][c];

			if (bin->count)
				give_batch(bin, bin->count);
		}
}

/* At thread exit. Destructors that run later may attach the thread again; then this runs again. */
static void detach(void *argument)
{
	struct weft__thread *thread = argument;

	weft__linked_detach(thread);
	weft__owner_detach();
	VALGRIND_STACK_DEREGISTER(thread->valgrind_id);
	drain_bins(thread);
	weft__regions_leave(thread);
	weft__buffers_drain(thread);
	weft__tls_thread = NULL;
	lock();
	if (thread->next)
		thread->next->previous = thread->previous;
	*(thread->previous ? &thread->previous->next : &pool.threads) = thread->next;
	pool.copied += thread->copied;
	unlock();
	weft__os_alt_stack_leave(thread->alt_stack);
	weft__os_free(thread, sizeof *thread);
}

static void open_pool(void)
{
	char known = 0, bits;

	weft__on_memcheck = VALGRIND_GET_VBITS(&known, &bits, 1) == 1;
	pool.has_key = pthread_key_create(&pool.at_exit, detach) == 0;
	(void)pthread_atfork(lock, unlock, unlock);
	weft__vectors_measure();
	weft__fault_install();
}

static void set_up_bins(struct weft__thread *thread)
{
	weft_policy_t policy = weft_default_policy();

	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		for (unsigned c = 0; c < WEFT__CLASSES; c++)
			thread->bins[p][c] =
			    (struct weft__bin){.limit = bin_limit(c), .policy = (uint8_t)p, .class = (uint8_t)c};
	thread->default_bin = &thread->bins[policy][weft__class(policy, 0, true)];
}

WEFT__COLD struct weft__thread *weft__thread_attach(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft__thread *thread;

	if (weft__arena_open())
		return NULL;
	pthread_once(&once, open_pool);
	thread = weft__os_alloc(sizeof *thread);
	if (!thread)
		return NULL;
	set_up_bins(thread);
	/* Without it overflows end in a bare SIGSEGV and `commit` cannot grow: no thread without. */
	if (weft__os_alt_stack_enter(&thread->alt_stack) || !pool.has_key ||
	    pthread_setspecific(pool.at_exit, thread)) {
		weft__os_alt_stack_leave(thread->alt_stack);
		weft__os_free(thread, sizeof *thread);
		return NULL;
	}
	lock();
	thread->next = pool.threads;
	if (pool.threads)
		pool.threads->previous = thread;
	pool.threads = thread;
	unlock();
	weft__tls_thread = thread;
	weft__linked_attach(thread);
	thread->valgrind_id =
	    VALGRIND_STACK_REGISTER(thread->small_stack, thread->small_stack + sizeof thread->small_stack);
	return thread;
}

uint64_t weft__more_ids(struct weft__thread *thread)
{
	uint64_t more = thread->last_id ? 1024 : 16; /* small numbers where there are few */

	lock();
	thread->next_id = pool.next_id;
	pool.next_id += more;
	unlock();
	thread->last_id = thread->next_id + more;
	return thread->next_id++;
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

size_t weft_stack_trim(void)
{
	struct weft__slot *excess;
	size_t bytes = 0;

	if (weft__tls_thread) {
		weft__system_trim();
		drain_bins(weft__tls_thread);
		weft__buffers_drain(weft__tls_thread);
	}
	bytes += weft__buffers_trim();
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)
		for (int c = 0; c < WEFT__TINY_CLASS && !weft__policies[policy]->cut; c++) {
			lock();
			excess = warm_excess(&pool.warm[policy][c], 0);
			unlock();
			bytes += chill(excess);
		}
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
		n += pool.warm[policy][c].count;
	return n;
}

static size_t count_binned(weft_policy_t policy)
{
	size_t n = 0;

	for (struct weft__thread *thread = pool.threads; thread; thread = thread->next)
		for (int c = 0; c < WEFT__CLASSES; c++)
			n += atomic_load_explicit(&thread->bins[policy][c].count, memory_order_relaxed);
	if (policy == WEFT_OVERCOMMIT)
		for (struct weft__thread *thread = pool.threads; thread; thread = thread->next)
			n += __atomic_load_n(thread->system, __ATOMIC_RELAXED) != NULL;
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
	if ((unsigned)policy >= WEFT_POLICY_COUNT)
		return -EINVAL;
	memset(stats, 0, sizeof *stats);
	lock();
	binned = count_binned(policy);
	stats->live = pool.out[policy] > binned ? pool.out[policy] - binned : 0;
	stats->cached = binned + count_warm(policy);
	stats->high_water = pool.high_water[policy];
	unlock();
	stats->reserved = weft__arena_reserved(policy);
	if (weft__policies[policy]->cut)
		stats->copied = count_copied();
	stats->committed = atomic_load_explicit(weft__policies[policy]->committed, memory_order_relaxed);
	weft__fault_stats(policy, stats);
	weft__linked_stats(policy, stats);
	return 0;
}
