/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Locks of files: see signal_safe_lock.h. */
#include "internal/signal_safe_lock.h"

struct weft__mutex_calls weft__mutex_calls = {pthread_mutex_lock, pthread_mutex_unlock};

void weft__lock_file(bool *inside, pthread_mutex_t *mutex)
{
	weft__begin(inside);
	weft__lock_unseen(mutex);
}

void weft__unlock_file(bool *inside, pthread_mutex_t *mutex)
{
	weft__unlock_unseen(mutex);
	weft__end(inside);
}
