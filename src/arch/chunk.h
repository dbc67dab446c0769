/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Structures of linked stacks that assembly shares with C. x86_64_linked.S reads and writes these fields; README.md in
 * this directory has pictures.
 *
 * A chunk is a contiguous piece of a linked stack. Frames start below its record (in most slots also below the
 * coroutine object, but not in a small slot: CHUNK_FRAMES holds the place) and grow down to `low`. Three kinds:
 *   slot     of the arena (segmented, lookahead, mmu): its record is part of struct weft__slot
 *   system   a large contiguous slot, borrowed for a call of code that does not check: limit NULL
 *   block    one frame on the heap: at its end there is only the record
 */
#ifndef WEFT_SRC_ARCH_CHUNK_H
#define WEFT_SRC_ARCH_CHUNK_H

#define WEFT_CHUNK_BELOW 0
#define WEFT_CHUNK_ABOVE 8
#define WEFT_CHUNK_LIMIT 16
#define WEFT_CHUNK_LOW 24
#define WEFT_CHUNK_FRAMES 40 /* in a slot that is a chunk */
/* In a block, the word at ABOVE. */
#define WEFT_BLOCK_CLASS 8
#define WEFT_BLOCK_NEXT 32

/* The distance from a slot's first frame up to its chunk record: the coroutine object and the owner. */
#define WEFT_CHUNK_TOP 264
#define WEFT_CHUNK_OWNER 8 /* the distance from the record down to the owner */

/* The limit of heap frames: above all addresses, and positive, because some compilers compare it as signed. */
#define WEFT_HEAP_LIMIT 0x7fffffffffffffff

/*
 * The bytes below a chunk's limit. The check of a frame under 64 bytes compares the frame's start, so the frame may end
 * below the limit. Then there must be room for a return address, and 200 bytes for a small leaf function without a
 * check, with its red zone, or for the frame of __morestack. tools/as/README.md derives the sum. Chunks with pages of
 * their own have more room.
 */
#define WEFT_SLACK 1024
#define WEFT_TINY_SLACK 272 /* for chunks smaller than a page: tiny and small chunks */
/* The slack of a heap frame, whose start is exactly where the check expects it. */
#define WEFT_HEAP_SLACK 264

/* Bytes of a thread's small stack, on which the C functions of linked stacks run, and of the stack for failure hooks
 * below it. They are separate because functions that a hook calls may need the small stack. */
#ifdef WEFT_FREESTANDING /* there are no linked stacks */
#define WEFT_SMALL_STACK 0
#define WEFT_HOOK_STACK 4096
#else
#define WEFT_SMALL_STACK 65536
#define WEFT_HOOK_STACK 65536
#endif

#define WEFT_BLOCK_BYTES 48   /* the record of a block */
#define WEFT_BLOCK_CLASSES 64 /* sizes are multiples of 64 bytes */

/* Why a stack cannot grow: WEFT__SPENT_MEMORY of stack/callbacks.h. */
#define WEFT_SPENT_MEMORY 3

/* Stack arguments that are copied to another stack keep their alignment, up to this many bytes. */
#define WEFT_ARGUMENT_ALIGNMENT 256

/* The mark before the entry of a function that checks. */
#define WEFT_MARK_LOW 0x74666577
#define WEFT_MARK_HIGH 0xb10b90cc

#ifdef __ASSEMBLER__
/* Load into rax the stack pointer of the nearest resumer above k whose stack is contiguous: a thread's own stack is
 * contiguous, unless the thread has a small stack. Clobbers r10. */
#define CONTIGUOUS_ABOVE(k)                                                                                            \
	movq k, % r10;                                                                                                 \
	10 : movq WEFT_LINK_PARENT_SP(% r10), % rax;                                                                   \
	movq WEFT_CORO_PARENT(% r10), % r10;                                                                           \
	cmpq $0, WEFT_LINK_LIMIT(% r10);                                                                               \
	jne 10b
#else
#include <weft/detail/arch.h>

#include "internal/link_part.h"

struct weft__chunk {
	struct weft__chunk *below; /* the chunk of older frames */
	union {
		struct weft__chunk *above; /* the next chunk, in use or cached */
		uintptr_t class;	   /* the class of a block */
	};
	char *limit; /* the limit of frames that run here; constant except for growth in place */
	char *low;   /* lowest byte, guard excluded */
};

WEFT__OFFSET_IS(struct weft__chunk, below, WEFT_CHUNK_BELOW);
WEFT__OFFSET_IS(struct weft__chunk, above, WEFT_CHUNK_ABOVE);
WEFT__OFFSET_IS(struct weft__chunk, class, WEFT_BLOCK_CLASS);
WEFT__OFFSET_IS(struct weft__chunk, limit, WEFT_CHUNK_LIMIT);
WEFT__OFFSET_IS(struct weft__chunk, low, WEFT_CHUNK_LOW);

struct weft__block {
	struct weft__chunk chunk;
	/* The next block on the list that the block is on, or was on last. `next` and `below` are separate words, and
	 * both stay: a word that is already right need not be stored, so no later load waits for it. */
	struct weft__block *next;
	struct weft__block *list; /* in the first block of a list that an ended thread left: the next such list */
};

WEFT__OFFSET_IS(struct weft__block, next, WEFT_BLOCK_NEXT);
WEFT__STATIC_ASSERT(sizeof(struct weft__block) == WEFT_BLOCK_BYTES, "the record of a block");

#define WEFT__HEAP_LIMIT ((char *)WEFT_HEAP_LIMIT)

/* ---- assembly --------------------------------------------------------------------------------------------- */

/* Call fn(arg) on the chunk that contains `top`, and check fn's mark first; fn may be any function. Returns its
 * result. */
void *weft__enter_chunk(void *(*fn)(void *), void *arg, char *top);

/* ---- called by assembly, on the thread's own small stack, with limit 0 (stack/linked.c) ---------------------- */

/* Make room for a frame of `need` bytes and `args` bytes of arguments at `sp`. Returns the chunk to use: the current
 * chunk, enlarged, or a new chunk, which is then `above` the current chunk. Does not return if there is no memory. */
struct weft__chunk *weft__chunk_grow(struct weft_link *self, size_t need, size_t args, char *sp);
/* Take a block of at least `bytes` bytes for a heap frame. Does not return if there is no memory. */
struct weft__block *weft__take_block(struct weft_link *self, size_t bytes);
void weft__give_block(struct weft__block *block);
/* Remove the limit of a thread that ends. From pthread_exit on, musl keeps a thread's result in that word, so that it
 * must not be written there. */
static inline void weft__limit_ends(void)
{
#ifdef __GLIBC__
	weft__set_limit(NULL);
#endif
}

/* Take a system stack. Does not return if there is no memory. */
struct weft__chunk *weft__system_take(struct weft_link *self);
WEFT__OF_LINKED void weft__system_give(struct weft__chunk *chunk);
/* Called after a longjmp to the frame at `sp`: leave the newer chunks. */
void weft__chunks_cut(struct weft_link *self, char *sp);
/* Room for an array. Never NULL: does not return if there is no memory. */
void *weft__array_take(struct weft_link *self, size_t bytes, char *sp);

/* Variables of the calling thread: an idle system stack, or NULL; the end of the small stack; lists of free blocks by
 * class. */
extern __thread struct weft__chunk *weft__tls_system __attribute__((tls_model("initial-exec")));
extern __thread char *weft__tls_growth __attribute__((tls_model("initial-exec")));
extern __thread struct weft__block *weft__tls_blocks[WEFT_BLOCK_CLASSES] __attribute__((tls_model("initial-exec")));
#endif
#endif
