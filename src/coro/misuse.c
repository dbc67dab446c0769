/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports of misuse: one line that names the coroutine and says what to do, then abort(). */
#include "coro/copying.h"

void weft__line_coro(struct weft__line *line, const char *what, const weft_coro_t *k)
{
	weft__line_begin(line);
	weft__line_text(line, what);
	weft__line_text(line, " ");
	weft__line_coroutine(line, weft_name(k), k->id);
}

static const char JUMPED_OUT[] =
    ": longjmp left it, or its resumer, while it was running; leave a coroutine by weft_exit, "
    "an exception effect or a C++ exception";

bool weft__was_jumped_out_of(const weft_coro_t *self, const void *sp)
{
	/* A root uses its thread's stack, whose bounds are unknown. Copied frames may be elsewhere. */
	return self && self->parent && !(self->flags & WEFT__COPYING) && !weft_on_stack(self, sp) &&
	       !(self->link.chunk && weft__chunks_have(&self->link, sp));
}

WEFT__LAST_WORDS(static, die_running, (const weft_coro_t *k, const char *what, const void *sp), k, what, sp)
{
	struct weft__line line;

	weft__line_coro(&line, what, k);
	weft__line_text(&line, weft__was_jumped_out_of(weft__self(), sp)
				   ? JUMPED_OUT
				   : ": it is running; let it yield or exit first");
	weft__line_die(&line);
}

WEFT__LEAVES_STACK void weft__die_running(const weft_coro_t *k, const char *what)
{
	die_running(k, what, __builtin_frame_address(0));
}

/* Called by assembly, on the last stack. */
WEFT__LEAVES_STACK void weft__die_misuse(const weft_coro_t *k, enum weft__misuse what)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot resume", k);
	if (what == WEFT__RESUMED_RUNNING && weft__was_jumped_out_of(k->parent, k->link.parent_sp))
		weft__line_text(&line, JUMPED_OUT);
	else if (what == WEFT__RESUMED_RUNNING)
		weft__line_text(&line, ": it is running; only a suspended one can be resumed");
	else if (what == WEFT__RESUMED_DELETED && !k->link.sp && !weft__arena_has(k))
		weft__line_text(&line, ": it was never made; call weft_init first, and look at what it returns");
	else if (what == WEFT__RESUMED_DELETED)
		weft__line_text(&line, ": it was deleted, or never made; keep a weft_ref_t to notice");
	else if (k->failure == WEFT_BUDGET_SPENT)
		weft__line_text(&line,
				": it failed, the stack budget was spent; raise WEFT_BUDGET or look for &weft_failed");
	else if (k->failure == WEFT_MEMORY_SPENT)
		weft__line_text(&line,
				": it failed, there was no memory for the frames that lay where it runs; look for "
				"&weft_failed");
	else if (k->failure)
		weft__line_text(
		    &line, ": it failed, its stack was spent; raise weft_attr.stack_size or look for &weft_failed");
	else
		weft__line_text(&line, ": it is finished; weft_reset starts it over");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_not_ancestor, (const weft_coro_t *k), k)
{
	struct weft__line line;

	weft__require(k, "weft_exit or weft_yield");
	weft__line_coro(&line, "cannot suspend or leave", k);
	weft__line_text(&line, ": the current code does not run inside it; pass weft_current() or an ancestor of it");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_no_coroutine, (const char *what), what)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, what);
	weft__line_text(&line, " called outside of any coroutine: only code that weft_resume runs can call it");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_saying, (const char *what, const char *more, const char *why), what, more, why)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, what);
	weft__line_text(&line, more);
	weft__line_text(&line, why);
	weft__line_die(&line);
}

static void line_null(struct weft__line *line, const char *what)
{
	weft__line_begin(line);
	weft__line_text(line, what);
	weft__line_text(line,
			"(NULL): there is no coroutine; weft_create returns NULL when it fails, and errno says why");
}

WEFT__LAST_WORDS(, weft__die_null, (const char *what), what)
{
	struct weft__line line;

	line_null(&line, what);
	weft__line_die(&line);
}

/* weft__enter reads this field first. */
const size_t weft__owner_read_first = offsetof(weft_coro_t, parent);

void weft__owner_report_null(void)
{
	struct weft__line line;

	line_null(&line, "weft_resume");
	weft__line_write(&line);
}

const size_t weft__owner_id_at = offsetof(weft_coro_t, id),
	     weft__owner_serial_at = offsetof(weft_coro_t, resume_serial);

void weft__owner_die_no_resumption(void *unused)
{
	(void)unused;
	weft__die_saying("a resumption is NULL: ",
			 "pass weft_continue, weft_keep or weft_drop the one that the clause got, ",
			 "or that weft_keep returned");
}

WEFT__LAST_WORDS(, weft__owner_die_no_function, (void *owner), owner)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot run", owner);
	weft__line_text(&line, ": its function is NULL; pass one to weft_create, weft_init, weft_reset or weft_run");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_on_system_stack, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "weft_on_system_stack(NULL): there is no function; pass the one to be called");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(static, die_bound, (const weft_coro_t *k), k)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot suspend", k);
	weft__line_text(&line, ": it executes a tail clause of a handler further out than its resumer; make that a "
			       "general clause, or suspend outside of it");
	weft__line_die(&line);
}

void weft__check_bound(const weft_coro_t *self, const char *what)
{
	if (!self || !self->parent)
		weft__die_no_coroutine(what);
	if (weft__owner_of(self->view) != self)
		die_bound(self);
}

/* The handler of a tail clause is the resumer of the view's owner: k must not be inside that owner. */
void weft__check_yield(const weft_coro_t *k, const weft_coro_t *self)
{
	if (!weft__is_ancestor(k, self))
		weft__die_not_ancestor(k);
	for (const weft_coro_t *c = self;; c = c->parent) {
		if (weft__masked(c->view) && !weft__is_ancestor(k, weft__owner_of(c->view)))
			die_bound(k);
		if (c == k)
			return;
	}
}

WEFT__LAST_WORDS(static, die_not_self, (const weft_coro_t *self), self)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot switch from", self);
	weft__line_text(&line, ": it is not the current coroutine; pass what weft_current() said in this function");
	weft__line_die(&line);
}

void weft__check_self(const weft_coro_t *self)
{
	if (self != weft__self())
		die_not_self(self);
	weft__check_bound(self, "weft_switch_from");
}

WEFT__LAST_WORDS(, weft__die_occupied, (const weft_coro_t *k, const struct weft__region *region), k, region)
{
	const weft_coro_t *running = region->occupant->slot.owner;
	struct weft__line line;

	weft__line_coro(&line, "cannot resume or clean up", k);
	weft__line_text(&line, ": its frames belong where those of the running ");
	weft__line_coroutine(&line, weft_name(running), running->id);
	weft__line_text(&line, " lie; resume it first at the depth where it will be needed, or use another policy");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_deadlock, (const weft_coro_t *k), k)
{
	struct weft__line line;

	weft__line_coro(&line, "cannot resume", k);
	weft__line_text(&line,
			": another thread runs a coroutine where its frames belong, and waits for this thread in the "
			"same way; use another policy for coroutines that move between threads");
	weft__line_die(&line);
}
