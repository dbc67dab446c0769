/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Groups: making and running one, and the ends of activities. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "activity/activity.h"
#include "internal/line.h"

enum { DEFAULT_PERIOD = 5000000 };
static const uint64_t magic = 0x7461706e66746577; /* see tools/activities/pass.h */

WEFT_EFFECT(void, weft__activity_switch);

/* The twin of a function that may have one. */
static weft_fn_t *twin(weft_fn_t *fn)
{
	const char *at = (const char *)(uintptr_t)fn;
	uint64_t number;
	int32_t far;

	memcpy(&number, at - 16, sizeof number);
	if (number != magic)
		return fn;
	memcpy(&far, at - 8, sizeof far);
	return (weft_fn_t *)(uintptr_t)(at + far);
}

/* ---- activities begin and end ----------------------------------------------------------------------------------- */

/* What weft__activity_start finds above its own address. */
struct first_frame {
	uint64_t rbp;
	void *start;
	uint64_t entry, words[6], pad;
};
_Static_assert(sizeof(struct first_frame) % 16 == 0, "blocks are multiples of 16");

static inline bool begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6])
{
	struct first_frame *f = weft__piece(g, sizeof *f);

	if (weft__unlikely(!f))
		return false;
	f->rbp = 0;
	f->start = weft__activity_start;
	f->entry = (uintptr_t)entry;
	memcpy(f->words, words, sizeof f->words);
	a->frames = f;
	a->size = sizeof *f;
	a->waiters = NULL;
	a->vars = NULL;
	a->flags = 0;
	a->error = 0;
	g->live++;
	weft__ready(g, a);
	return true;
}

WEFT_API void weft__activity_spawn(weft_activity_t *handle, void *entry, uint64_t w0, uint64_t w1, uint64_t w2,
				   uint64_t w3, uint64_t w4, uint64_t w5);

void weft__activity_spawn(weft_activity_t *handle, void *entry, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3,
			  uint64_t w4, uint64_t w5)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	uint64_t words[6] = {w0, w1, w2, w3, w4, w5};
	weft_activity_t *a = handle ? handle : weft__piece(g, sizeof *a);

	if (!a || !begin(g, a, entry, words))
		weft__activity_fail(ENOMEM);
	if (!handle)
		a->flags = WEFT__DETACHED;
}

/* What a cancelled activity, or one that longjmp left, had. */
static WEFT__COLD void give_back(struct weft__activity_group *g)
{
	weft__vars_free(g, NULL);
	weft__stacks_free(g, g->stack);
	g->stack = NULL;
	weft__limits(g, g->base - WEFT__WINDOW);
}

void weft__activity_finish(struct weft__activity_group *g, weft_activity_t *a, void *result, int error)
{
	weft_activity_t *w;

	if (weft__unlikely(a->vars || g->stack))
		give_back(g);
	a->state = WEFT__ENDED;
	a->frames = result;
	a->error = (uint8_t)error;
	g->live--;
	while ((w = a->waiters)) {
		a->waiters = w->next;
		weft__ready(g, w);
	}
	if (a->flags & WEFT__DETACHED)
		weft__piece_give(g, a, (sizeof *a + 15) & ~(size_t)15);
}

void weft__activity_fail(int error)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	(void)error;
	weft__activity_leave(g);
}

/* ---- the driver ------------------------------------------------------------------------------------------------- */

void weft__take_in(struct weft__activity_group *g)
{
	(void)g;
}

static bool idle(struct weft__activity_group *g)
{
	(void)g;
	return false;
}

static void *first(void *group)
{
	struct weft__activity_group *g = group;

	return g->result = twin(g->fn)(g->arg);
}

static bool start(struct weft__activity_group *g)
{
	uint64_t words[6] = {[4] = (uintptr_t)g}; /* the first argument of a function of C */

	return begin(g, &g->root, (void *)(uintptr_t)first, words);
}

static void *drive(void *group)
{
	struct weft__activity_group *g = group;
	char here;

	g->base = (char *)((uintptr_t)&here & ~(uintptr_t)4095) - WEFT__DRIVER_ROOM;
	weft__limits(g, g->base - WEFT__WINDOW);
	if (!start(g))
		return g->error = ENOMEM, NULL;
	do {
		weft_activity_t *a;

		while ((a = weft__pick(g))) {
			a->state = WEFT__RUNNING;
			g->hot->self = a;
			weft__activity_enter(g, a);
		}
	} while (g->live && idle(g));
	if (g->live)
		g->error = EDEADLK;
	return NULL;
}

static uint64_t period(const weft_activity_config_t *config)
{
	const char *said = getenv("WEFT_ACTIVITY_PERIOD");
	uint64_t given = config && config->period ? config->period : DEFAULT_PERIOD;

	if (!said)
		return given;
	if (!strcmp(said, "off"))
		return WEFT_ACTIVITY_NO_TIMER;
	if (!strcmp(said, "every"))
		return WEFT_ACTIVITY_EVERY_YIELD;
	return strtoull(said, NULL, 10);
}

int weft_activity_run(const weft_activity_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__activity_group *g = calloc(1, sizeof *g);
	struct weft__activity_hot saved = weft__activity_hot;
	weft_attr_t attr = {.name = "activities",
			    .policy = weft_policy_named("overcommit"),
			    .stack_size = WEFT__HOT_STACK};

	if (!fn)
		return -EINVAL;
	if (!g)
		return -ENOMEM;
	g->fn = fn;
	g->arg = arg;
	g->hot = &weft__activity_hot;
	g->period = period(config);
	g->every_yield = g->period == WEFT_ACTIVITY_EVERY_YIELD;
	if (config && config->stack_size)
		attr.stack_size = config->stack_size;
	g->coro = weft_create_with(drive, g, &attr);
	if (!g->coro) {
		free(g);
		return -errno;
	}
	g->hot->group = g;
	g->hot->self = NULL;
	g->hot->flag = g->every_yield;
	weft__timer_add(g);
	(void)weft_resume(g->coro, g, weft_handles());
	weft__timer_remove(g);
	weft__activity_hot = saved;
	weft_delete(g->coro);
	if (result)
		*result = g->result;
	int error = g->error;
	weft__pieces_unmap(g);
	weft__stacks_free(g, g->spare);
	free(g);
	return -error;
}

struct main_call {
	int (*first)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
};

static void *call_main(void *call)
{
	struct main_call *m = call;

	m->status = ((int (*)(int, char **))(uintptr_t)twin((weft_fn_t *)(uintptr_t)m->first))(m->argc, m->argv);
	return NULL;
}

WEFT_API int weft_activity_main(int (*first_activity)(void), int argc, char **argv);

int weft_activity_main(int (*first_activity)(void), int argc, char **argv)
{
	struct main_call m = {(int (*)(int, char **))(uintptr_t)first_activity, argc, argv, 0};
	int error = weft_activity_run(NULL, call_main, &m, NULL);

	if (error) {
		struct weft__line line;

		weft__line_begin(&line);
		weft__line_text(&line, "the first activity could not run to its end: ");
		weft__line_text(&line, strerror(-error));
		weft__line_write(&line);
		return 1;
	}
	return m.status;
}
