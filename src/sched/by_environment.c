/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Simulations that the environment asks for.
 *
 *   WEFT_SIMULATE=SEED         weft_rt_run is weft_simulate
 *   WEFT_SIMULATE=SEED+COUNT   weft_simulate_seeds first
 *   WEFT_SIMULATE=order:…      a list of choices
 *
 * `weft simulate` sets WEFT_SIMULATE_JOBS and WEFT_SIMULATE_TELL (the process that reports progress, and reports if
 * nothing was simulated). It also sets WEFT_SIMULATE_BUILD and WEFT_SIMULATE_PROGRAM, because its program is gone when
 * a person wants to debug it: a shell command that builds the program again, and the program's name then.
 */
#define _GNU_SOURCE
#include "sched/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read digits, up to `most`. False: the text does not begin with a number in range. */
static bool read_number(const char **text, uint64_t most, uint64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*number = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *number <= most;
}

/* ---- a list of choices ------------------------------------------------------------------------------------------ */

/* Read "3=1,8=2,", the last comma may be missing. 0; -EINVAL; -ENOMEM. */
static int read_order(const char *text, uint32_t **order, size_t *choices)
{
	uint64_t place, choice;
	uint32_t *longer;

	*choices = 0;
	*order = calloc(1, sizeof **order);
	if (!*order)
		return -ENOMEM;
	while (*text) {
		if (!read_number(&text, WEFT__CHOICES - 1, &place) || *text++ != '=' ||
		    !read_number(&text, UINT32_MAX, &choice) || (*text && *text++ != ','))
			return -EINVAL;
		if (place >= *choices) {
			longer = realloc(*order, (place + 1) * sizeof *longer);
			if (!longer)
				return -ENOMEM;
			*order = longer;
			memset(longer + *choices, 0, (place + 1 - *choices) * sizeof *longer);
			*choices = place + 1;
		}
		(*order)[place] = (uint32_t)choice;
	}
	return 0;
}

/* Read "NAME=7,", if that is next. False: the name is not followed by a number. */
static bool read_named(const char **text, const char *name, uint64_t *number)
{
	size_t length = strlen(name);

	if (strncmp(*text, name, length))
		return true;
	*text += length;
	return read_number(text, UINT64_MAX, number) && (!**text || *(*text)++ == ',');
}

/* Simulate "seed=7,cost=100,3=1,8=2,": the seed of the world, the cost of a turn, choices. Returns like read_order. */
static int simulate_order(const char *text, const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result,
			  int *outcome)
{
	weft_rt_config_t ordered = config ? *config : (weft_rt_config_t){0};
	uint64_t seed = 0, cost = 0;
	uint32_t *order = NULL;
	int error = -EINVAL;

	if (read_named(&text, "seed=", &seed) && read_named(&text, "cost=", &cost))
		error = read_order(text, &order, &ordered.choices);
	if (!error) {
		ordered.order = order;
		ordered.turn_cost = cost ? cost : WEFT_NEVER;
		*outcome = weft_simulate(seed, &ordered, fn, arg, result);
	}
	free(order);
	return error;
}

/* ---- a command for a debugger ----------------------------------------------------------------------------------- */

static void write_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	fputc('\'', out);
}

/* "gdb --args PROGRAM ARGS…"; NULL: unknown. */
static char *debug_command(const char *program)
{
	FILE *in = fopen("/proc/self/cmdline", "r"), *out;
	char *text = NULL, *word = NULL;
	size_t size, room = 0, words;

	out = in ? open_memstream(&text, &size) : NULL;
	if (out) {
		fputs("gdb --args", out);
		for (words = 0; getdelim(&word, &room, 0, in) > 0; words++) {
			fputc(' ', out);
			write_word(out, !words && program ? program : word);
		}
		fclose(out);
	}
	if (in)
		fclose(in);
	free(word);
	return text;
}

/* ---- asked ------------------------------------------------------------------------------------------------------ */

static bool is_told(void)
{
	const char *who = getenv("WEFT_SIMULATE_TELL");

	return who && strtol(who, NULL, 10) == getpid();
}

__attribute__((destructor)) static void tell_that_nothing_was_simulated(void)
{
	if (!__atomic_load_n(&weft__has_run, __ATOMIC_RELAXED) && is_told())
		dprintf(STDERR_FILENO, "weft: nothing was simulated: the program has not called weft_rt_run\n");
}

/* Returns like weft_simulate_seeds. */
static int explore(uint64_t first, uint64_t count, const weft_rt_config_t *config, weft_fn_t *fn, void *arg)
{
	const char *jobs = getenv("WEFT_SIMULATE_JOBS"), *before = getenv("WEFT_SIMULATE_BUILD");
	weft_rt_config_t with_jobs = config ? *config : (weft_rt_config_t){0};
	char *command = debug_command(getenv("WEFT_SIMULATE_PROGRAM"));
	struct weft__telling telling = {is_told(), before ? before : "", command};
	uint64_t number;
	int result;

	if (jobs && read_number(&jobs, UINT32_MAX, &number) && !*jobs)
		with_jobs.jobs = (unsigned)number;
	result = weft__explore(first, count, &with_jobs, fn, arg, NULL, &telling);
	free(command);
	return result;
}

bool weft__sim_asked(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result, int *outcome)
{
	const char *asked = getenv("WEFT_SIMULATE"), *text = asked;
	uint64_t seed, count = 0;
	int error;

	weft__note_run();
	if (!text || !*text || weft_current())
		return false;
	if (!strncmp(text, "order:", 6)) {
		error = simulate_order(text + 6, config, fn, arg, result, outcome);
		if (error == -ENOMEM)
			*outcome = error;
		if (error != -EINVAL)
			return true;
	} else if (read_number(&text, UINT64_MAX, &seed) &&
		   (!*text || (*text++ == '+' && read_number(&text, UINT64_MAX, &count) && count && !*text))) {
		if (count && explore(seed, count, config, fn, arg))
			_exit(1);
		*outcome = weft_simulate(seed, config, fn, arg, result);
		return true;
	}
	dprintf(STDERR_FILENO, "weft: WEFT_SIMULATE=%s is ignored: say SEED, SEED+COUNT or order:PLACE=CHOICE,…\n",
		asked);
	return false;
}
