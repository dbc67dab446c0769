// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/sched.hpp: tasks of C++, their results and exceptions; nothing is lost, and nothing destroyed twice.
#include "check.hpp"

#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/sched.hpp>
#include <weft/weft.hpp> // no name is declared in both headers

#include "counted_new.h"

using namespace std::chrono_literals;

namespace
{

// Counts its living objects. It can be moved, not copied.
struct counted {
	static inline std::atomic<int> living{0};
	int value;

	explicit counted(int v) : value(v)
	{
		++living;
	}
	counted(counted &&other) noexcept : value(std::exchange(other.value, -1))
	{
		++living;
	}
	counted(const counted &) = delete;
	~counted()
	{
		--living;
	}
};

void results()
{
	weft::scope scope;
	auto number = scope.spawn([] { return 42; });
	auto moved = scope.spawn([](std::unique_ptr<int> p) { return p; }, std::make_unique<int>(7));
	auto nothing = scope.spawn([] { weft::this_task::yield(); });
	auto own = scope.spawn([c = counted(5)]() mutable { return std::move(c); });

	CHECK(number.join() == 42);
	CHECK(*moved.join() == 7);
	nothing.join();
	CHECK(own.join().value == 5);
	CHECK(!number.joinable() && error_of([&] { number.join(); }) == EINVAL);
	scope.wait();
}

void exceptions_go_to_the_joiner()
{
	weft::scope scope;
	auto fails = scope.spawn([c = counted(1)]() -> int { throw std::runtime_error("mine"); });
	auto other = scope.spawn([] {
		weft::this_task::sleep_for(1ms);
		return 1;
	});
	bool caught = false;

	try {
		fails.join();
	} catch (const std::runtime_error &e) {
		caught = !std::strcmp(e.what(), "mine");
	}
	CHECK(caught);
	CHECK(other.join() == 1); // the scope continues
	scope.wait();
}

// Suspends in a catch block while other tasks handle exceptions of their own.
void suspended_while_handling()
{
	weft::scope scope;

	for (int i = 0; i < 20; i++)
		scope.start([i] {
			try {
				throw i;
			} catch (int mine) {
				for (int n = 0; n < 10; n++)
					weft::this_task::yield();
				CHECK(mine == i);
				try {
					throw;
				} catch (int again) {
					CHECK(again == i);
				}
			}
		});
	scope.wait();
}

void the_first_exception_cancels()
{
	std::atomic<int> unwound{0};
	weft::semaphore started{0};
	bool caught = false;

	{
		weft::scope scope;
		for (int i = 0; i < 5; i++)
			scope.start([&unwound, &started, c = counted(i)] {
				struct note {
					std::atomic<int> &n;
					~note()
					{
						++n;
					}
				} note{unwound};
				started.release();
				weft::this_task::sleep_for(1h);
			});
		scope.start([&started] {
			for (int i = 0; i < 5; i++)
				started.acquire();
			throw std::string("first");
		});
		try {
			scope.wait();
		} catch (const std::string &s) {
			caught = s == "first";
		}
	}
	CHECK(caught && unwound == 5);
}

void left_early()
{
	std::atomic<int> ended{0};
	weft::semaphore started{0};

	try {
		weft::scope scope;
		scope.start([&ended, &started] {
			struct note {
				std::atomic<int> &n;
				~note()
				{
					weft::shield shield;
					weft::this_task::yield();
					++n;
				}
			} note{ended};
			started.release();
			weft::this_task::sleep_for(1h);
		});
		started.acquire();
		throw 1;
	} catch (int) {
		CHECK(ended == 1);
	}
	{
		weft::scope scope;
		auto dropped = scope.spawn([] { weft::this_task::sleep_for(1h); });
		auto replaced = scope.spawn([] { weft::this_task::sleep_for(1h); });
		replaced = scope.spawn([] {});
		replaced.join();
	}
}

// An exception ends loops that never wait. `late` counts operations, not time: at most 61 turns with one worker.
void busy_loops_end()
{
	uint64_t deadline = WEFT_NEVER;
	weft::channel<int> channel(1);
	weft::mutex mutex;
	std::atomic<bool> begun{false};
	bool unwound = false;
	int late = 0;
	auto locks = [&] {
		for (; late<5000000; late += weft_now()> deadline)
			std::lock_guard<weft::mutex> lock(mutex);
	};

	CHECK(error_of([&] {
		      weft::scope scope;

		      scope.start([&, c = counted(1)] {
			      struct last {
				      bool *unwound;
				      ~last()
				      {
					      *unwound = true;
				      }
			      } last{&unwound};

			      begun = true;
			      for (;;) {
				      channel.send(1);
				      CHECK(channel.receive() == 1);
			      }
		      });
		      while (!begun)
			      weft::this_task::yield();
		      deadline = weft_now() + 1000000;
		      scope.expires_after(1ms);
		      CHECK(error_of(locks) == ECANCELED);
		      scope.wait();
	      }) == ETIMEDOUT);
	CHECK(unwound && late < 5000000 && mutex.try_lock());
	mutex.unlock();
}

void deadlines_and_cancelling()
{
	CHECK(error_of([] {
		      weft::scope scope(2ms);
		      CHECK(error_of([] { weft::this_task::sleep_for(1h); }) == ECANCELED);
		      scope.wait();
	      }) == ETIMEDOUT);
	CHECK(error_of([] {
		      weft::scope scope;
		      auto task = scope.spawn([] { weft::this_task::sleep_for(1h); });
		      task.cancel();
		      task.join();
	      }) == ECANCELED);
	CHECK(error_of([] {
		      weft::scope scope;
		      auto task = scope.spawn([] { weft::this_task::sleep_for(1h); });
		      scope.expires_after(1h);
		      scope.expires_at(weft::clock::now() + 1ms);
		      task.join();
	      }) == ETIMEDOUT);
	CHECK(error_of([] {
		      weft::scope scope(100ms);
		      scope.expires_never();
		      scope.start([] { weft::this_task::sleep_for(110ms); });
		      scope.wait();
		      weft::this_task::check();
	      }) == 0);
	CHECK(error_of([] {
		      weft::scope scope;
		      scope.expires_after(0s);
		      weft::this_task::check();
	      }) == ECANCELED);
	CHECK(error_of([] {
		      weft::scope scope;
		      auto task = scope.spawn([] { weft_task_fail(-EIO); });
		      task.join();
	      }) == EIO);
}

// A guard that commits unless an exception passes through its scope.
struct transaction {
	std::atomic<int> &committed;
	bool waits = false;
	int before = std::uncaught_exceptions();
	~transaction()
	{
		if (waits)
			weft::this_task::sleep_for(1ms);
		committed += std::uncaught_exceptions() <= before;
	}
};

// Each way to cancel or fail a task, while tasks around it commit.
void ends_are_exceptions()
{
	std::atomic<int> undone{0}, done{0};

	for (int way = 0; way < 4; way++) {
		weft::scope around;
		std::atomic<bool> over{false};
		for (int i = 0; i < 3; i++)
			around.start([&] {
				while (!over) {
					transaction t{done};
					weft::this_task::sleep_for(100us);
				}
			});
		(void)error_of([&] {
			weft::scope scope(way == 0 ? std::chrono::microseconds(1ms) : std::chrono::microseconds(1h));
			auto task = scope.spawn([&] {
				transaction outer{undone, true}, inner{undone};
				weft::this_task::sleep_for(1h);
			});
			weft::this_task::sleep_for(way == 0 ? 2ms : 500us);
			if (way == 1)
				task.cancel();
			else if (way == 2)
				scope.start([] { weft_task_fail(-EIO); });
			else if (way == 3)
				scope.cancel();
			scope.wait();
		});
		over = true;
		around.wait();
	}
	CHECK(undone == 0 && done >= 12 && std::uncaught_exceptions() == 0);
}

void channels()
{
	weft::channel<std::unique_ptr<int>> some(2);
	weft::channel<counted> left(WEFT_UNBOUNDED);
	weft::scope scope;
	long sum = 0;

	scope.start([&some] {
		for (int i = 1; i <= 100; i++)
			CHECK(some.send(std::make_unique<int>(i)));
		some.close();
		CHECK(!some.send(std::make_unique<int>(0)));
	});
	while (auto item = some.receive())
		sum += **item;
	CHECK(sum == 5050);
	scope.wait();
	left.send(counted(1));
	left.send(counted(2));
	CHECK(left.receive()->value == 1); // closing the channel ends the other task
}

void selects()
{
	weft::channel<std::unique_ptr<int>> numbers;
	weft::channel<std::string> words(1);
	weft::scope scope;
	int sum = 0, closed = 0, late = 0;

	CHECK(weft::select(weft::on_receive(numbers, [](auto) {}), weft::otherwise([&] { late++; })) == 1);
	CHECK(weft::select(weft::after(1h, [] {}), weft::on_receive(words, [](auto) {}),
			   weft::after(1ms, [&] { late++; })) == 2);
	CHECK(late == 2);
	scope.start([&] {
		for (int i = 1; i <= 10; i++)
			numbers.send(std::make_unique<int>(i));
		numbers.close();
	});
	scope.start([&] {
		for (int i = 0; i < 10; i++)
			words.send("ab");
		words.close();
	});
	while (closed < 2 &&
	       weft::select(weft::on_receive(numbers,
					     [&](std::optional<std::unique_ptr<int>> n) { n ? sum += **n : closed++; }),
			    weft::on_receive(words, [&](std::optional<std::string> w) {
				    w ? sum += static_cast<int>(w->size()) : closed++;
			    })) < 2)
		if (closed == 1)
			break;
	while (auto n = numbers.receive())
		sum += **n;
	while (auto w = words.receive())
		sum += static_cast<int>(w->size());
	CHECK(sum == 75);
	scope.wait();
}

void selects_that_send()
{
	weft::channel<counted> full(1), closed(1);
	bool sent = true;
	int value = 0;

	CHECK(weft::select(weft::on_send(full, counted(1), [&](bool done) { sent = done; })) == 0 && sent);
	CHECK(weft::select(weft::on_send(full, counted(2), [](bool) {}), weft::otherwise([] {})) == 1);
	closed.close();
	CHECK(weft::select(weft::on_send(full, counted(3), [](bool) {}),
			   weft::on_send(closed, counted(4), [&](bool done) { sent = done; })) == 1);
	CHECK(!sent);
	{
		weft::scope scope;

		scope.start([&] { value = full.receive()->value; });
		weft::select(weft::on_send(full, counted(5), [&](bool done) { sent = done; }));
		scope.wait();
	}
	CHECK(sent && value == 1 && full.receive()->value == 5);
	try {
		weft::select(weft::otherwise([] { throw 3; }));
		CHECK(!"reached");
	} catch (int thrown) {
		CHECK(thrown == 3);
	}
	CHECK(error_of([&] {
		      weft::scope scope;
		      auto waits = scope.spawn([&] { weft::select(weft::on_receive(full, [](auto) {})); });

		      weft::this_task::yield();
		      waits.cancel();
		      waits.join();
	      }) == ECANCELED);
}

int code_of_future(void (*f)())
{
	try {
		f();
	} catch (const std::future_error &e) {
		return e.code().value();
	}
	return 0;
}

void futures()
{
	weft::promise<std::unique_ptr<int>> promise;
	auto future = promise.get_future();
	weft::promise<void> nothing;
	auto over = nothing.get_future();
	weft::promise<int> fails;
	auto failed = fails.get_future();
	weft::scope scope;
	bool caught = false;

	CHECK(future.valid() && !future.ready() && !future.wait_for(1ms));
	scope.start([&promise] {
		weft::this_task::sleep_for(1ms);
		promise.set_value(new int(3));
	});
	scope.start([p = std::move(nothing)]() mutable { p.set_value(); });
	scope.start([p = std::move(fails)]() mutable {
		try {
			throw std::string("failed");
		} catch (...) {
			p.set_exception(std::current_exception());
		}
	});
	CHECK(*future.get() == 3 && !future.valid());
	CHECK(error_of([&] { future.get(); }) == EINVAL);
	over.get();
	// Wait first, because ThreadSanitizer does not see which thread releases the exception last:
	// libstdc++ counts references.
	scope.wait();
	try {
		failed.get();
	} catch (const std::string &s) {
		caught = s == "failed";
	}
	CHECK(caught);
}

void broken_promises()
{
	CHECK(code_of_future([] {
		      weft::future<int> broken;
		      {
			      weft::promise<int> promise;
			      broken = promise.get_future();
		      }
		      (void)broken.wait_for(1s);
		      CHECK(broken.ready());
		      broken.get();
	      }) == static_cast<int>(std::future_errc::broken_promise));
	CHECK(code_of_future([] {
		      weft::promise<counted> twice;
		      twice.set_value(1);
		      twice.set_value(2);
	      }) == static_cast<int>(std::future_errc::promise_already_satisfied));
	CHECK(code_of_future([] {
		      weft::promise<int> promise;
		      auto one = promise.get_future();
		      auto two = promise.get_future();
	      }) == static_cast<int>(std::future_errc::future_already_retrieved));
	CHECK(code_of_future([] {
		      weft::promise<int> promise, other = std::move(promise);
		      promise.set_value(1);
	      }) == static_cast<int>(std::future_errc::no_state));
	CHECK(error_of([] { // a cancelled wait does not change the future
		      weft::promise<int> promise;
		      auto future = promise.get_future();
		      weft::scope scope;
		      auto waits = scope.spawn([&] { future.get(); });

		      weft::this_task::yield();
		      waits.cancel();
		      try {
			      waits.join();
		      } catch (...) {
			      promise.set_value(7);
			      CHECK(future.get() == 7);
			      throw;
		      }
	      }) == ECANCELED);
}

// A thread can fulfil a promise that a task waits for, and the reverse. A thread may fail for lack of memory, which
// breaks its promises.
void broken_without_memory()
{
	CHECK(code_of_future([] {
		      weft::future<int> broken;
		      {
			      weft::promise<int> promise;
			      broken = promise.get_future();
			      refuses_new = true;
		      }
		      refuses_new = false;
		      broken.get();
	      }) == static_cast<int>(std::future_errc::broken_promise));
}

// Each of these times is later than the end of any program.
template <typename Duration> void lasts(Duration time)
{
	weft::scope scope(time);
	weft::promise<int> promise;
	auto future = promise.get_future();
	auto sleeps = scope.spawn([time] { weft::this_task::sleep_for(time); });
	auto waits = scope.spawn([&future, time] { return future.wait_for(time); });
	bool early = false;

	CHECK(weft::select(weft::after(time, [&early] { early = true; }), weft::after(2ms, [] {})) == 1 && !early);
	CHECK(!weft::this_task::is_cancelled());
	promise.set_value(1);
	CHECK(waits.join());
	sleeps.cancel();
	CHECK(error_of([&] { sleeps.join(); }) == ECANCELED);
	scope.wait();
}

template <typename Duration> void is_over(Duration time)
{
	weft::promise<int> promise;

	weft::this_task::sleep_for(time);
	CHECK(!promise.get_future().wait_for(time));

	weft::scope scope(time);
	int error = error_of([&scope] { scope.start([] { weft::this_task::sleep_for(1h); }); });

	CHECK(error == 0 || error == ETIMEDOUT); // the time may have passed by then
	CHECK(error_of([&scope] { scope.wait(); }) == ETIMEDOUT);
}

void long_and_short_times()
{
	using std::chrono::duration;

	lasts(std::chrono::hours::max());
	lasts(std::chrono::minutes::max());
	lasts(std::chrono::seconds::max());
	lasts(std::chrono::milliseconds::max());
	lasts(std::chrono::nanoseconds::max());
	lasts(duration<unsigned long long>::max());
	lasts(duration<float>::max());
	lasts(duration<double>(1e300));
	lasts(duration<double>(std::numeric_limits<double>::infinity()));
	lasts(duration<long long, std::giga>(300)); // if they were cut to 64 bits, these nanoseconds would pass soon
	is_over(std::chrono::hours::min());
	is_over(duration<double>(-1e300));
	is_over(duration<double>(std::numeric_limits<double>::quiet_NaN()));

	auto before = weft_now();
	weft::this_task::sleep_for(duration<long long, std::pico>(1));
	weft::this_task::sleep_for(duration<double>(1e-10));
	CHECK(weft_now() - before >= 2); // the sleep is never shorter
}

void futures_of_threads()
{
	weft::promise<int> up, down;
	auto asked = up.get_future();
	auto answered = down.get_future();
	std::thread thread([&] { down.set_value(asked.get() + 1); });

	up.set_value(4);
	CHECK(answered.get() == 5);
	thread.join();
}

struct mark {
	static inline std::atomic<int> ended{0};
	int value = 0;

