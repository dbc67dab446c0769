/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TLS streams against OpenSSL's own blocking client and server, which run on threads.
 *
 *   tls [NAME]            all tests, or one, by the back end that WEFT_IO names
 *   tls simulated SEEDS   our client and our server in so many simulated worlds
 *   tls refused EVERY     for a while, every n-th memory request of the workers is refused
 */
#define _GNU_SOURCE
#include "handlers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <weft/http.h>

#include "certificates.h"
#include "http/tls.h"

enum {
	PIECE = 40000,	    /* the most bytes in one call */
	ECHOES = 60,	    /* pieces that a connection echoes */
	DUPLEX = 3000000,   /* bytes in each direction at the same time */
	SMALL = 200000,	    /* like DUPLEX, in a simulation */
	CROWD = 200,	    /* concurrent clients */
	UPDATES = 20000,    /* key updates of a hostile client */
	HEADER_TIME = 1500, /* milliseconds */
};

static struct {
	weft_http_tls_t *tls, *trusting; /* the server's context, and a client's context that trusts "ca.pem" */
	unsigned echo_port, duplex_port, http_port;
	weft_http_server_t *server;
	SSL_CTX *contexts[2]; /* of clients: TLS 1.2, TLS 1.3 */
	struct identity authority;
	size_t duplex;
	_Atomic int seen; /* the result of the last read of a body */
	bool simulated;
} all;

/* ---- data -------------------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Byte number `at` of the stream that `seed` determines. */
static char byte_of(unsigned seed, size_t at)
{
	return (char)((at * 2654435761u + seed * 40503u) >> 13);
}

static void fill_bytes(char *data, size_t length, unsigned seed, size_t at)
{
	for (size_t i = 0; i < length; i++)
		data[i] = byte_of(seed, at + i);
}

static bool are_bytes(const char *data, size_t length, unsigned seed, size_t at)
{
	for (size_t i = 0; i < length; i++)
		if (data[i] != byte_of(seed, at + i))
			return false;
	return true;
}

/* ---- our servers ------------------------------------------------------------------------------------------------- */

typedef void serve_t(struct stream *s);

struct port {
	int listener;
	serve_t *serve;
};

struct guest {
	int fd;
	serve_t *serve;
};

static void close_stream(void *stream)
{
	weft__stream_close(stream);
}

static void *serves_guest(void *guest)
{
	struct guest g = *(struct guest *)guest;
	struct stream s = {.fd = g.fd};

	free(guest);
	weft_defer(close_stream, &s);
	if (!weft__tls_accept(&s, g.fd, all.tls, "h2,http/1.1", weft_now() + 100 * SECOND))
		g.serve(&s);
	return NULL;
}

static void *listens(void *port)
{
	const struct port *p = port;
	int fd;

	WEFT_SCOPE(scope);
	while ((fd = weft_accept(p->listener, NULL, NULL, 0)) >= 0) {
		struct guest *g = malloc(sizeof *g);

		CHECK(g);
		*g = (struct guest){fd, p->serve};
		if (weft_scope_spawn(&scope, serves_guest, g)) {
			free(g);
			weft_close(fd);
		}
	}
	return NULL;
}

/* Writes the data in several parts. */
static ssize_t write_parts(struct stream *s, const char *data, size_t length, uint32_t *state)
{
	struct iovec parts[6];
	size_t at = 0, part;
	int i;

	for (i = 0; i < 6; i++) {
		part = i < 5 ? next_random(state) % (length - at + 1) : length - at;
		parts[i] = (struct iovec){(void *)(uintptr_t)(data + at), part};
		at += part;
	}
	return weft__stream_writev(s, parts, 6, weft_now() + 100 * SECOND);
}

static void echo_stream(struct stream *s)
{
	char *data = malloc(PIECE);
	uint32_t state = 1;
	ssize_t n;

	CHECK(data);
	weft_defer(free, data);
	while ((n = weft__stream_read(s, data, 1 + next_random(&state) % PIECE, weft_now() + 100 * SECOND)) > 0)
		if (write_parts(s, data, (size_t)n, &state) != n)
			return;
	atomic_store(&all.seen, (int)n);
	if (!n)
		weft__stream_finish(s);
}

/* One task reads while another task writes. */
static void *sends_stream(void *stream)
{
	char data[5000];
	uint32_t state = 3;

	for (size_t at = 0, n; at < all.duplex; at += n) {
		n = 1 + next_random(&state) % sizeof data;
		if (n > all.duplex - at)
			n = all.duplex - at;
		fill_bytes(data, n, 1, at);
		if (weft__stream_write(stream, data, n, weft_now() + 100 * SECOND) != (ssize_t)n)
			return NULL;
	}
	return NULL;
}

static bool receive_stream(struct stream *s, unsigned seed)
{
	char data[7000];
	ssize_t n;

	for (size_t at = 0; at < all.duplex; at += (size_t)n) {
		n = weft__stream_read(s, data, sizeof data, weft_now() + 100 * SECOND);
		if (n <= 0 || !are_bytes(data, (size_t)n, seed, at))
			return false;
	}
	return true;
}

static void duplex(struct stream *s)
{
	char byte;

	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, sends_stream, s));
	CHECK(receive_stream(s, 2));
	CHECK(!weft_scope_wait(&scope));
	weft__stream_finish(s);
	/* A key update may follow the data, and closing with unread input would reset the connection. */
	(void)weft__stream_read(s, &byte, 1, weft_now() + 5 * SECOND);
}

static void says_how(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", weft_http_is_secure(http) ? "secure\n" : "plain\n", 7);
}

/* ---- OpenSSL's client -------------------------------------------------------------------------------------------- */

