/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The state of a connection and of its current exchange.
 *
 * The buffer `in` holds, at any time,
 *
 *   0 … head … head_end … parsed … filled … capacity
 *       |request's head| body  | not yet |
 *                              | parsed  |
 *
 * The head stays in place from the call of the handler until its return, because the handler has pointers into it. Body
 * data are read behind it, or, if less than MIN_ROOM bytes are left there, into a buffer of their own. Header fields
 * are offsets from `head`, so that the buffer may move while a head is still incomplete.
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <llhttp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <weft/http.h>
#include <weft/sync.h>

#include "http/stream.h"

enum {
	SHARES = 17,	       /* the last is shared by all threads that find no free share */
	IN_SIZE = 4096,	       /* size of the receive buffer, which grows with a head that does not fit */
	OUT_SIZE = 4096,       /* size of the response buffer */
	MIN_ROOM = 1024,       /* room behind a head for body data */
	FIELDS_SIZE = 512,     /* bytes of response fields before memory is allocated for them */
	FEW_HEADERS = 32,      /* fields that need no memory of their own */
	TRAILER_MOST = 4096,   /* bytes of a request's trailer */
	PARAMS_MOST = 8,       /* parameters of a route */
	DRAIN_MOST = 1 << 18,  /* bytes of an unread body that are drained before the connection is closed */
	PART_MOST = 1 << 16,   /* bytes that the peer must accept in config.write_time */
	PIECE_MOST = 1 << 30,  /* bytes of a chunk */
	SLOT_LENGTH = 28,      /* bytes of the field that frames a body */
	CHUNK_HEAD = 10,       /* eight digits and CRLF */
	HOLD_TIME = 250000000, /* nanoseconds for which a silent connection keeps its buffers */
};

struct text {
	char *data, *first; /* allocated, unless data == first */
	size_t length, capacity;
};

struct field {
	uint32_t name, name_length, value, value_length;
};

struct param {
	const char *name;
	weft_http_text_t value;
};

enum framing { UNFRAMED, BY_LENGTH, BY_CHUNKS, BY_CLOSE };

/*
 * An exchange: a request and its response, and their memory. A connection has an exchange while it has data: between
 * two requests it has only the receive buffer, and after HOLD_TIME of silence not even that. Each thread reuses the
 * exchange that it returned last, so a busy server touches few cache lines, however many connections it has.
 */
struct exchange {
	llhttp_t parser; /* first, so that a callback finds the exchange */

	/* The request. */
	bool began, head_done, complete, chunked, expects;
	bool first_piece; /* the next body data follow the head in the buffer */
	int failed;	  /* 0, or the status that refuses the request */
	int body_error;
	uint64_t begun, body_length, extensions; /* body_length: announced; extensions: bytes of chunk extensions */
	struct field target;			 /* name: offset from head; name_length */
	weft_http_text_t path, query;
	unsigned param_count;

	/* The response. */
	int status;
	bool head_only; /* HEAD: no body is sent */
	bool streaming; /* the framing is decided */
	bool finished;	/* the response is complete */
	enum framing framing;
	uint64_t length, written; /* announced, or WEFT_NEVER; bytes that the handler wrote */
	size_t slot, body_at;	  /* in `out`: the offsets of the framing field, and of the body */

	uint64_t received, sent;    /* bytes of bodies, for the log */
	unsigned count, trailer_at; /* fields of the head and the trailer; the index of the trailer's first field */

	/* The receive buffer. */
	size_t head, head_end, parsed;
	size_t body, body_end; /* decoded data that the handler has not read yet, in the body's buffer */
	size_t filled, capacity;
	char *in, *own_body; /* allocated; own_body may be NULL */

	/* Memory of both. */
	struct field *fields; /* == few, or allocated */
	unsigned field_room;
	bool field_ends, peer_known; /* field_ends: the next name begins a new field */
	struct text trailer;	     /* a copy: body data are overwritten */
	struct text answer;	     /* response fields that the handler added */
	struct text trailers;	     /* response trailer fields */
	struct text out;
	char *decoded; /* the path, if it had to be decoded */
	/* The members from here on are not initialised. */
	struct field few[FEW_HEADERS];
	char answer_few[FIELDS_SIZE];
	char first_out[OUT_SIZE];
	struct param params[PARAMS_MOST];
	weft_address_t peer;
};

/* The functions in which HTTP/1.1 (response.c) and HTTP/2 (h2_stream.c) differ. Results: 0, or a negative errno. */
struct protocol {
	unsigned version; /* 10 or 20; the parser's http_minor is added */
	/* Waits for body data, and decodes them. Called when the handler has all data decoded before. */
	int (*more_body)(weft_http_t *x);
	/* Begins the response: its status and fields are complete, its framing may still change. */
	int (*begin)(weft_http_t *x);
	/* Sends the body's data in `out`, and the data at `data`, which are not in `out`. */
	int (*push)(weft_http_t *x, const char *data, size_t length);
	int (*push_file)(weft_http_t *x, int fd, uint64_t offset, uint64_t length);
	int (*inform)(weft_http_t *x, int status);
	/* Ends a response that has begun. */
	void (*complete)(weft_http_t *x);
};

