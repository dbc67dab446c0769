// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/sched.hpp: tasks for C++17 and later. Header only, over libweft-rt; weft/sync.hpp comes with it.
//
//	int sum = weft::run([] {
//		weft::scope scope;
//		auto one = scope.spawn([] { return std::make_unique<int>(1); });
//		auto two = scope.spawn([] { weft::this_task::sleep_for(1ms); return 2; });
//		return *one.join() + two.join();
//	});
//
//   weft::run(f)          run f() as the first task, by workers of the runtime's own; its result or exception comes out
//   weft::scope           tasks that end before it does; the first exception cancels the others
//   weft::task<T>         the handle of a task, to be joined
//   weft::join_set<T>     tasks whose results are got in the order of their ends, and a limit on how many run
//   weft::this_task::…    sleep_for, sleep_until, yield, blocking, await
//   weft::shield          while it lives the task's waits are not cancelled
//   weft::mutex, …        the objects of weft/sync.hpp
//   weft::channel<T>      for any T that can be moved
//   weft::select(…)       the first of several operations that can be done: weft::on_receive, on_send, on_event, …
//   weft::future<T>       a value, or an exception, that comes later; weft::promise<T> says it
//   weft::local<T>        a variable with a value for each task
//   co_await task         with C++20: a coroutine that runs inside a task (or a thread) waits for another task
//
// Design
//  1. A scope is a weft_scope_t, a task's handle has a weft_task_t, and both may be mixed with the functions of C.
//     A task's function, result and exception are one allocation, which its handle owns; without a handle the task
//     owns it.
//  2. An exception goes to the task that joins. A task without a handle (scope.start) passes it to its scope, which
//     cancels the other tasks and throws the first exception from wait(). Later exceptions are dropped, and so is the
//     exception of a task whose handle is dropped.
//  3. Nothing outlives its scope: a handle that is dropped cancels its task and waits for it, as std::jthread does, and
//     a scope that is left early does so with all.
//  4. A cancelled task is unwound as a thread is by pthread_exit: destructors run, and a catch (...) must throw on.
//  5. Errors of the functions of C are thrown: std::system_error with the same number, std::bad_alloc for -ENOMEM. A
//     wait that ends because a scope of the caller's was cancelled throws ECANCELED; a wait that timed out, ETIMEDOUT.
//
// Costs: exceptions that are being handled are kept for each task, which a switch pays for; a task's state is one
// allocation. Starting a lambda and joining it takes twice the time that it takes by weft/sched.h. Thread-safety: as
// for the objects of C. One task at a time uses an object, except channels and mutexes.
#ifndef WEFT_SCHED_HPP
#define WEFT_SCHED_HPP

#include <weft/sync.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <future> // std::future_error
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__cpp_impl_coroutine)
#include <weft/cxx/await.hpp>
#endif

namespace weft
{

namespace detail
{

// Tasks that suspend while they handle exceptions, and that are unwound.
enum : unsigned { TASK_FLAGS = WEFT_UNWIND | WEFT_SAVE_EXCEPTIONS };

// The values of weft::local that a task (or thread) has. In the frame that the task's function is called from.
class locals
{
      public:
	struct node {
		node *next;
		const void *of;

		explicit node(const void *what) noexcept : next(nullptr), of(what)
		{
		}
		node(const node &) = delete;
		virtual ~node() = default;
	};

	locals() noexcept : slot_(weft__task_locals())
	{
		if (slot_) {
			outer_ = *slot_;
			*slot_ = this;
		}
	}
	locals(const locals &) = delete;
	// The variable made last ends first. Its destructor may make new variables.
	~locals()
	{
		while (first_) {
			node *last = first_;

			first_ = last->next;
			delete last;
		}
		if (slot_)
			*slot_ = outer_;
	}

	node *find(const void *what) const noexcept
	{
		node *n = first_;

		while (n && n->of != what)
			n = n->next;
		return n;
	}
	void add(node *n) noexcept
	{
		n->next = first_;
		first_ = n;
	}

	// The caller's variables. Never inlined: a function that suspends must not keep the address of a thread's
	// variable.
	__attribute__((noinline)) static locals &mine()
	{
		void **slot = weft__task_locals();

		if (!slot) {
			static thread_local locals of_thread;

			return of_thread;
		}
		if (!*slot)
			throw std::system_error(EPERM, std::generic_category(),
						"weft::local: neither weft::scope nor weft::run started this task");
		return *static_cast<locals *>(*slot);
	}

