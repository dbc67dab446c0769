/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Prologue checks: recognised in the form of gcc and clang, rewritten in the form that the policy needs.
 *
 *	[leaq -N(%rsp), %r11]                  only if N is 256 or more
 *	cmpq  %fs:112, %r11 or %rsp
 *	jb or jbe slow                         or: jnb or ja body, with the slow path in between
 *   body:
 *	…
 *   slow:
 *	movl  $N, %r10d                        in any order, or xorl; the static chain is saved in rax
 *	movl  $A, %r11d
 *	call  __morestack
 *	ret                                    one byte, which libgcc's __morestack skips
 *	jmp   body                             or a copy of the beginning of the body
 *
 * Compilers ask for too little: gcc leaves out arguments that it pushes. Neither compiler counts the stack that inline
 * assembly takes by pushes and calls, or the stack of the TLS resolver. Compilers compare bare rsp for frames below 256
 * bytes; weft-as does so below 64, because every chunk, however small, keeps free the bytes that such a frame may need
 * below the limit.
 */
#include "unit.h"

#define SMALL 64       /* a smaller need takes no subtraction */
#define LEAF 64	       /* a frame of this size and the red zone (128) needs no check */
#define USER_CALLS 512 /* bytes that inline assembly may push */
#define TLS_CALL 4096  /* __tls_get_addr, lazily bound, allocating */
#define SLOW_PATH 16   /* instructions at most */
#define MAX_PROBE 3072 /* a probe further below might jump over a guard page */

static int next_code(const struct unit *u, int line, int last)
{
	while (++line <= last) {
		if (u->lines[line].kind == CODE)
			return line;
	}
	return NONE;
}

static bool skips_prologue(const struct line *l)
{
	return STARTS(l->word, "endbr") || STARTS(l->word, "nop") ||
	       (l->op == OP_CALL && l->symbol && IS(l->symbol->name, "__fentry__"));
}

/* Records the values that an instruction of the slow path puts into r10 and r11. False: it does not write them. */
static bool slow_value(const struct line *l, int64_t value[2])
{
	struct view to = last_operand(l), from = operand(l, 0);
	bool is_mov = STARTS(l->word, "mov"), is_xor = STARTS(l->word, "xor");
	int which = IS(to, "%r10d") || IS(to, "%r10") ? 0 : IS(to, "%r11d") || IS(to, "%r11") ? 1 : NONE;

	if (which == NONE || l->op != OP_OTHER)
		return false;
	if (is_xor && same(from, to))
		value[which] = 0;
	else if (is_mov && (IS(from, "%r10d") || IS(from, "%r10") || IS(from, "%r11d") || IS(from, "%r11")))
		value[which] = value[!which];
	else if (!is_mov || !immediate(from, &value[which]))
		value[which] = UNKNOWN;
	return true;
}

static void read_slow_path(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	int64_t value[2] = {UNKNOWN, UNKNOWN};
	int line = c->slow, count = 0;

	if (u->lines[line].kind != CODE)
		line = next_code(u, line, (int)u->count - 1);
	for (; line != NONE && count < SLOW_PATH; count++, line = next_code(u, line, (int)u->count - 1)) {
		struct line *l = &u->lines[line];

		if (l->op == OP_CALL) {
			if (l->symbol && IS(l->symbol->name, "__morestack"))
				c->call = line;
			break;
		}
		if (slow_value(l, value))
			drop(l);
	}
	c->resume = c->call == NONE ? NONE : next_code(u, c->call, (int)u->count - 1);
	if (c->resume == NONE || u->lines[c->resume].op != OP_RETURN || value[0] == UNKNOWN || value[1] == UNKNOWN)
		refuse(u, f, "its stack check cannot be read (-mcmodel=large?): this compiler is not known here");
	c->need = value[0];
	c->arguments = value[1];
}

