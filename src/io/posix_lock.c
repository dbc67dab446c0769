/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Locks of the C library that tasks hold while they wait: mutexes, conditions, read-write locks, flockfile,
 * pthread_once and the guards of C++'s local static variables. Only libweft-posix.so calls this file, because an unlock
 * in one library must find a lock of a second library here.
 *
 * libc identifies an owner by its thread. Two tasks of a worker have one thread, so without this file a recursive mutex
 * lets both in, and a mutex of another kind blocks the thread that its owner needs. Here an owner is a task:
 *
 *   record    Each lock that a task has locked has a record: the lock, the task, the task's thread. A task with a
 *             record is pinned to its worker, because libc wants the unlock from the thread that locked.
 *   lock      First libc's try function. Its answer is right except for recursive locks: there a record of another
 *             task of this thread shows the error, and the lock is undone.
 *   wait      A lock whose owner is a suspended task blocks no thread: the task parks in a queue for the lock's
 *             address. For any other owner the thread blocks in libc, MOMENT at a time, because code that protects a
 *             variable of the thread (an allocator) must not see another task between its attempt and its success.
 *             After PATIENCE such times the owner is assumed to depend on a task of this thread. A lock with a time
 *             limit parks at once.
 *   unlock    libc's unlock, then a wake-up of the first in the queue. libc unlocks a mutex by itself in a thread's
 *             pthread_cond_wait, which this file does not see; so a parked task tries again after RETRY.
 *   condition A task parks before it unlocks the mutex. A signal wakes one parked task and also calls libc's function:
 *             a spurious wake-up is allowed, a lost wake-up is not. Process-shared conditions block the thread.
 *   once      A record without a lock: while it exists other tasks park, and then call libc's function.
 *
 * The record table has no lock. A slot belongs to the task in `task`; only its thread writes the slot, except that an
 * unlock by another thread clears `lock`, and the owner reclaims the slot later. If a window of the table is full the
 * lock has no record, and the call acts as libc's alone.
 *
 * Waits for locks are not cancelled: POSIX has no error for that, and callers do not look.
 */
#define _GNU_SOURCE
#include "io/posix.h"

#ifdef __GLIBC__
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 32768, WINDOW = 4, QUEUES = 64, PATIENCE = 10 };
static const uint64_t MOMENT = 1000000, RETRY = 100000000; /* nanoseconds */

struct record {
	void *_Atomic lock;		 /* NULL: unlocked; the owner reclaims the slot */
	struct weft__task *_Atomic task; /* the owner; NULL: the slot is free */
	const void *_Atomic thread;	 /* an address that identifies the owner's thread */
	uint32_t depth;			 /* how often the owner has locked it */
	uint16_t next;			 /* the owner's next record, counted from 1; 0: none */
	bool pins;			 /* the owner was not pinned before its first record */
	_Atomic bool is_suspended;	 /* the owner waits in a call of weft/posix.h */
};

static struct record *_Atomic records; /* SLOTS and WINDOW more; NULL: not made yet */

/* Tasks that wait for a lock's address. */
struct parked {
	weft_waiter_t waiter;
	void *lock;
	struct parked *next, **link; /* link NULL: in no queue */
};

static struct queue {
	uint32_t lock;
	struct parked *first, **last;
} queues[QUEUES];

static _Atomic unsigned parked_tasks;

/* How each kind of lock is tried, waited for and undone. */
struct kind {
	const char *name;
	int (*try)(void *lock);
	int (*block)(void *lock);
	int (*block_until)(void *lock, const struct timespec *until); /* CLOCK_REALTIME; may be NULL */
	int (*unlock)(void *lock);
	bool (*nests)(void *lock); /* may `try` succeed although a second task of this thread owns the lock? NULL: never
				    * */
	bool may_be_foreign;	   /* may a task or thread that has not locked it unlock it? */
};

static const void *this_thread(void)
{
	static __thread __attribute__((tls_model("initial-exec"))) char here;

	return &here;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static size_t hash(const void *lock)
{
	return (size_t)((uintptr_t)lock * 0x9e3779b97f4a7c15u >> 32);
}

static struct record *find(struct record *table, const void *lock, const struct weft__task *task)
{
	struct record *r = table ? &table[hash(lock) % SLOTS] : NULL, *end = r + (table ? WINDOW : 0);

	for (; r < end; r++)
		/* Relaxed: only the owner's thread must see its own stores; other threads use the result as a hint. */
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) == lock &&
		    (!task || atomic_load_explicit(&r->task, memory_order_relaxed) == task))
			return r;
	return NULL;
}

