/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft-launch: the command line; see launch.h. */
#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"segmented", "mmu", "lookahead"};

/* The directory of this program, which holds a directory with an `as` for each kind. */
char *own_directory(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

	if (n <= 0)
		die(EXIT_BUG, "cannot read /proc/self/exe: %s", strerror(errno));
	path[n] = 0;
	*strrchr(path, '/') = 0;
	return text("%s", path);
}

static void check_kind(const char *kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kind, kinds[i]) == 0)
			return;
	die(EXIT_USAGE, "unknown instrumentation '%s': there are segmented, mmu, lookahead", kind);
}

char *assemblers(const char *kind)
{
	char *dir = text("%s/%s", own_directory(), kind), *as = text("%s/as", dir);

	if (access(as, X_OK) < 0)
		die(EXIT_MISSING, "there is no %s: the installation is not complete", as);
	return dir;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A command in front of the compiler: a cache, which passes the options on. Commands that compile elsewhere find
 * another `as`. */
static bool is_cache(const char *command)
{
	const char *name = last_part(command);

	if (strcmp(name, "distcc") == 0 || strcmp(name, "icecc") == 0)
		die(EXIT_USAGE, "%s: the other machine's assembler is not Weft's: compile instrumented files here",
		    name);
	return strcmp(name, "ccache") == 0 || strcmp(name, "sccache") == 0;
}

/* A cache must not return code that an earlier assembler made, so it depends on the assembler. */
static void depend_on_assembler(const char *dir)
{
	const char *before = getenv("CCACHE_EXTRAFILES");
	char *files = before && *before ? text("%s:%s/as", before, dir) : text("%s/as", dir);

	setenv("CCACHE_EXTRAFILES", files, 1);
}

static _Noreturn void become(char *const *argv)
{
	execvp(argv[0], argv);
	die(EXIT_MISSING, "there is no compiler '%s'", argv[0]);
}

/* gcc runs our --link instead of its linker. gcc's syntax separates words by commas. */
static void wrap_linker(struct words *w, const char *kind)
{
	char *self = own_directory();

	if (strchr(self, ','))
		return;
	words_add(w, "-wrapper");
	words_add(w, text("%s/weft-launch,--link,%s", self, kind));
}

static _Noreturn void become_gcc(char *const *command, size_t words, const struct request *r, const char *kind)
{
	struct words w = {0};

	for (size_t i = 0; i < words; i++)
		words_add(&w, command[i]);
	if (r->compiles) {
		words_add(&w, text("-B%s/", assemblers(kind)));
		words_add(&w, "-fsplit-stack");
		words_add(&w, "-fno-ipa-ra");
		words_add(&w, "-dp");
		words_add(&w, "-fno-stack-clash-protection");
		words_add(&w, "-DWEFT_SMALL_FRAMES");
		depend_on_assembler(assemblers(kind));
	}
	if (r->links)
		wrap_linker(&w, kind);
	words_add_all(&w, command + words);
	if (r->clash)
		words_add(&w, "-fno-stack-clash-protection");
	become(w.at);
}

static int launch(const char *kind, char *const *command)
{
	size_t words = is_cache(command[0]) && command[1] ? 2 : 1;
	struct words args = {0};
	struct request r;
	struct compiler c;

	check_kind(kind);
	words_expand(&args, command + words);
	if (!args.n)
		become(command);
	r = understand(args.at);
	if (!r.compiles && !(r.links && strcmp(kind, "lookahead") == 0))
		become(command);
	c = identify(command[words - 1]);
	if (r.compiles)
		refuse(&c, args.at);
	if (!c.clang)
		become_gcc(command, words, &r, kind);
	return clang_compile(command[words - 1], command + words, &r, kind);
}

/* Runs in place of a program of gcc. */
static int link_or_become(const char *kind, char *const *job)
{
	if (!is_linker(job[0]))
		become(job);
	return link_objects(job, kind);
}

int main(int argc, char **argv)
{
	(void)argc;
	if (argv[1] && strcmp(argv[1], "--filter-ir") == 0)
		return filter_ir(stdin, stdout) ? 0 : 1;
	if (argv[1] && strcmp(argv[1], "--explain") == 0 && argv[2])
		return explain(argv + 2);
	if (argv[1] && strcmp(argv[1], "--link") == 0 && argv[2] && argv[3])
		return link_or_become(argv[2], argv + 3);
	if (!argv[1] || strcmp(argv[1], "--instrument") != 0 || !argv[2] || !argv[3])
		die(EXIT_USAGE, "usage: weft-launch --instrument segmented|mmu|lookahead COMPILER ARGS…");
	return launch(argv[2], argv + 3);
}