struct weft_http {
	weft_http_server_t *server;
	const struct protocol *protocol;
	struct exchange *e; /* NULL: between two requests */
	char *in;	    /* the receive buffer between two requests, of IN_SIZE, or NULL; else it is e->in */
	struct weft_http *previous, *next;
	struct stream stream;
	_Atomic bool idle;   /* between two requests: weft_http_stop may end the connection */
	bool keep;	     /* the connection continues after this exchange */
	bool simulated;	     /* the connection runs in a simulation */
	bool lost;	     /* nothing can be written */
	bool served;	     /* a request was read: no HTTP/2 preface can follow */
	bool preface;	     /* the preface of HTTP/2 was read, and is in `e` */
	struct h2 *h2;	     /* a connection of HTTP/2; under the server's lock */
	weft_scope_t *scope; /* of the connection's task */
};

/* pages.c. No task suspends while it holds the lock. */
struct page_pool {
	pthread_mutex_t lock;
	struct page_block *blocks;
	char **free;
	size_t pages, count, warm; /* all; free; free pages that may be resident, at the end of `free` */
};

struct route;

/* share.c */
struct share {
	_Alignas(128) void *_Atomic owner; /* NULL: several threads use it */
	struct exchange *spare;
	_Atomic uint64_t statuses[6], received, sent;
};

struct weft_http_server {
	weft_http_config_t config;
	struct route *routes, **last;
	weft_mutex_t lock;	       /* protects the two lists */
	struct weft_http *connections; /* open connections */
	struct serving *listeners;     /* active calls of weft_http_serve */
	_Atomic bool stopping, forced;
	weft_group_t open;
	weft_sem_t room; /* permits for connections, if they are limited */
	struct page_pool pool;
	_Atomic uint64_t accepted, connected;
	struct share shares[SHARES];
};

/* request.c */
int weft__http_more_body(weft_http_t *x);
/* Appends a field. NULL: there are too many, or no memory. */
struct field *weft__http_add_field(weft_http_t *x);
/* Initialises an exchange, without a receive buffer or a parser. */
void weft__http_init_exchange(struct exchange *e);
/* Frees everything except e->in. */
void weft__http_free_exchange(struct exchange *e);
/* Is it a name, an IPv4 address, or "[…]", with or without a port? It may be empty. */
bool weft__is_host(weft_http_text_t host);
/* Sends the responses to a batch of requests. Called before weft__http_read_head, which would send them, too, but with
 * its own frame on a stack that is to stay small. 0, or a negative errno, and the connection is lost. */
int weft__http_send_last(weft_http_t *x);
/* Reads until a head is complete: 1; 0: the connection has ended, x->e->failed says how to answer. */
int weft__http_read_head(weft_http_t *x);
/* Checks the head that was read. 0, or the status that refuses it. */
int weft__http_check_head(weft_http_t *x);
/* Reads the rest of the body. False: too much is left, the connection must be closed. */
bool weft__http_drain(weft_http_t *x);
/* Prepares for the next request; keeps bytes that were received behind the present request. */
void weft__http_next(weft_http_t *x);
void weft__http_drop_buffers(weft_http_t *x);

/* share.c. Nothing in it suspends. */
void weft__http_received(weft_http_server_t *server, size_t n);
void weft__http_sent(weft_http_server_t *server, size_t n);
void weft__http_answered(weft_http_server_t *server, int status);	    /* status: 0: lost before the response */
struct exchange *weft__http_take_spare(weft_http_server_t *server);	    /* NULL: there is none */
bool weft__http_give_spare(weft_http_server_t *server, struct exchange *e); /* false: there is no room */
void weft__http_free_shares(weft_http_server_t *server);
void weft__http_sum_shares(const weft_http_server_t *server, weft_http_stats_t *stats);

/* pages.c: IN_SIZE bytes; NULL: no memory */
char *weft__http_take_page(weft_http_server_t *server);
void weft__http_give_page(weft_http_server_t *server, char *page);
void weft__http_free_pages(weft_http_server_t *server);

