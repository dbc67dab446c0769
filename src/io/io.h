/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files of the I/O layer: the runtime's records of descriptors, attempts at an operation, the back ends.
 *
 *   an operation is      its record is in                   it leaves that state by
 *   new                  its caller's frame                 weft_op_io
 *   in progress          also its descriptor's list,        a result, or the early end of its wait (deadline,
 *                        with its waiter armed              cancellation, weft_close), which withdraws it
 *   done                 its caller's frame alone           -
 * From its beginning to its end it holds the descriptors that it names: see table.c.
 */
#ifndef WEFT_SRC_IO_H
#define WEFT_SRC_IO_H

#include <weft/io.h>

#include "sched/single_thread.h"
#include "sched/sched.h"

struct weft__loop;

/* Kinds of descriptors, by the way to use them without blocking. Only with plain bytes does a short read prove that the
 * descriptor is empty. */
enum weft__nature {
	WEFT__UNKNOWN,	     /* not used yet, except by weft_poll */
	WEFT__STREAM,	     /* TCP: plain bytes, except for an urgent mark, which an event reports */
	WEFT__UNIX,	     /* a Unix stream: plain bytes, except for recvmsg's control messages */
	WEFT__LOCAL,	     /* a Unix socket of datagrams or packets: see must_not_block, uring.c */
	WEFT__MESSAGES,	     /* any other socket */
	WEFT__PIPE,	     /* a non-blocking pipe, of plain bytes */
	WEFT__DEVICE,	     /* any other non-blocking file that can be polled: other pipes, terminals */
	WEFT__BLOCKING_PIPE, /* not a socket, and blocking: used only when it is ready */
	WEFT__FILE,	     /* cannot be polled */
};

static inline bool weft__is_socket(int nature)
{
	return nature >= WEFT__STREAM && nature <= WEFT__MESSAGES;
}

/* weft_io_t.step: the progress of an operation. */
enum {
	WEFT__NEW,
	WEFT__TRIED,	    /* epoll: in its descriptor's list, to be retried when the descriptor is ready */
	WEFT__SUBMITTED,    /* io_uring: submitted, or in the submission queue */
	WEFT__POLLING,	    /* io_uring: the kernel polls until the operation can be tried */
	WEFT__CROWDED,	    /* io_uring: a ring was full; retried after a pause */
	WEFT__PAUSED,	    /* begins again after a pause */
	WEFT__TO_OPEN,	    /* an open would have waited; to be retried after a pause */
	WEFT__OPENING,	    /* waits for the end of that pause */
	WEFT__BLOCKED,	    /* a helper thread is to do it */
	WEFT__BLOCKED_LATE, /* likewise, although its deadline has already passed: it is tried once */
	WEFT__OVER,
};

/* The record is in the frame of each waiting task. With a segmented stack of 2 KiB there is no room for more. */
_Static_assert(sizeof(weft_io_t) <= 184, "an idle connection's task would need a second chunk of stack");

/* Directions; and: the peer will send no more; the peer is gone, or there is an error. Then operations complete
 * immediately. */
enum { WEFT__IN = 1, WEFT__OUT = 2, WEFT__NO_MORE = 4, WEFT__HUNG_UP = 8 };

/*
 * Nanoseconds after which an operation that waits for room in a socket tries again: the kernel reports no event when
 * either side of a full Unix socket ends the direction in which it is full.
 */
enum { WEFT__FULL_AGAIN = 100000000 };

/* weft__fd.uses: the descriptor is closed, but the kernel has not reclaimed its number; the count's unit, for each
 * operation. */
enum { WEFT__CLOSING = 1, WEFT__USER = 2 };

/* weft_io_t.other of an accept by weft/posix.h: takes its flags from the caller unchanged, and fails if there is no
 * free descriptor instead of waiting for a descriptor. */
enum { WEFT__AS_ASKED = -2 };

/* A runtime's record of a descriptor. */
struct weft__fd {
	uint32_t lock;
	uint8_t nature;		 /* atomic: weft__nature */
	uint8_t ready;		 /* atomic, epoll: the directions in which an attempt may succeed */
	bool registered;	 /* epoll */
	bool polled;		 /* epoll: registered for weft_poll alone */
	bool blocks;		 /* epoll: a socket made by foreign code, in blocking mode */
	bool listens;		 /* atomic, epoll: an accept has been made on it */
	bool marked;		 /* atomic, epoll: it has had an urgent mark */
	bool placeholder;	 /* while it is being closed: the number refers to a placeholder */
	bool direct;		 /* atomic: a file that bypasses the page cache */
	bool told;		 /* threads have been notified that it is closed */
	uint32_t uses;		 /* atomic: WEFT__USER for each operation that holds it, and WEFT__CLOSING */
	uint32_t generation;	 /* atomic: of the file; weft_close and dup2 change it, under the lock */
	uint32_t count;		 /* atomic, epoll: the length of the list */
	weft_io_t *first, **end; /* under the lock: operations in progress, the oldest first */
};

