/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generators: by value in an array, escaping into a struct, filtering one another, composed with defer. C and C++. */
#include <stdio.h>
#include <string.h>

#include "seff.h"

DEFINE_EFFECT(defer, 0, void, {
	void (*defer_fn)(void *);
	void *defer_arg;
});
DEFINE_EFFECT(yield_int, 1, void, { int64_t value; });
DEFINE_EFFECT(yield_str, 2, void, { char *elt; });

/* ---- ten generators by value, each of a different length, until all are finished ---- */

static void *count_to(void *arg)
{
	for (int64_t i = 1; i <= (int64_t)arg; i++)
		PERFORM(yield_int, i);
	return NULL;
}

static void array_of_generators(void)
{
	seff_coroutine_t children[10];
	size_t finished = 0;
	int64_t total = 0;

	for (int64_t i = 0; i < 10; i++)
		seff_coroutine_init(&children[i], count_to, (void *)i);
	while (finished < 10)
		for (size_t i = 0; i < 10; i++) {
			if (children[i].state == FINISHED)
				continue;
			seff_request_t request = seff_resume(&children[i], NULL, HANDLES(yield_int));
			if (children[i].state == FINISHED)
				finished++;
			else
				total += ((EFF_PAYLOAD_T(yield_int) *)request.payload)->value;
		}
	for (size_t i = 0; i < 10; i++)
		seff_coroutine_release(&children[i]);
	printf("ten generators: %d\n", (int)total);
}

/* ---- a chain of filters: the sieve; each filter resumes the one before it ---- */

typedef struct filter {
	seff_coroutine_t k;
	struct filter *source;
	int64_t prime;
} filter_t;

static bool next_int(seff_coroutine_t *k, int64_t *value)
{
	seff_request_t request = seff_resume(k, NULL, HANDLES(yield_int));

	switch (request.effect) {
		CASE_EFFECT(request, yield_int, {
			*value = payload.value;
			return true;
		})
		CASE_RETURN(request, { return false; })
	}
	abort();
}

static void *filter(void *arg)
{
	filter_t *self = (filter_t *)arg;
	int64_t value;

	while (next_int(&self->source->k, &value))
		if (value % self->prime)
			PERFORM(yield_int, value);
	return NULL;
}

static void *from_two(void *arg)
{
	for (int64_t i = 2; i <= (int64_t)arg; i++)
		PERFORM(yield_int, i);
	return NULL;
}

static void sieve(void)
{
	filter_t *filters = (filter_t *)malloc(40 * sizeof(*filters));
	size_t count = 0;
	int64_t prime;

	seff_coroutine_init_sized(&filters[0].k, from_two, (void *)(int64_t)100, 1024);
	printf("primes:");
	while (next_int(&filters[count].k, &prime)) {
		filter_t *added = &filters[++count];

		printf(" %d", (int)prime);
		added->source = &filters[count - 1];
		added->prime = prime;
		seff_coroutine_init_sized(&added->k, filter, added, 1024);
	}
	puts("");
	for (size_t i = 0; i <= count; i++)
		seff_coroutine_release(&filters[i].k);
	free(filters);
}

/* ---- strings that are freed when the outer scope ends ---- */

static int freed;

static void counting_free(void *pointer)
{
	freed++;
	free(pointer);
}

static void *squares(void *arg)
{
	for (int64_t i = 0; i < (int64_t)arg; i++) {
		char *text = (char *)malloc(32);

		PERFORM(defer, counting_free, text);
		sprintf(text, "%d", (int)(i * i));
		PERFORM(yield_str, text);
	}
	return NULL;
}

static void *print_all(void *arg)
{
	seff_coroutine_t *k = seff_coroutine_new(squares, arg);

	while (true) {
		seff_request_t request = seff_handle(k, NULL, HANDLES(yield_str));
		switch (request.effect) {
			CASE_EFFECT(request, yield_str, {
				printf("%s ", payload.elt);
				break;
			})
			CASE_RETURN(request, {
				printf("freed so far: %d\n", freed);
				seff_coroutine_delete(k);
				return payload.result;
			})
		}
	}
}

static void *handle_defer(seff_coroutine_t *k)
{
	seff_request_t request = seff_handle(k, NULL, HANDLES(defer));

	switch (request.effect) {
		CASE_EFFECT(request, defer, {
			void *result = handle_defer(k);
			payload.defer_fn(payload.defer_arg);
			return result;
		});
		CASE_RETURN(request, { return payload.result; });
	default:
		exit(-1);
	}
}

int main(void)
{
	seff_coroutine_t *k = seff_coroutine_new(print_all, (void *)(intptr_t)12);

	array_of_generators();
	sieve();
	handle_defer(k);
	seff_coroutine_delete(k);
	printf("freed: %d\n", freed);
	return 0;
}
