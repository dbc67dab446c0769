/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Locks of the C library that tasks hold while they wait, through libweft-posix.so: PROGRAM WORKERS SEED [USERS].
 *
 * Users are tasks of WORKERS workers and two threads; with 0 workers all are threads, and only libc decides. Each lock
 * guards an owner and a count without atomics: two owners at a time, or a lost count, are errors. The seed draws the
 * order of locks, the calls that lock them, and the waits inside.
 */
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>
#include <weft/sched.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			dprintf(1, "not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
			std::abort();                                                                                  \
		}                                                                                                      \
	} while (0)

#ifndef PATIENCE
#define PATIENCE 50
#endif

namespace
{

enum { MUTEXES = 3, LOCKS = 6, ROUNDS = 150 };

unsigned workers;
pthread_mutex_t mutexes[MUTEXES];
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
std::FILE *file;
std::recursive_mutex in_cxx;

struct guarded {
	unsigned owner, readers, count;
} guarded[LOCKS];

struct random {
	unsigned long state;
	unsigned operator()(unsigned limit)
	{
		state = state * 6364136223846793005ul + 1442695040888963407ul;
		return (unsigned)(state >> 33) % limit;
	}
};

struct timespec within(long nanoseconds)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += nanoseconds;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

void lock_mutex(pthread_mutex_t *m, random &draw)
{
	struct timespec at;
	int error;

	switch (draw(4)) {
	case 0:
		while ((error = pthread_mutex_trylock(m)) == EBUSY)
			usleep(50);
		break;
	case 1:
		do {
			at = within(300000);
			error = pthread_mutex_timedlock(m, &at);
		} while (error == ETIMEDOUT);
		break;
	default:
		error = pthread_mutex_lock(m);
	}
	CHECK(error == 0);
}

/* Returns true if the lock is held only for reading. */
bool lock(unsigned which, random &draw)
{
	if (which < MUTEXES) {
		lock_mutex(&mutexes[which], draw);
	} else if (which == MUTEXES) {
		if (draw(2)) {
			CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
			return true;
		}
		CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
	} else if (which == MUTEXES + 1) {
		flockfile(file);
	} else {
		in_cxx.lock();
	}
	return false;
}

void unlock(unsigned which)
{
	if (which < MUTEXES)
		CHECK(pthread_mutex_unlock(&mutexes[which]) == 0);
	else if (which == MUTEXES)
		CHECK(pthread_rwlock_unlock(&rwlock) == 0);
	else if (which == MUTEXES + 1)
		funlockfile(file);
	else
		in_cxx.unlock();
}

/* Makes a call that waits while the lock is held. */
void nap(random &draw)
{
	switch (draw(5)) {
	case 0:
		usleep(draw(400));
		break;
	case 1:
		weft_sleep(draw(200) * 1000);
		break;
	case 2:
		sched_yield();
		break;
	default:
		break;
	}
}

/* The owner locks again: a recursive lock allows that, an error-checking lock returns an error. */
void lock_again(unsigned which, random &draw)
{
	if (which == 1 || which > MUTEXES) {
		lock(which, draw);
		nap(draw);
		unlock(which);
	} else if (which == 2) {
		CHECK(pthread_mutex_lock(&mutexes[2]) == EDEADLK);
	}
}

void use(unsigned which, unsigned self, random &draw, unsigned depth)
{
	struct guarded *g = &guarded[which];
	bool reads = lock(which, draw);

	CHECK(g->owner == 0);
	if (!reads) {
		CHECK(g->readers == 0);
		g->owner = self;
	} else {
		__atomic_fetch_add(&g->readers, 1, __ATOMIC_RELAXED);
	}
	nap(draw);
	if (draw(3) == 0)
		lock_again(which, draw);
	if (depth && which + 1 < LOCKS)
		use(which + 1 + draw(LOCKS - which - 1), self, draw, depth - 1);
	CHECK(g->owner == (reads ? 0 : self));
	if (!reads) {
		g->count++;
		g->owner = 0;
	} else {
		__atomic_fetch_sub(&g->readers, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&g->count, 1, __ATOMIC_RELAXED);
	}
	unlock(which);
}

/* ---- conditions: a bounded buffer of numbers --------------------------------------------------------------------- */

enum { ROOM = 3 };
pthread_mutex_t buffer_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
std::mutex ended_lock;
std::condition_variable ended;
unsigned buffered, put, taken, users_left;

void wait_for(pthread_cond_t *c, random &draw)
{
	struct timespec at = within(500000);
	int error = draw(2) ? pthread_cond_wait(c, &buffer_lock) : pthread_cond_timedwait(c, &buffer_lock, &at);

	CHECK(error == 0 || error == ETIMEDOUT);
}

pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;

void produce(random &draw)
{
	pthread_mutex_lock(&buffer_lock);
	while (buffered == ROOM)
		wait_for(&not_full, draw);
	buffered++;
	put++;
	nap(draw);
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&buffer_lock);
}

