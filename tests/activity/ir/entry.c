/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A twin looks at the stack, and whether the timer has rung, at its entry; but only if it calls what may yield. */
// RUN: %lower && %see=TWIN
int other(int);

static __attribute__((noinline)) int leaf(int a)
{
	return a * 3;
}

// TWIN-LABEL: define {{.*}}@loops.yielding(
// TWIN-NOT: weft__activity_entered
int loops(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

// TWIN-LABEL: define {{.*}}@loops_and_calls_leaf.yielding(
// TWIN-NOT: weft__activity_entered
int loops_and_calls_leaf(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}

/* The call again, in another stack, has the same arguments. */
// TWIN-LABEL: define {{.*}}@calls_twin.yielding(i32 noundef %n)
// TWIN: %[[SP:.*]] = call i64 @llvm.read_register.i64
// TWIN: %[[HOT:.*]] = call ptr @llvm.threadlocal.address.p0(ptr @weft__activity_hot)
// TWIN: %[[FIELD:.*]] = getelementptr i8, ptr %[[HOT]], i64 0
// TWIN: %[[LIMIT:.*]] = load atomic i64, ptr %[[FIELD]] monotonic
// TWIN: icmp ult i64 %[[SP]], %[[LIMIT]]
// TWIN: %[[FULL:.*]] = call preserve_mostcc i32 @weft__activity_entered()
// TWIN: icmp ne i32 %[[FULL]], 0
// TWIN: getelementptr i8, ptr %{{.*}}, i64 16
// TWIN-NEXT: store ptr @calls_twin.yielding,
// TWIN: %[[RESULT:.*]] = musttail call i32 @weft__activity_fresh(i32 noundef %n)
// TWIN-NEXT: ret i32 %[[RESULT]]
// TWIN: call i32 @loops.yielding(
int calls_twin(int n)
{
	return loops(n) + 1;
}

// TWIN-LABEL: define {{.*}}@calls_other.yielding(
// TWIN: weft__activity_entered
int calls_other(int n)
{
	return other(n);
}

/* Bytes of arguments that lie on the stack go along. */
// TWIN-LABEL: define {{.*}}@on_the_stack.yielding(
// TWIN: weft__activity_entered
// TWIN: getelementptr i8, ptr %{{.*}}, i64 12
// TWIN-NEXT: store i32 {{[1-9][0-9]*}},
int on_the_stack(long a, long b, long c, long d, long e, long f, int on_the_stack)
{
	return other(on_the_stack + (int)(a + b + c + d + e + f));
}

/* Functions without a twin. */
// TWIN-LABEL: define {{.*}}@other.either(
// TWIN-NOT: define
// TWIN-NOT: leaf.yielding
