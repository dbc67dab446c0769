/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * load.h: the base of the load generators io_load.c and http_load.c. A load generator is a child process of the server
 * that it loads (io_server.h). It reads the CPU clock and the memory of its parent, and prints the figures.
 */
#ifndef LOAD_H
#define LOAD_H

#include "io_server.h"
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>

enum { LOAD_SPARE = 64, LOAD_LATEST = 1000000 };

static pid_t load_server;
static clockid_t load_clock; /* CPU time of the server */

/* Call this first. The process ends when the server ends. */
static inline void load_begin(int64_t connections)
{
	struct rlimit limit;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	load_server = getppid();
	io_raise_limit();
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < (rlim_t)connections + LOAD_SPARE)
		lab_cannot("needs %d descriptors: ulimit -Hn", (int)connections + LOAD_SPARE);
	io_must(!clock_getcpuclockid(load_server, &load_clock), "clock_getcpuclockid");
}

/* The kernel updates the CPU clock of another process when that process sleeps. The pause lets the server sleep. */
static inline int64_t load_server_time(void)
{
	usleep(3000);
	return lab_now(load_clock);
}

static inline void load_start(void)
{
	lab_began.cpu = load_server_time();
	lab_began.wall = lab_now(CLOCK_MONOTONIC);
}

static inline void load_stop(void)
{
	lab_spent.wall = lab_now(CLOCK_MONOTONIC) - lab_began.wall;
	lab_spent.cpu = load_server_time() - lab_began.cpu;
}

static inline uint64_t load_server_bytes(void)
{
	char resident[64], tables[64];

	usleep(20000);
	snprintf(resident, sizeof(resident), "%d/smaps_rollup", (int)load_server);
	snprintf(tables, sizeof(tables), "%d/status", (int)load_server);
	return lab_process_bytes(resident, "Rss:") + lab_process_bytes(tables, "VmPTE:");
}

/* The connection is reset when it is closed, so that its port is free at once. */
static inline int load_connect(int port, int type)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct linger reset = {1, 0};
	int one = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	io_must(fd >= 0, "socket");
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	io_must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	return fd;
}

/* Waits for events until the time `when`; -1: without a time-out. */
static inline int load_wait(int set, struct epoll_event *events, int most, int64_t when)
{
	int64_t now = lab_now(CLOCK_MONOTONIC), left = when > now ? when - now : 0;
	struct timespec time = {left / 1000000000, left % 1000000000};
	int count = epoll_pwait2(set, events, most, when < 0 ? NULL : &time, NULL);

	io_must(count >= 0, "epoll_pwait2");
	return count;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Prints the server's bytes for each of its *connections, which `open_all` opens, when they have been idle for `ms`. */
static inline void load_idle_memory(void *load, void (*open_all)(void *load), int64_t *connections, int64_t ms)
{
	int64_t all = *connections;
	uint64_t before;
	char more[64], result[32];

	*connections = 1;
	open_all(load);
	before = load_server_bytes();
	*connections = all;
	load_start();
	open_all(load);
	load_stop();
	usleep((useconds_t)ms * 1000);
	snprintf(more, sizeof(more), ", \"bytes\": %.1f",
		 (double)(int64_t)(load_server_bytes() - before) / (double)all);
	snprintf(result, sizeof(result), "%" PRId64, all);
	lab_report_more((uint64_t)all, result, more);
}

/* ---- latencies --------------------------------------------------------------------------------------------------- */

static uint32_t load_times[LOAD_LATEST + 1]; /* [i]: requests that took i µs */

static inline void load_took(int64_t nanoseconds)
{
	int64_t us = nanoseconds / 1000;

	load_times[us < LOAD_LATEST ? us : LOAD_LATEST]++;
}

/* The time in seconds within which all of `all` requests except one in `share` are answered. */
static inline double load_quantile(uint64_t all, uint64_t share)
{
	uint64_t seen = 0;
	int64_t i = 0;

	while (i < LOAD_LATEST && (seen += load_times[i]) < all - all / share)
		i++;
	return (double)i * 1e-6;
}

#endif /* LOAD_H */
