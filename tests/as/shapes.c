/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of every shape: jump tables, computed gotos, arrays of any size, inline assembly, setjmp, thread-
 * local storage.
 */
#include "check.h"
#include "outside.h"

#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread int local = 5;
__thread int global_tls = 7;

/* ---- control flow ----------------------------------------------------------------------------------------------- */

NOINLINE static long number_of(int i)
{
	switch (i) {
	case 0:
		return out_seven(1, 2, 3, 4, 5, 6, 7);
	case 1:
		return out_pointer(3);
	case 2:
		return 77;
	case 3:
		return out_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) * 2;
	case 4:
		return out_pointer(i) * 3;
	case 5:
		return number_of(0) * number_of(2);
	case 6:
		return number_of(3);
	}
	return -1;
}

NOINLINE static long interpret(const char *code)
{
	static const void *const labels[] = {&&stop, &&add, &&twice, &&call};
	long sum = 0;

	goto *labels[(int)*code];
add:
	sum += code[1];
	code += 2;
	goto *labels[(int)*code];
twice:
	sum *= 2;
	code++;
	goto *labels[(int)*code];
call:
	sum = out_sum(sum, 0, 0, 0, 0, 0, 0, 0, 0, 1);
	code++;
	goto *labels[(int)*code];
stop:
	return sum;
}

static void control(void)
{
	static const char code[] = {1, 5, 2, 3, 1, 7, 2, 3, 0};

	CHECK(number_of(0) == 7021 && number_of(1) == -3 && number_of(3) == 770);
	CHECK(number_of(4) == -12 && number_of(5) == 7021 * 77 && number_of(6) == 770 && number_of(9) == -1);
	CHECK(interpret(code) == ((20 + 7) * 2) + 10);
}

/* ---- memory on the stack ------------------------------------------------------------ */

NOINLINE static long variable(int n)
{
	char a[n];

	out_fill(a, n, 3);
	return a[n / 2] + out_seven(1, 2, 3, 4, 5, 6, a[0]);
}

NOINLINE static long allocated(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++) {
		char *a = alloca((size_t)i * 16 + 1);

		out_fill(a, i * 16 + 1, i);
		sum += a[i];
	}
	return sum;
}

NOINLINE static int big_after_alloca(int n)
{
	char a[n];
	struct big b;

	memset(&b, 1, sizeof b);
	out_fill(a, n, 1);
	b = out_big(b, a[0]);
	return b.bytes[17] + b.bytes[3999];
}

NOINLINE static long large(int n)
{
	volatile char a[100000];

	a[0] = 1;
	a[99999] = 2;
	out_fill((char *)a, 100, n);
	return a[0] + a[99999];
}

NOINLINE static uintptr_t aligned(void)
{
	_Alignas(64) char a[128];

	out_fill(a, 128, 1);
	return ((uintptr_t)a & 63) + (uintptr_t)out_seven(0, 0, 0, 0, 0, 0, a[5]);
}

NOINLINE static long small_buffer(int n)
{
	char text[16];

	snprintf(text, sizeof text, "%d", n);
	return strtol(text, NULL, 10) + (long)strlen(text);
}

NOINLINE static long recursive(int n)
{
	volatile char a[200];

	a[n % 200] = 1;
	return n ? recursive(n - 1) + a[n % 200] : 0;
}

struct node {
	struct node *next;
	long value;
};

/* The address of a variable that decreases in a loop is no copy of the stack pointer, and has no end. */
NOINLINE static long downwards(void)
{
	char text[] = "0123456789";
	char *at = text + 9;

	while (*--at != '3')
		;
	out_fill(at, 1, 'x');
	return at - text + (text[3] == 'x');
}

/* The compiler knows the size: it moves the stack pointer by a constant, in a loop. */
NOINLINE static long allocated_list(int n)
{
	struct node *list = NULL;
	long sum = 0;

	for (int i = 0; i < n; i++) {
		struct node *node = alloca(sizeof *node);

		*node = (struct node){list, i};
		list = node;
	}
	for (; list; list = list->next)
		sum += list->value;
	return sum;
}

NOINLINE static long allocated_kilobytes(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++) {
		char *a = alloca(1000);

		out_fill(a, 1000, i);
		sum += a[999];
	}
	return sum;
}

/* At the end of the array's scope the stack pointer is restored; pushed arguments are removed in the same way. */
NOINLINE static long scopes(int n)
{
	long sum = 0;

	for (int i = 1; i < n; i++) {
		char a[i];

		out_fill(a, i, 1);
		sum += out_sum(a[i - 1], 1, 0, 0, 0, 0, 0, 0, 0, i);
	}
	return sum + out_sum(0, 0, 0, 0, 0, 0, 0, 0, n, 1);
}

