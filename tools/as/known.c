/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that need so little stack that instrumented code calls them on its own stack: without a service stack and
 * without a thunk. They are called through the GOT, so that the dynamic linker's resolver, which needs kilobytes, never
 * runs there.
 *
 * Small: at most 192 bytes, which the slack below every check holds; tests/as/known.c measures each. Room: at most
 * 2048, called through a thunk that checks for this room. Lock: as Room, unless the mutex has a priority ceiling,
 * because such a lock allocates. Sorted by name: strcmp's order.
 *
 * Users declare their own functions: WEFT_NEEDS(name, bytes) becomes the comment "#weft-needs name bytes" in the
 * compiler's text, and a list of --weft-needs=FILE is put in front of the text as such comments, so that the link step
 * of look-ahead finds them in the object.
 */
#include "unit.h"

#include <stdlib.h>

struct entry {
	const char *name;
	enum known known;
};

static const struct entry table[] = {
#define SMALL(name) {#name, KNOWN_SMALL},
#define MEM(name) {#name, KNOWN_MEM},
#define ROOM(name) {#name, KNOWN_ROOM},
#define LOCK(name) {#name, KNOWN_LOCK},
#define SETJMP(name) {#name, KNOWN_SETJMP},
#define UNTOUCHED(name) {#name, KNOWN_UNTOUCHED},
#include "known.def"
};

static int compare(const void *key, const void *entry)
{
	const struct view *name = key;
	const char *other = ((const struct entry *)entry)->name;
	size_t n = strlen(other);
	int order = memcmp(name->at, other, name->n < n ? name->n : n);

	return order ? order : (name->n > n) - (name->n < n);
}

/* The functions of WEFT_NEEDS and --weft-needs. */
static struct need {
	struct view name;
	int64_t bytes;
} *needs;
static size_t need_count, need_room;

/* Adds a need. If two files differ, the larger number counts. */
static void add_need(struct view name, int64_t bytes)
{
	for (size_t i = 0; i < need_count; i++)
		if (same(needs[i].name, name)) {
			needs[i].bytes = bytes > needs[i].bytes ? bytes : needs[i].bytes;
			return;
		}
	if (need_count == need_room)
		needs = grow(needs, &need_room, need_count + 16, sizeof *needs);
	needs[need_count++] = (struct need){name, bytes};
}

bool split_need(struct view line, struct view *name, int64_t *bytes)
{
	line = trim(line);
	*name = cut(&line, memchr(line.at, '\t', line.n) ? '\t' : ' ');
	return name->n && number(trim(line), bytes) && *bytes >= 0 && *bytes <= ROOM_BYTES;
}

bool learn_needs(struct view text, struct view *wrong)
{
	static const char mark[] = "#weft-needs ";
	struct view name;
	const char *at;
	int64_t bytes;

	while ((at = memmem(text.at, text.n, mark, sizeof mark - 1))) {
		struct view before = {text.at, (size_t)(at - text.at)}, rest = skip(text, before.n + sizeof mark - 1);
		const char *start = memrchr(before.at, '\n', before.n);
		struct view line = cut(&rest, '\n');

		text = rest;
		before = start ? skip(before, (size_t)(start + 1 - before.at)) : before;
		if (trim(before).n) /* in a string: with -g3 the macro itself is in the debugging information */
			continue;
		*wrong = line;
		if (!split_need(line, &name, &bytes))
			return false;
		add_need(name, bytes);
	}
	return true;
}

static enum known needed(struct view name)
{
	for (size_t i = 0; i < need_count; i++)
		if (same(needs[i].name, name))
			return needs[i].bytes <= SMALL_BYTES ? KNOWN_SMALL : KNOWN_ROOM;
	return NOT_KNOWN;
}

enum known known(struct view name)
{
	const struct entry *e = bsearch(&name, table, sizeof table / sizeof *table, sizeof *table, compare);

	return e ? e->known : needed(name);
}

const char *renamed(struct view name)
{
	if (IS(name, "pthread_create"))
		return "weft_pthread_create";
	if (IS(name, "sigaction"))
		return "weft_sigaction";
	if (IS(name, "signal") || IS(name, "bsd_signal") || IS(name, "ssignal"))
		return "weft_signal";
	if (IS(name, "__longjmp_chk"))
		return "longjmp";
	/* Shared libraries are linked with the compiler's run time, which has these names, too. */
	if (IS(name, "__morestack_allocate_stack_space"))
		return "weft__allocate_stack_space";
	return NULL;
}
