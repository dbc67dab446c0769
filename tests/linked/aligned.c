/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stack arguments that need more alignment than a stack has: __m256, and structures with an alignment attribute. The
 * caller aligns its frame for them; code that copies them to another chunk or to a system stack must keep the
 * alignment.
 */
#include "linked/aligned.h"
#include "faults/scenario.h"

ALIGNED_FUNCTIONS(checked_)

static long is_nine(vector4 v)
{
	return v[0] == 45 && v[1] == 9 && v[2] == 9 && v[3] == 0;
}

#define NINE(call)                                                                                                     \
	call((vector4){1, 1}, (vector4){2, 1}, (vector4){3, 1}, (vector4){4, 1}, (vector4){5, 1}, (vector4){6, 1},     \
	     (vector4){7, 1}, (vector4){8, 1}, (vector4){9, 1, 9})
#define SUM(call, n) call(1, 2, 3, 4, 5, 6, 7, (struct aligned##n){{[n / 8 - 1] = 36}}, 8)
#define SUMS(prefix) (SUM(prefix##32, 32) + SUM(prefix##64, 64) + SUM(prefix##128, 128) + SUM(prefix##256, 256))
#define LIST(call) call(2, (struct aligned64){{5}}, (struct aligned64){{0, 6}})

/* One function checks, the other does not: calls by pointer test which. */
static long (*volatile pointer[])(long, long, long, long, long, long, long, struct aligned64, long) = {checked_64,
												       plain_64};

#define ON_SYSTEM_STACK(n)                                                                                             \
	weft_on_system_stack(plain_##n, 1, 2, 3, 4, 5, 6, 7, (struct aligned##n){{[n / 8 - 1] = 36}}, 8)

static __attribute__((noinline)) void each_way(void)
{
	REQUIRE(SUMS(checked_) == 0);
	REQUIRE(SUMS(plain_) == 0);
	REQUIRE(SUM(pointer[0], 64) + SUM(pointer[1], 64) == 0);
	REQUIRE(LIST(checked_list) == 0);
	REQUIRE(LIST(plain_list) == 0);
	REQUIRE(is_nine(NINE(checked_ninth)));
	REQUIRE(is_nine(NINE(plain_ninth)));
	REQUIRE(ON_SYSTEM_STACK(32) + ON_SYSTEM_STACK(64) + ON_SYSTEM_STACK(128) + ON_SYSTEM_STACK(256) == 0);
}

static __attribute__((noinline)) long at_depth(long n)
{
	volatile long keep = n;

	each_way();
	return n ? at_depth(n - 1) + (keep != n) : 0;
}

static void *body(void *depth)
{
	return (void *)at_depth((long)depth);
}

void aligned_arguments(void)
{
	weft_coro_t *k = weft_create(body, (void *)300L);

	REQUIRE(k);
	REQUIRE(!resume(k).payload);
	weft_delete(k);
}
