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
 *  3. A reply is collected in a buffer of 4 KiB. A reply that fits has a Content-Length; a longer reply is sent in
 *     chunks (HTTP/1.0: until the connection closes), unless weft_http_set_length has set its length.
 *  4. Requests that arrive together (pipelining) are answered by one write.
 *  5. A connection that has been silent for 250 ms frees its buffers, and keeps only its task's stack.
 *  6. A request that two parsers could read in two ways is refused with 400, and the connection is closed: bare CR or
 *     LF, folded lines, several or malformed lengths, Transfer-Encoding beside Content-Length or in HTTP/1.0.
 *  7. TLS 1.2 and 1.3 by OpenSSL 3, which is opened when a program makes the first weft_http_tls_t. OpenSSL encrypts
 *     memory; its bytes go through weft/io.h, so deadlines, cancellation and simulations are the same with TLS.
 *  8. A connection that begins with the preface of HTTP/2, or that chose it by TLS (ALPN), is served by nghttp2, which
 *     is opened at run time. Handlers are the same for both versions. Streams that are answered together are sent by
 *     one write; a stream's window is opened again when the handler has read the data; a stream that is reset, or whose
 *     handler fails, does not end other streams.
 *  9. Not in this library yet: WebSocket. An Upgrade header is ignored, as RFC 9110 allows.
 * Targets: 0.90 of the requests per second of CPU time of a raw epoll loop with the same parser, and 5.5 KB per idle
 * connection with contiguous stacks.
 *
 * Link with weft::http, or pkg-config weft-http. Functions that take a weft_http_t are for the handler that got it, in
 * its own task or coroutines that the task runs; they may suspend, and may be called on any stack. Their results stay
 * valid until the handler returns. Functions that take a weft_http_server_t are thread-safe if their comments say so.
 * None may be called in a signal handler.
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
 * Answers a request. The response is complete when the handler returns; without a response the answer is 500. A handler
 * that ends its task (weft_task_fail) closes its connection; in HTTP/2 it resets its stream. Other requests are not
 * affected. Handlers of one connection of HTTP/2 run at the same time.
 *
 * A client that disconnects does not cancel the handler, which may be in the middle of work that should be finished:
 * reads and writes fail, and other waits continue. A handler that waits for something else than its client, and should
 * stop when the client is gone, adds weft_http_gone to the cases of that wait.
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
	weft_http_text_t method, target; /**< as received; empty if the request could not be parsed */
	const weft_address_t *peer;
	unsigned version;	     /**< 10, 11 or 20 */
	int status;		     /**< 0: the connection was lost before a response began */
	uint64_t received, sent;     /**< bytes of the bodies */
	uint64_t begun, nanoseconds; /**< weft_now() when the head was complete; the time that the answer took */
} weft_http_entry_t;

/** Called with each finished exchange: `log` and `log_context` of weft_http_config_t. `entry` is valid during the call.
 * */
typedef void weft_http_log_t(const weft_http_entry_t *entry, void *context);

/** Limits and times of a server. Zero-initialised: the defaults in brackets. Times in nanoseconds; WEFT_NEVER: none. */
typedef struct weft_http_config {
	size_t request_line;   /**< bytes of the target [8 KiB]; longer: 414 */
	size_t header_bytes;   /**< bytes of all header fields [16 KiB]; more: 431 */
	unsigned headers;      /**< number of header fields [100]; more: 431 */
	uint64_t body;	       /**< bytes of a request's body [1 MiB]; more: 413 */
	unsigned streams;      /**< HTTP/2: requests of a connection at one time [100]; more are refused */
	unsigned connections;  /**< connections that are open at one time [as many as descriptors allow]; more wait to
				    be accepted */
	uint64_t header_time;  /**< from a request's first byte to the end of its head [10 s]; late: 408 */
	uint64_t body_time;    /**< between two pieces of a body [10 s]; late: 408 */
	uint64_t idle_time;    /**< between two requests [60 s]; the connection is closed */
	uint64_t write_time;   /**< until the peer accepts 64 KiB of a response [30 s]; the connection is closed */
	const char *name;      /**< a Server field; NULL: none. Must stay in place */
	weft_task_attr_t task; /**< attributes of the connections' tasks */
	weft_http_log_t *log;  /**< called after each exchange, in the connection's task; must not suspend for long */
	void *log_context;
	unsigned flags; /**< WEFT_HTTP_TIMING */
} weft_http_config_t;

/** Flags of weft_http_config_t. */
enum { WEFT_HTTP_TIMING = 1 /**< each response has a Server-Timing field: the time until it began */ };

