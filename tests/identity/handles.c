/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles, in every way, the effects that another object performs. */
#include "declared.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h> /* declares a send(), too */

static const struct performs *by;
static int faults;

static void expect(int line, int got, int wanted)
{
	if (got == wanted)
		return;
	fprintf(stderr, "handles.c:%d: %d, not %d\n", line, got, wanted);
	faults++;
}
#define EXPECT(got, wanted) expect(__LINE__, got, wanted)

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, put_t value)
{
	*(int *)state = value;
}

static int on_send(void *state, const char *text, bool more)
{
	(void)state;
	return more ? (int)strlen(text) : -1;
}

static void *on_fail(void *state, int code)
{
	*(int *)state = -code;
	return state;
}

static void *general_get(void *state, weft_resumption_t *k)
{
	return weft_tail_continue(get, k, *(int *)state);
}

static void *general_put(void *state, weft_resumption_t *k, put_t value)
{
	*(int *)state = value;
	return weft_continue(put, k);
}

static int generalizes(void *unused)
{
	(void)unused;
	return weft_escalate(get);
}

static int forwards(void *unused)
{
	(void)unused;
	weft_forward();
	return 0;
}

WEFT_HANDLER(tails, weft_tail(get, on_get), weft_tail(put, on_put), weft_tail(net_send, on_send),
	     weft_abort(fail, on_fail));
WEFT_HANDLER(general, weft_tail(get, generalizes), weft_general(get, general_get), weft_general(put, general_put));
WEFT_HANDLER(forward, weft_tail(get, forwards));
WEFT_HANDLER(requested, weft_requested(get), weft_requested(put));

/* Each effect several times, because the second search takes a different path. */
static void *body(void *sum)
{
	for (int i = 0; i < 3; i++) {
		*(int *)sum += by->get();
		by->put(by->get() + 1);
	}
	*(int *)sum += by->get_located();
	return sum;
}

static void *fails(void *unused)
{
	by->fail(8);
	return unused;
}

static void *sends(void *sum)
{
	*(int *)sum = by->send();
	return sum;
}

static void *forwarded(void *sum)
{
	return weft_run(&forward, NULL, body, sum);
}

/* Answers a request under these handlers. */
static void answer(weft_request_t r, int *value)
{
	EXPECT(weft_op(state, r) >= 0, 1);
	if (weft_is(get, r))
		weft_reply(get, r, *value);
	else
		*value = weft_args(put, r)->value;
}

static int loop(weft_handles_t handles, int value)
{
	int sum = 0;
	weft_coro_t *k = weft_create(body, &sum);
	weft_request_t r;

	for (r = weft_resume(k, NULL, handles); !weft_returned(r); r = weft_resume(k, NULL, handles))
		answer(r, &value);
	weft_delete(k);
	return sum;
}

static int requests(int value)
{
	int sum = 0;
	weft_coro_t *k = weft_create(body, &sum);
	weft_request_t r;

	while (r = weft_resume_under(k, NULL, &requested, NULL), !weft_returned(r))
		answer(r, &value);
	weft_delete(k);
	return sum;
}

static int run(const weft_handler_t *handler, weft_fn_t *fn, int value)
{
	int sum = 0;

	weft_run(handler, &value, fn, &sum);
	return sum;
}

/* Inside of a handler that knows the effect by the performer's address. */
static void *inside(void *value)
{
	return (void *)(intptr_t)loop(weft_handles(state), *(int *)value);
}

static int by_default(void)
{
	return 11;
}

static int exceptions(void)
{
	int value = 0;
	weft_coro_t *k;
	weft_request_t r;

	weft_run(&tails, &value, fails, NULL);
	k = weft_create(fails, NULL);
	r = weft_resume(k, NULL, weft_handles(fail));
	EXPECT(weft_is(fail, r) ? weft_args(fail, r)->code : 0, 8);
	weft_delete(k);
	return value;
}

int handles(const struct performs *performs)
{
	int of_1 = 1 + 2 + 3 + 4; /* the values that body adds, from 1 on */
	int value = 1;

	by = performs;
	EXPECT(run(&tails, body, 1), of_1);
	EXPECT(run(&general, body, 1), of_1);
	EXPECT(loop(weft_handles(state), 1), of_1);
	EXPECT(loop(weft_handles(get, put), 1), of_1);
	EXPECT(loop(weft_handles(net_socket, state), 1), of_1);
	EXPECT(requests(1), of_1);
	EXPECT(run(&tails, forwarded, 1), of_1);
	EXPECT(run(&tails, sends, 1), 4);
	EXPECT((int)(intptr_t)weft_run(&tails, &value, inside, &value), of_1);
	EXPECT(exceptions(), -8);
	weft_set_default(get, by_default);
	EXPECT(by->get(), 11);
	EXPECT(by->get_located(), -1);
	weft_set_default(get, NULL);
#ifdef EVERYTHING
	EXPECT(loop(WEFT_HANDLE_ALL, 1), of_1);
#endif
	return faults;
}
