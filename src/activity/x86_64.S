/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Switches of activities, on x86-64 System V. Frames of a parked activity are copied from the hot stack to a block, and
 * back to the same place. The block begins with the words at the stack pointer:
 *
 *   block + 0    rbp                         popped by weft__activity_enter at .Lgo
 *         + 8    where to continue           its return address
 *         + 16   the frames above            up to `base`
 *
 * Everything that a twin needs after a switch is in its frame: it calls weft__activity_park_now and
 * weft__activity_yield_now by a convention (preserve_none) that keeps rsp and rbp only; weft__activity_tick keeps
 * registers by pushing them.
 *
 * The C functions that are called here decide. They return 0: continue; 1: no activity is ready, switch to the group's
 * driver; else the activity to switch to, whose block is in `frames` and `size`.
 */
#include "activity/offsets.h"

#define FUNCTION(name) \
	.text; .p2align 4; .globl name; .hidden name; .type name, @function; name: .cfi_startproc
#define PUBLIC(name) \
	.text; .p2align 4; .globl name; .type name, @function; name: .cfi_startproc
#define END(name) \
	.cfi_endproc; .size name, . - name
#define PUSH(reg) push reg; .cfi_adjust_cfa_offset 8; .cfi_rel_offset reg, 0
#define POP(reg) pop reg; .cfi_adjust_cfa_offset -8; .cfi_restore reg
/* The registers that C functions preserve, and 8 bytes to align the stack for a call. */
#define PUSH_KEPT \
	PUSH(rbp); PUSH(rbx); PUSH(r12); PUSH(r13); PUSH(r14); PUSH(r15); sub rsp, 8; .cfi_adjust_cfa_offset 8
#define POP_KEPT \
	add rsp, 8; .cfi_adjust_cfa_offset -8; POP(r15); POP(r14); POP(r13); POP(r12); POP(rbx); POP(rbp)

/* Push the vector registers that arguments and results may be in, as wide as the program has them in use, or pop them.
 * Both need a CFA that does not depend on rsp, and clobber rax; PUSH_VECTORS clobbers rcx and rdx, too. */
.macro EIGHT_VECTORS store, instruction, register, bytes
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	.if \store
	\instruction	[rsp + \bytes * \n], \register\n
	.else
	\instruction	\register\n, [rsp + \bytes * \n]
	.endif
	.endr
.endm
.set USES_AVX, 4
.set USES_AVX512, 0x40
.macro PUSH_VECTORS
	xor	eax, eax
	mov	ecx, xgetbv_index[rip]
	test	ecx, ecx
	js	1f
	xgetbv
1:	test	al, USES_AVX512
	jnz	3f
	test	al, USES_AVX
	jnz	2f
	sub	rsp, 128
	EIGHT_VECTORS 1, movups, xmm, 16
	jmp	4f
2:	sub	rsp, 256
	EIGHT_VECTORS 1, vmovups, ymm, 32
	jmp	4f
3:	sub	rsp, 512
	EIGHT_VECTORS 1, vmovups, zmm, 64
4:	push	rax
	sub	rsp, 8
.endm
.macro POP_VECTORS
	add	rsp, 8
	pop	rax
	test	al, USES_AVX512
	jnz	3f
	test	al, USES_AVX
	jnz	2f
	/* The upper halves were zero and must be cleared: an argument may be wider than its value. */
	cmp	dword ptr xgetbv_index[rip], 0
	jl	1f
	vzeroupper
1:	EIGHT_VECTORS 0, movups, xmm, 16
	add	rsp, 128
	jmp	4f
2:	EIGHT_VECTORS 0, vmovups, ymm, 32
	add	rsp, 256
	jmp	4f
3:	EIGHT_VECTORS 0, vmovups, zmm, 64
	add	rsp, 512
4:
.endm
.set MOST_VECTORS, 512 + 16

/* Push the registers that results may be in, or pop them. */
#define PUSH_RESULTS \
	push rax; push rdx; push rcx; push rcx; PUSH_VECTORS
#define POP_RESULTS \
	POP_VECTORS; pop rcx; pop rcx; pop rdx; pop rax
.set RESULTS, 32 + MOST_VECTORS
/* Begin, and end, a frame whose CFA is relative to rbp. */
#define ENTER_FRAME \
	PUSH(rbp); mov rbp, rsp; .cfi_def_cfa_register rbp