	~mark()
	{
		weft::shield shield;
		weft::this_task::yield(); // this call may suspend the task
		ended += value;
	}
};

weft::local<mark> marks;
weft::local<std::string> names;

void locals()
{
	mark::ended = 0;
	marks->value = 1;
	{
		weft::scope scope;
		for (int i = 0; i < 10; i++)
			scope.start([i] {
				CHECK(marks->value == 0 && names->empty());
				marks->value = 10;
				*names += static_cast<char>('a' + i);
				for (int n = 0; n < 5; n++)
					weft::this_task::yield();
				CHECK(*names == std::string(1, static_cast<char>('a' + i)) && marks->value == 10);
			});
		auto cancelled = scope.spawn([] {
			marks->value = 1000;
			weft::this_task::sleep_for(1h);
		});
		auto fails = scope.spawn([] {
			marks->value = 10000;
			throw 1;
		});

		weft::this_task::yield();
		cancelled.cancel();
		CHECK(error_of([&] { cancelled.join(); }) == ECANCELED);
		try {
			fails.join();
		} catch (int) {
		}
		scope.wait();
	}
	CHECK(marks->value == 1);
	// The cancelled task may not have run at all.
	CHECK(mark::ended == 11100 || mark::ended == 10100);
}

void *has_no_locals(void *)
{
	CHECK(error_of([] { names.get(); }) == EPERM);
	return nullptr;
}

void locals_elsewhere()
{
	std::thread([] {
		CHECK(names->empty());
		*names = "thread";
	}).join();
	CHECK(weft_spawn_detached(has_no_locals, nullptr, nullptr) == 0);
}

weft::inherited<const std::string> user;
weft::inherited<int> limit;

int use_limit()
{
	CHECK(*user == "alice" && user->size() == 5);
	weft::this_task::yield();
	return (*limit)++;
}

void inherited_values()
{
	const std::string alice = "alice";
	int ten = 10;

	CHECK(!user && !limit.get());
	{
		weft::bind as(user, alice);
		weft::bind at_most(limit, ten);
		weft::scope scope;
		int twenty = 20;
		weft::bind later(limit, twenty); // not inherited by the tasks of the scope

		CHECK(scope.spawn(use_limit).join() == 10);
		CHECK(*limit == 20 && ten == 11);
		try {
			int thirty = 30;
			weft::bind inner(limit, thirty);

			CHECK(use_limit() == 30);
			throw std::runtime_error("leaves the block");
		} catch (const std::runtime_error &) {
			CHECK(limit.get() == &twenty);
		}
		auto cancelled = scope.spawn([] {
			weft::bind nobody(limit, *new int(0));
			struct last {
				~last()
				{
					CHECK(*limit == 0);
					delete limit.get();
				}
			} in_block;
			weft::this_task::sleep_for(1h);
		});
		weft::this_task::yield();
		cancelled.cancel();
		CHECK(error_of([&] { cancelled.join(); }) == ECANCELED);
		scope.wait();
	}
	CHECK(!user && !limit);
}

// The task that runs each test is a C task. This function is the first C++ frame.
template <void test()> void in_scope()
{
	weft::scope scope;
	auto task = scope.spawn([] { test(); });

	task.join();
}

void mutexes()
{
	weft::mutex mutex, other;
	weft::scope scope;
	int inside = 0, rounds = 0;

	for (int i = 0; i < 8; i++)
		scope.start([&] {
			for (int n = 0; n < 50; n++) {
				std::scoped_lock both(mutex, other);
				CHECK(!inside++);
				weft::this_task::yield();
				inside--;
				rounds++;
			}
		});
	scope.wait();
	CHECK(rounds == 400);
	std::lock_guard once(mutex);
	CHECK(error_of([&] { mutex.lock(); }) == EDEADLK);
}

void blocking()
{
	CHECK(weft::this_task::blocking([] { return 3; }) == 3);
	bool caught = false;

	try {
		weft::this_task::blocking([]() -> int { throw std::string("blocked"); });
	} catch (const std::string &s) {
		caught = s == "blocked";
	}
	CHECK(caught);
}

#if defined(__cpp_impl_coroutine)
// A C++20 coroutine that starts eagerly and is awaited.
template <typename T> struct eager {
	struct promise_type {
		std::optional<T> value;
		std::exception_ptr thrown;

		eager get_return_object()
		{
			return eager{std::coroutine_handle<promise_type>::from_promise(*this)};
		}
		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		void return_value(T v)
		{
			value = std::move(v);
		}
		void unhandled_exception()
		{
			thrown = std::current_exception();
		}
	};
	std::coroutine_handle<promise_type> h;

	explicit eager(std::coroutine_handle<promise_type> handle) : h(handle)
	{
	}
	eager(eager &&) = delete;
	~eager()
	{
		h.destroy();
	}
	T get()
	{
		if (h.promise().thrown)
			std::rethrow_exception(h.promise().thrown);
		return *h.promise().value;
	}
};

eager<int> joins(weft::task<int> one, weft::task<int> two)
{
	int sum = co_await std::move(one);

	co_return sum + co_await std::move(two);
}

// An awaitable that another thread completes.
struct elsewhere {
	int value;
	std::thread thread;

