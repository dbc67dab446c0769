// SPDX-License-Identifier: MIT OR Apache-2.0
// weft.hpp where there are neither exceptions nor type information.
#include <weft/weft.hpp>

#include "check.h"

WEFT_EFFECT(int, ask);

int main()
{
	int sum = 0;
	weft::coroutine body([&sum] {
		weft::suspend();
		return sum;
	});
	weft::generator<int> numbers([](auto yield) {
		for (int i = 0; i < 4; i++)
			yield(i);
		yield.from(weft::generator<int>([](auto deeper) { deeper(4); }));
	});

	for (int i : numbers)
		sum += i;
	CHECK(weft::handle([] { return ask(); }, weft_on(ask).tail([] { return 3; })) == 3);
	CHECK(weft::handle([] { return ask(); }, weft_on(ask).general([](auto k) { return k.resume(4); })) == 4);
	CHECK(weft::handle([] { return ask(); }, weft_on(ask).abort([] { return 5; })) == 5);
	CHECK(body.resume() && !body.resume() && body.result() == 10);
	passed("coroutine, generator and handlers without exceptions and type information");
	return 0;
}