#define LEAVE_FRAME \
	.cfi_def_cfa_register rsp; POP(rbp)
/* r11: hot. Sets the limit to `to`, unless the limit says that the timer has rung. */
#define SET_LIMIT(to) \
	cmp	qword ptr fs:[r11 + HOT_LIMIT], -1; je 9f; mov fs:[r11 + HOT_LIMIT], to; 9:

.intel_syntax noprefix

/* weft__activity_enter(struct weft__activity_group *group, weft_activity_t *first): run activities until none is ready. */
FUNCTION(weft__activity_enter)
	PUSH_KEPT
	mov	[rdi + GROUP_DRIVER], rsp
	mov	rax, rsi
	mov	rdx, rdi
	jmp	.Lgo
	/* Entered with rsp in the hot stack, and in rax the result of a C function, which is not 0. While frames are
	 * being copied this code has no caller: an unwinder in a signal handler stops here. */
	.cfi_remember_state
	.cfi_undefined rip
.Lswitch:
	mov	rdx, weft__activity_hot@gottpoff[rip]
	mov	rdx, fs:[rdx + HOT_GROUP]
	cmp	rax, 1
	je	.Ldriver
	/* Switch to activity rax of group rdx. A block is never empty: `size` 0 says that `frames` is a struct
	 * weft__deep. */
.Lgo:
	movzx	ecx, word ptr [rax + ACTIVITY_SIZE]
	mov	rsi, [rax + ACTIVITY_FRAMES]
	shl	ecx, 4
	jz	.Ldeep
	mov	rdi, [rdx + GROUP_BASE]
	sub	rdi, rcx
	mov	rsp, rdi
	mov	r8, rcx
	cmp	ecx, 256
	ja	3f
1:	movaps	xmm0, [rsi + r8 - 16]
	movaps	[rdi + r8 - 16], xmm0
	sub	r8, 16
	jnz	1b
2:
	/* The block is free: put it into the list of its size. */
	shr	ecx, 1
	mov	rdi, [rdx + rcx + GROUP_BLOCKS]
	mov	[rsi], rdi
	mov	[rdx + rcx + GROUP_BLOCKS], rsi
	pop	rbp
	ret
	/* Copy 64 bytes at a time, and the remainder first. */
3:	and	r8d, 48
	jz	5f
4:	sub	r8, 16
	movaps	xmm0, [rsi + r8]
	movaps	[rdi + r8], xmm0
	jnz	4b
5:	mov	r8d, ecx
	and	r8d, 48
6:	movaps	xmm0, [rsi + r8]
	movaps	xmm1, [rsi + r8 + 16]
	movaps	xmm2, [rsi + r8 + 32]
	movaps	xmm3, [rsi + r8 + 48]
	movaps	[rdi + r8], xmm0
	movaps	[rdi + r8 + 16], xmm1
	movaps	[rdi + r8 + 32], xmm2
	movaps	[rdi + r8 + 48], xmm3
	add	r8, 64
	cmp	r8, rcx
	jne	6b
	jmp	2b
	/* A C function restores the frames in the hot stack, and runs on the driver's stack. */
.Ldeep:
	mov	rsp, [rdx + GROUP_DRIVER]
	mov	rdi, rax
	call	weft__activity_deep
	mov	rsp, rax
	pop	rbp
	ret
.Ldriver:
	mov	rsp, [rdx + GROUP_DRIVER]
	.cfi_restore_state
	POP_KEPT
	ret
END(weft__activity_enter)

/* The running activity is in a queue: switch. Keeps rsp and rbp. */
PUBLIC(weft__activity_park_now)
.Lpark_now:
	PUSH(rbp)
	mov	rdi, rsp
	call	weft__activity_parked
	test	rax, rax
	jnz	.Lswitch
	POP(rbp)
	ret
END(weft__activity_park_now)

/* weft__activity_park_now for C code, which also needs the registers that C functions preserve. */
FUNCTION(weft__activity_park_in_c)
	PUSH(rbx)
	PUSH(r12)
	PUSH(r13)
	PUSH(r14)
	PUSH(r15)
	call	weft__activity_park_now
	POP(r15)
	POP(r14)
	POP(r13)
	POP(r12)
	POP(rbx)
	ret
