/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of the I/O layer share: what a runtime knows of descriptors, trying an operation, the two back ends.
 *
 *   an operation is      where                              it leaves that state by
 *   new                  its caller's frame                 weft_op_io
 *   in progress          also in its descriptor's list,     a result, or its wait's early end (deadline,
 *                        its waiter armed                   cancellation, weft_close), which withdraws it
 *   done                 its caller's frame alone           -
 */
#ifndef WEFT_SRC_IO_H
#define WEFT_SRC_IO_H

#include <weft/io.h>

#include "sched/sched.h"

struct weft__loop;

/* What can be done with a descriptor without blocking. */
enum weft__nature {
	WEFT__UNKNOWN,	     /* not used yet, but by weft_poll */
	WEFT__STREAM,	     /* a socket of bytes: a short read has emptied it */
	WEFT__MESSAGES,	     /* any other socket */
	WEFT__PIPE,	     /* not a socket, non-blocking */
	WEFT__BLOCKING_PIPE, /* the same, and blocking: used only when it is ready */
	WEFT__FILE,	     /* cannot be waited for */
};

/* weft_io_t.step: what has been done of an operation. */
enum {
	WEFT__NEW,
	WEFT__TRIED,	 /* epoll: in its descriptor's list, to be tried again when that is ready */
	WEFT__SUBMITTED, /* io_uring: the kernel has it, or its ring */
	WEFT__POLLING,	 /* io_uring: the kernel waits until it can be tried */
	WEFT__PAUSED,	 /* it is to be begun again after a while */
	WEFT__OVER,
};

/* Directions; and: the other side will send no more; it is gone, or there is an error. Then operations end at once. */
enum { WEFT__IN = 1, WEFT__OUT = 2, WEFT__NO_MORE = 4, WEFT__HUNG_UP = 8 };

/* A descriptor. */
struct weft__fd {
	uint32_t lock;
	uint8_t nature; /* atomic: weft__nature */
	uint8_t ready;	/* atomic, epoll: what an attempt may succeed in */
	bool registered, closing;
	bool polled;		 /* epoll: registered for weft_poll alone */
	uint32_t count;		 /* atomic, epoll: of those in the list */
	weft_io_t *first, **end; /* under the lock: operations in progress, the oldest first */
};

struct weft__backend {
	const char *name;
	/* What is to be done next for an operation that is new, or whose wait has ended: WEFT_IO_…. */
	int (*begin)(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io);
	int (*go_on)(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io);
	/* A descriptor is about to be closed, or not to be waited for any more. Under its lock. */
	void (*forget)(struct weft__loop *loop, int number, struct weft__fd *fd);
	void (*close)(struct weft__loop *loop);
};

enum { WEFT__BLOCK = 1024, WEFT__BLOCKS = 4096 };

/* A runtime's I/O: made by its first operation. */
struct weft__loop {
	struct weft__source source; /* first: the scheduler's view of it */
	const struct weft__backend *backend;
	struct weft__rt *rt;
	bool nonblocking;		  /* descriptors made here are: see mode, net.c */
	struct weft__fd *_Atomic *blocks; /* WEFT__BLOCKS of WEFT__BLOCK descriptors */
	struct weft__loop *next;	  /* of all loops of the process */
	int spare;			  /* kept for when no other is left */
	uint32_t spare_lock;
	/* epoll.c */
	int set, wake;
	bool coarse; /* atomic: there is no epoll_pwait2 */
	struct weft__worker *_Atomic sleeper;
	_Atomic uint32_t registrations; /* orders a record's making before the events of its descriptor */
	/* uring.c */
	int tells; /* an eventfd: the ring of a worker that is held has work for it */
};

/* End weft_poll's waits for a descriptor, in all runtimes: its number is to mean another file. From any thread. */
void weft__loops_abandon(int number, int reason) WEFT__HIDDEN;
/* Has the calling task's runtime used the descriptor, but for waiting? */
bool weft__loop_knows(int number) WEFT__HIDDEN;

/* The caller's loop; NULL: none, or none could be made, or the world is simulated. */
struct weft__loop *weft__loop(void) WEFT__HIDDEN;
/* The same, and why none could be made: a negative errno. */
int weft__loop_find(struct weft__loop **loop) WEFT__HIDDEN;

/* The block of a descriptor's record, made at its first use. NULL: no memory. */
struct weft__fd *weft__fd_make_block(struct weft__loop *loop, int number) WEFT__HIDDEN;

