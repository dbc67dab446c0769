/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The state of a client and of its requests.
 *
 * A request has a permit of its host and a permit of the client from the moment when it asks for a connection until it
 * lets go of that connection. A connection is either held by a request, or idle in the pool. A request opens a
 * connection only if its host has no idle one; so a host never has more connections than permits.
 *
 * Bytes of a response are received into an area:
 *
 *   0 … at … end … parsed … filled … capacity
 *       | body | not yet  |
 *       |      | parsed   |
 *
 * `at` to `end` is decoded body that the caller has not read. The head is received into `head`, where it stays until
 * the request is closed or redirected, because the caller has pieces of it. What follows it is received into `body`.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <weft/http_client.h>

#include "http/exchange.h"
#include "http/url.h"

enum {
	HOST_BUCKETS = 64,
	HEAD_SIZE = 4096,      /* of the area of a head, which grows */
	BODY_SIZE = 16384,     /* of the area of a body */
	PASS_OVER = 1 << 16,   /* bytes of a redirect's body that are read, to keep its connection */
	INFORM_MOST = 100,     /* 1xx responses to a request */
	RECORD = 1 << 14,      /* bytes that are encrypted at a time: they fit a socket that is writable */
	WRITE_PIECE = 1 << 16, /* bytes that the server must accept in config.write_time */
	CHUNK_MOST = 1 << 30,  /* bytes of a chunk that is sent */
};

struct link {
	struct connection *newer, *older;
};

/* A connection that is idle is in two lists. */
enum list_kind { OF_HOST, OF_ALL };

struct connection {
	struct stream stream; /* fd -1: not connected yet */
	struct host *host;
	struct link links[2]; /* by list_kind, while it is idle */
	uint64_t idle_since;
};

struct idle_list {
	struct connection *newest, *oldest;
};

/* An origin. It exists while a request or an idle connection uses it. */
struct host {
	struct host *next; /* in its bucket */
	weft_sem_t room;   /* permits */
	struct idle_list idle;
	unsigned users; /* requests */
	size_t length;
	char origin[];
};

struct weft_http_client {
	weft_http_client_config_t config;
	weft_sem_t room; /* permits */
	/* No task suspends while it holds the lock, which protects all that follows. */
	pthread_mutex_t lock;
	struct host *hosts[HOST_BUCKETS];
	struct idle_list idle;
	weft_http_tls_t *system_tls; /* NULL: no https request has needed it yet */
	weft_http_client_stats_t stats;
	unsigned requests; /* that are not closed */
};

struct area {
	char *data; /* allocated, or NULL */
	size_t at, end, parsed, filled, capacity;
};

enum body_kind { NO_BODY, IN_MEMORY, WITH_LENGTH, IN_CHUNKS };

struct weft_http_request {
	weft_http_client_t *client;
	struct host *host; /* NULL: it asks for no connection */
	bool host_permit, client_permit;
	struct connection *connection;
	uint64_t deadline;
	unsigned flags, redirects;

	/* The request. */
	struct url url, next; /* next: to which a redirect leads, or no text */
	char method[32];
	struct text fields; /* that the caller added, as lines */
	enum body_kind kind;
	const char *data; /* of a body in memory */
	uint64_t length;  /* of the body, if it is known */
	bool begun;	  /* the caller may not change the request any more */
	bool sent;	  /* whole */
	bool expects;	  /* the body waits for an interim response */
	int write_error;  /* 0, or why nothing can be written any more */
	struct text out;  /* bytes that stand before the next piece of the body */
	uint64_t written; /* of the body */
	size_t chunk;	  /* what is left of a chunk that was begun */
	bool last;	  /* the last chunk is in `out`, or was sent */

	/* The response. */
	llhttp_t parser;
	int status;
	int error;			 /* of all later calls; 0: none */
	int body_error;			 /* of a body that was received with its head */
	bool started;			 /* bytes of a response have come on this connection */
	bool head_done, final, complete; /* a head; that of the final response; the message */
	bool answered;			 /* weft_http_response has returned its status */
	bool in_value, keep, old;	 /* the connection may be used again; HTTP/1.0 */
	bool reused;			 /* the connection was idle in the pool */
	bool repeated;			 /* this is the second attempt */
	unsigned informed;
	weft_http_inform_t *inform;
	void *inform_context;
	struct area head, body;
	struct area *area; /* of them: where the response is received to */
	size_t head_bytes; /* that the head has, up to now */
	struct field *fields_at;
	unsigned count, trailer_at, field_room;
	struct text trailer; /* a copy of the trailer's fields */
	uint64_t received, announced, extensions;
};

/* client_pool.c */
/* Gets the request a connection, idle or new. `fresh`: a new one. 0, or a negative errno. */
int weft__client_connect(weft_http_request_t *r, bool fresh);
/* Gives the connection back, or closes it. Does not wait. */
void weft__client_release(weft_http_request_t *r, bool keep);
void weft__client_count(uint64_t *counter, weft_http_client_t *client);

/* client_send.c */
/* Composes the head into r->out. 0; -ENOMEM */
int weft__client_compose(weft_http_request_t *r);
/* Sends what is in r->out, and data. @return bytes of data; fewer: a final response is here */
ssize_t weft__client_push(weft_http_request_t *r, const char *data, size_t length);
/* Sends the head, and a body in memory. 0: sent, or a final response is here */
int weft__client_send(weft_http_request_t *r);

/* client_receive.c */
void weft__client_reset_response(weft_http_request_t *r);
/* Receives until the final head is complete. 0, or a negative errno */
int weft__client_receive_head(weft_http_request_t *r, uint64_t deadline);
/* Receives once, and parses. Without a complete head afterwards: 0. 1: the final head is complete. */
int weft__client_receive_more(weft_http_request_t *r, uint64_t deadline);
/* Gives the connection back, or closes it if it cannot be used again. Does not wait. */
void weft__client_let_go(weft_http_request_t *r);

/* client_redirect.c */
/* 1: the request has become the next one; 0: the response is for the caller; or a negative errno */
int weft__client_redirect(weft_http_request_t *r);

/* The end of a wait that may take `time`. */
static inline uint64_t weft__client_until(const weft_http_request_t *r, uint64_t time)
{
	uint64_t end = weft__after(time);

	return end < r->deadline ? end : r->deadline;
}

#endif
