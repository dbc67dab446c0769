/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One effect declared in many places is one effect: ten files of this program (0 to 9), two shared libraries (10, 11)
 * and a plugin that is loaded when the program runs (12: argv[1]). The `get` of one family is not the `get` of the
 * second family.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "shared.h"

#ifndef IN_LIBRARIES
#define IN_LIBRARIES(X) X(10) X(11)
#endif
#define PARTS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) IN_LIBRARIES(X)
#define DECLARE(number) extern const struct part part_##number;
#define LIST(number) &part_##number,

PARTS(DECLARE)
static const struct part *parts[] = {PARTS(LIST) NULL};
enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

int alpha_get(void), beta_get(void);
void alpha_handle(weft_coro_t *k, int value), beta_handle(weft_coro_t *k, int value);
const weft_effect_t *alpha_identity(void), *beta_identity(void);

static int failures;

static void expect(bool truth, const char *what, int part)
{
	if (truth)
		return;
	printf("part %d: %s\n", part, what);
	failures++;
}

static void *perform_all(void *arg)
{
	int sum = 0;

	for (int i = 0; i < PART_COUNT; i++)
		sum += parts[i]->perform(i);
	*(int *)arg = sum;
	return NULL;
}

static void *fail_one(void *part)
{
	parts[*(int *)part]->fail(*(int *)part);
	return NULL;
}

static void compare_addresses(void)
{
	for (int i = 0; i < PART_COUNT; i++)
		for (int which = 0; parts[0]->identity(which); which++)
			expect(parts[i]->identity(which) == parts[0]->identity(which), "an effect of its own: ", i);
	expect(parts[0]->identity(0) == &weft_effect_shared, "not the effect of the main file", 0);
}

static void handle_all(void)
{
	int sum = 0, notes = 0;
	weft_coro_t *k = weft_create(perform_all, &sum);
	weft_request_t r;

	weft_handle (r, k, shared, both) {
		if (weft_is(shared, r))
			weft_reply(shared, r, 1000 + weft_args(shared, r)->part);
		else if (weft_is(twice, r))
			weft_reply(twice, r, 2 * weft_args(twice, r)->number);
		else
			notes += weft_args(note, r)->number;
	}
	weft_delete(k);
	expect(sum == 1000 * PART_COUNT + 3 * (PART_COUNT - 1) * PART_COUNT / 2, "a wrong sum", -1);
	expect(notes == (PART_COUNT - 1) * PART_COUNT / 2, "a wrong sum of notes", -1);
	for (int i = 0; i < PART_COUNT; i++) {
		k = weft_create(fail_one, &i);
		r = weft_resume(k, NULL, weft_handles(shared_failure));
		expect(weft_is(shared_failure, r) && weft_args(shared_failure, r)->part == i,
		       "its failure is not caught", i);
		weft_delete(k);
	}
}

static int default_shared(int part)
{
	return part + 1;
}

static int default_twice(int number)
{
	return number;
}

static void default_note(int number)
{
	(void)number;
}

static void default_handlers(void)
{
	int sum = 0;

	weft_set_default(shared, default_shared);
	weft_set_default(twice, default_twice);
	weft_set_default(note, default_note);
	perform_all(&sum);
	expect(sum == PART_COUNT * PART_COUNT, "a default handler is not seen", -1);
}

/* ---- the same name in two families ---- */

static void *get_both(void *sum)
{
	*(int *)sum = alpha_get() + 10 * beta_get();
	return NULL;
}

static void *under_alpha(void *sum)
{
	weft_coro_t *k = weft_create(get_both, sum);

	alpha_handle(k, 1);
	weft_delete(k);
	return NULL;
}

static void same_name(void)
{
	int sum = 0;
	weft_coro_t *k = weft_create(under_alpha, &sum);

	beta_handle(k, 2);
	weft_delete(k);
	expect(alpha_identity() != beta_identity(), "two families share an effect", -1);
	expect(sum == 21, "the wrong family was handled", -1);
}

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	parts[PART_COUNT - 1] = plugin ? (const struct part *)dlsym(plugin, "part_12") : NULL;
	if (!parts[PART_COUNT - 1]) {
		fprintf(stderr, "cannot load the plugin: %s\n", dlerror());
		return 2;
	}
	compare_addresses();
	if (!failures) {
		handle_all();
		default_handlers();
		same_name();
	}
	dlclose(plugin);
	printf("%d parts, %d failures\n", PART_COUNT, failures);
	return failures != 0;
}
