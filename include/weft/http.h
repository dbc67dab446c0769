/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/http.h: a server for HTTP/1.1 and HTTP/2. Each connection has a task, in HTTP/2 each request too, and a handler
 * is an ordinary function of that task.
 *
 *   static void hello(weft_http_t *http, void *context)
 *   {
 *           weft_http_reply(http, 200, "text/plain", "hello\n", 6);
 *   }
 *
 *   static void *serve(void *listener)
 *   {
 *           weft_http_server_t *server;
 *
 *           if (weft_http_open(&server, NULL) != 0)
 *                   weft_task_fail(-ENOMEM);
 *           weft_http_route(server, "GET /hello", hello, NULL);
 *           weft_http_serve(server, *(int *)listener);         // until weft_http_stop
 *           weft_http_close(server);
 *           return NULL;
 *   }
 *
 * Design
 *  1. llhttp parses. Everything else (framing of replies, routes, files, limits) is here, on top of weft/io.h alone.
 *  2. A request's head lies in the connection's buffer, and the accessors return pieces of it: nothing is copied,
 *     except a path that needs decoding.
 *  3. A reply is collected in a buffer of 4 KiB. A reply that fits has a Content-Length; a longer one is sent in chunks
 *     (HTTP/1.0: until the connection closes), unless weft_http_set_length said how long it is.
 *  4. Requests that arrive together (pipelining) are answered by one write.
 *  5. A connection that has been silent for 250 ms gives its buffers back, and keeps only its task's stack.
 *  6. A request that two parsers could read in two ways is refused with 400, and the connection is closed: bare CR or
 *     LF, folded lines, several or malformed lengths, Transfer-Encoding beside Content-Length or in HTTP/1.0.
 *  7. TLS 1.2 and 1.3 by OpenSSL 3, which is opened when a program makes the first weft_http_tls_t. OpenSSL encrypts
 *     memory; its bytes go through weft/io.h, so deadlines, cancellation and simulations are the same with TLS.
 *  8. A connection that begins with the preface of HTTP/2, or that chose it by TLS (ALPN), is served by nghttp2, which
 *     is opened at run time. Handlers are the same for both versions. Streams that are answered together are sent by
 *     one write; a stream's window is given back when the handler has read the data; a stream that is reset, or whose
 *     handler fails, ends no other.
 *  9. Not in this library yet: WebSocket. An Upgrade header is ignored, as RFC 9110 allows.
 * To reach: requests per second of CPU time in 0.90 of a raw epoll loop with the same parser, and 5.5 KB per idle
 * connection with contiguous stacks.
 *
 * Link with weft::http, or pkg-config weft-http. Functions that take a weft_http_t are for the handler that got it, in
 * its own task or coroutines that the task runs; they may suspend, and may be called on any stack. What they return
 * stays valid until the handler returns. Functions that take a weft_http_server_t are thread-safe where they say so.
 * Nothing here is for signal handlers.
 *
 * Source of the ideas: one task for each connection and handlers as plain functions, Go's net/http; routes with
 * parameters, Sinatra; a reply that gets its length if it fits the buffer, Go; to refuse ambiguous requests, RFC 9112.
 */
#ifndef WEFT_HTTP_H
#define WEFT_HTTP_H

#include <weft/io.h>
#include <weft/sched.h>
#include <weft/sync.h>

WEFT_EXTERN_C_BEGIN

/** An exchange: a request, and the response to it. */
typedef struct weft_http weft_http_t;
typedef struct weft_http_server weft_http_server_t;
/** TLS: the certificate of a server, or the authorities that a client trusts. */
typedef struct weft_http_tls weft_http_tls_t;

/**
 * Answers a request. The response is complete when the handler returns; without one, the answer is 500.
 * A handler that ends its task (weft_task_fail) closes its connection, in HTTP/2 it resets its stream. Others are not
 * affected. Handlers of one connection of HTTP/2 run at the same time.
 *
 * A client that goes away does not cancel the handler, which may be in the middle of work that should be finished:
 * reads and writes fail, and other waits go on. A handler that waits for something else than its client, and would wait
 * for nobody, adds weft_http_gone to the cases of that wait.
 */
