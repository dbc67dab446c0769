/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Performing, and the clauses of handlers. */
#include "world.h"

#include <errno.h>

uint64_t fresh(struct world *w)
{
	return ++w->serial << 1 | 1;
}

void expect(struct world *w, enum happening what, struct co *target, int op, uint64_t token)
{
	static const char *const names[] = {"nothing",	 "default", "in place", "aborted", "captured",
					    "requested", "waiting", "returned", "exited",  "failed"};

	w->event = (struct event){what, target, op, -1, token};

	note(w, (uint64_t)what << 40 | (uint64_t)(unsigned)op << 32 | (target ? (uint64_t)serial_of(target) : 0xffff));
	note(w, token ^ (uint64_t)serial_of(w->cur) << 32);
	TRACE(w, "%llu: %d: %s %s by %d\n", (unsigned long long)w->count[COUNT_STEPS], serial_of(w->cur),
	      op >= 0 && op < OPS ? ops[op].name : "-", names[what], target ? serial_of(target) : -1);
}

static void check_current(struct world *w)
{
	CHECK(w, weft_current() == w->cur->k);
	CHECK(w, w->cur->status == RUNNING);
}

/* Checks that the clause that runs is the expected clause. */
static struct world *check_clause(void *state, enum happening what, int op, uint64_t token)
{
	struct instance *in = state;
	struct world *w = in->world;

	CHECK(w, w->event.what == what);
	CHECK(w, w->event.op == op && w->event.token == token);
	CHECK(w, w->event.target->spec.kind == TABLE && w->event.target->spec.instance == in);
	CHECK(w, what == IN_PLACE || w->cur == w->event.target->parent);
	check_current(w);
	w->event.what = NOTHING;
	return w;
}

static void *conclude(struct world *w)
{
	w->result = fresh(w);
	return (void *)w->result;
}

/* Takes a few steps while this frame holds a value that can be used once. */
static void meanwhile(struct world *w, unsigned percent)
{
	w->cur->holding++;
	if (chance(w, percent))
		steps(w, 3);
	w->cur->holding--;
}

/* ---- performing -------------------------------------------------------------------------------------------------- */

static int pick_op(struct world *w)
{
	int op = (int)below(w, OPS);

	while (!(w->active >> op & 1))
		op = (op + 1) % OPS;
	return op;
}

static void count(struct world *w, const struct co *target, enum happening what, int op, const struct call *call)
{
	struct weft__found found;
	const void *key = ops[op].effect;

	if (call->label)
		key = &call->label->keys[ops[op].effect->index];
	if (w->cur->k && call->how != AT && weft__look_up(w->cur->k->view, key, ops[op].place, &found))
		w->count[COUNT_CACHED]++;
	switch (what) {
	case IN_PLACE:
		w->count[COUNT_TAIL]++;
		break;
	case ABORTED:
	case EXITED:
		w->count[COUNT_ABORT]++;
		break;
	case CAPTURED:
		w->count[is_multi(target, op) ? COUNT_MULTI : COUNT_GENERAL]++;
		break;
	case REQUESTED:
		w->count[COUNT_REQUEST]++;
		break;
	default:
		w->count[COUNT_DEFAULT]++;
	}
}

/* Returns the result of weft_locate, or the next enclosing handler. */
static struct co *locate(struct world *w, int op)
{
	struct co *target = predict(w->cur, op, -1), *outer;

	CHECK(w, ops[op].locate() == (target ? target->k : NULL));
	if (!target || chance(w, 60))
		return target;
	outer = predict(target->parent, op, -1);
	return outer ? outer : target;
}

static struct co *prepare(struct world *w, struct call *call, int op, int *label)
{
	call->token = fresh(w);
	if (op != OP_x0 && ops[op].family != NO_FAMILY && chance(w, 12)) {
		*label = ops[op].family == FAMILY_A ? (int)below(w, 2) : 2;
		call->how = LABELLED;
		call->label = &labels[*label];
		return predict(w->cur, op, *label);
	}
	if (chance(w, 8)) {
		struct co *target = locate(w, op);

		if (!target)
			return NULL;
		call->how = AT;
		call->at = target->k;
		return target;
	}
	if (op != OP_x0 && chance(w, 15)) {
		call->how = HOT;
		call->guess = (int)below(w, 2);
	}
	return predict(w->cur, op, -1);
}

