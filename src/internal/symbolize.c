/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Translating an address into a place in the program, for messages. The library does not read the tables of functions
 * and lines. The program that WEFT_ADDR2LINE names does. `weft run` sets that variable, because the program's file is
 * deleted before a user could run addr2line.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal/message.h"

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

/* Run a program and store its output in `answer`, at most `room` bytes. Longer output is cut. */
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
}

/* The first function in `answer` that is not Weft's own. Its lines are "FUNCTION at FILE:LINE", each function inlined
 * into the next. */
static char *first_of_program(char *answer)
{
	static const char inlined_by[] = " (inlined by) ";
	char *line, *of_program = NULL, *rest, *piece;

	for (line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, inlined_by, sizeof inlined_by - 1))
			line += sizeof inlined_by - 1;
		of_program = line;
		if (strncmp(line, "weft_", 5) != 0 && strncmp(line, "weft::", 6) != 0)
			break;
	}
	/* The number of the line's basic block does not help the reader. */
	piece = of_program ? strstr(of_program, " (discriminator ") : NULL;
	if (piece)
		*piece = 0;
	return of_program;
}

/* Add " in FUNCTION at FILE:LINE"; false if that is unknown. `offset` is the address's offset in the file. */
static bool line_source(struct weft__line *line, const char *what, const char *file, uintptr_t offset)
{
	const char *program = secure_getenv("WEFT_ADDR2LINE");
	struct weft__line address = {0};
	char answer[2000], *source;

	if (!program)
		return false;
	weft__line_address(&address, offset);
	address.text[address.length] = 0;
	ask((char *[]){(char *)program, (char *)"-Cfpie", (char *)file, address.text, NULL}, answer, sizeof answer);
	source = first_of_program(answer);
	if (!source || *source == '?')
		return false;
	weft__line_text(line, what);
	weft__line_text(line, " in ");
	weft__line_text(line, source);
	return true;
}

/* Sets *base to the address that the offsets in the object's file are relative to. musl has no dladdr1; there a program
 * that is not a PIE is described by offsets from its first page. */
static bool object_of(const void *at, Dl_info *info, uintptr_t *base)
{
#ifdef __GLIBC__
	struct link_map *map = NULL;

	if (!dladdr1(at, info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	*base = map->l_addr;
	return true;
#else
	if (!dladdr(at, info))
		return false;
	*base = (uintptr_t)info->dli_fbase;
	return true;
#endif
}

void weft__line_place(struct weft__line *line, const char *what, const void *at)
{
	const char *file;
	uintptr_t offset, base;
	Dl_info info;

	if (!object_of(at, &info, &base) || !info.dli_fname) {
		weft__line_text(line, what);
		weft__line_text(line, " at ");
		weft__line_address(line, (uintptr_t)at);
		return;
	}
	/* An address inside the call, so that addr2line prints the line of the call. */
	offset = (uintptr_t)at - 1 - base;
	if (line_source(line, what, info.dli_fname, offset))
		return;
	weft__line_text(line, what);
	weft__line_text(line, " at ");
	if (info.dli_sname) {
		weft__line_text(line, info.dli_sname);
		weft__line_text(line, " in ");
	}
	file = strrchr(info.dli_fname, '/');
	weft__line_text(line, file ? file + 1 : info.dli_fname);
	weft__line_text(line, "+");
	weft__line_address(line, offset);
}
