/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All wait, and nothing can wake one: -EDEADLK, after what they deferred. */
#include <weft/charcoal.h>
#include <stdio.h>
#include <stdlib.h>
static int cleaned;
static volatile int always = 1;
static void clean(void *x)
{
	cleaned += *(int *)x;
}
static void *first(void *x)
{
	activity_sem_t s;
	activity_sem_init(&s, 0);
	activity_t a, b;
	int one = 1;
	activity_mail_t m;
	activity_mail_init(&m, 1);
	activate(&a)
	{
		weft_defer(clean, &one);
		activity_sem_wait(&s);
		if (always)
			abort();
	}
	activate(&b)
	{
		weft_defer(clean, &one);
		void *p;
		activity_receive(&m, &p);
		if (always)
			abort();
	}
	weft_defer(clean, &one);
	activity_wait(&a);
	if (always)
		abort();
	return x;
}
int main(void)
{
	int r = weft_activity_run(NULL, first, NULL, NULL);
	printf("%d %d\n", r == -EDEADLK, cleaned);
	return !(r == -EDEADLK && cleaned == 3);
}
