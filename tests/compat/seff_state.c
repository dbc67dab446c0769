/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* State by two effects: searched for each time, searched for once, and under unrelated handlers. C and C++. */
#include <inttypes.h>
#include <stdio.h>

#include "seff.h"

DEFINE_EFFECT(get, 0, int64_t, {});
DEFINE_EFFECT(put, 1, void, { int64_t new_value; });
DEFINE_EFFECT(unrelated, 2, void, {});

static const effect_set state_effects = HANDLES(get) | HANDLES(put);

static void *searching(void *arg)
{
	/* like libseff, which never reports RUNNING */
	assert(seff_current_coroutine()->state == PAUSED);
	for (int i = 0; i < 1000; i++)
		PERFORM(put, PERFORM(get) + 1);
	return arg;
}

static void *located(void *arg)
{
	seff_coroutine_t *get_at = seff_locate_handler(EFF_ID(get)), *put_at = seff_locate_handler(EFF_ID(put));

	for (int i = 0; i < 1000; i++)
		YIELD(put_at, put, YIELD(get_at, get) + 1);
	return arg;
}

struct under {
	seff_start_fun_t *body;
	int depth;
};

static void *under_handlers(void *arg)
{
	struct under *under = (struct under *)arg;
	seff_coroutine_t *k;
	seff_request_t request;

	if (!under->depth--)
		return under->body(NULL);
	k = seff_coroutine_new(under_handlers, under);
	request = seff_resume(k, NULL, HANDLES(unrelated));
	assert(seff_finished(request));
	assert(k->state == FINISHED);
	seff_coroutine_delete(k);
	return request.payload;
}

static int64_t run(seff_start_fun_t *body, int depth)
{
	struct under under = {body, depth};
	seff_coroutine_t *k = seff_coroutine_new(under_handlers, &under);
	int64_t state = 0;
	void *reply = NULL;

	assert(k->state == PAUSED);
	while (true) {
		seff_request_t request = seff_resume(k, reply, state_effects);

		switch (request.effect) {
			CASE_EFFECT(request, get, {
				reply = (void *)state;
				break;
			});
			CASE_EFFECT(request, put, {
				assert(k->state == PAUSED);
				state = payload.new_value;
				reply = NULL;
				break;
			})
			CASE_RETURN(request, {
				assert(!payload.result);
				if (WEFT_NO_CANARY(not_given_back))
					seff_coroutine_delete(k);
				return state;
			});
		default:
			assert(!"an effect that is not handled here");
		}
	}
}

int main(void)
{
	printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", run(searching, 0), run(searching, 20),
	       run(located, 0), run(located, 20));
	return 0;
}
