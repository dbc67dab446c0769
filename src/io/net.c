/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Making descriptors: sockets, listeners, pipes, watches; addresses. Nothing here waits. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io/sim.h"

enum { LOCK_TRIES = 100 }; /* milliseconds */

/* The mode that the caller's back end needs: epoll's descriptors must not block, and io_uring waits only for
 * descriptors that block. Returns the flag, O_NONBLOCK or SOCK_NONBLOCK, or 0; a negative errno: no back end could be
 * made. */
static int mode(int flag)
{
	struct weft__loop *loop;
	int error = weft__loop_find(&loop);

	return error ? error : loop && loop->nonblocking ? flag : 0;
}

int weft_socket(int domain, int type, int protocol)
{
	int fd, flag = mode(SOCK_NONBLOCK);

	if (weft__simulated())
		return weft__sim_socket(domain, type);
	if (flag < 0)
		return flag;
	fd = socket(domain, type | SOCK_CLOEXEC | flag, protocol);
	if (fd < 0)
		return -errno;
	weft__fd_made(fd, weft__nature_of_socket(domain, type, protocol));
	return fd;
}

int weft_socketpair(int domain, int type, int protocol, int fds[2])
{
	int flag = mode(SOCK_NONBLOCK);

	if (weft__simulated())
		return weft__sim_socketpair(domain, type, fds);
	if (flag < 0)
		return flag;
	if (socketpair(domain, type | SOCK_CLOEXEC | flag, protocol, fds))
		return -errno;
	weft__fd_made(fds[0], weft__nature_of_socket(domain, type, protocol));
	weft__fd_made(fds[1], weft__nature_of_socket(domain, type, protocol));
	return 0;
}

int weft_pipe(int fds[2])
{
	int flag = mode(O_NONBLOCK);

	if (weft__simulated())
		return weft__sim_pipe(fds);
	if (flag < 0)
		return flag;
	if (pipe2(fds, O_CLOEXEC | flag))
		return -errno;
	weft__fd_made(fds[0], flag ? WEFT__PIPE : WEFT__BLOCKING_PIPE);
	weft__fd_made(fds[1], flag ? WEFT__PIPE : WEFT__BLOCKING_PIPE);
	return 0;
}

int weft_file_watch_open(weft_file_watch_t *watch)
{
	int flag = mode(IN_NONBLOCK);

	watch->at = watch->end = 0;
	if (weft__simulated()) {
		watch->fd = weft__sim_watch_open();
		return watch->fd < 0 ? watch->fd : 0;
	}
	if (flag < 0)
		return flag;
	watch->fd = inotify_init1(IN_CLOEXEC | flag);
	if (watch->fd < 0)
		return -errno;
	weft__fd_made(watch->fd, flag ? WEFT__DEVICE : WEFT__BLOCKING_PIPE);
	return 0;
}

int weft_shutdown(int fd, int how)
{
	if (weft__sim_has(fd))
		return weft__sim_shutdown(fd, how);
	return shutdown(fd, how) ? -errno : 0;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

bool weft__unix_address(const char *name, weft_address_t *address)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&address->address;
	size_t length = name ? strlen(name) : 0;

	if (!length || !strchr("/.@", *name) || length >= sizeof un->sun_path)
		return false;
	memset(un, 0, sizeof *un);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, name, length);
	address->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	if (*name == '@') {
		un->sun_path[0] = '\0';
		address->size--; /* names without a file do not end with a zero */
	}
	return true;
}

/* Reads "fe80::1%eth0", or "%2" for the second interface. */
static bool read_v6(const char *name, struct sockaddr_in6 *v6)
{
	char digits[INET6_ADDRSTRLEN], *end;
	const char *scope = strchr(name, '%');
	size_t length = scope ? (size_t)(scope - name) : strlen(name);

	if (length >= sizeof digits)
		return false;
	memcpy(digits, name, length);
	digits[length] = '\0';
	if (inet_pton(AF_INET6, digits, &v6->sin6_addr) != 1)
		return false;
	if (!scope)
		return true;
	v6->sin6_scope_id = if_nametoindex(++scope);
	if (!v6->sin6_scope_id && *scope >= '0' && *scope <= '9') {
		v6->sin6_scope_id = (uint32_t)strtoul(scope, &end, 10);
		return !*end;
	}
	return v6->sin6_scope_id;
}

