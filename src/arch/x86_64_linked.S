/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Linked stacks on x86-64 System V: the routines to which prologues of instrumented code jump when their frame does not
 * fit, and by which instrumented code calls code that does not check. chunk.h has the structures, README.md the
 * pictures.
 *
 * Registers: when a routine here is entered, all registers except r10 and r11 may hold arguments (rax: al of variadic
 * calls). On return, rax, rdx, xmm0, xmm1, st, st(1) hold results, callee-saved registers have their old values, all
 * other registers are free.
 *
 * A signal handler that interrupts these routines leaves their data unchanged, because its operations nest: a list that
 * is popped here may be popped and pushed in between. The limit and the stack pointer cannot change in one instruction.
 * A prologue that fires between the two changes finds that the stack pointer is not on the current chunk, and continues
 * on the stack in use.
 */
#include "arch/chunk.h"
#include <weft/detail/arch/offsets.h>

#define LIMIT %fs:0x70

#if defined(__CET__) && (__CET__ & 1)
#define PAD endbr64
#else
#define PAD
#endif

#define FUNCTION(name) \
	.text; .p2align 4; .globl name; .type name, @function; name: .cfi_startproc; PAD

#define END(name) \
	.cfi_endproc; .size name, . - name

/* Load the running coroutine's link, or the thread root's. */
#define SELF(reg) \
	movq	weft__tls_self@gottpoff(%rip), reg; \
	movq	%fs:(reg), reg

/* The words of a routine's frame, from rbp, that hold the registers of its caller. */
#define KEPT_RAX -8(%rbp)
#define KEPT_RCX -16(%rbp)
#define KEPT_RDX -24(%rbp)
#define KEPT_RDI -32(%rbp)
#define KEPT_RSI -40(%rbp)
#define KEPT_LIMIT -48(%rbp)
#define KEPT_BLOCK -48(%rbp)

#define KEEP_ARGUMENTS \
	pushq	%rax; \
	pushq	%rcx; \
	pushq	%rdx; \
	pushq	%rdi; \
	pushq	%rsi

#define RESTORE_ARGUMENTS \
	movq	KEPT_RAX, %rax; \
	movq	KEPT_RCX, %rcx; \
	movq	KEPT_RDX, %rdx; \
	movq	KEPT_RDI, %rdi; \
	movq	KEPT_RSI, %rsi

/*
 * A caller that passes over-aligned arguments (a __m256 in memory, a structure with an attribute) has aligned its stack
 * pointer for them: the block of arguments begins at a multiple of their alignment. A copy must have the same
 * alignment, or the callee faults. The required alignment is not known here. So a copy gets the alignment that the
 * block has, 256 bytes at most; if a block has more by chance, that costs a few bytes.
 *
 * WIDEN_FRAME: add to r10, the bytes of a frame, the bytes that PLACE_ARGUMENTS may lose. Clobbers rdx, rsi.
 * PLACE_ARGUMENTS: move rdi down, from where a stack is free, to where the copy of the arguments at from(%rbp), r11
 * bytes, begins. Clobbers rdx, rsi.
 */
#define ALIGNMENT_MASK(from) /* to rdx: -n for an alignment of n. Clobbers rsi. */ \
	leaq	from(%rbp), %rsi; \
	movq	%rsi, %rdx; \
	negq	%rdx; \
	orq	%rsi, %rdx; \
	orq	$-WEFT_ARGUMENT_ALIGNMENT, %rdx

#define WIDEN_FRAME(from) \
	ALIGNMENT_MASK(from); \
	subq	%rdx, %r10

#define PLACE_ARGUMENTS(from) \
	ALIGNMENT_MASK(from); \
	subq	%r11, %rdi; \
	andq	%rdx, %rdi

/* Copy the arguments at from(%rbp), r11 bytes, to rdi. Clobbers rcx, rdx, rsi. */
#define COPY_ARGUMENTS(from) \
	leaq	from(%rbp), %rsi; \
	movq	%rdi, %rdx; \
	movq	%r11, %rcx; \
	shrq	$3, %rcx; \
	rep movsq; \
	movq	%rdx, %rdi

