/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * chameneos.c: creatures go to a mall, meet there by twos, and both leave with the colour that neither had, or their
 * own if they are alike. After a given number of meetings the mall closes. By C. Kaiser and J.-F. Pradat-Peyre.
 */
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

enum { CREATURES = 8, MEETINGS = 2000 };
enum { BLUE, RED, YELLOW };

/* doc: begin creature */
struct creature {
	int colour, meetings;
	weft_chan_t *arrivals; /* the mall's: pointers to creatures */
	weft_chan_t *met;      /* the colour of the creature that it met */
};

static int complement(int one, int other)
{
	return one == other ? one : BLUE + RED + YELLOW - one - other;
}

static void *lives(void *argument)
{
	struct creature *c = argument;
	int other;

	while (weft_chan_send(c->arrivals, &c) == 0 && weft_chan_receive(c->met, &other) == 0) {
		c->colour = complement(c->colour, other);
		c->meetings++;
	}
	return NULL;
}
/* doc: end */

static void keep_mall(weft_chan_t *arrivals)
{
	struct creature *one, *other;
	int colours[2];

	for (int i = 0; i < MEETINGS; i++) {
		if (weft_chan_receive(arrivals, &one) || weft_chan_receive(arrivals, &other))
			break;
		/* After this send the creature owns its colour. */
		colours[0] = one->colour;
		colours[1] = other->colour;
		weft_chan_send(one->met, &colours[1]);
		weft_chan_send(other->met, &colours[0]);
	}
	weft_chan_close(arrivals);
}

static bool make_channels(struct creature *creatures)
{
	weft_chan_t *arrivals = weft_chan_make(sizeof(struct creature *), 0);
	bool made = arrivals;

	for (int i = 0; i < CREATURES; i++) {
		creatures[i] = (struct creature){.colour = i % 3, .arrivals = arrivals};
		creatures[i].met = weft_chan_make(sizeof(int), 1);
		made = made && creatures[i].met;
	}
	return made;
}

static void free_channels(struct creature *creatures)
{
	weft_chan_free(creatures[0].arrivals);
	for (int i = 0; i < CREATURES; i++)
		weft_chan_free(creatures[i].met);
}

static void *mall(void *argument)
{
	struct creature *creatures = argument;
	int error = 0;

	WEFT_SCOPE(scope);
	for (int i = 0; i < CREATURES && !error; i++)
		error = weft_scope_spawn(&scope, lives, &creatures[i]);
	if (!error) {
		keep_mall(creatures[0].arrivals);
		error = weft_scope_wait(&scope);
	}
	if (error)
		weft_task_fail(error);
	return NULL;
}

int main(void)
{
	struct creature creatures[CREATURES];
	int error = -ENOMEM, meetings = 0;

	if (make_channels(creatures))
		error = weft_rt_run(NULL, mall, creatures, NULL);
	free_channels(creatures);
	if (error) {
		fprintf(stderr, "chameneos: %s\n", strerror(-error));
		return 1;
	}
	for (int i = 0; i < CREATURES; i++)
		meetings += creatures[i].meetings;
	printf("%d creatures met %d times; each meeting was counted by two: %d\n", CREATURES, MEETINGS, meetings);
}
