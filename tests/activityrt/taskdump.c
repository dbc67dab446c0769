/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A dump of tasks has the activities of a group below the task that runs the group. `taskdump outside`: a thread runs
 * the group, which dumps do not know: the test must fail.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weft/charcoal.h>

static activity_sem_t never;
static int both[2];

static void *group(void *unused)
{
	activity_t waits, reads;

	activity_sem_init(&never, 0);
	activate(&waits)
	{
		activity_sem_wait(&never);
	}
	activate(&reads)
	{
		char byte;

		assert(read(both[0], &byte, 1) == 1);
		activity_sem_post(&never);
	}
	assert(!activity_wait(&waits) && !activity_wait(&reads));
	return unused;
}

static void *run_group(void *unused)
{
	assert(!weft_activity_run(NULL, group, NULL, NULL));
	return unused;
}

static bool has_line(const char *text, const char *words)
{
	const char *at = strstr(text, words), *begin = at;

	while (begin && begin > text && begin[-1] != '\n')
		begin--;
	return at && !strncmp(begin, "    activity 0x", 15); /* below a task of a scope */
}

static bool dump_is_whole(void)
{
	char text[8192] = "";
	FILE *file = tmpfile();
	size_t size;

	assert(file && !weft_dump(fileno(file)));
	rewind(file);
	size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = 0;
	return has_line(text, " waits for semaphore 0x") && has_line(text, " waits for read") &&
	       has_line(text, " waits for the end of activity 0x");
}

static void *first(void *outside)
{
	weft_scope_t scope;
	pthread_t thread;
	int tries = 0;

	weft_scope_open(&scope, WEFT_NEVER);
	if (outside)
		assert(!pthread_create(&thread, NULL, run_group, NULL));
	else
		assert(!weft_scope_spawn(&scope, run_group, NULL));
	while (!dump_is_whole()) /* they may still be on their way */
		if (weft_sleep(10000000) || ++tries == 200) {
			weft_dump(2);
			_exit(1);
		}
	assert(write(both[1], "x", 1) == 1);
	assert(!weft_scope_wait(&scope));
	if (outside)
		pthread_join(thread, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	weft_rt_config_t two = {.workers = 2};

	assert(!pipe(both));
	assert(!weft_rt_run(&two, first, argc > 1 ? argv[1] : NULL, NULL));
	return 0;
}
