/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that a signal handler needs of an architecture: find the interrupted code's stack, and redirect the
 * code. */
#ifndef WEFT_SRC_ARCH_SIGNAL_H
#define WEFT_SRC_ARCH_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <weft/detail/arch.h>

/* Registers of a context: lvalues. */
#if defined(__x86_64__)
#define WEFT__CONTEXT_PC(context) ((context)->uc_mcontext.gregs[REG_RIP])
#define WEFT__CONTEXT_SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
#define WEFT__CONTEXT_ARGUMENT(context) ((context)->uc_mcontext.gregs[REG_RDI])
#elif defined(__aarch64__)
#define WEFT__CONTEXT_PC(context) ((context)->uc_mcontext.pc)
#define WEFT__CONTEXT_SP(context) ((context)->uc_mcontext.sp)
#define WEFT__CONTEXT_FP(context) ((context)->uc_mcontext.regs[29])
#define WEFT__CONTEXT_ARGUMENT(context) ((context)->uc_mcontext.regs[0])
#define WEFT__CONTEXT_RETURN(context) ((context)->uc_mcontext.regs[30])
#elif defined(__riscv)
#define WEFT__CONTEXT_PC(context) ((context)->uc_mcontext.__gregs[REG_PC])
#define WEFT__CONTEXT_SP(context) ((context)->uc_mcontext.__gregs[REG_SP])
#define WEFT__CONTEXT_FP(context) ((context)->uc_mcontext.__gregs[REG_S0])
#define WEFT__CONTEXT_ARGUMENT(context) ((context)->uc_mcontext.__gregs[REG_A0])
#define WEFT__CONTEXT_RETURN(context) ((context)->uc_mcontext.__gregs[REG_RA])
#else
#error "weft: write the macros above, and the functions below, for this architecture"
#endif

static inline char *weft__context_sp(const ucontext_t *context)
{
	return (char *)(uintptr_t)WEFT__CONTEXT_SP(context);
}

static inline bool weft__context_on_alt_stack(const ucontext_t *context)
{
	return (uintptr_t)weft__context_sp(context) - (uintptr_t)context->uc_stack.ss_sp < context->uc_stack.ss_size;
}

static inline const void *weft__context_pc(const ucontext_t *context)
{
	return (const void *)(uintptr_t)WEFT__CONTEXT_PC(context);
}

static inline void weft__context_jump(ucontext_t *context, const void *to)
{
	WEFT__CONTEXT_PC(context) = (__typeof__(WEFT__CONTEXT_PC(context)))(uintptr_t)to;
}

/* True if the interrupted code has switched to a coroutine whose object reads as zeros: then both registers are
 * zero. */
static inline bool weft__context_resumes_nothing(ucontext_t *context, void **k)
{
	*k = (void *)(uintptr_t)WEFT__CONTEXT_ARGUMENT(context);
	return !WEFT__CONTEXT_PC(context) && !WEFT__CONTEXT_SP(context);
}

/* weft__is_resume gets this many bytes of code before the interrupted instruction, and this many from it on. */
enum { WEFT__CODE_AROUND = 512 };

#if defined(__x86_64__)

/* For a fault without an address: true if the kernel raised it because it could not write a signal's frame to the
 * stack, false if an instruction did. (If an earlier fault of the thread came from such an instruction, the kernel's
 * fault looks the same.) */
static inline bool weft__context_lacks_room(const ucontext_t *context)
{
	enum { GENERAL_PROTECTION = 13 };

	return context->uc_mcontext.gregs[REG_TRAPNO] != GENERAL_PROTECTION;
}

/*
 * True if the interrupted instruction is the first of weft_resume that reads the coroutine. It loads or compares a
 * word, and weft_arch_resume is near: before it if the compiler has put the slow paths behind the usual path.
 */
