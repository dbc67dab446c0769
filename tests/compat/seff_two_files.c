/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A default handler set in this C file is also the C++ file's; and native effects of weft under ~0. */
#include <stdio.h>
#include <weft/effect.h>

#include "seff_shared.h"

WEFT_EFFECT(int, native, int, number);

static void *print_greeting(void *arg)
{
	return (void *)(intptr_t)printf("hello, %s\n", ((EFF_PAYLOAD_T(greet) *)arg)->name);
}

static void *mixes(void *arg)
{
	int a = PERFORM(greet, "somebody"), b = native(5);

	return (void *)(intptr_t)(a * 100 + b + (arg ? 1 : 0));
}

int main(void)
{
	seff_coroutine_t *k = seff_coroutine_new(greets, (void *)"world");
	seff_request_t request;
	weft_request_t native_request;

	seff_set_default_handler(EFF_ID(greet), print_greeting);
	request = seff_resume(k, NULL, 0);
	printf("returned %d\n", (int)(intptr_t)request.payload);
	seff_coroutine_delete(k);

	/* Both kinds of effect reach ~0; a set of numbers lets the native effect pass. */
	k = seff_coroutine_new(mixes, NULL);
	request = seff_resume(k, NULL, ~0);
	assert(request.effect == EFF_ID(greet));
	request = seff_resume(k, (void *)(intptr_t)7, ~0);
	assert(request.effect == (effect_id)(uintptr_t)&weft_effect_native - 1);
	native_request.effect = &weft_effect_native;
	native_request.payload = request.payload;
	weft_reply(native, native_request, 2 * weft_args(native, native_request)->number);
	request = seff_resume(k, NULL, ~0);
	printf("mixed: %d\n", (int)(intptr_t)request.payload);
	seff_coroutine_delete(k);
	return 0;
}
