/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft/posix.h: a way to wait that another layer supplies. */
#ifndef WEFT_SRC_IO_WAITS_H
#define WEFT_SRC_IO_WAITS_H

#include <weft/io.h>

/*
 * How the calling thread waits in these calls, if it is not a task and must not block: the layer above sets it around a
 * call. Arguments of the functions may be on the stack, but `call` must not use `argument` after it has returned, or in
 * another thread.
 */
struct weft__posix_waits {
	int (*wait)(int fd, int events, uint64_t deadline); /* like weft__posix_wait */
	int64_t (*call)(weft_io_call_t *fn, void *argument);
	int (*sleep)(uint64_t until);
	void (*yield)(void);
};
WEFT_API void weft__posix_set_waits(const struct weft__posix_waits *waits);

#endif
