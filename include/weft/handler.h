/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/handler.h: handlers as values. A constant table has a clause for each operation, and one call runs a body under
 * it. The loop of weft/effect.h remains for driving a coroutine by hand, and the two can be mixed.
 *
 *   WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
 *
 *   static int64_t on_get(void *state) { return *(int64_t *)state; }
 *   static void on_put(void *state, int64_t value) { *(int64_t *)state = value; }
 *
 *   WEFT_HANDLER(counter, weft_tail(get, on_get), weft_tail(put, on_put));
 *
 *   int64_t n = 100;
 *   void *result = weft_run(&counter, &n, countdown, NULL);
 *
 * Design
 *  1. The body is a coroutine, made by weft_run, which resumes it in a loop. So every handler can use every kind of
 *     clause, and a clause may decide at run time what it does; when warm, making the coroutine costs as much as a
 *     dozen calls.
 *  2. A handler is a table of clauses and a pointer to its state. The coroutine's `handled` word is the table, so that
 *     the search, its cache and the sets of weft_handles() are one mechanism.
 *  3. Clauses have the operation's parameters, after the state; the compiler checks them. There are four kinds:
 *       tail     a call, on the performer's stack. While it runs, effects go to the handlers outside of its own, and
 *                only a handler of the performer's own resumer may suspend it by weft_suspend (else: reported). With
 *                weft_on_answer it may leave work until the answer is known: no stack waits for that.
 *       abort    the body is left and its cleanups run, then the clause runs; its result is the result of weft_run
 *       general  the body is suspended, and the clause gets it as a resumption, about which it decides once
 *       multi    like general, under the policy "copy", where the body can be continued many times
 *  4. A resumption is linear: it carries the coroutine's number and how often it was captured. Using it twice, using
 *     it after its coroutine is gone, and leaving a clause undecided are reported.
 * To reach: a tail operation in 2.0 ns at depth 0 to 10, 2.2 at 100, 2.5 at 1000; a general operation in 3.0 and 3.2; a
 * tail clause including the work that it leaves for the answer: the time of plain recursion for that work, and 2 ns.
 *
 * Source of the ideas: clauses and their kinds, Koka and libmprompt; resumptions that are used once, OCaml 5; work left
 * for the answer, tail recursion modulo contexts (Leijen and Lorenzen).
 * Thread-safety is as in coro.h; handlers are constant and may be shared. docs/howto/choose-a-clause.md says which kind
 * to choose. Nothing here may be called in a signal handler: a perform may suspend the code that the signal
 * interrupted.
 */
#ifndef WEFT_HANDLER_H
#define WEFT_HANDLER_H

#ifndef __clang__
#pragma GCC system_header /* see weft/effect.h, which is how it is included */
#endif

#include <weft/copy.h>

WEFT_EXTERN_C_BEGIN

/**
 * A suspended computation, passed to a general clause. It lies in weft_run's frame: weft_keep makes a copy that lasts.
 * All fields are private except `k`, through which the coroutine can be inspected.
 */
typedef struct weft_resumption {
	weft_coro_t *k;
	uint64_t id; /* the coroutine's */
	/* These four are one word, see weft__use_of: equal to `resume_serial` if the other three are 0. */
	uint32_t resume_serial; /* the coroutine's, when it was captured */
	uint8_t kept;		/* 1: a copy made by weft_keep owns the coroutine. 0: the loop of weft_run owns it */
	uint8_t again;		/* WEFT__ONCE, … */
	int16_t error;		/* errno value, if it is WEFT__STRANDED */
	const struct weft_effect *effect;
	void *payload; /* the performer's frame */
} weft_resumption_t;

/** A run-time instance of a family: see weft_labelled. Identified by its address. */
typedef struct weft_label {
	const char *name;
	const struct weft_effect *family;
	char keys[16]; /* the addresses of its elements stand for the family's operations */
} weft_label_t;

/** The clause for one operation. Made by weft_tail and the macros beside it. */
typedef struct weft_clause {
	const struct weft_effect *effect;
	int kind;
	void (*clause)(void); /* the user's function; its type depends on the effect and the kind */
	void (*enter)(void);  /* the function that performers call in place, or NULL */
	/* Calls the clause with the arguments in the performer's frame. */
	void *(*call)(void *state, weft_resumption_t *k, void *frame, void (*clause)(void));
} weft_clause_t;

/* Resumes *k until there is a request without a general clause, or a general clause has decided: see weft__drive. */
typedef weft_request_t weft__drive_t(weft_coro_t **k, uintptr_t handled);

