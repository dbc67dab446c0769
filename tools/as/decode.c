/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instructions, as far as the analysis needs them: the target of a call, the flow of control, the change of the stack
 * pointer, and stores that may reach the place where stack arguments begin, 0(%rsp). Every other instruction is
 * OP_OTHER.
 */
#include "unit.h"

enum { PARTS = 5 };

/* A register's names: of 64, 32, 16 bits, of the low and of the high eight. */
static const struct {
	struct view part[PARTS];
	unsigned reg;
} registers[] = {
#define LEGACY(x, low, high, reg)                                                                                      \
	{                                                                                                              \
		{VIEW("%r" x), VIEW("%e" x), VIEW("%" x), VIEW("%" low), VIEW("%" high)}, reg                          \
	}
#define NUMBERED(n, reg)                                                                                               \
	{                                                                                                              \
		{VIEW("%r" n), VIEW("%r" n "d"), VIEW("%r" n "w"), VIEW("%r" n "b"), VIEW("%r" n "l")}, reg            \
	}
    LEGACY("bx", "bl", "bh", REG_BX),
    LEGACY("bp", "bpl", "bpl", REG_BP),
    NUMBERED("12", REG_12),
    NUMBERED("13", REG_13),
    NUMBERED("14", REG_14),
    NUMBERED("15", REG_15),
    LEGACY("di", "dil", "dil", REG_DI),
    LEGACY("si", "sil", "sil", REG_SI),
    LEGACY("dx", "dl", "dh", REG_DX),
    LEGACY("cx", "cl", "ch", REG_CX),
    NUMBERED("8", REG_8),
    NUMBERED("9", REG_9),
    LEGACY("ax", "al", "ah", REG_AX),
    NUMBERED("10", REG_10),
    NUMBERED("11", REG_11),
};

#define REGISTERS (sizeof registers / sizeof *registers)

unsigned reg_of(struct view operand)
{
	for (size_t i = 0; i < REGISTERS; i++)
		if (same(operand, registers[i].part[0]))
			return registers[i].reg;
	return operand.n && operand.at[0] == '%' ? OTHER_REG : NO_REG;
}

/* The register that the operand is, or of which it is a part. */
static unsigned whole_reg_of(struct view operand)
{
	for (size_t i = 0; i < REGISTERS; i++)
		for (int part = 0; part < PARTS; part++)
			if (same(operand, registers[i].part[part]))
				return registers[i].reg;
	return NO_REG;
}

static unsigned all_mentioned(const struct line *l)
{
	struct view left = l->operands;
	unsigned regs = 0;

	while (left.n) {
		size_t n = 1;

		if (left.at[0] == '%') {
			n += symbol_prefix(skip(left, 1)).n;
			regs |= whole_reg_of((struct view){left.at, n});
		}
		left = skip(left, n);
	}
	return regs;
}

bool mentions(const struct line *l, unsigned regs)
{
	return (all_mentioned(l) & regs) != 0;
}

bool is_string_op(const struct line *l)
{
	static const char *const words[] = {"movs", "stos", "lods", "scas", "cmps", "ins", "outs"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);

		if (l->word.n == n + 1 && memcmp(l->word.at, words[i], n) == 0)
			return !l->operands.n || contains(l->operands, "%es:") || contains(l->operands, "%ds:");
	}
	return STARTS(l->word, "rep");
}

bool is(struct view word, const char *mnemonic)
{
	size_t n = strlen(mnemonic);

	return word.n >= n && memcmp(word.at, mnemonic, n) == 0 &&
	       (word.n == n || (word.n == n + 1 && word.at[n] == 'q'));
}

struct memory memory_of(struct view o)
{
	struct memory m = {0};
	struct view left = o, inside;

	if (!o.n || o.at[o.n - 1] != ')')
		return m;
	m.is_memory = true;
	left = cut(&o, '(');
	inside = cut(&o, ')');
	m.base = trim(cut(&inside, ','));
	m.has_index = inside.n != 0;
	m.has_number = !left.n || number(left, &m.displacement);
	return m;
}

/* Can the operand overlap 0(%rsp) … 7(%rsp)? A store is at most 64 bytes wide. */
static bool is_bottom(const struct memory *m)
{
	return m->has_index || !m->has_number || (m->displacement < 8 && m->displacement > -64);
}

bool immediate(struct view o, int64_t *value)
{
	return o.n > 1 && o.at[0] == '$' && number(skip(o, 1), value);
}

