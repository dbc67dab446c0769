/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Channels and select.
 *
 * Invariants, under the lock: receivers wait only if there is no item and no sender waits; senders wait only if there
 * is no room and no receiver waits. Nobody waits at a closed channel. So an operation either finds its partner at the
 * head of the other queue, or an item, or room, or it waits.
 *
 * A select takes the locks of all its channels, in the order of their addresses, then looks for a case that can
 * complete, and puts its places into the queues only if there is none. So it is never in one queue while it completes
 * another case, and two selects that are each other's partners need not undo a claim: the second select does the
 * exchange.
 *
 * If the channel ends a wait, the waiter does not touch the channel again. If a deadline, a cancellation or another
 * case of a select ends the wait, the waiter locks the channel once more to leave its queue. Until then its place is in
 * a queue, or counted in `leaving` if a sender, a receiver or weft_chan_close removed it first. So a channel with empty
 * queues and `leaving` 0 can be freed.
 */
#include "sync/queue.h"

#include <stdlib.h>
#include <string.h>

struct weft_chan {
	struct weft__queue receivers; /* its lock is the channel's */
	struct weft__queue senders;   /* its lock is not used */
	size_t bytes, capacity, count, first, room;
	size_t leaving; /* places in no queue whose owners still lock the channel */
	char *items;	/* a ring of `room` items, the oldest at `first` */
	bool closed;
};

enum { FIRST_ROOM = 16 };

weft_chan_t *weft_chan_make(size_t bytes, size_t capacity)
{
	weft_chan_t *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->bytes = bytes;
	c->capacity = capacity;
	c->room = capacity == WEFT_UNBOUNDED ? 0 : capacity;
	c->items = c->room ? calloc(c->room, bytes ? bytes : 1) : NULL;
	if (c->room && !c->items) {
		free(c);
		return NULL;
	}
	return c;
}

int weft__chan_free(weft_chan_t *c)
{
	bool waited_for;

	if (!c)
		return 0;
	lock(&c->receivers);
	waited_for =
	    c->receivers.first || c->senders.first || (c->leaving && WEFT_NO_CANARY(channel_forgets_who_leaves));
	unlock(&c->receivers);
	if (waited_for)
		return -EBUSY;
	free(c->items);
	free(c);
	return 0;
}

size_t weft__chan_count(weft_chan_t *c)
{
	size_t count;

	if (!c)
		return 0;
	lock(&c->receivers);
	count = c->count;
	unlock(&c->receivers);
	return count;
}

bool weft__chan_wants_item(const weft_chan_t *c)
{
	return c && c->bytes;
}

static void copy(const weft_chan_t *c, void *to, const void *from)
{
	if (c->bytes == sizeof(void *))
		memcpy(to, from, sizeof(void *)); /* no call */
	else if (c->bytes)
		memcpy(to, from, c->bytes);
}

static char *item_at(const weft_chan_t *c, size_t i)
{
	i += c->first;
	return c->items + (i < c->room ? i : i - c->room) * c->bytes;
}

/* Double the room of an unbounded channel. */
static bool grow(weft_chan_t *c)
{
	size_t room = c->room ? 2 * c->room : FIRST_ROOM, i;
	char *items = calloc(room, c->bytes ? c->bytes : 1);

	if (!items)
		return false;
	for (i = 0; i < c->count; i++)
		copy(c, items + i * c->bytes, item_at(c, i));
	free(c->items);
	c->items = items;
	c->room = room;
	c->first = 0;
	return true;
}

/* The other side of the exchange is done. */
static void done(struct weft__place *partner, struct weft__place **completed)
{
	partner->status = 0;
	*completed = partner;
}

/* The caller holds the lock. 1, -EPIPE, -ENOMEM, or 0 if the caller has to wait. *completed: the place whose wait is
 * over, NULL: none. Inline, and so is `receive`: the call costs as much as checking the arguments. */
