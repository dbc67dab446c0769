/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Performs effects; compiled as C and as C++. */
#include "declared.h"

#ifdef __cplusplus
/* Effects of the same names that are never performed here: no handler may confuse them. */
namespace apart
{
WEFT_EFFECT(int, get);
WEFT_FAMILY(state, (int, get_other), (void, put, int, value));
} // namespace apart
#endif

static int sends(void)
{
	return net_send("four", true);
}

static int get_located(void)
{
	weft_coro_t *k = weft_locate(get);

	return k ? weft_perform_at(get, k) : -1;
}

static int gets(void)
{
	return get();
}

static void puts_it(int value)
{
	put(value);
}

static void fails(int code)
{
	fail(code);
}

const struct performs performs = {gets, puts_it, sends, fails, get_located};
