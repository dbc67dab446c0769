/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/2, by nghttp2: a connection's session and its streams.
 *
 *   task            does                                                     file
 *   the connection  receives, feeds the session, starts a task per request   h2.c
 *   a stream        calls the handler                                        h2_stream.c
 *   the writer      sends all frames that are ready, by one write            h2.c
 *
 * The writer exists while there is something to send, so that an idle connection has one task. A mutex guards the
 * session and the fields below; nobody holds it while waiting for the peer. nghttp2's callbacks run under it: those for
 * frames that arrive are in h2_receive.c, those for bodies that are sent in h2_stream.c.
 */
#ifndef HTTP_H2_H
#define HTTP_H2_H

#include <nghttp2/nghttp2.h>

#include "http/exchange.h"

/* ---- the library ------------------------------------------------------------------------------------------------- */

#define NGHTTP2_FUNCTIONS(F)                                                                                           \
	F(option_new)                                                                                                  \
	F(option_set_no_auto_window_update)                                                                            \
	F(option_set_no_closed_streams)                                                                                \
	F(option_set_server_fallback_rfc7540_priorities)                                                               \
	F(option_set_max_outbound_ack)                                                                                 \
	F(session_callbacks_new)                                                                                       \
	F(session_callbacks_set_on_begin_headers_callback)                                                             \
	F(session_callbacks_set_on_header_callback)                                                                    \
	F(session_callbacks_set_on_invalid_header_callback)                                                            \
	F(session_callbacks_set_on_frame_recv_callback)                                                                \
	F(session_callbacks_set_on_invalid_frame_recv_callback)                                                        \
	F(session_callbacks_set_on_data_chunk_recv_callback)                                                           \
	F(session_callbacks_set_on_stream_close_callback)                                                              \
	F(session_callbacks_set_on_frame_send_callback)                                                                \
	F(session_callbacks_set_send_data_callback)                                                                    \
	F(session_client_new2)                                                                                         \
	F(session_server_new2)                                                                                         \
	F(session_del)                                                                                                 \
	F(session_mem_recv)                                                                                            \
	F(session_mem_send)                                                                                            \
	F(session_want_read)                                                                                           \
	F(session_want_write)                                                                                          \
	F(session_set_local_window_size)                                                                               \
	F(session_set_stream_user_data)                                                                                \
	F(session_get_stream_user_data)                                                                                \
	F(session_consume)                                                                                             \
	F(session_consume_connection)                                                                                  \
	F(session_consume_stream)                                                                                      \
	F(session_get_remote_settings)                                                                                 \
	F(session_resume_data)                                                                                         \
	F(session_terminate_session)                                                                                   \
	F(session_get_last_proc_stream_id)                                                                             \
	F(submit_settings)                                                                                             \
	F(submit_ping)                                                                                                 \
	F(submit_request)                                                                                              \
	F(submit_goaway)                                                                                               \
	F(submit_shutdown_notice)                                                                                      \
	F(submit_rst_stream)                                                                                           \
	F(submit_response)                                                                                             \
	F(submit_headers)                                                                                              \
	F(submit_trailer)

/* nghttp2, which is opened at run time. */
struct nghttp2 {
#define F(name) __typeof__(nghttp2_##name) *name;
	NGHTTP2_FUNCTIONS(F)
#undef F
	/* All sessions of servers share the first, and all sessions of clients the second. */
	nghttp2_session_callbacks *callbacks, *client_callbacks;
	nghttp2_option *option;
};
extern struct nghttp2 weft__nghttp2;
#define NG(name) weft__nghttp2.name

/* Registers the functions for frames that arrive, which have the same names in servers and clients. */
#define H2_SET_RECEIVE_CALLBACKS(c)                                                                                    \
	do {                                                                                                           \
		NG(session_callbacks_set_on_begin_headers_callback)(c, on_begin_headers);                              \
		NG(session_callbacks_set_on_header_callback)(c, on_header);                                            \
		NG(session_callbacks_set_on_invalid_header_callback)(c, on_invalid_header);                            \
		NG(session_callbacks_set_on_invalid_frame_recv_callback)(c, on_invalid_frame);                         \
		NG(session_callbacks_set_on_frame_recv_callback)(c, on_frame);                                         \
		NG(session_callbacks_set_on_data_chunk_recv_callback)(c, on_data);                                     \
		NG(session_callbacks_set_on_stream_close_callback)(c, on_close);                                       \
	} while (0)

