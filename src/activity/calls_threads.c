/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twins of libc's calls that wait for other threads and processes: their ends, semaphores, signals, queues. A helper
 * thread waits for an object without a descriptor, in slices of time, so that the call can be cancelled between two
 * slices.
 */
#define _GNU_SOURCE
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "activity/libc_calls.h"

enum { SECOND = 1000000000, SLICE = SECOND / 20 };

static bool is_valid(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < SECOND;
}

/* Converts a time of `clock` to a time of weft_now(). NULL: never. */
static uint64_t deadline_of(clockid_t clock, const struct timespec *time)
{
	struct timespec now;
	int64_t seconds, left;

	if (!time)
		return WEFT_NEVER;
	clock_gettime(clock, &now);
	seconds = (int64_t)time->tv_sec - now.tv_sec;
	if (seconds > INT32_MAX)
		return WEFT_NEVER;
	left = seconds * SECOND + time->tv_nsec - now.tv_nsec;
	return weft_now() + (uint64_t)(left > 0 ? left : 0);
}

/* ---- in slices --------------------------------------------------------------------------------------------------- */

/* A wait on a helper thread. `attempt` waits until `until`, a time of CLOCK_REALTIME, and returns 0 or an error number;
 * ETIMEDOUT: the next slice begins. */
struct sliced {
	int64_t (*attempt)(void *sliced);
	sem_t *semaphore;
	pthread_t thread;
	void **value, *own_value;
	uint64_t deadline;
	struct timespec until;
};

static struct timespec end_of_slice(uint64_t deadline)
{
	uint64_t now = weft_now(), left = deadline > now ? deadline - now : 0;
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)(left < SLICE ? left : SLICE);
	t.tv_sec += t.tv_nsec / SECOND;
	t.tv_nsec %= SECOND;
	return t;
}

static int64_t wait_in_slices(struct sliced *s)
{
	int64_t error;

	do {
		s->until = end_of_slice(s->deadline);
		error = weft_call(s->attempt, s);
	} while (error == ETIMEDOUT && weft_now() < s->deadline);
	return error < 0 ? -error : error;
}

/* Returns 0 or an error number. *value: the result of a thread that has ended. */
static int wait_sliced(const char *name, const struct sliced *how, void **value)
{
	struct sliced *s = weft__record_take(weft__activity_hot.group, sizeof *s);
	uint64_t words[6] = {P(s)};
	int before = errno;
	int64_t error;

	if (!s)
		return ENOMEM;
	*s = *how;
	weft__call_begin(name);
	if (!weft__call_again(WEFT__IN_TASK, (void *)(uintptr_t)wait_in_slices, words, &error))
		error = errno;
	errno = (int)error;
	weft__call_end(error);
	errno = before;
	if (!error && value)
		*value = s->own_value;
	weft__activity_pop(s);
	return (int)error;
}

/* ---- ends of threads --------------------------------------------------------------------------------------------- */

static int64_t join_slice(void *sliced)
{
	struct sliced *s = sliced;

	return pthread_timedjoin_np(s->thread, &s->own_value, &s->until);
}

static int join(const char *name, pthread_t thread, void **value, uint64_t deadline)
{
	struct sliced s = {.attempt = join_slice, .thread = thread, .deadline = deadline};
	int error = pthread_tryjoin_np(thread, value);

	if (error != EBUSY)
		return error;
	return pthread_equal(thread, pthread_self()) ? EDEADLK : wait_sliced(name, &s, value);
}

TWIN(int, pthread_join, (pthread_t thread, void **value))
{
	return join("pthread_join", thread, value, WEFT_NEVER);
}

TWIN(int, pthread_timedjoin_np, (pthread_t thread, void **value, const struct timespec *until))
{
	if (until && !is_valid(until))
		return EINVAL;
	return join("pthread_timedjoin_np", thread, value, deadline_of(CLOCK_REALTIME, until));
}

