/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gameloop.c: a custom scheduler in a loop of frames. Scripts are tasks that sleep and wait in straight lines of code.
 * The loop gives them a budget for each frame; a script that does not fit continues in the next frame. Their clock is
 * the game's: it stands while the game is paused, and no script notices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/sync.h>

enum { FRAMES = 12, FRAME_MS = 16, BUDGET = 3 /* steps in a frame; a real game would read a clock */ };

#define MILLISECONDS(n) ((uint64_t)(n)*1000000)

/* doc: begin scheduler */
struct script {
	struct script *next;
	weft_coro_t *k;
	weft_waiter_t *waits; /* with a deadline; NULL: ready, or it waits without a deadline */
};

static struct {
	uint64_t now; /* the time in the game */
	struct script *ready, **end, *sleeping;
	int living;
} game;

static void add(struct script *s)
{
	s->next = NULL;
	*game.end = s;
	game.end = &s->next;
}

static void stop_sleeping(struct script *s)
{
	struct script **at = &game.sleeping;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	s->waits = NULL;
}

/* The event has happened, or the deadline has passed: see wake_sleepers. */
static void wake(weft_waiter_t *w)
{
	stop_sleeping(w->owner);
	add(w->owner);
}

static void wake_sleepers(void)
{
	struct script *s, *next;

	for (s = game.sleeping; s; s = next) {
		next = s->next;
		if (s->waits->timer.at <= game.now && weft_waiter_claim(s->waits, -ETIMEDOUT))
			weft_waiter_complete(s->waits);
	}
}

static void wait_for(struct script *s, weft_waiter_t *w)
{
	w->wake = wake;
	w->owner = s;
	if (!weft_waiter_park(w)) {
		add(s); /* the event has happened already */
	} else if (w->timer.at != WEFT_NEVER) {
		s->waits = w;
		s->next = game.sleeping;
		game.sleeping = s;
	}
}

static int start(weft_fn_t *fn, void *arg)
{
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT}; /* frames of a script that waits must not move */
	struct script *s = calloc(1, sizeof *s);

	if (!s || !(s->k = weft_create_with(fn, arg, &attr))) {
		free(s);
		return -ENOMEM;
	}
	game.living++;
	add(s);
	return 0;
}

/* Runs one step of a script: until it waits, yields or ends. */
static void run(struct script *s)
{
	weft_request_t r;

	for (;;) {
		r = weft_resume(s->k, NULL, weft_handles(weft_op_sched));
		switch (weft_op(weft_op_sched, r)) {
		case weft_case(weft_op_now):
			weft_reply(weft_op_now, r, game.now);
			continue;
		case weft_case(weft_op_spawn): {
			const struct weft_spawn *what = weft_args(weft_op_spawn, r)->what;

			weft_reply(weft_op_spawn, r, what->scope ? -ENOTSUP : start(what->fn, what->arg));
			continue;
		}
		case weft_case(weft_op_yield):
			weft_reply(weft_op_yield, r, 0);
			add(s);
			return;
		case weft_case(weft_op_wait):
			wait_for(s, weft_args(weft_op_wait, r)->waiter);
			return;
		default: /* the script has ended */
			weft_delete(s->k);
			free(s);
			game.living--;
			return;
		}
	}
}

/* Returns how many steps were taken. */
static int run_scripts(int budget)
{
	struct script *s;
	int steps;

	wake_sleepers();
	for (steps = 0; steps < budget && (s = game.ready); steps++) {
		game.ready = s->next;
		if (!game.ready)
			game.end = &game.ready;
		run(s);
	}
	return steps;
}
/* doc: end */

static weft_event_t gate_is_open;

/* doc: begin scripts */
static void *guard(void *unused)
{
	for (int lap = 1; lap <= 3; lap++) {
		printf("  guard: lap %d\n", lap);
		(void)weft_sleep(MILLISECONDS(30));
	}
	puts("  guard: opens the gate");
	weft_event_set(&gate_is_open);
	return unused;
}

static void *hero(void *unused)
{
	puts("  hero: waits at the gate");
	if (weft_event_wait_until(&gate_is_open, weft_now() + MILLISECONDS(50)) == -ETIMEDOUT)
		puts("  hero: is bored, and waits on");
	(void)weft_event_wait(&gate_is_open);
	puts("  hero: goes in");
	return unused;
}

/* A script with a long computation, which it does in pieces. */
static void *oracle(void *unused)
{
	for (int piece = 1; piece <= 5; piece++) {
		printf("  oracle: piece %d\n", piece);
		(void)weft_task_yield();
	}
	return unused;
}
/* doc: end */

int main(void)
{
	game.end = &game.ready;
	if (start(hero, NULL) || start(guard, NULL) || start(oracle, NULL)) {
		fprintf(stderr, "gameloop: no memory\n");
		return 1;
	}
	for (int frame = 1; frame <= FRAMES && game.living; frame++) {
		printf("frame %d, %llu ms\n", frame, (unsigned long long)(game.now / MILLISECONDS(1)));
		if (frame == 4) {
			puts("  (paused)");
			continue;
		}
		if (run_scripts(BUDGET) == BUDGET && game.ready)
			puts("  (the budget is spent)");
		game.now += MILLISECONDS(FRAME_MS);
	}
	return 0;
}
