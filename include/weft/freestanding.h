/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/freestanding.h: coroutines and effects without an operating system: what programs with libweft-core.a
 * (-DWEFT_FREESTANDING=ON) call besides weft/coro.h, weft/effect.h, weft/handler.h and weft/defer.h, and what they may
 * define.
 *
 * libweft-core.a makes no system call that has to do with memory, signals or threads, installs no handler, and needs of
 * a C library only memcpy, memmove, memset and memcmp, which compilers call by themselves. Stacks lie where the program
 * says: in weft_attr.memory, or in the memory of weft_use_memory. The policies are "fixed" and "overcommit", which do
 * not differ there; others, guard_size and WEFT_UNWIND are refused (ENOTSUP, EINVAL). There are no tasks, clones,
 * threads, backtraces and C++ exceptions. The library has an errno of its own: ask weft_errno(), not <errno.h>.
 *
 * The program provides
 *  1. Thread-local variables. %fs:0 holds its own address, below it lies the program's PT_TLS segment, and the word at
 *     %fs:0x70 is 0. Each thread that uses Weft has its own; one coroutine is used by one thread at a time, as ever.
 *  2. Constructors are called, because they describe effects (.init_array).
 * tests/freestanding/start.c does both for a static program without a C library.
 *
 * Nothing here may be called in an interrupt or signal handler, and none of it suspends.
 */
#ifndef WEFT_FREESTANDING_H
#define WEFT_FREESTANDING_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * Where coroutines have their stacks whose attributes name no memory: those of weft_create, of weft_run, and so on. The
 * memory is cut into equal stacks, which are used again and again. Without it these functions fail with ENOTSUP; where
 * every stack is in use, with ENOMEM. Each stack has the pattern that weft_attr.memory has without a guard.
 * @param memory       any alignment; the library's until it is replaced by other memory
 * @param bytes        0 with NULL: none any more
 * @param stack_bytes  for each stack, record included; 0: 16 KiB. weft_attr.stack_size says nothing
 * @return how many stacks there are; or a negative errno
 *   -ENOSPC  not even one fits, or stack_bytes is less than weft_memory_size(NULL, 0)
 *   -EBUSY   coroutines live in the memory that was handed over before
 * Thread-safe, if no other thread is making coroutines at the time.
 */
WEFT_API int weft_use_memory(void *memory, size_t bytes, size_t stack_bytes);

/** How many more coroutines weft_use_memory's memory has room for. Thread-safe. */
WEFT_API size_t weft_memory_left(void);

/**
 * A line of text, newline included, for whoever is to read messages. A program may define it; the library's own writes
 * to descriptor 2, by the instruction for system calls. It may be called on any stack, of which it needs 256 bytes.
 */
WEFT_API void weft_say(const char *text, size_t length);

/** A rule was broken, and weft_say has been told. A program may define it; the library's own stops by an instruction
 * that is none (ud2). It must not return. */
WEFT_API WEFT__NORETURN void weft_stop(void);

WEFT_EXTERN_C_END

#endif /* WEFT_FREESTANDING_H */
