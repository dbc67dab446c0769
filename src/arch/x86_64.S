/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What of a switch cannot be inlined, on x86-64 System V: a coroutine's first frame, its end, the landing pads that
 * report misuse, and the switches of coroutines that keep more state. README.md here draws the stacks.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   rdi = the coroutine, rsi = the value passed, rsp = its saved stack pointer, rbp = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with rax, rdx = the request, rdi = the coroutine, rsp and rbp = the parent's.
 */
#include <weft/arch/offsets.h>

#include "arch/chunk.h"
#include "arch/region.h"

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

/* A field's offset in two bytes. */
#define LEB128(offset) ((offset) & 127) | 128, (offset) >> 7
#ifdef WEFT_CANARY_first_frame_without_caller
#define UNWIND_TO_PARENT(pc) .cfi_undefined %rip
#else
#define UNWIND_TO_PARENT(pc) \
	UNWIND_BUT_PC; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 6, DW_OP_breg7, 0, DW_OP_deref, DW_OP_plus_uconst, LEB128(pc)
#endif

/* Its pc is outer_pc, but that of a secluded one parent_pc: at coroutine + OUTER_PC - secluded * (OUTER_PC - PARENT_PC). */
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

/* The same where a register holds the address of the coroutine, before there is a frame or after it. */
#define UNWIND_BY(register, pc) \
	.cfi_signal_frame; \
	.cfi_escape DW_CFA_def_cfa_expression, 4, register, LEB128(WEFT_LINK_PARENT_SP), DW_OP_deref; \
	.cfi_escape DW_CFA_expression, DWARF_RIP, 3, register, LEB128(pc); \
	.cfi_escape DW_CFA_expression, DWARF_RBP, 3, register, LEB128(WEFT_LINK_PARENT_FP); \
	.cfi_escape DW_CFA_expression, DWARF_RBX, 3, register, LEB128(WEFT_LINK_PARENT_BX)

/*
 * A stack with room for C, because a linked one may have none: the thread's small stack, or if there was no memory for one the
 * nearest contiguous one above k. Clobbers rax, r10.
 */
#define ROOMY_STACK(k) \
	movq	weft__tls_growth@gottpoff(%rip), %rax; \
	movq	%fs:(%rax), %rax; \
	testq	%rax, %rax; \
	jnz	11f; \
	CONTIGUOUS_ABOVE(k); \
11:	ON_STACK_OF_RAX

#define ON_STACK_OF_RAX \
	movq	%rax, %rsp; \
	testq	%rax, %rax; \
	js	13f; /* never; it lets Memcheck see the stack pointer change before the push */ \
13:	leaq	-128(%rsp), %rsp; \
	andq	$-16, %rsp

/*
 * First landing pad. In: rsp = top of the stack, 16-aligned.
 * Calls fn(arg); its result becomes the request {NULL, result}. The jump at the end keeps weft__leave, which has no caller to
 * describe, out of this frame's description.
 */
#define ENTRY(name, unwind) \
FUNCTION(name); \
	.cfi_personality 0x9b, .Lpersonality; \
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC); \
	PAD; \
	subq	$16, %rsp; \
	movq	%rdi, (%rsp); \
	unwind; \
	leaq	WEFT_LINK_PARENT_FP(%rdi), %rbp; /* with parent_pc a frame record: for profilers that follow rbp */ \
	movq	WEFT_CORO_FN(%rdi), %r11; \
	movq	WEFT_CORO_ID(%rdi), %rax; \
	movq	WEFT_CORO_VIEW(%rdi), %rdx; \
	shlq	$WEFT_VIEW_SHIFT, %rax; \
	movq	$0, WEFT_CORO_DEFERRED(%rdi); \
	movq	%rax, WEFT_CORO_VIEW(%rdi); \
	movq	%rdx, %rdi; \
	cmpq	$0, %fs:0x70; /* a linked stack? Then fn may be code that does not check */ \
	jne	2f; \
	call	*%r11; \
1: ; \
	movq	(%rsp), %rdi; \
	movq	%rax, %rdx; \
	xorl	%esi, %esi; \
	movq	%rdi, WEFT_CORO_LEAF(%rdi); \
	jmp	weft__leave; \
