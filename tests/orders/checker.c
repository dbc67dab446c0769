/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "checker.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <weft/weft.h>

#include "sched/single_thread.h"

enum {
	THREADS = ORDERS_THREADS,
	MAIN = 0,	   /* the thread that runs begin and end */
	STEPS = 4000,	   /* of one order; more steps are a failure: a thread spins for ever */
	MESSAGES = 64,	   /* stores to one place that are kept */
	ARENA = 4 << 20,   /* bytes for malloc, in one order */
	STACK_SEEN = 8192, /* bytes of a task's stack that are checked when it ends */
	GRANULES = 1 << 16 /* number of units of eight bytes that one order touches */
};

enum kind { LOAD, STORE, EXCHANGE, ADD, SUB, AND, OR, XOR, COMPARE, FENCE, WAIT, WOKEN, WAKE, PAUSE, JOIN };

static const char *const kinds[] = {"load",	  "store",	  "exchange",	"add",	   "sub",
				    "and",	  "or",		  "xor",	"compare", "fence",
				    "futex wait", "futex: go on", "futex wake", "pause",   "join"};

/* One step of a thread: its request and its result. */
struct step {
	enum kind kind;
	uintptr_t address; /* 0 for a fence */
	unsigned size;
	int order, failure_order;
	uint64_t value, expected, deadline;
	const void *at; /* address in the program */
	uint64_t result;
	bool done; /* the compared value was there; the futex had the value */
};

WEFT_EFFECT(void, orders_step, struct step *, s);

/* For each thread, the number of its steps included. */
struct clock {
	uint32_t of[THREADS];
};

/* A store, kept for threads that may still read it. */
struct message {
	uint64_t value;
	unsigned writer;
	uint32_t epoch;
	uint32_t sc; /* its position among sequentially consistent steps; 0: it is not sequentially consistent */
	struct clock released, released_seen;
	uint32_t released_fence;
	struct clock first_read; /* when each thread first read it; 0: never */
};

struct place {
	uintptr_t address;
	unsigned size;
	uint32_t stored; /* number of stores so far */
	unsigned count;	 /* messages; 0: memory holds the value, and each access must happen after its write */
	struct message messages[MESSAGES];
	struct clock loads, stores; /* the last atomic loads and stores */
};

struct access {
	uint32_t writer, write; /* the last non-atomic write */
	struct clock reads;
	const void *at; /* address in the program of the last write */
};

/* Eight bytes of memory. */
struct granule {
	uintptr_t address;
	uint32_t run; /* the order that it belongs to */
	bool freed[8];
	struct access bytes[8];
	struct place *places[8];
};

struct thread {
	weft_coro_t *k;
	void (*body)(void);
	void *(*entry)(void *);
	void *argument;
	struct step *pending; /* NULL: the thread has ended, or was not started */
	bool ended, woken, timed_out;
	void *worker;
	struct weft__here here;
	struct clock now;			/* steps that happened before */
	struct clock seen;			/* stores that must be visible: `now` and those of fences */
	uint32_t fence;				/* sequentially consistent steps up to this one are visible */
	struct clock pending_now, pending_seen; /* from relaxed loads, for a later acquire fence */
	uint32_t pending_fence;
	struct clock fenced_now, fenced_seen; /* at the last release fence */
	uint32_t fenced_fence;
	uintptr_t waits_on; /* address of a futex */
	uint64_t deadline, turn;
	uintptr_t last;	    /* address accessed last */
	uint32_t last_read; /* index of the store read there */
	uint32_t steps;
	struct clock order; /* of its last step among all steps: for the reduction */
};

/* A step that was taken, and the state of the search at it. */
struct node {
	uint8_t enabled, backtrack, done, sleep; /* sets of threads */
	uint8_t thread, preemptions;
	unsigned choice, choices, stale;
	struct step step;
	bool writes;
	struct clock order;
	uint64_t got;
};

static struct {
	const struct scenario *what;
	struct thread threads[THREADS];
	unsigned count, running, more;
	bool inside;	/* a thread runs; otherwise begin or end */
	bool redundant; /* this order was tried already */
	struct clock sc_seen;
	uint32_t sc;
	uint64_t now, turn;
	unsigned depth, fixed, stale;
	uint64_t random;
	struct node nodes[STEPS];
	char arena[ARENA];
	size_t used;
	uint64_t runs, steps, redundant_runs;
	unsigned saw, deepest;
} o;

static uint32_t run = 1; /* number of the order; constructors run before the first order */
static struct granule granules[GRANULES];
static struct place places[4096];
static unsigned places_used;

/* The library's, if a scenario links it. */
void *weft__worker(void) __attribute__((weak, visibility("hidden")));
void weft__set_worker(void *worker) __attribute__((weak, visibility("hidden")));
struct weft__here *weft__where(void) __attribute__((weak));
extern unsigned char weft__crowd __attribute__((weak));

/* ---- failing ---------------------------------------------------------------------------------------------------- */

static void print_node(unsigned i)
{
	const struct node *n = &o.nodes[i];

	printf("#  %3u  thread %u  %-12s", i, n->thread, kinds[n->step.kind]);
	if (n->step.address)
		printf(" %#llx.%u", (unsigned long long)n->step.address, n->step.size);
	printf("  value %#llx  got %#llx%s  at %p\n", (unsigned long long)n->step.value, (unsigned long long)n->got,
	       n->choice ? "  (not the newest)" : "", n->step.at);
}

