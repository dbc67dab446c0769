/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/http_client.h: a client for HTTP/1.1 and HTTP/2. It has a header of its own, because a program that serves needs
 * none of it.
 *
 *   static void *print(void *client)
 *   {
 *           char text[65536];
 *           int status;
 *           ssize_t n = weft_http_get(client, "http://example.org/", text, sizeof text, &status);
 *
 *           if (n >= 0)
 *                   printf("%d: %.*s\n", status, (int)n, text);
 *           return NULL;
 *   }
 *
 * Design
 *  1. A client is a pool of connections that any number of tasks and threads share. A request borrows a connection, and
 *     may use several, one after another (a redirect, a second attempt): the interface does not show them.
 *  2. An idle connection of the pool holds no buffers. The connection that has been idle for the shortest time is taken
 *     first. Whether the server has closed it is checked before it is used.
 *  3. A server may close an idle connection at the moment when a request is sent. If no byte of a response has come, a
 *     request with an idempotent method (RFC 9110, 9.2.2) whose body can be sent again is sent once more, on a new
 *     connection. So is a request with any method that an HTTP/2 server has certainly not processed (REFUSED_STREAM,
 *     or GOAWAY with a smaller stream). If the server refuses the second attempt too, or the body cannot be sent again,
 *     the result is -EAGAIN: the client does not try any further, and the caller should wait before it does. An
 *     idempotent request that a server resets by HTTP_1_1_REQUIRED is sent again by HTTP/1.1, and so are all later
 *     requests to that origin; a client remembers 1000 origins. With another method, or a body that cannot be sent
 *     again, the result is -ECONNRESET, because that code is no promise that the request was not processed. Other
 *     requests fail.
 *  4. At most `host_connections` connections to one origin are open, and `connections` to all. Requests that need one
 *     wait in the order of their arrival.
 *  5. A response that two parsers could read in two ways is an error (-EBADMSG), and its connection is closed: bare CR
 *     or LF, folded lines, several or malformed lengths, Transfer-Encoding beside Content-Length or in HTTP/1.0, bytes
 *     behind the end of the response.
 *  6. Redirects are followed as RFC 9110, 15.4 says: 303 makes the method GET, so do 301 and 302 after POST; 307 and
 *     308 keep the method and the body. Another origin gets no Authorization, Cookie, Host, Origin, Proxy-Authorization
 *     and Referer field. A redirect that cannot be followed (no Location, a scheme that is not HTTP, a body that cannot
 *     be sent again) is the response.
 *  7. Bodies are not decoded: a Content-Encoding (gzip) is left to the caller. A transfer coding other than "chunked"
 *     is an error, -EBADMSG. Not in this library yet: proxies.
 *  8. HTTP/2 is offered to servers of "https:" (ALPN) if nghttp2 can be loaded, and spoken to servers of "http:" with
 *     WEFT_HTTP_PRIOR_KNOWLEDGE. All functions are the same for both versions. Requests share a connection of HTTP/2,
 *     up to `streams` and the server's own limit; then another connection is opened. A host that may speak HTTP/2 is
 *     dialed by one request at a time. The request that waits, and finds that no other does, receives for all that
 *     share its connection. A request that is closed in the middle resets its stream, and the connection stays open.
 *     A caller that does not read its response does not delay other requests; at most 256 KiB of it are received.
 *  9. The limits count for each stream. A server that breaks the rules of a connection, floods it with frames that do
 *     nothing (500 at once, 100 a second), sends more CONTINUATION frames than `header_bytes` needs, or pushes, gets
 *     GOAWAY: the client ends the connection, and its requests fail with -EBADMSG.
 *
 * Link with weft::http, or pkg-config weft-http. Functions suspend the calling task, or block the calling thread, only
 * if their comments say "Waits"; the other functions do so at most while another caller holds a lock of the client. All
 * may be called on any stack; none in a signal handler. Functions that take a weft_http_client_t are thread-safe; a
 * weft_http_request_t is for one task or thread at a time. In addition to their own errors, functions that wait return
 *   -ETIMEDOUT   a time of the configuration, or the request's deadline, has passed
 *   -ECANCELED   as all functions of weft/io.h
 *   -ECONNREFUSED, -EHOSTUNREACH, -ENOENT (no such name), …  there is no connection: see weft_dial
 *   -ECONNRESET  the server closed the connection, or reset the stream, before its response was complete
 *   -EAGAIN      HTTP/2: the server has refused the request, and not processed it; any method may be tried again later
 *   -EBADMSG     a malformed response; HTTP/2: also another breach of the protocol
 *   -EMSGSIZE    a head, or a trailer, over the limits of the configuration
 *   -EKEYREJECTED, -EPROTO  TLS: the certificate is not for this server, or not trusted; no version or cipher in common
 *   -ENOTSUP     the URL begins with "https:", and OpenSSL 3 is not installed; or WEFT_HTTP_PRIOR_KNOWLEDGE is set, and
 *                nghttp2 is not installed
 *   -ENOMEM
 *
 * Source of the ideas: a shared pool, a second attempt on a new connection, and a shared connection of HTTP/2, Go's
 * net/http.
 */
