/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The search for a handler: it goes up the chain of running coroutines, and compares what each resumer handles. It
 * caches its results (detail/handler_cache.h), and checks for cached results of earlier searches on the way. So after
 * a handler was installed or removed, the next search visits only the coroutines that are new.
 */
#include "effect/effect.h"

/* The state of a search, from a coroutine or from a tail clause. */
struct search {
	const weft_effect_t *effect; /* NULL: search for `number`, which sets of `tags` may have */
	const weft_label_t *label;
	const void *key;
	unsigned place, number;
	bool doubled; /* the effect has several addresses */
	struct weft__found *table;
	bool exits;	   /* the performer ends, so the result is not cached */
	weft_coro_t *from; /* the first coroutine for which an entry can be made */
	struct weft__found result;
};

enum { REMEMBERED = 4 }; /* coroutines of a path that get entries: the first of them, which change most often */

/* True if `member` is the effect, or its family. */
static inline bool stands_for(const weft_effect_t *member, const weft_effect_t *effect)
{
	return weft__same(member, effect->family) || weft__same(member, effect);
}

WEFT__INLINE bool set_has(uintptr_t word, const weft_effect_t *effect)
{
	const weft_effect_t *const *member = (const weft_effect_t *const *)(word - 1);

	for (; *member; member++)
		if (stands_for(*member, effect))
			return true;
	return false;
}

/* The first clause of the effect, a tail clause if there is one. */
static inline const weft_clause_t *first_clause(const weft_handler_t *handler, const weft_effect_t *effect)
{
	const weft_clause_t *clause = handler->clauses, *end = clause + handler->count;
	const weft_clause_t *other = NULL;

	for (; clause < end; clause++) {
		if (!weft__same(clause->effect, effect))
			continue;
		if (clause->kind == WEFT__TAIL)
			return clause;
		if (!other)
			other = clause;
	}
	return other;
}

/* True if the resumer of k handles the effect. The result then says how. */
WEFT__INLINE bool handles(struct search *s, weft_coro_t *k)
{
	const weft_handler_t *handler = weft__handler_of(k->handled);
	const weft_clause_t *clause;

	s->result.enter = NULL;
	s->result.k = k;
	if (!s->effect)
		return weft__handles_tag(k, s->number);
	if (handler) {
		clause = handler->label == s->label ? first_clause(handler, s->effect) : NULL;
		if (clause)
			s->result.enter = clause->enter;
		return clause;
	}
	if (k->handled == ~(uintptr_t)0)
		return true;
	if (s->label)
		return false;
	if (k->handled & 1)
		return set_has(k->handled, s->effect);
	return stands_for((const weft_effect_t *)k->handled, s->effect);
}

/* The key of an entry for a yield to a handler that knows the effect by another address. Performers do not find the
 * entry, because they would yield with their own address. */
static const void *key_of_renamed(const struct search *s)
{
	return (const char *)s->effect + 1;
}

/* True if the handler names the effect by the address that was performed. May be false if unsure. */
static WEFT__COLD bool has_own_address(const struct search *s)
{
	uintptr_t handled = s->result.k->handled;
	const weft_effect_t *const *member = (const weft_effect_t *const *)(handled - 1);

	if (!(handled & 7))
		return handled == (uintptr_t)s->effect || handled == (uintptr_t)s->effect->family;
	if (weft__handler_of(handled) || handled == ~(uintptr_t)0)
		return false;
	while (*member && *member != s->effect && *member != s->effect->family)
		member++;
	return *member;
}

static inline bool remembered(struct search *s, const weft_coro_t *k)
{
	const struct weft__found *f;

	if (!s->table)
		return false;
	f = weft__probe(s->table, k->view, s->key, s->place);
	if (weft__unlikely(s->doubled) && !f)
		f = weft__probe(s->table, k->view, key_of_renamed(s), s->place);
	if (f)
		s->result = *f;
	return f;
}

static inline weft_coro_t *unmasked(struct search *s, weft_coro_t *k)
{
	if (weft__unlikely(weft__masked(k->view))) {
		k = weft__unmasked(k);
		if (WEFT_NO_CANARY(past_a_clause_is_remembered))
			s->from = k;
	}
	return k;
}

/* True if the path passes a coroutine whose frames are moved. It must take part when it is suspended from below, and a
 * cached result would bypass that. */
static bool passes_copying(const struct search *s)
{
	const weft_coro_t *k = s->from;

	if (weft__likely(!(__atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED)) || s->result.enter)
		return false;
	for (; k != s->result.k; k = k->parent)
		if (k->flags & WEFT__COPYING)
			return true;
	return false;
}

