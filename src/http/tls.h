/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TLS streams, by OpenSSL 3. Without OpenSSL a weft_http_tls_t cannot be made, so none of these functions is called.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <weft/http.h>

#include "http/stream.h"

/*
 * The handshake of either side. *s becomes a TLS stream of `fd`. If the handshake fails it is a plain stream, which the
 * caller closes; if an exception cancels the task, weft__stream_close(s) still frees everything.
 *
 *   alpn  protocols in order of preference, "h2,http/1.1"; a literal: it must outlive the stream
 *   host  the server's name or address, without a port and brackets; the certificate must be for it
 *
 * 0, or a negative errno. weft_http_tls_why has the details.
 *   -ETIMEDOUT     the deadline has passed
 *   -ECONNRESET    the peer has closed the connection
 *   -EPROTO        the peer does not speak TLS, refuses, or shares no version, cipher or protocol with this side
 *   -EPROTONOSUPPORT  the client speaks HTTP without TLS
 *   -EKEYREJECTED  the server's certificate is not trusted, has expired, or is for another name
 *   -EINVAL        `tls` is for the other side; `host` is not a name
 *   -ENOMEM, -ECANCELED
 */
int weft__tls_accept(struct stream *s, int fd, weft_http_tls_t *tls, const char *alpn, uint64_t deadline);
int weft__tls_connect(struct stream *s, int fd, weft_http_tls_t *tls, const char *host, const char *alpn,
		      uint64_t deadline);

bool weft__tls_is_server(const weft_http_tls_t *tls);

/* The negotiated protocol: "h2", "http/1.1"; "": none, or the stream is plain. */
const char *weft__tls_alpn(const struct stream *s);

#endif
