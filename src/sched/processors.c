/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How many workers a runtime has by default: the processors that the thread may use, or less if a control group has a
 * smaller quota of processor time. More workers than that would use the quota up early in each period, and all of them
 * would then be stopped at once until the next period.
 *
 * Control groups of version 2 have "quota period" in cpu.max, where the quota may be the word max. Version 1 has two
 * files, in which -1 means no quota.
 *
 * Source of the idea: Rust's std::thread::available_parallelism.
 */
#define _GNU_SOURCE
#include "os/os.h"
#include "sched/sched.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read numbers from a file, up to `most`; a word counts as -1. Returns how many the file has. */
static int read_numbers(const char *directory, const char *name, long long *numbers, int most)
{
	char path[PATH_MAX], text[64], *word, *rest = text;
	int count = 0;

	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (!weft__os_read_file(path, text, sizeof text))
		return 0;
	while (count < most && (word = strsep(&rest, " \n")) && *word)
		numbers[count++] = word[0] >= '0' && word[0] <= '9' ? strtoll(word, NULL, 10) : -1;
	return count;
}

/* The quota of a single group, in processors, rounded up. UINT_MAX: no quota. */
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

static void find_least(const char *directory, bool version_1, void *least)
{
	unsigned *quota = least, found = quota_of(directory, version_1);

	*quota = found < *quota ? found : *quota;
}

unsigned weft__quota(const char *root)
{
	unsigned least = UINT_MAX;

	weft__os_each_group(root, "cpu", find_least, &least);
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