	bool await_ready() const noexcept
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> h)
	{
		thread = std::thread([h] {
			std::this_thread::sleep_for(1ms);
			h.resume();
		});
	}
	int await_resume()
	{
		if (value < 0)
			throw std::runtime_error("negative");
		return value;
	}
};

// An awaitable that waits in the task itself before it suspends.
struct waits_first {
	weft::semaphore &started, &may_go_on;

	bool await_ready() const
	{
		started.release();
		may_go_on.acquire();
		return true;
	}
	void await_suspend(std::coroutine_handle<>) const noexcept
	{
	}
	std::unique_ptr<int> await_resume() const
	{
		return std::make_unique<int>(4);
	}
};

// A task is cancelled while it awaits: its next wait reports the cancellation, and the awaited coroutine completes.
void cancelled_while_awaiting()
{
	std::atomic<int> got{0};

	CHECK(error_of([&got] {
		      weft::scope scope;
		      weft::semaphore started{0}, may_go_on{0};
		      auto task = scope.spawn([&] {
			      got = *weft::this_task::await(waits_first{started, may_go_on});
			      weft::this_task::yield();
			      got = -1;
		      });
		      started.acquire();
		      task.cancel();
		      may_go_on.release();
		      task.join();
	      }) == ECANCELED);
	CHECK(got == 4);
}

