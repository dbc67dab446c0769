/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of the I/O layer share: what a runtime knows of descriptors, trying an operation, the two back ends.
 *
 *   an operation is      where                              it leaves that state by
 *   new                  its caller's frame                 weft_op_io
 *   in progress          also in its descriptor's list,     a result, or its wait's early end (deadline,
 *                        its waiter armed                   cancellation, weft_close), which withdraws it
 *   done                 its caller's frame alone           -
 * From its beginning to its end it holds the descriptors that it names: see table.c.
 */
#ifndef WEFT_SRC_IO_H
#define WEFT_SRC_IO_H

#include <weft/io.h>

#include "sched/single_thread.h"
#include "sched/sched.h"

struct weft__loop;

/* Kinds of descriptors, by how they are used without blocking. A short read has emptied only those of plain bytes. */
enum weft__nature {
	WEFT__UNKNOWN,	     /* not used yet, but by weft_poll */
	WEFT__STREAM,	     /* TCP: plain bytes, but for an urgent mark, of which an event tells */
	WEFT__UNIX,	     /* a Unix stream: the same, but for what recvmsg tells of */
	WEFT__LOCAL,	     /* a Unix socket of datagrams or packets: see must_not_block, uring.c */
	WEFT__MESSAGES,	     /* any other socket */
	WEFT__PIPE,	     /* a non-blocking pipe, of plain bytes */
	WEFT__DEVICE,	     /* whatever else is non-blocking and can be waited for: other pipes, terminals */
	WEFT__BLOCKING_PIPE, /* no socket, and blocking: used only when it is ready */
	WEFT__FILE,	     /* cannot be waited for */
};

static inline bool weft__is_socket(int nature)
{
	return nature >= WEFT__STREAM && nature <= WEFT__MESSAGES;
}

/* weft_io_t.step: what has been done of an operation. */
enum {
	WEFT__NEW,
	WEFT__TRIED,	    /* epoll: in its descriptor's list, to be tried again when that is ready */
	WEFT__SUBMITTED,    /* io_uring: the kernel has it, or its ring */
	WEFT__POLLING,	    /* io_uring: the kernel waits until it can be tried */
	WEFT__CROWDED,	    /* io_uring: there was no room in a ring; it is to be tried again after a while */
	WEFT__PAUSED,	    /* it is to be begun again after a while */
	WEFT__TO_OPEN,	    /* an open would have waited, and is to be tried again after a while */
	WEFT__OPENING,	    /* it waits for that */
	WEFT__BLOCKED,	    /* a helper thread is to do it */
	WEFT__BLOCKED_LATE, /* the same, and its deadline had passed before: it is tried all the same */
	WEFT__OVER,
};

/* It lies in the frame of each task that waits. With a segmented stack of 2 KiB there is no room for more. */
_Static_assert(sizeof(weft_io_t) <= 184, "an idle connection's task would need a second chunk of stack");

/* Directions; and: the other side will send no more; it is gone, or there is an error. Then operations end at once. */
enum { WEFT__IN = 1, WEFT__OUT = 2, WEFT__NO_MORE = 4, WEFT__HUNG_UP = 8 };

/*
 * Nanoseconds after which an operation that waits for room in a socket tries again: the kernel reports no event when
 * either side of a full Unix socket ends the direction in which it is full.
 */
enum { WEFT__FULL_AGAIN = 100000000 };

/* weft__fd.uses: it has been closed, and the kernel has not got its number back; one for each operation. */
enum { WEFT__CLOSING = 1, WEFT__USER = 2 };

/* weft_io_t.other of an accept by weft/posix.h: its flags are what the caller asked for, and it is no accept that waits
 * for a free descriptor. */
enum { WEFT__AS_ASKED = -2 };

