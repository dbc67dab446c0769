/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LeakSanitizer looks for pointers in the stacks of threads; those of coroutines it must be told of, before it looks at
 * the end of the process. While one runs, it takes that stack for the thread's, and is told of the thread's own.
 */
#include "coro/copying.h"

/* Absent where the program is built without. */
void __lsan_register_root_region(const void *start, size_t bytes) __attribute__((weak));

/* Where AddressSanitizer may keep variables: eleven classes, each as large as the stack (2^16 to 2^20), and flags. */
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
	/* A suspended one's frames start where it waits; a red zone below belongs to them. */
	if (weft_state(k) == WEFT_SUSPENDED && weft_on_stack(k, (char *)k->link.sp - 1) &&
	    (char *)k->link.sp - low > 128)
		low = (char *)k->link.sp - 128;
	__lsan_register_root_region(low, (size_t)(weft__slot_end(slot) - low));
	add_fake_stack(k, weft_stack_usable(k));
}

/* Frames that were copied out, and objects without a stack of their own. */
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