#ifdef WEFT_CANARY_arguments_are_not_copied
#undef COPY_ARGUMENTS
#define COPY_ARGUMENTS(from)
#endif
#ifdef WEFT_CANARY_arguments_are_aligned_as_a_stack
#undef PLACE_ARGUMENTS
#define PLACE_ARGUMENTS(from) subq %r11, %rdi; andq $-16, %rdi
#endif
#ifdef WEFT_CANARY_registers_with_arguments_are_lost
#undef RESTORE_ARGUMENTS
#define RESTORE_ARGUMENTS
#endif

/* Jump unless the stack pointer is on the chunk in rcx. */
#define UNLESS_ON_CHUNK(label) \
	cmpq	%rcx, %rsp; \
	jae	label; \
	cmpq	WEFT_CHUNK_LOW(%rcx), %rsp; \
	jb	label

#define IF_HEAP_FRAMES(label) \
	testb	$0x40, %fs:0x77; /* the limit's highest byte */ \
	jnz	label

/*
 * ON_SMALL_STACK(function): call a C function on the thread's small stack, because the current stack may have almost no
 * room. The arguments are in rdi, rsi, rdx, rcx; the result is returned in r10. All other registers are preserved,
 * including all vector and x87 registers: they may hold arguments or results, and functions that C code calls may use
 * them. Only for a routine with a frame in rbp.
 */
#define ON_SMALL_STACK(function) \
	leaq	function(%rip), %r10; \
	call	.Lon_small_stack

	.hidden weft__xsave_bytes, weft__tls_growth, weft__tls_system, weft__tls_blocks, weft__owner_spent

/*
 * weft__morestack: jumped to by a prologue whose frame does not fit.
 *   In: r10 = where the function continues; r11 = the bytes that the frame needs, and in the upper half of the register
 *       the bytes of arguments on the stack (negative: unknown); 0(%rsp) its caller; then its arguments
 * Calls the rest of the function on a chunk with room, and returns to the caller when that returns. Each call returns
 * to where it came from, so that the return predictor stays in step, and no more calls are open than necessary.
 * Unwinders see a frame between the function and its caller. Debuggers, which know the name, see it as __morestack as
 * soon as the stack pointer leaves the caller's chunk. Prologues jump to a different name, because compilers link
 * shared libraries with a __morestack of their own.
 */
#define LEAVE_CHUNK /* rcx, r10, r11 */ \
	SELF(%rcx); \
	movq	WEFT_LINK_CHUNK(%rcx), %r10; \
	movq	WEFT_CHUNK_BELOW(%r10), %r10; \
	movq	WEFT_CHUNK_LIMIT(%r10), %r11; \
	movq	%r10, WEFT_LINK_CHUNK(%rcx); \
	movq	%r11, WEFT_LINK_LIMIT(%rcx); \
	movq	%r11, LIMIT

/* Make the block in r10 unused; rcx = the thread's list for it. */
#define LEAVE_BLOCK(large) /* rcx, r10, r11 */ \
	SELF(%rcx); \
	movq	WEFT_CHUNK_BELOW(%r10), %r11; \
	movq	%r11, WEFT_LINK_CHUNK(%rcx); \
	movq	WEFT_BLOCK_CLASS(%r10), %r11; \
	cmpq	$WEFT_BLOCK_CLASSES, %r11; \
	jae	large; \
	movq	weft__tls_blocks@gottpoff(%rip), %rcx; \
	leaq	(%rcx,%r11,8), %rcx

#define GIVE_BLOCK /* rsi */ \
	movq	%fs:(%rcx), %rsi; \
	movq	%rsi, WEFT_BLOCK_NEXT(%r10); \
	movq	%r10, %fs:(%rcx)

