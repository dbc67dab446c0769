/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of libc_calls.def's functions and their twins, which twins.c reads. */
#include "activity/libc_calls.h"

#define WEFT__CALL_BLOCKS(name, why)
/* The C names differ from the headers' names, because the types differ. The symbols are weak: a function that the C
 * library does not have is NULL. */
#define WEFT__CALL_PARKS(name, how)                                                                                    \
	extern weft__any_fn_t weft__plain_##name __asm__(#name) __attribute__((weak));                                 \
	extern weft__any_fn_t weft__alias_##name __asm__("__" #name) __attribute__((weak));                            \
	extern weft__any_fn_t weft__libc_##name __asm__("__libc_" #name) __attribute__((weak));                        \
	extern weft__any_fn_t weft__interceptor_##name __asm__("__interceptor_trampoline_" #name)                      \
	    __attribute__((weak));                                                                                     \
	extern weft__any_fn_t weft__twin_##name __asm__("weft__yielding_" #name) __attribute__((visibility("hidde"     \
													   "n")));
#include "activity/libc_calls.def"
#undef WEFT__CALL_PARKS

const struct weft__waits weft__waits[] = {
#define WEFT__CALL_PARKS(name, how)                                                                                    \
	{#name,                                                                                                        \
	 weft__plain_##name,                                                                                           \
	 {weft__alias_##name, weft__libc_##name, weft__interceptor_##name},                                            \
	 weft__twin_##name},
#include "activity/libc_calls.def"
#undef WEFT__CALL_PARKS
    {0}};
