/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C++17 in activities: the code that the language adds to functions, while other activities run in its middle. */
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <sched.h>
#include <string>
#include <vector>

#include "../cases.h"
#include <thread>
#include "both.hpp"
#include "made.hpp"

namespace
{
struct shape {
	virtual ~shape() = default;
	virtual int area(int times) const = 0;
};

/* The names that charcoal.h has are free for methods. */
struct polite {
	int yield()
	{
		std::this_thread::yield();
		::yield();
		return 1;
	}
};

struct square : shape {
	explicit square(int side) : side(side)
	{
	}
	int area(int times) const override
	{
		int sum = 0;

		for (int i = 0; i < times; i++) {
			sum += side * side * polite().yield();
			yield_now();
		}
		return sum;
	}
	int side;
};

struct strip : square {
	strip(int side, int length) : square(side), length(length)
	{
	}
	int area(int times) const override
	{
		return square::area(times) / side * length;
	}
	int length;
};

int alive;

/* Its constructor and destructor yield. */
struct counted {
	counted()
	{
		alive++;
		yield_now();
	}
	counted(const counted &) = delete;
	~counted()
	{
		yield_now();
		alive--;
	}
	int value = 7;
};

template <typename T> T sum_of(const std::vector<T> &all)
{
	T sum{};

	for (const T &each : all) {
		sum += each;
		yield_now();
	}
	return sum;
}

int by_virtual(int n)
{
	std::unique_ptr<shape> all[] = {std::make_unique<square>(n), std::make_unique<strip>(n, 2 * n)};
	int sum = 0;

	for (auto &each : all)
		sum += each->area(3);
	return sum;
}

int by_lambda(int n)
{
	int calls = 0;
	auto each = [&, n](int k) {
		calls++;
		yield_now();
		return n * k;
	};
	std::function<int(int)> again = each;
	int (square::*member)(int) const = &square::area;

	return each(1) + again(2) + (square(n).*member)(2) + calls;
}

int by_container(int n)
{
	std::string longer = "longer than what lies in the object itself";
	std::map<std::string, std::vector<int>> all;
	int sum = 0;

	for (int i = 0; i < 5; i++) {
		all["name " + std::to_string(i % 3)].push_back(n + i);
		yield_now();
	}
	for (const auto &[name, values] : all)
		sum += sum_of(values) + (int)name.size();
	return sum + (int)(longer + longer).size();
}

/* Thrown and caught between two yields. */
int by_exception(int n)
{
	int sum = 0;

	for (int i = 0; i < 4; i++) {
		counted each;

		try {
			if (i % 2)
				throw n + i;
			sum += each.value;
		} catch (int thrown) {
			sum += thrown;
		}
		yield_now();
	}
	return sum;
}

int by_handler_below(int n)
{
	try {
		yield_now();
		throw n;
	} catch (int thrown) {
		yield_now();
		return thrown;
	}
}

/* Throws where many calls have parked, and are not all in place. */
int down(int depth, int n)
{
	counted each;

	if (depth)
		return down(depth - 1, n) + each.value;
	for (int i = 0; i < 3; i++)
		yield_now();
	throw n;
}

int down_and_back(int depth, int n)
{
	int result = depth ? down_and_back(depth - 1, n + 1) : by_handler_below(n);

	yield_now();
	return result + depth;
}

/* Other activities throw and catch while this activity's handlers run. */
int by_handler(int n)
{
	try {
		try {
			return down(60, n);
		} catch (int thrown) {
			yield_now();
			if (thrown == n)
				throw;
		}
	} catch (int again) {
		std::exception_ptr kept = std::current_exception();

		for (int i = 0; i < 3; i++)
			yield_now();
		try {
			kept == std::current_exception() ? std::rethrow_exception(kept) : throw 0;
		} catch (int last) {
			return down_and_back(40, last + again) + std::uncaught_exceptions();
		}
	}
	return -1;
}

int by_static(int n)
{
	static const std::vector<int> made = [] {
		std::vector<int> all(10);

		std::iota(all.begin(), all.end(), 1);
		yield_now();
		return all;
	}();

	return n + sum_of(made);
}

/* Made at the first use in each thread; other activities must not see it half made. */
thread_local std::vector<int> of_thread = [] {
	std::vector<int> all(10);

	for (int &each : all) {
		each = 3;
		yield_now();
	}
	return all;
}();

int by_thread_local(int n)
{
	return n + sum_of(of_thread);
}

int by_inline(int n)
{
	return counter{}.add(n).add(2 * n).value + counted_twice(n);
}

/* A whole object, a base, and an object that is deleted by a pointer to its base. */
int by_made(int n)
{
	made first(n);
	made_further second(n + 1);
	std::unique_ptr<made> third = std::make_unique<made_further>(n + 2);

	return first.value + second.value + third->value;
}

/* The yield in no_yield is none, and an invoke, because a destructor and a handler are in scope. */
int by_guard(int n)
{
	counted guard;

	try {
		no_yield
		{
			yield_now();
			n++;
		}
		for (int i = 0; i < n; i++)
			yield_now();
	} catch (int) {
		n = 0;
	}
	return n;
}

int (*const volatile functions[])(int) = {by_virtual, by_lambda,       by_container, by_exception, by_handler,
					  by_static,  by_thread_local, by_inline,    by_guard,	   by_made};
const char *const names[] = {"virtual functions",
			     "lambdas and members",
			     "containers",
			     "exceptions",
			     "handlers that yield",
			     "static variables",
			     "variables of threads",
			     "inline functions",
			     "no_yield in a try block",
			     "constructors of another file"};

void *all_at_once(void *)
{
	enum { EACH = 3 };

	for (int i = 0; i < (int)std::size(names); i++) {
		activity_t all[EACH];
		int is[EACH] = {};

		for (int k = 0; k < EACH; k++)
			activate(&all[k], k)
			{
				is[k] = functions[i](4 + k);
			}
		wait_all(all, EACH);
		int good = 0;
		for (int k = 0; k < EACH; k++)
			good += is[k] == no_yield_expr(functions[i](4 + k));
		expect(good == EACH, names[i]);
	}
	expect(alive == 0, "destructors");
	expect(made::making.most > 1 && made::ending.most > 1,
	       "others run inside constructors and destructors of another file");
	return nullptr;
}
} // namespace

int main()
{
	expect(weft_activity_run(nullptr, all_at_once, nullptr, nullptr) == 0, "a group");
	expect(in_plain_file(3) == 15, "the same functions in a file without twins");
	return cases_failed != 0;
}