#ifndef WEFT_HTTP_CLIENT_H
#define WEFT_HTTP_CLIENT_H

#include <weft/http.h>

WEFT_EXTERN_C_BEGIN

typedef struct weft_http_client weft_http_client_t;
/** A request, and the response to it. */
typedef struct weft_http_request weft_http_request_t;

/* ---- the client -------------------------------------------------------------------------------------------------- */

/** Zero-initialised: the defaults in brackets. Times in nanoseconds; WEFT_NEVER: none. */
typedef struct weft_http_client_config {
	unsigned connections;	   /**< open connections at one time [256] */
	unsigned host_connections; /**< open connections to one origin [16] */
	unsigned streams;	   /**< HTTP/2: requests that share a connection [100]; the server may allow fewer */
	unsigned redirects;	   /**< redirects that a request follows [10]; more: -ELOOP */
	unsigned headers;	   /**< header fields of a response [100] */
	size_t header_bytes;	   /**< bytes of a response's head, and of its trailer [64 KiB] */
	uint64_t body;		   /**< bytes of a response's body [WEFT_NEVER: no limit]; more: -EFBIG */
	uint64_t wait_time;	   /**< the wait for a connection while all allowed connections are in use [30 s] */
	uint64_t connect_time;	/**< until the server has accepted the connection; HTTP/2: sent its SETTINGS [10 s] */
	uint64_t header_time;	/**< from the end of the request to the end of the response's head [30 s] */
	uint64_t read_time;	/**< between two pieces of a response's body [30 s] */
	uint64_t write_time;	/**< until the server accepts a piece of a request [30 s] */
	uint64_t idle_time;	/**< after this time an idle connection is not used again [60 s] */
	uint64_t continue_time; /**< the wait for "100 Continue" with WEFT_HTTP_EXPECT [1 s] */
	weft_http_tls_t *tls;	/**< from weft_http_tls_client_open, for https; owned by the caller. NULL: the
				     authorities of the system */
	const char *user_agent; /**< a User-Agent field; NULL: none. Must stay in place */
	unsigned flags;		/**< for all requests: WEFT_HTTP_NO_REDIRECTS, WEFT_HTTP_EXPECT; for the client:
				     WEFT_HTTP_PRIOR_KNOWLEDGE, WEFT_HTTP_ONLY_1 */
} weft_http_client_config_t;

/** Flags of weft_http_client_config_t. */
enum {
	WEFT_HTTP_NO_REDIRECTS = 1,    /**< a redirect is returned as the response */
	WEFT_HTTP_EXPECT = 2,	       /**< a body waits for "100 Continue", or config.continue_time */
	WEFT_HTTP_PRIOR_KNOWLEDGE = 4, /**< HTTP/2 is spoken to servers of "http:" */
	WEFT_HTTP_ONLY_1 = 8,	       /**< HTTP/2 is not offered to servers of "https:" */
};

/** Make a client. It belongs to no runtime. @param config  NULL: the defaults; only read during the call
 * @return 0, and the caller must close *client; -ENOMEM; -EINVAL: an unknown flag, or a user agent with control
 *   characters */
