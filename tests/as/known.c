/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How much stack the functions of tools/as/known.def need: each is called, with arguments that suit it, on a stack
 * painted beforehand. Small functions may use 192 bytes, other functions 2048. With an argument: as if this number were
 * the limits.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK 65536
#define PAINT 0xa5

long on_stack(void *fn, void *top, const long *integers, const double *doubles);

/* rdi = fn, rsi = top; the argument registers are loaded, and 64 bytes of zeros are where stack arguments would be. */
__asm__(".text\n.globl on_stack\n.type on_stack, @function\non_stack:\n"
	"pushq %rbp\nmovq %rsp, %rbp\npushq %rbx\npushq %rbx\n"
	"movq %rdi, %rax\nmovq %rdx, %r10\nmovq %rsi, %rsp\n"
	"movsd (%rcx), %xmm0\nmovsd 8(%rcx), %xmm1\nmovsd 16(%rcx), %xmm2\n"
	"movq (%r10), %rdi\nmovq 8(%r10), %rsi\nmovq 16(%r10), %rdx\nmovq 24(%r10), %rcx\nmovq 32(%r10), %r8\n"
	"movq %rax, %r11\nxorl %eax, %eax\ncall *%r11\n"
	"leaq -16(%rbp), %rsp\npopq %rbx\npopq %rbx\npopq %rbp\nret\n.size on_stack, .-on_stack");

static unsigned char stack[STACK] __attribute__((aligned(64)));
static char text[8192], other[8192], copy[8192];
static char *cursor;
static int failures, measured;
static atomic_bool is_held;

struct arguments {
	const char *name;
	long integers[5];
};

#define P(x) (long)(x)

/* Functions for which (text, other, size, size) are unsuitable arguments. */
static const struct arguments special[] = {
    {"isalnum", {'a'}},
    {"isalpha", {'a'}},
    {"isdigit", {'a'}},
    {"isspace", {'a'}},
    {"isupper", {'a'}},
    {"islower", {'a'}},
    {"isxdigit", {'a'}},
    {"ispunct", {'a'}},
    {"isprint", {'a'}},
    {"iscntrl", {'a'}},
    {"isgraph", {'a'}},
    {"toupper", {'a'}},
    {"tolower", {'a'}},
    {"bzero", {P(copy), 4000}},
    {"strnlen", {P(text), 4000}},
    {"bcopy", {P(text), P(copy), 4000}},
    {"memcpy", {P(copy), P(text), 8000}},
    {"strchr", {P(text), 'z'}},
    {"strrchr", {P(text), 'z'}},
    {"strchrnul", {P(text), 'z'}},
    {"memchr", {P(text), 'z', 4000}},
    {"memrchr", {P(text), 'z', 4000}},
    {"rawmemchr", {P(text), 0}},
    {"memccpy", {P(copy), P(text), 'z', 4000}},
    {"strtok", {P(copy), P(" ,;")}},
    {"strtok_r", {P(copy), P(" ,;"), P(&cursor)}},
    {"strsep", {P(&cursor), P(" ,;")}},
    {"__memcpy_chk", {P(copy), P(text), 4000, 8192}},
    {"__memmove_chk", {P(copy), P(text), 4000, 8192}},
    {"__memset_chk", {P(copy), 1, 4000, 8192}},
    {"__mempcpy_chk", {P(copy), P(text), 4000, 8192}},
    {"__strcpy_chk", {P(copy), P(text), 8192}},
    {"__stpcpy_chk", {P(copy), P(text), 8192}},
    {"__strncpy_chk", {P(copy), P(text), 4000, 8192}},
    {"__strcat_chk", {P(copy), P("more"), 8192}},
    {"__strncat_chk", {P(copy), P("more"), 4, 8192}},
    {"strcat", {P(copy), P("more")}},
    {"strncat", {P(copy), P("more"), 4}},
    {"clock_gettime", {1, P(copy)}},
    {"gettimeofday", {P(copy), 0}},
    {"time", {P(copy)}},
    {"div", {17, 5}},
    {"ldiv", {17, 5}},
    {"modf", {P(copy)}},
    {"sincos", {P(copy), P(copy + 64)}},
    {"sincosf", {P(copy), P(copy + 64)}},
    {"frexp", {P(copy)}},
    {"ldexp", {5}},
    {"ldexpf", {5}},
    {"scalbn", {5}},
    {"scalbnf", {5}},
    {"abs", {-5}},
};

/* Not called here: they do not return, or only the library has them. */
static const char *const left_out[] = {"longjmp", "_longjmp", "siglongjmp"};

static void restore_texts(void)
{
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = copy[i] = other[i] = (char)('a' + i % 23);
	memset(copy + 4000, 0, 100);
	text[6000] = other[6000] = copy[6000] = 0;
	strcpy(other + 2000, "a needle, longer than what fits a register, that occurs nowhere in the haystack");
	memcpy(text + 100, "a needle, longer than what", 26);
	cursor = copy;
}

