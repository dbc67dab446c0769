/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * overflow WHERE [NAME]: overflow the stack of a coroutine of the default policy.
 *   main      resumed by main           thread    by its creating thread     migrated  by a different thread
 *   threads   by several threads at once   nested    inside two coroutines of other policies
 *   init      made by weft_init         middle    by frames that leave gaps
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

static weft_attr_t attr;

/* Named for the backtrace. */
__attribute__((noinline)) size_t recurse_for_ever(size_t depth)
{
	volatile char frame[256];

	frame[0] = frame[255] = (char)depth;
	return recurse_for_ever(depth + 1) + (size_t)frame[0];
}

static void *overflows(void *argument)
{
	return (void *)recurse_for_ever((size_t)argument);
}

static void *large_frame(void *argument);
static weft_fn_t *volatile no_inlining = large_frame; /* otherwise inlining would merge many frames into a large one */

static void *large_frame(void *argument)
{
	volatile char frame[2000];
	size_t sum = 0;

	frame[1000] = (char)(size_t)argument;
	sum = (size_t)no_inlining((char *)argument + 1);
	return (void *)(sum + (size_t)frame[1000]);
}

/* Prints weft_failed, for coroutines that can fail. */
static void report(weft_request_t r)
{
	printf("%s %d\n", weft_request_name(r), r.effect == &weft_failed ? (int)weft_failure(r.payload) : 0);
	fflush(stdout);
}

static weft_coro_t *make(weft_fn_t *fn, void *argument)
{
	weft_coro_t *k = weft_create_with(fn, argument, &attr);

	if (!k) {
		perror("weft_create_with");
		exit(2);
	}
	return k;
}

static void resume(weft_coro_t *k)
{
	report(weft_resume(k, NULL, WEFT_HANDLE_NONE));
}

static void *makes_and_resumes(void *argument)
{
	resume(make(overflows, argument));
	return NULL;
}

static void *resumes(void *argument)
{
	resume(argument);
	return NULL;
}

static void on_thread(void *(*start)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, start, argument))
		exit(2);
	pthread_join(thread, NULL);
}

static void on_threads(void)
{
	pthread_t thread[4];

	for (size_t i = 0; i < 4; i++)
		if (pthread_create(&thread[i], NULL, makes_and_resumes, (void *)i))
			exit(2);
	for (size_t i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void *nest(void *argument)
{
	weft_attr_t other = {.name = "outer", .policy = argument ? WEFT_COMMIT : WEFT_FIXED};
	weft_coro_t *k;

	if (argument == (void *)2) {
		resume(make(overflows, NULL));
		return NULL;
	}
	k = weft_create_with(nest, (char *)argument + 1, &other);
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return NULL;
}

static void embedded(void)
{
	static weft_coro_t k;

	if (weft_init(&k, overflows, NULL, &attr))
		exit(2);
	resume(&k);
}

int main(int count, char **arguments)
{
	const char *where = count > 1 ? arguments[1] : "main";

	attr.name = count > 2 ? arguments[2] : NULL;
	if (!strcmp(where, "main"))
		resume(make(overflows, NULL));
	else if (!strcmp(where, "middle"))
		resume(make(large_frame, NULL));
	else if (!strcmp(where, "thread"))
		on_thread(makes_and_resumes, NULL);
	else if (!strcmp(where, "migrated"))
		on_thread(resumes, make(overflows, NULL));
	else if (!strcmp(where, "threads"))
		on_threads();
	else if (!strcmp(where, "nested"))
		nest(NULL);
	else if (!strcmp(where, "init"))
		embedded();
	else
		return 2;
	return 0;
}
