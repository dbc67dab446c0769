/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that keep more state than registers, or are copied: first frame, and switches. See x86_64_saving.S. */
#include "arch/frames_riscv64.inc"

	.hidden weft__tls_growth, weft__tls_landing
ENTRY(weft__entry_saving, UNWIND_TO_OUTER)

/* In: as for each landing pad. */
	.hidden weft__land_saving
	.hidden weft__enter_saving
FUNCTION(weft__land_saving)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	ld	t0, WEFT_LINK_PARENT_PC(a0)
	sd	t0, WEFT_CORO_OUTER_PC(a0) /* before the C function replaces it */
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_CORO_OUTER_PC)
	mv	s3, a1
	mv	s4, sp
	ROOMY_STACK(s2)
	mv	a0, s2
	call	weft__enter_saving
	mv	sp, s4
	mv	a1, s3
	mv	a0, s2
	ld	t0, WEFT_CORO_INNER_PC(a0)
	jr	t0
END(weft__land_saving)

/* In: as for each exit. */
	.hidden weft__return_saving
	.hidden weft__leave_saving
FUNCTION(weft__return_saving)
	UNWIND_BY(DW_OP_breg10, WEFT_CORO_OUTER_PC)
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_CORO_OUTER_PC)
	mv	s3, a2
	mv	s4, a3
	mv	s5, sp
	ROOMY_STACK(s2)
	mv	a0, s2
	call	weft__leave_saving
	mv	sp, s5
	mv	a3, s4
	mv	a2, s3
	mv	a0, s2
	ld	t0, WEFT_CORO_OUTER_PC(a0)
	jr	t0
END(weft__return_saving)

/*
 * The first landing pad of a switch sideways whose sender, in a4, needs more than the plain landing pad that the switch
 * stored. The sender's outer_pc is the real landing pad of `to`.
 */
	.hidden weft__land_switched, weft__switched
FUNCTION(weft__land_switched)
	UNWIND_BY(DW_OP_breg10, WEFT_LINK_PARENT_PC)
	mv	s2, a0
	UNWIND_BY(DW_OP_breg18, WEFT_LINK_PARENT_PC)
	mv	s3, a1
	mv	s4, a4
	ON_LANDING(s2)
	mv	a0, s4
	call	weft__switched
	ld	t0, WEFT_LINK_SP(s2)
	mv	sp, t0
	mv	a1, s3
	mv	a0, s2
	ld	t0, WEFT_CORO_OUTER_PC(s4)
	jr	t0
END(weft__land_switched)

PERSONALITY

	END_OF_FILE
