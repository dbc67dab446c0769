/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/thread.h: threads on stacks of any policy, and calls on a system stack.
 *
 * A thread's function runs on a slot of the policy as a coroutine's function does, while the stack that the operating
 * system gave the thread carries two frames. Code that is compiled for linked stacks uses these functions automatically
 * for pthread_create, sigaction and signal.
 *
 * In a signal handler only weft_handle_fault, weft_sigaction and weft_signal may be called.
 */
#ifndef WEFT_THREAD_H
#define WEFT_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <weft/coro.h>
#include <weft/detail/pp.h>

WEFT_EXTERN_C_BEGIN

/**
 * Start a thread whose function runs on a stack of Weft's; otherwise like pthread_create with default attributes.
 * @param thread  where to write the thread's id, for pthread_join or pthread_detach; owned by the caller
 * @param attr    policy, stack_size, guard_size, name, memory and WEFT_NO_GUARD are used; NULL: the default policy.
 *                Only read during the call, except the name. Memory (weft/coro.h) is the caller's again when the
 *                thread has been joined; without a guard an overflow is detected when the function ends. Under "commit"
 *                all of the stack is opened, and counts, from the start: a thread has no resumer that could get the
 *                failure when its stack cannot grow. A policy that copies stacks serves coroutines only: a thread gets
 *                overcommit instead.
 * @param fn      must not suspend, because no coroutine runs it; pthread_exit and cancellation are allowed
 * @return 0, or an error number as pthread_create's (positive, as is the custom there): EAGAIN no more threads,
 *   ENOMEM no memory for the stack, EINVAL an unknown policy or flag, or no function; ENOSPC, EBUSY and further numbers
 *   for memory as weft_create_with
 * Thread-safe, any stack. The stack is cached for reuse when the thread ends.
 */
WEFT_API int weft_thread_create(pthread_t *thread, const weft_attr_t *attr, void *(*fn)(void *), void *arg);

/**
 * Like pthread_create, but if the default policy links chunks, the thread's function runs on a linked stack. In code
 * compiled for linked stacks, calls of pthread_create become calls of this. Contract and result are pthread_create's.
 */
WEFT_API int weft_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

/*
 * Signals. In a process that uses it, Weft owns:
 *   - The handler of SIGSEGV and SIGBUS, from the first coroutine on. Stacks grow by it, and it reports overflows.
 *     Faults that are not Weft's go to the handler that was installed before. If the program later installs a handler
 *     in its place, Weft puts its own handler in front again as soon as it notices: when it makes new stacks of
 *     "commit" and of linked policies, and once in 1024 coroutines. Until then stacks of "commit" and "mmu" cannot
 *     grow. So install such a handler by weft_sigaction, or call weft_handle_fault first in it.
 *   - The right to receive these two signals. The kernel kills a process without a message if a thread faults while
 *     SIGSEGV is blocked. Weft unblocks both when it first meets a thread, and whenever it notices as above. Handlers
 *     that block them, and run on the stack that the signal interrupts, lose them from their sa_mask if they were
 *     installed before the first coroutine, or by weft_sigaction.
 *   - An alternate signal stack of 64 KiB with a guard, for each such thread that has none. A thread may set its own.
 *     If the thread only disables Weft's, Weft enables it again when it notices.
 * A handler without SA_ONSTACK needs some KB of the stack that its signal interrupts. The kernel does not open them in
 * a stack of "commit", and elsewhere they may pass the stack's end: that is reported, and ends the process, because
 * the signal is lost. So install handlers by weft_sigaction, or with SA_ONSTACK.
 */

/**
 * sigaction and signal for programs with coroutines. Handlers run on the alternate signal stack (SA_ONSTACK), because
 * the kernel writes kilobytes before it calls a handler, and a small or linked stack may not have that room; they block
 * neither SIGSEGV nor SIGBUS. A handler of SIGSEGV or SIGBUS gets the faults that are not Weft's. It replaces the
 * program's previous handler for these faults, and `old` describes that handler. In code compiled for linked stacks,
 * calls of sigaction and signal become calls of these. Contract and result are those of the originals; both may be
 * called in a signal handler.
 */
struct sigaction; /* <signal.h> hides it from strictly conforming programs */
WEFT_API int weft_sigaction(int number, const struct sigaction *action, struct sigaction *old);
WEFT_API void (*weft_signal(int number, void (*handler)(int)))(int);

/**
 * For a handler of SIGSEGV or SIGBUS that a program installs itself, with SA_SIGINFO | SA_ONSTACK: is the fault Weft's?
 * If so, Weft has handled it: a stack grew, or a coroutine fails, or an overflow was reported and the default action is
 * set, which ends the process when the instruction runs again.
 *
 *     static void on_fault(int number, siginfo_t *info, void *context)
 *     {
 *             if (weft_handle_fault(number, info, context))
 *                     return;
 *             …
 *     }
 *
 * @param info, context  the handler's arguments: siginfo_t *, ucontext_t *
 * @return true: the handler must return at once; false: the fault is not Weft's
 * For signal handlers only; any thread, any stack.
 */
