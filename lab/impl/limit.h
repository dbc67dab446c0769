/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * limit.h: the physical limit. The minimum of a stackful switch on x86-64: exchange stack pointer, program counter and
 * frame pointer, and let the compiler save the live registers. No state, no check, no parent chain, no effects, no
 * unwinding, one fixed stack from malloc. Programs should not use this; it is the yardstick.
 *
 * Two forms, because neither is the fastest everywhere:
 *   LIMIT_CALLRET  resume is a `call` made on the coroutine's stack, yield a `ret` to it. The return-address predictor
 *                  stays in step as long as resume and yield are each in one function; it loses step when the
 *                  coroutine yields from inside a call.
 *   otherwise      both are indirect jumps. The return-address predictor is not involved.
 */
#ifndef LIMIT_H
#define LIMIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct limit {
	void *sp, *pc, *fp;
	void *parent_sp, *parent_pc, *parent_fp;
	void (*fn)(struct limit *k, void *arg);
	void *arg;
	void *stack;
};

#define LIMIT_LOST                                                                                                     \
	"rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rbx", "memory", "cc", "xmm0", "xmm1",     \
	    "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",        \
	    "xmm14", "xmm15"

#define LIMIT_INLINE static inline __attribute__((always_inline, unused))

/* rdi: the coroutine, both ways. rsi: the value on resume. rdx: the value on yield. */
#ifdef LIMIT_CALLRET

/* Fields: sp 0, pc 8, fp 16, parent_sp 24, parent_pc 32, parent_fp 40. */
LIMIT_INLINE void *limit_resume(struct limit *k, void *value)
{
	void *out;

	__asm__ volatile("movq %%rbp, 40(%%rdi)\n\t"
			 "movq %%rsp, 24(%%rdi)\n\t"
			 "movq (%%rdi), %%rsp\n\t"
			 "movq 16(%%rdi), %%rbp\n\t"
			 "call *8(%%rdi)\n\t"
			 "movq 24(%%rdi), %%rsp\n\t"
			 "movq 40(%%rdi), %%rbp\n\t"
			 : "+D"(k), "+S"(value), "=d"(out)
			 :
			 : LIMIT_LOST);
	return out;
}

/* The resumer's return address was pushed where this stack ended (below the red zone): it is saved in the coroutine, so
 * that the next resume may come from a different place. */
LIMIT_INLINE void *limit_yield(struct limit *k, void *out)
{
	void *value;

	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
			 "leaq 1f(%%rip), %%rcx\n\t"
			 "movq %%rbp, 16(%%rdi)\n\t"
			 "movq %%rsp, (%%rdi)\n\t"
			 "movq %%rcx, 8(%%rdi)\n\t"
			 "pushq 32(%%rdi)\n\t"
			 "ret\n"
			 "1:\tpopq 32(%%rdi)\n\t"
			 "leaq 128(%%rsp), %%rsp\n\t"
			 : "+D"(k), "=S"(value), "+d"(out)
			 :
			 : LIMIT_LOST);
	return value;
}

__asm__(".text\n"
	".type limit_entry, @function\n"
	"limit_entry:\n\t"
	"popq 32(%rdi)\n\t"
	"movq 56(%rdi), %rsi\n\t"
	"call *48(%rdi)\n\t"
	"ud2\n"
	".size limit_entry, . - limit_entry\n");

#else

LIMIT_INLINE void *limit_resume(struct limit *k, void *value)
{
	void *out;

	__asm__ volatile("leaq 1f(%%rip), %%rcx\n\t"
			 "movq %%rbp, 40(%%rdi)\n\t"
			 "movq %%rsp, 24(%%rdi)\n\t"
			 "movq %%rcx, 32(%%rdi)\n\t"
			 "movq (%%rdi), %%rsp\n\t"
			 "movq 16(%%rdi), %%rbp\n\t"
			 "jmp *8(%%rdi)\n"
			 "1:\n\t"
			 : "+D"(k), "+S"(value), "=d"(out)
			 :
			 : LIMIT_LOST);
	return out;
}

LIMIT_INLINE void *limit_yield(struct limit *k, void *out)
{
	void *value;

	__asm__ volatile("leaq 1f(%%rip), %%rcx\n\t"
			 "movq %%rbp, 16(%%rdi)\n\t"
			 "movq %%rsp, (%%rdi)\n\t"
			 "movq %%rcx, 8(%%rdi)\n\t"
			 "movq 24(%%rdi), %%rsp\n\t"
			 "movq 40(%%rdi), %%rbp\n\t"
			 "jmp *32(%%rdi)\n"
			 "1:\n\t"
			 : "+D"(k), "=S"(value), "+d"(out)
			 :
			 : LIMIT_LOST);
	return value;
}

__asm__(".text\n"
	".type limit_entry, @function\n"
	"limit_entry:\n\t"
	"movq 56(%rdi), %rsi\n\t"
	"call *48(%rdi)\n\t"
	"ud2\n"
	".size limit_entry, . - limit_entry\n");

#endif

extern const char limit_entry[] __asm__("limit_entry");

_Static_assert(offsetof(struct limit, pc) == 8 && offsetof(struct limit, fp) == 16, "the assembly knows them");
_Static_assert(offsetof(struct limit, parent_sp) == 24 && offsetof(struct limit, parent_pc) == 32, "");
_Static_assert(offsetof(struct limit, parent_fp) == 40 && offsetof(struct limit, fn) == 48, "");
_Static_assert(offsetof(struct limit, arg) == 56, "");

/* Prepares `k`, which has a stack, to run fn. fn must never return: it yields for the last time instead. */
LIMIT_INLINE void limit_rearm(struct limit *k, size_t size, void (*fn)(struct limit *, void *), void *arg)
{
	/* The ABI's alignment holds after the entry's call (under call/ret, the resumer's call was popped before
	 * it). */
	k->sp = (char *)k->stack + size - 64;
	k->pc = (void *)(uintptr_t)limit_entry;
	k->fp = NULL;
	k->fn = fn;
	k->arg = arg;
}

LIMIT_INLINE void limit_make(struct limit *k, size_t size, void (*fn)(struct limit *, void *), void *arg)
{
	k->stack = aligned_alloc(64, size);
	if (!k->stack)
		abort();
	limit_rearm(k, size, fn, arg);
}

#endif /* LIMIT_H */