static _Noreturn void fail(const char *what)
{
	printf("not ok - %s: %s (order %llu, %u steps; `addr2line -fie PROGRAM ADDRESS` tells the lines)\n",
	       o.what->name, what, (unsigned long long)o.runs + 1, o.depth);
	for (unsigned i = 0; i < o.depth; i++)
		print_node(i);
	fflush(stdout);
	_Exit(1);
}

void orders_fail(const char *what, const char *file, int line)
{
	char text[256];

	snprintf(text, sizeof text, "%s, at %s:%d, in thread %u", what, file, line, o.running);
	fail(text);
}

void orders_saw(unsigned bit)
{
	o.saw |= 1u << bit;
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static void join(struct clock *to, const struct clock *from)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (from->of[i] > to->of[i])
			to->of[i] = from->of[i];
}

static void at_least(uint32_t *to, uint32_t from)
{
	if (from > *to)
		*to = from;
}

static struct thread *self(void)
{
	return &o.threads[o.running];
}

/* The caller's address in the program. */
#define HERE __builtin_return_address(0)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Returns the granule of an address, or its free place. */
static struct granule *find_granule(uintptr_t at)
{
	unsigned i = (unsigned)(at * 0x9e3779b97f4a7c15u >> 48) % GRANULES;

	for (unsigned tries = 0; tries < GRANULES; tries++, i = (i + 1) % GRANULES)
		if (granules[i].run != run || granules[i].address == at)
			return &granules[i];
	fail("it touches too much memory for the checker");
}

static struct granule *granule(uintptr_t address)
{
	struct granule *g = find_granule(address >> 3);

	if (g->run != run) {
		memset(g, 0, sizeof *g);
		g->run = run;
		g->address = address >> 3;
	}
	return g;
}

static void race(const char *what, uintptr_t address, unsigned other, const void *at)
{
	char text[200];

	snprintf(text, sizeof text, "%s: %#llx, thread %u, and before, at %p, thread %u", what,
		 (unsigned long long)address, o.running, at, other);
	fail(text);
}

static bool before(uint32_t epoch, unsigned thread)
{
	return thread == o.running || epoch <= self()->now.of[thread];
}

/* Checks against the atomic accesses. */
static void check_place(const struct place *p, uintptr_t address, bool writes)
{
	for (unsigned t = 0; t < THREADS; t++) {
		if (!before(p->stores.of[t], t))
			race("an atomic store and another access race", address, t, NULL);
		if (writes && !before(p->loads.of[t], t))
			race("an atomic load and another store race", address, t, NULL);
	}
}

static void check_byte(struct granule *g, unsigned i, bool writes)
{
	struct access *a = &g->bytes[i];
	uintptr_t address = (g->address << 3) + i;

	if (g->freed[i])
		race("memory is used that was given back", address, a->writer, a->at);
	if (!before(a->write, a->writer))
		race("two accesses race", address, a->writer, a->at);
	for (unsigned t = 0; writes && t < THREADS; t++)
		if (!before(a->reads.of[t], t))
			race("a store and a load before it race", address, t, a->at);
}

/* Is it a variable of __thread? The checker's threads share these in turns. */
static bool is_of_thread(uintptr_t address)
{
	uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();

	return address < pointer && address > pointer - (16 << 10);
}

static void plain(uintptr_t address, size_t size, bool writes, const void *from)
{
	uint32_t epoch = self()->now.of[o.running] + 1; /* it belongs to the next step */
	struct granule *g = NULL;

	if (is_of_thread(address))
		return;
	for (uintptr_t at = address; at < address + size; at++) {
		unsigned i = at & 7;

		if (!g || !i)
			g = granule(at);
		check_byte(g, i, writes);
		for (unsigned j = 0; j <= i; j++) {
			struct place *p = g->places[j];

			if (!p || j + p->size <= i || !p->count)
				continue;
			check_place(p, at, writes);
			if (writes)
				p->count = 0;
		}
		if (writes) {
			g->bytes[i].writer = o.running;
			g->bytes[i].write = epoch;
		} else {
			g->bytes[i].reads.of[o.running] = epoch;
		}
		g->bytes[i].at = from;
	}
}

static void forget(uintptr_t address, size_t size, bool freed)
{
	for (uintptr_t at = address; at < address + size; at++) {
		struct granule *g = granule(at);
		struct place *p = g->places[at & 7];

		memset(&g->bytes[at & 7], 0, sizeof *g->bytes);
		g->freed[at & 7] = freed;
		if (p)
			p->count = 0;
	}
}

static uint64_t in_memory(uintptr_t address, unsigned size)
{
	uint64_t value = 0;

	memcpy(&value, (void *)address, size);
	return value;
}

static void first_message(struct place *p, struct granule *g, uint64_t value)
{
	struct access *a = &g->bytes[p->address & 7];

	p->count = 1;
	p->stored++;
	p->messages[0] = (struct message){.value = value, .writer = a->writer, .epoch = a->write};
	memset(&p->loads, 0, sizeof p->loads);
	memset(&p->stores, 0, sizeof p->stores);
}

/* Returns the place of an atomic access. */
static struct place *place(uintptr_t address, unsigned size)
{
	struct granule *g = granule(address);
	struct place *p = g->places[address & 7];
	uint64_t value = in_memory(address, size);

