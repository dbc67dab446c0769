/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * host WAY SCRIPT…: see host.h. The output of each script is printed once; exit code 1 if runs of a script differ or
 * fail. `-t` first: prints the CPU seconds of each script instead of its output.
 *
 *   plain        in main
 *   coro         in a coroutine
 *   interleaved  in five coroutines, which take turns at their pauses
 *   threads      in eight threads made by weft_thread_create
 *   migrating    in six coroutines that four threads pass to each other at their pauses
 *   activities   in three activities, which take turns at each yield that the compiler inserted (REAL_ACTIVITIES)
 *   activity     in one activity, beside a second one that keeps the group busy: for engines with mutexes of threads
 *
 * WEFT_STACK selects the stacks.
 */
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef REAL_ACTIVITIES
#include <weft/activity.h>
#endif
#include <weft/weft.h>

enum { MOST_RUNS = 8, INTERLEAVED = 5, ACTIVITIES = 3, THREADS = 8, MIGRATING = 6, MIGRATING_THREADS = 4 };

static char scratch[200];

/* ---- functions for runs ---- */

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void make_room(struct run *run, size_t more)
{
	if (run->room - run->length > more)
		return;
	run->room = 2 * run->room + more + 4096;
	run->text = (char *)realloc(run->text, run->room);
	if (!run->text)
		die("realloc");
}

void run_write(struct run *run, const char *bytes, size_t length)
{
	make_room(run, length);
	memcpy(run->text + run->length, bytes, length);
	run->length += length;
}

void run_printf(struct run *run, const char *format, ...)
{
	va_list arguments, again;
	int length;

	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	make_room(run, (size_t)length + 1);
	run->length += (size_t)vsnprintf(run->text + run->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
}

void run_pause(struct run *run)
{
	run->pauses++;
#ifdef REAL_ACTIVITIES
	weft_activity_give_way();
#else
	if (weft_current())
		(void)weft_suspend(run);
#endif
}

/* ---- the ways ---- */

static void *run_in_coroutine(void *arg)
{
	engine_run((struct run *)arg);
	return NULL;
}

static weft_coro_t *coroutine_for(struct run *run)
{
	weft_coro_t *k = weft_create(run_in_coroutine, run);

	if (!k)
		die("weft_create");
	weft_set_user_data(k, run);
	return k;
}

/* Resumes once. Returns true if there is more to do. */
static bool step(weft_coro_t *k)
{
	weft_request_t request = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	if (request.effect == &weft_suspended)
		return true;
	if (request.effect) {
		struct run *run = (struct run *)weft_user_data(k);

		run_printf(run, "\nthe coroutine failed: reason %d\n", (int)weft_failure(k));
		run->failed = 1;
	}
	weft_delete(k);
	return false;
}

static void in_main(struct run *runs, int count)
{
	for (int i = 0; i < count; i++)
		engine_run(&runs[i]);
}

static void in_coroutines(struct run *runs, int count)
{
	weft_coro_t *k[MOST_RUNS];
	int live = count;

	for (int i = 0; i < count; i++)
		k[i] = coroutine_for(&runs[i]);
	while (live)
		for (int i = 0; i < count; i++)
			if (k[i] && !step(k[i])) {
				k[i] = NULL;
				live--;
			}
}

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int code = weft_thread_create(thread, NULL, fn, arg);

	if (code) {
		errno = code < 0 ? -code : code;
		die("weft_thread_create");
	}
}

