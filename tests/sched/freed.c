/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * freed WORKERS: the last user of an object frees it as soon as its own call has returned. Runs for a second.
 *
 * Each round draws an object and some tasks that use it. A count that the object does not know decides which user frees
 * it. At that moment, the call that let the last user continue may still be running, and must not touch the object any
 * more. The oracle is the memory: it is filled with a pattern, which must be intact when all tasks of the round have
 * ended, or it becomes inaccessible, or, with a sanitizer, it is freed. To cover the memory of channels, calloc and
 * free are wrapped.
 */
#include "check.h"

#include <sys/mman.h>

enum { ROUNDS_AT_ONCE = 4, MOST = 5, PAGE = 4096, PATTERN = 0xa5 };

union object {
	weft_mutex_t mutex;
	weft_rwlock_t rwlock;
	weft_sem_t sem;
	weft_event_t event;
	weft_group_t group;
	weft_once_t once;
	weft_barrier_t barrier;
	weft_future_t future;
};

struct round {
	uint64_t seed;
	const struct kind *kind;
	union object *object;
	weft_chan_t *chans[2];
	void *pages[2]; /* of the object, or of two channels */
	bool patterned, has_pattern[2];
	int users, left, number; /* users: all tasks; left: users until the object is freed, atomic */
	bool begun;		 /* atomic */
};

struct kind {
	const char *name;
	weft_fn_t *first, *others; /* the function of the first user, and the function of all other users */
	int not_counted;	   /* users that `left` does not count */
	int most;		   /* the largest number of users */
};

static uint32_t draw(struct round *r, uint32_t below)
{
	uint64_t seed = __atomic_add_fetch(&r->seed, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);

	seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
	return (uint32_t)(seed >> 33) % below;
}

static void linger(struct round *r)
{
	volatile unsigned turns = draw(r, 2) ? draw(r, 400) : 0;

	while (turns)
		turns--;
	if (!draw(r, 4))
		weft_task_yield();
}

static uint64_t soon(struct round *r)
{
	return weft_now() + draw(r, 20000);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#if WEFT__SANITIZED
static void *page(struct round *r, int i)
{
	return r->pages[i] = calloc(1, sizeof(union object));
}

static void page_freed(struct round *r, int i)
{
	free(r->pages[i]);
}

static weft_chan_t *chan(struct round *r, int i)
{
	(void)r, (void)i;
	return weft_chan_make(sizeof(int), 0);
}

static void look(struct round *r)
{
	(void)r;
}
#else
static char *memory;
static struct round *rounds;
static __thread void *next_block; /* the block that the next calloc returns */

static void *page(struct round *r, int i)
{
	char *at = memory + ((r - rounds) * 2 + i) * PAGE;

	CHECK(mprotect(at, PAGE, PROT_READ | PROT_WRITE) == 0);
	memset(at, 0, PAGE);
	return r->pages[i] = at;
}

static void page_freed(struct round *r, int i)
{
	r->has_pattern[i] = r->patterned;
	if (r->patterned)
		memset(r->pages[i], PATTERN, PAGE);
	else
		CHECK(mprotect(r->pages[i], PAGE, PROT_NONE) == 0);
}

static weft_chan_t *chan(struct round *r, int i)
{
	weft_chan_t *c;

	next_block = page(r, i);
	c = weft_chan_make(sizeof(int), 0);
	CHECK((void *)c == r->pages[i] && !next_block);
	return c;
}

void *__real_calloc(size_t count, size_t size);
void __real_free(void *block);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *block);

void *__wrap_calloc(size_t count, size_t size)
{
	void *block = next_block;

	next_block = NULL;
	return block ? block : __real_calloc(count, size);
}

void __wrap_free(void *block)
{
	ptrdiff_t at = memory ? (char *)block - memory : -1;

	if (at < 0 || at >= ROUNDS_AT_ONCE * 2 * PAGE)
		__real_free(block);
	else
		page_freed(&rounds[at / PAGE / 2], (int)(at / PAGE % 2));
}

/* Checks the pattern when all tasks of the round have ended. */
static void look(struct round *r)
{
	for (int i = 0; i < 2; i++) {
		for (int at = 0; r->has_pattern[i] && at < PAGE; at++)
			if (((unsigned char *)r->pages[i])[at] != PATTERN) {
				dprintf(1, "not ok - %s: byte %d was written after the last user had freed it\n",
					r->kind->name, at);
				abort();
			}
		r->has_pattern[i] = false;
	}
}
#endif

