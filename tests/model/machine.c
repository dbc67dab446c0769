/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "machine.h"

#include <string.h>

enum { RIGHT, OUTERMOST_HANDLES, INNER_FORGOTTEN, THROW_SUSPENDS, INNER_OUTLIVES, SET_STICKS, REPLY_STICKS };

const char *const wrong_rules[] = {
    "",
    "an effect goes to the outermost handler",
    "resuming forgets what ran inside",
    "a throw only suspends",
    "coroutines made by lost frames live on",
    "resuming with the empty set keeps the set before",
    "a perform that nobody replies to returns its argument",
    NULL,
};

void machine_start(struct machine *m)
{
	int wrong = m->wrong;

	memset(m, 0, sizeof *m);
	m->wrong = wrong;
	for (int i = 0; i < CONTINUATIONS; i++)
		m->k[i].orphan_of = -1;
	m->k[OUTSIDE].state = RUNNING;
	machine_call(m);
}

int machine_current(const struct machine *m)
{
	return m->length ? m->chain[m->length - 1].k : OUTSIDE;
}

static struct continuation *current(struct machine *m)
{
	return &m->k[machine_current(m)];
}

static uint64_t top_frame(const struct continuation *c)
{
	return c->depth ? c->frame[c->depth - 1] : 0;
}

void machine_call(struct machine *m)
{
	struct continuation *c = current(m);

	c->frame[c->depth++] = ++m->serials;
	m->event = (struct event){.kind = STARTED, .frame = top_frame(c)};
}

static void arm(struct continuation *c, int k)
{
	c->state = SUSPENDED;
	c->orphan_of = -1;
	c->held[0] = (struct pair){k, 0};
	c->holds = 1;
	c->depth = 0;
}

void machine_newcont(struct machine *m, int k)
{
	struct continuation *c = &m->k[k];

	memset(c, 0, sizeof *c);
	c->serial = ++m->serials;
	c->creator = m->length ? current(m)->serial : 0;
	arm(c, k);
}

/* Appends the pairs that k holds to the chain, and continues its innermost code. */
static void append(struct machine *m, int k, uint64_t value)
{
	struct continuation *c = &m->k[k];
	int holds = m->wrong == INNER_FORGOTTEN ? 1 : c->holds;

	c->state = RUNNING;
	memcpy(m->chain + m->length, c->held, (size_t)holds * sizeof *c->held);
	m->length += holds;
	c = current(m);
	if (!c->depth) {
		machine_call(m);
		return;
	}
	m->event = (struct event){.kind = CONTINUED, .frame = top_frame(c)};
	m->event.value = c->pending == YIELDED ? value : c->reply;
}

void machine_resume(struct machine *m, int k, uint64_t value, uint32_t set)
{
	if (set || m->wrong != SET_STICKS)
		m->k[k].held[0].set = set;
	append(m, k, value);
}

void machine_switch(struct machine *m, int k, uint64_t value)
{
	struct pair from = m->chain[--m->length];
	struct continuation *c = &m->k[from.k];

	c->state = SUSPENDED;
	c->held[0] = from;
	c->holds = 1;
	c->pending = YIELDED;
	m->k[k].held[0].set = from.set;
	append(m, k, value);
}

int machine_handler(const struct machine *m, int effect)
{
	int place = NO_HANDLER;

	for (int i = 0; i < m->length; i++)
		if (m->chain[i].set >> effect & 1) {
			place = i;
			if (m->wrong == OUTERMOST_HANDLES)
				break;
		}
	return place;
}

/* The code before `place` gets a request from the continuation there. */
static void hand_over(struct machine *m, int place, int effect, uint64_t payload)
{
	int from = m->chain[place].k;

	m->length = place;
	m->event = (struct event){
	    .kind = REQUESTED, .frame = top_frame(current(m)), .from = from, .effect = effect, .payload = payload};
}

void machine_split(struct machine *m, int place, int effect, uint64_t payload, int pending)
{
	struct continuation *c = &m->k[m->chain[place].k];

	current(m)->pending = pending;
	current(m)->reply = m->wrong == REPLY_STICKS ? payload : 0;
	c->state = SUSPENDED;
	c->holds = m->length - place;
	memcpy(c->held, m->chain + place, (size_t)c->holds * sizeof *c->held);
	hand_over(m, place, effect, payload);
}

/* Did a continuation of these pairs make the continuation of `pair`? */
static bool made_within(const struct machine *m, const struct pair *pairs, int count, int pair)
{
	for (int i = 0; i < count; i++)
		if (m->k[pairs[i].k].serial == m->k[pairs[pair].k].creator)
			return true;
	return false;
}

/* The frames of these pairs are lost: the caller sets the state of the first pair, the other pairs are finished. */
static void lose(struct machine *m, const struct pair *pairs, int count)
{
	for (int i = 1; i < count; i++) {
		struct continuation *c = &m->k[pairs[i].k];

		c->state = FINISHED;
		if (made_within(m, pairs, count, i) && m->wrong != INNER_OUTLIVES)
			c->orphan_of = pairs[0].k;
	}
}

void machine_leave(struct machine *m, int place, int effect, uint64_t payload)
{
	if (m->wrong == THROW_SUSPENDS) {
		machine_split(m, place, effect, payload, YIELDED);
		return;
	}
	lose(m, m->chain + place, m->length - place);
	m->k[m->chain[place].k].state = FINISHED;
	hand_over(m, place, effect, payload);
}

void machine_return(struct machine *m, uint64_t value)
{
	struct continuation *c = current(m);

	if (--c->depth) {
		m->event = (struct event){.kind = CONTINUED, .frame = top_frame(c), .value = value};
		return;
	}
	c->state = FINISHED;
	hand_over(m, m->length - 1, RETURN, value);
}

static void drop_frames(struct machine *m, int k)
{
	if (m->k[k].state == SUSPENDED)
		lose(m, m->k[k].held, m->k[k].holds);
	for (int i = 0; i < CONTINUATIONS; i++)
		if (m->k[i].state == FINISHED && m->k[i].orphan_of == k)
			m->k[i].state = GONE, m->k[i].orphan_of = -1;
}

void machine_reset(struct machine *m, int k)
{
	drop_frames(m, k);
	arm(&m->k[k], k);
}

void machine_delete(struct machine *m, int k)
{
	drop_frames(m, k);
	m->k[k].state = GONE;
}
