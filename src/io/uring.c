/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * I/O by io_uring. A worker has a ring of its own; a task's operation goes into the ring of the worker that runs the
 * task at that time, and completes there. The worker submits when it parks or looks, many operations by one system
 * call, which also asks for completions.
 *
 * A ring belongs to its thread (IORING_SETUP_SINGLE_ISSUER, DEFER_TASKRUN: without them an echo server does two
 * thirds of the work per second of CPU time), and only this thread enters the kernel for it. Other workers may, under
 * a lock,
 *   queue an entry, to cancel an operation whose task has moved to another worker, and wake the owner;
 *   reap completions, if the owner is held inside a long task. The kernel posts completions only to the owner: a signal
 *   (SIGURG, ignored by default; Go uses it, too) makes the owner enter the kernel for a moment. An eventfd reports
 *   that completions wait; it is disabled while the owner is not held. The worker that watches polls it in its own
 *   ring. A worker that has done no I/O has no ring, and looks now and then: a ring that it opened by itself would
 *   get the number of a descriptor that the program has just closed.
 * Rejected: rings that every thread may enter, for their price; moving the long task away, because that needs one more
 * thread for each long task, and its frames may hold objects that belong to a thread.
 *
 * An operation that is to end early is cancelled by a request of its own. The operation still completes in the usual
 * way, as cancelled or as done, and only then the call ends, because until then the kernel may write into the buffer.
 *
 * Operations that complete immediately are queued before operations that may block: if one task writes data that a
 * second task reads, the read finds the data, and the kernel need not wait for it. A round trip over pipes takes 0.96
 * of the raw ring's, instead of 1.24.
 *
 * A cancelled operation that is still in the submission queue is removed there, without the kernel. Writes, sends and
 * reads of cached files complete during submission: a worker that has queued such an operation looks before it parks,
 * because parking takes more atomic operations than looking.
 *
 * Measured and rejected (an echo server of 64 and of 1000 connections, CPU time, a raw loop with and without it):
 *   - a write by a system call first: no gain for sockets; a round trip over pipes 1.45 times the raw ring's, instead
 *     of 1.33, because the kernel runs the reader's completion apart from the next submission
 *   - multishot receives into buffers that the kernel picks: 0.97; but they consume bytes that no task has asked for,
 *     and other readers of the descriptor (another library, a child process) lose these bytes
 *   - multishot polls, and receives by system calls: 1.02 to 1.04; a cancel would need no kernel, as with epoll
 *   - IORING_RECVSEND_POLL_FIRST: 0.98 to 1.01, within the noise
 *   - multishot accept: 0.7 (one client at a time) to 0.9 (1000) of a connection with one request; but it accepts
 *     connections that no task has asked for, and a busy server must leave them to other acceptors
 *   - IORING_OP_SEND_ZC: 5 times a send of 4 KiB, 1.0 of 64 KiB, 0.9 of 1 MiB over the loopback, which copies the data
 *     anyway; and a task would wait for a round trip of the network before it may reuse its buffer
 *     (the last two: `./weft lab --only io/accept,io/storm,io/send64k,io/send1m`)
 *
 * liburing is used if dlopen finds it when the runtime does its first operation, so that programs need not be linked
 * with it; its header is needed only to compile this file. Without either, or if the kernel refuses, epoll is used.
 */
#define _GNU_SOURCE
#include "internal/valgrind.h"
#include "io/io.h"

#if !defined(WEFT_WITHOUT_LIBURING) && __has_include(<liburing.h>)
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
#ifdef WEFT_TINY
	SUBMISSIONS = 2,
	COMPLETIONS = 2,
#else
	SUBMISSIONS = 256,
	COMPLETIONS = 4096,
#endif
	SUBMIT_AT = 64,	      /* submit when so many entries are queued */
	RETRY_AFTER = 100000, /* nanoseconds, if there is no room in a ring */
	FINISHED = 0x80,      /* in weft_io_t.way: the kernel has completed it */
	UNLISTED = 0x40,      /* in weft_io_t.way: it is not in its descriptor's list */
};

/* user_data of entries that are not operations. */
enum { IGNORED, WOKEN, TOLD };

struct ring {
	struct io_uring ring;
	uint32_t lock;
	pid_t thread; /* its owner */
	int wake;     /* an eventfd, polled by the ring */
	bool wakes, alone;
	int tells;		/* loop->tells */
	bool loud;		/* `tells` is written when the owner has work */
	bool polls;		/* polls `tells` */
	bool quick;		/* atomic: some queued entry completes during submission */
	struct ring *attendant; /* atomic: ring of the worker that has signalled the owner; woken with the outcome */
	unsigned waiting; /* number of the first queued entry that other entries may overtake: see entry_in_front */
	uint8_t silent_cancel; /* IOSQE_CQE_SKIP_SUCCESS, if this kernel has it */
};

static struct {
	__typeof__(io_uring_queue_init_params) *init;
	__typeof__(io_uring_queue_exit) *exit;
	__typeof__(io_uring_enter2) *enter;
	__typeof__(io_uring_register_ring_fd) *register_ring;
	__typeof__(io_uring_register_eventfd) *register_eventfd;
} lib;

static __thread __attribute__((tls_model("initial-exec"))) struct ring *mine;

static bool load(void)
{
	void *library = lib.init ? NULL : dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);

	if (library) {
		lib.exit = (__typeof__(lib.exit))dlsym(library, "io_uring_queue_exit");
		lib.enter = (__typeof__(lib.enter))dlsym(library, "io_uring_enter2");
		lib.register_ring = (__typeof__(lib.register_ring))dlsym(library, "io_uring_register_ring_fd");
		lib.register_eventfd = (__typeof__(lib.register_eventfd))dlsym(library, "io_uring_register_eventfd");
		if (lib.exit && lib.enter && lib.register_ring && lib.register_eventfd)
			lib.init = (__typeof__(lib.init))dlsym(library, "io_uring_queue_init_params");
	}
	return lib.init;
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static bool try_lock(struct ring *r)
{
	return !__atomic_exchange_n(&r->lock, 1, __ATOMIC_ACQUIRE);
}

