/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The owner of a lock is a task or a thread, not one of its coroutines. Two tasks and a thread use mutexes and a
 * condition in random order, each time some coroutines deeper; three POSIX threads do the same with error-checking
 * POSIX mutexes. Both must give the same results.
 */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>

enum { PARTIES = 3, LOCKS = 3, STEPS = 400, SEEDS = 20 };

enum operation { TRY, LOCK, UNLOCK, WAIT, END };

struct step {
	enum operation operation;
	unsigned lock, depth, kinds; /* a bit for each level: a coroutine or a body of weft_run */
};

struct party {
	struct step step;
	int result, wanted;
	weft_sem_t go, done;
	sem_t posix_go, posix_done;
};

static struct party parties[PARTIES];
static weft_mutex_t locks[LOCKS];
static weft_cond_t cond;
static pthread_mutex_t posix_locks[LOCKS];
static pthread_cond_t posix_cond = PTHREAD_COND_INITIALIZER;

WEFT_EFFECT(int, own_effect, int, number);

static int answers(void *unused, int number)
{
	(void)unused;
	return number;
}

WEFT_HANDLER(own_handler, weft_tail(own_effect, answers));

/* ---- the results of POSIX -------------------------------------------------------------------------------------- */

static int posix_act(const struct step *s)
{
	static const struct timespec past = {1, 0};
	pthread_mutex_t *lock = &posix_locks[s->lock];

	switch (s->operation) {
	case TRY:
		return pthread_mutex_trylock(lock);
	case LOCK:
		return pthread_mutex_timedlock(lock, &past);
	case UNLOCK:
		return pthread_mutex_unlock(lock);
	default:
		return pthread_cond_timedwait(&posix_cond, lock, &past);
	}
}

static void *posix_party(void *argument)
{
	struct party *p = argument;

	for (;;) {
		while (sem_wait(&p->posix_go))
			;
		if (p->step.operation == END)
			return NULL;
		p->wanted = posix_act(&p->step);
		CHECK(sem_post(&p->posix_done) == 0);
	}
}

/* ---- the results of weft --------------------------------------------------------------------------------------- */

static int weft_act(const struct step *s)
{
	weft_mutex_t *lock = &locks[s->lock];

	switch (s->operation) {
	case TRY:
		return weft_mutex_try_lock(lock) ? 0 : -EBUSY;
	case LOCK:
		return weft_mutex_lock_until(lock, 1);
	case UNLOCK:
		return weft_mutex_unlock(lock);
	default:
		return weft_cond_wait_until(&cond, lock, 1);
	}
}

/* Acts one level deeper, or here if no level is left. */
static void *act_inside(void *argument)
{
	struct party *p = argument;
	weft_coro_t *k;

	if (!p->step.depth) {
		p->result = weft_act(&p->step);
		return p;
	}
	p->step.depth--;
	p->step.kinds >>= 1;
	if (p->step.kinds & 1)
		return weft_run(&own_handler, NULL, act_inside, p);
	k = weft_create(act_inside, p);
	CHECK(k && weft_resume(k, NULL, weft_handles(own_effect)).payload == p);
	weft_delete(k);
	return p;
}

static void *weft_party(void *argument)
{
	struct party *p = argument;

	for (;;) {
		CHECK(weft_sem_take(&p->go) == 0);
		if (p->step.operation == END)
			return NULL;
		CHECK(act_inside(p) == p);
		CHECK(weft_sem_give(&p->done, 1) == 0);
	}
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

static void say_end(void)
{
	for (int i = 0; i < PARTIES; i++) {
		parties[i].step.operation = END;
		CHECK(weft_sem_give(&parties[i].go, 1) == 0 && sem_post(&parties[i].posix_go) == 0);
	}
}

static void *locks_belong_to_tasks(void *pass)
{
	static unsigned seed;
	pthread_t thread, posix[PARTIES];
	pthread_mutexattr_t checks;
	unsigned state = ++seed;

	WEFT_SCOPE(scope);
	CHECK(pthread_mutexattr_init(&checks) == 0 &&
	      pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK) == 0);
	for (int i = 0; i < LOCKS; i++) {
		locks[i] = (weft_mutex_t){0};
		CHECK(pthread_mutex_init(&posix_locks[i], &checks) == 0);
	}
	for (int i = 0; i < PARTIES; i++) {
		parties[i] = (struct party){.step = {.operation = TRY}};
		CHECK(sem_init(&parties[i].posix_go, 0, 0) == 0 && sem_init(&parties[i].posix_done, 0, 0) == 0);
		CHECK(pthread_create(&posix[i], NULL, posix_party, &parties[i]) == 0);
	}
	CHECK(pthread_create(&thread, NULL, weft_party, &parties[0]) == 0);
	for (int i = 1; i < PARTIES; i++)
		CHECK(weft_scope_spawn(&scope, weft_party, &parties[i]) == 0);
	for (int i = 0; i < STEPS; i++) {
		unsigned number = (unsigned)rand_r(&state) >> 4;
		struct party *p = &parties[number % PARTIES];
		struct step step = {(enum operation)(number / 4 % END), number / 16 % LOCKS, number / 64 % 4,
				    number / 256};

		p->step = step;
		CHECK(sem_post(&p->posix_go) == 0);
		while (sem_wait(&p->posix_done))
			;
		CHECK(weft_sem_give(&p->go, 1) == 0 && weft_sem_take(&p->done) == 0);
		if (p->result != -p->wanted) {
			dprintf(1, "not ok - seed %u, step %d: operation %d, %u coroutines inside: %d, POSIX says %d\n",
				seed, i, (int)step.operation, step.depth, p->result, -p->wanted);
			abort();
		}
	}
	say_end();
	CHECK(weft_scope_wait(&scope) == 0 && pthread_join(thread, NULL) == 0);
	for (int i = 0; i < PARTIES; i++)
		CHECK(pthread_join(posix[i], NULL) == 0);
	return pass;
}

/* Does the same with a lock for writing, which POSIX specifies less strictly. */
static void *asks_inside(void *lock)
{
	CHECK(weft_rwlock_read(lock) == -EDEADLK && weft_rwlock_write(lock) == -EDEADLK);
	CHECK(weft_rwlock_unlock(lock) == 0 && weft_rwlock_unlock(lock) == -EPERM);
	CHECK(weft_rwlock_write(lock) == 0);
	return lock;
}

static void *a_writer_is_a_task(void *pass)
{
	weft_rwlock_t lock = {0};

	CHECK(weft_rwlock_write(&lock) == 0);
	CHECK(weft_run(&own_handler, NULL, asks_inside, &lock) == &lock);
	CHECK(weft_rwlock_unlock(&lock) == 0);
	return pass;
}

static const struct test tests[] = {T(a_writer_is_a_task), T(locks_belong_to_tasks)};

int main(int argc, char **argv)
{
	for (int i = 0; i < SEEDS; i++)
		if (run_tests(tests, sizeof tests / sizeof *tests, argc, argv))
			return 1;
	return 0;
}
