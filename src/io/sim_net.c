/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The nodes of the simulated world: reading, writing, polling and ending them; sim_socket.c makes them. */
#define _GNU_SOURCE
#include "io/sim.h"

#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE (900 * 1000000000ull) /* nanoseconds that a connection survives without an answer */

enum { DATAGRAM_MOST = 65507, SLOWNESS = 50, SENDFILE_MOST = 65536 };

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* The time at which data arrive at the peer, after all earlier data in transit. */
static uint64_t arrival(struct weft__world *world, struct weft__node *from, const struct weft__flow *flow)
{
	uint64_t at = weft__world_now(world);

	if (!from->is_local && weft__world_is_cut(world, from->host, from->far)) {
		if (!from->cut_since)
			from->cut_since = at;
		return WEFT_NEVER;
	}
	if (!from->is_local)
		at += weft__world_latency(world) * (from->is_slow ? SLOWNESS : 1);
	return flow && flow->last_at > at ? flow->last_at : at;
}

/* Holds a time back from now on, or releases it: released times follow each other. */
static void restamp(uint64_t *at, bool is_cut, uint64_t now, uint64_t *next)
{
	if (is_cut && *at > now)
		*at = WEFT_NEVER;
	if (!is_cut && *at == WEFT_NEVER)
		*at = *next += 1000;
}

