/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * E: activities, and the same code as plain C.
 *
 *   ./program case=NAME n=COUNT [laps=L] [level=L] [tasks=T] [depth=D] [plain=1]
 *   ./program case=memory mb=BUDGET
 *
 * With WEFT_ACTIVITIES=stackful each activity has a whole stack, of the policy in WEFT_STACK.
 */
#include <weft/charcoal.h>

#define LAB_ATOMIC NO_YIELD
#include "activities.h"

struct run {
	int64_t n, laps, result;
	uint64_t ops;
	int level;	  /* number of atomic levels of calls; strcmp yields every 2^level characters */
	int tasks, depth; /* of the ring: number of tasks, and depth of the calls in which each waits */
	bool plain;
};

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/* Each activity waits for the activity before it. */
static void chain(struct run *r)
{
	activity_t *all = calloc((size_t)r->n, sizeof(*all)), *before = NULL;
	int64_t ended = 0;

	if (!all)
		lab_die("calloc");
	lab_start();
	for (int64_t i = 0; i < r->n; i++) {
		activity_t *self = &all[i];
		activate(self, before)
		{
			if (before)
				activity_wait(before);
			ended++;
		}
		before = self;
	}
	activity_wait(before);
	lab_stop();
	free(all);
	r->result = ended;
	r->ops = (uint64_t)r->n;
}

struct spawner {
	activity_t handles[2];
	activity_sem_t end;
	int64_t n, ended;
};

/* Each activity waits for the activity before it, and then spawns the next: two handles are enough. */
static void spawn_next(struct spawner *s, int64_t i)
{
	activate(&s->handles[i % 2], s, i)
	{
		if (i)
			activity_wait(&s->handles[(i - 1) % 2]);
		s->ended++;
		if (i + 1 < s->n)
			spawn_next(s, i + 1);
		else
			activity_sem_post(&s->end);
	}
}

static void spawn(struct run *r)
{
	struct spawner s = {.n = r->n};

	activity_sem_init(&s.end, 0);
	lab_start();
	spawn_next(&s, 0);
	activity_sem_wait(&s.end);
	activity_wait(&s.handles[(s.n - 1) % 2]);
	lab_stop();
	r->result = s.ended;
	r->ops = (uint64_t)s.n;
}

static void take_turns(activity_sem_t *mine, activity_sem_t *next, int64_t rounds, int64_t *turns)
{
	for (int64_t k = 0; k < rounds; k++) {
		activity_sem_wait(mine);
		++*turns;
		activity_sem_post(next);
	}
}

/* The variable prevents the compiler from turning the recursion into a loop. */
LAB_NOINLINE static int64_t deeper(int depth, activity_sem_t *mine, activity_sem_t *next, int64_t rounds,
				   int64_t *turns)
{
	volatile int here = depth;

	if (depth)
		return deeper(depth - 1, mine, next, rounds, turns) + here - depth;
	take_turns(mine, next, rounds, turns);
	return 0;
}

static void ring(struct run *r)
{
	int tasks = r->tasks, depth = r->depth;
	activity_sem_t *sems = calloc((size_t)tasks, sizeof *sems);
	activity_t *all = calloc((size_t)tasks, sizeof *all);
	int64_t rounds = r->n / tasks, turns = 0;

	if (!sems || !all)
		lab_die("calloc");
	for (int i = 0; i < tasks; i++)
		activity_sem_init(&sems[i], 0);
	lab_start();
	for (int i = 0; i < tasks; i++)
		activate(&all[i], i, sems, tasks, rounds, depth)
		{
			activity_sem_t *mine = &sems[i], *next = &sems[(i + 1) % tasks];

			if (depth)
				deeper(depth, mine, next, rounds, &turns);
			else
				take_turns(mine, next, rounds, &turns);
		}
	activity_sem_post(&sems[0]);
	for (int i = 0; i < tasks; i++)
		activity_wait(&all[i]);
	lab_stop();
	free(sems);
	free(all);
	r->result = turns;
	r->ops = (uint64_t)turns;
}

