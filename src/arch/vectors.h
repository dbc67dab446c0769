/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_SRC_ARCH_VECTORS_H
#define WEFT_SRC_ARCH_VECTORS_H

#include <stdbool.h>
#include <stddef.h>

/* For functions that move 32 bytes at once. */
#if defined(__x86_64__)
#define WEFT__AVX __attribute__((target("avx")))
#else
#define WEFT__AVX
#endif

/* Read by assembly: the bytes that all vector registers need, and whether the processor has the instructions that save
 * them. */
extern size_t weft__xsave_bytes;
extern bool weft__has_xsave;
/* True if AVX may be used. The compiler's own test would link a table of all processors into every program. */
extern bool weft__has_avx;

/* Set the variables above. Called once, before a linked stack is used. */
void weft__vectors_measure(void);

#endif