/* ---- guards, of servers and clients ------------------------------------------------------------------------------ */

enum { H2_FRAME_HEAD = 9 }; /* bytes in front of a payload */

/* The frames in the bytes that are received. */
struct h2_frames {
	uint8_t head[H2_FRAME_HEAD]; /* of the frame that arrives, of which `filled` bytes have come */
	unsigned filled;
	size_t payload; /* bytes of the frame before it that have not come */
};

/* Finds the next frame's head, and copies it. NULL: it is incomplete. Else it ends there, and `payload` is its own. */
const char *weft__h2_next_frame(struct h2_frames *f, const char *at, const char *end);

static inline int32_t weft__h2_frame_id(const uint8_t *f)
{
	return (int32_t)((f[5] & 0x7fu) << 24 | (unsigned)f[6] << 16 | (unsigned)f[7] << 8 | f[8]);
}

/* Frames that wait to be written. Nobody but the writer uses them. */
struct h2_output {
	char *data; /* `room` bytes */
	size_t room, length;
	const uint8_t *rest; /* of a frame of nghttp2's that did not fit in */
	size_t rest_length;
};

/* Appends frames of the session until the buffer is full, or none is left. False: nghttp2 has failed. */
bool weft__h2_fill(struct h2_output *out, nghttp2_session *session);

/* Appends what fits in, as the caller knows. */
static inline void weft__h2_put(struct h2_output *out, const void *data, size_t n)
{
	memcpy(out->data + out->length, data, n);
	out->length += n;
}

/* A bucket of tokens, for frames that do nothing. */
struct h2_patience {
	unsigned left;
	uint64_t since;
};

/* False: the peer has sent too many. */
bool weft__h2_spend_patience(struct h2_patience *p);

/* ---- a connection ------------------------------------------------------------------------------------------------ */

enum {
	H2_PREFACE = 24,	  /* bytes in front of the client's first frame */
	H2_HEAD = 1024,		  /* bytes of a request's head that need no memory of their own */
	H2_WRITE = 1 << 16,	  /* bytes of a write at most */
	H2_READ = 1 << 15,	  /* of a read, if a page is too small */
	H2_WINDOW = 1 << 20,	  /* of a connection: the bodies of all its streams that handlers have not read */
	H2_SPARES = 32,		  /* streams whose memory is kept while a connection is busy */
	H2_CONTINUATIONS = 8,	  /* of a header block */
	H2_PATIENCE = 500,	  /* frames that do nothing, resets among them: so many at once */
	H2_PATIENCE_RATE = 100,	  /* and so many per second */
	H2_ACKS = 100,		  /* of PING and SETTINGS that wait to be sent */
	H2_STOP_TIME = 1000000000 /* nanoseconds in which a client must answer the announcement of the end */
};

struct h2_stream;

struct h2 {
	weft_http_t *connection;
	nghttp2_session *session;
	weft_mutex_t lock;		   /* of all fields below, except where they say otherwise */
	weft_cond_t changed;		   /* `ended`, `answered`, `drained` */
	weft_group_t tasks;		   /* streams and the writer. Not under the lock */
	struct h2_stream *streams, *spare; /* all; memory for new ones */
	struct h2_stream *opening;	   /* its header block, or its trailer, is incomplete */
	struct h2_stream *arrived, **last; /* requests that need a task: used by the connection's task only */
	unsigned spares, open, running; /* open: not closed by the protocol; running: their handler has not returned */
	unsigned continuations;
	struct h2_patience patience;
	int32_t last_id, reset_id; /* the newest stream of all, and of those that ended before their requests did */
	uint64_t used;		   /* bit i: the stream last_id - 2 i was opened, not skipped */
	bool writing;		   /* there is a writer */
	bool lost;		   /* nothing can be written any more */
	bool hostile;		   /* the connection must end */
	bool settled;		   /* the client's preface was complete */
	bool stopping;		   /* the end was announced */
	bool answered;		   /* and the client knows that */
	bool drained;		   /* no more frames are wanted, in either direction */
	bool ended;		   /* nothing is received any more */
	bool cancelled;		   /* handlers are cancelled. Atomic */

