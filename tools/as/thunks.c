/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How objects find each other's instrumented functions.
 *
 * By name: a call of another object's f goes to weft.in.f, which is hidden. The object that defines f,
 * instrumented and neither weak nor in a group, says weft.in.f = f. Every object that calls it has a weak
 * weft.in.f in a group of its own: a thunk. So the linker makes it a direct call if f is instrumented and in the
 * same module, and the thunk otherwise. The thunk looks at the marker too: f may be weak, or in an instrumented
 * shared library.
 *
 * By pointer: eight bytes before its entry, an instrumented function has a marker.
 *
 * Functions in groups (C++ inline and template functions) have no weft.in name in their group: the linker may take
 * the group from an object that is not instrumented, and then nobody would define it.
 */
#include "unit.h"

struct thunk {
	struct thunk *next;
	struct symbol *symbol;
	const char *name;
	bool is_room;
};

#define ROOM_BYTES 2048

static bool is_in_group(const struct unit *u, const struct function *f)
{
	return u->sections[u->lines[f->first].section].group.n != 0;
}

/* Names for others; those of this unit call it as it is, or by this name where it is exported. */
static bool has_entry(const struct unit *u, struct symbol *s)
{
	struct function *f = function_of(s);

	return f && s->is_global && !s->is_weak && !is_in_group(u, f);
}

static const char *thunk_name(struct unit *u, struct symbol *s, const char *prefix, bool is_room)
{
	struct thunk *t = s->thunk;

	if (t)
		return t->name;
	t = keep(sizeof *t);
	t->symbol = s;
	t->is_room = is_room;
	/* A name that only this object knows must not meet the same name of another one. */
	t->name = say("%s%s%.*s", s->is_defined && !s->is_global && !s->is_weak ? ".L" : "", prefix, SHOW(s->name));
	t->next = u->thunks;
	u->thunks = s->thunk = t;
	return t->name;
}

const char *entry_name(struct unit *u, struct symbol *s)
{
	if (has_entry(u, s))
		return say("weft.in.%.*s", SHOW(s->name));
	return thunk_name(u, s, "weft.in.", false);
}

const char *room_name(struct unit *u, struct symbol *s)
{
	return thunk_name(u, s, "weft.room.", true);
}

/* ---- markers ---------------------------------------------------------------------------------------------------- */

static bool is_reachable_from_elsewhere(const struct symbol *s)
{
	return s->is_global || s->is_weak || s->is_taken || s->is_ifunc;
}

static bool calls_itself(const struct unit *u, const struct function *f)
{
	for (int i = f->first; i <= f->last; i++)
		if (u->lines[i].op == OP_CALL && u->lines[i].symbol && u->lines[i].symbol->function == f)
			return true;
	return false;
}

/*
 * The power of two that the lines before its label align it to: at least 4. A tight recursion with one instruction
 * more is up to a fifth slower where it straddles cache lines (D1 of the lab), so that what calls itself starts at one.
 */
static int alignment_of(const struct unit *u, const struct function *f)
{
	int64_t power = calls_itself(u, f) ? 6 : 4, n;

	for (int i = f->first - 1; i >= 0 && u->lines[i].kind != CODE && u->lines[i].kind != LABEL; i--) {
		const struct line *l = &u->lines[i];

		if (IS(l->word, ".section") || IS(l->word, ".text"))
			break;
		if (IS(l->word, ".p2align") && number(operand(l, 0), &n) && n > power && n < 16)
			power = n;
	}
	return (int)power;
}

/*
 * Sixteen bytes behind what is aligned: never at the start of a page, where callers do not look for a mark. A larger
 * alignment that the compiler wants stays as it is.
 */
