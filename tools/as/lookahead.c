/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Look-ahead, after Capriccio: a check at a checkpoint finds the room that every path from there to the next
 * checkpoints needs, and the functions in between need no check.
 *
 * Nodes are functions with their frames, edges the direct calls and tail jumps between them. A depth-first search finds
 * the edges that close cycles; these edges are checkpoints. On the way back it adds up the longest path below each
 * function. If the path would exceed the bound, the edge becomes a checkpoint, too. A checkpoint is the check at its
 * callee's entry; the other edges go to the body behind it. Functions that can be reached in ways not seen here,
 * through pointers or from other objects, are called by their name and so through their check. A function that is never
 * called through its check has no check. Code behind a checkpoint, a pointer or a thunk needs only the slack.
 *
 * With several units, calls between them are edges as well.
 */
#include "unit.h"

#define RETURN_ADDRESS 8
#define TLS_CALL 4096

enum mark { UNSEEN, OPEN, DONE };

struct edge {
	struct edge *next;
	struct line *line;
	struct unit *caller_unit;
	struct function *callee;
	const char *reason; /* why the edge is a checkpoint, or NULL */
};

/* ---- the graph -------------------------------------------------------------------------------------------------- */

/* Functions of all units that can be called by name from any of them. */
struct globals {
	struct unit names; /* only its table of symbols */
};

static bool is_in_group(const struct unit *u, const struct function *f)
{
	return u->sections[u->lines[f->first].section].group.n != 0;
}

static void collect_globals(struct globals *g, struct unit *u)
{
	for (size_t i = 0; i < u->symbol_count; i++) {
		struct symbol *s = u->symbols[i], *known;
		struct function *f = function_of(s);

		if (!f || !s->is_global || s->is_weak || is_in_group(u, f))
			continue;
		known = symbol(&g->names, s->name);
		/* There are two definitions: it is unknown which definition the linker takes. */
		known->is_weak = known->function != NULL;
		known->function = f;
	}
}

static struct function *callee_of(struct globals *g, struct unit *u, const struct line *l)
{
	struct symbol *s = l->symbol, *known;
	struct function *f;

	if (!s || s->is_ifunc)
		return NULL;
	f = function_of(s);
	/* The linker may take the group of another object, or a definition other than a weak definition. */
	if (f)
		return is_in_group(u, f) || s->is_weak ? NULL : f;
	known = s->is_defined ? NULL : find_symbol(&g->names, s->name);
	return known && !known->is_weak ? known->function : NULL;
}

static void add_edges(struct globals *g, struct unit *u, struct function *f)
{
	for (int i = f->last; i >= f->first; i--) {
		struct line *l = &u->lines[i];
		struct function *callee;
		struct edge *e;

		if (l->kind != CODE || l->from_user || l->dropped ||
		    (l->op != OP_CALL && l->op != OP_JUMP && l->op != OP_BRANCH))
			continue;
		callee = callee_of(g, u, l);
		if (!callee)
			continue;
		e = keep(sizeof *e);
		*e = (struct edge){f->edges, l, u, callee, NULL};
		f->edges = e;
	}
}

/* ---- the search ------------------------------------------------------------------------------------------------- */

static int64_t path_through(const struct function *f, const struct edge *e)
{
	if (e->line->op == OP_CALL)
		return f->frame + RETURN_ADDRESS + e->callee->path;
	/* A tail jump happens after the frame is gone. */
	return e->callee->path;
}

static void visit(struct function *f, int64_t bound)
{
	f->mark = OPEN;
	f->path = f->frame + (f->has_tls_calls ? TLS_CALL : 0);
	for (struct edge *e = f->edges; e; e = e->next) {
		struct function *callee = e->callee;

		if (callee->is_leaf)
			continue;
		if (callee->mark == UNSEEN)
			visit(callee, bound);
		if (callee->mark == OPEN)
			e->reason = "cycle";
		else if (!callee->can_enter_body && callee->is_checkpoint)
			e->reason = "entered at its check";
		else if (path_through(f, e) > bound)
			e->reason = "bound";
		else if (path_through(f, e) > f->path)
			f->path = path_through(f, e);
		if (e->reason) {
			callee->is_checkpoint = true;
			callee->reason = callee->reason ? callee->reason : e->reason;
		}
	}
	f->mark = DONE;
}

static const char *reason_of_entry(const struct unit *u, const struct function *f)
{
	for (size_t i = 0; i < u->symbol_count; i++) {
		const struct symbol *s = u->symbols[i];

		if ((s->is_global || s->is_weak) && resolve((struct symbol *)s)->function == f)
			return "exported";
	}
	return "address taken";
}

/* ---- the calls that need no check ------------------------------------------------------------ */

const char *body_name(struct function *f)
{
	if (!f->body && f->is_body_global)
		f->body = say("weft.body.%.*s", SHOW(f->symbol->name));
	else if (!f->body)
		f->body = say(".Lweft.body%u", new_label(f->unit));
	return f->body;
}

