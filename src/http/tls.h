/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TLS streams, by OpenSSL 3. Without OpenSSL nobody can make a weft_http_tls_t, and none of these functions is called.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <weft/http.h>

#include "http/stream.h"

/*
 * The handshake of either side. *s becomes a stream of `fd`. If the handshake fails it is a plain one, which the caller
 * closes; also if the task is cancelled by an exception, weft__stream_close(s) frees everything.
 *
 *   alpn  protocols in order of preference, "h2,http/1.1"; a literal: it must outlive the stream
 *   host  the server's name or address, without a port and brackets; the certificate must be for it
 *
 * 0, or a negative errno. weft_http_tls_why says more.
 *   -ETIMEDOUT     the deadline has passed
 *   -ECONNRESET    the peer has closed the connection
 *   -EPROTO        the peer does not speak TLS, has no version, cipher or protocol that this side has, or refuses
 *   -EPROTONOSUPPORT  the client speaks HTTP without TLS
 *   -EKEYREJECTED  the server's certificate is not trusted, has expired, or is for another name
 *   -EINVAL        `tls` is for the other side; `host` is no name
 *   -ENOMEM, -ECANCELED
 */
int weft__tls_accept(struct stream *s, int fd, weft_http_tls_t *tls, const char *alpn, uint64_t deadline);
int weft__tls_connect(struct stream *s, int fd, weft_http_tls_t *tls, const char *host, const char *alpn,
		      uint64_t deadline);

bool weft__tls_is_server(const weft_http_tls_t *tls);

/* The protocol that both sides have chosen: "h2", "http/1.1"; "": none, or the stream is a plain one. */
const char *weft__tls_alpn(const struct stream *s);

#endif
