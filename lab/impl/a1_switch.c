/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A1 switch: create (150 KB), resume, yield, resume, return; timed around both resumes. fresh=1: every coroutine has a
 * stack that was never used before. Otherwise stacks come from the warm pool.
 */
#include "mechanism.h"
#include <weft/weft.h>

enum { STACK = 150 * 1024, BATCH = 32 };

static void *body(void *counter)
{
	weft_suspend(NULL);
	++*(int64_t *)counter;
	return NULL;
}

static void create(weft_coro_t **k, int64_t count, int64_t *done)
{
	weft_attr_t attr = {.name = "switch", .stack_size = STACK};
	int64_t i;

	for (i = 0; i < count; i++)
		if (!(k[i] = weft_create_with(body, done, &attr)))
			lab_die("weft_create_with");
}

static void resume_all(weft_coro_t **k, int64_t count)
{
	int64_t i;

	for (i = 0; i < count; i++) {
		weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
}

static void delete_all(weft_coro_t **k, int64_t count)
{
	int64_t i;

	for (i = 0; i < count; i++)
		weft_delete(k[i]);
}

/* Reading the clock costs more than a warm coroutine, so a whole batch is timed together. */
static void run(weft_coro_t **k, int64_t batch, int64_t batches, int64_t *done)
{
	int64_t i;

	for (i = 0; i < batches; i++) {
		create(k, batch, done);
		lab_start();
		resume_all(k, batch);
		lab_stop();
		delete_all(k, batch);
	}
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 320), done = 0, warm_up = 0;
	bool fresh = lab_number(argc, argv, "fresh", 0);
	int64_t batch = fresh ? n : BATCH;
	weft_coro_t **k = malloc((size_t)batch * sizeof(*k));

	lab_need_mechanism();
	if (!k)
		lab_die("malloc");
	if (!fresh) {
		run(k, batch, 2, &warm_up);
		lab_spent = (struct lab_clock){0, 0};
	}
	run(k, batch, n / batch, &done);
	return lab_report((uint64_t)done, done);
}