/* The current coroutine is about to switch to the target's resumer, unless the event does not do so. */
static void go_to(struct world *w, struct co *target, enum happening what)
{
	if (what == REQUESTED || what == CAPTURED)
		suspend(w, target);
	else if (what == EXITED || what == ABORTED)
		finish(w, target);
}

void perform(struct world *w)
{
	struct call call = {0};
	int op = pick_op(w), label = -1;
	struct co *target = prepare(w, &call, op, &label), *mask = w->cur->mask;
	enum happening what = target ? outcome(target, op, false) : DEFAULTED;
	uint64_t got;

	if (!target && op == OP_x0)
		return; /* it would end the program */
	if (what == CAPTURED && is_multi(target, op) && w->cur->holding)
		return; /* these frames hold a value that can be used once */
	count(w, target, what, op, &call);
	expect(w, what, target, op, call.token);
	w->event.label = label;
	go_to(w, target, what);
	got = ops[op].perform(&call);
	CHECK(w, got == w->reply);
	w->cur->mask = mask; /* the effect may have been forwarded */
	check_current(w);
}

uint64_t on_default(int op, uint64_t token)
{
	extern struct world *world_of_thread(void);
	struct world *w = world_of_thread();

	CHECK(w, w->event.what == DEFAULTED && w->event.op == op && w->event.token == token);
	check_current(w);
	w->reply = fresh(w);
	return w->reply;
}

/* ---- deferred until the end -------------------------------------------------------------------------------------- */

static int place_of(struct world *w, const struct left *left)
{
	int at = w->left_count - 1;

	while (at >= 0 && w->left[at].number != left->number)
		at--;
	CHECK(w, at >= 0 && w->left[at].run == left->run);
	return at;
}

/* The run that waits for its answer is the run for which the function was deferred, and it is the last deferred
 * function. */
static void *on_end(void *state, void *answer, const struct left *left)
{
	struct instance *in = state;
	struct world *w = in->world;
	int at = place_of(w, left);

	CHECK(w, left->world == w && left->run == w->cur->waits_for);
	CHECK(w, (uint64_t)answer == w->result);
	check_current(w);
	for (int i = at + 1; i < w->left_count; i++)
		CHECK(w, w->left[i].run != left->run);
	memmove(&w->left[at], &w->left[at + 1], (size_t)(--w->left_count - at) * sizeof w->left[0]);
	w->count[COUNT_THEN]++;
	meanwhile(w, 10);
	CHECK(w, left->world == w);
	return conclude(w);
}

static void leave_for_the_end(struct world *w, const struct co *target)
{
	struct left left = {w, target->run, fresh(w)};

	if (w->left_count == THENS)
		return;
	w->left[w->left_count++] = left;
	CHECK(w, !weft_on_answer(on_end, &left));
}

/* ---- in place ---------------------------------------------------------------------------------------------------- */

/* An effect that is performed inside a clause switches to a handler outside of the clause's handler. */
static void go_outwards(struct world *w, struct co *target, enum happening what)
{
	if (what == REQUESTED || what == CAPTURED)
		w->cur->mask = target;
	go_to(w, target, what);
}

static bool can_leave_for(const struct world *w, const struct co *target, enum happening what, int op)
{
	return what != CAPTURED || !is_multi(target, op) || !w->cur->holding;
}

static void count_general(struct world *w, const struct co *target, enum happening what, int op)
{
	if (what == CAPTURED)
		w->count[is_multi(target, op) ? COUNT_MULTI : COUNT_GENERAL]++;
	else if (what == ABORTED || what == EXITED)
		w->count[COUNT_ABORT]++;
	else if (what == REQUESTED)
		w->count[COUNT_REQUEST]++;
}

/* The handler may differ from the clause's: if it does not have the effect, the next handler that has it answers. */
static void generalize(struct world *w, int op, int label)
{
	struct co *mask = w->cur->mask, *target = mask;
	bool here = spec_answers(&mask->spec, op, label);
	enum happening what;
	uint64_t token, got;

	if (here && mask->driven && !handlers[mask->spec.index].other[op])
		return; /* reported */
	if (!here)
		target = predict_outside(mask, op, label);
	what = target ? outcome(target, op, here) : DEFAULTED;
	if (!can_leave_for(w, target, what, op))
		return;
	token = fresh(w);
	expect(w, what, target, op, token);
	w->event.label = label;
	w->count[COUNT_OUTWARD] += !here;
	count_general(w, target, what, op);
	go_outwards(w, target, what);
	got = ops[op].generalize(token);
	CHECK(w, got == w->reply);
	w->cur->mask = mask;
	check_current(w);
}