static inline bool weft__is_resume(const unsigned char *code, size_t bytes)
{
	/* movq WEFT_LINK_PC(%rdi), %rdx; movq %rcx, WEFT_LINK_PC(%rdi); leaq …(%rip), %rcx */
	static const unsigned char begins[] = {0x48, 0x8b,	   0x57, WEFT_LINK_PC, 0x48, 0x89,
					       0x4f, WEFT_LINK_PC, 0x48, 0x8d,	       0x0d};
	enum { WIDE_MASK = 0xf8, WIDE = 0x48, LOAD = 0x8b, COMPARE = 0x39, COMPARE_BACK = 0x3b };
	const unsigned char *at = code + WEFT__CODE_AROUND;

	if (bytes < WEFT__CODE_AROUND + 2 || (at[0] & WIDE_MASK) != WIDE ||
	    (at[1] != LOAD && at[1] != COMPARE && at[1] != COMPARE_BACK))
		return false;
	for (size_t i = 0; i + sizeof begins <= bytes; i++)
		if (!memcmp(code + i, begins, sizeof begins))
			return true;
	return false;
}

/* True if an instruction in the code loads or compares the word at `offset` from a pointer. */
static inline bool weft__reads_field(const unsigned char *code, size_t bytes, size_t offset)
{
	enum { LOAD = 0x8b, COMPARE = 0x39, COMPARE_BACK = 0x3b, MOD_SHIFT = 6, RM = 7, RM_SIB = 4, MOST_BYTE = 127 };
	size_t width = offset <= MOST_BYTE ? 1 : 4, at;
	uint32_t word = (uint32_t)offset;

	for (size_t i = 0; i + 3 + width <= bytes; i++) {
		at = (code[i + 1] & RM) == RM_SIB ? i + 3 : i + 2;
		if ((code[i] == LOAD || code[i] == COMPARE || code[i] == COMPARE_BACK) &&
		    code[i + 1] >> MOD_SHIFT == (width == 1 ? 1 : 2) && !memcmp(code + at, &word, width))
			return true;
	}
	return false;
}

/* weft__is_use gets this many bytes of code from the interrupted instruction on. */
enum { WEFT__CODE_OF_USE = 80 };

/*
 * True if the interrupted instruction is the first of weft_continue, weft_tail_continue or weft_is_valid that reads the
 * resumption. It loads the resumption's first word, the coroutine. Shortly after it, the second word is compared with
 * the coroutine's field at `id`, and another word with the field at `resume_serial`.
 */
static inline bool weft__is_use(const unsigned char *code, size_t bytes, size_t id, size_t turn)
{
	enum { WIDE_MASK = 0xf8, WIDE = 0x48, LOAD = 0x8b };

	return bytes > 2 && (code[0] & WIDE_MASK) == WIDE && code[1] == LOAD &&
	       weft__reads_field(code, bytes, sizeof(void *)) && weft__reads_field(code, bytes, id) &&
	       weft__reads_field(code, bytes, turn);
}

/* On return from the handler, call function(argument) on the stack below `sp`, as if from `fp`'s frame. */
static inline void weft__context_call(ucontext_t *context, void (*function)(void *), void *argument, char *sp, void *fp)
{
	enum { RED_ZONE = 128, DIRECTION_FLAG = 1 << 10 };
	greg_t *regs = context->uc_mcontext.gregs;

	regs[REG_RIP] = (greg_t)(uintptr_t)function;
	regs[REG_RDI] = (greg_t)(uintptr_t)argument;
	regs[REG_RSP] = (greg_t)((((uintptr_t)sp - RED_ZONE) & ~(uintptr_t)15) - 8); /* as after a call */
	regs[REG_RBP] = (greg_t)(uintptr_t)fp;
	regs[REG_EFL] &= ~(greg_t)DIRECTION_FLAG;
}

#else

/* On these architectures each fault of an instruction has an address. */
static inline bool weft__context_lacks_room(const ucontext_t *context)
{
	(void)context;
	return true;
}

/* On RISC-V an instruction has two bytes or four. */
static inline uint32_t weft__instruction_at(const unsigned char *code)
{
	uint32_t instruction;

	memcpy(&instruction, code, sizeof instruction);
	return instruction;
}

#if defined(__aarch64__)
/* True if the instruction loads or stores. */
static inline bool weft__uses_memory(uint32_t instruction)
{
	return (instruction & 0x0a000000) == 0x08000000;
}

