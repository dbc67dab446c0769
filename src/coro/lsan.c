/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LeakSanitizer searches the stacks of threads for pointers. The stacks of coroutines must be registered before it
 * searches at the end of the process. While a coroutine runs, LeakSanitizer takes its stack for the thread's, so the
 * thread's own stack is registered.
 */
#include "coro/copying.h"

/* NULL if the program is built without LeakSanitizer. */
void __lsan_register_root_region(const void *start, size_t bytes) __attribute__((weak));

/* Register the memory where AddressSanitizer may keep variables: eleven classes, each as large as the stack (2^16 to
 * 2^20), and flags. */
static void add_fake_stack(const weft_coro_t *k, size_t stack_size)
{
	size_t bytes = (size_t)1 << 16;

	while (bytes < (size_t)1 << 20 && bytes < stack_size)
		bytes *= 2;
	if (k->asan_fake)
		__lsan_register_root_region(k->asan_fake, 12 * bytes);
}

static void add_root(struct weft__slot *slot)
{
	const weft_coro_t *k = atomic_load_explicit(&slot->owner, memory_order_relaxed);
	char *low = atomic_load_explicit(&slot->open, memory_order_relaxed);

	if (!k)
		return;
	/* The frames of a suspended coroutine start at its stack pointer, with a red zone below. */
	if (weft_state(k) == WEFT_SUSPENDED && weft_on_stack(k, (char *)k->link.sp - 1) &&
	    (char *)k->link.sp - low > 128)
		low = (char *)k->link.sp - 128;
	__lsan_register_root_region(low, (size_t)(weft__slot_end(slot) - low));
	add_fake_stack(k, weft_stack_usable(k));
}

/* Register frames that were copied out, and objects without a stack of their own. */
static void add_memory(char *start, size_t bytes)
{
	__lsan_register_root_region(start, bytes);
}

__attribute__((destructor)) static void add_roots(void)
{
	const weft_coro_t *k = weft__self();

	if (!__lsan_register_root_region)
		return;
	weft__arena_each(add_root);
	if (weft__buffers_each)
		weft__buffers_each(add_memory);
	if (weft__copied_each)
		weft__copied_each(add_memory);
	while (k && k->parent && k->parent->parent)
		k = k->parent;
	if (k && k->parent && k->asan_parent_stack) {
		__lsan_register_root_region(k->asan_parent_stack, k->asan_parent_size);
		add_fake_stack(k->parent, k->asan_parent_size);
	}
}
