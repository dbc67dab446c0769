/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deep recursion. A twin that finds the window nearly full is called again in a stack of the activity's own: a mapping
 * that only this activity uses, so switches do not copy it. Each further stack is twice as large. The group caches a
 * stack that was left, so that a loop at the border does not map a stack each time.
 *
 * Plain code that twins call does not check the limit: each mapping has as much room for it as the hot stack.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "activity/activity.h"
#include "internal/bytes.h"
#include "internal/message.h"
#include "stack/fault.h"

enum { ALIGNED = ARGUMENT_ALIGNMENT };
enum { FIRST_STACK = 1 << 20, GUARD = 64 << 10, PLAIN_C = 8 << 20 };
enum { LEAST_HOT = 128 << 10, MOST_HOT = 1 << 30, DEEPEST = 1 << 30 };
static const char variable[] = "WEFT_ACTIVITY_STACK";

/* ---- sizes, and the messages about them ------------------------------------------------------------------------- */

static const char *remedy(const void *owner)
{
	const struct weft__activity_group *g = weft__activity_hot.group;

	return g && !g->stackful && g->coro == owner ? "weft_activity_config.stack_size or WEFT_ACTIVITY_STACK=" : NULL;
}

static bool reports(const char *address)
{
	const struct weft__activity_group *g = weft__activity_hot.group;
	const struct weft__activity_stack *stack = g ? g->stack : NULL;
	struct weft__line line;

	while (stack && (address < stack->low || address >= stack->low + GUARD))
		stack = stack->outer;
	if (!stack)
		return false;
	weft__line_begin(&line);
	weft__line_text(&line, "stack overflow in an activity: plain code that it calls has ");
	weft__line_bytes(&line, g->hot_bytes);
	weft__line_text(&line, " of the stack; raise it with ");
	weft__line_text(&line, remedy(g->coro));
	weft__line_number(&line, 2 * g->hot_bytes / 1024);
	weft__line_text(&line, "K");
	weft__line_write(&line);
	return true;
}

/* By default a group has as much stack as a program's main thread. */
static void by_limit(struct weft__activity_group *g)
{
	struct rlimit of_stack = {PLAIN_C, PLAIN_C};

	(void)getrlimit(RLIMIT_STACK, &of_stack);
	g->hot_bytes = of_stack.rlim_cur == RLIM_INFINITY ? PLAIN_C : of_stack.rlim_cur;
	g->deepest_bytes = of_stack.rlim_cur > DEEPEST ? of_stack.rlim_cur : DEEPEST;
}

static void by_environment(struct weft__activity_group *g, const char *said)
{
	const char *colon = strchr(said, ':');
	size_t room = weft__bytes_in(said, colon ? ':' : '\0'), deepest = colon ? weft__bytes_in(colon + 1, '\0') : 1;

	if (room < LEAST_HOT || room > MOST_HOT || !deepest) {
		weft__say_ignored(variable, said,
				  "say a size from 128K to 1G, and behind a colon, if you like, how much an activity's "
				  "stacks may have together (16M:4G)");
		return;
	}
	g->hot_bytes = room;
	if (colon)
		g->deepest_bytes = deepest;
}

void weft__stacks_init(struct weft__activity_group *g, size_t hot)
{
	static const struct weft__fault_above above = {remedy, reports};
	const char *said = getenv(variable);

	atomic_store(&weft__fault_above, &above);
	by_limit(g);
	if (said && *said)
		by_environment(g, said);
	if (hot)
		g->hot_bytes = hot;
	g->hot_bytes = g->hot_bytes < LEAST_HOT ? LEAST_HOT : g->hot_bytes > MOST_HOT ? MOST_HOT : g->hot_bytes;
}

/* ---- stacks ----------------------------------------------------------------------------------------------------- */

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
/* Test builds: the first stack has room for one small frame, and each next stack for a larger frame, so that every
 * frame fits in the end. */
static size_t next_bytes(const struct weft__activity_group *g)
{
	return FIRST_STACK + g->hot_bytes;
}

static char *full_at(const struct weft__activity_group *g, const struct weft__activity_stack *stack)
{
	size_t room = g->stack ? (size_t)((char *)g->stack - g->stack->full) : 256;

	return (char *)stack - (room < FIRST_STACK / 2 ? 2 * room : 512);
}

size_t weft__window_bytes(const struct weft__activity_group *g)
{
	(void)g;
	return 1 << 10;
}
#else
static size_t next_bytes(const struct weft__activity_group *g)
{
	return g->stack ? 2 * (g->stack->bytes - g->hot_bytes) + g->hot_bytes : FIRST_STACK + g->hot_bytes;
}

static char *full_at(const struct weft__activity_group *g, const struct weft__activity_stack *stack)
{
	return stack->low + GUARD + g->hot_bytes;
}

size_t weft__window_bytes(const struct weft__activity_group *g)
{
	return g->hot_bytes / 2;
}
#endif

static bool may_grow(const struct weft__activity_group *g, size_t bytes)
{
	struct weft__line line;

	for (const struct weft__activity_stack *s = g->stack; s; s = s->outer)
		bytes += s->bytes - g->hot_bytes;
	if (bytes - g->hot_bytes <= g->deepest_bytes)
		return true;
	weft__line_begin(&line);
	weft__line_text(&line, "an activity ends with ENOMEM: its calls take more than ");
	weft__line_bytes(&line, g->deepest_bytes);
	weft__line_text(&line, " of stack; is it a recursion without an end? Else raise it with ");
	weft__line_text(&line, variable);
	weft__line_text(&line, "=");
	weft__line_number(&line, g->hot_bytes / 1024);
	weft__line_text(&line, "K:");
	weft__line_number(&line, 2 * g->deepest_bytes / 1024);
	weft__line_text(&line, "K");
	weft__line_write(&line);
	return false;
}

static struct weft__activity_stack *stack_take(struct weft__activity_group *g)
{
	struct weft__activity_stack *stack = g->spare;
	size_t bytes = next_bytes(g);

	if (stack && stack->bytes >= bytes) {
		g->spare = NULL;
		return stack;
	}
	return may_grow(g, bytes) ? stack_map(bytes) : NULL;
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

/* The arguments on the stack, from sp + 8 on, are copied below the new stack's record, with the same alignment. */
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
	/* The call may have fewer arguments. Everything up to the end of this stack is readable. */
	most = (size_t)((g->stack ? (char *)g->stack : g->base) - (sp + 8));
	if (arguments > most)
		arguments = most & ~(size_t)15;
	to = (char *)((uintptr_t)stack & ~(uintptr_t)15) - arguments;
	to -= (uintptr_t)(to - (sp + 8)) % ALIGNED;
	memcpy(to, sp + 8, arguments);
	stack->outer = g->stack;
	stack->parked = NULL;
	stack->came_from = sp;
	stack->full = full_at(g, stack);
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

/* Runs on the stack that is being left, which must therefore stay mapped: a spare stack that is as large is
 * unmapped, so that this stack becomes the spare. */
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