TWIN(int, thrd_join, (thrd_t thread, int *result))
{
	void *value;
	int error = join("thrd_join", thread, &value, WEFT_NEVER);

	if (!error && result)
		*result = (int)(intptr_t)value;
	return error ? thrd_error : thrd_success;
}

/* ---- semaphores -------------------------------------------------------------------------------------------------- */

static int64_t semaphore_slice(void *sliced)
{
	struct sliced *s = sliced;

	return sem_timedwait(s->semaphore, &s->until) ? errno : 0;
}

static int wait_semaphore(const char *name, sem_t *semaphore, uint64_t deadline)
{
	struct sliced s = {.attempt = semaphore_slice, .semaphore = semaphore, .deadline = deadline};
	int before = errno, error;

	if (!sem_trywait(semaphore))
		return 0;
	if (errno != EAGAIN)
		return -1;
	errno = before;
	error = wait_sliced(name, &s, NULL);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

TWIN(int, sem_wait, (sem_t * semaphore))
{
	return wait_semaphore("sem_wait", semaphore, WEFT_NEVER);
}

static int wait_semaphore_until(const char *name, sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	int before = errno;

	if (is_valid(until))
		return wait_semaphore(name, semaphore, deadline_of(clock, until));
	if (!sem_trywait(semaphore)) {
		errno = before;
		return 0;
	}
	errno = EINVAL;
	return -1;
}

TWIN(int, sem_timedwait, (sem_t * semaphore, const struct timespec *until))
{
	return wait_semaphore_until("sem_timedwait", semaphore, CLOCK_REALTIME, until);
}

TWIN(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until))
{
	if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)
		return wait_semaphore_until("sem_clockwait", semaphore, clock, until);
	errno = EINVAL;
	return -1;
}

/* ---- System V's semaphores and messages -------------------------------------------------------------------------- */

/* If an operation must not wait (IPC_NOWAIT), the helper's call fails with EAGAIN, too. */
TWIN(int, semtimedop, (int set, struct sembuf *operations, size_t count, const struct timespec *timeout))
{
	static const struct timespec none;
	uint64_t words[6] = {I(set), P(operations), count, P(timeout)};
	int error = errno, result = semtimedop(set, operations, count, &none);

	if (!result || errno != EAGAIN)
		return result;
	return (int)weft__call_by_helper("semtimedop", (void *)(uintptr_t)semtimedop, words, error);
}

TWIN(int, semop, (int set, struct sembuf *operations, size_t count))
{
	return weft__yielding_semtimedop(set, operations, count, NULL);
}

TWIN(ssize_t, msgrcv, (int queue, void *message, size_t room, long type, int flags))
{
	uint64_t words[6] = {I(queue), P(message), room, I(type), I(flags)};
	int error = errno;
	ssize_t result = msgrcv(queue, message, room, type, flags | IPC_NOWAIT);

	if (result >= 0 || errno != ENOMSG || flags & IPC_NOWAIT)
		return result;
	return weft__call_by_helper("msgrcv", (void *)(uintptr_t)msgrcv, words, error);
}

TWIN(int, msgsnd, (int queue, const void *message, size_t bytes, int flags))
{
	uint64_t words[6] = {I(queue), P(message), bytes, I(flags)};
	int error = errno, result = msgsnd(queue, message, bytes, flags | IPC_NOWAIT);

	if (!result || errno != EAGAIN || flags & IPC_NOWAIT)
		return result;
	return (int)weft__call_by_helper("msgsnd", (void *)(uintptr_t)msgsnd, words, error);
}

/* ---- POSIX' message queues: descriptors -------------------------------------------------------------------------- */

/* A call with this time does not wait: it fails with ETIMEDOUT. */
static const struct timespec past;

/* Waits until the queue is ready. False: errno says why not. */
static bool becomes_ready(int fd, int events, uint64_t deadline)
{
	int ready = weft__call_wait(fd, events, deadline);

	if (ready >= 0)
		return true;
	errno = -ready;
	return false;
}

