/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory of a group: copies of frames, variables, detached activities. Blocks of up to LARGEST_BLOCK bytes are cut from
 * spans and kept in a list for each size, last in, first out; malloc allocates larger blocks. No span is unmapped
 * before the group ends. One thread at a time uses a group, so there is no lock.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "activity/activity.h"
#include "internal/message.h"

enum { SPAN = 1 << 20 };

struct weft__memory_span {
	struct weft__memory_span *next;
	size_t bytes;
};

/* Spans grow with the group, so that a few activities take few pages, and many activities take few mappings. */
static bool span_add(struct weft__activity_group *g)
{
	size_t bytes = g->spans ? g->spans->bytes : SPAN / 2;
	struct weft__memory_span *span;

	bytes = bytes < (size_t)64 * SPAN ? 2 * bytes : bytes;
	span = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (span == MAP_FAILED)
		return false;
	span->next = g->spans;
	span->bytes = bytes;
	g->spans = span;
	g->fresh = (char *)(span + 1);
	g->fresh_end = (char *)span + bytes;
	return true;
}

void *weft__piece_cut(struct weft__activity_group *g, size_t bytes)
{
	void *block;

	if ((size_t)(g->fresh_end - g->fresh) < bytes && !span_add(g))
		return NULL;
	block = g->fresh;
	g->fresh += bytes;
	return block;
}

void *weft__piece_take(struct weft__activity_group *g, size_t bytes)
{
	void **list, *block;

	if (bytes > LARGEST_BLOCK)
		return malloc(bytes);
	list = &g->blocks[bytes / 16];
	block = *list;
	if (!block)
		return weft__piece_cut(g, bytes);
	*list = *(void **)block;
	return block;
}

void weft__piece_give(struct weft__activity_group *g, void *block, size_t bytes)
{
	void **list = &g->blocks[bytes / 16];

	if (bytes > LARGEST_BLOCK) {
		free(block);
		return;
	}
	*(void **)block = *list;
	*list = block;
}

static void unmap(struct weft__memory_span *span)
{
	while (span) {
		struct weft__memory_span *next = span->next;

		munmap(span, span->bytes);
		span = next;
	}
}

/* The spans of a group that an exception effect has left: the exception's value may be in them. */
static __thread struct weft__memory_span *left;

void weft__pieces_unmap(struct weft__activity_group *g, bool was_left)
{
	unmap(left);
	left = was_left ? g->spans : NULL;
	if (!was_left)
		unmap(g->spans);
}

static size_t rounded(size_t bytes)
{
	return (bytes + 15) & ~(size_t)15;
}

/* ---- for code made by the pass ---------------------------------------------------------------------------------- */

WEFT_API void *weft__activity_push(size_t bytes);
WEFT_API void *weft__activity_newest(void);
WEFT_API void weft__activity_pop_to(struct weft__activity_var *until);
WEFT_API void weft__activity_landed(struct weft__activity_var *until);
WEFT_API void *weft__activity_block(size_t bytes);
WEFT_API void weft__activity_unblock(void *memory);

static inline void *add(weft_activity_t *self, struct weft__activity_var *v, size_t bytes)
{
	v->bytes = bytes;
	v->next = self->vars;
	self->vars = v;
	return v->memory;
}

void *weft__record_take(struct weft__activity_group *g, size_t bytes)
{
	struct weft__activity_var *v;

	bytes = rounded(bytes + sizeof *v);
	v = weft__piece_take(g, bytes);
	return weft__likely(v) ? add(g->hot->self, v, bytes) : NULL;
}

static WEFT__COLD void *push_slowly(size_t bytes)
{
	void *memory = weft__record_take(weft__activity_hot.group, bytes);

	if (!memory)
		weft__activity_fail(ENOMEM);
	return memory;
}

