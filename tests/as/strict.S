/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A strict run time, for the tests of weft-as. With strict_limit = 0 nothing ever splits. With a limit above all
 * addresses every check fires: __morestack gives the function exactly the bytes that it requests, the arguments that it
 * names, and the rest of the slack after a check by bare rsp; a function that touches more destroys a pattern, which is
 * reported. weft__ext gives the callee exactly the arguments that were counted, and garbage above them.
 *
 * One thread, no exceptions while strict.
 */
#define LIMIT %fs:0x70
#define SLACK 208 /* remainder of the least slack, 272, after a check by bare rsp */
#define PATTERN 256
#define RUBBISH 512
#define WORD $0x5ca1ab1e

	.data
	.p2align 3
	.globl strict_limit, strict_at, strict_top, strict_service, strict_splits, strict_externals
strict_limit:	.quad 0
strict_at:	.quad 0		/* blocks are below */
strict_top:	.quad 0		/* end of the current block */
strict_service:	.quad 0		/* service frames are below */
strict_splits:	.quad 0
strict_externals: .quad 0

#define KEEP(reg, n) movq reg, -n(%rbp)
#define BACK(reg, n) movq -n(%rbp), reg
#define KEEP_ALL \
	subq $80, %rsp; KEEP(%rax, 8); KEEP(%rcx, 16); KEEP(%rdx, 24); KEEP(%rsi, 32); KEEP(%rdi, 40)
#define BACK_ALL BACK(%rax, 8); BACK(%rcx, 16); BACK(%rdx, 24); BACK(%rsi, 32); BACK(%rdi, 40)

	.text
	.p2align 4
	.globl weft__morestack
	.type weft__morestack, @function
weft__morestack:
	.cfi_startproc
	pushq	%r10
	pushq	%rbp
	movq	%rsp, %rbp
	.cfi_def_cfa %rbp, 24
	.cfi_offset %rbp, -24
	KEEP_ALL
	movl	%r11d, %r10d
	sarq	$32, %r11
	incq	strict_splits(%rip)
	movq	strict_at(%rip), %rax
	KEEP(%rax, 48)
	movq	strict_top(%rip), %rcx
	KEEP(%rcx, 56)
	leaq	24(%rbp), %rsi
	cmpq	$-1, %r11
	jne	1f
	movq	%rcx, %r11
	subq	%rsi, %r11
	jbe	2f
	cmpq	$8192, %r11
	jbe	1f
2:	movl	$4096, %r11d
1:	subq	%r11, %rax
	andq	$-64, %rax
	movq	%rax, %rdi
	movq	%r11, %rcx
	cld
	rep movsb
	movq	%rdi, strict_top(%rip)
	movq	%rax, %rdx
	subq	%r10, %rax
	subq	$SLACK+8+PATTERN, %rax
	KEEP(%rax, 64)
	movq	%rax, %rdi
	andq	$-64, %rax
	movq	%rax, strict_at(%rip)
	movl	$PATTERN/4, %ecx
	movl	WORD, %eax
	rep stosl
	movq	%rdx, %r11
	BACK_ALL
	movq	%rsp, %r10
	movq	%r11, %rsp
	movq	8(%rbp), %r10
	call	*%r10
	leaq	-80(%rbp), %rsp
	BACK(%rdi, 64)
	movl	$PATTERN/4, %ecx
	movq	%rax, %rsi
	movl	WORD, %eax
	repe scasl
	jne	strict_overrun
	movq	%rsi, %rax
	BACK(%rcx, 48)
	movq	%rcx, strict_at(%rip)
	BACK(%rcx, 56)
	movq	%rcx, strict_top(%rip)
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size weft__morestack, . - weft__morestack

strict_overrun:
	movq	8(%rbp), %rdi
	movq	$0, LIMIT
	leaq	(%rbp), %rsp
	andq	$-64, %rsp
	movq	strict_service(%rip), %rsp
	andq	$-64, %rsp
	call	strict_died@PLT

	.p2align 4
	.globl weft__allocate_stack_space
	.type weft__allocate_stack_space, @function
weft__allocate_stack_space:
	movq	strict_at(%rip), %rax
	subq	%rdi, %rax
	andq	$-64, %rax
	movq	%rax, strict_at(%rip)
	ret
	.size weft__allocate_stack_space, . - weft__allocate_stack_space

	.p2align 4
	.globl weft__icall
	.type weft__icall, @function
weft__icall:
	testl	$0xff8, %r11d
	je	weft__ext
	cmpl	$0x74666577, -8(%r11)
	jne	weft__ext
	jmp	*%r11
	.size weft__icall, . - weft__icall

	.p2align 4
	.globl weft__ext
	.type weft__ext, @function
weft__ext:
	.cfi_startproc
	incq	strict_externals(%rip)
	cmpq	$0, LIMIT
	jne	1f
	jmp	*%r11
1:	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	KEEP_ALL
	movq	strict_service(%rip), %rax
	KEEP(%rax, 48)
	movq	%rax, %rdi
	subq	$RUBBISH, %rdi
	KEEP(%rdi, 56)
	movl	$RUBBISH, %ecx
	movl	$0xdb, %eax
	cld
	rep stosb
	leaq	16(%rbp), %rsi
	cmpq	$-1, %r10
	jne	2f
	movq	strict_top(%rip), %r10
	subq	%rsi, %r10
	jbe	3f
	cmpq	$8192, %r10
	jbe	2f
3:	movl	$4096, %r10d
2:	BACK(%rax, 56)
	subq	%r10, %rax
	andq	$-64, %rax
	movq	%rax, %rdi
	movq	%r10, %rcx
	rep movsb
	/* Between the arguments and the garbage: also garbage. */
4:	cmpq	-56(%rbp), %rdi
	jae	5f
	movb	$0xdb, (%rdi)
	incq	%rdi
	jmp	4b
5:	movq	%rax, %r10
	leaq	-65536*4(%rax), %rcx
	movq	%rcx, strict_service(%rip)
	movq	$0, LIMIT
	BACK_ALL
	movq	%r10, %rsp
	call	*%r11
	leaq	-80(%rbp), %rsp
	BACK(%rcx, 48)
	movq	%rcx, strict_service(%rip)
	movq	strict_limit(%rip), %rcx
	movq	%rcx, LIMIT
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size weft__ext, . - weft__ext

	.p2align 4
	.globl weft__after_setjmp
	.type weft__after_setjmp, @function
weft__after_setjmp:
	movq	strict_limit(%rip), %rcx
	movq	%rcx, LIMIT
	ret
	.size weft__after_setjmp, . - weft__after_setjmp

	.section .note.GNU-stack,"",@progbits
