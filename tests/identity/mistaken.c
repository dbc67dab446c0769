/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles a family of the same name with a different signature, or in a different namespace: not the performed
 * effect. */
#ifdef SPACE
#define WEFT_NAMESPACE elsewhere
#endif
#include <weft/weft.h>

#ifdef SPACE
WEFT_FAMILY(state, (int, get), (void, put, int, value));
#else
WEFT_FAMILY(state, (int, get), (void, put, long, value));
#endif

int performs_get(void);

static int on_get(void *state)
{
	(void)state;
	return 0;
}

WEFT_HANDLER(handler, weft_tail(get, on_get));

static void *body(void *unused)
{
	performs_get();
	return unused;
}

int main(void)
{
	weft_run(&handler, NULL, body, NULL);
	return 0;
}
