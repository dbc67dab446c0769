/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which operations use a descriptor, and closing a descriptor that is in use.
 *
 * A descriptor's number is not an identity: after it is closed the kernel gives the number to the next file. So an
 * operation holds each descriptor that it names, from its beginning to its end, in any back end or thread; and for each
 * number that weft_close was called for
 *
 *     the kernel has reclaimed it  <=>  no operation holds it
 *
 * A runtime counts its operations in its own record of the descriptor (weft__fd.uses). The number is the index of the
 * record in a table of blocks, which are made on demand and stay until the runtime ends: a pointer to a record stays
 * valid, and a late event finds the record. Threads that are not tasks share a table of their own, weft__outside.
 *
 *   weft_close   locks the record of the number in each table, marks it as closing, and ends the waits of its
 *                operations. If there are none the kernel reclaims the number before the locks are released; else
 *                the number refers to a file that can be neither read nor written (a placeholder), so that the peer
 *                sees the end at once.
 *   operations   look at the mark before they wait, under the lock. An operation that has met the placeholder ends with
 *                -ECANCELED. The last operation to end closes the number.
 *   weft/posix.h does likewise; but dup2 and dup3 replace the file at once, and a wait for the old file must not
 *                continue with the new file: the record's generation tells them apart.
 *
 * A child of fork has none of the tasks that its parent's tables count, so it resets the tables. A child of vfork uses
 * its parent's memory, but has descriptors of its own: when it closes a descriptor the tables must not change.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct weft__fd *_Atomic outside_blocks[WEFT__BLOCKS];
