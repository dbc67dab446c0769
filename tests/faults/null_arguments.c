/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * null_arguments CALL: a call with NULL instead of a coroutine, a handler, a function or a resumption. It must die with
 * one line. CALL begins with "late-" if the thread has used coroutines before.
 */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

WEFT_EFFECT(int, get);

static int on_get(void *state)
{
	return *(int *)state;
}

static void *gets_later(void *state, weft_resumption_t *k)
{
	(void)state;
	return weft_tail_continue(get, k, 1);
}

WEFT_HANDLER(in_place, weft_tail(get, on_get));
WEFT_HANDLER(general, weft_general(get, gets_later));

static void *body(void *argument)
{
	return argument ? argument : (void *)(uintptr_t)get();
}

/* The compiler does not know that the result is NULL. */
static void *nothing(void)
{
	void *null = NULL;

	__asm__("" : "+r"(null));
	return null;
}

static weft_coro_t *no_coroutine(void)
{
	return (weft_coro_t *)nothing();
}

static void checkpoint(void)
{
	(void)weft_checkpoint(no_coroutine());
}

static void backtrack(void)
{
	(void)weft_checkpoint_restore(no_coroutine());
}

static void backtrack_last(void)
{
	(void)weft_checkpoint_restore_last(no_coroutine());
}

static void clone_into_null(void)
{
	(void)weft_clone_into(no_coroutine(), weft_create(body, NULL));
}

static void clone_null_into(void)
{
	(void)weft_clone_into(weft_create(body, NULL), no_coroutine());
}

static void run(void)
{
	weft_run((const weft_handler_t *)nothing(), NULL, body, NULL);
}

static void run_with(void)
{
	weft_run_with((const weft_handler_t *)nothing(), NULL, body, NULL, NULL);
}

static weft_fn_t *no_function(void)
{
	return (weft_fn_t *)(uintptr_t)nothing();
}

static void run_nothing(void)
{
	weft_run(&in_place, NULL, no_function(), NULL);
}

static void run_nothing_by_clauses(void)
{
	weft_run(&general, NULL, no_function(), NULL);
}

static void resume(weft_coro_t *k)
{
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
}

static void create(void)
{
	resume(weft_create(no_function(), NULL));
}

static void create_keeping(unsigned flags)
{
	weft_attr_t attr = {.flags = flags};

	resume(weft_create_with(no_function(), NULL, &attr));
}

static void create_with(void)
{
	create_keeping(0);
}

static void create_saving(void)
{
	create_keeping(WEFT_SAVE_FPU);
}

static void init(void)
{
	static weft_coro_t k;

	if (!weft_init(&k, no_function(), NULL, NULL))
		resume(&k);
}

static void reset(void)
{
	weft_coro_t *k = weft_create(body, &k);

	resume(k);
	weft_reset(k, no_function(), NULL);
	resume(k);
}

static void *creates(void *argument)
{
	create();
	return argument;
}

static void create_inside(void)
{
	resume(weft_create(creates, NULL));
}

static weft_resumption_t *no_resumption(void)
{
	return (weft_resumption_t *)nothing();
}

static void continues(void)
{
	weft_continue(get, no_resumption(), 1);
}

static void *tail_continue(void)
{
	return weft_tail_continue(get, no_resumption(), 1);
}

static void tail_continues(void)
{
	if (tail_continue())
		puts("it continued NULL");
}

static void continues_known(void)
{
	weft_continue(get, NULL, 1);
}

static void continues_throwing(void);

static void asks_valid(void)
{
	if (weft_is_valid(no_resumption()))
		puts("NULL is valid");
}

WEFT_EXCEPTION(fail);

static void continues_throwing(void)
{
	weft_continue_throw(no_resumption(), fail);
}

typedef void nothing_t(int);

static void on_system_stack(void)
{
	nothing_t *fn = (nothing_t *)(uintptr_t)nothing();

	weft_on_system_stack(fn, 1);
}

static void *calls_on_system_stack(void *argument)
{
	on_system_stack();
	return argument;
}

static void on_system_stack_inside(void)
{
	resume(weft_create(calls_on_system_stack, NULL));
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
    {"checkpoint", checkpoint},
    {"backtrack", backtrack},
    {"backtrack_last", backtrack_last},
    {"clone_into_null", clone_into_null},
    {"clone_null_into", clone_null_into},
    {"run", run},
    {"run_with", run_with},
    {"run_nothing", run_nothing},
    {"run_nothing_by_clauses", run_nothing_by_clauses},
    {"create", create},
    {"create_with", create_with},
    {"create_saving", create_saving},
    {"create_inside", create_inside},
    {"init", init},
    {"reset", reset},
    {"continues", continues},
    {"continues_known", continues_known},
    {"continues_throwing", continues_throwing},
    {"tail_continues", tail_continues},
    {"asks_valid", asks_valid},
    {"on_system_stack", on_system_stack},
    {"on_system_stack_inside", on_system_stack_inside},
};

int main(int count, char **argument)
{
	static const char late[] = "late-";
	const char *name = count > 1 ? argument[1] : "";

	if (!strncmp(name, late, sizeof late - 1)) {
		name += sizeof late - 1;
		resume(weft_create(body, &name));
	}
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (!strcmp(name, calls[i].name))
			calls[i].call();
	return 2;
}