static size_t used(void *fn, const long *integers, const double *doubles)
{
	unsigned char *top = stack + STACK - 64;
	size_t n = 0;

	restore_texts();
	memset(stack, PAINT, STACK - 64);
	on_stack(fn, top, integers, doubles);
	while (n < STACK - 64 && stack[n] == PAINT)
		n++;
	return STACK - 64 - n;
}

static const long *integers_for(const char *name)
{
	static const long usual[5] = {P(text), P(other), 4000, 4000, P(copy)};

	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		if (strcmp(special[i].name, name) == 0)
			return special[i].integers;
	return usual;
}

static void judge(const char *name, size_t bytes, size_t limit)
{
	measured++;
	if (bytes > limit) {
		printf("%s uses %zu bytes, more than %zu\n", name, bytes, limit);
		failures++;
	}
}

static void measure(const char *name, size_t limit)
{
	static const double inputs[][3] = {{0.5, 0.25, 2},	     {1e10, 3.7, 1},	    {-1.5, 2, 3},
					   {1e-310, 1e-300, 1e-310}, {1e300, 1e-5, 7},	    {700.5, 1.0001, 2},
					   {1e22, 1e15, 1e8},	     {0.9999999, 1234.5, 0}};
	void *fn = dlsym(RTLD_DEFAULT, name);
	size_t most = 0;

	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (strcmp(left_out[i], name) == 0)
			return;
	if (!fn)
		return;
	/* The first call may have to initialize something. */
	on_stack(fn, stack + STACK - 64, integers_for(name), inputs[0]);
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
		size_t n = used(fn, integers_for(name), inputs[i]);

		most = n > most ? n : most;
	}
	judge(name, most, limit);
}

/* ---- locks ---- */

static void *hold_for_a_while(void *lock)
{
	pthread_mutex_lock(lock);
	atomic_store(&is_held, true);
	usleep(20000);
	pthread_mutex_unlock(lock);
	return NULL;
}

static size_t used_by(int (*fn)(pthread_mutex_t *), pthread_mutex_t *lock)
{
	const long integers[5] = {P(lock)};
	const double none[3] = {0};

	return used((void *)fn, integers, none);
}

static void use_mutex(pthread_mutex_t *lock, size_t limit)
{
	pthread_t other;

	judge("pthread_mutex_lock", used_by(pthread_mutex_lock, lock), limit);
	pthread_mutex_unlock(lock);
	judge("pthread_mutex_trylock", used_by(pthread_mutex_trylock, lock), limit);
	judge("pthread_mutex_unlock", used_by(pthread_mutex_unlock, lock), limit);
	atomic_store(&is_held, false);
	if (pthread_create(&other, NULL, hold_for_a_while, lock))
		return;
	while (!atomic_load(&is_held))
		usleep(100);
	judge("pthread_mutex_trylock, held", used_by(pthread_mutex_trylock, lock), limit);
	judge("pthread_mutex_lock, held", used_by(pthread_mutex_lock, lock), limit);
	pthread_mutex_unlock(lock);
	pthread_join(other, NULL);
}

/* Mutexes of every kind: four types, three protocols, robust, shared. */
static void use_mutexes(size_t limit)
{
	for (int kind = 0; kind < 48; kind++) {
		pthread_mutexattr_t how;
		pthread_mutex_t lock;

		pthread_mutexattr_init(&how);
		pthread_mutexattr_settype(&how, kind % 4);
		pthread_mutexattr_setprotocol(&how, kind / 4 % 3);
		pthread_mutexattr_setrobust(&how, kind / 12 % 2);
		pthread_mutexattr_setpshared(&how, kind / 24);
		if (pthread_mutex_init(&lock, &how))
			continue;
		if (kind / 4 % 3 != PTHREAD_PRIO_PROTECT)
			use_mutex(&lock, limit);
		/* By this bit callers know which mutexes they must not lock on their own stack. */
		else if (!(((char *)&lock)[16] & 0x40))
			judge("pthread_mutex_lock, with a priority ceiling,", limit + 1, limit);
	}
}

int main(int argc, char **argv)
{
	size_t small = argc > 1 ? (size_t)atoi(argv[1]) : 192, room = argc > 1 ? small : 2048;

	restore_texts();
#define SMALL(name) measure(#name, small);
#define MEM(name) measure(#name, small);
#define ROOM(name) measure(#name, room);
#define LOCK(name)
#define SETJMP(name)
#define UNTOUCHED(name)
#include "known.def"
	use_mutexes(room);
	printf("%d functions measured, %d use too much\n", measured, failures);
	return failures || measured < 100;
}
