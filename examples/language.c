/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * language.c: two parts of a run time for a language: effects that are numbers, and the values in frames, which a
 * garbage collector has to find. docs/howto/language-back-end.md.
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

/* doc: begin roots */
/* A frame of compiled code that holds values. */
struct frame {
	struct frame *outer;
	value_t *values;
	unsigned count;
};

/* The frames of a coroutine. It lies in the coroutine's oldest frame, and is the user data. */
struct frames {
	struct frames *next;
	struct frame *newest;
};

static struct frames *all; /* with several threads a lock protects the list */

static void push(struct frame *f)
{
	struct frames *mine = weft_user_data(weft_current());

	f->outer = mine->newest;
	mine->newest = f;
}

static void pop(struct frame *f)
{
	((struct frames *)weft_user_data(weft_current()))->newest = f->outer;
}

static void forget(struct frames *mine)
{
	struct frames **at = &all;

	while (*at != mine)
		at = &(*at)->next;
	*at = mine->next;
}

struct call {
	weft_fn_t *fn;
	void *arg;
};

static void *oldest_frame(void *arg)
{
	struct call call = *(const struct call *)arg; /* the caller may return before the function does */
	struct frames mine = {all, NULL};

	all = &mine;
	weft_set_user_data(weft_current(), &mine);
	weft_defer(forget, &mine);
	return call.fn(call.arg);
}

/* Runs fn(arg) under a handler. The frames stay where they are: any policy but "copy" does that. */
static void *handle(struct handler *h, weft_fn_t *fn, void *arg)
{
	struct call call = {fn, arg};
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT};

	return weft_run_with(&numbered, h, oldest_frame, &call, &attr);
}

/* Does a coroutine that runs or is suspended hold this value? */
static bool is_reachable(value_t value)
{
	for (const struct frames *mine = all; mine; mine = mine->next)
		for (const struct frame *f = mine->newest; f; f = f->outer)
			for (unsigned i = 0; i < f->count; i++)
				if (f->values[i] == value)
					return true;
	return false;
}
/* doc: end */

enum { MAKE, ADD, WAIT, PRINT };

struct object {
	value_t sum;
};

/* Code of the language, as a compiler may write it: only its frame holds the object. */
static void *program(void *unused)
{
	value_t object = 0;
	struct frame frame = {NULL, &object, 1};

	push(&frame);
	object = operation(MAKE, 0);
	for (value_t i = 1; i <= 10; i++)
		((struct object *)object)->sum += operation(ADD, i);
	operation(WAIT, 0);
	operation(PRINT, object);
	pop(&frame);
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