struct weft__loop weft__outside = {.blocks = outside_blocks, .spare = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft__loop *loops = &weft__outside; /* under the lock: all tables */
static _Atomic bool several;			  /* more than one table has been used */
static _Atomic bool made;			  /* a table has been used */
static _Atomic pid_t process;			  /* the process that the tables describe */
/* Waiting threads poll this eventfd beside their descriptor: it is readable once for each number that is closed while a
 * thread's operation holds it. -1: not made yet, or it cannot be made. Under the lock. */
static int ends = -1;
static uint32_t changing; /* a lock: a thread changes a descriptor's mode for a moment */
/* The calling thread is inside close: libweft-posix.so interposes close, and would consult these tables. */
static __thread __attribute__((tls_model("initial-exec"))) bool inside;

/* The child has no tasks. The tables' memory is not freed: a thread of the parent may have been changing it during the
 * fork. */
static void forget_parent(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	changing = 0;
	memset((void *)outside_blocks, 0, sizeof outside_blocks);
	weft__outside.next = NULL;
	loops = &weft__outside;
	if (ends >= 0)
		(void)syscall(SYS_close, ends);
	ends = -1;
	atomic_store(&several, false);
	atomic_store(&process, getpid());
}

__attribute__((constructor(104))) static void watch_forks(void)
{
	atomic_store(&process, getpid());
	(void)pthread_atfork(NULL, NULL, forget_parent);
}

/* ---- threads that are no tasks ----------------------------------------------------------------------------------- */

int weft__outside_ends(void)
{
	int fd;

	weft__mutex_lock(&lock);
	if (ends < 0)
		ends = weft__own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
	fd = ends;
	weft__mutex_unlock(&lock);
	return fd;
}

/* Under the lock, and the record's lock. */
static void tell_threads(struct weft__fd *fd)
{
	const uint64_t one = 1;

	fd->told = ends >= 0 && syscall(SYS_write, ends, &one, sizeof one) == sizeof one;
}

static void hear_threads(struct weft__fd *fd)
{
	uint64_t one;

	if (fd && fd->told)
		(void)!syscall(SYS_read, ends, &one, sizeof one);
	if (fd)
		fd->told = false;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

void weft__fds_add(struct weft__loop *loop)
{
	weft__mutex_lock(&lock);
	atomic_store(&process, getpid());
	if (loops != &weft__outside)
		atomic_store(&several, true);
	loop->next = loops;
	loops = loop;
	weft__mutex_unlock(&lock);
}

void weft__fds_remove(struct weft__loop *loop)
{
	struct weft__loop **link = &loops;

	weft__mutex_lock(&lock);
	while (*link && *link != loop)
		link = &(*link)->next;
	if (*link)
		*link = loop->next;
	weft__mutex_unlock(&lock);
}

struct weft__fd *weft__fd_make_block(struct weft__loop *loop, int number)
{
	struct weft__fd *_Atomic *at = &loop->blocks[number / WEFT__BLOCK];
	struct weft__fd *block = calloc(WEFT__BLOCK, sizeof *block), *other = NULL;

	atomic_store(&made, true);
	if (loop == &weft__outside)
		atomic_store(&several, true);
	/* Another worker may make the block at the same time. */
	if (block && !atomic_compare_exchange_strong(at, &other, block)) {
		free(block);
		block = other;
	}
	return block;
}

/* The record, or NULL if its block was never made. */
static struct weft__fd *known(const struct weft__loop *loop, int number)
{
	struct weft__fd *block;

	if ((unsigned)number >= WEFT__BLOCKS * WEFT__BLOCK)
		return NULL;
	block = atomic_load_explicit(&loop->blocks[number / WEFT__BLOCK], memory_order_acquire);
	return block ? &block[number % WEFT__BLOCK] : NULL;
}

/* ---- natures of descriptors -------------------------------------------------------------------------------------- */

enum weft__nature weft__nature_of_socket(int domain, int type, int protocol)
{
	if ((type & 0xf) != SOCK_STREAM)
		return domain == AF_UNIX ? WEFT__LOCAL : WEFT__MESSAGES;
	if (domain == AF_UNIX)
		return WEFT__UNIX;
	return (domain == AF_INET || domain == AF_INET6) && (!protocol || protocol == IPPROTO_TCP) ? WEFT__STREAM
												   : WEFT__MESSAGES;
}

int weft__socket_option(int number, int name)
{
	int value = -1;
	socklen_t size = sizeof value;

	return getsockopt(number, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

static int find_nature(struct weft__fd *fd, int number)
{
	struct stat status;
	int flags;

	if (fstat(number, &status))
		return -errno;
	flags = weft__flags(number);
	if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)) {
		__atomic_store_n(&fd->direct, flags >= 0 && flags & O_DIRECT, __ATOMIC_RELAXED);
		return WEFT__FILE;
	}
	/* The writer of a pipe may have put it into packet mode, which this end cannot see. */
	if (!S_ISSOCK(status.st_mode))
		return flags & O_NONBLOCK ? WEFT__DEVICE : WEFT__BLOCKING_PIPE;
	/* Foreign code may depend on the mode: see attempt_once, epoll.c. */
	__atomic_store_n(&fd->blocks, !(flags & O_NONBLOCK), __ATOMIC_RELAXED);
	return weft__nature_of_socket(weft__socket_option(number, SO_DOMAIN), weft__socket_option(number, SO_TYPE),
				      weft__socket_option(number, SO_PROTOCOL));
}

int weft__fd_learn(struct weft__fd *fd, int number)
{
	int nature = find_nature(fd, number);

	if (nature > 0) {
		__atomic_store_n(&fd->ready, WEFT__IN | WEFT__OUT, __ATOMIC_RELAXED);
		__atomic_store_n(&fd->nature, (uint8_t)nature, __ATOMIC_RELEASE);
	}
	return nature;
}

void weft__fd_made(int number, enum weft__nature nature)
{
	struct weft__loop *loop = weft__loop();
	struct weft__fd *fd = loop ? weft__fd(loop, number) : NULL;

	if (!fd)
		return;
	weft__task_lock(&fd->lock);
	/* An earlier descriptor with this number was closed by plain close, so the kernel has dropped its registration,
	 * too. */
	__atomic_store_n(&fd->registered, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->blocks, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->marked, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->listens, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->ready, WEFT__IN | WEFT__OUT, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->nature, (uint8_t)nature, __ATOMIC_RELEASE);
	weft__task_unlock(&fd->lock);
}

/* ---- holding descriptors ----------------------------------------------------------------------------------------- */

/* An operation that waits for several descriptors (a splice, a sendfile, a poll for weft/posix.h's poll) is in the list
 * of one of them, and in `pairs`, where weft_close of its other descriptors finds it. `offset` and `more` link this
 * list: these kinds do not use them. */
static weft_io_t *before(const weft_io_t *io)
{
	return (weft_io_t *)(intptr_t)io->offset;
}

static void add_pair(struct weft__loop *loop, weft_io_t *io)
{
	weft__task_lock(&loop->pairs_lock);
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd, io->deadline);
	io->offset = 0;
	io->more = loop->pairs;
	if (loop->pairs)
		loop->pairs->offset = (intptr_t)io;
	loop->pairs = io;
	weft__task_unlock(&loop->pairs_lock);
}

static void take_out_pair(struct weft__loop *loop, weft_io_t *io)
{
	weft_io_t *next;

	weft__task_lock(&loop->pairs_lock);
	next = io->more;
	if (before(io))
		before(io)->more = next;
	else
		loop->pairs = next;
	if (next)
		next->offset = io->offset;
	weft__task_unlock(&loop->pairs_lock);
}

static bool is_pair(const weft_io_t *io)
{
	return weft__names_two(io) ||
	       (io->kind == WEFT_IO_POLL && io->data && ((const struct weft__use *)io->data)->more);
}

/* The generation of an operation that names two descriptors: a combination that no single descriptor has. */
static uint32_t generation_of_pair(uint32_t one, uint32_t other)
{
	return (one + other) ^ 0x80000000;
}

bool weft__pair_means_the_same(struct weft__loop *loop, const weft_io_t *io)
{
	return generation_of_pair(weft__generation(io->place), weft__generation(known(loop, io->other))) ==
	       io->waiter.timer.note;
}

static bool pair_waits(struct weft__loop *loop, weft_io_t *io)
{
	bool open;

	weft__task_lock(&loop->pairs_lock);
	open = io->kind == WEFT_IO_POLL ? weft__use_is_good(io->data) : weft__pair_means_the_same(loop, io);
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd, io->deadline);
	weft__task_unlock(&loop->pairs_lock);
	return open;
}

