/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * net.h: libseff's sockets on top of weft/io.h, for tasks of scheff.h. Programs written for it compile unchanged, with
 * gcc and clang, as C and as C++; link them with libweft-rt (pkg-config weft-rt, weft::rt; `weft run` does).
 *
 * Results are libseff's: -1 stands for every error, and errno has its number until the task waits again; compilers
 * keep errno's address across a wait, after which the task may be in another thread: read it in a function of its own,
 * that is not inlined. Sockets are non-blocking as in libseff, and belong to the program, which closes them by close or
 * weft_close.
 *
 * Differences that are improvements: a task that waits for a socket costs no time; a wake-up that comes too early is no
 * error; a peer that is gone is -1 with EPIPE or ECONNRESET, and no SIGPIPE; await_recv writes nothing behind its
 * buffer; await_accept4 goes on where no descriptor is left. Outside of a task the calls block their thread.
 *
 * Source of the interface: libseff; none of its code.
 */
#ifndef SEFF_NET_H
#define SEFF_NET_H

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <weft/io.h>

WEFT_EXTERN_C_BEGIN

/* Out of line: the thread, and with it errno's address, may differ from that before the wait. */
__attribute__((noinline, unused)) static int seff_net__fail(int64_t error)
{
	errno = (int)-error;
	return -1;
}

WEFT__HELPER int seff_net__result(int64_t result)
{
	return result < 0 ? seff_net__fail(result) : (int)result;
}

WEFT__HELPER void seff_net__option(int fd, int option)
{
	int yes = 1;

	(void)setsockopt(fd, SOL_SOCKET, option, &yes, sizeof yes);
}

/* A listener at this address, or a negative errno. */
WEFT__HELPER int seff_net__listen_at(const weft_address_t *at, bool non_blocking, bool reuse_address, bool reuse_port,
				     int queue)
{
	int error, fd = weft_socket(at->address.ss_family, SOCK_STREAM | (non_blocking ? SOCK_NONBLOCK : 0), 0);

	if (fd < 0)
		return fd;
	if (reuse_address)
		seff_net__option(fd, SO_REUSEADDR);
#ifdef SO_REUSEPORT /* not by -std=c11 and the like */
	if (reuse_port)
		seff_net__option(fd, SO_REUSEPORT);
#else
	if (reuse_port && !weft_close(fd))
		return -ENOPROTOOPT;
#endif
	if (!bind(fd, (const struct sockaddr *)&at->address, at->size) && !listen(fd, queue))
		return fd;
	error = -errno;
	(void)weft_close(fd);
	return error;
}

/**
 * A socket that listens for connections of TCP.
 * @param ip    an address or a name; NULL: the loopback's
 * @param port  a number or a service's name
 * @param non_blocking, reuse_address, reuse_port  as O_NONBLOCK, SO_REUSEADDR, SO_REUSEPORT
 * @param listen_queue_size  as listen's second parameter
 * @return a descriptor, of the first address that can be had; -1: none, and errno says why
 * May suspend a task for the time of the lookup. Any thread, any stack.
 */
WEFT__HELPER int listen_tcp_socket(const char *ip, const char *port, bool non_blocking, bool reuse_address,
				   bool reuse_port, int listen_queue_size)
{
	enum { SEFF_NET__MOST = 8 };
	weft_address_t at[SEFF_NET__MOST];
	int i, fd = -ENOENT, count;

	/* The simulated world has its own sockets, which are made and bound at once. */
	if (!strcmp(weft_io_backend(), "simulated"))
		return seff_net__result(weft_listen(ip ? ip : "127.0.0.1", (unsigned)strtoul(port, NULL, 10),
						    listen_queue_size, reuse_port ? WEFT_LISTEN_SHARED : 0));
	count = weft_resolve(ip, port, SOCK_STREAM, at, SEFF_NET__MOST);
	for (i = 0; i < count; i++) {
		fd = seff_net__listen_at(&at[i], non_blocking, reuse_address, reuse_port, listen_queue_size);
		if (fd >= 0)
			return fd;
	}
	return seff_net__fail(count < 0 ? count : fd);
}

/** The next connection of a listener; waits for it. Its descriptor, non-blocking and close-on-exec; -1: an error. */
WEFT__HELPER int await_accept4(int socket_fd)
{
	return seff_net__result(weft_accept(socket_fd, NULL, NULL, SOCK_NONBLOCK));
}

/** Receives the bytes that have arrived, at most `bufsz`; waits for the first byte. Returns their number; 0: the peer
 * has ended; -1: an error. If the buffer has room, a zero byte follows, because programs print it as a string. */
WEFT__HELPER int await_recv(int conn_fd, char *buffer, size_t bufsz)
{
	int64_t got = weft_recv(conn_fd, buffer, bufsz < INT_MAX ? bufsz : INT_MAX, 0);

	if (got >= 0 && (size_t)got < bufsz)
		buffer[got] = '\0';
	return seff_net__result(got);
}

/** Send at least a byte; waits until there is room for it. How many were sent; -1: an error. */
WEFT__HELPER int await_send(int conn_fd, const char *buffer, size_t bufsz)
{
	return seff_net__result(weft_send(conn_fd, buffer, bufsz < INT_MAX ? bufsz : INT_MAX, 0));
}

/** Send all of it, however often that waits. `bufsz`; -1: an error, after an unknown part. */
WEFT__HELPER int await_send_all(int conn_fd, const char *buffer, size_t bufsz)
{
	size_t done = 0;
	int64_t sent;

	if (bufsz > INT_MAX)
		return seff_net__fail(-EINVAL);
	while (done < bufsz && WEFT_CANARY_OR(net_sends_a_part, !done, true)) {
		sent = weft_send(conn_fd, buffer + done, bufsz - done, 0);
		if (sent < 0)
			return seff_net__fail(sent);
		done += (size_t)sent;
	}
	return WEFT_CANARY_OR(net_sends_a_part, (int)bufsz, (int)done);
}

WEFT_EXTERN_C_END

#endif /* SEFF_NET_H */
