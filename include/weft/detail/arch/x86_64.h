/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The switch on x86-64 System V. src/arch/README.md has the stack layouts; weft/detail/arch.h the contract.
 *
 * Registers across a switch
 *   rdi  in and out: the coroutine; the code after a landing pad can rely on it
 *   rsi  resume -> landing pad: the value passed in
 *   rax, rdx  yield -> resume site: the request
 *   rcx  scratch of the sender
 *   all other registers: lost (declared clobbered), except rsp and rbp, which are exchanged, and rbx under clang, which
 *   may use it as base pointer and then ignores a clobber; there the link holds rbx across the switch.
 */
#ifndef WEFT_ARCH_X86_64_H
#define WEFT_ARCH_X86_64_H

#define WEFT__STR_(x) #x
#define WEFT__STR(x) WEFT__STR_(x)
/* "offset(%rdi)": a field of the coroutine in rdi, in a template with operands. */
#define WEFT__K(field) WEFT__STR(field) "(%%rdi)"

/*
 * These go around the instructions between a change of stacks and the jump. There an unwinder, in a signal handler,
 * would look for the caller on the wrong stack; so the frame description says that there is no caller. A byte after the
 * jump counts as part of the following code, because unwinders look for a caller one byte before the return address.
 */
#ifdef __GCC_HAVE_DWARF2_CFI_ASM
#define WEFT__AWAY ".cfi_remember_state\n\t.cfi_undefined 16\n\t" /* rip */
#define WEFT__BACK ".cfi_restore_state\n\t.byte 0xcc\n\t"
#else
#define WEFT__AWAY
#define WEFT__BACK
#endif

/* A landing pad. No code falls through to it, so aligning it costs no instruction, and the speed of a loop that
 * switches does not depend on its place in the code (25 % between best and worst without alignment). */
#if defined(__CET__) && (__CET__ & 1)
#define WEFT__PAD ".p2align 6\n1:\tendbr64\n\t"
#else
#define WEFT__PAD ".p2align 6\n1:\t"
#endif

#if defined(__clang__)
#define WEFT__SAVE_BX(field) "movq %%rbx, " WEFT__K(field) "\n\t"
#define WEFT__LOAD_BX(field) "movq " WEFT__K(field) ", %%rbx\n\t"
#define WEFT__LOST_BX
#else
#define WEFT__SAVE_BX(field)
#define WEFT__LOAD_BX(field)
#define WEFT__LOST_BX , "rbx"
#endif

/*
 * The landing pad of a suspended coroutine. WEFT_LEFT_BYTES before it there is a second pad: a jump to the label
 * `left`. A coroutine that lands on the second pad must end, not continue. Nothing else uses the cache line of the
 * second pad.
 */
#if defined(__CET__) && (__CET__ & 1)
#define WEFT__LEFT_PAD "endbr64\n\t"
#else
#define WEFT__LEFT_PAD
#endif
#define WEFT__WAIT_PAD                                                                                                 \
	".p2align 6\n\t.skip 48, 0xcc\n2:\t" WEFT__LEFT_PAD WEFT__LOAD_BX(                                             \
	    WEFT_LINK_BX) "jmp %l[left]\n\t.skip " WEFT__STR(WEFT_LEFT_BYTES) " - (. - 2b), 0xcc\n1:\t" WEFT__LEFT_PAD

#if defined(__AVX512F__)
#define WEFT__LOST_AVX512                                                                                              \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",  \
	    "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define WEFT__LOST_AVX512
#endif
#if defined(__APX_F__)
#define WEFT__LOST_APX                                                                                                 \
	, "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31"
#else
#define WEFT__LOST_APX
#endif

#if defined(__clang__)
#define WEFT__COLD_LABEL /* clang treats labels that asm goto jumps to as cold */
#else
#define WEFT__COLD_LABEL __attribute__((cold))
#endif

#define WEFT__LOST                                                                                                     \
	"r8", "r9", "r10", "r11", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "mm0", "mm1",   \
	    "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "cc",                                                            \
	    "memory" WEFT__LOST_12_TO_15 WEFT__LOST_XMM WEFT__LOST_BX WEFT__LOST_AVX512 WEFT__LOST_APX
#if WEFT_NO_CANARY(r12_to_r15_survive)
#define WEFT__LOST_12_TO_15 , "r12", "r13", "r14", "r15"
#else
#define WEFT__LOST_12_TO_15
#endif
#if WEFT_NO_CANARY(vector_registers_survive)
#define WEFT__LOST_XMM                                                                                                 \
	, "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",   \
	    "xmm13", "xmm14", "xmm15"
