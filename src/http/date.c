/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Dates of RFC 9110: "Sun, 06 Nov 1994 08:49:37 GMT". They do not depend on the locale. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http/exchange.h"

static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void weft__http_format_date(int64_t seconds, char text[HTTP_DATE + 1])
{
	time_t time = (time_t)seconds;
	struct tm t;

	if (!gmtime_r(&time, &t) || t.tm_year > 9999 - 1900)
		memset(&t, 0, sizeof t);
	snprintf(text, HTTP_DATE + 1, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * t.tm_wday,
		 (unsigned)t.tm_mday % 100, months + 3 * t.tm_mon, (unsigned)(t.tm_year + 1900) % 10000,
		 (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
}

/* A simulation has a clock of its own, which begins at 0. */
static int64_t now_in_seconds(bool simulated)
{
	struct timespec now;

	if (simulated)
		return (int64_t)(weft_now() / 1000000000);
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec;
}

/* The coarse clock has the time of the last tick, and reading it does not read the processor's counter. */
uint64_t weft__http_after(const weft_http_t *x, uint64_t time)
{
	const uint64_t tick = 10000000; /* nanoseconds, at most */
	struct timespec now;

	if (x->simulated || time == WEFT_NEVER)
		return weft__after(time);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return weft__from((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + tick, time);
}

/* Does not suspend, so that the thread, and its cache, stay the same. */
__attribute__((noinline)) void weft__http_date(bool simulated, char text[HTTP_DATE + 1])
{
	static _Thread_local struct {
		int64_t second;
		char text[HTTP_DATE + 1];
	} cache __attribute__((tls_model("initial-exec"))) = {.second = -1};
	int64_t second = now_in_seconds(simulated);

	if (second != cache.second) {
		weft__http_format_date(second, cache.text);
		cache.second = second;
	}
	memcpy(text, cache.text, sizeof cache.text);
}

static bool name_in(const char *names, const char *name, int *index)
{
	const char *at;

	for (at = names; *at; at += 3)
		if (!strncmp(at, name, 3)) {
			*index = (int)(at - names) / 3;
			return true;
		}
	return false;
}

/* Reads the preferred format, and the two obsolete formats that a recipient must accept. */
static bool scan(const char *text, char month[4], struct tm *t, int *end)
{
	char day[10];

	*end = 0;
	if (sscanf(text, "%3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", day, &t->tm_mday, month, &t->tm_year,
		   &t->tm_hour, &t->tm_min, &t->tm_sec, end) == 7 &&
	    *end)
		return true;
	if (sscanf(text, "%9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", day, &t->tm_mday, month, &t->tm_year,
		   &t->tm_hour, &t->tm_min, &t->tm_sec, end) == 7 &&
	    *end) {
		t->tm_year += t->tm_year < 70 ? 2000 : 1900;
		return true;
	}
	return sscanf(text, "%3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", day, month, &t->tm_mday, &t->tm_hour,
		      &t->tm_min, &t->tm_sec, &t->tm_year, end) == 7 &&
	       *end;
}

bool weft__http_parse_date(weft_http_text_t text, int64_t *seconds)
{
	char copy[40], month[4];
	struct tm t = {0};
	int end;

	if (!text.data || text.length >= sizeof copy)
		return false;
	memcpy(copy, text.data, text.length);
	copy[text.length] = 0;
	if (!scan(copy, month, &t, &end) || (size_t)end != text.length || !name_in(months, month, &t.tm_mon))
		return false;
	t.tm_year -= 1900;
	*seconds = timegm(&t);
	return true;
}
