/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines whose frames are moved in and out of a region (coro/copying.c). Like WEFT_SAVE_FPU (riscv64_saving.S), but
 * the C functions run on the thread's landing. See x86_64_copying.S.
 */
#include "arch/frames_riscv64.inc"

/* In: as for each landing pad. */
	.hidden weft__tls_landing, weft__tls_thread, weft__tls_growth
	.hidden weft__land_copying, weft__return_copying
	.hidden weft__enter_copying, weft__fail_copying
FUNCTION(weft__land_copying)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	ld	t0, WEFT_LINK_PARENT_PC(a0)
	sd	t0, WEFT_CORO_OUTER_PC(a0) /* before the C function replaces it */
	UNWIND_BY(DW_OP_breg10, WEFT_CORO_OUTER_PC)
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_CORO_OUTER_PC)
	mv	s3, a1
	ON_LANDING(s2)
	mv	a0, s2
	call	weft__enter_copying
	andi	t0, a0, 0xff
	mv	a0, s2
	beqz	t0, 3f
	ld	t0, WEFT_LINK_SP(a0) /* valid only now */
	mv	sp, t0
	mv	a1, s3
	ld	t0, WEFT_CORO_INNER_PC(a0)
	jr	t0
3:	ld	s0, WEFT_LINK_PARENT_FP(a0)
	ROOMY_STACK(s2)
	call	weft__fail_copying
	unimp
END(weft__land_copying)

/* In: as for each exit. */
	.hidden weft__leave_copying, weft__region_wake
FUNCTION(weft__return_copying)
	UNWIND_BY(DW_OP_breg10, WEFT_CORO_OUTER_PC)
	lla	t2, weft__leave_copying
.Lreturn_calling: /* t2 */
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_CORO_OUTER_PC)
	mv	s3, a2
	mv	s4, a3
	mv	s5, sp
	ON_LANDING(s2)
	mv	a0, s2
	jalr	t2
	mv	sp, s5
	mv	a3, s4
	mv	a2, s3
	mv	a0, s2
	ld	t0, WEFT_CORO_OUTER_PC(a0)
	jr	t0
END(weft__return_copying)

/* The fast paths of both, which usually call no C function. See weft__region_hold_own about the order. */
	.hidden weft__land_parked, weft__return_parked
FUNCTION(weft__land_parked)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	ld	t2, WEFT_CORO_SLOT(a0)
	TO_T0_OF_THREAD(weft__tls_thread)
	ld	t3, WEFT_COPIED_REGION(t2)
	beqz	t0, 4f
	/* Only this thread and its signal handlers change the counter. */
	lw	t4, WEFT_THREAD_ENTERING(t0)
	addiw	t4, t4, 1
	sw	t4, WEFT_THREAD_ENTERING(t0)
	ld	t5, WEFT_REGION_THREAD(t3)
	fence	r, rw /* acquire */
	bne	t5, t0, 1f
	ld	t5, WEFT_REGION_OCCUPANT(t3)
	bne	t5, t2, 1f
	ld	t5, WEFT_COPIED_IMAGE(t2)
	bnez	t5, 1f
	li	t5, WEFT_REGION_RUNNING
	sb	t5, WEFT_REGION_BUSY(t3)
	addiw	t4, t4, -1
	fence	rw, w /* after the region is marked as in use */
	sw	t4, WEFT_THREAD_ENTERING(t0)
	ld	t5, WEFT_LINK_PARENT_PC(a0)
	lla	t4, weft__return_parked
	sd	t5, WEFT_CORO_OUTER_PC(a0)
	UNWIND_BY(DW_OP_breg10, WEFT_CORO_OUTER_PC)
	sd	t4, WEFT_LINK_PARENT_PC(a0)
	ld	t5, WEFT_COPIED_SP(t2)
	mv	sp, t5
	sd	zero, WEFT_COPIED_SP(t2)
	ld	t0, WEFT_CORO_INNER_PC(a0)
	jr	t0
1:	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	addiw	t4, t4, -1
	sw	t4, WEFT_THREAD_ENTERING(t0)
4:	tail	weft__land_copying
END(weft__land_parked)

FUNCTION(weft__return_parked)
	UNWIND_BY(DW_OP_breg10, WEFT_CORO_OUTER_PC)
	ld	t2, WEFT_LINK_PC(a0)
	ld	t0, WEFT_CORO_INNERMOST(a0)
	bne	t0, a0, 3f
	la	t0, weft__in_finished
	beq	t2, t0, 3f
	TO_T0_OF_THREAD(weft__tls_landing)
	beqz	t0, 3f
	ld	t3, WEFT_CORO_SLOT(a0)
	ld	t4, WEFT_LINK_SP(a0)
	sd	t2, WEFT_CORO_INNER_PC(a0)
	lla	t2, weft__land_parked
	sd	t2, WEFT_LINK_PC(a0)
	li	t5, WEFT_LANDING_OWN
	sub	t0, t0, t5
#ifndef WEFT_CANARY_signals_arrive_on_frames_of_others
	sd	t0, WEFT_LINK_SP(a0)
#endif
	sd	t4, WEFT_COPIED_SP(t3)
	TO_T0_OF_THREAD(weft__tls_thread)
	ld	t3, WEFT_COPIED_REGION(t3)
	li	t2, WEFT_REGION_IDLE
	fence	rw, w /* release: a thread that takes the region reads the words above, */
	sb	t2, WEFT_REGION_BUSY(t3)
	fence	rw, rw /* and either sees it idle, or is seen here */
	ld	t4, WEFT_REGION_THREAD(t3)
	bne	t4, t0, 1f
	ld	t0, WEFT_CORO_OUTER_PC(a0)
	jr	t0
1:	lla	t2, weft__region_wake
	la	t0, .Lreturn_calling
	jr	t0
3:	tail	weft__return_copying
END(weft__return_parked)

	END_OF_FILE