/*
 * A deep recursion waits for memory once per call: on the way in for a block's record, which says where the next block
 * is, and on the way out for a saved rbp, which says where the next caller's is. Unless these lines are prefetched, the
 * waits add up, because each address comes from the line before. The blocks of a recursion have one size, and each
 * begins below the previous block (cut, in stack/heap.c), so the line that the eighth call from here needs is eight
 * blocks away. A call touches two lines: the record with the return address, and below it the registers that are saved.
 * If the guess is wrong, some lines are fetched in vain.
 *
 * r10, r11: the class of the block, so that 64 times this is its size.
 */
#define PREFETCH_BLOCK /* r10, rsi */ \
	shll	$9, %r10d; \
	movq	%rdi, %rsi; \
	subq	%r10, %rsi; \
	prefetchw	(%rsi); \
	prefetchw	-64(%rsi)

#define PREFETCH_CALLERS /* r11 */ \
	shll	$9, %r11d; \
	prefetcht0	(%rbp,%r11); \
	prefetcht0	64(%rbp,%r11)

FUNCTION(weft__morestack)
	pushq	%r10
	.cfi_def_cfa_offset 16
	pushq	%rbp
	.cfi_def_cfa_offset 24
	.cfi_offset %rbp, -24
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	KEEP_ARGUMENTS
	SELF(%rax)
	movq	WEFT_LINK_CHUNK(%rax), %rcx
	movl	%r11d, %r10d
	sarq	$32, %r11
	jnz	.Lsome_arguments
.Lsized:
	IF_HEAP_FRAMES(.Lblock)
	UNLESS_ON_CHUNK(.Lelsewhere)
.Lretry:
	movq	WEFT_CHUNK_ABOVE(%rcx), %rdx
	testq	%rdx, %rdx
	jnz	.Lchunk
	jmp	.Lgrow

.Lsome_arguments:
	js	.Lunknown_arguments
.Lknown_arguments:
	WIDEN_FRAME(24)
	jmp	.Lsized

/* Take all bytes above the frame: the arguments are in the caller's frame, which is on this chunk. */
.Lunknown_arguments:
	movl	$512, %r11d
	UNLESS_ON_CHUNK(.Lknown_arguments)
	movq	%rcx, %r11
	leaq	24(%rbp), %rdx
	subq	%rdx, %r11
	andq	$-8, %r11
	jmp	.Lknown_arguments
END(weft__morestack)

/*
 * Called by code that was not assembled by weft-as: r10 and r11 are bytes of frame and of arguments, 0(%rsp) a `ret`
 * after which the function continues, 8(%rsp) its caller.
 */
FUNCTION(__morestack)
	.cfi_personality 0x9b, DW.ref.__gcc_personality_v0
	.cfi_lsda 0x1b, .Llsda_morestack
	.cfi_def_cfa_offset 16
	shlq	$32, %r11
	orq	%r10, %r11
	popq	%r10
	.cfi_def_cfa_offset 8
	incq	%r10
	jmp	weft__morestack

	.cfi_def_cfa %rbp, 24
	.cfi_offset %rbp, -24
.Lchunk:
	movq	WEFT_CHUNK_FRAMES(%rdx), %rdi
	testq	%r11, %r11
	jnz	.Lchunk_arguments
.Lchunk_placed:
	addq	WEFT_CHUNK_LIMIT(%rdx), %r10
	cmpq	%r10, %rdi
	jb	.Ltoo_small
	movq	WEFT_CHUNK_LIMIT(%rdx), %r10
	movq	%rdx, WEFT_LINK_CHUNK(%rax)
	movq	%r10, WEFT_LINK_LIMIT(%rax)
	testq	%r11, %r11
	jz	1f
	COPY_ARGUMENTS(24)
1:	movq	%rdi, %rsp
	movq	%r10, LIMIT
	movq	8(%rbp), %r10
	RESTORE_ARGUMENTS
.Lchunk_begin:
	call	*%r10