/** Make a server. @param config  NULL: the defaults; only read during the call
 * @return 0, and the caller must close *server by weft_http_close; -ENOMEM; -EINVAL: an unknown flag. Does not wait. */
WEFT_API int weft_http_open(weft_http_server_t **server, const weft_http_config_t *config);

/** Free a server. It must not serve a listener, nor have a connection (see weft_http_stop). NULL: nothing is done. */
WEFT_API void weft_http_close(weft_http_server_t *server);

/**
 * Add a route. Not thread-safe: call it before the server serves.
 * @param pattern  a method, a space, and a path: "GET /users/:id", "POST /files/" followed by "*rest". A part that
 *                 begins with ':' stands for one part of a path; a last part that begins with '*', for the whole rest.
 *                 "*" as the method stands for every method. A GET route also answers HEAD, without a body
 * The first matching route is used. A path without a route is answered with 404; a path that has routes for other
 * methods with 405, and OPTIONS with 204, both with Allow.
 * @return 0; -EINVAL: no such pattern; -ENOMEM
 */
WEFT_API int weft_http_route(weft_http_server_t *server, const char *pattern, weft_http_handler_t *handler,
			     void *context);

/**
 * Serve the files of a directory below a path: "/static/" and "/srv/www". GET and HEAD; ranges, conditional requests
 * (ETag, Last-Modified), "file.br", "file.zst" and "file.gz" beside "file" for clients that accept them, "index.html"
 * for a directory. No file outside of the directory is served: neither by "..", nor through a symbolic link. Hidden
 * files (".name") are not served. Not thread-safe: call it before the server serves. The files are read from the real
 * system, also in a simulation, where they cannot be sent.
 * @return 0; -ENOENT, -ENOTDIR, -EACCES, …: the directory; -EINVAL: the prefix does not begin and end with "/"; -ENOMEM
 */
WEFT_API int weft_http_files(weft_http_server_t *server, const char *prefix, const char *directory);

/**
 * Accept connections, and serve each in a task of its own, until weft_http_stop. Several tasks may serve several
 * listeners. If descriptors or memory run out, the call waits until there are some. The caller owns the listener.
 * @param listener  made by weft_listen, or inherited
 * @return 0: stopped; -EBADF, -EINVAL, -ENOTSOCK: it is no listener; -ECANCELED: a scope of the caller was cancelled,
 *   or the listener closed; -EPERM: the caller is no task
 */
WEFT_API int weft_http_serve(weft_http_server_t *server, int listener);

/** Like weft_http_serve, for connections by TLS. A client must complete its handshake in config.header_time; a client
 * that speaks plain HTTP is answered with 400.
 * @param tls  from weft_http_tls_open; must stay open until the server is closed
 * @return also -EINVAL: `tls` is from weft_http_tls_client_open */
WEFT_API int weft_http_serve_tls(weft_http_server_t *server, int listener, weft_http_tls_t *tls);

/** Serve one connection in the calling task, and close `fd`. Returns when it has ended. */
WEFT_API void weft_http_serve_connection(weft_http_server_t *server, int fd);

/**
 * Stop the server. It accepts no more connections and closes idle connections. Requests that have begun are answered,
 * with "Connection: close"; a client of HTTP/2 gets GOAWAY twice. After the deadline (of weft_now()) the remaining
 * requests are cancelled: waits of handlers return -ECANCELED. Returns when no connection is left. Any task may call
 * it; several calls are allowed.
 * @return 0: all requests were answered; -ETIMEDOUT: some requests were cancelled
 */
WEFT_API int weft_http_stop(weft_http_server_t *server, uint64_t deadline);

/** The counters of a server. */
typedef struct weft_http_counters {
	uint64_t connections;	 /**< open connections */
	uint64_t accepted;	 /**< accepted connections since the beginning */
	uint64_t statuses[6];	 /**< responses with 1xx (index 1) to 5xx; 0: connections lost before a response */
	uint64_t received, sent; /**< bytes, heads included */
} weft_http_stats_t;

/** Get the counters. Thread-safe; does not wait. Counters that change meanwhile may be of slightly different times. */
WEFT_API void weft_http_stats(const weft_http_server_t *server, weft_http_stats_t *stats);