/* NULL: no memory, or no such number. */
static inline struct weft__fd *weft__fd(struct weft__loop *loop, int number)
{
	struct weft__fd *block;

	if ((unsigned)number >= WEFT__BLOCKS * WEFT__BLOCK)
		return NULL;
	/* Acquire: pairs with weft__fd_make_block. */
	block = atomic_load_explicit(&loop->blocks[number / WEFT__BLOCK], memory_order_acquire);
	if (__builtin_expect(!block, 0))
		block = weft__fd_make_block(loop, number);
	return block ? &block[number % WEFT__BLOCK] : NULL;
}

/* A new descriptor of this nature: what was known of an earlier one of this number is wrong. */
void weft__fd_made(int number, enum weft__nature nature) WEFT__HIDDEN;
int weft__fd_learn(struct weft__loop *loop, struct weft__fd *fd, int number) WEFT__HIDDEN;

/* What it is; asks the system at its first use. Negative errno: -EBADF. */
static inline int weft__fd_nature(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	int nature = __atomic_load_n(&fd->nature, __ATOMIC_ACQUIRE);

	return __builtin_expect(nature != WEFT__UNKNOWN, 1) ? nature : weft__fd_learn(loop, fd, number);
}

static inline void weft__fd_add(struct weft__fd *fd, weft_io_t *io)
{
	if (!fd->first)
		fd->end = &fd->first;
	io->next = NULL;
	io->link = fd->end;
	*fd->end = io;
	fd->end = &io->next;
}

static inline void weft__fd_take_out(struct weft__fd *fd, weft_io_t *io)
{
	*io->link = io->next;
	if (io->next)
		io->next->link = io->link;
	else
		fd->end = io->link;
}

void weft__fd_end(struct weft__fd *fd, int number) WEFT__HIDDEN;

/* Under its lock, after an operation was taken out: the last one of a closed descriptor frees its number. */
static inline void weft__fd_left(struct weft__fd *fd, int number)
{
	if (__builtin_expect(fd->closing, 0) && !fd->first)
		weft__fd_end(fd, number);
}

/* Do it if that does not block: its result, or -EAGAIN. */
int64_t weft__io_attempt(weft_io_t *io, int nature) WEFT__HIDDEN;
/* What a file's page cache has of what is to be read; a negative errno: nothing, or it is no read. */
int64_t weft__io_read_cached(const weft_io_t *io) WEFT__HIDDEN;
/* Has a successful attempt shown that the next one would fail? */
bool weft__io_exhausts(const weft_io_t *io, int nature) WEFT__HIDDEN;
/* What is known of each kind. */
extern const struct weft__kind {
	const char *what; /* for weft_dump: "read" */
	uint8_t way;	  /* directions that an operation waits for; 0: it does not wait, it blocks */
} weft__kinds[WEFT_IO_CALL + 1] WEFT__HIDDEN;

/* The kind's; an unknown kind is none. */
static inline const struct weft__kind *weft__kind(const weft_io_t *io)
{
	return &weft__kinds[io->kind <= WEFT_IO_CALL ? io->kind : 0];
}

uint8_t weft__polled_way(int events) WEFT__HIDDEN;

/* Directions that this operation waits for. */
static inline uint8_t weft__io_way(const weft_io_t *io)
{
	return io->kind == WEFT_IO_POLL ? weft__polled_way(io->flags) : weft__kind(io)->way;
}

static inline const char *weft__io_what(const weft_io_t *io)
{
	return weft__kind(io)->what;
}

/* The same as events of poll. */
short weft__io_events(const weft_io_t *io) WEFT__HIDDEN;
/* It is to begin again after some nanoseconds. */
int weft__io_pause(weft_io_t *io, uint64_t time) WEFT__HIDDEN;
/* After a pause. True: it is over, its result is written. */
bool weft__io_ends_in_pause(weft_io_t *io) WEFT__HIDDEN;

/* Ends of an operation. */
static inline int weft__io_done(weft_io_t *io, int64_t result)
{
	io->result = result;
	return WEFT_IO_DONE;
}

/* An address in digits; NULL: any. */
bool weft__number_address(const char *name, unsigned port, weft_address_t *address) WEFT__HIDDEN;
/* The answer of a look-up for which nobody need be asked; -EAGAIN: somebody must. */
int64_t weft__resolve_digits(const struct weft__resolve *what) WEFT__HIDDEN;

/* What is the same for both: an accept that failed for want of a descriptor pauses; what was accepted is known. */
int weft__io_accepted(struct weft__loop *loop, weft_io_t *io, int nature) WEFT__HIDDEN;

/* 0, or a negative errno, and then nothing is left of it. */
int weft__epoll_open(struct weft__loop *loop) WEFT__HIDDEN;
/* The same; `why` is written if it does not work. The errno may be 0: there is nothing to add. */
int weft__uring_open(struct weft__loop *loop, const char **why) WEFT__HIDDEN;

#endif
