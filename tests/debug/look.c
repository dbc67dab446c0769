/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Never instrumented: libunwind's notes about the caller's frame must still be valid when it walks. */
#define _GNU_SOURCE
#include "look.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#ifdef HAVE_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

enum { MOST = 500 };

static void print_name(void *pc, bool after_call)
{
	Dl_info info;

	if (dladdr((char *)pc - after_call, &info) && info.dli_sname)
		printf(" %s", info.dli_sname);
}

struct walk {
	void *pc[MOST];
	bool after_call[MOST];
	int count;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument)
{
	struct walk *walk = argument;
	int before = 0;

	if (walk->count == MOST)
		return _URC_END_OF_STACK;
	walk->pc[walk->count] = (void *)_Unwind_GetIPInfo(context, &before);
	walk->after_call[walk->count] = !before;
	walk->count++;
	return _URC_NO_REASON;
}

static void look(const char *scenario)
{
	struct walk walk = {.count = 0};
	void *pc[MOST];
	int count;

	(void)_Unwind_Backtrace(on_frame, &walk);
	printf("%s:", scenario);
	for (int i = 0; i < walk.count; i++)
		print_name(walk.pc[i], walk.after_call[i]);
	printf("\n");
	while (walk.count && !walk.pc[walk.count - 1]) /* the outermost frame marks the end of the chain in this way */
		walk.count--;
	count = backtrace(pc, MOST);
	if (count != walk.count || pc[count - 1] != walk.pc[count - 1])
		printf("%s: backtrace() sees %d frames, _Unwind_Backtrace %d\n", scenario, count, walk.count);
}

#ifdef HAVE_LIBUNWIND
static void look_by_libunwind(const char *scenario)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc, offset;
	char name[100];

	printf("%s:", scenario);
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (pc && !unw_get_proc_name(&cursor, name, sizeof name, &offset))
			printf(" %s", name);
	} while (unw_step(&cursor) > 0);
	printf("\n");
}
#else
static void look_by_libunwind(const char *scenario)
{
	printf("%s: built without\n", scenario);
}
#endif

static enum { STOP, WALK, LIBUNWIND } mode;

bool look_by(const char *name)
{
	if (!strcmp(name, "walk"))
		mode = WALK;
	else if (!strcmp(name, "libunwind"))
		mode = LIBUNWIND;
	return mode != STOP;
}

FRAME void stop(const char *scenario)
{
	if (mode == WALK)
		look(scenario);
	else if (mode == LIBUNWIND)
		look_by_libunwind(scenario);
	KEEP();
}
