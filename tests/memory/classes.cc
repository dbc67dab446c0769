/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The classes of weft.hpp in memory of the caller's: bodies that are stored there, too, destructors, exceptions,
 * errors. */
#include <array>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include <weft/weft.hpp>

#include "require.h"

static std::array<char, WEFT_MEMORY_BYTES(24000)> memory;
static int destroyed;

struct noted {
	~noted()
	{
		destroyed++;
	}
};

static weft_attr_t attributes()
{
	weft_attr_t attr{};

	attr.memory = memory.data();
	attr.memory_size = memory.size();
	return attr;
}

static bool is_there(const void *at)
{
	return at >= memory.data() && at < memory.data() + memory.size();
}

static void coroutines()
{
	auto body = [text = std::make_unique<std::string>("memory")] {
		weft::suspend();
		return *text;
	};
	weft::coroutine<std::string> k(std::move(body), attributes());
	weft::coroutine<std::string> other;

	REQUIRE(k.resume());
	other = std::move(k);
	REQUIRE(!other.resume());
	REQUIRE(other.result() == "memory" && is_there(&other.result()));
}

static void left()
{
	for (int i = 0; i < 3; i++) {
		weft::coroutine<int> k(
		    [] {
			    noted one;

			    weft::suspend();
			    return 1;
		    },
		    attributes());

		REQUIRE(k.resume());
		destroyed = 0;
	} // suspended: unwound
	REQUIRE(destroyed == 1);
	weft::coroutine<int> thrower(
	    []() -> int {
		    noted one;

		    throw std::runtime_error("out");
	    },
	    attributes());
	bool caught = false;

	try {
		(void)thrower.resume();
	} catch (const std::runtime_error &e) {
		caught = e.what() == std::string("out");
	}
	REQUIRE(caught && destroyed == 2);
}

static void generators()
{
	long sum = 0;

	for (int round = 0; round < 2; round++) {
		weft::generator<int> numbers(
		    [](auto yield) {
			    for (int i = 1; i <= 100; i++)
				    yield(i);
		    },
		    attributes());

		for (int i : numbers)
			sum += i;
	}
	REQUIRE(sum == 2 * 5050);
}

static void refused()
{
	weft_attr_t attr = attributes();
	int error = 0;

	attr.memory_size = 100;
	try {
		weft::coroutine<int> k([] { return 1; }, attr);
	} catch (const std::system_error &e) {
		error = e.code().value();
	}
	REQUIRE(error == ENOSPC);
	weft::coroutine<int> in_use([] { return 1; }, attributes());

	try {
		weft::coroutine<int> k([] { return 1; }, attributes());
	} catch (const std::system_error &e) {
		error = e.code().value();
	}
	REQUIRE(error == EBUSY);
}

int main()
{
	coroutines();
	left();
	generators();
	refused();
	std::printf("ok - classes\n");
	return 0;
}
