/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chooses the next step of a random program. */
#include "world.h"

enum { PERFORM, RUN, LOOP, MAKE, WAIT, SWITCH, LEAVE, RESET, DELETE, KEPT, BATON, REINCARNATE, AUDIT, CHOICES };

static bool too_deep(const struct world *w)
{
	int depth = 0;

	for (const struct co *c = w->cur; !c->root; c = c->parent)
		depth++;
	return depth > DEEPEST || w->record_count > RECORDS - 40 || w->instance_count > RECORDS - 40;
}

struct co *pick_head(struct world *w)
{
	struct co *c = w->heads.co[below(w, (unsigned)w->heads.count)];

	return has_copies(c) && copies_running(w) ? NULL : c;
}

void take_head(struct world *w, struct co *c)
{
	list_remove(&w->heads, c);
}

static void resume_head(struct world *w)
{
	struct co *c = w->heads.count ? pick_head(w) : NULL;

	if (!c)
		return;
	take_head(w, c);
	loop(w, c, (int)below(w, 5));
}

static int choose(struct world *w)
{
	const struct profile *p = w->profile;
	unsigned sum = 0, x;
	int i;

	for (i = 0; i < CHOICES; i++)
		sum += p->weight[i];
	x = below(w, sum);
	for (i = 0; x >= p->weight[i]; i++)
		x -= p->weight[i];
	return i;
}

static void act(struct world *w, int choice)
{
	bool deep = choice != PERFORM && too_deep(w);
	/* Functions deferred by weft_run and weft_continue on a copied stack need its region, which another coroutine
	 * may occupy. */
	bool placed = w->nested || !w->cur->copy;

	switch (choice) {
	case RUN:
		if (!deep && placed)
			run(w);
		break;
	case LOOP:
		if (!deep)
			resume_head(w);
		break;
	case MAKE:
	case REINCARNATE:
		if (!deep)
			make(w, choice == REINCARNATE);
		break;
	case WAIT:
		wait_for_resumer(w);
		break;
	case SWITCH:
		switch_sideways(w);
		break;
	case LEAVE:
		leave(w);
		break;
	case RESET:
		reset_one(w);
		break;
	case DELETE:
		delete_one(w);
		break;
	case KEPT:
		if (!deep && placed)
			use_kept(w);
		break;
	case BATON:
		if (w->threads > 1 && !copies_running(w))
			pass_baton(w);
		break;
	case AUDIT:
		audit(w);
		break;
	default:
		perform(w);
	}
}

void step(struct world *w)
{
	int choice;

	if (w->steps-- <= 0 || w->cur->nest >= NESTED)
		return;
	w->count[COUNT_STEPS]++;
	w->cur->nest++;
	choice = choose(w);
	if (choice == PERFORM && w->cur->root && chance(w, 80)) /* no handler would handle it */
		choice = RUN;
	act(w, choice);
	w->cur->nest--;
}

void steps(struct world *w, unsigned most)
{
	for (unsigned n = 1 + below(w, most); n && w->steps > 0; n--)
		step(w);
}

/* Resumes the coroutine for which it was made, if that coroutine still waits. */
static void do_mission(struct world *w)
{
	struct co *t = w->cur->mission;

	w->cur->mission = NULL;
	if (t && t->list == w->heads.co && !(has_copies(t) && copies_running(w))) {
		take_head(w, t);
		loop(w, t, 2);
	}
}

static void clean(struct co *me)
{
	CHECK(me->world, me->cleans && !me->cleaned);
	me->cleaned = true;
}

static void act_in(struct world *w)
{
	do_mission(w);
	steps(w, w->cur->copy ? 5 : 16);
}

static void act_and_clean(struct world *w)
{
	weft_defer(clean, w->cur);
	act_in(w);
}

void *body(void *record)
{
	struct co *me = record;
	struct world *w = me->world;

	CHECK(w, w->cur == me && (!me->k || me->k == weft_current()));
	me->k = weft_current();
	TRACE(w, "%d begins in %p, under %d\n", serial_of(me), (void *)me->k, serial_of(me->parent));
	me->id = weft_id(me->k);
	/* Cleanups in copied frames could not run in every region. */
	me->cleans = !w->nested && chance(w, 10);
	me->cleaned = false;
	if (me->cleans)
		act_and_clean(w);
	else
		act_in(w);
	w->result = fresh(w);

	expect(w, RETURNED, w->cur, 0, w->result);
	me = w->cur;
	finish(w, me);
	if (me->driven && me->owner == me->run) /* before the return clause */
		die(w, me);
	return (void *)w->result;
}

static void end_all(struct world *w, enum status status)
{
	for (int i = 0; i < w->record_count; i++) {
		struct co *c = &w->records[i];

		if (c->status != status)
			continue;
		if (status != SUSPENDED) /* the coroutine around it has ended */
			c->leaf = c;
		w->finished.count = 0;
		if (weft_deref((weft_ref_t){c->k, c->id}))
			delete_coroutine(w, c);
		else
			drop_inside(w, c), die(w, c);
	}
}

void clean_up(struct world *w)
{
	CHECK(w, w->cur->root && !weft_current());
	w->heads.count = w->finished.count = w->kept_count = 0;
	end_all(w, NEW);
	end_all(w, SUSPENDED);
	w->finished.count = 0;
	end_all(w, INSIDE);
	end_all(w, FINISHED);
	end_all(w, RUNNING);
}
