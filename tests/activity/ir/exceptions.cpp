/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions leave functions without their ends: the function that catches frees their heap memory. */
// RUN: %lower && %see=TWIN && %see=GROUP
void know(void *);

/* The memory that is newer than the function's own. */
// TWIN-LABEL: define {{.*}}catches{{.*}}.yielding(
// TWIN: call ptr @weft__activity_push(
// TWIN: %[[NEWEST:.*]] = call ptr @weft__activity_newest()
// TWIN: landingpad
// TWIN: call void @weft__activity_landed(ptr %[[NEWEST]])
int catches()
{
	int variable;

	try {
		know(&variable);
	} catch (...) {
		return 1;
	}
	return 0;
}

/* An exception goes on from here. */
struct ends {
	~ends();
};
// TWIN-LABEL: define {{.*}}passes{{.*}}.yielding(
// TWIN-NOT: weft__activity_landed
// TWIN: call void @weft__activity_pop(
// TWIN: resume
int passes()
{
	ends first;
	int variable;

	know(&variable);
	return 0;
}

/* C++ initializes a static variable once: other activities do not find it half made. */
// TWIN-LABEL: define {{.*}}initializes{{.*}}.yielding(
// TWIN: call i32 @__cxa_guard_acquire(
// TWIN-NOT: .yielding(
// TWIN: call {{.*}}i32 @{{.*}}catches{{[^.]*}}(
// TWIN: call void @__cxa_guard_release(
// TWIN: call {{.*}}i32 @{{.*}}catches{{[^.]*}}.yielding(
int initializes()
{
	static int once = catches();

	return once + catches();
}

/* The linker may take an inline function from a file without twins: the twin is in another group. */
// GROUP: $_Z9in_headerPVi.yielding = comdat any
// GROUP: define linkonce_odr {{.*}}@_Z9in_headerPVi({{.*}} comdat {{.*}} ptrtoint (ptr @_Z9in_headerPVi.yielding
// GROUP: define linkonce_odr hidden {{.*}}@_Z9in_headerPVi.yielding({{.*}} comdat
inline int in_header(volatile int *p)
{
	while (*p)
		;
	return 1;
}

int calls(volatile int *p)
{
	return in_header(p);
}
