/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * With WEFT_LEAKS=1 in the environment, or in a debug build without WEFT_LEAKS=0: at the exit of the process, a line
 * for each coroutine made by weft_create or weft_run that began, is suspended, and was not given back; it says where it
 * was made. A table of our own knows that, by the object's address: memory of the arena is never unmapped, so looking
 * at an object that died is harmless.
 *
 * The library does not read the tables that know function and line. The program that WEFT_ADDR2LINE names does.
 * `weft run` sets that variable, because the program's file is gone before a user could run addr2line.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "coro/coro.h"
#include "internal/once.h"

enum { LINES = 10, FIRST_PLACES = 1024 };

/* Where one was made: `at` is an address after a call. */
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

/* Of the layer above, which makes some. */
void weft_run(void) __attribute__((weak));
void weft_run_with(void) __attribute__((weak));

struct search {
	unsigned frames;
	void *at;
};

/* Past this file's frame and the maker's, of which a part may stand elsewhere, and those of the layer above. */
static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
	void *pc = (void *)_Unwind_GetIP(context), *function = _Unwind_FindEnclosingFunction(pc);
	struct search *search = argument;

	if (++search->frames <= 2 || (function && (function == (void *)weft_run || function == (void *)weft_run_with)))
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

/* Starts a program whose standard output goes to `fd`. Returns the child, or 0. */
static pid_t start(char *const *argv, int fd)
{
	posix_spawn_file_actions_t actions;
	pid_t child;

	if (posix_spawn_file_actions_init(&actions))
		return 0;
	if (posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO) ||
	    posix_spawn(&child, argv[0], &actions, NULL, argv, environ))
		child = 0;
	posix_spawn_file_actions_destroy(&actions);
	return child;
}

/* The first line of what a program prints, in `answer`, of which `room` bytes are there. Longer ones are cut. */
static void ask(char *const *argv, char *answer, size_t room)
{
	size_t length = 0;
	ssize_t got = 1;
	pid_t child;
	int fds[2];

	*answer = 0;
	if (pipe2(fds, O_CLOEXEC))
		return;
	child = start(argv, fds[1]);
	close(fds[1]);
	while (child && length < room - 1 && (got = read(fds[0], answer + length, room - 1 - length)) > 0)
		length += (size_t)got;
	close(fds[0]);
	if (child)
		waitpid(child, NULL, 0);
	answer[length] = 0;
	answer[strcspn(answer, "\n")] = 0;
}

/* ", made in FUNCTION at FILE:LINE"; false if nobody knows. `offset` is what the file says of the address. */
static bool line_source(struct weft__line *line, const char *file, uintptr_t offset)
{
	const char *program = secure_getenv("WEFT_ADDR2LINE");
	struct weft__line address = {0};
	char answer[200];

	if (!program)
		return false;
	weft__line_address(&address, offset);
	address.text[address.length] = 0;
	ask((char *[]){(char *)program, (char *)"-Cfpe", (char *)file, address.text, NULL}, answer, sizeof answer);
	if (!*answer || *answer == '?')
		return false;
	weft__line_text(line, ", made in ");
	weft__line_text(line, answer);
	return true;
}

static void line_site(struct weft__line *line, char *at)
{
	struct link_map *map = NULL;
	const char *file;
	uintptr_t offset;
	Dl_info info;

	if (!dladdr1(at, &info, (void **)&map, RTLD_DL_LINKMAP) || !info.dli_fname || !map) {
		weft__line_text(line, ", made at ");
		weft__line_address(line, (uintptr_t)at);
		return;
	}
	/* Of the call, so that addr2line says its line. */
	offset = (uintptr_t)at - 1 - map->l_addr;
	if (line_source(line, info.dli_fname, offset))
		return;
	weft__line_text(line, ", made at ");
	if (info.dli_sname) {
		weft__line_text(line, info.dli_sname);
		weft__line_text(line, " in ");
	}
	file = strrchr(info.dli_fname, '/');
	weft__line_text(line, file ? file + 1 : info.dli_fname);
	weft__line_text(line, "+");
	weft__line_address(line, offset);
}

static void report(const struct site *site)
{
	struct weft__line line;

	weft__line_coro(&line, "lost:", site->k);
	line_site(&line, site->at);
	weft__line_text(&line, ", is suspended still: let it return, or give it back (weft_delete, weft_drop)");
	weft__line_write(&line);
}

static bool is_lost(const struct site *site)
{
	return site->k && site->k->id == site->id && weft_state(site->k) == WEFT_SUSPENDED &&
	       weft__has_started(site->k);
}

__attribute__((constructor)) static void begin(void)
{
	const char *wanted = getenv("WEFT_LEAKS");

	weft__notes_sites = wanted ? !strcmp(wanted, "1") : WEFT_DEBUG;
	if (weft__notes_sites) /* fork beside other threads that create some */
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
