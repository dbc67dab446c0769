/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* WEFT_STACK, WEFT_BUDGET, WEFT_GUARD. The library reads them once, so each case is a process of its own. */
#include "unit.h"

struct setting {
	const char *value;
	weft_policy_t policy;
	size_t usable; /* bytes of a default stack, at least half and at most this */
	const char *text;
};

#define BAD(value)                                                                                                     \
	{                                                                                                              \
		value, WEFT_OVERCOMMIT, 256 * 1024,                                                                    \
		    "weft: WEFT_STACK=" value                                                                          \
		    " is ignored: say one of fixed, overcommit, commit, segmented, heap, lookahead, mmu, copy, with "  \
		    ":size up to 1G if you like (commit:256K)\n"                                                       \
	}

static const struct setting settings[] = {
    {NULL, WEFT_OVERCOMMIT, 256 * 1024, ""},
    {"", WEFT_OVERCOMMIT, 256 * 1024, ""},
    {"fixed", WEFT_FIXED, 64 * 1024, ""},
    {"overcommit", WEFT_OVERCOMMIT, 256 * 1024, ""},
    {"commit", WEFT_COMMIT, 256 * 1024, ""},
    {"fixed:128K", WEFT_FIXED, 128 * 1024, ""},
    {"fixed:131072", WEFT_FIXED, 128 * 1024, ""},
    {"overcommit:1M", WEFT_OVERCOMMIT, 1024 * 1024, ""},
    {"overcommit:1m", WEFT_OVERCOMMIT, 1024 * 1024, ""},
    {"commit:100k", WEFT_COMMIT, 128 * 1024, ""},
    {"commit:1", WEFT_COMMIT, 16 * 1024, ""},
    {"commit:1G", WEFT_COMMIT, 1024 * 1024 * 1024, ""},
    {"segmented", WEFT_SEGMENTED, 256 * 1024, ""},
    {"lookahead", WEFT_LOOKAHEAD, 256 * 1024, ""},
    {"mmu:32K", WEFT_MMU, 32 * 1024, ""},
    {"heap", WEFT_HEAP, 1024, ""},
    {"segmented:512", WEFT_SEGMENTED, 1024, ""},
    BAD("segments"),
    BAD("fixe"),
    BAD("fixed1"),
    BAD("Fixed"),
    BAD(":64K"),
    BAD("fixed:"),
    BAD("fixed:0"),
    BAD("fixed:-1"),
    BAD("fixed: 64K"),
    BAD("fixed:64Kx"),
    BAD("fixed:64T"),
    BAD("fixed:K"),
    BAD("fixed:0x10"),
    BAD("fixed:2G"),
    BAD("fixed:99999999999999999999"),
    BAD("fixed:17179869184G"),
    BAD("commit:64K:64K"),
};

static void *stay(void *argument)
{
	return argument;
}

static void try_setting(const void *argument)
{
	const struct setting *s = argument;
	weft_coro_t *k;

	if (s->value)
		setenv("WEFT_STACK", s->value, 1);
	else
		unsetenv("WEFT_STACK");
	REQUIRE(weft_default_policy() == s->policy);
	k = weft_create(stay, NULL);
	REQUIRE(k && weft_policy(k) == s->policy);
	REQUIRE(weft_stack_usable(k) <= s->usable && weft_stack_usable(k) >= s->usable / 2);
	weft_delete(k);
}

static void stack_setting(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		struct outcome o = in_child_with(try_setting, &settings[i]);

		if (o.code)
			print_error("WEFT_STACK=%s\n", settings[i].value);
		expect_text(o, settings[i].text);
	}
}

/* A size in WEFT_STACK applies only to stacks of the policy it names. */
static void size_of_other_policy(void)
{
	weft_attr_t attr = {.policy = WEFT_FIXED};
	weft_coro_t *k;

	setenv("WEFT_STACK", "commit:1M", 1);
	k = weft_create_with(stay, NULL, &attr);
	REQUIRE(k && weft_policy(k) == WEFT_FIXED && weft_stack_usable(k) < 64 * 1024);
	attr.policy = WEFT_COMMIT;
	k = weft_create_with(stay, NULL, &attr);
	REQUIRE(k && weft_stack_usable(k) > 512 * 1024);
}

