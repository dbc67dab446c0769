/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* micro: the cost of single operations of Weft. ./micro case=NAME n=COUNT; the cases are listed at the end. */
#include "lab.h"
#include "tree.h"
#include <weft/weft.h>

WEFT_EFFECT(int64_t, get);

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k)
		lab_die("weft_create");
	return k;
}

/* ---- a raw transfer pair: no parent, no handled set, no current coroutine ------------------------------- */

static void *raw_body(void *arg)
{
	struct weft_link **link = arg;
	intptr_t sum = 0;

	for (;;)
		sum += (intptr_t)weft_arch_yield(*link, &weft_suspended, (void *)sum);
	return NULL;
}

static int64_t raw(int64_t n)
{
	struct weft_link *link;
	weft_coro_t *k = make(raw_body, &link);
	weft_request_t r = {0};
	int64_t i;

	link = &k->link;
	lab_start();
	for (i = 0; i <= n; i++)
		r = weft_arch_resume(&link, (void *)1);
	lab_stop();
	return (intptr_t)r.payload;
}

/* ---- resume + yield, with every check ------------------------------------------------------------------- */

static void *yield_body(void *unused)
{
	weft_coro_t *self = weft_current();
	intptr_t sum = 0;

	for (;;)
		sum += (intptr_t)weft_yield(self, &weft_suspended, (void *)sum);
	return unused;
}

static void *suspend_body(void *unused)
{
	intptr_t sum = 0;

	for (;;)
		sum += (intptr_t)weft_suspend((void *)sum);
	return unused;
}

static LAB_NOINLINE intptr_t one_deep(weft_coro_t *self, intptr_t sum)
{
	intptr_t value = (intptr_t)weft_yield(self, &weft_suspended, (void *)sum);

	LAB_HIDE(value);
	return value;
}

static void *deep_body(void *unused)
{
	weft_coro_t *self = weft_current();
	intptr_t sum = 0;

	for (;;)
		sum += one_deep(self, sum);
	return unused;
}

static int64_t pairs(weft_fn_t *body, int64_t n)
{
	weft_coro_t *k = make(body, NULL);
	weft_request_t r = {0};
	int64_t i;

	lab_start();
	for (i = 0; i <= n; i++)
		r = weft_resume(k, (void *)1, WEFT_HANDLE_NONE);
	lab_stop();
	weft_delete(k);
	return (intptr_t)r.payload;
}

static int64_t resume_yield(int64_t n)
{
	return pairs(yield_body, n);
}

static int64_t resume_suspend(int64_t n)
{
	return pairs(suspend_body, n);
}

static int64_t yield_deep(int64_t n)
{
	return pairs(deep_body, n);
}

/* ---- a symmetric switch: two coroutines switch to each other --------------------------------------------- */

struct partner {
	weft_coro_t *other;
	int64_t n, sum;
};

static void *switch_body(void *arg)
{
	struct partner *p = arg;
	int64_t i;

	for (i = 0; i < p->n; i++)
		p->sum += (intptr_t)weft_switch(p->other, (void *)1);
	return NULL;
}

static int64_t symmetric(int64_t n)
{
	struct partner a = {.n = n / 2}, b = {.n = n}; /* b is still waiting when a ends */
	weft_coro_t *ka = make(switch_body, &a), *kb = make(switch_body, &b);

	a.other = kb;
	b.other = ka;
	lab_start();
	weft_resume(ka, NULL, WEFT_HANDLE_NONE);
	lab_stop();
	weft_delete(ka);
	weft_delete(kb);
	return a.sum * 2;
}

/* ---- two coroutines in turns, each with 200 live bytes ---------------------------------------------------- */

static void *alternate_body(void *unused)
{
	weft_coro_t *self = weft_current();
	char live[200];
	char *bytes = live;
	intptr_t sum = 0;

	memset(live, 1, sizeof(live));
	for (;;) {
		LAB_KEEP(bytes);
		sum += (intptr_t)weft_yield(self, &weft_suspended, (void *)sum) * bytes[sum & 127];
	}
	return unused;
}

static int64_t alternate(int64_t n)
{
	weft_coro_t *a = make(alternate_body, NULL), *b = make(alternate_body, NULL);
	weft_request_t ra = {0}, rb = {0};
	int64_t i;

	lab_start();
	for (i = 0; i <= n / 2; i++) {
		ra = weft_resume(a, (void *)1, WEFT_HANDLE_NONE);
		rb = weft_resume(b, (void *)1, WEFT_HANDLE_NONE);
	}
	lab_stop();
	weft_delete(a);
	weft_delete(b);
	return (intptr_t)ra.payload + (intptr_t)rb.payload;
}

/* ---- perform + resume ------------------------------------------------------------------------------------ */

struct count {
	int64_t n, sum;
};

static void *perform_body(void *arg)
{
	struct count *c = arg;
	int64_t sum = 0, i;

	for (i = 0; i < c->n; i++)
		sum += get();
	c->sum = sum;
	return NULL;
}

static int64_t perform(int64_t n)
{
	struct count c = {n, 0};
	weft_coro_t *k = make(perform_body, &c);
	weft_request_t r;

	lab_start();
	weft_handle (r, k, get)
		weft_reply(get, r, 1);
	lab_stop();
	weft_delete(k);
	return c.sum;
}

/* ---- a whole life ----------------------------------------------------------------------------------------- */

static void *short_body(void *counter)
{
	++*(int64_t *)counter;
	return NULL;
}

