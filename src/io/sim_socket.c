/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Making sockets and pipes of the simulated world: addresses and names, binding, the beginning of connections. */
#define _GNU_SOURCE
#include "io/sim.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define REPEAT 1000000000ull /* nanoseconds until a connection request is sent again; doubles each time */

enum {
	FIRST_ADDRESS = 0x0a000001, /* 10.0.0.1 */
	REPEATS = 6,
	BUFFER_LEAST = 4096,
	BUFFER_CHOICES = 5,
	PIPE_BUFFER = 65536,
	DATAGRAM_BUFFER = 212992,
	FIRST_PORT = 32768,
	PORTS = 28232,
};

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static int unix_spot(const struct sockaddr_un *un, size_t size, struct weft__spot *spot)
{
	size_t head = offsetof(struct sockaddr_un, sun_path);

	if (size <= head || size > sizeof *un)
		return -EINVAL;
	spot->is_unix = 1;
	spot->length = (uint8_t)(size - head);
	if (un->sun_path[0])
		spot->length = (uint8_t)strnlen(un->sun_path, size - head);
	memcpy(spot->name, un->sun_path, spot->length);
	return 0;
}

static int ip_spot(struct weft__world *world, uint32_t ip, struct weft__spot *spot)
{
	if (!ip) {
		spot->is_any = 1;
	} else if (ip >> 24 == 127) {
		spot->is_loopback = 1;
	} else {
		if (ip < FIRST_ADDRESS || ip - FIRST_ADDRESS >= world->host_count)
			return -EHOSTUNREACH;
		spot->host = ip - FIRST_ADDRESS;
	}
	return 0;
}

static int ip6_spot(struct weft__world *world, const struct sockaddr_in6 *v6, struct weft__spot *spot)
{
	uint32_t ip;

	memcpy(&ip, &v6->sin6_addr.s6_addr[12], sizeof ip);
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return ip_spot(world, ntohl(ip), spot);
	spot->is_any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	spot->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
	return spot->is_any || spot->is_loopback ? 0 : -EHOSTUNREACH;
}

int weft__sim_spot(struct weft__world *world, const void *address, size_t size, struct weft__spot *spot)
{
	const struct sockaddr *a = address;

	memset(spot, 0, sizeof *spot);
	spot->host = weft__world_here();
	if (!a || size < sizeof a->sa_family)
		return -EINVAL;
	if (a->sa_family == AF_UNIX)
		return unix_spot(address, size, spot);
	if (a->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
		spot->port = ntohs(((const struct sockaddr_in *)address)->sin_port);
		return ip_spot(world, ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr), spot);
	}
	if (a->sa_family != AF_INET6 || size < sizeof(struct sockaddr_in6))
		return a->sa_family == AF_INET || a->sa_family == AF_INET6 ? -EINVAL : -EAFNOSUPPORT;
	spot->port = ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return ip6_spot(world, address, spot);
}

static uint32_t ip_of(const struct weft__spot *spot)
{
	return htonl(spot->is_loopback ? INADDR_LOOPBACK : spot->is_any ? 0 : FIRST_ADDRESS + spot->host);
}

static void fill_v6(const struct weft__spot *spot, struct sockaddr_in6 *v6)
{
	uint32_t ip = ip_of(spot);

	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(spot->port);
	if (spot->is_loopback) {
		v6->sin6_addr = in6addr_loopback;
	} else if (!spot->is_any) {
		v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xff;
		memcpy(&v6->sin6_addr.s6_addr[12], &ip, sizeof ip);
	}
}

