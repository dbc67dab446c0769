/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libmprompt: the lab's programs on libmprompt and on libmpeff, its effect handlers, for
 * ./weft lab --peer libmprompt=DIR. case=NAME selects a program. Each operation has the cheapest kind that its handler
 * allows: TAIL_NOOP if the handler resumes last and performs nothing, TAIL if it performs, SCOPED_ONCE if it computes
 * after the resume, ONCE if it stores the resumption.
 */
#include "suite.h"
#include <mpeff.h>
#include <mprompt.h>

MPE_DEFINE_EFFECT2(state, get, put)
MPE_DEFINE_EFFECT1(unrelated, nothing)
MPE_DEFINE_EFFECT1(output, emit)
MPE_DEFINE_EFFECT1(early, done)
MPE_DEFINE_EFFECT1(input, read)
MPE_DEFINE_EFFECT1(ending, stop)
MPE_DEFINE_EFFECT1(nontail, operate)
MPE_DEFINE_EFFECT1(sieve, prime)

static int64_t get(void)
{
	return (int64_t)mpe_perform(MPE_OPTAG(state, get), NULL);
}

static void put(int64_t value)
{
	mpe_perform(MPE_OPTAG(state, put), (void *)value);
}

static void emit(int64_t value)
{
	mpe_perform(MPE_OPTAG(output, emit), (void *)value);
}

/* ---- libmprompt: a resume and a yield -------------------------------------------------------------------- */

static mp_resume_t *resumption;

static void *keep(mp_resume_t *r, void *arg)
{
	resumption = r;
	return arg;
}

static void *yield_body(mp_prompt_t *parent, void *unused)
{
	intptr_t sum = 0;

	for (;;)
		sum += (intptr_t)mp_yield(parent, keep, (void *)sum);
	return unused;
}

static int64_t resume_yield(int64_t n)
{
	intptr_t sum;
	int64_t i;

	lab_start();
	sum = (intptr_t)mp_prompt(yield_body, NULL);
	for (i = 0; i < n; i++)
		sum = (intptr_t)mp_resume(resumption, (void *)1);
	lab_stop();
	return sum;
}

/* ---- state under d handlers of another effect -------------------------------------------------------------- */

static void *on_get(mpe_resume_t *r, void *local, void *unused)
{
	(void)unused;
	return mpe_resume_tail(r, local, local);
}

static void *on_put(mpe_resume_t *r, void *local, void *value)
{
	(void)local;
	return mpe_resume_tail(r, value, NULL);
}

static void *on_nothing(mpe_resume_t *r, void *local, void *unused)
{
	(void)unused;
	return mpe_resume_tail(r, local, NULL);
}

static void *last_state(void *local, void *unused)
{
	(void)unused;
	return local;
}

static const mpe_handlerdef_t by_state = {MPE_EFFECT(state),
					  last_state,
					  {{MPE_OP_TAIL_NOOP, MPE_OPTAG(state, get), on_get},
					   {MPE_OP_TAIL_NOOP, MPE_OPTAG(state, put), on_put},
					   {MPE_OP_NULL, mpe_op_null, NULL}}};
static const mpe_handlerdef_t by_other = {MPE_EFFECT(unrelated),
					  NULL,
					  {{MPE_OP_TAIL_NOOP, MPE_OPTAG(unrelated, nothing), on_nothing},
					   {MPE_OP_NULL, mpe_op_null, NULL}}};

static void *descend(void *depth)
{
	int64_t s;

	if (depth)
		return mpe_handle(&by_other, NULL, descend, (char *)depth - 1);
	lab_start();
	while ((s = get()) > 0)
		put(s - 1);
	lab_stop();
	return NULL;
}

static int64_t state(int64_t n, int64_t depth)
{
	return (int64_t)mpe_handle(&by_state, (void *)n, descend, (void *)depth);
}

static void *get_body(void *arg)
{
	int64_t *n = arg, sum = 0, i;

	for (i = 0; i < *n; i++)
		sum += get();
	*n = sum;
	return NULL;
}

static int64_t perform(int64_t n)
{
	lab_start();
	mpe_handle(&by_state, (void *)1, get_body, &n);
	lab_stop();
	return n;
}