static int64_t life_warm(int64_t n)
{
	int64_t done = 0, i;
	weft_coro_t *k;

	for (i = -100; i < n; i++) {
		if (i == 0)
			lab_start();
		k = make(short_body, &done);
		weft_resume(k, NULL, WEFT_HANDLE_NONE);
		weft_delete(k);
	}
	lab_stop();
	return done - 100;
}

/* Like life_warm, by weft_init in storage of the caller's, and by restarting one coroutine. */
static int64_t life_init(int64_t n)
{
	static weft_coro_t k;
	int64_t done = 0, i;

	for (i = -100; i < n; i++) {
		if (i == 0)
			lab_start();
		if (weft_init(&k, short_body, &done, NULL))
			lab_die("weft_init");
		weft_resume(&k, NULL, WEFT_HANDLE_NONE);
		weft_release(&k);
	}
	lab_stop();
	return done - 100;
}

static int64_t life_reset(int64_t n)
{
	int64_t done = 0, i;
	weft_coro_t *k = make(short_body, &done);

	lab_start();
	for (i = 0; i < n; i++) {
		weft_resume(k, NULL, WEFT_HANDLE_NONE);
		weft_reset(k, short_body, &done);
	}
	lab_stop();
	weft_delete(k);
	return done;
}

/* Every stack is new: all coroutines are alive at once. */
static int64_t life_cold(int64_t n)
{
	weft_coro_t **k = malloc((size_t)n * sizeof(*k));
	int64_t done = 0, i;

	if (!k)
		lab_die("malloc");
	memset(k, 0, (size_t)n * sizeof(*k));
	lab_start();
	for (i = 0; i < n; i++) {
		k[i] = make(short_body, &done);
		weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	for (i = 0; i < n; i++)
		weft_delete(k[i]);
	lab_stop();
	free(k);
	return done;
}

/* ---- handles ------------------------------------------------------------------------------------------------ */

static int64_t deref(int64_t n)
{
	weft_coro_t *k = make(short_body, NULL);
	weft_ref_t ref = weft_ref(k);
	int64_t alive = 0, i;

	lab_start();
	for (i = 0; i < n; i++) {
		LAB_KEEP(ref.id);
		if (weft_deref(ref))
			alive++;
	}
	lab_stop();
	weft_delete(k);
	return alive;
}

static int64_t deref_plain(int64_t n)
{
	weft_coro_t *k = make(short_body, NULL);
	int64_t alive = 0, i;

	lab_start();
	for (i = 0; i < n; i++) {
		LAB_KEEP(k);
		if (k)
			alive++;
	}
	lab_stop();
	weft_delete(k);
	return alive;
}

/* ---- a recursive generator ----------------------------------------------------------------------------------- */

static void walk(weft_coro_t *self, const struct tree *tree)
{
	if (!tree)
		return;
	walk(self, tree->left);
	weft_yield(self, &weft_suspended, (void *)(intptr_t)1);
	walk(self, tree->right);
}

static void *walk_body(void *tree)
{
	walk(weft_current(), tree);
	return NULL;
}

/* Walks n values at least, in a tree of the height that this needs. */
static int64_t recursive(int64_t n)
{
	int64_t height = 1, sum = 0;
	weft_coro_t *k;
	weft_request_t r;

	while ((INT64_C(1) << height) - 1 < n)
		height++;
	k = make(walk_body, (void *)tree_make(height));
	lab_start();
	while (sum < n && !weft_returned(r = weft_resume(k, NULL, WEFT_HANDLE_NONE)))
		sum += (intptr_t)r.payload;
	lab_stop();
	weft_delete(k);
	return sum;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void *waiting_body(void *counter)
{
	++*(int64_t *)counter;
	weft_suspend(NULL);
	++*(int64_t *)counter;
	return NULL;
}

static int memory(int64_t n, size_t stack)
{
	weft_coro_t **k = malloc((size_t)n * sizeof(*k));
	weft_attr_t attr = {.stack_size = stack};
	uint64_t resident, tables;
	int64_t started = 0, i;

	if (!k)
		lab_die("malloc");
	memset(k, 0, (size_t)n * sizeof(*k));
	weft_delete(make(short_body, &started));
	resident = lab_resident();
	tables = lab_page_tables();
	lab_start();
	for (i = 0; i < n; i++) {
		k[i] = weft_create_with(waiting_body, &started, &attr);
		if (!k[i])
			lab_die("weft_create_with");
		weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	lab_stop();
	return lab_report_memory((uint64_t)n, resident, tables, started);
}

static const struct {
	const char *name;
	int64_t (*run)(int64_t n);
} cases[] = {
    {"raw", raw},
    {"resume_yield", resume_yield},
    {"resume_suspend", resume_suspend},
    {"yield_deep", yield_deep},
    {"recursive", recursive},
    {"switch", symmetric},
    {"alternate", alternate},
    {"perform", perform},
    {"life_warm", life_warm},
    {"life_init", life_init},
    {"life_reset", life_reset},
    {"life_cold", life_cold},
    {"deref", deref},
    {"deref_plain", deref_plain},
};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 1000);
	size_t i;

	if (lab_is(argc, argv, "case", "memory"))
		return memory(n, (size_t)lab_number(argc, argv, "stack", 256 * 1024));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (lab_is(argc, argv, "case", cases[i].name))
			return lab_report((uint64_t)n, cases[i].run(n));
	lab_die("no such case");
}
