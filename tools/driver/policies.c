/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints which stack policies work here. One line each: name, tab, "yes" or "no: why"; then the guards and the
 * default. */
#include <stdio.h>
#include <weft/weft.h>

static void *answer(void *arg)
{
	return arg;
}

/* Asks first, then really runs a coroutine of the policy. */
static const char *why_not(weft_policy_t policy)
{
	weft_attr_t attr = {.name = "doctor", .policy = policy};
	const char *why = weft_policy_unavailable(policy);
	weft_coro_t *k;

	if (why)
		return why;
	k = weft_create_with(answer, &attr, &attr);
	if (!k)
		return "a coroutine cannot be created";
	why = weft_resume(k, NULL, WEFT_HANDLE_NONE).payload == &attr ? NULL : "a coroutine does not run";
	weft_delete(k);
	return why;
}

int main(void)
{
	int failures = 0;

	for (int p = WEFT_DEFAULT_POLICY + 1; p < WEFT_POLICY_COUNT; p++) {
		const char *why = why_not((weft_policy_t)p);

		printf("%s\t%s%s\n", weft_policy_name((weft_policy_t)p), why ? "no: " : "yes", why ? why : "");
		failures += why != NULL;
	}
	printf("default\t%s\n", weft_policy_name(weft_default_policy()));
	printf("guards by\t%s\n", weft_guard_mechanism());
	return failures != 0;
}
