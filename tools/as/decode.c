/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instructions, as far as they matter: who is called, where control goes, what becomes of the stack pointer, and
 * what may write to the place where stack arguments begin, 0(%rsp). Everything else is OP_OTHER.
 */
#include "unit.h"

static const struct {
	struct view wide, narrow;
	unsigned reg;
} registers[] = {
    {VIEW("%rbx"), VIEW("%ebx"), REG_BX},  {VIEW("%rbp"), VIEW("%ebp"), REG_BP},  {VIEW("%r12"), VIEW("%r12d"), REG_12},
    {VIEW("%r13"), VIEW("%r13d"), REG_13}, {VIEW("%r14"), VIEW("%r14d"), REG_14}, {VIEW("%r15"), VIEW("%r15d"), REG_15},
    {VIEW("%rdi"), VIEW("%edi"), REG_DI},  {VIEW("%rsi"), VIEW("%esi"), REG_SI},  {VIEW("%rdx"), VIEW("%edx"), REG_DX},
    {VIEW("%rcx"), VIEW("%ecx"), REG_CX},  {VIEW("%r8"), VIEW("%r8d"), REG_8},	  {VIEW("%r9"), VIEW("%r9d"), REG_9},
    {VIEW("%rax"), VIEW("%eax"), REG_AX},
};

#define REGISTERS (sizeof registers / sizeof *registers)

unsigned reg_of(struct view operand)
{
	for (size_t i = 0; i < REGISTERS; i++)
		if (same(operand, registers[i].wide))
			return registers[i].reg;
	return operand.n && operand.at[0] == '%' ? OTHER_REG : NO_REG;
}

bool mentions(const struct line *l, unsigned regs)
{
	for (size_t i = 0; i < REGISTERS; i++) {
		struct view o = l->operands;

		if ((registers[i].reg & regs) && (memmem(o.at, o.n, registers[i].wide.at, registers[i].wide.n) ||
						  memmem(o.at, o.n, registers[i].narrow.at, registers[i].narrow.n)))
			return true;
	}
	return false;
}

/* Those write through rdi without saying so. */
bool is_string_op(const struct line *l)
{
	bool plain = l->word.n == 5 && (STARTS(l->word, "movs") || STARTS(l->word, "stos"));

	return IS(l->word, "rep") || (plain && (!l->operands.n || contains(l->operands, "%es:")));
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

/* Whether it can be a part of 0(%rsp) … 7(%rsp); a store is at most 64 bytes wide. */
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
	else if (!IS(m.base, "%r10")) /* the end of a realigned frame: where it was on entry */
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
	return STARTS(word, "cmp") || STARTS(word, "test") || STARTS(word, "fld") || STARTS(word, "fild") ||
	       STARTS(word, "prefetch") || STARTS(word, "bt");
}

/* The address of the stack's bottom goes into a register, or somewhere else. */
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

/*
 * clang without PLT: movq f@GOTPCREL(%rip), %rax; …; callq *%rax. The load is a little above, or the call stays
 * one through a pointer, which is all right for every function but setjmp.
 */
static void name_loaded_target(struct unit *u, struct line *call)
{
	struct view reg = skip(call->operands, 1), name;
	unsigned bit = reg_of(reg);
	struct line *l = call;

	if (!bit || (bit & OTHER_REG))
		return;
	while (l-- > u->lines) {
		if (l->from_user || (l->kind == LABEL && l->symbol && (l->symbol->is_target || l->symbol->is_table)))
			return;
		if (l->kind != CODE)
			continue;
		if (same(last_operand(l), reg))
			break;
		if (l->op == OP_CALL || l->op == OP_JUMP || l->op == OP_RETURN || mentions(l, bit))
			return;
	}
	name = symbol_prefix(operand(l, 0));
	if (l >= u->lines && is(l->word, "mov") && name.n && STARTS(skip(operand(l, 0), name.n), "@GOTPCREL(%rip)")) {
		call->symbol = symbol(u, name);
		l->feeds_call = true;
	}
}

static void expect_no_pointer_to_setjmp(const struct unit *u)
{
	for (size_t i = 0; i < u->count; i++) {
		const struct line *l = &u->lines[i];
		struct view name = l->kind == CODE && l->op == OP_OTHER ? symbol_prefix(operand(l, 0)) : VIEW("");

		if (name.n && known(name) == KNOWN_SETJMP && !l->feeds_call)
			refuse(u, NULL, "calls %.*s through a pointer: compile without -fno-plt", SHOW(name));
	}
}

void decode(struct unit *u)
{
	for (size_t i = 0; i < u->count; i++) {
		struct line *l = &u->lines[i];

		if (l->kind != CODE || l->from_user)
			continue;
		decode_line(u, l);
		if ((l->op == OP_CALL || l->op == OP_JUMP) && !l->symbol && STARTS(l->operands, "*%"))
			name_loaded_target(u, l);
	}
	expect_no_pointer_to_setjmp(u);
}