static inline __attribute__((always_inline)) int send(weft_chan_t *c, const void *item, struct weft__place **completed)
{
	struct weft__place *receiver;

	*completed = NULL;
	if (c->closed)
		return -EPIPE;
	if (WEFT_CANARY(channel_loses_items) && c->count == 5)
		return 1;
	receiver = claim_first_counting(&c->receivers, &c->leaving);
	if (receiver) {
		copy(c, receiver->value, item);
		done(receiver, completed);
		return 1;
	}
	if (c->count == c->capacity)
		return 0;
	if (c->count == c->room && !grow(c))
		return -ENOMEM;
	copy(c, item_at(c, c->count), item);
	c->count++;
	if (WEFT_CANARY(channel_item_overtakes) && c->count == 2 && c->room == 2)
		c->first = 1 - c->first; /* the newest item is received first */
	return 1;
}

static void drop_first(weft_chan_t *c)
{
	if (++c->first == c->room)
		c->first = 0;
	c->count--;
}

static inline __attribute__((always_inline)) int receive(weft_chan_t *c, void *item, struct weft__place **completed)
{
	struct weft__place *sender;
	bool had = c->count;

	*completed = NULL;
	if (had) {
		copy(c, item, item_at(c, 0));
		drop_first(c);
	}
	sender = claim_first_counting(&c->senders, &c->leaving);
	if (sender) {
		copy(c, had ? item_at(c, c->count++) : item, sender->value);
		done(sender, completed);
	}
	if (had || sender)
		return 1;
	return c->closed ? -EPIPE : 0;
}

int weft__chan_send(weft_chan_t *c, const void *item, struct weft__queued *w, uint64_t deadline)
{
	struct weft__place *completed;
	int result;

	if (weft__unlikely(!c))
		return -EINVAL;
	lock(&c->receivers);
	result = send(c, item, &completed);
	if (!result && deadline) {
		lose_the_lock(&c->receivers, WEFT_CANARY(channel_waits_too_late));
		weft__queued_init(w, "channel, to send", c, deadline);
		w->place.value = (void *)(uintptr_t)item;
		w->place.sends = true;
		add(&c->senders, &w->place);
	}
	unlock(&c->receivers);
	complete(completed);
	return result;
}

int weft__chan_receive(weft_chan_t *c, void *item, struct weft__queued *w, uint64_t deadline)
{
	struct weft__place *completed;
	int result;

	if (weft__unlikely(!c))
		return -EINVAL;
	lock(&c->receivers);
	result = receive(c, item, &completed);
	if (!result && deadline) {
		lose_the_lock(&c->receivers, WEFT_CANARY(channel_waits_too_late));
		weft__queued_init(w, "channel, to receive", c, deadline);
		w->place.value = item;
		w->place.sends = false;
		add(&c->receivers, &w->place);
	}
	unlock(&c->receivers);
	complete(completed);
	return result;
}

/* The place is in one of the two queues, or counted in `leaving`. */
void weft__chan_leave(weft_chan_t *c, struct weft__place *place)
{
	lock(&c->receivers);
	if (place->queued)
		take_out(place->sends ? &c->senders : &c->receivers, place);
	else
		c->leaving--;
	unlock(&c->receivers);
}

int weft__chan_close(weft_chan_t *c)
{
	struct weft__place *receivers = NULL, *senders = NULL, *place;
	bool closed;

	if (!c)
		return -EINVAL;
	lock(&c->receivers);
	closed = c->closed;
	c->closed = true;
	if (WEFT_CANARY(channel_close_loses_an_item) && c->count > 1)
		c->count--;
	if (!closed) {
		receivers = claim_all_counting(&c->receivers, &c->leaving);
		senders = claim_all_counting(&c->senders, &c->leaving);
	}
	for (place = receivers; place; place = place->next)
		place->status = -EPIPE;
	for (place = senders; place; place = place->next)
		place->status = -EPIPE;
	unlock(&c->receivers);
	complete_all(receivers);
	complete_all(senders);
	return closed ? -EALREADY : 0;
}