/* Each call of a function with such variables pays for this, so it touches only the head of a list. */
void *weft__activity_push(size_t bytes)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	size_t all = rounded(bytes + sizeof(struct weft__activity_var));
	void **list = &g->blocks[all / 16], *v;

	if (weft__unlikely(all > LARGEST_BLOCK) || weft__unlikely(!(v = *list)))
		return push_slowly(bytes);
	*list = *(void **)v;
	return add(weft__activity_hot.self, v, all);
}

void weft__vars_free(struct weft__activity_group *g, struct weft__activity_var *until)
{
	weft_activity_t *self = weft__activity_hot.self;

	while (self->vars != until && !(self->vars->bytes & 1)) {
		struct weft__activity_var *v = self->vars;

		self->vars = v->next;
		weft__piece_give(g, v, v->bytes);
	}
}

void weft__vars_free_all(struct weft__activity_group *g, weft_activity_t *a)
{
	while (a->vars) {
		struct weft__activity_var *v = a->vars;

		a->vars = v->next;
		weft__piece_give(g, v, v->bytes & ~(size_t)1);
	}
}

/* Newer variables belong to functions that longjmp or an exception has left. They are freed, too. */
void weft__activity_pop(void *memory)
{
	struct weft__activity_var *v = (struct weft__activity_var *)((char *)memory - sizeof *v);
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;

	if (weft__unlikely(self->vars != v || v->bytes > LARGEST_BLOCK)) {
		weft__vars_free(g, v->next);
		return;
	}
	self->vars = v->next;
	*(void **)v = g->blocks[v->bytes / 16];
	g->blocks[v->bytes / 16] = v;
}

void *weft__activity_newest(void)
{
	return weft__activity_hot.self->vars;
}

void weft__activity_pop_to(struct weft__activity_var *until)
{
	weft__vars_free(weft__activity_hot.group, until);
}

WEFT__LAST_WORDS(static, die_astray, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line,
			"longjmp to another activity, or to a function that has returned: a jump stays among the calls "
			"of one activity");
	weft__line_die(&line);
}

/* Called after setjmp has returned, perhaps by longjmp. Frees newer variables and stacks, whose functions were left. */
void weft__activity_landed(struct weft__activity_var *until)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	const struct weft__activity_var *v = g->hot->self->vars;

	while (v && v != until && !(v->bytes & 1))
		v = v->next;
	if (weft__unlikely(until && v != until))
		die_astray();
	weft__stacks_settle(g, __builtin_frame_address(0));
	weft__vars_free(g, until);
}

/* Allocates a block for data that is copied to a new activity. The activity owns the block when it is started. */
void *weft__activity_block(size_t bytes)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	struct weft__activity_var *v;

	bytes = rounded(bytes + sizeof *v);
	v = weft__piece_take(g, bytes);
	if (weft__unlikely(!v))
		weft__activity_fail(ENOMEM);
	v->bytes = bytes;
	v->next = g->shipped;
	g->shipped = v;
	return v->memory;
}

void weft__activity_unblock(void *memory)
{
	struct weft__activity_var *v = (struct weft__activity_var *)((char *)memory - sizeof *v), **at;

	for (at = &weft__activity_hot.self->vars; *at != v; at = &(*at)->next)
		continue;
	*at = v->next;
	weft__piece_give(weft__activity_hot.group, v, v->bytes);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* The result is the oldest variable, so that no function frees it when it returns. */
void weft_activity_set_result(void *result)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;
	struct weft__activity_var **at, *v;
	size_t bytes = rounded(sizeof *v + sizeof result);

	if (weft__unlikely(!self))
		weft__activity_outside("weft_activity_set_result");
	at = &self->vars;
	while (*at && (*at)->next)
		at = &(*at)->next;
	if (!(self->flags & WEFT__HAS_RESULT)) {
		v = weft__piece_take(g, bytes);
		if (!v)
			weft__activity_fail(ENOMEM);
		*v = (struct weft__activity_var){NULL, bytes | 1};
		self->flags |= WEFT__HAS_RESULT;
		*(*at ? &(*at)->next : at) = v;
		at = *at == v ? at : &(*at)->next;
	}
	memcpy((*at)->memory, &result, sizeof result);
}
