/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parsing numbers of bytes and times from environment variables. */
#ifndef WEFT_SRC_BYTES_H
#define WEFT_SRC_BYTES_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "internal/message.h"

/* Parse "65536", "64K", "1M" or "2G", up to `end`, which is '\0' or another character; 0 if the text has another
 * form. */
static inline size_t weft__bytes_in(const char *text, char end)
{
	static const char units[] = "KMG";
	const char *unit;
	size_t bytes;
	char *at;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	bytes = strtoull(text, &at, 10);
	unit = *at ? strchr(units, *at & ~0x20) : NULL;
	if (unit) {
		int shift = 10 * (int)(unit - units + 1);

		if (bytes > SIZE_MAX >> shift)
			return 0;
		bytes <<= shift;
		at++;
	}
	return *at != end || errno ? 0 : bytes;
}

/* WEFT_STUCK in nanoseconds; 0: it is not set, or is 0. */
static inline uint64_t weft__stuck_after(void)
{
	const char *said = getenv("WEFT_STUCK");
	uint64_t ms = said ? weft__bytes_in(said, '\0') : 0;

	if (ms && ms <= UINT64_MAX / 1000000)
		return ms * 1000000;
	if (said && *said && strcmp(said, "0") != 0)
		weft__say_ignored("WEFT_STUCK", said, "say a number of milliseconds (100)");
	return 0;
}

#endif
