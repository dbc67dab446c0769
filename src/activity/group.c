/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Groups: how a group is made and run, and how activities end. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "activity/activity.h"
#include "internal/message.h"
#include "internal/valgrind.h"

enum { DEFAULT_PERIOD = 5000000 };

/* Code that the pass compiles refers to this symbol. tools/activities/pass.h has the same number. */
extern const char weft_activities_version_4__compile_again_with_the_weft_you_link;
WEFT_API const char weft_activities_version_4__compile_again_with_the_weft_you_link = 1;

static weft_fn_t *twin(weft_fn_t *fn)
{
	return (weft_fn_t *)(uintptr_t)weft__activity_twin((void *)(uintptr_t)fn);
}

/* ---- activities begin and end ----------------------------------------------------------------------------------- */

/* The frame that weft__activity_start finds above its own address. */
struct first_frame {
	uint64_t rbp;
	void *start;
	uint64_t entry, words[6], pad;
};
_Static_assert(sizeof(struct first_frame) % 16 == 0, "blocks are multiples of 16");

static inline bool first_frames(struct weft__activity_group *g, weft_activity_t *a, void *entry,
				const uint64_t words[6])
{
	struct first_frame *f = weft__group_piece(g, sizeof *f);

	if (weft__unlikely(!f))
		return false;
	f->rbp = 0;
	f->start = weft__activity_start;
	f->entry = (uintptr_t)entry;
	memcpy(f->words, words, sizeof f->words);
	a->frames = f;
	a->size = sizeof *f / 16;
	return true;
}

/* The caller has set `flags`. */
bool weft__activity_begin(struct weft__activity_group *g, weft_activity_t *a, void *entry, const uint64_t words[6])
{
	a->waiters = NULL;
	a->vars = NULL;
	a->object = NULL;
	if (weft__unlikely(g->stackful)) {
		if (!weft__own_begin(g, a, entry, words))
			return false;
	} else if (weft__unlikely(!first_frames(g, a, entry, words))) {
		return false;
	}
	g->live++;
	weft__activity_ready(g, a);
	return true;
}

static void unmake(struct weft__activity_group *g, weft_activity_t *a)
{
	bool owned = a->flags & WEFT__MADE;

	weft__table_forget(g, a);
	if (owned)
		weft__piece_give(g, a, sizeof *a);
}

/* True if an activity uses this handle, or weft_activity_new made it. Any other handle may have any content. */
static bool is_known(struct weft__activity_group *g, const weft_activity_t *handle)
{
	if (weft__unlikely(g->stackful))
		VALGRIND_MAKE_MEM_DEFINED(handle, sizeof *handle);
	return handle->number < g->count && g->table[handle->number] == handle;
}

WEFT__LAST_WORDS(static, die_in_use, (const weft_activity_t *handle), handle)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "activate: activity ");
	weft__line_address(&line, (uintptr_t)handle);
	weft__line_text(&line, " has not ended: wait for it before its handle is used again, or take another handle");
	weft__line_die(&line);
}

/* Returns the activity for a handle, registered in the table. NULL: no memory. */
static weft_activity_t *take_handle(struct weft__activity_group *g, weft_activity_t *handle)
{
	weft_activity_t *a = handle;

	if (!handle) {
		a = weft__slab_take(g);
		if (a)
			a->flags = WEFT__DETACHED | WEFT__SLAB;
		return a;
	}
	if (weft__unlikely(is_known(g, handle))) {
		if (handle->state != WEFT__A_NEW)
			die_in_use(handle);
		a->flags = WEFT__MADE | (a->flags & WEFT__DETACHED);
		return a;
	}
	a->flags = 0;
	return weft__table_add(g, a) ? a : NULL;
}

WEFT_API void weft__activity_spawn(weft_activity_t *handle, void *entry, uint64_t w0, uint64_t w1, uint64_t w2,
				   uint64_t w3, uint64_t w4, uint64_t w5);

void weft__activity_spawn(weft_activity_t *handle, void *entry, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3,
			  uint64_t w4, uint64_t w5)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	uint64_t words[6] = {w0, w1, w2, w3, w4, w5};
	weft_activity_t *a;

	if (weft__unlikely(!g))
		weft__activity_outside("activate");
	a = take_handle(g, handle);
	if (weft__unlikely(!a) || !weft__activity_begin(g, a, entry, words)) {
		if (a)
			unmake(g, a);
		if (handle) { /* its waiters see the error */
			handle->state = WEFT__A_ENDED;
			handle->error = ENOMEM;
			handle->frames = NULL;
		}
		weft__activity_fail(ENOMEM);
	}
	a->vars = g->shipped;
	g->shipped = NULL;
}

static void *result_of(const weft_activity_t *a)
{
	struct weft__activity_var *v = a->vars;
	void *result;

	while (v->next)
		v = v->next;
	memcpy(&result, v->memory, sizeof result);
	return result;
}

static void wake_waiters(struct weft__activity_group *g, weft_activity_t *a)
{
	weft_activity_t *w;

	while ((w = a->waiters)) {
		a->waiters = w->next;
		weft__activity_ready(g, w);
	}
}