/* response.c */
static inline bool weft__http_has_begun(const weft_http_t *x)
{
	return x->e->framing != UNFRAMED;
}
extern const struct protocol weft__http1;
void weft__http_answer(weft_http_t *x, int status);
static inline bool weft__http_has_body(int status)
{
	return status >= 200 && status != 204 && status != 304;
}
/* True: the body is only counted. */
static inline bool weft__http_is_silent(const weft_http_t *x)
{
	return x->e->head_only || !weft__http_has_body(x->e->status);
}
/* Marks the connection as unable to send. @return `error`, or -EPIPE if `error` is not negative */
int weft__http_lose(weft_http_t *x, ssize_t error);
/* Writes the value of Server-Timing: TIMING_MOST bytes at most. @return its end */
enum { TIMING_MOST = 40 };
char *weft__http_put_timing(char *to, const weft_http_t *x);
char *weft__http_put_number(char *to, uint64_t number);
/* Completes the response after the handler has returned. */
void weft__http_finish(weft_http_t *x);
/* Sends the buffered data. 0, or a negative errno, and the connection is lost. */
int weft__http_send(weft_http_t *x);
/* Likewise while a response is being written. Decides its framing. */
int weft__http_flush_all(weft_http_t *x);
/* False: no memory, and nothing is added. The next text is added in the reserved room. */
bool weft__text_reserve(struct text *t, size_t more);
bool weft__text_add(struct text *t, const char *data, size_t length);
void weft__text_free(struct text *t);

/* server.c */
/* Completes the response after the handler has returned, counts and logs it. */
void weft__http_complete(weft_http_t *x);
void weft__http_note_begin(weft_http_t *x);
void weft__http_lock(weft_http_server_t *server);
void weft__http_unlock(weft_http_server_t *server);

/* h2.c */
/* True: nghttp2 is available. May suspend. */
bool weft__h2_is_available(void);
/* Serves HTTP/2 on a connection, which may have received data (x->e). Returns when the connection has ended. */
void weft__h2_serve(weft_http_t *x);
/* Asks the client to send no more requests; the connection ends when the requests already sent are answered. */
void weft__h2_stop(struct h2 *h2);
/* h2_stream.c. The event that is set when a stream's client has gone. NULL: not an exchange of HTTP/2. */
weft_event_t *weft__h2_gone(weft_http_t *x);

/* route.c */
/* Returns llhttp's number of a method, ANY_METHOD for "*", or -EINVAL. */
int weft__http_method_of(const char *name, size_t length);
struct route {
	struct route *next;
	weft_http_handler_t *handler;
	void (*release)(void *context); /* NULL: the context is the caller's */
	void *context;
	const char *path;
	size_t plain; /* the length of a path without parameters, else 0 */
	int method;   /* of llhttp, or ANY_METHOD */
	char pattern[];
};
enum { ANY_METHOD = -1 };
int weft__http_add_route(weft_http_server_t *server, const char *pattern, weft_http_handler_t *handler, void *context,
			 void (*release)(void *));
void weft__http_free_routes(weft_http_server_t *server);
void weft__http_dispatch(weft_http_t *x);
/* Sets x->e->path and x->e->query from the request's target. 0, or the status that refuses it. */
int weft__http_split_target(weft_http_t *x);

/* date.c */
enum { HTTP_DATE = 29 };
void weft__http_format_date(int64_t seconds, char text[HTTP_DATE + 1]);
/* A deadline in `time` nanoseconds, or up to 10 ms later. Only for server connections. */
uint64_t weft__http_after(const weft_http_t *x, uint64_t time);
/* Writes the current date, which is formatted once per second. */
void weft__http_date(bool simulated, char text[HTTP_DATE + 1]);
/* False: not a date. */
bool weft__http_parse_date(weft_http_text_t text, int64_t *seconds);

/* text.c */
static inline bool weft__text_is(weft_http_text_t text, const char *word) /* in any case */
{
	return text.data && text.length == strlen(word) && !strncasecmp(text.data, word, text.length);
}
/* Classes of bytes: in tokens, in hosts. */
enum { WEFT__TOKEN = 1, WEFT__HOST = 2 };
/* Returns how many bytes at the beginning of `text` belong to `class`. */
size_t weft__span(const char *text, size_t length, int class);
bool weft__is_token(const char *text, size_t length);
bool weft__is_field_value(const char *text, size_t length);
/* Takes the next element of a list with commas, without surrounding spaces; false: none is left. */
bool weft__next_element(weft_http_text_t *list, weft_http_text_t *element);
static inline bool weft__is_space(char c)
{
	return c == ' ' || c == '\t';
}
/* Removes spaces and tabs at the end. */
static inline weft_http_text_t weft__trim(weft_http_text_t text)
{
	while (text.length && weft__is_space(text.data[text.length - 1]))
		text.length--;
	return text;
}

static inline uint64_t weft__from(uint64_t now, uint64_t time)
{
	return time > WEFT_NEVER - now ? WEFT_NEVER : now + time;
}

static inline uint64_t weft__after(uint64_t time)
{
	return time == WEFT_NEVER ? WEFT_NEVER : weft__from(weft_now(), time);
}

#endif