      private:
	void **slot_, *outer_ = nullptr;
	node *first_ = nullptr;
};

// A result of type T, or an exception.
template <typename T> class outcome
{
      public:
	template <typename F> void set(F &&f)
	{
		if constexpr (std::is_void_v<T>)
			std::forward<F>(f)();
		else
			emplace(std::forward<F>(f)());
	}
	template <typename U> void emplace(U &&value)
	{
		value_.emplace(std::forward<U>(value));
	}
	void set_exception(std::exception_ptr thrown) noexcept
	{
		thrown_ = std::move(thrown);
	}
	std::exception_ptr thrown() const noexcept
	{
		return thrown_;
	}
	T take()
	{
		if (thrown_)
			std::rethrow_exception(std::exchange(thrown_, nullptr));
		if constexpr (!std::is_void_v<T>)
			return std::move(*value_);
	}

      private:
	struct nothing {
	};
	std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>> value_;
	std::exception_ptr thrown_;
};

// f's result or exception into the outcome. The unwinding of a cancelled task goes on.
template <typename T, typename F> void run_into(outcome<T> &o, F &&f)
{
	try {
		o.set(std::forward<F>(f));
	} catch (...) {
		std::exception_ptr thrown = std::current_exception();

		if (!thrown) // not an exception of C++
			throw;
		o.set_exception(std::move(thrown));
	}
}

template <typename F, typename... Args> using result_of = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;

template <typename F, typename... Args>
inline constexpr bool is_callable = std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>;

// Used when a mistake does not compile, so that only its static_assert is shown, without errors that follow from it.
struct any_result {
	template <typename T> operator T() const;
};

// A task's work: copies of a function and its arguments.
template <typename F, typename... Args> class call
{
      public:
	template <typename G, typename... More>
	explicit call(G &&g, More &&...more) : f_(std::forward<G>(g)), args_(std::forward<More>(more)...)
	{
	}
	decltype(auto) operator()()
	{
		return std::apply(std::move(f_), std::move(args_));
	}

      private:
	F f_;
	std::tuple<Args...> args_;
};

template <typename F, typename... Args> auto call_of(F &&f, Args &&...args)
{
	return call<std::decay_t<F>, std::decay_t<Args>...>(std::forward<F>(f), std::forward<Args>(args)...);
}

// The state that a handle owns.
template <typename T> struct state {
	weft_task_t task{};
	outcome<T> result;

	virtual ~state() = default;
};

template <typename T, typename Call> struct state_with : state<T> {
	Call call;

	explicit state_with(Call &&c) : call(std::move(c))
	{
	}
	static void *run(void *self)
	{
		auto *s = static_cast<state_with *>(self);
		locals values;

		run_into(s->result, s->call);
		return nullptr;
	}
};

inline weft_task_attr_t attr_of(const weft_task_attr_t *wanted)
{
	weft_task_attr_t attr = wanted ? *wanted : weft_task_attr_t{};

	attr.coro.flags |= TASK_FLAGS;
	return attr;
}

} // namespace detail

/**
 * A task's handle. Moved, not copied; must end before its scope does. Dropped while the task runs, it cancels the task
 * and waits for it.
 */
template <typename T> class [[nodiscard]] task
{
      public:
	task() = default;
	task(task &&) noexcept = default;
	task &operator=(task &&other) noexcept
	{
		end();
		state_ = std::move(other.state_);
		return *this;
	}
	~task()
	{
		end();
	}

	/** Has it neither been joined nor moved from? */
	bool joinable() const noexcept
	{
		return state_ != nullptr;
	}

	/** Waits for the task's end. Once. @return its result, moved out @throws its exception; std::system_error with
	 * its error (weft_task_fail), or ECANCELED if it was cancelled. May suspend. */
	T join()
	{
		auto s = std::move(state_);
		int error;

		if (!s)
			throw std::system_error(EINVAL, std::generic_category(), "weft: a task is joined once");
		error = weft_join(&s->task, nullptr);
		if (!s->result.thrown())
			detail::check(error);
		return s->result.take();
	}

	/** @throws std::system_error, EINVAL: it was joined, or moved from */
	weft_task_t *native_handle() const
	{
		if (!state_)
			detail::check(-EINVAL);
		return &state_->task;
	}

	/** Ask it to end: see weft_task_cancel. Does not wait. */
	void cancel() noexcept
	{
		if (state_)
			weft_task_cancel(&state_->task);
	}

#if defined(__cpp_impl_coroutine)
	/** co_await std::move(task): join, for a C++20 coroutine that runs in a task or a thread, which waits with
	 * it. */
	auto operator co_await() &&
	{
		struct joins {
			task joined;

			bool await_ready() const noexcept
			{
				return true;
			}
			void await_suspend(std::coroutine_handle<>) const noexcept
			{
			}
			T await_resume()
			{
				return joined.join();
			}
		};
		return joins{std::move(*this)};
	}
#endif

      private:
	friend class scope;
	explicit task(std::unique_ptr<detail::state<T>> s) : state_(std::move(s))
	{
	}
	void end() noexcept
	{
		if (!state_)
			return;
		weft_task_cancel(&state_->task);
		weft_shield_begin();
		weft_join(&state_->task, nullptr);
		weft_shield_end();
		state_.reset();
	}

	std::unique_ptr<detail::state<T>> state_;
};

/**
 * Tasks that belong together: a weft_scope_t. For the task or thread that made it; stays where it is. At its end tasks
 * that still run are cancelled, and waited for.
 */
class scope
{
      public:
	scope()
	{
		weft_scope_open(&scope_, WEFT_NEVER);
	}
	/** Cancelled after that time: wait() throws ETIMEDOUT then. */
	template <typename Rep, typename Period> explicit scope(std::chrono::duration<Rep, Period> time)
	{
		weft_scope_open(&scope_, detail::deadline_of(time));
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
	~scope()
	{
		weft__scope_leave(&scope_);
	}

	/** Start f(args…), copies of them. @param attr  as for weft_scope_spawn_with; may be NULL, as in spawn(f)
	 * @return its handle @throws std::bad_alloc; std::system_error: as weft_scope_spawn says */
	template <typename F, typename... Args> auto spawn_with(const weft_task_attr_t *attr, F &&f, Args &&...args)
	{
		constexpr bool fits = detail::is_callable<F, Args...>;

		static_assert(
		    fits,
		    "weft: a task's function is called with copies of its arguments, as rvalues: it must take them so");
		if constexpr (!fits) {
			return task<void>();
		} else {
			using T = detail::result_of<F, Args...>;
			auto call = detail::call_of(std::forward<F>(f), std::forward<Args>(args)...);
			auto s = std::make_unique<detail::state_with<T, decltype(call)>>(std::move(call));
			weft_task_attr_t all = detail::attr_of(attr);

			detail::check(weft_scope_spawn_with(&scope_, &s->task, s->run, s.get(), &all));
			return task<T>(std::move(s));
		}
	}
	template <typename F, typename... Args> auto spawn(F &&f, Args &&...args)
	{
		return spawn_with(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
	}

	/** Like spawn, without a handle and so without a result. An exception cancels the scope, and leaves wait(). */
	template <typename F, typename... Args> void start(F &&f, Args &&...args)
	{
		constexpr bool fits = detail::is_callable<F, Args...>;

		static_assert(
		    fits,
		    "weft: a task's function is called with copies of its arguments, as rvalues: it must take them so");
		if constexpr (fits) {
			auto call = detail::call_of(std::forward<F>(f), std::forward<Args>(args)...);
			auto s = std::make_unique<started<decltype(call)>>(this, std::move(call));
			weft_task_attr_t all = detail::attr_of(nullptr);

			detail::check(weft_scope_spawn_with(&scope_, nullptr, s->run, s.get(), &all));
			s.release(); // the task deletes it
		}
	}

	/** Waits for all tasks. @throws the first exception of a task without a handle; std::system_error: the first
	 * error, ETIMEDOUT, or the error by which the scope was cancelled. May suspend. */
	void wait()
	{
		int error = weft_scope_wait(&scope_);

		if (thrown_)
			std::rethrow_exception(std::exchange(thrown_, nullptr));
		detail::check(error);
	}

	/** Sets or moves the deadline. A time that is over cancels the scope at once. For the task that made the scope.
	 * @throws std::system_error: as weft_scope_set_deadline; the error by which the scope was cancelled before */
	template <typename Rep, typename Period> void expires_after(const std::chrono::duration<Rep, Period> &time)
	{
		detail::check(weft_scope_set_deadline(&scope_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	void expires_at(const std::chrono::time_point<Clock, Duration> &when)
	{
		detail::check(weft_scope_set_deadline(&scope_, detail::deadline_of(when)));
	}
	void expires_never()
	{
		detail::check(weft_scope_set_deadline(&scope_, WEFT_NEVER));
	}
	/** Cancel all: see weft_scope_cancel. From any thread. */
	void cancel() noexcept
	{
		weft_scope_cancel(&scope_, -ECANCELED);
	}

	weft_scope_t *get() noexcept
	{
		return &scope_;
	}

      private:
	template <typename Call> struct started {
		scope *in;
		Call call;

		started(scope *s, Call &&c) : in(s), call(std::move(c))
		{
		}
		static void *run(void *self)
		{
			std::exception_ptr thrown;
			scope *in;
			{
				detail::locals values;
				std::unique_ptr<started> s(static_cast<started *>(self));
				detail::outcome<void> o;

				in = s->in;
				detail::run_into(o, [&s] { s->call(); });
				thrown = o.thrown();
			}
			if (thrown)
				in->failed(std::move(thrown));
			return nullptr;
		}
	};

	// Siblings are cancelled; the first exception stays.
	void failed(std::exception_ptr thrown) noexcept
	{
		if (!__atomic_exchange_n(&has_thrown_, true, __ATOMIC_ACQ_REL))
			thrown_ = std::move(thrown);
		weft_scope_cancel(&scope_, -ECANCELED);
	}

	weft_scope_t scope_;
	bool has_thrown_ = false;
	std::exception_ptr thrown_; // written by a task, read when all have ended
};

/**
 * Tasks with results of one type that are got one by one, in the order in which the tasks end, and a limit on how many
 * run at a time: see weft_join_set_t. For the task that made it; stays where it is. At its end tasks that still run are
 * cancelled, and waited for. An exception of a task leaves next(), and does not concern the other tasks.
 */
template <typename T> class join_set
{
      public:
	/** @param limit  0: none */
	explicit join_set(size_t limit = 0) : set_ WEFT_JOIN_SET(scope_.get(), limit)
	{
	}
	join_set(const join_set &) = delete;
	join_set &operator=(const join_set &) = delete;
	~join_set()
	{
		weft_join_set_task_t *ended;

		cancel();
		weft_shield_begin();
		try {
			scope_.wait();
		} catch (const std::system_error &) { // it was cancelled
		}
		while (weft_join_set_next_until(&set_, &ended, 0) == 0)
			delete static_cast<member *>(ended->arg);
		weft_shield_end();
	}

	/** Start f(args…), copies of them; wait for an end if as many as the limit run. May suspend.
	 * @throws std::bad_alloc; std::system_error: as weft_join_set_spawn_until says */
	template <typename F, typename... Args> void spawn(F &&f, Args &&...args)
	{
		(void)start(WEFT_NEVER, std::forward<F>(f), std::forward<Args>(args)...);
	}
	/** False: as many as the limit run. Does not wait. */
	template <typename F, typename... Args> [[nodiscard]] bool try_spawn(F &&f, Args &&...args)
	{
		return start(0, std::forward<F>(f), std::forward<Args>(args)...);
	}

	/** Waits for the next task to end. Not if the set is empty(): @throws std::system_error, ENOENT. May suspend.
	 * @return the task's result @throws its exception; std::system_error: its error; ECANCELED */
	T next()
	{
		return take(WEFT_NEVER);
	}
	/** Likewise; try_next does not wait. @throws std::system_error, ETIMEDOUT: no task has ended in time */
	T try_next()
	{
		return take(0);
	}
	template <typename Rep, typename Period> T next_for(const std::chrono::duration<Rep, Period> &time)
	{
		return take(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration> T next_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return take(detail::deadline_of(when));
	}

	/** Tasks whose results nobody has got. */
	size_t size() noexcept
	{
		return weft_join_set_count(&set_);
	}
	bool empty() noexcept
	{
		return !size();
	}
	/** Cancel all: see weft_scope_cancel. From any thread. */
	void cancel() noexcept
	{
		scope_.cancel();
	}

      private:
	struct member {
		weft_join_set_task_t task{};
		detail::outcome<T> result;

		virtual ~member() = default;
	};
	template <typename Call> struct member_with : member {
		Call call;

		explicit member_with(Call &&c) : call(std::move(c))
		{
		}
		static void *run(void *self)
		{
			auto *m = static_cast<member_with *>(static_cast<member *>(self));
			detail::locals values;

			detail::run_into(m->result, m->call);
			return nullptr;
		}
	};

	template <typename F, typename... Args> bool start(uint64_t deadline, F &&f, Args &&...args)
	{
		constexpr bool fits = detail::is_callable<F, Args...>;

		static_assert(
		    fits,
		    "weft: a task's function is called with copies of its arguments, as rvalues: it must take them so");
		if constexpr (fits) {
			auto call = detail::call_of(std::forward<F>(f), std::forward<Args>(args)...);
			auto m = std::make_unique<member_with<decltype(call)>>(std::move(call));
			weft_task_attr_t all = detail::attr_of(nullptr);
			member *plain = m.get();

			if (!detail::in_time(weft_join_set_spawn_until(&set_, &m->task, m->run, plain, &all, deadline)))
				return false;
			m.release(); // the set's
		}
		return true;
	}
	T take(uint64_t deadline)
	{
		weft_join_set_task_t *ended;

		detail::check(weft_join_set_next_until(&set_, &ended, deadline));
		std::unique_ptr<member> m(static_cast<member *>(ended->arg));
		if (!m->result.thrown())
			detail::check(ended->error);
		return m->result.take();
	}

	scope scope_;
	weft_join_set_t set_;
};

/** Run f() as the first task, with all that it starts, and wait. @return its result @throws its exception;
 * std::system_error, std::bad_alloc: as weft_rt_run says. */
template <typename F> auto run(const weft_rt_config_t &config, F &&f)
{
	constexpr bool fits = std::is_invocable_v<F &>;

	static_assert(fits, "weft: weft::run calls its function without arguments");
	if constexpr (!fits) {
		return detail::any_result();
	} else {
		using T = std::invoke_result_t<F &>;
		auto call = detail::call_of(std::ref(f)); // no copy: the caller waits
		detail::state_with<T, decltype(call)> first(std::move(call));
		weft_rt_config_t all = config;

		all.task.flags |= detail::TASK_FLAGS;
		detail::check(weft_rt_run(&all, first.run, &first, nullptr));
		return first.result.take();
	}
}
template <typename F> auto run(F &&f)
{
	return run(weft_rt_config_t{}, std::forward<F>(f));
}

/** While it lives the calling task's waits are not cancelled. */
class shield
{
      public:
	shield() noexcept
	{
		weft_shield_begin();
	}
	shield(const shield &) = delete;
	shield &operator=(const shield &) = delete;
	~shield()
	{
		weft_shield_end();
	}
};

namespace this_task
{

/** Lets other tasks run. @throws std::system_error, ECANCELED. May suspend. */
inline void yield()
{
	detail::check(weft_task_yield());
}

/** Never shorter. @throws std::system_error, ECANCELED. May suspend. */
template <typename Rep, typename Period> void sleep_for(std::chrono::duration<Rep, Period> time)
{
	detail::check(weft_sleep_until(detail::deadline_of(time)));
}

/** Not before that time, of weft::clock or any other clock. As sleep_for. */
template <typename Clock, typename Duration> void sleep_until(const std::chrono::time_point<Clock, Duration> &when)
{
	detail::check(weft_sleep_until(detail::deadline_of(when)));
}

/** Look for a cancellation, and do not wait: see weft_task_check. @throws std::system_error, ECANCELED */
inline void check()
{
	detail::check(weft_task_check());
}

/** See weft_task_is_cancelled. */
inline bool is_cancelled() noexcept
{
	return weft_task_is_cancelled();
}

/** Calls f() on a helper thread, so that a blocking call in f delays no worker. Returns its result or throws its
 * exception. May suspend, and move the task to another thread. */
template <typename F> auto blocking(F &&f) -> std::invoke_result_t<F>
{
	detail::outcome<std::invoke_result_t<F>> o;

	weft_blocking
	{
		detail::run_into(o, f);
	}
	return o.take();
}

#if defined(__cpp_impl_coroutine)
/** Waits for an awaitable of C++20; the task is suspended, and any thread may complete the wait. The wait cannot be
 * cancelled, because the awaitable refers to the caller's frame: a cancellation ends the next wait. @return the
 * awaitable's result @throws its exception */
template <typename Awaitable> auto await(Awaitable &&what)
{
	struct driver {
		struct promise_type {
			driver get_return_object() noexcept
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
			void return_void() noexcept
			{
			}
			void unhandled_exception() noexcept
			{
				std::terminate();
			}
		};
	};
	using T = detail::awaited<Awaitable &&>;
	struct completion {
		detail::outcome<std::decay_t<T>> result;
		weft_waiter_t done;
	} c;

	weft_waiter_init(&c.done, "awaitable", &c, WEFT_NEVER);
	weft_waiter_claim(&c.done, 0); // nothing else ends this wait: the awaitable writes to this frame
	// Shielded: no unwinding may pass the coroutine, which could not continue.
	weft_shield_begin();
	[](std::remove_reference_t<Awaitable> *a, completion *to) -> driver {
		try {
			if constexpr (std::is_void_v<T>)
				co_await static_cast<Awaitable &&>(*a);
			else
				to->result.emplace(co_await static_cast<Awaitable &&>(*a));
		} catch (...) {
			to->result.set_exception(std::current_exception());
		}
		weft_waiter_complete(&to->done);
	}(std::addressof(what), &c);
	weft_shield_end();
	weft_wait(&c.done);
	return c.result.take();
}
#endif

} // namespace this_task

/** A channel of anything that can be moved, one allocation for each item. Every item is received once, or destroyed
 * with the channel, which must outlive its users. send and receive may suspend, and throw ECANCELED then. */
template <typename T> class channel
{
	static_assert(std::is_object_v<T> && std::is_move_constructible_v<T>,
		      "weft::channel<T>: T must be an object that can be moved");

      public:
	/** @param room  0: a sender waits for its receiver; WEFT_UNBOUNDED: no limit */
	explicit channel(size_t room = 0) : chan_(weft_chan_make(sizeof(T *), room))
	{
		if (!chan_)
			throw std::bad_alloc();
	}
	channel(const channel &) = delete;
	channel &operator=(const channel &) = delete;
	~channel()
	{
		T *item;

		while (!WEFT_CANARY(channel_forgets_its_items) && weft_chan_receive_until(chan_, &item, 0) == 0)
			delete item;
		weft_chan_free(chan_);
	}

	/** False: it is closed, and the item is gone. @throws std::bad_alloc too. */
	bool send(T item)
	{
		return sent(send_to(item, WEFT_NEVER));
	}
	/** The item is moved from if it is sent, and only then. try_send does not wait: false if there is no room, or
	 * if the channel is closed. The members with a time throw ETIMEDOUT, and return false if it is closed. */
	[[nodiscard]] bool try_send(T &&item)
	{
		int error = give_back(item, 0);

		return error != -ETIMEDOUT && sent(error);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool send_for(T &&item, const std::chrono::duration<Rep, Period> &time)
	{
		return sent(give_back(item, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool send_until(T &&item, const std::chrono::time_point<Clock, Duration> &when)
	{
		return sent(give_back(item, detail::deadline_of(when)));
	}

	/** The next; nothing: it is closed, and empty. */
	[[nodiscard]] std::optional<T> receive()
	{
		return receive_to(WEFT_NEVER);
	}
	/** try_receive does not wait: nothing if no item is there. The members with a time throw ETIMEDOUT, and return
	 * nothing if the channel is closed and empty. */
	[[nodiscard]] std::optional<T> try_receive()
	{
		T *item;
		int error = weft_chan_receive_until(chan_, &item, 0);

		return error == -ETIMEDOUT ? std::nullopt : received(item, error);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] std::optional<T> receive_for(const std::chrono::duration<Rep, Period> &time)
	{
		return receive_to(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] std::optional<T> receive_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return receive_to(detail::deadline_of(when));
	}

	void close() noexcept
	{
		weft_chan_close(chan_);
	}
	weft_chan_t *get() noexcept
	{
		return chan_;
	}

      private:
	static bool sent(int error)
	{
		if (error != -EPIPE)
			detail::check(error);
		return !error;
	}
	static std::optional<T> received(std::add_pointer_t<T> item, int error)
	{
		if (error == -EPIPE)
			return std::nullopt;
		detail::check(error);
		return std::move(*std::unique_ptr<T>(item));
	}
	std::optional<T> receive_to(uint64_t deadline)
	{
		T *item = nullptr;
		int error = weft_chan_receive_until(chan_, &item, deadline);

		return received(item, error);
	}
	int send_own(std::unique_ptr<T> &own, uint64_t deadline)
	{
		T *pointer = own.get();
		int error = weft_chan_send_until(chan_, &pointer, deadline);

		if (!error)
			own.release();
		return error;
	}
	int send_to(T &item, uint64_t deadline)
	{
		auto own = std::make_unique<T>(std::move(item));

		return send_own(own, deadline);
	}
	// If a cancellation unwinds the wait, the item is lost.
	int give_back(T &item, uint64_t deadline)
	{
		static_assert(std::is_move_assignable_v<T>,
			      "weft::channel::try_send(item): an item that is not sent is moved back");
		auto own = std::make_unique<T>(std::move(item));
		int error = send_own(own, deadline);

		if (error)
			item = std::move(*own);
		return error;
	}

	weft_chan_t *chan_;
};

// ---- select ---------------------------------------------------------------------------------------------------------

namespace detail
{

struct select_case {
	uint64_t deadline() const noexcept
	{
		return WEFT_NEVER;
	}
	weft_case_t what() noexcept
	{
		return {};
	}
};

template <typename T, typename F> class receive_case : public select_case
{
      public:
	receive_case(channel<T> &c, F f) : chan_(c.get()), f_(std::move(f))
	{
	}
	weft_case_t what() noexcept
	{
		weft_case_t c{};

		c.chan = chan_;
		c.receive = &item_;
		return c;
	}
	void done(int status)
	{
		if (status == -EPIPE) {
			f_(std::optional<T>());
			return;
		}
		check(status);
		f_(std::optional<T>(std::move(*std::unique_ptr<T>(item_))));
	}

      private:
	weft_chan_t *chan_;
	T *item_ = nullptr;
	F f_;
};

template <typename T, typename F> class send_case : public select_case
{
      public:
	send_case(channel<T> &c, T &&item, F f)
	    : chan_(c.get()), own_(std::make_unique<T>(std::move(item))), item_(own_.get()), f_(std::move(f))
	{
	}
	weft_case_t what() noexcept
	{
		weft_case_t c{};

		c.chan = chan_;
		c.send = &item_;
		return c;
	}
	void done(int status)
	{
		if (status != -EPIPE) {
			check(status);
			own_.release(); // the channel's
		}
		f_(status == 0);
	}

      private:
	weft_chan_t *chan_;
	std::unique_ptr<T> own_;
	T *item_;
	F f_;
};

template <typename T, typename F> class broadcast_case : public select_case
{
      public:
	broadcast_case(receiver<T> &r, F f) : from_(r.native_handle()), f_(std::move(f))
	{
	}
	weft_case_t what() noexcept
	{
		weft_case_t c{};

		c.from = from_;
		c.receive = &item_;
		return c;
	}
	void done(int status)
	{
		f_(status ? std::optional<T>() : std::optional<T>(item_));
	}

      private:
	weft_receiver_t *from_;
	T item_{};
	F f_;
};

// Any other object: `member` of the case.
template <typename Object, typename F> class object_case : public select_case
{
      public:
	object_case(Object *weft_case_t::*member, Object *object, F f)
	    : member_(member), object_(object), f_(std::move(f))
	{
	}
	weft_case_t what() noexcept
	{
		weft_case_t c{};

		c.*member_ = object_;
		return c;
	}
	void done(int status)
	{
		if constexpr (std::is_invocable_v<F &, int>)
			f_(status);
		else
			f_();
	}

      private:
	Object *weft_case_t::*member_;
	Object *object_;
	F f_;
};

template <typename Object, typename F> auto object_case_of(Object *weft_case_t::*member, Object *object, F &&fn)
{
	static_assert(std::is_invocable_v<std::decay_t<F> &>, "weft::select: the function of this case takes nothing");
	return object_case<Object, std::decay_t<F>>(member, object, std::forward<F>(fn));
}

template <typename F> class time_case : public select_case
{
      public:
	time_case(uint64_t when, F f) : when_(when), f_(std::move(f))
	{
	}
	uint64_t deadline() const noexcept
	{
		return when_;
	}
	void done(int)
	{
		f_();
	}

      private:
	uint64_t when_;
	F f_;
};

template <typename F> auto time_case_of(uint64_t when, F &&fn)
{
	if constexpr (std::is_invocable_v<std::decay_t<F> &>)
		return time_case<std::decay_t<F>>(when, std::forward<F>(fn));
	else
		return time_case<void (*)()>(0, nullptr);
}

template <size_t... Index, typename... Cases>
void done(std::index_sequence<Index...>, size_t which, int status, Cases &...cases)
{
	((Index == which ? cases.done(status) : void()), ...);
}

// The number of the case that is done, and its status.
inline std::pair<size_t, int> wait_for_one(weft_case_t *all, const uint64_t *deadlines, size_t count, bool fair)
{
	size_t earliest = 0;
	int result;

	for (size_t i = 1; i < count; i++)
		if (deadlines[i] < deadlines[earliest])
			earliest = i;
	result =
	    (fair ? weft_select_fair_until : weft_select_until)(all, static_cast<unsigned>(count), deadlines[earliest]);
	if (result == -ETIMEDOUT)
		return {earliest, 0};
	check(result);
	return {static_cast<size_t>(result), all[result].status};
}

template <typename... Cases> size_t select_now(bool fair, Cases &...cases)
{
	weft_case_t all[] = {cases.what()...};
	const uint64_t deadlines[] = {cases.deadline()...};
	auto [which, status] = wait_for_one(all, deadlines, sizeof...(Cases), fair);

	done(std::index_sequence_for<Cases...>(), which, status, cases...);
	return which;
}

} // namespace detail

/** Cases of weft::select: fn(std::optional<T>) with the item, empty if the channel is closed. */
template <typename T, typename F> auto on_receive(channel<T> &c, F &&fn)
{
	constexpr bool fits = std::is_invocable_v<std::decay_t<F> &, std::optional<T>>;

	static_assert(fits, "weft::on_receive(channel, fn): fn takes a std::optional of the channel's items");
	if constexpr (fits)
		return detail::receive_case<T, std::decay_t<F>>(c, std::forward<F>(fn));
	else
		return detail::time_case<void (*)()>(0, nullptr);
}
/** fn(true) when the item has been sent, fn(false) if the channel is closed. An item that is not sent ends with the
 * select. */
template <typename T, typename F> auto on_send(channel<T> &c, std::common_type_t<T> item, F &&fn)
{
	constexpr bool fits = std::is_invocable_v<std::decay_t<F> &, bool>;

	static_assert(fits, "weft::on_send(channel, item, fn): fn takes a bool");
	if constexpr (fits)
		return detail::send_case<T, std::decay_t<F>>(c, std::move(item), std::forward<F>(fn));
	else
		return detail::time_case<void (*)()>(0, nullptr);
}
/** fn() when the event is set. */
template <typename F> auto on_event(event &e, F &&fn)
{
	return detail::object_case_of(&weft_case_t::event, e.native_handle(), std::forward<F>(fn));
}
/** fn(std::optional<T>) with the next item of a broadcast or watch; empty if it is closed. */
template <typename T, typename F> auto on_receive(receiver<T> &r, F &&fn)
{
	constexpr bool fits = std::is_invocable_v<std::decay_t<F> &, std::optional<T>>;

	static_assert(fits, "weft::on_receive(receiver, fn): fn takes a std::optional of its items");
	if constexpr (fits)
		return detail::broadcast_case<T, std::decay_t<F>>(r, std::forward<F>(fn));
	else
		return detail::time_case<void (*)()>(0, nullptr);
}
/** fn() when the caller has a permit of the semaphore. */
template <typename F> auto on_acquire(semaphore &s, F &&fn)
{
	return detail::object_case_of(&weft_case_t::sem, s.native_handle(), std::forward<F>(fn));
}
/** fn() when the task has ended: join() does not wait then. The handle stays the caller's. @throws std::system_error,
 * EINVAL: it was joined, or moved from; from the select EBUSY, EDEADLK: see weft_case_t */
template <typename T, typename F> auto on_end(task<T> &t, F &&fn)
{
	return detail::object_case_of(&weft_case_t::task, t.native_handle(), std::forward<F>(fn));
}
/** fn(int) when a descriptor is ready: with the events, or a negative errno. See weft_readiness_t of weft/io.h. */
template <typename F> auto on_readiness(struct weft_readiness &ready, F &&fn)
{
	static_assert(std::is_invocable_v<std::decay_t<F> &, int>, "weft::on_readiness(ready, fn): fn takes an int");
	return detail::object_case<struct weft_readiness, std::decay_t<F>>(&weft_case_t::ready, &ready,
									   std::forward<F>(fn));
}
/** fn() after that time, if no other case was ready before. */
template <typename Rep, typename Period, typename F> auto after(std::chrono::duration<Rep, Period> time, F &&fn)
{
	static_assert(std::is_invocable_v<std::decay_t<F> &>, "weft::after(time, fn): fn takes nothing");
	return detail::time_case_of(detail::deadline_of(time), std::forward<F>(fn));
}
/** fn() at once, if no other case is ready now. */
template <typename F> auto otherwise(F &&fn)
{
	static_assert(std::is_invocable_v<std::decay_t<F> &>, "weft::otherwise(fn): fn takes nothing");
	return detail::time_case_of(0, std::forward<F>(fn));
}

/**
 * Waits until a case can be done, does it, and calls its function. If several cases can be done at once, select takes
 * the first. Exactly one case is done. @return its number, from 0 @throws std::system_error, ECANCELED; std::bad_alloc;
 * the exception of the function. May suspend.
 */
template <typename... Cases> size_t select(Cases &&...cases)
{
	constexpr bool fits = (std::is_base_of_v<detail::select_case, std::decay_t<Cases>> && ...);
	constexpr bool count_fits = sizeof...(Cases) > 0 && sizeof...(Cases) <= WEFT_CASES;

	static_assert(count_fits, "weft::select takes 1 to 64 cases");
	static_assert(fits, "weft::select takes what weft::on_receive, on_send, after and otherwise return");
	if constexpr (fits && count_fits)
		return detail::select_now(false, cases...);
	else
		return 0;
}
/** Like select, but draws at random among the cases that can be done at once. */
template <typename... Cases> size_t select_fair(Cases &&...cases)
{
	constexpr bool fits = (std::is_base_of_v<detail::select_case, std::decay_t<Cases>> && ...);
	constexpr bool count_fits = sizeof...(Cases) > 0 && sizeof...(Cases) <= WEFT_CASES;

	static_assert(count_fits, "weft::select takes 1 to 64 cases");
	static_assert(fits, "weft::select takes what weft::on_receive, on_send, after and otherwise return");
	if constexpr (fits && count_fits)
		return detail::select_now(true, cases...);
	else
		return 0;
}

/** Cases whose number is known at run time, up to WEFT_CASES; one task uses them at a time. Each select does one
 * case and removes it from the list; the case's number is that of its add. */
class select_list
{
      public:
	/** @return its number @throws std::length_error: there are WEFT_CASES already; std::bad_alloc */
	template <typename Case> size_t add(Case &&one)
	{
		static_assert(
		    std::is_base_of_v<detail::select_case, std::decay_t<Case>>,
		    "weft::select_list::add takes what weft::on_receive, on_send, after and otherwise return");
		if (cases_.size() == WEFT_CASES)
			throw std::length_error("weft::select_list has 64 cases at most");
		cases_.emplace_back(added_, std::make_unique<any_of<std::decay_t<Case>>>(std::forward<Case>(one)));
		return added_++;
	}
	size_t size() const noexcept
	{
		return cases_.size();
	}
	bool empty() const noexcept
	{
		return cases_.empty();
	}
	/** Like weft::select. @throws std::system_error, EINVAL: the list is empty */
	size_t select()
	{
		return run(false);
	}
	size_t select_fair()
	{
		return run(true);
	}

      private:
	struct any {
		virtual ~any() = default;
		virtual weft_case_t what() noexcept = 0;
		virtual uint64_t deadline() const noexcept = 0;
		virtual void done(int status) = 0;
	};
	template <typename Case> struct any_of final : any {
		Case one;

		explicit any_of(Case &&c) : one(std::move(c))
		{
		}
		weft_case_t what() noexcept override
		{
			return one.what();
		}
		uint64_t deadline() const noexcept override
		{
			return one.deadline();
		}
		void done(int status) override
		{
			one.done(status);
		}
	};

	size_t run(bool fair)
	{
		weft_case_t all[WEFT_CASES];
		uint64_t deadlines[WEFT_CASES] = {WEFT_NEVER};

		for (size_t i = 0; i < cases_.size(); i++) {
			all[i] = cases_[i].second->what();
			deadlines[i] = cases_[i].second->deadline();
		}
		auto [which, status] = detail::wait_for_one(all, deadlines, cases_.size(), fair);
		auto one = std::move(cases_[which]);

		cases_.erase(cases_.begin() + static_cast<std::ptrdiff_t>(which));
		one.second->done(status);
		return one.first;
	}

	std::vector<std::pair<size_t, std::unique_ptr<any>>> cases_;
	size_t added_ = 0;
};

// ---- futures --------------------------------------------------------------------------------------------------------

namespace detail
{

template <typename T> struct promised {
	weft_event_t known{};
	bool is_set = false; // atomic
	bool broken =
	    false; // its promise ended without a value; the future reports it, as a destructor may lack the memory
	outcome<T> result;
};

} // namespace detail

/** A value that comes later, from its promise. Moved, not copied. For tasks and threads. */
template <typename T> class [[nodiscard]] future
{
      public:
	future() = default;

	/** Has it a promise, and has nobody got the value? */
	bool valid() const noexcept
	{
		return state_ != nullptr;
	}
	/** Is the value known? */
	bool ready() const noexcept
	{
		return state_ && weft_event_is_set(&state_->known);
	}
	/** Set when the value is known. @throws std::system_error, EINVAL: the future is not valid */
	weft_event_t *native_event() const
	{
		return &state().known;
	}
	/** Wait until it is known. @throws std::system_error: ECANCELED; EINVAL: the future is not valid. May suspend.
	 */
	void wait() const
	{
		detail::check(weft_event_wait(&state().known));
	}
	/** At most so long, or until then. @return is it known? */
	template <typename Rep, typename Period> bool wait_for(std::chrono::duration<Rep, Period> time) const
	{
		return detail::in_time(weft_event_wait_until(&state().known, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	bool wait_until(const std::chrono::time_point<Clock, Duration> &when) const
	{
		return detail::in_time(weft_event_wait_until(&state().known, detail::deadline_of(when)));
	}
	/** Wait for the value, and move it out; once. @throws the exception that was set; std::future_error,
	 * broken_promise; as wait() does, and then the future stays valid. May suspend. */
	T get()
	{
		wait();

		auto known = std::exchange(state_, nullptr);

		if (known->broken)
			throw std::future_error(std::future_errc::broken_promise);
		return known->result.take();
	}

#if defined(__cpp_impl_coroutine)
	/** co_await std::move(future): get, for a C++20 coroutine that runs in a task or a thread, which waits with it.
	 */
	auto operator co_await() &&
	{
		struct gets {
			future from;

			bool await_ready() const noexcept
			{
				return true;
			}
			void await_suspend(std::coroutine_handle<>) const noexcept
			{
			}
			T await_resume()
			{
				return from.get();
			}
		};
		return gets{std::move(*this)};
	}
#endif

      private:
	template <typename U> friend class promise;
	explicit future(std::shared_ptr<detail::promised<T>> s) : state_(std::move(s))
	{
	}
	detail::promised<T> &state() const
	{
		if (!state_)
			throw std::system_error(EINVAL, std::generic_category(), "weft: a future is got once");
		return *state_;
	}

	std::shared_ptr<detail::promised<T>> state_;
};

/** A case of weft::select: fn() when the value of a future is known; get() does not wait then. The future is valid. */
template <typename T, typename F> auto on_ready(const future<T> &f, F &&fn)
{
	return detail::object_case_of(&weft_case_t::event, f.native_event(), std::forward<F>(fn));
}

/** Sets a future's value, or an exception, once. A promise that ends without either sets broken_promise. */
template <typename T> class promise
{
      public:
	promise() : state_(std::make_shared<detail::promised<T>>())
	{
	}
	promise(promise &&) noexcept = default;
	promise &operator=(promise &&other) noexcept
	{
		abandon();
		state_ = std::move(other.state_);
		has_future_ = other.has_future_;
		return *this;
	}
	~promise()
	{
		abandon();
	}

	/** The future; once. @throws std::future_error */
	future<T> get_future()
	{
		if (!state_ || std::exchange(has_future_, true))
			throw std::future_error(state_ ? std::future_errc::future_already_retrieved
						       : std::future_errc::no_state);
		return future<T>(state_);
	}
	/** @param value  the arguments of T's constructor; nothing for void @throws std::future_error: a value was set
	 * already; the exception of moving the value, which the future then gets */
	template <typename... Value> void set_value(Value &&...value)
	{
		constexpr bool fits = std::is_void_v<T> ? sizeof...(Value) == 0 : std::is_constructible_v<T, Value...>;

		static_assert(fits, "weft::promise<T>::set_value takes what a T can be made of");
		begin();
		try {
			if constexpr (fits && !std::is_void_v<T>)
				state_->result.emplace(T(std::forward<Value>(value)...));
		} catch (...) {
			state_->result.set_exception(std::current_exception());
			weft_event_set(&state_->known);
			throw;
		}
		weft_event_set(&state_->known);
	}
	/** @throws std::future_error: it was set already */
	void set_exception(std::exception_ptr thrown)
	{
		begin();
		state_->result.set_exception(std::move(thrown));
		weft_event_set(&state_->known);
	}

      private:
	void begin()
	{
		if (!state_)
			throw std::future_error(std::future_errc::no_state);
		if (__atomic_exchange_n(&state_->is_set, true, __ATOMIC_ACQ_REL))
			throw std::future_error(std::future_errc::promise_already_satisfied);
	}
	void abandon() noexcept
	{
		if (!state_ || __atomic_exchange_n(&state_->is_set, true, __ATOMIC_ACQ_REL) ||
		    WEFT_CANARY(promise_is_forgotten))
			return;
		state_->broken = true;
		weft_event_set(&state_->known);
	}

	std::shared_ptr<detail::promised<T>> state_;
	bool has_future_ = false;
};

// ---- variables of tasks ---------------------------------------------------------------------------------------------

/**
 * A variable with a T for each task and each thread. A static object: it must outlive the tasks that use it. A task's T
 * is made at its first use, and is destroyed, in the task, after the task's function has returned or thrown; its
 * destructor may wait. A new task begins without a T.
 */
template <typename T> class local
{
	static_assert(std::is_default_constructible_v<T>, "weft::local<T>: T must be an object that T() makes");

      public:
	local() = default;
	local(const local &) = delete;

	/** The calling task's T. @throws the exception of T(), std::bad_alloc; std::system_error, EPERM: the task was
	 * not started by this header's functions, so that nothing would destroy the T */
	T &get()
	{
		detail::locals &mine = detail::locals::mine();
		auto *found = static_cast<node *>(mine.find(this));

		if (!found) {
			found = new node(this);
			mine.add(found);
		}
		return found->value;
	}
	T &operator*()
	{
		return get();
	}
	T *operator->()
	{
		return &get();
	}

      private:
	struct node : detail::locals::node {
		T value{};

		using detail::locals::node::node;
	};
};

/**
 * A value that tasks inherit: the innermost weft::bind around the caller sets it, in this task or in the task that
 * opened this task's scope. A static object. May be used in threads, too. See weft_bind.
 */
template <typename T> class inherited
{
      public:
	constexpr inherited() noexcept = default;
	inherited(const inherited &) = delete;

	/** nullptr: it is not bound. */
	T *get() const noexcept
	{
		return static_cast<T *>(weft_bound(this));
	}
	/** It must be bound. */
	T &operator*() const noexcept
	{
		return *get();
	}
	T *operator->() const noexcept
	{
		return get();
	}
	explicit operator bool() const noexcept
	{
		return get();
	}

      private:
	char unused_ = 0; // an address of its own
};

/**
 * Bind a value until the end of the block: `weft::bind as(user, alice);`. A local variable. The object is referred to,
 * and must outlive the block; a weft::scope belongs behind it. See weft_bind.
 */
class [[nodiscard]] bind
{
      public:
	template <typename T> bind(const inherited<T> &key, T &value) noexcept
	{
		weft__bind(&binding_, &key, const_cast<void *>(static_cast<const void *>(std::addressof(value))));
		weft__defer(&deferred_, weft__unbind, &binding_);
	}
	template <typename T> bind(const inherited<T> &key, const T &&value) = delete; // it would be gone at once
	bind(const bind &) = delete;
	~bind()
	{
		weft__quick_scope_ends(&deferred_);
	}
	static void *operator new(std::size_t) = delete;

      private:
	struct weft__binding binding_;
	struct weft__deferred deferred_;
};

} // namespace weft

#endif // WEFT_SCHED_HPP