/* By a worker. No other thread touches the ring of a runtime's only worker: helpers do no operations. */
static inline void lock_own(struct ring *r)
{
	if (!r->alone)
		weft__spin_lock(&r->lock);
}

static inline void unlock_own(struct ring *r)
{
	if (!r->alone)
		weft__spin_unlock(&r->lock);
}

/* By a task, in `begin` or `go_on`, which have touched the stack once for all the locks that they take. */
static inline void lock_ring(struct ring *r)
{
	lock_own(r);
	weft__seen_acquire(&r->lock);
}

static inline void unlock_ring(struct ring *r)
{
	weft__seen_release(&r->lock);
	unlock_own(r);
}

static inline void lock_fd(struct weft__fd *fd)
{
	weft__spin_lock(&fd->lock);
	weft__seen_acquire(&fd->lock);
}

/* Under the lock. Shows the queued entries to the kernel. Returns how many it has not consumed. */
static unsigned publish(struct ring *r)
{
	struct io_uring_sq *sq = &r->ring.sq;
	const unsigned fresh __attribute__((unused)) = sq->sqe_tail - sq->sqe_head;

	sq->sqe_head = r->waiting = sq->sqe_tail;
	__atomic_store_n(&r->quick, false, __ATOMIC_RELAXED);
	io_uring_smp_store_release(sq->ktail, sq->sqe_tail);
	return WEFT_CANARY_OR(ring_forgets_what_was_not_taken, fresh,
			      sq->sqe_tail - __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE));
}

/* By its owner only. */
static void enter(struct ring *r, unsigned submit, unsigned wait, struct io_uring_getevents_arg *arg)
{
	unsigned flags = IORING_ENTER_GETEVENTS | (arg ? IORING_ENTER_EXT_ARG : 0);

	if (r->ring.enter_ring_fd != r->ring.ring_fd)
		flags |= IORING_ENTER_REGISTERED_RING;
	(void)lib.enter((unsigned)r->ring.enter_ring_fd, submit, wait, flags, (void *)arg,
			arg ? sizeof *arg : _NSIG / 8);
}

static bool has_work(const struct ring *r)
{
	return __atomic_load_n(r->ring.sq.kflags, __ATOMIC_RELAXED) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static void submit(struct ring *r)
{
	unsigned count = publish(r);

	if (count || has_work(r))
		enter(r, count, 0, NULL);
}

/*
 * Like io_uring_get_sqe, for rings without IORING_SETUP_SQPOLL and IORING_SETUP_SQE128. The entry is all zeros: since
 * liburing 2.6 the functions that prepare an entry leave the members that their operation does not use as they are.
 */
static inline struct io_uring_sqe *free_entry(struct ring *r)
{
	struct io_uring_sq *sq = &r->ring.sq;
	struct io_uring_sqe *sqe = &sq->sqes[sq->sqe_tail & sq->ring_mask];

	if (__builtin_expect(sq->sqe_tail - __atomic_load_n(sq->khead, __ATOMIC_RELAXED) >= sq->ring_entries, 0))
		return NULL;
	sq->sqe_tail++;
	memset(sqe, 0, sizeof *sqe);
	return sqe;
}

/* An entry of the submission queue; NULL: the queue is full, and only its owner can submit. */
static inline struct io_uring_sqe *entry(struct ring *r)
{
	struct io_uring_sqe *sqe = free_entry(r);

	if (__builtin_expect(!sqe && r == mine, 0)) {
		submit(r);
		sqe = free_entry(r);
	}
	return sqe;
}

static void wake_ring(struct ring *r)
{
	static const uint64_t one = 1;
	ssize_t written;

	weft__seen_acquire(r);
	do
		written = syscall(SYS_write, r->wake, &one, sizeof one); /* never posix.c's */
	while (written < 0 && errno == EINTR);
}

/* The poll of `tells` has ended. After a success the next `watch` polls again; after a failure (`told` is false) the
 * ring never polls again. */
static void hear(struct ring *r, bool told)
{
	uint64_t count;
	ssize_t got;

	r->polls = !told;
	do
		got = syscall(SYS_read, r->tells, &count, sizeof count); /* never posix.c's */
	while (got < 0 && errno == EINTR);
}

static void completed(struct ring *r, const struct io_uring_cqe *cqe)
{
	weft_io_t *io = (weft_io_t *)(uintptr_t)cqe->user_data;

	if (cqe->user_data == IGNORED)
		return;
	if (cqe->user_data <= TOLD) {
		if (cqe->user_data == WOKEN)
			r->wakes = cqe->flags & IORING_CQE_F_MORE;
		else
			hear(r, cqe->res >= 0);
		/* The completion was for the owner, which may be about to sleep, and must not miss it. */
		if (r != mine)
			wake_ring(r);
		return;
	}
	io->result = cqe->res;
	io->way |= FINISHED;
	if (weft__waiter_claim_here(&io->waiter, 0))
		weft_waiter_complete(&io->waiter);
}

/* Under the lock. True: there were completions. */
static bool reap(struct ring *r)
{
	struct io_uring_cq *cq = &r->ring.cq;
	unsigned first = *cq->khead, head = first;

	/* Acquire and release: pair with the kernel's store of the tail and load of the head. */
	while (head != __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE))
		completed(r, &cq->cqes[head++ & cq->ring_mask]);
	if (head == first)
		return false;
	__atomic_store_n(cq->khead, head, __ATOMIC_RELEASE);
	return true;
}

/* Under the lock, before the owner sleeps in the ring. */
static void arm_wake(struct ring *r)
{
	struct io_uring_sqe *sqe = r->wakes ? NULL : entry(r);

	if (!sqe)
		return;
	io_uring_prep_poll_multishot(sqe, r->wake, POLLIN);
	sqe->user_data = WOKEN;
	r->wakes = true;
}