/* The caller's record of the lock. */
static struct record *mine(const void *lock, const struct weft__task *task)
{
	return find(atomic_load_explicit(&records, memory_order_acquire), lock, task);
}

/* The record of a different task for the lock, if its owner cannot run while the calling thread blocks. */
static struct record *suspended_owner(const void *lock, const struct weft__task *task)
{
	struct record *table = atomic_load_explicit(&records, memory_order_acquire), *r, *end;

	if (!table)
		return NULL;
	for (r = &table[hash(lock) % SLOTS], end = r + WINDOW; r < end; r++)
		if (atomic_load_explicit(&r->lock, memory_order_relaxed) == lock &&
		    atomic_load_explicit(&r->task, memory_order_relaxed) != task &&
		    (atomic_load_explicit(&r->thread, memory_order_relaxed) == this_thread() ||
		     atomic_load_explicit(&r->is_suspended, memory_order_relaxed)))
			return r;
	return NULL;
}

static struct record *make_table(void)
{
	struct record *table = mmap(NULL, (SLOTS + WINDOW) * sizeof *table, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		      *other = NULL;

	if (table == MAP_FAILED)
		return NULL;
	/* Release: pairs with the loads of `records`. */
	if (atomic_compare_exchange_strong_explicit(&records, &other, table, memory_order_acq_rel,
						    memory_order_acquire))
		return table;
	munmap(table, (SLOTS + WINDOW) * sizeof *table);
	return other;
}

/* Frees the slots of locks that another thread has unlocked, and unpins a task that holds no lock. */
static void reclaim(struct record *table, struct weft__task *task)
{
	uint16_t *link = &task->locks;
	bool pins = false;
	struct record *r;

	while (*link) {
		r = &table[*link - 1];
		pins |= r->pins;
		r->pins = false;
		if (atomic_load_explicit(&r->lock, memory_order_relaxed)) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		/* Release: the slot's next owner has it after these accesses. Pairs with `reserve`. */
		atomic_store_explicit(&r->task, NULL, memory_order_release);
	}
	if (task->locks)
		table[task->locks - 1].pins = pins;
	else if (pins)
		task->pinned = NULL;
}

static struct record *reserve(struct record *table, const void *lock, struct weft__task *task)
{
	struct record *r = &table[hash(lock) % SLOTS], *end = r + WINDOW;
	struct weft__task *none;

