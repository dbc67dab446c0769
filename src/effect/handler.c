/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deep handlers: a coroutine, and the loop that runs it and lets the clauses decide about its requests. Programs with
 * only tail clauses do not link this file: see run.c.
 *
 * A resumption is valid for one decision. Continuing increments the coroutine's `resume_serial`, and deleting clears
 * its id, so that copies of the resumption are stale from then on. Objects of the arena stay readable, so that this
 * check is safe.
 *
 * Rejected: a function that calls general and multi clauses only, and a search that tests for general clauses first. Of
 * 140 instructions of an operation, they save 3 with gcc and 6 with clang, but resume_nontail by a table takes 1.08 of
 * the time. Also rejected: weft__resumable in weft_continue, as in weft_tail_continue: 5 instructions of 186 less, but
 * with gcc 1.1 of the time.
 */
#define WEFT__PART_DECIDING
#define WEFT__PART_ENDS
#include "coro/answer_hooks.h"
#include "effect/run.h"

#include <errno.h>
#include <string.h>
#include <weft/defer.h>

/* Defined by the part copy (stack/policies.c): resumptions that can be used several times belong to copied
 * coroutines. */
#pragma weak weft_clone
#pragma weak weft_checkpoint
#pragma weak weft_checkpoint_restore
#pragma weak weft_checkpoint_drop

/* ---- messages ---------------------------------------------------------------------------------------------- */

static WEFT__NORETURN WEFT__COLD void die_continued(const weft_handler_t *handler, const weft_effect_t *effect)
{
	weft__die_clause(handler, effect, "\": its clause did not return what weft_tail_continue returned: return it");
}

static WEFT__NORETURN WEFT__COLD void die_undecided(const weft_handler_t *handler, const weft_effect_t *effect)
{
	weft__die_clause(handler, effect,
			 "\": its general clause returned without a decision: call weft_tail_continue, weft_continue, "
			 "weft_keep or weft_drop, once");
}

WEFT__LAST_WORDS(static, die_resumption, (const weft_resumption_t *k, const weft_effect_t *effect), k, effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "resumption of effect \"");
	weft__line_text(&line, k->effect ? k->effect->name : "?");
	if (weft_is_valid(k) && effect) {
		weft__line_text(&line, "\" continued as \"");
		weft__line_text(&line, effect->name);
		weft__line_text(&line, "\": name the effect that the clause is for");
	} else if (k->k && k->k->id == k->id) {
		weft__line_text(&line, "\" used twice: it was continued before; only multi clauses can do that again");
	} else {
		weft__line_text(&line, "\" used after its end: it was dropped, or continued to the end of its body");
	}
	weft__line_die(&line);
}

static void require(const weft_resumption_t *k)
{
	if (weft__unlikely(!k))
		weft__owner_die_no_resumption(NULL);
}

void weft__check_resumption(const weft_resumption_t *k, const weft_effect_t *effect)
{
	require(k);
	if (!weft_is_valid(k) || !weft__same(k->effect, effect))
		die_resumption(k, effect);
}

/* ---- the loop ---------------------------------------------------------------------------------------------- */

enum { AGAIN_SHIFT = 40 };
_Static_assert(offsetof(weft_resumption_t, again) == offsetof(weft_resumption_t, resume_serial) + AGAIN_SHIFT / 8 &&
		   offsetof(weft_resumption_t, effect) == offsetof(weft_resumption_t, resume_serial) + sizeof(uint64_t),
	       "resume_serial, kept, again and error are the word that weft__use_of loads");

typedef uint64_t __attribute__((may_alias)) use_word;

/*
 * Like weft__capture. Volatile, because gcc would put this word and its neighbour into a vector register first, which
 * takes longer than two stores.
 */
static inline void capture(weft_resumption_t *resumption, weft_coro_t *k, weft_request_t r, uint64_t again)
{
	uint64_t use = again << AGAIN_SHIFT | k->resume_serial;

	resumption->k = k;
	resumption->id = k->id;
	*(volatile use_word *)((char *)resumption + offsetof(weft_resumption_t, resume_serial)) = use;
	resumption->effect = r.effect;
	resumption->payload = r.payload;
}

void weft__die_returned(const weft_resumption_t *k, uintptr_t handled)
{
	if (!k->payload)
		die_continued(weft__handler_of(handled), k->effect);
	die_undecided(weft__handler_of(handled), k->effect);
}

/* Call a general or multi clause. Returns true if the clause has tail-continued the coroutine, which the loop then
 * resumes. */
