/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In no_yield a twin calls plain functions, has no yield on a back-edge, and loses its explicit yields. */
// RUN: %twins && %see=TWIN && %see=NONE
#include <weft/charcoal.h>
// NONE-NOT: call {{.*}}weft_needs_cc_with_activities

int work(int n)
{
	while (n > 1000)
		n -= n / 2;
	return n;
}

// TWIN-LABEL: define {{.*}}@block.yielding(
// TWIN: call i32 @work.yielding(
// TWIN-NOT: @work.yielding
// TWIN: call i32 @work(
// TWIN-NOT: @work(
// TWIN: call i32 @work.yielding(
int block(int n)
{
	int sum = work(n);

	no_yield
	{
		sum += work(n);
	}
	return sum + work(n);
}

// TWIN-LABEL: define {{.*}}@nested.yielding(
// TWIN-COUNT-3: call i32 @work(
// TWIN: call i32 @work.yielding(
int nested(int n)
{
	int sum = 0;

	no_yield
	{
		sum += work(n);
		no_yield
		{
			sum += work(n);
		}
		sum += work(n);
	}
	return sum + work(n);
}

// TWIN-LABEL: define {{.*}}@expression.yielding(
// TWIN: call i32 @work(
// TWIN: call i32 @work.yielding(
int expression(int n)
{
	return no_yield_expr(work(n)) + work(n);
}

/* One yield on the way back of the loop outside, none on that of the loop in the block. */
// TWIN-LABEL: define {{.*}}@loop.yielding(
// TWIN: call void @weft.loop.mark()
// TWIN-NEXT: br label %while.cond,
// TWIN-NOT: weft.loop.mark
void loop(volatile int *p)
{
	while (*p)
		no_yield
		{
			for (int i = 0; i < 10; i++)
				*p += i;
		}
}

// TWIN-LABEL: define {{.*}}@yields.yielding(
// TWIN: store volatile i32 1,
// TWIN-NEXT: call preserve_nonecc void @weft__activity_yield_now()
// TWIN-NEXT: call void @weft.yield.mark()
// TWIN: store volatile i32 2,
// TWIN-NOT: yield_now
// TWIN-NOT: weft.yield.mark
// TWIN-NOT: @weft_activity_yield
// TWIN: store volatile i32 3,
void yields(volatile int *p)
{
	*p = 1;
	yield_now();
	yield();
	no_yield
	{
		*p = 2;
		yield_now();
		yield();
		*p = 3;
	}
}

/* By pointer: the plain function. */
// TWIN-LABEL: define {{.*}}@by_pointer.yielding(
// TWIN-NOT: weft__activity_pointer
// TWIN: call i32 %{{[0-9]*}}(i32
// TWIN: call i32 @weft__activity_pointer(
int by_pointer(int (*f)(int), int n)
{
	int is = no_yield_expr(f(n));

	return is + f(n);
}

/* Waits in no_yield are not switches: weft__activity_park ends the process if it is called. */
// TWIN-LABEL: define {{.*}}@waits.yielding(
// TWIN: call void @weft_activity_sem_wait(
// TWIN: call void @weft_activity_sem_wait.yielding(
void waits(activity_sem_t *s)
{
	no_yield
	{
		activity_sem_wait(s);
	}
	activity_sem_wait(s);
}

/* In no_implicit_yield only what the compiler would insert is missing. */
// TWIN-LABEL: define {{.*}}@implicit.yielding(
// TWIN-NOT: weft.loop.mark
// TWIN: call preserve_nonecc void @weft__activity_yield_now()
// TWIN-NOT: weft.loop.mark
// TWIN: call i32 @work.yielding(
// TWIN-NOT: weft.loop.mark
void implicit(volatile int *p)
{
	no_implicit_yield
	{
		while (*p) {
			yield_now();
			*p = work(*p);
		}
	}
}

// TWIN-LABEL: define {{.*}}@implicit_function.yielding(
// TWIN-NOT: weft.loop.mark
// TWIN: call i32 @work.yielding(
// TWIN-NOT: weft.loop.mark
WEFT_NO_IMPLICIT_YIELD void implicit_function(volatile int *p)
{
	while (*p)
		*p = work(*p);
}

// TWIN-LABEL: define {{.*}}@calls_atomic.yielding(
// TWIN: call i32 @atomic(
// TWIN: call i32 @work.yielding(
// TWIN: {{^}}}
// TWIN-NOT: @atomic.yielding
NO_YIELD int atomic(int n)
{
	return work(n);
}

int calls_atomic(int n)
{
	return atomic(n) + work(n);
}
