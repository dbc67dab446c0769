/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random [SEED [STEPS [THREADS]]]: random programs of coroutines and their clones, compared with a model of a stack: an
 * array of frames. Each coroutine calls, returns and computes as the values of its resumes say, and after each resume
 * answers a digest of all its frames, which it finds by pointers from frame to frame; the model does the same on its
 * array. A clone corresponds to an assignment of the model, and so does a return to a checkpoint. The steps are done by
 * the thread, by a coroutine that is itself copied, and sometimes by a coroutine that was suspended from below; with
 * several threads, coroutines move between threads. With WEFT_FAIL_EVERY, in a library that supports it, some requests
 * for memory fail; nothing else may change.
 */
#include <errno.h>
#include <pthread.h>

#include "copy.h"

enum { LIVE = 40, DEEPEST = 30, HALL = 16, POINTS = 6 };
enum { MODEL_MOST = DEEPEST, MODEL_CALLS = 1 };
#include "../frames.h"

/* ---- the coroutines ---------------------------------------------------------------------------------------------- */

struct frame {
	uint64_t local;
	struct frame *caller;
	char room[64]; /* more bytes to copy, filled with the expected value */
};

static uint64_t digest_frames(const struct frame *f)
{
	uint64_t digest = 1;

	for (; f; f = f->caller) {
		digest = mix(digest, f->local);
		for (size_t i = 0; i < sizeof f->room; i++)
			if (f->room[i] != (char)((uintptr_t)f >> 4))
				digest++;
	}
	return digest;
}

/* A coroutine's answer at each suspension, on its stack. */
struct answer {
	uint64_t digest;
	struct frame *frame;
	weft_coro_t *self;
};

static __attribute__((noinline)) uint64_t run_frame(uint64_t local, struct frame *caller, int depth)
{
	struct frame f = {.local = local, .caller = caller};
	uint64_t x;

	memset(f.room, (char)((uintptr_t)&f >> 4), sizeof f.room);
	for (;;) {
		struct answer answer = {digest_frames(&f), &f, weft_current()};

		x = (uint64_t)weft_suspend(&answer);
		REQUIRE(answer.frame == &f);
		switch (action_of(x)) {
		case CALL:
			if (depth < DEEPEST)
				f.local += run_frame(x, &f, depth + 1);
			break;
		case RETURN:
			return f.local;
		case ADD:
			f.local += x;
			break;
		case TURN:
			f.local = f.local << 7 | f.local >> 57;
		}
	}
}

static void *body(void *argument)
{
	return (void *)run_frame((uint64_t)argument, NULL, 0);
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

struct subject {
	weft_coro_t *k;
	struct answer *at; /* the last answer, on its stack; NULL: it has not run */
	struct model model;
	struct {
		struct answer *at;
		struct model model;
	} point[POINTS];
	int points;
};

static struct {
	pthread_mutex_t lock;
	struct subject waiting[HALL];
	int count;
} hall = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned long clones, resumes, returns, refusals;
static bool starving;

/* Did it fail for lack of memory? No other error is accepted. */
static bool refused(bool failed, int error)
{
	if (!failed)
		return false;
	REQUIRE(starving && error == ENOMEM);
	__atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED); /* a statistic */
	return true;
}

static void start(struct subject *s, uint64_t x)
{
	weft_attr_t attr = {.policy = WEFT_COPY, .name = "subject"};

	*s = (struct subject){.k = weft_create_with(body, (void *)x, &attr),
			      .model = {.local = {x}, .deepest = DEEPEST}};
	(void)refused(!s->k, errno);
}

static void put(weft_coro_t *k, void *at, const void *from, size_t bytes)
{
	int error;

	do
		error = weft_poke(k, at, from, bytes);
	while (refused(error != 0, -error));
}

static void check_answer(struct subject *s)
{
	struct answer answer;

	REQUIRE(!weft_peek(s->k, s->at, &answer, sizeof answer));
	REQUIRE(answer.digest == digest_of(&s->model));
	REQUIRE(answer.self == s->k || !answer.self);
}

/* Sets a checkpoint, or drops one. */
static void note(struct subject *s, uint64_t x)
{
	int error;

	if (x & 1 && s->points) {
		REQUIRE(!weft_checkpoint_drop(s->k));
		s->points--;
	} else if (s->points < POINTS) {
		error = weft_checkpoint(s->k);
		if (refused(error != 0, -error))
			return;
		s->point[s->points].at = s->at;
		s->point[s->points++].model = s->model;
	}
}

