// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/cxx/coroutine.hpp: coroutines that own their body and result. Included by weft/weft.hpp, which has the overview.
#ifndef WEFT_CXX_COROUTINE_HPP
#define WEFT_CXX_COROUTINE_HPP

#include <weft/weft.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(__cpp_exceptions)
#define WEFT__EXCEPTIONS 1
#else
#define WEFT__EXCEPTIONS 0
#endif

namespace weft
{

/** Thrown by a resume when the runtime had to end the coroutine because its stack could not grow. */
class stack_failure : public std::exception
{
      public:
	explicit stack_failure(weft_failure_t why) noexcept : why_(why)
	{
	}
	weft_failure_t why() const noexcept
	{
		return why_;
	}
	const char *what() const noexcept override
	{
		return why_ == WEFT_BUDGET_SPENT	? "weft: a coroutine's stack would pass the budget"
		       : why_ == WEFT_RESERVATION_SPENT ? "weft: a coroutine's stack is used up"
							: "weft: no memory for a coroutine's stack";
	}

      private:
	weft_failure_t why_;
};

namespace detail
{

// The flags of each coroutine made here, in addition to the caller's.
enum : unsigned { FLAGS = WEFT_UNWIND };

[[noreturn, gnu::cold]] inline void misuse(const char *text)
{
	weft__die_saying(text, "", "");
}

[[noreturn, gnu::cold]] inline void no_coroutine(int error)
{
	const char *why = error == ENOTSUP ? weft_clone_unavailable() : nullptr;

#if WEFT__EXCEPTIONS
	if (error == ENOMEM || error == EDQUOT)
		throw std::bad_alloc();
	throw std::system_error(error, std::generic_category(),
				std::string("weft: cannot make a coroutine") + (why ? ": " : "") + (why ? why : ""));
#else
	weft__die_saying("cannot make a coroutine: ", why ? why : std::strerror(error), "");
#endif
}

[[noreturn, gnu::cold]] inline void ended_by_runtime(const weft_coro_t *k)
{
#if WEFT__EXCEPTIONS
	throw stack_failure(weft_failure(k));
#else
	misuse(stack_failure(weft_failure(k)).what());
#endif
}

// The state of a coroutine's function: the body, its result, and the functions for both. It is on the coroutine's stack
// if there is room, else in a block of memory, and stays until the coroutine is released.
struct block {
	weft_coro_t *k = nullptr;
	void (*destroy)(block *) noexcept = nullptr;
};

// The frames go first, because they refer to the block; the block may lie above them on the coroutine's stack, which
// goes last.
inline void give_back(block *b) noexcept
{
	weft_coro_t *k = b->k;

	if (weft_state(k) == WEFT_SUSPENDED)
		weft__end_frames(k);
	if (weft_state(k) != WEFT_RUNNING) // else that is about to be reported
		b->destroy(b);
	weft_delete(k);
}

struct giver {
	void operator()(block *b) const noexcept
	{
		give_back(b);
	}
};

inline void *allocate(std::size_t bytes, std::size_t alignment)
{
	return alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? ::operator new(bytes, std::align_val_t(alignment))
							    : ::operator new(bytes);
}

inline void deallocate(void *memory, std::size_t alignment) noexcept
{
	if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
		::operator delete(memory, std::align_val_t(alignment));
	else
		::operator delete(memory);
}

// A Kind of block with a body. The coroutine runs Kind::run(body).
template <typename Kind, typename Body> struct whole : Kind {
	Body body;
	bool on_heap;

	template <typename From>
	whole(From &&from, bool heap) noexcept(std::is_nothrow_constructible<Body, From>::value)
	    : body(std::forward<From>(from)), on_heap(heap)
	{
	}
	static void *enter(void *self)
	{
		whole *w = static_cast<whole *>(self);

		w->run(w->body);
		return nullptr;
	}
	static void destroy_whole(block *b) noexcept
	{
		whole *w = static_cast<whole *>(b);
		bool heap = w->on_heap;

		w->~whole();
		if (heap)
			deallocate(w, alignof(whole));
	}
};

// Above the first frame. Sanitizers follow frames, and there is none yet.
template <typename Whole> void *room_for(weft_coro_t *k)
{
	return alignof(Whole) <= 16 && !WEFT__SANITIZED ? weft_reserve(k, sizeof(Whole)) : nullptr;
}

// Until a block is complete.
struct unfinished {
	weft_coro_t *k;
	std::size_t alignment;
	void *memory = nullptr; // if on the heap

