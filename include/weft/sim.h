/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/sim.h: the world in which the tasks of a simulation read and write, and what goes wrong in it.
 *
 *   static void *program(void *unused)
 *   {
 *           weft_world_set(&(weft_world_t){.reset = 1000, .disk_error = 100});
 *           weft_scope_t scope;
 *           weft_scope_open(&scope, WEFT_NEVER);
 *           weft_scope_spawn(&scope, server, NULL);        // begins with weft_world_host("server")
 *           weft_scope_spawn(&scope, client, NULL);        // dials weft_dial("server", "80")
 *           weft_sleep(1000000000);
 *           weft_world_cut("server", "client");
 *           ...
 *   }
 *
 *   weft_simulate_seeds(0, 1000, NULL, program, NULL, NULL);
 *
 * Design
 *  1. Under weft_simulate the calls of weft/io.h go to a world in memory: hosts, a network between them, and a disk for
 *     each host. Results and errors are the real ones of POSIX. The world is empty when the simulation begins.
 *  2. By default nothing fails, but the network and the disks take a random time, connections overtake each other, and
 *     reads and writes are often shorter than possible.
 *  3. All random decisions come from the simulation's seed: a seed repeats its run exactly.
 *
 * Hosts have names, which weft_resolve and weft_dial know, and addresses from 10.0.0.1 on. "localhost", 127.0.0.1 and
 * ::1 are the caller's own host. Each host has its own ports, Unix sockets and files. Simulated descriptors begin at a
 * number that no real descriptor has; smaller descriptors are real, and block the simulation. Child processes are real,
 * except processes whose programs have been named by weft_world_program. Signals come from weft_world_kill and
 * weft_world_signal, and as SIGCHLD from a simulated process that ends; weft_sigwait takes them. All simulated
 * processes have the signal mask of the simulating thread.
 *
 * The functions here are for tasks of a simulation; elsewhere they do nothing and return -EPERM. None of them waits,
 * and none may be called in a signal handler; they may be called on any stack.
 *
 * Source of the ideas: FoundationDB's simulation; torn and reordered writes, ALICE (Pillai and others, 2014).
 */
#ifndef WEFT_SIM_H
#define WEFT_SIM_H

#include <weft/io.h>

#if !defined(__clang__)
#pragma GCC system_header
#endif

WEFT_EXTERN_C_BEGIN

/** Flags of weft_world_t. */
enum {
	WEFT_WORLD_PROMPT = 1, /**< the network and the disks take no time */
	WEFT_WORLD_WHOLE = 2,  /**< reads and writes are as long as possible */
};

/** The properties of the world. Probabilities are parts of a million. Zero-initialised: nothing fails. */
typedef struct weft_world {
	uint64_t latency_least, latency_most; /**< nanoseconds for one way of the network, and for a disk operation;
						   both 0: 20 µs to 2 ms */
	size_t buffer;	/**< bytes that a new connection holds in each direction; 0: the seed chooses 4 to 64 KiB */
	size_t disk;	/**< the size of a host's disk in bytes; if it is full, -ENOSPC; 0: no limit */
	unsigned flags; /**< WEFT_WORLD_… */
	uint32_t reset; /**< for each read or write: the connection is reset, between hosts and on loopback */
	uint32_t loss;	/**< for each datagram of UDP: it is lost */
	uint32_t twice; /**< for each datagram of UDP: it arrives twice */
	uint32_t
	    slow; /**< for each new connection: its server's answers, or its client's requests, take 50 times as long */
	uint32_t
	    disk_error; /**< for each read, write or sync of a file: -EIO. A failed sync loses the data that it had to
			     make durable */
	uint32_t disk_full; /**< for each write of a file: -ENOSPC */
} weft_world_t;

/** Set the properties of the world from now on. NULL: the initial properties. 0; -EPERM. The structure is copied. */
WEFT_API int weft_world_set(const weft_world_t *world);

/** Put the calling task on this host from now on, and also tasks that it starts. At first all tasks are on a host with
 * the name "main". 0; -EPERM; -ENOMEM; -EINVAL: NULL or "", longer than 63, or 65536 hosts. */
WEFT_API int weft_world_host(const char *name);

/**
 * Cut the network between two hosts, or mend it. While it is cut, connections keep the data that was sent, which
 * arrives later; after a quarter of an hour without a connection they end with -ETIMEDOUT. Datagrams are lost.
 * @param b  NULL: all other hosts
 * @return 0; -EPERM; -ENOENT: there is no such host; -ENOMEM
 */
WEFT_API int weft_world_cut(const char *a, const char *b);
WEFT_API int weft_world_mend(const char *a, const char *b);

/**
 * Make a host lose its power, and start again at once. Its connections are reset, and waiting operations end with
 * -ECANCELED. Its descriptors return -EBADF from then on (but must be closed). Its files have the data that was synced;
 * for each later write the seed decides whether nothing, all or a part of it is there. Its tasks continue: the program
 * cancels them, by a scope, and starts new tasks.
 * @return 0; -EPERM; -ENOENT: there is no such host; -ENOMEM
 */
WEFT_API int weft_world_crash(const char *host);

/** The function of a simulated program. Its descriptors 0, 1 and 2 have the numbers `fds`: copies, which are closed
 * when it ends, or -1. Returns the exit status. It runs as a task on the host of its parent. */
typedef int weft_world_main_t(char *const argv[], const int fds[3]);

/**
 * From now on weft_spawn_process of this name (argv[0]) starts the function, in place of a real program; weft_waitpid
 * waits for its end. NULL: the name means the real program again. A function that neither returns nor is killed (it
 * calls weft_task_fail) ends as by SIGABRT. The simulation ends only when its processes have ended, too.
 * @return 0; -EPERM; -ENOMEM; -EINVAL: the name is NULL or ""
 */
WEFT__INLINE int weft_world_program(const char *name, weft_world_main_t *main);

/**
 * Send a signal to a simulated process, like kill. A blocked signal (pthread_sigmask, before the simulation began)
 * waits for weft_sigwait in a task of the process, now or later. Of the signals that are not blocked, SIGCHLD, SIGCONT,
 * SIGURG and SIGWINCH do nothing. Any other signal, and SIGKILL always, ends the process: its tasks are cancelled, so
 * their deferred functions run, and its parent gets the signal as the exit reason. weft_world_crash of its host does
 * the same, by SIGKILL.
 * @param signal  0: only check whether there is such a process
 * @return 0, also if it has ended but has not been waited for; -EPERM; -ESRCH; -EINVAL: no signal, or a signal that
 *   stops processes, which the simulated world does not support; -ENOMEM
 */
WEFT_API int weft_world_kill(pid_t process, int signal);

/**
 * Send a signal to the program of a host. weft_sigwait takes it in any task of the host that belongs to no simulated
 * process. The signal stays pending until then, but a crash of the host deletes it.
 * @param signal  0: only check whether there is such a host
 * @return 0; -EPERM: outside of a simulation, or the signal is not blocked, and would end the program; -ENOENT: there
 *   is no such host; -EINVAL: no signal; -ENOMEM
 */
WEFT_API int weft_world_signal(const char *host, int signal);

/** Returns a random number, which the seed determines; 0 outside of a simulation. */
WEFT_API uint64_t weft_world_random(void);

WEFT_EXTERN_C_END

#include <weft/detail/sim.h>

#endif /* WEFT_SIM_H */