static void direct_edges(struct function *f)
{
	for (struct edge *e = f->edges; e; e = e->next) {
		struct function *callee = e->callee;

		if (e->reason || !callee->is_checkpoint || !callee->can_enter_body)
			continue;
		callee->is_body_entered = true;
		callee->is_body_global |= e->caller_unit != callee->unit;
		e->line->function = callee;
	}
}

/* ---- the report ------------------------------------------------------------ */

static void report_function(struct buffer *to, const struct function *f)
{
	struct view name = f->symbol->name;

	if (f->is_checkpoint)
		print(to, "checkpoint %.*s: bound %lld: %s\n", SHOW(name), (long long)f->need, f->reason);
	print(to, "function %.*s: frame %lld, path %lld, calls", SHOW(name), (long long)f->frame, (long long)f->path);
	for (const struct edge *e = f->edges; e; e = e->next)
		print(to, " %.*s%s", SHOW(e->callee->symbol->name), e->reason ? "!" : "");
	print(to, "%s\n", f->is_leaf ? " nothing: a leaf" : f->edges ? "" : " none seen");
}

static void report(struct unit *u)
{
	struct view name = u->source;
	size_t edges = 0, checkpoints = 0;
	int64_t largest = 0;

	if (!name.n)
		name = (struct view){u->path, strlen(u->path)};
	for (size_t i = 0; i < u->function_count; i++) {
		const struct function *f = u->functions[i];

		for (const struct edge *e = f->edges; e; e = e->next)
			edges++;
		checkpoints += f->is_checkpoint;
		largest = f->is_checkpoint && f->need > largest ? f->need : largest;
	}
	print(&u->report, "unit %.*s: functions %zu, edges %zu, checkpoints %zu, largest bound %lld\n", SHOW(name),
	      u->function_count, edges, checkpoints, (long long)largest);
	for (size_t i = 0; i < u->function_count; i++)
		report_function(&u->report, u->functions[i]);
}

/* The report, one string per line, in a section that no program loads. */
void finish_report(struct unit *u)
{
	struct view left = {u->report.at ? u->report.at : "", u->report.n};

	if (!left.n)
		return;
	print(&u->end, "\t.section\t.weft.lookahead,\"\",@progbits\n");
	while (left.n) {
		struct view line = cut(&left, '\n');

		print(&u->end, "\t.ascii\t\"%.*s\\n\"\n", SHOW(line));
	}
}

/* ---- all of it ------------------------------------------------------------ */

static void prepare(struct globals *g, struct unit *u)
{
	for (size_t i = 0; i < u->function_count; i++) {
		struct function *f = u->functions[i];

		f->unit = u;
		f->frame = frame_of(u, f);
		f->can_enter_body = can_enter_body(f);
		add_edges(g, u, f);
		f->may_be_leaf = is_leaf(u, f);
	}
}

static bool jumps_to_leaves_only(const struct function *f)
{
	for (const struct edge *e = f->edges; e; e = e->next) {
		if (!e->callee->is_leaf)
			return false;
	}
	return true;
}

/* True if it found leaves that were not known. */
static bool find_leaves(struct unit *u)
{
	bool found = false;

	for (size_t i = 0; i < u->function_count; i++) {
		struct function *f = u->functions[i];

		if (f->may_be_leaf && !f->is_leaf && jumps_to_leaves_only(f))
			found = f->is_leaf = true;
	}
	return found;
}

static void check_entries(struct unit *u)
{
	for (size_t i = 0; i < u->function_count; i++) {
		struct function *f = u->functions[i];

		if (f->is_marked && !f->is_leaf) {
			f->is_checkpoint = true;
			f->reason = reason_of_entry(u, f);
		}
	}
}

static void search(struct unit *u, bool from_entries)
{
	for (size_t i = 0; i < u->function_count; i++) {
		struct function *f = u->functions[i];

		if (f->mark == UNSEEN && f->is_marked == from_entries)
			visit(f, u->bound);
	}
}

void look_ahead(struct unit **units, size_t count)
{
	struct globals g = {{0}};
	bool found;

	for (size_t i = 0; i < count; i++)
		collect_globals(&g, units[i]);
	for (size_t i = 0; i < count; i++)
		prepare(&g, units[i]);
	do {
		found = false;
		for (size_t i = 0; i < count; i++)
			found |= find_leaves(units[i]);
	} while (found);
	for (size_t i = 0; i < count; i++)
		check_entries(units[i]);
	for (size_t i = 0; i < count; i++)
		search(units[i], true);
	for (size_t i = 0; i < count; i++)
		search(units[i], false);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < units[i]->function_count; k++) {
			struct function *f = units[i]->functions[k];

			f->need = f->path;
			direct_edges(f);
		}
		report(units[i]);
	}
}