struct weft__backend {
	const char *name;
	/* Start, or continue after its wait, an operation. Both return the next thing to do: WEFT_IO_…. */
	int (*begin)(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io);
	int (*go_on)(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io);
	/* A descriptor is about to be closed, or to be removed from the set. Called under its lock. */
	void (*forget)(struct weft__loop *loop, int number, struct weft__fd *fd);
	void (*close)(struct weft__loop *loop);
};

enum { WEFT__BLOCK = 1024, WEFT__BLOCKS = 4096 };

/* A runtime's I/O: made by the runtime's first operation. */
struct weft__loop {
	struct weft__source source; /* first: the scheduler's view of it */
	const struct weft__backend *backend;
	struct weft__rt *rt;
	bool nonblocking;		  /* descriptors made here are non-blocking: see mode, net.c */
	struct weft__fd *_Atomic *blocks; /* WEFT__BLOCKS pointers, each to WEFT__BLOCK records */
	struct weft__loop *next;	  /* in the list of all loops of the process */
	int spare;			  /* a descriptor to close when the process has none left */
	uint32_t spare_lock;
	uint32_t pairs_lock;
	weft_io_t *pairs; /* under pairs_lock: operations in progress that wait for several descriptors */
	/* epoll.c */
	int set, wake;
	bool coarse; /* atomic: epoll_pwait2 is not available */
	struct weft__worker *_Atomic sleeper;
	_Atomic uint32_t registrations; /* orders the initialization of a record before the events of its descriptor */
	/* uring.c */
	int tells; /* an eventfd: the ring of a held worker has work for that worker */
};

/* ---- table.c ----------------------------------------------------------------------------------------------------- */

/* Called for a loop that was just made, or is about to be freed. */
void weft__fds_add(struct weft__loop *loop) WEFT__HIDDEN;
void weft__fds_remove(struct weft__loop *loop) WEFT__HIDDEN;

/* Close a real descriptor, by a function that returns 0 or a negative errno. */
int weft__fds_close(int number, int (*close)(int number)) WEFT__HIDDEN;
/* Does any operation hold it, or does any runtime have a record of it? Does not lock. */
bool weft__fds_knows(int number) WEFT__HIDDEN;
void weft__fds_end_waits(int number) WEFT__HIDDEN;

/*
 * A socket made by foreign code may be in blocking mode, and foreign code may use it in that mode. A flag makes most
 * operations non-blocking; for the rest the mode is changed for a moment, by one thread of the process at a time.
 * Returns the flags.
 */
int weft__unblock(int number) WEFT__HIDDEN;
void weft__block_again(int number, int flags) WEFT__HIDDEN;
/* Like F_GETFL, but ignores these moments. */
int weft__flags(int number) WEFT__HIDDEN;

/* Ends waits for the number's present file, then calls `replace`, which makes the number refer to another file. */
int weft__fds_replace(int number, int (*replace)(void *argument), void *argument) WEFT__HIDDEN;

/* Parts of weft__hold and weft__let_go, below, for kinds that may wait for several descriptors. After a failure the
 * operation holds nothing. */
