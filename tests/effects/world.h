/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the random programs and their model share. The model is a record per coroutine of what was done to it: who
 * resumed it, what that one handles, which tail clause it executes. From records alone it says, before each perform,
 * what must happen; whatever happens checks that it was said.
 *
 * One thread at a time executes, the one with the baton, so that a seed gives one trace however many threads there are.
 * Frames may be copied (multi clauses), so nothing that a frame remembers across a suspension is trusted but the world:
 * who executes is `cur`.
 */
#ifndef WEFT_TESTS_WORLD_H
#define WEFT_TESTS_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "effects.h"

enum { THREADS = 3, TABLES = 6, LIST = 48, STORAGES = 6, RECORDS = 12000, THENS = 1000, DEEPEST = 22, NESTED = 10 };

enum status { NEW, SUSPENDED, INSIDE, RUNNING, FINISHED, DEAD };

/* What a resumer handles. */
struct spec {
	enum { SET, TABLE } kind;
	int index; /* of the set or the handler */
	int label; /* of the handler, -1: none */
	struct instance *instance;
	int table; /* where the handler lies, in tables of the world; -1: where it was defined */
};

/* What clauses get as their state. */
struct instance {
	struct world *world;
	int handler;
};

struct co {
	struct world *world;
	weft_coro_t *k;
	uint64_t id;
	enum status status;
	bool root, copy, storage;
	bool waiting; /* for a value, not a reply */
	bool driven;  /* driven: by weft_run or weft_continue, not by a loop of ours */
	struct co *parent, *leaf, *mask, *creator;
	struct spec spec;
	uint64_t run, owner; /* the resume that it runs in, the weft_run that will delete it */
	uint64_t waits_for;  /* the run that it called last of those that have not returned */
	uint64_t moves;	     /* how often it was resumed under another handler, or on another label, than before */
	uint64_t reply;
	int nest, holding;    /* calls of step() on its stack; those of them that a copy of it must not repeat */
	bool cleans, cleaned; /* its body has deferred something; that has run */
	struct co *mission;   /* to be resumed first */
	struct co *former;    /* the record of who resumed it last */
	struct co **list;
	int at;
	struct co *heir; /* who keeps it now that it has ended, and those that owned it too */
};

enum happening { NOTHING, DEFAULTED, IN_PLACE, ABORTED, CAPTURED, REQUESTED, WAITING, RETURNED, EXITED, FAILED };

struct event {
	enum happening what;
	struct co *target;
	int op, label; /* -1: none */
	uint64_t token;
};

struct kept {
	weft_resumption_t resumption;
	struct co *co;
	int op;
	bool multi;
};

/* A function that a tail clause left for a run's end. */
struct left {
	struct world *world;
	uint64_t run, number;
};

struct list {
	struct co *co[LIST];
	int count;
};

/* Where handlers lie that are made when they are needed: others lie there when nobody is under them any more. */
struct table {
	weft_handler_t handler;
	int index, label;
	int users;
};

enum counter {
	COUNT_TAIL,
	COUNT_ABORT,
	COUNT_GENERAL,
	COUNT_MULTI,
	COUNT_CACHED,
	COUNT_REQUEST,
	COUNT_DEFAULT,
	COUNT_THEN,
	COUNT_FORWARD,
	COUNT_OUTWARD,
	COUNT_THROW,
	COUNT_STEPS,
	COUNTERS
};

struct profile {
	unsigned char weight[16];
};

struct world {
	uint64_t random, serial, digest, result, reply;
	long steps; /* left */
	struct co *cur;
	struct event event;
	struct list heads, finished;
	struct kept kept[LIST];
	int kept_count;
	struct left left[THENS];
	int left_count;
	unsigned active; /* effects that this program performs */
	const struct profile *profile;
	int profile_number;
	struct co root[THREADS];
	struct co *records;
	struct instance *instances;
	struct table tables[TABLES];
	struct co *kept_dead[RECORDS]; /* those with an heir */
	int kept_dead_count;

