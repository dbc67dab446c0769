/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deep recursion. A twin that finds the window nearly full is called again in a stack of its activity's own: a mapping,
 * which is not copied at switches; nobody else uses its addresses. Each next one is twice as large. The group keeps one
 * that was left, so that a loop at the border does not map one each time.
 *
 * Of each mapping STACK_ROOM bytes are for plain code that twins call, which does not ask.
 */
#include <string.h>
#include <sys/mman.h>

#include "activity/activity.h"

enum { FIRST_STACK = 1 << 20, STACK_ROOM = 256 << 10, GUARD = 64 << 10 };

static struct weft__activity_stack *stack_map(size_t bytes)
{
	struct weft__activity_stack *stack;
	char *low =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (low == MAP_FAILED)
		return NULL;
	if (mprotect(low, GUARD, PROT_NONE)) {
		munmap(low, bytes);
		return NULL;
	}
	stack = (struct weft__activity_stack *)(low + bytes) - 1;
	stack->low = low;
	stack->bytes = bytes;
	return stack;
}

#ifdef WEFT_TINY
/* Test builds: there is room for one small frame, then for a larger one, so that any frame fits at last. */
static size_t next_bytes(const struct weft__activity_stack *stack)
{
	return stack->bytes;
}

static char *full_at(const struct weft__activity_stack *stack, const struct weft__activity_stack *outer)
{
	static const size_t most = FIRST_STACK - STACK_ROOM;
	size_t room = outer ? (size_t)((char *)outer - outer->full) : 256;

	return (char *)stack - (room < most / 2 ? 2 * room : 512);
}
#else
static size_t next_bytes(const struct weft__activity_stack *stack)
{
	return 2 * stack->bytes;
}

static char *full_at(const struct weft__activity_stack *stack, const struct weft__activity_stack *outer)
{
	(void)outer;
	return stack->low + STACK_ROOM;
}
#endif

static struct weft__activity_stack *stack_take(struct weft__activity_group *g)
{
	struct weft__activity_stack *stack = g->spare;
	size_t bytes = g->stack ? next_bytes(g->stack) : FIRST_STACK;

	if (stack && stack->bytes >= bytes) {
		g->spare = NULL;
		return stack;
	}
	return stack_map(bytes);
}

static void stack_give(struct weft__activity_group *g, struct weft__activity_stack *stack)
{
	struct weft__activity_stack *worse = stack;

	if (!g->spare || g->spare->bytes < stack->bytes) {
		worse = g->spare;
		g->spare = stack;
		stack->outer = NULL;
	}
	if (worse)
		munmap(worse->low, worse->bytes);
}

/* The arguments that lie on the stack, from sp + 8 on, are copied below the new stack's record. */
char *weft__activity_grow(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	size_t arguments = (weft__activity_hot.arguments + 15) & ~15u, most;
	struct weft__activity_stack *stack;
	char *to;

	weft__stacks_settle(g, sp);
	stack = stack_take(g);
	if (!stack)
		weft__activity_fail(ENOMEM);
	/* There may be fewer: up to the end of this stack all can be read. */
	most = (size_t)((g->stack ? (char *)g->stack : g->base) - (sp + 8));
	if (arguments > most)
		arguments = most & ~(size_t)15;
	to = (char *)((uintptr_t)stack & ~(uintptr_t)15) - arguments;
	memcpy(to, sp + 8, arguments);
	stack->outer = g->stack;
	stack->parked = NULL;
	stack->came_from = sp;
	stack->full = full_at(stack, g->stack);
	g->stack = stack;
	weft__limits(g);
	return to;
}

static void parked_give(struct weft__activity_group *g, struct weft__activity_stack *stack)
{
	weft__part_give(g, stack->parked);
	stack->parked = NULL;
}

static void stack_leave(struct weft__activity_group *g)
{
	struct weft__activity_stack *stack = g->stack;

	if (stack->parked)
		memcpy(weft__stack_window(stack), stack->parked->copy, stack->parked->bytes);
	parked_give(g, stack);
	g->stack = stack->outer;
	stack_give(g, stack);
	weft__limits(g);
}

/* Called on the stack that is left, which therefore stays mapped: it becomes the spare one, or is larger than that. */
char *weft__activity_shrink(void)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	char *sp;

	weft__stacks_settle(g, __builtin_frame_address(0));
	sp = g->stack->came_from;
	if (g->spare && g->spare->bytes >= g->stack->bytes) {
		struct weft__activity_stack *spare = g->spare;

		g->spare = NULL;
		munmap(spare->low, spare->bytes);
	}
	stack_leave(g);
	return sp;
}

void weft__stacks_settle(struct weft__activity_group *g, char *sp)
{
	while (g->stack && (sp < g->stack->low || sp > (char *)g->stack))
		stack_leave(g);
}

void weft__stacks_free(struct weft__activity_group *g, struct weft__activity_stack *stack)
{
	while (stack) {
		struct weft__activity_stack *outer = stack->outer;

		parked_give(g, stack);
		stack_give(g, stack);
		stack = outer;
	}
}
