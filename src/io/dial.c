/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Connecting to a name that has several addresses, as in RFC 8305: families alternate; the next attempt begins when the
 * attempt before it has failed, or after 250 ms; the first socket that is connected wins, and the rest are closed. So
 * an address that does not answer costs a quarter of a second, not the time until the caller's deadline.
 *
 * The task waits for one descriptor: an epoll set of the sockets that are connecting, on either back end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/sim.h"

enum { DELAY = 250000000 }; /* nanoseconds between attempts */

/* The first address keeps its position; after it the families alternate while both have addresses. */
static void interleave(weft_address_t *addresses, int count)
{
	weft_address_t other;
	int at, from;

	for (at = 1; at < count; at++) {
		for (from = at; from < count; from++)
			if (addresses[from].address.ss_family != addresses[at - 1].address.ss_family)
				break;
		if (from == count)
			return;
		for (other = addresses[from]; from > at; from--)
			addresses[from] = addresses[from - 1];
		addresses[at] = other;
	}
}

bool weft__dial_begin(struct weft__dial *d, weft_address_t *addresses, int count, uint64_t deadline)
{
	int i;

	if (count > WEFT__DIAL_MOST || weft__simulated())
		return false;
	interleave(addresses, count);
	*d = (struct weft__dial){.addresses = addresses, .count = count, .deadline = deadline, .error = -ENOENT};
	for (i = 0; i < count; i++)
		d->fds[i] = -1;
	d->set = weft__own_fd(epoll_create1(EPOLL_CLOEXEC));
	return d->set >= 0;
}

/* Prefers the error of an address that was reached to the error of an unreachable address. */
static void note_error(struct weft__dial *d, int error)
{
	bool is_vague = error == -ENETUNREACH || error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT;

	if (!is_vague || d->error == -ENOENT)
		d->error = error;
}

static void fail(struct weft__dial *d, int i, int error)
{
	note_error(d, error);
	(void)weft_close(d->fds[i]);
	d->fds[i] = -1;
	d->open--;
	d->next = 0;
}

/* 0: the attempt has begun, or failed. 1: it is connected. */
static int attempt(struct weft__dial *d, int i)
{
	const weft_address_t *a = &d->addresses[i];
	int fd = weft_socket(a->address.ss_family, SOCK_STREAM, 0), flags;
	struct epoll_event event = {EPOLLOUT, {.u32 = (uint32_t)i}};

	d->next = weft__clock() + DELAY;
	if (fd < 0) {
		note_error(d, fd);
		d->next = 0;
		return 0;
	}
	d->fds[i] = fd;
	d->open++;
	flags = fcntl(fd, F_GETFL);
	d->blocks = !(flags & O_NONBLOCK);
	if (d->blocks)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (!connect(fd, (const struct sockaddr *)&a->address, a->size))
		return 1;
	if ((errno == EINPROGRESS || errno == EINTR) && !epoll_ctl(d->set, EPOLL_CTL_ADD, fd, &event))
		return 0;
	fail(d, i, -errno);
	return 0;
}

/* Takes the results of attempts. Returns the index of a connected socket; -1: none is connected. */
static int collect(struct weft__dial *d)
{
	struct epoll_event events[WEFT__DIAL_MOST];
	int i, count = epoll_wait(d->set, events, WEFT__DIAL_MOST, 0), error;
	socklen_t size = sizeof error;

	for (i = 0; i < count; i++) {
		error = 0;
		if (getsockopt(d->fds[events[i].data.u32], SOL_SOCKET, SO_ERROR, &error, &size))
			error = errno;
		if (!error)
			return (int)events[i].data.u32;
		fail(d, (int)events[i].data.u32, -error);
	}
	return -1;
}

/* Closes all sockets except the winner, if there is one. */
static int end(struct weft__dial *d, int winner, int result)
{
	int i;

	if (winner >= 0) {
		result = d->fds[winner];
		d->fds[winner] = -1;
		if (d->blocks)
			(void)fcntl(result, F_SETFL, fcntl(result, F_GETFL) & ~O_NONBLOCK);
	}
	for (i = 0; i < d->count; i++)
		if (d->fds[i] >= 0)
			(void)weft_close(d->fds[i]);
	close(d->set);
	return result;
}

static int step(struct weft__dial *d, int waited)
{
	int winner;

	if (waited < 0 && waited != -ETIMEDOUT)
		return end(d, -1, waited);
	winner = collect(d);
	if (winner >= 0)
		return end(d, winner, 0);
	if (d->begun && d->deadline != WEFT_NEVER && weft__clock() >= d->deadline)
		return end(d, -1, -ETIMEDOUT);
	while (d->begun < d->count && (!d->open || !d->next || weft__clock() >= d->next))
		if (attempt(d, d->begun++))
			return end(d, d->begun - 1, 0);
	if (!d->open)
		return end(d, -1, d->error);
	d->until = d->begun < d->count && d->next < d->deadline ? d->next : d->deadline;
	return -EINPROGRESS;
}

int weft__dial_step(struct weft__dial *d, int waited)
{
	struct weft__worker *w = weft__worker();
	bool in_io = w && w->in_io;
	int result;

	/* The calls below are libc's, even if libweft-posix.so interposes them. */
	if (w)
		w->in_io = true;
	result = step(d, waited);
	if (w)
		w->in_io = in_io;
	return result;
}