#else
#define WEFT__LOST_XMM
#endif

/* One instruction per line. */
/* clang-format off */

/*
 * Suspend the caller and continue k, by the words of its link. `before` comes first and may use rdx. `apart` lies in
 * bytes that the pad's alignment leaves; only jumps from `before` and `after` reach it. `after` finds the request in
 * rax and rdx.
 */
#define WEFT__RESUME(k, value, before, apart, after) \
	weft_request_t request; \
	void (*busy)(void) = weft__in_running; \
\
	__asm__ volatile( \
	    WEFT_CANARY_OR(red_zone_is_written, "pushq %%rax\n\tpopq %%rax\n\t", "") \
	    WEFT_CANARY_OR(value_is_lost, "xorl %%esi, %%esi\n\t", "") \
	    before \
	    "movq " WEFT__K(WEFT_LINK_PC) ", %%rdx\n\t" \
	    "movq %%rcx, " WEFT__K(WEFT_LINK_PC) "\n\t" \
	    "leaq 1f(%%rip), %%rcx\n\t" \
	    "movq %%rsp, " WEFT__K(WEFT_LINK_PARENT_SP) "\n\t" \
	    "movq %%rbp, " WEFT__K(WEFT_LINK_PARENT_FP) "\n\t" \
	    "movq %%rcx, " WEFT__K(WEFT_LINK_PARENT_PC) "\n\t" \
	    WEFT__SAVE_BX(WEFT_LINK_PARENT_BX) \
	    "movq " WEFT__K(WEFT_LINK_SP) ", %%rsp\n\t" \
	    WEFT__AWAY \
	    "movq " WEFT__K(WEFT_LINK_FP) ", %%rbp\n\t" \
	    "jmp *%%rdx\n\t" \
	    WEFT__BACK \
	    apart \
	    WEFT__PAD \
	    WEFT__LOAD_BX(WEFT_LINK_PARENT_BX) \
	    after \
	    : "+D"(*k), "+S"(value), "=a"(request.effect), "=d"(request.payload), "+c"(busy) \
	    : \
	    : WEFT__LOST); \
	return request

/* Suspend the caller and continue *k, which must not be running or finished: in these cases control goes to the routine
 * that *k's pc names, and does not come back. */
WEFT__INLINE weft_request_t weft_arch_resume(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value, "", "", "");
}

/*
 * Set the thread's limit to that of the link in the register `link`, which is lost.
 * Code for contiguous stacks compares first, because their limits are all 0, and stores out of line. The two stores go
 * to a cache line that holds only the limit, and take an eighth of a resume and a yield: on Golden Cove 1.67 of the
 * hand-written pair's time with the stores, 1.42 with the compares, 1.33 without either (`./weft lab --full --only
 * micro/resume_yield`). Between linked stacks the limits differ, and the code out of line takes longer than the stores
 * (1.86, and 1.71).
 */
#ifdef WEFT_SMALL_FRAMES
#define WEFT__LIMIT_OF(link, to_apart, back) \
	"movq " WEFT__STR(WEFT_LINK_LIMIT) "(%%" link "), %%" link "\n\t" \
	"movq %%" link ", %%fs:0x70\n\t"
#define WEFT__LIMIT_APART(link, apart, to_back) ""
#else
#define WEFT__LIMIT_OF(link, to_apart, back) \
	"movq " WEFT__STR(WEFT_LINK_LIMIT) "(%%" link "), %%" link "\n\t" \
	"cmpq %%" link ", %%fs:0x70\n\t" \
	"jne " to_apart "\n" \
	back ":\t"
#define WEFT__LIMIT_APART(link, apart, to_back) \
	apart ":\tmovq %%" link ", %%fs:0x70\n\t" \
	"jmp " to_back "\n\t"
#endif

/*
 * Like weft_arch_resume, for *k whose innermost coroutine is current already: sets that coroutine's limit. After the
 * switch back, the parent of the suspended coroutine is the current coroutine, with its limit.
 * Few statements: clang counts them when it decides which functions to inline. If a function that resumes is not
 * inlined, returns are mispredicted: libseff's generator then takes three times as long.
 * Rejected: a function that is called before the switch. Its calls take places among the processor's return addresses,
 * and a recursion of functions that resume takes 1.3 of its time. Also rejected: to make the innermost coroutine
 * current here, which takes 1.5 times as long when two coroutines alternate.
 */
