/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * clang: `clang -###` prints the jobs of a command line, a line each; weft-launch runs these jobs.
 *
 *	clang -cc1 … -S … -o t.s -x c a.c	→	clang -cc1 … -emit-llvm … -o 0.ll -x c a.c
 *							filter_ir: 0.ll → 1.ll
 *							clang -cc1 … -S … -disable-llvm-passes … -o t.s -x ir 1.ll
 *	as … -o a.o t.s					unchanged: our assembler, found by -B
 *	ld … -o a …					as in link.c
 *
 * All temporary files, also clang's, are in one directory, which is removed afterwards.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Adds options for a fact that -### does not know: messages go to a terminal. */
static void add_terminal_options(struct words *w, const struct request *r)
{
	const char *term = getenv("TERM");
	struct winsize size;

	if (r->colour_set || !isatty(2) || !term || strcmp(term, "dumb") == 0)
		return;
	words_add(w, "-fcolor-diagnostics");
	if (ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col)
		words_add(w, text("-fmessage-length=%d", size.ws_col));
}

static void command_line(struct words *w, const char *command, char *const *args, const struct request *r,
			 const char *as_directory)
{
	words_add(w, command);
	words_add(w, "-###");
	add_terminal_options(w, r);
	if (r->compiles) {
		words_add(w, "--start-no-unused-arguments");
		words_add(w, text("-B%s/", as_directory));
		words_add(w, "-fsplit-stack");
		words_add(w, "-fno-integrated-as");
		words_add(w, "-fno-stack-clash-protection");
		words_add(w, "-DWEFT_SMALL_FRAMES");
		words_add(w, "--end-no-unused-arguments");
	}
	words_add_all(w, args);
	if (r->clash)
		words_add(w, "-fno-stack-clash-protection");
	/* Among the checks for undefined behaviour, -fsanitize=function puts data before each function, in the place
	 * of the mark. */
	if (r->undefined)
		words_add(w, "-fno-sanitize=function");
}

/* The next word of a line of -###, unquoted in place; NULL at the line's end. */
static char *next_quoted(char **at)
{
	char *in = *at, *out, *word;

	while (*in == ' ')
		in++;
	if (*in != '"')
		return NULL;
	for (word = out = ++in; *in && *in != '"'; in++) {
		if (*in == '\\' && in[1])
			in++;
		*out++ = *in;
	}
	*at = *in ? in + 1 : in;
	*out = 0;
	return word;
}

/* Prints the compiler's messages about its options; its version and directories only under -v. Returns whether
 * there was an error, because clang 16 exits with 0 then. */
static bool pass_on(const char *line, size_t n, bool everything)
{
	char *copy = text("%.*s", (int)n, line);
	bool error = strstr(copy, "error: ");

	if (everything || error || strstr(copy, "warning: ") || strstr(copy, "note: "))
		fprintf(stderr, "%s\n", copy);
	free(copy);
	return error;
}

/* Takes the answer of -### apart. A quoted word may hold newlines. */
static size_t parse(char *answer, struct words **jobs, bool verbose, int *code)
{
	size_t n = 0;

	*jobs = NULL;
	while (*answer) {
		if (starts(answer, " \"")) {
			char *word;

			*jobs = realloc(*jobs, (n + 1) * sizeof **jobs);
			if (!*jobs)
				die(EXIT_BUG, "out of memory");
			(*jobs)[n] = (struct words){0};
			while ((word = next_quoted(&answer)))
				words_add(&(*jobs)[n], word);
			n++;
		} else if (pass_on(answer, strcspn(answer, "\n"), verbose) && !*code) {
			*code = 1;
		}
		answer += strcspn(answer, "\n");
		answer += *answer == '\n';
	}
	return n;
}

static size_t find(const struct words *job, const char *word)
{
	for (size_t i = 1; i < job->n; i++)
		if (strcmp(job->at[i], word) == 0)
			return i;
	return 0;
}

/* The file that a job makes. */
static const char *output(const struct words *job)
{
	size_t i = find(job, "-o");

	return i && i + 1 < job->n ? job->at[i + 1] : NULL;
}

/* Options by which the second half would write the same files as the first half again. */
static bool writes_beside(const char *word)
{
	return strcmp(word, "-dependency-file") == 0 || strcmp(word, "-header-include-file") == 0 ||
	       strcmp(word, "-serialize-diagnostic-file") == 0 || strcmp(word, "-opt-record-file") == 0;
}

/*
 * The first half of a code generation: from the source into IR. Blocks keep their names. A block without a name cannot
 * be referred to in text once its function is complete, but other functions may use the addresses of labels after
 * inlining.
 */
static struct words first_half(const struct words *job, const char *ir)
{
	struct words w = {0};

