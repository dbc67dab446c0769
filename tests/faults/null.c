/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* null CALL: resumes NULL, before or after the thread's first resume. It must die by SIGSEGV with one line. */
#include <string.h>
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static int on_get(void *state)
{
	return *(int *)state;
}

WEFT_HANDLER(handler, weft_tail(get, on_get));

static void *body(void *argument)
{
	return argument;
}

static void resume(const char *how, weft_coro_t *k)
{
	weft_request_t r;
	int state = 0;

	if (strstr(how, "under"))
		r = weft_resume_under(k, NULL, &handler, &state);
	else if (strstr(how, "any"))
		r = weft_resume_any(&k, NULL, weft_handles(get));
	else if (strstr(how, "loop"))
		weft_handle (r, k, get)
			weft_reply(get, r, 1);
	else
		r = weft_resume(k, NULL, weft_handles(get));
	(void)r;
}

int main(int count, char **argument)
{
	weft_coro_t *k;

	if (count < 2)
		return 2;
	if (!strcmp(argument[1], "first")) /* the compiler knows that it is NULL */
		weft_resume(NULL, NULL, weft_handles(get));
	k = weft_create(body, NULL);
	if (strstr(argument[1], "late"))
		resume(argument[1], k);
	resume(argument[1], NULL);
	return 0;
}
