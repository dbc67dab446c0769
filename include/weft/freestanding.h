/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/freestanding.h: coroutines and effects without an operating system: functions that programs with libweft-core.a
 * (-DWEFT_FREESTANDING=ON) call besides weft/coro.h, weft/effect.h, weft/handler.h and weft/defer.h, and functions that
 * they may define.
 *
 * libweft-core.a makes no system call that concerns memory, signals or threads, and installs no handler. Of a C library
 * it needs only memcpy, memmove, memset and memcmp, which compilers call by themselves. Stacks lie in memory of the
 * program: in weft_attr.memory, or in the memory of weft_use_memory. The policies are "fixed" and "overcommit", which
 * are equal there; other policies, guard_size and WEFT_UNWIND are refused (ENOTSUP, EINVAL). There are no tasks,
 * clones, threads, backtraces and C++ exceptions. The library has its own errno: call weft_errno(), and do not use
 * <errno.h>.
 *
 * The program provides
 *  1. Thread-local variables. %fs:0 holds its own address, below it lies the program's PT_TLS segment, and the word at
 *     %fs:0x70 is 0. Each thread that uses Weft has its own; as usual, one thread at a time uses a coroutine.
 *  2. Calls of constructors, because they describe effects (.init_array).
 * tests/freestanding/start.c does both for a static program without a C library.
 *
 * Nothing here may be called in an interrupt or signal handler, and nothing here suspends.
 */
#ifndef WEFT_FREESTANDING_H
#define WEFT_FREESTANDING_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * Set the memory for stacks of coroutines whose attributes name no memory, for example those of weft_create and
 * weft_run. The memory is cut into equal stacks, which are reused. Without it these functions fail with ENOTSUP; if
 * every stack is in use, with ENOMEM. Each stack has the pattern that weft_attr.memory has without a guard.
 * @param memory       any alignment; borrowed by the library until the next successful call
 * @param bytes        its size; NULL and 0 take the memory away from the library
 * @param stack_bytes  for each stack, record included; 0: 16 KiB. weft_attr.stack_size is ignored
 * @return the number of stacks; or a negative errno
 *   -ENOSPC  no stack fits, or stack_bytes is less than weft_memory_size(NULL, 0)
 *   -EBUSY   coroutines live in the memory from an earlier call
 * Thread-safe, if no other thread is making coroutines at the same time.
 */
WEFT_API int weft_use_memory(void *memory, size_t bytes, size_t stack_bytes);

/** The number of further coroutines for which the memory of weft_use_memory has room. Thread-safe. */
WEFT_API size_t weft_memory_left(void);

/**
 * Print a line of a message, newline included. A program may define this function; the library's own writes to
 * descriptor 2, by the instruction for system calls. It may be called on any stack, of which it needs 256 bytes.
 */
WEFT_API void weft_say(const char *text, size_t length);

/** Stop the program: a rule was broken, and weft_say has printed the message. A program may define this function; the
 * library's own executes an undefined instruction (ud2). It must not return. */
WEFT_API WEFT__NORETURN void weft_stop(void);

WEFT_EXTERN_C_END

#endif /* WEFT_FREESTANDING_H */
