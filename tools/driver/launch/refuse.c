/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Code that cannot be instrumented is refused in one line that names the option and the remedy. A later option that
 * cancels an earlier option (-flto … -fno-lto) counts.
 */
#include "launch.h"

#include <string.h>

struct refusal {
	const char *option; /* ends in '*': any continuation */
	const char *undo;   /* the option that cancels it, if any */
	const char *but;    /* not refused if the option ends with this */
	const char *why;
};

#define TARGET "code for x86-64 Linux only can be instrumented: leave it out, or choose a contiguous policy"
#define BITCODE "bitcode was made without checks: compile its source instead"
#define LTO                                                                                                            \
	"what is compiled at link time does not pass Weft's assembler: leave it out for instrumented files (-fno-lto)"
#define PROFILE "its hook reads the caller's frame, which is not where it looks: leave it out, and profile with perf"
#define RETURNS "changes the return that a growing stack relies on: leave it out for instrumented files"
#define ENTRY "puts bytes where an instrumented function carries its mark: leave it out for instrumented files"
#define CALLS "hides where calls go: leave it out for instrumented files"
#define LAYOUT "tears functions apart behind Weft's assembler: leave it out for instrumented files"

static const struct refusal refusals[] = {
    {"-m32", "-m64", NULL, TARGET},
    {"-m16", "-m64", NULL, TARGET},
    {"-mx32", "-m64", NULL, TARGET},
    {"-miamcu", "-m64", NULL, TARGET},
#ifndef WEFT_CANARY_lto_is_not_refused
    {"-flto*", "-fno-lto", NULL, LTO},
#endif
    {"-fthinlto-index=*", NULL, NULL, LTO},
    {"-mcmodel=large", NULL, NULL,
     "calls through registers to anywhere hide what is called: leave it out, or use -mcmodel=medium"},
    {"-masm=intel", "-masm=att", NULL, "Weft's assembler reads AT&T syntax only: leave it out for instrumented files"},
    {"-mabi=ms", "-mabi=sysv", NULL, "another calling convention than Linux has: leave it out for instrumented files"},
    {"-pg", NULL, NULL, PROFILE},
    {"-p", NULL, NULL, PROFILE},
    {"-mfentry", "-mno-fentry", NULL, PROFILE},
    {"-fxray-instrument", "-fno-xray-instrument", NULL, ENTRY},
    {"-fpatchable-function-entry=*", NULL, "=0", ENTRY},
    {"-mfunction-return=*", NULL, "=keep", RETURNS},
    {"-mharden-sls=*", NULL, "=none", RETURNS},
    {"-mindirect-branch=*", NULL, "=keep", CALLS},
    {"-mretpoline*", NULL, NULL, CALLS},
    {"-mlvi-*", NULL, NULL, RETURNS},
    {"-mspeculative-load-hardening", "-mno-speculative-load-hardening", NULL,
     "keeps its state in the stack pointer: leave it out for instrumented files"},
    {"-fstack-check*", "-fno-stack-check", "=no",
     "touches the stack below what a chunk holds; the instrumentation is a stack check itself: leave it out"},
    {"-fsplit-machine-functions", "-fno-split-machine-functions", NULL, LAYOUT},
    {"-fbasic-block-sections=*", NULL, "=none", LAYOUT},
    {"-fno-split-stack", "-fsplit-stack", NULL,
     "a file without checks is compiled by the plain compiler; linked with the others, it runs on a large stack"},
    {"-fipa-ra", "-fno-ipa-ra", NULL, "lets callers rely on registers that a growing stack needs: leave it out"},
    {"-fintegrated-as", "-fno-integrated-as", NULL, "Weft's assembler would not see the code: leave it out"},
    {"-integrated-as", "-no-integrated-as", NULL, "Weft's assembler would not see the code: leave it out"},
    {"-fno-dwarf2-cfi-asm", "-fdwarf2-cfi-asm", NULL,
     "unwind tables made by the compiler do not know what Weft's assembler adds: leave it out"},
};

