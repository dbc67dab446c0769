/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Is every history of a channel a possible history of a queue? Small programs are drawn at random; tasks and threads
 * play them. The begin and end time of each operation are recorded, and a search looks for an order of the operations
 * that agrees with those times and with the queue (Wing and Gong). If a channel has no room, a send and its receive are
 * one step.
 *
 *   linear WORKERS SEED COUNT [THREADS]     0 workers: simulated
 *
 * An operation whose deadline has passed (a deadline other than 0) must have had no effect; nothing else is required of
 * it.
 */
#include "check.h"

#include <pthread.h>

enum kind { SEND, RECEIVE, CLOSE };
enum { PLAYERS = 4, OPS = 4, ALL = PLAYERS * OPS + 1, THREADS = 2 };

struct op {
	enum kind kind;
	bool tries, selects;
	int value, result;
	uint32_t began, ended;
};

struct player {
	struct history *of;
	unsigned count;
	struct op ops[OPS];
};

struct history {
	uint64_t seed, random;
	weft_chan_t *chan;
	size_t capacity;
	unsigned players;
	bool together;
	uint32_t clock, begun, done; /* atomic */
	struct player player[PLAYERS];
	struct op end;
};

static uint64_t draw(struct history *h, uint64_t below)
{
	uint64_t z = h->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

static void draw_op(struct history *h, struct op *o, int value)
{
	unsigned what = (unsigned)draw(h, 100);

	*o = (struct op){.kind = what < 48 ? SEND : what < 97 ? RECEIVE : CLOSE, .value = value};
	what = (unsigned)draw(h, 100);
	o->tries = o->kind != CLOSE && what < 20;
	o->selects = o->kind != CLOSE && what >= 85;
}

static void draw_history(struct history *h, uint64_t seed)
{
	static const size_t capacities[] = {0, 1, 2, WEFT_UNBOUNDED};
	unsigned p, i;

	*h = (struct history){.seed = seed, .random = seed};
	h->capacity = capacities[draw(h, 4)];
	h->players = 2 + (unsigned)draw(h, PLAYERS - 1);
	h->end = (struct op){.kind = CLOSE};
	for (p = 0; p < h->players; p++) {
		h->player[p].of = h;
		h->player[p].count = 2 + (unsigned)draw(h, OPS - 1);
		for (i = 0; i < h->player[p].count; i++)
			draw_op(h, &h->player[p].ops[i], (int)(p * OPS + i));
	}
}

/* ---- playing ---------------------------------------------------------------------------------------------------- */

static uint32_t now(struct history *h)
{
	return __atomic_fetch_add(&h->clock, 1, __ATOMIC_SEQ_CST);
}

/* Selects a send and a receive together. The operation's kind is known afterwards. */
static void selects(weft_chan_t *chan, struct op *o)
{
	int item = -1, result;
	weft_case_t cases[2];

	memset(cases, 0, sizeof cases);
	cases[0].chan = cases[1].chan = chan;
	cases[0].receive = &item;
	cases[1].send = &o->value;
	result = weft_select_until(cases, 2, o->tries ? 0 : WEFT_NEVER);
	CHECK(result == 0 || result == 1 || (o->tries && result == -ETIMEDOUT));
	o->kind = result == 1 ? SEND : RECEIVE;
	o->result = result < 0 ? result : cases[result].status;
	if (!result)
		o->value = item;
}

static void play_op(struct history *h, struct op *o)
{
	uint64_t deadline = o->tries ? 0 : WEFT_NEVER;
	int item = -1;

	o->began = now(h);
	if (o->selects) {
		selects(h->chan, o);
	} else if (o->kind == SEND) {
		o->result = weft_chan_send_until(h->chan, &o->value, deadline);
	} else if (o->kind == RECEIVE) {
		o->result = weft_chan_receive_until(h->chan, &item, deadline);
		o->value = item;
	} else {
		o->result = weft_chan_close(h->chan);
	}
	o->ended = now(h);
}

enum { TURNS = 100 };

/* Without this wait, tasks of several workers would play in sequence, because starting a task takes longer
 * than playing. */
static void wait_for_others(struct history *h, unsigned turns)
{
	for (; turns && __atomic_load_n(&h->begun, __ATOMIC_RELAXED) < h->players; turns--)
		weft_task_yield();
}

static void *plays(void *argument)
{
	struct player *p = argument;

	__atomic_fetch_add(&p->of->begun, 1, __ATOMIC_RELAXED);
	wait_for_others(p->of, p->of->together ? TURNS : 0);
	for (unsigned i = 0; i < p->count; i++)
		play_op(p->of, &p->ops[i]);
	__atomic_fetch_add(&p->of->done, 1, __ATOMIC_RELEASE);
	return p;
}

/* Threads find their players in slots. */
static struct {
	weft_sem_t wanted, ended;
	struct player *player;
} slots[THREADS];

static unsigned threads;

static void *plays_in_thread(void *slot)
{
	for (;;) {
		weft_sem_take(&slots[(intptr_t)slot].wanted);
		if (!slots[(intptr_t)slot].player)
			return NULL;
		plays(slots[(intptr_t)slot].player);
		weft_sem_give(&slots[(intptr_t)slot].ended, 1);
	}
}

static void give_to_thread(unsigned slot, struct player *p)
{
	slots[slot].player = p;
	weft_sem_give(&slots[slot].wanted, 1);
}

/* Closing the channel ends the remaining waits after a while. Threads are allowed more time, because a thread wakes up
 * slowly and would find the channel closed. */
static void close_in_time(struct history *h)
{
	unsigned patience = 1u << draw(h, 8);

	wait_for_others(h, threads ? 10 * TURNS : h->together ? TURNS : 0);
	while (patience-- && __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) < h->players)
		weft_task_yield();
	play_op(h, &h->end);
}