/* The caller has stopped using the object. */
static void leave(struct round *r)
{
	if (!__atomic_sub_fetch(&r->left, 1, __ATOMIC_ACQ_REL))
		page_freed(r, 0);
}

/* ---- the users' functions ---------------------------------------------------------------------------------------- */

static bool tries(struct round *r, weft_mutex_t *m)
{
	unsigned turns = draw(r, 10000);

	while (turns && !weft_mutex_try_lock(m))
		turns--;
	return turns;
}

/* The mutex itself protects the count: the last task to unlock it frees it. */
static void *locks(void *argument)
{
	struct round *r = argument;
	weft_mutex_t *m = &r->object->mutex;
	int turns = (int)draw(r, 3), left;

	while (turns--)
		if (weft_mutex_lock_until(m, draw(r, 2) ? soon(r) : WEFT_NEVER) == 0) {
			linger(r);
			CHECK(weft_mutex_unlock(m) == 0);
		}
	/* If the only waiter has left the queue, the holder unlocks in the slow path, and finds no waiter. */
	while (weft_mutex_lock_until(m, soon(r)) && !tries(r, m))
		;
	if (!draw(r, 4))
		weft_sleep(draw(r, 50000));
	left = --r->left;
	CHECK(weft_mutex_unlock(m) == 0);
	if (!left)
		page_freed(r, 0);
	return NULL;
}

static void *writes(void *argument)
{
	struct round *r = argument;
	weft_rwlock_t *l = &r->object->rwlock;
	int left;

	if (weft_rwlock_read_until(l, soon(r)) == 0) {
		linger(r);
		CHECK(weft_rwlock_unlock(l) == 0);
	}
	while (weft_rwlock_write_until(l, soon(r)))
		;
	left = --r->left;
	CHECK(weft_rwlock_unlock(l) == 0);
	if (!left)
		page_freed(r, 0);
	return NULL;
}

static void *gives(void *argument)
{
	struct round *r = argument;

	linger(r);
	CHECK(weft_sem_give(&r->object->sem, (size_t)r->users - 1) == 0);
	return NULL;
}

static void *takes(void *argument)
{
	struct round *r = argument;

	linger(r);
	while (weft_sem_take_until(&r->object->sem, draw(r, 2) ? soon(r) : WEFT_NEVER))
		;
	leave(r);
	return NULL;
}

static void *sets(void *argument)
{
	struct round *r = argument;

	linger(r);
	weft_event_set(&r->object->event);
	return NULL;
}

static void *sees(void *argument)
{
	struct round *r = argument;

	linger(r);
	while (weft_event_wait_until(&r->object->event, draw(r, 2) ? soon(r) : WEFT_NEVER))
		;
	leave(r);
	return NULL;
}

static void *works(void *argument)
{
	struct round *r = argument;

	linger(r);
	CHECK(weft_group_done(&r->object->group) == 0);
	return NULL;
}

static void *waits(void *argument)
{
	struct round *r = argument;

	linger(r);
	while (weft_group_wait_until(&r->object->group, draw(r, 2) ? soon(r) : WEFT_NEVER))
		;
	leave(r);
	return NULL;
}

struct once_user {
	struct round *round;
	bool runs;
};

static void makes(void *argument)
{
	struct once_user *u = argument;

	u->runs = true;
	linger(u->round);
}

static void *does_once(void *argument)
{
	struct round *r = argument;
	struct once_user mine = {r, false};

	linger(r);
	CHECK(weft_once(&r->object->once, makes, &mine) == 0);
	if (!mine.runs)
		leave(r);
	return NULL;
}

static void *meets(void *argument)
{
	struct round *r = argument;
	int last;

	linger(r);
	last = weft_barrier_wait(&r->object->barrier);
	CHECK(last == 0 || last == 1);
	if (!last)
		leave(r);
	return NULL;
}

static void *says(void *argument)
{
	struct round *r = argument;

	linger(r);
	CHECK(weft_future_set(&r->object->future, r, 0) == 0);
	return NULL;
}

static void *learns(void *argument)
{
	struct round *r = argument;
	void *value;

	linger(r);
	while (weft_future_get_until(&r->object->future, &value, draw(r, 2) ? soon(r) : WEFT_NEVER))
		;
	CHECK(value == r);
	leave(r);
	return NULL;
}

/* No task will start to use the channel. The loop waits for the tasks that are still leaving its queue. */
static void free_chan(weft_chan_t *c)
{
	int error;

	CHECK(weft_chan_close(c) == 0);
	while ((error = weft_chan_free(c)) == -EBUSY)
		weft_task_yield();
	CHECK(!error);
}