	if (!p) {
		if (places_used == sizeof places / sizeof *places)
			fail("it has too many atomic variables for the checker");
		p = g->places[address & 7] = &places[places_used++];
		p->address = address;
		p->size = size;
		p->count = p->stored = 0;
	}
	if (p->size != size)
		fail("an atomic variable is accessed by two sizes");
	/* Code that is not compiled for the checker may have written here: a new task in an old task's memory. */
	if (!p->count || p->messages[p->count - 1].value != value)
		first_message(p, g, value);
	return p;
}

static void check_atomic(uintptr_t address, unsigned size, bool writes)
{
	struct granule *g = granule(address);

	for (unsigned i = address & 7; i < (address & 7) + size; i++)
		check_byte(g, i, writes);
}

/* ---- effects of steps -------------------------------------------------------------------------------------------- */

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST ||
	       order == __ATOMIC_CONSUME;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void fence(struct thread *t, int order)
{
	if (acquires(order)) {
		join(&t->now, &t->pending_now);
		join(&t->seen, &t->pending_seen);
		at_least(&t->fence, t->pending_fence);
	}
	if (order == __ATOMIC_SEQ_CST) {
		join(&t->seen, &o.sc_seen);
		o.sc_seen = t->seen;
		t->fence = ++o.sc;
	}
	if (releases(order)) {
		t->fenced_now = t->now;
		t->fenced_seen = t->seen;
		t->fenced_fence = t->fence;
	}
}

/* Does this message hide older stores from the thread? */
static bool hides_older(const struct thread *t, const struct message *m, bool sc)
{
	if (m->epoch <= t->seen.of[m->writer] || (sc && m->epoch <= o.sc_seen.of[m->writer]))
		return true;
	if (m->sc && (sc || m->sc <= t->fence))
		return true;
	for (unsigned i = 0; i < THREADS; i++)
		if (m->first_read.of[i] && m->first_read.of[i] <= t->seen.of[i])
			return true;
	return false;
}

/* Returns the choice'th newest message that may be read and, for a failing comparison, differs. NULL: there is none. */
static struct message *readable(const struct thread *t, struct place *p, const struct step *s, unsigned choice)
{
	bool sc = s->order == __ATOMIC_SEQ_CST;

	for (unsigned i = p->count; i-- > 0;) {
		struct message *m = &p->messages[i];

		if (i + 1 == p->count || s->kind == LOAD || m->value != s->expected)
			if (!choice--)
				return m;
		if (hides_older(t, m, sc))
			return NULL;
	}
	return NULL;
}

static void read_message(struct thread *t, struct message *m, int order)
{
	if (!m->first_read.of[t - o.threads])
		m->first_read.of[t - o.threads] = t->now.of[t - o.threads];
	join(acquires(order) ? &t->now : &t->pending_now, &m->released);
	join(acquires(order) ? &t->seen : &t->pending_seen, &m->released_seen);
	at_least(acquires(order) ? &t->fence : &t->pending_fence, m->released_fence);
}

static struct message *push_message(struct place *p)
{
	if (p->count == MESSAGES) {
		memmove(p->messages, p->messages + 1, (MESSAGES - 1) * sizeof *p->messages);
		p->count--;
	}
	p->stored++;
	return &p->messages[p->count++];
}

/* `before`: the message that a read-modify-write read; the new message continues its release sequence. */
static void write_message(struct thread *t, struct place *p, uint64_t value, int order, const struct message *before)
{
	struct message m = {.value = value, .writer = (unsigned)(t - o.threads), .epoch = t->now.of[t - o.threads]};

	m.released = releases(order) ? t->now : t->fenced_now;
	m.released_seen = releases(order) ? t->seen : t->fenced_seen;
	m.released_fence = releases(order) ? t->fence : t->fenced_fence;
	if (before) {
		join(&m.released, &before->released);
		join(&m.released_seen, &before->released_seen);
		at_least(&m.released_fence, before->released_fence);
	}
	if (order == __ATOMIC_SEQ_CST)
		m.sc = ++o.sc;
	*push_message(p) = m;
	memcpy((void *)p->address, &value, p->size);
	p->stores.of[m.writer] = m.epoch;
	o.turn++;
}

static uint64_t changed(const struct step *s, uint64_t old)
{
	uint64_t mask = s->size == 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * s->size) - 1;

	switch (s->kind) {
	case ADD:
		return (old + s->value) & mask;
	case SUB:
		return (old - s->value) & mask;
	case AND:
		return old & s->value & mask;
	case OR:
		return (old | s->value) & mask;
	case XOR:
		return (old ^ s->value) & mask;
	default:
		return s->value & mask;
	}
}

static bool may_write(const struct step *s)
{
	return s->kind != LOAD && s->kind != FENCE && s->kind != PAUSE && s->kind != JOIN;
}

/* Returns the number of outcomes that the step has now. */
static unsigned choices(struct thread *t, const struct step *s)
{
	unsigned n = 1;

	if ((s->kind == LOAD || s->kind == COMPARE) && !o.redundant)
		for (struct place *p = place(s->address, s->size); readable(t, p, s, n); n++)
			;
	return n;
}

static void touch(struct thread *t, const struct step *s, struct place *p, const struct message *m)
{
	t->last = s->address;
	t->last_read = m ? p->stored - (uint32_t)(&p->messages[p->count - 1] - m) : p->stored;
}

