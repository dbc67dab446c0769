/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Linked with the policies CHOSEN only: these work with all that the library does for them, the others are refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

#include "../require.h"

#ifdef CHOSEN
WEFT_POLICIES(CHOSEN);
#else
#define CHOSEN commit, segmented, heap, lookahead, mmu, copy
#endif

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

static bool chosen(weft_policy_t policy)
{
	static const char names[] = TEXT(CHOSEN);

	return policy <= WEFT_OVERCOMMIT || strstr(names, weft_policy_name(policy));
}

WEFT_EFFECT(int, next, int, after);
WEFT_EFFECT(int, both);

static int on_next(void *state, int after)
{
	*(int *)state += 1;
	return after + 1;
}

static void *on_both(void *state, weft_resumption_t *k)
{
	*(int *)state += (int)(intptr_t)weft_continue(both, k, 1);
	*(int *)state += (int)(intptr_t)weft_continue(both, k, 2);
	return NULL;
}

static int why;

static void *on_failure(void *state, int error)
{
	why = error;
	return state;
}

WEFT_HANDLER(counter, weft_tail(next, on_next), weft_on_failure(on_failure));
WEFT_HANDLER(chooser, weft_multi(both, on_both), weft_on_failure(on_failure));

static void count_up(void *count)
{
	++*(int *)count;
}

static int sum_to(int n)
{
	volatile char frame[512];

	frame[0] = 1;
	return n ? sum_to(n - 1) + frame[0] : 0;
}

static void *counts(void *unused)
{
	int i = 0;

	while (i < 100)
		i = next(i);
	REQUIRE(sum_to(50) == 50);
	return unused;
}

/* Yields twice, with something deferred. */
static void *yields(void *deleted)
{
	weft_defer(count_up, deleted);
	weft_suspend(NULL);
	sum_to(20);
	weft_suspend(NULL);
	return NULL;
}

static void *switches(void *to)
{
	weft_switch(to, NULL);
	return NULL;
}

static void *answers(void *unused)
{
	(void)unused;
	return &why;
}

static void *chooses(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)both();
}

static void life(const weft_attr_t *attr)
{
	int count = 0, deleted = 0;
	weft_stack_stats_t stats;
	weft_coro_t *k[3];

	REQUIRE(weft_run_with(&counter, &count, counts, &count, attr) == &count && count == 100);
	for (int i = 0; i < 3; i++) {
		k[i] = weft_create_with(yields, &deleted, attr);
		REQUIRE(k[i] && weft_policy(k[i]) == attr->policy);
		weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		REQUIRE(weft_on_stack(k[i], k[i]->link.sp) || attr->policy == WEFT_COPY);
	}
	weft_trim(k[0]);
	weft_resume(k[0], NULL, WEFT_HANDLE_NONE);
	weft_reset(k[0], yields, &deleted);
	REQUIRE(deleted == 1);
	for (int i = 0; i < 3; i++)
		weft_delete(k[i]);
	REQUIRE(deleted == 3);
	REQUIRE(!weft_stack_stats(attr->policy, &stats) && !stats.live);
	weft_stack_trim();
}

static void sideways(weft_attr_t attr)
{
	for (int saves = 0; saves < 2; saves++) {
		weft_coro_t *to, *from;

		attr.flags = saves ? WEFT_SAVE_FPU : 0;
		to = weft_create_with(answers, NULL, &attr);
		from = weft_create_with(switches, to, &attr);
		REQUIRE(to && from);
		REQUIRE(weft_resume(from, NULL, WEFT_HANDLE_NONE).payload == &why);
		weft_delete(to);
		weft_delete(from);
	}
}

static void *in_thread(void *attr)
{
	life(attr);
	return attr;
}

static void refused(const weft_attr_t *attr)
{
	const char *reason = weft_policy_unavailable(attr->policy);
	weft_stack_stats_t stats;

	errno = 0;
	REQUIRE(!weft_create_with(yields, NULL, attr) && errno == ENOTSUP);
	REQUIRE(reason && strstr(reason, "WEFT_POLICIES"));
	REQUIRE(weft_policy_named(weft_policy_name(attr->policy)) == attr->policy);
	REQUIRE(!weft_stack_stats(attr->policy, &stats) && !stats.reserved);
	REQUIRE(!weft_stack_resident(attr->policy));
	why = 0;
	weft_run_with(&counter, NULL, counts, NULL, attr);
	REQUIRE(why == ENOTSUP);
}

static void multi(void)
{
	int sum = 0;

	why = 0;
	weft_run(&chooser, &sum, chooses, NULL);
	REQUIRE(chosen(WEFT_COPY) ? sum == 3 && !why : why == ENOTSUP);
}

int main(void)
{
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft_attr_t attr = {.policy = (weft_policy_t)p};
		pthread_t thread;

		if (!chosen(attr.policy)) {
			refused(&attr);
			continue;
		}
		REQUIRE(!weft_policy_unavailable(attr.policy));
		life(&attr);
		sideways(attr);
		REQUIRE(!pthread_create(&thread, NULL, in_thread, &attr) && !pthread_join(thread, NULL));
	}
	multi();
	return 0;
}