/* `buffer`: size of the kernel's buffer in each direction; 0: the kernel's default. */
static int dial_port_with(unsigned port, int buffer)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const struct timeval patience = {buffer ? 5 : 20, 0};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && (!buffer || !setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer)));
	CHECK(!buffer || !setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer));
	CHECK(!connect(fd, (struct sockaddr *)&address, sizeof address));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static int dial_port(unsigned port)
{
	return dial_port_with(port, 0);
}

static SSL *make_client_of(SSL_CTX *context, int fd)
{
	SSL *ssl = SSL_new(context);

	CHECK(ssl && SSL_set_fd(ssl, fd));
	CHECK(SSL_set_tlsext_host_name(ssl, "localhost") && SSL_set1_host(ssl, "localhost"));
	return ssl;
}

static SSL *make_client(SSL_CTX *context, unsigned port)
{
	return make_client_of(context, dial_port(port));
}

static SSL *dial_tls(SSL_CTX *context, unsigned port)
{
	SSL *ssl = make_client(context, port);

	CHECK(SSL_connect(ssl) == 1);
	return ssl;
}

static void drop(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	SSL_free(ssl);
	close(fd);
	ERR_clear_error();
}

/* Exchanges close_notify in both directions. */
static void end_orderly(SSL *ssl)
{
	char byte;

	CHECK(SSL_shutdown(ssl) >= 0);
	CHECK(SSL_read(ssl, &byte, 1) == 0 && SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN);
	drop(ssl);
}

static void send_text(SSL *ssl, const char *text)
{
	CHECK(SSL_write(ssl, text, (int)strlen(text)) == (int)strlen(text));
}

/* Returns false if the server has ended the connection before all bytes arrived. */
static bool get_bytes(SSL *ssl, char *data, size_t length)
{
	int n;

	for (size_t at = 0; at < length; at += (size_t)n) {
		n = SSL_read(ssl, data + at, (int)(length - at));
		if (n <= 0)
			return false;
	}
	return true;
}

/* Receives all data until the server sends close_notify. Returns NULL if it did not send that. */
static char *get_all(SSL *ssl)
{
	size_t length = 0;
	char *text = malloc(100000);
	int n;

	CHECK(text);
	while ((n = SSL_read(ssl, text + length, (int)(99999 - length))) > 0)
		length += (size_t)n;
	text[length] = 0;
	if (SSL_get_error(ssl, n) == SSL_ERROR_ZERO_RETURN)
		return text;
	free(text);
	return NULL;
}

static const char hello_request[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

static bool is_served(SSL *ssl)
{
	char *text;
	bool ok;

	send_text(ssl, hello_request);
	text = get_all(ssl);
	ok = text && !strncmp(text, "HTTP/1.1 200 ", 13) && strstr(text, "\r\n\r\nsecure\n");
	free(text);
	return ok;
}

static void others_are_served(void)
{
	SSL *ssl = dial_tls(all.contexts[1], all.http_port);

	CHECK(is_served(ssl));
	drop(ssl);
}

/* ---- tests with OpenSSL's client --------------------------------------------------------------------------------- */

static void update_key(SSL *ssl)
{
	if (SSL_version(ssl) == TLS1_3_VERSION)
		CHECK(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) && SSL_do_handshake(ssl) == 1);
}

static void echoes(SSL_CTX *context)
{
	static char data[PIECE], back[PIECE];
	SSL *ssl = dial_tls(context, all.echo_port);
	uint32_t state = 7;
	size_t at = 0, n;

	for (int i = 0; i < ECHOES; i++, at += n) {
		n = 1 + next_random(&state) % (i % 3 ? 300 : PIECE);
		fill_bytes(data, n, 5, at);
		if (i % 8 == 5)
			update_key(ssl);
		CHECK(SSL_write(ssl, data, (int)n) == (int)n);
		CHECK(get_bytes(ssl, back, n) && !memcmp(data, back, n));
	}
	end_orderly(ssl);
}

static void both_versions_echo(void)
{
	for (int i = 0; i < 2; i++) {
		echoes(all.contexts[i]);
		CHECK(atomic_load(&all.seen) == 0);
	}
}