static void take_value(struct thread *t, struct step *s, struct place *p, struct message *m, int order)
{
	check_atomic(s->address, s->size, false);
	s->result = m->value;
	read_message(t, m, order);
	p->loads.of[o.running] = t->now.of[o.running];
	touch(t, s, p, m);
}

static void load(struct thread *t, struct step *s, unsigned choice)
{
	struct place *p = place(s->address, s->size);

	take_value(t, s, p, readable(t, p, s, choice), s->order);
}

static void store(struct thread *t, struct step *s)
{
	struct place *p = place(s->address, s->size);

	check_atomic(s->address, s->size, true);
	write_message(t, p, changed(s, 0), s->order, NULL);
	touch(t, s, p, NULL);
}

static void modify(struct thread *t, struct step *s)
{
	struct place *p = place(s->address, s->size);
	struct message before = p->messages[p->count - 1];

	check_atomic(s->address, s->size, true);
	s->result = before.value;
	read_message(t, &p->messages[p->count - 1], s->order);
	p->loads.of[o.running] = t->now.of[o.running];
	write_message(t, p, changed(s, before.value), s->order, &before);
	touch(t, s, p, NULL);
}

static void compare(struct thread *t, struct step *s, unsigned choice)
{
	struct place *p = place(s->address, s->size);
	struct message *m = readable(t, p, s, choice);

	s->done = m == &p->messages[p->count - 1] && m->value == s->expected;
	if (s->done)
		modify(t, s);
	else
		take_value(t, s, p, m, s->failure_order);
}

/* From now on the thread reads no older store there. */
static void see_newest(struct thread *t, uintptr_t address)
{
	struct place *p = granule(address)->places[address & 7];
	uint32_t *first = p && p->count ? &p->messages[p->count - 1].first_read.of[t - o.threads] : NULL;

	if (first && !*first)
		*first = t->now.of[t - o.threads];
}

/* Like the kernel: the comparison and the sleep are one step, with full fences. */
static void futex_wait(struct thread *t, struct step *s)
{
	fence(t, __ATOMIC_SEQ_CST);
	see_newest(t, s->address);
	s->result = in_memory(s->address, 4);
	s->done = s->result == s->value;
	if (!s->done)
		return;
	t->waits_on = s->address;
	t->deadline = s->deadline;
	t->turn = ++o.turn;
	t->woken = t->timed_out = false;
}

static void futex_wake(struct thread *t, struct step *s)
{
	struct thread *first = NULL;

	fence(t, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < o.count; i++) {
		struct thread *other = &o.threads[i];

		if (other->waits_on == s->address && !other->woken && (!first || other->turn < first->turn))
			first = other;
	}
	if (first)
		first->woken = true;
}

static void take_step(struct thread *t, struct step *s, unsigned choice)
{
	t->now.of[t - o.threads]++;
	t->seen.of[t - o.threads]++;
	switch (s->kind) {
	case LOAD:
		load(t, s, choice);
		break;
	case STORE:
		store(t, s);
		break;
	case COMPARE:
		compare(t, s, choice);
		break;
	case FENCE:
		fence(t, s->order);
		break;
	case WAIT:
		futex_wait(t, s);
		break;
	case WOKEN:
		t->waits_on = 0;
		s->done = t->woken;
		if (!t->woken && t->deadline > o.now)
			o.now = t->deadline;
		break;
	case WAKE:
		futex_wake(t, s);
		break;
	case PAUSE:
		see_newest(t, t->last); /* it has read an old value; eventually it sees the new value */
		break;
	case JOIN:
		join(&t->now, &o.threads[s->value].now);
		join(&t->seen, &o.threads[s->value].seen);
		break;
	default:
		modify(t, s);
	}
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

static bool can_go_on(const struct thread *t)
{
	struct place *p;

	switch (t->pending->kind) {
	case WOKEN:
		return t->woken || t->timed_out || (o.what->time_runs && t->deadline != UINT64_MAX);
	case JOIN:
		return o.threads[t->pending->value].ended;
	case PAUSE:
		p = granule(t->last)->places[t->last & 7];
		return !p || !p->count || t->last_read < p->stored;
	default:
		return true;
	}
}

static bool is_sc(const struct step *s)
{
	return s->order == __ATOMIC_SEQ_CST || s->kind == WAIT || s->kind == WAKE;
}

static bool is_fence(const struct step *s)
{
	return s->kind == FENCE || s->kind == WAIT || s->kind == WAKE;
}

static bool overlap(const struct step *a, const struct step *b)
{
	return a->address && b->address && a->address < b->address + b->size && b->address < a->address + a->size;
}

static bool touch_each_other(const struct step *a, bool a_writes, const struct step *b, bool b_writes)
{
	if (overlap(a, b) && (a_writes || b_writes))
		return true;
	return (is_fence(a) && is_sc(b) && is_sc(a)) || (is_fence(b) && is_sc(a) && is_sc(b));
}

static unsigned enabled(void)
{
	unsigned set = 0;

	for (unsigned i = 1; i < o.count; i++)
		if (o.threads[i].pending && can_go_on(&o.threads[i]))
			set |= 1u << i;
	return set;
}

static bool all_ended(void)
{
	for (unsigned i = 1; i < o.count; i++)
		if (!o.threads[i].ended)
			return false;
	return true;
}

/* All threads wait: time passes. */
static bool let_time_pass(void)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 1; i < o.count; i++)
		if (o.threads[i].waits_on && o.threads[i].deadline < next)
			next = o.threads[i].deadline;
	if (next == UINT64_MAX)
		return false;
	if (next > o.now)
		o.now = next;
	for (unsigned i = 1; i < o.count; i++)
		if (o.threads[i].waits_on && o.threads[i].deadline <= o.now)
			o.threads[i].timed_out = true;
	return true;
}