/* 0 or a negative errno. */
static int make_queues(struct ring *r, unsigned flags)
{
	struct io_uring_params p = {.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
				    .cq_entries = COMPLETIONS};
	const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL;
	int error = lib.init(SUBMISSIONS, &r->ring, &p);

	if (error)
		return error;
	r->ring.ring_fd = r->ring.enter_ring_fd = weft__own_fd(r->ring.ring_fd);
	if (p.features & IORING_FEAT_CQE_SKIP)
		r->silent_cancel = IOSQE_CQE_SKIP_SUCCESS;
	error = r->ring.ring_fd < 0 ? -EMFILE : (p.features & needed) == needed ? 0 : -EOPNOTSUPP;
	/* A seccomp filter may allow rings to be made, but not to be used. */
	if (!error && !WEFT_CANARY(rings_are_not_tried))
		error = lib.enter((unsigned)r->ring.ring_fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, _NSIG / 8);
	if (error == -EPERM || error == -ENOSYS || error == -EOPNOTSUPP || error == -EMFILE) {
		lib.exit(&r->ring);
		return error;
	}
	return 0;
}

/* Uses the newest features that this kernel has. */
static int make_ring(struct ring *r, bool one_thread)
{
	const unsigned newest = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
	int error;

	if (one_thread && make_queues(r, newest) == 0) {
		(void)lib.register_ring(&r->ring);
		return 0;
	}
	error = make_queues(r, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
	return error ? make_queues(r, 0) : 0;
}

static void free_ring(struct ring *r)
{
	if (r->wake >= 0)
		close(r->wake);
	free(r);
}

/* Opens the worker's ring. 0 or a negative errno. */
static int open_ring(struct weft__loop *loop, struct weft__worker *w)
{
	struct ring *r = calloc(1, sizeof *r);
	int error;

	if (!r)
		return -ENOMEM;
	r->thread = gettid();
	r->alone = loop->rt->workers == 1;
	r->wake = weft__own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	error = r->wake < 0 ? -errno : make_ring(r, !loop->rt->embedded);
	if (error) {
		free_ring(r);
		return error;
	}
	r->tells = loop->tells;
	if (r->tells >= 0 && !io_uring_cq_eventfd_toggle(&r->ring, false))
		(void)lib.register_eventfd(&r->ring, r->tells);
	mine = r;
	/* Release: other workers read it in ring_of. */
	weft__seen_release(r);
	__atomic_store_n(&w->io_ring, r, __ATOMIC_RELEASE);
	return 0;
}

static struct ring *ring_of(const struct weft__worker *w)
{
	return __atomic_load_n(&w->io_ring, __ATOMIC_ACQUIRE);
}

static void close_rings(struct weft__loop *loop)
{
	struct ring *r;
	unsigned i;

	for (i = 0; i < loop->rt->workers; i++) {
		r = ring_of(&loop->rt->worker[i]);
		if (!r)
			continue;
		lib.exit(&r->ring);
		free_ring(r);
	}
	if (loop->tells >= 0)
		close(loop->tells);
}

/* The worker's ring. If it cannot have a ring, another worker's: the owner is woken to submit the entries. */
static __attribute__((noinline)) struct ring *find_ring(struct weft__loop *loop, struct weft__worker *w)
{
	struct ring *r = open_ring(loop, w) ? NULL : ring_of(w);
	unsigned i;

	for (i = 0; !r; i++)
		r = ring_of(&loop->rt->worker[i]);
	return r;
}

static inline struct ring *ring_for(struct weft__loop *loop, struct weft__worker *w)
{
	struct ring *r = ring_of(w);

	if (__builtin_expect(!r, 0))
		r = find_ring(loop, w);
	/* A runtime without threads: the thread that steps it owns the ring. */
	if (__builtin_expect(loop->rt->embedded, 0))
		mine = r;
	return r;
}

/* ---- the scheduler's side ---------------------------------------------------------------------------------------- */

/* By the owner, under the lock, when it attends to its ring itself. */
static void be_silent(struct ring *r)
{
	if (__builtin_expect(r->loud, 0)) {
		r->loud = false;
		(void)io_uring_cq_eventfd_toggle(&r->ring, false);
	}
}

static void take_in(struct weft__source *source, struct weft__worker *w)
{
	struct ring *r = ring_of(w);

	(void)source;
	if (!r)
		return;
	if (w->rt->embedded)
		mine = r;
	lock_own(r);
	be_silent(r);
	submit(r);
	(void)reap(r);
	unlock_own(r);
}

/* Reaps completions in the ring of a held worker, and makes that worker ask for more. True: there were completions. */
static bool attend_to(struct ring *r, struct ring *attendant, bool loud)
{
	bool some, wanted;

	if (!try_lock(r))
		return false;
	if (loud && !r->loud) {
		r->loud = true;
		if (!WEFT_CANARY(nobody_looks_or_tells))
			(void)io_uring_cq_eventfd_toggle(&r->ring, true);
		/* From here on a completion writes to `tells`; earlier completions are seen below. */
		atomic_thread_fence(memory_order_seq_cst);
	}
	some = reap(r);
	/* Includes entries that were published, but that the kernel did not consume. */
	wanted = has_work(r) || r->ring.sq.sqe_tail != __atomic_load_n(r->ring.sq.khead, __ATOMIC_RELAXED);
	weft__spin_unlock(&r->lock);
	if (wanted) {
		/* Release: pairs with on_signal. */
		__atomic_store_n(&r->attendant, attendant, __ATOMIC_RELEASE);
		/* tgkill, because the thread may have ended, with its runtime: then the call fails. */
		(void)tgkill(getpid(), r->thread, SIGURG);
	}
	return some;
}

static void attend(struct weft__source *source, struct weft__worker *w, struct weft__worker *held)
{
	struct ring *r = ring_of(held);

	(void)source;
	/* A sleeping worker attends to its own ring. */
	if (r && !atomic_load_explicit(&held->in_source, memory_order_relaxed))
		(void)attend_to(r, ring_of(w), false);
}

static bool watch(struct weft__source *source, struct weft__worker *w, struct weft__worker *held)
{
	struct ring *r = ring_of(w), *its = ring_of(held);
	struct io_uring_sqe *sqe;

	(void)source;
	if (r->tells < 0 || !its || atomic_load_explicit(&held->in_source, memory_order_relaxed))
		return true;
	lock_own(r);
	sqe = r->polls ? NULL : entry(r);
	if (sqe) {
		io_uring_prep_poll_add(sqe, r->tells, POLLIN);
		sqe->user_data = TOLD;
		r->polls = true;
	}
	unlock_own(r);
	return !attend_to(its, r, true);
}

static bool enter_sleep(struct weft__source *source, struct weft__worker *w)
{
	struct ring *r = ring_of(w);

	(void)source;
	if (!r)
		return false;
	lock_own(r);
	arm_wake(r);
	unlock_own(r);
	return true;
}

static void sleep_in(struct weft__source *source, struct weft__worker *w, uint64_t until)
{
	struct ring *r = ring_of(w);
	struct __kernel_timespec time = {0, 0};
	struct io_uring_getevents_arg arg = {.sigmask_sz = _NSIG / 8, .ts = (uint64_t)(uintptr_t)&time};
	uint64_t now;
	unsigned count;
	bool some;

	(void)source;
	lock_own(r);
	be_silent(r);
	some = reap(r);
	count = some ? 0 : publish(r);
	unlock_own(r);
	if (some)
		return;
	if (until != WEFT_NEVER) {
		now = weft__clock();
		time.tv_sec = until > now ? (int64_t)((until - now) / WEFT__NANOSECONDS) : 0;
		time.tv_nsec = until > now ? (long long)((until - now) % WEFT__NANOSECONDS) : 0;
	}
	enter(r, count, 1, until != WEFT_NEVER ? &arg : NULL);
	lock_own(r);
	(void)reap(r);
	unlock_own(r);
}

static void leave_sleep(struct weft__source *source, struct weft__worker *w)
{
	(void)source;
	(void)w;
}

static void wake(struct weft__source *source, struct weft__worker *w)
{
	(void)source;
	wake_ring(ring_of(w));
}

static bool unattended(struct weft__source *source)
{
	(void)source;
	return false;
}

/* Only the owner calls this. */
static bool expects(struct weft__source *source, struct weft__worker *w)
{
	struct ring *r = ring_of(w);

	(void)source;
	return r && __atomic_load_n(&r->quick, __ATOMIC_RELAXED);
}

/* Runs in a thread that is held inside a long task: submits, and asks for completions, in its place. The worker that
 * sent the signal reaps them. It is woken, because it may be asleep by now, and would look only a millisecond later. */
static struct sigaction before;

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct ring *r = mine, *attendant;
	int saved = errno;
	bool some;

	if (r && try_lock(r)) {
		submit(r);
		some = io_uring_cq_ready(&r->ring);
		weft__spin_unlock(&r->lock);
		attendant = __atomic_exchange_n(&r->attendant, NULL, __ATOMIC_ACQUIRE);
		if (attendant && some)
			wake_ring(attendant);
	}
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(number);
	errno = saved;
}

