/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The abstract machine that Weft implements, in the simplest form: no stacks, no switches, only which continuation
 * waits for what. Based on the appendix of "Effect Handlers for C via Coroutines" (OOPSLA 2024), with Weft's additions:
 * yielding to and leaving an ancestor, symmetric switches, resetting and deleting.
 *
 * A configuration is a chain of (continuation, set) pairs, outermost first: each continuation was resumed by the code
 * of the continuation before it (the first by code outside of any), which handles the set. The last pair executes.
 *   newcont        makes a suspended continuation, which holds only itself
 *   resume k V L   appends the pairs that k holds to the chain; the first of these pairs gets the set L
 *   perform l V    splits the chain at the last pair with l in its set; that pair's continuation holds the pairs that
 *                  are cut off, and the code before it gets l<V, k>
 *   return V       cuts the last pair off, whose continuation is finished; the code before it gets ret V
 *   throw l V      like perform, but the pairs that are cut off are finished
 * Each continuation also has a stack of frame numbers, so that a test can tell whether control is in the right frame.
 */
#ifndef WEFT_TESTS_MACHINE_H
#define WEFT_TESTS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum { CONTINUATIONS = 14, FRAMES = 6, OUTSIDE = CONTINUATIONS };

enum effect { RETURN = -1, YIELDED = -2, LEFT = -3, NO_HANDLER = -1 };

enum state { GONE, SUSPENDED, RUNNING, FINISHED };

struct pair {
	int k;
	uint32_t set; /* bit l: effect l is handled */
};

struct continuation {
	enum state state;
	uint64_t serial;  /* unique */
	uint64_t creator; /* serial of the continuation that ran newcont; 0: none */
	int orphan_of;	  /* finished and without an owner: deleted when this continuation is reset or deleted; -1 */
	struct pair held[CONTINUATIONS];
	int holds; /* suspended: number of pairs; the first is the continuation itself */
	uint64_t frame[FRAMES];
	int depth;	/* number of frames; 0: not started */
	int pending;	/* innermost code waits in: perform of this effect (its reply counts), or YIELDED */
	uint64_t reply; /* the result of a perform */
};

/* The event that the code in control sees next. */
struct event {
	enum { STARTED, CONTINUED, REQUESTED } kind;
	uint64_t frame;	  /* frame of the code in control; STARTED: the frame that begins */
	uint64_t value;	  /* CONTINUED: the result of the yield or perform */
	int from, effect; /* REQUESTED: the requesting continuation and its effect */
	uint64_t payload; /* the effect's payload: the result if RETURN */
};

struct machine {
	struct continuation k[CONTINUATIONS + 1]; /* the last: code outside of any */
	struct pair chain[CONTINUATIONS];
	int length;
	uint64_t serials;
	struct event event;
	int wrong; /* the rule to break, for the canary: see wrong_rules */
};

extern const char *const wrong_rules[]; /* from 1; ends with NULL */

void machine_start(struct machine *m);
/* The executing continuation, or OUTSIDE. */
int machine_current(const struct machine *m);

void machine_newcont(struct machine *m, int k);
void machine_resume(struct machine *m, int k, uint64_t value, uint32_t set);
void machine_switch(struct machine *m, int k, uint64_t value);
/* Place in the chain of the pair that handles an effect, or NO_HANDLER. */
int machine_handler(const struct machine *m, int effect);
/* Suspends the pair at this place and the pairs after it. `pending`: as in struct continuation. */
void machine_split(struct machine *m, int place, int effect, uint64_t payload, int pending);
/* Finishes these pairs instead. */
void machine_leave(struct machine *m, int place, int effect, uint64_t payload);
/* The current frame ends. */
void machine_return(struct machine *m, uint64_t value);
/* The current code calls a function: a new frame. */
void machine_call(struct machine *m);
void machine_reset(struct machine *m, int k);
void machine_delete(struct machine *m, int k);

#endif
