/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What of a switch cannot be inlined, on x86-64 System V: a coroutine's first frame, its end, the landing pads that
 * report misuse, and the control words of coroutines that ask for them. README.md here draws the stacks.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   rdi = the coroutine, rsi = the value passed, rsp = its saved stack pointer, rbp = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with rax, rdx = the request, rdi = the coroutine, rsp and rbp = the parent's.
 */
#include <weft/arch/offsets.h>

#if defined(__CET__) && (__CET__ & 1)
#define PAD endbr64
#else
#define PAD
#endif

#define FUNCTION(name) \
	.text; .p2align 4; .globl name; .type name, @function; name: .cfi_startproc

#define END(name) \
	.cfi_endproc; .size name, . - name

/*
 * How an unwinder leaves a coroutine's first frame. While the coroutine runs, [rsp] holds the address of the coroutine,
 * and the caller is the resume site:
 *   CFA (the caller's rsp)   = coroutine->parent_sp      breg7 0; deref; plus_uconst PARENT_SP; deref
 *   its pc                   at &coroutine->parent_pc    breg7 0; deref; plus_uconst PARENT_PC
 *   its rbp, rbx             at &coroutine->parent_fp, parent_bx
 * r12 to r15 were declared lost at the resume site: their values are where that function saved them.
 * The frame is marked as a signal frame, for two reasons that are true of it: the caller's pc is the next instruction to
 * run there and not one after a call, and the caller's stack need not lie above this one's (debuggers take that for
 * corruption otherwise). A parent_pc of zero (never resumed) ends the walk.
 */
#define DW_CFA_def_cfa_expression 0x0f
#define DW_CFA_expression 0x10
#define DW_OP_breg7 0x77
#define DW_OP_deref 0x06
#define DW_OP_plus_uconst 0x23
#define DWARF_RBX 3
#define DWARF_RBP 6
#define DWARF_RIP 16

#if WEFT_CORO_OUTER_PC < 128 || WEFT_CORO_OUTER_PC > 255 || WEFT_LINK_PARENT_BX > 127
#error "offsets below are encoded as one and two LEB128 bytes"
#endif
#define UNWIND_TO_PARENT(pc_bytes, pc...) \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, WEFT_LINK_PARENT_SP, DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 4 + pc_bytes, DW_OP_breg7, 0, DW_OP_deref, DW_OP_plus_uconst, pc; \
	.cfi_escape DW_CFA_expression, DWARF_RBP, 5, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, WEFT_LINK_PARENT_FP; \
	.cfi_escape DW_CFA_expression, DWARF_RBX, 5, DW_OP_breg7, 0, DW_OP_deref, \
		DW_OP_plus_uconst, WEFT_LINK_PARENT_BX

/*
 * First landing pad. In: rsp = top of the stack, 16-aligned.
 * Calls fn(arg); its result becomes the request {NULL, result}.
 */
	.hidden weft__exception_left
FUNCTION(weft__entry)
	.cfi_personality 0x9b, .Lpersonality
	PAD
	subq	$16, %rsp
	movq	%rdi, (%rsp)
	UNWIND_TO_PARENT(1, WEFT_LINK_PARENT_PC)
	movq	WEFT_CORO_FN(%rdi), %rax
	movq	WEFT_CORO_ARG(%rdi), %rdi
	xorl	%ebp, %ebp
	call	*%rax
	movq	(%rsp), %rdi
	movq	%rax, %rdx
	xorl	%esi, %esi
	/* Fall through would be into another function's frame description; the jump is free next to what follows. */
	jmp	weft__leave
END(weft__entry)

/*
 * Finish a coroutine and hand its resumer a request, saving nothing.
 * In: rdi = coroutine, rsi = effect, rdx = payload. Clobbers rax, rcx. Does not return.
 */
	.hidden weft__leave
FUNCTION(weft__leave)
	.cfi_undefined %rip
	leaq	weft__in_finished(%rip), %rcx
	movq	%rcx, WEFT_LINK_PC(%rdi)
	movq	%rsi, %rax
	movq	WEFT_LINK_PARENT_SP(%rdi), %rsp
	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp
	jmp	*WEFT_LINK_PARENT_PC(%rdi)
END(weft__leave)

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

/*
 * WEFT_SAVE_FPU. Such a coroutine is never resumed at its landing pad but at weft__land_fpu, which exchanges the control
 * words, and its parent_pc is weft__return_fpu, which exchanges them back. The real addresses are in inner_pc and
 * outer_pc. Everybody else's switches do not change.
 *
 * In: as any landing pad.
 */
#define SAVE_FPU(at) \
	stmxcsr	at(%rdi); \
	fnstcw	at + 4(%rdi)
#define LOAD_FPU(at) \
	ldmxcsr	at(%rdi); \
	fldcw	at + 4(%rdi)

	.hidden weft__land_fpu
FUNCTION(weft__land_fpu)
	.cfi_undefined %rip
	PAD
	SAVE_FPU(WEFT_CORO_PARENT_FPU)
	LOAD_FPU(WEFT_CORO_FPU)
	movq	WEFT_LINK_PARENT_PC(%rdi), %rax
	movq	%rax, WEFT_CORO_OUTER_PC(%rdi)
	leaq	weft__return_fpu(%rip), %rax
	movq	%rax, WEFT_LINK_PARENT_PC(%rdi)
	jmp	*WEFT_CORO_INNER_PC(%rdi)
END(weft__land_fpu)

/* In: rdi = coroutine, rax, rdx = request, the parent's rsp and rbp. If the coroutine suspended, its landing pad moves to
 * inner_pc; if it finished, its pc stays. */
	.hidden weft__return_fpu
FUNCTION(weft__return_fpu)
	.cfi_undefined %rip
	PAD
	SAVE_FPU(WEFT_CORO_FPU)
	LOAD_FPU(WEFT_CORO_PARENT_FPU)
	movq	WEFT_LINK_PC(%rdi), %rcx
	leaq	weft__in_finished(%rip), %r8
	cmpq	%rcx, %r8
	je	1f
	movq	%rcx, WEFT_CORO_INNER_PC(%rdi)
	leaq	weft__land_fpu(%rip), %rcx
	movq	%rcx, WEFT_LINK_PC(%rdi)
1:	jmp	*WEFT_CORO_OUTER_PC(%rdi)
END(weft__return_fpu)

/* First frame of a coroutine with WEFT_SAVE_FPU: the caller's pc is outer_pc. */
FUNCTION(weft__entry_fpu)
	.cfi_personality 0x9b, .Lpersonality
	PAD
	subq	$16, %rsp
	movq	%rdi, (%rsp)
	UNWIND_TO_PARENT(2, (WEFT_CORO_OUTER_PC & 127) | 128, WEFT_CORO_OUTER_PC >> 7)
	movq	WEFT_CORO_FN(%rdi), %rax
	movq	WEFT_CORO_ARG(%rdi), %rdi
	xorl	%ebp, %ebp
	call	*%rax
	movq	(%rsp), %rdi
	movq	%rax, %rdx
	xorl	%esi, %esi
	jmp	weft__leave
END(weft__entry_fpu)

/* Where the unwinder finds what to do with an exception that leaves a coroutine. */
	.section .data.rel.ro.local, "aw", @progbits
	.p2align 3
.Lpersonality:
	.quad	weft__exception_left

	.section .note.GNU-stack, "", @progbits