static uint64_t draw(void)
{
	o.random ^= o.random << 13;
	o.random ^= o.random >> 7;
	return o.random ^= o.random << 17;
}

static unsigned lowest(unsigned set)
{
	return (unsigned)__builtin_ctz(set);
}

static unsigned draw_thread(unsigned set)
{
	unsigned n = (unsigned)(draw() % (unsigned)__builtin_popcount(set));

	while (n--)
		set &= set - 1;
	return lowest(set);
}

/* Prefers the thread that ran last: backtracking covers the other orders. */
static unsigned first_choice(unsigned set, unsigned last)
{
	if (o.what->random)
		return set >> last & 1 && draw() % 4 ? last : draw_thread(set);
	return set >> last & 1 ? last : lowest(set);
}

/* The step of nodes[at] races with the step of nodes[i]: the order in which its thread comes first must be tried. */
static void try_before(unsigned i, unsigned at, const struct clock *order)
{
	struct node *n = &o.nodes[i];
	unsigned set = 0;

	if (n->enabled >> o.nodes[at].thread & 1)
		set = 1u << o.nodes[at].thread;
	for (unsigned j = i + 1; j < at; j++) {
		const struct node *m = &o.nodes[j];

		if (m->order.of[m->thread] <= order->of[m->thread])
			set |= 1u << m->thread & n->enabled;
	}
	if (set & (n->backtrack | n->sleep))
		return;
	if (set >> o.nodes[at].thread & 1)
		set = 1u << o.nodes[at].thread;
	else if (set)
		set = 1u << lowest(set);
	else
		set = n->enabled;
	n->backtrack |= (uint8_t)set;
}

/* Sets its position among the steps, and finds the steps with which it races. */
static void look_back(unsigned at)
{
	struct node *n = &o.nodes[at];
	struct thread *t = &o.threads[n->thread];
	struct clock order = t->order;

	if (n->step.kind == JOIN)
		join(&order, &o.threads[n->step.value].order);
	for (unsigned i = at; i-- > 0;) {
		const struct node *m = &o.nodes[i];

		if (m->order.of[m->thread] <= order.of[m->thread] ||
		    !touch_each_other(&m->step, m->writes, &n->step, n->writes))
			continue;
		if (!o.redundant && !o.what->random)
			try_before(i, at, &order);
		join(&order, &m->order);
	}
	order.of[n->thread] = ++t->steps;
	n->order = t->order = order;
}

static unsigned still_asleep(const struct node *n)
{
	unsigned set = n->sleep | n->done, asleep = 0;

	for (unsigned i = 1; i < o.count; i++)
		if (set >> i & 1 && i != n->thread && o.threads[i].pending &&
		    !touch_each_other(&n->step, n->writes, o.threads[i].pending, may_write(o.threads[i].pending)))
			asleep |= 1u << i;
	return asleep;
}

/* Prepares a node that has not been visited. Returns false if all its continuations were tried elsewhere. */
static void new_node(struct node *n, unsigned set, unsigned last)
{
	unsigned asleep = o.depth && !o.what->random ? still_asleep(n - 1) : 0, may = set & ~asleep;

	if (!may)
		o.redundant = true;
	*n = (struct node){.enabled = (uint8_t)set, .sleep = (uint8_t)asleep, .choices = 1};
	n->thread = (uint8_t)first_choice(o.redundant ? set : may, last);
	n->backtrack = (uint8_t)(1u << n->thread);
}

static bool is_preemption(unsigned depth, unsigned thread)
{
	unsigned last = depth ? o.nodes[depth - 1].thread : 0;

	return depth && thread != last && o.nodes[depth].enabled >> last & 1;
}

static void run_thread(struct thread *t)
{
	weft_request_t r;

	o.running = (unsigned)(t - o.threads);
	o.inside = true;
	if (weft__set_worker)
		weft__set_worker(t->worker);
	if (weft__where)
		*weft__where() = t->here;
	t->pending = NULL;
	weft_handle (r, t->k, orders_step) {
		t->pending = weft_args(orders_step, r)->s;
		break;
	}
	if (weft__worker)
		t->worker = weft__worker();
	if (weft__where)
		t->here = *weft__where();
	o.inside = false;
	t->ended = !t->pending;
	t->now.of[t - o.threads] += t->ended;
	if (t->ended && !weft_returned(r))
		fail("a thread ended by an effect that nobody handles");
}

static void step_thread(unsigned set, unsigned last)
{
	struct node *n = &o.nodes[o.depth];
	struct thread *t;
	bool is_new = o.depth >= o.fixed;

	if (o.depth + 1 == STEPS)
		fail("it takes too many steps: something spins for ever");
	if (is_new)
		new_node(n, set, last);
	else if (n->enabled != set)
		fail("the checker's own mistake: the same steps led elsewhere");
	t = &o.threads[n->thread];
	o.running = n->thread;
	n->choices = o.what->stale && o.stale >= o.what->stale + o.more ? 1 : choices(t, t->pending);
	if (is_new && o.what->random && n->choices > 1 && draw() % 4 == 0)
		n->choice = (unsigned)(draw() % n->choices);
	o.stale += n->choice > 0;
	n->preemptions = (uint8_t)((o.depth ? n[-1].preemptions : 0) + is_preemption(o.depth, n->thread));
	take_step(t, t->pending, n->choice);
	n->step = *t->pending;
	n->got = t->pending->result;
	n->writes = may_write(&n->step) && !(n->step.kind == COMPARE && !n->step.done);
	look_back(o.depth);
	o.depth++;
	o.steps++;
	run_thread(t);
}