/* Restores a checkpoint. The coroutine may be at its end. */
static void go_back(struct subject *s, uint64_t x)
{
	int error;

	if (!s->points) {
		REQUIRE(weft_checkpoint_restore(s->k) == -EINVAL);
		return;
	}
	do
		error = x & 1 ? weft_checkpoint_restore(s->k) : weft_checkpoint_restore_last(s->k);
	while (refused(error != 0, -error));
	__atomic_fetch_add(&returns, 1, __ATOMIC_RELAXED); /* a statistic */
	s->at = s->point[s->points - 1].at;
	s->model = s->point[s->points - 1].model;
	s->points -= !(x & 1);
	if (s->at)
		check_answer(s);
}

/* Ends the coroutine. */
static void end(struct subject *s, uint64_t x)
{
	if (s->points) {
		go_back(s, x);
		return;
	}
	weft_delete(s->k);
	s->k = NULL;
}

static void go_on(struct subject *s, uint64_t x)
{
	weft_request_t r = resume(s->k, x);

	__atomic_fetch_add(&resumes, 1, __ATOMIC_RELAXED); /* a statistic */
	if (refused(r.effect == &weft_failed, weft_failure(s->k) == WEFT_MEMORY_SPENT ? ENOMEM : 0)) {
		REQUIRE(r.payload == s->k);
		end(s, x >> 8);
		return;
	}
	if (s->at)
		model_step(&s->model, x);
	if (weft_returned(r)) {
		REQUIRE(s->model.over && (uint64_t)r.payload == s->model.local[0]);
		REQUIRE(!weft_clone(s->k));
		end(s, x >> 8);
		return;
	}
	REQUIRE(r.effect == &weft_suspended && !s->model.over);
	s->at = r.payload;
	check_answer(s);
}

/* Changes a frame's variable from outside. */
static void change(struct subject *s, uint64_t x)
{
	struct answer answer;

	if (!s->at)
		return;
	REQUIRE(!weft_peek(s->k, s->at, &answer, sizeof answer));
	put(s->k, &answer.frame->local, &x, sizeof x);
	s->model.local[s->model.depth] = x;
	answer.digest = digest_of(&s->model);
	answer.self = s->k;
	put(s->k, s->at, &answer, sizeof answer);
	check_answer(s);
}

static void clone(const struct subject *s, struct subject *to)
{
	weft_coro_t *k = to->k;
	struct answer answer;

	__atomic_fetch_add(&clones, 1, __ATOMIC_RELAXED); /* a statistic */
	if (k) {
		int error = weft_clone_into(k, s->k);

		if (refused(error != 0, -error)) {
			weft_delete(k);
			to->k = NULL;
			return;
		}
	} else {
		k = weft_clone(s->k);
		if (refused(!k, errno))
			return;
	}
	*to = *s;
	to->k = k;
	to->points = 0;
	if (!to->at)
		return;
	/* Its variables still name the original. */
	REQUIRE(!weft_peek(k, to->at, &answer, sizeof answer) && answer.digest == digest_of(&to->model));
	answer.self = k;
	put(k, to->at, &answer, sizeof answer);
}

static void exchange(struct subject *s, uint64_t x)
{
	struct subject other = {.k = NULL};
	int i = (int)(x % HALL);

	pthread_mutex_lock(&hall.lock);
	if (i < hall.count) {
		other = hall.waiting[i];
		hall.waiting[i] = *s;
	} else if (hall.count < HALL && s->k) {
		hall.waiting[hall.count++] = *s;
	} else {
		other = *s;
	}
	pthread_mutex_unlock(&hall.lock);
	*s = other;
}

struct plan {
	uint64_t seed;
	int steps;
	bool exchanges;
};

WEFT_EFFECT(uint64_t, outside, uint64_t, x);

static void step(struct subject *all, uint64_t *state, const struct plan *plan)
{
	struct subject *s = &all[next(state) % LIVE], *to = &all[next(state) % LIVE];
	uint64_t x = next(state), what = x >> 8 & 31;

	if (!s->k) {
		start(s, x);
		return;
	}
	switch (what) {
	case 0:
		weft_delete(s->k);
		s->k = NULL;
		return;
	case 1:
	case 2:
	case 3:
		if (s != to)
			clone(s, to);
		return;
	case 4:
		change(s, x);
		return;
	case 5:
		if (plan->exchanges)
			exchange(s, x >> 12);
		return;
	case 6:
		weft_reset(s->k, body, (void *)x);
		s->at = NULL;
		s->points = 0;
		s->model = (struct model){.local = {x}, .deepest = DEEPEST};
		return;
	case 7:
	case 8:
	case 9:
		note(s, x >> 16);
		return;
	case 10:
	case 11:
	case 12:
	case 13:
		go_back(s, x >> 16);
		return;
	default:
		go_on(s, x);
	}
}

