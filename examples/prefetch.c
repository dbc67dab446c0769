/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A join: for each order, the customer, by binary search in an array of customers; then the same join with many
 * interleaved searches, so that their waits for memory overlap (interleave.h). Both use the same search function.
 *
 *   ./prefetch             a small array, for the answers
 *   ./prefetch 100000000   this number of customers: 0.8 GB, and the time of a search in both ways
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "interleave.h"
#include "must.h"

struct customer {
	uint32_t id, discount;
};

struct join {
	const struct customer *customers;
	size_t count;
	const uint32_t *orders;
	unsigned long long known, discounts;
};

/* Returns the customer with that id, or NULL. */
static const struct customer *find(const struct customer *customers, size_t count, uint32_t id)
{
	interleave_turn_t turn = interleave_turn();

	while (count > 1) {
		size_t half = count / 2;

		touch(turn, &customers[half]);
		customers += half & -(size_t)(customers[half].id <= id);
		count -= half;
	}
	return customers->id == id ? customers : NULL;
}

static void look_up(void *context, size_t i)
{
	struct join *join = context;
	const struct customer *customer = find(join->customers, join->count, join->orders[i]);

	if (customer) {
		join->known++;
		join->discounts += customer->discount;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Interleaved, or sequential if `streams` is 0. */
static double run(struct join *join, size_t orders, unsigned streams)
{
	double began = now();
	size_t i;

	join->known = join->discounts = 0;
	for (i = 0; !streams && i < orders; i++)
		look_up(join, i);
	if (streams && interleave(streams, orders, look_up, join)) {
		perror("interleave");
		exit(1);
	}
	return (now() - began) / (double)orders;
}

int main(int argc, char **argv)
{
	static const unsigned streams[] = {0, 1, 4, 16, 32, 64};
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000, orders = argc > 1 ? 1000000 : 1000, i;
	struct customer *customers = malloc((count + 1) * sizeof(*customers));
	uint32_t *wanted = malloc(orders * sizeof(*wanted)), random = 1;
	struct join join = {.customers = customers, .count = count, .orders = wanted};

	weft_set_failure_hook(must_not_fail);
	if (!customers || !wanted || !count) {
		fprintf(stderr, "usage: prefetch [CUSTOMERS]\n");
		return 1;
	}
	for (i = 0; i < count; i++)
		customers[i] = (struct customer){(uint32_t)(3 * i), (uint32_t)(i % 10)};
	for (i = 0; i < orders; i++) {
		random = random * 1664525 + 1013904223;
		wanted[i] = (uint32_t)((uint64_t)random * (3 * count) >> 32);
	}
	for (i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		double each = run(&join, orders, streams[i]);

		printf("%2u streams: %llu of %zu known, discounts of %llu", streams[i], join.known, orders,
		       join.discounts);
		if (argc > 1)
			printf(", %.0f ns each", each);
		puts("");
	}
	free(customers);
	free(wanted);
	return 0;
}
