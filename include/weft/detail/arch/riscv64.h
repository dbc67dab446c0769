/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The switch on RISC-V, LP64D. src/arch/README.md has the stack layouts, ../arch.h the contract; aarch64.h is alike.
 *
 * Registers across a switch
 *   a0      in and out: the coroutine; the code after a landing pad can rely on it
 *   a1      resume -> landing pad: the value passed in
 *   a2, a3  yield -> resume site: the request
 *   a4      weft_arch_transfer -> landing pad: the coroutine that suspended
 *   t0-t2   scratch of the sender
 *   all other registers: lost (declared clobbered), except sp and s0, which are exchanged, and s1 under clang, which
 *   may use it as base pointer and then ignores a clobber; there the link (bx) holds s1 across the switch.
 *
 * Linked stacks do not exist here, so a thread has no limit, and weft__set_limit does nothing.
 */
#ifndef WEFT_ARCH_RISCV64_H
#define WEFT_ARCH_RISCV64_H

#if defined(__riscv_zicfiss) || defined(__riscv_landing_pad)
#error "weft: shadow stacks and landing pads (Zicfiss, Zicfilp) are not switched: compile without -fcf-protection"
#endif

#define WEFT__STR_(x) #x
#define WEFT__STR(x) WEFT__STR_(x)
/* "offset(a0)": a field of the coroutine in a0. */
#define WEFT__K(field) WEFT__STR(field) "(a0)"

/* These go around the instructions between a change of stacks and the jump: see aarch64.h. */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define WEFT__AWAY ".cfi_remember_state\n\t.cfi_undefined 1\n\t" /* the return address */
#define WEFT__BACK ".cfi_restore_state\n\tunimp\n\t"
#else
#define WEFT__AWAY
#define WEFT__BACK
#endif

#define WEFT__PAD ".p2align 6\n1:\t"

#if defined(__clang__)
#define WEFT__SAVE_BX(field) "sd s1, " WEFT__K(field) "\n\t"
#define WEFT__LOAD_BX(field) "ld s1, " WEFT__K(field) "\n\t"
#define WEFT__LOST_BX
#else
#define WEFT__SAVE_BX(field)
#define WEFT__LOAD_BX(field)
#define WEFT__LOST_BX , "s1"
#endif

/* clang-format off */
/*
 * The landing pad of a suspended coroutine. WEFT_LEFT_BYTES before it there is a second pad: a jump to the label
 * `left`. A coroutine that lands on the second pad must end, not continue. Neither the assembler nor the linker may
 * shorten the instructions here.
 */
#define WEFT__WAIT_PAD \
	".option push\n\t.option norvc\n\t.option norelax\n\t" \
	".p2align 6\n\t.skip 48\n2:\t" \
	WEFT__LOAD_BX(WEFT_LINK_BX) \
	"j %l[left]\n\t" \
	".skip " WEFT__STR(WEFT_LEFT_BYTES) " - (. - 2b)\n1:\t" \
	".option pop\n\t"
/* clang-format on */

#if defined(__riscv_vector)
#define WEFT__LOST_VECTORS                                                                                             \
	, "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
	    "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",   \
	    "vl", "vtype"
#else
#define WEFT__LOST_VECTORS
#endif

#define WEFT__LOST                                                                                                     \
	"ra", "a5", "a6", "a7", "t3", "t4", "t5", "t6",                                                                \
	    "memory" WEFT__LOST_S2_TO_S11 WEFT__LOST_FLOATS WEFT__LOST_BX WEFT__LOST_VECTORS
#if WEFT_NO_CANARY(r12_to_r15_survive)
#define WEFT__LOST_S2_TO_S11 , "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11"
#else
#define WEFT__LOST_S2_TO_S11
#endif
#if WEFT_NO_CANARY(vector_registers_survive)
#define WEFT__LOST_FLOATS                                                                                              \
	, "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4",     \
	    "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", \
	    "ft10", "ft11"
#else
#define WEFT__LOST_FLOATS
#endif

/* One instruction per line. */
/* clang-format off */

/*
 * Suspend the caller and continue k, by the words of its link; `after` finds the request in a2 and a3, and may use t0
 * to t2. Registers that carry a value in are variables here, because no constraint names a register.
 */
#define WEFT__RESUME(k, value, after) \
	weft_request_t request; \
	register struct weft_link *weft__a0 __asm__("a0") = *(k); \
	register void *weft__a1 __asm__("a1") = (value); \
	register const struct weft_effect *weft__a2 __asm__("a2"); \
	register void *weft__a3 __asm__("a3"); \
	register void (*weft__a4)(void) __asm__("a4") = weft__in_running; \