	~unfinished()
	{
		if (memory)
			deallocate(memory, alignment);
		weft_delete(k);
	}
};

// `attr` may be NULL.
template <typename Kind, typename Body> Kind *make(Body &&body, const weft_attr_t *attr)
{
	using Whole = whole<Kind, std::decay_t<Body>>;
	unfinished made{attr ? weft_create_with(Whole::enter, nullptr, attr) : weft_create(Whole::enter, nullptr),
			alignof(Whole)};

	if (weft__unlikely(!made.k))
		no_coroutine(errno);
	made.k->flags |= FLAGS;
	void *memory = room_for<Whole>(made.k);
	bool heap = !memory;
	if (heap)
		memory = made.memory = allocate(sizeof(Whole), alignof(Whole));
	Whole *w = ::new (memory) Whole(std::forward<Body>(body), heap);
	w->k = made.k;
	w->destroy = Whole::destroy_whole;
	weft__set_argument(w->k, w);
	made.memory = nullptr;
	made.k = nullptr;
	return w;
}

// Owns a block, moves, and gives back.
template <typename Kind> class owner
{
      public:
	owner() noexcept = default;
	explicit owner(Kind *b) noexcept : block_(b)
	{
	}
	owner(owner &&other) noexcept : block_(std::exchange(other.block_, nullptr))
	{
	}
	owner &operator=(owner &&other) noexcept
	{
		Kind *old = std::exchange(block_, std::exchange(other.block_, nullptr));

		if (old)
			give_back(old);
		return *this;
	}
	~owner()
	{
		if (block_)
			give_back(block_);
	}
	explicit operator bool() const noexcept
	{
		return block_;
	}
	Kind *operator->() const
	{
		if (weft__unlikely(!block_))
			misuse("an empty coroutine object (default-constructed, or moved from) was used: assign one to "
			       "it");
		return block_;
	}

      private:
	Kind *block_ = nullptr;
};

// A result that is not there yet.
template <typename T> struct result {
	std::optional<T> value;

	template <typename Body> void set(Body &body)
	{
		value.emplace(body());
	}
	T &get()
	{
		return *value;
	}
};

template <typename T> struct result<T &> {
	T *value = nullptr;

	template <typename Body> void set(Body &body)
	{
		value = std::addressof(body());
	}
	T &get()
	{
		return *value;
	}
};

template <> struct result<void> {
	bool value = false;

	template <typename Body> void set(Body &body)
	{
		body();
		value = true;
	}
	void get()
	{
	}
};

// An exception, or a performed WEFT_EXCEPTION, that leaves the call which a body waits in: here(this) is called there.
#if WEFT__EXCEPTIONS
struct thrown {
	std::exception_ptr exception;