static void mark(struct unit *u, struct function *f)
{
	int power = alignment_of(u, f);
	bool wanted = power > 4 && !calls_itself(u, f);

	if (power == 4)
		power = 5;
	change_before(&u->lines[f->first], say("\t.p2align %d\n\t.skip\t%d, 0xcc\n\t.long\t0x74666577, 0xb10b90cc\n",
					       power, wanted ? (1 << power) - 8 : 8));
	f->is_marked = true;
}

void mark_functions(struct unit *u)
{
	for (size_t i = 0; i < u->symbol_count; i++) {
		struct function *f = resolve(u->symbols[i])->function;

		if (f && !f->is_marked && is_reachable_from_elsewhere(u->symbols[i]))
			mark(u, f);
	}
	for (size_t i = 0; i < u->function_count; i++) {
		struct function *f = u->functions[i];

		if (!f->is_marked && calls_itself(u, f))
			change_before(&u->lines[f->first], say("\t.p2align %d\n", alignment_of(u, f)));
	}
}

/* ---- what stands at the end of the text ------------------------------------------------------------ */

static void print_head(struct unit *u, const struct thunk *t)
{
	struct buffer *to = &u->end;

	if (t->name[0] == '.') {
		print(to, "\t.text\n\t.p2align 4\n%s:\n\t.cfi_startproc\n", t->name);
		return;
	}
	print(to, "\t.section\t.text.%s,\"axG\",@progbits,%s,comdat\n\t.p2align 4\n", t->name, t->name);
	print(to, "\t.weak\t%s\n\t.hidden\t%s\n\t.type\t%s, @function\n%s:\n\t.cfi_startproc\n", t->name, t->name,
	      t->name, t->name);
}

static void print_thunk(struct unit *u, const struct thunk *t)
{
	struct buffer *to = &u->end;
	struct view name = t->symbol->name;

	print_head(u, t);
	if (t->is_room)
		print(to, "\tleaq\t-%d(%%rsp), %%r11\n\tcmpq\t%%fs:112, %%r11\n\tjb\t1f\n", ROOM_BYTES);
	else
		print(to, "\tcmpq\t$0, %%fs:112\n\tjne\t1f\n");
	print(to, "\tjmp\t*%.*s@GOTPCREL(%%rip)\n1:\tmovq\t%.*s@GOTPCREL(%%rip), %%r11\n", SHOW(name), SHOW(name));
	if (!t->is_room)
		print(to,
		      "\ttestl\t$0xff8, %%r11d\n\tje\t2f\n\tcmpl\t$0x74666577, -8(%%r11)\n\tjne\t2f\n\tjmp\t*%%r11\n");
	print(to, "2:\tjmp\t*weft__ext@GOTPCREL(%%rip)\n\t.cfi_endproc\n");
	if (t->name[0] != '.')
		print(to, "\t.size\t%s, .-%s\n", t->name, t->name);
}

static void print_entry(struct unit *u, struct symbol *s)
{
	struct buffer *to = &u->end;
	struct view n = s->name;

	print(to, "\t.globl\tweft.in.%.*s\n\t.hidden\tweft.in.%.*s\n\t.type\tweft.in.%.*s, @function\n", SHOW(n),
	      SHOW(n), SHOW(n));
	print(to, "\t.set\tweft.in.%.*s, %.*s\n", SHOW(n), SHOW(n));
}

/* References that are no calls: the address of pthread_create. */
static void print_renames(struct unit *u)
{
	for (size_t i = 0; i < u->symbol_count; i++) {
		struct symbol *s = u->symbols[i];
		const char *other = s->is_taken && !s->is_defined ? renamed(s->name) : NULL;

		if (other)
			print(&u->end, "\t.set\t%.*s, %s\n", SHOW(s->name), other);
	}
}

void finish_thunks(struct unit *u)
{
	for (size_t i = 0; i < u->symbol_count; i++) {
		if (has_entry(u, u->symbols[i]))
			print_entry(u, u->symbols[i]);
	}
	for (const struct thunk *t = u->thunks; t; t = t->next)
		print_thunk(u, t);
	print_renames(u);
}
