/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which function a called pointer holds. Without a PLT, compilers load a function's address from the GOT, often early
 * and once for many calls:
 *
 *	movq  f@GOTPCREL(%rip), %rbx
 *	…
 *	call  *%rbx                            a call of f, if on every path rbx still holds the loaded value
 *
 * A register holds f from such a load, or from a copy of a register that holds f, until an instruction may write to it.
 * Calls and user code end this for the registers that they may write. At a label a register holds f if it holds f on
 * every path to the label, paths in doubt included. Nothing is known where exceptions arrive, nor of values in memory.
 *
 * The call stays right if nothing is known: then it is a call through a pointer. Only calls of setjmp need to be known,
 * because code is added behind them. So a register that holds setjmp on some paths alone is `lost`, and no use of it is
 * accepted.
 */
#include "unit.h"

static struct symbol lost;

static struct symbol **of_register(struct targets *all, unsigned reg)
{
	return reg && !(reg & OTHER_REG) ? &all->reg[__builtin_ctz(reg)] : NULL;
}

static struct symbol *loaded(struct unit *u, const struct line *l)
{
	struct view from = operand(l, 0), name = symbol_prefix(from);

	return is(l->word, "mov") && name.n && IS(skip(from, name.n), "@GOTPCREL(%rip)") ? symbol(u, name) : NULL;
}

static struct symbol *result(struct unit *u, struct targets *all, const struct line *l)
{
	struct symbol **from = of_register(all, reg_of(operand(l, 0)));

	return from && is(l->word, "mov") ? *from : loaded(u, l);
}

struct symbol *target_in(const struct targets *all, const struct line *l)
{
	struct view to = l->operands;
	struct symbol **reg;

	if (!STARTS(to, "*%"))
		return NULL;
	reg = of_register((struct targets *)all, reg_of(skip(to, 1)));
	return reg && *reg != &lost ? *reg : NULL;
}

static bool is_setjmp(const struct symbol *s)
{
	return s && (s == &lost || known(s->name) == KNOWN_SETJMP);
}

static void forget_registers(struct targets *all, unsigned regs)
{
	for (int i = 0; i < TARGET_REGISTERS; i++)
		if (regs >> i & 1)
			all->reg[i] = NULL;
}

void follow_targets(struct unit *u, struct targets *all, const struct line *l)
{
	struct symbol *value, **to;

	if (l->op == OP_CALL) {
		forget_registers(all, ~(unsigned)CALLEE_SAVED);
		return;
	}
	value = l->op == OP_OTHER ? result(u, all, l) : NULL;
	forget_registers(all, written_by(l));
	to = value ? of_register(all, reg_of(last_operand(l))) : NULL;
	if (to)
		*to = value;
}

void forget_targets(struct targets *all)
{
	*all = (struct targets){{0}};
}

void lose_targets(struct targets *all)
{
	for (int i = 0; i < TARGET_REGISTERS; i++)
		all->reg[i] = is_setjmp(all->reg[i]) ? &lost : NULL;
}

static struct symbol *either(struct symbol *a, struct symbol *b)
{
	if (a == b)
		return a;
	return is_setjmp(a) || is_setjmp(b) ? &lost : NULL;
}

bool join_targets(struct targets *to, const struct targets *from)
{
	bool changes = false;

#ifdef WEFT_CANARY_first_path_alone
	return false;
#endif
	for (int i = 0; i < TARGET_REGISTERS; i++) {
		struct symbol *now = either(to->reg[i], from->reg[i]);

		changes |= now != to->reg[i];
		to->reg[i] = now;
	}
	return changes;
}

/* A call, a copy, or the end of the register's value. */
static bool is_followed(const struct line *l, unsigned reg)
{
	bool is_call = STARTS(l->operands, "*%") && (l->op == OP_CALL || l->is_tail_call);
	bool is_copy = is(l->word, "mov") && reg_of(operand(l, 0)) == reg && reg_of(last_operand(l)) < OTHER_REG &&
		       reg_of(last_operand(l)) != NO_REG;
	bool is_load = is(l->word, "mov") && reg_of(last_operand(l)) == reg && contains(operand(l, 0), "(%rip)");

	return is_call || is_copy || is_load || l->op == OP_PUSH || l->op == OP_POP;
}

/* The address of setjmp in an operand, other than a load that is followed. */
static bool takes_setjmp(const struct line *l)
{
	struct view from = operand(l, 0), name;

	if (from.n && from.at[0] == '$')
		from = skip(from, 1);
	name = symbol_prefix(from);
	if (l->op != OP_OTHER || !name.n || known(name) != KNOWN_SETJMP)
		return false;
	return !is(l->word, "mov") || !STARTS(skip(from, name.n), "@GOTPCREL");
}

void expect_no_lost_setjmp(const struct unit *u, const struct function *f, const struct targets *all,
			   const struct line *l)
{
	bool is_lost = takes_setjmp(l);

	for (int i = 0; i < TARGET_REGISTERS; i++) {
		const struct symbol *s = all->reg[i];
		unsigned reg = 1u << i;

		if (is_setjmp(s) && mentions(l, reg))
			is_lost |= !is_followed(l, reg) || (s == &lost && STARTS(l->operands, "*%"));
	}
	if (is_lost)
		refuse(u, f, "calls setjmp through a pointer: compile without -fno-plt, and call setjmp by its name");
}
