// SPDX-License-Identifier: MIT OR Apache-2.0
// Ends that cannot succeed are reported: reports CASE ends with one line.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <weft/weft.h>

WEFT_EFFECT(int, ask);
WEFT_EXCEPTION(fail);
WEFT_EXCEPTION(other);

namespace
{

weft_coro_t *make(const char *name, weft_fn_t *fn, void *arg = nullptr, unsigned flags = 0)
{
	weft_attr_t attr{};

	attr.name = name;
	attr.flags = flags;
	return weft_create_with(fn, arg, &attr);
}

weft_coro_t *start(weft_coro_t *k)
{
	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	return k;
}

// ---- deferred functions that do not return --------------------------------------------------------------------------

void suspends(void *)
{
	weft_suspend(nullptr);
}

void asks(void *)
{
	ask();
}

void leaves(void *)
{
	other();
}

template <void (*deferred)(void *)> void *defers(void *)
{
	weft_defer(deferred, nullptr);
	weft_suspend(nullptr);
	return nullptr;
}

void to_deleter()
{
	weft_delete(start(make("k", defers<suspends>)));
}

void unhandled()
{
	weft_delete(start(make("k", defers<asks>)));
}

void exits(void *)
{
	weft_exit(weft_current(), &weft_suspended, nullptr);
}

void twice()
{
	weft_delete(start(make("k", defers<exits>)));
}

void *fails(void *)
{
	weft_defer(leaves, nullptr);
	fail();
}

void *resumes(void *)
{
	weft_resume(make("inner", fails), nullptr, weft_handles(other));
	return nullptr;
}

void further_in()
{
	weft_resume(make("outer", resumes), nullptr, weft_handles(fail));
}

// ---- scopes that are left unnoticed ---------------------------------------------------------------------------------

std::jmp_buf place;

void nothing(void *)
{
}

[[gnu::noinline]] void jumps()
{
	weft_defer(nothing, nullptr);
	std::longjmp(place, 1);
}

void *jumped(void *)
{
	weft_defer(nothing, nullptr);
	if (!setjmp(place))
		jumps();
	return nullptr;
}

void by_longjmp()
{
	start(make("k", jumped));
}

// ---- destructors ----------------------------------------------------------------------------------------------------

void *swallows(void *)
{
	try {
		weft_suspend(nullptr);
	} catch (...) {
	}
	return nullptr;
}

void swallowed()
{
	weft_delete(start(make("k", swallows, nullptr, WEFT_UNWIND)));
}

} // namespace

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)();
	} cases[] = {{"to-deleter", to_deleter}, {"unhandled", unhandled},   {"twice", twice},
		     {"further-in", further_in}, {"by-longjmp", by_longjmp}, {"swallowed", swallowed}};

	for (auto &one : cases)
		if (argc == 2 && !std::strcmp(argv[1], one.name)) {
			one.run();
			std::puts("not ok - went on");
			return 0;
		}
	return 2;
}
