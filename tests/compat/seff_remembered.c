/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Performs agree with a search, although search results are cached: random coroutines are made, resumed with changing
 * sets, left suspended and resumed by other coroutines. Each perform is compared with a walk over the program's own
 * records of resumers and sets. C and C++.
 */
#include <stdio.h>
#include <stdlib.h>

#include "seff.h"

enum { EFFECTS = 12, WAITING = 64, DEEPEST = 12, COROUTINES = 5000 };

struct node {
	seff_coroutine_t k;
	effect_set set;	     /* of its last resume */
	struct node *parent; /* its last resumer; NULL: main */
	struct node *inner;  /* while it waits: the node that performed */
};

static struct node *current, *waiting[WAITING];
static const struct node *wanted; /* the node that should get the current perform; NULL: the default handler */
static unsigned waits, made, performs;
static bool winding_up;
static uint64_t seed = 14;

static unsigned some(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static void came_to(const struct node *n)
{
	if (n == wanted)
		return;
	printf("perform %u went elsewhere\n", performs);
	exit(1);
}

static void *in_place(void *payload)
{
	came_to(NULL);
	return payload;
}

/* The innermost coroutine whose resumer handles it. */
static const struct node *innermost(effect_id effect)
{
	const struct node *n = current;

	while (n && !(n->set >> effect & 1))
		n = n->parent;
	return n;
}

static unsigned depth(void)
{
	unsigned depth = 0;

	for (const struct node *n = current; n; n = n->parent)
		depth++;
	return depth;
}

/* Resumes until the node performs an effect of the set, or returns. */
static void resume(struct node *n)
{
	struct node *self = current;
	seff_request_t request;

	n->parent = self;
	if (winding_up)
		n->set = ~(effect_set)0;
	else if (some(4) || n->set == 0)
		n->set = (effect_set)(some(1 << EFFECTS) & some(1 << EFFECTS)) | (some(16) ? 0 : ~(effect_set)0);
	current = n->inner;
	request = seff_resume(&n->k, NULL, n->set);
	n->inner = current;
	current = self;
	if (seff_finished(request)) {
		seff_coroutine_release(&n->k);
		free(n);
		return;
	}
	came_to(n);
	if (waits == WAITING)
		abort();
	waiting[waits++] = n;
}

static void *body(void *arg);

static void make(void)
{
	struct node *n = (struct node *)calloc(1, sizeof *n);

	if (!n || !seff_coroutine_init(&n->k, body, n))
		abort();
	n->inner = n;
	made++;
	resume(n);
}

static void resume_another(void)
{
	unsigned i = some(waits);
	struct node *n = waiting[i];

	waiting[i] = waiting[--waits];
	resume(n);
}

static void perform(void)
{
	effect_id effect = some(EFFECTS);

	performs++;
	wanted = innermost(effect);
	seff_perform(effect, NULL);
}

static void *body(void *arg)
{
	for (unsigned i = 0; !winding_up && i < 60; i++) {
		unsigned what = some(8);

		if (what == 0 && waits < 8 && depth() < DEEPEST)
			make();
		else if (what == 1 && waits && depth() < DEEPEST)
			resume_another();
		else
			perform();
	}
	return arg;
}

int main(void)
{
	for (effect_id e = 0; e < EFFECTS; e++)
		seff_set_default_handler(e, in_place);
	while (made < COROUTINES)
		if (waits)
			resume_another();
		else
			make();
	winding_up = true;
	while (waits)
		resume_another();
	printf("%u coroutines, %u performs\n", made, performs);
	return 0;
}