/* Forwards the clause's perform to the next handler. Returns false if this is not possible now. */
static bool forward(struct world *w, const struct co *from, int op, int label, uint64_t token)
{
	struct co *target = predict_outside(from, op, label);
	enum happening what = target ? outcome(target, op, false) : DEFAULTED;

	if (!can_leave_for(w, target, what, op))
		return false;
	(void)weft_forward();
	expect(w, what, target, op, token);
	w->event.label = label;
	w->count[COUNT_FORWARD]++;
	count_general(w, target, what, op);
	go_outwards(w, target, what);
	return true;
}

uint64_t on_tail(void *state, int op, int which, uint64_t token)
{
	struct world *w = check_clause(state, IN_PLACE, op, token);
	struct co *before = w->cur->mask, *target = w->event.target;
	uint64_t moves = target->moves;
	int label = w->event.label;

	CHECK(w, handlers[target->spec.index].tail[op] == which);
	w->cur->mask = target;
	if (chance(w, 40))
		steps(w, 3);
	if (w->steps > 0 && chance(w, 15))
		wait_for_resumer(w);
	/* The coroutine may be under another handler than before; then the label is unknown. */
	if (w->steps > 0 && (label < 0 || target->moves == moves) && chance(w, target->moves == moves ? 20 : 70))
		generalize(w, op, label);
	if (target->driven && chance(w, 15))
		leave_for_the_end(w, target);
	CHECK(w, w->cur->mask == target);
	w->cur->mask = before;
	check_current(w);
	if (w->steps > 0 && chance(w, 15) && forward(w, target, op, label, token))
		return 0;
	w->reply = fresh(w);
	return w->reply;
}

/* ---- after the end of the body ----------------------------------------------------------------------------------- */

void *on_abort(void *state, int op, uint64_t token)
{
	struct co *target = ((struct instance *)state)->world->event.target;
	struct world *w = check_clause(state, ABORTED, op, token);

	CHECK(w, target->cleaned == target->cleans);
	meanwhile(w, 10);
	return conclude(w);
}

void *on_return(void *state, void *result)
{
	struct instance *in = state;
	struct world *w = in->world;

	CHECK(w, (uint64_t)result == w->result);
	check_current(w);
	meanwhile(w, 10);
	return conclude(w);
}

void *on_failure(void *state, int error)
{
	struct instance *in = state;
	struct world *w = in->world;

	CHECK(w, w->event.what == FAILED && error == EBUSY);
	return conclude(w);
}

static uint64_t begin_run(struct world *w, uint64_t run)
{
	uint64_t before = w->cur->waits_for;

	w->cur->waits_for = run;
	return before;
}

/* weft_run or weft_continue has returned: the coroutines that it owned are deleted, and no deferred function is
 * left. */
static void end_run(struct world *w, struct co *t, uint64_t run, uint64_t before, void *result)
{
	const weft_ref_t ref = {t->k, t->id};

	CHECK(w, w->cur->waits_for == run);
	w->cur->waits_for = before;
	for (int i = 0; i < w->left_count; i++)
		CHECK(w, w->left[i].run != run);

	CHECK(w, (uint64_t)result == w->result);
	check_current(w);
	if (t->status != DEAD && t->owner == run) {
		CHECK(w, t->status == FINISHED || t->status == SUSPENDED);
		drop_inside(w, t);
		die(w, t);
	}
	CHECK(w, t->status != DEAD || !weft_deref(ref));
	CHECK(w, t->status != RUNNING || weft_deref(ref) == t->k);
}

/* The exception must not end the program. */
bool can_throw_into(struct world *w, const struct co *t)
{
	return chance(w, 15) && predict(t->leaf, OP_x0, -1);
}

uint64_t throw_here(struct world *w)
{
	struct co *target = predict(w->cur, OP_x0, -1);
	enum happening what = outcome(target, OP_x0, false);
	uint64_t token = fresh(w);

	expect(w, what, target, OP_x0, token);
	w->event.label = -1;
	w->count[COUNT_THROW]++;
	finish(w, target);
	return token;
}