typedef void weft_http_handler_t(weft_http_t *http, void *context);

/** A piece of text without a zero at its end. `data` is NULL if there is none. */
typedef struct weft_http_text {
	const char *data;
	size_t length;
} weft_http_text_t;

/* ---- the server -------------------------------------------------------------------------------------------------- */

/** A finished exchange, for the access log. Valid during the call. */
typedef struct weft_http_entry {
	weft_http_text_t method, target; /**< as they came; empty if the request could not be parsed */
	const weft_address_t *peer;
	unsigned version;	     /**< 10, 11 or 20 */
	int status;		     /**< 0: the connection was lost before a response began */
	uint64_t received, sent;     /**< bytes of the bodies */
	uint64_t begun, nanoseconds; /**< weft_now() when the head was complete; how long the answer took */
} weft_http_entry_t;

typedef void weft_http_log_t(const weft_http_entry_t *entry, void *context);

/** Limits and times of a server. Zero-initialised: the defaults in brackets. Times in nanoseconds; WEFT_NEVER: none. */
typedef struct weft_http_config {
	size_t request_line;   /**< bytes of the target [8 KiB]; longer: 414 */
	size_t header_bytes;   /**< bytes of all header fields [16 KiB]; more: 431 */
	unsigned headers;      /**< how many fields [100]; more: 431 */
	uint64_t body;	       /**< bytes of a request's body [1 MiB]; more: 413 */
	unsigned streams;      /**< HTTP/2: requests of a connection at one time [100]; more are refused */
	unsigned connections;  /**< open at one time [as many as descriptors allow]; more wait to be accepted */
	uint64_t header_time;  /**< from a request's first byte to the end of its head [10 s]; late: 408 */
	uint64_t body_time;    /**< between two pieces of a body [10 s]; late: 408 */
	uint64_t idle_time;    /**< between two requests [60 s]; the connection is closed */
	uint64_t write_time;   /**< until the peer accepts 64 KiB of a response [30 s]; the connection is closed */
	const char *name;      /**< a Server field; NULL: none. Must stay in place */
	weft_task_attr_t task; /**< of the connections' tasks */
	weft_http_log_t
	    *log; /**< is called after each exchange, in the connection's task, and must not suspend for long */
	void *log_context;
	unsigned flags; /**< WEFT_HTTP_TIMING */
} weft_http_config_t;

enum { WEFT_HTTP_TIMING = 1 /**< each response has a Server-Timing field: the time until it began */ };

/** Make a server. @param config  NULL: the defaults; only read during the call
 * @return 0, and *server is to be closed by weft_http_close; -ENOMEM; -EINVAL: an unknown flag. Does not wait. */
WEFT_API int weft_http_open(weft_http_server_t **server, const weft_http_config_t *config);

/** Free a server, which serves no listener and has no connection any more (see weft_http_stop). NULL: nothing. */
WEFT_API void weft_http_close(weft_http_server_t *server);

/**
 * Add a route. Not thread-safe: before the server serves.
 * @param pattern  a method, a space, and a path: "GET /users/:id", "POST /files/" followed by "*rest". A part that
 *                 begins with ':' stands for one part of a path; a last part that begins with '*', for all the rest.
 *                 "*" as the method stands for every method. A GET route also answers HEAD, without a body
 * The first route that fits wins. A path without a route is answered with 404; one that has routes for other methods
 * with 405, and OPTIONS with 204, both with Allow.
 * @return 0; -EINVAL: no such pattern; -ENOMEM
 */
WEFT_API int weft_http_route(weft_http_server_t *server, const char *pattern, weft_http_handler_t *handler,
			     void *context);

