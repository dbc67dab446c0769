/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A client's connections of HTTP/2, which requests share, and the requests' streams.
 *
 * A client belongs to no runtime, and plain threads use it, too, so a connection has no task of its own. If a request
 * waits for an event of its stream while no request reads, it receives for all streams of the connection; when its own
 * wait ends it wakes a second waiting request, which then receives. So there is a reader while any request waits, and
 * an idle connection has neither a task nor a buffer. Rejected: a task per connection, which a thread cannot start, and
 * which would keep a runtime from its end; a lock around "send and receive", by which a slow caller stops other
 * callers.
 *
 * A mutex guards the session and all that is below. Frames are written with the lock held, as far as the socket takes
 * them without waiting; when the socket is full the reader is woken, and waits for room as well as for input. No
 * request waits for the peer with the lock held. A cancellation never interrupts a read or a write, which would lose
 * bytes of other requests. Locks are taken in the order: the connection's, the client's.
 *
 * The window of a connection is replenished at once, the window of a stream when its caller has read: a caller that
 * does not read delays only its own stream, and a connection buffers at most MUX_WINDOW bytes for each of its streams.
 */
#ifndef HTTP_CLIENT_H2_H
#define HTTP_CLIENT_H2_H

#include "http/client.h"
#include "http/h2.h"

enum {
	MUX_WINDOW = 1 << 18,	  /* window of a stream */
	MUX_WINDOW_ALL = 1 << 20, /* window of a connection */
	MUX_READ = 16384,
	MUX_WRITE = RECORD,
	MUX_READS = 16,	   /* reads from an idle connection before it is reused */
	MUX_BLOCK = 16384, /* bytes of a header block that a CONTINUATION is allowed for */
};

struct mux {
	weft_http_client_t *client;
	struct connection *connection;
	nghttp2_session *session;
	weft_mutex_t lock;		      /* protects all that follows, and the streams */
	struct mux_stream *streams, *opening; /* opening: its head is incomplete */
	weft_event_t wake;		      /* ends a wait of the reader */
	bool reading;			      /* a request has the reader's role */
	bool blocked;			      /* the socket did not accept all output */
	bool settled;			      /* the server's SETTINGS have arrived */
	int error;			      /* the error that ended the connection, or 0 */
	char *in;			      /* MUX_READ bytes, or NULL */
	struct h2_output out;		      /* MUX_WRITE bytes, or NULL */
	size_t out_at;			      /* the bytes before it were written */
	struct h2_frames frames;
	struct h2_patience patience;
	unsigned continuations;
};

/* A received head or trailer. */
struct mux_head {
	struct mux_head *next;
	int status;
	struct text text;
	struct field *fields; /* in `text` */
	unsigned count, room;
};

struct mux_stream {
	struct mux *mux;
	struct mux_stream *next, *previous;
	int32_t id;
	weft_cond_t changed; /* one of the following members, or the reader's role is free */
	bool waits;	     /* its request waits for `changed` */

	/* The response. */
	struct mux_head *heads, **last_head; /* not yet taken by the request */
	struct mux_head *incoming;	     /* incomplete */
	struct mux_head *trailer;
	size_t head_bytes; /* of all heads */
	unsigned informed; /* interim responses */
	bool final, ended; /* the final head has arrived; the whole response has arrived */
	bool closed;	   /* nghttp2 has closed it */
	bool begun;	   /* its head was sent */
	bool refused;	   /* the server has not processed it */
	bool wants_1;	   /* it was reset because the server requires HTTP/1.1 */
	int error;
	struct text body; /* not yet taken by the request */
	size_t taken;	  /* bytes that the request has, but that are not yet returned to the window */

	/* The request's body. */
	struct iovec part; /* the next bytes to be sent */
	uint64_t left;	   /* bytes left of a body of known length; WEFT_NEVER: unknown */
	bool last;	   /* nothing follows `part` */
	bool defers;	   /* nghttp2 must be resumed when there is more */
	bool sent;	   /* the whole body */
};

static inline void weft__mux_lock(struct mux *m)
{
	weft_shield_begin();
	weft_mutex_lock(&m->lock);
	weft_shield_end();
}

/* client_h2.c. All with the lock held. */
/* Sends the ready frames, as far as that does not wait. */
void weft__mux_flush(struct mux *m);
/* Waits once for a change of the stream; receives meanwhile if there is no reader. 0: check again; or a negative
 * errno */
int weft__mux_await(struct mux_stream *s, uint64_t deadline);
/* If there is no reader, makes a waiting stream the reader. */
void weft__mux_hand_on(struct mux *m);
void weft__mux_add(struct mux_stream *s);
void weft__mux_remove(struct mux_stream *s);
void weft__mux_free_head(struct mux_head *h); /* NULL: nothing */

static inline void weft__mux_wake(struct mux_stream *s)
{
	if (s->waits)
		weft_cond_signal(&s->changed);
}

/* The stream has failed, unless its response is complete. */
static inline void weft__mux_fail(struct mux_stream *s, int error)
{
	if (s->ended || s->error)
		return;
	s->error = error;
	s->refused |= !s->begun;
	weft__mux_wake(s);
}

#endif
