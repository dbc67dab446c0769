// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/sched.hpp: tasks of C++, their results and exceptions; nothing is lost, and nothing destroyed twice.
#include "check.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/sched.hpp>
#include <weft/weft.hpp> // no name stands in both

using namespace std::chrono_literals;

namespace
{

// Counts those that live. Moved, not copied.
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
	CHECK(other.join() == 1); // the scope goes on
	scope.wait();
}

// In a catch block too, while others handle exceptions of theirs.
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
	bool caught = false;

	{
		weft::scope scope;
		for (int i = 0; i < 5; i++)
			scope.start([&unwound, c = counted(i)] {
				struct note {
					std::atomic<int> &n;
					~note()
					{
						++n;
					}
				} note{unwound};
				weft::this_task::sleep_for(1h);
			});
		scope.start([] {
			weft::this_task::sleep_for(1ms);
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

	try {
		weft::scope scope;
		scope.start([&ended] {
			struct note {
				std::atomic<int> &n;
				~note()
				{
					weft::shield shield;
					weft::this_task::yield();
					++n;
				}
			} note{ended};
			weft::this_task::sleep_for(1h);
		});
		weft::this_task::sleep_for(1ms);
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

void deadlines_and_cancelling()
{
	CHECK(error_of([] {
		      weft::scope scope(2ms);
		      scope.start([] { weft::this_task::sleep_for(1h); });
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
		      auto task = scope.spawn([] { weft_task_fail(-EIO); });
		      task.join();
	      }) == EIO);
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
	CHECK(left.receive()->value == 1); // the other ends with the channel
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
// A C++20 coroutine that runs at once and is waited for.
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

// Completed by another thread.
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

// Waits in the task itself before it is awaited.
struct sleeps_first {
	bool await_ready() const
	{
		weft::this_task::sleep_for(5ms);
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

// Cancelled while it awaits: told at the next wait, and what was awaited is whole.
void cancelled_while_awaiting()
{
	std::atomic<int> got{0};

	CHECK(error_of([&got] {
		      weft::scope scope;
		      auto task = scope.spawn([&got] {
			      got = *weft::this_task::await(sleeps_first{});
			      weft::this_task::yield();
			      got = -1;
		      });
		      weft::this_task::sleep_for(1ms);
		      task.cancel();
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
	bool simulated; // can be
} tests[] = {
    {"results", results, true},
    {"exceptions_go_to_the_joiner", exceptions_go_to_the_joiner, true},
    {"suspended_while_handling", suspended_while_handling, true},
    {"the_first_exception_cancels", the_first_exception_cancels, true},
    {"left_early", left_early, true},
    {"deadlines_and_cancelling", deadlines_and_cancelling, true},
    {"channels", channels, true},
    {"mutexes", mutexes, true},
    {"blocking", blocking, true},
#if defined(__cpp_impl_coroutine)
    {"both_kinds_of_coroutines", both_kinds_of_coroutines, false},
    {"cancelled_while_awaiting", cancelled_while_awaiting, true},
#endif
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
