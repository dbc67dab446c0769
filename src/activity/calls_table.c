/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of libc_calls.def that the program may have from libc, and their twins: for twins.c. */
#include "activity/libc_calls.h"

#define WEFT__CALL_BLOCKS(name, why)
/* The names differ from the headers', whose types differ. Weak: a library that has no such function gives NULL. */
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
