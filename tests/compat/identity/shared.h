/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects that ten files, two shared libraries and a plugin declare by including this. */
#include <weft/effect.h>

WEFT_EFFECT(int, shared, int, part);
WEFT_EXCEPTION(shared_failure, int, part);
WEFT_FAMILY(both, (int, twice, int, number), (void, note, int, number));

/* The functions of each part of the program, in its own file. */
struct part {
	int (*perform)(int part);
	void (*fail)(int part);
	const weft_effect_t *(*identity)(int which); /* NULL after the last effect */
};

#define PART_NAME(number) PART_NAME_(number)
#define PART_NAME_(number) part_##number