/** A log function: one line for each exchange, in the common log format, to the FILE that is its context. */
WEFT_API void weft_http_log_common(const weft_http_entry_t *entry, void *file);
/** A log function: one JSON object for each exchange, to the FILE that is its context. */
WEFT_API void weft_http_log_json(const weft_http_entry_t *entry, void *file);

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/**
 * Open the certificate of a server. TLS 1.2 and 1.3, with ciphers that give forward secrecy; clients resume sessions by
 * tickets.
 * @param certificate  a PEM file: the server's certificate, followed by the chain of certificates up to its authority
 * @param key          a PEM file: its key, without a passphrase
 * @param why          written: the reason by OpenSSL if the call fails, a text that stays valid; NULL: the result is
 *                     the reason, or the call has not failed. May be NULL
 * @return 0, and the caller must close *tls by weft_http_tls_close; -ENOENT, -EACCES, …: one of the files; -EINVAL: it
 *   is malformed, or the key does not fit; -ENOTSUP: libssl.so.3 is not installed, or was not when this library was
 *   built; -ENOMEM
 * A helper thread reads the files, so a task is suspended. Thread-safe, on any stack.
 */
WEFT_API int weft_http_tls_open(weft_http_tls_t **tls, const char *certificate, const char *key, const char **why);

/**
 * Open the authorities that a client trusts. In all other respects like weft_http_tls_open.
 * @param authorities  a PEM file of certificates; NULL: the authorities of the system
 */
WEFT_API int weft_http_tls_client_open(weft_http_tls_t **tls, const char *authorities, const char **why);

/** Read the files again, as weft_http_tls_open does. Open connections are not affected; if the call fails, new
 * connections use the earlier certificate. It also makes new keys for session tickets, so a server does this from time
 * to time. Thread-safe, also while servers and clients use `tls`. */
WEFT_API int weft_http_tls_reload(weft_http_tls_t *tls, const char **why);

/** Returns OpenSSL's reason for the last failed handshake: "certificate has expired"; "": none has failed. The text
 * stays valid. Thread-safe; does not wait. */
WEFT_API const char *weft_http_tls_why(const weft_http_tls_t *tls);

/** Close it. No server, client or connection may use it any more. NULL: nothing is done. Does not wait. */
WEFT_API void weft_http_tls_close(weft_http_tls_t *tls);

/* ---- the request ------------------------------------------------------------------------------------------------- */

/** Returns the method, such as "GET", with a zero at its end. */
WEFT_API const char *weft_http_method(const weft_http_t *http);
/** Return the target as received, and its decoded path: "/a%20b?x=1" and "/a b". A path has no "." and ".." parts. */
WEFT_API weft_http_text_t weft_http_target(const weft_http_t *http);
WEFT_API weft_http_text_t weft_http_path(const weft_http_t *http);
/** Returns the query after the "?", not decoded; none if there is no "?". */
WEFT_API weft_http_text_t weft_http_query(const weft_http_t *http);
/**
 * Get a parameter of the query, decoded ("+" is a space).
 * @param value, size  written, with a zero at its end
 * @return its length; -ENOENT: there is no such parameter; -ENOSPC: `size` is too small; -EINVAL: malformed
 */
WEFT_API ssize_t weft_http_query_value(const weft_http_t *http, const char *name, char *value, size_t size);
/** Returns a part of the path that the route's pattern names; none if the pattern has no such name. */
WEFT_API weft_http_text_t weft_http_param(const weft_http_t *http, const char *name);
/** Returns a header field by its name, in any case; the first if there are several; none if there is no such field. */
WEFT_API weft_http_text_t weft_http_header(const weft_http_t *http, const char *name);
/** Get the field number `index`, counted from 0. @return false: there is no such field */
WEFT_API bool weft_http_header_at(const weft_http_t *http, unsigned index, weft_http_text_t *name,
				  weft_http_text_t *value);
/** Returns a trailer field by its name, after weft_http_read has returned 0. */
WEFT_API weft_http_text_t weft_http_trailer(const weft_http_t *http, const char *name);
/** Returns the HTTP version: 10, 11 or 20. */
WEFT_API unsigned weft_http_version(const weft_http_t *http);
WEFT_API const weft_address_t *weft_http_peer(const weft_http_t *http);
/** True: the request arrived by TLS. */
WEFT_API bool weft_http_is_secure(const weft_http_t *http);

/**
 * A case of weft_select that is done when the client does not wait for the response any more: it has closed the
 * connection or, in HTTP/2, reset the stream. It stays done.
 *
 *   weft_readiness_t ready;
 *   weft_case_t cases[] = {{.chan = updates, .receive = &update}, weft_http_gone(http, &ready)};
 *   if (weft_select(cases, 2) == 1)
 *           return;
 *
 * In HTTP/1.1 a client that has only ended its sending (shutdown) looks the same, and may still read: so a handler that
 * has an answer should send it. The case then waits on the descriptor, and the select fails as weft_readiness says.
 * @param ready  memory for the case, which must stay as long as the case is used
 */
