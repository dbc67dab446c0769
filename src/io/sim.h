/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared by the files of the simulated world: descriptors, sockets, files, hosts. One thread uses all of it.
 *
 * A descriptor refers to a *node*: an end of a pipe or connection, a listener, a socket of datagrams, an open file.
 * Bytes in transit, and bytes that have arrived, are *segments* in the list of the node that will read them; a segment
 * can be read from its time on. A time of WEFT_NEVER: the network is cut.
 */
#ifndef WEFT_SRC_SIM_H
#define WEFT_SRC_SIM_H

#include <weft/sim.h>

#include "io/io.h"

enum {
	WEFT__SIM_BASE = 1 << 20,    /* the first descriptor */
	WEFT__SIM_PROCESS = 1 << 22, /* the first process: Linux has none with this number */
	WEFT__MILLION = 1000000,
	WEFT__SIGNALS_MOST = 64,
};

enum weft__node_kind {
	WEFT__DEAD,	 /* closed, or its host has crashed */
	WEFT__SOCKET,	 /* a stream socket that is not connected */
	WEFT__CONNECTED, /* an end of a stream; a pipe has two ends, each with one direction */
	WEFT__LISTENER,
	WEFT__DATAGRAMS,
	WEFT__OPEN_FILE,
	WEFT__SIGNALS, /* a task waits for signals */
	WEFT__WATCHER, /* made by weft_file_watch_open */
};

/* Signals that were sent to a process and are still pending, in the order of arrival. */
struct weft__sent {
	struct weft__sent *next;
	siginfo_t info;
};

struct weft__host {
	char name[64];
	unsigned number;
	uint16_t port;	/* the port that was chosen last */
	uint64_t bytes; /* total size of its files */
	struct weft__sent *sent;
};

/* The address of a socket: a port of a host, or a name of a Unix socket. */
struct weft__spot {
	unsigned host;
	uint16_t port;
	uint8_t is_unix, is_loopback, is_any;
	uint8_t length; /* the length of the name */
	char name[108];
};

struct weft__sim_segment {
	struct weft__sim_segment *next;
	uint64_t at; /* the time from which on it can be read */
	size_t length, taken;
	struct weft__spot from;	    /* the sender of a datagram */
	struct weft__node **passed; /* descriptors that come with its first byte; each counts as a reference and a
				     * descriptor */
	unsigned passed_count;
	char data[];
};

/* Bytes, or datagrams, that a node will read. In a stream the times never decrease. */
struct weft__flow {
	struct weft__sim_segment *first, *last;
	size_t held, capacity;
	uint64_t last_at, end_at; /* the time of the last segment; the time of the end, 0: the writer has not closed */
};

struct weft__node {
	struct weft__node *next, **link; /* in the world's list */
	unsigned references;		 /* descriptors, queues and waiting operations */
	unsigned descriptors;		 /* includes descriptors in transit; the release of the last ends the node */
	uint8_t kind, reads, writes;	 /* false for a direction that was shut down */
	bool is_local, is_pipe, is_slow; /* local: no network between the ends */
	bool bound, shared, told;	 /* told: its error has been reported */
	int domain, type;
	unsigned host;
	weft_io_t *first, **end; /* waiting operations, in a list like weft__fd's */
	struct weft__flow in;
	struct weft__node *peer; /* NULL: the peer is closed */
	unsigned far;		 /* the peer's host */
	uint64_t reset_at;	 /* the time from which on `error` is valid; 0: no error */
	int error;
	uint64_t cut_since; /* since then the network holds data back; 0: it holds nothing back */
	struct weft__spot spot, remote;
	/* For a connection that begins. */
	bool has_remote;
	uint64_t request_at, retry_at, answer_at;
	int answer;
	unsigned tries;
	/* For a listener. */
	struct weft__node *queue, *queue_next;
	unsigned queued, backlog;
	/* For an open file. */
	struct weft__inode *inode;
	struct weft__watcher *watcher;
	int64_t offset;
	int flags;
	/* For a wait for signals. */
	uint64_t wanted;
	uint16_t process;
};

