/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A2 busy switch: a coroutine does volatile arithmetic and performs an effect, n times; the handler locks a mutex, sums
 * 0…99 into a global, and unlocks. One run is one coroutine, from its creation to its deletion.
 * plain=1: the handler is called.
 */
#include "mechanism.h"
#include <pthread.h>
#include <weft/weft.h>

WEFT_EFFECT(void, work);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int64_t total;

static void arithmetic(void)
{
	volatile int64_t x = 1;
	int i;

	for (i = 0; i < 10; i++)
		x = x * 3 + 1;
}

static void *body(void *arg)
{
	const int64_t *n = arg;
	int64_t i;

	for (i = 0; i < *n; i++) {
		arithmetic();
		work();
	}
	return NULL;
}

static LAB_NOINLINE void handle(void)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < 100; i++)
		total += i;
	pthread_mutex_unlock(&lock);
}

static void run(int64_t n)
{
	weft_attr_t attr = {.name = "busy", .stack_size = 150 * 1024};
	weft_coro_t *k = weft_create_with(body, &n, &attr);
	weft_request_t r;

	if (!k)
		lab_die("weft_create_with");
	weft_handle (r, k, work)
		handle();
	weft_delete(k);
}

static void run_plain(int64_t n)
{
	int64_t i;

	for (i = 0; i < n; i++) {
		arithmetic();
		handle();
	}
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), laps = lab_number(argc, argv, "laps", 1), i;
	bool plain = lab_number(argc, argv, "plain", 0);

	lab_need_mechanism();
	(plain ? run_plain : run)(1);
	total = 0;
	lab_start();
	for (i = 0; i < laps; i++)
		(plain ? run_plain : run)(n);
	lab_stop();
	return lab_report((uint64_t)laps, total / laps);
}
