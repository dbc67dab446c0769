/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What assembly knows of linked stacks. x86_64_linked.S reads and writes these fields; README.md here draws them.
 *
 * A chunk is a contiguous piece of a linked stack. Frames start below its record (in most slots below the coroutine
 * object too, in a small one not: CHUNK_FRAMES says where) and grow down to `low`. Three kinds:
 *   slot     of the arena (segmented, lookahead, mmu): its record is part of struct weft__slot
 *   system   a slot as well, large and contiguous, borrowed for a call of code that does not check: limit NULL
 *   block    one frame on the heap: the record alone is at its end
 */
#ifndef WEFT_SRC_ARCH_CHUNK_H
#define WEFT_SRC_ARCH_CHUNK_H

#define WEFT_CHUNK_BELOW 0
#define WEFT_CHUNK_ABOVE 8
#define WEFT_CHUNK_LIMIT 16
#define WEFT_CHUNK_LOW 24
#define WEFT_CHUNK_FRAMES 40 /* of a slot that is a chunk */
/* The same word as ABOVE, in a block. */
#define WEFT_BLOCK_CLASS 8
#define WEFT_BLOCK_NEXT 32

/* From a slot's first frame up to its chunk record: the coroutine object and the owner. */
#define WEFT_CHUNK_TOP 264
#define WEFT_CHUNK_OWNER 8 /* the owner's distance, below */

/* The limit of heap frames: above any address, and positive, because some compilers compare it as signed. */
#define WEFT_HEAP_LIMIT 0x7fffffffffffffff

/*
 * What lies below a chunk's limit. A frame under 64 bytes is checked by where it starts, and may end below; then there
 * is a return address, and 200 bytes for a small leaf function without a check, with its red zone, or for __morestack's
 * own frame. tools/as/README.md reckons it up. Chunks with pages of their own have room for more than that.
 */
#define WEFT_SLACK 1024
#define WEFT_TINY_SLACK 272 /* of chunks smaller than a page: tiny and small ones */
/* The same for a heap frame, which starts exactly where it is. */
#define WEFT_HEAP_SLACK 264

/* A thread's small stack, where the C functions of linked stacks run, and the one below it for failure hooks: what
 * these call may need the former. */
#ifdef WEFT_FREESTANDING /* there are no linked stacks */
#define WEFT_SMALL_STACK 0
#define WEFT_HOOK_STACK 4096
#else
#define WEFT_SMALL_STACK 65536
#define WEFT_HOOK_STACK 65536
#endif

#define WEFT_BLOCK_BYTES 48   /* a block's record */
#define WEFT_BLOCK_CLASSES 64 /* sizes are multiples of 64 bytes */

/* Why a stack cannot grow: WEFT__SPENT_MEMORY of stack/callbacks.h. */
#define WEFT_SPENT_MEMORY 3

/* Stack arguments that are copied to another stack keep their alignment up to so many bytes. */
#define WEFT_ARGUMENT_ALIGNMENT 256

/* What precedes the entry of a function that checks. */
#define WEFT_MARK_LOW 0x74666577
#define WEFT_MARK_HIGH 0xb10b90cc

#ifdef __ASSEMBLER__
/* The stack pointer to rax of the nearest resumer above k whose stack is contiguous: a thread's own is, unless it has a
 * small stack. Clobbers r10. */
#define CONTIGUOUS_ABOVE(k)                                                                                            \
	movq k, % r10;                                                                                                 \
	10 : movq WEFT_LINK_PARENT_SP(% r10), % rax;                                                                   \
	movq WEFT_CORO_PARENT(% r10), % r10;                                                                           \
	cmpq $0, WEFT_LINK_LIMIT(% r10);                                                                               \
	jne 10b
#else
#include <weft/arch.h>

#include "internal/link_part.h"

struct weft__chunk {
	struct weft__chunk *below; /* the chunk of older frames */
	union {
		struct weft__chunk *above; /* the next, in use or kept for the next time */
		uintptr_t class;	   /* of a block */
	};
	char *limit; /* of frames that run here; constant but for growth in place */
	char *low;   /* lowest byte, guard excluded */
};

WEFT__OFFSET_IS(struct weft__chunk, below, WEFT_CHUNK_BELOW);
WEFT__OFFSET_IS(struct weft__chunk, above, WEFT_CHUNK_ABOVE);
WEFT__OFFSET_IS(struct weft__chunk, class, WEFT_BLOCK_CLASS);
WEFT__OFFSET_IS(struct weft__chunk, limit, WEFT_CHUNK_LIMIT);
WEFT__OFFSET_IS(struct weft__chunk, low, WEFT_CHUNK_LOW);

struct weft__block {
	struct weft__chunk chunk;
	/* On the list that it is on, or was on last. A word of its own, as `below` is, and both stay: what is right
	 * already need not be stored, nor waited for. */
	struct weft__block *next;
	struct weft__block *list; /* of the first of a list that an ended thread left: the next such list */
};

WEFT__OFFSET_IS(struct weft__block, next, WEFT_BLOCK_NEXT);
WEFT__STATIC_ASSERT(sizeof(struct weft__block) == WEFT_BLOCK_BYTES, "the record of a block");

#define WEFT__HEAP_LIMIT ((char *)WEFT_HEAP_LIMIT)

/* ---- assembly --------------------------------------------------------------------------------------------- */

/* Call fn(arg) on the chunk `top` belongs to, through the mark's check; fn may be anything. Returns its result. */
void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top);

/* ---- what assembly calls, on the thread's own small stack, with limit 0 (stack/linked.c) --------------------- */

/* Make room for a frame of `need` bytes and `args` bytes of arguments at `sp`. The chunk to use: the current one,
 * which was enlarged, or a new one, already `above` the current one. Does not return if there is no memory. */
struct weft__chunk *weft__chunk_grow(struct weft_link *self, size_t need, size_t args, char *sp);
/* A block of so many bytes, at least, for a heap frame. Does not return if there is no memory. */
struct weft__block *weft__take_block(struct weft_link *self, size_t bytes);
void weft__give_block(struct weft__block *block);
/* A thread that ends has no limit. musl keeps a thread's result in that word from pthread_exit on: there it must not be
 * written then. */
static inline void weft__limit_ends(void)
{
#ifdef __GLIBC__
	weft__set_limit(NULL);
#endif
}

/* A system stack. Does not return if there is no memory. */
struct weft__chunk *weft__system_take(struct weft_link *self);
WEFT__OF_LINKED void weft__system_give(struct weft__chunk *chunk);
/* After a longjmp to the frame at `sp`: leave the chunks that were newer. */
void weft__chunks_cut(struct weft_link *self, char *sp);
/* Room for an array. NULL never: it does not return if there is no memory. */
void *weft__array_take(struct weft_link *self, size_t bytes, char *sp);

/* The calling thread's: an idle system stack, or NULL; the end of the small stack; lists of free blocks by class. */
extern __thread struct weft__chunk *weft__tls_system __attribute__((tls_model("initial-exec")));
extern __thread char *weft__tls_growth __attribute__((tls_model("initial-exec")));
extern __thread struct weft__block *weft__tls_blocks[WEFT_BLOCK_CLASSES] __attribute__((tls_model("initial-exec")));
#endif
#endif
