/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops that resume coroutines and answer requests; making, resetting and deleting coroutines. */
#include "world.h"

int place_table(struct world *w, int index, int label)
{
	int place = (int)below(w, TABLES);
	struct table *table = &w->tables[place];

	if (table->users)
		return table->index == index && table->label == label ? place : -1;
	table->index = index;
	table->label = label;
	table->handler = *(label < 0 ? handlers[index].handler : &labelled[index][label]);
	return place;
}

static struct spec random_spec(struct world *w)
{
	struct spec spec = {.kind = chance(w, 50) ? SET : TABLE, .label = -1, .table = -1};

	if (spec.kind == SET) {
		spec.index = (int)below(w, SETS);
		return spec;
	}
	spec.index = (int)below(w, HANDLERS);
	if (chance(w, 20))
		spec.label = (int)below(w, LABELS);
	if (chance(w, 40))
		spec.table = place_table(w, spec.index, spec.label);
	spec.instance = new_instance(w, spec.index);
	return spec;
}

static void choose_spec(struct world *w, struct co *t, bool same)
{
	if (!t->former || !(same || chance(w, 50))) {
		set_spec(t, random_spec(w));

		return;
	}
	if (t->spec.kind == TABLE && chance(w, 20))
		t->spec.instance = new_instance(w, t->spec.index);
}

static void check_request(struct world *w, weft_request_t r)
{
	const struct event *e = &w->event;

	CHECK(w, weft_current() == w->cur->k);
	CHECK(w, w->cur == e->target->parent);
	switch (e->what) {
	case RETURNED:
		CHECK(w, weft_returned(r) && (uint64_t)r.payload == w->result);
		break;
	case EXITED:
	case WAITING:
		if (e->op == OPS) {
			CHECK(w, r.effect == &weft_suspended && (uint64_t)r.payload == e->token);
			break;
		}
		__attribute__((fallthrough));
	default:
		CHECK(w, e->what == EXITED || e->what == REQUESTED);
		CHECK(w, r.effect == ops[e->op].effect && ops[e->op].token(r) == e->token);
	}
	CHECK(w,
	      weft_state(e->target->k) == (e->what == RETURNED || e->what == EXITED ? WEFT_FINISHED : WEFT_SUSPENDED));
}

/* Throws into the coroutine instead of replying. */
static weft_request_t resume_throwing(struct world *w, weft_coro_t *k, const struct spec *spec)
{
	uint64_t token = throw_here(w);

	if (spec->kind == TABLE)
		return weft_resume_throw_under(k, handler_of(w, spec), spec->instance, x0, token);
	return weft_resume_throw(k, handles(spec->index), x0, token);
}

