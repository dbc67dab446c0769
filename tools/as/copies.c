/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Copies of the stack pointer. At the beginning of a scope with arrays of variable length, compilers put a copy into a
 * register or a slot of the frame, and restore it at the scope's end:
 *
 *	movq  %rsp, %r15                       r15 = here
 *	…                                      the array, arguments that are pushed and never popped
 *	movq  %r15, %rsp                       the stack is as deep as it was there
 *
 * A copy stands for the depth that it points to. It lives until another value is written to its register or slot. At a
 * label it lives if it is a copy on every path to the label, and then points to the greatest of their depths. A value
 * that is not known to be a copy does not change the depth, which is therefore never too small.
 *
 * decode.c says which registers an instruction may write.
 *
 * Slots are named by a base register and a number. A compiler gives a slot that it made for itself no second name and
 * no address, so that no other store can reach it.
 */
#include "unit.h"

static bool is_copy(struct copy c)
{
	return c.depth != 0;
}

static struct copy copy_at(int64_t depth, int64_t dynamic_at)
{
	if (depth <= 0 || depth > INT32_MAX || dynamic_at > INT32_MAX)
		return (struct copy){0};
	return (struct copy){(int32_t)depth, (int32_t)dynamic_at};
}

/* The copy `by` bytes further down. */
static struct copy moved(struct copy c, int64_t by)
{
	return is_copy(c) ? copy_at(c.depth + by, c.dynamic_at) : c;
}

static struct copy *of_register(struct copies *all, unsigned reg)
{
	return reg && !(reg & (REG_10 | REG_11 | OTHER_REG)) ? &all->reg[__builtin_ctz(reg)] : NULL;
}

/* Is the operand relative to the frame: to the frame pointer, or to a copy of the stack pointer? Other memory may be
 * the buffer of a setjmp. */
static bool is_in_frame(struct copies *all, const struct memory *m)
{
	unsigned base = reg_of(m->base);
	const struct copy *reg = of_register(all, base);

	return m->is_memory && !m->has_index && m->has_number && reg && (base == REG_BP || is_copy(*reg));
}

static struct slot *find_slot(struct copies *all, const struct memory *m)
{
	unsigned base = reg_of(m->base);

	if (!is_in_frame(all, m))
		return NULL;
	for (int i = 0; i < SLOTS; i++)
		if (all->slot[i].base == base && all->slot[i].displacement == m->displacement)
			return &all->slot[i];
	return NULL;
}

struct copy copy_in(struct copies *all, const struct state *now, struct view o)
{
	const struct copy *reg = of_register(all, reg_of(o));
	struct memory m;
	const struct slot *slot;

	if (IS(o, "%rsp"))
		return copy_at(now->depth, now->is_dynamic ? now->dynamic_at : 0);
	if (reg)
		return *reg;
	m = memory_of(o);
	slot = find_slot(all, &m);
	return slot ? slot->copy : (struct copy){0};
}

bool keeps_copy(struct copies *all, const struct state *now, const struct line *l)
{
	struct memory m = memory_of(last_operand(l));

	return is(l->word, "mov") && is_in_frame(all, &m) && is_copy(copy_in(all, now, operand(l, 0)));
}

static void forget_slots(struct copies *all, unsigned base)
{
	for (int i = 0; i < SLOTS; i++)
		if (all->slot[i].base & base)
			all->slot[i] = (struct slot){0};
}

static void set_register(struct copies *all, unsigned reg, struct copy c)
{
	struct copy *to = of_register(all, reg);

	if (!to)
		return;
	forget_slots(all, reg);
	*to = c;
}

/* `regs`: registers as bits. */
static void forget_registers(struct copies *all, unsigned regs)
{
	for (unsigned reg = 1; reg < OTHER_REG; reg <<= 1)
		if (reg & regs)
			set_register(all, reg, (struct copy){0});
}

/* Bytes that an instruction may write to memory. */
static int64_t width_of(const struct line *l)
{
	if (contains(l->operands, "mm")) /* %xmm0, %ymm0, %zmm0 */
		return 64;
	return l->word.at[0] == 'f' ? 128 : 8;
}

