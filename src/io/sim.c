/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world of a simulation: descriptors in memory, with the calls, results and errors of real descriptors.
 *
 *  - An operation is tried when it begins. If it has to wait, it is in its node's list, and is tried again when the
 *    node changes (weft__node_stir) or when bytes arrive. A deadline, a cancellation or weft_close ends the wait
 *    instead. A waiting task gets no data from its waker, so no end of a wait loses data.
 *  - There is no event loop: data that arrive later carry their time, and an operation that waits for them has a timer.
 *  - Operations on files are done after a delay, in one piece; if they end before that, they have done nothing.
 *  - An operation that need not wait sometimes lets other tasks run first: real workers would run them meanwhile.
 *  - All random numbers come from the simulation, in the order of the tasks: a seed repeats everything.
 * Rejected: real socket pairs with delays on top. The kernel's part would not repeat, and a crash could not lose the
 * data that the kernel has.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum {
	SHORT = 4,  /* one read or write in so many is shorter than it could be */
	YIELDS = 4, /* one operation in so many lets other tasks run first */
	HOSTS_MOST = 65536,
	LEAST_LATENCY = 20000,
	MOST_LATENCY = 2000000,
};

/* ---- the world --------------------------------------------------------------------------------------------------- */

static int add_host(struct weft__world *world, const char *name)
{
	struct weft__host **longer, *host;

	if (world->host_count == HOSTS_MOST)
		return -EINVAL;
	longer = realloc(world->hosts, (world->host_count + 1) * sizeof(*longer));
	if (!longer)
		return -ENOMEM;
	world->hosts = longer;
	host = calloc(1, sizeof *host);
	if (!host)
		return -ENOMEM;
	strcpy(host->name, name);
	host->number = world->host_count;
	host->port = 32767;
	longer[world->host_count++] = host;
	return (int)host->number;
}

static void close_world(struct weft__source *source)
{
	struct weft__world *world = (struct weft__world *)source;
	unsigned i;

	while (world->nodes) {
		world->nodes->references = 1;
		weft__node_drop(world->nodes);
	}
	weft__sim_files_free(world);
	weft__sim_processes_free(world);
	for (i = 0; i < world->host_count; i++) {
		weft__sim_forget(&world->hosts[i]->sent);
		free(world->hosts[i]);
	}
	free(world->hosts);
	free(world->entries);
	free(world->cuts);
	free(world);
}

static struct weft__world *open_world(struct weft__rt *rt)
{
	struct weft__world *world = calloc(1, sizeof *world);

	if (!world)
		return NULL;
	world->rt = rt;
	world->source.free = close_world;
	world->source.descriptor = -1;
	if (add_host(world, "main") < 0) {
		if (!WEFT_CANARY(failed_worlds_leak))
			close_world(&world->source);
		return NULL;
	}
	atomic_store_explicit(&rt->source, &world->source, memory_order_relaxed); /* one thread */
	return world;
}

struct weft__world *weft__world(void)
{
	struct weft__worker *w = weft__worker();
	struct weft__source *source;

	if (!weft__simulated())
		return NULL;
	source = atomic_load_explicit(&w->rt->source, memory_order_relaxed); /* one thread */
	return source ? (struct weft__world *)source : open_world(w->rt);
}

unsigned weft__world_here(void)
{
	return weft__task()->host;
}

uint64_t weft__world_now(struct weft__world *world)
{
	return weft__sim_now(world->rt);
}

uint64_t weft__world_below(struct weft__world *world, uint64_t limit)
{
	return weft__sim_random(world->rt) % limit;
}

bool weft__world_happens(struct weft__world *world, uint32_t of_a_million)
{
	return of_a_million && weft__world_below(world, WEFT__MILLION) < of_a_million;
}

size_t weft__world_shorten(struct weft__world *world, size_t length)
{
	if (length < 2 || world->profile.flags & WEFT_WORLD_WHOLE || weft__world_below(world, SHORT))
		return length;
	return 1 + (size_t)weft__world_below(world, length);
}

uint64_t weft__world_latency(struct weft__world *world)
{
	uint64_t least = world->profile.latency_least, most = world->profile.latency_most;

	if (world->profile.flags & WEFT_WORLD_PROMPT)
		return 0;
	if (!least && !most) {
		least = LEAST_LATENCY;
		most = MOST_LATENCY;
	}
	return most > least ? least + weft__world_below(world, most - least + 1) : least;
}

