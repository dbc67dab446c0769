/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files are sent by the kernel to a plain socket, and read piece by piece for a stream that encrypts them. */
#include <errno.h>
#include <stdlib.h>

#include "http/stream.h"

enum { FILE_PIECE = 16384 };

static ssize_t copy_file(struct stream *s, int from, int64_t *offset, size_t length, uint64_t deadline)
{
	char *data = malloc(FILE_PIECE);
	size_t done = 0;
	ssize_t n = data ? 1 : -ENOMEM;

	while (n > 0 && done < length) {
		size_t part = length - done < FILE_PIECE ? length - done : FILE_PIECE;

		n = weft_pread(from, data, part, *offset);
		if (n > 0)
			n = weft__stream_write(s, data, (size_t)n, deadline);
		if (n > 0) {
			done += (size_t)n;
			*offset += n;
		}
	}
	free(data);
	return done || n >= 0 ? (ssize_t)done : n;
}

ssize_t weft__stream_send_file(struct stream *s, int from, int64_t *offset, size_t length, uint64_t deadline)
{
	return s->kind ? copy_file(s, from, offset, length, deadline)
		       : weft_sendfile_all_until(s->fd, from, offset, length, deadline);
}