static void store(struct copies *all, const struct memory *m, int64_t width, struct copy c)
{
	unsigned base = reg_of(m->base);
	int unused = -1;

	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &all->slot[i];
		bool is_there = s->base == base &&
				(m->has_index || !m->has_number ||
				 (s->displacement < m->displacement + width && m->displacement < s->displacement + 8));

		if (is_there)
			*s = (struct slot){0};
		if (!s->base)
			unused = i;
	}
	if (is_copy(c) && unused >= 0 && is_in_frame(all, m))
		all->slot[unused] = (struct slot){c, (int32_t)m->displacement, (uint16_t)base};
}

static void write_copy(struct copies *all, const struct line *l, struct view to, struct copy c)
{
	struct memory m = memory_of(to);

	if (m.is_memory)
		store(all, &m, width_of(l), c);
	else
		set_register(all, reg_of(to), c);
}

/*
 * The value of a 64-bit mov or lea, if it is a copy. A calculation with a copy does not give a copy: the address of a
 * variable may go up or down in a loop, and the walk would follow it until numbers overflow.
 */
static struct copy result(struct copies *all, const struct state *now, const struct line *l)
{
	struct view from = operand(l, 0);

	if (is(l->word, "mov"))
		return copy_in(all, now, from);
	if (is(l->word, "lea")) {
		struct memory m = memory_of(from);

		if (m.is_memory && !m.has_index && m.has_number && IS(m.base, "%rsp"))
			return moved(copy_in(all, now, m.base), -m.displacement);
	}
	return (struct copy){0};
}

static bool has_any(const struct copies *all)
{
	static const struct copies none;

	return memcmp(all, &none, sizeof none) != 0;
}

void follow_copies(struct copies *all, const struct state *now, const struct line *l)
{
	struct view to = l->op == OP_POP ? l->operands : last_operand(l);
	struct copy c;

	if (!l->names_sp && !has_any(all))
		return;
	if (l->op == OP_CALL) {
		forget_registers(all, ~(unsigned)CALLEE_SAVED);
		return;
	}
	c = result(all, now, l);
	forget_registers(all, written_by(l));
	if (l->op == OP_LEAVE || l->op == OP_JUMP || l->op == OP_BRANCH || l->op == OP_RETURN || l->op == OP_PUSH ||
	    only_reads(l->word))
		return;
	write_copy(all, l, to, l->op == OP_POP ? (struct copy){0} : c);
	if (STARTS(l->word, "xchg") || STARTS(l->word, "xadd"))
		write_copy(all, l, operand(l, 0), (struct copy){0});
}

void forget_copies(struct copies *all)
{
	*all = (struct copies){0};
}

void forget_deeper(struct copies *all, int64_t depth)
{
	for (int i = 0; i < COPY_REGISTERS; i++)
		if (all->reg[i].depth > depth)
			all->reg[i] = (struct copy){0};
	for (int i = 0; i < SLOTS; i++)
		if (all->slot[i].copy.depth > depth)
			all->slot[i] = (struct slot){0};
}

/* ---- joins ------------------------------------------------------------------------------------------------------ */

static struct copy either(struct copy a, struct copy b)
{
	if (!is_copy(a) || !is_copy(b))
		return (struct copy){0};
	if (b.depth > a.depth)
		a.depth = b.depth;
	if (b.dynamic_at && (!a.dynamic_at || b.dynamic_at < a.dynamic_at))
		a.dynamic_at = b.dynamic_at;
	return a;
}

static bool set_copy(struct copy *to, struct copy c)
{
	bool changes = to->depth != c.depth || to->dynamic_at != c.dynamic_at;

	*to = c;
	return changes;
}

static struct copy same_slot(const struct copies *all, const struct slot *s)
{
	for (int i = 0; i < SLOTS; i++)
		if (all->slot[i].base == s->base && all->slot[i].displacement == s->displacement)
			return all->slot[i].copy;
	return (struct copy){0};
}

bool join_copies(struct copies *to, const struct copies *from)
{
	bool changes = false;

	for (int i = 0; i < COPY_REGISTERS; i++)
		changes |= set_copy(&to->reg[i], either(to->reg[i], from->reg[i]));
	for (int i = 0; i < SLOTS; i++) {
		struct slot *s = &to->slot[i];

		if (!s->base)
			continue;
		changes |= set_copy(&s->copy, either(s->copy, same_slot(from, s)));
		if (!is_copy(s->copy))
			*s = (struct slot){0};
	}
	return changes;
}