static void set_op(struct line *l, enum op op, int64_t amount, unsigned reg)
{
	l->op = (uint8_t)op;
	l->amount = (int32_t)amount;
	l->reg = (uint16_t)reg;
	/* No frame is that large. */
	if (amount != l->amount)
		l->op = OP_DYNAMIC_SP;
}

static void decode_lea_to_sp(struct line *l)
{
	struct memory m = memory_of(operand(l, 0));

	if (!m.is_memory || m.has_index || !m.has_number)
		set_op(l, OP_DYNAMIC_SP, 0, NO_REG);
	else if (IS(m.base, "%rsp"))
		set_op(l, OP_MOVE_SP, -m.displacement, NO_REG);
	else if (IS(m.base, "%rbp"))
		set_op(l, OP_SP_FROM_FP, m.displacement, NO_REG);
	else if (!IS(m.base, "%r10")) /* the end of a realigned frame: the value on entry */
		set_op(l, OP_DYNAMIC_SP, 0, NO_REG);
}

static void decode_mov_to_sp(struct line *l)
{
	struct view from = operand(l, 0);
	struct memory m = memory_of(from);

	if (IS(from, "%rbp"))
		set_op(l, OP_SP_FROM_FP, 0, NO_REG);
	else if (from.n && from.at[0] == '%' && from.at[1] != 'f' && from.at[1] != 'g')
		set_op(l, OP_DYNAMIC_SP, 0, NO_REG);
	else if (m.is_memory && (IS(m.base, "%rbp") || IS(m.base, "%rsp")))
		set_op(l, OP_DYNAMIC_SP, 0, NO_REG);
	else
		set_op(l, OP_NONLOCAL, 0, NO_REG);
}

static void decode_to_sp(struct line *l)
{
	int64_t n;
	bool known = immediate(operand(l, 0), &n);

	if (is(l->word, "sub") && known)
		set_op(l, OP_MOVE_SP, n, NO_REG);
	else if (is(l->word, "add") && known)
		set_op(l, OP_MOVE_SP, -n, NO_REG);
	else if (is(l->word, "and") && known)
		set_op(l, OP_ALIGN_SP, -n, NO_REG);
	else if (is(l->word, "lea"))
		decode_lea_to_sp(l);
	else if (is(l->word, "mov"))
		decode_mov_to_sp(l);
	else if (STARTS(l->word, "xchg"))
		set_op(l, OP_NONLOCAL, 0, NO_REG);
	else if (!STARTS(l->word, "cmp") && !STARTS(l->word, "test"))
		set_op(l, OP_DYNAMIC_SP, 0, NO_REG);
}

bool only_reads(struct view word)
{
	bool compares = STARTS(word, "cmp") && !STARTS(word, "cmpxchg") && !STARTS(word, "cmps");
	bool tests_bit = IS(word, "btl") || IS(word, "bt") || IS(word, "btw") || IS(word, "btq");

	return compares || tests_bit || STARTS(word, "test") || STARTS(word, "fld") || STARTS(word, "fild") ||
	       STARTS(word, "prefetch");
}

/* Vector instructions that write rcx without naming it. */
static bool is_string_compare(struct view word)
{
	return contains(word, "cmpestr") || contains(word, "cmpistr");
}

/* Does the instruction write to no general register except its last operand? The list has the most frequent
 * instructions of compilers. */
static bool writes_last_alone(const struct line *l)
{
	static const char *const words[] = {"mov", "lea", "add", "sub", "and", "or",  "xor",  "neg", "not",
					    "inc", "dec", "shl", "shr", "sal", "sar", "cmov", "set", "nop"};

	if (is_string_op(l))
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (starts(l->word, (struct view){words[i], strlen(words[i])}))
			return true;
	if (only_reads(l->word))
		return true;
	return contains(l->operands, "mm") && !is_string_compare(l->word); /* %xmm0, %ymm0, %zmm0 */
}

/* The registers among the operands, without addresses. */
static unsigned operand_registers(const struct line *l)
{
	unsigned regs = 0;
	struct view o;

	for (unsigned i = 0; (o = operand(l, i)).n; i++)
		regs |= whole_reg_of(o);
	return regs;
}

unsigned written_by(const struct line *l)
{
	switch (l->op) {
	case OP_POP:
		return whole_reg_of(l->operands);
	case OP_LEAVE:
		return REG_BP;
	case OP_JUMP:
	case OP_BRANCH:
	case OP_RETURN:
	case OP_PUSH:
		return 0;
	default:
		break;
	}
	if (!writes_last_alone(l))
		return operand_registers(l) | ~(unsigned)CALLEE_SAVED;
	return only_reads(l->word) ? 0 : whole_reg_of(last_operand(l));
}