WEFT_API weft_case_t weft_http_gone(weft_http_t *http, weft_readiness_t *ready);

/**
 * Read the body. Waits for data; sends "100 Continue" first if the client requested it.
 * @return bytes; 0: the end; -EFBIG: longer than the limit (the answer is 413 unless the handler replies otherwise);
 *   -EBADMSG: malformed (400); -ETIMEDOUT (408); -ECONNRESET: the client disconnected, or reset the stream; -ECANCELED
 */
WEFT_API ssize_t weft_http_read(weft_http_t *http, void *data, size_t length);
/** Read the whole body, if it fits. @return its length; -EMSGSIZE: it does not fit, `length` bytes were read; or as
 * weft_http_read */
WEFT_API ssize_t weft_http_read_all(weft_http_t *http, void *data, size_t length);

/* ---- the response ------------------------------------------------------------------------------------------------ */

/**
 * Send the whole response, in one call.
 * @param status  200 to 599
 * @param type    Content-Type; NULL: none
 * @return 0; -EALREADY: a response has begun; -EINVAL: no such status, or a type with control characters; -EPIPE,
 *   -ECONNRESET, -ETIMEDOUT, -ECANCELED: the client cannot be reached, and the connection closes after the handler
 */
WEFT_API int weft_http_reply(weft_http_t *http, int status, const char *type, const void *data, size_t length);

/** Set the status of a response that weft_http_write begins [200]. @return 0; -EALREADY; -EINVAL */
WEFT_API int weft_http_set_status(weft_http_t *http, int status);
/**
 * Add a header field. The library itself sends Content-Length, Transfer-Encoding, Connection and Date. HTTP/2 leaves
 * out Keep-Alive, Proxy-Connection and Upgrade, which that version does not have.
 * @return 0; -EALREADY: the response has begun; -EINVAL: the name is no token, the value has control characters, or the
 *   library sends this field; -ENOMEM
 */
WEFT_API int weft_http_add_header(weft_http_t *http, const char *name, const char *value);
/** Set the length of the body. Without this call a body that fits the buffer has a length, and a longer body is sent in
 * chunks.
 * @return 0; -EALREADY; -EINVAL: 10^12 bytes or more */
WEFT_API int weft_http_set_length(weft_http_t *http, uint64_t length);
/**
 * Write a piece of the body. It is sent when the buffer is full, when the handler returns, or by weft_http_flush. Waits
 * while the client does not read.
 * @return `length`; -EMSGSIZE: more than weft_http_set_length said; -EPIPE, … as weft_http_reply
 */
WEFT_API ssize_t weft_http_write(weft_http_t *http, const void *data, size_t length);
/** Like weft_http_write, with a format of printf. @return bytes, or a negative errno */
WEFT_API ssize_t weft_http_printf(weft_http_t *http, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Send the data that has been written. Begins the response. @return 0 or as weft_http_reply */
WEFT_API int weft_http_flush(weft_http_t *http);
/**
 * Send a part of a file as the rest of the body, by sendfile if the connection allows that.
 * @param fd  owned by the caller
 * @return 0; -EALREADY: chunks have begun; -EMSGSIZE: more than weft_http_set_length said; -EIO: the file is shorter;
 *   or as weft_http_reply
 */
WEFT_API int weft_http_send_file(weft_http_t *http, int fd, uint64_t offset, uint64_t length);
/** Add a trailer field, after a body that is sent in chunks, or by HTTP/2; with other bodies it is ignored.
 * @return as weft_http_add_header */
WEFT_API int weft_http_add_trailer(weft_http_t *http, const char *name, const char *value);
/**
 * Send an informational response now (for example 103), with the fields that were added so far, which are then cleared.
 * @return 0, also if the client is HTTP/1.0 and must not get informational responses; -EINVAL: not 102 to 199;
 *   -EALREADY
 */
WEFT_API int weft_http_inform(weft_http_t *http, int status);
/**
 * Send a server-sent event, and flush. The first event begins the response, as text/event-stream.
 * @param event, id  NULL: none. @param data  each of its lines becomes a data line; NULL: ""
 * @return 0; -EINVAL: a line break in `event` or `id`; or as weft_http_reply
 */
WEFT_API int weft_http_event(weft_http_t *http, const char *event, const char *id, const char *data);
/** Close the connection after this response. HTTP/2: when all requests that the client has sent are answered. */
WEFT_API void weft_http_set_close(weft_http_t *http);
/** Returns the text of a status, such as "Not Found"; "" if the status has no text. */
WEFT_API const char *weft_http_status_text(int status);

WEFT_EXTERN_C_END

#endif
