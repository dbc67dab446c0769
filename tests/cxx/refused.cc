// SPDX-License-Identifier: MIT OR Apache-2.0
// refused NAME: a mistake, or a lack of memory, that weft.hpp reports by a message and SIGABRT if there
// are no exceptions.
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/resource.h>

#include <weft/weft.hpp>

WEFT_EFFECT(int, get);
WEFT_EFFECT(int, length, std::string, text);

static const char *wanted;

static bool is(const char *name)
{
	return !std::strcmp(wanted, name);
}

// A reserve of stacks that no machine has.
static void makes_a_coroutine()
{
	weft_attr_t attr{};

	attr.stack_size = SIZE_MAX / 4;
	weft::coroutine<void> never([] {}, attr);
}

static void answers_nothing()
{
	weft::handle<int>([] { (void)get(); }, weft_on(get).general([](auto k) {
		k.resume(1);
		return 5;
	}));
}

static void forwards()
{
	weft::handle(
	    [] {
		    weft::handle([] { return length(std::string("a long text that is moved")); },
				 weft_on(length).tail([](std::string text) {
					 (void)text;
					 return weft_forward();
				 }));
	    },
	    weft_on(length).tail([](std::string text) { return static_cast<int>(text.size()); }));
}

// Functions that wait for the answer take memory.
static void answers_without_memory()
{
	weft::handle(
	    [] {
		    int sum = 0;

		    for (int i = 0; i < 100000; i++)
			    sum += get();
		    return sum;
	    },
	    weft_on(get).tail([] {
		    const struct rlimit nothing {
			    1, 1
		    };
		    char large[1000] = "";

		    setrlimit(RLIMIT_AS, &nothing);
		    return weft::then(1, [large](int n) { return n + large[0]; });
	    }));
}

int main(int, char **argv)
{
	wanted = argv[1];
	if (is("coroutine"))
		makes_a_coroutine();
	else if (is("void"))
		answers_nothing();
	else if (is("then"))
		answers_without_memory();
	else if (is("forward"))
		forwards();
	return 0;
}
