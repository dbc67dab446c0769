/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/sim.h: the private part of weft/sim.h: the programs of a simulated world. weft/sim.h includes it at its
 * end.
 */
#ifndef WEFT_DETAIL_SIM_H
#define WEFT_DETAIL_SIM_H

#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <weft/sim.h>

WEFT_EXTERN_C_BEGIN

/* A simulated process: see weft__world_keep. */
struct weft__process;
WEFT_API int weft__world_program(const char *name, weft_world_main_t *main, weft_fn_t *keeper);
WEFT_API bool weft__process_begins(struct weft__process *p, weft_scope_t *scope);
WEFT_API void weft__process_run(struct weft__process *p, weft_world_main_t **main, char *const **argv, const int **fds);
WEFT_API void weft__process_exits(struct weft__process *p, int status);
WEFT_API void weft__process_ends(struct weft__process *p);

__attribute__((unused)) static void *weft__world_run(void *process)
{
	struct weft__process *p = (struct weft__process *)process;
	weft_world_main_t *main;
	char *const *argv;
	const int *fds;

	weft__process_run(p, &main, &argv, &fds);
	weft__process_exits(p, main(argv, fds));
	return process;
}

/* Runs a process in a scope, which weft_world_kill cancels. */
__attribute__((unused)) static void *weft__world_keep(void *process)
{
	struct weft__process *p = (struct weft__process *)process;

	weft_defer(weft__process_ends, p);
	WEFT_SCOPE(scope);
	if (weft__process_begins(p, &scope) && !weft_scope_spawn(&scope, weft__world_run, process))
		(void)weft_scope_wait(&scope);
	return NULL;
}

WEFT__INLINE int weft_world_program(const char *name, weft_world_main_t *main)
{
	return weft__world_program(name, main, weft__world_keep);
}

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_SIM_H */
