/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests to valgrind, by its own macros. They cost a few instructions, which do nothing without valgrind. If its
 * header is not installed, they are empty.
 */
#ifndef WEFT_SRC_VALGRIND_H
#define WEFT_SRC_VALGRIND_H

#ifdef WEFT_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define RUNNING_ON_VALGRIND 0
#define VALGRIND_STACK_REGISTER(start, end) 0u
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#define VALGRIND_GET_VBITS(from, to, bytes) ((void)(from), (void)(to), 0)
#define VALGRIND_MAKE_MEM_DEFINED(start, bytes) ((void)(start), (void)(bytes))
#define VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(start, bytes) ((void)(start), (void)(bytes))
#define VALGRIND_MAKE_MEM_NOACCESS(start, bytes) ((void)(start), (void)(bytes))
#define VALGRIND_MAKE_MEM_UNDEFINED(start, bytes) ((void)(start), (void)(bytes))
#endif

#endif
