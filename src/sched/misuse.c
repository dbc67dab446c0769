/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports of broken rules: a line that names the function and says how to correct the program, then abort(). */
#include "sched/sched.h"

#include "internal/message.h"

WEFT__LAST_WORDS(, weft__misused, (const char *function, const char *rule), function, rule)
{
	struct weft__task *task = weft__task();
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, function);
	weft__line_text(&line, " ");
	weft__line_text(&line, rule);
	if (task) {
		weft__line_text(&line, "; in the task of ");
		weft__line_coroutine(&line, weft_name(task->k), weft_id(task->k));
	}
	weft__line_die(&line);
}

/*
 * A child of fork has only the thread that called it. The child's thread continues the task that called fork; any other
 * task that it would resume also runs in the parent. So the child replaces the function that resumes, at no cost to
 * other processes, and a worker that finds no task compares the number of forks.
 */
static unsigned forks;

WEFT__LAST_WORDS(static, die_forked, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line,
			"tasks went on in a child of fork, which has no workers: call exec or _exit in the child, "
			"or fork before weft_rt_run");
	weft__line_die(&line);
}

static weft_request_t resume_in_child(weft_coro_t **k, void *value, uintptr_t handled)
{
	(void)k, (void)value, (void)handled;
	die_forked();
}

static void note_fork(void)
{
	struct weft__worker *w = weft__worker();

	forks++;
	if (w && !w->rt->sim)
		w->rt->resume = resume_in_child;
}

__attribute__((constructor(104))) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, note_fork);
}

unsigned weft__forks(void)
{
	return forks;
}

void weft__check_fork(const struct weft__rt *rt)
{
	if (__builtin_expect(rt->forks != forks, 0) && !rt->sim)
		die_forked();
}
