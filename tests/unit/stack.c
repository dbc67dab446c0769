/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Internal tests of the stack layer: geometry of slots, finding slots, pools, statistics, trimming, guards. */
#include "stack/policy.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

/* The policies that give each coroutine a stack of its own; tests/copy tests the remaining policy. */
#define EACH_WITH_STACKS(policy)                                                                                       \
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++)                                                     \
		if (!weft__policies[policy]->cut)

static struct weft__bin *bin_of(weft_policy_t policy, unsigned class)
{
	return &weft__thread()->bins[policy][class];
}

static struct weft__slot *take(weft_policy_t policy, unsigned class)
{
	int error = 0;
	struct weft__slot *slot = weft__slot_take(bin_of(policy, class), &error);

	assert_non_null(slot);
	assert_int_equal(error, 0);
	return slot;
}

static size_t stride_of(size_t size)
{
	return weft__class_bytes(weft__class(WEFT_FIXED, size, true));
}

static void size_classes(void **state)
{
	(void)state;
	for (size_t size = 16 << 10; size <= (size_t)1 << 30; size *= 2) {
		assert_int_equal(stride_of(size), size);
		assert_int_equal(stride_of(size - 1), size);
		assert_int_equal(stride_of(size / 2 + 1), size);
	}
	assert_int_equal(weft__class(WEFT_FIXED, 0, true), weft__class(WEFT_FIXED, 64 << 10, true));
	assert_int_equal(weft__class(WEFT_OVERCOMMIT, 0, true), weft__class(WEFT_FIXED, 256 << 10, true));
	assert_int_equal(weft__class(WEFT_COMMIT, (size_t)1 << 30, true), WEFT__SIZES - 1);
	assert_int_equal(weft__class(WEFT_COMMIT, ((size_t)1 << 30) + 1, true), WEFT__CLASSES);
	assert_int_equal(weft__class(WEFT_COMMIT, SIZE_MAX, true), WEFT__CLASSES);
	for (int p = WEFT_SEGMENTED; p <= WEFT_LOOKAHEAD; p++) {
		assert_int_equal(weft__class((weft_policy_t)p, 1, true), WEFT__TINY_CLASS);
		assert_int_equal(weft__class((weft_policy_t)p, 1024, true), WEFT__TINY_CLASS);
		assert_int_equal(weft__class((weft_policy_t)p, 1025, true), WEFT__ROOMY_CLASS);
		assert_int_equal(weft__class((weft_policy_t)p, 2048, true), WEFT__ROOMY_CLASS);
		assert_true(weft__class((weft_policy_t)p, 2049, true) < WEFT__SIZES);
	}
	assert_true(weft__class(WEFT_MMU, 1024, true) < WEFT__SIZES);
	assert_true(weft__class(WEFT_OVERCOMMIT, 1024, true) < WEFT__SIZES);
}

static void geometry_of(weft_policy_t policy, unsigned class)
{
	struct weft__slot *slot = take(policy, class);
	char *start = weft__slot_start(slot), *end = weft__slot_end(slot);
	size_t size = weft__class_bytes(class);

	assert_int_equal(end - start, size);
	assert_int_equal((uintptr_t)start % WEFT__PAGE, 0);
	assert_int_equal((uintptr_t)slot % 64, 0);
	assert_ptr_equal(slot->chunk.low, start + weft__guard_size(class));
	assert_true((char *)slot > slot->chunk.low && (char *)(slot + 1) <= end);
	assert_int_equal(slot->policy, policy);
	assert_int_equal(slot->class, class);
	assert_null(slot->owner);
	/* The slot is found from any address in it, and not from its neighbours' addresses. */
	assert_ptr_equal(weft__arena_find(start), slot);
	assert_ptr_equal(weft__arena_find(slot), slot);
	assert_ptr_equal(weft__arena_find(end - 1), slot);
	assert_ptr_not_equal(weft__arena_find(start - 1), slot);
	assert_ptr_not_equal(weft__arena_find(end + WEFT__PAGE), slot);
	/* The uppermost frames can be used. */
	memset((char *)slot - 1000, 1, 1000);
	weft__slot_give(slot);
}

static void geometry(void **state)
{
	(void)state;
	EACH_WITH_STACKS(policy)
	for (size_t size = 16 << 10; size <= 64 << 20; size *= 4) {
		geometry_of((weft_policy_t)policy, weft__class((weft_policy_t)policy, size, true));
		geometry_of((weft_policy_t)policy, weft__class((weft_policy_t)policy, size, false));
	}
}

static size_t guard_of(size_t size)
{
	return weft__guard_size(weft__class(WEFT_FIXED, size, true));
}