bool weft__begin_special_wait(struct weft__loop *loop, weft_io_t *io)
{
	if (is_pair(io))
		return pair_waits(loop, io);
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd, io->deadline);
	if (io->kind == WEFT_IO_POLL && io->data)
		return weft__use_is_good(io->data);
	return weft__means_the_same(loop, io);
}

static void let_go(struct weft__loop *loop, struct weft__fd *fd, weft_io_t *io, int number)
{
	uint32_t uses = weft__fd_let_go(fd, loop != &weft__outside);

	if (uses & WEFT__CLOSING)
		weft__let_go_of_closed(io, number, uses);
}

/* The descriptor seems to be closed. Waits for a thread that is closing it at this moment, because the number may refer
 * to a new file afterwards. */
int weft__hold_closing(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	bool closing;

	weft__task_lock(&fd->lock);
	closing = weft__is_closing(fd);
	weft__task_unlock(&fd->lock);
	if (!closing)
		return 0;
	let_go(loop, fd, NULL, number);
	return -EBADF;
}

static int hold(struct weft__loop *loop, int number, struct weft__fd **fd, uint32_t *generation)
{
	*fd = number < 0 ? NULL : weft__fd(loop, number);
	if (!*fd)
		return number < 0 ? -EBADF : -ENOMEM;
	return weft__fd_hold(*fd, generation, loop != &weft__outside) ? 0 : weft__hold_closing(loop, *fd, number);
}

/* Does an operation with several descriptors wait for this number, beside its first? */
static bool waits_for(const weft_io_t *io, int number)
{
	const struct weft__use *uses = io->data;

	if (io->kind != WEFT_IO_POLL)
		return io->other == number;
	for (size_t i = 0; i <= uses->more; i++)
		if (uses[i].fd && uses[i].number == number)
			return true;
	return false;
}

static bool has_other(const weft_io_t *io)
{
	return weft__names_two(io) || io->kind == WEFT_IO_COPY ||
	       ((io->kind == WEFT_IO_RENAME || io->kind == WEFT_IO_LINK) && io->other >= 0);
}