static inline bool weft__is_resume(const unsigned char *code, size_t bytes)
{
	/* ldr x5, [x0, #WEFT_LINK_PC]; str x4, [x0, #WEFT_LINK_PC] */
	const uint32_t load = 0xf9400005 | WEFT_LINK_PC / 8 << 10, store = 0xf9000004 | WEFT_LINK_PC / 8 << 10;

	if (bytes < WEFT__CODE_AROUND + 4 || !weft__uses_memory(weft__instruction_at(code + WEFT__CODE_AROUND)))
		return false;
	for (size_t i = 0; i + 8 <= bytes; i += 4)
		if (weft__instruction_at(code + i) == load && weft__instruction_at(code + i + 4) == store)
			return true;
	return false;
}

/* True if an instruction in the code loads from `offset` bytes behind a pointer: a word, half a word, or two words
 * together. */
static inline bool weft__reads_field(const unsigned char *code, size_t bytes, size_t offset)
{
	enum { PAIR = 127 << 15 };

	for (size_t i = 0; i + 4 <= bytes; i += 4) {
		uint32_t instruction = weft__instruction_at(code + i), scaled = instruction & 0xfffffc00 & ~(31u << 5);
		uint32_t pair = (instruction & PAIR) >> 15;

		if (scaled == (0xf9400000 | (uint32_t)offset / 8 << 10) ||
		    scaled == (0xb9400000 | (uint32_t)offset / 4 << 10))
			return true;
		if ((instruction & 0xffc00000) == 0xa9400000 && (pair == offset / 8 || pair + 1 == offset / 8))
			return true;
	}
	return false;
}

#else

/* True if the instruction loads or stores. */
static inline bool weft__uses_memory(uint32_t instruction)
{
	unsigned short_form = instruction >> 13 & 7;

	if ((instruction & 3) == 3)
		return (instruction & 0x7f) == 0x03 || (instruction & 0x7f) == 0x23;
	return !(instruction & 3) && (short_form == 2 || short_form == 3 || short_form == 6 || short_form == 7);
}

static inline bool weft__is_resume(const unsigned char *code, size_t bytes)
{
	const uint32_t load = 0x00053283 | WEFT_LINK_PC << 20; /* ld t0, WEFT_LINK_PC(a0) */

	if (bytes < WEFT__CODE_AROUND + 4 || !weft__uses_memory(weft__instruction_at(code + WEFT__CODE_AROUND)))
		return false;
	for (size_t i = 0; i + 4 <= bytes; i += 2)
		if (weft__instruction_at(code + i) == load)
			return true;
	return false;
}

/* True if an instruction in the code loads from `offset` bytes behind a pointer. */
static inline bool weft__reads_field(const unsigned char *code, size_t bytes, size_t offset)
{
	for (size_t i = 0; i + 4 <= bytes; i += 2) {
		uint32_t word = weft__instruction_at(code + i), high = word >> 10 & 7, low = word >> 5 & 3;

		if ((word & 0x7f) == 0x03 && word >> 20 == offset)
			return true;
		if ((word & 0xe003) == 0x6000 && (high << 3 | low << 6) == offset)
			return true;
		if ((word & 0xe003) == 0x4000 && (high << 3 | (low & 1) << 6 | (low & 2) << 1) == offset)
			return true;
	}
	return false;
}

#endif

enum { WEFT__CODE_OF_USE = 128 };

static inline bool weft__is_use(const unsigned char *code, size_t bytes, size_t id, size_t turn)
{
	return bytes > 4 && weft__uses_memory(weft__instruction_at(code)) &&
	       weft__reads_field(code, bytes, sizeof(void *)) && weft__reads_field(code, bytes, id) &&
	       weft__reads_field(code, bytes, turn);
}

static inline void weft__context_call(ucontext_t *context, void (*function)(void *), void *argument, char *sp, void *fp)
{
	weft__context_jump(context, (const void *)function);
	WEFT__CONTEXT_ARGUMENT(context) = (uintptr_t)argument;
	WEFT__CONTEXT_SP(context) = (uintptr_t)sp & ~(uintptr_t)15;
	WEFT__CONTEXT_FP(context) = (uintptr_t)fp;
	WEFT__CONTEXT_RETURN(context) = 0;
}

#endif

#endif