/* ---- the suite --------------------------------------------------------------------------------------------- */

static void *on_emit(mpe_resume_t *r, void *sum, void *value)
{
	return mpe_resume_tail(r, (void *)((int64_t)sum + (int64_t)value), NULL);
}

static const mpe_handlerdef_t summing = {MPE_EFFECT(output),
					 last_state,
					 {{MPE_OP_TAIL_NOOP, MPE_OPTAG(output, emit), on_emit},
					  {MPE_OP_NULL, mpe_op_null, NULL}}};

static void *produce(void *arg)
{
	int64_t end = *(int64_t *)arg, i;

	for (i = 0; i <= end; i++)
		emit(i);
	return NULL;
}

static int64_t iterator(int64_t n)
{
	return (int64_t)mpe_handle(&summing, NULL, produce, &n);
}

static void walk(const struct tree *tree)
{
	if (!tree)
		return;
	walk(tree->left);
	emit(tree->value);
	walk(tree->right);
}

static void *walk_body(void *tree)
{
	walk(tree);
	return NULL;
}

/* The consumer holds the generator and requests one value at a time. */
struct generator {
	mpe_resume_t *k; /* NULL after the last value */
	int64_t value;
};

static void *on_emit_kept(mpe_resume_t *r, void *generator, void *value)
{
	*(struct generator *)generator = (struct generator){r, (int64_t)value};
	return NULL;
}

static void *on_end(void *generator, void *unused)
{
	((struct generator *)generator)->k = NULL;
	return unused;
}

static const mpe_handlerdef_t generating = {MPE_EFFECT(output),
					    on_end,
					    {{MPE_OP_ONCE, MPE_OPTAG(output, emit), on_emit_kept},
					     {MPE_OP_NULL, mpe_op_null, NULL}}};

static bool next(struct generator *g, int64_t *value)
{
	if (!g->k)
		return false;
	*value = g->value;
	mpe_resume(g->k, g, NULL);
	return true;
}

static int64_t generator(int64_t n)
{
	struct generator g = {NULL, 0};
	int64_t sum = 0, value;

	mpe_handle(&generating, &g, walk_body, (void *)tree_make(n));
	while (next(&g, &value))
		sum += value;
	return sum;
}

static LAB_NOINLINE int64_t product(const struct list *xs)
{
	int64_t rest;

	if (!xs)
		return 1;
	if (xs->head == 0)
		mpe_perform(MPE_OPTAG(early, done), NULL);
	rest = product(xs->tail);
	LAB_HIDE(rest);
	return xs->head * rest;
}

static void *product_body(void *xs)
{
	return (void *)product(xs);
}

static void *on_done(mpe_resume_t *r, void *local, void *value)
{
	(void)r, (void)local;
	return value;
}

static const mpe_handlerdef_t leaving = {
    MPE_EFFECT(early), NULL, {{MPE_OP_NEVER, MPE_OPTAG(early, done), on_done}, {MPE_OP_NULL, mpe_op_null, NULL}}};

static int64_t product_early(int64_t n)
{
	const struct list *xs = list_make();
	int64_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum += (int64_t)mpe_handle(&leaving, NULL, product_body, (void *)xs);
	return sum;
}

static void *on_read(mpe_resume_t *r, void *feed, void *unused)
{
	(void)unused;
	if (feed_ends(feed))
		return mpe_perform(MPE_OPTAG(ending, stop), NULL);
	return mpe_resume_tail(r, feed, (void *)feed_next(feed));
}

/* The handler of read performs stop, so its kind is TAIL instead of TAIL_NOOP. */
static const mpe_handlerdef_t feeding = {
    MPE_EFFECT(input), NULL, {{MPE_OP_TAIL, MPE_OPTAG(input, read), on_read}, {MPE_OP_NULL, mpe_op_null, NULL}}};
static const mpe_handlerdef_t stopping = {
    MPE_EFFECT(ending), NULL, {{MPE_OP_NEVER, MPE_OPTAG(ending, stop), on_done}, {MPE_OP_NULL, mpe_op_null, NULL}}};