END(weft__activity_park_in_c)

/* Switch if another activity is ready. Keeps rsp and rbp. */
PUBLIC(weft__activity_yield_now)
.Lyield_now:
	PUSH(rbp)
	mov	rdi, rsp
	call	weft__activity_yielded
	test	rax, rax
	jnz	.Lswitch
	POP(rbp)
	ret
END(weft__activity_yield_now)

/* Push and pop all registers except rsp, rbp, r11 and vectors. */
#define KEEP \
	PUSH(rax); PUSH(rcx); PUSH(rdx); PUSH(rsi); PUSH(rdi); PUSH(r8); PUSH(r9); PUSH(r10); \
	PUSH(rbx); PUSH(r12); PUSH(r13); PUSH(r14); PUSH(r15)
#define RESTORE \
	POP(r15); POP(r14); POP(r13); POP(r12); POP(rbx); \
	POP(r10); POP(r9); POP(r8); POP(rdi); POP(rsi); POP(rdx); POP(rcx); POP(rax)

/* The flag is set: switch if another activity is ready. Keeps errno, and all registers except r11 and vectors. */
PUBLIC(weft__activity_tick)
.Ltick: /* local calls use this name: the dynamic linker, which may come between otherwise, keeps fewer registers */
	KEEP
	call	__errno_location@PLT
	mov	eax, [rax]
	push	rax
	.cfi_adjust_cfa_offset 8
	push	rax
	.cfi_adjust_cfa_offset 8
	call	.Lticked
	call	__errno_location@PLT
	mov	rdx, rax
	pop	rax
	.cfi_adjust_cfa_offset -8
	mov	[rdx], eax
	pop	rax
	.cfi_adjust_cfa_offset -8
	RESTORE
	ret
END(weft__activity_tick)

/* weft__activity_park_now and weft__activity_yield_now for functions whose frame has a base pointer, which
 * preserve_none does not keep. */
PUBLIC(weft__activity_park_kept)
	KEEP
	call	.Lpark_now
	RESTORE
	ret
END(weft__activity_park_kept)

PUBLIC(weft__activity_yield_kept)
	KEEP
	call	.Lyield_now
	RESTORE
	ret
END(weft__activity_yield_kept)

FUNCTION(weft__activity_ticked)
.Lticked:
	PUSH(rbp)
	mov	rdi, rsp
	call	weft__activity_rang
	test	rax, rax
	jnz	.Lswitch
	POP(rbp)
	ret
END(weft__activity_ticked)

/* rsp is below hot.limit at a twin's entry, for one of two reasons. Returns in eax: is the segment nearly full? Keeps
 * all other registers that weft__activity_tick keeps. */
PUBLIC(weft__activity_entered)
	call	.Lentered
	cmp	rsp, fs:[r11 + HOT_FULL]
	setb	al
	ret
END(weft__activity_entered)

/* The entry check of a twin with arguments on the stack, which stays in its caller's segment. Returns in eax: is the
 * stack nearly full? */
PUBLIC(weft__activity_entered_whole)
	call	.Lentered
	mov	rax, fs:[r11 + HOT_GROUP]
	mov	rax, [rax + GROUP_DEEPEST]
	cmp	rsp, rax
	jae	1f
	mov	fs:[r11 + HOT_FULL], rax /* weft__activity_fresh takes a stack */
	mov	eax, 1
	ret
1:	xor	eax, eax
	ret
END(weft__activity_entered_whole)

FUNCTION(weft__activity_entered_late)
.Lentered:
	mov	r11, weft__activity_hot@gottpoff[rip]
	xor	eax, eax
	cmp	qword ptr fs:[r11 + HOT_LIMIT], -1
	je	1f
	ret
	/* The timer has rung, or profile.c counts calls. */
1:	cmp	dword ptr fs:[r11 + HOT_FLAG], 0
	je	2f
	call	.Ltick
	jmp	3f
2:	call	.Lcount
3:	mov	r11, weft__activity_hot@gottpoff[rip]
	xor	eax, eax
	ret
.Lcount:
	.cfi_def_cfa_offset 16
	KEEP
	mov	rdi, [rsp + 120] /* an address in the twin */
	lea	rsi, [rsp + 128]
	call	weft__activity_counted
	RESTORE
	ret
