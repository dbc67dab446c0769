/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every system call and every ring operation fails in turn: iofaults WORKERS quick|whole [SCENARIO [CALL]].
 *
 * Each scenario runs with a planned fault (shim.h), and again in the same runtime without a fault. The first run must
 * succeed, or have the planned errno as its first error; the second run must succeed; then no descriptor, block of
 * memory or child may remain. A run that exceeds its time limit counts as a hang.
 *
 * The quick form takes the first calls of each kind, and some later ones; the whole form takes all.
 */
#define _GNU_SOURCE
#include "shim.h"

#include "../sched/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <weft/io.h>

#ifndef PATIENCE
#define PATIENCE 20 /* seconds for one run */
#endif

static char doing[160];

#undef CHECK
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			dprintf(1, "not ok - %s: %s:%d: %s\n", doing, __FILE__, __LINE__, #condition);                 \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		weft_close(*fd);
}

/* Returns the result. If it is an error, ends the task with it. */
static int64_t need(int64_t result)
{
	if (result < 0)
		weft_task_fail((int)result);
	return result;
}

static void spawn(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error)
		weft_scope_cancel(scope, error);
}

static uint64_t in(uint64_t nanoseconds)
{
	return weft_now() + nanoseconds;
}

/* Writes all data. If an error occurs in the middle, the next write returns it. */
static void put(int fd, const void *data, size_t length)
{
	size_t done;

	for (done = 0; done < length;)
		done += (size_t)need(weft_write_all(fd, (const char *)data + done, length - done));
}

static unsigned char byte_at(size_t place)
{
	return (unsigned char)(place * 2654435761u >> 13);
}

/* ---- scenarios --------------------------------------------------------------------------------------------------- */

enum { BYTES = 200000 };

struct way {
	int from, to;
	size_t bytes;
};

static void *sends(void *argument)
{
	const struct way *w = argument;
	unsigned char part[5000];
	size_t place, i, size;

	for (place = 0; place < w->bytes; place += size) {
		size = w->bytes - place < sizeof part ? w->bytes - place : sizeof part;
		for (i = 0; i < size; i++)
			part[i] = byte_at(place + i);
		size = (size_t)need(weft_write(w->to, part, size));
		CHECK(size > 0);
	}
	need(weft_shutdown(w->to, SHUT_WR));
	return NULL;
}

static void *receives(void *argument)
{
	const struct way *w = argument;
	unsigned char part[3000];
	size_t place = 0;
	int64_t got, i;

	while ((got = need(weft_read(w->from, part, sizeof part))) > 0)
		for (i = 0; i < got; i++, place++)
			CHECK(part[i] == byte_at(place));
	CHECK(place <= w->bytes);
	if (place < w->bytes)
		weft_task_fail(-EPIPE); /* the sender has failed, or bytes were lost */
	return NULL;
}

static size_t echo(int fd)
{
	char part[4000];
	size_t bytes = 0;
	int64_t got;

	while ((got = need(weft_read(fd, part, sizeof part))) > 0) {
		put(fd, part, (size_t)got);
		bytes += (size_t)got;
	}
	need(weft_shutdown(fd, SHUT_WR));
	return bytes;
}

/* The server greets each accepted client. If a connection was shed because no descriptor was free, the client connects
 * again. If a client hangs up without a word, the server accepts again. */
static void *serves(void *listener)
{
	size_t bytes;
	int fd = -1;

	weft_defer(close_fd, &fd);
	do {
		close_fd(&fd);
		fd = -1;
		fd = (int)need(weft_accept(*(int *)listener, NULL, NULL, 0));
		put(fd, "h", 1);
		bytes = echo(fd);
	} while (!bytes);
	return NULL;
}

static void greeted(const char *port, int *fd)
{
	int64_t got = 0;
	int turn;
	char byte;

	for (turn = 0; turn < 3; turn++) {
		*fd = (int)need(weft_dial("127.0.0.1", port));
		got = weft_read(*fd, &byte, 1);
		if (got == 1)
			return;
		if (got && got != -ECONNRESET)
			break;
		close_fd(fd);
		*fd = -1;
	}
	weft_task_fail(got ? (int)got : -EPIPE);
}

static void *asks(void *port)
{
	int fd = -1;

	weft_defer(close_fd, &fd);
	greeted(port, &fd);
	struct way w = {fd, fd, BYTES};
	WEFT_SCOPE(scope);
	spawn(&scope, sends, &w);
	spawn(&scope, receives, &w);
	need(weft_scope_wait(&scope));
	return NULL;
}

