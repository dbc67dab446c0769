// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef WEFT_TESTS_CXX_DETACHED_H
#define WEFT_TESTS_CXX_DETACHED_H

#include <coroutine>
#include <exception>

namespace
{

// A C++20 coroutine for which nothing waits.
struct detached {
	struct promise_type {
		detached get_return_object()
		{
			return {};
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
};

} // namespace

#endif
