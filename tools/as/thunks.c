/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls of instrumented functions between objects.
 *
 * By name: a call of another object's f goes to weft.in.f, which is hidden. The object that defines f, instrumented and
 * neither weak nor in a group, defines weft.in.f = f. Every object that calls f has a weak weft.in.f in a group of its
 * own: a thunk. So the linker chooses f itself if f is instrumented and in the same module, and the thunk otherwise.
 * The thunk looks at the marker too: f may be weak, or in an instrumented shared library.
 *
 * By pointer: eight bytes before its entry, an instrumented function has a marker.
 *
 * Functions in groups (C++ inline and template functions) have no weft.in name in their group: the linker may take the
 * group from an object that is not instrumented, and then no object would define it.
 */
#include "unit.h"

struct thunk {
	struct thunk *next;
	struct symbol *symbol;
	const char *name;
	bool is_room;
};

/* The target of calls of pointers that are not seen to be marked. */
struct stub {
	struct stub *next;
	int64_t bound;
	const char *name;
};

/* The offset of a mutex's kind in glibc, and the bit in it that means "with a priority ceiling". */
#define MUTEX_KIND 16
#define MUTEX_CEILING 0x40

static bool is_in_group(const struct unit *u, const struct function *f)
{
	return u->sections[u->lines[f->first].section].group.n != 0;
}

/* Has the function a weft.in name for other objects? Calls from this unit use its own name, or this name if it is
 * exported. */
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
	/* The name of a symbol that only this object knows must differ from the same name in another object. */
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

const char *load_bound(int64_t bound)
{
	if (bound == UNKNOWN)
		return "\tmovq\t$-1, %r10\n";
#ifdef WEFT_CANARY_calls_count_no_arguments
	bound = 0;
#endif
	if (!bound)
		return "\txorl\t%r10d, %r10d\n";
	return say("\tmovl\t$%lld, %%r10d\n", (long long)bound);
}

const char *stub_name(struct unit *u, int64_t bound)
{
	struct stub *stub = u->stubs;

	while (stub && stub->bound != bound)
		stub = stub->next;
	if (!stub) {
		stub = keep(sizeof *stub);
		*stub = (struct stub){u->stubs, bound, say(".Lweft%u", new_label(u))};
		u->stubs = stub;
	}
	return stub->name;
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

struct alignment {
	int power;
	/* the alignment may be a promise to users, so nothing is put between the boundary and the entry */
	bool is_exact;
};

/*
 * The alignment that the lines before the label ask for: 16 at least. gcc writes .p2align for speed, and .align for
 * attributes; clang does not distinguish them. A tight recursion with one more instruction is up to a fifth slower if
 * it straddles cache lines (D1 of the lab), so a function that calls itself starts at a cache line.
 */
static struct alignment alignment_of(const struct unit *u, const struct function *f)
{
	struct alignment a = {calls_itself(u, f) ? 6 : 4, false};
	int64_t n;

	for (int i = f->first - 1; i >= 0 && u->lines[i].kind != CODE && u->lines[i].kind != LABEL; i--) {
		const struct line *l = &u->lines[i];
		bool is_promise = IS(l->word, ".align") || IS(l->word, ".balign");

		if (IS(l->word, ".section") || IS(l->word, ".text"))
			break;
		if ((!is_promise && !IS(l->word, ".p2align")) || !number(operand(l, 0), &n) || n < 1)
			continue;
		if (is_promise)
			n = __builtin_ctzll((uint64_t)n);
		if (n > 4 && n < 16) {
			a.is_exact |= is_promise || u->is_clang;
			a.power = n > a.power ? (int)n : a.power;
		}
	}
	return a;
}

/*
 * The entry is 16 bytes behind an aligned address, for the callers (calls.c), and never at the start of a page. A
 * larger alignment that was asked for is kept; weft__icall looks more closely there.
 */
static void mark(struct unit *u, struct function *f)
{
	struct alignment a = alignment_of(u, f);
	int power = a.power == 4 ? 5 : a.power;

	change_before(&u->lines[f->first], say("\t.p2align %d\n\t.skip\t%d, 0xcc\n\t.long\t0x74666577, 0xb10b90cc\n",
					       power, a.is_exact ? (1 << power) - 8 : 8));
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
			change_before(&u->lines[f->first], say("\t.p2align %d\n", alignment_of(u, f).power));
	}
}

/* ---- the end of the text --------------------------------------------------------------------------- */

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
	if (t->is_room && known(name) == KNOWN_LOCK)
		print(to, "\ttestb\t$%d, %d(%%rdi)\n\tjne\t1f\n", MUTEX_CEILING, MUTEX_KIND);
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

/* Input: r10 = the function. */
static void print_stub(struct unit *u, const struct stub *stub)
{
	print(&u->end, "\t.text\n\t.p2align 4\n%s:\n\t.cfi_startproc\n\tendbr64\n\tmovq\t%%r10, %%r11\n%s", stub->name,
	      load_bound(stub->bound));
	print(&u->end, "\tjmp\t*weft__icall@GOTPCREL(%%rip)\n\t.cfi_endproc\n");
}

static void print_entry(struct unit *u, struct symbol *s)
{
	struct buffer *to = &u->end;
	struct view n = s->name;

	print(to, "\t.globl\tweft.in.%.*s\n\t.hidden\tweft.in.%.*s\n\t.type\tweft.in.%.*s, @function\n", SHOW(n),
	      SHOW(n), SHOW(n));
	print(to, "\t.set\tweft.in.%.*s, %.*s\n", SHOW(n), SHOW(n));
}

/* Renames references other than calls: the address of pthread_create. */
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
	for (const struct stub *stub = u->stubs; stub; stub = stub->next)
		print_stub(u, stub);
	print_renames(u);
}
