/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every task does, for people. Tasks are found from the runtime's list, through the scopes that they have open;
 * the locks on the way down stay held, so that neither a scope nor a task on the way ends.
 */
#include "sched/sched.h"

#include <stdio.h>

struct dump {
	int fd;
	uint64_t now;
	size_t tasks;
};

static void dump_task(struct dump *d, struct weft__task *task, unsigned depth);

static void dump_list(struct dump *d, struct weft__task *task, unsigned depth)
{
	for (; task; task = task->scope_next)
		dump_task(d, task, depth);
}

static void dump_scopes(struct dump *d, weft_scope_t *s, unsigned depth)
{
	for (; s; s = s->outer) {
		weft__spin_lock(&s->lock);
		dump_list(d, s->tasks, depth);
		weft__spin_unlock(&s->lock);
	}
}

static void dump_task(struct dump *d, struct weft__task *task, unsigned depth)
{
	const char *what = __atomic_load_n(&task->what, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&task->since, __ATOMIC_RELAXED);
	const char *name = weft_name(task->k);

	d->tasks++;
	dprintf(d->fd, "%*stask #%llu%s%s%s: ", (int)(2 * depth), "", (unsigned long long)weft_id(task->k),
		name && *name ? " \"" : "", name ? name : "", name && *name ? "\"" : "");
	if (what)
		dprintf(d->fd, "waits for %s %p, %.3f s", what, __atomic_load_n(&task->object, __ATOMIC_RELAXED),
			since < d->now ? (double)(d->now - since) / 1e9 : 0.0);
	else
		dprintf(d->fd, "runs, or is about to");
	dprintf(d->fd, "%s; %s\n",
		__atomic_load_n(&task->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED ? ", cancelled" : "",
		weft_policy_name(weft_policy(task->k)));
	weft__spin_lock(&task->open_lock);
	dump_scopes(d, task->open, depth + 1);
	weft__spin_unlock(&task->open_lock);
}

void weft__dump(struct weft__rt *rt, int fd)
{
	struct dump d = {fd, weft__rt_now(rt), 0};

	weft__spin_lock(&rt->detached_lock);
	dump_list(&d, rt->detached, 0);
	weft__spin_unlock(&rt->detached_lock);
	dprintf(fd, "%zu tasks, %u workers, %u idle\n", d.tasks, rt->workers, atomic_load(&rt->idle));
}

void weft_dump(int fd)
{
	struct weft__task *task = weft__task();

	if (task)
		weft__dump(task->rt, fd);
}
