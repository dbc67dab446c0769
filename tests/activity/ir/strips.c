/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A counted loop runs in strips of 1024 iterations, with a yield between them, and is vectorized as without yields. A
 * strip that begins while the flag is set is one iteration. */
// RUN: %optimized && %see=TWIN
int other(int);

// TWIN-LABEL: define {{.*}}@vectors.yielding(
// TWIN: br i1 %{{.*}}, label %{{.*}}, label %strip.next
// TWIN: {{^}}strip.next:
// TWIN: asm sideeffect "cmpl $$0, $1"
// TWIN: weft__activity_tick
// TWIN: {{^}}strips:
// TWIN: %[[FLAG:.*]] = load atomic i32
// TWIN: %[[CLEAR:.*]] = icmp eq i32 %[[FLAG]], 0
// TWIN: %[[MOST:.*]] = tail call i64 @llvm.umin.i64(i64 %{{.*}}, i64 1024)
// TWIN: select i1 %[[CLEAR]], i64 %[[MOST]], i64 1
// TWIN: {{^}}vector.body:
// TWIN-NOT: weft__activity
// TWIN: add <4 x i32>
// TWIN-NOT: weft__activity
int vectors(const int *from, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += from[i];
	return sum;
}

/* A short loop, too: at every yield, each of its iterations yields. */
// TWIN-LABEL: define {{.*}}@is_short.yielding(
// TWIN: {{^}}strip.next:
// TWIN: weft__activity_tick
// TWIN: load atomic i32
// TWIN: {{^}}vector.body:
int is_short(const int *from)
{
	int sum = 0;

	for (int i = 0; i < 1024; i++)
		sum += from[i];
	return sum;
}

/* Iterations that take long make strips shorter. */
// TWIN-LABEL: define {{.*}}@slow.yielding(
// TWIN: {{^}}strips:
// TWIN: call i64 @llvm.umin.i64(i64 %{{.*}}, i64 {{[1-9][0-9][0-9]}})
int slow(const int *from, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += from[i] / (from[i] % 7 + sum % 5 + 9) / (sum + 1) % (i + 1);
	return sum;
}

/* memset of any size is a call: in each iteration a yield comes after it, and one before the next. */
// TWIN-LABEL: define {{.*}}@is_long.yielding(
// TWIN: call void @llvm.memset
// TWIN-COUNT-2: call preserve_mostcc void @weft__activity_tick()
// TWIN: {{^}}}
int is_long(char *to, unsigned long bytes)
{
	int sum = 0;

	for (int i = 0; i < 1000; i++) {
		__builtin_memset(to, i, bytes);
		sum += to[i];
	}
	return sum;
}

/* Nobody knows how often this runs: a check in each iteration. */
// TWIN-LABEL: define {{.*}}@uncounted.yielding(
// TWIN-NOT: 1024
// TWIN: asm sideeffect "cmpl $$0, $1"
// TWIN: weft__activity_tick
// TWIN-NOT: 1024
int uncounted(const char *text)
{
	int length = 0;

	while (text[length])
		length++;
	return length;
}

/* One with calls is not cut. */
// TWIN-LABEL: define {{.*}}@calls.yielding(
// TWIN-NOT: i64 1024
// TWIN: call i32 @other.either(
// TWIN-NOT: i64 1024
// TWIN: weft__activity_tick
int calls(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += other(i);
	return sum;
}

/* Nor is one that would read in one strip what it uses in the next. */
// TWIN-LABEL: define {{.*}}@parted.yielding(
// TWIN-NOT: i64 1024
// TWIN: weft__activity_tick
// TWIN-NOT: i64 1024
int parted(int *p, int n)
{
	int had;

	while (had = *p, n-- > 0)
		*p = had + 1;
	return had;
}

// TWIN-LABEL: define {{.*}}@other.either(
