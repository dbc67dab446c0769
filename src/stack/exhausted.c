/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fault handler's part for growing stacks that cannot grow further. Programs without such policies are linked
 * without this file. */
#define WEFT__PART_FAILING
#define _GNU_SOURCE /* registers of a signal context */

#include "stack/fault.h"

#include "arch/signal.h"
#include "internal/message.h"
#include "internal/valgrind.h"

static atomic_size_t failures;

/* There is no memory for the stack, and no resumer that could be informed. */
static void report_spent(const struct weft__slot *slot, const void *owner, const char *address, enum weft__spent why)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, why == WEFT__SPENT_BUDGET ? "stack budget spent" : "no memory for a stack");
	weft__line_owner(&line, " in ", owner);
	weft__line_stack(&line, slot, address);
	weft__line_text(
	    &line, why == WEFT__SPENT_BUDGET
		       ? "; raise the budget by WEFT_BUDGET or weft_set_budget"
		       : "; let the system have more, or raise its limits (ulimit -v, ulimit -d, vm.max_map_count)");
	weft__line_write(&line);
}

bool weft__fault_spent(const struct weft__slot *slot, void *owner, char *address, enum weft__spent why, void *context)
{
	char *sp = weft__context_sp(context);
	void *fp, *victim = weft__owner_choose(owner, address, why, &sp, &fp);

	if (!victim) {
		if (why == WEFT__SPENT_RESERVATION)
			weft__report_overflow(slot, owner, address);
		else
			report_spent(slot, owner, address, why);
		return false;
	}
	if (weft__tls_growth) /* the resumer's stack may be a linked stack without room */
		sp = weft__tls_growth;
	atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed); /* a statistic */
	weft__context_call(context, weft__owner_fail, victim, sp, fp);
	VALGRIND_MAKE_MEM_UNDEFINED(sp - 512, 512 - 128); /* Memcheck does not see the stack pointer move */
	return true;
}

size_t weft__fault_failures(void)
{
	return atomic_load_explicit(&failures, memory_order_relaxed);
}
