/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* unloads PLUGIN: a default handler is removed with the shared object that contains it (-DPLUGIN); other handlers
 * stay. */
#include "seff.h"

#ifdef PLUGIN
static void *answer(void *payload)
{
	return payload;
}

__attribute__((visibility("default"))) void set_defaults(void);
void set_defaults(void)
{
	seff_set_default_handler(9, answer);
	seff_set_default_handler(63, answer);
}
#else
#include <dlfcn.h>

static void *own(void *payload)
{
	return payload;
}

int main(int count, char **argument)
{
	void *plugin = count > 1 ? dlopen(argument[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void (*set_defaults)(void) = plugin ? (void (*)(void))(uintptr_t)dlsym(plugin, "set_defaults") : NULL;

	if (!set_defaults)
		return 2;
	seff_set_default_handler(8, own);
	seff_set_default_handler(9, own);
	set_defaults();
	if (seff_get_default_handler(9) == own || !seff_get_default_handler(63))
		return 3; /* the plugin has a table of its own */
	dlclose(plugin);
	return seff_get_default_handler(8) != own || seff_get_default_handler(9) || seff_get_default_handler(63);
}
#endif