void weft__activity_finish(struct weft__activity_group *g, weft_activity_t *a, void *result, int error)
{
	bool give = (a->flags & (WEFT__MADE | WEFT__DETACHED)) == (WEFT__MADE | WEFT__DETACHED);

	if (a != &g->root)
		result = a->flags & WEFT__HAS_RESULT ? result_of(a) : NULL;
	if (a->vars)
		weft__vars_free_all(g, a);
	if (weft__unlikely(weft__is_deep(g)))
		weft__deep_end(g);
	if (weft__unlikely(g->to_end) && weft__is_to_end(a))
		g->to_end--;
	a->state = WEFT__A_ENDED;
	a->frames = result;
	a->error = (uint16_t)error;
	g->live--;
	if (a->waiters)
		wake_waiters(g, a);
	weft__table_forget(g, a);
	if (give)
		weft__piece_give(g, a, sizeof *a);
}

weft_activity_t *weft_activity_new(void)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *a = g ? weft__piece_take(g, sizeof *a) : NULL;

	if (!a)
		return NULL;
	if (!weft__table_add(g, a)) {
		weft__piece_give(g, a, sizeof *a);
		return NULL;
	}
	a->state = WEFT__A_NEW;
	a->flags = WEFT__MADE;
	return a;
}

void weft_activity_detach(weft_activity_t *a)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	a->flags |= WEFT__DETACHED;
	if (!(a->flags & WEFT__MADE))
		return;
	if (a->state == WEFT__A_ENDED)
		weft__piece_give(g, a, sizeof *a);
	else if (a->state == WEFT__A_NEW)
		unmake(g, a);
}

/* ---- the driver ------------------------------------------------------------------------------------------------- */

static void *first(void *group)
{
	struct weft__activity_group *g = group;

	return g->result = twin(g->fn)(g->arg);
}

static bool start(struct weft__activity_group *g)
{
	uint64_t words[6] = {[4] = (uintptr_t)g}; /* the first argument of a function of C */

	g->root.flags = 0;
	if (!weft__table_add(g, &g->root))
		return false;
	return weft__activity_begin(g, &g->root, (void *)(uintptr_t)first, words);
}

static void run_ready(struct weft__activity_group *g)
{
	weft_activity_t *a;

	while ((a = weft__scheduled(g))) {
		a->state = WEFT__A_RUNNING;
		g->hot->self = a;
		if (g->stackful)
			weft__own_run(g, a);
		else
			weft__activity_enter(g, a);
		g->hot->self = NULL;
	}
}

/* No activity is ready: wait. Returns whether an activity can still become ready. */
static bool wait(struct weft__activity_group *g)
{
	int error = weft__group_wait(g);

	if (!error)
		return true;
	if (error == -EDEADLK && !g->error)
		weft__report_deadlock(g);
	if (error == -ECANCELED && !g->shielded) {
		weft_shield_begin();
		g->shielded = true;
	}
	if (!g->error)
		g->error = -error;
	weft__activity_cancel_all(g);
	return g->first || g->outside;
}

static void *drive(void *group)
{
	struct weft__activity_group *g = group;
	char here;

	g->base = (char *)((uintptr_t)&here & ~(uintptr_t)4095) - WEFT__DRIVER_ROOM;
	weft__limits(g);
	if (!start(g))
		return g->error = ENOMEM, NULL;
	do
		run_ready(g);
	while ((g->live || atomic_load(&g->held) || atomic_load(&g->posted) || g->unstarted) && wait(g));
	if (g->root.error && !g->error)
		g->error = g->root.error;
	return NULL;
}

/* Reports once for each variable; the program continues. */
void weft__environment_is_wrong(_Atomic bool *said, const char *name, const char *value, const char *what_to_do)
{
	if (!atomic_exchange(said, true))
		weft__say_ignored(name, value, what_to_do);
}

static uint64_t period(const weft_activity_config_t *config)
{
	static _Atomic bool told;
	const char *said = getenv("WEFT_ACTIVITY_PERIOD");
	uint64_t given = config->period ? config->period : DEFAULT_PERIOD, asked;
	char *end;

	if (!said || !*said)
		return given;
	if (!strcmp(said, "off"))
		return WEFT_ACTIVITY_NO_TIMER;
	if (!strcmp(said, "every"))
		return WEFT_ACTIVITY_EVERY_YIELD;
	asked = strtoull(said, &end, 10);
	if (asked && !*end && *said != '-')
		return asked;
	weft__environment_is_wrong(&told, "WEFT_ACTIVITY_PERIOD", said, "say a number of nanoseconds, off or every");
	return given;
}

/* ---- making a group ---------------------------------------------------------------------------------------------- */

static struct weft__activity_group *make(const weft_activity_config_t *config, weft_fn_t *fn, void *arg)
{
	static const weft_activity_config_t defaults;
	struct weft__activity_group *g = calloc(1, sizeof *g);
	weft_attr_t attr = {.name = "activities", .policy = weft_policy_named("overcommit")};

