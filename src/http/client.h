/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The state of a client and of its requests.
 *
 * A request has a permit of its host and a permit of the client from the moment when it asks for a connection until it
 * releases that connection. A connection is held by a request, shared by several (HTTP/2), or idle in the pool. A
 * request opens a connection only if its host has no idle connection; so a host never has more connections than
 * permits.
 *
 * A shared connection of HTTP/2 holds the permits of the request that took it or opened it, until no request uses it.
 * Requests that join it need no permits. So a request waits for two things at once: a permit, or news that a shared
 * connection of its host has room. One request at a time dials a host that may speak HTTP/2 (`probing`), because one
 * connection may be enough for all requests.
 *
 * Bytes of a response are received into an area:
 *
 *   0 … at … end … parsed … filled … capacity
 *       | body | not yet  |
 *       |      | parsed   |
 *
 * `at` to `end` is decoded body that the caller has not read. The head is received into `head`, where it stays until
 * the request is closed or redirected, because the caller has pointers into it. Data behind it are received into
 * `body`.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <weft/http_client.h>

#include "http/exchange.h"
#include "http/url.h"

enum {
	HOST_BUCKETS = 64,
	HEAD_SIZE = 4096,      /* size of the area of a head, which grows */
	BODY_SIZE = 16384,     /* size of the area of a body */
	PASS_OVER = 1 << 16,   /* bytes of a redirect's body that are drained, to keep its connection */
	INFORM_MOST = 100,     /* interim responses (1xx) to a request */
	RECORD = 1 << 14,      /* bytes that are encrypted at a time: a writable socket has room for them */
	WRITE_PIECE = 1 << 16, /* bytes that the server must accept in config.write_time */
	CHUNK_MOST = 1 << 30,  /* bytes of an outgoing chunk */
	REMEMBERED = 1000,     /* hosts that the client remembers */
};

struct link {
	struct connection *newer, *older;
};

/* An idle connection is in two lists. */
enum list_kind { OF_HOST, OF_ALL };

struct connection {
	struct stream stream; /* fd -1: not connected yet */
	struct host *host;
	struct link links[2]; /* by list_kind, while it is idle; OF_HOST also while it is shared */
	uint64_t idle_since;
	struct mux *mux; /* HTTP/2; NULL: HTTP/1.1 */
	/* HTTP/2 alone uses these, under the client's lock. */
	unsigned users, streams; /* requests that use it; requests that may use it */
	bool closing;		 /* no request may join it */
};

struct idle_list {
	struct connection *newest, *oldest;
};

/* A request that waits for news of its host. It is in the frame of its task. */
struct seeker {
	struct seeker *next, *previous;
	weft_http_request_t *request;
	weft_event_t news;
	bool queued, first; /* it is in the host's list; it is to be in front */
	bool heard;	    /* the news ended the wait */
};

/* An origin. It exists while a request or an idle connection uses it, or the client remembers it. */
struct host {
	struct host *next; /* in its bucket */
	weft_sem_t room;   /* permits */
	struct idle_list idle, shared;
	struct seeker *first, *last;
	bool probing;	     /* a request dials it, and may find that it speaks HTTP/2 */
	bool old;	     /* it spoke HTTP/1.1 when it was dialed */
	_Atomic bool only_1; /* it requires HTTP/1.1, and the client remembers it. Set under the lock */
	unsigned users;	     /* requests */
	size_t length;
	char origin[];
};

struct weft_http_client {
	weft_http_client_config_t config;
	weft_sem_t room;   /* permits */
	weft_mutex_t lock; /* protects all that follows. Held for a few instructions */
	struct host *hosts[HOST_BUCKETS];
	struct idle_list idle;
	weft_http_tls_t *system_tls; /* NULL: no https request has needed it yet */
	weft_http_client_stats_t stats;
	unsigned requests;   /* open requests */
	unsigned remembered; /* hosts with only_1 */
};

struct area {
	char *data; /* allocated, or NULL */
	size_t at, end, parsed, filled, capacity;
};

enum body_kind { NO_BODY, IN_MEMORY, WITH_LENGTH, IN_CHUNKS };

struct weft_http_request {
	weft_http_client_t *client;
	struct host *host; /* NULL: it has not asked for a connection */
	bool host_permit, client_permit;
	bool probes; /* it has set host->probing */
	struct connection *connection;
	const struct client_protocol *protocol; /* the protocol of the connection */
	struct mux_stream *stream;		/* HTTP/2 */
	uint64_t deadline;
	unsigned flags, redirects;

	/* The request. */
	struct url url, next; /* next: the target of a redirect, or no text */
	char method[32];
	struct text fields; /* lines that the caller added */
	enum body_kind kind;
	const char *data; /* a body in memory */
	uint64_t length;  /* the length of the body, if it is known */
	bool begun;	  /* the caller may not change the request */
	bool sent;	  /* the whole request was sent */
	bool expects;	  /* the body waits for an interim response */
	int write_error;  /* 0, or the error that ended writing */
	struct text out;  /* bytes to be sent before the next piece of the body */
	uint64_t written; /* bytes of the body */
	size_t chunk;	  /* bytes that are missing in the present chunk */
	bool last;	  /* the last chunk is in `out`, or was sent */

