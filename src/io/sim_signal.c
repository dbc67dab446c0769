/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Signals of the simulated world. Each process has a list of pending signals, and so has a host's own program, to which
 * the tasks without a process belong. weft_sigwait waits at a descriptor, as it does for real signals.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <signal.h>
#include <stdlib.h>

static uint64_t bit(int signal)
{
	return (uint64_t)1 << (signal - 1);
}

bool weft__sim_blocks(int signal)
{
	sigset_t blocked;

	return !pthread_sigmask(SIG_BLOCK, NULL, &blocked) && sigismember(&blocked, signal) == 1;
}

void weft__sim_forget(struct weft__sent **sent)
{
	struct weft__sent *s;

	while ((s = *sent)) {
		*sent = s->next;
		free(s);
	}
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void stir(struct weft__world *world, unsigned host, uint16_t process, int signal)
{
	struct weft__node *node;

	for (node = world->nodes; node; node = node->next)
		if (node->kind == WEFT__SIGNALS && node->process == process && (process || node->host == host) &&
		    node->wanted & bit(signal))
			weft__node_stir(node, WEFT__IN);
}

/* Like the kernel, keeps at most one pending signal of each number below SIGRTMIN. */
void weft__sim_send(struct weft__world *world, unsigned host, uint16_t process, struct weft__sent *sent)
{
	struct weft__sent **at = weft__sim_sent(world, host, process);
	int signal = sent->info.si_signo;

	while (at && *at)
		at = signal < SIGRTMIN && (*at)->info.si_signo == signal ? NULL : &(*at)->next;
	if (!at) {
		free(sent);
		return;
	}
	sent->next = NULL;
	*at = sent;
	if (!WEFT_CANARY(signals_wake_nobody))
		stir(world, host, process, signal);
}

int weft__sim_send_new(struct weft__world *world, unsigned host, uint16_t process, int signal)
{
	struct weft__sent *sent = calloc(1, sizeof *sent);

	if (!sent)
		return -ENOMEM;
	sent->info.si_signo = signal;
	sent->info.si_code = SI_USER;
	sent->info.si_pid = weft__sim_process_here(world);
	weft__sim_send(world, host, process, sent);
	return 0;
}

int weft_world_signal(const char *host, int signal)
{
	struct weft__world *world;
	int number = weft__world_host_named(host, &world);

	if (number < 0)
		return number;
	if (signal < 0 || signal > WEFT__SIGNALS_MOST)
		return -EINVAL;
	if (!signal)
		return 0;
	if (!weft__sim_blocks(signal))
		return -EPERM;
	return weft__sim_send_new(world, (unsigned)number, 0, signal);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

int weft__sim_signal_fd(const sigset_t *signals)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_new(world, WEFT__SIGNALS) : NULL;
	int signal;

	if (!node)
		return -ENOMEM;
	node->process = weft__task()->process;
	for (signal = 1; signal <= WEFT__SIGNALS_MOST; signal++)
		if (sigismember(signals, signal) == 1)
			node->wanted |= bit(signal);
	return weft__node_describe(world, node);
}

/* The oldest signal with the lowest number; NULL: there is none. */
static struct weft__sent **next_of(struct weft__world *world, const struct weft__node *node)
{
	struct weft__sent **at = weft__sim_sent(world, node->host, node->process), **next = NULL;

	for (; at && *at; at = &(*at)->next)
		if (node->wanted & bit((*at)->info.si_signo) &&
		    (!next || (*at)->info.si_signo < (*next)->info.si_signo))
			next = at;
	return next;
}

bool weft__sim_has_signal(struct weft__world *world, const struct weft__node *node)
{
	return next_of(world, node) != NULL;
}

int weft__sim_signal_read(int number, siginfo_t *info)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, number) : NULL;
	struct weft__sent **at, *sent;
	int signal;

	if (!node || node->kind != WEFT__SIGNALS)
		return -EBADF; /* the host has crashed */
	at = next_of(world, node);
	if (!at)
		return -EAGAIN;
	sent = *at;
	*at = sent->next;
	if (info)
		*info = sent->info;
	signal = sent->info.si_signo;
	free(sent);
	return signal;
}
