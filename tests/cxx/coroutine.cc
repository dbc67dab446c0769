// SPDX-License-Identifier: MIT OR Apache-2.0
// weft::coroutine: bodies, results, ends, exceptions in both directions, misuse.
#include <array>
#include <csignal>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <weft/weft.hpp>

#include "check.h"
#include "counted.h"
#include "counted_new.h"

typedef std::unique_ptr<int> box;

WEFT_EFFECT(box, exchange, box, mine);
WEFT_EXCEPTION(give_up, int, code);
WEFT_EFFECT(std::size_t, append, std::string &, to, const std::string &, what);

namespace
{

int plain()
{
	return 3;
}

// Policies that put bodies on the heap: stacks without memory before they run, and stacks of blocks.
bool always_allocates()
{
	return weft_default_policy() == WEFT_COPY || weft_default_policy() == WEFT_HEAP;
}

void results()
{
	int there = 5;
	weft::coroutine value([] { return std::string("some text that does not fit into the object"); });
	weft::coroutine reference([&there]() -> int & { return there; });
	weft::coroutine nothing([&there] { there++; });
	weft::coroutine function(plain);
	weft::coroutine<long> converted(plain);
	weft::coroutine move_only([] { return box(new int(7)); });

	static_assert(std::is_same_v<decltype(value)::result_type, std::string>);
	static_assert(std::is_same_v<decltype(reference)::result_type, int &>);
	static_assert(std::is_same_v<decltype(nothing)::result_type, void>);
	CHECK(!value.done() && !value.resume() && value.done());
	CHECK(value.result().size() == 43 && std::move(value).result().size() == 43);
	CHECK(!reference.resume() && &reference.result() == &there);
	CHECK(!nothing.resume() && there == 6);
	nothing.result();
	CHECK(!function.resume() && function.result() == 3);
	CHECK(!converted.resume() && converted.result() == 3);
	CHECK(!move_only.resume());
	box out = std::move(move_only).result();
	CHECK(*out == 7);
	passed("results: objects, references, none, converted, move-only");
}

void bodies()
{
	struct alignas(64) Aligned {
		int value = 9;
	} aligned;
	std::array<int, 4000> large{};
	box small(new int(4));
	int before = allocations;

	large[3999] = 8;
	weft::coroutine owns([small = std::move(small)] { return *small; });
	CHECK(allocations == before + always_allocates() || WEFT__SANITIZED);
	weft::coroutine is_large([large] { return large[3999]; });
	CHECK(allocations == before + 1 + always_allocates() || WEFT__SANITIZED);
	weft::coroutine is_aligned([aligned] { return reinterpret_cast<std::uintptr_t>(&aligned) % 64 + 9; });
	owns.resume();
	is_large.resume();
	is_aligned.resume();
	CHECK(owns.result() == 4 && is_large.result() == 8 && is_aligned.result() == 9);
	passed("bodies: move-only and small ones without an allocation, large and aligned ones");
}

void lives()
{
	auto body = [counted = Counted()](int times) {
		return [counted, times] {
			for (int i = 0; i < times; i++)
				weft::suspend();
			if (times < 0)
				throw times;
		};
	};
	{
		weft::coroutine never(body(1)), ended(body(0)), thrown(body(-1)), assigned(body(0));

		CHECK(!ended.resume());
		try {
			thrown.resume();
			CHECK(false);
		} catch (int) {
			CHECK(thrown.done());
		}
		assigned = weft::coroutine(body(0));
		CHECK(alive == 5);
		assigned = decltype(assigned)();
		CHECK(!assigned && alive == 4);
	}
	CHECK(alive == 1);
	passed("captures are destroyed once: never started, ended, thrown out of, assigned over");
}

void moves()
{
	std::vector<weft::coroutine<int>> all;

	for (int i = 0; i < 100; i++) {
		all.emplace_back([i] {
			weft::suspend();
			return i;
		});
		CHECK(all.back().resume());
	}
	for (int i = 99; i >= 0; i--) {
		weft::coroutine<int> one = std::move(all[static_cast<size_t>(i)]);

		CHECK(!one.resume() && one.result() == i && !all[static_cast<size_t>(i)]);
	}
	passed("suspended ones may be moved");
}

struct Noted {
	std::string &trace;
	char name;
	~Noted()
	{
		trace += name;
	}
};

__attribute__((noinline)) void dive(int depth, std::string &trace)
{
	Noted noted{trace, static_cast<char>('0' + depth)};
	Counted counted;

	if (depth)
		dive(depth - 1, trace);
	else
		weft::suspend();
}

void ended_early()
{
	std::string trace;
	{
		weft::coroutine body([&trace, last = Noted{trace, 'b'}] { dive(3, trace); });

		trace.clear(); // events of the body's copies
		CHECK(body.resume() && alive == 4);
	}
	CHECK(trace == "0123b" && alive == 0);

	// With an inner coroutine that it owns, suspended from there.
	trace.clear();
	{
		weft_coro_t *outermost = nullptr;
		weft::coroutine outer([&] {
			Noted noted{trace, 'o'};
			weft::coroutine waits([&trace] { dive(1, trace); });
			weft::coroutine inner([&] {
				Noted deeper{trace, 'i'};

				weft_yield(outermost, &weft_suspended, nullptr);
			});

			waits.resume();
			inner.resume();
		});

		outermost = outer.get();
		CHECK(outer.resume() && trace.empty());
	}
	CHECK(trace == "i01o" && alive == 0);

	// While an exception is handled, whose own copies are also destroyed.
	trace.clear();
	{
		weft_attr_t attr{};

		attr.flags = WEFT_SAVE_EXCEPTIONS;
		weft::coroutine body(
		    [&trace] {
			    try {
				    Noted noted{trace, 't'};

				    throw Counted();
			    } catch (const Counted &) {
				    Noted noted{trace, 'c'};

				    weft::suspend();
			    }
		    },
		    attr);

		CHECK(body.resume() && alive == 1 && trace == "t");
		CHECK(!std::current_exception());
	}
	CHECK(trace == "tc" && alive == 0 && !std::current_exception());
	passed("destroyed while suspended: destructors run, innermost first, of those inside too, of exceptions too");
}

void thrown_out()
{
	std::string trace;
	weft::coroutine outer([&trace] {
		Noted noted{trace, 'o'};
		weft::coroutine inner([&trace] {
			Noted deeper{trace, 'i'};

			weft::suspend();
			throw std::runtime_error("out");
		});

		while (inner.resume())
			weft::suspend();
	});

	CHECK(outer.resume());
	try {
		outer.resume();
		CHECK(false);
	} catch (const std::runtime_error &error) {
		trace += error.what();
	}
	CHECK(trace == "ioout" && outer.done());
	passed("an exception leaves the body, and who resumed it");
}

void thrown_in()
{
	weft::coroutine catches([] {
		try {
			weft::suspend();
		} catch (const std::runtime_error &error) {
			weft::suspend();
			return std::string(error.what());
		}
		return std::string();
	});
	weft::coroutine passes([] { weft::suspend(); });
	weft::coroutine unstarted([] {});

	CHECK(catches.resume() && catches.resume_throwing(std::make_exception_ptr(std::runtime_error("in"))));
	CHECK(!catches.resume() && catches.result() == "in");
	CHECK(passes.resume());
	for (auto *c : {&passes, reinterpret_cast<decltype(&passes)>(&unstarted)})
		try {
			c->resume_throwing(std::make_exception_ptr(5));
			CHECK(false);
		} catch (int error) {
			CHECK(error == 5 && c->done());
		}
	passed("an exception goes into a body: it is caught there, or comes out again, or there is no body yet");
}

// An exception as it is, and an exception effect: what the resume_throwing of a resumption takes, too.
void thrown_in_as_is()
{
	auto body = [] {
		try {
			weft::suspend();
		} catch (const std::runtime_error &error) {
			return std::string(error.what());
		}
		return std::string();
	};
	const std::runtime_error error("as is");
	weft::coroutine catches(body), copies(body), gives_up(body);
	weft::coroutine unstarted([] {}), gives_up_at_once([] {});

	CHECK(catches.resume() && !catches.resume_throwing(std::runtime_error("moved")) && catches.result() == "moved");
	CHECK(copies.resume());
	CHECK(weft_returned(copies.resume_throwing(error, WEFT_HANDLE_NONE)) && copies.result() == "as is");
	try {
		unstarted.resume_throwing(5);
		CHECK(false);
	} catch (int thrown) {
		CHECK(thrown == 5 && unstarted.done());
	}
	for (int started = 0; started < 2; started++) {
		int left = weft::handle(
		    [&, started] {
			    if (started && gives_up.resume())
				    gives_up.resume_throwing(give_up, 3);
			    gives_up_at_once.resume_throwing(give_up, 3);
			    return 0;
		    },
		    weft_on_exception(give_up).abort([](int code) { return code; }));

		CHECK(left == 3);
	}
	passed("resume_throwing takes any exception, and exception effects");
}

// Returns the exception that a body suspended in `waits` catches there.
template <typename Waits> int caught_in(Waits waits)
{
	weft::coroutine body([&waits] {
		Counted counted;

		try {
			waits();
		} catch (int thrown) {
			return thrown;
		}
		return 0;
	});

	body.resume(weft_handles(exchange, append));
	CHECK(!body.done() && !body.resume_throwing(std::make_exception_ptr(7)));
	CHECK(alive == 0);
	return body.result();
}

void thrown_in_anywhere()
{
	static weft_effect_t by_hand;
	std::string text;
	weft::coroutine inner([] { weft_yield(weft_current()->parent, &by_hand, nullptr); });
	weft::coroutine again([&text] {
		try {
			weft::suspend();
		} catch (int) {
			append(text, "");
		}
	});

	CHECK(caught_in([] { weft_suspend(nullptr); }) == 7);
	CHECK(caught_in([] { weft_yield(weft_current(), &by_hand, nullptr); }) == 7);
	CHECK(caught_in([] { exchange(box()); }) == 7);
	CHECK(caught_in([&text] { append(text, ""); }) == 7);
	CHECK(caught_in([&inner] { inner.resume(); }) == 7 && inner.done());
	CHECK(again.resume());
	CHECK(weft_is(append, again.resume_throwing(std::make_exception_ptr(1), weft_handles(append))));
	passed("an exception goes to whatever a body waits in");
}

void effects()
{
	std::string text = "text";
	weft::coroutine body([&text] {
		box b = exchange(box(new int(1)));

		CHECK(*b == 2);
		CHECK(append(text, " and more") == 13 && text == "text and more");
	});
	weft_request_t r;

	weft_handle (r, body.get(), exchange, append) {
		if (weft_is(exchange, r)) {
			box theirs = std::move(weft_args(exchange, r)->mine);

			++*theirs;
			weft_reply(exchange, r, std::move(theirs));
		} else {
			weft_args(append, r)->to += weft_args(append, r)->what;
			weft_reply(append, r, text.size());
		}
	}
	CHECK(body.done());
	passed("effects with move-only arguments and results, and with references");
}

void attributes()
{
	weft_attr_t attr{};
	bool thrown = false;

	attr.name = "named";
	attr.user_data = &attr;
	attr.policy = WEFT_FIXED;
	weft::coroutine named([] {}, attr);
	CHECK(std::string(weft_name(named.get())) == "named" && weft_user_data(named.get()) == &attr);
	CHECK(weft_policy(named.get()) == WEFT_FIXED);
	attr.policy = WEFT_POLICY_COUNT;
	try {
		weft::coroutine bad([counted = Counted()] {}, attr);
	} catch (const std::system_error &error) {
		thrown = error.code().value() == EINVAL;
	}
	CHECK(thrown && alive == 0);
	passed("attributes; wrong ones are thrown");
}

// The second copy throws: the exception goes into the coroutine.
struct ThrowsLater {
	int copies = 0;
	ThrowsLater() = default;
	ThrowsLater(const ThrowsLater &other) : copies(other.copies + 1)
	{
		if (copies > 1)
			throw copies;
	}
};

void body_that_cannot_be_moved()
{
	ThrowsLater throws;
	auto body = [counted = Counted(), throws] { return throws.copies; };
	weft_stack_stats_t before, after;

	CHECK(body() == 1);
	weft_stack_stats(WEFT_DEFAULT_POLICY, &before);
	try {
		weft::coroutine bad(body);

		CHECK(false);
	} catch (int copies) {
		CHECK(copies == 2);
	}
	weft_stack_stats(WEFT_DEFAULT_POLICY, &after);
	CHECK(alive == 1 && after.live == before.live);
	passed("a body whose copy throws leaves nothing behind");
}

__attribute__((noinline)) int deep(int depth)
{
	char frame[1000];

	__asm__ volatile("" : : "r"(frame) : "memory");
	int below = depth ? deep(depth - 1) : 0;
	__asm__ volatile("" : : "r"(frame) : "memory");
	return below;
}

void stack_spent()
{
	weft_attr_t attr{};
	size_t budget = weft_set_budget(256 << 10);
	weft_failure_t why = WEFT_NO_FAILURE;

	attr.policy = WEFT_COMMIT;
	attr.stack_size = 1 << 20;
	weft::coroutine too_deep([] { deep(2000); }, attr);
	try {
		too_deep.resume();
	} catch (const weft::stack_failure &failure) {
		why = failure.why();
		CHECK(std::string(failure.what()).find("budget") != std::string::npos);
	}
	CHECK(why == WEFT_BUDGET_SPENT && too_deep.done());
	weft_set_budget(budget);
	passed("a stack that cannot grow is an exception of the resumer");
}

template <typename Program> void reports(const char *what, const char *text, Program program)
{
	std::string errors;

	CHECK(apart(program, errors) == 1000 + SIGABRT);
	CHECK(errors.find(text) != std::string::npos);
	passed(what);
}

} // namespace

int main()
{
	results();
	bodies();
	lives();
	CHECK(alive == 0);
	moves();
	ended_early();
	thrown_out();
	thrown_in();
	thrown_in_as_is();
	thrown_in_anywhere();
	effects();
	attributes();
	body_that_cannot_be_moved();
	if (!WEFT__SANITIZED && !RUNNING_ON_VALGRIND) // otherwise frames are larger, and stacks are opened as a whole
		stack_spent();
	reports("no result yet: reported", "result() of a coroutine that has not returned", [] {
		weft::coroutine unfinished([] { return 1; });

		unfinished.result();
	});
	reports("empty: reported", "an empty coroutine object", [] {
		weft::coroutine<> empty;

		empty.resume();
	});
	return 0;
}
