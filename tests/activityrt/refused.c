/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each request for memory fails in turn: activities end with -ENOMEM, their deferred functions run, nothing is lost. */
#define _GNU_SOURCE
#include <weft/charcoal.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static long count, fail_at, live;
static int refused_maps; /* how many requests for whole pages are still refused */
static volatile int always = 1;
static int on;
static int refuse(void)
{
	return on && __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) == fail_at;
}
extern void *__real_malloc(size_t), *__real_calloc(size_t, size_t), *__real_realloc(void *, size_t),
    *__real_mmap(void *, size_t, int, int, int, off_t), *__real_aligned_alloc(size_t, size_t);
extern void __real_free(void *);
#define L(n) __atomic_add_fetch(&live, n, __ATOMIC_RELAXED)
void *__wrap_malloc(size_t n)
{
	if (refuse())
		return errno = ENOMEM, NULL;
	void *p = __real_malloc(n);
	if (p && on)
		L(1);
	return p;
}
void *__wrap_aligned_alloc(size_t a, size_t n)
{
	if (refuse())
		return errno = ENOMEM, NULL;
	void *p = __real_aligned_alloc(a, n);
	if (p && on)
		L(1);
	return p;
}
void *__wrap_calloc(size_t a, size_t n)
{
	if (refuse())
		return errno = ENOMEM, NULL;
	void *p = __real_calloc(a, n);
	if (p && on)
		L(1);
	return p;
}
void *__wrap_realloc(void *q, size_t n)
{
	if (refuse())
		return errno = ENOMEM, NULL;
	void *p = __real_realloc(q, n);
	if (p && !q && on)
		L(1);
	return p;
}
void __wrap_free(void *p)
{
	if (p && on)
		L(-1);
	__real_free(p);
}
void *__wrap_mmap(void *a, size_t n, int x, int f, int d, off_t o)
{
	if (refuse() || (refused_maps && refused_maps--))
		return errno = ENOMEM, MAP_FAILED;
	return __real_mmap(a, n, x, f, d, o);
}
static WEFT_NO_IMPLICIT_YIELD int deep(int n)
{
	volatile char pad[100];
	pad[0] = 1;
	if (n % 500 == 0)
		yield_now();
	return n ? deep(n - 1) + pad[0] : 0;
}
static int big(int n)
{
	volatile char pad[3000];
	no_implicit_yield
	{
		for (int i = 0; i < 3000; i++)
			pad[i] = n;
	}
	for (int i = 0; i < 3; i++)
		yield_now();
	return pad[n];
}
static _Atomic int cleaned, deferred;
static void clean(void *x)
{
	(void)x;
	cleaned++;
}
static activity_t a[6];
static int p[2], one = 1;
static activity_mail_t m;
static void shut(void *x)
{
	(void)x;
	close(p[1]);
	p[1] = -1;
	weft_activity_mail_close(&m);
}
static void *first(void *x)
{
	struct {
		double d[100];
	} many = {{1}};
	activity_mail_init(&m, WEFT_ACTIVITY_UNBOUNDED);
	memset(a, 0, sizeof a);
	for (int i = 0; i < 6; i++)
		a[i].state = 4;
	(void)!pipe(p);
	weft_defer(shut, x);
	activate(&a[0])
	{
		weft_defer(clean, &one);
		deferred++;
		deep(3000);
	}
	activate(&a[1])
	{
		weft_defer(clean, &one);
		deferred++;
		big(5);
	}
	activate(&a[2], many)
	{
		weft_defer(clean, &one);
		deferred++;
		char t[10];
		if (many.d[0] == 1 && read(p[0], t, 10) == 2)
			deep(10);
	}
	activate(&a[3])
	{
		for (long i = 0; i < 100; i++)
			activity_send(&m, 0);
		weft_activity_mail_close(&m);
	}
	activate(&a[4])
	{
		void *q;
		while (!activity_receive(&m, &q))
			yield_now();
	}
	activate(&a[5])
	{
		for (int i = 0; i < 20; i++)
			activate_detached(i)
			{
				activity_sleep_ns(1000 * i);
			}
		weft_activity_t *h = weft_activity_new();
		if (h) {
			activate(h)
			{
				big(3);
			}
			activity_detach(h);
		}
	}
	activity_sleep_ns(100000);
	(void)!write(p[1], "ab", 2);
	shut(x);
	for (int i = 0; i < 6; i++)
		activity_wait(&a[i]);
	return x;
}
/* A function that weft_activity_post has accepted runs, although there is no memory for a while. */
static int posted;
static void *post_runs(void *n)
{
	yield_now();
	posted += *(int *)n;
	return NULL;
}
static void *posts(void *many)
{
	weft_activity_group_t *group = weft_activity_group();
	no_yield
	{
		for (int i = 0; i < *(int *)many; i++)
			if (weft_activity_post(group, post_runs, &one))
				abort();
		refused_maps = 5;
	}
	weft_activity_group_release(group);
	return NULL;
}
int main(int argc, char **argv)
{
	int many = 20000;
	if (weft_activity_run(NULL, posts, &many, NULL) || posted != many || refused_maps)
		return printf("%d of %d posts ran, %d requests were not made\n", posted, many, refused_maps), 6;

	long most = argc > 1 ? atol(argv[1]) : 0, from = argc > 2 ? atol(argv[2]) : 1;
	fail_at = 0;
	on = 1;
	if (weft_activity_run(NULL, first, NULL, NULL))
		return 1;
	weft_activity_mail_end(&m);
	live = 0;
	count = 0;
	if (weft_activity_run(NULL, first, NULL, NULL))
		return 1;
	weft_activity_mail_end(&m);
	on = 0;
	printf("%ld allocations, live %ld\n", count, live);
	if (live)
		return 4;
	long n = count;
	int failed = 0;
	for (fail_at = from; fail_at <= n + 2 && (!most || fail_at <= most); fail_at++) {
		count = 0;
		live = 0;
		cleaned = deferred = 0;
		on = 1;
		int r = weft_activity_run(NULL, first, NULL, NULL);
		weft_activity_mail_end(&m);
		on = 0;
		close(p[0]);
		if (getenv("SAY"))
			printf("%ld: %d live %ld cleaned %d of %d\n", fail_at, r, live, cleaned, deferred);
		if (r && r != -ENOMEM)
			return printf("%ld: %d\n", fail_at, r), 2;
		if (cleaned != deferred)
			return printf("%ld: cleaned %d of %d\n", fail_at, cleaned, deferred), 3;
		if (live)
			return printf("%ld: %ld not freed\n", fail_at, live), 5;
		failed += !!r;
	}
	printf("ok, %d failed\n", failed);
	return 0;
}