WEFT__INLINE bool decide(const weft_handler_t *handler, const weft_clause_t *clause, weft_coro_t *k, weft_request_t r,
			 uint64_t again, void **result)
{
	weft_resumption_t resumption;

	capture(&resumption, k, r, again);
	*result = clause->call(k->state, &resumption, r.payload, clause->clause);
	if (weft__likely(!resumption.payload)) {
		if (weft__unlikely(*result != WEFT__CONTINUED))
			die_continued(handler, r.effect);
		return true;
	}
	if (resumption.again == WEFT__CHECKPOINTED)
		(void)weft_checkpoint_drop(k);
	else if (weft__unlikely(resumption.again == WEFT__ONCE && weft_is_valid(&resumption)))
		die_undecided(handler, r.effect);
	return false;
}

static weft__resume_t *resume_by;

void weft__set_resume(weft__resume_t *by)
{
	resume_by = by;
}

weft__resume_t *weft__told_resume(void)
{
	return resume_by;
}

/* Resume k until its next request that the table's own loop does not answer. The request may be an exception: see
 * weft__no_clause(). */
WEFT__INLINE weft_request_t resume(const weft_handler_t *handler, weft_coro_t **k, bool as_compiled)
{
	uintptr_t handled = weft__word_of(handler);
	weft_coro_t *in_memory = *k;
	weft_request_t r;

	r = as_compiled ? handler->drive(&in_memory, handled) : resume_by(&in_memory, NULL, handled);
	if (r.effect == WEFT__UNDRIVEN)
		return weft__resume_caught(k, NULL, handled);
	*k = in_memory;
	return r;
}

/* The arguments are in a frame that is lost when k is deleted. After weft_escalate, k has not even ended. */
static void *abort_clause(const weft_clause_t *clause, struct weft__run_frame *run_frame, weft_coro_t *k,
			  weft_request_t r)
{
	void *state = k->state;

	if (weft__unlikely(weft_state(k) == WEFT_SUSPENDED)) {
		r.payload = memcpy(__builtin_alloca(r.effect->size), r.payload, r.effect->size);
		weft__end_run_frame(run_frame);
	}
	return clause->call(state, NULL, r.payload, clause->clause);
}

/* The result of a decision: the coroutine continues, or weft_run returns the answer. Returned in registers. */
struct decided {
	void *answer;
	bool goes_on;
};

/* Decide about a request without a general clause. If the coroutine continues, a multi clause has tail-continued it. */
static struct decided decide_otherwise(const weft_handler_t *handler, const weft_clause_t *clause, weft_coro_t *k,
				       struct weft__run_frame *run_frame, weft_request_t r)
{
	struct decided d = {NULL, false};

	if (clause && clause->kind == WEFT__MULTI)
		d.goes_on = decide(handler, clause, k, r, WEFT__UNUSED, &d.answer);
	else if (clause && clause->kind == WEFT__ABORT)
		d.answer = abort_clause(clause, run_frame, k, r);
	else
		d.answer = weft__no_clause(handler, k, r);
	return d;
}

/* Decide about a request of k. The run frame is NULL if another call owns it. */
WEFT__INLINE struct decided decide_about(const weft_handler_t *handler, weft_coro_t *k,
					 struct weft__run_frame *run_frame, weft_request_t r)
{
	struct decided d = {NULL, false};
	const weft_clause_t *clause;

	if (weft__likely(!r.effect)) {
		void *state = k->state;

		weft__end_run_frame(run_frame); /* before the clause, so that the clause can reuse the coroutine */
		d.answer = weft__returned(handler, state, r.payload);
		return d;
	}
	clause = weft__clause_for(handler, r.effect, false);
	if (weft__unlikely(!clause || clause->kind != WEFT__GENERAL))
		return decide_otherwise(handler, clause, k, run_frame, r);
	d.goes_on = decide(handler, clause, k, r, WEFT__ONCE, &d.answer);
	return d;
}

/* Resume k until it returns a result, or a clause does. */
WEFT__INLINE void *drive_by(const weft_handler_t *handler, weft_coro_t *k, struct weft__run_frame *run_frame,
			    bool as_compiled)
{
	for (;;) {
		/* Hidden from gcc, which would keep handler and word on the stack; a recursion has many such frames. */
		const weft_handler_t *same = handler;
		struct decided d;
		weft_request_t r;

		__asm__("" : "+r"(same));
		r = resume(same, &k, as_compiled);
		if (r.effect == WEFT__DECIDED)
			return r.payload;
		d = decide_about(handler, k, run_frame, r);
		if (weft__unlikely(!d.goes_on))
			return d.answer;
	}
}

static WEFT__COLD void *drive_otherwise(const weft_handler_t *handler, weft_coro_t *k,
					struct weft__run_frame *run_frame)
{
	return drive_by(handler, k, run_frame, false);
}

WEFT__INLINE void *drive(const weft_handler_t *handler, weft_coro_t *k, struct weft__run_frame *run_frame)
{
	if (weft__unlikely(resume_by))
		return drive_otherwise(handler, k, run_frame);
	return drive_by(handler, k, run_frame, true);
}

