/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Macros for x86_64*.S: functions, the way of unwinders out of a coroutine, stacks for C code. */
#ifndef WEFT_SRC_ARCH_FRAMES_X86_64_H
#define WEFT_SRC_ARCH_FRAMES_X86_64_H

/* clang-format off */
#include <weft/detail/arch/offsets.h>

#include "arch/chunk.h"
#include "arch/region.h"

#if defined(__CET__) && (__CET__ & 1)
#define PAD endbr64
#else
#define PAD
#endif

/* Each function has a section of its own, so that the linker can leave it out of programs that do not use it. */
#define FUNCTION(name) \
	.section .text.name, "ax", @progbits; .p2align 4; .globl name; .type name, @function; name: .cfi_startproc

#define END(name) \
	.cfi_endproc; .size name, . - name

/*
 * An unwinder leaves a coroutine's first frame as follows. While the coroutine runs, [rsp] holds the address of the
 * coroutine, and the caller is the resume site:
 *   CFA (the caller's rsp)   = coroutine->parent_sp      breg7 0; deref; plus_uconst PARENT_SP; deref
 *   its pc                   at &coroutine->parent_pc    breg7 0; deref; plus_uconst PARENT_PC
 *   its rbp, rbx             at &coroutine->parent_fp, parent_bx
 * The resume site declares r12 to r15 clobbered: that function has saved their values. The frame is marked as a signal
 * frame, because two properties of signal frames hold: the caller's pc is the next instruction to run there, not the
 * instruction after a call, and the caller's stack need not be above this stack (otherwise debuggers report
 * corruption). A parent_pc of zero (never resumed) ends the walk.
 */
#define DW_CFA_def_cfa_expression 0x0f
#define DW_CFA_expression 0x10
#define DW_OP_breg5 0x75
#define DW_OP_breg7 0x77
#define DW_OP_breg12 0x7c
#define DW_OP_deref 0x06
#define DW_OP_const1u 0x08
#define DW_OP_and 0x1a
#define DW_OP_minus 0x1c
#define DW_OP_mul 0x1e
#define DW_OP_plus_uconst 0x23
#define DW_OP_shr 0x25
#define DW_OP_lit1 0x31
#define DWARF_RBX 3
#define DWARF_RBP 6
#define DWARF_RIP 16

/* The offset of a field, in two bytes. */
#define LEB128(offset) ((offset) & 127) | 128, (offset) >> 7
#ifdef WEFT_CANARY_first_frame_without_caller
#define UNWIND_TO_PARENT(pc) .cfi_undefined %rip
#else
#define UNWIND_TO_PARENT(pc) \
	UNWIND_BUT_PC; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 6, DW_OP_breg7, 0, DW_OP_deref, DW_OP_plus_uconst, LEB128(pc)
#endif

/* The caller's pc is in outer_pc, or in parent_pc if the coroutine is secluded: at coroutine + OUTER_PC - secluded *
 * (OUTER_PC - PARENT_PC). */
#ifdef WEFT_CANARY_an_old_way_to_the_resumer
#define SECLUDED_BIT 31
#else
#define SECLUDED_BIT WEFT_SECLUDED_BIT
#endif
#define UNWIND_TO_OUTER \
	UNWIND_BUT_PC; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 22, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_CORO_OUTER_PC), \
		DW_OP_breg7, 0, DW_OP_deref, DW_OP_plus_uconst, LEB128(WEFT_CORO_FLAGS), DW_OP_deref, \
		DW_OP_const1u, SECLUDED_BIT, DW_OP_shr, DW_OP_lit1, DW_OP_and, \
		DW_OP_const1u, WEFT_CORO_OUTER_PC - WEFT_LINK_PARENT_PC, DW_OP_mul, DW_OP_minus

#define UNWIND_BUT_PC \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 7, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_SP), DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_RBP, 6, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_FP); \
	.cfi_escape DW_CFA_expression, DWARF_RBX, 6, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, LEB128(WEFT_LINK_PARENT_BX)

/* The rules for when a register holds the address of the coroutine, before there is a frame or after it. */
#define UNWIND_BY(register, pc) \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 4, register, LEB128(WEFT_LINK_PARENT_SP), DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 3, register, LEB128(pc); \
	.cfi_escape DW_CFA_expression, DWARF_RBP, 3, register, LEB128(WEFT_LINK_PARENT_FP); \
	.cfi_escape DW_CFA_expression, DWARF_RBX, 3, register, LEB128(WEFT_LINK_PARENT_BX)

