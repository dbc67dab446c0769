/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Only a function that may yield has a twin. With yields in loops only, a call of a function that never yields needs
 * none. */
// RUN: %twins -weft-yields=loops && %see=TWIN && %see=NONE && %see=NEEDS
// The file needs a symbol of the runtime that names the version of both.
// NEEDS: @weft.version.place = private unnamed_addr constant ptr @weft_activities_version_{{[0-9]+}}__compile_again
// NEEDS: @weft.version = private constant i32 trunc (i64 sub (i64 ptrtoint (ptr @weft.version.place
// NEEDS: @llvm.used = {{.*}}@weft.version
#include <stdlib.h>
#include <string.h>

/* No loop and no call; a call of functions that never yield. */
// NONE-NOT: @leaf.yielding
// NONE-NOT: @calls_leaf.yielding
__attribute__((noinline)) int leaf(int a)
{
	return a * 3;
}

int calls_leaf(int a)
{
	return leaf(a) + leaf(a + 1);
}

/* Functions of libc are plain, also if libc's headers have their body, as for atoi. */
// NONE-NOT: @calls_libc.yielding
// NONE-NOT: @strlen.either
// NONE-NOT: @atoi.yielding
// NONE-NOT: @atoi.either
// NONE-NOT: @qsort.either
size_t calls_libc(const char *text)
{
	return strlen(text) + (size_t)atoi(text);
}

/* Something may yield if it loops, */
// TWIN-LABEL: define {{.*}}@loops.yielding(
void loops(volatile int *p)
{
	while (*p)
		;
}

/* calls itself, */
// TWIN-LABEL: define {{.*}}@recursive.yielding(
// TWIN: call i32 @recursive.yielding(
int recursive(int n)
{
	return n ? recursive(n - 1) * n : 1;
}

/* or through other functions, */
// TWIN-LABEL: define {{.*}}@even.yielding(
// TWIN: call i32 @odd.yielding(
// TWIN-LABEL: define {{.*}}@odd.yielding(
// TWIN: call i32 @even.yielding(
int odd(int n);
int even(int n)
{
	return n ? odd(n - 1) : 1;
}

int odd(int n)
{
	return n ? even(n - 1) : 0;
}

/* or calls a function that may. Its calls of functions that never yield are unchanged. */
// TWIN-LABEL: define {{.*}}@calls_both.yielding(
// TWIN: call i32 @leaf(
// TWIN: call i32 @recursive.yielding(
int calls_both(int n)
{
	return leaf(n) + recursive(n);
}

/* The twin of a static function is static. */
// TWIN-LABEL: define internal i32 @of_this_file.yielding(
static __attribute__((noinline)) int of_this_file(int n)
{
	return recursive(n + 1);
}

int calls_static(int n)
{
	return of_this_file(n);
}
