/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Directives: sections and their groups, symbols, the first and last lines of functions, and the names that are used
 * otherwise than by a call.
 *
 * A function is a label with `.type …, @function` before it, up to its `.size` or `.cfi_endproc`, whichever comes last.
 * gcc puts the cold part of f in another section, in between, as a function "f.cold" of its own. Functions in
 * file-scope assembly do not count: nothing is known about them.
 */
#include "unit.h"

struct scanner {
	struct unit *u;
	unsigned current, previous;
	unsigned stack[16], depth;
	struct function *open;
	bool saw_code; /* since the label of `open` */
};

static struct view unquoted(struct view name)
{
	if (name.n >= 2 && name.at[0] == '"')
		return (struct view){name.at + 1, name.n - 2};
	return name;
}

/* The group's name is the first argument after the type, the entry size and the linked-to section. */
static struct view group_of(const struct line *l, struct view flags)
{
	unsigned which = 3;

	if (!memchr(flags.at, 'G', flags.n))
		return (struct view){"", 0};
	which += memchr(flags.at, 'M', flags.n) != NULL;
	which += memchr(flags.at, 'o', flags.n) != NULL;
	return operand(l, which);
}

static bool is_debug(struct view name)
{
	return STARTS(name, ".debug") || STARTS(name, ".eh_frame") || STARTS(name, ".stab") ||
	       STARTS(name, ".gcc_except_table") || STARTS(name, ".gnu.") || STARTS(name, ".note") ||
	       STARTS(name, ".llvm");
}

static unsigned section(struct unit *u, struct view name, const struct line *l)
{
	struct section *s;
	struct view flags = l ? unquoted(operand(l, 1)) : (struct view){"", 0};
	struct view group = l ? group_of(l, flags) : (struct view){"", 0};

	for (size_t i = u->section_count; i-- > 0;) {
		if (same(u->sections[i].name, name) && (same(u->sections[i].group, group) || !flags.n))
			return (unsigned)i;
	}
	u->sections = grow(u->sections, &u->section_room, u->section_count + 1, sizeof *u->sections);
	s = &u->sections[u->section_count];
	s->name = name;
	s->group = group;
	s->code = STARTS(name, ".text") || memchr(flags.at, 'x', flags.n);
	s->debug = is_debug(name);
	u->has_lto |= STARTS(name, ".gnu.lto_");
	u->has_split_note |= IS(name, ".note.GNU-split-stack") || IS(name, ".note.GNU-no-split-stack");
	return (unsigned)u->section_count++;
}

static void enter_section(struct scanner *s, unsigned next)
{
	s->previous = s->current;
	s->current = next;
}

static bool section_directive(struct scanner *s, struct line *l)
{
	struct view name = unquoted(operand(l, 0));

	if (IS(l->word, ".section")) {
		enter_section(s, section(s->u, name, l));
		/* Linkers that know these notes would change calls that are already right. */
		if (STARTS(name, ".note.GNU-split-stack") || STARTS(name, ".note.GNU-no-split-stack"))
			drop(l);
	} else if (IS(l->word, ".pushsection")) {
		if (s->depth < 16)
			s->stack[s->depth++] = s->current;
		enter_section(s, section(s->u, name, l));
	} else if (IS(l->word, ".popsection")) {
		if (s->depth)
			enter_section(s, s->stack[--s->depth]);
	} else if (IS(l->word, ".previous")) {
		enter_section(s, s->previous);
	} else if (IS(l->word, ".subsection")) {
		enter_section(s, s->current);
	} else if (IS(l->word, ".text") || IS(l->word, ".data") || IS(l->word, ".bss")) {
		enter_section(s, section(s->u, l->word, NULL));
	} else {
		return false;
	}
	return true;
}

static void set_alias(struct unit *u, struct line *l, struct view name, struct view value)
{
	struct symbol *s = symbol(u, name);
	struct view target = symbol_prefix(value);

	s->is_defined = true;
	if (target.n && target.n == value.n) {
		s->alias_of = symbol(u, target);
		s->alias_line = l;
	}
}

static void type_directive(struct scanner *s, const struct line *l)
{
	struct view type = operand(l, 1);
	struct symbol *x = symbol(s->u, unquoted(operand(l, 0)));

	if (type.n && (type.at[0] == '@' || type.at[0] == '%'))
		type = skip(type, 1);
	if (IS(type, "gnu_indirect_function")) {
		x->is_ifunc = true;
	} else if (IS(type, "function") && !l->from_user) {
		/* clang: a second, local label right after the function's own. */
		if (x->line != NONE && s->open && !s->saw_code && !x->function)
			x->alias_of = s->open->symbol;
		else
			x->is_function = true;
	}
}