void weft__sim_cut_changed(struct weft__world *world, struct weft__node *node)
{
	bool is_cut = weft__world_is_cut(world, node->host, node->far);
	uint64_t now = weft__world_now(world), next = now + weft__world_latency(world);
	struct weft__sim_segment *s;

	if (node->is_local || node->kind == WEFT__DATAGRAMS || node->kind == WEFT__OPEN_FILE)
		return;
	for (s = node->in.first; s; s = s->next)
		restamp(&s->at, is_cut, now, &next);
	if (node->in.last)
		node->in.last_at = node->in.last->at;
	restamp(&node->in.end_at, is_cut, now, &next);
	restamp(&node->reset_at, is_cut, now, &next);
	restamp(&node->answer_at, is_cut, now, &next);
	if (node->peer && !is_cut)
		node->peer->cut_since = 0;
	if (node->peer && is_cut && node->in.last_at == WEFT_NEVER && !node->peer->cut_since)
		node->peer->cut_since = now;
	weft__node_stir(node, WEFT__IN | WEFT__OUT);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static size_t total(const struct iovec *parts, size_t count)
{
	size_t i, length = 0;

	for (i = 0; i < count; i++)
		length += parts[i].iov_len;
	return length;
}

/* Copies bytes from, or to, a position in several buffers. */
static void copy(const struct iovec *parts, size_t at, char *data, size_t length, bool out)
{
	size_t part;

	for (; length; parts++) {
		if (at >= parts->iov_len) {
			at -= parts->iov_len;
			continue;
		}
		part = parts->iov_len - at < length ? parts->iov_len - at : length;
		if (out)
			memcpy((char *)parts->iov_base + at, data, part);
		else
			memcpy(data, (char *)parts->iov_base + at, part);
		data += part;
		length -= part;
		at = 0;
	}
}

static void append(struct weft__flow *flow, struct weft__sim_segment *s)
{
	s->next = NULL;
	if (flow->last)
		flow->last->next = s;
	else
		flow->first = s;
	flow->last = s;
	flow->last_at = s->at;
	flow->held += s->length;
}

/* Closes the segment's descriptors that were not received. */
static void discard(struct weft__world *world, struct weft__sim_segment *s)
{
	unsigned i;

	for (i = 0; i < s->passed_count; i++)
		weft__node_release(world, s->passed[i]);
	free((void *)s->passed);
	free(s);
}

static void drop_first(struct weft__world *world, struct weft__flow *flow)
{
	struct weft__sim_segment *s = flow->first;

	flow->first = s->next;
	if (!flow->first)
		flow->last = NULL;
	discard(world, s);
}

static void drop_all(struct weft__world *world, struct weft__node *node)
{
	while (node->in.first)
		drop_first(world, &node->in);
	node->in.held = 0;
}

/* NULL: no memory. The caller writes its bytes. */
static struct weft__sim_segment *new_segment(size_t length)
{
	struct weft__sim_segment *s = malloc(sizeof *s + length);

	if (s) {
		s->length = length;
		s->taken = 0;
		s->passed = NULL;
		s->passed_count = 0;
	}
	return s;
}

/* Drops the segments that have not arrived. */
static void lose(struct weft__world *world, struct weft__flow *flow)
{
	struct weft__sim_segment **at = &flow->first, *s;
	uint64_t now = weft__world_now(world);

	flow->last = NULL;
	while ((s = *at)) {
		if (s->at <= now) {
			flow->last = s;
			at = &s->next;
			continue;
		}
		*at = s->next;
		flow->held -= s->length - s->taken;
		discard(world, s);
	}
	flow->last_at = flow->last ? flow->last->at : 0;
}

/* The bytes that have arrived, up to the end of the next segment with descriptors. */
static size_t arrived(const struct weft__flow *flow, uint64_t now, uint64_t *when)
{
	const struct weft__sim_segment *s;
	size_t bytes = 0;

	for (s = flow->first; s && s->at <= now; s = s->next) {
		bytes += s->length - s->taken;
		if (s->passed)
			return bytes;
	}
	if (s && s->at > now)
		weft__sooner(when, s->at);
	return bytes;
}

/* ---- descriptors in transit -------------------------------------------------------------------------------------- */

struct passed {
	struct weft__node **nodes;
	unsigned count;
};

static int pass(struct weft__world *world, struct passed *p, const struct cmsghdr *c)
{
	size_t i, count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	struct weft__node **nodes = realloc((void *)p->nodes, (p->count + count + 1) * sizeof(*nodes));
	int number;

	if (!nodes)
		return -ENOMEM;
	p->nodes = nodes;
	for (i = 0; i < count; i++) {
		memcpy(&number, CMSG_DATA(c) + i * sizeof number, sizeof number);
		nodes[p->count] = weft__node_of(world, number);
		if (!nodes[p->count])
			return -EBADF;
		nodes[p->count]->references++;
		nodes[p->count++]->descriptors++;
	}
	return 0;
}

static void take_back(struct weft__world *world, struct passed *p)
{
	while (p->count)
		weft__node_release(world, p->nodes[--p->count]);
	free((void *)p->nodes);
	p->nodes = NULL;
}

/* Collects the descriptors that a message sends. */
static int collect(struct weft__world *world, struct passed *p, struct msghdr *m)
{
	struct cmsghdr *c;
	int error = 0;

	for (c = m->msg_control ? CMSG_FIRSTHDR(m) : NULL; c && !error; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			error = pass(world, p, c);
	if (error)
		take_back(world, p);
	return error;
}

static void take_along(struct weft__sim_segment *s, struct passed *p)
{
	if (!p || !p->count)
		return;
	s->passed = p->nodes;
	s->passed_count = p->count;
	*p = (struct passed){NULL, 0};
}

/* Makes a descriptor for the node. `peeks`: an additional descriptor; else the descriptor in transit becomes it. */
static int describe_passed(struct weft__world *world, struct weft__node *node, bool peeks)
{
	if (peeks)
		node->references++;
	else
		node->descriptors--;
	return weft__node_describe(world, node);
}

/* Receives as many descriptors as fit. The rest are closed, unless this is a peek. */
static void hand_over(struct weft__world *world, struct weft__sim_segment *s, struct msghdr *m, size_t room, bool peeks)
{
	size_t most = room >= CMSG_LEN(0) ? (room - CMSG_LEN(0)) / sizeof(int) : 0, size;
	struct cmsghdr *c = m->msg_control;
	unsigned i, count = 0;
	int number;

	for (i = 0; i < s->passed_count; i++) {
		number = -1;
		if (count < most)
			number = describe_passed(world, s->passed[i], peeks);
		else if (!peeks)
			weft__node_release(world, s->passed[i]);
		if (number >= 0)
			memcpy(CMSG_DATA(c) + count++ * sizeof number, &number, sizeof number);
	}
	if (count < s->passed_count)
		m->msg_flags |= MSG_CTRUNC;
	if (!peeks) {
		free((void *)s->passed);
		s->passed = NULL;
		s->passed_count = 0;
	}
	if (!count)
		return;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof number);
	size = CMSG_SPACE(count * sizeof number);
	m->msg_controllen = size < room ? size : room;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void reset(struct weft__world *world, struct weft__node *node, int error)
{
	node->error = error;
	node->reset_at = weft__world_now(world);
	lose(world, &node->in);
	weft__node_stir(node, WEFT__IN | WEFT__OUT);
}

/* The peer will see a reset. */
static void send_reset(struct weft__world *world, struct weft__node *node)
{
	struct weft__node *peer = node->peer;

	if (!peer)
		return;
	/* In TCP a reset after the end is a broken pipe. */
	peer->error = peer->in.end_at && !peer->is_local ? -EPIPE : -ECONNRESET;
	peer->reset_at = arrival(world, node, NULL);
	peer->peer = NULL;
	node->peer = NULL;
	weft__node_stir(peer, WEFT__IN | WEFT__OUT);
}

/* The error that has ended the connection. 0: none yet; then *when is the earliest time at which it may end. */
static int broken(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	uint64_t now = weft__world_now(world);

	if (!node->reset_at && node->peer && !node->is_local && weft__world_happens(world, world->profile.reset)) {
		send_reset(world, node);
		reset(world, node, -ECONNRESET);
	}
	if (!node->reset_at && node->cut_since && now >= node->cut_since + PATIENCE) {
		send_reset(world, node);
		reset(world, node, -ETIMEDOUT);
	}
	if (!node->reset_at && node->cut_since)
		weft__sooner(when, node->cut_since + PATIENCE);
	if (node->reset_at > now)
		weft__sooner(when, node->reset_at);
	return node->reset_at && node->reset_at <= now ? node->error : 0;
}

static void consume(struct weft__world *world, struct weft__node *node, size_t length)
{
	struct weft__flow *flow = &node->in;
	struct weft__sim_segment *s;
	size_t part;

	flow->held -= length;
	while (length) {
		s = flow->first;
		part = s->length - s->taken < length ? s->length - s->taken : length;
		s->taken += part;
		length -= part;
		if (s->taken == s->length)
			drop_first(world, flow);
	}
	if (node->peer)
		weft__node_stir(node->peer, WEFT__OUT);
}

/* Copies the first bytes that have arrived to position `at` of the buffers. */
static void look(const struct weft__node *node, const struct iovec *parts, size_t at, size_t length)
{
	struct weft__sim_segment *s;
	size_t part;

	for (s = node->in.first; length; s = s->next) {
		part = s->length - s->taken < length ? s->length - s->taken : length;
		copy(parts, at, s->data + s->taken, part, true);
		at += part;
		length -= part;
	}
}

/* Receives the descriptors that come with the next bytes; `m` NULL: closes them. */
static void take_passed(struct weft__world *world, struct weft__node *node, size_t length, struct msghdr *m,
			size_t room, bool peeks)
{
	struct weft__sim_segment *s;
	struct msghdr nobody = {0};

	for (s = node->in.first; s && !s->passed && s->length - s->taken < length; s = s->next)
		length -= s->length - s->taken;
	if (s && s->passed)
		hand_over(world, s, m ? m : &nobody, m ? room : 0, peeks);
}

/* There is nothing to read: is it the end? */
static int64_t end_of(struct weft__world *world, struct weft__node *node, int error, uint64_t *when)
{
	uint64_t now = weft__world_now(world);

	/* In TCP an error after the end is reported to writers only. */
	if (!node->is_local && node->in.end_at && node->in.end_at <= now)
		return 0;
	if (error) {
		if (node->told)
			return 0;
		node->told = true;
		return error;
	}
	if (!node->reads)
		return 0;
	if (node->in.end_at && node->in.end_at <= now)
		return 0;
	if (node->in.end_at)
		weft__sooner(when, node->in.end_at);
	return -EAGAIN;
}

/* `done`: the bytes in the buffers that are already filled. `m`: receives descriptors, if they are wanted. */
static int64_t take(struct weft__world *world, struct weft__node *node, const struct iovec *parts, size_t count,
		    size_t done, int flags, struct msghdr *m, uint64_t *when)
{
	size_t room = m ? m->msg_controllen : 0, there, wanted = total(parts, count) - done;
	int error;

	if (m) {
		m->msg_namelen = 0;
		m->msg_flags = 0;
	}
	if (node->is_pipe && !node->reads)
		return -EBADF;
	if (node->is_pipe && !wanted)
		return 0;
	error = broken(world, node, when);
	there = arrived(&node->in, weft__world_now(world), when);
	if (!there)
		return end_of(world, node, error, when);
	wanted = there < wanted ? there : wanted;
	if (!(flags & MSG_WAITALL && flags & MSG_PEEK))
		wanted = weft__world_shorten(world, wanted);
	/* MSG_TRUNC discards the bytes, as in TCP. */
	if (node->is_local || !(flags & MSG_TRUNC))
		look(node, parts, done, wanted);
	if (m)
		m->msg_controllen = 0;
	take_passed(world, node, wanted, m, room, flags & MSG_PEEK);
	if (!(flags & MSG_PEEK))
		consume(world, node, wanted);
	return (int64_t)wanted;
}

/* MSG_WAITALL: io->offset counts the received bytes. Descriptors end the receive. */
static int64_t take_all(struct weft__world *world, struct weft__node *node, weft_io_t *io, struct msghdr *m,
			uint64_t *when)
{
	const size_t all = total(m->msg_iov, m->msg_iovlen), room = m->msg_controllen;
	int64_t n;

	for (;;) {
		const bool told = node->told;

		n = take(world, node, m->msg_iov, m->msg_iovlen, (size_t)io->offset, io->flags, m, when);
		if (n < 0 && io->offset && !node->is_local)
			node->told = told;
		if (n < 0 && ((n == -EAGAIN && !weft__io_does_not_wait(io)) || !io->offset))
			return n;
		io->offset += n > 0 ? n : 0;
		if (n <= 0 || (size_t)io->offset == all || m->msg_controllen || m->msg_flags & MSG_CTRUNC)
			return io->offset;
		m->msg_controllen = room;
	}
}

/* Only for TCP does the kernel wait for all bytes of a peek. io->offset is the count of bytes that were there. */
static int64_t peek_all(struct weft__world *world, struct weft__node *node, weft_io_t *io, struct msghdr *m,
			uint64_t *when)
{
	const bool told = node->told;
	uint64_t now = weft__world_now(world);
	int64_t n =
	    take(world, node, m->msg_iov, m->msg_iovlen, 0, io->flags, io->kind == WEFT_IO_RECVMSG ? m : NULL, when);

	if (n < 0 && io->offset)
		node->told = told;
	else
		io->offset = n > 0 ? n : 0;
	if (n <= 0 || node->is_local || (size_t)n == total(m->msg_iov, m->msg_iovlen) || weft__io_does_not_wait(io) ||
	    !node->reads || (node->in.end_at && node->in.end_at <= now) || (node->reset_at && node->reset_at <= now))
		return n;
	(void)arrived(&node->in, now, when);
	if (node->in.end_at)
		weft__sooner(when, node->in.end_at);
	return -EAGAIN;
}

/* Writes to a peer that has closed: over the network the writer learns that only from the answer to its data. */
static int64_t put_to_nobody(struct weft__world *world, struct weft__node *node, size_t length)
{
	uint64_t there;

	if (node->is_local)
		return -EPIPE;
	if (!node->reset_at) {
		there = arrival(world, node, NULL);
		node->reset_at = there == WEFT_NEVER ? there : there + weft__world_latency(world);
		node->error = node->in.end_at && node->in.end_at <= weft__world_now(world) ? -EPIPE : -ECONNRESET;
	}
	return (int64_t)length;
}

/* How many of the bytes can be written to the connection now? */
static size_t fits(struct weft__world *world, const struct weft__node *node, size_t length)
{
	const struct weft__flow *flow = &node->peer->in;
	size_t room = flow->capacity > flow->held ? flow->capacity - flow->held : 0;

	/* A short write to a pipe is not divided. */
	if (node->is_pipe && length <= PIPE_BUF)
		return length <= room ? length : 0;
	return room ? weft__world_shorten(world, length < room ? length : room) : 0;
}

static int64_t put(struct weft__world *world, struct weft__node *node, const struct iovec *parts, size_t count,
		   struct passed *along, uint64_t *when)
{
	size_t part, length = total(parts, count);
	struct weft__sim_segment *s;
	int error;

	if (!node->writes || (node->is_local && !node->is_pipe && !node->peer))
		return node->is_pipe ? -EBADF : -EPIPE;
	error = broken(world, node, when);
	if (error) {
		error = node->told ? -EPIPE : error;
		node->told = true;
		return error;
	}
	if (!length)
		return 0;
	if (!node->peer)
		return put_to_nobody(world, node, length);
	part = fits(world, node, length);
	if (!part)
		return -EAGAIN;
	s = new_segment(part);
	if (!s)
		return -ENOMEM;
	take_along(s, along);
	s->at = arrival(world, node, &node->peer->in);
	copy(parts, 0, s->data, part, false);
	append(&node->peer->in, s);
	weft__node_stir(node->peer, WEFT__IN);
	return WEFT_CANARY(sim_short_write_is_whole) ? (int64_t)length : (int64_t)part;
}

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

static bool has_ended(struct weft__world *world, const struct weft__node *node)
{
	return !node->reads || (node->in.end_at && node->in.end_at <= weft__world_now(world));
}

static struct weft__sim_segment *first_datagram(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	struct weft__sim_segment *s = node->in.first;

	if (s && s->at <= weft__world_now(world))
		return s;
	if (s)
		weft__sooner(when, s->at);
	return NULL;
}

/* Wakes senders on the host that wait for room. */
static void stir_senders(struct weft__world *world, const struct weft__node *node)
{
	struct weft__node *other;

	if (node->is_local)
		for (other = world->nodes; other; other = other->next)
			if (other->kind == WEFT__DATAGRAMS && other->is_local)
				weft__node_stir(other, WEFT__OUT);
}

static int64_t receive(struct weft__world *world, struct weft__node *node, struct msghdr *m, int flags, uint64_t *when)
{
	struct weft__sim_segment *s = first_datagram(world, node, when);
	size_t size, length, room = m->msg_controllen;

	if (node->error && !node->told) {
		node->told = true;
		return node->error;
	}
	/* A non-blocking receive sees the end only on a socket of packets. */
	if (!s && has_ended(world, node))
		return flags & MSG_DONTWAIT && node->type != SOCK_SEQPACKET ? -EAGAIN : 0;
	if (!s)
		return -EAGAIN;
	size = total(m->msg_iov, m->msg_iovlen);
	length = s->length < size ? s->length : size;
	copy(m->msg_iov, 0, s->data, length, true);
	m->msg_flags = s->length > size ? MSG_TRUNC : 0;
	m->msg_controllen = 0;
	if (s->passed)
		hand_over(world, s, m, room, flags & MSG_PEEK);
	if (!m->msg_name || (s->from.is_unix && !s->from.length))
		m->msg_namelen = 0;
	else
		weft__sim_address(world, node->domain, &s->from, m->msg_name, &m->msg_namelen);
	if (flags & MSG_TRUNC)
		length = s->length;
	if (!(flags & MSG_PEEK)) {
		node->in.held -= s->length;
		drop_first(world, &node->in);
		stir_senders(world, node);
	}
	return (int64_t)length;
}

/* Inserts by the time of arrival. */
static void insert(struct weft__flow *flow, struct weft__sim_segment *s)
{
	struct weft__sim_segment **at = &flow->first;

	while (*at && (*at)->at <= s->at)
		at = &(*at)->next;
	s->next = *at;
	*at = s;
	if (!s->next)
		flow->last = s;
	flow->held += s->length;
}

/* False: no memory. */
static bool send_copy(struct weft__world *world, struct weft__node *from, struct weft__node *to,
		      const struct iovec *parts, size_t length, struct passed *along)
{
	struct weft__sim_segment *s = new_segment(length);

	if (!s)
		return false;
	take_along(s, along);
	s->from = from->spot;
	s->from.is_unix = from->is_local;
	s->from.is_any = false;
	s->from.is_loopback = from->host == to->host && (from->spot.is_any || from->spot.is_loopback);
	s->at = weft__world_now(world) + (from->is_local ? 0 : weft__world_latency(world));
	copy(parts, 0, s->data, length, false);
	insert(&to->in, s);
	weft__node_stir(to, WEFT__IN);
	return true;
}

static bool takes_from(const struct weft__node *to, const struct weft__node *from)
{
	return !to->has_remote || (to->remote.host == from->host && to->remote.port == from->spot.port);
}

/* Sends over the network, where the sender does not learn of a loss. */
static void send_far(struct weft__world *world, struct weft__node *from, struct weft__node *to,
		     const struct iovec *parts, size_t length)
{
	if (!to || !takes_from(to, from) || to->in.held + length > to->in.capacity ||
	    weft__world_is_cut(world, from->host, to->host) || weft__world_happens(world, world->profile.loss))
		return;
	(void)send_copy(world, from, to, parts, length, NULL);
	if (weft__world_happens(world, world->profile.twice))
		(void)send_copy(world, from, to, parts, length, NULL);
}

/* Finds the receiver of a datagram, or NULL: there is none. 0, or a negative errno. */
static int find_receiver(struct weft__world *world, struct weft__node *node, const struct msghdr *m,
			 struct weft__node **to)
{
	struct weft__spot spot = node->remote;
	int error = 0;

	*to = node->peer;
	if (node->type == SOCK_SEQPACKET)
		return *to ? 0 : node->has_remote ? -EPIPE : -ENOTCONN;
	if (m->msg_name) {
		error = weft__sim_spot(world, m->msg_name, m->msg_namelen, &spot);
		if (!error && spot.is_unix != node->is_local)
			error = node->is_local ? -EINVAL : -EAFNOSUPPORT;
	} else if (*to) {
		return 0;
	} else if (!node->has_remote) {
		error = node->is_local ? -ENOTCONN : -EDESTADDRREQ;
	}
	if (!error && !node->is_local && !node->bound)
		error = weft__sim_bind_any(world, node);
	if (!error)
		*to = weft__sim_find(world, &spot, WEFT__DATAGRAMS);
	/* The receiver is gone, and its datagrams are lost. The next datagram has no receiver. */
	if (node->is_local && !m->msg_name && !error && !*to) {
		node->has_remote = false;
		drop_all(world, node);
	}
	return error;
}

static int64_t send_one(struct weft__world *world, struct weft__node *node, const struct msghdr *m,
			struct passed *along)
{
	size_t length = total(m->msg_iov, m->msg_iovlen);
	struct weft__node *to;
	int error = node->told ? 0 : node->error;

	if (error)
		node->told = true;
	if (!error && node->is_local && node->type == SOCK_DGRAM && !node->writes)
		error = -EPIPE;
	if (!error)
		error = find_receiver(world, node, m, &to);
	if (error)
		return error;
	if (length > DATAGRAM_MOST)
		return -EMSGSIZE;
	if (!node->writes || (node->is_local && to && !to->reads))
		return -EPIPE;
	if (!node->is_local) {
		send_far(world, node, to, m->msg_iov, length);
		return (int64_t)length;
	}
	if (!to)
		return -ECONNREFUSED;
	if (to->in.held && to->in.held + length > to->in.capacity)
		return -EAGAIN;
	return send_copy(world, node, to, m->msg_iov, length, along) ? (int64_t)length : -ENOBUFS;
}

static int64_t many(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when)
{
	struct mmsghdr *m = io->data;
	int64_t result = 0;
	size_t i;

	for (i = 0; i < io->length; i++) {
		result = io->kind == WEFT_IO_RECVMMSG ? receive(world, node, &m[i].msg_hdr, io->flags, when)
						      : send_one(world, node, &m[i].msg_hdr, NULL);
		if (result < 0)
			break;
		m[i].msg_len = (unsigned)result;
	}
	return i ? (int64_t)i : result;
}

/* ---- readiness --------------------------------------------------------------------------------------------------- */

static int stream_events(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	uint64_t now = weft__world_now(world);
	const struct weft__flow *to = node->peer ? &node->peer->in : NULL;
	int error = broken(world, node, when), events = 0;
	bool ended = has_ended(world, node), shut = !node->writes || (node->is_local && !node->peer);

	if (node->in.end_at > now)
		weft__sooner(when, node->in.end_at);
	if (error)
		return POLLIN | POLLOUT | POLLHUP | (node->told ? 0 : POLLERR) | POLLRDHUP;
	if (arrived(&node->in, now, when) || (ended && !node->is_pipe))
		events |= POLLIN;
	if (ended && !node->is_pipe)
		events |= POLLRDHUP;
	if (ended && shut && !(node->is_pipe && node->writes))
		events |= POLLHUP;
	if (!node->peer && node->is_pipe && node->writes)
		events |= POLLERR;
	if (!node->is_pipe && !node->writes)
		events |= POLLOUT;
	if (node->writes && (!to || to->held + (node->is_pipe ? PIPE_BUF : 1) <= to->capacity))
		events |= POLLOUT;
	return node->is_pipe && node->writes ? events & ~POLLIN : events;
}

static int datagram_events(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	bool ended = has_ended(world, node), shut = !node->writes || (node->type == SOCK_SEQPACKET && !node->peer);
	int events = first_datagram(world, node, when) || ended ? POLLIN : 0;

	if (!node->peer || node->peer->in.held < node->peer->in.capacity)
		events |= POLLOUT;
	return events | (ended ? POLLRDHUP : 0) | (ended && shut ? POLLHUP : 0) |
	       (node->error && !node->told ? POLLERR : 0);
}

static int events_of(struct weft__world *world, struct weft__node *node, uint64_t *when)
{
	switch (node->kind) {
	case WEFT__CONNECTED:
		return stream_events(world, node, when);
	case WEFT__LISTENER:
		if (node->reads)
			return node->queued ? POLLIN : 0;
		return POLLOUT | POLLHUP; /* shut down: like a socket that is not connected */
	case WEFT__DATAGRAMS:
		return datagram_events(world, node, when);
	case WEFT__OPEN_FILE:
		return POLLIN | POLLOUT;
	case WEFT__SIGNALS:
		return weft__sim_has_signal(world, node) ? POLLIN : 0;
	case WEFT__WATCHER:
		return weft__sim_has_change(node) ? POLLIN : 0;
	default:
		return POLLOUT | POLLHUP | (node->reads ? 0 : POLLIN | POLLRDHUP); /* a socket that is not connected */
	}
}

static int64_t poll_node(struct weft__world *world, struct weft__node *node, const weft_io_t *io, uint64_t *when)
{
	int events = events_of(world, node, when);

	events |= (events & POLLIN ? POLLRDNORM : 0) | (events & POLLOUT ? POLLWRNORM : 0);
	events &= io->flags | POLLERR | POLLHUP;
	return events ? events : -EAGAIN;
}

/* ---- transfers between two descriptors --------------------------------------------------------------------------- */

static int64_t send_file(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when)
{
	struct weft__node *from = weft__node_of(world, io->other);
	int64_t *offset = io->data, result;
	struct iovec part;
	const char *bytes;

	if (!from || from->kind != WEFT__OPEN_FILE)
		return from ? -EINVAL : -EBADF;
	if (node->kind != WEFT__CONNECTED)
		return -ENOTCONN;
	result = weft__sim_file_bytes(from, offset ? *offset : from->offset,
				      io->length < SENDFILE_MOST ? io->length : SENDFILE_MOST, &bytes);
	if (result <= 0)
		return result;
	part = (struct iovec){(char *)(uintptr_t)bytes, (size_t)result};
	result = put(world, node, &part, 1, NULL, when);
	if (result > 0) {
		*(offset ? offset : &from->offset) += result;
		weft__sim_accessed(world, from);
	}
	return result;
}

static int64_t splice_nodes(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when,
			    struct weft__node **waits_for)
{
	struct weft__node *to = weft__node_of(world, io->other);
	size_t length = io->length < SENDFILE_MOST ? io->length : SENDFILE_MOST;
	struct iovec part = {NULL, length};
	int64_t result;

	if (!to)
		return -EBADF;
	if (node->kind != WEFT__CONNECTED || to->kind != WEFT__CONNECTED || (!node->is_pipe && !to->is_pipe))
		return -EINVAL;
	part.iov_base = malloc(length + 1);
	if (!part.iov_base)
		return -ENOMEM;
	io->way = WEFT__IN;
	result = take(world, node, &part, 1, 0, MSG_PEEK, NULL, when);
	if (result > 0) {
		part.iov_len = (size_t)result;
		*when = WEFT_NEVER;
		result = put(world, to, &part, 1, NULL, when);
		if (result == -EAGAIN) {
			io->way = WEFT__OUT;
			*waits_for = to;
		}
		if (result > 0)
			consume(world, node, (size_t)result);
	}
	free(part.iov_base);
	return result;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Describes an operation of any kind as a message. */
static struct msghdr *message_of(weft_io_t *io, struct msghdr *m, struct iovec *part)
{
	if (io->kind == WEFT_IO_RECVMSG || io->kind == WEFT_IO_SENDMSG)
		return io->data;
	*m = (struct msghdr){.msg_iov = part, .msg_iovlen = 1};
	*part = (struct iovec){io->data, io->length};
	if (io->kind == WEFT_IO_READV || io->kind == WEFT_IO_WRITEV) {
		m->msg_iov = io->data;
		m->msg_iovlen = io->length;
	}
	return m;
}

static bool has_offset(const weft_io_t *io)
{
	return io->kind <= WEFT_IO_WRITEV && io->offset != -1;
}

static int64_t send_message(struct weft__world *world, struct weft__node *node, struct msghdr *m, uint64_t *when)
{
	struct passed along = {NULL, 0};
	int64_t result = node->is_local && !node->is_pipe ? collect(world, &along, m) : 0;

	if (result)
		return result;
	if (node->kind == WEFT__DATAGRAMS)
		result = send_one(world, node, m, &along);
	else if (m->msg_namelen && node->domain == AF_UNIX)
		result = node->kind == WEFT__CONNECTED ? -EISCONN : -EOPNOTSUPP;
	else if (node->kind == WEFT__CONNECTED)
		result = put(world, node, m->msg_iov, m->msg_iovlen, &along, when);
	else
		result = node->domain == AF_UNIX ? -ENOTCONN : -EPIPE;
	take_back(world, &along);
	return result;
}

static int64_t transfer(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when)
{
	bool is_file_call = io->kind <= WEFT_IO_WRITEV;
	int flags = is_file_call ? 0 : io->flags;
	struct msghdr m, *message;
	struct iovec part;

	if (has_offset(io))
		return io->offset < 0 ? -EINVAL : -ESPIPE;
	if (node->is_pipe && !is_file_call)
		return -ENOTSOCK;
	/* An empty datagram may be written. */
	if (is_file_call && !node->is_pipe && weft__io_moves_nothing(io) && io->kind != WEFT_IO_WRITE)
		return 0;
	message = message_of(io, &m, &part);
	if (io->way == WEFT__OUT)
		return send_message(world, node, message, when);
	if (node->kind == WEFT__DATAGRAMS)
		return receive(world, node, message, flags, when);
	if (node->kind != WEFT__CONNECTED)
		return node->is_local ? -EINVAL : node->reads || node->kind == WEFT__LISTENER ? -ENOTCONN : 0;
	if (flags & MSG_WAITALL)
		return flags & MSG_PEEK ? peek_all(world, node, io, message, when)
					: take_all(world, node, io, message, when);
	return take(world, node, message->msg_iov, message->msg_iovlen, 0, flags, message == &m ? NULL : message, when);
}

int64_t weft__sim_attempt(struct weft__world *world, struct weft__node *node, weft_io_t *io, uint64_t *when,
			  struct weft__node **waits_for)
{
	if (node->kind == WEFT__WATCHER && io->kind != WEFT_IO_POLL)
		return weft__sim_watch(node, io);
	switch (io->kind) {
	case WEFT_IO_READ:
	case WEFT_IO_READV:
	case WEFT_IO_RECV:
	case WEFT_IO_RECVMSG:
	case WEFT_IO_WRITE:
	case WEFT_IO_WRITEV:
	case WEFT_IO_SEND:
	case WEFT_IO_SENDMSG:
		return transfer(world, node, io, when);
	case WEFT_IO_RECVMMSG:
	case WEFT_IO_SENDMMSG:
		return node->kind == WEFT__DATAGRAMS ? many(world, node, io, when) : -EINVAL;
	case WEFT_IO_ACCEPT:
		return weft__sim_accept(world, node, io);
	case WEFT_IO_CONNECT:
		return weft__sim_connect(world, node, io, when, waits_for);
	case WEFT_IO_POLL:
		return poll_node(world, node, io, when);
	case WEFT_IO_SENDFILE:
		return send_file(world, node, io, when);
	case WEFT_IO_SPLICE:
		return splice_nodes(world, node, io, when, waits_for);
	default:
		return -EINVAL; /* for example a sync of a node that is not a file */
	}
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void tell_end(struct weft__world *world, struct weft__node *node)
{
	struct weft__node *peer = node->peer;

	if (!peer || (node->kind == WEFT__DATAGRAMS && node->type != SOCK_SEQPACKET))
		return;
	peer->in.end_at = arrival(world, node, &peer->in);
	weft__node_stir(peer, WEFT__IN | WEFT__OUT);
}

/* If a stream is closed with unread bytes, these bytes are lost, and the peer sees a reset. */
static void end_stream(struct weft__world *world, struct weft__node *node, bool crashed)
{
	struct weft__node *peer = node->peer;

	if (!peer)
		return;
	if (crashed)
		lose(world, &peer->in);
	if (!node->is_pipe && (crashed || node->in.held)) {
		send_reset(world, node);
		return;
	}
	if (node->writes)
		tell_end(world, node);
	peer->peer = NULL;
	weft__node_stir(peer, WEFT__IN | WEFT__OUT);
	node->peer = NULL;
}

void weft__sim_end(struct weft__world *world, struct weft__node *node, bool crashed)
{
	struct weft__node *waiting;

	node->references++; /* its own descriptor may be among the descriptors in transit to it */
	weft__sim_watch_end(node);
	if (node->kind == WEFT__OPEN_FILE)
		weft__sim_file_closed(world, node, crashed);
	if (node->kind == WEFT__LISTENER) {
		while ((waiting = node->queue)) {
			node->queue = waiting->queue_next;
			weft__sim_end(world, waiting, true);
			weft__node_drop(waiting);
		}
		weft__node_stir(node, WEFT__OUT); /* connects that wait for room in the queue */
	}
	if (node->kind == WEFT__DATAGRAMS && node->peer) {
		tell_end(world, node);
		if (node->type == SOCK_SEQPACKET && node->in.held)
			node->peer->error = -ECONNRESET;
		node->peer->peer = NULL;
		weft__node_stir(node->peer, WEFT__OUT);
	} else {
		end_stream(world, node, crashed);
	}
	drop_all(world, node);
	node->peer = NULL;
	node->bound = false;
	if (node->kind == WEFT__DATAGRAMS)
		stir_senders(world, node);
	node->kind = WEFT__DEAD;
	weft__node_drop(node);
}

static bool is_reset(struct weft__world *world, const struct weft__node *node)
{
	return node->reset_at && node->reset_at <= weft__world_now(world);
}

/* The peer of a Unix socket can send no more afterwards, unless the socket is for datagrams. */
static void shut_in(struct weft__node *node)
{
	node->reads = false;
	if (!node->is_local || !node->peer)
		return;
	if (node->type != SOCK_DGRAM)
		node->peer->writes = false;
	weft__node_stir(node->peer, WEFT__OUT);
}

int weft__sim_shutdown(int number, int how)
{
	struct weft__world *world = weft__world();
	struct weft__node *node = world ? weft__node_of(world, number) : NULL;
	bool connected;

	if (!node || node->kind == WEFT__DEAD)
		return -EBADF;
	if (node->is_pipe || node->kind == WEFT__OPEN_FILE)
		return -ENOTSOCK;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	connected = node->is_local || (node->kind == WEFT__LISTENER && node->reads) ||
		    (node->kind == WEFT__CONNECTED && !is_reset(world, node)) ||
		    (node->kind == WEFT__DATAGRAMS && node->has_remote);
	if (how != SHUT_WR)
		shut_in(node);
	if (how != SHUT_RD && node->writes) {
		node->writes = false;
		tell_end(world, node);
	}
	weft__node_stir(node, WEFT__IN | WEFT__OUT);
	return connected ? 0 : -ENOTCONN;
}
