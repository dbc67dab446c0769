/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random [SEED [STEPS]]: random programs of coroutines in memory of the caller's, against a model that knows nothing of
 * Weft: a stack is an array of numbers, memory without a coroutine holds the bytes that the program put there, and the
 * bytes beside a coroutine's memory never change. Places have random sizes and alignments. When a coroutine leaves a
 * place, it is filled with noise, perhaps moved and resized, and reused. Coroutines call, return and compute as the
 * values of their resumes say, and answer each resume with a digest of all their frames; some are reset, deleted while
 * suspended, initialised in storage of the program's, or refused, because there is too little room or the place is
 * taken. In code compiled for linked stacks they go deeper than their memory. With WEFT_FAIL_EVERY, in a library that
 * supports it, some requests for guards fail.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/effect.h>

#include "require.h"

#ifdef BARE /* tests/freestanding: two policies, neither guards nor unwinding */
enum { POLICIES = 3, HOSTED = 0 };
#else
enum { POLICIES = 7, HOSTED = 1 };
#endif
enum { PLACES = 20, ROOM = 96 * 1024, RED = 512, DEEPEST = 120, FRAME = 600 };
enum { MODEL_MOST = DEEPEST, MODEL_CALLS = 2 };
#include "frames.h"

/* ---- the coroutines ---------------------------------------------------------------------------------------------- */

struct frame {
	uint64_t local;
	struct frame *caller;
	unsigned char room[128]; /* filled with the expected value */
};

struct start {
	int deepest;
	uint64_t answer;
};

static uint64_t digest_frames(const struct frame *f)
{
	uint64_t digest = 1;

	for (; f; f = f->caller) {
		for (size_t i = 0; i < sizeof f->room; i++)
			if (f->room[i] != (unsigned char)(uintptr_t)f)
				return 0;
		digest = mix(digest, f->local);
	}
	return digest;
}

static uint64_t ask(struct start *start, const struct frame *f)
{
	start->answer = digest_frames(f);
	return *(uint64_t *)weft_suspend(start);
}

