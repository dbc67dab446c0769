/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations that the files with the twins of libc_calls.def share. */
#ifndef WEFT_SRC_ACTIVITY_LIBC_CALLS_H
#define WEFT_SRC_ACTIVITY_LIBC_CALLS_H

#define WEFT_POSIX_NO_NAMES
#include <errno.h>
#include <weft/posix.h>

#include "activity/activity.h"

enum {
#define WEFT__CALL_PARKS(name, how) WEFT__CALL_##name,
#define WEFT__CALL_BLOCKS(name, why)
#include "activity/libc_calls.def"
#undef WEFT__CALL_PARKS
#undef WEFT__CALL_BLOCKS
};

/* Defines the twin of a function of libc_calls.def. */
#define TWIN(type, name, parameters)                                                                                   \
	_Static_assert(WEFT__CALL_##name >= 0, "libc_calls.def has the name");                                         \
	type weft__yielding_##name parameters WEFT__HIDDEN;                                                            \
	type weft__yielding_##name parameters
/* The twin of `name` is the twin of `of`. */
#define TWIN_TOO(type, name, of, parameters)                                                                           \
	_Static_assert(WEFT__CALL_##name >= 0, "libc_calls.def has the name");                                         \
	extern type weft__yielding_##name parameters                                                                   \
	    __attribute__((visibility("hidden"), alias("weft__yielding_" #of)));

/* Converts an argument to a word of a call. */
#define I(x) (uint64_t)(x)
#define P(x) (uintptr_t)(x)

/*
 * A twin does its work between these two calls. Meanwhile the activity waits by the runtime's I/O, and cancelling it
 * makes its call fail. weft__call_end does not return if the activity was cancelled and its call failed with ECANCELED:
 * it ends the activity. After a call that succeeded it returns, so that the result is not lost.
 */
void weft__call_begin(const char *name);
void weft__call_end(bool failed);

enum weft__call_place {
	WEFT__IN_TASK,	/* fn must not block its thread */
	WEFT__ON_HELPER /* fn may block */
};
/* Calls fn, a function of up to six integers and pointers, in a task, and parks the activity until it has returned.
 * True: *result is fn's result, and errno is the value that fn set, or unchanged. False: fn was not called; errno
 * says why. */
bool weft__call_again(enum weft__call_place place, void *fn, const uint64_t words[6], int64_t *result);
/* Makes a whole call on a helper thread. Returns its result, or -1 and errno. `error`: errno if the call succeeds. */
int64_t weft__call_by_helper(const char *name, void *fn, const uint64_t words[6], int error);
/* Waits like weft__posix_wait. */
int weft__call_wait(int fd, int events, uint64_t deadline);

/* A helper thread makes each call. */
#define HELPED(type, name, parameters, ...)                                                                            \
	TWIN(type, name, parameters)                                                                                   \
	{                                                                                                              \
		uint64_t words[6] = {__VA_ARGS__};                                                                     \
                                                                                                                       \
		return (type)weft__call_by_helper(#name, (void *)(uintptr_t)name, words, errno);                       \
	}

/* Ends the process as libc does, if a call asks for more bytes than its buffer has. */
void weft__call_check(size_t bytes, size_t room);

#endif
