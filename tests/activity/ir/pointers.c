/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a function's twin is stands in front of the function, and calls by pointer look there. */
// RUN: %twins && %see=PLAIN && %see=TWIN
void use(int (*f)(volatile int *));

/* The number is the word "weftnpat". */
// PLAIN: @llvm.compiler.used = {{.*}}@public.yielding{{.*}}@addressed.yielding
// PLAIN-LABEL: define {{.*}}@public(
// PLAIN-SAME: prefix <{ i64, i32, i32 }> <{ i64 8386107600608191863, i32 trunc (i64 sub
// PLAIN-SAME: @public.yielding {{.*}}@public to i64)
int public(volatile int *p)
{
	int times = 0;

	while (*p)
		times++;
	return times;
}

// PLAIN-LABEL: define internal i32 @addressed(
// PLAIN-SAME: prefix {{.*}} i64 8386107600608191863,
static int addressed(volatile int *p)
{
	return public(p) + 1;
}

void hands_out(void)
{
	use(addressed);
}

/* Nobody can have a pointer to this one. */
// PLAIN-LABEL: define internal i32 @private(
// PLAIN-NOT: prefix
// PLAIN-SAME: {{ {$}}
static __attribute__((noinline)) int private(volatile int *p)
{
	return public(p) + 1;
}

int calls_private(volatile int *p)
{
	return private(p);
}

/* The pointer travels in the register for nested functions. */
// TWIN-LABEL: define {{.*}}@calls.yielding(
// TWIN: %[[F:.*]] = load ptr, ptr %f.addr
// TWIN: call i32 @weft__activity_pointer(ptr nest %[[F]], i32 noundef %{{.*}}, double noundef %{{.*}})
int calls(int (*f)(int, double), int n, double d)
{
	return f(n, d);
}

/* A jump cannot go by way of the runtime, which is asked first. */
// TWIN-LABEL: define {{.*}}@jumps.yielding(
// TWIN: %[[F:.*]] = load ptr, ptr %{{[0-9]}},
// TWIN: %[[T:.*]] = call preserve_mostcc ptr @weft__activity_twin(ptr %[[F]])
// TWIN: musttail call i32 %[[T]](
int jumps(int (*const *f)(void *, int), int n)
{
	__attribute__((musttail)) return (*(int (*const *)(int (*const *)(void *, int), int))f)(f, n);
}

// TWIN-LABEL: declare void @weft__activity_pointer()