static void guard_sizes(void **state)
{
	(void)state;
	assert_int_equal(guard_of(16 << 10), 4096);
	assert_int_equal(guard_of(64 << 10), 8192);
	assert_int_equal(guard_of(256 << 10), 32768);
	assert_int_equal(guard_of(1 << 20), 65536);
	assert_int_equal(guard_of((size_t)1 << 30), 65536);
	assert_int_equal(weft__guard_size(weft__class(WEFT_FIXED, 1 << 20, false)), 0);
}

static void find_foreign(void **state)
{
	static char here;

	(void)state;
	assert_null(weft__arena_find(NULL));
	assert_null(weft__arena_find(&here));
	assert_null(weft__arena_find((void *)&state));
	assert_null(weft__arena_find((void *)UINTPTR_MAX));
	assert_null(weft__arena_find((void *)(uintptr_t)0x800000000000));
}

/* Equal frames of neighbouring stacks must not map to the same cache sets. */
static void colours(void **state)
{
	enum { COUNT = 32 };
	struct weft__slot *slot[COUNT];
	int different = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		slot[i] = take(WEFT_OVERCOMMIT, weft__class(WEFT_OVERCOMMIT, 128 << 10, true));
	for (int i = 1; i < COUNT; i++)
		different += (uintptr_t)slot[i] % 4096 != (uintptr_t)slot[0] % 4096;
	assert_true(different >= COUNT / 2);
	for (int i = 0; i < COUNT; i++)
		weft__slot_give(slot[i]);
}

/* Slots are reused last in, first out, and their memory is unchanged. */
static void warm(void **state)
{
	struct weft__slot *slot = take(WEFT_FIXED, weft__class(WEFT_FIXED, 32 << 10, true));

	(void)state;
	weft__slot_give(slot);
	assert_ptr_equal(take(WEFT_FIXED, weft__class(WEFT_FIXED, 32 << 10, true)), slot);
	weft__slot_give(slot);
}

static void bins_are_bounded(void **state)
{
	enum { COUNT = 3 * WEFT__BIN_LIMIT };
	static struct weft__slot *slot[COUNT];
	unsigned class = weft__class(WEFT_OVERCOMMIT, 512 << 10, true);
	struct weft__bin *bin = bin_of(WEFT_OVERCOMMIT, class);

	(void)state;
	for (int i = 0; i < COUNT; i++)
		slot[i] = take(WEFT_OVERCOMMIT, class);
	for (int i = 0; i < COUNT; i++)
		weft__slot_give(slot[i]);
	assert_true(bin->limit <= WEFT__BIN_LIMIT);
	assert_true((uint32_t)weft__bin_tally(bin) <= bin->limit);
	/* All slots are returned, each exactly once. */
	for (int i = 0; i < COUNT; i++) {
		slot[i] = take(WEFT_OVERCOMMIT, class);
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(slot[i], slot[j]);
	}
	for (int i = 0; i < COUNT; i++)
		weft__slot_give(slot[i]);
}

/* ---- through the public interface -------------------------------------------------------------------------------- */

static void *stay(void *argument)
{
	weft_suspend(argument);
	return argument;
}

static weft_coro_t *make(weft_policy_t policy, size_t size, unsigned flags)
{
	weft_attr_t attr = {.policy = policy, .stack_size = size, .flags = flags};
	weft_coro_t *k = weft_create_with(stay, NULL, &attr);

	assert_non_null(k);
	return k;
}

static weft_stack_stats_t stats_of(weft_policy_t policy)
{
	weft_stack_stats_t stats;

	assert_int_equal(weft_stack_stats(policy, &stats), 0);
	return stats;
}

static void statistics(void **state)
{
	(void)state;
	assert_int_equal(weft_stack_stats(WEFT_POLICY_COUNT, &(weft_stack_stats_t){0}), -EINVAL);
	assert_int_equal(weft_stack_stats((weft_policy_t)-1, &(weft_stack_stats_t){0}), -EINVAL);
	EACH_WITH_STACKS(p)
	{
		weft_policy_t policy = (weft_policy_t)p;
		weft_stack_stats_t before = stats_of(policy), during, after;
		weft_coro_t *k[100];

		for (int i = 0; i < 100; i++)
			k[i] = make(policy, 32 << 10, 0);
		during = stats_of(policy);
		assert_int_equal(during.live, before.live + 100);
		assert_true(during.high_water >= during.live);
		assert_true(during.reserved >= during.live * (32 << 10));
		assert_true(during.committed >= 100 * 4096 && during.committed <= during.reserved);
		for (int i = 0; i < 100; i++)
			weft_delete(k[i]);
		after = stats_of(policy);
		assert_int_equal(after.live, before.live);
		assert_true(after.cached >= 100 || after.cached >= before.cached);
		assert_int_equal(after.reserved, during.reserved);
		assert_int_equal(after.failures, before.failures);
	}
}