void weft__sim_address(struct weft__world *world, int domain, const struct weft__spot *spot, void *address,
		       socklen_t *size)
{
	union {
		struct sockaddr_un un;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a;
	size_t length = sizeof a.v4;

	(void)world;
	memset(&a, 0, sizeof a);
	if (domain == AF_UNIX) {
		a.un.sun_family = AF_UNIX;
		memcpy(a.un.sun_path, spot->name, spot->length);
		length = offsetof(struct sockaddr_un, sun_path) + spot->length + (spot->length && spot->name[0]);
	} else if (domain == AF_INET6) {
		fill_v6(spot, &a.v6);
		length = sizeof a.v6;
	} else {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(spot->port);
		a.v4.sin_addr.s_addr = ip_of(spot);
	}
	memcpy(address, &a, length < *size ? length : *size);
	*size = (socklen_t)length;
}

static bool same_name(const struct weft__spot *a, const struct weft__spot *b)
{
	return a->length == b->length && !memcmp(a->name, b->name, a->length);
}

/* Can one address refer to both? */
static bool overlap(const struct weft__spot *a, const struct weft__spot *b)
{
	if (a->is_unix != b->is_unix || a->host != b->host)
		return false;
	if (a->is_unix)
		return same_name(a, b);
	return a->port == b->port && (a->is_any || b->is_any || a->is_loopback == b->is_loopback);
}

static bool same_kind(const struct weft__node *a, int type)
{
	return (a->type == SOCK_DGRAM) == (type == SOCK_DGRAM);
}

static bool is_taken(struct weft__world *world, const struct weft__spot *spot, int type, bool shared)
{
	const struct weft__node *node;

	for (node = world->nodes; node; node = node->next)
		if (node->bound && same_kind(node, type) && overlap(&node->spot, spot) && !(shared && node->shared))
			return true;
	return false;
}

static int bind_to(struct weft__world *world, struct weft__node *node, const struct weft__spot *spot)
{
	struct weft__spot at = *spot;
	struct weft__host *host = world->hosts[at.host];
	unsigned tries;

	for (tries = 0; !at.is_unix && !spot->port && tries < PORTS; tries++) {
		host->port = host->port < FIRST_PORT + PORTS - 1 ? (uint16_t)(host->port + 1) : FIRST_PORT;
		at.port = host->port;
		if (!is_taken(world, &at, node->type, false))
			break;
	}
	if (tries == PORTS || is_taken(world, &at, node->type, node->shared))
		return -EADDRINUSE;
	node->spot = at;
	node->bound = true;
	return 0;
}

int weft__sim_bind_any(struct weft__world *world, struct weft__node *node)
{
	struct weft__spot any = {.host = node->host, .is_any = 1};

	return bind_to(world, node, &any);
}

/* If several nodes share an address the seed chooses. */
struct weft__node *weft__sim_find(struct weft__world *world, const struct weft__spot *spot, enum weft__node_kind kind)
{
	struct weft__node *node, *found = NULL;
	uint64_t count = 0;

	for (node = world->nodes; node; node = node->next)
		if (node->kind == kind && node->bound && overlap(&node->spot, spot) &&
		    (!count++ || !weft__world_below(world, count)))
			found = node;
	return found;
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static size_t capacity(struct weft__world *world)
{
	if (world->profile.buffer)
		return world->profile.buffer;
	return (size_t)BUFFER_LEAST << weft__world_below(world, BUFFER_CHOICES);
}

static void join(struct weft__node *a, struct weft__node *b)
{
	a->peer = b;
	b->peer = a;
	a->kind = b->kind = WEFT__CONNECTED;
	a->far = b->host;
	b->far = a->host;
}

/* Adds a connection to the listener's queue. 0, or a negative errno. */
static int admit(struct weft__world *world, struct weft__node *client, struct weft__node *listener)
{
	struct weft__node *server = weft__node_new(world, WEFT__CONNECTED), **end;

	if (!server)
		return -ENOMEM;
	server->domain = listener->domain;
	server->type = SOCK_STREAM;
	server->host = listener->host;
	server->is_local = client->is_local;
	server->spot = listener->spot;
	server->remote = client->spot;
	server->remote.is_any = false;
	server->remote.is_loopback = client->remote.is_loopback;
	server->in.capacity = capacity(world);
	client->in.capacity = capacity(world);
	server->is_slow = !server->is_local && weft__world_happens(world, world->profile.slow);
	client->is_slow = !server->is_local && weft__world_happens(world, world->profile.slow);
	join(server, client);
	for (end = &listener->queue; *end; end = &(*end)->queue_next)
		;
	*end = server;
	listener->queued++;
	weft__node_stir(listener, WEFT__IN);
	return 0;
}

static uint64_t way_to(struct weft__world *world, const struct weft__node *node)
{
	if (node->is_local)
		return weft__world_now(world);
	if (weft__world_is_cut(world, node->host, node->remote.host))
		return WEFT_NEVER;
	return weft__world_now(world) + weft__world_latency(world);
}

static void send_request(struct weft__world *world, struct weft__node *node)
{
	node->request_at = way_to(world, node);
	node->retry_at = weft__world_now(world) + (REPEAT << node->tries++);
}

/* The request has arrived. A full queue drops it, and it will be sent again; on a Unix socket the connect waits for
 * room, which the next accept makes. */
static void answer(struct weft__world *world, struct weft__node *node, struct weft__node **waits_for)
{
	struct weft__node *listener = weft__sim_find(world, &node->remote, WEFT__LISTENER);
	bool listens = listener && listener->reads;

	if (listens && listener->queued > listener->backlog) {
		node->request_at = WEFT_NEVER;
		if (node->is_local)
			*waits_for = listener;
		return;
	}
	node->answer = listens ? admit(world, node, listener) : -ECONNREFUSED;
	node->answer_at = way_to(world, node);
}

static int64_t begin_to_connect(struct weft__world *world, struct weft__node *node, const weft_io_t *io)
{
	int error = weft__sim_spot(world, io->data, io->length, &node->remote);

	if (error)
		return error;
	if (node->remote.is_unix != node->is_local)
		return -EAFNOSUPPORT;
	if (node->remote.is_any) {
		node->remote.is_any = false;
		node->remote.is_loopback = true;
	}
	if (!node->is_local && !node->bound)
		error = weft__sim_bind_any(world, node);
	if (error)
		return error == -EADDRINUSE ? -EADDRNOTAVAIL : error;
	node->has_remote = true;
	node->far = node->remote.host;
	return 0;
}

static int64_t answered(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	if (node->answer_at > weft__world_now(world)) {
		weft__sooner(when, node->answer_at);
		return -EAGAIN;
	}
	node->answer_at = node->request_at = 0;
	node->has_remote = !node->answer;
	return node->answer;
}

int64_t weft__sim_connect(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when,
			  struct weft__node **waits_for)
{
	uint64_t now = weft__world_now(world);
	int64_t error;

	if (node->is_pipe || node->kind == WEFT__OPEN_FILE)
		return -ENOTSOCK;
	if (!io->data || io->length < sizeof(sa_family_t))
		return -EINVAL;
	if (node->kind == WEFT__DATAGRAMS && !node->peer)
		return begin_to_connect(world, node, io);
	if (node->answer_at)
		return answered(world, node, when);
	if (node->kind != WEFT__SOCKET)
		return -EISCONN;
	if (!node->request_at) {
		error = begin_to_connect(world, node, io);
		if (error)
			return error;
		node->tries = 0;
		send_request(world, node);
	}
	if (node->is_local) {
		node->request_at = now;
		node->retry_at = WEFT_NEVER;
	}
	if (node->request_at > now && node->retry_at <= now) {
		if (node->tries > REPEATS) {
			node->request_at = 0;
			return -ETIMEDOUT;
		}
		send_request(world, node);
	}
	if (node->request_at <= now) {
		answer(world, node, waits_for);
		if (node->answer_at)
			return answered(world, node, when);
	}
	weft__sooner(when, node->request_at);
	weft__sooner(when, node->retry_at);
	return -EAGAIN;
}

int64_t weft__sim_accept(struct weft__world *world, struct weft__node *node, weft_io_t *io)
{
	struct weft__node *server = node->queue;
	int fd;

	if (node->kind == WEFT__DATAGRAMS && node->type == SOCK_DGRAM)
		return -EOPNOTSUPP;
	if (node->kind != WEFT__LISTENER || !node->reads)
		return node->is_pipe || node->kind == WEFT__OPEN_FILE ? -ENOTSOCK : -EINVAL;
	if (!server)
		return -EAGAIN;
	node->queue = server->queue_next;
	node->queued--;
	weft__node_stir(node, WEFT__OUT);
	fd = weft__node_describe(world, server);
	if (fd >= 0 && io->data && io->more)
		weft__sim_address(world, server->domain, &server->remote, io->data, io->more);
	return fd;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct weft__node *new_socket(struct weft__world *world, int domain, int type)
{
	bool is_stream = type == SOCK_STREAM;
	struct weft__node *node = weft__node_new(world, is_stream ? WEFT__SOCKET : WEFT__DATAGRAMS);

	if (!node)
		return NULL;
	node->domain = domain;
	node->type = type;
	node->is_local = domain == AF_UNIX;
	node->in.capacity = is_stream ? 0 : DATAGRAM_BUFFER;
	return node;
}

static int check_type(int domain, int *type)
{
	*type &= ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	return *type == SOCK_STREAM || *type == SOCK_DGRAM || (*type == SOCK_SEQPACKET && domain == AF_UNIX)
		   ? 0
		   : -ESOCKTNOSUPPORT;
}

int weft__sim_socket(int domain, int type)
{
	struct weft__world *world = weft__world();
	struct weft__node *node;
	int error = check_type(domain, &type);

	if (error)
		return error;
	node = world ? new_socket(world, domain, type) : NULL;
	return node ? weft__node_describe(world, node) : -ENOMEM;
}

/* Takes ownership of both nodes. */
static int describe_both(struct weft__world *world, struct weft__node *a, struct weft__node *b, int fds[2])
{
	int second;

	if (!a || !b) {
		if (a)
			weft__node_drop(a);
		return -ENOMEM;
	}
	fds[0] = weft__node_describe(world, a);
	if (fds[0] < 0) {
		weft__node_drop(b);
		return fds[0];
	}
	second = weft__node_describe(world, b);
	if (second < 0) {
		(void)weft__sim_close(fds[0]);
		return second;
	}
	fds[1] = second;
	return 0;
}

int weft__sim_socketpair(int domain, int type, int fds[2])
{
	struct weft__world *world = weft__world();
	struct weft__node *a, *b;
	int error = check_type(domain, &type);

	if (error || domain != AF_UNIX)
		return error ? error : -EOPNOTSUPP;
	a = world ? new_socket(world, domain, type) : NULL;
	b = a ? new_socket(world, domain, type) : NULL;
	error = describe_both(world, a, b, fds);
	if (error)
		return error;
	if (type == SOCK_STREAM) {
		join(a, b);
		a->in.capacity = capacity(world);
		b->in.capacity = capacity(world);
	} else {
		a->peer = b;
		b->peer = a;
		a->has_remote = b->has_remote = true;
	}
	return 0;
}

int weft__sim_pipe(int fds[2])
{
	struct weft__world *world = weft__world();
	struct weft__node *from = world ? weft__node_new(world, WEFT__CONNECTED) : NULL;
	struct weft__node *to = from ? weft__node_new(world, WEFT__CONNECTED) : NULL;
	int error = describe_both(world, from, to, fds);

	if (error)
		return error;
	join(from, to);
	from->is_pipe = to->is_pipe = from->is_local = to->is_local = true;
	from->writes = to->reads = 0;
	from->in.capacity = PIPE_BUFFER;
	return 0;
}

int weft__sim_listen(const weft_address_t *address, int backlog, unsigned flags)
{
	struct weft__world *world = weft__world();
	bool datagrams = flags & WEFT_LISTEN_UDP;
	struct weft__spot spot;
	struct weft__node *node;
	int error;

	if (!world)
		return -ENOMEM;
	error = weft__sim_spot(world, &address->address, address->size, &spot);
	if (error || spot.host != weft__world_here())
		return error == -EINVAL ? error : -EADDRNOTAVAIL;
	if (spot.is_unix && weft__sim_has_file(world, ((const struct sockaddr_un *)&address->address)->sun_path))
		return -EADDRINUSE;
	node = new_socket(world, address->address.ss_family, datagrams ? SOCK_DGRAM : SOCK_STREAM);
	if (!node)
		return -ENOMEM;
	node->shared = flags & WEFT_LISTEN_SHARED && !spot.is_unix;
	error = bind_to(world, node, &spot);
	if (error) {
		weft__node_drop(node);
		return error;
	}
	if (!datagrams)
		node->kind = WEFT__LISTENER;
	node->backlog = backlog > 0 && backlog < SOMAXCONN ? (unsigned)backlog : SOMAXCONN;
	return weft__node_describe(world, node);
}

int weft__sim_port(int number)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, number) : NULL;

	if (!node || node->kind == WEFT__DEAD)
		return -EBADF;
	if (node->is_pipe || node->kind == WEFT__OPEN_FILE)
		return -ENOTSOCK;
	return node->is_local ? -EAFNOSUPPORT : node->spot.port;
}

int weft__sim_name(int number, bool of_peer, weft_address_t *address)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, number) : NULL;
	struct weft__spot spot;

	if (!node || node->kind == WEFT__DEAD)
		return -EBADF;
	if (node->is_pipe || node->kind == WEFT__OPEN_FILE)
		return -ENOTSOCK;
	if (of_peer && node->kind != WEFT__CONNECTED && !node->has_remote)
		return -ENOTCONN;
	spot = of_peer ? node->remote : node->spot;
	if (spot.is_any && node->kind == WEFT__CONNECTED) {
		spot.is_any = false;
		spot.is_loopback = node->remote.is_loopback;
	}
	weft__sim_address(world, node->domain, &spot, &address->address, &address->size);
	return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int find_name(struct weft__world *world, const char *name, struct weft__spot *spot)
{
	unsigned i;

	spot->host = weft__world_here();
	spot->is_loopback = !name || !strcmp(name, "localhost");
	for (i = 0; !spot->is_loopback && i < world->host_count; i++)
		if (!strcmp(world->hosts[i]->name, name)) {
			spot->host = i;
			return 0;
		}
	return spot->is_loopback ? 0 : -ENOENT;
}

