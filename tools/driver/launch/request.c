/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads a compiler's command line, as far as needed to know its work. */
#include "launch.h"

#include <string.h>

/* Options of gcc and clang whose argument is a word of its own. */
static const char *const with_argument[] = {
#define OPTION(word) word,
#include "../options.def"
#undef OPTION
};

/* With these options no output reaches an assembler. */
static const char *const no_code[] = {
    "-E",	    "-M",	    "-MM",	  "-fsyntax-only",	 "--preprocess",  "--dependencies", "--analyze",
    "-emit-ast",    "-emit-llvm",   "-###",	  "--user-dependencies", "--precompile",  "--version",	    "--help",
    "-dumpversion", "-dumpmachine", "-dumpspecs", "-dumpfullversion",	 "--target-help",
};

/* With these options no program is linked. */
static const char *const no_link[] = {"-c", "-S", "-r", "--compile", "--assemble", "--relocatable", "-Wl,-r"};

static const char *const code_endings[] = {
    ".c", ".i",	 ".ii", ".cc", ".cp",  ".cxx",	".cpp", ".CPP", ".c++", ".C",
    ".m", ".mi", ".mm", ".M",  ".mii", ".cppm", ".ixx", ".s",	".S",	".sx",
};

#define IN_LIST(list, word) in_list(list, sizeof(list) / sizeof *(list), word)

static bool in_list(const char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], word) == 0)
			return true;
	return false;
}

int option_length(char *const *at)
{
	return IN_LIST(with_argument, at[0]) && at[1] ? 2 : 1;
}

/* Does a file become code? By `language` if -x gave a language, else by the end of its name. */
static bool becomes_code(const char *file, const char *language)
{
	if (language)
		return strstr(language, "-header") == NULL;
	for (size_t i = 0; i < sizeof code_endings / sizeof *code_endings; i++)
		if (ends(file, code_endings[i]))
			return true;
	return false;
}

static void option(struct request *r, const char *word, bool *quiet)
{
	if (IN_LIST(no_code, word) || starts(word, "-print-") || starts(word, "--print-") || starts(word, "--help="))
		*quiet = true;
	else if (IN_LIST(no_link, word))
		r->links = false;
	else if (strcmp(word, "-v") == 0)
		r->verbose = true;
	else if (starts(word, "-fcolor-diag") || starts(word, "-fdiagnostics-color") ||
		 starts(word, "-fno-color-diag") || starts(word, "-fno-diagnostics-color"))
		r->colour_set = true;
	else if (strcmp(word, "-fstack-clash-protection") == 0)
		r->clash = true;
	else if (starts(word, "-fsanitize=") && strstr(word, "undefined"))
		r->undefined = true;
}

struct request understand(char *const *args)
{
	struct request r = {.links = true};
	const char *language = NULL;
	bool quiet = false, inputs = false;

	for (int n; *args; args += n) {
		n = option_length(args);
		if (starts(*args, "-x"))
			language = n == 2 ? args[1] : *args + 2;
		else if (**args == '-' && (*args)[1])
			option(&r, *args, &quiet);
		else {
			inputs = true;
			r.compiles |= becomes_code(*args, language);
		}
		if (language && strcmp(language, "none") == 0)
			language = NULL;
	}
	r.compiles = r.compiles && !quiet;
	r.links = r.links && inputs && !quiet;
	return r;
}
