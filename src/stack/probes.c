/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mmu: where in the code stores are that ask for more stack, and where each continues when it faults. Each module
 * (program or shared library) registers its table when it is loaded; the fault handler looks in all of them.
 */
#define WEFT__PART_LINKED
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stack/policy.h"

/* As instrumented code has them: distances from the fields themselves. */
struct probe {
	int32_t pc, slow;
};

struct place {
	const char *pc, *slow;
};

/* Never removed: a module that is unloaded leaves addresses that no code runs at. */
struct weft__module {
	struct weft__module *next;
	const struct probe *table;
	size_t count;
	struct place place[]; /* by pc */
};

static int by_pc(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->pc > y->pc) - (x->pc < y->pc);
}

static bool is_registered(const struct probe *table)
{
	for (struct weft__module *module = atomic_load(&weft__modules); module; module = module->next)
		if (module->table == table)
			return true;
	return false;
}

/* From a constructor of each module, before its code can run on any stack of ours. Without memory its probes are not
 * found, and the first that should grow a stack ends with the overflow line. */
void weft__register_probes(const void *begin, const void *end)
{
	const struct probe *table = begin;
	size_t count = (size_t)((const struct probe *)end - table);
	struct weft__module *module;

	if (!count || is_registered(table))
		return;
	module = weft__os_alloc(sizeof *module + count * sizeof *module->place);
	if (!module)
		return;
	module->table = table;
	module->count = count;
	for (size_t i = 0; i < count; i++) {
		module->place[i].pc = (const char *)&table[i].pc + table[i].pc;
		module->place[i].slow = (const char *)&table[i].slow + table[i].slow;
	}
	qsort(module->place, count, sizeof *module->place, by_pc);
	module->next = atomic_load(&weft__modules);
	while (!atomic_compare_exchange_weak(&weft__modules, &module->next, module))
		;
}

static const struct place *find(const struct weft__module *module, const char *pc)
{
	size_t low = 0, high = module->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (module->place[middle].pc < pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < module->count && module->place[low].pc == pc ? &module->place[low] : NULL;
}

void *weft__probe_at(const void *pc)
{
	for (struct weft__module *module = atomic_load(&weft__modules); module; module = module->next) {
		const struct place *place = find(module, pc);

		if (place)
			return (void *)place->slow;
	}
	return NULL;
}
