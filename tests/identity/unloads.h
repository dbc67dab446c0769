/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The interface between unloads.c and the shared objects that it loads. */
#ifndef WEFT_TESTS_IDENTITY_UNLOADS_H
#define WEFT_TESTS_IDENTITY_UNLOADS_H

#include <weft/weft.h>

enum how { BY_TAIL, BY_GENERAL, BY_LOOP, HOWS };

/* A plugin has an effect, or it handles the program's effect `ask`. Functions that it does not have are NULL. */
struct plugin {
	int id;
	const char *effect; /* its identity, as unloads.c compares it */
	int (*perform)(int x);
	/* Run body(arg) under a handler of the plugin's effect, which answers id * 1000 + x. */
	void (*run)(enum how how, weft_fn_t *body, void *arg);
	bool (*has_default)(void);
	void (*set_default)(void); /* to a function that answers id * 1000 + 500 + x */
	/* Resume a coroutine under a table or set of the plugin, whose answer to ask(x) is id * 1000 + 700 + x. */
	void (*drive_by_table)(weft_coro_t *k);
	void (*drive_by_set)(weft_coro_t *k); /* in a plugin of even number the set has another effect than `ask` */
};

#endif
