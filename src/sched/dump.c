/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A list of all tasks and their states, for people. Tasks are found from the runtime's list, through the scopes that
 * they have open; the locks on the way down stay held, so that neither a scope nor a task on the way ends. The text is
 * gathered in memory, and written when no lock is held: a pipe may be full, and its reader may need one of these locks.
 */
#include "sched/biased_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal/message.h"
#include "stack/policy.h"

enum { PLACES = 128, FRAMES = 8 };

/* An address, and its text, ", made in f at file.c:3". The same address with a different `what` is a different
 * place. */
struct place {
	const char *what;
	const void *at;
	struct weft__line text;
};

struct dump {
	FILE *out; /* NULL: only gather the places */
	uint64_t now;
	size_t tasks;
	struct place *places; /* array of PLACES places */
	unsigned known;
};

static struct place *place_of(struct dump *d, const char *what, const void *at)
{
	unsigned i;

	for (i = 0; i < d->known; i++)
		if (d->places[i].at == at && d->places[i].what == what)
			return &d->places[i];
	return NULL;
}

/* Finding the text may take a while: it is done when no lock is held, between gathering and writing. */
static void dump_place(struct dump *d, const char *what, const void *at)
{
	struct place *p = place_of(d, what, at);

	if (d->out && p)
		fprintf(d->out, "%.*s", (int)p->text.length, p->text.text);
	else if (d->out)
		fprintf(d->out, "%s at %p", what, at);
	else if (!p && d->known < PLACES)
		d->places[d->known++] = (struct place){what, at, {0}};
}

static const char at_wait[] = ",", at_call[] = "called", at_making[] = ", made";

/* The places where the task waits, innermost first. If the task cannot be held, only the newest frame is known. */
static size_t frames_of(struct weft__task *task, void **frames)
{
	size_t count = weft__task_backtrace(task, frames, FRAMES);

	if (count)
		return count;
	frames[0] = __atomic_load_n(&task->k->link.pc, __ATOMIC_RELAXED);
	return frames[0] != (void *)weft__in_running;
}

/* Is the place in a function of Weft's headers? */
static bool is_ours(struct dump *d, const char *what, const void *at)
{
	static const char begins[] = " in weft_";
	struct place *p = place_of(d, what, at);

	return p && !strncmp(p->text.text + strlen(what), begins, sizeof begins - 1);
}

static const void *made_at(const struct weft__task *task)
{
	return __atomic_load_n(&task->made_at, __ATOMIC_RELAXED);
}

/* Like weft_stack_usable, which reads flags that the coroutine changes while it runs. The flags do not matter here: the
 * stack of a task is never copied. */
static size_t stack_bytes(const struct weft__task *task)
{
	const struct weft__slot *slot = task->k->slot;

	return (size_t)((const char *)slot - slot->chunk.low);
}

static void gather_task(struct dump *d, struct weft__task *task, unsigned depth)
{
	void *frames[FRAMES];
	size_t i, count = frames_of(task, frames);

	(void)depth;
	for (i = 0; i < count; i++) {
		dump_place(d, at_wait, frames[i]);
		if (i)
			dump_place(d, at_call, frames[i]);
	}
	if (made_at(task))
		dump_place(d, at_making, made_at(task));
}

struct inside {
	struct dump *dump;
	unsigned depth;
};

static void write_inside(const struct weft__line *line, void *inside)
{
	const struct inside *i = inside;

	fprintf(i->dump->out, "%*s%.*s\n", (int)(2 * i->depth + 2), "", (int)line->length - WEFT__LINE_BODY,
		line->text + WEFT__LINE_BODY);
}

static void write_task(struct dump *d, struct weft__task *task, unsigned depth)
{
	const char *what = __atomic_load_n(&task->what, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&task->since, __ATOMIC_RELAXED);
	const char *name = weft_name(task->k);
	void *frames[FRAMES];
	size_t i = 0, count = what ? frames_of(task, frames) : 0;

	d->tasks++;
	while (i + 1 < count && is_ours(d, at_wait, frames[i]))
		i++;
	fprintf(d->out, "%*stask #%llu%s%s%s: ", (int)(2 * depth), "", (unsigned long long)weft_id(task->k),
		name && *name ? " \"" : "", name ? name : "", name && *name ? "\"" : "");
	if (what)
		fprintf(d->out, "waits for %s %p, %.3f s", what, __atomic_load_n(&task->object, __ATOMIC_RELAXED),
			since < d->now ? (double)(d->now - since) / 1e9 : 0.0);
	else
		fprintf(d->out, "runs, or is about to");
	if (count)
		dump_place(d, at_wait, frames[i]);
	if (made_at(task))
		dump_place(d, at_making, made_at(task));
	fprintf(d->out, "%s; %s, %zu bytes of stack\n",
		__atomic_load_n(&task->cancel, __ATOMIC_RELAXED) & WEFT__CANCELLED ? ", cancelled" : "",
		weft_policy_name(weft_policy(task->k)), stack_bytes(task));
	while (++i < count) {
		fprintf(d->out, "%*s", (int)(2 * depth + 4), "");
		dump_place(d, at_call, frames[i]);
		fputc('\n', d->out);
	}
	weft__task_inside(task, write_inside, &(struct inside){d, depth});
}