END(weft__activity_entered_late)

/* r10: a function. Sets r11 to its twin by two words in front of the function: a number, and the distance. Jumps to
 * `no` if the function has no such words. A function with such words begins at an odd multiple of 16, so the words
 * are on the function's own page. Memory in front of other addresses is not read: a just-in-time compiler's code may
 * begin at the beginning of its mapping. */
#define TWIN_BY_WORDS(no) \
	lea	r11d, [r10 - 16]; \
	test	r11b, 31; \
	jne	no; \
	movabs	r11, 0x7461706e66746577; \
	cmp	r11, [r10 - 16]; \
	jne	no; \
	movsxd	r11, dword ptr [r10 - 8]; \
	add	r11, r10

/* TWIN_BY_TABLE looks the function up in the table of twins.c. */
#define TWIN_BY_TABLE(no) \
	mov	r11, r10; \
	and	r11d, dword ptr weft__activity_twins_mask[rip]; \
	add	r11, weft__activity_twins[rip]; \
9:	cmp	qword ptr [r11], 0; \
	je	no; \
	add	r11, 16; \
	cmp	[r11 - 16], r10; \
	jne	9b; \
	mov	r11, [r11 - 8]

/* Jump to the twin of the function at r10, or to the function itself. Called by twins. */
PUBLIC(weft__activity_pointer)
	TWIN_BY_WORDS(1f)
	jmp	r11
1:	TWIN_BY_TABLE(2f)
	jmp	r11
2:	jmp	r10
END(weft__activity_pointer)

/* r10: a function. Returns in r11: its twin, or itself. Keeps all other registers. */
FUNCTION(weft__activity_look_up)
	TWIN_BY_WORDS(1f)
	ret
1:	TWIN_BY_TABLE(2f)
	ret
2:	mov	r11, r10
	ret
END(weft__activity_look_up)

/* void *weft__activity_twin(const void *function): its twin, or itself. Keeps the registers that weft__activity_tick
 * keeps. */
PUBLIC(weft__activity_twin)
	PUSH(r10)
	mov	r10, rdi
	call	weft__activity_look_up
	mov	rax, r11
	POP(r10)
	ret
END(weft__activity_twin)

/* A twin's first call of a function by its name. r11: the address of two words. The first word led here until now;
 * the second is the function. From now on the first word is the function's twin, or the function itself. */
PUBLIC(weft__activity_resolve)
	PUSH(r10)
	push	r11
	.cfi_adjust_cfa_offset 8
	mov	r10, [r11 + 8]
	call	weft__activity_look_up
	pop	r10
	.cfi_adjust_cfa_offset -8
	mov	[r10], r11
	POP(r10)
	jmp	r11
END(weft__activity_resolve)

/* The beginning of an activity. Above this address the block holds the function, and six arguments for the registers
 * in which a function that keeps no register (preserve_none) expects them. The last two are the first two arguments
 * of a C function. */
FUNCTION(weft__activity_start)
	.cfi_undefined rip
	pop	rax
	pop	r12
	pop	r13
	pop	r14
	pop	r15
	pop	rdi
	pop	rsi
	add	rsp, 8
	xor	ebp, ebp
	call	rax
	mov	rdi, rax
	.globl	weft__activity_end
	.hidden	weft__activity_end
weft__activity_end:
	call	weft__activity_ended
	jmp	.Lswitch
END(weft__activity_start)

/* weft__activity_call(entry, words): call an activity's function on a stack of the activity's own. */
FUNCTION(weft__activity_call)
	PUSH_KEPT
	mov	rax, rdi
	mov	r12, [rsi]
	mov	r13, [rsi + 8]
	mov	r14, [rsi + 16]
	mov	r15, [rsi + 24]
	mov	rdi, [rsi + 32]
	mov	rsi, [rsi + 40]
	call	rax
	POP_KEPT
	ret
END(weft__activity_call)

/* A parked activity that was cancelled continues here, in place of where it parked. */
FUNCTION(weft__activity_cancelled)
	.cfi_undefined rip
	call	weft__activity_ends_cancelled
	ud2
END(weft__activity_cancelled)

/* weft__activity_leave(group): end the running activity without a return through its frames. Runs on the driver's
 * stack. */
