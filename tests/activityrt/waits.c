/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The waits of activities: time, wakers, cancellation, results, mailboxes, other groups. Idle costs no time. */
#include <weft/charcoal.h>
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <unistd.h>
#undef assert
#define assert(x)                                                                                                      \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static volatile int always = 1;
static int order[64];
static int n;
static void sleeps(void)
{
	n = 0;
	activity_t a[8];
	uint64_t begin = weft_now();
	for (int i = 0; i < 8; i++)
		activate(&a[i], i)
		{
			weft_activity_sleep_until(begin + 50000000 + (8 - i) * 3000000);
			order[n++] = i;
		}
	uint64_t t = weft_now();
	for (int i = 0; i < 8; i++)
		activity_wait(&a[i]);
	assert(weft_now() - t >= 20000000);
	for (int i = 0; i < 8; i++)
		assert(order[i] == 7 - i);
}
static weft_activity_waker_t w;
static void *waker(void *x)
{
	struct timespec t = {0, 5000000};
	nanosleep(&t, NULL);
	weft_activity_wake(&w);
	return x;
}
static void wakes(void)
{
	pthread_t th;
	pthread_create(&th, NULL, waker, NULL);
	weft_activity_park(&w);
	pthread_join(th, NULL);
	weft_activity_wake(&w);
	weft_activity_park(&w);
	activity_t a;
	int woken = 0;
	activate(&a)
	{
		weft_activity_park(&w);
		woken = 1;
	}
	yield_now();
	yield_now();
	assert(!woken);
	weft_activity_wake(&w);
	activity_wait(&a);
	assert(woken);
}
static int cleaned;
static void clean(void *x)
{
	cleaned += *(int *)x;
	yield_now();
	activity_sleep_ns(1000);
	cleaned += 100;
}
static void cancels(void)
{
	activity_t a, other;
	int one = 1;
	int after = 0, before;
	bool off = getenv("WEFT_ACTIVITY_PERIOD") && !strcmp(getenv("WEFT_ACTIVITY_PERIOD"), "off");
	activity_sem_t s;
	activity_sem_init(&s, 0);
	cleaned = 0;
	activate(&a)
	{
		weft_defer(clean, &one);
		activity_sem_wait(&s);
		after = 1;
	}
	yield_now();
	yield_now();
	activity_cancel(&a);
	int r = activity_wait(&a);
	assert(r == -ECANCELED);
	assert(!after);
	assert(cleaned == 101);
	activity_sem_post(&s);
	assert(s.count == 1);
	cleaned = 0;
	activate(&a)
	{
		weft_defer(clean, &one);
		while (always)
			yield_now();
	}
	yield_now();
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	assert(cleaned == 101);
	activate(&a)
	{
		weft_defer(clean, &one);
		activity_cancel(activity_self());
		after = 2;
		activity_sleep_ns(1000);
		after = 3;
	}
	assert(activity_wait(&a) == -ECANCELED);
	assert(after == 2);
	assert(cleaned == 202);
	activate(&a)
	{
		activity_cancel(activity_self());
		after = 4;
		yield();
		after = 5;
	}
	assert(activity_wait(&a) == -ECANCELED && after == 4);
	activate(&a)
	{
		activity_sem_wait(&s);
		activity_sem_wait(&s); /* woken, and then cancelled: it has the permit, and ends at its yield */
		after = 6;
		yield();
		after = 7;
	}
	while (!s.first)
		yield_now();
	activity_sem_post(&s);
	activity_cancel(&a);
	activate(&other)
	{
		for (int i = 0; i < 3; i++)
			yield();
	}
	assert(activity_wait(&a) == -ECANCELED && after == 6);
	activity_wait(&other);
	before = after;
	activate(&a)
	{
		after = 8;
	}
	no_implicit_yield
	{
		yield();
		assert(!off || after == before); /* once the cancelled activity has ended, yields are cheap again */
	}
	activity_wait(&a);
	activate(&a)
	{
		activity_sleep_ns(1000000000000);
	}
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	activate(&a)
	{
		after = 7;
	}
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	activity_t b;
	activate(&a)
	{
		activity_sleep_ns(100000000);
	}
	activate(&b)
	{
		activity_wait(&a);
	}
	yield_now();
	yield_now();
	activity_cancel(&b);
	assert(activity_wait(&b) == -ECANCELED);
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	activate(&a)
	{
		weft_activity_park(&w);
	}
	yield_now();
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	struct {
		double d[9];
	} big = {{1}};
	activate(&a, big)
	{
		if (big.d[0] != 1)
			abort();
	}
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	activate(&a, big)
	{
		if (big.d[0] != 1)
			abort();
	}
	assert(activity_wait(&a) == 0);
}
static void results(void)
{
	activity_t a;
	activate(&a)
	{
		int x = 1;
		int *volatile p = &x;
		yield_now();
		activity_set_result(p ? "1" : 0);
		activity_set_result("2");
		yield_now();
	}
	activity_wait(&a);
	assert(*(char *)activity_result(&a) == '2');
	activate(&a)
	{
	}
	activity_wait(&a);
	assert(!activity_result(&a));
	weft_activity_t *h = weft_activity_new();
	int ran = 0;
	activate(h)
	{
		ran = 1;
		yield_now();
	}
	assert(activity_wait(h) == 0);
	activity_detach(h);
	assert(ran);
	h = weft_activity_new();
	activate(h)
	{
		ran = 2;
	}
	activity_detach(h);
	yield_now();
	yield_now();
	assert(ran == 2);
	h = weft_activity_new();
	activity_detach(h);
}
static void mail(void)
{
	activity_mail_t m;
	activity_mail_init(&m, 2);
	long sum = 0;
	activity_t a, b;
	activate(&a)
	{
		void *p;
		while (!activity_receive(&m, &p)) {
			sum += (long)p;
			if ((long)p % 7 == 0)
				yield_now();
		}
	}
	activate(&b)
	{
		for (long i = 1; i <= 100; i++)
			if (activity_send(&m, (void *)i))
				abort();
		weft_activity_mail_close(&m);
	}
	activity_wait(&a);
	activity_wait(&b);
	assert(sum == 5050);
	void *p;
	assert(activity_receive(&m, &p) == -EPIPE);
	assert(activity_send(&m, 0) == -EPIPE);
	weft_activity_mail_end(&m);
	activity_mail_init(&m, WEFT_ACTIVITY_UNBOUNDED);
	for (long i = 0; i < 1000; i++)
		assert(!activity_send(&m, (void *)i));
	for (long i = 0; i < 1000; i++) {
		assert(!activity_receive(&m, &p));
		assert(p == (void *)i);
	}
	activate(&a)
	{
		void *q;
		activity_receive(&m, &q);
		if (always)
			abort();
	}
	yield_now();
	yield_now();
	activity_cancel(&a);
	assert(activity_wait(&a) == -ECANCELED);
	assert(!activity_send(&m, &m));
	assert(!activity_receive(&m, &p));
	assert(p == &m);
	weft_activity_mail_end(&m);
}
static weft_activity_mail_t shared;
static weft_activity_group_t *_Atomic group;
static _Atomic int posted;
static void *in_group(void *x)
{
	posted++;
	activity_sleep_ns(100000);
	posted++;
	return x;
}
static void *other_main(void *x)
{
	void *p;
	long sum = 0;
	while (!activity_receive(&shared, &p))
		sum += (long)p;
	assert(sum == 500500);
	return x;
}
static void *other(void *x)
{
	assert(!weft_activity_run(NULL, other_main, NULL, NULL));
	while (!group)
		usleep(100);
	for (int i = 0; i < 10; i++)
		assert(!weft_activity_post(group, in_group, NULL));
	usleep(2000);
	weft_activity_group_release(group);
	return x;
}
static void groups(void)
{
	pthread_t th;
	weft_activity_mail_init(&shared, 4, WEFT_ACTIVITY_SHARED);
	pthread_create(&th, NULL, other, NULL);
	for (long i = 1; i <= 1000; i++)
		assert(!activity_send(&shared, (void *)i));
	weft_activity_mail_close(&shared);
	group = weft_activity_group();
	pthread_detach(th);
}
/* The first, the last and middle waiters leave; the time of each does not depend on the number of waiters. */
static void cancels_many(void)
{
	int many = getenv("WEFT_ACTIVITIES") && !strcmp(getenv("WEFT_ACTIVITIES"), "copied") ? 200000 : 2000;
	activity_t *a = calloc((size_t)many, sizeof *a), ends;
	activity_sem_t s, never;
	activity_mail_t m;
	activity_sem_init(&s, 0), activity_sem_init(&never, 0);
	activity_mail_init(&m, 1);
	for (int kind = 0; kind < 3; kind++) {
		int got = 0;
		activate(&ends)
		{
			activity_sem_wait(&never);
		}
		for (int i = 0; i < many; i++)
			activate(&a[i], i, kind)
			{
				void *p;
				if (kind == 0)
					activity_sem_wait(&s);
				else if (kind == 1)
					activity_wait(&ends);
				else
					activity_receive(&m, &p);
				got++;
			}
		activity_sleep_ns(1000);
		for (int i = many - 1; i > 0; i -= 2) {
			activity_cancel(&a[i]);
			assert(activity_wait(&a[i]) == -ECANCELED);
		}
		for (int i = 2; i < many; i += 2)
			activity_cancel(&a[i]);
		assert(got == 0);
		activity_sem_post(&s);
		activity_sem_post(&never);
		assert(!activity_send(&m, a));
		assert(!activity_wait(&a[0]) && got == 1);
		activity_wait(&ends);
		for (int i = 2; i < many; i += 2)
			assert(activity_wait(&a[i]) == -ECANCELED);
		/* Each queue is as it was. */
		activate(&a[1])
		{
			activity_sem_wait(&s);
			got++;
		}
		activate(&a[2])
		{
			activity_sem_wait(&s);
			got += 10;
		}
		while (s.count > 0)
			activity_sem_wait(&s);
		yield();
		yield();
		activity_cancel(&a[2]);
		activity_sem_post(&s);
		assert(!activity_wait(&a[1]) && activity_wait(&a[2]) == -ECANCELED && got == 2 && !s.first);
		s.count = never.count = 0;
		void *p;
		if (kind < 2)
			assert(!activity_receive(&m, &p));
	}
	weft_activity_mail_end(&m);
	free(a);
}
static double cpu(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}
static void idle(void)
{
	double c = cpu();
	activity_sleep_ns(200000000);
	c = cpu() - c;
	assert(c < 0.01);
}
int activity_main(void)
{
	sleeps();
	wakes();
	cancels();
	results();
	mail();
	cancels_many();
	idle();
	groups();
	return 0;
}
__attribute__((destructor)) static void after(void)
{
	if (posted != 20) {
		fprintf(stderr, "posted %d\n", posted);
		_exit(3);
	}
}