static void *parse(void *unused)
{
	int64_t count = 0;

	for (;;) {
		if ((int64_t)mpe_perform(MPE_OPTAG(input, read), NULL) == '$') {
			count++;
		} else {
			emit(count);
			count = 0;
		}
	}
	return unused;
}

static void *under_stop(void *feed)
{
	return mpe_handle(&feeding, feed, parse, NULL);
}

static void *under_sum(void *feed)
{
	return mpe_handle(&stopping, NULL, under_stop, feed);
}

static int64_t parsing_dollars(int64_t n)
{
	struct feed feed = {0, 0, n};

	return (int64_t)mpe_handle(&summing, NULL, under_sum, &feed);
}

/* The handler computes after it has resumed. */
static void *on_operate(mpe_resume_t *r, void *local, void *x)
{
	return (void *)op((int64_t)x, (int64_t)mpe_resume(r, local, NULL));
}

static const mpe_handlerdef_t operating = {MPE_EFFECT(nontail),
					   last_state,
					   {{MPE_OP_SCOPED_ONCE, MPE_OPTAG(nontail, operate), on_operate},
					    {MPE_OP_NULL, mpe_op_null, NULL}}};

static void *operate_body(void *arg)
{
	int64_t i;

	for (i = *(int64_t *)arg; i > 0; i--)
		mpe_perform(MPE_OPTAG(nontail, operate), (void *)i);
	return NULL;
}

static int64_t resume_nontail(int64_t n)
{
	void *seed = NULL;
	int i;

	for (i = 0; i < 1000; i++)
		seed = mpe_handle(&operating, seed, operate_body, &n);
	return (int64_t)seed;
}

struct search {
	int64_t from, end, sum;
};

static bool prime(int64_t e)
{
	return mpe_perform(MPE_OPTAG(sieve, prime), (void *)e) != NULL;
}

/*
 * `p` is the handler's state, a prime. The kind is SCOPED_ONCE, because a TAIL operation that performs its own effect
 * would be its own handler.
 */
static void *on_prime(mpe_resume_t *r, void *p, void *e)
{
	bool answer = (int64_t)e % (int64_t)p != 0 && prime((int64_t)e);

	return mpe_resume_tail(r, p, (void *)(uintptr_t)answer);
}

static void *on_prime_outermost(mpe_resume_t *r, void *local, void *unused)
{
	(void)unused;
	return mpe_resume_tail(r, local, (void *)1);
}

static const mpe_handlerdef_t dividing = {MPE_EFFECT(sieve),
					  NULL,
					  {{MPE_OP_SCOPED_ONCE, MPE_OPTAG(sieve, prime), on_prime},
					   {MPE_OP_NULL, mpe_op_null, NULL}}};
static const mpe_handlerdef_t outermost = {MPE_EFFECT(sieve),
					   NULL,
					   {{MPE_OP_SCOPED_ONCE, MPE_OPTAG(sieve, prime), on_prime_outermost},
					    {MPE_OP_NULL, mpe_op_null, NULL}}};

static void *search(void *arg)
{
	struct search *s = arg;
	int64_t i;

	for (i = s->from; i < s->end; i++) {
		if (prime(i)) {
			s->sum += i;
			s->from = i + 1;
			return mpe_handle(&dividing, (void *)i, search, s);
		}
	}
	return NULL;
}

static int64_t handler_sieve(int64_t n)
{
	struct search s = {2, n, 0};

	mpe_handle(&outermost, NULL, search, &s);
	return s.sum;
}

static const struct suite_case cases[] = {{"resume_yield", resume_yield, false},
					  {"perform", perform, false},
					  {"iterator", iterator, true},
					  {"generator", generator, true},
					  {"product_early", product_early, true},
					  {"parsing_dollars", parsing_dollars, true},
					  {"resume_nontail", resume_nontail, true},
					  {"handler_sieve", handler_sieve, true},
					  {NULL, NULL, false}};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5);

	if (lab_is(argc, argv, "case", "state"))
		return lab_report((uint64_t)(2 * n + 1), state(n, lab_number(argc, argv, "d", 0)));
	return suite_main(argc, argv, cases);
}