	if (!g || !weft__twins_begin()) {
		free(g);
		return NULL;
	}
	config = config ? config : &defaults;
	g->fn = fn;
	g->arg = arg;
	g->hot = &weft__activity_hot;
	g->period = period(config);
	g->every_yield = g->period == WEFT_ACTIVITY_EVERY_YIELD;
	g->stackful = weft__own_wanted(config, &g->attr);
	g->scheduler = config->scheduler;
	g->unusual = g->stackful || g->scheduler;
	g->turns = WEFT__TURNS;
	weft__stacks_init(g, g->stackful ? 0 : config->stack_size);
	attr.stack_size = g->hot_bytes;
	weft__fork_watch();
	g->coro = weft_create_with(drive, g, &attr);
	if (!g->coro) {
		free(g);
		return NULL;
	}
	return g;
}

/* The thread's hot words belong to this group only while its coroutine runs. */
static void come_in(struct weft__activity_group *g)
{
	g->outer = weft__activity_hot;
	weft__activity_hot = g->kept;
}

static void go_out(struct weft__activity_group *g)
{
	g->kept = weft__activity_hot;
	weft__activity_hot = g->outer;
}

/* An exception effect has left the group, and has run the deferred functions of the running activity. */
static void abandon(weft_activity_t *a, void *group)
{
	struct weft__activity_group *g = group;

	if (a->state == WEFT__A_RUNNING || a->state <= WEFT__A_NEW)
		return;
	weft__frames_free(g, a);
	weft__vars_free_all(g, a);
}

static void unmake_group(void *group)
{
	struct weft__activity_group *g = group;

	if (weft__activity_hot.group == g)
		go_out(g);
	weft__inside_leave(&g->inside);
	weft__timer_remove(g);
	if (!g->over)
		weft__each_activity(g, abandon, g);
	weft_delete(g->coro);
	weft__server_end(g);
	weft__wakeups_end(g);
	if (g->shielded)
		weft_shield_end();
	weft__task_let_go(g->pinned);
	weft__pieces_unmap(g, !g->over);
	weft__stacks_free(g, g->spare);
	weft__profile_end(g->profile);
	free(g->table);
	free(g->sleepers.heap);
	free(g);
}

/* If plain code waits or yields as a task does, it suspends the whole group: other tasks may run groups on this
 * thread meanwhile. */
static weft_request_t run(struct weft__activity_group *g)
{
	weft_request_t r;

	for (;;) {
		come_in(g);
		r = weft_resume(g->coro, g, weft_handles(weft_op_wait, weft_op_yield));
		go_out(g);
		if (weft_is(weft_op_wait, r))
			weft_op_wait(weft_args(weft_op_wait, r)->waiter);
		else if (weft_is(weft_op_yield, r))
			weft_reply(weft_op_yield, r, weft_op_yield());
		else
			return r;
	}
}

int weft_activity_run(const weft_activity_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__activity_group *g;
	weft_request_t r;

	if (!fn || (config && config->flags & ~(unsigned)WEFT_ACTIVITY_STACKFUL))
		return -EINVAL;
	if (config && config->scheduler && (!config->scheduler->ready || !config->scheduler->next))
		return -EINVAL;
	g = make(config, fn, arg);
	if (!g)
		return -ENOMEM;
	g->pinned = weft__task_hold();
	g->watched = weft__stuck_wanted(g);
	g->profile = g->stackful ? NULL : weft__profile_new();
	g->in_task = weft_rt_current();
	g->inside.tell = weft__report_inside;
	if (g->in_task)
		weft__inside_open(&g->inside);
	g->kept.group = g;
	g->kept.flag = g->every_yield;
	weft__timer_add(g);
	weft_defer(unmake_group, g);
	r = run(g);
	g->over = weft_returned(r);
	if (result)
		*result = g->result;
	return weft_returned(r) ? -g->error : -ENOMEM;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

typedef int main_t(int argc, char **argv, char **environment);

struct main_call {
	main_t *first;
	int argc;
	char **argv;
	int status;
};

static void *call_main(void *call)
{
	struct main_call *m = call;

	m->status = ((main_t *)(uintptr_t)twin((weft_fn_t *)(uintptr_t)m->first))(m->argc, m->argv, environ);
	return NULL;
}

WEFT_API int weft_activity_main(int (*first_activity)(void), int argc, char **argv);

int weft_activity_main(int (*first_activity)(void), int argc, char **argv)
{
	struct main_call m = {(main_t *)(uintptr_t)first_activity, argc, argv, 0};
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

/* The program's activity_main, by the name that weft/charcoal.h gives it. */
extern int weft__first_activity(void) __attribute__((weak));
WEFT_API int weft__activity_main(int argc, char **argv);

WEFT__LAST_WORDS(static, die_undefined, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line,
			"the program declares activity_main, and does not define it: define it, or main in its place");
	weft__line_die(&line);
}

/* main jumps here: see weft/charcoal.h. */
int weft__activity_main(int argc, char **argv)
{
	if (!weft__first_activity)
		die_undefined();
	return weft_activity_main(weft__first_activity, argc, argv);
}
