/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B4 prefetch: binary searches in an array larger than the caches, `streams` of them in turns.
 *
 *   by=turns      examples/interleave.h: the streams switch to each other
 *   by=effect     each probe is an effect; its handler prefetches, and resumes the next stream
 *   by=plain      sequential searches
 *   by=branches   like plain with a branch at each step, so that the processor predicts it and prefetches by prediction
 *   by=both       like plain, but both possible probes of the next step are prefetched before the current probe is used
 */
#include "../../examples/interleave.h"
#include "prefetch.h"
#include <weft/weft.h>

static struct prefetch all;
static size_t sum;

/* ---- in turns ------------------------------------------------------------------------------------------------ */

static size_t search_in_turns(const int32_t *array, size_t count, int32_t key)
{
	interleave_turn_t turn = interleave_turn();
	const int32_t *base = array;

	while (count > PREFETCH_NEAR) {
		touch(turn, &base[count / 2 - 1]);
		PREFETCH_STEP(base, count, key);
	}
	while (count > 1)
		PREFETCH_STEP(base, count, key);
	return (size_t)(base - array) + (*base < key);
}

static void job(void *unused, size_t i)
{
	(void)unused;
	sum += search_in_turns(all.array, all.count, all.keys[i]);
}

static void by_turns(void)
{
	int error = interleave((unsigned)all.streams, all.n, job, NULL);

	errno = -error;
	if (error)
		lab_die("interleave");
}

/* ---- an effect for each probe -------------------------------------------------------------------------------- */

WEFT_EFFECT(void, probe, const int32_t *, address);

static size_t search_by_effect(const int32_t *array, size_t count, int32_t key)
{
	const int32_t *base = array;

	while (count > PREFETCH_NEAR) {
		probe(&base[count / 2 - 1]);
		PREFETCH_STEP(base, count, key);
	}
	while (count > 1)
		PREFETCH_STEP(base, count, key);
	return (size_t)(base - array) + (*base < key);
}

static void *stream(void *next)
{
	size_t *i = next;

	while (*i < all.n)
		sum += search_by_effect(all.array, all.count, all.keys[(*i)++]);
	return NULL;
}

static void by_effect(void)
{
	weft_coro_t **k = malloc(all.streams * sizeof(*k));
	size_t left = all.streams, next = 0, i;

	if (!k)
		lab_die("malloc");
	for (i = 0; i < left; i++)
		if (!(k[i] = weft_create(stream, &next)))
			lab_die("weft_create");
	for (i = 0; left; i = i < left ? i : 0) {
		weft_request_t r = weft_resume(k[i], NULL, weft_handles(probe));

		if (weft_returned(r)) {
			weft_delete(k[i]);
			k[i] = k[--left];
		} else {
			__builtin_prefetch(weft_args(probe, r)->address);
			i++;
		}
	}
	free(k);
}

/* ---- sequential ---------------------------------------------------------------------------------------------- */

static size_t search_plain(const int32_t *array, size_t count, int32_t key)
{
	const int32_t *base = array;

	while (count > 1)
		PREFETCH_STEP(base, count, key);
	return (size_t)(base - array) + (*base < key);
}

static size_t search_with_branches(const int32_t *array, size_t count, int32_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		/* The empty statements prevent the compiler from removing the branch. */
		if (array[middle] < key) {
			__asm__ volatile("");
			low = middle + 1;
		} else {
			__asm__ volatile("");
			high = middle;
		}
	}
	return low;
}

static size_t search_both(const int32_t *array, size_t count, int32_t key)
{
	const int32_t *base = array;

	while (count > 1) {
		size_t half = count / 2, quarter = (count - half) / 2;

		if (quarter) {
			__builtin_prefetch(&base[quarter - 1]);
			__builtin_prefetch(&base[half + quarter - 1]);
		}
		PREFETCH_STEP(base, count, key);
	}
	return (size_t)(base - array) + (*base < key);
}

#define ONE_AFTER_ANOTHER(name, search)                                                                                \
	static void name(void)                                                                                         \
	{                                                                                                              \
		size_t i;                                                                                              \
                                                                                                                       \
		for (i = 0; i < all.n; i++)                                                                            \
			sum += search(all.array, all.count, all.keys[i]);                                              \
	}

ONE_AFTER_ANOTHER(by_plain, search_plain)
ONE_AFTER_ANOTHER(by_branches, search_with_branches)
ONE_AFTER_ANOTHER(by_both, search_both)

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
    {"turns", by_turns}, {"effect", by_effect}, {"plain", by_plain}, {"branches", by_branches}, {"both", by_both},
};

int main(int argc, char **argv)
{
	size_t i;

	all = prefetch_make(argc, argv);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!lab_is(argc, argv, "by", ways[i].name))
			continue;
		lab_start();
		ways[i].run();
		lab_stop();
		return lab_report(all.n, (int64_t)sum);
	}
	errno = 0;
	lab_die("by=turns, effect, plain, branches or both");
}
