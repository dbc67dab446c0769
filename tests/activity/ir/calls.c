/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Yields before and after each call, except where another is so close that nothing lies between the two. */
// RUN: %twins && %see=TWIN && %see=NONE
// RUN: %twins -weft-yields=loops && %see=LOOPS
// LOOPS-NOT: weft.call.mark
#include <stdlib.h>
#include <string.h>
#include <weft/charcoal.h>
int other(int), far(void);
static __attribute__((noinline)) void leaf(int *p)
{
	*p = 3;
}

/* A function of another file, of libc, of this file. The yield after the last call is the caller's. */
// TWIN-LABEL: define {{.*}}@three.yielding(
// TWIN: call void @weft.call.mark()
// TWIN: call i32 @other.either(
// TWIN-NEXT: call void @weft.call.mark()
// TWIN-NEXT: call i32 @atoi(
// TWIN-NEXT: call void @weft.call.mark()
// TWIN: store volatile
// TWIN: call void @weft.call.mark()
// TWIN-NEXT: call void @leaf(
// TWIN-NOT: weft.call.mark
// TWIN: ret void
void three(volatile int *p)
{
	other(*p);
	*p = atoi("1");
	leaf((int *)p);
}

/* The yield at the entry of a twin of this file is the one before its call. */
// TWIN-LABEL: define {{.*}}@calls_twin.yielding(
// TWIN-NOT: weft.call.mark
// TWIN: call void @three.yielding(
// TWIN-NOT: weft.call.mark
// TWIN: call void @three.yielding(
// TWIN-NOT: weft.call.mark
// TWIN: ret void
void calls_twin(volatile int *p)
{
	three(p);
	three(p);
}

/* An explicit yield remains, and takes the place of those beside it. */
// TWIN-LABEL: define {{.*}}@says_so.yielding(
// TWIN: call i32 @far.either()
// TWIN-NOT: weft.call.mark
// TWIN: call void @weft.yield.mark()
// TWIN-NOT: weft.call.mark
// TWIN: call i32 @far.either()
void says_so(void)
{
	far();
	yield();
	far();
}

/* memcpy and its kin are calls if they move many bytes, or a number that is not known. */
// TWIN-LABEL: define {{.*}}@moves.yielding(
// TWIN: call void @llvm.memset{{.*}}(ptr align 1 %{{.*}}, i8 0, i64 16,
// TWIN-NOT: weft.call.mark
// TWIN: store i8 1
// TWIN: call void @weft.call.mark()
// TWIN-NEXT: call void @llvm.memset
// TWIN-NEXT: call void @weft.call.mark()
void moves(char *p, size_t n)
{
	memset(p, 0, 16);
	*p = 1;
	memset(p, 0, n);
	*p = 2;
}

/* None in no_yield and no_implicit_yield. */
// TWIN-LABEL: define {{.*}}@none.yielding(
// TWIN: call i32 @far()
// TWIN-NOT: weft.call.mark
// TWIN: store volatile i32 1,
void none(volatile int *p)
{
	no_yield
	{
		*p = far();
	}
	no_implicit_yield
	{
		*p = far();
	}
	*p = 1;
}

/* activate is no loop, and what it calls is no call. */
// TWIN-LABEL: define {{.*}}@activates.yielding(
// TWIN: call i32 @far.either()
// TWIN-NEXT: call void @weft.call.mark()
// TWIN-NOT: weft.{{call|loop}}.mark
// TWIN: ret void
void activates(activity_t *a)
{
	far();
	activate(a)
	{
		far();
	}
	activity_cancel(a);
}

/* A function that calls nothing and has no loop has no twin. */
// NONE-NOT: @leaf.yielding
// NONE-NOT: @straight.yielding
int straight(int a)
{
	return a * 3;
}