static void remember(struct search *s, weft_coro_t *last)
{
	weft_coro_t *k = s->from;
	int entries = 0;

#ifdef WEFT__NO_MEMO /* tests/effects compares with a library without this cache */
	return;
#endif
	if (weft__unlikely(s->doubled) && !s->result.enter && !has_own_address(s))
		s->key = key_of_renamed(s);
	s->result.key = s->key;
	weft__tls_self.newest[s->place] =
	    (struct weft__newest){k->view, s->key, (uintptr_t)s->result.k | !!s->result.enter, s->result.enter};
	for (;; k = k->parent) {
		if (entries++ < REMEMBERED) {
			s->result.view = k->view;
			s->table[((uintptr_t)k->view & WEFT__FOUND_MASK) / sizeof s->result + s->place] = s->result;
		}
		k->marks |= k == s->from ? WEFT__SEEN : WEFT__SEEN | WEFT__PASSED;
		if (k == last)
			break;
	}
	weft__tls_thread->owner_used = true;
}

static bool search(struct search *s)
{
	weft_coro_t *k = weft__self();
	bool inside;

	if (!k)
		return false;
	s->from = k;
	inside = weft__masked(k->view);
	for (k = unmasked(s, k); k->parent; k = unmasked(s, k->parent)) {
		if (remembered(s, k))
			break;
		if (handles(s, k)) {
			if (weft__unlikely(inside && k == s->from)) /* found as quickly as an entry */
				return true;
			break;
		}
	}
	if (!k->parent)
		return false;
	if (s->table && !s->exits && !passes_copying(s))
		remember(s, k);
	return true;
}

WEFT__LAST_WORDS(static, die_unhandled, (const struct search *s), s)
{
	const weft_coro_t *self = weft_current();
	const weft_effect_t *other = weft__namesake(self, s->effect);
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "unhandled effect \"");
	weft__line_text(&line, s->effect->name);
	if (other) {
		weft__line_text(&line, "\": ");
		weft__line_declaration(&line, s->effect);
		weft__line_text(&line, " is performed, handled is ");
		weft__line_declaration(&line, other);
		weft__line_text(&line, "; declare both alike");
		weft__line_die(&line);
	}
	if (s->label) {
		weft__line_text(&line, "\" of \"");
		weft__line_text(&line, s->label->name);
	}
	weft__line_text(&line, "\"");
	if (self) {
		weft__line_text(&line, " in ");
		weft__line_coroutine(&line, weft_name(self), weft_id(self));
	} else {
		weft__line_text(&line, " outside of any coroutine");
	}
	if (s->label) {
		weft__line_text(&line, ": run it under a handler made with weft_labelled for this label");
	} else {
		weft__line_text(&line, ": resume with weft_handles(");
		weft__line_text(&line, s->effect->name);
		weft__line_text(&line, "), run it under a handler, or set a default handler with weft_set_default");
	}
	weft__line_die(&line);
}

WEFT__LAST_WORDS(static, die_label, (const weft_effect_t *effect, const weft_label_t *label), effect, label)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "effect \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" is not of the family that label \"");
	weft__line_text(&line, label->name);
	weft__line_text(&line, "\" was made for: give WEFT_LABEL that family");
	weft__line_die(&line);
}

/* Called when the search has failed. Returns only if the effect has a default handler. */
static void resort_to_default(const struct search *s)
{
	if (!__atomic_load_n(&s->effect->default_handler, __ATOMIC_ACQUIRE))
		die_unhandled(s);
}

WEFT__INLINE void begin(struct search *s, const weft_effect_t *effect, const weft_label_t *label, unsigned place)
{
	s->effect = effect;
	s->label = label;
	s->key = effect;
	s->place = place;
	s->doubled = effect->group;
	s->table = NULL;
	s->exits = false;
	if (!label)
		return;
	s->doubled = false; /* performers do not cache a yield from here */
	if (!weft__same(label->family, effect->family))
		die_label(effect, label);
	if (WEFT_NO_CANARY(labels_are_not_looked_at))
		s->key = &label->keys[effect->index];
}

weft_coro_t *weft__find_exit(const weft_effect_t *effect, unsigned place)
{
	struct search s;

	begin(&s, effect, NULL, place);
	s.exits = true;
	s.table = weft__found_table();
	if (weft__likely(search(&s)))
		return s.result.k;
	resort_to_default(&s);
	return NULL;
}

weft_coro_t *weft__locate(const weft_effect_t *effect)
{
	struct search s;

	begin(&s, effect, NULL, 0);
	return search(&s) ? s.result.k : NULL;
}

weft_coro_t *weft__find_tag(unsigned number)
{
	struct search s = {.number = number, .key = weft__key_of_tag(number), .place = weft__place_of_tag(number)};

	s.table = weft__found_table();
	return search(&s) ? s.result.k : NULL;
}

WEFT__LAST_WORDS(static, die_not_located, (const weft_coro_t *k, const weft_effect_t *effect), k, effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "cannot perform \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" at ");
	weft__line_coroutine(&line, weft_name(k), weft_id(k));
	weft__line_text(&line, ": its resumer does not handle the effect; call weft_locate after each suspension");
	weft__line_die(&line);
}

void weft__check_located(weft_coro_t *k, const weft_effect_t *effect)
{
	struct search s;

	begin(&s, effect, NULL, 0);
	if (!k)
		die_unhandled(&s);
	if (!weft__is_ancestor(k, weft__self()))
		weft__die_not_ancestor(k);
	if (!handles(&s, k))
		die_not_located(k, effect);
}

