/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The byte stream below HTTP: a socket, or TLS over one. TLS is behind a table of functions, so that a program without
 * it does not link it. Results and deadlines are those of weft/io.h; one task may read while another one writes.
 */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include <poll.h>
#include <sys/socket.h>
#include <weft/io.h>

struct stream {
	int fd;
	const struct stream_kind *kind; /* NULL: a plain socket */
	void *state;			/* the kind's own */
};

struct stream_kind {
	ssize_t (*read)(struct stream *s, void *data, size_t length, uint64_t deadline);
	/* Until data can be read: 1. 0: the deadline has passed. It holds as little memory as it can. */
	int (*wait)(struct stream *s, uint64_t deadline);
	/* All bytes: their number; fewer, or a negative errno: the stream has failed. Changes `parts`. */
	ssize_t (*write)(struct stream *s, struct iovec *parts, int count, uint64_t deadline);
	/* Tells the peer that no more data come. 0, or a negative errno. */
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

/* Part of a file, from *offset on, which moves with what was sent. */
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
