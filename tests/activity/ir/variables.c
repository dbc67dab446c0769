/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Variables of a twin whose address others may know lie in the heap; the others stay in the frame. */
// RUN: %lower && %see=TWIN && %see=PLAIN
void know(void *), look(const void *) __attribute__((nothrow));
static void *volatile somewhere;

// PLAIN-LABEL: define {{.*}}@passes(
// PLAIN-NOT: weft__activity_push
// PLAIN-LABEL: define {{.*}}@passes.yielding(

/* One block for all that there are, given back at each exit. */
// TWIN-LABEL: define {{.*}}@passes.yielding(
// TWIN-NOT: alloca [4 x i32]
// TWIN: %[[BLOCK:.*]] = call ptr @weft__activity_push(i64 48)
// TWIN-DAG: getelementptr i8, ptr %[[BLOCK]], i64 0
// TWIN-DAG: getelementptr i8, ptr %[[BLOCK]], i64 16
// TWIN: call void @know.either(ptr
// TWIN: call void @weft__activity_pop(ptr %[[BLOCK]])
// TWIN-NEXT: ret void
void passes(void)
{
	int a[4], b[8];

	know(a);
	know(b);
}

// TWIN-LABEL: define {{.*}}@stores.yielding(
// TWIN: %[[BLOCK:.*]] = call ptr @weft__activity_push(i64 4)
// TWIN: store i32 1, ptr
// TWIN: %[[A:.*]] = getelementptr i8, ptr %[[BLOCK]], i64 0
// TWIN-NEXT: store volatile ptr %[[A]], ptr @somewhere
// TWIN: call void @weft__activity_pop(
void stores(volatile int *p)
{
	int a = 1;

	somewhere = &a;
	while (*p)
		;
}

/* Nobody else knows these. */
// TWIN-LABEL: define {{.*}}@keeps.yielding(
// TWIN: %sum = alloca i32
// TWIN: %each = alloca [4 x i32]
// TWIN-NOT: weft__activity_push
int keeps(volatile int *p)
{
	int sum = 0, each[4] = {1, 2, 3, 4};

	while (*p)
		sum += each[*p & 3];
	return sum;
}

/* An address that is only compared, or is known only while no switch can occur. */
// TWIN-LABEL: define {{.*}}@compares.yielding(
// TWIN-NOT: weft__activity_push
// TWIN-LABEL: define {{.*}}@ends.yielding(
// TWIN-NOT: weft__activity_push
// TWIN-LABEL: define {{.*}}@differs.yielding(
// TWIN: call ptr @weft__activity_push(
int compares(const char *top, int n)
{
	volatile char here;

	return (unsigned long)top - (unsigned long)&here > 4096 ? -1 : n ? compares(top, n - 1) + 1 : 0;
}
void ends(volatile int *p)
{
	{
		int a;

		somewhere = &a;
	}
	while (*p)
		;
}
void differs(volatile int *p, volatile long *distance)
{
	volatile int a = 1;

	*distance = (char *)&a - (char *)distance;
	while (*p)
		;
}

/* Aligned by more than 16: there is room to align it. */
// TWIN-LABEL: define {{.*}}@aligned.yielding(
// TWIN: call ptr @weft__activity_push(i64 128)
// TWIN: call ptr @llvm.ptrmask.p0.i64(ptr %{{.*}}, i64 -64)
void aligned(void)
{
	_Alignas(64) char a[64];

	know(a);
}

/* Of variable length: until the end of its scope. */
// TWIN-LABEL: define {{.*}}@sized.yielding(
// TWIN: call ptr @weft__activity_newest()
// TWIN: call ptr @weft__activity_push(i64 %
// TWIN: call void @weft__activity_pop_to(ptr
void sized(int n)
{
	int a[n];

	know(a);
}

/* An argument by value lies in the caller's frame. */
struct large {
	long numbers[20];
};
// TWIN-LABEL: define {{.*}}@by_value.yielding(ptr noundef byval(%struct.large) align 8 %l)
// TWIN: %[[BLOCK:.*]] = call ptr @weft__activity_push(i64 160)
// TWIN: call void @llvm.memcpy{{.*}}(ptr {{.*}}, ptr align 8 %l, i64 160
// TWIN: call void @weft__activity_pop(ptr %[[BLOCK]])
void by_value(struct large l)
{
	know(&l);
}