int weft__hold_closing(struct weft__loop *loop, struct weft__fd *fd, int number) WEFT__HIDDEN;
int weft__hold_other(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
void weft__let_go_of_other(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* `uses`: the count before the release. `io` NULL: no operation. */
void weft__let_go_of_closed(weft_io_t *io, int number, uint32_t uses) WEFT__HIDDEN;
/* Parts of weft__begin_wait and weft__means_the_same, below. */
bool weft__begin_special_wait(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
bool weft__pair_means_the_same(struct weft__loop *loop, const weft_io_t *io) WEFT__HIDDEN;

/* A use of a descriptor in several steps, by a task of the calling worker: see posix.c. */
struct weft__use {
	struct weft__fd *fd;
	int number;
	uint32_t generation;
	size_t more; /* the number of records after this one; a wait waits for all of them */
};
int weft__use_begin(struct weft__use *use, int number) WEFT__HIDDEN;
void weft__use_end(struct weft__use *use) WEFT__HIDDEN;
/* Do the record and its `more` successors still refer to the same files? */
bool weft__use_is_good(const struct weft__use *use) WEFT__HIDDEN;
/* True: the number still refers to the same file, and does so until weft__use_unlock. */
bool weft__use_lock(const struct weft__use *use) WEFT__HIDDEN;
void weft__use_unlock(const struct weft__use *use) WEFT__HIDDEN;

/* For operations of threads that are not tasks: their table, and a descriptor that is readable while a descriptor that
 * these threads use is being closed; negative: it could not be made. */
extern struct weft__loop weft__outside WEFT__HIDDEN;
int weft__outside_ends(void) WEFT__HIDDEN;
/* posix.c: registers this copy of the runtime with libweft-posix.so. Called when src/io is loaded, so that each program
 * that has src/io also has posix.c. */
void weft__posix_meet_others(void) WEFT__HIDDEN;

/* The caller's loop; NULL: the caller has none, none could be made, or the world is simulated. */
struct weft__loop *weft__loop(void) WEFT__HIDDEN;
/* Like weft__loop, but returns a negative errno if the loop could not be made. */
int weft__loop_find(struct weft__loop **loop) WEFT__HIDDEN;

/* The block of a descriptor's record, made at the block's first use. NULL: no memory. */
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
/* An integer option of SOL_SOCKET; -1: not a socket, or no such option. */
int weft__socket_option(int number, int name) WEFT__HIDDEN;
/* A new descriptor of this nature was made: resets the record, which an earlier descriptor with this number may have
 * used. */
void weft__fd_made(int number, enum weft__nature nature) WEFT__HIDDEN;
int weft__fd_learn(struct weft__fd *fd, int number) WEFT__HIDDEN;

/* The nature of the descriptor; asks the system at the first use. Negative errno: -EBADF. */
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

/* The format that getdents64 writes. */
struct weft__direntry {
	uint64_t inode;
	int64_t next;
	uint16_t size; /* the entry's, a multiple of 8 */
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
/* A back end has made the first attempt, with O_NONBLOCK; `result` is the attempt's result. Does not block. */
int64_t weft__open_attempted(weft_io_t *io, int64_t result) WEFT__HIDDEN;
/* Closes `other`. */
void weft__open_abandon(weft_io_t *io) WEFT__HIDDEN;
/* When the next pause ends, a time of weft_now(), or the deadline. */
uint64_t weft__open_pause(weft_io_t *io) WEFT__HIDDEN;
/* Outside of a loop. Returns WEFT_IO_DONE, or WEFT_IO_BLOCKS. */
int weft__io_here(weft_io_t *io) WEFT__HIDDEN;
/* Properties of each kind. */
extern const struct weft__kind {
	const char *what; /* for weft_dump: "read" */
	uint8_t way;	  /* directions that an operation waits for; 0: it does not wait, it blocks */
	bool names;	  /* it takes a path, and `fd` is a directory, or AT_FDCWD */
} weft__kinds[WEFT_IO_KINDS] WEFT__HIDDEN;

/* An unknown kind has the properties of kind 0. */
static inline const struct weft__kind *weft__kind(const weft_io_t *io)
{
	return &weft__kinds[io->kind < WEFT_IO_KINDS ? io->kind : 0];
}

uint8_t weft__polled_way(int events) WEFT__HIDDEN;

/* The directions that this operation waits for. */
static inline uint8_t weft__io_way(const weft_io_t *io)
{
	return io->kind == WEFT_IO_POLL ? weft__polled_way(io->flags) : weft__kind(io)->way;
}

static inline const char *weft__io_what(const weft_io_t *io)
{
	return weft__kind(io)->what;
}

/* ---- holding descriptors ----------------------------------------------------------------------------------------- */

static inline bool weft__is_closing(const struct weft__fd *fd)
{
	return __atomic_load_n(&fd->uses, __ATOMIC_RELAXED) & WEFT__CLOSING;
}

static inline uint32_t weft__generation(const struct weft__fd *fd)
{
	return __atomic_load_n(&fd->generation, __ATOMIC_ACQUIRE);
}

/* Changes the count of operations, and returns the count before. Atomic for threads that are not workers, and if there
 * are several workers: see sched/single_thread.h. */
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

/* False: the descriptor has been closed. The generation is that of the file that the number refers to now, or an
 * earlier generation. */
static inline __attribute__((always_inline)) bool weft__fd_hold(struct weft__fd *fd, uint32_t *generation, bool worker)
{
	*generation = weft__generation(fd);
	return !(weft__fd_count(fd, WEFT__USER, worker) & WEFT__CLOSING);
}

/* Returns the count before the change. */
static inline __attribute__((always_inline)) uint32_t weft__fd_let_go(struct weft__fd *fd, bool worker)
{
	return weft__fd_count(fd, (uint32_t)-WEFT__USER, worker);
}

/* Can it wait for either of two descriptors? A helper thread or the ring does other operations that name two. */
static inline bool weft__names_two(const weft_io_t *io)
{
	return __builtin_expect(io->kind >= WEFT_IO_SENDFILE, 0) && io->kind <= WEFT_IO_SPLICE;
}

/* The operation begins, and holds the descriptors that it names. 0; -EBADF: closed, or not a descriptor; -ENOMEM. */
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

/* The operation has ended, and its result is written. */
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

/* Do the operation's descriptors still refer to the same files as when it began? */
static inline bool weft__means_the_same(struct weft__loop *loop, const weft_io_t *io)
{
	const struct weft__fd *fd = io->place;

	if (__builtin_expect(fd && weft__generation(fd) == io->waiter.timer.note, 1))
		return true;
	return !fd || (weft__names_two(io) && weft__pair_means_the_same(loop, io));
}

/* A wait begins. Called under the lock of its descriptor, because weft_close ends the waits that it finds. False: a
 * descriptor of the operation has been closed or replaced, so nothing would end this wait. */
static inline bool weft__begin_wait(struct weft__loop *loop, weft_io_t *io)
{
	const struct weft__fd *fd = io->place;

	if (__builtin_expect(io->kind >= WEFT_IO_POLL, 0))
		return weft__begin_special_wait(loop, io);
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd, io->deadline);
	return weft__generation(fd) == io->waiter.timer.note;
}

/* A wait has begun. Limits its time: see WEFT__FULL_AGAIN. */
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

/* Must the system be asked even if the descriptor is not ready? True for wrong uses, and for operations that never
 * wait. */
bool weft__io_must_ask(const weft_io_t *io, int nature) WEFT__HIDDEN;
/* A read or write of no bytes: it usually does not wait. */
bool weft__io_vector_is_empty(const weft_io_t *io) WEFT__HIDDEN;
static inline bool weft__io_moves_nothing(const weft_io_t *io)
{
	return io->kind <= WEFT_IO_WRITE ? !io->length : weft__io_vector_is_empty(io);
}

static inline bool weft__io_has_flags_of_messages(const weft_io_t *io)
{
	return io->kind >= WEFT_IO_RECV && io->kind <= WEFT_IO_SENDMMSG;
}

/* Does a flag forbid the operation to wait? Then it returns -EAGAIN. */
static inline bool weft__io_does_not_wait(const weft_io_t *io)
{
	return weft__io_has_flags_of_messages(io) && io->flags & (MSG_DONTWAIT | MSG_ERRQUEUE);
}

/* If the operation would wait, there may still be data for other receives. */
static inline bool weft__io_looks_elsewhere(const weft_io_t *io)
{
	return weft__io_has_flags_of_messages(io) && io->flags & (MSG_ERRQUEUE | MSG_PEEK);
}

/*
 * The most frequent operations: bytes of a connection. Inline, because system calls use up the processor's stack of
 * return addresses: each function between the system call and the task costs a mispredicted return.
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

/* Does the operation if that does not block. Returns its result, or -EAGAIN. */
int64_t weft__io_attempt(weft_io_t *io, int nature) WEFT__HIDDEN;
/*
 * Called after an attempt has returned -EAGAIN although the peer will send no more. Returns end of file if the socket's
 * receiving side is shut, else -EAGAIN. A datagram socket that is shut returns 0 to a blocking receive but EAGAIN to a
 * non-blocking receive, and poll reports it as readable for ever.
 */
int64_t weft__io_attempt_shut(weft_io_t *io, int nature) WEFT__HIDDEN;
/* Like weft__io_attempt, but blocks the calling thread, which acts for itself (weft__outside) or as a helper of a
 * runtime. */
int64_t weft__io_in_thread(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* For a splice that would block: is it the output that is not ready? */
bool weft__io_output_is_full(const weft_io_t *io) WEFT__HIDDEN;
/*
 * Reads a file from the page cache, without waiting. A negative errno: part of the data is not in the cache, and the
 * operation continues in the usual way. If the cache has a part, a read at the file's position has consumed that part:
 * then `flags` is MSG_WAITALL, and `more` the count, which weft__io_settle adds to the result.
 */
int64_t weft__io_read_cached(weft_io_t *io) WEFT__HIDDEN;
/* Has a successful attempt shown that the next one would fail? */
bool weft__io_exhausts(const weft_io_t *io, int nature) WEFT__HIDDEN;
/* The operation's directions as events of poll. */
short weft__io_events(const weft_io_t *io) WEFT__HIDDEN;
/* Like weft__io_attempt, for an accept or connect, which have no flag against blocking: makes the socket non-blocking
 * for a moment. */
int64_t weft__io_attempt_unblocked(weft_io_t *io, int number, int nature) WEFT__HIDDEN;
/* Called after a result. If an error, a deadline or a cancellation ends an unfinished MSG_WAITALL, the result becomes
 * the bytes received so far. A read of a file may be unfinished, too: see weft__io_read_cached. */
void weft__io_settle(weft_io_t *io) WEFT__HIDDEN;
/* Returns the present events, 0, or a negative errno. A signal does not end it. Without an error errno is unchanged. */
int weft__poll_now(int fd, short events) WEFT__HIDDEN;
/* Is an urgent byte next? A receive stops at that position. */
bool weft__is_at_mark(int fd) WEFT__HIDDEN;
/* Reads from a terminal, or writes to it, without blocking: through a second descriptor of the terminal, because
 * another process may read a line that poll has seen. -EOPNOTSUPP: not a terminal, no /proc, or no free descriptor. */
int64_t weft__move_at_terminal(int fd, bool writes, const struct iovec *parts, int count) WEFT__HIDDEN;
/* Does a repeated peek return the same bytes? With SO_PEEK_OFF it does not. */
bool weft__peeks_again(int fd, int flags) WEFT__HIDDEN;
/* Will no bytes follow the present bytes, because the peer has ended or an urgent byte follows them? Called before the
 * peek, which then returns all bytes that came before the end. */
bool weft__peek_is_over(int fd) WEFT__HIDDEN;
/* Has a TCP connection an error to report, and no bytes? One receive reports the error. With MSG_WAITALL the kernel
 * leaves the error to the next receive if some bytes have come; Unix sockets do not. */
bool weft__has_only_an_error(int fd) WEFT__HIDDEN;
/* Is it a socket of SOCK_STREAM, of TCP? Both ask the system. */
bool weft__is_stream(int fd) WEFT__HIDDEN;
bool weft__is_tcp(int fd) WEFT__HIDDEN;
/* After -EAGAIN: must the operation be retried until it succeeds, because no event reports that it can? True if the
 * peer is a Unix socket without room (a listener for a connection, a receiver for a datagram with an address), or if a
 * part of the data that a peek waits for is there. */
bool weft__io_has_no_event(const weft_io_t *io) WEFT__HIDDEN;
/* Nanoseconds until the next attempt of an operation without an event. Pauses double, up to 10 ms. */
uint64_t weft__io_next_pause(unsigned *pauses) WEFT__HIDDEN;
/* Restarts the operation after some nanoseconds. `what` is for weft_dump. */
int weft__io_pause(weft_io_t *io, const char *what, uint64_t time) WEFT__HIDDEN;
/* A pause has ended. True: the operation has ended, too, and its result is written. */
bool weft__io_ends_in_pause(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;
/* A pause has ended: does the operation begin again? At its deadline it does, for one attempt that does not wait,
 * because data that came during the pause were in time. If it does not, its result is written. */
bool weft__io_tries_again(struct weft__loop *loop, weft_io_t *io) WEFT__HIDDEN;

/* Completes an operation. */
static inline int weft__io_done(weft_io_t *io, int64_t result)
{
	io->result = result;
	return WEFT_IO_DONE;
}

/* A port in digits. NULL: 0. -EINVAL: not a port; -EAGAIN: perhaps a service's name. */
int weft__port_of(const char *service, unsigned *port) WEFT__HIDDEN;
/* An address in digits; NULL: any. */
bool weft__number_address(const char *name, unsigned port, weft_address_t *address) WEFT__HIDDEN;
/* The result of a look-up of addresses in digits, without a query; -EAGAIN: the name must be looked up. */
int64_t weft__resolve_digits(const struct weft__resolve *what) WEFT__HIDDEN;

/* Common to both back ends: an accept that failed for lack of a descriptor pauses; an accepted descriptor gets its
 * record. */
int weft__io_accepted(struct weft__loop *loop, weft_io_t *io, int nature) WEFT__HIDDEN;

/* 0, or a negative errno; after an error nothing is left to free. */
int weft__epoll_open(struct weft__loop *loop) WEFT__HIDDEN;
/* Likewise; `why` is written if io_uring cannot be used. The errno may be 0 if `why` says all. */
int weft__uring_open(struct weft__loop *loop, const char **why) WEFT__HIDDEN;

#endif
