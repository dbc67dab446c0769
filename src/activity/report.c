/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Descriptions of activities for people: in reports of a deadlock, and by weft_activity_dump. */
#include <string.h>
#include <unistd.h>

#include "activity/activity.h"
#include "internal/message.h"

enum { FRAMES = 16, REPORTED = 20 };

static void describe(struct weft__line *line, const weft_activity_t *a)
{
	static const char *const states[] = {
	    [WEFT__A_NEW] = "is not activated", [WEFT__A_READY] = "is ready", [WEFT__A_RUNNING] = "runs"};

	weft__line_text(line, "activity ");
	weft__line_address(line, (uintptr_t)a);
	weft__line_text(line, a->flags & WEFT__CLEANS_UP     ? " (ends) "
			      : a->flags & WEFT__A_CANCELLED ? " (cancelled) "
							     : " ");
	if (a->state < WEFT__A_WAITS) {
		weft__line_text(line, states[a->state] ? states[a->state] : "has ended");
		return;
	}
	weft__line_text(line, "waits for ");
	if (a->state == WEFT__FOR_SEM)
		weft__line_text(line, "semaphore ");
	else if (a->state == WEFT__FOR_END)
		weft__line_text(line, "the end of activity ");
	else if (a->state == WEFT__FOR_WAKER)
		weft__line_text(line, "waker ");
	else if (a->state == WEFT__FOR_MAIL)
		weft__line_text(line, "mailbox ");
	else if (a->state == WEFT__FOR_TIME)
		weft__line_text(line, "a time");
	else if (a->state == WEFT__FOR_CALL)
		weft__line_text(line, ((struct weft__call *)a->object)->name);
	if (a->state == WEFT__FOR_MAIL)
		weft__line_address(line, (uintptr_t)weft__mail_of(a->object));
	else if (a->state < WEFT__FOR_CALL && a->state != WEFT__FOR_TIME)
		weft__line_address(line, (uintptr_t)weft__waits_for(a));
}

static void report(weft_activity_t *a, void *count)
{
	struct weft__line line;

	if (++*(size_t *)count > REPORTED)
		return;
	weft__line_begin(&line);
	describe(&line, a);
	weft__line_write(&line);
}

void weft__report_deadlock(struct weft__activity_group *g)
{
	struct weft__line line;
	size_t count = 0;

	weft__line_begin(&line);
	weft__line_text(&line, "deadlock: all activities of a group wait, and nothing can wake one of them");
	weft__line_write(&line);
	weft__each_activity(g, report, &count);
	if (count <= REPORTED)
		return;
	weft__line_begin(&line);
	weft__line_text(&line, "and ");
	weft__line_number(&line, count - REPORTED);
	weft__line_text(&line, " more activities");
	weft__line_write(&line);
}

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

struct dump {
	struct weft__activity_group *group;
	int fd, error;
};

static void write_line(struct dump *d, struct weft__line *line)
{
	line->text[line->length++] = '\n';
	if (!d->error && write(d->fd, line->text + WEFT__LINE_BODY, line->length - WEFT__LINE_BODY) < 0)
		d->error = -errno;
}

static void dump_one(weft_activity_t *a, void *dump)
{
	struct dump *d = dump;
	void *places[FRAMES];
	struct weft__line line;
	size_t count, i;

	weft__line_begin(&line);
	describe(&line, a);
	write_line(d, &line);
	if (a->state <= WEFT__A_NEW || a->state == WEFT__A_RUNNING || a->state == WEFT__A_ENDED)
		return;
	count = weft__activity_backtrace(d->group, a, places, FRAMES);
	for (i = 0; i < count; i++) {
		weft__line_begin(&line);
		weft__line_text(&line, "   ");
		weft__line_place(&line, "", places[i]);
		write_line(d, &line);
	}
}

/* ---- in dumps of tasks ------------------------------------------------------------------------------------------- */

struct telling {
	void (*line)(const struct weft__line *line, void *arg);
	void *arg;
};

static void tell_one(weft_activity_t *a, void *telling)
{
	const struct telling *t = telling;
	struct weft__line line;

	weft__line_begin(&line);
	describe(&line, a);
	t->line(&line, t->arg);
}

void weft__report_inside(const struct weft__inside *inside, void (*line)(const struct weft__line *line, void *arg),
			 void *arg)
{
	size_t at = offsetof(struct weft__activity_group, inside);
	struct telling t = {line, arg};

	weft__each_activity((struct weft__activity_group *)(uintptr_t)((const char *)inside - at), tell_one, &t);
}

int weft_activity_dump(int fd)
{
	struct dump d = {weft__activity_hot.group, fd, 0};

	if (!d.group)
		return -EPERM;
	weft__each_activity(d.group, dump_one, &d);
	return d.error;
}
