/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls and tail jumps. A call within the unit does not change. A call of another object goes to weft.in.NAME, with an
 * upper bound on the bytes of stack arguments in r10: this is the function itself if it is instrumented, else a thunk
 * (thunks.c). For a call through a pointer, the marker before the function says whether it is instrumented. Neither
 * r10, r11 nor the flags carry a value at such calls. The stack pointer does not move, and a call stays between the
 * labels that the exception tables name.
 */
#include "unit.h"

#define MARKER "0x74666577"

/* ---- through pointers ------------------------------------------------------------------------------------------- */

/*
 * A marked function is 16 bytes behind a multiple of 32 (thunks.c), so setting that bit does not change its address.
 * For any other function, the eight bytes before the changed address are in the same page, and may be read. If r11 is
 * already in use, the code tests for the start of a page instead. r10 may hold a static chain for a marked function.
 */
static void look_for_mark(struct buffer *text, struct view from, unsigned label)
{
	bool uses_r11 = contains(from, "%r11");

	if (!IS(from, "%r11"))
		print(text, "\tmovq\t%.*s, %%r11\n", SHOW(from));
	if (uses_r11)
		print(text, "\ttestl\t$0xff8, %%r11d\n\tje\t.Lweft%us\n", label);
	else
		print(text, "\torq\t$16, %%r11\n");
	print(text, "\tcmpl\t$" MARKER ", -8(%%r11)\n\tje\t.Lweft%u\n", label);
	if (uses_r11)
		print(text, ".Lweft%us:\n\tmovq\t%%r11, %%r10\n", label);
	else
		print(text, "\tmovq\t%.*s, %%r10\n", SHOW(from));
}

/* There is one call for both cases; a function that is not seen to be marked is called by a stub. */
static void rewrite_indirect(struct unit *u, struct line *l)
{
	unsigned label = new_label(u);
	struct buffer text = {0};

	look_for_mark(&text, trim(skip(l->operands, 1)), label);
	print(&text, "\tleaq\t%s(%%rip), %%r11\n.Lweft%u:\n\t%s\t*%%r11\n", stub_name(u, l->bound), label,
	      l->op == OP_CALL ? "call" : "jmp");
	change(l, text.at);
}

/* Jump tables and computed gotos stay inside the function; the compilers' comments distinguish them from tail calls. */
bool is_tail_call(struct unit *u, struct function *f, const struct line *l)
{
	struct view comment = l->text;

	cut(&comment, '#');
	if (u->is_clang)
		return contains(comment, "TAILCALL");
	/* "12 [c=4 l=2] *sibcall", after the text of -fverbose-asm about variables. */
	while (comment.n && !STARTS(comment, "[c="))
		comment = skip(comment, 1);
	if (contains(comment, "sibcall"))
		return true;
	if (contains(comment, "tablejump") || contains(comment, "indirect_jump"))
		return false;
	refuse(u, f, "what the jump '%.*s %.*s' is cannot be told: compile with -dp", SHOW(l->word), SHOW(l->operands));
}

/* ---- by name ---------------------------------------------------------------------------------------------------- */

enum way { LEAVE, DIRECT, SETJMP, ENTRY, ROOM };

static bool is_own(const struct symbol *s)
{
	return s->is_defined || s->line != NONE;
}

static enum way way_of_unknown(struct symbol *s)
{
	switch (known(s->name)) {
	case KNOWN_SMALL:
	case KNOWN_MEM:
		return DIRECT;
	case KNOWN_SETJMP:
		return SETJMP;
	case KNOWN_ROOM:
	case KNOWN_LOCK:
		return ROOM;
	case KNOWN_UNTOUCHED:
		return LEAVE;
	default:
		return ENTRY;
	}
}

