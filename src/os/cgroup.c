/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Control groups. A limit of a group applies to all groups below it, so each directory from the process's group up to
 * the root is visited. Version 2 has one tree; version 1 has a tree for each controller, such as "cpu,cpuacct". A
 * container may show its own group as the root of the file system: directories that do not exist are skipped.
 *
 * Files are read by system calls alone: a task of libweft-posix.so would suspend inside read, and the C library's
 * streams need memory.
 */
#define _GNU_SOURCE
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/base.h>

enum { LINES = 1024, DIRECTORY = 1024, PATH = DIRECTORY + 32 };

bool weft__os_read_file(const char *path, char *text, size_t size)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t done = 0;
	ssize_t more = 1;

	if (fd < 0)
		return false;
	while (more > 0 && done < size - 1) {
		more = syscall(SYS_read, fd, text + done, size - 1 - done);
		done += more > 0 ? (size_t)more : 0;
	}
	text[done] = 0;
	(void)syscall(SYS_close, fd);
	return more >= 0;
}

/* True if the controller is in a list like "cpu,cpuacct". */
static bool has(const char *list, const char *controller)
{
	size_t length = strlen(controller);
	const char *at = list;

	while ((at = strstr(at, controller))) {
		if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == 0))
			return true;
		at += length;
	}
	return false;
}

/* Visit the group and the groups above it; the first `mount` bytes of the directory are the path of the root group. */
static void visit_up(char *directory, size_t mount, bool version_1, weft__visit_group_t *visit, void *argument)
{
	char *end;

	for (;;) {
		visit(directory, version_1, argument);
		end = strrchr(directory, '/');
		if (!end || end < directory + mount)
			return;
		*end = 0;
	}
}

/* Visit the groups of a line like "0::/group" or "4:cpu,cpuacct:/group". */
static void visit_line(const char *root, const char *controller, char *line, weft__visit_group_t *visit, void *argument)
{
	char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL, directory[DIRECTORY];
	int mount, length;

	if (!group)
		return;
	*group++ = 0;
	list++;
	if (*list && !has(list, controller))
		return;
	mount = snprintf(directory, sizeof directory, "%s/sys/fs/cgroup%s%s", root, *list ? "/" : "", list);
	length =
	    mount > 0 && mount < DIRECTORY ? snprintf(directory + mount, DIRECTORY - (size_t)mount, "%s", group) : -1;
	if (length >= 0 && mount + length < DIRECTORY)
		visit_up(directory, (size_t)mount, *list, visit, argument);
}

void weft__os_each_group(const char *root, const char *controller, weft__visit_group_t *visit, void *argument)
{
	char lines[LINES], *line, *rest = lines;

	snprintf(lines, sizeof lines, "%s/proc/self/cgroup", root);
	if (!weft__os_read_file(lines, lines, sizeof lines))
		return;
	while ((line = strsep(&rest, "\n")))
		visit_line(root, controller, line, visit, argument);
}

static void find_least(const char *directory, bool version_1, void *least)
{
	char path[PATH], text[32];
	size_t *memory = least, limit;

	snprintf(path, sizeof path, "%s/memory.%s", directory, version_1 ? "limit_in_bytes" : "max");
	if (!weft__os_read_file(path, text, sizeof text) || *text < '0' || *text > '9')
		return;
	limit = strtoull(text, NULL, 10);
	*memory = limit < *memory ? limit : *memory;
}

size_t weft__os_memory_in(const char *root)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	size_t least = pages > 0 ? (size_t)pages * WEFT__PAGE : (size_t)1 << 30;

	weft__os_each_group(root, "memory", find_least, &least);
	return least;
}

size_t weft__os_memory(void)
{
	return weft__os_memory_in("");
}
