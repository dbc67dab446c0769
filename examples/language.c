/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * language.c: two parts of a run time for a language: effects that are numbers, and the ranges of memory in which a
 * conservative collector searches for pointers. docs/howto/language-back-end.md.
 */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

typedef uintptr_t value_t;

/* doc: begin numbers */
/* All operations of the language are one effect of C. */
WEFT_EFFECT(value_t, operation, unsigned, number, value_t, argument);

/* The language's clause for a number: one of the two functions. */
struct clause {
	value_t (*tail)(void *state, value_t argument);
	void *(*general)(void *state, weft_resumption_t *k, value_t argument);
};

struct handler {
	const struct clause *clauses; /* one for each number; without functions: not handled */
	unsigned count;
	void *state;
};

static const struct clause *clause_of(const struct handler *h, unsigned number)
{
	const struct clause *c = number < h->count ? &h->clauses[number] : NULL;

	return c && (c->tail || c->general) ? c : NULL;
}

static value_t in_place(void *handler, unsigned number, value_t argument)
{
	const struct handler *h = handler;
	const struct clause *c = clause_of(h, number);

	if (!c) {
		weft_forward();
		return 0;
	}
	return c->tail ? c->tail(h->state, argument) : weft_escalate(operation, number, argument);
}

static void *suspended(void *handler, weft_resumption_t *k, unsigned number, value_t argument)
{
	const struct handler *h = handler;

	return clause_of(h, number)->general(h->state, k, argument);
}

WEFT_HANDLER(numbered, weft_tail(operation, in_place), weft_general(operation, suspended),
	     weft_on_failure(must_have_memory));
/* doc: end */

/* doc: begin ranges */
/* A coroutine's frames that hold pointers of the language. It lies in the oldest frame, and is the user data. */
struct frames {
	struct frames *next;
	const char *low, *high;
};

static struct frames *all; /* this program has one thread; others need a lock around the list */

/* Records where the frames of the caller end, and calls fn(arg). */
static __attribute__((noinline)) void *leave_to(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_current();

	if (k)
		((struct frames *)weft_user_data(k))->low = __builtin_frame_address(0);
	return fn(arg);
}

/* Compiled code calls Weft through this function. */
static __attribute__((noinline)) void *leave(weft_fn_t *fn, void *arg)
{
	void *result;

	__builtin_unwind_init(); /* registers that hold values of the callers are in this frame now */
	result = leave_to(fn, arg);
	__asm__ volatile("" ::: "memory"); /* no tail call: this frame stays */
	return result;
}
/* doc: end */

static void forget(struct frames *f)
{
	struct frames **at = &all;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
}

struct call {
	weft_fn_t *fn;
	void *arg;
	struct handler *handler;
};

static void *oldest_frame(void *arg)
{
	struct call call = *(const struct call *)arg; /* the caller may return before the function does */
	struct frames f = {all, NULL, __builtin_frame_address(0)};

	f.low = f.high;
	all = &f;
	weft_set_user_data(weft_current(), &f);
	weft_defer(forget, &f);
	return call.fn(call.arg);
}

static void *run(void *arg)
{
	struct call *call = arg;
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT}; /* contiguous, whatever the default policy is */

	return weft_run_with(&numbered, call->handler, oldest_frame, call, &attr);
}

/* Runs fn(arg) under a handler. */
static void *handle(struct handler *h, weft_fn_t *fn, void *arg)
{
	struct call call = {fn, arg, h};

	return leave(run, &call);
}

struct perform {
	unsigned number;
	value_t argument;
};

static void *perform_it(void *arg)
{
	const struct perform *p = arg;

	return (void *)operation(p->number, p->argument);
}

static value_t perform(unsigned number, value_t argument)
{
	struct perform p = {number, argument};

	return (value_t)leave(perform_it, &p);
}

/* Does a frame of a suspended coroutine hold this value? */
static bool is_reachable(value_t value)
{
	for (const struct frames *f = all; f; f = f->next)
		for (const char *at = f->low; at < f->high; at += sizeof value)
			if (*(const value_t *)(const void *)at == value)
				return true;
	return false;
}

enum { MAKE, ADD, WAIT, PRINT };

struct object {
	value_t sum;
};

/* Code of the language, as a compiler may write it: only its frame holds the object. */
static void *program(void *unused)
{
	value_t object = perform(MAKE, 0);

	for (value_t i = 1; i <= 10; i++)
		((struct object *)object)->sum += perform(ADD, i);
	perform(WAIT, 0);
	perform(PRINT, object);
	return unused;
}

struct state {
	struct object *made;
	weft_resumption_t waiting;
};

static value_t on_make(void *state, value_t unused)
{
	struct state *s = state;

	(void)unused;
	s->made = calloc(1, sizeof *s->made);
	if (!s->made)
		must_have_memory(NULL, ENOMEM);
	return (value_t)s->made;
}

static value_t on_add(void *state, value_t n)
{
	(void)state;
	return n;
}

static void *on_wait(void *state, weft_resumption_t *k, value_t unused)
{
	struct state *s = state;

	(void)unused;
	s->waiting = weft_keep(k);
	return NULL;
}

static value_t on_print(void *state, value_t object)
{
	(void)state;
	printf("the program prints %d\n", (int)((struct object *)object)->sum);
	return 0;
}

static const char *fate(const struct state *s)
{
	return is_reachable((value_t)s->made) ? "reachable" : "lost";
}

int main(void)
{
	static const struct clause clauses[] = {
	    [MAKE] = {on_make, NULL}, [ADD] = {on_add, NULL}, [WAIT] = {NULL, on_wait}, [PRINT] = {on_print, NULL}};
	struct state state = {NULL, {0}};
	struct handler h = {clauses, 4, &state};

	handle(&h, program, NULL);
	printf("while the program waits, its object is %s\n", fate(&state));
	weft_continue(operation, &state.waiting, 0);
	printf("after its end, the object is %s\n", fate(&state));
	free(state.made);
}
