/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* AddressSanitizer keeps a record of each address, so creating a coroutine whose frames are copied must fail. */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
	weft_attr_t attr = {.policy = WEFT_COPY};
	bool is_refused = !weft_create_with((weft_fn_t *)0, 0, &attr) && errno == ENOTSUP;

	printf("%s\n", is_refused ? "refused" : "not refused");
	return !is_refused || !weft_policy_unavailable(WEFT_COPY);
}