/** A table of clauses. Made by WEFT_HANDLER; constant; must outlive all code that runs under it. */
typedef struct weft_handler {
	const char *name;
	const weft_clause_t *clauses;
	unsigned count;
	const weft_label_t *label;
	weft__drive_t *drive; /* see weft__drive */
} weft_handler_t;

/* ---- making a handler ---------------------------------------------------------------------------------------- */

/**
 * WEFT_HANDLER(name, clause, …): define `static const weft_handler_t name`, with these clauses, at file scope.
 * `params…` are the operation's parameters; `state` is the pointer that was passed to weft_run.
 *   weft_tail(op, fn)        R fn(void *state, params…)
 *   weft_abort(op, fn)       void *fn(void *state, params…)
 *   weft_general(op, fn)     void *fn(void *state, weft_resumption_t *k, params…); fastest if declared inline
 *   weft_multi(op, fn)       the type of a general clause; the handler's bodies run under the policy "copy"
 *   weft_requested(op)       no function: the request goes to a loop around weft_resume_under
 *   weft_on_return(fn)       void *fn(void *state, void *result): computes the result of weft_run from the body's
 *   weft_on_failure(fn)      void *fn(void *state, int error): computes it if the body has none; error as errno
 * An operation may have a tail clause and a clause of another kind: see weft_escalate. Of two clauses of the same kind
 * the first counts. An exception (WEFT_EXCEPTION) has a clause of the kind abort or requested.
 */