/* The flag that a directive sets for the symbols it lists, or NULL. */
static bool *flag_of(struct symbol *s, struct view word)
{
	if (IS(word, ".globl") || IS(word, ".global"))
		return &s->is_global;
	if (IS(word, ".weak"))
		return &s->is_weak;
	if (IS(word, ".hidden") || IS(word, ".internal") || IS(word, ".protected"))
		return &s->is_hidden;
	if (IS(word, ".comm") || IS(word, ".lcomm"))
		return &s->is_defined;
	return NULL;
}

static bool symbol_directive(struct scanner *s, struct line *l)
{
	struct symbol none, *x;
	bool all = !STARTS(l->word, ".comm") && !STARTS(l->word, ".lcomm");

	if (IS(l->word, ".type")) {
		type_directive(s, l);
	} else if (IS(l->word, ".set") || IS(l->word, ".equ")) {
		set_alias(s->u, l, unquoted(operand(l, 0)), operand(l, 1));
	} else if (IS(l->word, ".weakref")) {
		x = symbol(s->u, unquoted(operand(l, 0)));
		x->is_weakref = x->is_defined = true;
	} else if (flag_of(&none, l->word)) {
		for (unsigned i = 0; operand(l, i).n && (all || !i); i++)
			*flag_of(symbol(s->u, unquoted(operand(l, i))), l->word) = true;
	} else {
		return false;
	}
	return true;
}

static void end_function(struct scanner *s, int line)
{
	if (s->open && s->open->last < s->open->first)
		s->open->last = line;
	if (s->open && s->open->tail == NONE)
		s->open->tail = s->open->last;
	s->open = NULL;
}

static bool is_cold_part(const struct function *f, struct view name)
{
	struct view own = f->symbol->name;

	return starts(name, own) && STARTS(skip(name, own.n), ".cold");
}

static void begin_function(struct scanner *s, struct symbol *name, int line)
{
	struct unit *u = s->u;
	struct section *in = &u->sections[s->current];
	struct function *f;

	if (s->open && is_cold_part(s->open, name->name)) {
		name->part_of = s->open;
		return;
	}
	if (s->open && !s->saw_code) {
		name->alias_of = s->open->symbol;
		return;
	}
	end_function(s, line - 1);
	f = keep(sizeof *f);
	f->symbol = name;
	f->first = line;
	f->last = NONE;
	f->tail = NONE;
	f->check = (struct check){.lea = NONE,
				  .compare = NONE,
				  .branch = NONE,
				  .slow = NONE,
				  .call = NONE,
				  .resume = NONE,
				  .arguments = UNKNOWN};
	name->function = f;
	if (!in->first_function)
		in->first_function = name;
	u->functions = grow(u->functions, &u->function_room, u->function_count + 1, sizeof *u->functions);
	u->functions[u->function_count++] = f;
	s->open = f;
	s->saw_code = false;
}

static void function_directive(struct scanner *s, const struct line *l, int line)
{
	struct function *f = s->open;

	if (!f)
		return;
	if (IS(l->word, ".cfi_startproc")) {
		f->has_cfi = true;
	} else if (IS(l->word, ".cfi_endproc")) {
		f->last = line;
		if (f->tail == NONE)
			f->tail = line;
	} else if (IS(l->word, ".size")) {
		struct view name = operand(l, 0);

		if (!same(name, f->symbol->name) && !is_cold_part(f, name))
			return;
		f->last = line;
		/* Before .size, since the symbol must cover the added code. */
		if (f->tail == NONE && !f->has_cfi)
			f->tail = line - 1;
	}
}

static void file_directive(struct unit *u, struct line *l)
{
	if (IS(l->word, ".ident")) {
		u->is_clang |= contains(l->operands, "clang");
		u->is_gcc |= contains(l->operands, "GCC:");
	} else if (IS(l->word, ".file") && !u->source.n && l->operands.n && l->operands.at[0] == '"') {
		u->source = unquoted(operand(l, 0));
	} else if (STARTS(l->word, ".intel_syntax") && !l->from_user) {
		u->is_intel = true;
	} else if (l->word.n > 1 && (l->word.at[0] != '.') && l->operands.n && l->operands.at[0] == '=') {
		set_alias(u, l, l->word, trim(skip(l->operands, 1)));
	}
}

