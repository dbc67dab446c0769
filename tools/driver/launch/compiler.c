/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Identifies a compiler and its target by its predefined macros. Asking costs 10 to 30 ms, so the answer is kept
 * in $XDG_CACHE_HOME/weft/compilers under a name made of the command, the file behind it, that file's size and time. A
 * build that cannot write there asks each time.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The file that execvp would take for `command`, in `path`. */
static bool find_in_path(const char *command, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(command, '/'))
		return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX && access(path, X_OK) == 0;
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dirs), dirs, command) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* FNV-1a: names a file in a cache, nothing more. */
static uint64_t hash(uint64_t h, const void *data, size_t n)
{
	for (const unsigned char *p = data; n--; p++)
		h = (h ^ *p) * 1099511628211u;
	return h;
}

static void make_directories(char *path)
{
	for (char *s = path + 1; *s; s++) {
		if (*s != '/')
			continue;
		*s = 0;
		mkdir(path, 0777);
		*s = '/';
	}
}

/* The file in which the answer is kept; NULL: nowhere. */
static char *cache_file(const char *command)
{
	const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
	char path[PATH_MAX], real[PATH_MAX];
	struct stat s;
	uint64_t h = 14695981039346656037u;

	if (((!cache || *cache != '/') && (!home || *home != '/')) || !find_in_path(command, path) ||
	    !realpath(path, real) || stat(real, &s) < 0)
		return NULL;
	h = hash(h, path, strlen(path) + 1);
	h = hash(h, real, strlen(real) + 1);
	h = hash(h, &s.st_size, sizeof s.st_size);
	h = hash(h, &s.st_mtim, sizeof s.st_mtim);
	if (cache && *cache == '/')
		return text("%s/weft/compilers/%016" PRIx64, cache, h);
	return text("%s/.cache/weft/compilers/%016" PRIx64, home, h);
}

static bool recall(const char *file, struct compiler *c)
{
	FILE *f = file ? fopen(file, "re") : NULL;
	int clang, fits, n = 0;

	if (!f)
		return false;
	n = fscanf(f, "weft1 %d %d %d %63s", &clang, &c->major, &fits, c->target);
	fclose(f);
	c->clang = clang;
	c->fits = fits;
	return n == 4;
}

/* The file is written aside and renamed, because other compilations may be reading it. */
static void remember(char *file, const struct compiler *c)
{
	char *aside = text("%s.%ld", file, (long)getpid());
	FILE *f;

	make_directories(file);
	if (!(f = fopen(aside, "we")))
		return;
	fprintf(f, "weft1 %d %d %d %s\n", c->clang, c->major, c->fits, c->target);
	if (fclose(f) != 0 || rename(aside, file) < 0)
		unlink(aside);
}

/* The output of `command` when asked for its predefined macros; NULL: it cannot print them. */
static char *ask(const char *command)
{
	int fds[2], status;
	pid_t child;
	FILE *f;
	char *answer;

	if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0)
		die(EXIT_BUG, "cannot run '%s': %s", command, strerror(errno));
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(fds[1], 1);
		dup2(null, 2);
		execlp(command, command, "-dM", "-E", "-x", "c", "-", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	f = fdopen(fds[0], "r");
	answer = f ? read_all(f, NULL) : NULL;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return NULL;
	if (WEXITSTATUS(status) == 127)
		die(EXIT_MISSING, "there is no compiler '%s'", command);
	return WEXITSTATUS(status) == 0 ? answer : NULL;
}

/* The value of a macro, NULL if it is not defined. */
static const char *macro(const char *macros, const char *name)
{
	char *line = text("#define %s ", name);
	const char *found = strstr(macros, line);

	return found ? found + strlen(line) : NULL;
}

static bool other_compiler(const char *macros)
{
	return macro(macros, "__TINYC__") || macro(macros, "__PGI") || macro(macros, "__INTEL_COMPILER") ||
	       macro(macros, "__SUNPRO_C");
}

static const char *architecture(const char *macros)
{
	static const char *const names[][2] = {
	    {"__x86_64__", "x86-64"},	 {"__i386__", "i386"},		 {"__aarch64__", "aarch64"},
	    {"__arm__", "arm"},		 {"__riscv", "riscv"},		 {"__powerpc__", "powerpc"},
	    {"__s390x__", "s390x"},	 {"__loongarch__", "loongarch"}, {"__mips__", "mips"},
	    {"__wasm__", "webassembly"},
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (macro(macros, names[i][0]))
			return names[i][1];
	return "another-processor";
}

struct compiler identify(const char *command)
{
	struct compiler c = {0};
	char *file = cache_file(command), *macros;
	const char *major, *system;

	if (recall(file, &c))
		return c;
	macros = ask(command);
	if (!macros || other_compiler(macros) || !macro(macros, "__GNUC__"))
		die(EXIT_MISSING,
		    "%s: is neither gcc nor clang, which alone can be instrumented: choose one of them "
		    "(WEFT_CC, WEFT_CXX), or a contiguous policy",
		    command);
	c.clang = (major = macro(macros, "__clang_major__")) != NULL;
	c.major = atoi(major ? major : macro(macros, "__GNUC__"));
	system = macro(macros, "__linux__") ? "linux" : "no-linux";
	c.fits = macro(macros, "__x86_64__") && macro(macros, "__LP64__") && macro(macros, "__linux__");
	snprintf(c.target, sizeof c.target, "%s-%s%s", architecture(macros), system,
		 macro(macros, "__x86_64__") && !macro(macros, "__LP64__") ? "-x32" : "");
	if (file)
		remember(file, &c);
	return c;
}
