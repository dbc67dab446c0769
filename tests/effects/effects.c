/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The effects of the random programs, and their handlers, by tables. */
#include "effects.h"

weft_label_t labels[LABELS] = {WEFT_LABEL(fa, "first"), WEFT_LABEL(fa, "second"), WEFT_LABEL(fb, "third")};
const int family_of_label[LABELS] = {FAMILY_A, FAMILY_A, FAMILY_B};

#define CLAUSES(op)                                                                                                    \
	static uint64_t tail_1_##op(void *state, uint64_t token)                                                       \
	{                                                                                                              \
		return on_tail(state, OP_##op, TAIL_1, token);                                                         \
	}                                                                                                              \
	static uint64_t tail_2_##op(void *state, uint64_t token)                                                       \
	{                                                                                                              \
		return on_tail(state, OP_##op, TAIL_2, token);                                                         \
	}                                                                                                              \
	__attribute__((unused)) static void *general_##op(void *state, weft_resumption_t *k, uint64_t token)           \
	{                                                                                                              \
		return on_general(state, k, OP_##op, token);                                                           \
	}                                                                                                              \
	static uint64_t default_##op(uint64_t token)                                                                   \
	{                                                                                                              \
		return on_default(OP_##op, token);                                                                     \
	}                                                                                                              \
	static uint64_t perform_##op(const struct call *call)                                                          \
	{                                                                                                              \
		switch (call->how) {                                                                                   \
		case LABELLED:                                                                                         \
			return weft_perform_on(op, call->label, call->token);                                          \
		case AT:                                                                                               \
			return weft_perform_at(op, call->at, call->token);                                             \
		case HOT:                                                                                              \
			if (call->guess)                                                                               \
				return weft_perform_hot(op, tail_2_##op, call->token);                                 \
			return weft_perform_hot(op, tail_1_##op, call->token);                                         \
		default:                                                                                               \
			return op(call->token);                                                                        \
		}                                                                                                      \
	}                                                                                                              \
	static uint64_t generalize_##op(uint64_t token)                                                                \
	{                                                                                                              \
		return weft_escalate(op, token);                                                                       \
	}                                                                                                              \
	static void *resume_##op(weft_resumption_t *k, uint64_t value)                                                 \
	{                                                                                                              \
		return weft_continue(op, k, value);                                                                    \
	}                                                                                                              \
	static void *tail_resume_##op(weft_resumption_t *k, uint64_t value)                                            \
	{                                                                                                              \
		return weft_tail_continue(op, k, value);                                                               \
	}                                                                                                              \
	static void reply_##op(weft_request_t r, uint64_t value)                                                       \
	{                                                                                                              \
		weft_reply(op, r, value);                                                                              \
	}
RETURNING(CLAUSES)

#define MORE(op)                                                                                                       \
	__attribute__((unused)) static void *abort_##op(void *state, uint64_t token)                                   \
	{                                                                                                              \
		return on_abort(state, OP_##op, token);                                                                \
	}                                                                                                              \
	static uint64_t token_##op(weft_request_t r)                                                                   \
	{                                                                                                              \
		return weft_args(op, r)->token;                                                                        \
	}                                                                                                              \
	static weft_coro_t *locate_##op(void)                                                                          \
	{                                                                                                              \
		return weft_locate(op);                                                                                \
	}
EVERY(MORE)

static uint64_t perform_x0(const struct call *call)
{
	if (call->how == AT)
		weft_perform_at(x0, call->at, call->token);
	x0(call->token);
}

#define FAMILY_OF(op) (#op[0] == 'a' ? FAMILY_A : #op[0] == 'b' ? FAMILY_B : NO_FAMILY)
#define ROW(op)                                                                                                        \
	{#op,                                                                                                          \
	 &weft_effect_##op,                                                                                            \
	 FAMILY_OF(op),                                                                                                \
	 WEFT__PLACE(weft__##op##__index, sizeof(#op)),                                                                \
	 perform_##op,                                                                                                 \
	 generalize_##op,                                                                                              \
	 resume_##op,                                                                                                  \
	 tail_resume_##op,                                                                                             \
	 token_##op,                                                                                                   \
	 reply_##op,                                                                                                   \
	 {(void (*)(void))tail_1_##op, (void (*)(void))tail_2_##op},                                                   \
	 locate_##op},
const struct op ops[OPS] = {RETURNING(ROW){.name = "x0",
					   .effect = &weft_effect_x0,
					   .family = NO_FAMILY,
					   .place = WEFT__PLACE(weft__x0__index, sizeof("x0")),
					   .perform = perform_x0,
					   .token = token_x0,
					   .locate = locate_x0}};

/* ---- handlers ---------------------------------------------------------------------------------------------------- */

/* T tail, U second tail clause, A abort, G general, M multi, Q requested, R return clause, F failure clause */
#define EACH(H)                                                                                                        \
	H(0, T(a0) T(a1) T(a2) T(a3))                                                                                  \
	H(1, U(a0) A(a1) G(a2))                                                                                        \
	H(2, G(a0) G(a1) A(a3) R)                                                                                      \
	H(3, T(b0) U(b1) T(b2) T(b8) T(b9))                                                                            \
	H(4, U(b0) G(b1) A(b2) U(b3) G(b8) A(b9) R)                                                                    \
	H(5, T(a0) G(a0) U(a1) A(a1) T(b0) G(b0))                                                                      \
	H(6, T(s0) U(s1) A(x0))                                                                                        \
	H(7, G(s0) A(s1) T(a2) R)                                                                                      \
	H(8, A(a0) A(b0) A(b4) A(s0) A(x0) F)                                                                          \
	H(9, G(b4) G(b5) G(b6) G(b7) T(b8))                                                                            \
	H(10, U(b4) T(b5) U(b6) T(b7) U(b8) U(b9))                                                                     \
	H(11, M(a0) M(b0) T(a1) A(b1) F)                                                                               \
	H(12, M(b4) M(s0) R)                                                                                           \
	H(13, T(a3) M(a3) M(a2) U(b2) M(b8) R F)                                                                       \
	H(14, Q(a0) T(a1) Q(b0) Q(s0))                                                                                 \
	H(15, T(a0) Q(a0) U(b3) Q(b3) Q(x0) A(a2))                                                                     \
	H(16, Q(b1) Q(b2) Q(b9) U(s1) G(s0))                                                                           \
	H(17, U(s0) A(s0) T(b7) G(b7) T(b6))                                                                           \
	H(18, A(x0))                                                                                                   \
	H(19, T(a0))

#define T(op) weft_tail(op, tail_1_##op),
#define U(op) weft_tail(op, tail_2_##op),
#define A(op) weft_abort(op, abort_##op),
#define G(op) weft_general(op, general_##op),
#define M(op) weft_multi(op, general_##op),
#define Q(op) weft_requested(op),
#define R weft_on_return(on_return),
#define F weft_on_failure(on_failure),
#define DEFINE(n, clauses) WEFT_HANDLER(handler_##n, clauses);
EACH(DEFINE)
#undef T
#undef U
#undef A
#undef G
#undef M
#undef Q
#undef R
#undef F

struct handler handlers[HANDLERS];
weft_handler_t labelled[HANDLERS][LABELS];

static void describe(void)
{
#define T(op) h->tail[OP_##op] = TAIL_1;
#define U(op) h->tail[OP_##op] = TAIL_2;
#define A(op) h->other[OP_##op] = ABORT;
#define G(op) h->other[OP_##op] = GENERAL;
#define M(op) h->other[OP_##op] = MULTI, h->multi = true;
#define Q(op) h->other[OP_##op] = REQUESTED_CLAUSE, h->runs = false;
#define R h->returns = true;
#define F h->fails = true;
#define DESCRIBE(n, clauses)                                                                                           \
	h = &handlers[n];                                                                                              \
	h->handler = &handler_##n;                                                                                     \
	h->runs = true;                                                                                                \
	clauses
	struct handler *h;

	EACH(DESCRIBE)
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

#define BIT(op) (1u << OP_##op)
#define ALL_A (BIT(a0) | BIT(a1) | BIT(a2) | BIT(a3))
#define ALL_B (BIT(b0) | BIT(b1) | BIT(b2) | BIT(b3) | BIT(b4) | BIT(b5) | BIT(b6) | BIT(b7) | BIT(b8) | BIT(b9))

const unsigned members[SETS] = {0,
				~0u,
				ALL_A,
				ALL_B,
				BIT(a0),
				BIT(b0),
				BIT(s0),
				ALL_A | BIT(b1),
				BIT(a1) | BIT(b8),
				BIT(x0),
				ALL_B | BIT(x0) | BIT(s1),
				BIT(b9),
				BIT(a0) | BIT(a2) | BIT(b2) | BIT(s0) | BIT(s1),
				BIT(a3)};

weft_handles_t handles(int set)
{
	switch (set) {
	case 1:
		return WEFT_HANDLE_ALL;
	case 2:
		return weft_handles(fa);
	case 3:
		return weft_handles(fb);
	case 4:
		return weft_handles(a0);
	case 5:
		return weft_handles(b0);
	case 6:
		return weft_handles(s0);
	case 7:
		return weft_handles(fa, b1);
	case 8:
		return weft_handles(a1, b8);
	case 9:
		return weft_handles(x0);
	case 10:
		return weft_handles(fb, x0, s1);
	case 11:
		return weft_handles(b9);
	case 12:
		return weft_handles(a0, a2, b2, s0, s1);
	case 13:
		return weft_handles(a3);
	default:
		return WEFT_HANDLE_NONE;
	}
}

void prepare_effects(void)
{
#define SET_DEFAULT(op) weft_set_default(op, default_##op);
	RETURNING(SET_DEFAULT)
	describe();
	for (int h = 0; h < HANDLERS; h++)
		for (int l = 0; l < LABELS; l++)
			labelled[h][l] = weft_labelled(handlers[h].handler, &labels[l]);
}