static void *tcp(void *pass)
{
	int listener = (int)need(weft_listen("127.0.0.1", 0, 0, 0));
	char port[12];

	weft_defer(close_fd, &listener);
	snprintf(port, sizeof port, "%d", (int)need(weft_port(listener)));
	WEFT_SCOPE(scope);
	spawn(&scope, serves, &listener);
	spawn(&scope, asks, port);
	need(weft_scope_wait(&scope));
	return pass;
}

static void *reads_pipe(void *argument)
{
	struct way *w = argument;

	weft_defer(close_fd, &w->from);
	return receives(w);
}

static void *writes_pipe(void *argument)
{
	struct way *w = argument;
	unsigned char part[5000];
	size_t place, i, size;

	weft_defer(close_fd, &w->to);
	for (place = 0; place < w->bytes; place += size) {
		size = w->bytes - place < sizeof part ? w->bytes - place : sizeof part;
		for (i = 0; i < size; i++)
			part[i] = byte_at(place + i);
		put(w->to, part, size);
	}
	return NULL;
}

/* A task that cannot begin closes nothing. */
static void *pipes(void *pass)
{
	int fds[2], error;

	need(weft_pipe(fds));
	struct way w = {fds[0], fds[1], BYTES};
	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, reads_pipe, &w);
	if (error)
		weft_close(fds[0]);
	error = error ? error : weft_scope_spawn(&scope, writes_pipe, &w);
	if (error) {
		weft_close(fds[1]);
		weft_scope_cancel(&scope, error);
	}
	need(weft_scope_wait(&scope));
	return pass;
}

static void *vectors(void *pass)
{
	char one[3], two[5], three[8] = {0};
	struct iovec out[] = {{"ab", 2}, {"cdefgh", 6}}, parts[] = {{one, sizeof one}, {two, sizeof two}};
	struct msghdr whole = {.msg_iov = out, .msg_iovlen = 2};
	int64_t sent;
	int fds[2];

	need(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	weft_defer(close_fd, &fds[0]);
	weft_defer(close_fd, &fds[1]);
	sent = need(weft_pwritev(fds[1], out, 2, -1));
	CHECK(sent == 8 || sent == 2);
	CHECK(need(weft_preadv(fds[0], parts, 1, -1)) == (sent == 8 ? 3 : 2));
	if (sent == 8)
		CHECK(need(weft_read_all(fds[0], two, 5)) == 5 && !memcmp(two, "defgh", 5));
	CHECK(!memcmp(one, "abc", sent == 8 ? 3 : 2));
	sent = need(weft_sendmsg(fds[1], &whole, 0));
	CHECK(sent == 8 || sent == 2);
	whole = (struct msghdr){.msg_iov = &(struct iovec){three, 8}, .msg_iovlen = 1};
	CHECK(need(weft_recvmsg(fds[0], &whole, 0)) == sent && !memcmp(three, "abcdefgh", (size_t)sent));
	CHECK(weft_preadv_until(fds[0], parts, 2, -1, in(MS)) < 0);
	return pass;
}

static void *receives_datagrams(void *argument)
{
	const struct way *w = argument;
	char got[4][4];
	struct iovec parts[4];
	struct mmsghdr messages[4];
	int64_t count, i;
	size_t seen = 0;

	for (i = 0; i < 4; i++) {
		parts[i] = (struct iovec){got[i], 4};
		messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
	}
	while (seen < w->bytes) {
		count = need(weft_recvmmsg(w->from, messages, 4, 0));
		CHECK(count > 0);
		for (i = 0; i < count; i++)
			CHECK(messages[i].msg_len == 4 && got[i][0] == (char)seen++);
	}
	return NULL;
}

static void *sends_datagrams(void *argument)
{
	const struct way *w = argument;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char texts[4][4] = {{0}};
	struct iovec parts[4];
	struct mmsghdr messages[4];
	int i, sent = 0;

	to.sin_port = htons((uint16_t)need(weft_port(w->from)));
	CHECK(need(weft_sendto(w->to, texts[0], 4, 0, (struct sockaddr *)&to, sizeof to)) == 4);
	for (i = 0; i < 4; i++) {
		texts[i][0] = (char)(i + 1);
		parts[i] = (struct iovec){texts[i], 4};
		messages[i] = (struct mmsghdr){
		    .msg_hdr = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &parts[i], .msg_iovlen = 1}};
	}
	while (sent < 4)
		sent += (int)need(weft_sendmmsg(w->to, messages + sent, (unsigned)(4 - sent), 0));
	return NULL;
}

