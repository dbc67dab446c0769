/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A family with a `get`; alpha.c has a family with a different `get`. */
#include <weft/effect.h>

WEFT_FAMILY(beta, (int, get), (void, put, int, value));

int beta_get(void);
void beta_handle(weft_coro_t *k, int value);
const weft_effect_t *beta_identity(void);

int beta_get(void)
{
	return get();
}

void beta_handle(weft_coro_t *k, int value)
{
	weft_request_t r;

	weft_handle (r, k, beta)
		weft_reply(get, r, value);
}

const weft_effect_t *beta_identity(void)
{
	return &weft_effect_get;
}