void (*weft__enter_of(const weft_coro_t *k, const weft_effect_t *effect))(void)
{
	const weft_handler_t *handler = weft__handler_of(k->handled);
	const weft_clause_t *clause = handler ? first_clause(handler, effect) : NULL;

	return clause ? clause->enter : NULL;
}

bool weft__same_handler(uintptr_t handled, uintptr_t other)
{
	const weft_handler_t *a = weft__handler_of(handled), *b = weft__handler_of(other);

	return a && b && a->clauses == b->clauses && a->count == b->count && a->label == b->label;
}

WEFT__LAST_WORDS(static, die_label_lost, (const weft_effect_t *effect), effect)
{
	const weft_coro_t *self = weft__self();
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "weft_escalate of effect \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" in ");
	weft__line_coroutine(&line, weft_name(self), weft_id(self));
	weft__line_text(&line, ": the coroutine was resumed under another handler while it executed a tail clause for "
			       "a label, and the label is not known any more: use weft_forward, or weft_perform_on in "
			       "the clause");
	weft__line_die(&line);
}

/* The function to enter for the first clause that is not a tail clause: an abort clause has one. */
static inline void (*enter_general(const weft_coro_t *k, const weft_effect_t *effect))(void)
{
	const weft_handler_t *handler = weft__handler_of(k->handled);
	const weft_clause_t *clause, *end;

	if (weft__unlikely(!handler))
		return NULL;
	for (clause = handler->clauses, end = clause + handler->count; clause < end; clause++)
		if (weft__same(clause->effect, effect) && clause->kind != WEFT__TAIL)
			return WEFT_CANARY(abort_clause_only_suspends) ? NULL : clause->enter;
	return NULL;
}

/* Search the handlers outside of the handler whose tail clause the coroutine executes. */
static __attribute__((noinline)) struct weft__next find_outside(weft_coro_t *self, const weft_effect_t *effect,
								const weft_label_t *label)
{
	weft_coro_t *k = weft__owner_of(self->view);
	struct search s;

	self->view = weft__inside_as(k, self->view);
	if (WEFT_CANARY(forwards_by_the_label_of_now))
		label = weft__handler_of(k->handled) ? weft__handler_of(k->handled)->label : NULL;
	begin(&s, effect, label, 0);
	if (search(&s)) {
		self->view = weft__inside_as(s.result.k, self->view);
		return (struct weft__next){s.result.k, s.result.enter};
	}
	resort_to_default(&s);
	self->view = weft__inner_view(k);
	return (struct weft__next){NULL, NULL};
}

/* The coroutine was resumed under another handler while it executed the clause. True if the new handler handles the
 * effect. */
static WEFT__COLD bool handles_now(weft_coro_t *self, const weft_effect_t *effect)
{
	if ((uintptr_t)self->view & WEFT__LABELLED)
		die_label_lost(effect);
	return weft__resumer_handles(weft__owner_of(self->view), effect) || WEFT_CANARY(generalize_asks_the_resumer);
}

static struct weft__next generalize(weft_coro_t *self, const weft_effect_t *effect)
{
	weft_coro_t *k;

	if (weft__unlikely(!self || !weft__masked(self->view)))
		(void)weft__clause_owner("weft_escalate");
	if (weft__unlikely(weft__was_moved(self->view)) && !handles_now(self, effect))
		return find_outside(self, effect, NULL);
	k = weft__owner_of(self->view);
	return (struct weft__next){k, enter_general(k, effect)};
}

struct weft__next weft__find(weft_coro_t *self, const weft_effect_t *effect, const weft_label_t *label, unsigned place)
{
	struct search s;

	begin(&s, effect, label, place);
	s.table = weft__found_table();
	if (weft__unlikely(!search(&s))) {
		resort_to_default(&s);
		return (struct weft__next){NULL, NULL};
	}
	if (s.result.enter)
		self->view = weft__inside_for(s.result.k, label);
	return (struct weft__next){s.result.k, s.result.enter};
}

static __attribute__((noinline)) struct weft__next find_again(weft_coro_t *self, const weft_effect_t *effect,
							      unsigned place)
{
	struct weft__found f;

	if (!self || !weft__look_up(self->view, effect, place, &f))
		return weft__find(self, effect, NULL, place);
	if (f.enter)
		self->view = weft__inner_view(f.k);
	return (struct weft__next){f.k, f.enter};
}

struct weft__next weft__find_next(weft_coro_t *self, void (*last)(void), const weft_effect_t *effect,
				  const weft_label_t *label, unsigned place)
{
	if (last == WEFT__GENERALIZING)
		return generalize(self, effect);
	return last == WEFT__GUESSED_WRONG ? find_again(self, effect, place) : find_outside(self, effect, label);
}

WEFT__LAST_WORDS(static, die_no_clause, (const char *what), what)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, what);
	weft__line_text(&line, ": called outside of a tail clause, which it has to be part of");
	weft__line_die(&line);
}

weft_coro_t *weft__clause_owner(const char *what)
{
	weft_coro_t *self = weft__self();

	if (weft__likely(self && weft__masked(self->view)))
		return weft__owner_of(self->view);
	die_no_clause(what);
}
