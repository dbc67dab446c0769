/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See single_thread.h: how a thread becomes alone, and how a crowd begins. */
#define _GNU_SOURCE
#include "sched/single_thread.h"

#include <pthread.h>

#include "internal/tsan_hidden.h"
#include "os/os.h"
#include "sched/sched.h"

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
enum { __libc_single_threaded = 0 };
#endif

unsigned char weft__crowd;
__thread struct weft__here weft__here __attribute__((tls_model("initial-exec")));
struct weft__alone weft__alone;

struct weft__here *weft__where(void)
{
	return &weft__here;
}

static void lock(void)
{
	/* Acquire: pairs with unlock. */
	if (__atomic_exchange_n(&weft__alone.lock, 1, __ATOMIC_ACQUIRE))
		weft__spin_wait(&weft__alone.lock);
}

static void unlock(void)
{
	weft__spin_unlock(&weft__alone.lock);
}

/* The caller holds the lock. */
static void make_crowd(void)
{
	unsigned turns = 0;

	if (atomic_load_explicit(&weft__alone.allowed, memory_order_relaxed)) {
		atomic_store_explicit(&weft__alone.allowed, false, memory_order_release);
		if (!WEFT_CANARY(crowd_has_no_barrier))
			weft__os_barrier();
		/* Acquire: pairs with weft__step_out. */
		while (atomic_load_explicit(&weft__alone.inside, memory_order_acquire) &&
		       !WEFT_CANARY(crowd_comes_in_between))
			weft__pause(&turns);
	}
	/* Release: pairs with the acquires in weft__crowd_join and weft__waiter_become. */
	__atomic_store_n(&weft__crowd, 1, __ATOMIC_RELEASE);
}

void weft__crowd_join(void)
{
	if (!__atomic_load_n(&weft__crowd, __ATOMIC_ACQUIRE)) {
		if (weft__here.making || __libc_single_threaded)
			return;
		lock();
		make_crowd();
		unlock();
	}
	weft__here.company = WEFT__IN_CROWD; /* the crowd lasts until the process ends */
}

void weft__alone_lost(void)
{
	atomic_store_explicit(&weft__alone.inside, 0, memory_order_relaxed);
	weft__here.company = WEFT__LOOKS;
}

bool weft__alone_begin(void)
{
	bool began;

	if (__atomic_load_n(&weft__crowd, __ATOMIC_RELAXED) || weft__here.company == WEFT__ALONE)
		return false;
	lock();
	/* A second thread would be alone; and ThreadSanitizer does not know the barrier. */
	if (atomic_load_explicit(&weft__alone.allowed, memory_order_relaxed) || weft__on_tsan())
		make_crowd();
	began = !__atomic_load_n(&weft__crowd, __ATOMIC_RELAXED);
	if (began) {
		weft__here.company = WEFT__ALONE;
		atomic_store_explicit(&weft__alone.allowed, true, memory_order_relaxed);
	}
	unlock();
	return began;
}

void weft__alone_end(bool began)
{
	if (!began)
		return;
	lock();
	weft__here.company = WEFT__LOOKS;
	atomic_store_explicit(&weft__alone.allowed, false, memory_order_relaxed);
	unlock();
}

/* A child of fork has one thread. In the parent, another thread may have been alone, or have held the lock. */
static void begin_as_child(void)
{
	weft__alone.lock = 0;
	atomic_store_explicit(&weft__alone.inside, 0, memory_order_relaxed);
	atomic_store_explicit(&weft__alone.allowed, weft__here.company == WEFT__ALONE, memory_order_relaxed);
}

__attribute__((constructor(104))) static void begin(void)
{
	(void)pthread_atfork(NULL, NULL, begin_as_child);
	/* If there are other threads, the process's first barrier takes many milliseconds. */
	weft__os_barrier();
}

uint32_t weft__waiter_add(weft_waiter_t *w, uint32_t bits)
{
	return weft__waiter_become_here(w, bits);
}
