/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A cooperative scheduler: fork, yield and print; the old spelling seff_handle; tasks in a ring buffer. C and C++. */
#include <stdio.h>
#include <string.h>

#include "seff.h"

DEFINE_EFFECT(yield, 0, void, {});
DEFINE_EFFECT(fork, 1, void, {
	seff_start_fun_t *task_fn;
	void *task_arg;
});
DEFINE_EFFECT(print, 2, void, { const char *text; });

#define RING 64

typedef struct {
	seff_coroutine_t *tasks[RING];
	size_t head, tail;
} ring_t;

static void push(ring_t *ring, seff_coroutine_t *k)
{
	ring->tasks[ring->tail++ % RING] = k;
}

static void *worker(void *arg)
{
	char text[64];

	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "worker %d, round %d\n", (int)(intptr_t)arg, i);
		PERFORM(print, text);
		PERFORM(yield);
	}
	return NULL;
}

static void *root(void *arg)
{
	for (intptr_t i = 0; i < 10; i++)
		PERFORM(fork, worker, (void *)i);
	PERFORM(print, "root done\n");
	return arg;
}

static void schedule(seff_start_fun_t *fn, void *arg)
{
	static ring_t ring;
	effect_set handled = HANDLES(yield) | HANDLES(fork) | HANDLES(print);

	push(&ring, seff_coroutine_new(fn, arg));
	while (ring.head != ring.tail) {
		seff_coroutine_t *k = ring.tasks[ring.head++ % RING];
		seff_request_t request = seff_handle(k, NULL, handled);

		switch (request.effect) {
			CASE_EFFECT(request, yield, {
				push(&ring, k);
				break;
			});
			CASE_EFFECT(request, fork, {
				push(&ring, k);
				push(&ring, seff_coroutine_new(payload.task_fn, payload.task_arg));
				break;
			});
			CASE_EFFECT(request, print, {
				fputs(payload.text, stdout);
				push(&ring, k);
				break;
			});
			CASE_RETURN(request, {
				seff_coroutine_delete(k);
				break;
			});
		}
	}
}

int main(void)
{
	schedule(root, NULL);
	puts("all done");
	return 0;
}