struct weft__sim_fd {
	struct weft__node *node; /* NULL: the number is free, unless operations wait */
	unsigned waits;
};

struct weft__inode;
struct weft__renaming;
struct weft__watcher;

struct weft__world {
	struct weft__source source; /* first: freed with the runtime */
	struct weft__rt *rt;
	weft_world_t profile;
	struct weft__sim_fd *entries;
	size_t count;
	struct weft__node *nodes;
	struct weft__host **hosts;
	unsigned host_count;
	uint32_t *cuts; /* pairs of hosts */
	size_t cut_count;
	struct weft__inode *inodes;
	uint64_t inode_number;
	struct weft__renaming *renamings; /* renamings that a crash may undo */
	struct weft__watcher *watchers;
	uint32_t cookie; /* that watchers got with the last renaming */
	struct weft__program *programs;
	struct weft__process *processes; /* until they have been waited for */
	unsigned process_number;
};

/* ---- sim.c ---- */

/* The caller's world; NULL: the caller is not a task of a simulation, or there is no memory. */
struct weft__world *weft__world(void) WEFT__HIDDEN;
uint64_t weft__world_now(struct weft__world *world) WEFT__HIDDEN;
/* A random number below `limit`, which is not 0. */
uint64_t weft__world_below(struct weft__world *world, uint64_t limit) WEFT__HIDDEN;
/* Draws whether an event with this probability happens. A probability of 0 draws nothing. */
bool weft__world_happens(struct weft__world *world, uint32_t of_a_million) WEFT__HIDDEN;
/* The length, or sometimes a random shorter length, of a read or write. */
size_t weft__world_shorten(struct weft__world *world, size_t length) WEFT__HIDDEN;
uint64_t weft__world_latency(struct weft__world *world) WEFT__HIDDEN;
bool weft__world_is_cut(const struct weft__world *world, unsigned a, unsigned b) WEFT__HIDDEN;
/* Finds a host by its name: its number, with *world set; -EPERM, -ENOMEM, -ENOENT. */
int weft__world_host_named(const char *name, struct weft__world **world) WEFT__HIDDEN;
/* The host of the calling task. */
unsigned weft__world_here(void) WEFT__HIDDEN;

/* NULL: no memory. The node has one reference, the caller's. */
struct weft__node *weft__node_new(struct weft__world *world, enum weft__node_kind kind) WEFT__HIDDEN;
void weft__node_drop(struct weft__node *node) WEFT__HIDDEN;
/* Makes a descriptor, which takes the caller's reference; -ENOMEM: the reference has been dropped. */
int weft__node_describe(struct weft__world *world, struct weft__node *node) WEFT__HIDDEN;
/* Drops one descriptor, with its reference. */
void weft__node_release(struct weft__world *world, struct weft__node *node) WEFT__HIDDEN;
/* NULL: -EBADF. */
struct weft__node *weft__node_of(const struct weft__world *world, int number) WEFT__HIDDEN;
/* Wakes the operations of these directions, which try again. */
void weft__node_stir(struct weft__node *node, uint8_t way) WEFT__HIDDEN;
/* Sets *when to the earlier time. */
static inline void weft__sooner(uint64_t *when, uint64_t at)
{
	if (at < *when)
		*when = at;
}

/* ---- sim_net.c ---- */

/* -EAGAIN: to be tried again at *when, or when *waits_for changes. */
int64_t weft__sim_attempt(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when,
			  struct weft__node **waits_for) WEFT__HIDDEN;
/* Ends a node: its last descriptor was closed, or its host has crashed. */
void weft__sim_end(struct weft__world *world, struct weft__node *node, bool crashed) WEFT__HIDDEN;
/* A cut of the network has begun or ended: data that are in transit are held back, or arrive. */
void weft__sim_cut_changed(struct weft__world *world, struct weft__node *node) WEFT__HIDDEN;
/* ---- sim_socket.c ---- */

