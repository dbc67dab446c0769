/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft__an_exception_has_abort_clauses_only */
/* gcc-errors: 2 */
#include <weft/weft.h>

WEFT_EXCEPTION(fail, const char *, why);

static void on_fail(void *state, const char *why)
{
	(void)state, (void)why;
}

WEFT_HANDLER(h, weft_tail(fail, on_fail));