/* A call of weft_run that waits for its answer. */
struct answering {
	char *since;
	bool left; /* the call was left by an exception */
};

WEFT__INLINE void forget(struct answering *a)
{
	if (weft__unlikely(a->left))
		weft__drop_thens(weft__self(), a->since);
}

/* Drive k, then call the functions that tail clauses registered for the answer meanwhile. */
WEFT__INLINE void *answer(const weft_handler_t *handler, weft_coro_t *k, struct weft__run_frame *run_frame)
{
	struct answering a __attribute__((
	    cleanup(forget))) = {WEFT_CANARY(thens_of_outer_runs_too) ? NULL : weft__top_of_thens(weft__self()), true};
	void *state = k->state, *result = drive(handler, k, run_frame);

	if (weft__unlikely(weft__self()->flags & WEFT__THENS))
		result = weft__pass_through(a.since, state, result);
	a.left = false;
	return result;
}

/* Mark a resumption as used; only the coroutine remains. The serial never goes back, even if the coroutine does: a
 * resumption that was captured in a run which is undone must not look valid when the next run reaches the same
 * point. */
static inline void consume(weft_coro_t *k)
{
	k->resume_serial++;
}

/* Answer for the coroutine of a kept resumption. If the stack has no room for this frame, the resumption is still
 * kept. */
static __attribute__((noinline)) void *answer_kept(const weft_handler_t *handler, weft_coro_t *k)
{
	struct weft__run_frame run_frame = {k, k->id, k->owner_changes};

	weft__defer_quick(weft__give_up, &run_frame);
	consume(k);
	return answer(handler, k, &run_frame);
}

/* Separate from answer_kept, for a smaller frame: a stack may have as many of these frames as the body performs
 * effects. */
static void *answer_another(const weft_handler_t *handler, weft_coro_t *k)
{
	return answer(handler, k, NULL);
}

/* The slow path of weft__continue_plainly: k has made a request that is not just for a general clause. */
static __attribute__((noinline)) void *answer_request(const weft_handler_t *handler, weft_coro_t *k, weft_request_t r)
{
	struct answering a __attribute__((cleanup(forget))) = {NULL, true};
	void *state = k->state, *result;
	struct decided d = decide_about(handler, k, NULL, r);

	result = d.goes_on ? answer_another(handler, k) : d.answer;
	if (weft__unlikely(weft__self()->flags & WEFT__THENS))
		result = weft__pass_through(a.since, state, result);
	a.left = false;
	return result;
}

/*
 * A recursion of clauses and weft_continue would return to two addresses in turns. Processors predict the last few
 * dozen return addresses, and mispredict older addresses that alternate. So this function does not wait for the clause:
 * the compiler turns the call into a jump, and the clause returns to the clause before it. That clause's frame contains
 * `next`, and weft__settle does the remaining work.
 */
void *weft__continue_plainly(weft_resumption_t *resumption, weft_resumption_t *next)
{
	weft_coro_t *k = resumption->k;
	const weft_handler_t *handler = weft__handler_of(k->handled);
	const weft_clause_t *clause;
	weft_request_t r;

	resumption->payload = resumption;
	next->payload = next;
	consume(k);
	/* Functions that tail clauses registered for an outer call's answer do not apply to this call's answer. */
	if (weft__unlikely(resume_by || weft__top_of_thens(weft__self())))
		return answer_another(handler, k);
	r = weft__resume_caught(&k, NULL, weft__word_of(handler));
	if (weft__unlikely(weft__self()->flags & WEFT__THENS))
		return answer_request(handler, k, r);
	if (weft__likely(!r.effect))
		return weft__returned(handler, k->state, r.payload);
	clause = weft__clause_for(handler, r.effect, false);
	if (weft__unlikely(!clause || clause->kind != WEFT__GENERAL))
		return answer_request(handler, k, r);
	capture(next, k, r, WEFT__ONCE);
	return clause->call(k->state, next, r.payload, clause->clause);
}

void *weft__settle(weft_resumption_t *next, void *answer)
{
	weft_coro_t *k = next->k;

	if (!next->payload && WEFT_NO_CANARY(tail_within_ends_the_body)) {
		if (weft__unlikely(answer != WEFT__CONTINUED))
			die_continued(weft__handler_of(k->handled), next->effect);
		next->payload = next;
		return answer_another(weft__handler_of(k->handled), k);
	}
	if (weft__unlikely(weft_is_valid(next)))
		die_undecided(weft__handler_of(k->handled), next->effect);
	return answer;
}

/* ---- running ----------------------------------------------------------------------------------------------- */