static void handle_signal(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct sigaction now;

	if (!sigaction(SIGURG, NULL, &now) && (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_signal)) {
		before = now;
		(void)sigaction(SIGURG, &action, NULL);
	}
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/*
 * Operations on Unix sockets that the kernel does wrongly in a ring if they cannot complete at once. On Linux 6.18 a
 * datagram for which its receiver has no room is sent later without its bytes, because the first attempt has consumed
 * them; and a connect to a listener whose queue is full cannot be cancelled.
 */
static bool must_not_block(const weft_io_t *io, int nature)
{
	if (io->kind == WEFT_IO_CONNECT)
		return nature == WEFT__UNIX || nature == WEFT__LOCAL;
	return nature == WEFT__LOCAL && io->way == WEFT__OUT;
}

/* Is it tried by a system call first? True if the kernel has no operation for it, or only an operation that raises
 * SIGPIPE; and for a poll that does not wait. */
static bool is_direct(const weft_io_t *io, int nature)
{
	/* A ring would ignore the position and read from a pipe; and files differ in what happens when no bytes are to
	 * be moved. */
	if (nature != WEFT__FILE && io->kind <= WEFT_IO_WRITEV && (io->offset != -1 || weft__io_moves_nothing(io)))
		return true;
	if (io->kind == WEFT_IO_POLL)
		return !io->deadline;
	if (must_not_block(io, nature))
		return true;
	if (io->kind == WEFT_IO_READV || io->kind == WEFT_IO_WRITEV)
		return weft__is_socket(nature);
	/* In a ring a receive waits for an error in the queue, and MSG_WAITALL collects bytes across descriptors,
	 * packets and an urgent mark. */
	if (io->kind == WEFT_IO_RECV || io->kind == WEFT_IO_RECVMSG)
		return io->flags & (MSG_ERRQUEUE | MSG_WAITALL);
	return io->kind == WEFT_IO_RECVMMSG || io->kind == WEFT_IO_SENDMMSG || io->kind == WEFT_IO_SENDFILE;
}

/* Can only a helper thread do it? */
static bool is_blocking(const weft_io_t *io)
{
	const uint32_t some = 1u << WEFT_IO_STAT | 1u << WEFT_IO_COPY | 1u << WEFT_IO_ENTRIES | 1u << WEFT_IO_WATCH |
			      1u << WEFT_IO_SENDFILE;

	_Static_assert(WEFT_IO_KINDS <= 32, "a set of kinds has 32 bits");
	if (__builtin_expect(!(some >> (io->kind & 31) & 1), 1))
		return false;
	return io->kind != WEFT_IO_SENDFILE || weft__fd_nature(io->place, io->fd) == WEFT__FILE;
}

/* Opcodes of newer kernels; the header may be older than the kernel. 0: none. */
static uint8_t file_operation(unsigned kind)
{
	static const uint8_t operations[] = {
	    [WEFT_IO_RENAME] = 35, [WEFT_IO_UNLINK] = 36,   [WEFT_IO_MKDIR] = 37,    [WEFT_IO_SYMLINK] = 38,
	    [WEFT_IO_LINK] = 39,   [WEFT_IO_ALLOCATE] = 17, [WEFT_IO_TRUNCATE] = 55,
	};

	return kind < sizeof operations ? operations[kind] : 0;
}

static __attribute__((noinline)) void prepare_file(struct io_uring_sqe *sqe, const weft_io_t *io)
{
	uint64_t other = (uintptr_t)io->more;
	unsigned length = (unsigned)io->other;
	const void *address = io->data;

	if (io->kind == WEFT_IO_TRUNCATE || io->kind == WEFT_IO_ALLOCATE) {
		other = (uint64_t)io->offset;
		address = (void *)(uintptr_t)io->length;
		length = (unsigned)io->flags;
	} else if (io->kind == WEFT_IO_UNLINK || io->kind == WEFT_IO_MKDIR) {
		other = 0;
		length = io->kind == WEFT_IO_MKDIR ? (unsigned)io->length : 0;
	} else if (io->kind == WEFT_IO_SYMLINK) {
		length = 0;
	}
	io_uring_prep_rw(file_operation(io->kind), sqe, io->fd, address, length, other);
	if (io->kind == WEFT_IO_RENAME || io->kind == WEFT_IO_UNLINK || io->kind == WEFT_IO_LINK)
		sqe->rw_flags = io->flags;
	else if (io->kind == WEFT_IO_TRUNCATE)
		sqe->addr = sqe->len = 0;
}

/* Does it complete during submission? Reads of files, which are mostly in the page cache, and writes and sends. */
static bool is_quick(const weft_io_t *io, int nature)
{
	return nature == WEFT__FILE ? io->kind == WEFT_IO_READ || io->kind == WEFT_IO_READV
				    : io->way == WEFT__OUT && io->kind != WEFT_IO_CONNECT;
}

/* `watch` is an epoll set that contains the descriptor. */
static void prepare_poll(struct io_uring_sqe *sqe, const weft_io_t *io)
{
	if (io->watch >= 0)
		io_uring_prep_poll_add(sqe, io->watch, POLLIN);
	else
		io_uring_prep_poll_add(sqe, io->fd, (unsigned short)weft__io_events(io));
}

/* The kernel's limit for the bytes of one operation. */
static unsigned length_of(const weft_io_t *io)
{
	return io->length > 0x7ffff000 ? 0x7ffff000 : (unsigned)io->length;
}

/* WEFT_IO_READ to WEFT_IO_WRITEV. */
static inline void prepare_transfer(struct io_uring_sqe *sqe, const weft_io_t *io)
{
	static const uint8_t operations[] = {
	    [WEFT_IO_READ] = IORING_OP_READ,
	    [WEFT_IO_WRITE] = IORING_OP_WRITE,
	    [WEFT_IO_READV] = IORING_OP_READV,
	    [WEFT_IO_WRITEV] = IORING_OP_WRITEV,
	};

	io_uring_prep_rw(operations[io->kind], sqe, io->fd, io->data, length_of(io), (uint64_t)io->offset);
}

static void prepare(struct io_uring_sqe *sqe, weft_io_t *io, int nature)
{
	unsigned length = length_of(io);

	switch (io->kind) {
	case WEFT_IO_WRITE:
		if (weft__is_socket(nature)) {
			io_uring_prep_send(sqe, io->fd, io->data, length, MSG_NOSIGNAL);
			break;
		}
		/* fall through */
	case WEFT_IO_READ:
	case WEFT_IO_READV:
	case WEFT_IO_WRITEV:
		prepare_transfer(sqe, io);
		break;
	case WEFT_IO_RECV:
		io_uring_prep_recv(sqe, io->fd, io->data, length, io->flags);
		break;
	case WEFT_IO_SEND:
		io_uring_prep_send(sqe, io->fd, io->data, length, io->flags | MSG_NOSIGNAL);
		break;
	case WEFT_IO_RECVMSG:
		io_uring_prep_recvmsg(sqe, io->fd, io->data, (unsigned)io->flags | MSG_CMSG_CLOEXEC);
		break;
	case WEFT_IO_SENDMSG:
		io_uring_prep_sendmsg(sqe, io->fd, io->data, (unsigned)io->flags | MSG_NOSIGNAL);
		break;
	case WEFT_IO_ACCEPT:
		io_uring_prep_accept(sqe, io->fd, io->data, io->more,
				     io->flags | (io->other == WEFT__AS_ASKED ? 0 : SOCK_CLOEXEC));
		break;
	case WEFT_IO_CONNECT:
		io_uring_prep_connect(sqe, io->fd, io->data, (socklen_t)io->length);
		break;
	case WEFT_IO_SPLICE:
		io_uring_prep_splice(sqe, io->fd, -1, io->other, -1, length, (unsigned)io->flags);
		break;
	case WEFT_IO_OPEN:
		io_uring_prep_openat(sqe, io->fd, io->data,
				     io->flags | O_CLOEXEC | (weft__open_may_wait(io) ? O_NONBLOCK : 0),
				     (mode_t)io->length);
		break;
	case WEFT_IO_SYNC:
		io_uring_prep_fsync(sqe, io->fd, io->flags ? IORING_FSYNC_DATASYNC : 0);
		break;
	default:
		if (file_operation(io->kind))
			prepare_file(sqe, io);
		else
			prepare_poll(sqe, io);
	}
}

/*
 * Under the lock. Queues an entry that completes immediately before the entries that may wait: a waiting entry may read
 * the data that it writes, and then completes immediately, too. All entries from number `waiting` on may wait. NULL:
 * there is no room.
 */
static struct io_uring_sqe *entry_in_front(struct ring *r, weft_io_t *io)
{
	struct io_uring_sq *sq = &r->ring.sq;
	struct io_uring_sqe *last = entry(r), *first = &sq->sqes[r->waiting & sq->ring_mask];

	if (!last)
		return NULL;
	__atomic_store_n(&r->quick, true, __ATOMIC_RELAXED);
	io->entry = r->waiting++;
	if (first == last)
		return last;
	*last = *first;
	if (last->user_data > TOLD)
		((weft_io_t *)(uintptr_t)last->user_data)->entry = sq->sqe_tail - 1;
	memset(first, 0, sizeof *first);
	return first;
}

static struct io_uring_sqe *entry_behind(struct ring *r, weft_io_t *io)
{
	struct io_uring_sqe *sqe = entry(r);

	io->entry = r->ring.sq.sqe_tail - 1;
	return sqe;
}

/* There is no room for the entry: the operation begins again after a pause. Its waiter was not waited for, but may have
 * been completed. */
static int retry(weft_io_t *io)
{
	uint64_t until = weft__clock() + RETRY_AFTER;

	io->step = WEFT__CROWDED;
	if (until < io->waiter.timer.at)
		io->waiter.timer.at = until;
	return WEFT_IO_WAITS;
}

enum entry_kind { ITSELF, TRANSFER, ITS_POLL };

/* Queues the operation, or a poll until it can be tried. A TRANSFER is a read or write of a file. The operation's
 * waiter is new. */
static inline __attribute__((always_inline)) int queue(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io,
						       int nature, enum entry_kind kind)
{
	struct ring *r = ring_for(loop, w);
	struct io_uring_sqe *sqe;

	io->way &= (uint8_t)~FINISHED;
	io->ring = r;
	lock_ring(r);
	sqe = kind != ITS_POLL && is_quick(io, nature) ? entry_in_front(r, io) : entry_behind(r, io);
	if (sqe) {
		if (kind == TRANSFER) {
			prepare_transfer(sqe, io);
		} else if (kind == ITSELF) {
			prepare(sqe, io, nature);
		} else {
			prepare_poll(sqe, io);
			weft__io_limit_wait(io, io->place);
		}
		sqe->user_data = (uintptr_t)io;
		io->step = kind == ITS_POLL ? WEFT__POLLING : WEFT__SUBMITTED;
		if (r == mine && r->ring.sq.sqe_tail - r->ring.sq.sqe_head >= SUBMIT_AT)
			submit(r);
	}
	unlock_ring(r);
	if (__builtin_expect(r != mine, 0))
		wake_ring(r);
	return sqe ? WEFT_IO_WAITS : retry(io);
}

static __attribute__((noinline)) int hand_over(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io,
					       int nature, bool polls)
{
	return queue(loop, w, io, nature, polls ? ITS_POLL : ITSELF);
}

/* See watch_exactly. */
static __attribute__((noinline)) void close_watch(weft_io_t *io)
{
	close(io->watch);
	io->watch = -1;
}

static inline void stop_watching(weft_io_t *io)
{
	if (__builtin_expect(io->watch >= 0, 0))
		close_watch(io);
}

static __attribute__((noinline)) void unlist(weft_io_t *io, struct weft__fd *fd)
{
	lock_fd(fd);
	weft__fd_take_out(fd, io);
	weft__task_unlock(&fd->lock);
}

static int leave(weft_io_t *io, int64_t result)
{
	struct weft__fd *fd = io->place;

	if (fd && !(io->way & UNLISTED))
		unlist(io, fd);
	stop_watching(io);
	return weft__io_done(io, result);
}

/*
 * Reads and writes at a given position of a file end soon, whatever other tasks do, so weft_close need not end them.
 * They are in no list, which saves locking their descriptor twice. The count of uses keeps the number from being reused
 * for another file, and an operation that meets the placeholder ends as cancelled: see table.c.
 */
static inline bool ends_by_itself(const weft_io_t *io)
{
	const struct weft__fd *fd = io->place;

	return io->kind <= WEFT_IO_WRITEV && io->offset >= 0 &&
	       __atomic_load_n(&fd->nature, __ATOMIC_RELAXED) == WEFT__FILE;
}

static bool begin_wait(struct weft__loop *loop, weft_io_t *io, bool new)
{
	struct weft__fd *fd = io->place;
	bool open;

	if (io->way & UNLISTED)
		return weft__begin_wait(loop, io);
	if (!fd) {
		weft_waiter_init(&io->waiter, weft__io_what(io), NULL, io->deadline);
		return true;
	}
	lock_fd(fd);
	open = weft__begin_wait(loop, io);
	if (open && new)
		weft__fd_add(fd, io);
	weft__task_unlock(&fd->lock);
	return open;
}

/* A wait has ended, and the next wait begins. False: its descriptor is being closed. */
static bool wait_again(struct weft__loop *loop, weft_io_t *io)
{
	return begin_wait(loop, io, false);
}

/* A ring does not lock a file's position: writes at it would overwrite each other. System calls do lock it. And unlike
 * system calls, a ring does not check an offset, or a read of no bytes. */
static bool is_for_system_call(const weft_io_t *io)
{
	return io->offset < 0 || weft__io_moves_nothing(io);
}

static int do_by_system_call(weft_io_t *io)
{
	int64_t result = weft__io_read_cached(io);

	(void)leave(io, result);
	return result >= 0 ? WEFT_IO_DONE : WEFT_IO_BLOCKS;
}

static int try(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	/* The nature is not cached for weft_poll and weft/posix.h, because code that does not use this table may close
	 * their descriptors. */
	bool asks = io->way && io->kind != WEFT_IO_POLL && (io->kind != WEFT_IO_ACCEPT || io->other != WEFT__AS_ASKED);
	int nature = asks ? weft__fd_nature(io->place, io->fd) : WEFT__FILE;
	int64_t result;

	if (nature < 0)
		return leave(io, nature);
	if (nature == WEFT__FILE && asks && io->kind <= WEFT_IO_WRITEV)
		return is_for_system_call(io) ? do_by_system_call(io) : hand_over(loop, w, io, nature, false);
	if (!is_direct(io, nature))
		return hand_over(loop, w, io, nature, false);
	result =
	    io->kind == WEFT_IO_CONNECT ? weft__io_attempt_unblocked(io, io->fd, nature) : weft__io_attempt(io, nature);
	if (result == -EAGAIN)
		result = weft__io_attempt_shut(io, nature);
	if (result != -EAGAIN || weft__io_does_not_wait(io))
		return leave(io, result);
	if (!io->deadline)
		return leave(io, -ETIMEDOUT);
	if (!weft__io_has_no_event(io))
		return hand_over(loop, w, io, nature, true);
	(void)leave(io, result);
	return weft__io_pause(io, weft__io_what(io), weft__io_next_pause(&io->entry));
}

static int begin(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	weft__touch_near_stack();
	io->watch = -1;
	io->reason = 0;
	if (is_blocking(io))
		return WEFT_IO_BLOCKS;
	if (io->kind == WEFT_IO_POLL && !(io->flags & ~(POLLERR | POLLHUP | POLLNVAL)))
		io->flags |= POLLHUP;
	if (ends_by_itself(io) && !weft__io_moves_nothing(io)) {
		io->way |= UNLISTED;
		if (weft__begin_wait(loop, io))
			return queue(loop, w, io, WEFT__FILE, TRANSFER);
		return weft__io_done(io, -ECANCELED);
	}
	if (!begin_wait(loop, io, true))
		return weft__io_done(io, -ECANCELED);
	return try(loop, w, io);
}

/* Under the lock. Removes a cancelled operation from the submission queue, which needs no kernel. An operation whose
 * deadline has passed is not removed: each is tried once, even if its deadline was over when it began. The number alone
 * does not prove that the entry is still queued: the number wraps after 2^32 entries. */
static bool take_back(struct ring *r, weft_io_t *io)
{
	struct io_uring_sq *sq = &r->ring.sq;
	struct io_uring_sqe *sqe = &sq->sqes[io->entry & sq->ring_mask];

	if (io->reason != -ECANCELED)
		return false;
	io->result = -ECANCELED;
	if (io->entry - sq->sqe_head >= sq->sqe_tail - sq->sqe_head || sqe->user_data != (uintptr_t)io)
		return WEFT_CANARY(takes_back_what_the_kernel_has);
	if (io->entry == sq->sqe_tail - 1) {
		sq->sqe_tail--;
		if (r->waiting == sq->sqe_tail + 1)
			r->waiting--;
	} else {
		io_uring_prep_nop(sqe);
		sqe->user_data = IGNORED;
	}
	return true;
}

/* The wait has ended before the operation. True: the operation is still in progress, and is waited for again. */
static bool withdraw(struct weft__loop *loop, weft_io_t *io)
{
	struct ring *r = io->ring;
	struct io_uring_sqe *sqe;
	bool finished;

	lock_ring(r);
	finished = io->way & FINISHED;
	if (!finished) {
		if (!io->reason) {
			io->reason = (int8_t)io->waiter.result; /* -ETIMEDOUT or -ECANCELED */
			weft_shield_begin();
		}
		finished = take_back(r, io);
	}
	if (!finished) {
		sqe = entry(r);
		(void)wait_again(loop, io);
		io->waiter.what = "the end of what was withdrawn";
		io->waiter.timer.at = sqe ? WEFT_NEVER : weft__clock() + RETRY_AFTER;
		if (sqe) {
			io_uring_prep_cancel(sqe, io, 0);
			sqe->flags |= r->silent_cancel;
			sqe->user_data = IGNORED;
			/* It must stay behind the operation that it cancels. */
			r->waiting = r->ring.sq.sqe_tail;
		}
	}
	unlock_ring(r);
	if (!finished && r != mine)
		wake_ring(r);
	return !finished;
}

/*
 * A poll in a ring completes when the peer ends its stream, even if that was not asked for: a task that waits for room
 * to write would be woken again and again. And of some ten thousand polls of a terminal from which another process
 * reads, the kernel (6.18) refuses one with EINVAL. From then on the ring polls an epoll set, which is exact. If there
 * is no descriptor for the set the operation retries after a pause. epoll refuses a file, too, and a file never has an
 * event.
 */
static int watch_exactly(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	struct epoll_event event = {(unsigned short)weft__io_events(io), {0}};
	bool is_file;

	if (!wait_again(loop, io))
		return leave(io, -ECANCELED);
	io->watch = weft__own_fd(epoll_create1(EPOLL_CLOEXEC));
	if (io->watch >= 0 && !epoll_ctl(io->watch, EPOLL_CTL_ADD, io->fd, &event))
		return hand_over(loop, w, io, WEFT__UNKNOWN, true);
	is_file = io->watch >= 0 && errno == EPERM;
	stop_watching(io);
	if (!is_file)
		return retry(io);
	io->step = WEFT__CROWDED;
	return WEFT_IO_WAITS;
}

/* The events of a poll's result that were asked for, or are always reported. */
static int64_t asked_for(const weft_io_t *io, int64_t answer)
{
	return answer & ((unsigned short)weft__io_events(io) | POLLERR | POLLHUP | POLLNVAL);
}

static int poll_ended(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io, int64_t result)
{
	if (io->watch >= 0) {
		stop_watching(io);
		result = weft__io_attempt(io, WEFT__UNKNOWN);
		if (result == -EAGAIN)
			return wait_again(loop, io) ? try(loop, w, io) : leave(io, -ECANCELED);
	}
	/* A ring cannot poll a file. */
	if (result == -EINVAL)
		result = weft__io_attempt(io, WEFT__UNKNOWN);
	if (result == -EAGAIN)
		return watch_exactly(loop, w, io);
	if (result <= 0 || asked_for(io, result))
		return leave(io, result <= 0 ? result : asked_for(io, result));
	return watch_exactly(loop, w, io);
}

/* An open that may wait has been tried with O_NONBLOCK, because the kernel has few threads for blocking operations. */
static int opened(weft_io_t *io, int64_t result)
{
	result = weft__open_attempted(io, result);
	if (result != -EAGAIN)
		return leave(io, result);
	(void)leave(io, result);
	if (!io->reason)
		return WEFT_IO_BLOCKS;
	weft__open_abandon(io);
	return weft__io_done(io, io->reason);
}

static int ended(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	/* A splice that is cancelled returns ERESTARTSYS, a code internal to the kernel. */
	int64_t result = io->result == -512 ? -EINTR : io->result;
	bool polled = io->step == WEFT__POLLING;
	struct weft__fd *fd = io->place;

	if (io->reason)
		weft_shield_end();
	/* The timer of WEFT__FULL_AGAIN ended the wait, not the deadline. */
	if (io->reason == -ETIMEDOUT && polled && weft__clock() < io->deadline)
		io->reason = 0;
	if (weft__open_may_wait(io) && result != -ECANCELED && result != -EINTR)
		return opened(io, result);
	if (io->reason)
		return leave(io, result == -ECANCELED || result == -EINTR || result == -EAGAIN || polled ? io->reason
													 : result);
	if (io->kind == WEFT_IO_POLL && (result >= 0 || result == -EINVAL))
		return poll_ended(loop, w, io, result);
	if (polled && io->watch < 0 && (result == -EINVAL || (result > 0 && !asked_for(io, result))))
		return watch_exactly(loop, w, io);
	stop_watching(io);
	/* The kernel cancels the operations of a thread that ends. The task does not see that: its operation is tried
	 * again. */
	if (result == -ECANCELED || result == -EINTR || (polled && result >= 0))
		return wait_again(loop, io) ? try(loop, w, io) : leave(io, -ECANCELED);
	/* The kernel may not support the operation. */
	if (result == -EINVAL && file_operation(io->kind)) {
		(void)leave(io, result);
		return WEFT_IO_BLOCKS;
	}
	/* The descriptor is in non-blocking mode. */
	if (result == -EAGAIN && io->way)
		result = weft__io_attempt_shut(io, fd->nature);
	if (result == -EAGAIN && io->way && io->kind != WEFT_IO_CONNECT && io->deadline && !weft__io_does_not_wait(io))
		return wait_again(loop, io) ? hand_over(loop, w, io, WEFT__UNKNOWN, true) : leave(io, -ECANCELED);
	(void)leave(io, result == -EAGAIN && !io->deadline && !weft__io_does_not_wait(io) ? -ETIMEDOUT : result);
	if (io->kind == WEFT_IO_ACCEPT && io->other != WEFT__AS_ASKED)
		return weft__io_accepted(loop, io, fd->nature);
	return WEFT_IO_DONE;
}

/* The usual completion. If something else has ended the wait, the kernel may complete the operation meanwhile: then
 * `result` must not be read. */
static inline bool has_moved_bytes(const weft_io_t *io)
{
	return !io->waiter.result && io->kind <= WEFT_IO_SENDMSG && io->step == WEFT__SUBMITTED && io->result >= 0 &&
	       !io->reason;
}

static __attribute__((noinline)) int go_on_otherwise(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	if (io->step == WEFT__PAUSED)
		return weft__io_tries_again(loop, io) ? begin(loop, w, io) : WEFT_IO_DONE;
	if (io->step == WEFT__CROWDED) {
		if (weft__io_ends_in_pause(loop, io))
			return leave(io, io->result);
		return wait_again(loop, io) ? try(loop, w, io) : leave(io, -ECANCELED);
	}
	if (io->waiter.result && withdraw(loop, io))
		return WEFT_IO_WAITS;
	io->way &= (uint8_t)~FINISHED;
	return ended(loop, w, io);
}

static int go_on(struct weft__loop *loop, struct weft__worker *w, weft_io_t *io)
{
	weft__touch_near_stack();
	if (__builtin_expect(has_moved_bytes(io), 1))
		return leave(io, io->result);
	return go_on_otherwise(loop, w, io);
}

/* In-flight operations refer to the file, not to the number. */
static void forget(struct weft__loop *loop, int number, struct weft__fd *fd)
{
	(void)loop;
	(void)number;
	(void)fd;
}

static const struct weft__backend backend = {"io_uring", begin, go_on, forget, close_rings};

/* Also detects valgrind if this file was compiled without its header: valgrind preloads libraries of its own. */
static bool under_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return RUNNING_ON_VALGRIND || (preloaded && strstr(preloaded, "/vgpreload_"));
}

static const char *unusable(void)
{
	if (under_valgrind())
		return "valgrind does not see what the kernel writes for a ring";
	return load() ? NULL : "liburing.so.2 is missing";
}

int weft__uring_open(struct weft__loop *loop, const char **why)
{
	struct weft__worker *w = weft__worker();
	int error, ring;

	*why = unusable();
	if (*why)
		return 0;
	loop->tells = loop->rt->workers > 1 ? weft__own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) : -1;
	error = open_ring(loop, w);
	if (error) {
		if (loop->tells >= 0)
			close(loop->tells);
		*why = "no ring can be made";
		return error;
	}
	if (loop->rt->workers > 1)
		handle_signal();
	loop->backend = &backend;
	ring = ring_of(w)->ring.ring_fd;
	loop->source = (struct weft__source){take_in, attend,	  watch,   enter_sleep,	      sleep_in, leave_sleep,
					     wake,    unattended, expects, loop->source.free, ring};
	return 0;
}

#else

int weft__uring_open(struct weft__loop *loop, const char **why)
{
	(void)loop;
	*why = "Weft was built without liburing.h";
	return 0;
}

#endif