static void play(const struct plan *plan, bool suspends)
{
	struct subject *all = calloc(LIVE, sizeof *all);
	uint64_t state = plan->seed;

	REQUIRE(all);
	for (int i = 0; i < plan->steps; i++) {
		step(all, &state, plan);
		if (suspends && i % 16 == 15)
			REQUIRE(outside(state) == state + 1);
	}
	for (int i = 0; i < LIVE; i++)
		weft_delete(all[i].k);
	free(all);
}

static void *player(void *plan)
{
	play(plan, true);
	return plan;
}

/* A level of another policy in between. */
static void *around(void *plan)
{
	weft_attr_t attr = {.policy = WEFT_FIXED};
	weft_coro_t *k = weft_create_with(player, plan, &attr);

	while (refused(!k, errno))
		k = weft_create_with(player, plan, &attr);
	REQUIRE(weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)));
	weft_delete(k);
	return plan;
}

/* Two games in turns: each resume finds the other game's frames in the regions of all levels. */
static void in_turns(const struct plan *plan, weft_fn_t *fn, weft_policy_t policy)
{
	struct plan plans[2] = {*plan, *plan};
	weft_attr_t attr = {.policy = policy};
	weft_coro_t *k[2];
	weft_request_t r;

	plans[1].seed += 77;
	for (int i = 0; i < 2; i++)
		do
			k[i] = weft_create_with(fn, &plans[i], &attr);
		while (refused(!k[i], errno));
	for (int left = 2, i = 0; left; i = !i) {
		uint64_t reply;

		if (weft_state(k[i]) == WEFT_FINISHED)
			continue;
		r = weft_resume(k[i], NULL, weft_handles(outside));
		if (weft_returned(r)) {
			left--;
			continue;
		}
		REQUIRE(weft_is(outside, r));
		REQUIRE(!weft_peek(k[i], &weft_args(outside, r)->x, &reply, sizeof reply));
		reply++;
		put(k[i], &weft_args(outside, r)->weft__result, &reply, sizeof reply);
	}
	weft_delete(k[0]);
	weft_delete(k[1]);
}

static void *all_ways(void *argument)
{
	struct plan plan = *(struct plan *)argument;

	play(&plan, false);
	if (starving) /* the players would also fail, and leak their coroutines */
		return NULL;
	plan.seed += 1;
	in_turns(&plan, player, WEFT_OVERCOMMIT);
	/* Inside a copied coroutine, no new coroutine may appear whose frames need the same region. */
	plan.exchanges = false;
	plan.seed += 1;
	in_turns(&plan, player, WEFT_COPY);
	plan.seed += 1;
	in_turns(&plan, around, WEFT_COPY);
	plan.seed += 1;
	in_turns(&plan, around, WEFT_OVERCOMMIT);
	return NULL;
}

int main(int count, char **arguments)
{
	uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 0) : 1;
	int steps = count > 2 ? atoi(arguments[2]) : 20000;
	size_t threads = count > 3 ? strtoul(arguments[3], NULL, 0) : 1;
	const char *every = getenv("WEFT_FAIL_EVERY");
	struct plan plan[8];
	weft_stack_stats_t stats;
	pthread_t thread[8];

	REQUIRE(threads && threads <= 8);
	starving = every && atoi(every);
	for (size_t i = 0; i < threads; i++)
		plan[i] = (struct plan){seed + 1000 * i, steps, threads > 1};
	for (size_t i = 1; i < threads; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, all_ways, &plan[i]));
	all_ways(&plan[0]);
	for (size_t i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < hall.count; i++)
		weft_delete(hall.waiting[i].k);
	weft_stack_stats(WEFT_COPY, &stats);
	printf("%lu resumes, %lu clones, %lu returns, %lu refused, %zu bytes copied\n", resumes, clones, returns,
	       refusals, stats.copied);
	REQUIRE(stats.live == 0);
	REQUIRE(!starving || refusals);
	return 0;
}