2: ; \
	xorl	%r10d, %r10d; \
	call	weft__icall; \
	jmp	1b; \
	.globl	name##_catch; \
	.hidden	name##_catch; \
name##_catch: /* weft__exception_left sends an exception here, in rax, all frames above unwound */ \
	movq	(%rsp), %rdi; \
	movq	%rax, %rsi; \
	cmpq	$0, %fs:0x70; \
	je	3f; \
	ROOMY_STACK(%rdi); /* nothing of the user's is called any more */ \
	pushq	%rdi; \
	pushq	%rdi; /* where the description above looks for it */ \
3:	call	weft__thrown; \
	ud2; \
END(name)

	.hidden weft__exception_left, weft__thrown, weft__tls_growth
ENTRY(weft__entry, UNWIND_TO_PARENT(WEFT_LINK_PARENT_PC))
/* For coroutines that keep more state or are copied (below). */
ENTRY(weft__entry_saving, UNWIND_TO_OUTER)

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
 * WEFT_SAVE_FPU, WEFT_SAVE_EXCEPTIONS. Such a coroutine is never resumed at its landing pad but at weft__land_saving, and its
 * parent_pc is weft__return_saving; the C functions they call exchange the state. The real addresses are in inner_pc and
 * outer_pc. Everybody else's switches do not change. Registers that a switch loses anyway keep ours across the calls; the
 * red zone of whoever's stack it is stays untouched.
 *
 * In: as any landing pad.
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

/* In: as any exit. */
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
 * Coroutines whose frames are moved in and out of a region (coro/copying.c). As above, but the C functions run on the
 * thread's landing: the coroutine's saved stack pointer is of no use, and what lies below the resumer's is another
 * policy's affair. A thread that has no landing yet does with its small stack.
 */
#define ON_LANDING(k) \
	movq	weft__tls_landing@gottpoff(%rip), %rax; \
	movq	%fs:(%rax), %rax; \
	testq	%rax, %rax; \
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

/* In: as any landing pad. */
	.hidden weft__tls_landing, weft__tls_thread
	.hidden weft__land_copying, weft__return_copying
	.hidden weft__enter_copying, weft__fail_copying
FUNCTION(weft__land_copying)
	UNWIND_BY(DW_OP_breg5, WEFT_LINK_PARENT_PC)
	PAD
	movq	WEFT_LINK_PARENT_PC(%rdi), %rax
	movq	%rax, WEFT_CORO_OUTER_PC(%rdi) /* before it is replaced */
	UNWIND_BY(DW_OP_breg5, WEFT_CORO_OUTER_PC)
	movq	%rdi, %r12
	UNWIND_BY(DW_OP_breg12, WEFT_CORO_OUTER_PC)
	movq	%rsi, %r13
	ON_LANDING(%rdi)
	call	weft__enter_copying
	movq	%r12, %rdi
	testb	%al, %al
	jz	3f
	movq	WEFT_LINK_SP(%rdi), %rsp /* which was of no use before */
	movq	%r13, %rsi
	jmp	*WEFT_CORO_INNER_PC(%rdi)
3:	movq	WEFT_LINK_PARENT_FP(%rdi), %rbp
	ROOMY_STACK(%rdi)
	call	weft__fail_copying
	ud2
END(weft__land_copying)

/* In: as any exit. */
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
 * Both again, where no C is needed as a rule: the landing pad of one that suspended itself in its own frames, with no
 * more state to keep, and the return after that. It needs some if its frames have left the region, which another thread
 * has perhaps, or are an image's too. See weft__region_hold_own about the order.
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
	cmpq	%rdi, WEFT_CORO_LEAF(%rdi)
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

/*
 * First landing pad of a switch sideways whose sender, in rax, needs more than the plain landing pad that the switch
 * stored. The sender's outer_pc is where `to` really lands.
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

/* Where the unwinder finds what to do with an exception that leaves a coroutine. */
	.section .data.rel.ro.local, "aw", @progbits
	.p2align 3
.Lpersonality:
	.quad	weft__exception_left

	.section .note.GNU-stack, "", @progbits
