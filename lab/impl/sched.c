/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tasks: starting and joining one, giving way, handing an item over, a tree of them.
 *
 *   ./program case=NAME n=COUNT workers=W
 *
 * `wait` waits for what has happened already, by the effect; `direct` suspends the task's coroutine for the same
 * request, without a search for who handles it.
 */
#include "lab.h"
#include <weft/sync.h>

struct run {
	int64_t n, result;
	uint64_t ops;
	const char *name;
};

/* ---- spawn and join --------------------------------------------------------------------------------------------- */

static void *adds(void *sum)
{
	++*(int64_t *)sum;
	return sum;
}

static void spawn_join(struct run *r)
{
	weft_task_t task;

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++)
		if (weft_scope_spawn_with(&scope, &task, adds, &r->result, NULL) || weft_join(&task, NULL))
			lab_die("spawn");
	r->ops = (uint64_t)r->n;
}

/* ---- yield ------------------------------------------------------------------------------------------------------ */

static void *gives_way(void *argument)
{
	struct run *r = argument;

	for (int64_t i = 0; i < r->n / 10; i++)
		weft_task_yield();
	__atomic_fetch_add(&r->result, r->n / 10, __ATOMIC_RELAXED);
	return r;
}

static void yield(struct run *r)
{
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++)
		if (weft_scope_spawn(&scope, gives_way, r))
			lab_die("spawn");
	weft_scope_wait(&scope);
	r->ops = (uint64_t)r->result;
}

/* ---- channels --------------------------------------------------------------------------------------------------- */

struct pair {
	weft_chan_t *to, *back;
};

static void *echoes(void *argument)
{
	struct pair *p = argument;
	int64_t item;

	while (weft_chan_receive(p->to, &item) == 0)
		weft_chan_send(p->back, &item);
	return p;
}

static void hop(struct run *r)
{
	struct pair p = {weft_chan_make(sizeof(int64_t), 0), weft_chan_make(sizeof(int64_t), 0)};
	int64_t item;

	WEFT_SCOPE(scope);
	if (!p.to || !p.back || weft_scope_spawn(&scope, echoes, &p))
		lab_die("channels");
	for (int64_t i = 1; i <= r->n; i++) {
		weft_chan_send(p.to, &i);
		weft_chan_receive(p.back, &item);
		r->result += item;
	}
	weft_chan_close(p.to);
	weft_scope_wait(&scope);
	weft_chan_free(p.to);
	weft_chan_free(p.back);
	r->ops = 2 * (uint64_t)r->n;
}

/* ---- what the effect costs -------------------------------------------------------------------------------------- */

static void over(weft_waiter_t *w)
{
	weft_waiter_init(w, "nothing", NULL, WEFT_NEVER);
	weft_waiter_claim(w, 0);
	weft_waiter_complete(w);
}

static void wait_by_effect(struct run *r)
{
	weft_waiter_t w;

	for (int64_t i = 0; i < r->n; i++) {
		over(&w);
		r->result += weft_wait(&w);
	}
	r->ops = (uint64_t)r->n;
}

static void wait_directly(struct run *r)
{
	weft_coro_t *task = weft_current();
	weft_args_t(weft_op_wait) frame = {0};
	weft_waiter_t w;

	for (int64_t i = 0; i < r->n; i++) {
		over(&w);
		frame.waiter = &w;
		weft_yield(task, &weft_effect_weft_op_wait, &frame);
		r->result += w.result;
	}
	r->ops = (uint64_t)r->n;
}

/* ---- skynet ----------------------------------------------------------------------------------------------------- */

struct part {
	int64_t first, count, sum;
};

static void *skynet_part(void *argument)
{
	struct part *p = argument, parts[10];

	if (p->count == 1) {
		p->sum = p->first;
		return p;
	}
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++) {
		parts[i] = (struct part){p->first + i * (p->count / 10), p->count / 10, 0};
		if (weft_scope_spawn(&scope, skynet_part, &parts[i]))
			lab_die("spawn");
	}
	weft_scope_wait(&scope);
	for (int i = 0; i < 10; i++)
		p->sum += parts[i].sum;
	return p;
}

static void skynet(struct run *r)
{
	struct part all = {0, r->n, 0};

	skynet_part(&all);
	r->result = all.sum;
	r->ops = (uint64_t)r->n;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static uint64_t bytes;

static void *waits(void *event)
{
	weft_event_wait(event);
	return event;
}

static void memory(struct run *r)
{
	uint64_t before = lab_resident() + lab_page_tables();
	weft_event_t event = {0};

	WEFT_SCOPE(scope);
	for (int64_t i = 0; i < r->n; i++) {
		if (weft_scope_spawn(&scope, waits, &event))
			lab_die("spawn");
		weft_task_yield();
	}
	bytes = lab_resident() + lab_page_tables() - before;
	weft_event_set(&event);
	weft_scope_wait(&scope);
	r->result = r->n;
	r->ops = (uint64_t)r->n;
}

static const struct {
	const char *name;
	void (*run)(struct run *r);
} cases[] = {{"spawn_join", spawn_join}, {"yield", yield},   {"hop", hop},	     {"wait", wait_by_effect},
	     {"direct", wait_directly},	 {"skynet", skynet}, {"task_memory", memory}};

static void *first(void *argument)
{
	struct run *r = argument;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (!strcmp(cases[i].name, r->name)) {
			lab_start();
			cases[i].run(r);
			lab_stop();
			return r;
		}
	lab_die("no such case");
	return NULL;
}

int main(int argc, char **argv)
{
	struct run r = {.n = lab_number(argc, argv, "n", 1000), .name = lab_text(argc, argv, "case")};
	weft_rt_config_t config = {.workers = (unsigned)lab_number(argc, argv, "workers", 1)};
	char result[32], more[64] = "";

	config.task.stack_size = (size_t)lab_number(argc, argv, "stack", 0);
	if (!r.name || weft_rt_run(&config, first, &r, NULL))
		lab_die("weft_rt_run");
	snprintf(result, sizeof(result), "%" PRId64, r.result);
	if (bytes)
		snprintf(more, sizeof(more), ", \"bytes\": %.1f", (double)bytes / (double)r.n);
	return lab_report_more(r.ops, result, more);
}
