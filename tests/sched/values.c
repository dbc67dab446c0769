/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Values that tasks inherit, drawn at random: PROGRAM WORKERS FIRST-SEED COUNT; 0 workers: simulated.
 *
 * Blocks that bind, scopes, tasks, bodies of weft_run and generators are nested at random. Their end, a return, an
 * exception effect, a cancellation or the deletion of a generator leaves them. The model is an array with the value
 * that each key should be bound to. Each inner step gets a copy of the array, so the model need not undo its changes.
 */
#include "check.h"
#include "draw.h"

enum { KEYS = 4, DEPTH = 7, STEPS = 4 };

/* The model. */
struct values {
	const int *of[KEYS];
};

struct place {
	struct values values;
	/* The scope that the task belongs to, and the values that a task started in that scope inherits. */
	weft_scope_t *scope;
	const struct values *inherited;
	uint64_t random;
	int depth;
	bool in_body; /* inside the body of a weft_run that `leaves` ends */
};

static const char keys[KEYS];

WEFT_EXCEPTION(leaves);

static void steps(struct place p);

static void check(const struct values *values)
{
	for (int i = 0; i < KEYS; i++)
		CHECK(weft_bound(&keys[i]) == values->of[i]);
}

static struct place inside(const struct place *p)
{
	struct place inner = *p;