static void *datagrams(void *pass)
{
	int fds[2];

	fds[0] = (int)need(weft_listen("127.0.0.1", 0, 0, WEFT_LISTEN_UDP));
	weft_defer(close_fd, &fds[0]);
	fds[1] = (int)need(weft_socket(AF_INET, SOCK_DGRAM, 0));
	weft_defer(close_fd, &fds[1]);
	struct way w = {fds[0], fds[1], 5};
	WEFT_SCOPE(scope);
	spawn(&scope, receives_datagrams, &w);
	spawn(&scope, sends_datagrams, &w);
	need(weft_scope_wait(&scope));
	return pass;
}

static void removes(char **name)
{
	unlink(*name);
}

static void *files(void *pass)
{
	char name_[64], *name = name_, text[16];
	struct stat status;
	int64_t offset = 2, sent;
	int fd, to[2], through[2];

	snprintf(name_, sizeof name_, "/tmp/weft-faults-%d", getpid());
	weft_defer(removes, &name);
	fd = (int)need(weft_open(name, O_RDWR | O_CREAT, 0600));
	weft_defer(close_fd, &fd);
	for (sent = 0; sent < 12;)
		sent += need(weft_pwrite(fd, &"hello, world"[sent], 12 - (size_t)sent, sent));
	sent = need(weft_pread(fd, text, 5, 7));
	CHECK(sent > 0 && !memcmp(text, "world", (size_t)sent));
	CHECK(need(weft_read_all(fd, text, sizeof text)) == 12 && !memcmp(text, "hello, world", 12));
	need(weft_fallocate(fd, 0, 4, 8));
	need(weft_fsync(fd));
	need(weft_fdatasync(fd));
	need(weft_fstatat(AT_FDCWD, name, &status, 0));
	CHECK(status.st_size == 12);
	need(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, to));
	weft_defer(close_fd, &to[0]);
	weft_defer(close_fd, &to[1]);
	sent = need(weft_sendfile(to[0], fd, &offset, 4));
	CHECK(sent > 0 && offset == 2 + sent);
	CHECK(need(weft_read_all(to[1], text, (size_t)sent)) == sent && !memcmp(text, "llo,", (size_t)sent));
	need(weft_pipe(through));
	weft_defer(close_fd, &through[0]);
	weft_defer(close_fd, &through[1]);
	put(through[1], "through", 7);
	sent = need(weft_splice(through[0], to[0], 7, 0));
	CHECK(sent > 0 && need(weft_read_all(to[1], text, (size_t)sent)) == sent);
	CHECK(!memcmp(text, "through", (size_t)sent));
	return pass;
}

static void *watching(void *pass)
{
	char name_[64], *name = name_;
	weft_file_watch_t watch;
	weft_file_change_t change;
	int64_t number;
	int fd;

	snprintf(name_, sizeof name_, "/tmp/weft-faults-watched-%d", getpid());
	weft_defer(removes, &name);
	fd = (int)need(weft_open(name, O_RDWR | O_CREAT, 0600));
	weft_defer(close_fd, &fd);
	need(weft_file_watch_open(&watch));
	weft_defer(close_fd, &watch.fd);
	number = need(weft_file_watch_add(&watch, name, IN_MODIFY | IN_CLOSE_WRITE));
	put(fd, "change", 1);
	need(weft_file_watch_next(&watch, &change));
	CHECK(change.watch == number && change.events == IN_MODIFY && !change.name[0]);
	return pass;
}

/* The reader of the bytes is cancelled, or times out, again and again: one of the readers gets each byte,
 * exactly once. */
enum { NUMBERS = 120 };

struct numbers {
	int fd;
	unsigned received;
};

static void *sends_numbers(void *argument)
{
	const struct numbers *n = argument;
	unsigned char number;

	for (number = 0; number < NUMBERS; number++) {
		CHECK(need(weft_write(n->fd, &number, 1)) == 1);
		if (number % 4 == 0)
			weft_sleep(MS / 20);
	}
	need(weft_shutdown(n->fd, SHUT_WR));
	return NULL;
}

static void *receives_numbers(void *argument)
{
	struct numbers *n = argument;
	unsigned char number;
	int64_t got;

	while ((got = need(weft_read_until(n->fd, &number, 1, in(MS)))) > 0)
		CHECK(number == n->received++);
	return NULL;
}