/* Load a pointer variable of the thread; ZF: it is NULL. */
#define TO_RAX_OF_THREAD(variable) \
	movq	variable@gottpoff(%rip), %rax; \
	movq	%fs:(%rax), %rax; \
	testq	%rax, %rax

/*
 * Switch to a stack with room for C, because a linked stack may have none: the thread's small stack, or, if there was
 * no memory for it, the nearest contiguous stack above k. Clobbers rax, r10.
 */
#define ROOMY_STACK(k) \
	TO_RAX_OF_THREAD(weft__tls_growth); \
	jnz	11f; \
	CONTIGUOUS_ABOVE(k); \
11:	ON_STACK_OF_RAX

#define ON_STACK_OF_RAX \
	movq	%rax, %rsp; \
	testq	%rax, %rax; \
	js	13f; /* never taken; it lets Memcheck see the stack pointer change before the push */ \
13:	leaq	-128(%rsp), %rsp; \
	andq	$-16, %rsp

/*
 * Switch to the thread's landing, for coroutines whose frames are moved in and out of a region (coro/copying.c). Their
 * saved stack pointer cannot be used, and the memory below the resumer's stack pointer is governed by another policy. A
 * thread without a landing uses its small stack.
 */
#define ON_LANDING(k) \
	TO_RAX_OF_THREAD(weft__tls_landing); \
	jnz	12f; \
	STACK_WITHOUT_LANDING(k); \
	jmp	14f; \
12:	ON_STACK_OF_RAX; \
14:
#ifdef WEFT_CANARY_c_code_on_a_heap_frame
#define STACK_WITHOUT_LANDING(k) movq WEFT_LINK_PARENT_SP(k), %rax; ON_STACK_OF_RAX
#else
#define STACK_WITHOUT_LANDING(k) ROOMY_STACK(k)
#endif

/*
 * The first landing pad. In: rsp = top of the stack, 16-aligned. Calls fn(arg), with fn from rbp and arg from bx of the
 * link; the result becomes the request {NULL, result}. fn is kept in the frame for weft__owner_function.
 */
#define ENTRY(name, unwind) \
FUNCTION(name); \
	.cfi_personality 0x9b, .Lpersonality; \
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC); \
	PAD; \
	pushq	%rbp; \
	pushq	%rdi; \
	unwind; \
	movq	%rbp, %r11; \
	leaq	WEFT_LINK_PARENT_FP(%rdi), %rbp; /* with parent_pc a frame record, for profilers by rbp */ \
	movq	WEFT_LINK_BX(%rdi), %rdi; \
	cmpq	$0, %fs:0x70; /* on a linked stack fn may be code that does not check */ \
	jne	2f; \
	call	*%r11; \
1: ; \
	movq	(%rsp), %rdi; /* not by rbp: the original may have saved the clone's rbp */ \
	movq	%rax, %rdx; \
	cmpq	%rdi, WEFT_CORO_INNERMOST(%rdi); \
	jne	4f; \
3: ; \
	movq	weft__in_finished@GOTPCREL(%rip), %rcx; \
	xorl	%eax, %eax; \
	movq	%rcx, WEFT_LINK_PC(%rdi); \
	.cfi_remember_state; \
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC); \
	movq	WEFT_LINK_PARENT_SP(%rdi), %rsp; \
	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp; \
	jmp	*WEFT_LINK_PARENT_PC(%rdi); \
	.cfi_restore_state; \
4: ; \
	movq	%rdi, WEFT_CORO_INNERMOST(%rdi); \
	jmp	3b; \
2: ; \
	xorl	%r10d, %r10d; \
	call	weft__icall; \
	jmp	1b; \
	.globl	name##_catch; \
	.hidden	name##_catch; \
name##_catch: /* weft__exception_left sends an exception here, in rax; all frames above are unwound */ \
	movq	(%rsp), %rdi; \
	movq	%rax, %rsi; \
	cmpq	$0, %fs:0x70; \
	je	5f; \
	ROOMY_STACK(%rdi); /* no code of the user is called after this */ \
	pushq	%rdi; \
	pushq	%rdi; /* where the unwind rules above expect it */ \
5:	call	weft__thrown; \
	ud2; \
END(name)

	.hidden weft__exception_left, weft__thrown, weft__tls_growth
	.weak	weft__icall /* defined by a part: see stack/policies.c */

/* The pointer to the personality routine for exceptions that leave a coroutine. Only .eh_frame refers to it: with
 * --gc-sections gold keeps this data if the section's name contains "personality". */
#define PERSONALITY \
	.section .data.rel.ro.local.personality, "aw", @progbits; \
	.p2align 3; \
.Lpersonality: \
	.quad	weft__exception_left

#endif
