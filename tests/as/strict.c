/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rest of the strict run time, and main: runs `checks` once without splits, then with a split at every check. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA ((size_t)256 << 20)

extern uint64_t strict_limit, strict_at, strict_top, strict_service, strict_splits, strict_externals;

int checks(void);
void strict_died(const void *where);
void weft__register_probes(const void *begin, const void *end);
int weft_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int weft_sigaction(int signo, const struct sigaction *act, struct sigaction *old);
void (*weft_signal(int signo, void (*handler)(int)))(int);

static size_t probes;

void strict_died(const void *where)
{
	fprintf(stderr, "strict: the function whose slow path is at %p used more than it asked for\n", where);
	abort();
}

void weft__register_probes(const void *begin, const void *end)
{
	probes += (size_t)((const char *)end - (const char *)begin) / 12;
}

int weft_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return pthread_create(thread, attr, fn, arg);
}

int weft_sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
	return sigaction(signo, act, old);
}

void (*weft_signal(int signo, void (*handler)(int)))(int)
{
	return signal(signo, handler);
}

static uint64_t region(void)
{
	char *at = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return (uint64_t)at + ARENA - 4096;
}

/* Calls `checks` like instrumented code: with the limit set, on a block of its own. */
static int run(uint64_t limit)
{
	int failures;

	strict_limit = limit;
	strict_top = (uint64_t)__builtin_frame_address(0);
	__asm__ volatile("movq %0, %%fs:0x70" : : "r"(limit) : "memory");
	failures = checks();
	__asm__ volatile("movq %0, %%fs:0x70" : : "r"((uint64_t)0) : "memory");
	return failures;
}

int main(int argc, char **argv)
{
	int failures = run(0);

	if (argc < 2) {
		strict_at = region();
		strict_service = region();
		failures += run(INT64_MAX);
		if (!strict_splits) {
			fprintf(stderr, "nothing split\n");
			failures++;
		}
	}
	printf("%d failures, %llu splits, %llu external calls, %zu probes%s\n", failures,
	       (unsigned long long)strict_splits, (unsigned long long)strict_externals, probes,
	       argc > 1 ? argv[1] : "");
	return failures != 0;
}
