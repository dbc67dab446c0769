/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compilers must warn at each of these 16 calls, which have NULL for an object. */
#include <weft/sync.h>

void all(void);
void all(void)
{
	weft_mutex_t mutex = {0};

	(void)!weft_mutex_try_lock(NULL);
	weft_mutex_lock(NULL);
	weft_mutex_unlock(NULL);
	weft_cond_wait(NULL, &mutex);
	weft_cond_signal(NULL);
	weft_rwlock_read(NULL);
	weft_rwlock_unlock(NULL);
	weft_sem_take(NULL);
	weft_sem_give(NULL, 1);
	weft_event_set(NULL);
	weft_event_wait(NULL);
	weft_group_done(NULL);
	weft_group_wait(NULL);
	weft_barrier_wait(NULL);
	weft_future_set(NULL, NULL, 0);
	weft_future_get(NULL, NULL);
}
