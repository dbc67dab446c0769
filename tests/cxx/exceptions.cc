// SPDX-License-Identifier: MIT OR Apache-2.0
// C++ exceptions and coroutines: inside, across nested calls, while others are suspended, in catch blocks and
// in destructors, over threads; and when one leaves its coroutine.
#include <csignal>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.h"

namespace
{

std::string trace;

struct Noted {
	char name;
	explicit Noted(char c) : name(c)
	{
	}
	~Noted()
	{
		trace += name;
	}
};

__attribute__((noinline)) int fall(int depth, bool pause)
{
	Noted noted(static_cast<char>('a' + depth));

	if (depth == 0) {
		if (pause)
			weft_suspend(nullptr);
		throw std::runtime_error("bottom");
	}
	return fall(depth - 1, pause) + 1;
}

void *falls(void *pause)
{
	try {
		fall(3, pause != nullptr);
	} catch (const std::runtime_error &error) {
		CHECK(std::string(error.what()) == "bottom");
		return const_cast<char *>("caught");
	}
	return nullptr;
}

void inside()
{
	Coroutine k(falls);

	trace.clear();
	CHECK(std::string(static_cast<char *>(k.resume().payload)) == "caught");
	CHECK(trace == "abcd");
	passed("thrown and caught inside, frames unwound in order");
}

void after_suspension()
{
	int pause;
	Coroutine k(falls, &pause), other(falls, &pause);

	trace.clear();
	CHECK(k.resume().effect == &weft_suspended);
	CHECK(other.resume().effect == &weft_suspended);
	try {
		throw 1;
	} catch (int) {
		CHECK(weft_returned(k.resume()));
	}
	CHECK(trace == "abcd");
	CHECK(weft_returned(other.resume()));
	CHECK(trace == "abcdabcd");
	passed("thrown after a suspension, while another one is suspended, from within a catch block of the resumer");
}

// A resumer that catches its own exception, with a coroutine inside whose frames do not belong to it.
void *nests(void *depth)
{
	long left = reinterpret_cast<long>(depth);

	try {
		Noted noted('n');

		if (left > 0) {
			Coroutine inner(nests, reinterpret_cast<void *>(left - 1));
			CHECK(weft_returned(inner.resume()));
		}
		weft_suspend(nullptr);
		throw left;
	} catch (long caught) {
		CHECK(caught == left);
	}
	return nullptr;
}

void *drives(void *)
{
	Coroutine k(nests, nullptr);

	while (!weft_returned(k.resume()))
		;
	return nullptr;
}

void nested()
{
	Coroutine k(drives);

	CHECK(weft_returned(k.resume()));
	passed("in nested coroutines");
}

void *hands_over(void *result)
{
	try {
		fall(2, true);
	} catch (...) {
		*static_cast<std::exception_ptr *>(result) = std::current_exception();
	}
	return nullptr;
}

void as_a_value()
{
	std::exception_ptr error;
	bool caught = false;
	{
		Coroutine k(hands_over, &error);

		while (!weft_returned(k.resume()))
			;
	}
	try {
		std::rethrow_exception(error);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught);
	passed("handed to the resumer as an exception_ptr, and thrown there");
}

// ---- suspended while an exception is being handled ----------------------------------------------------------

struct Pauses {
	int *seen;
	~Pauses()
	{
		*seen = std::uncaught_exceptions();
		weft_suspend(nullptr);
		CHECK(std::uncaught_exceptions() == *seen);
	}
};

void *in_catch(void *number)
{
	long mine = reinterpret_cast<long>(number);

	try {
		throw mine;
	} catch (long &caught) {
		weft_suspend(nullptr);
		CHECK(caught == mine);
		try {
			throw; // the exception that this coroutine handles, although other coroutines threw meanwhile
		} catch (long again) {
			if (again != mine)
				return const_cast<char *>("wrong");
		}
		weft_suspend(nullptr);
		try {
			std::rethrow_exception(std::current_exception());
		} catch (long again) {
			if (again != mine)
				return const_cast<char *>("wrong");
		}
	}
	if (std::current_exception())
		return const_cast<char *>("left over");
	return nullptr;
}

void *in_destructor(void *seen)
{
	try {
		Pauses pauses{static_cast<int *>(seen)};

		throw 1;
	} catch (int) {
	}
	return nullptr;
}

// Runs in any order. Returns false if a coroutine saw another coroutine's exception.
bool interleave(unsigned flags, unsigned order)
{
	enum { N = 6 };
	std::vector<Coroutine *> all;
	bool good = true;
	int left = N;

	for (long i = 0; i < N; i++)
		all.push_back(new Coroutine(in_catch, reinterpret_cast<void *>(i + 100), flags));
	while (left) {
		Coroutine &k = *all[order % N];

		order = order * 1103515245 + 12345;
		if (k.finished())
			continue;
		weft_request_t r = k.resume();
		if (weft_returned(r)) {
			left--;
			good = good && !r.payload;
		}
	}
	for (Coroutine *k : all)
		delete k;
	return good;
}

void in_catch_blocks()
{
	for (unsigned order = 1; order < 200; order++)
		CHECK(interleave(WEFT_SAVE_EXCEPTIONS, order));
	CHECK(!std::current_exception() && std::uncaught_exceptions() == 0);
	passed("suspended in catch blocks and continued in any order, with WEFT_SAVE_EXCEPTIONS");
}

void in_catch_of_the_resumer()
{
	Coroutine k(in_catch, reinterpret_cast<void *>(7L), WEFT_SAVE_EXCEPTIONS);
	bool caught = false;

	try {
		throw 1.5;
	} catch (double) {
		CHECK(!weft_returned(k.resume()));
		try {
			throw;
		} catch (double mine) {
			caught = mine == 1.5;
		}
		CHECK(!weft_returned(k.resume()));
	}
	CHECK(caught && !std::current_exception());
	CHECK(weft_returned(k.resume()));
	passed("coroutine and resumer both in catch blocks");
}

void while_unwinding()
{
	int seen[2] = {-1, -1};
	Coroutine k(in_destructor, &seen[0], WEFT_SAVE_EXCEPTIONS),
	    other(in_destructor, &seen[1], WEFT_SAVE_EXCEPTIONS);

	CHECK(!weft_returned(k.resume()) && seen[0] == 1);
	CHECK(std::uncaught_exceptions() == 0);
	CHECK(!weft_returned(other.resume()) && seen[1] == 1);
	CHECK(weft_returned(k.resume()) && weft_returned(other.resume()));
	CHECK(std::uncaught_exceptions() == 0);
	passed("suspended in destructors during unwinding");
}

void over_threads()
{
	Coroutine k(in_catch, reinterpret_cast<void *>(9L), WEFT_SAVE_EXCEPTIONS);
	weft_request_t last{};

	CHECK(!weft_returned(k.resume()));
	for (int i = 0; i < 2; i++)
		std::thread([&] {
			last = k.resume();
			CHECK(!std::current_exception());
		}).join();
	CHECK(weft_returned(last) && !last.payload);
	passed("suspended in a catch block, continued on other threads");
}

// Without the flag the thread's exception records mix, which the flag prevents. If this passed, the tests above would
// prove nothing.
void without_the_flag()
{
	std::string errors;
	int result = apart(
	    [] {
		    for (unsigned order = 1; order < 200; order++)
			    if (!interleave(0, order))
				    std::_Exit(3);
	    },
	    errors);

	CHECK(result != 0);
	passed("canary: without WEFT_SAVE_EXCEPTIONS they mix");
}

// ---- leaving ------------------------------------------------------------------------------------------------

void *lets_go(void *pause)
{
	Noted noted('i');

	if (pause)
		weft_suspend(nullptr);
	throw std::runtime_error("out");
}

void *passes_on(void *flags)
{
	Noted noted('o');
	Coroutine k(lets_go, &k, static_cast<unsigned>(reinterpret_cast<uintptr_t>(flags)));

	k.resume();
	k.resume();
	return nullptr;
}

void leaves(unsigned flags)
{
	Coroutine k(passes_on, reinterpret_cast<void *>(uintptr_t{flags}), flags);

	for (int again = 0; again < 3; again++) {
		trace.clear();
		try {
			Noted noted('r');
			k.resume();
			CHECK(false);
		} catch (const std::runtime_error &error) {
			trace += error.what();
			CHECK(std::uncaught_exceptions() == 0);
		}
		CHECK(trace == "iorout" && k.finished() && !weft_current());
		CHECK(!std::current_exception());
		weft_reset(k.k, passes_on, reinterpret_cast<void *>(uintptr_t{flags}));
	}
}

// In flight when another exception leaves a coroutine: each is counted in its own coroutine.
struct ResumesWhenDestroyed {
	unsigned flags;
	~ResumesWhenDestroyed()
	{
		Coroutine k(lets_go, nullptr, flags);

		CHECK(std::uncaught_exceptions() == 1);
		try {
			k.resume();
			CHECK(false);
		} catch (const std::runtime_error &error) {
			CHECK(std::string(error.what()) == "out");
		}
		CHECK(std::uncaught_exceptions() == 1);
	}
};

void leaving()
{
	leaves(0);
	leaves(WEFT_SAVE_EXCEPTIONS);
	passed("one that leaves its coroutine goes on in the resumer, and so on");
	for (unsigned flags : {0u, unsigned{WEFT_SAVE_EXCEPTIONS}})
		try {
			ResumesWhenDestroyed noted{flags};
			throw 1;
		} catch (int) {
			CHECK(std::uncaught_exceptions() == 0);
		}
	passed("one leaves while another one is in flight in the resumer");
}

void leaving_uncaught()
{
	std::string errors;
	int result = apart(
	    [] {
		    Coroutine k(lets_go);

		    std::set_terminate([] { std::_Exit(42); });
		    k.resume();
	    },
	    errors);

	CHECK(result == 42);
	CHECK(errors.find("weft: an exception left a coroutine and its resumers, and nobody caught it") == 0);
	CHECK(errors.find('\n') == errors.size() - 1);
	passed("one that nobody catches is reported in a line, then std::terminate is called");
}

void *calls_noexcept(void *)
{
	try {
		[]() noexcept { fall(1, true); }();
	} catch (...) {
	}
	return nullptr;
}

void through_noexcept()
{
	std::string errors;
	int result = apart(
	    [] {
		    Coroutine k(calls_noexcept);

		    std::set_terminate([] { std::_Exit(43); });
		    k.resume();
		    k.resume();
	    },
	    errors);

	CHECK(result == 43);
	passed("noexcept terminates as anywhere");
}

} // namespace

int main()
{
	inside();
	after_suspension();
	nested();
	as_a_value();
	in_catch_blocks();
	in_catch_of_the_resumer();
	while_unwinding();
	over_threads();
	without_the_flag();
	leaving();
	leaving_uncaught();
	through_noexcept();
	return 0;
}