/* A runtime's record of a descriptor. */
struct weft__fd {
	uint32_t lock;
	uint8_t nature;		 /* atomic: weft__nature */
	uint8_t ready;		 /* atomic, epoll: what an attempt may succeed in */
	bool registered;	 /* epoll */
	bool polled;		 /* epoll: registered for weft_poll alone */
	bool blocks;		 /* epoll: a socket that others made, in blocking mode */
	bool listens;		 /* atomic, epoll: it has been asked for connections */
	bool marked;		 /* atomic, epoll: there has been an urgent mark in it */
	bool placeholder;	 /* while it is being closed: the number means one */
	bool direct;		 /* atomic: a file that is not read through the page cache */
	bool told;		 /* threads have been told that it is closed */
	uint32_t uses;		 /* atomic: WEFT__USER for each operation that holds it, and WEFT__CLOSING */
	uint32_t generation;	 /* atomic: of the file; weft_close and dup2 change it, under the lock */
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
	uint32_t pairs_lock;
	weft_io_t *pairs; /* under it: operations in progress that wait for several descriptors */
	/* epoll.c */
	int set, wake;
	bool coarse; /* atomic: there is no epoll_pwait2 */
	struct weft__worker *_Atomic sleeper;
	_Atomic uint32_t registrations; /* orders a record's making before the events of its descriptor */
	/* uring.c */
	int tells; /* an eventfd: the ring of a worker that is held has work for it */
};

/* ---- table.c ----------------------------------------------------------------------------------------------------- */

/* A loop that has just been made, or is about to be freed. */
void weft__fds_add(struct weft__loop *loop) WEFT__HIDDEN;
void weft__fds_remove(struct weft__loop *loop) WEFT__HIDDEN;

/* Close a real descriptor, by a function that returns 0 or a negative errno. */
int weft__fds_close(int number, int (*close)(int number)) WEFT__HIDDEN;
/* Does any operation hold it, or any runtime know what it is? Does not lock. */
bool weft__fds_knows(int number) WEFT__HIDDEN;
void weft__fds_end_waits(int number) WEFT__HIDDEN;

/*
 * Sockets that others made may be in blocking mode, and be used by others in that mode. Most operations can be told not
 * to block; for the rest the mode is changed for a moment, by one thread of the process at a time. Returns the flags.
 */
int weft__unblock(int number) WEFT__HIDDEN;
void weft__block_again(int number, int flags) WEFT__HIDDEN;
/* As F_GETFL, but for such moments. */
int weft__flags(int number) WEFT__HIDDEN;

/* The number is to mean another file at once: `replace` makes it so. Ends waits for the file that it means now. */
int weft__fds_replace(int number, int (*replace)(void *argument), void *argument) WEFT__HIDDEN;

