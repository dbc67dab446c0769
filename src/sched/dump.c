/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every task does, for people. Tasks are found from the runtime's list, through the scopes that they have open;
 * the locks on the way down stay held, so that neither a scope nor a task on the way ends. Text is gathered in memory,
 * and written when no lock is held: a pipe may be full, and who reads it may need one of them.
 */
#include "sched/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct dump {
	FILE *out;
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
	fprintf(d->out, "%*stask #%llu%s%s%s: ", (int)(2 * depth), "", (unsigned long long)weft_id(task->k),
		name && *name ? " \"" : "", name ? name : "", name && *name ? "\"" : "");
	if (what)
		fprintf(d->out, "waits for %s %p, %.3f s", what, __atomic_load_n(&task->object, __ATOMIC_RELAXED),
			since < d->now ? (double)(d->now - since) / 1e9 : 0.0);
	else
		fprintf(d->out, "runs, or is about to");
	fprintf(d->out, "%s; %s, %zu bytes of stack\n",
		__atomic_load_n(&task->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED ? ", cancelled" : "",
		weft_policy_name(weft_policy(task->k)), weft_stack_usable(task->k));
	weft__spin_lock(&task->open_lock);
	dump_scopes(d, task->open, depth + 1);
	weft__spin_unlock(&task->open_lock);
}

static void dump_worker(struct dump *d, const struct weft__worker *w)
{
	weft_rt_stats_t s = {0};

	weft__worker_stats(w, &s);
	fprintf(d->out,
		"worker %u: %" PRIu64 " switches, %" PRIu64 " spawned, %" PRIu64 " stolen, %" PRIu64
		" timers, slept %" PRIu64 " times\n",
		w->number, s.switches, s.spawned, s.steals, s.timers, s.parks);
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t written;

	while (size) {
		written = write(fd, text, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		size -= (size_t)written;
	}
	return 0;
}

int weft_rt_dump(weft_rt_t *rt, int fd)
{
	struct dump d = {NULL, weft__rt_now(rt), 0};
	char *text = NULL;
	size_t size = 0;
	unsigned i;
	int error;

	d.out = open_memstream(&text, &size);
	if (!d.out)
		return -ENOMEM;
	weft__spin_lock(&rt->detached_lock);
	dump_list(&d, rt->detached, 0);
	weft__spin_unlock(&rt->detached_lock);
	fprintf(d.out, "%zu tasks, %u workers, %u idle\n", d.tasks, rt->workers, atomic_load(&rt->idle));
	for (i = 0; i < rt->workers; i++)
		dump_worker(&d, &rt->worker[i]);
	/* The text is whole, or memory was lacking. */
	error = fclose(d.out) ? -ENOMEM : write_all(fd, text, size);
	free(text);
	return error;
}

int weft_dump(int fd)
{
	struct weft__task *task = weft__task();

	return task ? weft_rt_dump(task->rt, fd) : -EPERM;
}