static void *run_body(void *thread)
{
	struct thread *t = thread;

	if (t->entry)
		t->entry(t->argument);
	else
		t->body();
	return NULL;
}

static struct thread *make_thread(void)
{
	static const weft_attr_t attr = {.policy = WEFT_OVERCOMMIT, .stack_size = 256 << 10};
	struct thread *t = &o.threads[o.count];
	struct thread *parent = self();

	parent->now.of[o.running]++;
	parent->seen.of[o.running]++;
	if (o.count == THREADS)
		fail("it has too many threads for the checker");
	*t = (struct thread){.now = parent->now, .seen = parent->seen, .order = parent->order};
	t->now.of[o.count] = t->seen.of[o.count] = 1;
	t->order.of[o.count] = 0;
	t->k = weft_create_with(run_body, t, &attr);
	if (!t->k)
		fail("no memory for a thread");
	o.count++;
	return t;
}

/* Runs the thread up to its first step. */
static void start_thread(struct thread *t)
{
	unsigned parent = o.running;
	bool inside = o.inside;
	void *worker = weft__worker ? weft__worker() : NULL;
	struct weft__here here = weft__where ? *weft__where() : (struct weft__here){0};

	run_thread(t);
	o.running = parent;
	o.inside = inside;
	if (weft__set_worker)
		weft__set_worker(worker);
	if (weft__where)
		*weft__where() = here;
}

static void begin(void)
{
	run++;
	places_used = 0;
	o.count = 1;
	o.running = MAIN;
	o.depth = o.stale = 0;
	o.redundant = false;
	o.sc = 0;
	o.used = 0;
	o.now = 1000000000;
	o.sc_seen = (struct clock){{0}};
	o.threads[MAIN] = (struct thread){.now = {{1}}, .seen = {{1}}};
	if (&weft__crowd)
		weft__crowd = !o.what->no_crowd;
	if (weft__where)
		*weft__where() = (struct weft__here){0};
	if (o.what->begin)
		o.what->begin();
	for (unsigned i = 0; i < THREADS - 1 && o.what->thread[i]; i++)
		make_thread()->body = o.what->thread[i];
	for (unsigned i = 1, count = o.count; i < count; i++)
		start_thread(&o.threads[i]);
}

static void finish(void)
{
	o.running = MAIN;
	for (unsigned i = 1; i < o.count; i++) {
		join(&self()->now, &o.threads[i].now);
		join(&self()->seen, &o.threads[i].seen);
	}
	self()->now.of[MAIN]++;
	self()->seen.of[MAIN]++;
	if (o.what->end)
		o.what->end();
	for (unsigned i = 1; i < o.count; i++)
		weft_delete(o.threads[i].k);
}

static void run_once(void)
{
	unsigned set, last = 1;

	begin();
	while ((set = enabled()) || !all_ended()) {
		if (!set && o.what->all_wait)
			o.what->all_wait();
		if (!set && let_time_pass())
			continue;
		if (!set)
			fail("all threads wait, for ever");
		step_thread(set, last);
		last = o.nodes[o.depth - 1].thread;
	}
	finish();
	o.runs++;
	o.redundant_runs += o.redundant;
	if (o.depth > o.deepest)
		o.deepest = o.depth;
}

static bool within_bound(const struct node *n, unsigned depth, unsigned thread)
{
	unsigned before = depth ? n[-1].preemptions : 0;

	return !o.what->preemptions || before + is_preemption(depth, thread) <= o.what->preemptions + o.more;
}

/* Selects the next order: the deepest node with an untried alternative. Returns false if there is none. */
static bool next_order(void)
{
	struct node *n;
	unsigned left;

	for (; o.depth; o.depth--) {
		n = &o.nodes[o.depth - 1];
		if (++n->choice < n->choices) {
			o.fixed = o.depth;
			return true;
		}
		n->done |= (uint8_t)(1u << n->thread);
		for (left = n->backtrack & ~n->done & ~n->sleep; left; left &= left - 1) {
			if (!within_bound(n, o.depth - 1, lowest(left)))
				continue;
			n->thread = (uint8_t)lowest(left);
			n->choice = 0;
			o.fixed = o.depth;
			return true;
		}
	}
	return false;
}

/* ---- functions that the compiler calls --------------------------------------------------------------------------- */

static uint64_t do_step(struct step *s)
{
	if (o.inside) {
		orders_step(s);
	} else {
		take_step(self(), s, 0);
	}
	return s->result;
}

void __tsan_init(void);
void __tsan_func_entry(void *at);
void __tsan_func_exit(void);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_read_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *at)
{
	(void)at;
}

void __tsan_func_exit(void)
{
}

