/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Activities behave as C does, at every place of a yield: each case runs in several activities at once, whose answers
 * must equal those of plain C. Every case is right for any timer; more switches find more faults.
 */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"

/* ---- atomic code ----------------------------------------------------------------------------------------------- */

static void count(long *shared)
{
	for (int i = 0; i < 1000; i++)
		++*shared;
}

/* Read, compute, write, without a call: nothing comes between. */
static void add(long *shared, int times)
{
	for (int i = 0; i < times; i++) {
		long v = *shared;

		v = v % 2 ? v + 1 : v * 3 + 1 - 2 * v;
		*shared = v;
	}
}

static void counters(void)
{
	long shared = 0, other = 0;
	activity_t all[4];

	for (int i = 0; i < 4; i++)
		activate(&all[i])
		{
			count(&shared);
			add(&other, 500);
		}
	wait_all(all, 4);
	expect(shared == 4000, "a race for a counter cannot happen");
	expect(other == 2000, "a block without calls is atomic");
}

static int inside, intruders;

/* Detects another activity in the same place. */
static long critical(long n)
{
	long sum = 0;

	intruders += inside++ != 0;
	for (long i = 0; i < n; i++) {
		sum += i;
		yield_now();
	}
	inside--;
	return sum;
}

NO_YIELD static long critical_function(long n)
{
	return critical(n);
}

#if WEFT_CANARY(slips)
#define ATOMIC
#else
#define ATOMIC no_yield
#endif

static long (*volatile critical_pointer)(long) = critical;

static void atomicity(void)
{
	activity_t all[3];
	long sums[3] = {0};

	inside = intruders = 0;
	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			for (int k = 0; k < 20; k++) {
				ATOMIC
				{
					sums[i] += critical(10);
				}
				sums[i] += no_yield_expr(critical(10));
				sums[i] += critical_function(10);
				no_yield
				{
					no_yield
					{
						sums[i] += critical_pointer(10);
					}
					sums[i] += critical_pointer(10);
				}
			}
		}
	wait_all(all, 3);
	expect(intruders == 0, "no yield slips into no_yield");
	expect(sums[0] == 4500 && sums[1] == 4500 && sums[2] == 4500, "what no_yield computes");
}

/* yield_now always switches outside no_yield; yield switches if the timer has rung. */
static void yields(void)
{
	activity_t all[2], other;
	int turns = 0, before, after;
	bool done = false;

	inside = intruders = 0;
	for (int i = 0; i < 2; i++)
		activate(&all[i])
		{
			(void)critical(10);
		}
	wait_all(all, 2);
	expect(intruders == 1, "yield_now switches");

	activate(&other)
	{
		no_implicit_yield
		{
			while (!done) {
				turns++;
				yield_now();
			}
		}
	}
	yield_now();
	no_implicit_yield
	{
		before = turns;
		yield();
		after = turns;
	}
	expect(timer_is("off")	   ? after == before
	       : timer_is("every") ? after == before + 1
				   : true,
	       "yield switches only if the timer has rung");
	no_yield
	{
		before = turns;
		yield();
		yield_now();
		after = turns;
	}
	expect(after == before, "in no_yield neither switches");
	done = true;
	activity_wait(&other);
}

/* The exit of a loop is not a back-edge: the values that the last iteration has read are still valid behind the loop.
 * */
static void take(volatile long *shared, long times)
{
	for (long i = 0; i < times; i++) {
		long had;

		do {
			had = *shared;
		} while (!had);
		*shared = had - 1;
	}
}

/* Like take, for a loop that is long enough to be compiled into strips. */
static void look(long *shared, long *sum, long times)
{
	long had, i = 0;

	do {
		had = *shared;
		*sum += i;
	} while (++i < times);
	*shared = had + 1;
}

/* Like take, for a condition that moves to the end of the loop. */
static void put(long *shared, long times)
{
	long had, i = 0;

	while (had = *shared, i++ < times)
		*shared = had + 1;
}

static void ends_of_loops(void)
{
	activity_t all[3];
	long shared = 3000;
	long *sums = calloc(3, sizeof *sums);

	for (int i = 0; i < 3; i++)
		activate(&all[i])
		{
			take(&shared, 1000);
		}
	wait_all(all, 3);
	expect(shared == 0, "no yield where a loop ends");
	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			for (int k = 0; k < 20; k++)
				look(&shared, &sums[i], 1500 + k);
		}
	wait_all(all, 3);
	expect(shared == 60, "no yield where a loop in strips ends");
	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			put(&shared, 2000 + i);
		}
	wait_all(all, 3);
	expect(shared == 60 + 6003, "no yield between a loop's condition and its body");
	free(sums);
}

