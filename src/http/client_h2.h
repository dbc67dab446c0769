/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A client's connections of HTTP/2, which requests share, and the requests' streams.
 *
 * A client belongs to no runtime, and plain threads use it too, so a connection has no task of its own. A request
 * that waits for something of its stream, and finds that no other reads, receives for all streams of the connection;
 * when its own wait ends it wakes another one that waits, which receives from then on. So there is a reader while
 * somebody waits, and an idle connection has neither a task nor a buffer. Rejected: a task per connection, which a
 * thread cannot start, and which would keep a runtime from its end; a lock around "send and receive", by which a slow
 * caller stops others.
 *
 * A mutex guards the session and all that is below. Frames are written with the lock held, as far as the socket takes
 * them without waiting; if it takes no more the reader is woken, and waits for room beside input. Nobody waits for the
 * peer with the lock held. Neither a read nor a write can be cancelled in its middle, which would lose bytes of others.
 * Locks are taken in the order: the connection's, the client's.
 *
 * The window of a connection is given back at once, that of a stream when the caller has read: a caller that does not
 * read holds up its own stream only, and a connection holds MUX_WINDOW bytes of each of its streams at most.
 */
#ifndef HTTP_CLIENT_H2_H
#define HTTP_CLIENT_H2_H

#include "http/client.h"
#include "http/h2.h"

enum {
	MUX_WINDOW = 1 << 18,	  /* of a stream */
	MUX_WINDOW_ALL = 1 << 20, /* of a connection */
	MUX_READ = 16384,
	MUX_WRITE = RECORD,
	MUX_READS = 16,	   /* of a connection that was idle, before it is used again */
	MUX_BLOCK = 16384, /* bytes of a header block that a CONTINUATION is allowed for */
};

struct mux {
	weft_http_client_t *client;
	struct connection *connection;
	nghttp2_session *session;
	weft_mutex_t lock;		      /* of all that follows, and of the streams */
	struct mux_stream *streams, *opening; /* opening: its head is incomplete */
	weft_event_t wake;		      /* ends a wait of the reader */
	bool reading;			      /* a request has the reader's role */
	bool blocked;			      /* the socket took not all output */
	bool settled;			      /* the server's SETTINGS are here */
	int error;			      /* why the connection has ended, or 0 */
	char *in;			      /* MUX_READ bytes, or NULL */
	struct h2_output out;		      /* MUX_WRITE bytes, or NULL */
	size_t out_at;			      /* what is before was written */
	struct h2_frames frames;
	struct h2_patience patience;
	unsigned continuations;
};

/* A head, or a trailer, that was received. */
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
	weft_cond_t changed; /* any of the following, or the reader's role is free */
	bool waits;	     /* its request waits for that */

	/* The response. */
	struct mux_head *heads, **last_head; /* that the request has not taken */
	struct mux_head *incoming;	     /* incomplete */
	struct mux_head *trailer;
	size_t head_bytes; /* of all heads */
	unsigned informed; /* interim responses */
	bool final, ended; /* the final head is here; all is here */
	bool closed;	   /* nghttp2 has ended it */
	bool begun;	   /* its head was sent */
	bool refused;	   /* the server has not processed it */
	bool wants_1;	   /* it was reset because the server requires HTTP/1.1 */
	int error;
	struct text body; /* that the request has not taken */
	size_t taken;	  /* bytes that the request has, and the window is still to be given */

	/* The request's body. */
	struct iovec part; /* to be sent next */
	uint64_t left;	   /* of a body whose length is known; WEFT_NEVER: it is not */
	bool last;	   /* nothing follows `part` */
	bool defers;	   /* nghttp2 has to be told of more */
	bool sent;	   /* all of it */
};

static inline void weft__mux_lock(struct mux *m)
{
	weft_shield_begin();
	weft_mutex_lock(&m->lock);
	weft_shield_end();
}

/* client_h2.c. All with the lock held. */
/* Sends what is ready, as far as that does not wait. */
void weft__mux_flush(struct mux *m);
/* Waits once, for a change of the stream; receives meanwhile if nobody else does. 0: look again; or a negative errno */
int weft__mux_await(struct mux_stream *s, uint64_t deadline);
/* If nobody reads, a stream that waits is to do so. */
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