static void *sends(void *argument)
{
	struct round *r = argument;

	linger(r);
	CHECK(weft_chan_send(r->chans[0], &r->number) == 0);
	free_chan(r->chans[1]);
	free_chan(r->chans[0]);
	return NULL;
}

static void *chooses(void *argument)
{
	struct round *r = argument;
	int item = -1, which;
	weft_case_t cases[] = {{.chan = r->chans[0], .receive = &item}, {.chan = r->chans[1], .receive = &item}};

	linger(r);
	do
		which = weft_select_until(cases, 2, draw(r, 2) ? soon(r) : WEFT_NEVER);
	while (which == -ETIMEDOUT);
	CHECK(which == 0 && cases[0].status == 0 && item == r->number);
	return NULL;
}

static void *receives(void *argument)
{
	struct round *r = argument;
	int item;

	__atomic_store_n(&r->begun, true, __ATOMIC_RELEASE);
	(void)!weft_chan_receive_until(r->chans[0], &item, draw(r, 2) ? soon(r) : WEFT_NEVER);
	return NULL;
}

/* Both tasks are on one worker: once the receiver has begun, it is in the channel's queue, or is leaving it. */
static void *cancels(void *argument)
{
	struct round *r = argument;
	weft_task_attr_t attr = {.worker = 1};
	weft_task_t receiver;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &receiver, receives, r, &attr) == 0);
	while (!__atomic_load_n(&r->begun, __ATOMIC_ACQUIRE))
		weft_task_yield();
	weft_task_cancel(&receiver);
	free_chan(r->chans[0]);
	weft_join(&receiver, NULL);
	weft_scope_wait(&scope);
	return NULL;
}

static const struct kind kinds[] = {
    {"mutex", locks, locks, 0, MOST},
    {"rwlock", writes, writes, 0, MOST},
    {"semaphore", gives, takes, 1, MOST},
    {"event", sets, sees, 1, MOST},
    {"event of two", sets, sees, 1, 2},
    {"wait group", works, waits, 1, MOST},
    {"once", does_once, does_once, 1, MOST},
    {"barrier", meets, meets, 1, MOST},
    {"future", says, learns, 1, MOST},
    {"channel of a select", sends, chooses, 0, 2},
    {"channel, cancelled", cancels, NULL, 0, 1},
};

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void prepare(struct round *r)
{
	r->kind = &kinds[draw(r, sizeof kinds / sizeof *kinds)];
	/* If a channel were filled with the pattern, its internal lock would look taken, and a user would
	 * wait for it. */
	r->patterned = r->kind->first != sends && r->kind->first != cancels && draw(r, 4);
	r->users = r->kind->most > 2 ? 2 + (int)draw(r, MOST - 1) : r->kind->most;
	r->left = r->users - r->kind->not_counted;
	r->number = (int)draw(r, 1000);
	r->begun = false;
	if (r->kind->first == sends || r->kind->first == cancels) {
		r->chans[0] = chan(r, 0);
		r->chans[1] = r->kind->first == sends ? chan(r, 1) : NULL;
		return;
	}
	r->object = page(r, 0);
	if (r->kind->first == meets)
		r->object->barrier.parties = (uint32_t)r->users;
	if (r->kind->first == works)
		CHECK(weft_group_add(&r->object->group, 1) == 0);
}

static void play(struct round *r)
{
	weft_task_attr_t same_worker = {.worker = 1};
	int i, first;

	prepare(r);
	first = (int)draw(r, (uint32_t)r->users);
	WEFT_SCOPE(scope);
	for (i = 0; i < r->users; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, i == first ? r->kind->first : r->kind->others, r,
					    r->kind->first == cancels ? &same_worker : NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	look(r);
}

static void *plays(void *argument)
{
	uint64_t end = weft_now() + SECOND;
	int turns = 0;

	do {
		play(argument);
		turns++;
	} while (weft_now() < end);
	printf("# %d rounds\n", turns);
	return NULL;
}

static void *all(void *pass)
{
	static struct round own[ROUNDS_AT_ONCE];
	const char *seed = getenv("WEFT_SEED");

#if !WEFT__SANITIZED
	rounds = own;
	memory = mmap(NULL, ROUNDS_AT_ONCE * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
#endif
	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < ROUNDS_AT_ONCE; i++) {
		own[i].seed = (seed ? strtoull(seed, NULL, 10) : 0) * ROUNDS_AT_ONCE + i;
		CHECK(weft_scope_spawn(&scope, plays, &own[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {T(all)};

	return run_tests(tests, 1, argc, argv);
}
