/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The parts of a switch that cannot be inlined, on x86-64: a coroutine's first frame, its end, the landing pads that
 * report misuse. README.md in this directory draws the stacks.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   rdi = the coroutine, rsi = the value passed, rsp = its saved stack pointer, rbp = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with rax, rdx = the request, rdi = the coroutine, rsp and rbp = the parent's.
 */
#include "arch/frames_x86_64.h"

ENTRY(weft__entry, UNWIND_TO_PARENT(WEFT_LINK_PARENT_PC))

/*
 * Finish a coroutine and pass its resumer a request; no registers are saved. In: rdi = coroutine, rsi = effect, rdx =
 * payload. Clobbers rax, rcx. Does not return.
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
 * Call fn(argument) so that an unwinder that leaves this frame finds the frames of a suspended coroutine. The coroutine
 * is not touched. In: rdi = its sp, pc, fp, bx, as in a link; rsi = fn; rdx = argument.
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
 * void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top): call fn(arg) on another stack; if that is a
 * linked stack, fn may still be code that does not check.
 *
 * There are two frames, because unwinders have two requirements. The frame that leaves the other stack is a signal
 * frame: otherwise gdb reports corruption if the caller's stack is elsewhere. But the caller of a signal frame is
 * looked up by its next instruction, not by its call, and after a call in C or C++ that instruction may be outside of
 * the range that has a cleanup. So the caller is in this file.
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
 * The last stack: messages that end the process are written on it, because a chunk or a stack may have no room for
 * them. It is part of the library's data, so that it exists without free memory, and for threads that Weft has never
 * seen. `owner` is the number of the thread that uses it. The owner does not return, except by a longjmp out of a
 * handler of SIGABRT; then that thread begins at the top again, and another thread takes over the stack after WAITS
 * hundredths of a second. A thread that dies a second time while it is on this stack continues below its frames.
 *
 * CLAIM: load into rax the place where a frame may begin. Uses no stack. Clobbers rcx, rdi, rsi, r8, r9, r11.
 */
#define LAST_STACK_BYTES 16384
#define WAITS 100
#define SYS_NANOSLEEP 35
#define SYS_GETTID 186

#define CLAIM \
	movl	$SYS_GETTID, %eax; \
	syscall; \
	movl	%eax, %r8d; \
	movl	$WAITS, %r9d; \
21:	xorl	%eax, %eax; \
	lock cmpxchgl %r8d, .Lowner(%rip); \
	je	24f; \
	cmpl	%r8d, %eax; \
	je	23f; \
	decl	%r9d; \
	jz	22f; \
	movl	$SYS_NANOSLEEP, %eax; \
	leaq	.Lhundredth(%rip), %rdi; \
	xorl	%esi, %esi; \
	syscall; \
	jmp	21b; \
22:	movl	%r8d, .Lowner(%rip); \
	jmp	24f; \
23:	leaq	.Llast_stack(%rip), %rcx; \
	movq	%rsp, %rax; \
	subq	%rcx, %rax; \
	cmpq	$LAST_STACK_BYTES, %rax; \
	leaq	-128(%rsp), %rax; \
	jb	25f; \
24:	leaq	.Llast_stack + LAST_STACK_BYTES(%rip), %rax; \
25:	andq	$-16, %rax

#ifdef WEFT_FREESTANDING /* one thread, and no system calls */
#undef CLAIM
#define CLAIM leaq .Llast_stack + LAST_STACK_BYTES(%rip), %rax
#endif
#ifdef WEFT_CANARY_messages_stay_where_they_are
#undef CLAIM
#define CLAIM leaq -128(%rsp), %rax; andq $-16, %rax
#endif

	.local	.Lowner
	.comm	.Lowner, 4, 4
	.local	.Llast_stack
	.comm	.Llast_stack, LAST_STACK_BYTES, 64
	.section .rodata.weft__last_words, "a", @progbits
	.p2align 3
.Lhundredth:
	.quad	0, 10000000

/*
 * Call say(a, b, c, d, e), which does not return, on the last stack. In: rdi = say; rsi, rdx, rcx, r8, r9 = a to e. The
 * caller's frame stays in place, for backtraces.
 */
FUNCTION(weft__last_words)
	.cfi_signal_frame
	PAD
	movq	%rdi, %xmm0
	movq	%rsi, %xmm1
	movq	%rcx, %xmm2
	movq	%r8, %xmm3
	movq	%r9, %xmm4
	CLAIM
	movq	%rbx, -16(%rax)
	movq	%rsp, %rbx
	.cfi_def_cfa %rbx, 8
	leaq	-16(%rax), %rsp
	.cfi_escape DW_CFA_expression, DWARF_RBX, 2, DW_OP_breg7, 0
	movq	%xmm0, %rax
	movq	%xmm1, %rdi
	movq	%rdx, %rsi
	movq	%xmm2, %rdx
	movq	%xmm3, %rcx
	movq	%xmm4, %r8
	call	*%rax
	ud2
END(weft__last_words)

/*
 * Reports of misuse. The frame pointer of the resumer is restored, and the misuse is reported on the last stack: the
 * loaded rsp may point to a stack in use or unmapped, and the resumer's stack may have no room. A backtrace shows the
 * resume site.
 */
#define MISUSE(name, code) \
FUNCTION(name); \
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC); \
	PAD; \
	movl	$code, %edx; \
	jmp	weft__misused_resume; \
END(name)

	.hidden weft__die_misuse, weft__misused_resume
FUNCTION(weft__misused_resume)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_LINK_PARENT_PC)
	movq	WEFT_LINK_PARENT_SP(%rdi), %rsp
	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp
	CLAIM
	movq	%rax, %rsp
	movq	%r12, %rdi
	movl	%edx, %esi
	call	weft__die_misuse
	ud2
END(weft__misused_resume)

MISUSE(weft__in_running, 1)
MISUSE(weft__in_finished, 2)
MISUSE(weft__in_deleted, 3)

PERSONALITY

	.section .note.GNU-stack, "", @progbits
