/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that keep more state than registers, or are copied: first frame, and switches. See x86_64_saving.S. */
#include "arch/frames_aarch64.inc"

	.hidden weft__tls_growth, weft__tls_landing
ENTRY(weft__entry_saving, UNWIND_TO_OUTER)

/* In: as for each landing pad. */
	.hidden weft__land_saving
	.hidden weft__enter_saving
FUNCTION(weft__land_saving)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	PAD
	ldr	x5, [x0, #WEFT_LINK_PARENT_PC]
	str	x5, [x0, #WEFT_CORO_OUTER_PC] /* before the C function replaces it */
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_CORO_OUTER_PC)
	mov	x21, x1
	mov	x22, sp
	ROOMY_STACK(x20)
	mov	x0, x20
	bl	weft__enter_saving
	mov	sp, x22
	mov	x1, x21
	mov	x0, x20
	ldr	x5, [x0, #WEFT_CORO_INNER_PC]
	br	x5
END(weft__land_saving)

/* In: as for each exit. */
	.hidden weft__return_saving
	.hidden weft__leave_saving
FUNCTION(weft__return_saving)
	UNWIND_BY(DW_OP_breg0, WEFT_CORO_OUTER_PC)
	PAD
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_CORO_OUTER_PC)
	mov	x21, x2
	mov	x22, x3
	mov	x23, sp
	ROOMY_STACK(x20)
	mov	x0, x20
	bl	weft__leave_saving
	mov	sp, x23
	mov	x3, x22
	mov	x2, x21
	mov	x0, x20
	ldr	x5, [x0, #WEFT_CORO_OUTER_PC]
	br	x5
END(weft__return_saving)

/*
 * The first landing pad of a switch sideways whose sender, in x4, needs more than the plain landing pad that the switch
 * stored. The sender's outer_pc is the real landing pad of `to`.
 */
	.hidden weft__land_switched, weft__switched
FUNCTION(weft__land_switched)
	UNWIND_BY(DW_OP_breg0, WEFT_LINK_PARENT_PC)
	PAD
	mov	x20, x0
	UNWIND_BY(DW_OP_breg20, WEFT_LINK_PARENT_PC)
	mov	x21, x1
	mov	x22, x4
	ON_LANDING(x20)
	mov	x0, x22
	bl	weft__switched
	ldr	x5, [x20, #WEFT_LINK_SP]
	mov	sp, x5
	mov	x1, x21
	mov	x0, x20
	ldr	x5, [x22, #WEFT_CORO_OUTER_PC]
	br	x5
END(weft__land_switched)

PERSONALITY

	END_OF_FILE