/* The copy of the stack pointer is in memory; the frame's alignment differs from its caller's. */
NOINLINE static long aligned_scopes(int n, const long x[8])
{
	_Alignas(64) char kept[64];
	long a = x[0], b = x[1], c = x[2], d = x[3], e = x[4], f = x[5], g = x[6], h = x[7], sum = 0;

	memset(kept, 1, sizeof kept);
	for (int i = 1; i < n; i++) {
		char v[i * 17];

		out_fill(v, i * 17, 1);
		sum += out_sum(a, b, c, d, e, f, g, h, v[i], kept[i % 64]) + (long)((uintptr_t)kept & 63);
		a += b;
		b += c;
		c += d;
		d += e;
		e += f;
		f += g;
		g += h;
		h ^= sum;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ sum;
}

static void memory(void)
{
	static const long numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};

	CHECK(variable(10) == 3024 && variable(3000) == 3024 && variable(100000) == 3024);
	CHECK(allocated(100) == 4950);
	CHECK(downwards() == 4);
	CHECK(allocated_list(300) == 44850 && allocated_kilobytes(100) == 4950);
	CHECK(scopes(100) == 99 + 99 * 2 + 10 * 4950 + 900 + 10);
	CHECK(aligned_scopes(10, numbers) == 571594874);
	CHECK(big_after_alloca(1) == 4 && big_after_alloca(900) == 4);
	CHECK(large(5) == 7);
	CHECK(aligned() == 1000);
	CHECK(small_buffer(12345) == 12350);
	CHECK(recursive(1000) == 1000);
}

/* ---- assembly ------------------------------------------------------------ */

__asm__(".text\n.globl shapes_assembly\n.type shapes_assembly, @function\nshapes_assembly:\n"
	"leaq 1(%rdi), %rax\nret\n.size shapes_assembly, .-shapes_assembly\n"
	".type shapes_hidden, @function\nshapes_hidden:\n"
	"leaq 2(%rdi), %rax\nret\n.size shapes_hidden, .-shapes_hidden");
long shapes_assembly(long x);
long shapes_hidden(long x) __attribute__((visibility("hidden")));

NOINLINE static long user_call(long x)
{
	long r;

	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\tcall shapes_assembly\n\tleaq 128(%%rsp), %%rsp"
			 : "=a"(r)
			 : "D"(x)
			 : "memory", "cc", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11");
	return r;
}

NOINLINE static int asm_goto(int x)
{
	__asm__ goto("testl %0, %0\n\tjs %l[negative]" : : "r"(x) : "cc" : negative);
	return (int)out_pointer(x);
negative:
	return (int)out_pointer(x) + 1000;
}

static void assembly(void)
{
	long (*f)(long) = shapes_assembly;

	CHECK(user_call(41) == 42);
	CHECK(shapes_assembly(1) == 2 && shapes_hidden(1) == 3 && f(2) == 3);
	CHECK(asm_goto(5) == -5 && asm_goto(-5) == 1005);
}

/* ---- jumps and threads' variables ------------------------------------------------------------ */

static jmp_buf environment;

NOINLINE static void deep(int n, int value)
{
	volatile char a[100];

	a[0] = (char)n;
	if (n == 0)
		longjmp(environment, value);
	deep(n - 1, value);
	a[1] = 1;
}

static long jump_from_callback(long value)
{
	longjmp(environment, (int)value);
}

NOINLINE static int jumps(void)
{
	volatile int count = 0;

	switch (setjmp(environment)) {
	case 0:
		count++;
		deep(50, 1);
		return -1;
	case 1:
		count += 10;
		deep(5, 2);
		return -1;
	case 2:
		count += 100;
		out_call(jump_from_callback, 3);
		return -1;
	}
	return count + (int)recursive(100);
}

/* The child's call of exec never returns, and the parent has the child's state. */
NOINLINE static int vforks(void)
{
	int status = -1;
	pid_t child = vfork();

	if (child == 0) {
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status) + (int)recursive(200);
}

NOINLINE static int thread_local_variables(int n)
{
	local += n;
	global_tls += local;
	return global_tls + (int)out_seven(0, 0, 0, 0, 0, 0, 1);
}

#ifndef __clang__
NOINLINE static long nested(long n)
{
	long inner(long x)
	{
		volatile char a[300];

		a[0] = (char)x;
		return x ? inner(x - 1) + n : a[0];
	}
	return inner(20) + inner(3);
}

#define NESTED() CHECK(nested(2) == 46)
#else
#define NESTED() (void)0
#endif

int checks(void)
{
	check_failures = 0;
	local = 5;
	global_tls = 7;
	control();
	memory();
	assembly();
	CHECK(jumps() == 211);
	CHECK(vforks() == 207);
	CHECK(thread_local_variables(3) == 1015);
	NESTED();
	return check_failures;
}
