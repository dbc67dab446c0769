/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The parts of a switch that cannot be inlined, on AArch64: a coroutine's first frame, its end, the landing pads that
 * report misuse. README.md in this directory draws the stacks; x86_64.S says more about each function.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   x0 = the coroutine, x1 = the value passed, sp = its saved stack pointer, x29 = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with x2, x3 = the request, x0 = the coroutine, sp and x29 = the parent's.
 */
#include "arch/frames_aarch64.inc"

ENTRY(weft__entry, UNWIND_TO_PARENT(WEFT_LINK_PARENT_PC))

/*
 * Finish a coroutine and pass its resumer a request; no registers are saved. In: x0 = coroutine, x1 = effect, x2 =
 * payload. Does not return.
 */
	.hidden weft__leave
FUNCTION(weft__leave)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	TO_X5_OF_GOT(weft__in_finished)
	mov	x3, x2
	str	x5, [x0, #WEFT_LINK_PC]
	mov	x2, x1
	ldp	x6, x29, [x0, #WEFT_LINK_PARENT_SP]
	ldr	x5, [x0, #WEFT_LINK_PARENT_PC]
	mov	sp, x6
	br	x5
END(weft__leave)

/*
 * Call fn(argument) so that an unwinder that leaves this frame finds the frames of a suspended coroutine. The coroutine
 * is not touched. In: x0 = its sp, pc, fp, bx, as in a link; x1 = fn; x2 = argument.
 */
	.hidden weft__walk_from
FUNCTION(weft__walk_from)
	.cfi_signal_frame
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset 29, 0
	.cfi_rel_offset 30, 8
	str	x19, [sp, #16]
	.cfi_rel_offset 19, 16
	mov	x19, x0
	.cfi_remember_state
	.cfi_escape DW_CFA_def_cfa_expression, 4, DW_OP_breg19, LEB128(WEFT_LINK_SP), DW_OP_deref
	.cfi_escape DW_CFA_expression, DWARF_LR, 3, DW_OP_breg19, LEB128(WEFT_LINK_PC)
	.cfi_escape DW_CFA_expression, DWARF_FP, 3, DW_OP_breg19, LEB128(WEFT_LINK_FP)
	.cfi_escape DW_CFA_expression, DWARF_X19, 3, DW_OP_breg19, LEB128(WEFT_LINK_BX)
	mov	x0, x2
	blr	x1
	.cfi_restore_state
	ldr	x19, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore 19
	.cfi_restore 29
	.cfi_restore 30
	ret
END(weft__walk_from)

/*
 * void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top): call fn(arg) on another stack. It has two frames:
 * see x86_64.S.
 */
FUNCTION(weft__enter_chunk)
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov	x29, sp
	.cfi_def_cfa_register 29
	bl	weft__on_chunk
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa 31, 0
	.cfi_restore 29
	.cfi_restore 30
	ret
END(weft__enter_chunk)

	.hidden weft__on_chunk
FUNCTION(weft__on_chunk)
	.cfi_signal_frame
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov	x29, sp
	.cfi_def_cfa_register 29
	mov	x9, x0
	mov	x0, x1
	and	x2, x2, #-16
	mov	sp, x2
	blr	x9
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa 31, 0
	.cfi_restore 29
	.cfi_restore 30
	ret
END(weft__on_chunk)

/*
 * The last stack: messages that end the process are written on it; see x86_64.S. CLAIM: load into x9 the place where a
 * frame may begin. Uses no stack. Clobbers x0, x1, x5 to x9, x16, x17.
 */
#define LAST_STACK_BYTES 16384
#define WAITS 100
#define SYS_NANOSLEEP 101
#define SYS_GETTID 178

#define ADDRESS(register, symbol) \
	adrp	register, symbol; \
	add	register, register, #:lo12:symbol

#define CLAIM \
	mov	x8, #SYS_GETTID; \
	svc	#0; \
	mov	w16, w0; \
	mov	w17, #WAITS; \
21:	ADDRESS(x7, .Lowner); \
26:	ldaxr	w6, [x7]; \
	cbnz	w6, 27f; \
	stlxr	w5, w16, [x7]; \
	cbnz	w5, 26b; \
	b	24f; \
27:	clrex; \
	cmp	w6, w16; \
	b.eq	23f; \
	subs	w17, w17, #1; \
	b.eq	22f; \
	ADDRESS(x0, .Lhundredth); \
	mov	x1, #0; \
	mov	x8, #SYS_NANOSLEEP; \
	svc	#0; \
	b	21b; \
22:	str	w16, [x7]; \
	b	24f; \
23:	ADDRESS(x6, .Llast_stack); \
	mov	x9, sp; \
	sub	x5, x9, x6; \
	cmp	x5, #LAST_STACK_BYTES; \
	b.lo	25f; \
24:	ADDRESS(x9, .Llast_stack); \
	add	x9, x9, #LAST_STACK_BYTES; \
25:	and	x9, x9, #-16

#ifdef WEFT_FREESTANDING /* one thread, and no system calls */
#undef CLAIM
#define CLAIM ADDRESS(x9, .Llast_stack); add x9, x9, #LAST_STACK_BYTES
#endif
#ifdef WEFT_CANARY_messages_stay_where_they_are
#undef CLAIM
#define CLAIM mov x9, sp; and x9, x9, #-16
#endif

	.local	.Lowner
	.comm	.Lowner, 4, 4
	.local	.Llast_stack
	.comm	.Llast_stack, LAST_STACK_BYTES, 64
	.section .rodata.weft__last_words, "a", %progbits
	.p2align 3
.Lhundredth:
	.xword	0, 10000000

/*
 * Call say(a, b, c, d, e), which does not return, on the last stack. In: x0 = say; x1 to x5 = a to e. The caller's
 * frame stays in place, for backtraces.
 */
FUNCTION(weft__last_words)
	.cfi_signal_frame
	mov	x10, x0
	mov	x11, x1
	mov	x12, x2
	mov	x13, x3
	mov	x14, x4
	mov	x15, x5
	CLAIM
	sub	x9, x9, #32
	stp	x29, x30, [x9]
	str	x19, [x9, #16]
	mov	x19, sp
	.cfi_def_cfa 19, 0
	mov	sp, x9
	.cfi_escape DW_CFA_expression, DWARF_FP, 2, DW_OP_breg31, 0
	.cfi_escape DW_CFA_expression, DWARF_LR, 2, DW_OP_breg31, 8
	.cfi_escape DW_CFA_expression, DWARF_X19, 2, DW_OP_breg31, 16
	mov	x0, x11
	mov	x1, x12
	mov	x2, x13
	mov	x3, x14
	mov	x4, x15
	blr	x10
	brk	#1
END(weft__last_words)

/*
 * Reports of misuse. The frame pointer of the resumer is restored, and the misuse is reported on the last stack: the
 * loaded sp may point to a stack in use or unmapped, and the resumer's stack may have no room. A backtrace shows the
 * resume site.
 */
#define MISUSE(name, code) \
FUNCTION(name); \
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC); \
	PAD; \
	mov	w1, code; \
	b	weft__misused_resume; \
END(name)

	.hidden weft__die_misuse
FUNCTION(weft__misused_resume)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_LINK_PARENT_PC)
	mov	w21, w1
	ldp	x6, x29, [x0, #WEFT_LINK_PARENT_SP]
	mov	sp, x6
	CLAIM
	mov	sp, x9
	mov	x0, x20
	mov	w1, w21
	bl	weft__die_misuse
	brk	#1
END(weft__misused_resume)

MISUSE(weft__in_running, 1)
MISUSE(weft__in_finished, 2)
MISUSE(weft__in_deleted, 3)

PERSONALITY

	END_OF_FILE