FUNCTION(weft__activity_leave)
	.cfi_undefined rip
	mov	rsp, [rdi + GROUP_DRIVER]
	xor	edi, edi
	jmp	weft__activity_end
END(weft__activity_leave)

/* weft__activity_aside(char *top, void (*fn)(void *), void *arg): call fn on another stack. */
FUNCTION(weft__activity_aside)
	ENTER_FRAME
	mov	rsp, rdi
	mov	rdi, rdx
	call	rsi
	mov	rsp, rbp
	LEAVE_FRAME
	ret
END(weft__activity_aside)

/* weft__activity_walk(void *const words[3], void (*fn)(void *), void *arg): call fn. fn's unwinder sees this
 * function as called by the frame whose stack pointer, return address and rbp are in `words`. */
FUNCTION(weft__activity_walk)
	.cfi_signal_frame
	PUSH(rbp)
	mov	rbp, rdi
	.cfi_remember_state
	.cfi_escape 0x0f, 3, 0x76, 0, 0x06  /* CFA: the word at rbp */
	.cfi_escape 0x10, 16, 2, 0x76, 8    /* rip: at rbp + 8 */
	.cfi_escape 0x10, 6, 2, 0x76, 16    /* rbp: at rbp + 16 */
	mov	rdi, rdx
	call	rsi
	.cfi_restore_state
	POP(rbp)
	ret
END(weft__activity_walk)

/*
 * A twin jumps here in place of its body, with its arguments: call hot.target with them in the next segment of the
 * window. If the window is nearly full, call it in another stack, with a copy of hot.arguments bytes of the arguments
 * that are on this stack.
 */
PUBLIC(weft__activity_fresh)
	mov	r11, weft__activity_hot@gottpoff[rip]
	mov	rax, fs:[r11 + HOT_GROUP]
	mov	rax, [rax + GROUP_DEEPEST]
	cmp	rax, fs:[r11 + HOT_FULL]
	jne	.Lsegment
	ENTER_FRAME
	push	rdi
	push	rsi
	push	rdx
	push	rcx
	push	r8
	push	r9
	push	rax
	push	r10
	PUSH_VECTORS
	lea	rdi, [rbp + 8]
	call	weft__activity_grow
	/* rax: the present address of the arguments on the stack, below the new stack's record. */
	mov	r11, weft__activity_hot@gottpoff[rip]
	lea	rcx, .Lreturned[rip]
	lea	rdx, .Lreturned_far[rip]
	cmp	dword ptr fs:[r11 + HOT_ARGUMENTS], PAGE - STACK_RECORD - RESULTS - ARGUMENT_ALIGNMENT
	cmova	rcx, rdx
	mov	r11, fs:[r11 + HOT_TARGET]
	mov	[rax - 8], rcx
	lea	rcx, [rax - 8]
	mov	[rbp - 56], rcx /* in the slot of rax, which only holds the number of vectors: 8 replaces it */
	POP_VECTORS
	mov	r10, [rbp - 64]
	mov	eax, 8
	mov	rdi, [rbp - 8]
	mov	rsi, [rbp - 16]
	mov	rdx, [rbp - 24]
	mov	rcx, [rbp - 32]
	mov	r8, [rbp - 40]
	mov	r9, [rbp - 48]
	mov	rsp, [rbp - 56]
	mov	rbp, [rbp]
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	jmp	r11
END(weft__activity_fresh)

/*
 * weft__activity_segment continues in the next segment of the window, by a call, so that the processor predicts the
 * return. rax: group.deepest. If a frame is larger than a segment, its function enters here again at once, and the
 * segment becomes twice as large. Results may be in rax, rdx, rcx and vectors.
 */
FUNCTION(weft__activity_segment)
.Lsegment:
	push	rax
	.cfi_def_cfa_offset 16
	lea	rax, .Lleave_segment[rip]
	cmp	rax, [rsp + 8]
	je	.Lwiden
	mov	rax, fs:[r11 + HOT_GROUP]
	push	qword ptr [rax + GROUP_SEGMENT]
	sub	rsp, 8
	.cfi_def_cfa_offset 32
	mov	[rax + GROUP_SEGMENT], rsp /* a struct weft__segment */
	lea	rax, [rsp - SEGMENT_BYTES]
	cmp	rax, [rsp + 16]
	cmovb	rax, [rsp + 16]
	mov	[rsp], rax
	mov	rax, fs:[r11 + HOT_FULL]
	mov	[rsp + 16], rax
	mov	rax, [rsp]
	mov	fs:[r11 + HOT_FULL], rax
	SET_LIMIT(rax)
	mov	qword ptr [rsp], 0
	call	qword ptr fs:[r11 + HOT_TARGET]
