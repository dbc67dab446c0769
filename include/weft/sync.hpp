// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/sync.hpp: the objects of weft/sync.h for C++17 and later, for tasks and threads. Header only, over libweft-rt.
//
//   weft::mutex           for std::lock_guard, std::unique_lock and std::scoped_lock
//   weft::shared_mutex    for these and std::shared_lock
//   weft::condition       waits for a condition of data that a weft::mutex protects
//   weft::semaphore       permits
//   weft::event           has happened, or not yet
//   weft::wait_group      a number of things to be done
//   weft::barrier         a place where a number of tasks meet
//   weft::rate_limiter    so often on average, and so often in a row
//   weft::once            something to be done once; if it throws, the next caller tries
//   weft::broadcast<T, N> items that each receiver sees, or is told that it has missed
//   weft::watch<T>        a value whose changes are waited for
//   weft::clock           the clock of weft_now(), which simulated time moves
//
// Member functions are named like members of the standard library's classes; their further semantics follow
// weft/sync.h. A wait throws std::system_error with ECANCELED when a scope that the task has open is cancelled. Members
// with …_for take a duration, members with …_until a time of any clock; both return false when the time is over first.
// Objects are neither copied nor moved, and need no member that destroys them: see weft/sync.h.
#ifndef WEFT_SYNC_HPP
#define WEFT_SYNC_HPP

#if __cplusplus < 201703L
#error "sync.hpp needs C++17: compile with -std=c++17 or later, or include weft/sync.h, which works from C++14 on"
#endif

#if !defined(__cpp_exceptions)
#error "sync.hpp needs exceptions: compile without -fno-exceptions, or include weft/sync.h, which works without"
#endif

#include <weft/sync.h>

#include <chrono>
#include <condition_variable> // std::cv_status
#include <cstdint>
#include <memory> // std::addressof
#include <mutex>  // std::unique_lock
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>

namespace weft
{

/** Nanoseconds of weft_now(): CLOCK_MONOTONIC, or a simulator's time. */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock>;
	static constexpr bool is_steady = true;

	static time_point now() noexcept
	{
		return time_point(duration(static_cast<rep>(weft_now())));
	}
};

namespace detail
{

inline void check(int error)
{
	if (error == -ENOMEM)
		throw std::bad_alloc();
	if (error < 0)
		throw std::system_error(-error, std::generic_category(), "weft");
}

// Never shorter. A time that does not fit into 64 bits of nanoseconds never passes; a time that is no number has
// passed.
template <typename Rep, typename Period> uint64_t deadline_of(std::chrono::duration<Rep, Period> from_now)
{
	using std::chrono::nanoseconds;

	uint64_t now = weft_now();

	if (!(from_now > std::chrono::duration<Rep, Period>::zero()))
		return now;
	// Asked before the cast, which may overflow.
	if (std::chrono::duration<long double, std::nano>(from_now).count() >=
	    static_cast<long double>(nanoseconds::max().count()))
		return WEFT_NEVER - 1;

	uint64_t wait = static_cast<uint64_t>(std::chrono::ceil<nanoseconds>(from_now).count());

	return wait < WEFT_NEVER - now ? now + wait : WEFT_NEVER - 1;
}

template <typename Clock, typename Duration> uint64_t deadline_of(const std::chrono::time_point<Clock, Duration> &when)
{
	return deadline_of(when - Clock::now());
}

// False: the time was over. @throws for other errors
inline bool in_time(int error)
{
	if (error == -ETIMEDOUT)
		return false;
	check(error);
	return true;
}

struct stays {
	stays() = default;
	stays(const stays &) = delete;
	stays &operator=(const stays &) = delete;
};

} // namespace detail

/** A mutex for std::lock_guard and the like. Not recursive: lock() throws EDEADLK if the caller owns the mutex. Members
 * that lock may suspend. */