WEFT_API int weft_http_client_open(weft_http_client_t **client, const weft_http_client_config_t *config);

/** Close idle connections, and free the client. NULL: nothing.
 * @return 0; -EBUSY: a request is open, and nothing is done */
WEFT_API int weft_http_client_close(weft_http_client_t *client);

/** Close the idle connections. The next request also closes connections whose idle_time has passed, but nothing else
 * does: a client has no task of its own. */
WEFT_API void weft_http_client_close_idle(weft_http_client_t *client);

/** The counters of a client. */
typedef struct weft_http_client_counters {
	uint64_t requests;   /**< requests that were sent, redirects and second attempts included */
	uint64_t dialed;     /**< connections that were opened */
	uint64_t repeated;   /**< second attempts */
	unsigned open, idle; /**< connections now */
} weft_http_client_stats_t;

/** Read the counters of a client into *stats. Thread-safe. May suspend until the client's lock is free, which
 * cancellation does not end. */
WEFT_API void weft_http_client_stats(weft_http_client_t *client, weft_http_client_stats_t *stats);

/**
 * Send a GET request, and read the whole body of the response. Waits.
 * @param data, size  written: the body. No zero is added
 * @param status      written: the status of the response, after redirects; NULL: not wanted
 * @return the length of the body; -EFBIG: it is longer than `size`; -EINVAL: no such URL; or an error as above
 */
WEFT_API ssize_t weft_http_get(weft_http_client_t *client, const char *url, void *data, size_t size, int *status);

/** Like weft_http_get, by POST. Waits. @param type  Content-Type; NULL: none. @param body, length  the body of the
 * request */
WEFT_API ssize_t weft_http_post(weft_http_client_t *client, const char *url, const char *type, const void *body,
				size_t length, void *data, size_t size, int *status);

/* ---- a request --------------------------------------------------------------------------------------------------- */

/**
 * Prepare a request. Nothing is sent before weft_http_request_write or weft_http_response.
 * @param method  a token, such as "GET"; copied. CONNECT is not supported
 * @param url     "http://host:port/path?query"; copied. A fragment is not sent. Spaces, control characters, bytes above
 *                126 and user names are -EINVAL: percent-encode them
 * @return 0, and the caller must close *request: weft_defer(weft_http_request_close, request) does it, even if the task
 *   ends in a wait; -EINVAL; -ENOMEM
 */
WEFT_API int weft_http_request_open(weft_http_client_t *client, const char *method, const char *url,
				    weft_http_request_t **request);

/**
 * Close a request at any point. If its response was read to the end, and the whole request was sent, the connection
 * returns to the pool; else it is closed, or with HTTP/2 the stream is reset. NULL: nothing is done. Does not wait.
 */
WEFT_API void weft_http_request_close(weft_http_request_t *request);

/**
 * Add a header field. The library itself sends Content-Length, Transfer-Encoding, Connection, Expect, Keep-Alive, TE,
 * Trailer and Upgrade. Host is taken from the URL unless it is added.
 * @return 0; -EALREADY: the request was sent; -EINVAL: the name is no token, the value has control characters, or the
 *   library sends this field; -ENOMEM
 */
WEFT_API int weft_http_request_add_header(weft_http_request_t *request, const char *name, const char *value);

/** Set a body in memory, which can be sent again. @param data  must stay until the request is closed
 * @return 0; -EALREADY: the request was sent */
WEFT_API int weft_http_request_set_body(weft_http_request_t *request, const void *data, size_t length);

/** Set the length of the body that weft_http_request_write will send; without this call it is sent in chunks.
 * @return 0; -EALREADY; -EINVAL: there is a body in memory */
WEFT_API int weft_http_request_set_length(weft_http_request_t *request, uint64_t length);

/** Set the flags WEFT_HTTP_NO_REDIRECTS and WEFT_HTTP_EXPECT in place of the client's. @return 0; -EALREADY; -EINVAL:
 * unknown flags */
WEFT_API int weft_http_request_set_flags(weft_http_request_t *request, unsigned flags);

/** Set a time of weft_now() at which every wait of this request ends; WEFT_NEVER: none. May be called at any time. */
WEFT_API void weft_http_request_set_deadline(weft_http_request_t *request, uint64_t deadline);

