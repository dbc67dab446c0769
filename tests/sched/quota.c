/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Limits of control groups (versions 1 and 2) on time and memory, in a directory that imitates the system's. */
#include "check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

unsigned weft__quota(const char *root);
size_t weft__os_memory_in(const char *root);

static char root[64];

/* Writes the file, and creates the directories above it. */
static void has(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof full, "%s%s", root, path);
	for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		(void)mkdir(full, 0700);
	}
	file = fopen(full, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void quota_is(unsigned expected)
{
	unsigned quota = weft__quota(root);

	if (quota != expected)
		printf("%u, expected %u\n", quota, expected);
	CHECK(quota == expected);
}

static void begin(const char *groups)
{
	char command[160];

	snprintf(command, sizeof command, "rm -rf %s/sys %s/proc", root, root);
	CHECK(system(command) == 0);
	has("/proc/self/cgroup", groups);
}

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/cpu,cpuacct"

/* A limit of the group, of a parent group, and no limit. The machine must have more than 100 MB. */
static void memory_is_limited(void)
{
	size_t all;

	begin("0::/a/b\n");
	all = weft__os_memory_in(root);
	has(V2 "/a/b/memory.max", "max\n");
	CHECK(all > 100000000 && weft__os_memory_in(root) == all);
	has(V2 "/a/b/memory.max", "100000000\n");
	CHECK(weft__os_memory_in(root) == 100000000);
	has(V2 "/a/memory.max", "50000000\n");
	CHECK(weft__os_memory_in(root) == 50000000);
	begin("4:cpu,cpuacct:/d\n3:memory:/e\n");
	has(V1 "/d/memory.limit_in_bytes", "1000\n");
	has("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	CHECK(weft__os_memory_in(root) == all);
	has("/sys/fs/cgroup/memory/e/memory.limit_in_bytes", "60000000\n");
	CHECK(weft__os_memory_in(root) == 60000000);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(root, sizeof root, "%s/weft-quota.XXXXXX", tmp && strlen(tmp) < 30 ? tmp : "/tmp");
	CHECK(mkdtemp(root));
	quota_is(UINT_MAX);
	begin("0::/\n");
	quota_is(UINT_MAX);
	has(V2 "/cpu.max", "max 100000\n");
	quota_is(UINT_MAX);
	has(V2 "/cpu.max", "150000 100000\n");
	quota_is(2);
	has(V2 "/cpu.max", "1000 100000\n");
	quota_is(1);
	has(V2 "/cpu.max", "nonsense");
	quota_is(UINT_MAX);
	has(V2 "/cpu.max", "100000 0\n");
	quota_is(UINT_MAX);
	/* Quotas of the group itself, of a parent group, and of a group without a file. */
	begin("0::/a/b/c\n");
	has(V2 "/a/b/c/cpu.max", "800000 100000\n");
	quota_is(8);
	has(V2 "/a/cpu.max", "300000 100000\n");
	quota_is(3);
	has(V2 "/a/b/cpu.max", "max 100000\n");
	quota_is(3);
	has(V2 "/cpu.max", "200000 100000\n");
	quota_is(2);
	/* Version 1. */
	begin("7:cpuset:/x\n4:cpu,cpuacct:/d\n1:name=systemd:/x\n");
	has("/sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "100000\n");
	has("/sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "100000\n");
	quota_is(UINT_MAX);
	has(V1 "/d/cpu.cfs_quota_us", "-1\n");
	has(V1 "/d/cpu.cfs_period_us", "100000\n");
	quota_is(UINT_MAX);
	has(V1 "/d/cpu.cfs_quota_us", "450000\n");
	quota_is(5);
	has(V1 "/cpu.cfs_quota_us", "400000\n");
	has(V1 "/cpu.cfs_period_us", "100000\n");
	quota_is(4);
	memory_is_limited();
	begin("");
	CHECK(weft__quota("") >= 1);
	printf("ok\n");
	char command[128];
	snprintf(command, sizeof command, "rm -rf %s", root);
	return system(command) != 0;
}
