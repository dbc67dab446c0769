/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * million [COUNT [BYTES]]: so many suspended coroutines, each on a guarded stack of 256 KiB of the default policy, in
 * one process; what they cost in resident memory and page tables, at most BYTES each. All are continued and deleted
 * afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

static void *waits(void *argument)
{
	return weft_suspend(argument);
}

static void fail(const char *why, size_t i)
{
	fprintf(stderr, "million: %s (%zu)\n", why, i);
	exit(1);
}

/* KiB from /proc/self/status */
static size_t status(const char *field)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, field, strlen(field)))
			kib = strtoul(line + strlen(field) + 1, NULL, 10);
	if (file)
		fclose(file);
	return kib;
}

static size_t mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	size_t lines = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* The kernel refuses to write to a guard. */
static bool guarded(weft_coro_t *k)
{
	static int ends[2];
	char *low = (char *)k->slot - weft_stack_usable(k);
	bool refused;
	char byte;

	if (!ends[1] && pipe(ends))
		fail("pipe", 0);
	if (write(ends[1], "x", 1) != 1)
		fail("write", 0);
	refused = read(ends[0], low - 1, 1) < 0;
	if (refused && read(ends[0], &byte, 1) != 1)
		fail("read", 0);
	return refused;
}

/* A million need 6 GB, and guards that are no mappings. */
static void skip_if_impossible(size_t n)
{
	FILE *memory = fopen("/proc/meminfo", "r");
	size_t available = 0;
	char line[128];

	while (memory && fgets(line, sizeof line, memory))
		sscanf(line, "MemAvailable: %zu", &available);
	if (memory)
		fclose(memory);
	if (strcmp(weft_guard_mechanism(), "madvise"))
		printf("skip - %zu coroutines: guards cost a mapping each here: needs Linux 6.13 or later\n", n);
	else if (available >> 10 < n * 6 / 1000)
		printf("skip - %zu coroutines: needs %zu MB of free memory, there are %zu\n", n, n * 6 / 1000,
		       available >> 10);
	else
		return;
	exit(77);
}

int main(int count, char **arguments)
{
	size_t n = count > 1 ? strtoul(arguments[1], NULL, 0) : 1000000,
	       limit = count > 2 ? strtoul(arguments[2], NULL, 0) : 4800;
	weft_attr_t attr = {.stack_size = 256 << 10};
	weft_coro_t **k = calloc(n, sizeof *k);
	size_t before, each;
	weft_stack_stats_t stats;

	if (!k)
		fail("calloc", n);
	if (n >= 1000000)
		skip_if_impossible(n);
	memset(k, 1, n * sizeof *k); /* resident from the start */
	weft_delete(weft_create_with(waits, NULL, &attr));
	before = status("VmRSS:") + status("VmPTE:");
	for (size_t i = 0; i < n; i++) {
		k[i] = weft_create_with(waits, (void *)i, &attr);
		if (!k[i])
			fail("weft_create_with", i);
		if (weft_resume(k[i], NULL, WEFT_HANDLE_NONE).payload != (void *)i)
			fail("wrong payload", i);
	}
	each = (status("VmRSS:") + status("VmPTE:") - before) * 1024 / n;
	printf("%zu suspended coroutines, %s, guards by %s: %zu bytes each (%zu MiB resident, %zu MiB page tables), "
	       "%zu mappings\n",
	       n, weft_policy_name(weft_default_policy()), weft_guard_mechanism(), each, status("VmRSS:") >> 10,
	       status("VmPTE:") >> 10, mappings());
	for (size_t i = 0; i < n; i += n / 1000 + 1)
		if (!guarded(k[i]))
			fail("not guarded", i);
	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	if (stats.live != n || stats.high_water < n)
		fail("statistics", stats.live);
	for (size_t i = 0; i < n; i++) {
		if (weft_resume(k[i], (void *)(i + 1), WEFT_HANDLE_NONE).payload != (void *)(i + 1))
			fail("wrong value", i);
		weft_delete(k[i]);
	}
	free(k);
	if (each > limit)
		fail("too many bytes each", each);
	return 0;
}