/** The library calls this function for each 1xx response; in the call weft_http_response_header returns its fields.
 * Without it 1xx responses are skipped. */
typedef void weft_http_inform_t(weft_http_request_t *request, int status, void *context);
WEFT_API void weft_http_request_on_inform(weft_http_request_t *request, weft_http_inform_t *inform, void *context);

/**
 * Send a piece of the body; the first call connects, and sends the head. Waits while the server does not read, unless
 * the server answers: then the call returns, and the caller should read the response. After that it may continue to
 * write, beginning with the bytes that were not sent, or close the request.
 * @return bytes; fewer than `length`: the head of the response has arrived (weft_http_response does not wait), and the
 *   server does not read now; -EMSGSIZE: more than weft_http_request_set_length said; -EINVAL: a body in memory was
 *   set; -EALREADY: the body is complete; -EPIPE: the server has closed the connection without a response; or as above
 */
WEFT_API ssize_t weft_http_request_write(weft_http_request_t *request, const void *data, size_t length);

/** Complete the body. Not needed for a body with a length, or in memory. Waits.
 * @return 0; -EINPROGRESS: less than weft_http_request_set_length said; or a piece is not completely sent, or the
 *   server does not read, and its response has arrived; or as weft_http_request_write */
WEFT_API int weft_http_request_finish(weft_http_request_t *request);

/* ---- the response ------------------------------------------------------------------------------------------------ */

/**
 * Wait for the head of the response. Sends the request first, if it has no body, or a body in memory; follows
 * redirects.
 * @return its status; -EINPROGRESS: a body was begun, and is not finished; -ELOOP: too many redirects; or as above. A
 *   second call returns the same result
 */
WEFT_API int weft_http_response(weft_http_request_t *request);

/** Returns a header field by its name, in any case; the first if there are several. Valid until the request is
 * closed. */
WEFT_API weft_http_text_t weft_http_response_header(const weft_http_request_t *request, const char *name);
/** Get the field number `index`, counted from 0. @return false: there is no such field */
WEFT_API bool weft_http_response_header_at(const weft_http_request_t *request, unsigned index, weft_http_text_t *name,
					   weft_http_text_t *value);
/** Get trailer fields, after weft_http_response_read has returned 0. */
WEFT_API weft_http_text_t weft_http_response_trailer(const weft_http_request_t *request, const char *name);
WEFT_API bool weft_http_response_trailer_at(const weft_http_request_t *request, unsigned index, weft_http_text_t *name,
					    weft_http_text_t *value);
/** Returns the HTTP version: 10, 11 or 20. */
WEFT_API unsigned weft_http_response_version(const weft_http_request_t *request);
/** Returns the length of the body that the head announces; WEFT_NEVER: it announces none. */
WEFT_API uint64_t weft_http_response_length(const weft_http_request_t *request);
/** Returns the URL of the response, after redirects. Valid until the request is closed. */
WEFT_API const char *weft_http_response_url(const weft_http_request_t *request);

/** Read the body. Waits. @return bytes; 0: the end; -EFBIG: longer than config.body; -EINPROGRESS: weft_http_response
 * has not returned a status; or as above */
WEFT_API ssize_t weft_http_response_read(weft_http_request_t *request, void *data, size_t length);
/** Read the whole body, if it fits. Waits. @return its length; -EFBIG: it does not fit; or as
 * weft_http_response_read */
WEFT_API ssize_t weft_http_response_read_all(weft_http_request_t *request, void *data, size_t length);

/* ---- URLs -------------------------------------------------------------------------------------------------------- */

/**
 * Resolve a reference ("../a?b", "//host/", "?q", "http://…") against the URL of the page that has it: RFC 3986, 5.
 * @param base  an http or https URL
 * @param url   written, with a zero at its end, without a fragment
 * @return its length; -EINVAL: malformed, or the result is no http or https URL; -ENOSPC: `size` is too small
 */
WEFT_API ssize_t weft_http_resolve_url(const char *base, const char *reference, char *url, size_t size);

WEFT_EXTERN_C_END

#endif