void consume(random &draw)
{
	pthread_mutex_lock(&buffer_lock);
	while (buffered == 0)
		wait_for(&not_empty, draw);
	buffered--;
	taken++;
	pthread_mutex_unlock(&buffer_lock);
	if (draw(2))
		pthread_cond_signal(&not_full);
	else
		pthread_cond_broadcast(&not_full);
}

/* ---- once -------------------------------------------------------------------------------------------------------- */

std::once_flag flag;
std::atomic<unsigned> attempts, initialized;

int initialize()
{
	usleep(2000);
	if (initialized++ < 2)
		throw std::runtime_error("not yet");
	return 42;
}

void once(random &draw)
{
	bool done = false;

	while (!done) {
		try {
			static int value = initialize();

			CHECK(value == 42);
			std::call_once(flag, [&draw] {
				nap(draw);
				usleep(1000);
				if (attempts++ < 2)
					throw std::runtime_error("not yet");
			});
			done = true;
		} catch (const std::runtime_error &) {
		}
	}
	CHECK(initialized == 3 && attempts == 3);
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

struct user {
	unsigned self;
	unsigned long seed;
	bool produces;
	unsigned uses[LOCKS];
};

void *act(void *argument)
{
	auto *u = static_cast<user *>(argument);
	random draw = {u->seed * 977 + u->self};

	once(draw);
	for (unsigned i = 0; i < ROUNDS; i++) {
		use(draw(LOCKS), u->self, draw, draw(2));
		if (u->produces)
			produce(draw);
		else
			consume(draw);
	}
	std::lock_guard<std::mutex> hold(ended_lock);
	users_left--;
	ended.notify_all();
	return nullptr;
}

void *run(void *argument)
{
	auto &users = *static_cast<std::vector<user> *>(argument);
	std::vector<std::thread> threads;
	size_t tasks = workers ? users.size() - 2 : 0;

	for (size_t i = tasks; i < users.size(); i++)
		threads.emplace_back([&u = users[i]] { act(&u); });
	{
		WEFT_SCOPE(scope);
		for (size_t i = 0; i < tasks; i++)
			CHECK(weft_scope_spawn(&scope, act, &users[i]) == 0);
		std::unique_lock<std::mutex> hold(ended_lock);
		ended.wait(hold, [] { return users_left == 0; });
		hold.unlock();
		CHECK(!workers || weft_scope_wait(&scope) == 0);
	}
	for (auto &t : threads)
		t.join();
	return argument;
}

void tell(int)
{
	static const char text[] = "not ok - somebody waits for ever\n";

	(void)!write(1, text, sizeof text - 1);
	_exit(1);
}

void make_locks()
{
	static const int kinds[MUTEXES] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
	pthread_mutexattr_t attr;

	for (unsigned i = 0; i < MUTEXES; i++) {
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_settype(&attr, kinds[i]);
		pthread_mutex_init(&mutexes[i], &attr);
	}
	file = std::tmpfile();
	CHECK(file != nullptr);
}

} // namespace

int main(int argc, char **argv)
{
	unsigned long seed = argc > 2 ? strtoul(argv[2], nullptr, 10) : 1;
	size_t count = argc > 3 ? strtoul(argv[3], nullptr, 10) : 10;
	std::vector<user> users;
	weft_rt_config_t config = {};
	void *result = nullptr;

	count += count % 2; /* makes as many consumers as producers */
	workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	config.workers = workers;
	make_locks();
	for (unsigned i = 0; i < count; i++)
		users.push_back({i + 1, seed, i % 2 == 0, {}});
	users_left = (unsigned)count;
	std::signal(SIGALRM, tell);
	alarm(PATIENCE);
	if (workers)
		CHECK(weft_rt_run(&config, run, &users, &result) == 0 && result == &users);
	else
		run(&users);
	CHECK(put == taken && buffered == 0);
	printf("ok - %u of %zu users' items\n", put, count);
	return 0;
}
