// SPDX-License-Identifier: MIT OR Apache-2.0
// Coroutines of C++20 and of Weft that wait for each other: to the end, by steps, in generators, with exceptions,
// across threads, and for results that are ready at once. C++20.
#include <csignal>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "check.h"
#include "detached.h"

WEFT_EFFECT(int, ask, int, what);

namespace
{

std::deque<std::coroutine_handle<>> queue;

template <typename Result> struct later {
	Result result;

	bool await_ready()
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> who)
	{
		queue.push_back(who);
	}
	Result await_resume()
	{
		return std::forward<Result>(result);
	}
};
template <typename Result> later(Result) -> later<Result>;

struct at_once {
	bool await_ready()
	{
		return true;
	}
	void await_suspend(std::coroutine_handle<>)
	{
	}
	std::string await_resume()
	{
		return "at once";
	}
};

struct failing : later<int> {
	int await_resume()
	{
		throw std::runtime_error("failed");
	}
};

// Awaited by an operator, and moved.
struct wrapped {
	std::unique_ptr<int> value;

	later<std::unique_ptr<int>> operator co_await() &&
	{
		return {std::move(value)};
	}
};

struct another_thread {
	bool await_ready()
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> who)
	{
		std::thread([who] { who.resume(); }).detach();
	}
	void await_resume()
	{
	}
};

void run_all()
{
	while (!queue.empty()) {
		std::coroutine_handle<> next = queue.front();

		queue.pop_front();
		next.resume();
	}
}

detached to_its_end(int &out)
{
	out = co_await weft::coroutine([] {
		int there = 5, sum = 0;

		for (int i = 0; i < 3; i++) {
			sum += weft::await(later{i});
			weft::suspend();
		}
		CHECK(weft::await(at_once()) == "at once");
		int &same = weft::await(later<int &>{there});
		CHECK(&same == &there);
		CHECK(*weft::await(wrapped{std::make_unique<int>(6)}) == 6);
		later kept{8};
		return sum + weft::await(kept);
	});
}

detached ready(std::string &out)
{
	weft::coroutine says([] { return std::string("said"); });

	out = co_await says;
}

detached by_steps(int &steps)
{
	weft::coroutine walker([] {
		for (int i = 0; i < 3; i++) {
			weft::await(later{i});
			weft::suspend();
		}
		return 1;
	});

	while (co_await weft::next(walker))
		steps++;
	steps += walker.result();
}

detached elements(std::vector<int> &out)
{
	weft::generator<int> numbers([](weft::yielder<int> yield) {
		for (int i = 0; i < 2; i++) {
			weft::await(later{0});
			yield(i);
			yield.from(weft::generator<int>([](auto deeper) {
				deeper(weft::await(later{7}));
				deeper(weft::await(at_once()).size() == 7);
			}));
		}
	});

	while (int *i = co_await weft::next(numbers))
		out.push_back(*i);
	CHECK(!co_await weft::next(numbers));
}

detached failures(int &caught)
{
	weft::coroutine fails([] {
		try {
			weft::await(failing());
		} catch (const std::runtime_error &error) {
			weft::await(later{1});
			throw std::string(error.what());
		}
	});

	try {
		co_await fails;
	} catch (const std::string &text) {
		caught = text == "failed";
	}
	weft::generator<int> at_begin([](auto) { throw 2; });
	try {
		co_await weft::next(at_begin);
	} catch (int error) {
		caught += error;
	}
}

// Waits below a handler and a coroutine that know nothing of the wait.
detached through(int &out)
{
	out = co_await weft::coroutine([] {
		weft::coroutine asks([] { return ask(1) + weft::await(later{20}) + ask(2); });
		weft_request_t r;

		weft_handle (r, asks.get(), ask)
			weft_reply(ask, r, weft_args(ask, r)->what * 100 + weft::await(later{3}));
		return asks.result();
	});
}

detached over_threads(std::atomic<int> &out)
{
	weft::coroutine hops([] {
		for (int i = 0; i < 500; i++)
			weft::await(another_thread());
		return 500;
	});
	int result = co_await hops;

	out = result; // this function does nothing after this
}

detached deep(std::atomic<int> &out)
{
	// Ready at once, a hundred thousand times: no stack grows.
	int n = co_await weft::coroutine([] {
		int times = 0;

		for (int i = 0; i < 100000; i++)
			times += weft::await(at_once()).size() == 7;
		return times;
	});

	out = n;
}

} // namespace

int main()
{
	int out = 0, steps = 0, caught = 0, sum = 0;
	std::atomic<int> hopped{0}, many{0};
	std::string text, errors;
	std::vector<int> numbers;

	to_its_end(out);
	CHECK(out == 0);
	run_all();
	CHECK(out == 3 + 8);
	passed("to its end: values, references, move-only, by operator co_await");

	ready(text);
	CHECK(text == "said");
	deep(many);
	CHECK(many == 100000);
	passed("without suspending, and without recursion");

	by_steps(steps);
	run_all();
	CHECK(steps == 4);
	elements(numbers);
	run_all();
	CHECK(numbers == (std::vector<int>{0, 7, 1, 1, 7, 1}));
	passed("by steps, and a generator that waits, and delegates to one that does");

	failures(caught);
	run_all();
	CHECK(caught == 3);
	passed("exceptions, in and out");

	through(sum);
	run_all();
	CHECK(sum == 103 + 20 + 203);
	passed("below handlers that do not know of it, and in a handler");

	over_threads(hopped);
	while (!hopped)
		std::this_thread::yield();
	CHECK(hopped == 500);
	passed("continued by other threads");

	CHECK(apart([] { weft::coroutine([] { weft::await(at_once()); }).resume(); }, errors) == 1000 + SIGABRT);
	CHECK(errors.find("weft::await: no C++20 coroutine awaits this one") != std::string::npos);
	passed("awaiting where nobody is awaited is reported");
	return 0;
}
