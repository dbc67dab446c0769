/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* skynet.c: a tree of tasks, ten below each, whose leaves add up their numbers. `skynet 1000000` for the usual size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/sched.h>

/* doc: begin skynet */
struct part {
	long first, count, sum;
};

static void *skynet(void *argument)
{
	struct part *p = argument, parts[10];
	int error = 0;

	if (p->count == 1) {
		p->sum = p->first;
		return NULL;
	}
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10 && !error; i++) {
		parts[i] = (struct part){p->first + i * (p->count / 10), p->count / 10, 0};
		error = weft_scope_spawn(&scope, skynet, &parts[i]);
	}
	if (!error)
		error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	for (int i = 0; i < 10; i++)
		p->sum += parts[i].sum;
	return NULL;
}
/* doc: end */

int main(int argc, char **argv)
{
	struct part all = {0, argc > 1 ? atol(argv[1]) : 1000, 0};
	int error = weft_rt_run(NULL, skynet, &all, NULL);

	if (error) {
		fprintf(stderr, "skynet: %s\n", strerror(-error));
		return 1;
	}
	printf("%ld\n", all.sum);
}
