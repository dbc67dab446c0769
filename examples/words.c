/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* words.c: counts words in parallel: a reader, a channel with room for eight lines, and four counting tasks. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

enum { COUNTERS = 4, ROOM = 8 };

struct line {
	char text[80];
};

struct count {
	weft_chan_t *lines;
	long lines_seen, words;
};

static void *count(void *argument)
{
	struct count *c = argument;
	struct line line;

	while (weft_chan_receive(c->lines, &line) == 0) {
		c->lines_seen++;
		for (const char *p = line.text; *p; p++)
			c->words += !isspace((unsigned char)*p) && (p == line.text || isspace((unsigned char)p[-1]));
	}
	return NULL;
}

static void make_line(struct line *line, int number)
{
	snprintf(line->text, sizeof line->text, "line %d has %s words", number, number % 2 ? "five" : "exactly five");
}

static void *run(void *unused)
{
	struct count counts[COUNTERS] = {{0}};
	long lines = 0, words = 0;
	weft_chan_t *chan = weft_chan_make(sizeof(struct line), ROOM);
	struct line line;
	int error = chan ? 0 : -ENOMEM, i;

	weft_defer(weft_chan_free, chan);
	WEFT_SCOPE(scope);
	for (i = 0; i < COUNTERS && !error; i++) {
		counts[i].lines = chan;
		error = weft_scope_spawn(&scope, count, &counts[i]);
	}
	for (i = 0; i < 10000 && !error; i++) {
		make_line(&line, i);
		error = weft_chan_send(chan, &line);
	}
	if (error)
		weft_task_fail(error);
	weft_chan_close(chan);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	for (i = 0; i < COUNTERS; i++) {
		lines += counts[i].lines_seen;
		words += counts[i].words;
	}
	printf("%ld lines, %ld words\n", lines, words);
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "words: %s\n", strerror(-error));
	return error != 0;
}
