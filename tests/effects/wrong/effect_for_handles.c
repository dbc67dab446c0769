/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: incompatible type for argument 3 of 'weft_resume' */
/* clang: (aka 'struct weft__write_weft_handles_of_the_effect') */
/* g++: 'weft_handles_t' {aka 'weft__write_weft_handles_of_the_effect'} */
/* clang++: no matching function for call to 'weft_resume' */
/* names: weft__write_weft_handles_of_the_effect */
/* gcc-lines: 12 */
#include <weft/weft.h>

WEFT_EFFECT(void, emit, int, value);

weft_request_t resume(weft_coro_t *k);
weft_request_t resume(weft_coro_t *k)
{
	return weft_resume(k, NULL, emit);
}
