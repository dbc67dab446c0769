// SPDX-License-Identifier: MIT OR Apache-2.0
//
// async.cpp: coroutines of C++20 and of Weft wait for each other. A tiny event loop runs C++20 coroutines; a recursive
// function far below one of them waits for events, although neither it nor its callers are C++20 coroutines.
#include <exception>
#include <weft/weft.hpp>

#include <coroutine>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

// doc: begin loop
// An event loop whose only events are timers, of a clock that jumps.
struct event_loop {
	std::multimap<int, std::coroutine_handle<>> timers;
	int now = 0;

	void run()
	{
		while (!timers.empty()) {
			auto first = timers.extract(timers.begin());

			now = first.key();
			first.mapped().resume();
		}
	}
};

static event_loop loop;

// Any C++20 coroutine can co_await this object.
struct sleep_for {
	int ticks;

	bool await_ready() const
	{
		return ticks == 0;
	}
	void await_suspend(std::coroutine_handle<> who) const
	{
		loop.timers.emplace(loop.now + ticks, who);
	}
	int await_resume() const
	{
		return loop.now;
	}
};
// doc: end

// A C++20 coroutine for which nothing waits.
struct job {
	struct promise_type {
		job get_return_object()
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
			throw; // to the resumer
		}
	};
};

// doc: begin visit
struct directory {
	std::string name;
	std::vector<directory> inside;
};

// Plain recursion. Each visit takes some time.
static int visit(const directory &d, const std::string &who)
{
	int at = weft::await(sleep_for{static_cast<int>(d.name.size())}), count = 1;

	std::cout << at << ": " << who << " visits " << d.name << '\n';
	for (const directory &each : d.inside)
		count += visit(each, who);
	return count;
}

static job count_all(const directory &d, std::string who)
{
	int count = co_await weft::coroutine([&] { return visit(d, who); });

	std::cout << loop.now << ": " << who << " counted " << count << '\n';
}
// doc: end

// doc: begin ticker
static job watch()
{
	weft::generator<int> ticks([](weft::yielder<int> yield) {
		for (int i = 0; i < 3; i++)
			yield(weft::await(sleep_for{5}));
	});

	while (int *at = co_await weft::next(ticks))
		std::cout << *at << ": tick\n";
}
// doc: end

int main()
try {
	directory d{"src", {{"coro", {{"clone", {}}}}, {"os", {}}}};

	count_all(d, "anna");
	count_all(d, "ben");
	watch();
	loop.run();
} catch (const std::exception &e) {
	std::cerr << e.what() << '\n';
	return 1;
}