static size_t resident(void)
{
	size_t pages = 0, unused;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu %zu", &unused, &pages), 2);
	fclose(file);
	return pages * 4096;
}

static void *touch(void *argument)
{
	volatile char room[400 * 1024];

	for (size_t i = 0; i < sizeof room; i += 4096)
		room[i] = 1;
	return argument;
}

static void trimming(void **state)
{
	enum { COUNT = 40 };

	(void)state;
	for (int p = WEFT_FIXED; p <= WEFT_COMMIT; p++) { /* other policies put these frames on system stacks */
		weft_attr_t attr = {.policy = (weft_policy_t)p, .stack_size = 512 << 10};
		weft_coro_t *k[COUNT];
		size_t before, full;

		weft_stack_trim();
		before = resident();
		for (int i = 0; i < COUNT; i++)
			weft_resume(k[i] = weft_create_with(touch, NULL, &attr), NULL, WEFT_HANDLE_NONE);
		for (int i = 0; i < COUNT; i++)
			weft_delete(k[i]);
		full = resident();
		assert_true(full > before + COUNT * (300 << 10));
		assert_true(weft_stack_trim() >= COUNT * (512 << 10));
		assert_true(resident() < before + (full - before) / 8);
		assert_int_equal(stats_of((weft_policy_t)p).cached, 0);
		/* Trimmed stacks are reused. */
		k[0] = make((weft_policy_t)p, 512 << 10, 0);
		assert_false(weft_returned(weft_resume(k[0], NULL, WEFT_HANDLE_NONE)));
		weft_delete(k[0]);
	}
}

static pthread_barrier_t kept, trimmed;

static void *keeps(void *argument)
{
	weft_coro_t *k[20];

	for (int i = 0; i < 20; i++)
		k[i] = make((weft_policy_t)(uintptr_t)argument, 64 << 10, 0);
	for (int i = 0; i < 20; i++)
		weft_delete(k[i]);
	pthread_barrier_wait(&kept);
	pthread_barrier_wait(&trimmed);
	/* They have no memory, and are reused. */
	for (int i = 0; i < 20; i++)
		assert_false(weft_returned(
		    weft_resume(k[i] = make((weft_policy_t)(uintptr_t)argument, 64 << 10, 0), NULL, WEFT_HANDLE_NONE)));
	for (int i = 0; i < 20; i++)
		weft_delete(k[i]);
	return NULL;
}

/* Trimming reaches the caches of other threads. */
static void trimming_others(void **state)
{
	(void)state;
	pthread_barrier_init(&kept, NULL, 2);
	pthread_barrier_init(&trimmed, NULL, 2);
	for (int p = WEFT_FIXED; p <= WEFT_COMMIT; p++) {
		size_t committed;
		pthread_t thread;

		weft_stack_trim();
		committed = stats_of((weft_policy_t)p).committed;
		assert_int_equal(pthread_create(&thread, NULL, keeps, (void *)(uintptr_t)p), 0);
		pthread_barrier_wait(&kept);
		assert_true(stats_of((weft_policy_t)p).committed > committed);
		assert_true(weft_stack_trim() >= 20 * 4096);
		assert_int_equal(stats_of((weft_policy_t)p).committed, committed);
		pthread_barrier_wait(&trimmed);
		pthread_join(thread, NULL);
	}
}

/* ---- a slot whose memory is being dropped ---------------------------------------------------------------------- */

static pthread_barrier_t begins, drops;
static _Atomic(weft_coro_t *) watched;
static atomic_bool in_drop;

int __real_madvise(void *start, size_t bytes, int advice);
int __wrap_madvise(void *start, size_t bytes, int advice);

/* The kernel has dropped the pages, but the system call does not return yet, as if the thread were interrupted
 * there. */
int __wrap_madvise(void *start, size_t bytes, int advice)
{
	char *k = (char *)atomic_load(&watched);
	bool watches = advice == MADV_DONTNEED && k >= (char *)start && k < (char *)start + bytes;
	int result;

	if (watches)
		atomic_store(&in_drop, true);
	result = __real_madvise(start, bytes, advice);
	if (watches) {
		atomic_store(&watched, NULL);
		pthread_barrier_wait(&drops);
		usleep(100 * 1000);
		atomic_store(&in_drop, false);
	}
	return result;
}

