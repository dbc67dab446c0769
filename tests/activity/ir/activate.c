/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The block of activate becomes a function, whose twin a new activity runs. */
// RUN: %twins && %see=SPAWN && %see=BODY && %see=NONE
#include <weft/charcoal.h>
// NONE-NOT: call {{.*}}weft_needs_cc_with_activities
void use(const void *), use_double(double), use_int(int *);

/* Listed: the value. Not listed: the address. What is the block's own is not passed at all. */
// SPAWN-LABEL: define {{.*}}@captures(
// SPAWN: %[[HANDLE:.*]] = load ptr, ptr %handle.addr
// SPAWN: %[[VALUE:.*]] = load i32, ptr %copied
// SPAWN-DAG: %[[WORD:.*]] = zext i32 %[[VALUE]] to i64
// SPAWN-DAG: %[[ADDRESS:.*]] = ptrtoint ptr %shared to i64
// SPAWN: call void @weft__activity_spawn(ptr %[[HANDLE]], ptr @captures.activity.yielding,
// SPAWN-SAME: i64 %[[WORD]], i64 %[[ADDRESS]], i64 0, i64 0, i64 0, i64 0)
// BODY-LABEL: define internal preserve_nonecc void @captures.activity.yielding(
// BODY: %own = alloca [10 x i32]
// BODY: call preserve_nonecc void @weft__activity_yield_now()
void captures(activity_t *handle)
{
	int copied = 1, shared = 2;

	activate(handle, copied)
	{
		int own[10];

		yield_now();
		use(own);
		shared += copied;
	}
	use(&shared);
	copied = 3;
}

/* Only integers and pointers travel as words. Others come in a block, which a function between empties. */
// SPAWN-LABEL: define {{.*}}@reals(
// SPAWN: %[[BOX:.*]] = call ptr @weft__activity_block(i64 {{[0-9]+}})
// SPAWN: store double %{{.*}}, ptr
// SPAWN: %[[WORD:.*]] = ptrtoint ptr %[[BOX]] to i64
// SPAWN: call void @weft__activity_spawn(ptr {{.*}}, ptr @reals.activity.enter.yielding, i64 %[[WORD]], i64 0, i64 0,
// BODY-LABEL: define internal preserve_nonecc void @reals.activity.enter.yielding(ptr
// BODY: %[[REAL:.*]] = load double, ptr
// BODY: call void @weft__activity_unblock(ptr
// BODY: call void @reals.activity.yielding(double %[[REAL]]
void reals(activity_t *handle, double real)
{
	activate(handle, real)
	{
		yield_now();
		use_double(real);
	}
}

/* So are more than six. */
// SPAWN-LABEL: define {{.*}}@seven(
// SPAWN: call ptr @weft__activity_block(i64 112)
// SPAWN: call void @weft__activity_spawn(ptr {{.*}}, ptr @seven.activity.enter.yielding,
void seven(activity_t *handle, long a, long b, long c, long d, long e, long f, long g)
{
	activate(handle, a, b, c, d, e, f, g)
	{
		yield_now();
		use((void *)(a + b + c + d + e + f + g));
	}
}

/* The copy of a structure travels in a block of its own, which the activity gives back. */
struct large {
	long numbers[20];
};
// SPAWN-LABEL: define {{.*}}@structure(
// SPAWN: %[[BLOCK:.*]] = call ptr @weft__activity_block(i64 160)
// SPAWN-NEXT: call void @llvm.memcpy{{.*}}(ptr align 16 %[[BLOCK]], ptr align {{[0-9]+}} %large, i64 160
// SPAWN: call void @weft__activity_spawn(ptr {{.*}}null, ptr @structure.activity.yielding,
// BODY-LABEL: define internal preserve_nonecc void @structure.activity.yielding(ptr
// BODY: call void @llvm.memcpy{{.*}}(ptr {{.*}} %large.copy, ptr
// BODY-NEXT: call void @weft__activity_unblock(ptr
void structure(void)
{
	struct large large = {{1}};

	activate_detached(large)
	{
		yield_now();
		use(&large);
	}
}

/* One in another. Nothing is shared: not even clang's own variable for where the ends of scopes go on to. */
// SPAWN-LABEL: define {{.*}}@nested(
// SPAWN: call void @weft__activity_spawn(ptr {{.*}}, ptr @nested.activity.2.yielding,
// SPAWN-SAME: i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
// BODY-LABEL: define internal preserve_nonecc void @nested.activity.2.yielding()
// BODY: store i32 {{[0-9]+}}, ptr %cleanup.dest.slot.own
// BODY: call void @weft__activity_spawn(ptr null, ptr @nested.activity.yielding,
// BODY-SAME: i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
void nested(activity_t *handle)
{
	activate(handle)
	{
		activate_detached()
		{
			yield_now();
		}
		yield_now();
	}
}

/* Such a variable that a switch looks at: the activity's values stay with it. */
// SPAWN-LABEL: define {{.*}}@leaves_scopes(
// SPAWN: call void @weft__activity_spawn(ptr {{.*}}, ptr @leaves_scopes.activity.yielding,
// SPAWN-SAME: i64 %{{[0-9]+}}, i64 0, i64 0, i64 0, i64 0, i64 0)
// BODY-LABEL: define internal preserve_nonecc void @leaves_scopes.activity.yielding(ptr %p{{[.a-z]*}})
// BODY: %[[OWN:cleanup.dest.slot.own]] = alloca i32
// BODY: %[[WAY:.*]] = load i32, ptr %[[OWN]]
// BODY: switch i32 %[[WAY]],
void leaves_scopes(activity_t *handle, volatile int *p)
{
	for (int i = 0; i < 2; i++) {
		activate(handle, p)
		{
			while (*p) {
				int gives_way __attribute__((cleanup(use_int))) = 1;

				if (*p == 2)
					break;
			}
			yield_now();
		}
		int gives_way __attribute__((cleanup(use_int))) = 2;

		if (*p == 3)
			break;
	}
}