static void read_branch(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	const struct line *l = &u->lines[c->branch];

	if (IS(l->word, "jb") || IS(l->word, "jbe") || IS(l->word, "jc") || IS(l->word, "jnae") || IS(l->word, "jna")) {
		c->slow = l->symbol->line;
	} else if (IS(l->word, "ja") || IS(l->word, "jae") || IS(l->word, "jnb") || IS(l->word, "jnc")) {
		c->is_inline = true;
		c->slow = next_code(u, c->branch, f->last);
		/* Or the slow path is elsewhere, one jump away. */
		if (c->slow != NONE && u->lines[c->slow].op == OP_JUMP && u->lines[c->slow].symbol) {
			c->slow_label = u->lines[c->slow].symbol;
			c->slow = c->slow_label->line;
		}
	}
	if (c->slow == NONE)
		refuse(u, f, "its stack check cannot be read: this compiler is not known here");
	read_slow_path(u, f);
}

void find_check(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	int line = next_code(u, f->first, f->last);

	while (line != NONE && skips_prologue(&u->lines[line]) && !u->lines[line].from_user)
		line = next_code(u, line, f->last);
	if (line != NONE && IS(u->lines[line].word, "leaq")) {
		c->lea = line;
		line = next_code(u, line, f->last);
	}
	if (line == NONE || u->lines[line].op != OP_LIMIT_COMPARE || !STARTS(u->lines[line].operands, "%fs:112")) {
		c->lea = NONE;
		return;
	}
	c->compare = line;
	c->keeps_lea = IS(last_operand(&u->lines[line]), "%rsp");
	c->branch = next_code(u, line, f->last);
	if (c->branch != NONE && c->keeps_lea && c->lea == NONE && IS(u->lines[c->branch].word, "leaq")) {
		c->lea = c->branch;
		c->branch = next_code(u, c->lea, f->last);
	}
	if (c->branch == NONE || u->lines[c->branch].op != OP_BRANCH)
		refuse(u, f, "its stack check cannot be read: this compiler is not known here");
	f->is_split = true;
	read_branch(u, f);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

void print_compare(struct buffer *text, int64_t need)
{
#ifdef WEFT_CANARY_checks_look_at_nothing
	int limit = 120;
#else
	int limit = 112;
#endif

	if (need < SMALL)
		print(text, "\tcmpq\t%%fs:%d, %%rsp\n", limit);
	else
		print(text, "\tleaq\t-%lld(%%rsp), %%r11\n\tcmpq\t%%fs:%d, %%r11\n", (long long)need, limit);
}

/* Jumps to weft__morestack, with the address at which the function continues, and the bytes that it needs for its
 * frame and its arguments. */
static const char *go_to_morestack(const char *body, int64_t need, int64_t arguments)
{
	const char *jump = "\tjmp\t*weft__morestack@GOTPCREL(%rip)\n";

#ifdef WEFT_CANARY_checks_ask_for_a_third
	if (need >= 1000)
		need /= 3;
#endif
	if (arguments > INT32_MAX)
		arguments = UNKNOWN;
	if (arguments == 0)
		return say("\tleaq\t%s(%%rip), %%r10\n\tmovl\t$%lld, %%r11d\n%s", body, (long long)need, jump);
	/* UNKNOWN is negative. */
	return say("\tleaq\t%s(%%rip), %%r10\n\tmovabsq\t$%lld, %%r11\n%s", body,
		   (long long)(arguments * (INT64_C(1) << 32) + need), jump);
}

static const char *body_label(struct function *f)
{
	const char *name = body_name(f);

	if (f->is_body_global)
		return say("\t.globl\t%s\n\t.hidden\t%s\n\t.type\t%s, @function\n%s:\n", name, name, name, name);
	return say("%s:\n", name);
}

/* The slow path's call. Compilers continue behind its `ret` by a jump; this code continues there directly. */
static void rewrite_call(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	int next = next_code(u, c->resume, (int)u->count - 1);
	const char *body;

	if (next != NONE && u->lines[next].op == OP_JUMP && u->lines[next].symbol) {
		body = say("%.*s", SHOW(u->lines[next].symbol->name));
		drop(&u->lines[c->resume]);
	} else {
		body = say(".Lweft%um", new_label(u));
		change(&u->lines[c->resume], say("%s:\n", body));
	}
	change(&u->lines[c->call], go_to_morestack(body, f->need, c->arguments));
}

static void rewrite_found(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	struct line *branch = &u->lines[c->branch];
	const char *to = say("%.*s", SHOW(branch->symbol->name)), *slow = to, *kept = "";
	struct buffer text = {0};

	/* gcc may load the address of the stack arguments before the check. lea does not change the flags. */
	if (c->lea != NONE && c->keeps_lea)
		kept = say("\t%.*s\t%.*s\n", SHOW(u->lines[c->lea].word), SHOW(u->lines[c->lea].operands));
	if (c->slow_label)
		slow = say("%.*s", SHOW(c->slow_label->name));
	else if (c->is_inline)
		slow = say(".Lweft%u", new_label(u));
	if (u->policy == MMU && f->need <= MAX_PROBE) {
		emit_probe(u, f, slow, &text);
		append(&text, kept, strlen(kept));
		if (c->is_inline)
			print(&text, "\tjmp\t%s\n", to);
		if (c->is_inline && !c->slow_label)
			print(&text, "%s:\n", slow);
	} else {
		print_compare(&text, f->need);
		print(&text, "%s\t%s\t%s\n", kept, c->is_inline ? "jae" : "jb", to);
	}
	if (c->lea != NONE)
		drop(&u->lines[c->lea]);
	drop(&u->lines[c->compare]);
	if (f->is_body_entered && !c->is_inline)
		print(&text, "%s", body_label(f));
	else if (f->is_body_entered)
		change_after(&u->lines[branch->symbol->line], body_label(f));
	change(branch, text.at);
	rewrite_call(u, f);
}

/*
 * Code may be inserted before this line: behind the label, the label's directives and endbr64, and before any label of
 * a loop.
 */
static int entry_line(const struct unit *u, const struct function *f)
{
	int line = f->first + 1, at = line;

	for (; line < f->last; line++) {
		const struct line *l = &u->lines[line];

		if (l->kind == CODE && !skips_prologue(l))
			break;
		if (l->kind == LABEL && (!l->symbol || l->symbol->is_target || l->symbol->is_table))
			break;
		if (l->kind == CODE || STARTS(l->word, ".cfi_"))
			at = line + 1;
	}
	return at;
}

static void insert_check(struct unit *u, struct function *f)
{
	unsigned label = new_label(u);
	const char *slow = say(".Lweft%us", label), *body = say(".Lweft%ub", label);
	const char *start = f->has_cfi ? "\t.cfi_startproc\n" : "", *end = f->has_cfi ? "\t.cfi_endproc\n" : "";
	struct buffer text = {0};
	int line = entry_line(u, f);

	if (u->policy == MMU && f->need <= MAX_PROBE)
		emit_probe(u, f, slow, &text);
	else
		print_compare(&text, f->need), print(&text, "\tjb\t%s\n", slow);
	print(&text, "%s:\n%s", body, f->is_body_entered ? body_label(f) : "");
	change_before(&u->lines[line], text.at);
	change_after(&u->lines[f->tail],
		     say("%s%s:\n%s%s", start, slow, go_to_morestack(body, f->need, f->check.arguments), end));
}

int64_t frame_of(const struct unit *u, const struct function *f)
{
	int64_t need = f->check.need > f->depth ? f->check.need : f->depth;

	if (f->has_user_calls)
		need += USER_CALLS;
	if (f->has_tls_calls && u->policy != LOOKAHEAD)
		need += TLS_CALL;
	return need;
}

/*
 * A function that calls nothing and has a small frame uses the slack that its caller's check has left: 64 bytes of the
 * slack may be the caller's, 8 are the return address; the run time keeps at least 272. A tail jump takes the place of
 * the caller's call; look-ahead has to see its target.
 */
bool is_leaf(const struct unit *u, const struct function *f)
{
	return !f->makes_calls && !f->has_user_calls && !f->has_dynamic && frame_of(u, f) <= LEAF;
}

bool can_enter_body(const struct function *f)
{
	return !f->is_split || !f->check.keeps_lea || f->check.lea == NONE;
}

/* The slow path directly follows the branch. Does the body directly follow the slow path? gcc -Os may put another
 * block of the function there, a loop's, with a label of its own. */
static bool is_before_body(const struct unit *u, const struct check *c, int body)
{
	for (int i = c->resume + 1; i < body; i++) {
		const struct line *l = &u->lines[i];

		if (l->kind == LABEL && (!l->symbol || l->symbol->is_target || l->symbol->is_table))
			return false;
	}
	return c->resume < body;
}

/* No call goes through the check: remove it, and its slow path as far as no other code can lead there. */
static void remove_check(struct unit *u, struct function *f)
{
	struct check *c = &f->check;
	struct line *branch = &u->lines[c->branch];
	int from = c->slow, to = c->resume;

	if (c->lea != NONE && !c->keeps_lea)
		drop(&u->lines[c->lea]);
	drop(&u->lines[c->compare]);
	drop(branch);
	if (c->is_inline && !c->slow_label && is_before_body(u, c, branch->symbol->line)) {
		from = c->branch;
		to = branch->symbol->line;
	} else {
		int next = next_code(u, c->resume, (int)u->count - 1);

		if (c->is_inline && !c->slow_label)
			from = c->branch;
		if (c->is_inline)
			change(branch, say("\tjmp\t%.*s\n", SHOW(branch->symbol->name)));
		/* A copy of the body's beginning, or code that loads the variable arguments, may stay: it is never
		 * reached. */
		if (next != NONE && u->lines[next].op == OP_JUMP)
			to = next;
	}
	for (int i = from + 1; i <= to; i++) {
		if (u->lines[i].kind == CODE)
			drop(&u->lines[i]);
	}
}

static bool is_checked(const struct unit *u, const struct function *f)
{
	return u->policy == LOOKAHEAD ? f->is_checkpoint : !is_leaf(u, f);
}

void rewrite_check(struct unit *u, struct function *f)
{
	if (u->policy != LOOKAHEAD)
		f->need = frame_of(u, f);
	if (f->need > INT32_MAX - 65536)
		refuse(u, f, "its frame is larger than 2 GB: put the variables on the heap");
	if (!f->is_split && f->has_dynamic)
		refuse(u, f, "alloca or a variable-length array, but no stack check: drop no_split_stack or the array");
	if (f->is_split && is_checked(u, f))
		rewrite_found(u, f);
	else if (f->is_split)
		remove_check(u, f);
	else if (is_checked(u, f))
		insert_check(u, f);
}

/*
 * An alloca compares the new stack pointer with the limit. The pushes below it must fit, too. If they take more than
 * the slack, the compare looks that much further down. No register is free there; lea keeps the flags.
 */
void widen_alloca(struct unit *u, struct function *f)
{
	int64_t margin = f->above_dynamic + (f->has_user_calls ? USER_CALLS : 0);

	/* Look-ahead adds the functions that are called from there without a check. */
	if (u->policy == LOOKAHEAD)
		margin += f->path - f->frame;
	if (!f->has_dynamic || margin <= SMALL)
		return;
	for (int i = f->first; i <= f->last; i++) {
		struct line *l = &u->lines[i];
		struct view reg;

		if (l->kind != CODE || l->op != OP_LIMIT_COMPARE || i == f->check.compare)
			continue;
		reg = STARTS(l->operands, "%fs:112") ? last_operand(l) : operand(l, 0);
		change_before(l, say("\tleaq\t-%lld(%.*s), %.*s\n", (long long)margin, SHOW(reg), SHOW(reg)));
		change_after(l, say("\tleaq\t%lld(%.*s), %.*s\n", (long long)margin, SHOW(reg), SHOW(reg)));
	}
}
