/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What of a switch cannot be inlined, on x86-64 System V: a coroutine's first frame, its end, the landing pads that
 * report misuse. README.md here draws the stacks.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   rdi = the coroutine, rsi = the value passed, rsp = its saved stack pointer, rbp = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with rax, rdx = the request, rdi = the coroutine, rsp and rbp = the parent's.
 */
#include "arch/frames_x86_64.h"

ENTRY(weft__entry, UNWIND_TO_PARENT(WEFT_LINK_PARENT_PC))

/*
 * Finish a coroutine and hand its resumer a request, saving nothing.
 * In: rdi = coroutine, rsi = effect, rdx = payload. Clobbers rax, rcx. Does not return.
 */
	.hidden weft__leave
FUNCTION(weft__leave)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	movq	weft__in_finished@GOTPCREL(%rip), %rcx
	movq	%rcx, WEFT_LINK_PC(%rdi)
	movq	%rsi, %rax
	movq	WEFT_LINK_PARENT_SP(%rdi), %rsp
	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp
	jmp	*WEFT_LINK_PARENT_PC(%rdi)
END(weft__leave)

/*
 * Call fn(argument) so that an unwinder who leaves this frame comes to a suspended coroutine's. Nothing of the coroutine
 * is touched. In: rdi = its sp, pc, fp, bx, as in a link; rsi = fn; rdx = argument.
 */
#define DW_OP_breg6 0x76
	.hidden weft__walk_from
FUNCTION(weft__walk_from)
	PAD
	.cfi_signal_frame
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq	%rdi, %rbp
	.cfi_remember_state
	.cfi_escape DW_CFA_def_cfa_expression, 4, DW_OP_breg6, LEB128(WEFT_LINK_SP), DW_OP_deref
	.cfi_escape DW_CFA_expression, DWARF_RIP, 3, DW_OP_breg6, LEB128(WEFT_LINK_PC)
	.cfi_escape DW_CFA_expression, DWARF_RBP, 3, DW_OP_breg6, LEB128(WEFT_LINK_FP)
	.cfi_escape DW_CFA_expression, DWARF_RBX, 3, DW_OP_breg6, LEB128(WEFT_LINK_BX)
	movq	%rdx, %rdi
	call	*%rsi
	.cfi_restore_state
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
END(weft__walk_from)

/*
 * void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top): call fn(arg) on another stack; where that is a linked
 * one, fn may still be code that does not check.
 *
 * Two frames, because unwinders ask two things. The frame that leaves the other stack is a signal's: gdb takes a caller
 * whose stack lies elsewhere for corruption otherwise. But the caller of a signal's frame is looked up by its next
 * instruction and not by its call, and after a call of C or C++ may be the end of what has a cleanup. So that caller is here.
 */
FUNCTION(weft__enter_chunk)
	PAD
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	call	weft__on_chunk
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
END(weft__enter_chunk)

	.hidden weft__on_chunk
FUNCTION(weft__on_chunk)
	.cfi_signal_frame
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	%rdi, %r11
	movq	%rsi, %rdi
	movq	%rdx, %rsp
	cmpq	$0, %fs:0x70
	jne	2f
	call	*%r11
1:	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
2:	xorl	%r10d, %r10d
	call	weft__icall
	jmp	1b
END(weft__on_chunk)

/*
 * Misuse. The resume is undone as far as the stack goes (what rsp came with may be in use or gone), then reported;
 * the routine does not return, and a backtrace from it shows the resume site.
 */
#define MISUSE(name, code) \
FUNCTION(name); \
	.cfi_signal_frame; \
	PAD; \
	movq	WEFT_LINK_PARENT_SP(%rdi), %rbx; \
	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp; \
	movq	WEFT_LINK_PARENT_PC(%rdi), %rax; \
	leaq	-144(%rbx), %rsp; /* past the red zone */ \
	movq	%rax, -136(%rbx); \
	.cfi_def_cfa %rbx, 0; \
	.cfi_offset %rip, -136; \
	andq	$-16, %rsp; \
	movl	$code, %esi; \
	call	weft__die_misuse; \
	ud2; \
END(name)

	.hidden weft__die_misuse
MISUSE(weft__in_running, 1)
MISUSE(weft__in_finished, 2)
MISUSE(weft__in_deleted, 3)

PERSONALITY

	.section .note.GNU-stack, "", @progbits
