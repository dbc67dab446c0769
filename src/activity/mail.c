/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mailboxes. An activity that must wait adds a turn to the queue of receivers or of senders. A message passes directly
 * from one turn to the other, so no activity has to try again. A turn is removed from its queue under the lock, by the
 * thread that serves it, or by its own group's thread when its activity is cancelled. The thread that removed it
 * decides.
 */
#include <stdlib.h>

#include "activity/activity.h"

struct weft__mail_turn {
	weft_activity_waker_t waker;
	weft_activity_mail_t *mail;
	void *message;
	struct weft__mail_turn *next, *before; /* a ring */
	int result;
	bool sends;
};

static void lock(weft_activity_mail_t *m)
{
	/* Acquire: pairs with unlock. */
	while (__atomic_exchange_n(&m->lock, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&m->lock, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
	weft__take_over(m);
}

static void unlock(weft_activity_mail_t *m)
{
	weft__hand_over(m);
	__atomic_store_n(&m->lock, 0, __ATOMIC_RELEASE);
}

void weft_activity_mail_init(weft_activity_mail_t *m, size_t capacity, unsigned flags)
{
	*m = (weft_activity_mail_t){.flags = flags, .capacity = capacity ? capacity : 1};
}

void weft_activity_mail_end(weft_activity_mail_t *m)
{
	free(m->ring);
	m->ring = NULL;
	m->room = m->count = 0;
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static bool grow(weft_activity_mail_t *m)
{
	size_t room = m->room ? 2 * m->room : 8, i;
	void **ring = malloc(room * sizeof *ring);

	if (!ring)
		return false;
	for (i = 0; i < m->count; i++)
		ring[i] = m->ring[(m->head + i) % m->room];
	free(m->ring);
	m->ring = ring;
	m->room = room;
	m->head = 0;
	return true;
}

static int add(weft_activity_mail_t *m, void *message)
{
	if (m->count == m->room && !grow(m))
		return -ENOMEM;
	m->ring[(m->head + m->count++) % m->room] = message;
	return 0;
}

static void *take(weft_activity_mail_t *m)
{
	void *message = m->ring[m->head];

	m->head = (m->head + 1) % m->room;
	m->count--;
	return message;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* A queue is a ring: its newest turn is linked to its oldest. */
static void remove_turn(struct weft__mail_turn **queue, struct weft__mail_turn *turn)
{
	turn->next->before = turn->before;
	turn->before->next = turn->next;
	if (*queue == turn)
		*queue = turn->next == turn ? NULL : turn->next;
	turn->next = NULL;
}

static struct weft__mail_turn *take_turn(struct weft__mail_turn **queue)
{
	struct weft__mail_turn *turn = *queue;

	if (turn)
		remove_turn(queue, turn);
	return turn;
}

static void add_turn(struct weft__mail_turn **queue, struct weft__mail_turn *turn)
{
	struct weft__mail_turn *oldest = *queue ? *queue : turn;

	if (!*queue)
		oldest->before = *queue = turn;
	turn->next = oldest;
	turn->before = oldest->before;
	oldest->before->next = turn;
	oldest->before = turn;
}

static void serve(struct weft__mail_turn *turn, int result)
{
	turn->result = result;
	weft_activity_wake(&turn->waker);
}

/* The caller holds the lock. */
static int send_now(weft_activity_mail_t *m, void *message)
{
	struct weft__mail_turn *turn;

	if (m->closed)
		return -EPIPE;
	turn = take_turn(&m->receivers);
	if (turn) {
		turn->message = message;
		return serve(turn, 0), 0;
	}
	return m->count < m->capacity ? add(m, message) : -EAGAIN;
}

static int receive_now(weft_activity_mail_t *m, void **message)
{
	struct weft__mail_turn *turn;

	if (!m->count)
		return m->closed ? -EPIPE : -EAGAIN;
	*message = take(m);
	turn = take_turn(&m->senders);
	if (turn)
		serve(turn, add(m, turn->message));
	return 0;
}

int weft_activity_try_send(weft_activity_mail_t *m, void *message)
{
	int result;

	lock(m);
	result = send_now(m, message);
	unlock(m);
	return result;
}

int weft_activity_try_receive(weft_activity_mail_t *m, void **message)
{
	int result;

	lock(m);
	result = receive_now(m, message);
	unlock(m);
	return result;
}

void weft_activity_mail_close(weft_activity_mail_t *m)
{
	struct weft__mail_turn *turn;

	lock(m);
	m->closed = true;
	while ((turn = take_turn(&m->senders)) || (turn = take_turn(&m->receivers)))
		serve(turn, -EPIPE);
	unlock(m);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

static int wait_in(weft_activity_mail_t *m, struct weft__mail_turn *turn)
{
	weft_activity_t *self = weft__activity_hot.self;

	turn->waker = (weft_activity_waker_t){.local = !(m->flags & WEFT_ACTIVITY_SHARED)};
	turn->mail = m;
	turn->next = NULL;
	(void)weft__activity_park_begin(&turn->waker);
	self->state = WEFT__FOR_MAIL;
	self->object = turn;
	return -EINPROGRESS;
}

static struct weft__mail_turn *new_turn(bool sends, void *message)
{
	struct weft__activity_hot *hot = &weft__activity_hot;
	struct weft__mail_turn *turn = hot->self ? weft__record_take(hot->group, sizeof *turn) : NULL;

	if (turn) {
		turn->sends = sends;
		turn->message = message;
	}
	return turn;
}

int weft__activity_send_begin(weft_activity_mail_t *m, void *message)
{
	struct weft__mail_turn *turn;
	int result;

	lock(m);
	result = send_now(m, message);
	if (result == -EAGAIN) {
		turn = new_turn(true, message);
		result = turn ? wait_in(m, turn) : weft__activity_hot.self ? -ENOMEM : -EINPROGRESS;
		if (turn)
			add_turn(&m->senders, turn);
	}
	unlock(m);
	return result;
}

int weft__activity_receive_begin(weft_activity_mail_t *m, void **message)
{
	struct weft__mail_turn *turn;
	int result;

	lock(m);
	result = receive_now(m, message);
	if (result == -EAGAIN) {
		turn = new_turn(false, NULL);
		result = turn ? wait_in(m, turn) : weft__activity_hot.self ? -ENOMEM : -EINPROGRESS;
		if (turn)
			add_turn(&m->receivers, turn);
	}
	unlock(m);
	return result;
}

int weft__activity_send_end(void)
{
	struct weft__mail_turn *turn = weft__activity_hot.self->object;
	int result = turn->result;

	weft__activity_pop(turn);
	return result;
}

int weft__activity_receive_end(void **message)
{
	struct weft__mail_turn *turn = weft__activity_hot.self->object;
	int result = turn->result;

	if (!result)
		*message = turn->message;
	weft__activity_pop(turn);
	return result;
}

const weft_activity_mail_t *weft__mail_of(const struct weft__mail_turn *turn)
{
	return turn->mail;
}

/* Removes the turn of an activity that is cancelled. False: the turn has been served, and its waker is being woken. */
bool weft__mail_leave(struct weft__mail_turn *turn)
{
	weft_activity_mail_t *m = turn->mail;
	bool there;

	lock(m);
	there = turn->next;
	if (there) {
		remove_turn(turn->sends ? &m->senders : &m->receivers, turn);
		(void)weft__waker_withdraw(&turn->waker);
		turn->waker.group->outside -= !turn->waker.local;
	}
	unlock(m);
	return there;
}

/* Called in a child of fork, where the activities that wait do not exist. */
void weft__mail_forked(struct weft__mail_turn *turn)
{
	turn->mail->senders = turn->mail->receivers = NULL;
}
