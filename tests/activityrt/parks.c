/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each call of src/activity/libc_calls.def that parks: parks [task WORKERS]. A case creates the object that a call
 * waits for, makes the call, and ends its wait. The oracle makes the call in a thread, by libc; then an activity makes
 * it, while another activity of the same thread is to end the wait. Both must have the same result and errno. All cases
 * wait at the same time. Then each is called by the address of libc's function, and each call that can be cancelled is.
 */
#define _GNU_SOURCE
#include <weft/charcoal.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define must(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s: errno %d\n", __FILE__, __LINE__, #x, errno);                       \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

struct world {
	int p[2], s[2], fd, other, id, value;
	volatile int flag;
	char path[64], text[8192];
	sem_t semaphore, goes;
	pthread_t thread;
	thrd_t c11;
	mqd_t queue;
	FILE *stream;
	pid_t child;
	struct sockaddr_un at;
	struct iovec parts[2];
	struct {
		long type;
		char text[8];
	} message;
	struct mmsghdr messages[1];
	struct epoll_event event;
	fd_set in;
	siginfo_t info;
	sigset_t set;
	void *joined;
	int64_t offset;
};

static struct timespec after(clockid_t clock, long milliseconds)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += milliseconds % 1000 * 1000000;
	t.tv_sec += milliseconds / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* ---- objects of waits -------------------------------------------------------------------------------------------- */

static void pipes(struct world *w)
{
	must(!pipe2(w->p, O_CLOEXEC));
	w->parts[0] = (struct iovec){w->text, 2};
	w->parts[1] = (struct iovec){w->text + 2, 3};
}

static void full_pipe(struct world *w)
{
	pipes(w);
	must(fcntl(w->p[1], F_SETPIPE_SZ, 4096) == 4096);
	must(write(w->p[1], w->text, 4096) == 4096);
}

static void sockets(struct world *w)
{
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->s));
	w->parts[0] = (struct iovec){w->text, 5};
	w->messages[0].msg_hdr = (struct msghdr){.msg_iov = w->parts, .msg_iovlen = 1};
}

static void full_socket(struct world *w)
{
	sockets(w);
	while (send(w->s[0], w->text, sizeof w->text, MSG_DONTWAIT) > 0)
		continue;
	while (send(w->s[0], w->text, 1, MSG_DONTWAIT) > 0)
		continue;
}

static void drain(int fd, char *text)
{
	while (recv(fd, text, 4096, MSG_DONTWAIT) > 0)
		continue;
}

static void temporary(struct world *w)
{
	snprintf(w->path, sizeof w->path, "/tmp/weft-parks-XXXXXX");
	w->fd = mkstemp(w->path);
	must(w->fd >= 0);
	must(write(w->fd, "0123456789", 10) == 10);
}

static void file(struct world *w)
{
	temporary(w);
	w->other = open(w->path, O_RDWR | O_CLOEXEC);
	must(w->other >= 0);
	unlink(w->path);
	w->parts[0] = (struct iovec){w->text, 2};
	w->parts[1] = (struct iovec){w->text + 2, 3};
}

static void fifo(struct world *w)
{
	temporary(w);
	unlink(w->path);
	must(!mkfifo(w->path, 0600));
}

static void open_other_end(struct world *w, int flags)
{
	while ((w->other = open(w->path, flags | O_NONBLOCK)) < 0 && errno == ENXIO)
		usleep(1000);
	must(w->other >= 0);
}

static void listener(struct world *w)
{
	w->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	w->at.sun_family = AF_UNIX;
	must(!bind(w->fd, (struct sockaddr *)&w->at, sizeof(sa_family_t)) && !listen(w->fd, 0));
	socklen_t size = sizeof w->at;
	getsockname(w->fd, (struct sockaddr *)&w->at, &size);
	w->value = (int)size;
	w->other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int knock(struct world *w, int fd)
{
	return connect(fd, (struct sockaddr *)&w->at, (socklen_t)w->value);
}

static void full_listener(struct world *w)
{
	listener(w);
	while (!knock(w, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)))
		continue;
	must(errno == EAGAIN);
	fcntl(w->fd, F_SETFL, O_NONBLOCK);
}