void __tsan_atomic_thread_fence(int order)
{
	struct step s = {.kind = FENCE, .order = order, .at = HERE};

	do_step(&s);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

void __tsan_read_range(void *at, size_t size)
{
	plain((uintptr_t)at, size, false, HERE);
}

void __tsan_write_range(void *at, size_t size)
{
	plain((uintptr_t)at, size, true, HERE);
}

#define PLAIN(bytes)                                                                                                   \
	void __tsan_read##bytes(void *at);                                                                             \
	void __tsan_write##bytes(void *at);                                                                            \
	void __tsan_unaligned_read##bytes(void *at);                                                                   \
	void __tsan_unaligned_write##bytes(void *at);                                                                  \
	void __tsan_read##bytes(void *at)                                                                              \
	{                                                                                                              \
		plain((uintptr_t)at, bytes, false, HERE);                                                              \
	}                                                                                                              \
	void __tsan_write##bytes(void *at)                                                                             \
	{                                                                                                              \
		plain((uintptr_t)at, bytes, true, HERE);                                                               \
	}                                                                                                              \
	void __tsan_unaligned_read##bytes(void *at)                                                                    \
	{                                                                                                              \
		plain((uintptr_t)at, bytes, false, HERE);                                                              \
	}                                                                                                              \
	void __tsan_unaligned_write##bytes(void *at)                                                                   \
	{                                                                                                              \
		plain((uintptr_t)at, bytes, true, HERE);                                                               \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define MODIFY(type, bits, name, which)                                                                                \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);                                   \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order)                                    \
	{                                                                                                              \
		struct step s = {which, (uintptr_t)at, sizeof(type), order, 0, value, 0, 0, HERE, 0, false};           \
                                                                                                                       \
		return (type)do_step(&s);                                                                              \
	}

#define COMPARING(type, bits, name)                                                                                    \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, type value, int order,    \
							  int failure_order);                                          \
	int __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, type value, int order,    \
							  int failure_order)                                           \
	{                                                                                                              \
		struct step s = {                                                                                      \
		    COMPARE, (uintptr_t)at, sizeof(type), order, failure_order, value, *expected, 0, HERE, 0, false};  \
                                                                                                                       \
		*expected = (type)do_step(&s);                                                                         \
		return s.done;                                                                                         \
	}

/* If a scenario has several threads from the beginning, nothing changes this variable. */
static bool is_constant(const volatile void *at)
{
	return at == &weft__crowd && !o.what->no_crowd;
}

#define ATOMIC(type, bits)                                                                                             \
	type __tsan_atomic##bits##_load(const volatile type *at, int order);                                           \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                                    \
	type __tsan_atomic##bits##_load(const volatile type *at, int order)                                            \
	{                                                                                                              \
		struct step s = {LOAD, (uintptr_t)at, sizeof(type), order, 0, 0, 0, 0, HERE, 0, false};                \
                                                                                                                       \
		return is_constant((const volatile void *)at) ? *at : (type)do_step(&s);                               \
	}                                                                                                              \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                                     \
	{                                                                                                              \
		struct step s = {STORE, (uintptr_t)at, sizeof(type), order, 0, value, 0, 0, HERE, 0, false};           \
                                                                                                                       \
		do_step(&s);                                                                                           \
	}                                                                                                              \
	COMPARING(type, bits, strong)                                                                                  \
	COMPARING(type, bits, weak)                                                                                    \
	MODIFY(type, bits, exchange, EXCHANGE)                                                                         \
	MODIFY(type, bits, fetch_add, ADD)                                                                             \
	MODIFY(type, bits, fetch_sub, SUB)                                                                             \
	MODIFY(type, bits, fetch_and, AND)                                                                             \
	MODIFY(type, bits, fetch_or, OR)                                                                               \
	MODIFY(type, bits, fetch_xor, XOR)
ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)

/* ---- functions that names.h renames ------------------------------------------------------------------------------ */

void *orders_malloc(size_t size);
void *orders_calloc(size_t count, size_t size);
void *orders_realloc(void *old, size_t size);
void *orders_aligned_alloc(size_t alignment, size_t size);
void orders_free(void *block);
void *orders_memset(void *to, int byte, size_t size);
void *orders_memcpy(void *to, const void *from, size_t size);
void *orders_memmove(void *to, const void *from, size_t size);
long orders_syscall(long number, uint32_t *word, int operation, uint32_t value, const struct timespec *deadline,
		    void *more, int mask);
int orders_clock_gettime(clockid_t id, struct timespec *now);
void orders_yield(void);
int orders_prctl(int option, ...);
void orders_fence(void);
extern char orders_single_threaded;
int orders_create(pthread_t *thread, const pthread_attr_t *attr, void *(*entry)(void *), void *argument);
int orders_join(pthread_t thread, void **result);
void orders_delete(weft_coro_t *k);
void weft__pause(unsigned *turns) __attribute__((visibility("hidden")));
weft_coro_t *weft__owner_above(void);

/* Blocks are not reused within an order, so that each use after free is seen. */
void *orders_calloc(size_t count, size_t size)
{
	size_t bytes = (count * size + 63) / 64 * 64 + 64;
	char *block = o.arena + (-(uintptr_t)o.arena & 63) + o.used + 64;

	if (o.used + bytes + 128 > ARENA)
		fail("it takes too much memory for the checker");
	o.used += bytes;
	memset(block, 0, count * size);
	memcpy(block - sizeof(size_t), &(size_t){count * size}, sizeof(size_t));
	return block;
}

void *orders_malloc(size_t size)
{
	return orders_calloc(1, size);
}

