/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * With WEFT_LEAKS=1 in the environment, or in a debug build without WEFT_LEAKS=0: at the exit of the process, a line
 * for each coroutine made by weft_create or weft_run that was resumed, is suspended, and was not deleted; the line says
 * where it was made. A table in this file maps the object's address to that place: memory of the arena is never
 * unmapped, so a deleted object can be read. Other memory is read in a way that cannot fault.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "coro/coro.h"
#include "internal/signal_safe_lock.h"

enum { LINES = 10, FIRST_PLACES = 1024 };

/* The place where a coroutine was made: `at` is an address after a call. */
struct site {
	weft_coro_t *k;
	uint64_t id;
	void *at;
};

bool weft__notes_sites;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct site *sites; /* a hash table, at most half full, with linear probing */
static size_t places, used;

WEFT__LOCK_OF_FILE(mutex);

struct search {
	unsigned frames;
	void *at;
};

/* True if the function makes a coroutine for its caller. False for NULL, which stands for code without unwind
 * tables. */
static bool makes_for_its_caller(const void *function)
{
	return function && (function == (void *)weft_create || function == (void *)weft__create_with_care ||
			    (&weft__maker_run && function == (void *)weft__maker_run) ||
			    (&weft__maker_run_with && function == (void *)weft__maker_run_with));
}

/* Skip the frames of this file and of the maker, a part of which may be a separate function, and of functions that make
 * a coroutine for their caller. */
static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
	void *pc = (void *)_Unwind_GetIP(context), *function = _Unwind_FindEnclosingFunction(pc);
	struct search *search = argument;

	if (++search->frames <= 2 || makes_for_its_caller(function))
		return _URC_NO_REASON;
	search->at = pc;
	return _URC_END_OF_STACK;
}

static struct site *place_of(const weft_coro_t *k)
{
	size_t i = ((uintptr_t)k >> 6) * 0x9e3779b97f4a7c15u >> 20 & (places - 1);

	while (sites[i].k && sites[i].k != k)
		i = (i + 1) & (places - 1);
	return &sites[i];
}

static bool grow(void)
{
	struct site *old = sites;
	size_t count = places;

	sites = calloc(count ? 2 * count : FIRST_PLACES, sizeof *sites);
	if (!sites) {
		sites = old;
		return false;
	}
	places = count ? 2 * count : FIRST_PLACES;
	for (size_t i = 0; i < count; i++)
		if (old[i].k)
			*place_of(old[i].k) = old[i];
	free(old);
	return true;
}

void weft__note_site(weft_coro_t *k)
{
	struct search search = {0, NULL};
	struct site *place;

	_Unwind_Backtrace(look, &search);
	lock();
	if (2 * used < places || grow()) {
		place = place_of(k);
		used += !place->k;
		*place = (struct site){k, k->id, search.at};
	}
	unlock();
}

static void report(const struct site *site)
{
	struct weft__line line;

	weft__line_coro(&line, "lost:", site->k);
	weft__line_place(&line, ", made", site->at);
	weft__line_text(&line, ", is suspended still: let it return, or give it back (weft_delete, weft_drop)");
	weft__line_write(&line);
}

static bool is_lost(const struct site *site)
{
	const weft_coro_t *k = site->k;
	weft_coro_t copy;

	if (k && !weft__arena_has(k)) /* in the caller's memory, which may be unmapped */
		k = weft__os_read(&copy, k, sizeof copy) == sizeof copy ? &copy : NULL;
	return k && k->id == site->id && weft_state(k) == WEFT_SUSPENDED && weft__was_resumed(k);
}

/* Runs before other constructors make coroutines. */
__attribute__((constructor(103))) static void begin(void)
{
	const char *wanted = getenv("WEFT_LEAKS");

	weft__notes_sites = wanted ? !strcmp(wanted, "1") : WEFT_DEBUG;
	if (weft__notes_sites) /* other threads may create coroutines during fork */
		(void)pthread_atfork(lock, unlock, unlock);
}

__attribute__((destructor)) static void end(void)
{
	struct weft__line line;
	size_t lost = 0;

	for (size_t i = 0; i < places; i++)
		if (is_lost(&sites[i]) && ++lost <= LINES)
			report(&sites[i]);
	if (lost <= LINES)
		return;
	weft__line_begin(&line);
	weft__line_text(&line, "lost: and ");
	weft__line_number(&line, lost - LINES);
	weft__line_text(&line, " more coroutines");
	weft__line_write(&line);
}
