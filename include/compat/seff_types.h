/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * seff_types.h: the types of seff.h. See there.
 *
 * A seff_coroutine_t is a weft_coro_t. Its `state` is kept in the user's word of that object
 * (weft_user_data), so that both have the same address and nothing else is allocated.
 */
#ifndef SEFF_TYPES_H
#define SEFF_TYPES_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/** An effect: a number chosen by hand, 0 to 63. */
typedef uint64_t effect_id;
/** A set of effects: bit n is effect n. 0 is no effect, ~0 is every effect. */
typedef uint64_t effect_set;

/** The effect of a request that says the coroutine's function returned. */
#define RETURN_EFFECT_ID UINT64_MAX
/** Effects that can be handled by number. */
#define MAX_EFFECTS 64

typedef struct seff_request_t {
	effect_id effect;
	void *payload;
} seff_request_t;

/* may_alias: it lies in a word that the core declares otherwise. libseff's paper says SUSPENDED, its code PAUSED. */
typedef enum __attribute__((may_alias)) seff_coroutine_state_t {
	FINISHED,
	PAUSED,
	SUSPENDED = PAUSED,
	RUNNING
} seff_coroutine_state_t;

typedef void *(seff_start_fun_t)(void *);
/** Runs in place of a missing handler: gets the payload, returns the performer's result. */
typedef void *(default_handler_t)(void *);

/* Storage comes from malloc as well, which aligns to 16; the core's own objects are better placed. */
typedef weft_coro_t seff__coro_t __attribute__((aligned(16)));

/**
 * A coroutine, usable by value: in arrays, in structs, on the stack; not to be moved while in use.
 * Only `state` is for programs, and only to be read: PAUSED until the coroutine has finished, also while it runs, as in
 * libseff. To say more would cost a cache line in each switch.
 */
typedef union seff_coroutine_t {
	seff__coro_t seff__coro;
	__extension__ struct {
		unsigned char seff__before_state[offsetof(weft_coro_t, user_data)];
		seff_coroutine_state_t state;
	};
} seff_coroutine_t;

WEFT__STATIC_ASSERT(sizeof(seff_coroutine_t) == sizeof(weft_coro_t), "the state lies within the core's object");

WEFT_EXTERN_C_END

#endif /* SEFF_TYPES_H */
