/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The part of the C++ ABI's thread state that Weft reads and writes. */
#ifndef WEFT_SRC_CORO_CXXABI_H
#define WEFT_SRC_CORO_CXXABI_H

struct weft__cxa_globals {
	void *caught;	       /* exceptions being handled */
	unsigned int uncaught; /* exceptions in flight: std::uncaught_exceptions() */
};

/* NULL if there is no C++ in the program. */
struct weft__cxa_globals *weft__cxa_globals(void) __asm__("__cxa_get_globals") __attribute__((weak));

#endif
