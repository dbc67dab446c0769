/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each message that ends the process is written completely, once, and ends it by SIGABRT, with any amount of stack
 * left. On linked stacks a frame of every size precedes the mistake, so that the mistake is made at each distance from
 * the end of a tiny chunk. On contiguous stacks alloca leaves each number of bytes. There the stack may also overflow
 * before the message begins: then the overflow is reported, once.
 */
#include <alloca.h>
#include <pthread.h>

#include "unit/child.h"
#include <weft/weft.h>

enum {
	STEP = 16,
	PLACES = 48,	/* distances that are tried */
	COARSE = 7,	/* number of these for messages that C code of the library begins */
	LAST_NEAR = 39, /* up to this one, each is STEP further from the end of a contiguous stack */
	ENOUGH = 12288, /* with this much left nothing overflows, not even unoptimized code */
	FAILED = 3,	/* exit code: the coroutine could not grow, and its resumer was notified */
};

WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, tell, int, x);
WEFT_EXCEPTION(stop);

static weft_coro_t *finished, *the;
static bool linked, grows;

static void *once(void *argument)
{
	return argument;
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void resumes(void)
{
	weft_resume(the, NULL, WEFT_HANDLE_NONE);
}

static void resumes_finished(void)
{
	weft_resume(finished, NULL, WEFT_HANDLE_NONE);
}

static void switches(void)
{
	weft_switch(finished, NULL);
}

static void throws_into(void)
{
	weft_resume_throw(the, weft_handles(stop), stop);
}

static void deletes(void)
{
	weft_delete(the);
}

static void resets(void)
{
	weft_reset(the, once, NULL);
}

static void asks(void)
{
	ask();
}

static void throws(void)
{
	stop();
}

static void leaves_other(void)
{
	weft_exit(finished, &weft_suspended, NULL);
}

static void mistakes_request(void)
{
	(void)weft_args(ask, weft_resume(weft_create(once, NULL), NULL, WEFT_HANDLE_NONE));
}

static void *undecided(void *state, weft_resumption_t *k)
{
	(void)k;
	return state;
}

WEFT_HANDLER(deciding, weft_general(ask, undecided));

static void *asks_once(void *argument)
{
	ask();
	return argument;
}

static void decides_nothing(void)
{
	weft_run(&deciding, NULL, asks_once, NULL);
}

static const struct mistake {
	const char *name;
	void (*make)(void);
	const char *says;
	bool nested, deleted; /* `the`: the resumer, or deleted before */
	bool starved, thread; /* the system has no memory; made in a thread that Weft has not seen */
	bool jumps;	      /* no C code of the library runs before the message */
} mistakes[] = {
    {"resumes itself", resumes, "cannot resume coroutine \"worker\" (#", .jumps = true},
    {"resumes its resumer", resumes, "cannot resume coroutine \"worker\" (#", .nested = true, .jumps = true},
    {"resumes a deleted one", resumes, "cannot resume coroutine \"worker\" (#0): it was del", .deleted = true,
     .jumps = true},
    {"resumes a finished one", resumes_finished, "cannot resume coroutine #1: it is finished", .jumps = true},
    {"resumes a finished one without memory", resumes_finished, "cannot resume coroutine #1: it is finished",
     .starved = true},
    {"resumes a finished one in a thread", resumes_finished, "cannot resume coroutine #1: it is finished",
     .thread = true},
    {"throws into itself", throws_into, "cannot resume coroutine \"worker\" (#"},
    {"switches to a finished one", switches, "cannot resume coroutine #1: it is finished"},
    {"deletes itself", deletes, "cannot delete coroutine \"worker\" (#"},
    {"resets itself", resets, "cannot reset coroutine \"worker\" (#"},
    {"asks nobody", asks, "unhandled effect \"ask\" in coroutine"},
    {"throws to nobody", throws, "unhandled effect \"stop\" in coroutine"},
    {"leaves another", leaves_other, "cannot suspend or leave coroutine #1: "},
    {"mistakes a request", mistakes_request, "request \"return\" taken for \"ask\""},
    {"decides nothing", decides_nothing, "handler \"deciding\", effect \"ask\": its general clause returned without"},
};

/* ---- how much stack is left -------------------------------------------------------------------------------------- */

/* A frame larger by this padding. */
#define PAD(n)                                                                                                         \
	static __attribute__((noinline)) void pad_##n(void (*make)(void))                                              \
	{                                                                                                              \
		volatile char room[STEP * (n) + 1];                                                                    \
                                                                                                                       \
		room[0] = 1;                                                                                           \
		make();                                                                                                \
		room[STEP * (n)] = 2;                                                                                  \
	}
#define EIGHT(with, n) with(n##0) with(n##1) with(n##2) with(n##3) with(n##4) with(n##5) with(n##6) with(n##7)
/* Octal. */
#define EACH(with) EIGHT(with, 0) EIGHT(with, 01) EIGHT(with, 02) EIGHT(with, 03) EIGHT(with, 04) EIGHT(with, 05)
EACH(PAD)

#define NAME(n) pad_##n,
static void (*const pads[])(void (*)(void)) = {EACH(NAME)};
_Static_assert(sizeof pads / sizeof *pads == PLACES, "a function for each place");

/* On a contiguous stack. */
static __attribute__((noinline)) void with_left(size_t left, void (*make)(void))
{
	const weft_coro_t *self = weft_current();
	char *here = __builtin_frame_address(0), *top = here;
	size_t below, own = 128;
	volatile char *room;

	while (weft_on_stack(self, top + STEP))
		top += STEP;
	below = weft_stack_usable(self) - (size_t)(top - here);
	if (below > left + own) {
		room = alloca(below - left - own);
		room[0] = 1;
	}
	make();
}

static size_t left_at(unsigned place)
{
	return place <= LAST_NEAR ? STEP * place : ENOUGH * (place - LAST_NEAR) / (PLACES - 1 - LAST_NEAR);
}

struct trial {
	const struct mistake *mistake;
	unsigned place;
};

static void *make(void *argument)
{
	const struct trial *t = argument;

	if (t->mistake->starved)
		setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
	if (linked)
		pads[t->place](t->mistake->make);
	else
		with_left(left_at(t->place), t->mistake->make);
	return argument;
}

static void *nests(void *argument)
{
	if (weft_resume(weft_create(make, argument), NULL, WEFT_HANDLE_NONE).effect == &weft_failed)
		_exit(FAILED);
	return argument;
}

static void *make_at_once(void *argument)
{
	((const struct trial *)argument)->mistake->make();
	return argument;
}

static void in_thread(const struct trial *t)
{
	pthread_attr_t smallest;
	pthread_t thread;

	pthread_attr_init(&smallest);
	pthread_attr_setstacksize(&smallest, (size_t)sysconf(_SC_THREAD_STACK_MIN));
	pthread_create(&thread, &smallest, make_at_once, (void *)t);
	pthread_join(thread, NULL);
}

static void try(const void *trial)
{
	const struct trial *t = trial;
	weft_coro_t *k;

	finished = weft_create(once, NULL);
	weft_resume(finished, NULL, WEFT_HANDLE_NONE);
	if (t->mistake->thread)
		in_thread(t);
	k = the = weft_create_with(t->mistake->nested ? nests : make, (void *)t, &(weft_attr_t){.name = "worker"});
	if (t->mistake->deleted) {
		k = weft_create(make, (void *)t);
		weft_delete(the);
	}
	if (weft_resume(k, NULL, WEFT_HANDLE_NONE).effect == &weft_failed)
		_exit(FAILED);
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static bool is_line(const char *text, const char *begins)
{
	const char *end = strchr(text, '\n');

	return !strncmp(text, "weft: ", 6) && !strncmp(text + 6, begins, strlen(begins)) && end && !end[1];
}

static bool is_right(const struct trial *t, const struct outcome *o)
{
	bool may_overflow = !linked && t->place < PLACES - 1;

	if (o->signal == SIGABRT)
		return is_line(o->text, t->mistake->says);
	if (o->signal == SIGSEGV)
		return may_overflow && is_line(o->text, "stack overflow in coroutine");
	return o->code == FAILED && (t->mistake->starved || (may_overflow && grows)) && !*o->text;
}

static bool holds(const struct mistake *m)
{
	for (unsigned place = 0; place < PLACES; place += m->jumps || place + COARSE >= PLACES ? 1 : COARSE) {
		struct trial t = {m, place};
		struct outcome o = in_child_with(try, &t);

		if (is_right(&t, &o))
			continue;
		printf("not ok - %s, place %u: signal %d, code %d: %s\n", m->name, place, o.signal, o.code, o.text);
		return false;
	}
	printf("ok - %s\n", m->name);
	return true;
}

/* Argument: only the mistake of that name. */
int main(int argc, char **argv)
{
	weft_policy_t policy = weft_default_policy();
	int failures = 0;

#ifdef INSTRUMENTED
	linked = policy == WEFT_SEGMENTED || policy == WEFT_LOOKAHEAD || policy == WEFT_MMU || policy == WEFT_HEAP;
#endif
	grows = policy == WEFT_COMMIT || policy == WEFT_COPY;
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
		if (argc < 2 || !strcmp(argv[1], mistakes[i].name))
			failures += !holds(&mistakes[i]);
	return failures != 0;
}
