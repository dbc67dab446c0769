/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * interleave.h: many jobs that wait for memory take turns on one thread, so that their cache misses overlap.
 *
 * A search in a large array waits for memory at every step. The processor could fetch a dozen lines at a time, but one
 * search does not know its next address before the current read completes. Other searches do. So a job announces an
 * address before it reads it, and while the line is being fetched the other jobs run.
 *
 *   static size_t lower_bound(const int32_t *array, size_t count, int32_t key)
 *   {
 *           interleave_turn_t turn = interleave_turn();
 *
 *           while (count > 1) {
 *                   const int32_t *middle = array + count / 2 - 1;
 *
 *                   touch(turn, middle);
 *                   …reads *middle…
 *
 *   static void job(void *context, size_t index) { …calls lower_bound for the key of that index… }
 *
 *   int error = interleave(16, keys, job, context);
 *
 * The search stays an ordinary function: it can be called by functions that know nothing of this, in recursion, from
 * other files; and outside of interleave() it is a plain search.
 *
 * Design
 *  1. Streams are coroutines, made once. Each does many jobs in sequence, so no coroutine is created or deleted between
 *     jobs.
 *  2. A job learns the next stream by an effect, which it performs once; a tail clause answers it in place. If each
 *     touch were an effect, it would switch to its handler and from there to the next stream: two switches. So a touch
 *     switches directly to the next stream, by weft_switch.
 *  3. The streams form a ring that never changes: a stream without jobs passes its turn on. Each coroutine's user data
 *     points to the next coroutine, and a job keeps the coroutine that it runs in, which every switch leaves in a
 *     register. So the target of the next switch depends on one load, and not on the contents of the target's stack.
 * A binary search in 1 GB takes half as long with thirty streams, and twice as long with a single stream, which has no
 * stream to take turns with: `./weft lab --full --only B4`.
 *
 * Source of the idea: interleaved index joins with coroutines (Jonathan, Minhas, Hunter, Levandoski, Nishanov 2018); as
 * an example of effects, libseff. For C and C++; thread-safe, as nothing is shared between calls.
 */
#ifndef INTERLEAVE_H
#define INTERLEAVE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

/** A job's turn. Only the job that got it may use it, in the coroutine that the job runs in. */
typedef struct interleave_turn {
	weft_coro_t *self; /* its user data is the next stream; NULL: there are no other streams */
} interleave_turn_t;

/* Performed by interleave_turn. `asking` is the coroutine that will touch. */
WEFT_EFFECT(interleave_turn_t, interleave_whose_turn, weft_coro_t *, asking);

static inline interleave_turn_t interleave_nobodys_turn(weft_coro_t *asking)
{
	interleave_turn_t none = {NULL};

	(void)asking;
	return none;
}

__attribute__((constructor)) static inline void interleave_default(void)
{
	weft_set_default(interleave_whose_turn, interleave_nobodys_turn);
}

/** Called once for each index: any code. It may perform effects that are handled outside of interleave(). */
typedef void interleave_job_t(void *context, size_t index);

enum { INTERLEAVE_MOST = 128 };

struct interleave_stream {
	char name[24]; /* name of its coroutine, by which interleave_tell recognizes it */
	weft_coro_t *k;
	struct interleave_ring *ring;
};

struct interleave_ring {
	interleave_job_t *job;
	void *context;
	size_t started, jobs;
	unsigned count, busy; /* number of streams; number of streams that still have jobs */
	struct interleave_stream streams[INTERLEAVE_MOST];
};

/* The tail clause runs in place, on the stack of the coroutine that asks. */
static inline interleave_turn_t interleave_tell(void *state, weft_coro_t *asking)
{
	const struct interleave_ring *ring = (const struct interleave_ring *)state;
	const struct interleave_stream *stream = (const struct interleave_stream *)weft_name(asking);
	interleave_turn_t turn = {asking};

	/* Unless `asking` is a stream, a job has created it. */
	if (stream < ring->streams || stream >= ring->streams + ring->count || stream->k != asking)
		return interleave_nobodys_turn(asking);
	return turn;
}

WEFT_HANDLER(interleave_handler, weft_tail(interleave_whose_turn, interleave_tell));

/** Ask for the turn, about once per search. Outside of interleave(), and in coroutines that a job resumes, there is no
 * other stream to take turns with: touch is then free. */
static inline interleave_turn_t interleave_turn(void)
{
	return weft_perform_hot(interleave_whose_turn, interleave_tell, weft_current());
}

static inline void interleave_touch(interleave_turn_t *turn, const void *address)
{
	if (!turn->self)
		return;
	__builtin_prefetch(address);
	weft_switch_from(&turn->self, (weft_coro_t *)weft_user_data(turn->self), NULL);
}

/** This address is read next: prefetch it, and let the other streams run meanwhile. Returns when it is this stream's
 * turn again. `turn` is a variable. */
#define touch(turn, address) interleave_touch(&(turn), address)

static inline void *interleave_stream(void *arg)
{
	const struct interleave_stream *stream = (const struct interleave_stream *)arg;
	struct interleave_ring *ring = stream->ring;

	while (ring->started < ring->jobs)
		ring->job(ring->context, ring->started++);
	for (ring->busy--; ring->busy;)
		weft_switch((weft_coro_t *)weft_user_data(stream->k), NULL);
	return NULL;
}

static inline int interleave_make(struct interleave_ring *ring)
{
	struct interleave_stream *streams = ring->streams;
	weft_attr_t attr;
	unsigned i;

	memset(&attr, 0, sizeof(attr));
	for (i = 0; i < ring->count; i++) {
		snprintf(streams[i].name, sizeof(streams[i].name), "stream %u", i);
		attr.name = streams[i].name;
		streams[i].k = weft_create_with(interleave_stream, &streams[i], &attr);
		if (!streams[i].k)
			return -errno;
		streams[i].ring = ring;
	}
	for (i = 0; i < ring->count; i++)
		weft_set_user_data(streams[i].k, streams[(i + 1) % ring->count].k);
	return 0;
}

/* Cleans up however interleave() is left: also by an exception of a job, or because its calling coroutine is
 * deleted. */
static inline void interleave_unmake(struct interleave_ring *ring)
{
	unsigned i;

	for (i = 0; i < ring->count; i++)
		weft_delete(ring->streams[i].k);
}

/* Gives the turn to `k`, and returns when a stream returns. */
static inline int interleave_run(struct interleave_ring *ring, weft_coro_t *k)
{
	return weft_returned(weft_resume_under(k, NULL, &interleave_handler, ring)) ? 0 : -ENOMEM;
}

/**
 * Call job(context, index) for each index below `jobs`, `streams` of them at a time (INTERLEAVE_MOST, or `jobs`, at
 * most), started in order. Sixteen to sixty-four streams perform best. @return 0 when all are done; or a negative errno
 *   -EINVAL  no streams
 *   -ENOMEM, -EAGAIN  as weft_create: nothing was begun; or the stack of a job could not grow: not all were done
 * May be called on any stack. A job must not change the user data of the coroutine that it runs in. A job that suspends
 * its stream to a handler outside of interleave() suspends all streams.
 */
static inline int interleave(unsigned streams, size_t jobs, interleave_job_t *job, void *context)
{
	struct interleave_ring ring;
	unsigned most = streams < INTERLEAVE_MOST ? streams : (unsigned)INTERLEAVE_MOST, i;
	int error;

	if (!streams)
		return -EINVAL;
	memset(&ring, 0, sizeof(ring));
	weft_defer(interleave_unmake, &ring);
	ring.job = job;
	ring.context = context;
	ring.jobs = jobs;
	ring.count = ring.busy = jobs < most ? (unsigned)jobs : most;
	error = interleave_make(&ring);
	/* When the first stream returns, all jobs are done, and the other streams only need to return. */
	for (i = 0; i < ring.count && !error; i++)
		if (weft_state(ring.streams[i].k) == WEFT_SUSPENDED)
			error = interleave_run(&ring, ring.streams[i].k);
	return error;
}

#endif /* INTERLEAVE_H */
