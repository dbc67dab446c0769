/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * map.c: one `map`, whose caller decides whether other activities may see its work half done. The picture's values all
 * have the same sign. While `map` negates them, another activity looks at them.
 */
#include <stdbool.h>
#include <stdio.h>
#include <weft/charcoal.h>

enum { PIXELS = 200 };

static int picture[PIXELS];

/* doc: begin map */
/* Plain C. Neither this function nor the function that it is given mentions other activities. */
static void map(int *values, int count, int (*f)(int))
{
	for (int i = 0; i < count; i++)
		values[i] = f(values[i]);
}

static int negate(int value)
{
	yield_now(); /* so that other activities run in the middle of the work, not only when the timer rings */
	return -value;
}
/* doc: end */

static bool is_half_done(void)
{
	for (int i = 1; i < PIXELS; i++)
		if ((picture[i] > 0) != (picture[0] > 0))
			return true;
	return false;
}

/* doc: begin look */
static int times_seen_half_done(bool atomically)
{
	bool done = false;
	int times = 0;
	activity_t observer;

	activate(&observer)
	{
		while (!done) {
			times += no_yield_expr(is_half_done());
			yield_now();
		}
	}
	if (atomically)
		no_yield
		{
			map(picture, PIXELS, negate);
		}
	else
		map(picture, PIXELS, negate);
	done = true;
	activity_wait(&observer);
	return times;
}
/* doc: end */

int activity_main(void)
{
	for (int i = 0; i < PIXELS; i++)
		picture[i] = i + 1;
	printf("interruptible: %s\n", times_seen_half_done(false) ? "seen half done" : "never seen half done");
	printf("atomic: %s\n", times_seen_half_done(true) ? "seen half done" : "never seen half done");
	return 0;
}