static void *takes_again(void *argument)
{
	weft_coro_t *k = make((weft_policy_t)(uintptr_t)argument, 64 << 10, 0), *again;
	bool early;

	atomic_store(&watched, k);
	weft_delete(k);
	pthread_barrier_wait(&begins);
	pthread_barrier_wait(&drops);
	again = make((weft_policy_t)(uintptr_t)argument, 64 << 10, 0);
	early = atomic_load(&in_drop);
	weft_resume(again, NULL, WEFT_HANDLE_NONE);
	weft_delete(again);
	return again == k && !early ? argument : NULL;
}

/* A thread that takes the slot waits until the kernel has dropped all pages. */
static void taken_while_dropped(void **state)
{
	(void)state;
	pthread_barrier_init(&begins, NULL, 2);
	pthread_barrier_init(&drops, NULL, 2);
	EACH_WITH_STACKS(p)
	{
		pthread_t thread;
		void *good;

		assert_int_equal(pthread_create(&thread, NULL, takes_again, (void *)(uintptr_t)p), 0);
		pthread_barrier_wait(&begins);
		weft_stack_trim();
		pthread_join(thread, &good);
		assert_non_null(good);
	}
}

/* Several slots in a page: tiny stacks and copied stacks. */
static void trimming_small_ones(void **state)
{
	enum { COUNT = 5000 };
	static const weft_policy_t policies[] = {WEFT_SEGMENTED, WEFT_HEAP, WEFT_LOOKAHEAD, WEFT_COPY};
	static weft_coro_t *k[COUNT];

	(void)state;
	for (size_t p = 0; p < 4; p++)
		for (int round = 0; round < 2; round++) {
			weft_stack_trim();
			for (int i = 0; i < COUNT; i++)
				k[i] = make(policies[p], 1024, 0);
			for (int i = 0; i < COUNT; i++)
				if (i % 50)
					weft_delete(k[i]);
			assert_true(weft_stack_trim() >= COUNT / 2 * 384);
			for (int i = 0; i < COUNT; i += 50)
				weft_delete(k[i]);
			assert_true(weft_stack_trim() > 0);
			assert_int_equal(weft_stack_trim(), 0);
			assert_int_equal(stats_of(policies[p]).live, 0);
		}
}

/* ---- guards ------------------------------------------------------------------------------------------------------ */

static bool writable(char *address)
{
	int ends[2];
	bool result;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	result = read(ends[0], address, 1) == 1; /* EFAULT if the address is not writable */
	close(ends[0]);
	close(ends[1]);
	return result;
}

static void guards(void **state)
{
	(void)state;
	EACH_WITH_STACKS(p)
	{
		weft_coro_t *k = make((weft_policy_t)p, 128 << 10, 0);

		assert_false(writable(k->slot->chunk.low - 1));
		assert_false(writable(weft__slot_start(k->slot)));
		assert_true(writable((char *)k->slot - 1));
		assert_int_equal(writable(k->slot->chunk.low), p == WEFT_FIXED || p == WEFT_OVERCOMMIT);
		weft_delete(k);
	}
}

/* A stack that was trimmed to one page and then lost its memory is writable again from the reported limit on. */
static void trimmed_and_dropped(void **state)
{
	(void)state;
	EACH_WITH_STACKS(p)
	for (size_t size = 16 << 10; size <= 256 << 10; size *= 4) {
		unsigned class = weft__class((weft_policy_t)p, size, true);
		struct weft__slot *slot = take((weft_policy_t)p, class);

		memset(atomic_load(&slot->open), 1, (size_t)((char *)slot - atomic_load(&slot->open)));
		if (weft__policies[p]->trim)
			assert_true(weft__policies[p]->trim(slot, weft__slot_end(slot) - WEFT__PAGE) > 0);
		weft__slot_give(slot);
		weft_stack_trim();
		for (int i = 0; i < 3; i++) {
			slot = take((weft_policy_t)p, class);
			for (char *at = atomic_load(&slot->open); at < weft__slot_end(slot); at += WEFT__PAGE)
				assert_true(writable(at));
			weft__slot_give(slot);
		}
	}
}

static void without_guard(void **state)
{
	(void)state;
	for (int p = WEFT_FIXED; p <= WEFT_OVERCOMMIT; p++) {
		weft_coro_t *k = make((weft_policy_t)p, 64 << 10, WEFT_NO_GUARD),
			    *guarded = make((weft_policy_t)p, 64 << 10, 0);

		assert_ptr_equal(k->slot->chunk.low, weft__slot_start(k->slot));
		assert_true(writable(k->slot->chunk.low));
		assert_true(weft_stack_usable(k) > (60 << 10));
		weft_delete(k);
		assert_false(writable(guarded->slot->chunk.low - 1));
		weft_delete(guarded);
	}
}

