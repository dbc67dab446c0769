/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The TLS connections of a server or a client share certificates and settings, in a context of OpenSSL. A reload makes
 * a new context; connections keep the context that they began with. Each context has its own keys for session tickets,
 * so tickets of an earlier context lead to a full handshake.
 *
 * Files are read on a helper thread, which also has the stack that OpenSSL needs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/openssl.h"

#ifdef HAVE_OPENSSL

struct openssl openssl;

/* ---- the library ------------------------------------------------------------------------------------------------- */

static bool is_loaded;

static void open_library(void)
{
	void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;

#define FIND(name) all = all && (openssl.name = (__typeof__(openssl.name))dlsym(library, #name)) != NULL;
	OPENSSL_FUNCTIONS(FIND)
#undef FIND
	is_loaded = all;
}

static bool load_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, open_library);
	return is_loaded;
}

/* ---- a context --------------------------------------------------------------------------------------------------- */

struct loading {
	const weft_http_tls_t *tls;
	SSL_CTX *context;
	const char *why;
};

/* The oldest error is the cause of the later errors. */
static int failed(struct loading *l)
{
	unsigned long code = openssl.ERR_peek_error();

	l->why = openssl.ERR_reason_error_string(code);
	return ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ? -ENOMEM : -EINVAL;
}

/* Checks that a file can be opened, because OpenSSL does not report the reason. */
static int check_file(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* A key with a passphrase is refused: OpenSSL would ask the terminal. */
static int no_passphrase(char *text, int size, int writing, void *unused)
{
	(void)text, (void)size, (void)writing, (void)unused;
	return -1;
}

static int load_certificate(struct loading *l)
{
	const char *certificate = l->tls->certificate, *key = l->tls->key;
	int error = check_file(certificate);

	if (!error)
		error = check_file(key);
	if (error)
		return error;
	openssl.SSL_CTX_set_default_passwd_cb(l->context, no_passphrase);
	if (openssl.SSL_CTX_use_certificate_chain_file(l->context, certificate) != 1 ||
	    openssl.SSL_CTX_use_PrivateKey_file(l->context, key, SSL_FILETYPE_PEM) != 1 ||
	    openssl.SSL_CTX_check_private_key(l->context) != 1)
		return failed(l);
	return 0;
}

static int load_authorities(struct loading *l)
{
	const char *file = l->tls->certificate;
	int error = file ? check_file(file) : 0;

	if (error)
		return error;
	if ((file ? openssl.SSL_CTX_load_verify_file(l->context, file)
		  : openssl.SSL_CTX_set_default_verify_paths(l->context)) != 1)
		return failed(l);
	openssl.SSL_CTX_set_verify(l->context, SSL_VERIFY_PEER, NULL);
	return 0;
}

/* Forward secrecy and authenticated encryption, even with TLS 1.2; HTTP/2 allows no other ciphers (RFC 9113 §9.2.2). */
static const char server_ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
/* TLS 1.3 has a separate list. AES-128 with SHA-256 takes less time, and less memory of each connection, than AES-256
 * with SHA-384. */
static const char server_suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* An idle connection keeps no buffers, and sessions are stored in the clients' tickets. */
static int configure(struct loading *l)
{
	SSL_CTX *c = l->context;

	openssl.SSL_CTX_ctrl(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
	openssl.SSL_CTX_ctrl(c, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
	openssl.SSL_CTX_ctrl(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	openssl.SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
					   SSL_OP_PRIORITIZE_CHACHA);
	if (l->tls->is_client)
		return load_authorities(l);
	openssl.SSL_CTX_set_alpn_select_cb(c, weft__tls_select, NULL);
	if (openssl.SSL_CTX_set_cipher_list(c, server_ciphers) != 1 ||
	    openssl.SSL_CTX_set_ciphersuites(c, server_suites) != 1)
		return failed(l);
	return load_certificate(l);
}

static int64_t load(void *loading)
{
	struct loading *l = loading;
	int error;

	if (!load_library()) {
		l->why = "libssl.so.3 cannot be loaded";
		return -ENOTSUP;
	}
	openssl.ERR_clear_error();
	l->context = openssl.SSL_CTX_new(l->tls->is_client ? openssl.TLS_client_method() : openssl.TLS_server_method());
	if (!l->context)
		return failed(l);
	error = configure(l);
	if (error)
		openssl.SSL_CTX_free(l->context);
	openssl.ERR_clear_error();
	return error;
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

static void free_tls(weft_http_tls_t *tls)
{
	free(tls->certificate);
	free(tls->key);
	pthread_mutex_destroy(&tls->lock);
	free(tls);
}

/* Copies a name; NULL stays NULL. False: no memory. */
static bool copy_name(char **to, const char *name)
{
	*to = name ? strdup(name) : NULL;
	return *to || !name;
}

int weft_http_tls_reload(weft_http_tls_t *tls, const char **why)
{
	struct loading l = {.tls = tls};
	SSL_CTX *old;
	int error;

	weft_shield_begin();
	error = (int)weft_call(load, &l);
	weft_shield_end();
	if (why)
		*why = l.why;
	if (error)
		return error;
	pthread_mutex_lock(&tls->lock);
	old = tls->context;
	tls->context = l.context;
	pthread_mutex_unlock(&tls->lock);
	openssl.SSL_CTX_free(old);
	return 0;
}

static int open_tls(weft_http_tls_t **tls, bool is_client, const char *certificate, const char *key, const char **why)
{
	weft_http_tls_t *t = calloc(1, sizeof *t);
	int error;

	if (!t)
		return -ENOMEM;
	t->is_client = is_client;
	t->why = "";
	pthread_mutex_init(&t->lock, NULL);
	error =
	    copy_name(&t->certificate, certificate) && copy_name(&t->key, key) ? weft_http_tls_reload(t, why) : -ENOMEM;
	if (error)
		free_tls(t);
	else
		*tls = t;
	return error;
}

void weft_http_tls_close(weft_http_tls_t *tls)
{
	if (!tls)
		return;
	openssl.SSL_CTX_free(tls->context);
	free_tls(tls);
}

const char *weft_http_tls_why(const weft_http_tls_t *tls)
{
	return atomic_load_explicit(&tls->why, memory_order_relaxed);
}

#else

static int open_tls(weft_http_tls_t **tls, bool is_client, const char *certificate, const char *key, const char **why)
{
	(void)tls, (void)is_client, (void)certificate, (void)key;
	if (why)
		*why = "Weft was built without OpenSSL 3";
	return -ENOTSUP;
}

int weft_http_tls_reload(weft_http_tls_t *tls, const char **why)
{
	(void)tls, (void)why;
	return -ENOTSUP;
}

void weft_http_tls_close(weft_http_tls_t *tls)
{
	(void)tls;
}

const char *weft_http_tls_why(const weft_http_tls_t *tls)
{
	(void)tls;
	return "";
}
#endif

static int open_if(bool is_right, weft_http_tls_t **tls, bool is_client, const char *certificate, const char *key,
		   const char **why)
{
	if (why)
		*why = NULL;
	return is_right ? open_tls(tls, is_client, certificate, key, why) : -EINVAL;
}

int weft_http_tls_open(weft_http_tls_t **tls, const char *certificate, const char *key, const char **why)
{
	return open_if(tls && certificate && key, tls, false, certificate, key, why);
}

int weft_http_tls_client_open(weft_http_tls_t **tls, const char *authorities, const char **why)
{
	return open_if(tls, tls, true, authorities, NULL, why);
}