	[[noreturn]] static void here(void *self)
	{
		std::rethrow_exception(std::exchange(static_cast<thrown *>(self)->exception, nullptr));
	}
};
template <typename E> thrown thrown_by(E &&exception)
{
	if constexpr (std::is_convertible<E &&, std::exception_ptr>::value)
		return {std::forward<E>(exception)};
	else
		return {std::make_exception_ptr(std::forward<E>(exception))};
}
#endif
template <typename... Params> struct performed {
	void (*exception)(Params...);
	std::tuple<Params...> args;

	[[noreturn]] static void here(void *self)
	{
		std::apply(static_cast<performed *>(self)->exception, std::move(static_cast<performed *>(self)->args));
		__builtin_unreachable();
	}
};
template <typename... Params, typename... Args>
performed<Params...> thrown_by(void (*exception)(Params...), Args &&...args)
{
	return {exception, std::tuple<Params...>(std::forward<Args>(args)...)};
}

template <typename Result> struct task : block {
	result<Result> made;
	// Called with `injected` in place of the body.
	weft__thrower_t *inject = nullptr;
	void *injected = nullptr;
	bool started = false;

	template <typename Body> void run(Body &body)
	{
		started = true;
		if (weft__unlikely(inject != nullptr))
			inject(injected);
		made.set(body);
	}
};

} // namespace detail

/**
 * Suspends the current coroutine: the resume that started or continued it returns. Throws the exception that is passed
 * to resume_throwing, if that continues the coroutine.
 */
inline void suspend()
{
	weft_suspend(nullptr);
}

/**
 * A coroutine with a body: anything that can be called without arguments, move-only objects included. The body and its
 * result are on the coroutine's own stack if they are at most 4 KiB and a quarter of it, else on the heap, and live as
 * long as this object. Move-only; destroying it ends the coroutine in any state except running, which is reported.
 *
 *	weft::coroutine greeter([name = std::string("you")] { weft::suspend(); return "hello " + name; });
 *	while (greeter.resume())
 *		;
 *	std::string text = std::move(greeter).result();
 *
 * Thread-safety: like a weft_coro_t, a coroutine is used by one thread at a time.
 */
template <typename Result = void> class coroutine
{
      public:
	using result_type = Result;

	/** Empty: only assigned to and destroyed. */
	coroutine() noexcept = default;

	/** Makes a suspended coroutine. Throws bad_alloc or system_error if weft_create_with fails, and any exception
	 * of moving the body. Without exceptions the process ends. */
	template <typename Body, typename = std::enable_if_t<!std::is_same<std::decay_t<Body>, coroutine>::value &&
							     std::is_invocable_r<Result, std::decay_t<Body> &>::value>>
	explicit coroutine(Body &&body) : task_(detail::make<detail::task<Result>>(std::forward<Body>(body), nullptr))
	{
	}
	template <typename Body, typename = std::enable_if_t<std::is_invocable_r<Result, std::decay_t<Body> &>::value>>
	coroutine(Body &&body, const weft_attr_t &attr)
	    : task_(detail::make<detail::task<Result>>(std::forward<Body>(body), &attr))
	{
	}

	/**
	 * Start it or continue it, until it suspends or returns.
	 * @return whether it suspended. An exception that leaves the body leaves this call; the coroutine is then done.
	 *   Throws stack_failure if the runtime had to end it.
	 */
	bool resume()
	{
		return suspended(resume(WEFT_HANDLE_NONE));
	}

	/** Like resume, for callers that handle effects of the coroutine: see weft_resume. */
	weft_request_t resume(weft_handles_t handles)
	{
		return weft_resume(task_->k, nullptr, handles);
	}

	/** Like resume, but the pending call of the body throws: a suspend(), an operation, a yield, or, if a coroutine
	 * inside the body is suspended with it, the pending call of that coroutine. The call throws the exception, or
	 * the exception of an exception_ptr. With a WEFT_EXCEPTION and its arguments, resume_throwing(give_up, 3), the
	 * call performs that effect instead. If the body has not started, the exception ends the coroutine. */
	template <typename E, typename... Args> bool resume_throwing(E &&exception, Args &&...args)
	{
		return suspended(throwing(detail::thrown_by(std::forward<E>(exception), std::forward<Args>(args)...),
					  WEFT_HANDLE_NONE));
	}

	/** Like resume_throwing with an exception or exception_ptr, for callers that handle effects of the coroutine.
	 * */
	template <typename E> weft_request_t resume_throwing(E &&exception, weft_handles_t handles)
	{
		return throwing(detail::thrown_by(std::forward<E>(exception)), handles);
	}

	/** Has it ended: returned, thrown, or been ended? */
	bool done() const
	{
		return weft_state(task_->k) == WEFT_FINISHED;
	}

	/** The body's result. A call before the body has returned is reported. */
	decltype(auto) result() &
	{
		return checked()->made.get();
	}
	Result result() &&
	{
		if constexpr (std::is_void<Result>::value)
			checked();
		else
			return std::forward<Result>(checked()->made.get());
	}

	/** For functions of weft.h; stays ours. */
	weft_coro_t *get() const
	{
		return task_->k;
	}

	explicit operator bool() const noexcept
	{
		return static_cast<bool>(task_);
	}

      private:
	template <typename Thrown> weft_request_t throwing(Thrown thrown, weft_handles_t handles)
	{
		if (task_->started) {
			weft__throw_into(task_->k, thrown.here, &thrown);
		} else {
			task_->inject = thrown.here;
			task_->injected = &thrown;
		}
		return resume(handles);
	}
	bool suspended(weft_request_t r)
	{
		if (weft__unlikely(r.effect == &weft_failed))
			detail::ended_by_runtime(task_->k);
		return !weft_returned(r);
	}
	detail::task<Result> *checked()
	{
		detail::task<Result> *t = task_.operator->();

		if (weft__unlikely(!t->made.value))
			detail::misuse("result() of a coroutine that has not returned: resume it until it is done");
		return t;
	}

	detail::owner<detail::task<Result>> task_;
};

template <typename Body> coroutine(Body) -> coroutine<std::invoke_result_t<std::decay_t<Body> &>>;
template <typename Body> coroutine(Body, const weft_attr_t &) -> coroutine<std::invoke_result_t<std::decay_t<Body> &>>;

} // namespace weft

#endif // WEFT_CXX_COROUTINE_HPP