/* Two ways lead into this loop. */
static void wait_by_goto(const bool *flag, int way, long *rounds)
{
	if (way & 1)
		goto in;
out:
	++*rounds;
in:
	*rounds += 2;
	if (!*flag)
		goto out;
}

static void gotos_into_loops(void)
{
	activity_t all[2];
	bool flag = false;
	long rounds = 0;

	/* With the timer off they would wait for ever. */
	flag = timer_is("off");
	for (int i = 0; i < 2; i++)
		activate(&all[i], i)
		{
			wait_by_goto(&flag, i, &rounds);
		}
	yield_now();
	flag = true;
	wait_all(all, 2);
	expect(rounds > 3, "a loop with two ways in yields");
}

static void no_implicit(void)
{
	activity_t all[2];
	int busy = 0, seen = 0;

	for (int i = 0; i < 2; i++)
		activate(&all[i])
		{
			no_implicit_yield
			{
				seen += busy;
				busy = 1;
				for (volatile int k = 0; k < 1000; k++)
					;
				busy = 0;
			}
		}
	wait_all(all, 2);
	expect(seen == 0, "no yield is inserted in no_implicit_yield");
}

/* ---- shared variables ------------------------------------------------------------------------------------------- */

struct large {
	int numbers[20];
	double real;
	char text[13];
};

static bool large_is(const struct large *l, int first)
{
	for (int i = 0; i < 20; i++)
		if (l->numbers[i] != first + i)
			return false;
	return l->real == first / 2.0 && !strcmp(l->text, "twelve chars");
}

static struct large make_large(int first)
{
	struct large l = {.real = first / 2.0, .text = "twelve chars"};

	for (int i = 0; i < 20; i++)
		l.numbers[i] = first + i;
	return l;
}

static void captures(void)
{
	activity_t a, b;
	char c = 'c';
	short s = -7;
	int i = 1, reference = 1;
	unsigned long long l = 1ull << 63;
	float f = 0.5f;
	double d = 0.25;
	int *p = &reference;
	struct large big = make_large(5);
	bool right = false, mine = false;

	activate(&a, c, s, i, l, f, d, p, big)
	{
		yield_now();
		reference += 10;
		right = c == 'c' && s == -7 && i == 1 && l == 1ull << 63 && f == 0.5f && d == 0.25 && p == &reference &&
			large_is(&big, 5);
		i = 99;
		big.numbers[0] = 99;
	}
	/* Before anything that may yield. */
	c = 'x', s = 0, i = 2, l = 0, f = 0, d = 0, p = NULL, reference = 2;
	big = make_large(7);
	activate(&b)
	{
		yield_now();
		mine = i == 2 && large_is(&big, 7);
		reference += 100;
	}
	activity_wait(&a), activity_wait(&b);
	expect(right, "listed variables are copies");
	expect(mine && i == 2 && big.numbers[0] == 7, "the copies are the activity's own");
	expect(reference == 112, "other variables are shared");
}

static int nested_sum;

static void nesting(void)
{
	activity_t outer[3];
	int total = 0;

	for (int i = 0; i < 3; i++)
		activate(&outer[i], i)
		{
			activity_t inner[2];
			int mine = 0;

			for (int k = 0; k < 2; k++)
				activate(&inner[k], k)
				{
					activate_detached(i, k)
					{
						yield_now();
						nested_sum += 100 * i + k;
					}
					yield_now();
					mine += 10 * i + k;
				}
			wait_all(inner, 2);
			total += mine;
		}
	wait_all(outer, 3);
	for (int n = 0; n < 20; n++)
		yield_now();
	expect(total == 63, "activities in activities");
	expect(nested_sum == 603, "detached ones, within");
}

static int ended;
static void *volatile known;

/* Returns before its activity runs, whose scopes end all the same. */
__attribute__((noinline)) static void start_and_return(void)
{
	activate_detached()
	{
		yield_now();
		for (int i = 0; i < 2; i++)
			activate_detached()
			{
				yield_now();
				ended++;
			}
		no_yield
		{
			ended++;
		}
	}
}

/* Its variable may be at the address of a variable of start_and_return. */
__attribute__((noinline)) static bool keeps_variable(void)
{
	int v = 77;

	known = &v;
	for (int i = 0; i < 20; i++)
		yield_now();
	return v == 77;
}

