/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The byte stream below HTTP: a socket, or TLS over a socket. TLS is behind a table of functions, so that a program
 * without TLS does not link it. Results and deadlines are as in weft/io.h; one task may read while a second task
 * writes.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include <poll.h>
#include <sys/socket.h>
#include <weft/io.h>

struct stream {
	int fd;
	const struct stream_kind *kind; /* NULL: a plain socket */
	void *state;			/* private to the kind */
};

struct stream_kind {
	ssize_t (*read)(struct stream *s, void *data, size_t length, uint64_t deadline);
	/* Waits until data can be read: 1. 0: the deadline has passed. Holds as little memory as possible. */
	int (*wait)(struct stream *s, uint64_t deadline);
	/* Writes all bytes, and returns their number; fewer, or a negative errno: the stream has failed. Changes
	 * `parts`. */
	ssize_t (*write)(struct stream *s, struct iovec *parts, int count, uint64_t deadline);
	/* Tells the peer that no more data will come. 0, or a negative errno. */
	int (*finish)(struct stream *s);
	void (*close)(struct stream *s); /* the socket too */
};

static inline ssize_t weft__stream_read(struct stream *s, void *data, size_t length, uint64_t deadline)
{
	return s->kind ? s->kind->read(s, data, length, deadline) : weft_read_until(s->fd, data, length, deadline);
}

static inline int weft__stream_wait(struct stream *s, uint64_t deadline)
{
	return s->kind ? s->kind->wait(s, deadline) : weft_poll_until(s->fd, POLLIN, deadline);
}

static inline ssize_t weft__stream_writev(struct stream *s, struct iovec *parts, int count, uint64_t deadline)
{
	return s->kind ? s->kind->write(s, parts, count, deadline)
		       : weft_writev_all_until(s->fd, parts, count, deadline);
}

static inline ssize_t weft__stream_write(struct stream *s, const void *data, size_t length, uint64_t deadline)
{
	struct iovec part = {(void *)(uintptr_t)data, length};

	return s->kind ? s->kind->write(s, &part, 1, deadline) : weft_write_all_until(s->fd, data, length, deadline);
}

/* Sends part of a file, from *offset on, and advances *offset past the sent bytes. */
ssize_t weft__stream_send_file(struct stream *s, int from, int64_t *offset, size_t length, uint64_t deadline);

static inline int weft__stream_finish(struct stream *s)
{
	return s->kind ? s->kind->finish(s) : weft_shutdown(s->fd, SHUT_WR);
}

static inline void weft__stream_close(struct stream *s)
{
	if (s->kind)
		s->kind->close(s);
	else
		weft_close(s->fd);
}

#endif