/* ---- nodes and descriptors --------------------------------------------------------------------------------------- */

struct weft__node *weft__node_new(struct weft__world *world, enum weft__node_kind kind)
{
	struct weft__node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	node->kind = (uint8_t)kind;
	node->reads = node->writes = 1;
	node->references = 1;
	node->host = node->far = weft__world_here();
	node->end = &node->first;
	node->next = world->nodes;
	node->link = &world->nodes;
	if (node->next)
		node->next->link = &node->next;
	world->nodes = node;
	return node;
}

void weft__node_drop(struct weft__node *node)
{
	struct weft__sim_segment *s;

	if (--node->references)
		return;
	weft__sim_watch_end(node);
	*node->link = node->next;
	if (node->next)
		node->next->link = node->link;
	while ((s = node->in.first)) {
		node->in.first = s->next;
		free((void *)s->passed);
		free(s);
	}
	free(node);
}

static int grow(struct weft__world *world)
{
	size_t count = 2 * world->count + 16;
	struct weft__sim_fd *entries = realloc(world->entries, count * sizeof *entries);

	if (!entries)
		return -ENOMEM;
	memset(entries + world->count, 0, (count - world->count) * sizeof *entries);
	world->entries = entries;
	world->count = count;
	return 0;
}

/* The lowest free number, as in POSIX: so a program that uses a number after its close meets a new connection. */
int weft__node_describe(struct weft__world *world, struct weft__node *node)
{
	size_t i;

	for (i = 0; i < world->count; i++)
		if (!world->entries[i].node && !world->entries[i].waits)
			break;
	node->descriptors++;
	if (i == world->count && grow(world)) {
		weft__node_release(world, node);
		return -ENOMEM;
	}
	world->entries[i].node = node;
	return WEFT__SIM_BASE + (int)i;
}

void weft__node_release(struct weft__world *world, struct weft__node *node)
{
	if (!--node->descriptors)
		weft__sim_end(world, node, false);
	weft__node_drop(node);
}

struct weft__node *weft__node_of(const struct weft__world *world, int number)
{
	size_t i = (size_t)number - WEFT__SIM_BASE;

	return number >= WEFT__SIM_BASE && i < world->count ? world->entries[i].node : NULL;
}

void weft__node_stir(struct weft__node *node, uint8_t way)
{
	weft_io_t *io;

	for (io = node->first; io; io = io->next)
		if (io->way & way && weft_waiter_claim(&io->waiter, 0))
			weft_waiter_complete(&io->waiter);
}

static void end_waits(struct weft__world *world, int number)
{
	struct weft__node *node;
	weft_io_t *io;

	/* A splice waits at either of its two descriptors. */
	for (node = world->nodes; node; node = node->next)
		for (io = node->first; io; io = io->next)
			if ((io->fd == number || (io->kind == WEFT_IO_SPLICE && io->other == number)) &&
			    weft_waiter_claim(&io->waiter, -ECANCELED))
				weft_waiter_complete(&io->waiter);
}

int weft__sim_close(int number)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, number) : NULL;

	if (!node)
		return -EBADF;
	world->entries[number - WEFT__SIM_BASE].node = NULL;
	end_waits(world, number);
	weft__node_release(world, node);
	return 0;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static int done(struct weft__world *world, weft_io_t *io, int64_t result)
{
	io->result = result;
	if (io->flags & MSG_WAITALL)
		weft__io_settle(io);
	if (weft__world_below(world, YIELDS))
		return WEFT_IO_DONE;
	io->step = WEFT__OVER;
	return WEFT_IO_YIELDS;
}

/* The node, and the descriptor's number, stay reserved while an operation waits at the node. */
static int wait_at(struct weft__world *world, struct weft__node *node, weft_io_t *io, int step, uint64_t until)
{
	weft_waiter_init(&io->waiter, weft__io_what(io), (void *)(intptr_t)io->fd,
			 until < io->deadline ? until : io->deadline);
	io->step = (uint8_t)step;
	io->place = node;
	if (!node)
		return WEFT_IO_WAITS;
	node->references++;
	world->entries[io->fd - WEFT__SIM_BASE].waits++;
	io->next = NULL;
	io->link = node->first ? node->end : &node->first;
	*io->link = io;
	node->end = &io->next;
	return WEFT_IO_WAITS;
}