#define WEFT_HANDLER(handler_, ...)                                                                                    \
	WEFT__OUTSIDE_OF_FUNCTIONS("handler " #handler_ ": define handlers outside of functions")                      \
	WEFT__KNOW static const weft_clause_t weft__##handler_##__clauses[] = {__VA_ARGS__};                           \
	WEFT__KNOW_NO_MORE                                                                                             \
	WEFT__DRIVE(weft__##handler_##__drive, weft__##handler_##__clauses)                                            \
	static const weft_handler_t handler_ = {#handler_, weft__##handler_##__clauses,                                \
						WEFT__COUNT_OF(weft__##handler_##__clauses), NULL,                     \
						weft__##handler_##__drive}

/**
 * WEFT_HANDLER_OF(name, family, clause, …): like WEFT_HANDLER, and each effect of the family must have one clause in
 * the list. If an effect has none, that is a compile error: "enumeration value weft__FAMILY__clause_for__EFFECT not
 * handled". If it has two: "duplicate case value". If it is not of the family: "weft__FAMILY__clause_for__EFFECT
 * undeclared". A clause inside weft_also(clause) is not counted: for an effect of another family, or beside a tail
 * clause of the same effect. At most 32 clauses. At file scope. (With -w compilers do not check.)
 */
#define WEFT_HANDLER_OF(handler_, family, ...)                                                                         \
	WEFT__DEMAND_ALL                                                                                               \
	__attribute__((unused)) static void weft__##handler_##__complete(enum weft__##family##__clauses clause)        \
	{                                                                                                              \
		switch (clause) {                                                                                      \
			WEFT__CASES_1(family, WEFT__CASE_##__VA_ARGS__, );                                             \
		}                                                                                                      \
	}                                                                                                              \
	WEFT__DEMAND_NO_MORE                                                                                           \
	WEFT_HANDLER(handler_, __VA_ARGS__)
#define weft_also(...) __VA_ARGS__

/* ---- running ----------------------------------------------------------------------------------------------- */

/**
 * Run body(arg) in a new coroutine, under the handler's clauses, to its end.
 * @param handler  borrowed as long as coroutines run under it, including kept resumptions; NULL is reported
 * @param state    passed to every clause; borrowed as long as the handler
 * @param body     NULL is reported
 * @return the result of the body (through the return clause, if there is one), or of an abort clause, or of a general
 *   clause that does not continue. Without a result the failure clause is called, or NULL is returned with errno
 *     ENOMEM     the system has no memory for the coroutine, or for its stack to grow
 *     EDQUOT     the coroutine, or its growing stack, would exceed the limit of weft_set_budget
 *     EOVERFLOW  the stack's reservation is spent
 *     ENOTSUP    there is a multi clause, and weft_clone_unavailable says why there can be none here
 * May be called on any stack; may suspend the caller, if the body performs effects that enclosing handlers handle. An
 * exception that leaves the body or a clause leaves this call, and the body's coroutine is deleted.
 */
WEFT_API void *weft_run(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg);

/** Like weft_run, in a coroutine with attributes; NULL for the defaults. With a multi clause the policy must be unset
 * or WEFT_COPY (else EINVAL). */
WEFT_API void *weft_run_with(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg,
			     const weft_attr_t *attr);

/**
 * Like weft_resume, handling the effects that the handler has clauses for. Tail clauses run in place; performs with
 * other clauses become requests, for the loop around this call. Handler and state are borrowed until `k` is resumed in
 * another way or deleted; until then the handler must not change, because searches cache its contents. A tail clause in
 * which `k` waits keeps the state that it was called with, whatever handler `k` is resumed under.
 */
WEFT__HOT weft_request_t weft_resume_under(weft_coro_t *k, void *value, const weft_handler_t *handler, void *state);

/* ---- deciding, in a general clause ------------------------------------------------------------------------- */

/** `return weft_tail_continue(op, k, value);` (no value if the operation is void): the operation's result is `value`,
 * and the body continues under the same handler. The result of weft_run is decided later. Uses no stack, does not
 * suspend; only in the clause itself. */
#define weft_tail_continue(op, ...) WEFT__CONTINUE(weft__tail_continue_with, op, __VA_ARGS__)

/**
 * void *weft_continue(op, k, value): like weft_tail_continue, but returns the outcome: the body's result through the
 * return clause, or the result of an abort clause. For clauses with work to do afterwards, and for kept resumptions,
 * from any thread. May suspend. Each active call needs stack. Errors as weft_run; for a multi clause also ENOMEM, if
 * there is no memory for a copy, and EBUSY, if another coroutine is suspended inside it or has performed the effect.
 */
#define weft_continue(op, ...) WEFT__CONTINUE(weft__continue_with, op, __VA_ARGS__)

/**
 * void *weft_continue_throw(k, exception, args…): like weft_continue, but the operation does not return. In its place
 * the exception (WEFT_EXCEPTION) is performed, on the body's stack, by the code that performed the operation: cleanups
 * of the body run, handlers within the body may have a clause for the exception, and so may the handler of `k` itself.
 * The arguments are copied to the body's stack. Returns the outcome, unless the exception goes to an enclosing handler.
 * An exception without a handler is reported, as for any perform. Errors as weft_continue.
 * If a tail clause has performed the operation, by weft_escalate, the exception is performed in that tail clause: it
 * goes to handlers outside of the clause's own, past handlers within the body.
 */
#define weft_continue_throw(k, ...)                                                                                    \
	(weft__continue_throwing((k), WEFT__THROW(__VA_ARGS__, ), WEFT__THROWN_AS(__VA_ARGS__)))

/**
 * Keep the resumption: the returned copy is the caller's, to be passed to weft_continue or weft_drop once (of a multi
 * clause: to weft_drop at the end). The clause's result is what weft_run (or weft_continue) returns now.
 * A multi clause's resumption is kept as a clone. Without memory for it, the copy is not valid: see weft_is_valid.
 * In the clause, on its thread; does not suspend.
 */
WEFT_API weft_resumption_t weft_keep(weft_resumption_t *k);

/** End the suspended computation: its cleanups run, and its coroutine is deleted. On any stack, any thread. May suspend
 * the caller, if a cleanup performs an effect that an enclosing handler handles. A used resumption is reported. */
WEFT_API void weft_drop(weft_resumption_t *k);

/** Can the resumption still be used? False once any copy of it was continued or dropped. For the thread that may use
 * it: a use by another thread at the same time is not seen. */
WEFT__INLINE bool weft_is_valid(const weft_resumption_t *k);

/**
 * The coroutine that performs the clause's operation: weft_performer(k) in a general or multi clause, before `k` is
 * continued, kept or dropped, or for a kept `k` while it waits; weft_performer(NULL) in a tail clause. The performer
 * may run inside k->k. NULL: no coroutine waits there any more, or the call is outside of any coroutine. Does not
 * suspend.
 */
WEFT__INLINE weft_coro_t *weft_performer(const weft_resumption_t *k);

/* ---- deciding, in a tail clause ---------------------------------------------------------------------------- */

/**
 * `return weft_escalate(op, args…);` in a tail clause of `op`: perform `op` again, for the handler's general, multi or
 * abort clause of `op`, or the loop. Suspends the performer, or ends it if the clause is an abort clause. Returns the
 * reply when it comes; then the tail clause continues.
 * If the clause's coroutine was resumed under another handler while the clause waited, that handler gets the perform.
 * If it does not handle `op`, the perform goes to the next outer handler that does, whose tail clause may answer. This
 * does not apply to an effect performed on a label: no handler knows the label any more, and that is reported.
 * Reported outside of a tail clause, and if there is no other clause to go to.
 */
#define weft_escalate(...) WEFT__CAT(WEFT__GENERALIZE_, WEFT__REST(__VA_ARGS__, ))(__VA_ARGS__)

/**
 * `return weft_forward();` in a tail clause: leave this perform, with its arguments, to the next outer handler. The
 * clause's result does not matter (a void clause just returns after the call). It has the effect of performing again,
 * but in a loop and not from within the clause: a chain of handlers that forward an operation uses the stack of one
 * clause. Not for operations with arguments that C++ moves (reported, as outside of a tail clause). Suspends if that
 * handler does. If the clause's coroutine was resumed elsewhere while the clause waited, the search begins at its new
 * resumer, whose own handler is skipped like the clause's. Effect, label and arguments stay those of the perform.
 */
#define weft_forward() (weft__forward())

/**
 * weft_on_answer(fn, record), in a tail clause: when the result of weft_run, or of the weft_continue that continued the
 * body, is known, call
 *   void *fn(void *state, void *answer, T *record)
 * whose result is returned in its place; the newest record comes first. This has the effect of a general clause that
 * calls weft_continue and then `fn` with its result. But nothing is suspended, and a record waits in place of a frame:
 * a body may do this a million times.
 * @param fn      called where that weft_run or weft_continue was called, outside of the handler; may suspend, and throw
 * @param record  T *, read now and copied; `fn` gets the copy, which lasts until `fn` returns. At most 64 KiB, aligned
 *                to 8 at most. In C++ trivially copyable
 * @return 0; -ENOMEM: there is no memory, `fn` will not be called
 * A run that returns no answer calls nothing: a run that an exception or an outer handler's effect leaves, or whose
 * coroutine is deleted. If lack of memory leaves a run without an answer, `fn` gets NULL, or the failure clause's
 * result. While records wait, the coroutine that called weft_run can be neither cloned nor checkpointed (EBUSY).
 * Reported outside of a tail clause, for a handler under weft_resume_under, and after the clause's coroutine was
 * resumed under another handler. Does not suspend.
 */
#ifdef __cplusplus
#define weft_on_answer(fn, record) (weft__then_as((fn), (record)))
#else
#define weft_on_answer(fn, record)                                                                                     \
	(__builtin_choose_expr(WEFT__IS_RECORD(__typeof__(*(record))), (void)0, weft__record_too_large()),             \
	 (void)sizeof(_Generic((fn)(NULL, NULL, (record)), void *: 0)),                                                \
	 weft__then((weft__then_t *)(void (*)(void))(fn), (record), sizeof *(record)))
#endif

/* ---- instances of a family --------------------------------------------------------------------------------- */

/** Initialiser of a label: WEFT_LABEL(family, "name for messages"). The label must stay in place while any code runs
 * under it; any thread may use it. */
#define WEFT_LABEL(family_, name_)                                                                                     \
	{                                                                                                              \
		name_, &weft_effect_##family_,                                                                         \
		{                                                                                                      \
			0                                                                                              \
		}                                                                                                      \
	}

/** A handler of one instance only: of performs by weft_perform_on with this label. The family's ordinary performs skip
 * it. Both arguments are borrowed. */
WEFT__INLINE weft_handler_t weft_labelled(const weft_handler_t *handler, const weft_label_t *label);

/** R weft_perform_on(op, &label, args…): perform an operation of that instance, as op(args…) does for the family.
 * Reported for a label of another family, and for an unhandled label if the operation has no default handler. */
#define weft_perform_on(op, ...) WEFT__CAT(WEFT__PERFORM_ON_, WEFT__REST(__VA_ARGS__, ))(op, __VA_ARGS__)

/* ---- hints ------------------------------------------------------------------------------------------------- */

/**
 * R weft_perform_hot(op, fn, args…): perform, guessing that the handler's tail clause is `fn`. If it is, this is a
 * direct call, which the compiler may inline, for the price of one compare. If not, a separate function performs the
 * effect as without a guess: about 80 instructions more than a perform without a guess.
 */
#define weft_perform_hot(op, ...) WEFT__CAT(WEFT__PERFORM_HOT_, WEFT__REST(__VA_ARGS__, ))(op, __VA_ARGS__)

WEFT_EXTERN_C_END

#include <weft/detail/handler.h>

#endif /* WEFT_HANDLER_H */