int64_t weft__sim_accept(struct weft__world *world, struct weft__node *node, weft_io_t *io) WEFT__HIDDEN;
/* Like weft__sim_attempt. */
int64_t weft__sim_connect(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when,
			  struct weft__node **waits_for) WEFT__HIDDEN;
/* Converts an address: 0, -EAFNOSUPPORT, -EINVAL, -EHOSTUNREACH. */
int weft__sim_spot(struct weft__world *world, const void *address, size_t size, struct weft__spot *spot) WEFT__HIDDEN;
/* Converts to an address. *size: the room on entry, the needed size on return. */
void weft__sim_address(struct weft__world *world, int domain, const struct weft__spot *spot, void *address,
		       socklen_t *size) WEFT__HIDDEN;
/* The listener, or datagram socket, that is bound to this address; NULL: none. */
struct weft__node *weft__sim_find(struct weft__world *world, const struct weft__spot *spot,
				  enum weft__node_kind kind) WEFT__HIDDEN;
/* Binds to a free port. 0, -EADDRINUSE. */
int weft__sim_bind_any(struct weft__world *world, struct weft__node *node) WEFT__HIDDEN;
/* -ENOENT, or the number of addresses. */
int64_t weft__sim_resolve(struct weft__world *world, const struct weft__resolve *what) WEFT__HIDDEN;

/* For net.c: in a simulation these functions make descriptors, and act on descriptors of the world. */
int weft__sim_socket(int domain, int type) WEFT__HIDDEN;
int weft__sim_socketpair(int domain, int type, int fds[2]) WEFT__HIDDEN;
int weft__sim_pipe(int fds[2]) WEFT__HIDDEN;
int weft__sim_listen(const weft_address_t *address, int backlog, unsigned flags) WEFT__HIDDEN;
int weft__sim_shutdown(int number, int how) WEFT__HIDDEN;
int weft__sim_port(int number) WEFT__HIDDEN;
/* Like getsockname, or getpeername. */
int weft__sim_name(int number, bool of_peer, weft_address_t *address) WEFT__HIDDEN;
int weft__sim_close(int number) WEFT__HIDDEN;

/* Does this task run in a simulation? */
static inline bool weft__simulated(void)
{
	struct weft__worker *w = weft__worker();

	return w && w->current && w->rt->sim;
}

static inline bool weft__sim_has(int number)
{
	return number >= WEFT__SIM_BASE && weft__simulated();
}

/* For io.c. */
int weft__sim_begin(weft_io_t *io) WEFT__HIDDEN;
int weft__sim_go_on(weft_io_t *io) WEFT__HIDDEN;

/* ---- sim_file.c ---- */

int64_t weft__sim_open(struct weft__world *world, const char *path, int flags, unsigned mode) WEFT__HIDDEN;
/* Has the calling task's host a file of this name? */
bool weft__sim_has_file(struct weft__world *world, const char *path) WEFT__HIDDEN;
/* Rename, unlink and similar operations. */
int64_t weft__sim_names(struct weft__world *world, const weft_io_t *io) WEFT__HIDDEN;
int64_t weft__sim_stat(struct weft__world *world, const weft_io_t *io) WEFT__HIDDEN;
/* Read, write or sync. */
int64_t weft__sim_file(struct weft__world *world, struct weft__node *node, weft_io_t *io) WEFT__HIDDEN;
/* For sendfile: bytes at an offset. */
int64_t weft__sim_file_bytes(const struct weft__node *node, int64_t offset, size_t length,
			     const char **bytes) WEFT__HIDDEN;
void weft__sim_files_crash(struct weft__world *world, unsigned host) WEFT__HIDDEN;
void weft__sim_files_free(struct weft__world *world) WEFT__HIDDEN;

