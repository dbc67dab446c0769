/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions of other files: their twin if the linker finds one, else the function. */
// RUN: %twins && %see=TWIN && %see=NONE
#include <unistd.h>
#include <weft/charcoal.h>
int other(int, double);
int other_dots(const char *, ...);
extern inline __attribute__((gnu_inline)) int seen_but_elsewhere(int a)
{
	return a + 1;
}

// TWIN-LABEL: define {{.*}}@calls_other.yielding(
// TWIN: call i32 @other.either(i32 noundef %{{.*}}, double noundef %{{.*}})
int calls_other(int n, double d)
{
	return other(n, d);
}

// TWIN-LABEL: define {{.*}}@calls_dots.yielding(
// TWIN: call i32 (ptr, ...) @other_dots.either(
int calls_dots(int n)
{
	return other_dots("%d", n);
}

/* A body that the compiler may look into, but that is elsewhere. */
// TWIN-LABEL: define {{.*}}@calls_inline.yielding(
// TWIN: call i32 @seen_but_elsewhere.either(
int calls_inline(int n)
{
	return seen_but_elsewhere(n);
}

/* One that is always inlined need not be anywhere else. */
// NONE-NOT: @always_inlined.either
extern inline __attribute__((gnu_inline, always_inline)) int always_inlined(int a)
{
	return a + 1;
}

int calls_always_inlined(int n)
{
	return always_inlined(n);
}

/* Functions of libc that wait: the runtime has twins of them. */
// TWIN-LABEL: define {{.*}}@reads.yielding(
// TWIN: call i64 @read.either(
ssize_t reads(int fd, char *to)
{
	return read(fd, to, 1);
}

/* The runtime's own have none. */
// NONE-NOT: @weft_activity_cancel.either
// TWIN-LABEL: define {{.*}}@cancels.yielding(
// TWIN: call void @weft_activity_cancel(
void cancels(activity_t *a)
{
	yield();
	activity_cancel(a);
}

/* Each choice is made in one place, by a jump that leaves the arguments where they are. */
// TWIN: declare extern_weak i32 @other.yielding(i32, double)
// TWIN-LABEL: define linkonce_odr hidden i32 @other.either(i32 noundef %0, double noundef %1)
// TWIN: %[[HAS:.*]] = icmp ne ptr @other.yielding, null
// TWIN-NEXT: %[[WHICH:.*]] = select i1 %[[HAS]], ptr @other.yielding, ptr @other
// TWIN-NEXT: %[[RESULT:.*]] = musttail call i32 %[[WHICH]](i32 noundef %0, double noundef %1)
// TWIN-NEXT: ret i32 %[[RESULT]]
// TWIN-LABEL: define linkonce_odr hidden i32 @other_dots.either(ptr noundef %0, ...)
// TWIN: musttail call i32 (ptr, ...) %{{.*}}(ptr noundef %0, ...)
