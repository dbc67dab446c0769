/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A call on a system stack, in a program without policies that link chunks: it suspends there, and is ended there. */
#include <string.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

WEFT_POLICIES();

static int needs_room(int fill)
{
	volatile char large[400 * 1024];

	memset((char *)large, fill, sizeof large);
	weft_suspend(NULL);
	return large[sizeof large - 1];
}

static void *body(void *argument)
{
	return (char *)argument + weft_on_system_stack(needs_room, 3);
}

int main(void)
{
	weft_coro_t *k = weft_create(body, NULL), *ended = weft_create(body, NULL);
	weft_request_t r;

	(void)weft_resume(ended, NULL, WEFT_HANDLE_NONE);
	weft_delete(ended);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return !weft_returned(r) || r.payload != (void *)3;
}
