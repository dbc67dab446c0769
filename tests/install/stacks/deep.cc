// SPDX-License-Identifier: MIT OR Apache-2.0
// As deep.c, and an exception crosses the stack's parts.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <weft/weft.h>
#include "depth.h"

static long thrown(long n, const std::string &what)
{
	std::string copy = what;

	if (n == 0)
		throw std::runtime_error(copy);
	return thrown(n - 1, copy) + 1;
}

static void *run(void *result)
{
	try {
		thrown(10000, "a message");
	} catch (const std::runtime_error &e) {
		*static_cast<long *>(result) = depth(DEPTH) * (e.what() == std::string("a message"));
	}
	return nullptr;
}

int main()
{
	long result = 0;
	weft_coro_t *k = weft_create(run, &result);

	if (!k)
		return 1;
	weft_resume(k, nullptr, WEFT_HANDLE_NONE);
	weft_delete(k);
	std::printf("%s %ld\n", weft_policy_name(weft_default_policy()), result);
	return result != DEPTH * (DEPTH + 1L) / 2;
}
