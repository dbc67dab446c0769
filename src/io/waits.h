/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft/posix.h: another way to wait. */
#ifndef WEFT_SRC_IO_WAITS_H
#define WEFT_SRC_IO_WAITS_H

#include <weft/io.h>

/*
 * How the calling thread waits in these calls, if it is neither a task nor is to block: for the layer above, which sets
 * it around a call. What the functions are given may lie on the stack, but `call` must not use `argument` after it has
 * returned, nor in another thread.
 */
struct weft__posix_waits {
	int (*wait)(int fd, int events, uint64_t deadline); /* as weft__posix_wait */
	int64_t (*call)(weft_io_call_t *fn, void *argument);
	int (*sleep)(uint64_t until);
	void (*yield)(void);
};
WEFT_API void weft__posix_set_waits(const struct weft__posix_waits *waits);

#endif
