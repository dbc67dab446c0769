/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions through many frames and chunks: of all types, rethrown, nested, in destructors, through qsort. */
#include "engine.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace
{

/* A failure that carries more than a pointer, by value, with a base that is virtual. */
struct place {
	virtual ~place() = default;
	int depth = 0;
};

struct failure : std::runtime_error, virtual place {
	std::string more;

	failure(const std::string &what, int at) : std::runtime_error(what), more(300, static_cast<char>('a' + at % 26))
	{
		depth = at;
	}
};

struct worse : failure {
	long double numbers[50];

	explicit worse(int at) : failure("worse", at)
	{
		std::fill(std::begin(numbers), std::end(numbers), at);
	}
};

class tally
{
	int *count;

      public:
	explicit tally(int *count) : count(count)
	{
		++*count;
	}
	~tally()
	{
		--*count;
	}
	tally(const tally &) = delete;
	tally &operator=(const tally &) = delete;
};

[[gnu::noinline]] void raise_kind(int kind, int at)
{
	switch (kind % 8) {
	case 0:
		throw at;
	case 1:
		throw std::string("text ") + std::to_string(at);
	case 2:
		throw failure("failure", at);
	case 3:
		throw worse(at);
	case 4:
		throw std::make_unique<int>(at);
	case 5:
		throw std::system_error(std::make_error_code(std::errc::bad_address), "system");
	case 6:
		(void)std::vector<int>(3).at(static_cast<size_t>(at + 10));
		break;
	default:
		(void)std::stoi("none");
	}
}

/* One frame with a destructor, and frames with handlers that rethrow, or throw a different exception. */
[[gnu::noinline]] int descend(int n, int kind, int *count)
{
	tally here(count);
	volatile char room[200];

	room[n % 200] = 1;
	if (n <= 0) {
		raise_kind(kind, n);
		return 0;
	}
	try {
		if (n % 16 == 5)
			try {
				return descend(n - 1, kind, count) + room[n % 200];
			} catch (const failure &) {
				throw;
			}
		return descend(n - 1, kind, count) + room[n % 200];
	} catch (const worse &w) {
		if (n % 32 == 7)
			throw worse(w.depth + 1);
		throw;
	} catch (int &i) {
		i += n % 3;
		throw;
	}
}

std::string caught(int n, int kind, int *count)
{
	try {
		return std::to_string(descend(n, kind, count));
	} catch (int i) {
		return "int " + std::to_string(i);
	} catch (const std::string &s) {
		return s;
	} catch (const worse &w) {
		return "worse " + std::to_string(w.depth) + w.more.substr(0, 3) +
		       std::to_string(static_cast<int>(w.numbers[49]));
	} catch (const place &p) {
		return "place " + std::to_string(p.depth) + dynamic_cast<const failure &>(p).what();
	} catch (const std::unique_ptr<int> &p) {
		return "pointer " + std::to_string(*p);
	} catch (const std::system_error &e) {
		return e.code().category().name() + std::string(e.what()).substr(0, 7);
	} catch (const std::exception &e) {
		return std::string("standard ") + std::string(e.what()).substr(0, 20);
	}
}

/* Nested exceptions. */
[[gnu::noinline]] void wrap(int n)
{
	try {
		if (n == 0)
			throw std::logic_error("core");
		wrap(n - 1);
	} catch (...) {
		std::throw_with_nested(std::runtime_error("layer " + std::to_string(n)));
	}
}

int unwrap(const std::exception &e, std::string &last)
{
	last = e.what();
	try {
		std::rethrow_if_nested(e);
	} catch (const std::exception &inner) {
		return 1 + unwrap(inner, last);
	}
	return 1;
}

/* A destructor that throws and catches itself while another exception passes, deep below. */
struct busy_destructor {
	int *count;
	int depth;

	~busy_destructor()
	{
		int own = 0;

		*count += static_cast<int>(caught(depth, 2, &own).size()) + own + std::uncaught_exceptions();
	}
};

int during_unwinding(int depth)
{
	int count = 0;

	try {
		busy_destructor a{&count, depth}, b{&count, 2 * depth};

		raise_kind(0, 1);
	} catch (int) {
		count += 1000000;
	}
	return count;
}

/* Through qsort, which is not instrumented, and std::sort, which is. */
int compare_or_throw(const void *a, const void *b)
{
	int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);

	if (x == 13 || y == 13)
		throw failure("thirteen", x + y);
	return (x > y) - (x < y);
}

std::string sorted(bool by_c, bool unlucky)
{
	std::vector<int> numbers;
	int x = 7;

	for (int i = 0; i < 500; i++) {
		x = static_cast<int>(static_cast<long>(x) * 16807 % 2147483647);
		numbers.push_back(x % 1000 + 20);
	}
	if (unlucky)
		numbers[250] = 13;
	try {
		if (by_c)
			qsort(numbers.data(), numbers.size(), sizeof(int), compare_or_throw);
		else
			std::sort(numbers.begin(), numbers.end(),
				  [](int a, int b) { return compare_or_throw(&a, &b) < 0; });
	} catch (const failure &f) {
		return f.what();
	}
	return std::to_string(numbers[0]) + "…" + std::to_string(numbers[499]);
}

/* Pauses with an exception in flight in an outer frame, and an exception kept for later. */
void across_pauses(struct run *run, std::ostream &out)
{
	std::exception_ptr kept;
	int count = 0;

	for (int i = 0; i < 20; i++) {
		try {
			run_pause(run);
			descend(i * 10, i, &count);
		} catch (...) {
			kept = std::current_exception();
		}
		run_pause(run);
		try {
			std::rethrow_exception(kept);
		} catch (const std::exception &e) {
			out << "kept " << std::string(e.what()).substr(0, 12) << '\n';
		} catch (...) {
			out << "kept something\n";
		}
	}
	out << "left over " << count << '\n';
}

int must_not_throw(int n) noexcept
{
	int count = 0;

	return static_cast<int>(caught(n, n, &count).size()) + count;
}

void run_exceptions(struct run *run, std::ostream &out)
{
	static const int depths[] = {0, 1, 7, 50, 300, 2000};
	int count = 0;

	for (int depth : depths)
		for (int kind = 0; kind < 8; kind++)
			out << depth << ' ' << caught(depth, kind, &count) << ' ' << count << '\n';
	for (int n : {1, 10, 200}) {
		std::string last;

		try {
			wrap(n);
		} catch (const std::exception &e) {
			out << "nested " << unwrap(e, last) << ' ' << last << '\n';
		}
	}
	out << during_unwinding(10) << ' ' << during_unwinding(300) << ' ' << must_not_throw(400) << '\n';
	for (int i = 0; i < 4; i++)
		out << sorted(i & 1, i & 2) << '\n';
	across_pauses(run, out);
}

} // namespace

const part exceptions_part = {"exceptions", run_exceptions};
