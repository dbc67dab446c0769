/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * C++: exceptions through frames of every kind, virtual calls and their thunks, templates, static and thread-
 * local objects.
 */
#include "check.h"
#include "cxx.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

static int alive;

struct guard {
	guard()
	{
		alive++;
	}
	~guard()
	{
		alive--;
	}
};

NOINLINE int derived::g(int x)
{
	return f(x) + (int)text.size() + (int)other::pad;
}

NOINLINE static int deep(int n)
{
	guard here;
	volatile char frame[200];

	frame[0] = (char)n;
	if (n == 0)
		throw std::runtime_error("deep");
	return deep(n - 1) + frame[0];
}

NOINLINE static int through(int (*f)(int), int x)
{
	guard here;

	return f(x);
}

NOINLINE static int catches(int (*f)(int), int x)
{
	try {
		return through(f, x);
	} catch (const std::out_of_range &e) {
		return -1;
	} catch (const std::exception &e) {
		return -(int)std::string(e.what()).size();
	}
}

NOINLINE static int rethrows(int x)
{
	try {
		return through(throws_if, x);
	} catch (...) {
		guard here;

		throw;
	}
}

static void exceptions()
{
	CHECK(catches(throws_if, 2) == 2 && catches(throws_if, 9) == -1);
	CHECK(catches(deep, 100) == -4);
	CHECK(catches(rethrows, 1) == 1 && catches(rethrows, 5) == -1);
	CHECK(alive == 0);
	try {
		std::vector<int>(3).at(7);
		CHECK(false);
	} catch (const std::out_of_range &) {
	}
	try {
		std::stoi("no number");
		CHECK(false);
	} catch (const std::invalid_argument &) {
	}
}

static int once_count;

static int once()
{
	return ++once_count;
}

static const std::string &lazy()
{
	static const std::string text = std::to_string(once()) + " time";

	return text;
}

thread_local std::vector<int> per_thread(5, 7);

static void objects()
{
	std::unique_ptr<derived> d(new derived);
	base *b = d.get();
	other *o = d.get();

	CHECK(b->f(3) == 7 && o->g(3) == 7 + 46 + 2);
	CHECK(lazy() == "1 time" && lazy() == "1 time");
	CHECK(per_thread.size() == 5 && per_thread[4] == 7);
	CHECK(second_unit(2) == 4 + 8 - 1);
}

static void library()
{
	std::map<std::string, int> words;
	std::istringstream in("one two three two one two");
	std::ostringstream out;
	std::string word;
	std::vector<double> numbers{3.5, 1.25, 2};
	std::function<int(int)> f = [&](int x) { return x + (int)words.size(); };

	while (in >> word)
		words[word]++;
	for (auto &w : words)
		out << w.first << '=' << w.second << ' ';
	out << 1.5 << ' ' << std::hex << 255;
	CHECK(out.str() == "one=2 three=1 two=3 1.5 ff");
	std::sort(numbers.begin(), numbers.end(), [](double a, double b) { return a < b; });
	CHECK(numbers[0] == 1.25 && numbers[2] == 3.5);
	CHECK(f(4) == 7);
	std::cout << std::flush;
}

int checks(void)
{
	check_failures = 0;
	exceptions();
	objects();
	library();
	return check_failures;
}
