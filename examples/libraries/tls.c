/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tls.c: an echo server that speaks TLS, by OpenSSL, and its clients. The server's certificate is made when the program
 * begins. One client does not know it, and hangs up.
 *
 *   task → SSL_write → `out` → weft_write → … → weft_read → `in` → SSL_read → task
 *
 * OpenSSL reads and writes its bytes in memory, and never waits. So a task waits only in weft_read and weft_write, with
 * a deadline, on any kind of stack, and in the simulator, too; it may continue on any thread. OpenSSL's list of errors
 * belongs to a thread: a task must not wait between a call and SSL_get_error.
 */
#include <stdio.h>

#if __has_include(<openssl/ssl.h>)
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <weft/io.h>

#define SECOND 1000000000ull

#ifndef STRANGERS
#define STRANGERS SSL_VERIFY_PEER /* without it they would trust any server */
#endif

enum { CLIENTS = 8, ROUNDS = 50, PATIENCE = 20 /* seconds */, PART = 4096 };

/* ---- a connection ------------------------------------------------------------------------------------------------ */

struct tls {
	SSL *ssl;
	BIO *in, *out; /* owned by the SSL */
	int fd;
};

static void close_tls(struct tls *t)
{
	SSL_free(t->ssl);
	if (t->fd >= 0)
		weft_close(t->fd);
}

/* close_tls must be called even if this fails. */
static int open_tls(struct tls *t, SSL_CTX *context, int fd)
{
	*t = (struct tls){SSL_new(context), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()), fd};
	if (t->ssl && t->in && t->out) {
		SSL_set_bio(t->ssl, t->in, t->out);
		return 0;
	}
	BIO_free(t->in);
	BIO_free(t->out);
	return -ENOMEM;
}

/* doc: begin tls */
static int send_all(struct tls *t, uint64_t deadline)
{
	char part[PART];
	ssize_t n = 1;
	int size;

	while (n > 0 && (size = BIO_read(t->out, part, sizeof part)) > 0)
		n = weft_write_all_until(t->fd, part, (size_t)size, deadline);
	return n < 0 ? (int)n : 0;
}

static int receive(struct tls *t, uint64_t deadline)
{
	char part[PART];
	ssize_t n = weft_read_until(t->fd, part, sizeof part, deadline);

	if (n > 0)
		return BIO_write(t->in, part, (int)n) == n ? 0 : -ENOMEM;
	return n ? (int)n : -ECONNRESET; /* TLS has its own message for the end */
}

/* Decides the next step after a call of OpenSSL. Returns 0: call again; 1: done; or a negative errno. */
static int next(struct tls *t, int result, uint64_t deadline)
{
	int why = SSL_get_error(t->ssl, result);
	int error = send_all(t, deadline);

	if (error)
		return error;
	if (why == SSL_ERROR_WANT_READ)
		return receive(t, deadline);
	return why == SSL_ERROR_NONE || why == SSL_ERROR_ZERO_RETURN ? 1 : -EPROTO;
}

static int tls_handshake(struct tls *t, uint64_t deadline)
{
	int error = 0;

	while (!error) {
		ERR_clear_error();
		error = next(t, SSL_do_handshake(t->ssl), deadline);
	}
	return error < 0 ? error : 0;
}

static ssize_t tls_read(struct tls *t, void *data, size_t length, uint64_t deadline)
{
	size_t got = 0;
	int error = 0;

	while (!error) {
		ERR_clear_error();
		error = next(t, SSL_read_ex(t->ssl, data, length, &got), deadline);
	}
	return error < 0 ? error : (ssize_t)got; /* 0: the end */
}

static ssize_t tls_write(struct tls *t, const void *data, size_t length, uint64_t deadline)
{
	size_t put = 0;
	int error = 0;

	while (!error) {
		ERR_clear_error();
		error = next(t, SSL_write_ex(t->ssl, data, length, &put), deadline);
	}
	return error < 0 ? error : (ssize_t)put;
}
/* doc: end */

static uint64_t soon(void)
{
	return weft_now() + PATIENCE * SECOND;
}

static void tls_end(struct tls *t)
{
	ERR_clear_error();
	(void)SSL_shutdown(t->ssl);
	(void)send_all(t, soon());
}

/* ---- server and clients ------------------------------------------------------------------------------------------ */

struct world {
	SSL_CTX *server, *client, *stranger; /* `stranger` knows no certificate */
	int listener;
	char port[8];
	unsigned lines, refused; /* atomic */
};

struct session {
	struct world *world;
	int fd;
};

/* An error of a client ends its session only. */
static void *serve(void *argument)
{
	const struct session *s = argument;
	char text[64];
	struct tls t;
	ssize_t n = 0;

	weft_defer(close_tls, &t);
	if (open_tls(&t, s->world->server, s->fd))
		return NULL;
	SSL_set_accept_state(t.ssl);
	if (tls_handshake(&t, soon()))
		return NULL;
	while ((n = tls_read(&t, text, sizeof text, soon())) > 0)
		if (tls_write(&t, text, (size_t)n, soon()) != n)
			break;
	tls_end(&t);
	return NULL;
}

