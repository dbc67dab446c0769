/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that need so little stack that instrumented code calls them where it stands: no service stack, no
 * thunk. They are called through the GOT, so that the dynamic linker's resolver, which needs kilobytes, never runs
 * there.
 *
 * Small: at most 192 bytes, which the slack below every check holds; tests/as/known.c measures each. Room: at most
 * 2048, called through a thunk that looks whether there is so much. Lock: the same unless the mutex has a priority
 * ceiling; these allocate. Sorted by name: strcmp's order.
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

enum known known(struct view name)
{
	const struct entry *e = bsearch(&name, table, sizeof table / sizeof *table, sizeof *table, compare);

	return e ? e->known : NOT_KNOWN;
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
	/* Shared libraries are linked with a run time of the compiler's, which has these names too. */
	if (IS(name, "__morestack_allocate_stack_space"))
		return "weft__allocate_stack_space";
	return NULL;
}