static void admit(struct world *w)
{
	while (accept(w->fd, NULL, NULL) >= 0)
		continue;
}

static void epolls(struct world *w)
{
	pipes(w);
	w->fd = epoll_create1(EPOLL_CLOEXEC);
	w->event.events = EPOLLIN;
	must(!epoll_ctl(w->fd, EPOLL_CTL_ADD, w->p[0], &w->event));
}

static void queue(struct world *w, int full)
{
	static int number;
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 8};

	snprintf(w->path, sizeof w->path, "/weft-parks-%d-%d", (int)getpid(), number++);
	w->queue = mq_open(w->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600, &attr);
	must(w->queue >= 0);
	mq_unlink(w->path);
	if (full)
		must(!mq_send(w->queue, "full", 4, 1));
}

static void signals(struct world *w, int number)
{
	w->value = number;
	sigemptyset(&w->set);
	sigaddset(&w->set, number);
}

/* A child that ends, or has locked the file, until it reads. */
static void child(struct world *w, int locks)
{
	char c;

	must(!pipe2(w->p, O_CLOEXEC) && !pipe2(w->s, O_CLOEXEC));
	w->child = fork();
	if (!w->child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (locks)
			(void)!lockf(w->fd, F_LOCK, 0);
		(void)!write(w->s[1], "r", 1);
		(void)!read(w->p[0], &c, 1);
		_exit(7);
	}
	must(read(w->s[0], &c, 1) == 1);
}

static void locked_file(struct world *w)
{
	file(w);
	child(w, 1);
}

static void own_lock(struct world *w)
{
	struct flock lock = {.l_type = F_WRLCK};

	file(w);
	must(!fcntl(w->fd, F_OFD_SETLK, &lock));
}

static long lock_other(struct world *w, int fcntl_of(int, int, ...), int command)
{
	struct flock lock = {.l_type = F_WRLCK};

	return fcntl_of(w->other, command, &lock);
}

static void *wait_to_end(void *world)
{
	struct world *w = world;

	while (sem_wait(&w->goes))
		continue;
	return &w->flag;
}

static int wait_to_end_too(void *world)
{
	wait_to_end(world);
	return 11;
}

static void threads(struct world *w)
{
	sem_init(&w->goes, 0, 0);
	must(!pthread_create(&w->thread, NULL, wait_to_end, w));
}

static void semaphores(struct world *w, int value)
{
	w->id = semget(IPC_PRIVATE, 1, 0600);
	must(w->id >= 0 && !semctl(w->id, 0, SETVAL, value));
}

static void messages(struct world *w, int full)
{
	struct msqid_ds limits;

	w->id = msgget(IPC_PRIVATE, 0600);
	must(w->id >= 0 && !msgctl(w->id, IPC_STAT, &limits));
	limits.msg_qbytes = 8;
	must(!msgctl(w->id, IPC_SET, &limits));
	w->message.type = 1;
	if (full)
		must(!msgsnd(w->id, &w->message, 8, 0));
}

