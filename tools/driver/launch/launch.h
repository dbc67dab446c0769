/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft-launch: runs a compiler so that it produces code that can run on stacks of linked chunks.
 *
 *	weft-launch --instrument segmented|mmu|lookahead COMPILER ARGS…
 *
 * Design:
 *  1. Code that must not be instrumented is refused here, in one line, before anything is compiled (refuse.c): a
 *     compiler that silently emits no checks would give a program that silently corrupts memory.
 *  2. gcc gets the options, and is executed: it finds our assembler by -B.
 *  3. clang refuses to compile variadic functions with checks. It prints the jobs that it would run (-###); weft-launch
 *     runs these jobs, each code generation in two halves with the textual IR in between, where variadic functions lose
 *     the attribute (ir.c, clang.c). The assembler adds a check of its own kind. clang chooses the names of outputs,
 *     dependency files and temporary files.
 *  4. A link does not see -fsplit-stack, which would bring in the compiler's own run time.
 *  5. Look-ahead gives better results the more code it sees: objects carry the compiler's assembly, and the link of a
 *     program makes them anew, all together (link.c).
 *
 * Rejected: compiling the usual way first and again on failure (clang's back end ends with a crash report and leaves
 * files in /tmp; its messages must be held back to be judged); attributes in the source (the source belongs to the
 * user).
 */
#ifndef WEFT_LAUNCH_H
#define WEFT_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

enum { EXIT_USAGE = 2, EXIT_MISSING = 69, EXIT_BUG = 70 };

/* A growing, NULL-terminated list of strings. The strings live as long as the process. */
struct words {
	char **at;
	size_t n, room;
};

void words_add(struct words *w, const char *word);
void words_add_all(struct words *w, char *const *from);
char *join(const struct words *w);		       /* all words, one after the other */
void words_expand(struct words *w, char *const *from); /* from, with @files replaced by their contents */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *text(const char *format, ...) __attribute__((format(printf, 1, 2))); /* never freed */
char *read_all(FILE *f, size_t *length);				   /* NUL-terminated */
bool starts(const char *s, const char *prefix);
bool ends(const char *s, const char *suffix);

/* compiler.c: identifies a compiler. */
struct compiler {
	bool clang;
	int major;
	bool fits; /* makes code for x86-64 Linux with 64-bit pointers, if its options do not say otherwise */
	char target[64];
};

struct compiler identify(const char *command);

/* request.c: the work that a command line asks for. */
struct request {
	bool compiles;	 /* makes code from a source */
	bool links;	 /* makes a program or a shared library */
	bool undefined;	 /* checks for undefined behaviour */
	bool clash;	 /* -fstack-clash-protection: superfluous here, and its probes are in the way */
	bool verbose;	 /* -v */
	bool colour_set; /* the command line says whether messages are coloured */
};

/* The number of words of the option at `at`, itself included: one step over a command line. */
int option_length(char *const *at);
struct request understand(char *const *args);

/* refuse.c: ends the process if `args` ask for code that cannot be instrumented. */
void refuse(const struct compiler *c, char *const *args);

/* clang.c: returns the exit code. */
int clang_compile(const char *command, char *const *args, const struct request *r, const char *kind);

/* run.c: runs programs, one after the other; each returns an exit code. A signal to this process ends everything. */
extern char directory[]; /* made by make_directory; removed at the end, with the files in it */
void make_directory(void);
void make_subdirectory(const char *name); /* files only in it */
int run(char *const *argv);
int run_asking(char *const *argv, int fd); /* its standard error goes to fd, its temporary files into the directory */

/* link.c: runs a linker. For lookahead, objects that carry their assembly are made anew before, all together. */
bool is_linker(const char *program);
int link_objects(char *const *argv, const char *kind);

/* elf.c: calls `found` for each such section of an object, a program or an archive's members. False: no such file. */
typedef void section_fn(void *arg, const char *file, const char *bytes, size_t n);
bool find_sections(const char *file, const char *section, section_fn *found, void *arg);
/* The names that other objects can see, sorted, each on its own line; NULL: not an object. */
char *defined_symbols(const char *file);

/* report.c: `weft lookahead --explain`. */
int explain(char *const *files);

/* launch.c: the directory of this program; the directory with the `as` of a kind. */
char *own_directory(void);
char *assemblers(const char *kind);

/* ir.c: copies textual IR from `in` to `out`; variadic functions lose "split-stack", all other text is unchanged. */
bool filter_ir(FILE *in, FILE *out);

#endif /* WEFT_LAUNCH_H */