static ssize_t receive(const char *name, mqd_t queue, char *message, size_t room, unsigned *priority, uint64_t deadline)
{
	int error = errno;
	ssize_t result;

	weft__call_begin(name);
	do
		result = mq_timedreceive(queue, message, room, priority, &past);
	while (result < 0 && errno == ETIMEDOUT && becomes_ready(queue, POLLIN, deadline));
	weft__call_end(result < 0);
	errno = result < 0 ? errno : error;
	return result;
}

TWIN(ssize_t, mq_receive, (mqd_t queue, char *message, size_t room, unsigned *priority))
{
	return receive("mq_receive", queue, message, room, priority, WEFT_NEVER);
}

TWIN(ssize_t, mq_timedreceive,
     (mqd_t queue, char *message, size_t room, unsigned *priority, const struct timespec *until))
{
	if (until && !is_valid(until))
		return mq_timedreceive(queue, message, room, priority, until);
	return receive("mq_timedreceive", queue, message, room, priority, deadline_of(CLOCK_REALTIME, until));
}

static int send_to(const char *name, mqd_t queue, const char *message, size_t bytes, unsigned priority,
		   uint64_t deadline)
{
	int error = errno, result;

	weft__call_begin(name);
	do
		result = mq_timedsend(queue, message, bytes, priority, &past);
	while (result < 0 && errno == ETIMEDOUT && becomes_ready(queue, POLLOUT, deadline));
	weft__call_end(result < 0);
	errno = result < 0 ? errno : error;
	return result;
}

TWIN(int, mq_send, (mqd_t queue, const char *message, size_t bytes, unsigned priority))
{
	return send_to("mq_send", queue, message, bytes, priority, WEFT_NEVER);
}

TWIN(int, mq_timedsend,
     (mqd_t queue, const char *message, size_t bytes, unsigned priority, const struct timespec *until))
{
	if (until && !is_valid(until))
		return mq_timedsend(queue, message, bytes, priority, until);
	return send_to("mq_timedsend", queue, message, bytes, priority, deadline_of(CLOCK_REALTIME, until));
}

/* ---- signals: a descriptor tells when to ask --------------------------------------------------------------------- */

static int ask_until(int fd, const sigset_t *set, siginfo_t *info, uint64_t deadline)
{
	static const struct timespec none;
	int signal;

	do
		signal = sigtimedwait(set, info, &none);
	while (signal < 0 && errno == EAGAIN && becomes_ready(fd, POLLIN, deadline));
	if (signal < 0 && errno == ETIMEDOUT)
		errno = EAGAIN;
	return signal;
}

static int wait_signal(const char *name, const sigset_t *set, siginfo_t *info, uint64_t deadline)
{
	int before = errno, fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK), signal, error;

	if (fd < 0)
		return -1;
	weft__call_begin(name);
	signal = ask_until(fd, set, info, deadline);
	error = errno;
	close(fd);
	errno = error;
	weft__call_end(signal < 0);
	errno = signal < 0 ? errno : before;
	return signal;
}

TWIN(int, sigwaitinfo, (const sigset_t *set, siginfo_t *info))
{
	return wait_signal("sigwaitinfo", set, info, WEFT_NEVER);
}

TWIN(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *timeout))
{
	uint64_t deadline = WEFT_NEVER;

	if (timeout && (timeout->tv_sec < 0 || !is_valid(timeout)))
		return sigtimedwait(set, info, timeout);
	if (timeout && timeout->tv_sec < INT32_MAX)
		deadline = weft_now() + (uint64_t)timeout->tv_sec * SECOND + (uint64_t)timeout->tv_nsec;
	return wait_signal("sigtimedwait", set, info, deadline);
}

/* Returns an error number. */
TWIN(int, sigwait, (const sigset_t *set, int *signal))
{
	int before = errno, got = wait_signal("sigwait", set, NULL, WEFT_NEVER), error = got < 0 ? errno : 0;

	errno = before;
	if (got >= 0)
		*signal = got;
	return error;
}
