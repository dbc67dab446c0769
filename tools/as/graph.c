/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The control-flow graph of a function. A block begins at the entry, at a label that a jump or an exception may go to,
 * and behind an instruction that may go elsewhere. If compilers put a function's parts into several sections, control
 * falls from a block into the next block of the same section.
 *
 * A missing edge would let flow.c draw wrong conclusions. So a jump to a label that is in no function, or in another
 * function, is refused.
 */
#include "unit.h"

struct builder {
	struct unit *u;
	struct function *f;
	struct graph *g;
	unsigned section;
	bool is_open; /* the next instruction belongs to the last block */
};

struct symbol *next_named_label(struct unit *u, const struct function *f, struct view *left)
{
	while (left->n) {
		struct view name = symbol_prefix(*left);
		struct symbol *s = STARTS(name, ".L") ? find_symbol(u, name) : NULL;

		*left = skip(*left, name.n ? name.n : 1);
		if (s && is_inside(f, s))
			return s;
	}
	return NULL;
}

static bool names_label(struct unit *u, const struct function *f, const struct line *l)
{
	struct view left = l->operands;

	return next_named_label(u, f, &left) != NULL;
}

/* The last block of a section so far, or NONE. Functions have few parts, so this is called rarely. */
static int last_of_section(const struct builder *b, unsigned section)
{
	for (size_t i = b->g->count; i-- > 0;) {
		if (b->g->blocks[i].section == section)
			return (int)i;
	}
	return NONE;
}

static struct block *open_block(struct builder *b, int line)
{
	struct graph *g = b->g;
	const struct line *l = &b->u->lines[line];
	/* User code runs at its place in the function, whatever section its statements are for. */
	unsigned section = l->from_user ? b->section : l->section;
	int before = g->count && section != b->section ? last_of_section(b, section) : (int)g->count - 1;
	struct block *block;

	g->blocks = grow(g->blocks, &g->room, g->count + 1, sizeof *g->blocks);
	if (before != NONE && g->blocks[before].next == NONE && !g->blocks[before].is_closed)
		g->blocks[before].next = (int)g->count;
	block = &g->blocks[g->count++];
	*block = (struct block){.first = line, .last = line, .next = NONE, .next_in_doubt = true, .section = section};
	b->section = section;
	b->is_open = true;
	return block;
}

static void add_label(struct builder *b, int line, struct symbol *s)
{
	struct block *block = open_block(b, line);

	block->is_target = s->is_target;
	block->is_table = s->is_table;
	block->is_pad = s->is_pad;
	s->block = (int)b->g->count - 1;
}

/* Only code of this function may name such a label: jumps from other functions would be missing edges. */
static void expect_inside(const struct builder *b, struct symbol *s)
{
	if (STARTS(s->name, ".L") && !function_of(s) && s->line != NONE && !is_inside(b->f, s))
		refuse(b->u, b->f, "jumps to '%.*s' in another function: this compiler is not known here",
		       SHOW(s->name));
}

static void add_instruction(struct builder *b, int line)
{
	struct line *l = &b->u->lines[line];
	struct block *block = &b->g->blocks[b->g->count - 1];
	const struct check *c = &b->f->check;

	block->last = line;
	/* Behind the slow path's `ret` the function continues, on another chunk. */
	if (line == c->call || line == c->resume) {
		block->next_in_doubt = false;
		return;
	}
	block->next_in_doubt = l->op == OP_CALL;
	b->is_open = l->op != OP_JUMP && l->op != OP_BRANCH && l->op != OP_RETURN;
	block->is_closed = l->op == OP_JUMP || l->op == OP_RETURN;
	if (l->op != OP_JUMP && l->op != OP_BRANCH)
		return;
	if (l->symbol)
		expect_inside(b, l->symbol);
	else
		l->is_tail_call = is_tail_call(b->u, b->f, l);
}

static void add_user_code(struct builder *b, int line)
{
	struct block *block = &b->g->blocks[b->g->count - 1];

	block->last = line;
	block->next_in_doubt = false;
	b->is_open = !names_label(b->u, b->f, &b->u->lines[line]);
}

static void add_line(struct builder *b, int line)
{
	const struct line *l = &b->u->lines[line];
	const struct symbol *s = l->symbol;
	bool is_own = !l->from_user && b->u->sections[l->section].code;

	if (is_own && l->kind == LABEL && s && (s->is_target || s->is_table || s->is_pad)) {
		add_label(b, line, l->symbol);
		return;
	}
	if (l->kind != CODE && (!l->from_user || l->kind == BLANK))
		return;
	if (!b->is_open || (is_own && l->section != b->section))
		open_block(b, line);
	if (l->from_user)
		add_user_code(b, line);
	else
		add_instruction(b, line);
}

void build_graph(struct unit *u, struct function *f, struct graph *g)
{
	struct builder b = {.u = u, .f = f, .g = g, .section = u->lines[f->first].section};

	g->count = 0;
	open_block(&b, f->first);
	for (int i = f->first + 1; i <= f->last; i++)
		add_line(&b, i);
}