	for (; r < end; r++) {
		none = NULL;
		/* Acquire: pairs with `reclaim`. */
		if (!atomic_load_explicit(&r->task, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&r->task, &none, task, memory_order_acquire,
							    memory_order_relaxed))
			return r;
	}
	return NULL;
}

static void record(void *lock, struct weft__task *task)
{
	struct record *table = atomic_load_explicit(&records, memory_order_acquire), *r = find(table, lock, task);

	if (r) {
		r->depth++;
		return;
	}
	if (!table && !(table = make_table()))
		return;
	if (task->locks)
		reclaim(table, task);
	r = reserve(table, lock, task);
	if (!r)
		return;
	r->depth = 1;
	r->next = task->locks;
	r->pins = !task->pinned;
	if (r->pins)
		task->pinned = weft__worker();
	task->locks = (uint16_t)(r - table + 1);
	atomic_store_explicit(&r->is_suspended, false, memory_order_relaxed);
	atomic_store_explicit(&r->thread, this_thread(), memory_order_relaxed);
	atomic_store_explicit(&r->lock, lock, memory_order_relaxed);
}

/* The caller has unlocked it once: frees the record after the last unlock. */
static void forget(struct record *table, struct record *r, struct weft__task *task)
{
	if (!r || --r->depth)
		return;
	atomic_store_explicit(&r->lock, NULL, memory_order_relaxed);
	reclaim(table, task);
}

void weft__posix_mark_locks(struct weft__task *task, bool is_suspended)
{
	struct record *table = atomic_load_explicit(&records, memory_order_relaxed);
	uint16_t i;

	for (i = task->locks; i; i = table[i - 1].next)
		atomic_store_explicit(&table[i - 1].is_suspended, is_suspended, memory_order_relaxed);
}

/* ---- parking ----------------------------------------------------------------------------------------------------- */

static struct queue *queue_of(const void *lock)
{
	return &queues[hash(lock) % QUEUES];
}

static void enter(struct parked *p, const char *what, void *lock, uint64_t deadline)
{
	struct queue *q = queue_of(lock);

	weft_waiter_init(&p->waiter, what, lock, deadline);
	p->lock = lock;
	p->next = NULL;
	/* A full barrier: the caller tries to lock after it. An unlock reads the count after it has unlocked. */
	atomic_fetch_add(&parked_tasks, 1);
	weft__task_lock(&q->lock);
	if (!q->first)
		q->last = &q->first;
	p->link = q->last;
	*q->last = p;
	q->last = &p->next;
	weft__task_unlock(&q->lock);
}

/* Under the queue's lock. */
static void take_out(struct queue *q, struct parked *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	else
		q->last = p->link;
	p->link = NULL;
}

static void leave(struct parked *p)
{
	struct queue *q = queue_of(p->lock);

	weft__task_lock(&q->lock);
	if (p->link)
		take_out(q, p);
	weft__task_unlock(&q->lock);
	atomic_fetch_sub(&parked_tasks, 1);
}

static void wake(void *lock, bool all)
{
	struct parked *p, *next, *woken = NULL, **end = &woken;
	struct queue *q = queue_of(lock);

	if (!atomic_load(&parked_tasks))
		return;
	weft__task_lock(&q->lock);
	for (p = q->first; p && (all || !woken); p = next) {
		next = p->next;
		if (p->lock != lock)
			continue;
		take_out(q, p);
		if (!weft_waiter_claim(&p->waiter, 0))
			continue;
		p->next = NULL;
		*end = p;
		end = &p->next;
	}
	weft__task_unlock(&q->lock);
	for (p = woken; p; p = next) {
		next = p->next;
		weft_waiter_complete(&p->waiter);
	}
}

void weft__posix_unlocked(void *lock)
{
	wake(lock, true);
}

void weft__posix_forget_locks(void)
{
	memset((void *)queues, 0, sizeof queues);
	atomic_store(&parked_tasks, 0);
	atomic_store(&records, NULL);
}

/* ---- a lock ------------------------------------------------------------------------------------------------------ */

static int try_lock(void *lock, const struct kind *kind, struct weft__task *task)
{
	struct record *r;
	int error = kind->try(lock);

	if (!error && kind->nests && kind->nests(lock)) {
		r = suspended_owner(lock, task);
		if (r && atomic_load_explicit(&r->thread, memory_order_relaxed) == this_thread()) {
			kind->unlock(lock);
			return EBUSY;
		}
	}
	if (!error || error == EOWNERDEAD)
		record(lock, task);
	return error;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns like try_lock. */
static int park(void *lock, const struct kind *kind, struct weft__task *task, uint64_t deadline)
{
	struct parked p;
	int error;

	enter(&p, kind->name, lock, earlier(deadline, weft_now() + RETRY));
	error = try_lock(lock, kind, task);
	/* If an unlock has claimed the waiter it will complete it, and the frame must stay until then. */
	if (error == EBUSY || !weft_waiter_claim(&p.waiter, 0))
		weft__posix_park(&p.waiter);
	leave(&p);
	return error == EBUSY ? try_lock(lock, kind, task) : error;
}

/* Blocks the thread for a moment. Returns like try_lock. */
static int block(void *lock, const struct kind *kind, struct weft__task *task)
{
	struct timespec until;
	int error;

	if (!kind->block_until) {
		until = (struct timespec){0, MOMENT / 16};
		weft__libc.nanosleep(&until, NULL);
		return try_lock(lock, kind, task);
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += MOMENT;
	if (until.tv_nsec >= (long)WEFT__NANOSECONDS) {
		until.tv_nsec -= WEFT__NANOSECONDS;
		until.tv_sec++;
	}
	error = kind->block_until(lock, &until);
	if (!error || error == EOWNERDEAD)
		record(lock, task);
	return error == ETIMEDOUT ? EBUSY : error;
}

/* A different owner has the lock. Returns like try_lock, or ETIMEDOUT if `deadline` has passed. */
static int wait_for_lock(void *lock, const struct kind *kind, struct weft__task *task, uint64_t deadline)
{
	/* An allocator never waits with a time limit. */
	int error, patience = deadline == WEFT_NEVER ? PATIENCE : 0;

	do {
		if (deadline != WEFT_NEVER && weft_now() >= deadline)
			return ETIMEDOUT;
		if (patience && !suspended_owner(lock, task)) {
			patience--;
			error = block(lock, kind, task);
		} else if (weft__posix_may_wait()) {
			error = park(lock, kind, task, deadline);
		} else {
			error = block(lock, kind, task);
		}
	} while (error == EBUSY);
	return error;
}

/* Returns 0 or an errno. errno is unchanged. */
static int acquire(void *lock, const struct kind *kind, struct weft__task *task, uint64_t deadline)
{
	int error = try_lock(lock, kind, task);

	if (error != EBUSY)
		return error;
	/* The owner locks again: EDEADLK, or it waits for itself like a thread. */
	if (mine(lock, task) && deadline == WEFT_NEVER)
		return kind->block(lock);
	return wait_for_lock(lock, kind, task, deadline);
}

static int release(void *lock, const struct kind *kind, struct weft__task *task)
{
	struct record *table = atomic_load_explicit(&records, memory_order_acquire), *r, *foreign;
	int error;

	r = task ? find(table, lock, task) : NULL;
	/* libc lets a task or thread unlock a default mutex that a different owner has locked. */
	foreign = !r && kind->may_be_foreign ? find(table, lock, NULL) : NULL;
	if (foreign)
		atomic_store_explicit(&foreign->lock, NULL, memory_order_relaxed);
	error = kind->unlock(lock);
	if (error)
		return error;
	forget(table, r, task);
	wake(lock, false);
	return 0;
}

/* Converts an absolute time of a clock to a deadline. WEFT_NEVER: the time or the clock is invalid, and libc must
 * report it. */
static uint64_t deadline_of(clockid_t clock, const struct timespec *until)
{
	struct timespec now;
	int64_t seconds, nanoseconds;

	if (until->tv_nsec < 0 || until->tv_nsec >= (long)WEFT__NANOSECONDS ||
	    (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC) || clock_gettime(clock, &now))
		return WEFT_NEVER;
	seconds = (int64_t)until->tv_sec - now.tv_sec;
	nanoseconds = until->tv_nsec - now.tv_nsec;
	if (nanoseconds < 0) {
		nanoseconds += WEFT__NANOSECONDS;
		seconds--;
	}
	return earlier(weft__posix_after(seconds, seconds < 0 ? 0 : nanoseconds), WEFT_NEVER - 1);
}

/* ---- mutexes ----------------------------------------------------------------------------------------------------- */

static int try_mutex(void *m)
{
	return weft__libc.pthread_mutex_trylock(m);
}

static int block_mutex(void *m)
{
	return weft__libc.pthread_mutex_lock(m);
}

static int block_mutex_until(void *m, const struct timespec *until)
{
	return weft__libc.pthread_mutex_timedlock(m, until);
}

static int unlock_mutex(void *m)
{
	return weft__libc.pthread_mutex_unlock(m);
}

/* The low bits of glibc's kind are PTHREAD_MUTEX_…: static initializers compiled into programs contain them. */
static bool is_recursive(void *m)
{
	return (((pthread_mutex_t *)m)->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
}

static const struct kind mutex = {
    .name = "pthread_mutex_t",
    .try = try_mutex,
    .block = block_mutex,
    .block_until = block_mutex_until,
    .unlock = unlock_mutex,
    .nests = is_recursive,
    .may_be_foreign = true,
};

int weft_posix_pthread_mutex_lock(pthread_mutex_t *m)
{
	struct weft__task *task = weft__posix_task();

	return task ? acquire(m, &mutex, task, WEFT_NEVER) : weft__libc.pthread_mutex_lock(m);
}

int weft_posix_pthread_mutex_trylock(pthread_mutex_t *m)
{
	struct weft__task *task = weft__posix_task();

	return task ? try_lock(m, &mutex, task) : weft__libc.pthread_mutex_trylock(m);
}

int weft_posix_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	struct weft__task *task = weft__posix_task();
	uint64_t deadline = task ? deadline_of(clock, until) : WEFT_NEVER;

	return deadline != WEFT_NEVER ? acquire(m, &mutex, task, deadline)
				      : weft__libc.pthread_mutex_clocklock(m, clock, until);
}

int weft_posix_pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	return weft_posix_pthread_mutex_clocklock(m, CLOCK_REALTIME, until);
}

int weft_posix_pthread_mutex_unlock(pthread_mutex_t *m)
{
	return release(m, &mutex, weft__posix_task());
}

/* ---- read-write locks -------------------------------------------------------------------------------------------- */

static int try_read(void *l)
{
	return weft__libc.pthread_rwlock_tryrdlock(l);
}

static int try_write(void *l)
{
	return weft__libc.pthread_rwlock_trywrlock(l);
}

static int block_read(void *l)
{
	return weft__libc.pthread_rwlock_rdlock(l);
}

static int block_write(void *l)
{
	return weft__libc.pthread_rwlock_wrlock(l);
}

static int block_read_until(void *l, const struct timespec *until)
{
	return weft__libc.pthread_rwlock_timedrdlock(l, until);
}

static int block_write_until(void *l, const struct timespec *until)
{
	return weft__libc.pthread_rwlock_timedwrlock(l, until);
}

static int unlock_either(void *l)
{
	return weft__libc.pthread_rwlock_unlock(l);
}

static const struct kind reading = {
    .name = "pthread_rwlock_t",
    .try = try_read,
    .block = block_read,
    .block_until = block_read_until,
    .unlock = unlock_either,
};
static const struct kind writing = {
    .name = "pthread_rwlock_t",
    .try = try_write,
    .block = block_write,
    .block_until = block_write_until,
    .unlock = unlock_either,
};

int weft_posix_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	struct weft__task *task = weft__posix_task();

	return task ? acquire(l, &reading, task, WEFT_NEVER) : weft__libc.pthread_rwlock_rdlock(l);
}

int weft_posix_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	struct weft__task *task = weft__posix_task();