static void returned(void)
{
	bool kept;

	ended = 0;
	start_and_return();
	kept = keeps_variable();
	while (ended < 3)
		yield_now();
	expect(kept, "a block needs nothing of a function that has returned");
}

/* ---- control flow ----------------------------------------------------------------------------------------------- */

static int body(int kind)
{
	activity_t a;
	int did = 0;

	activate(&a, kind)
	{
		switch (kind) {
		case 0:
			did = 1;
			break;
		case 1:
			for (int i = 0; i < 10; i++) {
				if (i == 3)
					continue;
				if (i == 6)
					break;
				did += i;
			}
			break;
		case 2:
			did = 7;
			continue;
		default:
			did = 100;
			goto over;
		}
		did += 1000;
	over:
		did += 10000;
	}
	activity_wait(&a);
	return did;
}

/* No path reaches the code behind a `break`, where an array of variable length ends. */
static int dead_code(int n)
{
	activity_t a;
	int did = 0;

	activate(&a)
	{
		for (int i = 0; i < 3; i++) {
			char sized[n];

			memset(sized, 1, (size_t)n);
			did += sized[n - 1] + i;
			if (4 % 2 == 0)
				break;
			did += sized[0];
		}
	}
	activity_wait(&a);
	return did;
}

static void bodies(void)
{
	expect(body(0) == 11001, "switch in a body");
	expect(body(1) == 11012, "a loop with break and continue in a body");
	expect(body(2) == 7, "continue ends the activity");
	expect(body(3) == 10100, "goto within a body");
	expect(dead_code(9) == 1, "dead code in a body");
}

enum { PUSH, ADD, MULTIPLY, JUMP, STOP };

/* A machine of computed gotos, as interpreters have them. */
static long interpret(const int *code, int rounds)
{
	static const void *const labels[] = {&&push, &&add, &&multiply, &&jump, &&stop};
	long stack[16], *top = stack;
	const int *at = code;

	goto *labels[*at++];
push:
	*top++ = *at++;
	goto *labels[*at++];
add:
	top--;
	top[-1] += *top;
	goto *labels[*at++];
multiply:
	top--;
	top[-1] *= *top;
	goto *labels[*at++];
jump:
	if (--rounds > 0)
		at = code + *at;
	else
		at++;
	goto *labels[*at++];
stop:
	return top[-1];
}

static void gotos(void)
{
	static const int code[] = {PUSH, 1, PUSH, 3, ADD, PUSH, 2, MULTIPLY, JUMP, 2, STOP};
	activity_t all[3];
	long is[3], should = 8;

	for (int i = 1; i < 20; i++)
		should = (should + 3) * 2;
	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = interpret(code, 20);
		}
	wait_all(all, 3);
	expect(is[0] == should && is[1] == should && is[2] == should, "computed goto");
}

static int jumped(int depth, jmp_buf back)
{
	char fill[64];

	memset(fill, depth, sizeof fill);
	yield_now();
	if (depth == 0)
		longjmp(back, 42);
	return jumped(depth - 1, back) + fill[depth & 63];
}

static int jumps(int depth)
{
	jmp_buf back;
	volatile int tries = 0;
	int with = setjmp(back);

	yield_now();
	if (++tries < 4)
		return jumped(depth, back);
	return with + tries;
}

static void long_jumps(void)
{
	activity_t all[3];
	int is[3];

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = jumps(i * 10);
		}
	wait_all(all, 3);
	expect(is[0] == 46 && is[1] == 46 && is[2] == 46, "setjmp and longjmp across yields");
}

static int loops(int n)
{
	int sum = 0, i = 0;

	do {
		for (int k = n; k-- > 0;) {
			if (k % 3 == 0)
				continue;
			sum += k;
		}
	} while (++i < n);
again:
	sum -= i;
	if (--i > 0)
		goto again;
	while (sum % 7)
		sum--;
	return sum;
}

static void all_loops(void)
{
	activity_t all[3];
	int is[3], should = no_yield_expr(loops(40));

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = loops(40);
		}
	wait_all(all, 3);
	expect(is[0] == should && is[1] == should && is[2] == should, "loops of every kind");
}

/* Long enough to be made of strips, and in vectors. */
static long vectors(const int *from, int *to, int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		to[i] = from[i] * 3 + i;
	for (int i = 0; i < n; i++)
		sum += to[i];
	return sum;
}