WEFT__INLINE weft_request_t weft_arch_run(struct weft_link **k, void *value)
{
	WEFT__RESUME(k, value,
	    "movq " WEFT__K(WEFT_CORO_INNERMOST) ", %%rdx\n\t"
	    WEFT__LIMIT_OF("rdx", "3f", "4"),

	    WEFT__LIMIT_APART("rdx", "3", "4b")
	    WEFT__LIMIT_APART("rcx", "5", "6f"),

	    "movq weft__tls_self@gottpoff(%%rip), %%rsi\n\t"
	    "movq " WEFT__K(WEFT_CORO_PARENT) ", %%rcx\n\t"
	    "movq %%rcx, %%fs:(%%rsi)\n\t"
	    WEFT__LIMIT_OF("rcx", "5b", "6"));
}

/* Suspend into k, which must be the caller's coroutine or above it, and running; continue its resumer. */
WEFT__INLINE void *weft_arch_yield(struct weft_link *k, const void *effect, void *payload)
{
	void *value;

	__asm__ volatile goto(
	    "leaq 1f(%%rip), %%rcx\n\t"
	    "movq %%rsp, " WEFT__K(WEFT_LINK_SP) "\n\t"
	    "movq %%rbp, " WEFT__K(WEFT_LINK_FP) "\n\t"
	    "movq %%rcx, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    WEFT__SAVE_BX(WEFT_LINK_BX)
	    "movq " WEFT__K(WEFT_LINK_PARENT_SP) ", %%rsp\n\t"
	    WEFT__AWAY
	    WEFT_CANARY_OR(frame_pointer_is_lost, "", "movq " WEFT__K(WEFT_LINK_PARENT_FP) ", %%rbp\n\t")
	    "jmp *" WEFT__K(WEFT_LINK_PARENT_PC) "\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+D"(k), "=S"(value), "+a"(effect), "+d"(payload)
	    :
	    : "rcx", WEFT__LOST
	    : left);
	return value;
left:
	WEFT__COLD_LABEL;
	weft__end_here();
}

/* Suspend into `from` and continue `*to`, whose parent_* the caller has set: control does not return to a resumer. When
 * the suspended coroutine is resumed, `*to` points to that coroutine again. */
WEFT__INLINE void *weft_arch_transfer(struct weft_link *from, struct weft_link **to, void *value)
{
	void (*busy)(void) = weft__in_running;

	__asm__ volatile goto(
	    "leaq 1f(%%rip), %%rdx\n\t"
	    "movq %%rsp, " WEFT__STR(WEFT_LINK_SP) "(%%rax)\n\t"
	    "movq %%rbp, " WEFT__STR(WEFT_LINK_FP) "(%%rax)\n\t"
	    "movq %%rdx, " WEFT__STR(WEFT_LINK_PC) "(%%rax)\n\t"
#if defined(__clang__)
	    "movq %%rbx, " WEFT__STR(WEFT_LINK_BX) "(%%rax)\n\t"
#endif
	    "movq " WEFT__K(WEFT_LINK_PC) ", %%rdx\n\t"
	    "movq %%rcx, " WEFT__K(WEFT_LINK_PC) "\n\t"
	    "movq " WEFT__K(WEFT_LINK_SP) ", %%rsp\n\t"
	    WEFT__AWAY
	    "movq " WEFT__K(WEFT_LINK_FP) ", %%rbp\n\t"
	    "jmp *%%rdx\n\t"
	    WEFT__BACK
	    WEFT__WAIT_PAD
	    WEFT__LOAD_BX(WEFT_LINK_BX)
	    : "+D"(*to), "+S"(value), "+a"(from), "+c"(busy)
	    :
	    : "rdx", WEFT__LOST
	    : left);
	return value;
left:
	WEFT__COLD_LABEL;
	weft__end_here();
}

/* clang-format on */

/*
 * The current coroutine lives in thread-local storage, but compilers must not know the address: they would keep it
 * across a switch, and after a migration write into another thread's variable. If the variable is in the executable,
 * the linker turns the load of its offset into an immediate.
 */
struct weft_coro;

WEFT__INLINE struct weft_coro *weft__self(void)
{
	struct weft_coro *self;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self) : : "memory");
	return self;
}

/* Like weft__self, for performs. Does not clobber memory: if the clause is called in place, values that were read
 * before may stay in registers. */
WEFT__INLINE struct weft_coro *weft__performer(void)
{
	struct weft_coro *self;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self));
	return self;
}