/* ---- slots that share pages: tiny stacks, and small chunks, which are linked behind them ------------------------- */

static const struct {
	weft_policy_t policy;
	unsigned class;
} shared[] = {{WEFT_SEGMENTED, WEFT__TINY_CLASS},  {WEFT_SEGMENTED, WEFT__ROOMY_CLASS},
	      {WEFT_SEGMENTED, WEFT__SMALL_CLASS}, {WEFT_LOOKAHEAD, WEFT__TINY_CLASS},
	      {WEFT_LOOKAHEAD, WEFT__ROOMY_CLASS}, {WEFT_LOOKAHEAD, WEFT__SMALL_CLASS},
	      {WEFT_HEAP, WEFT__TINY_CLASS}};

enum { KINDS = sizeof shared / sizeof *shared, MANY = 5000 };

static struct weft__slot *many[MANY];

static void take_many(size_t kind)
{
	for (int i = 0; i < MANY; i++)
		many[i] = take(shared[kind].policy, shared[kind].class);
}

static void give_many(int from, int step)
{
	for (int i = from; i < MANY; i += step)
		weft__slot_give(many[i]);
}

static void shared_slot_of(struct weft__slot *slot, weft_policy_t policy, unsigned class)
{
	char *end = (char *)(slot + 1), *low = end - weft__class_bytes(class), *frames = weft__frames_of(slot, class);

	assert_int_equal((uintptr_t)slot % 64, 0);
	assert_int_equal(slot->class, class);
	assert_int_equal(slot->policy, policy);
	assert_ptr_equal(slot->chunk.low, low);
	assert_ptr_equal(weft__slot_start(slot), low);
	assert_true(policy == WEFT_HEAP || slot->chunk.limit == low + WEFT_TINY_SLACK);
	assert_true(class != WEFT__SMALL_CLASS || frames == slot->chunk.limit + WEFT__SMALL_ROOM);
	assert_true(frames <= (char *)&slot->owner);
	for (char *address = low; address < end; address += 32)
		assert_ptr_equal(weft__arena_find(address), slot);
	assert_ptr_equal(weft__arena_find(end - 1), slot);
	assert_ptr_not_equal(weft__arena_find(low - 1), slot);
	assert_ptr_not_equal(weft__arena_find(end), slot);
}

/* Each slot is found from its own addresses only, and a write to its frames changes no other slot. */
static void sharing_pages(void **state)
{
	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++) {
		unsigned class = shared[kind].class;

		take_many(kind);
		for (int i = 0; i < MANY; i++) {
			shared_slot_of(many[i], shared[kind].policy, class);
			memset(many[i]->chunk.low, i % 251,
			       (size_t)(weft__frames_of(many[i], class) - many[i]->chunk.low));
		}
		for (int i = 0; i < MANY; i++) {
			shared_slot_of(many[i], shared[kind].policy, class);
			for (char *at = many[i]->chunk.low; at < weft__frames_of(many[i], class); at++)
				assert_int_equal((unsigned char)*at, i % 251);
		}
		give_many(0, 1);
	}
}

/* Pages without a slot in use are freed; the slots in them are reused, each exactly once. */
static void trimming_shared(void **state)
{
	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++)
		for (int round = 0; round < 2; round++) {
			size_t before, bytes = MANY * weft__class_bytes(shared[kind].class);

			weft_stack_trim();
			before = stats_of(shared[kind].policy).committed;
			take_many(kind);
			assert_true(stats_of(shared[kind].policy).committed >= before + bytes / 2);
			for (int i = 0; i < MANY; i++)
				shared_slot_of(many[i], shared[kind].policy, shared[kind].class);
			for (int rest = 1; rest < 50; rest++)
				give_many(rest, 50);
			assert_true(weft_stack_trim() >= bytes / 2);
			for (int i = 0; i < MANY; i += 50)
				shared_slot_of(many[i], shared[kind].policy, shared[kind].class);
			give_many(0, 50);
			assert_true(weft_stack_trim() > 0);
			assert_int_equal(weft_stack_trim(), 0);
			assert_int_equal(stats_of(shared[kind].policy).committed, before);
		}
}

static void *gives_many(void *argument)
{
	give_many(0, 1);
	return argument;
}