static void terminal(struct world *w)
{
	w->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(w->fd >= 0 && !grantpt(w->fd) && !unlockpt(w->fd));
	w->other = open(ptsname(w->fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(w->other >= 0);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

extern ssize_t __read_chk(int, void *, size_t, size_t), __recv_chk(int, void *, size_t, size_t, int),
    __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *),
    __pread_chk(int, void *, size_t, off_t, size_t), __pread64_chk(int, void *, size_t, off_t, size_t);
extern int __poll_chk(struct pollfd *, nfds_t, int, size_t),
    __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t),
    __open_2(const char *, int), __open64_2(const char *, int), __openat_2(int, const char *, int),
    __openat64_2(int, const char *, int);

/* In `call` and `end`, `f` is a struct pollfd of the pipe. */
#define CASE(name, make, call, end)                                                                                    \
	static void make_##name(struct world *w)                                                                       \
	{                                                                                                              \
		(void)w;                                                                                               \
		make;                                                                                                  \
	}                                                                                                              \
	static long call_##name(struct world *w)                                                                       \
	{                                                                                                              \
		struct pollfd f = {w->p[0], POLLIN, 0};                                                                \
		(void)f;                                                                                               \
		return (long)(call);                                                                                   \
	}                                                                                                              \
	static void end_##name(struct world *w)                                                                        \
	{                                                                                                              \
		(void)w;                                                                                               \
		end;                                                                                                   \
	}
#define SAY must(write(w->p[1], "hello", 5) == 5)
#define TELL must(send(w->s[1], "hello", 5, 0) == 5)
#define NOTHING (void)0

CASE(read, pipes(w), read(w->p[0], w->text, 5), SAY)
CASE(__read_chk, pipes(w), __read_chk(w->p[0], w->text, 5, 9), SAY)
CASE(readv, pipes(w), readv(w->p[0], w->parts, 2), SAY)
CASE(write, full_pipe(w), write(w->p[1], w->text, 100), must(read(w->p[0], w->text, 4096) == 4096))
CASE(writev, full_pipe(w), writev(w->p[1], w->parts, 2), must(read(w->p[0], w->text, 4096) == 4096))
CASE(recv, sockets(w), recv(w->s[0], w->text, 5, MSG_WAITALL), TELL)
CASE(__recv_chk, sockets(w), __recv_chk(w->s[0], w->text, 5, 9, 0), TELL)
CASE(recvfrom, sockets(w), recvfrom(w->s[0], w->text, 5, 0, NULL, NULL), TELL)
CASE(__recvfrom_chk, sockets(w), __recvfrom_chk(w->s[0], w->text, 5, 9, 0, NULL, NULL), TELL)
CASE(recvmsg, sockets(w), recvmsg(w->s[0], &w->messages[0].msg_hdr, 0), TELL)
CASE(recvmmsg, sockets(w), recvmmsg(w->s[0], w->messages, 1, 0, NULL), TELL)
CASE(send, full_socket(w), send(w->s[0], w->text, 5, 0), drain(w->s[1], w->text))
CASE(sendto, full_socket(w), sendto(w->s[0], w->text, 5, 0, NULL, 0), drain(w->s[1], w->text))
CASE(sendmsg, full_socket(w), sendmsg(w->s[0], &w->messages[0].msg_hdr, 0), drain(w->s[1], w->text))
CASE(sendmmsg, full_socket(w), sendmmsg(w->s[0], w->messages, 1, 0), drain(w->s[1], w->text))
CASE(accept, listener(w), accept(w->fd, NULL, NULL) >= 0, must(!knock(w, w->other)))
CASE(accept4, listener(w), accept4(w->fd, NULL, NULL, SOCK_CLOEXEC) >= 0, must(!knock(w, w->other)))
CASE(connect, full_listener(w), connect(w->other, (struct sockaddr *)&w->at, (socklen_t)w->value), admit(w))
CASE(poll, pipes(w), poll(&f, 1, -1), SAY)
CASE(__poll_chk, pipes(w), __poll_chk(&f, 1, -1, sizeof f), SAY)
CASE(ppoll, (pthread_sigmask(SIG_BLOCK, NULL, &w->set), pipes(w)), ppoll(&f, 1, NULL, &w->set), SAY)
CASE(__ppoll_chk, pipes(w), __ppoll_chk(&f, 1, NULL, NULL, sizeof f), SAY)
CASE(select, (pipes(w), FD_SET(w->p[0], &w->in)), select(w->p[0] + 1, &w->in, NULL, NULL, NULL), SAY)
CASE(pselect, (pthread_sigmask(SIG_BLOCK, NULL, &w->set), pipes(w), FD_SET(w->p[0], &w->in)),
     pselect(w->p[0] + 1, &w->in, NULL, NULL, NULL, &w->set), SAY)
CASE(epoll_wait, epolls(w), epoll_wait(w->fd, &w->event, 1, -1), SAY)
CASE(epoll_pwait, (pthread_sigmask(SIG_BLOCK, NULL, &w->set), epolls(w)), epoll_pwait(w->fd, &w->event, 1, -1, &w->set),
     SAY)
CASE(epoll_pwait2, (pthread_sigmask(SIG_BLOCK, NULL, &w->set), epolls(w)),
     epoll_pwait2(w->fd, &w->event, 1, NULL, &w->set), SAY)
CASE(eventfd_read, w->fd = eventfd(0, EFD_CLOEXEC), eventfd_read(w->fd, (eventfd_t *)w->text),
     must(!eventfd_write(w->fd, 3)))
CASE(eventfd_write, (w->fd = eventfd(0, EFD_CLOEXEC), eventfd_write(w->fd, UINT64_MAX - 1)), eventfd_write(w->fd, 5),
     must(!eventfd_read(w->fd, (eventfd_t *)w->text)))
CASE(mq_receive, queue(w, 0), mq_receive(w->queue, w->text, 8, NULL), must(!mq_send(w->queue, "abc", 3, 1)))
CASE(mq_timedreceive, queue(w, 0),
     mq_timedreceive(w->queue, w->text, 8, NULL, (struct timespec[]){after(CLOCK_REALTIME, 60000)}),
     must(!mq_send(w->queue, "abc", 3, 1)))
CASE(mq_send, queue(w, 1), mq_send(w->queue, "abc", 3, 1), must(mq_receive(w->queue, w->text, 8, NULL) == 4))
CASE(mq_timedsend, queue(w, 1), mq_timedsend(w->queue, "abc", 3, 1, (struct timespec[]){after(CLOCK_REALTIME, 60000)}),
     must(mq_receive(w->queue, w->text, 8, NULL) == 4))
CASE(sigwait, signals(w, SIGUSR1), sigwait(&w->set, &w->value) * 1000 + w->value, kill(getpid(), SIGUSR1))
CASE(sigwaitinfo, signals(w, SIGUSR2), sigwaitinfo(&w->set, &w->info), kill(getpid(), SIGUSR2))
CASE(sigtimedwait, signals(w, SIGWINCH), sigtimedwait(&w->set, NULL, &(struct timespec){60, 0}),
     kill(getpid(), SIGWINCH))
CASE(nanosleep, NOTHING, nanosleep(&(struct timespec){0, 50000000}, NULL), NOTHING)
CASE(clock_nanosleep, NOTHING,
     clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, (struct timespec[]){after(CLOCK_REALTIME, 50)}, NULL), NOTHING)
