/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit.h"

/*
 * clang gives the note only to units that have a checked function. It cannot check variadic functions, and leaf
 * functions need no check.
 */
static bool needs_no_check(const struct unit *u, const struct function *f)
{
	if (!f->makes_calls)
		return true;
	for (int i = f->first; i <= f->last; i++) {
		const struct line *l = &u->lines[i];

		if (l->kind == CODE && IS(l->word, "testb") && IS(l->operands, "%al, %al"))
			return true;
	}
	return false;
}

static void expect_checks(const struct unit *u)
{
	if (u->has_split_note || u->has_checks)
		return;
	for (size_t i = 0; i < u->function_count; i++) {
		if (u->is_gcc || !needs_no_check(u, u->functions[i]))
			refuse(u, NULL, "compiled without stack checks: compile with -fsplit-stack");
	}
}

/* A piece of code that several functions share uses their frames, and could not find them from another chunk. */
static void expect_whole_functions(const struct unit *u)
{
	for (size_t i = 0; i < u->function_count; i++) {
		if (STARTS(u->functions[i]->symbol->name, "OUTLINED_FUNCTION_"))
			refuse(u, NULL, "pieces of functions cannot be instrumented: drop -moutline");
	}
}

static bool is_for_us(struct unit *u)
{
	if (u->has_lto)
		refuse(u, NULL, "link-time optimization would bypass the instrumentation: drop -flto");
	/* Hand-written assembly is neither instrumented nor marked. */
	if (!u->function_count || (!u->is_gcc && !u->is_clang))
		return false;
	if (u->is_intel)
		refuse(u, NULL, "only AT&T syntax is understood: drop -masm=intel");
	if (u->is_clang && !u->is_annotated)
		refuse(u, NULL, "clang's comments tell jumps and file-scope assembly apart: drop -fno-verbose-asm");
	expect_whole_functions(u);
	return true;
}

bool analyse(struct unit *u)
{
	static struct graph graph; /* its memory serves every function */

	read_lines(u);
	scan(u);
	if (!is_for_us(u))
		return false;
	decode(u);
	for (size_t i = 0; i < u->function_count; i++) {
		find_check(u, u->functions[i]);
		follow(u, u->functions[i], &graph);
	}
	expect_checks(u);
	return true;
}

static void rewrite_unit(struct unit *u)
{
	for (size_t i = 0; i < u->function_count; i++) {
		rewrite_calls(u, u->functions[i]);
		rewrite_check(u, u->functions[i]);
		widen_alloca(u, u->functions[i]);
	}
	finish_resolvers(u);
	finish_thunks(u);
	finish_probes(u);
}

void transform(struct unit **units, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mark_functions(units[i]);
	if (count && units[0]->policy == LOOKAHEAD)
		look_ahead(units, count);
	for (size_t i = 0; i < count; i++) {
		rewrite_unit(units[i]);
		finish_report(units[i]);
	}
}
