/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/arch.h: the contract of an architecture. One header and one .S file fulfil it.
 *
 * Design
 *  1. A switch exchanges three words (stack pointer, program counter, frame pointer); every other register
 *     is declared clobbered, so the compiler saves live registers and no others, at the call site.
 *  2. Both directions are inlined and end in an indirect jump; every site has its own branch history.
 *     Jumps leave the return-address predictor alone, so the calls and returns of either side stay paired:
 *     call/ret pairs tie in a flat loop and lose 3x as soon as a coroutine yields from inside a call
 *     (`./weft lab --only micro` measures both).
 *  3. The program counter of a suspended coroutine is its landing pad. While it runs, or after it ended, the
 *     same word holds the address of a routine that reports the misuse: the state check costs one store.
 *  4. The value passed to resume, and the two words of a request, travel in registers.
 *  5. Nothing is pushed on either stack, so the red zone of the resumer is left alone. The suspending function has no
 *     red zone, because compilers give a red zone only to functions without calls, and it calls weft__end_here.
 * In a signal handler only weft__self, weft__performer and weft__address_of may be called.
 * To reach: a raw pair within 1.2 of the hand-written limit, resume + yield with every check within 1.5.
 *
 * An architecture provides
 *   struct weft_link        the words a switch saves, both sides; first member of a coroutine
 *   weft_arch_resume        suspend the caller, continue `*k`; on return `*k` is the coroutine that suspended
 *   weft_arch_run           like weft_arch_resume, for k whose innermost coroutine is already the current one: the
 *                           thread's limit becomes that coroutine's; after the switch back the parent of the suspended
 *                           coroutine is the current coroutine, with its limit
 *   weft_arch_yield         suspend into `k`, continue its resumer; returns the value that the next resume passes
 *   weft_arch_transfer      suspend into `from`, continue `*to`; on return `*to` is `from`
 *   weft__enter, weft__enter_tagged   the step before a switch: if nothing has changed since that coroutine was last
 *                           resumed, its innermost coroutine becomes the current one
 *   weft__set_limit         make a stack's limit the thread's: code compiled for linked stacks reads it there
 *   weft__spend_operation, weft__operations_are_spent, weft__count_operation, weft__set_operations_left   a counter of
 *                           the thread: see src/sched/turn.c
 *   weft__self, weft__performer, weft__set_self   the thread's current coroutine; read each time, never cached by
 *                           the compiler across a switch: a coroutine may have moved to another thread
 *   weft__is_self           is a coroutine the current one? The compiler must not switch through the pointer compared
 *   weft__address_of        the address of an object on the stack, without loading it
 *   weft__found_here, weft__is_newest, weft__newest_who, weft__newest_enter   the thread's cache of found handlers: see
 *                           weft/detail/handler_cache.h
 *   WEFT_LEFT_BYTES         if a suspended coroutine is continued this many bytes before its landing pad, it calls
 *                           weft__end_here there
 *   weft__entry (assembly)  first landing pad of a coroutine: calls fn(arg), then finishes
 *   weft__walk_from (assembly)  call a function below which an unwinder finds the frames of a suspended coroutine
 *   weft__leave (assembly)  finish `k` without saving, pass its resumer a request
 *   weft__in_running, weft__in_finished, weft__in_deleted   (assembly) landing pads that report misuse
 *
 * Not switched: MXCSR and the x87 control word (WEFT_SAVE_FPU switches them; other coroutines pay nothing), the
 * direction flag (clear, as the ABI demands at any call), segment bases, shadow stacks (code that enables
 * user shadow stacks must not use weft; indirect-branch tracking is fine: landing pads carry endbr64).
 */
#ifndef WEFT_ARCH_H
#define WEFT_ARCH_H

#include <weft/detail/arch/offsets.h>
#include <weft/base.h>

WEFT_EXTERN_C_BEGIN

struct weft__chunk; /* a piece of a linked stack: src/arch/chunk.h */

/* The resumer's words of a link, grouped because weft_switch copies all of them. */
struct weft__parent_words {
	void *words[4];
};

/**
 * Both ends of a coroutine's connection to its resumer. sp/pc/fp are valid while it is suspended, parent_* from its
 * first resume on; a running coroutine's parent_* lead the unwinder to its resumer. A switch exchanges the first cache
 * line, and reads the second, which also holds six words of the layer above.
 */
struct weft_link {
	void *sp, *pc, *fp;
	void *bx; /* like parent_bx: for compilers that reserve rbx in some functions, and do not let it be clobbered */
	__extension__ union {
		__extension__ struct {
			void *parent_sp, *parent_fp, *parent_pc, *parent_bx;
		};
		struct weft__parent_words parent_words;
	};
	char *limit;		   /* code compiled for linked stacks compares with this; NULL: the stack never grows */
	struct weft__chunk *chunk; /* the newest chunk in use, of a linked stack, or if a system stack is borrowed */
};

#define WEFT__OFFSET_IS(type, field, offset)                                                                           \
	WEFT__STATIC_ASSERT(offsetof(type, field) == (offset), #field " moved: edit weft/detail/arch/offsets.h")
WEFT__OFFSET_IS(struct weft_link, sp, WEFT_LINK_SP);
WEFT__OFFSET_IS(struct weft_link, pc, WEFT_LINK_PC);
WEFT__OFFSET_IS(struct weft_link, fp, WEFT_LINK_FP);
WEFT__OFFSET_IS(struct weft_link, bx, WEFT_LINK_BX);
WEFT__OFFSET_IS(struct weft_link, parent_sp, WEFT_LINK_PARENT_SP);
WEFT__OFFSET_IS(struct weft_link, parent_pc, WEFT_LINK_PARENT_PC);
WEFT__OFFSET_IS(struct weft_link, parent_fp, WEFT_LINK_PARENT_FP);
WEFT__OFFSET_IS(struct weft_link, parent_bx, WEFT_LINK_PARENT_BX);
WEFT__OFFSET_IS(struct weft_link, limit, WEFT_LINK_LIMIT);
WEFT__OFFSET_IS(struct weft_link, chunk, WEFT_LINK_CHUNK);

/* Landing pads, which must not be called. */
WEFT_API void weft__entry(void);
WEFT_API void weft__in_running(void);
WEFT_API void weft__in_finished(void);
WEFT_API void weft__in_deleted(void);

/* Called by a coroutine that is continued WEFT_LEFT_BYTES before its landing pad: in the frame that waits there, like
 * any call, so that exceptions leave the frame. */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__end_here(void);
#if WEFT_CANARY(who_suspends_has_a_red_zone)
#define weft__end_here() __builtin_unreachable()
#endif

#if defined(__x86_64__) && !defined(__ILP32__)
#include <weft/detail/arch/x86_64.h>
#elif defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
#include <weft/detail/arch/aarch64.h>
#elif defined(__riscv) && __riscv_xlen == 64 && defined(__riscv_float_abi_double)
#include <weft/detail/arch/riscv64.h>
#else
#error "weft has no switch for this architecture yet: write include/weft/detail/arch/ARCH.h and src/arch/ARCH.S"
#endif

WEFT_EXTERN_C_END

#endif /* WEFT_ARCH_H */
