// SPDX-License-Identifier: MIT OR Apache-2.0
// Effects whose arguments and results are C++ values, and what a coroutine's body may be.
//
// Supported: any type that can be written without a comma outside of parentheses (otherwise: a typedef). Arguments by
// value, by reference (to the performer's objects), of move-only types; results by value, of move-only types,
// default-constructed if no handler replies. Declarations at namespace scope, in any namespace; the identity of an
// effect is its family and name alone, so equal names in different namespaces mean the same effect, or do not link. Not
// supported: results of reference type (use a pointer), declarations in classes and functions.
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "check.h"

typedef std::unique_ptr<int> box;
typedef std::map<std::string, int> table;

WEFT_EFFECT(std::string, greet, std::string, name);
WEFT_EFFECT(std::size_t, measure, const std::string &, text);
WEFT_EFFECT(void, append, std::string &, to, const char *, what);
WEFT_EFFECT(box, exchange, box, mine);
WEFT_EFFECT(std::vector<int>, sorted, std::vector<int>, values);
WEFT_EFFECT(table, whole, int, which);
WEFT_EFFECT(bool, apply, std::function<int(int)>, f, int, to);
WEFT_EXCEPTION(refuse, std::string, why);

namespace shapes
{
struct Point {
	double x = 1, y = 2;
};
WEFT_FAMILY(shape, (Point, centre), (void, move_by, Point, by));
} // namespace shapes

namespace
{

int alive;

struct Counted {
	Counted()
	{
		alive++;
	}
	Counted(const Counted &)
	{
		alive++;
	}
	~Counted()
	{
		alive--;
	}
};

} // namespace

WEFT_EFFECT(Counted, copy_of, Counted, original);

namespace
{

void *values(void *)
{
	std::string text = greet("you");

	CHECK(text == "hello you, whose name is long enough not to fit into the object");
	CHECK(measure(text) == text.size());
	append(text, "!");
	CHECK(text.back() == '!');
	return nullptr;
}

void strings()
{
	Coroutine k(values);
	weft_request_t r;

	weft_handle (r, k.k, greet, measure, append) {
		if (weft_is(greet, r))
			weft_reply(greet, r,
				   "hello " + weft_args(greet, r)->name +
				       ", whose name is long enough not to fit into the object");
		else if (weft_is(measure, r))
			weft_reply(measure, r, weft_args(measure, r)->text.size());
		else
			weft_args(append, r)->to += weft_args(append, r)->what;
	}
	passed("strings by value, by reference, and as a result");
}

void *swaps(void *)
{
	box b = exchange(box(new int(1)));

	CHECK(b && *b == 2);
	b = exchange(std::move(b));
	CHECK(!b);
	return nullptr;
}

void move_only()
{
	Coroutine k(swaps);
	weft_request_t r;
	int requests = 0;

	weft_handle (r, k.k, exchange) {
		box theirs = std::move(weft_args(exchange, r)->mine);

		CHECK(*theirs == ++requests);
		if (requests == 1)
			weft_reply(exchange, r, box(new int(2)));
		/* the second time no handler replies: the result is default-constructed */
	}
	CHECK(requests == 2);
	passed("move-only arguments and results, and a result that nobody set");
}

void *uses_containers(void *)
{
	std::vector<int> v = sorted({3, 1, 2});

	CHECK(v.size() == 3 && v[0] == 1 && v[2] == 3);
	CHECK(whole(1).at("one") == 1 && whole(2).empty());
	CHECK(apply([&v](int i) { return v[static_cast<size_t>(i)]; }, 2));
	return nullptr;
}

void containers()
{
	Coroutine k(uses_containers);
	weft_request_t r;

	weft_handle (r, k.k, sorted, whole, apply) {
		if (weft_is(sorted, r)) {
			std::vector<int> &values = weft_args(sorted, r)->values;

			weft_reply(sorted, r, {values[1], values[2], values[0]});
		} else if (weft_is(whole, r)) {
			if (weft_args(whole, r)->which == 1)
				weft_reply(whole, r, table({{"one", 1}}));
		} else {
			weft_reply(apply, r, weft_args(apply, r)->f(weft_args(apply, r)->to) == 3);
		}
	}
	passed("containers, a typedef with a comma in it, a closure");
}

void *copies(void *)
{
	for (int i = 0; i < 10; i++)
		(void)copy_of(Counted());
	return nullptr;
}

void no_leaks()
{
	weft_request_t r;
	{
		Coroutine k(copies);

		weft_handle (r, k.k, copy_of)
			weft_reply(copy_of, r, weft_args(copy_of, r)->original);
	}
	CHECK(alive == 0);
	passed("every argument and result is destroyed once");
}

void *throws(void *)
{
	refuse("no");
}

void exceptions()
{
	Coroutine k(throws);
	weft_request_t r = k.resume(weft_handles(refuse));

	CHECK(weft_is(refuse, r) && weft_args(refuse, r)->why == "no");
	weft__last<weft_args_t(refuse)>::done(r.payload); // like weft::handle
	passed("exceptions of weft's own with a string");
}

void *moves(void *)
{
	shapes::Point at = shapes::centre();

	shapes::move_by(shapes::Point{at.x, 5});
	return nullptr;
}

void in_a_namespace()
{
	using namespace shapes;
	Coroutine k(moves);
	Point sum;
	weft_request_t r;

	weft_handle (r, k.k, shape) {
		switch (weft_op(shape, r)) {
		case weft_case(centre):
			weft_reply(centre, r, Point{});
			break;
		case weft_case(move_by):
			sum = weft_args(move_by, r)->by;
			break;
		}
	}
	CHECK(sum.x == 1 && sum.y == 5);
	passed("a family in a namespace");
}

std::string answer(std::string name)
{
	return "default for " + name;
}

void defaults()
{
	weft_set_default(greet, answer);
	CHECK(greet("me") == "default for me");
	weft_set_default(greet, nullptr);
	passed("a default handler");
}

/* A capturing closure as a body: two lines in a program that needs it. */
template <typename Body> void *call(void *body)
{
	(*static_cast<Body *>(body))();
	return nullptr;
}

void closures()
{
	int total = 0;
	auto body = [&total] {
		for (int i = 0; i < 3; i++) {
			total += i;
			weft_suspend(nullptr);
		}
	};
	Coroutine plain([](void *arg) { return arg; }, &total), capturing(call<decltype(body)>, &body);

	CHECK(plain.resume().payload == &total);
	while (!weft_returned(capturing.resume()))
		;
	CHECK(total == 3);
	passed("lambdas as bodies");
}

void *holds(void *)
{
	Counted counted;

	weft_suspend(nullptr);
	return nullptr;
}

void destructors()
{
	{
		Coroutine k(holds);

		k.resume();
		CHECK(alive == 1);
		k.resume();
		CHECK(alive == 0);
	}
	{
		Coroutine k(holds);

		k.resume();
	}
	CHECK(alive == 1); /* as weft_delete documents: frames are discarded, not unwound */
	alive = 0;
	passed("destructors run at the end of their scope; deleting does not unwind");
}

} // namespace

int main()
{
	strings();
	move_only();
	containers();
	no_leaks();
	exceptions();
	in_a_namespace();
	defaults();
	closures();
	destructors();
	return 0;
}
