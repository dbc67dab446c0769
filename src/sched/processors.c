/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many workers a runtime has by default: the processors that the thread may use, or less if a control group has a
 * smaller quota of processor time. More workers than that would use the quota up early in each period, and all of them
 * would then be stopped at once until the next one.
 *
 * A quota of a control group applies to all groups below it, so each directory from the process's group up to the root
 * is looked at. Version 2 has "quota period" in cpu.max, where the quota may be the word max. Version 1 has two files,
 * where a quota of -1 is none. A container may show its own group as the root of the file system: directories that do
 * not exist are passed over.
 *
 * Source of the idea: Rust's std::thread::available_parallelism.
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers in a file, up to `most`; a word counts as -1. Returns how many there are. */
static int read_numbers(const char *directory, const char *name, long long *numbers, int most)
{
	char path[2 * PATH_MAX], word[32];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (count < most && fscanf(file, "%31s", word) == 1)
		numbers[count++] = word[0] >= '0' && word[0] <= '9' ? strtoll(word, NULL, 10) : -1;
	fclose(file);
	return count;
}

/* The quota of one group, in processors, rounded up. UINT_MAX: none. */
static unsigned quota_of(const char *directory, bool version_1)
{
	long long time[2];
	int count;

	if (version_1)
		count = read_numbers(directory, "cpu.cfs_quota_us", &time[0], 1) +
			read_numbers(directory, "cpu.cfs_period_us", &time[1], 1);
	else
		count = read_numbers(directory, "cpu.max", time, 2);
	if (count != 2 || time[0] <= 0 || time[1] <= 0 || time[0] / time[1] >= INT_MAX)
		return UINT_MAX;
	return (unsigned)((time[0] + time[1] - 1) / time[1]);
}

/* The smallest quota of a group and those above it. `mount` is where the root of the groups is mounted. */
static unsigned smallest_quota(const char *mount, const char *group, bool version_1)
{
	unsigned least = UINT_MAX, quota;
	char directory[2 * PATH_MAX];
	char *end;

	snprintf(directory, sizeof directory, "%s%s", mount, group);
	for (;;) {
		quota = quota_of(directory, version_1);
		least = quota < least ? quota : least;
		end = strrchr(directory, '/');
		if (!end || end < directory + strlen(mount))
			return least;
		*end = 0;
	}
}

/* Is "cpu" among the controllers of a line of version 1, such as "4:cpu,cpuacct:/group"? */
static bool has_cpu(const char *controllers)
{
	const char *at = controllers;

	while ((at = strstr(at, "cpu"))) {
		if ((at == controllers || at[-1] == ',') && (at[3] == ',' || at[3] == 0))
			return true;
		at += 3;
	}
	return false;
}

static unsigned quota_of_line(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
	char mount[PATH_MAX];

	if (!group)
		return UINT_MAX;
	*group++ = 0;
	group[strcspn(group, "\n")] = 0;
	controllers++;
	if (*controllers && !has_cpu(controllers))
		return UINT_MAX;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, *controllers ? "/" : "", controllers);
	return smallest_quota(mount, group, *controllers);
}

unsigned weft__quota(const char *root)
{
	unsigned least = UINT_MAX, quota;
	char line[PATH_MAX];
	FILE *file;

	snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
	file = fopen(line, "re");
	if (!file)
		return least;
	while (fgets(line, sizeof line, file)) {
		quota = quota_of_line(root, line);
		least = quota < least ? quota : least;
	}
	fclose(file);
	return least;
}

unsigned weft__processors(void)
{
	unsigned quota, count;
	cpu_set_t set;

	count = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
	quota = count > 1 ? weft__quota("") : 1;
	return quota < count ? quota : count;
}