static bool would_block(SSL *ssl, int n)
{
	int error = SSL_get_error(ssl, n);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* Both directions are full at the same time: neither task of the server may wait for its other task. */
static void both_directions_at_once(void)
{
	for (int v = 0; v < 2; v++) {
		SSL *ssl = dial_tls(all.contexts[v], all.duplex_port);
		char data[4000], back[4000];
		size_t sent = 0, got = 0, turn = 0;
		int n;

		SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		CHECK(!fcntl(SSL_get_fd(ssl), F_SETFL, O_NONBLOCK));
		while (sent < all.duplex || got < all.duplex) {
			struct pollfd ready = {SSL_get_fd(ssl), POLLIN | (sent < all.duplex ? POLLOUT : 0), 0};

			if (!SSL_pending(ssl))
				CHECK(poll(&ready, 1, 20000) == 1);
			if (++turn % 100 == 0 && v && sent < all.duplex)
				SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
			if (sent < all.duplex) {
				size_t part = all.duplex - sent < sizeof data ? all.duplex - sent : sizeof data;

				fill_bytes(data, part, 2, sent);
				n = SSL_write(ssl, data, (int)part);
				CHECK(n > 0 || would_block(ssl, n));
				sent += n > 0 ? (size_t)n : 0;
			}
			if (turn % 3) { /* the server writes more than this client reads */
				n = SSL_read(ssl, back, sizeof back);
				CHECK(n > 0 ? are_bytes(back, (size_t)n, 1, got)
					    : would_block(ssl, n) || SSL_get_shutdown(ssl));
				got += n > 0 ? (size_t)n : 0;
			}
		}
		drop(ssl);
	}
}

/* A client that does not read before it has sent all its data, while the server wants to send as much. */
static void a_reader_does_not_wait_for_the_writer(void)
{
	static char data[PIECE];

	for (int v = 0; v < 2; v++) {
		SSL *ssl = make_client_of(all.contexts[v], dial_port_with(all.duplex_port, 20000));
		size_t at, n;

		CHECK(SSL_connect(ssl) == 1);
		for (at = 0; at < all.duplex; at += n) {
			n = all.duplex - at < PIECE ? all.duplex - at : PIECE;
			fill_bytes(data, n, 2, at);
			CHECK(SSL_write(ssl, data, (int)n) == (int)n);
			update_key(ssl);
		}
		for (at = 0; at < all.duplex; at += n) {
			n = all.duplex - at < PIECE ? all.duplex - at : PIECE;
			CHECK(get_bytes(ssl, data, n) && are_bytes(data, n, 1, at));
		}
		end_orderly(ssl);
	}
}

static const char *chosen(SSL *ssl, char text[20])
{
	const unsigned char *name;
	unsigned length;

	SSL_get0_alpn_selected(ssl, &name, &length);
	snprintf(text, 20, "%.*s", (int)length, length ? (const char *)name : "");
	return text;
}

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#define WITH_HTTP2(with, without) with
#else
#define WITH_HTTP2(with, without) without
#endif

/* The client's offered protocols, and the protocol chosen at each port; NULL: the handshake fails. */
static void protocols(void)
{
	static const struct {
		const char *offered, *by_echo, *by_http;
	} cases[] = {{"\2h2\10http/1.1", "h2", WITH_HTTP2("h2", "http/1.1")},
		     {"\10http/1.1\2h2", "h2", WITH_HTTP2("h2", "http/1.1")},
		     {"\10http/1.1", "http/1.1", "http/1.1"},
		     {"\2h2", "h2", WITH_HTTP2("h2", NULL)},
		     {"\4spdy\10http/1.0", NULL, NULL},
		     {"", "", ""}};
	char text[20];

	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		const char *offered = cases[i / 2].offered,
			   *expected = i % 2 ? cases[i / 2].by_http : cases[i / 2].by_echo;
		SSL *ssl = make_client(all.contexts[i % 3 == 0], i % 2 ? all.http_port : all.echo_port);

		CHECK(!*offered || !SSL_set_alpn_protos(ssl, (const void *)offered, (unsigned)strlen(offered)));
		CHECK((SSL_connect(ssl) == 1) == (expected != NULL));
		CHECK(!expected || !strcmp(chosen(ssl, text), expected));
		drop(ssl);
	}
}

/* Gets a session from the server. */
static SSL_SESSION *get_session(SSL_CTX *context, SSL_SESSION *earlier, bool *reused)
{
	SSL *ssl = make_client(context, all.http_port);
	SSL_SESSION *session;

	CHECK(!earlier || SSL_set_session(ssl, earlier));
	CHECK(SSL_connect(ssl) == 1 && is_served(ssl));
	*reused = SSL_session_reused(ssl);
	session = SSL_get1_session(ssl);
	CHECK(SSL_shutdown(ssl) == 1); /* otherwise OpenSSL does not resume the session */
	drop(ssl);
	SSL_SESSION_free(earlier);
	return session;
}

static long serial_of_server(void)
{
	SSL *ssl = dial_tls(all.contexts[1], all.http_port);
	X509 *certificate = SSL_get1_peer_certificate(ssl);
	long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));

	X509_free(certificate);
	drop(ssl);
	return serial;
}

/* Tickets resume sessions until the certificate is reloaded. */
static void sessions_resume(void)
{
	long serial = serial_of_server();
	SSL_SESSION *sessions[2] = {NULL, NULL};
	const char *why;
	bool reused;

	for (int i = 0; i < 2; i++) {
		sessions[i] = get_session(all.contexts[i], NULL, &reused);
		CHECK(!reused);
		sessions[i] = get_session(all.contexts[i], sessions[i], &reused);
		CHECK(reused);
	}
	write_server(&all.authority, "server", "DNS:localhost,IP:127.0.0.1,DNS:*.example.org", 10);
	CHECK(serial_of_server() == serial);
	CHECK(!weft_http_tls_reload(all.tls, &why) && !why);
	CHECK(serial_of_server() > serial);
	for (int i = 0; i < 2; i++) {
		sessions[i] = get_session(all.contexts[i], sessions[i], &reused);
		CHECK(!reused);
		SSL_SESSION_free(sessions[i]);
	}
}

/* If a reload fails, the old certificate remains. */
static void reload_fails(void)
{
	const char *why = NULL;
	long serial = serial_of_server();

	CHECK(!rename("server.key", "server.moved"));
	CHECK(weft_http_tls_reload(all.tls, &why) == -ENOENT && !why);
	CHECK(!link("stranger.key", "server.key"));
	CHECK(weft_http_tls_reload(all.tls, &why) == -EINVAL && !strcmp(why, "key values mismatch"));
	CHECK(!rename("server.moved", "server.key"));
	CHECK(serial_of_server() == serial && !weft_http_tls_reload(all.tls, NULL));
}