/* A thread returns slots that another thread took; when the thread ends, other threads get all of them. */
static void shared_slots_of_others(void **state)
{
	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++) {
		size_t live = stats_of(shared[kind].policy).live, reserved = 0;

		for (int round = 0; round < 3; round++) {
			pthread_t thread;

			take_many(kind);
			assert_true(!reserved || stats_of(shared[kind].policy).reserved == reserved);
			reserved = stats_of(shared[kind].policy).reserved;
			assert_int_equal(stats_of(shared[kind].policy).live, live + MANY);
			assert_int_equal(pthread_create(&thread, NULL, gives_many, NULL), 0);
			pthread_join(thread, NULL);
			assert_int_equal(stats_of(shared[kind].policy).live, live);
		}
	}
}

static void bins_have_room(void **state)
{
	weft_coro_t *k = make(WEFT_DEFAULT_POLICY, 0, 0);

	(void)state;
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		struct weft__bin *last = bin_of((weft_policy_t)p, WEFT__CLASSES - 1);

		assert_true(last->slots + last->limit < weft__thread()->slots[p] + WEFT__BIN_ROOMS);
	}
	weft_delete(k);
}

/* ---- chunks linked behind a tiny chunk -------------------------------------------------------------------------- */

static struct weft_link *begin_on(struct weft__slot *slot)
{
	struct weft_link *link = (struct weft_link *)(void *)slot->object;

	weft__chunks_begin(link, slot);
	return link;
}

/* Returns whether __morestack finds that a frame fits, by the same test. See its .Lchunk. */
static bool fits(const struct weft__slot *slot, size_t need, size_t args)
{
	uintptr_t frames = (uintptr_t)slot->frames;

	if (args)
		frames = (frames - args) & ~(uintptr_t)(WEFT_ARGUMENT_ALIGNMENT - 1);
	return frames >= need + (uintptr_t)slot->chunk.limit;
}

static void links(weft_policy_t policy, size_t need, size_t args, bool small)
{
	struct weft__slot *first = take(policy, need % 3 ? WEFT__TINY_CLASS : WEFT__ROOMY_CLASS), *made;
	struct weft_link *link = begin_on(first);
	struct weft__chunk *chunk = weft__chunk_grow(link, need, args, first->chunk.limit);

	made = weft__slot_of(chunk);
	assert_int_equal(made->class == WEFT__SMALL_CLASS, small);
	assert_ptr_equal(first->chunk.above, chunk);
	assert_ptr_equal(chunk->below, &first->chunk);
	assert_null(chunk->above);
	assert_ptr_equal(made->owner, link);
	assert_ptr_equal(made->frames, small ? (char *)&made->owner : made->object);
	assert_true(fits(made, need, args));
	assert_true(weft__chunks_have(link, first->chunk.low));
	weft__chunks_end(link, first);
	assert_null(first->chunk.above);
	weft__slot_give(first);
}

/* A frame fits up to the last byte, and no further. */
static void small_chunks(void **state)
{
	enum { MOST_ARGS = WEFT__SMALL_ROOM - WEFT_ARGUMENT_ALIGNMENT };

	static const size_t args[] = {0, 8, 16, 56, 64, 200, 256, MOST_ARGS - 1, MOST_ARGS};
	size_t live = stats_of(WEFT_SEGMENTED).live + stats_of(WEFT_LOOKAHEAD).live;

	(void)state;
	for (size_t a = 0; a < sizeof args / sizeof *args; a++)
		for (size_t need = 0; need < WEFT__SMALL_ROOM + 2000; need += need < WEFT__SMALL_ROOM + 8 ? 1 : 61) {
			size_t most = WEFT__SMALL_ROOM - (args[a] ? args[a] + WEFT_ARGUMENT_ALIGNMENT : 0);

			links(need % 2 ? WEFT_SEGMENTED : WEFT_LOOKAHEAD, need, args[a], need <= most);
		}
	links(WEFT_SEGMENTED, 100000, 0, false);
	links(WEFT_SEGMENTED, 0, 5000, false);
	assert_int_equal(stats_of(WEFT_SEGMENTED).live + stats_of(WEFT_LOOKAHEAD).live, live);
}

/* A frame that is too large for the cached small chunk gets another chunk, and the small chunk is freed. No small chunk
 * follows two small chunks, or a chunk with pages of its own. */