int awaits(int value)
{
	elsewhere e{value, {}};
	struct joins {
		std::thread &t;
		~joins()
		{
			t.join();
		}
	} at_end{e.thread};

	return weft::this_task::await(e);
}

void both_kinds_of_coroutines()
{
	weft::scope scope;
	auto sum = joins(scope.spawn([] { return 1; }), scope.spawn([] {
		weft::this_task::sleep_for(1ms);
		return 2;
	}));
	bool caught = false;

	CHECK(sum.get() == 3);
	CHECK(awaits(5) == 5);
	try {
		awaits(-1);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught);
}
#endif

void by_run()
{
	bool caught = false;

	int calls = 0;
	auto counts = [&calls, p = std::make_unique<int>(5)]() mutable { return calls++ + (*p)++; };

	CHECK(*weft::run([] { return std::make_unique<int>(3); }) == 3);
	CHECK(weft::run(counts) == 5 && weft::run(counts) == 7); // called in place, not copied
	try {
		weft::run([] { throw std::runtime_error("out"); });
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught);
	CHECK(error_of([] { weft::run([] { weft_task_fail(-EIO); }); }) == EIO);
}

struct test {
	const char *name;
	void (*run)();
	bool simulated; // whether the test can be simulated
} tests[] = {
    {"results", results, true},
    {"exceptions_go_to_the_joiner", exceptions_go_to_the_joiner, true},
    {"suspended_while_handling", suspended_while_handling, true},
    {"the_first_exception_cancels", the_first_exception_cancels, true},
    {"left_early", left_early, true},
    {"deadlines_and_cancelling", deadlines_and_cancelling, true},
    {"ends_are_exceptions", ends_are_exceptions, true},
    {"channels", channels, true},
    {"selects", selects, true},
    {"selects_that_send", selects_that_send, true},
    {"futures", futures, true},
    {"broken_promises", broken_promises, true},
    {"broken_without_memory", broken_without_memory, true},
    {"long_and_short_times", long_and_short_times, true},
    {"futures_of_threads", futures_of_threads, false},
    {"locals", in_scope<locals>, true},
    {"inherited_values", in_scope<inherited_values>, true},
    {"locals_elsewhere", locals_elsewhere, false},
    {"mutexes", mutexes, true},
    {"blocking", blocking, true},
#if defined(__cpp_impl_coroutine)
    {"both_kinds_of_coroutines", both_kinds_of_coroutines, false},
    {"cancelled_while_awaiting", cancelled_while_awaiting, true},
#endif
    {"busy_loops_end", busy_loops_end, false},
    {"by_run", by_run, false},
};

void *run_in_task(void *self)
{
	static_cast<test *>(self)->run();
	return self;
}

} // namespace

// WORKERS | simulate SEEDS
int main(int argc, char **argv)
{
	bool simulated = argc > 2;
	weft_rt_config_t config{};

	config.task.flags = WEFT_UNWIND | WEFT_SAVE_EXCEPTIONS;
	config.workers = argc == 2 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
	for (test &t : tests) {
		if (simulated && !t.simulated)
			continue;
		for (int seed = 0; seed < (simulated ? std::atoi(argv[2]) : 1); seed++) {
			int error = simulated
					? weft_simulate(static_cast<uint64_t>(seed), &config, run_in_task, &t, nullptr)
					: weft_rt_run(&config, run_in_task, &t, nullptr);

			CHECK(error == 0);
			CHECK(counted::living == 0);
		}
		std::printf("ok - %s\n", t.name);
	}
	return 0;
}
