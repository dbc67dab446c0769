/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B4 prefetch on C++20's stackless coroutines, by hand.
 *
 *   by=loop   streams are coroutines with the search written into them, resumed round robin
 *   by=ring   like loop, but each stream switches to the next stream
 *   by=task   the search is a coroutine of its own, made for each search and awaited by its stream: in C++20 each
 *             function that suspends is a coroutine
 */
#include "../impl/prefetch.h"

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

namespace
{

prefetch all;
std::size_t sum, started;

struct stream {
	struct promise_type {
		stream get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
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
	std::coroutine_handle<promise_type> h;
};

/* ---- resumed round robin ------------------------------------------------------------------------------------- */

struct touch {
	const int32_t *address;

	bool await_ready() noexcept
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<>) noexcept
	{
		__builtin_prefetch(address);
	}
	void await_resume() noexcept
	{
	}
};

stream searching()
{
	while (started < all.n) {
		const int32_t key = all.keys[started++], *base = all.array;
		std::size_t count = all.count;

		while (count > PREFETCH_NEAR) {
			co_await touch{&base[count / 2 - 1]};
			PREFETCH_STEP(base, count, key);
		}
		while (count > 1)
			PREFETCH_STEP(base, count, key);
		sum += static_cast<std::size_t>(base - all.array) + (*base < key);
	}
}

template <class Stream> void round_robin(Stream make)
{
	std::vector<stream> streams;

	for (std::size_t i = 0; i < all.streams; i++)
		streams.push_back(make());
	for (std::size_t i = 0; !streams.empty(); i = i < streams.size() ? i : 0) {
		streams[i].h.resume();
		if (streams[i].h.done()) {
			streams[i].h.destroy();
			streams[i] = streams.back();
			streams.pop_back();
		} else {
			i++;
		}
	}
}

/* ---- a ring -------------------------------------------------------------------------------------------------- */

struct touch_and_go {
	const int32_t *address;
	std::coroutine_handle<> next;

	bool await_ready() noexcept
	{
		return false;
	}
	std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept
	{
		__builtin_prefetch(address);
		return next;
	}
	void await_resume() noexcept
	{
	}
};

std::size_t busy;

stream searching_in_turns(const std::coroutine_handle<> *whose)
{
	std::coroutine_handle<> next = *whose;

	while (started < all.n) {
		const int32_t key = all.keys[started++], *base = all.array;
		std::size_t count = all.count;

		while (count > PREFETCH_NEAR) {
			co_await touch_and_go{&base[count / 2 - 1], next};
			PREFETCH_STEP(base, count, key);
		}
		while (count > 1)
			PREFETCH_STEP(base, count, key);
		sum += static_cast<std::size_t>(base - all.array) + (*base < key);
	}
	for (busy--; busy;)
		co_await touch_and_go{all.array, next};
}

void ring()
{
	std::vector<std::coroutine_handle<>> next(all.streams);
	std::vector<stream> streams;

	for (std::size_t i = 0; i < all.streams; i++)
		streams.push_back(searching_in_turns(&next[i]));
	for (std::size_t i = 0; i < all.streams; i++)
		next[i] = streams[(i + 1) % all.streams].h;
	busy = all.streams;
	streams[0].h.resume();
	for (stream &s : streams)
		s.h.destroy();
}

/* ---- a coroutine for each search ----------------------------------------------------------------------------- */

/* A search continues its awaiter when it ends. A stream's resumer resumes the innermost coroutine. */
struct search {
	struct promise_type;
	using handle = std::coroutine_handle<promise_type>;
	struct promise_type {
		std::coroutine_handle<> awaiting;
		std::coroutine_handle<> *innermost;
		std::size_t found;

		search get_return_object()
		{
			return {handle::from_promise(*this)};
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		auto final_suspend() noexcept
		{
			struct back {
				bool await_ready() noexcept
				{
					return false;
				}
				std::coroutine_handle<> await_suspend(handle h) noexcept
				{
					*h.promise().innermost = h.promise().awaiting;
					return h.promise().awaiting;
				}
				void await_resume() noexcept
				{
				}
			};
			return back{};
		}
		void return_value(std::size_t value)
		{
			found = value;
		}
		void unhandled_exception()
		{
			std::terminate();
		}
	};
	handle h;
};

struct await_search {
	search inner;
	std::coroutine_handle<> *innermost;

	bool await_ready() noexcept
	{
		return false;
	}
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept
	{
		inner.h.promise().awaiting = self;
		inner.h.promise().innermost = innermost;
		*innermost = inner.h;
		return inner.h;
	}
	std::size_t await_resume() noexcept
	{
		std::size_t found = inner.h.promise().found;

		inner.h.destroy();
		return found;
	}
};

search search_for(const int32_t *array, std::size_t count, int32_t key)
{
	const int32_t *base = array;

	while (count > PREFETCH_NEAR) {
		co_await touch{&base[count / 2 - 1]};
		PREFETCH_STEP(base, count, key);
	}
	while (count > 1)
		PREFETCH_STEP(base, count, key);
	co_return static_cast<std::size_t>(base - array) + (*base < key);
}

stream awaiting_searches(std::coroutine_handle<> *innermost)
{
	while (started < all.n)
		sum += co_await await_search{search_for(all.array, all.count, all.keys[started++]), innermost};
}

void tasks()
{
	std::vector<std::coroutine_handle<>> innermost(all.streams);
	std::vector<stream> streams;

	for (auto &inner : innermost) {
		streams.push_back(awaiting_searches(&inner));
		inner = streams.back().h;
	}
	for (std::size_t i = 0; !streams.empty(); i = i < streams.size() ? i : 0) {
		innermost[i].resume();
		if (streams[i].h.done()) {
			streams[i].h.destroy();
			streams[i] = streams.back();
			streams.pop_back();
			std::swap(innermost[i], innermost[streams.size()]);
		} else {
			i++;
		}
	}
}

} // namespace

int main(int argc, char **argv)
{
	all = prefetch_make(argc, argv);
	lab_start();
	if (lab_is(argc, argv, "by", "ring"))
		ring();
	else if (lab_is(argc, argv, "by", "task"))
		tasks();
	else
		round_robin(searching);
	lab_stop();
	return lab_report(all.n, static_cast<int64_t>(sum));
}