/* ---- select ---------------------------------------------------------------------------------------------------- */

/* Collect the cases' channels in the order of their addresses, each once. */
static unsigned channels_of(const weft_case_t *cases, unsigned count, weft_chan_t *chans[WEFT_CASES])
{
	unsigned n = 0, i, j;

	for (i = 0; i < count; i++) {
		weft_chan_t *c = cases[i].chan;

		for (j = n; j && chans[j - 1] > c; j--)
			;
		if (!c || (j && chans[j - 1] == c))
			continue;
		memmove(&chans[j + 1], &chans[j], (n - j) * sizeof *chans);
		chans[j] = c;
		n++;
	}
	return n;
}

static void lock_all(weft_chan_t **chans, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		lock(&chans[i]->receivers);
}

static void unlock_all(weft_chan_t **chans, unsigned count)
{
	while (count)
		unlock(&chans[--count]->receivers);
}

/* weft__awaited is the first field of the object that `ready` points to. */
static struct weft__awaited *awaited_of(const weft_case_t *c)
{
	return (struct weft__awaited *)c->ready;
}

/* 1, -EPIPE, -ENOMEM, or 0 if the case has to wait. */
static int try(weft_case_t *c, struct weft__place **completed)
{
	if (c->chan)
		return c->send ? send(c->chan, c->send, completed) : receive(c->chan, c->receive, completed);
	if (c->event)
		return weft__event_is_set(c->event);
	if (c->sem)
		return weft__sem_enter(c->sem, NULL, 1);
	if (c->from)
		return weft__broadcast_receive(c->from, c->receive, NULL);
	if (c->task)
		return weft__has_ended(c->task);
	return c->ready && awaited_of(c)->status;
}

static int status_of(int result)
{
	return result < 0 ? result : 0;
}

/* Completes the first case that can complete, from `first` on, and returns its index; -EAGAIN: there is none. */
static int try_all(weft_case_t *cases, unsigned count, unsigned first, struct weft__place **completed)
{
	unsigned i, at;
	int result;

	for (i = 0; i < count; i++) {
		at = first + i < count ? first + i : first + i - count;
		result = try(&cases[at], completed);
		if (!result)
			continue;
		cases[at].status = cases[at].ready ? awaited_of(&cases[at])->status : status_of(result);
		return (int)at;
	}
	return -EAGAIN;
}

static void add_all(weft_case_t *cases, unsigned count, weft_waiter_t *w)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		weft_case_t *c = &cases[i];

		c->place = (struct weft__place){.waiter = w, .index = (int)i, .sends = c->send != NULL};
		c->place.value = c->send ? (void *)(uintptr_t)c->send : c->receive;
		if (!c->chan)
			c->place.value = (void *)1; /* one permit */
		else
			add(c->send ? &c->chan->senders : &c->chan->receivers, &c->place);
	}
}

/* Enter the queue of an object that is no channel. 1: the case waits; 0: it can complete now; -EBUSY, -EDEADLK. */
static int enter_other(weft_case_t *c, weft_waiter_t *w)
{
	int waits;

	if (c->event)
		return weft__event_enter(c->event, &c->place);
	if (c->sem)
		return !weft__sem_enter(c->sem, &c->place, 1);
	if (c->from)
		return !weft__broadcast_look(c->from, c->receive, &c->place);
	waits = c->task ? weft__join_enter(c->task, w, c->place.index) : 1;
	c->place.queued = c->task && waits > 0;
	return waits;
}

/*
 * Events, semaphores and tasks have locks of their own, and need not be checked together with the channels: an
 * operation on them involves a single select. So their queues are entered one after the other, when the places are in
 * the channels' queues. A case that can complete by then claims the waiter itself. If another case has claimed it
 * before, the permit that a semaphore granted is returned.
 */
