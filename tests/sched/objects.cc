// SPDX-License-Identifier: MIT OR Apache-2.0
//
// weft/sync.hpp beside the standard library: a program written for either, by a template parameter, gives equal results
// with both. Then the objects that the standard library does not have.
#include "check.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <poll.h>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/io.h>
#include <weft/sched.hpp>

using namespace std::chrono_literals;

namespace
{

struct threads {
	using mutex = std::timed_mutex;
	using plain_mutex = std::mutex;
	using shared_mutex = std::shared_timed_mutex;
	using condition = std::condition_variable;

	template <typename F> static void each(int count, F f)
	{
		std::vector<std::thread> all;

		for (int i = 0; i < count; i++)
			all.emplace_back([&f, i] { f(i); });
		for (auto &t : all)
			t.join();
	}
	template <typename T> static void sleep_for(T time)
	{
		std::this_thread::sleep_for(time);
	}
};

struct tasks {
	using mutex = weft::mutex;
	using plain_mutex = weft::mutex;
	using shared_mutex = weft::shared_mutex;
	using condition = weft::condition;

	template <typename F> static void each(int count, F f)
	{
		weft::scope scope;

		for (int i = 0; i < count; i++)
			scope.start([&f, i] { f(i); });
		scope.wait();
	}
	template <typename T> static void sleep_for(T time)
	{
		weft::this_task::sleep_for(time);
	}
};

template <typename Of> long counts()
{
	typename Of::mutex mutex;
	std::atomic<long> missed{0};
	long count = 0;

	Of::each(8, [&](int i) {
		for (int turn = 0; turn < 200; turn++) {
			std::unique_lock<typename Of::mutex> lock(mutex, std::defer_lock);
			bool mine = i % 4 == 0	 ? (lock.lock(), true)
				    : i % 4 == 1 ? lock.try_lock_for(1h)
				    : i % 4 == 2 ? lock.try_lock_until(std::chrono::steady_clock::now() + 1h)
						 : lock.try_lock();
			if (mine)
				count++;
			else
				missed += i % 4 == 3 ? 1 : 1000000; // only try_lock may miss a value
		}
	});
	return count + missed;
}

template <typename Of> long times_out()
{
	typename Of::mutex mutex;
	typename Of::shared_mutex shared;
	long result = 0;

	mutex.lock();
	shared.lock();
	Of::each(1, [&](int) {
		result += mutex.try_lock() ? 1 : 0;
		result += mutex.try_lock_for(1ms) ? 2 : 0;
		result += mutex.try_lock_until(std::chrono::system_clock::now() + 1ms) ? 4 : 0;
		result += mutex.try_lock_for(-1s) ? 8 : 0;
		result += shared.try_lock_shared() ? 16 : 0;
		result += shared.try_lock_shared_for(1ms) ? 32 : 0;
		result += shared.try_lock_for(1ms) ? 64 : 0;
	});
	mutex.unlock();
	shared.unlock();
	shared.lock_shared();
	Of::each(1, [&](int) {
		result += shared.try_lock_shared() ? 128 : 0;
		shared.unlock_shared();
		result += shared.try_lock() ? 256 : 0;
		result += shared.try_lock_until(std::chrono::steady_clock::now() + 1ms) ? 512 : 0;
	});
	shared.unlock_shared();
	result += shared.try_lock() ? 1024 : 0;
	shared.unlock();
	return result;
}

template <typename Of> long reads_and_writes()
{
	typename Of::shared_mutex shared;
	long value = 0;
	std::atomic<long> sum{0};

	Of::each(6, [&](int i) {
		for (int turn = 0; turn < 100; turn++) {
			if (i < 2) {
				std::unique_lock<typename Of::shared_mutex> lock(shared);
				value++;
				Of::sleep_for(1us);
				value++;
			} else {
				std::shared_lock<typename Of::shared_mutex> lock(shared);
				sum += value & 1;
			}
		}
	});
	return value + sum;
}

template <typename Of> long hands_on()
{
	typename Of::plain_mutex mutex;
	typename Of::condition filled;
	std::deque<int> items;
	long sum = 0, late = 0;

	Of::each(5, [&](int i) {
		std::unique_lock<typename Of::plain_mutex> lock(mutex, std::defer_lock);
		for (int turn = 1; turn <= 100; turn++) {
			lock.lock();
			if (i == 0) {
				for (int n = 0; n < 4; n++)
					items.push_back(turn);
				filled.notify_all();
			} else {
				if (i % 2)
					filled.wait(lock, [&] { return !items.empty(); });
				else
					late += !filled.wait_for(lock, 1h, [&] { return !items.empty(); });
				sum += items.front();
				items.pop_front();
			}
			lock.unlock();
		}
	});
	std::unique_lock<typename Of::plain_mutex> lock(mutex);
	late += filled.wait_for(lock, 1ms, [] { return false; }) ? 0 : 100;
	late += filled.wait_until(lock, std::chrono::steady_clock::now() + 1ms, [] { return true; }) ? 1000 : 0;
	return sum * 10000 + late;
}

struct compared {
	const char *name;
	long (*by_threads)(), (*by_tasks)();
} both[] = {
    {"counts", counts<threads>, counts<tasks>},
    {"times_out", times_out<threads>, times_out<tasks>},
    {"reads_and_writes", reads_and_writes<threads>, reads_and_writes<tasks>},
    {"hands_on", hands_on<threads>, hands_on<tasks>},
};

void semaphores()
{
	weft::semaphore s(2);
	std::atomic<int> inside{0}, most{0};

	tasks::each(8, [&](int) {
		for (int turn = 0; turn < 20; turn++) {
			s.acquire();
			int now = ++inside;
			for (int before = most; now > before && !most.compare_exchange_weak(before, now);)
				;
			weft::this_task::sleep_for(10us);
			--inside;
			s.release();
		}
	});
	CHECK(most == 2);
	CHECK(!s.try_acquire(3) && s.try_acquire(2) && !s.try_acquire(1));
	s.release(2);
	CHECK(s.try_acquire() && s.try_acquire_for(1h) && !s.try_acquire() && !s.try_acquire_for(1ms));
	CHECK(!s.try_acquire_until(weft::clock::now() + 1ms));
	s.release(3);
	CHECK(s.try_acquire_until(weft::clock::now()) && error_of([&] { s.release(SIZE_MAX); }) == EOVERFLOW);
}

void rates()
{
	weft::rate_limiter often(1us, 2), seldom(1h, 2);

	often.acquire();
	CHECK(often.try_acquire_for(1h) && often.try_acquire_until(weft::clock::now() + 1h));
	CHECK(seldom.try_acquire() && seldom.try_acquire() && !seldom.try_acquire() && !seldom.try_acquire_for(1s));
}

void events_and_groups()
{
	weft::event e;
	weft::wait_group g;

	CHECK(!e.is_set() && !e.wait_for(1ms) && !e.wait_until(weft::clock::now() + 1ms));
	g.add(3);
	CHECK(!g.wait_for(1ms) && !g.wait_until(weft::clock::now()));
	tasks::each(4, [&](int i) {
		if (i < 3) {
			e.wait();
			g.done();
		} else {
			weft::this_task::sleep_until(weft::clock::now() + 1ms);
			e.set();
		}
	});
	g.wait();
	CHECK(g.wait_for(1h) && e.is_set() && e.wait_for(1h));
	CHECK(error_of([&] { g.done(); }) == EINVAL);
	e.reset();
	CHECK(!e.is_set());
}

void barriers()
{
	weft::barrier b(3), none(0);
	std::atomic<int> leaders{0}, late{0}, phase{0};

	CHECK(!b.arrive_and_wait_for(1ms) && error_of([&] { (void)none.arrive_and_wait(); }) == EINVAL);
	tasks::each(3, [&](int i) {
		for (int turn = 0; turn < 30; turn++) {
			std::optional<bool> leads =
			    i ? std::optional<bool>(b.arrive_and_wait()) : b.arrive_and_wait_for(1h);
			late += !leads;
			if (leads.value_or(false)) {
				leaders++;
				phase++;
			}
			b.arrive_and_wait();
			CHECK(phase == turn + 1);
			b.arrive_and_wait();
		}
	});
	CHECK(leaders == 30 && late == 0);
}

void channels()
{
	weft::channel<std::unique_ptr<std::string>> c(1);
	auto first = std::make_unique<std::string>("first"), second = std::make_unique<std::string>("second");

	CHECK(!c.try_receive() && error_of([&] { (void)c.receive_for(1ms); }) == ETIMEDOUT);
	CHECK(c.try_send(std::move(first)) && !first);
	CHECK(!c.try_send(std::move(second)) && second);
	CHECK(error_of([&] { (void)c.send_for(std::move(second), 1ms); }) == ETIMEDOUT && second);
	CHECK(error_of([&] { (void)c.send_until(std::move(second), weft::clock::now()); }) == ETIMEDOUT && second);
	CHECK(**c.receive_until(weft::clock::now() + 1h) == "first");
	CHECK(c.send_for(std::move(second), 1h) && !second);
	c.close();
	CHECK(!c.try_send(std::make_unique<std::string>()) && **c.try_receive() == "second");
	CHECK(!c.try_receive() && !c.receive_for(1h) && !c.receive());
}

// Select over all kinds of objects: in order, fairly, and from a list.
void selects()
{
	weft::channel<int> chan(10);
	weft::semaphore sem(0);
	weft::event event;
	weft::promise<int> promise;
	weft::future<int> future = promise.get_future();
	std::vector<size_t> done;
	int number = 0, first = 0;

	auto once = [&](auto timeout) {
		return weft::select(weft::on_event(event, [&] { number = 1; }),
				    weft::on_acquire(sem, [&] { number = 2; }),
				    weft::on_ready(future, [&] { number = 3; }),
				    weft::on_receive(chan,
						     [&](std::optional<int> item) { number = item.value_or(-1); }),
				    std::move(timeout));
	};
	CHECK(once(weft::otherwise([&] { number = 5; })) == 4 && number == 5);
	CHECK(once(weft::after(1ms, [&] { number = 6; })) == 4 && number == 6);
	tasks::each(2, [&](int i) {
		if (i == 0) {
			CHECK(once(weft::after(1h, [] {})) == 1 && number == 2);
		} else {
			weft::this_task::sleep_for(1ms);
			sem.release();
		}
	});
	promise.set_value(7);
	CHECK(once(weft::otherwise([] {})) == 2 && number == 3 && future.get() == 7);
	event.set();
	for (int i = 0; i < 200; i++) {
		(void)chan.try_send(42); // the channel may have room
		first += weft::select_fair(weft::on_event(event, [] {}),
					   weft::on_receive(chan, [](std::optional<int>) {})) == 0;
	}
	CHECK(first > 50 && first < 150);

	weft::select_list list;
	CHECK(error_of([&] { (void)list.select(); }) == EINVAL);
	sem.release(2);
	list.add(weft::on_acquire(sem, [&] { done.push_back(0); }));
	list.add(weft::after(1ms, [&] { done.push_back(1); }));
	list.add(weft::on_acquire(sem, [&] { done.push_back(2); }));
	list.add(weft::on_event(event, [&] { done.push_back(3); }));
	while (!list.empty()) {
		size_t which = list.size() % 2 ? list.select_fair() : list.select();

		CHECK(which == done.back());
	}
	CHECK(done.size() == 4 && done.back() == 1);
	for (size_t i = 0; i < WEFT_CASES; i++)
		list.add(weft::on_event(event, [] {}));
	try {
		list.add(weft::on_event(event, [] {}));
		CHECK(!"a full list takes one more");
	} catch (const std::length_error &) {
	}
}

void selects_ends_and_readiness()
{
	weft::scope scope;
	weft::event go;
	auto one = scope.spawn([&] {
		go.wait();
		return 7;
	});
	int fds[2], events = 0, ended = 0;

	CHECK(weft_pipe(fds) == 0);
	weft_readiness_t input = weft_readiness(fds[0], POLLIN);
	auto once = [&](auto timeout) {
		return weft::select(weft::on_end(one, [&] { ended++; }),
				    weft::on_readiness(input, [&](int status) { events = status; }),
				    std::move(timeout));
	};
	CHECK(once(weft::after(1ms, [] {})) == 2);
	CHECK(weft_write(fds[1], "x", 1) == 1);
	CHECK(once(weft::after(1h, [] {})) == 1 && events == POLLIN);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	go.set();
	CHECK(weft::select(weft::on_end(one, [&] { ended++; })) == 0 && ended == 1 && one.join() == 7);
	CHECK(error_of([&] { (void)weft::on_end(one, [] {}); }) == EINVAL);
}

void onces()
{
	weft::once once;
	std::atomic<int> calls{0}, thrown{0};

	tasks::each(6, [&](int) {
		try {
			once.call([&] {
				weft::this_task::yield();
				if (++calls < 3)
					throw std::runtime_error("not yet");
			});
			CHECK(calls == 3);
		} catch (const std::runtime_error &) {
			thrown++;
		}
	});
	CHECK(calls == 3 && thrown == 2);
	once.call([&] { calls++; });
	CHECK(calls == 3 && error_of([] {
				    weft::once again;
				    again.call([&] { again.call([] {}); });
			    }) == EDEADLK);
}

void broadcasts()
{
	weft::broadcast<int, 4> b;
	weft::watch<int> w(7);
	weft::semaphore subscribed{0};
	weft::receiver<int> slow = b.subscribe(), changes = w.subscribe();
	std::atomic<int> sum{0};
	int got = 0;

	CHECK(!slow.try_receive() && error_of([&] { (void)slow.receive_for(1ms); }) == ETIMEDOUT);
	tasks::each(4, [&](int i) {
		weft::receiver<int> r = b.subscribe();

		if (i) {
			subscribed.release();
			while (std::optional<int> item = r.receive())
				sum += *item + static_cast<int>(r.missed());
		} else {
			for (int n = 0; n < 3; n++)
				subscribed.acquire();
			for (int n = 0; n < 10; n++)
				CHECK(b.send(1));
			b.close();
		}
	});
	CHECK(sum == 30 && !b.send(1));
	CHECK(slow.receive() == 1 && slow.missed() == 6 && slow.try_receive() && slow.missed() == 0);
	CHECK(w.get() == 7 && changes.receive() == 7 && !changes.try_receive());
	CHECK(w.set(8) && w.set(9) && w.get() == 9);
	CHECK(weft::select(weft::on_receive(slow, [&](std::optional<int> item) { got = item.value_or(-1); })) == 0);
	CHECK(got == 1 && changes.receive() == 9);
	w.close();
	CHECK(weft::select(weft::on_receive(changes, [&](std::optional<int> item) { got = item.value_or(-1); }),
			   weft::after(1h, [] {})) == 0);
	CHECK(got == -1 && !changes.receive() && w.get() == 9);
}

void join_sets()
{
	weft::join_set<std::unique_ptr<int>> set(2);
	std::atomic<int> running{0};
	int sum = 0, failed = 0;

	CHECK(set.empty() && error_of([&] { (void)set.next(); }) == ENOENT);
	for (int i = 0; i < 9; i++)
		set.spawn([&running, i] {
			CHECK(++running <= 2);
			weft::this_task::sleep_for(std::chrono::microseconds(10 * (9 - i)));
			running--;
			if (i % 3 == 0)
				throw std::runtime_error("no result");
			return std::make_unique<int>(i);
		});
	CHECK(set.size() == 9);
	while (!set.empty())
		try {
			sum += *set.next_for(1h);
		} catch (const std::runtime_error &e) {
			failed += std::string(e.what()) == "no result";
		}
	CHECK(sum == 1 + 2 + 4 + 5 + 7 + 8 && failed == 3);
	for (int i = 0; i < 2; i++)
		set.spawn([] {
			weft::this_task::sleep_for(1h);
			return nullptr;
		});
	CHECK(!set.try_spawn([] { return nullptr; }) && error_of([&] { (void)set.try_next(); }) == ETIMEDOUT);
	CHECK(error_of([&] { (void)set.next_until(weft::clock::now() + 1ms); }) == ETIMEDOUT && set.size() == 2);
}

// A wait for any object ends when its scope is cancelled.
void cancelled()
{
	weft::mutex mutex;
	weft::condition never;
	weft::shared_mutex shared;
	weft::semaphore none(0);
	weft::event event;
	weft::wait_group group;
	weft::barrier barrier(2);
	std::atomic<int> begun{0}, ended{0};

	std::unique_lock<weft::mutex> owned(mutex);
	shared.lock();
	group.add();
	const int error = error_of([&] {
		weft::scope scope;
		struct counts {
			std::atomic<int> &count;
			~counts()
			{
				count++;
			}
		};
		auto waits = [&](auto wait) {
			scope.start([&begun, &ended, wait] {
				counts c{ended};
				begun++;
				wait();
			});
		};
		waits([&] { mutex.lock(); });
		waits([&] { (void)mutex.try_lock_for(1h); });
		waits([&] { shared.lock_shared(); });
		waits([&] { shared.lock(); });
		waits([&] { none.acquire(); });
		waits([&] { event.wait(); });
		waits([&] { group.wait(); });
		waits([&] { barrier.arrive_and_wait(); });
		waits([&] {
			weft::mutex own;
			std::unique_lock<weft::mutex> lock(own);
			never.wait(lock);
		});
		while (begun < 9)
			weft::this_task::yield();
		scope.expires_after(1ms);
		scope.wait();
	});
	CHECK(error == ETIMEDOUT && ended == 9);
	shared.unlock();
	CHECK(shared.try_lock());
	shared.unlock();
}

struct own {
	const char *name;
	void (*run)();
} owns[] = {
    {"semaphores", semaphores},
    {"rates", rates},
    {"events_and_groups", events_and_groups},
    {"barriers", barriers},
    {"channels", channels},
    {"selects", selects},
    {"onces", onces},
    {"broadcasts", broadcasts},
    {"join_sets", join_sets},
    {"ends", selects_ends_and_readiness},
    {"cancelled", cancelled},
};

void *compare(void *of)
{
	auto *test = static_cast<compared *>(of);
	// ThreadSanitizer does not know how std::timed_mutex locks, and would report the program for threads.
	long got = test->by_tasks(), expected = WEFT__TSAN ? got : test->by_threads();

	if (expected != got)
		std::printf("%s: %ld by threads, %ld by tasks\n", test->name, expected, got);
	CHECK(expected == got);
	return nullptr;
}

void *run_own(void *of)
{
	static_cast<own *>(of)->run();
	return nullptr;
}

} // namespace

// WORKERS | simulate SEEDS
int main(int argc, char **argv)
{
	bool simulated = argc > 2;
	weft_rt_config_t config{};

	config.task.flags = WEFT_UNWIND | WEFT_SAVE_EXCEPTIONS;
	config.workers = argc == 2 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
	for (int seed = 0; seed < (simulated ? std::atoi(argv[2]) : 1); seed++) {
		for (compared &c : both)
			CHECK((simulated ? weft_simulate(static_cast<uint64_t>(seed), &config, compare, &c, nullptr)
					 : weft_rt_run(&config, compare, &c, nullptr)) == 0);
		for (own &o : owns)
			CHECK((simulated ? weft_simulate(static_cast<uint64_t>(seed), &config, run_own, &o, nullptr)
					 : weft_rt_run(&config, run_own, &o, nullptr)) == 0);
	}
	std::printf("ok\n");
	return 0;
}