static void old_versions_are_refused(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *ssl;

	SSL_CTX_set_security_level(context, 0);
	SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
	ssl = make_client(context, all.http_port);
	CHECK(SSL_connect(ssl) != 1 && ERR_GET_REASON(ERR_peek_error()) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
	drop(ssl);
	SSL_CTX_free(context);
	CHECK(!strcmp(weft_http_tls_why(all.tls), "unsupported protocol"));
}

static void renegotiation_is_refused(void)
{
	SSL *ssl = dial_tls(all.contexts[0], all.http_port);
	char byte;

	CHECK(SSL_renegotiate(ssl));
	CHECK(SSL_do_handshake(ssl) != 1 || SSL_read(ssl, &byte, 1) <= 0);
	CHECK(ERR_GET_REASON(ERR_peek_error()) == SSL_R_NO_RENEGOTIATION);
	drop(ssl);
	others_are_served();
}

/* Receives the server's answer without TLS, which ends with the connection. */
static void get_plain(int fd, char *text, size_t size)
{
	size_t length = 0;
	ssize_t n;

	while (length < size - 1 && (n = recv(fd, text + length, size - 1 - length, 0)) > 0)
		length += (size_t)n;
	text[length] = 0;
}

static void plain_requests_are_refused(void)
{
	static const char *const requests[] = {hello_request,
					       "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na",
					       "HEAD / HTTP/1.0\r\n\r\n", "PUT /x HTTP/1.1\r\n\r\n"};
	char text[1000];

	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
		int fd = dial_port(all.http_port);

		CHECK(send(fd, requests[i], strlen(requests[i]), 0) == (ssize_t)strlen(requests[i]));
		get_plain(fd, text, sizeof text);
		CHECK(!strncmp(text, "HTTP/1.1 400 Bad Request\r\n", 26) && strstr(text, "https"));
		close(fd);
	}
	others_are_served();
}

/* Waits until the server has no connections. */
static void all_have_left(void)
{
	weft_http_stats_t stats;

	for (int i = 0; i < 4000; i++) {
		weft_http_stats(all.server, &stats);
		if (!stats.connections)
			return;
		usleep(5000);
	}
	CHECK(!"connections are left");
}

/* Receives an answer, and leaves without close_notify. */
static void cut(SSL *ssl, const char *text)
{
	char byte;

	send_text(ssl, text);
	CHECK(SSL_read(ssl, &byte, 1) == 1);
	atomic_store(&all.seen, 1);
	drop(ssl);
	while (atomic_load(&all.seen) == 1)
		usleep(1000);
	CHECK(atomic_load(&all.seen) == -ECONNRESET);
}