static void enter_others(weft_case_t *cases, unsigned count, weft_waiter_t *w)
{
	unsigned i;
	int waits;

	for (i = 0; i < count; i++) {
		weft_case_t *c = &cases[i];

		waits = c->chan ? 1 : enter_other(c, w);
		if (waits > 0)
			continue;
		if (weft_waiter_claim(w, waits < 0 ? waits : (int)i)) {
			/* An item that weft__broadcast_look has seen stays: nobody else uses the receiver. */
			if (c->from && !c->event && !c->sem)
				c->place.status = status_of(weft__broadcast_receive(c->from, c->receive, NULL));
			weft_waiter_complete(w);
		} else if (c->sem && !c->event && WEFT_NO_CANARY(select_keeps_a_permit))
			(void)weft__sem_give(c->sem, 1);
		return;
	}
}

/* A simulation draws from its seed, so that different seeds try different cases first and an order of choices repeats
 * them. */
unsigned weft__select_draw(unsigned count)
{
	static __thread uint64_t of_thread = 1;
	struct weft__worker *w = weft__worker();
	uint64_t *state = w && w->random ? &w->random : &of_thread;

	return (unsigned)((w && w->rt->sim ? weft__sim_random(w->rt) : weft__xorshift(state)) % count);
}

/* -EINVAL: a case receives into NULL. -EINPROGRESS: there are objects of higher layers. */
static int check(const weft_case_t *cases, unsigned count)
{
	int result = 0;
	unsigned i;

	for (i = 0; i < count; i++) {
		const weft_case_t *c = &cases[i];

		if (!c->receive && (c->chan ? !c->send && c->chan->bytes : c->from != NULL))
			return -EINVAL;
		if (c->ready)
			result = -EINPROGRESS;
	}
	return result;
}

struct weft__awaited *weft__select_awaited(const weft_case_t *cases, unsigned count, bool *wrong)
{
	struct weft__awaited *first = NULL, *a;
	unsigned i;

	for (i = 0; i < count; i++)
		if (cases[i].ready)
			awaited_of(&cases[i])->index = -1;
	for (i = 0; i < count; i++) {
		a = cases[i].ready ? awaited_of(&cases[i]) : NULL;
		if (!a)
			continue;
		*wrong |= a->index >= 0;
		a->index = (int)i;
		a->next = first;
		first = a;
	}
	return first;
}

int weft__select_enter(weft_case_t *cases, unsigned count, weft_waiter_t *w, unsigned first, bool looked)
{
	weft_chan_t *chans[WEFT_CASES];
	unsigned n = channels_of(cases, count, chans);
	struct weft__place *completed = NULL;
	int result = check(cases, count);

	if (result == -EINVAL || (result && !looked))
		return result;
	lock_all(chans, n);
	result = try_all(cases, count, first, &completed);
	if (n)
		lose_the_lock(&chans[0]->receivers, WEFT_CANARY(select_waits_too_late));
	if (result == -EAGAIN && w)
		add_all(cases, count, w);
	unlock_all(chans, n);
	complete(completed);
	if (result == -EAGAIN && w)
		enter_others(cases, count, w);
	return result;
}

void weft__select_leave(weft_case_t *cases, unsigned count, int done)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		weft_case_t *c = &cases[i];

		if ((int)i == done) {
			c->status = c->ready ? awaited_of(c)->status : c->place.status;
			continue;
		}
		if (c->chan)
			weft__chan_leave(c->chan, &c->place);
		else if (c->event)
			weft__event_leave(c->event, &c->place);
		else if (c->sem)
			weft__sem_leave(c->sem, &c->place);
		else if (c->from)
			weft__queue_leave(&c->from->from->queue, &c->place);
		else if (c->place.queued)
			(void)weft__join_end(c->task, c->place.waiter);
	}
}