\
	__asm__ volatile( \
	    WEFT_CANARY_OR(red_zone_is_written, "sd a4, -8(sp)\n\t", "") \
	    WEFT_CANARY_OR(value_is_lost, "li a1, 0\n\t", "") \
	    "ld t0, " WEFT__K(WEFT_LINK_PC) "\n\t" \
	    "sd a4, " WEFT__K(WEFT_LINK_PC) "\n\t" \
	    "lla t1, 1f\n\t" \
	    "sd sp, " WEFT__K(WEFT_LINK_PARENT_SP) "\n\t" \
	    "sd s0, " WEFT__K(WEFT_LINK_PARENT_FP) "\n\t" \
	    "sd t1, " WEFT__K(WEFT_LINK_PARENT_PC) "\n\t" \
	    WEFT__SAVE_BX(WEFT_LINK_PARENT_BX) \
	    "ld sp, " WEFT__K(WEFT_LINK_SP) "\n\t" \
	    WEFT__AWAY \
	    "ld s0, " WEFT__K(WEFT_LINK_FP) "\n\t" \
	    "jr t0\n\t" \
	    WEFT__BACK \
	    WEFT__PAD \
	    WEFT__LOAD_BX(WEFT_LINK_PARENT_BX) \
	    after \
	    : "+r"(weft__a0), "+r"(weft__a1), "=r"(weft__a2), "=r"(weft__a3), "+r"(weft__a4) \
	    : \
	    : "t0", "t1", "t2", WEFT__LOST); \
	*(k) = weft__a0; \
	request.effect = weft__a2; \
	request.payload = weft__a3; \
	return request

/* Suspend the caller and continue *k, which must not be running or finished: in these cases control goes to the routine
 * that *k's pc names, and does not come back. */
WEFT__INLINE weft_request_t weft_arch_resume(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value, "");
}

/* Like weft_arch_resume, for *k whose innermost coroutine is current already. After the switch back, the parent of the
 * suspended coroutine is current. */
WEFT__INLINE weft_request_t weft_arch_run(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value,
	    "la.tls.ie t0, weft__tls_self\n\t"
	    "add t0, t0, tp\n\t"
	    "ld t1, " WEFT__K(WEFT_CORO_PARENT) "\n\t"
	    "sd t1, 0(t0)");
}

/* Suspend into k, which must be the caller's coroutine or above it, and running; continue its resumer. */
WEFT__INLINE void *weft_arch_yield(struct weft_link *k, const void *effect, void *payload)
{
	register struct weft_link *weft__a0 __asm__("a0") = k;
	register void *weft__a1 __asm__("a1");
	register const void *weft__a2 __asm__("a2") = effect;
	register void *weft__a3 __asm__("a3") = payload;

	__asm__ volatile goto(
	    "lla t0, 1f\n\t"
	    "sd sp, " WEFT__K(WEFT_LINK_SP) "\n\t"
	    "sd t0, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "sd s0, " WEFT__K(WEFT_LINK_FP) "\n\t"
	    WEFT__SAVE_BX(WEFT_LINK_BX)
	    "ld t0, " WEFT__K(WEFT_LINK_PARENT_PC) "\n\t"
	    "ld sp, " WEFT__K(WEFT_LINK_PARENT_SP) "\n\t"
	    WEFT__AWAY
	    WEFT_CANARY_OR(frame_pointer_is_lost, "", "ld s0, " WEFT__K(WEFT_LINK_PARENT_FP) "\n\t")
	    "jr t0\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+r"(weft__a0), "=r"(weft__a1), "+r"(weft__a2), "+r"(weft__a3)
	    :
	    : "a4", "t0", "t1", "t2", WEFT__LOST
	    : left);
	return weft__a1;
left:
	weft__end_here();
}

/* Suspend into `from` and continue `*to`, whose parent_* the caller has set: control does not return to a resumer. When
 * the suspended coroutine is resumed, `*to` points to that coroutine again. */
WEFT__INLINE void *weft_arch_transfer(struct weft_link *from, struct weft_link **to, void *value)
{
	register struct weft_link *weft__a0 __asm__("a0") = *to;
	register void *weft__a1 __asm__("a1") = value;
	register struct weft_link *weft__a4 __asm__("a4") = from;
	register void (*weft__a5)(void) __asm__("a5") = weft__in_running;

	__asm__ volatile goto(
	    "lla t0, 1f\n\t"
	    "sd sp, " WEFT__STR(WEFT_LINK_SP) "(a4)\n\t"
	    "sd t0, " WEFT__STR(WEFT_LINK_PC) "(a4)\n\t"
	    "sd s0, " WEFT__STR(WEFT_LINK_FP) "(a4)\n\t"
#if defined(__clang__)
	    "sd s1, " WEFT__STR(WEFT_LINK_BX) "(a4)\n\t"
#endif
	    "ld t0, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "sd a5, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "ld sp, " WEFT__K(WEFT_LINK_SP) "\n\t"
	    WEFT__AWAY
	    "ld s0, " WEFT__K(WEFT_LINK_FP) "\n\t"
	    "jr t0\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+r"(weft__a0), "+r"(weft__a1), "+r"(weft__a4), "+r"(weft__a5)
	    :
	    : "a2", "a3", "t0", "t1", "t2", "ra", "a6", "a7", "t3", "t4", "t5", "t6",
	      "memory" WEFT__LOST_S2_TO_S11 WEFT__LOST_FLOATS WEFT__LOST_BX WEFT__LOST_VECTORS
	    : left);
	*to = weft__a0;
	return weft__a1;
left:
	weft__end_here();
}

/* clang-format on */

WEFT__INLINE uintptr_t weft__self_place(void)
{
	uintptr_t place;

	__asm__ volatile("la.tls.ie %0, weft__tls_self\n\tadd %0, %0, tp" : "=r"(place));
	return place;
}

#include <weft/detail/arch/generic.h>

#endif /* WEFT_ARCH_RISCV64_H */
