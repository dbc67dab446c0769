/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sets: raw numbers, none and all, the highest bit, static initialisers, a different set at each resume; the handler
 * that gets each effect; ids as case labels; results of every kind. C and C++.
 */
#include <stdio.h>

#include "seff.h"

enum kind { SMALL = 3, LARGE = 300 };

DEFINE_EFFECT(first, 0, int, { int a, b; });
DEFINE_EFFECT(thirty_one, 31, bool, {});
DEFINE_EFFECT(last, 63, const char *, {
	struct {
		int x;
	} inner;
	int values[3];
});
DEFINE_EFFECT(which, 33, enum kind, { enum kind one; });

struct row {
	effect_id id;
	effect_set set;
	const char *name;
};

static const struct row rows[] = {{EFF_ID(first), HANDLES(first), "first"},
				  {EFF_ID(thirty_one), HANDLES(thirty_one) | HANDLES(first), "thirty_one"},
				  {EFF_ID(last), HANDLES(last), "last"},
				  {EFF_ID(return), 0, "return"}};

static const char *name_of(effect_id id)
{
	switch (id) {
	case EFF_ID(first):
		return "first";
	case EFF_ID(thirty_one):
		return "thirty_one";
	case EFF_ID(last):
		return "last";
	case EFF_ID(which):
		return "which";
	case EFF_ID(return):
		return "return";
	default:
		return "?";
	}
}

static void *performs_all(void *arg)
{
	int sum = PERFORM(first, 20, 3);
	bool truth = PERFORM(thirty_one);
	const char *text = PERFORM(last, {5}, {1, 2, 3});
	enum kind kind = PERFORM(which, LARGE);

	printf("  got %d %s %s %d\n", sum, truth ? "true" : "false", text, (int)kind);
	return arg;
}

/* Handles `set` only; other effects pass it. */
static void *handles_some(void *arg)
{
	effect_set set = *(effect_set *)arg;
	seff_coroutine_t *k = seff_coroutine_new_sized(performs_all, NULL, 512);
	void *reply = NULL;

	while (true) {
		seff_request_t request = seff_resume(k, reply, set);

		if (k->state == FINISHED)
			break;
		printf("  inner handler: %s\n", name_of(request.effect));
		reply = (void *)(intptr_t)1;
		if (request.effect == EFF_ID(last))
			reply = (void *)"inner";
	}
	seff_coroutine_delete(k);
	return NULL;
}

static void nested(const char *title, effect_set inner)
{
	seff_coroutine_t *k = seff_coroutine_new(handles_some, &inner);
	seff_request_t request = seff_resume_handling_all(k, NULL);

	printf("%s\n", title);
	while (!seff_finished(request)) {
		void *reply = NULL;

		printf("  outer handler: %s\n", name_of(request.effect));
		switch (request.effect) {
			CASE_EFFECT(request, first, {
				int a = payload.a, b = payload.b;
				reply = (void *)(intptr_t)(a + b);
				break;
			});
			CASE_EFFECT(request, thirty_one, { break; });
			CASE_EFFECT(request, last, {
				reply = (void *)(payload.inner.x == 5 && payload.values[2] == 3 ? "outer" : "wrong");
				break;
			});
			CASE_EFFECT(request, which, {
				reply = (void *)(intptr_t)payload.one;
				break;
			});
		}
		request = seff_resume(k, reply, ~0);
	}
	seff_coroutine_delete(k);
}

/* Each resume names a different set: sheep handlers. */
static void *asks_twice(void *arg)
{
	int a = PERFORM(first, 0, 0), b = PERFORM(first, 0, 0);

	return (void *)(intptr_t)(a * 10 + b + (arg ? 100 : 0));
}

static void *sheep(void *arg)
{
	seff_coroutine_t k;

	seff_coroutine_init(&k, asks_twice, arg);
	seff_resume(&k, NULL, HANDLES(first));
	seff_request_t request = seff_resume(&k, (void *)(intptr_t)1, 0); /* the second is for the outer handler */
	assert(seff_finished(request));
	seff_coroutine_release(&k);
	return request.payload;
}

/* A request by number, with no declaration anywhere. */
static void *by_number(void *arg)
{
	assert(seff_locate_handler(5) == seff_current_coroutine());
	assert(!seff_locate_handler(6));
	void *a = seff_perform(5, arg);
	void *b = seff_yield(seff_current_coroutine(), 1000, arg);
	return (void *)((intptr_t)a + (intptr_t)b);
}

int main(void)
{
	seff_coroutine_t *k;
	seff_request_t request;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		printf("%s %d %d\n", name_of(rows[i].id), (int)(rows[i].set >> 31 & 1), (int)(rows[i].set >> 63));
	nested("inner handles none", 0);
	nested("inner handles two", HANDLES(last) | HANDLES(thirty_one));
	nested("inner handles all", ~0);

	k = seff_coroutine_new(sheep, NULL);
	request = seff_resume(k, NULL, 1);
	assert(request.effect == 0);
	assert(k->state == PAUSED);
	request = seff_resume(k, (void *)(intptr_t)2, 1);
	printf("sheep: %d\n", (int)(intptr_t)request.payload);
	seff_coroutine_delete(k);

	assert(!seff_current_coroutine());
	k = seff_coroutine_new(by_number, (void *)(intptr_t)3);
	request = seff_resume(k, NULL, 1 << 5 | 1 << 4);
	assert(request.effect == 5);
	request = seff_resume(k, (void *)((intptr_t)request.payload + 1), 0);
	assert(request.effect == 1000);
	request = seff_resume(k, (void *)((intptr_t)request.payload + 2), 0);
	printf("by number: %d\n", (int)(intptr_t)request.payload);
	seff_coroutine_delete(k);
	return 0;
}