.Lchunk_end:
	LEAVE_CHUNK
.Lback:
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state

.Lchunk_arguments:
	PLACE_ARGUMENTS(24)
	movq	WEFT_CHUNK_ABOVE(%rcx), %rdx
	jmp	.Lchunk_placed

.Ltoo_small:
	subq	WEFT_CHUNK_LIMIT(%rdx), %r10
.Lgrow:
	pushq	%r10
	pushq	%rcx
	movq	%rax, %rdi
	movq	%r10, %rsi
	movq	%r11, %rdx
	movq	%rsp, %rcx
	ON_SMALL_STACK(weft__chunk_grow)
	popq	%rcx
	cmpq	%r10, %rcx
	popq	%r10
	jne	.Lretry
	movq	WEFT_LINK_LIMIT(%rax), %rdx /* the same chunk, enlarged */
	movq	%rdx, LIMIT
.Lelsewhere: /* continue on this stack, with the same kind of frame */
	andq	$-16, %rsp
	testq	%r11, %r11
	jz	1f
	movq	%rsp, %rdi
	PLACE_ARGUMENTS(24)
	movq	%rdi, %rsp
	COPY_ARGUMENTS(24)
1:	movq	8(%rbp), %r10
	RESTORE_ARGUMENTS
.Lelsewhere_begin:
	call	*%r10
.Lelsewhere_end:
	jmp	.Lback

/* ---- heap frames: a block for each call ---- */
.Lblock:
	leaq	WEFT_HEAP_SLACK + WEFT_BLOCK_BYTES + 63 + 15(%r10,%r11), %r10
	shrq	$6, %r10
	cmpq	$WEFT_BLOCK_CLASSES, %r10
	jae	.Ltake_slowly
	movq	weft__tls_blocks@gottpoff(%rip), %rdx
	leaq	(%rdx,%r10,8), %rdx
	movq	%fs:(%rdx), %rdi
	testq	%rdi, %rdi
	jz	.Ltake_slowly
	PREFETCH_BLOCK
	movq	WEFT_BLOCK_NEXT(%rdi), %r10
	movq	%r10, %fs:(%rdx)
.Lblock_taken:
	cmpq	%rcx, WEFT_CHUNK_BELOW(%rdi) /* usually the same as last time */
	jne	.Lblock_below
.Lblock_linked:
	movq	%rdi, WEFT_LINK_CHUNK(%rax)
	testq	%r11, %r11
	jnz	.Lblock_arguments
.Lblock_ready:
	movq	%rdi, %rsp
	movq	8(%rbp), %r10
	RESTORE_ARGUMENTS
.Lblock_begin:
	call	*%r10
	movq	%rsp, %r10 /* the link says so too, but a load would wait for the store of the last call */
.Lblock_left:
	LEAVE_BLOCK(.Lgive_large)
	PREFETCH_CALLERS
	/* Blocks usually return in the reverse order of their use: then the list is right already, and no load
	 * waits. */
	movq	WEFT_BLOCK_NEXT(%r10), %rsi
	cmpq	%fs:(%rcx), %rsi
	jne	.Lgive_elsewhere
	movq	%r10, %fs:(%rcx)
.Lblock_back:
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_restore_state

.Lblock_below:
	movq	%rcx, WEFT_CHUNK_BELOW(%rdi)
	jmp	.Lblock_linked

.Lgive_elsewhere:
	GIVE_BLOCK
	jmp	.Lblock_back

.Lblock_arguments:
	pushq	%rdi /* KEPT_BLOCK */
	PLACE_ARGUMENTS(24)
	COPY_ARGUMENTS(24)
	movq	%rdi, %rsp
	movq	8(%rbp), %r10
	RESTORE_ARGUMENTS
	call	*%r10
.Lblock_end:
#ifdef WEFT_CANARY_blocks_are_given_back_from_where_arguments_are
	movq	%rsp, %r10
#else
	movq	KEPT_BLOCK, %r10