	return task ? acquire(l, &writing, task, WEFT_NEVER) : weft__libc.pthread_rwlock_wrlock(l);
}

int weft_posix_pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	struct weft__task *task = weft__posix_task();

	return task ? try_lock(l, &reading, task) : weft__libc.pthread_rwlock_tryrdlock(l);
}

int weft_posix_pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	struct weft__task *task = weft__posix_task();

	return task ? try_lock(l, &writing, task) : weft__libc.pthread_rwlock_trywrlock(l);
}

int weft_posix_pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	struct weft__task *task = weft__posix_task();
	uint64_t deadline = task ? deadline_of(clock, until) : WEFT_NEVER;

	return deadline != WEFT_NEVER ? acquire(l, &reading, task, deadline)
				      : weft__libc.pthread_rwlock_clockrdlock(l, clock, until);
}

int weft_posix_pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *until)
{
	struct weft__task *task = weft__posix_task();
	uint64_t deadline = task ? deadline_of(clock, until) : WEFT_NEVER;

	return deadline != WEFT_NEVER ? acquire(l, &writing, task, deadline)
				      : weft__libc.pthread_rwlock_clockwrlock(l, clock, until);
}

int weft_posix_pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return weft_posix_pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, until);
}

int weft_posix_pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	return weft_posix_pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, until);
}