	for (size_t i = 0; i < job->n; i++) {
#ifndef WEFT_CANARY_labels_lose_their_names
		if (strcmp(job->at[i], "-discard-value-names") == 0)
			continue;
#endif
		if (strcmp(job->at[i], "-S") == 0) {
			words_add(&w, "-emit-llvm");
		} else if (strcmp(job->at[i], "-o") == 0) {
			words_add(&w, "-o");
			words_add(&w, ir);
			i++;
		} else {
			words_add(&w, job->at[i]);
		}
	}
	return w;
}

/* The second half: from IR, already optimized. `-x language file` are the last words of the job. */
static struct words second_half(const struct words *job, const char *ir)
{
	struct words w = {0};
	size_t language = find(job, "-x");

	for (size_t i = 0; i < job->n; i++) {
		if (i == language) {
			words_add(&w, "-disable-llvm-passes");
			words_add(&w, "-x");
			words_add(&w, "ir");
			words_add(&w, ir);
			i += 2;
		} else if (writes_beside(job->at[i])) {
			i++;
		} else if (!starts(job->at[i], "-ftime-trace")) {
			words_add(&w, job->at[i]);
		}
	}
	return w;
}

static void filter_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");

	if (!in || !out || !filter_ir(in, out) || fclose(out) != 0)
		die(EXIT_BUG, "cannot write to %s: %s", directory, strerror(errno));
	fclose(in);
	unlink(from);
}

static int generate_code(const struct words *job, size_t number)
{
	char *raw = text("%s/%zu.ll", directory, 2 * number), *filtered = text("%s/%zu.ll", directory, 2 * number + 1);
	struct words first = first_half(job, raw), second = second_half(job, filtered);
	int code = run(first.at);

	if (code == 0) {
		filter_file(raw, filtered);
		code = run(second.at);
		unlink(filtered);
	}
	return code;
}

/* If an assembler or a linker fails, a line of the compiler follows. */
static int run_tool(const struct words *job, const char *command, const char *kind)
{
	const char *name = strrchr(command, '/');
	bool links = is_linker(job->at[0]);
	int code = links ? link_objects(job->at, kind) : run(job->at);

	if (code)
		fprintf(stderr, "%s: error: %s command failed with exit code %d\n", name ? name + 1 : command,
			links ? "linker" : "assembler", code);
	return code;
}

static int run_job(const struct words *job, size_t number, const char *command, const char *kind)
{
	if (job->n < 2 || strcmp(job->at[1], "-cc1") != 0)
		return run_tool(job, command, kind);
	if (find(job, "-S") && find(job, "-x") && !find(job, "-emit-llvm"))
		return generate_code(job, number);
	return run(job->at);
}

/* Removes the file that a failed job may have made; not /dev/null. */
static void remove_output(const char *file)
{
	struct stat s;

#ifdef WEFT_CANARY_outputs_of_failed_jobs_stay
	return;
#endif
	if (lstat(file, &s) == 0 && S_ISREG(s.st_mode))
		unlink(file);
}

/* Does the job need a file that a failed job should have made? */
static bool needs_any(const struct words *job, const struct words *missing)
{
	for (size_t i = 0; i < missing->n; i++)
		if (find(job, missing->at[i]))
			return true;
	return false;
}

/* If a file fails, the other files are still compiled, as by clang. */
static int run_jobs(const struct words *jobs, size_t n, const char *command, const char *kind, bool verbose)
{
	struct words missing = {0};
	int worst = 0;

	for (size_t i = 0; i < n; i++) {
		const char *made = output(&jobs[i]);
		int code = 1;

		if (!needs_any(&jobs[i], &missing)) {
			for (size_t k = 0; verbose && k < jobs[i].n; k++)
				fprintf(stderr, " \"%s\"%s", jobs[i].at[k], k + 1 < jobs[i].n ? "" : "\n");
			code = run_job(&jobs[i], i, command, kind);
			worst = code > worst ? code : worst;
		}
		if (code && made) {
			words_add(&missing, made);
			remove_output(made);
		}
	}
	return worst;
}

/* Asks clang for the jobs that it would run; NULL if it refuses, after passing on its message. */
static char *ask_for_jobs(const struct words *command, int *code)
{
	char *name = text("%s/jobs", directory), *answer;
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f)
		die(EXIT_BUG, "cannot write to %s: %s", directory, strerror(errno));
	*code = run_asking(command->at, fd);
	rewind(f);
	answer = read_all(f, NULL);
	fclose(f);
	return answer;
}

int clang_compile(const char *command, char *const *args, const struct request *r, const char *kind)
{
	struct words line = {0}, *jobs;
	char *answer;
	size_t n;
	int code;

	make_directory();
	command_line(&line, command, args, r, assemblers(kind));
	answer = ask_for_jobs(&line, &code);
	n = parse(answer, &jobs, r->verbose, &code);
	return code ? code : run_jobs(jobs, n, command, kind, r->verbose);
}
