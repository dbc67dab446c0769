// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The cost of the classes of weft.hpp: cost WHAT TIMES prints nanoseconds for each time. For instruction counts, which
// do not depend on other load of the machine: divide the difference of two runs under valgrind --tool=callgrind.
#include <weft/weft.hpp>

#include <chrono>
#include <cstring>

#if defined(__cpp_impl_coroutine)
#include "detached.h"
#endif

WEFT_FAMILY(state, (long, get), (void, put, long, value));
WEFT_EFFECT(void, rest);

namespace
{

typedef weft::generator<long> longs;
typedef weft::yielder<long> yielder;

longs count(long n)
{
	return longs([n](yielder yield) {
		for (long i = 0; i < n; i++)
			yield(i);
	});
}

longs delegate(int depth, long n)
{
	return depth ? longs([=](yielder yield) { yield.from(delegate(depth - 1, n)); }) : count(n);
}

void down(int depth, long n, yielder yield)
{
	if (depth)
		down(depth - 1, n, yield);
	else
		for (long i = 0; i < n; i++)
			yield(i);
}

long sum(longs numbers)
{
	long total = 0;

	for (long i : numbers)
		total += i;
	return total;
}

long element(long n)
{
	return sum(count(n));
}

long deep_element(long n)
{
	return sum(longs([n](yielder yield) { down(100, n, yield); }));
}

long delegated_element(long n)
{
	return sum(delegate(100, n));
}

long resume(long n)
{
	long total = 0;
	weft::coroutine k([] {
		for (;;)
			weft::suspend();
	});

	for (long i = 0; i < n; i++)
		total += k.resume();
	return total;
}

long create(long n)
{
	long total = 0;

	for (long i = 0; i < n; i++) {
		weft::coroutine k([i] { return i; });

		k.resume();
		total += k.result();
	}
	return total;
}

// Like create, by weft.h.
long create_c(long n)
{
	long total = 0;

	for (long i = 0; i < n; i++) {
		weft_coro_t *k = weft_create([](void *arg) { return arg; }, &total);

		total += weft_resume(k, nullptr, WEFT_HANDLE_NONE).payload == &total;
		weft_delete(k);
	}
	return total;
}

// The cost of a run: its body, and the number of its performs.
long tail(long n)
{
	long s = 0;

	return weft::handle(
	    [n] {
		    for (long i = 0; i < n; i++)
			    put(get() + 1);
		    return get();
	    },
	    weft_on(get).tail([&s] { return s; }), weft_on(put).tail([&s](long value) { s = value; }));
}

long general(long n)
{
	return weft::handle(
	    [n] {
		    for (long i = 0; i < n; i++)
			    rest();
		    return n;
	    },
	    weft_on(rest).general([](auto k) { return k.tail_resume(); }));
}

long kept(long n)
{
	weft::resumption<void, long> waiting;
	long last = weft::handle(
	    [n] {
		    for (long i = 0; i < n; i++)
			    rest();
		    return n;
	    },
	    weft_on(rest).general([&waiting](auto k) {
		    waiting = std::move(k);
		    return 0L;
	    }));

	while (waiting)
		last = std::exchange(waiting, {}).resume();
	return last;
}

long handle(long n)
{
	long total = 0;

	for (long i = 0; i < n; i++)
		total += weft::handle([i] { return i; }, weft_on(get).tail([] { return 1L; }));
	return total;
}

long handle_general(long n)
{
	long total = 0;

	for (long i = 0; i < n; i++)
		total += weft::handle([i] { return i; }, weft_on(rest).general([](auto k) { return k.tail_resume(); }));
	return total;
}

#if defined(__cpp_impl_coroutine)
detached awaits(long n, long &total)
{
	total = co_await weft::coroutine([n] {
		for (long i = 0; i < n; i++)
			weft::await(std::suspend_never());
		return n;
	});
}

long await(long n)
{
	long total = 0;

	awaits(n, total);
	return total;
}
#endif

struct {
	const char *name;
	long (*run)(long n);
} const all[] = {
    {"element", element},
    {"deep-element", deep_element},
    {"delegated-element", delegated_element},
    {"resume", resume},
    {"create", create},
    {"create-c", create_c},
    {"tail", tail},
    {"general", general},
    {"kept", kept},
    {"handle", handle},
    {"handle-general", handle_general},
#if defined(__cpp_impl_coroutine)
    {"await", await},
#endif
};

} // namespace

int main(int argc, char **argv)
{
	for (const auto &each : all) {
		if (argc != 3 || std::strcmp(argv[1], each.name))
			continue;
		long n = std::atol(argv[2]);
		auto start = std::chrono::steady_clock::now();
		volatile long result = each.run(n);
		std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;

		(void)result;
		std::printf("%s: %.2f ns\n", each.name, spent.count() / static_cast<double>(n));
		return 0;
	}
	std::fprintf(stderr, "usage: cost WHAT TIMES, where WHAT is one of\n");
	for (const auto &each : all)
		std::fprintf(stderr, "  %s\n", each.name);
	return 2;
}
