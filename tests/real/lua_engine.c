/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lua as an engine of the host. Functions for scripts, beyond Lua's own libraries:
 *   print(…)             writes to the run
 *   pause(…)             suspends the run, and returns its arguments
 *   qsort(t, less)       sorts t[1…n] by the C library's qsort, so that `less` is called through foreign frames; its
 *                        errors leave through them
 *   through(n, f, …)     calls f(…) with n frames of C in between, each of a different size; n ≤ 1000000
 *   many(a, b, …)        a C function with many arguments on the stack
 *   scratch              a directory of the run's own
 * Also built as C++, in which errors are exceptions.
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

const char engine_name[] = "lua";

static struct run *run_of(lua_State *L)
{
	return *(struct run **)lua_getextraspace(L);
}

static int print(lua_State *L)
{
	struct run *run = run_of(L);
	int n = lua_gettop(L);

	for (int i = 1; i <= n; i++) {
		size_t length;
		const char *text = luaL_tolstring(L, i, &length);

		if (i > 1)
			run_write(run, "\t", 1);
		run_write(run, text, length);
		lua_pop(L, 1);
	}
	run_write(run, "\n", 1);
	return 0;
}

static int pause_run(lua_State *L)
{
	run_pause(run_of(L));
	return lua_gettop(L);
}

/* ---- through the C library ---- */

struct element {
	lua_State *L;
	int index;
};

/* The table is at index 1, the function at index 2. */
static int compare(const void *left, const void *right)
{
	const struct element *a = (const struct element *)left, *b = (const struct element *)right;
	lua_State *L = a->L;
	int less[2];

	luaL_checkstack(L, 4, "qsort");
	for (int i = 0; i < 2; i++) {
		lua_pushvalue(L, 2);
		lua_rawgeti(L, 1, i ? b->index : a->index);
		lua_rawgeti(L, 1, i ? a->index : b->index);
		lua_call(L, 2, 1);
		less[i] = lua_toboolean(L, -1);
		lua_pop(L, 1);
	}
	return less[1] - less[0];
}

static int sort_by_c(lua_State *L)
{
	int n = (int)luaL_len(L, 1);
	struct element *elements = (struct element *)lua_newuserdatauv(L, sizeof(*elements) * (size_t)(n + 1), 0);

	for (int i = 0; i < n; i++) {
		elements[i].L = L;
		elements[i].index = i + 1;
	}
	qsort(elements, (size_t)n, sizeof(*elements), compare);
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, 1, elements[i].index);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* ---- frames of C ---- */

static void small_frame(lua_State *L, int n, int arguments);

static __attribute__((noinline)) void large_frame(lua_State *L, int n, int arguments)
{
	volatile char bytes[3000];

	bytes[n % 3000] = (char)n;
	small_frame(L, n - 1, arguments);
	if (bytes[n % 3000] != (char)n)
		luaL_error(L, "a frame was overwritten");
}

/* Larger than a first chunk. */
static __attribute__((noinline)) void huge_frame(lua_State *L, int n, int arguments)
{
	volatile int words[20000];

	for (int i = 0; i < 20000; i += 1000)
		words[i] = n + i;
	small_frame(L, n - 1, arguments);
	for (int i = 0; i < 20000; i += 1000)
		if (words[i] != n + i)
			luaL_error(L, "a frame was overwritten");
}

static __attribute__((noinline)) void variable_frame(lua_State *L, int n, int arguments)
{
	volatile char bytes[1 + 37 * (n % 50)];

	bytes[0] = (char)n;
	small_frame(L, n - 1, arguments);
	if (bytes[0] != (char)n)
		luaL_error(L, "a frame was overwritten");
}

static __attribute__((noinline)) void small_frame(lua_State *L, int n, int arguments)
{
	volatile int here = n;

	if (n <= 0)
		lua_call(L, arguments, LUA_MULTRET);
	else if (n % 1000 == 0)
		huge_frame(L, n, arguments);
	else if (n % 11 == 0)
		large_frame(L, n, arguments);
	else if (n % 7 == 0)
		variable_frame(L, n, arguments);
	else
		small_frame(L, n - 1, arguments);
	if (here != n)
		luaL_error(L, "a frame was overwritten");
}

static int through(lua_State *L)
{
	int n = (int)luaL_checkinteger(L, 1);

	luaL_argcheck(L, n >= 0 && n <= 1000000, 1, "out of range");
	small_frame(L, n, lua_gettop(L) - 2);
	return lua_gettop(L) - 1;
}

static __attribute__((noinline)) double weigh(int a, double b, int c, double d, int e, double f, int g, double h, int i,
					      double j, int k, double l, int m, long double n, int o, double p, int q,
					      double r, int s, double t)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m +
	       14 * (double)n + 15 * o + 16 * p + 17 * q + 18 * r + 19 * s + 20 * t;
}

static int many(lua_State *L)
{
	double v[20];

	for (int i = 0; i < 20; i++)
		v[i] = luaL_checknumber(L, i + 1);
	lua_pushnumber(L, weigh((int)v[0], v[1], (int)v[2], v[3], (int)v[4], v[5], (int)v[6], v[7], (int)v[8], v[9],
				(int)v[10], v[11], (int)v[12], v[13], (int)v[14], v[15], (int)v[16], v[17], (int)v[18],
				v[19]));
	return 1;
}

/* ---- a run ---- */

static const luaL_Reg own[] = {{"print", print},     {"pause", pause_run}, {"qsort", sort_by_c},
			       {"through", through}, {"many", many},	   {NULL, NULL}};

void engine_start(void)
{
}

static void do_script(lua_State *L, struct run *run)
{
	lua_pushglobaltable(L);
	luaL_setfuncs(L, own, 0);
	lua_pushstring(L, run->directory);
	lua_setfield(L, -2, "scratch");
	lua_pop(L, 1);
	if (luaL_loadfile(L, run->script) != LUA_OK || lua_pcall(L, 0, 0, 0) != LUA_OK) {
		run_printf(run, "%s\n", lua_tostring(L, -1));
		run->failed = 1;
	}
}

void engine_run(struct run *run)
{
	lua_State *L = luaL_newstate();

	if (!L) {
		run_printf(run, "no memory for a state\n");
		run->failed = 1;
		return;
	}
	*(struct run **)lua_getextraspace(L) = run;
	luaL_openlibs(L);
	do_script(L, run);
	lua_close(L);
}
