/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that the linker chooses: the twin of the chosen one, if it has one, else the function. */
// RUN: %twins && %see=TWIN && %see=NONE && %see=SLOT
// RUN: %fresh -fPIC && %end && %see=SHARED
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
	yield_now();
	activity_cancel(a);
}

/* Functions of this file that another file may replace: a weak one, */
// TWIN-LABEL: define {{.*}}@calls_weak.yielding(
// TWIN: call i32 @weak.either(
__attribute__((weak)) int weak(int n)
{
	return n;
}

int calls_weak(int n)
{
	return weak(n);
}

/* a weak name of one. Others names are the function's. */
// TWIN-LABEL: define {{.*}}@calls_aliases.yielding(
// TWIN: call i32 @alias.either(
// TWIN: call i32 @calls_weak.yielding(
int alias(int n) __attribute__((weak, alias("calls_weak")));
int strong_alias(int n) __attribute__((alias("calls_weak")));
int calls_aliases(int n)
{
	return alias(n) + strong_alias(n);
}

/* A program that is started chooses between versions. */
// TWIN-LABEL: define {{.*}}@calls_cloned.yielding(
// TWIN: call i32 @cloned.either(
__attribute__((target_clones("default", "avx2"))) int cloned(int n)
{
	return other(n, 0);
}

int calls_cloned(int n)
{
	return cloned(n);
}

/* Names of libc's, with other parameters: functions of the program. libc's own that call the system may be, too. */
// TWIN-LABEL: define {{.*}}@calls_named_like_libc.yielding(
// TWIN: call i32 @log.either(
// TWIN: call i32 @stat.either(
// TWIN: call i32 @__wrap_other.either(
#pragma clang diagnostic ignored "-Wincompatible-library-redeclaration"
struct stat;
int log(const char *);
int stat(const char *, struct stat *);
int __wrap_other(int);
int calls_named_like_libc(const char *s)
{
	return log(s) + stat(s, NULL) + __wrap_other(1);
}

/* Each choice is made in one place, by a jump that leaves the arguments where they are. */
// SLOT: @other.either.slot = internal global { ptr, ptr } { ptr @weft__activity_resolve, ptr @other }, comdat($other
// SLOT: @weak.either.slot = internal global { ptr, ptr } { ptr @weft__activity_resolve, ptr @weak }, align 16
// SLOT: @cloned.ifunc.words = internal global { ptr, ptr, ptr } { ptr null, ptr @cloned, ptr @cloned.resolver }
// SLOT: define linkonce_odr hidden i32 @other.either(i32 noundef %0, double noundef %1) #[[JUMPS:[0-9]+]] comdat {
// SLOT-NEXT: call void asm sideeffect "leaq ${0:c}(%rip), %r11\0A\09jmpq *(%r11)", "i"(ptr @other.either.slot)
// SLOT-NEXT: unreachable
// SLOT: define linkonce_odr hidden i32 @other_dots.either(ptr noundef %0, ...)
// SLOT: define internal i32 @weak.either(
// SLOT: define internal void @weft.ifuncs()
// SLOT: call void @weft__activity_ifunc(ptr @cloned.ifunc.words)
// SLOT: attributes #[[JUMPS]] = { naked noinline "weft-either" }

/* In a shared library another definition may run. Calls of this file's that the optimizer has not inlined go there. */
// SHARED-LABEL: define internal i32 @calls_weak.yielding(
// SHARED-LABEL: define internal i32 @calls_aliases.yielding(
// SHARED: call i32 @alias.either(
// SHARED: call i32 @calls_weak.either(