WEFT_API bool weft_handle_fault(int number, void *info, void *context);

/**
 * weft_on_system_stack(fn, arguments…): call fn on a large contiguous stack (8 MiB reserved), whatever the current
 * stack is, and return its result. Up to sixteen arguments, of any type. On a small contiguous stack, use it to call
 * code that needs more; code compiled for linked stacks does so automatically when it calls other code. On a system
 * stack, or a thread's own, it is a plain call. fn may resume, suspend, throw, and be continued by another thread;
 * while it is suspended the coroutine keeps the system stack.
 * Ends the coroutine (&weft_failed) if there is no memory for a system stack. In C an fn that is NULL is reported, and
 * ends the process. Thread-safe, any stack. On AArch64 and RISC-V it is always a plain call.
 * Idea: libseff's wrappers for system calls. There the stack belongs to the thread; here it belongs to the coroutine
 * during the call.
 */
#if defined(__x86_64__)
struct weft__system_call {
	void *function;
	size_t bytes; /* the most bytes of arguments on the stack */
};
/* A pointer, because the call must bypass the procedure linkage table: its resolver does not keep the static chain. */
extern WEFT_API void (*const weft__system_stack)(void);
#else
WEFT_API void weft__require_function(const void *function);
#endif
/** Like weft_on_system_stack, for functions of this one type, for languages without the macro. */
WEFT_API void *weft_ffi_on_system_stack(void *(*fn)(void *), void *arg);

#if !defined(__cplusplus) && !defined(__x86_64__)
#define weft_on_system_stack(fn, ...)                                                                                  \
	__extension__({                                                                                                \
		__typeof__(&*(fn)) weft__function = (fn);                                                              \
                                                                                                                       \
		weft__require_function((const void *)weft__function);                                                  \
		weft__function(__VA_ARGS__);                                                                           \
	})
#elif !defined(__cplusplus)
#define WEFT__ARGUMENT_BYTES(f, x) +((sizeof(x) + __alignof__(x) + 15) & ~(size_t)15)
#define WEFT__MORE_THAN_WORD(f, x) || sizeof(x) > 8
#define WEFT__ONE(f, x) +1
/* No arguments are on the stack if there are at most six, of at most a word each. */
#define WEFT__STACK_BYTES(...)                                                                                         \
	((0 WEFT__EACH(WEFT__ONE, , __VA_ARGS__)) <= 6 && !(0 WEFT__EACH(WEFT__MORE_THAN_WORD, , __VA_ARGS__))         \
	     ? (size_t)0                                                                                               \
	     : (0 WEFT__EACH(WEFT__ARGUMENT_BYTES, , __VA_ARGS__)))
#define weft_on_system_stack(...) WEFT__CAT(WEFT__ON_SYSTEM_STACK_, WEFT__REST(__VA_ARGS__, ))(__VA_ARGS__)
#define WEFT__ON_SYSTEM_STACK_weft__one(fn) WEFT__ON_SYSTEM_STACK(fn, (), 0)
#define WEFT__ON_SYSTEM_STACK_weft__more(fn, ...)                                                                      \
	WEFT__ON_SYSTEM_STACK(fn, (__VA_ARGS__), WEFT__STACK_BYTES(__VA_ARGS__))
#define WEFT__ON_SYSTEM_STACK(fn, arguments, bytes)                                                                    \
	__builtin_call_with_static_chain(((__typeof__(&*(fn)))weft__system_stack)arguments,                            \
					 (void *)&(struct weft__system_call){(void *)(fn), bytes})
#endif

WEFT_EXTERN_C_END

#if defined(__cplusplus) && __cplusplus >= 201703L
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

template <class F, class... A>
auto weft_on_system_stack(F &&fn, A &&...arguments) -> decltype(fn(std::forward<A>(arguments)...))
{
	using result_t = decltype(fn(std::forward<A>(arguments)...));
	auto call = [&]() -> result_t { return fn(std::forward<A>(arguments)...); };
	using call_t = decltype(call);

	if constexpr (std::is_void_v<result_t>) {
		weft_ffi_on_system_stack(
		    [](void *c) -> void * {
			    (*static_cast<call_t *>(c))();
			    return nullptr;
		    },
		    &call);
	} else if constexpr (std::is_reference_v<result_t>) {
		return *static_cast<std::remove_reference_t<result_t> *>(weft_ffi_on_system_stack(
		    [](void *c) -> void * {
			    return const_cast<void *>(static_cast<const void *>(&(*static_cast<call_t *>(c))()));
		    },
		    &call));
	} else {
		std::optional<result_t> result;
		auto keep = [&] { result.emplace(call()); };

		weft_ffi_on_system_stack(
		    [](void *c) -> void * {
			    (*static_cast<decltype(keep) *>(c))();
			    return nullptr;
		    },
		    &keep);
		return std::move(*result);
	}
}
#endif

#endif /* WEFT_THREAD_H */
