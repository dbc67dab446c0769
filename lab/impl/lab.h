/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lab.h: code shared by every program of the lab, C or C++, on any library.
 *
 *   ./program n=1000 laps=10
 *
 * A program takes name=value parameters, times its own work, and prints one line of JSON:
 *
 *   {"cpu": seconds, "wall": seconds, "ops": operations, "result": "the answer", more figures…}
 *
 * CPU time is that of the process (all threads), so other programs on the machine disturb little. Set-up and tear-down
 * that a description does not mention stay outside lab_start and lab_stop.
 */
#ifndef LAB_H
#define LAB_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAB_NOINLINE __attribute__((noinline))

/* Makes a value and all memory opaque to the optimizer; no instruction. */
#define LAB_KEEP(value) __asm__ volatile("" : "+r"(value) : : "memory")
/* Like LAB_KEEP, but without the memory: only hides the origin of the value from the compiler. */
#define LAB_HIDE(value) __asm__("" : "+r"(value))

/*
 * Nanoseconds in integers: floating-point arithmetic here would set the sticky "inexact" flag of the thread, and a
 * library that switches MXCSR (Boost.Context does) then changes it at every switch, at 50 ns instead of 3.
 */
struct lab_clock {
	int64_t cpu, wall;
};

static struct lab_clock lab_began, lab_spent;

static inline int64_t lab_now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Time is measured between lab_start and lab_stop; several intervals add up. */
static inline void lab_start(void)
{
	lab_began.wall = lab_now(CLOCK_MONOTONIC);
	lab_began.cpu = lab_now(CLOCK_PROCESS_CPUTIME_ID);
}

static inline void lab_stop(void)
{
	lab_spent.cpu += lab_now(CLOCK_PROCESS_CPUTIME_ID) - lab_began.cpu;
	lab_spent.wall += lab_now(CLOCK_MONOTONIC) - lab_began.wall;
}

static inline void lab_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
	exit(2);
}

/* Reports that this system lacks something that the program needs. The lab skips the program. */
#define lab_cannot(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(LAB_CANNOT))
enum { LAB_CANNOT = 77 };

/* Returns the text after "name=", or NULL. */
static inline const char *lab_text(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);
	int i;

	for (i = 1; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}

static inline int64_t lab_number(int argc, char **argv, const char *name, int64_t otherwise)
{
	const char *text = lab_text(argc, argv, name);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

static inline bool lab_is(int argc, char **argv, const char *name, const char *value)
{
	const char *text = lab_text(argc, argv, name);

	return text && !strcmp(text, value);
}

/* Returns a field of /proc/FILE that is given in kB, in bytes; 0 if it does not exist. */
static inline uint64_t lab_process_bytes(const char *file, const char *field)
{
	char line[256];
	uint64_t kib = 0;
	FILE *stream;

	snprintf(line, sizeof(line), "/proc/%s", file);
	stream = fopen(line, "r");
	if (!stream)
		return 0;
	while (fgets(line, sizeof(line), stream))
		if (!strncmp(line, field, strlen(field)))
			kib = strtoull(line + strlen(field), NULL, 10);
	fclose(stream);
	return kib * 1024;
}

static inline uint64_t lab_resident(void)
{
	return lab_process_bytes("self/smaps_rollup", "Rss:");
}

static inline uint64_t lab_page_tables(void)
{
	return lab_process_bytes("self/status", "VmPTE:");
}

/* Returns false when the process uses `bytes` more than `resident_before`. Approximate, because it is called often. */
static inline bool lab_has_room(uint64_t resident_before, uint64_t bytes)
{
	uint64_t pages = 0;
	FILE *stream = fopen("/proc/self/statm", "r");

	if (!stream || fscanf(stream, "%*u %" SCNu64, &pages) != 1)
		lab_die("/proc/self/statm");
	fclose(stream);
	return pages * 4096 < resident_before + bytes;
}

/* `more`: further members of the JSON object, each preceded by a comma; or "". */
static inline int lab_report_more(uint64_t ops, const char *result, const char *more)
{
	printf("{\"cpu\": %.9f, \"wall\": %.9f, \"ops\": %" PRIu64 ", \"result\": \"%s\"%s}\n",
	       (double)lab_spent.cpu * 1e-9, (double)lab_spent.wall * 1e-9, ops, result, more);
	return 0;
}

static inline int lab_report_text(uint64_t ops, const char *result)
{
	return lab_report_more(ops, result, "");
}

static inline int lab_report(uint64_t ops, int64_t result)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, result);
	return lab_report_text(ops, text);
}

/* Reports the memory of `count` suspended coroutines, given the process's memory before they were created. */
static inline int lab_report_memory(uint64_t count, uint64_t resident_before, uint64_t tables_before, int64_t result)
{
	char text[32], more[160];
	double each = 1.0 / (double)count;
	double resident = (double)(lab_resident() - resident_before) * each;
	double tables = (double)(lab_page_tables() - tables_before) * each;

	snprintf(text, sizeof(text), "%" PRId64, result);
	snprintf(more, sizeof(more), ", \"bytes\": %.1f, \"resident\": %.1f, \"page_tables\": %.1f", resident + tables,
		 resident, tables);
	return lab_report_more(count, text, more);
}

#endif /* LAB_H */
