/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Several groups: in tasks, nested, in threads; effects that cross them, exceptions that leave them; fork. */
#define _GNU_SOURCE
#include <weft/charcoal.h>
#include <weft/handler.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#undef assert
#define assert(x)                                                                                                      \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s errno %d\n", __FILE__, __LINE__, #x, errno);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)
static volatile int always = 1;
/* several groups in tasks of one worker, with effects of the scheduler in plain code */
static void count(long *c, int n)
{
	for (int i = 0; i < n; i++) {
		long was = *c;
		*c = was + 1;
		if (i % 100 == 0)
			yield_now();
	}
}
static void *group(void *x)
{
	long shared = 0;
	activity_t a[4];
	for (int i = 0; i < 4; i++)
		activate(&a[i])
		{
			for (int k = 0; k < 5; k++) {
				count(&shared, 1000);
				weft_sleep(10000);
				activity_sleep_ns(10000);
			}
		}
	for (int i = 0; i < 4; i++) {
		assert(weft_activity_self());
		activity_wait(&a[i]);
	}
	assert(shared == 20000);
	return x;
}
static void *task(void *x)
{
	void *r;
	assert(!weft_activity_self());
	assert(!weft_activity_run(NULL, group, x, &r));
	assert(!weft_activity_self());
	assert(r == x);
	return x;
}
static void *tasks(void *x)
{
	WEFT_SCOPE(s);
	for (int i = 0; i < 8; i++)
		assert(!weft_scope_spawn(&s, task, x));
	assert(!weft_scope_wait(&s));
	return x;
}
/* With a switch at each yield the group's task lets other tasks run, also if its activities do other work between
 * yields. */