/* Sanitizers that only add calls, or nothing, to a function's code. All other sanitizers replace stacks or entries. */
static const char *const sanitizers[] = {
    "undefined",
    "alignment",
    "array-bounds",
    "bool",
    "bounds",
    "bounds-strict",
    "builtin",
    "enum",
    "float-*",
    "implicit-*",
    "integer",
    "integer-divide-by-zero",
    "leak",
    "local-bounds",
    "nonnull-attribute",
    "null",
    "nullability*",
    "object-size",
    "pointer-overflow",
    "return",
    "returns-nonnull-attribute",
    "shift*",
    "signed-integer-overflow",
    "unreachable",
    "unsigned-*",
    "vla-bound",
    "vptr",
};

static bool matches(const char *pattern, const char *word)
{
	size_t n = strlen(pattern);

	return n && pattern[n - 1] == '*' ? strncmp(pattern, word, n - 1) == 0 : strcmp(pattern, word) == 0;
}

/* The refused options that were given and not cancelled. */
struct found {
	const char *refusal[sizeof refusals / sizeof *refusals]; /* the option as written */
	char *sanitizer;
};

static bool is_harmless(const char *sanitizer)
{
	for (size_t i = 0; i < sizeof sanitizers / sizeof *sanitizers; i++)
		if (matches(sanitizers[i], sanitizer))
			return true;
	return false;
}

static void look_at_sanitizers(struct found *f, const char *list, bool on)
{
	char *copy = text("%s", list), *rest = copy, *one;

	while ((one = strsep(&rest, ","))) {
		if (on && !f->sanitizer && !is_harmless(one))
			f->sanitizer = one;
		else if (!on && f->sanitizer && (strcmp(one, "all") == 0 || strcmp(one, f->sanitizer) == 0))
			f->sanitizer = NULL;
	}
}

static void look_at(struct found *f, const char *word)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];

		if (matches(r->option, word))
			f->refusal[i] = r->but && ends(word, r->but) ? NULL : word;
		else if (r->undo && strcmp(r->undo, word) == 0)
			f->refusal[i] = NULL;
	}
	if (starts(word, "-fsanitize="))
		look_at_sanitizers(f, strchr(word, '=') + 1, true);
	else if (starts(word, "-fno-sanitize="))
		look_at_sanitizers(f, strchr(word, '=') + 1, false);
}

/* A target that an option names. Returns that it fits. */
static bool check_target(const char *target)
{
	bool x86_64 = starts(target, "x86_64") || starts(target, "amd64");

	if (!x86_64 || !strstr(target, "linux") || strstr(target, "x32"))
		die(EXIT_USAGE, "%s: %s", target, TARGET);
	return true;
}

/* clang writes names of files into comments, which end with their line. */
static void check_input(const struct compiler *c, const char *file)
{
	if (c->clang && strchr(file, '\n'))
		die(EXIT_USAGE,
		    "clang's assembly cannot hold the line break in a file's name: rename the file, or use gcc");
	if (ends(file, ".bc") || ends(file, ".ll"))
		die(EXIT_USAGE, "%s: " BITCODE, file);
}

void refuse(const struct compiler *c, char *const *args)
{
	struct found f = {0};
	bool fits = c->fits;

	for (int n; *args; args += n) {
		n = option_length(args);
		if (starts(*args, "--target="))
			fits = check_target(*args + strlen("--target="));
		else if (n == 2 && strcmp(*args, "-target") == 0)
			fits = check_target(args[1]);
		else if (n == 2 && strcmp(*args, "-x") == 0 && strcmp(args[1], "ir") == 0)
			die(EXIT_USAGE, "-x ir: " BITCODE);
		else if (**args != '-')
			check_input(c, *args);
		else
			look_at(&f, *args);
	}
	if (f.sanitizer)
		die(EXIT_USAGE,
		    "-fsanitize=%s: does not follow a stack of several parts: leave it out for instrumented "
		    "files, or choose a contiguous policy",
		    f.sanitizer);
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (f.refusal[i])
			die(EXIT_USAGE, "%s: %s", f.refusal[i], refusals[i].why);
	if (!fits)
		die(EXIT_USAGE, "%s: %s", c->target, TARGET);
}
