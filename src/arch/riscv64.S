/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The parts of a switch that cannot be inlined, on RISC-V: a coroutine's first frame, its end, the landing pads that
 * report misuse. README.md in this directory draws the stacks; x86_64.S says more about each function.
 *
 * All landing pads are jumped to by weft_arch_resume or weft_arch_transfer with
 *   a0 = the coroutine, a1 = the value passed, sp = its saved stack pointer, s0 = its saved frame pointer,
 *   parent_sp, parent_pc, parent_fp set, pc = weft__in_running.
 * All exits jump to parent_pc with a2, a3 = the request, a0 = the coroutine, sp and s0 = the parent's.
 */
#include "arch/frames_riscv64.inc"

ENTRY(weft__entry, UNWIND_TO_PARENT(WEFT_LINK_PARENT_PC))

/*
 * Finish a coroutine and pass its resumer a request; no registers are saved. In: a0 = coroutine, a1 = effect, a2 =
 * payload. Does not return.
 */
	.hidden weft__leave
FUNCTION(weft__leave)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	la	t0, weft__in_finished
	mv	a3, a2
	sd	t0, WEFT_LINK_PC(a0)
	mv	a2, a1
	ld	t0, WEFT_LINK_PARENT_PC(a0)
	ld	sp, WEFT_LINK_PARENT_SP(a0)
	ld	s0, WEFT_LINK_PARENT_FP(a0)
	jr	t0
END(weft__leave)

/*
 * Call fn(argument) so that an unwinder that leaves this frame finds the frames of a suspended coroutine. The coroutine
 * is not touched. In: a0 = its sp, pc, fp, bx, as in a link; a1 = fn; a2 = argument.
 */
	.hidden weft__walk_from
FUNCTION(weft__walk_from)
	.cfi_signal_frame
	addi	sp, sp, -32
	.cfi_adjust_cfa_offset 32
	sd	ra, 24(sp)
	.cfi_rel_offset 1, 24
	sd	s0, 16(sp)
	.cfi_rel_offset 8, 16
	sd	s1, 8(sp)
	.cfi_rel_offset 9, 8
	mv	s1, a0
	.cfi_remember_state
	.cfi_escape DW_CFA_def_cfa_expression, 4, DW_OP_breg9, LEB128(WEFT_LINK_SP), DW_OP_deref
	.cfi_escape DW_CFA_expression, DWARF_RA, 3, DW_OP_breg9, LEB128(WEFT_LINK_PC)
	.cfi_escape DW_CFA_expression, DWARF_FP, 3, DW_OP_breg9, LEB128(WEFT_LINK_FP)
	.cfi_escape DW_CFA_expression, DWARF_BX, 3, DW_OP_breg9, LEB128(WEFT_LINK_BX)
	mv	a0, a2
	jalr	a1
	.cfi_restore_state
	ld	s1, 8(sp)
	ld	s0, 16(sp)
	ld	ra, 24(sp)
	addi	sp, sp, 32
	.cfi_adjust_cfa_offset -32
	.cfi_restore 9
	.cfi_restore 8
	.cfi_restore 1
	ret
END(weft__walk_from)

/*
 * void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top): call fn(arg) on another stack. It has two frames:
 * see x86_64.S.
 */
FUNCTION(weft__enter_chunk)
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sd	ra, 8(sp)
	.cfi_offset 1, -8
	call	weft__on_chunk
	ld	ra, 8(sp)
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	.cfi_restore 1
	ret
END(weft__enter_chunk)

	.hidden weft__on_chunk
FUNCTION(weft__on_chunk)
	.cfi_signal_frame
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sd	ra, 8(sp)
	.cfi_offset 1, -8
	sd	s0, 0(sp)
	.cfi_offset 8, -16
	addi	s0, sp, 16
	.cfi_def_cfa 8, 0
	mv	t0, a0
	mv	a0, a1
	andi	sp, a2, -16
	jalr	t0
	addi	sp, s0, -16
	.cfi_def_cfa 2, 16
	ld	s0, 0(sp)
	ld	ra, 8(sp)
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	.cfi_restore 8
	.cfi_restore 1
	ret
END(weft__on_chunk)

