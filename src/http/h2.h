/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HTTP/2, by nghttp2: a connection's session and its streams.
 *
 *   task            does                                                     file
 *   the connection  receives, feeds the session, starts a task per request   h2.c
 *   a stream        calls the handler                                        h2_stream.c
 *   the writer      sends all frames that are ready, by one write            h2.c
 *
 * The writer exists while there are frames to send, so that an idle connection has one task. A mutex guards the session
 * and the fields below; no task holds it while waiting for the peer. nghttp2's callbacks run under it: callbacks for
 * received frames are in h2_receive.c, callbacks for bodies to be sent in h2_stream.c.
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

/* Registers the callbacks for received frames, which have the same names in servers and clients. */
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

/* ---- guards of servers and clients ------------------------------------------------------------------------------- */

enum { H2_FRAME_HEAD = 9 }; /* bytes in front of a payload */

/* The frames in the received bytes. */
struct h2_frames {
	uint8_t head[H2_FRAME_HEAD]; /* the head of the present frame; `filled` bytes of it have come */
	unsigned filled;
	size_t payload; /* bytes of the preceding frame that have not come */
};

/* Finds the next frame's head, and copies it. NULL: it is incomplete. Else returns its end, and sets `payload` to the
 * length of its payload. */
const char *weft__h2_next_frame(struct h2_frames *f, const char *at, const char *end);

static inline int32_t weft__h2_frame_id(const uint8_t *f)
{
	return (int32_t)((f[5] & 0x7fu) << 24 | (unsigned)f[6] << 16 | (unsigned)f[7] << 8 | f[8]);
}

/* Frames that wait to be written. Only the writer uses them. */
struct h2_output {
	char *data; /* `room` bytes */
	size_t room, length;
	const uint8_t *rest; /* the rest of an nghttp2 frame that did not fit */
	size_t rest_length;
};

/* Appends frames of the session until the buffer is full, or the session has none. False: nghttp2 has failed. */
bool weft__h2_fill(struct h2_output *out, nghttp2_session *session);

/* Appends data. The caller has checked that they fit. */
static inline void weft__h2_put(struct h2_output *out, const void *data, size_t n)
{
	memcpy(out->data + out->length, data, n);
	out->length += n;
}

/* A token bucket, for frames without effect. */
struct h2_patience {
	unsigned left;
	uint64_t since;
};

/* False: the peer has sent too many. */
bool weft__h2_spend_patience(struct h2_patience *p);

/* ---- a connection ------------------------------------------------------------------------------------------------ */

enum {
	H2_PREFACE = 24,	  /* bytes in front of the client's first frame */
	H2_HEAD = 1024,		  /* bytes of a request's head that need no allocation */
	H2_WRITE = 1 << 16,	  /* bytes of a write at most */
	H2_READ = 1 << 15,	  /* bytes of a read, if a page is too small */
	H2_WINDOW = 1 << 20,	  /* window of a connection: the bodies of all its streams that handlers have not read
				   * */
	H2_SPARES = 32,		  /* streams whose memory is kept while a connection is busy */
	H2_CONTINUATIONS = 8,	  /* CONTINUATION frames of a header block */
	H2_PATIENCE = 500,	  /* frames without effect, including resets, at once */
	H2_PATIENCE_RATE = 100,	  /* and per second */
	H2_ACKS = 100,		  /* acknowledgements of PING and SETTINGS that wait to be sent */
	H2_STOP_TIME = 1000000000 /* nanoseconds in which a client must acknowledge the announced end */
};

struct h2_stream;

struct h2 {
	weft_http_t *connection;
	nghttp2_session *session;
	weft_mutex_t lock;		   /* protects all fields below, unless they say otherwise */
	weft_cond_t changed;		   /* `ended`, `answered`, `drained` */
	weft_group_t tasks;		   /* streams and the writer. Not under the lock */
	struct h2_stream *streams, *spare; /* all; memory for new streams */
	struct h2_stream *opening;	   /* its header block, or its trailer, is incomplete */
	struct h2_stream *arrived, **last; /* requests that need a task: used by the connection's task only */
	unsigned spares, open, running;	   /* open: not closed by the protocol; running: the handler has not returned */
	unsigned continuations;
	struct h2_patience patience;
	int32_t last_id, reset_id; /* the newest stream; the newest stream that ended before its request did */
	uint64_t used;		   /* bit i: the stream last_id - 2 i was opened, not skipped */
	bool writing;		   /* there is a writer */
	bool lost;		   /* nothing can be written */
	bool hostile;		   /* the connection must end */
	bool settled;		   /* the client's preface was complete */
	bool stopping;		   /* the end was announced */
	bool answered;		   /* the client has acknowledged that */
	bool drained;		   /* no further frames are wanted, in either direction */
	bool ended;		   /* nothing more is received */
	bool cancelled;		   /* handlers are cancelled. Atomic */

	struct h2_output out; /* the writer's */
	uint64_t idle_from;
	/* Only for the connection's task: when a header block must be complete, 0: there is none; when to check for
	 * complete responses that the client does not accept. */
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
	weft_cond_t changed;   /* one of the following members */
	bool running, closed;  /* its task has not ended; nghttp2 has closed it */
	bool ended;	       /* the request is complete */
	bool last, waits;      /* nothing follows `parts`; nghttp2 must be resumed when there is more */
	bool stale;	       /* it was complete, but unsent, at the preceding check */
	struct text body;      /* not yet taken by the handler */
	struct text trailer;   /* lines */
	size_t taken;	       /* bytes that the handler has, but that are not yet returned to the windows */
	struct iovec parts[2]; /* of the response's body: to be sent next */

	weft_event_t gone; /* the client does not want the response */

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

/* Tells a handler, in any wait, that its client does not want the response. With the lock held. */
static inline void weft__h2_tell_gone(struct h2_stream *s)
{
	weft_cond_broadcast(&s->changed);
	if (WEFT_NO_CANARY(h2_leaves_unnoticed))
		weft_event_set(&s->gone);
}

/* Locks even if the caller is being cancelled. */
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

/* h2.c. Starts or wakes the writer if nghttp2 has frames to send. With the lock held. */
void weft__h2_wake_writer(struct h2 *h2);
/* Sends GOAWAY; ignores all that arrives later. With the lock held. */
void weft__h2_terminate(struct h2 *h2, uint32_t code);
/* Begins the end of the connection, in a task. With the lock held. */
void weft__h2_begin_stop(struct h2 *h2);

/* h2_receive.c */
/* Passes received bytes to nghttp2. False: the connection ends. With the lock held. */
bool weft__h2_feed(struct h2 *h2, const char *data, size_t length);
void weft__h2_set_receive_callbacks(nghttp2_session_callbacks *callbacks);
/* The client has sent a frame without effect. */
void weft__h2_lose_patience(struct h2 *h2);

/* client_h2.c */
void weft__h2_set_client_callbacks(nghttp2_session_callbacks *callbacks);

/* h2_stream.c */
/* Adds lines "name: value" as fields, without the fields that HTTP/2 does not have. Converts names to lower case in
 * place. */
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
/* Notes a stream that ends before its request does: frames of it may still be in transit. */
static inline void weft__h2_note_reset(struct h2 *h2, int32_t id)
{
	if (h2->reset_id < id)
		h2->reset_id = id;
}
/* The function of a stream's task. */
void *weft__h2_run_stream(void *stream);

#endif