/* A descriptor of a file is closed; sendfile reads bytes of a file. */
void weft__sim_file_closed(struct weft__world *world, struct weft__node *node, bool crashed) WEFT__HIDDEN;
void weft__sim_accessed(struct weft__world *world, const struct weft__node *node) WEFT__HIDDEN;
/* 0: *inode is set; a negative errno. */
int64_t weft__sim_look_up(struct weft__world *world, const char *path, const struct weft__inode **inode) WEFT__HIDDEN;
/* The name under which a directory lists the file; NULL: the directory does not list it. */
const char *weft__sim_entry(const struct weft__inode *directory, const struct weft__inode *inode,
			    const char *name) WEFT__HIDDEN;
bool weft__sim_is_directory(const struct weft__inode *inode) WEFT__HIDDEN;

/* ---- sim_watch.c ---- */

/* For net.c and files.c. */
int weft__sim_watch_open(void) WEFT__HIDDEN;
int weft__sim_watch_remove(int fd, int number) WEFT__HIDDEN;
/* The watcher's node is closed, or freed with the world. */
void weft__sim_watch_end(struct weft__node *node) WEFT__HIDDEN;
int64_t weft__sim_watch_add(struct weft__world *world, struct weft__node *node, const char *path,
			    uint32_t events) WEFT__HIDDEN;
/* Something has happened to a file of this name: `events` is one event of inotify, with IN_EXCL_UNLINK if watches that
 * have this flag must not get the event. */
void weft__sim_tell(struct weft__world *world, const struct weft__inode *inode, const char *name, uint32_t events,
		    uint32_t cookie) WEFT__HIDDEN;
bool weft__sim_has_change(const struct weft__node *node) WEFT__HIDDEN;
/* Does an operation of a watcher. */
int64_t weft__sim_watch(struct weft__node *node, const weft_io_t *io) WEFT__HIDDEN;

/* ---- sim_process.c: for process.c ---- */

/* A process of the world, a negative errno, or 0: the world has no program of this name. */
pid_t weft__sim_spawn(char *const argv[], const int fds[3]) WEFT__HIDDEN;
int weft__sim_process_fd(pid_t number) WEFT__HIDDEN;
int weft__sim_process_status(pid_t number, int *status) WEFT__HIDDEN;
void weft__sim_processes_crash(struct weft__world *world, unsigned host) WEFT__HIDDEN;
void weft__sim_processes_free(struct weft__world *world) WEFT__HIDDEN;
/* The process of the calling task; 0: the task belongs to its host's own program. */
pid_t weft__sim_process_here(struct weft__world *world) WEFT__HIDDEN;
/* The list of a process's pending signals; `process` 0: the host's own program. NULL: the process has ended. */
struct weft__sent **weft__sim_sent(struct weft__world *world, unsigned host, uint16_t process) WEFT__HIDDEN;

/* ---- sim_signal.c ---- */

/* For process.c, like signalfd and reading from it. */
int weft__sim_signal_fd(const sigset_t *signals) WEFT__HIDDEN;
int weft__sim_signal_read(int number, siginfo_t *info) WEFT__HIDDEN;
bool weft__sim_has_signal(struct weft__world *world, const struct weft__node *node) WEFT__HIDDEN;
/* Has the simulating thread blocked the signal? Then all processes of the world block it, too. */
bool weft__sim_blocks(int signal) WEFT__HIDDEN;
/* Sends a signal. The world takes ownership of `sent`. */
void weft__sim_send(struct weft__world *world, unsigned host, uint16_t process, struct weft__sent *sent) WEFT__HIDDEN;
/* Sends a signal of the calling task's process. 0, -ENOMEM. */
int weft__sim_send_new(struct weft__world *world, unsigned host, uint16_t process, int signal) WEFT__HIDDEN;
void weft__sim_forget(struct weft__sent **sent) WEFT__HIDDEN;

static inline bool weft__sim_has_process(pid_t number)
{
	return number >= WEFT__SIM_PROCESS && weft__simulated();
}

#endif