#endif
	jmp	.Lblock_left

.Ltake_slowly:
	movq	%rax, %rdi
	movq	%r10, %rsi
	shlq	$6, %rsi
	ON_SMALL_STACK(weft__take_block)
	movq	%r10, %rdi
	jmp	.Lblock_taken

.Lgive_large: /* not while on the stack that is freed */
	leaq	KEPT_RSI, %rsp
	movq	%r10, %rdi
	ON_SMALL_STACK(weft__give_block)
	jmp	.Lback

/* ---- an exception passes through; rax is its object ---- */
.Lpass_chunk:
	LEAVE_CHUNK
	jmp	.Lpass
.Lpass_block:
	SELF(%rcx)
	movq	WEFT_LINK_CHUNK(%rcx), %r10
	LEAVE_BLOCK(.Lpass_large)
	GIVE_BLOCK
	jmp	.Lpass
.Lpass_large:
	leaq	KEPT_RSI, %rsp
	movq	%r10, %rdi
	ON_SMALL_STACK(weft__give_block)
/* The code that continues the search needs a stack; below this frame there may be none. The idle system stack stays
 * idle: no other code of this thread takes it before the search has left it. */
.Lpass:
	movq	weft__tls_system@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %r10
	testq	%r10, %r10
	jnz	1f
	SELF(%rdi)
	ON_SMALL_STACK(weft__system_take)
	movq	%r10, %fs:(%rcx)
1:	leaq	-WEFT_CHUNK_TOP(%r10), %rsp
	andq	$-16, %rsp
	movq	%rax, %rdi
.Lresume_begin:
	call	*_Unwind_Resume@GOTPCREL(%rip)
.Lresume_end:
	ud2
	.cfi_endproc

/*
 * The following code is part of __morestack for debuggers: they accept a caller whose frame is at a lower address, as
 * the frame on another chunk may be, only in a function of this name.
 */

/* ON_SMALL_STACK */
	.p2align 4
.Lon_small_stack:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r11
	pushq	LIMIT
	movq	weft__tls_growth@gottpoff(%rip), %rax
	movq	%fs:(%rax), %rax
	testq	%rax, %rax
	jz	.Lno_small_stack
	movq	%rax, %r11
	subq	%rbp, %r11
	cmpq	$WEFT_SMALL_STACK, %r11
	jae	1f
	movq	%rsp, %rax /* in a signal handler that interrupted code on the small stack */
1:	movq	$0, LIMIT /* for signal handlers, which have room here */
	movq	%rax, %rsp
	subq	weft__xsave_bytes(%rip), %rsp
	andq	$-64, %rsp
	/* The header of the area must be zero. */
	xorl	%eax, %eax
	movq	%rax, 512(%rsp)
	movq	%rax, 520(%rsp)
	movq	%rax, 528(%rsp)
	movq	%rax, 536(%rsp)
	movq	%rax, 544(%rsp)
	movq	%rax, 552(%rsp)
	movq	%rax, 560(%rsp)
	movq	%rax, 568(%rsp)
	movq	%rdx, %r11
	movl	$0xe7, %eax /* x87, SSE, AVX, AVX-512 */
	xorl	%edx, %edx
	cmpb	$0, weft__has_xsave(%rip)
	je	1f
	xsave64	(%rsp)
	jmp	2f
1:	fxsave64 (%rsp)
2:	movq	%r11, %rdx
	pushq	%rsp /* once for the value, once for the alignment */
	pushq	(%rsp)
	call	*%r10
	popq	%rsp
	movq	%rax, %r10
	movl	$0xe7, %eax
	xorl	%edx, %edx
	cmpb	$0, weft__has_xsave(%rip)
	je	1f
	xrstor64 (%rsp)
	jmp	2f
