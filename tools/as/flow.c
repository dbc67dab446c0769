/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How deep the stack of a function is, at each call and at most; and how many bytes at a call's 0(%rsp) may be
 * arguments.
 *
 * A forward data-flow analysis: it walks the blocks of graph.c in order, and knows on entry to a block the facts that
 * hold on every edge to it; it repeats this until nothing changes. Depth counts from the function's caller: it is 8 on
 * entry, for the return address.
 *
 * The bound on arguments is upper by construction. The first argument on the stack is at 0(%rsp) when the call is made,
 * and a callee owns its arguments, so these eight bytes have been written since the last call: by a push that saves no
 * register, by a store relative to rsp, or through a pointer that was made from rsp. If no such write can have
 * happened, there are no arguments; else they may be all of the frame below the saved registers. A pointer made from
 * rsp that goes straight into an argument register, and is not used before the call, is the address of a local
 * variable. The memory functions write before the call that the arguments are for.
 *
 * Control does not return from some calls, and never enters a block that the compiler found impossible and left empty;
 * the code below such a block belongs to another path. So an edge from such a block is in doubt. The depth on this edge
 * counts only if no other edge leads to the block; a fact that it makes unknown is unknown in any case.
 */
#include "unit.h"

#define RETURN_ADDRESS 8
#define DEEPER 64 /* passes that find a deeper place: no function has this many by chance */

struct walk {
	struct unit *u;
	struct function *f;
	struct graph *g;
	struct state now;
	struct state indirect, calls; /* joined over all indirect jumps, and over all calls */
	bool has_indirect, has_calls;
	bool changed;
	bool bottom_escapes;
	bool only_look;	  /* the last pass: record the facts at the calls */
	int64_t compared; /* depth that the limit has just been compared with; 0: none */
	bool is_limit_first;
	int phase;
};

/* Phases: how labels are treated that no known edge reaches. */
enum { CERTAIN, BEHIND_CALLS, ANY };

static bool set_bits(uint16_t *to, unsigned value)
{
	bool changes = *to != value;

	*to = (uint16_t)value;
	return changes;
}

static bool set_flag(bool *to, bool value)
{
	bool changes = *to != value;

	*to = value;
	return changes;
}