static void scan_label(struct scanner *s, struct line *l, int line)
{
	struct symbol *x = symbol(s->u, unquoted(l->word));

	l->symbol = x;
	x->is_defined = true;
	if (l->from_user)
		return;
	x->line = line;
	s->u->is_gcc |= STARTS(l->word, ".LFB");
	if (x->is_function && s->u->sections[s->current].code)
		begin_function(s, x, line);
}

static void scan_line(struct scanner *s, struct line *l, int line)
{
	if (l->kind == LABEL)
		scan_label(s, l, line);
	else if (l->kind == DIRECTIVE && !section_directive(s, l) && !symbol_directive(s, l)) {
		function_directive(s, l, line);
		file_directive(s->u, l);
	} else if (l->kind == CODE) {
		s->saw_code = true;
		file_directive(s->u, l);
	}
	l->section = (uint16_t)s->current;
}

/* ---- uses ------------------------------------------------------------------------------------------------------ */

static void use(struct unit *u, struct view name, const struct line *l)
{
	struct symbol *s = find_symbol(u, name);

	if (!s)
		return;
	s->is_taken = true;
	resolve(s)->is_taken = true;
	if (!u->sections[l->section].debug)
		s->is_table = true;
}

static void uses_in(struct unit *u, const struct line *l)
{
	struct view left = l->operands;

	while (left.n) {
		struct view name = symbol_prefix(left);
		char c = left.at[0];

		if (name.n) {
			use(u, name, l);
		} else {
			/* Registers, relocation operators and numbers are not names. */
			name = (struct view){left.at, 1};
			if (c == '%' || c == '@')
				name.n += symbol_prefix(skip(left, 1)).n;
			else if (c >= '0' && c <= '9')
				while (name.n < left.n && (symbol_prefix(skip(left, name.n)).n ||
							   (left.at[name.n] >= '0' && left.at[name.n] <= '9')))
					name.n++;
		}
		left = skip(left, name.n);
	}
}

static bool is_data(struct view word)
{
	return IS(word, ".quad") || IS(word, ".long") || IS(word, ".8byte") || IS(word, ".4byte") || IS(word, ".int") ||
	       IS(word, ".value") || IS(word, ".short") || IS(word, ".2byte") || IS(word, ".byte") || IS(word, ".dc.a");
}

/*
 * Exception tables: for each range of calls its start, its length, and the place where exceptions go, each as a
 * difference of labels, and an action. A difference to the label of the previous line is a length. Any other label may
 * be a place, unless a length follows.
 */
struct ranges {
	struct symbol *start;
	bool is_new; /* only the previous line made it a place */
};

static void find_pad(struct unit *u, const struct line *l, struct ranges *r)
{
	struct view name = symbol_prefix(l->operands), rest = skip(l->operands, name.n);
	struct symbol *s = name.n ? find_symbol(u, name) : NULL, *start = r->start;
	struct view from = rest.n && rest.at[0] == '-' ? symbol_prefix(skip(rest, 1)) : (struct view){"", 0};

	r->start = NULL;
	if (start && same(from, start->name)) {
		start->is_pad &= !r->is_new;
	} else if (s) {
		*r = (struct ranges){s, !s->is_pad};
		s->is_pad = true;
	}
}

static bool is_transfer(struct view word)
{
	return STARTS(word, "call") || word.at[0] == 'j' || IS(word, "xbegin");
}

/* Is it a symbol, or its GOT entry? A call of it is not another use. */
static bool is_named(struct view target)
{
	return target.n && (target.at[0] != '*' || contains(target, "@GOTPCREL"));
}

static void find_uses(struct unit *u)
{
	struct ranges ranges = {0};

	for (size_t i = 0; i < u->count; i++) {
		const struct line *l = &u->lines[i];
		bool debug = u->sections[l->section].debug;

		if (l->from_user && l->kind != BLANK)
			uses_in(u, l);
		else if (l->kind == CODE && !(is_transfer(l->word) && is_named(l->operands)))
			uses_in(u, l);
		else if (l->kind == DIRECTIVE && !debug && is_data(l->word))
			uses_in(u, l);
		else if (l->kind == DIRECTIVE && debug && STARTS(u->sections[l->section].name, ".gcc_except_table"))
			find_pad(u, l, &ranges);
	}
}

void scan(struct unit *u)
{
	struct scanner s = {.u = u};

	s.current = s.previous = section(u, VIEW(".text"), NULL);
	for (size_t i = 0; i < u->count; i++)
		scan_line(&s, &u->lines[i], (int)i);
	end_function(&s, (int)u->count - 1);
	u->is_clang |= u->is_annotated;
	u->is_gcc &= !u->is_clang;
	find_uses(u);
}
