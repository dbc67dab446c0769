/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mmu: the addresses of stores in code that ask for more stack, and the addresses at which they continue after a fault.
 * Each module (program or shared library) registers its table when it is loaded; the fault handler searches all tables.
 *
 * A store that faults again and again, because a loop calls at the end of a chunk, is replaced by a jump to the
 * comparison that weft-as has put behind its function. Then the call is a compare, and switches to the next chunk and
 * back without a signal, as under "segmented". All other calls of the function use the comparison, too, so the store is
 * replaced only if the faults follow each other closely: a recursion that crosses chunks now and then keeps its store.
 *
 * Rejected: opening the guard below the chunk, so that the frame fits (the loop may be at the next end); a flag that
 * each prologue tests (a load and a branch in every call, for the few that need it).
 */
#define WEFT__PART_LINKED
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/probe.h"
#include "internal/valgrind.h"
#include "stack/config.h"
#include "stack/policy.h"

enum {
	HOT_TICKS = 20000, /* between two faults: a few times the duration of a fault */
	HOT_FAULTS = 16,   /* faults in such a row */
	SITES = 4,	   /* places of faults that a thread may alternate between */
};

/* The entry format of instrumented code: distances from the fields themselves. */
struct probe {
	int32_t pc, slow, compare;
};

struct place {
	const char *pc, *slow, *compare;
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

/* Called by a constructor of each module, before its code can run on a stack of the library's. Without memory its
 * probes are not found, and the first probe that should grow a stack ends the process with the overflow message. */
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
		module->place[i].compare = (const char *)&table[i].compare + table[i].compare;
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

static const struct place *place_at(const void *pc)
{
	for (struct weft__module *module = atomic_load(&weft__modules); module; module = module->next) {
		const struct place *place = find(module, pc);

		if (place)
			return place;
	}
	return NULL;
}

void *weft__probe_at(const void *pc)
{
	const struct place *place = place_at(pc);

	return place ? (void *)(uintptr_t)place->slow : NULL;
}

/* ---- replacing ------------------------------------------------------------------------------------------------- */

/* The process in which a thread is replacing a probe, else 0. In a child of a concurrent fork it is not the own
 * process. */
static atomic_int replacing;
static atomic_bool refused; /* the system does not allow it */

static bool write_jump(char *at, const unsigned char *jump)
{
	static const unsigned char trap = WEFT__TRAP_CODE;

	/* The first barrier only tests whether the system has barriers. */
	return weft__os_code_barrier() && weft__os_write_code(at, &trap, WEFT__TRAP_BYTES) && weft__os_code_barrier() &&
	       weft__os_write_code(at + WEFT__TRAP_BYTES, jump + WEFT__TRAP_BYTES,
				   WEFT__JUMP_BYTES - WEFT__TRAP_BYTES) &&
	       weft__os_code_barrier() && weft__os_write_code(at, jump, WEFT__TRAP_BYTES);
}

/* If a debugger's breakpoint is at the place, it is left alone. */
static void replace(const struct place *place)
{
	char *at = (char *)(uintptr_t)place->pc;
	unsigned char jump[WEFT__JUMP_BYTES];
	int self = getpid(), other = atomic_load(&replacing);

	if (other == self || !atomic_compare_exchange_strong(&replacing, &other, self))
		return;
	if (weft__is_probe((unsigned char *)at) && weft__make_jump(jump, at, place->compare) && !write_jump(at, jump))
		atomic_store(&refused, true);
	atomic_store(&replacing, 0);
}

/* Faults of the calling thread at the same place that followed each other closely. */
struct site {
	const void *pc;
	uint64_t when;
	unsigned count;
};
static __thread struct site sites[SITES] __attribute__((tls_model("initial-exec")));

static bool is_hot(const void *pc)
{
	struct site *site = &sites[((uintptr_t)pc >> 4) % SITES];
	uint64_t now = weft__ticks(), before = site->when;

	site->when = now;
	if (site->pc != pc || now - before > HOT_TICKS) {
		site->pc = pc;
		site->count = 0;
	}
	return ++site->count >= HOT_FAULTS;
}

void weft__probe_learn(const void *pc)
{
	if (is_hot(pc) && !atomic_load_explicit(&refused, memory_order_relaxed) && weft__config_learns_probes() &&
	    !RUNNING_ON_VALGRIND && WEFT_NO_CANARY(probes_are_not_learned))
		replace(place_at(pc));
}

void *weft__probe_trapped(const void *pc)
{
	const struct place *place = place_at(pc);

	return place && weft__is_patched_probe((const unsigned char *)pc) ? (void *)(uintptr_t)place->compare : NULL;
}
