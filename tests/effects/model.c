/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The model: computes the expected events from the steps. */
#include "world.h"

_Noreturn void differs(const struct world *w, const char *file, int line, const char *condition)
{
	fprintf(stderr,
		"%s:%d: --seed %llu --profile %d --programs 1: does not hold: %s (step %llu, effect %s, target %d, "
		"current %d)\n",
		file, line, (unsigned long long)w->seed, w->profile_number, condition,
		(unsigned long long)w->count[COUNT_STEPS], w->event.op < OPS ? ops[w->event.op].name : "none",
		w->event.target ? serial_of(w->event.target) : -1, serial_of(w->cur));
	fflush(NULL);
	abort();
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

struct co *new_record(struct world *w)
{
	struct co *c = &w->records[w->record_count];

	CHECK(w, w->record_count < RECORDS);
	w->record_count++;
	*c = (struct co){.world = w, .leaf = c, .creator = w->cur, .spec = {.label = -1, .table = -1}};
	return c;
}

int serial_of(const struct co *c)
{
	return c->root ? -2 - (int)(c - c->world->root) : (int)(c - c->world->records);
}

struct instance *new_instance(struct world *w, int handler)
{
	struct instance *i = &w->instances[w->instance_count];

	CHECK(w, w->instance_count < RECORDS);
	w->instance_count++;
	*i = (struct instance){w, handler};
	return i;
}

void list_add(struct list *list, struct co *c)
{
	CHECK(c->world, list->count < LIST);
	c->list = &list->co[0];
	c->at = list->count;
	list->co[list->count++] = c;
}

void list_remove(struct list *list, struct co *c)
{
	struct co *last = list->co[--list->count];

	CHECK(c->world, c->list == list->co && list->co[c->at] == c);
	list->co[c->at] = last;
	last->at = c->at;
	c->list = NULL;
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

const weft_handler_t *handler_of(const struct world *w, const struct spec *spec)
{
	if (spec->table >= 0)
		return &w->tables[spec->table].handler;
	return spec->label < 0 ? handlers[spec->index].handler : &labelled[spec->index][spec->label];
}

static void use_table(struct co *c, int use)
{
	if (c->spec.table >= 0)
		c->world->tables[c->spec.table].users += use;
}

void set_spec(struct co *c, struct spec spec)
{
	if (spec.kind != c->spec.kind || spec.index != c->spec.index || spec.label != c->spec.label)
		c->moves++;
	use_table(c, -1);
	c->spec = spec;
	use_table(c, 1);
}

bool spec_answers(const struct spec *spec, int op, int label)
{
	const struct handler *h = &handlers[spec->index];

	if (spec->kind == TABLE)
		return spec->label == label && (h->tail[op] || h->other[op]);
	if (label >= 0)
		return members[spec->index] == ~0u;
	return members[spec->index] >> op & 1;
}

struct co *predict(const struct co *c, int op, int label)
{
	for (;; c = c->parent) {
		while (c->mask)
			c = c->mask->parent;
		if (c->root)
			return NULL;
		if (spec_answers(&c->spec, op, label))
			return (struct co *)c;
	}
}

struct co *predict_outside(const struct co *c, int op, int label)
{
	return predict(c->parent, op, label);
}

enum happening outcome(const struct co *target, int op, bool far)
{
	const struct handler *h = &handlers[target->spec.index];

	if (target->spec.kind == SET)
		return op == OP_x0 ? EXITED : REQUESTED;
	if (h->tail[op] && !far)
		return IN_PLACE;
	if (h->other[op] == ABORT)
		return target->driven ? ABORTED : EXITED;
	if (op == OP_x0)
		return EXITED;
	return target->driven ? CAPTURED : REQUESTED;
}

bool is_multi(const struct co *target, int op)
{
	return target->spec.kind == TABLE && handlers[target->spec.index].other[op] == MULTI;
}

/* ---- events of coroutines ---------------------------------------------------------------------------------------- */

void suspend(struct world *w, struct co *target)
{
	for (struct co *c = w->cur; c != target; c = c->parent)
		c->status = INSIDE;
	target->status = SUSPENDED;
	target->leaf = w->cur;
	target->former = target->parent;
	w->cur = target->parent;
}

void awaken(struct world *w, struct co *c)
{
	for (struct co *i = c->leaf; i != c; i = i->parent)
		i->status = RUNNING;
	c->status = RUNNING;
	w->cur = c->leaf;
	w->reply = c->reply;
	c->reply = 0;
}

/* Was c made by a coroutine from `leaf` to `outer`? */
static bool made_within(const struct co *c, const struct co *leaf, const struct co *outer)
{
	for (const struct co *i = leaf;; i = i->parent) {
		if (i == c->creator)
			return true;
		if (i == outer)
			return false;
	}
}

static void inherit(struct world *w, struct co *c, struct co *heir)
{
	c->heir = heir;
	w->kept_dead[w->kept_dead_count++] = c;
}

void check_inheritance(struct world *w, const struct co *c)
{
	int left = 0;

	for (int i = 0; i < w->kept_dead_count; i++) {
		struct co *dead = w->kept_dead[i];

		if (dead->heir == c)
			CHECK(w, !weft_deref((weft_ref_t){dead->k, dead->id}));
		else
			w->kept_dead[left++] = dead;
	}
	w->kept_dead_count = left;
}

static void renew(struct co *c)
{
	c->mask = NULL;
	c->leaf = c;
	c->nest = c->holding = 0;
	c->waits_for = 0;
}

static void abandon(struct world *w, struct co *c, struct co *leaf)
{
	for (struct co *i = leaf, *up; i != c; i = up) {
		up = i->parent;
		if (i->copy || i->driven || w->finished.count == LIST) {
			i->status = FINISHED; /* the owner of its handle is also dead: for clean_up() */
		} else if (made_within(i, leaf, c)) {
			die(w, i);
			inherit(w, i, c);
		} else {
			i->status = FINISHED;
			list_add(&w->finished, i);
		}
		renew(i);
	}
	renew(c);
}

void drop_inside(struct world *w, struct co *c)
{
	if (c->leaf != c)
		abandon(w, c, c->leaf);
	renew(c);
}

void finish(struct world *w, struct co *c)
{
	abandon(w, c, w->cur);
	c->status = FINISHED;
	c->former = c->parent;
	w->cur = c->parent;
}

void die(struct world *w, struct co *c)
{
	if (c->status != DEAD)
		use_table(c, -1);
	c->status = DEAD;
	for (int i = 0; i < STORAGES; i++)
		if (w->in_storage[i] == c)
			w->in_storage[i] = NULL;
}

bool has_copies(const struct co *head)
{
	for (const struct co *c = head->leaf; c != head; c = c->parent)
		if (c->copy)
			return true;
	return head->copy;
}

bool copies_running(const struct world *w)
{
	for (const struct co *c = w->cur; !c->root; c = c->parent)
		if (c->copy)
			return true;
	return false;
}

uint64_t context(const struct world *w)
{
	uint64_t digest = 1 + (uint64_t)w->thread;

	for (const struct co *c = w->cur; !c->root; c = c->parent)
		digest = (digest ^ c->run) * 0x9e3779b97f4a7c15u;
	return digest;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void audit_entry(struct world *w, const struct weft__found *f, const struct co *c, int op, int label)
{
	const struct co *target = predict(c, op, label);

	w->event = (struct event){.target = (struct co *)target, .op = op};
	CHECK(w, target && f->k == target->k);
	switch (outcome(target, op, false)) {
	case IN_PLACE:
		CHECK(w, f->enter == ops[op].tail[handlers[target->spec.index].tail[op] - TAIL_1]);
		break;
	case EXITED:
	case ABORTED:
		CHECK(w, op == OP_x0 || f->enter);
		break;
	default:
		CHECK(w, !f->enter);
	}
}

/* Checks the entry that a perform would use, and the entry behind it in the table. */
static void audit_key(struct world *w, const struct co *c, const void *key, int op, int label)
{
	struct weft__found used;
	const struct weft__found *f = weft__probe(weft__found_here(), c->k->view, key, ops[op].place);

	if (f)
		audit_entry(w, f, c, op, label);
	if (weft__look_up(c->k->view, key, ops[op].place, &used))
		audit_entry(w, &used, c, op, label);
}

static void audit_one(struct world *w, const struct co *c)
{
	for (int op = 0; op < OPS; op++) {
		audit_key(w, c, ops[op].effect, op, -1);
		for (int l = 0; l < LABELS; l++)
			if (family_of_label[l] == ops[op].family)
				audit_key(w, c, &labels[l].keys[ops[op].effect->index], op, l);
	}
}

void audit(struct world *w)
{
	struct event before = w->event;

	for (const struct co *c = w->cur; !c->root; c = c->parent) {
		if (c->mask)
			CHECK(w, weft__masked(c->k->view));
		else
			audit_one(w, c);
	}
	w->event = before;
}