	/* The response. */
	llhttp_t parser;
	int status;
	int error;			 /* returned by all later calls; 0: none */
	int body_error;			 /* an error in body data that came with the head */
	bool started;			 /* bytes of a response have come on this connection */
	bool head_done, final, complete; /* a head; the head of the final response; the message */
	bool answered;			 /* weft_http_response has returned its status */
	bool in_value, keep;		 /* keep: the connection may be reused */
	bool reused;			 /* the connection was used before */
	bool repeated;			 /* this is the second attempt */
	bool refused;			 /* HTTP/2: the server has certainly not processed the request */
	bool wants_1;			 /* HTTP/2: the server has reset it because it requires HTTP/1.1 */
	bool only_1;			 /* it may use HTTP/1.1 only */
	unsigned version, informed;
	weft_http_inform_t *inform;
	void *inform_context;
	struct area head, body;
	struct area *area; /* head or body: the area that receives the response */
	size_t head_bytes; /* the present size of the head */
	struct field *fields_at;
	unsigned count, trailer_at, field_room;
	struct text trailer; /* a copy of the trailer's fields */
	uint64_t received, announced, extensions;
};

/* The functions in which HTTP/1.1 (client_send.c, client_receive.c) and HTTP/2 (client_h2_stream.c) differ. */
struct client_protocol {
	/* Composes the head. 0; -ENOMEM */
	int (*compose)(weft_http_request_t *r);
	/* Begins a piece of a body of unknown length. Returns how much of `length` the piece contains; -ENOMEM */
	ssize_t (*begin_piece)(weft_http_request_t *r, size_t length);
	/* Sends the composed bytes, and data. Returns bytes of data; fewer than `length`: a final response has
	 * arrived. */
	ssize_t (*push)(weft_http_request_t *r, const char *data, size_t length);
	/* Was the whole request sent? */
	bool (*is_sent)(const weft_http_request_t *r);
	/* No piece follows. 0; -ENOMEM */
	int (*end)(weft_http_request_t *r);
	/* Receives once. 1: the final head is complete; 0: not yet; or a negative errno */
	int (*receive)(weft_http_request_t *r, uint64_t deadline);
	/* Receives body data; called when the caller has all data received before. 0, or a negative errno */
	int (*more_body)(weft_http_request_t *r);
	/* Releases the request's connection. Does not wait. */
	void (*let_go)(weft_http_request_t *r);
};
extern const struct client_protocol weft__client_http1, weft__client_http2;

/* Locks even if the caller is being cancelled. */
static inline void weft__client_lock(weft_http_client_t *c)
{
	weft_shield_begin();
	weft_mutex_lock(&c->lock);
	weft_shield_end();
}

static inline void weft__client_unlock(weft_http_client_t *c)
{
	weft_mutex_unlock(&c->lock);
}

/* client_pool.c */
/* Gets the request a shared, idle or new connection. `fresh`: not an idle connection. 0, or a negative errno. */
int weft__client_connect(weft_http_request_t *r, bool fresh);
/* Frees the hosts of a client that has no connections. */
void weft__client_forget_hosts(weft_http_client_t *c);
/* Returns the connection to the pool, or closes it. Does not wait. */
void weft__client_release(weft_http_request_t *r, bool keep);
void weft__client_count(uint64_t *counter, weft_http_client_t *client);
/* Sets how many requests may use a connection of HTTP/2. */
void weft__client_set_streams(struct connection *connection, weft_http_client_t *c, unsigned streams);
/* No further request may join it. only_1: its host requires HTTP/1.1. */
void weft__client_set_closing(struct connection *connection, weft_http_client_t *c, bool only_1);

/* client_send.c */
/* Adds the fields of the request's head, as lines: without Host, and without the framing of a body of unknown
 * length. */
bool weft__client_add_fields(weft_http_request_t *r, struct text *t);
/* Sends the head, and a body in memory. 0: sent, or a final response has arrived */
int weft__client_send(weft_http_request_t *r);

/* client_receive.c */
void weft__client_reset_response(weft_http_request_t *r);
/* Receives until the final head is complete. 0, or a negative errno */
int weft__client_receive_head(weft_http_request_t *r, uint64_t deadline);
/* Releases the request's connection. Does not wait. */
void weft__client_let_go(weft_http_request_t *r);
/* Appends a field. NULL: there are too many, or no memory; the request has failed. */
struct field *weft__client_add_field(weft_http_request_t *r);
/* The receiving functions of HTTP/1.1's client_protocol. */
int weft__client_receive_more(weft_http_request_t *r, uint64_t deadline);
int weft__client_more_body(weft_http_request_t *r);
void weft__client_give_back(weft_http_request_t *r);

/* client_h2.c: connections of HTTP/2. Without nghttp2 there are none. */
/* Begins HTTP/2 on a new connection, and waits for the server's SETTINGS. 0, or a negative errno; afterwards
 * connection->mux may be set in either case. */
int weft__mux_open(weft_http_client_t *c, struct connection *connection, uint64_t deadline);
/* Handles data that came while the connection was idle. False: it cannot be reused. Does not wait. */
bool weft__mux_is_usable(struct mux *m);
/* Sends GOAWAY, and frees the connection, which no request uses. Does not wait. */
void weft__mux_close(struct mux *m);

/* client_redirect.c */
/* 1: the request has become the redirected request; 0: the response is for the caller; or a negative errno */
int weft__client_redirect(weft_http_request_t *r);

/* The deadline of a wait that may take `time`. */
static inline uint64_t weft__client_until(const weft_http_request_t *r, uint64_t time)
{
	uint64_t end = weft__after(time);

	return end < r->deadline ? end : r->deadline;
}

#endif