static void play(struct history *h)
{
	unsigned p;

	h->together = draw(h, 2) && !threads;
	h->chan = weft_chan_make(sizeof(int), h->capacity);
	CHECK(h->chan);
	WEFT_SCOPE(scope);
	for (p = 0; p < h->players; p++) {
		weft_task_attr_t attr = {.worker = h->together ? p + 1 : 0};

		if (p < threads)
			give_to_thread(p, &h->player[p]);
		else
			CHECK(weft_scope_spawn_with(&scope, NULL, plays, &h->player[p], &attr) == 0);
	}
	close_in_time(h);
	for (p = 0; p < threads && p < h->players; p++)
		CHECK(weft_sem_take(&slots[p].ended) == 0);
	CHECK(weft_scope_wait(&scope) == 0 && weft_chan_free(h->chan) == 0);
}

/* ---- searching for an order ------------------------------------------------------------------------------------- */

enum { SEEN = 1 << 12 };

struct queue {
	uint64_t items; /* four bits for each item, the oldest lowest */
	unsigned count;
	bool closed;
};

struct search {
	const struct history *h;
	const struct op *ops[ALL];
	unsigned count;
	uint32_t number; /* of the current search, so that `seen` need not be cleared */
};

static struct {
	uint64_t items;
	uint32_t key, number;
} seen[SEEN];

/* Has the search already found that this state leads to no solution? A state that finds no slot is searched again. */
static bool was_seen(const struct search *s, uint32_t left, const struct queue *q)
{
	uint32_t key = left << 6 | q->count << 1 | q->closed;
	uint64_t hash = q->items * 0xbf58476d1ce4e5b9u + key * 0x94d049bb133111ebu;
	unsigned place = (unsigned)(hash >> 40) % SEEN;

	if (seen[place].number == s->number && seen[place].key == key && seen[place].items == q->items)
		return true;
	seen[place].number = s->number;
	seen[place].key = key;
	seen[place].items = q->items;
	return false;
}

/* The effect of an operation on the queue. Returns false if the operation cannot have had this result in this state. */
static bool apply(const struct search *s, const struct op *o, struct queue *q)
{
	size_t capacity = s->h->capacity;

	if (o->result == -EPIPE)
		return q->closed && (o->kind == SEND || !q->count);
	if (o->kind == CLOSE) {
		if (q->closed != (o->result == -EALREADY))
			return false;
		q->closed = true;
		return true;
	}
	if (o->result == -ETIMEDOUT && !capacity)
		return !q->closed; /* the history does not tell whether a partner already waited */
	if (o->result == -ETIMEDOUT)
		return !q->closed && (o->selects || (o->kind == SEND ? q->count == capacity : !q->count));
	if (o->result || !capacity)
		return false;
	if (o->kind == SEND) {
		if (q->closed || q->count == capacity)
			return false;
		q->items |= (uint64_t)o->value << 4 * q->count++;
		return true;
	}
	if (!q->count || (int)(q->items & 15) != o->value)
		return false;
	q->items >>= 4;
	q->count--;
	return true;
}

static bool is_pair(const struct op *sends, const struct op *receives)
{
	return sends->kind == SEND && receives->kind == RECEIVE && !sends->result && !receives->result &&
	       sends->value == receives->value;
}