1:	fxrstor64 (%rsp)
2:	leaq	-72(%rbp), %rsp
	popq	LIMIT
	popq	%r11
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
.Lno_small_stack: /* there was no memory for the thread's record: its coroutine fails */
	SELF(%rdi)
	CONTIGUOUS_ABOVE(%rdi)
	leaq	-128(%rax), %rsp
	andq	$-16, %rsp
	xorl	%esi, %esi
	movl	$WEFT_SPENT_MEMORY, %edx
	call	weft__owner_spent
	ud2
	.cfi_endproc

/* weft__ext, when the stack is linked. */
#define LEAVE_SYSTEM /* rcx, r10, r11; the stack is in r10 */ \
	SELF(%rcx); \
	movq	WEFT_LINK_CHUNK(%rcx), %r10; \
	movq	WEFT_CHUNK_BELOW(%r10), %r11; \
	movq	%r11, WEFT_LINK_CHUNK(%rcx); \
	movq	KEPT_LIMIT, %r11; \
	movq	%r11, WEFT_LINK_LIMIT(%rcx); \
	movq	%r11, LIMIT; \
	movq	weft__tls_system@gottpoff(%rip), %rcx

	.p2align 4
#ifdef WEFT_CANARY_frame_that_gdb_does_not_know
	.type	on_system, @function
	.size	on_system, 200
on_system:
#endif
.Lon_system:
	.cfi_startproc
	.cfi_personality 0x9b, DW.ref.__gcc_personality_v0
	.cfi_lsda 0x1b, .Llsda_on_system
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	KEEP_ARGUMENTS
	SELF(%rax)
	movq	WEFT_LINK_CHUNK(%rax), %rcx
	cmpq	$0, WEFT_LINK_LIMIT(%rax)
	je	.Lsystem_stale
	UNLESS_ON_CHUNK(.Lsystem_elsewhere)
	movq	%rcx, %rdx /* at most the bytes above; "unknown" is larger than all numbers */
	leaq	16(%rbp), %rdi
	subq	%rdi, %rdx
	cmpq	%rdx, %r10
	cmova	%rdx, %r10
.Lsystem_sized:
	movq	weft__tls_system@gottpoff(%rip), %rdi
	movq	%fs:(%rdi), %rdx
	testq	%rdx, %rdx
	jz	.Lsystem_slowly
#ifndef WEFT_CANARY_system_stacks_are_shared
	movq	$0, %fs:(%rdi)
#endif
.Lsystem_taken:
	movq	%rcx, WEFT_CHUNK_BELOW(%rdx)
	movq	%rax, -WEFT_CHUNK_OWNER(%rdx)
	pushq	WEFT_LINK_LIMIT(%rax) /* KEPT_LIMIT */
	movq	%rdx, WEFT_LINK_CHUNK(%rax)
	movq	$0, WEFT_LINK_LIMIT(%rax)
	leaq	-WEFT_CHUNK_TOP(%rdx), %rdi
	testq	%r10, %r10
	jnz	.Lsystem_arguments
.Lsystem_ready:
	movq	%rdi, %rsp
	movq	$0, LIMIT
	RESTORE_ARGUMENTS
.Lsystem_begin:
	call	*%r11
.Lsystem_end:
	LEAVE_SYSTEM
	cmpq	$0, %fs:(%rcx)
	jne	.Lsystem_give
	movq	%r10, %fs:(%rcx)
.Lsystem_back:
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state

.Lsystem_arguments:
	xchgq	%r10, %r11
	PLACE_ARGUMENTS(16)
	COPY_ARGUMENTS(16)
	movq	%r10, %r11
	jmp	.Lsystem_ready

.Lsystem_slowly:
	pushq	%r10
	pushq	%r10
	movq	%rax, %rdi
	ON_SMALL_STACK(weft__system_take)
	movq	%r10, %rdx
	popq	%r10
	popq	%r10
	jmp	.Lsystem_taken

.Lsystem_give: /* the thread caches another stack; not while on the stack that is freed */
	leaq	KEPT_LIMIT, %rsp
	movq	%r10, %rdi
	ON_SMALL_STACK(weft__system_give)
	jmp	.Lsystem_back