	inner.depth++;
	inner.random = p->random * 31 + (uint64_t)inner.depth;
	return inner;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void checks(void *values)
{
	check(values);
}

static void binds(struct place p)
{
	struct place inner = inside(&p);
	unsigned key = draw(&p.random, KEYS);
	int mine = 0;

	for (int i = 0; i < 2; i++) {
		weft_defer(checks, &p.values);
		weft_bind(&keys[key], &mine);
		inner.values.of[key] = &mine;
		weft_defer(checks, &inner.values);
		steps(inner);
		if (p.in_body && draw(&p.random, 4) == 0)
			leaves();
		if (draw(&p.random, 3) == 0)
			break;
		check(&inner.values);
	}
	check(&p.values);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

struct child {
	struct place place;
	weft_task_t handle;
	bool waits;
};

static void *lives(void *argument)
{
	struct child *c = argument;

	check(&c->place.values);
	if (!c->waits) {
		steps(c->place);
		return NULL;
	}
	weft_bind(&keys[0], c);
	c->place.values.of[0] = argument;
	weft_defer(checks, &c->place.values);
	weft_sleep(WEFT_NEVER - 1);
	return NULL;
}

static int spawn(struct child *c, weft_scope_t *s, const struct place *p, const struct values *inherited)
{
	c->place = inside(p);
	c->place.values = *inherited;
	c->place.scope = s;
	c->place.inherited = inherited;
	c->place.in_body = false;
	return weft_scope_spawn_with(s, &c->handle, lives, c, NULL);
}

static void opens(struct place p)
{
	struct child children[3] = {0};
	struct place inner = inside(&p);
	int mine = 0;

	WEFT_SCOPE(scope);
	for (int i = 0; i < 3; i++) {
		unsigned key = draw(&p.random, KEYS);

		/* The tasks do not see this value, because the scope is already open. */
		weft_bind(&keys[key], &mine);
		children[i].waits = draw(&p.random, 4) == 0;
		inner.random = p.random;
		CHECK(spawn(&children[i], &scope, &inner, &p.values) == 0);
		if (draw(&p.random, 2))
			weft_task_yield();
		inner.values = p.values;
		inner.values.of[key] = &mine;
		check(&inner.values);
		if (draw(&p.random, 3) == 0)
			steps(inner);
		if (children[i].waits)
			weft_task_cancel(&children[i].handle);
	}
	if (draw(&p.random, 4)) {
		int error = weft_scope_wait(&scope);

		CHECK(error == 0 || error == -ECANCELED);
	}
	check(&p.values);
}

/* Starts a task in the scope of the caller's task, whatever values are bound here. */
static void starts_sibling(struct place p)
{
	struct child c = {0};
	int error = p.scope ? spawn(&c, p.scope, &p, p.inherited) : -ECANCELED;

	CHECK(error == 0 || error == -ECANCELED);
	if (!error)
		(void)weft_join(&c.handle, NULL);
	check(&p.values);
}

/* ---- coroutines -------------------------------------------------------------------------------------------------- */

static void *left(void *place)
{
	check(&((struct place *)place)->values);
	return NULL;
}

WEFT_HANDLER(leaving, weft_abort(leaves, left));

static void *body(void *place)
{
	binds(*(struct place *)place);
	return NULL;
}

static void runs(struct place p)
{
	struct place inner = inside(&p);

	inner.in_body = true;
	weft_run(&leaving, &p, body, &inner);
	check(&p.values);
}

struct generator {
	const struct place *resumer, *deleter; /* the values that are bound in the resumer and in the deleter */
	uint64_t random;
	int own[KEYS];
	bool has[KEYS];
};

static struct values seen_by(const struct generator *g)
{
	struct values v = g->resumer->values;

	for (int i = 0; i < KEYS; i++)
		v.of[i] = g->has[i] ? &g->own[i] : v.of[i];
	return v;
}

static void checks_generator(void *generator)
{
	struct values v = seen_by(generator);

	check(&v);
}

static void forgets(void *has)
{
	*(bool *)has = false;
}

static void *generates(void *generator)
{
	struct generator *g = generator;
	unsigned key = draw(&g->random, KEYS);

	if (g->has[key])
		return NULL;
	checks_generator(g);
	weft_defer(forgets, &g->has[key]);
	weft_bind(&keys[key], &g->own[key]);
	g->has[key] = true;
	weft_defer(checks_generator, g);
	weft_suspend(NULL);
	checks_generator(g);
	generates(g);
	checks_generator(g);
	weft_suspend(NULL);
	if (draw(&g->random, 2)) {
		struct place inner = *g->resumer;

		inner.depth = DEPTH - 2;
		inner.values = seen_by(g);
		runs(inner);
	}
	return NULL;
}

static void is_left(void *generator)
{
	struct generator *g = generator;

	g->resumer = g->deleter;
}

static void generate(struct place p)
{
	struct generator g = {&p, &p, p.random, {0}, {false}};
	weft_coro_t *k = weft_create(generates, &g);
	int mine = 0;

	CHECK(k);
	weft_defer(weft_delete, k);
	for (unsigned i = draw(&p.random, 6); i && weft_state(k) != WEFT_FINISHED; i--) {
		struct place inner = inside(&p);
		unsigned key = draw(&p.random, KEYS);

		weft_defer(is_left, &g);
		weft_bind(&keys[key], &mine);
		inner.values.of[key] = &mine;
		g.resumer = &inner;
		(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
		check(&inner.values);
		steps(inner);
	}
	check(&p.values);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void steps(struct place p)
{
	static void (*const step[])(struct place) = {binds, binds, opens, starts_sibling, runs, generate};
	unsigned i;

	for (i = draw(&p.random, STEPS); i && p.depth < DEPTH; i--)
		step[draw(&p.random, sizeof step / sizeof *step)](inside(&p));
	check(&p.values);
}

static void *program(void *seed)
{
	struct place p = {.random = *(uint64_t *)seed};

	binds(p);
	steps(p);
	return seed;
}

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
	uint64_t seed, left;

	if (argc < 4)
		return 2;
	seed = strtoull(argv[2], NULL, 10);
	for (left = strtoull(argv[3], NULL, 10); left; left--, seed++) {
		dprintf(2, "seed %llu\n", (unsigned long long)seed);
		CHECK((config.workers ? weft_rt_run(&config, program, &seed, NULL)
				      : weft_simulate(seed, &config, program, &seed, NULL)) == 0);
	}
	printf("ok - seeds %s to %llu\n", argv[2], (unsigned long long)seed - 1);
}