static void other_policy(void **state)
{
	(void)state;
	expect_quiet(in_child(size_of_other_policy));
}

struct budget {
	const char *value;
	size_t bytes; /* 0: half of the memory */
	const char *text;
};

#define BAD_BUDGET(value)                                                                                              \
	{                                                                                                              \
		value, 0,                                                                                              \
		    "weft: WEFT_BUDGET=" value                                                                         \
		    " is ignored: say a number of bytes, with K, M or G if you like (512M)\n"                          \
	}

static const struct budget budgets[] = {
    {NULL, 0, ""},	   {"1000000", 1000000, ""}, {"512M", 512u << 20, ""}, {"3G", (size_t)3 << 30, ""},
    {"64k", 64 << 10, ""}, BAD_BUDGET(""),	     BAD_BUDGET("0"),	       BAD_BUDGET("much"),
    BAD_BUDGET("-5"),	   BAD_BUDGET("5 M"),	     BAD_BUDGET("1.5G"),       BAD_BUDGET("18446744073709551616"),
};

static void try_budget(const void *argument)
{
	const struct budget *b = argument;
	size_t half = (size_t)sysconf(_SC_PHYS_PAGES) * 4096 / 2;

	if (b->value)
		setenv("WEFT_BUDGET", b->value, 1);
	else
		unsetenv("WEFT_BUDGET");
	REQUIRE(weft_set_budget(123456) == (b->bytes ? b->bytes : half));
	REQUIRE(weft_set_budget(0) == 123456);
}

static void budget_setting(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
		struct outcome o = in_child_with(try_budget, &budgets[i]);

		if (o.code)
			print_error("WEFT_BUDGET=%s\n", budgets[i].value);
		expect_text(o, budgets[i].text);
	}
}

static void force_mprotect(void)
{
	setenv("WEFT_GUARD", "mprotect", 1);
	REQUIRE(!strcmp(weft_guard_mechanism(), "mprotect"));
}

static void force_madvise(void)
{
	setenv("WEFT_GUARD", "madvise", 1);
	/* If the kernel does not support the mechanism, the setting has no effect. */
	REQUIRE(!strcmp(weft_guard_mechanism(), "madvise") || !strcmp(weft_guard_mechanism(), "mprotect"));
}

static void guard_setting(void **state)
{
	(void)state;
	expect_quiet(in_child(force_mprotect));
	expect_quiet(in_child(force_madvise));
}

static void policy_names(void **state)
{
	(void)state;
	assert_string_equal(weft_policy_name(WEFT_DEFAULT_POLICY), "default");
	assert_string_equal(weft_policy_name(WEFT_FIXED), "fixed");
	assert_string_equal(weft_policy_name(WEFT_OVERCOMMIT), "overcommit");
	assert_string_equal(weft_policy_name(WEFT_COMMIT), "commit");
	assert_null(weft_policy_name(WEFT_POLICY_COUNT));
	assert_null(weft_policy_name((weft_policy_t)-1));
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		assert_int_equal(weft_policy_named(weft_policy_name((weft_policy_t)p)), p);
	assert_int_equal(weft_policy_named("heaps"), WEFT_DEFAULT_POLICY);
	assert_int_equal(weft_policy_named(""), WEFT_DEFAULT_POLICY);
	assert_string_equal(weft_policy_unavailable(WEFT_POLICY_COUNT), "no such policy");
}

static void available(void)
{
	for (int p = 0; p < WEFT_POLICY_COUNT; p++)
		REQUIRE(!weft_policy_unavailable((weft_policy_t)p));
}

static void policies_available(void **state)
{
	(void)state;
	expect_quiet(in_child(available));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(stack_setting), T(other_policy), T(budget_setting),
	    T(guard_setting), T(policy_names), T(policies_available),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