int weft__hold_other(struct weft__loop *loop, weft_io_t *io)
{
	struct weft__fd *other;
	uint32_t generation;
	int error = has_other(io) ? hold(loop, io->other, &other, &generation) : 0;

	if (error) {
		let_go(loop, io->place, io, io->fd);
		return error;
	}
	if (weft__names_two(io))
		io->waiter.timer.note = generation_of_pair(io->waiter.timer.note, generation);
	if (is_pair(io))
		add_pair(loop, io);
	return 0;
}

void weft__let_go_of_other(struct weft__loop *loop, weft_io_t *io)
{
	if (is_pair(io))
		take_out_pair(loop, io);
	if (has_other(io))
		let_go(loop, known(loop, io->other), io, io->other);
}

int weft__use_begin(struct weft__use *use, int number)
{
	struct weft__loop *loop = weft__loop();
	int error = 0;

	*use = (struct weft__use){.number = number};
	if (loop)
		error = hold(loop, number, &use->fd, &use->generation);
	if (error)
		use->fd = NULL;
	return error;
}

void weft__use_end(struct weft__use *use)
{
	if (use->fd)
		let_go(NULL, use->fd, NULL, use->number);
	use->fd = NULL;
}

bool weft__use_is_good(const struct weft__use *use)
{
	for (size_t i = 0; i <= use->more; i++)
		if (use[i].fd && weft__generation(use[i].fd) != use[i].generation)
			return false;
	return true;
}

bool weft__use_lock(const struct weft__use *use)
{
	if (!use->fd)
		return true;
	weft__task_lock(&use->fd->lock);
	if (weft__use_is_good(use))
		return true;
	weft__task_unlock(&use->fd->lock);
	return false;
}

