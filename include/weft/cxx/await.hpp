// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/await.hpp: Weft's coroutines and C++20 coroutines that wait for each other. Included by weft/weft.hpp; empty
// if the compiler does not have C++20 coroutines.
//
// A C++20 coroutine that awaits a Weft coroutine resumes it through a driver, an object in the awaiting frame. A Weft
// coroutine that waits for an awaitable of C++20 performs an effect that the driver handles. Generators and handlers
// between the two are suspended as a part of it and take no part. A small C++20 coroutine awaits the awaitable; at its
// end the driver continues the Weft coroutine, on the thread where that end happens.
#ifndef WEFT_CXX_AWAIT_HPP
#define WEFT_CXX_AWAIT_HPP

#if defined(__cpp_impl_coroutine)

#include <weft/cxx/generator.hpp>

#include <atomic>
#include <coroutine>

namespace weft
{

namespace detail
{

struct waiting;

WEFT__C_BEGIN // the macros of effect.h are C
WEFT_EFFECT(void, weft__await, waiting *, what);

// Runs a Weft coroutine while a C++20 coroutine waits.
struct driver {
	weft_coro_t *k = nullptr;
	bool to_its_end = false; // or to its next suspension
	weft_request_t last{};
#if WEFT__EXCEPTIONS
	std::exception_ptr thrown;
#endif
	std::coroutine_handle<> awaiting;
	std::atomic<bool> one_left{false};

	bool run() noexcept;
	std::coroutine_handle<> completed() noexcept;

	// Control is back for good.
	void check()
	{
#if WEFT__EXCEPTIONS
		if (thrown)
			std::rethrow_exception(std::exchange(thrown, nullptr));
#endif
		if (weft__unlikely(last.effect == &weft_failed))
			ended_by_runtime(k);
	}

      private:
	bool resume() noexcept
	{
#if WEFT__EXCEPTIONS
		try {
#endif
			last = weft_resume(k, nullptr, weft_handles(weft__await));
			return true;
#if WEFT__EXCEPTIONS
		} catch (...) {
			thrown = std::current_exception();
			return false;
		}
#endif
	}
};

// Something of C++20's that a coroutine of ours waits for.
struct waiting {
	driver *by = nullptr;
	std::coroutine_handle<> start;
};

// Runs the coroutine until it has reached its goal, then returns true, or until it waits. The start of the awaited
// operation and its completion, perhaps by another thread, may overtake each other: the second of the two continues,
// and the first touches nothing any more.
inline bool driver::run() noexcept
{
	while (resume()) {
		if (!weft_is(weft__await, last)) {
			if (to_its_end && last.effect == &weft_suspended)
				continue;
			return true;
		}
		waiting *w = weft_args(weft__await, last)->what;
		one_left.store(false, std::memory_order_relaxed); // published by `start`
		w->by = this;
		w->start.resume();
		if (!one_left.exchange(true, std::memory_order_acq_rel))
			return false;
	}
	return true;
}

// Returns the coroutine to run next, when the awaited operation has ended.
inline std::coroutine_handle<> driver::completed() noexcept
{
	if (!one_left.exchange(true, std::memory_order_acq_rel) || !run())
		return std::noop_coroutine();
	return awaiting;
}

// ---- C++20 waits for ours ----

struct awaits {
	driver d;

	awaits(weft_coro_t *k, bool to_its_end) noexcept
	{
		d.k = k;
		d.to_its_end = to_its_end;
	}
	bool await_ready() const noexcept
	{
		return false;
	}
	// Not inlined: clang 16 keeps locals of this function in the waiting frame, which may be gone when it returns.
	[[gnu::noinline]] bool await_suspend(std::coroutine_handle<> awaiting) noexcept
	{
		d.awaiting = awaiting;
		return !d.run();
	}
};
WEFT__C_END

struct access {
	template <typename T> static source<T> *of(generator<T> &g)
	{
		return g.source_.operator->();
	}
};

template <typename Result> struct awaits_step : awaits {
	explicit awaits_step(coroutine<Result> &c) : awaits(c.get(), false)
	{
	}
	bool await_resume()
	{
		d.check();
		return !weft_returned(d.last);
	}
};

template <typename Result> struct awaits_end : awaits {
	coroutine<Result> *c;

	explicit awaits_end(coroutine<Result> &of) : awaits(of.get(), true), c(&of)
	{
	}
	bool await_ready() const
	{
		return c->done();
	}
	Result await_resume()
	{
		d.check();
		return std::move(*c).result();
	}
};

template <typename T> struct awaits_element : awaits {
	source<T> *from;

	explicit awaits_element(generator<T> &g) : awaits(g.get(), false), from(access::of(g))
	{
		from->current = nullptr;
	}
	bool await_ready() const
	{
		return weft_state(from->k) == WEFT_FINISHED;
	}
	std::remove_reference_t<T> *await_resume()
	{
		d.check();
		return static_cast<std::remove_reference_t<T> *>(from->current = d.last.payload);
	}
};

// ---- ours waits for C++20 ----

template <typename A> decltype(auto) awaiter_of(A &&a)
{
	if constexpr (requires { std::forward<A>(a).operator co_await(); })
		return std::forward<A>(a).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<A>(a)); })
		return operator co_await(std::forward<A>(a));
	else
		return std::forward<A>(a);
}