/* Parts of weft__hold and weft__let_go, below: for what may wait for several. If they fail it holds nothing. */
int weft__hold_closing(struct weft__loop *loop, struct weft__fd *fd, int number) WEFT__HIDDEN;
int weft__hold_other(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
void weft__let_go_of_other(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* `uses`: before. `io` NULL: no operation. */
void weft__let_go_of_closed(weft_io_t *io, int number, uint32_t uses) WEFT__HIDDEN;
/* Parts of weft__begin_wait and weft__means_the_same, below. */
bool weft__begin_special_wait(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
bool weft__pair_means_the_same(struct weft__loop *loop, const weft_io_t *io) WEFT__HIDDEN;

/* A use of a descriptor in several steps, by a task of the calling worker: see posix.c. */
struct weft__use {
	struct weft__fd *fd;
	int number;
	uint32_t generation;
	size_t more; /* so many follow it, which a wait waits for, too */
};
int weft__use_begin(struct weft__use *use, int number) WEFT__HIDDEN;
void weft__use_end(struct weft__use *use) WEFT__HIDDEN;
/* Does it still mean the same file? With those that follow it. */
bool weft__use_is_good(const struct weft__use *use) WEFT__HIDDEN;
/* True: it is still the same file, and stays so until weft__use_unlock. */
bool weft__use_lock(const struct weft__use *use) WEFT__HIDDEN;
void weft__use_unlock(const struct weft__use *use) WEFT__HIDDEN;

/* For operations of threads that are no tasks: their table, and a descriptor that is readable while one of these is
 * being closed; negative: there is none. */
extern struct weft__loop weft__outside WEFT__HIDDEN;
int weft__outside_ends(void) WEFT__HIDDEN;
/* posix.c: libweft-posix.so learns of this copy of the runtime. Called when src/io is loaded, so that each program that
 * has src/io has posix.c, too. */
void weft__posix_meet_others(void) WEFT__HIDDEN;

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

enum weft__nature weft__nature_of_socket(int domain, int type, int protocol) WEFT__HIDDEN;
/* A number among the options of SOL_SOCKET; -1: it is no socket, or has no such option. */
int weft__socket_option(int number, int name) WEFT__HIDDEN;
/* A new descriptor of this nature: what was known of an earlier one of this number is wrong. */
void weft__fd_made(int number, enum weft__nature nature) WEFT__HIDDEN;
int weft__fd_learn(struct weft__fd *fd, int number) WEFT__HIDDEN;

/* What it is; asks the system at its first use. Negative errno: -EBADF. */
static inline int weft__fd_nature(struct weft__fd *fd, int number)
{
	int nature = __atomic_load_n(&fd->nature, __ATOMIC_ACQUIRE);

	return __builtin_expect(nature != WEFT__UNKNOWN, 1) ? nature : weft__fd_learn(fd, number);
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

/* What getdents64 writes. */
struct weft__direntry {
	uint64_t inode;
	int64_t next;
	uint16_t size; /* of the entry, a multiple of 8 */
	uint8_t type;
	char name[];
};

/* files.c: an operation on files that only blocks; -EINVAL: there is no such kind. */
int64_t weft__io_file(const weft_io_t *io) WEFT__HIDDEN;
/*
 * files.c: WEFT_IO_OPEN. An attempt returns a descriptor or a negative errno. -EAGAIN from an open that may wait means
 * that the open is to be tried again after a pause: until then `other` is a descriptor, or -1.
 */
bool weft__open_may_wait(const weft_io_t *io) WEFT__HIDDEN;
void weft__open_begin(weft_io_t *io) WEFT__HIDDEN;
/* May block at a disk, unless `other` holds a descriptor. */
int64_t weft__open_attempt(weft_io_t *io) WEFT__HIDDEN;
/* A back end has made the first attempt, with O_NONBLOCK; its result. Does not block. */
int64_t weft__open_attempted(weft_io_t *io, int64_t result) WEFT__HIDDEN;
/* Closes `other`. */
void weft__open_abandon(weft_io_t *io) WEFT__HIDDEN;
/* The end of the next pause, a time of weft_now(), or the deadline. */
uint64_t weft__open_pause(weft_io_t *io) WEFT__HIDDEN;
/* Outside of a loop: WEFT_IO_DONE, or WEFT_IO_BLOCKS. */
int weft__io_here(weft_io_t *io) WEFT__HIDDEN;
/* What is known of each kind. */
extern const struct weft__kind {
	const char *what; /* for weft_dump: "read" */
	uint8_t way;	  /* directions that an operation waits for; 0: it does not wait, it blocks */
	bool names;	  /* it is about a path, and `fd` is a directory, or AT_FDCWD */
} weft__kinds[WEFT_IO_KINDS] WEFT__HIDDEN;

/* The kind's; an unknown kind is none. */
static inline const struct weft__kind *weft__kind(const weft_io_t *io)
{
	return &weft__kinds[io->kind < WEFT_IO_KINDS ? io->kind : 0];
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

/* ---- what an operation holds ------------------------------------------------------------------------------------- */

static inline bool weft__is_closing(const struct weft__fd *fd)
{
	return __atomic_load_n(&fd->uses, __ATOMIC_RELAXED) & WEFT__CLOSING;
}

static inline uint32_t weft__generation(const struct weft__fd *fd)
{
	return __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE);
}

/* A change of the count of operations, and what it was before. Atomic for threads that are no workers, and where there
 * are several: see sched/single_thread.h. */
static inline __attribute__((always_inline)) uint32_t weft__fd_count(struct weft__fd *fd, uint32_t change, bool worker)
{
	uint32_t uses;

	if (!worker || !weft__step_in())
		return __atomic_fetch_add(&fd->uses, change, __ATOMIC_ACQ_REL);
	uses = __atomic_load_n(&fd->uses, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->uses, uses + change, __ATOMIC_RELAXED);
	weft__step_out();
	return uses;
}

/* False: it has been closed. The generation is that of the file that it means then, or an earlier one. */
static inline __attribute__((always_inline)) bool weft__fd_hold(struct weft__fd *fd, uint32_t *generation, bool worker)
{
	*generation = weft__generation(fd);
	return !(weft__fd_count(fd, WEFT__USER, worker) & WEFT__CLOSING);
}

/* What was before. */
static inline __attribute__((always_inline)) uint32_t weft__fd_let_go(struct weft__fd *fd, bool worker)
{
	return weft__fd_count(fd, (uint32_t)-WEFT__USER, worker);
}

/* Can it wait for either of two? Others that name two are done by a helper thread, or in the ring. */
static inline bool weft__names_two(const weft_io_t *io)
{
	return __builtin_expect(io->kind >= WEFT_IO_SENDFILE, 0) && io->kind <= WEFT_IO_SPLICE;
}

/* The operation begins: it holds what it names. 0; -EBADF: that has been closed, or is no descriptor; -ENOMEM. */
static inline __attribute__((always_inline)) int weft__hold(struct weft__loop *loop, weft_io_t *io)
{
	struct weft__fd *fd;
	int error;

	io->place = NULL;
	if (__builtin_expect(io->fd < 0, 0)) /* AT_FDCWD, maybe */
		return weft__kind(io)->names ? 0 : -EBADF;
	fd = weft__fd(loop, io->fd);
	if (__builtin_expect(!fd, 0))
		return -ENOMEM;
	if (__builtin_expect(!weft__fd_hold(fd, &io->waiter.timer.note, loop != &weft__outside), 0)) {
		error = weft__hold_closing(loop, fd, io->fd);
		if (error)
			return error;
	}
	io->place = fd;
	return __builtin_expect(io->kind >= WEFT_IO_POLL, 0) ? weft__hold_other(loop, io) : 0;
}

/* It has ended, and its result is written. */
static inline __attribute__((always_inline)) void weft__let_go(struct weft__loop *loop, weft_io_t *io)
{
	struct weft__fd *fd = io->place;
	uint32_t uses;

	if (__builtin_expect(!fd, 0))
		return;
	if (__builtin_expect(io->kind >= WEFT_IO_POLL, 0))
		weft__let_go_of_other(loop, io);
	uses = weft__fd_let_go(fd, loop != &weft__outside);
	if (__builtin_expect(uses & WEFT__CLOSING, 0))
		weft__let_go_of_closed(io, io->fd, uses);
}

/* Does what the operation names still mean the same files as at its beginning? */
static inline bool weft__means_the_same(struct weft__loop *loop, const weft_io_t *io)
{
	const struct weft__fd *fd = io->place;

	if (__builtin_expect(fd && weft__generation(fd) == io->waiter.timer.note, 1))
		return true;
	return !fd || (weft__names_two(io) && weft__pair_means_the_same(loop, io));
}

/* A wait begins. Under the lock of its descriptor, because weft_close ends waits that it finds. False: what the
 * operation names has been closed or replaced, so that nobody would end this wait. */
static inline bool weft__begin_wait(struct weft__loop *loop, weft_io_t *io)
{
	const struct weft__fd *fd = io->place;

	if (__builtin_expect(io->kind >= WEFT_IO_POLL, 0))
		return weft__begin_special_wait(loop, io);
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd, io->deadline);
	return weft__generation(fd) == io->waiter.timer.note;
}

/* A wait has begun: see WEFT__FULL_AGAIN. */
static inline void weft__io_limit_wait(weft_io_t *io, const struct weft__fd *fd)
{
	uint64_t until;

	if (io->way != WEFT__OUT || io->kind == WEFT_IO_POLL ||
	    (fd->nature != WEFT__UNIX && fd->nature != WEFT__LOCAL && fd->nature != WEFT__MESSAGES))
		return;
	until = weft__clock() + WEFT__FULL_AGAIN;
	if (until < io->waiter.timer.at)
		io->waiter.timer.at = until;
}

/* Is the system to be asked even if the descriptor is not ready? For a wrong use, and for what never waits. */
bool weft__io_must_ask(const weft_io_t *io, int nature) WEFT__HIDDEN;
/* A read or write of no bytes: mostly it does not wait. */
bool weft__io_vector_is_empty(const weft_io_t *io) WEFT__HIDDEN;
static inline bool weft__io_moves_nothing(const weft_io_t *io)
{
	return io->kind <= WEFT_IO_WRITE ? !io->length : weft__io_vector_is_empty(io);
}

static inline bool weft__io_has_flags_of_messages(const weft_io_t *io)
{
	return io->kind >= WEFT_IO_RECV && io->kind <= WEFT_IO_SENDMMSG;
}

/* It is not to wait, by a flag: then the answer is -EAGAIN. */
static inline bool weft__io_does_not_wait(const weft_io_t *io)
{
	return weft__io_has_flags_of_messages(io) && io->flags & (MSG_DONTWAIT | MSG_ERRQUEUE);
}

/* If it would wait, there may still be data for other receives. */
static inline bool weft__io_looks_elsewhere(const weft_io_t *io)
{
	return weft__io_has_flags_of_messages(io) && io->flags & (MSG_ERRQUEUE | MSG_PEEK);
}

/*
 * Most operations: bytes of a connection. Inline, because the kernel uses up the processor's stack of return addresses:
 * each function between the system call and the task costs a mispredicted return.
 */
static inline bool weft__io_is_plain_transfer(const weft_io_t *io, int nature)
{
	return nature == WEFT__STREAM && io->kind <= WEFT_IO_WRITE && io->offset == -1 && io->length;
}

static inline int64_t weft__io_transfer(const weft_io_t *io)
{
	ssize_t n;

	do
		n = io->kind == WEFT_IO_WRITE ? send(io->fd, io->data, io->length, MSG_DONTWAIT | MSG_NOSIGNAL)
					      : recv(io->fd, io->data, io->length, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Do it if that does not block: its result, or -EAGAIN. */
int64_t weft__io_attempt(weft_io_t *io, int nature) WEFT__HIDDEN;
/*
 * Called after an attempt has returned -EAGAIN although the other side will send no more. Returns the end of messages
 * if the socket's receiving side is shut, else -EAGAIN. A datagram socket that is shut returns 0 to a blocking receive
 * but EAGAIN to one that does not wait, and poll reports it as readable for ever.
 */
int64_t weft__io_attempt_shut(weft_io_t *io, int nature) WEFT__HIDDEN;
/* Like weft__io_attempt, but blocks, by the calling thread: for itself (weft__outside), or as a helper of a runtime. */
int64_t weft__io_in_thread(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* A splice that would block: is it the output that is not ready? */
bool weft__io_output_is_full(const weft_io_t *io) WEFT__HIDDEN;
/*
 * A read of a file from the page cache, which does not wait. A negative errno: the cache does not have all of it, and
 * the operation is to go on in the usual way. If it has a part, a read at the file's position has taken that: then
 * `flags` is MSG_WAITALL, and `more` the count, which weft__io_settle adds to the result.
 */
int64_t weft__io_read_cached(weft_io_t *io) WEFT__HIDDEN;
/* Has a successful attempt shown that the next one would fail? */
bool weft__io_exhausts(const weft_io_t *io, int nature) WEFT__HIDDEN;
/* The same as events of poll. */
short weft__io_events(const weft_io_t *io) WEFT__HIDDEN;
/* The same for an accept or connect, which no flag tells not to block: for a moment the socket is non-blocking. */
int64_t weft__io_attempt_unblocked(weft_io_t *io, int number, int nature) WEFT__HIDDEN;
/* After a result: an unfinished MSG_WAITALL that an error, a deadline or a cancellation ends returns what has come. So
 * does a read of a file: see weft__io_read_cached. */
void weft__io_settle(weft_io_t *io) WEFT__HIDDEN;
/* Returns the events that there are now, 0, or a negative errno. A signal does not end it. Without an error errno stays
 * as it is. */
int weft__poll_now(int fd, short events) WEFT__HIDDEN;
/* Is an urgent byte next? A receive does not go on beyond that place. */
bool weft__is_at_mark(int fd) WEFT__HIDDEN;
/* Read from a terminal, or write to it, without blocking: through a second descriptor of it, because another process
 * may take a line that poll has seen. -EOPNOTSUPP: it is none, or there is no /proc, or no descriptor left. */
int64_t weft__move_at_terminal(int fd, bool writes, const struct iovec *parts, int count) WEFT__HIDDEN;
/* Does a peek have the same bytes again each time? Not with SO_PEEK_OFF. */
bool weft__peeks_again(int fd, int flags) WEFT__HIDDEN;
/* Will nothing come behind the bytes that are there now? The other side has ended, or an urgent byte is behind them.
 * Asked before the peek, which then has all that has come before that. */
bool weft__peek_is_over(int fd) WEFT__HIDDEN;
/* Has a TCP connection an error to report, and no bytes? A receive reports it once. With MSG_WAITALL the kernel leaves
 * it to the next receive if some bytes have come; Unix sockets do not. */
bool weft__has_only_an_error(int fd) WEFT__HIDDEN;
/* Is it a socket of SOCK_STREAM, of TCP? They ask the system. */
bool weft__is_stream(int fd) WEFT__HIDDEN;
bool weft__is_tcp(int fd) WEFT__HIDDEN;
/* After -EAGAIN: must the operation be retried until it succeeds, because no event tells when it can? The other side is
 * a Unix socket that has no room: a listener for a connection, a receiver for a datagram with an address. Or a part of
 * what a peek waits for is there. */
bool weft__io_has_no_event(const weft_io_t *io) WEFT__HIDDEN;
/* Nanoseconds until the next attempt of such an operation. Pauses double, up to 10 ms. */
uint64_t weft__io_next_pause(unsigned *pauses) WEFT__HIDDEN;
/* Begin the operation again after some nanoseconds. `what` is for weft_dump. */
int weft__io_pause(weft_io_t *io, const char *what, uint64_t time) WEFT__HIDDEN;
/* A pause has ended. True: so has the operation, and its result is written. */
bool weft__io_ends_in_pause(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* A pause has ended: is the operation to begin again? At its deadline it does, for one attempt that does not wait: what
 * came during the pause was there in time. Else its result is written. */
bool weft__io_tries_again(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;

/* Ends of an operation. */
static inline int weft__io_done(weft_io_t *io, int64_t result)
{
	io->result = result;
	return WEFT_IO_DONE;
}

/* A port in digits. NULL: 0. -EINVAL: it is no port; -EAGAIN: it may be a service's name. */
int weft__port_of(const char *service, unsigned *port) WEFT__HIDDEN;
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