/* The reader of a body sees an end only if the client has sent close_notify. */
static void a_cut_is_no_end(void)
{
	for (int v = 0; v < 2; v++) {
		cut(dial_tls(all.contexts[v], all.echo_port), "abc");
		cut(dial_tls(all.contexts[v], all.http_port),
		    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n");
	}
	all_have_left();
}

/* ---- hostile clients --------------------------------------------------------------------------------------------- */

/* A client whose bytes pass through memory, so that the test controls how they are sent. */
struct slow {
	SSL *ssl;
	int fd;
	size_t sent, limit; /* bytes */
	size_t step;	    /* bytes of each send */
};

static void open_slow(struct slow *s, SSL_CTX *context, size_t limit, size_t step)
{
	*s = (struct slow){SSL_new(context), dial_port(all.http_port), 0, limit, step};
	CHECK(s->ssl);
	SSL_set_bio(s->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(s->ssl);
}

/* Returns false if the limit is reached, or the server has closed the connection. */
static bool move_bytes(struct slow *s, bool wait)
{
	char data[20000];
	int n = BIO_read(SSL_get_wbio(s->ssl), data, sizeof data);
	ssize_t got;

	for (int at = 0, part; at < n; at += part) {
		part = (size_t)(n - at) < s->step ? n - at : (int)s->step;
		if ((size_t)part > s->limit - s->sent)
			part = (int)(s->limit - s->sent);
		if (!part || send(s->fd, data + at, (size_t)part, MSG_NOSIGNAL) != part)
			return false;
		s->sent += (size_t)part;
		if (s->step < 10)
			usleep(50);
	}
	got = wait ? recv(s->fd, data, sizeof data, 0) : 0;
	if (got > 0)
		BIO_write(SSL_get_rbio(s->ssl), data, (int)got);
	return !wait || got > 0;
}

/* Returns true if the client was served. */
static bool run_slow(struct slow *s)
{
	char text[1000];
	int n;

	while ((n = SSL_do_handshake(s->ssl)) != 1)
		if (!would_block(s->ssl, n) || !move_bytes(s, true))
			return false;
	send_text(s->ssl, hello_request);
	if (!move_bytes(s, false))
		return false;
	while ((n = SSL_read(s->ssl, text, sizeof text)) <= 0)
		if (!would_block(s->ssl, n) || !move_bytes(s, true))
			return false;
	return true;
}

static void close_slow(struct slow *s, bool reset)
{
	static const struct linger at_once = {1, 0};

	if (reset)
		setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(s->fd);
	SSL_free(s->ssl);
	ERR_clear_error();
}

static void byte_by_byte(void)
{
	struct slow s;

	for (int i = 0; i < 2; i++) {
		open_slow(&s, all.contexts[i], SIZE_MAX, 1);
		CHECK(run_slow(&s));
		close_slow(&s, false);
	}
}

/* The client leaves after a given number of bytes. */
static void closes_at_every_stage(void)
{
	struct slow s;

	for (size_t limit = 0; limit < 900; limit += limit < 8 ? 1 : 23) {
		open_slow(&s, all.contexts[limit % 2], limit, SIZE_MAX);
		(void)run_slow(&s);
		close_slow(&s, limit % 3 == 0);
	}
	all_have_left();
	others_are_served();
}

static void send_garbage(int fd, unsigned kind)
{
	static const char *const heads[] = {"",
					    "\x16\x03\x01\xff\xff",
					    "\x16\x03\x01\x00\x00",
					    "\x16\x03\x01\x40\x01",
					    "\x17\x03\x03\x00\x10",
					    "\x15\x03\x01\x00\x02",
					    "\x80\x2e\x01\x00\x02",
					    "\x16\x03\x01\x00\x05\x01\x00\x00\xff\xff"};
	static const size_t lengths[] = {0, 5, 5, 5, 5, 5, 5, 10};
	char data[20000];
	unsigned which = kind % 8;

	fill_bytes(data, sizeof data, kind, 0);
	memcpy(data, heads[which], lengths[which]);
	(void)!send(fd, data, 1 + kind * 977 % sizeof data, MSG_NOSIGNAL);
}

static void garbage_harms_nobody(void)
{
	char text[1000];

	for (unsigned i = 0; i < 64; i++) {
		int fd = dial_port(all.http_port);

		send_garbage(fd, i);
		shutdown(fd, SHUT_WR);
		get_plain(fd, text, sizeof text);
		close(fd);
	}
	all_have_left();
	others_are_served();
}

/* After the handshake, bytes that are no record, or a forged record. */
static void garbage_behind_a_handshake(void)
{
	char text[1000];

	for (int v = 0; v < 2; v++)
		for (unsigned i = 0; i < 8; i++) {
			SSL *ssl = dial_tls(all.contexts[v], all.http_port);

			send_garbage(SSL_get_fd(ssl), i);
			shutdown(SSL_get_fd(ssl), SHUT_WR);
			get_plain(SSL_get_fd(ssl), text, sizeof text);
			drop(ssl);
		}
	all_have_left();
	others_are_served();
}

/* Key updates require answers, which this client does not read. */
static void a_flood_of_key_updates(void)
{
	static const struct timeval patience = {0, 300000};
	SSL *ssl = dial_tls(all.contexts[1], all.http_port);

	CHECK(!setsockopt(SSL_get_fd(ssl), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
	for (int i = 0; i < UPDATES; i++)
		if (!SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) || SSL_do_handshake(ssl) != 1)
			break;
	others_are_served();
	drop(ssl);
	all_have_left();
}

/* Clients that send nothing, or not enough, are disconnected. */
static void handshakes_have_a_limit(void)
{
	struct slow s[4];

	for (int i = 0; i < 4; i++) {
		open_slow(&s[i], all.contexts[i % 2], (size_t)i * 60, SIZE_MAX);
		(void)run_slow(&s[i]);
	}
	all_have_left();
	for (int i = 0; i < 4; i++)
		close_slow(&s[i], false);
}

/* ---- a crowd ----------------------------------------------------------------------------------------------------- */

static void echo_by_http(unsigned number)
{
	SSL *ssl = dial_tls(all.contexts[number % 2], all.http_port);
	size_t length = 1 + number * 313 % 30000;
	char head[200], *data = malloc(length), *text, *body;

	CHECK(data);
	fill_bytes(data, length, number, 0);
	snprintf(head, sizeof head, "POST /echo HTTP/1.0\r\nContent-Length: %zu\r\n\r\n", length);
	send_text(ssl, head);
	CHECK(SSL_write(ssl, data, (int)length) == (int)length);
	text = get_all(ssl);
	CHECK(text && !strncmp(text, "HTTP/1.1 200 ", 13));
	body = strstr(text, "\r\n\r\n");
	CHECK(body && !memcmp(body + 4, data, length));
	free(text);
	free(data);
	drop(ssl);
}

static void *one_of_a_crowd(void *number)
{
	unsigned i = (unsigned)(uintptr_t)number;
	struct slow s;
	int fd;

	if (i % 5) {
		echo_by_http(i);
	} else if (i % 2) {
		fd = dial_port(all.http_port);
		send_garbage(fd, i);
		usleep(100000);
		close(fd);
	} else {
		open_slow(&s, all.contexts[i / 10 % 2], i * 4, 100);
		(void)run_slow(&s);
		usleep(200000);
		close_slow(&s, i % 3);
	}
	return NULL;
}

static void a_crowd(void)
{
	pthread_t threads[CROWD];

	for (uintptr_t i = 0; i < CROWD; i++)
		CHECK(!pthread_create(&threads[i], NULL, one_of_a_crowd, (void *)i));
	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_join(threads[i], NULL));
	all_have_left();
}

/* ---- our client against OpenSSL's server ------------------------------------------------------------------------- */

struct their_server {
	pthread_t thread;
	SSL_CTX *context;
	int listener;
	unsigned port;
	bool cuts; /* it ends connections without close_notify */
};

/* Serves one connection, and echoes its data. */
static void serve_theirs(const struct their_server *s, int fd)
{
	SSL *ssl = SSL_new(s->context);
	char data[3000];
	int n;

	CHECK(ssl && SSL_set_fd(ssl, fd));
	if (SSL_accept(ssl) == 1) {
		if (s->cuts)
			SSL_set_quiet_shutdown(ssl, 1);
		while ((n = SSL_read(ssl, data, s->cuts ? 1 : sizeof data)) > 0 && SSL_write(ssl, data, n) == n &&
		       !s->cuts)
			;
		if (n >= 0)
			SSL_shutdown(ssl);
	}
	SSL_free(ssl);
	ERR_clear_error();
}

static void *runs_theirs(void *server)
{
	const struct their_server *s = server;
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		serve_theirs(s, fd);
		close(fd);
	}
	return NULL;
}

static void open_theirs(struct their_server *s, const char *name, bool cuts, int version)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;
	char path[100];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->cuts = cuts;
	s->context = SSL_CTX_new(TLS_server_method());
	CHECK(s->context && SSL_CTX_set_max_proto_version(s->context, version));
	snprintf(path, sizeof path, "%s.pem", name);
	CHECK(SSL_CTX_use_certificate_chain_file(s->context, path) == 1);
	snprintf(path, sizeof path, "%s.key", name);
	CHECK(SSL_CTX_use_PrivateKey_file(s->context, path, SSL_FILETYPE_PEM) == 1);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(s->listener >= 0 && !bind(s->listener, (struct sockaddr *)&address, size) && !listen(s->listener, 100));
	CHECK(!getsockname(s->listener, (struct sockaddr *)&address, &size));
	s->port = ntohs(address.sin_port);
	CHECK(!pthread_create(&s->thread, NULL, runs_theirs, s));
}

