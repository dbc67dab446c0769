/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two files have an effect of the same name with different types: each handles its own, in one program. -DOTHER: the
 * other file. */
#include <weft/weft.h>

#ifdef OTHER
WEFT_FAMILY(state, (double, get, long *, place), (void, put, int, value));
#define ARGUMENT &place
#define PARAMETER , long *at
#define RESULT double
#define FUNCTION other
#else
WEFT_FAMILY(state, (int, get), (void, put, int, value));
#define ARGUMENT
#define PARAMETER
#define RESULT int
#define FUNCTION this_one
#endif

int this_one(weft_fn_t *inside);
int other(weft_fn_t *inside);

static RESULT on_get(void *state PARAMETER)
{
#ifdef OTHER
	*at = 5;
#endif
	return *(RESULT *)state;
}

WEFT_HANDLER(handler, weft_tail(get, on_get));

static weft_fn_t *then;

static void *body(void *result)
{
#ifdef OTHER
	long place = 0;
#endif

	if (then)
		then(NULL);
	*(RESULT *)result += get(ARGUMENT);
#ifdef OTHER
	*(RESULT *)result += (RESULT)place;
#endif
	return result;
}

int FUNCTION(weft_fn_t *inside)
{
	RESULT state = 7, result = 0;

	then = inside;
	weft_run(&handler, &state, body, &result);
	return (int)result;
}

#ifndef OTHER
static void *inside_of_this(void *unused)
{
	if (other(NULL) != 12)
		__builtin_trap();
	return unused;
}

int main(void)
{
	return this_one(NULL) != 7 || other(NULL) != 12 || this_one(inside_of_this) != 7;
}
#endif
