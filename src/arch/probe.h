/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The code of `mmu` probes, which weft-as writes (tools/as/mmu.c): recognizing a probe, and replacing it by a jump
 * while other threads may execute it.
 *
 *	before       89 84 24 d d d d     movl %eax, -d(%rsp)
 *	meanwhile    f4 .. .. .. ..       hlt: a thread here faults, and the handler sends it to the target
 *	after        e9 r r r r d d       jmp target
 *
 * The first byte is written first and again last, so that no processor ever fetches a mixture of two instructions. In
 * between, all processors are serialized. Linux patches its own code in the same way, but with int3: here the signal of
 * int3 is left to debuggers.
 */
#ifndef WEFT_SRC_ARCH_PROBE_H
#define WEFT_SRC_ARCH_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

enum { WEFT__PROBE_BYTES = 7, WEFT__JUMP_BYTES = 5, WEFT__TRAP_BYTES = 1 };
enum { WEFT__TRAP_CODE = 0xf4, WEFT__JUMP_CODE = 0xe9 };

static inline bool weft__is_probe(const unsigned char *code)
{
	return code[0] == 0x89 && code[1] == 0x84 && code[2] == 0x24;
}

/* True for a trap or a jump in the place of a probe: a thread that was trapped may find either there later. */
static inline bool weft__is_patched_probe(const unsigned char *code)
{
	return code[0] == WEFT__TRAP_CODE || code[0] == WEFT__JUMP_CODE;
}

/* Write the jump from `at` to `to`. Returns false if the distance is too large. */
static inline bool weft__make_jump(unsigned char *code, const char *at, const char *to)
{
	intptr_t distance = to - (at + WEFT__JUMP_BYTES);
	int32_t short_distance = (int32_t)distance;

	code[0] = WEFT__JUMP_CODE;
	memcpy(code + 1, &short_distance, sizeof short_distance);
	return short_distance == distance;
}

/* The time in the processor's units: billions per second. */
static inline uint64_t weft__ticks(void)
{
	return __builtin_ia32_rdtsc();
}

#else
#error "weft: write the functions above for this architecture"
#endif

#endif
