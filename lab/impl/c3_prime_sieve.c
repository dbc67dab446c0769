/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C3 prime sieve: a chain of filter coroutines, one per prime found, passes numbers on. The result is the n-th prime.
 */
#include "lab.h"
#include <weft/weft.h>

static void *count_up(void *unused)
{
	weft_coro_t *self = weft_current();
	int64_t i;

	for (i = 2;; i++)
		weft_yield(self, &weft_suspended, (void *)(intptr_t)i);
	return unused;
}

static int64_t next(weft_coro_t *k)
{
	return (intptr_t)weft_resume(k, NULL, WEFT_HANDLE_NONE).payload;
}

struct filter {
	weft_coro_t *source;
	int64_t prime;
};

static void *filter(void *arg)
{
	const struct filter f = *(struct filter *)arg;
	weft_coro_t *self = weft_current();
	int64_t i;

	for (;;) {
		i = next(f.source);
		if (i % f.prime != 0)
			weft_yield(self, &weft_suspended, (void *)(intptr_t)i);
	}
	return NULL;
}

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k)
		lab_die("weft_create");
	return k;
}

static int64_t run(int64_t n)
{
	struct filter *filters = malloc((size_t)n * sizeof(*filters));
	weft_coro_t *last = make(count_up, NULL);
	int64_t i, prime = 0;

	if (!filters)
		lab_die("malloc");
	for (i = 0; i < n; i++) {
		prime = next(last);
		filters[i] = (struct filter){last, prime};
		last = make(filter, &filters[i]);
	}
	weft_delete(last);
	for (i = n; i-- > 0;)
		weft_delete(filters[i].source);
	free(filters);
	return prime;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 100), prime;

	lab_start();
	prime = run(n);
	lab_stop();
	return lab_report((uint64_t)n, prime);
}