static __attribute__((noinline)) uint64_t call(struct start *start, struct frame *caller, uint64_t first, int depth)
{
	struct frame f = {.local = first, .caller = caller};
	uint64_t x;

	memset(f.room, (int)(uintptr_t)&f, sizeof f.room);
	for (;;) {
		x = ask(start, &f);
		switch (action_of(x)) {
		case CALL:
			if (depth < start->deepest)
				f.local += call(start, &f, x, depth + 1);
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

static void *body(void *start)
{
	return (void *)call(start, NULL, 0, 0);
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

/* The expected contents of a place without a coroutine: noise computed from the address and a number that changes. */
static struct place {
	_Alignas(4096) unsigned char bytes[ROOM];
	size_t at, size; /* the memory that is passed to the coroutine, with red zones on both sides */
	uint8_t noise;
	weft_coro_t *k, own;
	struct model model;
	struct start start;
} places[PLACES];

static uint64_t state;
static unsigned made, refused_for_size, refused_for_use, deepest_seen, in_storage, guarded;

static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint8_t noise_at(const struct place *p, size_t i)
{
	return (uint8_t)(i * 167 + p->noise + (i >> 8));
}

static void fill(struct place *p, size_t from, size_t to)
{
	for (; from < to; from++)
		p->bytes[from] = noise_at(p, from);
}

static void check_noise(const struct place *p, size_t from, size_t to, const char *where)
{
	for (; from < to; from++)
		if (p->bytes[from] != noise_at(p, from)) {
			fprintf(stderr, "not ok - %s: byte %zu of place %zu was written\n", where, from,
				(size_t)(p - places));
			exit(1);
		}
}

static void check_surroundings(const struct place *p)
{
	check_noise(p, 0, p->at, "below the memory");
	check_noise(p, p->at + p->size, ROOM, "above the memory");
	if (!p->k)
		check_noise(p, p->at, p->at + p->size, "in memory without a coroutine");
}

static void move(struct place *p)
{
	static const size_t scales[] = {2000, 6000, 20000, 50000, 80000};
	size_t most = scales[draw() % 5];

	p->noise = (uint8_t)draw();
	p->size = draw() % most;
	p->at = RED + draw() % (ROOM - 2 * RED - p->size);
	if (draw() % 3 == 0)
		p->at &= ~(size_t)63;
	fill(p, 0, ROOM);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static weft_attr_t attributes(struct place *p)
{
	static const weft_policy_t policies[] = {WEFT_DEFAULT_POLICY, WEFT_FIXED,     WEFT_OVERCOMMIT, WEFT_COMMIT,
						 WEFT_SEGMENTED,      WEFT_LOOKAHEAD, WEFT_MMU};
	static const unsigned flags[] = {0, WEFT_NO_GUARD, WEFT_SAVE_FPU, HOSTED * WEFT_UNWIND, WEFT_SAVE_EXCEPTIONS};
	weft_attr_t attr = {.name = "random",
			    .policy = policies[draw() % POLICIES],
			    .flags = flags[draw() % 5],
			    .memory = p->bytes + p->at,
			    .memory_size = p->size};

	/* Linked stacks fail if the memory for their growth is refused. */
	if (attr.policy >= WEFT_SEGMENTED && getenv("WEFT_FAIL_EVERY"))
		attr.policy = WEFT_FIXED;
	if (HOSTED && !(attr.flags & WEFT_NO_GUARD) && draw() % 4 == 0)
		attr.guard_size = 1 + draw() % 9000;
#ifdef LINKED
	/* Code for one kind of linked stacks does not find the end of another kind. */
	if (attr.policy >= WEFT_SEGMENTED && strcmp(LINKED, weft_policy_name(attr.policy)))
		attr.policy = weft_policy_named(LINKED);
#endif
	return attr;
}

static void begin(struct place *p, bool linked)
{
	size_t usable = weft_stack_usable(p->k);

	p->start = (struct start){0, 0};
	/* Leaves room for the first frames, and for the kibibyte below frames to which code for mmu writes. */
	p->start.deepest = usable > 4000 ? (int)((usable - 4000) / FRAME) : 0;
	/* The stack grows; code without checks runs on a system stack. */
	if (linked || p->start.deepest > DEEPEST)
		p->start.deepest = DEEPEST;
	p->model = (struct model){.deepest = p->start.deepest};
}

static void step(struct place *p, uint64_t x);

static void make(struct place *p)
{
	weft_attr_t attr = attributes(p);
	bool in_own = draw() % 4 == 0 && p->k != &p->own; /* the object would be released first */
	size_t least = weft_memory_size(&attr, 0);
	weft_coro_t *k;
	int error = 0;

	if (in_own) {
		error = weft_init(&p->own, body, &p->start, &attr);
		k = error ? NULL : &p->own;
	} else {
		k = weft_create_with(body, &p->start, &attr);
		error = k ? 0 : -errno;
	}
	if (p->k) {
		REQUIRE(!k);
		REQUIRE(error == -EBUSY || error == -ENOSPC);
		refused_for_use += error == -EBUSY;
		return;
	}
	if (!k && error == -ENOMEM && getenv("WEFT_FAIL_EVERY")) { /* for the guard */
		check_surroundings(p);
		return;
	}
	if (!k) {
		REQUIRE(error == -ENOSPC && p->size < least);
		refused_for_size++;
		check_surroundings(p);
		move(p);
		return;
	}
	REQUIRE(p->size + 4096 + 64 >= least);
	p->k = k;
	made++;
	in_storage += in_own;
	guarded += attr.guard_size != 0;
	begin(p, weft_policy(k) >= WEFT_SEGMENTED && weft_policy(k) != WEFT_DEFAULT_POLICY);
	step(p, 0);
}

/* The first resume brings no value. */
static void step(struct place *p, uint64_t x)
{
	weft_request_t r = weft_resume(p->k, &x, WEFT_HANDLE_NONE);

	if (p->model.over) {
		REQUIRE(weft_returned(r));
		REQUIRE((uint64_t)r.payload == p->model.local[0]);
		return;
	}
	REQUIRE(r.effect == &weft_suspended && r.payload == &p->start);
	REQUIRE(p->start.answer == digest_of(&p->model));
	if ((unsigned)p->model.depth > deepest_seen)
		deepest_seen = (unsigned)p->model.depth;
}

static void resume(struct place *p)
{
	uint64_t x = draw();

	model_step(&p->model, x);
	step(p, x);
}

static void end(struct place *p)
{
	if (p->k == &p->own)
		weft_release(p->k);
	else
		weft_delete(p->k);
	p->k = NULL;
	check_noise(p, 0, p->at, "below the memory");
	check_noise(p, p->at + p->size, ROOM, "above the memory");
	fill(p, p->at, p->at + p->size);
	if (draw() % 2)
		move(p);
}

static void reset(struct place *p)
{
	int deepest = p->start.deepest;

	weft_reset(p->k, body, &p->start);
	p->model = (struct model){.deepest = deepest};
	step(p, 0);
}

static void one_step(void)
{
	struct place *p = &places[draw() % PLACES];
	unsigned what = draw() % 100;

	if (!p->k || what < 2)
		make(p);
	else if (p->model.over || what < 4)
		what % 2 ? reset(p) : end(p);
	else
		for (unsigned i = 0; i < 8 && !p->model.over; i++)
			resume(p);
	if (what < 10)
		check_surroundings(p);
}

int main(int count, char **arguments)
{
	uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	unsigned long steps = count > 2 ? strtoul(arguments[2], NULL, 0) : 40000;
	weft_stack_stats_t stats;
	size_t live = 0;
	bool sparing = steps <= 10000 || getenv("WEFT_FAIL_EVERY");

	fprintf(stderr, "replay: random %lu %lu\n", seed, steps);
	state = seed;
	for (int i = 0; i < PLACES; i++)
		move(&places[i]);
	for (unsigned long i = 0; i < steps; i++)
		one_step();
	for (int policy = 1; policy < WEFT_POLICY_COUNT; policy++) {
		REQUIRE(!weft_stack_stats((weft_policy_t)policy, &stats));
		live += stats.in_memory;
	}
	for (int i = 0; i < PLACES; i++) {
		check_surroundings(&places[i]);
		live -= places[i].k != NULL;
		if (places[i].k)
			end(&places[i]);
	}
	REQUIRE(!live);
	/* A run with too few operations proves nothing. */
	printf("%u made, %u of them in storage of their own, %u guarded; refused: %u too small, %u taken; %u deep\n",
	       made, in_storage, guarded, refused_for_size, refused_for_use, deepest_seen);
	REQUIRE(sparing || made > steps / 80);
	REQUIRE(in_storage && guarded + !HOSTED && refused_for_size && refused_for_use && deepest_seen > 60);
	return 0;
}
