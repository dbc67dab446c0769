// SPDX-License-Identifier: MIT OR Apache-2.0
// weft::generator: element types, recursion and delegation, exceptions, effects, several at once, as ranges.
#include <csignal>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "check.h"

WEFT_EFFECT(int, scale, int, value);

namespace
{

using weft::generator;
using weft::yielder;
typedef std::vector<int> ints;

template <typename Range> ints collect(Range &&range)
{
	ints all;

	for (auto &&each : range)
		all.push_back(each);
	return all;
}

generator<int> count(int from, int to)
{
	return generator<int>([from, to](yielder<int> yield) {
		for (int i = from; i < to; i++)
			yield(i);
	});
}

void elements()
{
	std::string here = "here";

	CHECK(collect(count(0, 5)) == (ints{0, 1, 2, 3, 4}));
	CHECK(collect(count(0, 0)).empty());

	int sum = 0;
	for (std::unique_ptr<int> &p : generator<std::unique_ptr<int>>([](auto yield) {
		     for (int i = 1; i < 4; i++)
			     yield(std::make_unique<int>(i));
	     })) {
		std::unique_ptr<int> mine = std::move(p);

		sum += *mine;
	}
	CHECK(sum == 6);

	generator<std::string &> same([&here](yielder<std::string &> yield) { yield(here); });
	for (std::string &s : same)
		CHECK(&s == &here);
	generator<const std::string &> constant([&here](auto yield) {
		yield(here);
		if (weft_policy(weft_current()) != WEFT_COPY)
			yield("made on the spot, and long enough to be elsewhere");
	});
	size_t size = 0;
	for (const std::string &s : constant)
		size += s.size();
	CHECK(size == 4 || size == 4 + 49);
	generator<std::string &&> moved([&here](auto yield) { yield(std::move(here)); });
	for (std::string &&s : moved) {
		std::string mine = std::move(s);

		CHECK(mine == "here");
	}
	CHECK(here.empty());

	generator<std::string> texts([](auto yield) {
		std::string text(50, 'x');

		yield(text);
		CHECK(text.size() == 50);
		yield(std::move(text));
		yield("literal");
	});
	auto i = texts.begin();
	CHECK(i->size() == 50);
	++i;
	CHECK((*i).size() == 50);
	i++;
	CHECK(*i == "literal" && *texts.begin() == "literal");
	++i;
	CHECK(i == texts.end() && texts.begin() == texts.end());
	passed("elements: objects, move-only, references of three kinds, converted");
}

// An element of a const type is const for its reader; on its way it is moved.
struct Shape {
	virtual ~Shape() = default;
	virtual int corners() const = 0;
};
struct Square : Shape {
	int corners() const override
	{
		return 4;
	}
};

void constant_elements()
{
	typedef std::unique_ptr<int> box;
	int sum = 0;

	static_assert(std::is_same<decltype(*std::declval<generator<const int>>().begin()), const int &>::value, "");
	for (const int &i : generator<const int>([](auto yield) {
		     const int three = 3;

		     for (int j = 0; j < 3; j++)
			     yield(j);
		     yield(three);
	     }))
		sum += i;
	CHECK(sum == 6);

	// Move-only elements: made in the yield, delegated to, also after the first element.
	auto boxes = [](int from) {
		return generator<const box>([from](yielder<const box> yield) {
			yield(std::make_unique<int>(from));
			yield(box(new int(from + 1)));
		});
	};
	generator<const box> begun = boxes(10);
	if (weft_default_policy() != WEFT_COPY) // otherwise it would have to continue at the same depth
		CHECK(**begun.begin() == 10);
	sum = 0;
	for (const box &each : generator<const box>([&](auto yield) {
		     yield.from(boxes(1));
		     yield.from(std::move(begun));
	     }))
		sum += *each;
	CHECK(sum == 1 + 2 + 10 + 11);

	generator<const std::string> texts([](auto yield) {
		yield("literal");
		yield(std::string(50, 'x'));
	});
	auto i = texts.begin();
	CHECK(i->size() == 7 && (*++i).size() == 50 && ++i == texts.end());

	generator<const std::pair<int, box>> pairs([](auto yield) { yield({7, std::make_unique<int>(8)}); });
	CHECK(pairs.begin()->first + *pairs.begin()->second == 15);

	Square square;
	generator<const Shape &> shapes([&](auto yield) { yield(square); });
	CHECK(shapes.begin()->corners() == 4 && &*shapes.begin() == &square);
	generator<const std::string &&> given([&square](auto yield) {
		std::string local = std::to_string(square.corners());

		if (weft_policy(weft_current()) != WEFT_COPY)
			yield(std::move(local));
	});
	for (const std::string &&each : given)
		CHECK(each == "4");
	generator<volatile long> changing([](auto yield) { yield(8); });
	CHECK(*changing.begin() == 8);
	passed("elements of const types, move-only, abstract by reference");
}

struct Tree {
	std::unique_ptr<Tree> left, right;
	int value;
};

std::unique_ptr<Tree> balanced(int from, int to)
{
	int middle = from + (to - from) / 2;

	if (from == to)
		return nullptr;
	return std::make_unique<Tree>(Tree{balanced(from, middle), balanced(middle + 1, to), middle});
}

void walk(const Tree *tree, yielder<int> yield)
{
	if (!tree)
		return;
	walk(tree->left.get(), yield);
	yield(tree->value);
	walk(tree->right.get(), yield);
}

generator<int> nested(const Tree *tree)
{
	return generator<int>([tree](yielder<int> yield) {
		if (!tree)
			return;
		yield.from(nested(tree->left.get()));
		yield(tree->value);
		yield.from(nested(tree->right.get()));
	});
}

void recursion()
{
	auto tree = balanced(0, 500);
	ints all = collect(generator<int>([&tree](auto yield) { walk(tree.get(), yield); }));

	CHECK(all.size() == 500 && all[0] == 0 && all[499] == 499);
	if (!WEFT__SANITIZED || weft_default_policy() != WEFT_COPY)
		CHECK(collect(nested(tree.get())) == all);
	passed("recursion within a generator, and of generators");
}

// Each generator but the last only delegates: the elements do not pass through it.
generator<int> chain(int depth)
{
	if (!depth)
		return count(0, 3);
	return generator<int>([depth](yielder<int> yield) { yield.from(chain(depth - 1)); });
}

void delegation()
{
	CHECK(collect(chain(50)) == (ints{0, 1, 2}));
	CHECK(collect(generator<int>([](auto yield) {
		      yield(1);
		      yield.from(count(2, 4));
		      yield.from(ints{4, 5});
		      generator<int> begun = count(6, 9);
		      CHECK(*begun.begin() == 6);
		      yield.from(std::move(begun));
		      generator<int> over = count(0, 0);
		      CHECK(over.begin() == over.end());
		      yield.from(std::move(over));
		      yield(9);
	      })) == (ints{1, 2, 3, 4, 5, 6, 7, 8, 9}));

	// Delegates to a generator that is itself delegating. On copied stacks that generator would have to be in
	// another region.
	if (weft_default_policy() == WEFT_COPY)
		return passed("delegating: to nested, to begun, to ended generators, to ranges");
	generator<int> inner([](auto yield) {
		yield.from(count(0, 3));
		yield(3);
	});
	CHECK(*inner.begin() == 0);
	CHECK(collect(generator<int>([&inner](auto yield) {
		      yield.from(std::move(inner));
		      yield(4);
	      })) == (ints{0, 1, 2, 3, 4}));
	passed("delegating: to nested, to begun, to ended generators, to ranges, in the midst of it");
}

void throwing()
{
	generator<int> fails([](auto yield) {
		yield(1);
		throw std::runtime_error("no");
	});
	auto i = fails.begin();
	bool caught = false;

	CHECK(*i == 1);
	try {
		++i;
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught && i == fails.end());

	CHECK(collect(generator<int>([](auto yield) {
		      try {
			      yield.from(generator<int>([](auto deeper) {
				      deeper(1);
				      deeper.from(generator<int>([](auto deepest) {
					      deepest(2);
					      throw 3;
				      }));
			      }));
		      } catch (int error) {
			      yield(error);
		      }
	      })) == (ints{1, 2, 3}));
	try {
		generator<int> at_once([](auto) { throw 1; });

		at_once.begin();
		CHECK(false);
	} catch (int) {
	}
	passed("exceptions come out of begin() and ++, and out of from");
}

void performing()
{
	ints got;
	weft::coroutine consumer([&got] {
		for (int i : generator<int>([](auto yield) {
			     for (int j = 0; j < 3; j++)
				     yield(scale(j));
		     }))
			got.push_back(scale(i));
	});
	weft_request_t r;

	weft_handle (r, consumer.get(), scale)
		weft_reply(scale, r, weft_args(scale, r)->value * 10);
	CHECK(got == (ints{0, 100, 200}));
	passed("effects of a body reach handlers around the consumer");
}

void several()
{
	generator<std::string> one([](auto yield) {
		for (char c = 'a'; c < 'f'; c++)
			yield(std::string(40, c));
	});
	generator<int> other = count(0, 100);
	std::string text;
	auto i = one.begin();
	auto j = other.begin();

	for (; i != one.end() && j != other.end(); ++i, ++j)
		text += (*i)[0] + std::to_string(*j);
	CHECK(text == "a0b1c2d3e4");

	generator<int> moved = std::move(other);
	CHECK(!other && *j == 5 && *moved.begin() == 5);
	++j;
	CHECK(*moved.begin() == 6);

	// From within another coroutine.
	yielder<int> *outer = nullptr;
	generator<int> from_inside([&outer](yielder<int> yield) {
		outer = &yield;
		weft::coroutine inner([&outer] {
			(*outer)(1);
			(*outer)(2);
		});

		inner.resume();
	});
	CHECK(collect(from_inside) == (ints{1, 2}));
	passed("two at once, moved in between, yielding from a coroutine inside");
}

void ranges()
{
#if defined(__cpp_lib_ranges)
	static_assert(std::ranges::input_range<generator<int>>);
	static_assert(std::ranges::view<generator<int>>);
	static_assert(std::ranges::input_range<generator<std::unique_ptr<int>>>);
	static_assert(std::ranges::input_range<generator<const std::string &>>);
	static_assert(std::ranges::input_range<generator<const int>>);
	static_assert(std::ranges::view<generator<const std::unique_ptr<int>>>);
	ints odd;

	for (int i : count(0, 1000) | std::views::filter([](int n) { return n % 2; }) | std::views::take(3) |
			 std::views::transform([](int n) { return n * n; }))
		odd.push_back(i);
	CHECK(odd == (ints{1, 9, 25}));
	generator<int> searched = count(0, 1000);
	CHECK(*std::ranges::find(searched, 77) == 77);
	passed("views of std::ranges");
#endif
}

struct Noted {
	std::string &trace;
	char name;
	~Noted()
	{
		trace += name;
	}
};

void ended_early()
{
	std::string trace;

	for (int i : generator<int>([&trace](auto yield) {
		     Noted noted{trace, 'o'};

		     yield.from(generator<int>([&trace](auto deeper) {
			     Noted more{trace, 'i'};

			     for (int j = 0;; j++)
				     deeper(j);
		     }));
	     }))
		if (i == 5)
			break;
	CHECK(trace == "io");

	trace.clear();
	try {
		for (int i : generator<int>([&trace](auto yield) {
			     Noted noted{trace, 'g'};

			     yield(1);
		     })) {
			Noted noted{trace, 'l'};

			throw i;
		}
	} catch (int) {
		trace += 'c';
	}
	CHECK(trace == "lgc");
	passed("left by break and by an exception: bodies are unwound, inner ones first");
}

void misuse()
{
	std::string errors;

	CHECK(apart([] { generator<int>([](auto) { weft::suspend(); }).begin(); }, errors) == 1000 + SIGABRT);
	CHECK(errors.find("weft: a generator's body suspended otherwise than by its yield") == 0);
	passed("another suspension than by yield is reported");
}

} // namespace

int main()
{
	elements();
	constant_elements();
	recursion();
	delegation();
	throwing();
	performing();
	several();
	ranges();
	ended_early();
	misuse();
	return 0;
}