static bool search(const struct search *s, uint32_t left, struct queue q)
{
	uint32_t first_end = UINT32_MAX;
	struct queue next;
	unsigned i, j;

	if (!left)
		return true;
	if (was_seen(s, left, &q))
		return false;
	for (i = 0; i < s->count; i++)
		if (left >> i & 1 && s->ops[i]->ended < first_end)
			first_end = s->ops[i]->ended;
	for (i = 0; i < s->count; i++) {
		if (!(left >> i & 1) || s->ops[i]->began > first_end)
			continue;
		next = q;
		if (apply(s, s->ops[i], &next) && search(s, left & ~(1u << i), next))
			return true;
		for (j = 0; !s->h->capacity && !q.closed && j < s->count; j++)
			if (left >> j & 1 && s->ops[j]->began <= first_end && is_pair(s->ops[i], s->ops[j]) &&
			    search(s, left & ~(1u << i | 1u << j), q))
				return true;
	}
	return false;
}

static void print(const struct search *s)
{
	static const char *const names[] = {"send", "receive", "close"};
	unsigned i;

	printf("# seed %llu, capacity %zd:\n", (unsigned long long)s->h->seed, (ssize_t)s->h->capacity);
	for (i = 0; i < s->count; i++)
		printf("#   %3u to %3u: %s%s %d: %d\n", s->ops[i]->began, s->ops[i]->ended,
		       s->ops[i]->tries ? "try to " : "", names[s->ops[i]->kind], s->ops[i]->value, s->ops[i]->result);
}

static bool is_linearizable(const struct history *h)
{
	static uint32_t number;
	struct search s = {.h = h, .number = ++number};
	unsigned p, i;

	for (p = 0; p < h->players; p++)
		for (i = 0; i < h->player[p].count; i++)
			s.ops[s.count++] = &h->player[p].ops[i];
	s.ops[s.count++] = &h->end;
	if (search(&s, (1u << s.count) - 1, (struct queue){0}))
		return true;
	print(&s);
	return false;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

struct range {
	uint64_t first, count;
	bool failed;
	uint64_t ops, went_well, overlapped; /* counted to notice histories in which nothing happens */
};

static void count_op(struct range *r, const struct history *h, const struct op *o)
{
	unsigned i;

	r->ops++;
	r->went_well += !o->result;
	for (i = 0; i < h->player[0].count; i++)
		if (&h->player[0].ops[i] != o && h->player[0].ops[i].began < o->ended &&
		    o->began < h->player[0].ops[i].ended) {
			r->overlapped++;
			break;
		}
}

static void count_history(struct range *r, const struct history *h)
{
	unsigned p, i;

	for (p = 0; p < h->players; p++)
		for (i = 0; i < h->player[p].count; i++)
			count_op(r, h, &h->player[p].ops[i]);
}

static void *plays_all(void *argument)
{
	struct range *r = argument;
	static struct history h;

	for (uint64_t i = 0; i < r->count && !r->failed; i++) {
		draw_history(&h, r->first + i);
		play(&h);
		r->failed = !is_linearizable(&h);
		count_history(r, &h);
	}
	return r;
}

static void simulate_all(struct range *r)
{
	enum { AT_ONCE = 10 };
	uint64_t end = r->first + r->count;

	for (r->count = AT_ONCE; r->first < end && !r->failed; r->first += AT_ONCE)
		CHECK(weft_simulate(r->first, NULL, plays_all, r, NULL) == 0);
}

int main(int argc, char **argv)
{
	struct range r = {.first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
			  .count = argc > 3 ? strtoull(argv[3], NULL, 10) : 10000};
	weft_rt_config_t config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
	pthread_t thread[THREADS];
	uint64_t count = r.count;
	unsigned i;

	threads = argc > 4 && atoi(argv[4]) < THREADS ? (unsigned)atoi(argv[4]) : argc > 4 ? THREADS : 0;
	for (i = 0; i < threads; i++)
		CHECK(!pthread_create(&thread[i], NULL, plays_in_thread, (void *)(intptr_t)i));
	if (config.workers)
		CHECK(weft_rt_run(&config, plays_all, &r, NULL) == 0);
	else
		simulate_all(&r);
	for (i = 0; i < threads; i++) {
		give_to_thread(i, NULL);
		CHECK(!pthread_join(thread[i], NULL));
	}
	if (!r.failed && (r.went_well < r.ops / 4 || r.overlapped < r.ops / 100)) {
		printf("not ok - too little happens: ");
		r.failed = true;
	}
	printf("%s - %llu histories of %llu operations; %llu went well, %llu at the same time as one of player 0\n",
	       r.failed ? "not ok" : "ok", (unsigned long long)count, (unsigned long long)r.ops,
	       (unsigned long long)r.went_well, (unsigned long long)r.overlapped);
	return r.failed;
}