.Lleave_segment:
	cmp	qword ptr [rsp], 0
	jne	.Lunderflow
.Lcomplete:
	mov	r11, weft__activity_hot@gottpoff[rip]
	mov	r8, [rsp + 8]
	mov	r9, [rsp + 16]
	mov	r10, fs:[r11 + HOT_GROUP]
	mov	[r10 + GROUP_SEGMENT], r8
	mov	fs:[r11 + HOT_FULL], r9
	SET_LIMIT(r9)
	add	rsp, 24
	.cfi_def_cfa_offset 8
	ret
.Lwiden:
	.cfi_def_cfa_offset 16
	mov	rax, fs:[r11 + HOT_FULL]
	add	rax, rax
	sub	rax, rsp
	cmp	rax, [rsp]
	cmovb	rax, [rsp]
	add	rsp, 8
	.cfi_def_cfa_offset 8
	mov	fs:[r11 + HOT_FULL], rax
	SET_LIMIT(rax)
	jmp	qword ptr fs:[r11 + HOT_TARGET]
	.cfi_def_cfa_offset 32
.Lunderflow:
	ENTER_FRAME
	sub	rsp, 8
	PUSH_RESULTS
	lea	rdi, [rbp + 8]
	call	weft__activity_underflow
	POP_RESULTS
	add	rsp, 8
	LEAVE_FRAME
	jmp	.Lcomplete
END(weft__activity_segment)

/*
 * hot.target returns here: switch back to the stack that the call came from, with the results. Unwinders find that
 * stack by the record at the end of this stack, if the record is in the page of the stack pointer; it is not if the
 * arguments fill a page. gdb accepts a caller's frame further in only if the function is called __morestack.
 */
	.text
	.p2align 4
	.set IN_PAGE, PAGE - STACK_RECORD + STACK_CAME_FROM
	.type __morestack, @function
__morestack:
	.cfi_startproc
	.cfi_undefined rip
	nop /* unwinders look for the function at one byte before a return address */
.Lreturned_far:
	jmp	.Lreturned
	.cfi_offset rip, -8 /* .cfi_restore would mean the same, but not to libgcc */
	/* CFA: the word at (rsp & -PAGE) + PAGE - STACK_RECORD + STACK_CAME_FROM, and 8. By operations that valgrind knows. */
	.cfi_escape 0x0f, 12, 0x77, 0, 0x0b, 0, 0xf0, 0x1a, 0x23, 0x80 | (IN_PAGE & 127), IN_PAGE >> 7, 0x06, 0x23, 8
	nop
.Lreturned:
	PUSH_RESULTS
	call	weft__activity_shrink
	mov	r11, rax
	POP_RESULTS
	mov	rsp, r11
	.cfi_def_cfa rsp, 8
	ret
END(__morestack)

/* weft__activity_measure(): find out how much PUSH_VECTORS has to save. Once in a process, because a virtual machine may
 * trap cpuid. */
.set AVX_AND_OSXSAVE, 3 << 27
.set TELLS_USE, 4
FUNCTION(weft__activity_measure)
	PUSH(rbx)
	mov	eax, 1
	cpuid
	and	ecx, AVX_AND_OSXSAVE
	cmp	ecx, AVX_AND_OSXSAVE
	jne	1f
	mov	eax, 0xd
	mov	ecx, 1
	cpuid
	xor	ecx, ecx
	test	al, TELLS_USE
	setnz	cl
	mov	xgetbv_index[rip], ecx
1:	POP(rbx)
	ret
END(weft__activity_measure)
	.data
	.p2align 2
	/* The index of xgetbv that PUSH_VECTORS asks for. 1: vectors in use; 0: vectors that the kernel saves, if
	 * the processor does not tell which vectors are in use; -1: there is no AVX. */
xgetbv_index:
	.long	-1

	.section .note.GNU-stack, "", @progbits