/*
 * The last stack: messages that end the process are written on it; see x86_64.S. CLAIM: load into t6 the place where a
 * frame may begin. Uses no stack. Clobbers a0, a1, a7, t0 to t5.
 */
#define LAST_STACK_BYTES 16384
#define WAITS 100
#define SYS_NANOSLEEP 101
#define SYS_GETTID 178

#define CLAIM \
	li	a7, SYS_GETTID; \
	ecall; \
	mv	t4, a0; \
	li	t5, WAITS; \
21:	lla	t3, .Lowner; \
26:	lr.w.aq	t0, (t3); \
	bnez	t0, 27f; \
	sc.w.rl	t1, t4, (t3); \
	bnez	t1, 26b; \
	j	24f; \
27:	beq	t0, t4, 23f; \
	addi	t5, t5, -1; \
	beqz	t5, 22f; \
	lla	a0, .Lhundredth; \
	li	a1, 0; \
	li	a7, SYS_NANOSLEEP; \
	ecall; \
	j	21b; \
22:	sw	t4, (t3); \
	j	24f; \
23:	lla	t0, .Llast_stack; \
	mv	t6, sp; \
	sub	t0, t6, t0; \
	li	t1, LAST_STACK_BYTES; \
	bltu	t0, t1, 25f; \
24:	lla	t6, .Llast_stack; \
	li	t0, LAST_STACK_BYTES; \
	add	t6, t6, t0; \
25:	andi	t6, t6, -16

#ifdef WEFT_FREESTANDING /* one thread, and no system calls */
#undef CLAIM
#define CLAIM lla t6, .Llast_stack; li t0, LAST_STACK_BYTES; add t6, t6, t0
#endif
#ifdef WEFT_CANARY_messages_stay_where_they_are
#undef CLAIM
#define CLAIM andi t6, sp, -16
#endif

	.local	.Lowner
	.comm	.Lowner, 4, 4
	.local	.Llast_stack
	.comm	.Llast_stack, LAST_STACK_BYTES, 64
	.section .rodata.weft__last_words, "a", %progbits
	.p2align 3
.Lhundredth:
	.dword	0, 10000000

/*
 * Call say(a, b, c, d, e), which does not return, on the last stack. In: a0 = say; a1 to a5 = a to e. The caller's
 * frame stays in place, for backtraces.
 */
FUNCTION(weft__last_words)
	.cfi_signal_frame
	mv	a6, a0
	mv	t2, a1
	CLAIM
	addi	t6, t6, -32
	sd	s0, 0(t6)
	sd	ra, 8(t6)
	sd	s1, 16(t6)
	mv	s1, sp
	.cfi_def_cfa 9, 0
	mv	sp, t6
	.cfi_escape DW_CFA_expression, DWARF_FP, 2, DW_OP_breg2, 0
	.cfi_escape DW_CFA_expression, DWARF_RA, 2, DW_OP_breg2, 8
	.cfi_escape DW_CFA_expression, DWARF_BX, 2, DW_OP_breg2, 16
	mv	a0, t2
	mv	a1, a2
	mv	a2, a3
	mv	a3, a4
	mv	a4, a5
	jalr	a6
	unimp
END(weft__last_words)

/*
 * Reports of misuse. The frame pointer of the resumer is restored, and the misuse is reported on the last stack: the
 * loaded sp may point to a stack in use or unmapped, and the resumer's stack may have no room. A backtrace shows the
 * resume site.
 */
#define MISUSE(name, code) \
FUNCTION(name); \
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC); \
	li	a1, code; \
	tail	weft__misused_resume; \
END(name)

	.hidden weft__die_misuse
FUNCTION(weft__misused_resume)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_LINK_PARENT_PC)
	mv	s3, a1
	ld	sp, WEFT_LINK_PARENT_SP(a0)
	ld	s0, WEFT_LINK_PARENT_FP(a0)
	CLAIM
	mv	sp, t6
	mv	a0, s2
	mv	a1, s3
	call	weft__die_misuse
	unimp
END(weft__misused_resume)

MISUSE(weft__in_running, 1)
MISUSE(weft__in_finished, 2)
MISUSE(weft__in_deleted, 3)

PERSONALITY

	END_OF_FILE