/* The limit is stale: it belongs to another stack. Or the caller chose to call from a contiguous stack. */
.Lsystem_stale:
	cmpq	$0, LIMIT
	je	.Lsystem_sized
	movq	$0, LIMIT
/* Also for a signal handler's stack, which is contiguous. */
.Lsystem_elsewhere:
	RESTORE_ARGUMENTS
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp	*%r11
	.cfi_restore_state

/* An exception passes through. The search continues on the system stack that the exception left, which is idle
 * again. */
.Lsystem_pass:
	LEAVE_SYSTEM
	movq	%fs:(%rcx), %rdi
	movq	%r10, %fs:(%rcx)
	testq	%rdi, %rdi
	jz	1f
	ON_SMALL_STACK(weft__system_give)
	movq	%fs:(%rcx), %r10
1:	leaq	-WEFT_CHUNK_TOP(%r10), %rsp
	andq	$-16, %rsp
	movq	%rax, %rdi
.Lsystem_resume_begin:
	call	*_Unwind_Resume@GOTPCREL(%rip)
.Lsystem_resume_end:
	ud2
	.cfi_endproc

	.size	__morestack, . - __morestack

	.section .gcc_except_table, "a", @progbits
	.p2align 2
.Llsda_morestack:
	.byte 0xff /* landing pads from the function's start */
	.byte 0xff /* no types */
	.byte 0x01 /* call sites: uleb128 */
	.uleb128 2f - 1f
1:	.uleb128 .Lchunk_begin - __morestack
	.uleb128 .Lchunk_end - .Lchunk_begin
	.uleb128 .Lpass_chunk - __morestack
	.uleb128 0
	.uleb128 .Lelsewhere_begin - __morestack
	.uleb128 .Lelsewhere_end - .Lelsewhere_begin
	.uleb128 0
	.uleb128 0
	.uleb128 .Lblock_begin - __morestack
	.uleb128 .Lblock_end - .Lblock_begin
	.uleb128 .Lpass_block - __morestack
	.uleb128 0
	.uleb128 .Lresume_begin - __morestack
	.uleb128 .Lresume_end - .Lresume_begin
	.uleb128 0
	.uleb128 0
2:
	.text

/*
 * weft__ext: jumped to by instrumented code in place of a function that does not check.
 *   In: r11 = the function, r10 = maximal bytes of arguments on the stack (negative: unknown)
 * On a contiguous stack it jumps to that function. On a linked stack the function runs on a system stack, which the
 * thread caches. Meanwhile that is a chunk of the running stack, without a limit: functions that it calls may run on
 * it, resume, suspend and be continued by another thread.
 */
FUNCTION(weft__ext)
	cmpq	$0, LIMIT
	jne	.Lon_system
	jmp	*%r11
END(weft__ext)

	.section .gcc_except_table, "a", @progbits
	.p2align 2
.Llsda_on_system:
	.byte 0xff
	.byte 0xff
	.byte 0x01
	.uleb128 2f - 1f
1:	.uleb128 .Lsystem_begin - .Lon_system
	.uleb128 .Lsystem_end - .Lsystem_begin
	.uleb128 .Lsystem_pass - .Lon_system
	.uleb128 0
	.uleb128 .Lsystem_resume_begin - .Lon_system
	.uleb128 .Lsystem_resume_end - .Lsystem_resume_begin
	.uleb128 0
	.uleb128 0
2:
	.text

/* weft__icall: like weft__ext for a function that is called by a pointer: it may be a function that checks. A mark in
 * another page is not read, because that page may be unmapped. */
FUNCTION(weft__icall)
	cmpq	$0, LIMIT
	je	1f
	testl	$0xff8, %r11d
	jz	.Lon_system
	cmpl	$WEFT_MARK_LOW, -8(%r11)
	jne	.Lon_system
	cmpl	$WEFT_MARK_HIGH, -4(%r11)
	jne	.Lon_system
