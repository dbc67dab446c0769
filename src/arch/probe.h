/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code of `mmu` probes, which weft-as writes (tools/as/mmu.c): recognizing one, and replacing it by a jump while other
 * threads may execute it.
 *
 *	before       89 84 24 d d d d     movl %eax, -d(%rsp)
 *	meanwhile    f4 .. .. .. ..       hlt: a thread that comes faults, and the handler sends it to the jump's target
 *	after        e9 r r r r d d       jmp target
 *
 * One byte is written at first and at last, so that no processor ever fetches half of one instruction and half of
 * another. In between all processors are serialized. This is how Linux patches its own code, with int3 in place of hlt:
 * the signal of int3 is the debugger's.
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

/* A trap in a probe's place, or a jump: what a thread that was trapped may find there later. */
static inline bool weft__is_patched_probe(const unsigned char *code)
{
	return code[0] == WEFT__TRAP_CODE || code[0] == WEFT__JUMP_CODE;
}

/* The jump from `at` to `to`. False: it is too far. */
static inline bool weft__make_jump(unsigned char *code, const char *at, const char *to)
{
	intptr_t distance = to - (at + WEFT__JUMP_BYTES);
	int32_t short_distance = (int32_t)distance;

	code[0] = WEFT__JUMP_CODE;
	memcpy(code + 1, &short_distance, sizeof short_distance);
	return short_distance == distance;
}

/* Time in the processor's units: billions a second. */
static inline uint64_t weft__ticks(void)
{
	return __builtin_ia32_rdtsc();
}

#else
#error "weft: write the functions above for this architecture"
#endif

#endif