/*
 * Count an operation of the thread's task. True: the thread has made more operations than weft__set_operations_left
 * allowed. No memory is clobbered: nothing else reads the counter.
 */
WEFT__INLINE bool weft__spend_operation(void)
{
	void *offset;
	bool spent;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\t"
			 "subl $1, %%fs:" WEFT__STR(WEFT_TLS_OPERATIONS) "(%0)"
						    : "=&r"(offset), "=@ccs"(spent));
	return spent;
}

/*
 * weft__spend_operation in two steps, for a lock: the check before its atomic instruction, which would wait for the
 * store, and the store after it.
 */
WEFT__INLINE bool weft__operations_are_spent(void)
{
	void *offset;
	bool spent;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\t"
			 "cmpl $0, %%fs:" WEFT__STR(WEFT_TLS_OPERATIONS) "(%0)"
						    : "=&r"(offset), "=@ccle"(spent));
	return spent;
}

WEFT__INLINE void weft__count_operation(void)
{
	(void)weft__spend_operation();
}

WEFT__INLINE void weft__set_operations_left(int32_t operations)
{
	void *offset;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\t"
			 "movl %1, %%fs:" WEFT__STR(WEFT_TLS_OPERATIONS) "(%0)"
						    : "=&r"(offset)
						    : "r"(operations));
}

/* The thread's table of found handlers lies after weft__tls_self, as do the newest entries (../handler_cache.h). */
struct weft__found;
struct weft__view;

/* clang-format off */
#define WEFT__IN_SEGMENT(field, base) "%%fs:" WEFT__STR(field) "(" base ")"

WEFT__INLINE struct weft__found *weft__found_here(void)
{
	struct weft__found *table;

	__asm__ volatile(
	    "movq weft__tls_self@gottpoff(%%rip), %0\n\t"
	    "movq " WEFT__IN_SEGMENT(WEFT_TLS_FOUND, "%0") ", %0"
	    : "=r"(table));
	return table;
}

/* *newest is not the entry's address, but its offset in the thread's segment. */
WEFT__INLINE bool weft__is_newest(unsigned offset, const struct weft__view *view, const void *key, uintptr_t *newest)
{
	uintptr_t at;

	__asm__ goto(
	    "movq weft__tls_self@gottpoff(%%rip), %0\n\t"
	    "addq %3, %0\n\t"
	    "cmpq %1, " WEFT__IN_SEGMENT(WEFT_NEWEST_VIEW, "%0") "\n\t"
	    "jne %l[other]\n\t"
	    "cmpq %2, " WEFT__IN_SEGMENT(WEFT_NEWEST_KEY, "%0") "\n\t"
	    "jne %l[other]"
	    : "=&r"(at)
	    : "r"(view), "r"(key), "re"((uintptr_t)offset)
	    : "cc"
	    : other);
	*newest = at;
	return true;
other:
	return false;
}

WEFT__INLINE uintptr_t weft__newest_who(uintptr_t newest)
{
	uintptr_t who;

	__asm__ volatile("movq " WEFT__IN_SEGMENT(WEFT_NEWEST_WHO, "%1") ", %0" : "=r"(who) : "r"(newest));
	return who;
}

WEFT__INLINE void (*weft__newest_enter(uintptr_t newest))(void)
{
	void (*enter)(void);

	__asm__ volatile("movq " WEFT__IN_SEGMENT(WEFT_NEWEST_ENTER, "%1") ", %0" : "=r"(enter) : "r"(newest));
	return enter;
}
/* clang-format on */

WEFT__INLINE void weft__set_self(struct weft_coro *self)
{
	void *offset;

	__asm__ volatile("movq weft__tls_self@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)"
			 : "=&r"(offset)
			 : "r"(self)
			 : "memory");
}

/*
 * Is `k` the current coroutine? gcc must not learn from the answer that both are equal: gcc would switch through `k`,
 * which may lie in the frame. The next resume would then wait for the frame's cache line before it can ask for the
 * coroutine's, and among thousands of coroutines both are misses. clang keeps `k` in rbx, which the switch restores.
 */
WEFT__INLINE bool weft__is_self(const struct weft_coro *k, const struct weft_coro *self)
{
#if defined(__clang__)
	return k == self;
#else
	bool same;

	__asm__("cmpq %1, %2" : "=@cce"(same) : "rm"(k), "r"(self));
	return same;
#endif
}

