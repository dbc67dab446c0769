/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The inline functions of weft/coro.h for languages that cannot inline C, and for code that is not optimized. */
#define WEFT__DEFINES_TWINS
#include "coro/coro.h"

weft_request_t weft_ffi_resume(weft_coro_t *k, void *value, weft_handles_t handles)
{
	return weft_resume(k, value, handles);
}

void *weft_ffi_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	return weft_yield(k, effect, payload);
}

void *weft_ffi_suspend(void *payload)
{
	return weft_suspend(payload);
}

void weft_ffi_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	weft_exit(k, effect, payload);
}

void *weft_ffi_switch(weft_coro_t *to, void *value)
{
	return weft_switch(to, value);
}

weft_state_t weft_ffi_state(const weft_coro_t *k)
{
	return weft_state(k);
}