static void *resume_captured(struct world *w, struct co *t, int op, weft_resumption_t *k, bool owned)
{
	uint64_t run = fresh(w), value = fresh(w), before = begin_run(w, run);
	bool throws;
	void *result;

	t->parent = w->cur;
	t->driven = true;
	t->run = run;
	throws = can_throw_into(w, t);
	if (owned)
		t->owner = run;
	t->reply = value;
	CHECK(w, weft_is_valid(k));
	TRACE(w, "%s %d\n", throws ? "throw into" : "continue", serial_of(t));
	awaken(w, t);
	if (throws)
		result = weft_continue_throw(k, x0, throw_here(w));
	else
		result = ops[op].resume(k, value);
	end_run(w, t, run, before, result);
	return result;
}

/* ---- general clauses --------------------------------------------------------------------------------------------- */

static void drop(struct world *w, struct co *t, weft_resumption_t *k)
{
	drop_inside(w, t);
	die(w, t);
	weft_drop(k);
	CHECK(w, !weft_is_valid(k));
}

static void keep(struct world *w, struct co *t, int op, weft_resumption_t *k)
{
	if (w->kept_count == LIST || w->nested) {
		drop(w, t, k);
		return;
	}
	w->kept[w->kept_count++] = (struct kept){weft_keep(k), t, op, false};
	t->owner = 0;
}

/* Copied frames are bound to a region, which another coroutine may occupy now. */
static bool can_continue(struct world *w, const struct co *t, uint64_t then)
{
	return !has_copies(t) || (w->nested && context(w) == then) || !copies_running(w);
}

static void *decide(struct world *w, struct co *t, int op, weft_resumption_t *k)
{
	uint64_t then = context(w);
	weft_resumption_t saved;

	meanwhile(w, 25);
	CHECK(w, weft_is_valid(k) && t->status == SUSPENDED);
	if (!can_continue(w, t, then)) {
		drop(w, t, k);
		return conclude(w);
	}
	switch (below(w, 10)) {
	default: /* eventually */
		t->parent = w->cur;
		t->reply = fresh(w);
		awaken(w, t);
		return ops[op].tail_resume(k, w->reply);
	case 0:
	case 1:
		w->cur->holding++;
		(void)resume_captured(w, t, op, k, false);
		w->cur->holding--;
		meanwhile(w, 10);
		return conclude(w);
	case 2:
		keep(w, t, op, k);
		meanwhile(w, 10);
		return conclude(w);
	case 3:
		drop(w, t, k);
		return conclude(w);
	case 4:
		saved = weft_keep(k);
		t->owner = 0;
		meanwhile(w, 50);
		w->cur->holding++;
		if (can_continue(w, t, then))
			(void)resume_captured(w, t, op, &saved, true);
		else
			drop(w, t, &saved);
		w->cur->holding--;
		return conclude(w);
	}
}

/* ---- multi clauses ----------------------------------------------------------------------------------------------- */

/* Sets the model to the coroutine's state when it is continued once more. */
static void go_back(struct world *w, struct co *t, const struct co *snapshot)
{
	drop_inside(w, t);
	*t = *snapshot;
}

static void *fail_to_continue(struct world *w, struct co *t, int op, weft_resumption_t *k, bool tail)
{
	void *result;

	expect(w, FAILED, t, op, 0);
	w->result = 0;
	errno = 0;
	result = tail ? ops[op].tail_resume(k, 1) : ops[op].resume(k, 1);
	CHECK(w, (uint64_t)result == w->result);
	CHECK(w, w->result || weft_errno() == EBUSY);
	CHECK(w, !weft_is_valid(k));
	return result;
}

/* A captured coroutine that may be continued many times. */
struct many {
	struct co *t, snapshot;
	int op;
	bool stranded; /* it cannot be restored, because other coroutines run inside it */
};

static void keep_copy(struct world *w, struct many *m, weft_resumption_t *k)
{
	weft_resumption_t kept = weft_keep(k);
	bool possible = !m->stranded && !m->snapshot.mask; /* no clone has the address that restores the mask */
	struct co *c;

	CHECK(w, weft_is_valid(&kept) == possible);
	if (!possible)
		return;
	go_back(w, m->t, &m->snapshot);
	c = new_record(w);
	*c = m->snapshot;
	c->leaf = c;
	c->k = kept.k;
	c->id = weft_id(kept.k);
	c->owner = 0;
	CHECK(w, c->id != m->t->id);
	w->kept[w->kept_count++] = (struct kept){kept, c, m->op, true};
}