int weft_posix_pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	return release(l, &writing, weft__posix_task());
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

/* Bits of glibc's pthread_cond_t, set by its attributes. */
enum { COND_SHARED = 1, COND_MONOTONIC = 2 };

static unsigned attributes(const pthread_cond_t *c)
{
	return __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED);
}

static int wait_on(pthread_cond_t *c, pthread_mutex_t *m, struct weft__task *task, uint64_t deadline)
{
	struct parked p;
	int error;

	enter(&p, "pthread_cond_t", c, deadline);
	error = release(m, &mutex, task);
	if (!error || !weft_waiter_claim(&p.waiter, 0))
		weft__posix_park(&p.waiter);
	leave(&p);
	if (error)
		return error;
	error = acquire(m, &mutex, task, WEFT_NEVER);
	return error ? error : -p.waiter.result;
}

/* The calling task, if it can wait for this condition without blocking its thread. */
static struct weft__task *waiting_task(const pthread_cond_t *c)
{
	struct weft__task *task = weft__posix_task();

	return task && !(attributes(c) & COND_SHARED) && weft__posix_may_wait() ? task : NULL;
}

int weft_posix_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	struct weft__task *task = waiting_task(c);

	return task ? wait_on(c, m, task, WEFT_NEVER) : weft__libc.pthread_cond_wait(c, m);
}

