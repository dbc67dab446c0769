/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* shops.c: three tasks wait at the same time, until the deadline of their scope. docs/tutorial/tasks.md, step 1. */
/* doc: begin task */
#include <stdio.h>
#include <string.h>
#include <weft/sched.h>

#define MS 1000000ull

struct shop {
	const char *name;
	int price;
	uint64_t delay; /* nanoseconds */
};

static void hang_up(struct shop *shop)
{
	printf("%s: hung up\n", shop->name);
}

static void *ask(void *argument)
{
	struct shop *shop = argument;

	weft_defer(hang_up, shop);
	weft_sleep(shop->delay); /* in place of a network */
	printf("%s: %d\n", shop->name, shop->price);
	return NULL;
}
/* doc: end */

/* doc: begin scope */
static void *compare(void *unused)
{
	struct shop shops[] = {{"far", 30, 300 * MS}, {"near", 20, 100 * MS}, {"slow", 10, 3000 * MS}};
	int error = 0;

	WEFT_SCOPE_UNTIL(scope, weft_now() + 1000 * MS);
	for (int i = 0; i < 3 && !error; i++)
		error = weft_scope_spawn(&scope, ask, &shops[i]);
	if (!error)
		error = weft_scope_wait(&scope);
	if (error == -ETIMEDOUT)
		printf("the deadline has passed\n");
	else if (error)
		weft_task_fail(error);
	return unused;
}
/* doc: end */

/* doc: begin main */
int main(void)
{
	int error = weft_rt_run(NULL, compare, NULL, NULL);

	if (error)
		fprintf(stderr, "shops: %s\n", strerror(-error));
	return error != 0;
}
/* doc: end */