CASE(usleep, NOTHING, usleep(50000), NOTHING)
CASE(sleep, NOTHING, sleep(1), NOTHING)
CASE(thrd_sleep, NOTHING, thrd_sleep(&(struct timespec){0, 50000000}, NULL), NOTHING)
static int turns(struct world *w, int turn(void))
{
	while (!w->flag)
		turn();
	return w->flag;
}
static int c11_turn(void)
{
	return thrd_yield(), 0;
}
CASE(sched_yield, NOTHING, turns(w, sched_yield), w->flag = 1)
CASE(thrd_yield, NOTHING, turns(w, c11_turn), w->flag = 1)
CASE(open, fifo(w), open(w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(open64, fifo(w), open64(w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(__open_2, fifo(w), __open_2(w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(__open64_2, fifo(w), __open64_2(w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(openat, fifo(w), openat(AT_FDCWD, w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(openat64, fifo(w), openat64(AT_FDCWD, w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(__openat_2, fifo(w), __openat_2(AT_FDCWD, w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(__openat64_2, fifo(w), __openat64_2(AT_FDCWD, w->path, O_RDONLY) >= 0, open_other_end(w, O_WRONLY))
CASE(creat, fifo(w), creat(w->path, 0600) >= 0, open_other_end(w, O_RDONLY))
CASE(creat64, fifo(w), creat64(w->path, 0600) >= 0, open_other_end(w, O_RDONLY))
CASE(pread, file(w), pread(w->fd, w->text, 5, 7), NOTHING)
CASE(pread64, file(w), pread64(w->fd, w->text, 5, -1), NOTHING)
CASE(__pread_chk, file(w), __pread_chk(w->fd, w->text, 5, 7, 9), NOTHING)
CASE(__pread64_chk, file(w), __pread64_chk(w->fd, w->text, 5, 9, 9), NOTHING)
CASE(pwrite, file(w), pwrite(w->fd, "ab", 2, 0), NOTHING)
CASE(pwrite64, pipes(w), pwrite64(w->p[1], "ab", 2, 0), NOTHING)
CASE(preadv, file(w), preadv(w->fd, w->parts, 2, 1), NOTHING)
CASE(preadv64, pipes(w), preadv64(w->p[0], w->parts, 2, 1), NOTHING)
CASE(preadv2, pipes(w), preadv2(w->p[0], w->parts, 2, -1, 0), SAY)
CASE(preadv64v2, file(w), preadv64v2(w->fd, w->parts, 2, -1, RWF_NOWAIT), NOTHING)
CASE(pwritev, file(w), pwritev(w->fd, w->parts, 2, 1), NOTHING)
CASE(pwritev64, file(w), pwritev64(w->fd, w->parts, -2, 1), NOTHING)
CASE(pwritev2, full_pipe(w), pwritev2(w->p[1], w->parts, 2, -1, 0), must(read(w->p[0], w->text, 4096) == 4096))
CASE(pwritev64v2, file(w), pwritev64v2(w->fd, w->parts, 2, 1, RWF_SYNC), NOTHING)
CASE(sendfile, (file(w), full_socket(w)), sendfile(w->s[0], w->fd, &w->offset, 5), drain(w->s[1], w->text))
CASE(sendfile64, file(w), sendfile64(-1, w->fd, &w->offset, 5), NOTHING)
CASE(splice, (pipes(w), w->s[0] = w->p[0], w->s[1] = w->p[1], pipes(w)), splice(w->p[0], NULL, w->s[1], NULL, 5, 0),
     SAY)
CASE(tee, (pipes(w), w->s[0] = w->p[0], w->s[1] = w->p[1], pipes(w)), tee(w->p[0], w->s[1], 5, 0), SAY)
CASE(vmsplice, full_pipe(w), vmsplice(w->p[1], w->parts, 2, 0), must(read(w->p[0], w->text, 4096) == 4096))
CASE(copy_file_range, file(w), copy_file_range(w->fd, &w->offset, w->other, NULL, 4, 0), NOTHING)
CASE(fcntl, own_lock(w), lock_other(w, fcntl, F_OFD_SETLKW),
     must(!fcntl(w->fd, F_OFD_SETLK, &(struct flock){.l_type = F_UNLCK})))
CASE(fcntl64, locked_file(w), lock_other(w, fcntl64, F_SETLKW), SAY)
CASE(lockf, locked_file(w), lockf(w->fd, F_LOCK, 0), SAY)
CASE(lockf64, locked_file(w), lockf64(w->fd, F_LOCK, 0), SAY)
CASE(flock, (file(w), flock(w->fd, LOCK_EX)), flock(w->other, LOCK_EX), must(!flock(w->fd, LOCK_UN)))
CASE(fsync, file(w), fsync(w->fd), NOTHING)
CASE(fdatasync, pipes(w), fdatasync(w->p[0]), NOTHING)
CASE(syncfs, NOTHING, syncfs(-1), NOTHING)
CASE(msync, NOTHING, msync((void *)4096, 4096, MS_SYNC), NOTHING)
CASE(tcdrain, terminal(w), tcdrain(w->other), NOTHING)
CASE(waitpid, child(w, 0), waitpid(w->child, &w->value, 0) == w->child ? w->value : -1, SAY)
CASE(wait4, child(w, 0), wait4(w->child, &w->value, WUNTRACED, NULL) == w->child ? w->value : -1, SAY)
CASE(waitid, child(w, 0), waitid(P_PID, (id_t)w->child, &w->info, WEXITED) ? -1 : w->info.si_status, SAY)
CASE(wait, child(w, 0), wait(&w->value) == w->child ? w->value : -1, SAY)
CASE(wait3, child(w, 0), wait3(&w->value, 0, NULL) == w->child ? w->value : -1, SAY)
CASE(system, NOTHING, system("sleep 0.05; exit 3"), NOTHING)
CASE(pclose, (w->stream = popen("sleep 0.05; exit 3", "r")), pclose(w->stream), NOTHING)
static long named(const char *name)
{
	struct addrinfo *list = NULL,
			hints = {.ai_flags = AI_NUMERICSERV, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
	int code = getaddrinfo(name, "80", &hints, &list);

	if (!code)
		freeaddrinfo(list);
	return code;
}
CASE(getaddrinfo, NOTHING, named("localhost") * 100 + named(""), NOTHING)
static const struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {0x0100007f}};
CASE(getnameinfo, NOTHING,
     getnameinfo((struct sockaddr *)&here, sizeof here, w->text, 100, w->path, 60, NI_NUMERICSERV) * 100 +
	 getnameinfo((struct sockaddr *)&here, 1, w->text, 100, NULL, 0, NI_NAMEREQD),
     NOTHING)
static long found(const char *name)
{
	struct hostent *host = gethostbyname(name);

	return host ? host->h_length : -h_errno;
}
CASE(gethostbyname, NOTHING, found("localhost") * 100 + found(""), NOTHING)
static long resolved(struct world *w)
{
	struct hostent host, *found;
	int error = gethostbyname_r("localhost", &host, w->text, sizeof w->text, &found, &w->value);

	return error ? -1 : found->h_length;
}
CASE(gethostbyname_r, NOTHING, resolved(w), NOTHING)
CASE(pthread_join, threads(w), pthread_join(w->thread, &w->joined) ? -1 : w->joined == &w->flag, sem_post(&w->goes))
CASE(pthread_timedjoin_np, threads(w),
     pthread_timedjoin_np(w->thread, NULL, (struct timespec[]){after(CLOCK_REALTIME, 60000)}), sem_post(&w->goes))
CASE(thrd_join, (sem_init(&w->goes, 0, 0), thrd_create(&w->c11, wait_to_end_too, w)),
     thrd_join(w->c11, &w->value) * 100 + w->value, sem_post(&w->goes))
CASE(sem_wait, sem_init(&w->semaphore, 0, 0), sem_wait(&w->semaphore), sem_post(&w->semaphore))
CASE(sem_timedwait, sem_init(&w->semaphore, 0, 0),
     sem_timedwait(&w->semaphore, (struct timespec[]){after(CLOCK_REALTIME, 60000)}), sem_post(&w->semaphore))
CASE(sem_clockwait, sem_init(&w->semaphore, 0, 0),
     sem_clockwait(&w->semaphore, CLOCK_MONOTONIC, (struct timespec[]){after(CLOCK_MONOTONIC, 60000)}),
     sem_post(&w->semaphore))
static struct sembuf minus = {0, -1, 0}, plus = {0, 1, 0};
CASE(semop, semaphores(w, 0), semop(w->id, &minus, 1), must(!semop(w->id, &plus, 1)))
CASE(semtimedop, semaphores(w, 0), semtimedop(w->id, &minus, 1, &(struct timespec){60, 0}),
     must(!semtimedop(w->id, &plus, 1, NULL)))
CASE(msgrcv, messages(w, 0), msgrcv(w->id, &w->message, 8, 0, 0), must(!msgsnd(w->id, &w->message, 8, 0)))
CASE(msgsnd, messages(w, 1), msgsnd(w->id, &w->message, 8, 0), must(msgrcv(w->id, &w->message, 8, 0, 0) == 8))

/* More of calls that end without help: by their time, or by an error. */
#define MORE(WEFT__MORE)                                                                                               \
	WEFT__MORE(more_poll, pipes(w), poll(&f, 1, 20))                                                               \
	WEFT__MORE(more_bad, NOTHING, read(-1, w->text, 1))                                                            \
	WEFT__MORE(more_nowait, (pipes(w), fcntl(w->p[0], F_SETFL, O_NONBLOCK)), read(w->p[0], w->text, 1))            \
	WEFT__MORE(more_sem, sem_init(&w->semaphore, 0, 0),                                                            \
		   sem_timedwait(&w->semaphore, (struct timespec[]){after(CLOCK_REALTIME, 20)}))                       \
	WEFT__MORE(more_bad_sem, sem_init(&w->semaphore, 0, 0),                                                        \
		   sem_timedwait(&w->semaphore, &(struct timespec){0, 2000000000}))                                    \
	WEFT__MORE(more_mq, queue(w, 0),                                                                               \
		   mq_timedreceive(w->queue, w->text, 8, NULL, (struct timespec[]){after(CLOCK_REALTIME, 20)}))        \
	WEFT__MORE(more_small, queue(w, 1), mq_receive(w->queue, w->text, 4, NULL))                                    \
	WEFT__MORE(more_signal, signals(w, SIGCONT), sigtimedwait(&w->set, NULL, &(struct timespec){0, 20000000}))     \
	WEFT__MORE(more_join, (threads(w)),                                                                            \
		   pthread_timedjoin_np(w->thread, NULL, (struct timespec[]){after(CLOCK_REALTIME, 20)}))              \
	WEFT__MORE(more_self, NOTHING, pthread_join(pthread_self(), NULL))                                             \
	WEFT__MORE(more_semop, semaphores(w, 0), semtimedop(w->id, &minus, 1, &(struct timespec){0, 20000000}))        \
	WEFT__MORE(more_beyond, (pipes(w), FD_SET(w->p[0], &w->in), FD_SET(1000, &w->in)),                             \
		   select(1001, &w->in, NULL, NULL, &(struct timeval){0, 20000}))                                      \
	WEFT__MORE(more_lock, file(w), lock_other(w, fcntl, F_SETLKW))                                                 \
	WEFT__MORE(more_pread, pipes(w), pread(w->p[0], w->text, 1, 0))                                                \
	WEFT__MORE(more_open, NOTHING, open("/no/such/file", O_RDONLY))                                                \
	WEFT__MORE(more_nanosleep, NOTHING, nanosleep(&(struct timespec){0, -1}, NULL))                                \
	WEFT__MORE(more_thrd_sleep, NOTHING, thrd_sleep(&(struct timespec){0, -1}, NULL))                              \
	WEFT__MORE(more_clock, NOTHING, clock_nanosleep(77, 0, &(struct timespec){0, 1}, NULL))
#define MORE_CASE(name, make, call) CASE(name, make, call, NOTHING)
MORE(MORE_CASE)

enum { ALONE = 1, KEEPS = 2 }; /* KEEPS: cancelling waits for a helper */
static struct {
	const char *name, *how;
	void (*make)(struct world *w);
	long (*call)(struct world *w);
	void (*end)(struct world *w);
	char oracle[100], got[100];
	struct world world;
	activity_t activity;
	pthread_t thread;
	int done;
} cases[] = {
#define WEFT__CALL_BLOCKS(name, why)
#define WEFT__CALL_PARKS(name, how) {#name, #how, make_##name, call_##name, end_##name, "", "", {.fd = -1}, {0}, 0, 0},
#include "../../src/activity/libc_calls.def"
#define MORE_ENTRY(name, make, call) {#name, "", make_##name, call_##name, end_##name, "", "", {.fd = -1}, {0}, 0, 0},
    MORE(MORE_ENTRY)};
enum { CASES = sizeof cases / sizeof *cases };

/* They take any child. */
static int is_alone(int i)
{
	return !strcmp(cases[i].name, "wait") || !strcmp(cases[i].name, "wait3");
}

static void make(int i)
{
	memset(&cases[i].world, 0, sizeof cases[i].world);
	cases[i].done = 0;
	cases[i].make(&cases[i].world);
}

static void run(int i, char *into)
{
	long result;

	errno = 0;
	result = cases[i].call(&cases[i].world);
	snprintf(into, sizeof cases[i].got, "%ld, errno %d", result, result < 0 ? errno : 0);
	cases[i].done = 1;
}

static void *oracle(void *i)
{
	run((int)(intptr_t)i, cases[(intptr_t)i].oracle);
	return NULL;
}

static void ask_oracle(int from, int to, int alone)
{
	int i;

	for (i = from; i < to; i++)
		if (is_alone(i) == alone) {
			make(i);
			must(!pthread_create(&cases[i].thread, NULL, oracle, (void *)(intptr_t)i));
		}
	usleep(100000);
	for (i = from; i < to; i++)
		if (is_alone(i) == alone)
			cases[i].end(&cases[i].world);
	for (i = from; i < to; i++)
		if (is_alone(i) == alone)
			pthread_join(cases[i].thread, NULL);
}

static void by_activities(int from, int to, int alone)
{
	int i;

	for (i = from; i < to; i++) {
		if (is_alone(i) != alone)
			continue;
		no_yield
		{
			make(i);
		}
		activate(&cases[i].activity, i)
		{
			run(i, cases[i].got);
		}
	}
	activity_sleep_ns(100000000);
	for (i = from; i < to; i++)
		if (is_alone(i) == alone)
			cases[i].end(&cases[i].world);
	for (i = from; i < to; i++)
		if (is_alone(i) == alone)
			must(!activity_wait(&cases[i].activity));
}

static int compare(void)
{
	int failed = 0;

	for (int i = 0; i < CASES; i++)
		if (strcmp(cases[i].oracle, cases[i].got)) {
			printf("not ok - %s: %s; libc: %s\n", cases[i].name, cases[i].got, cases[i].oracle);
			failed = 1;
		}
	return failed;
}

/* A plain initializer has the address. */
static struct operations {
	ssize_t (*read)(int fd, void *data, size_t n);
	int (*usleep)(useconds_t microseconds);
	int (*open)(const char *path, int flags, ...);
	int (*abs)(int number);
} operations = {read, usleep, open, abs};

static void by_pointer(void)
{
	struct world w = {0};
	activity_t reads, opens;
	long got = 0;

	no_yield
	{
		fifo(&w);
		pipes(&w);
	}
	activate(&reads)
	{
		got = operations.read(w.p[0], w.text, 5);
	}
	activate(&opens)
	{
		must(operations.open(w.path, O_RDONLY) >= 0);
	}
	must(!operations.usleep(1000) && operations.abs(-72) == 72);
	must(write(w.p[1], "hello", 5) == 5);
	open_other_end(&w, O_WRONLY);
	must(!activity_wait(&reads) && !activity_wait(&opens) && got == 5);
	unlink(w.path);
}

/* A call that waits for a descriptor, a time or a slice of time is cancelled at once. */
static int can_be_cancelled(int i)
{
	static const char *const names[] = {"sem_wait", "sem_timedwait", "sem_clockwait", "pthread_join", "thrd_join"};

	for (size_t n = 0; n < sizeof names / sizeof *names; n++)
		if (!strcmp(cases[i].name, names[n]))
			return 1;
	return (!strcmp(cases[i].how, "READY") && !strstr(cases[i].name, "pwait") && strcmp(cases[i].name, "ppoll") &&
		strcmp(cases[i].name, "pselect")) ||
	       !strcmp(cases[i].how, "TIME");
}

static void cancelled(void)
{
	int i;

	for (i = 0; i < CASES; i++)
		if (can_be_cancelled(i)) {
			no_yield
			{
				make(i);
			}
			activate(&cases[i].activity, i)
			{
				run(i, cases[i].got);
			}
		}
	activity_sleep_ns(20000000);
	for (i = 0; i < CASES; i++)
		if (can_be_cancelled(i))
			activity_cancel(&cases[i].activity);
	for (i = 0; i < CASES; i++)
		if (can_be_cancelled(i)) {
			int error = activity_wait(&cases[i].activity);

			if (error != -ECANCELED || cases[i].done) {
				printf("%s: %d when it was cancelled\n", cases[i].name, error);
				exit(1);
			}
		}
}

static void *first(void *failed)
{
	by_activities(0, CASES, 0);
	for (int i = 0; i < CASES; i++)
		if (is_alone(i))
			by_activities(i, i + 1, 1);
	*(int *)failed = compare();
	by_pointer();
	cancelled();
	return NULL;
}

static void *task(void *failed)
{
	must(!weft_activity_run(NULL, first, failed, NULL));
	return NULL;
}

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = argc > 2 ? atoi(argv[2]) : 1};
	int failed = 1;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGWINCH), sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ask_oracle(0, CASES, 0);
	for (int i = 0; i < CASES; i++)
		if (is_alone(i))
			ask_oracle(i, i + 1, 1);
	if (argc > 1 && !strcmp(argv[1], "task"))
		must(!weft_rt_run(&config, task, &failed, NULL));
	else
		must(!weft_activity_run(NULL, first, &failed, NULL));
	printf("%s - %d calls\n", failed ? "not ok" : "ok", CASES);
	return failed;
}