/* The address of the stack's bottom goes into a register, or to another place. */
static void decode_from_sp(struct line *l)
{
	struct view from = operand(l, 0), to = last_operand(l);
	struct memory m = memory_of(from);
	unsigned reg = reg_of(to);

	if (is(l->word, "lea") && m.is_memory && IS(m.base, "%rsp")) {
		if (reg == REG_BP && m.has_number && !m.has_index)
			set_op(l, OP_SET_FP, m.displacement, NO_REG);
		else if (is_bottom(&m))
			set_op(l, OP_TAKE_BOTTOM, 0, m.has_index ? OTHER_REG : reg);
	} else if (is(l->word, "mov") && IS(from, "%rsp")) {
		if (reg == REG_BP)
			set_op(l, OP_SET_FP, 0, NO_REG);
		else
			set_op(l, OP_TAKE_BOTTOM, 0, reg ? reg : OTHER_REG);
	} else if (IS(from, "%rsp") || IS(from, "%esp")) {
		set_op(l, OP_TAKE_BOTTOM, 0, OTHER_REG);
	}
}

static void decode_sp(struct line *l)
{
	struct view to = last_operand(l);
	struct memory m = memory_of(to);

	if (IS(to, "%rsp"))
		decode_to_sp(l);
	else if (m.is_memory && IS(m.base, "%rsp") && !only_reads(l->word)) {
		if (is_bottom(&m))
			set_op(l, OP_STORE_BOTTOM, 0, NO_REG);
	} else if (!only_reads(l->word))
		decode_from_sp(l);
}

static void decode_target(struct unit *u, struct line *l)
{
	struct view o = l->operands, name;

	if (o.n && o.at[0] == '*') {
		o = skip(o, 1);
		name = symbol_prefix(o);
		if (contains(o, "@TLSCALL") || contains(o, "@tlscall"))
			l->symbol = symbol(u, VIEW("__tls_get_addr"));
		else if (name.n && STARTS(skip(o, name.n), "@GOTPCREL"))
			l->symbol = symbol(u, name);
		return;
	}
	name = symbol_prefix(o);
	if (!name.n)
		refuse(u, NULL, "'%.*s %.*s': where it goes cannot be read", SHOW(l->word), SHOW(l->operands));
	l->symbol = symbol(u, name);
	if (l->op != OP_CALL)
		l->symbol->is_target = true;
}

static void decode_push(struct line *l, enum op op)
{
	set_op(l, op, 0, reg_of(l->operands));
}

static bool decode_transfer(struct unit *u, struct line *l)
{
	if (IS(l->word, "call") || IS(l->word, "callq"))
		l->op = OP_CALL;
	else if (IS(l->word, "jmp") || IS(l->word, "jmpq"))
		l->op = OP_JUMP;
	else if (l->word.at[0] == 'j' || IS(l->word, "xbegin"))
		l->op = OP_BRANCH;
	else if (STARTS(l->word, "ret") || IS(l->word, "ud2"))
		l->op = OP_RETURN;
	else
		return false;
	if (l->op != OP_RETURN)
		decode_target(u, l);
	return true;
}

static void decode_line(struct unit *u, struct line *l)
{
	if (decode_transfer(u, l))
		return;
	if (STARTS(l->word, "push"))
		decode_push(l, OP_PUSH);
	else if (STARTS(l->word, "pop") && !STARTS(l->word, "popcnt"))
		decode_push(l, OP_POP);
	else if (IS(l->word, "leave") || IS(l->word, "leaveq"))
		l->op = OP_LEAVE;
	else if (contains(l->operands, "%fs:112")) {
		l->op = OP_LIMIT_COMPARE;
		u->has_checks = true;
	} else if (contains(l->operands, "%rsp") || contains(l->operands, "%esp")) {
		l->names_sp = true;
		decode_sp(l);
	}
}

/* Does the instruction load a memory function's address through the GOT, for a later call? */
static bool loads_memory_function(const struct line *l)
{
	struct view from = operand(l, 0), name = symbol_prefix(from);

	return l->op == OP_OTHER && name.n && STARTS(skip(from, name.n), "@GOTPCREL") && known(name) == KNOWN_MEM;
}

void decode(struct unit *u)
{
	for (size_t i = 0; i < u->count; i++) {
		struct line *l = &u->lines[i];

		if (l->kind != CODE || l->from_user)
			continue;
		decode_line(u, l);
		u->loads_memory_function |= loads_memory_function(l);
	}
}
