/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code shared by the programs of the copy lane. */
#ifndef WEFT_TESTS_COPY_H
#define WEFT_TESTS_COPY_H

#include <string.h>
#include <weft/weft.h>

#include "../require.h"

static inline uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static inline weft_coro_t *make_copied(weft_fn_t *fn, void *arg, const char *name)
{
	weft_attr_t attr = {.policy = WEFT_COPY, .name = name};
	weft_coro_t *k = weft_create_with(fn, arg, &attr);

	REQUIRE(k);
	return k;
}

static inline weft_request_t resume(weft_coro_t *k, uint64_t value)
{
	return weft_resume(k, (void *)value, WEFT_HANDLE_NONE);
}

#endif
