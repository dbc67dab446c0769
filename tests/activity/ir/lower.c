/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* At the end markers are checks, and nothing is left of the pass's own words: without and with the optimizer. */
// RUN: %lower && %see=TWIN && %see=NONE
// RUN: %optimized && %see=NONE && %see=OPTIMIZED
// NONE-NOT: weft.loop.mark
// NONE-NOT: weft.entry.mark
// NONE-NOT: weft.yield.mark
// NONE-NOT: call {{.*}}weft_needs_cc_with_activities
#include <setjmp.h>
#include <weft/charcoal.h>
int other(int);

/* On a back-edge: one comparison of the flag in memory. */
// TWIN-LABEL: define {{.*}}@loops.yielding(
// TWIN: %[[HOT:.*]] = call ptr @llvm.threadlocal.address.p0(ptr @weft__activity_hot)
// TWIN-NEXT: %[[FLAG:.*]] = getelementptr i8, ptr %[[HOT]], i64 8
// TWIN-NEXT: %[[SET:.*]] = call i32 asm sideeffect "cmpl $$0, $1", {{.*}}(ptr elementtype(i32) %[[FLAG]])
// TWIN-NEXT: %[[RUNG:.*]] = icmp ne i32 %[[SET]], 0
// TWIN-NEXT: br i1 %[[RUNG]],
// TWIN: call preserve_mostcc void @weft__activity_tick()
void loops(volatile int *p)
{
	while (*p)
		no_yield
		{
			*p = 1;
		}
}

/* At an explicit yield, too. */
// TWIN-LABEL: define {{.*}}@yields.yielding(
// TWIN: asm sideeffect "cmpl $$0, $1"
// TWIN: call preserve_mostcc void @weft__activity_tick()
// TWIN-NOT: cmpl
void yields(void)
{
	yield();
}

/* In a loop with two ways in, too. */
// TWIN-LABEL: define {{.*}}@entered_twice.yielding(
// TWIN: asm sideeffect "cmpl $$0, $1"
// TWIN: call preserve_mostcc void @weft__activity_tick()
void entered_twice(volatile int *p)
{
	if (*p)
		goto in;
out:
	*p = 1;
in:
	if (*p != 2)
		goto out;
}

/* Behind setjmp, what the functions that longjmp left had in the heap is given back. */
// TWIN-LABEL: define {{.*}}@lands.yielding(
// TWIN: %[[NEWEST:.*]] = call ptr @weft__activity_newest()
// TWIN-NEXT: store volatile ptr %[[NEWEST]], ptr %[[SLOT:.*]],
// TWIN-NEXT: call i32 @_setjmp(
// TWIN-NEXT: %[[THEN:.*]] = load volatile ptr, ptr %[[SLOT]]
// TWIN-NEXT: call void @weft__activity_landed(ptr %[[THEN]])
int lands(jmp_buf back)
{
	if (setjmp(back))
		return 1;
	return other(2);
}

/* Where the frame may have a base pointer, a wait keeps all registers. */
// TWIN-LABEL: define {{.*}}@fixed_frame.yielding(
// TWIN: call preserve_nonecc void @weft__activity_yield_now()
// TWIN-LABEL: define {{.*}}@sized_frame.yielding(
// TWIN: call preserve_mostcc void @weft__activity_yield_kept()
void fixed_frame(void)
{
	yield_now();
}

int sized_frame(int n)
{
	volatile int a[n];

	a[0] = n;
	yield_now();
	return a[n - 1];
}

/* A check makes the condition of a loop be there twice. Behind the loop is one comparison all the same. */
// OPTIMIZED-LABEL: define {{.*}}@look_up.yielding(
// OPTIMIZED-COUNT-2: call preserve_mostcc void @weft__activity_tick()
// OPTIMIZED: %[[FOUND:.*]] = phi i32
// OPTIMIZED-NEXT: %[[BIT:.*]] = icmp eq i32 %[[FOUND]], 0
// OPTIMIZED-NEXT: zext i1 %[[BIT]] to i32
int look_up(const int *table, unsigned mask, int key)
{
	unsigned at = (unsigned)key & mask;

	while (table[at] && table[at] != key)
		at = (at + 1) & mask;
	return !table[at];
}

/* A call of the function itself at its end becomes a loop, which yields though nothing lies between two calls. */
// OPTIMIZED-LABEL: define {{.*}}@steps.yielding(
// OPTIMIZED: %[[N:.*]] = phi i64
// OPTIMIZED: call preserve_mostcc void @weft__activity_tick()
// OPTIMIZED: {{^}}}
int steps(unsigned long n, int before)
{
	return n < 2 ? before : steps(n % 2 ? 3 * n + 1 : n / 2, before + 1);
}