	int record_count, instance_count;
	weft_coro_t *storage;
	struct co *in_storage[STORAGES];
	uint64_t count[COUNTERS];
	int threads, thread;
	bool traced;
	bool many;   /* prefers handlers with multi clauses */
	bool nested; /* nothing that waits is resumed elsewhere */
	struct threads *baton;
	uint64_t seed;
};

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

static inline uint64_t next(struct world *w)
{
	uint64_t x = w->random += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static inline unsigned below(struct world *w, unsigned limit)
{
	return (unsigned)((next(w) >> 32) * limit >> 32);
}

static inline bool chance(struct world *w, unsigned percent)
{
	return below(w, 100) < percent;
}

static inline void note(struct world *w, uint64_t x)
{
	w->digest = (w->digest ^ x) * 0x9e3779b97f4a7c15u + (w->digest >> 29);
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

_Noreturn void differs(const struct world *w, const char *file, int line, const char *condition);
#define CHECK(w, condition) ((condition) ? (void)0 : differs((w), __FILE__, __LINE__, #condition))
#define TRACE(w, ...) ((w)->traced ? (void)fprintf(stderr, __VA_ARGS__) : (void)0)

/* ---- model.c ----------------------------------------------------------------------------------------------------- */

struct co *new_record(struct world *w);
int serial_of(const struct co *c);
struct instance *new_instance(struct world *w, int handler);
/* Whose handler an effect performed at c gets to; NULL: nobody's. */
struct co *predict(const struct co *c, int op, int label);
/* The same for those further out than the handler of c. */
struct co *predict_outside(const struct co *c, int op, int label);
bool spec_answers(const struct spec *spec, int op, int label);
/* What happens there; `far`: tail clauses are passed by. */
enum happening outcome(const struct co *target, int op, bool far);
bool is_multi(const struct co *target, int op);
void suspend(struct world *w, struct co *target);
/* c is, or will be, under another handler than it was. */
void set_spec(struct co *c, struct spec spec);
const weft_handler_t *handler_of(const struct world *w, const struct spec *spec);
void awaken(struct world *w, struct co *c);
/* It and what is inside it will not run again. */
void finish(struct world *w, struct co *c);
void drop_inside(struct world *w, struct co *c);
void die(struct world *w, struct co *c);
/* c has been deleted or reset, and with it those that it kept. */
void check_inheritance(struct world *w, const struct co *c);

void list_add(struct list *list, struct co *c);
void list_remove(struct list *list, struct co *c);
bool has_copies(const struct co *head);
bool copies_running(const struct world *w);
uint64_t context(const struct world *w);
/* Every entry of the table that is about who runs now is as the model says. */
void audit(struct world *w);

/* ---- steps.c ----------------------------------------------------------------------------------------------------- */

void step(struct world *w);
void steps(struct world *w, unsigned most);
void *body(void *record);
void clean_up(struct world *w);
struct co *pick_head(struct world *w);
void take_head(struct world *w, struct co *c);

/* ---- clauses.c --------------------------------------------------------------------------------------------------- */

void perform(struct world *w);
void run(struct world *w);
void use_kept(struct world *w);
/* Is x0 to be performed where t waits, when the current coroutine resumes t? */
bool can_throw_into(struct world *w, const struct co *t);
/* The current coroutine, which has waited, performs x0 with the token that is returned. */
uint64_t throw_here(struct world *w);
void expect(struct world *w, enum happening what, struct co *target, int op, uint64_t token);
uint64_t fresh(struct world *w);

/* ---- loops.c ----------------------------------------------------------------------------------------------------- */

void loop(struct world *w, struct co *t, int rounds);
void make(struct world *w, bool reincarnate);
void wait_for_resumer(struct world *w);
/* A place for the handler of a table among those of the world; -1: there is none. */
int place_table(struct world *w, int index, int label);
void switch_sideways(struct world *w);
void leave(struct world *w);
void reset_one(struct world *w);
void delete_one(struct world *w);
void delete_coroutine(struct world *w, struct co *c);

/* ---- random.c ---------------------------------------------------------------------------------------------------- */

/* Let another thread go on; come back when it is this one's turn. */
void pass_baton(struct world *w);

#endif
