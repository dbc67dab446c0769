/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines whose frames are moved in and out of a region (coro/copying.c). Like WEFT_SAVE_FPU (aarch64_saving.S), but
 * the C functions run on the thread's landing. See x86_64_copying.S.
 */
#include "arch/frames_aarch64.inc"

/* In: as for each landing pad. */
	.hidden weft__tls_landing, weft__tls_thread, weft__tls_growth
	.hidden weft__land_copying, weft__return_copying
	.hidden weft__enter_copying, weft__fail_copying
FUNCTION(weft__land_copying)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	PAD
	ldr	x5, [x0, #WEFT_LINK_PARENT_PC]
	str	x5, [x0, #WEFT_CORO_OUTER_PC] /* before the C function replaces it */
	UNWIND_BY(DW_OP_breg0, WEFT_CORO_OUTER_PC)
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_CORO_OUTER_PC)
	mov	x21, x1
	ON_LANDING(x20)
	mov	x0, x20
	bl	weft__enter_copying
	tst	w0, #0xff
	mov	x0, x20
	b.eq	3f
	ldr	x5, [x0, #WEFT_LINK_SP] /* valid only now */
	mov	sp, x5
	mov	x1, x21
	ldr	x5, [x0, #WEFT_CORO_INNER_PC]
	br	x5
3:	ldr	x29, [x0, #WEFT_LINK_PARENT_FP]
	ROOMY_STACK(x20)
	bl	weft__fail_copying
	brk	#1
END(weft__land_copying)

/* In: as for each exit. */
	.hidden weft__leave_copying, weft__region_wake
FUNCTION(weft__return_copying)
	UNWIND_BY(DW_OP_breg0, WEFT_CORO_OUTER_PC)
	PAD
	adrp	x7, weft__leave_copying
	add	x7, x7, #:lo12:weft__leave_copying
.Lreturn_calling: /* x7 */
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_CORO_OUTER_PC)
	mov	x21, x2
	mov	x22, x3
	mov	x23, sp
	ON_LANDING(x20)
	mov	x0, x20
	blr	x7
	mov	sp, x23
	mov	x3, x22
	mov	x2, x21
	mov	x0, x20
	ldr	x5, [x0, #WEFT_CORO_OUTER_PC]
	br	x5
END(weft__return_copying)

/* The fast paths of both, which usually call no C function. See weft__region_hold_own about the order. */
	.hidden weft__land_parked, weft__return_parked
FUNCTION(weft__land_parked)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	PAD
	ldr	x7, [x0, #WEFT_CORO_SLOT]
	TO_X5_OF_THREAD(weft__tls_thread)
	ldr	x8, [x7, #WEFT_COPIED_REGION]
	cbz	x5, 4f
	/* Only this thread and its signal handlers change the counter. */
	ldr	w9, [x5, #WEFT_THREAD_ENTERING]
	add	w9, w9, #1
	str	w9, [x5, #WEFT_THREAD_ENTERING]
	add	x10, x8, #WEFT_REGION_THREAD
	ldar	x10, [x10]
	cmp	x10, x5
	b.ne	1f
	ldr	x10, [x8, #WEFT_REGION_OCCUPANT]
	cmp	x10, x7
	b.ne	1f
	ldr	x10, [x7, #WEFT_COPIED_IMAGE]
	cbnz	x10, 1f
	mov	w10, #WEFT_REGION_RUNNING
	strb	w10, [x8, #WEFT_REGION_BUSY]
	sub	w9, w9, #1
	stlr	w9, [x5] /* WEFT_THREAD_ENTERING: after the region is marked as in use */
	ldr	x10, [x0, #WEFT_LINK_PARENT_PC]
	adrp	x9, weft__return_parked
	add	x9, x9, #:lo12:weft__return_parked
	str	x10, [x0, #WEFT_CORO_OUTER_PC]
	UNWIND_BY(DW_OP_breg0, WEFT_CORO_OUTER_PC)
	str	x9, [x0, #WEFT_LINK_PARENT_PC]
	ldr	x10, [x7, #WEFT_COPIED_SP]
	mov	sp, x10
	str	xzr, [x7, #WEFT_COPIED_SP]
	ldr	x5, [x0, #WEFT_CORO_INNER_PC]
	br	x5
1:	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	sub	w9, w9, #1
	str	w9, [x5, #WEFT_THREAD_ENTERING]
4:	b	weft__land_copying
END(weft__land_parked)

FUNCTION(weft__return_parked)
	UNWIND_BY(DW_OP_breg0, WEFT_CORO_OUTER_PC)
	PAD
	ldr	x7, [x0, #WEFT_LINK_PC]
	ldr	x5, [x0, #WEFT_CORO_INNERMOST]
	cmp	x5, x0
	b.ne	3f
	TO_X5_OF_GOT(weft__in_finished)
	cmp	x7, x5
	b.eq	3f
	TO_X5_OF_THREAD(weft__tls_landing)
	cbz	x5, 3f
	ldr	x8, [x0, #WEFT_CORO_SLOT]
	ldr	x9, [x0, #WEFT_LINK_SP]
	str	x7, [x0, #WEFT_CORO_INNER_PC]
	adrp	x7, weft__land_parked
	add	x7, x7, #:lo12:weft__land_parked
	str	x7, [x0, #WEFT_LINK_PC]
	sub	x5, x5, #WEFT_LANDING_OWN
#ifndef WEFT_CANARY_signals_arrive_on_frames_of_others
	str	x5, [x0, #WEFT_LINK_SP]
#endif
	str	x9, [x8, #WEFT_COPIED_SP]
	TO_X5_OF_THREAD(weft__tls_thread)
	ldr	x8, [x8, #WEFT_COPIED_REGION]
	mov	w7, #WEFT_REGION_IDLE
	add	x9, x8, #WEFT_REGION_BUSY
	stlrb	w7, [x9] /* release: a thread that takes the region reads the words above */
	dmb	ish	 /* and either sees it idle, or is seen here */
	ldr	x9, [x8, #WEFT_REGION_THREAD]
	cmp	x9, x5
	b.ne	1f
	ldr	x5, [x0, #WEFT_CORO_OUTER_PC]
	br	x5
1:	adrp	x7, weft__region_wake
	add	x7, x7, #:lo12:weft__region_wake
	b	.Lreturn_calling
3:	b	weft__return_copying
END(weft__return_parked)

	END_OF_FILE