/* Reads until the end, with one task after the other. */
static void *cancels(void *argument)
{
	struct numbers *from = argument;
	weft_task_t task;
	int error;

	do {
		WEFT_SCOPE(inner);
		need(weft_scope_spawn_with(&inner, &task, receives_numbers, from, NULL));
		(void)weft_sleep(from->received % 3 * MS / 30);
		weft_task_cancel(&task);
		error = weft_join(&task, NULL);
		(void)weft_scope_wait(&inner);
		if (error != -ECANCELED && error != -ETIMEDOUT)
			need(error);
	} while (error);
	CHECK(from->received == NUMBERS);
	return NULL;
}

static void *ends_early(void *pass)
{
	int fds[2];

	need(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	weft_defer(close_fd, &fds[0]);
	weft_defer(close_fd, &fds[1]);
	struct numbers to = {fds[1], 0}, from = {fds[0], 0};
	WEFT_SCOPE(scope);
	spawn(&scope, sends_numbers, &to);
	spawn(&scope, cancels, &from);
	need(weft_scope_wait(&scope));
	return pass;
}

static void *reads_closed(void *fd)
{
	char byte = 0;

	return (void *)(intptr_t)weft_read(*(int *)fd, &byte, 1);
}

static void *closing(void *pass)
{
	const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	weft_task_t task;
	int fds[2], kept, closed;
	void *result;

	need(weft_pipe(fds));
	weft_defer(close_fd, &fds[1]);
	kept = fds[0];
	WEFT_SCOPE(scope);
	if (weft_scope_spawn_with(&scope, &task, reads_closed, &kept, &codes)) {
		weft_close(fds[0]);
		weft_task_fail(-ENOMEM);
	}
	weft_sleep(MS);
	closed = weft_close(fds[0]);
	need(weft_join(&task, &result));
	CHECK((intptr_t)result < 0);
	need(weft_scope_wait(&scope));
	CHECK(fcntl(kept, F_GETFD) == -1);
	need(closed);
	if ((intptr_t)result != -ECANCELED)
		weft_task_fail((int)(intptr_t)result);
	return pass;
}

static void *writes_soon(void *fd)
{
	weft_sleep(MS / 5);
	CHECK(need(weft_write(*(int *)fd, "x", 1)) == 1);
	return NULL;
}

static void *polls(void *fd)
{
	char byte;

	CHECK(need(weft_poll(*(int *)fd, POLLIN)) == POLLIN);
	CHECK(need(weft_read(*(int *)fd, &byte, 1)) == 1);
	return NULL;
}

static void *polling(void *pass)
{
	int fds[2];

	need(weft_pipe(fds));
	weft_defer(close_fd, &fds[0]);
	weft_defer(close_fd, &fds[1]);
	CHECK(need(weft_poll(fds[1], POLLOUT)) == POLLOUT);
	WEFT_SCOPE(scope);
	spawn(&scope, polls, &fds[0]);
	spawn(&scope, writes_soon, &fds[1]);
	need(weft_scope_wait(&scope));
	return pass;
}

static void *processes(void *pass)
{
	char *const fails[] = {"sh", "-c", "exit 7", NULL};
	siginfo_t info;
	sigset_t set;
	int status;
	pid_t process = (pid_t)need(weft_spawn_process(fails, NULL, (int[]){-1, 1, 2}));
	int64_t got = weft_waitpid(process, &status);

	/* The process must be waited for, even if the first wait failed. */
	if (got < 0) {
		CHECK(weft_waitpid(process, &status) == process);
		need(got);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	got = weft_sigwait(&set, &info);
	if (got < 0) {
		CHECK(weft_sigwait(&set, &info) == SIGUSR1);
		need(got);
	}
	CHECK(got == SIGUSR1);
	return pass;
}

static void *locals(void *pass)
{
	char name[64];
	int listener, fd = -1, other;

	weft_defer(close_fd, &fd);
	snprintf(name, sizeof name, "/tmp/weft-faults-%d.socket", getpid());
	listener = (int)need(weft_listen(name, 0, 0, 0));
	need(weft_close(listener));
	listener = (int)need(weft_listen(name, 0, 0, 0)); /* the socket's file remains, and no process listens */
	weft_defer(close_fd, &listener);
	do { /* the connection may have been shed */
		close_fd(&fd);
		fd = -1;
		fd = (int)need(weft_dial(name, NULL));
		other = weft_accept_until(listener, NULL, NULL, 0, in(100 * MS));
	} while (other == -ETIMEDOUT);
	need(weft_close((int)need(other)));
	unlink(name);
	return pass;
}

void *posix_names(void *pass); /* posix.c */

static const struct test scenarios[] = {T(tcp),	       T(pipes),   T(vectors), T(datagrams), T(files),	T(watching),
					T(ends_early), T(closing), T(polling), T(processes), T(locals), T(posix_names)};

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* The allowed outcome of a fault: only success; or the error, as the first error that the scenario sees. */
enum outcome { RIGHT, ERROR };

struct kind {
	enum call call;
	int error;
	enum outcome outcome;
	int also; /* another error by which the fault may show */
};

#define K(call, ...)                                                                                                   \
	{                                                                                                              \
		call_##call, __VA_ARGS__                                                                               \
	}
static const struct kind kinds[] = {K(accept4, EINTR, RIGHT, 0),
				    K(accept4, EAGAIN, RIGHT, 0),
				    K(accept4, EMFILE, RIGHT, 0),
				    K(accept4, ENFILE, RIGHT, 0),
				    K(accept4, ECONNABORTED, ERROR, 0),
				    K(accept4, ENOMEM, ERROR, 0),
				    K(aligned_alloc, ENOMEM, ERROR, 0),
				    K(bind, EADDRINUSE, ERROR, 0),
				    K(bind, EACCES, ERROR, 0),
				    K(calloc, ENOMEM, ERROR, EMFILE),
				    K(close, EINTR, RIGHT, 0),
				    K(close, EIO, ERROR, 0),
				    K(connect, EINTR, RIGHT, 0),
				    K(connect, ECONNREFUSED, ERROR, 0),
				    K(connect, ENETUNREACH, ERROR, 0),
				    K(connect, EAGAIN, ERROR, EADDRINUSE), /* weft_listen makes this call */
				    K(dlopen, ENOENT, RIGHT, 0),
				    K(dup3, EBUSY, RIGHT, 0),
				    K(dup3, EMFILE, RIGHT, 0),
				    K(epoll_create1, EMFILE, ERROR, 0),
				    K(epoll_create1, ENOMEM, ERROR, 0),
				    K(epoll_ctl, ENOMEM, ERROR, 0),
				    K(epoll_ctl, ENOSPC, ERROR, 0),
				    K(epoll_pwait2, EINTR, RIGHT, 0),
				    K(epoll_pwait2, ENOSYS, RIGHT, 0),
				    K(eventfd, EMFILE, ERROR, 0),
				    K(eventfd, ENFILE, ERROR, 0),
				    K(eventfd, ENOMEM, ERROR, 0),
				    K(fdatasync, EINTR, RIGHT, 0),
				    K(fdatasync, EIO, ERROR, 0),
				    K(fstat, ENOMEM, ERROR, 0),
				    K(fstatat, EINTR, RIGHT, 0),
				    K(fstatat, ENOMEM, ERROR, 0),
				    K(fsync, EINTR, RIGHT, 0),
				    K(fsync, EIO, ERROR, 0),
				    K(getaddrinfo, EAI_MEMORY, ERROR, ENOMEM),
				    K(getaddrinfo, EAI_AGAIN, ERROR, EAGAIN),
				    K(getsockname, ENOBUFS, ERROR, 0),
				    K(getsockopt, ENOBUFS, ERROR, 0),
				    K(inotify_add_watch, ENOSPC, ERROR, 0),
				    K(inotify_add_watch, EINTR, RIGHT, 0),
				    K(inotify_init1, EMFILE, ERROR, 0),
				    K(inotify_init1, ENOMEM, ERROR, 0),
				    K(listen, EADDRINUSE, ERROR, 0),
				    K(malloc, ENOMEM, ERROR, 0),
				    K(open, EMFILE, RIGHT, 0),
				    K(openat, EINTR, RIGHT, 0),
				    K(openat, EMFILE, ERROR, 0),
				    K(openat, ENFILE, ERROR, 0),
				    K(openat, ENOMEM, ERROR, 0),
				    K(pipe2, EMFILE, ERROR, 0),
				    K(pipe2, ENFILE, ERROR, 0),
				    K(poll, EINTR, RIGHT, 0),
				    K(poll, ENOMEM, ERROR, 0),
				    K(posix_spawn_file_actions_init, ENOMEM, ERROR, 0),
				    K(posix_spawnattr_init, ENOMEM, ERROR, 0),
				    K(posix_spawnp, EAGAIN, ERROR, 0),
				    K(posix_spawnp, ENOMEM, ERROR, 0),
				    K(pread, EINTR, RIGHT, 0),
				    K(pread, EIO, ERROR, 0),
				    K(pread, LESS, RIGHT, 0),
				    K(preadv2, EINTR, RIGHT, 0),
				    K(preadv2, EAGAIN, RIGHT, 0),
				    K(preadv2, EIO, ERROR, 0),
				    K(preadv2, EOPNOTSUPP, ERROR, 0),
				    K(pthread_create, EAGAIN, ERROR, 0),
				    K(pwrite, EINTR, RIGHT, 0),
				    K(pwrite, EIO, ERROR, 0),
				    K(pwrite, ENOSPC, ERROR, 0),
				    K(pwrite, LESS, RIGHT, 0),
				    K(pwritev2, EINTR, RIGHT, 0),
				    K(read, EINTR, RIGHT, 0),
				    K(read, EAGAIN, RIGHT, 0),
				    K(read, EIO, ERROR, 0),
				    K(read, LESS, RIGHT, 0),
				    K(recv, EINTR, RIGHT, 0),
				    K(recv, EAGAIN, RIGHT, 0),
				    K(recv, ECONNRESET, ERROR, 0),
				    K(recv, ENOMEM, ERROR, 0),
				    K(recv, LESS, RIGHT, 0),
				    K(recvmmsg, EINTR, RIGHT, 0),
				    K(recvmmsg, EAGAIN, RIGHT, 0),
				    K(recvmmsg, ENOMEM, ERROR, 0),
				    K(recvmmsg, LESS, RIGHT, 0),
				    K(recvmsg, EINTR, RIGHT, 0),
				    K(recvmsg, EAGAIN, RIGHT, 0),
				    K(recvmsg, ENOMEM, ERROR, 0),
				    K(recvmsg, LESS, RIGHT, 0),
				    K(send, EINTR, RIGHT, 0),
				    K(send, EAGAIN, RIGHT, 0),
				    K(send, ECONNRESET, ERROR, 0),
				    K(send, ENOBUFS, ERROR, 0),
				    K(send, LESS, RIGHT, 0),
				    K(sendfile, EINTR, RIGHT, 0),
				    K(sendfile, EAGAIN, RIGHT, 0),
				    K(sendfile, EIO, ERROR, 0),
				    K(sendfile, LESS, RIGHT, 0),
				    K(sendmmsg, EINTR, RIGHT, 0),
				    K(sendmmsg, EAGAIN, RIGHT, 0),
				    K(sendmmsg, ENOBUFS, ERROR, 0),
				    K(sendmmsg, LESS, RIGHT, 0),
				    K(sendmsg, EINTR, RIGHT, 0),
				    K(sendmsg, EAGAIN, RIGHT, 0),
				    K(sendmsg, ENOBUFS, ERROR, 0),
				    K(sendmsg, LESS, RIGHT, 0),
				    K(setsockopt, ENOMEM, RIGHT, 0),
				    K(shutdown, ENOTCONN, ERROR, 0),
				    K(sigaction, EINVAL, RIGHT, 0),
				    K(signalfd, EMFILE, ERROR, 0),
				    K(signalfd, ENOMEM, ERROR, 0),
				    K(socket, EMFILE, ERROR, 0),
				    K(socket, ENFILE, ERROR, 0),
				    K(socket, ENOBUFS, ERROR, 0),
				    K(socketpair, EMFILE, ERROR, 0),
				    K(splice, EINTR, RIGHT, 0),
				    K(splice, EAGAIN, RIGHT, 0),
				    K(splice, ENOMEM, ERROR, 0),
				    K(splice, LESS, RIGHT, 0),
				    K(waitpid, EINTR, RIGHT, 0),
				    K(write, EINTR, RIGHT, 0),
				    K(write, EAGAIN, RIGHT, 0),
				    K(write, EPIPE, ERROR, 0),
				    K(write, LESS, RIGHT, 0),
				    K(wake, EINTR, RIGHT, 0),
				    K(pidfd_open, EMFILE, ERROR, 0),
				    K(pidfd_open, ENOSYS, ERROR, 0),
				    K(ring_init, EPERM, RIGHT, 0),
				    K(ring_init, ENOSYS, RIGHT, 0),
				    K(ring_init, ENOMEM, RIGHT, 0),
				    K(ring_init, EMFILE, RIGHT, 0),
				    K(ring_register, EBUSY, RIGHT, 0),
				    K(ring_enter, EINTR, RIGHT, 0),
				    K(ring_enter, EAGAIN, RIGHT, 0),
				    K(ring_enter, EBUSY, RIGHT, 0),
				    K(ring_enter, LESS, RIGHT, 0),
				    K(op_read, EINTR, RIGHT, 0),
				    K(op_read, EAGAIN, RIGHT, 0),
				    K(op_read, ECANCELED, RIGHT, 0),
				    K(op_read, EIO, ERROR, 0),
				    K(op_read, LESS, RIGHT, 0),
				    K(op_write, EINTR, RIGHT, 0),
				    K(op_write, EAGAIN, RIGHT, 0),
				    K(op_write, ECANCELED, RIGHT, 0),
				    K(op_write, EIO, ERROR, 0),
				    K(op_write, ENOSPC, ERROR, 0),
				    K(op_write, LESS, RIGHT, 0),
				    K(op_recv, EINTR, RIGHT, 0),
				    K(op_recv, EAGAIN, RIGHT, 0),
				    K(op_recv, ECANCELED, RIGHT, 0),
				    K(op_recv, ECONNRESET, ERROR, 0),
				    K(op_recv, ENOMEM, ERROR, 0),
				    K(op_recv, LESS, RIGHT, 0),
				    K(op_send, EINTR, RIGHT, 0),
				    K(op_send, EAGAIN, RIGHT, 0),
				    K(op_send, ECANCELED, RIGHT, 0),
				    K(op_send, ECONNRESET, ERROR, 0),
				    K(op_send, ENOBUFS, ERROR, 0),
				    K(op_send, LESS, RIGHT, 0),
				    K(op_recvmsg, EINTR, RIGHT, 0),
				    K(op_recvmsg, ECANCELED, RIGHT, 0),
				    K(op_recvmsg, ENOMEM, ERROR, 0),
				    K(op_sendmsg, EINTR, RIGHT, 0),
				    K(op_sendmsg, ECANCELED, RIGHT, 0),
				    K(op_sendmsg, ENOBUFS, ERROR, 0),
				    K(op_accept, EINTR, RIGHT, 0),
				    K(op_accept, EAGAIN, RIGHT, 0),
				    K(op_accept, ECANCELED, RIGHT, 0),
				    K(op_accept, EMFILE, RIGHT, 0),
				    K(op_accept, ENFILE, RIGHT, 0),
				    K(op_accept, ECONNABORTED, ERROR, 0),
				    K(op_connect, EINTR, RIGHT, 0),
				    K(op_connect, ECANCELED, RIGHT, 0),
				    K(op_connect, ECONNREFUSED, ERROR, 0),
				    K(op_connect, EAGAIN, ERROR, ECONNREFUSED),
				    K(op_poll, EINTR, RIGHT, 0),
				    K(op_poll, ECANCELED, RIGHT, 0),
				    K(op_poll, ENOMEM, ERROR, 0),
				    K(op_splice, EINTR, RIGHT, 0),
				    K(op_splice, EAGAIN, RIGHT, 0),
				    K(op_splice, ECANCELED, RIGHT, 0),
				    K(op_splice, LESS, RIGHT, 0),
				    K(op_open, EINTR, RIGHT, 0),
				    K(op_open, ECANCELED, RIGHT, 0),
				    K(op_open, EMFILE, ERROR, 0),
				    K(op_allocate, EINTR, RIGHT, 0),
				    K(op_allocate, EINVAL, RIGHT, 0), /* as on an old kernel: a helper thread does it */
				    K(op_allocate, ENOSPC, ERROR, 0),
				    K(op_sync, EINTR, RIGHT, 0),
				    K(op_sync, ECANCELED, RIGHT, 0),
				    K(op_sync, EIO, ERROR, 0)};

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static void hangs(int signal)
{
	(void)signal;
	dprintf(1, "not ok - %s: hangs\n", doing);
	if (getenv("STOP"))
		raise(SIGSTOP); /* stops for a debugger */
	_exit(1);
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

struct runs {
	weft_fn_t *fn;
	struct fault *fault; /* NULL: no fault, only count the calls */
	bool came;
	int first, second; /* the results of the two runs */
};

static int once(weft_fn_t *fn)
{
	weft_task_t task;
	int error;

	WEFT_SCOPE(scope);
	error = weft_scope_spawn_with(&scope, &task, fn, NULL, NULL);
	if (!error)
		error = weft_join(&task, NULL);
	(void)weft_scope_wait(&scope);
	return error;
}

/* With a planned fault, the first run meets it. The second run always has no fault. */
static void *twice(void *argument)
{
	struct runs *r = argument;

	r->first = once(r->fn);
	r->came = shim_end();
	r->second = once(r->fn);
	return r;
}

static int run(struct runs *r, unsigned workers)
{
	weft_rt_config_t config = {.workers = workers};
	int error;

	alarm(PATIENCE);
	r->first = r->second = 0;
	shim_plan(r->fault);
	error = weft_rt_run(&config, twice, r, NULL);
	r->came |= shim_end();
	alarm(0);
	return error;
}

static int complain(const char *what, int64_t number)
{
	printf("not ok - %s: %s %lld\n", doing, what, (long long)number);
	return 1;
}

/* The first task that fails reports its error. That may be a different task, because its connection was closed. */
static bool may_be(const struct kind *k, int error)
{
	if (!error || k->outcome == RIGHT)
		return !error;
	/* The other side was closed, or the test for an address in use failed. */
	return error == -k->error || error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN ||
	       error == -EADDRINUSE || (k->also && error == -k->also);
}

/* Checks that a run leaves nothing in the process. */
static int check_rest(unsigned fds, long blocks)
{
	if (descriptors() != fds)
		return complain("descriptors left:", (int64_t)descriptors() - fds);
	if (shim_blocks() > blocks)
		return complain("blocks of memory left:", shim_blocks() - blocks);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return complain("a child is left, errno", errno);
	return 0;
}

/* Runs with one fault. Returns -1 if the fault did not occur. */
static int try_fault(const struct test *s, unsigned workers, const struct kind *k, unsigned nth)
{
	struct fault fault = {k->call, nth, k->error};
	struct runs r = {.fn = s->fn, .fault = &fault};
	unsigned fds = descriptors();
	long blocks = shim_blocks();
	int error;

	snprintf(doing, sizeof doing, "%s: %s number %u: %s", s->name, shim_name(k->call), nth,
		 k->error == LESS ? "less" : strerrorname_np(k->error));
	error = run(&r, workers);
	if (!r.came)
		return -1;
	if (!may_be(k, error))
		return complain("the runtime ends with", error);
	if (!may_be(k, r.first))
		return complain("ends with", r.first);
	if (r.second)
		return complain("the run after it ends with", r.second);
	return check_rest(fds, blocks);
}

/* Tries all of the first calls, and ever fewer of the later calls. */
static unsigned after(unsigned nth, bool whole)
{
	return whole || nth < 3 ? nth + 1 : nth + 1 + nth * 2;
}

static int try_kind(const struct test *s, unsigned workers, const struct kind *k, unsigned count, bool whole)
{
	unsigned nth, most = whole ? 200 : 1000;
	int bad, failed = 0;

	for (nth = 1; nth <= count && nth <= most; nth = after(nth, whole)) {
		bad = try_fault(s, workers, k, nth);
		failed += bad > 0;
		if (bad > 0 && !whole)
			break;
	}
	return failed;
}

static int try_scenario(const struct test *s, unsigned workers, bool whole, const char *only)
{
	struct runs r = {.fn = s->fn};
	unsigned counts[CALLS_END], i, tried = 0;
	int failed = 0;

	snprintf(doing, sizeof doing, "%s", s->name);
	for (i = 0; i < 3; i++)
		if (run(&r, workers) || r.first || r.second)
			return complain("without a fault ends with", r.first ? r.first : r.second);
	for (i = 0; i < CALLS_END; i++)
		counts[i] = shim_count(i);
	for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (only && strcmp(only, shim_name(kinds[i].call)) != 0)
			continue;
		tried += counts[kinds[i].call] > 0;
		failed += try_kind(s, workers, &kinds[i], counts[kinds[i].call], whole);
	}
	if (!failed)
		printf("ok - %s, %u kinds of faults\n", s->name, tried);
	return failed;
}

int main(int argc, char **argv)
{
	unsigned workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	bool whole = argc > 2 && !strcmp(argv[2], "whole");
	sigset_t set;
	size_t i;
	int failed = 0;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, hangs);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (argc <= 3 || !strcmp(argv[3], scenarios[i].name))
			failed += try_scenario(&scenarios[i], workers, whole, argc > 4 ? argv[4] : NULL);
#ifdef WEFT_TINY
	if (argc <= 3 && !strcmp(getenv("WEFT_IO") ? getenv("WEFT_IO") : "", "io_uring") && !shim_overflows()) {
		printf("not ok - no completion queue has overflown, though they have room for two\n");
		return 1;
	}
#endif
	return failed != 0;
}