/**
 * Serve the files of a directory below a path: "/static/" and "/srv/www". GET and HEAD; ranges, conditional requests
 * (ETag, Last-Modified), "file.br", "file.zst" and "file.gz" beside "file" for clients that accept them, "index.html"
 * for a directory. No file outside of the directory is served: neither by "..", nor through a symbolic link. Hidden
 * files (".name") are not served. Not thread-safe: before the server serves. The files are those of the
 * real system, also in a simulation, where they cannot be sent.
 * @return 0; -ENOENT, -ENOTDIR, -EACCES, …: the directory; -EINVAL: the prefix does not begin and end with "/";
 *   -ENOMEM
 */
WEFT_API int weft_http_files(weft_http_server_t *server, const char *prefix, const char *directory);

/**
 * Accept connections, and serve each in a task of its own, until weft_http_stop. Several tasks may serve several
 * listeners. If descriptors or memory run out, it waits until there are some. The listener stays the caller's.
 * @param listener  of weft_listen, or inherited
 * @return 0: stopped; -EBADF, -EINVAL, -ENOTSOCK: it is no listener; -ECANCELED: a scope of the caller was cancelled,
 *   or the listener closed; -EPERM: the caller is no task
 */
WEFT_API int weft_http_serve(weft_http_server_t *server, int listener);

/** As weft_http_serve, for connections by TLS. A client must complete its handshake in config.header_time; one that
 * speaks plain HTTP is answered with 400.
 * @param tls  of weft_http_tls_open; must stay open until the server is closed
 * @return also -EINVAL: `tls` is of weft_http_tls_client_open */
WEFT_API int weft_http_serve_tls(weft_http_server_t *server, int listener, weft_http_tls_t *tls);

/** Serve one connection in the calling task, and close `fd`. Returns when it has ended. */
WEFT_API void weft_http_serve_connection(weft_http_server_t *server, int fd);

/**
 * Stop: no connection is accepted any more, idle ones are closed, and requests that have begun are answered, with
 * "Connection: close"; a client of HTTP/2 gets GOAWAY twice. After the deadline (of weft_now()) what is left is
 * cancelled: waits of handlers return -ECANCELED. Returns when no connection is left. By any task; several calls are
 * allowed.
 * @return 0: all were answered; -ETIMEDOUT: some were cancelled
 */
WEFT_API int weft_http_stop(weft_http_server_t *server, uint64_t deadline);

typedef struct weft_http_counters {
	uint64_t connections;	 /**< that are open */
	uint64_t accepted;	 /**< since the beginning */
	uint64_t statuses[6];	 /**< responses with 1xx (index 1) to 5xx; 0: connections lost before a response */
	uint64_t received, sent; /**< bytes, heads included */
} weft_http_stats_t;

/** Thread-safe; does not wait. Numbers that change meanwhile may be of slightly different times. */
WEFT_API void weft_http_stats(const weft_http_server_t *server, weft_http_stats_t *stats);

/** A log function: one line for each exchange, in the common log format, to the FILE that is its context. */
WEFT_API void weft_http_log_common(const weft_http_entry_t *entry, void *file);
/** A log function: one JSON object for each exchange, to the FILE that is its context. */
WEFT_API void weft_http_log_json(const weft_http_entry_t *entry, void *file);

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/**
 * Open the certificate of a server. TLS 1.2 and 1.3, with ciphers that give forward secrecy; clients resume sessions by
 * tickets.
 * @param certificate  a PEM file: the server's certificate, and behind it those that lead to its authority
 * @param key          a PEM file: its key, without a passphrase
 * @param why          written: the reason by OpenSSL if the call fails, a text that stays valid; NULL: the result is
 *                     the reason, or the call has not failed. May be NULL
 * @return 0, and *tls is to be closed by weft_http_tls_close; -ENOENT, -EACCES, …: one of the files; -EINVAL: it is
 *   malformed, or the key does not fit; -ENOTSUP: libssl.so.3 is not here, or was not when this library was built;
 *   -ENOMEM
 * Files are read on a helper thread, so a task is suspended. Thread-safe, on any stack.
 */
WEFT_API int weft_http_tls_open(weft_http_tls_t **tls, const char *certificate, const char *key, const char **why);

