/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>

#include "voice.h"

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	weft_fn_t *chorus = library ? (weft_fn_t *)dlsym(library, "chorus") : NULL;
	int heard = 0;
	weft_coro_t *k;
	weft_request_t r;

	if (!chorus) {
		puts(dlerror());
		return 1;
	}
	k = weft_create(chorus, NULL);
	weft_handle (r, k, voice)
		heard++;
	weft_delete(k);
	return heard != 3;
}