static void *accept_all(void *argument)
{
	struct session sessions[CLIENTS + 1];
	struct world *w = argument;
	int i, error = 0;

	WEFT_SCOPE(scope);
	for (i = 0; i < CLIENTS + 1 && !error; i++) {
		sessions[i] = (struct session){w, weft_accept(w->listener, NULL, NULL, 0)};
		error = sessions[i].fd < 0 ? sessions[i].fd : weft_scope_spawn(&scope, serve, &sessions[i]);
		if (error && sessions[i].fd >= 0)
			weft_close(sessions[i].fd);
	}
	if (error)
		weft_scope_cancel(&scope, error);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	return NULL;
}

static void check(int error)
{
	if (error)
		weft_task_fail(error);
}

/* `t` must be closed even if this fails. */
static int dial(struct tls *t, const struct world *w, SSL_CTX *context)
{
	int error = open_tls(t, context, weft_dial("127.0.0.1", w->port));

	if (t->fd < 0)
		return t->fd;
	if (error)
		return error;
	SSL_set_connect_state(t->ssl);
	if (!SSL_set1_host(t->ssl, "localhost"))
		return -ENOMEM;
	return tls_handshake(t, soon());
}

static void *talk(void *argument)
{
	struct world *w = argument;
	char text[32], back[32];
	struct tls t;
	int i, length;

	weft_defer(close_tls, &t);
	check(dial(&t, w, w->client));
	for (i = 0; i < ROUNDS; i++) {
		length = snprintf(text, sizeof text, "line %d", i);
		if (tls_write(&t, text, (size_t)length, soon()) != length ||
		    tls_read(&t, back, sizeof back, soon()) != length || memcmp(text, back, (size_t)length) != 0)
			weft_task_fail(-EIO);
		__atomic_fetch_add(&w->lines, 1, __ATOMIC_RELAXED);
	}
	tls_end(&t);
	return NULL;
}

static void *refuse(void *argument)
{
	struct world *w = argument;
	struct tls t;

	weft_defer(close_tls, &t);
	if (dial(&t, w, w->stranger) == -EPROTO && SSL_get_verify_result(t.ssl) != X509_V_OK)
		__atomic_fetch_add(&w->refused, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- the certificate --------------------------------------------------------------------------------------------- */

static bool fill_in(X509 *certificate, EVP_PKEY *key)
{
	X509_NAME *name = X509_get_subject_name(certificate);
	const unsigned char *host = (const unsigned char *)"localhost";

	return X509_set_version(certificate, 2) && ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) &&
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), 86400) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, host, -1, -1, 0) &&
	       X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key) &&
	       X509_sign(certificate, key, EVP_sha256());
}

static bool make_contexts(struct world *w, X509 *certificate, EVP_PKEY *key)
{
	w->server = SSL_CTX_new(TLS_server_method());
	w->client = SSL_CTX_new(TLS_client_method());
	w->stranger = SSL_CTX_new(TLS_client_method());
	if (!w->server || !w->client || !w->stranger)
		return false;
	SSL_CTX_set_verify(w->client, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_verify(w->stranger, STRANGERS, NULL);
	return SSL_CTX_use_certificate(w->server, certificate) && SSL_CTX_use_PrivateKey(w->server, key) &&
	       X509_STORE_add_cert(SSL_CTX_get_cert_store(w->client), certificate);
}

static bool prepare(struct world *w)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	bool done = key && certificate && fill_in(certificate, key) && make_contexts(w, certificate, key);

	X509_free(certificate);
	EVP_PKEY_free(key);
	return done;
}

/* ---- */

/* If a task cannot start, the other tasks would wait for it. */
static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error)
		weft_scope_cancel(scope, error);
}

static void close_fd(int *fd)
{
	weft_close(*fd);
}

static void *run(void *argument)
{
	struct world *w = argument;
	int i;

	w->listener = weft_listen("127.0.0.1", 0, 0, 0);
	if (w->listener < 0)
		weft_task_fail(w->listener);
	weft_defer(close_fd, &w->listener);
	snprintf(w->port, sizeof w->port, "%d", weft_port(w->listener));
	WEFT_SCOPE(scope);
	start(&scope, accept_all, w);
	start(&scope, refuse, w);
	for (i = 0; i < CLIENTS; i++)
		start(&scope, talk, w);
	check(weft_scope_wait(&scope));
	return NULL;
}

int main(void)
{
	struct world w = {0};
	int error = prepare(&w) ? weft_rt_run(NULL, run, &w, NULL) : -ENOMEM;

	SSL_CTX_free(w.server);
	SSL_CTX_free(w.client);
	SSL_CTX_free(w.stranger);
	if (error) {
		fprintf(stderr, "tls: %s\n", strerror(-error));
		return 1;
	}
	printf("%u lines came back; %u client did not know the certificate\n", w.lines, w.refused);
}

#else
int main(void)
{
	fputs("tls: skipped, because openssl/ssl.h is missing: apt-get install --no-install-recommends libssl-dev\n",
	      stderr);
	return 77;
}
#endif