/**
 * Open the authorities that a client trusts.
 * @param authorities  a PEM file of certificates; NULL: those of the system
 * As weft_http_tls_open.
 */
WEFT_API int weft_http_tls_client_open(weft_http_tls_t **tls, const char *authorities, const char **why);

/** Read the files again, as weft_http_tls_open does. Connections that exist are not affected; if the call fails, new
 * ones have the earlier certificate. It also makes new keys for session tickets, so a server does this from time to
 * time. Thread-safe, also while servers and clients use `tls`. */
WEFT_API int weft_http_tls_reload(weft_http_tls_t *tls, const char **why);

/** Why a handshake failed last, by OpenSSL: "certificate has expired"; "": none has. The text stays valid. Thread-safe;
 * does not wait. */
WEFT_API const char *weft_http_tls_why(const weft_http_tls_t *tls);

/** Close it. No server, client or connection uses it any more. NULL: nothing. Does not wait. */
WEFT_API void weft_http_tls_close(weft_http_tls_t *tls);

/* ---- the request ------------------------------------------------------------------------------------------------- */

/** "GET". With a zero at its end. */
WEFT_API const char *weft_http_method(const weft_http_t *http);
/** The target as it came, and its decoded path: "/a%20b?x=1" and "/a b". A path has no "." and ".." parts. */
WEFT_API weft_http_text_t weft_http_target(const weft_http_t *http);
WEFT_API weft_http_text_t weft_http_path(const weft_http_t *http);
/** Behind the "?", not decoded; none if there is no "?". */
WEFT_API weft_http_text_t weft_http_query(const weft_http_t *http);
/**
 * A parameter of the query, decoded ("+" is a space).
 * @param value, size  written, with a zero at its end
 * @return its length; -ENOENT: there is no such parameter; -ENOSPC: `size` is too small; -EINVAL: malformed
 */
WEFT_API ssize_t weft_http_query_value(const weft_http_t *http, const char *name, char *value, size_t size);
/** A part of the path that the route's pattern names; none if the pattern has no such name. */
WEFT_API weft_http_text_t weft_http_param(const weft_http_t *http, const char *name);
/** A header field by its name, in any case; none if there is no such field. Of several, the first. */
WEFT_API weft_http_text_t weft_http_header(const weft_http_t *http, const char *name);
/** Field number `index`, from 0. @return false: there is no such field */
WEFT_API bool weft_http_header_at(const weft_http_t *http, unsigned index, weft_http_text_t *name,
				  weft_http_text_t *value);
/** A trailer field by its name, after weft_http_read has returned 0. */
WEFT_API weft_http_text_t weft_http_trailer(const weft_http_t *http, const char *name);
/** 10, 11 or 20. */
WEFT_API unsigned weft_http_version(const weft_http_t *http);
WEFT_API const weft_address_t *weft_http_peer(const weft_http_t *http);
/** True: the request came by TLS. */
WEFT_API bool weft_http_is_secure(const weft_http_t *http);

/**
 * A case of weft_select that is done when nobody waits for the response any more: the client has closed the connection
 * or, in HTTP/2, reset the stream. It stays done.
 *
 *   weft_readiness_t ready;
 *   weft_case_t cases[] = {{.chan = updates, .receive = &update}, weft_http_gone(http, &ready)};
 *   if (weft_select(cases, 2) == 1)
 *           return;
 *
 * In HTTP/1.1 a client that has only ended its sending (shutdown) looks the same, and may still read: so a handler that
 * has an answer sends it. The case then waits on the descriptor, and the select fails as weft_readiness says.
 * @param ready  memory for the case, which must stay as long as the case is used
 */
WEFT_API weft_case_t weft_http_gone(weft_http_t *http, weft_readiness_t *ready);

/**
 * Read the body. Waits for data; sends "100 Continue" first if the client asked for it.
 * @return bytes; 0: the end; -EFBIG: longer than the limit (413 is the answer unless the handler replies otherwise);
 *   -EBADMSG: malformed (400); -ETIMEDOUT (408); -ECONNRESET: the client left, or reset the stream; -ECANCELED
 */