static void close_theirs(struct their_server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	SSL_CTX_free(s->context);
}

static int connect_ours(struct stream *s, unsigned port, const char *host, const char *alpn)
{
	char service[8];
	int fd;

	snprintf(service, sizeof service, "%u", port);
	fd = weft_dial("127.0.0.1", service);
	CHECK(fd >= 0);
	return weft__tls_connect(s, fd, all.trusting, host, alpn, weft_now() + 100 * SECOND);
}

/* The client refuses servers that it must not trust. Runs in a task. */
static void certificates_are_checked(void)
{
	static const struct {
		const char *certificate, *host;
		int error;
		const char *why;
	} cases[] = {{"server", "localhost", 0, NULL},
		     {"server", "LocalHost.", 0, NULL},
		     {"server", "127.0.0.1", 0, NULL},
		     {"server", "a.example.org", 0, NULL},
		     {"server", "a.b.example.org", -EKEYREJECTED, "hostname mismatch"},
		     {"server", "example.org", -EKEYREJECTED, "hostname mismatch"},
		     {"server", "localhost.evil.org", -EKEYREJECTED, "hostname mismatch"},
		     {"server", "127.0.0.2", -EKEYREJECTED, "IP address mismatch"},
		     {"server", "::1", -EKEYREJECTED, "IP address mismatch"},
		     {"expired", "localhost", -EKEYREJECTED, "certificate has expired"},
		     {"stranger", "localhost", -EKEYREJECTED, "unable to get local issuer certificate"},
		     {"server", "", -EINVAL, NULL},
		     {"server", NULL, -EINVAL, NULL}};
	struct their_server theirs;
	struct stream s;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int error;

		open_theirs(&theirs, cases[i].certificate, false, i % 2 ? TLS1_2_VERSION : TLS1_3_VERSION);
		error = connect_ours(&s, theirs.port, cases[i].host, "http/1.1");
		if (error != cases[i].error)
			printf("not ok - %s as %s: %d (%s)\n", cases[i].certificate, cases[i].host, error,
			       weft_http_tls_why(all.trusting));
		CHECK(!cases[i].why || !strcmp(weft_http_tls_why(all.trusting), cases[i].why));
		CHECK(!*weft__tls_alpn(&s) && (s.kind != NULL) == !error);
		weft__stream_close(&s);
		close_theirs(&theirs);
	}
}

static void our_client_echoes(void)
{
	static char data[PIECE], back[PIECE];
	struct their_server theirs;
	struct stream s;
	uint32_t state = 11;
	size_t at = 0, n;

	for (int v = 0; v < 2; v++) {
		open_theirs(&theirs, "server", false, v ? TLS1_3_VERSION : TLS1_2_VERSION);
		CHECK(!connect_ours(&s, theirs.port, "localhost", "h2,http/1.1"));
		for (int i = 0; i < ECHOES; i++, at += n) {
			n = 1 + next_random(&state) % (i % 3 ? 300 : PIECE);
			fill_bytes(data, n, 5, at);
			CHECK(write_parts(&s, data, n, &state) == (ssize_t)n);
			for (size_t got = 0; got < n;) {
				ssize_t part = weft__stream_read(&s, back + got, n - got, weft_now() + 100 * SECOND);

				CHECK(part > 0);
				got += (size_t)part;
			}
			CHECK(!memcmp(data, back, n));
		}
		CHECK(weft__stream_read(&s, back, 1, weft_now() + 10 * MS) == -ETIMEDOUT);
		CHECK(weft__stream_wait(&s, weft_now() + 10 * MS) == -ETIMEDOUT);
		CHECK(!weft__stream_finish(&s));
		CHECK(weft__stream_read(&s, back, 1, weft_now() + 100 * SECOND) == 0);
		weft__stream_close(&s);
		close_theirs(&theirs);
	}
}

static void our_client_sees_cuts(void)
{
	struct their_server theirs;
	struct stream s;
	char text[10];

	for (int v = 0; v < 2; v++) {
		open_theirs(&theirs, "server", true, v ? TLS1_3_VERSION : TLS1_2_VERSION);
		CHECK(!connect_ours(&s, theirs.port, "localhost", "http/1.1"));
		CHECK(weft__stream_write(&s, "a", 1, WEFT_NEVER) == 1);
		CHECK(weft__stream_read(&s, text, 10, WEFT_NEVER) == 1 && *text == 'a');
		CHECK(weft__stream_read(&s, text, 10, WEFT_NEVER) == -ECONNRESET);
		weft__stream_close(&s);
		close_theirs(&theirs);
	}
}

/* A task is cancelled in a handshake, in a read and in a write. */
static void *stalls(void *port)
{
	struct stream s = {.fd = -1};
	char service[8], data[1000] = "";

	snprintf(service, sizeof service, "%u", *(unsigned *)port);
	s.fd = weft_dial("127.0.0.1", service);
	CHECK(s.fd >= 0);
	weft_defer(close_stream, &s);
	(void)weft__tls_connect(&s, s.fd, all.trusting, "localhost", "http/1.1", WEFT_NEVER);
	if (*(unsigned *)port == all.duplex_port)
		while (weft__stream_write(&s, data, sizeof data, WEFT_NEVER) > 0)
			;
	(void)weft__stream_read(&s, data, sizeof data, WEFT_NEVER);
	return NULL;
}

