/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For aarch64*.S: functions, how unwinders leave a coroutine, stacks for C code. frames_x86_64.h has the reasons. */
#ifndef WEFT_SRC_ARCH_FRAMES_AARCH64_H
#define WEFT_SRC_ARCH_FRAMES_AARCH64_H

/* clang-format off */
#include <weft/arch/offsets.h>

#include "arch/chunk.h"
#include "arch/region.h"

/* "bti j": these are jumped to. */
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define PAD hint #36
#else
#define PAD
#endif

/* A section each: the linker can leave out what a program does not reach. */
#define FUNCTION(name) \
	.section .text.name, "ax", %progbits; .p2align 4; .globl name; .type name, %function; name: .cfi_startproc

#define END(name) \
	.cfi_endproc; .size name, . - name

/* The file says that its code may lie in guarded pages, or the linker unguards those of the whole program. */
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define END_OF_FILE \
	.section .note.gnu.property, "a"; .p2align 3; .word 4, 16, 5; .asciz "GNU"; .word 0xc0000000, 4, 1, 0; \
	.section .note.GNU-stack, "", %progbits
#else
#define END_OF_FILE .section .note.GNU-stack, "", %progbits
#endif

#define DW_CFA_def_cfa_expression 0x0f
#define DW_CFA_expression 0x10
#define DW_OP_breg0 0x70
#define DW_OP_breg19 0x83
#define DW_OP_breg20 0x84
#define DW_OP_breg31 0x8f /* sp */
#define DW_OP_deref 0x06
#define DW_OP_const1u 0x08
#define DW_OP_and 0x1a
#define DW_OP_minus 0x1c
#define DW_OP_mul 0x1e
#define DW_OP_plus_uconst 0x23
#define DW_OP_shr 0x25
#define DW_OP_lit1 0x31
#define DWARF_X19 19
#define DWARF_FP 29
#define DWARF_LR 30 /* stands for the return address */

/* A field's offset in two bytes. */
#define LEB128(offset) ((offset) & 127) | 128, (offset) >> 7

/*
 * How an unwinder leaves a coroutine's first frame. While the coroutine runs, [sp] holds the address of the coroutine,
 * and the caller is the resume site: its sp is parent_sp, its pc is at parent_pc, x29 and x19 are at parent_fp and
 * parent_bx.
 */
#ifdef WEFT_CANARY_first_frame_without_caller
#define UNWIND_TO_PARENT(pc) .cfi_undefined 30
#else
#define UNWIND_TO_PARENT(pc) \
	UNWIND_BUT_PC; \
	.cfi_escape DW_CFA_expression, DWARF_LR, 6, DW_OP_breg31, 0, DW_OP_deref, DW_OP_plus_uconst, LEB128(pc)
#endif

#ifdef WEFT_CANARY_an_old_way_to_the_resumer
#define SECLUDED_BIT 31
#else
#define SECLUDED_BIT WEFT_SECLUDED_BIT
#endif
#define UNWIND_TO_OUTER \
	UNWIND_BUT_PC; \
	.cfi_escape DW_CFA_expression, DWARF_LR, 22, DW_OP_breg31, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_CORO_OUTER_PC), \
		DW_OP_breg31, 0, DW_OP_deref, DW_OP_plus_uconst, LEB128(WEFT_CORO_FLAGS), DW_OP_deref, \
		DW_OP_const1u, SECLUDED_BIT, DW_OP_shr, DW_OP_lit1, DW_OP_and, \
		DW_OP_const1u, WEFT_CORO_OUTER_PC - WEFT_LINK_PARENT_PC, DW_OP_mul, DW_OP_minus

#define UNWIND_BUT_PC \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 7, DW_OP_breg31, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_SP), DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_FP, 6, DW_OP_breg31, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_FP); \
	.cfi_escape DW_CFA_expression, DWARF_X19, 6, DW_OP_breg31, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_BX)

