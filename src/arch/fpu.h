/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The floating-point control state that WEFT_SAVE_FPU keeps per coroutine, in one word. */
#ifndef WEFT_SRC_ARCH_FPU_H
#define WEFT_SRC_ARCH_FPU_H

#include <stdint.h>

#if defined(__x86_64__)

/* MXCSR in the low half, the x87 control word in the high half. */
enum { WEFT__MXCSR_DEFAULT = 0x1f80, WEFT__X87_DEFAULT = 0x037f };
#define WEFT__FPU_DEFAULT (WEFT__MXCSR_DEFAULT | (uint64_t)WEFT__X87_DEFAULT << 32)

static inline uint64_t weft__fpu_get(void)
{
	uint32_t mxcsr;
	uint16_t control;

	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
	return mxcsr | (uint64_t)control << 32;
}

static inline void weft__fpu_set(uint64_t state)
{
	uint32_t mxcsr = (uint32_t)state;
	uint16_t control = (uint16_t)(state >> 32);

	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(control));
}

#elif defined(__aarch64__)

/* FPCR: rounding, flushing to zero, default NaNs, traps. */
#define WEFT__FPU_DEFAULT ((uint64_t)0)

static inline uint64_t weft__fpu_get(void)
{
	uint64_t control;

	__asm__ volatile("mrs %0, fpcr" : "=r"(control));
	return control;
}

static inline void weft__fpu_set(uint64_t state)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(state));
}

#elif defined(__riscv)

/* The rounding mode. */
#define WEFT__FPU_DEFAULT ((uint64_t)0)

static inline uint64_t weft__fpu_get(void)
{
	uint64_t control;

	__asm__ volatile("frrm %0" : "=r"(control));
	return control;
}

static inline void weft__fpu_set(uint64_t state)
{
	__asm__ volatile("fsrm %0" : : "r"(state));
}

#else
#error "weft: write weft__fpu_get and weft__fpu_set for this architecture"
#endif

#endif