static volatile int turns, over;
static void *other_task(void *x)
{
	while (!over) {
		turns++;
		weft_task_yield();
	}
	return x;
}
static void *alternates(void *x)
{
	for (int k = 1; k <= 8; k++)
		for (int before = turns; turns == before;)
			no_implicit_yield
			{
				for (int i = 0; i < k; i++)
					yield();
				yield_now();
			}
	over = 1;
	return x;
}
static void *beside_another(void *x)
{
	WEFT_SCOPE(s);
	assert(!weft_scope_spawn(&s, other_task, x));
	assert(!weft_activity_run(NULL, alternates, NULL, NULL));
	assert(!weft_scope_wait(&s));
	return x;
}
/* nested */
static void *inner(void *x)
{
	activity_t a;
	int done = 0;
	activate(&a)
	{
		activity_sleep_ns(100000);
		done = 1;
	}
	activity_wait(&a);
	assert(done);
	return x;
}
static void *outer(void *x)
{
	activity_t a;
	int n = 0;
	weft_activity_t *self = weft_activity_self();
	activate(&a)
	{
		for (int i = 0; i < 10; i++) {
			n++;
			yield_now();
		}
	}
	void *r;
	assert(!weft_activity_run(NULL, inner, &n, &r));
	assert(r == &n);
	assert(weft_activity_self() == self);
	activity_wait(&a);
	assert(n == 10);
	return x;
}
/* effects to handlers outside */
WEFT_EFFECT(int, ask, int, n);
WEFT_EXCEPTION(leave, int, n);
static int answer(void *state, int n)
{
	(void)state;
	return n + 1;
}
WEFT_HANDLER(tails, weft_tail(ask, answer));
static void *asks(void *x)
{
	activity_t a[3];
	int sum = 0;
	for (int i = 0; i < 3; i++)
		activate(&a[i], i)
		{
			for (int k = 0; k < 100; k++) {
				sum += ask(i);
				yield_now();
			}
		}
	for (int i = 0; i < 3; i++)
		activity_wait(&a[i]);
	assert(sum == 600);
	return x;
}
static void *runs(void *x)
{
	assert(!weft_activity_run(NULL, asks, NULL, NULL));
	return x;
}
static int cleaned;
static void clean(void *x)
{
	(void)x;
	cleaned++;
}
static void *leaves(void *x)
{
	activity_t a;
	int one = 1;
	activate(&a)
	{
		weft_defer(clean, &one);
		yield_now();
		leave(3);
	}
	activity_wait(&a);
	return x;
}
static void *runs_leaving(void *x)
{
	(void)!weft_activity_run(NULL, leaves, NULL, NULL);
	abort();
	return x;
}
static void effects(void)
{
	assert(!weft_run(&tails, NULL, runs, NULL));
	weft_coro_t *k = weft_create(runs, NULL);
	weft_request_t r;
	int asked = 0;
	weft_handle (r, k, ask) {
		asked++;
		weft_reply(ask, r, weft_args(ask, r)->n + 1);
	}
	assert(asked == 300);
	weft_delete(k);
	k = weft_create(runs_leaving, NULL);
	r = weft_resume(k, NULL, weft_handles(leave));
	assert(weft_is(leave, r) && weft_args(leave, r)->n == 3);
	weft_delete(k);
	assert(!weft_activity_self());
	assert(cleaned == 1);
}
/* cancelled task */
static void *endless(void *x)
{
	activity_t a;
	activity_sem_t s;
	activity_sem_init(&s, 0);
	int one = 1;
	activate(&a)
	{
		weft_defer(clean, &one);
		activity_sleep_ns(1000000000000);
	}
	activity_wait(&a);
	return x;
}
static int ended;
static void *cancelled(void *x)
{
	int r = weft_activity_run(NULL, endless, NULL, NULL);
	assert(r == -ECANCELED);
	ended = 1;
	weft_sleep(1);
	assert(0);
	return x;
}
static void *canceller(void *x)
{
	WEFT_SCOPE(s);
	weft_task_t t;
	assert(!weft_scope_spawn_with(&s, &t, cancelled, NULL, NULL));
	weft_sleep(3000000);
	weft_task_cancel(&t);
	weft_join(&t, NULL);
	weft_scope_wait(&s);
	assert(ended);
	return x;
}
static void *forks(void *x)
{
	activity_t a;
	int n = 0;
	activate(&a)
	{
		for (int i = 0; i < 10; i++) {
			n++;
			activity_sleep_ns(1000000);
		}
	}
	pid_t c = fork();
	if (!c) /* `a` stayed in the parent; forks.c has more */
		_exit(activity_wait(&a) == -ECANCELED && n < 10 ? 5 : 6);
	int status;
	assert(waitpid(c, &status, 0) == c);
	assert(WEXITSTATUS(status) == 5);
	activity_wait(&a);
	assert(n == 10);
	return x;
}
static void *in_thread(void *x)
{
	assert(!weft_activity_run(NULL, x ? group : outer, x, NULL));
	return NULL;
}
static int deep(int n)
{
	volatile char pad[64];
	pad[0] = n;
	if (n % 1000 == 0)
		yield_now();
	return n ? deep(n - 1) + 1 + (pad[0] & 0) : 0;
}
static void *deeps(void *x)
{
	activity_t a[3];
	int r[3];
	for (int i = 0; i < 3; i++)
		activate(&a[i], i)
		{
			r[i] = deep(20000);
		}
	for (int i = 0; i < 3; i++) {
		activity_wait(&a[i]);
		assert(r[i] == 20000);
	}
	activate(&a[0])
	{
		deep(30000);
		activity_sleep_ns(1000000000);
	}
	activate(&a[1])
	{
		int one = 1;
		weft_defer(clean, &one);
		activity_sem_t s;
		activity_sem_init(&s, 0);
		deep(5000);
		activity_sem_wait(&s);
	}
	yield_now();
	yield_now();
	activity_cancel(&a[0]);
	activity_cancel(&a[1]);
	while (a[0].state != 4 && always)
		yield_now();
	activity_wait(&a[0]);
	activity_wait(&a[1]);
	return x;
}
int main(void)
{
	weft_rt_config_t one = {.workers = 1}, three = {.workers = 3};
	effects();
	assert(!weft_activity_run(NULL, outer, NULL, NULL));
	assert(!weft_activity_run(NULL, deeps, NULL, NULL));
	assert(!weft_activity_run(NULL, forks, NULL, NULL));
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, in_thread, i % 2 ? &t : NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert(!weft_rt_run(&one, tasks, NULL, NULL));
	assert(!weft_rt_run(&three, tasks, NULL, NULL));
	cleaned = 0;
	assert(!weft_rt_run(&one, canceller, NULL, NULL));
	assert(cleaned == 1);
	assert(!setenv("WEFT_ACTIVITY_PERIOD", "every", 1));
	assert(!weft_rt_run(&one, beside_another, NULL, NULL));
	return 0;
}
