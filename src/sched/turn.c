/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Turns: a task that never waits also lets other tasks run, and learns of its cancellation.
 *
 * Every operation of weft/sync.h, and the operations of weft/sched.h that need not wait, count down a word of the
 * thread (weft__spend_operation): one subtraction and one branch, without a call. Only the unlock of a mutex does not,
 * because its lock did; if the lock has called this file, it marks the mutex, so that the unlock does so in a
 * simulation. A resume does not set the word, so that a switch costs nothing; the word counts the operations of all
 * tasks of the worker. When it reaches zero, the operation asks here whether its task has run since the count began:
 * that is so if the worker's number of switches is the same as then. The operation asks before it takes a lock or has
 * any effect. If another task has run, the count begins again. If not, the task has spent its turn, of PART operations
 * at least and 2 * PART at most. Then it yields as weft_task_yield does, so that the worker looks at timers, at the
 * shared queue and at I/O when it picks the next task. If the operation is one that may wait, and the task has been
 * cancelled, the operation ends as its wait would.
 *
 * Only operations that may wait yield: their callers must not hold a mutex of the system's (pthread_mutex_lock) anyway,
 * for another task on the same thread could block on it. A call that never waits may be made with such a mutex locked,
 * and does not suspend. So a loop of such calls alone, a poll of weft_event_is_set, keeps its worker; a loop with
 * weft_task_is_cancelled in it does not.
 *
 * The task does not yield, and only checks whether it is cancelled,
 *   if a handler other than the runtime would answer: a program's own scheduler decides which task runs next, and a
 *   handler that counts yields would count these;
 *   within a tail clause, which runs in the middle of another function's operation;
 *   if a coroutine that copies its stack is in between: its frames must stay in place, because other code may hold
 *   their addresses;
 *   on a helper thread, where the task delays no other task;
 *   in a child of fork, which has no workers.
 *
 * In a simulation the word is always 0. So every operation calls this file, where the simulator may run another task
 * first; and an operation that makes other tasks ready calls it once more when it has done so. Without the second call,
 * the code from a send or an unlock up to the next operation would never be interleaved with the receiver or the next
 * owner: a sender that still writes to an object after it has handed it over would pass every seed. With both, a switch
 * is tried on each side of every effect that other tasks can see, except right after an operation that only takes (a
 * lock, a receive): no task can tell a switch there from a switch before the next operation of the section.
 *
 * Source of the ideas: budgets, tokio; the number of switches in place of a reset per resume is ours.
 */
#include "sched/sched.h"

enum {
	PART = 128,
	UNLIMITED = INT32_MAX, /* in a thread that runs no tasks */
};

/* Would the runtime itself handle a yield of the calling function? */
static bool can_yield(const struct weft__worker *w, const struct weft__task *task)
{
	const weft_coro_t *self = weft__self(), *k;

	if (w->helper || !self || weft__masked(self->view) || weft__forks() != w->rt->forks)
		return false;
	for (k = self; k && k != task->k; k = k->parent)
		if (k->flags & WEFT__COPYING)
			return false;
	return k && (self == k || weft_locate(weft_op_yield) == k);
}

/* Has the same task run since the count began, and can it yield? The count begins again, unless the task must yield at
 * its next operation that may wait: that operation asks again, and the operations before it ask now and then. They skip
 * 0 to 7 operations, a random number, so that no loop has an operation that never asks. */
static bool is_spent(struct weft__worker *w, int when)
{
	bool spent = w->turn == w->switches;

	if (spent && when != WEFT__MAY_WAIT && when != WEFT__MAY_CHECK) {
		weft__set_operations_left((int32_t)(weft__xorshift(&w->random) & 7));
		return false;
	}
	w->turn = w->switches;
	weft__set_operations_left(PART - 1);
	return spent;
}

int weft__turn_ends(int when)
{
	struct weft__worker *w = weft__worker();

	if (!w || !w->current) {
		weft__set_operations_left(w ? PART - 1 : UNLIMITED);
		return WEFT__TURN_GOES_ON;
	}
	if (w->rt->sim) {
		weft__set_operations_left(0);
		if (can_yield(w, w->current) && weft__sim_switches(w->rt, when == WEFT__LETS_GO))
			return WEFT__TURN_YIELDS;
		return ++w->turn % PART ? WEFT__TURN_GOES_ON : WEFT__TURN_LOOKS;
	}
	if (when == WEFT__LETS_GO || !is_spent(w, when))
		return WEFT__TURN_GOES_ON;
	return can_yield(w, w->current) ? WEFT__TURN_YIELDS : WEFT__TURN_LOOKS;
}

/* If the operation cannot fail, the turn is over again at the next operation, up to an operation that can. Otherwise a
 * loop of a lock and an unlock could have each of its turns end at the unlock. */
int weft__turn_result(bool fails)
{
	struct weft__worker *w = weft__worker();

	if (!w || !weft__check_cancelled())
		return 0;
	if (fails)
		return -ECANCELED;
	w->turn = w->switches;
	weft__set_operations_left(0);
	return 0;
}