WEFT_API ssize_t weft_http_read(weft_http_t *http, void *data, size_t length);
/** The whole body, if it fits. @return its length; -EMSGSIZE: it does not fit, `length` bytes were read; or as
 * weft_http_read */
WEFT_API ssize_t weft_http_read_all(weft_http_t *http, void *data, size_t length);

/* ---- the response ------------------------------------------------------------------------------------------------ */

/**
 * The whole response, in one call.
 * @param status  200 to 599
 * @param type    Content-Type; NULL: none
 * @return 0; -EALREADY: a response has begun; -EINVAL: no such status, or a type with control characters; -EPIPE,
 *   -ECONNRESET, -ETIMEDOUT, -ECANCELED: the client cannot be reached, and the connection closes after the handler
 */
WEFT_API int weft_http_reply(weft_http_t *http, int status, const char *type, const void *data, size_t length);

/** The status of a response that weft_http_write begins [200]. @return 0; -EALREADY; -EINVAL */
WEFT_API int weft_http_set_status(weft_http_t *http, int status);
/**
 * Add a header field. Content-Length, Transfer-Encoding, Connection and Date are the library's. HTTP/2 leaves out
 * Keep-Alive, Proxy-Connection and Upgrade, which that version does not have.
 * @return 0; -EALREADY: the response has begun; -EINVAL: no token as its name, control characters in its value, or one
 *   of the library's; -ENOMEM
 */
WEFT_API int weft_http_add_header(weft_http_t *http, const char *name, const char *value);
/** Say how long the body will be; else it has a length if it fits the buffer, and is sent in chunks if not.
 * @return 0; -EALREADY; -EINVAL: 10^12 bytes or more */
WEFT_API int weft_http_set_length(weft_http_t *http, uint64_t length);
/**
 * A piece of the body. It is sent when the buffer is full, the handler returns, or by weft_http_flush. Waits while the
 * client does not read.
 * @return `length`; -EMSGSIZE: more than weft_http_set_length said; -EPIPE, … as weft_http_reply
 */
WEFT_API ssize_t weft_http_write(weft_http_t *http, const void *data, size_t length);
/** As weft_http_write, with a format of printf. @return bytes, or a negative errno */
WEFT_API ssize_t weft_http_printf(weft_http_t *http, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Send what has been written. Begins the response. @return 0 or as weft_http_reply */
WEFT_API int weft_http_flush(weft_http_t *http);
/**
 * A part of a file as the rest of the body, by sendfile where the connection allows that.
 * @param fd  stays the caller's
 * @return 0; -EALREADY: chunks have begun; -EMSGSIZE: more than weft_http_set_length said; -EIO: the file is shorter;
 *   or as weft_http_reply
 */
WEFT_API int weft_http_send_file(weft_http_t *http, int fd, uint64_t offset, uint64_t length);
/** A trailer field, behind a body that is sent in chunks, or by HTTP/2; ignored if the body is not.
 * @return as weft_http_add_header */
WEFT_API int weft_http_add_trailer(weft_http_t *http, const char *name, const char *value);
/**
 * Send an informational response now (103 and the fields that were added so far, which are then cleared).
 * @return 0, also if the client is HTTP/1.0 and must not get one; -EINVAL: not 102 to 199; -EALREADY
 */
WEFT_API int weft_http_inform(weft_http_t *http, int status);
/**
 * Send a server-sent event, and flush. The first one begins the response, as text/event-stream.
 * @param event, id  NULL: none. @param data  each of its lines becomes a data line; NULL: ""
 * @return 0; -EINVAL: a line break in `event` or `id`; or as weft_http_reply
 */
WEFT_API int weft_http_event(weft_http_t *http, const char *event, const char *id, const char *data);
/** Close the connection after this response. HTTP/2: when all requests that the client has sent are answered. */
WEFT_API void weft_http_set_close(weft_http_t *http);
/** "Not Found"; "" if the status has no name. */
WEFT_API const char *weft_http_status_text(int status);

WEFT_EXTERN_C_END

#endif