static void strips(void)
{
	enum { N = 5000 };
	int *memory = calloc(4 * N, sizeof *memory);
	activity_t all[3];
	long is[3], should = 0;

	for (int i = 0; i < N; i++)
		memory[i] = i * i, should += i * i * 3 + i;
	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = vectors(memory, memory + N * (i + 1), N - i) + (long)i * 0;
		}
	wait_all(all, 3);
	expect(is[0] == should, "loops in strips");
	expect(is[1] == should - (memory[N - 1] * 3 + N - 1) && is[2] < is[1], "loops in strips, of other lengths");
	free(memory);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static int sum_of(int n, ...)
{
	va_list all, again;
	int sum = 0;

	va_start(all, n);
	va_copy(again, all);
	for (int i = 0; i < n; i++) {
		sum += va_arg(all, int);
		yield_now();
		sum += (int)va_arg(all, double);
	}
	va_end(all);
	for (int i = 0; i < n; i++) {
		sum += va_arg(again, int);
		yield_now();
		sum += (int)va_arg(again, double);
	}
	va_end(again);
	return sum;
}

static void variadic(void)
{
	activity_t all[3];
	int is[3];

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = sum_of(6, i, 1.0, 2, 3.0, 4, 5.0, 6, 7.0, 8, 9.0, 10, 11.0);
		}
	wait_all(all, 3);
	expect(is[0] == 132 && is[1] == 134 && is[2] == 136, "variable arguments");
}

static int arrays(int n)
{
	int sized[n], *more = alloca((size_t)n * sizeof *more), *ends = &sized[n];

	for (int i = 0; i < n; i++) {
		int inner[i + 1];

		sized[i] = i;
		more[i] = -i;
		inner[i] = 1;
		yield_now();
		ends[-n + i] += inner[i];
	}
	for (int i = 0; i < n; i++)
		sized[0] += i ? sized[i] + more[i] : 0;
	return sized[0];
}

static void array_cases(void)
{
	activity_t all[3];
	int is[3];

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = arrays(50 * (i + 1));
		}
	wait_all(all, 3);
	expect(is[0] == 50 && is[1] == 100 && is[2] == 150, "arrays of variable length, and alloca");
}

static long by_value(struct large l, int first)
{
	l.numbers[3] += 1;
	yield_now();
	l.numbers[3] -= 1;
	return large_is(&l, first) ? first : -1;
}

struct two {
	long a;
	double b;
};

static struct two make_two(int n)
{
	struct two t = {n, n / 4.0};

	yield_now();
	t.a++;
	return t;
}

static struct large pass_on(struct large l)
{
	yield_now();
	l.numbers[0]++;
	yield_now();
	l.numbers[0]--;
	return l;
}

static void structs(void)
{
	activity_t all[3];
	int good = 0;

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			struct large l = pass_on(make_large(i));
			struct two t = make_two(i);

			if (by_value(l, i) == i && large_is(&l, i) && t.a == i + 1 && t.b == i / 4.0)
				good++;
		}
	wait_all(all, 3);
	expect(good == 3, "structs as arguments and results");
}

static long many(long a, int b, double c, char d, float e, long f, short g, long h, long i, double j, struct two k)
{
	yield_now();
	return a + b + (long)c + d + (long)e + f + g + h + i + (long)j + k.a + (long)k.b;
}

static void arguments(void)
{
	activity_t all[3];
	long is[3];

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			struct two k = {1000, 2000.5};
			is[i] = many(i, 1, 2, 3, 4, 5, 6, 7, 8, 9, k);
		}
	wait_all(all, 3);
	expect(is[0] == 3045 && is[1] == 3046 && is[2] == 3047, "arguments in registers and on the stack");
}

static int trace_length;
static char trace[64];

static int note(int who)
{
	for (int i = 0; i < 3; i++) {
		trace[trace_length++] = (char)('a' + who);
		yield_now();
	}
	return who;
}

static int (*volatile notes[2])(int) = {note, note};

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	for (int i = 0; i < 3; i++)
		yield_now();
	return (x > y) - (x < y);
}

