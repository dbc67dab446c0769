/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A twin yields on each back-edge, and a plain function on none. */
// RUN: %twins && %see=PLAIN && %see=TWIN
void use(int);

// PLAIN-NOT: weft.loop.mark
// PLAIN-LABEL: define {{.*}}@loop_for.yielding(

// TWIN-LABEL: define {{.*}}@loop_for.yielding(
// TWIN: {{^}}for.inc:
// TWIN: call void @weft.loop.mark()
// TWIN-NEXT: br label %for.cond
// TWIN-NOT: weft.loop.mark
int loop_for(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

// TWIN-LABEL: define {{.*}}@loop_while.yielding(
// TWIN: {{^}}while.body:
// TWIN: call void @weft.loop.mark()
// TWIN-NEXT: br label %while.cond
// TWIN-NOT: weft.loop.mark
int loop_while(volatile int *p)
{
	int times = 0;

	while (*p)
		times++;
	return times;
}

/* On the way back, and not on the way out. */
// TWIN-LABEL: define {{.*}}@loop_do.yielding(
// TWIN-NOT: weft.loop.mark
// TWIN: br i1 %{{.*}}, label %[[BACK:.*]], label %do.end
// TWIN: {{^}}[[BACK]]:
// TWIN-NEXT: call void @weft.loop.mark()
// TWIN-NEXT: br label %do.body
// TWIN-NOT: weft.loop.mark
void loop_do(volatile int *p)
{
	do
		*p = 1;
	while (!*p);
}

// TWIN-LABEL: define {{.*}}@loop_goto.yielding(
// TWIN: {{^}}if.then:
// TWIN-NEXT: call void @weft.loop.mark()
// TWIN-NEXT: br label %again
// TWIN-NOT: weft.loop.mark
void loop_goto(volatile int *p)
{
again:
	if (*p)
		goto again;
}

/* Two loops, two yields; `continue` makes no third one. */
// TWIN-LABEL: define {{.*}}@loop_in_loop.yielding(
// TWIN-COUNT-2: call void @weft.loop.mark()
// TWIN-NOT: weft.loop.mark
// TWIN: {{^}}}
void loop_in_loop(volatile int *p, int n)
{
	for (int i = 0; i < n; i++) {
		if (*p == i)
			continue;
		for (int k = 0; k < i; k++)
			*p = k;
	}
}