static void leave(struct weft__world *world, weft_io_t *io)
{
	struct weft__node *node = io->place;

	if (!node)
		return;
	*io->link = io->next;
	if (io->next)
		io->next->link = io->link;
	else
		node->end = io->link;
	world->entries[io->fd - WEFT__SIM_BASE].waits--;
	weft__node_drop(node);
}

static int try(struct weft__world *world, weft_io_t *io)
{
	struct weft__node *node = weft__node_of(world, io->fd), *waits_for = node;
	uint64_t when = WEFT_NEVER;
	int64_t result;

	if (!node || node->kind == WEFT__DEAD)
		return done(world, io, -EBADF);
	result = weft__sim_attempt(world, node, io, &when, &waits_for);
	if (result != -EAGAIN || weft__io_does_not_wait(io))
		return done(world, io, result);
	if (!io->deadline)
		return done(world, io, -ETIMEDOUT);
	return wait_at(world, waits_for, io, WEFT__TRIED, when);
}

static bool is_lookup(const weft_io_t *io)
{
	return io->kind == WEFT_IO_CALL && io->data == (void *)(uintptr_t)weft__resolve_call;
}

/* Does an operation whose delay has passed. */
static int do_it(struct weft__world *world, weft_io_t *io)
{
	struct weft__node *node;

	if (is_lookup(io))
		return done(world, io, weft__sim_resolve(world, io->more));
	if (io->kind == WEFT_IO_OPEN)
		return done(world, io, weft__sim_open(world, io->data, io->flags, (unsigned)io->length));
	if (io->kind == WEFT_IO_STAT)
		return done(world, io, weft__sim_stat(world, io));
	if (weft__kind(io)->names)
		return done(world, io, weft__sim_names(world, io));
	node = weft__node_of(world, io->fd);
	if (node && io->kind == WEFT_IO_WATCH)
		return done(world, io, weft__sim_watch_add(world, node, io->data, (uint32_t)io->flags));
	return done(world, io, node && node->kind == WEFT__OPEN_FILE ? weft__sim_file(world, node, io) : -EBADF);
}

static int delay(struct weft__world *world, struct weft__node *node, weft_io_t *io)
{
	uint64_t time = io->deadline ? weft__world_latency(world) : 0;

	if (!time)
		return do_it(world, io);
	return wait_at(world, node, io, WEFT__SUBMITTED, weft__world_now(world) + time);
}

/* Is the operation for a descriptor of the real system? A path without a directory's descriptor is for the world. */
static bool is_real(const weft_io_t *io)
{
	return io->fd < WEFT__SIM_BASE && (io->fd >= 0 || !weft__kind(io)->names);
}

/* The simulator may switch tasks after each operation: other tasks can see its effect before the caller continues. */
static int let_others_run(weft_io_t *io, int next)
{
	if (next != WEFT_IO_DONE || weft__turn_ends(WEFT__LETS_GO) != WEFT__TURN_YIELDS)
		return next;
	io->step = WEFT__OVER;
	return WEFT_IO_YIELDS;
}

static int begin(struct weft__world *world, weft_io_t *io)
{
	struct weft__node *node;

	io->way = weft__io_way(io);
	if (is_lookup(io) || (weft__kind(io)->names && !is_real(io)))
		return delay(world, NULL, io);
	if (is_real(io))
		return weft__io_here(io);
	node = weft__node_of(world, io->fd);
	if (node && ((node->kind == WEFT__OPEN_FILE && io->kind != WEFT_IO_POLL) || io->kind == WEFT_IO_WATCH))
		return delay(world, node, io);
	return try(world, io);
}

int weft__sim_begin(weft_io_t *io)
{
	struct weft__world *world = weft__world();

	if (world)
		return let_others_run(io, begin(world, io));
	io->result = -ENOMEM;
	return WEFT_IO_DONE;
}

int weft__sim_go_on(weft_io_t *io)
{
	struct weft__world *world = weft__world();
	int result = io->waiter.result;

	leave(world, io);
	/* A time at which data arrive has come, not its deadline. */
	if (result == -ETIMEDOUT && (io->deadline == WEFT_NEVER || weft__world_now(world) < io->deadline))
		result = 0;
	if (!result && io->place && !weft__node_of(world, io->fd))
		result = -ECANCELED; /* closed after it was woken */
	if (result)
		return done(world, io, result);
	return let_others_run(io, io->step == WEFT__SUBMITTED ? do_it(world, io) : try(world, io));
}