1:	jmp	*%r11
END(weft__icall)

/*
 * weft__system_entry: called by weft_on_system_stack. The static chain, r10, points to {function, bytes of arguments}.
 * Code that is on a system stack already, or on the thread's own stack, stays there. It has a mark, so that
 * instrumented code calls it directly, and is aligned so that the mark is always found (tools/as/calls.c); otherwise
 * r10 would be lost.
 */
	.p2align 5
	.skip	8, 0xcc
	.long	WEFT_MARK_LOW, WEFT_MARK_HIGH
	.type	weft__system_entry, @function
weft__system_entry:
	.cfi_startproc
	PAD
	movq	(%r10), %r11
	movq	8(%r10), %r10
	testq	%r11, %r11
	jz	3f
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	SELF(%rax)
	testq	%rax, %rax
	jz	1f
	cmpq	$0, WEFT_LINK_LIMIT(%rax)
	jne	2f
	cmpq	$0, WEFT_LINK_CHUNK(%rax) /* on a system stack */
	jne	1f
	movq	$0, LIMIT
	cmpq	$0, WEFT_CORO_PARENT(%rax) /* not a thread's root */
	jne	2f
1:	popq	%rax
	.cfi_adjust_cfa_offset -8
	jmp	*%r11
	.cfi_adjust_cfa_offset 8
2:	popq	%rax
	.cfi_adjust_cfa_offset -8
	jmp	.Lon_system
	.hidden	weft__die_on_system_stack
3:	jmp	weft__die_on_system_stack
END(weft__system_entry)
	.section .data.rel.ro, "aw", @progbits
	.p2align 3
	.globl	weft__system_stack
	.type	weft__system_stack, @object
	.size	weft__system_stack, 8
weft__system_stack:
	.quad	weft__system_entry

/*
 * weft__after_setjmp: called where a function of the setjmp family has returned. If that was a longjmp, the frames
 * between are gone, and so are their chunks. Preserves all registers except rcx, r10, r11 and the flags.
 */
FUNCTION(weft__after_setjmp)
	testl	%eax, %eax
	jz	1f
	SELF(%rcx)
	testq	%rcx, %rcx
	jz	1f
	movq	%rcx, %r11
	movq	WEFT_LINK_CHUNK(%rcx), %rcx
	testq	%rcx, %rcx
	jz	1f
#ifndef WEFT_CANARY_longjmp_leaves_chunks_as_they_are
	UNLESS_ON_CHUNK(2f)
#endif
1:	ret
2:	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rdi
	pushq	%rsi
	movq	%r11, %rdi
	movq	%rsp, %rsi
	ON_SMALL_STACK(weft__chunks_cut)
	movq	WEFT_LINK_LIMIT(%r11), %rcx
	movq	%rcx, LIMIT
	popq	%rsi
	popq	%rdi
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
END(weft__after_setjmp)

/* Called by compiled code for an array of variable length that does not fit. Otherwise an ordinary function. */
	.globl	weft__allocate_stack_space
	.type	weft__allocate_stack_space, @function
	.set	weft__allocate_stack_space, __morestack_allocate_stack_space
FUNCTION(__morestack_allocate_stack_space)
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	%rdi, %rsi
	SELF(%rdi)
	leaq	16(%rsp), %rdx
	ON_SMALL_STACK(weft__array_take)
	movq	%r10, %rax
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
END(__morestack_allocate_stack_space)

	.hidden	DW.ref.__gcc_personality_v0
	.weak	DW.ref.__gcc_personality_v0
	.section .data.rel.local.DW.ref.__gcc_personality_v0, "awG", @progbits, DW.ref.__gcc_personality_v0, comdat
	.p2align 3
	.type	DW.ref.__gcc_personality_v0, @object
	.size	DW.ref.__gcc_personality_v0, 8
DW.ref.__gcc_personality_v0:
	.quad	__gcc_personality_v0

	.section .note.GNU-stack, "", @progbits