	struct h2_output out; /* the writer's */
	uint64_t idle_from;
	/* The connection's task alone: when a header block must be complete, 0: there is none; when complete responses
	 * are looked at that the client does not accept. */
	uint64_t head_until, scan_at;
	char *in; /* a page, or H2_READ bytes, or NULL */
	size_t capacity;
	struct h2_frames frames;
};

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

struct h2_stream {
	weft_http_t x; /* must be first */
	struct h2 *h2;
	struct h2_stream *next, *previous, *next_arrived;
	int32_t id;

	/* The request: written before its task begins. */
	struct text head;
	unsigned cookies;
	bool has_host, in_trailer;

	/* Under the connection's lock. */
	weft_cond_t changed;   /* any of the following */
	bool running, closed;  /* its task has not ended; nghttp2 has ended it */
	bool ended;	       /* no more of the request comes */
	bool last, waits;      /* nothing follows `parts`; nghttp2 has to be told of more */
	bool stale;	       /* it was complete, but unsent, when that was looked at before */
	struct text body;      /* that the handler has not taken */
	struct text trailer;   /* lines */
	size_t taken;	       /* bytes that the handler has, and the windows are still to be given */
	struct iovec parts[2]; /* of the response's body, to be sent next */

	weft_event_t gone; /* nobody waits for the response */

	weft_scope_t *_Atomic scope; /* of the running task */

	/* Text of the response's head, which nghttp2 does not copy. */
	char status[4], date[HTTP_DATE + 1], length[20], timing[TIMING_MOST];

	struct exchange exchange; /* most of it is not initialised */
	char first_head[H2_HEAD];
};

static inline struct h2_stream *weft__h2_stream_of(weft_http_t *x)
{
	return (struct h2_stream *)x;
}

/* A handler learns that nobody waits for its response, wherever it waits. With the lock held. */
static inline void weft__h2_tell_gone(struct h2_stream *s)
{
	weft_cond_broadcast(&s->changed);
	if (WEFT_NO_CANARY(h2_leaves_unnoticed))
		weft_event_set(&s->gone);
}

/* Whether the caller is being cancelled or not. */
static inline void weft__h2_lock(struct h2 *h2)
{
	weft_shield_begin();
	weft_mutex_lock(&h2->lock);
	weft_shield_end();
}

static inline void weft__h2_unlock(void *h2)
{
	weft_mutex_unlock(&((struct h2 *)h2)->lock);
}

/* h2.c. With the lock held: there are frames to send, if nghttp2 says so. */
void weft__h2_wake_writer(struct h2 *h2);
/* Sends GOAWAY; nothing that arrives later counts. With the lock held. */
void weft__h2_terminate(struct h2 *h2, uint32_t code);
/* Begins the end of the connection, in a task. With the lock held. */
void weft__h2_begin_stop(struct h2 *h2);

/* h2_receive.c */
/* Gives nghttp2 what was received. False: the connection ends. With the lock held. */
bool weft__h2_feed(struct h2 *h2, const char *data, size_t length);
void weft__h2_set_receive_callbacks(nghttp2_session_callbacks *callbacks);
/* The client has done something useless. */
void weft__h2_lose_patience(struct h2 *h2);

/* client_h2.c */
void weft__h2_set_client_callbacks(nghttp2_session_callbacks *callbacks);

/* h2_stream.c */
/* Adds lines "name: value" as fields, without those that HTTP/2 has not. Names are made lower-case in place. */
void weft__h2_add_lines(nghttp2_nv **to, const struct text *lines, uint8_t flags);
size_t weft__h2_count_lines(const struct text *lines);
void weft__h2_set_send_callbacks(nghttp2_session_callbacks *callbacks);
extern const struct protocol weft__http2;
/* NULL: no memory. */
struct h2_stream *weft__h2_open_stream(struct h2 *h2, int32_t id);
/* Frees a stream whose task has ended, or was never started. */
void weft__h2_free_stream(struct h2_stream *s);
void weft__h2_free_spares(struct h2 *h2);
void weft__h2_reset(struct h2_stream *s, uint32_t code);
/* A stream ends before its request does: frames of it may still be on their way. */
static inline void weft__h2_note_reset(struct h2 *h2, int32_t id)
{
	if (h2->reset_id < id)
		h2->reset_id = id;
}
/* The function of a stream's task. */
void *weft__h2_run_stream(void *stream);

#endif
