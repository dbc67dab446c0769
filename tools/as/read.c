/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lines of assembly, split into word, operands and comment. Compilers write simple text: one statement per line, and
 * each label alone. User code (inline and file-scope assembly) may be anything: it is written unchanged, and examined
 * statement by statement.
 */
#include "unit.h"

/* The operands end at a comment. Strings occur only in directives; a '#' in a string does not begin a comment. */
static struct view without_comment(struct view text)
{
	const char *end = memchr(text.at, '#', text.n);

	if (!end)
		return trim(text);
	if (memchr(text.at, '"', (size_t)(end - text.at))) {
		bool quoted = false;

		for (end = text.at; end < text.at + text.n && (quoted || *end != '#'); end++) {
			if (*end == '\\' && quoted && end + 1 < text.at + text.n)
				end++;
			else if (*end == '"')
				quoted = !quoted;
		}
	}
	return trim((struct view){text.at, (size_t)(end - text.at)});
}

static struct view first_word(struct view text)
{
	size_t n = 0;

	while (n < text.n && !is_blank(text.at[n]) && text.at[n] != ';')
		n++;
	return (struct view){text.at, n};
}

static struct line *new_line(struct unit *u)
{
	u->lines = grow(u->lines, &u->room, u->count + 1, sizeof *u->lines);
	u->lines[u->count] = (struct line){.kind = BLANK};
	return &u->lines[u->count++];
}

/* Prefixes before the mnemonic on the same line that the analysis ignores. */
static bool is_prefix(struct view word)
{
	return IS(word, "notrack") || IS(word, "bnd") || STARTS(word, "rep") || IS(word, "data16") ||
	       IS(word, "addr32") || IS(word, "rex64") || IS(word, "lock");
}

static void split_statement(struct line *l, struct view text)
{
	l->word = first_word(text);
	text = trim(skip(text, l->word.n));
	/* A string instruction keeps its prefix: "rep movsq". */
	while (text.n && is_prefix(l->word)) {
		struct view next = first_word(text);

		if (!next.n || (STARTS(l->word, "rep") && !STARTS(next, "ret")))
			break;
		l->word = next;
		text = trim(skip(text, l->word.n));
	}
	l->operands = text;
	l->kind = l->word.at[0] == '.' ? DIRECTIVE : CODE;
}

static void add_line(struct unit *u, struct view text)
{
	struct line *l = new_line(u);
	struct view rest = without_comment(text), label;

	l->text = text;
	if (!rest.n)
		return;
	label = first_word(rest);
	if (label.at[label.n - 1] != ':') {
		split_statement(l, rest);
		return;
	}
	l->kind = LABEL;
	l->word = (struct view){label.at, label.n - 1};
	rest = trim(skip(rest, label.n));
	if (rest.n) {
		/* Make two lines, so that each line is one thing. */
		l->text.n = (size_t)(label.at + label.n - text.at);
		l = new_line(u);
		l->text = rest;
		split_statement(l, rest);
	}
}

/* ---- user code ---- */

/* A line may hold several statements. The first statement is written with the line's text, the following statements
 * are only read. */
static void add_statement(struct unit *u, struct view text, struct view whole)
{
	struct line *l = new_line(u);

	l->from_user = true;
	l->text = whole;
	l->dropped = !whole.at;
	if (!text.n)
		return;
	l->word = first_word(text);
	if (l->word.at[l->word.n - 1] != ':') {
		split_statement(l, text);
		return;
	}
	l->kind = LABEL;
	l->word.n--;
	text = trim(skip(text, l->word.n + 1));
	if (text.n)
		add_statement(u, text, (struct view){NULL, 0});
}

/* The length of a statement, which ends at a semicolon outside strings. */
static size_t statement_length(struct view text)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < text.n && (quoted || text.at[i] != ';'); i++) {
		if (text.at[i] == '\\' && quoted)
			i++;
		else if (text.at[i] == '"')
			quoted = !quoted;
	}
	return i < text.n ? i : text.n;
}

/* Replaces C comments, which may extend over several lines, by blanks. */
static struct view without_c_comments(struct view text, bool *inside)
{
	char *copy;

	if (!*inside && !contains(text, "/*"))
		return text;
	copy = say("%.*s", SHOW(text));
	for (size_t i = 0; i < text.n; i++) {
		bool begins = !*inside && STARTS(skip(text, i), "/*"), ends = *inside && STARTS(skip(text, i), "*/");

		*inside |= begins;
		if (*inside)
			copy[i] = ' ';
		if (begins || ends)
			copy[++i] = ' ';
		*inside &= !ends;
	}
	return (struct view){copy, text.n};
}

static void add_user_line(struct unit *u, struct view text, bool *in_comment)
{
	struct view left = without_comment(without_c_comments(text, in_comment)), whole = text;

	if (left.n && left.at[0] == '/')
		left.n = 0;
	do {
		size_t n = statement_length(left);

		add_statement(u, trim((struct view){left.at, n}), whole);
		whole = (struct view){NULL, 0};
		left = skip(left, n < left.n ? n + 1 : n);
	} while (left.n);
}

void read_lines(struct unit *u)
{
	struct view left = u->text;
	bool from_user = false, in_comment = false;

	while (left.n) {
		struct view text = cut(&left, '\n'), bare = trim(text);
		bool is_mark = false;

		if (bare.n && bare.at[0] == '#') {
			if (IS(bare, "#APP") || STARTS(bare, "# Start of file scope inline assembly"))
				from_user = is_mark = true;
			else if (IS(bare, "#NO_APP") || STARTS(bare, "# End of file scope inline assembly"))
				from_user = false, is_mark = true;
			u->is_annotated |= STARTS(bare, "# %bb.") || STARTS(bare, "# -- ");
		}
		if (is_mark)
			new_line(u)->text = text;
		else if (from_user)
			add_user_line(u, text, &in_comment);
		else
			add_line(u, text);
	}
}

struct view operand(const struct line *l, unsigned which)
{
	struct view o = l->operands;
	size_t from = 0, i;
	int depth = 0;

	for (i = 0; i < o.n; i++) {
		if (o.at[i] == '(')
			depth++;
		else if (o.at[i] == ')')
			depth--;
		else if (o.at[i] == ',' && !depth) {
			if (!which--)
				break;
			from = i + 1;
		}
	}
	if (i == o.n && which)
		return (struct view){"", 0};
	return trim((struct view){o.at + from, i - from});
}

struct view last_operand(const struct line *l)
{
	struct view o = l->operands;
	size_t from = o.n;
	int depth = 0;

	while (from && (depth || o.at[from - 1] != ',')) {
		if (o.at[from - 1] == ')')
			depth++;
		else if (o.at[from - 1] == '(')
			depth--;
		from--;
	}
	return trim(skip(o, from));
}