void *orders_aligned_alloc(size_t alignment, size_t size)
{
	return alignment <= 64 ? orders_calloc(1, size) : NULL;
}

static size_t size_of(void *block)
{
	size_t size;

	memcpy(&size, (char *)block - sizeof size, sizeof size);
	return size;
}

void orders_free(void *block)
{
	if (!block)
		return;
	plain((uintptr_t)block, size_of(block), true, HERE);
	forget((uintptr_t)block, size_of(block), true);
}

void *orders_realloc(void *old, size_t size)
{
	void *block = orders_malloc(size);

	if (old)
		orders_memcpy(block, old, size_of(old) < size ? size_of(old) : size);
	orders_free(old);
	return block;
}

void *orders_memset(void *to, int byte, size_t size)
{
	plain((uintptr_t)to, size, true, HERE);
	return memset(to, byte, size);
}

void *orders_memcpy(void *to, const void *from, size_t size)
{
	plain((uintptr_t)from, size, false, HERE);
	plain((uintptr_t)to, size, true, HERE);
	return memcpy(to, from, size);
}

void *orders_memmove(void *to, const void *from, size_t size)
{
	plain((uintptr_t)from, size, false, HERE);
	plain((uintptr_t)to, size, true, HERE);
	return memmove(to, from, size);
}

long orders_syscall(long number, uint32_t *word, int operation, uint32_t value, const struct timespec *deadline,
		    void *more, int mask)
{
	struct step s = {.address = (uintptr_t)word, .size = 4, .value = value, .at = HERE};

	(void)more, (void)mask;
	if (number != SYS_futex)
		fail("a system call that the checker does not know");
	s.order = __ATOMIC_SEQ_CST;
	if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE) {
		s.kind = WAKE;
		do_step(&s);
		return 0;
	}
	s.kind = WAIT;
	s.deadline = deadline ? (uint64_t)deadline->tv_sec * 1000000000 + (uint64_t)deadline->tv_nsec : UINT64_MAX;
	do_step(&s);
	if (!s.done)
		return -1;
	s.kind = WOKEN;
	do_step(&s);
	return s.done ? 0 : -1;
}

int orders_clock_gettime(clockid_t id, struct timespec *now)
{
	(void)id;
	*now = (struct timespec){(time_t)(o.now / 1000000000), (long)(o.now % 1000000000)};
	return 0;
}

void orders_yield(void)
{
}

char orders_single_threaded;

void orders_fence(void)
{
	__tsan_atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int orders_prctl(int option, ...)
{
	(void)option;
	return 0;
}

int orders_create(pthread_t *thread, const pthread_attr_t *attr, void *(*entry)(void *), void *argument)
{
	struct thread *t = make_thread();

	(void)attr;
	t->entry = entry;
	t->argument = argument;
	*thread = (pthread_t)(t - o.threads);
	start_thread(t);
	return 0;
}

int orders_join(pthread_t thread, void **result)
{
	struct step s = {.kind = JOIN, .value = thread, .at = HERE};

	(void)result;
	do_step(&s);
	return 0;
}

/* The newest part of its stack, which also holds the task's record and its waiters. All accesses of other threads must
 * have happened before, because another task's frames may be there next. */
void orders_delete(weft_coro_t *k)
{
	for (uintptr_t at = (uintptr_t)k - STACK_SEEN; k && at < (uintptr_t)(k + 1); at += 8) {
		if (find_granule(at >> 3)->run != run)
			continue;
		plain(at, 8, true, HERE);
		forget(at, 8, false);
	}
	weft_delete(k);
}

void weft__pause(unsigned *turns)
{
	struct step s = {.kind = PAUSE, .address = self()->last, .size = 1, .at = HERE};

	(void)turns;
	do_step(&s);
}

/* The coroutine of the calling thread owns what the thread locks. */
weft_coro_t *weft__owner_above(void)
{
	return self()->k;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void check(const struct scenario *what, uint64_t orders)
{
	struct timespec from, to;
	bool more;

	memset(&o.runs, 0, sizeof o - offsetof(__typeof__(o), runs));
	o.what = what;
	o.fixed = 0;
	o.random = 0x9e3779b97f4a7c15u;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		run_once();
		more = what->random ? o.runs < orders : next_order();
	} while (more);
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("ok - %s: %llu orders%s (%llu found to be the same), up to %u steps, saw %#x, %.1f s\n", what->name,
	       (unsigned long long)o.runs, what->random ? " drawn" : "", (unsigned long long)o.redundant_runs,
	       o.deepest, o.saw, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9);
	fflush(stdout);
}

static unsigned check_all(const struct scenario *s, const char *name, uint64_t orders)
{
	unsigned found = 0;

	for (; s->name; s++)
		if (!strncmp(s->name, name, strlen(name))) {
			check(s, orders);
			found++;
		}
	return found;
}

/* orders [NAME [DRAWN [MORE]]]: runs scenarios whose names begin with NAME; DRAWN orders of those that are drawn; MORE
 * is added to the bounds of preemptions and old values. */
int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	uint64_t orders = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	unsigned found;

	o.more = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	found = check_all(queue_scenarios, name, orders) + check_all(object_scenarios, name, orders) +
		check_all(runtime_scenarios, name, orders);
	if (!found)
		fprintf(stderr, "usage: orders [NAME [DRAWN [MORE]]]: no scenario's name begins with '%s'\n", name);
	return found ? 0 : 2;
}
