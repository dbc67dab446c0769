/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines whose frames are moved in and out of a region (coro/copying.c). Like WEFT_SAVE_FPU (x86_64_saving.S), but
 * the C functions run on the thread's landing.
 */
#include "arch/frames_x86_64.h"

/* In: as for each landing pad. */
	.hidden weft__tls_landing, weft__tls_thread
	.hidden weft__land_copying, weft__return_copying
	.hidden weft__enter_copying, weft__fail_copying
FUNCTION(weft__land_copying)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	PAD
	movq	WEFT_LINK_PARENT_PC(%rdi), %rax
	movq	%rax, WEFT_CORO_OUTER_PC(%rdi) /* before the C function replaces it */
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_CORO_OUTER_PC)
	movq	%rsi, %r13
	ON_LANDING(%rdi)
	call	weft__enter_copying
	movq	%r12, %rdi
	testb	%al, %al
	jz	3f
	movq	WEFT_LINK_SP(%rdi), %rsp /* valid only now */
	movq	%r13, %rsi
	jmp	*WEFT_CORO_INNER_PC(%rdi)
3:	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp
	ROOMY_STACK(%rdi)
	call	weft__fail_copying
	ud2
END(weft__land_copying)

/* In: as for each exit. */
	.hidden weft__leave_copying, weft__region_wake
FUNCTION(weft__return_copying)
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	PAD
	leaq	weft__leave_copying(%rip), %rcx
.Lreturn_calling: /* rcx */
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_CORO_OUTER_PC)
	movq	%rax, %r13
	movq	%rdx, %r14
	movq	%rsp, %rbx
	ON_LANDING(%rdi)
	call	*%rcx
	movq	%rbx, %rsp
	movq	%r14, %rdx
	movq	%r13, %rax
	movq	%r12, %rdi
	jmp	*WEFT_CORO_OUTER_PC(%rdi)
END(weft__return_copying)

/*
 * The fast paths of both, which usually call no C function: the landing pad of a coroutine that suspended itself in its
 * own frames, with no more state to keep, and the return after that. They call C if the coroutine's frames have left
 * the region, if another thread has the region, or if the frames also have an image. See weft__region_hold_own about
 * the order.
 */
	.hidden weft__land_parked, weft__return_parked
FUNCTION(weft__land_parked)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	PAD
	movq	WEFT_CORO_SLOT(%rdi), %rax
	movq	weft__tls_thread@gottpoff(%rip), %rdx
	movq	WEFT_COPIED_REGION(%rax), %rcx
	movq	%fs:(%rdx), %rdx
	testq	%rdx, %rdx
	jz	weft__land_copying
	incl	WEFT_THREAD_ENTERING(%rdx)
	cmpq	%rdx, WEFT_REGION_THREAD(%rcx)
	jne	1f
	cmpq	%rax, WEFT_REGION_OCCUPANT(%rcx)
	jne	1f
	cmpq	$0, WEFT_COPIED_IMAGE(%rax)
	jne	1f
#ifdef WEFT_CANARY_slow_to_take_a_region
	movl	$100000, %r8d
2:	decl	%r8d
	jnz	2b
#endif
	movb	$WEFT_REGION_RUNNING, WEFT_REGION_BUSY(%rcx)
	decl	WEFT_THREAD_ENTERING(%rdx)
	movq	WEFT_LINK_PARENT_PC(%rdi), %r8
	leaq	weft__return_parked(%rip), %rdx
	movq	%r8, WEFT_CORO_OUTER_PC(%rdi)
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	movq	%rdx, WEFT_LINK_PARENT_PC(%rdi)
	movq	WEFT_COPIED_SP(%rax), %rsp
	movq	$0, WEFT_COPIED_SP(%rax)
	jmp	*WEFT_CORO_INNER_PC(%rdi)
1:	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	decl	WEFT_THREAD_ENTERING(%rdx)
	jmp	weft__land_copying
END(weft__land_parked)

FUNCTION(weft__return_parked)
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	PAD
	movq	WEFT_LINK_PC(%rdi), %rcx
	cmpq	%rdi, WEFT_CORO_INNERMOST(%rdi)
	jne	weft__return_copying
	cmpq	weft__in_finished@GOTPCREL(%rip), %rcx
	je	weft__return_copying
	movq	weft__tls_landing@gottpoff(%rip), %r8
	movq	%fs:(%r8), %r8
	testq	%r8, %r8
	jz	weft__return_copying
	movq	WEFT_CORO_SLOT(%rdi), %r9
	movq	WEFT_LINK_SP(%rdi), %r10
	movq	%rcx, WEFT_CORO_INNER_PC(%rdi)
	leaq	weft__land_parked(%rip), %rcx
	movq	%rcx, WEFT_LINK_PC(%rdi)
	subq	$WEFT_LANDING_OWN, %r8
#ifndef WEFT_CANARY_signals_arrive_on_frames_of_others
	movq	%r8, WEFT_LINK_SP(%rdi)
#endif
	movq	%r10, WEFT_COPIED_SP(%r9)
	movq	weft__tls_thread@gottpoff(%rip), %r10
	movq	WEFT_COPIED_REGION(%r9), %r9
	movq	%fs:(%r10), %r10
	movb	$WEFT_REGION_IDLE, WEFT_REGION_BUSY(%r9)
	cmpq	%r10, WEFT_REGION_THREAD(%r9)
	jne	1f
	jmp	*WEFT_CORO_OUTER_PC(%rdi)
1:	leaq	weft__region_wake(%rip), %rcx
	jmp	.Lreturn_calling
END(weft__return_parked)

	.section .note.GNU-stack, "", @progbits
