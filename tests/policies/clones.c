/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names no policy in WEFT_POLICIES: the call of weft_clone brings its own. */
#include <stdio.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

WEFT_POLICIES();

static void *yields(void *unused)
{
	return weft_suspend(unused);
}

int main(void)
{
	weft_coro_t *k = weft_create_with(yields, NULL, &(weft_attr_t){.policy = WEFT_COPY}), *clone;
	int a, b;

	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	clone = weft_clone(k);
	return !clone || weft_resume(k, &a, WEFT_HANDLE_NONE).payload != &a ||
	       weft_resume(clone, &b, WEFT_HANDLE_NONE).payload != &b;
}
