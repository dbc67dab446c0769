// SPDX-License-Identifier: MIT OR Apache-2.0
//
// operator new that counts its calls, and throws while `refuses_new` is set. For programs of one source.
#ifndef WEFT_TESTS_COUNTED_NEW_H
#define WEFT_TESTS_COUNTED_NEW_H

#include <atomic>
#include <cstdlib>
#include <new>

[[maybe_unused]] static std::atomic<int> allocations{0};
[[maybe_unused]] static std::atomic<bool> refuses_new{false};

#if !WEFT__SANITIZED // which have their own
// Not inlined: gcc would find that malloc and delete do not match.
__attribute__((noinline)) void *operator new(std::size_t bytes)
{
	allocations++;
	if (void *memory = refuses_new ? nullptr : std::malloc(bytes))
		return memory;
	throw std::bad_alloc();
}

__attribute__((noinline)) void operator delete(void *memory) noexcept
{
	std::free(memory);
}

__attribute__((noinline)) void operator delete(void *memory, std::size_t) noexcept
{
	std::free(memory);
}
#endif

#endif