/* Returns false if it cannot be continued any more. */
static bool continue_again(struct world *w, struct many *m, weft_resumption_t *k, uint64_t then)
{
	if (m->t->status == DEAD || w->steps <= 0 || !can_continue(w, &m->snapshot, then))
		return false;
	if (m->stranded) {
		(void)fail_to_continue(w, m->t, m->op, k, false);
		return false;
	}
	go_back(w, m->t, &m->snapshot);
	w->cur->holding++;
	(void)resume_captured(w, m->t, m->op, k, false);
	w->cur->holding--;
	return m->t->status != DEAD;
}

static void *decide_many(struct world *w, struct co *t, int op, weft_resumption_t *k)
{
	struct many m = {t, *t, op, t->leaf != t};
	uint64_t then = context(w);
	bool more = true;

	meanwhile(w, 10);
	for (unsigned times = below(w, 3); more && times; times--) {
		more = continue_again(w, &m, k, then);
		meanwhile(w, 5);
	}
	if (!more)
		return conclude(w);
	if (chance(w, 10) && w->kept_count < LIST && !w->nested && w->record_count < RECORDS - 1)
		keep_copy(w, &m, k);
	if (m.stranded || chance(w, 60) || !can_continue(w, &m.snapshot, then)) {
		if (!m.stranded && chance(w, 20))
			weft_drop(k);
		return conclude(w);
	}
	go_back(w, t, &m.snapshot);
	t->parent = w->cur;
	t->reply = fresh(w);
	awaken(w, t);
	return ops[op].tail_resume(k, w->reply);
}

void *on_general(void *state, weft_resumption_t *k, int op, uint64_t token)
{
	struct co *t = ((struct instance *)state)->world->event.target;
	struct world *w = check_clause(state, CAPTURED, op, token);

	CHECK(w, k->k == t->k && weft_is_valid(k));
	return is_multi(t, op) ? decide_many(w, t, op, k) : decide(w, t, op, k);
}

/* ---- running bodies, and continuing kept resumptions ------------------------------------------------------------- */

void run(struct world *w)
{
	int h = w->many && chance(w, 80) ? MULTI_FIRST + (int)below(w, MULTI_LAST - MULTI_FIRST + 1)
					 : (int)below(w, HANDLERS);
	uint64_t id = fresh(w), before = begin_run(w, id);
	struct co *child;
	void *result;

	while (!handlers[h].runs || (handlers[h].multi && (!w->nested || WEFT__SANITIZED)))
		h = (h + 1) % HANDLERS;
	child = new_record(w);
	child->copy = handlers[h].multi;
	child->driven = true;
	child->parent = w->cur;
	child->spec = (struct spec){TABLE, h, chance(w, 20) ? (int)below(w, LABELS) : -1, new_instance(w, h), -1};
	child->run = child->owner = id;
	child->status = RUNNING;
	w->cur = child;
	result = weft_run(handler_of(w, &child->spec), child->spec.instance, body, child);
	end_run(w, child, id, before, result);
}

static void use_many(struct world *w, struct kept *e)
{
	struct many m = {e->co, *e->co, e->op, false};

	for (unsigned times = below(w, 3); times; times--) {
		if (!continue_again(w, &m, &e->resumption, context(w)))
			break;
		meanwhile(w, 5);
	}
	if (m.t->status == DEAD)
		return;
	if (w->kept_count < LIST && chance(w, 50)) {
		drop_inside(w, m.t);
		*m.t = m.snapshot;
		w->kept[w->kept_count++] = *e;
	} else {
		drop(w, m.t, &e->resumption);
	}
}

void use_kept(struct world *w)
{
	struct kept e;
	unsigned i;

	if (!w->kept_count)
		return;
	i = below(w, (unsigned)w->kept_count);
	e = w->kept[i];
	if (has_copies(e.co) && copies_running(w))
		return;
	w->kept[i] = w->kept[--w->kept_count];
	w->cur->holding++;
	if (chance(w, 20))
		drop(w, e.co, &e.resumption);
	else if (e.multi)
		use_many(w, &e);
	else
		(void)resume_captured(w, e.co, e.op, &e.resumption, true);
	w->cur->holding--;
}