static void after_small_chunks(void **state)
{
	struct weft__slot *first = take(WEFT_SEGMENTED, WEFT__TINY_CLASS), *next;
	struct weft_link *link = begin_on(first);
	size_t live = stats_of(WEFT_SEGMENTED).live;
	struct weft__chunk *small = weft__chunk_grow(link, 100, 0, first->chunk.limit), *second, *large;

	(void)state;
	assert_int_equal(weft__slot_of(small)->class, WEFT__SMALL_CLASS);
	large = weft__chunk_grow(link, 1000, 0, first->chunk.limit);
	assert_int_equal(weft__slot_of(large)->class, weft__class(WEFT_SEGMENTED, 32 << 10, true));
	assert_ptr_equal(first->chunk.above, large);
	assert_int_equal(stats_of(WEFT_SEGMENTED).live, live + 1);
	small = weft__chunk_grow(link, 100, 0, first->chunk.limit);
	link->chunk = small; /* like __morestack */
	large = weft__chunk_grow(link, 1000, 0, small->limit);
	assert_int_equal(weft__slot_of(large)->class, weft__class(WEFT_SEGMENTED, 32 << 10, true));
	second = weft__chunk_grow(link, 100, 0, small->limit);
	assert_int_equal(weft__slot_of(second)->class, WEFT__SMALL_CLASS);
	assert_int_equal(stats_of(WEFT_SEGMENTED).live, live + 2);
	link->chunk = second;
	large = weft__chunk_grow(link, 100, 0, second->limit);
	next = weft__slot_of(large);
	assert_int_equal(next->class, weft__class(WEFT_SEGMENTED, 32 << 10, true));
	link->chunk = large;
	assert_ptr_equal(weft__chunk_grow(link, 3000, 0, large->limit), large); /* in place */
	large = weft__chunk_grow(link, 40000, 0, large->low + WEFT_SLACK);
	assert_true(weft__class_bytes(weft__slot_of(large)->class) >= 64 << 10);
	/* A small chunk is writable from end to end: no part of it is freed while it is used. */
	link->chunk = second;
	link->limit = second->limit;
	assert_int_equal(weft__stack_trim(link, first, second->limit), 0);
	assert_null(second->above);
	assert_true(writable(second->low));
	link->chunk = small;
	link->limit = small->limit;
	assert_int_equal(weft__stack_trim(link, first, small->limit), 0);
	assert_null(small->above);
	assert_true(writable(small->low));
	assert_int_equal(stats_of(WEFT_SEGMENTED).live, live + 1);
	weft__chunks_end(link, first);
	weft__slot_give(first);
}

static const int no_probes[3];

/* Stores of `mmu` reach below the slack of small chunks. */
static void in_child_no_small_chunk(void)
{
	struct weft__slot *first = take(WEFT_SEGMENTED, WEFT__TINY_CLASS);
	struct weft_link *link = begin_on(first);

	weft__register_probes(no_probes, no_probes + 3);
	REQUIRE(weft__slot_of(weft__chunk_grow(link, 10, 0, first->chunk.limit))->class ==
		weft__class(WEFT_SEGMENTED, 32 << 10, true));
	weft__chunks_end(link, first);
}

static void small_chunks_and_probes(void **state)
{
	(void)state;
	expect_quiet(in_child(in_child_no_small_chunk));
}

/* Allocates until the arena is exhausted. Then freed slots are found again, and if there is no small chunk a larger
 * chunk is used. */
static void in_child_exhaust(void)
{
	struct rlimit limit = {(rlim_t)256 << 20, (rlim_t)256 << 20};
	unsigned class = weft__class(WEFT_SEGMENTED, 32 << 10, true);
	struct weft__slot *list = NULL, *slot, *first, *large;
	size_t count[2] = {0};
	struct weft__chunk *chunk;
	int error = 0;

	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
	first = take(WEFT_SEGMENTED, WEFT__TINY_CLASS);
	large = take(WEFT_SEGMENTED, class);
	for (int round = 0; round < 2; round++) {
		while ((slot = weft__slot_take(bin_of(WEFT_SEGMENTED, WEFT__SMALL_CLASS), &error))) {
			slot->next = list;
			list = slot;
			count[round]++;
		}
		REQUIRE(error == -ENOMEM);
		if (round)
			break;
		while ((slot = list)) {
			list = slot->next;
			weft__slot_give(slot);
		}
	}
	REQUIRE(count[0] > 10000 && count[1] == count[0]);
	weft__slot_give(large);
	chunk = weft__chunk_grow(begin_on(first), 10, 0, first->chunk.limit);
	REQUIRE(weft__slot_of(chunk)->class == class);
	weft__chunks_end((struct weft_link *)(void *)first->object, first);
	weft__slot_give(list); /* one slot is enough */
	chunk = weft__chunk_grow(begin_on(first), 10, 0, first->chunk.limit);
	REQUIRE(weft__slot_of(chunk)->class == WEFT__SMALL_CLASS);
}

static void small_chunks_exhausted(void **state)
{
	(void)state;
	expect_quiet(in_child(in_child_exhaust));
}

/* ---- the budget -------------------------------------------------------------------------------------------------- */