static void in_threads(struct run *runs, int count)
{
	pthread_t threads[MOST_RUNS];

	for (int i = 0; i < count; i++)
		start_thread(&threads[i], run_in_coroutine, &runs[i]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* Coroutines that wait for a thread: a ring with room for all of them. */
static struct {
	pthread_mutex_t lock;
	weft_coro_t *waiting[MOST_RUNS];
	int first, length;
	int live;
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static weft_coro_t *next_waiting(bool *done)
{
	weft_coro_t *k = NULL;

	pthread_mutex_lock(&ring.lock);
	if (ring.length) {
		k = ring.waiting[ring.first];
		ring.first = (ring.first + 1) % MOST_RUNS;
		ring.length--;
	}
	*done = !ring.live;
	pthread_mutex_unlock(&ring.lock);
	return k;
}

static void hand_on(weft_coro_t *k, bool more)
{
	pthread_mutex_lock(&ring.lock);
	if (more)
		ring.waiting[(ring.first + ring.length++) % MOST_RUNS] = k;
	else
		ring.live--;
	pthread_mutex_unlock(&ring.lock);
}

static void *work(void *arg)
{
	bool done = false;

	(void)arg;
	while (!done) {
		weft_coro_t *k = next_waiting(&done);

		if (k)
			hand_on(k, step(k));
		else
			usleep(100);
	}
	return NULL;
}

static void in_migrating_coroutines(struct run *runs, int count)
{
	pthread_t threads[MIGRATING_THREADS];

	ring.first = ring.length = 0;
	ring.live = count;
	for (int i = 0; i < count; i++)
		ring.waiting[ring.length++] = coroutine_for(&runs[i]);
	for (int i = 0; i < MIGRATING_THREADS; i++)
		start_thread(&threads[i], work, NULL);
	for (int i = 0; i < MIGRATING_THREADS; i++)
		pthread_join(threads[i], NULL);
}

#ifdef REAL_ACTIVITIES
struct part {
	struct run *runs;
	int count;
};

static bool running;

/* Its frames, of several sizes, are on the same stacks as the runs' frames. */
static __attribute__((noinline)) unsigned keeps_busy(unsigned depth)
{
	volatile unsigned own[8] = {depth};

	for (unsigned i = 0; i < 100 && running; i++)
		own[i % 8] += i;
	if (depth)
		own[0] += keeps_busy(depth - 1);
	return own[0];
}

static void *first_activity(void *arg)
{
	struct part *part = (struct part *)arg;
	weft_activity_t handles[MOST_RUNS], busy;

	running = true;
	weft_activate(&busy) for (unsigned i = 0; running; i++) keeps_busy(i % 20);

	for (int i = 0; i < part->count; i++)
		weft_activate(&handles[i], i) engine_run(&part->runs[i]);
	for (int i = 0; i < part->count; i++)
		weft_activity_wait(&handles[i]);
	running = false;
	weft_activity_wait(&busy);
	return NULL;
}

static void in_activities(struct run *runs, int count)
{
	weft_activity_config_t config = {.stack_size = 16 << 20};
	struct part part = {runs, count};

	if (weft_activity_run(&config, first_activity, &part, NULL))
		die("weft_activity_run");
}
#endif

static const struct way {
	const char *name;
	int runs;
	void (*run)(struct run *runs, int count);
} ways[] = {
    {"plain", 1, in_main},
    {"coro", 1, in_coroutines},
    {"interleaved", INTERLEAVED, in_coroutines},
    {"threads", THREADS, in_threads},
    {"migrating", MIGRATING, in_migrating_coroutines},
#ifdef REAL_ACTIVITIES
    {"activities", ACTIVITIES, in_activities},
    {"activity", 1, in_activities},
#endif
};

/* ---- scripts ---- */

static char *directory_for(int number)
{
	char *directory = NULL;

	if (asprintf(&directory, "%s/%d", scratch, number) < 0 || mkdir(directory, 0700))
		die("a directory for the run");
	return directory;
}

static void remove_directory(const char *directory)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf -- '%s'", directory);
	if (system(command))
		fprintf(stderr, "cannot remove %s\n", directory);
}

/* Prints the first line in which two runs differ to standard error. */
static void show_difference(const struct run *a, const struct run *b)
{
	size_t at = 0, line = 1, begin = 0;

	for (; at < a->length && at < b->length && a->text[at] == b->text[at]; at++)
		if (a->text[at] == '\n') {
			line++;
			begin = at + 1;
		}
	fprintf(stderr, "%s: runs %d and %d differ in line %zu:\n  %.*s\n  %.*s\n", a->script, a->number, b->number,
		line, (int)strcspn(a->text + begin, "\n"), a->text + begin, (int)strcspn(b->text + begin, "\n"),
		b->text + begin);
}

static bool same(const struct run *a, const struct run *b)
{
	return a->length == b->length && !memcmp(a->text, b->text, a->length);
}

static bool check(const struct run *runs, int count)
{
	bool good = true;

	for (int i = 0; i < count; i++) {
		if (runs[i].failed) {
			fprintf(stderr, "%s: run %d failed:\n%.*s\n", runs[i].script, i, 4000,
				runs[i].length > 4000 ? runs[i].text + runs[i].length - 4000 : runs[i].text);
			good = false;
		} else if (!same(&runs[0], &runs[i]) || runs[i].pauses != runs[0].pauses) {
			show_difference(&runs[0], &runs[i]);
			good = false;
		}
	}
	return good;
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool run_script(const struct way *way, const char *script, bool timed)
{
	struct run runs[MOST_RUNS] = {{0}};
	double began;
	bool good;

	for (int i = 0; i < way->runs; i++) {
		runs[i].script = script;
		runs[i].number = i;
		runs[i].directory = directory_for(i);
		run_write(&runs[i], "", 1);
		runs[i].length = 0;
	}
	began = cpu_seconds();
	way->run(runs, way->runs);
	if (timed)
		printf("%.4f\n", cpu_seconds() - began);
	good = check(runs, way->runs);
	if (!timed)
		fwrite(runs[0].text, 1, runs[0].length, stdout);
	for (int i = 0; i < way->runs; i++) {
		remove_directory(runs[i].directory);
		free((char *)runs[i].directory);
		free(runs[i].text);
	}
	return good;
}

/* Prints statistics that show whether the tested mechanism of the stacks was used. */
static void show_statistics(void)
{
	weft_stack_stats_t stats;

	if (!weft_stack_stats(WEFT_DEFAULT_POLICY, &stats))
		fprintf(stderr, "%s: grown=%zu linked=%zu faults=%zu probes=%zu\n",
			weft_policy_name(weft_default_policy()), stats.growths, stats.splits, stats.faults,
			stats.probes);
}

static const struct way *way_named(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	fprintf(stderr, "%s: unknown way '%s'\n", engine_name, name);
	exit(2);
}

int main(int argc, char **argv)
{
	bool timed = argc > 1 && !strcmp(argv[1], "-t"), good = true;
	const struct way *way;

	argv += 1 + timed;
	if (!argv[0] || !argv[1]) {
		fprintf(stderr, "usage: %s [-t] WAY SCRIPT...\n", engine_name);
		return 2;
	}
	way = way_named(*argv);
	snprintf(scratch, sizeof(scratch), "%s/real-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(scratch))
		die(scratch);
	engine_start();
	while (*++argv)
		good = run_script(way, *argv, timed) && good;
	remove_directory(scratch);
	show_statistics();
	return !good;
}
