/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All activities wait, and nothing can wake any: -EDEADLK, after their deferred functions. */
#include <weft/charcoal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
/* Many: the report has some of them. */
enum { MANY = 5000 };
static void *many(void *x)
{
	static activity_t a[MANY];
	static activity_sem_t s;
	for (int i = 0; i < MANY; i++)
		activate(&a[i], i)
		{
			if (i)
				activity_wait(&a[i - 1]);
			activity_sem_wait(&s);
		}
	activity_sem_wait(&s);
	return x;
}
static int reported(void)
{
	char line[300];
	int lines = 0, told = 0;
	FILE *report = tmpfile();
	int old = dup(2);
	dup2(fileno(report), 2);
	int r = weft_activity_run(NULL, many, NULL, NULL);
	dup2(old, 2);
	rewind(report);
	for (; fgets(line, sizeof line, report); lines++)
		told += strstr(line, "and 4981 more activities") != NULL;
	return r == -EDEADLK && told == 1 && lines == 22;
}
int main(void)
{
	int r = weft_activity_run(NULL, first, NULL, NULL);
	printf("%d %d\n", r == -EDEADLK, cleaned);
	return !(r == -EDEADLK && cleaned == 3 && reported());
}
