/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that keep more state than registers, or are copied (x86_64_copying.S): their first frame, and switches. */
#include "arch/frames_x86_64.h"

ENTRY(weft__entry_saving, UNWIND_TO_OUTER)

/*
 * WEFT_SAVE_FPU, WEFT_SAVE_EXCEPTIONS. A coroutine with these attributes is never resumed at its own landing pad but at
 * weft__land_saving, and its parent_pc is weft__return_saving; the C functions that they call exchange the state. The
 * real addresses are in inner_pc and outer_pc. Switches of other coroutines do not change. Registers that a switch
 * clobbers hold the values across the calls; the red zone of the current stack stays untouched.
 *
 * In: as for each landing pad.
 */
	.hidden weft__land_saving
	.hidden weft__enter_saving
FUNCTION(weft__land_saving)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	PAD
	movq	WEFT_LINK_PARENT_PC(%rdi), %rax
	movq	%rax, WEFT_CORO_OUTER_PC(%rdi) /* before the C function replaces it */
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_CORO_OUTER_PC)
	movq	%rsi, %r13
	movq	%rsp, %rbx
	ROOMY_STACK(%r12)
	call	weft__enter_saving
	movq	%rbx, %rsp
	movq	%r13, %rsi
	movq	%r12, %rdi
	jmp	*WEFT_CORO_INNER_PC(%rdi)
END(weft__land_saving)

/* In: as for each exit. */
	.hidden weft__return_saving
	.hidden weft__leave_saving
FUNCTION(weft__return_saving)
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	PAD
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_CORO_OUTER_PC)
	movq	%rax, %r13
	movq	%rdx, %r14
	movq	%rsp, %rbx
	ROOMY_STACK(%r12)
	call	weft__leave_saving
	movq	%rbx, %rsp
	movq	%r14, %rdx
	movq	%r13, %rax
	movq	%r12, %rdi
	jmp	*WEFT_CORO_OUTER_PC(%rdi)
END(weft__return_saving)

/*
 * The first landing pad of a switch sideways whose sender, in rax, needs more than the plain landing pad that the
 * switch stored. The sender's outer_pc is the real landing pad of `to`.
 */
	.hidden weft__land_switched, weft__switched
FUNCTION(weft__land_switched)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	PAD
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_LINK_PARENT_PC)
	movq	%rsi, %r13
	movq	%rax, %r14
	movq	%rax, %rdi
	ON_LANDING(%r12)
	call	weft__switched
	movq	WEFT_LINK_SP(%r12), %rsp
	movq	%r13, %rsi
	movq	%r12, %rdi
	jmp	*WEFT_CORO_OUTER_PC(%r14)
END(weft__land_switched)

PERSONALITY

	.section .note.GNU-stack, "", @progbits