/* The address of an object on the stack, computed here. Compilers tend to compute it once and keep it on the stack, and
 * loading it costs more. */
WEFT__INLINE void *weft__address_of(void *object)
{
	void *address;

	/* The statement reads the object. clang takes no array of unknown size; for clang the first byte is enough. */
#ifdef __clang__
	__asm__ volatile("leaq %1, %0" : "=r"(address) : "m"(*(char *)object));
#else
	__asm__ volatile("leaq %1, %0" : "=r"(address) : "m"(*(char(*)[])object));
#endif
	return address;
}

/*
 * Set the word that -fsplit-stack prologues compare the stack pointer with. Rejected: to store only a changed value.
 * The limits of contiguous stacks are all 0, but the comparison takes as long as the store, and between linked stacks
 * it costs a jump. (On Zen 3 a resume and a yield took 0.99 of the time by gcc 12, 0.86 by clang 16, 1.01 by clang 22;
 * whole programs 0.95 to 1.04.)
 */
WEFT__INLINE void weft__set_limit(char *limit)
{
	__asm__ volatile("movq %0, %%fs:0x70" : : "r"(limit) : "memory");
}

/* clang-format off */
/* These words seldom change, and a compare costs less than a store: a switch waits for the store ports.
 * Rejected: to compare `group` too, which gains nothing. To compare `innermost` with k instead of reading it, which
 * takes 0.97 of the time, but then each resume of a coroutine that was suspended from further inside goes to `anew`.
 * And one word for "parent and group are unchanged, and no stack is linked", compared in place of these: two
 * instructions of 54 and three stores less, but on Zen 3 1.87 of the hand-written pair's time by gcc in place of 1.66,
 * 1.97 by clang in place of 2.05. */
#define WEFT__ENTER(handled, compare_tags) \
	"movq weft__tls_self@gottpoff(%%rip), %%rdx\n\t" \
	"movq %%fs:(%%rdx), %%rcx\n\t" \
	"testq %%rcx, %%rcx\n\t" \
	"je %l[anew]\n\t" \
	"cmpq %%rcx, " WEFT__STR(WEFT_CORO_PARENT) "(%0)\n\t" \
	"jne %l[anew]\n\t" \
	"cmpq " handled ", " WEFT__STR(WEFT_CORO_HANDLED) "(%0)\n\t" \
	"jne %l[anew]\n\t" \
	compare_tags \
	"testb $1, " WEFT__STR(WEFT_CORO_VIEW) "(%%rcx)\n\t" \
	"jne %l[anew]\n\t" \
	WEFT_CANARY_OR(resumed_coroutine_stays_in_its_group, "", "movq %0, " WEFT__STR(WEFT_CORO_GROUP) "(%0)\n\t") \
	"movq " WEFT__STR(WEFT_CORO_INNERMOST) "(%0), %%rcx\n\t" \
	"movq %%rcx, %%fs:(%%rdx)"

/* More inputs: gcc keeps variables in registers that are named often, and these statements use `k` more often than they
 * name it. */
#if defined(__clang__)
#define WEFT__USED_OFTEN(k)
#else
#define WEFT__USED_OFTEN(k) , "r"(k), "r"(k), "r"(k)
#endif

/* The body of both functions below; the statement compares `word`. */
#define WEFT__ENTER_BY(k, handled, compare_tags, word) \
	__asm__ goto( \
	    WEFT__ENTER(handled, compare_tags) \
	    : \
	    : "r"(k), "re"(word) WEFT__USED_OFTEN(k) \
	    : "rcx", "rdx", "cc", "memory" \
	    : anew); \
	return true; \
anew: \
	WEFT__COLD_LABEL; \
	return false

/* If `k` is resumed by the same coroutine as the last time, which executes no tail clause, and with the same set: make
 * k's innermost coroutine the current one. Else return false, and change nothing. */
WEFT__INLINE bool weft__enter(struct weft_link *k, uintptr_t handled)
{
	WEFT__ENTER_BY(k, "%1", "", handled);
}

/* Like weft__enter, for a set of tags. */
WEFT__INLINE bool weft__enter_tagged(struct weft_link *k, uint64_t tags)
{
	WEFT__ENTER_BY(k, "$" WEFT__STR(WEFT_HANDLES_TAGS),
		       "cmpq %1, " WEFT__STR(WEFT_CORO_TAGS) "(%0)\n\t"
		       "jne %l[anew]\n\t",
		       tags);
}
/* clang-format on */

#endif /* WEFT_ARCH_X86_64_H */