static void pointers(void)
{
	activity_t all[2];
	int numbers[2][8] = {{5, 3, 8, 1, 9, 2, 7, 4}, {5, 3, 8, 1, 9, 2, 7, 4}};

	trace_length = 0;
	for (int i = 0; i < 2; i++)
		activate(&all[i], i)
		{
			(void)notes[i](i);
		}
	wait_all(all, 2);
	/* In turns; the timer decides which activity is first after a yield of the loop's own. */
	expect(trace_length == 6 && memcmp(trace, "aaa", 3) && memcmp(trace, "bbb", 3), "a call by pointer yields");
	trace_length = 0;
	for (int i = 0; i < 2; i++)
		activate(&all[i], i)
		{
			no_yield
			{
				(void)notes[i](i);
			}
		}
	wait_all(all, 2);
	expect(trace_length == 6 && !memcmp(trace, "aaabbb", 6), "in no_yield it does not");
	for (int i = 0; i < 2; i++)
		activate(&all[i], i)
		{
			qsort(numbers[i], 8, sizeof(int), compare);
		}
	wait_all(all, 2);
	expect(numbers[0][0] == 1 && numbers[0][7] == 9 && !memcmp(numbers[0], numbers[1], sizeof numbers[0]),
	       "called by plain code, a function is plain");
}

/* ---- recursion -------------------------------------------------------------------------------------------------- */

/* The program of the published figures. */
static int call_return(int n, int x)
{
	static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

	return n < 2 ? table[x & 7] : call_return(n / 2, call_return(n - n / 2, x));
}

static long ackermann(long m, long n)
{
	if (m == 0)
		return n + 1;
	return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

/* Frames of many sizes, more of them than are copied. */
static int uneven(int n)
{
	volatile char fill[n % 7 * 100 + 1];

	fill[0] = (char)n;
	if (n == 0)
		return 0;
	if (n % 50 == 0)
		yield_now();
	return uneven(n - 1) + (fill[0] == (char)n);
}

static void merge_sort(int *a, int *space, int n)
{
	int half = n / 2, i = 0, k = half;

	if (n < 2)
		return;
	merge_sort(a, space, half);
	merge_sort(a + half, space, n - half);
	for (int to = 0; to < n; to++)
		space[to] = k == n || (i < half && a[i] <= a[k]) ? a[i++] : a[k++];
	memcpy(a, space, (size_t)n * sizeof *a);
}

static bool sorted_all(void)
{
	enum { N = 300 };
	static int numbers[3][N];
	activity_t all[3];
	bool good = true;

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			int space[N];
			unsigned x = (unsigned)i + 1;

			for (int k = 0; k < N; k++)
				numbers[i][k] = (int)((x = x * 1103515245 + 12345) >> 16 & 1023);
			merge_sort(numbers[i], space, N);
		}
	wait_all(all, 3);
	for (int i = 0; i < 3; i++)
		for (int k = 1; k < N; k++)
			good &= numbers[i][k - 1] <= numbers[i][k];
	return good;
}

static void recursion(void)
{
	activity_t all[3];
	long is[3], deep[3];
	int answer[3], plain = no_yield_expr(call_return(200, 5));

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			answer[i] = call_return(200, 5);
			is[i] = ackermann(2, 6);
			deep[i] = uneven(1000 * (i + 1));
		}
	wait_all(all, 3);
	expect(answer[0] == plain && answer[1] == plain && answer[2] == plain, "calls and returns");
	expect(is[0] == 15 && is[1] == 15 && is[2] == 15, "recursion");
	expect(deep[0] == 1000 && deep[1] == 2000 && deep[2] == 3000, "recursion that leaves the hot stack");
	expect(sorted_all(), "merge sort");
}

/* ---- variables -------------------------------------------------------------------------------------------------- */

static void bump(int *number)
{
	yield_now();
	++*number;
}

static void addresses(void)
{
	activity_t a, b;
	int *published = NULL, met = 0;

	activate(&a)
	{
		int mine = 5;

		published = &mine;
		while (mine != 6)
			yield_now();
		bump(&mine);
		met = mine;
	}
	activate(&b)
	{
		char fill[300];

		memset(fill, 'x', sizeof fill);
		while (!published)
			yield_now();
		bump(published);
	}
	activity_wait(&a), activity_wait(&b);
	expect(met == 7, "a pointer to a parked activity's variable is good");
}

/* ---- calls that become loops, and code in front of which nothing lies -------------------------------------------- */

enum { PATIENCE = 2000000000 };
static int released;
static long rounds;

static void spin(void)
{
	if (!released && rounds++ < PATIENCE)
		spin();
}

static void pong(void);

static void ping(void)
{
	if (!released && rounds++ < PATIENCE)
		pong();
}

static void pong(void)
{
	if (!released && rounds++ < PATIENCE)
		ping();
}

struct link {
	struct link *next;
	int turns;
};

