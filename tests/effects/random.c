/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random [OPTION…]: random programs of handlers of all kinds against a model of them (world.h).
 *   --seed N        of the first program, else WEFT_SEED, else random; the seed increases by one for each program
 *   --from N        begin with the Nth program behind that                --programs N   how many
 *   --until N       programs until each clause kind has run N times, or as often as WEFT_EFFECTS says
 *   --threads N     1 to 3; else random
 *   --steps N       steps of a program                                    --profile N    0 to 4; else random
 *   --uncached      the library does not cache search results (WEFT__NO_MEMO)
 *   --trace         print each step
 * Prints a digest of all events, which depends on the seed alone, and how often each kind of clause ran.
 */
#include "world.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum thread_state { ENDED, AT_ROOT, WITHIN, QUITTING };

struct threads {
	pthread_mutex_t lock;
	pthread_cond_t turned;
	int turn;
	enum thread_state state[THREADS];
	pthread_t id[THREADS];
	struct world *world;
};

static __thread struct world *the_world;

struct world *world_of_thread(void);
__attribute__((noinline)) struct world *world_of_thread(void)
{
	return the_world;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void hand_over(struct threads *b, int to)
{
	pthread_mutex_lock(&b->lock);
	b->turn = to;
	pthread_cond_broadcast(&b->turned);
	pthread_mutex_unlock(&b->lock);
}

static void wait_for_turn(struct threads *b, int mine)
{
	pthread_mutex_lock(&b->lock);
	while (b->turn != mine)
		pthread_cond_wait(&b->turned, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

static void root_loop(struct world *w)
{
	const struct threads *b = w->baton;

	while (w->steps > 0 && b->state[w->thread] != QUITTING)
		step(w);
}

struct start {
	struct threads *threads;
	int index;
};

static void *helper(void *argument)
{
	struct start start = *(struct start *)argument;
	struct threads *b = start.threads;
	struct world *w = b->world;

	the_world = w;
	free(argument);
	wait_for_turn(b, start.index);
	if (b->state[start.index] != QUITTING) {
		w->thread = start.index;
		w->cur = &w->root[start.index];
		w->cur->nest = 0;
		b->state[start.index] = WITHIN;
		root_loop(w);
	}
	b->state[start.index] = ENDED;
	hand_over(b, 0);
	return NULL;
}

static void begin_thread(struct threads *b, int i)
{
	struct start *start = malloc(sizeof *start);

	*start = (struct start){b, i};
	b->state[i] = AT_ROOT;
	if (pthread_create(&b->id[i], NULL, helper, start))
		abort();
}

/* Replaces a thread: the new thread's root often has the same address. */
static void replace_thread(struct world *w, int i)
{
	struct threads *b = w->baton;
	struct co *cur = w->cur;

	b->state[i] = QUITTING;
	hand_over(b, i);
	wait_for_turn(b, 0);
	pthread_join(b->id[i], NULL);
	w->thread = 0;
	w->cur = cur;
	begin_thread(b, i);
}

void pass_baton(struct world *w)
{
	struct threads *b = w->baton;
	struct co *cur = w->cur;
	int mine = w->thread, to = (mine + 1 + (int)below(w, (unsigned)w->threads - 1)) % w->threads;

	if (b->state[to] == ENDED)
		return;
	note(w, (uint64_t)to);
	TRACE(w, "thread %d\n", to);
	if (mine == 0 && b->state[to] == AT_ROOT && chance(w, 20)) {
		replace_thread(w, to);
		return;
	}
	b->state[mine] = cur->root && cur->nest == 1 ? AT_ROOT : WITHIN;
	hand_over(b, to);
	wait_for_turn(b, mine);
	w->thread = mine;
	w->cur = cur;
	if (b->state[mine] != QUITTING)
		b->state[mine] = WITHIN;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const struct profile profiles[] = {
    /* perform run loop make wait switch leave reset delete kept baton reincarnate audit */
    {{200, 24, 16, 5, 4, 2, 1, 2, 3, 6, 0, 2, 3}},  {{80, 14, 26, 6, 12, 6, 2, 6, 8, 8, 0, 14, 10}},
    {{120, 40, 20, 6, 6, 4, 1, 4, 5, 10, 0, 8, 8}}, {{160, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4}},
    {{160, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, /* mostly multi clauses */
};
enum { PROFILES = sizeof profiles / sizeof *profiles, MANY = PROFILES - 1 };

struct options {
	uint64_t seed, from, programs, until;
	int threads, profile;
	long steps;
	bool traced, uncached;
};

static void run_program(struct world *w, uint64_t seed, const struct options *o)
{
	struct threads b = {.lock = PTHREAD_MUTEX_INITIALIZER, .turned = PTHREAD_COND_INITIALIZER, .world = w};
	struct profile profile;
	unsigned choice;

	w->random = w->seed = seed;
	w->serial = 0;
	w->record_count = w->instance_count = w->left_count = w->kept_dead_count = 0;
	w->steps = o->steps / 2 + (long)below(w, (unsigned)o->steps);
	w->threads = o->threads ? o->threads : chance(w, 70) ? 1 : 2 + (int)below(w, THREADS - 1);
	choice = below(w, PROFILES);
	if (o->profile >= 0)
		choice = (unsigned)o->profile;
	else if (o->until && w->count[COUNT_MULTI] * 2 < w->count[COUNT_ABORT]) /* the other kinds run often enough */
		choice = MANY;
	w->profile_number = (int)choice;
	profile = profiles[choice];
	profile.weight[10] = w->threads > 1 && profile.weight[2] ? (unsigned char)(1 + below(w, 8)) : 0;
	w->profile = &profile;
	w->nested = !profile.weight[2];
	for (w->active = 0; !w->active || chance(w, 75);)
		w->active |= 1u << below(w, OPS);
	if (chance(w, 20))
		w->active = ~0u;
	w->many = choice == MANY;
	if (w->many)
		w->active = 1u << OP_a0 | 1u << OP_b0 | 1u << OP_b4 | 1u << OP_s0 | 1u << OP_a2 | 1u << OP_a1;
	memset(w->in_storage, 0, sizeof w->in_storage);
	memset(w->tables, 0, sizeof w->tables);
	w->baton = &b;
	w->thread = 0;
	for (int i = 0; i < THREADS; i++)
		w->root[i] = (struct co){.world = w, .root = true, .status = RUNNING, .leaf = &w->root[i]};
	w->cur = &w->root[0];
	b.state[0] = WITHIN;
	for (int i = 1; i < w->threads; i++)
		begin_thread(&b, i);
	root_loop(w);
	for (int i = 1; i < w->threads; i++) {
		if (b.state[i] != ENDED) {
			hand_over(&b, i);
			wait_for_turn(&b, 0);
		}
		CHECK(w, b.state[i] == ENDED);
		pthread_join(b.id[i], NULL);
	}
	w->thread = 0;
	w->cur = &w->root[0];
	clean_up(w);
}

static bool enough(const struct world *w, const struct options *o, uint64_t programs)
{
	if (!o->until)
		return programs >= o->programs;
	for (int i = 0; i < COUNT_REQUEST; i++)
		if (w->count[i] < o->until && !(o->uncached && i == COUNT_CACHED))
			return false;
	return true;
}

static uint64_t number(const char *word, const char *text)
{
	char *end;
	uint64_t n = text ? strtoull(text, &end, 10) : 0;

	if (!text || !*text || *end) {
		fprintf(stderr, "random: %s needs a number\n", word);
		exit(2);
	}
	return n;
}

static void parse(struct options *o, char **words)
{
	while (*words) {
		const char *word = *words++;

		if (!strcmp(word, "--trace")) {
			o->traced = true;
			continue;
		}
		if (!strcmp(word, "--uncached")) {
			o->uncached = true;
			continue;
		}
		if (!strcmp(word, "--seed"))
			o->seed = number(word, *words);
		else if (!strcmp(word, "--from"))
			o->from = number(word, *words);
		else if (!strcmp(word, "--programs"))
			o->programs = number(word, *words);
		else if (!strcmp(word, "--until"))
			o->until = number(word, *words);
		else if (!strcmp(word, "--threads"))
			o->threads = (int)number(word, *words);
		else if (!strcmp(word, "--steps"))
			o->steps = (long)number(word, *words);
		else if (!strcmp(word, "--profile"))
			o->profile = (int)number(word, *words);
		else {
			fprintf(stderr, "random: no option %s: see the top of random.c\n", word);
			exit(2);
		}
		words++;
	}
	if (o->threads > THREADS || o->profile >= PROFILES || o->steps < 2) {
		fprintf(stderr, "random: at most 3 threads, profiles 0 to 4, at least 2 steps\n");
		exit(2);
	}
}

int main(int words, char **word)
{
	static const char *const names[COUNTERS] = {"tail",    "abort", "general",   "multi",	 "cached", "request",
						    "default", "then",	"forwarded", "outwards", "throw",  "steps"};
	const char *seed = getenv("WEFT_SEED"), *until = getenv("WEFT_EFFECTS");
	struct options o = {.seed = seed ? number("WEFT_SEED", seed) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32,
			    .programs = 100,
			    .steps = 3000,
			    .profile = -1};
	struct world *w = calloc(1, sizeof *w);
	uint64_t programs = 0;

	(void)words;
	parse(&o, word + 1);
	if (o.until && until)
		o.until = number("WEFT_EFFECTS", until);
	the_world = w;
	w->traced = o.traced;
	w->records = calloc(RECORDS, sizeof *w->records);
	w->instances = calloc(RECORDS, sizeof *w->instances);
	w->storage = aligned_alloc(64, STORAGES * sizeof *w->storage);
	memset(w->storage, 0, STORAGES * sizeof *w->storage);
	prepare_effects();
	for (; !enough(w, &o, programs); programs++)
		run_program(w, o.seed + o.from + programs, &o);
	printf("digest %016llx, %llu programs", (unsigned long long)w->digest, (unsigned long long)programs);
	for (int i = 0; i < COUNTERS; i++)
		printf(", %s %llu", names[i], (unsigned long long)w->count[i]);
	printf("\n");
	free(w->storage);
	free(w->instances);
	free(w->records);
	free(w);
	return 0;
}
