/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * forks OBJECT: another thread is inside dlopen, or uses Weft for the first time, while this one forks. The child
 * inherits locks that are held, and has no thread that releases them. Children use Weft for the first time, and fork in
 * turn.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

enum { LOADERS = 2, FORKS = 500, RACES = 300 };

WEFT_EFFECT(int, ask, int, x);

static const char *object;
static atomic_int begun;

static void *load_for_ever(void *nothing)
{
	for (;;) {
		void *loaded = dlopen(object, RTLD_NOW | RTLD_LOCAL);

		if (!loaded)
			return nothing;
		begun = 1;
		dlclose(loaded);
	}
}

static void *body(void *argument)
{
	weft_suspend(argument);
	return (void *)(intptr_t)ask(1);
}

static bool use(void)
{
	weft_coro_t *k = weft_create(body, &begun);
	bool right = k && weft_resume(k, NULL, WEFT_HANDLE_NONE).payload == &begun;
	weft_request_t r;

	if (!right)
		return false;
	r = weft_resume(k, NULL, weft_handles(ask));
	right = weft_args(ask, r)->x == 1;
	weft_delete(k);
	return right;
}

/* Returns 0, or how the child ended. */
static int end_of(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child ? status : -1;
}

static void live_as_child(void)
{
	pid_t grandchild;

	alarm(5);
	if (!use())
		_exit(1);
	grandchild = fork();
	if (!grandchild) {
		alarm(5);
		_exit(!use());
	}
	_exit(end_of(grandchild) != 0);
}

static int failures(const char *when, int times)
{
	int failed = 0;

	for (int i = 0; i < times && failed < 3; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			live_as_child();
		status = end_of(child);
		if (status)
			fprintf(stderr, "fork %d beside %s: status %x\n", i, when, status), failed++;
	}
	return failed;
}

static void *use_in_thread(void *nothing)
{
	begun = 1;
	return use() ? nothing : &begun;
}

/* This process has not used Weft yet; another thread starts its first use just before the fork. */
static int race_first_use(int nanoseconds)
{
	pthread_t thread;
	int failed;

	begun = 0;
	if (pthread_create(&thread, NULL, use_in_thread, NULL))
		return 1;
	while (!begun)
		;
	for (volatile int i = 0; i < nanoseconds; i++)
		;
	failed = failures("a first use", 1);
	pthread_join(thread, NULL);
	return failed;
}

static int race_in_processes(void)
{
	int failed = 0;

	for (int i = 0; i < RACES && failed < 3; i++) {
		pid_t child = fork();

		if (!child)
			_exit(race_first_use(i * 300));
		failed += end_of(child) != 0;
	}
	return failed;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	int failed = race_in_processes();

	object = count > 1 ? arguments[1] : "";
	for (int i = 0; i < LOADERS; i++)
		if (pthread_create(&thread, NULL, load_for_ever, NULL))
			return 1;
	for (int i = 0; i < 1000 && !begun; i++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	failed += failures("dlopen", FORKS);
	fflush(NULL);
	_exit(failed || !begun);
}