/* The same where a register holds the address of the coroutine, before there is a frame or after it. */
#define UNWIND_BY(register, pc) \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 4, register, LEB128(WEFT_LINK_PARENT_SP), DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_LR, 3, register, LEB128(pc); \
	.cfi_escape DW_CFA_expression, DWARF_FP, 3, register, LEB128(WEFT_LINK_PARENT_FP); \
	.cfi_escape DW_CFA_expression, DWARF_X19, 3, register, LEB128(WEFT_LINK_PARENT_BX)

/* A variable of the thread's to x5. Clobbers x6. */
#define TO_X5_OF_THREAD(variable) \
	adrp	x5, :gottprel:variable; \
	ldr	x5, [x5, #:gottprel_lo12:variable]; \
	mrs	x6, tpidr_el0; \
	ldr	x5, [x5, x6]

#define TO_X5_OF_GOT(name) \
	adrp	x5, :got:name; \
	ldr	x5, [x5, #:got_lo12:name]

#define TO_SP_OF_X5 \
	and	x5, x5, #-16; \
	mov	sp, x5

/* A stack with room for C: the thread's small stack, or the resumer's. Clobbers x5, x6. */
#define ROOMY_STACK(k) \
	TO_X5_OF_THREAD(weft__tls_growth); \
	cbnz	x5, 11f; \
	ldr	x5, [k, #WEFT_LINK_PARENT_SP]; \
11:	TO_SP_OF_X5

/* The thread's landing, for coroutines whose frames are moved in and out of a region; or else as above. */
#define ON_LANDING(k) \
	TO_X5_OF_THREAD(weft__tls_landing); \
	cbnz	x5, 12f; \
	ROOMY_STACK(k); \
	b	14f; \
12:	TO_SP_OF_X5; \
14:

/*
 * First landing pad. In: sp = top of the stack, 16-aligned; x0 = the coroutine, x29 = fn.
 * Calls fn(arg), arg from bx of the link; the result becomes the request {NULL, result}. fn is kept in the frame for
 * weft__owner_function.
 */
#define ENTRY(name, unwind) \
FUNCTION(name); \
	.cfi_personality 0x9b, .Lpersonality; \
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC); \
	PAD; \
	stp	x0, x29, [sp, #-16]!; \
	unwind; \
	mov	x5, x29; \
	add	x29, x0, #WEFT_LINK_PARENT_FP; /* with parent_pc a frame record: for profilers that follow x29 */ \
	ldr	x0, [x0, #WEFT_LINK_BX]; \
	blr	x5; \
	mov	x3, x0; \
	ldr	x0, [sp]; /* and not by x29: a clone's may have been saved by the original */ \
	ldr	x5, [x0, #WEFT_CORO_INNERMOST]; \
	cmp	x5, x0; \
	b.ne	4f; \
3: ; \
	TO_X5_OF_GOT(weft__in_finished); \
	mov	x2, #0; \
	str	x5, [x0, #WEFT_LINK_PC]; \
	.cfi_remember_state; \
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC); \
	ldp	x6, x29, [x0, #WEFT_LINK_PARENT_SP]; \
	ldr	x5, [x0, #WEFT_LINK_PARENT_PC]; \
	mov	sp, x6; \
	br	x5; \
	.cfi_restore_state; \
4: ; \
	str	x0, [x0, #WEFT_CORO_INNERMOST]; \
	b	3b; \
	.globl	name##_catch; \
	.hidden	name##_catch; \
name##_catch: /* weft__exception_left sends an exception here, in x0, all frames above unwound */ \
	PAD; \
	mov	x1, x0; \
	ldr	x0, [sp]; \
	bl	weft__thrown; \
	brk	#1; \
END(name)

	.hidden weft__exception_left, weft__thrown

/* Where the unwinder finds what to do with an exception that leaves a coroutine. Only .eh_frame refers to it: with
 * --gc-sections gold keeps such data if the section's name contains "personality". */
#define PERSONALITY \
	.section .data.rel.ro.local.personality, "aw", %progbits; \
	.p2align 3; \
.Lpersonality: \
	.xword	weft__exception_left

#endif
