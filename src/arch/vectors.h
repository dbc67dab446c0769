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

/* Read by assembly: bytes to save all vector registers in, and whether the instructions that save all exist. */
extern size_t weft__xsave_bytes;
extern bool weft__has_xsave;
/* May AVX be used? The compiler's own question brings a table of all processors into every program. */
extern bool weft__has_avx;

/* Find out. Once, before any linked stack runs. */
void weft__vectors_measure(void);

#endif
