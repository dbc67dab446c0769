/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Offsets of the fields of a coroutine, for assembly. Written once, read by C, inline assembly and .S files; coro.h
 * checks each against the struct. Bytes from the start of weft_coro_t.
 */
#ifndef WEFT_ARCH_OFFSETS_H
#define WEFT_ARCH_OFFSETS_H

#define WEFT_LINK_SP 0
#define WEFT_LINK_PC 8
#define WEFT_LINK_FP 16
#define WEFT_LINK_BX 24
#define WEFT_LINK_PARENT_SP 32
#define WEFT_LINK_PARENT_FP 40
#define WEFT_LINK_PARENT_PC 48
#define WEFT_LINK_PARENT_BX 56
#define WEFT_LINK_LIMIT 64
#define WEFT_LINK_CHUNK 72

#define WEFT_CORO_GROUP 80
#define WEFT_CORO_PARENT 88
#define WEFT_CORO_HANDLED 96
#define WEFT_CORO_INNERMOST 104
#define WEFT_CORO_TAGS 112
#define WEFT_CORO_VIEW 120
#define WEFT_HANDLES_TAGS 2 /* as `handled`: the handled effects are the bits of `tags` */

/* Offsets of a thread's data after weft__tls_self, and of an entry's fields: see weft/detail/handler_cache.h. */
#define WEFT_TLS_FOUND 8
#define WEFT_TLS_OPERATIONS 16
#define WEFT_TLS_NEWEST 32
#define WEFT_NEWEST_VIEW 0
#define WEFT_NEWEST_KEY 8
#define WEFT_NEWEST_WHO 16
#define WEFT_NEWEST_ENTER 24

#define WEFT_CORO_FLAGS 136
#define WEFT_CORO_SLOT 160
#define WEFT_CORO_ARRAYS 224

/* Used only by coroutines with WEFT_SAVE_… flags, or whose frames are copied. */
#define WEFT_CORO_INNER_PC 200
#define WEFT_CORO_OUTER_PC 208

/* The distance from a suspended coroutine's landing pad back to the pad where it lands to end. */
#define WEFT_LEFT_BYTES 16

#endif /* WEFT_ARCH_OFFSETS_H */