static enum way way_of(struct unit *u, const struct function *f, struct symbol *s, const struct line *l)
{
	if (STARTS(s->name, "__x86_indirect_thunk") || STARTS(s->name, "__llvm_retpoline"))
		refuse(u, f, "calls through retpolines: compile without -mindirect-branch and -mretpoline");
	if (!is_own(s) && (IS(s->name, "__sysv_signal") || IS(s->name, "sysv_signal") || IS(s->name, "sigset")))
		refuse(u, f, "%.*s makes handlers run on any stack: use sigaction, or signal with -D_DEFAULT_SOURCE",
		       SHOW(s->name));
	if (!is_own(s) && !s->is_ifunc)
		return way_of_unknown(s);
	/* The name binds to the definition here. A register may hold another module's function of that name. */
	if (function_of(s) && l->operands.at[0] != '*' &&
	    ((!s->is_global && !s->is_weak) || !memchr(l->operands.at, '@', l->operands.n)) &&
	    !(s->is_weak && !s->is_hidden))
		return LEAVE;
	return ENTRY;
}

static const char *after_setjmp = "\tcall\t*weft__after_setjmp@GOTPCREL(%rip)\n";

static void add_after_setjmp(struct unit *u, struct line *l)
{
	struct line *next = l + 1, *end = u->lines + u->count;

	while (next < end && next->kind != CODE)
		next++;
	change_after(next < end && STARTS(next->word, "endbr") ? next : l, after_setjmp);
}

static const char *transfer(const struct line *l, const char *target)
{
	return say("\t%s\t%s\n", l->op == OP_CALL ? "call" : "jmp", target);
}

static void rewrite_named(struct unit *u, const struct function *f, struct line *l, struct symbol *s)
{
	enum way way = way_of(u, f, s, l);
	const char *got = say("*%.*s@GOTPCREL(%%rip)", SHOW(s->name));

	switch (way) {
	case LEAVE:
		break;
	case SETJMP:
		add_after_setjmp(u, l);
		/* fallthrough */
	case DIRECT:
		change(l, transfer(l, got));
		break;
	case ROOM:
		change(l, say("\txorl\t%%r10d, %%r10d\n%s", transfer(l, room_name(u, s))));
		break;
	case ENTRY:
		change(l, say("%s%s", load_bound(l->bound), transfer(l, entry_name(u, s))));
		break;
	}
}

/* jne f: a conditional tail call becomes a branch around a tail call. r10 may be in use if the branch is not taken. */
static void rewrite_branch(struct unit *u, const struct function *f, struct line *l, struct symbol *s)
{
	struct view condition = skip(l->word, 1);
	const char *opposite;
	unsigned label;

	if (way_of(u, f, s, l) == LEAVE)
		return;
	label = new_label(u);
	if (condition.at[0] == 'n')
		opposite = say("j%.*s", SHOW(skip(condition, 1)));
	else
		opposite = say("jn%.*s", SHOW(condition));
	rewrite_named(u, f, l, s);
	change(l, say("\t%s\t.Lweft%u\n%s.Lweft%u:\n", opposite, label, l->instead, label));
}

/* Is the target a label, or a cold part? */
static bool stays_inside(const struct symbol *s)
{
	return STARTS(s->name, ".L") ? !function_of((struct symbol *)s) : s->part_of != NULL;
}

static void rewrite_one(struct unit *u, struct function *f, struct line *l)
{
	struct symbol *s = l->symbol;
	const char *other;

	if (!s) {
		if (l->op == OP_CALL || l->is_tail_call)
			rewrite_indirect(u, l);
		return;
	}
	if (l->op != OP_CALL && stays_inside(s))
		return;
	other = is_own(s) ? NULL : renamed(s->name);
	if (other)
		s = symbol(u, (struct view){other, strlen(other)});
	if (l->function)
		change(l, l->op == OP_BRANCH ? say("\t%.*s\t%s\n", SHOW(l->word), body_name(l->function))
					     : transfer(l, body_name(l->function)));
	else if (l->op == OP_BRANCH)
		rewrite_branch(u, f, l, s);
	else
		rewrite_named(u, f, l, s);
}

void rewrite_calls(struct unit *u, struct function *f)
{
	for (int i = f->first; i <= f->last; i++) {
		struct line *l = &u->lines[i];

		if (l->kind == CODE && !l->from_user && !l->dropped && i != f->check.branch && i != f->check.call &&
		    (l->op == OP_CALL || l->op == OP_JUMP || l->op == OP_BRANCH))
			rewrite_one(u, f, l);
	}
}
