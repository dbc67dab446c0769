/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stack/config.h"

#include <stdlib.h>
#include <string.h>

#include "internal/bytes.h"
#include "internal/message.h"
#include "internal/signal_safe_lock.h"
#include "stack/policy.h"

/* A program's own default, "policy[:size]", compiled in; the environment has precedence. */
extern WEFT_API const char *weft_program_stack __attribute__((weak));

static struct {
	weft_policy_t policy;
	size_t size; /* for that policy; 0: the policy's default */
	size_t budget;
	bool wants_missing, keeps_probes;
} config = {.policy = WEFT_OVERCOMMIT};

const char *weft_policy_name(weft_policy_t policy)
{
	if (policy == WEFT_DEFAULT_POLICY)
		return "default";
	return (unsigned)policy < WEFT_POLICY_COUNT ? weft__policies[policy]->name : NULL;
}

static weft_policy_t policy_named(const char *name, size_t length)
{
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		if (strlen(weft__policies[p]->name) == length && !strncmp(weft__policies[p]->name, name, length))
			return (weft_policy_t)p;
	return WEFT_DEFAULT_POLICY;
}

weft_policy_t weft_policy_named(const char *name)
{
	return name ? policy_named(name, strlen(name)) : WEFT_DEFAULT_POLICY;
}

static void complain_of_stack(const char *variable, const char *value)
{
	struct weft__line line;

	weft__line_ignored(&line, variable, value);
	weft__line_text(&line, "say one of ");
	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft__line_text(&line, weft__policies[p]->name);
		weft__line_text(&line, ", ");
	}
	weft__line_text(&line, "with :size up to 1G if you like (commit:256K)");
	weft__line_write(&line);
}

/* The policy's own reason. This does not open the arena, because it may never be needed. */
static const char *why_not(weft_policy_t policy)
{
	return weft__policies[policy]->unavailable ? weft__policies[policy]->unavailable() : NULL;
}

static void read_stack(const char *variable, const char *value)
{
	const char *colon = strchr(value, ':');
	weft_policy_t policy = policy_named(value, colon ? (size_t)(colon - value) : strlen(value));
	size_t size = colon ? weft__bytes_in(colon + 1, '\0') : 0;

	if (policy && why_not(policy)) {
		weft__say_ignored(variable, value, why_not(policy));
		return;
	}
	if (!policy || (colon && !size) || weft__class(policy, size ? size : 1, true) == WEFT__CLASSES) {
		complain_of_stack(variable, value);
		return;
	}
	config.policy = policy;
	config.size = size;
}

/* Does a variable that may have two words ask for the second? Without a value it means the first. */
static bool asks_for(const char *variable, const char *usual, const char *other, const char *advice)
{
	const char *value = getenv(variable);

	if (!value || !*value || !strcmp(value, usual))
		return false;
	if (!strcmp(value, other))
		return true;
	weft__say_ignored(variable, value, advice);
	return false;
}

static void read_environment(void)
{
	const char *stack = getenv("WEFT_STACK");
	const char *budget = getenv("WEFT_BUDGET");

	if (&weft_program_stack && weft_program_stack)
		read_stack("weft_program_stack", weft_program_stack);
	if (stack && *stack)
		read_stack("WEFT_STACK", stack);
	config.wants_missing = asks_for("WEFT_COMMIT", "signal", "userfaultfd", "say signal or userfaultfd");
	config.keeps_probes = asks_for("WEFT_MMU", "learn", "signal", "say learn or signal");
	config.budget = budget ? weft__bytes_in(budget, '\0') : 0;
	if (budget && !config.budget)
		weft__say_ignored("WEFT_BUDGET", budget, "say a number of bytes, with K, M or G if you like (512M)");
}

static void read_once(void)
{
	WEFT__CALL_ONCE(read_environment);
}

weft_policy_t weft_default_policy(void)
{
	read_once();
	return config.policy;
}

size_t weft__config_size(weft_policy_t policy)
{
	read_once();
	return policy == config.policy && config.size ? config.size : weft__policies[policy]->default_size;
}

size_t weft__size_if_tiny(size_t size)
{
	const struct weft__policy *how = weft__policies[weft_default_policy()];

	if (!how->tiny)
		return 0;
	if (size)
		return size;
	if (config.size)
		return config.size;
	return how->default_size < WEFT__ROOMY_LARGEST ? how->default_size : WEFT__ROOMY_LARGEST;
}

size_t weft__config_budget(void)
{
	read_once();
	return config.budget ? config.budget : weft__os_memory() / 2;
}

bool weft__config_wants_missing(void)
{
	read_once();
	return config.wants_missing;
}

bool weft__config_learns_probes(void)
{
	read_once();
	return !config.keeps_probes;
}

void weft__config_refuse_missing(const char *why)
{
	weft__say_ignored("WEFT_COMMIT", "userfaultfd", why);
}

weft_policy_t weft__policy_for_thread(weft_policy_t policy)
{
	if (policy == WEFT_DEFAULT_POLICY)
		policy = weft_default_policy();
	return (unsigned)policy < WEFT_POLICY_COUNT && weft__policies[policy]->shared ? WEFT_OVERCOMMIT : policy;
}

const char *weft_policy_unavailable(weft_policy_t policy)
{
	if ((unsigned)policy >= WEFT_POLICY_COUNT)
		return "no such policy";
	return policy && why_not(policy) ? why_not(policy) : weft__arena_open();
}

const char *weft_guard_mechanism(void)
{
	return !weft__arena_open() && weft__guards_by_madvise() ? "madvise" : "mprotect";
}
