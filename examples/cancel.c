/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * cancel.c: asks three mirrors for the same file, and the first complete download wins. The downloads that still wait
 * are cancelled: the operation in which each waits performs an exception instead of returning an answer. So each
 * function closes the files that it opened, and a download that is content with a part catches the exception.
 */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin performer */
WEFT_EFFECT(int, receive);
WEFT_EXCEPTION(cancelled, const char *, why);

enum { WHOLE = 300 };

struct download {
	const char *mirror;
	int speed, bytes;
	weft_fn_t *body;
	FILE *file;
	weft_resumption_t waiting;
};

static void close_file(void *arg)
{
	struct download *d = arg;

	printf("%s: file closed\n", d->mirror);
	fclose(d->file);
}

static void *fetch(void *arg)
{
	struct download *d = arg;

	d->file = tmpfile();
	if (!d->file)
		cancelled("there is no room for a file");
	weft_defer(close_file, d);
	while (d->bytes < WHOLE)
		d->bytes += receive(); /* waits, and may be cancelled here */
	printf("%s: all %d bytes\n", d->mirror, d->bytes);
	return d;
}
/* doc: end */

/* doc: begin within */
static void *on_cut_short(void *state, const char *why)
{
	struct download *d = state;

	printf("%s: keeps %d bytes, though %s\n", d->mirror, d->bytes, why);
	return d;
}

WEFT_HANDLER(partly, weft_abort(cancelled, on_cut_short), weft_on_failure(must_have_memory));

static void *fetch_some(void *arg)
{
	return weft_run(&partly, arg, fetch, arg);
}
/* doc: end */

/* doc: begin handler */
static void *on_receive(void *state, weft_resumption_t *k)
{
	struct download *d = state;

	d->waiting = weft_keep(k);
	return d;
}

static void *on_cancelled(void *state, const char *why)
{
	struct download *d = state;

	printf("%s: cancelled, %s\n", d->mirror, why);
	return d;
}

WEFT_HANDLER(downloading, weft_general(receive, on_receive), weft_abort(cancelled, on_cancelled),
	     weft_on_failure(must_have_memory));
/* doc: end */

/* doc: begin race */
int main(void)
{
	struct download d[] = {{"far", 50, .body = fetch},
			       {"slow", 20, .body = fetch_some},
			       {"near", 100, .body = fetch}};
	bool done = false;

	weft_set_failure_hook(must_not_fail);
	for (int i = 0; i < 3; i++)
		weft_run(&downloading, &d[i], d[i].body, &d[i]); /* until the download waits */
	while (!done)
		for (int i = 0; i < 3; i++) {
			if (weft_is_valid(&d[i].waiting))
				weft_continue(receive, &d[i].waiting, d[i].speed);
			done |= !weft_is_valid(&d[i].waiting);
		}
	for (int i = 0; i < 3; i++)
		if (weft_is_valid(&d[i].waiting))
			weft_continue_throw(&d[i].waiting, cancelled, "another mirror was faster");
}
/* doc: end */
