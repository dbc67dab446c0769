/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft-as: README.md describes its interface. When run as `as`, it writes the changed text to an anonymous file and
 * becomes the real assembler, with that file in the place of the input: there is no temporary file and no child to wait
 * for.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	enum policy policy;
	int64_t bound;
	const char *explain;
	struct buffer needs; /* from --weft-needs, as comments */
	const char *out, *directory;
	const char **inputs;
	size_t input_count;
};

__attribute__((noreturn, format(printf, 1, 2))) static void stop(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("weft-as: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static struct view read_file(const char *path)
{
	int fd = strcmp(path, "-") == 0 ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	struct buffer all = {0};
	struct stat about;
	ssize_t n;

	if (fd < 0 || fstat(fd, &about))
		stop("%s: %s", path, strerror(errno));
	all.at = grow(all.at, &all.room, (size_t)about.st_size + 65536, 1);
	while ((n = read(fd, all.at + all.n, all.room - all.n)) != 0) {
		if (n < 0 && errno != EINTR)
			stop("%s: %s", path, strerror(errno));
		all.n += n > 0 ? (size_t)n : 0;
		if (all.room - all.n < 32768)
			all.at = grow(all.at, &all.room, all.room + 1, 1);
	}
	if (fd)
		close(fd);
	return (struct view){all.at, all.n};
}

static void write_all(int fd, const char *path, struct view text)
{
	while (text.n) {
		ssize_t n = write(fd, text.at, text.n);

		if (n < 0 && errno != EINTR)
			stop("%s: %s", path, strerror(errno));
		text = skip(text, n > 0 ? (size_t)n : 0);
	}
}

static void write_file(const char *path, struct view text)
{
	int fd = strcmp(path, "-") == 0 ? 1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		stop("%s: %s", path, strerror(errno));
	write_all(fd, path, text);
	if (fd != 1 && close(fd))
		stop("%s: %s", path, strerror(errno));
}

/* ---- transforming ----------------------------------------------------------------------------------------------- */

/* Converts a user's list to comments. The list has a line for each function, its name and bytes, and comments after
 * a '#'. */
static void read_needs(struct request *r, const char *path)
{
	struct view text = read_file(path);

	for (int at = 1; text.n; at++) {
		struct view line = cut(&text, '\n'), name;
		int64_t bytes;

		line = trim(cut(&line, '#'));
		if (!line.n)
			continue;
		if (!split_need(line, &name, &bytes))
			stop("%s:%d: '%.*s': give a function's name and the bytes of stack that it needs, %d at most; "
			     "what needs "
			     "more runs on a system stack",
			     path, at, SHOW(line), ROOM_BYTES);
		print(&r->needs, "#weft-needs %.*s %lld\n", SHOW(name), (long long)bytes);
	}
}

static struct unit *new_unit(const struct request *r, const char *path)
{
	struct unit *u = keep(sizeof *u);
	struct view wrong;

	u->path = path;
	u->policy = r->policy;
	u->bound = r->bound;
	u->text = read_file(path);
	if (r->needs.n) {
		struct buffer all = {0};

		append(&all, r->needs.at, r->needs.n);
		append(&all, u->text.at, u->text.n);
		u->text = (struct view){all.at, all.n};
	}
	if (!learn_needs(u->text, &wrong))
		stop("%s: WEFT_NEEDS says '%.*s': give a function's name and the bytes of stack that it needs, %d at "
		     "most; what "
		     "needs more runs on a system stack",
		     path, SHOW(wrong), ROOM_BYTES);
	return u;
}

/* Returns the texts of all inputs: changed, or unchanged if they need no change. The original texts go to
 * *originals. */
static struct view *transform_all(const struct request *r, struct view *originals)
{
	struct view *texts = keep(r->input_count * sizeof *texts);
	struct unit **units = keep(r->input_count * sizeof *units), *u;
	size_t count = 0, *which = keep(r->input_count * sizeof *which);

	for (size_t i = 0; i < r->input_count; i++) {
		u = new_unit(r, r->inputs[i]);
		texts[i] = originals[i] = u->text;
		if (analyse(u)) {
			which[count] = i;
			units[count++] = u;
		}
	}
	transform(units, count);
	for (size_t i = 0; i < count; i++) {
		struct buffer to = {0};

		write_text(units[i], &to);
		texts[which[i]] = (struct view){to.at, to.n};
	}
	if (r->explain) {
		struct buffer report = {0};

		for (size_t i = 0; i < count; i++)
			append(&report, units[i]->report.at ? units[i]->report.at : "", units[i]->report.n);
		write_file(r->explain, (struct view){report.at ? report.at : "", report.n});
	}
	return texts;
}

static bool policy_named(const char *name, enum policy *policy)
{
	static const char *const names[] = {[SEGMENTED] = "segmented", [MMU] = "mmu", [LOOKAHEAD] = "lookahead"};

	for (int i = SEGMENTED; i <= LOOKAHEAD; i++) {
		if (strcmp(name, names[i]) == 0) {
			*policy = (enum policy)i;
			return true;
		}
	}
	return false;
}

static int64_t bound_of(const char *text)
{
	int64_t n;

	if (!number((struct view){text, strlen(text)}, &n) || n < 256 || n > 1 << 20)
		stop("bound '%s': give a number of bytes, 256 to 1048576", text);
	return n;
}

/* ---- run under its own name ------------------------------------------------------------------------------------- */

static const char *usage =
    "usage: weft-as segmented|mmu|lookahead IN.s… -o OUT.s | -d DIR [--bound N] [--explain FILE] [--needs FILE]";

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int run_alone(struct request *r, int argc, char **argv)
{
	struct view *texts;

	for (int i = 2; i < argc; i++) {
		bool has_value = i + 1 < argc;

		if (strcmp(argv[i], "-o") == 0 && has_value)
			r->out = argv[++i];
		else if (strcmp(argv[i], "-d") == 0 && has_value)
			r->directory = argv[++i];
		else if (strcmp(argv[i], "--bound") == 0 && has_value)
			r->bound = bound_of(argv[++i]);
		else if (strcmp(argv[i], "--explain") == 0 && has_value)
			r->explain = argv[++i];
		else if (strcmp(argv[i], "--needs") == 0 && has_value)
			read_needs(r, argv[++i]);
		else if (argv[i][0] == '-' && argv[i][1])
			stop("unknown option '%s'; %s", argv[i], usage);
		else
			r->inputs[r->input_count++] = argv[i];
	}
	if (!r->input_count || !r->out == !r->directory || (r->out && r->input_count != 1))
		stop("%s", usage);
	texts = transform_all(r, keep(r->input_count * sizeof *texts));
	for (size_t i = 0; i < r->input_count; i++)
		write_file(r->out ? r->out : say("%s/%s", r->directory, base_name(r->inputs[i])), texts[i]);
	return 0;
}

/* ---- run in place of the assembler ------------------------------------------------------------------------------ */

static bool is_self(const char *path)
{
	struct stat self, other;

	return !stat("/proc/self/exe", &self) && !stat(path, &other) && self.st_dev == other.st_dev &&
	       self.st_ino == other.st_ino;
}

/* A directory named like a policy may hold a copy of this program, which is not the real assembler either. */
static bool is_policy_directory(struct view directory)
{
	const char *slash = memrchr(directory.at, '/', directory.n);
	struct view last = slash ? skip(directory, (size_t)(slash + 1 - directory.at)) : directory;

	return IS(last, "segmented") || IS(last, "mmu") || IS(last, "lookahead");
}

static const char *real_as(void)
{
	const char *name = getenv("WEFT_AS"), *path = getenv("PATH");
	struct view left;

	if (name && *name) {
		if (is_self(name))
			stop("WEFT_AS is weft-as itself: let it name the real assembler");
		return name;
	}
	path = path ? path : "/usr/local/bin:/usr/bin:/bin";
	left = (struct view){path, strlen(path)};
	while (left.n) {
		struct view directory = cut(&left, ':');
		const char *candidate = say("%.*s/as", SHOW(directory));

		if (directory.n && !is_policy_directory(directory) && access(candidate, X_OK) == 0 &&
		    !is_self(candidate))
			return candidate;
	}
	stop("no assembler in PATH: install binutils, or name it in WEFT_AS");
}

__attribute__((noreturn)) static void become_as(char **argv)
{
	const char *path = real_as();

	argv[0] = say("%s", path);
	execv(path, argv);
	stop("%s: %s", path, strerror(errno));
}

static bool takes_value(const char *option)
{
	static const char *const with[] = {"-o", "-I", "-D", "--defsym", "-defsym", "--MD", "--debug-prefix-map"};

	for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
		if (strcmp(option, with[i]) == 0)
			return true;
	}
	return false;
}

/* Returns the value of the option "--weft-NAME=VALUE", or NULL. */
static const char *our_option(const char *argument, const char *name)
{
	size_t n = strlen(name);

	return strncmp(argument, name, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static bool take_option(struct request *r, const char *argument)
{
	const char *value;

	if ((value = our_option(argument, "--weft-policy"))) {
		if (!policy_named(value, &r->policy))
			stop("no policy '%s': segmented, mmu or lookahead", value);
	} else if ((value = our_option(argument, "--weft-bound"))) {
		r->bound = bound_of(value);
	} else if ((value = our_option(argument, "--weft-explain"))) {
		r->explain = value;
	} else if ((value = our_option(argument, "--weft-needs"))) {
		read_needs(r, value);
	} else {
		return false;
	}
	return true;
}

static char *anonymous_file(struct view text)
{
	int fd = memfd_create("weft-as", 0);

	if (fd < 0)
		stop("memfd_create: %s", strerror(errno));
	write_all(fd, "memory", text);
	lseek(fd, 0, SEEK_SET);
	return say("/proc/self/fd/%d", fd);
}

static void print_quoted(struct buffer *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			print(to, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			print(to, "\\%03o", (unsigned char)*text);
		else
			append(to, text, 1);
	}
}

/*
 * Look-ahead over the whole program happens when it is linked, so the object carries the compiler's text and the
 * options to assemble it with. Linkers leave the section out of programs.
 */
static struct view with_original(struct view changed, struct view original, const char *path, char **options)
{
	struct buffer to = {0};

	append(&to, changed.at, changed.n);
	print(&to, "\t.section\t.weft.assembly,\"e\",@progbits\n\t.ascii\t\"weft-assembly %zu ", original.n);
	for (size_t i = 0; options[i]; i++) {
		if (i)
			print(&to, "\\037");
		print_quoted(&to, options[i]);
	}
	print(&to, "\\n\"\n\t.incbin\t\"");
	print_quoted(&to, strcmp(path, "-") == 0 ? anonymous_file(original) : path);
	print(&to, "\"\n");
	return (struct view){to.at, to.n};
}

/* The arguments of the real assembler; the input's index in them; its options alone. */
struct arguments {
	char **all, **options;
	int count, input, option_count;
	bool only_asks;
};

static void sort_argument(struct request *r, struct arguments *a, char *text, char *value)
{
	a->only_asks |= strcmp(text, "--version") == 0 || strcmp(text, "--help") == 0;
	if (strcmp(text, "--32") == 0 || strcmp(text, "--x32") == 0)
		stop("only 64-bit x86 code can be instrumented: drop -m32 or -mx32");
	if (text[0] != '-' || !text[1] || strcmp(text, "--") == 0) {
		r->inputs[r->input_count++] = text;
		a->input = a->input ? a->input : a->count;
	} else if (strncmp(text, "-o", 2) != 0) {
		a->options[a->option_count++] = text;
		if (value)
			a->options[a->option_count++] = value;
	}
	a->all[a->count++] = text;
	if (value)
		a->all[a->count++] = value;
}

static struct arguments sort_arguments(struct request *r, int argc, char **argv)
{
	struct arguments a = {.count = 1, .only_asks = argc == 1};

	a.all = keep(((size_t)argc + 2) * sizeof *a.all);
	a.options = keep(((size_t)argc + 2) * sizeof *a.options);
	for (int i = 1; i < argc; i++) {
		bool has_value = takes_value(argv[i]) && i + 1 < argc;

		if (take_option(r, argv[i])) {
			/* The link step needs the bound, too. */
			if (our_option(argv[i], "--weft-bound"))
				a.options[a.option_count++] = argv[i];
			continue;
		}
		sort_argument(r, &a, argv[i], has_value ? argv[i + 1] : NULL);
		i += has_value;
	}
	return a;
}

__attribute__((noreturn)) static void run_as(struct request *r, int argc, char **argv)
{
	struct arguments a = sort_arguments(r, argc, argv);
	struct view changed, original;

	if (a.only_asks)
		become_as(a.all);
	if (r->input_count > 1)
		stop("one input at a time: give each file its own run of the assembler");
	if (!r->input_count)
		a.input = a.count++;
	if (!r->input_count || strcmp(r->inputs[0], "--") == 0)
		r->inputs[0] = "-";
	r->input_count = 1;
	changed = *transform_all(r, &original);
	if (r->policy == LOOKAHEAD && changed.at != original.at)
		changed = with_original(changed, original, r->needs.n ? "-" : r->inputs[0], a.options);
	a.all[a.input] = anonymous_file(changed);
	become_as(a.all);
}

/* The policy is the name of the directory from which this program is called. */
static bool policy_of_directory(const char *called_as, enum policy *policy)
{
	const char *slash = strrchr(called_as, '/');
	struct view directory = {called_as, slash ? (size_t)(slash - called_as) : 0};
	const char *before = directory.n ? memrchr(directory.at, '/', directory.n) : NULL;

	if (before)
		directory = skip(directory, (size_t)(before + 1 - directory.at));
	return policy_named(say("%.*s", SHOW(directory)), policy);
}

int main(int argc, char **argv)
{
	struct request r = {.bound = 4096, .inputs = keep(((size_t)argc + 1) * sizeof *r.inputs)};
	bool has_policy = argc && policy_of_directory(argv[0], &r.policy);

	if (!has_policy && argc > 1 && policy_named(argv[1], &r.policy))
		return run_alone(&r, argc, argv);
	for (int i = 1; i < argc; i++)
		has_policy |= our_option(argv[i], "--weft-policy") != NULL;
	if (!has_policy)
		stop("%s, or as 'as' in a directory named like a policy", usage);
	run_as(&r, argc, argv);
}
