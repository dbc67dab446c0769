/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A shared object for unloads.c, compiled as C and as C++. ID: the plugin's number, from 1. NAME and TYPE: its effect,
 * and SPACE: the effect's namespace. Without a NAME it handles the program's effect. Plugins of one kind and language
 * have the same data layout, so a plugin's effect, table and set are at the addresses of an earlier plugin's; their
 * clauses are at different addresses (shift).
 */
#include "unloads.h"

#if ID % 4 > 1
/* In other plugins, clauses are at this address. */
__attribute__((used)) static int shift(void *state, int x)
{
	(void)state;
	return -x;
}
#endif

#ifdef NAME
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
#ifndef SPACE
#define IDENTITY TEXT(NAME(TYPE))
#else
#define IDENTITY TEXT(SPACE.NAME(TYPE))
#ifdef __cplusplus
namespace SPACE
{
#else
#define WEFT_NAMESPACE SPACE
#endif
#endif
#define DECLARE(name, type) WEFT_EFFECT_AS(it, int, name, type, x)
DECLARE(NAME, TYPE);

static int on_effect(void *state, TYPE x)
{
	(void)state;
	return ID * 1000 + (int)x;
}

static int in_place(TYPE x)
{
	return ID * 1000 + 500 + (int)x;
}

static void *general(void *state, weft_resumption_t *k, TYPE x)
{
	return weft_tail_continue(it, k, on_effect(state, x));
}

WEFT_HANDLER(tails, weft_tail(it, on_effect));
WEFT_HANDLER(generals, weft_general(it, general));

static void loop(weft_fn_t *body, void *arg)
{
	weft_coro_t *k = weft_create(body, arg);
	weft_request_t r;

	weft_handle (r, k, it)
		weft_reply(it, r, on_effect(NULL, weft_args(it, r)->x));
	weft_delete(k);
}

static void run(enum how how, weft_fn_t *body, void *arg)
{
	if (how == BY_LOOP)
		loop(body, arg);
	else
		weft_run(how == BY_TAIL ? &tails : &generals, NULL, body, arg);
}

static int perform(int x)
{
	return it((TYPE)x);
}

static bool has_default(void)
{
	return weft__default_of(&weft_effect_it);
}

static void set_default(void)
{
	weft_set_default(it, in_place);
}
#define PLUGIN                                                                                                         \
	{                                                                                                              \
		ID, IDENTITY, perform, run, has_default, set_default, NULL, NULL                                       \
	}

#else
WEFT_EFFECT(int, ask, int, x);
WEFT_EFFECT(int, ask_more, int, x);

static int on_ask(void *state, int x)
{
	(void)state;
	return ID * 1000 + 700 + x;
}

WEFT_HANDLER(answers, weft_tail(ask, on_ask));

static void drive_by_table(weft_coro_t *k)
{
	(void)weft_resume_under(k, NULL, &answers, NULL);
}

static weft_handles_t set(void)
{
#if ID % 2
	return weft_handles(ask, ask_more);
#else
	return weft_handles(ask_more, ask_more);
#endif
}

static void drive_by_set(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, set());

	if (!weft_is(ask, r))
		return;
	weft_reply(ask, r, on_ask(NULL, weft_args(ask, r)->x));
	(void)weft_resume(k, NULL, set());
}
#define PLUGIN                                                                                                         \
	{                                                                                                              \
		ID, NULL, NULL, NULL, NULL, NULL, drive_by_table, drive_by_set                                         \
	}
#endif

#ifdef __cplusplus
#ifdef SPACE
} // namespace SPACE
using namespace SPACE;
#endif
extern "C" {
#endif
extern __attribute__((visibility("default"))) const struct plugin plugin;
#ifdef __cplusplus
}
#endif
const struct plugin plugin = PLUGIN;
