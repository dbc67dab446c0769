/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads the libraries that it is given by dlopen: then only what the program exports is theirs too. */
#include <dlfcn.h>
#include <stdio.h>

#include "beacon.h"

typedef const weft_effect_t *effect_fn_t(void);
typedef int sum_fn_t(int n);

static void *perform(void *sum)
{
	int total = (*(sum_fn_t **)sum)(5);

	return total == 15 ? sum : NULL;
}

static int try_library(const char *path, const char *effect_name, const char *sum_name)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	effect_fn_t *effect = library ? (effect_fn_t *)dlsym(library, effect_name) : NULL;
	sum_fn_t *sum = library ? (sum_fn_t *)dlsym(library, sum_name) : NULL;
	weft_coro_t *k;
	weft_request_t r;

	if (!effect || !sum) {
		puts(dlerror());
		return 1;
	}
	if (effect() != &weft_effect_beacon) {
		printf("%s has an effect of its own\n", path);
		return 1;
	}
	k = weft_create(perform, &sum);
	weft_handle (r, k, beacon)
		weft_reply(beacon, r, 3);
	weft_delete(k);
	return !r.payload;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	return try_library(argv[1], "left_effect", "left_sum") || try_library(argv[2], "right_effect", "right_sum");
}