/* The loop inside may have no turn. */
static int walk(const struct link *l)
{
	for (int i = 0; i < l->turns; i++)
		rounds++;
	if (released || rounds++ > PATIENCE)
		return l->turns;
	return walk(l->next);
}

static void release_while(void (*runs)(void))
{
	activity_t a, b;

	released = 0;
	rounds = 0;
	activate(&a)
	{
		runs();
	}
	activate(&b)
	{
		released = 1;
	}
	activity_wait(&a), activity_wait(&b);
	expect(rounds < PATIENCE, "a call at a function's end yields");
}

static void walks(void)
{
	struct link ring = {&ring, 0};

	(void)walk(&ring);
}

static void tail_calls(void)
{
	if (timer_is("off"))
		return;
	release_while(spin);
	release_while(ping);
	release_while(walks);
}

/* UndefinedBehaviorSanitizer reads in front of a function by itself. */
__attribute__((noinline, no_sanitize("function"))) static int call_made(int (*made)(void))
{
	return made();
}

/* Like the code of a just-in-time compiler: a page of code, and no page in front of it. */
static void page_starts(void)
{
	static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov eax, 42; ret */
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*made)(void) = (int (*)(void))(at + page);
	activity_t a;
	int answer = 0;

	memcpy(at + page, code, sizeof code);
	mprotect(at + page, page, PROT_READ | PROT_EXEC);
	mprotect(at, page, PROT_NONE);
	activate(&a)
	{
		answer = call_made(made);
	}
	activity_wait(&a);
	expect(answer == 42, "a call of code at the beginning of a mapping");
	munmap(at, 2 * page);
}

static double floats(int n)
{
	double d = n;
	float f = 1;
	long double l = 1;

	for (int i = 0; i < 10; i++) {
		d = d * 1.5 + f;
		yield_now();
		f = f / 2 + (float)n;
		l = l * 3 / 2 + d;
	}
	return d + f + (double)l;
}

static void float_cases(void)
{
	activity_t all[3];
	double is[3];
	int good = 0;

	for (int i = 0; i < 3; i++)
		activate(&all[i], i)
		{
			is[i] = floats(i);
		}
	wait_all(all, 3);
	for (int i = 0; i < 3; i++)
		good += is[i] == no_yield_expr(floats(i));
	expect(good == 3, "floating point across yields");
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void semaphores(void)
{
	enum { RING = 10 };
	activity_sem_t ring[RING], gate = WEFT_ACTIVITY_SEM(0);
	activity_t all[RING];
	int token = 0, through = 0, order = 0;

	for (int i = 0; i < RING; i++)
		activity_sem_init(&ring[i], 0);
	for (int i = 0; i < RING; i++)
		activate(&all[i], i)
		{
			for (int round = 0; round < 20; round++) {
				activity_sem_wait(&ring[i]);
				token++;
				activity_sem_post(&ring[(i + 1) % RING]);
			}
		}
	activity_sem_post(&ring[0]);
	wait_all(all, RING);
	expect(token == 200, "a ring of semaphores");
	for (int i = 0; i < RING; i++)
		activate(&all[i], i)
		{
			activity_sem_wait(&gate);
			order += through++ == i;
		}
	for (int i = 0; i < RING; i++)
		activity_sem_post(&gate);
	wait_all(all, RING);
	expect(through == RING, "a gate lets all through");
	expect(activity_wait(&all[0]) == 0, "waiting for one that has ended");
	expect(activity_self() && activity_self() != &all[0], "self");
}

static void parked(void)
{
	enum { MANY = 3000 };
	activity_t *all = calloc(MANY, sizeof *all);
	activity_sem_t gate = WEFT_ACTIVITY_SEM(0);
	long sum = 0;

	for (int i = 0; i < MANY; i++)
		activate(&all[i], i)
		{
			activity_sem_wait(&gate);
			sum += i;
		}
	yield_now();
	for (int i = 0; i < MANY; i++)
		activity_sem_post(&gate);
	wait_all(all, MANY);
	expect(sum == (long)MANY * (MANY - 1) / 2, "thousands that are parked");
	free(all);
}

int activity_main(void)
{
	counters();
	atomicity();
	yields();
	ends_of_loops();
	gotos_into_loops();
	no_implicit();
	captures();
	nesting();
	returned();
	bodies();
	gotos();
	long_jumps();
	all_loops();
	strips();
	variadic();
	array_cases();
	structs();
	arguments();
	pointers();
	recursion();
	addresses();
	tail_calls();
	page_starts();
	float_cases();
	semaphores();
	parked();
	return cases_failed != 0;
}