static bool set_number(int64_t *to, int64_t value)
{
	bool changes = *to != value;

	*to = value;
	return changes;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool join_depths(struct state *to, const struct state *from)
{
	bool changes = set_number(&to->depth, larger(to->depth, from->depth));

	changes |= set_number(&to->frame_pointer, larger(to->frame_pointer, from->frame_pointer));
	changes |= set_number(&to->saved_bytes, smaller(to->saved_bytes, from->saved_bytes));
	changes |= set_number(&to->saved_at, to->saved_at == from->saved_at ? to->saved_at : 0);
	changes |= set_bits(&to->saved, to->saved & from->saved);
	if (from->dynamic_at)
		changes |= set_number(&to->dynamic_at,
				      to->dynamic_at ? smaller(to->dynamic_at, from->dynamic_at) : from->dynamic_at);
	return changes;
}

/* Joins the facts of two edges. True if fewer facts than before remain. */
static bool join(struct state *to, const struct state *from, bool weakly)
{
	bool changes = set_flag(&to->is_dynamic, to->is_dynamic | from->is_dynamic);

	/* Doubtful edges count here as well: to know too little does no harm. */
	changes |= join_copies(&to->copies, &from->copies);
	changes |= join_targets(&to->targets, &from->targets);
	changes |= set_number(&to->checked, smaller(to->checked, from->checked));
	if (!weakly && to->is_doubtful) {
		struct state before = *to;

		*to = *from;
		to->is_dynamic = before.is_dynamic;
		to->copies = before.copies;
		to->targets = before.targets;
		to->checked = before.checked;
		to->is_doubtful = false;
		return true;
	}
	if (!weakly && !to->is_frozen)
		changes |= join_depths(to, from);
	changes |= set_bits(&to->bottoms, to->bottoms | from->bottoms);
	changes |= set_flag(&to->is_stored, to->is_stored | from->is_stored);
	changes |= set_flag(&to->in_prologue, to->in_prologue & from->in_prologue);
	return changes;
}

static void arrive(struct walk *w, struct block *b, const struct state *from, bool weakly)
{
	bool only_unwound = b->is_pad && !b->is_target && !b->is_table;

	if (w->only_look || (!b->is_reached && weakly && (w->phase < BEHIND_CALLS || only_unwound)))
		return;
	if (!b->is_reached) {
		b->is_reached = true;
		b->state = *from;
		b->state.is_doubtful = weakly;
		w->changed = true;
	} else if (join(&b->state, from, weakly)) {
		w->changed = true;
	}
}

/*
 * Exceptions arrive from any call. The stack is at most as deep as at the calls. The pad is seeded once, so that code
 * behind a pad, which may call as well, does not deepen it again and again.
 */
static void seed(struct walk *w, struct block *b)
{
	struct state start = w->calls;

	if (!w->has_calls) /* -fnon-call-exceptions */
		start.depth = w->f->depth + RETURN_ADDRESS;
	start.saved = CALLEE_SAVED;
	start.saved_bytes = 0;
	start.is_dynamic = w->f->has_dynamic;
	start.is_stored = start.in_prologue = false;
	start.bottoms = 0;
	start.is_frozen = !b->is_reached;
	start.checked = 0;
	forget_copies(&start.copies);
	lose_targets(&start.targets);
	arrive(w, b, &start, false);
	b->is_seeded = true;
}

static void enter(struct walk *w, struct block *b)
{
	if (b->is_table && w->has_indirect)
		arrive(w, b, &w->indirect, false);
	if (b->is_pad && !b->is_seeded && w->phase == ANY && !w->only_look)
		seed(w, b);
	w->compared = 0;
}

static void at_push(struct walk *w, const struct line *l)
{
	struct state *now = &w->now;

	now->depth += 8;
	if ((l->reg & CALLEE_SAVED) && !(now->saved & l->reg)) {
		now->saved |= l->reg;
		now->saved_bytes += 8;
		if (l->reg == REG_BP)
			now->saved_at = now->depth;
	} else if (!now->in_prologue || (l->reg != REG_AX && !contains(l->operands, "(%r10)"))) {
		now->is_stored = true;
		now->in_prologue = false;
	}
}

static void at_pop(struct walk *w, const struct line *l)
{
	w->now.depth -= 8;
	if (l->reg & w->now.saved) {
		w->now.saved &= (uint16_t)~l->reg;
		w->now.saved_bytes -= 8;
	}
}

static void become_dynamic(struct walk *w)
{
	w->f->has_dynamic = true;
	if (!w->now.is_dynamic)
		w->now.dynamic_at = w->now.depth;
	w->now.is_dynamic = true;
	forget_deeper(&w->now.copies, w->now.depth);
}

/*
 * The stack pointer becomes a computed or loaded value. A copy of itself restores it. A deeper or an unknown value is
 * an alloca.
 */
static void restore(struct walk *w, const struct line *l)
{
	struct state *now = &w->now;
	struct copy c = is(l->word, "mov") ? copy_in(&now->copies, now, operand(l, 0)) : (struct copy){0};

	if (!c.depth || c.depth > now->depth) {
		become_dynamic(w);
		return;
	}
	now->depth = c.depth;
	now->is_dynamic = c.dynamic_at != 0;
	now->dynamic_at = c.dynamic_at;
}

/* Moves the stack pointer by a constant. An alloca in a loop differs from a frame: it has a compare with the limit
 * of its own. */
static void move_by(struct walk *w, int64_t amount)
{
	if (amount > 0 && w->now.depth + amount <= w->now.checked)
		become_dynamic(w);
	else
		w->now.depth += amount;
}

static void from_frame_pointer(struct walk *w, int64_t amount)
{
	if (!w->now.frame_pointer) {
		become_dynamic(w);
		return;
	}
	w->now.depth = w->now.frame_pointer - amount;
	w->now.is_dynamic = false;
	w->now.dynamic_at = 0;
}

static void set_frame_pointer(struct walk *w, int64_t amount)
{
	/* No argument can be at the place where the old frame pointer was saved. */
	if (!amount && w->now.depth != w->now.saved_at)
		w->bottom_escapes = true;
	w->now.frame_pointer = w->now.depth - amount;
}

/* Joins the present facts to the facts at all places of a kind. */
static void gather(struct walk *w, struct state *all, bool *has_any)
{
	if (!*has_any)
		*all = w->now;
	w->changed |= !*has_any;
	w->changed |= join(all, &w->now, false);
	*has_any = true;
}

/* The function that a call, or a jump in place of a call, goes to, or NULL. */
static struct symbol *callee_of(const struct walk *w, const struct line *l)
{
	if (l->symbol || (l->op != OP_CALL && !l->is_tail_call))
		return l->symbol;
	return target_in(&w->now.targets, l);
}

static void at_call(struct walk *w, struct line *l, const struct symbol *callee)
{
	struct function *f = w->f;
	struct state *now = &w->now;
	/* An unknown pointer may hold any function whose address the unit loads. */
	bool is_memory = callee ? known(callee->name) == KNOWN_MEM : w->u->loads_memory_function;

	f->makes_calls = true;
	f->has_tls_calls |= callee && IS(callee->name, "__tls_get_addr");
	if (is_memory && (now->bottoms & REG_DI))
		w->bottom_escapes = true;
	if (w->only_look) {
		bool may = now->is_stored || w->bottom_escapes;

		l->bound = !may		     ? 0
			   : now->is_dynamic ? UNKNOWN
					     : (int32_t)(now->depth - RETURN_ADDRESS - now->saved_bytes);
	}
	gather(w, &w->calls, &w->has_calls);
	now->bottoms = 0;
	now->in_prologue = false;
	if (!is_memory)
		now->is_stored = false;
}

/* Records the depth that is compared with the limit, if the compared value is a copy of the stack pointer. */
static void at_compare(struct walk *w, const struct line *l)
{
	w->is_limit_first = STARTS(l->operands, "%fs:112");
	w->compared = copy_in(&w->now.copies, &w->now, w->is_limit_first ? last_operand(l) : operand(l, 0)).depth;
}

/* After the compare: is there room if the branch is taken? */
static bool fits_if_taken(const struct walk *w, struct view word)
{
	bool is_above = IS(word, "ja") || IS(word, "jae") || IS(word, "jnb") || IS(word, "jnc");
	bool is_below = IS(word, "jb") || IS(word, "jbe") || IS(word, "jna") || IS(word, "jl") || IS(word, "jle");

	return w->is_limit_first ? is_above : is_below;
}

static bool fits_if_not_taken(const struct walk *w, struct view word)
{
	bool is_above = IS(word, "ja") || IS(word, "jae") || IS(word, "jg") || IS(word, "jge");
	bool is_below = IS(word, "jb") || IS(word, "jbe") || IS(word, "jna") || IS(word, "jc");

	return w->is_limit_first ? is_below : is_above;
}

static void at_jump(struct walk *w, struct line *l)
{
	if (l->symbol && is_inside(w->f, l->symbol))
		arrive(w, &w->g->blocks[l->symbol->block], &w->now, false);
	else if (!l->symbol && !l->is_tail_call)
		gather(w, &w->indirect, &w->has_indirect);
	l->bound = (int32_t)w->f->check.arguments;
}

static void at_branch(struct walk *w, struct line *l)
{
	int64_t checked = w->compared;

	w->compared = 0;
	w->now.checked = checked && fits_if_taken(w, l->word) ? checked : 0;
	at_jump(w, l);
	w->now.checked = checked && fits_if_not_taken(w, l->word) ? checked : 0;
}

static void note_depth(struct walk *w)
{
	struct function *f = w->f;
	struct state *now = &w->now;

	if (now->depth - RETURN_ADDRESS > f->depth)
		f->depth = now->depth - RETURN_ADDRESS;
	if (now->is_dynamic && now->depth - now->dynamic_at > f->above_dynamic)
		f->above_dynamic = now->depth - now->dynamic_at;
}

/*
 * Is this a slot in which this function keeps its stack pointer, and no other value? No copies are known where
 * exceptions arrive.
 */
static bool is_own_slot(const struct walk *w, struct view slot)
{
	bool is_own = false;

	for (int i = w->f->first; i <= w->f->last; i++) {
		const struct line *l = &w->u->lines[i];

		if (l->kind != CODE || !is(l->word, "mov") || !same(last_operand(l), slot))
			continue;
		if (!l->keeps_sp)
			return false;
		is_own = true;
	}
	return is_own;
}

static void move_stack(struct walk *w, const struct line *l)
{
	switch (l->op) {
	case OP_PUSH:
		at_push(w, l);
		break;
	case OP_POP:
		at_pop(w, l);
		break;
	case OP_MOVE_SP:
		move_by(w, l->amount);
		break;
	case OP_ALIGN_SP:
		w->now.depth += l->amount > 8 ? l->amount - 8 : 0;
		break;
	case OP_SET_FP:
		set_frame_pointer(w, l->amount);
		break;
	case OP_SP_FROM_FP:
		from_frame_pointer(w, l->amount);
		break;
	case OP_LEAVE:
		from_frame_pointer(w, 8);
		break;
	case OP_NONLOCAL:
		if (w->only_look && !is_own_slot(w, operand(l, 0)))
			refuse(w->u, w->f, "%s: use setjmp and longjmp, or compile this file without instrumentation",
			       "__builtin_longjmp, or a goto out of a nested function, cannot cross linked stacks");
		restore(w, l);
		break;
	case OP_DYNAMIC_SP:
		restore(w, l);
		break;
	default:
		return;
	}
	w->now.checked = 0;
	note_depth(w);
}

static bool is_prologue_op(const struct line *l)
{
	return l->op == OP_PUSH || l->op == OP_MOVE_SP || l->op == OP_ALIGN_SP || l->op == OP_SET_FP ||
	       l->op == OP_LIMIT_COMPARE || STARTS(l->word, "endbr") || contains(l->operands, "%r10");
}

/* Does the instruction keep the flags and the stack pointer? */
static bool leaves_flags(const struct line *l)
{
	return (STARTS(l->word, "mov") || STARTS(l->word, "lea")) && (l->op == OP_OTHER || l->op == OP_TAKE_BOTTOM);
}

static void at_instruction(struct walk *w, struct line *l, int line)
{
	const struct check *c = &w->f->check;

	if (l->dropped || line == c->lea || line == c->call || line == c->resume || line == c->compare)
		return;
	if (w->now.bottoms && l->op != OP_CALL &&
	    (mentions(l, w->now.bottoms) || ((w->now.bottoms & REG_DI) && is_string_op(l))))
		w->bottom_escapes = true;
	if (line != c->branch && !is_prologue_op(l))
		w->now.in_prologue = false;
	if (w->only_look) {
		expect_no_lost_setjmp(w->u, w->f, &w->now.targets, l);
		l->symbol = callee_of(w, l);
	}
	l->keeps_sp = keeps_copy(&w->now.copies, &w->now, l);
	switch (l->op) {
	case OP_CALL:
		at_call(w, l, callee_of(w, l));
		break;
	case OP_JUMP:
		at_jump(w, l);
		break;
	case OP_BRANCH:
		at_branch(w, l);
		break;
	case OP_LIMIT_COMPARE:
		at_compare(w, l);
		break;
	case OP_RETURN:
		break;
	case OP_STORE_BOTTOM:
		w->now.is_stored = true;
		break;
	case OP_TAKE_BOTTOM:
		if (l->reg & ARGUMENTS)
			w->now.bottoms |= l->reg;
		else
			w->bottom_escapes = true;
		break;
	default:
		move_stack(w, l);
		break;
	}
	if (l->op != OP_LIMIT_COMPARE && !leaves_flags(l))
		w->compared = 0;
	follow_copies(&w->now.copies, &w->now, l);
	follow_targets(w->u, &w->now.targets, l);
}

/* Does a statement of user code take stack? A switch, which loads the stack pointer, takes none of this stack. */
static bool needs_stack(const struct line *l)
{
	bool loads = STARTS(l->word, "mov") || STARTS(l->word, "xchg");
	bool enters_kernel = STARTS(l->word, "sys") || STARTS(l->word, "vm");
	bool calls = contains(l->word, "call") && !enters_kernel;
	bool moves = (IS(last_operand(l), "%rsp") || IS(last_operand(l), "%esp")) && !loads && !only_reads(l->word);

	return calls || moves || STARTS(l->word, "push") || STARTS(l->word, "enter");
}

/* User code may write any register, so nothing is known after it. "asm goto" names labels. */
static void at_user_code(struct walk *w, struct line *l, bool is_reached)
{
	struct view left = l->operands;
	struct symbol *s;

	forget_copies(&w->now.copies);
	forget_targets(&w->now.targets);
	w->now.checked = w->compared = 0;
	w->f->has_user_calls |= l->kind == CODE && needs_stack(l);
	while (is_reached && (s = next_named_label(w->u, w->f, &left)))
		if (s->block != NONE)
			arrive(w, &w->g->blocks[s->block], &w->now, false);
}

/* Nothing is known about code that no known edge leads to. */
static void at_unreached(struct walk *w, struct line *l, int line)
{
	w->f->makes_calls |= w->only_look && l->op == OP_CALL && line != w->f->check.call;
	l->bound = l->op == OP_CALL ? UNKNOWN : (int32_t)w->f->check.arguments;
}

static void walk_block(struct walk *w, struct block *b)
{
	for (int i = b->first; i <= b->last; i++) {
		struct line *l = &w->u->lines[i];

		if (l->from_user && l->kind != BLANK)
			at_user_code(w, l, b->is_reached);
		else if (l->kind != CODE)
			continue;
		else if (b->is_reached)
			at_instruction(w, l, i);
		else
			at_unreached(w, l, i);
	}
}

static void walk_once(struct walk *w)
{
	w->changed = false;
	for (size_t i = 0; i < w->g->count; i++) {
		struct block *b = &w->g->blocks[i];

		enter(w, b);
		if (b->is_reached)
			w->now = b->state;
		walk_block(w, b);
		if (b->is_reached && b->next != NONE)
			arrive(w, &w->g->blocks[b->next], &w->now, b->next_in_doubt);
	}
}

void follow(struct unit *u, struct function *f, struct graph *g)
{
	struct walk w = {.u = u, .f = f, .g = g};
	int deeper = 0;

	build_graph(u, f, g);
	w.now = (struct state){.depth = RETURN_ADDRESS, .in_prologue = true};
	arrive(&w, &g->blocks[0], &w.now, false);
	for (w.phase = CERTAIN; w.phase <= ANY; w.phase++) {
		do {
			int64_t before = f->depth;

			walk_once(&w);
			deeper += f->depth > before;
			if (deeper > DEEPER)
				refuse(u, f,
				       "its stack grows in a loop: compile with -fno-stack-clash-protection; if it "
				       "is compiled so, put what calls alloca in the loop into a function of its own");
		} while (w.changed);
	}
	w.only_look = true;
	w.phase = ANY;
	walk_once(&w);
}
