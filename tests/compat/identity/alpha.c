/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A family with a `get`; beta.c has a family with a different `get`. */
#include <weft/effect.h>

WEFT_FAMILY(alpha, (int, get), (void, put, int, value));

int alpha_get(void);
void alpha_handle(weft_coro_t *k, int value);
const weft_effect_t *alpha_identity(void);

int alpha_get(void)
{
	return get();
}

void alpha_handle(weft_coro_t *k, int value)
{
	weft_request_t r;

	weft_handle (r, k, alpha)
		weft_reply(get, r, value);
}

const weft_effect_t *alpha_identity(void)
{
	return &weft_effect_get;
}