static void tasks_are_cancelled(void)
{
	int silent = weft_listen("127.0.0.1", 0, 0, 0);
	unsigned ports[2] = {(unsigned)weft_port(silent), all.echo_port};

	for (int i = 0; i < 2; i++) {
		weft_task_t task;

		WEFT_SCOPE(scope);
		CHECK(!weft_scope_spawn_with(&scope, &task, stalls, &ports[i], NULL));
		weft_sleep(50 * MS);
		weft_task_cancel(&task);
		CHECK(weft_join(&task, NULL) == -ECANCELED);
	}
	weft_close(silent);
}

static void *serves_duplex(void *listener)
{
	struct stream s;
	int fd = weft_accept(*(int *)listener, NULL, NULL, 0);

	CHECK(fd >= 0 && !weft__tls_accept(&s, fd, all.tls, "h2", WEFT_NEVER));
	CHECK(!strcmp(weft__tls_alpn(&s), "h2"));
	duplex(&s);
	weft__stream_close(&s);
	return NULL;
}

static void *sends_other(void *stream)
{
	char data[9000];

	for (size_t at = 0, n; at < all.duplex; at += n) {
		n = all.duplex - at < sizeof data ? all.duplex - at : sizeof data;
		fill_bytes(data, n, 2, at);
		CHECK(weft__stream_write(stream, data, n, WEFT_NEVER) == (ssize_t)n);
	}
	return NULL;
}

/* Both sides are ours, and both read and write at the same time. */
static void ours_with_ours(void)
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0);
	struct stream s;
	char byte;

	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn(&scope, serves_duplex, &listener));
	CHECK(!connect_ours(&s, (unsigned)weft_port(listener), "localhost", "http/1.1,h2"));
	CHECK(!strcmp(weft__tls_alpn(&s), "h2"));
	CHECK(!weft_scope_spawn(&scope, sends_other, &s));
	CHECK(receive_stream(&s, 1));
	CHECK(weft__stream_read(&s, &byte, 1, WEFT_NEVER) == 0);
	CHECK(!weft_scope_wait(&scope));
	weft__stream_close(&s);
	weft_close(listener);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

static void errors_are_told(void)
{
	static const struct {
		const char *certificate, *key;
		int error;
		const char *why;
	} cases[] = {{"none.pem", "server.key", -ENOENT, NULL},
		     {"server.pem", "none.key", -ENOENT, NULL},
		     {"empty", "server.key", -EINVAL, "no start line"},
		     {"server.pem", "empty", -EINVAL, "unsupported"},
		     {"server.pem", "stranger.key", -EINVAL, "key values mismatch"},
		     {"server.key", "server.key", -EINVAL, "no start line"},
		     {"server.pem", NULL, -EINVAL, NULL},
		     {"server.pem", "locked.key", -EINVAL, NULL}};
	weft_http_tls_t *tls = NULL;
	const char *why;

	write_text("empty", "");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		why = "";
		CHECK(weft_http_tls_open(&tls, cases[i].certificate, cases[i].key, &why) == cases[i].error && !tls);
		if (cases[i].why ? !why || strcmp(why, cases[i].why) : cases[i].error == -ENOENT && why)
			printf("not ok - case %zu: %s\n", i, why);
	}
	CHECK(weft_http_tls_client_open(&tls, "none.pem", &why) == -ENOENT && !why && !tls);
	CHECK(weft_http_tls_client_open(&tls, "empty", &why) == -EINVAL && why && !tls);
	CHECK(!weft_http_tls_client_open(&tls, NULL, NULL) && !*weft_http_tls_why(tls));
	CHECK(weft_http_serve_tls(all.server, 0, tls) == -EINVAL);
	weft_http_tls_close(tls);
	weft_http_tls_close(NULL);
}

/* ---- refused memory ---------------------------------------------------------------------------------------------- */

static _Thread_local bool is_worker;
static _Atomic unsigned refuse_every, requests, refused;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool is_refused(void)
{
	unsigned every = atomic_load(&refuse_every);

	if (!every || !is_worker || atomic_fetch_add(&requests, 1) % every)
		return false;
	atomic_fetch_add(&refused, 1);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(old, size);
}
#endif

static void begin_worker(unsigned number, void *unused)
{
	(void)number, (void)unused;
	is_worker = true;
}

static unsigned every;

