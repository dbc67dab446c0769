/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Included before all sources under test: replaces system functions by the checker's functions. */
#ifndef WEFT_TESTS_ORDERS_NAMES_H
#define WEFT_TESTS_ORDERS_NAMES_H

#define malloc orders_malloc
#define calloc orders_calloc
#define realloc orders_realloc
#define aligned_alloc orders_aligned_alloc
#define free orders_free
#define memset orders_memset
#define memcpy orders_memcpy
#define memmove orders_memmove
#define syscall orders_syscall
#define clock_gettime orders_clock_gettime
#define prctl orders_prctl
#define pthread_create orders_create
#define pthread_join orders_join
#define weft_delete orders_delete
#define __libc_single_threaded orders_single_threaded
/* A barrier in all threads is a fence in each: see sched/single_thread.h. */
#define weft__os_barrier orders_fence
#define weft__os_yield orders_yield
#define weft__light_fence orders_fence

void orders_fence(void);
void orders_yield(void);

/* Also defined in checker.c; that definition is used. */
void weft__pause(unsigned *turns) __attribute__((weak));
struct weft_coro *weft__owner_above(void) __attribute__((weak));

#endif