/* ---- for programs ------------------------------------------------------------------------------------------------ */

static int host_named(const struct weft__world *world, const char *name)
{
	unsigned i;

	for (i = 0; name && i < world->host_count; i++)
		if (!strcmp(world->hosts[i]->name, name))
			return (int)i;
	return -ENOENT;
}

/* 0: `world` is set; or a negative errno. */
static int find_world(struct weft__world **world)
{
	if (!weft__simulated())
		return -EPERM;
	*world = weft__world();
	return *world ? 0 : -ENOMEM;
}

int weft__world_host_named(const char *name, struct weft__world **world)
{
	int error = find_world(world);

	return error ? error : host_named(*world, name);
}

int weft_world_set(const weft_world_t *profile)
{
	struct weft__world *world;
	int error = find_world(&world);

	if (!error)
		world->profile = profile ? *profile : (weft_world_t){0};
	return error;
}

int weft_world_host(const char *name)
{
	struct weft__world *world;
	int host, error = find_world(&world);

	if (error)
		return error;
	if (!name || !*name || strlen(name) >= sizeof world->hosts[0]->name)
		return -EINVAL;
	host = host_named(world, name);
	if (host < 0)
		host = add_host(world, name);
	if (host < 0)
		return host;
	weft__task()->host = (unsigned)host;
	return 0;
}

bool weft__world_is_cut(const struct weft__world *world, unsigned a, unsigned b)
{
	size_t i;

	for (i = 0; i < world->cut_count; i++)
		if ((world->cuts[2 * i] == a && world->cuts[2 * i + 1] == b) ||
		    (world->cuts[2 * i] == b && world->cuts[2 * i + 1] == a))
			return true;
	return false;
}

static int cut(struct weft__world *world, unsigned a, unsigned b)
{
	uint32_t *cuts;

	if (a == b || weft__world_is_cut(world, a, b))
		return 0;
	cuts = realloc(world->cuts, 2 * (world->cut_count + 1) * sizeof *cuts);
	if (!cuts)
		return -ENOMEM;
	cuts[2 * world->cut_count] = a;
	cuts[2 * world->cut_count + 1] = b;
	world->cuts = cuts;
	world->cut_count++;
	return 0;
}

static int mend(struct weft__world *world, unsigned a, unsigned b)
{
	uint32_t *cuts = world->cuts;
	size_t i = 0;

	while (i < world->cut_count)
		if ((cuts[2 * i] == a && cuts[2 * i + 1] == b) || (cuts[2 * i] == b && cuts[2 * i + 1] == a))
			memmove(&cuts[2 * i], &cuts[2 * i + 2], 2 * (--world->cut_count - i) * sizeof *cuts);
		else
			i++;
	return 0;
}

static int change(const char *a, const char *b, int (*how)(struct weft__world *, unsigned, unsigned))
{
	struct weft__world *world;
	struct weft__node *node;
	int from, to, error = find_world(&world);

	if (error)
		return error;
	from = host_named(world, a);
	to = b ? host_named(world, b) : 0;
	if (from < 0 || to < 0)
		return -ENOENT;
	if (b)
		error = how(world, (unsigned)from, (unsigned)to);
	for (to = 0; !b && !error && to < (int)world->host_count; to++)
		error = how(world, (unsigned)from, (unsigned)to);
	for (node = world->nodes; node; node = node->next)
		weft__sim_cut_changed(world, node);
	return error;
}

int weft_world_cut(const char *a, const char *b)
{
	return change(a, b, cut);
}

int weft_world_mend(const char *a, const char *b)
{
	return change(a, b, mend);
}

int weft_world_crash(const char *name)
{
	struct weft__world *world;
	int host = weft__world_host_named(name, &world);
	size_t i;

	if (host < 0)
		return host;
	for (i = 0; i < world->count; i++)
		if (world->entries[i].node && world->entries[i].node->host == (unsigned)host) {
			end_waits(world, WEFT__SIM_BASE + (int)i);
			weft__sim_end(world, world->entries[i].node, true);
		}
	weft__sim_forget(&world->hosts[host]->sent);
	weft__sim_files_crash(world, (unsigned)host);
	weft__sim_processes_crash(world, (unsigned)host);
	return 0;
}

uint64_t weft_world_random(void)
{
	struct weft__world *world = weft__world();

	return world ? weft__sim_random(world->rt) : 0;
}