/* While memory is refused, clients may fail. Afterwards all clients are served. */
static void memory_is_refused(void)
{
	unsigned served = 0;

	for (unsigned i = 0; i < 120; i++) {
		SSL *ssl = make_client(all.contexts[i % 2], all.http_port);
		char *text = NULL;

		atomic_store(&refuse_every, every + i % 7);
		if (SSL_connect(ssl) == 1 && SSL_write(ssl, hello_request, sizeof hello_request - 1) > 0)
			text = get_all(ssl);
		served += text != NULL && !strncmp(text, "HTTP/1.1 200 ", 13);
		atomic_store(&refuse_every, 0);
		free(text);
		drop(ssl);
	}
	printf("%u requests for memory refused, %u of 120 clients served\n", atomic_load(&refused), served);
	CHECK(atomic_load(&refused) > 50);
	for (int i = 0; i < 20; i++)
		others_are_served();
	all_have_left();
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/weft-tls-XXXXXX";

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

static void make_files(void)
{
	struct identity other = make_identity(NULL, "other authority", NULL, 10);
	struct identity locked = make_identity(&other, "locked", "DNS:localhost", 10);
	FILE *file;

	CHECK(mkdtemp(directory) && !chdir(directory));
	all.authority = make_identity(NULL, "authority", NULL, 10);
	write_identity(&all.authority, "ca");
	write_server(&all.authority, "server", "DNS:localhost,IP:127.0.0.1,DNS:*.example.org", 10);
	write_server(&all.authority, "expired", "DNS:localhost", -1);
	write_server(&other, "stranger", "DNS:localhost", 10);
	file = fopen("locked.key", "w");
	CHECK(file && PEM_write_PrivateKey(file, locked.key, EVP_aes_128_cbc(), (const void *)"abcd", 4, NULL, NULL));
	CHECK(!fclose(file));
	free_identity(&locked);
	free_identity(&other);
}

static void make_contexts(void)
{
	static const int kinds[] = {TLS1_2_VERSION, TLS1_3_VERSION};

	for (int i = 0; i < 2; i++) {
		SSL_CTX *c = all.contexts[i] = SSL_CTX_new(TLS_client_method());

		CHECK(c && SSL_CTX_set_min_proto_version(c, kinds[i]) && SSL_CTX_set_max_proto_version(c, kinds[i]));
		CHECK(SSL_CTX_load_verify_file(c, "ca.pem") == 1);
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	}
}

static int64_t call_test(void *test)
{
	(*(void (**)(void))test)();
	return 0;
}

static const struct {
	const char *name;
	void (*fn)(void);
	bool by_task; /* run by a task; otherwise by a thread that may block */
} tests[] = {
#define TEST(name, by_task)                                                                                            \
	{                                                                                                              \
		#name, name, by_task                                                                                   \
	}
    TEST(both_versions_echo, false),
    TEST(both_directions_at_once, false),
    TEST(a_reader_does_not_wait_for_the_writer, false),
    TEST(protocols, false),
    TEST(sessions_resume, false),
    TEST(reload_fails, false),
    TEST(old_versions_are_refused, false),
    TEST(renegotiation_is_refused, false),
    TEST(plain_requests_are_refused, false),
    TEST(a_cut_is_no_end, false),
    TEST(byte_by_byte, false),
    TEST(closes_at_every_stage, false),
    TEST(garbage_harms_nobody, false),
    TEST(garbage_behind_a_handshake, false),
    TEST(a_flood_of_key_updates, false),
    TEST(handshakes_have_a_limit, false),
    TEST(a_crowd, false),
    TEST(certificates_are_checked, true),
    TEST(our_client_echoes, true),
    TEST(our_client_sees_cuts, true),
    TEST(tasks_are_cancelled, true),
    TEST(ours_with_ours, true),
    TEST(errors_are_told, true),
};

static void run_tests_of(const char *only)
{
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		void (*fn)(void) = tests[i].fn;

		if (only && strcmp(only, tests[i].name))
			continue;
		if (tests[i].by_task)
			fn();
		else
			weft_call(call_test, &fn);
		printf("ok - %s\n", tests[i].name);
	}
}

static int open_port(unsigned *port)
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0);

	CHECK(listener >= 0);
	*port = (unsigned)weft_port(listener);
	return listener;
}

static void *run(void *only)
{
	const weft_http_config_t config = {.header_time = HEADER_TIME * MS};
	void (*refusal)(void) = memory_is_refused;
	struct port ports[2] = {{open_port(&all.echo_port), echo_stream}, {open_port(&all.duplex_port), duplex}};
	struct served served = {.listener = open_port(&all.http_port), .tls = all.tls};
	const int buffer = 20000; /* so that the kernel cannot buffer all data */
	weft_scope_t scope;

	CHECK(!setsockopt(ports[1].listener, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer));
	CHECK(!setsockopt(ports[1].listener, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer));
	CHECK(!weft_http_open(&all.server, &config));
	served.server = all.server;
	CHECK(!weft_http_route(all.server, "GET /hello", says_how, NULL));
	CHECK(!weft_http_route(all.server, "POST /echo", echo, &all.seen));
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serves, &served));
	for (int i = 0; i < 2; i++)
		CHECK(!weft_scope_spawn(&scope, listens, &ports[i]));
	if (every)
		weft_call(call_test, &refusal);
	else
		run_tests_of(only);
	CHECK(!weft_http_stop(all.server, weft_now() + 20 * SECOND));
	for (int i = 0; i < 2; i++)
		weft_close(ports[i].listener);
	CHECK(!weft_scope_wait(&scope));
	weft_close(served.listener);
	weft_http_close(all.server);
	return &all;
}

static void *simulate(void *pass)
{
	ours_with_ours();
	return pass;
}

static bool run_all(int argc, char **argv)
{
	const weft_rt_config_t config = {.worker_begins = begin_worker};
	uint64_t seed, seeds = all.simulated ? strtoull(argv[2], NULL, 10) : 0;
	void *result = NULL;
	bool ok = true;

	all.duplex = all.simulated ? SMALL : DUPLEX;
	if (!all.simulated)
		return !weft_rt_run(&config, run, argc > 1 ? argv[1] : NULL, &result) && result == &all;
	for (seed = 0; ok && seed < seeds; seed++) {
		ok = !weft_simulate(seed, NULL, simulate, &all, &result) && result == &all;
		printf("%s - seed %llu\n", ok ? "ok" : "not ok", (unsigned long long)seed);
	}
	return ok;
}

int main(int argc, char **argv)
{
	bool ok;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	all.simulated = argc > 2 && !strcmp(argv[1], "simulated");
	every = argc > 2 && !strcmp(argv[1], "refused") ? (unsigned)atoi(argv[2]) : 0;
	make_files();
	make_contexts();
	CHECK(!weft_http_tls_open(&all.tls, "server.pem", "server.key", NULL));
	CHECK(!weft_http_tls_client_open(&all.trusting, "ca.pem", NULL));
	ok = run_all(argc, argv);
	weft_http_tls_close(all.tls);
	weft_http_tls_close(all.trusting);
	for (int i = 0; i < 2; i++)
		SSL_CTX_free(all.contexts[i]);
	free_identity(&all.authority);
	CHECK(!chdir("/") && !nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS));
	return !ok;
}