/* Creates activities that wait, until their memory reaches the budget, or, without a budget, until there are n. */
static int memory(struct run *r, uint64_t budget)
{
	uint64_t resident = lab_resident(), tables = lab_page_tables();
	activity_sem_t gate;
	int64_t made = 0, waiting = 0;
	int code;

	activity_sem_init(&gate, 0);
	lab_start();
	while (budget ? made % 1024 || lab_has_room(resident, budget) : made < r->n) {
		activate_detached()
		{
			waiting++;
			activity_sem_wait(&gate);
			waiting--;
		}
		if (++made % 64 == 0)
			yield_now();
	}
	while (waiting < made)
		yield_now();
	lab_stop();
	code = lab_report_memory((uint64_t)made, resident, tables, budget ? waiting == made : waiting);
	for (int64_t i = 0; i < made; i++)
		activity_sem_post(&gate);
	while (waiting)
		yield_now();
	return code;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int atomic_to; /* n of the largest atomic call: each level above the leaves doubles it */

LAB_NOINLINE static int call_hot(int n, int x)
{
	int half = n / 2, y;

	if (n < 2)
		return lab_table[x];
	if (n > atomic_to)
		return call_hot(half, call_hot(n - half, x));
	no_yield y = call_plain(half, call_plain(n - half, x));
	return y;
}

static void calls(struct run *r)
{
	int n = (int)r->n;

	atomic_to = 1 << r->level;
	lab_start();
	r->result = r->plain ? call_plain(n, 1) : r->level ? call_hot(n, 1) : call(n, 1);
	lab_stop();
	r->ops = 2 * (uint64_t)r->n - 1;
}

/* Runs n nested calls, laps times. */
static void linear_calls(struct run *r)
{
	int n = (int)r->n;

	lab_start();
	for (int64_t i = 0; i < r->laps; i++)
		r->result += r->plain ? linear_plain(n) : linear(n);
	lab_stop();
	r->ops = (uint64_t)r->laps * ((uint64_t)r->n + 1);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The plain version, with a yield every 2^k characters. */
#define COMPARE(name, k)                                                                                               \
	LAB_NOINLINE static int name(const char *a, const char *b)                                                     \
	{                                                                                                              \
		no_implicit_yield                                                                                      \
		{                                                                                                      \
			for (unsigned i = 1; *a && *a == *b; a++, b++, i++)                                            \
				if (!(i & ((1u << (k)) - 1)))                                                          \
					yield();                                                                       \
		}                                                                                                      \
		return *a - *b;                                                                                        \
	}
COMPARE(compare_4, 4)
COMPARE(compare_8, 8)
COMPARE(compare_12, 12)

/* Like COMPARE, but with a loop of 2^k characters inside a loop of yields. */
#define COMPARE_NESTED(name, k)                                                                                        \
	LAB_NOINLINE static int name(const char *a, const char *b)                                                     \
	{                                                                                                              \
		no_implicit_yield                                                                                      \
		{                                                                                                      \
			for (;;) {                                                                                     \
				_Pragma("clang loop unroll_count(128)") for (int i = 0; i < 1 << (k); i++, a++, b++)   \
				{                                                                                      \
					if (!*a || *a != *b)                                                           \
						return *a - *b;                                                        \
				}                                                                                      \
				yield();                                                                               \
			}                                                                                              \
		}                                                                                                      \
		return 0;                                                                                              \
	}
COMPARE_NESTED(nested_4, 4)
COMPARE_NESTED(nested_8, 8)
COMPARE_NESTED(nested_12, 12)

enum { STRING = 1 << 20 };

static char *string(void)
{
	char *s = malloc(STRING);

	if (!s)
		lab_die("malloc");
	memset(s, 'x', STRING);
	s[STRING - 1] = '\0';
	return s;
}

static void compare_by(struct run *r, int (*with)(const char *, const char *))
{
	char *a = string(), *b = string();
	bool done = false;
	activity_t other;

	activate(&other) while (!done) yield_now();
	yield_now();
	lab_start();
	for (int64_t i = 0; i < r->n; i++) {
		LAB_KEEP(a);
		r->result += with(a, b) == 0;
	}
	lab_stop();
	done = true;
	activity_wait(&other);
	r->ops = (uint64_t)r->n;
	free(a);
	free(b);
}

static void compare(struct run *r)
{
	compare_by(r, r->plain ? compare_plain : r->level == 4 ? compare_4 : r->level == 8 ? compare_8 : compare_12);
}

static void compare_nested(struct run *r)
{
	compare_by(r, r->plain ? compare_plain : r->level == 4 ? nested_4 : r->level == 8 ? nested_8 : nested_12);
}

static void sums(struct run *r)
{
	enum { MANY = 1 << 16 };
	int *a = calloc(MANY, sizeof(*a));

	if (!a)
		lab_die("calloc");
	a[MANY / 2] = 1;
	lab_start();
	for (int64_t i = 0; i < r->n; i++) {
		LAB_KEEP(a);
		r->result += r->plain ? sum_plain(a, MANY) : sum(a, MANY);
	}
	lab_stop();
	r->ops = (uint64_t)r->n;
	free(a);
}

static void matmuls(struct run *r)
{
	enum { SIDE = 192 };
	double *a = calloc(3 * SIDE * SIDE, sizeof(*a)), *b = a + SIDE * SIDE, *c = b + SIDE * SIDE;

	if (!a)
		lab_die("calloc");
	for (int i = 0; i < SIDE * SIDE; i++)
		a[i] = b[i] = 1;
	lab_start();
	for (int64_t i = 0; i < r->n; i++)
		(r->plain ? matmul_plain : matmul)(c, a, b, SIDE);
	lab_stop();
	r->result = (int64_t)c[SIDE + 1] / SIDE;
	r->ops = (uint64_t)r->n;
	free(a);
}

static void sorts(struct run *r)
{
	enum { MANY = 1 << 14 };
	int *a = malloc(2 * MANY * sizeof(*a)), *b = a + MANY;
	uint32_t x = 1;

	if (!a)
		lab_die("malloc");
	for (int i = 0; i < MANY; i++)
		a[i] = (int)((x = x * 1664525 + 1013904223) >> 8);
	for (int64_t i = 0; i < r->n; i++) {
		memcpy(b, a, MANY * sizeof(*a));
		lab_start();
		(r->plain ? sort_plain : sort)(b, MANY);
		lab_stop();
		r->result += b[0] <= b[1] && b[MANY - 2] <= b[MANY - 1];
	}
	r->ops = (uint64_t)r->n;
	free(a);
}

static void hashes(struct run *r)
{
	enum { SLOTS = 1 << 16 };
	uint32_t *table = calloc(SLOTS, sizeof(*table));

	if (!table)
		lab_die("calloc");
	lab_start();
	r->result = (r->plain ? hash_plain : hash)(table, SLOTS - 1, r->n) > 0;
	lab_stop();
	r->ops = (uint64_t)r->n;
	free(table);
}

static const struct {
	const char *name;
	void (*run)(struct run *);
} cases[] = {
    {"spawn", spawn},	 {"chain", chain},	     {"ring", ring}, {"calls", calls},	  {"linear", linear_calls},
    {"strcmp", compare}, {"nested", compare_nested}, {"sum", sums},  {"matmul", matmuls}, {"sort", sorts},
    {"hash", hashes}};

int activity_main(int argc, char **argv)
{
	struct run r = {.n = lab_number(argc, argv, "n", 10),
			.laps = lab_number(argc, argv, "laps", 1),
			.level = (int)lab_number(argc, argv, "level", 0),
			.tasks = (int)lab_number(argc, argv, "tasks", 100),
			.depth = (int)lab_number(argc, argv, "depth", 0),
			.plain = lab_number(argc, argv, "plain", 0)};

	if (lab_is(argc, argv, "case", "memory"))
		return memory(&r, (uint64_t)lab_number(argc, argv, "mb", 0) << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (lab_is(argc, argv, "case", cases[i].name)) {
			cases[i].run(&r);
			return lab_report(r.ops, r.result);
		}
	fprintf(
	    stderr,
	    "usage: case=NAME n=COUNT [laps=L] [level=L] [tasks=T] [depth=D] [plain=1], or case=memory mb=BUDGET\n");
	return 2;
}
