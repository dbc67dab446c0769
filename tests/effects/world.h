/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations shared by the random programs and their model. The model is a record for each coroutine of the steps
 * applied to it: its resumer, the effects that the resumer handles, the tail clause that it executes. From records
 * alone the model predicts, before each perform, the next event; each event checks that it was predicted.
 *
 * One thread at a time executes, the holder of the baton, so a seed gives one trace with any number of threads. Frames
 * may be copied (multi clauses), so a frame trusts nothing that it remembers across a suspension except the world:
 * `cur` is the current coroutine.
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

/* The effects that a resumer handles. */
struct spec {
	enum { SET, TABLE } kind;
	int index; /* index of the set or the handler */
	int label; /* label of the handler, -1: none */
	struct instance *instance;
	int table; /* index of the handler's place in the world's tables; -1: it is at its definition */
};

/* The state of clauses. */
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
	bool driven;  /* driven by weft_run or weft_continue, not by a loop of the test */
	struct co *parent, *leaf, *mask, *creator;
	struct spec spec;
	uint64_t run, owner; /* the resume that it runs in, the weft_run that will delete it */
	uint64_t waits_for;  /* the last run called by it that has not returned */
	uint64_t moves;	     /* number of resumes under a handler or on a label different from the one before */
	uint64_t reply;
	int nest, holding;    /* calls of step() on its stack; number of these that a copy of it must not repeat */
	bool cleans, cleaned; /* its body has deferred a function; that function has run */
	struct co *mission;   /* to be resumed first */
	struct co *former;    /* the record of its last resumer */
	struct co **list;
	int at;
	struct co *heir; /* the owner after its end; also inherits from those that owned it */
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

/* A function that a tail clause deferred until a run's end. */
struct left {
	struct world *world;
	uint64_t run, number;
};

struct list {
	struct co *co[LIST];
	int count;
};

/* A place of handlers that are made on demand; it is reused when no coroutine is under its handler any more. */
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
	long steps; /* number of steps left */
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
	struct co *kept_dead[RECORDS]; /* ended coroutines with an heir */
	int kept_dead_count;

	int record_count, instance_count;
	weft_coro_t *storage;
	struct co *in_storage[STORAGES];
	uint64_t count[COUNTERS];
	int threads, thread;
	bool traced;
	bool many;   /* prefers handlers with multi clauses */
	bool nested; /* no suspended coroutine is resumed elsewhere */
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
/* The coroutine whose handler gets an effect performed at c; NULL: there is no handler. */
struct co *predict(const struct co *c, int op, int label);
/* Like predict, but only for handlers outside of the handler of c. */
struct co *predict_outside(const struct co *c, int op, int label);
bool spec_answers(const struct spec *spec, int op, int label);
/* The predicted event there; `far`: tail clauses are skipped. */
enum happening outcome(const struct co *target, int op, bool far);
bool is_multi(const struct co *target, int op);
void suspend(struct world *w, struct co *target);
/* c is, or will be, under a new handler. */
void set_spec(struct co *c, struct spec spec);
const weft_handler_t *handler_of(const struct world *w, const struct spec *spec);
void awaken(struct world *w, struct co *c);
/* The coroutine and the coroutines inside it will not run again. */
void finish(struct world *w, struct co *c);
void drop_inside(struct world *w, struct co *c);
void die(struct world *w, struct co *c);
/* c has been deleted or reset, and with it the coroutines that it owned. */
void check_inheritance(struct world *w, const struct co *c);

void list_add(struct list *list, struct co *c);
void list_remove(struct list *list, struct co *c);
bool has_copies(const struct co *head);
bool copies_running(const struct world *w);
uint64_t context(const struct world *w);
/* Checks that every entry of the table about the current coroutine agrees with the model. */
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
/* Is x0 performed at the suspension of t when the current coroutine resumes t? */
bool can_throw_into(struct world *w, const struct co *t);
/* The current coroutine, which was suspended, performs x0 with the returned token. */
uint64_t throw_here(struct world *w);
void expect(struct world *w, enum happening what, struct co *target, int op, uint64_t token);
uint64_t fresh(struct world *w);

/* ---- loops.c ----------------------------------------------------------------------------------------------------- */

void loop(struct world *w, struct co *t, int rounds);
void make(struct world *w, bool reincarnate);
void wait_for_resumer(struct world *w);
/* Returns a free place for a handler in the world's tables; -1: there is none. */
int place_table(struct world *w, int index, int label);
void switch_sideways(struct world *w);
void leave(struct world *w);
void reset_one(struct world *w);
void delete_one(struct world *w);
void delete_coroutine(struct world *w, struct co *c);

/* ---- random.c ---------------------------------------------------------------------------------------------------- */

/* Passes the baton to another thread; returns when it is this thread's turn. */
void pass_baton(struct world *w);

#endif
