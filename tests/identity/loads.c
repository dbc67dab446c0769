/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * loads ONE OTHER: two shared objects that declare, perform and handle the same effects, loaded without seeing each
 * other's symbols, and unloaded and loaded again. Each handles the effects that each performs.
 */
#include "declared.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int handles_fn(const struct performs *performs);

static void *load(const char *name)
{
	void *object = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!object) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return object;
}

static int each_handles_each(void *const objects[2])
{
	int faults = 0;

	for (int i = 0; i < 4; i++) {
		handles_fn *handles = (handles_fn *)(intptr_t)dlsym(objects[i / 2], "handles");

		faults += handles(dlsym(objects[i % 2], "performs"));
	}
	return faults;
}

int main(int count, char **arguments)
{
	int faults = 0;

	if (count != 3)
		return 2;
	for (int round = 0; round < 4; round++) {
		void *objects[2] = {load(arguments[1 + round % 2]), load(arguments[1 + (round + 1) % 2])};

		faults += each_handles_each(objects);
		dlclose(objects[0]);
		faults += ((handles_fn *)(intptr_t)dlsym(objects[1], "handles"))(dlsym(objects[1], "performs"));
		objects[0] = load(arguments[1 + round % 2]);
		faults += each_handles_each(objects);
		dlclose(objects[1]);
		dlclose(objects[0]);
	}
	return faults;
}