/* The run frame is registered first, because the stack may overflow in each call that follows. */
static void *run(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg, const weft_attr_t *attr)
{
	struct weft__run_frame run_frame = weft__no_run_frame;
	weft_coro_t *k;

	weft__defer_quick(weft__give_up, &run_frame);
	k = attr ? weft_create_with(body, arg, attr) : weft_create(body, arg);
	if (weft__unlikely(!k))
		return weft__failed(handler, state, errno);
	run_frame = (struct weft__run_frame){k, k->id, k->owner_changes};
	k->state = state;
	return answer(handler, k, &run_frame);
}

static void *run_copied(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg, const weft_attr_t *attr)
{
	weft_attr_t copying = {0};

	if (attr)
		copying = *attr;
	if (copying.policy && copying.policy != weft__policy_that_clones)
		return weft__failed(handler, state, EINVAL);
	copying.policy = weft__policy_that_clones;
	return run(handler, state, body, arg, &copying);
}

void *weft__run_deciding(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg,
			 const weft_attr_t *attr)
{
	if (weft__clause_of_kind(handler, WEFT__MULTI))
		return run_copied(handler, state, body, arg, attr);
	return run(handler, state, body, arg, attr);
}

void *weft_run_with(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg, const weft_attr_t *attr)
{
	if (weft__unlikely(!handler))
		weft__die_no_handler("weft_run_with");
	return weft__run_deciding(handler, state, body, arg, attr);
}

void (*const weft__maker_run_with)(void) = (void (*)(void))weft_run_with;

/* ---- deciding ---------------------------------------------------------------------------------------------- */

static inline void check(const weft_resumption_t *k)
{
	require(k);
	if (weft__unlikely(!weft_is_valid(k)))
		die_resumption(k, NULL);
}

void weft__rewind(weft_resumption_t *k)
{
	int error;

	if (k->again == WEFT__STRANDED)
		return;
	error = k->again == WEFT__UNUSED ? weft_checkpoint(k->k) : weft_checkpoint_restore(k->k);
	k->error = (int16_t)-error;
	k->again = error ? WEFT__STRANDED : WEFT__CHECKPOINTED;
}

void *weft__continue(weft_resumption_t *k, int error)
{
	const weft_handler_t *handler;

	check(k);
	handler = weft__handler_of(k->k->handled);
	error = k->again == WEFT__STRANDED ? k->error : -error;
	if (weft__unlikely(error)) {
		void *state = k->k->state;

		weft_drop(k);
		return weft__failed(handler, state, error);
	}
	if (k->kept && !k->again)
		return answer_kept(handler, k->k);
	consume(k->k);
	return answer_another(handler, k->k);
}

/* If there is no memory for the copy that a multi clause needs, weft__continue reports that. */
void *weft__continue_throwing(weft_resumption_t *k, weft__thrower_t *throws, void *argument)
{
	check(k);
	if (k->again)
		weft__rewind(k);
	if (k->again != WEFT__STRANDED && WEFT_NO_CANARY(exception_becomes_an_answer))
		weft__throw_into(k->k, throws, argument);
	return weft__continue(k, 0);
}

void *weft__tail_continue_specially(weft_resumption_t *k, int error)
{
	check(k);
	if (error || k->again == WEFT__STRANDED || k->kept)
		return weft__continue(k, error);
	(void)weft_checkpoint_drop(k->k);
	k->again = WEFT__ONCE;
	return weft__tail_continue(k, 0);
}

int weft__answer_slowly(weft_resumption_t *k, const weft_effect_t *effect, const void *value, size_t offset,
			size_t size)
{
	return weft__answer(k, effect, weft__given(value, offset, size));
}

static weft_resumption_t keep_clone(weft_resumption_t *k)
{
	weft_resumption_t kept = *k;

	if (k->again == WEFT__CHECKPOINTED)
		weft__rewind(k);
	kept.k = k->again == WEFT__STRANDED ? NULL : weft_clone(k->k);
	if (weft__unlikely(!kept.k))
		return kept;
	kept.id = kept.k->id;
	kept.again = WEFT__UNUSED;
	kept.k->state = k->k->state;
	kept.k->handled = k->k->handled;
	return kept;
}

weft_resumption_t weft_keep(weft_resumption_t *k)
{
	weft_resumption_t kept;

	check(k);
	if (k->again) {
		kept = keep_clone(k);
	} else {
		kept = *k;
		k->k = NULL; /* the clause has decided */
	}
	kept.kept = true;
	if (weft__likely(kept.k != NULL))
		kept.k->owner_changes++;
	return kept;
}

void weft_drop(weft_resumption_t *k)
{
	check(k);
	if (!k->again || k->kept) /* else the coroutine is restored to its checkpoint, or its owner deletes it */
		weft_delete(k->k);
	else if (k->again == WEFT__CHECKPOINTED)
		(void)weft_checkpoint_drop(k->k);
	k->again = WEFT__ONCE;
	k->k = NULL;
}
