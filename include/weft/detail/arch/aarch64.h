/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The switch on AArch64, little-endian and LP64. src/arch/README.md has the stack layouts, ../arch.h the contract.
 *
 * Registers across a switch
 *   x0      in and out: the coroutine; the code after a landing pad can rely on it
 *   x1      resume -> landing pad: the value passed in
 *   x2, x3  yield -> resume site: the request
 *   x4      weft_arch_transfer -> landing pad: the coroutine that suspended
 *   x5-x7   scratch of the sender
 *   all other registers: lost (declared clobbered), except sp and x29, which are exchanged, and x19 under clang, which
 *   may use it as base pointer and then ignores a clobber; there the link (bx) holds x19 across the switch.
 *
 * Linked stacks do not exist here, so a thread has no limit, and weft__set_limit does nothing.
 */
#ifndef WEFT_ARCH_AARCH64_H
#define WEFT_ARCH_AARCH64_H

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if __has_feature(shadow_call_stack)
#error "weft: a shadow call stack (x18) is not switched: compile without -fsanitize=shadow-call-stack"
#endif

#define WEFT__STR_(x) #x
#define WEFT__STR(x) WEFT__STR_(x)
/* "[x0, offset]": a field of the coroutine in x0. */
#define WEFT__K(field) "[x0, #" WEFT__STR(field) "]"

/*
 * These go around the instructions between a change of stacks and the jump. There an unwinder, in a signal handler,
 * would look for the caller on the wrong stack; so the frame description says that there is no caller. A word after the
 * jump counts as part of the following code, because unwinders look for a caller one byte before the return address.
 */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define WEFT__AWAY ".cfi_remember_state\n\t.cfi_undefined 30\n\t" /* the return address */
#define WEFT__BACK ".cfi_restore_state\n\t.inst 0\n\t"
#else
#define WEFT__AWAY
#define WEFT__BACK
#endif

/* The target of an indirect jump in a guarded page (BTI): "bti j". In other pages it does nothing. */
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define WEFT__LEFT_PAD "hint #36\n\t"
#else
#define WEFT__LEFT_PAD
#endif

/* A landing pad: aligned to a cache line, so that a loop that switches does not depend on its place in the code. */
#define WEFT__PAD ".p2align 6\n1:\t" WEFT__LEFT_PAD

#if defined(__clang__)
#define WEFT__SAVE_BX(field) "str x19, " WEFT__K(field) "\n\t"
#define WEFT__LOAD_BX(field) "ldr x19, " WEFT__K(field) "\n\t"
#define WEFT__LOST_BX
#else
#define WEFT__SAVE_BX(field)
#define WEFT__LOAD_BX(field)
#define WEFT__LOST_BX , "x19"
#endif

/*
 * The landing pad of a suspended coroutine. WEFT_LEFT_BYTES before it there is a second pad: a jump to the label
 * `left`. A coroutine that lands on the second pad must end, not continue.
 */
/* clang-format off */
#define WEFT__WAIT_PAD \
	".p2align 6\n\t.skip 48\n2:\t" WEFT__LEFT_PAD \
	WEFT__LOAD_BX(WEFT_LINK_BX) \
	"b %l[left]\n\t" \
	".skip " WEFT__STR(WEFT_LEFT_BYTES) " - (. - 2b)\n1:\t" WEFT__LEFT_PAD
/* clang-format on */

#if defined(__ARM_FEATURE_SVE)
#define WEFT__LOST_SVE                                                                                                 \
	, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#else
#define WEFT__LOST_SVE
#endif

#define WEFT__LOST                                                                                                     \
	"x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x30", "cc",                        \
	    "memory" WEFT__LOST_20_TO_28 WEFT__LOST_VECTORS WEFT__LOST_BX WEFT__LOST_SVE
#if WEFT_NO_CANARY(r12_to_r15_survive)
#define WEFT__LOST_20_TO_28 , "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28"
#else
#define WEFT__LOST_20_TO_28
#endif
#if WEFT_NO_CANARY(vector_registers_survive)
#define WEFT__LOST_VECTORS                                                                                             \
	, "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", \
	    "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define WEFT__LOST_VECTORS
#endif

/* One instruction per line. */
/* clang-format off */

/*
 * Suspend the caller and continue k, by the words of its link; `after` finds the request in x2 and x3, and may use x5
 * to x7. Registers that carry a value in are variables here, because no constraint names a register.
 */
#define WEFT__RESUME(k, value, after) \
	weft_request_t request; \
	register struct weft_link *weft__x0 __asm__("x0") = *(k); \
	register void *weft__x1 __asm__("x1") = (value); \
	register const struct weft_effect *weft__x2 __asm__("x2"); \
	register void *weft__x3 __asm__("x3"); \
	register void (*weft__x4)(void) __asm__("x4") = weft__in_running; \
\
	__asm__ volatile( \
	    WEFT_CANARY_OR(red_zone_is_written, "str x4, [sp, #-16]!\n\tadd sp, sp, #16\n\t", "") \
	    WEFT_CANARY_OR(value_is_lost, "mov x1, #0\n\t", "") \
	    "ldr x5, " WEFT__K(WEFT_LINK_PC) "\n\t" \
	    "str x4, " WEFT__K(WEFT_LINK_PC) "\n\t" \
	    "adr x6, 1f\n\t" \
	    "mov x7, sp\n\t" \
	    "stp x7, x29, " WEFT__K(WEFT_LINK_PARENT_SP) "\n\t" \
	    "str x6, " WEFT__K(WEFT_LINK_PARENT_PC) "\n\t" \
	    WEFT__SAVE_BX(WEFT_LINK_PARENT_BX) \
	    "ldr x7, " WEFT__K(WEFT_LINK_SP) "\n\t" \
	    "mov sp, x7\n\t" \
	    WEFT__AWAY \
	    "ldr x29, " WEFT__K(WEFT_LINK_FP) "\n\t" \
	    "br x5\n\t" \
	    WEFT__BACK \
	    WEFT__PAD \
	    WEFT__LOAD_BX(WEFT_LINK_PARENT_BX) \
	    after \
	    : "+r"(weft__x0), "+r"(weft__x1), "=r"(weft__x2), "=r"(weft__x3), "+r"(weft__x4) \
	    : \
	    : "x5", "x6", "x7", WEFT__LOST); \
	*(k) = weft__x0; \
	request.effect = weft__x2; \
	request.payload = weft__x3; \
	return request