template <typename A> using awaited = decltype(awaiter_of(std::declval<A>()).await_resume());

template <typename R> struct waiting_result : waiting {
	std::optional<R> value;

	template <typename From> void return_value(From &&from)
	{
		value.emplace(std::forward<From>(from));
	}
	R take()
	{
		return std::move(*value);
	}
};
template <typename R> struct waiting_result<R &> : waiting {
	R *value = nullptr;

	void return_value(R &from)
	{
		value = std::addressof(from);
	}
	R &take()
	{
		return *value;
	}
};
template <> struct waiting_result<void> : waiting {
	void return_void()
	{
	}
	void take()
	{
	}
};

template <typename R> struct wait {
	struct completes {
		bool await_ready() const noexcept
		{
			return false;
		}
		template <typename P>
		[[gnu::noinline]] std::coroutine_handle<> await_suspend(std::coroutine_handle<P> ended) noexcept
		{
			return ended.promise().by->completed();
		}
		void await_resume() const noexcept
		{
		}
	};
	struct promise_type : waiting_result<R> {
#if WEFT__EXCEPTIONS
		std::exception_ptr thrown;
#endif

		wait get_return_object()
		{
			return wait(*this);
		}
		std::suspend_always initial_suspend() noexcept
		{
			return {};
		}
		completes final_suspend() noexcept
		{
			return {};
		}
		void unhandled_exception() noexcept
		{
#if WEFT__EXCEPTIONS
			thrown = std::current_exception();
#endif
		}
	};

	promise_type *promise;

	explicit wait(promise_type &p) : promise(&p)
	{
		p.start = std::coroutine_handle<promise_type>::from_promise(p);
	}
	wait(const wait &) = delete;
	wait &operator=(const wait &) = delete;
	~wait()
	{
		promise->start.destroy();
	}
	R take()
	{
#if WEFT__EXCEPTIONS
		if (promise->thrown)
			std::rethrow_exception(std::exchange(promise->thrown, nullptr));
#endif
		return promise->take();
	}
};

// Moves the awaitable into its own frame, on the heap: the stack of a Weft coroutine may be copied away meanwhile.
template <typename A> wait<awaited<A>> wait_for(A a)
{
	co_return co_await std::forward<A>(a);
}

inline void check_awaited()
{
	if (weft__unlikely(!weft_locate(weft__await)))
		misuse("weft::await: no C++20 coroutine awaits this one: let one co_await it, or weft::next of it");
}

} // namespace detail

/**
 * In a C++20 coroutine: continues a Weft coroutine until it suspends or ends, as resume() does, and waits for that.
 * `while (co_await weft::next(k))`. co_await throws the exceptions of the Weft coroutine. The awaiting coroutine is
 * suspended only if the Weft coroutine itself waits (weft::await), and is then resumed by the thread that completes
 * that wait. Until then neither the awaiting coroutine nor `c` may be destroyed.
 */
template <typename Result> auto next(coroutine<Result> &c)
{
	return detail::awaits_step<Result>(c);
}

/** Like next(coroutine), for a generator, whose body may then wait between elements. The result is a pointer to the
 * next element, or NULL at the end. `while (int *i = co_await weft::next(g))`. */
template <typename T> auto next(generator<T> &g)
{
	return detail::awaits_element<T>(g);
}

/** `co_await k`: continue it to its end, over suspensions, and move the result out. As weft::next else. */
template <typename Result> auto operator co_await(coroutine<Result> &c)
{
	return detail::awaits_end<Result>(c);
}
template <typename Result> auto operator co_await(coroutine<Result> &&c)
{
	return detail::awaits_end<Result>(c);
}

/**
 * In a Weft coroutine that a C++20 coroutine awaits: waits for any awaitable that the C++20 coroutine could await, and
 * returns or throws the result of that co_await. May be called at any depth, also in generators and under handlers
 * inside: all frames up to the awaited coroutine are suspended, and continue on the thread that completes the wait. An
 * rvalue is moved into a frame that outlives the wait. Costs a C++20 coroutine on the heap. A call in a coroutine that
 * no C++20 coroutine awaits is reported.
 */
template <typename Awaitable> decltype(auto) await(Awaitable &&what)
{
	detail::check_awaited();
	auto wait = detail::wait_for<Awaitable>(std::forward<Awaitable>(what));
	detail::weft__await(wait.promise);
	return wait.take();
}

} // namespace weft

#endif // __cpp_impl_coroutine
#endif // WEFT_CXX_AWAIT_HPP
