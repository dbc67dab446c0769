/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dice.c: one program, run at random or in all possible ways. docs/tutorial/effects.md, step 4. */
/* doc: begin performer */
#include <stdint.h>
#include <stdio.h>
#include <weft/weft.h>

WEFT_EFFECT(int, roll, int, faces);

/* A six may be rolled again, twice at most. */
static void *game(void *unused)
{
	intptr_t score = 0;
	int face, rolls = 0;

	(void)unused;
	do {
		face = roll(6);
		score += face;
	} while (face == 6 && ++rolls < 3);
	return (void *)score;
}
/* doc: end */

/* doc: begin random */
static int roll_at_random(void *state, int faces)
{
	uint32_t *seed = state;

	*seed = *seed * 1664525 + 1013904223;
	return (int)((uint64_t)*seed * (uint32_t)faces >> 32) + 1;
}

WEFT_HANDLER(luck, weft_tail(roll, roll_at_random));
/* doc: end */

/* doc: begin exact */
struct chances {
	double now; /* the probability of the current path */
	double of[19];
};

static void *roll_all(void *state, weft_resumption_t *k, int faces)
{
	struct chances *chances = state;

	chances->now /= faces;
	for (int face = 1; face <= faces; face++)
		if (!weft_continue(roll, k, face))
			return NULL; /* no memory */
	chances->now *= faces;
	return chances;
}

static void *add_chance(void *state, void *score)
{
	struct chances *chances = state;

	chances->of[(intptr_t)score] += chances->now;
	return chances;
}

WEFT_HANDLER(certainty, weft_multi(roll, roll_all), weft_on_return(add_chance));
/* doc: end */

/* doc: begin main */
int main(void)
{
	struct chances chances = {.now = 1};
	uint32_t seed = 8;

	printf("three games:");
	for (int i = 0; i < 3; i++) {
		int score = (int)(intptr_t)weft_run(&luck, &seed, game, NULL);

		if (!score) { /* no game has this score */
			perror("cannot play");
			return 1;
		}
		printf(" %d", score);
	}
	printf("\n");
	if (!weft_run(&certainty, &chances, game, NULL)) {
		perror("cannot try all games");
		return 1;
	}
	for (int score = 0; score < 19; score++)
		if (chances.of[score] > 0)
			printf("%2d: %.4f\n", score, chances.of[score]);
}
/* doc: end */