static int find_port(const char *service, struct weft__spot *spot)
{
	unsigned port;
	int error = weft__port_of(service, &port);

	if (error == -EAGAIN && (!strcmp(service, "http") || !strcmp(service, "https"))) {
		port = service[4] ? 443 : 80;
		error = 0;
	}
	spot->port = (uint16_t)port;
	return error == -EAGAIN ? -EINVAL : error;
}

int64_t weft__sim_resolve(struct weft__world *world, const struct weft__resolve *what)
{
	struct weft__spot spot = {0};
	int error = find_port(what->service, &spot), domain = AF_INET;
	struct sockaddr_in6 *v6;
	weft_address_t found;

	if (error)
		return error;
	memset(&found, 0, sizeof found);
	found.size = sizeof found.address;
	v6 = (struct sockaddr_in6 *)&found.address;
	if (what->name && inet_pton(AF_INET6, what->name, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(spot.port);
		found.size = sizeof *v6;
	} else {
		struct sockaddr_in *v4 = (struct sockaddr_in *)&found.address;
		bool number = what->name && inet_pton(AF_INET, what->name, &v4->sin_addr) == 1;
		uint32_t ip = number ? v4->sin_addr.s_addr : 0;

		error = number ? 0 : find_name(world, what->name, &spot);
		if (error)
			return error;
		weft__sim_address(world, domain, &spot, &found.address, &found.size);
		if (number)
			v4->sin_addr.s_addr = ip;
	}
	if (!what->most)
		return 0;
	what->addresses[0] = found;
	return 1;
}
