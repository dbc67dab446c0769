/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 parsing_dollars: line i of the input has i dollar signs. A parser reads characters by an effect, counts dollars up
 * to the end of a line, emits the count, and is stopped by an exception at the end. Three handlers are nested: the
 * sum outermost, then the catch, then the feed. form=table: two tail clauses and an abort clause. form=hot: the
 * parser guesses the tail clauses. plain=1: the same with callbacks and return values.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_EFFECT(int, read_char);
WEFT_EFFECT(void, emit, int64_t, count);
WEFT_EXCEPTION(stop);

static void *parse(void *unused)
{
	int64_t count = 0;

	for (;;) {
		switch (read_char()) {
		case '$':
			count++;
			break;
		case '\n':
			emit(count);
			count = 0;
			break;
		default:
			stop();
		}
	}
	return unused;
}

/* Answers read_char: line after line, then stops. */
static void *feed(void *arg)
{
	const int64_t *lines = arg;
	int64_t line = 0, left = 0, end = *lines;
	weft_coro_t *k = weft_create(parse, NULL);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, read_char) {
		if (line > end)
			stop();
		if (left == 0) {
			line++;
			left = line;
			weft_reply(read_char, r, '\n');
		} else {
			left--;
			weft_reply(read_char, r, '$');
		}
	}
	weft_delete(k);
	return NULL;
}

static void *catching(void *arg)
{
	weft_coro_t *k = weft_create(feed, arg);

	if (!k)
		lab_die("weft_create");
	weft_resume(k, NULL, weft_handles(stop));
	weft_delete(k);
	return NULL;
}

static int64_t run(int64_t lines)
{
	weft_coro_t *k = weft_create(catching, &lines);
	weft_request_t r;
	int64_t sum = 0;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, emit)
		sum += weft_args(emit, r)->count;
	weft_delete(k);
	return sum;
}

struct feed {
	int64_t line, left, end;
};

/* ---- clauses ---------------------------------------------------------------------------------------------- */

static int on_read(void *state)
{
	struct feed *feed = state;

	if (feed->line > feed->end)
		stop();
	if (feed->left == 0) {
		feed->left = ++feed->line;
		return '\n';
	}
	feed->left--;
	return '$';
}

static void *on_stop(void *unused)
{
	return unused;
}

static void on_emit(void *sum, int64_t count)
{
	*(int64_t *)sum += count;
}

WEFT_HANDLER(feeding, weft_tail(read_char, on_read));
WEFT_HANDLER(stopping, weft_abort(stop, on_stop));
WEFT_HANDLER(summing, weft_tail(emit, on_emit));

static void *parse_hot(void *unused)
{
	int64_t count = 0;

	for (;;) {
		switch (weft_perform_hot(read_char, on_read)) {
		case '$':
			count++;
			break;
		case '\n':
			weft_perform_hot(emit, on_emit, count);
			count = 0;
			break;
		default:
			stop();
		}
	}
	return unused;
}

static weft_fn_t *parser = parse;

static void *under_stop(void *feed)
{
	return weft_run(&feeding, feed, parser, NULL);
}

static void *under_sum(void *feed)
{
	return weft_run(&stopping, NULL, under_stop, feed);
}

static int64_t run_table(int64_t lines)
{
	struct feed feed = {0, 0, lines};
	int64_t sum = 0;

	weft_run(&summing, &sum, under_sum, &feed);
	return sum;
}

/* ---- callbacks -------------------------------------------------------------------------------------------- */

static LAB_NOINLINE int feed_plain(void *data)
{
	struct feed *feed = data;

	if (feed->line > feed->end)
		return EOF;
	if (feed->left == 0) {
		feed->left = ++feed->line;
		return '\n';
	}
	feed->left--;
	return '$';
}

static LAB_NOINLINE void sum_plain(void *sum, int64_t count)
{
	*(int64_t *)sum += count;
}

static int64_t run_plain(int64_t lines)
{
	int (*read)(void *) = feed_plain;
	void (*emit)(void *, int64_t) = sum_plain;
	struct feed feed = {0, 0, lines};
	int64_t sum = 0, count = 0;
	int c;

	LAB_HIDE(read);
	LAB_HIDE(emit);
	while ((c = read(&feed)) != EOF) {
		if (c == '$') {
			count++;
		} else {
			emit(&sum, count);
			count = 0;
		}
	}
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), sum;
	bool hot = lab_is(argc, argv, "form", "hot"), clauses = hot || lab_is(argc, argv, "form", "table");

	if (hot)
		parser = parse_hot;
	lab_start();
	if (lab_number(argc, argv, "plain", 0))
		sum = run_plain(n);
	else
		sum = (clauses ? run_table : run)(n);
	lab_stop();
	return lab_report((uint64_t)(n * (n + 1) / 2 + n), sum);
}