/* Suspend the caller and continue *k, which must not be running or finished: in these cases control goes to the routine
 * that *k's pc names, and does not come back. */
WEFT__INLINE weft_request_t weft_arch_resume(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value, "");
}

/* Load the address of the thread's weft__tls_self into x5; x6 is lost. If the variable is in the executable, the linker
 * makes its offset a constant. */
#define WEFT__SELF_TO_X5 \
	"adrp x5, :gottprel:weft__tls_self\n\t" \
	"ldr x5, [x5, #:gottprel_lo12:weft__tls_self]\n\t" \
	"mrs x6, tpidr_el0\n\t" \
	"add x5, x5, x6\n\t"

/* Like weft_arch_resume, for *k whose innermost coroutine is current already. After the switch back, the parent of the
 * suspended coroutine is current. */
WEFT__INLINE weft_request_t weft_arch_run(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value,
	    WEFT__SELF_TO_X5
	    "ldr x7, " WEFT__K(WEFT_CORO_PARENT) "\n\t"
	    "str x7, [x5]");
}

/* Suspend into k, which must be the caller's coroutine or above it, and running; continue its resumer. */
WEFT__INLINE void *weft_arch_yield(struct weft_link *k, const void *effect, void *payload)
{
	register struct weft_link *weft__x0 __asm__("x0") = k;
	register void *weft__x1 __asm__("x1");
	register const void *weft__x2 __asm__("x2") = effect;
	register void *weft__x3 __asm__("x3") = payload;

	__asm__ volatile goto(
	    "adr x5, 1f\n\t"
	    "mov x6, sp\n\t"
	    "stp x6, x5, " WEFT__K(WEFT_LINK_SP) "\n\t"
	    "str x29, " WEFT__K(WEFT_LINK_FP) "\n\t"
	    WEFT__SAVE_BX(WEFT_LINK_BX)
	    "ldr x6, " WEFT__K(WEFT_LINK_PARENT_SP) "\n\t"
	    "ldr x5, " WEFT__K(WEFT_LINK_PARENT_PC) "\n\t"
	    "mov sp, x6\n\t"
	    WEFT__AWAY
	    WEFT_CANARY_OR(frame_pointer_is_lost, "", "ldr x29, " WEFT__K(WEFT_LINK_PARENT_FP) "\n\t")
	    "br x5\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+r"(weft__x0), "=r"(weft__x1), "+r"(weft__x2), "+r"(weft__x3)
	    :
	    : "x4", "x5", "x6", "x7", WEFT__LOST
	    : left);
	return weft__x1;
left:
	weft__end_here();
}

/* Suspend into `from` and continue `*to`, whose parent_* the caller has set: control does not return to a resumer. When
 * the suspended coroutine is resumed, `*to` points to that coroutine again. */
WEFT__INLINE void *weft_arch_transfer(struct weft_link *from, struct weft_link **to, void *value)
{
	register struct weft_link *weft__x0 __asm__("x0") = *to;
	register void *weft__x1 __asm__("x1") = value;
	register struct weft_link *weft__x4 __asm__("x4") = from;
	register void (*weft__x5)(void) __asm__("x5") = weft__in_running;

	__asm__ volatile goto(
	    "adr x6, 1f\n\t"
	    "mov x7, sp\n\t"
	    "stp x7, x6, [x4, #" WEFT__STR(WEFT_LINK_SP) "]\n\t"
	    "str x29, [x4, #" WEFT__STR(WEFT_LINK_FP) "]\n\t"
#if defined(__clang__)
	    "str x19, [x4, #" WEFT__STR(WEFT_LINK_BX) "]\n\t"
#endif
	    "ldr x6, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "ldr x7, " WEFT__K(WEFT_LINK_SP) "\n\t"
	    "str x5, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "mov sp, x7\n\t"
	    WEFT__AWAY
	    "ldr x29, " WEFT__K(WEFT_LINK_FP) "\n\t"
	    "br x6\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+r"(weft__x0), "+r"(weft__x1), "+r"(weft__x4), "+r"(weft__x5)
	    :
	    : "x2", "x3", "x6", "x7", WEFT__LOST
	    : left);
	*to = weft__x0;
	return weft__x1;
left:
	weft__end_here();
}

/* clang-format on */

/* If the variable is in the executable, the linker makes its offset a constant. */
WEFT__INLINE uintptr_t weft__self_place(void)
{
	uintptr_t place, thread;

	__asm__ volatile("adrp %0, :gottprel:weft__tls_self\n\t"
			 "ldr %0, [%0, #:gottprel_lo12:weft__tls_self]\n\t"
			 "mrs %1, tpidr_el0\n\t"
			 "add %0, %0, %1"
			 : "=r"(place), "=&r"(thread));
	return place;
}

#include <weft/detail/arch/generic.h>

#endif /* WEFT_ARCH_AARCH64_H */