/* Resumes the coroutine until it suspends, and records the event. */
static weft_request_t resume(struct world *w, struct co *t)
{
	uint64_t run = fresh(w);
	weft_coro_t *k = t->k;
	const struct spec spec = t->spec;
	weft_request_t r;
	bool throws;
	void *value;

	t->parent = w->cur;
	t->driven = false;
	throws = t->status == SUSPENDED && can_throw_into(w, t);
	t->run = run;
	if (!t->reply && t->waiting)
		t->reply = fresh(w);
	t->waiting = false;
	w->cur->holding++;
	awaken(w, t);
	w->event.what = NOTHING;
	TRACE(w, "resume %d, %s %d\n", serial_of(t), spec.kind == TABLE ? "table" : "set", spec.index);
	value = (void *)w->reply;
	if (throws)
		r = resume_throwing(w, k, &spec);
	else if (spec.kind == TABLE)
		r = weft_resume_under(k, value, handler_of(w, &spec), spec.instance);
	else
		r = weft_resume_any(&k, value, handles(spec.index));
	CHECK(w, w->event.target && w->event.target->run == run);
	CHECK(w, throws || spec.kind == TABLE || k == w->event.target->k);
	check_request(w, r);
	w->cur->holding--;
	return r;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

void delete_coroutine(struct world *w, struct co *c)
{
	const weft_ref_t ref = {c->k, c->id};

	drop_inside(w, c);
	if (c->storage)
		weft_release(c->k);
	else
		weft_delete(c->k);
	CHECK(w, !weft_deref(ref));
	check_inheritance(w, c);
	CHECK(w, c->cleaned == c->cleans);
	die(w, c);
}

static void reset(struct world *w, struct co *c)
{
	drop_inside(w, c);
	weft_reset(c->k, body, c);
	check_inheritance(w, c);

	c->status = NEW;
	CHECK(w, c->cleaned == c->cleans);
	c->mission = NULL;
	c->reply = 0;
	c->waiting = false;
	list_add(&w->heads, c);
}

static void end(struct world *w, struct co *c)
{
	unsigned choice = below(w, 10);

	if (choice < 2 && w->heads.count < LIST)
		reset(w, c);
	else if (choice < 4 && w->finished.count < LIST && c->status == FINISHED)
		list_add(&w->finished, c);
	else
		delete_coroutine(w, c);
}

void reset_one(struct world *w)
{
	struct list *list = w->finished.count && chance(w, 60) ? &w->finished : &w->heads;
	struct co *c;

	if (!list->count)
		return;
	c = list->co[below(w, (unsigned)list->count)];
	list_remove(list, c);
	reset(w, c);
}

void delete_one(struct world *w)
{
	struct list *list = w->finished.count && chance(w, 50) ? &w->finished : &w->heads;
	struct co *c;

	if (!list->count)
		return;
	c = list->co[below(w, (unsigned)list->count)];
	list_remove(list, c);
	delete_coroutine(w, c);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static void leave_for_others(struct world *w, struct co *t)
{
	if (chance(w, 15) || w->heads.count == LIST)
		end(w, t);
	else
		list_add(&w->heads, t);
}

/* Does something else while it waits. Returns false if it cannot be resumed here afterwards. */
static bool meanwhile(struct world *w, const struct co *t)
{
	w->cur->holding++;
	if (chance(w, 25))
		steps(w, 2);
	w->cur->holding--;
	return !has_copies(t) || !copies_running(w);
}

void loop(struct world *w, struct co *t, int rounds)
{
	bool same = t->former && t->former->status == DEAD;

	for (;; rounds--) {
		weft_request_t r;

		choose_spec(w, t, same);
		same = chance(w, 50);
		r = resume(w, t);
		t = w->event.target;
		if (w->event.what == RETURNED || w->event.what == EXITED) {
			end(w, t);
			return;
		}
		t->waiting = w->event.what == WAITING;
		if (w->event.what == REQUESTED && chance(w, 90)) {
			t->reply = fresh(w);
			ops[w->event.op].reply(r, t->reply);
		}
		if (rounds <= 0 || w->steps <= 0 || !meanwhile(w, t)) {
			leave_for_others(w, t);
			return;
		}
	}
}

/* ---- beginnings -------------------------------------------------------------------------------------------------- */

static int free_storage(struct world *w)
{
	int first = (int)below(w, STORAGES);

	for (int i = 0; i < STORAGES; i++)
		if (!w->in_storage[(first + i) % STORAGES])
			return (first + i) % STORAGES;
	return -1;
}

static void create(struct world *w, struct co *c, int place)
{
	if (place >= 0) {
		c->storage = true;
		c->k = &w->storage[place];
		w->in_storage[place] = c;
		CHECK(w, !weft_init(c->k, body, c, NULL));
	} else {
		c->k = weft_create(body, c);
		CHECK(w, c->k);
	}
	c->id = weft_id(c->k);
}

/* Returns a coroutine whose last resumer is dead. */
static struct co *orphaned_head(struct world *w)
{
	for (unsigned i = 0, first = below(w, LIST); i < (unsigned)w->heads.count; i++) {
		struct co *c = w->heads.co[(first + i) % (unsigned)w->heads.count];

		if (c->former && (c->former->status == DEAD || c->former->status == NEW) && !c->former->root)
			return c;
	}
	return NULL;
}

void make(struct world *w, bool reincarnate)
{
	struct co *c, *left = reincarnate ? orphaned_head(w) : NULL;
	int place = chance(w, 25) ? free_storage(w) : -1;

	if (w->heads.count >= LIST - 1)
		return;
	if (left && left->former->status == NEW && left->former->list) { /* was reset */
		c = left->former;
		c->mission = left;
		list_remove(&w->heads, c);
		loop(w, c, 3);
		return;
	}
	c = new_record(w);
	if (left && left->former->storage && !w->in_storage[left->former->k - w->storage])
		place = (int)(left->former->k - w->storage);
	c->mission = left;
	create(w, c, place);
	if (chance(w, reincarnate ? 80 : 50))
		loop(w, c, (int)below(w, 6));
	else
		list_add(&w->heads, c);
}

/* ---- leaving without a handler ----------------------------------------------------------------------------------- */

/* A coroutine cannot leave a clause whose handler would stay behind, nor leave to weft_run. */
static bool can_leave(const struct co *me)
{
	return !me->root && !me->driven && (!me->mask || me->mask == me);
}

void wait_for_resumer(struct world *w)
{
	uint64_t token = fresh(w), got;

	if (!can_leave(w->cur))
		return;
	expect(w, WAITING, w->cur, OPS, token);
	suspend(w, w->cur);
	got = (uint64_t)weft_suspend((void *)token);
	CHECK(w, got == w->reply && weft_current() == w->cur->k);
}

void switch_sideways(struct world *w)
{
	struct co *me = w->cur, *to = w->heads.count ? pick_head(w) : NULL;
	uint64_t got;

	if (!to || !can_leave(me) || has_copies(to) || w->heads.count == LIST)
		return;
	take_head(w, to);
	note(w, (uint64_t)serial_of(to));
	TRACE(w, "switch to %d\n", serial_of(to));
	to->parent = me->parent;
	set_spec(to, me->spec);
	to->driven = false;
	to->run = me->run;
	if (!to->reply && to->waiting)
		to->reply = fresh(w);
	to->waiting = false;
	me->status = SUSPENDED;
	me->leaf = me;
	me->former = me->parent;
	me->waiting = true;
	list_add(&w->heads, me);
	awaken(w, to);
	got = (uint64_t)weft_switch(to->k, (void *)w->reply);
	CHECK(w, got == w->reply && weft_current() == w->cur->k);
}

void leave(struct world *w)
{
	struct co *me = w->cur;
	uint64_t token = fresh(w);

	if (!can_leave(me))
		return;
	expect(w, EXITED, me, OPS, token);
	finish(w, me);
	weft_exit(me->k, &weft_suspended, (void *)token);
}