bool weft__number_address(const char *name, unsigned port, weft_address_t *address)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->address;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->address;

	memset(&address->address, 0, sizeof address->address);
	if (name && inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		address->size = sizeof *v4;
		return true;
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	address->size = sizeof *v6;
	return !name || read_v6(name, v6);
}

static void set_option(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

/* ---- a Unix socket's file ---------------------------------------------------------------------------------------- */

/* Returns a descriptor or a negative errno. */
static int open_in(int directory, const char *name, int flags)
{
	int fd;

	do
		fd = openat(directory, name, flags | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

/* Opens and locks the directory of a path: processes that replace sockets in it exclude each other. *name: the path's
 * last part. A negative errno: -EADDRINUSE if another process holds the lock for long. */
static int lock_directory(const char *path, const char **name)
{
	const struct timespec pause = {0, 1000000};
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;
	char directory[sizeof(struct sockaddr_un)] = ".";
	int fd, tries = 0, error = 0;

	memcpy(directory, path, length);
	if (length)
		directory[length] = '\0';
	*name = path + length;
	fd = open_in(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		error = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
		if ((errno != EWOULDBLOCK && errno != EINTR) || ++tries == LOCK_TRIES) {
			close(fd);
			return error;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

/*
 * Is this file, an O_PATH descriptor, a socket that no process has bound? A connect of a datagram socket tests that,
 * unnoticed by a server: ECONNREFUSED means that no socket is bound there; a bound stream socket, even before it
 * listens, gives EPROTOTYPE. 0: it is stale.
 */
static int check_stale(int file)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	snprintf(un.sun_path, sizeof un.sun_path, "/proc/self/fd/%d", file);
	do
		error = connect(fd, (const struct sockaddr *)&un, sizeof un) ? errno : 0;
	while (error == EINTR);
	close(fd);
	return error == ECONNREFUSED ? 0 : -EADDRINUSE;
}

static int status_of(int directory, const char *name, int flags, struct stat *status)
{
	int failed;

	do
		failed = fstatat(directory, name, status, flags);
	while (failed && errno == EINTR);
	return failed ? -errno : 0;
}

/* A program that does not lock may have bound its own socket there meanwhile. So the file is renamed first; if it is
 * not the stale file, it gets its name back. */
static int remove_file(int directory, const char *name, const struct stat *stale)
{
	struct stat status;
	char aside[48];
	int error;

	snprintf(aside, sizeof aside, ".weft-stale-%d", (int)gettid());
	if (renameat(directory, name, directory, aside))
		return -EADDRINUSE;
	error = status_of(directory, aside, AT_SYMLINK_NOFOLLOW, &status);
	if (!error && (status.st_ino != stale->st_ino || status.st_dev != stale->st_dev))
		error = -EADDRINUSE;
	if (!error || !linkat(directory, aside, directory, name, 0))
		(void)unlinkat(directory, aside, 0);
	return error;
}

/* 0: the name is free, or was free for a moment. */
static int remove_stale(const char *path)
{
	const char *name;
	int directory = lock_directory(path, &name), file, error;
	struct stat status;

	if (directory < 0)
		return directory;
	/* While it is open no other file can get its inode number. */
	file = open_in(directory, name, O_PATH | O_NOFOLLOW);
	error = file >= 0 || file == -ENOENT ? 0 : file;
	if (file >= 0) {
		error = status_of(file, "", AT_EMPTY_PATH, &status);
		if (!error)
			error = S_ISSOCK(status.st_mode) ? check_stale(file) : -EADDRINUSE;
		if (!error)
			error = remove_file(directory, name, &status);
		close(file);
	}
	close(directory);
	return error;
}

static int bind_to(int fd, const weft_address_t *address)
{
	const struct sockaddr *a = (const struct sockaddr *)&address->address;
	const struct sockaddr_un *un = (const struct sockaddr_un *)a;
	int error = bind(fd, a, address->size) ? -errno : 0;

	if (error != -EADDRINUSE || a->sa_family != AF_UNIX || !un->sun_path[0])
		return error;
	error = remove_stale(un->sun_path);
	if (error)
		return error;
	return bind(fd, a, address->size) ? -errno : 0;
}

/* ---- listening --------------------------------------------------------------------------------------------------- */

static int listen_at(const weft_address_t *address, int backlog, unsigned flags)
{
	bool datagrams = flags & WEFT_LISTEN_UDP;
	int error, family = address->address.ss_family;
	int fd = weft_socket(family, datagrams ? SOCK_DGRAM : SOCK_STREAM, 0);

	if (fd < 0)
		return fd;
	if (family != AF_UNIX) {
		/* For datagrams, SO_REUSEADDR would let another program take the port. */
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, !datagrams);
		set_option(fd, SOL_SOCKET, SO_REUSEPORT, !!(flags & WEFT_LISTEN_SHARED));
	}
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !!(flags & WEFT_LISTEN_V6ONLY));
	if (family != AF_UNIX && !datagrams)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* the accepted sockets inherit it */
	error = bind_to(fd, address);
	if (!error && !datagrams)
		error = listen(fd, backlog > 0 ? backlog : SOMAXCONN) ? -errno : 0;
	if (!error)
		return fd;
	(void)weft_close(fd);
	return error;
}

int weft_listen(const char *address, unsigned port, int backlog, unsigned flags)
{
	weft_address_t at;
	int fd;

	if (port > UINT16_MAX || flags & ~(unsigned)(WEFT_LISTEN_SHARED | WEFT_LISTEN_UDP | WEFT_LISTEN_V6ONLY))
		return -EINVAL;
	if (!weft__unix_address(address, &at) && !weft__number_address(address, port, &at))
		return -EINVAL;
	if (weft__simulated())
		return weft__sim_listen(&at, backlog, flags);
	fd = listen_at(&at, backlog, flags);
	if (address || (fd != -EAFNOSUPPORT && fd != -EADDRNOTAVAIL))
		return fd;
	/* The system has no IPv6. */
	(void)weft__number_address("0.0.0.0", port, &at);
	return listen_at(&at, backlog, flags);
}

int weft_set_nodelay(int fd, bool on)
{
	int value = on, port;

	if (weft__sim_has(fd)) {
		port = weft__sim_port(fd);
		return port == -EAFNOSUPPORT ? -EOPNOTSUPP : port < 0 ? port : 0;
	}
	return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value) ? -errno : 0;
}

int weft_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;

	if (weft__sim_has(fd))
		return weft__sim_port(fd);
	if (getsockname(fd, (struct sockaddr *)&address, &size))
		return -errno;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return -EAFNOSUPPORT;
}

int weft_local_address(int fd, weft_address_t *address)
{
	address->size = sizeof address->address;
	if (weft__sim_has(fd))
		return weft__sim_name(fd, false, address);
	return getsockname(fd, (struct sockaddr *)&address->address, &address->size) ? -errno : 0;
}

int weft_peer_address(int fd, weft_address_t *address)
{
	address->size = sizeof address->address;
	if (weft__sim_has(fd))
		return weft__sim_name(fd, true, address);
	return getpeername(fd, (struct sockaddr *)&address->address, &address->size) ? -errno : 0;
}

static int unix_text(const struct sockaddr_un *un, size_t length, char *text, size_t size)
{
	size_t i;

	length = length > offsetof(struct sockaddr_un, sun_path) ? length - offsetof(struct sockaddr_un, sun_path) : 0;
	if (length && un->sun_path[0])
		length = strnlen(un->sun_path, length);
	if (length >= size)
		return -ENOSPC;
	for (i = 0; i < length; i++)
		text[i] = un->sun_path[i] ? un->sun_path[i] : '@';
	text[length] = '\0';
	return (int)length;
}

/* The address, with the port as ":80" behind it. */
static int internet_text(const struct sockaddr *address, char *text, size_t size)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	char digits[INET6_ADDRSTRLEN], scope[IF_NAMESIZE + 1] = "%";
	int length;

	if (address->sa_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, digits, sizeof digits);
		length = snprintf(text, size, "%s:%u", digits, ntohs(v4->sin_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, digits, sizeof digits);
		if (!v6->sin6_scope_id)
			scope[0] = '\0';
		else if (!if_indextoname(v6->sin6_scope_id, scope + 1))
			snprintf(scope, sizeof scope, "%%%u", v6->sin6_scope_id);
		length = snprintf(text, size, "[%s%s]:%u", digits, scope, ntohs(v6->sin6_port));
	}
	return (size_t)length < size ? length : -ENOSPC;
}

int weft_address_text(const weft_address_t *address, char *text, size_t size)
{
	switch (address->address.ss_family) {
	case AF_INET:
	case AF_INET6:
		return internet_text((const struct sockaddr *)&address->address, text, size);
	case AF_UNIX:
		return unix_text((const struct sockaddr_un *)&address->address, address->size, text, size);
	default:
		return -EAFNOSUPPORT;
	}
}