class mutex : detail::stays
{
      public:
	void lock()
	{
		detail::check(weft_mutex_lock(&mutex_));
	}
	[[nodiscard]] bool try_lock() noexcept
	{
		return weft_mutex_try_lock(&mutex_);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
	{
		return try_lock() || detail::in_time(weft_mutex_lock_until(&mutex_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return try_lock() || detail::in_time(weft_mutex_lock_until(&mutex_, detail::deadline_of(when)));
	}
	/** By its owner; anybody else is reported. */
	void unlock() noexcept
	{
		if (weft_mutex_unlock(&mutex_))
			weft__misused("weft::mutex::unlock",
				      "was called by a task that has not locked it: let the task unlock it that "
				      "locked it");
	}
	weft_mutex_t *native_handle() noexcept
	{
		return &mutex_;
	}

      private:
	weft_mutex_t mutex_{};
};

/** Many readers or one writer, in the order of arrival: see weft_rwlock_t. lock() and lock_shared() throw EDEADLK if
 * the caller is the writer. Members that lock may suspend. */
class shared_mutex : detail::stays
{
      public:
	void lock()
	{
		detail::check(weft_rwlock_write(&lock_));
	}
	[[nodiscard]] bool try_lock()
	{
		return taken(weft_rwlock_write_until(&lock_, 0));
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
	{
		return detail::in_time(weft_rwlock_write_until(&lock_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::in_time(weft_rwlock_write_until(&lock_, detail::deadline_of(when)));
	}
	/** By the writer; anybody else is reported. */
	void unlock() noexcept
	{
		leave("weft::shared_mutex::unlock");
	}

	void lock_shared()
	{
		detail::check(weft_rwlock_read(&lock_));
	}
	[[nodiscard]] bool try_lock_shared()
	{
		return taken(weft_rwlock_read_until(&lock_, 0));
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
	{
		return detail::in_time(weft_rwlock_read_until(&lock_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::in_time(weft_rwlock_read_until(&lock_, detail::deadline_of(when)));
	}
	/** By a reader. */
	void unlock_shared() noexcept
	{
		leave("weft::shared_mutex::unlock_shared");
	}
	weft_rwlock_t *native_handle() noexcept
	{
		return &lock_;
	}

      private:
	// A try that the caller's own lock makes fail returns false.
	static bool taken(int error)
	{
		return error != -EDEADLK && detail::in_time(error);
	}
	void leave(const char *member) noexcept
	{
		if (weft_rwlock_unlock(&lock_))
			weft__misused(member,
				      "was called by a task that has not locked it: let the task unlock it that "
				      "locked it");
	}

	weft_rwlock_t lock_{};
};

/** A condition of data that a weft::mutex protects. The lock is owned again when a wait returns or throws, except after
 * EPERM: the caller did not own it. Waits may suspend; they are never spurious, but another task may run first. */
class condition : detail::stays
{
      public:
	void notify_one() noexcept
	{
		weft_cond_signal(&cond_);
	}
	void notify_all() noexcept
	{
		weft_cond_broadcast(&cond_);
	}

	void wait(std::unique_lock<mutex> &lock)
	{
		detail::check(weft_cond_wait(&cond_, lock.mutex()->native_handle()));
	}
	template <typename Predicate> void wait(std::unique_lock<mutex> &lock, Predicate holds)
	{
		while (!holds())
			wait(lock);
	}
	template <typename Rep, typename Period>
	std::cv_status wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time)
	{
		return wait_to(lock, detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	std::cv_status wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &when)
	{
		return wait_to(lock, detail::deadline_of(when));
	}
	/** @return holds() at the end */
	template <typename Rep, typename Period, typename Predicate>
	bool wait_for(std::unique_lock<mutex> &lock, const std::chrono::duration<Rep, Period> &time, Predicate holds)
	{
		return wait_to(lock, detail::deadline_of(time), holds);
	}
	template <typename Clock, typename Duration, typename Predicate>
	bool wait_until(std::unique_lock<mutex> &lock, const std::chrono::time_point<Clock, Duration> &when,
			Predicate holds)
	{
		return wait_to(lock, detail::deadline_of(when), holds);
	}
	weft_cond_t *native_handle() noexcept
	{
		return &cond_;
	}

      private:
	std::cv_status wait_to(std::unique_lock<mutex> &lock, uint64_t deadline)
	{
		int error = weft_cond_wait_until(&cond_, lock.mutex()->native_handle(), deadline);

		return detail::in_time(error) ? std::cv_status::no_timeout : std::cv_status::timeout;
	}
	template <typename Predicate> bool wait_to(std::unique_lock<mutex> &lock, uint64_t deadline, Predicate &holds)
	{
		while (!holds())
			if (wait_to(lock, deadline) == std::cv_status::timeout)
				return holds();
		return true;
	}

	weft_cond_t cond_{};
};

/** Permits, which tasks get in the order in which they asked. acquire may suspend. */
class semaphore : detail::stays
{
      public:
	explicit semaphore(size_t permits) noexcept : sem_ WEFT_SEM(permits)
	{
	}
	/** @param permits  taken all at once, or none: see weft_sem_take_many_until */
	void acquire(size_t permits = 1)
	{
		detail::check(weft_sem_take_many(&sem_, permits));
	}
	[[nodiscard]] bool try_acquire(size_t permits = 1)
	{
		return detail::in_time(weft_sem_take_many_until(&sem_, permits, 0));
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period> &time, size_t permits = 1)
	{
		return detail::in_time(weft_sem_take_many_until(&sem_, permits, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &when, size_t permits = 1)
	{
		return detail::in_time(weft_sem_take_many_until(&sem_, permits, detail::deadline_of(when)));
	}
	/** @throws std::system_error, EOVERFLOW: more than SIZE_MAX permits, and nothing is done */
	void release(size_t permits = 1)
	{
		detail::check(weft_sem_give(&sem_, permits));
	}
	weft_sem_t *native_handle() noexcept
	{
		return &sem_;
	}

      private:
	weft_sem_t sem_;
};

/** Something that has happened, or not yet. wait may suspend. */
class event : detail::stays
{
      public:
	void set() noexcept
	{
		weft_event_set(&event_);
	}
	void reset() noexcept
	{
		weft_event_reset(&event_);
	}
	bool is_set() const noexcept
	{
		return weft_event_is_set(&event_);
	}
	void wait()
	{
		detail::check(weft_event_wait(&event_));
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period> &time)
	{
		return detail::in_time(weft_event_wait_until(&event_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::in_time(weft_event_wait_until(&event_, detail::deadline_of(when)));
	}
	weft_event_t *native_handle() noexcept
	{
		return &event_;
	}

      private:
	weft_event_t event_{};
};

/** A number of things to be done, as Go's sync.WaitGroup. wait may suspend. */
class wait_group : detail::stays
{
      public:
	/** @throws std::system_error: EINVAL, fewer than none would be left; EOVERFLOW */
	void add(ptrdiff_t more = 1)
	{
		detail::check(weft_group_add(&group_, more));
	}
	void done()
	{
		add(-1);
	}
	void wait()
	{
		detail::check(weft_group_wait(&group_));
	}
	template <typename Rep, typename Period>
	[[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period> &time)
	{
		return detail::in_time(weft_group_wait_until(&group_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::in_time(weft_group_wait_until(&group_, detail::deadline_of(when)));
	}
	weft_group_t *native_handle() noexcept
	{
		return &group_;
	}

      private:
	weft_group_t group_{};
};

/** A place where `parties` meet, again and again. A task that stops waiting, because it is cancelled or its time is
 * over, has not arrived. Members may suspend. */
class barrier : detail::stays
{
      public:
	/** @param parties  at least 1 */
	explicit barrier(uint32_t parties) noexcept : barrier_ WEFT_BARRIER(parties)
	{
	}
	/** @return true for one party only. @throws std::system_error, EINVAL: there are no parties */
	bool arrive_and_wait()
	{
		return arrived(weft_barrier_wait(&barrier_));
	}
	/** Nothing: the time is over. */
	template <typename Rep, typename Period>
	[[nodiscard]] std::optional<bool> arrive_and_wait_for(const std::chrono::duration<Rep, Period> &time)
	{
		return in_time(weft_barrier_wait_until(&barrier_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] std::optional<bool> arrive_and_wait_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return in_time(weft_barrier_wait_until(&barrier_, detail::deadline_of(when)));
	}
	weft_barrier_t *native_handle() noexcept
	{
		return &barrier_;
	}

      private:
	static bool arrived(int result)
	{
		detail::check(result);
		return result > 0;
	}
	static std::optional<bool> in_time(int result)
	{
		if (result == -ETIMEDOUT)
			return std::nullopt;
		return arrived(result);
	}

	weft_barrier_t barrier_;
};

/** A limit on how often something is done: see weft_rate_t. acquire may suspend. */
class rate_limiter : detail::stays
{
      public:
	/** Once each interval on average, and `burst` times in a row after a pause. */
	template <typename Rep, typename Period>
	explicit rate_limiter(const std::chrono::duration<Rep, Period> &interval, uint64_t burst = 1)
	    : rate_ WEFT_RATE(static_cast<uint64_t>(std::chrono::ceil<std::chrono::nanoseconds>(interval).count()),
			      burst)
	{
	}
	void acquire()
	{
		detail::check(weft_rate_wait(&rate_));
	}
	[[nodiscard]] bool try_acquire()
	{
		return detail::in_time(weft_rate_wait_until(&rate_, 0));
	}
	/** False at once if the turn would come later. */
	template <typename Rep, typename Period>
	[[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period> &time)
	{
		return detail::in_time(weft_rate_wait_until(&rate_, detail::deadline_of(time)));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return detail::in_time(weft_rate_wait_until(&rate_, detail::deadline_of(when)));
	}
	weft_rate_t *native_handle() noexcept
	{
		return &rate_;
	}

      private:
	weft_rate_t rate_;
};

/** Something to be done once, as by std::call_once: if it throws, the next caller tries. call may suspend. */
class once : detail::stays
{
      public:
	/** Calls f(), unless an earlier call has returned; waits for a call that is running. @throws the exception of
	 * f; std::system_error, EDEADLK: f itself calls this; ECANCELED */
	template <typename F> void call(F &&f)
	{
		using function = std::remove_reference_t<F>;

		detail::check(weft_once_retry(&once_, run<function>, const_cast<void *>(address_of(f))));
	}
	weft_once_t *native_handle() noexcept
	{
		return &once_;
	}

      private:
	template <typename F> static const void *address_of(F &f) noexcept
	{
		return static_cast<const void *>(std::addressof(f));
	}
	template <typename F> static int run(void *f)
	{
		(*static_cast<F *>(f))();
		return 0;
	}

	weft_once_t once_{};
};

/** Receives the items of a weft::broadcast or the values of a weft::watch. For one task at a time; can be copied and
 * moved. receive may suspend. */
template <typename T> class receiver
{
      public:
	explicit receiver(weft_broadcast_t *from) noexcept : receiver_(weft_broadcast_receiver(from))
	{
	}
	/** The next item that is kept; nothing: it is closed, and this receiver has got the rest. */
	[[nodiscard]] std::optional<T> receive()
	{
		return received(WEFT_NEVER);
	}
	/** try_receive does not wait: nothing if there is no item. The members with a time throw ETIMEDOUT. */
	[[nodiscard]] std::optional<T> try_receive()
	{
		T item;
		int error = weft_broadcast_receive_until(&receiver_, &item, 0);

		return error == -ETIMEDOUT ? std::nullopt : result(item, error);
	}
	template <typename Rep, typename Period>
	[[nodiscard]] std::optional<T> receive_for(const std::chrono::duration<Rep, Period> &time)
	{
		return received(detail::deadline_of(time));
	}
	template <typename Clock, typename Duration>
	[[nodiscard]] std::optional<T> receive_until(const std::chrono::time_point<Clock, Duration> &when)
	{
		return received(detail::deadline_of(when));
	}
	/** Items that were replaced between the last two that were received. */
	uint64_t missed() const noexcept
	{
		return receiver_.missed;
	}
	weft_receiver_t *native_handle() noexcept
	{
		return &receiver_;
	}

      private:
	static std::optional<T> result(const T &item, int error)
	{
		if (error == -EPIPE)
			return std::nullopt;
		detail::check(error);
		return item;
	}
	std::optional<T> received(uint64_t deadline)
	{
		T item;
		int error = weft_broadcast_receive_until(&receiver_, &item, deadline);

		return result(item, error);
	}

	weft_receiver_t receiver_;
};

/** The last N items, which each receiver sees, or is told that it has missed: see weft_broadcast_t. send does not
 * wait. */
template <typename T, size_t N> class broadcast : detail::stays
{
	static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
		      "weft::broadcast<T, N>: T is copied as bytes; send a pointer to anything else");

      public:
	/** False: it is closed. */
	bool send(const T &item) noexcept
	{
		return weft_broadcast_send(&broadcast_, &item) == 0;
	}
	void close() noexcept
	{
		weft_broadcast_close(&broadcast_);
	}
	/** A receiver of the items that are sent from now on. */
	[[nodiscard]] receiver<T> subscribe() noexcept
	{
		return receiver<T>(&broadcast_);
	}
	weft_broadcast_t *native_handle() noexcept
	{
		return &broadcast_;
	}

      private:
	T items_[N]{};
	weft_broadcast_t broadcast_ WEFT_BROADCAST(items_);
};

/** A value whose changes are waited for: see WEFT_WATCH. set and get do not wait. */
template <typename T> class watch : detail::stays
{
	static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
		      "weft::watch<T>: T is copied as bytes; watch a pointer to anything else");

      public:
	explicit watch(const T &value) noexcept : value_(value)
	{
	}
	/** False: it is closed. */
	bool set(const T &value) noexcept
	{
		return weft_broadcast_send(&broadcast_, &value) == 0;
	}
	T get() noexcept
	{
		T value;

		(void)weft_broadcast_latest(&broadcast_, &value);
		return value;
	}
	/** No more changes. */
	void close() noexcept
	{
		weft_broadcast_close(&broadcast_);
	}
	/** The first receive gets the current value; later receives wait for changes. */
	[[nodiscard]] receiver<T> subscribe() noexcept
	{
		return receiver<T>(&broadcast_);
	}
	weft_broadcast_t *native_handle() noexcept
	{
		return &broadcast_;
	}

      private:
	T value_;
	weft_broadcast_t broadcast_ WEFT_WATCH(value_);
};

} // namespace weft

#endif // WEFT_SYNC_HPP
