/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The effects of the random programs: more effects than a table has places, and some effects that share a place. */
#ifndef WEFT_TESTS_RANDOM_EFFECTS_H
#define WEFT_TESTS_RANDOM_EFFECTS_H

#include <weft/weft.h>

WEFT_FAMILY(fa, (uint64_t, a0, uint64_t, token), (uint64_t, a1, uint64_t, token), (uint64_t, a2, uint64_t, token),
	    (uint64_t, a3, uint64_t, token));
WEFT_FAMILY(fb, (uint64_t, b0, uint64_t, token), (uint64_t, b1, uint64_t, token), (uint64_t, b2, uint64_t, token),
	    (uint64_t, b3, uint64_t, token), (uint64_t, b4, uint64_t, token), (uint64_t, b5, uint64_t, token),
	    (uint64_t, b6, uint64_t, token), (uint64_t, b7, uint64_t, token), (uint64_t, b8, uint64_t, token),
	    (uint64_t, b9, uint64_t, token));
WEFT_EFFECT(uint64_t, s0, uint64_t, token);
WEFT_EFFECT(uint64_t, s1, uint64_t, token);
WEFT_EXCEPTION(x0, uint64_t, token);

#define RETURNING(X) X(a0) X(a1) X(a2) X(a3) X(b0) X(b1) X(b2) X(b3) X(b4) X(b5) X(b6) X(b7) X(b8) X(b9) X(s0) X(s1)
#define EVERY(X) RETURNING(X) X(x0)

#define NUMBER(op) OP_##op,
enum { EVERY(NUMBER) OPS };

enum { FAMILY_A, FAMILY_B, NO_FAMILY };
enum { LABELS = 3, SETS = 14 };
extern weft_label_t labels[LABELS];
extern const int family_of_label[LABELS];

enum how { PLAIN, LABELLED, AT, HOT };

struct call {
	enum how how;
	uint64_t token;
	const weft_label_t *label;
	weft_coro_t *at;
	int guess; /* index of the guessed tail clause */
};

struct op {
	const char *name;
	const weft_effect_t *effect;
	int family;
	unsigned place;
	uint64_t (*perform)(const struct call *call);
	uint64_t (*generalize)(uint64_t token);
	void *(*resume)(weft_resumption_t *k, uint64_t value);
	void *(*tail_resume)(weft_resumption_t *k, uint64_t value);
	uint64_t (*token)(weft_request_t r);
	void (*reply)(weft_request_t r, uint64_t value);
	void (*tail[2])(void);
	weft_coro_t *(*locate)(void);
};
extern const struct op ops[OPS];

enum kind { NO_CLAUSE, TAIL_1, TAIL_2, ABORT, GENERAL, MULTI, REQUESTED_CLAUSE };

struct handler {
	const weft_handler_t *handler;
	unsigned char tail[OPS];  /* 0, TAIL_1 or TAIL_2 */
	unsigned char other[OPS]; /* of the later kinds */
	bool runs;		  /* under weft_run: has no weft_requested */
	bool multi, returns, fails;
};
enum { HANDLERS = 20, MULTI_FIRST = 11, MULTI_LAST = 13 };
extern struct handler handlers[HANDLERS];
extern weft_handler_t labelled[HANDLERS][LABELS];

weft_handles_t handles(int set);
extern const unsigned members[SETS]; /* effects of each set, as bits */

void prepare_effects(void);

/* Functions that clauses call: clauses.c. */
uint64_t on_tail(void *state, int op, int which, uint64_t token);
void *on_abort(void *state, int op, uint64_t token);
void *on_general(void *state, weft_resumption_t *k, int op, uint64_t token);
void *on_return(void *state, void *result);
void *on_failure(void *state, int error);
uint64_t on_default(int op, uint64_t token);

#endif