static void budget(void **state)
{
	size_t before = weft_set_budget((size_t)1 << 40), committed;
	weft_attr_t attr = {.policy = WEFT_COMMIT, .stack_size = 8 << 20};
	weft_coro_t *k;

	(void)state;
	weft_stack_trim();
	committed = stats_of(WEFT_COMMIT).committed;
	weft_set_budget(committed + 4096); /* less than the two initial pages of a stack */
	errno = 0;
	assert_null(weft_create_with(stay, NULL, &attr));
	assert_int_equal(errno, EDQUOT);
	assert_int_equal(stats_of(WEFT_COMMIT).committed, committed);
	weft_set_budget(committed + (16 << 10));
	k = weft_create_with(stay, NULL, &attr);
	assert_non_null(k);
	assert_true(stats_of(WEFT_COMMIT).committed > committed);
	weft_delete(k);
	weft_stack_trim();
	assert_int_equal(stats_of(WEFT_COMMIT).committed, committed);
	/* Other policies do not check the budget. */
	weft_set_budget(1);
	weft_delete(make(WEFT_FIXED, 0, 0));
	weft_set_budget(before);
}

static void grows(void **state)
{
	weft_attr_t attr = {.policy = WEFT_COMMIT, .stack_size = 512 << 10};
	weft_coro_t *k;
	weft_stack_stats_t before, after;

	(void)state;
	weft_stack_trim();
	before = stats_of(WEFT_COMMIT);
	k = weft_create_with(touch, NULL, &attr);
	assert_true(weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)));
	after = stats_of(WEFT_COMMIT);
	assert_true(after.committed >= before.committed + (400 << 10));
	/* The stack grows in batches: far fewer faults than pages. */
	assert_in_range(after.faults - before.faults, 1, 12);
	weft_delete(k);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *create_some(void *argument)
{
	weft_coro_t *k[50];

	for (int i = 0; i < 50; i++)
		k[i] = make((weft_policy_t)(uintptr_t)argument, 0, 0);
	for (int i = 0; i < 49; i++)
		weft_delete(k[i]);
	return k[49];
}

/* When a thread ends, other threads get the slots that it cached. */
static void thread_exit(void **state)
{
	(void)state;
	for (uintptr_t p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft_stack_stats_t before = stats_of((weft_policy_t)p), after, again;
		pthread_t thread;
		void *left;

		assert_int_equal(pthread_create(&thread, NULL, create_some, (void *)p), 0);
		pthread_join(thread, &left);
		after = stats_of((weft_policy_t)p);
		assert_int_equal(after.live, before.live + 1);
		assert_true(after.cached >= 49);
		weft_delete(left);
		for (int round = 0; round < 20; round++) {
			assert_int_equal(pthread_create(&thread, NULL, create_some, (void *)p), 0);
			pthread_join(thread, &left);
			weft_delete(left);
		}
		again = stats_of((weft_policy_t)p);
		assert_int_equal(again.live, before.live);
		/* Sequential threads need no more memory than the first thread. */
		assert_true(again.reserved <= after.reserved + after.reserved / 2);
	}
}

static void *at_exit(void *argument);
static pthread_key_t key;

static void in_destructor(void *argument)
{
	weft_coro_t *k = make(WEFT_OVERCOMMIT, 0, 0);

	(void)argument;
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

static void *at_exit(void *argument)
{
	pthread_setspecific(key, argument);
	weft_delete(make(WEFT_OVERCOMMIT, 0, 0));
	return NULL;
}

/* A destructor that runs after the library's destructor uses coroutines again. */
static void late_destructor(void **state)
{
	weft_stack_stats_t before = stats_of(WEFT_OVERCOMMIT);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_key_create(&key, in_destructor), 0);
	assert_int_equal(pthread_create(&thread, NULL, at_exit, &key), 0);
	pthread_join(thread, NULL);
	assert_int_equal(stats_of(WEFT_OVERCOMMIT).live, before.live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(small_chunks_exhausted), /* first, because its child's arena must be small */
	    T(size_classes),
	    T(geometry),
	    T(guard_sizes),
	    T(find_foreign),
	    T(colours),
	    T(warm),
	    T(bins_are_bounded),
	    T(statistics),
	    T(trimming),
	    T(trimming_others),
	    T(taken_while_dropped),
	    T(trimming_small_ones),
	    T(guards),
	    T(trimmed_and_dropped),
	    T(without_guard),
	    T(sharing_pages),
	    T(trimming_shared),
	    T(shared_slots_of_others),
	    T(bins_have_room),
	    T(small_chunks),
	    T(after_small_chunks),
	    T(small_chunks_and_probes),
	    T(budget),
	    T(grows),
	    T(thread_exit),
	    T(late_destructor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