void weft__use_unlock(const struct weft__use *use)
{
	if (use->fd)
		weft__task_unlock(&use->fd->lock);
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

int weft__unblock(int number)
{
	int flags;

	weft__task_lock(&changing);
	flags = fcntl(number, F_GETFL);
	if (flags >= 0)
		(void)fcntl(number, F_SETFL, flags | O_NONBLOCK);
	return flags;
}

void weft__block_again(int number, int flags)
{
	if (flags >= 0)
		(void)fcntl(number, F_SETFL, flags);
	weft__task_unlock(&changing);
}

int weft__flags(int number)
{
	int flags = fcntl(number, F_GETFL);

	if (flags < 0 || !(flags & O_NONBLOCK) || !atomic_load(&made))
		return flags;
	weft__task_lock(&changing);
	flags = fcntl(number, F_GETFL);
	weft__task_unlock(&changing);
	return flags;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* The record of a number in each table, or in `only`. */
struct group {
	struct weft__loop *only;
	int number;
};

static struct weft__loop *first_of(const struct group *g)
{
	return g->only ? g->only : loops;
}

static struct weft__loop *after(const struct group *g, const struct weft__loop *loop)
{
	return g->only ? NULL : loop->next;
}

/* The calling worker's table, or NULL. A child of fork has none. */
static struct weft__loop *own(void)
{
	struct weft__worker *w = weft__worker();

	if (!w || !w->current || w->rt->sim || w->rt->forks != weft__forks())
		return NULL;
	return (struct weft__loop *)atomic_load_explicit(&w->rt->source, memory_order_acquire);
}

/* Usually there is one runtime, and no thread outside of it has done any I/O: then the lock is not needed. */
static void begin_group(struct group *g, int number)
{
	*g = (struct group){atomic_load(&several) ? NULL : own(), number};
	if (!g->only)
		weft__mutex_lock(&lock);
}

static void end_group(const struct group *g)
{
	if (!g->only)
		weft__mutex_unlock(&lock);
}

static void forget(struct weft__loop *loop, struct weft__fd *fd, int number)
{
	if (loop->backend)
		loop->backend->forget(loop, number, fd);
	__atomic_store_n(&fd->nature, WEFT__UNKNOWN, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->marked, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->listens, false, __ATOMIC_RELAXED);
	__atomic_store_n(&fd->ready, 0, __ATOMIC_RELAXED);
}

/* Unlocks the records that mark_all has locked, in the tables before `end`, except in blocks that were made
 * meanwhile. */
static void unlock_all(const struct group *g, const struct weft__loop *end, bool open)
{
	struct weft__loop *loop;
	struct weft__fd *fd;

	for (loop = first_of(g); loop != end; loop = after(g, loop)) {
		fd = known(loop, g->number);
		if (!fd || !weft__is_closing(fd))
			continue;
		if (open)
			__atomic_fetch_and(&fd->uses, ~(uint32_t)WEFT__CLOSING, __ATOMIC_RELEASE);
		weft__task_unlock(&fd->lock);
	}
}

/* Locks and marks. -EBADF: another call is already closing it. Else returns whether operations hold it. */
static int mark_all(const struct group *g)
{
	struct weft__loop *loop;
	struct weft__fd *fd;
	int used = 0;
	uint32_t uses;

	for (loop = first_of(g); loop; loop = after(g, loop)) {
		fd = known(loop, g->number);
		if (!fd)
			continue;
		weft__task_lock(&fd->lock);
		uses = __atomic_fetch_or(&fd->uses, WEFT__CLOSING, __ATOMIC_ACQ_REL);
		if (uses & WEFT__CLOSING) {
			weft__task_unlock(&fd->lock);
			unlock_all(g, loop, true);
			return -EBADF;
		}
		__atomic_store_n(&fd->generation, fd->generation + 1, __ATOMIC_RELEASE);
		forget(loop, fd, g->number);
		used |= uses >= WEFT__USER;
	}
	return used;
}

static void end_wait(weft_io_t *io)
{
	if (weft_waiter_claim(&io->waiter, -ECANCELED))
		weft_waiter_complete(&io->waiter);
}

static void end_waits_in(struct weft__loop *loop, const struct weft__fd *fd, int number)
{
	weft_io_t *io;

	for (io = fd->first; io; io = io->next)
		end_wait(io);
	weft__spin_lock(&loop->pairs_lock);
	for (io = loop->pairs; io; io = io->more)
		if (waits_for(io, number))
			end_wait(io);
	weft__spin_unlock(&loop->pairs_lock);
}

static void end_waits(const struct group *g)
{
	struct weft__loop *loop;
	struct weft__fd *fd;

	for (loop = first_of(g); loop; loop = after(g, loop)) {
		fd = known(loop, g->number);
		if (!fd || !weft__is_closing(fd) || __atomic_load_n(&fd->uses, __ATOMIC_RELAXED) < WEFT__USER)
			continue;
		if (loop == &weft__outside)
			tell_threads(fd);
		else if (!WEFT_CANARY(closing_ends_no_waits))
			end_waits_in(loop, fd, g->number);
	}
}

/* If this fails, the peer sees the end when the last operation has ended. */
static bool put_placeholder(const struct group *g)
{
	struct weft__loop *loop;
	bool put = false;

	for (loop = first_of(g); loop && !put; loop = after(g, loop)) {
		weft__spin_lock(&loop->spare_lock);
		put = loop->spare >= 0 && syscall(SYS_dup3, loop->spare, g->number, O_CLOEXEC) >= 0;
		weft__spin_unlock(&loop->spare_lock);
	}
	return put;
}

static void note_placeholder(const struct group *g, bool put)
{
	struct weft__loop *loop;
	struct weft__fd *fd;

	for (loop = first_of(g); loop; loop = after(g, loop)) {
		fd = known(loop, g->number);
		if (fd && weft__is_closing(fd))
			fd->placeholder = put;
	}
}

/* After EINTR Linux has closed the descriptor, too. */
static int close_now(int number)
{
	int error;

	inside = true;
	error = close(number) && errno != EINTR ? -errno : 0;
	inside = false;
	return error;
}

static bool is_registered(const struct weft__fd *fd)
{
	return __atomic_load_n(&fd->registered, __ATOMIC_RELAXED);
}

/* Is this a child of fork or vfork, where the tables do not apply? Asks the system only for a descriptor that the
 * tables use. */
static bool is_child(int number)
{
	const struct weft__loop *loop = atomic_load(&several) ? NULL : own();
	const struct weft__fd *fd = loop ? known(loop, number) : NULL;

	if (loop && (!fd || (!is_registered(fd) && __atomic_load_n(&fd->uses, __ATOMIC_RELAXED) < WEFT__USER)))
		return false;
	return getpid() != atomic_load_explicit(&process, memory_order_relaxed);
}

bool weft__fds_knows(int number)
{
	const struct weft__loop *loop = atomic_load(&several) ? NULL : own();
	const struct weft__fd *fd = loop ? known(loop, number) : NULL;

	if (inside || !loop)
		return !inside && atomic_load(&made);
	return fd && (is_registered(fd) || __atomic_load_n(&fd->nature, __ATOMIC_RELAXED) != WEFT__UNKNOWN ||
		      __atomic_load_n(&fd->uses, __ATOMIC_RELAXED));
}

void weft__fds_end_waits(int number)
{
	struct group g;
	int used;

	if (is_child(number))
		return;
	begin_group(&g, number);
	used = mark_all(&g);
	if (used > 0)
		end_waits(&g);
	if (used >= 0)
		unlock_all(&g, NULL, true);
	end_group(&g);
}

int weft__fds_close(int number, int (*close)(int number))
{
	struct group g;
	int used, error = 0;

	if (number < 0 || is_child(number))
		return close(number);
	begin_group(&g, number);
	used = mark_all(&g);
	if (used > 0) {
		note_placeholder(&g, put_placeholder(&g));
		end_waits(&g);
		unlock_all(&g, NULL, false);
	} else if (!used) {
		error = close(number);
		unlock_all(&g, NULL, true);
	}
	end_group(&g);
	return used < 0 ? used : error;
}

int weft__fds_replace(int number, int (*replace)(void *argument), void *argument)
{
	struct group g;
	int used, result;

	if (is_child(number))
		return replace(argument);
	begin_group(&g, number);
	used = mark_all(&g);
	if (used > 0)
		end_waits(&g);
	result = replace(argument);
	if (used >= 0)
		unlock_all(&g, NULL, true);
	end_group(&g);
	return result;
}

/* The last operation of one table has ended. GONE: the number is already closed; HELD: operations of other tables hold
 * it. */
enum { GONE, HELD, LEFT, LEFT_PLACEHOLDER };

/* Unless the result is GONE, locks the records that mark_all has marked. */
static int lock_marked(const struct group *g)
{
	struct weft__loop *loop;
	struct weft__fd *fd;
	int state = GONE, mine;

	for (loop = first_of(g); loop; loop = after(g, loop)) {
		fd = known(loop, g->number);
		if (!fd)
			continue;
		weft__task_lock(&fd->lock);
		if (!weft__is_closing(fd)) {
			weft__task_unlock(&fd->lock);
			continue;
		}
		mine = fd->placeholder ? LEFT_PLACEHOLDER : LEFT;
		if (state == HELD || __atomic_load_n(&fd->uses, __ATOMIC_ACQUIRE) >= WEFT__USER)
			mine = HELD;
		state = mine;
		/* A thread that determined its nature may have looked at the placeholder. */
		forget(loop, fd, g->number);
	}
	return state;
}

/* A number that the program closed by close(2) is no placeholder: another thread may get it at any time. */
static bool is_placeholder(int number)
{
	int flags = fcntl(number, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

static void give_back(int number)
{
	struct group g;
	int state;

	begin_group(&g, number);
	state = lock_marked(&g);
	if (state > HELD)
		hear_threads(known(&weft__outside, number));
	/* Meanwhile dup2 may have made the number refer to another file, which must stay open. */
	if (state == LEFT || (state == LEFT_PLACEHOLDER && is_placeholder(number)))
		(void)close_now(number);
	if (state != GONE)
		unlock_all(&g, NULL, state != HELD);
	end_group(&g);
}

void weft__let_go_of_closed(weft_io_t *io, int number, uint32_t uses)
{
	/* The operation has met the placeholder. */
	if (io && io->result == -EBADF)
		io->result = -ECANCELED;
	if (uses == (WEFT__USER | WEFT__CLOSING))
		give_back(number);
}

int weft_close(int number)
{
	return weft__sim_has(number) ? weft__sim_close(number) : weft__fds_close(number, close_now);
}