int weft_posix_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				      const struct timespec *until)
{
	struct weft__task *task = waiting_task(c);
	uint64_t deadline = task ? deadline_of(clock, until) : WEFT_NEVER;

	return deadline != WEFT_NEVER ? wait_on(c, m, task, deadline)
				      : weft__libc.pthread_cond_clockwait(c, m, clock, until);
}

int weft_posix_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	struct weft__task *task = waiting_task(c);
	clockid_t clock = attributes(c) & COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	uint64_t deadline = task ? deadline_of(clock, until) : WEFT_NEVER;

	return deadline != WEFT_NEVER ? wait_on(c, m, task, deadline) : weft__libc.pthread_cond_timedwait(c, m, until);
}

int weft_posix_pthread_cond_signal(pthread_cond_t *c)
{
	wake(c, false);
	return weft__libc.pthread_cond_signal(c);
}

int weft_posix_pthread_cond_broadcast(pthread_cond_t *c)
{
	wake(c, true);
	return weft__libc.pthread_cond_broadcast(c);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static int try_stream(void *stream)
{
	return weft__libc.ftrylockfile(stream) ? EBUSY : 0;
}

static int block_stream(void *stream)
{
	weft__libc.flockfile(stream);
	return 0;
}

static int unlock_stream(void *stream)
{
	weft__libc.funlockfile(stream);
	return 0;
}

static bool always(void *stream)
{
	(void)stream;
	return true;
}

static const struct kind stream = {
    .name = "FILE",
    .try = try_stream,
    .block = block_stream,
    .unlock = unlock_stream,
    .nests = always,
};

void weft_posix_flockfile(FILE *f)
{
	struct weft__task *task = weft__posix_task();

	if (task)
		(void)acquire(f, &stream, task, WEFT_NEVER);
	else
		weft__libc.flockfile(f);
}

int weft_posix_ftrylockfile(FILE *f)
{
	struct weft__task *task = weft__posix_task();

	return task ? try_lock(f, &stream, task) : weft__libc.ftrylockfile(f);
}

void weft_posix_funlockfile(FILE *f)
{
	(void)release(f, &stream, weft__posix_task());
}

/* ---- once -------------------------------------------------------------------------------------------------------- */

/* pthread_once and guards have no try function. A record means that a task is running the initialization. */
static int try_begin(void *once)
{
	struct weft__task *task = weft__posix_task();

	return task && suspended_owner(once, task) ? EBUSY : 0;
}

static int nothing(void *once)
{
	(void)once;
	return 0;
}

static const struct kind beginning = {
    .name = "pthread_once_t",
    .try = try_begin,
    .block = nothing,
    .unlock = nothing,
};

static void end_once(pthread_once_t **once)
{
	if (*once)
		(void)release(*once, &beginning, weft__posix_task());
}

/* Compiled with -fexceptions: the function may end by an exception (std::call_once). */
int weft_posix_pthread_once(pthread_once_t *once, void (*function)(void))
{
	struct weft__task *task = weft__posix_task();
	__attribute__((cleanup(end_once))) pthread_once_t *begun = task ? once : NULL;

	if (task)
		(void)acquire(once, &beginning, task, WEFT_NEVER);
	return weft__libc.pthread_once(once, function);
}

int weft__posix_guard_acquire(void *guard, int (*next)(void *))
{
	struct weft__task *task = weft__posix_task();
	int made;

	if (task)
		(void)acquire(guard, &beginning, task, WEFT_NEVER);
	made = next(guard);
	if (task && !made)
		(void)release(guard, &beginning, task);
	return made;
}

void weft__posix_guard_end(void *guard, void (*next)(void *))
{
	struct weft__task *task = weft__posix_task();

	next(guard);
	if (task)
		(void)release(guard, &beginning, task);
}
#endif
