/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The link of a program. Two things are done to the linker's command line:
 *  1. --wrap=pthread_create, which compilers add for -fsplit-stack, is removed.
 *  2. Look-ahead for the whole program. An object made for it carries the compiler's assembly:
 *
 *	section .weft.assembly:  weft-assembly LENGTH ARG\037ARG…\n  LENGTH bytes
 *
 *     weft-as transforms the assembly of all such objects at once, and so sees every call between them; the objects
 *     made from its output are linked in their place. An object that was changed after it was made (objcopy, ld -r)
 *     would lose the change: it is recognised by the names that it defines, and is used unchanged. So are members
 *     of archives, because it is not known before the link which members the program takes.
 */
#include "launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An object of the link, and its source text. */
struct unit {
	const char *object;
	size_t argument;	/* its index among the linker's arguments */
	size_t texts;		/* how many texts it carries: several if ld -r has joined objects */
	char *assembly, *again; /* files: the text that it carries, and the new object */
	struct words options;	/* for the assembler */
	const char *bound;	/* from -Wa,--weft-bound=N of its compilation */
};

bool is_linker(const char *program)
{
	const char *name = strrchr(program, '/');

	name = name ? name + 1 : program;
	return strcmp(name, "collect2") == 0 || strcmp(name, "ld") == 0 || starts(name, "ld.") || ends(name, "-ld") ||
	       strcmp(name, "mold") == 0;
}

/* Splits "LENGTH ARG\037ARG…" into the options. Returns the length. */
static size_t read_header(struct unit *u, const char *header, size_t n)
{
	char *copy = text("%.*s", (int)n, header), *rest, *option;
	size_t length = strtoul(copy, &rest, 10);

	rest += *rest == ' ';
	while ((option = strsep(&rest, "\037"))) {
		if (starts(option, "--weft-bound="))
			u->bound = strchr(option, '=') + 1;
		else if (*option)
			words_add(&u->options, option);
	}
	return length;
}

static void write_file(const char *name, const char *bytes, size_t n)
{
	FILE *f = fopen(name, "we");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		die(EXIT_BUG, "cannot write to %s: %s", directory, strerror(errno));
}

static void take_assembly(void *arg, const char *file, const char *bytes, size_t n)
{
	static const char mark[] = "weft-assembly ";
	struct unit *u = arg;
	const char *end = memchr(bytes, '\n', n);
	size_t header = sizeof mark - 1, length;

	(void)file;
	u->texts++;
	if (u->texts > 1 || n <= header || memcmp(bytes, mark, header) != 0 || !end)
		return;
	length = read_header(u, bytes + header, (size_t)(end - bytes) - header);
	end++;
	/* The section has more than one text, or less than its length says. */
	if (length != n - (size_t)(end - bytes)) {
		u->texts++;
		return;
	}
	write_file(u->assembly, end, length);
}

/* The objects among a linker's arguments that can be made again. */
static size_t find_units(char *const *argv, struct unit **units)
{
	size_t n = 0;

	*units = NULL;
	for (size_t i = 1; argv[i]; i++) {
		struct unit u = {.object = argv[i], .argument = i};

		if (argv[i][0] == '-' || !ends(argv[i], "o") || strcmp(argv[i - 1], "-o") == 0)
			continue;
		u.assembly = text("%s/%zu.s", directory, n);
		u.again = text("%s/%zu.o", directory, n);
		if (!find_sections(argv[i], ".weft.assembly", take_assembly, &u) || u.texts != 1)
			continue;
		*units = realloc(*units, (n + 1) * sizeof u);
		if (!*units)
			die(EXIT_BUG, "out of memory");
		(*units)[n++] = u;
	}
	return n;
}

/* The smallest of the bounds in their compilations; NULL: no compilation gave a bound. */
static const char *smallest_bound(const struct unit *units, size_t n)
{
	const char *least = NULL;

	for (size_t i = 0; i < n; i++)
		if (units[i].bound && (!least || strtoul(units[i].bound, NULL, 10) < strtoul(least, NULL, 10)))
			least = units[i].bound;
	return least;
}

/* Runs weft-as on all units; it writes each changed text, under its old name, into the directory `changed`. */
static int transform(const struct unit *units, size_t n, const char *changed)
{
	const char *bound = smallest_bound(units, n);
	struct words w = {0};

	words_add(&w, text("%s/weft-as", own_directory()));
	words_add(&w, "lookahead");
	if (bound) {
		words_add(&w, "--bound");
		words_add(&w, bound);
	}
	for (size_t i = 0; i < n; i++)
		if (units[i].assembly)
			words_add(&w, units[i].assembly);
	words_add(&w, "-d");
	words_add(&w, changed);
	return run(w.at);
}

static int assemble(const struct unit *u, const char *changed)
{
	const char *as = getenv("WEFT_AS"), *name = strrchr(u->assembly, '/');
	struct words w = {0};

	words_add(&w, as && *as ? as : "as");
	words_add_all(&w, u->options.at ? u->options.at : (char *[]){NULL});
	words_add(&w, "-o");
	words_add(&w, u->again);
	words_add(&w, text("%s%s", changed, name));
	return run(w.at);
}

/* Does the new object define the same names as the old object? */
static bool same_names(const struct unit *u)
{
	char *before = defined_symbols(u->object), *after = defined_symbols(u->again);

	return before && after && strcmp(before, after) == 0;
}

/* Makes all units again, together. Returns an exit code; *strangers: the number of objects that were changed since
 * they were made. */
static int make_again(struct unit *units, size_t n, const char *changed, size_t *strangers)
{
	int code = transform(units, n, changed);

	*strangers = 0;
	for (size_t i = 0; i < n && code == 0; i++) {
		if (!units[i].assembly)
			continue;
		code = assemble(&units[i], changed);
		if (code == 0 && !same_names(&units[i])) {
			units[i].assembly = NULL;
			++*strangers;
		}
	}
	return code;
}

static size_t count(const struct unit *units, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		left += units[i].assembly != NULL;
	return left;
}

/* Replaces objects in the linker's arguments. A single object has already been seen whole. */
static int look_ahead(struct words *w)
{
	char *changed;
	struct unit *units;
	size_t n, strangers = 1;
	int code = 0;

	make_directory();
	changed = text("%s/whole", directory);
	n = find_units(w->at, &units);
	if (n > 1)
		make_subdirectory("whole");
	while (strangers && code == 0 && count(units, n) > 1)
		code = make_again(units, n, changed, &strangers);
	if (count(units, n) > 1 && code == 0)
		for (size_t i = 0; i < n; i++)
			if (units[i].assembly)
				w->at[units[i].argument] = units[i].again;
	return code;
}

int link_objects(char *const *argv, const char *kind)
{
	struct words all = {0}, w = {0};
	bool wrapped = false;
	int code = 0;

	words_expand(&all, argv);
	for (size_t i = 0; i < all.n; i++) {
		if (!wrapped && strcmp(all.at[i], "--wrap=pthread_create") == 0)
			wrapped = true;
		else
			words_add(&w, all.at[i]);
	}
	if (strcmp(kind, "lookahead") == 0)
		code = look_ahead(&w);
	return code ? code : run(w.at);
}