/* ---- all tasks, from the runtime's list through their scopes ----------------------------------------------------- */

typedef void visit_t(struct dump *d, struct weft__task *task, unsigned depth);

static void visit_task(struct dump *d, visit_t *visit, struct weft__task *task, unsigned depth);

static void visit_list(struct dump *d, visit_t *visit, struct weft__task *task, unsigned depth)
{
	for (; task; task = task->scope_next)
		visit_task(d, visit, task, depth);
}

static void visit_scopes(struct dump *d, visit_t *visit, weft_scope_t *s, unsigned depth)
{
	for (; s; s = s->outer) {
		weft__scope_lock(s);
		visit_list(d, visit, s->tasks, depth);
		weft__scope_unlock(s);
	}
}

static void visit_task(struct dump *d, visit_t *visit, struct weft__task *task, unsigned depth)
{
	visit(d, task, depth);
	weft__spin_lock(&task->open_lock);
	visit_scopes(d, visit, task->open, depth + 1);
	weft__spin_unlock(&task->open_lock);
}

static void visit_all(struct dump *d, struct weft__rt *rt, visit_t *visit)
{
	struct weft__detached *list;
	unsigned i;

	for (i = 0; i <= rt->workers; i++) {
		list = weft__detached(rt, i);
		weft__spin_lock(&list->lock);
		visit_list(d, visit, list->tasks, 0);
		weft__spin_unlock(&list->lock);
	}
}

static void gather_places(struct dump *d, struct weft__rt *rt)
{
	unsigned i;

	visit_all(d, rt, gather_task);
	for (i = 0; i < d->known; i++)
		weft__line_place(&d->places[i].text, d->places[i].what, d->places[i].at);
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
	struct dump d = {.now = rt ? weft__rt_now(rt) : 0, .places = rt ? malloc(PLACES * sizeof *d.places) : NULL};
	char *text = NULL;
	size_t size = 0;
	unsigned i;
	int error;

	if (!d.places)
		return rt ? -ENOMEM : -EINVAL;
	gather_places(&d, rt);
	d.out = open_memstream(&text, &size);
	if (!d.out) {
		free(d.places);
		return -ENOMEM;
	}
	visit_all(&d, rt, write_task);
	fprintf(d.out, "%zu tasks, %u workers, %u idle\n", d.tasks, rt->workers, atomic_load(&rt->idle));
	for (i = 0; i < rt->workers; i++)
		dump_worker(&d, &rt->worker[i]);
	/* if fclose fails, memory was lacking and the text is incomplete */
	error = fclose(d.out) ? -ENOMEM : write_all(fd, text, size);
	free(text);
	free(d.places);
	return error;
}

int weft_dump(int fd)
{
	struct weft__task *task = weft__task();

	return task ? weft_rt_dump(task->rt, fd) : -EPERM;
}

/* ---- the name of a task ----------------------------------------------------------------------------------------- */

struct search {
	struct dump d;
	struct weft__task *task;
	struct weft__line *line;
	const void *made_at;
	bool found;
};

static void name_task(struct dump *d, struct weft__task *task, unsigned depth)
{
	struct search *s = (struct search *)d;

	(void)depth;
	if (task != s->task)
		return;
	s->found = true;
	s->made_at = made_at(task);
	weft__line_text(s->line, "the task of ");
	weft__line_coroutine(s->line, weft_name(task->k), weft_id(task->k));
}

/* The task is searched for in the lists, because it may have ended. */
bool weft__dump_name(struct weft__rt *rt, struct weft__task *task, struct weft__line *line)
{
	struct search s = {.task = task, .line = line};

	visit_all(&s.d, rt, name_task);
	if (s.found && s.made_at)
		weft__line_place(line, at_making, s.made_at);
	return s.found;
}
