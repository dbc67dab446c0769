/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * atomic.h: libseff's short names for C11's atomic operations with a memory order, and its spin lock. For C, because
 * C++ has no macros of that kind before C++23.
 *
 *   ACQUIRE(load, &flag)                    atomic_load_explicit(&flag, memory_order_acquire)
 *   SPINLOCK(&lock, { balance += item; })   one thread at a time runs the block; it must neither leave nor suspend
 *
 * Source of the interface: libseff; none of its code.
 */
#ifndef SEFF_ATOMIC_H
#define SEFF_ATOMIC_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEFF__ORDERED(order, operation, ...) atomic_##operation##_explicit(__VA_ARGS__, order)
#define RELAXED(operation, ...) SEFF__ORDERED(memory_order_relaxed, operation, __VA_ARGS__)
#define ACQUIRE(operation, ...) SEFF__ORDERED(memory_order_acquire, operation, __VA_ARGS__)
#define RELEASE(operation, ...) SEFF__ORDERED(memory_order_release, operation, __VA_ARGS__)

/* A waiting thread only reads, so that the lock's cache line stays shared. */
#define ACQUIRE_LOCK(lock)                                                                                             \
	do                                                                                                             \
		while (RELAXED(load, lock))                                                                            \
			sched_yield();                                                                                 \
	while (ACQUIRE(exchange, lock, true))
#define RELEASE_LOCK(lock) RELEASE(store, lock, false)

#define SPINLOCK(lock, ...)                                                                                            \
	do {                                                                                                           \
		ACQUIRE_LOCK(lock);                                                                                    \
		__VA_ARGS__                                                                                            \
		RELEASE_LOCK(lock);                                                                                    \
	} while (0)

#endif /* SEFF_ATOMIC_H */
