/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libhandler: the lab's programs on libhandler, which copies stacks, for ./weft lab --peer libhandler=DIR. case=NAME
 * selects a program.
 */
#include "suite.h"
#include <libhandler.h>

LH_DEFINE_EFFECT2(state, get, put)
LH_DEFINE_EFFECT1(unrelated, nothing)
LH_DEFINE_EFFECT1(output, emit)

/* ---- two in turns, by operations that store the resumption ------------------------------------------------- */

static struct {
	lh_resume k;
	lh_value sum;
} turns[2];

/* The handler's state is the index of its turn. */
static lh_value on_emit_kept(lh_resume r, lh_value which, lh_value sum)
{
	turns[which].k = r;
	turns[which].sum = sum;
	return lh_value_null;
}

static const lh_operation kept[] = {{LH_OP_GENERAL, LH_OPTAG(output, emit), on_emit_kept},
				    {LH_OP_NULL, lh_op_null, NULL}};
static const lh_handlerdef keeping = {LH_EFFECT(output), NULL, NULL, NULL, kept};

static lh_value yield_body(lh_value unused)
{
	char live[200];
	char *bytes = live;
	lh_value sum = 0;

	memset(live, 1, sizeof(live));
	for (;;) {
		LAB_KEEP(bytes);
		sum += lh_yield(LH_OPTAG(output, emit), sum) * bytes[sum & 127];
	}
	return unused;
}

static int64_t alternate(int64_t n)
{
	int64_t i;
	int which;

	lab_start();
	for (which = 0; which < 2; which++)
		lh_handle(&keeping, which, yield_body, lh_value_null);
	for (i = 0; i < n / 2; i++)
		for (which = 0; which < 2; which++)
			lh_release_resume(turns[which].k, which, 1);
	lab_stop();
	return turns[0].sum + turns[1].sum;
}

/* ---- state under d handlers of another effect ---------------------------------------------------------------- */

static lh_value on_get(lh_resume r, lh_value local, lh_value unused)
{
	(void)unused;
	return lh_tail_resume(r, local, local);
}

static lh_value on_put(lh_resume r, lh_value local, lh_value value)
{
	(void)local;
	return lh_tail_resume(r, value, lh_value_null);
}

static lh_value on_nothing(lh_resume r, lh_value local, lh_value unused)
{
	(void)unused;
	return lh_tail_resume(r, local, lh_value_null);
}

static lh_value last_state(lh_value local, lh_value unused)
{
	(void)unused;
	return local;
}

static const lh_operation state_operations[] = {{LH_OP_TAIL_NOOP, LH_OPTAG(state, get), on_get},
						{LH_OP_TAIL_NOOP, LH_OPTAG(state, put), on_put},
						{LH_OP_NULL, lh_op_null, NULL}};
static const lh_operation other_operations[] = {{LH_OP_TAIL_NOOP, LH_OPTAG(unrelated, nothing), on_nothing},
						{LH_OP_NULL, lh_op_null, NULL}};
static const lh_handlerdef by_state = {LH_EFFECT(state), NULL, NULL, last_state, state_operations};
static const lh_handlerdef by_other = {LH_EFFECT(unrelated), NULL, NULL, NULL, other_operations};

static lh_value descend(lh_value depth)
{
	lh_value s;

	if (depth)
		return lh_handle(&by_other, lh_value_null, descend, depth - 1);
	lab_start();
	while ((s = lh_yield(LH_OPTAG(state, get), lh_value_null)) > 0)
		lh_yield(LH_OPTAG(state, put), s - 1);
	lab_stop();
	return lh_value_null;
}

static int64_t state(int64_t n, int64_t depth)
{
	return lh_handle(&by_state, n, descend, depth);
}

static lh_value get_body(lh_value n)
{
	lh_value sum = 0, i;

	for (i = 0; i < n; i++)
		sum += lh_yield(LH_OPTAG(state, get), lh_value_null);
	return sum;
}

static const lh_handlerdef by_constant = {LH_EFFECT(state), NULL, NULL, NULL, state_operations};

static int64_t perform(int64_t n)
{
	int64_t sum;

	lab_start();
	sum = lh_handle(&by_constant, 1, get_body, n);
	lab_stop();
	return sum;
}

static const struct suite_case cases[] = {{"alternate", alternate, false},
					  {"perform", perform, false},
					  {NULL, NULL, false}};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5);

	if (lab_is(argc, argv, "case", "state"))
		return lab_report((uint64_t)(2 * n + 1), state(n, lab_number(argc, argv, "d", 0)));
	return suite_main(argc, argv, cases);
}
